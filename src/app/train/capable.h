// SPDX-License-Identifier: Apache-2.0
// Capability: how a device computes an op in a dtype, found by running it.
#ifndef YK_CAPABLE_H
#define YK_CAPABLE_H

#include "device/device.h"

enum yk_capable {
	YK_NO_SUCH,  // the op is not of that dtype
	YK_INCAPABLE, // the device has it not, or wrongly: the CPU runs it
	YK_EMULATED, // by conversion to f32 where products are those of a half, or taken apart into other ops
	YK_NATIVE
};

// Of an op of the ABI.  Two cases are run, which on some devices means that their kernels are compiled.
enum yk_capable yk_capable(struct yk_device *, int code, int dtype);
const char *yk_capable_name(enum yk_capable); // "native"; "-" where there is no such op

#endif
