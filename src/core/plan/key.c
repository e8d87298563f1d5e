// SPDX-License-Identifier: Apache-2.0
// Keys: the structure of an evaluation, as 32-bit words that are compared in full.
// Only leaves have shapes and dtypes in the key, because those of other values follow from them.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "plan/key.h"

static int no_memory(void)
{
	return yk_fail(YOKE_ENOMEM, "no memory to plan");
}

static int overwritten(const struct yk_leaf *l)
{
	const char *name = l->variable ? l->variable->name : NULL;
	return yk_fail(
		YOKE_ERELEASED,
		"a value that was released by an earlier evaluation would have to be computed again, and the "
		"version of variable %s it was computed from has been overwritten since; keep it before eval, or "
		"pass it to eval; for a gradient, yoke_stop_grad what variables are assigned",
		name ? name : "(unnamed, or freed)");
}

// Notes what a leaf of the evaluation is at this time.
static int look_at_leaf(const struct yoke_context *ctx, struct yk_marks *m, uint32_t at)
{
	const struct yk_leaf *l = &ctx->leaves.at[at];
	if (l->kind != YK_LEAF_STORAGE) {
		m->numbers++;
		return 0;
	}
	m->failed |= l->storage->failed != 0;
	m->uploads |= l->storage->up != NULL;
	return l->storage->buffer || l->storage->failed ? 0 : overwritten(l);
}

// Numbers a leaf of the evaluation.
static int use_leaf(const struct yoke_context *ctx, struct yk_marks *m, uint32_t at)
{
	m->leaf_index[at] = (uint32_t)m->leaves;
	m->leaf[m->leaves++] = at;
	return look_at_leaf(ctx, m, at);
}

static int use_made(const struct yoke_context *ctx, struct yk_marks *m, const struct yk_node *n,
		    uint32_t need)
{
	int err = 0;
	for (uint32_t i = 0; i < n->nout && !err; i++)
		if (need & yk_result_bit(&ctx->graph, n->out + i))
			err = use_leaf(ctx, m, ctx->graph.value[n->out + i].made);
	return err;
}

// Finds the needed results of each node and returns the first needed node.  owed: pending
// collectives are needed, too.
static size_t find_needed(const struct yk_graph *g, struct yk_node_mark *mark,
			  const struct yk_root *root, size_t roots, bool owed)
{
	size_t high = 0, low = g->nodes;
	for (size_t k = g->settled; owed && k < g->nodes; k++) {
		if (!yk_is_ranks(&g->node[k]) || g->node[k].done)
			continue;
		mark[k].need |= 1;
		high = k;
		low = k < low ? k : low;
	}
	for (size_t i = 0; i < roots; i++) {
		uint32_t k = g->value[root[i].id].node;
		mark[k].need |= yk_result_bit(g, root[i].id);
		high = k > high ? k : high;
		low = k < low ? k : low;
	}
	for (size_t k = high + 1; k-- > low;) {
		const struct yk_node *n = &g->node[k];
		if (!mark[k].need || yk_is_made(g, n, mark[k].need))
			continue;
		for (uint32_t i = 0; i < n->nin; i++) {
			yk_id v = g->arg[n->in + i];
			if (v == YK_NIL)
				continue;
			uint32_t by = g->value[v].node;
			mark[by].need |= yk_result_bit(g, v);
			low = by < low ? by : low;
		}
	}
	return low;
}

// Numbers a needed node, to be computed or used as a leaf.
static int number_node(const struct yoke_context *ctx, struct yk_marks *m, uint32_t k)
{
	const struct yk_graph *g = &ctx->graph;
	const struct yk_node *n = &g->node[k];
	struct yk_node_mark *mark = &m->mark[k];
	const uint32_t at = (uint32_t)m->nodes, wanted = mark->need;
	const bool made = yk_is_made(g, n, wanted);
	mark->need = 0;
	mark->index = at;
	mark->shift = (uint32_t)m->values - n->out;
	m->made[at] = made ? wanted : 0;
	m->node[at] = k;
	m->nodes++;
	m->values += n->nout;
	if (made)
		return use_made(ctx, m, n, wanted);
	if (n->op == YK_LEAF || n->op == YK_SCALAR)
		return use_leaf(ctx, m, (uint32_t)g->attrs[n->attr].i);
	if (!n->done)
		return 0;
	if (yk_is_ranks(n))
		return yk_op_fail(g, n->op, YOKE_ERELEASED,
				  "the ranks did it in an earlier evaluation, and its result "
				  "was not kept; keep it before eval, or pass it to eval");
	if (!(yk_op_def(n->op)->flags & (YK_F_LEAF | YK_F_VIEW))) {
		m->repeated++;
		m->repeats = k;
	}
	return 0;
}

// ---- evaluations of the same operations ----

static struct yk_node_shape shape_of(const struct yk_node *n)
{
	return (struct yk_node_shape){ n->op | (uint32_t)n->nattr << 16, n->nin, n->nout, n->list };
}

static bool is_same_shape(struct yk_node_shape a, struct yk_node_shape b)
{
	return !((a.op ^ b.op) | (a.nin ^ b.nin) | (a.nout ^ b.nout) | (a.list ^ b.list));
}

// Has no evaluation computed anything in the graph, and are no collectives pending?
static bool is_fresh(const struct yoke_context *ctx)
{
	return !ctx->graph.settled && !ctx->graph.owed && !ctx->mode.eager;
}

// Does the graph hold the operations, connections, attributes and roots of the last evaluation?
static bool is_repeated(const struct yoke_context *ctx, const struct yk_shapes *last,
			const struct yk_root *root, size_t roots)
{
	const struct yk_graph *g = &ctx->graph;
	bool same = last->nodes && is_fresh(ctx) && g->nodes == last->nodes &&
		    g->args == last->args && g->nattrs == last->attrs &&
		    ctx->leaves.n == last->leaves && roots == last->roots;
	for (size_t i = 0; i < roots && same; i++)
		same = root[i].id == last->root[i];
	for (size_t k = 0; k < g->nodes && same; k++)
		same = is_same_shape(shape_of(&g->node[k]), last->node[k]);
	return same && !memcmp(g->arg, last->arg, g->args * sizeof *g->arg) &&
	       !memcmp(g->attrs, last->attr, g->nattrs * sizeof *g->attrs);
}

// Keeps the operations for is_repeated, if they qualify.
static void keep_shapes(const struct yoke_context *ctx, struct yk_shapes *last,
			const struct yk_root *root, size_t roots)
{
	const struct yk_graph *g = &ctx->graph;
	if (!is_fresh(ctx) ||
	    yk_grow(&last->node, &last->node_cap, g->nodes, sizeof *last->node) < 0 ||
	    yk_grow(&last->arg, &last->arg_cap, g->args + 1, sizeof *last->arg) < 0 ||
	    yk_grow(&last->attr, &last->attr_cap, g->nattrs + 1, sizeof *last->attr) < 0 ||
	    yk_grow(&last->root, &last->root_cap, roots + 1, sizeof *last->root) < 0)
		return;
	for (size_t k = 0; k < g->nodes; k++)
		last->node[k] = shape_of(&g->node[k]);
	if (g->args)
		memcpy(last->arg, g->arg, g->args * sizeof *g->arg);
	if (g->nattrs)
		memcpy(last->attr, g->attrs, g->nattrs * sizeof *g->attrs);
	for (size_t i = 0; i < roots; i++)
		last->root[i] = root[i].id;
	last->args = g->args;
	last->attrs = g->nattrs;
	last->leaves = ctx->leaves.n;
	last->roots = roots;
	last->nodes = g->nodes;
}

void yk_marks_fini(struct yk_marks *m)
{
	free(m->mark);
	free(m->node);
	free(m->leaf);
	free(m->leaf_index);
	free(m->made);
	free(m->word);
	free(m->last.node);
	free(m->last.arg);
	free(m->last.attr);
	free(m->last.root);
}

int yk_mark(struct yoke_context *ctx, struct yk_marks *m, const struct yk_root *root,
	    size_t roots)
{
	const struct yk_graph *g = &ctx->graph;
	const size_t had = m->mark_cap, leaf_indices = m->leaf_index_cap;
	int err = 0;
	m->numbers = 0;
	m->failed = m->uploads = false;
	if (is_repeated(ctx, &m->last, root, roots)) {
		for (size_t i = 0; i < m->leaves && !err; i++)
			err = look_at_leaf(ctx, m, m->leaf[i]);
		return err;
	}
	m->last.nodes = 0;
	m->keyed = false;
	// reset only entries of the last evaluation, so that the cost does not depend on the length
	// of the history
	for (size_t i = 0; i < m->nodes; i++)
		m->mark[m->node[i]].index = YK_NIL;
	for (size_t i = 0; i < m->leaves; i++)
		m->leaf_index[m->leaf[i]] = YK_NIL;
	m->nodes = m->leaves = m->values = m->repeated = 0;
	if (yk_grow(&m->mark, &m->mark_cap, g->nodes + 1, sizeof *m->mark) < 0 ||
	    yk_grow(&m->node, &m->node_cap, g->nodes + 1, sizeof *m->node) < 0 ||
	    yk_grow(&m->made, &m->made_cap, g->nodes + 1, sizeof *m->made) < 0 ||
	    yk_grow(&m->leaf, &m->leaf_cap, ctx->leaves.n + 1, sizeof *m->leaf) < 0 ||
	    yk_grow(&m->leaf_index, &m->leaf_index_cap, ctx->leaves.n + 1, sizeof *m->leaf_index) <
		    0)
		return no_memory();
	for (size_t i = had; i < m->mark_cap; i++)
		m->mark[i] = (struct yk_node_mark){ .index = YK_NIL };
	memset(m->leaf_index + leaf_indices, 0xff,
	       (m->leaf_index_cap - leaf_indices) * sizeof *m->leaf_index);
	size_t k = find_needed(g, m->mark, root, roots, g->owed && !ctx->mode.eager);
	for (; k < g->nodes && !err; k++)
		if (m->mark[k].need)
			err = number_node(ctx, m, (uint32_t)k);
	for (; k < g->nodes; k++)
		m->mark[k].need = 0;
	if (!err)
		keep_shapes(ctx, &m->last, root, roots);
	return err;
}

// ---- keys ----

// For each leaf, the first leaf with the same bytes.
static void alias_classes(const struct yoke_context *ctx, const struct yk_marks *m)
{
	for (uint32_t k = (uint32_t)m->leaves; k-- > 0;) {
		const struct yk_leaf *leaf = &ctx->leaves.at[m->leaf[k]];
		if (leaf->kind == YK_LEAF_STORAGE)
			leaf->storage->leaf_index = k;
	}
}

enum { LEAF_WORDS = 2 + 2 * YOKE_MAX_RANK }; // at most
_Static_assert((int)LEAF_WORDS >= (int)YK_ROOT_WORDS, "is_key_of has room for either");

// dtype, dims, and the first leaf with the same bytes (f(a,a) is not f(a,b))
static uint32_t *leaf_words(const struct yoke_context *ctx, uint32_t *w,
			    const struct yk_value *v, uint32_t at)
{
	const struct yk_leaf *leaf = &ctx->leaves.at[at];
	const bool host = leaf->kind == YK_LEAF_STORAGE && yk_lies_on_host(leaf->storage);
	*w++ = leaf->kind | (uint32_t)v->dtype << 8 | (uint32_t)v->rank << 16 |
	       (uint32_t)host << 24 | (uint32_t)yk_is_skewed(leaf) << 25;
	if (leaf->kind != YK_LEAF_STORAGE) {
		*w++ = (uint32_t)leaf->ordinal;
		*w++ = (uint32_t)(leaf->ordinal >> 32);
		return w;
	}
	*w++ = leaf->storage->leaf_index;
	for (int i = 0; i < v->rank; i++, w += 2)
		memcpy(w, &v->dims[i], sizeof *v->dims);
	return w;
}

static uint32_t *root_words(const struct yoke_context *ctx, const struct yk_marks *m, uint32_t *w,
			    const struct yk_root *root)
{
	*w++ = yk_number_of(m, &ctx->graph, root->id);
	*w++ = root->handle ? root->handle->kind | (uint32_t)root->handle->host << 8 : YK_NIL;
	*w++ = root->donor;
	*w++ = root->idle;
	return w;
}

// Is the key that was made from these marks also that of this evaluation?
static bool is_key_of(const struct yoke_context *ctx, const struct yk_marks *m,
		      const struct yk_root *root, size_t roots, uint32_t settings,
		      const struct yk_key *key)
{
	const struct yk_graph *g = &ctx->graph;
	uint32_t word[LEAF_WORDS];
	bool same = m->keyed && key->n && key->word[0] == settings && key->word[1] == roots;
	for (size_t i = 0; i < m->leaves && same; i++) {
		const struct yk_value *v = &g->value[ctx->leaves.at[m->leaf[i]].id];
		const size_t n = (size_t)(leaf_words(ctx, word, v, m->leaf[i]) - word);
		same = !memcmp(word, key->word + m->word[i], n * sizeof *word);
	}
	if (!same)
		return false;
	const uint32_t *tail = key->word + key->n - YK_ROOT_WORDS * roots;
	for (size_t i = 0; i < roots && same; i++, tail += YK_ROOT_WORDS) {
		root_words(ctx, m, word, &root[i]);
		same = !memcmp(word, tail, YK_ROOT_WORDS * sizeof *word);
	}
	return same;
}

int yk_key_make(struct yoke_context *ctx, struct yk_marks *m,
		const struct yk_root *root, size_t roots, uint32_t settings,
		struct yk_key *key)
{
	const struct yk_graph *g = &ctx->graph;
	size_t max = 2 + YK_ROOT_WORDS * roots + 4 * m->nodes + g->args + 2 * g->nattrs +
		      (1 + LEAF_WORDS) * m->leaves;
	alias_classes(ctx, m);
	if (is_key_of(ctx, m, root, roots, settings, key))
		return 0;
	m->keyed = false;
	if (yk_grow(&key->word, &key->cap, max, sizeof *key->word) < 0 ||
	    yk_grow(&m->word, &m->word_cap, m->leaves + 1, sizeof *m->word) < 0)
		return no_memory();
	uint32_t *w = key->word, *begins = m->word;
	*w++ = settings;
	*w++ = (uint32_t)roots;
	for (size_t k = 0; k < m->nodes; k++) {
		const struct yk_node *n = &g->node[m->node[k]];
		if (m->made[k] && n->nout == 1) { // the same as a leaf
			*w++ = YK_LEAF | 1u << 16;
			*begins++ = (uint32_t)(w - key->word);
			w = leaf_words(ctx, w, &g->value[n->out], g->value[n->out].made);
			continue;
		}
		if (m->made[k]) {
			uint32_t *count = w + 3;
			*w++ = YK_KEY_MADE;
			*w++ = n->nout;
			*w++ = m->made[k];
			*w++ = 0;
			for (uint32_t i = 0; i < n->nout; i++)
				if (m->made[k] & yk_result_bit(g, n->out + i)) {
					*begins++ = (uint32_t)(w - key->word);
					w = leaf_words(ctx, w, &g->value[n->out + i],
						       g->value[n->out + i].made);
					++*count;
				}
			continue;
		}
		*w++ = n->op | (uint32_t)n->nattr << 16;
		if (n->op == YK_LEAF || n->op == YK_SCALAR) {
			*begins++ = (uint32_t)(w - key->word);
			w = leaf_words(ctx, w, &g->value[n->out],
				       (uint32_t)g->attrs[n->attr].i);
			continue;
		}
		*w++ = n->nin;
		*w++ = n->list;
		for (uint32_t i = 0; i < n->nin; i++) {
			yk_id v = g->arg[n->in + i];
			*w++ = v == YK_NIL ? v : yk_number_of(m, g, v);
		}
		for (uint32_t i = 0; i < n->nattr; i++, w += 2)
			memcpy(w, &g->attrs[n->attr + i], sizeof(union yoke_attr));
	}
	for (size_t i = 0; i < roots; i++)
		w = root_words(ctx, m, w, &root[i]);
	key->n = (size_t)(w - key->word);
	key->hash = yk_hash(key->word, key->n * sizeof *key->word, 0);
	m->keyed = m->last.nodes;
	return 0;
}
