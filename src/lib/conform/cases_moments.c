// SPDX-License-Identifier: Apache-2.0
// Cases of MOMENTS; the reference makes two passes in float64.
#include "config.h"

#include <math.h>

#include "conform/case.h"
#include "yoke.h"

static struct yk_num weight(struct yk_case *c, int dtype, int64_t index)
{
	static const double of[] = { 0, 1, 1, 0.5, 3 };
	(void)dtype, (void)index;
	return (struct yk_num){ .f = of[yk_draw_int(c, 0, c->number % 4 < 2 ? 1 : 4)] };
}

bool yk_make_moments(struct yk_case *c, int dtype)
{
	const int64_t rows = !yk_case_plain(c) && yk_draw_one_in(c, 12) ?
				     0 :
				     yk_draw_size(c, yk_case_large(c) ? 20011 : 1025),
		      channels = yk_draw_size(c, 65);
	const int64_t x_dims[2] = { rows, channels }, square_dims[2] = { channels, channels };
	const bool diagonal = yk_draw_one_in(c, 3), weighed = yk_draw_one_in(c, 2);
	static const double offsets[] = { 0, 0, 1e3, 1e5 };
	// f32 products overflow or underflow
	static const double scales[] = { 1, 1, 1, 1e-30, 1e-21, 1e19, 1e30 };
	const double scale =
		dtype == yoke_f32 || dtype == yoke_f64 ? scales[yk_draw_int(c, 0, 6)] : 1;
	const double offset = offsets[yk_draw_int(c, 0, 3)] * scale;
	double n = 0;

	yk_case_op(c, YOKE_OP_MOMENTS);
	uint32_t out[5];
	out[0] = yk_case_out(c, yoke_f64, 0, NULL, YK_DENSE);
	out[1] = yk_case_out(c, yoke_f64, 1, &channels, YK_ANY);
	out[2] = yk_case_out(c, yoke_f64, diagonal ? 1 : 2, square_dims, YK_ANY);
	out[3] = yk_case_out(c, dtype, 1, &channels, YK_ANY);
	out[4] = yk_case_out(c, dtype, 1, &channels, YK_ANY);
	const uint32_t x =
		yk_case_in(c, dtype, 2, x_dims, YK_ANY, offset - 35 * scale, offset + 35 * scale);
	const uint32_t w =
		weighed ? yk_case_in_by(c, dtype, 1, &rows, YK_ANY, weight) : yk_case_none(c);
	c->op.nattr = 1;
	c->op.attr[0].i = diagonal;
	const struct yk_num *v = c->array[x].num;
	double *mean = yk_case_alloc(c, (uint64_t)channels * sizeof *mean), *square;
	square = yk_case_alloc(c, (uint64_t)(channels * channels) * sizeof *square);
	for (int64_t r = 0; r < rows; r++)
		n += weighed ? c->array[w].num[r].f : 1;
	for (int64_t i = 0; i < channels; i++) {
		double low = INFINITY, high = -INFINITY, sum = 0;
		for (int64_t r = 0; r < rows; r++) {
			const double weigh = weighed ? c->array[w].num[r].f : 1,
				     e = v[r * channels + i].f;
			if (weigh == 0)
				continue;
			sum += weigh * e;
			low = fmin(low, e);
			high = fmax(high, e);
		}
		mean[i] = n > 0 ? sum / n : 0;
		c->array[out[3]].want[i] = (struct yk_expected){ .f = low };
		c->array[out[4]].want[i] = (struct yk_expected){ .f = high };
	}
	for (int64_t r = 0; r < rows; r++)
		for (int64_t i = 0; i < channels; i++)
			for (int64_t k = diagonal ? i : 0; k <= i; k++)
				square[i * channels + k] += (weighed ? c->array[w].num[r].f : 1) *
							    (v[r * channels + i].f - mean[i]) *
							    (v[r * channels + k].f - mean[k]);
	c->array[out[0]].want[0] = (struct yk_expected){ .f = n, .tol = 1e-12 * n };
	for (int64_t i = 0; i < channels; i++) {
		const double si = square[i * channels + i], sigma = n > 0 ? sqrt(si / n) : 0;
		c->array[out[1]].want[i] =
			(struct yk_expected){ .f = mean[i],
					      .tol = 1e-8 * sigma + 1e-12 * fabs(mean[i]) };
		for (int64_t k = diagonal ? i : 0; k <= i; k++) {
			const double sk = square[k * channels + k];
			const struct yk_expected want = { .f = square[i * channels + k],
							  .tol = 1e-6 * sqrt(si * sk) +
								 1e-20 * n * offset * offset };
			if (diagonal) {
				c->array[out[2]].want[i] = want;
				continue;
			}
			c->array[out[2]].want[i * channels + k] = want;
			c->array[out[2]].want[k * channels + i] = want;
		}
	}
	yk_case_note(c, "offset %g, scale %g%s%s", offset, scale, diagonal ? ", diagonal" : "",
		     weighed ? ", weights" : "");
	return true;
}
