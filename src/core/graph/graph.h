// SPDX-License-Identifier: Apache-2.0
// The graph: recorded operations as dense arrays, in creation order, which is topological.
// Contexts record into a graph, gradient rules and decompositions append to it, plans are made from
// it.
#ifndef YK_GRAPH_H
#define YK_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "graph/site.h"
#include "yoke.h"

// Index of a value.  An operation on YK_BAD returns YK_BAD, so that a chain is checked only at its
// end.
typedef uint32_t yk_id;
#define YK_NIL UINT32_MAX       // an optional operand that is absent
#define YK_BAD (UINT32_MAX - 1) // an error was recorded

// All ops; the order is stored nowhere.  Each is defined in the file of its family in ops/.
#define YK_OP_LIST(X) \
	X(LEAF) X(SCALAR) X(CONST) X(IOTA) X(RAND_BITS) X(UNIFORM) X(NORMAL) X(ADD) X(SUB) \
	X(MUL) X(DIV) X(POW) X(MIN) X(MAX) X(MOD) X(NEG) X(ABS) X(SIGN) X(FLOOR) X(ROUND) \
	X(CEIL) X(EXP) X(LOG) X(LOG1P) X(EXPM1) X(SQRT) X(RSQRT) X(RECIP) X(SQUARE) X(SIN) \
	X(COS) X(TANH) X(SIGMOID) X(ERF) X(EQ) X(NE) X(LT) X(LE) X(GT) X(GE) X(ISFINITE) X(AND) \
	X(OR) X(XOR) X(NOT) X(SHL) X(SHR) X(SELECT) X(CAST) X(SUM) X(PROD) X(REDUCE_MAX) \
	X(REDUCE_MIN) X(ARGMAX) X(ARGMIN) X(CUMSUM) X(CUMPROD) X(SCAN_MAP) X(SORT) \
	X(TAKE_ALONG) X(SCATTER_ADD_ALONG) X(CHECK_FINITE) X(MATMUL) X(EIGH) X(CHOLESKY) \
	X(SOLVE_TRIANGULAR) X(LU) X(LU_SOLVE) X(SOLVE) X(INV) X(DET) X(SLOGDET) X(COFACTOR) \
	X(QR) X(SVD) X(PINV) X(MATRIX_EXP) X(MOMENTS) X(RESHAPE) X(PERMUTE) X(BROADCAST) \
	X(SLICE) X(STOP_GRAD) X(BITCAST) X(WINDOW) X(CONTIGUOUS) X(PAD) X(CONCAT) \
	X(SLICE_UPDATE) X(GATHER) X(SCATTER_ADD) X(TRANSFER) X(NUMBERS) X(SLICE_AT) \
	X(SLICE_UPDATE_AT) X(BARRIER) X(SOFTMAX) X(SOFTMAX_BACKWARD) X(LAYER_NORM) \
	X(LAYER_NORM_BACKWARD) X(RMS_NORM) X(RMS_NORM_BACKWARD) X(CROSS_ENTROPY) \
	X(CROSS_ENTROPY_BACKWARD) X(ATTENTION) X(ATTENTION_BACKWARD) \
	X(ATTENTION_MASK_BACKWARD) X(LIST_MAP) X(LIST_REDUCE) X(ROPE) X(RESOLVENT) \
	X(RESOLVENT_BACKWARD) X(PIVOTS) X(LINEAR) X(LOG_DET) X(GROUPED) \
	X(GROUPED_BACKWARD) X(WINDOW_ADD) X(CONV) X(CONV_X) X(CONV_W) X(LARGEST) \
	X(BATCH_NORM) X(POOL_MAX) X(POOL_MAX_BACKWARD) X(ASIN) X(ACOS) X(ATAN) X(ATAN2) \
	X(LGAMMA) X(DIGAMMA) X(ERFINV) X(RANKS_ALL_REDUCE) X(RANKS_REDUCE_SCATTER) \
	X(RANKS_ALL_GATHER) X(RANKS_BROADCAST) X(RANKS_REDUCE) X(RANKS_ALL_TO_ALL) \
	X(RANKS_SEND) X(RANKS_RECV) X(RANKS_GATHER_SHARDS) X(RANKS_REDUCE_SHARDS) \
	X(RANKS_IN) X(DEQUANT) X(QLINEAR) X(QGATHER) X(PAGED_ATTENTION) X(SCATTER_SET) \
	X(COMPACT) X(SEARCHSORTED) X(FREXP) X(HYPOT) X(COPYSIGN) X(NEXTAFTER) \
	X(GRID_SAMPLE) X(LSTSQ) X(MASKED_SCATTER) X(ROLL) X(SPARSE) X(SPARSE_X) \
	X(SPARSE_W) X(POOL_ARGMAX) X(CUM_ARG) X(FFT) X(RECURRENT) X(RECURRENT_BACKWARD) \
	X(CTC) X(CTC_BACKWARD)

enum yk_op {
#define YK_OP_NUMBER(N) YK_##N,
	YK_OP_LIST(YK_OP_NUMBER)
#undef YK_OP_NUMBER
	YK_OPS
};

enum { YK_NTH_MAX = 31 };
struct yk_value {
	uint32_t node; // the node that computes it
	uint8_t dtype, rank;
	uint8_t nth;   // index among that node's results; YK_NTH_MAX for all later ones
	uint32_t made; // leaf of the context with its bytes, once evaluated; or YK_NIL
	int64_t dims[YOKE_MAX_RANK];
};

struct yk_node {
	uint16_t op;
	uint8_t nattr;
	uint8_t stream;       // plans: memory of its results, YK_STREAM_DEVICE or _CPU
	bool done;          // an evaluation computed it
	uint32_t in, nin;   // operands: arg[in ..]
	uint32_t out, nout; // results: value[out ..]
	uint32_t attr;      // attributes: attrs[attr ..]
	uint32_t list;      // tensors in each list, 0: not a list op
	uint32_t scope;     // path of the scope it was recorded in
	uint32_t site;      // call site, 0: not traced
	uint16_t back;      // op whose gradient it belongs to, 0: none (LEAF has none)
	uint32_t range;     // path of the profiler range it was recorded in, 0: none
	const char *call;   // public function that recorded it, NULL: unknown; for messages
};

struct yk_graph {
	struct yk_node *node;
	struct yk_value *value;
	yk_id *arg;
	union yoke_attr *attrs;
	size_t nodes, values, args, nattrs;
	size_t node_cap, value_cap, arg_cap, attr_cap;
	size_t settled;         // nodes present at the last evaluation
	size_t owed;            // recorded collectives that no evaluation has run
	size_t max;             // nodes allowed after the settled ones, 0: no limit
	uint32_t scope, site, range; // copied to new nodes
	uint16_t back;          // copied to new nodes
	const char *call;       // public function named in errors; NULL: the op is named
	struct yk_paths *paths; // names of scopes, for messages
	struct yk_sites *sites; // call sites
};

void yk_graph_clear(struct yk_graph *); // keeps the memory
void yk_graph_fini(struct yk_graph *);

// A call before it becomes a node: the input of shape rules and decompositions.
struct yk_call {
	uint16_t op;
	uint32_t list;
	uint32_t nin, nattr;
	const yk_id *in;
	const union yoke_attr *attr;
};

// Checks and appends; the results are *out .. *out + nout - 1.  0 or the error, which is recorded.
int yk_append(struct yk_graph *, const struct yk_call *, yk_id *out);
// The same for an op with one result, or for the first result; YK_BAD on error or when an operand
// is YK_BAD.
yk_id yk_record(struct yk_graph *, int op, uint32_t nin, const yk_id *in, uint32_t nattr,
		const union yoke_attr *attr);
// Appends a node with given results, unchecked; plans copy nodes with it.
int yk_append_as(struct yk_graph *, const struct yk_call *, uint32_t nout,
		 const struct yk_value *outs, yk_id *out);

static inline const struct yk_node *yk_maker(const struct yk_graph *g, yk_id v)
{
	return &g->node[g->value[v].node];
}

static inline const yk_id *yk_ins(const struct yk_graph *g, const struct yk_node *n)
{
	return g->arg + n->in;
}

static inline const union yoke_attr *yk_attrs(const struct yk_graph *g, const struct yk_node *n)
{
	return g->attrs + n->attr;
}

// ---- short names for recording; each returns YK_BAD after an error ----

yk_id yk_un(struct yk_graph *, int op, yk_id x);
yk_id yk_bin(struct yk_graph *, int op, yk_id a, yk_id b);
yk_id yk_tri(struct yk_graph *, int op, yk_id a, yk_id b, yk_id c);
// Can the dtype represent this number?  Floating-point dtypes always can, rounded.
bool yk_has_number(int dtype, double value);
// A literal of a dtype, rank 0.
yk_id yk_lit(struct yk_graph *, int dtype, double value);
// op(x, literal of x's dtype)
yk_id yk_bin_lit(struct yk_graph *, int op, yk_id x, double value);
yk_id yk_cast(struct yk_graph *, yk_id x, int dtype); // x itself if it has the dtype already
// x in its accumulator's dtype (YK_NIL stays YK_NIL); and back to the dtype of `like`.
yk_id yk_cast_acc(struct yk_graph *, yk_id x);
yk_id yk_cast_like(struct yk_graph *, yk_id x, yk_id like);
// Reduction over a mask of axes; keep: reduced axes stay with size 1.
yk_id yk_reduce(struct yk_graph *, int op, yk_id x, unsigned axes, bool keep);
// Floating point; summed in the accumulator's dtype and rounded once.
yk_id yk_mean(struct yk_graph *, yk_id x, unsigned axes, bool keep);
// Maximum over one axis, which stays with size 1; -inf where the axis is empty, so that the sums in
// a decomposition give their identity there.
yk_id yk_row_max(struct yk_graph *, yk_id x, int axis);
yk_id yk_matmul(struct yk_graph *, yk_id a, yk_id b, unsigned flags);
yk_id yk_matmul_to(struct yk_graph *, yk_id a, yk_id b, unsigned flags, int dtype);
// A recurrence along an axis of the shape (rank, dims): SCAN_MAP of the plugin ABI.  in: the
// program's inputs, at least one of them not carried, with first values for the carried ones.
// Inputs broadcast to that shape, first values to size 1 along the axis.
struct yk_scan_op {
	const struct yoke_map *map;
	const yk_id *in;
	int rank, axis;
	const int64_t *dims;
	bool from_end;
	uint32_t carried; // number of carried values: the program's last inputs and outputs
};
// *out is the first of the program's outputs; the others follow.
int yk_scan(struct yk_graph *, const struct yk_scan_op *, yk_id *out);
yk_id yk_reshape(struct yk_graph *, yk_id x, int rank, const int64_t *dims);
yk_id yk_broadcast(struct yk_graph *, yk_id x, int rank, const int64_t *dims);
yk_id yk_permute(struct yk_graph *, yk_id x, const int *order);
yk_id yk_exchange(struct yk_graph *, yk_id x, int a, int b); // two axes
// start, step (may be negative) and size for each axis
yk_id yk_slice(struct yk_graph *, yk_id x, const int64_t *start, const int64_t *step,
	       const int64_t *size);
yk_id yk_pad(struct yk_graph *, yk_id x, const int64_t *lo, const int64_t *hi, double value);
yk_id yk_full_like(struct yk_graph *, yk_id x, double value);
// Sums x down to the shape of `like`, the adjoint of broadcasting.
yk_id yk_sum_to(struct yk_graph *, yk_id x, yk_id like);

// ---- facts ----

int64_t yk_count(const struct yk_value *);
// Number of elements that a reduction over these axes combines into one.
double yk_reduced(const struct yk_value *, unsigned axes);
static inline bool yk_same_shape(const struct yk_value *a, const struct yk_value *b)
{
	bool same = a->rank == b->rank;
	for (int i = 0; i < a->rank && same; i++)
		same = a->dims[i] == b->dims[i];
	return same;
}
// "f32 [2,3]" into a buffer of 160 bytes, which it returns.
char *yk_describe(const struct yk_value *, char *to);
bool yk_is_float(int dtype);
bool yk_is_int(int dtype); // false for bool
// The accumulator: f64 for f64, i64 for integers, f32 otherwise.
int yk_acc(int dtype);
// ERANGE, with an error, if an integer or bool dtype cannot hold the value.
int yk_check_literal(const struct yk_graph *, int dtype, double value);
// A number as the bits of a dtype, low bytes first.
uint64_t yk_bits(int dtype, double value);

// ---- scopes' paths ----

struct yk_path {
	char *name;        // whole path, "step/layer3/attn"; "" for the outermost
	uint32_t parent;
	uint32_t own;      // offset of its last name in the path
	uint64_t hash;     // XXH64 of its last name, with the parent as seed
	uint32_t then;     // the path that was requested after it the last time
	uint32_t calls;    // random calls in it since the outermost scope was opened
	uint32_t opening;  // `calls` is valid while the context's `opening` equals this
	uint32_t turn;     // times that it drew in other openings since the seed was set
	uint32_t setting;  // `turn` is valid while yk_random's `setting` equals this
};
struct yk_paths {
	struct yk_path *path;
	size_t n, cap;
	uint32_t *table; // open addressing by hash of (parent, last name): index + 1
	size_t table_size;
	uint32_t last; // the path requested last
};
// The path of `name` inside `parent`, created if new.  0 is the outermost.  YK_NIL: no memory.
uint32_t yk_path_get(struct yk_paths *, uint32_t parent, const char *name);
const char *yk_path_name(const struct yk_paths *, uint32_t path);
void yk_paths_fini(struct yk_paths *);

#endif
