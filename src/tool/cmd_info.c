// SPDX-License-Identifier: Apache-2.0
// yoke info: the devices of every backend, what became of each plugin file, and the
// settings.
// Both forms print one JSON object that is gathered first; the text is made of it.
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/param.h"
#include "device/device.h"
#include "tool/tool.h"

static const char *const type_names[] = {
	[YK_BOOL] = "bool",
	[YK_INT] = "int",
	[YK_BYTES] = "bytes",
	[YK_STRING] = "string",
};
static const char *const origins[] = {
	[YK_DEFAULT] = "default",
	[YK_ENVIRONMENT] = "environment",
	[YK_CONFIG] = "config",
	[YK_ARGUMENT] = "argument",
};
static const char *const kinds[] = {
	[YOKE_DEVICE_OTHER] = "other",
	[YOKE_DEVICE_GPU] = "gpu",
	[YOKE_DEVICE_IGPU] = "igpu",
	[YOKE_DEVICE_CPU] = "cpu",
	[YOKE_DEVICE_ACCELERATOR] = "accelerator",
};
#define KINDS (sizeof kinds / sizeof *kinds)

// ---- gathering ----

// Appends; a NULL (no memory, or text that is not UTF-8) is kept as null and seen by the
// checks.
static void append(json_t *list, json_t *o)
{
	json_array_append_new(list, o ? o : json_null());
}

static json_t *gather_devices(void)
{
	static const struct {
		unsigned bit;
		const char *name;
	} flags[] = {
		{ YOKE_DEVICE_F64, "f64" },
		{ YOKE_DEVICE_F16, "f16" },
		{ YOKE_DEVICE_UNIFIED, "unified" },
		{ YOKE_DEVICE_FLUSHES, "flushes" },
	};
	json_t *list = json_array();

	// of the backends that YOKE_BACKEND allows: the others' files are not opened
	for (struct yk_device *d = yk_devices(NULL); d; d = d->next) {
		const struct yoke_device_info *i = &d->info;
		json_t *features = json_array();
		for (size_t k = 0; k < sizeof flags / sizeof *flags; k++)
			if (i->flags & flags[k].bit)
				json_array_append_new(features,
						      json_string(flags[k].name));
		append(list,
		       json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:s, s:s, s:s, s:o}",
				 "id", d->id, "kind",
				 i->kind < KINDS ? kinds[i->kind] : "other", "name",
				 i->name, "vendor", i->vendor, "driver", i->driver,
				 "units", (json_int_t)i->units, "memory",
				 (json_int_t)i->memory, "max_segment",
				 (json_int_t)i->max_segment, "uuid", i->uuid, "pci",
				 i->pci, "same_as", d->twin ? d->twin->id : "", "features",
				 features));
	}
	return list;
}

static json_t *gather_backends(void)
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

static json_t *gather_plugins(void)
{
	json_t *list = json_array();

	for (const struct yk_plugin_outcome *o = yk_plugin_outcomes(); o; o = o->next)
		append(list,
		       json_pack("{s:s, s:s, s:s}", "path", o->path, "outcome", o->text,
				 "code", o->code ? yoke_error_name(o->code) : ""));
	return list;
}

static void gather_setting(struct yk_param *p, void *list)
{
	char variable[96];

	yk_param_env(p->name, variable, sizeof variable);
	append(list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "name", p->name,
			       "variable", variable, "type", type_names[p->type],
			       "default", p->def, "value", yk_param_str(p), "origin",
			       origins[p->origin], "help", p->help));
}

// The device that work would go to, or why there is none.
static json_t *gather_choice(void)
{
	struct yk_device *d = yk_device_choose(NULL);
	json_t *o = json_pack("{s:s, s:s}", "device", d ? d->id : "", "why",
			      d ? "" : yoke_error());

	yoke_error_clear(); // an unusable YOKE_BACKEND is news here, no failure of info
	return o;
}

// ---- printing ----

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s && *s ? s : "-";
}

// Rows of objects in columns as wide as their widest cell; the last is not padded.
static void table(const json_t *list, int columns, const char *const *keys,
		  const char *const *titles)
{
	size_t width[16] = { 0 };
	const json_t *o;
	size_t i;

	for (int k = 0; k < columns; k++) {
		width[k] = strlen(titles[k]);
		json_array_foreach (list, i, o)
			if (strlen(text(o, keys[k])) > width[k])
				width[k] = strlen(text(o, keys[k]));
	}
	for (int k = 0; k < columns; k++)
		printf("%-*s%s", k < columns - 1 ? (int)width[k] : 0, titles[k],
		       k < columns - 1 ? "  " : "\n");
	json_array_foreach (list, i, o)
		for (int k = 0; k < columns; k++)
			printf("%-*s%s", k < columns - 1 ? (int)width[k] : 0,
			       text(o, keys[k]), k < columns - 1 ? "  " : "\n");
}

static void print_env(const json_t *o)
{
	static const char *const keys[] = { "variable", "type",   "default",
					    "value",    "origin", "help" };
	static const char *const titles[] = { "setting", "type",   "default",
					      "value",   "origin", "help" };

	table(json_object_get(o, "settings"), 6, keys, titles);
}

static void print_info(const json_t *o)
{
	static const char *const keys[] = { "path", "outcome" };
	const json_t *d, *b, *list = json_object_get(o, "devices");
	const json_t *choice = json_object_get(o, "choice");
	size_t i;

	printf("yoke %s, plugin ABI %s\n", text(o, "version"), text(o, "abi"));
	printf("\ndevices\n");
	json_array_foreach (list, i, d) {
		double memory =
			json_number_value(json_object_get(d, "memory")) / (1 << 20);
		const char *twin = json_string_value(json_object_get(d, "same_as"));
		printf("  %-10s  %-11s %4lld units %9.0f MiB  %s; %s%s%s\n", text(d, "id"),
		       text(d, "kind"),
		       (long long)json_integer_value(json_object_get(d, "units")), memory,
		       text(d, "name"), text(d, "driver"),
		       twin && *twin ? "; the same device as " : "", twin ? twin : "");
	}
	list = json_object_get(o, "backends");
	json_array_foreach (list, i, b)
		if (*text(b, "why") != '-')
			printf("  %-10s  %s\n", text(b, "name"), text(b, "why"));
	if (*text(choice, "why") != '-')
		printf("  none is chosen: %s\n", text(choice, "why"));
	else
		printf("  chosen: %s\n", text(choice, "device"));
	printf("\nplugins\n");
	list = json_object_get(o, "plugins");
	if (json_array_size(list))
		table(list, 2, keys, keys);
	else
		printf("  no file found\n");
}

static json_t *gather(bool env)
{
	char abi[32];
	json_t *o, *settings;

	snprintf(abi, sizeof abi, "%d.%d", YOKE_ABI_MAJOR, YOKE_ABI_MINOR);
	o = json_pack("{s:s, s:s}", "version", yoke_version(), "abi", abi);
	if (env) {
		settings = json_array();
		yk_devices(NULL); // plugins declare settings of their own
		yk_param_each(gather_setting, settings);
		json_object_set_new(o, "settings", settings);
		return o;
	}
	json_object_set_new(o, "devices", gather_devices());
	json_object_set_new(o, "choice", gather_choice());
	json_object_set_new(o, "backends", gather_backends());
	json_object_set_new(o, "plugins", gather_plugins());
	return o;
}

int yk_cmd_info(int argc, char **argv)
{
	bool env = false, json = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--env"))
			env = true;
		else if (!strcmp(argv[i], "--json"))
			json = true;
		else
			return yk_usage(
				"info",
				"unknown argument '%s'; there are --env and --json",
				argv[i]);
	}
	json_t *o = gather(env);
	if (!o) {
		yk_fail(YOKE_ENOMEM, "out of memory");
		return yk_failed("info");
	}
	if (json) {
		char *s = json_dumps(o, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
		puts(s ? s : "{}");
		free(s);
	} else if (env) {
		print_env(o);
	} else {
		print_info(o);
	}
	json_decref(o);
	return yk_finish("info", YK_DONE);
}
