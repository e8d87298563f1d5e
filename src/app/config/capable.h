// SPDX-License-Identifier: Apache-2.0
// Capability of a device: whether it computes an op in a dtype natively, determined by running the
// op.
#ifndef YK_CAPABLE_H
#define YK_CAPABLE_H

#include "device/device.h"

enum yk_capable {
	YK_NO_SUCH,  // the op does not exist for that dtype
	YK_INCAPABLE, // missing or wrong on the device: the CPU runs it
	// via conversion to f32 (half-precision products), or decomposed into other ops
	YK_EMULATED,
	YK_NATIVE
};

// For an op of the ABI. Runs two cases, which compiles their kernels on some devices.
enum yk_capable yk_capable(struct yk_device *, int code, int dtype);
const char *yk_capable_name(enum yk_capable); // "native" etc.; "-" for YK_NO_SUCH

#endif
