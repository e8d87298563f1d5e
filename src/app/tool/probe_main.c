// SPDX-License-Identifier: Apache-2.0
// yoke-probe: loads one plugin and queries its devices, like the plugin loader, in a process that
// may crash; or examines one OpenCL driver, or OpenCL's loader. A NUL on standard output after the
// answer means that it did not crash; any other ending counts as a crash.
#include "config.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/system.h"
#include "device/plugin.h"
#include "tool/probe.h"
#include "yoke.h"

static int add_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	if (info->dlpi_name[0] == '/')
		fprintf(arg, "%s\n", info->dlpi_name);
	return 0;
}

// Errors without a crash are ignored here, because the plugin loader finds and reports them itself.
static void query_plugin(const char *file)
{
	const struct yoke_backend *t = NULL;
	uint32_t n = 0;

	void *so = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!so)
		return;
	yoke_plugin_init_fn *init =
		(yoke_plugin_init_fn *)(uintptr_t)dlsym(so, "yoke_plugin_init");
	if (!init || init(YOKE_ABI, yk_host(), &t) < 0)
		return;
	struct yk_backend *b = yk_backend_add(t, file);
	if (!b || b->table.probe(&n) < 0)
		return;
	for (uint32_t i = 0; i < n && i < YK_MAX_DEVICES; i++) {
		struct yoke_device_info info = { .size = sizeof info };
		b->table.device_info(i, &info);
	}
}

int main(int argc, char **argv)
{
	static const int deadly[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
	struct rlimit none = { 0, 0 };

	bool help = argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"));
	bool version = argc == 2 && !strcmp(argv[1], "--version");
	if (help)
		puts("usage: yoke-probe PLUGIN | --loader | --icd LIBRARY\n\n"
		     "Tests a plugin, the OpenCL loader or an OpenCL driver in a separate process, "
		     "which may crash. yoke runs it itself.");
	if (version)
		printf("yoke-probe %s\n", yoke_version());
	if (help || version)
		return fflush(stdout) || ferror(stdout);
	bool loader = argc == 2 && !strcmp(argv[1], "--loader");
	bool icd = argc == 3 && !strcmp(argv[1], "--icd");
	if (argc != 2 && !icd) {
		fprintf(stderr, "yoke-probe: needs one plugin file, --loader or --icd LIBRARY; "
				"yoke runs it itself\n");
		return 2;
	}
	setrlimit(RLIMIT_CORE, &none);
	for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
		signal(deadly[i],
		       SIG_DFL); // so that a sanitizer's handler does not replace the signal
	yk_end_with_parent(SIGKILL);
	yk_watch_parent(SIGKILL);
	// a separate descriptor, because drivers print to stdout
	int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return 2;
	char *text = NULL;
	size_t n = 0;
	FILE *answer = open_memstream(&text, &n);
	if (!answer)
		return 2;
	if (loader)
		yk_probe_loader(answer);
	else if (icd)
		yk_probe_icd(answer, argv[2]);
	else
		query_plugin(argv[1]);
	if (!loader && !icd)
		dl_iterate_phdr(add_library, answer); // the result depends on these libraries
	if (fclose(answer)) // writes the NUL
		return 2;
	_exit(write(out, text, n + 1) == (ssize_t)(n + 1) ? 0 : 2);
}
