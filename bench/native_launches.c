// SPDX-License-Identifier: Apache-2.0
// Compares the host time of a planned step with that of the bare driver calls that launch the
// same kernels. Runs on the fake drivers of tests/fake_gpu with empty kernels and measures the
// thread's CPU time, which a GPU would not reduce; both figures include the fake driver's own
// calls. With YOKE_REPLAY=0 launches are enqueued one by one, otherwise as graphs of the driver.
//
//	LD_LIBRARY_PATH=$PWD/tests/fake_gpu/.libs YOKE_PLUGIN_PATH=$PWD/plugins/cuda/.libs
//	YOKE_BACKEND=cuda YOKE_FAKE_EMPTY=1 YOKE_SELFTEST=0 bench/native_launches
#include "config.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "layers.h"
#include "rounds.h"

enum { WIDTH = 64, ROUNDS = 201, WARM = 8 };

static void (*tape)(bool);
static size_t (*tape_length)(void);
static int (*tape_launch)(size_t);

static double cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int by_hand(void)
{
	const size_t n = tape_length();
	int code = 0;

	for (size_t i = 0; i < n && !code; i++)
		code = tape_launch(i);
	return code;
}

static bool find_tape(void)
{
	static const char *const drivers[] = { "libcuda.so.1", "libamdhip64.so.6" };

	for (int i = 0; i < 2 && !tape_launch; i++) {
		void *driver = dlopen(drivers[i], RTLD_NOW | RTLD_NOLOAD);
		if (!driver)
			continue;
		*(void **)&tape = dlsym(driver, "fake_tape");
		*(void **)&tape_length = dlsym(driver, "fake_tape_length");
		*(void **)&tape_launch = dlsym(driver, "fake_tape_launch");
	}
	return tape && tape_length && tape_launch;
}

int main(void)
{
	static double planned[ROUNDS], hand[ROUNDS], ratio[ROUNDS];
	struct yoke_stats s = { .size = sizeof s };
	struct layers l;
	int err = layers_make(&l, WIDTH);

	err = err ? err : layers_step(&l, 1);
	if (!err && !find_tape()) {
		fprintf(stderr,
			"bench/native_launches: runs on the fake drivers of tests/fake_gpu alone\n");
		return 1;
	}
	if (!err) {
		tape(true);
		err = layers_step(&l, 0);
		tape(false);
	}
	for (int t = -WARM; t < ROUNDS && !err; t++) {
		const double began = cpu_us();
		err = layers_step(&l, 0);
		const double between = cpu_us();
		err = err ? err : yoke_sync();
		const double after = cpu_us();
		err = err ? err : by_hand();
		const double ended = cpu_us();
		err = err ? err : yoke_sync();
		if (t < 0)
			continue;
		planned[t] = between - began;
		hand[t] = ended - after;
		ratio[t] = planned[t] / hand[t];
	}
	if (err || yoke_stats(&s)) {
		fprintf(stderr, "bench/native_launches: %s\n", yoke_error());
		return 1;
	}
	printf("%zu launches: a step %.1f us of CPU time, its launches by hand %.1f us: %.2f times (medians of %d, %llu of the "
	       "steps replayed)\n",
	       tape_length(), median(planned, ROUNDS), median(hand, ROUNDS), median(ratio, ROUNDS),
	       (int)ROUNDS, (unsigned long long)s.replays);
	return 0;
}
