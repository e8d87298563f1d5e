// SPDX-License-Identifier: Apache-2.0
// The trie's hash table of edges, with open addressing.
#include "config.h"

#include <stdlib.h>

#include "base/arena.h"
#include "tokenizer/trie.h"
#include "yoke.h"

static size_t slot_of(const struct yk_trie *t, uint32_t from, uint8_t byte)
{
	const uint64_t key = ((uint64_t)from << 8 | byte) * 0x9e3779b97f4a7c15u;
	size_t i = (key >> 20) & (t->size - 1);

	while (t->edge[i].to && (t->edge[i].from != from || t->edge[i].byte != byte))
		i = (i + 1) & (t->size - 1);
	return i;
}

static int rehash(struct yk_trie *t)
{
	struct yk_trie_edge *before = t->edge;
	const size_t size = t->size, wanted = size ? 2 * size : 256;
	struct yk_trie_edge *edge = calloc(wanted, sizeof *edge);

	if (!edge)
		return YOKE_ENOMEM;
	t->edge = edge;
	t->size = wanted;
	for (size_t i = 0; i < size; i++)
		if (before[i].to)
			edge[slot_of(t, before[i].from, before[i].byte)] = before[i];
	free(before);
	return 0;
}

static int node_new(struct yk_trie *t)
{
	if (yk_grow(&t->value, &t->cap, t->nodes + 1, sizeof *t->value) < 0 ||
	    t->nodes >= UINT32_MAX)
		return YOKE_ENOMEM;
	t->value[t->nodes++] = -1;
	return 0;
}

int yk_trie_add(struct yk_trie *t, const char *s, size_t n, int32_t value)
{
	uint32_t node = 0;

	if (!t->nodes && node_new(t) < 0)
		return YOKE_ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (2 * (t->used + 1) > t->size && rehash(t) < 0)
			return YOKE_ENOMEM;
		const size_t slot = slot_of(t, node, (uint8_t)s[i]);
		if (!t->edge[slot].to) {
			if (node_new(t) < 0)
				return YOKE_ENOMEM;
			t->edge[slot] = (struct yk_trie_edge){ .from = node,
							       .to = (uint32_t)(t->nodes - 1),
							       .byte = (uint8_t)s[i] };
			t->used++;
		}
		node = t->edge[slot].to;
	}
	if (t->value[node] < 0)
		t->value[node] = value;
	return 0;
}

uint32_t yk_trie_next(const struct yk_trie *t, uint32_t node, char byte)
{
	return t->size ? t->edge[slot_of(t, node, (uint8_t)byte)].to : 0;
}

int32_t yk_trie_longest(const struct yk_trie *t, const char *s, const char *end, size_t *n)
{
	int32_t best = -1;
	uint32_t node = 0;

	for (const char *at = s; at < end && (node = yk_trie_next(t, node, *at)); at++)
		if (t->value[node] >= 0) {
			best = t->value[node];
			*n = (size_t)(at + 1 - s);
		}
	return best;
}

void yk_trie_fini(struct yk_trie *t)
{
	free(t->edge);
	free(t->value);
	*t = (struct yk_trie){ 0 };
}
