// SPDX-License-Identifier: Apache-2.0
// Source lines from the debugging information of the program and its libraries.
// libdw is loaded on first use, so programs that never trace do not load it or its dependencies.
#include "config.h"

#include "graph/site.h"

#if HAVE_LIBDW
#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // protects the state below
static Dwfl *modules; // the loaded objects of this process

#define CALLS(X) \
	X(dwfl_linux_proc_find_elf) X(dwfl_standard_find_debuginfo) X(dwfl_begin) \
	X(dwfl_report_begin_add) X(dwfl_linux_proc_report) X(dwfl_report_end) \
	X(dwfl_addrmodule) X(dwfl_module_getsrc) X(dwfl_lineinfo)
#define MEMBER(name) __typeof__(&name) name;
#define PLACE(name) { #name, offsetof(struct calls, name) },
static struct calls {
	CALLS(MEMBER)
} dw;
static enum { UNTRIED, MISSING, THERE } state;

static bool is_there(void)
{
	static const struct {
		const char *name;
		size_t at;
	} call[] = { CALLS(PLACE) };
	if (state != UNTRIED)
		return state == THERE;
	void *library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
	state = library ? THERE : MISSING;
	for (size_t i = 0; library && i < sizeof call / sizeof *call; i++) {
		void *symbol = dlsym(library, call[i].name);
		memcpy((char *)&dw + call[i].at, &symbol, sizeof symbol);
		state = symbol ? state : MISSING;
	}
	return state == THERE;
}

// Refreshes the list of loaded objects; known ones are kept.
static bool report(void)
{
	static Dwfl_Callbacks callbacks;
	callbacks.find_elf = dw.dwfl_linux_proc_find_elf;
	callbacks.find_debuginfo = dw.dwfl_standard_find_debuginfo;
	if (!modules && !(modules = dw.dwfl_begin(&callbacks)))
		return false;
	dw.dwfl_report_begin_add(modules);
	return dw.dwfl_linux_proc_report(modules, getpid()) == 0 &&
	       dw.dwfl_report_end(modules, NULL, NULL) == 0;
}

bool yk_source_line(const void *address, char *to, size_t cap)
{
	const Dwarf_Addr at = (Dwarf_Addr)(uintptr_t)address;
	const char *file = NULL;
	int n = 0;
	pthread_mutex_lock(&lock);
	Dwfl_Module *m = modules ? dw.dwfl_addrmodule(modules, at) : NULL;
	if (!m && is_there() && report())
		m = dw.dwfl_addrmodule(modules, at);
	Dwfl_Line *line = m ? dw.dwfl_module_getsrc(m, at) : NULL;
	if (line)
		file = dw.dwfl_lineinfo(line, NULL, &n, NULL, NULL, NULL);
	if (file) {
		const char *name = strrchr(file, '/');
		snprintf(to, cap, "%s:%d", name ? name + 1 : file, n);
	}
	pthread_mutex_unlock(&lock);
	return file;
}
#else
bool yk_source_line(const void *address, char *to, size_t cap)
{
	(void)address;
	(void)to;
	(void)cap;
	return false;
}
#endif
