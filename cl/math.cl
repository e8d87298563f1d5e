// SPDX-License-Identifier: Apache-2.0
// Elementary functions of f32: the driver's or, with OWN_MATH, formulas without branches and
// tables, which CPU compilers vectorize. Reference: backends/cpu/vector/vmath.h, which names the
// sources of the formulas. Errors over the whole range, including subnormals: exp, log 1 ulp, expm1
// 1.5, erf 1.6, tanh, sigmoid 2.2.

#ifndef OWN_MATH
FN float exp_f32(float x) { return exp(x); }
FN float expm1_f32(float x) { return expm1(x); }
FN float log_f32(float x) { return log(x); }
FN float tanh_f32(float x) { return tanh(x); }
FN float erf_f32(float x) { return erf(x); }
FN float sigmoid_f32(float x) { return 1.0f / (1.0f + exp(-x)); }
#else

FN float abs_f32(float x)
{
	return AS_FLOAT(AS_UINT(x) & 0x7fffffffu);
}

FN float copysign_f32(float x, float sign)
{
	return AS_FLOAT((AS_UINT(x) & 0x7fffffffu) | (AS_UINT(sign) & 0x80000000u));
}

// x = n ln 2 + r, |r| <= ln 2 / 2: returns e^r - 1, and n. Adding 1.5 * 2^23 leaves n in the low
// bits of the sum. near: e^r - 1 itself is the result, which needs one more coefficient than when 1
// is added to it.
FN float exp_reduce(float x, int *n, bool near)
{
	float t = FMA(x, 0x1.715476p+0f, 0x1.8p23f);
	*n = (int)(AS_UINT(t) - 0x4b400000u);
	t -= 0x1.8p23f;
	float r = FMA(t, -0x1.63p-1f, x);
	r = FMA(t, 0x1.bd0106p-13f, r);
	float p;
	if (near) {
		p = 0x1.a1a16ap-13f; // (e^r - 1 - r) / r^2
		p = FMA(p, r, 0x1.6d7474p-10f);
		p = FMA(p, r, 0x1.111090p-7f);
		p = FMA(p, r, 0x1.5554aep-5f);
		p = FMA(p, r, 0x1.555556p-3f);
	} else {
		p = 0x1.6b6deep-10f; // e^r to 2^-28
		p = FMA(p, r, 0x1.12300ap-7f);
		p = FMA(p, r, 0x1.55568ap-5f);
		p = FMA(p, r, 0x1.5554a2p-3f);
	}
	p = FMA(p, r, 0.5f);
	return FMA(p, r * r, r);
}

FN float exp2_int(int n) // 2^n, -126 <= n <= 127
{
	return AS_FLOAT((uint)(n + 127) << 23);
}

FN float exp_f32(float x)
{
	int n;
	x = x > 89.0f ? 89.0f : x;
	x = x < -105.0f ? -105.0f : x;
	float p = exp_reduce(x, &n, false) + 1.0f;
	int half_n = n >> 1; // in two steps, since 2^n may overflow or be subnormal
	return p * exp2_int(half_n) * exp2_int(n - half_n);
}

FN float expm1_f32(float x)
{
	int n;
	float c = x > 89.0f ? 89.0f : x;
	c = c < -20.0f ? -20.0f : c;
	float p = exp_reduce(c, &n, true), s = exp2_int(n - 1);
	float y = FMA(s, p, s - 0.5f) * 2.0f, z = p == 0.0f ? x : p;
	return n == 0 ? z : y; // preserves -0 and subnormals
}

FN float tanh_f32(float x)
{
	int n;
	float c = abs_f32(x);
	c = c > 10.0f ? 10.0f : c;
	float p = exp_reduce(c + c, &n, true), s = exp2_int(n);
	float e = FMA(s, p, s - 1.0f), y = e / (e + 2.0f); // e: e^2|x| - 1
	return AS_FLOAT(AS_UINT(y) | (AS_UINT(x) & 0x80000000u));
}

FN float sigmoid_f32(float x)
{
	float e = exp_f32(-abs_f32(x));
	return (x >= 0.0f ? 1.0f : e) / (1.0f + e);
}

FN float log_f32(float x)
{
	bool tiny = x < 0x1p-126f;
	float c = tiny ? x * 0x1p23f : x;
	uint i = AS_UINT(c) - 0x3f3504f3u; // sqrt(1/2): puts the mantissa around 1
	float e = (float)((int)i >> 23) + (tiny ? -23.0f : 0.0f);
	float f = AS_FLOAT((i & 0x7fffffu) + 0x3f3504f3u) - 1.0f, s = f * f;
	float p = -0x1.38c3d8p-4f; // (log(1+f) - f + f^2/2) / f^3: log(1+f) to 2^-27
	p = FMA(p, f, 0x1.055d32p-3f);
	p = FMA(p, f, -0x1.0d829ap-3f);
	p = FMA(p, f, 0x1.22d968p-3f);
	p = FMA(p, f, -0x1.547288p-3f);
	p = FMA(p, f, 0x1.99a01ap-3f);
	p = FMA(p, f, -0x1.000226p-2f);
	p = FMA(p, f, 0x1.555554p-2f);
	p = FMA(p, f, -0.5f);
	float y = FMA(p, s, f);
	y = FMA(e, -0x1.bd0106p-13f, y);
	y = FMA(e, 0x1.63p-1f, y);
	y = x <= 0x1.fffffep127f ? y : x; // infinity and NaN
	y = x < 0.0f ? AS_FLOAT(0x7fc00000u) : y;
	return x == 0.0f ? AS_FLOAT(0xff800000u) : y;
}

// 1 - e^q, where q = log erfc|x| is nearly a parabola: a polynomial in -|x|, error 2^-27 of erf.
FN float erf_f32(float x)
{
	int n;
	float c = abs_f32(x);
	c = -(c > 4.0f ? 4.0f : c);
	float q = -0x1.3b0c58p-17f; // q/c - 1
	q = FMA(q, c, -0x1.f292f0p-14f);
	q = FMA(q, c, -0x1.4e2c18p-11f);
	q = FMA(q, c, -0x1.b74634p-10f);
	q = FMA(q, c, -0x1.637fbep-13f);
	q = FMA(q, c, 0x1.39b7c8p-6f);
	q = FMA(q, c, 0x1.a4f8c4p-4f);
	q = FMA(q, c, -0x1.45f300p-1f);
	q = FMA(q, c, 0x1.06eba8p-3f);
	float p = exp_reduce(FMA(q, c, c), &n, true), s = exp2_int(n);
	return copysign_f32(FMA(s, p, s - 1.0f), x);
}
#endif

#ifdef USE_F64
FN double exp_f64(double x) { return exp(x); }
FN double expm1_f64(double x) { return expm1(x); }
FN double log_f64(double x) { return log(x); }
FN double tanh_f64(double x) { return tanh(x); }
FN double erf_f64(double x) { return erf(x); }
FN double sigmoid_f64(double x) { return 1.0 / (1.0 + exp(-x)); }
#endif
