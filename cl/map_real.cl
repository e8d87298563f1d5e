// SPDX-License-Identifier: Apache-2.0
// Instructions of map programs in one floating-point type; compiled for each type a
// program uses. Takes REAL (float, double) and R(name), which gives name the type's
// suffix.  f16 and bf16 use the functions of float, math.cl those of its own.  Each is the formula of yoke-plugin.h
// with the edge cases of IEEE 754.

FN REAL R(min)(REAL a, REAL b)
{
	return a < b || a != a ? a : b;
}

FN REAL R(max)(REAL a, REAL b)
{
	return a > b || a != a ? a : b;
}

FN REAL R(sign)(REAL x)
{
	return x > 0 ? (REAL)1 : x < 0 ? (REAL)-1 : x != x ? x : (REAL)0;
}

// a, b in [0, 1): Box and Muller 1958
FN REAL R(normal)(REAL a, REAL b)
{
	return sqrt((REAL)-2 * R(log)((REAL)1 - a)) * cospi((REAL)2 * b);
}
