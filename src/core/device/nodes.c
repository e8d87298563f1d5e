// SPDX-License-Identifier: Apache-2.0
// Device nodes of GPUs, and whether this user may open them.
#include "config.h"

#include "device/nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// NVIDIA, AMD's compute interface, all drivers of the kernel's graphics stack, Arm, Qualcomm, WSL.
static const char *const patterns[] = {
	"nvidia[0-9]*", "nvidiactl",  "nvidia-uvm", "kfd",
	"dri/renderD*", "mali[0-9]*", "kgsl-3d0",   "dxg",
};

static void describe(const char *path, int error, struct yk_device_node *to)
{
	struct stat st;
	struct group entry, *group = NULL;
	char text[4096];

	snprintf(to->path, sizeof to->path, "%s", path);
	to->group[0] = '\0';
	to->error = error;
	if (stat(path, &st) < 0 || (st.st_mode & (S_IRGRP | S_IWGRP)) != (S_IRGRP | S_IWGRP))
		return;
	if (!getgrgid_r(st.st_gid, &entry, text, sizeof text, &group) && group)
		snprintf(to->group, sizeof to->group, "%s", group->gr_name);
	else
		snprintf(to->group, sizeof to->group, "%u", (unsigned)st.st_gid);
}

void yk_nodes_each(const char *dev, bool (*fn)(const char *path, void *arg), void *arg)
{
	bool more = true;

	for (size_t i = 0; i < sizeof patterns / sizeof *patterns && more; i++) {
		char pattern[256];
		glob_t found = { 0 };
		if (snprintf(pattern, sizeof pattern, "%s/%s", dev, patterns[i]) >=
		    (int)sizeof pattern)
			return;
		if (!glob(pattern, 0, NULL, &found))
			for (size_t k = 0; k < found.gl_pathc && more; k++)
				more = fn(found.gl_pathv[k], arg);
		globfree(&found);
	}
}

struct list {
	struct yk_device_node *at;
	size_t n, cap;
};

static bool try_open(const char *path, void *arg)
{
	struct list *l = arg;
	int fd = open(path, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int error = fd < 0 ? errno : 0;

	if (fd >= 0)
		close(fd);
	if (l->n == l->cap)
		return false;
	describe(path, error, &l->at[l->n++]);
	return true;
}

size_t yk_nodes(const char *dev, struct yk_device_node *to, size_t cap)
{
	struct list l = { to, 0, cap };
	yk_nodes_each(dev, try_open, &l);
	return l.n;
}

static bool try_access(const char *path, void *arg)
{
	struct list *l = arg;
	if (!faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) || errno != EACCES)
		return true;
	describe(path, EACCES, &l->at[l->n++]);
	return false;
}

bool yk_node_denied(const char *dev, struct yk_device_node *to)
{
	struct list l = { to, 0, 1 };
	yk_nodes_each(dev, try_access, &l);
	return l.n;
}
