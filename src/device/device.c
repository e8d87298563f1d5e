// SPDX-License-Identifier: Apache-2.0
// Devices: asks each backend once what it has, believes no number unseen, ranks, chooses.
#include "config.h"

#include <ctype.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "base/param.h"
#include "device/device.h"
#include "device/pool.h"

YK_PARAM(backend_setting, "backend", YK_STRING, "",
	 "backends to use, best first (cuda,opencl,cpu); ^opencl: all but; empty: the best device");
YK_PARAM(device_setting, "device", YK_STRING, "", "device within the backend, as opencl:0");

#define MOST_ALIGN ((uint32_t)2 << 20) // the pool's smallest segment

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // over all that follows
static struct yk_device **devices;                       // in order of discovery
static size_t ndevices, cap_devices;

// ---- discovery ----

// Makes what a backend says safe to use; false: it cannot be, and why.
static bool sane(struct yoke_device_info *i, char *why, size_t cap)
{
	char *const texts[] = { i->name, i->vendor, i->driver, i->uuid };
	const size_t bytes[] = { sizeof i->name, sizeof i->vendor, sizeof i->driver, sizeof i->uuid };

	for (int k = 0; k < 4; k++) {
		texts[k][bytes[k] - 1] = '\0';
		for (char *c = texts[k]; *c; c++)
			if (iscntrl((unsigned char)*c))
				*c = '?';
	}
	if (!i->align || (i->align & (i->align - 1)) || i->align > MOST_ALIGN) {
		snprintf(why, cap, "alignment %u is no power of two up to %u", i->align, MOST_ALIGN);
		return false;
	}
	if (!i->memory || !i->max_segment) {
		snprintf(why, cap, "%llu bytes of memory, %llu in one piece",
			 (unsigned long long)i->memory, (unsigned long long)i->max_segment);
		return false;
	}
	if (i->max_segment > i->memory)
		i->max_segment = i->memory;
	if (!i->units)
		i->units = 1;
	if (i->kind > YOKE_DEVICE_ACCELERATOR) // of a later minor version
		i->kind = YOKE_DEVICE_OTHER;
	return true;
}

static struct yk_device *device_new(struct yk_backend *b, uint32_t index, char *why, size_t cap)
{
	struct yk_device *d = calloc(1, sizeof *d);
	if (!d) {
		snprintf(why, cap, "out of memory");
		return NULL;
	}
	d->backend = b;
	d->ops = &b->table;
	d->index = index;
	snprintf(d->id, sizeof d->id, "%s:%u", b->table.name, index);
	d->info.size = sizeof d->info;
	bool had = yoke_error_code() != 0;
	int code = d->ops->device_info(index, &d->info);
	if (code < 0) {
		yk_backend_detail(had, code, why, cap);
		goto fail;
	}
	if (!sane(&d->info, why, cap))
		goto fail;
	d->pool = yk_pool_new(d, YOKE_SEGMENT_DEVICE);
	d->pinned = yk_pool_new(d, YOKE_SEGMENT_HOST);
	if (d->pool && d->pinned)
		return d;
	snprintf(why, cap, "out of memory");
	if (d->pool)
		yk_pool_delete(d->pool);
	if (d->pinned)
		yk_pool_delete(d->pinned);
fail:
	free(d);
	return NULL;
}

__attribute__((format(printf, 2, 3)))
static void blame(struct yk_backend *b, const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	if (!b->why)
		b->why = text ? text : "out of memory";
	else
		free(text);
}

// Finds a backend's devices, once.  With the lock held.
static void probe(struct yk_backend *b)
{
	char why[512];
	uint32_t n = 0;

	if (b->probed)
		return;
	b->probed = true;
	bool had = yoke_error_code() != 0;
	int code = b->table.probe(&n);
	if (code < 0) {
		yk_backend_detail(had, code, why, sizeof why);
		blame(b, "%s", why);
		yk_warn("device", "%s: %s", b->table.name, why);
		return;
	}
	if (n > YK_MOST_DEVICES) {
		blame(b, "claims %u devices", n);
		yk_warn("device", "%s: claims %u devices, none is used", b->table.name, n);
		return;
	}
	if (yk_grow(&devices, &cap_devices, ndevices + n, sizeof *devices) < 0) {
		blame(b, "out of memory");
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct yk_device *d = device_new(b, i, why, sizeof why);
		if (!d) {
			blame(b, "device %u refused: %s", i, why);
			yk_warn("device", "%s:%u refused: %s", b->table.name, i, why);
			continue;
		}
		devices[ndevices++] = d;
		b->ndevices++;
	}
	if (!n)
		blame(b, "no devices");
}

// ---- ranking ----

// Place of a backend in a list that names what is allowed, in order; 0 in all other lists.
static int position(const char *list, const char *name)
{
	if (!list || !*list || *list == '^' || !strcmp(list, "*"))
		return 0;
	for (int at = 0;; at++) {
		size_t n = strcspn(list, ",");
		if (n == strlen(name) && !memcmp(list, name, n))
			return at;
		list += n;
		if (!*list++)
			return at + 1;
	}
}

static bool is_cpu(const struct yk_device *d)
{
	return !strcmp(d->backend->table.name, "cpu");
}

// Behind the CPU backend is what is never chosen by itself while that is there: a CPU behind another
// driver, and kinds of which we know nothing.
static int rank_of(const struct yk_device *d)
{
	if (is_cpu(d))
		return 2;
	switch (d->info.kind) {
	case YOKE_DEVICE_GPU: return 0;
	case YOKE_DEVICE_IGPU: return 1;
	case YOKE_DEVICE_ACCELERATOR: return 3;
	case YOKE_DEVICE_CPU: return 4;
	}
	return 5;
}

// OpenCL drives most vendors' devices, their own backend drives them better.
static int generic(const struct yk_device *d)
{
	return !strcmp(d->backend->table.name, "opencl");
}

struct ranked {
	struct yk_device *device;
	int position, discovery;
};

static int by_rank(const void *va, const void *vb)
{
	const struct ranked *a = va, *b = vb;
	const struct yk_device *x = a->device, *y = b->device;

	if (a->position != b->position)
		return a->position < b->position ? -1 : 1;
	if (rank_of(x) != rank_of(y))
		return rank_of(x) < rank_of(y) ? -1 : 1;
	if (generic(x) != generic(y))
		return generic(x) < generic(y) ? -1 : 1;
	if (x->info.memory != y->info.memory)
		return x->info.memory > y->info.memory ? -1 : 1;
	return a->discovery < b->discovery ? -1 : a->discovery > b->discovery;
}

// The devices of the backends in the list, best first; the caller frees the array.  With the lock
// held.
static struct ranked *rank(const char *list, size_t *n)
{
	for (struct yk_backend *b = yk_backends(list); b; b = b->next)
		if (yk_list_has(list, b->table.name))
			probe(b);
	struct ranked *r = malloc((ndevices + 1) * sizeof *r);
	if (!r)
		return NULL;
	*n = 0;
	for (size_t i = 0; i < ndevices; i++)
		if (yk_list_has(list, devices[i]->backend->table.name))
			r[(*n)++] = (struct ranked){ devices[i],
				position(list, devices[i]->backend->table.name), (int)i };
	qsort(r, *n, sizeof *r, by_rank);
	return r;
}

struct yk_device *yk_devices(const char *list)
{
	struct yk_device *first = NULL;
	size_t n;

	if (yk_forked())
		return NULL;
	if (!list)
		list = yk_param_str(&backend_setting);
	pthread_mutex_lock(&lock);
	struct ranked *r = rank(list, &n);
	for (size_t i = r ? n : 0; i--; first = r[i].device)
		r[i].device->next = first;
	free(r);
	pthread_mutex_unlock(&lock);
	return first;
}

// ---- choice ----

// Why a backend that was asked for cannot be used.
static const char *trouble(const char *name)
{
	for (struct yk_backend *b = yk_backends("cpu"); b; b = b->next)
		if (!strcmp(b->table.name, name))
			return b->ndevices ? NULL : b->why ? b->why : "no devices";
	const char *refusal = yk_backend_refusal(name);
	return refusal ? refusal : "there is no such backend";
}

static const char *nearest(const char *name, char *known)
{
	const char *names[64];
	int n = 0;

	for (char *rest = known, *word; n < 64 && (word = strsep(&rest, ",")); )
		names[n++] = word + strspn(word, " ");
	return yk_nearest(name, names, n);
}

// Warns of the names in an allow-list that stand before the one that is used.
static void warn_before(const char *list, int position)
{
	char *names = strdup(list), *rest = names, *name;
	for (int at = 0; names && at < position && (name = strsep(&rest, ",")); at++) {
		const char *why = *name ? trouble(name) : NULL;
		if (why)
			yk_warn("device", "backend '%s' cannot be used: %s", name, why);
	}
	free(names);
}

// No name of an allow-list is of use: says why, and what there is.
static void fail_all(const char *list)
{
	char reasons[600] = "", known[256], copy[256];
	bool several = strchr(list, ',');
	size_t n = 0;

	yk_backend_names(known, sizeof known);
	char *names = strdup(list), *rest = names, *name;
	while (names && n < sizeof reasons && (name = strsep(&rest, ","))) {
		const char *why = *name ? trouble(name) : NULL;
		if (!why)
			continue;
		memcpy(copy, known, sizeof copy);
		const char *near = nearest(name, copy);
		if (several)
			n += (size_t)snprintf(reasons + n, sizeof reasons - n, "%s%s: ",
					      n ? "; " : "", name);
		if (n < sizeof reasons)
			n += (size_t)snprintf(reasons + n, sizeof reasons - n, "%s%s%s%s", why,
					      near ? ", did you mean '" : "", near ? near : "",
					      near ? "'?" : "");
	}
	free(names);
	yk_fail(YOKE_ENODEV, "backend '%s' cannot be used: %s (there are: %s)", list, reasons, known);
}

// A device by its name among those of the list.
static struct yk_device *pick(const struct ranked *r, size_t n, const char *id, const char *list)
{
	char known[700] = "";
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		if (!strcmp(r[i].device->id, id))
			return r[i].device;
		if (used < sizeof known)
			used += (size_t)snprintf(known + used, sizeof known - used, "%s%s (%s)",
						 used ? ", " : "", r[i].device->id,
						 r[i].device->info.name);
	}
	yk_fail(YOKE_ENODEV, "device '%s' cannot be used: it is not among those of backend '%s': %s",
		id, *list ? list : "*", known);
	return NULL;
}

struct yk_device *yk_device_choose(const char *list)
{
	struct yk_device *d = NULL;
	bool given = list != NULL;
	size_t n = 0;

	if (yk_forked()) {
		yk_fail(YOKE_EFORK, "devices cannot be used in a forked child");
		return NULL;
	}
	if (!given)
		list = yk_param_str(&backend_setting);
	const char *id = yk_param_str(&device_setting);
	bool allows = *list && *list != '^' && strcmp(list, "*");
	if (strchr(list + (*list == '^'), '^')) {
		yk_fail(YOKE_EINVAL, "backend '%s': '^' stands once, at the beginning, and excludes "
			"all that follow", list);
		return NULL;
	}

	pthread_mutex_lock(&lock);
	struct ranked *r = rank(list, &n);
	if (!r)
		yk_fail(YOKE_ENOMEM, "no host memory for a list of devices");
	else if (!n && allows)
		fail_all(list);
	else if (!n)
		yk_fail(YOKE_ENODEV, "backend '%s' leaves no device to use", list);
	else
		d = r[0].device;
	if (d && *id) {
		// A list given by the program may leave the device of the environment out.
		char backend[sizeof d->id];
		snprintf(backend, sizeof backend, "%.*s", (int)strcspn(id, ":"), id);
		if (!given || yk_list_has(list, backend))
			d = pick(r, n, id, list);
	}
	if (d && allows)
		warn_before(list, position(list, d->backend->table.name));
	free(r);
	pthread_mutex_unlock(&lock);
	return d;
}

struct yk_device *yk_device_cpu(void)
{
	struct yk_device *d = NULL;
	size_t n = 0;

	if (yk_forked()) {
		yk_fail(YOKE_EFORK, "devices cannot be used in a forked child");
		return NULL;
	}
	pthread_mutex_lock(&lock);
	struct ranked *r = rank("cpu", &n);
	if (r && n)
		d = r[0].device;
	else
		yk_fail(YOKE_ENODEV, "the CPU backend cannot be used: %s", trouble("cpu"));
	free(r);
	pthread_mutex_unlock(&lock);
	return d;
}
