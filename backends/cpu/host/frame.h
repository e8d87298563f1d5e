// SPDX-License-Identifier: Apache-2.0
// Declarations for the non-kernel part of the CPU backend: host services, selection of the
// instruction set, limits of the machine. Kernels need only cpu.h.
#ifndef YK_CPU_FRAME_H
#define YK_CPU_FRAME_H

#include "../cpu.h"
#include "system.h"

// ---- error.c ----

extern const struct yoke_host *yk_cpu_host; // NULL: loaded without a core (in tests)

void yk_cpu_lend(const struct yoke_host *);
// Logs one line as a warning.
void yk_cpu_warn(const char *text);
// Returns EFORK, with its message, in a forked child of the process that started the backend;
// otherwise 0.
int yk_cpu_forked(void);

// ---- prepared.c ----

struct yk_prepared;
// Prepares an op that the kernel supports, with one of its implementations.
int yk_kernel_prepare(const struct yk_kernel *, const struct yoke_op *, uint32_t impl,
		      struct yk_prepared **);
int yk_kernel_run(const struct yk_prepared *, const struct yoke_op *);
void yk_kernel_release(struct yk_prepared *);
// Prepares, runs and releases; for tests and benchmarks.
int yk_kernel_once(const struct yk_kernel *, const struct yoke_op *, uint32_t impl);

// ---- setting.c ----

// The value of a declared setting, or its default if there is no core.
const char *yk_cpu_setting(const struct yoke_setting *);
void yk_cpu_settings_declare(void);
// Applies the settings of all kernels; returns the requested instruction set.
const char *yk_cpu_settings_read(void);

// ---- backend.c ----

uint32_t yk_cpu_devices(void); // number given by the setting cpu.devices

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

// Lists the kernel builds that the processor and the operating system support, best last.
int yk_isa_usable(const struct yk_isa *list[3]);
// The same, plus the levels above them, which differ in bf16 contractions and, with AMX, in
// products with quantized weights.
enum { YK_ISA_LEVELS = 5 };
int yk_isa_levels(const struct yk_isa *list[YK_ISA_LEVELS]);
// kern_contract_amx.c: true if a test product with AMX tiles is correct.
bool yk_amx_works_amx(void);
// kern_qlinear_amx.c: the same for products of bytes.
bool yk_amx_bytes_work_amx(void);
// The table named by `wanted` ("": the best), or NULL with an error recorded.
const struct yk_isa *yk_isa_choose(const char *wanted);

// ---- team.c ----

// Limits the number of threads from now on, including the caller; 0: all. For tests and benchmarks;
// not during a yk_team_run.
void yk_team_limit(int threads);
// Divides the processors among this many devices; must be called before the functions below.
void yk_team_divide(int devices);
// The calling thread's later jobs run on that device's team.
void yk_team_use(uint32_t device);
int yk_team_size_of(uint32_t device);
// true: the calling thread's later jobs run in place.  Returns what was set before.
bool yk_team_alone(bool);
// Number of NUMA nodes whose processors the calling thread's team uses, at least 1.
int yk_team_nodes(void);
// The item at which node k's interval of n items begins: t of every `all` threads are on nodes
// before k.
int64_t yk_team_share(int64_t n, int64_t t, int64_t all);
const struct yk_cores *yk_team_cores(void);

// ---- cores.c ----

// Limits on the number of threads, besides affinity; 0: no limit by the control group, or by the
// setting.
struct yk_cores_limits {
	int online, quota, setting; // numbers of processors
};

// Processors of a NUMA node.
struct yk_domain {
	struct yk_processors set, near; // those to use; all of them
	int threads;                    // that run on the set
};

struct yk_cores {
	int n, nodes;             // number of threads; number of NUMA nodes
	const char *bound;        // what limits n: "processors", "affinity", ...
	struct yk_processors set; // one per core to use; not known: threads are not bound
	struct yk_domain *domain; // the set by node
	int domains;              // 0: the nodes are not known, or there was no memory
	struct yk_cores_limits limits;
	int allowed;  // processors that affinity allows
	int apart;    // of these, on cores of their own and of the fastest kind
	bool fastest; // slower kinds of cores were dropped
};

// allowed: by affinity; it becomes the set, of which processors are then dropped.
void yk_cores_choose(struct yk_cores *, struct yk_processors allowed, struct yk_cores_limits);
void yk_cores_find(struct yk_cores *); // with the limits of this process
void yk_cores_fini(struct yk_cores *);
// Assigns n threads to the domains, in proportion to their processors.
void yk_domains_assign(struct yk_domain *, int domains, int n);
// cores_draw.c: lines that say which processors there are and which of them run threads; NULL: no
// memory.  The caller frees the text.
char *yk_cores_draw(const struct yk_cores *);
// Declares the setting early, so that it is listed before anything runs.
void yk_cores_declare(void);

// ---- gemm.c ----

void yk_gemm_declare(void);
// Reads the setting cpu.gemm; fails if the requested library is not available.
int yk_gemm_check(void);

// ---- lapack.c ----

void yk_lapack_declare(void);
// Reads the setting cpu.lapack; fails if the requested library is not available.
int yk_lapack_check(void);

// ---- cgroup.c ----

// Where Linux has them; other systems have neither.
#define YK_CGROUPS "/proc/self/cgroup"
#define YK_CGROUP_MOUNT "/sys/fs/cgroup"
// CPU quota of the control group, in processors, rounded up; 0: no limit. groups: the file that
// lists this process's groups; mount: where cgroup file systems are mounted.
int yk_cgroup_cpus(const char *groups, const char *mount);
// Memory limit of the control group in bytes; 0: no limit.
uint64_t yk_cgroup_memory(const char *groups, const char *mount);

#endif
