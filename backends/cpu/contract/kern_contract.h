// SPDX-License-Identifier: Apache-2.0
// A contraction in normal form, and the kernels that take it; for kern_contract*.c.
#ifndef YK_KERN_CONTRACT_H
#define YK_KERN_CONTRACT_H

#include "../cpu.h"
#ifdef YK_ISA
#include "../map/kern_map.h"
#endif

struct yk_epilogue;

// How a contraction is cut, for kern_contract_gemm.h.
struct yk_cut {
	int mode;           // enum mode there
	int64_t mb, nb, kc; // a piece's block of c, the length of its panels
	int64_t ns, ks;     // SHARED: columns and depth of b packed at a time
	bool share_a;       // SHARED: the team packs a as well
};

// b of a convolution: windows of a copy of its operand that has zeros around and, along the last axis, what a stride
// picks side by side, so that neighbours among positions are neighbours there.  Its element of a tap (of a
// channel) and a position (of a row of an image) is b[at[tap] + image image_step + row row_step + x], and b's strides
// in yk_gemm are 0.  Behind the copy one may read as many elements as a tile is wide.
struct yk_windows {
	const int64_t *at;
	int64_t width, height;        // positions of a row, rows of an image
	int64_t row_step, image_step;
	bool along;                   // b is (positions, taps); else (taps, positions), and
	int64_t c_image, c_row, c_x;  // where a position is in a row of c, whose cn is 0
	int64_t a_run, a_image;       // 0, or: columns of a lie in runs of so many, whose begins are so far apart
	const int64_t *a_at;          // NULL, or where each column of a begins, whose ak is 0
};

// c[i,j] = sum over l of a[i,l] * b[l,j], for each index of the batch; strides in elements.
struct yk_gemm {
	int64_t m, n, k;
	int64_t am, ak, bk, bn, cm, cn;
	int64_t batches; // the product of dims
	int rank;
	int64_t dims[YOKE_MAX_RANK], sa[YOKE_MAX_RANK], sb[YOKE_MAX_RANK],
		sc[YOKE_MAX_RANK];
	int dtype, to;       // of the operands, of the result
	size_t esize, csize; // bytes of an element of them
	bool by_row;         // the sum of an element goes in one order, whatever m and batches are
	bool swapped; // a is the op's second operand, b its first
	struct yk_cut cut;
	const char *a, *b; // these four are set to run
	char *c, *workspace;
	// With an epilogue c is nowhere: its strides are those of a row major result, whose
	// elements the map's outputs have in common.
	bool mapped;
	const struct yk_epilogue *map;
	const struct yk_windows *win; // b is windows; NULL: a matrix
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

// ---- gemm.c, compiled once: a library cuts a whole contraction, with threads of its own ----

enum yk_gemm_impl { YK_GEMM_OWN, YK_GEMM_CBLAS, YK_GEMM_ONEDNN };

// Who is to do it; the library of the setting, where that takes it.
enum yk_gemm_impl yk_gemm_wanted(const struct yk_gemm *);
int yk_gemm_library(const struct yk_gemm *, enum yk_gemm_impl);

// Is that a dtype of products of the operands'?
static inline bool yk_gemm_gives(int operands, int result)
{
	return result == operands || (result == yoke_f32 && (operands == yoke_f16 || operands == yoke_bf16)) ||
	       (result == yoke_i32 && (operands == yoke_i8 || operands == yoke_u8));
}

#ifdef YK_ISA
// ---- epilogues (kern_contract_map.c) ----

struct yk_epilogue {
	struct yk_prog prog;
	int64_t cols;       // of the result
	int dtype;          // of the product
	yk_strip_fn *round; // f16, bf16: the product's rounding; else NULL
};

// Is op, whose in[0] and in[1] fit, one whose map runs on tiles?
bool ISA(yk_epilogue_can)(const struct yoke_op *op);
// The product, as the plan would have put it between the two: row major.
struct yoke_view ISA(yk_epilogue_product)(const struct yoke_op *op);
// e->prog.over is as for yk_prog_init; memory: yk_prog_bytes.
void ISA(yk_epilogue_init)(struct yk_epilogue *, void *memory, const struct yoke_op *op);
// Sets where operands are, those of the map; memory as before.
void ISA(yk_epilogue_bind)(struct yk_epilogue *, void *memory, const struct yoke_op *op);
// What a thread needs: memory aligned to 64, made ready once a piece.
size_t ISA(yk_epilogue_memory)(const struct yk_epilogue *);
void ISA(yk_epilogue_begin)(const struct yk_epilogue *, void *memory);
// tile (rows, cols): sums of f32, or f64 where that is the product's dtype, rows ld apart;
// overwritten.  It begins at element `first` of the result, counted row major.
void ISA(yk_epilogue_run)(const struct yk_epilogue *, void *memory, void *tile,
			  int64_t ld, int64_t first, int64_t rows, int64_t cols);

// The packed kernels: f32, with f16 and bf16 by way of it; f64.  Cutting, of one with elements,
// returns the workspace in bytes.
uint64_t ISA(yk_gemm_f32_cut)(struct yk_gemm *);
int ISA(yk_gemm_f32)(const struct yk_gemm *);
uint64_t ISA(yk_gemm_f64_cut)(struct yk_gemm *);
int ISA(yk_gemm_f64)(const struct yk_gemm *);
// Their innermost loop on operands in place, both with rows side by side: c (rows, n) = or (add) += over k the products
// of a[l * lda + i] and b[l * ldb + j]; rows at most what yk_gemm_f32_rows says, n whole vectors.
// Meanwhile `bytes` of memory from `next` on, which is read next, are fetched to the second cache.
extern const int ISA(yk_gemm_f32_rows), ISA(yk_gemm_f64_rows);
void ISA(yk_gemm_f32_across)(int rows, int64_t n, int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb, float *c,
			     int64_t ldc, bool add, const char *next, int64_t bytes);
void ISA(yk_gemm_f64_across)(int rows, int64_t n, int64_t k, const double *a, int64_t lda, const double *b, int64_t ldb, double *c,
			     int64_t ldc, bool add, const char *next, int64_t bytes);
// Integers: sums in i64, plain loops.
int ISA(yk_gemm_int)(const struct yk_gemm *);
#ifdef YK_LEVEL
// bf16 by instructions for it.
uint64_t LEVEL(yk_gemm_bf16_cut)(struct yk_gemm *);
int LEVEL(yk_gemm_bf16)(const struct yk_gemm *);
#endif
#endif

#endif
