// SPDX-License-Identifier: Apache-2.0
// Writes data_errors.jsonl in the run's directory: one line per skipped sample with step, epoch,
// source, sample, error, why. If it cannot be written, there is one warning and the run continues.
#ifndef YK_DATA_ERRORS_H
#define YK_DATA_ERRORS_H

#include <stdbool.h>
#include <stddef.h>

#include "yoke-data.h"

struct yk_data_errors {
	int file;     // -1: not yet created
	char *path;   // NULL: not open
	bool broken;  // writing failed; no further lines are written
	struct yk_error_count { // number of samples this run skipped, per error
		int code;
		uint64_t n;
	} count[16];
};

// Removes lines of later steps, which a run left that ended before it saved. ENOMEM, EIO.
int yk_data_errors_open(struct yk_data_errors *, const char *folder, int64_t step);
void yk_data_errors_add(struct yk_data_errors *, int64_t step, const struct yoke_data_error *);
uint64_t yk_data_errors_count(const struct yk_data_errors *);
// "3 YOKE_EIO, 1 YOKE_EFORMAT"; "" for none.
void yk_data_errors_text(const struct yk_data_errors *, char *to, size_t room);
void yk_data_errors_close(struct yk_data_errors *); // may be zero-initialized

#endif
