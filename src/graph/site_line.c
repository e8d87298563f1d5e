// SPDX-License-Identifier: Apache-2.0
// Lines of the source, from the debugging information that a program and its libraries have.
#include "config.h"

#include "graph/site.h"

#if HAVE_LIBDW
#include <elfutils/libdwfl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // over what follows
static Dwfl *modules; // of this process, as they are loaded by now

// Looks at what is loaded; what was before stays.
static bool report(void)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
	};
	if (!modules && !(modules = dwfl_begin(&callbacks)))
		return false;
	dwfl_report_begin_add(modules);
	return dwfl_linux_proc_report(modules, getpid()) == 0 &&
	       dwfl_report_end(modules, NULL, NULL) == 0;
}

bool yk_source_line(const void *address, char *to, size_t cap)
{
	const Dwarf_Addr at = (Dwarf_Addr)(uintptr_t)address;
	const char *file = NULL;
	int n = 0;
	pthread_mutex_lock(&lock);
	Dwfl_Module *m = modules ? dwfl_addrmodule(modules, at) : NULL;
	if (!m && report())
		m = dwfl_addrmodule(modules, at);
	Dwfl_Line *line = m ? dwfl_module_getsrc(m, at) : NULL;
	if (line)
		file = dwfl_lineinfo(line, NULL, &n, NULL, NULL, NULL);
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
