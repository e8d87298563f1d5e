// SPDX-License-Identifier: Apache-2.0
// What the variants of contractions share: the problem in normal form, its kernels.
#ifndef YK_OPENCL_CONTRACT_H
#define YK_OPENCL_CONTRACT_H

#include "launch.h"

#define YK_CL_BATCH 6

// The struct of cl/contract_op.cl.
struct yk_cl_contraction {
	int64_t m, n, k, swapped;
	int64_t y_m, y_n, a_m, a_k, b_k, b_n;
	int64_t d[YK_CL_BATCH], y[YK_CL_BATCH], a[YK_CL_BATCH], b[YK_CL_BATCH];
	int64_t cut[4];
};

// Leading axes are merged where the operands allow it, into the rows if b is the same for
// all. The products of sizes below fit in 64 bits with room to spare.
struct yk_cl_contract {
	struct yk_cl_contraction s;
	int64_t batch;               // product of s.d
	int dtype, to;               // of a and b, of the product
	bool by_row;                 // sums go in one order: that of k
	const struct yoke_op *op;
	const struct yoke_view *a, *b;
	struct yoke_map_call *map;   // of the map behind it, or NULL
	int preset;                  // of the variant's: 0 is the one that rules take
};

// a and b change places: y^T = b^T a^T.
void yk_cl_contract_swap(struct yk_cl_contract *);
// False where the op is none that a kernel takes.  `room` is used if there is a map.
bool yk_cl_contract_of(const struct yoke_op *, struct yk_cl_contract *,
		       struct yoke_map_call *room);

// The kernel, told the dtype besides; one that writes the result comes with the map.
int yk_cl_contract_kernel(struct yk_cl_device *, const struct yk_cl_contract *,
			  const struct yk_cl_build *, bool result, struct yk_cl_entry **to);
// Over groups of items[0] x items[1] items.
int yk_cl_contract_enqueue(struct yk_cl_record *, const int64_t groups[3], const size_t items[2],
			   const char *name);
// The struct, then y or what the map's kernel takes, behind the other arguments; then the same.
int yk_cl_contract_launch(struct yk_cl_record *, const struct yk_cl_contract *,
			  const int64_t groups[3], const size_t items[2], const char *name);

struct yk_cl_variant {
	// Brings c into the form it wants and cuts it.
	bool (*takes)(const struct yk_cl_device *, struct yk_cl_contract *);
	// Of one with elements.
	int (*record)(struct yk_cl_record *, const struct yk_cl_contract *);
};
extern const struct yk_cl_variant yk_cl_contract_direct, yk_cl_contract_rows,
	yk_cl_contract_packed, yk_cl_contract_clblast, yk_cl_contract_tiled;

// opencl.clblast
enum wish { YK_CL_NEVER, YK_CL_BY_RULE, YK_CL_ALWAYS };
enum wish yk_cl_clblast_wish(void);

static inline int64_t yk_cl_parts(int64_t n, int64_t part)
{
	return n / part + (n % part != 0);
}

#endif
