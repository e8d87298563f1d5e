// SPDX-License-Identifier: Apache-2.0
// Automata are built in memory of their own, trimmed to the states that reach acceptance, and
// appended to the pool.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "schema/automaton.h"
#include "yoke.h"

int yk_dfa_init(struct yk_dfa *d)
{
	*d = (struct yk_dfa){ 0 };
	const int e = yk_grow(&d->state, &d->state_cap, 1, sizeof *d->state);
	if (e == 0)
		d->state[d->states++] = (struct yk_dfa_state){ 0 };
	return e;
}

void yk_dfa_fini(struct yk_dfa *d)
{
	free(d->state);
	free(d->edge);
	*d = (struct yk_dfa){ 0 };
}

uint32_t yk_dfa_step(const struct yk_dfa *d, uint32_t state, uint8_t byte)
{
	const struct yk_dfa_state *s = &d->state[state];

	for (uint32_t i = s->edge; i < s->edge + s->edges && d->edge[i].lo <= byte; i++)
		if (byte <= d->edge[i].hi)
			return d->edge[i].to;
	return YK_DFA_NONE;
}

bool yk_dfa_accepts(const struct yk_dfa *d, uint32_t start, const char *s, size_t n)
{
	for (size_t i = 0; i < n && start; i++)
		start = yk_dfa_step(d, start, (uint8_t)s[i]);
	return d->state[start].accept;
}

// ---- nondeterministic automata ----

int yk_nfa_state(struct yk_nfa *a, uint32_t *to)
{
	if (a->states >= YK_NFA_STATES)
		return YOKE_ERANGE;
	const int e = yk_grow(&a->first, &a->state_cap, a->states + 1, sizeof *a->first);
	if (e < 0)
		return e;
	a->first[a->states] = 0;
	*to = (uint32_t)a->states++;
	return 0;
}

static int add_edge(struct yk_nfa *a, uint32_t from, struct yk_nfa_edge x)
{
	if (a->edges >= 4 * (size_t)YK_NFA_STATES)
		return YOKE_ERANGE;
	const int e = yk_grow(&a->edge, &a->edge_cap, a->edges + 1, sizeof *a->edge);
	if (e < 0)
		return e;
	x.next = a->first[from];
	a->edge[a->edges++] = x;
	a->first[from] = (uint32_t)a->edges;
	return 0;
}

int yk_nfa_edge(struct yk_nfa *a, uint32_t from, uint8_t lo, uint8_t hi, uint32_t to)
{
	return add_edge(a, from, (struct yk_nfa_edge){ .to = to, .lo = lo, .hi = hi });
}

int yk_nfa_empty(struct yk_nfa *a, uint32_t from, uint32_t to)
{
	return add_edge(a, from, (struct yk_nfa_edge){ .to = to, .empty = true });
}

void yk_nfa_fini(struct yk_nfa *a)
{
	free(a->first);
	free(a->edge);
	*a = (struct yk_nfa){ 0 };
}

// ---- construction ----

// An automaton under construction.  Each of its states stands for a key of 32-bit words: a set of
// states, or a pair.  State 0 is the first.
struct build {
	struct yk_dfa *pool;
	struct yk_dfa own;
	uint32_t *word; // the keys, one after another
	size_t words, word_cap;
	struct key {
		size_t at;
		uint32_t n;
	} * key;
	size_t key_cap;
	uint32_t *table; // state + 1, open addressing
	size_t table_size;
};

static void build_fini(struct build *b)
{
	yk_dfa_fini(&b->own);
	free(b->word);
	free(b->key);
	free(b->table);
}

static int spend(struct build *b, size_t steps)
{
	b->pool->work += steps;
	return b->pool->work > YK_DFA_WORK ? YOKE_ERANGE : 0;
}

static int enlarge_table(struct build *b)
{
	const size_t size = b->table_size ? 2 * b->table_size : 64;
	uint32_t *table = calloc(size, sizeof *table);

	if (!table)
		return YOKE_ENOMEM;
	for (uint32_t i = 0; i < b->own.states; i++) {
		size_t h = yk_hash(b->word + b->key[i].at, b->key[i].n * sizeof *b->word, 0) &
			   (size - 1);
		while (table[h])
			h = (h + 1) & (size - 1);
		table[h] = i + 1;
	}
	free(b->table);
	b->table = table;
	b->table_size = size;
	return 0;
}

// The state of a key, which is new if no state has it.
static int state_of(struct build *b, const uint32_t *word, uint32_t n, bool accept, uint32_t *to)
{
	int e = spend(b, n);

	if (e == 0 && 2 * (b->own.states + 1) > b->table_size)
		e = enlarge_table(b);
	if (e < 0)
		return e;
	size_t h = yk_hash(word, n * sizeof *word, 0) & (b->table_size - 1);
	for (; b->table[h]; h = (h + 1) & (b->table_size - 1)) {
		const struct key *k = &b->key[b->table[h] - 1];
		if (k->n == n && !memcmp(b->word + k->at, word, n * sizeof *word)) {
			*to = b->table[h] - 1;
			return 0;
		}
	}
	if (b->own.states >= YK_DFA_SINGLE)
		return YOKE_ERANGE;
	if ((e = yk_grow(&b->own.state, &b->own.state_cap, b->own.states + 1,
			 sizeof *b->own.state)) < 0 ||
	    (e = yk_grow(&b->key, &b->key_cap, b->own.states + 1, sizeof *b->key)) < 0 ||
	    (e = yk_grow(&b->word, &b->word_cap, b->words + n, sizeof *b->word)) < 0)
		return e;
	if (n)
		memcpy(b->word + b->words, word, n * sizeof *word);
	b->key[b->own.states] = (struct key){ b->words, n };
	b->words += n;
	b->own.state[b->own.states] = (struct yk_dfa_state){ .accept = accept };
	*to = (uint32_t)b->own.states++;
	b->table[h] = *to + 1;
	return 0;
}

// Adds an edge to the last state that has edges; joins it with its neighbor if both lead to the
// same state.
static int connect(struct build *b, uint32_t from, uint8_t lo, uint8_t hi, uint32_t to)
{
	struct yk_dfa *d = &b->own;
	struct yk_dfa_state *s = &d->state[from];

	if (s->edges && d->edge[d->edges - 1].to == to && d->edge[d->edges - 1].hi + 1 == lo) {
		d->edge[d->edges - 1].hi = hi;
		return 0;
	}
	const int e = yk_grow(&d->edge, &d->edge_cap, d->edges + 1, sizeof *d->edge);
	if (e < 0)
		return e;
	if (!s->edges)
		s->edge = (uint32_t)d->edges;
	s->edges++;
	d->edge[d->edges++] = (struct yk_dfa_edge){ lo, hi, to };
	return 0;
}

// Marks the states that reach acceptance, by walking edges backwards from it.
static int find_alive(const struct yk_dfa *d, uint32_t *alive)
{
	uint32_t *first = calloc(d->states + 1, sizeof *first);
	uint32_t *from = malloc((d->edges + 1) * sizeof *from);
	uint32_t *todo = malloc((d->states + 1) * sizeof *todo);
	size_t n = 0;
	int e = 0;

	if (!first || !from || !todo) {
		e = YOKE_ENOMEM;
		goto out;
	}
	for (size_t i = 0; i < d->edges; i++)
		first[d->edge[i].to + 1]++;
	for (size_t i = 0; i < d->states; i++)
		first[i + 1] += first[i];
	for (uint32_t s = 0; s < d->states; s++)
		for (uint32_t i = 0; i < d->state[s].edges; i++)
			from[--first[d->edge[d->state[s].edge + i].to + 1]] = s;
	// first[s + 1] is now where the sources of s begin; those of the next state follow.
	for (uint32_t s = 0; s < d->states; s++)
		if (d->state[s].accept)
			alive[todo[n++] = s] = 1;
	while (n) {
		const uint32_t s = todo[--n];
		const size_t end = s + 1 < d->states ? first[s + 2] : d->edges;
		for (size_t i = first[s + 1]; i < end; i++)
			if (!alive[from[i]])
				alive[todo[n++] = from[i]] = 1;
	}
out:
	free(first);
	free(from);
	free(todo);
	return e;
}

// Appends the living states to the pool; *start is that of state 0.
static int settle(struct build *b, uint32_t *start)
{
	const struct yk_dfa *from = &b->own;
	struct yk_dfa *to = b->pool;
	uint32_t *at = calloc(from->states + 1, sizeof *at); // 1 if it lives, then its place
	size_t next = to->states;
	int e = at ? find_alive(from, at) : YOKE_ENOMEM;

	for (size_t i = 0; e == 0 && i < from->states; i++)
		if (at[i])
			at[i] = (uint32_t)next++;
	if (e == 0 && next > YK_DFA_STATES)
		e = YOKE_ERANGE;
	if (e == 0 && ((e = yk_grow(&to->state, &to->state_cap, next, sizeof *to->state)) < 0 ||
		       (e = yk_grow(&to->edge, &to->edge_cap, to->edges + from->edges + 1,
				    sizeof *to->edge)) < 0))
		goto out;
	for (size_t i = 0; e == 0 && i < from->states; i++) {
		if (!at[i])
			continue;
		struct yk_dfa_state s = { .edge = (uint32_t)to->edges,
					  .accept = from->state[i].accept };
		for (uint32_t j = 0; j < from->state[i].edges; j++) {
			struct yk_dfa_edge x = from->edge[from->state[i].edge + j];
			if (!at[x.to])
				continue;
			x.to = at[x.to];
			to->edge[to->edges++] = x;
			s.edges++;
		}
		to->state[to->states++] = s;
	}
	if (e == 0)
		*start = from->states ? at[0] : YK_DFA_NONE;
out:
	free(at);
	return e;
}

// ---- from nondeterministic automata ----

struct subset {
	const struct yk_nfa *nfa;
	uint32_t accept;
	uint32_t *set, *todo,
		*mark; // set: states with edges that consume bytes, and the accepting one
	uint32_t stamp;
	uint32_t n, todos;
};

static void begin_set(struct subset *x)
{
	x->n = 0;
	x->stamp++;
}

// Adds a state and all that empty edges lead to.
static int add_to_set(struct build *b, struct subset *x, uint32_t s)
{
	x->todos = 0;
	if (x->mark[s] == x->stamp)
		return 0;
	x->mark[s] = x->stamp;
	x->todo[x->todos++] = s;
	while (x->todos) {
		const uint32_t at = x->todo[--x->todos];
		bool consumes = at == x->accept;
		size_t steps = 1;
		for (uint32_t i = x->nfa->first[at]; i; i = x->nfa->edge[i - 1].next, steps++) {
			const struct yk_nfa_edge *edge = &x->nfa->edge[i - 1];
			if (!edge->empty) {
				consumes = true;
			} else if (x->mark[edge->to] != x->stamp) {
				x->mark[edge->to] = x->stamp;
				x->todo[x->todos++] = edge->to;
			}
		}
		if (consumes)
			x->set[x->n++] = at;
		const int e = spend(b, steps);
		if (e < 0)
			return e;
	}
	return 0;
}

static int by_number(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static int end_set(struct build *b, struct subset *x, uint32_t *to)
{
	bool accept = false;

	qsort(x->set, x->n, sizeof *x->set, by_number);
	for (uint32_t i = 0; i < x->n; i++)
		accept |= x->set[i] == x->accept;
	return state_of(b, x->set, x->n, accept, to);
}

// Adds the edges of state `s`: one for each interval of bytes that none of its edges divides.
static int expand_set(struct build *b, struct subset *x, uint32_t s)
{
	const struct key k = b->key[s];
	bool cut[257] = { false };
	int e = 0;

	for (uint32_t i = 0; i < k.n; i++)
		for (uint32_t j = x->nfa->first[b->word[k.at + i]]; j; j = x->nfa->edge[j - 1].next)
			if (!x->nfa->edge[j - 1].empty)
				cut[x->nfa->edge[j - 1].lo] = cut[x->nfa->edge[j - 1].hi + 1] =
					true;
	for (int lo = 0, hi; lo < 256 && e == 0; lo = hi) {
		uint32_t to = 0;
		size_t steps = 1;
		for (hi = lo + 1; hi < 256 && !cut[hi]; hi++)
			;
		if (!cut[lo]) // no edge has these bytes
			continue;
		begin_set(x);
		for (uint32_t i = 0; i < k.n && e == 0; i++)
			for (uint32_t j = x->nfa->first[b->word[k.at + i]]; j && e == 0;
			     j = x->nfa->edge[j - 1].next, steps++)
				if (!x->nfa->edge[j - 1].empty && x->nfa->edge[j - 1].lo <= lo &&
				    x->nfa->edge[j - 1].hi >= lo)
					e = add_to_set(b, x, x->nfa->edge[j - 1].to);
		if (e == 0)
			e = spend(b, steps);
		if (e == 0 && x->n && (e = end_set(b, x, &to)) == 0)
			e = connect(b, s, (uint8_t)lo, (uint8_t)(hi - 1), to);
	}
	return e;
}

int yk_dfa_of(struct yk_dfa *d, const struct yk_nfa *a, uint32_t from, uint32_t to, uint32_t *start)
{
	struct build b = { .pool = d };
	struct subset x = { .nfa = a, .accept = to };
	uint32_t first;
	int e = 0;

	x.set = malloc(a->states * sizeof *x.set);
	x.todo = malloc(a->states * sizeof *x.todo);
	x.mark = calloc(a->states, sizeof *x.mark);
	if (!x.set || !x.todo || !x.mark) {
		e = YOKE_ENOMEM;
		goto out;
	}
	begin_set(&x);
	if ((e = add_to_set(&b, &x, from)) == 0)
		e = end_set(&b, &x, &first);
	for (uint32_t s = 0; e == 0 && s < b.own.states; s++)
		e = expand_set(&b, &x, s);
	if (e == 0)
		e = settle(&b, start);
out:
	free(x.set);
	free(x.todo);
	free(x.mark);
	build_fini(&b);
	return e;
}

// ---- words ----

static int by_bytes(const void *a, const void *b)
{
	const struct yk_dfa_word *x = a, *y = b;
	const int c = memcmp(x->s, y->s, x->n < y->n ? x->n : y->n);
	return c ? c : (x->n > y->n) - (x->n < y->n);
}

// A state of the trie is the interval of the words that begin with its bytes, and their number.
int yk_dfa_words(struct yk_dfa *d, struct yk_dfa_word *w, size_t n, uint32_t *start)
{
	struct build b = { .pool = d };
	uint32_t to;
	int e = n < UINT32_MAX ? 0 : YOKE_ERANGE;

	*start = YK_DFA_NONE;
	if (!n || e < 0)
		return e;
	qsort(w, n, sizeof *w, by_bytes);
	e = state_of(&b, (uint32_t[]){ 0, (uint32_t)n, 0 }, 3, !w[0].n, &to);
	for (uint32_t s = 0; e == 0 && s < b.own.states; s++) {
		const uint32_t *k = b.word + b.key[s].at, end = k[1], depth = k[2];
		uint32_t from = k[0], next;
		for (; from < end && w[from].n == depth; from++) // the word that ends here
			;
		for (; e == 0 && from < end; from = next) {
			const char c = w[from].s[depth];
			for (next = from + 1; next < end && w[next].s[depth] == c; next++)
				;
			e = spend(&b, next - from);
			if (e == 0)
				e = state_of(&b, (uint32_t[]){ from, next, depth + 1 }, 3,
					     w[from].n == depth + 1, &to);
			if (e == 0)
				e = connect(&b, s, (uint8_t)c, (uint8_t)c, to);
		}
	}
	if (e == 0)
		e = settle(&b, start);
	build_fini(&b);
	return e;
}

// ---- intersection and difference ----

// Adds the edges of a pair for the bytes of one edge of a.
static int meet_edge(struct build *b, uint32_t s, struct yk_dfa_edge x, uint32_t other,
		     bool without)
{
	const struct yk_dfa *d = b->pool;
	const struct yk_dfa_state o = d->state[other];
	uint32_t i = o.edge, to;
	int e = 0;

	for (int lo = x.lo, hi; e == 0 && lo <= x.hi; lo = hi + 1) {
		uint32_t second = YK_DFA_NONE;
		for (; i < o.edge + o.edges && d->edge[i].hi < lo; i++)
			;
		hi = x.hi;
		if (i < o.edge + o.edges && d->edge[i].lo <= lo) {
			second = d->edge[i].to;
			hi = d->edge[i].hi < hi ? d->edge[i].hi : hi;
		} else if (i < o.edge + o.edges && d->edge[i].lo <= hi) {
			hi = d->edge[i].lo - 1;
		}
		if (!second && !without)
			continue;
		const bool accept = d->state[x.to].accept && d->state[second].accept != without;
		e = state_of(b, (uint32_t[]){ x.to, second }, 2, accept, &to);
		if (e == 0)
			e = connect(b, s, (uint8_t)lo, (uint8_t)hi, to);
	}
	return e;
}

int yk_dfa_meet(struct yk_dfa *d, uint32_t a, uint32_t c, bool without, uint32_t *start)
{
	struct build b = { .pool = d };
	uint32_t to;
	int e = state_of(&b, (uint32_t[]){ a, c }, 2,
			 d->state[a].accept && d->state[c].accept != without, &to);

	for (uint32_t s = 0; e == 0 && s < b.own.states; s++) {
		const uint32_t x = b.word[b.key[s].at], y = b.word[b.key[s].at + 1];
		const struct yk_dfa_state from = d->state[x];
		for (uint32_t i = 0; e == 0 && i < from.edges; i++)
			e = meet_edge(&b, s, d->edge[from.edge + i], y, without);
	}
	if (e == 0)
		e = settle(&b, start);
	build_fini(&b);
	return e;
}

// ---- characters of strings ----

// Where a state is in a string.
enum where { UNSEEN, OUTSIDE, BETWEEN, ESCAPE, HEX_4, HEX_3, HEX_2, HEX_1, REST_3, REST_2, REST_1 };

static enum where after(enum where w, uint8_t byte)
{
	switch (w) {
	case OUTSIDE: return BETWEEN;
	case BETWEEN:
		if (byte == '"')
			return OUTSIDE;
		if (byte == '\\')
			return ESCAPE;
		if (byte < 0x80)
			return BETWEEN;
		return byte < 0xe0 ? REST_1 : byte < 0xf0 ? REST_2 : REST_3;
	case ESCAPE: return byte == 'u' ? HEX_4 : BETWEEN;
	case HEX_1:
	case REST_1: return BETWEEN;
	default: return w + 1;
	}
}

// Walks from the start for the places of states and their order, then relaxes `left` backwards
// until nothing changes: a byte from between two characters begins one, but for the closing quote.
int yk_dfa_count_chars(struct yk_dfa *d, uint32_t start)
{
	uint8_t *where = calloc(d->states, 1);
	uint32_t *order = malloc((d->states + 1) * sizeof *order);
	size_t n = 0;
	int e = where && order ? 0 : YOKE_ENOMEM;

	if (e == 0 && start) {
		where[start] = OUTSIDE;
		order[n++] = start;
	}
	for (size_t i = 0; i < n; i++) {
		struct yk_dfa_state *s = &d->state[order[i]];
		s->between = where[order[i]] == BETWEEN;
		s->left = s->accept ? 0 : UINT32_MAX;
		for (uint32_t j = s->edge; j < s->edge + s->edges; j++) {
			const uint32_t to = d->edge[j].to;
			if (where[to] == UNSEEN) {
				where[to] = (uint8_t)after(where[order[i]], d->edge[j].lo);
				order[n++] = to;
			}
		}
	}
	for (bool changed = true; e == 0 && changed;) {
		changed = false;
		for (size_t i = n; i--;) {
			struct yk_dfa_state *s = &d->state[order[i]];
			for (uint32_t j = s->edge; j < s->edge + s->edges; j++) {
				const uint32_t left = d->state[d->edge[j].to].left;
				const uint32_t own = left + (s->between && d->edge[j].lo != '"');
				if (left != UINT32_MAX && own < s->left) {
					s->left = own;
					changed = true;
				}
			}
		}
		d->work += n;
		if (d->work > YK_DFA_WORK)
			e = YOKE_ERANGE;
	}
	free(where);
	free(order);
	return e;
}
