// SPDX-License-Identifier: Apache-2.0
// Error messages of GPU backends: one line with the driver's call, its code and the device.
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gpu.h"

static _Thread_local bool trying;

bool yk_gpu_trying(bool now)
{
	const bool before = trying;

	trying = now;
	return before;
}

int yk_gpu_error(int code, const char *fmt, ...)
{
	char line[900];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (trying)
		yk_gpu_log(YOKE_LOG_INFO, "%s", line);
	else
		yk_gpu_host->error(code, line);
	return code;
}

int yk_gpu_fail(const struct yk_gpu_device *d, const char *call, int code)
{
	const int error = yk_gpu_driver.is_memory(code) ? YOKE_ENOMEM : YOKE_EDEVICE;
	const char *name = yk_gpu_driver.code_name(code);

	const char *help = yk_gpu_driver.code_help ? yk_gpu_driver.code_help(code) : NULL;
	const char *colon = help ? ": " : "";

	help = help ? help : "";
	if (!d)
		return yk_gpu_error(error, "%s: %s (%d)%s%s", call, name, code, colon, help);
	return yk_gpu_error(error, "%s: %s (%d) on %s:%u (%s, %s)%s%s", call, name, code,
			    yk_gpu_driver.name, d->index, d->info.name, d->info.driver, colon,
			    help);
}

int yk_gpu_check(const struct yk_gpu_device *d, const char *call, int code)
{
	return code ? yk_gpu_fail(d, call, code) : 0;
}

int yk_gpu_build_failed(const struct yk_gpu_device *d, const char *call, int code,
			const char *kernel, const char *options, const char *message)
{
	yk_gpu_log(YOKE_LOG_DEBUG, "build of %s with %s: %s", kernel, options, message);
	return yk_gpu_error(YOKE_EUNSUPPORTED,
			    "%s: %s on %s:%u (%s, %s), kernel %s, options %s: %.400s",
			    call, yk_gpu_driver.code_name(code), yk_gpu_driver.name,
			    d->index, d->info.name, d->info.driver, kernel, options,
			    message);
}

void yk_gpu_log(int level, const char *fmt, ...)
{
	char line[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	yk_gpu_host->log(level, yk_gpu_driver.name, line);
}

char yk_gpu_reason[900];

void yk_gpu_leave_out(int level, const char *fmt, ...)
{
	char line[700];
	size_t n = strlen(yk_gpu_reason);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	yk_gpu_log(level, "%s", line);
	snprintf(yk_gpu_reason + n, sizeof yk_gpu_reason - n, "%s%s", n ? "; " : "", line);
}
