// SPDX-License-Identifier: Apache-2.0
// Backends: the built-in CPU backend and those loaded from plugin directories.  Each table is
// copied and its missing entries are filled with stubs that return YOKE_EUNSUPPORTED, so callers
// never check for NULL.
#ifndef YK_PLUGIN_LOADER_H
#define YK_PLUGIN_LOADER_H

#include <stdbool.h>

#include "yoke-plugin.h"

struct yk_backend {
	struct yoke_backend table;
	const char *path; // its file; "" for the built-in backend
	bool graphs; // queues can be recorded as graphs
	bool probed;
	uint32_t ndevices;
	const char *why; // why probing failed or a device was refused; else NULL
	struct yk_backend *next;
};

// A backend that reports more devices than this is considered broken.
#define YK_MAX_DEVICES 256

// The outcome for each file and directory that was examined, for `yoke info` and messages.
struct yk_plugin_outcome {
	const char *path;
	const char *text; // "loaded", or why not
	int code;         // 0 or YOKE_E*
	bool folder;      // a directory, not a file
	bool requested;       // YOKE_PLUGIN_PATH names the directory
	struct yk_plugin_outcome *next;
};

// Finds and loads the backends that `list` allows (the syntax of YOKE_BACKEND, NULL: all), each
// name once per process; the CPU backend comes first.  YOKE_BACKEND=cpu opens no file.
struct yk_backend *yk_backends(const char *list);
const struct yk_plugin_outcome *yk_plugin_outcomes(void);
// Finds the first file yoke_mpi_NAME.so in the plugin directories; false: there is none.
bool yk_module_find(const char *name, char *path, size_t cap);
const struct yoke_host *yk_host(void); // services that the core offers backends (host.c)
// Before and after a call of a backend's probe: settings that it reads on this thread are fixed
// (base/fixed.h), since it is called once.
void yk_host_probing(bool on);
// The number of programs that backends compiled in this process, or found in the cache.
uint64_t yk_host_promoted(void);
void yk_host_programs(uint64_t *compiled, uint64_t *found);

// Does a list ("a,b", "^a,b", "*", "" or NULL: everything) name this backend?
bool yk_list_has(const char *list, const char *name);
// Does a list leave the choice open: "", "*", "auto"?
bool yk_list_is_open(const char *list);
// Does a list name any backend but the built-in CPU backend?
bool yk_list_needs_files(const char *list);
// Names of all backends that are loaded or have a plugin file, as "cpu, opencl".
void yk_backend_names(char *to, size_t cap);
// Why the backend of this name is missing: the reason its file was refused, or NULL if it has no
// file.
const char *yk_backend_refusal(const char *name);
// Clears the error that a backend set for this thread, if there was none before (had false).  `to`
// receives its message, or else the standard text of the code.
void yk_backend_detail(bool had, int code, char *to, size_t cap);
// A forked child may not use backends.  True in a child forked after the first backend was loaded.
bool yk_forked(void);

// Tables (table.c).  Checks a table, copies the part of it that both sides know and makes a backend
// of it; `path` is its file.  On failure `why` receives the reason.
int yk_backend_enter(const struct yoke_backend *, const char *path, char *why, size_t cap,
		     struct yk_backend **);
// The same; sets the error of this thread and returns NULL on failure.
struct yk_backend *yk_backend_add(const struct yoke_backend *, const char *path);
struct yk_backend *yk_backend_find(const char *name); // NULL: there is none of this name
struct yk_backend *yk_backend_first(void);            // NULL: there is none yet
#define YK_BACKEND_NAME_MAX 31 // "opencl:0" must fit yk_device.id
bool yk_backend_name_good(const char *name);
// Writes that a plugin is made for another ABI; returns YOKE_EABI.
int yk_refuse_abi(uint32_t abi, char *why, size_t cap);

// Stubs (stubs.c): for missing entries; for all entries, in a forked child.
bool yk_stubs_fill(struct yoke_backend *);
void yk_stubs_forked(struct yoke_backend *);

// The CPU backend's entry function, like a plugin's.
yoke_plugin_init_fn yoke_cpu_init;

#endif
