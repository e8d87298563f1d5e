// SPDX-License-Identifier: Apache-2.0
// Cross entropy of logits [N,V] with ids [N], averaged over the ids that are not ignored, and its
// gradient, in f32, without an N x V temporary. Ids are checked before they are used as indices.
#include "config.h"

#include <math.h>
#include <stdatomic.h>

#include "operand.h"
#include "softrow.h"

struct job {
	struct rows logits, dlogits;
	const void *ids;
	bool wide; // ids are i64
	int64_t ignore, classes;
	double smooth; // target: (1 - smooth) one-hot + smooth / V
	float *lse;
	double *loss; // one per work item
	double scale; // gradient: g / count
	int64_t each; // rows per work item
	bool stream;  // write dlogits with non-temporal stores
	atomic_bool no_memory;
};

// The thread's scratch line. NULL: out of memory, which is recorded.
static float *line_of(struct job *j)
{
	float *line = row_lines(j->logits.load || j->dlogits.store, 1, j->classes);
	if (!line)
		j->no_memory = true;
	return line;
}

static int64_t id_at(const struct job *j, int64_t row)
{
	return j->wide ? ((const int64_t *)j->ids)[row] : ((const int32_t *)j->ids)[row];
}

// Counts the ids that are not ignored. ERANGE if one is outside 0..V-1.
static int count_ids(const struct job *j, int64_t *count)
{
	*count = 0;
	for (int64_t r = 0; r < j->logits.count; r++) {
		int64_t id = id_at(j, r);
		if (id == j->ignore)
			continue;
		if (id < 0 || id >= j->classes)
			return yk_cpu_fail(
				YOKE_ERANGE,
				"cross_entropy: ids[%lld] = %lld is outside 0..%lld",
				(long long)r, (long long)id, (long long)j->classes - 1);
		++*count;
	}
	return 0;
}

static int64_t end_of(const struct job *j, int64_t item)
{
	int64_t end = (item + 1) * j->each;
	return end < j->logits.count ? end : j->logits.count;
}

// -sum_v target_v (x_v - lse), in terms relative to the row's maximum m
static double row_loss(const struct job *j, const float *x, int64_t id, double m,
		       double logsum)
{
	double loss = logsum - (1 - j->smooth) * (x[id] - m);
	if (j->smooth > 0) {
		double sum = 0;
		for (int64_t i = 0; i < j->classes; i++)
			sum += x[i] - m;
		loss -= j->smooth * sum / (double)j->classes;
	}
	return loss;
}

enum {
	CHUNK = 2048
}; // floats that stay in L1 between the maximum and the exponentials

// The maximum of a row, and log sum exp(x - maximum).
static float row_logsum(const float *x, int64_t n, const float *next, double *logsum)
{
	float m = -INFINITY;
	double sum = 0;
	for (int64_t i = 0; i < n; i += CHUNK) {
		const int64_t k = n - i < CHUNK ? n - i : CHUNK;
		const float max = row_max(x + i, k);
		if (max > m) {
			sum *= exp((double)m - max);
			m = max;
		}
		sum += row_exp(NULL, x + i, k, m > -INFINITY ? m : 0,
			       i + k < n ? x + i + k : next);
	}
	*logsum = m > -INFINITY ? log(sum) : NAN;
	return m;
}

static void forward(void *arg, int64_t item)
{
	struct job *j = arg;
	const int64_t end = end_of(j, item);
	float *line = line_of(j);
	double loss = 0;
	for (int64_t r = item * j->each; line && r < end; r++) {
		const float *x = row_get(&j->logits, r, line);
		const float *next = row_next(&j->logits, r + 1 < end ? r + 1 : r, x);
		double logsum;
		float m = row_logsum(x, j->classes, next, &logsum);
		int64_t id = id_at(j, r);
		j->lse[r] = (float)(m + logsum);
		if (id != j->ignore)
			loss += row_loss(j, x, id, m, logsum);
	}
	j->loss[item] = loss;
}

// dx = (exp(x - lse) - rest) scale
static inline void backward_row(float *dx, const float *x, int64_t n, float lse,
				float rest, float scale, bool stream)
{
	const vf lv = vf_splat(lse), rv = vf_splat(rest), sv = vf_splat(scale);
	for (int64_t i = 0; i < n; i += VF)
		vf_write(dx + i, (vf_exp(vf_get(x + i, n - i) - lv) - rv) * sv, n - i,
			 stream);
}

// dlogits = (exp(x - lse) - target) g / count
static void backward(void *arg, int64_t item)
{
	struct job *j = arg;
	const int64_t n = j->classes, end = end_of(j, item);
	const float scale = (float)j->scale;
	float *line = line_of(j);
	for (int64_t r = item * j->each; line && r < end; r++) {
		int64_t id = id_at(j, r);
		if (id == j->ignore) {
			memset(row_at(&j->dlogits, r), 0,
			       (size_t)n * (size_t)j->dlogits.size);
			continue;
		}
		const float *x = row_get(&j->logits, r, line);
		float *dx = row_to(&j->dlogits, r, line);
		const float lse = j->lse[r], rest = (float)(j->smooth / (double)n);
		// the target's own probability, read before dx may overwrite it
		float p = vf_exp(vf_splat(x[id]) - vf_splat(lse))[0];
		if (j->stream)
			backward_row(dx, x, n, lse, rest, scale, true);
		else
			backward_row(dx, x, n, lse, rest, scale, false);
		dx[id] =
			(float)((p - (1 - j->smooth) - j->smooth / (double)n) * j->scale);
		row_put(&j->dlogits, r, dx);
	}
	vf_fence();
}

static uint64_t can(const struct yoke_op *op)
{
	const struct yoke_view *ids = &op->in[1];
	return is_rows(&op->in[0]) && ids->kind == YOKE_VIEW_BUFFER && yk_dense(ids) &&
	       (ids->dtype == yoke_i32 || ids->dtype == yoke_i64) &&
	       is_f32(&op->out[0]) && is_f32(&op->out[1]) && yk_dense(&op->out[1]);
}

static uint64_t can_backward(const struct yoke_op *op)
{
	const struct yoke_view *ids = &op->in[1];
	return is_rows(&op->in[0]) && ids->kind == YOKE_VIEW_BUFFER && yk_dense(ids) &&
	       (ids->dtype == yoke_i32 || ids->dtype == yoke_i64) && is_f32(&op->in[2]) &&
	       yk_dense(&op->in[2]) && is_value(&op->in[3]) && is_rows(&op->out[0]);
}

static struct job job_of(const struct yoke_op *op)
{
	struct job j = {
		.logits = rows_of(&op->in[0]),
		.ids = yk_ptr(&op->in[1]),
		.wide = op->in[1].dtype == yoke_i64,
		.ignore = op->attr[0].i,
		.smooth = op->attr[1].f,
	};
	j.classes = j.logits.cols;
	j.each = rows_per_item(j.logits.count, j.logits.cols, 0);
	return j;
}

static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	(void)impl;
	int64_t cols = op->in[0].dims[op->in[0].rank - 1],
		count = yk_elements(&op->in[1]);
	return (uint64_t)items_of(count, rows_per_item(count, cols, 0)) *
	       sizeof(double);
}

static int finished(const struct job *j)
{
	return j->no_memory ?
		       yk_cpu_fail(YOKE_ENOMEM, "cross_entropy: no memory for a row") :
		       0;
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	(void)impl, (void)prepared;
	struct job j = job_of(op);
	int64_t count, items = items_of(j.logits.count, j.each);
	int err = count_ids(&j, &count);
	if (err)
		return err;
	j.lse = yk_ptr(&op->out[1]);
	double loss = 0;
	if (items) {
		j.loss = yk_ptr(&op->workspace);
		yk_team_run(items, forward, &j);
	}
	for (int64_t i = 0; i < items; i++)
		loss += j.loss[i];
	// the mean over no ids is NaN
	*(float *)yk_ptr(&op->out[0]) = count ? (float)(loss / (double)count) : NAN;
	return finished(&j);
}

static int run_backward(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	(void)impl, (void)prepared;
	struct job j = job_of(op);
	int64_t count;
	int err = count_ids(&j, &count);
	if (err)
		return err;
	if (!yk_elements(&op->out[0]))
		return 0;
	j.lse = yk_ptr(&op->in[2]);
	j.dlogits = rows_of(&op->out[0]);
	j.stream = is_streamed(op, &op->out[0]);
	j.scale = count ? value_real(&op->in[3], 1) / (double)count : 0;
	yk_team_run(items_of(j.logits.count, j.each), backward, &j);
	return finished(&j);
}

YK_KERNEL(cross_entropy, CROSS_ENTROPY) = {
	.can = can,
	.workspace = workspace,
	.run = run,
	.impl = { "rows" },
};
YK_KERNEL(cross_entropy_backward, CROSS_ENTROPY_BACKWARD) = {
	.can = can_backward,
	.run = run_backward,
	.impl = { "rows" },
};
