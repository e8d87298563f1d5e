// SPDX-License-Identifier: Apache-2.0
// Deterministic automata over bytes, all in one pool, and their construction: from nondeterministic
// ones, from lists of words, as intersections and differences.  Every state but YK_DFA_NONE reaches
// an accepting one.  States and work are limited, because patterns and schemas come from outside.
#ifndef YK_SCHEMA_AUTOMATON_H
#define YK_SCHEMA_AUTOMATON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	YK_DFA_NONE,             // the state without a way to acceptance: the empty language
	YK_DFA_STATES = 1 << 18, // of a pool
	YK_DFA_SINGLE = 100000,  // of one automaton
	YK_NFA_STATES = 1 << 18, // of one automaton
};
#define YK_DFA_WORK ((size_t)1 << 26) // elementary steps of all constructions of a pool

struct yk_dfa_edge {
	uint8_t lo, hi; // bytes, both included
	uint32_t to;
};

struct yk_dfa_state {
	uint32_t edge, edges : 30, accept : 1; // its edges are in the order of their bytes
	uint32_t between : 1; // of a JSON string: between two characters, or at its end
	uint32_t left;        // then: characters until acceptance at least
};

struct yk_dfa {
	struct yk_dfa_state *state;
	size_t states, state_cap;
	struct yk_dfa_edge *edge;
	size_t edges, edge_cap;
	size_t work; // steps done
};

struct yk_nfa {
	uint32_t *first; // of each state: its first edge + 1, 0: none
	size_t states, state_cap;
	struct yk_nfa_edge {
		uint32_t next; // as first
		uint32_t to;
		uint8_t lo, hi;
		bool empty; // consumes no byte
	} * edge;
	size_t edges, edge_cap;
};

// All functions: ENOMEM, reported; ERANGE, not reported: beyond a limit.

// Adds the state YK_DFA_NONE.
int yk_dfa_init(struct yk_dfa *);
void yk_dfa_fini(struct yk_dfa *);
// The state after a byte.
uint32_t yk_dfa_step(const struct yk_dfa *, uint32_t state, uint8_t byte);
// Does the automaton accept the bytes?
bool yk_dfa_accepts(const struct yk_dfa *, uint32_t start, const char *s, size_t n);

int yk_nfa_state(struct yk_nfa *, uint32_t *to);
int yk_nfa_edge(struct yk_nfa *, uint32_t from, uint8_t lo, uint8_t hi, uint32_t to);
int yk_nfa_empty(struct yk_nfa *, uint32_t from, uint32_t to); // an edge without a byte
void yk_nfa_fini(struct yk_nfa *);
// The automaton of the texts that lead from one state to another.
int yk_dfa_of(struct yk_dfa *, const struct yk_nfa *, uint32_t from, uint32_t to, uint32_t *start);

struct yk_dfa_word {
	const char *s;
	size_t n;
};
// The automaton of n words; reorders them.
int yk_dfa_words(struct yk_dfa *, struct yk_dfa_word *, size_t n, uint32_t *start);
// The automaton of texts that a accepts and b accepts or, with `without`, does not accept.
int yk_dfa_meet(struct yk_dfa *, uint32_t a, uint32_t b, bool without, uint32_t *start);

// Finds `between` and `left` of all states of an automaton of JSON strings in the spelling of
// YK_PATTERN_STRING.
int yk_dfa_count_chars(struct yk_dfa *, uint32_t start);

#endif
