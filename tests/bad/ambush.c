// SPDX-License-Identifier: Apache-2.0
// A plugin that behaves in yoke-probe and misbehaves in every other process, as YOKE_TEST_AMBUSH
// names: abort, segv, exit, hang (until an alarm set by the caller) or info (abort when its
// device is queried). Otherwise it loads the library YOKE_TEST_LIBRARY and behaves.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define NAME "ambush"
#define OWN_INFO
#include "bad.h"

static void attack(const char *now)
{
	const char *how = getenv("YOKE_TEST_AMBUSH");

	if (!how || strstr(program_invocation_short_name, "yoke-probe") || !strstr(now, how))
		return;
	if (!strcmp(how, "abort") || !strcmp(how, "info"))
		abort();
	if (!strcmp(how, "segv"))
		raise(SIGSEGV);
	if (!strcmp(how, "exit"))
		exit(0);
	if (alarm(0) > 0)
		raise(SIGALRM);
	for (;;)
		pause();
}

__attribute__((constructor)) static void load(void)
{
	const char *library = getenv("YOKE_TEST_LIBRARY");

	if (library)
		dlopen(library, RTLD_NOW);
	attack("abort segv exit hang");
}

static int device_info(uint32_t device, struct yoke_device_info *i)
{
	(void)device;
	attack("info");
	i->kind = YOKE_DEVICE_OTHER;
	i->memory = i->max_segment = 1 << 30;
	i->align = 64;
	strcpy(i->name, "nothing");
	return 0;
}
