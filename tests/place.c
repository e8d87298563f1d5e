// SPDX-License-Identifier: Apache-2.0
// Tests variables in host memory: an optimizer's state on the host gives the same training, the
// device uses that many bytes less, and variables move between host and device bit for bit.

#include "config.h"

#include "tap.h"
#include "yoke.h"

enum { N = 3, ROWS = 40, E = 64, STEPS = 6 };

static const int64_t shape[N][2] = { { E, E }, { E, 2 * E }, { 1, E } };

struct trained {
	float p[N][2 * E * E], m[N][2 * E * E];
	struct yoke_stats stats; // at the end
	int err;
};

static size_t count(int i)
{
	return (size_t)(shape[i][0] * shape[i][1]);
}

static yoke_tensor *variable(const char *name, int i, bool random)
{
	yoke_tensor *t = yoke_variable(name, yoke_f32, 2, shape[i]);
	float x[2 * E * E];
	for (size_t k = 0; k < count(i); k++)
		x[k] = (float)rnd_real(-0.2, 0.2);
	if (random)
		yoke_put(t, x, count(i) * sizeof *x);
	return t;
}

// y = (tanh(x a) b)[:, :E] * c
static yoke_tensor *network(yoke_tensor *const *p, yoke_tensor *x)
{
	yoke_tensor *y = yoke_matmul(yoke_tanh(yoke_matmul(x, p[0], 0)), p[1], 0);
	return yoke_mul(yoke_slice(y, 1, 0, E, 1), p[2]);
}

static int step(yoke_tensor **p, yoke_tensor **m, yoke_tensor **v, int t)
{
	float x[ROWS * E];
	for (int i = 0; i < ROWS * E; i++)
		x[i] = (float)rnd_real(-1, 1);
	yoke_scope *s = yoke_scope_begin("step");
	yoke_tensor *in = yoke_from(yoke_f32, 2, (int64_t[]){ ROWS, E }, x), *g[N];
	int err = yoke_grad(yoke_mse(network(p, in), in), N, p, g);
	if (!err)
		err = yoke_adamw_step(
			N, p, g, m, v,
			&(struct yoke_adamw){
				.size = sizeof(struct yoke_adamw),
				.lr = yoke_const(0.01),
				.c1 = yoke_scalar(1 - pow(0.9, t)),
				.c2 = yoke_scalar(1 - pow(0.99, t)),
				.scale = yoke_min(yoke_const(1),
						  yoke_div(yoke_const(1), yoke_global_norm(N, g))),
				.beta1 = 0.9,
				.beta2 = 0.99,
				.eps = 1e-8,
				.weight_decay = 0.1 });
	if (!err)
		err = yoke_eval(0, NULL);
	yoke_scope_end(s);
	return err;
}

static struct trained train(const char *backend, bool host)
{
	static struct trained r;
	yoke_context *ctx = yoke_context_new(backend), *was = ctx ? yoke_use(ctx) : NULL;
	yoke_tensor *p[N], *m[N], *v[N];
	r = (struct trained){ .stats.size = sizeof r.stats, .err = ctx ? 0 : yoke_error_code() };
	if (!ctx)
		return r;
	const uint64_t seed = tap_state;
	for (int i = 0; i < N; i++) {
		p[i] = variable("p", i, true);
		m[i] = variable("m", i, false);
		v[i] = variable("v", i, false);
		for (int k = 0; k < 2 && host && !r.err; k++)
			r.err = yoke_place(k ? v[i] : m[i], YOKE_ON_HOST);
	}
	for (int t = 1; t <= STEPS && !r.err; t++)
		r.err = step(p, m, v, t);
	for (int i = 0; i < N && !r.err; i++) {
		r.err = yoke_read(p[i], r.p[i], yoke_bytes(p[i]));
		if (!r.err)
			r.err = yoke_read(m[i], r.m[i], yoke_bytes(m[i]));
	}
	yoke_stats(&r.stats);
	tap_state = seed;
	yoke_use(was);
	yoke_context_free(ctx);
	return r;
}

static double worst(const struct trained *a, const struct trained *b)
{
	double max = 0;
	for (int i = 0; i < N; i++)
		for (size_t k = 0; k < count(i); k++)
			max = fmax(max, fmax(fabs((double)a->p[i][k] - (double)b->p[i][k]),
					       fabs((double)a->m[i][k] - (double)b->m[i][k])));
	return max;
}

static void trains(const char *backend)
{
	static struct trained plain, placed;
	uint64_t state = 0;
	plain = train(backend, false);
	if (plain.err) {
		skip(backend, yoke_error());
		yoke_error_clear();
		return;
	}
	placed = train(backend, true);
	for (int i = 0; i < N; i++)
		state += 2 * ((count(i) * sizeof(float) + 255) / 256 * 256);
	const bool apart = strcmp(backend, "cpu");
	const double differ = worst(&plain, &placed);
	ok(!placed.err && differ <= 2e-6,
	   "%s: %d steps with the state on the host: differ by %.2g: %s", backend, STEPS, differ,
	   yoke_error());
	ok(plain.stats.pool_allocated - placed.stats.pool_allocated == (apart ? state : 0),
	   "%s: the device holds %llu bytes less", backend,
	   (unsigned long long)(plain.stats.pool_allocated - placed.stats.pool_allocated));
	ok(placed.stats.fallbacks <= plain.stats.fallbacks &&
		   placed.stats.assign_copies <= plain.stats.assign_copies,
	   "%s: this is no fallback (%llu), and updates are in place (%llu copies)", backend,
	   (unsigned long long)placed.stats.fallbacks,
	   (unsigned long long)placed.stats.assign_copies);
	ok(placed.stats.plan_misses <= plain.stats.plan_misses,
	   "%s: with the same number of plans, %llu", backend,
	   (unsigned long long)placed.stats.plan_misses);
	yoke_error_clear();
}

// A reader of a parameter's old version, ordered after the update (which is uploaded from the
// host), reads the old version.
static void late_reader(const char *backend)
{
	yoke_context *ctx = yoke_context_new(backend), *was = ctx ? yoke_use(ctx) : NULL;
	float old[2 * E * E], read[2 * E * E], now[2 * E * E];
	if (!ctx) {
		skip(backend, yoke_error());
		yoke_error_clear();
		return;
	}
	yoke_tensor *p = variable("p", 1, true), *b = variable("b", 1, false);
	yoke_read(p, old, sizeof old);
	int err = yoke_place(b, YOKE_ON_HOST);
	yoke_scope *s = yoke_scope_begin("step");
	yoke_tensor *g = yoke_mul(p, yoke_const(3)), *before = yoke_mul(p, yoke_const(1)),
		    *late = NULL;
	err = err ? err : yoke_sgd_step(1, &p, &g, &b, &(struct yoke_sgd){
		.size = sizeof(struct yoke_sgd), .lr = yoke_const(0.5), .first = yoke_const(1),
		.scale = YOKE_NONE, .momentum = 0.9 });
	yoke_tensor *up = yoke_neg(p); // available when the update has been uploaded
	err = err ? err : yoke_barrier(1, &before, 1, &up, &late);
	late = yoke_neg(late);
	err = err ? err : yoke_eval(2, (yoke_tensor *[]){ late, up });
	err = err ? err : yoke_read(late, read, sizeof read);
	err = err ? err : yoke_read(p, now, sizeof now);
	bool good = !err;
	for (int i = 0; i < 2 * E * E && good; i++)
		good = read[i] == -old[i] && fabsf(now[i] + 0.5f * old[i]) < 1e-6f;
	ok(good, "%s: the old version is read correctly after the new one: %s", backend,
	   yoke_error());
	yoke_error_clear();
	yoke_scope_end(s);
	yoke_free(p);
	yoke_free(b);
	yoke_use(was);
	yoke_context_free(ctx);
}

static void refused(int err, const char *why)
{
	ok(err == YOKE_EINVAL && strstr(yoke_error(), why), "%s", yoke_error());
	yoke_error_clear();
}

// There and back, with a pending value, and with one that another op reads.
static void moves(const char *backend)
{
	yoke_context *ctx = yoke_context_new(backend), *was = ctx ? yoke_use(ctx) : NULL;
	float a[2 * E * E], b[2 * E * E], sum = 0, want = NAN;
	if (!ctx) {
		skip(backend, yoke_error());
		yoke_error_clear();
		return;
	}
	yoke_tensor *x = variable("x", 1, true), *s = yoke_keep(yoke_sum(x, YOKE_ALL));
	yoke_read(x, a, sizeof a);
	int err = yoke_place(x, YOKE_ON_HOST);
	err = err ? err : yoke_read(x, b, sizeof b);
	ok(!err && !memcmp(a, b, sizeof a), "%s: moved to the host: %s", backend, yoke_error());
	err = yoke_read(yoke_sum(x, YOKE_ALL), &sum, sizeof sum);
	err = err ? err : yoke_read(s, &want, sizeof want); // of the previous version
	ok(!err && sum == want, "%s: read by an op: %.9g, %.9g: %s", backend, (double)sum,
	   (double)want, yoke_error());
	yoke_assign(x, yoke_mul(x, yoke_const(2)));
	err = yoke_place(x, YOKE_ON_DEVICE);
	err = err ? err : yoke_read(x, b, sizeof b);
	bool twice = !err;
	for (int i = 0; i < 2 * E * E && twice; i++)
		twice = b[i] == 2 * a[i];
	ok(twice, "%s: and back, with a pending value: %s", backend, yoke_error());
	refused(yoke_place(x, 7), "7 is neither");
	refused(yoke_place(s, YOKE_ON_HOST), "takes a variable");
	yoke_place(x, YOKE_ON_HOST);
	refused(yoke_pack(1, &x), "placed in the host's memory");
	err = yoke_place(x, YOKE_ON_DEVICE);
	ok(!err && !yoke_pack(1, &x), "%s: packed again: %s", backend, yoke_error());
	refused(yoke_place(x, YOKE_ON_HOST), "part of a pack");
	yoke_free(s);
	yoke_free(x);
	yoke_use(was);
	yoke_context_free(ctx);
}

int main(void)
{
	if (tap_eager())
		return skip_all("its plans are of whole steps");
	tap_seed();
	tap_plugin_path();
	const char *const backends[] = { "cpu", "opencl", "fault", "skeleton" };
	for (int i = 0; i < 4; i++) {
		trains(backends[i]);
		late_reader(backends[i]);
		moves(backends[i]);
	}
	return done();
}
