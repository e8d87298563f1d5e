// SPDX-License-Identifier: Apache-2.0
// Modules: shared objects compiled from kernel texts. Each load makes a separate copy of the
// file, because kernel state is static.
#include "config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec.h"

struct fake_module {
	void *handle;
	const struct fake_object *object;
	pthread_mutex_t lock;
};

static bool write_all(int fd, const char *data, size_t bytes)
{
	while (bytes) {
		const ssize_t n = write(fd, data, bytes);
		if (n <= 0)
			return false;
		data += n;
		bytes -= (size_t)n;
	}
	return true;
}

static void load_math(void)
{
	dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL); // where libc lacks it
}

// Through a temporary file.
static void *load(const char *data, size_t bytes)
{
	static pthread_once_t math = PTHREAD_ONCE_INIT;
	const char *folder = getenv("TMPDIR");
	char path[1024];
	void *handle = NULL;

	snprintf(path, sizeof path, "%s/fake_gpu.XXXXXX", folder && *folder ? folder : "/tmp");
	// linking it into each object would take the linker a fifth of the time
	pthread_once(&math, load_math);
	const int fd = mkstemp(path);
	if (fd < 0)
		return NULL;
	const bool whole = write_all(fd, data, bytes);
	if (!close(fd) && whole && !(handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)))
		fprintf(stderr, "fake_gpu: %s\n", dlerror());
	unlink(path);
	return handle;
}

struct fake_module *fake_module_new(const void *binary)
{
	struct fake_binary head;
	struct fake_module *m;

	memcpy(&head, binary, sizeof head.magic);
	if (memcmp(head.magic, FAKE_MAGIC, sizeof head.magic))
		return NULL;
	memcpy(&head, binary, sizeof head);
	const char *data = (const char *)binary + sizeof head;
	if (fake_hash(0, data, head.bytes) != head.hash ||
	    !head.check != !fake_number("CHECK", 0) || !(m = calloc(1, sizeof *m)))
		return NULL;
	if ((m->handle = load(data, head.bytes)))
		m->object = dlsym(m->handle, "fake_object");
	if (!m->object) {
		if (m->handle)
			dlclose(m->handle);
		free(m);
		return NULL;
	}
	pthread_mutex_init(&m->lock, NULL);
	return m;
}

void fake_module_free(struct fake_module *m)
{
	pthread_mutex_destroy(&m->lock);
	dlclose(m->handle);
	free(m);
}

const struct fake_object *fake_module_object(const struct fake_module *m)
{
	return m->object;
}

const struct fake_kernel *fake_module_kernel(const struct fake_module *m, const char *name)
{
	for (unsigned i = 0; i < m->object->count; i++)
		if (!strcmp(m->object->kernels[i].name, name))
			return &m->object->kernels[i];
	return NULL;
}

void fake_module_lock(struct fake_module *m)
{
	pthread_mutex_lock(&m->lock);
}

void fake_module_unlock(struct fake_module *m)
{
	pthread_mutex_unlock(&m->lock);
}
