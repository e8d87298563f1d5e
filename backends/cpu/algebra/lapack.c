// SPDX-License-Identifier: Apache-2.0
// Linear algebra by the system's LAPACK, if the setting cpu.lapack requests it. It is loaded only
// then, since such libraries start their own threads and their results may depend on the number of
// threads.
#include "config.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../host/frame.h"
#include "lapack.h"

static const struct yoke_setting lapack_setting = {
	sizeof lapack_setting, "cpu.lapack", "bool", "0",
	"use the system's LAPACK for eigenvectors and Cholesky factors on the CPU",
};

// LAPACK's Fortran interface with 32-bit integers; compilers pass the strings' lengths, here 1, as
// last arguments.
typedef void syevd_fn(const char *job, const char *half, const int *n, double *a, const int *lda, double *w,
		      double *work, const int *lwork, int *iwork, const int *liwork, int *info, size_t, size_t);
typedef void potrf_fn(const char *half, const int *n, double *a, const int *lda, int *info, size_t);

static syevd_fn *syevd;
static potrf_fn *potrf;
static bool wanted;
static int verdict;
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER; // not every LAPACK is reentrant

static bool symbol(void *library, const char *name, void *to)
{
	void *s = dlsym(library, name);
	memcpy(to, &s, sizeof s);
	return s;
}

static void decide(void)
{
	static const char *const files[] = { "libopenblas.so.0", "liblapack.so.3", "libmkl_rt.so.2", "libflexiblas.so.3" };
	const char *s = yk_cpu_setting(&lapack_setting);
	if (!*s || !strcmp(s, "0") || !strcmp(s, "no") || !strcmp(s, "off") || !strcmp(s, "false"))
		return;
	for (size_t i = 0; i < sizeof files / sizeof *files && !wanted; i++) {
		void *library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
		wanted = library && symbol(library, "dsyevd_", &syevd) && symbol(library, "dpotrf_", &potrf);
		if (library && !wanted)
			dlclose(library);
	}
	if (!wanted)
		verdict = yk_cpu_fail(YOKE_ENOENT, "cpu.lapack=%s: no library with dsyevd_ and dpotrf_ found; install "
				      "liblapack3 or libopenblas0, or set it to 0", s);
}

void yk_lapack_declare(void)
{
	yk_cpu_setting(&lapack_setting);
}

int yk_lapack_check(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, decide);
	return verdict;
}

bool yk_lapack_requested(void)
{
	return wanted;
}

int yk_lapack_eigh(bool vectors, int64_t n, double *a, double *w)
{
	const int size = (int)n, ask = -1;
	int info = 0, whole = 0;
	double best = 0;
	if (n > INT_MAX / 4)
		return yk_cpu_fail(YOKE_ERANGE, "eigh: %lld rows exceed the range of LAPACK's integers", (long long)n);
	pthread_mutex_lock(&one);
	syevd(vectors ? "V" : "N", "U", &size, a, &size, w, &best, &ask, &whole, &ask, &info, 1, 1);
	const int work_size = (int)best;
	double *work = malloc(((size_t)work_size + 1) * sizeof *work);
	int *rest = malloc(((size_t)whole + 1) * sizeof *rest);
	if (work && rest && !info)
		syevd(vectors ? "V" : "N", "U", &size, a, &size, w, work, &work_size, rest, &whole, &info, 1, 1);
	const bool memory = work && rest;
	free(work);
	free(rest);
	pthread_mutex_unlock(&one);
	if (!memory)
		return yk_cpu_fail(YOKE_ENOMEM, "eigh: no memory for LAPACK's workspace for %lld rows", (long long)n);
	return info ? yk_cpu_fail(YOKE_EDEVICE, "eigh: LAPACK's dsyevd returned %d", info) : 0;
}

int64_t yk_lapack_cholesky(int64_t n, double *a)
{
	const int size = (int)n;
	int info = 0;
	if (n > INT_MAX / 4)
		return yk_cpu_fail(YOKE_ERANGE, "cholesky: %lld rows exceed the range of LAPACK's integers", (long long)n);
	pthread_mutex_lock(&one);
	// the lower triangle in row-major order is the upper one in column-major order
	potrf("U", &size, a, &size, &info, 1);
	pthread_mutex_unlock(&one);
	return info < 0 ? yk_cpu_fail(YOKE_EDEVICE, "cholesky: LAPACK's dpotrf returned %d", info) : info;
}
