// SPDX-License-Identifier: Apache-2.0
// Kernels: built at first use, found again by what they are built of; their arguments; launches.
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl.h"

// Some drivers start nothing before a flush: the device works while the rest of a step is enqueued.
enum { FLUSH = 16 }; // launches between two

// FNV-1a of 64 bits (Fowler, Noll and Vo), by eight bytes, each time folded: at every launch.
uint64_t yk_cl_hash(const void *data, size_t bytes)
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
	uint64_t h = yk_cl_hash(b->value, (size_t)b->n * sizeof *b->value);

	h ^= (uint64_t)(uintptr_t)b->name * 0x9e3779b97f4a7c15u;
	h ^= map_bytes ? yk_cl_hash(map, map_bytes) << 1 : 0;
	return (struct wanted){ b, map, map_bytes, h ^ h >> 32 };
}

static bool same_build(const struct yk_cl_build *a, const struct yk_cl_build *b)
{
	if (a->name != b->name || a->files != b->files || a->n != b->n)
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
	struct yk_cl_kernel *k = malloc(sizeof *k);

	if (!e || !k) {
		free(e);
		free(k);
		return yk_cl_error(YOKE_ENOMEM, "no memory for a kernel's record");
	}
	e->hash = w->hash;
	e->build = *w->build;
	e->map_bytes = w->map_bytes;
	memcpy(e->map, w->map, w->map_bytes);
	*k = (struct yk_cl_kernel){ .handle = kernel, .device = d };
	e->kernel = k;
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

// ---- launches ----

// The same bytes?  Most arguments are one word.
static inline bool same(const void *a, const void *b, size_t bytes)
{
	uint64_t x, y;

	if (bytes != sizeof x)
		return !memcmp(a, b, bytes);
	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return x == y;
}

// Is the next argument this one already?  If not, it is noted, where there is room.
static bool known(struct yk_cl_kernel *k, const void *value, size_t bytes)
{
	const size_t at = k->at, end = at + bytes;

	k->at = end;
	if (end <= k->known && same(k->values + at, value, bytes))
		return true;
	if (end > k->cap) {
		unsigned char *more = realloc(k->values, 2 * end);
		if (!more) {
			k->known = 0;
			return false;
		}
		k->values = more;
		k->cap = 2 * end;
	}
	if (at <= k->known) {
		memcpy(k->values + at, value, bytes);
		k->known = k->known > end ? k->known : end;
	}
	return false;
}

static void set(struct yk_cl_args *a, size_t bytes, const void *value)
{
	struct yk_cl_kernel *k = a->kernel;

	if (a->err != CL_SUCCESS)
		return;
	if (!a->n) { // a buffer made meanwhile may have the handle of one released meanwhile
		uint64_t released = __atomic_load_n(&k->device->released, __ATOMIC_ACQUIRE);
		k->known = k->released == released ? k->known : 0;
		k->released = released;
		k->at = 0;
	}
	const cl_uint n = a->n++;
	if (!known(k, value, bytes) &&
	    (a->err = clSetKernelArg(k->handle, n, bytes, value)) != CL_SUCCESS)
		k->known = 0;
}

void yk_cl_arg_word(struct yk_cl_args *a, uint64_t word)
{
	set(a, sizeof word, &word);
}

void yk_cl_arg_words(struct yk_cl_args *a, const int64_t *words, int n)
{
	for (int i = 0; i < n; i++)
		yk_cl_arg_word(a, (uint64_t)words[i]);
}

void yk_cl_arg_struct(struct yk_cl_args *a, const void *from, size_t bytes)
{
	set(a, bytes, from);
}

void yk_cl_arg_segment(struct yk_cl_args *a, void *segment)
{
	yk_cl_arg_mem(a, ((struct yk_cl_segment *)segment)->mem);
}

void yk_cl_arg_mem(struct yk_cl_args *a, cl_mem mem)
{
	set(a, sizeof mem, &mem);
}

void yk_cl_arg_map(struct yk_cl_args *a, const struct yoke_op *op,
		   const struct yoke_map_call *call)
{
	for (uint32_t i = 0; i < call->narg; i++) {
		int32_t k = call->arg[i].operand;
		if (k < 0)
			yk_cl_arg_word(a, call->arg[i].word);
		else if ((uint32_t)k < op->nout)
			yk_cl_arg_segment(a, op->out[k].segment);
		else
			yk_cl_arg_segment(a, op->in[(uint32_t)k - op->nout].segment);
	}
}

void yk_cl_arg_view(struct yk_cl_args *a, const struct yoke_view *v)
{
	yk_cl_arg_segment(a, v->segment);
	yk_cl_arg_word(a, v->offset);
}

// "512x16"
static char *sizes_text(char to[64], cl_uint dims, const size_t *size)
{
	int n = 0;
	for (cl_uint i = 0; size && i < dims; i++)
		n += snprintf(to + n, 64 - (size_t)n, "%s%zu", i ? "x" : "", size[i]);
	return size ? to : strcpy(to, "its own choice");
}

int yk_cl_launch(struct yk_cl_queue *q, struct yk_cl_args *a, cl_uint dims,
		 const size_t *items, const size_t *group, const char *name)
{
	char call[200], sizes[2][64];

	if (a->err != CL_SUCCESS) {
		snprintf(call, sizeof call, "clSetKernelArg %u of %.60s", a->n - 1, name);
		return yk_cl_fail(q->device, call, a->err);
	}
	cl_int code = clEnqueueNDRangeKernel(q->queue, a->kernel->handle, dims, NULL, items,
					     group, 0, NULL, NULL);
	if (code == CL_SUCCESS) {
		// what fails now fails again at the next event, where nothing is tried twice
		if (++q->launches % FLUSH == 0)
			clFlush(q->queue);
		return 0;
	}
	snprintf(call, sizeof call, "clEnqueueNDRangeKernel of %.60s, %s work items in groups of %s",
		 name, sizes_text(sizes[0], dims, items), sizes_text(sizes[1], dims, group));
	return yk_cl_fail(q->device, call, code);
}
