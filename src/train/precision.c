// SPDX-License-Identifier: Apache-2.0
// Mixed precision of a run.
#include "config.h"

#include "train/precision.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "graph/context.h"
#include "train/capable.h"

// Refuses what would cost time.
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
		return yk_fail(YOKE_EINVAL, "precision=%s: %s has no products of %s; use precision=%s", name, d->id,
			       dtype, use);
	return yk_fail(YOKE_EINVAL, "precision=%s: %s computes products of %s by way of f32, which saves memory and no "
		       "time; use precision=%s, or allow_emulated=1 for the memory", name, d->id, dtype, use);
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
		return yk_fail(YOKE_EINVAL, "precision=%s: is none of fp32, bf16-mixed and fp16-mixed", name);
	p.scaled = p.half == yoke_f16;
	*to = p;
	return p.half && !emulated ? check(name, p.half) : 0;
}

int yk_precision_of(const struct yk_config *c, struct yk_precision *to)
{
	return yk_precision_named(yk_config_str(c, YK_KEY_precision), yk_config_str(c, YK_KEY_keep_f32),
				  !strcmp(yk_config_str(c, YK_KEY_allow_emulated), "1"), to);
}

yoke_scaler *yk_scaler_make(const struct yk_config *c)
{
	return yoke_scaler_new(&(struct yoke_scaler_options){ .size = sizeof(struct yoke_scaler_options),
							      .scale = yk_config_real(c, YK_KEY_loss_scale) });
}

int yk_precision_begin(const struct yk_precision *p)
{
	return p->half ? yoke_autocast(p->half, p->keep) : 0;
}

json_t *yk_scaler_describe(const yoke_scaler *s)
{
	struct yoke_scaler_state x = { .size = sizeof x };
	char recent[33];
	if (!s || yoke_scaler_save(s, &x) < 0)
		return NULL;
	snprintf(recent, sizeof recent, "%016" PRIx64 "%016" PRIx64, x.recent[1], x.recent[0]);
	return json_pack("{s:f, s:I, s:I, s:I, s:I, s:s}", "scale", x.scale, "clean", (json_int_t)x.clean, "left",
			 (json_int_t)x.left, "steps", (json_int_t)x.steps, "skipped", (json_int_t)x.skipped,
			 "recent", recent);
}

int yk_scaler_parse(const json_t *o, const char *what, yoke_scaler *s)
{
	const int64_t most = INT64_MAX;
	struct yoke_scaler_state x = { .size = sizeof x };
	const char *recent;
	int64_t steps, skipped;
	if (!o || !s)
		return 0;
	if (yk_json_real(o, what, "scale", &x.scale) < 0 || yk_json_int(o, what, "clean", 0, most, &x.clean) < 0 ||
	    yk_json_int(o, what, "left", 0, most, &x.left) < 0 || yk_json_int(o, what, "steps", 0, most, &steps) < 0 ||
	    yk_json_int(o, what, "skipped", 0, steps, &skipped) < 0 || yk_json_str(o, what, "recent", &recent) < 0)
		return YOKE_EFORMAT;
	if (strlen(recent) != 32 || strspn(recent, "0123456789abcdef") != 32)
		return yk_fail(YOKE_EFORMAT, "%s: '%.40s' is no record of steps", what, recent);
	char half[17];
	snprintf(half, sizeof half, "%.16s", recent);
	x.recent[1] = strtoull(half, NULL, 16);
	x.recent[0] = strtoull(recent + 16, NULL, 16);
	x.steps = (uint64_t)steps;
	x.skipped = (uint64_t)skipped;
	return yoke_scaler_load(s, &x);
}
