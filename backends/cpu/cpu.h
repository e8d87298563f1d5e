// SPDX-License-Identifier: Apache-2.0
// What the files of the CPU backend share.  Includes nothing of the project but yoke-plugin.h.
//
// Kernels (files kern_*.c) are compiled once for each instruction set, with ISA(name) giving their
// symbols a suffix; each build exports one table, and backend.c picks a table at run time.
// Work is cut by shape alone: yk_team_run hands out pieces 0..n-1, whatever the number of threads.
#ifndef YK_CPU_H
#define YK_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "yoke-plugin.h"

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

// Do the elements lie row major without gaps?
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

// Outputs of this many bytes and more are written past the caches, which could not hold
// them for their readers: below it plain stores are faster (measured).
extern int64_t yk_stream_bytes; // the setting cpu.stream

// How rows of the resolvent are cut, for tests: how chunks are entered, and elements of a chunk, 0: by shape.
enum { YK_ENTRY_AUTO, YK_ENTRY_DISC, YK_ENTRY_MATRICES };
extern int yk_chain_entry;         // the setting cpu.resolvent_entry
extern int64_t yk_chain_length;    // the setting cpu.resolvent_chunk
void yk_cpu_promoted(uint64_t rows); // see struct yoke_host

// ---- the team of workers (team.c) ----

// Runs fn(arg, piece) for piece 0..n-1 on the team, the caller included; returns when all are done.
// Pieces may run in any order on any thread.  From inside a piece it runs them in place.
void yk_team_run(int64_t n, void (*fn)(void *arg, int64_t piece), void *arg);
int yk_team_size(void);           // threads, the caller included
const char *yk_team_bound(void);  // what set that number: "affinity", "cgroup quota", ..
// Scratch of the calling thread (worker or caller), at least this many bytes, aligned to 64; its
// content lasts until the next call on this thread.  NULL: no memory.
void *yk_team_scratch(size_t bytes);

// ---- kernels ----

// One op of the table: may this build run it, what workspace, run it.  can answers a mask of
// implementations as in the ABI.
struct yk_kernel {
	uint64_t (*can)(const struct yoke_op *);
	uint64_t (*workspace)(const struct yoke_op *, uint32_t impl); // NULL: none
	// What all runs of the op have in common, to be freed, or NULL: no memory.  Absent where run
	// derives all it needs.
	void *(*prepare)(const struct yoke_op *, uint32_t impl);
	int (*run)(const struct yoke_op *, uint32_t impl, void *prepared);
	const char *impl[4]; // names of implementations
};

struct yk_isa {
	const char *name; // "base", "avx2", "avx512", "avx512_bf16", "amx"
	const struct yk_kernel *op[YOKE_OP_LIMIT]; // NULL: none
	uint32_t products; // as in struct yoke_device_info
};

extern const struct yk_isa yk_isa_base, yk_isa_avx2, yk_isa_avx512, yk_isa_avx512_bf16,
	yk_isa_amx;

// Detail of an error a kernel is about to return (host->error); returns code.
int yk_cpu_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#ifdef YK_ISA
#define YK_PASTE2(a, b) a##_##b
#define YK_PASTE(a, b) YK_PASTE2(a, b)
#define ISA(name) YK_PASTE(name, YK_ISA)
// Each kern_*.c defines its kernels as: const struct yk_kernel ISA(yk_softmax) = { .. };
#define YK_KERNELS(X) \
	X(MAP, map) X(REDUCE, reduce) X(MOVE, move) X(GATHER, gather) \
	X(SCATTER_ADD, scatter_add) X(SCAN, scan) X(SCAN_MAP, scan_map) X(SORT, sort) X(CHECK, check) \
	X(LARGEST, largest) \
	X(EIGH, eigh) X(CHOLESKY, cholesky) X(SOLVE_TRIANGULAR, solve_triangular) \
	X(MOMENTS, moments) \
	X(SLICE_AT, slice_at) X(SLICE_UPDATE_AT, slice_update_at) \
	X(GATHER_ALONG, gather_along) X(SCATTER_ADD_ALONG, scatter_add_along) \
	X(SOFTMAX, softmax) X(SOFTMAX_BACK, softmax_backward) \
	X(LAYER_NORM, layer_norm) X(LAYER_NORM_BACK, layer_norm_backward) X(RMS_NORM, rms_norm) \
	X(RMS_NORM_BACK, rms_norm_backward) X(CROSS_ENTROPY, cross_entropy) \
	X(CROSS_ENTROPY_BACK, cross_entropy_backward) X(ATTENTION, attention) \
	X(ATTENTION_BACK, attention_backward) X(RESOLVENT, resolvent) X(RESOLVENT_BACK, resolvent_backward) \
	X(WINDOW_ADD, window_add) X(CONV, conv) X(CONV_X, conv) X(CONV_W, conv) \
	X(POOL_MAX, pool_max) X(POOL_MAX_BACK, pool_max) \
	X(GROUPED, grouped) X(GROUPED_BACK, grouped_backward) X(SOURCE, source) \
	X(LIST_MAP, list_map) X(LIST_REDUCE, list_reduce)
#define X(code, name) extern const struct yk_kernel ISA(yk_##name);
YK_KERNELS(X)
#undef X

// A level above an instruction set: its kernels, but for contractions of bf16.
#ifdef YK_LEVEL
#define LEVEL(name) YK_PASTE(name, YK_LEVEL)
#else
#define LEVEL(name) ISA(name)
#endif
extern const struct yk_kernel LEVEL(yk_contract);
#endif

#endif
