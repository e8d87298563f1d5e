// SPDX-License-Identifier: Apache-2.0
// Finds the installable OpenCL drivers in the order of the loader's rules.
#include "config.h"

#include "device/icd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int is_icd(const char *name)
{
	size_t n = strlen(name);
	return n > 4 && !strcmp(name + n - 4, ".icd");
}

static void add(struct yk_icds *to, const struct yk_icd *found)
{
	struct yk_icd *more = realloc(to->at, (to->n + 1) * sizeof *more);
	if (!more)
		return;
	to->at = more;
	struct yk_icd d = *found;
	d.file = strdup(d.file);
	d.library = strdup(d.library);
	if (d.file && d.library) {
		to->at[to->n++] = d;
		return;
	}
	free(d.file);
	free(d.library);
}

// The loader uses the first line up to its line feed as the library's name, whatever else it
// contains.  Characters that no library name intentionally has are cut off here and reported as the
// file's flaw.
static const char *trim(char *line, size_t bytes)
{
	static const char mark[] = "\xef\xbb\xbf";
	const char *flaw = NULL;
	const unsigned char *b = (const unsigned char *)line;

	if (bytes >= 2 && ((b[0] == 0xff && b[1] == 0xfe) || (b[0] == 0xfe && b[1] == 0xff))) {
		*line = '\0';
		return "is UTF-16 text, which the OpenCL loader cannot read";
	}
	line[strcspn(line, "\n")] = '\0';
	size_t n = strlen(line), kept = n;
	while (kept && (line[kept - 1] == ' ' || line[kept - 1] == '\t' || line[kept - 1] == '\r'))
		kept--;
	if (kept < n)
		flaw = line[n - 1] == '\r' ?
			       "has a carriage return at the end of its line (text from Windows), which the "
			       "OpenCL loader takes as part of the library's name" :
			       "has blanks at the end of its line, which the OpenCL loader takes as part of "
			       "the library's name";
	line[kept] = '\0';
	if (!strncmp(line, mark, 3)) {
		memmove(line, line + 3, kept - 2);
		flaw = "begins with a byte order mark, which the OpenCL loader takes as part of the library's name";
	}
	return *line ? flaw : NULL; // without a name, no other flaw matters
}

// Would reading block?  A FIFO may have no writer and a device no data, except Linux's null, zero
// and full: a link to /dev/null is a common way to disable a driver.
static bool waits(const struct stat *st)
{
	const dev_t d = st->st_rdev;
	const bool harmless = major(d) == 1 && (minor(d) == 3 || minor(d) == 5 || minor(d) == 7);

	return S_ISFIFO(st->st_mode) || (S_ISCHR(st->st_mode) && !harmless);
}

static void add_file(struct yk_icds *to, const char *file)
{
	char line[PATH_MAX] = "";
	struct yk_icd d = { .file = (char *)(uintptr_t)file, .library = line };
	struct stat st;

	if (stat(file, &st) < 0) {
		d.error = errno;
	} else if (!S_ISREG(st.st_mode)) {
		d.blocks = waits(&st);
		d.flaw =
			d.blocks ?
				"is no regular file, and the OpenCL loader would wait for it without end" :
				"is no regular file";
	} else {
		int fd = open(file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
		d.error = n < 0 ? errno : 0;
		d.flaw = trim(line, n > 0 ? (size_t)n : 0);
		if (fd >= 0)
			close(fd);
	}
	add(to, &d);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int filter(const struct dirent *e)
{
	return is_icd(e->d_name);
}

static void find_folder(struct yk_icds *to)
{
	struct dirent **entry = NULL;
	char path[PATH_MAX];
	int n = scandir(to->path, &entry, filter, by_name);

	if (n < 0) {
		to->error = errno;
		to->state =
			errno == ENOENT || errno == ENOTDIR ? YK_ICD_MISSING : YK_ICD_UNREADABLE;
		return;
	}
	for (int i = 0; i < n; i++) {
		if (snprintf(path, sizeof path, "%s/%s", to->path, entry[i]->d_name) <
		    (int)sizeof path)
			add_file(to, path);
		free(entry[i]);
	}
	free(entry);
	to->state = to->n ? YK_ICD_FOUND : YK_ICD_EMPTY;
}

static const char *variable(const char *name)
{
	const char *value = getenv(name);
	return value && *value ? value : NULL;
}

void yk_icds_find(struct yk_icds *to)
{
	const char *vendors = variable("OCL_ICD_VENDORS"), *path = variable("OPENCL_VENDOR_PATH");
	const char *folder = path ? path : "/etc/OpenCL/vendors";
	struct stat st;

	memset(to, 0, sizeof *to);
	to->from = vendors ? "OCL_ICD_VENDORS" : path ? "OPENCL_VENDOR_PATH" : "";
	snprintf(to->path, sizeof to->path, "%s", vendors ? vendors : folder);
	if (!vendors || (!stat(vendors, &st) && S_ISDIR(st.st_mode))) {
		find_folder(to);
		return;
	}
	if (is_icd(vendors)) {
		char there[PATH_MAX];
		int n = snprintf(there, sizeof there, "%s/%s", folder, vendors);
		if (!strchr(vendors, '/') && n < (int)sizeof there && !stat(there, &st))
			snprintf(to->path, sizeof to->path, "%s", there);
		add_file(to, to->path);
		to->error = to->n ? to->at[0].error : ENOMEM;
		to->state = !to->error		   ? YK_ICD_FOUND :
			    to->error == ENOENT ? YK_ICD_MISSING :
						  YK_ICD_UNREADABLE;
		return;
	}
	// the loader treats it as a library and searches for it as dlopen does
	add(to, &(struct yk_icd){ .file = (char *)(uintptr_t) "",
				  .library = (char *)(uintptr_t)vendors });
	if (strchr(vendors, '/') && stat(vendors, &st) < 0) {
		to->error = errno;
		to->state = YK_ICD_MISSING;
	}
}

void yk_icds_free(struct yk_icds *icds)
{
	for (size_t i = 0; i < icds->n; i++) {
		free(icds->at[i].file);
		free(icds->at[i].library);
	}
	free(icds->at);
	memset(icds, 0, sizeof *icds);
}
