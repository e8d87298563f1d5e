// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the files of the CPU backend. Includes nothing of the project but
// yoke-plugin.h.
//
// Kernels (files kern_*.c) are compiled once per instruction set; ISA(name) appends the set's
// suffix to their symbols. Each build exports one kernel table, and backend.c chooses a table at
// run time.
// Work is divided by shape alone: yk_team_run processes chunks 0..n-1 identically for any number of
// threads, so results do not depend on it.
#ifndef YK_CPU_H
#define YK_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vector/shuffle.h"
#include "yoke-plugin.h"

// ---- sizes ----

static inline int64_t yk_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t yk_max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

// a / b rounded up; a >= 0, b > 0.
static inline int64_t yk_ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

// ---- segments ----

struct yk_segment {
	char *base;
	uint64_t bytes;
};

// First element of a BUFFER view.
static inline void *yk_ptr(const struct yoke_view *v)
{
	return ((struct yk_segment *)v->segment)->base + v->offset;
}

static inline size_t yk_esize(int dtype)
{
	static const uint8_t size[] = { 0, 4, 8, 2, 2, 1, 1, 4, 8, 1 };
	return size[dtype];
}

static inline int64_t yk_elements(const struct yoke_view *v)
{
	int64_t n = 1;
	for (int i = 0; i < v->rank; i++)
		n *= v->dims[i];
	return n;
}

// True if the elements are row-major and contiguous.
static inline bool yk_dense(const struct yoke_view *v)
{
	int64_t n = 1;
	for (int i = v->rank - 1; i >= 0; i--) {
		if (v->dims[i] != 1 && v->strides[i] != n)
			return false;
		n *= v->dims[i];
	}
	return true;
}

// Outputs of at least this many bytes are written with non-temporal stores, because the caches
// could not keep them for the next reader. Below it plain stores are faster (measured).
extern int64_t yk_stream_bytes; // the setting cpu.stream

// Test settings for chunking a row of the resolvent: how the state enters a chunk, and the chunk's
// length in elements (0: derived from the shape).
enum { YK_ENTRY_AUTO, YK_ENTRY_DISC, YK_ENTRY_MATRICES };
extern int yk_chain_entry;         // the setting cpu.resolvent_entry
extern int64_t yk_chain_length;    // the setting cpu.resolvent_chunk
void yk_cpu_promoted(uint64_t rows); // see struct yoke_host

// ---- the team of workers (team.c) ----

// Runs fn(arg, chunk) for chunks 0..n-1 on the team and the calling thread; returns when all are
// done. Chunks may run in any order on any thread. A call from inside a chunk runs its chunks
// serially in place.
void yk_team_run(int64_t n, void (*fn)(void *arg, int64_t item), void *arg);
int yk_team_size(void);           // number of threads, including the caller
const char *yk_team_bound(void);  // what limited that number: "affinity", "cgroup quota", ...
// Returns scratch memory of the calling thread (worker or caller), at least `bytes` bytes, aligned
// to 64. The content is valid until the next call on this thread. NULL: out of memory.
void *yk_team_scratch(size_t bytes);

// ---- kernels ----

// The implementations of one op in one build. can returns a bit mask of the implementations that
// accept the op, as in the ABI.
struct yk_kernel {
	uint64_t (*can)(const struct yoke_op *);
	uint64_t (*workspace)(const struct yoke_op *, uint32_t impl); // NULL: needs none
	// Precomputes what all runs of the op share; the caller frees it. Returns NULL if out of
	// memory. The entry is NULL if run needs nothing precomputed.
	void *(*prepare)(const struct yoke_op *, uint32_t impl);
	int (*run)(const struct yoke_op *, uint32_t impl, void *prepared);
	const char *impl[4]; // names of implementations
};

struct yk_isa {
	const char *name; // "base", "avx2", ..
	const struct yk_kernel *op[YOKE_OP_LIMIT]; // NULL: not supported
	uint32_t products; // same meaning as in struct yoke_device_info
};

extern const struct yk_isa yk_isa_base, yk_isa_avx2, yk_isa_avx512, yk_isa_avx512_bf16,
	yk_isa_amx;
// RISC-V with vectors of 128 or 256 bits or more
extern const struct yk_isa yk_isa_rvv, yk_isa_rvv256;
// AArch64: base is NEON, SVE has vectors of exactly that many bits
extern const struct yk_isa yk_isa_neon_bf16, yk_isa_sve256, yk_isa_sve256_bf16, yk_isa_sve512,
	yk_isa_sve512_bf16;

// Records the message of an error that a kernel is about to return (host->error); returns code.
int yk_cpu_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#ifdef YK_ISA
#define YK_PASTE2(a, b) a##_##b
#define YK_PASTE(a, b) YK_PASTE2(a, b)
#define ISA(name) YK_PASTE(name, YK_ISA)
// Defines a kernel and lists the codes of its ops: YK_KERNEL(conv, CONV, CONV_X) = { .. };
// build-aux/op_list collects these lines into backends/cpu/kernel_list.inc, as X(CODE, name).
#define YK_KERNEL(name, ...) const struct yk_kernel ISA(yk_##name)
extern const struct yk_kernel ISA(yk_map), ISA(yk_move); // other kernels call these

// A level is a variant of an instruction set that replaces only contractions and attention, for
// products of bf16, and, with AMX, the products with quantized weights.
#ifdef YK_LEVEL
#define LEVEL(name) YK_PASTE(name, YK_LEVEL)
#else
#define LEVEL(name) ISA(name)
#endif
#ifdef YK_AMX
#define QLINEAR(name) LEVEL(name)
#else
#define QLINEAR(name) ISA(name)
#endif
extern const struct yk_kernel LEVEL(yk_contract), QLINEAR(yk_qlinear);
extern const struct yk_kernel ISA(yk_attention), ISA(yk_attention_backward);
#ifdef YK_LEVEL
extern const struct yk_kernel LEVEL(yk_attention), LEVEL(yk_attention_backward);
#endif
#endif

#endif
