// SPDX-License-Identifier: Apache-2.0
// The library's version, and functions over the table of dtypes.
#include "config.h"

#include "yoke.h"

const char *yoke_version(void)
{
	return PACKAGE_VERSION;
}

const char *yoke_dtype_name(int dtype)
{
	switch (dtype) {
#define X(name, number, bytes) case number: return #name;
	YOKE_DTYPES(X)
#undef X
	}
	return "?";
}

size_t yoke_dtype_size(int dtype)
{
	switch (dtype) {
#define X(name, number, bytes) case number: return bytes;
	YOKE_DTYPES(X)
#undef X
	}
	return 0;
}
