// SPDX-License-Identifier: Apache-2.0
// Keys: the structure of what an evaluation needs, as 32-bit words that are compared whole.
// Shapes and dtypes inside follow from those of the leaves, so only leaves have theirs in the key.

#include "config.h"

#include <stdio.h>
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

// dtype, dims, and which leaf first has the same bytes (f(a,a) is not f(a,b))
static uint32_t *leaf_words(const struct yoke_context *ctx, const struct yk_marks *m,
			    uint32_t *w, const struct yk_value *v, uint32_t at)
{
	const struct yk_leaf *leaf = &ctx->leaf[at];
	*w++ = leaf->kind | (uint32_t)v->dtype << 8 | (uint32_t)v->rank << 16;
	if (leaf->kind != YK_LEAF_STORAGE) {
		*w++ = (uint32_t)leaf->ordinal;
		*w++ = (uint32_t)(leaf->ordinal >> 32);
		return w;
	}
	uint32_t same = m->place[at];
	for (uint32_t k = 0; k < m->place[at]; k++)
		if (ctx->leaf[m->leaf[k]].storage == leaf->storage) {
			same = k;
			break;
		}
	*w++ = same;
	memcpy(w, v->dims, v->rank * sizeof *v->dims);
	return w + 2 * v->rank;
}

int yk_key_make(struct yoke_context *ctx, const struct yk_marks *m,
		const struct yk_root *root, size_t roots, uint32_t settings,
		struct yk_key *key)
{
	const struct yk_graph *g = &ctx->graph;
	size_t most = 4 + 4 * roots + 3 * m->nodes + g->args + 2 * g->nattrs +
		      (3 + 2 * YOKE_MAX_RANK) * m->leaves;
	if (yk_grow(&key->word, &key->cap, most, sizeof *key->word) < 0)
		return no_memory();
	uint32_t *w = key->word;
	*w++ = settings;
	*w++ = (uint32_t)roots;
	for (size_t k = 0; k < m->nodes; k++) {
		const struct yk_node *n = &g->node[m->node[k]];
		*w++ = n->op | (uint32_t)n->nattr << 16;
		if (n->op == YK_LEAF || n->op == YK_SCALAR) {
			w = leaf_words(ctx, m, w, &g->value[n->out],
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

// Words of the node that begins at k.
static size_t node_words(const uint32_t *w)
{
	uint32_t op = w[0] & 0xffff, nattr = w[0] >> 16;
	if (op == YK_LEAF || op == YK_SCALAR)
		return (w[1] & 0xff) == YK_LEAF_STORAGE ? 3 + 2 * (w[1] >> 16) : 4;
	return 3 + w[1] + 2 * nattr;
}

// Where two nodes differ, at word i of both; the ops of both are known.
static void node_difference(const uint32_t *a, const uint32_t *b, size_t i, size_t node,
			    char *to)
{
	uint32_t op = a[0] & 0xffff, other = b[0] & 0xffff;
	const char *name = yk_ops[op].name;
	if (op != other)
		snprintf(to, 200, "node %zu: %s -> %s", node, name, yk_ops[other].name);
	else if (i == 0)
		snprintf(to, 200, "node %zu, %s: rank or attributes %u -> %u", node, name,
			 a[0] >> 16, b[0] >> 16);
	else if (op == YK_LEAF && i == 1)
		snprintf(to, 200, "node %zu, leaf: %s of rank %u -> %s of rank %u", node,
			 yoke_dtype_name(a[1] >> 8 & 0xff), a[1] >> 16,
			 yoke_dtype_name(b[1] >> 8 & 0xff), b[1] >> 16);
	else if (op == YK_LEAF && i == 2)
		snprintf(to, 200, "node %zu, leaf: which leaves share their elements",
			 node);
	else if (op == YK_LEAF)
		snprintf(to, 200, "node %zu, leaf: dim %zu: %u -> %u", node, (i - 3) / 2,
			 a[i], b[i]);
	else if (i >= 3 && i < 3 + a[1])
		snprintf(to, 200, "node %zu, %s: operand %zu", node, name, i - 3);
	else
		snprintf(to, 200, "node %zu, %s: attribute %zu: %u -> %u", node, name,
			 i < 3 ? 0 : (i - 3 - a[1]) / 2, a[i], b[i]);
}

void yk_key_difference(const struct yk_key *a, const struct yk_key *b, char *to)
{
	size_t at = 0, most = a->n < b->n ? a->n : b->n;
	while (at < most && a->word[at] == b->word[at])
		at++;
	if (at == most) {
		snprintf(to, 200, "how many operations there are");
		return;
	}
	if (at < 2) {
		snprintf(to, 200, at ? "the number of roots" : "a setting");
		return;
	}
	size_t node = 0, k = 2;
	while (k + 1 < most &&
	       (a->word[k] & 0xffff) < YK_OPS) { // the node that word `at` is in
		size_t words = node_words(a->word + k);
		if (at < k + words && k + words <= most &&
		    (b->word[k] & 0xffff) < YK_OPS) {
			node_difference(a->word + k, b->word + k, at - k, node, to);
			return;
		}
		k += words;
		node++;
	}
	snprintf(to, 200, "the roots, or what may be overwritten");
}
