// SPDX-License-Identifier: Apache-2.0
// Plugin loader: finds plugin files, checks and opens them; table.c makes backends of their tables.
// A library, once opened, is never closed, because a driver's threads may outlive every handle.
#include "config.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fixed.h"
#include "base/log.h"
#include "base/number.h"
#include "base/param.h"
#include "device/foreign.h"
#include "device/guard.h"
#include "device/installed.h"
#include "device/plugin.h"
#include "device/probe.h"
#include "device/trusted.h"

YK_PARAM(plugin_path, "plugin.path", YK_STRING, "",
	 "folders searched for plugins first, absolute, separated by ':'");

#define PREFIX "yoke_"
#define SUFFIX ".so"
#define MODULE "yoke_mpi_" // prefix of MPI modules, which are not backends; see yk_module_find

// A file with a plugin's name, in search order.
struct file {
	struct yk_plugin_outcome *outcome;
	char *path, *name; // "/usr/lib/yoke/yoke_opencl.so", "opencl"
	bool tried;
	struct file *next;
};

// A directory that was searched, so that none is searched twice.
struct folder {
	dev_t dev;
	ino_t ino;
	struct folder *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // protects the following
static struct yk_plugin_outcome *outcomes, **last_outcome = &outcomes;
static struct file *files, **last_file = &files;
static struct file *modules, **last_module = &modules;
static struct folder *folders;
static bool searched, cpu_tried;

// ---- lists of names ----

bool yk_list_is_open(const char *list)
{
	return !list || !*list || !strcmp(list, "*") || !strcmp(list, "auto");
}

bool yk_list_has(const char *list, const char *name)
{
	if (yk_list_is_open(list))
		return true;
	bool excludes = *list == '^';
	for (list += excludes; *list; list += *list == ',') {
		size_t n = strcspn(list, ",");
		if (n == strlen(name) && !memcmp(list, name, n))
			return !excludes;
		list += n;
	}
	return excludes;
}

bool yk_list_needs_files(const char *list)
{
	if (yk_list_is_open(list) || *list == '^')
		return true;
	for (; *list; list += *list == ',') {
		size_t n = strcspn(list, ",");
		if (n && !(n == 3 && !memcmp(list, "cpu", 3)))
			return true;
		list += n;
	}
	return false;
}

// ---- outcomes ----

__attribute__((format(printf, 3, 4)))
static void conclude(struct yk_plugin_outcome *o, int code, const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (yk_vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	o->code = code;
	o->text = text ? text : yk_error_text(code); // readers take no lock: old texts stay
}

static struct yk_plugin_outcome *outcome_new(const char *path)
{
	struct yk_plugin_outcome *o = calloc(1, sizeof *o);
	if (!o)
		return NULL;
	o->path = strdup(path);
	if (!o->path) {
		free(o);
		return NULL;
	}
	o->text = "not requested";
	*last_outcome = o;
	last_outcome = &o->next;
	return o;
}

const struct yk_plugin_outcome *yk_plugin_outcomes(void)
{
	return outcomes;
}

// ---- search ----

static int is_plugin(const struct dirent *e)
{
	size_t n = strlen(e->d_name);
	size_t min = strlen(PREFIX) + strlen(SUFFIX);
	return n > min && !strncmp(e->d_name, PREFIX, strlen(PREFIX)) &&
	       !strcmp(e->d_name + n - strlen(SUFFIX), SUFFIX);
}

// Byte order, independent of the locale.
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void add_file(const char *folder, const char *base)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof path, "%s/%s", folder, base) >= (int)sizeof path)
		return;
	struct file *f = calloc(1, sizeof *f);
	if (!f)
		return;
	size_t n = strlen(base) - strlen(PREFIX) - strlen(SUFFIX);
	f->path = strdup(path);
	f->name = strndup(base + strlen(PREFIX), n);
	f->outcome = outcome_new(path);
	if (!f->path || !f->name || !f->outcome) {
		free(f->path);
		free(f->name);
		free(f);
		return;
	}
	if (!strncmp(base, MODULE, strlen(MODULE))) {
		conclude(f->outcome, 0, "opened under a launcher");
		*last_module = f;
		last_module = &f->next;
		return;
	}
	*last_file = f;
	last_file = &f->next;
}

// Was a directory searched before?  Records it otherwise.
static bool seen(const struct stat *st)
{
	for (struct folder *f = folders; f; f = f->next)
		if (f->dev == st->st_dev && f->ino == st->st_ino)
			return true;
	struct folder *f = malloc(sizeof *f);
	if (f) {
		*f = (struct folder){ st->st_dev, st->st_ino, folders };
		folders = f;
	}
	return false;
}

// requested: a setting names the directory; otherwise its absence is not reported.
static void search_folder(const char *path, bool requested)
{
	char why[PATH_MAX + 256], real[PATH_MAX];
	struct dirent **entry = NULL;
	struct yk_plugin_outcome *o;
	struct stat st;
	int code = YOKE_EPERM, n = 0, level = requested ? YOKE_LOG_WARN : YOKE_LOG_DEBUG;

	why[0] = '\0';
	if (path[0] != '/') {
		level = YOKE_LOG_WARN;
		snprintf(why, sizeof why, "not an absolute path; not searched");
	} else if (!realpath(path, real) || stat(real, &st) < 0) {
		code = errno == ENOENT ? YOKE_ENOENT : YOKE_EIO;
		snprintf(why, sizeof why, "%s; not searched", strerror(errno));
	} else if (seen(&st)) {
		if ((o = outcome_new(path))) {
			o->folder = true;
			conclude(o, 0, "searched already");
		}
		return;
	} else if (!yk_trusted_owner(real, &st, why, sizeof why)) {
		level = YOKE_LOG_WARN;
	} else if ((n = scandir(real, &entry, is_plugin, by_name)) < 0) {
		code = YOKE_EIO;
		snprintf(why, sizeof why, "%s; not searched", strerror(errno));
	}
	if ((o = outcome_new(path))) {
		o->folder = true;
		o->requested = requested;
	}
	if (why[0]) {
		yk_log(level, "plugin", "%s: %s", path, why);
		if (o)
			conclude(o, code, "%s", why);
		return;
	}
	if (o)
		conclude(o, 0, n ? "searched" : "searched, holds no plugin");
	for (int i = 0; i < n; i++) {
		add_file(real, entry[i]->d_name);
		free(entry[i]);
	}
	free(entry);
}

static void search_beside(void)
{
	char path[PATH_MAX];
	if (yk_beside("", path, sizeof path))
		search_folder(path, false);
	if (yk_installed(YK_PLUGIN_DIR, path, sizeof path))
		search_folder(path, false);
}

static void search(void)
{
	if (searched)
		return;
	searched = true;
	char *list = strdup(yk_param_str(&plugin_path)), *rest = list, *path;
	yk_param_fix("plugin.path", "plugins were searched for");
	while (list && (path = strsep(&rest, ":")))
		if (*path)
			search_folder(path, true);
	free(list);
	search_beside();
	search_folder(YK_PLUGIN_DIR, false);
}

bool yk_module_find(const char *name, char *path, size_t cap)
{
	bool found = false;
	pthread_mutex_lock(&lock);
	search();
	for (struct file *f = modules; f && !found; f = f->next)
		if ((found = !strcmp(f->name + strlen(MODULE) - strlen(PREFIX), name)))
			snprintf(path, cap, "%s", f->path);
	pthread_mutex_unlock(&lock);
	return found;
}

// ---- entry functions ----

void yk_backend_detail(bool had, int code, char *to, size_t cap)
{
	bool has = !had && yoke_error_code();
	snprintf(to, cap, "%s", has ? yoke_error() : yk_error_text(code));
	if (has)
		yoke_error_clear();
}

// Calls an entry function; returns its table or a reason.
static int enter(yoke_plugin_init_fn *init, const struct yoke_backend **t, char *why, size_t cap)
{
	char detail[400];
	bool had = yoke_error_code() != 0;
	int code = init(YOKE_ABI, yk_host(), t);
	yk_backend_detail(had, code, detail, sizeof detail);
	if (code >= 0)
		return 0;
	// A plugin for another ABI should still return its table, so that the message can name its
	// version.
	if (code == YOKE_EABI && *t && (*t)->abi >> 16 != YOKE_ABI_MAJOR)
		return yk_refuse_abi((*t)->abi, why, cap);
	if (code == YOKE_EABI)
		snprintf(why, cap, "does not know plugin ABI %d.%d of this yoke: %s",
			 YOKE_ABI_MAJOR, YOKE_ABI_MINOR, detail);
	else
		snprintf(why, cap, "yoke_plugin_init failed: %s", detail);
	return code;
}

// ---- files ----

static int open_file(struct file *f, char *why, size_t cap)
{
	char real[PATH_MAX];

	if (!yk_backend_name_good(f->name)) {
		snprintf(why, cap,
			 "a plugin's file is " PREFIX "NAME" SUFFIX " with a NAME of 1 to "
			 "%d of a-z, 0-9, _ and -",
			 YK_BACKEND_NAME_MAX);
		return YOKE_EPLUGIN;
	}
	if (!realpath(f->path, real)) {
		snprintf(why, cap, "%s", strerror(errno));
		return YOKE_EPLUGIN;
	}
	if (!yk_trusted_file(real, why, cap))
		return YOKE_EPERM;
	if (yk_elf_foreign(real, why, cap))
		return YOKE_EPLUGIN;
	int met = yk_probe(real, why, cap);
	if (met < 0)
		return met;
	yk_guard_begin(real);
	void *so = dlopen(real, RTLD_NOW | RTLD_LOCAL);
	yk_guard_end();
	if (!so) {
		const char *text = dlerror();
		size_t n = strlen(real);
		if (text && !strncmp(text, real, n) && !strncmp(text + n, ": ", 2))
			text += n + 2;
		snprintf(why, cap, "not loaded: %s", text ? text : "unknown reason");
		return YOKE_EPLUGIN;
	}
	yoke_plugin_init_fn *init = (yoke_plugin_init_fn *)(uintptr_t)dlsym(so, "yoke_plugin_init");
	if (!init) {
		snprintf(why, cap, "exports no yoke_plugin_init");
		return YOKE_EPLUGIN;
	}
	const struct yoke_backend *t = NULL;
	yk_guard_begin(real);
	int code = enter(init, &t, why, cap);
	yk_guard_end();
	if (code < 0)
		return code;
	if (t && t->abi >> 16 == YOKE_ABI_MAJOR && t->name && yk_backend_name_good(t->name) &&
	    strcmp(t->name, f->name)) {
		snprintf(why, cap,
			 "its backend is '%s': the file must be named " PREFIX "%s" SUFFIX, t->name,
			 t->name);
		return YOKE_EPLUGIN;
	}
	struct yk_backend *b;
	return yk_backend_enter(t, f->path, why, cap, &b);
}

// When all files are tried, errors are logged at once; for a backend requested by name,
// yk_device_choose reports the reason.
static void try_file(struct file *f, int level)
{
	char why[2 * PATH_MAX];
	struct yk_backend *other = yk_backend_find(f->name);

	f->tried = true;
	if (other) { // the first directory in search order wins
		conclude(f->outcome, YOKE_EPLUGIN, "hidden by %s",
			 *other->path ? other->path : "a backend of that name is built in");
		yk_info("plugin", "%s: %s", f->path, f->outcome->text);
		return;
	}
	int code = open_file(f, why, sizeof why);
	if (code < 0) {
		conclude(f->outcome, code, "%s", why);
		yk_log(level, "plugin", "%s: %s", f->path, why);
		return;
	}
	conclude(f->outcome, 0, "loaded");
	yk_info("plugin", "%s: loaded", f->path);
}

static void add_cpu(void)
{
	char why[512];
	const struct yoke_backend *t = NULL;
	struct yk_backend *b;

	cpu_tried = true;
	int code = enter(yoke_cpu_init, &t, why, sizeof why);
	if (!code)
		code = yk_backend_enter(t, "", why, sizeof why, &b);
	if (code < 0)
		yk_log(YOKE_LOG_ERROR, "plugin", "cpu: %s", why);
}

struct yk_backend *yk_backends(const char *list)
{
	if (yk_forked())
		return NULL;
	pthread_mutex_lock(&lock);
	if (!cpu_tried)
		add_cpu();
	if (yk_list_needs_files(list)) {
		bool all = yk_list_is_open(list) || *list == '^';
		search();
		for (struct file *f = files; f; f = f->next)
			if (!f->tried && yk_list_has(list, f->name))
				try_file(f, all ? YOKE_LOG_WARN : YOKE_LOG_INFO);
	}
	pthread_mutex_unlock(&lock);
	return yk_backend_first();
}

// A backend declares its own settings: loads the one named before the dot, or the CPU backend.
static struct yk_param *setting(const char *name)
{
	char backend[YK_BACKEND_NAME_MAX + 1] = "cpu";

	if (!yk_param_find(name)) {
		size_t n = strcspn(name, ".");
		if (name[n] && n < sizeof backend)
			snprintf(backend, sizeof backend, "%.*s", (int)n, name);
		yk_backends(yk_backend_name_good(backend) ? backend : "cpu");
	}
	return yk_param_find(name);
}

int yoke_setting_set(const char *name, const char *value)
{
	if (!name || !value)
		return yk_fail(YOKE_EINVAL, "yoke_setting_set: name or value is NULL");
	setting(name);
	const int late = yk_param_is_open(name, value);
	return late ? late : yk_param_set(name, value, YK_ARGUMENT);
}

int yoke_setting_get(const char *name, char *to, size_t cap)
{
	struct yk_param *p = name ? setting(name) : NULL;
	if (!p)
		return yk_fail(YOKE_ENOENT, "no setting '%s'; yoke info --env lists them",
			       name ? name : "");
	const int err = cap ? yk_require(to, "place of the text") : 0;
	return err ? err : snprintf(to, cap, "%s", yk_param_str(p));
}

// ---- for messages ----

void yk_backend_names(char *to, size_t cap)
{
	size_t n = 0;

	to[0] = '\0';
	pthread_mutex_lock(&lock);
	for (const struct yk_backend *b = yk_backend_first(); b && n < cap; b = b->next)
		n += (size_t)snprintf(to + n, cap - n, "%s%s", n ? ", " : "", b->table.name);
	for (struct file *f = files; f && n < cap; f = f->next)
		if (!f->tried && yk_backend_name_good(f->name) && !yk_backend_find(f->name))
			n += (size_t)snprintf(to + n, cap - n, "%s%s", n ? ", " : "", f->name);
	pthread_mutex_unlock(&lock);
}

const char *yk_backend_refusal(const char *name)
{
	const char *text = NULL;

	pthread_mutex_lock(&lock);
	for (struct file *f = files; f && !text; f = f->next)
		if (!strcmp(f->name, name) && f->outcome->code < 0)
			text = f->outcome->text;
	pthread_mutex_unlock(&lock);
	return text;
}
