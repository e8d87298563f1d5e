// SPDX-License-Identifier: Apache-2.0
// Quantized blocks of GGUF files, converted to f32.
#ifndef YK_GGUF_BLOCKS_H
#define YK_GGUF_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>

#include "formats/gguf.h"

// Converts n elements, a multiple of the format's block, from the blocks at `from`, which may have
// any alignment.  false: weights of this format cannot be converted.
bool yk_gguf_to_f32(enum yk_gguf_format, const void *from, size_t n, float *to);

#endif
