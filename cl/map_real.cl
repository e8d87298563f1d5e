// SPDX-License-Identifier: Apache-2.0
// Map instructions for one floating-point type; included once per type that a program uses.
// Parameters: REAL (float, double) and R(name), which appends the type's suffix. f16 and bf16 use
// the functions of float. Each function is the formula of yoke-plugin.h with the edge cases of IEEE
// 754; the elementary functions are in math.cl.

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
