// SPDX-License-Identifier: Apache-2.0
// Recurrent networks of several layers in both directions against loops in float64, with lengths;
// gradients through all of it against differences; CTC against the sum over all alignments; errors.
// The steps' kernels have cases of their own in src/lib/conform/cases_recurrent.c.
#include "config.h"

#include "tap.h"
#include "yoke-math.h"
#include "yoke-nn.h"

enum { T = 5, B = 3, I = 4, U = 6, P = 2 };
static const int64_t length[B] = { 5, 2, 4 };

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

// y [T,B,2 U] columns at .. of x [T,B,in], from states h, c [B,U], which become the last ones
static void layer(int cell, const double *x, int64_t in, const double *const w[4], bool reverse,
		  double *h, double *c, double *y, int at)
{
	const int64_t gates = cell == YOKE_CELL_LSTM ? 4 : cell == YOKE_CELL_GRU ? 3 : 1;
	for (int64_t s = 0; s < T; s++)
		for (int64_t b = 0; b < B; b++) {
			const int64_t t = reverse ? T - 1 - s : s;
			double p[4 * U], q[4 * U];
			if (t >= length[b])
				continue;
			for (int64_t k = 0; k < gates * U; k++) {
				p[k] = w[2][k];
				q[k] = w[3][k];
				for (int64_t i = 0; i < in; i++)
					p[k] += x[(t * B + b) * in + i] * w[0][k * in + i];
				for (int64_t u = 0; u < U; u++)
					q[k] += h[b * U + u] * w[1][k * U + u];
			}
			for (int64_t u = 0; u < U; u++) {
				double *to = &h[b * U + u], *state = &c[b * U + u];
				if (cell == YOKE_CELL_LSTM) {
					*state = sigmoid(p[U + u] + q[U + u]) * *state +
						 sigmoid(p[u] + q[u]) *
							 tanh(p[2 * U + u] + q[2 * U + u]);
					*to = sigmoid(p[3 * U + u] + q[3 * U + u]) * tanh(*state);
				} else if (cell == YOKE_CELL_GRU) {
					const double r = sigmoid(p[u] + q[u]),
						     z = sigmoid(p[U + u] + q[U + u]);
					*to = (1 - z) * tanh(p[2 * U + u] + r * q[2 * U + u]) +
					      z * *to;
				} else {
					*to = cell == YOKE_CELL_TANH ? tanh(p[u] + q[u]) :
								       fmax(p[u] + q[u], 0);
				}
				y[(t * B + b) * 2 * U + at + u] = *to;
			}
		}
}

static yoke_module *net_of(int cell, int batch_first)
{
	const struct yoke_nn_recurrent_options o = { .size = sizeof o,
						     .in = I,
						     .units = U,
						     .layers = 2,
						     .cell = cell,
						     .bidirectional = 1,
						     .batch_first = batch_first };
	return yoke_nn_recurrent(&o);
}

static void test_cell(int cell, const char *name)
{
	static double x[T * B * I], h[4 * B * U], c[4 * B * U], one[T * B * 2 * U],
		two[T * B * 2 * U], got[T * B * 2 * U];
	double w[16][4 * U * 2 * U];
	const int64_t xd[3] = { T, B, I }, hd[3] = { 4, B, U };
	char what[100];
	yoke_module *net = net_of(cell, 0);
	yoke_module_cast(net, yoke_f64);
	for (int i = 0; i < 16; i++) {
		yoke_tensor *p = yoke_module_own(net, i);
		int64_t n = 1;
		for (int k = 0; k < yoke_rank(p); k++)
			n *= yoke_dim(p, k);
		yoke_read(p, w[i], (size_t)n * sizeof **w);
	}
	for (int i = 0; i < T * B * I; i++)
		x[i] = rnd_real(-1, 1);
	for (int i = 0; i < 4 * B * U; i++) {
		h[i] = rnd_real(-1, 1);
		c[i] = rnd_real(-1, 1);
	}
	yoke_scope *s = yoke_scope_begin("test");
	yoke_tensor *in[4] = { yoke_from(yoke_f64, 3, xd, x),
			       yoke_from(yoke_i64, 1, hd + 1, length),
			       yoke_from(yoke_f64, 3, hd, h), yoke_from(yoke_f64, 3, hd, c) };
	yoke_tensor *out[3];
	ok(!yoke_forward(net, 4, in, 3, out), "%s: forward%s", name, yoke_error());
	memset(one, 0, sizeof one);
	memset(two, 0, sizeof two);
	for (int d = 0; d < 2; d++)
		layer(cell, x, I,
		      (const double *const[]){ w[4 * d], w[4 * d + 1], w[4 * d + 2], w[4 * d + 3] },
		      d, h + d * B * U, c + d * B * U, one, d * U);
	for (int d = 2; d < 4; d++)
		layer(cell, one, 2 * U,
		      (const double *const[]){ w[4 * d], w[4 * d + 1], w[4 * d + 2], w[4 * d + 3] },
		      d == 3, h + d * B * U, c + d * B * U, two, (d - 2) * U);
	memset(got, 0xff, sizeof got);
	yoke_read(out[0], got, sizeof two);
	snprintf(what, sizeof what, "%s: two layers in both directions", name);
	near(got, two, T * B * 2 * U, 1e-12, 1, what);
	yoke_read(out[1], got, sizeof h);
	snprintf(what, sizeof what, "%s: the last states", name);
	near(got, h, 4 * B * U, 1e-12, 1, what);
	if (cell == YOKE_CELL_LSTM) {
		yoke_read(out[2], got, sizeof c);
		near(got, c, 4 * B * U, 1e-12, 1, "lstm: the last cells");
	}
	yoke_module *other = net_of(cell, 1);
	yoke_module_cast(other, yoke_f64);
	for (int i = 0; i < 16; i++)
		yoke_assign(yoke_module_own(other, i), yoke_module_own(net, i));
	in[0] = yoke_permute(in[0], (int[]){ 1, 0, 2 });
	ok(!yoke_forward(other, 2, in, 1, out) && yoke_dim(out[0], 0) == B &&
		   yoke_dim(out[0], 1) == T,
	   "%s: rows first%s", name, yoke_error());
	yoke_scope_end(s);
	yoke_module_free(other);
	yoke_module_free(net);
}

// h [B,P], c [B,U]: a step of the LSTM with weights w_ih, w_hh, b_ih, b_hh, w_hr for row b
static void projected_step(const double *const w[5], const double *x, double *h, double *c)
{
	double g[4 * U], o[U];
	for (int k = 0; k < 4 * U; k++) {
		g[k] = w[2][k] + w[3][k];
		for (int i = 0; i < I; i++)
			g[k] += x[i] * w[0][k * I + i];
		for (int p = 0; p < P; p++)
			g[k] += h[p] * w[1][k * P + p];
	}
	for (int u = 0; u < U; u++) {
		c[u] = sigmoid(g[U + u]) * c[u] + sigmoid(g[u]) * tanh(g[2 * U + u]);
		o[u] = sigmoid(g[3 * U + u]) * tanh(c[u]);
	}
	for (int p = 0; p < P; p++) {
		h[p] = 0;
		for (int u = 0; u < U; u++)
			h[p] += w[4][p * U + u] * o[u];
	}
}

// Both directions of one layer; the last row has no step at all
static void test_projected(const int64_t *lengths)
{
	const struct yoke_nn_recurrent_options o = { .size = sizeof o,
						     .in = I,
						     .units = U,
						     .proj = P,
						     .cell = YOKE_CELL_LSTM,
						     .bidirectional = 1 };
	static double w[10][4 * U * U], x[T * B * I], h[2 * B * P], c[2 * B * U], y[T * B * 2 * P],
		got[T * B * 2 * P];
	const int64_t hd[3] = { 2, B, P }, cd[3] = { 2, B, U };
	const char *name = lengths ? "lengths" : "all steps";
	yoke_module *net = yoke_nn_recurrent(&o);
	yoke_module_cast(net, yoke_f64);
	for (int i = 0; i < 10; i++)
		yoke_read(yoke_module_own(net, i), w[i],
			  (size_t)yoke_count(yoke_module_own(net, i)) * sizeof **w);
	for (int i = 0; i < T * B * I; i++)
		x[i] = rnd_real(-1, 1);
	for (int i = 0; i < 2 * B * P; i++)
		h[i] = rnd_real(-1, 1);
	for (int i = 0; i < 2 * B * U; i++)
		c[i] = rnd_real(-1, 1);
	yoke_scope *s = yoke_scope_begin("test");
	yoke_tensor *in[4] = { yoke_from(yoke_f64, 3, (int64_t[]){ T, B, I }, x),
			       lengths ? yoke_from(yoke_i64, 1, hd + 1, lengths) : YOKE_NONE,
			       yoke_from(yoke_f64, 3, hd, h), yoke_from(yoke_f64, 3, cd, c) };
	yoke_tensor *out[3];
	ok(!yoke_forward(net, 4, in, 3, out), "projected, %s: forward%s", name, yoke_error());
	memset(y, 0, sizeof y);
	for (int d = 0; d < 2; d++)
		for (int b = 0; b < B; b++) {
			const int64_t n = lengths ? lengths[b] : T;
			for (int64_t k = 0; k < n; k++) {
				const int64_t t = d ? n - 1 - k : k;
				const double *const all[5] = { w[5 * d], w[5 * d + 1], w[5 * d + 2],
							       w[5 * d + 3], w[5 * d + 4] };
				double *state = h + (d * B + b) * P;
				projected_step(all, x + (t * B + b) * I, state,
					       c + (d * B + b) * U);
				memcpy(y + (t * B + b) * 2 * P + d * P, state, P * sizeof *state);
			}
		}
	memset(got, 0xff, sizeof got);
	yoke_read(out[0], got, sizeof got);
	near(got, y, T * B * 2 * P, 1e-12, 1, "projected: results of both directions");
	yoke_read(out[1], got, sizeof h);
	near(got, h, 2 * B * P, 1e-12, 1,
	     "projected: the last states, those given in a row without steps");
	yoke_read(out[2], got, sizeof c);
	near(got, c, 2 * B * U, 1e-12, 1, "projected: the last cells");
	yoke_scope_end(s);
	yoke_module_free(net);
}

// log of the sum over all alignments of `steps` classes that collapse to the labels
static double all_alignments(const double *x, int64_t classes, int64_t steps, const int64_t *labels,
			     int64_t n, int64_t blank)
{
	double sum = 0;
	int64_t count = 1;
	for (int64_t t = 0; t < steps; t++)
		count *= classes;
	for (int64_t path = 0; path < count; path++) {
		int64_t rest = path, last = -1, at = 0;
		double p = 0;
		bool fits = true;
		for (int64_t t = 0; t < steps; t++, rest /= classes) {
			const int64_t k = rest % classes;
			p += x[t * classes + k];
			if (k != blank && k != last) {
				fits &= at < n && labels[at] == k;
				at++;
			}
			last = k;
		}
		if (fits && at == n)
			sum += exp(p);
	}
	return -log(sum);
}

static void test_ctc(void)
{
	enum { STEPS = 6, N = 4, C = 3, S = 3 };
	static const int64_t targets[N][S] = { { 1, 2, 1 }, { 2, 2, 0 }, { 1, 1, 1 }, { 0, 0, 0 } },
			     labels[N] = { 3, 2, 3, 0 },
			     steps[N] = { 6, 4, 4, 5 }; // 1 1 1 does not fit 4 steps
	static double x[STEPS][N][C], rows[STEPS][C], got[STEPS * N * C], want[N];
	const int64_t n = N;
	yoke_scope *s = yoke_scope_begin("test");
	for (int t = 0; t < STEPS; t++)
		for (int i = 0; i < N; i++)
			for (int c = 0; c < C; c++)
				x[t][i][c] = rnd_real(-2, 0);
	yoke_tensor *v = yoke_from(yoke_f64, 3, (int64_t[]){ STEPS, N, C }, x),
		    *to = yoke_from(yoke_i64, 2, (int64_t[]){ N, S }, targets);
	yoke_tensor *st = yoke_from(yoke_i64, 1, &n, steps),
		    *la = yoke_from(yoke_i64, 1, &n, labels), *g;
	for (int i = 0; i < N; i++) {
		for (int t = 0; t < STEPS; t++)
			memcpy(rows[t], x[t][i], sizeof rows[t]);
		want[i] = all_alignments(rows[0], C, steps[i], targets[i], labels[i], 0);
	}
	yoke_read(yoke_loss_ctc(v, to, st, la, 0, YOKE_LOSS_NONE, 0), got, sizeof want);
	near(got, want, N, 1e-13, 1, "ctc: the sum over all alignments");
	ok(isinf(got[2]), "targets that do not fit have an infinite loss");
	want[2] = 0;
	yoke_tensor *loss = yoke_loss_ctc(v, to, st, la, 0, YOKE_LOSS_SUM, 1);
	const double sum = want[0] + want[1] + want[3];
	yoke_read(loss, got, sizeof *got);
	near(got, &sum, 1, 1e-13, 1, "or 0, by zero_infinity");
	const double mean = (want[0] / 3 + want[1] / 2 + want[3]) / 4;
	yoke_read(yoke_loss_ctc(v, to, st, la, 0, YOKE_LOSS_MEAN, 1), got, sizeof *got);
	near(got, &mean, 1, 1e-13, 1, "the mean divides by the labels first");
	yoke_grad(loss, 1, &v, &g);
	yoke_read(g, got, sizeof got);
	bool zeros = true;
	for (int t = 0; t < STEPS; t++)
		for (int c = 0; c < C; c++)
			zeros &= got[(t * N + 2) * C + c] == 0 &&
				 (t < 4 || got[(t * N + 1) * C + c] == 0);
	ok(zeros, "the gradient is 0 after a sequence's steps, and where the loss was infinite");
	for (int i = 0; i < N; i++)
		x[steps[i] - 1][i][i % 2 ? 0 : targets[i][S - 1]] =
			NAN; // of the blank, or of the last label
	v = yoke_from(yoke_f64, 3, (int64_t[]){ STEPS, N, C }, x);
	for (int narrow = 0; narrow < 2; narrow++) {
		loss = yoke_loss_ctc(narrow ? yoke_cast(v, yoke_f32) : v, to, st, la, 0,
				     YOKE_LOSS_NONE, 1);
		yoke_read(yoke_cast(loss, yoke_f64), got, sizeof want);
		ok(isnan(got[0]) && isnan(got[1]) && isnan(got[3]),
		   "%s: probabilities of NaN give a loss of NaN: %g %g %g", narrow ? "f32" : "f64",
		   got[0], got[1], got[3]);
	}
	yoke_scope_end(s);
}

static void fails(yoke_tensor *t, int code, const char *what)
{
	ok(!t && yoke_error_code() == code, "%s: %s", what, yoke_error());
	yoke_error_clear();
}

static yoke_tensor *zeros(int rank, int64_t a, int64_t b, int64_t c)
{
	return yoke_full(yoke_f32, rank, (int64_t[]){ a, b, c }, 0);
}

static void test_errors(void)
{
	yoke_scope *s = yoke_scope_begin("test");
	struct yoke_recurrent o = { .size = sizeof o,
				    .w_ih = zeros(2, 12, 4, 0),
				    .w_hh = zeros(2, 12, 3, 0),
				    .cell = YOKE_CELL_LSTM };
	yoke_tensor *x = zeros(3, 2, 5, 4);
	fails(yoke_recurrent(zeros(3, 2, 5, 3), &o, YOKE_NONE, YOKE_NONE, YOKE_NONE, NULL, NULL),
	      YOKE_ESHAPE, "weights for other inputs");
	fails(yoke_recurrent(x, &o, zeros(2, 4, 3, 0), YOKE_NONE, YOKE_NONE, NULL, NULL),
	      YOKE_ESHAPE, "a state of other rows");
	fails(yoke_recurrent(x, &o, YOKE_NONE, YOKE_NONE, zeros(1, 5, 0, 0), NULL, NULL),
	      YOKE_ESHAPE, "lengths of f32");
	fails(yoke_recurrent(yoke_cast(x, yoke_f64), &o, YOKE_NONE, YOKE_NONE, YOKE_NONE, NULL,
			     NULL),
	      YOKE_EDTYPE, "weights of another dtype");
	o.w_hr = zeros(2, 2, 3, 0);
	fails(yoke_recurrent(x, &o, YOKE_NONE, YOKE_NONE, YOKE_NONE, NULL, NULL), YOKE_ESHAPE,
	      "a projection to other states");
	o.w_hh = zeros(2, 12, 2, 0);
	fails(yoke_recurrent(x, &o, zeros(2, 5, 3, 0), YOKE_NONE, YOKE_NONE, NULL, NULL),
	      YOKE_ESHAPE, "a state as large as before its projection");
	o.cell = YOKE_CELL_TANH;
	o.w_ih = zeros(2, 3, 4, 0);
	o.w_hh = zeros(2, 3, 2, 0);
	fails(yoke_recurrent(x, &o, YOKE_NONE, YOKE_NONE, YOKE_NONE, NULL, NULL), YOKE_EINVAL,
	      "a projection of a cell without one");
	const struct yoke_nn_recurrent_options wide = {
		.size = sizeof wide, .in = 4, .units = 3, .proj = 3, .cell = YOKE_CELL_LSTM
	};
	ok(!yoke_nn_recurrent(&wide) && yoke_error_code() == YOKE_EINVAL,
	   "a projection to no fewer units: %s", yoke_error());
	yoke_error_clear();
	o = (struct yoke_recurrent){ .size = sizeof o,
				     .w_ih = zeros(2, 12, 4, 0),
				     .w_hh = zeros(2, 12, 3, 0),
				     .cell = YOKE_CELL_LSTM };
	o.b_ih = zeros(1, 3, 0, 0);
	fails(yoke_recurrent(x, &o, YOKE_NONE, YOKE_NONE, YOKE_NONE, NULL, NULL), YOKE_ESHAPE,
	      "a bias of another size");
	o.cell = 4;
	fails(yoke_recurrent(x, &o, YOKE_NONE, YOKE_NONE, YOKE_NONE, NULL, NULL), YOKE_EINVAL,
	      "no such cell");
	const int64_t two[2] = { 5, 1 }, n = 2, target[4] = { 1, 7, 1, 1 };
	yoke_tensor *p = zeros(3, 5, 2, 4),
		    *t = yoke_from(yoke_i64, 2, (int64_t[]){ 2, 2 }, target),
		    *steps = yoke_from(yoke_i64, 1, &n, two);
	yoke_tensor *loss = yoke_loss_ctc(p, t, steps, steps, 0, YOKE_LOSS_SUM, 0);
	float got;
	const int err = yoke_read(loss, &got, sizeof got);
	// GPUs report it after the operation
	ok(err == YOKE_ERANGE || err == YOKE_EFAILED, "more labels than targets: %s", yoke_error());
	yoke_error_clear();
	fails(yoke_loss_ctc(p, t, steps, steps, 4, YOKE_LOSS_SUM, 0), YOKE_ERANGE,
	      "a blank that is no class");
	fails(yoke_loss_ctc(p, yoke_cast(t, yoke_i32), steps, steps, 0, YOKE_LOSS_SUM, 0),
	      YOKE_EDTYPE, "targets of i32");
	yoke_scope_end(s);
}

int main(void)
{
	tap_seed();
	test_cell(YOKE_CELL_TANH, "tanh");
	test_cell(YOKE_CELL_RELU, "relu");
	test_cell(YOKE_CELL_LSTM, "lstm");
	test_cell(YOKE_CELL_GRU, "gru");
	test_projected(NULL);
	test_projected((int64_t[]){ 5, 2, 0 });
	test_ctc();
	test_errors();
	return done();
}
