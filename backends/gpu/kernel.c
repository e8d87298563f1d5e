// SPDX-License-Identifier: Apache-2.0
// Kernels: built at first use, found again by what they are built of.
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

// FNV-1a of 64 bits (Fowler, Noll and Vo), by eight bytes, each time folded.
static uint64_t hash_of(const void *data, size_t bytes)
{
	const unsigned char *p = data, *end = p + bytes;
	uint64_t h = 0xcbf29ce484222325u, word;
	for (; (size_t)(end - p) >= sizeof word; p += sizeof word) {
		memcpy(&word, p, sizeof word); // of a known size: one load
		h = (h ^ word) * 0x100000001b3u;
		h ^= h >> 29;
	}
	word = 0;
	memcpy(&word, p, (size_t)(end - p));
	h = (h ^ word) * 0x100000001b3u;
	return h ^ h >> 29;
}

// ---- what a kernel is built of ----

void yk_cl_define(struct yk_cl_build *b, const char *name, int64_t value)
{
	assert(b->n < YK_CL_DEFINES);
	b->define[b->n] = name;
	b->value[b->n++] = value;
}

void yk_cl_flag(struct yk_cl_build *b, const char *name, bool set)
{
	if (set)
		yk_cl_define(b, name, 1);
}

// One that is looked for; map: the key of the map in its text.
struct wanted {
	const struct yk_cl_build *build;
	const void *map;
	size_t map_bytes;
	uint64_t hash;
};

static struct wanted want(const struct yk_cl_build *b, const void *map, size_t map_bytes)
{
	uint64_t h = hash_of(b->value, (size_t)b->n * sizeof *b->value);

	h ^= (uint64_t)(uintptr_t)b->name * 0x9e3779b97f4a7c15u;
	h ^= map_bytes ? hash_of(map, map_bytes) << 1 : 0;
	return (struct wanted){ b, map, map_bytes, h ^ h >> 32 };
}

static bool same_build(const struct yk_cl_build *a, const struct yk_cl_build *b)
{
	if (a->name != b->name || a->file != b->file || a->n != b->n)
		return false;
	for (int i = 0; i < a->n; i++)
		if (a->define[i] != b->define[i] || a->value[i] != b->value[i])
			return false;
	return true;
}

static struct yk_cl_entry *find(struct yk_cl_device *d, const struct wanted *w)
{
	struct yk_cl_entry *e = d->kernels[w->hash % KERNEL_BUCKETS];

	while (e && (e->hash != w->hash || e->map_bytes != w->map_bytes ||
		     !same_build(&e->build, w->build) || memcmp(e->map, w->map, w->map_bytes)))
		e = e->next;
	return e;
}

static int keep(struct yk_cl_device *d, const struct wanted *w, cl_kernel kernel,
		struct yk_cl_entry **to)
{
	struct yk_cl_entry *e = malloc(sizeof *e + w->map_bytes);

	if (!e)
		return yk_cl_error(YOKE_ENOMEM, "no memory for a kernel's record");
	e->hash = w->hash;
	e->build = *w->build;
	e->map_bytes = w->map_bytes;
	memcpy(e->map, w->map, w->map_bytes);
	e->kernel = kernel;
	e->group = 0;
	clGetKernelWorkGroupInfo(kernel, d->id, CL_KERNEL_WORK_GROUP_SIZE,
				 sizeof e->group, &e->group, NULL);
	if (!e->group || e->group > d->max_group)
		e->group = d->max_group;
	e->next = d->kernels[e->hash % KERNEL_BUCKETS];
	d->kernels[e->hash % KERNEL_BUCKETS] = e;
	*to = e;
	return 0;
}

static int take(struct yk_cl_device *d, const struct wanted *w, cl_program program,
		struct yk_cl_entry **to)
{
	cl_int code;
	cl_kernel kernel = clCreateKernel(program, w->build->name, &code);

	if (code == CL_INVALID_KERNEL_NAME)
		return yk_cl_error(YOKE_EUNSUPPORTED, "the text has no kernel %s", w->build->name);
	if (!kernel)
		return yk_cl_fail(d, "clCreateKernel", code);
	int err = keep(d, w, kernel, to);
	if (err)
		clReleaseKernel(kernel);
	return err;
}

int yk_cl_kernel_file(struct yk_cl_device *d, const struct yk_cl_build *b, struct yk_cl_entry **to)
{
	const struct wanted w = want(b, "", 0);
	cl_program program;

	if ((*to = find(d, &w)))
		return 0;
	int err = yk_cl_program_file(d, b, &program);
	return err ? err : take(d, &w, program, to);
}

int yk_cl_kernel_map(struct yk_cl_device *d, const struct yoke_op *op,
		     const struct yoke_map_call *call, const struct yk_cl_build *b,
		     struct yk_cl_entry **to)
{
	const struct wanted w = want(b, call->key, call->key_bytes);
	cl_program program;

	if ((*to = find(d, &w)))
		return 0;
	int err = yk_cl_program_map(d, b, op, &program);
	if (err)
		return err;
	err = take(d, &w, program, to);
	clReleaseProgram(program); // the kernel holds it
	return err;
}

// An application's text, by content: it may lie elsewhere the next time.
struct yk_cl_text {
	struct yk_cl_text *next;
	struct yk_cl_entry *kernel;
	uint64_t hash;
	const char *text;
	char entry[]; // and the text
};

int yk_cl_kernel_source(struct yk_cl_device *d, const struct yoke_source *s, struct yk_cl_entry **to)
{
	const size_t entry = strlen(s->entry) + 1, text = strlen(s->text) + 1;
	struct yk_cl_text *t = d->texts;
	cl_program program;

	while (t && (t->hash != s->hash || strcmp(t->entry, s->entry) || strcmp(t->text, s->text)))
		t = t->next;
	if (t) {
		*to = t->kernel;
		return 0;
	}
	if (!(t = malloc(sizeof *t + entry + text)))
		return yk_cl_error(YOKE_ENOMEM, "no memory for a kernel's text");
	t->hash = s->hash;
	t->text = t->entry + entry;
	memcpy(t->entry, s->entry, entry);
	memcpy(t->entry + entry, s->text, text);
	int err = yk_cl_program_text(d, t->text, t->entry, &program);
	if (!err) {
		const struct yk_cl_build b = { .file = "", .name = t->entry };
		const struct wanted w = want(&b, "", 0);
		err = take(d, &w, program, &t->kernel);
		clReleaseProgram(program); // the kernel holds it
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
