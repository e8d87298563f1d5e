// SPDX-License-Identifier: Apache-2.0
// Measures yoke_largest selecting 1 % of 25 M elements beside a sum that reads the same elements:
// as values and indices, and as compress=topk uses it, with the carried residual and the
// remainder. The variants run in turn; the figures are medians, and medians of the per-round
// ratios to the sum. YOKE_THREADS and YOKE_BACKEND apply.
//
//	bench/largest [elements, 25000000]
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "rounds.h"
#include "yoke.h"

enum { WAYS = 3, ROUNDS = 15, WARM = 2, OF = 100 };

static int fail(void)
{
	fprintf(stderr, "bench/largest: %s\n", yoke_error());
	return 1;
}

// Seconds that a variant takes, or < 0 on failure.
static double once(int way, yoke_tensor *x, yoke_tensor *carried, int64_t n)
{
	yoke_scope *s = yoke_scope_begin("bench");
	yoke_tensor *out[3] = { NULL };
	if (way == 0)
		out[0] = yoke_sum(x, YOKE_ALL);
	else
		out[0] = yoke_largest(x, way == 1 ? YOKE_NONE : carried, n / OF, &out[1],
				      way == 1 ? NULL : &out[2]);
	const double began = yk_seconds();
	int err = yoke_eval(way == 0 ? 1 : way == 1 ? 2 : 3, out) | yoke_sync();
	const double took = yk_seconds() - began;
	err |= yoke_scope_end(s);
	return err ? -1 : took;
}

int main(int argc, char **argv)
{
	static const char *const name[WAYS] = { "sum", "values and places",
						"with carried and rest" };
	const int64_t n = argc > 1 ? atoll(argv[1]) : 25000000;
	double took[WAYS][ROUNDS], ratio[ROUNDS];
	yoke_context *ctx = n >= OF ? yoke_context_new(NULL) : NULL;
	if (!ctx)
		return fail();
	yoke_use(ctx);
	yoke_tensor *x = yoke_keep(yoke_variable("x", yoke_f32, 1, &n)),
		    *carried = yoke_keep(yoke_variable("e", yoke_f32, 1, &n));
	yoke_assign(x, yoke_normal(yoke_f32, 1, &n));
	yoke_assign(carried, yoke_normal(yoke_f32, 1, &n));
	if (yoke_sync() < 0)
		return fail();
	for (int r = -WARM; r < ROUNDS; r++)
		for (int way = 0; way < WAYS; way++) {
			const double t = once(way, x, carried, n);
			if (t < 0)
				return fail();
			if (r >= 0)
				took[way][r] = t;
		}
	printf("%lld elements of f32, one of %d taken\n", (long long)n, OF);
	for (int way = 0; way < WAYS; way++) {
		for (int r = 0; r < ROUNDS; r++)
			ratio[r] = took[way][r] / took[0][r];
		printf("  %-24s %9.3f ms  %6.1f GB/s read  %6.2f of the sum's time\n", name[way],
		       1e3 * median(took[way], ROUNDS),
		       1e-9 * 4 * (double)n / median(took[way], ROUNDS), median(ratio, ROUNDS));
	}
	yoke_free(x);
	yoke_free(carried);
	yoke_context_free(ctx);
	return 0;
}
