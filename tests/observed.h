// SPDX-License-Identifier: Apache-2.0
// Common set-up for tests of profiles on OpenCL devices.
#ifndef OBSERVED_H
#define OBSERVED_H

#include "tap.h"
#include "yoke-observe.h"

// Contexts use OpenCL from here on, with timed queues; false: there is none, and `what` is skipped.
static inline bool observed_opencl(const char *what)
{
	const bool built = getenv("YOKE_TEST_OPENCL");
	yoke_setting_set("backend", "opencl");
	yoke_profile_prepare(); // timing is enabled on request
	struct yoke_context *ctx = built ? yoke_context_new("opencl") : NULL;
	if (!ctx)
		skip(what, built ? yoke_error() : "OpenCL is not built");
	yoke_error_clear();
	yoke_context_free(ctx);
	return ctx;
}

#endif
