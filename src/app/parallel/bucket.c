// SPDX-License-Identifier: Apache-2.0
// Divides gradients into buckets and casts them to the dtype in which ranks exchange them.
#include "config.h"

#include "parallel/bucket.h"

#include <string.h>

#include "base/param.h"

// bytes; the others have 25 MiB, as in PyTorch's DDP (Li et al. 2020)
enum { FIRST_BUCKET = 1 << 20 };
YK_PARAM(bucket_setting, "dist.bucket", YK_BYTES, "25M",
	 "bytes of gradients that go between ranks together", .min = 1, .max = INT64_MAX);

size_t yk_bucket_bytes(bool first)
{
	const size_t max = (size_t)yk_param_int(&bucket_setting);
	return first && max > FIRST_BUCKET ? FIRST_BUCKET : max;
}

int yk_bucket_first(const struct yk_parameters *ps, int end)
{
	// buckets begin with the last layers
	const size_t max_bytes = yk_bucket_bytes(end == ps->count);
	size_t bytes = 0;
	do
		bytes += yoke_bytes(ps->var[--end]);
	while (bytes < max_bytes && end > 0 &&
	       yoke_dtype(ps->var[end - 1]) == yoke_dtype(ps->var[end]));
	return end;
}

yoke_tensor *yk_bucket_cast(const struct yk_config *c, yoke_tensor *gradient)
{
	const char *wire = yk_config_str(c, YK_KEY_wire);
	return strcmp(wire, "fp32") && yoke_dtype(gradient) == yoke_f32 ?
		       yoke_cast(gradient, strcmp(wire, "fp16") ? yoke_bf16 : yoke_f16) :
		       gradient;
}
