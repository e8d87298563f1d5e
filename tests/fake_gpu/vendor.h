// SPDX-License-Identifier: Apache-2.0
// Names and types in which the calls of the two vendors' drivers differ.
#ifndef FAKE_VENDOR_H
#define FAKE_VENDOR_H

#include "device.h"

#ifdef FAKE_HIP
#include "../../plugins/rocm/types.h"
#include "../../plugins/rocm/calls.h"
#define FAKE_CALLS YK_ROCM_CALLS
#define TWIN(cuda, hip) hip
#else
#include "../../plugins/cuda/types.h"
#include "../../plugins/cuda/calls.h"
#define FAKE_CALLS YK_CUDA_CALLS
#define TWIN(cuda, hip) cuda
#endif

// Prototypes of the calls of one part, which definitions must match: with FAKE_OF_PART defined as
// `~, FAKE_YES`.
#define FAKE_YES(result, symbol, params) EXPORT result symbol params;
#define FAKE_NO(result, symbol, params)
#define FAKE_SECOND(a, b, ...) b
#define FAKE_PICK(...) FAKE_SECOND(__VA_ARGS__)
#define FAKE_DECLARE(part, need, result, symbol, params) \
	FAKE_PICK(FAKE_OF_##part, FAKE_NO, ~)(result, symbol, params)

#define TO_POINTER(p) ((void *)(uintptr_t)(p))

#endif
