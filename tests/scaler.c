// SPDX-License-Identifier: Apache-2.0
// Tests the dynamic loss scale: a script of overflows gives the listed scales; steps of every
// optimizer formula that overflow in the first, a middle or the last element change no bit of
// parameters and states, and the flag is cleared; unscaled norms against float64; saved and
// loaded state; refused arguments.

#include "config.h"

#include "dtypes.h"
#include "base/json.h"
#include "tap.h"
#include "config/precision.h"
#include "yoke.h"

enum { N = 3, LIMIT = 700 };
static const int64_t counts[N] = { 1, 257, LIMIT };

// ---- the scale ----

static yoke_tensor *one_gradient(bool bad)
{
	float x = bad ? INFINITY : 1;
	return yoke_from(yoke_f32, 0, NULL, &x);
}

// A step whose gradient is finite or not.
static int step(yoke_scaler *s, bool bad)
{
	yoke_tensor *norm, *skipped, *g;
	yoke_scope *scope = yoke_scope_begin("step");
	g = one_gradient(bad);
	int err = yoke_scaler_check(s, 1, NULL, &g, &norm, &skipped);
	err = err ? err : yoke_eval(0, NULL);
	err = err ? err : yoke_scaler_update(s);
	yoke_scope_end(scope);
	return err;
}

static double scale_of(const yoke_scaler *s)
{
	struct yoke_scaler_stats x = { .size = sizeof x };
	return yoke_scaler_stats(s, &x) ? -1 : x.scale;
}

// o: the step overflows. scale[i] is the scale after step i.
static void script(const struct yoke_scaler_options *o, const char *steps, const double *scale,
		   const char *what)
{
	yoke_scaler *s = yoke_scaler_new(o);
	bool good = s;
	for (int i = 0; steps[i] && good; i++) {
		int got = step(s, steps[i] == 'o');
		good = got == (steps[i] == 'o' ? YOKE_SKIPPED : YOKE_STEPPED) &&
		       scale_of(s) == scale[i];
		if (!good)
			diag("step %d: %d, scale %g, want %g; %s", i, got, scale_of(s), scale[i],
			     yoke_error());
	}
	ok(good, "%s: %s", what, steps);
	yoke_scaler_free(s);
}

static void scripts(void)
{
	const struct yoke_scaler_options three = { .size = sizeof three,
						   .scale = 1024,
						   .interval = 3 };
	script(&three, ".....o..o...oo",
	       (double[]){ 1024, 1024, 2048, 2048, 2048, 1024, 1024, 1024, 512, 512, 512, 1024, 512,
			   256 },
	       "interval 3");
	const struct yoke_scaler_options patient = {
		.size = sizeof patient, .scale = 1024, .interval = 3, .hysteresis = 2
	};
	script(&patient, "o.oo...o.o",
	       (double[]){ 1024, 1024, 512, 256, 256, 256, 512, 512, 512, 256 }, "hysteresis 2");
	const struct yoke_scaler_options bounded = { .size = sizeof bounded,
						     .scale = 6,
						     .growth = 3,
						     .backoff = 0.25,
						     .min = 2,
						     .max = 40,
						     .interval = 1 };
	script(&bounded, "...oo", (double[]){ 18, 40, 40, 10, 2.5 }, "bounds");
	script(&(struct yoke_scaler_options){ .size = offsetof(struct yoke_scaler_options,
							       growth) },
	       ".o", (double[]){ 65536, 32768 }, "defaults of a short struct");
}

// At the minimum scale: an error with the name, and the struct of the last 100.
static void min(void)
{
	const struct yoke_scaler_options o = { .size = sizeof o, .scale = 2, .interval = 50 };
	yoke_scaler *s = yoke_scaler_new(&o);
	struct yoke_scaler_stats x = { .size = sizeof x };
	int stepped = 0;
	for (int i = 0; i < 149; i++)
		stepped += step(s, i == 20 || i == 120) == YOKE_STEPPED;
	yoke_scaler_stats(s, &x);
	ok(stepped == 147 && x.steps == 100 && x.overflows == 1 && x.rate == 0.01 &&
		   x.all_steps == 149 && x.skipped == 2 && x.scale == 1 && x.first == 0 &&
		   !*x.name, // 1 after 20, 2 after 70, 1 after 120
	   "statistics: %d stepped, %d of %d, scale %g", stepped, (int)x.overflows, (int)x.steps,
	   x.scale);
	int err = step(s, true);
	ok(err == YOKE_ERANGE && strstr(yoke_error(), "min loss scale, 1"),
	   "and not below the minimum: %s", yoke_error());
	yoke_error_clear();
	yoke_scaler_free(s);
}

// ---- steps ----

enum kind { ADAMW, LAMB, SGD, MOMENTUM, KINDS };
static const char *const names[KINDS] = { "adamw", "lamb", "sgd", "sgd with momentum" };
enum { LISTS = 3 }; // p and two states

static float host[N][LIMIT];

static void fill(yoke_tensor *t, int i)
{
	double x[LIMIT];
	for (int64_t k = 0; k < counts[i]; k++)
		x[k] = rnd_real(0.1, 1);
	put(t, x);
}

static int update(enum kind kind, yoke_tensor *(*l)[N], yoke_tensor *const *g, yoke_tensor *scale,
		  yoke_tensor *skipped)
{
	yoke_tensor *half = yoke_scalar(0.5);
	if (kind == ADAMW)
		return yoke_adamw_step(N, l[0], g, l[1], l[2],
				       &(struct yoke_adamw){ .size = sizeof(struct yoke_adamw),
							     half,
							     half,
							     half,
							     scale,
							     0.9,
							     0.99,
							     1e-8,
							     0.1,
							     skipped });
	if (kind == LAMB)
		return yoke_lamb_step(N, l[0], g, l[1], l[2],
				      &(struct yoke_lamb){ .size = sizeof(struct yoke_lamb),
							   half,
							   half,
							   half,
							   scale,
							   0.9,
							   0.99,
							   1e-8,
							   0.1,
							   .skip = skipped });
	return yoke_sgd_step(N, l[0], g, kind == MOMENTUM ? l[1] : NULL,
			     &(struct yoke_sgd){ .size = sizeof(struct yoke_sgd),
						 .lr = half,
						 .first = kind == MOMENTUM ? half : YOKE_NONE,
						 .scale = scale,
						 .momentum = kind == MOMENTUM ? 0.9 : 0,
						 .skip = skipped });
}

static unsigned char had[LISTS][N][LIMIT * sizeof(double)];

// Do the lists have the bytes of `had`? Restores them.
static bool compare(yoke_tensor *(*l)[N])
{
	static unsigned char now[LIMIT * sizeof(double)];
	bool same = true;
	for (int k = 0; k < LISTS; k++)
		for (int i = 0; i < N; i++) {
			size_t bytes = yoke_bytes(l[k][i]);
			yoke_read(l[k][i], now, bytes);
			same &= !memcmp(now, had[k][i], bytes);
			memcpy(had[k][i], now, bytes);
		}
	return same;
}

static void skips(enum kind kind, int dtype)
{
	yoke_tensor *l[LISTS][N], *norm, *skipped;
	yoke_scaler *s = yoke_scaler_new(NULL);
	static const char *const of[N] = { "first", "second", "third" };
	double sum = 0, was = 0;
	float got = 0;
	for (int k = 0; k < LISTS; k++)
		for (int i = 0; i < N; i++) {
			l[k][i] = yoke_variable(k ? "state" : of[i], k ? yoke_f32 : dtype, 1,
						&counts[i]);
			fill(l[k][i], i);
		}
	compare(l);
	// a clean step; inf or NaN in the first, a middle and the last element of all; a clean one
	static const struct { int tensor; int64_t at; double bad;
	} script[] = { { 0, 0, 0 },           { 0, 0, INFINITY },
		       { 1, 128, -INFINITY }, { 2, LIMIT - 1, INFINITY },
		       { 2, 17, NAN },        { 0, 0, 0 } };
	for (size_t t = 0; t < sizeof script / sizeof *script; t++) {
		const bool bad = script[t].bad != 0;
		yoke_scope *scope = yoke_scope_begin("step");
		yoke_tensor *g[N];
		const double scale = scale_of(s);
		sum = 0;
		for (int i = 0; i < N; i++) {
			for (int64_t k = 0; k < counts[i]; k++) {
				double unscaled = rnd_real(-1, 1);
				host[i][k] = (float)(unscaled * scale);
				sum += pow((double)host[i][k] / scale, 2);
			}
			if (bad && i == script[t].tensor)
				host[i][script[t].at] = (float)script[t].bad;
			g[i] = yoke_from(yoke_f32, 1, &counts[i], host[i]);
		}
		int err = yoke_scaler_check(s, N, l[0], g, &norm, &skipped);
		err = err ? err : update(kind, l, g, yoke_scaler_inverse(s), skipped);
		err = err ? err : yoke_read(norm, &got, sizeof got);
		int what = err ? err : yoke_scaler_update(s);
		struct yoke_scaler_stats x = { .size = sizeof x };
		yoke_scaler_stats(s, &x);
		bool same = compare(l);
		ok(what == (bad ? YOKE_SKIPPED : YOKE_STEPPED) && same == bad &&
			   (!bad ||
			    (x.first == script[t].tensor && !strcmp(x.name, of[script[t].tensor]) &&
			     x.scale == scale / 2)),
		   "%s of %s, %g: %s, %s; first of %s %s", names[kind], yoke_dtype_name(dtype),
		   script[t].bad, what == YOKE_SKIPPED ? "skipped" : "stepped",
		   same ? "the same bits" : "changed", x.name, yoke_error());
		if (!bad)
			near(&(double){ (double)got }, &(double){ sqrt(sum) }, 1, 1e-6, 0,
			     "unscaled norm");
		was = scale;
		yoke_scope_end(scope);
	}
	ok(was == 65536. / 16, "the scale was halved four times");
	yoke_scaler_free(s);
	for (int k = 0; k < LISTS; k++)
		for (int i = 0; i < N; i++)
			yoke_free(l[k][i]);
}

// ---- unskipped is as before ----

// With skip 0 the numbers are those of a step without skip, bit for bit.
static void unskipped(enum kind kind)
{
	static unsigned char first[LISTS][N][LIMIT * sizeof(double)];
	const uint64_t state = tap_state;
	for (int with = 0; with < 2; with++) {
		yoke_tensor *l[LISTS][N], *g[N];
		tap_state = state;
		yoke_scope *scope = yoke_scope_begin("step");
		for (int k = 0; k < LISTS; k++)
			for (int i = 0; i < N; i++) {
				l[k][i] = yoke_keep(yoke_variable("l", yoke_f32, 1, &counts[i]));
				fill(l[k][i], i);
			}
		for (int i = 0; i < N; i++) {
			for (int64_t k = 0; k < counts[i]; k++)
				host[i][k] = (float)rnd_real(-1, 1);
			g[i] = yoke_from(yoke_f32, 1, &counts[i], host[i]);
		}
		update(kind, l, g, yoke_scalar(0.25), with ? yoke_scalar(0) : YOKE_NONE);
		yoke_eval(0, NULL);
		compare(l);
		if (with)
			ok(!memcmp(first, had, sizeof had), "%s: skip 0 changes no bit %s",
			   names[kind], yoke_error());
		memcpy(first, had, sizeof had);
		yoke_scope_end(scope);
		for (int k = 0; k < LISTS; k++)
			for (int i = 0; i < N; i++)
				yoke_free(l[k][i]);
	}
}

// ---- state ----

static void saved(void)
{
	const struct yoke_scaler_options o = {
		.size = sizeof o, .scale = 64, .interval = 4, .hysteresis = 2
	};
	yoke_scaler *a = yoke_scaler_new(&o), *b = yoke_scaler_new(&o);
	struct yoke_scaler_state x = { .size = sizeof x }, y = { .size = sizeof y };
	bool same = true;
	for (int i = 0; i < 30; i++)
		step(a, rnd() % 4 == 0);
	ok(!yoke_scaler_save(a, &x) && !yoke_scaler_load(b, &x), "saved and loaded %s",
	   yoke_error());
	for (int i = 0; i < 120 && same; i++) {
		bool bad = rnd() % 6 == 0;
		same = step(a, bad) == step(b, bad) && scale_of(a) == scale_of(b);
		yoke_error_clear(); // at the minimum scale
	}
	yoke_scaler_save(a, &x);
	yoke_scaler_save(b, &y);
	ok(same && !memcmp(&x, &y, sizeof x), "and continues as the original");
	struct yoke_scaler_state bad = x;
	bad.scale = NAN;
	ok(yoke_scaler_load(b, &bad) == YOKE_EINVAL, "%s", yoke_error());
	yoke_error_clear();
	bad = x, bad.clean = 4;
	ok(yoke_scaler_load(b, &bad) == YOKE_EINVAL, "%s", yoke_error());
	yoke_error_clear();
	bad = x, bad.size = 0;
	ok(yoke_scaler_load(b, &bad) == YOKE_EINVAL, "%s", yoke_error());
	yoke_error_clear();
	yoke_scaler_free(a);
	yoke_scaler_free(b);
}

// In a manifest's form.
static void parsed(void)
{
	static const char *const bad[] = {
		"{}",
		"[]",
		"{\"scale\":\"1\"}",
		"{\"scale\":0.5,\"clean\":0,\"left\":1,\"steps\":3,\"skipped\":1,\"recent\":\"%032d\"}",
		"{\"scale\":1e300,\"clean\":0,\"left\":1,\"steps\":3,\"skipped\":1,\"recent\":\"%032d\"}",
		"{\"scale\":64.0,\"clean\":-1,\"left\":1,\"steps\":3,\"skipped\":1,\"recent\":\"%032d\"}",
		"{\"scale\":64.0,\"clean\":2000,\"left\":1,\"steps\":3,\"skipped\":1,\"recent\":\"%032d\"}",
		"{\"scale\":64.0,\"clean\":0,\"left\":2,\"steps\":3,\"skipped\":1,\"recent\":\"%032d\"}",
		"{\"scale\":64.0,\"clean\":0,\"left\":1,\"steps\":3,\"skipped\":4,\"recent\":\"%032d\"}",
		"{\"scale\":64.0,\"clean\":0,\"left\":1,\"steps\":3,\"skipped\":1,\"recent\":\"%031dg\"}",
		"{\"scale\":64.0,\"clean\":0,\"left\":1,\"steps\":3,\"skipped\":1,\"recent\":\"%033d\"}"
	};
	yoke_scaler *a = yoke_scaler_new(NULL), *b = yoke_scaler_new(NULL);
	struct yoke_scaler_state x = { .size = sizeof x }, y = { .size = sizeof y };
	for (int i = 0; i < 140; i++)
		step(a, rnd() % 20 == 0);
	yoke_error_clear();
	json_t *o = yk_scaler_describe(a);
	char *text = json_dumps(o, 0);
	json_decref(o);
	o = yk_json_parse(text, strlen(text), "text");
	ok(!yk_scaler_parse(o, "text", b), "%s %s", text, yoke_error());
	yoke_scaler_save(a, &x);
	yoke_scaler_save(b, &y);
	ok(x.skipped && !memcmp(&x, &y, sizeof x), "and back");
	json_decref(o);
	free(text);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char line[200];
		snprintf(line, sizeof line, bad[i], 0); // a constant of the table
		o = json_loads(line, 0, NULL);
		int err = yk_scaler_parse(o, "manifest", b);
		yoke_scaler_save(b, &y);
		ok(err && !memcmp(&x, &y, sizeof x), "%s: nothing of %s is applied", yoke_error(),
		   line);
		yoke_error_clear();
		json_decref(o);
	}
	yoke_scaler_free(a);
	yoke_scaler_free(b);
}

static void refused(void)
{
	static const struct { struct yoke_scaler_options o; const char *word;
	} bad[] = {
		{ { .scale = -1 }, "scale -1" },           { { .scale = NAN }, "scale nan" },
		{ { .scale = 1e9 }, "scale 1e" },          { { .growth = 1 }, "growth 1" },
		{ { .backoff = 1.5 }, "backoff 1.5" },     { { .interval = -1 }, "interval -1" },
		{ { .hysteresis = -2 }, "hysteresis -2" }, { { .min = 4, .max = 2 }, "4 .. 2" }
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct yoke_scaler_options o = bad[i].o;
		o.size = sizeof o;
		ok(!yoke_scaler_new(&o) && yoke_error_code() == YOKE_EINVAL &&
			   strstr(yoke_error(), bad[i].word),
		   "%s", yoke_error());
		yoke_error_clear();
	}
	yoke_scaler *s = yoke_scaler_new(NULL);
	yoke_scope *scope = yoke_scope_begin("refused");
	yoke_tensor *norm, *skipped, *g[2] = { one_gradient(false), one_gradient(true) };
	ok(yoke_scaler_update(s) == YOKE_STEPPED, "nothing was checked");
	yoke_scaler_check(s, 2, NULL, g, &norm, &skipped);
	ok(yoke_scaler_check(s, 1, NULL, g, &norm, &skipped) == YOKE_EINVAL && !norm && !skipped,
	   "%s", yoke_error());
	yoke_error_clear();
	yoke_scope_end(scope);
	yoke_scaler_free(s);
}

int main(void)
{
	tap_seed();
	scripts();
	min();
	for (int kind = 0; kind < KINDS; kind++) {
		skips((enum kind)kind, yoke_f32);
		unskipped((enum kind)kind);
	}
	skips(ADAMW, yoke_bf16);
	skips(MOMENTUM, yoke_f16);
	saved();
	parsed();
	refused();
	return done();
}
