// SPDX-License-Identifier: Apache-2.0
// The pages of a cache of keys and values: which are free, and which tokens the full ones hold.
// A full page can be found by its tokens and the page before it, also when no sequence uses it any
// more; such pages are kept until others need the space, the least recently used first.
#ifndef YK_PAGES_H
#define YK_PAGES_H

#include <stdbool.h>
#include <stdint.h>

enum { YK_NO_PAGE = -1 };

// The full pages before some position of a sequence.
struct yk_page_chain {
	uint64_t key;    // XXH64 of the last page's tokens and of the key before
	// of the last page; pages of equal tokens after equal pages have the same number
	uint64_t serial;
};

struct yk_pages;
struct yk_pages *yk_pages_new(int32_t count); // NULL: ENOMEM
void yk_pages_free(struct yk_pages *);       // NULL is fine
// Forgets all pages.
void yk_pages_reset(struct yk_pages *);
// The chain of sequences without a full page; sequences of different variants share no pages.
struct yk_page_chain yk_page_chain_of(int variant);

// A page for a sequence to fill, which it then uses; YK_NO_PAGE: all are used.
int32_t yk_page_alloc(struct yk_pages *);
// A page, kept or used, with these YK_PAGE tokens after a chain, which is extended; the sequence
// then uses it.  YK_NO_PAGE: there is none.
int32_t yk_page_find(struct yk_pages *, struct yk_page_chain *, const int32_t *tokens);
// A used page has been filled with these tokens; extends the chain.
void yk_page_filled(struct yk_pages *, int32_t page, struct yk_page_chain *, const int32_t *tokens);
// A sequence no longer uses a page.  The last page of a sequence is released first.
void yk_page_release(struct yk_pages *, int32_t page);

struct yk_page_counts {
	int32_t all, used, kept;
};
struct yk_page_counts yk_pages_count(const struct yk_pages *);

#endif
