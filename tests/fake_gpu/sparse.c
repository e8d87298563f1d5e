// SPDX-License-Identifier: Apache-2.0
// Fake tridiagonal solvers of cuSPARSE and, compiled with FAKE_HIP, hipSPARSE: elimination in
// f64, in stream 0 of the fake driver, which must be loaded already. YOKE_FAKE_SPARSE is the
// version that the library reports.
#include "config.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/complex.h"
#include "vendor.h"

typedef float complex c8;
typedef double complex c16;

#define CALL(name) TWIN(cusparse##name, hipsparse##name)
enum { GOOD, NOT_INITIALIZED_STATUS, ALLOC_FAILED, INVALID, FAILED = 6, ROOM = 512 };

int fake_code_of(const char *name)
{
	return strstr(name, "_STATUS_ALLOC_FAILED") ? ALLOC_FAILED : 0;
}

struct job {
	int64_t n, count, sides; // systems of n unknowns, each with several right-hand sides
	int64_t apart, step;     // element k of system r is at r apart + k step
	const c8 *dl, *d, *du;
	c8 *x; // columns of right-hand sides are n apart
	void *buffer;
};

static void *of_driver(const char *name)
{
	void *driver = dlopen(TWIN("libcuda.so.1", "libamdhip64.so.6"), RTLD_NOW | RTLD_NOLOAD);
	void *symbol = driver ? dlsym(driver, name) : NULL;
	if (driver)
		dlclose(driver);
	return symbol;
}

static void run(void *arg)
{
	const struct job *j = arg;
	c16 *ratio = calloc((size_t)j->n, sizeof *ratio), *y = calloc((size_t)j->n, sizeof *y);
	for (int64_t r = 0; r < j->count && ratio && y; r++)
		for (int64_t side = 0; side < j->sides; side++) {
			c8 *x = j->x + r * j->apart + side * j->n;
			for (int64_t k = 0; k < j->n; k++) {
				const int64_t at = r * j->apart + k * j->step;
				const c16 below = k ? (c16)j->dl[at] : 0,
					  pivot = (c16)j->d[at] - (k ? below * ratio[k - 1] : 0);
				ratio[k] = (c16)j->du[at] / pivot;
				y[k] = ((c16)x[k * j->step] - (k ? below * y[k - 1] : 0)) / pivot;
			}
			for (int64_t k = j->n - 1; k >= 0; k--) {
				y[k] -= k < j->n - 1 ? ratio[k] * y[k + 1] : 0;
				x[k * j->step] = (c8)y[k];
			}
		}
	memset(j->buffer, 0xff, ROOM); // the library may overwrite it
	free(ratio);
	free(y);
}

// Memory outside the driver's, and unaligned buffers, are refused.
static int enqueue(const char *call, struct job of)
{
	bool (*within)(const void *, size_t);
	int (*push)(void *, void (*)(void *), void *);
	const int64_t all = (of.count - 1) * of.apart + (of.n - 1) * of.step + 1;
	const int fault = fake_fault(call);
	*(void **)&within = of_driver("fake_within");
	*(void **)&push = of_driver("fake_enqueue");
	if (fault || !within || !push)
		return fault ? fault : NOT_INITIALIZED_STATUS;
	if (of.n < 3 || of.count < 1 || (uintptr_t)of.buffer % 128 || !within(of.buffer, ROOM) ||
	    !within(of.dl, (size_t)all * sizeof(c8)) || !within(of.d, (size_t)all * sizeof(c8)) ||
	    !within(of.du, (size_t)all * sizeof(c8)) ||
	    !within(of.x, (size_t)(all + (of.sides - 1) * of.n) * sizeof(c8)))
		return INVALID;
	struct job *j = malloc(sizeof *j);
	if (!j)
		return ALLOC_FAILED;
	*j = of;
	return push(NULL, run, j) ? FAILED : GOOD;
}

static int room(const char *call, size_t *bytes)
{
	*bytes = ROOM;
	return fake_fault(call);
}

#define NAMED(name) TWIN("cusparse" #name, "hipsparse" #name)
// found by dlsym; no header declares them
#define ENTRY(name, ...) EXPORT int CALL(name)(__VA_ARGS__); int CALL(name)(__VA_ARGS__)

ENTRY(Create, void **handle)
{
	*handle = malloc(1);
	return fake_fault(NAMED(Create));
}

ENTRY(Destroy, void *handle)
{
	free(handle);
	return GOOD;
}

ENTRY(GetVersion, void *handle, int *version)
{
	const char *set = getenv("YOKE_FAKE_SPARSE");
	*version = set ? atoi(set) : TWIN(12603, 300100);
	return handle ? GOOD : NOT_INITIALIZED_STATUS;
}

ENTRY(Cgtsv2StridedBatch_bufferSizeExt, void *handle, int m, const c8 *dl, const c8 *d,
      const c8 *du, const c8 *x, int count, int stride, size_t *bytes)
{
	(void)handle, (void)m, (void)dl, (void)d, (void)du, (void)x, (void)count, (void)stride;
	return room(NAMED(Cgtsv2StridedBatch_bufferSizeExt), bytes);
}

ENTRY(Cgtsv2StridedBatch, void *handle, int m, const c8 *dl, const c8 *d, const c8 *du, c8 *x,
      int count, int stride, void *buffer)
{
	(void)handle;
	return enqueue(NAMED(Cgtsv2StridedBatch),
		       (struct job){ m, count, 1, stride, 1, dl, d, du, x, buffer });
}

ENTRY(CgtsvInterleavedBatch_bufferSizeExt, void *handle, int algo, int m, const c8 *dl, const c8 *d,
      const c8 *du, const c8 *x, int count, size_t *bytes)
{
	(void)handle, (void)algo, (void)m, (void)dl, (void)d, (void)du, (void)x, (void)count;
	return room(NAMED(CgtsvInterleavedBatch_bufferSizeExt), bytes);
}

ENTRY(CgtsvInterleavedBatch, void *handle, int algo, int m, c8 *dl, c8 *d, c8 *du, c8 *x, int count,
      void *buffer)
{
	(void)handle;
	return algo < 0 || algo > 2 ?
		       INVALID :
		       enqueue(NAMED(CgtsvInterleavedBatch),
			       (struct job){ m, count, 1, 1, count, dl, d, du, x, buffer });
}

ENTRY(Cgtsv2_nopivot_bufferSizeExt, void *handle, int m, int n, const c8 *dl, const c8 *d,
      const c8 *du, const c8 *b, int ld, size_t *bytes)
{
	(void)handle, (void)m, (void)n, (void)dl, (void)d, (void)du, (void)b, (void)ld;
	return room(NAMED(Cgtsv2_nopivot_bufferSizeExt), bytes);
}

ENTRY(Cgtsv2_nopivot, void *handle, int m, int n, const c8 *dl, const c8 *d, const c8 *du, c8 *b,
      int ld, void *buffer)
{
	(void)handle;
	return ld != m ? INVALID :
			 enqueue(NAMED(Cgtsv2_nopivot),
				 (struct job){ m, 1, n, 0, 1, dl, d, du, b, buffer });
}
