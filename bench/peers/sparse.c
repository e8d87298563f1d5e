// SPDX-License-Identifier: Apache-2.0
// Tridiagonal solvers of cuSPARSE and hipSPARSE. Both libraries, and both drivers, differ only in
// the prefix of their symbols; both pass device addresses like pointers.
#include "config.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/error.h"
#include "sparse.h"

typedef float complex c8;

static const struct vendor {
	const char *backend, *title, *prefix; // prefix of the symbols
	const char *driver[3], *library[4];
	// names of the driver's symbols
	const char *init, *count, *bus, *retain, *use, *alloc, *free, *up, *down, *wait;
	int min, max; // range of supported versions
} vendors[] = {
	{ "cuda",
	  "cuSPARSE",
	  "cusparse",
	  { "libcuda.so.1" },
	  { "libcusparse.so.12", "libcusparse.so.11", "/usr/local/cuda/lib64/libcusparse.so.12" },
	  "cuInit",
	  "cuDeviceGetCount",
	  "cuDeviceGetPCIBusId",
	  "cuDevicePrimaryCtxRetain",
	  "cuCtxSetCurrent",
	  "cuMemAlloc_v2",
	  "cuMemFree_v2",
	  "cuMemcpyHtoDAsync_v2",
	  "cuMemcpyDtoHAsync_v2",
	  "cuStreamSynchronize",
	  11000,
	  12999 },
	{ "rocm",
	  "hipSPARSE",
	  "hipsparse",
	  { "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5" },
	  { "libhipsparse.so.4", "libhipsparse.so.1", "libhipsparse.so.0" },
	  "hipInit",
	  "hipGetDeviceCount",
	  "hipDeviceGetPCIBusId",
	  NULL,
	  "hipSetDevice",
	  "hipMalloc",
	  "hipFree",
	  "hipMemcpyHtoDAsync",
	  "hipMemcpyDtoHAsync",
	  "hipStreamSynchronize",
	  200000,
	  499999 },
};

enum { DL, D, DU, X, ARRAYS };

struct yk_sparse {
	const struct vendor *vendor;
	void *driver, *library, *handle;
	void *at[ARRAYS]; // on the device
	c8 *host[ARRAYS];
	size_t elements; // capacity there and on the host
	int (*alloc)(void **, size_t);
	int (*free)(void *);
	int (*up)(void *, const void *, size_t, void *stream);
	int (*down)(void *, const void *, size_t, void *stream);
	int (*wait)(void *stream);
	int (*destroy)(void *);
	int (*strided_size)(void *, int m, const void *, const void *, const void *, const void *,
			    int count, int stride, size_t *);
	int (*strided)(void *, int m, const void *, const void *, const void *, void *, int count,
		       int stride, void *);
	int (*interleaved_size)(void *, int algo, int m, const void *, const void *, const void *,
				const void *, int count, size_t *);
	int (*interleaved)(void *, int algo, int m, void *, void *, void *, void *, int count,
			   void *);
	int (*columns_size)(void *, int m, int n, const void *, const void *, const void *,
			    const void *, int ld, size_t *);
	int (*columns)(void *, int m, int n, const void *, const void *, const void *, void *,
		       int ld, void *);
};

// ---- opening ----

static bool find(void *library, const char *prefix, const char *name, void *to)
{
	char symbol[96];
	snprintf(symbol, sizeof symbol, "%s%s", prefix, name);
	void *at = dlsym(library, symbol);
	memcpy(to, &at, sizeof at);
	return at != NULL;
}

static void *first_of(const char *const *names, size_t n, const char **name)
{
	void *library = NULL;
	for (size_t i = 0; i < n && names[i] && !library; i++) {
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
		*name = names[i];
	}
	return library;
}

// Makes the driver's context of this device current, the same context that the plugin uses.
static bool enter(struct yk_sparse *s, const struct yk_device *d)
{
	const struct vendor *v = s->vendor;
	int (*init)(unsigned), (*count)(int *), (*bus)(char *, int, int), (*retain)(void **, int),
		(*use_context)(void *), (*use_device)(int), n = 0;
	char id[32];
	void *context = NULL;
	bool good =
		find(s->driver, "", v->init, &init) && find(s->driver, "", v->count, &count) &&
		find(s->driver, "", v->bus, &bus) && find(s->driver, "", v->use, &use_context) &&
		find(s->driver, "", v->alloc, &s->alloc) &&
		find(s->driver, "", v->free, &s->free) && find(s->driver, "", v->up, &s->up) &&
		find(s->driver, "", v->down, &s->down) && find(s->driver, "", v->wait, &s->wait) &&
		(!v->retain || find(s->driver, "", v->retain, &retain));
	if (!good || init(0) || count(&n))
		return false;
	memcpy(&use_device, &use_context, sizeof use_device);
	for (int i = 0; i < n; i++)
		if (!bus(id, sizeof id, i) && !strcasecmp(id, d->info.pci))
			return v->retain ? !retain(&context, i) && !use_context(context) :
					   !use_device(i);
	return false;
}

static bool find_calls(struct yk_sparse *s)
{
	const char *p = s->vendor->prefix;
	return find(s->library, p, "Destroy", &s->destroy) &&
	       find(s->library, p, "Cgtsv2StridedBatch_bufferSizeExt", &s->strided_size) &&
	       find(s->library, p, "Cgtsv2StridedBatch", &s->strided) &&
	       find(s->library, p, "CgtsvInterleavedBatch_bufferSizeExt", &s->interleaved_size) &&
	       find(s->library, p, "CgtsvInterleavedBatch", &s->interleaved) &&
	       find(s->library, p, "Cgtsv2_nopivot_bufferSizeExt", &s->columns_size) &&
	       find(s->library, p, "Cgtsv2_nopivot", &s->columns);
}

struct yk_sparse *yk_sparse_open(const struct yk_device *d, char *title, char *why,
				 size_t title_cap, size_t cap)
{
	const struct vendor *v = NULL;
	const char *name = "", *driver;
	int (*create)(void **), (*version)(void *, int *), number = 0;
	for (size_t i = 0; i < sizeof vendors / sizeof *vendors; i++)
		if (!strcmp(d->backend->table.name, vendors[i].backend))
			v = &vendors[i];
	snprintf(title, title_cap, "%s", v ? v->title : "cuSPARSE, hipSPARSE");
	if (!v) {
		snprintf(why, cap, "the device is none of cuda or rocm");
		return NULL;
	}
	struct yk_sparse *s = calloc(1, sizeof *s);
	if (!s) {
		snprintf(why, cap, "out of memory");
		return NULL;
	}
	s->vendor = v;
	if (!(s->library = first_of(v->library, sizeof v->library / sizeof *v->library, &name)))
		snprintf(why, cap, "%s is not there", v->library[0]);
	else if (!(s->driver =
			   first_of(v->driver, sizeof v->driver / sizeof *v->driver, &driver)) ||
		 !enter(s, d))
		snprintf(why, cap, "the driver does not show %s", d->id);
	else if (!find(s->library, v->prefix, "Create", &create) ||
		 !find(s->library, v->prefix, "GetVersion", &version) || !find_calls(s))
		snprintf(why, cap, "%s lacks calls that are wanted: %s", name, dlerror());
	else if (create(&s->handle) || version(s->handle, &number))
		snprintf(why, cap, "%s does not start on %s", name, d->id);
	else if (number < v->min || number > v->max)
		snprintf(why, cap, "%s is version %d; %d to %d are known here", name, number,
			 v->min, v->max);
	else {
		snprintf(title, title_cap, "%s %d", v->title, number);
		return s;
	}
	yk_sparse_close(s);
	return NULL;
}

static void drop(struct yk_sparse *s)
{
	for (int k = 0; k < ARRAYS; k++) {
		if (s->at[k])
			s->free(s->at[k]);
		free(s->host[k]);
		s->at[k] = NULL;
		s->host[k] = NULL;
	}
	s->elements = 0;
}

void yk_sparse_close(struct yk_sparse *s)
{
	if (!s)
		return;
	if (s->handle) {
		drop(s);
		s->destroy(s->handle);
	}
	if (s->library)
		dlclose(s->library);
	if (s->driver)
		dlclose(s->driver);
	free(s);
}

bool yk_sparse_takes(enum yk_sparse_call call, int64_t n)
{
	return n >= 3 && (call != YK_SPARSE_COLUMNS || n <= 1024);
}

// ---- solving ----

static int reserve(struct yk_sparse *s, size_t n)
{
	if (n <= s->elements)
		return 0;
	drop(s);
	for (int k = 0; k < ARRAYS; k++) {
		s->host[k] = malloc(n * sizeof *s->host[k]);
		if (!s->host[k] || s->alloc(&s->at[k], n * sizeof *s->host[k])) {
			s->at[k] = NULL;
			drop(s);
			return yk_fail(YOKE_ENOMEM, "bench: no memory for %s with %zu elements",
				       s->vendor->title, n);
		}
	}
	s->elements = n;
	return 0;
}

// Writes diagonals and right-hand sides of `rows` rows, starting at `row`: element k of row r is at
// r apart + k step.
static void lay(struct yk_sparse *s, int64_t rows, int64_t n, const float *a, int64_t apart,
		int64_t step, int64_t unit)
{
	for (int64_t r = 0; r < rows; r++)
		for (int64_t k = 0; k < n; k++) {
			const int64_t at = r * apart + k * step;
			s->host[DL][at] = k > 0;
			s->host[DU][at] = k < n - 1;
			s->host[D][at] = CMPLXF(a[r * n + k], -1);
			if (unit >= 0)
				s->host[X][at] = k == unit;
		}
}

static int call_once(struct yk_sparse *s, enum yk_sparse_call call, int rows, int n, void *buffer)
{
	void *const *at = s->at;
	return call == YK_SPARSE_STRIDED ?
		       s->strided(s->handle, n, at[DL], at[D], at[DU], at[X], rows, n, buffer) :
	       call == YK_SPARSE_INTERLEAVED ?
		       s->interleaved(s->handle, 0, n, at[DL], at[D], at[DU], at[X], rows, buffer) :
		       s->columns(s->handle, n, n, at[DL], at[D], at[DU], at[X], n, buffer);
}

static int size_of(struct yk_sparse *s, enum yk_sparse_call call, int rows, int n, size_t *bytes)
{
	void *const *at = s->at;
	return call == YK_SPARSE_STRIDED ?
		       s->strided_size(s->handle, n, at[DL], at[D], at[DU], at[X], rows, n, bytes) :
	       call == YK_SPARSE_INTERLEAVED ?
		       s->interleaved_size(s->handle, 0, n, at[DL], at[D], at[DU], at[X], rows,
					   bytes) :
		       s->columns_size(s->handle, n, n, at[DL], at[D], at[DU], at[X], n, bytes);
}

// Uploads the operands, solves, and downloads the solutions.
static int solve(struct yk_sparse *s, enum yk_sparse_call call, int64_t rows, int64_t n,
		 double seconds[2])
{
	const size_t system = (size_t)(call == YK_SPARSE_COLUMNS ? n : rows * n) * sizeof(c8);
	const size_t sides = (size_t)(call == YK_SPARSE_COLUMNS ? n * n : rows * n) * sizeof(c8);
	void *buffer = NULL;
	size_t bytes = 0;
	int code = 0;
	for (int k = 0; k < ARRAYS && !code; k++)
		code = s->up(s->at[k], s->host[k], k == X ? sides : system, NULL);
	code = code ? code : s->wait(NULL);
	const double began = yk_seconds();
	code = code ? code : size_of(s, call, (int)rows, (int)n, &bytes);
	// the allocation exceeds the required alignment of 128 bytes
	code = code ? code : s->alloc(&buffer, bytes ? bytes : 128);
	const double called = yk_seconds();
	code = code ? code : call_once(s, call, (int)rows, (int)n, buffer);
	code = code ? code : s->wait(NULL);
	const double solved = yk_seconds();
	if (buffer)
		s->free(buffer);
	seconds[0] += solved - called;
	seconds[1] += yk_seconds() - began;
	code = code ? code : s->down(s->host[X], s->at[X], sides, NULL);
	code = code ? code : s->wait(NULL);
	return code ? yk_fail(YOKE_EDEVICE,
			      "bench: %s fails with code %d, %lld rows of %lld elements",
			      s->vendor->title, code, (long long)rows, (long long)n) :
		      0;
}

int yk_sparse_solve(struct yk_sparse *s, enum yk_sparse_call call, int64_t rows, int64_t n,
		    const float *a, int64_t i, c8 *got, double seconds[2])
{
	int e = reserve(s, (size_t)(call == YK_SPARSE_COLUMNS && n > rows ? n * n : rows * n));
	seconds[0] = seconds[1] = 0;
	if (e == 0 && call != YK_SPARSE_COLUMNS) {
		const int64_t apart = call == YK_SPARSE_STRIDED ? n : 1,
			      step = call == YK_SPARSE_STRIDED ? 1 : rows;
		lay(s, rows, n, a, apart, step, i);
		e = solve(s, call, rows, n, seconds);
		for (int64_t r = 0; r < rows && e == 0; r++)
			got[r] = s->host[X][r * apart + i * step];
		return e;
	}
	for (int64_t r = 0; r < rows && e == 0; r++) {
		lay(s, 1, n, a + r * n, n, 1, -1);
		for (int64_t k = 0; k < n * n; k++)
			s->host[X][k] = k / n == k % n;
		e = solve(s, call, 1, n, seconds);
		for (int64_t k = 0; k < n && e == 0; k++)
			got[r * n + k] = s->host[X][k * n + k];
	}
	return e;
}
