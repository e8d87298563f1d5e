// SPDX-License-Identifier: Apache-2.0
// Tests the elementary functions of the CPU backend against the C library in a wider format, on
// each instruction set (chosen once per process), and Philox against the vectors published with
// Random123.
#include "config.h"

#include "../backends/cpu/host/frame.h"
#include "../backends/cpu/vector/half.h"
#include "../backends/cpu/vector/philox.h"
#include "tap.h"
#include "yoke.h"

enum { COUNT = 200003, LONG_COUNT = 20000003 };

static long double l_rsqrt(long double x)
{
	return 1 / sqrtl(x);
}
static long double l_recip(long double x)
{
	return 1 / x;
}
static long double l_sigmoid(long double x)
{
	return 1 / (1 + expl(-x));
}
static long double l_square(long double x)
{
	return x * x;
}
static double d_rsqrt(double x)
{
	return 1 / sqrt(x);
}
static double d_recip(double x)
{
	return 1 / x;
}
static double d_sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}
static double d_square(double x)
{
	return x * x;
}

static const struct function {
	const char *name;
	yoke_tensor *(*fn)(yoke_tensor *);
	double (*wide)(double);            // what f32 is compared with
	long double (*wider)(long double); // what f64 is compared with
	double ulp32, ulp64;               // allowed
	double low, high;                  // where it is dense; random bits besides
} functions[] = {
	{ "exp", yoke_exp, exp, expl, 1, 1, -110, 95 },
	{ "expm1", yoke_expm1, expm1, expm1l, 1.5, 2, -20, 20 },
	{ "log", yoke_log, log, logl, 1, 1, 0, 4 },
	{ "log1p", yoke_log1p, log1p, log1pl, 1, 2, -1, 3 },
	{ "sqrt", yoke_sqrt, sqrt, sqrtl, 0.5, 0.5, 0, 100 },
	{ "rsqrt", yoke_rsqrt, d_rsqrt, l_rsqrt, 1.5, 1.5, 0, 100 },
	{ "recip", yoke_recip, d_recip, l_recip, 0.5, 0.5, -10, 10 },
	{ "square", yoke_square, d_square, l_square, 0.5, 0.5, -10, 10 },
	{ "sin", yoke_sin, sin, sinl, 1, 1, -100, 100 },
	{ "cos", yoke_cos, cos, cosl, 1, 1, -100, 100 },
	{ "tanh", yoke_tanh, tanh, tanhl, 2.4, 3, -10, 10 },
	{ "sigmoid", yoke_sigmoid, d_sigmoid, l_sigmoid, 2.25, 3, -100, 20 },
	{ "erf", yoke_erf, erf, erfl, 1.5, 2, -5, 5 },
	{ "floor", yoke_floor, floor, floorl, 0, 0, -10, 10 },
	{ "round", yoke_round, rint, rintl, 0, 0, -10, 10 },
	{ "ceil", yoke_ceil, ceil, ceill, 0, 0, -10, 10 },
};

static const double special[] = { 0.0,
				  -0.0,
				  1,
				  -1,
				  0.5,
				  -0.5,
				  1.5,
				  2.5,
				  -2.5,
				  0x1p-126,
				  0x1p-127,
				  0x1p-149,
				  -0x1p-149,
				  0x1.fffffep127,
				  -0x1.fffffep127,
				  INFINITY,
				  -INFINITY,
				  NAN,
				  88.72283,
				  88.72284,
				  -87.33655,
				  -103.97,
				  -104.1,
				  0.92,
				  0x1p20,
				  1048575.9,
				  0x1p23,
				  0x1p24,
				  10,
				  -10 };

enum { SPECIALS = sizeof special / sizeof *special };

// y = fn(x), or x to the power of z; what fails is NaN, which no test takes for right.
static void apply(const struct function *f, int dtype, const void *x, const void *z, void *y,
		  int64_t n)
{
	yoke_scope *s = yoke_scope_begin("vmath");
	yoke_tensor *from = yoke_from(dtype, 1, &n, x);
	yoke_tensor *to = z ? yoke_pow(from, yoke_from(dtype, 1, &n, z)) : f->fn(from);
	memset(y, 0xff, (size_t)n * yoke_dtype_size(dtype));
	if (yoke_read(to, y, (size_t)n * yoke_dtype_size(dtype)) < 0) {
		diag("%s", yoke_error());
		memset(y, 0xff, (size_t)n * yoke_dtype_size(dtype));
	}
	yoke_scope_end(s);
}

// In units of the last place of the format with `bits` of mantissa and least exponent
// `min`.
static long double ulps(long double got, long double want, int bits, int min,
			long double max)
{
	int e;
	if (isnan(want) || isnan(got))
		return isnan(want) && isnan(got) ? 0 : INFINITY;
	if (fabsl(want) > max) // rounds to infinity, or just not
		return isinf(got) || fabsl(want) < max * (1 + 4 * ldexpl(1, -bits)) ?
			       0 :
			       INFINITY;
	if (isinf(got))
		return fabsl(want) > max * (1 - 2 * ldexpl(1, -bits)) ? 1 : INFINITY;
	if (want == 0)
		return got == 0 ? 0 : INFINITY;
	frexpl(want, &e);
	return fabsl(got - want) / ldexpl(1, (e - 1 < min ? min : e - 1) - bits);
}

static void unary_f32(const char *isa, const struct function *f, int64_t n)
{
	float *x = malloc((size_t)n * sizeof *x), *y = malloc((size_t)n * sizeof *y);
	long double max = 0;
	float worst = 0;

	for (int64_t i = 0; i < n; i++)
		x[i] = i < SPECIALS ? (float)special[i] :
		       i % 2        ? yk_f32_bits((uint32_t)rnd()) :
				      (float)rnd_real(f->low, f->high);
	apply(f, yoke_f32, x, NULL, y, n);
	for (int64_t i = 0; i < n; i++) {
		long double e = ulps(y[i], f->wide(x[i]), 23, -126, 0x1.fffffep127L);
		if (e > max)
			max = e, worst = x[i];
	}
	diag("%s f32 %-8s %.3Lf ulp at %.9g", isa, f->name, max, (double)worst);
	// some of all arguments are a little beyond what the polynomials are made for, as in f64
	ok(max <= f->ulp32 + 0.01, "%s: %s of f32 within %g ulp", isa, f->name,
	   f->ulp32);
	// runs that fill no block of a chain go another way
	enum { FEW = 13 };
	float few[FEW];
	int64_t wrong = -1;
	for (int64_t i = 0; i < 300 * FEW; i += FEW) {
		apply(f, yoke_f32, x + i, NULL, few, FEW);
		for (int k = 0; k < FEW; k++)
			if (memcmp(&few[k], &y[i + k], 4) &&
			    !(isnan(few[k]) && isnan(y[i + k])))
				wrong = i + k;
	}
	ok(wrong < 0,
	   "%s: %s of f32, few and many have the same bits (wrong: %lld)", isa,
	   f->name, (long long)wrong);
	free(x);
	free(y);
}

static void unary_f64(const char *isa, const struct function *f, int64_t n)
{
	double *x = malloc((size_t)n * sizeof *x), *y = malloc((size_t)n * sizeof *y);
	long double max = 0;
	double worst = 0;

	for (int64_t i = 0; i < n; i++)
		x[i] = i < SPECIALS ? special[i] :
		       i % 2        ? yk_f64_bits(rnd()) :
				      rnd_real(f->low, f->high);
	apply(f, yoke_f64, x, NULL, y, n);
	for (int64_t i = 0; i < n; i++) {
		long double e =
			ulps(y[i], f->wider(x[i]), 52, -1022, 0x1.fffffffffffffp1023L);
		if (e > max)
			max = e, worst = x[i];
	}
	diag("%s f64 %-8s %.3Lf ulp at %.17g", isa, f->name, max, worst);
	ok(max <= f->ulp64 + 0.01, "%s: %s of f64 within %g ulp", isa,
	   f->name, f->ulp64);
	free(x);
	free(y);
}

static void power(const char *isa, int64_t n)
{
	const size_t bytes = (size_t)n * sizeof(float);
	float *x = malloc(bytes), *z = malloc(bytes), *y = malloc(bytes);
	long double max = 0;
	int64_t worst = 0;

	for (int64_t i = 0; i < n; i++) {
		x[i] = (float)(i % 3 ? rnd_real(-4, 30) : yk_f32_bits((uint32_t)rnd()));
		z[i] = (float)(i % 2 ? rnd_int(-5, 5) : rnd_real(-30, 30));
		if (i < SPECIALS * SPECIALS) {
			x[i] = (float)special[i / SPECIALS];
			z[i] = (float)special[i % SPECIALS];
		}
	}
	apply(NULL, yoke_f32, x, z, y, n);
	for (int64_t i = 0; i < n; i++) {
		double want = pow(x[i], z[i]);
		long double e = ulps(y[i], want, 23, -126, 0x1.fffffep127L);
		if (!isnan(want) && !signbit(want) != !signbit(y[i]))
			e = INFINITY;
		if (e > max)
			max = e, worst = i;
	}
	diag("%s f32 pow %.3Lf ulp at %.9g ^ %.9g = %.9g", isa, max,
	     (double)x[worst], (double)z[worst], (double)y[worst]);
	ok(max <= 1, "%s: pow of f32 within 1 ulp, every special case",
	   isa);
	free(x);
	free(y);
	free(z);
}

static void halves(void)
{
	int wrong = 0;
	for (uint32_t h = 0; h < 0x10000; h++) {
		int e = h >> 10 & 31, m = h & 1023;
		double want = e == 31 ? (m ? NAN : INFINITY) :
			      e       ? ldexp(1024 + m, e - 25) :
					ldexp(m, -24);
		float f = yk_f32_of_f16((uint16_t)h);
		want = h >> 15 ? -want : want;
		wrong += !(isnan(want) ? isnan(f) :
					 f == want && !signbit(f) == !signbit(want));
		uint16_t back = yk_f16_of_f32(f);
		wrong += isnan(want) ? !isnan(yk_f32_of_f16(back)) : back != h;
		f = yk_f32_of_bf16((uint16_t)h);
		back = yk_bf16_of_f32(f);
		wrong += isnan(f) ? !isnan(yk_f32_of_bf16(back)) : back != h;
	}
	ok(wrong == 0, "every f16 and bf16 to f32 and back (%d wrong)", wrong);
	wrong = 0;
	for (uint32_t h = 0; h < 0x7bff;
	     h++) { // halfway to the next one, and a bit to each side
		float a = yk_f32_of_f16((uint16_t)h),
		      b = yk_f32_of_f16((uint16_t)(h + 1));
		float mid = (a + b) / 2;
		wrong += yk_f16_of_f32(mid) != h + (h & 1);
		wrong += yk_f16_of_f32(nextafterf(mid, 0)) != h;
		wrong += yk_f16_of_f32(nextafterf(mid, 1e9f)) != h + 1;
		double far =
			(double)mid + ldexp(mid, -50); // lost when rounded to f32 first
		wrong += yk_f16_of_f32(yk_f32_odd_of_f64(far)) != h + 1;
	}
	wrong += yk_f16_of_f32(65519.996f) != 0x7bff || yk_f16_of_f32(65520) != 0x7c00;
	wrong += yk_bf16_of_f32(0x1.fffffep127f) != 0x7f80 ||
		 yk_bf16_of_f32(0x1.01p0f) != 0x3f80;
	ok(wrong == 0, "f16 rounds half to even, from f64 once (%d wrong)", wrong);
}

static void random_bits(void)
{
	static const struct {
		uint32_t c[4], k[2], want[4];
	} known[] = {
		{ { 0 }, { 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
		{ { ~0u, ~0u, ~0u, ~0u },
		  { ~0u, ~0u },
		  { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
		{ { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
		  { 0xa4093822, 0x299f31d0 },
		  { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
	};
	bool good = true;
	for (int i = 0; i < 3; i++) {
		uint32_t c[4];
		memcpy(c, known[i].c, sizeof c);
		yk_philox(c, c + 1, c + 2, c + 3, known[i].k[0], known[i].k[1]);
		good &= !memcmp(c, known[i].want, sizeof c);
	}
	ok(good, "Philox 4x32-10 gives the published bits");
	good = true;
	for (int t = 0; t < 50; t++) {
		uint32_t bits[700];
		uint64_t first = t % 2 ? rnd() : (uint64_t)rnd_int(0, 20), key = rnd(),
			 step = rnd();
		int64_t n = rnd_int(0, 700);
		if (t % 3 == 0) // counters on both sides of 2^32
			first = ((first | 1) << 34) - (uint64_t)rnd_int(0, 700);
		yk_philox_fill(bits, first, n, key, step);
		for (int64_t i = 0; i < n; i++)
			good &= bits[i] == yk_philox_at(first + (uint64_t)i, key, step);
	}
	ok(good, "a run of draws equals single draws");
}

int main(int argc, char **argv)
{
	const struct yk_isa *list[3];
	char command[4096];

	tap_seed();
	if (argc > 1) { // the name of an instruction set
		int64_t count = tap_cases(COUNT, LONG_COUNT);
		for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
			unary_f32(argv[1], &functions[i], count);
			unary_f64(argv[1], &functions[i], count / 10);
		}
		power(argv[1], count);
		return done();
	}
	for (int k = 0, n = yk_isa_usable(list); k < n; k++) {
		snprintf(
			command, sizeof command,
			"out=${TMPDIR:-/tmp}/vmath.out; YOKE_BACKEND=cpu YOKE_CPU_ISA=%s %s '%s' %s >\"$out\"; "
			"status=$?; grep '^not' \"$out\" | sed 's/^/# /'; rm -f \"$out\"; exit $status",
			list[k]->name,
			getenv("YOKE_TEST_EMULATOR") ? getenv("YOKE_TEST_EMULATOR") : "", argv[0],
			list[k]->name);
		ok(!system(command), "%s: all functions", list[k]->name);
	}
	halves();
	random_bits();
	return done();
}
