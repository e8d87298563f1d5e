// SPDX-License-Identifier: Apache-2.0
// What a device reaches at most, measured in this process: what rates of kernels are held against.
#ifndef YK_ROOF_H
#define YK_ROOF_H

#include <stdbool.h>

#include "device/device.h"
#include "yoke-observe.h"

// What `threads` threads of this machine reach, measured now: multiply-adds in registers, in FLOP/s; a copy
// between blocks far larger than caches, in bytes read and written a second.  0: could not be measured.
double yk_limit_flops(int threads, bool f64);
double yk_limit_copy(int threads);

// Of a device, measured at the first call and kept: by its backend's own kernels; of processors by the loops above;
// else, `own`, by the best of a product of 2048 x 2048 x 2048 in that dtype and a copy of 256 MiB.  A dtype that
// the device computes by way of f32 has the limit of f32.  What cannot be measured is 0.
struct yk_roof {
	double flops[YOKE_MAX_DTYPES], copy, launch_ns, wait_ns;
	bool asked[YOKE_MAX_DTYPES], own[YOKE_MAX_DTYPES], own_copy;
};
const struct yk_roof *yk_roof_of(struct yk_device *, int dtype); // NULL: no memory

bool yk_roof_wanted(void); // does the setting profile.limits ask for it?

// What bounds a row, and its share of that: rates over min(P, W flops / bytes).  seconds: of a call on average.
struct yk_bounded {
	enum yoke_bound bound;
	double share; // NaN: not known
};
struct yk_bounded yk_roofline(const struct yk_roof *, int dtype, double flops, double bytes, double seconds);

#endif
