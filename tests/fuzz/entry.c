// SPDX-License-Identifier: Apache-2.0
// libFuzzer's entry point for the target that YK_FUZZ_TARGET names.
#include "config.h"

#include "fuzz/targets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	YK_FUZZ_TARGET(data, bytes);
	return 0;
}
