// SPDX-License-Identifier: Apache-2.0
// data_errors.jsonl in a run's folder: a line for each sample that was passed over, with step, epoch, source, sample,
// error, why.  What cannot be written is one warning, and the run goes on.
#ifndef YK_DATA_ERRORS_H
#define YK_DATA_ERRORS_H

#include <stdbool.h>
#include <stddef.h>

#include "yoke-data.h"

struct yk_data_errors {
	int file;     // -1: there was none yet
	char *path;   // NULL: not open
	bool broken;  // no line was written from then on
	struct yk_error_count { // samples that this run passed over, by error
		int code;
		uint64_t n;
	} count[16];
};

// Lines of later steps, left by a run that ended before it saved, are cut off.  ENOMEM, EIO.
int yk_data_errors_open(struct yk_data_errors *, const char *folder, int64_t step);
void yk_data_errors_add(struct yk_data_errors *, int64_t step, const struct yoke_data_error *);
// "3 YOKE_EIO, 1 YOKE_EFORMAT"; "" for none.
void yk_data_errors_text(const struct yk_data_errors *, char *to, size_t room);
void yk_data_errors_close(struct yk_data_errors *); // may be all zeros

#endif
