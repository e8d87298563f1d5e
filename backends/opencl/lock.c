// SPDX-License-Identifier: Apache-2.0
// A lock that lets only one process at a time compile with PoCL: PoCL's cache, shared by processes,
// is read while being written, and a build then fails without a message (seen with PoCL 3.1, 16
// processes at once). It is an operating system lock on the cache's directory and ends with its
// holder.
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "opencl.h"

// Do not wait longer for a holder that may be stopped.
static const int longest = 60000; // milliseconds

static int open_folder(void)
{
	const bool trusts = getuid() == geteuid() && getgid() == getegid(); // not a setuid program
	const char *set = trusts ? getenv("POCL_CACHE_DIR") : NULL,
		   *xdg = trusts ? getenv("XDG_CACHE_HOME") : NULL,
		   *home = trusts ? getenv("HOME") : NULL;
	char path[PATH_MAX];
	int n = -1;

	if (set && *set)
		n = snprintf(path, sizeof path, "%s", set);
	else if (xdg && *xdg)
		n = snprintf(path, sizeof path, "%s/pocl", xdg);
	else if (home && *home)
		n = snprintf(path, sizeof path, "%s/.cache/pocl", home);
	return n < 0 || n >= (int)sizeof path ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int yk_cl_build_lock(struct yk_gpu_device *d)
{
	char name[64] = "";

	clGetPlatformInfo(yk_cl_of(d)->platform, CL_PLATFORM_NAME, sizeof name, name, NULL);
	if (strncmp(name, "Portable Computing Language", sizeof name))
		return -1;
	int fd = open_folder();
	for (int ms = 0; fd >= 0 && ms < longest; ms += 5) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return fd;
		if (errno != EWOULDBLOCK && errno != EINTR)
			break;
		nanosleep(&(struct timespec){ 0, 5000000 }, NULL);
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

void yk_cl_build_unlock(int lock)
{
	close(lock);
}
