// SPDX-License-Identifier: Apache-2.0
// The installable OpenCL drivers (ICDs) of this machine, found where the loader looks for them.
#ifndef YK_ICD_H
#define YK_ICD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct yk_icd {
	char *file;    // the .icd file; "" when the environment names the library itself
	char *library; // its first line, without what is wrong with it; "" when it cannot be read
	int error;     // errno of reading the file
	const char *flaw; // what keeps the loader from using a file that can be read, or NULL
	bool blocks;   // the loader would wait at this file: it is a FIFO or a terminal
};

// X(name, text): what became of the search.
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
	char path[PATH_MAX];     // folder or file that was looked at
	const char *from;        // the variable that named it, or ""
	enum yk_icd_state state;
	int error;               // errno behind MISSING and UNREADABLE
	struct yk_icd *at;
	size_t n;
};

// By OCL_ICD_VENDORS (a folder, an .icd file or a library) or else OPENCL_VENDOR_PATH or else
// /etc/OpenCL/vendors, as libOpenCL(7) of ocl-icd says; opens no library.
void yk_icds_find(struct yk_icds *);
void yk_icds_free(struct yk_icds *);

#endif
