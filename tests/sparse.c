// SPDX-License-Identifier: Apache-2.0
// Tests the vendors' tridiagonal solvers as the resolvent benchmark calls them, on the fake
// drivers of tests/fake_gpu, whose libraries tests/fake_gpu.sh has found: each call against a
// dense inverse, refused arguments, a library of another version.
#include "config.h"

#include "graph/context.h"
#include "resolvent.h"
#include "../bench/peers/sparse.h"
#include "yoke.h"

enum { ROWS = 5, N = 40 };

static void solved(struct yk_sparse *s, const float *a, const double complex *want)
{
	static const char *const names[] = { "strided", "interleaved", "columns" };
	float complex got[ROWS * N];
	double seconds[2];
	for (int call = 0; call < YK_SPARSE_CALLS; call++) {
		const bool all = call == YK_SPARSE_COLUMNS;
		double worst = 0;
		int e = 0;
		for (int64_t i = 0; i < (all ? 1 : N) && e == 0; i++) {
			memset(got, 0xff, sizeof got);
			e = yk_sparse_solve(s, (enum yk_sparse_call)call, ROWS, N, a, i, got,
					    seconds);
			for (int64_t k = 0; k < (all ? ROWS * N : ROWS); k++) {
				const double off =
					cabs((double complex)got[k] - want[all ? k : k * N + i]);
				worst = off <= worst ? worst : off;
			}
		}
		ok(e == 0 && worst < 1e-6 && seconds[1] >= seconds[0] && seconds[0] > 0,
		   "%s: %.2g off %s", names[call], worst, yoke_error());
	}
	int e = yk_sparse_solve(s, YK_SPARSE_STRIDED, 1, 2, a, 0, got, seconds);
	ok(e == YOKE_EDEVICE, "systems of two elements: %s", yoke_error());
	yoke_error_clear();
	ok(yk_sparse_takes(YK_SPARSE_COLUMNS, 1024) && !yk_sparse_takes(YK_SPARSE_COLUMNS, 1025) &&
		   !yk_sparse_takes(YK_SPARSE_STRIDED, 2), "invalid arguments are refused");
}

int main(void)
{
	char title[80], why[200];
	float a[ROWS * N];
	double wide[ROWS * N];
	double complex want[ROWS * N];
	tap_seed();
	if (yoke_setting_set("selftest", "0") < 0)
		return 1;
	yoke_context *ctx = yoke_context_new(NULL);
	if (!ok(ctx != NULL, "a device %s", yoke_error()))
		return done();
	yoke_use(ctx);
	for (int i = 0; i < ROWS * N; i++)
		wide[i] = a[i] = (float)rnd_real(-2, 2);
	for (int r = 0; r < ROWS; r++)
		by_inverse(N, wide + r * N, NULL, NULL, CMPLX(0, 1), false, want + r * N);
	const bool cpu = !strcmp(ctx->device->backend->table.name, "cpu");
	struct yk_sparse *s = yk_sparse_open(ctx->device, title, why, sizeof title, sizeof why);
	if (cpu) {
		ok(!s && strstr(why, "none of cuda or rocm"), "%s: %s", title, why);
	} else if (ok(s != NULL, "%s%s%s", title, s ? "" : ": ", s ? "" : why)) {
		solved(s, a, want);
		yk_sparse_close(s);
		setenv("YOKE_FAKE_SPARSE", "9000", 1);
		s = yk_sparse_open(ctx->device, title, why, sizeof title, sizeof why);
		ok(!s && strstr(why, "sparse.so.") && strstr(why, " is version 9000; ") &&
			   strstr(why, "are known here"),
		   "%s: %s", title, why);
	}
	yoke_use(NULL);
	yoke_context_free(ctx);
	return done();
}
