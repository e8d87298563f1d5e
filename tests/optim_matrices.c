// SPDX-License-Identifier: Apache-2.0
// Tests the optimizers that treat matrices specially, against float64 loops over their definitions:
// 20 steps on parameters of 0, 1, 2 and 4 axes together; and what they refuse.
#include "config.h"

#include "dtypes.h"
#include "tap.h"
#include "yoke-optim.h"

enum { N = 8, STEPS = 20, LIMIT = 300 };

static const struct shape {
	const char *name;
	int rank;
	int64_t dims[4];
} shapes[N] = {
	{ "scale", 0, { 0 } },           { "bias", 1, { 7 } },        { "wide", 2, { 3, 8 } },
	{ "tall", 2, { 17, 5 } },        { "square", 2, { 16, 16 } }, { "row", 2, { 1, 6 } },
	{ "kernel", 4, { 4, 3, 2, 5 } }, { "empty", 2, { 0, 4 } },
};
static const struct yoke_step plain = { .size = sizeof plain,
					.scale = YOKE_NONE,
					.skip = YOKE_NONE };

// The numeric definition of a variant; 0 is off.
struct rule {
	double lr, decay, clip, momentum, beta1, beta2, eps, other_lr;
	bool nesterov;
	int ns_steps, ratio; // ratio: index of adjust_lr_fn
	bool off;            // orthogonalize=0 for "square"
	double beta2_decay, eps1, eps2, d;
};

struct state {
	int64_t count;
	double p[LIMIT], g[LIMIT], a[LIMIT], b[LIMIT];
};

typedef void step_fn(const struct rule *, struct state *, const struct shape *, int t);

// ---- definitions ----

static void adamw(const struct rule *o, struct state *s, int t)
{
	const double lr = o->other_lr > 0 ? o->other_lr : o->lr;
	for (int64_t i = 0; i < s->count; i++) {
		s->a[i] = o->beta1 * s->a[i] + (1 - o->beta1) * s->g[i];
		s->b[i] = o->beta2 * s->b[i] + (1 - o->beta2) * s->g[i] * s->g[i];
		s->p[i] -= lr * o->decay * s->p[i];
		s->p[i] -= lr * s->a[i] / (1 - pow(o->beta1, t)) /
			   (sqrt(s->b[i] / (1 - pow(o->beta2, t))) + o->eps);
	}
}

// c [m,n] = x times [m,k] y [k,n], + times' z
static void product(int64_t m, int64_t n, int64_t k, const double *x, const double *y, double by,
		    double and_by, const double *z, double *c)
{
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++) {
			double sum = 0;
			for (int64_t l = 0; l < k; l++)
				sum += x[i * k + l] * y[l * n + j];
			c[i * n + j] = by * sum + and_by * z[i * n + j];
		}
}

static void transpose(int64_t m, int64_t n, const double *x, double *to)
{
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++)
			to[j * m + i] = x[i * n + j];
}

// x [m,n], m <= n
static void newton_schulz(double *x, int64_t m, int64_t n, int steps, double eps)
{
	double flipped[LIMIT], gram[LIMIT], by[LIMIT], next[LIMIT], norm = 0;
	for (int64_t i = 0; i < m * n; i++)
		norm += x[i] * x[i];
	for (int64_t i = 0; i < m * n; i++)
		x[i] /= fmax(sqrt(norm), eps);
	for (int k = 0; k < steps; k++) {
		memset(gram, 0, sizeof gram);
		transpose(m, n, x, flipped);
		product(m, m, n, x, flipped, 1, 0, gram, gram);
		product(m, m, m, gram, gram, 2.0315, -4.7750, gram, by);
		product(m, n, m, by, x, 1, 3.4445, x, next);
		memcpy(x, next, sizeof next);
	}
}

static void muon(const struct rule *o, struct state *s, const struct shape *f, int t)
{
	const int64_t m = f->dims[0], n = f->dims[1];
	double u[LIMIT] = { 0 }, flipped[LIMIT] = { 0 };
	if (f->rank != 2 || (o->off && !strcmp(f->name, "square"))) {
		adamw(o, s, t);
		return;
	}
	for (int64_t i = 0; i < s->count; i++) {
		s->a[i] = o->momentum * s->a[i] + (1 - o->momentum) * s->g[i];
		u[i] = o->nesterov ? (1 - o->momentum) * s->g[i] + o->momentum * s->a[i] : s->a[i];
	}
	if (m > n) {
		transpose(m, n, u, flipped);
		newton_schulz(flipped, n, m, o->ns_steps, o->eps);
		transpose(n, m, flipped, u);
	} else {
		newton_schulz(u, m, n, o->ns_steps, o->eps);
	}
	const double r = (double)m / (double)(n ? n : 1);
	const double ratio = o->ratio == 1 ? 0.2 * sqrt((double)(m > n ? m : n)) :
					     sqrt(o->ratio == 2 ? r : fmax(1, r));
	for (int64_t i = 0; i < s->count; i++)
		s->p[i] = s->p[i] * (1 - o->lr * o->decay) - o->lr * ratio * u[i];
}

// a: means of the rows, or second moments of a vector; b: means of the columns; both are kept once
// for each matrix of the last two axes
static void adafactor(const struct rule *o, struct state *s, const struct shape *f, int t)
{
	const int64_t columns = f->rank > 1 ? f->dims[f->rank - 1] : 1,
		      rows = f->rank > 1 ? f->dims[f->rank - 2] : 1;
	const double weight = pow(t, o->beta2_decay);
	double v[LIMIT] = { 0 }, norm = 0, step = 0;
	for (int64_t m = 0; f->rank > 1 && m * rows * columns < s->count; m++) {
		double *a = s->a + m * rows, *b = s->b + m * columns, all = 0;
		const double *g = s->g + m * rows * columns;
		for (int64_t i = 0; i < rows; i++) {
			double sum = 0;
			for (int64_t j = 0; j < columns; j++)
				sum += g[i * columns + j] * g[i * columns + j];
			a[i] = (1 - weight) * a[i] + weight * sum / (double)columns;
			all += a[i] / (double)rows;
		}
		for (int64_t j = 0; j < columns; j++) {
			double sum = 0;
			for (int64_t i = 0; i < rows; i++)
				sum += g[i * columns + j] * g[i * columns + j];
			b[j] = (1 - weight) * b[j] + weight * sum / (double)rows;
		}
		for (int64_t i = 0; i < rows * columns; i++)
			v[m * rows * columns + i] =
				a[i / columns] * b[i % columns] / fmax(all, o->eps1);
	}
	for (int64_t i = 0; i < s->count; i++) {
		if (f->rank < 2)
			v[i] = s->a[i] = (1 - weight) * s->a[i] + weight * s->g[i] * s->g[i];
		norm += s->p[i] * s->p[i] / (double)s->count;
		step += s->g[i] * s->g[i] / fmax(v[i], o->eps1 * o->eps1) / (double)s->count;
	}
	const double alpha =
		fmax(o->eps2, sqrt(norm)) * fmin(o->lr, 1 / sqrt(t)) / fmax(1, sqrt(step) / o->d);
	for (int64_t i = 0; i < s->count; i++)
		s->p[i] = s->p[i] * (1 - o->lr * o->decay) -
			  alpha * s->g[i] / sqrt(fmax(v[i], o->eps1 * o->eps1));
}

// ---- the run ----

struct set {
	yoke_tensor *p[N], *g[N];
	struct state *s; // [N]
};

static void draw(struct set *x, int dtype, double clip)
{
	double square = 0;
	for (int i = 0; i < N; i++) {
		struct state *s = &x->s[i];
		for (int64_t k = 0; k < s->count; k++) {
			s->g[k] = rounded(dtype, 0.3 * s->p[k] + rnd_real(-1, 1));
			square += s->g[k] * s->g[k];
		}
		put(x->g[i], s->g);
	}
	const double by = clip > 0 ? fmin(1, clip / (sqrt(square) + 1e-6)) : 1;
	for (int i = 0; i < N; i++)
		for (int64_t k = 0; k < x->s[i].count; k++)
			x->s[i].g[k] *= by;
}

static void set_make(struct set *x, int dtype)
{
	x->s = calloc(N, sizeof *x->s);
	for (int i = 0; i < N; i++) {
		const struct shape *f = &shapes[i];
		struct state *s = &x->s[i];
		s->count = 1;
		for (int d = 0; d < f->rank; d++)
			s->count *= f->dims[d];
		x->p[i] = yoke_variable("p", dtype, f->rank, f->dims);
		x->g[i] = yoke_variable("g", dtype, f->rank, f->dims);
		for (int64_t k = 0; k < s->count; k++)
			s->p[k] = rounded(dtype, rnd_real(-1, 1));
		put(x->p[i], s->p);
	}
}

static void set_free(struct set *x)
{
	for (int i = 0; i < N; i++) {
		yoke_free(x->p[i]);
		yoke_free(x->g[i]);
	}
	free(x->s);
}

static yoke_optim *make(const char *kind, const char *settings, const struct set *x)
{
	const char *names[N];
	for (int i = 0; i < N; i++)
		names[i] = shapes[i].name;
	yoke_optim *o = yoke_optim_new(kind, settings);
	if (!o || yoke_optim_add(o, N, x->p, names, NULL))
		ok(false, "%s %s: %s", kind, settings, yoke_error());
	return o;
}

static int step(yoke_optim *o, const struct set *x, const struct yoke_step *given)
{
	yoke_scope *s = yoke_scope_begin("step");
	int err = yoke_optim_step(o, N, x->g, given);
	if (!err)
		err = yoke_eval(0, NULL);
	const int ended = yoke_scope_end(s);
	return err ? err : ended;
}

static void compare(const char *kind, const char *settings, step_fn *by, const struct rule *rule,
		    int dtype, double tolerance)
{
	struct set x;
	struct yoke_stats early = { .size = sizeof early }, late = { .size = sizeof late };
	set_make(&x, dtype);
	yoke_optim *o = make(kind, settings, &x);
	int err = o ? 0 : YOKE_EINVAL;
	if (rule->off && !err)
		err = yoke_optim_set(o, "square", "orthogonalize=0");
	for (int t = 1; t <= STEPS && !err; t++) {
		draw(&x, dtype, rule->clip);
		for (int i = 0; i < N; i++)
			by(rule, &x.s[i], &shapes[i], t);
		err = step(o, &x, NULL);
		if (t == 3)
			yoke_stats(&early);
	}
	yoke_stats(&late);
	ok(!err && (tap_eager() || early.plan_misses == late.plan_misses),
	   "%s %s, %s: %d steps, no new plans after the third %s", kind, settings,
	   yoke_dtype_name(dtype), STEPS, yoke_error());
	for (int i = 0; i < N && !err; i++) {
		double got[LIMIT], worst = 0;
		get(x.p[i], got);
		for (int64_t k = 0; k < x.s[i].count; k++) {
			const double e = fabs(got[k] - x.s[i].p[k]) / fmax(0.1, fabs(x.s[i].p[k]));
			worst = e > worst || isnan(e) ? e : worst;
		}
		ok(worst < tolerance, "%s %s, %s: %s, error %.2g", kind, settings,
		   yoke_dtype_name(dtype), shapes[i].name, worst);
	}
	yoke_error_clear();
	yoke_optim_free(o);
	set_free(&x);
}

static void copy_parameters(const struct set *from, const struct set *to)
{
	double p[LIMIT];
	for (int i = 0; i < N; i++) {
		get(from->p[i], p);
		put(to->p[i], p);
	}
}

static void copy_gradients(const struct set *from, const struct set *to)
{
	for (int i = 0; i < N; i++)
		put(to->g[i], from->s[i].g);
}

static bool same_parameters(const struct set *a, const struct set *b)
{
	double p[2][LIMIT];
	bool same = true;
	for (int i = 0; i < N; i++) {
		get(a->p[i], p[0]);
		get(b->p[i], p[1]);
		same &= !memcmp(p[0], p[1], (size_t)a->s[i].count * sizeof **p);
	}
	return same;
}

// A skipped step of gradients that are not finite changes nothing: the steps after it are as
// without it.
static void skipped(const char *kind, const char *settings)
{
	const struct yoke_step skip = { .size = sizeof skip,
					.scale = YOKE_NONE,
					.skip = yoke_const(1) };
	struct set x, y;
	double bad[LIMIT];
	set_make(&x, yoke_f32);
	set_make(&y, yoke_f32);
	copy_parameters(&x, &y);
	yoke_optim *o = make(kind, settings, &x), *q = make(kind, settings, &y);
	int err = 0;
	for (int k = 0; k < LIMIT; k++)
		bad[k] = k % 3 ? NAN : INFINITY;
	for (int t = 0; t < 3 && !err; t++) {
		draw(&x, yoke_f32, 0);
		for (int i = 0; i < N; i++)
			put(y.g[i], bad);
		err = t == 1 ? step(q, &y, &skip) : 0;
		if (t == 1 && !err)
			err = yoke_optim_skipped(q);
		copy_gradients(&x, &y);
		if (!err)
			err = step(o, &x, NULL);
		if (!err)
			err = step(q, &y, NULL);
	}
	ok(!err && same_parameters(&x, &y), "%s %s: a skipped step changes nothing %s", kind,
	   settings, yoke_error());
	yoke_optim_free(o);
	yoke_optim_free(q);
	set_free(&x);
	set_free(&y);
}

// With a loss scale, steps are those without it.
static void scaled(const char *kind, const char *settings)
{
	struct yoke_step by = plain;
	struct set x, y;
	set_make(&x, yoke_f32);
	set_make(&y, yoke_f32);
	copy_parameters(&x, &y);
	yoke_optim *o = make(kind, settings, &x), *q = make(kind, settings, &y);
	int err = 0;
	by.scale = yoke_const(1.0 / 1024);
	for (int t = 0; t < 3 && !err; t++) {
		draw(&x, yoke_f32, 0);
		for (int i = 0; i < N; i++) {
			double g[LIMIT];
			for (int64_t k = 0; k < x.s[i].count; k++)
				g[k] = 1024 * x.s[i].g[k];
			put(y.g[i], g);
		}
		err = step(o, &x, NULL);
		if (!err)
			err = step(q, &y, &by);
	}
	ok(!err && same_parameters(&x, &y), "%s %s: a loss scale changes nothing %s", kind,
	   settings, yoke_error());
	yoke_optim_free(o);
	yoke_optim_free(q);
	set_free(&x);
	set_free(&y);
}

// A run of 6 steps whose states go through a file after 3: bit for bit the same.
static void resumed(const char *kind, const char *settings)
{
	static const char path[] = "matrices.safetensors";
	struct set x, y;
	set_make(&x, yoke_f32);
	set_make(&y, yoke_f32);
	yoke_optim *o = make(kind, settings, &x), *q = make(kind, settings, &y);
	int err = 0;
	for (int t = 0; t < 6 && !err; t++) {
		draw(&x, yoke_f32, 0);
		err = step(o, &x, NULL);
		if (t == 2 && !err) {
			err = yoke_optim_save(o, path);
			copy_parameters(&x, &y);
			if (!err)
				err = yoke_optim_load(q, path);
		} else if (t > 2 && !err) {
			copy_gradients(&x, &y);
			err = step(q, &y, NULL);
		}
	}
	ok(!err && same_parameters(&x, &y), "%s %s: resumed bit for bit %s", kind, settings,
	   yoke_error());
	remove(path);
	yoke_optim_free(o);
	yoke_optim_free(q);
	set_free(&x);
	set_free(&y);
}

// y [m] = x [m,n] v [n], or with flip y [n] = v [m] x
static void times(int64_t m, int64_t n, const double *x, const double *v, bool flip, double *y)
{
	for (int64_t i = 0; i < (flip ? n : m); i++) {
		y[i] = 0;
		for (int64_t j = 0; j < (flip ? m : n); j++)
			y[i] += flip ? x[j * n + i] * v[j] : x[i * n + j] * v[j];
	}
}

// One Newton-Schulz step of a matrix whose Gram matrix is computed in panels, times a vector.
static void large(int64_t m, int64_t n)
{
	const int64_t dims[] = { m, n }, side = m > n ? m : n;
	double *x = calloc((size_t)(m * n), sizeof *x), *v = calloc((size_t)(6 * side), sizeof *v),
	       *y = v + side, norm = 0;
	double *back = y + side, *first = back + side, *second = first + side, *got = second + side,
	       worst = 0;
	yoke_tensor *p = yoke_variable("p", yoke_f64, 2, dims),
		    *g = yoke_variable("g", yoke_f64, 2, dims);
	for (int64_t k = 0; k < m * n; k++) {
		x[k] = rnd_real(-1, 1);
		norm += x[k] * x[k];
	}
	put(g, x);
	for (int64_t k = 0; k < m * n; k++)
		x[k] /= sqrt(norm);
	for (int64_t k = 0; k < n; k++)
		v[k] = rnd_real(-1, 1);
	yoke_optim *o = yoke_optim_new(
		"muon",
		"lr=1 momentum=0 nesterov=0 weight_decay=0 ns_steps=1 adjust_lr_fn=original");
	int err = yoke_optim_add(o, 1, &p, (const char *[]){ "p" }, NULL);
	if (!err)
		err = yoke_optim_step(o, 1, &g, NULL);
	times(m, n, x, v, false, y);
	times(m, n, x, y, true, back);
	times(m, n, x, back, false, first);
	times(m, n, x, first, true, back);
	times(m, n, x, back, false, second);
	get(p, x);
	times(m, n, x, v, false, got);
	for (int64_t k = 0; k < m; k++)
		worst = fmax(worst, fabs(got[k] + sqrt(fmax(1, (double)m / (double)n)) *
							  (3.4445 * y[k] - 4.775 * first[k] +
							   2.0315 * second[k])));
	ok(!err && worst < 1e-12, "muon, a matrix of %d x %d: error %.2g %s", (int)m, (int)n, worst,
	   yoke_error());
	yoke_optim_free(o);
	yoke_free(p);
	yoke_free(g);
	free(x);
	free(v);
}

static const struct {
	const char *kind, *settings;
	step_fn *step;
	double wide; // tolerance in f32
	struct rule rule;
} variants[] = {
	{ "muon",
	  "lr=0.02 ns_dtype=f32",
	  muon,
	  1e-4,
	  { .lr = .02,
	    .decay = .1,
	    .momentum = .95,
	    .nesterov = true,
	    .ns_steps = 5,
	    .beta1 = .9,
	    .beta2 = .999,
	    .eps = 1e-7 } },
	{ "muon",
	  "lr=0.02",
	  muon,
	  0.05,
	  { .lr = .02,
	    .decay = .1,
	    .momentum = .95,
	    .nesterov = true,
	    .ns_steps = 5,
	    .beta1 = .9,
	    .beta2 = .999,
	    .eps = 1e-7 } },
	{ "muon",
	  "lr=0.01 weight_decay=0 momentum=0.5 nesterov=0 ns_steps=2 ns_dtype=f32 adjust_lr_fn=match_rms_adamw clip=1",
	  muon,
	  1e-4,
	  { .lr = .01,
	    .momentum = .5,
	    .ns_steps = 2,
	    .ratio = 1,
	    .beta1 = .9,
	    .beta2 = .999,
	    .eps = 1e-7,
	    .clip = 1 } },
	{ "muon",
	  "lr=0.02 ns_dtype=f32 adamw_lr=0.001 eps=0.001 beta2=0.9 adjust_lr_fn=spectral_unclamped",
	  muon,
	  1e-4,
	  { .lr = .02,
	    .decay = .1,
	    .momentum = .95,
	    .nesterov = true,
	    .ns_steps = 5,
	    .ratio = 2,
	    .other_lr = .001,
	    .beta1 = .9,
	    .beta2 = .9,
	    .eps = 1e-3,
	    .off = true } },
	{ "adafactor",
	  "eps1=1e-7",
	  adafactor,
	  1e-4,
	  { .lr = .01, .beta2_decay = -.8, .eps1 = 1e-7, .eps2 = 1e-3, .d = 1 } },
	{ "adafactor",
	  "lr=0.3 beta2_decay=-0.3 weight_decay=0.1 clip=1 eps1=1e-7",
	  adafactor,
	  1e-4,
	  { .lr = .3,
	    .beta2_decay = -.3,
	    .decay = .1,
	    .clip = 1,
	    .eps1 = 1e-7,
	    .eps2 = 1e-3,
	    .d = 1 } },
	{ "adafactor",
	  "eps1=0.3 eps2=2 clip_threshold=1.1 beta2_decay=-1",
	  adafactor,
	  1e-4,
	  { .lr = .01, .beta2_decay = -1, .eps1 = .3, .eps2 = 2, .d = 1.1 } },
};

int main(void)
{
	tap_seed();
	tap_plugin_path();
	tap_folder();
	for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
		compare(variants[i].kind, variants[i].settings, variants[i].step, &variants[i].rule,
			yoke_f64, 1e-10);
		compare(variants[i].kind, variants[i].settings, variants[i].step, &variants[i].rule,
			yoke_f32, variants[i].wide);
	}
	large(513, 517);
	large(530, 515);
	skipped("muon", "lr=0.02");
	scaled("muon", "lr=0.02 clip=1");
	resumed("muon", "lr=0.02 clip=1");
	skipped("adafactor", "lr=0.02");
	skipped("adafactor", "check=1 clip_value=0.3");
	scaled("adafactor", "lr=0.02 clip=1");
	resumed("adafactor", "lr=0.02 clip=1");
	return done();
}
