// SPDX-License-Identifier: Apache-2.0
// Reads the keys of runs with adapters.
#include "config.h"

#include "train/adapted.h"

#include <string.h>

#include "base/error.h"

bool yk_trains_adapters(const struct yk_config *c)
{
	return yk_config_int(c, YK_KEY_lora) > 0 || *yk_config_str(c, YK_KEY_adapter);
}

// Does the command set another value than the default?  A file of `yoke setup` has all keys.
static bool is_changed(const struct yk_config *c, enum yk_config_key key)
{
	return yk_config_is_explicit(c, key) && !yk_config_is(c, key, yk_config_rows[key].def);
}

int yk_adapted_check(const struct yk_config *c)
{
	static const enum yk_config_key keys[] = { YK_KEY_lora_alpha, YK_KEY_lora_targets,
						   YK_KEY_dtype, YK_KEY_quant };
	static const enum yk_config_key own[] = { YK_KEY_lora, YK_KEY_lora_alpha,
						  YK_KEY_lora_targets };
	for (size_t i = 0; i < sizeof keys / sizeof *keys && !yk_trains_adapters(c); i++)
		if (is_changed(c, keys[i]))
			return yk_fail(YOKE_EINVAL,
				       "%s=%s: needs adapters; give lora=RANK or adapter=FOLDER, "
				       "or remove it",
				       yk_config_rows[keys[i]].name, yk_config_str(c, keys[i]));
	if (!yk_trains_adapters(c))
		return 0;
	if (!*yk_config_str(c, YK_KEY_init) && *yk_config_str(c, YK_KEY_adapter))
		return yk_fail(YOKE_EINVAL,
			       "adapter=%s: adapts a pretrained model; name it with init=MODEL",
			       yk_config_str(c, YK_KEY_adapter));
	for (size_t i = 0; i < 3 && *yk_config_str(c, YK_KEY_adapter); i++)
		if (is_changed(c, own[i]))
			return yk_fail(YOKE_EINVAL, "%s=%s: adapter=%s has its own; remove it",
				       yk_config_rows[own[i]].name, yk_config_str(c, own[i]),
				       yk_config_str(c, YK_KEY_adapter));
	if (!*yk_config_str(c, YK_KEY_init))
		return yk_fail(YOKE_EINVAL,
			       "lora=%s: adapts a pretrained model; name it with init=MODEL",
			       yk_config_str(c, YK_KEY_lora));
	return yk_lora_targets_check(yk_config_str(c, YK_KEY_lora_targets));
}

int yk_adapted_layers(const struct yk_config *c, const struct yk_model_shape *s,
		      struct yk_lora_layer **to, size_t *n)
{
	return yk_lora_layers(s, yk_config_str(c, YK_KEY_lora_targets),
			      yk_config_int(c, YK_KEY_lora), yk_config_real(c, YK_KEY_lora_alpha),
			      to, n);
}

static const char *unless(const char *text, const char *neutral)
{
	return strcmp(text, neutral) ? text : NULL;
}

void yk_adapted_base(const struct yk_config *c, struct yoke_model_options *to)
{
	to->dtype = unless(yk_config_str(c, YK_KEY_dtype), "file");
	to->quant = unless(yk_config_str(c, YK_KEY_quant), "none");
}
