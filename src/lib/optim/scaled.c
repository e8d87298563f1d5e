// SPDX-License-Identifier: Apache-2.0
// Serializes the state of dynamic loss scalers as JSON.
#include "config.h"

#include "optim/scaled.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

json_t *yk_scaler_describe(const yoke_scaler *s)
{
	struct yoke_scaler_state x = { .size = sizeof x };
	char recent[33];
	if (!s || yoke_scaler_save(s, &x) < 0)
		return NULL;
	snprintf(recent, sizeof recent, "%016" PRIx64 "%016" PRIx64, x.recent[1], x.recent[0]);
	return json_pack("{s:f, s:I, s:I, s:I, s:I, s:s}", "scale", x.scale, "clean",
			 (json_int_t)x.clean, "left", (json_int_t)x.left, "steps",
			 (json_int_t)x.steps, "skipped", (json_int_t)x.skipped, "recent", recent);
}

int yk_scaler_parse(const json_t *o, const char *what, yoke_scaler *s)
{
	const int64_t max = INT64_MAX;
	struct yoke_scaler_state x = { .size = sizeof x };
	const char *recent;
	int64_t steps, skipped;
	if (!o || !s)
		return 0;
	if (yk_json_real(o, what, "scale", &x.scale) < 0 ||
	    yk_json_int(o, what, "clean", 0, max, &x.clean) < 0 ||
	    yk_json_int(o, what, "left", 0, max, &x.left) < 0 ||
	    yk_json_int(o, what, "steps", 0, max, &steps) < 0 ||
	    yk_json_int(o, what, "skipped", 0, steps, &skipped) < 0 ||
	    yk_json_str(o, what, "recent", &recent) < 0)
		return YOKE_EFORMAT;
	if (strlen(recent) != 32 || strspn(recent, "0123456789abcdef") != 32)
		return yk_fail(YOKE_EFORMAT, "%s: '%.40s' is not a record of steps", what, recent);
	char half[17];
	snprintf(half, sizeof half, "%.16s", recent);
	x.recent[1] = strtoull(half, NULL, 16);
	x.recent[0] = strtoull(recent + 16, NULL, 16);
	x.steps = (uint64_t)steps;
	x.skipped = (uint64_t)skipped;
	return yoke_scaler_load(s, &x);
}
