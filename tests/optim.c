// SPDX-License-Identifier: Apache-2.0
// Tests the optimizers of yoke-optim.h against float64 loops over their definitions: each with
// its variants, 100 steps on tensors of 1, 255, 256, 257 and more elements together, on the CPU
// and, for a sample, on OpenCL.
#include "config.h"

#include "dtypes.h"
#include "tap.h"
#include "yoke-optim.h"

enum { N = 6, STEPS = 100, STATES = 4, MAX_WINDOW = 12, MILLION = 1000003 };

// The numeric definition of a variant; 0 is off.
struct rule {
	double lr, decay, clip, clip_value;
	double momentum, dampening, beta1, beta2, eps, alpha, rho, lr_decay, initial, min, max, q;
	double momentum_decay, down, up, lambd, t0; // down, up: factors of a step
	bool nesterov, amsgrad, centered, adapt, decoupled;
	// by: 0 sum, 1 mean, 2 decayed; 1 pre, 2 post; 1 .. as the words
	int window, by, precondition, restart;
};

struct run {
	int n;
	int64_t count[N];
	double *p[N], *g[N], *P[N], *s[N][STATES], *ring[N][MAX_WINDOW];
	double theta, last;
	int since, restarts;
};

typedef void step_fn(const struct rule *, struct run *, int t);

// ---- the definitions ----

#define EACH(i, k) \
	for (int i = 0; i < r->n; i++) \
		for (int64_t k = 0; k < r->count[i]; k++)

static void sgd(const struct rule *o, struct run *r, int t)
{
	EACH(i, k) {
		double *p = &r->p[i][k], g = r->g[i][k] + o->decay * *p, *b = &r->s[i][0][k];
		if (o->momentum > 0) {
			*b = t == 1 ? g : o->momentum * *b + (1 - o->dampening) * g;
			g = o->nesterov ? g + o->momentum * *b : *b;
		}
		*p -= o->lr * g;
	}
}

static void heavy_ball(const struct rule *o, struct run *r, int t)
{
	EACH(i, k) {
		double *p = &r->p[i][k], *prev = &r->s[i][0][k], was = t == 1 ? *p : *prev,
		       now = *p;
		*p = now - o->lr * (r->g[i][k] + o->decay * now) + o->momentum * (now - was);
		*prev = now;
	}
}

static void adam(const struct rule *o, struct run *r, int t, bool decoupled)
{
	EACH(i, k) {
		double *p = &r->p[i][k], g = r->g[i][k], *m = &r->s[i][0][k], *v = &r->s[i][1][k];
		double *top = &r->s[i][2][k], used;
		if (decoupled)
			*p *= 1 - o->lr * o->decay;
		else
			g += o->decay * *p;
		*m = o->beta1 * *m + (1 - o->beta1) * g;
		*v = o->beta2 * *v + (1 - o->beta2) * g * g;
		*top = fmax(*top, *v);
		used = o->amsgrad ? *top : *v;
		*p -= o->lr / (1 - pow(o->beta1, t)) * *m /
		      (sqrt(used) / sqrt(1 - pow(o->beta2, t)) + o->eps);
	}
}

static void coupled(const struct rule *o, struct run *r, int t)
{
	adam(o, r, t, false);
}

static void decoupled(const struct rule *o, struct run *r, int t)
{
	adam(o, r, t, true);
}

static void lamb(const struct rule *o, struct run *r, int t)
{
	for (int i = 0; i < r->n; i++) {
		double pp = 0, uu = 0, *u = calloc((size_t)r->count[i] + 1, sizeof *u), ratio = 1;
		for (int64_t k = 0; k < r->count[i]; k++) {
			double g = r->g[i][k], *m = &r->s[i][0][k], *v = &r->s[i][1][k];
			*m = o->beta1 * *m + (1 - o->beta1) * g;
			*v = o->beta2 * *v + (1 - o->beta2) * g * g;
			u[k] = *m / (1 - pow(o->beta1, t)) /
				       (sqrt(*v / (1 - pow(o->beta2, t))) + o->eps) +
			       o->decay * r->p[i][k];
			pp += r->p[i][k] * r->p[i][k];
			uu += u[k] * u[k];
		}
		if (o->adapt && pp > 0 && uu > 0)
			ratio = fmin(fmax(sqrt(pp), o->min), o->max > 0 ? o->max : INFINITY) /
				sqrt(uu);
		for (int64_t k = 0; k < r->count[i]; k++)
			r->p[i][k] -= o->lr * ratio * u[k];
		free(u);
	}
}

static void rmsprop(const struct rule *o, struct run *r, int t)
{
	(void)t;
	EACH(i, k) {
		double *p = &r->p[i][k], g = r->g[i][k] + o->decay * *p, *v = &r->s[i][0][k];
		double *mean = &r->s[i][1][k], *b = &r->s[i][2][k], square, u;
		*v = o->alpha * *v + (1 - o->alpha) * g * g;
		*mean = o->alpha * *mean + (1 - o->alpha) * g;
		square = o->centered ? fmax(*v - *mean * *mean, 0) : *v;
		u = g / (sqrt(square) + o->eps);
		*b = o->momentum * *b + u;
		*p -= o->lr * (o->momentum == 0 ? u : o->nesterov ? u + o->momentum * *b : *b);
	}
}

static void adagrad(const struct rule *o, struct run *r, int t)
{
	EACH(i, k) {
		double *p = &r->p[i][k], g = r->g[i][k] + o->decay * *p, *h = &r->s[i][0][k],
		       sum = 0;
		if (o->precondition == 1)
			g *= r->P[i][k];
		if (t == 1)
			*h = o->initial;
		if (!o->window) {
			sum = *h += g * g;
		} else if (o->by == 2) {
			sum = *h = (1 - 1.0 / o->window) * *h + g * g;
		} else {
			r->ring[i][(t - 1) % o->window][k] = g * g;
			for (int w = 0; w < o->window; w++)
				sum += r->ring[i][w][k];
			*h = sum;
			if (o->by == 1)
				sum /= fmin(t, o->window);
		}
		double step = g / (sqrt(sum) + o->eps);
		*p -= o->lr / (1 + (t - 1) * o->lr_decay) * step *
		      (o->precondition == 2 ? r->P[i][k] : 1);
	}
}

static void adadelta(const struct rule *o, struct run *r, int t)
{
	(void)t;
	EACH(i, k) {
		double *p = &r->p[i][k], g = r->g[i][k] + o->decay * *p, *e = &r->s[i][0][k],
		       *d = &r->s[i][1][k];
		*e = o->rho * *e + (1 - o->rho) * g * g;
		double by = sqrt(*d + o->eps) / sqrt(*e + o->eps) * g;
		*d = o->rho * *d + (1 - o->rho) * by * by;
		*p -= o->lr * by;
	}
}

static void nadam(const struct rule *o, struct run *r, int t)
{
	double mu[2] = { 0 }, product = 1;
	for (int i = 1; i <= t + 1; i++) {
		mu[0] = mu[1];
		mu[1] = o->beta1 * (1 - 0.5 * pow(0.96, i * o->momentum_decay));
		product *= i <= t ? mu[1] : 1;
	}
	EACH(i, k) {
		double *p = &r->p[i][k], g = r->g[i][k], *m = &r->s[i][0][k], *v = &r->s[i][1][k];
		if (o->decoupled)
			*p -= o->lr * o->decay * *p;
		else
			g += o->decay * *p;
		*m += (1 - o->beta1) * (g - *m);
		*v += (1 - o->beta2) * (g * g - *v);
		const double root = sqrt(*v / (1 - pow(o->beta2, t))) + o->eps;
		*p -= o->lr * (1 - mu[0]) / (1 - product) * g / root;
		*p -= o->lr * mu[1] / (1 - product * mu[1]) * *m / root;
	}
}

static void radam(const struct rule *o, struct run *r, int t)
{
	const double left = pow(o->beta2, t), longest = 2 / (1 - o->beta2) - 1,
		     length = longest - 2 * t * left / (1 - left);
	EACH(i, k) {
		double *p = &r->p[i][k], g = r->g[i][k], *m = &r->s[i][0][k], *v = &r->s[i][1][k],
		       step;
		if (o->decoupled)
			*p -= o->lr * o->decay * *p;
		else
			g += o->decay * *p;
		*m += (1 - o->beta1) * (g - *m);
		*v += (1 - o->beta2) * (g * g - *v);
		step = *m / (1 - pow(o->beta1, t));
		if (length > 5)
			step *= sqrt((length - 4) * (length - 2) * longest /
				     ((longest - 4) * (longest - 2) * length)) *
				sqrt(1 - left) / (sqrt(*v) + o->eps);
		*p -= o->lr * step;
	}
}

static void adamax(const struct rule *o, struct run *r, int t)
{
	EACH(i, k) {
		double *p = &r->p[i][k], g = r->g[i][k] + o->decay * *p, *m = &r->s[i][0][k],
		       *u = &r->s[i][1][k];
		*m += (1 - o->beta1) * (g - *m);
		*u = fmax(o->beta2 * *u, fabs(g) + o->eps);
		*p -= o->lr / (1 - pow(o->beta1, t)) * *m / *u;
	}
}

static void rprop(const struct rule *o, struct run *r, int t)
{
	EACH(i, k) {
		double g = r->g[i][k], *prev = &r->s[i][0][k], *s = &r->s[i][1][k],
		       turn = g * *prev;
		*s = t == 1 ? o->lr : *s;
		*s = fmin(fmax(*s * (turn > 0 ? o->up : turn < 0 ? o->down : 1), o->min), o->max);
		*prev = turn < 0 ? 0 : g;
		r->p[i][k] -= *prev > 0 ? *s : *prev < 0 ? -*s : 0;
	}
}

static void asgd(const struct rule *o, struct run *r, int t)
{
	const double rate = o->lr / pow(1 + o->lambd * o->lr * (t - 1), o->alpha);
	EACH(i, k) {
		double *p = &r->p[i][k], g = r->g[i][k] + o->decay * *p, *mean = &r->s[i][0][k];
		*p = *p * (1 - o->lambd * rate) - rate * g;
		*mean += (*p - *mean) / fmax(1, t - 1 - o->t0);
	}
}

// The loss that restart=function observes: half of the squared distance from 0.
static double loss_of(const struct run *r, double *const *p)
{
	double sum = 0;
	EACH(i, k)
		sum += p[i][k] * p[i][k];
	return sum / 2;
}

static void accelerated(const struct rule *o, struct run *r, int t)
{
	double dot = 0, square = 0, f;
	EACH(i, k) {
		double *x = &r->s[i][0][k], *next = &r->s[i][1][k],
		       g = r->g[i][k] + o->decay * r->p[i][k];
		*x = t == 1 ? r->p[i][k] : *x;
		*next = r->p[i][k] - o->lr * g;
		dot += g * (*next - *x);
		square += (*next - *x) * (*next - *x);
	}
	double *at[N];
	for (int i = 0; i < r->n; i++)
		at[i] = r->s[i][1];
	f = loss_of(r, at);
	bool restart = o->restart == 1 ? t > 1 && f > r->last :
		       o->restart == 2 ? dot > 0 :
		       o->restart == 3 ? t > 1 && square < r->last && r->since + 1 >= 10 : false;
	double theta = t == 1 ? 1 : r->theta, y = theta * theta;
	double next = ((o->q - y) + sqrt((y - o->q) * (y - o->q) + 4 * y)) / 2;
	double beta = restart ? 0 : theta * (1 - theta) / (y + next);
	r->theta = restart ? 1 : next;
	r->last = o->restart == 1 ? f : square;
	r->since = restart ? 0 : r->since + 1;
	r->restarts += restart;
	EACH(i, k) {
		double *x = &r->s[i][0][k], to = r->s[i][1][k];
		r->p[i][k] = to + beta * (to - *x);
		*x = to;
	}
}

// ---- the run ----

static double *room(int64_t n)
{
	return calloc((size_t)n + 1, sizeof(double));
}

static void run_make(struct run *r, const int64_t *count, int n)
{
	*r = (struct run){ .n = n };
	for (int i = 0; i < n; i++) {
		r->count[i] = count[i];
		r->p[i] = room(count[i]);
		r->g[i] = room(count[i]);
		r->P[i] = room(count[i]);
		for (int k = 0; k < STATES; k++)
			r->s[i][k] = room(count[i]);
		for (int k = 0; k < MAX_WINDOW; k++)
			r->ring[i][k] = count[i] < MILLION ? room(count[i]) : NULL;
	}
}

static void run_free(struct run *r)
{
	for (int i = 0; i < r->n; i++) {
		free(r->p[i]);
		free(r->g[i]);
		free(r->P[i]);
		for (int k = 0; k < STATES; k++)
			free(r->s[i][k]);
		for (int k = 0; k < MAX_WINDOW; k++)
			free(r->ring[i][k]);
	}
}

// Noisy gradients that pull to 0; g is the value before clipping. They avoid cancellation with the
// decay term: where the sum has only a few bits left in f32, the first steps, which divide by its
// magnitude, would have full length.
static void draw(const struct rule *o, struct run *r, int dtype, yoke_tensor **g)
{
	double square = 0, by = 1;
	EACH(i, k) {
		r->g[i][k] = rounded(dtype, 0.3 * r->p[i][k] + rnd_real(-1, 1));
		if (fabs(r->g[i][k] + o->decay * r->p[i][k]) < 1e-3)
			r->g[i][k] = rounded(dtype, r->g[i][k] + 0.01);
		square += r->g[i][k] * r->g[i][k];
	}
	for (int i = 0; i < r->n; i++)
		put(g[i], r->g[i]);
	if (o->clip > 0)
		by = fmin(1, o->clip / (sqrt(square) + 1e-6));
	EACH(i, k) {
		r->g[i][k] *= by;
		if (o->clip_value > 0)
			r->g[i][k] = fmin(fmax(r->g[i][k], -o->clip_value), o->clip_value);
	}
}

struct losses {
	int n;
	yoke_tensor **p;
};

static yoke_tensor *loss_now(void *arg)
{
	const struct losses *l = arg;
	yoke_tensor *sum = NULL;
	for (int i = 0; i < l->n; i++) {
		yoke_tensor *x = yoke_sum(yoke_square(l->p[i]), YOKE_ALL);
		sum = i ? yoke_add(sum, x) : x;
	}
	return yoke_mul(sum, yoke_const(0.5));
}

static uint64_t plans(void)
{
	struct yoke_stats s = { .size = sizeof s };
	yoke_stats(&s);
	return s.plan_misses;
}

static const char *const names[N] = { "a", "b.weight", "b.bias", "c", "d", "e" };

// The average of asgd follows the parameters.
static void good_average(const yoke_optim *opt, const struct run *r, int dtype, const char *what)
{
	double worst = 0;
	for (int i = 0; i < r->n; i++) {
		double *got = room(r->count[i]);
		get(yoke_optim_state(opt, names[i], "average"), got);
		for (int64_t k = 0; k < r->count[i]; k++)
			worst = fmax(worst,
				     isnan(got[k]) ? INFINITY : fabs(got[k] - r->s[i][0][k]));
		free(got);
	}
	ok(worst < (dtype == yoke_f64 ? 1e-11 : 1e-4), "%s: averages, error %.2g", what, worst);
}

static void compare(const char *kind, const char *settings, step_fn *step, struct rule o, int dtype,
		    bool million)
{
	const int64_t count[N] = { 1, 255, 256, 257, million ? MILLION : 4099, 0 };
	const int steps = million && !tap_long() ? 4 : STEPS;
	yoke_tensor *p[N], *g[N], *P[N];
	struct losses l = { N, p };
	struct run r;
	uint64_t early = 0;
	char what[200];
	snprintf(what, sizeof what, "%s %s, %s%s", kind, settings, yoke_dtype_name(dtype),
		 million ? ", a million elements" : "");
	run_make(&r, count, N);
	yoke_optim *opt = yoke_optim_new(kind, settings);
	for (int i = 0; i < N; i++) {
		for (int64_t k = 0; k < count[i]; k++) {
			r.p[i][k] = rounded(dtype, rnd_real(-1, 1));
			r.P[i][k] = rounded(dtype, rnd_real(0.5, 2));
		}
		p[i] = yoke_variable("p", dtype, 1, &count[i]);
		g[i] = yoke_variable("g", dtype, 1, &count[i]);
		P[i] = yoke_variable("P", dtype, 1, &count[i]);
		put(p[i], r.p[i]);
		put(P[i], r.P[i]);
	}
	bool good = opt && !yoke_optim_add(opt, N, p, names, NULL);
	struct yoke_step given = { .size = sizeof given,
				   .scale = YOKE_NONE,
				   .skip = YOKE_NONE,
				   .precondition = o.precondition ? P : NULL,
				   .loss = loss_now,
				   .arg = &l };
	for (int t = 1; t <= steps && good; t++) {
		yoke_scope *s = yoke_scope_begin("step");
		draw(&o, &r, dtype, g);
		step(&o, &r, t);
		good = !yoke_optim_step(opt, N, g, &given) && !yoke_eval(0, NULL);
		good = !yoke_scope_end(s) && good;
		if (t == (o.window ? 2 * o.window : 3))
			early = plans();
	}
	ok(good, "%s: %d steps %s", what, steps, yoke_error());
	ok(tap_eager() || million || plans() == early, "%s: no new plans", what);
	yoke_error_clear();
	// Roundings of a hundred steps; accelerated methods amplify each by 1 / (1 - beta), 30 in
	// the end.
	const double tolerance = dtype == yoke_f64 ? 1e-11 : step == accelerated ? 3e-4 : 1e-4;
	double worst = 0;
	for (int i = 0; i < N && good; i++) {
		double *got = room(count[i]);
		get(p[i], got);
		for (int64_t k = 0; k < count[i]; k++) {
			double e = fabs(got[k] - r.p[i][k]) / fmax(0.1, fabs(r.p[i][k]));
			worst = e > worst || isnan(e) ? e : worst;
		}
		free(got);
	}
	ok(worst < tolerance, "%s: parameters, error %.2g", what, worst);
	if (good && step == asgd)
		good_average(opt, &r, dtype, what);
	if (good && o.restart) {
		double got = NAN;
		get(yoke_optim_state(opt, NULL, "restarts"), &got);
		ok(got == r.restarts, "%s: %g restarts of %d", what, got, r.restarts);
	}
	yoke_optim_free(opt);
	for (int i = 0; i < N; i++) {
		yoke_free(p[i]);
		yoke_free(g[i]);
		yoke_free(P[i]);
	}
	run_free(&r);
}

static const struct variant {
	const char *kind, *settings;
	step_fn *step;
	struct rule rule;
	bool million, device; // with a million elements too; on OpenCL too
} variants[] = {
	{ "sgd", "lr=0.02", sgd, .rule = { .lr = .02 }, .device = true },
	{ "sgd", "lr=0.02 weight_decay=0.1 momentum=0.9", sgd,
	  .rule = { .lr = .02, .decay = .1, .momentum = .9 } },
	{ "sgd", "lr=0.02 momentum=0.9 dampening=0.4", sgd,
	  .rule = { .lr = .02, .momentum = .9, .dampening = .4 } },
	{ "sgd", "lr=0.02 weight_decay=0.1 momentum=0.9 nesterov=1 clip=1.5", sgd,
	  .rule = { .lr = .02, .decay = .1, .momentum = .9, .nesterov = true, .clip = 1.5 },
	  .device = true },
	{ "sgd", "lr=0.02 clip_value=0.4", sgd, .rule = { .lr = .02, .clip_value = .4 } },
	{ "heavy_ball", "lr=0.02 momentum=0.8 weight_decay=0.05", heavy_ball,
	  .rule = { .lr = .02, .momentum = .8, .decay = .05 }, .device = true },
	{ "accelerated", "lr=0.05 restart=none q=0.01", accelerated,
	  .rule = { .lr = .05, .q = .01 } },
	{ "accelerated", "lr=0.05 restart=function", accelerated,
	  .rule = { .lr = .05, .restart = 1 } },
	{ "accelerated", "lr=0.05 weight_decay=0.1", accelerated,
	  .rule = { .lr = .05, .decay = .1, .restart = 2 }, .device = true },
	{ "accelerated", "lr=0.05 restart=speed clip=40", accelerated,
	  .rule = { .lr = .05, .clip = 40, .restart = 3 } },
	{ "adam", "lr=0.01 weight_decay=0.1", coupled,
	  .rule = { .lr = .01, .decay = .1, .beta1 = .9, .beta2 = .999, .eps = 1e-8 } },
	{ "adam", "lr=0.01 amsgrad=1 beta1=0.8 beta2=0.5", coupled,
	  .rule = { .lr = .01, .beta1 = .8, .beta2 = .5, .eps = 1e-8, .amsgrad = true } },
	{ "adamw", "lr=0.01 weight_decay=0.1 clip=1", decoupled,
	  .rule = { .lr = .01, .decay = .1, .beta1 = .9, .beta2 = .999, .eps = 1e-8, .clip = 1 },
	  .million = true, .device = true },
	{ "adamw", "lr=0.01 amsgrad=1 beta2=0.5 eps=0.001", decoupled,
	  .rule = { .lr = .01,
		    .decay = .01,
		    .beta1 = .9,
		    .beta2 = .5,
		    .eps = 1e-3,
		    .amsgrad = true },
	  .device = true },
	{ "lamb", "lr=0.01 clip=1", lamb,
	  .rule = { .lr = .01,
		    .decay = .01,
		    .beta1 = .9,
		    .beta2 = .999,
		    .eps = 1e-6,
		    .adapt = true,
		    .clip = 1 },
	  .million = true, .device = true },
	{ "lamb", "lr=0.01 norm_min=2 norm_max=5 weight_decay=0", lamb,
	  .rule = { .lr = .01,
		    .beta1 = .9,
		    .beta2 = .999,
		    .eps = 1e-6,
		    .adapt = true,
		    .min = 2,
		    .max = 5 } },
	{ "lamb", "lr=0.01 adapt=0", lamb,
	  .rule = { .lr = .01, .decay = .01, .beta1 = .9, .beta2 = .999, .eps = 1e-6 } },
	{ "rmsprop", "weight_decay=0.1", rmsprop,
	  .rule = { .lr = .01, .decay = .1, .alpha = .99, .eps = 1e-8 } },
	{ "rmsprop", "centered=1 alpha=0.9", rmsprop,
	  .rule = { .lr = .01, .alpha = .9, .eps = 1e-8, .centered = true } },
	{ "rmsprop", "momentum=0.9", rmsprop,
	  .rule = { .lr = .01, .alpha = .99, .eps = 1e-8, .momentum = .9 } },
	{ "rmsprop", "momentum=0.9 nesterov=1 centered=1 clip=1 check=1", rmsprop,
	  .rule = { .lr = .01,
		    .alpha = .99,
		    .eps = 1e-8,
		    .momentum = .9,
		    .nesterov = true,
		    .centered = true,
		    .clip = 1 },
	  .device = true },
	{ "adagrad", "weight_decay=0.1", adagrad,
	  .rule = { .lr = .01, .decay = .1, .eps = 1e-10 } },
	{ "adagrad", "lr_decay=0.1 initial=0.5", adagrad,
	  .rule = { .lr = .01, .lr_decay = .1, .initial = .5, .eps = 1e-10 } },
	{ "adagrad", "precondition=post", adagrad,
	  .rule = { .lr = .01, .eps = 1e-10, .precondition = 2 } },
	{ "adagrad", "precondition=pre", adagrad,
	  .rule = { .lr = .01, .eps = 1e-10, .precondition = 1 } },
	{ "adagrad", "window=7", adagrad, .rule = { .lr = .01, .eps = 1e-10, .window = 7 },
	  .device = true },
	{ "adagrad", "window=12 window_by=mean precondition=post", adagrad,
	  .rule = { .lr = .01, .eps = 1e-10, .window = 12, .by = 1, .precondition = 2 } },
	{ "adagrad", "window=1 eps=0.1", adagrad, .rule = { .lr = .01, .eps = .1, .window = 1 } },
	{ "adagrad", "window=2 eps=0.1 window_by=mean", adagrad,
	  .rule = { .lr = .01, .eps = .1, .window = 2, .by = 1 } },
	{ "adagrad", "window=7 window_by=decayed", adagrad,
	  .rule = { .lr = .01, .eps = 1e-10, .window = 7, .by = 2 } },
	{ "adadelta", "weight_decay=0.1", adadelta,
	  .rule = { .lr = 1, .decay = .1, .rho = .9, .eps = 1e-6 }, .device = true },
	{ "nadam", "lr=0.01 weight_decay=0.1", nadam,
	  .rule = { .lr = .01,
		    .decay = .1,
		    .beta1 = .9,
		    .beta2 = .999,
		    .eps = 1e-8,
		    .momentum_decay = .004 },
	  .device = true },
	{ "nadam",
	  "decoupled_weight_decay=1 weight_decay=0.1 clip=1 momentum_decay=0.1 beta1=0.8 beta2=0.5",
	  nadam,
	  .rule = { .lr = .002,
		    .decay = .1,
		    .beta1 = .8,
		    .beta2 = .5,
		    .eps = 1e-8,
		    .momentum_decay = .1,
		    .decoupled = true,
		    .clip = 1 } },
	{ "radam", "lr=0.01 weight_decay=0.1", radam,
	  .rule = { .lr = .01, .decay = .1, .beta1 = .9, .beta2 = .999, .eps = 1e-8 },
	  .device = true },
	{ "radam", "decoupled_weight_decay=1 weight_decay=0.1 beta2=0.9 eps=0.01", radam,
	  .rule = { .lr = .001,
		    .decay = .1,
		    .beta1 = .9,
		    .beta2 = .9,
		    .eps = .01,
		    .decoupled = true } },
	{ "radam", "beta2=0.5", radam,
	  .rule = { .lr = .001, .beta1 = .9, .beta2 = .5, .eps = 1e-8 } },
	{ "adamax", "lr=0.01 weight_decay=0.1 clip_value=0.5", adamax,
	  .rule = { .lr = .01,
		    .decay = .1,
		    .beta1 = .9,
		    .beta2 = .999,
		    .eps = 1e-8,
		    .clip_value = .5 },
	  .device = true },
	{ "adamax", "beta1=0.5 beta2=0.9 eps=0.1", adamax,
	  .rule = { .lr = .002, .beta1 = .5, .beta2 = .9, .eps = .1 } },
	{ "rprop", "lr=0.001", rprop,
	  .rule = { .lr = .001, .down = .5, .up = 1.2, .min = 1e-6, .max = 50 }, .device = true },
	{ "rprop", "etaminus=0.7 etaplus=1.5 step_size_min=0.004 step_size_max=0.02", rprop,
	  .rule = { .lr = .01, .down = .7, .up = 1.5, .min = .004, .max = .02 } },
	{ "asgd", "weight_decay=0.1", asgd,
	  .rule = { .lr = .01, .decay = .1, .lambd = 1e-4, .alpha = .75, .t0 = 1e6 } },
	{ "asgd", "lr=0.1 lambd=0.5 alpha=0.3 t0=10 clip=1", asgd,
	  .rule = { .lr = .1, .lambd = .5, .alpha = .3, .t0 = 10, .clip = 1 }, .device = true },
};
enum { VARIANTS = sizeof variants / sizeof *variants };

// Five steps of a kind, which are evaluated one by one or, with `pending`, all at once.
static bool steps_of(const char *kind, bool pending, float *to)
{
	const float first[6] = { 1, -2, 0.5f, 3, -0.25f, 2 };
	const char *name = "w";
	yoke_optim *o = yoke_optim_new(kind, "schedule=cosine warmup=2 steps=9");
	yoke_tensor *p = yoke_variable(name, yoke_f32, 2, (int64_t[]){ 2, 3 });
	bool good = o && yoke_put(p, first, sizeof first) == 0 &&
		    yoke_optim_add(o, 1, &p, &name, NULL) == 0;
	for (int t = 0; t < 5 && good; t++) {
		yoke_scope *s = yoke_scope_begin("step");
		yoke_tensor *g = NULL;
		good = yoke_grad(yoke_sum(yoke_square(yoke_sub(p, yoke_const(0.3))), YOKE_ALL), 1,
				 &p, &g) == 0 &&
		       yoke_optim_step(o, 1, &g, NULL) == 0 && (pending || yoke_eval(0, NULL) == 0);
		yoke_scope_end(s);
	}
	good &= yoke_read(p, to, sizeof first) == 0;
	yoke_optim_free(o);
	yoke_free(p);
	return good;
}

// Steps that nothing has evaluated yet keep their learning rates and corrections.
static void pending(void)
{
	for (int k = 0; yoke_optim_kind(k); k++) {
		float each[6] = { 0 }, all[6] = { 0 };
		const bool done = steps_of(yoke_optim_kind(k), false, each) &&
				  steps_of(yoke_optim_kind(k), true, all);
		ok(done && !memcmp(each, all, sizeof each), "%s: pending steps, %g and %g: %s",
		   yoke_optim_kind(k), (double)each[0], (double)all[0], yoke_error());
	}
}

int main(void)
{
	tap_seed();
	tap_plugin_path();
	pending();
	for (int i = 0; i < VARIANTS; i++) {
		const struct variant *v = &variants[i];
		compare(v->kind, v->settings, v->step, v->rule, yoke_f64, false);
		compare(v->kind, v->settings, v->step, v->rule, yoke_f32, false);
		if (v->million || tap_long())
			compare(v->kind, v->settings, v->step, v->rule, yoke_f32, !v->rule.window);
	}
	bool all = true;
	for (int k = 0; yoke_optim_kind(k); k++) {
		bool has = false;
		for (int i = 0; i < VARIANTS; i++)
			has |= !strcmp(variants[i].kind, yoke_optim_kind(k));
		const bool matrices = !strcmp(yoke_optim_kind(k), "muon") ||
				      !strcmp(yoke_optim_kind(k), "adafactor");
		has |= matrices; // tested in optim_matrices.c
		all &= has;
	}
	ok(all, "each kind of optimizer has variants in this test");
	if (!getenv("YOKE_TEST_OPENCL"))
		skip("OpenCL", "its module is not built");
	yoke_context *ctx = getenv("YOKE_TEST_OPENCL") ? yoke_context_new("opencl") : NULL;
	if (getenv("YOKE_TEST_OPENCL") && !ctx)
		skip("OpenCL", yoke_error());
	yoke_error_clear();
	if (!ctx)
		return done();
	yoke_context *former = yoke_use(ctx);
	for (int i = 0; i < VARIANTS; i++) {
		const struct variant *v = &variants[i];
		if (v->device ? tap_turn(v->settings, 6) : tap_long())
			compare(v->kind, v->settings, v->step, v->rule, yoke_f32, false);
	}
	compare("adamw", "lr=0.01", decoupled,
		(struct rule){ .lr = .01, .decay = .01, .beta1 = .9, .beta2 = .999, .eps = 1e-8 },
		yoke_f32, false);
	struct yoke_stats s = { .size = sizeof s };
	yoke_stats(&s);
	ok(s.fallbacks == 0, "nothing falls back to the CPU: %d", (int)s.fallbacks);
	yoke_use(former);
	yoke_context_free(ctx);
	return done();
}
