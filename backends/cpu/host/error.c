// SPDX-License-Identifier: Apache-2.0
// Reporting to the core: error messages, warnings, and the error for use in a forked child.
#include "config.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "frame.h"

const struct yoke_host *yk_cpu_host;

static atomic_bool forked;

static void after_fork(void)
{
	forked = true;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork);
}

void yk_cpu_lend(const struct yoke_host *host)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	yk_cpu_host = host;
	pthread_once(&once, watch_forks);
}

int yk_cpu_fail(int code, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (yk_cpu_host && yk_cpu_host->error)
		yk_cpu_host->error(code, text);
	return code;
}

void yk_cpu_promoted(uint64_t rows)
{
	if (yk_cpu_host && yk_cpu_host->size >= offsetof(struct yoke_host, promoted) +
							sizeof yk_cpu_host->promoted)
		yk_cpu_host->promoted(rows);
}

void yk_cpu_warn(const char *text)
{
	if (yk_cpu_host && yk_cpu_host->log)
		yk_cpu_host->log(YOKE_LOG_WARN, "cpu", text);
}

int yk_cpu_forked(void)
{
	return !forked ? 0 :
			 yk_cpu_fail(YOKE_EFORK,
				     "the CPU backend was started before this process was forked "
				     "off and has no threads here; fork first, or exec");
}
