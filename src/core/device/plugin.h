// SPDX-License-Identifier: Apache-2.0
// Backends: the CPU's, linked in, and those found in plugin folders; each table is copied into our
// own, its holes filled with stubs that answer "unsupported", so that callers never check.
#ifndef YK_PLUGIN_LOADER_H
#define YK_PLUGIN_LOADER_H

#include <stdbool.h>

#include "yoke-plugin.h"

struct yk_backend {
	struct yoke_backend table;
	const char *path; // of the file; "" when linked in
	bool graphs; // queues can be recorded
	bool probed;
	uint32_t ndevices;
	const char *why; // probing failed or a device was refused: the reason; else NULL
	struct yk_backend *next;
};

// Is this file, a resolved path, one that nobody else could have put or changed there?  If not, why.
bool yk_trusted_file(const char *path, char *why, size_t cap);
// More devices than this of one backend are nonsense.
#define YK_MAX_DEVICES 256

// What became of each file and folder looked at, for `yoke info` and messages.
struct yk_plugin_outcome {
	const char *path;
	const char *text; // "loaded", or why not
	int code;         // 0 or YOKE_E*
	bool folder;      // else a file
	bool asked;       // YOKE_PLUGIN_PATH names the folder
	struct yk_plugin_outcome *next;
};

// Searches and loads what `list` (the syntax of YOKE_BACKEND, NULL: everything) may ask for, once a
// process for each name; the CPU comes first.  YOKE_BACKEND=cpu opens no file.
struct yk_backend *yk_backends(const char *list);
const struct yk_plugin_outcome *yk_plugin_outcomes(void);
// The first file yoke_mpi_NAME.so in the folders of plugins: false, there is none.
bool yk_module_find(const char *name, char *path, size_t cap);
// Checks one table and makes a backend of it (tests, and the CPU's own).  NULL: yoke_error says why.
struct yk_backend *yk_backend_add(const struct yoke_backend *, const char *path);
const struct yoke_host *yk_host(void); // what the core lends (host.c)
// Programs that backends compiled in this process, and found compiled.
uint64_t yk_host_promoted(void);
void yk_host_programs(uint64_t *compiled, uint64_t *found);

// Does a list ("a,b", "^a,b", "*", "" or NULL: everything) name this backend?
bool yk_list_has(const char *list, const char *name);
// Does it leave the choice among all backends: "", "*", "auto"?
bool yk_list_is_open(const char *list);
// Does a list name anything but the CPU's, which is linked in?
bool yk_list_wants_files(const char *list);
// Names of all backends that are loaded or that a file is there for, as "cpu, opencl".
void yk_backend_names(char *to, size_t cap);
// Why the backend of this name is not there: the refusal of its file, or NULL when there is no file.
const char *yk_backend_refusal(const char *name);
// Takes what a backend left as this thread's error, when there was none before (had false), out of
// it again: `to` gets the line, or the table's text of the code.
void yk_backend_detail(bool had, int code, char *to, size_t cap);
// A forked child may use no backend: true in one, from the first backend on.
bool yk_forked(void);

// Stubs (stubs.c): for NULL entries; for all entries, in a forked child.
bool yk_stubs_fill(struct yoke_backend *);
void yk_stubs_forked(struct yoke_backend *);

// The CPU backend's entry, as a plugin's.
yoke_plugin_init_fn yoke_cpu_init;

#endif
