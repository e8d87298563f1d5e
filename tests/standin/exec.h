// SPDX-License-Identifier: Apache-2.0
// The executor: compiles kernel texts for the host, and runs groups of items as coroutines.
#ifndef STANDIN_EXEC_H
#define STANDIN_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"

// What compiling a text gives, and what a module is made of.
#define STANDIN_MAGIC "yoke stand-in 2\n" // another number with each change of abi.h
struct standin_binary {
	char magic[16];
	uint64_t bytes, hash; // of the shared object behind it
	uint64_t check;       // was it compiled with YOKE_STANDIN_CHECK?
};

// ---- compile.c ----

// Compiles a text into a binary, or takes it from the cache; 0, or 1: it does not compile, 2: an option is unknown, 3:
// there is no compiler, or it could not run.  *log is set in any case; both are the caller's to free.
int standin_compile(const char *text, int options, const char *const *option, bool hip, void **binary,
		    size_t *bytes, char **log);
uint64_t standin_hash(uint64_t seed, const void *data, size_t bytes);

// ---- module.c ----

struct standin_module;

// NULL: it is no binary of standin_compile, or has no checks, which are wanted, so that it is compiled anew.
struct standin_module *standin_module_new(const void *binary);
void standin_module_free(struct standin_module *); // nothing of it runs
const struct standin_object *standin_module_object(const struct standin_module *);
const struct standin_kernel *standin_module_kernel(const struct standin_module *, const char *name);
// One launch of a module at a time.
void standin_module_lock(struct standin_module *);
void standin_module_unlock(struct standin_module *);

// ---- group.c ----

enum standin_end { STANDIN_DONE, STANDIN_FAILED, STANDIN_ILLEGAL_ADDRESS, STANDIN_MISALIGNED };

struct standin_launch {
	struct standin_module *module;
	const struct standin_kernel *kernel;
	struct standin_dim blocks, threads;
	void **params;
	unsigned warp;
	int device;
	bool check;
};

// Runs it to its end; says on stderr, in a line, what is wrong.
enum standin_end standin_run(const struct standin_launch *);

// ---- memory.c gives, for accesses of kernels ----

// The live memory around an address that a device may use; where there is none, `near` is said of it.
bool standin_live(int device, unsigned long address, struct standin_span *span, char *near, size_t cap);

// Settings: YOKE_STANDIN_NAME of the environment.
const char *standin_setting(const char *name);
long standin_number(const char *name, long otherwise);

#endif
