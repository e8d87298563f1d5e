// SPDX-License-Identifier: Apache-2.0
// Walks over all tensors of a tree of modules: listing, finding, tying, freezing and replacing
// them.
#include "config.h"

#include "nn/module.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/safetensors.h"
#include "graph/context.h"
#include "graph/handle.h"

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
		err = (size_t)n < sizeof w->path - at ?
			      walk(w, c, at + (size_t)n) :
			      yk_fail(YOKE_ERANGE, "%s: a name has more than %zu characters",
				      c->class->name, sizeof w->path - 1);
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

int yoke_module_each(yoke_module *m, int (*fn)(void *, const char *, yoke_tensor *, unsigned),
		     void *arg)
{
	size_t n;
	struct yk_module_entry *e =
		yk_module_require(m, "module_each") && !yk_require(fn, "function") ?
			yk_module_entries(m, &n) :
			NULL;
	if (!e)
		return yoke_error_code();
	int got = 0;
	for (size_t i = 0; i < n && got == 0; i++) {
		const struct yk_module_own *o = e[i].own;
		got = fn(arg, o->path, o->tensor,
			 (o->buffer ? YOKE_MODULE_BUFFER : 0u) |
				 (o->frozen ? YOKE_MODULE_FROZEN : 0u));
	}
	free(e);
	return got;
}

int yoke_module_parameters(yoke_module *m, int max, yoke_tensor **to, const char **names)
{
	size_t n;
	if (max < 0)
		return yk_fail(YOKE_EINVAL, "module_parameters: the array size %d is negative",
			       max);
	struct yk_module_entry *e =
		yk_module_require(m, "module_parameters") &&
				(max == 0 || !yk_require(to, "list of tensors")) ?
			yk_module_entries(m, &n) :
			NULL;
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
	struct yk_module_entry *e = yk_module_require(m, what) ? entries(m, true, &n) : NULL;
	for (size_t i = 0; e && path && i < n && !found; i++)
		if (!strcmp(e[i].own->path, path))
			found = e[i].own;
	if (e && !found)
		yk_fail(YOKE_ENOENT, "%s: there is no parameter or buffer '%s'", what,
			path ? path : "");
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
static int tie(struct yk_module_own *to, struct yk_module_own *of, const char *path,
	       const char *with, const char *what)
{
	if (to->tensor == of->tensor)
		return 0;
	if (to->buffer || of->buffer || to->shared)
		return yk_fail(
			YOKE_EINVAL,
			"%s: '%s' and '%s' must be parameters, and the first must not belong to a network",
			what, path, with);
	if (yoke_dtype(to->tensor) != yoke_dtype(of->tensor))
		return yk_fail(YOKE_EDTYPE, "%s: '%s' is of %s, '%s' of %s", what, path,
			       yoke_dtype_name(yoke_dtype(to->tensor)), with,
			       yoke_dtype_name(yoke_dtype(of->tensor)));
	int64_t dims[2][YOKE_MAX_RANK];
	const int rank = yk_module_dims(to->tensor, dims[0]),
		  other = yk_module_dims(of->tensor, dims[1]);
	if (rank != other || memcmp(dims[0], dims[1], (size_t)rank * sizeof **dims)) {
		char a[YK_SHAPE_TEXT], b[YK_SHAPE_TEXT];
		return yk_fail(YOKE_ESHAPE, "%s: '%s' is %s, '%s' is %s; tied ones have one shape",
			       what, path, yk_shape_text(a, rank, dims[0]), with,
			       yk_shape_text(b, other, dims[1]));
	}
	if (!of->places && !of->shared) {
		if (!(of->places = malloc(sizeof *of->places)))
			return yk_fail(YOKE_ENOMEM, "%s: no memory", what);
		*of->places = 1;
	}
	yk_module_drop(to);
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
	struct yk_module_own *to = find(m, path, "module_share"),
			     *of = to ? find(m, with, "module_share") : NULL;
	return of ? tie(to, of, path, with, "module_share") : yoke_error_code();
}

int yoke_module_tie(yoke_module *m, const char *path, yoke_module *other, const char *with)
{
	struct yk_module_own *to = find(m, path, "module_tie"),
			     *of = to ? find(other, with, "module_tie") : NULL;
	int err = of ? yk_module_one_context(m, yk_module_context(other), "parameter", with) :
		       yoke_error_code();
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
	struct yk_module_entry *e =
		yk_module_require(m, "module_freeze") ? entries(m, true, &n) : NULL;
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
	if (!yk_module_require(m, "module_mode"))
		return yoke_error_code();
	m->evaluates = !training;
	for (size_t i = 0; i < m->children; i++)
		yoke_module_mode(m->child[i], training);
	return 0;
}

int yoke_module_training(const yoke_module *m)
{
	const int err = yk_require(m, "module");
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
	int err =
		yoke_read(dtype == yoke_dtype(o->tensor) ? o->tensor : yoke_cast(o->tensor, dtype),
			  host, bytes);
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
	yoke_context *home = yk_module_context(m), *current = home ? yoke_use(home) : NULL;
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
	if (!yk_module_require(m, "module_cast"))
		return yoke_error_code();
	if (!yk_is_float(dtype))
		return yk_fail(YOKE_EDTYPE, "module_cast: %s is not floating point",
			       yoke_dtype_name(dtype));
	return replace_all(m, dtype, NULL);
}

int yoke_module_move(yoke_module *m, yoke_context *to)
{
	if (!yk_module_require(m, "module_move"))
		return yoke_error_code();
	return to ? replace_all(m, YOKE_DTYPE_NONE, to) :
		    yk_fail(YOKE_EINVAL, "module_move: no context is given");
}
