// SPDX-License-Identifier: Apache-2.0
// A trie of byte strings, each with a number: finds all strings that begin at a position of a text.
// Edges are entries of one hash table, so that memory is proportional to the bytes stored.
#ifndef YK_TRIE_H
#define YK_TRIE_H

#include <stddef.h>
#include <stdint.h>

struct yk_trie {
	struct yk_trie_edge {
		uint32_t from; // node
		uint32_t to;   // 0: unused entry
		uint8_t byte;
	} * edge;
	size_t size, used;
	int32_t *value; // of each node, -1: no string ends here
	size_t nodes, cap;
};

// Adds a string, which is not empty; of equal strings the first one keeps its number.  ENOMEM.
int yk_trie_add(struct yk_trie *, const char *s, size_t n, int32_t value);
// The child of a node (0 is the root) along a byte; 0: none.
uint32_t yk_trie_next(const struct yk_trie *, uint32_t node, char byte);
// The longest string at s; *n is its length.  -1: none.
int32_t yk_trie_longest(const struct yk_trie *, const char *s, const char *end, size_t *n);
void yk_trie_fini(struct yk_trie *);

#endif
