// SPDX-License-Identifier: Apache-2.0
// Free chunks: treaps ordered by size, and the stamps of work that may still use a chunk.
#include "config.h"

#include "device/chunk.h"

static bool before(const struct yk_chunk *a, const struct yk_chunk *b)
{
	if (a->block.bytes != b->block.bytes)
		return a->block.bytes < b->block.bytes;
	if (a->segment != b->segment)
		return a->segment->serial < b->segment->serial;
	return a->block.offset < b->block.offset;
}

void yk_chunk_insert(struct yk_chunk **root, struct yk_chunk *c)
{
	while (*root && (*root)->priority >= c->priority)
		root = before(c, *root) ? &(*root)->left : &(*root)->right;

	// c replaces the node here; the subtree is split into chunks before and after c
	struct yk_chunk *t = *root, **l = &c->left, **r = &c->right;
	while (t) {
		if (before(t, c)) {
			*l = t;
			l = &t->right;
			t = *l;
		} else {
			*r = t;
			r = &t->left;
			t = *r;
		}
	}
	*l = *r = NULL;
	*root = c;
}

void yk_chunk_remove(struct yk_chunk **root, struct yk_chunk *c)
{
	while (*root != c)
		root = before(c, *root) ? &(*root)->left : &(*root)->right;

	struct yk_chunk *l = c->left, *r = c->right;
	while (l && r) {
		if (l->priority >= r->priority) {
			*root = l;
			root = &l->right;
			l = l->right;
		} else {
			*root = r;
			root = &r->left;
			r = r->left;
		}
	}
	*root = l ? l : r;
}

struct yk_chunk *yk_chunk_fit(struct yk_chunk *root, uint64_t bytes)
{
	struct yk_chunk *best = NULL;
	while (root) {
		bool fits = root->block.bytes >= bytes;
		if (fits)
			best = root;
		root = fits ? root->left : root->right;
	}
	return best;
}

struct yk_chunk *yk_chunk_after(struct yk_chunk *root, const struct yk_chunk *c)
{
	struct yk_chunk *best = NULL;
	while (root) {
		bool after = before(c, root);
		if (after)
			best = root;
		root = after ? root->left : root->right;
	}
	return best;
}

struct yk_chunk *yk_chunk_largest(struct yk_chunk *root)
{
	while (root && root->right)
		root = root->right;
	return root;
}

// ---- stamps ----

bool yk_chunk_settle(struct yk_chunk *c)
{
	int n = 0;
	for (int i = 0; i < c->nstamps; i++) {
		if (yk_event_done(c->stamp[i]))
			yk_event_unref(c->stamp[i]);
		else
			c->stamp[n++] = c->stamp[i];
	}
	c->nstamps = (uint8_t)n;
	return !n;
}

static bool only_of(const struct yk_chunk *c, const struct yk_queue *q)
{
	for (int i = 0; i < c->nstamps; i++)
		if (c->stamp[i]->queue != q)
			return false;
	return true;
}

bool yk_chunk_ready(struct yk_chunk *c, const struct yk_queue *q)
{
	return only_of(c, q) || yk_chunk_settle(c) || only_of(c, q);
}

bool yk_chunk_wait(struct yk_chunk *c)
{
	for (int i = 0; i < c->nstamps; i++)
		yk_event_sync(c->stamp[i]); // a failed event is over, too
	return yk_chunk_settle(c);
}

// Index of a queue's stamp, nstamps if there is none.
static int place(const struct yk_chunk *c, const struct yk_queue *q)
{
	int i = 0;
	while (i < c->nstamps && c->stamp[i]->queue != q)
		i++;
	return i;
}

static bool fit(const struct yk_chunk *a, const struct yk_chunk *b)
{
	int n = a->nstamps;
	for (int i = 0; i < b->nstamps; i++)
		n += place(a, b->stamp[i]->queue) == a->nstamps;
	return n <= YK_STAMPS;
}

bool yk_chunk_stamps_fit(struct yk_chunk *a, struct yk_chunk *b)
{
	if (fit(a, b))
		return true;
	yk_chunk_settle(a);
	yk_chunk_settle(b);
	return fit(a, b);
}

void yk_chunk_stamp(struct yk_chunk *c, struct yk_event *e)
{
	int i = place(c, e->queue);
	if (i == c->nstamps) {
		c->stamp[c->nstamps++] = e;
	} else if (c->stamp[i]->serial < e->serial) {
		yk_event_unref(c->stamp[i]);
		c->stamp[i] = e;
	} else {
		yk_event_unref(e);
	}
}
