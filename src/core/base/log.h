// SPDX-License-Identifier: Apache-2.0
// The log: lines on stderr, or to a callback.  YOKE_LOG lists a level (error, warn, info, debug;
// default warn) and topics ("plan", "pool") whose lines are shown at every level.
#ifndef YK_LOG_H
#define YK_LOG_H

#include <stdbool.h>

#include "yoke-plugin.h"

bool yk_log_on(int level, const char *topic); // would a line be shown?
// Logs one line, given without its newline.
void yk_log(int level, const char *topic, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
// Sends lines to fn from now on, one call at a time; NULL: stderr again.  fn must not log.
typedef void yk_log_fn(int level, const char *topic, const char *line, void *arg);
void yk_log_to(yk_log_fn *fn, void *arg);
int yk_log_columns(void); // width of the terminal on stderr; 80 if there is none
#define yk_warn(topic, ...) yk_log(YOKE_LOG_WARN, topic, __VA_ARGS__)
#define yk_info(topic, ...) yk_log(YOKE_LOG_INFO, topic, __VA_ARGS__)

#endif
