// SPDX-License-Identifier: Apache-2.0
// The attributes of RESOLVENT and RESOLVENT_BACKWARD, in the order of the ABI.
#ifndef YK_RESOLVENT_H
#define YK_RESOLVENT_H

#include <string.h>

#include "graph/op.h"

enum yk_tier { YK_TIER_F64 = 1, YK_TIER_F32, YK_TIER_MIXED, YK_TIER_F16, YK_TIER_BF16 };

struct yk_resolved {
	int64_t side, tier, sweeps;
	double tolerance;
	int64_t gradient;
	double blend, adaptive;
};
enum { YK_RESOLVED = sizeof(struct yk_resolved) / sizeof(union yoke_attr) };

static inline struct yk_resolved yk_resolved(const union yoke_attr *attr)
{
	struct yk_resolved r;
	memcpy(&r, attr, sizeof r);
	return r;
}

static inline bool yk_tier_half(int64_t tier)
{
	return tier == YK_TIER_F16 || tier == YK_TIER_BF16;
}

#endif
