// SPDX-License-Identifier: Apache-2.0
// Devices, backends, plugins and the choice among them, as JSON.
#include "config.h"

#include "device/facts.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "device/device.h"
#include "device/quirks.h"
#include "device/trust.h"

static const char *const kinds[] = {
	[YOKE_DEVICE_OTHER] = "other",
	[YOKE_DEVICE_GPU] = "gpu",
	[YOKE_DEVICE_IGPU] = "igpu",
	[YOKE_DEVICE_CPU] = "cpu",
	[YOKE_DEVICE_ACCELERATOR] = "accelerator",
};
#define KINDS (sizeof kinds / sizeof *kinds)

// Appends; NULL (no memory) becomes null, which later checks detect.
static void append(json_t *list, json_t *o)
{
	json_array_append_new(list, o ? o : json_null());
}

// Properties of the hardware, as far as the backend reports them.
static json_t *hardware(const struct yoke_device_info *i)
{
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "generation", i->generation,
			 "matrix", i->matrix, "warp", (json_int_t)i->warp, "local_bytes",
			 (json_int_t)i->local_bytes, "cache_bytes", (json_int_t)i->cache_bytes,
			 "clock_hz", (json_int_t)i->clock_hz, "memory_clock_hz",
			 (json_int_t)i->memory_clock_hz, "memory_bits", (json_int_t)i->memory_bits);
}

// {"f16": [8, 8, 8]}: m, n and k for which matrix products run fastest are multiples of these.
static json_t *multiples(const struct yoke_device_info *i)
{
	json_t *o = json_object();

	for (int d = 1; d < YOKE_MAX_DTYPES; d++) {
		const uint16_t *m = i->multiple[d];
		if ((m[0] > 1 || m[1] > 1 || m[2] > 1) && yoke_dtype_size(d))
			json_object_set_new(o, yoke_dtype_name(d),
					    json_pack("[i, i, i]", m[0], m[1], m[2]));
	}
	return o;
}

static json_t *features(const struct yoke_device_info *i)
{
	static const struct {
		unsigned bit;
		const char *name;
	} flags[] = {
		{ YOKE_DEVICE_F64, "f64" },
		{ YOKE_DEVICE_F16, "f16" },
		{ YOKE_DEVICE_UNIFIED, "unified" },
		{ YOKE_DEVICE_FLUSHES, "flushes" },
		{ YOKE_DEVICE_TF32, "tf32" },
	};
	json_t *list = json_array();

	for (size_t k = 0; k < sizeof flags / sizeof *flags; k++)
		if (i->flags & flags[k].bit)
			json_array_append_new(list, json_string(flags[k].name));
	return list;
}

static json_t *device_json(const struct yk_device *d)
{
	const struct yoke_device_info *i = &d->info;

	return json_pack(
		"{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:s, s:s, s:s, s:o, s:o, s:o}", "id",
		d->id, "kind", i->kind < KINDS ? kinds[i->kind] : "other", "name", i->name,
		"vendor", i->vendor, "platform", i->platform, "driver", i->driver, "units",
		(json_int_t)i->units, "memory", (json_int_t)i->memory, "max_segment",
		(json_int_t)i->max_segment, "uuid", i->uuid, "pci", i->pci, "same_as",
		d->alias ? d->alias->id : "", "features", features(i), "multiples", multiples(i),
		"hardware", hardware(i));
}

json_t *yk_facts_devices(void)
{
	json_t *list = json_array();

	for (struct yk_device *d = yk_devices(NULL); d; d = d->next)
		append(list, device_json(d));
	return list;
}

enum { MAX_REFUSED = 64 };

struct refused {
	struct yk_device *at[MAX_REFUSED];
	size_t n;
};

static bool is_next_refused(const struct yk_device *d, const void *arg)
{
	const struct refused *r = arg;

	for (size_t i = 0; i < r->n; i++)
		if (r->at[i] == d)
			return false;
	return yk_trust_refusal(d);
}

static struct refused find_refused(void)
{
	struct refused r = { .n = 0 };
	struct yk_device *d;

	while (r.n < MAX_REFUSED && (d = yk_device_known(is_next_refused, &r)))
		r.at[r.n++] = d;
	return r;
}

json_t *yk_facts_refused(void)
{
	const struct refused r = find_refused();
	json_t *list = json_array();
	char why[512];

	for (size_t i = 0; i < r.n; i++) {
		json_t *o = device_json(r.at[i]);
		snprintf(why, sizeof why, "%s; `yoke check device %s` shows more",
			 yk_trust_refusal(r.at[i]), r.at[i]->id);
		if (o)
			json_object_set_new(o, "refused", json_string(why));
		append(list, o);
	}
	return list;
}

json_t *yk_facts_backends(void)
{
	json_t *list = json_array();

	for (struct yk_backend *b = yk_backends("cpu"); b; b = b->next)
		append(list,
		       json_pack("{s:s, s:s, s:s, s:I, s:s}", "name", b->table.name,
				 "version", b->table.version ? b->table.version : "",
				 "path", b->path, "devices", (json_int_t)b->ndevices,
				 "why", b->why ? b->why : ""));
	return list;
}

json_t *yk_facts_notes(const char *name)
{
	json_t *list = json_array();
	const char *line;

	for (struct yk_backend *b = yk_backends("cpu"); b; b = b->next) {
		const struct yoke_notes *notes = b->table.ext(name);
		for (uint32_t i = 0;
		     notes && notes->size >= sizeof *notes && (line = notes->note(i)); i++)
			append(list,
			       json_pack("{s:s, s:s}", "backend", b->table.name, "note", line));
	}
	return list;
}

json_t *yk_facts_plugins(bool folders, bool files)
{
	json_t *list = json_array();

	for (const struct yk_plugin_outcome *o = yk_plugin_outcomes(); o; o = o->next)
		if (o->folder ? folders : files)
			append(list, json_pack("{s:s, s:s, s:s}", "path", o->path, "outcome",
					       o->text, "code",
					       o->code ? yoke_error_name(o->code) : ""));
	return list;
}

json_t *yk_facts_quirks(void)
{
	json_t *list = json_array();

	for (const struct yk_quirk_use *u = yk_quirk_uses(); u; u = u->next) {
		char where[4200];
		snprintf(where, sizeof where, "%s:%d", u->quirk->file, u->quirk->line);
		append(list, json_pack("{s:s, s:s, s:s, s:s, s:s}", "device", u->device,
				       "avoid", u->quirk->avoid, "reason", u->quirk->reason,
				       "source", u->quirk->source, "where", where));
	}
	return list;
}

static void append_wrong(json_t *list, const struct yk_device *d)
{
	struct yk_finding wrong[64];
	size_t n = yk_trust_wrong(d, wrong, 64);
	char what[40];

	for (size_t i = 0; i < n && i < 64; i++)
		append(list, json_pack("{s:s, s:s, s:s, s:s, s:s}", "device", d->id, "op",
				       yk_trust_subject(wrong[i].subject, what), "dtype",
				       wrong[i].dtype ? yoke_dtype_name(wrong[i].dtype) : "",
				       "implementation", wrong[i].name, "why", wrong[i].why));
}

json_t *yk_facts_quarantine(const struct yk_device *device)
{
	json_t *list = json_array();

	if (device)
		append_wrong(list, device);
	for (struct yk_device *d = device ? NULL : yk_devices(NULL); d; d = d->next)
		append_wrong(list, d);
	const struct refused r = find_refused();
	for (size_t i = 0; i < r.n && !device; i++)
		append_wrong(list, r.at[i]);
	return list;
}

json_t *yk_facts_choice(void)
{
	struct yk_device *d = yk_device_choose(NULL);
	json_t *o = json_pack("{s:s, s:s}", "device", d ? d->id : "", "why",
			      d ? "" : yoke_error());

	yoke_error_clear(); // for info an unusable YOKE_BACKEND is a result, not an error
	return o;
}
