// SPDX-License-Identifier: Apache-2.0
// Contractions in normal form, and the interface of the kernel variants that compute them.
#ifndef YK_GPU_CONTRACT_H
#define YK_GPU_CONTRACT_H

#include "rows.h"

#define YK_GPU_BATCH 6

// Matches the struct of cl/contract_op.cl.
struct yk_gpu_contraction {
	int64_t m, n, k, swapped;
	int64_t y_m, y_n, a_m, a_k, b_k, b_n;
	int64_t d[YK_GPU_BATCH], y[YK_GPU_BATCH], a[YK_GPU_BATCH], b[YK_GPU_BATCH];
	int64_t cut[4], lines, all; // `lines` and `all` are set for each launch
};

// Leading axes are merged where the operands allow it, and into the rows if b is the same for all
// of them. Products of the sizes below fit in 64 bits with room to spare.
struct yk_gpu_contract {
	struct yk_gpu_contraction s;
	int64_t batch;               // product of s.d
	int dtype, to;               // dtype of a and b; dtype of the result
	bool by_row;                 // each element is summed in one fixed order along k
	const struct yoke_op *op;
	const struct yoke_view *a, *b;
	struct yoke_map_call *map;   // the fused map, or NULL
	int preset;                  // the variant's tuning preset; 0 is chosen by rule
};

// Exchanges a and b: y^T = b^T a^T.
void yk_gpu_contract_swap(struct yk_gpu_contract *);
// Normalizes the op. False: no kernel computes it. `room` receives the call of the fused map, if
// there is one.
bool yk_gpu_contract_of(const struct yoke_op *, struct yk_gpu_contract *,
			struct yoke_map_call *room);

// Returns a kernel compiled for c's dtype; `result`: it writes the result, so the map is compiled
// in.
int yk_gpu_contract_kernel(struct yk_gpu_device *, const struct yk_gpu_contract *,
			   const struct yk_gpu_build *, bool result, struct yk_gpu_entry **to);
// Passes the struct for a launch of groups[]: along columns, along rows, leading indexes.
void yk_gpu_contract_arg(struct yk_gpu_record *, const struct yk_gpu_contraction *,
			 const int64_t groups[3]);
// Launches these groups, each of items[0] x items[1] items.
int yk_gpu_contract_enqueue(struct yk_gpu_record *, const int64_t groups[3], const size_t items[2],
			    const char *name);
// Passes the struct, then y or the map's arguments, after the arguments already set; then launches
// as above.
int yk_gpu_contract_launch(struct yk_gpu_record *, const struct yk_gpu_contract *,
			   const int64_t groups[3], const size_t items[2], const char *name);

// Records the fused map as a kernel of its own, for a product that was stored in row-major order at
// the start of the workspace.
int yk_gpu_contract_map(struct yk_gpu_record *, const struct yk_gpu_contract *);

struct yk_gpu_variant {
	// True if the variant computes c; brings c into its form and chooses the tile sizes.
	bool (*takes)(const struct yk_gpu_device *, struct yk_gpu_contract *);
	// Records the launches; c has at least one element.
	int (*record)(struct yk_gpu_record *, const struct yk_gpu_contract *);
};
extern const struct yk_gpu_variant yk_gpu_contract_direct, yk_gpu_contract_rows,
	yk_gpu_contract_packed, yk_gpu_contract_stages, yk_gpu_contract_matrix,
	yk_gpu_contract_wgmma, yk_gpu_contract_blocks, yk_gpu_contract_tiled;
// True if f32 products may use tf32; declares the setting `matmul`.
bool yk_gpu_tf32_enabled(void);
// True if attention is to use warp groups where it can; declares the setting `attention`.
bool yk_gpu_wgmma_enabled(void);

// A variant added by a driver: products by a vendor's library, launched through yk_gpu_call.
struct yk_gpu_library {
	const char *name;
	struct yk_gpu_variant variant;
	bool (*always)(void); // true: used for every op that it can compute
	// True if large products of a dtype are several times as fast as by the kernels of this
	// layer; NULL: never.
	bool (*fast)(const struct yk_gpu_device *, int dtype);
};

#endif
