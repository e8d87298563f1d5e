// SPDX-License-Identifier: Apache-2.0
// Contractions in normal form, and the kernels that compute them; for kern_contract*.c.
#ifndef YK_KERN_CONTRACT_H
#define YK_KERN_CONTRACT_H

#include "../cpu.h"
#ifdef YK_ISA
#include "../map/kern_map.h"
#endif

struct yk_epilogue;

// Blocking of a contraction, see kern_contract_blocking.h.
struct yk_blocking {
	int mode;           // enum mode there
	int64_t mb, nb, kc; // a work item's block of c; the length of its panels along k
	int64_t ns, ks;     // SHARED: columns and depth of b packed at a time
	bool share_a;       // the team packs a
	int64_t entries;    // blocks per work item; above 1 a block is a whole matrix
};

// Operand b of a convolution: windows into a copy of the image that is zero-padded and, for
// strides, deinterleaved along the last axis, so that neighbouring positions are neighbours in
// memory. The element for a tap (of a channel) and a position (x in a row of a plane of an image)
// is b[at[tap] + image * image_step + plane * plane_step + row * row_step + x]; b's strides in
// yk_gemm are 0.
struct yk_windows {
	const int64_t *at;
	int64_t width, height, depth; // positions per row, rows per plane, planes per image
	int64_t row_step, plane_step, image_step;
	bool padded;                  // b is a copy with padding, so that vectors may exceed it
	bool along;                   // b is (positions, taps); otherwise (taps, positions), and
	int64_t c_image, c_plane, c_row, c_x; // strides of a position in c, whose cn is 0
	int64_t a_run, a_image;       // nonzero: columns of a come in runs of a_run, a_image apart
	// NULL, or where each column of a begins; then am is 1 and ak 0
	const int64_t *a_at;
};

// c[i,j] = sum over l of a[i,l] * b[l,j] for each batch index; strides in elements.
struct yk_gemm {
	int64_t m, n, k;
	int64_t am, ak, bk, bn, cm, cn;
	int64_t batches; // the product of dims
	int rank;
	int64_t dims[YOKE_MAX_RANK], sa[YOKE_MAX_RANK], sb[YOKE_MAX_RANK],
		sc[YOKE_MAX_RANK];
	int dtype, to;       // dtype of the operands, of the result
	size_t esize, csize; // bytes per element of each
	bool by_row;         // each element is summed in one order, whatever m and batches are
	bool swapped; // a is the op's second operand, b its first
	struct yk_blocking blocking;
	const char *a, *b; // these four are set for each run
	char *c, *workspace;
	// With an epilogue, c is not stored: its strides describe a row-major result, and the map's
	// outputs use the same element numbers.
	bool mapped;
	const struct yk_epilogue *map;
	const struct yk_windows *win; // b is a set of windows; NULL: a matrix
};

// Offsets in elements of the batch's matrices.
static inline void yk_gemm_batch(const struct yk_gemm *g, int64_t batch, int64_t *a,
				 int64_t *b, int64_t *c)
{
	*a = *b = *c = 0;
	for (int i = g->rank - 1; i >= 0; i--) {
		int64_t at = batch % g->dims[i];
		batch /= g->dims[i];
		*a += at * g->sa[i];
		*b += at * g->sb[i];
		*c += at * g->sc[i];
	}
}

// ---- gemm.c, compiled once: an external library computes a contraction with its own threads ----

enum yk_gemm_impl { YK_GEMM_OWN, YK_GEMM_CBLAS, YK_GEMM_ONEDNN };

// The implementation to use: the library that the setting names, if it supports the op.
enum yk_gemm_impl yk_gemm_requested(const struct yk_gemm *);
int yk_gemm_library(const struct yk_gemm *, enum yk_gemm_impl);

// True if products of such operands may have that result dtype.
static inline bool yk_gemm_can_return(int operands, int result)
{
	return result == operands ||
	       (result == yoke_f32 && (operands == yoke_f16 || operands == yoke_bf16)) ||
	       (result == yoke_i32 && (operands == yoke_i8 || operands == yoke_u8));
}

// Prefetches the cache lines of `bytes` bytes to L2. GCC removes calls of functions that only
// prefetch, unless an asm keeps them.
static inline void yk_prefetch_lines(const char *from, int64_t bytes)
{
	enum { LINE = 64 };
	const int64_t before = (int64_t)((uintptr_t)from % LINE);

	for (int64_t at = -before; at < bytes; at += LINE)
		__builtin_prefetch(from + at, 0, 2);
	__asm__ volatile("");
}

#ifdef YK_ISA
// ---- epilogues (kern_contract_map.c) ----

struct yk_epilogue {
	struct yk_prog prog;
	int64_t cols;       // columns of the result
	int dtype;          // dtype of the product
	yk_strip_fn *round; // rounds the product to f16 or bf16; NULL for other dtypes
};

// True if op, whose in[0] and in[1] are supported, has a map that can run on tiles.
bool ISA(yk_epilogue_can)(const struct yoke_op *op);
// The view of the product as the planner would have stored it between the two ops: row-major.
struct yoke_view ISA(yk_epilogue_product)(const struct yoke_op *op);
// e->prog.over is as for yk_prog_init; memory: yk_prog_bytes bytes.
void ISA(yk_epilogue_init)(struct yk_epilogue *, void *memory, const struct yoke_op *op);
// Sets the addresses of the map's operands; memory as before.
void ISA(yk_epilogue_bind)(struct yk_epilogue *, void *memory, const struct yoke_op *op);
// Scratch of one thread, aligned to 64; yk_epilogue_begin initializes it once per work item.
size_t ISA(yk_epilogue_memory)(const struct yk_epilogue *);
void ISA(yk_epilogue_begin)(const struct yk_epilogue *, void *memory);
// Prefetches the map's operands and results for a tile to L2.
void ISA(yk_epilogue_prefetch)(const struct yk_epilogue *, int64_t first, int64_t rows,
			       int64_t cols);
// tile (rows, cols): sums in f32, or f64 if that is the product's dtype, rows ld apart;
// overwritten. It starts at element `first` of the result, in row-major order.
void ISA(yk_epilogue_run)(const struct yk_epilogue *, void *memory, void *tile,
			  int64_t ld, int64_t first, int64_t rows, int64_t cols);

// The packed kernels: f32 (also f16 and bf16, converted) and f64. *_block chooses the blocking of a
// contraction with elements and returns the workspace in bytes.
uint64_t ISA(yk_gemm_f32_block)(struct yk_gemm *);
int ISA(yk_gemm_f32)(const struct yk_gemm *);
uint64_t ISA(yk_gemm_f64_block)(struct yk_gemm *);
int ISA(yk_gemm_f64)(const struct yk_gemm *);
// Their innermost loop on operands in place, whose rows are contiguous: c (rows, n) = or (add) +=
// sum over l < k of a[l * lda + i] * b[l * ldb + j]. rows <= yk_gemm_f32_rows; n is a multiple of
// the vector length. Meanwhile prefetches `bytes` bytes from `next`, which will be read next, into
// the L2 cache.
extern const int ISA(yk_gemm_f32_rows), ISA(yk_gemm_f64_rows);
void ISA(yk_gemm_f32_across)(int rows, int64_t n, int64_t k, const float *a, int64_t lda,
			     const float *b, int64_t ldb, float *c, int64_t ldc, bool add,
			     const char *next, int64_t bytes);
void ISA(yk_gemm_f64_across)(int rows, int64_t n, int64_t k, const double *a, int64_t lda,
			     const double *b, int64_t ldb, double *c, int64_t ldc, bool add,
			     const char *next, int64_t bytes);
// The same loop with rows of a contiguous along k and b in packed panels: c (m, n) = or (add) +=
// a (m, k) times b; n is a multiple of the vector length.
void ISA(yk_gemm_f32_panels)(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
			     float *c, int64_t ldc, bool add);
// Integers: plain loops with sums in i64.
int ISA(yk_gemm_int)(const struct yk_gemm *);
#ifdef YK_LEVEL
// bf16 with bf16 instructions.
uint64_t LEVEL(yk_gemm_bf16_block)(struct yk_gemm *);
int LEVEL(yk_gemm_bf16)(const struct yk_gemm *);
#endif
#endif

#endif
