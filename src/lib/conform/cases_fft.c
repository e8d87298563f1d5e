// SPDX-License-Identifier: Apache-2.0
// Cases of FFT. The reference is the sum of its definition in float64.
#include "config.h"

#include <math.h>

#include "conform/case.h"

enum { COMPLEX, REAL, HALF };

struct turns {
	int64_t n;
	double *c, *s; // of 2 pi k / n
};

static struct turns turns(struct yk_case *c, int64_t n)
{
	struct turns t = { n, yk_case_alloc(c, (uint64_t)n * sizeof(double)),
			   yk_case_alloc(c, (uint64_t)n * sizeof(double)) };
	for (int64_t k = 0; k < n; k++) {
		t.c[k] = cos(2 * M_PI * (double)k / (double)n);
		t.s[k] = sin(2 * M_PI * (double)k / (double)n);
	}
	return t;
}

// y [m] = scale sum of x [size] exp(sign 2 pi i jk / n); x and y: re and im, one after the other
static void sum(const double *x, int64_t size, double *y, int64_t m, const struct turns *t,
		bool inverse)
{
	for (int64_t k = 0; k < m; k++) {
		double re = 0, im = 0;
		for (int64_t j = 0, at = 0; j < size; j++, at = (at + k) % t->n) {
			const double c = t->c[at], s = inverse ? t->s[at] : -t->s[at];
			re += x[2 * j] * c - x[2 * j + 1] * s;
			im += x[2 * j] * s + x[2 * j + 1] * c;
		}
		y[2 * k] = re;
		y[2 * k + 1] = im;
	}
}

static int64_t draw_length(struct yk_case *c)
{
	static const int64_t special[] = { 1,   2,   16,  97,  100, 121, 128, 210,
					   243, 256, 289, 360, 512, 625, 1009 };
	if (yk_case_large(c))
		return yk_draw_int(c, 1500, 2600);
	return yk_draw_one_in(c, 2) ? special[yk_draw_int(c, 0, 14)] : yk_draw_int(c, 1, 70);
}

bool yk_make_fft(struct yk_case *c, int dtype)
{
	int64_t from[YOKE_MAX_RANK], to[YOKE_MAX_RANK];

	yk_case_op(c, YOKE_OP_FFT);
	const int kind = (int)yk_draw_int(c, 0, 2);
	const int64_t n = draw_length(c), half = n / 2 + 1;
	const bool inverse = yk_draw_one_in(c, 2), twice = yk_draw_one_in(c, 2);
	const double scale = yk_draw_one_in(c, 2) ? 1 : 1 / (double)n;
	const int lead = (int)yk_draw_int(c, 0, 2);
	int64_t count = 1;
	for (int i = 0; i < lead; i++)
		count *= from[i] = to[i] = yk_draw_int(
			c, yk_draw_one_in(c, 24) && !yk_case_plain(c) ? 0 : 1, n > 300 ? 2 : 7);
	const int64_t nx = kind == HALF ? half : n, ny = kind == REAL ? half : n;
	const int px = kind != REAL, py = kind != HALF;
	from[lead] = nx;
	to[lead] = ny;
	from[lead + 1] = to[lead + 1] = 2;
	const uint32_t y = yk_case_out(c, dtype, lead + 1 + py, to, YK_ANY);
	const uint32_t x = yk_case_in(c, dtype, lead + 1 + px, from, YK_ANY | YK_REPEATED, -1, 1);
	c->op.nattr = 5;
	c->op.attr[0].i = kind;
	c->op.attr[1].i = n;
	c->op.attr[2].i = inverse;
	c->op.attr[3].i = 1 + twice;
	c->op.attr[4].f = scale;
	const struct turns t = turns(c, n);
	double *a = yk_case_alloc(c, (uint64_t)(2 * n + 2) * sizeof *a),
	       *b = yk_case_alloc(c, (uint64_t)(2 * n + 2) * sizeof *b);
	for (int64_t row = 0; row < count; row++) {
		const struct yk_num *in = c->array[x].num + row * nx * (1 + px);
		struct yk_expected *want = c->array[y].want + row * ny * (1 + py);
		double size = 0, total = 0;
		for (int64_t j = 0; j < nx; j++) {
			const double weight = kind == HALF && j && 2 * j != n ? 1 + twice : 1;
			a[2 * j] = in[px ? 2 * j : j].f * weight;
			a[2 * j + 1] = px ? in[2 * j + 1].f * weight : 0;
			total += fabs(a[2 * j]) + fabs(a[2 * j + 1]);
			size += a[2 * j] * a[2 * j] + a[2 * j + 1] * a[2 * j + 1];
		}
		sum(a, nx, b, ny, &t, inverse);
		const double abs = 32 * (2 + log2((double)n)) * sqrt(size) * scale *
				   (dtype == yoke_f64 ? 0x1p-53 : 0x1p-24);
		const double own = (double)nx * 0x1p-53 * total * scale; // the reference's error
		for (int64_t k = 0; k < ny; k++) {
			const double weight =
				scale * (kind == REAL && k && 2 * k != n ? 1 + twice : 1);
			for (int part = 0; part <= py; part++)
				yk_expect_real(&want[py ? 2 * k + part : k], dtype,
					       b[2 * k + part] * weight, (abs + own) * (1 + twice));
		}
	}
	yk_case_note(c, "n %lld, kind %d%s", (long long)n, kind, inverse ? ", inverse" : "");
	return true;
}
