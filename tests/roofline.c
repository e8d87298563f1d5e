// SPDX-License-Identifier: Apache-2.0
// Tests flop and byte counts of ops against counts by hand, occupancy against a table, the
// classification of what bounds a kernel, and that limits are measured and cached.
#include "config.h"

#include "observe/cycle.h"
#include "observe/roof.h"
#include "observe/occupancy.h"
#include "observed.h"
#include "tap.h"

// ---- flops and bytes ----

// The profile's row of an op in the graph that `make` records.
static struct yoke_profile_row measured(yoke_tensor *(*make)(void), const char *op)
{
	struct yoke_profile_options o = {
		.size = sizeof o, .active = 1, .repeat = 1, .flags = YOKE_PROFILE_SHAPES
	};
	struct yoke_profile_row row[64] = { { .size = sizeof *row } },
				found = { .flops = NAN, .bytes = NAN };
	yoke_scope *s = yoke_scope_begin("test");
	yoke_tensor *y = make();
	yoke_profile *p = yoke_profile_new(&o);
	if (yoke_eval(1, &y) < 0)
		diag("%s", yoke_error());
	int n = yoke_profile_rows(p, 64, row);
	for (int i = 0; i < n && i < 64; i++)
		if (!strcmp(row[i].op, op))
			found = row[i];
	yoke_profile_step(p);
	yoke_profile_free(p);
	yoke_scope_end(s);
	return found;
}

static yoke_tensor *full(int rank, const int64_t *dims)
{
	yoke_tensor *x = yoke_variable("x", yoke_f32, rank, dims);
	return x;
}

#define FULL(...) full(sizeof((int64_t[]){ __VA_ARGS__ }) / 8, (int64_t[]){ __VA_ARGS__ })

static yoke_tensor *product(void)
{
	return yoke_matmul(FULL(3, 5, 7), FULL(3, 7, 11), 0);
}

static yoke_tensor *map(void) // a mul and an add of 6 x 10, one operand broadcast from [10]
{
	yoke_tensor *x = FULL(6, 10), *b = FULL(10);
	return yoke_add(yoke_mul(x, x), b);
}

static yoke_tensor *reduction(void) // square and sum
{
	return yoke_sum(yoke_square(FULL(9, 13)), YOKE_AXIS(1));
}

static yoke_tensor *copy(void)
{
	return yoke_contiguous(yoke_permute(FULL(8, 9), (const int[]){ 1, 0 }));
}

static yoke_tensor *attention(bool causal, int64_t t, int64_t s)
{
	return yoke_attention(FULL(2, t, 4, 16), FULL(2, s, 4, 16), FULL(2, s, 4, 16), YOKE_NONE,
			      causal, 0, 0);
}

static yoke_tensor *attention_all(void)
{
	return attention(false, 5, 7);
}

static yoke_tensor *attention_causal(void)
{
	return attention(true, 5, 7);
}

static yoke_tensor *attention_short(void) // more queries than keys
{
	return attention(true, 7, 5);
}

static const struct yoke_conv_options halved = { .size = sizeof halved,
						 .groups = 2,
						 .stride = { 2, 2 } };

static yoke_tensor *convolution(void)
{
	return yoke_conv(FULL(3, 4, 9, 9), FULL(6, 2, 3, 3), &halved);
}

static yoke_tensor *transposed(void)
{
	return yoke_conv_transposed(FULL(3, 6, 4, 4), FULL(6, 2, 3, 3), &halved);
}

static yoke_tensor *by_weights(void)
{
	yoke_tensor *w = FULL(6, 2, 3, 3), *g;
	yoke_grad(yoke_sum(yoke_conv(FULL(3, 4, 9, 9), w, &halved), YOKE_ALL), 1, &w, &g);
	return g;
}

static void same(const char *what, yoke_tensor *(*make)(void), const char *op, double flops,
		 double bytes)
{
	struct yoke_profile_row r = measured(make, op);
	ok(r.flops == flops && (bytes < 0 || r.bytes == bytes),
	   "%s: %g flops of %g, %g bytes of %g", what, r.flops, flops, r.bytes, bytes);
}

static void test_counts(void)
{
	// pairs of causal attention by hand: query i of t sees min(max(i + s - t + 1, 0), s) of s
	// keys
	double pairs[3] = { 5 * 7, 0, 0 };
	for (int k = 1; k < 3; k++)
		for (int i = 0, t = k == 1 ? 5 : 7, s = k == 1 ? 7 : 5; i < t; i++)
			pairs[k] += i + s - t + 1 > 0 ? i + s - t + 1 : 0;
	same("a product", product, "matmul", 3. * 2 * 5 * 11 * 7,
	     4. * 3 * (5 * 7 + 7 * 11 + 5 * 11));
	same("a map", map, "add", 2. * 60, 4. * (60 + 10 + 60));
	same("a reduction", reduction, "sum", 2. * 9 * 13, 4. * (9 * 13 + 9));
	same("a copy", copy, "contiguous", 0, 4. * 2 * 72);
	same("attention", attention_all, "attention", 4. * 16 * 2 * 4 * pairs[0], -1);
	same("causal attention", attention_causal, "attention", 4. * 16 * 2 * 4 * pairs[1], -1);
	same("a convolution", convolution, "conv", 2. * 3 * 6 * 16 * 2 * 9,
	     4. * (3 * 4 * 81 + 6 * 2 * 9 + 3 * 6 * 16));
	same("its gradient by the operand", transposed, "conv_x", 2. * 3 * 6 * 16 * 2 * 9, -1);
	same("its gradient by the weights", by_weights, "conv_w", 2. * 3 * 6 * 16 * 2 * 9, -1);
	same("causal attention of few keys", attention_short, "attention",
	     4. * 16 * 2 * 4 * pairs[2], -1);
}

// ---- occupancy ----

// CUDA's occupancy calculator, by hand: resident warps as a fraction of the maximum.
static void test_occupancy(void)
{
	static const struct {
		const char *generation;
		uint32_t group, registers;
		uint64_t local;
		double want;
	} row[] = {
		{ "sm_80", 256, 32, 0, 1 },               // 8 groups of 8 warps
		// 2048 registers a warp: 8 warps a part, 4 groups
		{ "sm_80", 256, 64, 0, .5 },
		// 2304: 7 warps a part, 28 in all, 3 groups
		{ "sm_80", 256, 65, 0, 24. / 64 },
		{ "sm_80", 1024, 64, 0, .5 },             // one group of 32 warps
		{ "sm_80", 32, 16, 0, .5 },               // 32 groups of a warp
		{ "sm_80", 33, 16, 0, 1 },                // 2 warps each
		// 48 KiB and 1 beside: 3 groups of 164 KiB
		{ "sm_80", 128, 32, 48 << 10, 12. / 64 },
		{ "sm_80", 128, 32, (41 << 10) - 1024, 16. / 64 }, // 41 KiB: 4 groups
		{ "sm_86", 256, 32, 0, 1 },               // 6 groups of 8 of 48 warps
		// 2 groups of 64 KiB, none beside: 16 of 32 warps
		{ "sm_75", 256, 32, 32 << 10, .5 },
		{ "sm_75", 64, 32, 0, 1 },                // 16 groups of 2 warps
		// 5376 registers a warp: 3 a part, one group
		{ "sm_90", 384, 168, 0, 12. / 64 },
		{ "sm_90", 128, 255, 0, 8. / 64 },        // 8192: 2 a part, 2 groups
	};
	int bad = 0;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct yoke_occupancy o = { .size = sizeof o,
					    .group = row[i].group,
					    .registers = row[i].registers,
					    .local_bytes = row[i].local,
					    .share = -1 };
		double got = yk_occupancy(row[i].generation, &o);
		if (!(fabs(got - row[i].want) < 1e-12)) {
			diag("%s, %u items of %u registers, %u bytes: %g, not %g",
			     row[i].generation, row[i].group, row[i].registers,
			     (unsigned)row[i].local, got, row[i].want);
			bad++;
		}
	}
	ok(!bad, "occupancy of %zu kernels", sizeof row / sizeof *row);
	struct yoke_occupancy o = { .size = sizeof o, .group = 256, .registers = 32, .share = .25 };
	ok(yk_occupancy("sm_80", &o) == .25, "the driver's value takes precedence");
	o.share = -1;
	ok(isnan(yk_occupancy("gfx90a", &o)) && isnan(yk_occupancy("sm_1", &o)) &&
		   isnan(yk_occupancy("", &o)),
	   "n/a for architectures without a table");
	o.registers = 0;
	ok(isnan(yk_occupancy("sm_80", &o)), "n/a if registers are unknown");
}

// ---- roofline ----

static void test_roofline(void)
{
	struct yk_roof r = { .copy = 1e11, .launch_ns = 1000 };
	r.flops[yoke_f32] = 1e12; // the ridge is at 10 flops per byte
	struct yk_bounded b = yk_roofline(&r, yoke_f32, 1e9, 1e7, 2e-3); // 100 per byte
	ok(b.bound == YOKE_BOUND_COMPUTE && fabs(b.share - .5) < 1e-12, "compute-bound: %g",
	   b.share);
	b = yk_roofline(&r, yoke_f32, 1e7, 1e7, 2e-4); // 1 per byte: at most 1e11
	ok(b.bound == YOKE_BOUND_MEMORY && fabs(b.share - .5) < 1e-12, "memory-bound: %g", b.share);
	b = yk_roofline(&r, yoke_f32, 0, 1e7, 4e-4);
	ok(b.bound == YOKE_BOUND_MEMORY && fabs(b.share - .25) < 1e-12,
	   "an op that only moves data: %g", b.share);
	ok(yk_roofline(&r, yoke_f32, 1e3, 1e3, 3.9e-6).bound == YOKE_BOUND_LAUNCH &&
		   yk_roofline(&r, yoke_f32, 1e3, 1e3, 4.1e-6).bound != YOKE_BOUND_LAUNCH,
	   "launch-bound below four times an empty launch");
	ok(isnan(yk_roofline(&r, yoke_f64, 1e3, 1e3, 1).share) &&
		   isnan(yk_roofline(NULL, yoke_f32, 1, 1, 1).share) &&
		   isnan(yk_roofline(&r, yoke_f32, 1e3, 1e3, NAN).share),
	   "n/a without a limit or a time");
}

static void test_limits(const char *backend)
{
	struct yoke_context *ctx = yoke_context_new(backend), *former = yoke_use(ctx);
	const struct yk_roof *r = yk_roof_of(ctx->device, yoke_f32);
	// between a lower bound for all machines and an upper bound
	ok(r && r->flops[yoke_f32] > 1e8 && r->flops[yoke_f32] < 1e15 && r->copy > 1e8 &&
		   r->copy < 1e14,
	   "%s: %.3g flop/s, %.3g bytes/s, a launch of %.0f ns, waited for %.0f", backend,
	   r ? r->flops[yoke_f32] : 0, r ? r->copy : 0, r ? r->launch_ns : 0, r ? r->wait_ns : 0);
	ok(r == yk_roof_of(ctx->device, yoke_f32), "%s: measured only once", backend);
	yoke_use(former);
	yoke_context_free(ctx);
}

int main(void)
{
	if (tap_eager())
		return skip_all("its plans are of whole graphs");
	tap_seed();
	tap_plugin_path();
	yoke_setting_set("profile.limits", "0");
	struct yoke_context *ctx = yoke_context_new("cpu");
	yoke_use(ctx);
	test_counts();
	yoke_context_free(ctx);
	test_occupancy();
	test_roofline();
	if (tap_turn("limits of a processor", 2))
		test_limits("cpu");
	if (tap_turn("limits by kernels", 2) && observed_opencl("limits by kernels"))
		test_limits("opencl");
	return done();
}
