// SPDX-License-Identifier: Apache-2.0
// Chooses devices: ranks them by kind, never by name or memory size, detects devices that several
// backends report, and selects by YOKE_BACKEND and YOKE_DEVICE.
#include "config.h"

#include <ctype.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/log.h"
#include "base/number.h"
#include "base/param.h"
#include "device/device.h"
#include "device/nodes.h"

YK_PARAM(backend_setting, "backend", YK_STRING, "",
	 "backends to use, best first (cuda,opencl,cpu); ^opencl: all but; auto, the default: the best "
	 "device");
YK_PARAM(device_setting, "device", YK_STRING, "",
	 "the device: opencl:0, pci:0000:01:00.0, uuid:.. or a pattern of its name, as '*RTX*'");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // protects the devices and their links

// ---- ranking ----

// Position of a backend in an ordered allow-list; 0 for other lists.
static int position(const char *list, const char *name)
{
	if (yk_list_is_open(list) || *list == '^')
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

// Devices ranked after the CPU backend are never chosen automatically: a CPU under another driver,
// and devices of unknown kind.
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

// OpenCL supports most vendors' devices, but the vendor's own backend is preferred.
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
	return a->discovery < b->discovery ? -1 : a->discovery > b->discovery;
}

// Do both describe the same hardware?
static bool same(const struct yoke_device_info *x, const struct yoke_device_info *y)
{
	return (*x->pci && yk_same_word(x->pci, y->pci)) ||
	       (*x->uuid && yk_same_word(x->uuid, y->uuid));
}

// The devices of the backends in the list, best first; the caller frees the array.  With the lock
// held.
static struct ranked *rank(const char *list, size_t *n)
{
	size_t all;
	struct yk_device *const *found = yk_devices_found(list, &all);
	struct ranked *r = malloc((all + 1) * sizeof *r);

	if (!r)
		return NULL;
	*n = 0;
	for (size_t i = 0; i < all; i++)
		if (yk_list_has(list, found[i]->backend->table.name) && !found[i]->left)
			r[(*n)++] = (struct ranked){ found[i],
				position(list, found[i]->backend->table.name), (int)i };
	qsort(r, *n, sizeof *r, by_rank);
	for (size_t i = 0; i < *n; i++) {
		struct yk_device *alias = NULL;
		for (size_t k = 0; k < i && !alias; k++)
			if (!r[k].device->alias && same(&r[k].device->info, &r[i].device->info))
				alias = r[k].device;
		if (r[i].device->alias != alias) // devices in use are read without the lock
			r[i].device->alias = alias;
	}
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

const char *yk_device_at(int i)
{
	const char *id = NULL;
	size_t n;

	if (yk_forked()) {
		yk_fail(YOKE_EFORK, "devices cannot be used in a forked child");
		return NULL;
	}
	pthread_mutex_lock(&lock);
	struct ranked *r = rank(yk_param_str(&backend_setting), &n);
	if (r && i >= 0 && (size_t)i < n)
		id = r[i].device->id;
	free(r);
	pthread_mutex_unlock(&lock);
	return id;
}

// ---- choice ----

const char *yk_backend_trouble(const char *name)
{
	for (struct yk_backend *b = yk_backends("cpu"); b; b = b->next)
		if (!strcmp(b->table.name, name))
			return b->ndevices ? NULL : b->why ? b->why : "no devices";
	const char *refusal = yk_backend_refusal(name);
	return refusal ? refusal : "there is no such backend";
}

// Common names for backends, and the backends they stand for, best first.
static const struct {
	const char *name, *meant;
} common_names[] = {
	{ "gpu", "cuda rocm opencl" }, { "nvidia", "cuda opencl" }, { "amd", "rocm opencl" },
	{ "hip", "rocm opencl" },      { "intel", "opencl" },	    { "vulkan", "opencl" },
	{ "metal", "opencl" },	       { "mps", "opencl" },	    { "cl", "opencl" },
	{ "ocl", "opencl" },	       { "cuda", "opencl" },	    { "rocm", "opencl" },
	{ "host", "cpu" },	       { "x86", "cpu" },	    { "processor", "cpu" },
};

// The name that was probably meant, out of `known`, a comma-separated list that is modified; NULL:
// none is close.
static const char *nearest(const char *name, char *known)
{
	const char *names[64];
	char small[64];
	int n = 0;

	snprintf(small, sizeof small, "%s", name);
	for (char *c = small; *c; c++)
		*c = yk_small_letter(*c);
	for (char *rest = known, *word; n < 64 && (word = strsep(&rest, ",")); )
		names[n++] = word + strspn(word, " ");
	for (size_t i = 0; i < sizeof common_names / sizeof *common_names; i++) {
		char meant[64], *rest = meant, *word;
		if (strcmp(small, common_names[i].name))
			continue;
		snprintf(meant, sizeof meant, "%s", common_names[i].meant);
		while ((word = strsep(&rest, " ")))
			for (int k = 0; k < n; k++)
				if (!strcmp(names[k], word))
					return names[k];
		return NULL; // do not suggest a name that is merely spelt alike
	}
	return yk_nearest(small, names, n);
}

// Logs a warning for each name in an allow-list that comes before the one used.
static void warn_before(const char *list, int position)
{
	char *names = strdup(list), *rest = names, *name;
	for (int at = 0; names && at < position && (name = strsep(&rest, ",")); at++) {
		const char *why = *name ? yk_backend_trouble(name) : NULL;
		if (why)
			yk_warn("device", "backend '%s' cannot be used: %s", name, why);
	}
	free(names);
}

// No backend of an allow-list can be used: reports why, and which backends exist.
static void fail_all(const char *list)
{
	char reasons[600] = "", known[256], copy[256];
	bool several = strchr(list, ',');
	size_t n = 0;

	yk_backend_names(known, sizeof known);
	char *names = strdup(list), *rest = names, *name;
	while (names && n < sizeof reasons && (name = strsep(&rest, ","))) {
		const char *why = *name ? yk_backend_trouble(name) : NULL;
		if (!why)
			continue;
		memcpy(copy, known, sizeof copy);
		const char *near = nearest(name, copy);
		if (near && !strcmp(near, name))
			near = NULL;
		if (several)
			n += (size_t)snprintf(reasons + n, sizeof reasons - n, "%s%s: ",
					      n ? "; " : "", name);
		if (n < sizeof reasons)
			n += (size_t)snprintf(reasons + n, sizeof reasons - n, "%s%s%s%s", why,
					      near ? ", did you mean '" : "", near ? near : "",
					      near ? "'?" : "");
	}
	free(names);
	yk_fail(YOKE_ENODEV,
		"backend '%s' cannot be used: %s (there are: %s); `yoke doctor` reports why "
		"a device is missing",
		list, *reasons ? reasons : "it names none", known);
}

// "01:00.0" is "0000:01:00.0".
static bool is_pci(const char *pci, const char *text)
{
	const char *tail = strchr(pci, ':');
	return *pci && (yk_same_word(pci, text) ||
			(!strncmp(pci, "0000:", 5) && tail && yk_same_word(tail + 1, text)));
}

// Equal digits, ignoring case and dashes; one vendor's tools write the prefix "GPU-".
static bool is_uuid(const char *uuid, const char *text)
{
	if (yk_same_words(text, "GPU-", 4))
		text += 4;
	if (!*uuid)
		return false;
	for (;; uuid++, text++) {
		uuid += strspn(uuid, "-");
		text += strspn(text, "-");
		if (yk_small_letter(*uuid) != yk_small_letter(*text))
			return false;
		if (!*uuid)
			return true;
	}
}

// Does YOKE_DEVICE match this device?
static bool matches(const char *request, const struct yk_device *d)
{
	if (!strncmp(request, "pci:", 4))
		return is_pci(d->info.pci, request + 4);
	if (!strncmp(request, "uuid:", 5))
		return is_uuid(d->info.uuid, request + 5);
	if (strchr(request, '*'))
		return !fnmatch(request, d->info.name, FNM_CASEFOLD) || !fnmatch(request, d->id, 0);
	return !strcmp(request, d->id);
}

// Extracts "opencl" from "opencl:0"; false: no backend is named.
static bool backend_of(const char *request, char *to, size_t cap)
{
	size_t n = strcspn(request, ":");
	if (!request[n] || n >= cap || strchr(request, '*') || !strncmp(request, "pci:", 4) ||
	    !strncmp(request, "uuid:", 5))
		return false;
	snprintf(to, cap, "%.*s", (int)n, request);
	return true;
}

// The best device of the list that YOKE_DEVICE matches.
static struct yk_device *pick(const struct ranked *r, size_t n, const char *request,
			      const char *list)
{
	char known[700] = "";
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		const struct yoke_device_info *info = &r[i].device->info;
		if (matches(request, r[i].device))
			return r[i].device;
		if (used < sizeof known)
			used += (size_t)snprintf(known + used, sizeof known - used, "%s%s (%s%s%s)",
						 used ? ", " : "", r[i].device->id, info->name,
						 *info->pci ? ", pci:" : "", info->pci);
	}
	yk_fail(YOKE_ENODEV,
		"device '%s' cannot be used: it is not among those of backend '%s': %s", request,
		*list ? list : "*", known);
	return NULL;
}

// Logs once that a GPU was skipped for lack of permission, when no device was requested by name.
static void warn_denied(const struct yk_device *d)
{
	static bool warned;
	struct yk_device_node node;

	if (warned || !is_cpu(d) || !yk_node_denied("/dev", &node))
		return;
	warned = true;
	yk_warn("device", "no GPU is used: this user may not open %s%s%s; `yoke doctor` has "
		"details",
		node.path, *node.group ? ", but by group " : "", node.group);
}

struct yk_device *yk_device_choose(const char *list)
{
	struct yk_device *d = NULL;
	bool given = list != NULL;
	char backend[sizeof d->id];
	size_t n = 0;

	if (yk_forked()) {
		yk_fail(YOKE_EFORK, "devices cannot be used in a forked child");
		return NULL;
	}
	const char *request = yk_param_str(&device_setting);
	bool named = backend_of(request, backend, sizeof backend);
	if (!given)
		list = yk_param_str(&backend_setting);
	if (!given && yk_list_is_open(list) && named)
		list = backend; // other backends need not be loaded
	else if (given && *request && (named ? !yk_list_has(list, backend) : !strcmp(list, "cpu")))
		request = ""; // a list given by the program overrides YOKE_DEVICE
	bool allows = !yk_list_is_open(list) && *list != '^';
	if (strchr(list + (*list == '^'), '^')) {
		yk_fail(YOKE_EINVAL,
			"backend '%s': '^' stands once, at the beginning, and excludes "
			"all that follow",
			list);
		return NULL;
	}

	pthread_mutex_lock(&lock);
	struct ranked *r = rank(list, &n);
	if (!r)
		yk_fail(YOKE_ENOMEM, "no host memory for a list of devices");
	else if (!n && allows)
		fail_all(list);
	// the built-in backend always has a device, unless it fails
	else if (!n && yk_list_has(list, "cpu"))
		yk_fail(YOKE_ENODEV, "no device can be used; cpu: %s", yk_backend_trouble("cpu"));
	else if (!n)
		yk_fail(YOKE_ENODEV, "backend '%s' excludes all devices", list);
	else
		d = *request ? pick(r, n, request, list) : r[0].device;
	if (d && allows)
		warn_before(list, position(list, d->backend->table.name));
	else if (d && !*request)
		warn_denied(d);
	free(r);
	pthread_mutex_unlock(&lock);
	if (d) // settings of the loaded backends are declared by now
		yk_param_judge();
	return d;
}

struct yk_device *yk_device_named(const char *name)
{
	struct yk_device *d = NULL;
	char backend[sizeof d->id];
	size_t n = 0;

	if (yk_forked()) {
		yk_fail(YOKE_EFORK, "devices cannot be used in a forked child");
		return NULL;
	}
	const bool best = !strpbrk(name, ":*,^") && !yk_list_is_open(name); // of a backend
	const char *list = backend_of(name, backend, sizeof backend) ? backend : best ? name : "*";
	pthread_mutex_lock(&lock);
	struct ranked *r = rank(list, &n);
	const bool any = r && n;
	if (!r)
		yk_fail(YOKE_ENOMEM, "no host memory for a list of devices");
	else if (any)
		d = best ? r[0].device : pick(r, n, name, list);
	free(r);
	pthread_mutex_unlock(&lock);
	if (r && !any)
		fail_all(list);
	return d;
}

int yk_device_leave(struct yk_device *d)
{
	const char *list = yk_param_str(&backend_setting);

	if (*yk_param_str(&device_setting) ||
	    (!yk_list_is_open(list) && *list != '^' && !strchr(list, ',')))
		return yk_fail(YOKE_EDEVICE,
			       "%s was requested explicitly, so no other device is used", d->id);
	if (is_cpu(d))
		return yk_fail(YOKE_EDEVICE, "%s is the last resort", d->id);
	yk_device_lose(d);
	return 0;
}

void yk_device_lose(struct yk_device *d)
{
	size_t n;
	pthread_mutex_lock(&lock);
	struct yk_device *const *found = yk_devices_found("cpu", &n); // and those found before
	for (size_t i = 0; i < n; i++)
		found[i]->left |= found[i] == d || same(&found[i]->info, &d->info);
	pthread_mutex_unlock(&lock);
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
		yk_fail(YOKE_ENODEV, "the CPU backend cannot be used: %s",
			yk_backend_trouble("cpu"));
	free(r);
	pthread_mutex_unlock(&lock);
	return d;
}

struct yk_device *yk_device_known(bool (*is)(const struct yk_device *, const void *),
				  const void *arg)
{
	struct yk_device *d = NULL;
	size_t n;

	pthread_mutex_lock(&lock);
	struct yk_device *const *found = yk_devices_found("cpu", &n); // and those found before
	for (size_t i = 0; i < n && !d; i++)
		if (is(found[i], arg))
			d = found[i];
	pthread_mutex_unlock(&lock);
	return d;
}
