// SPDX-License-Identifier: Apache-2.0
// Protects the command against a plugin that passed its trial in a child process and still kills
// this process.  A program that can be restarted without harm registers itself.  If a fatal signal,
// exit() or a hang then occurs in a plugin's code, the program restarts with the same arguments and
// skips that plugin.
#ifndef YK_PLUGIN_GUARD_H
#define YK_PLUGIN_GUARD_H

#include <stdbool.h>
#include <stddef.h>

// Registers this program.  argv must stay valid and unchanged.
void yk_guard_program(char **argv);
// Before and after code of the plugin in this file runs; calls do not nest.
void yk_guard_begin(const char *file);
void yk_guard_end(void);
// Did the process that this one replaces end in the plugin in this file? If so, how.
bool yk_guard_crashed(const char *file, char *outcome, size_t cap);

#endif
