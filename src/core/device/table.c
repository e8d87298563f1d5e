// SPDX-License-Identifier: Apache-2.0
// Backends of this process, made of the tables that plugins give.  yoke-probe links this file
// without the loader (plugin.c), which brings the CPU backend and its kernels.
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/plugin.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // protects the following
static struct yk_backend *backends, **last_backend = &backends;
static bool forked; // written only in a child, which has one thread

bool yk_backend_name_good(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-");
	return n && n <= YK_BACKEND_NAME_MAX && !name[n];
}

bool yk_forked(void)
{
	return forked;
}

static void in_child(void)
{
	forked = true;
	for (struct yk_backend *b = backends; b; b = b->next)
		yk_stubs_forked(&b->table);
}

// With the lock held.
static struct yk_backend *find(const char *name)
{
	struct yk_backend *b = backends;
	while (b && strcmp(b->table.name, name))
		b = b->next;
	return b;
}

struct yk_backend *yk_backend_find(const char *name)
{
	pthread_mutex_lock(&lock);
	struct yk_backend *b = find(name);
	pthread_mutex_unlock(&lock);
	return b;
}

struct yk_backend *yk_backend_first(void)
{
	pthread_mutex_lock(&lock);
	struct yk_backend *b = backends;
	pthread_mutex_unlock(&lock);
	return b;
}

int yk_refuse_abi(uint32_t abi, char *why, size_t cap)
{
	snprintf(why, cap, "made for plugin ABI %u.%u, this yoke has %d.%d", abi >> 16,
		 abi & 0xffff, YOKE_ABI_MAJOR, YOKE_ABI_MINOR);
	return YOKE_EABI;
}

// With the lock held.
static int enter(const struct yoke_backend *t, const char *path, char *why, size_t cap,
		 struct yk_backend **to)
{
	if (!t) {
		snprintf(why, cap, "gave no table");
		return YOKE_EPLUGIN;
	}
	if (t->abi >> 16 != YOKE_ABI_MAJOR)
		return yk_refuse_abi(t->abi, why, cap);
	if (t->size < YOKE_BACKEND_MANDATORY) {
		snprintf(why, cap, "its table has %u bytes, %zu are mandatory in ABI %d.%d",
			 t->size, YOKE_BACKEND_MANDATORY, YOKE_ABI_MAJOR, YOKE_ABI_MINOR);
		return YOKE_EPLUGIN;
	}
	if (!t->name || !yk_backend_name_good(t->name)) {
		snprintf(why, cap, "its backend has no good name: 1 to %d of a-z, 0-9, _ and -",
			 YK_BACKEND_NAME_MAX);
		return YOKE_EPLUGIN;
	}
	struct yk_backend *other = find(t->name);
	if (other) {
		snprintf(why, cap, "there is a backend '%s' already%s%s", t->name,
			 *other->path ? ", from " : ", linked in", other->path);
		return YOKE_EPLUGIN;
	}

	static bool watched;
	if (!watched && pthread_atfork(NULL, NULL, in_child)) {
		snprintf(why, cap, "out of memory");
		return YOKE_ENOMEM;
	}
	watched = true;
	struct yk_backend *b = calloc(1, sizeof *b);
	char *kept = strdup(path);
	if (!b || !kept) {
		free(b);
		free(kept);
		snprintf(why, cap, "out of memory");
		return YOKE_ENOMEM;
	}
	size_t n = t->size < sizeof b->table ? t->size : sizeof b->table;
	memcpy(&b->table, t, n - n % sizeof(void *)); // only whole pointers
	b->table.size = sizeof b->table;
	if (!b->table.version)
		b->table.version = "";
	b->graphs = yk_stubs_fill(&b->table);
	b->path = kept;
	*last_backend = b;
	last_backend = &b->next;
	*to = b;
	return 0;
}

int yk_backend_enter(const struct yoke_backend *t, const char *path, char *why, size_t cap,
		     struct yk_backend **to)
{
	pthread_mutex_lock(&lock);
	int code = enter(t, path, why, cap, to);
	pthread_mutex_unlock(&lock);
	return code;
}

struct yk_backend *yk_backend_add(const struct yoke_backend *t, const char *path)
{
	char why[512];
	struct yk_backend *b = NULL;

	int code = yk_backend_enter(t, path, why, sizeof why, &b);
	if (code < 0)
		yk_fail(code, "%s%s%s", path, *path ? ": " : "", why);
	return b;
}
