// SPDX-License-Identifier: Apache-2.0
// The embedded kernel texts are the files of cl/, byte for byte.
#include "config.h"

#include <dirent.h>

#include "base/error.h"
#include "base/file.h"
#include "kernel/kerneltext.h"
#include "tap.h"

static bool is_text(const char *name)
{
	const char *dot = strrchr(name, '.');
	return dot && (!strcmp(dot, ".cl") || !strcmp(dot, ".h"));
}

int main(void)
{
	const char *source = getenv("srcdir");
	char folder[2048], path[4096];
	struct dirent *entry;
	int files = 0;

	snprintf(folder, sizeof folder, "%s/cl", source ? source : ".");
	DIR *dir = opendir(folder);
	if (!dir)
		return skip_all("the source tree is not there");
	while ((entry = readdir(dir))) {
		if (!is_text(entry->d_name))
			continue;
		char *want = NULL;
		size_t bytes = 0;
		snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		const char *got = yk_kernel_text(entry->d_name);
		if (yk_file_read(path, 1 << 24, &want, &bytes) < 0)
			diag("%s", yoke_error());
		ok(got && want && strlen(got) == bytes && !memcmp(got, want, bytes),
		   "%s, %zu bytes", entry->d_name, bytes);
		free(want);
		files++;
	}
	closedir(dir);
	ok(files > 0, "%d files", files);
	ok(!yk_kernel_text("none.cl"), "a name that is not there");
	ok(!yk_kernel_text(""), "an empty name");
	return done();
}
