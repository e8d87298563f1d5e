// SPDX-License-Identifier: Apache-2.0
// Services of the operating system beyond POSIX.1-2008, with fallbacks for systems other than
// Linux; configure --enable-posix-only selects the fallbacks on Linux.
#ifndef YK_CPU_SYSTEM_H
#define YK_CPU_SYSTEM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A set of processors; processor i is bit i % 64 of word i / 64.
struct yk_processors {
	uint64_t *bits; // NULL: not known
	size_t words;
};

static inline bool yk_processors_has(const struct yk_processors *s, size_t i)
{
	return i / 64 < s->words && s->bits[i / 64] >> i % 64 & 1;
}

static inline void yk_processors_drop(struct yk_processors *s, size_t i)
{
	s->bits[i / 64] &= ~(UINT64_C(1) << i % 64);
}

static inline void yk_processors_add(struct yk_processors *s, size_t i)
{
	s->bits[i / 64] |= UINT64_C(1) << i % 64;
}

int yk_processors_count(const struct yk_processors *);
// An empty set of the same size; bits NULL: no memory.
struct yk_processors yk_processors_like(const struct yk_processors *);
// Those that the calling thread may use.  Fallback: all that are online, numbered from 0.
struct yk_processors yk_processors_allowed(void);
// The processor that the calling thread runs on.  Fallback: 0.
size_t yk_processor(void);
// The thread runs on the set from now on.  Fallback: wherever the system puts it.
void yk_processors_bind(pthread_t thread, const struct yk_processors *);

// Does the system describe its processors in /sys?  Fallback: no.
bool yk_lists_processors(void);
// The value of a key of /proc/cpuinfo ("model name", ..) for the first processor.  Fallback: none.
bool yk_processor_fact(const char *key, char *to, size_t cap);
// Memory available without swapping others out, which may exceed the control group's limit; 0: not
// known, as in the fallback.
uint64_t yk_memory_available(void);

void yk_thread_named(pthread_t thread, const char *name); // as debuggers show it

// Sleeps until the word is woken if it still has this value.  It may return early.  Fallback: a
// short time.
void yk_team_sleep(atomic_uint *word, unsigned value);
void yk_team_wake(atomic_uint *word, int max);

// Asks the system for the registers of matrix tiles (AMX).
bool yk_permits_tiles(void);

// Extensions of an AArch64 processor beyond NEON. Fallback: none.
struct yk_arm {
	// products of bytes; of unsigned by signed ones and of matrices; of bf16
	bool dot, i8mm, bf16;
	int sve_bits;         // length of the vectors of SVE; 0: no SVE
};
struct yk_arm yk_arm_features(void);

// Length of a RISC-V processor's vectors in bits; 0 if it lacks version 1.0 of the vector
// extension.  Fallback: 0.
int yk_rvv_bits(void);

#endif
