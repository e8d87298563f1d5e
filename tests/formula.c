// SPDX-License-Identifier: Apache-2.0
// Tests formulas compiled to map programs: results against the same expressions in C, operations
// that are optimized away, and invalid formulas.
#include "config.h"

#include "conform/program.h"
#include "kernel/formula.h"
#include "tap.h"

static const uint8_t all[] = { yoke_f64, yoke_f64, yoke_f64, yoke_f64 };

// Result 0 for inputs x; the program's length in *length, including unused inputs.
static double value(const char *text, const double *constant, const double *x, const uint8_t *dtype,
		    int *length)
{
	const struct yk_formula f = { "test", "a b", "c d", "k l", "y", text };
	struct yk_expected in[4] = { { .f = 0 } }, reg[YOKE_MAP_MAX_INSNS];
	struct yoke_map m;
	int err = yk_formula_map(&f, yoke_f64, dtype, constant, &m);

	*length = err ? err : m.ninsn;
	if (err)
		return NAN;
	for (int k = 0, at = 0; k < 4; k++)
		if (dtype[k])
			in[at++].f = x[k];
	yk_program_at(&m, in, 0, false, reg);
	return reg[m.out[0]].f;
}

static void same(const char *text, double k, double want, int length)
{
	static const double x[] = { 3, 5, 7, 11 };
	int got_length;
	double got = value(text, (double[]){ k, 0.25 }, x, all, &got_length);

	ok(got == want && got_length == length, "%s with %g: %g by %d instructions", text, k, got,
	   got_length);
}

static void refused(const char *text)
{
	int err;

	value(text, (double[]){ 1, 2 }, (double[]){ 1, 2, 3, 4 }, all, &err);
	ok(err == YOKE_EINVAL, "refused: %s", text);
}

int main(void)
{
	const uint8_t without[] = { yoke_f64, yoke_f64, 0, yoke_f64 };
	struct yoke_map m;
	int length;

	same("y = a + b * c - d;", 0, 3 + 35 - 11, 7);
	same("y = (a - b) - c;", 0, -9, 5);
	same("y = a / b / c;", 0, 3. / 5 / 7, 5);
	same("y = max(a, b) * sqrt(c);", 0, 5 * sqrt(7), 6);
	same("y = select(lt(a, b), c, d);", 0, 7, 6);
	same("t = a * a; y = t + t;", 0, 18, 3);
	same("a = a * 2; y = a;", 0, 6, 3);
	same("y = k * a + (1 - k) * b;", 0.75, 0.75 * 3 + 0.25 * 5, 7);
	same("y = k * a + (1 - k) * b;", 0, 5, 2);
	same("y = k * a + (1 - k) * b;", 1, 3, 2);
	same("y = a * (1 - b * k);", 0, 3, 2);
	same("y = a - k * b;", 0, 3, 2);
	same("y = a / k;", 1, 3, 1);
	same("y = 1e-3 * a + k + l;", 2, 1e-3 * 3 + 2 + 0.25, 7);
	// a list's new value is computed after the last reader of the list
	same("t = a * c; b = a; y = t + b;", 0, 24, 5);
	same("t = a * c; u = t + b; b = t; y = u * b;", 0, 26 * 21, 7);
	same("t = a * c; b = t; y = b;", 0, 21, 3);
	double got = value("y = a * c;", (double[]){ 1, 2 }, (double[]){ 3, 5, 7, 11 }, without,
			   &length);
	ok(got == 3 && length == 1, "an absent number is 1: %g by %d instructions", got, length);
	got = value("y = a * d;", (double[]){ 1, 2 }, (double[]){ 3, 5, 7, 11 }, without, &length);
	ok(got == 33, "and is no input: %g", got);
	refused("y = a + z;");
	refused("y = (a + b;");
	refused("y = a b;");
	refused("y = a");
	refused("x = a;");
	refused("y = sqrt(a, b);");
	refused("y = round_trip(a);");
	refused("y = a +;");
	refused("y = cast(a);");

	char text[1200] = "y = a";
	for (int i = 0; i < 70; i++)
		strcat(text, i % 2 ? " + a * b" : " - a * b");
	value(strcat(text, ";"), (double[]){ 1, 2 }, (double[]){ 1, 2, 3, 4 }, all, &length);
	ok(length == YOKE_EUNSUPPORTED, "a formula too long for a program is refused");
	for (int k = 0; k < YK_FORMULAS; k++) {
		const struct yk_formula *f = &yk_formulas[k];
		uint8_t half[8] = { yoke_f16, yoke_f16, yoke_f16, yoke_f16,
				    yoke_f32, yoke_f32, yoke_f32, yoke_f32 };
		for (int i = 0; i < 8; i++)
			half[i] = i < yk_formula_count(f->lists) ? yoke_f16 : yoke_f32;
		const double constant[] = { 0.9, 0.99, 1e-8, 0.1 };
		ok(!yk_formula_map(f, yoke_f32, half, constant, &m) &&
			   m.nout == yk_formula_count(f->results) &&
			   m.nin == yk_formula_count(f->lists) + yk_formula_count(f->numbers),
		   "%s: %d instructions", f->name, m.ninsn);
	}
	return done();
}
