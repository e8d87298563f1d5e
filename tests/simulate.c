// SPDX-License-Identifier: Apache-2.0
// Tests the simulator of collective schedules against closed forms implemented here: within 1 %
// up to 4096 ranks, with one, several or all ranks per machine; no schedule is faster than its
// bytes permit.
#include "config.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "comm/simulate_step.h"
#include "comm/tuned.h"
#include "yoke.h"
#include "tap.h"

static const char *wrong;
static char text[200];
static uint32_t cases;

static double draw(double min, double max)
{
	return min * pow(max / min, rnd_real(0, 1));
}

// all_reduce of B bytes, n and g powers of two, N = n / g machines; b2 is a rank's bandwidth of its
// machine's link.
static double closed(int how, double n, double g, double B, const struct yk_wire_model *m)
{
	const double a1 = m->alpha1, b1 = m->beta1, a2 = m->alpha2, b2 = g * m->beta2, c = m->gamma,
		     N = n / g;
	const double l1 = log2(g), l2 = log2(N);
	switch (how) {
	case YK_BY_TREE: return 2 * (l1 * (a1 + B * b1) + l2 * (a2 + B * b2)) + (l1 + l2) * B * c;
	case YK_BY_DOUBLING: return l1 * (a1 + B * b1) + l2 * (a2 + B * b2) + (l1 + l2) * B * c;
	// distances below g carry (1 - 1/g) B each way, the others (1/g - 1/n) B
	case YK_BY_HALVING:
		return 2 * (l1 * a1 + l2 * a2) + 2 * B * ((1 - 1 / g) * b1 + (1 / g - 1 / n) * b2) +
		       (1 - 1 / n) * B * c;
	case YK_BY_PAIRWISE:
	case YK_BY_RING: // none where links differ
		return g == n ? 2 * (n - 1) * a1 + (n - 1) / n * B * (2 * b1 + c) :
		       g == 1 ? 2 * (n - 1) * a2 + (n - 1) / n * B * (2 * b2 + c) : 0;
	}
	return 2 * ((g - 1) * (a1 + B / g * b1) + (N - 1) * (a2 + B / n * b2)) +
	       ((g - 1) / g + (N - 1) / n) * B * c;
}

static void one(int how, uint32_t n, uint32_t g, bool known)
{
	const struct yk_wire_model m = { draw(1e-7, 1e-4),  draw(1e-12, 1e-8), draw(1e-7, 1e-4),
					 draw(1e-12, 1e-8), draw(1e-12, 1e-9), g };
	const struct yk_schedule_request w = {
		.what = YK_DO_ALL_REDUCE, .how = (uint8_t)how, .ranks = n, .node = g
	};
	const double bytes = draw(1e3, 1e9), want = known ? closed(how, n, g, bytes, &m) : 0;
	double took = 0, formula = 0;
	if (!yk_schedule_exists(&w))
		return;
	const int err = yk_simulate(&m, &w, bytes, &took);
	const bool said = yk_simulate_formula(&m, &w, bytes, &formula);
	const char *bad =
		err ? yoke_error() :
		want > 0 && !(fabs(took / want - 1) < 0.01) ? "simulated, not as the closed form" :
		want > 0 && !(said && fabs(formula / want - 1) < 1e-9) ?
		"another formula is printed" :
		took < 0.999 * yk_simulate_min(&m, n, bytes) ? "faster than its bytes" :
		NULL;
	cases++;
	if (bad && !wrong) {
		snprintf(text, sizeof text, "%u ranks, %u a machine, %g bytes: %s: %g s, %g", n, g,
			 bytes, bad, took, want);
		wrong = text;
	}
}

// Ranks use the simulator's tuning file as soon as it is complete.
static void tuned(void)
{
	char folder[] = "/tmp/yoke-simulate-XXXXXX", path[PATH_MAX + 32];
	uint8_t best[YK_TUNED_SIZES];
	struct yk_wire_model m = { -1, -1, -1, -1, -1, 0 };
	struct yk_tuning t;
	if (!mkdtemp(folder)) {
		ok(false, "a folder");
		return;
	}
	yoke_setting_set("cache", folder);
	yk_tuned_best(2, best);
	ok(!best[2] && !yk_tuned_model(&m) && m.alpha1 < 0, "no predictions before tuning");
	yk_tuned_open("processes", 2, 2, &t);
	yk_tuning_add(&t, "all_reduce.f32.4096 halving=100 tree=200");
	yk_tuning_add(&t, "all_reduce.f32.16384 tree=300 doubling=301");
	yk_tuning_add(&t, "model.fs alpha=2000000000 beta=100000 gamma=50000");
	const int err = yk_tuned_save("processes", 2, 2, &t);
	snprintf(path, sizeof path, "%s", t.path);
	yk_tuning_fini(&t);
	yk_tuned_best(2, best);
	ok(!err && best[2] == 1 + YK_BY_HALVING && best[3] == 1 + YK_BY_TREE && !best[1] &&
		   !best[4],
	   "the best algorithm by size");
	ok(yk_tuned_model(&m) && fabs(m.alpha1 - 2e-6) < 1e-18 && fabs(m.beta1 - 1e-10) < 1e-20 &&
		   fabs(m.gamma - 5e-11) < 1e-20 && m.alpha2 < 0, "the model");
	yk_tuned_best(4, best);
	ok(!best[2], "predictions for another number of ranks are not used");
	ok(yk_tuned_size(0) == 0 && yk_tuned_size(512) == 0 && yk_tuned_size(513) == 1 &&
		   yk_tuned_size(5000) == 2 && yk_tuned_size(UINT64_MAX) == YK_TUNED_SIZES - 1,
	   "sizes in between use the nearest entry");
	unlink(path);
	rmdir(folder);
}

// Steps of a rank whose sums take longer than its computation, and of one whose sums are hidden: 32
// ranks by doubling, whose levels take alpha + bytes (beta + gamma).
static void steps(void)
{
	const struct yk_wire_model m = { 1e-6, 1e-9, 1e-6, 1e-9, 1e-10, 32 };
	const struct yk_step_bucket bucket[] = { { 0.010, 20000 },
						 { 0.010, 60000 },
						 { 0.030, 40000 } };
	struct yk_step_times t = {
		.computed = 0.031, .update = 0.002, .buckets = 3, .bucket = bucket
	};
	double took = 0, formula = 0, f = 0;
	for (int k = 0; k < 4; k++) {
		const double bytes = k < 3 ? bucket[k].bytes : 8,
			     ready = k < 3 ? bucket[k].ready : 0.031;
		f = fmax(f, ready) + 5 * (1e-6 + bytes * 1.1e-9);
	}
	int err = yk_simulate_step(&m, 32, &t, &took, &formula);
	ok(!err && fabs(took - f - 0.002) < 1e-9 && fabs(formula - took) < 1e-9,
	   "a step: %g s, %g, wanted %g", took, formula, f + 0.002);
	const struct yk_wire_model slow = { 1e-3, 1e-7, 1e-3, 1e-7, 1e-10, 32 };
	for (int k = 0; k < 4; k++)
		f = fmax(k ? f : 0, k < 3 ? bucket[k].ready : 0.031) +
		    5 * (1e-3 + (k < 3 ? bucket[k].bytes : 8) * 1.001e-7);
	err = yk_simulate_step(&slow, 32, &t, &took, &formula);
	ok(!err && fabs(took - f - 0.002) < 1e-9 && took > 0.08,
	   "consecutive sums: %g s, wanted %g", took, f + 0.002);
	err = yk_simulate_step(&m, 24, &t, &took, &formula);
	ok(!err && took > 0.033 && isnan(formula), "24 ranks, by a tree, have no closed form");
}

int main(void)
{
	tap_seed();
	for (int how = 0; how < YK_BY_SHARED; how++) {
		wrong = NULL;
		cases = 0;
		for (uint32_t n = 2; n <= 512; n *= 2)
			for (uint32_t g = 1; g <= n; g *= n > 64 && !tap_long() ? 8 : 2)
				one(how, n, g, true);
		one(how, 4096, 8, true);
		one(how, 4096, 4096, true);
		// not a power of two, machines that differ
		for (int k = 0; k < tap_cases(10, 200); k++) {
			const uint32_t n = (uint32_t)rnd_int(2, 40);
			one(how, n, (uint32_t)rnd_int(1, n), false);
		}
		ok(!wrong, "%s: %u cases%s%s", yk_algorithm_name[how], cases, wrong ? ": " : "",
		   wrong ? wrong : "");
	}
	// only sums are modeled: twice the ranks by doubling is one more message and addition
	const struct yk_wire_model m = { 1e-6, 1e-9, 1e-6, 1e-9, 1e-10, 1 };
	struct yk_schedule_request w = {
		.what = YK_DO_ALL_REDUCE, .how = YK_BY_DOUBLING, .ranks = 16, .node = 1
	};
	double a = 0, b = 0;
	yk_simulate(&m, &w, 1000, &a);
	w.ranks = 32;
	yk_simulate(&m, &w, 1000, &b);
	ok(fabs((b - a) - (1e-6 + 1000 * 1e-9 + 1000 * 1e-10)) < 1e-12,
	   "a level of doubling is a message and an addition");
	w.ranks = 24;
	ok(yk_simulate(&m, &w, 1000, &a) == YOKE_EINVAL, "24 ranks cannot be simulated: %s",
	   yoke_error());
	steps();
	tuned();
	return done();
}
