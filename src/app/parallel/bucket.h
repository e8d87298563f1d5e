// SPDX-License-Identifier: Apache-2.0
// Buckets: gradients that ranks exchange in one message. They begin with the last layers, whose
// gradients are computed first.
#ifndef YK_BUCKET_H
#define YK_BUCKET_H

#include <stdbool.h>
#include <stddef.h>

#include "config/conf.h"
#include "nn/params.h"

// Max bytes of a bucket; the first bucket to be reduced is smaller, so that communication starts
// early.
size_t yk_bucket_bytes(bool first);
// The first parameter of the bucket that ends before `end`; all in it have the same dtype.
int yk_bucket_first(const struct yk_parameters *, int end);
// The gradient in the dtype in which it is sent (wire=).
yoke_tensor *yk_bucket_cast(const struct yk_config *, yoke_tensor *gradient);

#endif
