// SPDX-License-Identifier: Apache-2.0
// yoke check model: checks that a model trains correctly on this machine. Each section prints one
// line with its result.
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/number.h"
#include "graph/context.h"
#include "nn/windows.h"
#include "observe/profile.h"
#include "tool/check_model.h"
#include "tool/tool.h"
#include "train/check.h"
#include "train/trainer_open.h"
#include "train/trial.h"
#include "train/validate.h"

enum { STEPS = YK_SELF_STEPS, TIMED = 7 };
// length of the step along the gradient for a finite difference
#define DIFFERENCE 1e-2
#define NEAR_SLOPE 2e-2 // tolerance for that step and f32
#define NEAR_DEVICE 1e-3

int yk_self_result(struct yk_self *s, enum yk_model_verdict verdict, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(s->text, sizeof s->text, fmt, ap);
	va_end(ap);
	s->verdict = verdict;
	return 0;
}

int yk_self_with(struct yk_self *s, const char *backend, int n, const char *const *keys,
		 yk_self_fn *fn)
{
	struct yk_config own;
	int e = yk_config_with(s->config, n, keys, &own);
	if (e < 0)
		return e;
	struct yoke_context *ctx = yoke_context_new(backend), *former;
	if (!ctx) {
		yk_config_fini(&own);
		return yoke_error_code();
	}
	former = yoke_use(ctx);
	snprintf(s->device, sizeof s->device, "%.47s", ctx->device->id);
	struct yk_trainer *t = NULL;
	e = yk_trainer_new(&own, "selftest", NULL, &t);
	if (e == 0)
		e = fn(s, t);
	yk_trainer_free(t);
	yk_trainer_leave(ctx, former);
	yk_config_fini(&own);
	return e;
}

// ---- steps ----

int yk_self_steps(struct yk_trainer *t, int n, double *loss)
{
	struct yk_record record;
	int e = 0;
	for (int i = 0; i < n && e == 0; i++) {
		e = yk_trainer_step(t);
		if (e == 0)
			e = yk_trainer_record(t, &record);
		if (e == 0)
			loss[i] = (double)record.loss;
	}
	return e;
}

static int cpu_steps(struct yk_self *s, struct yk_trainer *t)
{
	int e = yk_self_steps(t, STEPS, s->loss);
	return e < 0 ? e :
		       yk_self_result(s, s->loss[1] < 1.1 * s->loss[0], "loss %.6f, then %.6f",
				      s->loss[0], s->loss[1]);
}

static int device_steps(struct yk_self *s, struct yk_trainer *t)
{
	double loss[STEPS], off = 0;
	int e = 0;
	for (int i = 0; i < STEPS && e == 0; i++) {
		e = yk_self_steps(t, 1, &loss[i]);
		off = fmax(off, e == 0 ? fabs(loss[i] / s->loss[i] - 1) : 0);
	}
	return e < 0 ? e :
		       yk_self_result(s, off <= NEAR_DEVICE,
				   "%s: loss %.6f, then %.6f; relative difference from the CPU "
				   "%.2g, at most %.2g allowed",
				   s->device, loss[0], loss[1], off, NEAR_DEVICE);
}

// ---- gradients ----

struct values { // of all parameters, on the host
	float **at;
	int n;
};

static void values_free(struct values *v)
{
	for (int i = 0; v->at && i < v->n; i++)
		free(v->at[i]);
	free(v->at);
}

static int values_read(const struct yk_parameters *ps, yoke_tensor *const *from, struct values *v)
{
	v->n = ps->count;
	v->at = calloc((size_t)ps->count, sizeof *v->at);
	int e = v->at ? 0 : YOKE_ENOMEM;
	for (int i = 0; i < ps->count && e == 0; i++) {
		v->at[i] = malloc(yoke_bytes(ps->var[i]));
		e = v->at[i] ? yoke_read(from[i], v->at[i], yoke_bytes(ps->var[i])) : YOKE_ENOMEM;
	}
	return e == YOKE_ENOMEM && !yoke_error_code() ?
		       yk_fail(e, "selftest: out of memory for gradients") :
		       e;
}

static yoke_tensor *windows(const struct yk_trainer *t)
{
	const int64_t n = t->batch * (t->context + 1);
	int32_t *ids = malloc((size_t)n * sizeof *ids);
	const int64_t vocab = t->replica.net->shape.vocab;
	for (int64_t i = 0; ids && i < n; i++)
		ids[i] = (int32_t)(i * 7919 % 251 % vocab);
	yoke_tensor *x =
		ids ? yoke_from(yoke_i32, 2, (int64_t[]){ t->batch, t->context + 1 }, ids) : NULL;
	free(ids);
	return x;
}

// Loss with the parameters moved along the gradient.
static int loss_at(struct yk_trainer *t, const struct values *p, const struct values *g,
		   double step_of, double *loss)
{
	const struct yk_parameters *ps = &t->replica.net->params;
	float l = NAN;
	int e = 0;
	for (int i = 0; i < ps->count && e == 0; i++) {
		const int64_t n = yoke_count(ps->var[i]);
		float *x = malloc((size_t)n * sizeof *x);
		for (int64_t k = 0; x && k < n; k++)
			x[k] = (float)((double)p->at[i][k] + step_of * (double)g->at[i][k]);
		e = x ? yoke_put(ps->var[i], x, (size_t)n * sizeof *x) :
			yk_fail(YOKE_ENOMEM, "selftest: out of memory");
		free(x);
	}
	yoke_scope *scope = yoke_scope_begin("selftest");
	if (e == 0)
		e = yoke_read(yk_windows_loss(t->replica.net, windows(t), 0), &l, sizeof l);
	int f = yoke_scope_end(scope);
	*loss = (double)l;
	return e < 0 ? e : f;
}

// Along the gradient, the slope of the loss must equal the gradient's norm.
static int slope_of(struct yk_trainer *t, double *norm, double *slope)
{
	const struct yk_parameters *ps = &t->replica.net->params;
	struct values p = { 0 }, g = { 0 };
	double sum = 0, more = 0, less = 0;
	yoke_scope *scope = yoke_scope_begin("selftest");
	yoke_tensor *loss = yk_windows_loss(t->replica.net, windows(t), 0);
	int e = yoke_grad(loss, ps->count, ps->var, t->replica.grad);
	if (e == 0)
		e = yoke_eval(ps->count, t->replica.grad);
	if (e == 0)
		e = values_read(ps, t->replica.grad, &g);
	if (e == 0)
		e = values_read(ps, ps->var, &p);
	int f = yoke_scope_end(scope);
	e = e < 0 ? e : f;
	for (int i = 0; e == 0 && i < ps->count; i++)
		for (int64_t k = 0; k < yoke_count(ps->var[i]); k++)
			sum += (double)g.at[i][k] * (double)g.at[i][k];
	*norm = sqrt(sum);
	if (e == 0)
		e = loss_at(t, &p, &g, DIFFERENCE / *norm, &more);
	if (e == 0)
		e = loss_at(t, &p, &g, -DIFFERENCE / *norm, &less);
	*slope = (more - less) / (2 * DIFFERENCE);
	values_free(&p);
	values_free(&g);
	return e;
}

static int cpu_gradients(struct yk_self *s, struct yk_trainer *t)
{
	double slope = NAN;
	int e = slope_of(t, &s->slope, &slope);
	const double off = fabs(slope / s->slope - 1);
	return e < 0 ? e :
		       yk_self_result(s, off <= NEAR_SLOPE,
				   "gradient norm %.6f, finite difference of the loss along the "
				   "gradient %.6f; relative difference %.2g, at most %.2g allowed",
				   s->slope, slope, off, NEAR_SLOPE);
}

static int device_gradients(struct yk_self *s, struct yk_trainer *t)
{
	double norm = NAN, slope = NAN;
	int e = slope_of(t, &norm, &slope);
	const double off = fabs(norm / s->slope - 1);
	return e < 0 ? e :
		       yk_self_result(s, off <= NEAR_DEVICE && fabs(slope / norm - 1) <= NEAR_SLOPE,
				   "%s: gradient norm %.6f, finite difference %.6f; relative "
				   "difference from the CPU %.2g, at most %.2g allowed",
				   s->device, norm, slope, off, NEAR_DEVICE);
}

// ---- plans, profile, time ----

static int plans(struct yk_self *s, struct yk_trainer *t)
{
	struct yoke_stats stats = { .size = sizeof stats };
	uint64_t made[3] = { 0 }, before = 0;
	double loss;
	int e = 0;
	for (int i = 0; i < 3 && e == 0; i++) {
		e = yk_self_steps(t, 1, &loss);
		if (e == 0)
			e = yoke_stats(&stats);
		made[i] = stats.plan_misses - before;
		before = stats.plan_misses;
	}
	return e < 0 ? e :
		       yk_self_result(s, made[1] + made[2] == 0,
				   "%" PRIu64 " plans compiled in the first step, %" PRIu64
				   " in the second, %" PRIu64 " in the third",
				   made[0], made[1], made[2]);
}

static int profile(struct yk_self *s, struct yk_trainer *t)
{
	char launches[64];
	struct yk_report r;
	double loss, computed = 0;
	struct yk_profile *p = yk_profile_new(true);
	int e = p ? 0 : yoke_error_code();
	if (e == 0)
		yk_profile_start(p);
	for (int i = 0; i < 3 && e == 0; i++)
		e = yk_self_steps(t, 1, &loss);
	if (e == 0)
		e = yk_profile_report(p, &r);
	yk_profile_free(p);
	if (e < 0)
		return e;
	for (int k = 0; k <= YK_BUSY_OTHER; k++)
		computed += 1e-9 * (double)r.sum[0][k].ns;
	const bool good =
		r.launches > 0 && r.sum[0][YK_BUSY_CONTRACT].count > 0 && computed <= 1.01 * r.wall;
	return yk_self_result(s, good, "%s, %.3f ms of compute in %.3f ms%s",
			      yk_counted(launches, (long long)r.launches, "launch"), 1e3 * computed,
			      1e3 * r.wall, r.timed[0] ? "" : ", not timed");
}

static int timing(struct yk_self *s, struct yk_trainer *t)
{
	double took[TIMED], loss, spread;
	int e = yk_self_steps(t, 1, &loss);
	for (int i = 0; i < TIMED && e == 0; i++) {
		double began = yk_seconds();
		e = yk_self_steps(t, 1, &loss);
		took[i] = yk_seconds() - began;
	}
	if (e < 0)
		return e;
	double median = yk_median(TIMED, took, &spread);
	return yk_self_result(s, true, "%.3f ms per step, +- %.3f ms, on %s", 1e3 * median,
			   1e3 * spread, s->device);
}

// The sections in the order of their execution.
static const struct section {
	const char *name;
	bool cpu; // always on the CPU
	yk_self_fn *run;
	int (*alone)(struct yk_self *); // replaces `run` for models with resolvents
} sections[] = {
	{ "two steps on the CPU", true, cpu_steps, NULL },
	{ "gradients on the CPU, against finite differences", true, cpu_gradients, NULL },
	{ "two steps on the device", false, device_steps, NULL },
	{ "gradients on the device", false, device_gradients, NULL },
	{ "plans are reused", false, plans, NULL },
	{ "profile", false, profile, NULL },
	{ "timing", false, timing, NULL },
	{ "kernels against f64", false, NULL, yk_self_kernels },
	{ "tiers", false, NULL, yk_self_tiers },
	{ "mixed precision", false, NULL, yk_self_mixed },
	{ "accumulation", false, NULL, yk_self_accumulation },
	{ "offloaded optimizer", false, NULL, yk_self_offload },
	{ "shrinking batch", false, NULL, yk_self_shrinking },
	{ "training loop", false, NULL, yk_self_loop },
};

static void selftest(struct yk_config *c, bool *well)
{
	static const char *const words[] = { "FAIL", "PASS", "SKIP" };
	const bool resolvents = !strcmp(yk_config_str(c, YK_KEY_model), "bk");
	struct yk_self s = { .config = c };
	char experts[40];
	const char *every = experts;
	snprintf(experts, sizeof experts, "active_experts=%" PRId64,
		 yk_config_int(c, YK_KEY_experts));
	*well = true;
	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
		const struct section *of = &sections[i];
		if (of->alone && !resolvents)
			continue;
		s.verdict = YK_SELF_FAIL;
		// top-k routing is discontinuous, so gradients are checked with all experts active
		const bool all =
			resolvents && (of->run == cpu_gradients || of->run == device_gradients);
		int e = of->alone ? of->alone(&s) :
				    yk_self_with(&s, of->cpu ? "cpu" : NULL, all, &every, of->run);
		if (e < 0)
			yk_self_result(&s, YK_SELF_FAIL, "%.300s", yoke_error());
		yoke_error_clear();
		printf("%s  %s: %s\n", words[s.verdict], of->name, s.text);
		fflush(stdout);
		*well &= s.verdict != YK_SELF_FAIL;
	}
	printf("%s\n", *well ? "all tests passed" :
			       "some tests failed: `yoke check device` finds the faulty op, `yoke "
			       "doctor` lists devices and drivers");
}

// Creates a training text if none is given, just long enough for a few windows.
static int text_make(const struct yk_config *c, char path[4096])
{
	const char *folder = getenv("TMPDIR");
	const int64_t words = 40 + 8 * yk_config_int(c, YK_KEY_context);
	snprintf(path, 4000, "%s/yoke-selftest-XXXXXX", folder && *folder ? folder : "/tmp");
	int fd = mkstemp(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	for (int64_t i = 0; f && i < words; i++)
		fprintf(f, "%s%c",
			(const char *[]){ "a", "short", "text", "of", "few",
					  "words" }[i * 7919 % 6],
			i % 9 ? ' ' : '\n');
	if (f && fclose(f) == 0)
		return 0;
	return yk_fail(YOKE_EIO, "selftest: cannot create '%s'", path);
}

// Applies the given keys, with small sizes as defaults. Disables options that would cause unrelated
// differences or take time.
static int configure(int argc, char **argv, struct yk_config *to, char text[4096])
{
	static const char *const small[] = { "layers=2", "heads=2", "embed=32", "context=16" };
	const char *const plain[] = { "batch=2",   "accumulate=1", "dropout=0", "precision=fp32",
				      "steps=100", "epochs=0",     "warmup=1",  "schedule=constant",
				      "valid=0",   "workers=0" };
	char data[4200];
	struct yk_config given, sized, own;
	int e = yk_config_init(&given, YK_T);
	if (e < 0)
		return e;
	e = yk_config_arguments(&given, argc - 1, argv + 1);
	if (e == 0)
		e = yk_config_with(&given, argc > 1 ? 0 : sizeof small / sizeof *small, small,
				   &sized);
	yk_config_fini(&given);
	if (e < 0)
		return e;
	e = yk_config_with(&sized, sizeof plain / sizeof *plain, plain, &own);
	yk_config_fini(&sized);
	if (e < 0)
		return e;
	if (!*yk_config_str(&own, YK_KEY_data))
		e = text_make(&own, text);
	snprintf(data, sizeof data, "data=%s", text);
	if (e == 0)
		e = yk_config_with(&own, *text != '\0', (const char *[]){ data }, to);
	yk_config_fini(&own);
	return e;
}

int yk_check_model(int argc, char **argv)
{
	struct yk_config c = { 0 };
	char text[4096] = "";
	bool well = false;
	int e = configure(argc, argv, &c, text), status = YK_USAGE;
	if (e == 0) {
		status = YK_FAILED;
		e = yk_config_check(&c);
	}
	if (e == 0)
		e = yk_config_apply(&c);
	if (e == 0)
		selftest(&c, &well);
	else
		yk_failed("check model");
	if (*text)
		unlink(text);
	yk_config_fini(&c);
	return well ? YK_DONE : status;
}
