// SPDX-License-Identifier: Apache-2.0
// The key of a plugin's verdict: one line for each fact on which the outcome of a trial depends.
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/param.h"
#include "base/system.h"
#include "device/icd.h"
#include "device/nodes.h"
#include "device/verdict.h"
#include "yoke-plugin.h"

// ---- files ----

void yk_stamp_file(FILE *to, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		fprintf(to, "%s: %d\n", path, errno);
	else
		fprintf(to, "%s: %llu %llu %lld %lld.%09ld\n", path, (unsigned long long)st.st_dev,
			(unsigned long long)st.st_ino, (long long)st.st_size,
			(long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

static void add_first_line(FILE *to, const char *path)
{
	char line[256] = "";
	FILE *f = fopen(path, "re");

	if (f && !fgets(line, sizeof line, f))
		line[0] = '\0';
	if (f)
		fclose(f);
	line[strcspn(line, "\n")] = '\0';
	fprintf(to, "%s: %s\n", path, line);
}

// The files that list the machine's OpenCL drivers, and the libraries they name.  A library without
// a path is found through the linker's cache or a directory in LD_LIBRARY_PATH.
static void add_drivers(FILE *to)
{
	const char *list = getenv("LD_LIBRARY_PATH");
	char *folders = strdup(list ? list : ""), *rest = folders, *folder;
	struct yk_icds icds;

	yk_stamp_file(to, "/etc/ld.so.cache");
	while (folders && (folder = strsep(&rest, ":")))
		if (*folder)
			yk_stamp_file(to, folder);
	free(folders);
	yk_icds_find(&icds);
	yk_stamp_file(to, icds.path);
	for (size_t i = 0; i < icds.n; i++) {
		fprintf(to, "%s\n", icds.at[i].library);
		if (*icds.at[i].file)
			yk_stamp_file(to, icds.at[i].file);
		if (*icds.at[i].library == '/')
			yk_stamp_file(to, icds.at[i].library);
	}
	yk_icds_free(&icds);
}

// ---- the kernel's state ----

// Mounts over the file systems in which drivers find devices: "/sys sysfs /".
static void add_mounts(FILE *to)
{
	static const char *const trees[] = { "/sys", "/proc", "/dev" };
	static const char *const witnesses[] = { "/sys/devices/system/cpu",
						 "/sys/bus/pci/devices",
						 "/proc/self",
						 "/dev/null",
						 "/dev/shm",
						 "/tmp" };
	char line[4096], root[4096], point[4096];
	FILE *f = fopen("/proc/self/mountinfo", "re");

	while (f && fgets(line, sizeof line, f)) {
		const char *type = strstr(line, " - ");
		bool counts = type && sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) == 2;
		if (counts && strcmp(point, "/")) {
			counts = false;
			for (size_t i = 0; i < sizeof trees / sizeof *trees; i++)
				counts |= !strncmp(point, trees[i], strlen(trees[i]));
		}
		if (counts)
			fprintf(to, "%s %.*s %s\n", point, (int)strcspn(type + 3, " \n"), type + 3,
				root);
	}
	if (f)
		fclose(f);
	for (size_t i = 0; i < sizeof witnesses / sizeof *witnesses; i++) // also without /proc
		fprintf(to, "%s: %d\n", witnesses[i], access(witnesses[i], R_OK) ? errno : 0);
}

static bool add_node(const char *path, void *arg)
{
	FILE *to = arg;
	struct stat st;

	if (!stat(path, &st))
		fprintf(to, "%s: %llu %o %u %u %d\n", path, (unsigned long long)st.st_rdev,
			(unsigned)st.st_mode, (unsigned)st.st_uid, (unsigned)st.st_gid,
			faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS));
	return true;
}

static void add_process(FILE *to)
{
	static const int limits[] = { RLIMIT_AS,      RLIMIT_DATA,  RLIMIT_FSIZE, RLIMIT_MEMLOCK,
				      RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_STACK };
	gid_t groups[256];
	struct rlimit limit;

	fprintf(to, "user %u %u %u %u\n", (unsigned)getuid(), (unsigned)geteuid(),
		(unsigned)getgid(), (unsigned)getegid());
	const int n = getgroups(sizeof groups / sizeof *groups, groups);
	for (int i = 0; i < n; i++)
		fprintf(to, "group %u\n", (unsigned)groups[i]);
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
		if (!getrlimit((unsigned)limits[i], &limit))
			fprintf(to, "limit %d %llu\n", limits[i],
				(unsigned long long)limit.rlim_cur);
	fprintf(to, "processors %d\n", yk_processors());
}

// ---- the environment ----

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

// A driver, the linker or a plugin may read any variable.  These vary between sessions, terminals,
// jobs and ranks, and no driver reads them; variables of yoke's core do not affect plugins either.
static bool is_volatile(const char *entry)
{
	static const char *const names[] = {
		"_=",
		"COLUMNS=",
		"DBUS_",
		"GPG_",
		"HIST",
		"HYDRA",
		"HYDI_",
		"INVOCATION_ID=",
		"JOURNAL_STREAM=",
		"LESS",
		"LINES=",
		"LSB_",
		"LS_COLORS=",
		"MAKE",
		"MFLAGS=",
		"MPIEXEC",
		"MPIR_",
		"MPI_",
		"OLDPWD=",
		"OMPI_",
		"PALS_",
		"PBS_",
		"PMIX_",
		"PMI_",
		"PRTE_",
		"PS1=",
		"PWD=",
		"SHLVL=",
		"SLURM",
		"SSH_",
		"STY=",
		"TERM",
		"TMUX",
		"WINDOW",
		"XDG_SESSION",
		"XDG_VTNR=",
		"YOKE_BACKEND=",
		"YOKE_DEVICE=",
		"YOKE_LOG",
		"YOKE_PLUGIN_REMEMBER=",
		"YOKE_RANK",
		"YOKE_TEST_",
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strncmp(entry, names[i], strlen(names[i])))
			return true;
	return false;
}

// As a hash, because variables may hold secrets that must not be written to a file.
static void add_environment(FILE *to)
{
	size_t kept = 0;
	uint64_t hash[2] = { 0, 1 };

	char **list = yk_param_environment(); // as the child will see it
	for (size_t i = 0; list && list[i]; i++)
		if (!is_volatile(list[i]))
			list[kept++] = list[i];
	if (list)
		qsort(list, kept, sizeof *list, by_text);
	for (size_t i = 0; i < kept; i++)
		for (size_t k = 0; k < 2; k++)
			hash[k] = yk_hash(list[i], strlen(list[i]) + 1, hash[k]);
	fprintf(to, "environment %016llx%016llx\n", (unsigned long long)hash[0],
		(unsigned long long)hash[1]);
	free(list);
}

char *yk_verdict_key(const char *file, const char *helper, size_t *bytes)
{
	char *key = NULL, boot[64];
	FILE *to = open_memstream(&key, bytes);

	if (!to)
		return NULL;
	fprintf(to, "probe 4 of yoke %s, ABI %x\n", PACKAGE_VERSION, YOKE_ABI);
	yk_stamp_file(to, file);
	yk_stamp_file(to, helper);
	add_drivers(to);
	// the state of a device and of a kernel module ends with the boot
	yk_boot_id(boot);
	fprintf(to, "boot %s\n", boot);
	add_first_line(to, "/proc/driver/nvidia/version");
	add_mounts(to);
	yk_nodes_each("/dev", add_node, to);
	add_process(to);
	add_environment(to);
	if (fclose(to) == 0)
		return key;
	free(key);
	return NULL;
}
