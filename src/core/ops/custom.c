// SPDX-License-Identifier: Apache-2.0
// Registration of custom ops: their definitions, kernel sources, and the source handed to a device.
#include "config.h"

#include "ops/custom.h"

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/sized.h"

enum { LIMIT = 1024, TEXT = 1 << 20, CPU_WORK = 1 << 12, CPU_CHUNKS = 256 };

static struct yk_custom *_Atomic own[LIMIT]; // never freed
static atomic_int owns;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // serializes registration

const struct yk_op_def *yk_custom_def(int op)
{
	return &atomic_load_explicit(&own[(op - YK_OPS) / 2], memory_order_relaxed)
			->row[(op - YK_OPS) % 2];
}

struct yk_custom *yk_custom_of(int number)
{
	return number > 0 && number <= atomic_load(&owns) ? atomic_load(&own[number - 1]) : NULL;
}

int yoke_op_find(const char *name)
{
	const int n = atomic_load(&owns);
	for (int i = 0; name && i < n; i++)
		if (!strcmp(atomic_load(&own[i])->def.name, name))
			return i + 1;
	return yk_fail(YOKE_ENOENT, "op_find: there is no op '%s'", name ? name : "");
}

int yoke_op_fail(const struct yoke_op_args *a, int code, const char *why)
{
	return yk_fail(code, "%s: %s", a ? a->name : "an op", why ? why : "");
}

// ---- arguments of callbacks ----

static void see_value(struct yoke_op_tensor *to, const struct yk_value *v)
{
	*to = (struct yoke_op_tensor){ .dtype = v ? v->dtype : YOKE_DTYPE_NONE,
				       .rank = v ? v->rank : 0 };
	if (v)
		memcpy(to->dims, v->dims, v->rank * sizeof *v->dims);
}

static struct yoke_op_args args_of(const struct yk_custom *o, struct yk_custom_args *s,
				   const union yoke_attr *attr)
{
	return (struct yoke_op_args){
		.size = sizeof s->args, .name = o->def.name, .nin = o->def.nin, .nout = o->def.nout,
		.nattr = o->def.nattr, .in = s->in, .out = s->out, .attr = attr, .arg = o->def.arg,
	};
}

void yk_custom_see(const struct yk_custom *o, const struct yk_graph *g, const yk_id *in,
		   const union yoke_attr *attr, const struct yk_value *outs,
		   struct yk_custom_args *to)
{
	to->args = args_of(o, to, attr);
	for (int i = 0; i < o->def.nin; i++)
		see_value(&to->in[i], in[i] == YK_NIL ? NULL : &g->value[in[i]]);
	for (int i = 0; i < o->def.nout; i++)
		see_value(&to->out[i], outs ? &outs[i] : NULL);
}

static void see_view(struct yoke_op_tensor *to, const struct yoke_view *v, void *data)
{
	*to = (struct yoke_op_tensor){ .data = data };
	if (v->kind == YOKE_VIEW_NONE)
		return;
	to->dtype = v->dtype;
	to->rank = v->rank;
	memcpy(to->dims, v->dims, sizeof to->dims);
	memcpy(to->strides, v->strides, sizeof to->strides);
}

static void see_op(const struct yk_custom *o, const struct yoke_op *op, void *const *data,
		   struct yk_custom_args *to)
{
	to->args = args_of(o, to, op->attr);
	for (uint32_t i = 0; i < op->nout; i++)
		see_view(&to->out[i], &op->out[i], data ? data[i] : NULL);
	for (uint32_t i = 0; i < op->nin; i++)
		see_view(&to->in[i], &op->in[i], data ? data[op->nout + i] : NULL);
}

// ---- shapes ----

static char *describe(const struct yoke_op_tensor *t, char *to)
{
	struct yk_value v = { .dtype = (uint8_t)t->dtype, .rank = (uint8_t)t->rank };
	if (t->dtype == YOKE_DTYPE_NONE || t->rank < 0 || t->rank > YOKE_MAX_RANK)
		return strcpy(to, "nothing");
	memcpy(v.dims, t->dims, sizeof v.dims);
	return yk_describe(&v, to);
}

// Calls the shape function and validates its results like untrusted input.
static int call_shape(const struct yk_custom *o, const struct yk_custom_args *s,
		      struct yoke_op_tensor *out)
{
	struct yoke_op_args args = s->args;
	char text[160];
	args.out = NULL;
	for (int i = 0; i < o->def.nout; i++)
		out[i] = (struct yoke_op_tensor){ 0 };
	const int err = o->def.shape(&args, out);
	if (err > 0)
		return yk_fail(
			YOKE_EINVAL,
			"%s: its shape function returned %d, which is neither 0 nor an error",
			o->def.name, err);
	if (err)
		return yoke_error_code() ?
			       err :
			       yk_fail(err,
				       "%s: its shape function refuses the operands, the first %s",
				       o->def.name,
				       o->def.nin ? describe(&s->in[0], text) : "absent");
	for (int i = 0; i < o->def.nout; i++) {
		uint64_t bytes = yoke_dtype_size(out[i].dtype);
		bool good = bytes && out[i].rank >= 0 && out[i].rank <= YOKE_MAX_RANK;
		for (int k = 0; good && k < out[i].rank; k++)
			good = out[i].dims[k] >= 0 &&
			       !__builtin_mul_overflow(
				       bytes, (uint64_t)(out[i].dims[k] ? out[i].dims[k] : 1),
				       &bytes) &&
			       bytes <= INT64_MAX;
		if (!good)
			return yk_fail(
				YOKE_ESHAPE,
				"%s: its shape function returned an invalid tensor: result %d of dtype %d "
				"and rank %d",
				o->def.name, i, out[i].dtype, out[i].rank);
	}
	return 0;
}

static const struct yk_custom *own_of(const struct yk_call *c)
{
	return yk_op_def(c->op)->custom;
}

int yk_shape_custom(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	struct yk_custom_args s;
	struct yoke_op_tensor shapes[YOKE_OP_MAX_OUT];
	const struct yk_custom *o = own_of(c);
	yk_custom_see(o, g, c->in, c->attr, NULL, &s);
	const int err = call_shape(o, &s, shapes);
	for (int i = 0; i < o->def.nout && !err; i++) {
		out[i] = (struct yk_value){ .dtype = (uint8_t)shapes[i].dtype,
					    .rank = (uint8_t)shapes[i].rank };
		memcpy(out[i].dims, shapes[i].dims,
		       (size_t)shapes[i].rank * sizeof *shapes[i].dims);
	}
	return err;
}

int yk_shape_custom_joined(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_custom *o = own_of(c);
	for (int i = 0; i < o->def.nout; i++)
		out[i] = g->value[c->in[o->def.nin + i]];
	return 0;
}

static int is_same_result(const struct yk_custom *o, const struct yk_custom_args *s)
{
	struct yoke_op_tensor now[YOKE_OP_MAX_OUT];
	char was[160], is[160];
	const int err = call_shape(o, s, now);
	for (int i = 0; i < o->def.nout && !err; i++) {
		bool same = now[i].dtype == s->out[i].dtype && now[i].rank == s->out[i].rank;
		for (int k = 0; same && k < now[i].rank; k++)
			same = now[i].dims[k] == s->out[i].dims[k];
		if (!same)
			return yk_fail(
				YOKE_EINVAL,
				"%s: its shape function returned %s for result %d, but %s for the same "
				"operands when it was recorded",
				o->def.name, describe(&now[i], is), i, describe(&s->out[i], was));
	}
	return err;
}

// ---- sources for devices ----

static int run_chunk(const void *arg, const struct yoke_op *op, void *const *data, int64_t chunk,
		     int64_t chunks)
{
	const struct yk_custom *o = arg;
	struct yk_custom_args s;
	see_op(o, op, data, &s);
	return o->def.cpu(&s.args, chunk, chunks);
}

static int64_t elements(const struct yoke_op_tensor *t)
{
	int64_t n = 1;
	for (int i = 0; i < t->rank; i++)
		n *= t->dims[i];
	return n;
}

static int geometry(const struct yk_custom *o, const struct yk_custom_args *s,
		    struct yoke_source *to)
{
	const int64_t n = elements(&s->out[0]);
	uint64_t *global = to->global, *local = to->local;
	global[0] = (uint64_t)n;
	global[1] = global[2] = 1;
	const int err = o->def.geometry ? o->def.geometry(&s->args, global, local) : 0;
	if (err && !yoke_error_code())
		yk_fail(err, "%s: its geometry function returned %d", o->def.name, err);
	const bool groups = local[0] || local[1] || local[2];
	for (int i = 0; i < 3; i++) {
		local[i] = groups && !local[i] ? 1 : local[i];
		global[i] = global[i] ? global[i] : 1;
		if (local[i] && global[i] % local[i] &&
		    __builtin_add_overflow(global[i], local[i] - global[i] % local[i], &global[i]))
			return yk_fail(YOKE_ERANGE, "%s: its geometry has too many work items",
				       o->def.name);
	}
	return err < 0 ? err : err ? YOKE_EINVAL : 0;
}

int yk_custom_source(const struct yk_custom *o, struct yoke_op *op, struct yk_device *d,
		     struct yoke_source *to)
{
	struct yk_custom_args s;
	see_op(o, op, NULL, &s);
	int err = is_same_result(o, &s);
	*to = (struct yoke_source){ .size = sizeof *to, .dialect = YOKE_DIALECT_HOST };
	op->source = to;
	if (!err && o->def.cpu) {
		int64_t n = elements(&s.out[0]);
		// a reduction has few results, so operands count too
		for (int i = 0; i < o->def.nin; i++)
			n = elements(&s.in[i]) > n ? elements(&s.in[i]) : n;
		n /= CPU_WORK;
		to->hash = o->hash[0];
		to->host = run_chunk;
		to->arg = o;
		to->chunks = n < 1 ? 1 : n < CPU_CHUNKS ? n : CPU_CHUNKS;
		to->strided = (o->def.flags & YOKE_STRIDED) != 0;
		if (yk_device_can(d, op))
			return 0;
	}
	if (err || !o->def.text || (err = geometry(o, &s, to)) < 0)
		return err;
	to->host = NULL;
	to->text = o->def.text;
	to->entry = o->def.entry;
	for (uint32_t dialect = YOKE_DIALECT_OPENCL; dialect <= YOKE_DIALECT_CUDA; dialect++) {
		to->dialect = dialect;
		to->hash = o->hash[dialect];
		if (yk_device_can(d, op))
			break;
	}
	return 0;
}

// ---- registering ----

static bool is_name(const char *name)
{
	int dots = 0, n = 0;
	for (; name[n] && n < 80; n++) {
		dots += name[n] == '.';
		if (!isalnum((unsigned char)name[n]) && name[n] != '_' && name[n] != '.')
			return false;
	}
	return n >= 3 && n < 80 && dots == 1 && name[0] != '.' && name[n - 1] != '.';
}

static int whole(const struct yoke_op_def *d)
{
	const char *what = NULL;
	if (!d->name || !is_name(d->name))
		return yk_fail(
			YOKE_EINVAL,
			"op_register: '%.80s' is no name; one is like acme.gate, of letters, digits, _ and "
			"one '.'",
			d->name ? d->name : "");
	if (d->nin < 0 || d->nin > YOKE_OP_MAX_IN || d->nout < 1 || d->nout > YOKE_OP_MAX_OUT ||
	    d->nattr < 0 || d->nattr > YOKE_MAX_ATTRS)
		what = "takes 0 to 16 operands and 0 to 16 attributes, and gives 1 to 8 results";
	else if (!d->shape)
		what = "has no shape function";
	else if (!d->decompose && !d->cpu && !d->text)
		what = "has neither a decomposition nor a CPU function nor a kernel text";
	else if (d->text && (!d->entry || !*d->entry))
		what = "has a text without the name of its kernel";
	else if (d->text && strlen(d->text) > TEXT)
		what = "has a text of more than 1 MiB";
	else if (d->flags & ~(unsigned)YOKE_STRIDED)
		what = "has unknown flags";
	return what ? yk_fail(YOKE_EINVAL, "op_register: %s %s", d->name, what) : 0;
}

// The source with #line directives, so that compilers report its own line numbers under the op's
// name.
static char *numbered(const char *text, const char *name)
{
	char *to = NULL;
	size_t bytes;
	FILE *f = open_memstream(&to, &bytes);
	if (!f)
		return NULL;
	fprintf(f, "#line 1 \"%s\"\n", name);
	for (int line = 2; *text; line++) {
		const size_t n = strcspn(text, "\n"), blank = strspn(text, " \t");
		fprintf(f, "%.*s\n", (int)n, text);
		if (text[blank] == '#' &&
		    !strncmp(text + blank + 1 + strspn(text + blank + 1, " \t"), "include", 7))
			fprintf(f, "#line %d \"%s\"\n", line, name);
		text += n + (text[n] == '\n');
	}
	return fclose(f) ? free(to), NULL : to;
}

static void rows_of(struct yk_custom *o)
{
	const struct yk_op_def row = {
		.name = o->def.name,
		.min_in = (uint32_t)o->def.nin,
		.max_in = (uint32_t)o->def.nin,
		.nout = (uint8_t)o->def.nout,
		.grad = yk_grad_custom,
		.custom = o,
	};
	o->row[0] = o->row[1] = row;
	o->row[0].code = YOKE_OP_SOURCE;
	o->row[0].shape = yk_shape_custom;
	o->row[1].flags = YK_F_VIEW;
	o->row[1].shape = yk_shape_custom_joined;
	o->row[1].min_in = o->row[1].max_in = (uint32_t)(o->def.nin + o->def.nout);
	o->row[1].joined = true;
}

static void own_free(struct yk_custom *o)
{
	if (!o)
		return;
	free((void *)o->def.name);
	free((void *)o->def.text);
	free((void *)o->def.entry);
	free(o);
}

static struct yk_custom *own_new(const struct yoke_op_def *d)
{
	struct yk_custom *o = calloc(1, sizeof *o);
	if (!o)
		return NULL;
	o->def = *d;
	o->def.name = strdup(d->name);
	o->def.text = d->text ? numbered(d->text, d->name) : NULL;
	o->def.entry = d->text ? strdup(d->entry) : NULL;
	if (!o->def.name || (d->text && (!o->def.text || !o->def.entry))) {
		own_free(o);
		return NULL;
	}
	o->hash[0] = yk_hash(d->name, strlen(d->name), 0);
	for (uint32_t k = 1; d->text && k < 3; k++)
		o->hash[k] = yk_hash(o->def.entry, strlen(o->def.entry),
				     yk_hash(o->def.text, strlen(o->def.text), k));
	rows_of(o);
	return o;
}

int yoke_op_register(const struct yoke_op_def *given)
{
	struct yoke_op_def d = { 0 };
	int err = yk_sized_read(&d, sizeof d, given, "op_register", "yoke_op_def");
	if (err || (err = whole(&d)))
		return err;
	struct yk_custom *o = own_new(&d);
	if (!o)
		return yk_fail(YOKE_ENOMEM, "op_register: no memory for %s", d.name);
	pthread_mutex_lock(&lock);
	const int n = atomic_load(&owns);
	for (int i = 0; i < n && !err; i++)
		if (!strcmp(atomic_load(&own[i])->def.name, d.name))
			err = yk_fail(
				YOKE_EINVAL,
				"op_register: there is an op %s already; choose another name, or call that one",
				d.name);
	if (!err && n == LIMIT)
		err = yk_fail(YOKE_ERANGE,
			      "op_register: there are %d ops of the application's already", LIMIT);
	if (!err) {
		o->op = (uint16_t)(YK_OPS + 2 * n);
		atomic_store(&own[n], o);
		atomic_store(&owns, n + 1);
	}
	pthread_mutex_unlock(&lock);
	if (err)
		own_free(o);
	return err ? err : n + 1;
}
