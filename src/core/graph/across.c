// SPDX-License-Identifier: Apache-2.0
// Gradients through yoke_to: reverse mode in each context, newest copies first.  The gradient by a
// copy is evaluated, copied to the source's context, and is the cotangent of the source there.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "graph/context.h"
#include "graph/handle.h"

struct move {                           // a copy that y may depend on
	struct yk_moved *link;          // a reference
	struct yoke_context *to, *from; // of the copy, of the source; from NULL: it was freed
	bool useful, done;              // may lead to one of p; its gradient was passed on
};

struct seed { // a value whose cotangent is known
	struct yoke_context *ctx;
	yoke_tensor *y, *cot; // cot NULL: 1
	bool own;             // cot is to be freed
};

struct across {
	int n;
	yoke_tensor *const *p;
	yoke_tensor **g;
	struct yoke_context **of; // contexts of p
	bool *taken;              // of p: its context's backward pass was recorded
	struct move *move;        // ascending by serial, once sorted
	struct seed *seed;
	size_t moves, move_cap, seeds, seed_cap;
};

static struct yoke_context *context_of(const yoke_tensor *t)
{
	const struct yk_tensor *of =
		t && t != YOKE_NONE && yk_is_alive(t) ? yk_tensor(t, "grad") : NULL;
	return of ? of->ctx : NULL;
}

bool yk_crosses(int m, yoke_tensor *const *y, int n, yoke_tensor *const *p)
{
	const struct yoke_context *ctx = m > 0 && y ? context_of(y[0]) : NULL;
	bool crosses = false;
	if (!ctx || n < 1 || !p)
		return false;
	for (int i = 0; i < n; i++) {
		const struct yoke_context *of = context_of(p[i]);
		if (!of) // the usual path reports it
			return false;
		crosses |= of != ctx;
	}
	for (int k = 1; k < m; k++) {
		const struct yoke_context *of = context_of(y[k]);
		if (!of)
			return false;
		crosses |= of != ctx;
	}
	return crosses || ctx->leaves.copies;
}

// ---- the copies that y depends on ----

static int add_move(struct across *a, struct yoke_context *ctx, struct yk_moved *m)
{
	for (size_t i = 0; i < a->moves; i++)
		if (a->move[i].link == m)
			return 0;
	if (yk_grow(&a->move, &a->move_cap, a->moves + 1, sizeof *a->move) < 0)
		return yk_fail(YOKE_ENOMEM, "grad: no memory");
	a->move[a->moves++] =
		(struct move){ .link = yk_moved_ref(m), .to = ctx, .from = context_of(m->source) };
	return 0;
}

// Adds the copies in the value's own context.
static int find_moves(struct across *a, yoke_tensor *y)
{
	struct yk_tensor *t = yk_enter_of(y, "grad");
	if (!t)
		return yk_error_last();
	struct yoke_context *ctx = t->ctx;
	const struct yk_graph *g = &ctx->graph;
	ctx->graph.call = "grad";
	const yk_id id = yk_value_of(ctx, t, yoke_f32);
	uint8_t *reached = id == YK_BAD ? NULL : yk_reached(g, g->value[id].node);
	int err = id == YK_BAD ? yk_error_last() :
		  reached      ? 0 :
				 yk_fail(YOKE_ENOMEM, "grad: no memory");
	for (size_t i = 0; i < ctx->leaves.n && !err; i++) {
		const struct yk_leaf *l = &ctx->leaves.at[i];
		if (l->moved && g->value[l->id].node <= g->value[id].node &&
		    reached[g->value[l->id].node])
			err = add_move(a, ctx, l->moved);
	}
	free(reached);
	yk_leave(ctx);
	return err;
}

static int by_serial(const void *x, const void *y)
{
	const uint64_t a = ((const struct move *)x)->link->serial,
		       b = ((const struct move *)y)->link->serial;
	return (a > b) - (a < b);
}

static bool is_useful(const struct across *a, size_t i)
{
	const struct move *m = &a->move[i];
	for (int k = 0; k < a->n && m->from; k++)
		if (m->link->own ? a->of[k] == m->from : a->p[k] == m->link->source)
			return true;
	for (size_t k = 0; k < i && m->from && m->link->own; k++)
		if (a->move[k].useful && a->move[k].to == m->from)
			return true;
	return false;
}

// Fills a->move, ascending, and finds out which of them matter.
static int find_all(struct across *a, int m, yoke_tensor *const *y)
{
	int err = 0;
	for (int k = 0; k < m && !err; k++)
		err = find_moves(a, y[k]);
	for (size_t i = 0; i < a->moves && !err; i++)
		if (a->move[i].link->own && a->move[i].from)
			err = find_moves(a, a->move[i].link->source);
	if (a->moves)
		qsort(a->move, a->moves, sizeof *a->move, by_serial);
	for (size_t i = 0; i < a->moves && !err; i++) {
		a->move[i].useful = is_useful(a, i);
		for (int k = 0; k < a->n && !err && !a->move[i].from && a->move[i].link->own; k++)
			if (a->of[k] != a->move[i].to)
				err = yk_fail(YOKE_ERELEASED,
					      "grad: it passes through a value that yoke_to copied "
					      "to %s, and "
					      "the context that it was copied from was freed",
					      a->move[i].to->device->id);
	}
	return err;
}

// ECONTEXT: one of p is in a context to which neither y nor a copied source of y belongs.
static int check_contexts(const struct across *a, int m, yoke_tensor *const *y)
{
	const struct yoke_context *first = context_of(y[0]);
	for (int k = 0; k < a->n; k++) {
		bool known = false;
		for (int i = 0; i < m; i++)
			known |= context_of(y[i]) == a->of[k];
		for (size_t i = 0; i < a->moves; i++)
			known |= a->move[i].from == a->of[k];
		if (!known)
			return yk_fail(YOKE_ECONTEXT,
				       "grad: tensor %d on %s belongs to another context than the "
				       "value on %s, which "
				       "does not depend on it through yoke_to",
				       k, a->of[k]->device->id, first->device->id);
	}
	return 0;
}

// ---- one context ----

static int add_seed(struct across *a, struct seed s)
{
	if (yk_grow(&a->seed, &a->seed_cap, a->seeds + 1, sizeof *a->seed) < 0)
		return yk_fail(YOKE_ENOMEM, "grad: no memory");
	a->seed[a->seeds++] = s;
	return 0;
}

struct target { // a value by which a gradient in one context is computed
	yk_id in;
	const yoke_tensor *handle; // for checks; may be stale
	struct move *move;         // of a copy, or NULL
	int p;                     // else its index in p; -1: stands for other contexts' tensors
	yoke_tensor *gradient;     // NULL: 0
};

struct targets {
	struct target *at;
	size_t n, cap;
};

static int add_target(struct targets *t, struct target of)
{
	if (of.in == YK_BAD)
		return yk_error_last();
	if (yk_grow(&t->at, &t->cap, t->n + 1, sizeof *t->at) < 0)
		return yk_fail(YOKE_ENOMEM, "grad: no memory");
	t->at[t->n++] = of;
	return 0;
}

// Lists the leaves of the copies whose gradients are next and, if `last`, the values of p in this
// context.
static int find_targets(struct across *a, struct yoke_context *ctx, uint64_t after, bool last,
			struct targets *to)
{
	int err = 0;
	for (size_t k = 0; k < a->moves && !err; k++) {
		struct move *m = &a->move[k];
		if (m->to != ctx || !m->useful || m->done || m->link->serial <= after)
			continue;
		m->done = true;
		for (size_t i = 0; i < ctx->leaves.n && !err; i++)
			if (ctx->leaves.at[i].moved == m->link)
				err = add_target(to, (struct target){ ctx->leaves.at[i].id,
								      ctx->leaves.at[i].handle, m,
								      -1, NULL });
	}
	for (int k = 0; k < a->n && !err && last; k++) {
		if (a->of[k] != ctx)
			continue;
		a->taken[k] = true;
		err = add_target(to, (struct target){ yk_operand(ctx, a->p[k], yoke_f32), a->p[k],
						      NULL, k, NULL });
	}
	return err;
}

// The ids of the context's seeds and of their cotangents.
static int find_seeds(const struct across *a, struct yoke_context *ctx, yk_id *y, yk_id *cot,
		      int *m)
{
	struct yk_graph *g = &ctx->graph;
	for (size_t k = 0; k < a->seeds; k++) {
		const struct seed *s = &a->seed[k];
		if (s->ctx != ctx)
			continue;
		y[*m] = yk_operand(ctx, s->y, yoke_f32);
		cot[*m] = y[*m] == YK_BAD ? YK_BAD :
			  s->cot          ? yk_operand(ctx, s->cot, yoke_f32) :
					    yk_full_like(g, y[*m], 1);
		if (cot[*m] == YK_BAD)
			return yk_error_last();
		++*m;
	}
	return 0;
}

// Records the gradients by the targets, inside the context; those of copies are in no scope.
static int record(struct across *a, struct yoke_context *ctx, struct targets *t)
{
	yk_id *id = malloc((2 * a->seeds + 2 * (t->n + 1)) * sizeof *id), *cot = id + a->seeds,
	      *in = cot + a->seeds, *out = in + t->n + 1;
	yoke_tensor **p = malloc((t->n + 1) * sizeof *p);
	struct yk_scope *scope = ctx->scopes.innermost;
	bool others = false;
	int m = 0, err = id && p ? 0 : yk_fail(YOKE_ENOMEM, "grad: no memory");
	if (!err)
		err = find_seeds(a, ctx, id, cot, &m);
	for (size_t i = 0; i < t->n && !err; i++) {
		in[i] = t->at[i].in;
		p[i] = (yoke_tensor *)(uintptr_t)t->at[i].handle;
		out[i] = YK_NIL;
	}
	for (int k = 0; k < a->n; k++)
		others |= a->of[k] != ctx;
	int n = (int)t->n;
	if (!err && m && others) { // gradients that would go to other contexts may be refused
		in[n] = id[0];
		p[n++] = NULL;
	}
	if (!err && m && n)
		err = yk_gradients(ctx, m, id, cot, n, p, in, out);
	for (size_t i = 0; i < t->n && !err; i++) {
		struct target *of = &t->at[i];
		if (out[i] == YK_NIL && !of->move && !a->g[of->p])
			out[i] = yk_full_like(&ctx->graph, of->in, 0);
		if (out[i] == YK_BAD)
			err = yk_error_last();
	}
	if (!err)
		err = yk_recorded(ctx);
	for (size_t i = 0; i < t->n && !err; i++) {
		struct target *of = &t->at[i];
		ctx->scopes.innermost = of->move ? NULL : scope;
		if (out[i] != YK_NIL && !(of->gradient = yk_handle_of(ctx, out[i])))
			err = yk_error_last();
	}
	ctx->scopes.innermost = scope;
	free(id);
	free(p);
	return err;
}

// Adds to g[k]; takes the gradient.
static int add_gradient(struct across *a, int k, yoke_tensor *gradient)
{
	yoke_tensor *former = a->g[k], *sum = former ? yoke_add(former, gradient) : gradient;
	if (former) {
		yoke_free(former);
		yoke_free(gradient);
	}
	a->g[k] = sum;
	return sum ? 0 : yk_error_last();
}

// Copies a gradient to the source's context: a cotangent there, or the gradient of one of p.
static int pass_on(struct across *a, const struct move *m, yoke_tensor *gradient)
{
	const struct yk_tensor *t = yk_tensor(m->link->source, "grad");
	int err = t ? 0 : yk_error_last();
	if (!err && !m->link->own && t->version != m->link->version)
		err = yk_fail(YOKE_ERELEASED,
			      "grad: it depends on variable %s as it was when yoke_to copied it, "
			      "which has a new "
			      "version by now; take gradients before yoke_assign and yoke_put",
			      t->name ? t->name : "unnamed");
	const int copies = m->link->own ? 1 : a->n;
	for (int k = 0; k < copies && !err; k++) {
		if (!m->link->own && a->p[k] != m->link->source)
			continue;
		yoke_tensor *copy = yk_move(gradient, m->from);
		if (!copy)
			err = yk_error_last();
		else if (m->link->own)
			err = add_seed(a, (struct seed){ m->from, m->link->source, copy, true });
		else
			err = add_gradient(a, k, copy);
	}
	return err;
}

// The gradients in one context by copies made after the move number `after`, which are evaluated
// and passed on; if `last`, also those of p that belong here.
static int go_through(struct across *a, struct yoke_context *ctx, uint64_t after, bool last)
{
	struct targets t = { 0 };
	int err = yk_enter(ctx);
	if (err)
		return err;
	ctx->graph.call = "grad";
	err = find_targets(a, ctx, after, last, &t);
	if (!err)
		err = record(a, ctx, &t);
	yk_leave(ctx);
	size_t n = 0;
	bool passes = false;
	yoke_tensor **all = malloc((t.n + 1) * sizeof *all);
	if (!err && !all)
		err = yk_fail(YOKE_ENOMEM, "grad: no memory");
	for (size_t i = 0; i < t.n && !err; i++) {
		passes |= t.at[i].move && t.at[i].gradient;
		if (t.at[i].gradient)
			all[n++] = t.at[i].gradient;
	}
	if (passes && !err) // in one evaluation, since they share most of their operations
		err = yoke_eval((int)n, all);
	for (size_t i = 0; i < t.n; i++) {
		const struct target *of = &t.at[i];
		const bool takes = !of->move && !err;
		if (of->gradient && of->move && !err)
			err = pass_on(a, of->move, of->gradient);
		else if (of->gradient && takes)
			err = add_gradient(a, of->p, of->gradient);
		if (of->gradient && !takes) {
			struct yoke_context *was = yoke_use(ctx);
			yoke_free(of->gradient);
			yoke_use(was);
		}
	}
	free(all);
	free(t.at);
	return err;
}

// ---- all contexts ----

// Contexts in the order of their newest copies: cotangents in a context are complete once the
// copies made of its values are done.
static int run(struct across *a)
{
	int err = 0;
	for (size_t i = a->moves; i-- > 0 && !err;) {
		const struct move *m = &a->move[i];
		uint64_t after =
			0; // older copies of this context depend on copies made of its values
		if (!m->useful || m->done)
			continue;
		for (size_t k = 0; k < i; k++)
			if (a->move[k].useful && !a->move[k].done && a->move[k].from == m->to)
				after = a->move[k].link->serial;
		err = go_through(a, m->to, after, !after);
	}
	for (int k = 0; k < a->n && !err; k++)
		if (!a->taken[k])
			err = go_through(a, a->of[k], UINT64_MAX, true);
	return err;
}

int yk_grad_across(int m, yoke_tensor *const *y, yoke_tensor *const *cot, int n,
		   yoke_tensor *const *p, yoke_tensor **g)
{
	struct across a = { .n = n,
			    .p = p,
			    .g = g,
			    .of = malloc((size_t)n * sizeof *a.of),
			    .taken = calloc((size_t)n, sizeof *a.taken) };
	int err = a.of && a.taken ? 0 : yk_fail(YOKE_ENOMEM, "grad: no memory");
	for (int k = 0; k < n; k++)
		g[k] = NULL;
	for (int k = 0; k < n && !err; k++)
		a.of[k] = context_of(p[k]);
	for (int k = 0; k < m && !err; k++)
		err = add_seed(&a,
			       (struct seed){ context_of(y[k]), y[k], cot ? cot[k] : NULL, false });
	if (!err)
		err = find_all(&a, m, y);
	if (!err)
		err = check_contexts(&a, m, y);
	if (!err)
		err = run(&a);
	for (size_t i = 0; i < a.moves; i++)
		yk_moved_unref(a.move[i].link);
	for (size_t i = 0; i < a.seeds; i++)
		if (a.seed[i].own)
			yoke_free(a.seed[i].cot);
	for (int k = 0; k < n && err; k++)
		yoke_free(g[k]);
	free(a.of);
	free(a.taken);
	free(a.move);
	free(a.seed);
	return err;
}
