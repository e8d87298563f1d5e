// SPDX-License-Identifier: Apache-2.0
// Counts validations since the lowest loss.
#include "config.h"

#include "train/best.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/json.h"
#include "formats/checkpoint.h"

bool yk_best_count(struct yk_best *b, int64_t step, double loss, uint64_t data)
{
	if (b->data != data)
		*b = YK_BEST_NONE;
	const bool lowest = b->step < 0 ? isfinite(loss) : loss < b->loss;
	if (lowest)
		*b = (struct yk_best){ .step = step, .loss = loss };
	else
		b->since++;
	b->last = step;
	b->data = data;
	return lowest;
}

json_t *yk_best_json(const struct yk_best *b)
{
	char hex[17];
	if (b->step < 0 && b->since == 0)
		return NULL;
	snprintf(hex, sizeof hex, "%016" PRIx64, b->data);
	return json_pack("{s:I, s:f, s:I, s:I, s:s}", "step", (json_int_t)b->step, "val_loss",
			 b->step < 0 ? 0 : b->loss, "since", (json_int_t)b->since, "last",
			 (json_int_t)b->last, "data", hex);
}

int yk_best_parse(const json_t *o, const char *folder, struct yk_best *to)
{
	struct yk_best b = YK_BEST_NONE;
	const char *hex;
	*to = b;
	if (!o)
		return 0;
	const json_t *loss = json_object_get(o, "val_loss");
	int e = json_is_number(loss) ?
			0 :
			yk_fail(YOKE_EFORMAT, "%s: the lowest validation loss is no number",
				folder);
	if (e == 0)
		e = yk_json_int(o, folder, "step", -1, INT64_MAX, &b.step);
	if (e == 0)
		e = yk_json_int(o, folder, "since", 0, INT64_MAX, &b.since);
	if (e == 0 && json_object_get(o, "last")) // older checkpoints have none
		e = yk_json_int(o, folder, "last", -1, INT64_MAX, &b.last);
	if (e == 0)
		e = yk_json_str(o, folder, "data", &hex);
	if (e < 0)
		return e;
	b.loss = json_number_value(loss);
	b.data = strtoull(hex, NULL, 16);
	*to = b;
	return 0;
}

char *yk_best_folder(const char *out)
{
	char *path;
	if (asprintf(&path, "%s/best", out) >= 0)
		return path;
	yk_fail(YOKE_ENOMEM, "%s: out of memory for a path", out);
	return NULL;
}

int yk_best_kept(const char *out, struct yk_best *to)
{
	struct yk_checkpoint ck;
	char *folder = yk_best_folder(out);
	*to = YK_BEST_NONE;
	if (!folder)
		return yoke_error_code();
	int e = 0;
	if (yk_checkpoint_exists(folder) && (e = yk_checkpoint_open(folder, &ck)) == 0) {
		e = yk_best_parse(ck.best, folder, to);
		yk_checkpoint_fini(&ck);
	}
	free(folder);
	return e;
}
