// SPDX-License-Identifier: Apache-2.0
// yoke_op_check: compares the results of an application's op between all its implementations, and
// its gradient with finite differences.
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "graph/context.h"
#include "ops/custom.h"

static const char *const ways[] = { [YK_CUSTOM_TEXT] = "text",
				    [YK_CUSTOM_CPU] = "CPU function",
				    [YK_CUSTOM_PARTS] = "decomposition" };

enum {
	DIRECTIONS = 3, // random directions that move all elements
	STEPS = 3,      // step sizes, each a quarter of the one before
	RANGES = 128    // ranges of elements moved separately if a direction meets a kink
};

struct check {
	struct yk_custom *own;
	const union yoke_attr *attr;
	int nin, nout;
	struct value {
		int dtype, rank;
		int64_t dims[YOKE_MAX_RANK], n;
		void *bytes; // NULL: the operand is absent
	} in[YOKE_OP_MAX_IN];
	double tolerance;
};

// A result as f64; integers beyond 2^53 are compared after rounding.
struct result {
	int dtype, rank;
	int64_t dims[YOKE_MAX_RANK], n;
	double *x;
};

// ---- values ----

static int no_memory(const struct check *c)
{
	return yk_fail(YOKE_ENOMEM, "op_check: no memory for %s", c->own->def.name);
}

static int failed(void)
{
	return yoke_error_code() ? yoke_error_code() : YOKE_EINVAL;
}

static int take_operand(struct check *c, int i, yoke_tensor *t)
{
	struct value *v = &c->in[i];
	if (t == YOKE_NONE)
		return 0;
	v->dtype = yoke_dtype(t);
	v->rank = yoke_rank(t);
	v->n = yoke_count(t);
	if (v->dtype <= 0) // a scalar
		return yk_fail(YOKE_EINVAL, "op_check: operand %d must be a tensor", i);
	for (int k = 0; k < v->rank; k++)
		v->dims[k] = yoke_dim(t, k);
	if (!(v->bytes = malloc(yoke_bytes(t) + 1)))
		return no_memory(c);
	return yoke_read(t, v->bytes, yoke_bytes(t));
}

static bool is_real(int dtype)
{
	return dtype == yoke_f32 || dtype == yoke_f64;
}

static void operands(const struct check *c, yoke_tensor **to)
{
	for (int i = 0; i < c->nin; i++)
		to[i] = c->in[i].bytes ? yoke_from(c->in[i].dtype, c->in[i].rank, c->in[i].dims,
						   c->in[i].bytes) :
					 YOKE_NONE;
}

// Reads a result as f64.
static int read_result(const struct check *c, yoke_tensor *t, int dtype, struct result *r)
{
	r->dtype = dtype;
	r->rank = yoke_rank(t);
	r->n = yoke_count(t);
	for (int k = 0; k < r->rank; k++)
		r->dims[k] = yoke_dim(t, k);
	if (!(r->x = malloc((size_t)r->n * sizeof *r->x + 1)))
		return no_memory(c);
	return yoke_read(t, r->x, (size_t)r->n * sizeof *r->x);
}

static void results_free(struct result *r)
{
	for (int i = 0; i < YOKE_OP_MAX_OUT; i++)
		free(r[i].x);
	memset(r, 0, YOKE_OP_MAX_OUT * sizeof *r);
}

// Computes the op with one implementation, in the current context; 1, 0: it has none of this kind,
// or an error.
static int compute(const struct check *c, int way, struct result *r)
{
	yoke_tensor *x[YOKE_OP_MAX_IN], *y[YOKE_OP_MAX_OUT] = { NULL };
	int dtype[YOKE_OP_MAX_OUT];
	yoke_scope *s = yoke_scope_begin("op_check");
	operands(c, x);
	int err = yk_custom_call(c->own, way, x, c->attr, y);
	const bool none = err == YOKE_EUNSUPPORTED && !yoke_error_code();
	for (int i = 0; i < c->nout && !err; i++) {
		dtype[i] = yoke_dtype(y[i]);
		y[i] = yoke_cast(y[i], yoke_f64);
	}
	if (!err)
		err = yoke_eval(c->nout, y); // all in one evaluation
	for (int i = 0; i < c->nout && !err; i++)
		err = read_result(c, y[i], dtype[i], &r[i]);
	const int ended = yoke_scope_end(s);
	return none ? 0 : err ? err : ended ? ended : 1;
}

// ---- comparing implementations ----

static double unit(int dtype)
{
	switch (dtype) {
	case yoke_f64: return 1e-12;
	case yoke_f32: return 1e-5;
	case yoke_f16: return 4e-3;
	case yoke_bf16: return 3e-2;
	}
	return 0;
}

static char *place(const struct result *r, int64_t at, char to[200])
{
	int64_t index[YOKE_MAX_RANK];
	int n = 0;
	for (int k = r->rank; k-- > 0; at /= r->dims[k])
		index[k] = at % r->dims[k];
	n += snprintf(to, 200, "[");
	for (int k = 0; k < r->rank; k++)
		n += snprintf(to + n, (size_t)(200 - n), "%s%lld", k ? "," : "",
			      (long long)index[k]);
	snprintf(to + n, (size_t)(200 - n), "]");
	return to;
}

static int compare(const struct check *c, int way, const struct result *a, int with,
		   const struct result *b)
{
	char at[200];
	for (int i = 0; i < c->nout; i++) {
		double max = 0;
		const double tolerance = c->tolerance > 0 ? c->tolerance : unit(b[i].dtype);
		for (int64_t k = 0; k < b[i].n; k++)
			max = isfinite(b[i].x[k]) ? fmax(max, fabs(b[i].x[k])) : max;
		for (int64_t k = 0; k < b[i].n; k++) {
			const double x = a[i].x[k], y = b[i].x[k];
			if (!(fabs(x - y) <= tolerance * max) && x != y && !(isnan(x) && isnan(y)))
				return yk_fail(
					YOKE_EINVAL,
					"op_check: %s: its %s gives %.9g at %s of result %d, its %s %.9g",
					c->own->def.name, ways[way], x, place(&b[i], k, at), i,
					ways[with], y);
		}
	}
	return 0;
}

static int compare_ways(const struct check *c)
{
	static const int order[] = { YK_CUSTOM_PARTS, YK_CUSTOM_CPU, YK_CUSTOM_TEXT };
	struct result first[YOKE_OP_MAX_OUT] = { 0 }, r[YOKE_OP_MAX_OUT] = { 0 };
	int with = 0, err = 0;
	for (int k = 0; k < 3 && !err; k++) {
		const int way = order[k];
		if ((way == YK_CUSTOM_PARTS && !c->own->def.decompose) ||
		    (way == YK_CUSTOM_CPU && !c->own->def.cpu) ||
		    (way == YK_CUSTOM_TEXT && !c->own->def.text))
			continue;
		yoke_context *ctx = way == YK_CUSTOM_CPU ? yoke_context_new("cpu") : NULL;
		yoke_context *was = ctx ? yoke_use(ctx) : NULL;
		const int there =
			way == YK_CUSTOM_CPU && !ctx ? failed() : compute(c, way, with ? r : first);
		if (there > 0 && with)
			err = compare(c, way, r, with, first);
		else if (there > 0)
			with = way;
		err = there < 0 ? there : err;
		results_free(r);
		if (ctx) {
			yoke_use(was);
			yoke_context_free(ctx);
		}
	}
	results_free(first);
	return err;
}

// ---- comparing the gradient with differences ----

// A pseudo-random number in -1 .. 1 from two integers (splitmix64, Steele et al. 2014).
static double number(uint64_t a, uint64_t b)
{
	uint64_t z = a * 0x9e3779b97f4a7c15u + b * 0xd1b54a32d192ed03u + 1;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (double)((z ^ z >> 31) >> 11) * 0x1p-52 - 1;
}

static double element(const struct value *v, int64_t i)
{
	return v->dtype == yoke_f32 ? (double)((const float *)v->bytes)[i] :
				      ((const double *)v->bytes)[i];
}

// Elements from .. to - 1 of an operand, moved along a direction.
struct move {
	int operand, direction;
	int64_t from, to;
};

// All real elements of the results, each multiplied by its own weight.
struct weighed {
	int64_t n;
	double *x, *noise; // noise: bound of rounding errors
};

static void weighed_free(struct weighed *w)
{
	free(w->x);
	*w = (struct weighed){ 0 };
}

static int weigh(const struct check *c, const struct result *r, struct weighed *to)
{
	int64_t n = 0, at = 0;
	for (int k = 0; k < c->nout; k++)
		n += is_real(r[k].dtype) ? r[k].n : 0;
	double *x = malloc((size_t)n * 2 * sizeof *x + 1);
	if (!x)
		return no_memory(c);
	*to = (struct weighed){ n, x, x + n };
	for (int k = 0; k < c->nout; k++)
		for (int64_t i = 0; is_real(r[k].dtype) && i < r[k].n; i++, at++) {
			to->x[at] = r[k].x[i] * (float)number((uint64_t)i, 1000 + (uint64_t)k);
			to->noise[at] =
				fabs(to->x[at]) * (r[k].dtype == yoke_f32 ? 0x1p-22 : 0x1p-50);
		}
	return 0;
}

// Computes the results with one operand moved by h.
static int moved(struct check *c, const struct move *m, double h, struct weighed *to)
{
	struct value *v = &c->in[m->operand], was = *v;
	struct result r[YOKE_OP_MAX_OUT] = { 0 };
	const size_t size = yoke_dtype_size(v->dtype);
	if (!(v->bytes = malloc((size_t)v->n * size + 1))) {
		*v = was;
		return no_memory(c);
	}
	memcpy(v->bytes, was.bytes, (size_t)v->n * size);
	for (int64_t i = m->from; i < m->to; i++) {
		const double x = element(&was, i) + h * number((uint64_t)i, (uint64_t)m->direction);
		if (v->dtype == yoke_f32)
			((float *)v->bytes)[i] = (float)x;
		else
			((double *)v->bytes)[i] = x;
	}
	const int there = compute(c, YK_CUSTOM_ANY, r),
		  err = there > 0 ? weigh(c, r, to) : there < 0 ? there : failed();
	results_free(r);
	free(v->bytes);
	*v = was;
	return err;
}

// The derivative of the weighted sum of results along a direction, from differences.
struct slope {
	double all;       // the sum of `central`
	int64_t n;
	double *central;  // by element: Richardson extrapolation of central differences
	double jump;      // sum of |right - left|, the extrapolated one-sided derivatives, minus
			  // noise
};

static int difference(struct check *c, const struct move *m, double h, const struct weighed *here,
		      struct slope *to)
{
	static const double step[] = { 1, -1, 2, -2 };
	struct weighed at[4] = { { 0 } };
	int err = 0;
	*to = (struct slope){ .n = here->n,
			      .central = malloc((size_t)here->n * sizeof *to->central + 1) };
	if (!to->central)
		err = no_memory(c);
	for (int k = 0; k < 4 && !err; k++)
		err = moved(c, m, h * step[k], &at[k]);
	for (int64_t i = 0; i < here->n && !err; i++) {
		const double right = (4 * at[0].x[i] - at[2].x[i] - 3 * here->x[i]) / (2 * h);
		const double left = (3 * here->x[i] - 4 * at[1].x[i] + at[3].x[i]) / (2 * h);
		to->central[i] =
			(8 * (at[0].x[i] - at[1].x[i]) - (at[2].x[i] - at[3].x[i])) / (12 * h);
		to->all += to->central[i];
		to->jump += fmax(0, fabs(right - left) - 8 * here->noise[i] / h);
		if (isnan(right - left))
			to->jump = NAN;
	}
	for (int k = 0; k < 4; k++)
		weighed_free(&at[k]);
	return err;
}

// Gradients of that sum with respect to the real operands, as f64; NULL for the others.
static int gradients(const struct check *c, double **to)
{
	yoke_tensor *x[YOKE_OP_MAX_IN], *y[YOKE_OP_MAX_OUT] = { NULL }, *p[YOKE_OP_MAX_IN],
					*g[YOKE_OP_MAX_IN], *sum = NULL;
	int which[YOKE_OP_MAX_IN], n = 0;
	yoke_scope *s = yoke_scope_begin("op_check");
	operands(c, x);
	int err = yk_custom_call(c->own, YK_CUSTOM_ANY, x, c->attr, y);
	for (int k = 0; k < c->nout && !err; k++) {
		const int64_t many = yoke_count(y[k]);
		if (!is_real(yoke_dtype(y[k])))
			continue;
		float *w = malloc((size_t)many * sizeof *w + 1);
		for (int64_t i = 0; w && i < many; i++)
			w[i] = (float)number((uint64_t)i, 1000 + (uint64_t)k);
		yoke_tensor *flat = yoke_reshape(yoke_cast(y[k], yoke_f64), 1, &many);
		yoke_tensor *part =
			w ? yoke_sum(yoke_mul(flat, yoke_cast(yoke_from(yoke_f32, 1, &many, w),
							      yoke_f64)),
				     YOKE_ALL) :
			    NULL;
		sum = sum ? yoke_add(sum, part) : part;
		err = !w ? no_memory(c) : part ? 0 : failed();
		free(w);
	}
	for (int i = 0; i < c->nin; i++)
		if (c->in[i].bytes && is_real(c->in[i].dtype))
			which[n++] = i;
	for (int i = 0; i < n; i++)
		p[i] = x[which[i]];
	if (!err && sum && n)
		err = yoke_grad(sum, n, p, g);
	for (int i = 0; i < n && !err && sum; i++)
		g[i] = yoke_cast(g[i], yoke_f64);
	if (!err && sum && n)
		err = yoke_eval(n, g);
	for (int i = 0; i < n && !err && sum; i++) {
		const size_t many = (size_t)c->in[which[i]].n;
		if (!(to[which[i]] = malloc(many * sizeof **to + 1)))
			err = no_memory(c);
		else
			err = yoke_read(g[i], to[which[i]], many * sizeof **to);
	}
	const int ended = yoke_scope_end(s);
	return err ? err : ended;
}

enum verdict { AGREES, DIFFERS, UNKNOWN };

// The distance between the differences of two step sizes, summed over elements, minus noise.
static double apart(const struct slope *a, const struct slope *b, const struct weighed *here,
		    double h)
{
	double sum = 0;
	for (int64_t i = 0; i < here->n; i++) {
		const double off = fabs(a->central[i] - b->central[i]);
		sum += isnan(off) ? INFINITY : fmax(0, off - 2 * here->noise[i] / h);
	}
	return sum;
}

// Compares the gradient's product with a direction to the differences.  Reports an error only if
// all step sizes and both sides agree for every element of the results: at a kink the sides
// disagree, near one the step sizes do.
static int judge(struct check *c, const struct move *m, const double *g, const struct weighed *here,
		 double *got, double *want, enum verdict *to)
{
	const struct value *v = &c->in[m->operand];
	const double tolerance = c->tolerance > 0     ? c->tolerance :
				 v->dtype == yoke_f32 ? 2e-3 :
							1e-7;
	struct slope d[STEPS] = { { 0 } };
	double h = v->dtype == yoke_f32 ? 0x1p-5 : 0x1p-10, size = 0, max = 0;
	int err = 0, s;
	*got = 0;
	for (int64_t k = m->from; k < m->to; k++) {
		const double part = g[k] * number((uint64_t)k, (uint64_t)m->direction);
		*got += part;
		size += part * part;
	}
	*to = UNKNOWN;
	for (s = 0; s < STEPS && !err && *to != AGREES; s++) {
		err = difference(c, m, ldexp(h, -2 * s), here, &d[s]);
		max = fmax(max, fabs(d[s].all));
		if (!err && fabs(*got - d[s].all) <=
				    tolerance * fmax(1e-3, fmax(fabs(d[s].all), sqrt(size))))
			*to = AGREES;
	}
	if (!err && *to != AGREES) {
	// `off` is the error of the gradient; the differences must agree to a fraction of it
	const double off = isfinite(*got) ? fmin(fabs(*got - d[0].all), fabs(*got - d[1].all)) :
					    fmax(1e-3, max);
	h = ldexp(h, -2 * (STEPS - 1));
	*want = d[1].all;
	if (isfinite(max) && d[STEPS - 1].jump <= 0.5 * off &&
	    apart(&d[0], &d[1], here, h) <= 0.1 * off && apart(&d[2], &d[1], here, h) <= 0.1 * off)
		*to = DIFFERS;
	}
	for (s = 0; s < STEPS; s++)
		free(d[s].central);
	return err;
}

// Compares along random directions of all elements and, if these are inconclusive, on ever smaller
// ranges: ranges that remain inconclusive contain the elements at kinks.
static int compare_gradient(struct check *c, int i, const double *g)
{
	struct move queue[RANGES + DIRECTIONS];
	struct weighed here = { 0 };
	double got = 0, want = 0;
	int known = 0, n = 0, split = -1; // split: the first inconclusive direction
	for (int d = 0; d < DIRECTIONS; d++)
		queue[n++] = (struct move){ i, d, 0, c->in[i].n };
	int err = moved(c, &queue[0], 0, &here);
	for (int k = 0; k < n && !err; k++) {
		const struct move m = queue[k];
		enum verdict v;
		err = judge(c, &m, g, &here, &got, &want, &v);
		if (err)
			break;
		known += v == AGREES;
		if (v == DIFFERS)
			err = yk_fail(
				YOKE_EINVAL,
				"op_check: %s: its gradient by operand %d gives %.9g along a random "
				"direction of elements %lld to %lld, differences of its results %.9g",
				c->own->def.name, i, got, (long long)m.from, (long long)m.to - 1,
				want);
		const int64_t half = m.from + (m.to - m.from) / 2;
		split = v == UNKNOWN && split < 0 ? m.direction : split;
		if (v == UNKNOWN && m.direction == split && half > m.from &&
		    n + 2 <= (int)(sizeof queue / sizeof *queue)) {
			queue[n++] = (struct move){ i, split, m.from, half };
			queue[n++] = (struct move){ i, split, half, m.to };
		}
	}
	weighed_free(&here);
	if (!err && !known && c->in[i].n)
		yk_warn("op",
			"op_check: %s: its gradient by operand %d could not be compared: differences of its results do not "
			"converge here; take operands that are not at kinks",
			c->own->def.name, i);
	return err;
}

static int compare_gradients(struct check *c)
{
	double *g[YOKE_OP_MAX_IN] = { NULL };
	int err = 0;
	for (int i = 0; i < c->nin; i++) // differences of f16 and bf16 are too coarse
		if (c->in[i].dtype == yoke_f16 || c->in[i].dtype == yoke_bf16)
			return 0;
	if (!c->own->def.gradient)
		return 0;
	err = gradients(c, g);
	for (int i = 0; i < c->nin; i++) {
		if (g[i] && !err)
			err = compare_gradient(c, i, g[i]);
		free(g[i]);
	}
	return err;
}

int yoke_op_check(int op, int nin, yoke_tensor *const *in, int nattr, const union yoke_attr *attr,
		  double tolerance)
{
	struct check c = {
		.own = yk_custom_of(op), .attr = attr, .nin = nin, .tolerance = tolerance
	};
	if (!c.own)
		return yk_fail(YOKE_EINVAL, "op_check: no op has the number %d", op);
	if (nin != c.own->def.nin || nattr != c.own->def.nattr || (nin && !in) || (nattr && !attr))
		return yk_fail(YOKE_EINVAL,
			       "op_check: %s takes %d operands and %d attributes, got %d and %d",
			       c.own->def.name, c.own->def.nin, c.own->def.nattr, nin, nattr);
	c.nout = c.own->def.nout;
	int err = 0;
	for (int i = 0; i < nin && !err; i++)
		if (!(err = yk_require(in[i], "operand")))
			err = take_operand(&c, i, in[i]);
	if (!err)
		err = compare_ways(&c);
	if (!err)
		err = compare_gradients(&c);
	for (int i = 0; i < nin; i++)
		free(c.in[i].bytes);
	return err;
}
