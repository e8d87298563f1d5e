// SPDX-License-Identifier: Apache-2.0
// Programs: kernel texts compiled with their macros, or loaded as binaries from the host's cache. A
// binary's key is everything it depends on: text, options, platform, device, driver. A binary that
// fails to load is a cache miss.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

#define MAX_BINARY (64u << 20)
#define OPTIONS 512 // max bytes of a build's options

// ---- binaries ----

static char *binary_key(const struct yk_gpu_device *d, const char *text,
			const char *options, size_t *bytes)
{
	size_t cap = strlen(d->identity) + strlen(options) + strlen(text) + 3;
	char *key = malloc(cap);

	if (key)
		*bytes = (size_t)snprintf(key, cap, "%s\n%s\n%s", d->identity, options,
					  text);
	return key;
}

static void *from_cache(struct yk_gpu_device *d, const char *key, size_t key_bytes,
			const char *options)
{
	int64_t bytes = yk_gpu_host->cache_get(key, key_bytes, NULL, 0);
	void *program = NULL;

	if (bytes <= 0 || bytes > MAX_BINARY)
		return NULL;
	void *data = malloc((size_t)bytes);
	if (data && yk_gpu_host->cache_get(key, key_bytes, data, (size_t)bytes) == bytes &&
	    yk_gpu_driver.load(d, data, (size_t)bytes, options, &program))
		program = NULL;
	free(data);
	return program;
}

static void to_cache(struct yk_gpu_device *d, void *program, const char *key, size_t key_bytes)
{
	size_t bytes = 0;
	void *data = yk_gpu_driver.binary(d, program, &bytes);

	if (data && bytes && bytes <= MAX_BINARY)
		yk_gpu_host->cache_put(key, key_bytes, data, bytes);
	free(data);
}

// Loads a program from the cache, or compiles it and stores it there.
static int program_of(struct yk_gpu_device *d, const char *text, const char *options,
		      const char *name, void **to)
{
	size_t bytes = 0;
	char *cache_key = d->binaries ? binary_key(d, text, options, &bytes) : NULL;
	int err = 0, lock = -1;

	*to = cache_key ? from_cache(d, cache_key, bytes, options) : NULL;
	if (!*to && yk_gpu_driver.build_lock)
		lock = yk_gpu_driver.build_lock(d);
	if (lock >= 0 && cache_key) // another process may have compiled it meanwhile
		*to = from_cache(d, cache_key, bytes, options);
	bool found = *to;
	if (!found) {
		err = yk_gpu_driver.build(d, text, options, name, to);
		if (!err && cache_key)
			to_cache(d, *to, cache_key, bytes);
	}
	if (lock >= 0)
		yk_gpu_driver.build_unlock(lock);
	if (!err)
		yk_gpu_log(YOKE_LOG_DEBUG, "%s with %s: %s", name, options,
			   found ? "found in the cache" : "compiled");
	if (!err && yk_gpu_host->programs)
		yk_gpu_host->programs(!found, found);
	free(cache_key);
	return err;
}

// ---- texts ----

// The complete source of a text: preceded by the code generated for the op's map, if any. The
// caller frees it.
static int source_of(const struct yoke_op *op, const char *text, char **to)
{
	int64_t bytes = yk_gpu_host->kernel_source(yk_gpu_driver.dialect, op, text, NULL, 0);

	if (bytes < 0)
		return yk_gpu_error((int)bytes, "the host could not generate the kernel's text");
	if (!(*to = malloc((size_t)bytes + 1)))
		return yk_gpu_error(YOKE_ENOMEM, "no memory for a kernel's text");
	yk_gpu_host->kernel_source(yk_gpu_driver.dialect, op, text, *to, (size_t)bytes + 1);
	return 0;
}

// "-cl-std=CL1.2 ... -DTM=4 -DTN=4"
static int options_of(struct yk_gpu_device *d, const struct yk_gpu_build *b, char *to, size_t cap)
{
	size_t n = (size_t)snprintf(to, cap, "%s%s", b->wgmma ? d->wgmma_options : d->options,
				    yk_gpu_f16(d) ? " -DNATIVE_F16=1" : "");

	for (int i = 0; i < b->n && n < cap; i++)
		n += (size_t)snprintf(to + n, cap - n, " -D%s=%lld", b->define[i],
				      (long long)b->value[i]);
	return n < cap ? 0 : yk_gpu_error(YOKE_EINVAL, "the options of %s are too long", b->file);
}

// ---- programs ----

static int build(struct yk_gpu_device *d, const struct yoke_op *map, const char *text,
		 const char *options, const char *name, void **to)
{
	char *source;
	int err = source_of(map, text, &source);

	if (err)
		return err;
	err = program_of(d, source, options, name, to);
	free(source);
	return err;
}

int yk_gpu_program_file(struct yk_gpu_device *d, const struct yk_gpu_build *b,
			const struct yoke_op *map, void **to)
{
	char options[OPTIONS], text[100];
	int err = options_of(d, b, options, sizeof options);

	snprintf(text, sizeof text, "#include \"%.80s\"\n", b->file);
	return err ? err : build(d, map, text, options, b->name, to);
}

int yk_gpu_program_text(struct yk_gpu_device *d, const char *text, const char *entry, void **to)
{
	return build(d, NULL, text, d->options, entry, to);
}
