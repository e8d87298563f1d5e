// SPDX-License-Identifier: Apache-2.0
// Kernel cache: kernels are built on first use and looked up by file, name, macros and map.
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

// 64-bit FNV-1a (Fowler, Noll and Vo), applied to eight bytes at a time and folded each time.
static uint64_t hash_of(const void *data, size_t bytes)
{
	const unsigned char *p = data, *end = p + bytes;
	uint64_t h = 0xcbf29ce484222325u, word;
	for (; (size_t)(end - p) >= sizeof word; p += sizeof word) {
		memcpy(&word, p, sizeof word); // constant size: compiles to one load
		h = (h ^ word) * 0x100000001b3u;
		h ^= h >> 29;
	}
	word = 0;
	memcpy(&word, p, (size_t)(end - p));
	h = (h ^ word) * 0x100000001b3u;
	return h ^ h >> 29;
}

// ---- build parameters ----

void yk_gpu_define(struct yk_gpu_build *b, const char *name, int64_t value)
{
	assert(b->n < YK_GPU_DEFINES);
	b->define[b->n] = name;
	b->value[b->n++] = value;
}

void yk_gpu_flag(struct yk_gpu_build *b, const char *name, bool set)
{
	if (set)
		yk_gpu_define(b, name, 1);
}

void yk_gpu_define_warp(struct yk_gpu_build *b, const struct yk_gpu_device *d)
{
	// the dialect whose prologue has shuffles
	if (d->warp && yk_gpu_driver.dialect == YOKE_DIALECT_CUDA)
		yk_gpu_define(b, "WARP", d->warp);
}

// A lookup key; map: the key of the map compiled into the text.
struct wanted {
	const struct yk_gpu_build *build;
	const void *map;
	size_t map_bytes;
	uint64_t hash;
};

static struct wanted want(const struct yk_gpu_build *b, const void *map, size_t map_bytes)
{
	uint64_t h = hash_of(b->value, (size_t)b->n * sizeof *b->value);

	h ^= (uint64_t)(uintptr_t)b->name * 0x9e3779b97f4a7c15u;
	h ^= map_bytes ? hash_of(map, map_bytes) << 1 : 0;
	return (struct wanted){ b, map, map_bytes, h ^ h >> 32 };
}

// True if both kernels belong to one program, apart from maps.
static bool same_program(const struct yk_gpu_build *a, const struct yk_gpu_build *b)
{
	if (a->file != b->file || a->n != b->n)
		return false;
	for (int i = 0; i < a->n; i++)
		if (a->define[i] != b->define[i] || a->value[i] != b->value[i])
			return false;
	return true;
}

static struct yk_gpu_entry *find(struct yk_gpu_device *d, const struct wanted *w)
{
	struct yk_gpu_entry *e = d->kernels[w->hash % YK_GPU_KERNEL_BUCKETS];

	while (e && (e->hash != w->hash || e->map_bytes != w->map_bytes ||
		     e->build.name != w->build->name || !same_program(&e->build, w->build) ||
		     memcmp(e->map, w->map, w->map_bytes)))
		e = e->next;
	return e;
}

int yk_gpu_kernel_new(struct yk_gpu_device *d, void *program, const struct yk_gpu_build *b,
		      void **kernel)
{
	void *made;
	int err = yk_gpu_driver.kernel_new(d, program, b->name, &made);

	if (!err && b->sized &&
	    (err = yk_gpu_check(d, yk_gpu_driver.sized_call,
				yk_gpu_driver.kernel_sized(d, made, b->sized))))
		yk_gpu_driver.kernel_free(made);
	if (!err)
		*kernel = made;
	return err;
}

// Adds an entry for a kernel of a program. The entry owns the program unless it is `shared`.
static int take(struct yk_gpu_device *d, const struct wanted *w, void *program, bool shared,
		struct yk_gpu_entry **to)
{
	struct yk_gpu_entry *e = malloc(sizeof *e + w->map_bytes);
	int err = e ? yk_gpu_kernel_new(d, program, w->build, &e->kernel) :
		      yk_gpu_error(YOKE_ENOMEM, "no memory for a kernel's record");

	if (err) {
		free(e);
		if (!shared)
			yk_gpu_driver.program_free(program);
		return err;
	}
	e->hash = w->hash;
	e->program = program;
	e->build = *w->build;
	e->map_bytes = w->map_bytes;
	memcpy(e->map, w->map, w->map_bytes);
	e->group = yk_gpu_driver.kernel_group(d, e->kernel);
	if (!e->group || e->group > d->max_group)
		e->group = d->max_group;
	e->next = d->kernels[e->hash % YK_GPU_KERNEL_BUCKETS];
	d->kernels[e->hash % YK_GPU_KERNEL_BUCKETS] = e;
	*to = e;
	return 0;
}

// A program already built from the same file and macros; NULL: none.
static void *program_beside(const struct yk_gpu_device *d, const struct yk_gpu_build *b)
{
	for (int i = 0; i < YK_GPU_KERNEL_BUCKETS; i++)
		for (const struct yk_gpu_entry *e = d->kernels[i]; e; e = e->next)
			if (!e->map_bytes && same_program(&e->build, b))
				return e->program;
	return NULL;
}

int yk_gpu_kernel_file(struct yk_gpu_device *d, const struct yk_gpu_build *b,
		       struct yk_gpu_entry **to)
{
	const struct wanted w = want(b, "", 0);
	int err;

	if ((*to = find(d, &w)))
		return 0;
	void *program = program_beside(d, b);
	const bool shared = program;
	if (!shared && (err = yk_gpu_program_file(d, b, NULL, &program)))
		return err;
	return take(d, &w, program, shared, to);
}

int yk_gpu_kernel_map(struct yk_gpu_device *d, const struct yoke_op *op,
		      const struct yoke_map_call *call, const struct yk_gpu_build *b,
		      struct yk_gpu_entry **to)
{
	const struct wanted w = want(b, call->key, call->key_bytes);
	void *program;

	if ((*to = find(d, &w)))
		return 0;
	int err = yk_gpu_program_file(d, b, op, &program);
	return err ? err : take(d, &w, program, false, to);
}

// An application's kernel text, found by content, since its address may differ the next time.
struct yk_gpu_text {
	struct yk_gpu_text *next;
	struct yk_gpu_entry *kernel;
	uint64_t hash;
	const char *text;
	char entry[]; // entry name, followed by the text
};

int yk_gpu_kernel_source(struct yk_gpu_device *d, const struct yoke_source *s,
			 struct yk_gpu_entry **to)
{
	const size_t entry = strlen(s->entry) + 1, text = strlen(s->text) + 1;
	struct yk_gpu_text *t = d->texts;
	void *program;

	while (t && (t->hash != s->hash || strcmp(t->entry, s->entry) || strcmp(t->text, s->text)))
		t = t->next;
	if (t) {
		*to = t->kernel;
		return 0;
	}
	if (!(t = malloc(sizeof *t + entry + text)))
		return yk_gpu_error(YOKE_ENOMEM, "no memory for a kernel's text");
	t->hash = s->hash;
	t->text = t->entry + entry;
	memcpy(t->entry, s->entry, entry);
	memcpy(t->entry + entry, s->text, text);
	int err = yk_gpu_program_text(d, t->text, t->entry, &program);
	if (!err) {
		const struct yk_gpu_build b = { .file = "", .name = t->entry };
		const struct wanted w = want(&b, "", 0);
		err = take(d, &w, program, false, &t->kernel);
	}
	if (err) {
		free(t);
		return err;
	}
	t->next = d->texts;
	d->texts = t;
	*to = t->kernel;
	return 0;
}
