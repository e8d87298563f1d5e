// SPDX-License-Identifier: Apache-2.0
// Vocabularies as an array of tokens and a hash table of their ids.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "tokenizer/vocab.h"

static size_t slot_of(const struct yk_vocab *v, const char *s, size_t n)
{
	size_t i = yk_hash(s, n, 0) & (v->table_size - 1);

	while (v->table[i]) {
		const struct yk_token *t = &v->token[v->table[i] - 1];
		if (t->n == n && !memcmp(t->s, s, n))
			break;
		i = (i + 1) & (v->table_size - 1);
	}
	return i;
}

static int rehash(struct yk_vocab *v, const char *what)
{
	uint32_t *before = v->table;
	const size_t size = v->table_size;
	const size_t wanted = size ? 2 * size : 1024;
	uint32_t *table = calloc(wanted, sizeof *table);

	if (!table)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for the vocabulary", what);
	v->table = table;
	v->table_size = wanted;
	for (size_t i = 0; i < size; i++)
		if (before[i]) {
			const struct yk_token *t = &v->token[before[i] - 1];
			table[slot_of(v, t->s, t->n)] = before[i];
		}
	free(before);
	return 0;
}

int yk_vocab_add(struct yk_vocab *v, const char *what, int64_t id, const char *s, size_t n)
{
	if (id < 0 || id >= YK_VOCAB_MAX)
		return yk_fail(YOKE_EFORMAT, "%s: token '%.40s' has id %lld, not in 0 .. %d", what,
			       s, (long long)id, YK_VOCAB_MAX - 1);
	if (n > YK_VOCAB_TOKEN)
		return yk_fail(YOKE_EFORMAT, "%s: token %lld has %zu bytes, at most %d", what,
			       (long long)id, n, YK_VOCAB_TOKEN);
	const size_t at = (size_t)id;
	if (at < v->count && v->token[at].s) {
		if (v->token[at].n == n && !memcmp(v->token[at].s, s, n))
			return 0;
		return yk_fail(YOKE_EFORMAT, "%s: id %zu has two tokens, '%.40s' and '%.40s'", what,
			       at, v->token[at].s, s);
	}
	if (2 * (v->used + 1) > v->table_size && rehash(v, what) < 0)
		return YOKE_ENOMEM;
	char *copy = yk_arena_alloc(&v->arena, n + 1);
	if (!copy || yk_grow(&v->token, &v->cap, at + 1, sizeof *v->token) < 0)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for the vocabulary", what);
	if (n)
		memcpy(copy, s, n);
	if (at >= v->count) {
		memset(v->token + v->count, 0, (at + 1 - v->count) * sizeof *v->token);
		v->count = at + 1;
	}
	v->token[at] = (struct yk_token){ .s = copy, .n = (uint32_t)n };
	if (n > v->longest)
		v->longest = n;
	const size_t slot = slot_of(v, s, n);
	if (!v->table[slot]) {
		v->table[slot] = (uint32_t)id + 1;
		v->used++;
	}
	return 0;
}

int32_t yk_vocab_id(const struct yk_vocab *v, const char *s, size_t n)
{
	return n <= v->longest && v->table_size ? (int32_t)v->table[slot_of(v, s, n)] - 1 : -1;
}

void yk_vocab_fini(struct yk_vocab *v)
{
	yk_arena_fini(&v->arena);
	free(v->token);
	free(v->table);
	*v = (struct yk_vocab){ 0 };
}
