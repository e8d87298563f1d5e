// SPDX-License-Identifier: Apache-2.0
// The elementary functions of the CPU backend against the C library in a wider format,
// run as map programs on each instruction set; Philox against the vectors published with
// Random123.
#include "config.h"

#include "named_op.h"
#include "../backends/cpu/vector/half.h"
#include "../backends/cpu/vector/philox.h"

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
	int op;
	double (*wide)(double);            // what f32 is compared with
	long double (*wider)(long double); // what f64 is compared with
	double ulp32, ulp64;               // allowed
	double low, high;                  // where it is dense; random bits besides
} functions[] = {
	{ "exp", YOKE_MAP_EXP, exp, expl, 1, 1, -110, 95 },
	{ "expm1", YOKE_MAP_EXPM1, expm1, expm1l, 1.5, 2, -20, 20 },
	{ "log", YOKE_MAP_LOG, log, logl, 1, 1, 0, 4 },
	{ "log1p", YOKE_MAP_LOG1P, log1p, log1pl, 1, 2, -1, 3 },
	{ "sqrt", YOKE_MAP_SQRT, sqrt, sqrtl, 0.5, 0.5, 0, 100 },
	{ "rsqrt", YOKE_MAP_RSQRT, d_rsqrt, l_rsqrt, 1.5, 1.5, 0, 100 },
	{ "recip", YOKE_MAP_RECIP, d_recip, l_recip, 0.5, 0.5, -10, 10 },
	{ "square", YOKE_MAP_SQUARE, d_square, l_square, 0.5, 0.5, -10, 10 },
	{ "sin", YOKE_MAP_SIN, sin, sinl, 1, 1, -100, 100 },
	{ "cos", YOKE_MAP_COS, cos, cosl, 1, 1, -100, 100 },
	{ "tanh", YOKE_MAP_TANH, tanh, tanhl, 2.4, 3, -10, 10 },
	{ "sigmoid", YOKE_MAP_SIGMOID, d_sigmoid, l_sigmoid, 2.25, 3, -100, 20 },
	{ "erf", YOKE_MAP_ERF, erf, erfl, 1.5, 2, -5, 5 },
	{ "floor", YOKE_MAP_FLOOR, floor, floorl, 0, 0, -10, 10 },
	{ "round", YOKE_MAP_ROUND, rint, rintl, 0, 0, -10, 10 },
	{ "ceil", YOKE_MAP_CEIL, ceil, ceill, 0, 0, -10, 10 },
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

static struct yoke_map unary(int op, int dtype)
{
	struct yoke_map m = {
		.size = sizeof m, .ninsn = 2, .nin = 1, .nout = 1, .out = { 1 }
	};
	m.insn[0] = (struct yoke_insn){ .op = YOKE_MAP_INPUT, .dtype = (uint8_t)dtype };
	m.insn[1] = (struct yoke_insn){ .op = (uint16_t)op, .dtype = (uint8_t)dtype };
	return m;
}

static int apply(const struct yk_isa *isa, const struct yoke_map *m, int dtype, void *x,
		 void *z, void *y, int64_t n)
{
	struct yoke_view out = dense(y, dtype, 1, &n);
	struct yoke_view in[2] = { dense(x, dtype, 1, &n),
				   z ? dense(z, dtype, 1, &n) : absent };
	struct yoke_op op = op_of(YOKE_OP_MAP, 1, &out, z ? 2 : 1, in);
	op.rank = 1;
	op.dims[0] = n;
	op.map = m;
	const struct yk_kernel *k = isa->op[YOKE_OP_MAP];
	return k->can(&op) ? yk_kernel_once(k, &op, 0) : YOKE_EUNSUPPORTED;
}

// In units of the last place of the format with `bits` of mantissa and least exponent
// `least`.
static long double ulps(long double got, long double want, int bits, int least,
			long double most)
{
	int e;
	if (isnan(want) || isnan(got))
		return isnan(want) && isnan(got) ? 0 : INFINITY;
	if (fabsl(want) > most) // rounds to infinity, or just not
		return isinf(got) || fabsl(want) < most * (1 + 4 * ldexpl(1, -bits)) ?
			       0 :
			       INFINITY;
	if (isinf(got))
		return fabsl(want) > most * (1 - 2 * ldexpl(1, -bits)) ? 1 : INFINITY;
	if (want == 0)
		return got == 0 ? 0 : INFINITY;
	frexpl(want, &e);
	return fabsl(got - want) / ldexpl(1, (e - 1 < least ? least : e - 1) - bits);
}

static void unary_f32(const struct yk_isa *isa, const struct function *f, int64_t n)
{
	float *x = nans(n), *y = nans(n);
	struct yoke_map m = unary(f->op, yoke_f32);
	long double most = 0;
	float worst = 0;

	for (int64_t i = 0; i < n; i++)
		x[i] = i < SPECIALS ? (float)special[i] :
		       i % 2        ? yk_f32_bits((uint32_t)rnd()) :
				      (float)rnd_real(f->low, f->high);
	bool good = !apply(isa, &m, yoke_f32, x, NULL, y, n);
	for (int64_t i = 0; i < n; i++) {
		long double e = ulps(y[i], f->wide(x[i]), 23, -126, 0x1.fffffep127L);
		if (e > most)
			most = e, worst = x[i];
	}
	diag("%s f32 %-8s %.3Lf ulp at %.9g", isa->name, f->name, most, (double)worst);
	// some of all arguments are a little beyond what the polynomials are made for, as in f64
	ok(good && most <= f->ulp32 + 0.01, "%s: %s of f32 within %g ulp", isa->name, f->name,
	   f->ulp32);
	// runs that fill no block of a chain go another way
	enum { FEW = 13 };
	float *few = nans(FEW);
	int64_t wrong = -1;
	for (int64_t i = 0; i < 300 * FEW; i += FEW) {
		memset(few, 0xff, FEW * sizeof *few);
		good &= !apply(isa, &m, yoke_f32, x + i, NULL, few, FEW);
		for (int k = 0; k < FEW; k++)
			if (memcmp(&few[k], &y[i + k], 4) &&
			    !(isnan(few[k]) && isnan(y[i + k])))
				wrong = i + k;
	}
	ok(good && wrong < 0,
	   "%s: %s of f32, few and many have the same bits (wrong: %lld)", isa->name,
	   f->name, (long long)wrong);
	arrays_free();
}

static void unary_f64(const struct yk_isa *isa, const struct function *f, int64_t n)
{
	double *x = array_new((size_t)n * 8), *y = array_new((size_t)n * 8);
	struct yoke_map m = unary(f->op, yoke_f64);
	long double most = 0;
	double worst = 0;

	for (int64_t i = 0; i < n; i++)
		x[i] = i < SPECIALS ? special[i] :
		       i % 2        ? yk_f64_bits(rnd()) :
				      rnd_real(f->low, f->high);
	bool good = !apply(isa, &m, yoke_f64, x, NULL, y, n);
	for (int64_t i = 0; i < n; i++) {
		long double e =
			ulps(y[i], f->wider(x[i]), 52, -1022, 0x1.fffffffffffffp1023L);
		if (e > most)
			most = e, worst = x[i];
	}
	diag("%s f64 %-8s %.3Lf ulp at %.17g", isa->name, f->name, most, worst);
	ok(good && most <= f->ulp64 + 0.01, "%s: %s of f64 within %g ulp", isa->name,
	   f->name, f->ulp64);
	arrays_free();
}

static void power(const struct yk_isa *isa, int64_t n)
{
	float *x = nans(n), *z = nans(n), *y = nans(n);
	struct yoke_map m = unary(YOKE_MAP_INPUT, yoke_f32);
	long double most = 0;
	int64_t worst = 0;

	m.nin = 2, m.ninsn = 3, m.out[0] = 2;
	m.insn[1].a = 1;
	m.insn[2] = (struct yoke_insn){
		.op = YOKE_MAP_POW, .dtype = yoke_f32, .a = 0, .b = 1
	};
	for (int64_t i = 0; i < n; i++) {
		x[i] = (float)(i % 3 ? rnd_real(-4, 30) : yk_f32_bits((uint32_t)rnd()));
		z[i] = (float)(i % 2 ? rnd_int(-5, 5) : rnd_real(-30, 30));
		if (i < SPECIALS * SPECIALS) {
			x[i] = (float)special[i / SPECIALS];
			z[i] = (float)special[i % SPECIALS];
		}
	}
	bool good = !apply(isa, &m, yoke_f32, x, z, y, n);
	for (int64_t i = 0; i < n; i++) {
		double want = pow(x[i], z[i]);
		long double e = ulps(y[i], want, 23, -126, 0x1.fffffep127L);
		if (!isnan(want) && !signbit(want) != !signbit(y[i]))
			e = INFINITY;
		if (e > most)
			most = e, worst = i;
	}
	diag("%s f32 pow %.3Lf ulp at %.9g ^ %.9g = %.9g", isa->name, most,
	     (double)x[worst], (double)z[worst], (double)y[worst]);
	ok(good && most <= 1, "%s: pow of f32 within 1 ulp, every special case",
	   isa->name);
	arrays_free();
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
	ok(good, "a run of them is the same as one by one");
}

int main(void)
{
	const struct yk_isa *list[3];
	int n = isas(list);
	int64_t count = tap_cases(COUNT, LONG_COUNT);

	for (int k = 0; k < n; k++) {
		for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
			unary_f32(list[k], &functions[i], count);
			unary_f64(list[k], &functions[i], count / 10);
		}
		power(list[k], count);
	}
	halves();
	random_bits();
	return done();
}
