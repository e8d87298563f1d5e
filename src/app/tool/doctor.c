// SPDX-License-Identifier: Apache-2.0
// Examines devices, plugins and settings of this machine; the findings form one JSON object.
#include "config.h"

#include "tool/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/error.h"
#include "base/param.h"
#include "base/system.h"
#include "device/child.h"
#include "device/device.h"
#include "device/facts.h"
#include "device/quirks.h"
#include "tool/launcher.h"

void yk_doctor_add(json_t *list, const char *fmt, ...)
{
	char line[1200];
	json_t *entry;
	size_t i;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	json_array_foreach (list, i, entry)
		if (!strcmp(json_string_value(entry), line))
			return;
	json_t *o = json_string(line);
	json_array_append_new(list, o ? o : json_string("a line that is not UTF-8"));
}

static const char *setting(const char *name)
{
	return yk_param_str(yk_param_find(name));
}

// Reports an environment variable with an invalid value, or one that leaves its backend without
// devices.
static void check_setting(struct yk_param *p, void *problems)
{
	char variable[128];
	size_t n = strcspn(p->name, ".");
	const char *text = yk_param_str(p), *request; // yk_param_str reads the environment

	yk_param_env(p->name, variable, sizeof variable);
	request = yk_getenv_secure(variable);
	if (!request || !*request)
		return;
	if (p->origin == YK_DEFAULT) {
		yk_doctor_add(problems, "%s=%s is not a valid value; the default %s is used",
			      variable, request, p->def);
		return;
	}
	for (struct yk_backend *b = yk_backends("cpu"); b; b = b->next)
		if (!b->ndevices && b->why && strlen(b->table.name) == n && p->name[n] &&
		    !memcmp(b->table.name, p->name, n))
			yk_doctor_add(problems, "%s=%s: %s", variable, text, b->why);
}

// Checks environment variables, the helper program and quirks.
static void check_environment(json_t *problems)
{
	const char *helper = setting("plugin.probe"), *quirks = setting("quirks");
	char path[PATH_MAX], why[PATH_MAX + 400];

	yk_param_each(check_setting, problems);
	if (*helper && yk_child_helper(path, why, sizeof why) == YK_HELPER_MISSING)
		yk_doctor_add(problems, "%s", why);
	if (yk_quirks_trouble())
		yk_doctor_add(problems, "YOKE_QUIRKS=%s: %s", quirks, yk_quirks_trouble());
}

// Checks the requested backend and device.
static json_t *check_request(json_t *problems)
{
	const char *backend = setting("backend"), *device = setting("device");
	struct yk_device *chosen = yk_device_choose(NULL);

	if (!chosen)
		yk_doctor_add(problems, "%s", yoke_error());
	yoke_error_clear();
	// reports each unavailable name of a list, although one usable name suffices
	char *names = *backend && *backend != '^' ? strdup(backend) : NULL, *rest = names, *name;
	while (chosen && names && (name = strsep(&rest, ","))) {
		const char *why = yk_list_is_open(name) ? NULL : yk_backend_trouble(name);
		if (why)
			yk_doctor_add(problems, "backend '%s' cannot be used: %s", name, why);
	}
	free(names);
	for (const struct yk_plugin_outcome *o = yk_plugin_outcomes(); o; o = o->next)
		if (o->requested && o->code < 0)
			yk_doctor_add(problems, "YOKE_PLUGIN_PATH, folder %s: %s", o->path,
				      o->text);
	check_environment(problems);
	return json_pack("{s:s, s:s}", "backend", backend, "device", device);
}

// Checks the helper program that test-loads each plugin.
static json_t *helper(json_t *advice)
{
	char path[PATH_MAX] = "", why[PATH_MAX + 400] = "";
	const enum yk_helper state = yk_child_helper(path, why, sizeof why);

	if (state == YK_HELPER_MISSING)
		yk_doctor_add(advice,
			      "plugins are loaded without a test in a separate process, so a "
			      "crashing driver ends every command: reinstall yoke-probe, or set "
			      "YOKE_PLUGIN_PROBE to its path (%s)",
			      why);
	static const char *const names[] = { [YK_HELPER_FOUND] = "found", [YK_HELPER_OFF] = "off",
					     [YK_HELPER_MISSING] = "missing" };
	return json_pack("{s:s, s:s, s:s}", "state", names[state], "path",
			 state == YK_HELPER_FOUND ? path : "", "why", why);
}

// Path of the module in the build directory that contains this command. False: there is no such
// file.
static bool in_build(const char *module, char to[PATH_MAX])
{
	char own[PATH_MAX];
	const char *name = strrchr(module, '/') + 1;

	char *slash = realpath(yk_program(), own) ? strrchr(own, '/') : NULL;
	if (!slash)
		return false;
	*slash = '\0';
	const int length = snprintf(to, PATH_MAX, "%s/%.*s.libs/%.*s.so", own, (int)(name - module),
				    module, (int)(strlen(name) - strlen(".la")), name);
	return length > 0 && length < PATH_MAX && !access(to, F_OK);
}

// Checks for each module built with this command whether the plugin search found a file with its
// name.
static json_t *built(json_t *advice)
{
	json_t *list = json_array();
	char path[PATH_MAX];

	for (const char *const *m = yk_built_modules; *m; m++) {
		const char *name = strrchr(*m, '/') + 1, *file, *found = "";
		const size_t n = strlen(name) - strlen(".la");
		for (const struct yk_plugin_outcome *o = yk_plugin_outcomes(); o && !*found;
		     o = o->next)
			if (!o->folder && (file = strrchr(o->path, '/')) &&
			    !strncmp(file + 1, name, n) && !strcmp(file + 1 + n, ".so"))
				found = o->path;
		if (!*found && in_build(*m, path))
			yk_doctor_add(advice,
				      "%.*s was built but is in none of the searched folders: set "
				      "YOKE_PLUGIN_PATH=%.*s, or run make install",
				      (int)n, name, (int)(strrchr(path, '/') - path), path);
		else if (!*found)
			yk_doctor_add(advice,
				      "%.*s was built with this command but is in none of the "
				      "searched folders: run make install again, or add its folder "
				      "to YOKE_PLUGIN_PATH",
				      (int)n, name);
		char *word = strndup(name, n);
		json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "name", word ? word : "",
						      "state", *found ? "found" : "not found",
						      "path", found));
		free(word);
	}
	return list;
}

static void advise_plugins(json_t *advice)
{
	for (const struct yk_plugin_outcome *o = yk_plugin_outcomes(); o; o = o->next)
		if (!o->folder && o->code == YOKE_EABI)
			yk_doctor_add(advice, "%s: install the plugin of this version of yoke",
				      o->path);
		else if (!o->folder && o->code < 0 && strstr(o->text, "when it was tried"))
			yk_doctor_add(advice,
				      "%s: one of its drivers fails; the list of drivers shows "
				      "which. Update or remove that driver",
				      o->path);
}

static bool has_gpu(const json_t *devices)
{
	const json_t *d;
	size_t i;

	json_array_foreach (devices, i, d)
		if (strstr(json_string_value(json_object_get(d, "kind")), "gpu"))
			return true;
	return false;
}

// Threads of the CPU backend, and the limit on them, parsed from the texts of its device.
static json_t *threads(void)
{
	static const char mark[] = "threads bound by ";
	struct yk_device *cpu = yk_device_cpu();

	if (!cpu) {
		json_t *o =
			json_pack("{s:i, s:s, s:s}", "count", 0, "bound", "", "why", yoke_error());
		yoke_error_clear();
		return o;
	}
	const char *bound = strstr(cpu->info.driver, mark);
	return json_pack("{s:I, s:s, s:s, s:s}", "count", (json_int_t)cpu->info.units, "bound",
			 bound ? bound + strlen(mark) : "", "kernels", cpu->info.driver, "why", "");
}

static json_t *ranks(json_t *problems)
{
	json_t *o = yk_launcher_facts();
	const char *why = json_string_value(json_object_get(o, "why"));
	if (why && *why)
		yk_doctor_add(problems, "ranks: %s", why);
	return o;
}

static json_t *versions(void)
{
	char abi[32];
	struct utsname system;

	snprintf(abi, sizeof abi, "%d.%d", YOKE_ABI_MAJOR, YOKE_ABI_MINOR);
	if (uname(&system) < 0)
		memset(&system, 0, sizeof system);
	return json_pack("{s:s, s:s, s:s, s:s, s:s}", "yoke", PACKAGE_VERSION, "abi", abi, "system",
			 system.sysname, "release", system.release, "machine", system.machine);
}

json_t *yk_doctor(void)
{
	json_t *o = json_object(), *problems = json_array(), *advice = json_array();
	const char *backend = setting("backend");
	int bad = !o || !problems || !advice;

	// plugins that failed before are retried; the result is saved, so that other commands agree
	yk_param_set("plugin.remember", "0", YK_ARGUMENT);
	json_t *devices = yk_facts_devices(); // searches and loads plugins
	bool gpu = devices && has_gpu(devices);
	bad |= json_object_set_new(o, "versions", versions());
	bad |= json_object_set_new(o, "asked", check_request(problems));
	bad |= json_object_set_new(o, "choice", yk_facts_choice());
	bad |= json_object_set_new(o, "devices", devices);
	bad |= json_object_set_new(o, "backends", yk_facts_backends());
	bad |= json_object_set_new(o, "libraries", yk_facts_notes("notes"));
	bad |= json_object_set_new(o, "folders", yk_facts_plugins(true, false));
	bad |= json_object_set_new(o, "plugins", yk_facts_plugins(false, true));
	bad |= json_object_set_new(o, "helper", helper(advice));
	if (yk_list_needs_files(backend)) // otherwise no directory was searched
		bad |= json_object_set_new(o, "built", built(advice));
	bad |= json_object_set_new(o, "quirks", yk_facts_quirks());
	bad |= json_object_set_new(o, "quarantine", yk_facts_quarantine(NULL));
	advise_plugins(advice);
	bad |= json_object_set_new(o, "opencl",
				   yk_doctor_opencl(yk_list_needs_files(backend), gpu, advice));
	bad |= json_object_set_new(o, "threads", threads());
	bad |= json_object_set_new(o, "ranks", ranks(problems));
	bad |= json_object_set_new(o, "caches", yk_doctor_caches(problems, advice));
	bad |= json_object_set_new(o, "tuning", yk_doctor_tuning(advice));
	bad |= json_object_set_new(o, "problems", problems);
	bad |= json_object_set_new(o, "advice", advice);
	if (!bad)
		return o;
	json_decref(o);
	return NULL;
}
