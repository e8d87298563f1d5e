// SPDX-License-Identifier: Apache-2.0
// Finds the files of a relocated installation, from the path of the library or the command.
#include "config.h"

#include "device/installed.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system.h"

// PREFIX/lib/x86_64-linux-gnu/libyoke.so.0: up to LEVELS directories above a file may be the prefix
enum { LEVELS = 3, PAGE = 4096 };

// The directory of the library, or of the program that contains this code.  dladdr returns the name
// by which a program was started; a relative library name would refer to the current directory.
static bool own_folder(char to[PATH_MAX])
{
	Dl_info info;

	if (!dladdr((void *)(uintptr_t)yk_installed, &info) || !info.dli_fname)
		return false;
	const bool program = yk_program_address() - (uintptr_t)info.dli_fbase < PAGE;
	if (!program && info.dli_fname[0] != '/')
		return false;
	if (!realpath(program ? yk_program() : info.dli_fname, to))
		return false;
	*strrchr(to, '/') = '\0';
	return true;
}

bool yk_beside(const char *name, char *to, size_t cap)
{
	char own[PATH_MAX], folder[PATH_MAX + 8];

	if (!own_folder(own))
		return false;
	snprintf(folder, sizeof folder, "%s/yoke/.", own); // fails if `yoke` is the command
	const int n = snprintf(to, cap, "%s/yoke%s%s", own, *name ? "/" : "", name);
	return n >= 0 && (size_t)n < cap && !access(folder, F_OK) && !access(to, F_OK);
}

// Length of the prefix, the common beginning of the installed directories.
static size_t prefix_length(void)
{
	static const char *const paths[] = { YK_PLUGIN_DIR, YK_PROBE, YK_QUIRKS };
	size_t n = 0;

	for (size_t i = 0; paths[0][i]; i++) {
		for (size_t k = 1; k < sizeof paths / sizeof *paths; k++)
			if (paths[k][i] != paths[0][i])
				return n;
		if (paths[0][i] == '/')
			n = i;
	}
	return n;
}

bool yk_installed(const char *path, char *to, size_t cap)
{
	char own[PATH_MAX], *slash;

	if (!own_folder(own))
		return false;
	for (int level = 0; level < LEVELS && (slash = strrchr(own, '/')); level++) {
		*slash = '\0';
		const int n = snprintf(to, cap, "%s%s", own, path + prefix_length());
		if (n >= 0 && (size_t)n < cap && !access(to, F_OK))
			return true;
	}
	return false;
}
