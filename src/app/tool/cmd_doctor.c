// SPDX-License-Identifier: Apache-2.0
// yoke doctor: prints the findings of src/app/tool/doctor.c, as text or JSON. Fails if something
// that the user requested cannot be used.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "tool/doctor.h"
#include "tool/launcher.h"
#include "tool/table.h"
#include "tool/tool.h"

static void title(const char *text)
{
	printf("\n%s\n", text);
}

// Prints a list of the report under a title, with the given number of keys per entry.
static void section(const json_t *o, const char *name, const char *text, int n,
		    const char *const *keys)
{
	const json_t *list = json_object_get(o, name);

	title(text);
	if (json_array_size(list))
		yk_table(list, "  ", n, keys, NULL);
	else
		printf("  none\n");
}

// The text of a key after a separator; "" if the text is empty.
static const char *with_separator(const json_t *o, const char *key, const char *separator,
				  char to[1024])
{
	const char *text = json_string_value(json_object_get(o, key));

	snprintf(to, 1024, "%s%s", text && *text ? separator : "", text ? text : "");
	return to;
}

static void print_choice(const json_t *o)
{
	const json_t *choice = json_object_get(o, "choice"), *asked = json_object_get(o, "asked");

	printf("  requested  YOKE_BACKEND=%s YOKE_DEVICE=%s\n", yk_cell(asked, "backend"),
	       yk_cell(asked, "device"));
	if (*yk_cell(choice, "device") != '-')
		printf("  chosen     %s\n", yk_cell(choice, "device"));
	else
		printf("  chosen     none: %s\n", yk_cell(choice, "why"));
}

static void print_opencl(const json_t *o)
{
	char n[64];
	const json_t *loader = json_object_get(o, "loader"),
		     *vendors = json_object_get(o, "vendors");
	const json_t *list = json_object_get(o, "drivers"), *d, *p;
	char a[1024], b[1024], c[1024];
	size_t i, k;

	printf("  loader   %s%s%s%s\n", yk_cell(loader, "state"),
	       with_separator(loader, "path", "  ", a), with_separator(loader, "name", "  ", b),
	       with_separator(loader, "why", ": ", c));
	printf("  drivers  %s  %s%s%s\n", yk_cell(vendors, "state"), yk_cell(vendors, "path"),
	       with_separator(vendors, "from", ", from ", a),
	       with_separator(vendors, "why", ": ", b));
	json_array_foreach (list, i, d) {
		printf("  driver   %s%s%s%s\n", yk_cell(d, "state"),
		       with_separator(d, "file", "  ", a), with_separator(d, "library", "  ", b),
		       with_separator(d, "why", ": ", c));
		json_array_foreach (json_object_get(d, "platforms"), k, p)
			printf("    platform with %s  %s; %s\n",
			       yk_counted(
				       n,
				       (long long)json_integer_value(json_object_get(p, "devices")),
				       "device"),
			       yk_cell(p, "name"), yk_cell(p, "version"));
	}
	list = json_object_get(o, "nodes");
	json_array_foreach (list, i, d)
		printf("  node     %s  %s%s%s\n", yk_cell(d, "state"), yk_cell(d, "path"),
		       with_separator(d, "group", "  group ", a),
		       with_separator(d, "why", ": ", b));
}

static void print_caches(const json_t *list)
{
	char a[1024], b[1024], n[64];
	const json_t *c;
	size_t i;

	json_array_foreach (list, i, c)
		printf("  %-7s %s%s  %s, %.1f MiB%s\n", yk_cell(c, "name"), yk_cell(c, "state"),
		       with_separator(c, "path", "  ", a),
		       yk_counted(n, (long long)json_integer_value(json_object_get(c, "files")),
				  "file"),
		       (double)json_integer_value(json_object_get(c, "bytes")) / (1 << 20),
		       with_separator(c, "why", ": ", b));
}

static void print_tuning(const json_t *list)
{
	char a[1024], b[1024], n[64];
	const json_t *t;
	size_t i;

	json_array_foreach (list, i, t)
		printf("  %-8s  %s, %s%s%s\n", yk_cell(t, "device"), yk_cell(t, "state"),
		       yk_counted(n, (long long)json_integer_value(json_object_get(t, "classes")),
				  "class"),
		       with_separator(t, "path", "  ", a), with_separator(t, "why", ": ", b));
}

static void print_lines(const char *name, const json_t *list)
{
	const json_t *line;
	size_t i;

	if (json_array_size(list))
		title(name);
	json_array_foreach (list, i, line)
		printf("  %s\n", json_string_value(line));
}

static void print(const json_t *o)
{
	static const char *const device[] = { "id", "kind", "pci", "same_as", "name", "driver" };
	static const char *const backend[] = { "name", "version", "path", "why" };
	static const char *const library[] = { "backend", "note" };
	static const char *const quirk[] = { "device", "avoid", "reason", "source", "where" };
	static const char *const wrong[] = { "device", "op", "dtype", "implementation", "why" };
	static const char *const file[] = { "path", "outcome" };
	static const char *const module[] = { "name", "state", "path" };
	const json_t *v = json_object_get(o, "versions"), *t = json_object_get(o, "threads");
	const json_t *h = json_object_get(o, "helper");
	char a[1024], b[1024];

	printf("yoke %s, plugin ABI %s, on %s %s %s\n", yk_cell(v, "yoke"), yk_cell(v, "abi"),
	       yk_cell(v, "system"), yk_cell(v, "release"), yk_cell(v, "machine"));
	section(o, "devices", "devices", 6, device);
	print_choice(o);
	section(o, "backends", "backends", 4, backend);
	if (json_array_size(json_object_get(o, "libraries")))
		section(o, "libraries", "libraries that backends open", 2, library);
	section(o, "folders", "folders searched for plugins", 2, file);
	section(o, "plugins", "plugins", 2, file);
	if (json_array_size(json_object_get(o, "built")))
		section(o, "built", "modules built with this command", 3, module);
	title("helper that test-loads each plugin in a separate process");
	printf("  %s%s%s\n", yk_cell(h, "state"), with_separator(h, "path", "  ", a),
	       with_separator(h, "why", ": ", b));
	section(o, "quirks", "device quirks, from quirks.conf", 5, quirk);
	section(o, "quarantine",
		"kernels not used because they failed the self-test; see `yoke check device "
		"DEVICE`",
		5, wrong);
	title("OpenCL");
	print_opencl(json_object_get(o, "opencl"));
	title("threads");
	printf("  %lld (%s)\n", (long long)json_integer_value(json_object_get(t, "count")),
	       yk_cell(t, *yk_cell(t, "why") != '-' ? "why" : "kernels"));
	title("ranks");
	yk_launcher_print(json_object_get(o, "ranks"));
	title("caches");
	print_caches(json_object_get(o, "caches"));
	title("tuning measured by yoke tune");
	print_tuning(json_object_get(o, "tuning"));
	print_lines("requested but unusable", json_object_get(o, "problems"));
	print_lines("advice", json_object_get(o, "advice"));
}

int yk_cmd_doctor(int argc, char **argv)
{
	const char *folder[2];
	bool json = false;
	int n = 0;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			json = true;
		else if (argv[i][0] == '-')
			return yk_usage("doctor",
					"unknown argument '%s'; the only option is --json",
					argv[i]);
		else if (n == 2)
			return yk_usage("doctor", "'%s': give one run, or two to compare", argv[i]);
		else
			folder[n++] = argv[i];
	}
	if (n)
		return yk_doctor_runs(n, folder, json);
	json_t *o = yk_doctor();
	if (!o) {
		yk_fail(YOKE_ENOMEM, "out of memory, or a name that is not UTF-8");
		return yk_failed("doctor");
	}
	if (json)
		yk_print_json(o);
	else
		print(o);
	bool well = !json_array_size(json_object_get(o, "problems"));
	json_decref(o);
	return well ? YK_DONE : YK_FAILED;
}
