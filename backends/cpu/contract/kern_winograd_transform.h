// SPDX-License-Identifier: Apache-2.0
// One-dimensional transforms of Winograd's algorithm F(4,3): a sum of three products at each of
// four neighbouring positions takes six products, one for each of the points 0, a, -a, b, -b and
// infinity. a = sqrt(2) and b = 1 / a keep the factors small, so that the errors of the sums are
// within twice those of the plain loop in f32. See Lavin and Gray 2016 (CVPR) for the algorithm and
// Barabasz et al. 2020 (ACM TOMS 46:4) for the choice of points. Vectors hold channels.
#ifndef YK_KERN_WINOGRAD_TRANSFORM_H
#define YK_KERN_WINOGRAD_TRANSFORM_H

enum { TILE = 4, TAPS = 3, POINTS = TILE + TAPS - 1 };

#define PLUS_A 1.41421356237309504880f
#define PLUS_B 0.70710678118654752440f

FLAT vec all(float v)
{
	return v - (vec){ 0 };
}

// Six neighbouring elements of the operand.
FLAT void transform_input(const vec *d, vec *to)
{
	const vec p = FMA(all(-0.5f), d[2], d[4]), q = FMA(all(PLUS_A), d[3], -PLUS_B * d[1]);
	const vec r = FMA(all(-2), d[2], d[4]), s = FMA(all(PLUS_B), d[3], -PLUS_A * d[1]);

	to[0] = FMA(all(-2.5f), d[2], d[0] + d[4]);
	to[1] = p + q;
	to[2] = p - q;
	to[3] = r + s;
	to[4] = r - s;
	to[5] = FMA(all(-2.5f), d[3], d[1] + d[5]);
}

// Three taps.
FLAT void transform_taps(const vec *g, vec *to)
{
	const vec p = FMA(all(2), g[2], g[0]) * (1 / 6.f), q = g[1] * (PLUS_A / 6);
	const vec r = FMA(all(0.5f), g[2], g[0]) * (-2 / 3.f), s = g[1] * (PLUS_B * -2 / 3);

	to[0] = g[0];
	to[1] = p + q;
	to[2] = p - q;
	to[3] = r + s;
	to[4] = r - s;
	to[5] = g[2];
}

// The sums of products of transformed operands, to the four outputs.
FLAT void transform_output(const vec *m, vec *to)
{
	const vec s = m[1] + m[2], d = m[1] - m[2], S = m[3] + m[4], D = m[3] - m[4];

	to[0] = m[0] + (s + S);
	to[1] = FMA(all(PLUS_A), d, PLUS_B * D);
	to[2] = FMA(all(2), s, 0.5f * S);
	const vec last = FMA(all(PLUS_B / 2), D, m[5]);
	to[3] = FMA(all(2 * PLUS_A), d, last);
}

// Four cotangents of outputs: the transpose of transform_output.
FLAT void transform_cotangents(const vec *y, vec *to)
{
	const vec p = FMA(all(2), y[2], y[0]), q = FMA(all(2 * PLUS_A), y[3], PLUS_A * y[1]);
	const vec r = FMA(all(0.5f), y[2], y[0]), s = FMA(all(PLUS_B / 2), y[3], PLUS_B * y[1]);

	to[0] = y[0];
	to[1] = p + q;
	to[2] = p - q;
	to[3] = r + s;
	to[4] = r - s;
	to[5] = y[3];
}

// Sums of products, to the cotangents of the taps: the transpose of transform_taps.
FLAT void transform_gradient(const vec *u, vec *to)
{
	const vec s = (u[1] + u[2]) * (1 / 6.f), d = (u[1] - u[2]) * (PLUS_A / 6);
	const vec S = (u[3] + u[4]) * (-2 / 3.f), D = (u[3] - u[4]) * (PLUS_B * -2 / 3);

	to[0] = u[0] + (s + S);
	to[1] = d + D;
	const vec last = FMA(all(0.5f), S, u[5]);
	to[2] = FMA(all(2), s, last);
}

// Transforms both axes of a (from, from) matrix of vectors to a (to, to) one. Vectors of the first
// are `row` and `col` elements apart, vectors of the second `apart`, row by row.
FLAT void transform(void (*const one)(const vec *, vec *), const int from, const int to, const T *x,
		    int64_t row, int64_t col, T *y, int64_t apart)
{
	vec half[POINTS][POINTS];

#pragma GCC unroll 6
	for (int j = 0; j < from; j++) {
		vec in[POINTS], out[POINTS];
#pragma GCC unroll 6
		for (int i = 0; i < from; i++)
			in[i] = *(const vec_u *)(x + i * row + j * col);
		one(in, out);
#pragma GCC unroll 6
		for (int i = 0; i < to; i++)
			half[i][j] = out[i];
	}
#pragma GCC unroll 6
	for (int i = 0; i < to; i++) {
		vec out[POINTS];
		one(half[i], out);
#pragma GCC unroll 6
		for (int j = 0; j < to; j++)
			*(vec_u *)(y + (i * to + j) * apart) = out[j];
	}
}

#endif
