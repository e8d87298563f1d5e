// SPDX-License-Identifier: Apache-2.0
// Errors: one code and one message per thread; the first error is kept until it is cleared.
#ifndef YK_ERROR_H
#define YK_ERROR_H

#include <stdarg.h>

#include "yoke.h"

// Records the code and a formatted message unless the thread already has an error; returns the
// code.
int yk_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// The code of the last yk_fail, whether it was recorded or not: the code of a call that just failed
// by returning NULL, for example, even if an earlier error is still recorded.
int yk_error_last(void);
// Checks an argument: 0 if object is not NULL.  Else the code of the last error, which presumably
// caused the NULL, or EINVAL if there was none: "scaler_scale: the scaler is NULL".  call: the
// public function, with or without yoke_.
int yk_require_as(const void *object, const char *call, const char *what);
#define yk_require(object, what) yk_require_as(object, __func__, what)
int yk_vfail(int code, const char *fmt, va_list ap);
// Removes the thread's error and later restores it, replacing any other: for code that must not
// affect the error, such as checks between two steps of a plan.  NULL: there was none (or no
// memory).
struct yk_error_aside;
struct yk_error_aside *yk_error_aside(void);
void yk_error_restore(struct yk_error_aside *);
// The standard text of a code: "out of memory".
const char *yk_error_text(int code);

#endif
