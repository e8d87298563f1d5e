// SPDX-License-Identifier: Apache-2.0
// Device discovery: queries each backend once and validates every value it reports.
#include "config.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/fixed.h"
#include "base/log.h"
#include "base/number.h"
#include "base/scan.h"
#include "device/device.h"
#include "device/guard.h"
#include "device/pool.h"
#include "device/quirks.h"
#include "device/trust.h"

#define MAX_ALIGN ((uint32_t)2 << 20) // size of the pool's smallest segment
enum { MAX_MULTIPLE = 4096 };

static struct yk_device **devices; // in order of discovery; both under the lock of choose.c
static size_t ndevices, cap_devices;

// ---- discovery ----

// Reduces a string from outside to one line of valid UTF-8.
static void clean(char *text, size_t cap)
{
	unsigned char *c = (unsigned char *)text, *end = c + strnlen(text, cap - 1);

	*end = '\0';
	while (c < end) {
		int n = *c < 0x80 ? !iscntrl(*c) : yk_utf8(c, end);
		if (!n)
			*c = '?';
		c += n ? n : 1;
	}
}

// Sanitizes a backend's description of a device; false: it is unusable, and why.
static bool sane(struct yoke_device_info *i, char *why, size_t cap)
{
	clean(i->name, sizeof i->name);
	clean(i->vendor, sizeof i->vendor);
	clean(i->driver, sizeof i->driver);
	clean(i->uuid, sizeof i->uuid);
	clean(i->pci, sizeof i->pci);
	clean(i->platform, sizeof i->platform);
	clean(i->generation, sizeof i->generation);
	clean(i->matrix, sizeof i->matrix);
	if (!strncmp(i->uuid, "pci:", 4) && !*i->pci) { // the format of ABI 0.2
		snprintf(i->pci, sizeof i->pci, "%.23s", i->uuid + 4);
		*i->uuid = '\0';
	}
	if (!i->align || (i->align & (i->align - 1)) || i->align > MAX_ALIGN) {
		snprintf(why, cap, "alignment %u is no power of two up to %u", i->align, MAX_ALIGN);
		return false;
	}
	if (!i->memory || !i->max_segment) {
		snprintf(why, cap, "%llu bytes of memory, %llu in one piece",
			 (unsigned long long)i->memory, (unsigned long long)i->max_segment);
		return false;
	}
	for (int k = 0; k < 3 * YOKE_MAX_DTYPES; k++)
		if (i->multiple[k / 3][k % 3] > MAX_MULTIPLE) {
			snprintf(why, cap, "prefers multiples of %d in products, more than %d",
				 i->multiple[k / 3][k % 3], MAX_MULTIPLE);
			return false;
		}
	if (i->max_segment > i->memory)
		i->max_segment = i->memory;
	if (!i->units)
		i->units = 1;
	if (i->kind > YOKE_DEVICE_ACCELERATOR) // a kind of a later minor version
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
	yk_guard_begin(b->path);
	int code = d->ops->device_info(index, &d->info);
	yk_guard_end();
	if (code < 0) {
		yk_backend_detail(had, code, why, cap);
		goto fail;
	}
	if (!sane(&d->info, why, cap))
		goto fail;
	const struct yk_quirk *quirk = yk_quirks_of(d);
	if (quirk) {
		snprintf(why, cap, "%s (%s:%d, after %s; YOKE_QUIRKS=0 uses it all the same)",
			 quirk->reason, quirk->file, quirk->line, quirk->source);
		goto fail;
	}
	yk_trust_load(d);
	d->left = yk_trust_refusal(d); // listed, but not used
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
	yk_trust_free(d);
	free(d);
	return NULL;
}

__attribute__((format(printf, 2, 3)))
static void blame(struct yk_backend *b, const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (yk_vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	if (!b->why)
		b->why = text ? text : "out of memory";
	else
		free(text);
}

// Settings that were read with the backend's devices, beside those that its probe read.
static void fix_settings(const struct yk_backend *b, uint32_t n)
{
	static const char *const name[] = { "memory", "pool", "memory.history" };
	if (!strcmp(b->table.name, "cpu"))
		yk_param_fix("threads", YK_WHEN_LISTED);
	for (size_t i = 0; i < sizeof name / sizeof *name && n; i++)
		yk_param_fix(name[i], YK_WHEN_LISTED);
	if (n && *b->path)
		yk_param_fix("selftest", YK_WHEN_LISTED);
}

// Discovers a backend's devices, once.
static void probe(struct yk_backend *b)
{
	char why[512];
	uint32_t n = 0;

	if (b->probed)
		return;
	b->probed = true;
	bool had = yoke_error_code() != 0;
	yk_guard_begin(b->path);
	yk_host_probing(true);
	int code = b->table.probe(&n);
	yk_host_probing(false);
	yk_guard_end();
	if (code < 0) {
		yk_backend_detail(had, code, why, sizeof why);
		blame(b, "%s", why);
		if (*b->path) // without the built-in backend there is no device, which is an error
			yk_warn("device", "%s: %s", b->table.name, why);
		return;
	}
	if (n > YK_MAX_DEVICES) {
		blame(b, "claims %u devices", n);
		yk_warn("device", "%s: reports %u devices, which is too many; none is "
			"used", b->table.name, n);
		return;
	}
	fix_settings(b, n);
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
		if (d->left) {
			snprintf(
				why, sizeof why,
				"%s; `yoke check device %s` shows more, YOKE_SELFTEST=force tests again",
				yk_trust_refusal(d), d->id);
			blame(b, "device %u refused: %s", i, why);
			yk_warn("device", "%s refused: %s", d->id, why);
			continue;
		}
		b->ndevices++;
	}
	if (n)
		return;
	yk_backend_detail(had, YOKE_ENODEV, why, sizeof why);
	blame(b, "no devices%s%s", strcmp(why, yk_error_text(YOKE_ENODEV)) ? ": " : "",
	      strcmp(why, yk_error_text(YOKE_ENODEV)) ? why : "");
}

struct yk_device *const *yk_devices_found(const char *list, size_t *n)
{
	for (struct yk_backend *b = yk_backends(list); b; b = b->next)
		if (yk_list_has(list, b->table.name))
			probe(b);
	*n = ndevices;
	return devices;
}
