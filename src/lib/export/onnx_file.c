// SPDX-License-Identifier: Apache-2.0
// The file of an ONNX model: nodes with attributes, constants inside or beside it, and the model
// itself. Numbers of fields are those of onnx.proto3.
#include "config.h"

#include "export/onnx.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/half.h"
#include "base/number.h"
#include "formats/gguf_blocks.h"
#include "plan/eval.h"
#include "yoke-quant.h"

enum { IR_VERSION = 9, OPSET = 20 }; // that IR came with that opset
enum { ALIGNMENT = 4096, WINDOW = 4 << 20 };
enum { MAX_GRAPH = INT32_MAX - 4096 }; // the rest of the file is small

int yk_onnx_type_of(int dtype)
{
	static const uint8_t types[YOKE_MAX_DTYPES] = {
		[yoke_f32] = YK_ONNX_F32,   [yoke_f64] = YK_ONNX_F64, [yoke_f16] = YK_ONNX_F16,
		[yoke_bf16] = YK_ONNX_BF16, [yoke_i8] = YK_ONNX_I8,   [yoke_u8] = YK_ONNX_U8,
		[yoke_i32] = YK_ONNX_I32,   [yoke_i64] = YK_ONNX_I64, [yoke_bool] = YK_ONNX_BOOL,
	};
	return types[dtype];
}

static int size_of(int type)
{
	static const uint8_t sizes[] = {
		[YK_ONNX_F32] = 4, [YK_ONNX_U8] = 1,   [YK_ONNX_I8] = 1,   [YK_ONNX_I32] = 4,
		[YK_ONNX_I64] = 8, [YK_ONNX_BOOL] = 1, [YK_ONNX_F16] = 2,  [YK_ONNX_F64] = 8,
		[YK_ONNX_U32] = 4, [YK_ONNX_U64] = 8,  [YK_ONNX_BF16] = 2,
	};
	return sizes[type];
}

static void *no_memory(struct yk_onnx *e)
{
	e->err = yk_fail(YOKE_ENOMEM, "onnx_write: no memory");
	return NULL;
}

// ---- names ----

const char *yk_onnx_unique(struct yk_onnx *e, const char *wanted)
{
	const char *name = e->err ? NULL : yk_onnx_names_unique(&e->names, &e->memory, wanted);
	return name || e->err ? name : no_memory(e);
}

// Constants that were written are found again by a key, which is no name: it begins with a space.
// Its entry is the key, then the name.
static const char *find_key(const struct yk_onnx *e, const char *key)
{
	const struct yk_onnx_name *entry = yk_onnx_names_find(&e->names, key);
	return entry ? entry->text + strlen(entry->text) + 1 : NULL;
}

static void add_key(struct yk_onnx *e, const char *key, const char *name)
{
	const size_t n = strlen(key) + 1, m = strlen(name) + 1;
	char *entry = yk_arena_alloc(&e->memory, n + m);
	if (entry) {
		memcpy(entry, key, n);
		memcpy(entry + n, name, m);
	}
	if (!entry || !yk_onnx_names_add(&e->names, entry))
		no_memory(e);
}

// ---- constants ----

int yk_onnx_constant_new(struct yk_onnx *e, const char *name, int type, int rank,
			 const int64_t *dims)
{
	if (e->err ||
	    yk_grow(&e->constant, &e->constant_cap, e->constants + 1, sizeof *e->constant) < 0) {
		if (!e->err)
			no_memory(e);
		return -1;
	}
	struct yk_onnx_constant *c = &e->constant[e->constants];
	*c = (struct yk_onnx_constant){ .name = name, .type = type, .rank = rank, .base = -1 };
	c->bytes = (uint64_t)size_of(type);
	for (int i = 0; i < rank; i++)
		c->bytes *= (uint64_t)(c->dims[i] = dims[i]);
	return (int)e->constants++;
}

// key: what equal constants are found by, with a space before the name that the first one gets;
// NULL: none.
static const char *small(struct yk_onnx *e, const char *key, int type, int rank,
			 const int64_t *dims, const void *data)
{
	const char *found = key ? find_key(e, key) : NULL;
	if (found)
		return found;
	const char *name = yk_onnx_unique(e, key ? key + 1 : "numbers");
	const int i = yk_onnx_constant_new(e, name, type, rank, dims);
	if (i < 0)
		return NULL;
	void *to = yk_arena_alloc(&e->memory, e->constant[i].bytes + 1);
	if (!to)
		return no_memory(e);
	memcpy(to, data, e->constant[i].bytes);
	e->constant[i].data = to;
	if (key)
		add_key(e, key, name);
	return name;
}

// A constant without axes, by its bits.
static const char *scalar(struct yk_onnx *e, int type, uint64_t bits)
{
	char key[64];
	unsigned char bytes[8];
	yk_snprintf(key, sizeof key, " number.%d.%" PRIx64, type, bits);
	for (int i = 0; i < 8; i++)
		bytes[i] = bits >> 8 * i & 255;
	return small(e, key, type, 0, NULL, bytes);
}

const char *yk_onnx_integer(struct yk_onnx *e, int type, int64_t value)
{
	const uint64_t used =
		size_of(type) == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * size_of(type)) - 1;
	return scalar(e, type, (uint64_t)value & used);
}

const char *yk_onnx_number(struct yk_onnx *e, int type, double value)
{
	uint64_t bits = 0;
	const float f = (float)value;
	if (type != YK_ONNX_F64 && type != YK_ONNX_F32)
		return yk_onnx_integer(e, type, (int64_t)value);
	if (type == YK_ONNX_F64)
		memcpy(&bits, &value, sizeof value);
	else
		memcpy(&bits, &f, sizeof f);
	return scalar(e, type, bits);
}

const char *yk_onnx_ints(struct yk_onnx *e, int64_t n, const int64_t *v)
{
	char key[200] = " numbers";
	const bool few = n <= 8;
	int at = (int)strlen(key);
	for (int64_t i = 0; i < n && few; i++)
		at += yk_snprintf(key + at, sizeof key - (size_t)at, ".%" PRId64, v[i]);
	return small(e, few ? key : NULL, YK_ONNX_I64, 1, &n,
		     v);
}

// ---- nodes ----

static void add_attr(struct yk_onnx *e, struct yk_wire *node, const struct yk_onnx_attr *a)
{
	struct yk_wire w = { 0 }, list = { 0 };
	yk_wire_text(&w, 1, a->name);
	if (a->kind == YK_ONNX_FLOAT)
		yk_wire_f32(&w, 2, a->f);
	if (a->kind == YK_ONNX_INT)
		yk_wire_int(&w, 3, (uint64_t)a->i);
	if (a->kind == YK_ONNX_STRING)
		yk_wire_text(&w, 4, a->text);
	for (int64_t i = 0; a->kind == YK_ONNX_INTS && i < a->i; i++)
		yk_wire_add(&list, (uint64_t)a->ints[i]);
	if (a->kind == YK_ONNX_INTS)
		yk_wire_bytes(&w, 8, list.at, list.n);
	yk_wire_int(&w, 20, a->kind);
	yk_wire_bytes(node, 5, w.at, w.n);
	if (w.failed || list.failed)
		no_memory(e);
	yk_wire_fini(&w);
	yk_wire_fini(&list);
}

static void name_node(struct yk_onnx *e, const char *op, char name[400])
{
	char path[YK_ONNX_NAME] = "";
	if (*e->path)
		yk_onnx_clean(e->path, path);
	yk_snprintf(name, 400, "%s%s%s_%zu", path, *path ? "/" : "", op, ++e->count);
}

static void record_node(struct yk_onnx *e, size_t at, uint32_t nin, const char *const *in,
			uint32_t nout, const char *const *out)
{
	const char **ends = yk_arena_alloc(&e->memory, (nin + nout) * sizeof *ends);
	if (!ends || yk_grow(&e->nodes, &e->node_cap, e->node_count + 1, sizeof *e->nodes) < 0) {
		no_memory(e);
		return;
	}
	for (uint32_t i = 0; i < nin + nout; i++)
		ends[i] = i < nin ? in[i] : out[i - nin];
	e->nodes[e->node_count++] = (struct yk_onnx_node){
		.at = at, .n = e->node.n - at, .nin = nin, .nout = nout, .ends = ends
	};
}

static void add_node(struct yk_onnx *e, const char *op, const char *name, uint32_t nin,
		     const char *const *in, uint32_t nattr, const struct yk_onnx_attr *attr,
		     uint32_t nout, const char *const *out)
{
	struct yk_wire w = { 0 };
	bool given = !e->err;
	for (uint32_t i = 0; i < nin; i++)
		given = given && in[i];
	for (uint32_t i = 0; i < nin && given; i++)
		yk_wire_text(&w, 1, in[i]);
	for (uint32_t i = 0; i < nout && given; i++)
		yk_wire_text(&w, 2, out[i]);
	yk_wire_text(&w, 3, name);
	yk_wire_text(&w, 4, op);
	for (uint32_t i = 0; i < nattr; i++)
		add_attr(e, &w, &attr[i]);
	const size_t at = e->node.n;
	if (given && !e->err)
		yk_wire_bytes(&e->node, 1, w.at, w.n);
	if (w.failed || e->node.failed)
		no_memory(e);
	else if (given && !e->err)
		record_node(e, at, nin, in, nout, out);
	yk_wire_fini(&w);
}

void yk_onnx_node_many(struct yk_onnx *e, const char *op, uint32_t nin, const char *const *in,
		       uint32_t nattr, const struct yk_onnx_attr *attr, uint32_t nout,
		       const char **out)
{
	char name[400];
	name_node(e, op, name);
	for (uint32_t i = 0; i < nout; i++)
		if (!out[i])
			out[i] = yk_onnx_unique(e, name);
	add_node(e, op, name, nin, in, nattr, attr, nout, out);
}

void yk_onnx_alias(struct yk_onnx *e, const char *from, const char *to)
{
	char name[400];
	name_node(e, "Identity", name);
	add_node(e, "Identity", name, 1, &from, 0, NULL, 1, &to);
}

const char *yk_onnx_node(struct yk_onnx *e, const char *op, uint32_t nin, const char *const *in,
			 uint32_t nattr, const struct yk_onnx_attr *attr)
{
	const char *out = NULL;
	yk_onnx_node_many(e, op, nin, in, nattr, attr, 1, &out);
	return out;
}

const char *yk_onnx_cast(struct yk_onnx *e, const char *x, int from, int to)
{
	const struct yk_onnx_attr attr = YK_ONNX_I("to", to);
	return from == to ? x : yk_onnx_node(e, "Cast", 1, &x, 1, &attr);
}

void yk_onnx_describe(struct yk_onnx *e, struct yk_wire *to, unsigned field, const char *name,
		      const struct yk_value *v)
{
	struct yk_wire shape = { 0 }, tensor = { 0 }, type = { 0 }, info = { 0 };
	if (e->err)
		return;
	for (int i = 0; i < v->rank; i++) {
		struct yk_wire dim = { 0 };
		yk_wire_int(&dim, 1, (uint64_t)v->dims[i]);
		yk_wire_bytes(&shape, 1, dim.at, dim.n);
		shape.failed |= dim.failed;
		yk_wire_fini(&dim);
	}
	yk_wire_int(&tensor, 1, (uint64_t)yk_onnx_type_of(v->dtype));
	yk_wire_bytes(&tensor, 2, shape.at, shape.n);
	yk_wire_bytes(&type, 1, tensor.at, tensor.n);
	yk_wire_text(&info, 1, name);
	yk_wire_bytes(&info, 2, type.at, type.n);
	yk_wire_bytes(to, field, info.at, info.n);
	if (shape.failed || tensor.failed || type.failed || info.failed || to->failed)
		no_memory(e);
	yk_wire_fini(&shape);
	yk_wire_fini(&tensor);
	yk_wire_fini(&type);
	yk_wire_fini(&info);
	struct yk_onnx_name *entry = yk_onnx_names_find(&e->names, name);
	if (entry)
		entry->described = true;
}

void yk_onnx_describe_inner(struct yk_onnx *e, const char *name, const struct yk_value *v)
{
	const struct yk_onnx_name *entry = yk_onnx_names_find(&e->names, name);
	if (entry && entry->used && !entry->described)
		yk_onnx_describe(e, &e->infos, YK_ONNX_INFO, name, v);
}

// ---- what is kept ----

static bool is_used(const struct yk_onnx *e, const char *name)
{
	const struct yk_onnx_name *entry = yk_onnx_names_find(&e->names, name);
	return entry && entry->used; // the name of an absent operand or result is ""
}

static void mark_used(struct yk_onnx *e, uint32_t n, const char *const *name)
{
	for (uint32_t i = 0; i < n; i++) {
		struct yk_onnx_name *entry = yk_onnx_names_find(&e->names, name[i]);
		if (entry)
			entry->used = true;
	}
}

void yk_onnx_prune(struct yk_onnx *e, int outputs, const char *const *output)
{
	size_t at = 0;
	mark_used(e, (uint32_t)outputs, output);
	for (size_t k = e->node_count; k-- > 0;) {
		struct yk_onnx_node *n = &e->nodes[k];
		bool used = false;
		for (uint32_t i = n->nin; i < n->nin + n->nout; i++)
			used = used || is_used(e, n->ends[i]);
		if (used)
			mark_used(e, n->nin, n->ends);
		else
			n->n = 0;
	}
	for (size_t k = 0; k < e->node_count; k++) {
		const struct yk_onnx_node *n = &e->nodes[k];
		memmove(e->node.at + at, e->node.at + n->at, n->n);
		at += n->n;
	}
	e->node.n = at;
	for (size_t i = 0; i < e->constants; i++)
		if (e->constant[i].name && !is_used(e, e->constant[i].name))
			e->constant[i].name = NULL;
}

// ---- data ----

// Copies a tensor's bytes in windows.
static int write_bytes(const struct yk_onnx_constant *c, struct yk_file_writer *to)
{
	char *window = malloc(WINDOW);
	int err = window ? 0 : yk_fail(YOKE_ENOMEM, "onnx_write: no memory");
	for (uint64_t at = 0; at < c->bytes && !err; at += WINDOW) {
		const size_t n = c->bytes - at < WINDOW ? (size_t)(c->bytes - at) : WINDOW;
		err = yk_read_part(c->tensor, at, window, n);
		if (!err)
			err = yk_file_add(to, window, n);
	}
	free(window);
	return err;
}

// The numbers of quantized rows, as f32.
static int write_rows(const struct yk_onnx_constant *c, struct yk_file_writer *to)
{
	const size_t bytes = (size_t)yoke_quant_bytes(c->format, c->row), rows = (size_t)c->dims[0];
	const size_t each = bytes < WINDOW ? WINDOW / bytes : 1, max = each < rows ? each : rows;
	char *from = malloc(max * bytes + 1);
	float *values = malloc(max * (size_t)c->row * sizeof *values + 1);
	int err = from && values ? 0 : yk_fail(YOKE_ENOMEM, "onnx_write: no memory");
	for (size_t at = 0; at < rows && !err; at += max) {
		const size_t n = rows - at < max ? rows - at : max, count = n * (size_t)c->row;
		err = yk_read_part(c->tensor, at * bytes, from, n * bytes);
		if (!err && !yk_gguf_to_f32((enum yk_gguf_format)c->format, from, count, values))
			err = yk_fail(YOKE_EUNSUPPORTED,
				      "onnx_write: weights of format %d cannot be converted",
				      c->format);
		if (!err)
			err = yk_file_add(to, values, count * sizeof *values);
	}
	free(from);
	free(values);
	return err;
}

static int write_data(const struct yk_onnx_constant *c, struct yk_file_writer *to)
{
	if (!c->tensor)
		return yk_file_add(to, c->data, c->bytes);
	return c->row ? write_rows(c, to) : write_bytes(c, to);
}

// ---- the model ----

static void add_entry(struct yk_wire *to, unsigned field, const char *key, const char *value)
{
	struct yk_wire w = { 0 };
	yk_wire_text(&w, 1, key);
	yk_wire_text(&w, 2, value);
	yk_wire_bytes(to, field, w.at, w.n);
	to->failed |= w.failed;
	yk_wire_fini(&w);
}

// TensorProto up to its data; external: the file that has the data, else NULL.
static struct yk_wire head_of(const struct yk_onnx_constant *c, const char *external)
{
	struct yk_wire w = { 0 }, dims = { 0 };
	char text[32];
	for (int i = 0; i < c->rank; i++)
		yk_wire_add(&dims, (uint64_t)c->dims[i]);
	if (c->rank)
		yk_wire_bytes(&w, 1, dims.at, dims.n);
	yk_wire_int(&w, 2, (uint64_t)c->type);
	yk_wire_text(&w, 8, c->name);
	if (external) {
		add_entry(&w, 13, "location", external);
		yk_snprintf(text, sizeof text, "%" PRIu64, c->place);
		add_entry(&w, 13, "offset", text);
		yk_snprintf(text, sizeof text, "%" PRIu64, c->bytes);
		add_entry(&w, 13, "length", text);
		yk_wire_int(&w, 14, 1);
	} else {
		yk_wire_head(&w, 9, c->bytes);
	}
	w.failed |= dims.failed;
	yk_wire_fini(&dims);
	return w;
}

static bool is_apart(const struct yk_onnx_constant *c, bool external)
{
	return external && c->tensor && c->bytes;
}

static uint64_t aligned(uint64_t at)
{
	return (at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static int write_apart(struct yk_onnx *e, struct yk_file_writer *to)
{
	static const char zeros[ALIGNMENT];
	int err = 0;
	for (size_t i = 0; i < e->constants && !err; i++) {
		struct yk_onnx_constant *c = &e->constant[i];
		if (!c->name || !is_apart(c, true))
			continue;
		c->place = aligned(to->bytes);
		err = yk_file_add(to, zeros, (size_t)(c->place - to->bytes));
		if (!err)
			err = write_data(c, to);
	}
	return err;
}

static uint64_t bytes_of_head(uint64_t n, unsigned field)
{
	struct yk_wire w = { 0 };
	yk_wire_head(&w, field, n);
	const uint64_t bytes = w.n;
	yk_wire_fini(&w);
	return bytes;
}

// The model up to its graph, whose constants follow.
static int write_model(struct yk_onnx *e, const struct yk_onnx_file *f, const char *external,
		       struct yk_file_writer *to)
{
	struct yk_wire w = { 0 }, opset = { 0 }, graph = { 0 },
		       *head = calloc(e->constants + 1, sizeof *head);
	char name[YK_ONNX_NAME];
	int err = head ? 0 : yk_fail(YOKE_ENOMEM, "onnx_write: no memory");
	yk_onnx_clean(f->graph, name);
	yk_wire_text(&graph, 2, name);
	uint64_t all = e->node.n + e->infos.n + f->ends.n + graph.n;
	for (size_t i = 0; i < e->constants && !err; i++) {
		const struct yk_onnx_constant *c = &e->constant[i];
		if (!c->name)
			continue;
		const bool apart = is_apart(c, external);
		head[i] = head_of(c, apart ? external : NULL);
		const uint64_t n = head[i].n + (apart ? 0 : c->bytes);
		all += bytes_of_head(n, 5) + n;
		graph.failed |= head[i].failed;
	}
	if (all > MAX_GRAPH && !err)
		err = yk_fail(YOKE_EUNSUPPORTED,
			      "onnx_write: a graph of %" PRIu64
			      " bytes besides external data; readers take 2 GB",
			      all);
	yk_wire_int(&w, 1, IR_VERSION);
	yk_wire_text(&w, 2, "yoke");
	yk_wire_text(&w, 3, yoke_version());
	yk_wire_text(&opset, 1, "");
	yk_wire_int(&opset, 2, OPSET);
	yk_wire_bytes(&w, 8, opset.at, opset.n);
	yk_wire_head(&w, 7, all);
	if (!err && (w.failed || opset.failed || graph.failed || f->ends.failed))
		err = yk_fail(YOKE_ENOMEM, "onnx_write: no memory");
	const struct yk_wire *const parts[] = { &w, &graph, &e->node, &f->ends, &e->infos };
	for (size_t i = 0; i < sizeof parts / sizeof *parts && !err; i++)
		err = yk_file_add(to, parts[i]->at, parts[i]->n);
	for (size_t i = 0; i < e->constants && !err; i++) {
		const struct yk_onnx_constant *c = &e->constant[i];
		const bool apart = is_apart(c, external);
		if (!c->name)
			continue;
		struct yk_wire field = { 0 };
		yk_wire_head(&field, 5, head[i].n + (apart ? 0 : c->bytes));
		err = field.failed ? yk_fail(YOKE_ENOMEM, "onnx_write: no memory") :
				     yk_file_add(to, field.at, field.n);
		yk_wire_fini(&field);
		if (!err)
			err = yk_file_add(to, head[i].at, head[i].n);
		if (!err && !apart)
			err = write_data(c, to);
	}
	for (size_t i = 0; i < e->constants && head; i++)
		yk_wire_fini(&head[i]);
	free(head);
	yk_wire_fini(&w);
	yk_wire_fini(&opset);
	yk_wire_fini(&graph);
	return err;
}

int yk_onnx_save(struct yk_onnx *e, const struct yk_onnx_file *f)
{
	struct yk_file_writer model = { .fd = -1 }, data = { .fd = -1 };
	uint64_t all = 0;
	char *path = NULL;
	for (size_t i = 0; i < e->constants; i++)
		all += e->constant[i].name ? e->constant[i].bytes : 0;
	if (asprintf(&path, "%s.data", f->path) < 0)
		return yk_fail(YOKE_ENOMEM, "onnx_write: no memory");
	const bool apart = all > f->limit;
	int err = 0;
	if (apart && !yk_onnx_is_utf8(last_part(path)))
		err = yk_fail(
			YOKE_EINVAL,
			"onnx_write: %s: the model names this file, and its name is not UTF-8",
			path);
	if (!err)
		err = yk_file_begin(&model, f->path);
	if (!err && apart)
		err = yk_file_begin(&data, path);
	if (!err && apart)
		err = write_apart(e, &data);
	if (!err)
		err = write_model(e, f, apart ? last_part(path) : NULL, &model);
	if (!err)
		err = apart ? yk_file_commit_both(&data, &model) : yk_file_commit(&model);
	yk_file_abort(&data);
	yk_file_abort(&model);
	free(path);
	return err;
}
