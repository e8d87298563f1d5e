// SPDX-License-Identifier: Apache-2.0
// Loss of a model over windows of text.
#ifndef YK_VALIDATE_H
#define YK_VALIDATE_H

#include <stdbool.h>

#include "nn/model.h"
#include "data/text.h"
#include "yoke-dist.h"

// The loss that training makes small, of windows [B, T+1] i32: each token is predicted from those before it in
// its row.
yoke_tensor *yk_windows_loss(const struct yk_network *, yoke_tensor *windows, double dropout);
// The same without what a model adds to its loss for training alone, and without dropout.
yoke_tensor *yk_windows_likelihood(const struct yk_network *, yoke_tensor *windows);
// How the parameters of a network are there that ranks share out: gathered where a pass reads them, by what all of them record
// between the two.
struct yk_gathered {
	int (*enter)(void *arg);
	void (*leave)(void *arg);
	void *arg;
};
// That of so many rows as a number; on a stage that is not the last NaN.  gathered: NULL: parameters are there.
int yk_windows_judge(const struct yk_network *, const struct yk_gathered *, int64_t rows, const int32_t *windows, double *to);
// Asked before each batch, with the windows that are done, of how many: false ends it there.
typedef bool yk_validate_fn(void *arg, int64_t done, int64_t windows);
// Mean loss over validation windows of some data, `batch` at a time: all of them, or as many as
// `most`, spread evenly over the part; shared out among the ranks of a group, NULL: this one alone; all stages of a network have it.  NaN when there are none, or
// `go_on` (NULL: always) ended it, which is no rank's alone where parameters are gathered.
int yk_model_validate(const struct yk_network *, const struct yk_data *, yoke_group *, const struct yk_gathered *, int64_t batch,
		      int64_t most, yk_validate_fn *go_on, void *arg, double *loss);
// The thread's error, ENOMEM of that, with the largest batch that fits the device, if its memory was what
// is missing.
int yk_validate_advise(const struct yk_network *, const struct yk_data *, int64_t batch);

#endif
