// SPDX-License-Identifier: Apache-2.0
// Opens the vendor's libraries on first use, under the names in its calls.h. Search order: the
// directories of the setting library_path, the directory set at configure time, the dynamic
// linker's path, the vendor's default directory, and the directories of Python packages. The newest
// compatible library is used and never closed, since a driver's threads outlive any handle.
#include "config.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native.h"

#define MAX_FOLDERS 64

struct yk_native_calls yk_native;

static const struct {
	enum yk_native_lib part;
	const char *name;
} libraries[] = {
#define X(part, name) { YK_##part, name },
	V_LIBRARIES(X)
#undef X
};
enum { LIBRARIES = sizeof libraries / sizeof *libraries };

// NEED and MAY of V_CALLS.
enum { MAY, NEED };
static const struct {
	enum yk_native_lib part;
	int need;
	const char *name;
	size_t at; // offset in yk_native
} symbols[] = {
#define X(part, need, result, symbol, params) \
	{ YK_##part, need, #symbol, offsetof(struct yk_native_calls, symbol) },
	V_CALLS(X)
#undef X
};
enum { SYMBOLS = sizeof symbols / sizeof *symbols };

static struct part {
	bool tried;
	const char *library; // the library in use, or NULL
	char folder[PATH_MAX];
	char why[600]; // why none is usable; or what the one in use lacks
} parts[YK_PARTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// ---- directories ----

struct folders {
	char *at[MAX_FOLDERS];
	int n;
};

static void add(struct folders *f, const char *path)
{
	char *copy = f->n < MAX_FOLDERS ? strdup(path) : NULL;

	if (copy)
		f->at[f->n++] = copy;
}

static const char *library_path(void)
{
	static const struct yoke_setting path = {
		sizeof path, V_NAME ".library_path", "string", "",
		"absolute directories searched first for the vendor's libraries, separated by ':'",
	};
	const char *value = yk_gpu_host->setting(&path);

	return value ? value : "";
}

void yk_native_library_start(void)
{
	library_path();
}

// The site-packages directory that yoke's wheel was installed into, if this module is part of a
// wheel.
static bool site_of_wheel(char site[PATH_MAX])
{
	char *end;
	Dl_info info;

	if (!dladdr(&yk_native, &info) || !info.dli_fname || !realpath(info.dli_fname, site) ||
	    !(end = strstr(site, "/yoke/_prefix/lib/yoke/"))) // python/CMakeLists.txt
		return false;
	*end = 0;
	return true;
}

// Directories of the vendor's pip and conda packages: in site-packages of yoke's own wheel, of the
// active environment, the user and the system.
static void add_python(struct folders *f)
{
	static const char *const below[] = { V_PYTHON_FOLDERS };
	const char *home = secure_getenv("HOME");
	char user[PATH_MAX] = "", own[PATH_MAX] = "", pattern[PATH_MAX + 100];
	if (home)
		snprintf(user, sizeof user, "%s/.local", home);
	if (site_of_wheel(own)) {
		for (size_t b = 0; b < sizeof below / sizeof *below; b++) {
			snprintf(pattern, sizeof pattern, "%s/%s", own, below[b]);
			add(f, pattern);
		}
		// ENVIRONMENT/lib64/python3.12/site-packages: pure Python packages may be below lib
		for (int level = 0; level < 3 && strrchr(own, '/'); level++)
			*strrchr(own, '/') = 0;
	}
	const char *roots[] = { own,
				secure_getenv("VIRTUAL_ENV"),
				secure_getenv("CONDA_PREFIX"),
				user,
				"/usr/local",
				"/usr" };

	for (size_t r = 0; r < sizeof roots / sizeof *roots; r++)
		for (size_t b = 0; roots[r] && *roots[r] == '/' && b < sizeof below / sizeof *below;
		     b++) {
			glob_t found;
			snprintf(pattern, sizeof pattern, "%s/lib/python3*/*-packages/%s", roots[r],
				 below[b]);
			if (glob(pattern, 0, NULL, &found))
				continue;
			for (size_t i = 0; i < found.gl_pathc; i++)
				add(f, found.gl_pathv[i]);
			globfree(&found);
		}
}

// Drivers are not searched in Python directories: they come with the kernel module.
static void find_folders(struct folders *f, bool driver)
{
	static const char *const system[] = { V_SYSTEM_FOLDERS };
#ifdef YK_NATIVE_DIR
	static const char *const below[] = { "", V_FOLDERS };
#endif
	char *list = strdup(library_path()), *rest = list, *path;

	f->n = 0;
	while (list && (path = strsep(&rest, ":")))
		if (*path == '/')
			add(f, path);
	free(list);
#ifdef YK_NATIVE_DIR
	for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
		char full[PATH_MAX];
		snprintf(full, sizeof full, "%s/%s", YK_NATIVE_DIR, below[i]);
		add(f, full);
	}
#endif
	add(f, "");
	if (driver)
		return;
	for (size_t i = 0; i < sizeof system / sizeof *system; i++)
		add(f, system[i]);
	add_python(f);
}

// ---- libraries ----

__attribute__((format(printf, 2, 3)))
static void append_reason(struct part *p, const char *fmt, ...)
{
	const size_t n = strlen(p->why);
	char line[500];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (!strstr(p->why, line)) // do not repeat the same message for another directory
		snprintf(p->why + n, sizeof p->why - n, "%s%s", n ? "; " : "", line);
}

static void clear(enum yk_native_lib which)
{
	for (int i = 0; i < SYMBOLS; i++)
		if (symbols[i].part == which)
			memset((char *)&yk_native + symbols[i].at, 0, sizeof(void *));
}

// Looks up the symbols of a library and reports missing ones. False: a required symbol is missing.
static bool resolve(enum yk_native_lib which, void *library, const char *name)
{
	char lacks[300] = "", may[300] = "";
	size_t n = 0, m = 0;

	for (int i = 0; i < SYMBOLS; i++) {
		if (symbols[i].part != which)
			continue;
		void *s = dlsym(library, symbols[i].name);
		memcpy((char *)&yk_native + symbols[i].at, &s, sizeof s);
		if (!s && symbols[i].need == NEED && n < sizeof lacks)
			n += (size_t)snprintf(lacks + n, sizeof lacks - n, "%s%s", n ? ", " : "",
					      symbols[i].name);
		if (!s && symbols[i].need == MAY && m < sizeof may)
			m += (size_t)snprintf(may + m, sizeof may - m, "%s%s", m ? ", " : "",
					      symbols[i].name);
	}
	if (n)
		append_reason(&parts[which],
			      "%s lacks %.200s: it is too old or not the vendor's; update it", name,
			      lacks);
	else if (m)
		append_reason(&parts[which], "%s lacks %.200s; features that need it are disabled",
			      name, may);
	return !n;
}

static bool try_library(enum yk_native_lib which, const char *folder, const char *name)
{
	struct part *p = &parts[which];
	char path[PATH_MAX + 100], why[300];

	snprintf(path, sizeof path, "%s%s%s", folder, *folder ? "/" : "", name);
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		const char *error = dlerror();
		// report a file that exists but cannot be used; a missing file is normal
		if (error && !strstr(error, "No such file"))
			append_reason(p, "%.200s", error);
		return false;
	}
	bool serves = resolve(which, library, name);
	if (serves && !(serves = yk_vendor_is_compatible(which, name, why, sizeof why)))
		append_reason(p, "%s", why);
	// otherwise the linker would return it again for another library of that name
	if (!serves) {
		clear(which);
		dlclose(library);
		return false;
	}
	p->library = name;
	snprintf(p->folder, sizeof p->folder, "%s", folder);
	return true;
}

static const char *advice(enum yk_native_lib which)
{
	switch (which) {
	case YK_DRIVER: return V_DRIVER_ADVICE;
	case YK_COMPILER: return V_COMPILER_ADVICE;
	case YK_PRODUCTS: return V_PRODUCTS_ADVICE;
	case YK_BLAS: return "matrix products use yoke's own kernels";
	case YK_COLLECTIVES: return V_COLLECTIVES_ADVICE;
	case YK_RANGES: return "the vendor's profiler receives no ranges";
	default: return "telemetry is not available";
	}
}

// Lists the file names tried for a library, newest first: "a, b".
static void names_of(enum yk_native_lib which, char *to, size_t cap)
{
	size_t n = 0;

	for (int i = 0; i < LIBRARIES && n < cap; i++)
		if (libraries[i].part == which)
			n += (size_t)snprintf(to + n, cap - n, "%s%s", n ? ", " : "",
					      libraries[i].name);
}

static void open_part(enum yk_native_lib which)
{
	struct part *p = &parts[which];
	struct folders f;
	char names[200] = "";

	if ((p->library = yk_vendor_injected(which)))
		return;
	find_folders(&f, which == YK_DRIVER);
	for (int i = 0; i < LIBRARIES && !p->library; i++)
		for (int k = 0; k < f.n && !p->library && libraries[i].part == which; k++)
			try_library(which, f.at[k], libraries[i].name);
	for (int k = 0; k < f.n; k++)
		free(f.at[k]);
	if (p->library)
		return;
	names_of(which, names, sizeof names);
	if (!*p->why)
		append_reason(p, "%s not found", names);
	append_reason(p, "%s", advice(which));
}

bool yk_native_open(enum yk_native_lib which, const char **why)
{
	struct part *p = &parts[which];

	pthread_mutex_lock(&lock);
	if (!p->tried) {
		open_part(which);
		if (p->library)
			yk_gpu_log(YOKE_LOG_INFO, "%s%s%s opened%s%s", p->folder,
				   *p->folder ? "/" : "", p->library, *p->why ? "; " : "", p->why);
		else
			yk_gpu_log(YOKE_LOG_INFO, "%s", p->why);
	}
	p->tried = true;
	pthread_mutex_unlock(&lock);
	if (why)
		*why = p->why;
	return p->library;
}

int yk_native_major(const char *name)
{
	const char *so = strstr(name, ".so.");

	return so ? atoi(so + 4) : 0;
}

const char *yk_native_library(enum yk_native_lib which)
{
	return parts[which].library ? parts[which].library : "";
}

// ---- for `yoke doctor` ----

// True if the vendor has such a library.
static bool has_names(enum yk_native_lib which)
{
	for (int i = 0; i < LIBRARIES; i++)
		if (libraries[i].part == which)
			return true;
	return false;
}

const char *yk_native_note(uint32_t index)
{
	static const char *const what[] = { "driver", "compiler", "products",   "telemetry",
					    "ranges", "products", "collectives" };
	static char line[YK_PARTS][PATH_MAX + 700];
	const char *why;
	int part = -1;

	for (uint32_t left = index + 1; left && part < YK_PARTS;
	     left -= part < YK_PARTS && has_names((enum yk_native_lib)part))
		part++;
	if (part >= YK_PARTS || (index && !yk_native_open(YK_DRIVER, NULL)))
		return NULL;
	if (!yk_native_open((enum yk_native_lib)part, &why))
		return why;
	const struct part *p = &parts[part];
	snprintf(line[part], sizeof line[part], "%s  %s%s%s%s%s", what[part], p->folder,
		 *p->folder ? "/" : "", p->library, *p->why ? "; " : "", p->why);
	return line[part];
}
