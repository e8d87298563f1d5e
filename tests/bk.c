// SPDX-License-Identifier: Apache-2.0
// Tests grouped products, mixtures of experts and the bk model (experts with resolvents): values
// against float64 loops, gradients against their finite differences, causality, token-by-token
// generation, and a task that needs the resolvent branch.
#include "config.h"

#include "base/complex.h"
#include "base/error.h"
#include "nn/moe.h"
#include "tap.h"
#include "yoke-optim.h"

enum { V = 11, C = 9, L = 2, E = 8, B = 2, X = 4, LIMIT = 64 };

static double *param[LIMIT];

// Smallest distance of the references from a point where their slope jumps: a relu or clamp that
// switches, another expert selected.
static double margin;
#define FAR 5e-5 // above f32 rounding and the step of the differences

// Records a number whose sign a relu or clamp depends on.
static double turns(double x)
{
	margin = fmin(margin, fabs(x));
	return x;
}

// Random values for the parameters and their float64 copies.
static void draw(struct yk_parameters *ps, double width)
{
	for (int i = 0; i < ps->count; i++) {
		const int64_t n = yoke_count(ps->var[i]);
		const char *name = ps->row[i].name;
		const double base = (strstr(name, "norm.weight") || strstr(name, "scale")) ? 1 : 0;
		float *f = malloc((size_t)n * sizeof *f);
		param[i] = malloc((size_t)n * sizeof **param);
		for (int64_t k = 0; k < n; k++)
			param[i][k] = f[k] = (float)(base + rnd_real(-width, width));
		yoke_put(ps->var[i], f, yoke_bytes(ps->var[i]));
		free(f);
	}
}

static void undraw(const struct yk_parameters *ps)
{
	for (int i = 0; i < ps->count; i++)
		free(param[i]);
}

// ---- a mixture, token by token ----

// x [E] -> y [E]; p [experts]; counts selections
static void moe_ref(double *const *w, int experts, int active_experts, bool gated, const double *x,
		    double *y, double *p, double *count)
{
	double max = -INFINITY, sum = 0, chosen = 0;
	bool taken[64] = { false };
	int pick[64];
	for (int e = 0; e < experts; e++) {
		p[e] = w[1][e];
		for (int i = 0; i < E; i++)
			p[e] += x[i] * w[0][e * E + i];
		max = fmax(max, p[e]);
	}
	for (int e = 0; e < experts; e++)
		sum += p[e] = exp(p[e] - max);
	for (int e = 0; e < experts; e++)
		p[e] /= sum;
	for (int k = 0; k < active_experts; k++) {
		pick[k] = -1;
		for (int e = 0; e < experts; e++)
			if (!taken[e] && (pick[k] < 0 || p[e] > p[pick[k]]))
				pick[k] = e;
		taken[pick[k]] = true;
		chosen += p[pick[k]];
		count[pick[k]]++;
	}
	for (int e = 0; e < experts; e++)
		if (!taken[e])
			turns(p[pick[active_experts - 1]] - p[e]);
	for (int i = 0; i < E; i++)
		y[i] = 0;
	for (int k = 0; k < active_experts; k++) {
		const int e = pick[k];
		const double by = !gated ? 1 :
				  active_experts > 1 && active_experts < experts ? p[e] / chosen :
				  p[e];
		double h[2 * E];
		for (int j = 0; j < 2 * E; j++) {
			h[j] = w[3][e * 2 * E + j];
			for (int i = 0; i < E; i++)
				h[j] += x[i] * w[2][(e * E + i) * 2 * E + j];
			h[j] = fmax(turns(h[j]), 0);
		}
		for (int i = 0; i < E; i++) {
			double out = w[5][e * E + i];
			for (int j = 0; j < 2 * E; j++)
				out += h[j] * w[4][(e * 2 * E + j) * E + i];
			y[i] += by * out;
		}
	}
}

enum { TOKENS = 23 };

// Over all tokens: sum of weights times y, plus half of the balance loss.
static double mixture_ref(double *const *w, int experts, int active_experts, bool gated,
			  const double *x, const double *weight, double *y, double *balance,
			  double *share)
{
	double p[64], mean[64] = { 0 }, count[64] = { 0 }, sum = 0;
	for (int t = 0; t < TOKENS; t++) {
		moe_ref(w, experts, active_experts, gated, x + t * E, y + t * E, p, count);
		for (int e = 0; e < experts; e++)
			mean[e] += p[e] / TOKENS;
		for (int i = 0; i < E; i++)
			sum += weight[t * E + i] * y[t * E + i];
	}
	*balance = 0;
	for (int e = 0; e < experts; e++) {
		share[e] = count[e] / (TOKENS * active_experts);
		*balance += experts * share[e] * mean[e];
	}
	return sum + *balance / 2;
}

// one: a bias sends all tokens to expert 2
static void mixture(int active_experts, bool gated, bool one)
{
	struct yk_parameters ps = { 0 };
	struct yk_network n = { .by_row = false };
	double x[TOKENS * E], weight[TOKENS * E], y[TOKENS * E], got[TOKENS * E], balance, share[X],
		other[TOKENS * E], b2, s2[X], differences[60], slopes[60];
	float fx[TOKENS * E], fw[TOKENS * E], fy[TOKENS * E], fb, fs[X];
	char what[96];
	yk_moe_parameters(&ps, E, X, "");
	draw(&ps, 0.7);
	snprintf(what, sizeof what, "active_experts %d%s%s", active_experts,
		 gated ? "" : ", gate=none", one ? ", one expert takes all" : "");
	if (one) {
		float bias[X] = { 0, 0, 40, 0 };
		for (int e = 0; e < X; e++)
			param[1][e] = bias[e];
		yoke_put(ps.var[1], bias, sizeof bias);
	}
	do {
		for (int i = 0; i < TOKENS * E; i++) {
			x[i] = fx[i] = (float)rnd_real(-1, 1);
			weight[i] = fw[i] = (float)rnd_real(-1, 1);
		}
		margin = INFINITY;
		mixture_ref(param, X, active_experts, gated, x, weight, y, &balance, share);
	} while (margin < FAR);
	yoke_scope *s = yoke_scope_begin("test");
	const struct yk_moe m = { .embed = E,
				  .experts = X,
				  .active_experts = active_experts,
				  .gated = gated,
				  .var = ps.var };
	yoke_tensor *xt = yoke_from(yoke_f32, 3, (int64_t[]){ 1, TOKENS, E }, fx), *bt, *st, *g[8],
		    *of[8] = { xt };
	yoke_scope *inner = yoke_scope_begin("layer");
	yoke_tensor *yt = yoke_lift(yk_moe(&n, &m, xt, &bt, &st));
	yoke_scope_end(inner);
	yoke_tensor *loss = yoke_add(
		yoke_sum(yoke_mul(yt, yoke_from(yoke_f32, 3, (int64_t[]){ 1, TOKENS, E }, fw)),
			 YOKE_ALL),
		yoke_mul(bt, yoke_const(0.5)));
	for (int i = 0; i < ps.count; i++)
		of[i + 1] = ps.var[i];
	yoke_grad(loss, ps.count + 1, of, g);
	yoke_eval(3, (yoke_tensor *[]){ yt, bt, st });
	memset(fy, 0xff, sizeof fy);
	yoke_read(yt, fy, sizeof fy);
	yoke_read(bt, &fb, sizeof fb);
	yoke_read(st, fs, sizeof fs);
	bool even = true;
	for (int i = 0; i < TOKENS * E; i++)
		got[i] = fy[i];
	for (int e = 0; e < X; e++)
		even &= fabs((double)fs[e] - share[e]) < 1e-6;
	near(got, y, TOKENS * E, 1e-5, 1, what);
	ok(fabs((double)fb - balance) < 1e-5 && even, "%s: balance %.4f, want %.4f; shares", what,
	   (double)fb, balance);
	int count = 0;
	for (int i = 0; i <= ps.count; i++) {
		double *v = i ? param[i - 1] : x;
		const int64_t all = yoke_count(of[i]);
		float *slope = malloc((size_t)all * sizeof *slope);
		memset(slope, 0xff, (size_t)all * sizeof *slope);
		yoke_read(g[i], slope, (size_t)all * sizeof *slope);
		for (int k = 0; k < 5; k++, count++) {
			const int64_t at = rnd_int(0, all - 1);
			const double was = v[at], h = 1e-6;
			v[at] = was + h;
			double d = mixture_ref(param, X, active_experts, gated, x, weight, other,
					       &b2, s2);
			v[at] = was - h;
			d -= mixture_ref(param, X, active_experts, gated, x, weight, other, &b2,
					 s2);
			v[at] = was;
			differences[count] = d / (2 * h);
			slopes[count] = slope[at];
		}
		free(slope);
	}
	snprintf(what + strlen(what), sizeof what - strlen(what), ": gradients");
	near(slopes, differences, (size_t)count, 2e-4, 1, what);
	ok(yoke_scope_end(s) == 0, "no error %s", yoke_error());
	yoke_error_clear();
	undraw(&ps);
	yk_parameters_fini(&ps);
}

// The balance loss is 1 for equal token counts and equal probabilities.
static void balanced(void)
{
	struct yk_parameters ps = { 0 };
	struct yk_network n = { .by_row = false };
	float x[X * E] = { 0 }, w[X * E] = { 0 }, balance = NAN;
	yk_moe_parameters(&ps, E, X, "");
	for (int e = 0; e < X; e++)
		x[e * E + e] = w[e * E + e] = 3; // token e goes to expert e
	yoke_put(ps.var[0], w, sizeof w);
	yoke_scope *s = yoke_scope_begin("test"), *inner = yoke_scope_begin("layer");
	const struct yk_moe m = {
		.embed = E, .experts = X, .active_experts = 1, .gated = true, .var = ps.var
	};
	yoke_tensor *bt, *st;
	yk_moe(&n, &m, yoke_from(yoke_f32, 2, (int64_t[]){ X, E }, x), &bt, &st);
	yoke_scope_end(inner);
	yoke_read(bt, &balance, sizeof balance);
	yoke_scope_end(s);
	ok(fabs((double)balance - 1) < 1e-6, "balance of even experts: %.7g", (double)balance);
	yk_parameters_fini(&ps);
}

static void groups_refused(void)
{
	static const int64_t bad[][3] = { { 0, 3, 2 }, { 0, 2, 5 }, { -1, 2, 4 } };
	const float x[16] = { 0 };
	for (int i = 0; i < 3; i++) {
		float y[8];
		yoke_scope *s = yoke_scope_begin("refused");
		yoke_tensor *t =
			yoke_grouped_matmul(yoke_from(yoke_f32, 2, (int64_t[]){ 4, 2 }, x),
					    yoke_from(yoke_f32, 3, (int64_t[]){ 2, 2, 2 }, x),
					    yoke_from(yoke_i64, 1, (int64_t[]){ 3 }, bad[i]));
		int e = yoke_read(t, y, sizeof y);
		ok(e == YOKE_ERANGE, "groups %lld, %lld, %lld: %s", (long long)bad[i][0],
		   (long long)bad[i][1], (long long)bad[i][2], yoke_error());
		yoke_error_clear();
		yoke_scope_end(s);
		yoke_error_clear();
	}
	yoke_tensor *none = yoke_grouped_matmul(yoke_from(yoke_f32, 2, (int64_t[]){ 4, 2 }, x),
						yoke_from(yoke_f32, 3, (int64_t[]){ 2, 3, 2 }, x),
						yoke_from(yoke_i64, 1, (int64_t[]){ 3 }, bad[0]));
	ok(!none && yoke_error_code() == YOKE_ESHAPE, "shapes: %s", yoke_error());
	yoke_error_clear();
}

// ---- the model ----

static struct yk_model_shape shape_of(bool both, int64_t context)
{
	struct yk_model_shape s = { .vocab = V,
				    .context = context,
				    .layers = L,
				    .embed = E,
				    .experts = X,
				    .active_experts = 2 };
	s.balance = 0.3;
	s.eta = 0.7;
	s.v_max = 0.9; // some of the potentials are outside the clamp
	s.feature_clamp = 1.1;
	s.bk_side = both;
	s.bk_sweeps = -1;
	s.bk_blend = 0.5;
	return s;
}

static void norm_row(const double *x, const double *w, const double *b, double *y)
{
	double mean = 0, var = 0;
	for (int i = 0; i < E; i++)
		mean += x[i] / E;
	for (int i = 0; i < E; i++)
		var += (x[i] - mean) * (x[i] - mean) / E;
	for (int i = 0; i < E; i++)
		y[i] = (x[i] - mean) / sqrt(var + 1e-5) * w[i] + b[i];
}

// ids [rows, T] -> logits [rows, T, V] and the sum of balances
static double model_ref(const struct yk_model_shape *s, const int32_t *ids, int rows, int T,
			double *logits)
{
	double h[B * C][E], f[B * C][E], x[E], p[X], balances = 0;
	for (int t = 0; t < rows * T; t++)
		for (int i = 0; i < E; i++)
			h[t][i] = param[0][ids[t] * E + i] + param[1][t % T * E + i];
	for (int l = 0; l < L; l++) {
		double *const *w = param + 2 + 13 * l, mean[X] = { 0 }, count[X] = { 0 };
		for (int t = 0; t < rows * T; t++) {
			norm_row(h[t], w[0], w[1], x);
			moe_ref(w + 2, X, (int)s->active_experts, true, x, f[t], p, count);
			for (int e = 0; e < X; e++)
				mean[e] += p[e] / (rows * T);
		}
		for (int e = 0; e < X; e++)
			balances += X * count[e] / (double)(rows * T * s->active_experts) * mean[e];
		for (int r = 0; r < rows; r++) {
			double complex alpha[C], up[C], down[C];
			for (int t = 0; t < T; t++) {
				double v = w[9][0];
				for (int i = 0; i < E; i++)
					v += f[r * T + t][i] * w[8][i];
				turns(fabs(v) - s->v_max);
				alpha[t] = CMPLX(fmin(s->v_max, fmax(-s->v_max, v)) - 2, -s->eta);
				up[t] = alpha[t] - (t ? 1 / up[t - 1] : 0);
			}
			for (int t = T - 1; t >= 0; t--)
				down[t] = alpha[t] - (t < T - 1 ? 1 / down[t + 1] : 0);
			for (int t = 0; t < T; t++) {
				const double complex g =
					1 / (s->bk_side != 0 ? up[t] + down[t] - alpha[t] : up[t]);
				const double c = s->feature_clamp, re = fmin(c, fmax(-c, creal(g))),
					     im = fmin(c, fmax(-c, cimag(g)));
				turns(fabs(creal(g)) - c);
				turns(fabs(cimag(g)) - c);
				for (int i = 0; i < E; i++)
					h[r * T + t][i] +=
						f[r * T + t][i] +
						w[12][0] * (re * w[10][2 * i] +
							    im * w[10][2 * i + 1] + w[11][i]);
			}
		}
	}
	double *const *last = param + 2 + 13 * L;
	for (int t = 0; t < rows * T; t++) {
		norm_row(h[t], last[0], last[1], x);
		for (int v = 0; v < V; v++) {
			logits[t * V + v] = last[3][v];
			for (int i = 0; i < E; i++)
				logits[t * V + v] += x[i] * last[2][v * E + i];
		}
	}
	return balances;
}

static double loss_ref(const struct yk_model_shape *s, const int32_t *ids, const int32_t *targets,
		       int T)
{
	double logits[B * C * V], loss = s->balance * model_ref(s, ids, B, T, logits);
	for (int t = 0; t < B * T; t++) {
		double sum = 0;
		for (int v = 0; v < V; v++)
			sum += exp(logits[t * V + v]);
		loss += (log(sum) - logits[t * V + targets[t]]) / (B * T);
	}
	return loss;
}

static void model(bool both)
{
	const struct yk_model_shape shape = shape_of(both, C);
	const char *name = both ? "both" : "left";
	struct yk_network *n = NULL;
	int32_t ids[B * C], targets[B * C];
	double want[B * C * V], got[B * C * V], differences[200], slopes[200];
	float logits[B * C * V], again[B * C * V], loss = NAN, shares[L * X], sum = 0;
	yoke_tensor *g[LIMIT];
	if (!ok(!yk_network_new(&yk_model_bk, &shape, &n) && n->params.count == 6 + 13 * L,
		"%s: made %s", name, yoke_error()))
		return;
	n->shares = yoke_keep(yoke_variable("shares", yoke_f32, 2, (int64_t[]){ L, X }));
	draw(&n->params, 0.5);
	do {
		for (int i = 0; i < B * C; i++) {
			ids[i] = (int32_t)rnd_int(0, V - 1);
			targets[i] = (int32_t)rnd_int(0, V - 1);
		}
		margin = INFINITY;
		model_ref(&shape, ids, B, C, want);
	} while (margin < FAR);
	yoke_scope *s = yoke_scope_begin("test");
	const int64_t dims[] = { B, C };
	yoke_tensor *it = yoke_from(yoke_i32, 2, dims, ids);
	yoke_read(n->model->logits(n, yk_network_forward(n, it, 0)), logits, sizeof logits);
	for (int i = 0; i < B * C * V; i++)
		got[i] = logits[i];
	near(got, want, B * C * V, 1e-4, 1, both ? "both: logits" : "left: logits");
	yoke_tensor *y = n->model->loss(n, it, yoke_from(yoke_i32, 2, dims, targets), 0);
	yoke_grad(y, n->params.count, n->params.var, g);
	for (int i = 0; i < n->params.count; i++)
		yoke_keep(g[i]);
	yoke_read(y, &loss, sizeof loss);
	yoke_read(n->shares, shares, sizeof shares);
	for (int i = 0; i < L * X; i++)
		sum += shares[i];
	ok(fabs((double)loss - loss_ref(&shape, ids, targets, C)) < 1e-4 &&
		   fabs((double)sum - L) < 1e-5,
	   "%s: loss %.6f, shares of %.4g", name, (double)loss, (double)sum);
	int count = 0;
	for (int i = 0; i < n->params.count; i++) {
		const int64_t all = yoke_count(g[i]);
		float *slope = malloc((size_t)all * sizeof *slope);
		yoke_read(g[i], slope, (size_t)all * sizeof *slope);
		for (int k = 0; k < 2; k++, count++) {
			const int64_t at = rnd_int(0, all - 1);
			const double was = param[i][at], h = 1e-6;
			param[i][at] = was + h;
			double d = loss_ref(&shape, ids, targets, C);
			param[i][at] = was - h;
			d -= loss_ref(&shape, ids, targets, C);
			param[i][at] = was;
			differences[count] = d / (2 * h);
			slopes[count] = slope[at];
		}
		free(slope);
		yoke_free(g[i]);
	}
	near(slopes, differences, (size_t)count, 1e-3, 0.1,
	     both ? "both: gradients" : "left: gradients");
	// uses all other tokens for the last: for a single one the clamp may make potentials equal
	int changed = 0;
	for (int k = 1; k < V; k++) {
		ids[C - 1] = (ids[C - 1] + 1) % V;
		yoke_read(n->model->logits(
				  n, yk_network_forward(n, yoke_from(yoke_i32, 2, dims, ids), 0)),
			  again, sizeof again);
		changed += memcmp(logits, again, (C - 1) * V * sizeof *logits) != 0;
	}
	ok(!changed == !both, "%s: %d of %d tokens affect earlier predictions", name, changed,
	   V - 1);
	ok(yoke_scope_end(s) == 0, "no error %s", yoke_error());
	yoke_error_clear();
	undraw(&n->params);
	yk_network_free(n);
}

// One token after another, and chunks, give the same as all at once. In mixed precision a token has
// the same experts as in f32 in the first layer, whose input is the same.
static void routed(void)
{
	enum { ROWS = 64 };
	const struct yk_model_shape shape = shape_of(false, C);
	struct yk_network *n = NULL;
	float share[2][L * X] = { { NAN }, { NAN } };
	int32_t ids[ROWS * C];
	bool same = true;
	if (!ok(!yk_network_new(&yk_model_bk, &shape, &n), "made %s", yoke_error()))
		return;
	n->shares = yoke_keep(yoke_variable("shares", yoke_f32, 2, (int64_t[]){ L, X }));
	draw(&n->params, 0.02); // probabilities close to each other
	for (int i = 0; i < ROWS * C; i++)
		ids[i] = (int32_t)rnd_int(0, V - 1);
	for (int mixed = 0; mixed < 2; mixed++) {
		yoke_scope *s = yoke_scope_begin("test");
		if (mixed)
			yoke_autocast(yoke_bf16, NULL);
		yoke_tensor *it = yoke_from(yoke_i32, 2, (int64_t[]){ ROWS, C }, ids);
		yoke_eval(1, (yoke_tensor *[]){ n->model->loss(n, it, it, 0) });
		yoke_read(n->shares, share[mixed], sizeof share[mixed]);
		yoke_scope_end(s);
	}
	for (int i = 0; i < X; i++)
		same &= share[0][i] == share[1][i];
	ok(same,
	   "mixed precision: expert fractions of the first layer %.4g %.4g, in f32 %.4g %.4g %s",
	   (double)share[1][0], (double)share[1][1], (double)share[0][0], (double)share[0][1],
	   yoke_error());
	yoke_free(n->shares);
	n->shares = NULL;
	undraw(&n->params);
	yk_network_free(n);
}

static void carried(void)
{
	enum { N = 2, T = 24, PIECES = 9 };
	static const int64_t piece[PIECES] = { 6, 1, 1, 1, 5, 1, 1, 1, 7 };
	struct yk_model_shape shape = shape_of(false, T);
	struct yk_network *n = NULL;
	struct yk_network_cache *c[N] = { NULL };
	static float want[N][T][V], row[N * T * V];
	int32_t ids[N * T], part[N * T];
	double worst = 0;
	shape.v_max = 3;
	shape.feature_clamp = 10;
	bool good = !yk_network_new(&yk_model_bk, &shape, &n);
	for (int i = 0; i < N && good; i++)
		good = !yk_network_cache_new(n, n->shape.context, &c[i]);
	if (!ok(good, "a cache %s", yoke_error()))
		return;
	draw(&n->params, 0.5);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < N * T; i++)
			ids[i] = (int32_t)rnd_int(0, V - 1);
		yoke_scope *s = yoke_scope_begin("window");
		yoke_read(
			n->model->logits(
				n, yk_network_forward(
					   n, yoke_from(yoke_i32, 2, (int64_t[]){ N, T }, ids), 0)),
			want, sizeof want);
		yoke_scope_end(s);
		for (int i = 0; i < N; i++)
			c[i]->length = 0;
		for (int k = 0, at = 0; k < PIECES; at += (int)piece[k++]) {
			const int64_t t = piece[k];
			for (int i = 0; i < N * t; i++)
				part[i] = ids[i / t * T + at + i % t];
			yoke_scope *p = yoke_scope_begin("piece");
			yoke_tensor *h = yk_network_extend(
				n, c, yoke_from(yoke_i32, 2, (int64_t[]){ N, t }, part));
			memset(row, 0xff, sizeof row);
			yoke_read(n->model->logits(n, h), row, (size_t)(N * t * V) * sizeof *row);
			yoke_scope_end(p);
			for (int i = 0; i < N * t * V; i++) {
				const double e =
					fabs((double)row[i] -
					     (double)want[i / V / t][at + i / V % t][i % V]);
				worst = e <= worst ? worst : e;
			}
		}
	}
	ok(worst < 1e-5, "token-by-token logits are %.2g off", worst);
	for (int i = 0; i < N; i++)
		yk_network_cache_free(c[i]);
	undraw(&n->params);
	yk_network_free(n);
	shape = shape_of(true, T);
	good = !yk_network_new(&yk_model_bk, &shape, &n) &&
	       !yk_network_cache_new(n, n->shape.context, &c[0]);
	yoke_scope *s = yoke_scope_begin("refused");
	good = good && !yk_network_extend(n, c, yoke_from(yoke_i32, 2, (int64_t[]){ 1, 1 }, ids));
	ok(good && yoke_error_code() == YOKE_EINVAL,
	   "a model with a leak of later tokens is detected: %s", yoke_error());
	yoke_error_clear();
	yoke_scope_end(s);
	yoke_error_clear();
	yk_network_cache_free(c[0]);
	yk_network_free(n);
}

// Random bits, each to be predicted one token late: only the branch knows the previous token.
// Returns the last loss.
static double late(bool cut, int steps, uint64_t seed)
{
	enum { ROWS = 8, T = 16 };
	struct yk_model_shape shape = { .vocab = 2,
					.context = T,
					.layers = 1,
					.embed = 16,
					.experts = 2,
					.active_experts = 1 };
	struct yk_network *n = NULL;
	yoke_tensor *g[32];
	float loss = NAN, average = 1;
	// so few steps suffice only from some initial values: these seeds
	const uint64_t state = tap_state;
	tap_state = seed;
	shape.eta = 1;
	shape.v_max = 3;
	shape.feature_clamp = 10;
	shape.bk_sweeps = -1;
	if (yk_network_new(&yk_model_bk, &shape, &n) || yk_parameters_draw(&n->params, seed))
		return NAN;
	yoke_optim *o = yoke_optim_new("adam", "lr=0.01");
	const char *names[32];
	const int64_t dims[] = { ROWS, T };
	const int scale = 2 + 12; // the last parameter of the layer
	for (int i = 0; i < n->params.count; i++)
		names[i] = n->params.row[i].name;
	yoke_optim_add(o, n->params.count, n->params.var, names, NULL);
	for (int k = 0; k < steps && average > 0.09f; k++) {
		int32_t ids[ROWS * T], targets[ROWS * T];
		const float zero = 0;
		for (int i = 0; i < ROWS * T; i++) {
			ids[i] = (int32_t)rnd_int(0, 1);
			targets[i] = i % T ? ids[i - 1] : -1; // none: it is left out
		}
		if (cut)
			yoke_put(n->params.var[scale], &zero, sizeof zero);
		yoke_scope *s = yoke_scope_begin("step");
		yoke_tensor *y = n->model->loss(n, yoke_from(yoke_i32, 2, dims, ids),
						yoke_from(yoke_i32, 2, dims, targets), 0);
		yoke_grad(y, n->params.count, n->params.var, g);
		yoke_optim_step(o, n->params.count, g, NULL);
		yoke_read(y, &loss, sizeof loss);
		yoke_scope_end(s);
		average += 0.1f * (loss - average);
	}
	yoke_optim_free(o);
	yk_network_free(n);
	tap_state = state;
	return (double)average;
}

static void refused(struct yk_model_shape s, const char *part)
{
	struct yk_network *n = NULL;
	int e = yk_network_new(&yk_model_bk, &s, &n);
	ok(e == YOKE_EINVAL && !n && strstr(yoke_error(), part), "refused: %s", yoke_error());
	yoke_error_clear();
}

static void rules(void)
{
	struct yk_model_shape s = shape_of(false, 128), bad, back = { 0 };
	const struct yk_model *which = NULL;
	s.vocab = 30000, s.embed = 64, s.layers = 4, s.active_experts = 1;
	ok(yk_model_elements(&yk_model_bk, &s) == 4146120, "%lld parameters",
	   (long long)yk_model_elements(&yk_model_bk, &s));
	bad = s, bad.active_experts = 5;
	refused(bad, "active_experts=5 is more than experts=4");
	bad = s, bad.gate = 1, bad.active_experts = 2;
	refused(bad, "gate=none takes active_experts=1");
	bad = s, bad.eta = 0;
	refused(bad, "eta=0");
	s.bk_side = 1, s.bk_tier = 3, s.bk_gradient = 4;
	json_t *o = yk_model_describe(&yk_model_bk, &s);
	ok(o && !yk_model_parse(o, "m", &which, &back) && which == &yk_model_bk &&
		   !memcmp(&s, &back, sizeof s) && json_is_true(json_object_get(o, "leaks")),
	   "the manifest describes the model and restores it %s", yoke_error());
	json_object_set_new(o, "bk_tier", json_string("f8"));
	int e = yk_model_parse(o, "m", &which, &back);
	ok(e == YOKE_EFORMAT && strstr(yoke_error(), "f32 f64 mixed f16 bf16"), "%s", yoke_error());
	yoke_error_clear();
	json_decref(o);
}

int main(void)
{
	tap_seed();
	for (int k = 1; k <= X; k *= 2)
		mixture(k, true, false);
	mixture(1, false, false);
	mixture(1, true, true);
	balanced();
	groups_refused();
	model(false);
	model(true);
	routed();
	carried();
	rules();
	double with = 1;
	// one of several initializations stays at its start
	for (uint64_t seed = 1; seed < 6 && !(with < 0.1); seed++)
		with = late(false, 1000, seed);
	const double without = late(true, tap_long() ? 1000 : 120, 1);
	ok(with < 0.1, "with the resolvent branch, the delayed bit is learned: loss %.3f", with);
	ok(without >= 0.68, "without the branch it is not: loss %.3f", without);
	return done();
}
