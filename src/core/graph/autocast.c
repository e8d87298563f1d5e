// SPDX-License-Identifier: Apache-2.0
// Mixed precision: casts the operands of calls by the op's cast policy and by patterns of scope
// names.  The casts are ordinary nodes, so gradients pass through them and equal casts of a weight
// become one step of a plan.

#include "config.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/autocast.h"
#include "graph/context.h"
#include "graph/handle.h"

// ---- patterns ----

enum { PATTERNS = 32 }; // one bit each

// Copies the next pattern of a list and advances *list; NULL: no more.
static const char *next_pattern(const char **list, char *to, size_t room)
{
	*list += strspn(*list, ", ");
	size_t n = strcspn(*list, ", ");
	if (!n || n >= room)
		return NULL;
	memcpy(to, *list, n);
	to[n] = 0;
	*list += n;
	return to;
}

// Does the pattern match one or several consecutive names of the path?
static bool matches(const char *pattern, const char *path)
{
	char part[256];
	for (const char *from = path;; from++) {
		for (const char *end = from;; end++) {
			end += strcspn(end, "/");
			snprintf(part, sizeof part, "%.*s", (int)(end - from), from);
			if (!fnmatch(pattern, part, FNM_PATHNAME))
				return true;
			if (!*end)
				break;
		}
		from += strcspn(from, "/");
		if (!*from)
			return false;
	}
}

// Updates `kept`: is the current scope kept in f32?
static void look(struct yoke_context *ctx)
{
	struct yk_autocast *a = &ctx->autocast.setting;
	const char *list = a->keep, *path = yk_path_name(&ctx->scopes.paths, ctx->graph.scope);
	char pattern[256];
	if (!list || a->path == ctx->graph.scope)
		return;
	a->path = ctx->graph.scope;
	a->kept = false;
	for (int i = 0; next_pattern(&list, pattern, sizeof pattern); i++)
		if (matches(pattern, path)) {
			a->kept = true;
			a->matched |= 1u << i;
		}
}

// The number of patterns; negative, with an error, if one is too long or there are too many.
static int count_patterns(const char *list)
{
	char pattern[256];
	int n = 0;
	while (next_pattern(&list, pattern, sizeof pattern))
		n++;
	if (list[strspn(list, ", ")])
		return yk_fail(YOKE_ERANGE,
			       "autocast: the pattern \"%.40s..\" is longer than 255 bytes", list);
	if (n > PATTERNS)
		return yk_fail(YOKE_ERANGE, "autocast: %d patterns of scopes; %d are possible", n,
			       PATTERNS);
	return n;
}

// ---- the setting ----

static int set(struct yoke_context *ctx, int dtype, const char *keep)
{
	struct yk_autocast next = { .dtype = (uint8_t)dtype, .path = YK_NIL };
	if (dtype && dtype != yoke_f16 && dtype != yoke_bf16)
		return yk_fail(YOKE_EDTYPE,
			       "autocast: to f16 or bf16, or off (YOKE_DTYPE_NONE), not %s",
			       yoke_dtype_name(dtype));
	if (keep && count_patterns(keep) < 0)
		return yk_error_last();
	if (keep && !(next.keep = strdup(keep)))
		return yk_fail(YOKE_ENOMEM, "autocast: no memory for patterns");
	if (ctx->scopes.innermost &&
	    !ctx->scopes.innermost->casts) { // its end restores the setting
		ctx->scopes.innermost->casts = true;
		ctx->scopes.innermost->former = ctx->autocast.setting;
	} else {
		free(ctx->autocast.setting.keep);
	}
	ctx->autocast.setting = next;
	return 0;
}

int yoke_autocast(int dtype, const char *keep_f32)
{
	struct yoke_context *ctx = yk_current();
	int err = ctx ? yk_enter(ctx) : yk_error_last();
	if (err)
		return err;
	err = set(ctx, dtype, keep_f32);
	yk_leave(ctx);
	return err;
}

int yk_autocast_end(struct yoke_context *ctx, const struct yk_autocast *former)
{
	struct yk_autocast a = ctx->autocast.setting;
	const char *list = a.keep ? a.keep : "";
	char pattern[256];
	int err = 0;
	ctx->autocast.setting = *former;
	for (int i = 0; !yoke_error_code() && next_pattern(&list, pattern, sizeof pattern); i++)
		if (!(a.matched >> i & 1))
			err = yk_fail(YOKE_EINVAL,
				      "autocast: the pattern \"%s\" of what is kept in f32 named "
				      "no scope that was used",
				      pattern);
	free(a.keep);
	return err;
}

// ---- dtypes of operands ----

// The smallest dtype that holds all numbers of both.
static uint8_t wider(uint8_t a, uint8_t b)
{
	if (!a || !b || a == b)
		return a ? a : b;
	return a == yoke_f64 || b == yoke_f64 ? yoke_f64 : yoke_f32;
}

int yk_autocast_dtypes(struct yoke_context *ctx, int op, int n, uint8_t *dtype)
{
	enum yk_cast_policy policy = yk_op_def(op)->cast;
	uint8_t all = 0, to = 0;
	look(ctx);
	if (policy == YK_CAST_NONE)
		return 0;
	if (ctx->autocast.setting.kept)
		policy = YK_CAST_F32;
	for (int i = 0; i < n; i++)
		if (yk_is_float(dtype[i]))
			all = wider(all, dtype[i]);
	if (!all || all == yoke_f64) // f64 is not cast down: no product becomes less precise than
				     // the caller chose
		to = policy == YK_CAST_WIDEST || policy == YK_CAST_F32 ? all : 0;
	else if (policy == YK_CAST_HALF)
		to = ctx->autocast.setting.dtype;
	else if (policy == YK_CAST_F32)
		to = yoke_f32;
	else if (policy == YK_CAST_WIDEST)
		to = all;
	for (int i = 0; i < n; i++) {
		if (!yk_is_float(dtype[i]))
			continue;
		if (policy == YK_CAST_INSIDE || (policy == YK_CAST_HALF && i >= YK_CAST_FACTORS)) {
			// f32 may be combined with half, but not another half dtype, and no half
			// with f32
			uint8_t first = to ? to : dtype[0];
			if (all != yoke_f64 && dtype[i] != first)
				dtype[i] = yoke_f32;
		} else if (to) {
			dtype[i] = to;
		}
	}
	return to;
}

// ---- held casts ----

static const struct yk_node *node_of(const struct yk_graph *g, yk_id x)
{
	return &g->node[g->value[x].node];
}

static bool is_half(int dtype)
{
	return dtype == yoke_f16 || dtype == yoke_bf16;
}

// Is this the current value of a variable?
static bool is_variable(const struct yoke_context *ctx, yk_id x)
{
	const uint32_t at = yk_leaf_of_value(ctx, x);
	const struct yk_leaf *l = at == YK_NIL ? NULL : &ctx->leaves.at[at];
	const struct yk_tensor *t = l && l->handle ? yk_tensor_in(ctx, l->handle) : NULL;
	return t && t->kind == YK_VARIABLE && (l->variable || yk_leaf_is_named(ctx, l));
}

// The largest finite f16.
#define F16_MAX 65504.0

// x times min(1, F16_MAX / |x|), a factor without gradient: f32 weights beyond the range of f16
// saturate and still get a gradient by which they may shrink. Other weights do not change; an
// infinite one becomes NaN.
static yk_id saturate(struct yk_graph *g, yk_id x)
{
	const yk_id over = yk_bin(g, YK_DIV, yk_lit(g, yoke_f32, F16_MAX), yk_un(g, YK_ABS, x)),
		    factor = yk_un(g, YK_STOP_GRAD, yk_bin_lit(g, YK_MIN, over, 1));
	return yk_bin(g, YK_MUL, x, factor);
}

// The variable that x is, or whose saturated value it is; or YK_NIL.
static yk_id variable_of(const struct yoke_context *ctx, yk_id x)
{
	const struct yk_graph *g = &ctx->graph;
	const struct yk_node *n = node_of(g, x);
	if (n->op == YK_MUL && node_of(g, yk_ins(g, n)[1])->op == YK_STOP_GRAD)
		x = yk_ins(g, n)[0];
	return is_variable(ctx, x) ? x : YK_NIL;
}

yk_id yk_autocast_cast(struct yoke_context *ctx, yk_id x, int dtype)
{
	struct yk_graph *g = &ctx->graph;
	struct yk_casts *c = &ctx->autocast.casts;
	const bool weight = x != YK_BAD && x != YK_NIL && is_variable(ctx, x),
		   look = c->n && weight;
	for (size_t i = 0; i < c->n && look; i++) { // usually requested in order
		const size_t at = (c->next + i) % c->n;
		const struct yk_tensor *t = yk_tensor(c->held[at], "autocast");
		const struct yk_node *n = t && t->id != YK_NIL ? node_of(g, t->id) : NULL;
		if (!n || n->op != YK_CAST || variable_of(ctx, yk_ins(g, n)[0]) != x ||
		    g->value[t->id].dtype != dtype)
			continue;
		c->next = at + 1;
		return t->id;
	}
	return yk_cast(
		g,
		weight && dtype == yoke_f16 && g->value[x].dtype == yoke_f32 ? saturate(g, x) : x,
		dtype);
}

// The variable that node k casts to half precision, or YK_NIL.
static yk_id cast_of(const struct yoke_context *ctx, size_t k)
{
	const struct yk_graph *g = &ctx->graph;
	const struct yk_node *n = &g->node[k];
	return n->op == YK_CAST && is_half(g->value[n->out].dtype) ?
		       variable_of(ctx, yk_ins(g, n)[0]) :
		       YK_NIL;
}

int yk_autocast_hold(struct yoke_context *ctx)
{
	const struct yk_graph *g = &ctx->graph;
	struct yk_casts *c = &ctx->autocast.casts;
	const size_t nodes = g->nodes;
	uint8_t *often = calloc(g->values + 1, 1); // by value: number of casts, at most 2
	int err = often ? 0 : yk_fail(YOKE_ENOMEM, "autocast: no memory for casts");
	for (size_t k = 0; k < nodes && !err; k++) {
		const yk_id x = cast_of(ctx, k);
		if (x != YK_NIL && often[x] < 2)
			often[x]++;
	}
	for (size_t k = 0; k < nodes && !err; k++) {
		const yk_id x = cast_of(ctx, k);
		if (x == YK_NIL || often[x] != 1)
			continue;
		if (yk_grow(&c->held, &c->cap, c->n + 1, sizeof *c->held) < 0)
			err = yk_fail(YOKE_ENOMEM, "autocast: no memory for casts");
		else if (!(c->held[c->n] = yoke_keep(yk_handle_of(ctx, g->node[k].out))))
			err = yk_error_last();
		c->n += !err;
	}
	free(often);
	return err;
}

void yk_autocast_release(struct yoke_context *ctx)
{
	for (size_t i = 0; i < ctx->autocast.casts.n; i++)
		yoke_free(ctx->autocast.casts.held[i]);
	free(ctx->autocast.casts.held);
	ctx->autocast.casts = (struct yk_casts){ 0 };
}
