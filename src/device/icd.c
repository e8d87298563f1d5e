// SPDX-License-Identifier: Apache-2.0
// Finds the installable OpenCL drivers in the order of the loader's rules.
#include "config.h"

#include "device/icd.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int is_icd(const char *name)
{
	size_t n = strlen(name);
	return n > 4 && !strcmp(name + n - 4, ".icd");
}

static void add(struct yk_icds *to, const char *file, const char *library, int error)
{
	struct yk_icd *more = realloc(to->at, (to->n + 1) * sizeof *more);
	if (!more)
		return;
	to->at = more;
	struct yk_icd d = { strdup(file), strdup(library), error };
	if (d.file && d.library) {
		to->at[to->n++] = d;
		return;
	}
	free(d.file);
	free(d.library);
}

static void add_file(struct yk_icds *to, const char *file)
{
	char line[PATH_MAX] = "";
	FILE *f = fopen(file, "re");
	int error = f ? 0 : errno;

	if (f && !fgets(line, sizeof line, f))
		line[0] = '\0';
	if (f)
		fclose(f);
	line[strcspn(line, "\r\n")] = '\0';
	add(to, file, line, error);
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
		to->state = errno == ENOENT || errno == ENOTDIR ? YK_ICD_MISSING : YK_ICD_UNREADABLE;
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
	// the loader takes it for a library, which it looks for as dlopen does
	add(to, "", vendors, 0);
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
