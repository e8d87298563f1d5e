// SPDX-License-Identifier: Apache-2.0
// yoke_onnx_write: copies what the outputs need of the recorded graph, from the inputs on, and
// writes it. Values that no input changes are constants: leaves are written as they are, and small
// results computed from them are evaluated.
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/error.h"
#include "base/number.h"
#include "base/sized.h"
#include "export/onnx.h"
#include "graph/handle.h"
#include "graph/op.h"
#include "yoke-model.h"

// Larger results of constants are computed by the reader; a view of a weight is no second copy of
// it.
enum { MAX_FOLDED = 1 << 20 };
// Readers refuse messages of 2 GB; names and nodes are below the rest.
static const uint64_t max_inside = UINT64_C(1) << 31, for_nodes = UINT64_C(1) << 26;

struct job {
	const char *path;
	int n, m;
	yoke_tensor *const *in, *const *out;
	struct yoke_onnx_options options;
	struct yk_onnx e;
	yk_id *input, *root; // in the context's graph, then in the copy
	uint8_t *state;      // of nodes of the context's graph: bits as below
	yk_id *to_of;        // values of the copy, by value of the context's graph
	const char **input_name;
};
enum { NEEDED = 1, VARIES = 2, RANDOM = 4 };

// ---- arguments ----

static int tensor_of(const struct job *j, const yoke_tensor *handle, const char *what, int i,
		     struct yk_tensor **to)
{
	if (!handle || handle == YOKE_NONE)
		return yk_fail(yoke_error_code() ? yoke_error_code() : YOKE_EINVAL,
			       "onnx_write: %s %d is not a tensor", what, i);
	*to = yk_tensor(handle, "onnx_write");
	if (!*to)
		return yoke_error_code();
	if ((*to)->ctx != j->e.ctx)
		return yk_fail(YOKE_ECONTEXT, "onnx_write: %s %d belongs to another context", what,
			       i);
	return 0;
}

static int find_values(struct job *j)
{
	struct yoke_context *ctx = j->e.ctx;
	struct yk_tensor *t;
	int err = 0;
	for (int i = 0; i < j->n && !err; i++) {
		err = tensor_of(j, j->in[i], "input", i, &t);
		if (!err && t->kind >= YK_HOST_SCALAR)
			err = yk_fail(YOKE_EINVAL,
				      "onnx_write: input %d is a number of the host; inputs are "
				      "tensors, as yoke_from makes",
				      i);
		if (!err && (j->input[i] = yk_value_of(ctx, t, 0)) == YK_BAD)
			err = yk_error_last();
		for (int k = 0; k < i && !err; k++)
			if (j->input[k] == j->input[i])
				err = yk_fail(YOKE_EINVAL,
					      "onnx_write: inputs %d and %d are the same value", k,
					      i);
	}
	for (int i = 0; i < j->m && !err; i++) {
		err = tensor_of(j, j->out[i], "output", i, &t);
		if (!err && (j->root[i] = yk_value_of(ctx, t, yoke_f32)) == YK_BAD)
			err = yk_error_last();
	}
	return err;
}

static int is_input(const struct job *j, yk_id v)
{
	for (int i = 0; i < j->n; i++)
		if (j->input[i] == v)
			return i;
	return -1;
}

// ---- what is copied ----

// Is it a small result that is better evaluated now?  A view or another dtype of a weight is not.
static bool is_folded(const struct yk_graph *g, const struct yk_node *n)
{
	const struct yk_op_def *row = yk_op_def(n->op);
	bool small = true;
	for (uint32_t i = 0; i < n->nout; i++) {
		const struct yk_value *v = &g->value[n->out + i];
		small = small && yk_count(v) * (int64_t)yoke_dtype_size(v->dtype) <= MAX_FOLDED;
	}
	return small && !(row->flags & (YK_F_LEAF | YK_F_VIEW | YK_F_RANKS)) &&
	       n->op != YK_BARRIER && n->op != YK_CAST;
}

// Is the node's result read as a constant?  Random ones are if they were evaluated.
static bool is_constant(const struct job *j, size_t k)
{
	const struct yk_graph *g = &j->e.ctx->graph;
	const struct yk_node *n = &g->node[k];
	if (j->state[k] & VARIES)
		return false;
	return yk_is_made(g, n, UINT32_MAX) || (!(j->state[k] & RANDOM) && is_folded(g, n));
}

// Marks nodes whose results inputs change, then nodes that the outputs need.
static void mark(struct job *j)
{
	const struct yk_graph *g = &j->e.ctx->graph;
	for (int i = 0; i < j->n; i++)
		j->state[g->value[j->input[i]].node] |= VARIES;
	for (size_t k = 0; k < g->nodes; k++)
		for (uint32_t i = 0; i < g->node[k].nin; i++) {
			const yk_id v = yk_ins(g, &g->node[k])[i];
			if (v != YK_NIL)
				j->state[k] |= j->state[g->value[v].node] & (VARIES | RANDOM);
			if (g->node[k].op == YK_RAND_BITS)
				j->state[k] |= RANDOM;
		}
	for (int i = 0; i < j->m; i++)
		if (is_input(j, j->root[i]) < 0)
			j->state[g->value[j->root[i]].node] |= NEEDED;
	for (size_t k = g->nodes; k-- > 0;) {
		const struct yk_node *n = &g->node[k];
		if (!(j->state[k] & NEEDED))
			continue;
		const bool constant = is_constant(j, k);
		for (uint32_t i = 0; i < n->nin && !constant; i++) {
			const yk_id v = yk_ins(g, n)[i];
			if (v != YK_NIL && is_input(j, v) < 0)
				j->state[g->value[v].node] |= NEEDED;
		}
	}
}

// The name of a weight: the caller's for its tensor, or that of its variable; NULL: it has none.
static const char *weight_name(const struct job *j, const struct yk_leaf *leaf)
{
	for (int i = 0; i < j->options.weights; i++) {
		const struct yk_tensor *t = yk_tensor_in(j->e.ctx, j->options.weight[i]);
		if (t && t->storage == leaf->storage)
			return j->options.weight_names[i];
	}
	if (leaf->variable)
		return leaf->variable->name;
	for (const struct yk_tensor *t = j->e.ctx->handles.list; t; t = t->next)
		if (t->kind == YK_VARIABLE && t->storage == leaf->storage)
			return t->name;
	return NULL;
}

// A constant that is read from the value v of the context.
static yk_id constant_of(struct job *j, yk_id v, const char *name)
{
	struct yk_onnx *e = &j->e;
	const struct yk_value value = e->ctx->graph.value[v];
	const int i =
		yk_onnx_constant_new(e, NULL, yk_onnx_type_of(value.dtype), value.rank, value.dims);
	if (i < 0)
		return YK_BAD;
	e->constant[i].wanted = name ? yk_arena_strdup(&e->memory, name) : "constant";
	e->constant[i].tensor = yk_handle_of(e->ctx, v);
	return e->constant[i].tensor ? yk_onnx_leaf(&e->g, YK_ONNX_CONSTANTS + i, &value) : YK_BAD;
}

static int copy_leaf(struct job *j, const struct yk_node *n)
{
	const struct yk_graph *g = &j->e.ctx->graph;
	const struct yk_leaf *leaf = &j->e.ctx->leaves.at[yk_attrs(g, n)[0].i];
	yk_id *to = &j->to_of[n->out];
	if (leaf->kind == YK_LEAF_SEED || leaf->kind == YK_LEAF_STEP)
		return yk_fail(YOKE_EUNSUPPORTED,
			       "onnx_write: nothing random is written; evaluate values that shall "
			       "be constants, and leave out dropout");
	if (leaf->kind == YK_LEAF_SCALAR) {
		const uint64_t bits = leaf->scalar && !leaf->frozen ?
					      yk_bits(leaf->dtype, leaf->scalar->scalar) :
					      leaf->bits;
		const union yoke_attr attr[] = { { .i = leaf->dtype }, { .i = (int64_t)bits } };
		*to = yk_record(&j->e.g, YK_CONST, 0, NULL, 2, attr);
	} else {
		*to = constant_of(j, n->out, weight_name(j, leaf));
	}
	return *to == YK_BAD ? yk_error_last() : 0;
}

static int copy_node(struct job *j, size_t k)
{
	const struct yk_graph *g = &j->e.ctx->graph;
	const struct yk_node *n = &g->node[k];
	int err = 0;
	if (is_constant(j, k)) {
		for (uint32_t i = 0; i < n->nout && !err; i++) {
			const uint32_t made = g->value[n->out + i].made;
			const char *name =
				made == YK_NIL ? NULL : weight_name(j, &j->e.ctx->leaves.at[made]);
			err = (j->to_of[n->out + i] = constant_of(j, n->out + i, name)) == YK_BAD ?
				      yk_error_last() :
				      0;
		}
		return err;
	}
	if (n->op == YK_LEAF || n->op == YK_SCALAR)
		return copy_leaf(j, n);
	yk_id *in = malloc((n->nin + 1) * sizeof *in), first;
	if (!in)
		return yk_fail(YOKE_ENOMEM, "onnx_write: no memory");
	for (uint32_t i = 0; i < n->nin; i++)
		in[i] = yk_ins(g, n)[i] == YK_NIL ? YK_NIL : j->to_of[yk_ins(g, n)[i]];
	const struct yk_call c = { .op = n->op,
				   .list = n->list,
				   .nin = n->nin,
				   .in = in,
				   .nattr = n->nattr,
				   .attr = yk_attrs(g, n) };
	j->e.g.scope = n->scope;
	err = yk_append_as(&j->e.g, &c, n->nout, g->value + n->out, &first);
	for (uint32_t i = 0; i < n->nout && !err; i++)
		if (is_input(j, n->out + i) < 0)
			j->to_of[n->out + i] = first + i;
	free(in);
	return err;
}

static int copy(struct job *j)
{
	struct yk_graph *g = &j->e.ctx->graph;
	int err = 0;
	j->e.g.paths = g->paths;
	for (int i = 0; i < j->n && !err; i++) {
		const yk_id v = yk_onnx_leaf(&j->e.g, i, &g->value[j->input[i]]);
		j->to_of[j->input[i]] = v;
		err = v == YK_BAD ? yk_error_last() : 0;
	}
	for (size_t k = 0; k < g->nodes && !err; k++) {
		const bool given = g->node[k].nout == 1 && is_input(j, g->node[k].out) >= 0;
		if (j->state[k] & NEEDED && !given)
			err = copy_node(j, k);
	}
	for (int i = 0; i < j->n && !err; i++)
		j->input[i] = j->to_of[j->input[i]];
	for (int i = 0; i < j->m && !err; i++)
		j->root[i] = j->to_of[j->root[i]];
	return err;
}

// ---- names of values ----

int yk_onnx_wide_type(int dtype)
{
	if (dtype == yoke_f16 || dtype == yoke_bf16)
		return YK_ONNX_F32;
	return dtype == yoke_i8 || dtype == yoke_u8 ? YK_ONNX_I32 : yk_onnx_type_of(dtype);
}

const char *yk_onnx_name(struct yk_onnx *e, yk_id v)
{
	const int dtype = e->g.value[v].dtype;
	struct yk_onnx_value *value = &e->value[v];
	if (!value->name)
		value->name = yk_onnx_cast(e, value->wide, yk_onnx_wide_type(dtype),
					   yk_onnx_type_of(dtype));
	return value->name;
}

const char *yk_onnx_wide(struct yk_onnx *e, yk_id v)
{
	const int dtype = e->g.value[v].dtype;
	struct yk_onnx_value *value = &e->value[v];
	if (!value->wide)
		value->wide = yk_onnx_cast(e, value->name, yk_onnx_type_of(dtype),
					   yk_onnx_wide_type(dtype));
	return value->wide;
}

void yk_onnx_set(struct yk_onnx *e, yk_id v, const char *name)
{
	e->value[v].name = name;
}

void yk_onnx_set_wide(struct yk_onnx *e, yk_id v, const char *name)
{
	const int dtype = e->g.value[v].dtype;
	e->value[v].name = yk_onnx_cast(e, name, yk_onnx_wide_type(dtype), yk_onnx_type_of(dtype));
}

// ---- writing ----

static int write_leaf(struct job *j, const struct yk_node *n)
{
	struct yk_onnx *e = &j->e;
	const int64_t at = yk_attrs(&e->g, n)[0].i;
	if (at < YK_ONNX_CONSTANTS) {
		yk_onnx_set(e, n->out, j->input_name[at]);
		return 0;
	}
	struct yk_onnx_constant *c = &e->constant[at - YK_ONNX_CONSTANTS];
	const char *wanted = c->base >= 0 ? e->constant[c->base].wanted : c->wanted;
	if (!c->name)
		c->name = yk_onnx_unique(e, wanted ? wanted : "constant");
	yk_onnx_set(e, n->out, c->name);
	return e->err;
}

static int write_node(struct job *j, const struct yk_node *n)
{
	struct yk_onnx *e = &j->e;
	bool live = false;
	for (uint32_t i = 0; i < n->nout; i++)
		live = live || e->value[n->out + i].live;
	e->path = e->g.paths ? yk_path_name(e->g.paths, n->scope) : "";
	if (!live)
		return 0;
	if (n->op == YK_LEAF)
		return write_leaf(j, n);
	if (!yk_onnx_map(e, n) && !yk_onnx_move(e, n) && !yk_onnx_sum(e, n) && !e->err)
		e->err = yk_op_fail(
			&e->g, n->op, YOKE_EUNSUPPORTED,
			"onnx_write: ONNX has no operator for '%s' of %s", yk_op_def(n->op)->name,
			yoke_dtype_name(e->g.value[n->nin ? yk_ins(&e->g, n)[0] : n->out].dtype));
	return e->err;
}

static const char *end_name(const char *const *names, const char *what, int i, char text[32])
{
	yk_snprintf(text, 32, "%s%d", what, i);
	return names && names[i] ? names[i] : text;
}

// Evaluates all constants at once: assignments are evaluated, too, and overwrite what others need.
static int evaluate(const struct job *j)
{
	yoke_tensor **all = malloc((j->e.constants + 1) * sizeof *all);
	int n = 0;
	if (!all)
		return yk_fail(YOKE_ENOMEM, "onnx_write: no memory");
	for (size_t i = 0; i < j->e.constants; i++)
		if (j->e.constant[i].base < 0 && j->e.constant[i].tensor)
			all[n++] = j->e.constant[i].tensor;
	const int err = n ? yoke_eval(n, all) : 0;
	free(all);
	return err;
}

// Constants are described by their tensors.
static void describe_values(struct yk_onnx *e)
{
	for (size_t k = 0; k < e->g.nodes && !e->err; k++) {
		const struct yk_node *n = &e->g.node[k];
		for (uint32_t i = 0; i < n->nout && n->op != YK_LEAF; i++)
			if (e->value[n->out + i].name)
				yk_onnx_describe_inner(e, e->value[n->out + i].name,
						       &e->g.value[n->out + i]);
	}
}

static int write(struct job *j)
{
	struct yk_onnx *e = &j->e;
	struct yk_onnx_file f = { .path = j->path,
				  .graph = j->options.name ? j->options.name : "yoke",
				  .limit = max_inside - for_nodes };
	char text[32];
	if (j->options.external && j->options.external < f.limit)
		f.limit = j->options.external;
	const char **output = calloc((size_t)j->m + 1, sizeof *output);
	int err = output ? 0 : yk_fail(YOKE_ENOMEM, "onnx_write: no memory");
	for (int i = 0; i < j->n && !err; i++) {
		j->input_name[i] = yk_onnx_unique(e, end_name(j->options.inputs, "input", i, text));
		yk_onnx_describe(e, &f.ends, YK_ONNX_INPUT, j->input_name[i],
				 &e->g.value[j->input[i]]);
		err = e->err;
	}
	for (int i = 0; i < j->m && !err; i++) {
		output[i] = yk_onnx_unique(e, end_name(j->options.outputs, "output", i, text));
		yk_onnx_describe(e, &f.ends, YK_ONNX_OUTPUT, output[i], &e->g.value[j->root[i]]);
		err = e->err;
	}
	for (size_t k = 0; k < e->g.nodes && !err; k++)
		err = write_node(j, &e->g.node[k]);
	e->path = "";
	for (int i = 0; i < j->m && !err; i++) {
		yk_onnx_alias(e, yk_onnx_name(e, j->root[i]), output[i]);
		err = e->err;
	}
	if (!err) {
		yk_onnx_prune(e, j->m, output);
		describe_values(e);
		err = e->err ? e->err : yk_onnx_save(e, &f);
	}
	yk_wire_fini(&f.ends);
	free(output);
	return err;
}

static int start(struct job *j)
{
	struct yk_tensor *first;
	int err = 0;
	if (j->n < 0 || j->m < 1)
		return yk_fail(YOKE_EINVAL,
			       "onnx_write: %d inputs and %d outputs; there is at least one output",
			       j->n, j->m);
	if ((j->n && yk_require_as(j->in, "onnx_write", "list of inputs")) ||
	    yk_require_as(j->out, "onnx_write", "list of outputs") ||
	    yk_require_as(j->path, "onnx_write", "path"))
		return yk_error_last();
	if (yk_only_little(j->path, "ONNX") < 0)
		return yk_error_last();
	if (j->options.weights < 0 ||
	    (j->options.weights && (!j->options.weight || !j->options.weight_names)))
		return yk_fail(YOKE_EINVAL, "onnx_write: the %d named weights have no list",
			       j->options.weights);
	if (!j->out[0] || j->out[0] == YOKE_NONE)
		return yk_fail(yoke_error_code() ? yoke_error_code() : YOKE_EINVAL,
			       "onnx_write: output 0 is not a tensor");
	first = yk_tensor(j->out[0], "onnx_write");
	if (!first)
		return yoke_error_code();
	j->e.ctx = first->ctx;
	j->input = calloc((size_t)j->n + 1, sizeof *j->input);
	j->root = calloc((size_t)(j->n + j->m) + 1, sizeof *j->root);
	j->input_name = calloc((size_t)j->n + 1, sizeof *j->input_name);
	err = j->input && j->root && j->input_name ? 0 :
						     yk_fail(YOKE_ENOMEM, "onnx_write: no memory");
	return err ? err : yk_enter(j->e.ctx);
}

// Inside the context: copies the graph, with handles of its constants.
static int take(struct job *j)
{
	int err = find_values(j);
	const struct yk_graph *g = &j->e.ctx->graph;
	if (err)
		return err;
	j->state = calloc(g->nodes + 1, 1);
	j->to_of = calloc(g->values + 1, sizeof *j->to_of);
	if (!j->state || !j->to_of)
		return yk_fail(YOKE_ENOMEM, "onnx_write: no memory");
	mark(j);
	err = copy(j);
	if (err)
		return err;
	for (int i = 0; i < j->n; i++) // inputs stay, whether they are read or not
		j->root[j->m + i] = j->input[i];
	err = yk_onnx_lower(&j->e, (size_t)(j->m + j->n), j->root);
	for (int i = 0; i < j->n; i++)
		j->input[i] = j->root[j->m + i];
	return err;
}

int yoke_onnx_write(const char *path, int n, yoke_tensor *const *in, int m, yoke_tensor *const *out,
		    const struct yoke_onnx_options *options)
{
	struct job j = { .path = path, .n = n, .in = in, .m = m, .out = out, .e.path = "" };
	int err = options ? yk_sized_read(&j.options, sizeof j.options, options, "onnx_write",
					  "yoke_onnx_options") :
			    0;
	if (!err)
		err = start(&j);
	if (!err) {
		j.e.g.call = NULL;
		err = take(&j);
		yk_leave(j.e.ctx);
		if (!err)
			err = evaluate(&j);
		if (!err)
			err = write(&j);
	}
	for (size_t i = 0; i < j.e.constants; i++)
		if (j.e.constant[i].base < 0 && j.e.constant[i].tensor)
			yoke_free(j.e.constant[i].tensor);
	j.e.g.paths = NULL;
	yk_graph_fini(&j.e.g);
	yk_wire_fini(&j.e.node);
	yk_wire_fini(&j.e.infos);
	yk_arena_fini(&j.e.memory);
	free(j.e.constant);
	yk_onnx_names_fini(&j.e.names);
	free(j.e.nodes);
	free(j.e.value);
	free(j.input);
	free(j.root);
	free(j.input_name);
	free(j.state);
	free(j.to_of);
	return err;
}
