// SPDX-License-Identifier: Apache-2.0
// A case for tests/onnx.py: a model that yoke_onnx_write wrote, as NAME.onnx, the bytes of its
// inputs and of the results that yoke computes, as NAME.in0 .. and NAME.out0 .., and tolerances.
#ifndef YK_TEST_ONNX_CASE_H
#define YK_TEST_ONNX_CASE_H

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tap.h"
#include "yoke-model.h"

static inline void onnx_bytes(const char *name, const char *kind, int i, const void *data,
			      size_t bytes)
{
	char path[400];
	snprintf(path, sizeof path, "%s.%s%d", name, kind, i);
	FILE *f = fopen(path, "wb");
	if (f) {
		fwrite(data, 1, bytes, f);
		fclose(f);
	}
}

static inline bool onnx_tensor(const char *name, const char *kind, int i, yoke_tensor *t)
{
	const size_t bytes = yoke_bytes(t);
	void *to = malloc(bytes + 1);
	const bool good = to && yoke_read(t, to, bytes) == 0;
	if (good)
		onnx_bytes(name, kind, i, to, bytes);
	free(to);
	return good;
}

static inline bool onnx_tensors(const char *name, const char *kind, int n, yoke_tensor *const *t)
{
	bool good = true;
	for (int i = 0; i < n && good; i++)
		good = onnx_tensor(name, kind, i, t[i]);
	return good;
}

// Writes a case; a result differs by at most tol (1 + |result|).  False, with yoke's error.
static inline bool onnx_case(const char *name, int n, yoke_tensor *const *in, int m,
			     yoke_tensor *const *out, double tol,
			     const struct yoke_onnx_options *options)
{
	char path[400], text[40];
	snprintf(path, sizeof path, "%s.onnx", name);
	snprintf(text, sizeof text, "%g\n", tol);
	onnx_bytes(name, "tol", 0, text, strlen(text));
	return yoke_onnx_write(path, n, in, m, out, options) == 0 &&
	       onnx_tensors(name, "in", n, in) && onnx_tensors(name, "out", m, out);
}

static char onnx_script[4096]; // tests/onnx.py, also from other folders

// Called before the folder changes.
static inline void onnx_find(void)
{
	char path[3000], *found;
	const char *source = getenv("srcdir");
	snprintf(path, sizeof path, "%s/tests/onnx.py", source ? source : "..");
	found = realpath(path, NULL);
	snprintf(onnx_script, sizeof onnx_script, "%s", found ? found : path);
	free(found);
}

// Compares the cases in the current folder with onnxruntime, if YOKE_TEST_ONNX (default: python3)
// is a Python with the packages onnx and onnxruntime.
static inline void onnx_compare(int cases)
{
	char command[sizeof onnx_script + 400], line[1000];
	const char *python = getenv("YOKE_TEST_ONNX");
	snprintf(command, sizeof command, "'%s' '%s' . 2>&1", python ? python : "python3",
		 onnx_script);
	FILE *f = popen(command, "r");
	int compared = 0, same = 0;
	while (f && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		const char *space = strchr(line, ' ');
		compared++;
		if (space && !strcmp(space, " same"))
			same++;
		else
			diag("%s", line);
	}
	const int status = f ? pclose(f) : -1;
	if (WIFEXITED(status) && (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127))
		skip("results of onnxruntime",
		     "YOKE_TEST_ONNX names no Python with the packages onnx and onnxruntime");
	else
		ok(compared == cases && same == cases,
		   "onnxruntime computes the same results for %d of %d models", same, cases);
}

#endif
