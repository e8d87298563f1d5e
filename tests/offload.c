// SPDX-License-Identifier: Apache-2.0
// Tests training on devices other than the CPU backend: an MLP and a small GPT on OpenCL, on the
// skeleton plugin and on a device that copies as late as permitted have the CPU's losses. Ops
// that fall back are counted and listed, and YOKE_STRICT forbids them.

#include "config.h"

#include "nn/model.h"
#include "nn/shard_layers.h"
#include "tap.h"
#include "yoke-optim.h"

enum { STEPS = 30, ROWS = 24, IN = 5, OUT = 3, B = 2, T = 9, LAYERS = 3 };

struct result {
	double loss[STEPS];
	struct yoke_stats stats;
	int err;
};

static int update(yoke_optim *o, const struct yk_parameters *p, yoke_tensor *loss, double *to)
{
	yoke_tensor *g[64];
	float l = NAN;
	int err = yoke_grad(loss, p->count, p->var, g);
	if (!err)
		err = yoke_optim_step(o, p->count, g, NULL);
	if (!err)
		err = yoke_read(loss, &l, sizeof l);
	*to = (double)l;
	return err;
}

static yoke_optim *optimizer(const struct yk_parameters *p)
{
	yoke_optim *o = yoke_optim_new("adamw", "lr=0.01 beta2=0.99 weight_decay=0.1 clip=1");
	for (int i = 0; i < p->count; i++) {
		const char *name = p->row[i].name;
		yoke_optim_add(o, 1, &p->var[i], &name, NULL);
	}
	return o;
}

static int train_mlp(double *loss)
{
	const int64_t sizes[LAYERS + 1] = { IN, 17, 8, OUT };
	struct yk_parameters p = { 0 };
	for (int i = 0; i < LAYERS; i++) {
		yk_parameters_matrix(&p, sizes[i + 1], sizes[i], sqrt(2 / (double)sizes[i]), "w%d",
				     i);
		yk_parameters_vector(&p, sizes[i + 1], 0, "b%d", i);
	}
	int err = p.error ? p.error : yk_parameters_draw(&p, 3);
	yoke_optim *o = err ? NULL : optimizer(&p);
	for (int t = 1; t <= STEPS && !err; t++) {
		float x[ROWS * IN], y[ROWS * OUT];
		for (int i = 0; i < ROWS * IN; i++)
			x[i] = (float)rnd_real(-1, 1);
		for (int i = 0; i < ROWS * OUT; i++)
			y[i] = sinf(x[i / OUT * IN] + x[i / OUT * IN + 1 + i % OUT]);
		yoke_scope *s = yoke_scope_begin("step");
		yoke_tensor *in = yoke_from(yoke_f32, 2, (int64_t[]){ ROWS, IN }, x);
		yoke_tensor *want = yoke_from(yoke_f32, 2, (int64_t[]){ ROWS, OUT }, y);
		for (int i = 0; i < LAYERS; i++)
			in = yoke_linear(i ? yoke_tanh(in) : in, p.var[2 * i], p.var[2 * i + 1]);
		err = update(o, &p, yoke_mse(in, want), &loss[t - 1]);
		yoke_scope_end(s);
	}
	yoke_optim_free(o);
	yk_parameters_fini(&p);
	return err;
}

static int train_gpt(double *loss)
{
	struct yk_network *gpt = NULL;
	struct yk_model_shape shape = {
		.vocab = 31, .context = T, .layers = 2, .heads = 2, .embed = 24
	};
	int err = yk_network_new(&yk_model_gpt, &shape, &gpt);
	if (!err)
		err = yk_parameters_draw(&gpt->params, 3);
	yoke_optim *o = err ? NULL : optimizer(&gpt->params);
	for (int t = 1; t <= 5 && !err; t++) {
		int32_t ids[B * (T + 1)];
		for (int i = 0; i < B * (T + 1); i++)
			ids[i] = (int32_t)rnd_int(0, 30);
		yoke_random_set(9, t);
		yoke_scope *s = yoke_scope_begin("step");
		yoke_tensor *all = yoke_from(yoke_i32, 2, (int64_t[]){ B, T + 1 }, ids);
		yoke_tensor *x = yoke_slice(all, 1, 0, T, 1), *y = yoke_slice(all, 1, 1, T + 1, 1);
		err = update(o, &gpt->params, yk_network_loss(gpt, x, y, 0.1), &loss[t - 1]);
		yoke_scope_end(s);
	}
	yoke_optim_free(o);
	yk_network_free(gpt);
	return err;
}

// Is the list of fallbacks complete?
static void listed(const char *backend, const struct yoke_stats *stats)
{
	struct yoke_fallback f[512] = { { .size = sizeof *f } };
	uint64_t count = 0, bytes = 0;
	int n = yoke_fallbacks(512, f), sorted = 1, named = 1;
	for (int i = 0; i < n && i < 512; i++) {
		count += f[i].count;
		bytes += f[i].bytes;
		sorted &= !i || f[i].bytes <= f[i - 1].bytes;
		named &= f[i].op && *f[i].op && f[i].count && yoke_dtype_size(f[i].dtype) &&
			 f[i].rank >= 0 && f[i].rank <= YOKE_MAX_RANK;
	}
	ok(n >= 0 && n < 512 && sorted && named && count == stats->fallbacks &&
		   bytes == stats->fallback_bytes,
	   "%s: %d kinds listed, %llu launches, %llu bytes; the first %s", backend, n,
	   (unsigned long long)count, (unsigned long long)bytes, n > 0 ? f[0].op : "");
}

static struct result run(const char *backend, int (*train)(double *))
{
	struct result r = { .stats.size = sizeof r.stats };
	tap_state = 77; // the same data on each device
	yoke_context *ctx = yoke_context_new(backend);
	if (!ctx) {
		r.err = yoke_error_code();
		return r;
	}
	yoke_context *former = yoke_use(ctx);
	r.err = train(r.loss);
	yoke_stats(&r.stats);
	if (!r.err && strcmp(backend, "cpu"))
		listed(backend, &r.stats);
	yoke_use(former);
	yoke_context_free(ctx);
	return r;
}

// complete: the device supports all ops, so that nothing falls back.
static void compare(const char *backend, bool complete)
{
	bool fell = false;
	static const struct {
		const char *name;
		int (*train)(double *);
		int steps;
	} what[] = { { "MLP", train_mlp, STEPS }, { "GPT", train_gpt, 5 } };
	for (int k = 0; k < 2; k++) {
		char text[80];
		struct result cpu = run("cpu", what[k].train), other = run(backend, what[k].train);
		if (!ok(!cpu.err && !other.err, "%s: %s trains: %s", backend, what[k].name,
			yoke_error())) {
			yoke_error_clear();
			continue;
		}
		snprintf(text, sizeof text, "%s: %s, losses as on the CPU", backend, what[k].name);
		near(other.loss, cpu.loss, (size_t)what[k].steps, 2e-4, 0.1, text);
		if (what[k].train == train_mlp)
			ok(other.loss[STEPS - 1] < other.loss[0] / 2,
			   "%s: its loss falls, %g to %g", backend, other.loss[0],
			   other.loss[STEPS - 1]);
		fell = other.stats.fallbacks > 0;
		ok((fell || complete) && fell == (other.stats.fallback_bytes > 0),
		   "%s: %llu steps of %llu fell back, %llu bytes", backend,
		   (unsigned long long)other.stats.fallbacks,
		   (unsigned long long)other.stats.launches,
		   (unsigned long long)other.stats.fallback_bytes);
		ok(other.stats.fallbacks < other.stats.launches, "%s: some ops do not fall back",
		   backend);
		ok(!cpu.stats.fallbacks, "on the CPU nothing falls back");
	}
	yoke_setting_set("strict", "1");
	struct result r = run(backend, train_gpt);
	bool refused = r.err == YOKE_EUNSUPPORTED && strstr(yoke_error(), "YOKE_STRICT");
	ok(fell ? refused : !r.err, "%s: strict: %s", backend, yoke_error());
	yoke_error_clear();
	yoke_setting_set("strict", "0");
}

// Views that the device cannot copy are copied by the CPU and return: as a root of a scattered
// view, as an operand that must be dense, before an op that only the CPU runs.
static void copies(const char *backend)
{
	float x[256];
	double got[3][256], want[3][256];
	yoke_context *ctx = yoke_context_new(backend), *former = yoke_use(ctx);
	const int64_t dims[8] = { 2, 2, 2, 2, 2, 2, 2, 2 };
	for (int i = 0; i < 256; i++)
		x[i] = (float)rnd_int(-9, 9);
	for (int i = 0; i < 256; i++) { // all axes reversed
		int at = 0;
		for (int k = 0; k < 8; k++)
			at |= (i >> k & 1) << (7 - k);
		want[0][i] = (double)x[at];
		want[2][i] = want[0][i] + (i & 1 ? want[0][i - 1] : 0);
	}
	for (int i = 0; i < 256; i++) { // matrices of 2 x 2
		int m = i & ~1;
		want[1][i] =
			want[0][m] * (double)x[i & 1] + want[0][m + 1] * (double)x[2 + (i & 1)];
	}
	for (int k = 0; k < 3; k++) {
		float back[256];
		memset(back, 0xff, sizeof back);
		yoke_scope *s = yoke_scope_begin("copies");
		yoke_tensor *t = yoke_permute(yoke_from(yoke_f32, 8, dims, x),
					      (int[]){ 7, 6, 5, 4, 3, 2, 1, 0 });
		yoke_tensor *b = yoke_from(yoke_f32, 2, dims, x);
		t = k == 1 ? yoke_matmul(t, b, 0) : k == 2 ? yoke_cumsum(t, 7, 0) : t;
		yoke_read(t, back, sizeof back);
		for (int i = 0; i < 256; i++)
			got[k][i] = (double)back[i];
		yoke_scope_end(s);
	}
	near(got[0], want[0], 256, 0, 1, "a reversed view is read");
	near(got[1], want[1], 256, 0, 1, "a reversed view is multiplied");
	near(got[2], want[2], 256, 0, 1, "a reversed view is scanned");
	ok(!yoke_error_code(), "%s: copies: %s", backend, yoke_error());
	yoke_error_clear();
	yoke_use(former);
	yoke_context_free(ctx);
}

int main(void)
{
	const char *modules = getenv("YOKE_TEST_MODULES"), *opencl = getenv("YOKE_TEST_OPENCL");
	tap_seed();
	tap_plugin_path();
	if (modules) {
		compare("skeleton", false);
		copies("skeleton");
		// data that is not waited for is not there
		setenv("YOKE_FAULT_DEFER", "1", 1);
		setenv("YOKE_FAULT_HOST", "0", 1);
		setenv("YOKE_FAULT_LAG", "40", 1);
		setenv("YOKE_FAULT_LACKS", "contract", 1);
		compare("fault", false);
	} else {
		skip("training on the skeleton", "YOKE_TEST_MODULES does not say where it is");
	}
	yoke_context *ctx = opencl ? yoke_context_new("opencl") : NULL;
	if (ctx) {
		yoke_context_free(ctx);
		compare("opencl", true);
		copies("opencl");
	} else {
		skip("training on OpenCL",
		     opencl ? yoke_error() : "YOKE_TEST_OPENCL does not name the module");
		yoke_error_clear();
	}
	return done();
}
