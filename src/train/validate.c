// SPDX-License-Identifier: Apache-2.0
// Loss of a model over windows of text.
#include "config.h"

#include "train/validate.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"

yoke_tensor *yk_windows_loss(const struct yk_gpt *gpt, yoke_tensor *ids, double dropout)
{
	int64_t width = yoke_dim(ids, 1);
	return yk_gpt_loss(gpt, yoke_slice(ids, 1, 0, width - 1, 1),
			   yoke_slice(ids, 1, 1, width, 1), dropout);
}

// Losses of all windows, weighted by rows: full batches share one plan, a last, smaller
// one has its own.
int yk_model_validate(const struct yk_gpt *gpt, const struct yk_data *data, int64_t batch,
		      double *to)
{
	int64_t windows = yk_data_valid_windows(data), width = gpt->shape.context + 1;
	if (windows == 0) {
		*to = NAN;
		return 0;
	}
	if (batch > windows)
		batch = windows;
	size_t bytes;
	int32_t *host = NULL;
	if (!__builtin_mul_overflow((size_t)batch, (size_t)width * sizeof *host, &bytes))
		host = malloc(bytes);
	if (!host)
		return yk_fail(YOKE_ENOMEM, "batch=%lld: no host memory for its windows; use a "
			       "smaller batch", (long long)batch);
	double sum = 0;
	int e = 0;
	for (int64_t first = 0; first < windows && e == 0; first += batch) {
		int64_t rows = yk_data_valid(data, first, batch, host);
		float loss = NAN;
		yoke_scope *s = yoke_scope_begin("validate");
		yoke_tensor *ids = yoke_from(yoke_i32, 2, (int64_t[]){ rows, width }, host);
		yoke_read(yk_windows_loss(gpt, ids, 0), &loss, sizeof loss);
		e = yoke_scope_end(s);
		sum += (double)loss * (double)rows;
	}
	free(host);
	if (e == 0)
		*to = sum / (double)windows;
	return e;
}
