// SPDX-License-Identifier: Apache-2.0
// Contractions by an installed BLAS, if the setting cpu.gemm requests one. Such libraries start
// their own threads, and the calls that limit them to one are process-wide or vendor-specific. So a
// library is never called from a work item: it gets a whole matrix, and only on request, since its
// result may depend on the number of threads.
#include "config.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "../host/frame.h"
#include "kern_contract.h"

static const struct yoke_setting gemm_setting = {
	sizeof gemm_setting,
	"cpu.gemm",
	"string",
	"own",
	"library for matrix products on the CPU: own; cblas (f32 and f64, as installed); or onednn (f32)",
};

// The reference CBLAS interface, with 32-bit int.
enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };
typedef void sgemm_fn(int order, int ta, int tb, int m, int n, int k, float alpha,
		      const float *a, int lda, const float *b, int ldb, float beta,
		      float *c, int ldc);
typedef void dgemm_fn(int order, int ta, int tb, int m, int n, int k, double alpha,
		      const double *a, int lda, const double *b, int ldb, double beta,
		      double *c, int ldc);
// oneDNN's interface: row-major, the same in versions 1 to 3; 0 means success.
typedef int onednn_fn(char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha,
		      const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
		      float *c, int64_t ldc);

static enum yk_gemm_impl chosen = YK_GEMM_OWN;
static sgemm_fn *sgemm; // CBLAS libraries provide both
static dgemm_fn *dgemm;
static onednn_fn *onednn;
static int verdict;

static bool symbol(void *library, const char *name, void *to)
{
	void *s = dlsym(library, name);

	memcpy(to, &s, sizeof s);
	return s;
}

static bool has_cblas(void *library)
{
	return symbol(library, "cblas_sgemm", &sgemm) &&
	       symbol(library, "cblas_dgemm", &dgemm);
}

static bool has_onednn(void *library)
{
	return symbol(library, "dnnl_sgemm", &onednn);
}

static const struct {
	const char *name, *want;
	enum yk_gemm_impl impl;
	bool (*has)(void *library);
	const char *files[6];
} libraries[] = {
	{ "cblas", "cblas_sgemm found; install OpenBLAS", YK_GEMM_CBLAS, has_cblas,
	  { "libopenblas.so.0", "libblis.so.4", "libmkl_rt.so.2", "libcblas.so.3",
	    "libblas.so.3" } },
	{ "onednn", "dnnl_sgemm found; install oneDNN (libdnnl)", YK_GEMM_ONEDNN, has_onednn,
	  { "libdnnl.so.3", "libdnnl.so.2", "libdnnl.so.1" } },
};

// Loaded only on request: loading starts threads and takes memory.
static bool open_one(const char *const *files, bool (*has)(void *library))
{
	for (; *files; files++) {
		void *library = dlopen(*files, RTLD_NOW | RTLD_LOCAL);
		if (!library)
			continue;
		if (has(library))
			return true;
		dlclose(library);
	}
	return false;
}

void yk_gemm_declare(void)
{
	yk_cpu_setting(&gemm_setting);
}

static void decide(void)
{
	const char *s = yk_cpu_setting(&gemm_setting);

	if (!strcmp(s, "own") || !*s)
		return;
	for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
		if (strcmp(s, libraries[i].name))
			continue;
		if (open_one(libraries[i].files, libraries[i].has))
			chosen = libraries[i].impl;
		else
			verdict = yk_cpu_fail(YOKE_ENOENT,
					      "cpu.gemm=%s: no library with %s, or use own",
					      s, libraries[i].want);
		return;
	}
	verdict = yk_cpu_fail(YOKE_EINVAL, "cpu.gemm=%s: must be own, cblas or onednn", s);
}

int yk_gemm_check(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, decide);
	return verdict;
}

// Computes the leading dimension and whether the matrix is transposed. Libraries require one stride
// of 1 and the other at least the length of a line.
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
	return g->m <= INT_MAX && g->n <= INT_MAX && g->k <= INT_MAX &&
	       line(g->m, g->k, g->am, g->ak, &c->ta, &c->lda) &&
	       line(g->k, g->n, g->bk, g->bn, &c->tb, &c->ldb) &&
	       line(g->m, g->n, g->cm, g->cn, &c->tc, &c->ldc) && !c->tc;
}

enum yk_gemm_impl yk_gemm_requested(const struct yk_gemm *g)
{
	struct call c;
	bool takes = g->dtype == yoke_f32 ||
		     (g->dtype == yoke_f64 && chosen == YK_GEMM_CBLAS);

	return takes && !g->by_row && fits(g, &c) ? chosen : YK_GEMM_OWN;
}

static int by_cblas(const struct yk_gemm *g, const struct call *s, int64_t a, int64_t b,
		    int64_t c)
{
	int ta = s->ta ? TRANSPOSED : PLAIN, tb = s->tb ? TRANSPOSED : PLAIN;
	int m = (int)g->m, n = (int)g->n, k = (int)g->k;

	if (g->dtype == yoke_f32)
		sgemm(ROW_MAJOR, ta, tb, m, n, k, 1, (const float *)g->a + a, s->lda,
		      (const float *)g->b + b, s->ldb, 0, (float *)g->c + c, s->ldc);
	else
		dgemm(ROW_MAJOR, ta, tb, m, n, k, 1, (const double *)g->a + a, s->lda,
		      (const double *)g->b + b, s->ldb, 0, (double *)g->c + c, s->ldc);
	return 0;
}

static int by_onednn(const struct yk_gemm *g, const struct call *s, int64_t a, int64_t b,
		     int64_t c)
{
	int status = onednn("NT"[s->ta], "NT"[s->tb], g->m, g->n, g->k, 1,
			    (const float *)g->a + a, s->lda, (const float *)g->b + b,
			    s->ldb, 0, (float *)g->c + c, s->ldc);

	return status ? yk_cpu_fail(YOKE_EDEVICE, "contract: dnnl_sgemm returned %d", status) :
			0;
}

int yk_gemm_library(const struct yk_gemm *g, enum yk_gemm_impl impl)
{
	struct call s;
	int rc = 0;

	if (!fits(g, &s))
		return YOKE_EUNSUPPORTED;
	for (int64_t i = 0; i < g->batches && rc == 0; i++) {
		int64_t a, b, c;

		yk_gemm_batch(g, i, &a, &b, &c);
		rc = (impl == YK_GEMM_ONEDNN ? by_onednn : by_cblas)(g, &s, a, b, c);
	}
	return rc;
}
