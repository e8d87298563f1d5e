// SPDX-License-Identifier: Apache-2.0
// Tests that the embedded kernel texts equal the files of cl/ byte for byte, and that programs
// contain the files that they include.
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

// ---- programs ----

static const char *some_text(const char *name)
{
	static const char *const texts[][2] = {
		{ "prologue_opencl.h", "opencl\n" },
		{ "prologue_cuda.h", "cuda\n" },
		{ "a", "#include \"prologue.h\"\na\n" },
		{ "b", "// b\n\t# include\t\"a\" // needed\nb" },
		{ "c", "#include \"b\"\n#include \"a\"\nc\n" },
		{ "itself", "#include \"itself\"\n" },
		{ "one", "one\n#include \"two\"\n" },
		{ "two", "two\n#include \"one\"\n" },
		{ "lacks", "#include \"nothing\"\n" },
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (!strcmp(texts[i][0], name))
			return texts[i][1];
	return NULL;
}

static void test_programs(void)
{
	static const struct {
		int dialect;
		const char *text, *want;
	} good[] = {
		{ YOKE_DIALECT_OPENCL, "", "" },
		{ YOKE_DIALECT_OPENCL, "x\n#include <a>\n//#include \"none\"\ny",
		  "x\n#include <a>\n//#include \"none\"\ny" },
		{ YOKE_DIALECT_OPENCL, "#include \"a\nx", "#include \"a\nx" },
		{ YOKE_DIALECT_OPENCL, "#include \"a\"\nx\n", "opencl\na\nx\n" },
		{ YOKE_DIALECT_CUDA, "x\n#include \"c\"\n#include \"b\"\nlast",
		  "x\n// b\ncuda\na\nbc\nlast" },
	};
	static const struct {
		const char *text, *says[2];
	} bad[] = {
		{ "#include \"nothing\"", { "\"nothing\"", "the program" } },
		{ "#include \"lacks\"\n", { "\"nothing\"", "lacks" } },
		{ "#include \"itself\"\n", { "\"itself\"", "itself" } },
		{ "#include \"a\"\n#include \"one\"\n", { "\"one\"", "\"two\"" } },
	};
	char got[64];

	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		for (size_t cap = 0; cap <= sizeof got; cap += sizeof got / 8) {
			const size_t n = strlen(good[i].want),
				     some = cap > n ? n : cap ? cap - 1 : 0;
			memset(got, '#', sizeof got);
			int64_t length = yk_kernel_source_of(some_text, good[i].dialect, NULL,
							     good[i].text, got, cap);
			ok(length == (int64_t)n && !memcmp(got, good[i].want, some) &&
				   (!cap || !got[some]) && (cap == sizeof got || got[cap] == '#'),
			   "program %zu in %zu bytes: %lld", i, cap, (long long)length);
		}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		int64_t err = yk_kernel_source_of(some_text, YOKE_DIALECT_OPENCL, NULL, bad[i].text,
						  got, sizeof got);
		ok(err == YOKE_EUNSUPPORTED && strstr(yoke_error(), bad[i].says[0]) &&
			   strstr(yoke_error(), bad[i].says[1]),
		   "bad program %zu: %s", i, yoke_error());
		yoke_error_clear();
	}
	ok(yk_kernel_source(0, NULL, "", NULL, 0) == YOKE_EUNSUPPORTED,
	   "an unknown dialect is refused");
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
		char line[300];
		snprintf(line, sizeof line, "#include \"%s\"\n", entry->d_name);
		ok(yk_kernel_source(YOKE_DIALECT_OPENCL, NULL, line, NULL, 0) > 0,
		   "files that %s includes exist %s", entry->d_name, yoke_error());
		files++;
	}
	closedir(dir);
	ok(files > 0, "%d files", files);
	ok(!yk_kernel_text("none.cl"), "an unknown name is refused");
	ok(!yk_kernel_text(""), "an empty name");
	test_programs();
	return done();
}
