// SPDX-License-Identifier: Apache-2.0
// Linux and the fallbacks.
#include "config.h"

#include "system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined __linux__ && !defined YK_POSIX_ONLY
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

int yk_processors_count(const struct yk_processors *s)
{
	int n = 0;
	for (size_t i = 0; i < s->words; i++)
		n += __builtin_popcountll(s->bits[i]);
	return n;
}

struct yk_processors yk_processors_like(const struct yk_processors *s)
{
	struct yk_processors to = { .bits = calloc(s->words ? s->words : 1, sizeof *to.bits),
				    .words = s->words };
	if (!to.bits)
		to.words = 0;
	return to;
}

#if defined __linux__ && !defined YK_POSIX_ONLY

// The kernel may support more processors than CPU_SETSIZE.
struct yk_processors yk_processors_allowed(void)
{
	struct yk_processors to = { 0 };

	for (size_t n = CPU_SETSIZE; !to.bits && n <= 1 << 18; n *= 2) {
		cpu_set_t *set = CPU_ALLOC(n);
		const size_t bytes = CPU_ALLOC_SIZE(n);
		const bool good = set && sched_getaffinity(0, bytes, set) == 0;
		const bool larger = set && !good && errno == EINVAL;
		if (good && (to.bits = calloc(n / 64, sizeof *to.bits))) {
			to.words = n / 64;
			for (size_t i = 0; i < n; i++)
				if (CPU_ISSET_S(i, bytes, set))
					to.bits[i / 64] |= UINT64_C(1) << i % 64;
		}
		CPU_FREE(set);
		if (!larger)
			break;
	}
	return to;
}

bool yk_lists_processors(void)
{
	return access("/sys/devices/system/cpu", R_OK) == 0;
}

// Reads the value of the first line "key : value" of a file in /proc.
static bool proc(const char *file, const char *key, char *to, size_t cap)
{
	char line[512];
	bool found = false;
	FILE *f = fopen(file, "re");

	if (!f)
		return false;
	while (!found && fgets(line, sizeof line, f)) {
		char *value = strchr(line, ':');
		if (!value || strncmp(line, key, strlen(key)))
			continue;
		value += strspn(value, ": \t");
		value[strcspn(value, "\n")] = 0;
		snprintf(to, cap, "%s", value);
		found = true;
	}
	fclose(f);
	return found;
}

bool yk_processor_fact(const char *key, char *to, size_t cap)
{
	return proc("/proc/cpuinfo", key, to, cap);
}

uint64_t yk_memory_available(void)
{
	static const char *const keys[] = { "MemAvailable", "SwapFree" };
	uint64_t sum = 0;
	char text[64];

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (proc("/proc/meminfo", keys[i], text, sizeof text))
			sum += strtoull(text, NULL, 10) * 1024; // "123 kB"
	return sum;
}

size_t yk_processor(void)
{
	const int cpu = sched_getcpu();
	return cpu < 0 ? 0 : (size_t)cpu;
}

void yk_processors_bind(pthread_t thread, const struct yk_processors *s)
{
	const size_t n = 64 * s->words, bytes = CPU_ALLOC_SIZE(n);
	cpu_set_t *set = s->words ? CPU_ALLOC(n) : NULL;

	if (!set)
		return;
	CPU_ZERO_S(bytes, set);
	for (size_t i = 0; i < n; i++)
		if (yk_processors_has(s, i))
			CPU_SET_S(i, bytes, set);
	pthread_setaffinity_np(thread, bytes, set);
	CPU_FREE(set);
}

void yk_thread_named(pthread_t thread, const char *name)
{
	pthread_setname_np(thread, name);
}

void yk_team_sleep(atomic_uint *word, unsigned value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

void yk_team_wake(atomic_uint *word, int max)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, max, NULL, NULL, 0);
}

bool yk_permits_tiles(void)
{
#ifdef SYS_arch_prctl
	enum { PERMIT = 0x1023, TILE_DATA = 18 };
	return syscall(SYS_arch_prctl, PERMIT, TILE_DATA) == 0;
#else
	return false;
#endif
}

struct yk_arm yk_arm_features(void)
{
	struct yk_arm has = { 0 };
#ifdef __aarch64__
	// of the kernel's ABI, which older headers of the C library lack
	enum {
		DOT = 1 << 20,
		SVE = 1 << 22,
		I8MM_2 = 1 << 13,
		BF16_2 = 1 << 14,
		SVE_GET_VL = 51,
		BYTES = 0xffff
	};
	const unsigned long words = getauxval(AT_HWCAP), words_2 = getauxval(AT_HWCAP2);
	has.dot = words & DOT;
	has.i8mm = words_2 & I8MM_2;
	has.bf16 = words_2 & BF16_2;
	const int length = words & SVE ? prctl(SVE_GET_VL) : -1;
	has.sve_bits = length > 0 ? (length & BYTES) * 8 : 0;
#endif
	return has;
}

int yk_rvv_bits(void)
{
	unsigned long bytes = 0;
#ifdef __riscv
	// older kernels lack riscv_hwprobe; some report drafts of the extension in AT_HWCAP too
	enum { HWPROBE = 258, IMA_EXT_0 = 4, EXT_V = 1 << 2 };
	struct {
		int64_t key;
		uint64_t value;
	} pair = { IMA_EXT_0, 0 };
	const bool has = syscall(HWPROBE, &pair, (size_t)1, (size_t)0, NULL, 0u) == 0 ?
				 pair.value & EXT_V :
				 getauxval(AT_HWCAP) >> ('V' - 'A') & 1;
	// the register vlenb, by its number: assemblers know the name only with the extension
	if (has)
		__asm__ volatile("csrr %0, 0xc22" : "=r"(bytes));
#endif
	return (int)(bytes * 8);
}

#else

struct yk_processors yk_processors_allowed(void)
{
	const long n = sysconf(_SC_NPROCESSORS_ONLN);
	struct yk_processors to = { 0 };

	if (n < 1 || !(to.bits = calloc((size_t)n / 64 + 1, sizeof *to.bits)))
		return to;
	to.words = (size_t)n / 64 + 1;
	for (long i = 0; i < n; i++)
		to.bits[i / 64] |= UINT64_C(1) << i % 64;
	return to;
}

bool yk_lists_processors(void)
{
	return false;
}

bool yk_processor_fact(const char *key, char *to, size_t cap)
{
	(void)key;
	(void)to;
	(void)cap;
	return false;
}

uint64_t yk_memory_available(void)
{
	return 0;
}

size_t yk_processor(void)
{
	return 0;
}

void yk_processors_bind(pthread_t thread, const struct yk_processors *s)
{
	(void)thread;
	(void)s;
}

void yk_thread_named(pthread_t thread, const char *name)
{
	(void)thread;
	(void)name;
}

void yk_team_sleep(atomic_uint *word, unsigned value)
{
	const struct timespec pause = { 0, 200000 };
	if (atomic_load(word) == value)
		nanosleep(&pause, NULL);
}

void yk_team_wake(atomic_uint *word, int max)
{
	(void)word;
	(void)max;
}

bool yk_permits_tiles(void)
{
	return false;
}

struct yk_arm yk_arm_features(void)
{
	return (struct yk_arm){ 0 };
}

int yk_rvv_bits(void)
{
	return 0;
}

#endif
