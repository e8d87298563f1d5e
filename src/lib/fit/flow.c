// SPDX-License-Identifier: Apache-2.0
// Tracks how values pass through affine nodes, so that statistics are collected only where needed
// (flow.h).

#include "config.h"

#include "fit/flow.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

int64_t yk_flow_channels(const yoke_pipeline *p, int base)
{
	return base == 0            ? p->channels :
	       base < YK_BASE_INPUT ? p->node[base - 1].channels :
				      p->node[base - YK_BASE_INPUT].channels_in;
}

// ---- requested statistics ----

static struct yk_flow flow_of(const struct yk_flows *f, int from)
{
	return from < 0 ? (struct yk_flow){ 0, true } : f->out[from];
}

void yk_flow_plan(struct yk_flows *f, const yoke_pipeline *p)
{
	for (int i = 0; i < p->nodes; i++) {
		const struct yk_fit_node *n = &p->node[i];
		const int wants = n->type->wants;
		struct yk_flow in = flow_of(f, n->in.from[0]);
		for (int k = 1; k < n->in.count; k++) { // side by side they form one matrix
			const struct yk_flow more = flow_of(f, n->in.from[k]);
			in.diagonal &= more.diagonal;
			if (more.base != in.base)
				in.base = YK_BASE_INPUT + i;
		}
		if (in.base == YK_BASE_INPUT + i)
			in.diagonal = true;
		const bool own = p->each || (wants & YOKE_WANTS_EXTREMES && !in.diagonal);
		f->in[i] = in;
		f->base[i] = own && n->in.count == 1 && n->in.from[0] < 0 ? 0 :
			     own ? YK_BASE_INPUT + i :
			     in.base;
		if (wants) {
			int *to = &f->wants[f->base[i]];
			*to |= wants;
			if (f->base[i] == in.base && !in.diagonal && wants & YOKE_WANTS_VARIANCE)
				*to |= YOKE_WANTS_COVARIANCE;
		}
		f->out[i] = n->type->affine ?
				    (struct yk_flow){ in.base, in.diagonal && n->type->diagonal } :
				    (struct yk_flow){ 1 + i, true };
	}
}

bool yk_flow_computable(const yoke_pipeline *p, int base)
{
	bool before[YK_NODES] = { false };
	int last = base == 0 ? -1 : base < YK_BASE_INPUT ? base - 1 : base - YK_BASE_INPUT;
	if (base >= 1 && base < YK_BASE_INPUT)
		before[last] = true;
	if (base >= YK_BASE_INPUT)
		yk_node_mark_inputs(&p->node[last].in, before);
	for (int i = last; i >= 0; i--) {
		if (!before[i])
			continue;
		if (!p->node[i].fitted)
			return false;
		yk_node_mark_inputs(&p->node[i].in, before);
	}
	return true;
}

// ---- matrices ----

static int affine_new(struct yk_affine *to, int64_t rows, int64_t cols)
{
	to->rows = rows;
	to->cols = cols;
	to->a = calloc((size_t)(rows * cols + rows), sizeof *to->a);
	to->t = to->a + rows * cols;
	return to->a ? 0 :
		       yk_fail(YOKE_ENOMEM, "pipeline_fit: no memory for %lld x %lld",
			       (long long)rows, (long long)cols);
}

// to = the affine map of x followed by the node's (a, t).
static int compose(const struct yk_fit_node *n, const struct yk_affine *x, struct yk_affine *to)
{
	struct yk_affine own;
	int err = affine_new(&own, n->channels, n->channels_in);
	if (!err && (err = affine_new(to, n->channels, x->cols)) < 0)
		free(own.a);
	if (err)
		return err;
	n->type->affine(n->key, n->channels_in, (const double *const *)n->state, own.a, own.t);
	for (int64_t i = 0; i < own.rows; i++) {
		to->t[i] = own.t[i];
		for (int64_t k = 0; k < own.cols; k++) {
			const double c = own.a[i * own.cols + k];
			if (c == 0)
				continue;
			to->t[i] += c * x->t[k];
			for (int64_t j = 0; j < x->cols; j++)
				to->a[i * to->cols + j] += c * x->a[k * x->cols + j];
		}
	}
	free(own.a);
	return 0;
}

// Composes all nodes up to this one whose values are affine in `base`; several inputs are
// concatenated.
static int affine_in(const struct yk_flows *f, const yoke_pipeline *p, int node, int base,
		     struct yk_affine *to)
{
	const int64_t cols = yk_flow_channels(p, base);
	struct yk_affine out[YK_NODES] = { { 0 } };
	int err = 0;
	for (int i = 0; i <= node && !err; i++) {
		const struct yk_fit_node *n = &p->node[i];
		struct yk_affine in;
		int64_t row = 0;
		if (i < node && (!n->type->affine || f->in[i].base != base))
			continue;
		if ((err = affine_new(&in, n->channels_in, cols)) < 0)
			break;
		for (int k = 0; k < n->in.count; k++) {
			const int from = n->in.from[k];
			const int64_t rows = from < 0 ? p->channels : p->node[from].channels;
			if (from >= 0 && out[from].a) {
				memcpy(in.a + row * cols, out[from].a,
				       (size_t)(rows * cols) * sizeof *in.a);
				memcpy(in.t + row, out[from].t, (size_t)rows * sizeof *in.t);
			} else { // it is the base
				for (int64_t r = 0; r < rows; r++)
					in.a[(row + r) * cols + r +
					     (base >= YK_BASE_INPUT ? row : 0)] = 1;
			}
			row += rows;
		}
		if (i == node) {
			*to = in;
			break;
		}
		err = compose(n, &in, &out[i]);
		free(in.a);
	}
	for (int i = 0; i < node; i++)
		free(out[i].a);
	return err;
}

int yk_flow_affine(const struct yk_flows *f, const yoke_pipeline *p, int node, struct yk_affine *to)
{
	return affine_in(f, p, node, f->base[node], to);
}

int yk_flow_value(const struct yk_flows *f, const yoke_pipeline *p, int node, struct yk_affine *to)
{
	struct yk_affine in;
	int err = affine_in(f, p, node, f->in[node].base, &in);
	if (err)
		return err;
	err = compose(&p->node[node], &in, to);
	free(in.a);
	return err;
}

yoke_tensor *yk_base_value(yoke_pipeline *p, struct yk_values *v, int base)
{
	return base == 0            ? v->stream :
	       base < YK_BASE_INPUT ? yk_node_value(p, v, base - 1) :
				      yk_node_input(p, v, base - YK_BASE_INPUT);
}

void yk_flow_derive(const yoke_statistic *s, const struct yk_affine *f, double *mean,
		    double *variance, double *covariance, double *min, double *max)
{
	const int64_t n = f->rows, c = f->cols;
	const double under = s->count > 1 ? s->count - 1 : 1;
	double *line = covariance + n * n; // [c]
	for (int64_t i = 0; i < n; i++) {
		const double *a = f->a + i * c;
		mean[i] = min[i] = max[i] = f->t[i];
		variance[i] = 0;
		for (int64_t k = 0; k < c; k++) {
			mean[i] += a[k] * s->mean[k];
			if (a[k] == 0)
				continue;
			min[i] += a[k] * (a[k] > 0 ? s->min[k] : s->max[k]);
			max[i] += a[k] * (a[k] > 0 ? s->max[k] : s->min[k]);
			if (s->diagonal)
				variance[i] += a[k] * a[k] * s->square[k] / under;
		}
		if (s->diagonal)
			continue;
		for (int64_t k = 0; k < c; k++)
			line[k] = 0;
		for (int64_t q = 0; q < c; q++)
			for (int64_t k = 0; a[q] != 0 && k < c; k++)
				line[k] += a[q] * s->square[q * c + k];
		for (int64_t j = 0; j <= i; j++) {
			double sum = 0;
			for (int64_t k = 0; k < c; k++)
				sum += line[k] * f->a[j * c + k];
			covariance[i * n + j] = covariance[j * n + i] = sum / under;
		}
		variance[i] = covariance[i * n + i];
	}
}
