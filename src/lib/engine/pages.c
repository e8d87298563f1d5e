// SPDX-License-Identifier: Apache-2.0
// Pages as one array.  A page is free, used by sequences (uses > 0), or kept: full, found by its
// key, and in the list of kept pages, oldest first.
#include "config.h"

#include "engine/pages.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "nn/model.h"

struct page {
	// before: serial of the page before; serial 0: not found by key
	uint64_t key, serial, before;
	int32_t tokens[YK_PAGE];
	int32_t uses;
	int32_t next;           // in the bucket of its key, or in the list of free pages
	int32_t older, newer;   // in the list of kept pages
};

struct yk_pages {
	struct page *page;
	int32_t *bucket;        // first page of each key modulo `buckets`
	uint32_t buckets;
	uint64_t serial;        // last one given
	int32_t count, unused;  // unused: first free page
	int32_t oldest, newest; // kept pages
	struct yk_page_counts counts;
};

struct yk_pages *yk_pages_new(int32_t count)
{
	struct yk_pages *p = calloc(1, sizeof *p);
	if (p) {
		for (p->buckets = 64; p->buckets < (uint32_t)count; p->buckets *= 2)
			;
		p->count = count;
		p->page = calloc((size_t)count, sizeof *p->page);
		p->bucket = malloc(p->buckets * sizeof *p->bucket);
	}
	if (!p || !p->page || !p->bucket) {
		yk_fail(YOKE_ENOMEM, "engine: no memory for %d pages", (int)count);
		yk_pages_free(p);
		return NULL;
	}
	yk_pages_reset(p);
	return p;
}

void yk_pages_free(struct yk_pages *p)
{
	if (p) {
		free(p->page);
		free(p->bucket);
	}
	free(p);
}

void yk_pages_reset(struct yk_pages *p)
{
	memset(p->bucket, 0xff, p->buckets * sizeof *p->bucket);
	for (int32_t i = 0; i < p->count; i++)
		p->page[i] = (struct page){ .next = i + 1 < p->count ? i + 1 : YK_NO_PAGE };
	p->unused = 0;
	p->oldest = p->newest = YK_NO_PAGE;
	p->counts = (struct yk_page_counts){ .all = p->count };
}

struct yk_page_chain yk_page_chain_of(int variant)
{
	// numbers that no page has
	return (struct yk_page_chain){ .key = (uint64_t)variant,
				       .serial = UINT64_MAX - (uint64_t)variant };
}

static uint64_t key_of(const struct yk_page_chain *c, const int32_t *tokens)
{
	return yk_hash(tokens, YK_PAGE * sizeof *tokens, c->key);
}

static int32_t *bucket_of(struct yk_pages *p, uint64_t key)
{
	return &p->bucket[key & (p->buckets - 1)];
}

static int32_t look_up(struct yk_pages *p, uint64_t key, const struct yk_page_chain *c,
		       const int32_t *tokens)
{
	int32_t i = *bucket_of(p, key);
	while (i != YK_NO_PAGE &&
	       (p->page[i].key != key || p->page[i].before != c->serial ||
		memcmp(p->page[i].tokens, tokens, sizeof p->page[i].tokens) != 0))
		i = p->page[i].next;
	return i;
}

static void unlink_kept(struct yk_pages *p, int32_t i)
{
	const struct page *x = &p->page[i];
	*(x->older == YK_NO_PAGE ? &p->oldest : &p->page[x->older].newer) = x->newer;
	*(x->newer == YK_NO_PAGE ? &p->newest : &p->page[x->newer].older) = x->older;
	p->counts.kept--;
}

static void forget(struct yk_pages *p, int32_t i)
{
	int32_t *at = bucket_of(p, p->page[i].key);
	while (*at != i)
		at = &p->page[*at].next;
	*at = p->page[i].next;
	p->page[i].serial = 0;
}

int32_t yk_page_alloc(struct yk_pages *p)
{
	int32_t i = p->unused;
	if (i != YK_NO_PAGE) {
		p->unused = p->page[i].next;
	} else if ((i = p->oldest) != YK_NO_PAGE) {
		unlink_kept(p, i);
		forget(p, i);
	} else {
		return i;
	}
	p->page[i].uses = 1;
	p->counts.used++;
	return i;
}

int32_t yk_page_find(struct yk_pages *p, struct yk_page_chain *c, const int32_t *tokens)
{
	const uint64_t key = key_of(c, tokens);
	const int32_t i = look_up(p, key, c, tokens);
	if (i == YK_NO_PAGE)
		return i;
	if (p->page[i].uses++ == 0) {
		unlink_kept(p, i);
		p->counts.used++;
	}
	*c = (struct yk_page_chain){ key, p->page[i].serial };
	return i;
}

void yk_page_filled(struct yk_pages *p, int32_t page, struct yk_page_chain *c,
		    const int32_t *tokens)
{
	const uint64_t key = key_of(c, tokens);
	const int32_t same = look_up(p, key, c, tokens);
	if (same == YK_NO_PAGE) {
		struct page *x = &p->page[page];
		int32_t *bucket = bucket_of(p, key);
		x->key = key;
		x->serial = ++p->serial;
		x->before = c->serial;
		memcpy(x->tokens, tokens, sizeof x->tokens);
		x->next = *bucket;
		*bucket = page;
	}
	*c = (struct yk_page_chain){ key, p->page[same == YK_NO_PAGE ? page : same].serial };
}

void yk_page_release(struct yk_pages *p, int32_t i)
{
	struct page *x = &p->page[i];
	if (--x->uses)
		return;
	p->counts.used--;
	if (!x->serial) {
		x->next = p->unused;
		p->unused = i;
		return;
	}
	x->older = p->newest;
	x->newer = YK_NO_PAGE;
	*(p->newest == YK_NO_PAGE ? &p->oldest : &p->page[p->newest].newer) = i;
	p->newest = i;
	p->counts.kept++;
}

struct yk_page_counts yk_pages_count(const struct yk_pages *p)
{
	return p->counts;
}
