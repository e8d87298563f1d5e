// SPDX-License-Identifier: Apache-2.0
// Errors: one code and one line of detail a thread; the first stays until it is cleared.
#ifndef YK_ERROR_H
#define YK_ERROR_H

#include <stdarg.h>

#include "yoke.h"

// Records code and a formatted line unless the thread has an error already; returns code.
int yk_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int yk_vfail(int code, const char *fmt, va_list ap);
// The table's text: "out of memory".
const char *yk_error_text(int code);

#endif
