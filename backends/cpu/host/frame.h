// SPDX-License-Identifier: Apache-2.0
// What the frame of the CPU backend shares with itself: the host's services, the choice
// of the instruction set, the limits of the machine.  Kernels need cpu.h only.
#ifndef YK_CPU_FRAME_H
#define YK_CPU_FRAME_H

#include <sched.h>

#include "../cpu.h"

// ---- error.c ----

extern const struct yoke_host *yk_cpu_host; // NULL: no core is there (in tests)

void yk_cpu_lend(const struct yoke_host *);
// One line for the log.
void yk_cpu_warn(const char *text);
// EFORK, with its detail, in a forked child of the process that started the backend; else 0.
int yk_cpu_forked(void);

// ---- prepared.c ----

struct yk_prepared;
// An op that the kernel can, by one of its implementations.
int yk_kernel_prepare(const struct yk_kernel *, const struct yoke_op *, uint32_t impl,
		      struct yk_prepared **);
int yk_kernel_run(const struct yk_prepared *, const struct yoke_op *);
void yk_kernel_release(struct yk_prepared *);
// All three, for tests and benchmarks.
int yk_kernel_once(const struct yk_kernel *, const struct yoke_op *, uint32_t impl);

// ---- setting.c ----

// The value of a declared setting; its default where no core is there.
const char *yk_cpu_setting(const struct yoke_setting *);
void yk_cpu_settings_declare(void);
// Takes up those of all kernels; returns the instruction set that is wished for.
const char *yk_cpu_settings_read(void);

// ---- backend.c ----

uint32_t yk_cpu_devices(void); // as the setting cpu.devices says

// ---- memory.c ----

enum { YK_SEGMENT_ALIGN = 64 }; // bytes: a vector or cache line

int yk_cpu_segment_new(uint32_t device, int kind, uint64_t bytes, void **segment);
int yk_cpu_segment_wrap(uint32_t device, void *memory, uint64_t bytes, void **segment);
void yk_cpu_segment_free(uint32_t device, void *segment);
void *yk_cpu_segment_host(void *segment);
int yk_cpu_put(void *queue, void *segment, uint64_t offset, const void *from, uint64_t bytes);
int yk_cpu_get(void *queue, void *segment, uint64_t offset, void *to, uint64_t bytes);
int yk_cpu_copy(void *queue, void *to, uint64_t to_offset, void *from, uint64_t from_offset,
		uint64_t bytes);
int yk_cpu_fill(void *queue, void *segment, uint64_t offset, uint64_t bytes, const void *pattern,
		uint32_t pattern_bytes);

// ---- isa.c ----

// The builds of all kernels that the processor and its system can run, best last.
int yk_isa_usable(const struct yk_isa *list[3]);
// Those, and the levels above them, which differ in contractions of bf16.
enum { YK_ISA_LEVELS = 5 };
int yk_isa_levels(const struct yk_isa *list[YK_ISA_LEVELS]);
// kern_contract_amx.c: does a product of tiles come out right?
bool yk_amx_works_amx(void);
// The table named by `wish` ("" means the best), or NULL: the error says why.
const struct yk_isa *yk_isa_choose(const char *wish);

// ---- team.c ----

// At most this many threads take part from now on, the caller included; 0: all.  For
// tests and benchmarks; not while a yk_team_run is under way.
void yk_team_limit(int threads);
// The processors are divided among so many devices; before any other call here.
void yk_team_divide(int devices);
// The calling thread's jobs are for that device's team from now on.
void yk_team_use(uint32_t device);
int yk_team_size_of(uint32_t device);
// Nodes of memory the machine has, at least 1.
int yk_team_nodes(void);

// ---- cores.c ----

struct yk_cores {
	int n, nodes;      // threads to run; nodes of memory
	const char *bound; // what sets n: "processors", "affinity", ..
	cpu_set_t *set;    // one processor of each core to use; NULL: threads are not bound
	size_t bytes;      // of the set
};

void yk_cores_find(struct yk_cores *);
// Declares the setting, so that it is listed before anything runs.
void yk_cores_declare(void);

// ---- gemm.c ----

void yk_gemm_declare(void);
// Reads the setting cpu.gemm; an error when it asks for what is not there.
int yk_gemm_check(void);

// ---- lapack.c ----

void yk_lapack_declare(void);
// Reads the setting cpu.lapack; an error when it asks for what is not there.
int yk_lapack_check(void);

// ---- cgroup.c ----

// Processors' worth of time that the control group allows, rounded up; 0: no limit.
// groups: the file with this process's groups; mount: where their folders are.
int yk_cgroup_cpus(const char *groups, const char *mount);
// Bytes of memory that the control group allows; 0: no limit.
uint64_t yk_cgroup_memory(const char *groups, const char *mount);

#endif
