// SPDX-License-Identifier: Apache-2.0
// Paths of scopes.  Each path is created once and known by its number, so reopening a scope costs
// one lookup.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "graph/context.h"

static int path_add(struct yk_paths *p, uint32_t parent, const char *name, uint64_t hash)
{
	if (yk_grow(&p->path, &p->cap, p->n + 1, sizeof *p->path) < 0)
		return YOKE_ENOMEM;
	const char *above = p->n ? p->path[parent].name : "";
	size_t la = strlen(above), ln = strlen(name);
	char *whole = malloc(la + ln + 2);
	if (!whole)
		return YOKE_ENOMEM;
	memcpy(whole, above, la);
	if (la)
		whole[la++] = '/';
	memcpy(whole + la, name, ln + 1);
	p->path[p->n++] = (struct yk_path){
		.name = whole,
		.parent = parent,
		.own = (uint32_t)la,
		.hash = hash,
	};
	return 0;
}

static int table_grow(struct yk_paths *p)
{
	size_t size = p->table_size ? 2 * p->table_size : 64;
	uint32_t *table = calloc(size, sizeof *table);
	if (!table)
		return YOKE_ENOMEM;
	for (size_t i = 0; i < p->n; i++) {
		size_t at = p->path[i].hash & (size - 1);
		while (table[at])
			at = (at + 1) & (size - 1);
		table[at] = (uint32_t)i + 1;
	}
	free(p->table);
	p->table = table;
	p->table_size = size;
	return 0;
}

static uint32_t find(struct yk_paths *p, uint32_t parent, const char *name)
{
	if (2 * (p->n + 1) > p->table_size && table_grow(p) < 0)
		return YK_NIL;
	const uint64_t hash = yk_hash(name, strlen(name), parent);
	size_t at = hash & (p->table_size - 1);
	for (; p->table[at]; at = (at + 1) & (p->table_size - 1)) {
		const struct yk_path *q = &p->path[p->table[at] - 1];
		if (q->hash == hash && q->parent == parent && !strcmp(q->name + q->own, name))
			return p->table[at] - 1;
	}
	if (path_add(p, parent, name, hash) < 0)
		return YK_NIL;
	p->table[at] = (uint32_t)p->n;
	return (uint32_t)p->n - 1;
}

uint32_t yk_path_get(struct yk_paths *p, uint32_t parent, const char *name)
{
	if (!p->n && path_add(p, 0, "", 0) < 0)
		return YK_NIL;
	if (!*name)
		return parent;
	// scopes usually follow each other as in the previous step
	const uint32_t guess = p->path[p->last].then;
	if (guess && p->path[guess].parent == parent &&
	    !strcmp(p->path[guess].name + p->path[guess].own, name))
		return p->last = guess;
	const uint32_t got = find(p, parent, name);
	if (got != YK_NIL)
		p->last = p->path[p->last].then = got;
	return got;
}

const char *yk_path_name(const struct yk_paths *p, uint32_t path)
{
	return path < p->n ? p->path[path].name : "";
}

void yk_paths_fini(struct yk_paths *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->path[i].name);
	free(p->path);
	free(p->table);
	*p = (struct yk_paths){ 0 };
}

uint32_t yk_path_common(const struct yk_paths *p, uint32_t a, uint32_t b)
{
	while (a != b) // parents have lower numbers than their children
		if (a > b)
			a = p->path[a].parent;
		else
			b = p->path[b].parent;
	return a;
}
