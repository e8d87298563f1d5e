// SPDX-License-Identifier: Apache-2.0
// Errors: one code and one line of detail a thread; the first stays until it is cleared.
#ifndef YK_ERROR_H
#define YK_ERROR_H

#include <stdarg.h>

#include "yoke.h"

// Records code and a formatted line unless the thread has an error already; returns code.
int yk_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// The code of the last one recorded or kept from being: that of a call that failed just now by giving
// NULL or the like, whatever error came first.
int yk_error_last(void);
// Is there an object?  0; for NULL, which an earlier error gave, that error's code, or EINVAL when there was none:
// "scaler_scale: the scaler is NULL".  call: the public function, with or without yoke_.
int yk_given_as(const void *object, const char *call, const char *what);
#define yk_given(object, what) yk_given_as(object, __func__, what)
int yk_vfail(int code, const char *fmt, va_list ap);
// Takes the thread's error away, and gives it back in the place of any other: for what must not disturb
// it, like checks between two steps of a plan.  NULL: there was none (or no memory).
struct yk_error_aside;
struct yk_error_aside *yk_error_aside(void);
void yk_error_back(struct yk_error_aside *);
// The table's text: "out of memory".
const char *yk_error_text(int code);

#endif
