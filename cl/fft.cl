// SPDX-License-Identifier: Apache-2.0
// FFT: transforms of n elements in local memory, by mixed radices in Stockham's order. Reference:
// kern_fft.c of the CPU backend.
// A group transforms `lines` lines at once. In each pass an item computes whole butterflies of
// radix 2 to 5 or, for other primes, elements of the result. All transforms are forward, exp(-2 pi
// i jk/n); inverse ones exchange re and im of operands and results. Real numbers are transformed as
// complex. The axes' rows are the lines; tensors: 0 the result, 1 the operand.
// Parameters: DTYPE (f32 or f64), ITEMS of a group, SIZE: max elements of a group.
#include "number.cl"
#include "axes.cl"

#ifndef ITEMS
#define ITEMS 128
#endif
#ifndef SIZE
#define SIZE 1024
#endif
#define FACTORS 12

struct fft {
	struct axes axes;
	long ys, yp, xs, xp; // between elements, and from re to im
	long n, kind, inverse, weight;
	ulong scale; // the number's bits
	long lines, factors;
	long factor[FACTORS];
};

#define TO_HALF 1 // kinds
#define TO_REAL 2
#if DTYPE == 2
#define LITERAL(x) x
#else
#define LITERAL(x) x##f
#endif

struct pass {
	// elements of a line; radix; the product of the radices before
	int n, r, s;
	GLOBAL const number *turn;    // [n] pairs: exp(-2 pi i k / n)
	LOCAL_POINTER const number *re, *im;
	LOCAL_POINTER number *to_re, *to_im;
};

// Stores an element times exp(-2 pi i k / n).
FN void put(const struct pass *p, int at, number re, number im, int k)
{
	number c = p->turn[2 * k], s = p->turn[2 * k + 1];
	p->to_re[at] = FMA(re, c, -(im * s));
	p->to_im[at] = FMA(re, s, im * c);
}

FN void radix2(number *re, number *im)
{
	number a = re[1], b = im[1];
	re[1] = re[0] - a, im[1] = im[0] - b;
	re[0] += a, im[0] += b;
}

FN void radix3(number *re, number *im)
{
	const number h = LITERAL(0.86602540378443864676);
	number a = re[1] + re[2], b = im[1] + im[2], c = h * (im[1] - im[2]),
	       d = h * (re[1] - re[2]);
	number x = re[0] - LITERAL(0.5) * a, y = im[0] - LITERAL(0.5) * b;
	re[0] += a, im[0] += b;
	re[1] = x + c, im[1] = y - d;
	re[2] = x - c, im[2] = y + d;
}

FN void radix4(number *re, number *im)
{
	number a = re[0] + re[2], b = im[0] + im[2], c = re[0] - re[2], d = im[0] - im[2];
	number e = re[1] + re[3], f = im[1] + im[3], g = re[1] - re[3], h = im[1] - im[3];
	re[0] = a + e, im[0] = b + f;
	re[1] = c + h, im[1] = d - g;
	re[2] = a - e, im[2] = b - f;
	re[3] = c - h, im[3] = d + g;
}

// cos and sin of 2 pi / 5 and 4 pi / 5
FN void radix5(number *re, number *im)
{
	const number c1 = LITERAL(0.30901699437494742410), c2 = -LITERAL(0.80901699437494742410);
	const number s1 = LITERAL(0.95105651629515357212), s2 = LITERAL(0.58778525229247312917);
	number a = re[1] + re[4], b = im[1] + im[4], c = re[1] - re[4], d = im[1] - im[4];
	number e = re[2] + re[3], f = im[2] + im[3], g = re[2] - re[3], h = im[2] - im[3];
	number x1 = re[0] + FMA(c1, a, c2 * e), y1 = im[0] + FMA(c1, b, c2 * f);
	number x2 = re[0] + FMA(c2, a, c1 * e), y2 = im[0] + FMA(c2, b, c1 * f);
	number u1 = FMA(s1, d, s2 * h), v1 = FMA(s1, c, s2 * g);
	number u2 = FMA(s2, d, -(s1 * h)), v2 = FMA(s2, c, -(s1 * g));
	re[0] += a + e, im[0] += b + f;
	re[1] = x1 + u1, im[1] = y1 - v1;
	re[4] = x1 - u1, im[4] = y1 + v1;
	re[2] = x2 + u2, im[2] = y2 - v2;
	re[3] = x2 - u2, im[3] = y2 + v2;
}

FN void butterflies(const struct pass *p, const int r, int lines, int item)
{
	int each = p->n / r;
	for (int i = item; i < lines * each; i += ITEMS) {
		int line = i / each * p->n, b = i % each, j = b / p->s, q = b % p->s;
		number re[5], im[5];
		UNROLL
		for (int k = 0; k < r; k++) {
			re[k] = p->re[line + b + k * each];
			im[k] = p->im[line + b + k * each];
		}
		if (r == 2)
			radix2(re, im);
		else if (r == 3)
			radix3(re, im);
		else if (r == 4)
			radix4(re, im);
		else
			radix5(re, im);
		line += q + r * j * p->s;
		UNROLL
		for (int k = 0; k < r; k++)
			put(p, line + k * p->s, re[k], im[k], j * k * p->s);
	}
}

FN void sums(const struct pass *p, int lines, int item)
{
	int r = p->r, each = p->n / r;
	for (int i = item; i < lines * p->n; i += ITEMS) {
		int line = i / p->n * p->n, k = i % p->n / each, b = i % each, j = b / p->s;
		number re = 0, im = 0;
		for (int h = 0, at = 0; h < r; h++) {
			number x = p->re[line + b + h * each], y = p->im[line + b + h * each];
			number c = p->turn[2 * at * each], s = p->turn[2 * at * each + 1];
			re += FMA(x, c, -(y * s));
			im += FMA(x, s, y * c);
			at = at + k < r ? at + k : at + k - r;
		}
		put(p, line + b % p->s + (r * j + k) * p->s, re, im, j * k * p->s);
	}
}

// The weight of element k of half a spectrum.
FN number weight_of(const struct fft *a, int k)
{
	return k == 0 || 2 * k == a->n ? (number)1 : (number)a->weight;
}

FN void load(const struct fft *a, GLOBAL const number *x, LOCAL_POINTER number *re,
	     LOCAL_POINTER number *im, int k)
{
	number p = 0, q = 0;
	if (a->kind != TO_REAL || 2 * k <= a->n) {
		p = x[k * a->xs];
		q = a->kind == TO_HALF ? (number)0 : x[k * a->xs + a->xp];
	}
	if (a->kind == TO_REAL) {
		p *= weight_of(a, k);
		q *= weight_of(a, k);
	}
	*re = a->inverse ? q : p;
	*im = a->inverse ? p : q;
}

FN void store(const struct fft *a, GLOBAL number *y, number re, number im, int k)
{
	number scale = NUMBER_OF_BITS(a->scale), p = a->inverse ? im : re, q = a->inverse ? re : im;
	if (a->kind == TO_HALF) {
		if (2 * k > a->n)
			return;
		scale *= weight_of(a, k);
	}
	y[k * a->ys] = p * scale;
	if (a->kind != TO_REAL)
		y[k * a->ys + a->yp] = q * scale;
}

KERNEL void WORK_GROUP(ITEMS, 1) fft(GLOBAL uchar *to, ulong to_at, GLOBAL uchar *from,
				     ulong from_at, GLOBAL uchar *turn, struct fft a)
{
	LOCAL number re[2 * SIZE], im[2 * SIZE];
	int item = LOCAL_ID(0), n = (int)a.n;
	for (long first = (long)GROUP_ID(0) * a.lines; first < a.axes.rows;
	     first += (long)GROUPS(0) * a.lines) {
		int lines = (int)(a.axes.rows - first < a.lines ? a.axes.rows - first : a.lines),
		    now = 0;
		struct pass p;
		for (int i = item; i < lines * n; i += ITEMS)
			load(&a,
			     NUMBERS(from, from_at) + row_of(&a.axes, 1, (ulong)(first + i / n)),
			     re + i, im + i, i % n);
		BARRIER();
		p.turn = (GLOBAL const number *)turn;
		p.n = n;
		p.s = 1;
		for (int f = 0; f < (int)a.factors; f++) {
			p.r = (int)a.factor[f];
			p.re = re + now;
			p.im = im + now;
			now = SIZE - now;
			p.to_re = re + now;
			p.to_im = im + now;
			if (p.r == 4)
				butterflies(&p, 4, lines, item);
			else if (p.r == 2)
				butterflies(&p, 2, lines, item);
			else if (p.r == 3)
				butterflies(&p, 3, lines, item);
			else if (p.r == 5)
				butterflies(&p, 5, lines, item);
			else
				sums(&p, lines, item);
			p.s *= p.r;
			BARRIER();
		}
		for (int i = item; i < lines * n; i += ITEMS)
			store(&a, NUMBERS(to, to_at) + row_of(&a.axes, 0, (ulong)(first + i / n)),
			      re[now + i], im[now + i], i % n);
		BARRIER();
	}
}
