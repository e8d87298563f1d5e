// SPDX-License-Identifier: Apache-2.0
// Resolves the precision keys of a run and checks that the device supports them.
#include "config.h"

#include "config/precision.h"

#include <string.h>

#include "base/error.h"
#include "graph/context.h"
#include "config/capable.h"

// Rejects a half precision that the device lacks or would compute more slowly.
static int check(const char *name, int half)
{
	const struct yoke_context *ctx = yk_current();
	if (!ctx)
		return yoke_error_code();
	struct yk_device *d = yk_device_real(ctx->device);
	const char *dtype = yoke_dtype_name(half);
	int other = half == yoke_f16 ? yoke_bf16 : yoke_f16;
	enum yk_capable can = yk_capable(d, YOKE_OP_CONTRACT, half);
	if (can == YK_NATIVE)
		return 0;
	const char *use = yk_capable(d, YOKE_OP_CONTRACT, other) != YK_NATIVE ? "fp32" :
			  other == yoke_f16 ? "fp16-mixed" : "bf16-mixed";
	if (can != YK_EMULATED)
		return yk_fail(
			YOKE_EINVAL,
			"precision=%s: %s does not support matrix products in %s; use precision=%s",
			name, d->id, dtype, use);
	return yk_fail(YOKE_EINVAL,
		       "precision=%s: %s computes matrix products of %s in f32, which saves memory "
		       "but no time; use precision=%s, or allow_emulated=1 to save memory",
		       name, d->id, dtype, use);
}

const char *yk_precision_word(const char *word)
{
	return !strcmp(word, "32-true") ? "fp32" : !strcmp(word, "16-mixed") ? "fp16-mixed" : word;
}

int yk_precision_named(const char *name, const char *keep, bool emulated, struct yk_precision *to)
{
	const char *word = yk_precision_word(name);
	struct yk_precision p = { .keep = keep && *keep ? keep : NULL };
	if (!strcmp(word, "bf16-mixed"))
		p.half = yoke_bf16;
	else if (!strcmp(word, "fp16-mixed"))
		p.half = yoke_f16;
	else if (strcmp(word, "fp32"))
		return yk_fail(YOKE_EINVAL, "precision=%s: must be fp32, bf16-mixed or fp16-mixed",
			       name);
	p.scaled = p.half == yoke_f16;
	*to = p;
	return p.half && !emulated ? check(name, p.half) : 0;
}

int yk_precision_of(const struct yk_config *c, struct yk_precision *to)
{
	return yk_precision_named(yk_config_str(c, YK_KEY_precision),
				  yk_config_str(c, YK_KEY_keep_f32),
				  !strcmp(yk_config_str(c, YK_KEY_allow_emulated), "1"), to);
}

yoke_scaler *yk_scaler_make(const struct yk_config *c)
{
	return yoke_scaler_new(
		&(struct yoke_scaler_options){ .size = sizeof(struct yoke_scaler_options),
					       .scale = yk_config_real(c, YK_KEY_loss_scale) });
}

int yk_precision_begin(const struct yk_precision *p)
{
	return p->half ? yoke_autocast(p->half, p->keep) : 0;
}
