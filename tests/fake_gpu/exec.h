// SPDX-License-Identifier: Apache-2.0
// The executor of the fake drivers: compiles kernel texts for the host and runs work groups as
// coroutines.
#ifndef FAKE_EXEC_H
#define FAKE_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"

// What compiling a text gives, and what a module is made of.
#define FAKE_MAGIC "fake drivers 3\n" // 16 bytes; another number with each change of abi.h
struct fake_binary {
	char magic[16];
	uint64_t bytes, hash; // size of the shared object that follows
	uint64_t check;       // was it compiled with YOKE_FAKE_CHECK?
};

// ---- compile.c ----

// Compiles a text into a binary, or takes it from the cache; 0, or 1: it does not compile, 2: an
// option is unknown, 3: there is no compiler, or it could not run. *log is always set; the caller
// frees both.
int fake_compile(const char *text, int options, const char *const *option, bool hip, void **binary,
		    size_t *bytes, char **log);
uint64_t fake_hash(uint64_t seed, const void *data, size_t bytes);

// ---- module.c ----

struct fake_module;

// NULL: not a binary of fake_compile, or a binary without the requested checks, so that it is
// compiled anew.
struct fake_module *fake_module_new(const void *binary);
void fake_module_free(struct fake_module *); // no launch of it may be running
const struct fake_object *fake_module_object(const struct fake_module *);
const struct fake_kernel *fake_module_kernel(const struct fake_module *, const char *name);
// Only one launch of a module runs at a time.
void fake_module_lock(struct fake_module *);
void fake_module_unlock(struct fake_module *);

// ---- group.c ----

enum fake_end { FAKE_DONE, FAKE_FAILED, FAKE_ILLEGAL_ADDRESS, FAKE_MISALIGNED };

struct fake_launch {
	struct fake_module *module;
	const struct fake_kernel *kernel;
	struct fake_dim blocks, threads;
	void **params;
	unsigned warp;
	int device;
	bool check;
};

// Runs it to its end; reports a defect on stderr, in one line.
enum fake_end fake_run(const struct fake_launch *);

// ---- memory.c gives, for accesses of kernels ----

// The live memory around an address that a device may use; if there is none, `near` describes the
// nearest.
bool fake_live(int device, unsigned long address, struct fake_span *span, char *near, size_t cap);

// Settings: YOKE_FAKE_NAME of the environment.
const char *fake_setting(const char *name);
long fake_number(const char *name, long otherwise);

#endif
