// SPDX-License-Identifier: Apache-2.0
// Divides a network into pipeline stages and records their forward and backward passes.
#include "config.h"

#include "nn/stage.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "nn/model.h"
#include "nn/shard_layers.h"
#include "nn/windows.h"
#include "yoke-observe.h"

// ---- assignment of blocks ----

static int split_given(const char *split, int64_t stages, int64_t layers, int64_t *n)
{
	int64_t count = 0, sum = 0;
	for (const char *at = split;; at++) {
		char *end;
		const long long x = strtoll(at, &end, 10);
		if (end == at || (*end && *end != ',') || x < 1 || x > layers)
			return yk_fail(
				YOKE_EINVAL,
				"split=%s: must list the number of blocks of each stage, at least 1, e.g. 4,4",
				split);
		if (count < stages)
			n[count] = x;
		count++;
		sum += x;
		at = end;
		if (!*at)
			break;
	}
	if (count != stages)
		return yk_fail(YOKE_EINVAL, "split=%s has %lld numbers, but there are stages=%lld",
			       split, (long long)count, (long long)stages);
	if (sum != layers)
		return yk_fail(YOKE_EINVAL,
			       "split=%s comes to %lld blocks, but there are layers=%lld", split,
			       (long long)sum, (long long)layers);
	return 0;
}

// Fills stages, from the last one on, with at most `max` work each; false: that is impossible.
static bool fill(const struct yk_model *m, const struct yk_model_shape *s, int64_t stages,
		 double max, int64_t *n)
{
	int64_t left = s->layers;
	for (int64_t k = stages - 1; k >= 0; k--) {
		double work = k == stages - 1 ? m->work(s, s->layers) : 0;
		for (n[k] = 0; left > k; n[k]++, left--) {
			work += m->work(s, left - 1);
			if (work > max)
				break;
		}
		if (!n[k])
			return false;
	}
	return left == 0;
}

static void split_evenly(const struct yk_model *m, const struct yk_model_shape *s, int64_t stages,
			 int64_t *n)
{
	double min = 0, max = m->work(s, s->layers);
	for (int64_t i = 0; i < s->layers; i++)
		max += m->work(s, i);
	for (int i = 0; i < 60; i++) {
		const double half = (min + max) / 2;
		if (fill(m, s, stages, half, n))
			max = half;
		else
			min = half;
	}
	fill(m, s, stages, max, n);
}

int yk_stage_split(const struct yk_model *m, const struct yk_model_shape *s, const char *split,
		   int64_t stages, int64_t at, int64_t *from, int64_t *to)
{
	const bool evenly = !strcmp(split, "auto");
	int e = 0;
	if (stages > 1 && !m->width)
		return yk_fail(YOKE_EINVAL, "stages=%lld: model=%s does not support pipeline "
			"parallelism; give stages=1",
			       (long long)stages, m->name);
	if (stages > 1 && stages > s->layers)
		return yk_fail(YOKE_EINVAL,
			       "stages=%lld are more than layers=%lld: each stage has one at least",
			       (long long)stages, (long long)s->layers);
	int64_t *n = calloc((size_t)stages, sizeof *n);
	if (!n)
		return yk_fail(YOKE_ENOMEM, "stages: no memory");
	if (!evenly)
		e = split_given(split, stages, s->layers, n);
	else if (stages > 1)
		split_evenly(m, s, stages, n);
	else
		n[0] = s->layers;
	*from = 0;
	for (int64_t k = 0; k < at; k++)
		*from += n[k];
	*to = *from + n[at];
	free(n);
	return e;
}

struct yk_model_shape yk_stage_shape(const struct yk_model_shape *s, const struct yk_stage *stage)
{
	struct yk_model_shape to = *s;
	to.layers = stage->of > 1 ? stage->to - stage->from : s->layers;
	to.vocab = stage->at < stage->of - 1 ? 0 : s->vocab;
	return to;
}

// ---- passes ----

static bool is_last(const struct yk_network *n)
{
	return n->stage.at == n->stage.of - 1;
}

static yoke_tensor *compute(const struct yk_network *n, yoke_tensor *windows, yoke_tensor *in,
			    double dropout)
{
	const int64_t width = yoke_dim(windows, 1);
	if (n->stage.of == 1)
		return yk_windows_loss(n, windows, dropout);
	yoke_range_push("forward");
	yoke_tensor *x =
		yk_network_forward(n, in ? in : yoke_slice(windows, 1, 0, width - 1, 1), dropout);
	if (is_last(n))
		x = n->model->logits(n, x);
	yoke_range_pop();
	if (!is_last(n))
		return yoke_cast(x, yoke_f32);
	yoke_range_push("loss");
	yoke_tensor *loss = yk_shard_cross_entropy(n, x, yoke_slice(windows, 1, 1, width, 1));
	yoke_range_pop();
	return loss;
}

// The dims of the activations received for windows.
static void dims_in(const struct yk_network *n, const yoke_tensor *windows, int64_t *dims)
{
	dims[0] = yoke_dim(windows, 0);
	dims[1] = yoke_dim(windows, 1) - 1;
	dims[2] = n->model->width(n, n->stage.from);
}

int yk_stage_forward(const struct yk_network *n, yoke_tensor *windows, double dropout,
		     struct yk_passage *to)
{
	const struct yk_stage *s = &n->stage;
	int64_t dims[3];
	*to = (struct yk_passage){ 0 };
	if (s->at) {
		dims_in(n, windows, dims);
		to->in = yoke_recv(s->group, (int)s->at - 1, yoke_f32, 3, dims, YOKE_NONE);
	}
	to->out = compute(n, windows, to->in, dropout);
	if (!is_last(n))
		yoke_send(s->group, (int)s->at + 1, to->out);
	return to->out ? yoke_error_code() : yk_error_last();
}

yoke_tensor *yk_stage_alone(const struct yk_network *n, yoke_tensor *windows, double dropout)
{
	int64_t dims[3];
	if (!n->stage.at)
		return compute(n, windows, NULL, dropout);
	dims_in(n, windows, dims);
	return compute(n, windows, yoke_full(yoke_f32, 3, dims, 0), dropout);
}

int yk_stage_backward(const struct yk_network *n, const struct yk_passage *x, yoke_tensor *by,
		      int count, yoke_tensor *const *p, yoke_tensor **g)
{
	const struct yk_stage *s = &n->stage;
	int64_t dims[YOKE_MAX_RANK];
	const bool sends = s->at > 0;
	yoke_tensor **list = malloc(2 * ((size_t)count + 1) * sizeof *list),
		    **got = list + count + 1;
	if (!list)
		return yk_fail(YOKE_ENOMEM, "stages: no memory");
	memcpy(list, p, (size_t)count * sizeof *list);
	list[count] = x->in;
	yoke_range_push("backward");
	int e;
	if (is_last(n)) {
		e = yoke_grad(by, count + sends, list, got);
	} else {
		const int rank = yoke_rank(x->out);
		for (int i = 0; i < rank; i++)
			dims[i] = yoke_dim(x->out, i);
		yoke_tensor *cotangent =
			yoke_recv(s->group, (int)s->at + 1, yoke_f32, rank, dims, YOKE_NONE);
		e = yoke_grad_from(1, &x->out, &cotangent, count + sends, list, got);
	}
	if (e == 0 && sends)
		yoke_send(s->group, (int)s->at - 1, got[count]);
	if (e == 0)
		memcpy(g, got, (size_t)count * sizeof *g);
	yoke_range_pop();
	free(list);
	return e ? e : yoke_error_code();
}
