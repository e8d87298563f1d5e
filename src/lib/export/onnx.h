// SPDX-License-Identifier: Apache-2.0
// Writes recorded graphs as ONNX files: what the files of this writer share.
//
// A graph is copied (onnx_graph.c), decomposed until ONNX has an operator or a few for each op
// (onnx_lower.c), and written op by op (onnx_map.c, onnx_move.c, onnx_sum.c) as messages of
// protocol buffers (onnx_file.c).
//
// A value keeps its dtype in the file.  f16 and bf16 are computed in f32 and rounded after each op,
// i8 and u8 in i32 and wrapped, as on devices; so a reader needs operators for f32, f64, i32, i64
// and bool only, besides those that copy.
#ifndef YK_ONNX_H
#define YK_ONNX_H

#include "base/arena.h"
#include "base/wire.h"
#include "export/onnx_names.h"
#include "graph/context.h"

// Element types of TensorProto.
enum yk_onnx_type {
	YK_ONNX_NONE,
	YK_ONNX_F32 = 1,
	YK_ONNX_U8 = 2,
	YK_ONNX_I8 = 3,
	YK_ONNX_I32 = 6,
	YK_ONNX_I64 = 7,
	YK_ONNX_BOOL = 9,
	YK_ONNX_F16 = 10,
	YK_ONNX_F64 = 11,
	YK_ONNX_U32 = 12,
	YK_ONNX_U64 = 13,
	YK_ONNX_BF16 = 16
};

// A tensor of numbers in the file: an initializer.
struct yk_onnx_constant {
	const char *name;   // NULL: not written
	const char *wanted; // the name that it gets, unless another has it
	int type, rank;     // enum yk_onnx_type
	int64_t dims[YOKE_MAX_RANK];
	uint64_t bytes, place; // place: in the file of external data
	const void *data;      // of small ones ..
	yoke_tensor *tensor;   // .. or the tensor that has it
	int format;            // of the tensor's rows, if these are quantized: enum yoke_quant
	int64_t row;           // elements of such a row
	int base;              // index of the tensor that these are the numbers of, or -1
};

// A node that was written.
struct yk_onnx_node {
	size_t at, n; // its bytes in yk_onnx.node
	uint32_t nin, nout;
	const char *const *ends; // names of operands, then of results
};

// A value of the copied graph.
struct yk_onnx_value {
	const char *name; // of the value in the file; NULL: not written yet
	const char *wide; // of the value in the type it is computed in
	bool live;
};

// The attribute of a LEAF of the copied graph: input number i, or constant number i.
enum { YK_ONNX_CONSTANTS = 1 << 30 };

struct yk_onnx {
	struct yoke_context *ctx;
	struct yk_graph g;           // what is written
	struct yk_onnx_value *value; // by value of g
	struct yk_wire node;         // the nodes written so far
	struct yk_onnx_node *nodes;  // where they are
	size_t node_count, node_cap;
	struct yk_wire infos; // shapes of values written so far
	struct yk_arena memory;
	struct yk_onnx_constant *constant;
	size_t constants, constant_cap;
	struct yk_onnx_names names; // also keys of constants, which begin with a space
	const char *path;           // of the scope whose ops are being written
	size_t count;               // nodes written, which their names end with
	int err;
};

// ---- onnx_lower.c ----

// Decomposes until the graph has only ops that are written, and merges equal nodes.  `roots`:
// values of the graph, renumbered.
int yk_onnx_lower(struct yk_onnx *, size_t n, yk_id *roots);
// Appends a LEAF for constant number i.
yk_id yk_onnx_leaf(struct yk_graph *, int64_t i, const struct yk_value *);

// ---- onnx_file.c ----

int yk_onnx_type_of(int dtype);
struct yk_onnx_attr {
	const char *name;
	enum { YK_ONNX_FLOAT = 1, YK_ONNX_INT = 2, YK_ONNX_STRING = 3, YK_ONNX_INTS = 7 } kind;
	float f;
	int64_t i; // INTS: how many
	const int64_t *ints;
	const char *text;
};
#define YK_ONNX_I(key, value) \
	{ \
		.name = key, .kind = YK_ONNX_INT, .i = value \
	}
#define YK_ONNX_F(key, value) \
	{ \
		.name = key, .kind = YK_ONNX_FLOAT, .f = value \
	}
#define YK_ONNX_S(key, value) \
	{ \
		.name = key, .kind = YK_ONNX_STRING, .text = value \
	}
#define YK_ONNX_L(key, n, list) \
	{ \
		.name = key, .kind = YK_ONNX_INTS, .i = n, .ints = list \
	}
// Writes a node and returns the name of its result, or NULL after an error; operands may be NULL
// after an error, and "" if they are absent.
const char *yk_onnx_node(struct yk_onnx *, const char *op, uint32_t nin, const char *const *in,
			 uint32_t nattr, const struct yk_onnx_attr *);
// The same with nout results, of which those named "" are absent; out gets their names.
void yk_onnx_node_many(struct yk_onnx *, const char *op, uint32_t nin, const char *const *in,
		       uint32_t nattr, const struct yk_onnx_attr *, uint32_t nout,
		       const char **out);
static inline const char *yk_onnx_1(struct yk_onnx *e, const char *op, const char *a)
{
	return yk_onnx_node(e, op, 1, &a, 0, NULL);
}
static inline const char *yk_onnx_2(struct yk_onnx *e, const char *op, const char *a, const char *b)
{
	return yk_onnx_node(e, op, 2, (const char *[]){ a, b }, 0, NULL);
}
static inline const char *yk_onnx_3(struct yk_onnx *e, const char *op, const char *a, const char *b,
				    const char *c)
{
	return yk_onnx_node(e, op, 3, (const char *[]){ a, b, c }, 0, NULL);
}
// Writes a node that gives a value another name.
void yk_onnx_alias(struct yk_onnx *, const char *from, const char *to);
const char *yk_onnx_cast(struct yk_onnx *, const char *x, int from, int to);
// Constants without axes, and of one axis of i64; equal ones are written once.  A number of an
// integer type is an integer in its range.
const char *yk_onnx_number(struct yk_onnx *, int type, double value);
const char *yk_onnx_integer(struct yk_onnx *, int type, int64_t value);
const char *yk_onnx_ints(struct yk_onnx *, int64_t n, const int64_t *v);
// A name that no other has: `wanted`, made valid, or with a number.
const char *yk_onnx_unique(struct yk_onnx *, const char *wanted);
// Removes the nodes and constants that no output depends on.
void yk_onnx_prune(struct yk_onnx *, int outputs, const char *const *output);
// Index of a new constant, zeroed but for its type and dims, or -1 after an error.
int yk_onnx_constant_new(struct yk_onnx *, const char *name, int type, int rank,
			 const int64_t *dims);
// Describes a value: ValueInfoProto as a field of GraphProto.
enum { YK_ONNX_INPUT = 11, YK_ONNX_OUTPUT = 12, YK_ONNX_INFO = 13 };
void yk_onnx_describe(struct yk_onnx *, struct yk_wire *to, unsigned field, const char *name,
		      const struct yk_value *);
// The same for a value between, once, if it is used.
void yk_onnx_describe_inner(struct yk_onnx *, const char *name, const struct yk_value *);

struct yk_onnx_file {
	const char *path;    // of the model
	const char *graph;   // its name, which is made valid
	uint64_t limit;      // bytes of constants in the model file itself
	struct yk_wire ends; // inputs and outputs
};
// Writes the model, and its external data as PATH.data.
int yk_onnx_save(struct yk_onnx *, const struct yk_onnx_file *);

// ---- what writes the ops ----

const char *yk_onnx_name(struct yk_onnx *, yk_id); // of a value
const char *yk_onnx_wide(struct yk_onnx *, yk_id); // of the value in the type it is computed in
int yk_onnx_wide_type(int dtype);                  // that type
// Names a value that was computed in that type.
void yk_onnx_set_wide(struct yk_onnx *, yk_id, const char *name);
void yk_onnx_set(struct yk_onnx *, yk_id, const char *name);
// A value of these dims, all elements equal, of a dtype; `number`: a constant of the type it is
// computed in.
const char *yk_onnx_full(struct yk_onnx *, int dtype, int rank, const int64_t *dims,
			 const char *number);
const char *yk_onnx_reshape(struct yk_onnx *, const char *x, int rank, const int64_t *dims);

// Each writes the node if it is one of its ops, and otherwise returns false.
bool yk_onnx_map(struct yk_onnx *, const struct yk_node *);
bool yk_onnx_move(struct yk_onnx *, const struct yk_node *);
bool yk_onnx_sum(struct yk_onnx *, const struct yk_node *);

#endif
