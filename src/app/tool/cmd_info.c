// SPDX-License-Identifier: Apache-2.0
// yoke info: devices of every backend, the result of loading each plugin file, the settings, and
// the dtypes that the chosen device computes. The facts are gathered in one JSON object first; both
// output formats are written from it. The path of a model is left to info_model.c.
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "base/param.h"
#include "device/device.h"
#include "conform/case.h"
#include "device/facts.h"
#include "observe/machine.h"
#include "observe/telemetry.h"
#include "tool/launcher.h"
#include "tool/table.h"
#include "tool/tool.h"
#include "config/capable.h"

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
// ---- gathering ----

// Appends to the list. NULL (out of memory, or invalid UTF-8) is stored as null and found by later
// checks.
static void append(json_t *list, json_t *o)
{
	json_array_append_new(list, o ? o : json_null());
}

struct settings {
	json_t *list;
	bool debug; // include settings for debugging
};

static void gather_setting(struct yk_param *p, void *to)
{
	const struct settings *s = to;
	char variable[96];

	if (p->debug && !s->debug)
		return;
	yk_param_env(p->name, variable, sizeof variable);
	append(s->list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b}", "name", p->name,
			       "variable", variable, "type", type_names[p->type],
			       "default", p->def, "value", yk_param_str(p), "origin",
			       origins[p->origin], "help", p->help, "debug", p->debug));
}

#define DTYPE_NAME(name, number, bytes) #name,
static const char *const dtype_names[] = { YOKE_DTYPES(DTYPE_NAME) };
enum { DTYPES = sizeof dtype_names / sizeof *dtype_names };

// How the chosen device computes each op in each dtype. NULL: no device, or it would have to
// compile kernels, which was not requested.
static json_t *gather_dtypes(bool asked)
{
	struct yk_device *d = yk_device_choose(NULL);
	json_t *list;

	yoke_error_clear(); // reported with the choice of the device
	if (!d || (!asked && d != yk_device_cpu()))
		return NULL;
	list = json_array();
	for (const struct yk_case_row *row = yk_case_rows; row->name; row++) {
		if (row->code == YOKE_OP_SOURCE) // belongs to the application
			continue;
		json_t *o = json_pack("{s:s}", "op", row->name);
		for (int k = 0; o && k < DTYPES; k++)
			json_object_set_new(
				o, dtype_names[k],
				json_string(yk_capable_name(yk_capable(d, row->code, k + 1))));
		append(list, o);
	}
	return list;
}

// Telemetry of the host and of the devices that provide any.
static json_t *gather_telemetry(void)
{
	struct yk_host_state state;
	struct yoke_host_sample host;
	struct yoke_sample s;
	json_t *devices = json_object();

	yk_host_begin(&state);
	yk_host_sample(&state, &host);
	for (struct yk_device *d = yk_devices(NULL); d; d = d->next)
		if (!d->alias && yk_telemetry_sample(d, &s))
			json_object_set_new(devices, d->id, yk_telemetry_json(&s));
	return json_pack("{s:o, s:o}", "host", yk_host_json(&host), "devices", devices);
}

// ---- printing ----

static void print_dtypes(const json_t *list)
{
	const char *keys[DTYPES + 1] = { "op" };

	for (int k = 0; k < DTYPES; k++)
		keys[k + 1] = dtype_names[k];
	if (!list) {
		printf("\n`yoke info --dtypes` tests which ops the selected device supports in "
		       "each dtype\n");
		return;
	}
	printf("\nops that the selected device supports, tested now\n");
	yk_table(list, "  ", DTYPES + 1, keys, keys);
}

static void print_env(const json_t *o)
{
	static const char *const keys[] = { "variable", "type",   "default",
					    "value",    "origin", "help" };
	static const char *const titles[] = { "setting", "type",   "default",
					      "value",   "origin", "help" };

	yk_table(json_object_get(o, "settings"), "", 6, keys, titles);
}

static double number(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

// Prints the known hardware properties in one line below the device.
static void print_hardware(const json_t *h)
{
	const char *matrix = json_string_value(json_object_get(h, "matrix"));
	const char *generation = json_string_value(json_object_get(h, "generation"));
	const double clock = number(h, "clock_hz") / 1e9,
		     memory_clock = number(h, "memory_clock_hz") / 1e9;
	const double cache = number(h, "cache_bytes") / (1 << 20),
		     local = number(h, "local_bytes") / 1024;

	if (!generation || !*generation)
		return;
	printf("              %s", generation);
	if (clock > 0)
		printf(", %.2f GHz", clock);
	if (number(h, "warp") > 0)
		printf(", warps of %.0f", number(h, "warp"));
	if (local > 0)
		printf(", %.0f KiB of local memory", local);
	if (cache > 0)
		printf(", %.1f MiB of cache", cache);
	if (number(h, "memory_bits") > 0)
		printf(", %.0f-bit memory", number(h, "memory_bits"));
	if (memory_clock > 0)
		printf(" at %.2f GHz", memory_clock);
	printf("; matrix units: %s%s\n", matrix && *matrix ? "" : "none", matrix ? matrix : "");
}

// Prints e.g. "products of f16, bf16 are fastest with m a multiple of 8, ...".
static void print_multiples(const json_t *device)
{
	json_t *all = json_object_get(device, "multiples"), *m, *o;
	const char *dtype, *other, *const name[] = { "m", "n", "k" };

	json_object_foreach (all, dtype, m) {
		int dtypes = 0;
		// dtypes with equal multiples share a line, printed for the first of them
		json_object_foreach (all, other, o) {
			if (!json_equal(m, o))
				continue;
			if (!dtypes && strcmp(dtype, other))
				break;
			printf("%s%s", dtypes++ ? ", " : "              matrix products in ",
			       other);
		}
		for (size_t k = 0, n = 0; k < 3 && dtypes; k++) {
			json_int_t x = json_integer_value(json_array_get(m, k));
			if (x > 1)
				printf("%s %s a multiple of %lld", n++ ? "," : " are fastest with",
				       name[k], (long long)x);
		}
		if (dtypes)
			printf("\n");
	}
}

// Prints ", WORD 12.3 UNIT" if the member is known.
static void print_optional(const json_t *o, const char *key, const char *word, double unit,
			   const char *name)
{
	const json_t *x = json_object_get(o, key);

	if (json_is_number(x))
		printf(", %s %.*f %s", word, unit * json_number_value(x) < 10 ? 1 : 0,
		       unit * json_number_value(x), name);
}

static void print_telemetry(const json_t *t)
{
	const json_t *h = json_object_get(t, "host"), *d;
	const char *id;

	printf("\ntelemetry\n  host        this process ");
	if (json_is_number(json_object_get(h, "rss")))
		printf("%.0f MiB", number(h, "rss") / (1 << 20));
	else
		printf("n/a");
	print_optional(h, "memory_available", "available memory", 1.0 / (1 << 20), "MiB");
	print_optional(h, "memory_limit", "cgroup limit", 1.0 / (1 << 20), "MiB");
	print_optional(h, "cpu_limit", "limit", 1, "processors");
	print_optional(h, "temp_c", "temperature", 1, "C");
	print_optional(h, "clock_hz", "clock", 1e-9, "GHz");
	if (*yk_cell(h, "energy_why") != '-')
		printf("; energy n/a: %s", yk_cell(h, "energy_why"));
	printf("\n");
	json_object_foreach (json_object_get(t, "devices"), id, d) {
		printf("  %-10s  reported", id);
		print_optional(d, "util", "busy", 100, "%");
		print_optional(d, "mem_used", "memory", 1.0 / (1 << 20), "MiB");
		print_optional(d, "mem_total", "of", 1.0 / (1 << 20), "MiB");
		print_optional(d, "temp_c", "temperature", 1, "C");
		print_optional(d, "power_w", "power", 1, "W");
		print_optional(d, "power_limit_w", "limit", 1, "W");
		print_optional(d, "clock_hz", "clock", 1e-9, "GHz");
		print_optional(d, "fan", "fan", 100, "%");
		printf("\n");
	}
}

// Prints the device, its names in other backends, and its hardware.
static void print_device(const json_t *d, const json_t *all)
{
	const json_t *alias;
	size_t k;

	printf("  %-10s  %-11s %4lld units %9.0f MiB  %s; %s", yk_cell(d, "id"), yk_cell(d, "kind"),
	       (long long)json_integer_value(json_object_get(d, "units")),
	       number(d, "memory") / (1 << 20), yk_cell(d, "name"), yk_cell(d, "driver"));
	json_array_foreach (all, k, alias)
		if (!strcmp(yk_cell(alias, "same_as"), yk_cell(d, "id")))
			printf("; also %s", yk_cell(alias, "id"));
	printf("\n");
	print_hardware(json_object_get(d, "hardware"));
	print_multiples(d);
}

static void print_processors(const json_t *list)
{
	const json_t *line;
	size_t i;

	if (json_array_size(list))
		printf("\nprocessors\n");
	json_array_foreach (list, i, line)
		printf("  %-10s  %s\n", yk_cell(line, "backend"), yk_cell(line, "note"));
}

static void print_info(const json_t *o)
{
	static const char *const keys[] = { "path", "outcome" };
	const json_t *d, *b, *list = json_object_get(o, "devices");
	const json_t *choice = json_object_get(o, "choice");
	size_t i;

	printf("yoke %s, plugin ABI %s\n", yk_cell(o, "version"), yk_cell(o, "abi"));
	printf("\ndevices\n");
	json_array_foreach (list, i, d) {
		if (*yk_cell(d, "same_as") != '-')
			continue; // already printed with its first name
		print_device(d, list);
	}
	list = json_object_get(o, "refused");
	json_array_foreach (list, i, d) {
		print_device(d, list);
		printf("              not used: %s\n", yk_cell(d, "refused"));
	}
	list = json_object_get(o, "backends");
	json_array_foreach (list, i, b)
		if (*yk_cell(b, "why") != '-')
			printf("  %-10s  %s\n", yk_cell(b, "name"), yk_cell(b, "why"));
	if (*yk_cell(choice, "why") != '-')
		printf("  none is chosen: %s\n", yk_cell(choice, "why"));
	else
		printf("  chosen: %s\n", yk_cell(choice, "device"));
	print_processors(json_object_get(o, "processors"));
	printf("\nplugins\n");
	list = json_object_get(o, "plugins");
	if (json_array_size(list))
		yk_table(list, "", 2, keys, keys);
	else
		printf("  no file found\n");
	printf("\nranks\n");
	yk_launcher_print(json_object_get(o, "ranks"));
	print_telemetry(json_object_get(o, "telemetry"));
	print_dtypes(json_object_get(o, "dtypes"));
}

static json_t *gather(bool env, bool all, bool dtypes, bool json)
{
	char abi[32];
	json_t *o;

	snprintf(abi, sizeof abi, "%d.%d", YOKE_ABI_MAJOR, YOKE_ABI_MINOR);
	o = json_pack("{s:s, s:s}", "version", yoke_version(), "abi", abi);
	if (env) {
		struct settings settings = { json_array(), all };
		yk_devices(NULL); // plugins declare additional settings
		yk_param_judge();
		yk_param_each(gather_setting, &settings);
		json_object_set_new(o, "settings", settings.list);
		return o;
	}
	json_object_set_new(o, "devices", yk_facts_devices());
	json_object_set_new(o, "refused", yk_facts_refused());
	json_object_set_new(o, "choice", yk_facts_choice());
	json_object_set_new(o, "backends", yk_facts_backends());
	json_object_set_new(o, "processors", yk_facts_notes("processors"));
	json_object_set_new(o, "plugins", yk_facts_plugins(true, true));
	json_object_set_new(o, "ranks", yk_launcher_facts());
	json_object_set_new(o, "telemetry", gather_telemetry());
	json_t *list = dtypes || !json ? gather_dtypes(dtypes) : NULL;
	if (list)
		json_object_set_new(o, "dtypes", list);
	return o;
}

// Is the argument a path, or a mistyped word?
static bool names_file(const char *word)
{
	return *word && *word != '-' && (strpbrk(word, "./") || access(word, F_OK) == 0);
}

int yk_cmd_info(int argc, char **argv)
{
	bool env = false, all = false, json = false, dtypes = false;
	const char *model = NULL;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--env"))
			env = true;
		else if (!strcmp(argv[i], "all") && !strcmp(argv[i - 1], "--env"))
			all = true;
		else if (!strcmp(argv[i], "--json"))
			json = true;
		else if (!strcmp(argv[i], "--dtypes"))
			dtypes = true;
		else if (!model && names_file(argv[i]))
			model = argv[i];
		else
			return yk_usage("info",
					"unknown argument '%s'; the arguments are --env [all], "
					"--dtypes, --json and the path of a model",
					argv[i]);
	}
	if (model && (env || dtypes))
		return yk_usage("info", "--env and --dtypes do not apply to a model, '%s'", model);
	if (model)
		return yk_info_model(model, json);
	json_t *o = gather(env, all, dtypes, json);
	if (!o) {
		yk_fail(YOKE_ENOMEM, "out of memory");
		return yk_failed("info");
	}
	if (json)
		yk_print_json(o);
	else if (env)
		print_env(o);
	else
		print_info(o);
	json_decref(o);
	return YK_DONE;
}
