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
	sizeof lapack_setting,
	"cpu.lapack",
	"string",
	"0",
	"LAPACK for eigenvectors, singular values and Cholesky factors on the CPU: 0, yoke's kernels; 1, an installed "
	"library; or a library's file, with 32-bit integers",
};

// LAPACK's Fortran interface with 32-bit integers; compilers pass the strings' lengths, here 1, as
// last arguments.
typedef void syevd_fn(const char *job, const char *half, const int *n, double *a, const int *lda,
		      double *w, double *work, const int *lwork, int *iwork, const int *liwork,
		      int *info, size_t, size_t);
typedef void gesdd_fn(const char *job, const int *m, const int *n, void *a, const int *lda, void *s,
		      void *u, const int *ldu, void *vt, const int *ldvt, void *work,
		      const int *lwork, int *iwork, int *info, size_t);
typedef void potrf_fn(const char *half, const int *n, double *a, const int *lda, int *info, size_t);

static syevd_fn *syevd;
static potrf_fn *potrf;
static gesdd_fn *dgesdd, *sgesdd;
static bool wanted;
static int verdict;
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER; // not every LAPACK is reentrant

static bool symbol(void *library, const char *name, void *to)
{
	void *s = dlsym(library, name);
	memcpy(to, &s, sizeof s);
	return s;
}

// Loads the first library that has all functions.
static bool open_one(const char *const *file, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		void *library = dlopen(file[i], RTLD_NOW | RTLD_LOCAL);
		if (library && symbol(library, "dsyevd_", &syevd) &&
		    symbol(library, "dpotrf_", &potrf) && symbol(library, "dgesdd_", &dgesdd) &&
		    symbol(library, "sgesdd_", &sgesdd))
			return true;
		if (library)
			dlclose(library);
	}
	return false;
}

static bool is_one_of(const char *s, const char *const *word)
{
	while (*word && strcmp(s, *word))
		word++;
	return *word;
}

static void decide(void)
{
	static const char *const files[] = { "libopenblas.so.0", "liblapack.so.3", "libmkl_rt.so.2",
					     "libflexiblas.so.3" };
	static const char *const no[] = { "", "0", "no", "off", "false", NULL }, *const yes[] = {
		"1", "yes", "on", "true", NULL
	};
	const char *s = yk_cpu_setting(&lapack_setting);
	if (is_one_of(s, no))
		return;
	wanted =
		is_one_of(s, yes) ? open_one(files, sizeof files / sizeof *files) : open_one(&s, 1);
	if (!wanted)
		verdict = yk_cpu_fail(
			YOKE_ENOENT,
			"cpu.lapack=%s: no library with dsyevd_, dpotrf_ and dgesdd_ found; install "
			"liblapack3 or libopenblas0, name its file, or set it to 0",
			s);
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
		return yk_cpu_fail(YOKE_ERANGE,
				   "eigh: %lld rows exceed the range of LAPACK's integers",
				   (long long)n);
	pthread_mutex_lock(&one);
	syevd(vectors ? "V" : "N", "U", &size, a, &size, w, &best, &ask, &whole, &ask, &info, 1, 1);
	const int work_size = (int)best;
	double *work = malloc(((size_t)work_size + 1) * sizeof *work);
	int *rest = malloc(((size_t)whole + 1) * sizeof *rest);
	if (work && rest && !info)
		syevd(vectors ? "V" : "N", "U", &size, a, &size, w, work, &work_size, rest, &whole,
		      &info, 1, 1);
	const bool memory = work && rest;
	free(work);
	free(rest);
	pthread_mutex_unlock(&one);
	if (!memory)
		return yk_cpu_fail(YOKE_ENOMEM,
				   "eigh: no memory for LAPACK's workspace for %lld rows",
				   (long long)n);
	return info ? yk_cpu_fail(YOKE_EDEVICE, "eigh: LAPACK's dsyevd returned %d", info) : 0;
}

int yk_lapack_svd(bool wide, bool vectors, bool full, int64_t m, int64_t n, void *a, void *s,
		  void *u, int64_t ldu, void *vt, int64_t ldvt)
{
	const int rows = (int)m, columns = (int)n, lu = ldu > 0 ? (int)ldu : 1,
		  lv = ldvt > 0 ? (int)ldvt : 1, ask = -1;
	const char *job = !vectors ? "N" : full ? "A" : "S";
	gesdd_fn *gesdd = wide ? dgesdd : sgesdd;
	const size_t element = wide ? sizeof(double) : sizeof(float);
	union {
		double d;
		float f;
	} best = { 0 };
	int info = 0, size;
	if (m > INT_MAX / 16 || n > INT_MAX / 16)
		return yk_cpu_fail(YOKE_ERANGE,
				   "svd: %lld rows exceed the range of LAPACK's integers",
				   (long long)(m > n ? m : n));
	pthread_mutex_lock(&one);
	int *rest = malloc(8 * (size_t)(m < n ? m : n) * sizeof *rest + 8);
	if (rest)
		gesdd(job, &rows, &columns, a, &rows, s, u, &lu, vt, &lv, &best, &ask, rest, &info,
		      1);
	// f32 may have rounded it down
	size = wide ? (int)best.d : (int)best.f + (int)(best.f / 1e6f) + 1;
	void *work = rest && !info ? malloc((size_t)size * element) : NULL;
	if (work)
		gesdd(job, &rows, &columns, a, &rows, s, u, &lu, vt, &lv, work, &size, rest, &info,
		      1);
	const bool memory = work || info;
	free(work);
	free(rest);
	pthread_mutex_unlock(&one);
	if (!memory)
		return yk_cpu_fail(YOKE_ENOMEM,
				   "svd: no memory for LAPACK's workspace for %lld rows",
				   (long long)m);
	return info ? yk_cpu_fail(YOKE_EDEVICE, "svd: LAPACK's gesdd returned %d", info) : 0;
}

int64_t yk_lapack_cholesky(int64_t n, double *a)
{
	const int size = (int)n;
	int info = 0;
	if (n > INT_MAX / 4)
		return yk_cpu_fail(YOKE_ERANGE,
				   "cholesky: %lld rows exceed the range of LAPACK's integers",
				   (long long)n);
	pthread_mutex_lock(&one);
	// the lower triangle in row-major order is the upper one in column-major order
	potrf("U", &size, a, &size, &info, 1);
	pthread_mutex_unlock(&one);
	return info < 0 ? yk_cpu_fail(YOKE_EDEVICE, "cholesky: LAPACK's dpotrf returned %d", info) :
			  info;
}
