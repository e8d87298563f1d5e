// SPDX-License-Identifier: Apache-2.0
// Contractions by an installed CBLAS, where cpu.gemm=cblas asks for it.
// Such a library starts threads of its own, and the calls that would hold it to one are
// global to the process or differ by vendor.  So it is never called on a piece: it gets a
// whole matrix, and only on request, since its result may depend on its number of
// threads.
#include "config.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "frame.h"
#include "kern_contract.h"

static const struct yoke_setting gemm_setting = {
	sizeof gemm_setting, "cpu.gemm", "string", "own",
	"contractions of f32 and f64 on the CPU: own, or cblas for the one installed",
};

// The reference interface, with int of 32 bits.
enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };
typedef void sgemm_fn(int order, int ta, int tb, int m, int n, int k, float alpha,
		      const float *a, int lda, const float *b, int ldb, float beta,
		      float *c, int ldc);
typedef void dgemm_fn(int order, int ta, int tb, int m, int n, int k, double alpha,
		      const double *a, int lda, const double *b, int ldb, double beta,
		      double *c, int ldc);

static sgemm_fn *sgemm; // both or none
static dgemm_fn *dgemm;
static int verdict;

// Opened only when asked for: it starts threads and takes memory as it is loaded.
static bool open_library(void)
{
	static const char *const names[] = {
		"libopenblas.so.0", "libblis.so.4", "libmkl_rt.so.2",
		"libcblas.so.3",    "libblas.so.3",
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL), *s, *d;
		if (!library)
			continue;
		s = dlsym(library, "cblas_sgemm");
		d = dlsym(library, "cblas_dgemm");
		if (s && d) {
			memcpy(&sgemm, &s, sizeof s);
			memcpy(&dgemm, &d, sizeof d);
			return true;
		}
		dlclose(library);
	}
	return false;
}

void yk_cblas_declare(void)
{
	yk_cpu_setting(&gemm_setting);
}

static void decide(void)
{
	const char *s = yk_cpu_setting(&gemm_setting);

	if (!strcmp(s, "own") || !*s)
		return;
	if (strcmp(s, "cblas")) {
		verdict = yk_cpu_fail(YOKE_EINVAL, "cpu.gemm=%s: it is own or cblas", s);
		return;
	}
	if (!open_library())
		verdict = yk_cpu_fail(YOKE_ENOENT,
				      "cpu.gemm=cblas: no library with cblas_sgemm "
				      "found; install OpenBLAS, or use own");
}

int yk_cblas_check(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, decide);
	return verdict;
}

// A matrix as CBLAS sees it: one stride is 1, the other is at least the length of a line.
static bool line(int64_t rows, int64_t cols, int64_t rs, int64_t cs, bool *transposed,
		 int *ld)
{
	int64_t stride;

	*transposed = cs != 1 && cols > 1;
	if (*transposed && rs != 1 && rows > 1)
		return false;
	stride = *transposed ? cs : rs;
	if ((*transposed ? cols : rows) <= 1)
		stride = *transposed ? rows : cols;
	if (stride < (*transposed ? rows : cols) || stride < 1 || stride > INT_MAX)
		return false;
	*ld = (int)stride;
	return true;
}

struct call {
	bool ta, tb, tc;
	int lda, ldb, ldc;
};

static bool fits(const struct yk_gemm *g, struct call *c)
{
	return (g->dtype == yoke_f32 || g->dtype == yoke_f64) && g->m <= INT_MAX &&
	       g->n <= INT_MAX && g->k <= INT_MAX &&
	       line(g->m, g->k, g->am, g->ak, &c->ta, &c->lda) &&
	       line(g->k, g->n, g->bk, g->bn, &c->tb, &c->ldb) &&
	       line(g->m, g->n, g->cm, g->cn, &c->tc, &c->ldc) && !c->tc;
}

bool yk_cblas_wanted(const struct yk_gemm *g)
{
	struct call c;

	return sgemm && fits(g, &c);
}

int yk_cblas_run(const struct yk_gemm *g)
{
	struct call s;

	if (!fits(g, &s))
		return YOKE_EUNSUPPORTED;
	for (int64_t i = 0; i < g->batches; i++) {
		int ta = s.ta ? TRANSPOSED : PLAIN;
		int tb = s.tb ? TRANSPOSED : PLAIN;
		int m = (int)g->m, n = (int)g->n, k = (int)g->k;
		int64_t a, b, c;

		yk_gemm_batch(g, i, &a, &b, &c);
		if (g->dtype == yoke_f32)
			sgemm(ROW_MAJOR, ta, tb, m, n, k, 1, (const float *)g->a + a,
			      s.lda, (const float *)g->b + b, s.ldb, 0, (float *)g->c + c,
			      s.ldc);
		else
			dgemm(ROW_MAJOR, ta, tb, m, n, k, 1, (const double *)g->a + a,
			      s.lda, (const double *)g->b + b, s.ldb, 0,
			      (double *)g->c + c, s.ldc);
	}
	return 0;
}
