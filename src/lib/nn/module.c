// SPDX-License-Identifier: Apache-2.0
// Modules: trees of parameters and buffers, with walks over all tensors of a tree.
#include "config.h"

#include "nn/module.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/half.h"
#include "base/sized.h"
#include "formats/safetensors.h"
#include "graph/context.h"
#include "graph/handle.h"

bool yk_module_given(const struct yoke_module *m, const char *what)
{
	return !yk_given_as(m, what, "module");
}

// ---- contexts ----

// The context of the first live tensor of a module and its descendants; NULL: there is none.
static yoke_context *context_of(const struct yoke_module *m)
{
	yoke_context *ctx = NULL;
	for (size_t i = 0; i < m->n && !ctx; i++)
		if (yk_is_alive(m->own[i].tensor))
			ctx = yk_tensor(m->own[i].tensor, "module")->ctx;
	for (size_t i = 0; i < m->children && !ctx; i++)
		ctx = context_of(m->child[i]);
	return ctx;
}

// All tensors of a module must be in one context: is that true after `other` is added?
static int one_context(const struct yoke_module *m, const yoke_context *other, const char *what, const char *name)
{
	while (m->parent)
		m = m->parent;
	const yoke_context *ctx = other ? context_of(m) : NULL;
	return !ctx || ctx == other ? 0 : yk_fail(YOKE_ECONTEXT, "%s: %s '%s' is of another context than the module's "
		"parameters; make it in the thread, or after yoke_use of the context, that has them", m->class->name, what, name);
}

// ---- construction ----

yoke_module *yoke_module_new(const struct yoke_module_class *class, void *state)
{
	struct yoke_module *m = NULL;
	const int size = yk_sized_check(class, sizeof class->size, "module_new", "yoke_module_class");
	const bool sound = size >= (int)sizeof *class;
	if (size >= 0 && (!sound || !class->name || !class->forward))
		yk_fail(YOKE_EINVAL, "module_new: the class has no name or no forward function, or its size is %d instead of %zu",
			size, sizeof *class);
	else if (size < 0)
		return NULL;
	else if (!(m = calloc(1, sizeof *m)))
		yk_fail(YOKE_ENOMEM, "%s: no memory", class->name);
	else
		*m = (struct yoke_module){ .class = class, .state = state };
	if (!m && sound && class->release)
		class->release(state);
	return m;
}

// Releases an entry's reference to its tensor; the last one frees it.
static void drop(struct yk_module_own *o)
{
	if (o->places && --*o->places == 0) {
		free(o->places);
		o->places = NULL;
	}
	if (!o->shared && !o->places)
		yoke_free(o->tensor);
	o->places = NULL;
	o->tensor = NULL;
}

// Frees a module without removing it from its parent.
static void module_fini(struct yoke_module *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->children; i++)
		module_fini(m->child[i]);
	for (size_t i = 0; i < m->n; i++) {
		drop(&m->own[i]);
		free(m->own[i].name);
		free(m->own[i].path);
	}
	if (m->class->release)
		m->class->release(m->state);
	free(m->own);
	free(m->child);
	free(m->name);
	free(m);
}

int yoke_module_free(yoke_module *m)
{
	if (m && m->parent)
		return yk_fail(YOKE_EINVAL, "module_free: '%s' is part of a %s, which frees it", m->name,
			       m->parent->class->name);
	module_fini(m);
	return 0;
}

void *yoke_module_state(const yoke_module *m)
{
	return yk_module_given(m, "module_state") ? m->state : NULL;
}

// Copies a name after checking that it is valid and unused; NULL with an error.
static char *name_new(const struct yoke_module *m, const char *name)
{
	bool there = false;
	for (size_t i = 0; name && i < m->n; i++)
		there |= !strcmp(m->own[i].name, name);
	for (size_t i = 0; name && i < m->children; i++)
		there |= !strcmp(m->child[i]->name, name);
	if (!name || !*name || strpbrk(name, ".,!*?[]\\")) {
		yk_fail(YOKE_EINVAL, "%s: '%s' is no name: one has letters, and none of . , ! * ? [ ] \\",
			m->class->name, name ? name : "");
		return NULL;
	}
	if (there) {
		yk_fail(YOKE_EINVAL, "%s: there is a '%s' already; choose another name", m->class->name, name);
		return NULL;
	}
	char *copy = strdup(name);
	if (!copy)
		yk_fail(YOKE_ENOMEM, "%s: no memory for a name", m->class->name);
	return copy;
}

// The bytes of a number in a dtype.
static void number_bytes(int dtype, double value, void *to)
{
	const float f = (float)value;
	const int64_t whole = dtype >= yoke_i8 ? (int64_t)value : 0;
	switch (dtype) {
	case yoke_f32: memcpy(to, &f, sizeof f); break;
	case yoke_f64: memcpy(to, &value, sizeof value); break;
	case yoke_f16: memcpy(to, &(uint16_t){ yk_f16_of_float(f) }, 2); break;
	case yoke_bf16: memcpy(to, &(uint16_t){ yk_bf16_of_float(f) }, 2); break;
	case yoke_i64: memcpy(to, &whole, 8); break;
	case yoke_i32: memcpy(to, &(int32_t){ (int32_t)whole }, 4); break;
	case yoke_bool: memcpy(to, &(uint8_t){ value != 0 }, 1); break;
	default: memcpy(to, &(uint8_t){ (uint8_t)whole }, 1);
	}
}

// Writes the values instead of recording them: variables filled by one expression would share a
// storage.  Evaluating it would make a plan for whatever happens to be pending.
static int fill(yoke_tensor *t, double value)
{
	const size_t bytes = yoke_bytes(t), size = t ? yoke_dtype_size(yoke_dtype(t)) : 0;
	if (!t)
		return yoke_error_code();
	if (value == 0) // new variables are zero
		return 0;
	yoke_scope *s = yoke_scope_begin("fill");
	char *host = malloc(bytes + 8);
	int err = host ? 0 : yk_fail(YOKE_ENOMEM, "module: no host memory for %lld elements", (long long)yoke_count(t));
	// the dtype cannot represent the number
	if (!err && !yoke_full(yoke_dtype(t), 0, NULL, value))
		err = yoke_error_code();
	if (!err) {
		number_bytes(yoke_dtype(t), value, host);
		for (size_t at = size; at < bytes; at += size)
			memcpy(host + at, host, size);
		err = yoke_put(t, host, bytes);
	}
	free(host);
	const int ended = yoke_scope_end(s);
	return err ? err : ended;
}

static int draw(yoke_tensor *t, int dtype, int rank, const int64_t *dims, int first, double value)
{
	if (first == YOKE_FIRST_VALUE)
		return fill(t, value);
	struct yoke_context *ctx = yk_current();
	char name[32];
	snprintf(name, sizeof name, "first/%u", ctx ? ctx->random.drawn++ : 0);
	yoke_scope *s = yoke_scope_begin(name); // seeds the parameter's random numbers
	yoke_tensor *x = first == YOKE_FIRST_NORMAL ? yoke_normal(yoke_f32, rank, dims) :
						      yoke_uniform(yoke_f32, rank, dims);
	if (first == YOKE_FIRST_UNIFORM)
		x = yoke_sub(yoke_mul(x, yoke_const(2)), yoke_const(1));
	x = yoke_mul(x, yoke_const(value));
	const int err = yoke_assign(t, dtype == yoke_f32 ? x : yoke_cast(x, dtype));
	const int ended = yoke_scope_end(s);
	return err ? err : ended;
}

// Reserves a tensor's entry and returns a copy of its name; NULL with an error.
static char *own_new(yoke_module *m, const char *name)
{
	if (yk_grow(&m->own, &m->cap, m->n + 1, sizeof *m->own) == 0)
		return name_new(m, name);
	yk_fail(YOKE_ENOMEM, "%s: no memory", m->class->name);
	return NULL;
}

static yoke_tensor *add(yoke_module *m, const char *name, int dtype, int rank, const int64_t *dims, bool buffer)
{
	if (one_context(m, yk_current_or_null(), buffer ? "buffer" : "parameter", name ? name : "") < 0)
		return NULL;
	char *copy = own_new(m, name);
	yoke_tensor *t = copy ? yoke_keep(yoke_variable(name, dtype, rank, dims)) : NULL;
	if (!t) {
		free(copy);
		return NULL;
	}
	m->own[m->n++] = (struct yk_module_own){ .name = copy, .tensor = t, .buffer = buffer };
	return t;
}

yoke_tensor *yoke_module_parameter(yoke_module *m, const char *name, int dtype, int rank, const int64_t *dims,
				   int first, double value)
{
	if (!yk_module_given(m, "module_parameter"))
		return NULL;
	if (!yk_is_float(dtype) || first < YOKE_FIRST_VALUE || first > YOKE_FIRST_NORMAL) {
		yk_fail(yk_is_float(dtype) ? YOKE_EINVAL : YOKE_EDTYPE, "%s: parameter '%s' is of %s%s",
			m->class->name, name ? name : "", yoke_dtype_name(dtype),
			yk_is_float(dtype) ? ", and its first values are of no kind that there is" :
					     "; only floating point is trained");
		return NULL;
	}
	yoke_tensor *t = add(m, name, dtype, rank, dims, false);
	return t && draw(t, dtype, rank, dims, first, value) == 0 ? t : NULL;
}

bool yk_module_parameter(yoke_module *m, bool declared, const char *name, int rank, const int64_t *dims, int first,
			 double value)
{
	if (!declared)
		return yoke_module_parameter(m, name, yoke_f32, rank, dims, first, value);
	char *copy = own_new(m, name);
	if (!copy)
		return false;
	struct yk_module_own *own = &m->own[m->n++];
	*own = (struct yk_module_own){ .name = copy, .rank = rank };
	memcpy(own->dims, dims, (size_t)rank * sizeof *dims);
	return true;
}

bool yk_module_tie(yoke_module *m, const char *name, const yoke_module *with)
{
	if (!yk_module_parameter(m, true, name, 0, with->own[0].dims, YOKE_FIRST_VALUE, 0))
		return false;
	m->own[m->n - 1].with = with;
	return true;
}

yoke_tensor *yoke_module_buffer(yoke_module *m, const char *name, int dtype, int rank, const int64_t *dims,
				double value)
{
	yoke_tensor *t = yk_module_given(m, "module_buffer") ? add(m, name, dtype, rank, dims, true) : NULL;
	return t && fill(t, value) == 0 ? t : NULL;
}

yoke_tensor *yoke_module_own(const yoke_module *m, int i)
{
	if (!yk_module_given(m, "module_own"))
		return NULL;
	if (i >= 0 && (size_t)i < m->n)
		return m->own[i].tensor;
	yk_fail(YOKE_EINVAL, "%s: has no parameter or buffer %d", m->class->name, i);
	return NULL;
}

static int child_add(yoke_module *m, const char *name, yoke_module *child)
{
	for (const yoke_module *p = m; p; p = p->parent)
		if (p == child)
			return yk_fail(YOKE_EINVAL, "%s: '%s' would be part of itself; a module has one place", m->class->name, name);
	if (child->parent)
		return yk_fail(YOKE_EINVAL, "%s: '%s' is part of a %s already; share parameters (yoke_module_share), or "
			       "make another", m->class->name, name, child->parent->class->name);
	int err = one_context(m, context_of(child), "module", name ? name : "");
	if (err)
		return err;
	if (yk_grow(&m->child, &m->child_cap, m->children + 1, sizeof(struct yoke_module *)) < 0)
		return yk_fail(YOKE_ENOMEM, "%s: no memory", m->class->name);
	char *copy = name_new(m, name);
	if (!copy)
		return yoke_error_code();
	child->name = copy;
	child->parent = m;
	m->child[m->children++] = child;
	return 0;
}

// Is a rejected child without an owner, so that it must be freed?
static bool orphan(const yoke_module *m, const yoke_module *child)
{
	for (const yoke_module *p = m; p; p = p->parent)
		if (p == child)
			return false;
	return child && !child->parent;
}

int yoke_module_child(yoke_module *m, const char *name, yoke_module *child)
{
	int err = yk_given(m, "module");
	if (!err)
		err = yk_given(child, "child");
	if (!err)
		err = child_add(m, name, child);
	if (err && orphan(m, child))
		module_fini(child);
	return err;
}

int yk_module_children(struct yoke_module *m, int n, yoke_module *const *child)
{
	int err = 0;
	if (!m)
		err = yk_error_last();
	else if (n < 0)
		err = yk_fail(YOKE_EINVAL, "%s: %d modules", m->class->name, n);
	else if (n)
		err = yk_given_as(child, m->class->name, "list of modules");
	for (int i = 0; i < n && !err; i++) {
		char name[16];
		snprintf(name, sizeof name, "%d", i);
		err = yk_given_as(child[i], m->class->name, "module");
		if (!err)
			err = child_add(m, name, child[i]);
	}
	// a child may be listed twice, or be a descendant of another: find these before freeing any
	yoke_module **gone = err && n > 0 && child ? calloc((size_t)n, sizeof *gone) : NULL;
	int count = 0;
	for (int i = 0; gone && i < n; i++) {
		bool there = !orphan(m, child[i]);
		for (int k = 0; k < count && !there; k++)
			there = gone[k] == child[i];
		if (!there)
			gone[count++] = child[i];
	}
	for (int i = 0; i < count; i++)
		module_fini(gone[i]);
	free(gone);
	return err;
}

yoke_module *yoke_module_at(const yoke_module *m, int i)
{
	return !yk_given(m, "module") && i >= 0 && (size_t)i < m->children ? m->child[i] : NULL;
}

// ---- walks ----

struct walk {
	struct yk_module_entry *entry;
	size_t n, cap;
	char path[1024];
	bool all; // list a shared tensor once per entry
};

static bool seen(const struct walk *w, const struct yk_module_own *o)
{
	for (size_t i = 0; (o->shared || o->places) && i < w->n; i++)
		if (w->entry[i].own->tensor == o->tensor)
			return true;
	return false;
}

static int visit(struct walk *w, struct yoke_module *m, struct yk_module_own *o, size_t at)
{
	if (!w->all && seen(w, o))
		return 0;
	if (yk_grow(&w->entry, &w->cap, w->n + 1, sizeof *w->entry) < 0)
		return yk_fail(YOKE_ENOMEM, "%s: no memory", m->class->name);
	char *path = NULL;
	if (asprintf(&path, "%.*s%s", (int)at, w->path, o->name) < 0)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for a name", m->class->name);
	if (o->path && !strcmp(o->path, path))
		free(path); // the caller may still hold it
	else
		free(o->path), o->path = path;
	w->entry[w->n++] = (struct yk_module_entry){ m, o };
	return 0;
}

static int walk(struct walk *w, struct yoke_module *m, size_t at)
{
	int err = 0;
	for (int buffers = 0; buffers < 2; buffers++)
		for (size_t i = 0; i < m->n && !err; i++)
			if (m->own[i].buffer == buffers)
				err = visit(w, m, &m->own[i], at);
	for (size_t i = 0; i < m->children && !err; i++) {
		struct yoke_module *c = m->child[i];
		const int n = snprintf(w->path + at, sizeof w->path - at, "%s.", c->name);
		err = (size_t)n < sizeof w->path - at ? walk(w, c, at + (size_t)n) :
			yk_fail(YOKE_ERANGE, "%s: a name has more than %zu characters", c->class->name,
				sizeof w->path - 1);
	}
	return err;
}

static struct yk_module_entry *entries(struct yoke_module *m, bool all, size_t *n)
{
	struct walk w = { .all = all };
	*n = 0;
	if (walk(&w, m, 0) < 0) {
		free(w.entry);
		return NULL;
	}
	*n = w.n;
	if (!w.entry && !(w.entry = calloc(1, sizeof *w.entry)))
		yk_fail(YOKE_ENOMEM, "%s: no memory", m->class->name);
	return w.entry;
}

struct yk_module_entry *yk_module_entries(struct yoke_module *m, size_t *n)
{
	return entries(m, false, n);
}

struct yk_module_entry *yk_module_places(struct yoke_module *m, size_t *n)
{
	return entries(m, true, n);
}

int yoke_module_each(yoke_module *m, int (*fn)(void *, const char *, yoke_tensor *, unsigned), void *arg)
{
	size_t n;
	struct yk_module_entry *e = yk_module_given(m, "module_each") && !yk_given(fn, "function") ? yk_module_entries(m, &n) : NULL;
	if (!e)
		return yoke_error_code();
	int got = 0;
	for (size_t i = 0; i < n && got == 0; i++) {
		const struct yk_module_own *o = e[i].own;
		got = fn(arg, o->path, o->tensor,
			 (o->buffer ? YOKE_MODULE_BUFFER : 0u) | (o->frozen ? YOKE_MODULE_FROZEN : 0u));
	}
	free(e);
	return got;
}

int yoke_module_parameters(yoke_module *m, int max, yoke_tensor **to, const char **names)
{
	size_t n;
	if (max < 0)
		return yk_fail(YOKE_EINVAL, "module_parameters: the array size %d is negative", max);
	struct yk_module_entry *e = yk_module_given(m, "module_parameters") && (max == 0 || !yk_given(to, "list of tensors")) ?
					    yk_module_entries(m, &n) : NULL;
	if (!e)
		return yoke_error_code();
	int count = 0;
	for (size_t i = 0; i < n; i++) {
		const struct yk_module_own *o = e[i].own;
		if (o->buffer || o->frozen)
			continue;
		if (count < max) {
			to[count] = o->tensor;
			if (names)
				names[count] = o->path;
		}
		count++;
	}
	free(e);
	return count;
}

// Finds a tensor by any of its paths.
static struct yk_module_own *find(yoke_module *m, const char *path, const char *what)
{
	size_t n;
	struct yk_module_own *found = NULL;
	struct yk_module_entry *e = yk_module_given(m, what) ? entries(m, true, &n) : NULL;
	for (size_t i = 0; e && path && i < n && !found; i++)
		if (!strcmp(e[i].own->path, path))
			found = e[i].own;
	if (e && !found)
		yk_fail(YOKE_ENOENT, "%s: there is no parameter or buffer '%s'", what, path ? path : "");
	free(e);
	return found;
}

yoke_tensor *yoke_module_find(yoke_module *m, const char *path)
{
	const struct yk_module_own *o = find(m, path, "module_find");
	return o ? o->tensor : NULL;
}

// Replaces an entry's tensor in every entry below `top` that shares it; the old tensor is freed.
// Entries outside `top` keep it.
static void replace(struct yoke_module *top, const struct yk_module_entry *at, yoke_tensor *with)
{
	size_t n, held = 0;
	yoke_tensor *was = at->own->tensor;
	size_t *places = at->own->places;
	struct yk_module_entry *e = entries(top, true, &n);
	for (size_t i = 0; e && i < n; i++)
		held += e[i].own->tensor == was;
	const bool elsewhere = places && *places > held;
	size_t *ours = elsewhere && held > 1 ? malloc(sizeof *ours) : elsewhere ? NULL : places;
	if (elsewhere)
		*places -= held;
	if (ours)
		*ours = held;
	for (size_t i = 0, k = 0; e && i < n; i++)
		if (e[i].own->tensor == was) {
			e[i].own->tensor = with;
			e[i].own->places = ours;
			// no memory for a counter: the first entry owns the tensor
			e[i].own->shared |= !ours && k++ > 0;
		}
	if (!e)
		at->own->tensor = with;
	free(e);
	if (!elsewhere)
		yoke_free(was);
}

int yk_module_dims(const yoke_tensor *t, int64_t dims[YOKE_MAX_RANK])
{
	const int rank = yoke_rank(t);
	for (int i = 0; i < rank; i++)
		dims[i] = yoke_dim(t, i);
	return rank;
}

// Makes an entry share the parameter of another entry.
static int tie(struct yk_module_own *to, struct yk_module_own *of, const char *path, const char *with, const char *what)
{
	if (to->tensor == of->tensor)
		return 0;
	if (to->buffer || of->buffer || to->shared)
		return yk_fail(YOKE_EINVAL, "%s: '%s' and '%s' must be parameters, and the first must not belong to a network", what, path,
			       with);
	if (yoke_dtype(to->tensor) != yoke_dtype(of->tensor))
		return yk_fail(YOKE_EDTYPE, "%s: '%s' is of %s, '%s' of %s", what, path, yoke_dtype_name(yoke_dtype(to->tensor)),
			       with, yoke_dtype_name(yoke_dtype(of->tensor)));
	int64_t dims[2][YOKE_MAX_RANK];
	const int rank = yk_module_dims(to->tensor, dims[0]), other = yk_module_dims(of->tensor, dims[1]);
	if (rank != other || memcmp(dims[0], dims[1], (size_t)rank * sizeof **dims)) {
		char a[YK_SHAPE_TEXT], b[YK_SHAPE_TEXT];
		return yk_fail(YOKE_ESHAPE, "%s: '%s' is %s, '%s' is %s; tied ones have one shape", what, path,
			       yk_shape_text(a, rank, dims[0]), with, yk_shape_text(b, other, dims[1]));
	}
	if (!of->places && !of->shared) {
		if (!(of->places = malloc(sizeof *of->places)))
			return yk_fail(YOKE_ENOMEM, "%s: no memory", what);
		*of->places = 1;
	}
	drop(to);
	to->tensor = of->tensor;
	to->places = of->places;
	to->shared = of->shared;
	to->frozen = of->frozen;
	if (to->places)
		++*to->places;
	return 0;
}

int yoke_module_share(yoke_module *m, const char *path, const char *with)
{
	struct yk_module_own *to = find(m, path, "module_share"), *of = to ? find(m, with, "module_share") : NULL;
	return of ? tie(to, of, path, with, "module_share") : yoke_error_code();
}

int yoke_module_tie(yoke_module *m, const char *path, yoke_module *other, const char *with)
{
	struct yk_module_own *to = find(m, path, "module_tie"), *of = to ? find(other, with, "module_tie") : NULL;
	int err = of ? one_context(m, context_of(other), "parameter", with) : yoke_error_code();
	return err ? err : tie(to, of, path, with, "module_tie");
}

// Does a name match a list of patterns "a*,b,!c"?
static bool matches(const char *patterns, const char *name)
{
	bool in = false;
	char one[256];
	for (const char *p = patterns; *p;) {
		const size_t n = strcspn(p, ",");
		const bool out = *p == '!';
		snprintf(one, sizeof one, "%.*s", (int)(n - out), p + out);
		if (fnmatch(one, name, 0) == 0)
			in = !out;
		p += n + (p[n] == ',');
	}
	return in;
}

int yoke_module_freeze(yoke_module *m, const char *pattern, int on)
{
	size_t n;
	struct yk_module_entry *e = yk_module_given(m, "module_freeze") ? entries(m, true, &n) : NULL;
	if (!e)
		return yoke_error_code();
	bool found = false;
	for (size_t i = 0; pattern && i < n; i++)
		if (!e[i].own->buffer && matches(pattern, e[i].own->path)) {
			for (size_t k = 0; k < n; k++) // match any of its names
				if (e[k].own->tensor == e[i].own->tensor)
					e[k].own->frozen = on;
			found = true;
		}
	free(e);
	return found ? 0 : yk_fail(YOKE_ENOENT, "module_freeze: no parameter has a name like '%s'",
				   pattern ? pattern : "");
}

int yoke_module_mode(yoke_module *m, int training)
{
	if (!yk_module_given(m, "module_mode"))
		return yoke_error_code();
	m->evaluates = !training;
	for (size_t i = 0; i < m->children; i++)
		yoke_module_mode(m->child[i], training);
	return 0;
}

int yoke_module_training(const yoke_module *m)
{
	const int err = yk_given(m, "module");
	return err ? err : !m->evaluates;
}

// ---- replacing tensors ----

// A new variable of the same name and shape, in this dtype.
static yoke_tensor *like(const struct yk_module_own *o, int dtype)
{
	int64_t dims[YOKE_MAX_RANK];
	const int rank = yk_module_dims(o->tensor, dims);
	return yoke_keep(yoke_variable(o->name, dtype, rank, dims));
}

// A copy in another dtype in the current context, or a bit-exact copy in another context.
static yoke_tensor *copied(const struct yk_module_own *o, int dtype, yoke_context *to)
{
	const size_t bytes = (size_t)yoke_count(o->tensor) * yoke_dtype_size(dtype);
	void *host = malloc(bytes + 1);
	yoke_tensor *t = NULL;
	if (!host) {
		yk_fail(YOKE_ENOMEM, "module: no host memory for %zu bytes", bytes);
		return NULL;
	}
	yoke_scope *s = yoke_scope_begin("copy");
	int err = yoke_read(dtype == yoke_dtype(o->tensor) ? o->tensor : yoke_cast(o->tensor, dtype), host, bytes);
	yoke_scope_end(s);
	yoke_context *was = to ? yoke_use(to) : NULL;
	if (!err && (t = like(o, dtype)) && yoke_put(t, host, bytes) < 0) {
		yoke_free(t);
		t = NULL;
	}
	if (to)
		yoke_use(was);
	free(host);
	return t;
}

// Replaces all tensors or none: all copies are made first.
static int replace_all(yoke_module *m, int dtype, yoke_context *to)
{
	size_t n, made = 0;
	yoke_context *home = context_of(m), *current = home ? yoke_use(home) : NULL;
	struct yk_module_entry *e = yk_module_entries(m, &n);
	yoke_tensor **t = e ? calloc(n + 1, sizeof *t) : NULL;
	int err = t ? 0 : e ? yk_fail(YOKE_ENOMEM, "module: no memory") : yoke_error_code();
	for (; made < n && !err; made++) {
		const struct yk_module_own *o = e[made].own;
		const int was = yoke_dtype(o->tensor);
		if (was < 0) { // its context was freed
			err = was;
			break;
		}
		const int is = dtype != YOKE_DTYPE_NONE && yk_is_float(was) ? dtype : was;
		if ((is != was || to) && !(t[made] = copied(o, is, to)))
			err = yoke_error_code();
	}
	for (size_t i = 0; i < made; i++)
		if (err)
			yoke_free(t[i]);
		else if (t[i])
			replace(m, &e[i], t[i]);
	free(t);
	free(e);
	if (home)
		yoke_use(current);
	return err;
}

int yoke_module_cast(yoke_module *m, int dtype)
{
	if (!yk_module_given(m, "module_cast"))
		return yoke_error_code();
	if (!yk_is_float(dtype))
		return yk_fail(YOKE_EDTYPE, "module_cast: %s is not floating point", yoke_dtype_name(dtype));
	return replace_all(m, dtype, NULL);
}

int yoke_module_move(yoke_module *m, yoke_context *to)
{
	if (!yk_module_given(m, "module_move"))
		return yoke_error_code();
	return to ? replace_all(m, YOKE_DTYPE_NONE, to) : yk_fail(YOKE_EINVAL, "module_move: no context is given");
}

// ---- forward ----

int yoke_forward(yoke_module *m, int n, yoke_tensor *const *in, int k, yoke_tensor **out)
{
	for (int i = 0; out && i < k; i++)
		out[i] = NULL;
	for (int i = 0; i < n; i++)
		if (!in || !in[i]) // result of an earlier error
			return yoke_error_code() ? yoke_error_code() :
						   yk_fail(YOKE_EINVAL, "forward: operand %d is NULL", i);
	if (!yk_module_given(m, "forward") || (k > 0 && yk_given(out, "list of results")))
		return yoke_error_code();
	struct yoke_context *ctx = yk_current();
	const struct yk_tensor *own = m->n && m->own[0].tensor ? yk_tensor(m->own[0].tensor, m->class->name) : NULL;
	if (!ctx || (m->n && m->own[0].tensor && !own))
		return yoke_error_code();
	if (own && own->ctx != ctx)
		return yk_fail(YOKE_ECONTEXT, "%s: its parameters are of another context than the current one; call it in the "
			       "thread, or after yoke_use of the context, that has them", m->class->name);
	int err = yk_enter(ctx);
	if (err)
		return err;
	const uintptr_t scope = yk_scope_open(ctx, m->name ? m->name : m->class->name);
	yk_leave(ctx);
	if (!scope)
		return yoke_error_code();
	err = m->class->forward(m, m->state, n, in, k, out);
	for (int i = 0; i < k && !err; i++)
		if (!out[i])
			err = yoke_error_code() ? yoke_error_code() :
				yk_fail(YOKE_EINVAL, "%s: gave no value %d", m->class->name, i);
	int ended = yk_enter(ctx);
	if (!ended) {
		ended = yk_scope_close_lifting(ctx, scope, err ? 0 : k, out);
		yk_leave(ctx);
	}
	if (!err)
		err = ended ? ended : yoke_error_code();
	for (int i = 0; i < k && err; i++)
		out[i] = NULL;
	return err;
}

yoke_tensor *yk_call_inside(yoke_module *m, int n, yoke_tensor *const *in)
{
	yoke_tensor *y = NULL;
	for (int i = 0; i < n; i++)
		if (!in[i]) // result of an earlier error
			return NULL;
	return m->class->forward(m, m->state, n, in, 1, &y) == 0 ? y : NULL;
}

yoke_tensor *yoke_call(yoke_module *m, yoke_tensor *x)
{
	yoke_tensor *y = NULL;
	return yoke_forward(m, 1, &x, 1, &y) == 0 ? y : NULL;
}
