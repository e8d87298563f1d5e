// SPDX-License-Identifier: Apache-2.0
// The log: lines on stderr, or to a function.  YOKE_LOG is a list of a level (error, warn, info,
// debug; warn by default) and of topics ("plan", "pool") whose lines are all shown.
#ifndef YK_LOG_H
#define YK_LOG_H

#include <stdbool.h>

#include "yoke-plugin.h"

bool yk_log_on(int level, const char *topic); // would a line be shown?
// One line, without its newline.
void yk_log(int level, const char *topic, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
// Lines go to fn from now on, one call at a time; NULL: stderr again.  fn must not log.
typedef void yk_log_fn(int level, const char *topic, const char *line, void *arg);
void yk_log_to(yk_log_fn *fn, void *arg);
int yk_log_columns(void); // of the terminal on stderr; 80 where there is none
#define yk_warn(topic, ...) yk_log(YOKE_LOG_WARN, topic, __VA_ARGS__)
#define yk_info(topic, ...) yk_log(YOKE_LOG_INFO, topic, __VA_ARGS__)

#endif
