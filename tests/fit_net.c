// SPDX-License-Identifier: Apache-2.0
// Tests yoke_fit: accumulated, clipped and scheduled steps against a float64 loop; a resumed run
// has the bits of an unbroken one; validation, end conditions, refused arguments.
#include "config.h"

#include <signal.h>

#include "tap.h"
#include "yoke-fit.h"

enum { ROWS = 8, IN = 3, PARTS = 64 };

static float data_x[PARTS][ROWS][IN], data_y[PARTS][ROWS];

struct run {
	double loss[64], lr[64], valid;
	int n, ends_at, raises_at, fails_at, over_at, valids, modes;
	yoke_module *net;
};

static int give(int64_t part, yoke_tensor **in)
{
	in[0] = yoke_from(yoke_f32, 2, (int64_t[]){ ROWS, IN }, data_x[part % PARTS]);
	in[1] = yoke_from(yoke_f32, 2, (int64_t[]){ ROWS, 1 }, data_y[part % PARTS]);
	return 2;
}

static int next(void *arg, int64_t part, int max, yoke_tensor **in)
{
	const struct run *r = arg;
	(void)max;
	if (r->over_at && part >= r->over_at)
		return 0;
	return r->fails_at && part >= r->fails_at ? YOKE_EIO : give(part, in);
}

static int valid(void *arg, int64_t number, int max, yoke_tensor **in)
{
	struct run *r = arg;
	(void)max;
	r->modes += yoke_module_training(r->net);
	r->valids++;
	return number < 2 ? give(60 + number, in) : 0;
}

static yoke_tensor *loss(void *arg, yoke_module *net, int n, yoke_tensor *const *in)
{
	(void)arg;
	return n == 2 ? yoke_mse(yoke_call(net, in[0]), in[1]) : NULL;
}

static int note(void *arg, const struct yoke_fit_step *s)
{
	struct run *r = arg;
	if (!isnan(s->valid)) {
		r->valid = s->valid;
		return 0;
	}
	if (s->step < 64) {
		r->loss[s->step] = s->loss;
		r->lr[s->step] = s->lr;
	}
	r->n++;
	if (s->step == r->raises_at)
		kill(getpid(), SIGINT);
	return s->step == r->ends_at;
}

static struct yoke_fit fit_of(struct run *r, yoke_module *net, yoke_optim *o, int64_t steps)
{
	r->net = net;
	return (struct yoke_fit){ .size = sizeof(struct yoke_fit),
				  .net = net,
				  .optim = o,
				  .steps = steps,
				  .next = next,
				  .loss = loss,
				  .log = note,
				  .arg = r,
				  .log_every = 1,
				  .seed = 5 };
}

// ---- beside a loop ----

// Reference: a linear layer by accumulated, clipped SGD with momentum and a warm-up, in float64.
static void reference(double *w, double *b, int steps, int accumulate, double *losses)
{
	double mw[IN] = { 0 }, mb = 0;
	for (int t = 1; t <= steps; t++) {
		double gw[IN] = { 0 }, gb = 0, sum = 0;
		for (int k = 0; k < accumulate; k++)
			for (int i = 0; i < ROWS; i++) {
				const float *x = data_x[((t - 1) * accumulate + k) % PARTS][i];
				double d = *b - data_y[((t - 1) * accumulate + k) % PARTS][i];
				for (int c = 0; c < IN; c++)
					d += w[c] * x[c];
				sum += d * d / ROWS / accumulate;
				for (int c = 0; c < IN; c++)
					gw[c] += 2 * d * x[c] / ROWS / accumulate;
				gb += 2 * d / ROWS / accumulate;
			}
		double norm = gb * gb;
		for (int c = 0; c < IN; c++)
			norm += gw[c] * gw[c];
		const double clip = fmin(1, 0.7 / (sqrt(norm) + 1e-6)),
			     lr = 0.05 * fmin(1, t / 4.0);
		for (int c = 0; c < IN; c++) {
			mw[c] = t == 1 ? gw[c] * clip : 0.9 * mw[c] + gw[c] * clip;
			w[c] -= lr * mw[c];
		}
		mb = t == 1 ? gb * clip : 0.9 * mb + gb * clip;
		*b -= lr * mb;
		losses[t] = sum;
	}
}

static void test_reference(int accumulate, const char *order)
{
	struct run r = { .ends_at = -1, .raises_at = -1 };
	float w[IN], b;
	double want[IN + 1], losses[64], got[IN + 1];
	yoke_module *net = yoke_nn_linear(IN, 1, 1);
	yoke_read(yoke_module_find(net, "weight"), w, sizeof w);
	yoke_read(yoke_module_find(net, "bias"), &b, sizeof b);
	for (int c = 0; c < IN; c++)
		want[c] = w[c];
	want[IN] = b;
	yoke_optim *o = yoke_optim_new("sgd", "lr=0.05 momentum=0.9 clip=0.7 warmup=4");
	struct yoke_fit f = fit_of(&r, net, o, 12);
	struct yoke_fit_end end = { .size = sizeof end };
	f.accumulate = accumulate;
	f.accumulate_order = order;
	const int err = yoke_fit(&f, &end);
	reference(want, &want[IN], 12, accumulate, losses);
	yoke_read(yoke_module_find(net, "weight"), w, sizeof w);
	yoke_read(yoke_module_find(net, "bias"), &b, sizeof b);
	for (int c = 0; c < IN; c++)
		got[c] = w[c];
	got[IN] = b;
	ok(err == 0 && end.step == 12 && !end.signal &&
		   near(got, want, IN + 1, 2e-5, 1, "parameters") &&
		   near(r.loss + 1, losses + 1, 12, 2e-5, 1, "losses") &&
		   fabs(r.lr[2] - 0.025) < 1e-9,
	   "12 steps of %d batches as a loop in float64: %s", accumulate, yoke_error());
	yoke_optim_free(o);
	yoke_module_free(net);
	yoke_error_clear();
}

// ---- resumed ----

static yoke_module *deep(void)
{
	yoke_random_set(3, 0);
	return yoke_nn_sequential(
		5, (yoke_module *[]){ yoke_nn_linear(IN, 16, 1), yoke_nn_batch_norm(16, 1e-5, 0.1),
				      yoke_nn_activation("gelu"), yoke_nn_dropout(0.2),
				      yoke_nn_linear(16, 1, 1) });
}

static int gather(void *arg, const char *path, yoke_tensor *t, unsigned flags)
{
	float **to = arg;
	(void)path, (void)flags;
	const int err = yoke_read(t, *to, yoke_bytes(t));
	*to += yoke_count(t);
	return err;
}

// Runs to `steps` like a separate process: another network, another optimizer.
static int once(struct run *r, int64_t steps, int resume, const char *out, const char *precision,
		float *all)
{
	yoke_context *ctx = yoke_context_new("cpu"), *was = yoke_use(ctx);
	yoke_module *net = deep();
	yoke_optim *o = yoke_optim_new("adamw", "lr=1e-2 clip=1 schedule=cosine steps=14 warmup=3");
	struct yoke_fit f = fit_of(r, net, o, steps);
	f.accumulate = 3;
	f.out = out;
	f.resume = resume;
	f.save_every = 4;
	f.valid = valid;
	f.valid_every = 5;
	f.precision = precision;
	f.allow_emulated = 1;
	struct yoke_fit_end end = { .size = sizeof end };
	const int err = yoke_fit(&f, &end);
	if (!err && end.step != steps)
		diag("%lld steps", (long long)end.step);
	yoke_module_each(net, gather, &all);
	yoke_optim_free(o);
	yoke_module_free(net);
	yoke_use(was);
	yoke_context_free(ctx);
	return err;
}

static void test_resumed(const char *precision)
{
	static float whole[512], parts[512];
	struct run a = { .ends_at = -1, .raises_at = -1 }, b = a;
	memset(whole, 0, sizeof whole);
	memset(parts, 0, sizeof parts);
	char out[32], other[32];
	snprintf(out, sizeof out, "whole-%s", precision);
	snprintf(other, sizeof other, "parts-%s", precision);
	bool good = once(&a, 14, 0, out, precision, whole) == 0;
	good = good && once(&b, 5, 1, other, precision, parts) == 0 &&
	       once(&b, 14, 1, other, precision, parts) == 0;
	good = good && !memcmp(whole, parts, sizeof whole) && whole[0] != 0;
	for (int t = 1; t <= 14; t++)
		good = good && a.loss[t] == b.loss[t];
	ok(good && a.n == 14 && a.valid == b.valid,
	   "%s: a resumed run has the bits of an unbroken one: %s", precision, yoke_error());
	ok(!a.modes && a.valids == 3 * 3,
	   "validated twice and after the last step, in evaluation mode: %d", a.valids);
	yoke_error_clear();
}

// ---- ends ----

static void test_ends(void)
{
	struct run r = { .ends_at = 3, .raises_at = -1 };
	yoke_module *net = yoke_nn_linear(IN, 1, 1);
	yoke_optim *o = yoke_optim_new("sgd", "lr=0.01");
	struct yoke_fit f = fit_of(&r, net, o, 50);
	struct yoke_fit_end end = { .size = sizeof end };
	f.out = "ends";
	bool good = yoke_fit(&f, &end) == 0 && end.step == 3 && !end.signal &&
		    !access("ends/manifest.json", F_OK);
	ok(good, "the log callback ends it after step %lld, saved: %s", (long long)end.step,
	   yoke_error());
	r.ends_at = -1;
	r.raises_at = 5;
	f.resume = 1;
	f.signals = 1;
	f.steps = 1000000; // the number of steps after which a thread notices is open
	good = yoke_fit(&f, &end) == 0 && end.signal == SIGINT && end.step >= 5 &&
	       end.step < f.steps;
	ok(good, "SIGINT ends it after step %lld: %s", (long long)end.step, yoke_error());
	r.raises_at = -1;
	r.fails_at = (int)end.step + 4;
	good = yoke_fit(&f, &end) == YOKE_EIO && strstr(yoke_error(), "next") &&
	       end.step == r.fails_at;
	ok(good, "a batch that fails: %s, after step %lld", yoke_error(), (long long)end.step);
	yoke_error_clear();
	yoke_optim_free(o);
	yoke_module_free(net);
}

// Input that ends within a step: complete steps are trained and saved, nothing else changes.
static void test_over(void)
{
	struct run r = { .ends_at = -1, .raises_at = -1, .over_at = 8 }, s = r;
	float w[2][IN];
	struct yoke_fit_end end = { .size = sizeof end };
	bool good = true;
	for (int k = 0; k < 2; k++) { // without steps; with as many as there are
		yoke_random_set(4, 0);
		yoke_module *net = yoke_nn_linear(IN, 1, 1);
		yoke_optim *o = yoke_optim_new("adamw", "lr=0.01");
		struct yoke_fit f = fit_of(k ? &s : &r, net, o, k ? 2 : 0);
		f.accumulate = 3;
		f.out = k ? NULL : "over";
		f.log_every = k ? 1 : 100; // the end is reported anyway
		good = good && yoke_fit(&f, &end) == 0 && end.step == 2 && !end.signal &&
		       yoke_read(yoke_module_find(net, "weight"), w[k], sizeof *w) == 0;
		yoke_optim_free(o);
		yoke_module_free(net);
	}
	good = good && !memcmp(w[0], w[1], sizeof *w) && r.n == 2 && r.loss[2] == s.loss[2] &&
	       !access("over/manifest.json", F_OK);
	ok(good, "a run whose data ends within its third step makes two: %s", yoke_error());
	yoke_error_clear();
}

static yoke_tensor *wide(void *arg, yoke_module *net, int n, yoke_tensor *const *in)
{
	(void)arg, (void)n;
	return yoke_call(net, in[0]);
}

static void refuse(const struct yoke_fit *f, int code, const char *says, const char *what)
{
	const int err = yoke_fit(f, NULL);
	ok(err == code && strstr(yoke_error(), says), "%s: %s", what, yoke_error());
	yoke_error_clear();
}

static void test_refused(void)
{
	struct run r = { .ends_at = -1, .raises_at = -1 };
	yoke_module *net = yoke_nn_linear(IN, 1, 1), *other = yoke_nn_linear(IN + 1, 1, 1);
	yoke_optim *o = yoke_optim_new("sgd", "lr=0.01"), *fresh = yoke_optim_new("sgd", "lr=0.01");
	struct yoke_fit f = fit_of(&r, net, o, 2);
	f.next = NULL;
	refuse(&f, YOKE_EINVAL, "next", "no data");
	f = fit_of(&r, net, o, -1);
	refuse(&f, YOKE_EINVAL, "steps", "steps below 0");
	f = fit_of(&r, net, o, 2);
	f.loss = wide;
	refuse(&f, YOKE_ESHAPE, "8 numbers", "a loss of several numbers");
	f = fit_of(&r, other, o, 2);
	refuse(&f, YOKE_EINVAL, "optimizer", "an optimizer of another network");
	f = fit_of(&r, net, o, 2);
	f.out = "ends";
	refuse(&f, YOKE_EINVAL, "resume", "a checkpoint that is not to be gone on from");
	f = fit_of(&r, net, o, 2);
	f.precision = "fp7";
	refuse(&f, YOKE_EINVAL, "fp7", "a precision that there is not");
	f = fit_of(&r, other, fresh, 2);
	f.out = "ends";
	f.resume = 1;
	refuse(&f, YOKE_ESHAPE, "weight", "a checkpoint of another network");
	yoke_module_freeze(net, "*", 1);
	f = fit_of(&r, net, o, 2);
	refuse(&f, YOKE_EINVAL, "parameter", "a network that is frozen");
	yoke_optim_free(o);
	yoke_optim_free(fresh);
	yoke_module_free(net);
	yoke_module_free(other);
}

// 16 rows in one batch, or in one of 13 and one of 3.
static int valid_rows(int64_t first, int64_t rows, yoke_tensor **in)
{
	in[0] = yoke_from(yoke_f32, 2, (int64_t[]){ rows, IN }, &data_x[40][0][0] + first * IN);
	in[1] = yoke_from(yoke_f32, 2, (int64_t[]){ rows, 1 }, &data_y[40][0] + first);
	return 2;
}

static int valid_whole(void *arg, int64_t number, int max, yoke_tensor **in)
{
	(void)arg, (void)max;
	return number ? 0 : valid_rows(0, 2 * ROWS, in);
}

static int valid_uneven(void *arg, int64_t number, int max, yoke_tensor **in)
{
	(void)arg, (void)max;
	return number > 1 ? 0 : number ? valid_rows(13, 3, in) : valid_rows(0, 13, in);
}

static void test_uneven(void)
{
	double got[2] = { NAN, NAN };
	for (int uneven = 0; uneven < 2; uneven++) {
		struct run r = { .ends_at = -1, .raises_at = -1 };
		yoke_module *net = yoke_nn_linear(IN, 1, 1);
		yoke_optim *o = yoke_optim_new("sgd", "lr=0");
		struct yoke_fit f = fit_of(&r, net, o, 1);
		struct yoke_fit_end end = { .size = sizeof end };
		yoke_random_set(3, 0);
		f.valid = uneven ? valid_uneven : valid_whole;
		if (!yoke_fit(&f, &end))
			got[uneven] = end.valid;
		yoke_optim_free(o);
		yoke_module_free(net);
	}
	near(got + 1, got, 1, 1e-6, 1, "a validation with unequal batches");
}

int main(void)
{
	tap_seed();
	tap_folder();
	for (int p = 0; p < PARTS; p++)
		for (int i = 0; i < ROWS; i++) {
			data_y[p][i] = (float)rnd_real(-0.1, 0.1);
			for (int c = 0; c < IN; c++) {
				data_x[p][i][c] = (float)rnd_real(-1, 1);
				data_y[p][i] += (float)(c + 1) * data_x[p][i][c];
			}
		}
	test_reference(1, NULL);
	test_reference(3, "tree");
	test_reference(5, "fast");
	test_resumed("fp32");
	test_resumed("fp16-mixed");
	test_ends();
	test_over();
	test_refused();
	test_uneven();
	return done();
}
