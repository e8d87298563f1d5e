// SPDX-License-Identifier: Apache-2.0
// Tables kept by content, the least recently used one given up beyond MOST.  A buffer that is
// released lives until the launches that read it are over.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "table.h"

#define MOST 64

struct yk_cl_table {
	struct yk_cl_table *next; // used before it
	cl_mem mem;
	uint64_t hash;
	size_t n;
	uint64_t words[];
};

static struct yk_cl_table *find(struct yk_cl_device *d, const uint64_t *words, size_t n,
				uint64_t hash)
{
	for (struct yk_cl_table **at = &d->tables; *at; at = &(*at)->next) {
		struct yk_cl_table *t = *at;
		if (t->hash != hash || t->n != n || memcmp(t->words, words, n * sizeof *words))
			continue;
		*at = t->next;
		t->next = d->tables;
		return d->tables = t;
	}
	return NULL;
}

static void drop_beyond(struct yk_cl_device *d, int most)
{
	struct yk_cl_table **at = &d->tables;

	while (*at && most--)
		at = &(*at)->next;
	while (*at) {
		struct yk_cl_table *t = *at;
		*at = t->next;
		yk_cl_release(d, t->mem);
		free(t);
	}
}

int yk_cl_table_of(struct yk_cl_device *d, const uint64_t *words, size_t n, cl_mem *to)
{
	const uint64_t hash = yk_cl_hash(words, n * sizeof *words);
	struct yk_cl_table *t = find(d, words, n, hash);
	cl_int code;

	if (!t) {
		if (!(t = malloc(sizeof *t + n * sizeof *words)))
			return yk_cl_error(YOKE_ENOMEM, "no memory for a table of %zu words", n);
		memcpy(t->words, words, n * sizeof *words);
		t->mem = clCreateBuffer(d->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
					n * sizeof *words, t->words, &code);
		if (code != CL_SUCCESS) {
			free(t);
			return yk_cl_fail(d, "clCreateBuffer", code);
		}
		t->hash = hash;
		t->n = n;
		t->next = d->tables;
		d->tables = t;
		drop_beyond(d, MOST);
	}
	*to = t->mem;
	return 0;
}
