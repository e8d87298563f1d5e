// SPDX-License-Identifier: Apache-2.0
// What the variants of contractions share: the problem in normal form, its kernels.
#ifndef YK_GPU_CONTRACT_H
#define YK_GPU_CONTRACT_H

#include "rows.h"

#define YK_GPU_BATCH 6

// The struct of cl/contract_op.cl.
struct yk_gpu_contraction {
	int64_t m, n, k, swapped;
	int64_t y_m, y_n, a_m, a_k, b_k, b_n;
	int64_t d[YK_GPU_BATCH], y[YK_GPU_BATCH], a[YK_GPU_BATCH], b[YK_GPU_BATCH];
	int64_t cut[4], lines, all; // the last two are set at a launch
};

// Leading axes are merged where the operands allow it, into the rows if b is the same for
// all. The products of sizes below fit in 64 bits with room to spare.
struct yk_gpu_contract {
	struct yk_gpu_contraction s;
	int64_t batch;               // product of s.d
	int dtype, to;               // of a and b, of the product
	bool by_row;                 // sums go in one order: that of k
	const struct yoke_op *op;
	const struct yoke_view *a, *b;
	struct yoke_map_call *map;   // of the map behind it, or NULL
	int preset;                  // of the variant's: 0 is the one that rules take
};

// a and b change places: y^T = b^T a^T.
void yk_gpu_contract_swap(struct yk_gpu_contract *);
// False where the op is none that a kernel takes.  `room` is used if there is a map.
bool yk_gpu_contract_of(const struct yoke_op *, struct yk_gpu_contract *,
			struct yoke_map_call *room);

// The kernel, told the dtype besides; one that writes the result comes with the map.
int yk_gpu_contract_kernel(struct yk_gpu_device *, const struct yk_gpu_contract *,
			   const struct yk_gpu_build *, bool result, struct yk_gpu_entry **to);
// The struct for a launch of so many groups: along columns, along rows, leading indexes.
void yk_gpu_contract_arg(struct yk_gpu_record *, const struct yk_gpu_contraction *, const int64_t groups[3]);
// Over groups of items[0] x items[1] items.
int yk_gpu_contract_enqueue(struct yk_gpu_record *, const int64_t groups[3], const size_t items[2],
			    const char *name);
// The struct, then y or what the map's kernel takes, behind the other arguments; then the same.
int yk_gpu_contract_launch(struct yk_gpu_record *, const struct yk_gpu_contract *,
			   const int64_t groups[3], const size_t items[2], const char *name);

struct yk_gpu_variant {
	// Brings c into the form it wants and cuts it.
	bool (*takes)(const struct yk_gpu_device *, struct yk_gpu_contract *);
	// Of one with elements.
	int (*record)(struct yk_gpu_record *, const struct yk_gpu_contract *);
};
extern const struct yk_gpu_variant yk_gpu_contract_direct, yk_gpu_contract_rows,
	yk_gpu_contract_packed, yk_gpu_contract_matrix, yk_gpu_contract_blocks, yk_gpu_contract_tiled;
// Declares the setting `matmul`: are products of f32 to be of tf32?
bool yk_gpu_tf32_wanted(void);

// A variant that a driver adds: the products of a vendor's library, launched by yk_gpu_call.
struct yk_gpu_library {
	const char *name;
	struct yk_gpu_variant variant;
	bool (*always)(void); // is it to do whatever it takes?
};

#endif
