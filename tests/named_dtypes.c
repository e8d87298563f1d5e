// SPDX-License-Identifier: Apache-2.0
// Tests named ops, and layers and losses made of maps, in every floating-point dtype and layout:
// values of the op and of its decomposition against float64 loops; an op's gradient rule against
// the gradient of its decomposition; empty tensors. (Finite differences are in grad.c, lists of
// tensors in lists.c.)

#include "config.h"

#include "base/param.h"
#include "dtypes.h"
#include "graph/context.h"
#include "graph/handle.h"
#include "tap.h"

enum { OPERANDS = 4, LIMIT = 2048 };

struct row {
	const char *name;
	int n; // operands
	int rank[OPERANDS];
	int64_t dims[OPERANDS][YOKE_MAX_RANK];
	yoke_tensor *(*fn)(yoke_tensor *const *x);
	void (*reference)(const struct row *, double *const *x, double *y);
	double ulps; // of the result, at most; 0: exact
	bool causal;
	// of the first row of the batch, and of the last; 0: all, as the first
	int64_t keys, last_keys;
	unsigned beside;         // bit k: operand k is f32 where the others are of half precision
};

enum layout { PLAIN, TURNED, SPREAD, LAYOUTS };
static const char *const layout_name[] = { "", ", permuted", ", broadcast" };
static const int floats[] = { yoke_f64, yoke_f32, yoke_f16, yoke_bf16 };

static int32_t ids[6] = { 3, 0, 2, 2, 4, 1 };

static int64_t product(int rank, const int64_t *dims)
{
	int64_t n = 1;
	for (int i = 0; i < rank; i++)
		n *= dims[i];
	return n;
}

static int64_t count(const struct row *r, int k)
{
	return product(r->rank[k], r->dims[k]);
}

// ---- references ----

static int64_t cols(const struct row *r)
{
	return r->dims[0][r->rank[0] - 1];
}

static double lse_of(const double *x, int64_t n)
{
	double max = -INFINITY, sum = 0;
	for (int64_t i = 0; i < n; i++)
		max = fmax(max, x[i]);
	for (int64_t i = 0; i < n; i++)
		sum += exp(x[i] - max);
	return max + log(sum);
}

static void ref_lse(const struct row *r, double *const *x, double *y)
{
	for (int64_t i = 0; i < count(r, 0) / cols(r); i++)
		y[i] = lse_of(x[0] + i * cols(r), cols(r));
}

static void ref_log_softmax(const struct row *r, double *const *x, double *y)
{
	for (int64_t i = 0; i < count(r, 0); i++)
		y[i] = x[0][i] - lse_of(x[0] + i / cols(r) * cols(r), cols(r));
}

static void ref_softmax(const struct row *r, double *const *x, double *y)
{
	ref_log_softmax(r, x, y);
	for (int64_t i = 0; i < count(r, 0); i++)
		y[i] = exp(y[i]);
}

// The same over the axis before the last one.
static double lse_before(const struct row *r, const double *x, int64_t at)
{
	const int64_t c = cols(r), n = r->dims[0][r->rank[0] - 2],
		      from = at / (n * c) * n * c + at % c;
	double column[64];
	for (int64_t k = 0; k < n; k++)
		column[k] = x[from + k * c];
	return lse_of(column, n);
}

static void ref_lse_before(const struct row *r, double *const *x, double *y)
{
	const int64_t c = cols(r), n = r->dims[0][r->rank[0] - 2];
	for (int64_t i = 0; i < count(r, 0) / n; i++)
		y[i] = lse_before(r, x[0], i / c * n * c + i % c);
}

static void ref_log_softmax_before(const struct row *r, double *const *x, double *y)
{
	for (int64_t i = 0; i < count(r, 0); i++)
		y[i] = x[0][i] - lse_before(r, x[0], i);
}

static void ref_softmax_before(const struct row *r, double *const *x, double *y)
{
	ref_log_softmax_before(r, x, y);
	for (int64_t i = 0; i < count(r, 0); i++)
		y[i] = exp(y[i]);
}

// subtract: the mean goes too
static void norm(const struct row *r, double *const *x, double *y, bool subtract)
{
	const int64_t c = cols(r);
	for (int64_t i = 0; i < count(r, 0); i += c) {
		double mean = 0, var = 0;
		for (int64_t k = 0; k < c && subtract; k++)
			mean += x[0][i + k] / (double)c;
		for (int64_t k = 0; k < c; k++)
			var += (x[0][i + k] - mean) * (x[0][i + k] - mean) / (double)c;
		for (int64_t k = 0; k < c; k++)
			y[i + k] =
				(x[0][i + k] - mean) / sqrt(var + 1e-5) * (r->n > 1 ? x[1][k] : 1) +
				(r->n > 2 ? x[2][k] : 0);
	}
}

static void ref_layer_norm(const struct row *r, double *const *x, double *y)
{
	norm(r, x, y, true);
}

// x [B,C,S]
static void ref_batch_norm(const struct row *r, double *const *x, double *y)
{
	const int64_t *d = r->dims[0], n = d[0] * d[2];
	for (int64_t c = 0; c < d[1]; c++) {
		double mean = 0, var = 0;
		for (int64_t i = 0; i < n; i++)
			mean += x[0][(i / d[2] * d[1] + c) * d[2] + i % d[2]] / (double)n;
		for (int64_t i = 0; i < n; i++) {
			const double off = x[0][(i / d[2] * d[1] + c) * d[2] + i % d[2]] - mean;
			var += off * off / (double)n;
		}
		for (int64_t i = 0; i < n; i++) {
			const int64_t at = (i / d[2] * d[1] + c) * d[2] + i % d[2];
			y[at] = (x[0][at] - mean) / sqrt(var + 1e-5) * (r->n > 1 ? x[1][c] : 1) +
				(r->n > 2 ? x[2][c] : 0);
		}
	}
}

static void ref_rms_norm(const struct row *r, double *const *x, double *y)
{
	norm(r, x, y, false);
}

// smoothing 0.1, id 2 ignored
static void ref_xent(const struct row *r, double *const *x, double *y)
{
	const int64_t v = cols(r);
	double sum = 0, n = 0;
	for (int i = 0; i < 6; i++) {
		const double *row = x[0] + i * v, lse = lse_of(row, v);
		double smooth = 0;
		for (int64_t k = 0; k < v; k++)
			smooth += (lse - row[k]) / (double)v;
		if (ids[i] == 2)
			continue;
		sum += 0.9 * (lse - row[ids[i]]) + 0.1 * smooth;
		n++;
	}
	*y = sum / n;
}

static void ref_attention(const struct row *r, double *const *x, double *y)
{
	const int64_t *q = r->dims[0], *kv = r->dims[1], T = q[1], H = q[2], D = q[3], S = kv[1],
		      G = kv[2];
	for (int64_t i = 0; i < q[0] * T * H; i++) {
		const int64_t h = i % H, t = i / H % T, b = i / H / T, g = h / (H / G);
		const int64_t keys = b && r->last_keys ? r->last_keys : r->keys,
			      n = keys ? keys : S;
		const int64_t sees = r->causal ? t + 1 + n - T : n;
		const int64_t *m = r->dims[3],
			      row = r->n > 3 ? (b % m[0] * m[1] + h % m[1]) * T + t : 0;
		double p[64], lse;
		for (int64_t s = 0; s < sees; s++) {
			p[s] = r->n > 3 ? x[3][row * S + s] : 0;
			for (int64_t d = 0; d < D; d++)
				p[s] += x[0][i * D + d] * x[1][((b * S + s) * G + g) * D + d] /
					sqrt((double)D);
		}
		lse = lse_of(p, sees);
		for (int64_t d = 0; d < D; d++) {
			y[i * D + d] = 0;
			for (int64_t s = 0; s < sees; s++)
				y[i * D + d] +=
					exp(p[s] - lse) * x[2][((b * S + s) * G + g) * D + d];
		}
	}
}

static void ref_rope(const struct row *r, double *const *x, double *y)
{
	const int64_t *n = r->dims[0], D = n[3];
	for (int64_t i = 0; i < count(r, 0); i++) {
		const int64_t d = i % D, k = d % (D / 2), t = i / D / n[2] % n[1];
		const double c = x[1][t * (D / 2) + k], s = x[2][t * (D / 2) + k];
		const double *head = x[0] + i - d, a = head[k], b = head[k + D / 2];
		y[i] = d < D / 2 ? a * c - b * s : b * c + a * s;
	}
}

static void ref_embedding(const struct row *r, double *const *x, double *y)
{
	for (int i = 0; i < 6; i++)
		memcpy(y + i * cols(r), x[0] + ids[i] * cols(r), (size_t)cols(r) * sizeof *y);
}

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

#define EACH(name, value) \
	static void ref_##name(const struct row *r, double *const *x, double *y) \
	{ \
		for (int64_t i = 0; i < count(r, 0); i++) { \
			const double a = x[0][i], b = r->n > 1 ? x[1][i] : 0; \
			y[i] = value + 0 * b; \
		} \
	}
EACH(gelu, a / 2 * (1 + erf(a / sqrt(2))))
EACH(gelu_tanh, a / 2 * (1 + tanh(sqrt(2 / M_PI) * (a + 0.044715 * a * a * a))))
EACH(silu, a * sigmoid(a))
EACH(swiglu, a * sigmoid(a) * b)

#define MEAN(name, over, value) \
	static void ref_##name(const struct row *r, double *const *x, double *y) \
	{ \
		*y = 0; \
		for (int64_t i = 0; i < count(r, 0); i++) { \
			const double a = x[0][i], b = x[1][i]; \
			*y += (value) / (double)(count(r, 0) / (over)); \
		} \
	}
MEAN(mse, 1, (a - b) * (a - b))
MEAN(bce, 1, -b * log(sigmoid(a)) - (1 - b) * log(1 - sigmoid(a)))
MEAN(kl, cols(r), exp(a) * (a - b))

// ---- rows ----

#define FN(name, expression) static yoke_tensor *name(yoke_tensor *const *x) { return expression; }
FN(softmax, yoke_softmax(x[0], -1))
FN(log_softmax, yoke_log_softmax(x[0], -1))
FN(lse, yoke_logsumexp(x[0], -1))
FN(softmax_before, yoke_softmax(x[0], -2))
FN(log_softmax_before, yoke_log_softmax(x[0], 0))
FN(lse_before_last, yoke_logsumexp(x[0], 1))
FN(layer_norm, yoke_layer_norm(x[0], x[1], x[2], 1e-5))
FN(layer_norm_bare, yoke_layer_norm(x[0], YOKE_NONE, YOKE_NONE, 1e-5))
FN(batch_norm, yoke_batch_norm(x[0], x[1], x[2], 1e-5, NULL, NULL))
FN(batch_norm_bare, yoke_batch_norm(x[0], YOKE_NONE, YOKE_NONE, 1e-5, NULL, NULL))
FN(rms_norm, yoke_rms_norm(x[0], x[1], 1e-5))
FN(xent, yoke_cross_entropy(x[0], yoke_from(yoke_i32, 1, (int64_t[]){ 6 }, ids), 2, 0.1))
FN(attention, yoke_attention(x[0], x[1], x[2], YOKE_NONE, 1, 0, 0))
FN(attention_open, yoke_attention(x[0], x[1], x[2], YOKE_NONE, 0, 0, 0))
FN(attention_keys, yoke_attention_keys(x[0], x[1], x[2], yoke_const(5), YOKE_NONE, 1, 0, 0))
FN(attention_each, yoke_attention_keys(x[0], x[1], x[2], yoke_from(yoke_i64, 1, (int64_t[]){ 2 },
	(int64_t[]){ 7, 4 }), x[3], 1, 0, 0))
FN(attention_mask, yoke_attention(x[0], x[1], x[2], x[3], 1, 0, 0))
FN(rope, yoke_rope(x[0], x[1], x[2]))
FN(embedding, yoke_embedding(x[0], yoke_from(yoke_i32, 2, (int64_t[]){ 2, 3 }, ids)))
FN(gelu, yoke_gelu(x[0]))
FN(gelu_tanh, yoke_gelu_tanh(x[0]))
FN(silu, yoke_silu(x[0]))
FN(swiglu, yoke_swiglu(x[0], x[1]))
FN(mse, yoke_mse(x[0], x[1]))
FN(bce, yoke_bce_logits(x[0], x[1]))
FN(kl, yoke_kl(x[0], x[1]))

#define RANK8 { 2, 1, 3, 1, 2, 1, 2, 7 }

static const struct row rows[] = {
	{ "softmax", 1, { 2 }, { { 5, 37 } }, softmax, ref_softmax, .ulps = 1 },
	{ "softmax of rank 8", 1, { 8 }, { RANK8 }, softmax, ref_softmax, .ulps = 1 },
	{ "softmax of one", 1, { 1 }, { { 1 } }, softmax, ref_softmax, .ulps = 1 },
	{ "log_softmax", 1, { 3 }, { { 3, 2, 17 } }, log_softmax, ref_log_softmax, .ulps = 1 },
	{ "log_softmax of rank 8", 1, { 8 }, { RANK8 }, log_softmax, ref_log_softmax, .ulps = 1 },
	{ "softmax, axis -2",
	  1,
	  { 3 },
	  { { 3, 7, 11 } },
	  softmax_before,
	  ref_softmax_before,
	  .ulps = 1 },
	{ "log_softmax, axis 0",
	  1,
	  { 2 },
	  { { 19, 5 } },
	  log_softmax_before,
	  ref_log_softmax_before,
	  .ulps = 1 },
	{ "logsumexp, axis 1 of 3",
	  1,
	  { 3 },
	  { { 3, 7, 11 } },
	  lse_before_last,
	  ref_lse_before,
	  .ulps = 1 },
	{ "logsumexp", 1, { 2 }, { { 5, 37 } }, lse, ref_lse, .ulps = 1 },
	{ "logsumexp of rank 8", 1, { 8 }, { RANK8 }, lse, ref_lse, .ulps = 1 },
	{ "layer_norm",
	  3,
	  { 3, 1, 1 },
	  { { 3, 4, 33 }, { 33 }, { 33 } },
	  layer_norm,
	  ref_layer_norm,
	  .ulps = 1 },
	{ "layer_norm bare, of rank 8",
	  1,
	  { 8 },
	  { RANK8 },
	  layer_norm_bare,
	  ref_layer_norm,
	  .ulps = 1 },
	{ "batch_norm",
	  3,
	  { 3, 1, 1 },
	  { { 5, 4, 13 }, { 4 }, { 4 } },
	  batch_norm,
	  ref_batch_norm,
	  .ulps = 1 },
	{ "batch_norm bare",
	  1,
	  { 3 },
	  { { 5, 4, 13 } },
	  batch_norm_bare,
	  ref_batch_norm,
	  .ulps = 1 },
	{ "batch_norm, w and b of f32",
	  3,
	  { 3, 1, 1 },
	  { { 5, 4, 13 }, { 4 }, { 4 } },
	  batch_norm,
	  ref_batch_norm,
	  .ulps = 1,
	  .beside = 6 },
	{ "rms_norm", 2, { 2, 1 }, { { 9, 31 }, { 31 } }, rms_norm, ref_rms_norm, .ulps = 1 },
	{ "rms_norm of rank 8", 2, { 8, 1 }, { RANK8, { 7 } }, rms_norm, ref_rms_norm, .ulps = 1 },
	{ "cross_entropy", 1, { 2 }, { { 6, 17 } }, xent, ref_xent, .ulps = 1 },
	{ "attention, causal",
	  3,
	  { 4, 4, 4 },
	  { { 2, 9, 4, 8 }, { 2, 9, 2, 8 }, { 2, 9, 2, 8 } },
	  attention,
	  ref_attention,
	  .ulps = 1,
	  .causal = true },
	{ "attention",
	  3,
	  { 4, 4, 4 },
	  { { 1, 3, 2, 5 }, { 1, 7, 1, 5 }, { 1, 7, 1, 5 } },
	  attention_open,
	  ref_attention,
	  .ulps = 1 },
	{ "attention, some keys",
	  3,
	  { 4, 4, 4 },
	  { { 2, 3, 2, 4 }, { 2, 8, 2, 4 }, { 2, 8, 2, 4 } },
	  attention_keys,
	  ref_attention,
	  .ulps = 1,
	  .causal = true,
	  .keys = 5 },
	{ "attention, a mask",
	  4,
	  { 4, 4, 4, 4 },
	  { { 2, 7, 4, 8 }, { 2, 7, 2, 8 }, { 2, 7, 2, 8 }, { 1, 4, 7, 7 } },
	  attention_mask,
	  ref_attention,
	  .ulps = 1,
	  .causal = true },
	{ "attention, keys of each, a mask",
	  4,
	  { 4, 4, 4, 4 },
	  { { 2, 3, 2, 4 }, { 2, 8, 1, 4 }, { 2, 8, 1, 4 }, { 2, 1, 3, 8 } },
	  attention_each,
	  ref_attention,
	  .ulps = 1,
	  .causal = true,
	  .keys = 7,
	  .last_keys = 4 },
	{ "attention, a mask of f32",
	  4,
	  { 4, 4, 4, 4 },
	  { { 2, 7, 4, 8 }, { 2, 7, 2, 8 }, { 2, 7, 2, 8 }, { 1, 4, 7, 7 } },
	  attention_mask,
	  ref_attention,
	  .ulps = 1,
	  .causal = true,
	  .beside = 8 },
	{ "attention, few queries, a mask of f32",
	  4,
	  { 4, 4, 4, 4 },
	  { { 2, 2, 4, 8 }, { 2, 7, 2, 8 }, { 2, 7, 2, 8 }, { 1, 4, 2, 7 } },
	  attention_mask,
	  ref_attention,
	  .ulps = 1,
	  .causal = true,
	  .beside = 8 },
	{ "layer_norm, w and b of f32",
	  3,
	  { 3, 1, 1 },
	  { { 3, 4, 33 }, { 33 }, { 33 } },
	  layer_norm,
	  ref_layer_norm,
	  .ulps = 1,
	  .beside = 6 },
	{ "rms_norm, w of f32",
	  2,
	  { 2, 1 },
	  { { 9, 31 }, { 31 } },
	  rms_norm,
	  ref_rms_norm,
	  .ulps = 1,
	  .beside = 2 },
	{ "rope, tables of f32",
	  3,
	  { 4, 2, 2 },
	  { { 2, 5, 3, 8 }, { 5, 4 }, { 5, 4 } },
	  rope,
	  ref_rope,
	  .ulps = 1,
	  .beside = 6 },
	{ "rope",
	  3,
	  { 4, 2, 2 },
	  { { 2, 5, 3, 8 }, { 5, 4 }, { 5, 4 } },
	  rope,
	  ref_rope,
	  .ulps = 1 },
	{ "embedding", 1, { 2 }, { { 5, 13 } }, embedding, ref_embedding, .ulps = 0 },
	{ "gelu", 1, { 2 }, { { 5, 13 } }, gelu, ref_gelu, .ulps = 1 },
	{ "gelu_tanh", 1, { 2 }, { { 5, 13 } }, gelu_tanh, ref_gelu_tanh, .ulps = 1 },
	{ "silu", 1, { 2 }, { { 5, 13 } }, silu, ref_silu, .ulps = 1 },
	{ "swiglu", 2, { 2, 2 }, { { 5, 13 }, { 5, 13 } }, swiglu, ref_swiglu, .ulps = 1 },
	{ "mse", 2, { 2, 2 }, { { 5, 13 }, { 5, 13 } }, mse, ref_mse, .ulps = 1 },
	{ "bce_logits", 2, { 2, 2 }, { { 5, 13 }, { 5, 13 } }, bce, ref_bce, .ulps = 1 },
	{ "kl", 2, { 2, 2 }, { { 5, 13 }, { 5, 13 } }, kl, ref_kl, .ulps = 1 },
};

// ---- operands ----

// Operand k in a layout: the leaf it is a view of, and that view.  x gets its elements as they are
// then.
static yoke_tensor *operand(const struct row *r, int k, int dtype, enum layout layout, double *x,
			    yoke_tensor **leaf)
{
	static double data[LIMIT];
	const int rank = r->rank[k];
	const int64_t *dims = r->dims[k], n = count(r, k);
	int64_t turned[YOKE_MAX_RANK];
	int order[YOKE_MAX_RANK];
	for (int64_t i = 0; i < n; i++)
		x[i] = rounded(dtype, rnd_real(-1, 1));
	memcpy(turned, dims, sizeof turned);
	if (layout == TURNED) { // the elements lie in the reverse order of axes
		for (int i = 0; i < rank; i++) {
			turned[i] = dims[rank - 1 - i];
			order[i] = rank - 1 - i;
		}
		for (int64_t i = 0; i < n; i++) {
			int64_t at = 0, step = 1, rest = i;
			for (int d = 0; d < rank; d++)
				step *= dims[d];
			for (int d = rank - 1; d >= 0; d--) {
				step /= dims[d];
				at += rest % dims[d] * step;
				rest /= dims[d];
			}
			data[at] = x[i];
		}
		*leaf = from(dtype, rank, turned, data);
		return yoke_permute(*leaf, order);
	}
	if (layout == SPREAD && !k) { // the first axis is one row again and again
		const int64_t row = n / dims[0];
		for (int64_t i = row; i < n; i++)
			x[i] = x[i % row];
		turned[0] = 1;
		*leaf = from(dtype, rank, turned, x);
		return yoke_broadcast_to(*leaf, rank, dims);
	}
	return *leaf = from(dtype, rank, dims, x);
}

// y in the parts that its row says it is made of; NULL where it is a map or the like.
static yoke_tensor *in_parts(yoke_tensor *y)
{
	struct yoke_context *ctx = yk_current();
	struct yk_graph *g = &ctx->graph;
	const struct yk_node n = *yk_maker(g, yk_tensor(y, "test")->id);
	yk_id in[16], out[4];
	union yoke_attr attr[YOKE_MAX_ATTRS];
	if (!yk_op_def(n.op)->decompose)
		return NULL;
	memcpy(in, yk_ins(g, &n), n.nin * sizeof *in);
	memcpy(attr, yk_attrs(g, &n), n.nattr * sizeof *attr);
	struct yk_call c = { .op = n.op, .nin = n.nin, .in = in, .nattr = n.nattr, .attr = attr };
	yk_op_def(n.op)->decompose(g, &c, out);
	return out[0] == YK_BAD ? NULL : yk_handle_of(ctx, out[0]);
}

// sum of y[i] cos(i), in the accumulator's dtype
static yoke_tensor *weighed(yoke_tensor *y)
{
	int64_t n = yoke_count(y);
	int acc = yoke_dtype(y) == yoke_f64 ? yoke_f64 : yoke_f32;
	yoke_tensor *w = yoke_cos(yoke_iota(acc, 1, &n, 0));
	return yoke_sum(yoke_mul(yoke_cast(yoke_reshape(y, 1, &n), acc), w), YOKE_ALL);
}

static double tolerance(int dtype, double ulps)
{
	// half an ulp for the result's rounding where it is in half precision, else what kernels
	// differ by
	return dtype == yoke_f64 ? 1e-13 : dtype == yoke_f32 ? 5e-6 : ulp(dtype) * fmax(ulps, 0.51);
}

static int dtype_of(const struct row *r, int k, int dtype)
{
	return dtype != yoke_f64 && r->beside >> k & 1 ? yoke_f32 : dtype;
}

static void check(const struct row *r, int dtype, enum layout layout)
{
	static double x[OPERANDS][LIMIT], want[LIMIT], got[2][LIMIT], g[2][OPERANDS][LIMIT];
	double *const in[] = { x[0], x[1], x[2], x[3] };
	char what[120], text[160];
	snprintf(what, sizeof what, "%s, %s%s", r->name, yoke_dtype_name(dtype),
		 layout_name[layout]);
	const uint64_t seed = tap_state;
	int64_t n = 0;
	bool rule = false;
	for (int named = 1; named >= 0; named--) {
		tap_state = seed; // the same operands
		yoke_setting_set("plan.named", named ? "1" : "0");
		yoke_scope *s = yoke_scope_begin("row");
		yoke_tensor *leaf[OPERANDS], *v[OPERANDS], *grad[OPERANDS];
		for (int k = 0; k < r->n; k++)
			v[k] = operand(r, k, dtype_of(r, k, dtype), layout, x[k], &leaf[k]);
		yoke_tensor *y = r->fn(v), *f = y;
		rule = y && yk_op_def(yk_tensor(y, "test")->op)->decompose;
		if (!named && rule)
			f = in_parts(y);
		n = y ? yoke_count(y) : 0;
		int err = y && f ? yoke_grad(weighed(f), r->n, leaf, grad) : YOKE_EINVAL;
		if (!err)
			err = yoke_eval(r->n, grad);
		for (int k = 0; k < r->n; k++)
			get(err ? NULL : grad[k], g[named][k]);
		yoke_scope_end(s);
		s = yoke_scope_begin("value");
		tap_state = seed;
		for (int k = 0; k < r->n; k++)
			v[k] = operand(r, k, dtype_of(r, k, dtype), layout, x[k], &leaf[k]);
		get(r->fn(v), got[named]);
		yoke_scope_end(s);
		if (!ok(!err && !yoke_error_code(), "%s, %s, runs %s", what,
			named ? "whole" : "in parts", yoke_error())) {
			yoke_error_clear();
			return;
		}
	}
	r->reference(r, in, want);
	near(got[1], want, (size_t)n, tolerance(dtype, r->ulps), 1, what);
	snprintf(text, sizeof text, "%s, in parts", what);
	near(got[0], want, (size_t)n, tolerance(dtype, r->ulps), 1, text);
	for (int k = 0; k < r->n && rule; k++) {
		int64_t m = count(r, k) / (layout == SPREAD && !k ? r->dims[0][0] : 1);
		snprintf(text, sizeof text, "%s: the gradient rule, operand %d", what, k);
		near(g[1][k], g[0][k], (size_t)m, 4 * tolerance(dtype_of(r, k, dtype), 1), 1, text);
	}
}

// ---- all numbers of half precision ----

#define K (2 * sqrt(2 / M_PI))
static double cubic(double x)
{
	return K * (x + 0.044715 * x * x * x);
}

static double v_gelu(double x) { return x / 2 * erfc(-x / sqrt(2)); }
static double g_gelu(double x)
{
	return erfc(-x / sqrt(2)) / 2 + x * exp(-x * x / 2) / sqrt(2 * M_PI);
}
static double v_gelu_tanh(double x) { return x * sigmoid(cubic(x)); }
static double g_gelu_tanh(double x)
{
	return sigmoid(cubic(x)) * (1 + x * sigmoid(-cubic(x)) * K * (1 + 3 * 0.044715 * x * x));
}
static double v_silu(double x) { return x * sigmoid(x); }
static double g_silu(double x) { return sigmoid(x) * (1 + x * sigmoid(-x)); }

// In units in the last place of want.
static double error_in_ulps(int dtype, double got, double want)
{
	int e;
	frexp(want, &e);
	return fabs(got - want) / (fmax(ldexp(1, e - 1), yk_num_min(dtype)) * ulp(dtype));
}

// Values, and gradients for cotangents of 1, of maps made of maps: computed in f32 and rounded
// once, each in one launch.  f32's own error is 2^-24 of the terms that cancel.
static void every_half(const char *name, yoke_tensor *(*fn)(yoke_tensor *), double (*value)(double),
		       double (*slope)(double), int dtype)
{
	enum { ALL = 65536 };
	static double x[ALL], got[2][ALL];
	double worst[2] = { 0 }, at[2] = { 0 };
	int64_t n = 0;
	for (uint64_t i = 0; i < ALL; i++) // beyond 1e18 squares leave f32
		if (fabs(x[n] = number_of(dtype, i)) < 1e18)
			n++;
	yoke_scope *s = yoke_scope_begin("halves");
	struct yoke_stats a = { .size = sizeof a }, b = a;
	yoke_tensor *v = from(dtype, 1, &n, x), *g;
	yoke_stats(&a);
	get(fn(v), got[0]);
	yoke_stats(&b);
	yoke_scope *inner = yoke_scope_begin("loss"); // which is not asked for
	yoke_grad(yoke_sum(fn(v), YOKE_ALL), 1, &v, &g);
	yoke_lift(g);
	yoke_scope_end(inner);
	get(g, got[1]);
	yoke_stats(&a);
	for (int k = 0; k < 2; k++)
		for (int64_t i = 0; i < n; i++) {
			double want = k ? slope(x[i]) : value(x[i]);
			double e = error_in_ulps(dtype, got[k][i], want);
			if (k && fabs(want) < 1e-3) // near its zero
				e -= error_in_ulps(dtype, want + 0x1p-24, want);
			if (!(e <= worst[k]))
				worst[k] = e, at[k] = x[i];
		}
	ok(worst[0] <= 0.51, "%s %s: %.3g ulp at %g", name, yoke_dtype_name(dtype), worst[0],
	   at[0]);
	ok(worst[1] <= 0.51, "%s %s, its gradient: %.3g ulp at %g", name, yoke_dtype_name(dtype),
	   worst[1], at[1]);
	if (!tap_eager() && yk_param_bool(yk_param_find("fuse")))
		ok(a.launches - b.launches == 1, "%s %s, its gradient: %d launches", name,
		   yoke_dtype_name(dtype), (int)(a.launches - b.launches));
	yoke_scope_end(s);
}

// Gradient rules of single maps, from the value as it is rounded.
static void rules_in_halves(int dtype)
{
	enum { N = 997 };
	static const struct {
		const char *name;
		yoke_tensor *(*fn)(yoke_tensor *);
	} map[] = { { "tanh", yoke_tanh },   { "sigmoid", yoke_sigmoid }, { "erf", yoke_erf },
		    { "rsqrt", yoke_rsqrt }, { "recip", yoke_recip },     { "log1p", yoke_log1p },
		    { "sqrt", yoke_sqrt },   { "sin", yoke_sin } };
	static double x[N], y[N], got[N];
	const int64_t n = N;
	for (size_t k = 0; k < sizeof map / sizeof *map; k++) {
		double worst = 0, at = 0;
		yoke_scope *s = yoke_scope_begin("rules");
		for (int i = 0; i < N; i++)
			x[i] = rounded(dtype, rnd_real(0.1, 1.4));
		yoke_tensor *v = from(dtype, 1, &n, x), *g, *f = map[k].fn(v);
		yoke_grad(yoke_sum(yoke_mul(f, yoke_const(3)), YOKE_ALL), 1, &v, &g);
		yoke_eval(2, (yoke_tensor *[]){ f, g });
		get(f, y);
		get(g, got);
		for (int i = 0; i < N; i++) {
			const double d[] = { 1 - y[i] * y[i],
					     y[i] * (1 - y[i]),
					     M_2_SQRTPI * exp(-x[i] * x[i]),
					     -pow(y[i], 3) / 2,
					     -y[i] * y[i],
					     1 / (1 + x[i]),
					     0.5 / y[i],
					     cos(x[i]) };
			double e = error_in_ulps(dtype, got[i], 3 * d[k]);
			if (!(e <= worst))
				worst = e, at = x[i];
		}
		ok(worst <= 0.51, "gradient of %s %s: %.3g ulp at %g", map[k].name,
		   yoke_dtype_name(dtype), worst, at);
		yoke_scope_end(s);
	}
}

// Two operands, one of which broadcasts: the product, both gradients and their sums round once.
static void swiglu_in_halves(int dtype)
{
	enum { N = 61, M = 7 };
	static double a[N], b[M * N], y[M * N], ga[N], gb[M * N], want[3][M * N];
	for (int i = 0; i < N; i++)
		a[i] = rounded(dtype, rnd_real(-6, 6));
	for (int i = 0; i < M * N; i++)
		b[i] = rounded(dtype, rnd_real(0.5, 3));
	yoke_scope *s = yoke_scope_begin("swiglu");
	yoke_tensor *x[2] = { from(dtype, 1, (int64_t[]){ N }, a),
			      from(dtype, 2, (int64_t[]){ M, N }, b) },
		    *g[2];
	yoke_tensor *f = yoke_swiglu(x[0], x[1]);
	yoke_grad(yoke_sum(f, YOKE_ALL), 2, x, g);
	yoke_eval(3, (yoke_tensor *[]){ f, g[0], g[1] });
	get(f, y);
	get(g[0], ga);
	get(g[1], gb);
	memset(want, 0, sizeof want);
	for (int i = 0; i < M * N; i++) {
		want[0][i] = v_silu(a[i % N]) * b[i];
		want[1][i % N] += g_silu(a[i % N]) * b[i];
		want[2][i] = v_silu(a[i % N]);
	}
	const double *got[3] = { y, ga, gb };
	for (int k = 0; k < 3; k++) {
		double worst = 0;
		for (int i = 0; i < (k == 1 ? N : M * N); i++) {
			double e = error_in_ulps(dtype, got[k][i], want[k][i]);
			worst = e <= worst ? worst : e;
		}
		ok(worst <= 0.51, "swiglu %s, %s: %.3g ulp", yoke_dtype_name(dtype),
		   (const char *[]){ "value", "gradient of the gate", "gradient of x" }[k], worst);
	}
	yoke_scope_end(s);
}

// Nothing is rounded before the mean; and of a mask that keeps, x / (1 - p) is rounded once.
static void losses_in_halves(int dtype)
{
	enum { N = 101 };
	static double a[N], b[N], got[N];
	double want = 0, worst = 0;
	for (int i = 0; i < N; i++) {
		a[i] = rounded(dtype, rnd_real(1, 2));
		b[i] = rounded(dtype, rnd_real(-1, 1) / 64);
		want += (a[i] - b[i]) * (a[i] - b[i]) / N;
	}
	yoke_scope *s = yoke_scope_begin("losses");
	yoke_tensor *x = from(dtype, 1, (int64_t[]){ N }, a),
		    *y = from(dtype, 1, (int64_t[]){ N }, b);
	get(yoke_mse(x, y), got);
	double e = error_in_ulps(dtype, got[0], want);
	ok(e <= 0.51, "mse %s: %.3g ulp", yoke_dtype_name(dtype), e);
	get(yoke_dropout(x, 0.1), got);
	for (int i = 0; i < N; i++) {
		e = got[i] == 0 ? 0 : error_in_ulps(dtype, got[i], a[i] / 0.9);
		worst = e <= worst ? worst : e;
	}
	ok(worst <= 0.51, "dropout %s: %.3g ulp", yoke_dtype_name(dtype), worst);
	yoke_scope_end(s);
}

static void halves(int dtype)
{
	every_half("gelu", yoke_gelu, v_gelu, g_gelu, dtype);
	every_half("gelu_tanh", yoke_gelu_tanh, v_gelu_tanh, g_gelu_tanh, dtype);
	every_half("silu", yoke_silu, v_silu, g_silu, dtype);
	swiglu_in_halves(dtype);
	rules_in_halves(dtype);
	losses_in_halves(dtype);
}

// The mask does not depend on the dtype, and what is kept is x / (1 - p), rounded.
static void dropout(void)
{
	enum { N = 501 };
	double x[N], want[N], got[N];
	for (int d = 0; d < 4; d++) {
		yoke_random_set(3, 1);
		yoke_scope *s = yoke_scope_begin("dropout");
		for (int i = 0; i < N; i++)
			x[i] = 0.25 + i % 3; // exact in all dtypes, and times 2
		get(yoke_dropout(from(floats[d], 1, (int64_t[]){ N }, x), 0.5), got);
		yoke_scope_end(s);
		int kept = 0;
		for (int i = 0; i < N; i++) {
			if (!d)
				want[i] = got[i] != 0 ? 2 * x[i] : 0;
			kept += got[i] != 0;
		}
		near(got, want, N, 0, 1, yoke_dtype_name(floats[d]));
		ok(kept > N / 2 - 60 && kept < N / 2 + 60, "%d of %d kept", kept, N);
	}
}

// What a call gives where an axis is empty: n elements, all equal to `value`.
static void empty(const char *what, int dtype, yoke_tensor *y, int64_t n, double value)
{
	double got[64], want[64];
	if (!ok(y && yoke_count(y) == n, "%s, %s: %lld elements %s", what, yoke_dtype_name(dtype),
		(long long)n, yoke_error())) {
		yoke_error_clear();
		return;
	}
	int err = get(y, got);
	for (int64_t i = 0; i < n; i++)
		want[i] = value;
	ok(!err, "%s, %s runs %s", what, yoke_dtype_name(dtype), yoke_error());
	yoke_error_clear();
	near(got, want, (size_t)n, 0, 1, what);
}

static void empties(int dtype)
{
#define OF(...) \
	from(dtype, sizeof((int64_t[]){ __VA_ARGS__ }) / 8, (int64_t[]){ __VA_ARGS__ }, some)
	static const double some[64] = { 0 };
	yoke_scope *s = yoke_scope_begin("empty");
	yoke_tensor *none = yoke_from(yoke_i64, 1, (int64_t[]){ 0 }, ""), *w = OF(5);
	empty("softmax of no rows", dtype, yoke_softmax(OF(0, 5), -1), 0, 0);
	empty("softmax of empty rows", dtype, yoke_softmax(OF(3, 0), -1), 0, 0);
	empty("log_softmax of empty rows", dtype, yoke_log_softmax(OF(3, 0), -1), 0, 0);
	empty("logsumexp of empty rows", dtype, yoke_logsumexp(OF(3, 0), -1), 3, -INFINITY);
	empty("layer_norm of no rows", dtype, yoke_layer_norm(OF(2, 0, 5), w, w, 1e-5), 0, 0);
	empty("rms_norm of no rows", dtype, yoke_rms_norm(OF(0, 5), w, 1e-5), 0, 0);
	empty("cross_entropy of no rows", dtype, yoke_cross_entropy(OF(0, 5), none, -1, 0), 1, NAN);
	empty("attention of no queries", dtype,
	      yoke_attention(OF(2, 0, 2, 3), OF(2, 4, 2, 3), OF(2, 4, 2, 3), YOKE_NONE, 1, 0, 0), 0,
	      0);
	empty("attention to no keys", dtype,
	      yoke_attention(OF(1, 2, 2, 3), OF(1, 0, 2, 3), OF(1, 0, 2, 3), YOKE_NONE, 0, 0, 0),
	      12, 0);
	empty("attention to no keys of some", dtype,
	      yoke_attention_keys(OF(1, 2, 2, 3), OF(1, 4, 2, 3), OF(1, 4, 2, 3), yoke_const(0),
				  YOKE_NONE, 1, 0, 0),
	      12, 0);
	empty("rope of no tokens", dtype, yoke_rope(OF(2, 0, 2, 4), OF(0, 2), OF(0, 2)), 0, 0);
	empty("embedding of no ids", dtype, yoke_embedding(OF(3, 5), none), 0, 0);
	empty("mse of nothing", dtype, yoke_mse(OF(0, 5), OF(0, 5)), 1, NAN);
	empty("bce_logits of nothing", dtype, yoke_bce_logits(OF(0), OF(0)), 1, NAN);
	empty("kl of nothing", dtype, yoke_kl(OF(0, 5), OF(0, 5)), 1, NAN);
	yoke_scope_end(s);
#undef OF
}

// Infinities in logsumexp and kl, where the formula as it stands would give NaN.
static void infinities(void)
{
	double x[9] = { -INFINITY, -INFINITY, -INFINITY, 1, INFINITY, 2, 1, -INFINITY, 1 }, y[3],
	       g[9];
	const double want[3] = { -INFINITY, INFINITY, 1 + log(2) }, share[3] = { 0.5, 0, 0.5 };
	for (int d = 0; d < 4; d++) {
		yoke_scope *s = yoke_scope_begin("infinities");
		get(yoke_logsumexp(from(floats[d], 2, (int64_t[]){ 3, 3 }, x), -1), y);
		double close = floats[d] == yoke_f64 ? 1e-15 :
			       floats[d] == yoke_f32 ? 1e-6 :
						       ulp(floats[d]);
		near(y, want, 3, close, 1, "logsumexp of infinities");
		yoke_tensor *row = from(floats[d], 1, (int64_t[]){ 3 }, x + 6), *grad;
		yoke_grad(yoke_logsumexp(row, -1), 1, &row, &grad);
		get(grad, g);
		near(g, share, 3, close, 1, "and its gradient");
		const double far[4] = { 300, 0, 0, 0 }, mse_want = 22500;
		static const double origin[4] = { 0 };
		get(yoke_mse(from(floats[d], 1, (int64_t[]){ 4 }, far),
			     from(floats[d], 1, (int64_t[]){ 4 }, origin)),
		    y);
		near(y, &mse_want, 1, close, 1, "mse where a square overflows f16");
		// p = (1/2, 0, 1/2) and q the uniform one
		const double p[3] = { log(0.5), -INFINITY, log(0.5) },
			     q[3] = { log(1. / 3), log(1. / 3), log(1. / 3) };
		row = from(floats[d], 1, (int64_t[]){ 3 }, p);
		yoke_tensor *loss = yoke_kl(row, from(floats[d], 1, (int64_t[]){ 3 }, q));
		yoke_grad(loss, 1, &row, &grad);
		yoke_eval(2, (yoke_tensor *[]){ loss, grad });
		get(loss, y);
		get(grad, g);
		const double kl_want = log(1.5), slope = 0.5 * (log(1.5) + 1),
			     slopes[3] = { slope, 0, slope };
		near(y, &kl_want, 1, 3 * close, 1, "kl with a probability of 0");
		near(g, slopes, 3, 3 * close, 1, "and its gradient");
		yoke_scope_end(s);
	}
}

int main(void)
{
	tap_seed();
	yoke_random_set(3, 1);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (int d = 0; d < 4; d++)
			for (int l = 0; l < LAYOUTS; l++)
				check(&rows[i], floats[d], (enum layout)l);
	for (int named = 1; named >= 0; named--) {
		yoke_setting_set("plan.named", named ? "1" : "0");
		for (int d = 0; d < 4; d++)
			empties(floats[d]);
	}
	yoke_setting_set("plan.named", "1");
	dropout();
	infinities();
	halves(yoke_f16);
	halves(yoke_bf16);
	return done();
}
