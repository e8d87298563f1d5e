// SPDX-License-Identifier: Apache-2.0
// Reads the model and its shape, the data and the settings from the keys of a configuration.
#include "config.h"

#include <string.h>

#include "base/error.h"
#include "base/param.h"
#include "config/conf.h"

const enum yk_config_key yk_config_sizes[YK_SIZE_COUNT] = {
#define S(key, ...) YK_KEY_##key,
	YK_SIZES(S)
#undef S
};

const enum yk_config_key yk_config_traits[YK_TRAIT_COUNT] = {
#define T(key, ...) YK_KEY_##key,
	YK_TRAITS(T, )
#undef T
};

// Index of a CHOICE's value in its list of words.
static int word_number(const char *list, const char *word)
{
	int i = 0;
	const size_t n = strlen(word);
	for (; *list && (strncmp(list, word, n) || (list[n] && list[n] != ' ')); i++) {
		list += strcspn(list, " ");
		list += strspn(list, " ");
	}
	return i;
}

const struct yk_model *yk_config_model(const struct yk_config *c, int64_t vocab,
				       struct yk_model_shape *to)
{
	const struct yk_model *m = yk_model_find(yk_config_str(c, YK_KEY_model));
	*to = (struct yk_model_shape){ .vocab = vocab,
				       .context = yk_config_int(c, YK_KEY_context) };
	if (*yk_config_str(c, YK_KEY_init))
		return &yk_model_decoder;
	for (int k = 0; k < YK_SIZE_COUNT; k++)
		if (m->sizes >> k & 1)
			to->size[k] = yk_config_int(c, yk_config_sizes[k]);
	for (int k = 0; k < YK_TRAIT_COUNT; k++) {
		if (!(m->traits >> k & 1))
			continue;
		const struct yk_config_row *row = &yk_config_rows[yk_config_traits[k]];
		to->trait[k] =
			row->type == YK_KEY_REAL ?
				yk_config_real(c, yk_config_traits[k]) :
			row->type == YK_KEY_INT ?
				(double)yk_config_int(c, yk_config_traits[k]) :
				word_number(row->choices, yk_config_str(c, yk_config_traits[k]));
	}
	return m;
}

struct yk_data_spec yk_config_data(const struct yk_config *c, int64_t context)
{
	return (struct yk_data_spec){
		.context = context,
		.valid = yk_config_real(c, YK_KEY_valid),
		.valid_given = yk_config_is_explicit(c, YK_KEY_valid) &&
			       !yk_config_is_path(c, YK_KEY_valid),
		.apart = yk_config_is_path(c, YK_KEY_valid),
		.format = yk_config_str(c, YK_KEY_format),
		.vocab = yk_config_int(c, YK_KEY_vocab),
		.limit = c->command == YK_T ? yk_config_int(c, YK_KEY_limit) : 0,
		.shuffle = c->command == YK_T ? yk_config_int(c, YK_KEY_shuffle) : 0,
		.field = yk_config_str(c, YK_KEY_field),
		.chats = c->command == YK_T && *yk_config_str(c, YK_KEY_init),
		.pack = c->command != YK_T || !strcmp(yk_config_str(c, YK_KEY_pack), "1")
	};
}

struct yk_data_spec yk_config_valid_data(const struct yk_config *c, int64_t context)
{
	struct yk_data_spec spec = yk_config_data(c, context);
	spec.valid = 1;
	spec.valid_given = true;
	spec.apart = false;
	spec.limit = spec.shuffle = 0;
	return spec;
}

int yk_config_apply_threads(const struct yk_config *c)
{
	if (!(yk_config_rows[YK_KEY_threads].commands & c->command) ||
	    yk_config_int(c, YK_KEY_threads) == 0)
		return 0;
	return yoke_setting_set("threads", yk_config_str(c, YK_KEY_threads));
}

int yk_config_apply(const struct yk_config *c)
{
	// an empty value leaves the setting unchanged
	static const struct {
		enum yk_config_key key;
		const char *setting;
	} settings[] = {
		{ YK_KEY_backend, "backend" },
		{ YK_KEY_memory, "memory" },
		{ YK_KEY_recompute, "recompute" },
	};
	int e = yk_config_apply_threads(c);

	for (size_t i = 0; i < sizeof settings / sizeof *settings && e == 0; i++) {
		const char *text = yk_config_str(c, settings[i].key);
		if (yk_config_rows[settings[i].key].commands & c->command && *text &&
		    (settings[i].key != YK_KEY_recompute || yk_config_is_set(c, YK_KEY_recompute)))
			e = yoke_setting_set(settings[i].setting, text);
	}
	// with a memory limit, activations may be spilled to host memory
	if (e == 0 && *yk_config_str(c, YK_KEY_memory))
		e = yoke_setting_set("spill", "1");
	return e;
}
