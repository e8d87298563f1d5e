// SPDX-License-Identifier: Apache-2.0
// Validation: the loss of a model over windows of text.
#ifndef YK_VALIDATE_H
#define YK_VALIDATE_H

#include <stdbool.h>

#include "nn/windows.h"
#include "data/text.h"
#include "parallel/zero.h"
#include "yoke-dist.h"

// Validation windows that cannot be read (on_error=): the next good window of the data is used in
// place of each. All ranks of a validation have the same limit, and get the same number.
struct yk_skips {
	int64_t max; // per validation; -1: no limit
	// called for each in the order of the windows, after the validation; may be NULL
	void (*report)(void *arg, const struct yoke_data_error *);
	void *arg;
	int64_t count; // result: windows that were skipped
};
// Converts a value of on_error=; false: the first unreadable window is an error.
bool yk_skips_of(const char *on_error, struct yk_skips *to);
// Reads window k of `windows` ones spread evenly over the validation data. skips: NULL: an error is
// returned; otherwise an unreadable window is counted.
int yk_validation_read(const struct yk_data *, int64_t k, int64_t windows, int32_t *to,
		       struct yk_skips *skips);

// The validation loss of `rows` windows of `width` numbers as a number; NaN except on the last
// stage. gathered: NULL: parameters are complete.
int yk_windows_judge(const struct yk_network *, const struct yk_gathered *, int64_t rows,
		     int64_t width, const int32_t *windows, double *to);
// Called before each batch with the numbers of completed and total windows; false ends the
// validation.
typedef bool yk_validate_fn(void *arg, int64_t done, int64_t windows);
// Mean loss over the targets of validation windows, `batch` at a time: over all windows, or over
// `max` windows spread evenly over the data. The windows are distributed among the ranks of a group
// (NULL: this rank only), and all pipeline stages receive the result. NaN if there are no windows
// or `go_on` (NULL: always) ended it; with gathered parameters all ranks must decide alike. skips:
// NULL: the first window that cannot be read ends it.
int yk_model_validate(const struct yk_network *, const struct yk_data *, yoke_group *,
		      const struct yk_gathered *, int64_t batch, int64_t max,
		      struct yk_skips *skips, yk_validate_fn *go_on, void *arg, double *loss);
// Extends an ENOMEM error of that call by the largest batch that fits, if the device's memory was
// insufficient.
int yk_validate_advise(const struct yk_network *, const struct yk_data *, int64_t batch);

#endif
