// SPDX-License-Identifier: Apache-2.0
// Explains plan cache misses: finds the most similar cached key and describes the first field that
// differs.

#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/number.h"
#include "plan/key.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "plan/varying.h"

// A warning is logged for this many misses among the last 16 evaluations whose operations were
// evaluated before.
enum { OFTEN = 8 };
// A larger attribute is the bit pattern of a double: even the one of 1e-300 is larger.
static const int64_t MAX_INTEGER = (int64_t)1 << 52;

// ---- similarity ----

static size_t equal_words(const uint32_t *a, const uint32_t *b, size_t n)
{
	size_t equal = 0;
	for (size_t i = 0; i < n; i++)
		equal += a[i] == b[i];
	return equal;
}

// The number of differing words, aligned at the front or at the end, whichever fits better.
static size_t distance(const struct yk_key *a, const struct yk_key *b)
{
	size_t n = a->n < b->n ? a->n : b->n, max = a->n < b->n ? b->n : a->n;
	size_t front = equal_words(a->word, b->word, n),
	       end = equal_words(a->word + a->n - n, b->word + b->n - n, n);
	return max - (front > end ? front : end);
}

// Among equally similar plans, the most recently used.
static const struct yk_plan *nearest(const struct yk_planner *pl)
{
	const struct yk_plan *best = NULL;
	size_t min = 0;
	for (int i = 0; i < YK_BUCKETS; i++)
		for (const struct yk_plan *p = pl->cache.bucket[i]; p; p = p->cached.next) {
			size_t d = distance(&p->key, &pl->key);
			if (!best || d < min ||
			    (d == min && p->cached.used > best->cached.used)) {
				best = p;
				min = d;
			}
		}
	return best;
}

// ---- fields of a key ----

// The rank of the leaf that begins here (format in key.c), stored beside its location.
static uint32_t leaf_rank(const uint32_t *w)
{
	return w[0] >> 16 & 0xff;
}

static size_t leaf_words(const uint32_t *w)
{
	return (w[0] & 0xff) == YK_LEAF_STORAGE ? 2 + 2 * leaf_rank(w) : 3;
}

// The number of words of the node that begins here.
static size_t node_words(const uint32_t *w)
{
	uint32_t op = w[0] & 0xffff, nattr = w[0] >> 16;
	if (op == YK_KEY_MADE) {
		size_t n = 4;
		for (uint32_t i = 0; i < w[3]; i++)
			n += leaf_words(w + n);
		return n;
	}
	if (op == YK_LEAF || op == YK_SCALAR)
		return 1 + leaf_words(w + 1);
	return 3 + w[1] + 2 * nattr;
}

// Have the keys the same operations, connections and settings?  Shapes and attributes may differ.
static bool same_operations(const struct yk_key *a, const struct yk_key *b)
{
	size_t i = 2, k = 2;
	const size_t roots = YK_ROOT_WORDS * a->word[1], a_end = a->n - roots;
	if (a->word[0] != b->word[0] || a->word[1] != b->word[1])
		return false;
	for (const size_t b_end = b->n - roots; i < a_end && k < b_end;) {
		const uint32_t *x = a->word + i, *y = b->word + k, op = x[0] & 0xffff;
		const bool made = op == YK_KEY_MADE, leaf = op == YK_LEAF || op == YK_SCALAR;
		if (x[0] != y[0] || (!leaf && (x[1] != y[1] || x[2] != y[2])))
			return false;
		if (!leaf && !made && memcmp(x + 3, y + 3, x[1] * sizeof *x))
			return false;
		i += node_words(x);
		k += node_words(y);
	}
	return i == a_end && k == b->n - roots;
}

// Is there a plan of the same operations that was never reused?
static bool never_reused(const struct yk_planner *pl)
{
	for (int i = 0; i < YK_BUCKETS; i++)
		for (const struct yk_plan *p = pl->cache.bucket[i]; p; p = p->cached.next)
			if (p->cached.used == p->cached.made && same_operations(&p->key, &pl->key))
				return true;
	return false;
}

static int64_t word_pair(const uint32_t *w)
{
	int64_t x;
	memcpy(&x, w, sizeof x);
	return x;
}

static double real(int64_t bits)
{
	double x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

// The name of attribute k of nattr, and the axis it belongs to, or -1.
static const char *attribute(uint32_t op, uint32_t nattr, uint32_t k, int *axis)
{
	uint32_t rank = 0;
	*axis = -1;
	switch (op) {
	case YK_RESHAPE:
	case YK_BROADCAST:
	case YK_IOTA:
	case YK_RAND_BITS: *axis = (int)k; return "dim";
	case YK_PERMUTE: *axis = (int)k; return "axis";
	case YK_SLICE_UPDATE: *axis = (int)k; return "start";
	case YK_SLICE:
		rank = nattr / 3;
		*axis = (int)(k % rank);
		return k < rank ? "start" : k < 2 * rank ? "step" : "size";
	case YK_PAD:
		rank = nattr / 2;
		*axis = k < 2 * rank ? (int)(k % rank) : -1;
		return k < rank ? "before" : k < 2 * rank ? "after" : "value";
	case YK_CONST: return k ? "value" : "dtype";
	case YK_CAST:
	case YK_BITCAST: return "dtype";
	case YK_CONCAT:
	case YK_GATHER: return "axis";
	case YK_MATMUL: return k ? "dtype" : "flags";
	}
	if (yk_op_def(op)->flags & YK_F_REDUCE)
		return k ? "keep" : "axes";
	*axis = (int)k;
	return "attribute";
}

static void attribute_difference(const uint32_t *a, const uint32_t *b, uint32_t k, char *to,
				 size_t cap)
{
	uint32_t op = a[0] & 0xffff, nattr = a[0] >> 16;
	const uint32_t *x = a + 3 + a[1] + 2 * k, *y = b + 3 + b[1] + 2 * k;
	char which[16] = "";
	int axis;
	const char *name = attribute(op, nattr, k, &axis);
	if (axis >= 0)
		snprintf(which, sizeof which, " %d", axis);
	int64_t was = word_pair(x), is = word_pair(y);
	if (!strcmp(name, "dtype"))
		snprintf(to, cap, "dtype: %s -> %s", yoke_dtype_name((int)was),
			 yoke_dtype_name((int)is));
	else if (!strcmp(name, "value"))
		snprintf(to, cap, "value: bits %#llx -> %#llx", (unsigned long long)was,
			 (unsigned long long)is);
	else if (!strcmp(name, "attribute") && (is > MAX_INTEGER || was > MAX_INTEGER))
		yk_snprintf(to, cap, "%s%s: %g -> %g", name, which, real(was), real(is));
	else
		snprintf(to, cap, "%s%s: %lld -> %lld", name, which, (long long)was,
			 (long long)is);
}

// Describes the difference of two leaves, at word i of both.
static void leaf_difference(const uint32_t *a, const uint32_t *b, size_t i, char *to, size_t cap)
{
	static const char *const kind[] = { "a tensor", "a host scalar", "the random seed",
					    "the random step" };
	if (i == 1 && (a[1] & 0xff) != (b[1] & 0xff))
		snprintf(to, cap, "%s -> %s", kind[a[1] & 3], kind[b[1] & 3]);
	else if (i == 1 && (a[1] >> 8 & 0xff) != (b[1] >> 8 & 0xff))
		snprintf(to, cap, "dtype: %s -> %s", yoke_dtype_name((int)(a[1] >> 8 & 0xff)),
			 yoke_dtype_name((int)(b[1] >> 8 & 0xff)));
	else if (i == 1 && leaf_rank(a + 1) != leaf_rank(b + 1))
		snprintf(to, cap, "rank: %u -> %u", leaf_rank(a + 1), leaf_rank(b + 1));
	else if (i == 1)
		snprintf(to, cap, "whose memory holds it");
	else if ((a[1] & 0xff) != YK_LEAF_STORAGE)
		snprintf(to, cap, "another call of a random op, or in another scope");
	else if (i == 2)
		snprintf(to, cap, "which earlier leaf is the same tensor");
	else
		snprintf(to, cap, "dim %zu: %lld -> %lld", (i - 3) / 2,
			 (long long)word_pair(a + 3 + (i - 3) / 2 * 2),
			 (long long)word_pair(b + 3 + (i - 3) / 2 * 2));
}

// Describes the difference of two nodes, at word i of both.
static void node_difference(const uint32_t *a, const uint32_t *b, size_t i, char *to, size_t cap)
{
	uint32_t op = a[0] & 0xffff, other = b[0] & 0xffff;
	if (op == YK_KEY_MADE || other == YK_KEY_MADE)
		snprintf(to, cap, "which of it an earlier evaluation computed");
	else if (op != other)
		snprintf(to, cap, "it was %s", yk_op_def(op)->name);
	else if (i == 0)
		snprintf(to, cap, "attributes, or rank: %u -> %u", a[0] >> 16, b[0] >> 16);
	else if (op == YK_LEAF || op == YK_SCALAR)
		leaf_difference(a, b, i, to, cap);
	else if (i == 1)
		snprintf(to, cap, "operands: %u -> %u", a[1], b[1]);
	else if (i == 2)
		snprintf(to, cap, "tensors in a list: %u -> %u", a[2], b[2]);
	else if (i < 3 + a[1])
		snprintf(to, cap, "operand %zu is another value", i - 3);
	else
		attribute_difference(a, b, (uint32_t)(i - 3 - a[1]) / 2, to, cap);
}

static void root_difference(size_t i, char *to, size_t cap)
{
	static const char *const what[] = {
		"another value is requested",
		"a variable or a kept value",
		"whether a variable's old version exists, and in which leaf",
		"whether a variable's old version may be overwritten",
	};
	snprintf(to, cap, "result %zu: %s", i / YK_ROOT_WORDS, what[i % YK_ROOT_WORDS]);
}

// Describes a node of the new key: its number, op, name and scope.
static int name_node(const struct yk_planner *pl, size_t node, char *to, size_t cap)
{
	const struct yoke_context *ctx = pl->ctx;
	const struct yk_node *n = &ctx->graph.node[pl->marks.node[node]];
	const char *scope = yk_path_name(&ctx->scopes.paths, n->scope), *name = NULL;
	if (n->op == YK_LEAF) {
		const struct yk_leaf *l = &ctx->leaves.at[yk_attrs(&ctx->graph, n)[0].i];
		name = l->variable ? l->variable->name : NULL;
	}
	return snprintf(to, cap, "node %zu %s%s%.40s%s%.80s: ", node, yk_op_def(n->op)->name,
			name ? " " : "", name ? name : "", *scope ? " in " : "", scope);
}

void yk_key_difference(const struct yk_planner *pl, const struct yk_key *was, char *to,
		       size_t cap)
{
	const struct yk_key *is = &pl->key;
	size_t max = was->n < is->n ? was->n : is->n, at = 0, node = 0, k = 2;
	while (at < max && was->word[at] == is->word[at])
		at++;
	if (at < 2) {
		snprintf(to, cap, at ? "results: %u -> %u" : "a setting was set", was->word[1],
			 is->word[1]);
		return;
	}
	size_t end = is->n - YK_ROOT_WORDS * is->word[1];
	for (; k < end; node++) { // find the node that has word `at`
		size_t words = node_words(is->word + k);
		if (at < k + words)
			break;
		k += words;
	}
	size_t old_end = was->n - YK_ROOT_WORDS * was->word[1];
	if (k >= end && k >= old_end) { // the same nodes
		root_difference(at - k, to, cap);
		return;
	}
	if (k >= end) {
		snprintf(to, cap, "fewer operations: %zu", node);
		return;
	}
	int n = name_node(pl, node, to, cap);
	if (n < 0 || (size_t)n >= cap)
		return;
	if (k >= old_end)
		snprintf(to + n, cap - (size_t)n, "there was no such operation");
	else
		node_difference(was->word + k, is->word + k, at - k, to + n, cap - (size_t)n);
}

void yk_miss_report(struct yk_planner *pl)
{
	const struct yk_plan *p = nearest(pl);
	if (!p) {
		snprintf(pl->miss.text, sizeof pl->miss.text, "no plan is kept");
		return;
	}
	yk_key_difference(pl, &p->key, pl->miss.text, sizeof pl->miss.text);
	yk_info("plan", "new plan: %s", pl->miss.text);
	if (pl->miss.warned || pl->ctx->mode.eager || pl->ctx->mode.shapes_vary)
		return;
	pl->miss.vain |= never_reused(pl);
	if (__builtin_popcount(pl->miss.vain & 0xffff) < OFTEN)
		return;
	pl->miss.warned = true;
	yk_warn("plan",
		"%d of the last 16 evaluations needed a new plan for operations that had one, the last because of %s; "
		"make what changes a scalar or a variable, and shapes few",
		OFTEN, pl->miss.text);
}

bool yk_shapes_vary(yoke_context *ctx, bool vary)
{
	const bool was = ctx->mode.shapes_vary;
	ctx->mode.shapes_vary = vary;
	return was;
}

const char *yoke_plan_miss(void)
{
	const struct yoke_context *ctx = yk_current();
	return ctx && ctx->planner ? ctx->planner->miss.text : "";
}
