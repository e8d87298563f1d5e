// SPDX-License-Identifier: Apache-2.0
// Quantized weights: matrices stored in the block formats of GGUF files.
//
// A quantized matrix [N,K] is a u8 tensor [N, yoke_quant_bytes(format, K)], a number of K and a
// format.  Its rows are those of a GGUF file, so a mapped file can be the operand.
#ifndef YOKE_QUANT_H
#define YOKE_QUANT_H

#include <yoke.h>

#ifdef __cplusplus
extern "C" {
#endif

// Formats, with GGUF's numbers.  Blocks have 32 elements, those of the _K formats 256.
enum yoke_quant {
	YOKE_QUANT_F32 = 0,
	YOKE_QUANT_F16 = 1,
	YOKE_QUANT_Q4_0 = 2,
	YOKE_QUANT_Q4_1 = 3,
	YOKE_QUANT_Q5_0 = 6,
	YOKE_QUANT_Q5_1 = 7,
	YOKE_QUANT_Q8_0 = 8,
	YOKE_QUANT_Q4_K = 12,
	YOKE_QUANT_Q5_K = 13,
	YOKE_QUANT_Q6_K = 14,
	YOKE_QUANT_BF16 = 30
};

// Bytes of a row of k elements; 0 for an unknown format, or if k is not a positive multiple of the
// format's block.
YOKE_API int64_t yoke_quant_bytes(int format, int64_t k);

// May be or'ed to the format of yoke_qlinear.
#define YOKE_QUANT_BY_ROW 0x100

// In the following three functions, w is u8 [N, yoke_quant_bytes(format, k)] in any format but F32.
// ESHAPE if its rows have another length or k is not a positive multiple of the block, EINVAL for
// other formats, EDTYPE for other dtypes.  w has no gradient.  On a big-endian processor blocks are
// as in files, which are little-endian; F32, F16 and BF16 are in the processor's order.

// The numbers of w, [N,k], in a dtype: f32, f16 or bf16.  They are computed in f32 and rounded
// once.
YOKE_API yoke_tensor *yoke_dequant(yoke_tensor *w, int format, int64_t k, int dtype);

// x [..,k] times the transpose of w: [..,N], as yoke_linear without bias.  x is f32, f16 or bf16,
// and so is the result; sums are f32.  On GPUs where a vendor's library multiplies 64 rows or more
// of 16-bit x, w is first rounded to x's dtype, in a copy that exists during the product; otherwise
// the weights are those of the format.  The gradient by x is g times the numbers of w in g's dtype.
// format may be or'ed with YOKE_QUANT_BY_ROW: a row of the result has the same bits whatever the
// other rows and their number are, as with YOKE_BY_ROW; on the CPU this costs nothing.
YOKE_API yoke_tensor *yoke_qlinear(yoke_tensor *x, yoke_tensor *w, int format);

// Rows of w, as yoke_embedding: ids (i32 or i64) [I..] -> [I..,k] in a dtype: f32, f16 or bf16.
// ERANGE, reported when it is evaluated, for an id outside of 0 .. N - 1.
YOKE_API yoke_tensor *yoke_qgather(yoke_tensor *w, yoke_tensor *ids, int format, int64_t k,
				   int dtype);

// Quantizes rows x k numbers on the host into rows x yoke_quant_bytes(format, k) bytes at `to`.
// The formats are F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0; the bytes equal those that the
// Python package gguf writes.  EINVAL for other formats, ESHAPE if k is not a positive multiple of
// the block, ERANGE if a number is infinite or NaN and the format has blocks; nothing is written
// then.
YOKE_API int yoke_quantize(int format, int64_t rows, int64_t k, const float *from, void *to);

#ifdef __cplusplus
}
#endif

#endif
