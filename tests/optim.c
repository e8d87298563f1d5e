// SPDX-License-Identifier: Apache-2.0
// Optimizer steps against float64 loops: two groups, clipping, bias correction,
// momentum, one plan.
#include "config.h"

#include "tap.h"
#include "train/optim.h"

enum { N = 4, MOST = 67 * 31, STEPS = 6 };

// Two matrices with decay between vectors without.
static const int64_t shapes[N][2] = { { 1, 0 }, { 67, 31 }, { 17, 0 }, { 3, 5 } };

static int64_t elements(int i)
{
	return shapes[i][0] * (shapes[i][1] ? shapes[i][1] : 1);
}

struct reference {
	double p[N][MOST], m[N][MOST], v[N][MOST];
};
static struct reference ref;
static float host[N][MOST];

// One step of the reference; returns the norm of the gradients before clipping.
static double reference_step(const struct yk_optim_spec *s, int64_t t, double lr)
{
	double square = 0;

	for (int i = 0; i < N; i++)
		for (int64_t k = 0; k < elements(i); k++)
			square += (double)host[i][k] * host[i][k];
	double norm = sqrt(square), scale = s->clip > 0 ? fmin(1, s->clip / (norm + 1e-6)) : 1;
	for (int i = 0; i < N; i++) {
		double decay = shapes[i][1] ? s->weight_decay : 0;
		for (int64_t k = 0; k < elements(i); k++) {
			double g = scale * host[i][k], *p = &ref.p[i][k], *m = &ref.m[i][k];
			double *v = &ref.v[i][k];
			if (s->kind == YK_ADAMW) {
				*p *= 1 - lr * decay;
				*m = s->beta1 * *m + (1 - s->beta1) * g;
				*v = s->beta2 * *v + (1 - s->beta2) * g * g;
				*p -= lr * (*m / (1 - pow(s->beta1, (double)t))) /
				      (sqrt(*v / (1 - pow(s->beta2, (double)t))) + s->eps);
				continue;
			}
			g += decay * *p;
			*m = t == 1 ? g : s->momentum * *m + g;
			*p -= lr * (s->momentum > 0 ? *m : g);
		}
	}
	return norm;
}

static void draw(yoke_tensor *const *to, double most)
{
	for (int i = 0; i < N; i++) {
		for (int64_t k = 0; k < elements(i); k++)
			host[i][k] = (float)rnd_real(-most, most);
		yoke_put(to[i], host[i], (size_t)elements(i) * sizeof(float));
	}
}

static bool same_parameters(const struct yk_parameters *ps, const char *what)
{
	static float got[MOST];
	static double g[N * MOST], w[N * MOST];
	size_t n = 0;

	for (int i = 0; i < N; i++) {
		memset(got, 0xff, sizeof got); // NaN
		yoke_read(ps->var[i], got, (size_t)elements(i) * sizeof(float));
		for (int64_t k = 0; k < elements(i); k++, n++)
			g[n] = got[k], w[n] = ref.p[i][k];
	}
	return near(g, w, n, 2e-5, 0.1, what);
}

static void test(const struct yk_optim_spec *spec, double most, const char *what)
{
	struct yk_parameters ps = { 0 };
	yoke_tensor *g[N];
	struct yk_optim *o = NULL;
	uint64_t misses = 0;
	char name[96];

	memset(&ref, 0, sizeof ref);
	for (int i = 0; i < N; i++) {
		int rank = shapes[i][1] ? 2 : 1;
		yk_parameters_add(&ps, rank, shapes[i], "p%d", i);
		ps.row[i].decay = rank == 2;
		g[i] = yoke_variable("g", yoke_f32, rank, shapes[i]);
	}
	draw(ps.var, 1);
	for (int i = 0; i < N; i++)
		for (int64_t k = 0; k < elements(i); k++)
			ref.p[i][k] = host[i][k];
	if (!ok(ps.count == N && yk_optim_new(spec, &ps, &o) == 0, "%s: made", what))
		diag("%s", yoke_error());
	for (int64_t t = 1; o && t <= STEPS; t++) {
		double lr = 0.01 / (double)t;
		float norm = NAN;
		yoke_tensor *n = NULL;
		draw(g, most);
		double want = reference_step(spec, t, lr), got;
		yoke_scope *s = yoke_scope_begin("step");
		if (yk_optim_step(o, t, lr, g, &n) == 0)
			yoke_read(n, &norm, sizeof norm);
		if (yoke_scope_end(s) < 0) {
			diag("%s", yoke_error());
			yoke_error_clear();
		}
		got = norm;
		if (t == 1)
			near(&got, &want, 1, 1e-5, 0, "norm");
		struct yoke_stats stats = { .size = sizeof stats };
		yoke_stats(&stats);
		if (t == 1)
			misses = stats.plan_misses;
		else if (t == STEPS)
			ok(stats.plan_misses == misses, "%s: one plan for all steps", what);
	}
	snprintf(name, sizeof name, "%s: parameters after %d steps", what, STEPS);
	same_parameters(&ps, name);
	yk_optim_free(o);
	for (int i = 0; i < N; i++)
		yoke_free(g[i]);
	yk_parameters_fini(&ps);
}

// Learning rate and scale as values [1] and [1,1], for a parameter of no axes: 2 - 0.25 (0.5 3).
static void of_one_element(const char *named)
{
	static const int64_t ones[] = { 1, 1 };
	yoke_tensor *p = yoke_variable("p", yoke_f32, 0, NULL), *g = yoke_variable("g", yoke_f32, 0, NULL);
	float got = NAN;

	yoke_setting_set("plan.named", named);
	yoke_put(p, &(float){ 2 }, sizeof got);
	yoke_put(g, &(float){ 3 }, sizeof got);
	yoke_scope *s = yoke_scope_begin("step");
	struct yoke_sgd sgd = { .size = sizeof sgd,
				.lr = yoke_full(yoke_f32, 1, ones, 0.25), .first = YOKE_NONE,
				.scale = yoke_full(yoke_f32, 2, ones, 0.5) };
	bool good = yoke_sgd_step(1, &p, &g, NULL, &sgd) == 0 &&
		    yoke_read(p, &got, sizeof got) == 0;
	ok(good && got == 2 - 0.25f * 1.5f, "numbers as values of one element, plan.named=%s: %g %s",
	   named, (double)got, yoke_error());
	yoke_error_clear();
	yoke_scope_end(s);
	yoke_free(p);
	yoke_free(g);
	yoke_setting_set("plan.named", "1");
}

int main(void)
{
	struct yk_optim_spec s = { .kind = YK_ADAMW, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8,
				   .weight_decay = 0.1, .clip = 1 };

	tap_seed();
	test(&s, 1, "adamw, clipped");
	test(&s, 1e-3, "adamw, below the clip");
	s.clip = 0;
	s.weight_decay = 0;
	test(&s, 1, "adamw, plain");
	s = (struct yk_optim_spec){ .kind = YK_SGD, .momentum = 0.9, .weight_decay = 0.1,
				    .clip = 2 };
	test(&s, 1, "sgd, momentum");
	s = (struct yk_optim_spec){ .kind = YK_SGD, .weight_decay = 0.1 };
	test(&s, 1, "sgd, plain");
	of_one_element("1");
	of_one_element("0");
	return done();
}
