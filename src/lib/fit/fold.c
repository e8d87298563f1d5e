// SPDX-License-Identifier: Apache-2.0
// Folds chains of affine nodes into one matrix product.

#include "config.h"

#include "fit/fold.h"

#include <stdlib.h>

#include "base/error.h"

// Multiplications needed to compute a value from its base node by node.
static int64_t work_of(const struct yk_flows *f, const yoke_pipeline *p, int node)
{
	int64_t work[YK_NODES];
	for (int i = 0; i <= node; i++) {
		const struct yk_fit_node *n = &p->node[i];
		work[i] = 0;
		if (!n->type->affine)
			continue;
		work[i] = n->type->diagonal ? 0 : n->channels * n->channels_in;
		for (int k = 0; k < n->in.count; k++)
			if (n->in.from[k] >= 0 && f->out[n->in.from[k]].base == f->in[i].base)
				work[i] += work[n->in.from[k]];
	}
	return work[node];
}

static yoke_tensor *variable(const char *name, int64_t rows, int64_t cols, const double *x)
{
	const int64_t n = rows ? rows * cols : cols, dims[2] = { rows ? rows : cols, cols };
	float *f = malloc((size_t)n * sizeof *f);
	yoke_tensor *t = f ? yoke_variable(name, yoke_f32, rows ? 2 : 1, dims) : NULL;
	for (int64_t i = 0; i < n && f; i++)
		f[i] = (float)x[i];
	if (!f)
		yk_fail(YOKE_ENOMEM, "pipeline_fit: no memory for %lld x %lld", (long long)rows,
			(long long)cols);
	if (t && yoke_put(t, f, (size_t)n * sizeof *f) < 0) {
		yoke_free(t);
		t = NULL;
	}
	free(f);
	return t;
}

// A (b - mu) + t + A mu; mu as stored in the variable.
static int make(struct yk_fit_fold *fold, const yoke_pipeline *p, const struct yk_flows *f,
		const yoke_statistic *s)
{
	struct yk_affine x;
	int err = yk_flow_value(f, p, fold->node, &x);
	if (err)
		return err;
	for (int64_t i = 0; i < x.rows; i++)
		for (int64_t k = 0; k < x.cols; k++)
			x.t[i] += x.a[i * x.cols + k] * (float)s->mean[k];
	fold->mean = variable("mean", 0, x.cols, s->mean);
	fold->a = variable("a", x.rows, x.cols, x.a);
	fold->t = variable("t", 0, x.rows, x.t);
	free(x.a);
	return fold->mean && fold->a && fold->t ? 0 : yk_error_last();
}

// Marks the nodes that a base is computed from.
static void want_base(const yoke_pipeline *p, int base, bool *wanted)
{
	if (base >= YK_BASE_INPUT)
		yk_node_mark_inputs(&p->node[base - YK_BASE_INPUT].in, wanted);
	else if (base)
		wanted[base - 1] = true;
}

int yk_folds_make(struct yk_folds *to, const yoke_pipeline *p, const struct yk_flows *f,
		  yoke_statistic *const *of, int bases, const int *base)
{
	bool wanted[YK_NODES] = { false }, folded[YK_NODES] = { false };
	int err = 0;
	to->n = 0;
	for (int i = 0; i < bases; i++)
		want_base(p, base[i], wanted);
	for (int i = p->nodes - 1; i >= 0; i--) {
		const struct yk_flow out = f->out[i];
		if (!wanted[i])
			continue;
		folded[i] = p->node[i].type->affine && !out.diagonal && of[out.base] &&
			    p->node[i].channels * yk_flow_channels(p, out.base) <= work_of(f, p, i);
		if (folded[i])
			want_base(p, out.base, wanted);
		else
			yk_node_mark_inputs(&p->node[i].in, wanted);
	}
	for (int i = 0; i < p->nodes && !err; i++) {
		if (!folded[i])
			continue;
		to->fold[to->n] = (struct yk_fit_fold){ .node = i, .base = f->out[i].base };
		err = make(&to->fold[to->n++], p, f, of[f->out[i].base]);
	}
	return err;
}

void yk_folds_free(struct yk_folds *f)
{
	for (int i = 0; i < f->n; i++) {
		yoke_free(f->fold[i].mean);
		yoke_free(f->fold[i].a);
		yoke_free(f->fold[i].t);
	}
	f->n = 0;
}

void yk_folds_put(const struct yk_folds *f, yoke_pipeline *p, struct yk_values *v)
{
	for (int i = 0; i < f->n; i++) {
		const struct yk_fit_fold *one = &f->fold[i];
		v->of[one->node] = yoke_linear(yoke_sub(yk_base_value(p, v, one->base), one->mean),
					       one->a, one->t);
	}
}
