// SPDX-License-Identifier: Apache-2.0
// Tests the rules that choose a device on both sides of each threshold, the tiers, and the trend
// of a series against closed forms.
#include "config.h"

#include "report/conditions.h"
#include "tap.h"
#include "train/choose_device.h"

enum { STRONGLY = 9 };

static void rules(void)
{
	static const struct {
		double samples, batch, channels, height, width, parameters, epochs, loader;
		int trains, device, want;
	} rows[] = {
#define BIG 501, 32
#define NO NAN, NAN, NAN
		{ BIG, NO, 1e6, 10, NAN, 1, 1, YK_WHICH_DEVICE },
		{ BIG, NO, 1e6, 10, NAN, 1, 0, STRONGLY },
		{ BIG, NO, 1e6, 10, NAN, 0, 1, YK_WHICH_CPU },
		{ 500, 32, NO, 1e6, 10, NAN, 1, 1, YK_WHICH_MEASURE },
		{ BIG, NO, 1e6, 9, NAN, 1, 1, YK_WHICH_MEASURE },
		{ BIG, NO, 999999, 10, NAN, 1, 1, YK_WHICH_MEASURE },
		{ 199, 32, NO, 1e6, 10, NAN, 1, 1, YK_WHICH_CPU },
		{ 200, 32, NO, 1e6, 10, NAN, 1, 1, YK_WHICH_MEASURE },
		{ 99, 32, NO, 1e6, 10, NAN, 1, 1, STRONGLY },
		{ 100, 32, NO, 1e6, 10, NAN, 1, 1, YK_WHICH_CPU },
		{ 1000, 15, NO, 1e6, 1, NAN, 1, 1, YK_WHICH_CPU },
		{ 1000, 16, NO, 1e6, 1, NAN, 1, 1, YK_WHICH_MEASURE },
		{ 1000, 7, NO, 1e6, 1, NAN, 1, 1, STRONGLY },
		{ 1000, 8, NO, 1e6, 1, NAN, 1, 1, YK_WHICH_CPU },
		{ BIG, 19, 127, 127, 1e6, 10, NAN, 1, 1, YK_WHICH_CPU },
		{ BIG, 20, 127, 127, 1e6, 10, NAN, 1, 1, YK_WHICH_DEVICE },
		{ BIG, 19, 128, 127, 1e6, 10, NAN, 1, 1, YK_WHICH_DEVICE },
		{ BIG, 19, 127, 128, 1e6, 10, NAN, 1, 1, YK_WHICH_DEVICE },
		{ 1000, 16, NO, 9999, 1, NAN, 1, 1, YK_WHICH_CPU },
		{ 1000, 16, NO, 10000, 1, NAN, 1, 1, YK_WHICH_MEASURE },
		{ BIG, NO, 1e6, 10, 0.5, 1, 1, YK_WHICH_CPU },
		{ BIG, NO, 1e6, 10, 0.49, 1, 1, YK_WHICH_DEVICE },
		{ BIG, 100, 256, 256, 2e4, 10, NAN, 1, 1, YK_WHICH_DEVICE },
		{ BIG, 99, 256, 256, 2e4, 10, NAN, 1, 1, YK_WHICH_MEASURE },
		{ BIG, 100, 255, 256, 2e4, 10, NAN, 1, 1, YK_WHICH_MEASURE },
		{ NAN, NAN, NO, NAN, NAN, NAN, 1, 1, YK_WHICH_MEASURE },
	};
	int bad = 0, n = sizeof rows / sizeof *rows;
	for (int i = 0; i < n; i++) {
		const struct yk_device_choice_facts a = { rows[i].device,   rows[i].trains,
							  rows[i].samples,  rows[i].batch,
							  rows[i].channels, rows[i].height,
							  rows[i].width,    rows[i].parameters,
							  rows[i].epochs,   rows[i].loader };
		struct yk_device_choice_advice s = yk_device_choice_rule(&a);
		int got = s.strongly ? STRONGLY : (int)s.which;
		if (got != rows[i].want || (s.strongly && s.which != YK_WHICH_CPU))
			bad++, diag("row %d: %d (%s), wanted %d", i, got, s.why, rows[i].want);
	}
	ok(!bad, "%d rules", n);
	const struct yk_device_choice_facts small = { true, true, 501, 31, NAN,
						      NAN,  NAN,  1e6, 10, NAN };
	ok(yk_device_choice_rule(&small).hint != NULL, "a batch below 32 is reported");
	static const struct {
		double gb, tflop;
		const char *name;
	} tiers[] = { { 229, 9, "entry" },        { 231, 1.9, "entry" }, { 230, 2, "mid" },
		      { 419, 9, "mid" },          { 420, 9, "high" },    { 1099, 9, "high" },
		      { 1100, 9, "professional" } };
	bad = 0;
	for (size_t i = 0; i < sizeof tiers / sizeof *tiers; i++)
		bad += strcmp(yk_device_choice_tier_of(tiers[i].gb, tiers[i].tflop)->name,
			      tiers[i].name) != 0;
	ok(!bad, "tiers");
}

static void trends(void)
{
	double x[60], y[60], z;
	for (int i = 0; i < 60; i++) {
		x[i] = i;
		y[i] = 3 * i + 1;
	}
	y[17] = 1e9; // a single spike decides nothing
	double slope = yk_trend(60, x, y, &z);
	ok(fabs(slope - 3) < 1e-9 && z > 8, "a line with a spike: slope %g, z %.3g", slope, z);
	y[17] = 3 * 17 + 1;
	yk_trend(10, x, y, &z); // all 45 pairs rise: (45 - 1) / sqrt(10 * 9 * 25 / 18)
	ok(fabs(z - 44 / sqrt(125)) < 1e-12, "z of 10 that rise: %.6f", z);
	for (int i = 0; i < 10; i++)
		y[i] = i / 5; // two values, 25 pairs rise; ties take 2 * 5 * 4 * 15 of 18 variances
	yk_trend(10, x, y, &z);
	ok(fabs(z - 24 / sqrt((10 * 9 * 25 - 2 * 5 * 4 * 15) / 18.)) < 1e-12, "with ties: %.6f", z);
	for (int i = 0; i < 60; i++)
		y[i] = rnd_real(0, 1);
	slope = yk_trend(60, x, y, &z);
	ok(fabs(z) < 4.5 && fabs(slope) < 0.02, "noise: slope %.2g, z %.2g", slope, z);
	double m[5] = { 5, 1, 4, 2, 3 }, spread;
	ok(yk_median(5, m, &spread) == 3 && spread == 1, "a median and its spread");
}

// Number of five rounds of that duration that fit in twelve seconds.
static void rounds(void)
{
	static const struct {
		double seconds;
		int want;
	} rows[] = { { 0.1, 5 }, { 3, 4 }, { 5, 2 }, { 13, 2 }, { 119, 2 }, { 120, 1 } };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		double left = 12, last = 0;
		int done = 0;
		for (; yk_device_choice_another(done, 5, last, left); done++)
			left -= last = rows[i].seconds;
		ok(done == rows[i].want, "rounds of %g s: %d (%d)", rows[i].seconds, done,
		   rows[i].want);
	}
	ok(yk_device_choice_another(0, 1, 0, 12) && !yk_device_choice_another(1, 1, 1, 11),
	   "one round if one is requested");
}

int main(void)
{
	tap_seed();
	rules();
	rounds();
	trends();
	return done();
}
