// SPDX-License-Identifier: Apache-2.0
// Tests properties of optimizers beyond their numbers: identities, restarts, skipped steps, two
// launches for norm, clip and update, groups and patterns, files, other contexts, and errors for
// bad input.
#include "config.h"

#include "dtypes.h"
#include "tap.h"
#include "yoke-optim.h"

enum { N = 3, LIMIT = 400 };
static const int64_t counts[N] = { 1, 257, 400 };
static const char *const names[N] = { "head.weight", "body.weight", "body.bias" };
static const struct yoke_step plain = { .size = sizeof plain,
					.scale = YOKE_NONE,
					.skip = YOKE_NONE };

struct set {
	yoke_tensor *p[N], *g[N];
	float x[N][LIMIT];
};

static void draw(yoke_tensor *const *t, float (*x)[LIMIT], double max)
{
	for (int i = 0; i < N; i++) {
		for (int64_t k = 0; k < counts[i]; k++)
			x[i][k] = (float)rnd_real(-max, max);
		yoke_put(t[i], x[i], (size_t)counts[i] * sizeof(float));
	}
}

static void set_make(struct set *s)
{
	for (int i = 0; i < N; i++) {
		s->p[i] = yoke_variable("p", yoke_f32, 1, &counts[i]);
		s->g[i] = yoke_variable("g", yoke_f32, 1, &counts[i]);
	}
	draw(s->p, s->x, 1);
}

static void set_free(struct set *s)
{
	for (int i = 0; i < N; i++) {
		yoke_free(s->p[i]);
		yoke_free(s->g[i]);
	}
}

static yoke_optim *make(const char *kind, const char *settings, const struct set *s)
{
	yoke_optim *o = yoke_optim_new(kind, settings);
	if (!o || yoke_optim_add(o, N, s->p, names, NULL))
		ok(false, "%s %s: %s", kind, settings, yoke_error());
	return o;
}

static int step(yoke_optim *o, yoke_tensor *const *g, const struct yoke_step *given)
{
	yoke_scope *s = yoke_scope_begin("step");
	int err = yoke_optim_step(o, N, g, given);
	if (!err)
		err = yoke_eval(0, NULL);
	int ended = yoke_scope_end(s);
	return err ? err : ended;
}

static void read_all(yoke_tensor *const *t, float (*to)[LIMIT])
{
	for (int i = 0; i < N; i++) {
		memset(to[i], 0xff, sizeof to[i]);
		yoke_read(t[i], to[i], (size_t)counts[i] * sizeof(float));
	}
}

static bool equal(float (*a)[LIMIT], float (*b)[LIMIT])
{
	bool same = true;
	for (int i = 0; i < N; i++)
		same &= !memcmp(a[i], b[i], (size_t)counts[i] * sizeof(float));
	return same;
}

// The expected error, with these words; none from now on.
static void refused(int err, int want, const char *part)
{
	ok(err == want && strstr(yoke_error(), part), "%s: %s", yoke_error_name(err), yoke_error());
	yoke_error_clear();
}

// ---- identities ----

static void zero_gradient(void)
{
	struct set s;
	float got[N][LIMIT];
	set_make(&s);
	yoke_optim *o = make("adamw", "lr=0.01 weight_decay=0.3", &s);
	for (int t = 1; t <= 20; t++) {
		step(o, s.g, NULL);
		for (int i = 0; i < N; i++)
			for (int64_t k = 0; k < counts[i]; k++) {
				volatile float product = (float)0.01 * (float)0.3;
				volatile float by = 1 - product;
				s.x[i][k] = s.x[i][k] * by;
			}
	}
	read_all(s.p, got);
	ok(equal(got, s.x),
	   "adamw without gradient is 20 multiplications by 1 - lr decay, bit for bit");
	yoke_optim_free(o);
	set_free(&s);
}

// Polyak's momentum equals PyTorch's while the learning rate is constant.
static void heavy_ball(bool changes)
{
	struct set s, u;
	float a[N][LIMIT], b[N][LIMIT];
	double worst = 0;
	set_make(&s);
	set_make(&u);
	for (int i = 0; i < N; i++)
		yoke_put(u.p[i], s.x[i], (size_t)counts[i] * sizeof(float));
	yoke_optim *o = make("heavy_ball", "lr=0.1 momentum=0.8", &s),
		   *m = make("sgd", "lr=0.1 momentum=0.8", &u);
	for (int t = 1; t <= 30; t++) {
		double lr = changes && t > 10 ? 0.02 : 0.1;
		struct yoke_step given = plain;
		given.lr = &lr;
		draw(s.g, a, 1);
		step(o, s.g, &given);
		step(m, s.g, &given);
	}
	read_all(s.p, a);
	read_all(u.p, b);
	for (int i = 0; i < N; i++)
		for (int64_t k = 0; k < counts[i]; k++)
			worst = fmax(worst, fabs((double)a[i][k] - b[i][k]));
	ok(changes ? worst > 0.05 : worst < 2e-5, "heavy ball beside momentum, %s: %.2g",
	   changes ? "the rate changes" : "one rate", worst);
	yoke_optim_free(o);
	yoke_optim_free(m);
	set_free(&s);
	set_free(&u);
}

// g times a constant P gives the same step: P cancels.
static void constant_pre(void)
{
	struct set s, u;
	float a[N][LIMIT], b[N][LIMIT];
	double worst = 0, moved = 0;
	yoke_tensor *P[N];
	set_make(&s);
	set_make(&u);
	for (int i = 0; i < N; i++) {
		yoke_put(u.p[i], s.x[i], (size_t)counts[i] * sizeof(float));
		P[i] = yoke_variable("P", yoke_f32, 1, &counts[i]);
		for (int64_t k = 0; k < counts[i]; k++)
			a[i][k] = (float)rnd_real(0.1, 10);
		yoke_put(P[i], a[i], (size_t)counts[i] * sizeof(float));
	}
	yoke_optim *o = make("adagrad", "lr=0.1", &s),
		   *m = make("adagrad", "lr=0.1 precondition=pre", &u);
	struct yoke_step given = plain;
	given.precondition = P;
	for (int t = 1; t <= 30; t++) {
		draw(s.g, a, 1);
		step(o, s.g, NULL);
		step(m, s.g, &given);
	}
	read_all(s.p, a);
	read_all(u.p, b);
	for (int i = 0; i < N; i++)
		for (int64_t k = 0; k < counts[i]; k++) {
			worst = fmax(worst, fabs((double)a[i][k] - b[i][k]));
			moved = fmax(moved, fabs((double)a[i][k] - s.x[i][k]));
		}
	ok(worst < 2e-5 && moved > 0.1,
	   "a constant factor of the preconditioned gradient changes nothing: %.2g of %.2g",
	   worst, moved);
	yoke_optim_free(o);
	yoke_optim_free(m);
	set_free(&s);
	set_free(&u);
	for (int i = 0; i < N; i++)
		yoke_free(P[i]);
}

// A constant gradient: v - mean^2 is 0 except for roundings of either sign.
static void centered(void)
{
	struct set s;
	float a[N][LIMIT], v[N][LIMIT], mean[N][LIMIT];
	int below = 0;
	bool finite = true;
	set_make(&s);
	draw(s.g, a, 1);
	yoke_optim *o = make("rmsprop", "centered=1 alpha=0.5 lr=1e-6", &s);
	for (int t = 1; t <= 60; t++)
		step(o, s.g, NULL);
	for (int i = 0; i < N; i++) {
		yoke_read(yoke_optim_state(o, names[i], "v"), v[i],
			  (size_t)counts[i] * sizeof(float));
		yoke_read(yoke_optim_state(o, names[i], "mean"), mean[i],
			  (size_t)counts[i] * sizeof(float));
	}
	read_all(s.p, a);
	for (int i = 0; i < N; i++)
		for (int64_t k = 0; k < counts[i]; k++) {
			volatile float square = mean[i][k] * mean[i][k];
			below += v[i][k] - square < 0;
			finite &= isfinite(a[i][k]);
		}
	ok(finite && below > 0, "centered: %d of v - mean^2 are below 0, every parameter is finite",
	   below);
	yoke_optim_free(o);
	set_free(&s);
}

// Layers whose norms differ by a factor of a thousand move by the same fraction of them.
static void lamb_norms(void)
{
	struct set s;
	float a[N][LIMIT];
	double share[N];
	set_make(&s);
	for (int i = 1; i < N; i++) {
		double sum = 0;
		for (int64_t k = 0; k < counts[i]; k++)
			sum += (double)s.x[i][k] * s.x[i][k];
		for (int64_t k = 0; k < counts[i]; k++)
			s.x[i][k] *= (float)((i == 1 ? 1 : 1000) / sqrt(sum));
		yoke_put(s.p[i], s.x[i], (size_t)counts[i] * sizeof(float));
	}
	draw(s.g, a, 1);
	yoke_optim *o = make("lamb", "lr=0.01 weight_decay=0", &s);
	step(o, s.g, NULL);
	read_all(s.p, a);
	for (int i = 1; i < N; i++) {
		double sum = 0;
		for (int64_t k = 0; k < counts[i]; k++)
			sum += pow((double)a[i][k] - s.x[i][k], 2);
		share[i] = sqrt(sum) / (i == 1 ? 1 : 1000);
	}
	near(share + 1, (double[]){ 0.01, 0.01 }, 2, 1e-3, 0,
	     "lamb: layers of norms 1 and 1000 move by lr times their norm");
	yoke_optim_free(o);
	set_free(&s);
}

// ---- restarts ----

// O'Donoghue and Candes 2015: a quadratic, kappa 1e4; iterations until f is 1e-8 of its initial
// value.
struct bowl {
	yoke_tensor *p, *d;
};

static yoke_tensor *bowl_loss(void *arg)
{
	const struct bowl *b = arg;
	return yoke_mul(yoke_sum(yoke_mul(b->d, yoke_square(b->p)), YOKE_ALL), yoke_const(0.5));
}

static int quadratic_from(uint64_t seed, const char *settings, int max)
{
	enum { DIM = 100 };
	const int64_t n = DIM;
	double w[DIM], x[DIM], g[DIM], f0 = 0, f = 0;
	int t = 0;
	const uint64_t former = tap_state;
	tap_state = seed;
	for (int i = 0; i < DIM; i++) {
		w[i] = pow(10, -4.0 * i / (DIM - 1)); // L is 1
		x[i] = sqrt(-2 * log(1 - rnd_real(0, 1))) * cos(2 * M_PI * rnd_real(0, 1));
		f0 += w[i] * x[i] * x[i] / 2;
	}
	tap_state = former;
	yoke_tensor *p = yoke_variable("x", yoke_f64, 1, &n), *d = yoke_from(yoke_f64, 1, &n, w);
	put(p, x);
	yoke_optim *o = yoke_optim_new("accelerated", settings);
	yoke_optim_add(o, 1, &p, (const char *const[]){ "x" }, NULL);
	struct bowl bowl = { p, d };
	struct yoke_step given = { .size = sizeof given,
				   .scale = YOKE_NONE,
				   .skip = YOKE_NONE,
				   .loss = bowl_loss,
				   .arg = &bowl };
	for (f = f0; f > 1e-8 * f0 && t < max; t++) {
		yoke_scope *s = yoke_scope_begin("step");
		yoke_tensor *slope = yoke_mul(d, p);
		yoke_optim_step(o, 1, &slope, &given);
		if (t % 20 == 19) {
			f = 0;
			get(p, g);
			for (int i = 0; i < DIM; i++)
				f += w[i] * g[i] * g[i] / 2;
		} else {
			yoke_eval(0, NULL);
		}
		yoke_scope_end(s);
	}
	double restarts = NAN;
	get(yoke_optim_state(o, NULL, "restarts"), &restarts);
	diag("%s: %d iterations, %g restarts %s", settings, t, restarts, yoke_error());
	ok(strstr(settings, "none") ? restarts == 0 : restarts > 0, "restarts are counted: %g",
	   restarts);
	yoke_optim_free(o);
	yoke_free(p);
	yoke_free(d);
	return t;
}

// Averaged over initial values that are the same for all settings.
static int quadratic(uint64_t seed, const char *settings)
{
	enum { STARTS = 4 };
	int all = 0;
	for (uint64_t i = 0; i < STARTS; i++)
		all += quadratic_from(seed + i, settings, 4000);
	return all / STARTS;
}

// ---- clipping, norms, what is held back ----

static uint64_t launches(void)
{
	struct yoke_stats s = { .size = sizeof s };
	yoke_stats(&s);
	return s.launches;
}

static void in_two_launches(const char *kind, const char *settings, unsigned max)
{
	struct set s;
	set_make(&s);
	yoke_optim *o = make(kind, settings, &s);
	step(o, s.g, NULL);
	step(o, s.g, NULL);
	uint64_t before = launches();
	step(o, s.g, NULL);
	unsigned n = (unsigned)(launches() - before);
	const char *named = getenv("YOKE_PLAN_NAMED");
	ok(n == max || tap_eager() || (named && *named == '0'), "%s %s: %u launches a step", kind,
	   settings, n);
	yoke_optim_free(o);
	set_free(&s);
}

// An infinity or a NaN in the first, a middle, the last element of a tensor: nothing changes, nor
// in the next step, and the tensor is named; then steps continue.
// step, and it is named; then steps go on.
static void not_finite(const char *kind, const char *settings, double bad, int tensor, int64_t at)
{
	struct set s;
	float p[N][LIMIT], again[N][LIMIT], x[N][LIMIT], was[2 * LIMIT], is[2 * LIMIT];
	set_make(&s);
	yoke_optim *o = make(kind, settings, &s);
	const char *state = !strcmp(kind, "accelerated") ? "x" : "m";
	draw(s.g, x, 1);
	step(o, s.g, NULL);
	read_all(s.p, p);
	yoke_tensor *m = yoke_optim_state(o, names[tensor], state);
	yoke_read(m, was, yoke_bytes(m));
	draw(s.g, x, 1);
	x[tensor][at] = (float)bad;
	if (tensor + 1 < N)
		x[tensor + 1][0] = NAN; // the first one is named
	yoke_put(s.g[tensor], x[tensor], (size_t)counts[tensor] * sizeof(float));
	if (tensor + 1 < N)
		yoke_put(s.g[tensor + 1], x[tensor + 1],
			 (size_t)counts[tensor + 1] * sizeof(float));
	float norm = 0;
	yoke_tensor *told = NULL;
	struct yoke_step given = plain;
	given.norm = &told;
	for (int k = 0; k < 2; k++) {
		yoke_scope *scope = yoke_scope_begin("step");
		yoke_optim_step(o, N, s.g, &given);
		yoke_read(told, &norm, sizeof norm);
		yoke_scope_end(scope);
		// the following step has finite gradients, and changes nothing as well
		draw(s.g, x, 1);
	}
	read_all(s.p, again);
	yoke_read(m, is, yoke_bytes(m));
	ok(!isfinite(norm) && equal(p, again) && !memcmp(was, is, yoke_bytes(m)),
	   "%s: %g at %lld of %s: nothing changes; norm %g %s", kind, bad, (long long)at,
	   names[tensor], (double)norm, yoke_error());
	refused(yoke_optim_check(o), YOKE_ERANGE, names[tensor]);
	ok(yoke_optim_check(o) == 0, "and the error is cleared afterwards");
	step(o, s.g, NULL);
	read_all(s.p, again);
	ok(!equal(p, again), "further steps succeed");
	yoke_optim_free(o);
	set_free(&s);
}

// A skipped step leaves no trace: bit for bit, also in values that depend on its number.
static void skipped(const char *kind, const char *settings)
{
	struct set s, u;
	float a[N][LIMIT], b[N][LIMIT];
	const int64_t ones[] = { 1, 1 };
	set_make(&s);
	set_make(&u);
	for (int i = 0; i < N; i++)
		yoke_put(u.p[i], s.x[i], (size_t)counts[i] * sizeof(float));
	yoke_optim *o = make(kind, settings, &s), *m = make(kind, settings, &u);
	yoke_tensor *flag = yoke_variable("flag", yoke_f32, 2, ones);
	for (int t = 1; t <= 12; t++) {
		const bool skip = t == 1 || t == 4 || t == 5;
		yoke_scope *scope = yoke_scope_begin("flag");
		struct yoke_step given = plain;
		draw(s.g, a, 1);
		yoke_put(flag, &(float){ skip ? 1 : NAN }, sizeof(float));
		// a bool on the device, or a host scalar
		given.skip = t % 2 ? yoke_isfinite(flag) : yoke_scalar(skip);
		if (skip) // its contents do not matter
			yoke_put(s.g[1], &(float[257]){ NAN, INFINITY }, sizeof(float[257]));
		step(o, s.g, &given);
		if (skip) {
			yoke_optim_skipped(o);
		} else {
			given.skip = yoke_isfinite(yoke_div(flag, yoke_const(2)));
			step(m, s.g, &given);
		}
		yoke_scope_end(scope);
	}
	read_all(s.p, a);
	read_all(u.p, b);
	ok(equal(a, b) && yoke_optim_steps(o) == 9 && !yoke_error_code(),
	   "%s %s: skipped steps leave no trace, bit for bit %s",
	   kind, settings, yoke_error());
	yoke_error_clear();
	yoke_free(flag);
	yoke_optim_free(o);
	yoke_optim_free(m);
	set_free(&s);
	set_free(&u);
}

// Steps skipped because of a non-finite gradient do not count: with yoke_optim_check, and in a file
// written before it is called; one such step is in that file.
static void lost(const char *kind, const char *settings)
{
	struct set s, u;
	float a[N][LIMIT], b[N][LIMIT];
	int64_t steps[2] = { -1, -1 };
	set_make(&s);
	set_make(&u);
	for (int i = 0; i < N; i++)
		yoke_put(u.p[i], s.x[i], (size_t)counts[i] * sizeof(float));
	yoke_optim *o = make(kind, settings, &s), *m = make(kind, settings, &u), *file = NULL;
	for (int t = 1; t <= 14; t++) {
		const bool bad = t == 2 || t == 8, dead = bad || t == 3 || t == 4 || t == 9;
		struct yoke_step given = plain;
		draw(s.g, a, 1);
		if (bad)
			yoke_put(s.g[1], &(float[257]){ INFINITY }, sizeof(float[257]));
		given.skip = yoke_scalar(t == 4);
		step(o, s.g, &given);
		if (t == 4)
			yoke_optim_skipped(o);
		if (!dead)
			step(m, s.g, &plain);
		if (t == 4) {
			yoke_optim_save(o, "lost.safetensors");
			file = make(kind, settings, &s);
			yoke_optim_load(file, "lost.safetensors");
			steps[0] = yoke_optim_steps(file);
			refused(yoke_optim_check(o), YOKE_ERANGE, names[1]);
			steps[1] = yoke_optim_steps(o);
		}
		if (t == 9)
			refused(yoke_optim_check(o), YOKE_ERANGE, names[1]);
	}
	read_all(s.p, a);
	read_all(u.p, b);
	ok(equal(a, b) && yoke_optim_steps(o) == 9 && steps[0] == 1 && steps[1] == 1 &&
		   !yoke_error_code(),
	   "%s %s: steps that changed nothing do not count: %lld of 9, in a file %lld and %lld of 1 %s",
	   kind, settings, (long long)yoke_optim_steps(o), (long long)steps[0], (long long)steps[1],
	   yoke_error());
	yoke_error_clear();
	yoke_optim_free(file);
	yoke_optim_free(o);
	yoke_optim_free(m);
	set_free(&s);
	set_free(&u);
}

// The scale is applied first: before norm and clip.
static void scaled(void)
{
	struct set s;
	float x[N][LIMIT], got[N][LIMIT], norm = NAN;
	double sum = 0, worst = 0;
	yoke_tensor *told = NULL;
	set_make(&s);
	yoke_optim *o = make("sgd", "lr=1 clip=0.5", &s);
	draw(s.g, x, 1024);
	yoke_scope *scope = yoke_scope_begin("step");
	struct yoke_step given = plain;
	given.norm = &told;
	given.scale = yoke_scalar(1.0 / 1024);
	yoke_optim_step(o, N, s.g, &given);
	yoke_read(told, &norm, sizeof norm);
	yoke_scope_end(scope);
	read_all(s.p, got);
	for (int i = 0; i < N; i++)
		for (int64_t k = 0; k < counts[i]; k++)
			sum += pow(x[i][k] / 1024.0, 2);
	double by = fmin(1, 0.5 / (sqrt(sum) + 1e-6)), one = norm, want = sqrt(sum);
	for (int i = 0; i < N; i++)
		for (int64_t k = 0; k < counts[i]; k++)
			worst = fmax(worst, fabs(got[i][k] - (s.x[i][k] - by * x[i][k] / 1024.0)));
	near(&one, &want, 1, 1e-6, 0, "the norm of scaled gradients");
	ok(worst < 1e-6, "gradients are clipped by it: error %.2g", worst);
	yoke_optim_free(o);
	set_free(&s);
}

// ---- groups ----

static void groups(void)
{
	struct set s;
	float x[N][LIMIT], got[N][LIMIT];
	double worst = 0;
	set_make(&s);
	yoke_optim *o = yoke_optim_new("sgd", "lr=0.5 weight_decay=0.25");
	yoke_optim_add(o, 1, s.p, names, "lr=0.125");
	yoke_optim_add(o, 2, s.p + 1, names + 1, NULL);
	ok(!yoke_optim_set(o, "*.bias", "weight_decay=0"), "a pattern %s", yoke_error());
	ok(yoke_optim_lr(o, "head.weight", 7) == 0.125 && yoke_optim_lr(o, "body.bias", 7) == 0.5,
	   "learning rates by name");
	draw(s.g, x, 1);
	step(o, s.g, NULL);
	yoke_optim_set(o, "body.*", "lr=0.25");
	step(o, s.g, NULL);
	read_all(s.p, got);
	for (int i = 0; i < N; i++)
		for (int64_t k = 0; k < counts[i]; k++) {
			double p = s.x[i][k];
			for (int t = 0; t < 2; t++)
				p -= (i == 0 ? 0.125 :
				      t      ? 0.25 :
					       0.5) *
				     (x[i][k] + (i == 2 ? 0 : 0.25) * p);
			worst = fmax(worst, fabs(got[i][k] - p));
		}
	ok(worst < 1e-6, "groups with separate rates and decay: error %.2g", worst);
	refused(yoke_optim_set(o, "tail.*", "lr=1"), YOKE_ENOENT,
		"'tail.*' matches none of the 3 parameters");
	yoke_optim *r = make("rmsprop", "momentum=0.9", &s);
	step(r, s.g, NULL);
	refused(yoke_optim_set(r, NULL, "momentum=0 centered=1"), YOKE_EINVAL,
		"changes which states head.weight has");
	ok(!yoke_optim_set(r, NULL, "momentum=0.5 alpha=0.5") && !step(r, s.g, NULL),
	   "settings of another group may change %s", yoke_error());
	yoke_optim_free(r);
	refused(yoke_optim_set(o, "body.*", "momentum=0.9"), YOKE_EINVAL,
		"changes which states body.weight has");
	yoke_optim_free(o);
	set_free(&s);
}

static void schedules(void)
{
	struct set s;
	set_make(&s);
	yoke_optim *o = make("sgd", "lr=1 schedule=linear warmup=2 steps=6 lr_min=0.2", &s);
	static const double want[] = { 0.5, 1, 0.8, 0.6, 0.4, 0.2, 0.2 };
	double got[7];
	for (int t = 1; t <= 7; t++)
		got[t - 1] = yoke_optim_lr(o, names[0], t);
	near(got, want, 7, 1e-15, 1, "a schedule of settings");
	float before = s.x[0][0], g = 1;
	yoke_put(s.g[0], &g, sizeof g);
	for (int t = 1; t <= 3; t++) { // the second is skipped, so the next one has its rate
		step(o, s.g, NULL);
		if (t == 2) {
			yoke_read(s.p[0], &before, sizeof before);
			yoke_optim_skipped(o);
		}
	}
	yoke_read(s.p[0], &g, sizeof g);
	ok(fabs(before - g - 1) < 1e-6 && yoke_optim_steps(o) == 2,
	   "the schedule counts only steps that were made: a step of %g",
	   (double)(before - g));
	yoke_optim_free(o);
	set_free(&s);
}

// ---- files, contexts ----

static const struct {
	const char *kind, *settings;
} stored[] = {
	{ "adamw", "lr=0.01 amsgrad=1" },
	{ "accelerated", "lr=0.05" },
	{ "adagrad", "lr=0.1 window=3" },
	{ "heavy_ball", "lr=0.1" },
	{ "adagrad", "lr=0.1 initial=0.5" },
	{ "nadam", "lr=0.1" },
	{ "radam", "lr=0.1 beta2=0.9" },
	{ "rprop", "lr=0.1" },
	{ "asgd", "lr=0.1 t0=2" },
};

// t steps in all, with states saved to a file, or moved to another context, in the middle: bit for
// bit the same.
static void moved(int which, const char *to, bool by_file)
{
	static const char path[] = "states.safetensors";
	struct set s;
	float gradient[9][N][LIMIT], want[N][LIMIT], got[N][LIMIT];
	yoke_tensor *p[N], *g[N];
	set_make(&s);
	for (int t = 0; t < 9; t++)
		draw(s.g, gradient[t], 1);
	for (int half = 0; half < 2; half++) {
		for (int i = 0; i < N; i++)
			yoke_put(s.p[i], s.x[i], (size_t)counts[i] * sizeof(float));
		yoke_optim *o = make(stored[which].kind, stored[which].settings, &s);
		yoke_context *other = NULL, *former = NULL;
		memcpy(p, s.p, sizeof p);
		memcpy(g, s.g, sizeof g);
		for (int t = 0; t < 9; t++) {
			for (int k = 0; t == 4 && half && by_file && k < 1; k++) {
				bool good = !yoke_optim_save(o, path);
				yoke_optim_free(o);
				o = make(stored[which].kind, stored[which].settings, &s);
				ok(good && !yoke_optim_load(o, path) && yoke_optim_steps(o) == 4,
				   "saved and loaded %s", yoke_error());
			}
			if (t == 4 && half && !by_file) {
				read_all(p, got);
				other = yoke_context_new(to);
				former = yoke_use(other);
				for (int i = 0; i < N; i++) {
					p[i] = yoke_variable("p", yoke_f32, 1, &counts[i]);
					g[i] = yoke_variable("g", yoke_f32, 1, &counts[i]);
					yoke_put(p[i], got[i], (size_t)counts[i] * sizeof(float));
				}
				ok(!yoke_optim_move(o, other, p), "moved to %s %s", to,
				   yoke_error());
				// and back, and there again
				yoke_use(former);
				ok(!yoke_optim_move(o, former, s.p) &&
					   !yoke_optim_move(o, other, p),
				   "and moved back %s", yoke_error());
				yoke_use(other);
			}
			for (int i = 0; i < N; i++)
				yoke_put(g[i], gradient[t][i], (size_t)counts[i] * sizeof(float));
			step(o, g, NULL);
		}
		read_all(p, half ? got : want);
		yoke_optim_free(o);
		if (other) {
			yoke_use(former);
			yoke_context_free(other);
		}
	}
	double worst = 0;
	for (int i = 0; i < N; i++)
		for (int64_t k = 0; k < counts[i]; k++)
			worst = fmax(worst, fabs((double)want[i][k] - got[i][k]));
	ok((by_file || !strcmp(to, "cpu")) ? equal(want, got) : worst < 1e-5,
	   "%s %s: continues %s %s: %.2g %s", stored[which].kind, stored[which].settings,
	   by_file ? "from a file" : "on", by_file ? "" : to, worst, yoke_error());
	yoke_error_clear();
	set_free(&s);
}

static void bad_files(void)
{
	static const char path[] = "states.safetensors";
	struct set s;
	float p[N][LIMIT], q[N][LIMIT];
	const int64_t other = 5;
	set_make(&s);
	yoke_optim *o = make("adamw", NULL, &s);
	step(o, s.g, NULL);
	yoke_optim_save(o, path);
	yoke_optim_free(o);
	o = make("sgd", "momentum=0.9", &s);
	refused(yoke_optim_load(o, path), YOKE_EFORMAT, "holds states of adamw, this is sgd");
	yoke_optim_free(o);
	o = make("adamw", "amsgrad=1", &s);
	refused(yoke_optim_load(o, path), YOKE_EFORMAT, "has no vmax.head.weight");
	yoke_optim_free(o);
	o = yoke_optim_new("adamw", NULL);
	yoke_optim_add(o, 2, s.p, names, NULL);
	refused(yoke_optim_load(o, path), YOKE_EFORMAT, "has 7 arrays, here are 5");
	yoke_tensor *t = yoke_variable("p", yoke_f32, 1, &other);
	yoke_optim_add(o, 1, &t, names + 2, NULL);
	refused(yoke_optim_load(o, path), YOKE_ESHAPE, "m.body.bias has another shape");
	yoke_optim_free(o);
	o = make("adamw", NULL, &s);
	step(o, s.g, NULL);
	for (int i = 0; i < N; i++)
		yoke_read(yoke_optim_state(o, names[i], "v"), p[i],
			  (size_t)counts[i] * sizeof(float));
	FILE *f = fopen(path, "r+");
	fseek(f, -4, SEEK_END);
	int fd = fileno(f);
	ok(ftruncate(fd, ftell(f)) == 0, "a truncated file is refused");
	fclose(f);
	int err = yoke_optim_load(o, path);
	refused(err, YOKE_EFORMAT, path);
	refused(yoke_optim_load(o, "none.safetensors"), YOKE_ENOENT, "none.safetensors");
	for (int i = 0; i < N; i++)
		yoke_read(yoke_optim_state(o, names[i], "v"), q[i],
			  (size_t)counts[i] * sizeof(float));
	ok(equal(p, q) && yoke_optim_steps(o) == 1, "and nothing is changed");
	yoke_optim_free(o);
	yoke_free(t);
	set_free(&s);
	unlink(path);
}

// ---- bad input ----

static void bad_settings(void)
{
	static const struct {
		const char *kind, *settings;
		int err;
		const char *part;
	} bad[] = {
		{ "lion", "", YOKE_ENOENT,
		  "there is no optimizer 'lion'; there are sgd heavy_ball" },
		{ "sgd", "nesterov=1", YOKE_EINVAL,
		  "nesterov=1 needs momentum above 0, got momentum=0" },
		{ "sgd", "nesterov=1 momentum=0.9 dampening=0.1", YOKE_EINVAL,
		  "nesterov=1 does not go with dampening above 0, got dampening=0.1" },
		{ "rmsprop", "nesterov=1", YOKE_EINVAL, "nesterov=1 needs momentum" },
		{ "adam", "beta1=1", YOKE_EINVAL, "beta1=1: must be a number from 0 to below 1" },
		{ "adam", "beta2=-0.5", YOKE_EINVAL, "beta2=-0.5" },
		{ "adam", "lr=-1", YOKE_EINVAL, "lr=-1: must be a number from 0" },
		{ "adam", "eps=-1e-8", YOKE_EINVAL, "eps=-1e-8" },
		{ "adam", "lr=nan", YOKE_EINVAL, "lr=nan" },
		{ "adam", "lr=1,5", YOKE_EINVAL, "lr=1,5" },
		{ "adam", "amsgrad=yes", YOKE_EINVAL, "amsgrad=yes: must be one of: 0 1" },
		{ "adam", "betta1=0.9", YOKE_ENOENT, "did you mean 'beta1'" },
		{ "adam", "momentum=0.9", YOKE_ENOENT, "adam has no setting 'momentum'" },
		{ "adam", "lr", YOKE_EINVAL, "must be key=value" },
		{ "adagrad", "window=0", YOKE_EINVAL, "window=0: must be a whole number from 1" },
		{ "adagrad", "window=2.5", YOKE_EINVAL, "window=2.5: must be a whole number" },
		{ "adagrad", "window_by=mean", YOKE_EINVAL,
		  "window_by=mean needs window above 0, got window=" },
		{ "adagrad", "window=3 initial=1", YOKE_EINVAL,
		  "initial=1 does not go with window above 0, got window=3" },
		{ "lamb", "norm_min=2 norm_max=1", YOKE_EINVAL,
		  "no norm is in norm_min=2 .. norm_max=1" },
		{ "adamw", "clip=1 clip_value=1", YOKE_EINVAL,
		  "clip=1 does not go with clip_value above 0, got clip_value=1" },
		{ "adamw", "schedule=cosine", YOKE_EINVAL, "schedule=cosine needs steps" },
		{ "accelerated", "restart=often", YOKE_EINVAL,
		  "must be one of: none function gradient speed" },
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		yoke_optim *o = yoke_optim_new(bad[i].kind, bad[i].settings);
		refused(o ? 0 : yoke_error_code(), bad[i].err, bad[i].part);
		yoke_optim_free(o);
	}
}

static void bad_tensors(void)
{
	struct set s;
	float p[N][LIMIT];
	const int64_t two = 2;
	set_make(&s);
	yoke_tensor *g[N], *shape = yoke_variable("x", yoke_f32, 1, &two);
	yoke_tensor *dtype = yoke_variable("x", yoke_f64, 1, counts + 1);
	yoke_tensor *half = yoke_variable("h", yoke_f16, 1, &two);
	yoke_context *other = yoke_context_new("cpu"), *former = yoke_use(other);
	yoke_tensor *foreign = yoke_variable("x", yoke_f32, 1, counts + 1);
	yoke_use(former);
	yoke_optim *o = yoke_optim_new("accelerated", "restart=function");
	refused(yoke_optim_step(o, N, s.g, NULL), YOKE_EINVAL,
		"no parameters were added; call yoke_optim_add first");
	refused(yoke_optim_state(o, NULL, "theta") ? 0 : yoke_error_code(), YOKE_EINVAL,
		"no parameters were added");
	refused(yoke_optim_save(o, "x"), YOKE_EINVAL, "no parameters were added");
	refused(yoke_optim_add(o, 1, &half, names, NULL), YOKE_EDTYPE,
		"head.weight: is f16; parameters are f32 or f64");
	yoke_scope *scope = yoke_scope_begin("x");
	yoke_tensor *value = yoke_neg(shape);
	refused(yoke_optim_add(o, 1, &value, names, NULL), YOKE_EINVAL,
		"head.weight: is no variable");
	yoke_scope_end(scope);
	refused(yoke_optim_add(o, 2, (yoke_tensor *[]){ s.p[1], foreign }, names, NULL),
		YOKE_ECONTEXT, "body.weight: is of another context");
	refused(yoke_optim_add(o, 2, s.p, (const char *const[]){ "a", "a" }, NULL), YOKE_EINVAL,
		"a: is there twice");
	refused(yoke_optim_add(o, 3, (yoke_tensor *[]){ s.p[0], s.p[1], s.p[0] },
			       (const char *const[]){ "emb", "body", "head" }, NULL),
		YOKE_EINVAL, "emb and head are the same variable");
	refused(yoke_optim_add(o, N, s.p, names, "restart=none"), YOKE_EINVAL,
		"restart is one for all parameters");
	ok(!yoke_optim_add(o, N, s.p, names, NULL), "parameters are added %s", yoke_error());
	refused(yoke_optim_add(o, 1, &shape, names, NULL), YOKE_EINVAL,
		"head.weight: was added already");
	refused(yoke_optim_add(o, 1, &s.p[1], (const char *const[]){ "again" }, NULL), YOKE_EINVAL,
		"body.weight and again are the same variable");
	refused(yoke_optim_step(o, 2, s.g, NULL), YOKE_EINVAL, "2 gradients for 3 parameters");
	refused(yoke_optim_step(o, N, s.g, NULL), YOKE_EINVAL, "restart=function needs the loss");
	memcpy(g, s.g, sizeof g);
	g[1] = shape;
	refused(yoke_optim_step(o, N, g, NULL), YOKE_ESHAPE,
		"gradient of body.weight: is f32 [2], the parameter f32 [257]");
	g[1] = dtype;
	refused(yoke_optim_step(o, N, g, NULL), YOKE_EDTYPE,
		"gradient of body.weight: is f64 [257]");
	g[1] = foreign;
	refused(yoke_optim_step(o, N, g, NULL), YOKE_ECONTEXT,
		"gradient of body.weight: is of another context");
	struct yoke_step given = plain;
	given.skip = shape;
	refused(yoke_optim_step(o, N, s.g, &given), YOKE_ESHAPE, "skip is one number");
	given.size = 0;
	refused(yoke_optim_step(o, N, s.g, &given), YOKE_EINVAL, "set size");
	refused(yoke_optim_move(o, other, (yoke_tensor *[]){ foreign, foreign, foreign }),
		YOKE_ESHAPE, "head.weight: is no variable of the same dtype and shape");
	refused(yoke_optim_state(o, "head.weight", "m") ? 0 : yoke_error_code(), YOKE_ENOENT,
		"no state 'm.head.weight'");
	refused(yoke_optim_check(o), YOKE_EINVAL, "needs check=1");
	read_all(s.p, p);
	ok(equal(p, s.x) && yoke_optim_steps(o) == 0, "and nothing is changed");
	yoke_optim_free(o);
	o = make("adagrad", "precondition=post", &s);
	refused(yoke_optim_step(o, N, s.g, NULL), YOKE_EINVAL,
		"precondition is set for head.weight, and no tensors");
	yoke_optim_free(o);
	yoke_free(shape);
	yoke_free(dtype);
	yoke_free(half);
	yoke_context_free(other);
	set_free(&s);
}

// Arrays of the caller, without a model: parameters are written, gradients are used in place.
static void arrays(void)
{
	float w[4] = { 1, 2, 3, 4 };
	_Alignas(64) static float grad[4] = { 1, -1, 0.5, 0 };
	const int64_t n = 4;
	yoke_tensor *p = yoke_variable("w", yoke_f32, 1, &n);
	yoke_put(p, w, sizeof w);
	yoke_optim *o = yoke_optim_new("sgd", "lr=0.5");
	yoke_optim_add(o, 1, &p, (const char *const[]){ "w" }, NULL);
	for (int t = 0; t < 3; t++) {
		yoke_scope *s = yoke_scope_begin("step");
		yoke_tensor *g = yoke_wrap(yoke_f32, 1, &n, grad, NULL, NULL);
		yoke_optim_step(o, 1, &g, NULL);
		yoke_read(p, w, sizeof w);
		yoke_scope_end(s);
	}
	ok(w[0] == -0.5f && w[1] == 3.5f && w[2] == 2.25f && w[3] == 4,
	   "arrays of the caller's: %g %g %g %g %s", (double)w[0], (double)w[1], (double)w[2],
	   (double)w[3], yoke_error());
	yoke_optim_free(o);
	yoke_free(p);
}

int main(void)
{
	tap_seed();
	tap_folder();
	tap_plugin_path();
	zero_gradient();
	heavy_ball(false);
	heavy_ball(true);
	constant_pre();
	centered();
	lamb_norms();
	const uint64_t starts = rnd();
	int none = quadratic(starts, "lr=1 restart=none"),
	    some = quadratic(starts, "lr=1 restart=gradient");
	ok(none > 1500 && none < 2700, "a quadratic without restarts: %d iterations", none);
	ok(2 * some <= none, "with restarts at most half as many: %d", some);
	some = quadratic(starts, "lr=1 restart=function");
	ok(2 * some <= none, "with restarts by the loss: %d", some);
	int speed = quadratic(starts, "lr=1 restart=speed");
	ok(speed < none, "with restarts by the speed: %d", speed);
	in_two_launches("sgd", "clip=1", 2);
	in_two_launches("adamw", "clip=1", 2);
	in_two_launches("adamw", "clip_value=1", 1);
	in_two_launches("rmsprop", "clip=1 centered=1 momentum=0.9", 2);
	not_finite("adamw", "check=1 clip=1", INFINITY, 1, 0);
	not_finite("adamw", "check=1", NAN, 2, counts[2] - 1);
	not_finite("lamb", "check=1", -INFINITY, 1, 100);
	not_finite("accelerated", "check=1 clip=1", INFINITY, 0, 0);
	lost("adamw", "lr=0.1 clip=1 schedule=cosine steps=12 warmup=2 check=1");
	lost("adam", "lr=0.1 check=1");
	lost("lamb", "lr=0.1 check=1");
	skipped("adamw", "lr=0.1 clip=1 amsgrad=1 check=1");
	skipped("sgd", "lr=0.1 momentum=0.9");
	skipped("lamb", "lr=0.1");
	skipped("heavy_ball", "lr=0.1");
	skipped("adagrad", "lr=0.1 window=4");
	skipped("nadam", "lr=0.1 clip=1 decoupled_weight_decay=1 weight_decay=0.1");
	skipped("radam", "lr=0.1");
	skipped("adamax", "lr=0.1 check=1");
	skipped("rprop", "lr=0.1");
	skipped("asgd", "lr=0.1 t0=1");
	skipped("accelerated", "lr=0.1 check=1");
	scaled();
	groups();
	schedules();
	const bool opencl = getenv("YOKE_TEST_OPENCL");
	for (int k = 0; k < (int)(sizeof stored / sizeof *stored); k++) {
		moved(k, NULL, true);
		moved(k, "cpu", false);
		if (opencl && tap_turn(stored[k].settings, 5))
			moved(k, "opencl", false);
	}
	bad_files();
	bad_settings();
	bad_tensors();
	arrays();
	return done();
}
