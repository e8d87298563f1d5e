// SPDX-License-Identifier: Apache-2.0
// The lowest validation loss of a run: which step had it, and how many validations have passed
// since (stop_after=).  keep_best=1 also keeps that step's checkpoint in the directory `best` of
// the run's. Checkpoints hold this state, so that a resumed run ends after the same validation.
#ifndef YK_BEST_H
#define YK_BEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct yk_best {
	int64_t step;  // -1: none yet
	double loss;   // of that step
	int64_t since; // validations since then, none of which was lower
	int64_t last;  // the step validated last, -1: none
	uint64_t data; // fingerprint of the data; losses of other data do not compare
};
#define YK_BEST_NONE \
	(struct yk_best) \
	{ \
		.step = -1, .last = -1 \
	}

// Counts a validation; NaN is never lower.  Returns whether its loss is the lowest.
bool yk_best_count(struct yk_best *, int64_t step, double loss, uint64_t data);
// For a manifest; NULL: none yet, or ENOMEM.
json_t *yk_best_json(const struct yk_best *);
// Parses that; NULL gives YK_BEST_NONE.  EFORMAT.
int yk_best_parse(const json_t *, const char *folder, struct yk_best *to);
// "out/best", for the caller to free; NULL: ENOMEM.
char *yk_best_folder(const char *out);
// Reads the state from the checkpoint in out/best; YK_BEST_NONE if there is none.
int yk_best_kept(const char *out, struct yk_best *to);

#endif
