// SPDX-License-Identifier: Apache-2.0
// Peak rates of a device, measured in this process; kernels' rates are compared with them (roofline
// model).
#ifndef YK_ROOF_H
#define YK_ROOF_H

#include <stdbool.h>

#include "device/device.h"
#include "yoke-observe.h"

// Peak of `threads` threads of this machine, measured now.  flops: multiply-adds in registers, in
// FLOP/s.  copy: between blocks far larger than the caches, bytes read plus written per second.  0:
// could not be measured.
double yk_limit_flops(int threads, bool f64);
double yk_limit_copy(int threads);

// Peak rates of a device, measured at the first call and cached. Sources: its backend's kernels;
// for processors the loops above; otherwise (`own`) the best time of a 2048 x 2048 x 2048 product
// in that dtype and of a 256 MiB copy. A dtype that the device computes in f32 has the limit of
// f32. 0: could not be measured.
struct yk_roof {
	double flops[YOKE_MAX_DTYPES], copy, launch_ns, wait_ns;
	bool queried[YOKE_MAX_DTYPES], own[YOKE_MAX_DTYPES], own_copy;
};
const struct yk_roof *yk_roof_of(struct yk_device *, int dtype); // NULL: no memory

bool yk_roof_enabled(void); // whether the setting profile.limits requests it

// Which limit bounds a row, and the fraction reached: rate over min(P, W flops / bytes).  seconds:
// average per call.
struct yk_bounded {
	enum yoke_bound bound;
	double share; // NaN: unknown
};
struct yk_bounded yk_roofline(const struct yk_roof *, int dtype, double flops, double bytes,
			      double seconds);

#endif
