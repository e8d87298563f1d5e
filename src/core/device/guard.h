// SPDX-License-Identifier: Apache-2.0
// Protects the command against a plugin that survived its trial in a child process and ends this process all the same.
// A program that can be started anew without harm registers itself; while a plugin is loaded, a deadly signal, exit()
// or a hang then starts the program anew with the same arguments, and the new process leaves that plugin alone.
#ifndef YK_PLUGIN_GUARD_H
#define YK_PLUGIN_GUARD_H

#include <stdbool.h>
#include <stddef.h>

// Registers this program. argv has to stay as it is.
void yk_guard_program(char **argv);
// Before and after code of the plugin in this file runs; calls do not nest.
void yk_guard_begin(const char *file);
void yk_guard_end(void);
// Did the process that this one replaces end in the plugin in this file? If so, how.
bool yk_guard_crashed(const char *file, char *outcome, size_t cap);

#endif
