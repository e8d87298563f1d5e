// SPDX-License-Identifier: Apache-2.0
// Origins: refuses a gradient that would be 0 only because part of the history was dropped.
//
// A value that became a leaf in a collection records the tensors it was computed from: their
// handles, which are never reused (handle.h), and for variables the version.  So the same gradients
// are refused before and after a collection.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "graph/context.h"
#include "graph/handle.h"

#define FORMER UINT32_MAX // any version of a variable that was already replaced at the collection
// Any value copied from another context by yoke_to; 0 is no handle.
static const struct yk_origin elsewhere = { 0 };

// The origins of a leaf's value; shared by leaves.
struct yk_past {
	uint32_t refs, n;
	struct yk_origin at[]; // ascending by handle, then version
};

static int ascending(const void *a, const void *b)
{
	const struct yk_origin *x = a, *y = b;
	if (x->handle != y->handle)
		return x->handle < y->handle ? -1 : 1;
	return (x->version > y->version) - (x->version < y->version);
}

static uint64_t bits_of(const yoke_tensor *t)
{
	return (uintptr_t)t;
}

static const struct yk_leaf *leaf_of(const struct yoke_context *ctx, const struct yk_node *n)
{
	return n->op == YK_LEAF ? &ctx->leaves.at[yk_attrs(&ctx->graph, n)[0].i] : NULL;
}

void yk_past_unref(struct yk_past *p)
{
	if (p && !--p->refs)
		free(p);
}

// ---- values that become leaves ----

enum { WORD = 64 }; // origins followed at a time, one bit each

struct source { // the node computes this tensor's value
	struct yk_origin of;
	uint32_t node;
};

struct search {
	struct yoke_context *ctx;
	struct source *source; // ascending by origin
	struct yk_origin *origin; // ascending, without duplicates
	size_t sources, source_cap, origins, origin_cap;
	uint64_t *bits; // by node: the followed origins that it is or depends on
};

static int add_origin(struct search *s, struct yk_origin o)
{
	if (yk_grow(&s->origin, &s->origin_cap, s->origins + 1, sizeof *s->origin) < 0)
		return YOKE_ENOMEM;
	s->origin[s->origins++] = o;
	return 0;
}

static int add_source(struct search *s, yk_id v, struct yk_origin o)
{
	if (!yk_is_float(s->ctx->graph.value[v].dtype))
		return 0;
	if (yk_grow(&s->source, &s->source_cap, s->sources + 1, sizeof *s->source) < 0)
		return YOKE_ENOMEM;
	s->source[s->sources++] = (struct source){ o, s->ctx->graph.value[v].node };
	return add_origin(s, o);
}

static int add_former(struct search *s, yk_id v, const yoke_tensor *variable)
{
	return yk_is_alive(variable) ?
		       add_source(s, v, (struct yk_origin){ bits_of(variable), FORMER }) :
		       0;
}

static int add_tensors(struct search *s, const struct yk_tensor *t)
{
	int err = 0;
	for (; t && !err; t = t->next) {
		const yk_id v = yk_version_of(t);
		if (v == YK_NIL)
			continue;
		err = add_source(s, v, yk_origin_of(t));
		if (!err && t->origin.handle)
			err = add_source(s, v,
					 (struct yk_origin){ bits_of(yk_handle(t)), t->version });
	}
	return err;
}

// Sorts and removes duplicates.
static void sort_origins(struct search *s)
{
	size_t n = 0;
	if (s->origins)
		qsort(s->origin, s->origins, sizeof *s->origin, ascending);
	for (size_t i = 0; i < s->origins; i++)
		if (!n || ascending(&s->origin[n - 1], &s->origin[i]))
			s->origin[n++] = s->origin[i];
	s->origins = n;
}

// Adds the origins recorded in leaves, except tensors that no longer exist.
static int add_noted(struct search *s)
{
	const struct yk_graph *g = &s->ctx->graph;
	const struct yk_past *last = NULL;
	const size_t n = s->origins; // origins of live tensors
	int err = 0;
	for (size_t k = 0; k < g->nodes && !err; k++) {
		const struct yk_leaf *l = leaf_of(s->ctx, &g->node[k]);
		if (!l || !l->past || l->past == last)
			continue;
		last = l->past;
		for (uint32_t i = 0; i < last->n && !err; i++) {
			const struct yk_origin *o = &last->at[i];
			if (!o->handle || yk_is_alive((const yoke_tensor *)(uintptr_t)o->handle) ||
			    (n && bsearch(o, s->origin, n, sizeof *o, ascending)))
				err = add_origin(s, *o);
		}
	}
	return err;
}

static int find_sources(struct search *s)
{
	const struct yoke_context *ctx = s->ctx;
	const struct yk_graph *g = &ctx->graph;
	int err = add_tensors(s, ctx->handles.list);
	for (const struct yk_scope *scope = ctx->scopes.innermost; scope && !err;
	     scope = scope->parent)
		err = add_tensors(s, scope->handles);
	for (size_t i = 0; i < ctx->history.formers && !err; i++)
		err = add_former(s, ctx->history.former[i].value, ctx->history.former[i].variable);
	for (size_t k = 0; k < g->nodes && !err; k++) {
		const struct yk_leaf *l = leaf_of(ctx, &g->node[k]);
		if (l && yk_moved_lives(l->moved))
			err = add_source(s, l->id, elsewhere);
		else if (l && l->handle && !yk_leaf_is_named(ctx, l))
			err = add_former(s, l->id, l->handle);
	}
	sort_origins(s);
	if (!err)
		err = add_noted(s);
	sort_origins(s);
	if (s->sources)
		qsort(s->source, s->sources, sizeof *s->source, ascending);
	return err;
}

// Which of n origins, starting with `first`, the list contains; bit i: first[i].
static uint64_t mask_of(const struct yk_past *p, const struct yk_origin *first, size_t n)
{
	uint64_t mask = 0;
	uint32_t low = 0, high = p->n;
	while (low < high) {
		const uint32_t at = low + (high - low) / 2;
		if (ascending(&p->at[at], first) < 0)
			low = at + 1;
		else
			high = at;
	}
	for (size_t i = 0; i < n && low < p->n; i++) {
		while (low < p->n && ascending(&p->at[low], &first[i]) < 0)
			low++;
		mask |= low < p->n && !ascending(&p->at[low], &first[i]) ? (uint64_t)1 << i : 0;
	}
	return mask;
}

// For each listed node, stores a word: the origins first .. first + WORD - 1 that it was computed
// from.  *source is the index of the first origin's sources; afterwards, of the next word's.
static void follow(struct search *s, size_t first, size_t *source, size_t n, const uint32_t *node,
		   uint64_t *word, size_t step)
{
	const struct yk_graph *g = &s->ctx->graph;
	const size_t count = s->origins - first < WORD ? s->origins - first : WORD;
	const struct yk_past *last = NULL;
	uint64_t mask = 0;
	memset(s->bits, 0, (node[n - 1] + (size_t)1) * sizeof *s->bits);
	for (size_t i = 0; i < count; i++)
		for (; *source < s->sources &&
		       !ascending(&s->source[*source].of, &s->origin[first + i]);
		     ++*source)
			if (s->source[*source].node <= node[n - 1])
				s->bits[s->source[*source].node] |= (uint64_t)1 << i;
	for (uint32_t k = 0, at = 0; k <= node[n - 1]; k++) {
		const struct yk_node *of = &g->node[k];
		const struct yk_leaf *l = leaf_of(s->ctx, of);
		uint64_t before = 0;
		if (l && l->past && l->past != last) {
			last = l->past;
			mask = mask_of(last, s->origin + first, count);
		}
		if (l && l->past)
			before = mask;
		for (uint32_t i = 0; yk_differentiable(g, of) && i < of->nin; i++)
			if (yk_ins(g, of)[i] != YK_NIL &&
			    yk_is_float(g->value[yk_ins(g, of)[i]].dtype))
				before |= s->bits[g->value[yk_ins(g, of)[i]].node];
		s->bits[k] |= before;
		if (k == node[at])
			word[at++ * step] = before;
	}
}

static struct yk_past *past_of(const struct search *s, const uint64_t *word, size_t words)
{
	uint32_t n = 0;
	for (size_t w = 0; w < words; w++)
		n += (uint32_t)__builtin_popcountll(word[w]);
	struct yk_past *p = malloc(sizeof *p + n * sizeof *p->at);
	if (!p)
		return NULL;
	*p = (struct yk_past){ .refs = 1 };
	for (size_t i = 0; i < s->origins; i++)
		if (word[i / WORD] >> i % WORD & 1)
			p->at[p->n++] = s->origin[i];
	return p;
}

// Stores each node's words, as a list, in the leaves of its results; consecutive nodes often share
// a list.
static int note(const struct search *s, size_t n, const uint32_t *node, const uint64_t *word,
		size_t words)
{
	const struct yk_graph *g = &s->ctx->graph;
	struct yk_past *p = NULL;
	int err = 0;
	for (size_t at = 0; at < n && !err; at++, word += words) {
		const struct yk_node *of = &g->node[node[at]];
		if (!p || memcmp(word, word - words, words * sizeof *word)) {
			yk_past_unref(p);
			p = past_of(s, word, words);
			err = p ? 0 : YOKE_ENOMEM;
		}
		for (uint32_t i = 0; !err && i < of->nout; i++) {
			const struct yk_value *v = &g->value[of->out + i];
			if (v->made == YK_NIL || !yk_is_float(v->dtype))
				continue;
			struct yk_leaf *l = &s->ctx->leaves.at[v->made];
			yk_past_unref(l->past);
			l->past = p->n ? p : NULL;
			p->refs += p->n > 0;
		}
	}
	yk_past_unref(p);
	return err;
}

int yk_past_note(struct yoke_context *ctx, size_t n, const uint32_t *node)
{
	struct search s = { .ctx = ctx };
	uint64_t *word = NULL;
	int err = n ? find_sources(&s) : 0;
	const size_t words = (s.origins + WORD - 1) / WORD;
	size_t source = 0;
	if (err || !words)
		goto out;
	word = malloc(n * words * sizeof *word);
	s.bits = malloc((node[n - 1] + (size_t)1) * sizeof *s.bits);
	err = word && s.bits ? 0 : YOKE_ENOMEM;
	for (size_t w = 0; w < words && !err; w++)
		follow(&s, w * WORD, &source, n, node, word + w, words);
	if (!err)
		err = note(&s, n, node, word, words);
out:
	free(word);
	free(s.bits);
	free(s.source);
	free(s.origin);
	return err;
}

// ---- gradients ----

uint8_t *yk_reached(const struct yk_graph *g, uint32_t node)
{
	uint8_t *reached = calloc(node + (size_t)1, 1);
	if (!reached)
		return NULL;
	reached[node] = 1;
	for (uint32_t k = node + 1; k-- > 0;) {
		const struct yk_node *n = &g->node[k];
		if (!reached[k] || !yk_differentiable(g, n))
			continue;
		for (uint32_t i = 0; i < n->nin; i++)
			if (yk_ins(g, n)[i] != YK_NIL)
				reached[g->value[yk_ins(g, n)[i]].node] = 1;
	}
	return reached;
}

static int refuse(const struct yoke_context *ctx, const struct yk_leaf *l)
{
	const char *scope = yk_path_name(&ctx->scopes.paths, l->path);
	return yk_fail(YOKE_ERELEASED,
		       "grad: it passes through a result of %s%s%s%s that was evaluated long ago "
			"and whose history was dropped; apply yoke_stop_grad to values carried "
			"from step to step, or take gradients "
			"earlier", yk_op_def(l->op)->name, *scope ? " in scope \"" : "", scope,
		       *scope ? "\"" : "");
}

static int refuse_former(const struct yoke_context *ctx, uint64_t handle)
{
	const struct yk_tensor *t = yk_tensor_in(ctx, (const yoke_tensor *)(uintptr_t)handle);
	return yk_fail(
		YOKE_ERELEASED,
		"grad: it depends on variable %s as it was before, which has a new version by now; take "
		"gradients before yoke_assign and yoke_put, and within the scope of the assignment",
		t && t->name ? t->name : "unnamed");
}

struct requested { // a tensor that the gradient is with respect to
	struct yk_origin of;
	bool depends; // does y depend on its current version?
	bool same;    // a tensor with the same origin came before it
};

// The first entry for a handle, or NULL.
static const struct requested *find_requested(const struct requested *of, size_t n, uint64_t handle)
{
	size_t low = 0, high = n;
	while (low < high) {
		const size_t at = low + (high - low) / 2;
		if (of[at].of.handle < handle)
			low = at + 1;
		else
			high = at;
	}
	return low < n && of[low].of.handle == handle ? &of[low] : NULL;
}

// Is a gradient requested by this tensor although y does not depend on its current version?
static bool is_former(const struct requested *of, size_t n, uint64_t handle)
{
	const struct requested *a = find_requested(of, n, handle);
	for (; a && a < of + n && a->of.handle == handle; a++)
		if (!a->same)
			return !a->depends;
	return false;
}

// Is the gradient through a leaf refused because it is by a tensor's current version (or, if
// `former`, an earlier one)?
static int check_leaf(const struct yoke_context *ctx, const struct yk_leaf *l,
		      const struct requested *of, size_t n, bool former)
{
	int err = 0;
	for (uint32_t i = 0; l->past && i < l->past->n && !err; i++) {
		const struct yk_origin *o = &l->past->at[i];
		const struct requested *a = find_requested(of, n, o->handle);
		for (; a && a < of + n && a->of.handle == o->handle && !former && !err; a++)
			if (a->of.version == o->version)
				err = refuse(ctx, l);
		if (former && is_former(of, n, o->handle))
			err = refuse_former(ctx, o->handle);
	}
	return err;
}

int yk_past_check(const struct yoke_context *ctx, yk_id y, uint32_t n, yoke_tensor *const *p,
		  const yk_id *in)
{
	const struct yk_graph *g = &ctx->graph;
	struct requested *of = malloc((2 * (size_t)n + 1) * sizeof *of);
	uint8_t *reached = yk_reached(g, g->value[y].node);
	bool all = true;
	size_t m = 0;
	int err = of && reached ? 0 : yk_fail(YOKE_ENOMEM, "grad: no memory");
	for (uint32_t i = 0; i < n && !err; i++) {
		const struct yk_tensor *t = yk_tensor_in(ctx, p[i]);
		const uint32_t k = g->value[in[i]].node;
		const bool depends = k <= g->value[y].node && reached[k];
		of[m++] = (struct requested){ { bits_of(p[i]), t ? t->version : 0 },
					      .depends = depends };
		if (t && t->origin.handle)
			of[m++] = (struct requested){ t->origin, .depends = depends, .same = true };
		all &= depends;
	}
	if (!err)
		qsort(of, m, sizeof *of, ascending);
	for (int former = 0; former <= !all && !err; former++) {
		const struct yk_past *last = NULL;
		for (uint32_t k = 0; k <= g->value[y].node && !err; k++) {
			const struct yk_leaf *l = reached[k] ? leaf_of(ctx, &g->node[k]) : NULL;
			if (l && former && l->variable && is_former(of, m, bits_of(l->handle)))
				err = refuse_former(ctx, bits_of(l->handle));
			if (!err && l && l->past != last)
				err = check_leaf(ctx, l, of, m, former);
			last = l ? l->past : last;
		}
	}
	for (size_t i = 0; !all && i < ctx->history.formers && !err; i++) {
		const uint32_t k = g->value[ctx->history.former[i].value].node;
		if (k <= g->value[y].node && reached[k] &&
		    is_former(of, m, bits_of(ctx->history.former[i].variable)))
			err = refuse_former(ctx, bits_of(ctx->history.former[i].variable));
	}
	free(reached);
	free(of);
	return err;
}
