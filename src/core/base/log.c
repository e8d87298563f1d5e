// SPDX-License-Identifier: Apache-2.0
// The log: filters by level and topic, and writes each line with one call.
#include "config.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/number.h"
#include "base/param.h"

YK_PARAM(log_setting, "log", YK_STRING, "warn",
	 "a level (error, warn, info, debug) and topics shown in full (plan, pool, ..)");

static const char *const level_name[] = { "error", "warn", "info", "debug" };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // protects sink and its argument
static yk_log_fn *sink;                                  // NULL: stderr
static void *sink_arg;

// The next word of a list separated by commas or spaces; NULL at its end.
static const char *next_word(const char **list, size_t *length)
{
	*list += strspn(*list, ", ");
	const char *word = *list;
	*length = strcspn(word, ", ");
	*list += *length;
	return *length ? word : NULL;
}

static bool equal(const char *word, size_t length, const char *name)
{
	return strlen(name) == length && !memcmp(word, name, length);
}

bool yk_log_on(int level, const char *topic)
{
	const char *list = yk_param_str(&log_setting), *word;
	int shown = YOKE_LOG_WARN;
	size_t length;

	while ((word = next_word(&list, &length))) {
		if (topic && equal(word, length, topic))
			return true;
		for (int i = YOKE_LOG_ERROR; i <= YOKE_LOG_DEBUG; i++)
			if (equal(word, length, level_name[i]))
				shown = i;
	}
	return level <= shown;
}

void yk_log_to(yk_log_fn *fn, void *arg)
{
	pthread_mutex_lock(&lock);
	sink = fn;
	sink_arg = arg;
	pthread_mutex_unlock(&lock);
}

void yk_log(int level, const char *topic, const char *fmt, ...)
{
	char line[2048];
	va_list ap;

	if (!yk_log_on(level, topic))
		return;
	va_start(ap, fmt);
	int n = yk_vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	for (char *c = line; *c; c++) // keep it one line, whatever a driver's text contains
		if (*c == '\n' || *c == '\r')
			*c = ' ';
	level = level < 0 ? 0 : level > YOKE_LOG_DEBUG ? YOKE_LOG_DEBUG : level;
	pthread_mutex_lock(&lock);
	if (sink)
		sink(level, topic, line, sink_arg);
	else
		fprintf(stderr, "yoke: %s: %s: %s\n", level_name[level],
			topic ? topic : "", line);
	pthread_mutex_unlock(&lock);
}

static void warn_of_setting(const char *line)
{
	yk_warn("param", "%s", line);
}

__attribute__((constructor)) static void hook_settings(void)
{
	yk_param_warn_hook = warn_of_setting;
}

int yk_log_columns(void)
{
	struct winsize size;
	bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col;
	return known ? size.ws_col : 80;
}
