// SPDX-License-Identifier: Apache-2.0
// Cases of WINDOW_ADD, convolution and pooling; references are loops that follow the definitions.
#include "config.h"

#include <math.h>
#include <string.h>

#include "conform/case.h"

// ---- windows ----

bool yk_make_window_add(struct yk_case *c, int dtype)
{
	const double unit = yk_num_unit(yk_num_acc(dtype));
	const int64_t size = yk_draw_int(c, 1, 5), stride = yk_draw_int(c, 1, 4),
		      dilation = yk_draw_int(c, 1, 3);
	const int64_t n = dilation * (size - 1) + yk_draw_size(c, yk_case_large(c) ? 600 : 40);
	const int64_t before = yk_draw_size(c, 6),
		      after = yk_draw_one_in(c, 2) ? 1 : yk_draw_size(c, 40);
	const int64_t count = (n - dilation * (size - 1) - 1) / stride + 1;

	yk_case_op(c, YOKE_OP_WINDOW_ADD);
	const uint32_t y = yk_case_out(c, dtype, 3, (int64_t[]){ before, n, after }, YK_ANY);
	const uint32_t x =
		yk_case_in(c, dtype, 4, (int64_t[]){ before, count, after, size }, YK_ANY, -1, 1);
	c->op.nattr = 5;
	c->op.attr[0].i = 1;
	c->op.attr[1].i = size;
	c->op.attr[2].i = stride;
	c->op.attr[3].i = dilation;
	c->op.attr[4].i = n;
	for (int64_t i = 0; i < before * n * after; i++) {
		const int64_t a = i / (n * after), at = i / after % n, b = i % after;
		double sum = 0, whole = 0;
		for (int64_t k = 0; k < size; k++) {
			const int64_t first = at - k * dilation, q = first / stride;
			if (first < 0 || first % stride || q >= count)
				continue;
			const double v =
				c->array[x].num[((a * count + q) * after + b) * size + k].f;
			sum += v;
			whole += fabs(v);
		}
		yk_expect_real(&c->array[y].want[i], dtype, sum, (double)size * unit * whole);
	}
	return true;
}

// ---- convolutions ----

enum { AXES = 3 }; // the first ones may be missing

struct shape {
	int axes;
	int64_t batch, groups, channels, outputs; // channels, outputs: per group
	int64_t in[AXES], taps[AXES], out[AXES], stride[AXES], dilation[AXES], lo[AXES], hi[AXES];
	int layout; // of the operands
};

static struct shape draw(struct yk_case *c)
{
	static const int64_t longest[] = { 0, 60, 19, 6 };
	struct shape s = { .axes = (int)yk_draw_int(c, 1, AXES),
			   .in = { 1, 1, 1 },
			   .taps = { 1, 1, 1 },
			   .out = { 1, 1, 1 },
			   .stride = { 1, 1, 1 },
			   .dilation = { 1, 1, 1 },
			   .layout = YK_ANY };
	if (yk_case_large(c) && yk_draw_one_in(c, 2)) { // many channels: other algorithms
		s.batch = s.groups = 1;
		s.layout = YK_DENSE;
		s.axes = 2;
		s.channels = yk_draw_int(c, 48, 52);
		s.outputs = yk_draw_int(c, 48, 52);
		for (int i = 1; i < AXES; i++) {
			s.taps[i] = 3;
			s.lo[i] = yk_draw_int(c, 0, 2);
			s.hi[i] = yk_draw_int(c, 0, 2);
			s.out[i] = yk_draw_int(c, 6, 9);
			s.in[i] = s.out[i] + 2 - s.lo[i] - s.hi[i];
		}
		return s;
	}
	s.batch = yk_draw_int(c, 1, 3);
	s.groups = yk_draw_one_in(c, 3) ? yk_draw_int(c, 2, 3) : 1;
	s.channels = yk_draw_size(c, yk_case_large(c) ? 20 : 5);
	s.outputs = yk_draw_size(c, yk_case_large(c) ? 40 : 9);
	for (int i = AXES - s.axes; i < AXES; i++) {
		s.taps[i] = yk_draw_int(c, 1, s.axes == 3 ? 3 : 4);
		s.stride[i] = yk_draw_one_in(c, 2) ? 1 : yk_draw_int(c, 2, 4);
		s.dilation[i] = yk_draw_one_in(c, 2) ? 1 : yk_draw_int(c, 2, 3);
		s.lo[i] = yk_draw_int(c, 0, 3);
		s.hi[i] = yk_draw_int(c, 0, 3);
		const int64_t span = s.dilation[i] * (s.taps[i] - 1) + 1,
			      max = yk_draw_size(c, longest[s.axes]);
		s.in[i] = span - s.lo[i] - s.hi[i] + max;
		s.in[i] = s.in[i] < 1 ? 1 : s.in[i];
		s.out[i] = (s.in[i] + s.lo[i] + s.hi[i] - span) / s.stride[i] + 1;
	}
	return s;
}

// x, w or y of the shape, with its spatial axes.
static uint32_t operand(struct yk_case *c, const struct shape *s, int dtype, char which, bool out,
			int layout)
{
	const int64_t *after = which == 'x' ? s->in : which == 'w' ? s->taps : s->out;
	int64_t dims[2 + AXES] = { which == 'w' ? s->groups * s->outputs : s->batch,
				   which == 'w' ?
					   s->channels :
					   s->groups * (which == 'x' ? s->channels : s->outputs) };
	for (int i = 0; i < s->axes; i++)
		dims[2 + i] = after[AXES - s->axes + i];
	return out ? yk_case_out(c, dtype, 2 + s->axes, dims, layout) :
		     yk_case_in(c, dtype, 2 + s->axes, dims, layout, -1, 1);
}

static void attributes(struct yk_case *c, const struct shape *s, const int64_t *sizes)
{
	c->op.attr[c->op.nattr++].i = s->groups;
	for (int i = AXES - s->axes; i < AXES; i++)
		c->op.attr[c->op.nattr++].i =
			(int64_t)((uint64_t)s->stride[i] | (uint64_t)s->dilation[i] << 16 |
				  (uint64_t)s->lo[i] << 32 | (uint64_t)s->hi[i] << 48);
	for (int i = AXES - s->axes; i < AXES && sizes; i++)
		c->op.attr[c->op.nattr++].i = sizes[i];
}

static int64_t all_of(const int64_t *n)
{
	return n[0] * n[1] * n[2];
}

// The spatial indices of element i, row-major.
static void indices(int64_t i, const int64_t *n, int64_t *at)
{
	for (int d = AXES - 1; d >= 0; i /= n[d--])
		at[d] = i % n[d];
}

// Calls fn for each product of the definition with the indices in x, w and y.
static void each(const struct shape *s, void (*fn)(void *, int64_t x, int64_t w, int64_t y),
		 void *arg)
{
	const int64_t outputs = s->groups * s->outputs, positions = all_of(s->out),
		      taps = all_of(s->taps);
	for (int64_t i = 0; i < s->batch * outputs * positions; i++)
		for (int64_t k = 0; k < s->channels * taps; k++) {
			const int64_t b = i / positions / outputs, o = i / positions % outputs,
				      c = k / taps;
			int64_t at[AXES], tap[AXES];
			indices(i, s->out, at);
			indices(k, s->taps, tap);
			int64_t x = b * s->groups * s->channels + o / s->outputs * s->channels + c;
			bool inside = true;
			for (int d = 0; d < AXES; d++) {
				const int64_t p =
					at[d] * s->stride[d] + tap[d] * s->dilation[d] - s->lo[d];
				inside &= p >= 0 && p < s->in[d];
				x = x * s->in[d] + p;
			}
			if (inside)
				fn(arg, x, (o * s->channels + c) * taps + k % taps, i);
		}
}

struct sums {
	const struct yk_num *x, *w, *y; // NULL: the one that is computed
	double *sum, *size;
	int64_t max; // max terms of a sum
};

static void add(void *arg, int64_t x, int64_t w, int64_t y)
{
	const struct sums *s = arg;
	const double v = (s->x ? s->x[x].f : 1) * (s->w ? s->w[w].f : 1) * (s->y ? s->y[y].f : 1);
	const int64_t to = !s->x ? x : !s->w ? w : y;
	s->sum[to] += v;
	s->size[to] += fabs(v);
}

static void conclude(struct yk_case *c, const struct shape *s, uint32_t out, int dtype,
		     struct sums *t)
{
	const int64_t n = c->array[out].n;
	t->sum = yk_case_alloc(c, (uint64_t)n * sizeof(double));
	t->size = yk_case_alloc(c, (uint64_t)n * sizeof(double));
	each(s, add, t);
	for (int64_t i = 0; i < n; i++)
		yk_expect_real(&c->array[out].want[i], dtype, t->sum[i],
			     (double)(t->max + 4) * yk_num_unit(yk_num_acc(dtype)) * t->size[i]);
}

bool yk_make_conv(struct yk_case *c, int dtype)
{
	const struct shape s = draw(c);
	yk_case_op(c, YOKE_OP_CONV);
	const uint32_t y = operand(c, &s, dtype, 'y', true, s.layout);
	const uint32_t x = operand(c, &s, dtype, 'x', false, s.layout),
		       w = operand(c, &s, dtype, 'w', false, s.layout);
	attributes(c, &s, NULL);
	conclude(c, &s, y, dtype, &(struct sums){ .x = c->array[x].num, .w = c->array[w].num,
						  .max = s.channels * all_of(s.taps) });
	return true;
}

bool yk_make_conv_x(struct yk_case *c, int dtype)
{
	const struct shape s = draw(c);
	yk_case_op(c, YOKE_OP_CONV_X);
	const uint32_t x = operand(c, &s, dtype, 'x', true, s.layout);
	const uint32_t y = operand(c, &s, dtype, 'y', false, s.layout),
		       w = operand(c, &s, dtype, 'w', false, s.layout);
	attributes(c, &s, s.in);
	conclude(c, &s, x, dtype, &(struct sums){ .y = c->array[y].num, .w = c->array[w].num,
						  .max = s.outputs * all_of(s.taps) });
	return true;
}

bool yk_make_conv_w(struct yk_case *c, int dtype)
{
	const struct shape s = draw(c);
	yk_case_op(c, YOKE_OP_CONV_W);
	const uint32_t w = operand(c, &s, dtype, 'w', true, YK_DENSE);
	const uint32_t x = operand(c, &s, dtype, 'x', false, s.layout),
		       y = operand(c, &s, dtype, 'y', false, s.layout);
	attributes(c, &s, s.taps);
	conclude(c, &s, w, dtype, &(struct sums){ .x = c->array[x].num, .y = c->array[y].num,
						  .max = s.batch * all_of(s.out) });
	return true;
}

// ---- pools ----

// Few distinct values, so that maxima are tied.
static struct yk_num draw_few(struct yk_case *c, int dtype, int64_t index)
{
	(void)dtype, (void)index;
	return (struct yk_num){ .f = (double)yk_draw_int(c, -2, 2) };
}

// Index in x of a window's element for output i of y; -1: outside.
static int64_t place_of(const struct shape *s, int64_t i, int64_t tap)
{
	int64_t at[AXES], of[AXES], x = i / all_of(s->out);
	indices(i, s->out, at);
	indices(tap, s->taps, of);
	for (int d = 0; d < AXES; d++) {
		const int64_t p = at[d] * s->stride[d] + of[d] * s->dilation[d] - s->lo[d];
		if (p < 0 || p >= s->in[d])
			return -1;
		x = x * s->in[d] + p;
	}
	return x;
}

static double largest_of(const struct shape *s, const struct yk_num *x, int64_t i, int64_t *ties)
{
	double max = -INFINITY;
	*ties = 0;
	for (int64_t t = 0; t < all_of(s->taps); t++) {
		const int64_t at = place_of(s, i, t);
		const double v = at < 0 ? -INFINITY : x[at].f;
		*ties = v > max ? 1 : *ties + (v == max);
		max = v > max ? v : max;
	}
	return max;
}

// The place in its plane of the first element of a window that is `max`; -1: the window has none.
static int64_t first_of(const struct shape *s, const struct yk_num *x, int64_t i, double max)
{
	for (int64_t t = 0; t < all_of(s->taps); t++) {
		const int64_t at = place_of(s, i, t);
		if (at >= 0 && x[at].f == max)
			return at % all_of(s->in);
	}
	return -1;
}

// Windows that tile dense operands and are two elements wide: another algorithm.
static void tile(struct shape *s)
{
	s->layout = YK_DENSE;
	s->taps[AXES - 1] = 2;
	for (int i = 0; i < AXES; i++) {
		s->stride[i] = s->taps[i];
		s->dilation[i] = 1;
		s->lo[i] = s->hi[i] = 0;
		s->in[i] = s->out[i] * s->taps[i];
	}
}

static bool make_pool(struct yk_case *c, int dtype, int code)
{
	struct shape s = draw(c);
	if (yk_draw_one_in(c, 3))
		tile(&s);
	const bool back = code == YOKE_OP_POOL_MAX_BACKWARD, places = code == YOKE_OP_POOL_ARGMAX;
	s.groups = 1;
	const int axes = s.axes;
	int64_t dims[2][2 + AXES] = { { s.batch, s.channels }, { s.batch, s.channels } }, ties;
	for (int i = 0; i < axes; i++) {
		dims[0][2 + i] = s.in[AXES - axes + i];
		dims[1][2 + i] = s.out[AXES - axes + i];
	}
	yk_case_op(c, code);
	const uint32_t to =
		yk_case_out(c, places ? yoke_i64 : dtype, 2 + axes, dims[back ? 0 : 1], s.layout);
	const uint32_t x = yk_draw_one_in(c, 2) ?
				   yk_case_in_by(c, dtype, 2 + axes, dims[0], s.layout, draw_few) :
				   yk_case_in(c, dtype, 2 + axes, dims[0], s.layout, -1, 1);
	const uint32_t g = back ? yk_case_in(c, dtype, 2 + axes, dims[1], s.layout, -1, 1) : 0;
	for (int i = 0; i < axes; i++)
		c->op.attr[c->op.nattr++].i = s.taps[AXES - axes + i];
	for (int i = AXES - axes; i < AXES; i++)
		c->op.attr[c->op.nattr++].i =
			(int64_t)((uint64_t)s.stride[i] | (uint64_t)s.dilation[i] << 16 |
				  (uint64_t)s.lo[i] << 32 | (uint64_t)s.hi[i] << 48);
	const int64_t outputs = yk_count_of(2 + axes, dims[1]), n = c->array[to].n,
		      taps = all_of(s.taps);
	const struct yk_num *nx = c->array[x].num;
	if (!back) {
		for (int64_t i = 0; i < outputs; i++) {
			const double max = largest_of(&s, nx, i, &ties);
			if (places)
				yk_expect_int(&c->array[to].want[i], first_of(&s, nx, i, max));
			else
				yk_expect_real(&c->array[to].want[i], dtype, max, 0);
		}
		return true;
	}
	double *sum = yk_case_alloc(c, 2 * (uint64_t)n * sizeof(double)), *size = sum + n;
	for (int64_t i = 0; i < outputs; i++) {
		const double max = largest_of(&s, nx, i, &ties),
			     each = c->array[g].num[i].f / (double)ties;
		for (int64_t t = 0; t < taps; t++) {
			const int64_t at = place_of(&s, i, t);
			if (at < 0 || nx[at].f != max)
				continue;
			sum[at] += each;
			size[at] += fabs(each);
		}
	}
	for (int64_t i = 0; i < n; i++)
		yk_expect_real(&c->array[to].want[i], dtype, sum[i],
			     (double)(taps + 2) * yk_num_unit(yk_num_acc(dtype)) * size[i]);
	return true;
}

bool yk_make_pool_max(struct yk_case *c, int dtype)
{
	return make_pool(c, dtype, YOKE_OP_POOL_MAX);
}

bool yk_make_pool_max_backward(struct yk_case *c, int dtype)
{
	return make_pool(c, dtype, YOKE_OP_POOL_MAX_BACKWARD);
}

bool yk_make_pool_argmax(struct yk_case *c, int dtype)
{
	return make_pool(c, dtype, YOKE_OP_POOL_ARGMAX);
}
