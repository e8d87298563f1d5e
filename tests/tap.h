// SPDX-License-Identifier: Apache-2.0
// TAP for small C programs: ok(..) lines, random inputs with a printed seed, comparison of
// numbers.
#ifndef YK_TAP_H
#define YK_TAP_H

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int tap_count, tap_failed;
static uint64_t tap_state;

__attribute__((format(printf, 2, 3)))
static inline bool ok(bool good, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	printf("%sok %d - ", good ? "" : "not ", ++tap_count);
	vprintf(fmt, ap);
	putchar('\n');
	va_end(ap);
	fflush(stdout);
	tap_failed += !good;
	if (!good && getenv("YOKE_TEST_FIRST")) // tests/mutants needs only the first failure
		_exit(1);
	return good;
}

__attribute__((format(printf, 1, 2)))
static inline void diag(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fputs("# ", stdout);
	vprintf(fmt, ap);
	putchar('\n');
	va_end(ap);
	fflush(stdout);
}

// Reports a single test that cannot run here.
static inline void skip(const char *what, const char *why)
{
	printf("ok %d - %s # SKIP %s\n", ++tap_count, what, why);
}

// The whole program cannot run here.
static inline int skip_all(const char *why)
{
	printf("1..0 # SKIP %s\n", why);
	return 0;
}

// Last call of main: return done();
static inline int done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed != 0;
}

static inline uint64_t tap_seed_value(void)
{
	const char *s = getenv("YOKE_TEST_SEED");
	return s && *s ? strtoull(s, NULL, 0) : 20261;
}

// splitmix64 (Steele et al. 2014). The seed is YOKE_TEST_SEED, which tests/run sets unless it is
// set, and is printed.
static inline void tap_seed(void)
{
	tap_state = tap_seed_value();
	diag("seed %llu (YOKE_TEST_SEED)", (unsigned long long)tap_state);
}

static inline uint64_t rnd(void)
{
	uint64_t z = tap_state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static inline int64_t rnd_int(int64_t lo, int64_t hi) // both included
{
	return lo + (int64_t)(rnd() % (uint64_t)(hi - lo + 1));
}

static inline double rnd_real(double lo, double hi)
{
	return lo + (hi - lo) * (double)(rnd() >> 11) * 0x1p-53;
}

// Run all cases rather than the sample of `make check`?
static inline bool tap_long(void)
{
	const char *s = getenv("YOKE_TEST_LONG");
	return s && *s && *s != '0';
}

// Run fewer cases than `make check`, as in make distcheck?
static inline bool tap_sample(void)
{
	const char *s = getenv("YOKE_TEST_SAMPLE");
	return s && *s && *s != '0';
}

// The number of random cases of this run: `usual`, `all` in the long run, or a tenth of `usual` in
// a sample.
static inline int tap_cases(int usual, int all)
{
	return tap_long() ? all : tap_sample() ? (usual + 9) / 10 : usual;
}

// Does the seed select this case, one in n of those that take too long to all be in `make check`?
static inline bool tap_turn(const char *what, unsigned n)
{
	uint64_t hash = tap_seed_value();
	for (const char *p = what; *p; p++)
		hash += (unsigned char)*p;
	return tap_long() || (!tap_sample() && hash % n == 0);
}

// Runs a command and prints its output as comments; did it succeed?
static inline bool tap_run(const char *command)
{
	char line[2048];
	fflush(stdout);
	FILE *f = popen(command, "r");
	while (f && fgets(line, sizeof line, f))
		printf("#  %s", line);
	return f && pclose(f) == 0;
}

// Runs a command without which the test cannot go on.
static inline void tap_need(const char *command)
{
	const int status = system(command); // NOLINT: the test's own words
	if (status) {
		printf("Bail out! status %d of %s\n", status, command);
		exit(1);
	}
}

// Changes to a new directory, which tests/run removes: files of an earlier run are not there.  The
// path srcdir, by default the directory left, becomes absolute.
static inline void tap_folder(void)
{
	const char *tmp = getenv("TMPDIR"), *source = getenv("srcdir");
	char folder[4096], *absolute = realpath(source ? source : ".", NULL);
	if (absolute)
		setenv("srcdir", absolute, 1);
	free(absolute);
	snprintf(folder, sizeof folder, "%s/test.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(folder) || chdir(folder) < 0) {
		printf("Bail out! no folder %s\n", folder);
		exit(1);
	}
}

// Sets the plugin path to the modules of the tests and the directory of the OpenCL module.
static inline void tap_plugin_path(void)
{
	char path[4096];
	const char *modules = getenv("YOKE_TEST_MODULES"), *opencl = getenv("YOKE_TEST_OPENCL");
	snprintf(path, sizeof path, "%s%s%s", modules ? modules : "", opencl ? ":" : "",
		 opencl ? opencl : "");
	if (opencl) // its folder
		*strrchr(path, '/') = 0;
	setenv("YOKE_PLUGIN_PATH", path, 1);
}

// Resident bytes of the process (proc(5)); 0 with a sanitizer, which keeps freed memory.
static inline double tap_resident(void)
{
	long pages = 0;
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
	FILE *f = fopen("/proc/self/statm", "r");
	if (f && fscanf(f, "%*d %ld", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
#endif
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

// Is each op launched as it is recorded, so that plans have one op and errors come with the call?
static inline bool tap_eager(void)
{
	const char *s = getenv("YOKE_EAGER");
	return s && *s && *s != '0';
}

// Does the device report a refused computation only at its next event, so that a call succeeds and
// a later read returns YOKE_EFAILED? All but the CPU do.
static inline bool tap_late(void)
{
	const char *backend = getenv("YOKE_BACKEND"), *sync = getenv("YOKE_SYNC");
	return backend && !strncmp(backend, "opencl", 6) && !(sync && *sync && *sync != '0');
}

// got[i] near want[i]: |got - want| <= tol * max(scale, |want|); NaN and infinities must be equal.
// Prints the worst index when it fails.
static inline bool near(const double *got, const double *want, size_t n, double tol, double scale,
			const char *what)
{
	size_t worst = 0;
	double max = -1;
	for (size_t i = 0; i < n; i++) {
		double e;
		if (isnan(want[i]) || isnan(got[i]))
			e = isnan(want[i]) && isnan(got[i]) ? 0 : INFINITY;
		else if (isinf(want[i]) || isinf(got[i]))
			e = want[i] == got[i] ? 0 : INFINITY;
		else
			e = fabs(got[i] - want[i]) / fmax(scale, fabs(want[i]));
		if (e > max)
			max = e, worst = i;
	}
	bool good = max <= tol;
	if (!good)
		diag("%s: [%zu] got %.9g want %.9g error %.3g tolerance %.3g", what, worst,
		     got[worst], want[worst], max, tol);
	return ok(good, "%s (error %.2g of %.2g)", what, n ? max : 0, tol);
}

#endif
