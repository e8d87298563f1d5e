// SPDX-License-Identifier: Apache-2.0
// The two drivers' calls are near twins: what differs in names and types.
#ifndef STANDIN_VENDOR_H
#define STANDIN_VENDOR_H

#include "device.h"

#ifdef STANDIN_HIP
#include "../../plugins/rocm/types.h"
#include "../../plugins/rocm/calls.h"
#define STANDIN_CALLS YK_ROCM_CALLS
#define TWIN(cuda, hip) hip
#else
#include "../../plugins/cuda/types.h"
#include "../../plugins/cuda/calls.h"
#define STANDIN_CALLS YK_CUDA_CALLS
#define TWIN(cuda, hip) cuda
#endif

// Prototypes of the calls of one part, which definitions have to agree with: with STANDIN_OF_PART defined as
// `~, STANDIN_YES`.
#define STANDIN_YES(result, symbol, params) EXPORT result symbol params;
#define STANDIN_NO(result, symbol, params)
#define STANDIN_SECOND(a, b, ...) b
#define STANDIN_PICK(...) STANDIN_SECOND(__VA_ARGS__)
#define STANDIN_DECLARE(part, need, result, symbol, params) \
	STANDIN_PICK(STANDIN_OF_##part, STANDIN_NO, ~)(result, symbol, params)

#define TO_POINTER(p) ((void *)(uintptr_t)(p))

#endif
