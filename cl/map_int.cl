// SPDX-License-Identifier: Apache-2.0
// Map instructions for one integer type; included once per type that a program uses. Parameters:
// INT, UINT (the unsigned type of the same size), INT_LOWEST, INT_HIGHEST and I(name), which
// appends the type's suffix. Overflow wraps: sums and products are computed unsigned.

FN INT I(add)(INT a, INT b)
{
	return (INT)((UINT)a + (UINT)b);
}

FN INT I(sub)(INT a, INT b)
{
	return (INT)((UINT)a - (UINT)b);
}

FN INT I(mul)(INT a, INT b)
{
	return (INT)((UINT)a * (UINT)b);
}

// x / 0 = 0; the minimum / -1 wraps to the minimum.
FN INT I(div)(INT a, INT b)
{
	if (b == 0)
		return 0;
	if (INT_LOWEST != 0 && b == (INT)-1)
		return I(sub)(0, a);
	return a / b;
}

FN INT I(mod)(INT a, INT b)
{
	return b == 0 || (INT_LOWEST != 0 && b == (INT)-1) ? (INT)0 : (INT)(a % b);
}

// Counts outside the width, including negative ones, shift all bits out.
FN INT I(shl)(INT a, INT b)
{
	return (UINT)b < 8 * sizeof(INT) ? (INT)((UINT)a << (UINT)b) : (INT)0;
}

FN INT I(shr)(INT a, INT b)
{
	if ((UINT)b < 8 * sizeof(INT))
		return (INT)(a >> (UINT)b);
	return INT_LOWEST != 0 && a < (INT)0 ? (INT)-1 : (INT)0;
}

// A negative exponent truncates: the result is 0 unless the base is 1 or -1.
FN INT I(pow)(INT a, INT b)
{
	if (INT_LOWEST != 0 && b < (INT)0)
		return a == (INT)1 ? 1 : a == (INT)-1 ? (b & 1 ? -1 : 1) : 0;
	INT y = 1;
	for (UINT n = (UINT)b; n; n >>= 1) {
		if (n & 1)
			y = I(mul)(y, a);
		a = I(mul)(a, a);
	}
	return y;
}

FN INT I(min)(INT a, INT b)
{
	return a < b ? a : b;
}

FN INT I(max)(INT a, INT b)
{
	return a > b ? a : b;
}

FN INT I(abs)(INT a)
{
	return INT_LOWEST != 0 && a < (INT)0 ? I(sub)(0, a) : a;
}

FN INT I(sign)(INT a)
{
	return a == 0 ? 0 : INT_LOWEST != 0 && a < (INT)0 ? (INT)-1 : (INT)1;
}

// Truncates and saturates; NaN becomes 0. INT_HIGHEST converted to the floating type may round up
// to the first value that does not fit, which the comparison handles.
FN INT I(of_f32)(float x)
{
	return x != x ? (INT)0 : x <= (float)INT_LOWEST ? INT_LOWEST :
	       x >= (float)INT_HIGHEST ? INT_HIGHEST : (INT)x;
}

#ifdef USE_F64
FN INT I(of_f64)(double x)
{
	return x != x ? (INT)0 : x <= (double)INT_LOWEST ? INT_LOWEST :
	       x >= (double)INT_HIGHEST ? INT_HIGHEST : (INT)x;
}
#endif
