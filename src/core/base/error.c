// SPDX-License-Identifier: Apache-2.0
// The error of a thread: the first one is kept, with its message, until it is cleared.
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"

struct error {
	int code; // 0: none
	char text[2048];
};

static _Thread_local struct error first;
static _Thread_local int last;

int yk_vfail(int code, const char *fmt, va_list ap)
{
	static const char cut[] = " ...";

	if (code)
		last = code;
	if (first.code || !code)
		return code;
	int n = yk_vsnprintf(first.text, sizeof first.text, fmt, ap);
	if (n >= (int)sizeof first.text)
		memcpy(first.text + sizeof first.text - sizeof cut, cut, sizeof cut);
	for (char *c = first.text; *c; c++) // keep it one line, whatever an outside name contains
		if (iscntrl((unsigned char)*c))
			*c = '?';
	first.code = code;
	return code;
}

int yk_fail(int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	yk_vfail(code, fmt, ap);
	va_end(ap);
	return code;
}

int yk_require_as(const void *object, const char *call, const char *what)
{
	if (object)
		return 0;
	if (first.code)
		return last = first.code;
	return yk_fail(YOKE_EINVAL, "%s: the %s is NULL",
		       strncmp(call, "yoke_", 5) ? call : call + 5, what);
}

struct yk_error_aside {
	struct error error;
};

struct yk_error_aside *yk_error_aside(void)
{
	struct yk_error_aside *a = first.code ? malloc(sizeof *a) : NULL;
	if (a) {
		a->error = first;
		yoke_error_clear();
	}
	return a;
}

void yk_error_restore(struct yk_error_aside *a)
{
	yoke_error_clear();
	if (a)
		first = a->error;
	free(a);
}

const char *yk_error_text(int code)
{
	switch (code) {
	case YOKE_OK: return "success";
#define X(name, number, text) case YOKE_##name: return text;
	YOKE_ERRORS(X)
#undef X
	}
	return "unknown error";
}

const char *yoke_error_name(int code)
{
	switch (code) {
	case YOKE_OK: return "YOKE_OK";
#define X(name, number, text) case YOKE_##name: return "YOKE_" #name;
	YOKE_ERRORS(X)
#undef X
	}
	return "?";
}

const char *yoke_error(void)
{
	return first.code ? first.text : "";
}

int yoke_error_code(void)
{
	return first.code;
}

int yk_error_last(void)
{
	return last ? last : first.code ? first.code : YOKE_EINVAL;
}

void yoke_error_clear(void)
{
	first.code = last = 0;
}
