// SPDX-License-Identifier: Apache-2.0
// Kernels: built at first use, found again by their key; binaries go through the host's
// cache.  A binary's key is all that it depends on: text, options, platform, device,
// driver.  A binary that does not build is a miss.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl.h"

#define MAX_BINARY (64u << 20)

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

struct yk_cl_entry *yk_cl_kernel_find(struct yk_cl_device *d, const void *key,
				      size_t key_bytes)
{
	uint64_t hash = yk_cl_hash(key, key_bytes);
	struct yk_cl_entry *e = d->kernels[hash % KERNEL_BUCKETS];

	while (e && (e->hash != hash || e->key_bytes != key_bytes ||
		     memcmp(e->key, key, key_bytes)))
		e = e->next;
	return e;
}

// ---- programs ----

static char *binary_key(const struct yk_cl_device *d, const char *text,
			const char *options, size_t *bytes)
{
	size_t cap = strlen(d->identity) + strlen(options) + strlen(text) + 3;
	char *key = malloc(cap);

	if (key)
		*bytes = (size_t)snprintf(key, cap, "%s\n%s\n%s", d->identity, options,
					  text);
	return key;
}

static cl_program from_cache(struct yk_cl_device *d, const char *key, size_t key_bytes,
			     const char *options)
{
	int64_t bytes = yk_cl_host->cache_get(key, key_bytes, NULL, 0);
	cl_program program = NULL;
	cl_int status, code;

	if (bytes <= 0 || bytes > MAX_BINARY)
		return NULL;
	unsigned char *data = malloc((size_t)bytes);
	if (data && yk_cl_host->cache_get(key, key_bytes, data, (size_t)bytes) == bytes) {
		size_t size = (size_t)bytes;
		const unsigned char *binary = data;
		program = clCreateProgramWithBinary(d->context, 1, &d->id, &size, &binary,
						    &status, &code);
		if (code != CL_SUCCESS)
			program = NULL;
	}
	free(data);
	if (program &&
	    clBuildProgram(program, 1, &d->id, options, NULL, NULL) != CL_SUCCESS) {
		clReleaseProgram(program);
		program = NULL;
	}
	return program;
}

static void to_cache(cl_program program, const char *key, size_t key_bytes)
{
	size_t bytes = 0;
	unsigned char *data;

	if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes,
			     NULL) != CL_SUCCESS ||
	    !bytes || bytes > MAX_BINARY || !(data = malloc(bytes)))
		return;
	if (clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof data, &data, NULL) ==
	    CL_SUCCESS)
		yk_cl_host->cache_put(key, key_bytes, data, bytes);
	free(data);
}

// The compiler's complaint: whole in the log, its beginning in the error.
static int build_failed(struct yk_cl_device *d, cl_program program, const char *options,
			const char *name, cl_int code)
{
	size_t bytes = 0;
	char *text = NULL;

	if (clGetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, 0, NULL,
				  &bytes) == CL_SUCCESS &&
	    bytes && bytes < MAX_BINARY && (text = calloc(1, bytes + 1)))
		clGetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, bytes, text,
				      NULL);
	const char *log = text && *text ? text : "no log";
	yk_cl_log(YOKE_LOG_DEBUG, "build of %s with %s: %s", name, options, log);
	int err = code == CL_BUILD_PROGRAM_FAILURE || code == CL_INVALID_BUILD_OPTIONS ?
		  yk_cl_error(YOKE_EUNSUPPORTED, "clBuildProgram: %s on opencl:%u (%s, %s), kernel %s, "
			      "options %s: %.400s", yk_cl_name(code), d->index, d->info.name,
			      d->info.driver, name, options, log) :
		  yk_cl_fail(d, "clBuildProgram", code);
	free(text);
	return err;
}

static int from_text(struct yk_cl_device *d, const char *text, const char *options,
		     const char *name, cl_program *to)
{
	cl_int code;
	cl_program program = clCreateProgramWithSource(d->context, 1, &text, NULL, &code);

	if (code != CL_SUCCESS)
		return yk_cl_fail(d, "clCreateProgramWithSource", code);
	code = clBuildProgram(program, 1, &d->id, options, NULL, NULL);
	if (code != CL_SUCCESS) {
		int err = build_failed(d, program, options, name, code);
		clReleaseProgram(program);
		return err;
	}
	*to = program;
	return 0;
}

static int keep(struct yk_cl_device *d, const void *key, size_t key_bytes,
		cl_kernel kernel, struct yk_cl_entry **to)
{
	struct yk_cl_entry *e = malloc(sizeof *e + key_bytes);
	struct yk_cl_kernel *k = malloc(sizeof *k);

	if (!e || !k) {
		free(e);
		free(k);
		return yk_cl_error(YOKE_ENOMEM, "no memory for a kernel's record");
	}
	e->hash = yk_cl_hash(key, key_bytes);
	e->key_bytes = key_bytes;
	memcpy(e->key, key, key_bytes);
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

// From the cache, or from the text and then into the cache.
static int program_of(struct yk_cl_device *d, const char *text, const char *options,
		      const char *name, cl_program *to)
{
	size_t bytes = 0;
	char *cache_key = d->binaries ? binary_key(d, text, options, &bytes) : NULL;
	int err = 0;

	*to = cache_key ? from_cache(d, cache_key, bytes, options) : NULL;
	int lock = *to ? -1 : yk_cl_build_lock(d);
	if (lock >= 0 && cache_key) // somebody may have compiled it meanwhile
		*to = from_cache(d, cache_key, bytes, options);
	bool found = *to;
	if (!found) {
		err = from_text(d, text, options, name, to);
		if (!err && cache_key)
			to_cache(*to, cache_key, bytes);
	}
	yk_cl_build_unlock(lock);
	if (!err && yk_cl_host->programs)
		yk_cl_host->programs(!found, found);
	free(cache_key);
	return err;
}

static int take(struct yk_cl_device *d, const void *key, size_t key_bytes,
		cl_program program, const char *name, struct yk_cl_entry **to)
{
	cl_int code;
	cl_kernel kernel = clCreateKernel(program, name, &code);

	if (!kernel)
		return yk_cl_fail(d, "clCreateKernel", code);
	int err = keep(d, key, key_bytes, kernel, to);
	if (err)
		clReleaseKernel(kernel);
	return err;
}

static int build(struct yk_cl_device *d, const void *key, size_t key_bytes,
		 const char *text, const char *options, const char *name,
		 struct yk_cl_entry **to)
{
	cl_program program;
	int err = program_of(d, text, options, name, &program);

	if (err)
		return err;
	err = take(d, key, key_bytes, program, name, to);
	clReleaseProgram(program); // the kernel holds it
	return err;
}

// ---- programs of files ----

struct yk_cl_program {
	struct yk_cl_program *next;
	cl_program program;
	char key[]; // files, defines
};

// Texts one behind the other.
struct joined {
	char *text;
	size_t length;
};

static int join(struct joined *j, const char *text, size_t bytes)
{
	char *more = realloc(j->text, j->length + bytes + 1);

	if (!more)
		return yk_cl_error(YOKE_ENOMEM, "no memory for a kernel's text");
	j->text = more;
	memcpy(more + j->length, text, bytes);
	j->length += bytes;
	more[j->length] = 0;
	return 0;
}

static int join_files(struct joined *j, const char *files)
{
	int err = 0;

	while (*files && !err) {
		char name[64];
		size_t n = strcspn(files, " ");
		snprintf(name, sizeof name, "%.*s", (int)n, files);
		files += n + strspn(files + n, " ");
		const char *text = yk_cl_host->kernel_text(name);
		err = text ? join(j, text, strlen(text)) :
			     yk_cl_error(YOKE_ENOENT, "the text of %s is missing", name);
	}
	return err;
}

static int too_long(const char *files)
{
	return yk_cl_error(YOKE_EINVAL, "the defines of %s are too long", files);
}

// Of a build with these defines.
static int options_of(struct yk_cl_device *d, const char *defines, const char *files,
		      char *to, size_t cap)
{
	int n = yk_cl_format(to, cap, "%s%s %s", d->options,
			     yk_cl_f16(d) ? " -DNATIVE_F16=1" : "", defines);
	return n < (int)cap ? 0 : too_long(files);
}

static int program_of_files(struct yk_cl_device *d, const char *files,
			    const char *defines, const char *name, cl_program *to)
{
	char key[512], options[512];
	int n = yk_cl_format(key, sizeof key, "%s|%s", files, defines);

	if (n >= (int)sizeof key)
		return too_long(files);
	for (struct yk_cl_program *p = d->programs; p; p = p->next)
		if (!strcmp(p->key, key)) {
			*to = p->program;
			return 0;
		}
	struct joined j = { 0 };
	struct yk_cl_program *p = malloc(sizeof *p + (size_t)n + 1);
	int err = p ? 0 : yk_cl_error(YOKE_ENOMEM, "no memory for a program's record");
	if (!err)
		err = options_of(d, defines, files, options, sizeof options);
	if (!err)
		err = join_files(&j, "prologue_opencl.h");
	if (!err)
		err = join_files(&j, files);
	if (!err)
		err = program_of(d, j.text, options, name, &p->program);
	free(j.text);
	if (err) {
		free(p);
		return err;
	}
	memcpy(p->key, key, (size_t)n + 1);
	p->next = d->programs;
	d->programs = p;
	*to = p->program;
	return 0;
}

int yk_cl_kernel_file(struct yk_cl_device *d, const char *files, const char *defines,
		      const char *name, struct yk_cl_entry **to)
{
	char key[640];
	cl_program program = NULL;
	int n = yk_cl_format(key, sizeof key, "%s|%s|%s", name, files, defines);

	if (n >= (int)sizeof key)
		return too_long(files);
	if ((*to = yk_cl_kernel_find(d, key, (size_t)n)))
		return 0;
	int err = program_of_files(d, files, defines, name, &program);
	return err ? err : take(d, key, (size_t)n, program, name, to);
}

// ---- programs around a map ----

static int join_map(struct joined *j, const struct yoke_op *op)
{
	int64_t bytes = yk_cl_host->map_source(YOKE_DIALECT_OPENCL, op, NULL, 0);
	char *text;

	if (bytes < 0)
		return yk_cl_error((int)bytes, "the generator refused a map");
	if (!(text = malloc((size_t)bytes + 1)))
		return yk_cl_error(YOKE_ENOMEM, "no memory for a map's text");
	yk_cl_host->map_source(YOKE_DIALECT_OPENCL, op, text, (size_t)bytes + 1);
	int err = join(j, text, (size_t)bytes);
	free(text);
	return err;
}

int yk_cl_kernel_map(struct yk_cl_device *d, const struct yoke_op *op,
		     const struct yoke_map_call *call, const char *files,
		     const char *defines, const char *name, struct yk_cl_entry **to)
{
	char key[YOKE_MAP_KEY_BYTES + 512], options[512];
	int n = yk_cl_format(key, 512, "%s|%s|%s|", name, files, defines);
	struct joined j = { 0 };

	if (n >= 512)
		return too_long(files);
	memcpy(key + n, call->key, call->key_bytes);
	size_t key_bytes = (size_t)n + call->key_bytes;
	if ((*to = yk_cl_kernel_find(d, key, key_bytes)))
		return 0;
	int err = options_of(d, defines, files, options, sizeof options);
	if (!err)
		err = join_map(&j, op);
	if (!err)
		err = join_files(&j, files);
	if (!err)
		err = build(d, key, key_bytes, j.text, options, name, to);
	free(j.text);
	return err;
}

// ---- launches ----

// Is the next argument this one already?  If not, it is noted, where there is room.
static bool known(struct yk_cl_kernel *k, const void *value, size_t bytes)
{
	const size_t at = k->at, end = at + bytes;

	k->at = end;
	if (end <= k->known && !memcmp(k->values + at, value, bytes))
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
