// SPDX-License-Identifier: Apache-2.0
// Op definitions: shape rule, gradient, decomposition and flags of each op.  The files in ops/ hold
// them, one family each.
#ifndef YK_OP_H
#define YK_OP_H

#include <string.h>

#include "graph/graph.h"

enum yk_op_flag {
	YK_F_MAP = 1,      // elementwise: becomes an instruction of a map program
	YK_F_VIEW = 2,     // result shares the operand's elements
	YK_F_LEAF = 4,     // takes no operands
	YK_F_REDUCE = 8,
	YK_F_PARTIAL = 16, // a backend may be requested to omit some results
	YK_F_COMPARE = 32, // result is bool
	YK_F_FLOAT = 64,   // floating-point operands only
	YK_F_BOOL = 128,   // bool operands too
	YK_F_STRIDED = 256, // may write its results with strides (into a concat)
	YK_F_FLAT = 512,    // its gradient is 0 everywhere
	YK_F_BITS = 1024,   // no floating-point operands
	YK_F_RANKS = 2048,  // collective: runs once, in recording order
	YK_F_ALL_RESULTS = 4096 // its gradient rule uses the cotangents of all results
};

// How mixed precision casts the floating-point operands of an op.  f64 is never cast down.
enum yk_cast_policy {
	YK_CAST_NONE,   // unchanged
	YK_CAST_HALF,   // contractions: the first YK_CAST_FACTORS operands to half
	YK_CAST_F32,
	YK_CAST_WIDEST, // maps and concatenation: the dtype that holds all operands
	YK_CAST_INSIDE  // kernels compute in f32: the first stays, others may be f32
};
enum { YK_CAST_FACTORS = 3 }; // attention's mask comes after them

// An operand that a result may overwrite, element by element.
struct yk_inplace {
	uint8_t in, out; // operand and result; lists count as one
};

struct yk_op_def {
	const char *name;
	uint16_t code;  // code in the plugin ABI, 0: none
	uint16_t map;   // instruction of a map program, or kind of reduction
	uint16_t flags;
	uint32_t min_in, max_in; // operands; lists count as one
	uint8_t nout;
	uint8_t lists_in, lists_out; // leading operands and results that are lists
	uint8_t cast;                // enum yk_cast_policy
	// Sets dtype, rank and dims of each result (nout, lists in full).  Errors are recorded.
	int (*shape)(struct yk_graph *, const struct yk_call *, struct yk_value *out);
	// Sets the cotangent of each floating-point operand in gin, given those of the results
	// (YK_NIL: zero).  NULL: the gradient goes through the decomposition, is 0 (YK_F_FLAT), or
	// does not exist.
	void (*grad)(struct yk_graph *, uint32_t node, const yk_id *gout, yk_id *gin);
	// Appends the ops of the decomposition; out receives the results.  NULL: none; see
	// yk_has_parts.
	void (*decompose)(struct yk_graph *, const struct yk_call *, yk_id *out);
	struct yk_inplace inplace[3];
	uint8_t ninplace;
	bool joined;              // its results are its last operands, which get no gradient
	const struct yk_custom *custom; // custom op (ops/custom.h); NULL: built in
};

// The definition of an op, never freed; codes from YK_OPS on are custom ops.
extern const struct yk_op_def *const yk_op_defs[YK_OPS];
#define YK_OP(N) const struct yk_op_def yk_op_##N // used by the family files
const struct yk_op_def *yk_custom_def(int op);
static inline const struct yk_op_def *yk_op_def(int op)
{
	return op < YK_OPS ? yk_op_defs[op] : yk_custom_def(op);
}

// The attributes of SCAN_MAP: the program, then the attributes of the ABI.
struct yk_scanned {
	_Alignas(8) struct yoke_map map; // a whole number of attributes, also with 32 bits
	int64_t axis, from_end, carried;
};
enum { YK_SCANNED = sizeof(struct yk_scanned) / sizeof(union yoke_attr) };
_Static_assert(YK_SCANNED <= UINT8_MAX, "a node's attributes");

static inline struct yk_scanned yk_scanned(const union yoke_attr *attr)
{
	struct yk_scanned s;
	memcpy(&s, attr, sizeof s);
	return s;
}

// The attributes of LIST_MAP and LIST_REDUCE.
struct yk_listed {
	_Alignas(8) struct yoke_map map;
	int64_t lists;      // the program's first inputs that are lists
	int64_t kind, each; // LIST_REDUCE: attributes of the ABI
	int64_t wide;       // LIST_REDUCE, 1: the result is f64 whatever the program's dtype
};
enum { YK_LISTED = sizeof(struct yk_listed) / sizeof(union yoke_attr) };
_Static_assert(YK_LISTED <= UINT8_MAX, "a node's attributes");

// The attributes of collectives.  RECV appends a dtype and dims, REDUCE_SHARDS the number of
// elements of its result.
struct yk_ranked {
	int64_t group;       // its number in this process
	int64_t ranks, rank; // number of ranks, and this rank
	int64_t kind;        // enum yoke_reduce_kind, for reductions
	int64_t peer;        // the root, or the peer of a send
	int64_t whole;       // all ranks hold the loss: a cotangent passes unchanged; SHARES: only
	                     // the rank's shard and shapes exist
};
enum { YK_RANKED = sizeof(struct yk_ranked) / sizeof(union yoke_attr) };

static inline struct yk_ranked yk_ranked(const union yoke_attr *attr)
{
	struct yk_ranked r;
	memcpy(&r, attr, sizeof r);
	return r;
}
// Is the node a collective?
static inline bool yk_is_ranks(const struct yk_node *n)
{
	return yk_op_def(n->op)->flags & YK_F_RANKS;
}

static inline bool yk_is_listed(int op)
{
	return op == YK_LIST_MAP || op == YK_LIST_REDUCE;
}

static inline struct yk_listed yk_listed(const union yoke_attr *attr)
{
	struct yk_listed l;
	memcpy(&l, attr, sizeof l);
	return l;
}

// Number of leading operands, and of results, that are lists.
static inline uint32_t yk_lists_in(int op, const union yoke_attr *attr)
{
	return yk_is_listed(op) ? (uint32_t)yk_listed(attr).lists : yk_op_def(op)->lists_in;
}

static inline uint32_t yk_lists_out(int op, const union yoke_attr *attr)
{
	return op == YK_LIST_MAP ? yk_listed(attr).map.nout : yk_op_def(op)->lists_out;
}

// Results of a call, lists in full.
uint32_t yk_nout_listed(const struct yk_op_def *, const struct yk_call *);
static inline uint32_t yk_nout(const struct yk_op_def *row, const struct yk_call *c)
{
	if (c->list || c->op == YK_SCAN_MAP)
		return yk_nout_listed(row, c);
	return row->nout - row->lists_out;
}

// Is the call decomposed?  A recurrence (SCAN_MAP) is only if it has few steps.
enum { YK_SCAN_PARTS = 64 };
static inline bool yk_has_parts(const struct yk_graph *g, int op, const yk_id *in,
				const union yoke_attr *attr)
{
	return yk_op_def(op)->decompose &&
	       (op != YK_SCAN_MAP || g->value[in[0]].dims[yk_scanned(attr).axis] <= YK_SCAN_PARTS);
}

// Can a cotangent of the node's results contribute to its operands?
static inline bool yk_differentiable(const struct yk_graph *g, const struct yk_node *n)
{
	const struct yk_op_def *row = yk_op_def(n->op);
	bool real = false;
	for (uint32_t i = 0; i < n->nout && !real; i++)
		real = yk_is_float(g->value[n->out + i].dtype);
	return n->op != YK_STOP_GRAD && real &&
	       (row->grad || row->decompose || n->op == YK_SLICE || n->op == YK_LEAF ||
		n->op == YK_BITCAST); // their rules must run, to report that there is no gradient
}

// Does the gradient by the operands depend on the cotangent alone?
static inline bool yk_is_linear(const struct yk_node *n)
{
	const struct yk_op_def *row = yk_op_def(n->op);
	return n->op == YK_ADD || n->op == YK_SUB || n->op == YK_NEG || n->op == YK_SUM ||
	       n->op == YK_CAST || n->op == YK_SLICE_UPDATE_AT || n->op == YK_SCATTER_SET ||
	       n->op == YK_BARRIER || row->flags & YK_F_VIEW || row->code == YOKE_OP_MOVE;
}

// Fails with the name of the running public call, else of the op, then the scope and a formatted
// reason.
int yk_op_fail(const struct yk_graph *, int op, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

// Gradients g of p[0..n-1], given cotangents cot of y[0..ny-1] (NULL: 1); YK_NIL where no y depends
// on p.
int yk_backward(struct yk_graph *, uint32_t ny, const yk_id *y, const yk_id *cot, uint32_t n,
		const yk_id *p, yk_id *g);

// Is this a valid program, without INDEX and RAND, in which each instruction reads earlier ones?
bool yk_is_program(const struct yoke_map *);
// Appends the program as ops: its outputs for these inputs, which broadcast.
void yk_program_parts(struct yk_graph *, const struct yoke_map *, const yk_id *in, yk_id *out);

// sqrt(s), or s^power (op YK_POW), where s is not 0; else 0 with gradient 0.
yk_id yk_unless_zero(struct yk_graph *, int op, yk_id s, double power);
// x shifted `by` elements along an axis, away from its first element (reverse: its last); `fill`
// enters.
yk_id yk_moved(struct yk_graph *, yk_id x, int axis, int64_t by, bool reverse, double fill);

typedef int yk_shape_fn(struct yk_graph *, const struct yk_call *, struct yk_value *);
typedef void yk_grad_fn(struct yk_graph *, uint32_t, const yk_id *, yk_id *);
typedef void yk_decompose_fn(struct yk_graph *, const struct yk_call *, yk_id *);

#endif
