// SPDX-License-Identifier: Apache-2.0
// Defines and keys of kernels in text, at every launch: a snprintf for %d, %zu, %lld and %s alone, a tenth
// of whose time would be a tenth of a launch.
#include "config.h"

#include <stdarg.h>
#include <string.h>

#include "opencl.h"

struct out {
	char *to;
	size_t cap, n; // n: as if there were room for all
};

static void put(struct out *o, const char *text, size_t bytes)
{
	if (o->n < o->cap)
		memcpy(o->to + o->n, text, bytes < o->cap - o->n ? bytes : o->cap - o->n);
	o->n += bytes;
}

static void put_number(struct out *o, unsigned long long value, bool negative)
{
	char digits[24];
	size_t at = sizeof digits;

	do
		digits[--at] = (char)('0' + value % 10);
	while (value /= 10);
	if (negative)
		digits[--at] = '-';
	put(o, digits + at, sizeof digits - at);
}

static void put_signed(struct out *o, long long value)
{
	put_number(o, value < 0 ? 0 - (unsigned long long)value : (unsigned long long)value, value < 0);
}

int yk_cl_format(char *to, size_t cap, const char *fmt, ...)
{
	struct out o = { to, cap, 0 };
	va_list ap;

	va_start(ap, fmt);
	while (*fmt) {
		size_t n = 0;
		while (fmt[n] && fmt[n] != '%')
			n++;
		put(&o, fmt, n);
		fmt += n;
		if (!strncmp(fmt, "%d", 2)) {
			put_signed(&o, va_arg(ap, int));
			fmt += 2;
		} else if (!strncmp(fmt, "%s", 2)) {
			const char *text = va_arg(ap, const char *);
			put(&o, text, strlen(text));
			fmt += 2;
		} else if (!strncmp(fmt, "%zu", 3)) {
			put_number(&o, va_arg(ap, size_t), false);
			fmt += 3;
		} else if (!strncmp(fmt, "%lld", 4)) {
			put_signed(&o, va_arg(ap, long long));
			fmt += 4;
		} else if (*fmt) { // nothing else is known
			put(&o, fmt++, 1);
		}
	}
	va_end(ap);
	if (cap)
		to[o.n < cap ? o.n : cap - 1] = '\0';
	return (int)o.n;
}
