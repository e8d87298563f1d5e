// SPDX-License-Identifier: Apache-2.0
// Cases of quantized weights: DEQUANT, QLINEAR, QGATHER, in all formats. References decode one
// element at a time.
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/endian.h"
#include "base/param.h"
#include "conform/draw_program.h"

// Formats of GGUF, with offsets of the f16 numbers of a block.
static const struct format {
	uint8_t number, last, bytes, scales, scale[2]; // last: index of a block's last element
	const char *name;
} formats[] = {
	{ 2, 31, 18, 1, { 0 }, "Q4_0" },	     { 3, 31, 20, 2, { 0, 2 }, "Q4_1" },
	{ 6, 31, 22, 1, { 0 }, "Q5_0" },	     { 7, 31, 24, 2, { 0, 2 }, "Q5_1" },
	{ 8, 31, 34, 1, { 0 }, "Q8_0" },	     { 12, 255, 144, 2, { 0, 2 }, "Q4_K" },
	{ 13, 255, 176, 2, { 0, 2 }, "Q5_K" }, { 14, 255, 210, 1, { 208 }, "Q6_K" },
	{ 1, 0, 2, 1, { 0 }, "F16" },	     { 30, 0, 2, 0, { 0 }, "BF16" },
};
enum {
	FORMATS = sizeof formats / sizeof *formats,
	Q4_0 = 0,
	Q4_1,
	Q5_0,
	Q5_1,
	Q8_0,
	Q4_K,
	Q5_K,
	Q6_K,
	F16,
	BF16
};

// A finite number of 16 bits; exact.
static double half_at(const uint8_t *b)
{
	const int bits = b[0] | b[1] << 8, exponent = bits >> 10 & 31, fraction = bits & 1023;
	const double size = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
	return bits & 0x8000 ? -size : size;
}

static double bf16_at(const uint8_t *b)
{
	const int bits = b[0] | b[1] << 8;
	const double size = ldexp(128 + (bits & 127), (bits >> 7 & 255) - 134);
	return bits & 0x8000 ? -size : size;
}

static int bit(const uint8_t *b, int i)
{
	return b[i / 8] >> i % 8 & 1;
}

static double long_element(int f, const uint8_t *b, int i)
{
	const int g = i / 32, l = i % 32;
	if (f == Q6_K) {
		const int half = i / 128,
			  low = b[64 * half + 32 * (g & 1) + l] >> (g & 2 ? 4 : 0) & 15;
		const int high = b[128 + 32 * half + l] >> 2 * (g & 3) & 3;
		return half_at(b + 208) * (int8_t)b[192 + i / 16] * (low + 16 * high - 32);
	}
	const uint8_t *s = b + 4 + g % 4;
	const int a = g < 4 ? s[0] & 63 : (s[8] & 15) + 16 * (s[0] >> 6);
	const int m = g < 4 ? s[4] & 63 : (s[8] >> 4) + 16 * (s[4] >> 6);
	int q = b[(f == Q5_K ? 48 : 16) + 32 * (g / 2) + l] >> 4 * (g & 1) & 15;
	if (f == Q5_K)
		q += 16 * (b[16 + l] >> g & 1);
	return half_at(b) * a * q - half_at(b + 2) * m;
}

static double element(int f, const uint8_t *b, int i)
{
	switch (f) {
	case Q4_0: return half_at(b) * ((b[2 + i % 16] >> i / 16 * 4 & 15) - 8);
	case Q4_1: return half_at(b) * (b[4 + i % 16] >> i / 16 * 4 & 15) + half_at(b + 2);
	case Q5_0:
		return half_at(b) * ((b[6 + i % 16] >> i / 16 * 4 & 15) + 16 * bit(b + 2, i) - 16);
	case Q5_1:
		return half_at(b) * ((b[8 + i % 16] >> i / 16 * 4 & 15) + 16 * bit(b + 4, i)) +
		       half_at(b + 2);
	case Q8_0: return half_at(b) * (int8_t)b[2 + i];
	case F16: return half_at(b);
	case BF16: return bf16_at(b);
	default: return long_element(f, b, i);
	}
}

// A matrix [rows,k] in format `f` of the table above.
struct weights {
	int f;
	int64_t rows, k, bytes; // bytes of a row
	double *number;         // [rows,k]
};

static struct weights draw_weights(struct yk_case *c)
{
	struct weights w = { .f = (int)(c->number % FORMATS) };
	const struct format *f = &formats[w.f];
	const int64_t blocks = yk_draw_size(c, f->last ? (f->last > 31 ? 6 : 40) : 300);

	w.k = blocks * (f->last + 1);
	w.bytes = blocks * f->bytes;
	w.rows = yk_draw_size(c, 20000 / w.k + 1);
	w.number = yk_case_alloc(c, (uint64_t)(w.rows * w.k) * sizeof *w.number);
	c->op.nattr = 2;
	c->op.attr[0].i = f->number;
	c->op.attr[1].i = w.k;
	yk_case_note(c, "%s", f->name);
	return w;
}

// A number of 16 bits with a modulus of 2^-8 to 4.
static void draw_number(struct yk_case *c, int f, uint8_t *b)
{
	const int64_t h =
		f == BF16 ? yk_draw_int(c, 0x3c00, 0x4080) : yk_draw_int(c, 0x1c00, 0x3c00);

	b[0] = (uint8_t)h;
	b[1] = (uint8_t)(h >> 8 | (yk_draw_one_in(c, 2) ? 0x80 : 0));
}

// Adds the operand with random blocks and computes its numbers, with moduli up to 2^12.
static void add_weights(struct yk_case *c, const struct weights *w)
{
	const struct format *f = &formats[w->f];
	const int elements = f->last + 1;
	const int64_t dims[] = { w->rows, w->bytes }, blocks = w->rows * w->k / elements;
	struct yk_num *num = yk_case_alloc(c, (uint64_t)(w->rows * w->bytes) * sizeof *num);

	for (int64_t i = 0; i < blocks; i++) {
		uint8_t b[256];
		for (int j = 0; j < f->bytes; j++)
			b[j] = (uint8_t)yk_draw(c);
		for (int j = 0; j < f->scales; j++)
			draw_number(c, w->f, b + f->scale[j]);
		if (w->f == BF16)
			draw_number(c, w->f, b);
		for (int j = 0; j < elements; j++)
			w->number[i * elements + j] = element(w->f, b, j);
		if (!f->last) // numbers have the host's order, blocks the files'
			yk_le(b, 2, 1);
		for (int j = 0; j < f->bytes; j++)
			num[i * f->bytes + j].i = b[j];
	}
	yk_case_in_of(c, yoke_u8, 2, dims, yk_case_plain(c) ? YK_DENSE : YK_ROWS, num);
}

// The product of scale and integer is exact or rounded once, the sum with the minimum once.
static void want_number(struct yk_expected *to, int dtype, double v)
{
	yk_expect_real(to, dtype, v, ldexp(fabs(v), -22) + ldexp(1, -24));
}

bool yk_make_dequant(struct yk_case *c, int dtype)
{
	yk_case_op(c, YOKE_OP_DEQUANT);
	const struct weights w = draw_weights(c);
	const uint32_t y = yk_case_out(c, dtype, 2, (int64_t[]){ w.rows, w.k }, YK_ROWS);

	add_weights(c, &w);
	for (int64_t i = 0; i < c->array[y].n; i++)
		want_number(&c->array[y].want[i], dtype, w.number[i]);
	return true;
}

bool yk_make_qgather(struct yk_case *c, int dtype)
{
	const int itype = yk_draw_one_in(c, 2) ? yoke_i32 : yoke_i64,
		  rank = (int)yk_draw_int(c, 0, 2);
	int64_t dims[3];

	yk_case_op(c, YOKE_OP_QGATHER);
	const struct weights w = draw_weights(c);
	for (int d = 0; d < rank; d++)
		dims[d] = yk_draw_size(c, 12);
	dims[rank] = w.k;
	const int64_t count = yk_count_of(rank, dims);
	struct yk_num *ids = yk_case_alloc(c, (uint64_t)count * sizeof *ids);
	for (int64_t i = 0; i < count; i++)
		ids[i].i = yk_draw_int(c, 0, w.rows - 1);
	if (yk_draw_one_in(c, 12)) {
		ids[yk_draw_int(c, 0, count - 1)].i = yk_draw_one_in(c, 2) ? -1 : w.rows;
		c->rejects = true;
	}
	const uint32_t y = yk_case_out(c, dtype, rank + 1, dims, YK_ROWS);

	add_weights(c, &w);
	yk_case_in_of(c, itype, rank, dims, YK_DENSE, ids);
	for (int64_t i = 0; i < c->array[y].n && !c->rejects; i++)
		want_number(&c->array[y].want[i], dtype, w.number[ids[i / w.k].i * w.k + i % w.k]);
	return true;
}

// The product of a row of x and a row of w, and the error that is allowed: x may be rounded to 16
// bits in groups of 32, or to 8 with qmatmul=int8, and sums are f32.
static double product(const struct yk_num *x, const double *w, int64_t k, double *error)
{
	struct yk_param *setting = yk_param_find("qmatmul");
	const bool by_8_bits = setting && !strcmp(yk_param_str(setting), "int8");
	double sum = 0, moduli = 0;

	*error = 0;
	for (int64_t from = 0; from < k; from += 32) {
		double largest = 0, weights = 0;
		for (int64_t i = from; i < k && i < from + 32; i++) {
			sum += x[i].f * w[i];
			moduli += fabs(x[i].f * w[i]);
			weights += fabs(w[i]);
			largest = fmax(largest, fabs(x[i].f));
		}
		*error += ldexp(largest * weights, by_8_bits ? -7 : -14);
	}
	*error += ldexp(moduli, -18);
	return sum;
}

bool yk_make_qlinear(struct yk_case *c, int dtype)
{
	const int rank = (int)yk_draw_int(c, 1, 3);
	const double max = dtype == yoke_f16 ? 0.01 : 1; // a result of f16 must not overflow
	int64_t dims[3];

	yk_case_op(c, YOKE_OP_QLINEAR);
	const struct weights w = draw_weights(c);
	for (int d = 0; d < rank - 1; d++)
		dims[d] = yk_draw_size(c, 7);
	dims[rank - 1] = w.rows;
	const uint32_t y = yk_case_out(c, dtype, rank, dims, YK_ROWS);

	dims[rank - 1] = w.k;
	const uint32_t x =
		yk_case_in(c, dtype, rank, dims, yk_case_plain(c) ? YK_DENSE : YK_ROWS, -max, max);
	add_weights(c, &w);
	for (int64_t i = 0; i < c->array[y].n; i++) {
		double error;
		const double v = product(c->array[x].num + i / w.rows * w.k,
					 w.number + i % w.rows * w.k, w.k, &error);
		yk_expect_real(&c->array[y].want[i], dtype, v, error);
	}
	return true;
}
