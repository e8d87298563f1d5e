// SPDX-License-Identifier: Apache-2.0
// Lists this machine's installable OpenCL drivers (ICDs), searched by the same rules as the OpenCL
// loader.
#ifndef YK_ICD_H
#define YK_ICD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct yk_icd {
	char *file;    // the .icd file; "" if the environment names the library itself
	char *library; // its first line, cleaned up; "" if it cannot be read
	int error;     // errno of reading the file
	const char *flaw; // why the loader would not use a readable file, or NULL
	bool blocks;   // the loader would block on this file: a FIFO or a terminal
};

// X(name, text): the outcome of the search.
#define YK_ICD_STATES(X) \
	X(FOUND, "found") \
	X(MISSING, "missing") \
	X(EMPTY, "empty") \
	X(UNREADABLE, "unreadable")

enum yk_icd_state {
#define X(name, text) YK_ICD_##name,
	YK_ICD_STATES(X)
#undef X
};

struct yk_icds {
	char path[PATH_MAX];     // the directory or file that was searched
	const char *from;        // the environment variable that named it, or ""
	enum yk_icd_state state;
	int error;               // errno, for MISSING and UNREADABLE
	struct yk_icd *at;
	size_t n;
};

// Searches OCL_ICD_VENDORS (a directory, an .icd file or a library), else OPENCL_VENDOR_PATH, else
// /etc/OpenCL/vendors, as libOpenCL(7) of ocl-icd specifies; opens no library.
void yk_icds_find(struct yk_icds *);
void yk_icds_free(struct yk_icds *);

#endif
