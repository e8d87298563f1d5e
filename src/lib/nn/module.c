// SPDX-License-Identifier: Apache-2.0
// Modules: making a tree of parameters and buffers, and computing it.
#include "config.h"

#include "nn/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/half.h"
#include "base/sized.h"
#include "graph/context.h"
#include "graph/handle.h"

bool yk_module_require(const struct yoke_module *m, const char *what)
{
	return !yk_require_as(m, what, "module");
}

// ---- contexts ----

yoke_context *yk_module_context(const struct yoke_module *m)
{
	yoke_context *ctx = NULL;
	for (size_t i = 0; i < m->n && !ctx; i++)
		if (yk_is_alive(m->own[i].tensor))
			ctx = yk_tensor(m->own[i].tensor, "module")->ctx;
	for (size_t i = 0; i < m->children && !ctx; i++)
		ctx = yk_module_context(m->child[i]);
	return ctx;
}

int yk_module_one_context(const struct yoke_module *m, const yoke_context *other, const char *what,
			  const char *name)
{
	while (m->parent)
		m = m->parent;
	const yoke_context *ctx = other ? yk_module_context(m) : NULL;
	return !ctx || ctx == other ?
		       0 :
		       yk_fail(YOKE_ECONTEXT,
			       "%s: %s '%s' is of another context than the module's "
			       "parameters; make it in the thread, or after yoke_use of the context, that has them",
			       m->class->name, what, name);
}

// ---- construction ----

yoke_module *yoke_module_new(const struct yoke_module_class *class, void *state)
{
	struct yoke_module *m = NULL;
	const int size =
		yk_sized_check(class, sizeof class->size, "module_new", "yoke_module_class");
	const bool sound = size >= (int)sizeof *class;
	if (size >= 0 && (!sound || !class->name || !class->forward))
		yk_fail(YOKE_EINVAL,
			"module_new: the class has no name or no forward function, or its size is %d instead of %zu",
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

void yk_module_drop(struct yk_module_own *o)
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
		yk_module_drop(&m->own[i]);
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
		return yk_fail(YOKE_EINVAL, "module_free: '%s' is part of a %s, which frees it",
			       m->name, m->parent->class->name);
	module_fini(m);
	return 0;
}

void *yoke_module_state(const yoke_module *m)
{
	return yk_module_require(m, "module_state") ? m->state : NULL;
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
		yk_fail(YOKE_EINVAL,
			"%s: '%s' is no name: one has letters, and none of . , ! * ? [ ] \\",
			m->class->name, name ? name : "");
		return NULL;
	}
	if (there) {
		yk_fail(YOKE_EINVAL, "%s: there is a '%s' already; choose another name",
			m->class->name, name);
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
	int err = host ? 0 :
			 yk_fail(YOKE_ENOMEM, "module: no host memory for %lld elements",
				 (long long)yoke_count(t));
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

static yoke_tensor *add(yoke_module *m, const char *name, int dtype, int rank, const int64_t *dims,
			bool buffer)
{
	if (yk_module_one_context(m, yk_current_or_null(), buffer ? "buffer" : "parameter",
				  name ? name : "") < 0)
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

yoke_tensor *yoke_module_parameter(yoke_module *m, const char *name, int dtype, int rank,
				   const int64_t *dims, int first, double value)
{
	if (!yk_module_require(m, "module_parameter"))
		return NULL;
	if (!yk_is_float(dtype) || first < YOKE_FIRST_VALUE || first > YOKE_FIRST_NORMAL) {
		yk_fail(yk_is_float(dtype) ? YOKE_EINVAL : YOKE_EDTYPE,
			"%s: parameter '%s' is of %s%s", m->class->name, name ? name : "",
			yoke_dtype_name(dtype),
			yk_is_float(dtype) ? ", and its first values are of no kind that there is" :
					     "; only floating point is trained");
		return NULL;
	}
	yoke_tensor *t = add(m, name, dtype, rank, dims, false);
	return t && draw(t, dtype, rank, dims, first, value) == 0 ? t : NULL;
}

bool yk_module_parameter(yoke_module *m, bool declared, const char *name, int rank,
			 const int64_t *dims, int first, double value)
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

yoke_tensor *yoke_module_buffer(yoke_module *m, const char *name, int dtype, int rank,
				const int64_t *dims, double value)
{
	yoke_tensor *t = yk_module_require(m, "module_buffer") ?
				 add(m, name, dtype, rank, dims, true) :
				 NULL;
	return t && fill(t, value) == 0 ? t : NULL;
}

yoke_tensor *yoke_module_own(const yoke_module *m, int i)
{
	if (!yk_module_require(m, "module_own"))
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
			return yk_fail(YOKE_EINVAL,
				       "%s: '%s' would be part of itself; a module has one place",
				       m->class->name, name);
	if (child->parent)
		return yk_fail(
			YOKE_EINVAL,
			"%s: '%s' is part of a %s already; share parameters (yoke_module_share), or "
			"make another",
			m->class->name, name, child->parent->class->name);
	int err = yk_module_one_context(m, yk_module_context(child), "module", name ? name : "");
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
	int err = yk_require(m, "module");
	if (!err)
		err = yk_require(child, "child");
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
		err = yk_require_as(child, m->class->name, "list of modules");
	for (int i = 0; i < n && !err; i++) {
		char name[16];
		snprintf(name, sizeof name, "%d", i);
		err = yk_require_as(child[i], m->class->name, "module");
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
	return !yk_require(m, "module") && i >= 0 && (size_t)i < m->children ? m->child[i] : NULL;
}

// ---- forward ----

int yoke_forward(yoke_module *m, int n, yoke_tensor *const *in, int k, yoke_tensor **out)
{
	for (int i = 0; out && i < k; i++)
		out[i] = NULL;
	for (int i = 0; i < n; i++)
		if (!in || !in[i]) // result of an earlier error
			return yoke_error_code() ?
				       yoke_error_code() :
				       yk_fail(YOKE_EINVAL, "forward: operand %d is NULL", i);
	if (!yk_module_require(m, "forward") || (k > 0 && yk_require(out, "list of results")))
		return yoke_error_code();
	struct yoke_context *ctx = yk_current();
	const struct yk_tensor *own =
		m->n && m->own[0].tensor ? yk_tensor(m->own[0].tensor, m->class->name) : NULL;
	if (!ctx || (m->n && m->own[0].tensor && !own))
		return yoke_error_code();
	if (own && own->ctx != ctx)
		return yk_fail(
			YOKE_ECONTEXT,
			"%s: its parameters are of another context than the current one; call it in the "
			"thread, or after yoke_use of the context, that has them",
			m->class->name);
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
