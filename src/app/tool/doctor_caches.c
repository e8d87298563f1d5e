// SPDX-License-Identifier: Apache-2.0
// Examines caches of compiled kernels (yoke's own and those of drivers) and the result files of
// `yoke tune`.
#include "config.h"

#include "tool/doctor.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "kernel/cache.h"
#include "device/tuning.h"

#define MAX_FILES 200000 // max number of files examined per cache

static const struct {
	const char *name;
	const char *variable; // environment variable with the directory
	const char *cache;    // otherwise: relative to $XDG_CACHE_HOME or ~/.cache
	const char *home;     // or relative to ~
} vendors[] = {
	{ "PoCL", "POCL_CACHE_DIR", "pocl", NULL },
	{ "NVIDIA", "CUDA_CACHE_PATH", NULL, ".nv/ComputeCache" },
	{ "Mesa", "MESA_SHADER_CACHE_DIR", "mesa_shader_cache", NULL },
	{ "Intel", "NEO_CACHE_DIR", "neo_compiler_cache", NULL },
	{ "AMD", "AMD_COMGR_CACHE_DIR", "comgr", NULL },
};

// thread-local, because nftw passes no user argument to its callback
static _Thread_local json_int_t files, bytes;

static int count(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)path, (void)at;
	if (type != FTW_F)
		return 0;
	bytes += st->st_size;
	return ++files == MAX_FILES;
}

static json_t *vendor(size_t k)
{
	const char *set = getenv(vendors[k].variable), *xdg = getenv("XDG_CACHE_HOME"),
		   *home = getenv("HOME");
	char path[PATH_MAX];
	struct stat st;

	if (set && *set)
		snprintf(path, sizeof path, "%s", set);
	else if (vendors[k].cache && xdg && *xdg)
		snprintf(path, sizeof path, "%s/%s", xdg, vendors[k].cache);
	else if (home && vendors[k].cache)
		snprintf(path, sizeof path, "%s/.cache/%s", home, vendors[k].cache);
	else if (home)
		snprintf(path, sizeof path, "%s/%s", home, vendors[k].home);
	else
		return NULL;
	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return NULL;
	files = bytes = 0;
	nftw(path, count, 16, FTW_PHYS);
	return json_pack(
		"{s:s, s:s, s:s, s:s, s:I, s:I}", "name", vendors[k].name, "path", path, "state",
		files == MAX_FILES ? "kept by the driver, partly counted" : "kept by the driver",
		"why", "", "files", files, "bytes", bytes);
}

json_t *yk_doctor_caches(json_t *problems, json_t *advice)
{
	struct yk_cache_state s;
	json_t *list = json_array(), *o;

	yk_cache_inspect(&s);
	json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:I, s:I}", "name", "yoke",
					      "path", s.path, "state",
					      s.usable ? "used" : "not used", "why", s.why, "files",
					      (json_int_t)s.files, "bytes", (json_int_t)s.bytes));
	if (s.requested && !s.usable)
		yk_doctor_add(problems, "cache %s cannot be used: %s", s.path, s.why);
	else if (!s.usable && *s.path)
		yk_doctor_add(advice, "%s: %s; without the cache each process compiles its kernels",
			      s.path, s.why);
	for (size_t k = 0; k < sizeof vendors / sizeof *vendors; k++)
		if ((o = vendor(k)))
			json_array_append_new(list, o);
	return list;
}

static json_t *tuning_of(const struct yk_device *d)
{
	char why[PATH_MAX + 200];
	struct yk_tuning t;

	yk_tuning_try_read(d, &t, why, sizeof why);
	if (!*why && !yk_tuning_applied())
		snprintf(why, sizeof why, "YOKE_TUNE=0");
	json_t *o = json_pack("{s:s, s:s, s:s, s:I, s:s}", "device", d->id, "state",
			      t.n && !*why ? "used" :
			      *why         ? "not used" :
					     "none",
			      "path", t.path, "classes", (json_int_t)t.n, "why", why);
	yk_tuning_fini(&t);
	return o;
}

json_t *yk_doctor_tuning(json_t *advice)
{
	struct yk_device *chosen = yk_device_choose(NULL);
	json_t *list = json_array(), *o;

	yoke_error_clear(); // reported as a problem
	for (struct yk_device *d = yk_devices(NULL); d; d = d->next) {
		if (!(o = tuning_of(d)))
			continue;
		const char *state = json_string_value(json_object_get(o, "state")),
			   *why = json_string_value(json_object_get(o, "why"));
		if (!strcmp(state, "not used") && yk_tuning_applied())
			yk_doctor_add(advice, "%s: `yoke tune %s` rewrites the file", why, d->id);
		else if (d == chosen && !strcmp(state, "none") && strcmp(d->ops->name, "cpu"))
			yk_doctor_add(advice,
				      "%s selects kernels by fixed rules: `yoke tune %s` measures "
				      "which kernels are fastest and stores the result",
				      d->id, d->id);
		json_array_append_new(list, o);
	}
	return list;
}
