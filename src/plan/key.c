// SPDX-License-Identifier: Apache-2.0
// Keys: the structure of what an evaluation needs, as 32-bit words that are compared whole.
// Shapes and dtypes inside follow from those of the leaves, so only leaves have theirs in the key.

#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "plan/plan.h"

static int no_memory(void)
{
	return yk_fail(YOKE_ENOMEM, "no memory to plan");
}

int yk_mark(struct yoke_context *ctx, struct yk_marks *m, const struct yk_root *root,
	    size_t roots)
{
	const struct yk_graph *g = &ctx->graph;
	if (yk_grow(&m->number, &m->number_cap, g->nodes + 1, sizeof *m->number) < 0 ||
	    yk_grow(&m->first, &m->first_cap, g->nodes + 1, sizeof *m->first) < 0 ||
	    yk_grow(&m->node, &m->node_cap, g->nodes + 1, sizeof *m->node) < 0 ||
	    yk_grow(&m->leaf, &m->leaf_cap, ctx->leaves + 1, sizeof *m->leaf) < 0 ||
	    yk_grow(&m->place, &m->place_cap, ctx->leaves + 1, sizeof *m->place) < 0)
		return no_memory();
	memset(m->number, 0xff, g->nodes * sizeof *m->number);
	for (size_t i = 0; i < roots; i++)
		m->number[g->value[root[i].id].node] = 0;
	for (size_t k = g->nodes; k-- > 0;) {
		const struct yk_node *n = &g->node[k];
		if (m->number[k] == YK_NIL)
			continue;
		for (uint32_t i = 0; i < n->nin; i++) {
			yk_id v = g->arg[n->in + i];
			if (v != YK_NIL)
				m->number[g->value[v].node] = 0;
		}
	}
	m->nodes = m->leaves = m->values = 0;
	memset(m->place, 0xff, ctx->leaves * sizeof *m->place);
	for (size_t k = 0; k < g->nodes; k++) {
		const struct yk_node *n = &g->node[k];
		if (m->number[k] == YK_NIL)
			continue;
		m->number[k] = (uint32_t)m->nodes;
		m->first[m->nodes] = (uint32_t)m->values;
		m->node[m->nodes++] = (uint32_t)k;
		m->values += n->nout;
		if (n->op == YK_LEAF || n->op == YK_SCALAR) {
			uint32_t leaf = (uint32_t)g->attrs[n->attr].i;
			m->place[leaf] = (uint32_t)m->leaves;
			m->leaf[m->leaves++] = leaf;
		}
	}
	return 0;
}

// Leaves by the first that has the same bytes.
static void alias_classes(const struct yoke_context *ctx, const struct yk_marks *m)
{
	for (uint32_t k = (uint32_t)m->leaves; k-- > 0;) {
		const struct yk_leaf *leaf = &ctx->leaf[m->leaf[k]];
		if (leaf->kind == YK_LEAF_STORAGE)
			leaf->storage->leaf_place = k;
	}
}

// dtype, dims, and which leaf first has the same bytes (f(a,a) is not f(a,b))
static uint32_t *leaf_words(const struct yoke_context *ctx, uint32_t *w,
			    const struct yk_value *v, uint32_t at)
{
	const struct yk_leaf *leaf = &ctx->leaf[at];
	*w++ = leaf->kind | (uint32_t)v->dtype << 8 | (uint32_t)v->rank << 16;
	if (leaf->kind != YK_LEAF_STORAGE) {
		*w++ = (uint32_t)leaf->ordinal;
		*w++ = (uint32_t)(leaf->ordinal >> 32);
		return w;
	}
	*w++ = leaf->storage->leaf_place;
	memcpy(w, v->dims, v->rank * sizeof *v->dims);
	return w + 2 * v->rank;
}

int yk_key_make(struct yoke_context *ctx, const struct yk_marks *m,
		const struct yk_root *root, size_t roots, uint32_t settings,
		struct yk_key *key)
{
	const struct yk_graph *g = &ctx->graph;
	size_t most = 2 + YK_ROOT_WORDS * roots + 3 * m->nodes + g->args + 2 * g->nattrs +
		      (3 + 2 * YOKE_MAX_RANK) * m->leaves;
	if (yk_grow(&key->word, &key->cap, most, sizeof *key->word) < 0)
		return no_memory();
	uint32_t *w = key->word;
	alias_classes(ctx, m);
	*w++ = settings;
	*w++ = (uint32_t)roots;
	for (size_t k = 0; k < m->nodes; k++) {
		const struct yk_node *n = &g->node[m->node[k]];
		*w++ = n->op | (uint32_t)n->nattr << 16;
		if (n->op == YK_LEAF || n->op == YK_SCALAR) {
			w = leaf_words(ctx, w, &g->value[n->out],
				       (uint32_t)g->attrs[n->attr].i);
			continue;
		}
		*w++ = n->nin;
		*w++ = n->list;
		for (uint32_t i = 0; i < n->nin; i++) {
			yk_id v = g->arg[n->in + i];
			uint32_t node = v == YK_NIL ? 0 : g->value[v].node;
			*w++ = v == YK_NIL ?
				       v :
				       m->first[m->number[node]] + v - g->node[node].out;
		}
		memcpy(w, &g->attrs[n->attr], n->nattr * sizeof(union yoke_attr));
		w += 2 * n->nattr;
	}
	for (size_t i = 0; i < roots; i++) {
		uint32_t node = g->value[root[i].id].node;
		*w++ = m->first[m->number[node]] + root[i].id - g->node[node].out;
		*w++ = root[i].handle ? root[i].handle->kind : YK_NIL;
		*w++ = root[i].donor;
		*w++ = root[i].idle;
	}
	key->n = (size_t)(w - key->word);
	key->hash = yk_hash(key->word, key->n * sizeof *key->word, 0);
	return 0;
}
