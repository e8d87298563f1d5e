// SPDX-License-Identifier: Apache-2.0
// yoke check model for models with resolvents: compares their kernels and tiers with float64, and
// checks mixed precision, gradient accumulation, optimizer state in host memory, a batch that no
// longer fits, and the whole training loop.
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/complex.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "device/pool.h"
#include "formats/checkpoint.h"
#include "graph/context.h"
#include "observe/profile.h"
#include "tool/check_model.h"
#include "train/trainer_open.h"

enum { ROWS = 8, N = 300, MANY = 10 };
#define NEAR 2e-6 // tolerance for losses that differ only by rounding

// Results that a section leaves for later sections.
struct left {
	double loss[MANY], seconds;
	uint64_t peak, bytes, parameters;
	bool shared; // the device shares the host's memory
};
static _Thread_local struct left left;

// ---- kernels ----

static double drawn(uint64_t *state) // uniform in -1 .. 1
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (double)(*state >> 11) * 0x1p-52 - 1;
}

// G of a row with off-diagonal ones, at z = i; da: gradient for the cotangent g of G.
static void reference(const float *a, const float *g, double complex *to, double *da)
{
	double complex l[N], r[N], lb[N], rb[N], d[N];
	for (int i = 0; i < N; i++)
		l[i] = CMPLX((double)a[i], -1) - (i ? 1 / l[i - 1] : 0);
	for (int i = N - 1; i >= 0; i--)
		r[i] = CMPLX((double)a[i], -1) - (i < N - 1 ? 1 / r[i + 1] : 0);
	for (int i = 0; i < N; i++) {
		to[i] = 1 / (l[i] + r[i] - CMPLX((double)a[i], -1));
		lb[i] = rb[i] = d[i] =
			-to[i] * to[i] * CMPLX((double)g[2 * i], -(double)g[2 * i + 1]);
	}
	for (int i = N - 1; i > 0; i--)
		lb[i - 1] += lb[i] / (l[i - 1] * l[i - 1]);
	for (int i = 0; i < N - 1; i++)
		rb[i + 1] += rb[i] / (r[i + 1] * r[i + 1]);
	for (int i = 0; i < N; i++)
		da[i] = creal(lb[i] + rb[i] - d[i]);
}

struct rows {
	int tier; // index into `tiers`
	char line[300];
	bool good;
	float a[ROWS * N], g[2 * ROWS * N], got[2 * ROWS * N], slope[ROWS * N];
};

// Max error of a tier's values (absolute) and gradients (relative to the largest).
static int tier_errors(struct rows *b, int tier, int half, double *value, double *gradient)
{
	const int64_t dims[] = { ROWS, N, 2 }, two = 2;
	struct yoke_resolvent how = YOKE_RESOLVENT_INIT;
	uint64_t state = 7;
	double max = 0;
	how.tier = tier;
	how.half = half;
	for (int i = 0; i < ROWS * N; i++)
		b->a[i] = (float)(4 * drawn(&state) - 2);
	for (int i = 0; i < 2 * ROWS * N; i++)
		b->g[i] = (float)drawn(&state);
	yoke_scope *s = yoke_scope_begin("selftest");
	yoke_tensor *a = yoke_from(yoke_f32, 2, dims, b->a),
		    *g = yoke_from(yoke_f32, 3, dims, b->g), *slope = NULL;
	yoke_tensor *y = yoke_resolvent(a, YOKE_NONE, YOKE_NONE,
					yoke_from(yoke_f32, 1, &two, (float[]){ 0, 1 }), &how);
	int e = y ? yoke_read(y, b->got, sizeof b->got) : yoke_error_code();
	if (e == 0)
		e = yoke_grad(yoke_sum(yoke_mul(y, g), YOKE_ALL), 1, &a, &slope);
	if (e == 0)
		e = yoke_read(slope, b->slope, sizeof b->slope);
	int f = yoke_scope_end(s);
	*value = *gradient = 0;
	for (int row = 0; row < ROWS && e == 0; row++) {
		double complex want[N];
		double da[N];
		reference(b->a + row * N, b->g + 2 * row * N, want, da);
		for (int i = 0; i < N; i++) {
			const float *got = b->got + 2 * (row * N + i);
			*value =
				fmax(*value, cabs(CMPLX((double)got[0], (double)got[1]) - want[i]));
			*gradient = fmax(*gradient, fabs((double)b->slope[row * N + i] - da[i]));
			max = fmax(max, fabs(da[i]));
		}
	}
	*gradient /= max;
	return e < 0 ? e : f;
}

// Max error of grouped matrix products, relative to the error bound of sums in f32.
static int grouped_error(double *off)
{
	enum { T = 70, K = 33, C = 29, E = 3 };
	static const int64_t first[E + 1] = { 0, 20, 20, T };
	float x[T * K], w[E * K * C], y[T * C];
	uint64_t state = 5;
	for (int i = 0; i < T * K; i++)
		x[i] = (float)drawn(&state);
	for (int i = 0; i < E * K * C; i++)
		w[i] = (float)drawn(&state);
	yoke_scope *s = yoke_scope_begin("selftest");
	yoke_tensor *t = yoke_grouped_matmul(yoke_from(yoke_f32, 2, (int64_t[]){ T, K }, x),
					     yoke_from(yoke_f32, 3, (int64_t[]){ E, K, C }, w),
					     yoke_from(yoke_i64, 1, (int64_t[]){ E + 1 }, first));
	int e = t ? yoke_read(t, y, sizeof y) : yoke_error_code(), f = yoke_scope_end(s);
	*off = 0;
	for (int i = 0; i < T * C && e == 0; i++) {
		const int row = i / C, of = row < first[1] ? 0 : 2;
		double sum = 0;
		for (int k = 0; k < K; k++)
			sum += (double)x[row * K + k] * (double)w[(of * K + k) * C + i % C];
		*off = fmax(*off, fabs((double)y[i] - sum));
	}
	*off /= K * 0x1p-23;
	return e < 0 ? e : f;
}

static int in_context(struct yk_self *s, struct rows *b, int (*fn)(struct yk_self *, struct rows *))
{
	struct yoke_context *ctx = yoke_context_new(NULL), *former;
	if (!ctx)
		return yoke_error_code();
	former = yoke_use(ctx);
	snprintf(s->device, sizeof s->device, "%.47s", ctx->device->id);
	int e = fn(s, b);
	yoke_use(former);
	yoke_context_free(ctx);
	return e;
}

static int kernels(struct yk_self *s, struct rows *b)
{
	double value, gradient, grouped;
	int e = tier_errors(b, YOKE_TIER_F32, 0, &value, &gradient);
	if (e == 0)
		e = grouped_error(&grouped);
	if (e < 0)
		return e;
	return yk_self_result(
		s, value <= 1e-6 && gradient <= 2e-5 && grouped <= 1 ? YK_SELF_PASS : YK_SELF_FAIL,
		"%s: errors: resolvent %.2g, at most 1e-06; its gradient %.2g, at most 2e-05; "
		"grouped matrix products %.2g of the tolerance",
		s->device, value, gradient, grouped);
}

int yk_self_kernels(struct yk_self *s)
{
	struct rows *b = calloc(1, sizeof *b);
	int e = b ? in_context(s, b, kernels) : yk_fail(YOKE_ENOMEM, "selftest: out of memory");
	free(b);
	return e;
}

static const struct {
	const char *name;
	int tier, half;
	double max;
} tiers[] = { { "f64", YOKE_TIER_F64, yoke_f16, 1.2e-7 }, // stored in f32
	      { "f32", YOKE_TIER_F32, yoke_f16, 1e-6 },
	      { "mixed", YOKE_TIER_MIXED, yoke_f16, 1e-6 },
	      { "f16", YOKE_TIER_HALF, yoke_f16, 1e-4 },
	      { "bf16", YOKE_TIER_HALF, yoke_bf16, 1e-4 } };

static int tier(struct yk_self *s, struct rows *b)
{
	struct yoke_stats before = { .size = sizeof before }, after = before;
	double value, gradient;
	const int i = b->tier;
	(void)s;
	int e = yoke_stats(&before);
	if (e == 0)
		e = tier_errors(b, tiers[i].tier, tiers[i].half, &value, &gradient);
	if (e == 0)
		e = yoke_stats(&after);
	if (e < 0)
		return e;
	b->good &= value <= tiers[i].max && gradient <= 1e-4;
	snprintf(b->line + strlen(b->line), sizeof b->line - strlen(b->line), "%s%s %.2g",
		 i ? ", " : "", tiers[i].name, value);
	if (tiers[i].tier == YOKE_TIER_HALF)
		snprintf(b->line + strlen(b->line), sizeof b->line - strlen(b->line),
			 " (emulated, %" PRIu64 " of %d rows in f32)",
			 after.promoted_rows - before.promoted_rows, ROWS);
	return 0;
}

int yk_self_tiers(struct yk_self *s)
{
	struct rows *b = calloc(1, sizeof *b);
	int e = b ? 0 : yk_fail(YOKE_ENOMEM, "selftest: out of memory");
	for (size_t i = 0; i < sizeof tiers / sizeof *tiers && e == 0; i++) {
		b->good |= i == 0;
		b->tier = (int)i;
		e = in_context(s, b, tier);
	}
	if (e == 0)
		yk_self_result(s, b->good ? YK_SELF_PASS : YK_SELF_FAIL, "%s: errors of %s",
			       s->device, b->line);
	free(b);
	return e;
}

// ---- mixed precision ----

// Makes weights infinite: such a step must change nothing and reduce the loss scale.
static int overflow(struct yk_trainer *t, double *before, double *after)
{
	// the output weights, which compute the logits
	yoke_tensor *w = t->replica.net->params.var[t->replica.net->params.count - 2];
	const size_t bytes = yoke_bytes(w);
	struct yoke_scaler_stats stats = { .size = sizeof stats };
	float *held = malloc(bytes), *bad = malloc(bytes);
	double loss;
	int e = held && bad ? yoke_read(w, held, bytes) :
			      yk_fail(YOKE_ENOMEM, "selftest: out of memory");
	if (e == 0)
		e = yoke_scaler_stats(t->replica.scaler, &stats);
	*before = stats.scale;
	for (size_t i = 0; e == 0 && i < bytes / sizeof *bad; i++)
		bad[i] = INFINITY;
	if (e == 0)
		e = yoke_put(w, bad, bytes);
	if (e == 0)
		e = yk_trainer_step(t);
	struct yk_record record;
	if (e == 0)
		e = yk_trainer_record(t, &record);
	if (e == 0)
		e = yoke_put(w, held, bytes);
	if (e == 0)
		e = yk_self_steps(t, 1, &loss);
	if (e == 0)
		e = yoke_scaler_stats(t->replica.scaler, &stats);
	*after = stats.scale;
	free(held);
	free(bad);
	return e;
}

static int mixed(struct yk_self *s, struct yk_trainer *t)
{
	const char *tmp = getenv("TMPDIR");
	struct yoke_scaler_state was = { .size = sizeof was }, is = was;
	struct yk_checkpoint ck;
	struct yk_trainer *other = NULL;
	struct yk_config c;
	char folder[4096];
	double loss[2], before = 0, after = 0;
	if (!t->replica.scaler)
		return yk_self_result(s, YK_SELF_FAIL, "the trainer has no loss scaler");
	int e = yk_self_steps(t, 2, loss);
	if (e == 0)
		e = overflow(t, &before, &after);
	if (e < 0)
		return e;
	snprintf(folder, sizeof folder - 40, "%s/yoke-selftest-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(folder))
		return yk_fail(YOKE_EIO, "selftest: cannot create '%s'", folder);
	e = yk_trainer_save(t, folder);
	if (e == 0)
		e = yoke_scaler_save(t->replica.scaler, &was);
	if (e == 0)
		e = yk_config_with(t->replica.config, 0, NULL, &c);
	if (e == 0) {
		e = yk_checkpoint_open(folder, &ck);
		if (e == 0) {
			e = yk_trainer_new(&c, folder, &ck, &other);
			yk_checkpoint_fini(&ck);
		}
		if (e == 0)
			e = yoke_scaler_save(other->replica.scaler, &is);
		yk_trainer_free(other);
		yk_config_fini(&c);
	}
	yk_dir_remove(folder);
	if (e < 0)
		return e;
	const bool kept = !memcmp(&was, &is, sizeof was),
		   good = t->skipped == 1 && after < before && kept && loss[1] < 1.1 * loss[0];
	return yk_self_result(s, good ? YK_SELF_PASS : YK_SELF_FAIL,
			   "%s: loss %.4f, then %.4f; an overflow skipped %" PRId64
			   " step and reduced the scale from %g to %g; a checkpoint "
			   "%s the scaler's state",
			   s->device, loss[0], loss[1], t->skipped, before, after,
			   kept ? "preserves" : "does not preserve");
}

int yk_self_mixed(struct yk_self *s)
{
	return yk_self_with(
		s, NULL, 3,
		(const char *[]){ "precision=fp16-mixed", "allow_emulated=1", "context=16" },
		mixed);
}

// ---- accumulation ----

static int ten_steps(struct yk_self *s, struct yk_trainer *t)
{
	(void)s;
	return yk_self_steps(t, MANY, left.loss);
}

static int accumulated(struct yk_self *s, struct yk_trainer *t)
{
	double loss[MANY], off = 0;
	int e = yk_self_steps(t, MANY, loss);
	for (int i = 0; i < MANY; i++)
		off = fmax(off, fabs(loss[i] / left.loss[i] - 1));
	if (e < 0)
		return e;
	return yk_self_result(s,
			      off <= NEAR * MANY && t->random_step == 4 * MANY &&
					      t->replica.step == MANY ?
				      YK_SELF_PASS :
				      YK_SELF_FAIL,
			      "4 parts of 5 windows, %.2g off one of 20, of %.2g; %" PRId64
			      " passes make %" PRId64 " steps",
			      off, NEAR * MANY, t->random_step, t->replica.step);
}

// One epoch whose number of windows is not a multiple of the step's 20.
static int remainder_of(struct yk_self *s, struct yk_trainer *t)
{
	const int64_t windows = yk_data_train_windows(t->feed.data), whole = windows / 20;
	char text[YK_SELF_TEXT];
	double loss;
	int e = 0;
	while (t->replica.step < t->steps && e == 0)
		e = yk_self_steps(t, 1, &loss);
	snprintf(text, sizeof text, "%s", s->text);
	const enum yk_model_verdict was = s->verdict;
	if (e < 0)
		return e;
	return yk_self_result(s,
			      was == YK_SELF_PASS && t->replica.step == whole + (windows % 20 > 0) ?
				      YK_SELF_PASS :
				      YK_SELF_FAIL,
			      "%.280s; a pass of %" PRId64 " windows is %" PRId64 " steps", text,
			      windows, t->replica.step);
}

// The load-balancing loss depends on the micro-batch, so it is disabled.
int yk_self_accumulation(struct yk_self *s)
{
	int e = yk_self_with(s, NULL, 3, (const char *[]){ "batch=20", "context=16", "balance=0" },
			     ten_steps);
	if (e == 0)
		e = yk_self_with(
			s, NULL, 4,
			(const char *[]){ "batch=5", "accumulate=4", "context=16", "balance=0" },
			accumulated);
	return e < 0 ? e :
		       yk_self_with(s, NULL, 4,
				    (const char *[]){ "batch=5", "accumulate=4", "context=16",
						      "epochs=1" },
				    remainder_of);
}

// ---- optimizer state in host memory ----

static int timed(struct yk_self *s, struct yk_trainer *t)
{
	struct yoke_stats stats = { .size = sizeof stats };
	struct yk_profile *p = yk_profile_new(false);
	struct yk_report r;
	(void)s;
	int e = p ? yk_self_steps(t, 1, left.loss) : yoke_error_code();
	if (e == 0) {
		yk_profile_start(p);
		e = yk_self_steps(t, 3, left.loss + 1);
	}
	if (e == 0)
		e = yk_profile_report(p, &r);
	if (e == 0)
		e = yoke_stats(&stats);
	yk_profile_free(p);
	if (e < 0)
		return e;
	left.seconds =
		1e-9 * (double)(r.sum[0][YK_BUSY_TRANSFER].ns + r.sum[1][YK_BUSY_TRANSFER].ns) / 3;
	left.bytes = (r.bytes_up + r.bytes_down) / 3;
	left.peak = stats.pool_allocated_peak;
	left.parameters = 0;
	for (int i = 0; i < t->replica.net->params.count; i++)
		left.parameters += (uint64_t)yoke_count(t->replica.net->params.var[i]);
	left.shared = yk_current()->device->info.kind == YOKE_DEVICE_CPU;
	return 0;
}

int yk_self_offload(struct yk_self *s)
{
	const char *const keys[] = { "optimizer=adamw", "context=16", "offload=optimizer" };
	int e = yk_self_with(s, NULL, 2, keys, timed);
	const struct left here = left;
	if (e == 0)
		e = yk_self_with(s, NULL, 3, keys, timed);
	if (e < 0)
		return e;
	double off = 0;
	for (int i = 0; i < 4; i++)
		off = fmax(off, fabs(left.loss[i] / here.loss[i] - 1));
	if (off > NEAR)
		return yk_self_result(s, YK_SELF_FAIL,
				   "losses differ by %.2g from those with the optimizer state on "
				   "the device, at most %.2g allowed",
				   off, NEAR);
	if (left.shared)
		return yk_self_result(s, YK_SELF_SKIP,
				   "%s: the device shares the host's memory, so offloading saves "
				   "nothing; losses differ by %.2g",
				   s->device, off);
	const double lower = ((double)here.peak - (double)left.peak) / (double)left.parameters;
	return yk_self_result(s, lower >= 7.5 ? YK_SELF_PASS : YK_SELF_FAIL,
			   "%s: losses differ by %.2g; the peak is lower by %.2f of 8 bytes per "
			   "parameter; %.3f ms per step for copies of %" PRIu64 " bytes",
			   s->device, off, lower, 1e3 * left.seconds, left.bytes);
}

// ---- a batch that no longer fits ----

static void discard_line(int level, const char *topic, const char *line, void *arg)
{
	(void)level, (void)topic, (void)line, (void)arg;
}

// Allocates the rest of the pool in ever smaller blocks; returns their number.
static int filled(yoke_tensor **to, int max)
{
	int n = 0;
	for (int64_t size = 1 << 16; size >= 1 << 6; size /= 4)
		for (bool more = true; more && n < max; n += more) {
			to[n] = yoke_variable("fill", yoke_f32, 1, &size);
			void *zeros = calloc((size_t)size, 4);
			more = to[n] && zeros && yoke_put(to[n], zeros, (size_t)size * 4) == 0;
			free(zeros);
			if (!more)
				yoke_free(to[n]);
		}
	yoke_error_clear();
	return n;
}

static int reduced_batch(struct yk_self *s, struct yk_trainer *t)
{
	struct yk_pool *pool = yk_current()->device->pool;
	struct yoke_stats stats = { .size = sizeof stats };
	double loss[MANY], off = 0;
	int64_t micro[3] = { t->micro };
	int steps = 2, halved = 0;
	yoke_tensor *fill[400];
	char why[300] = "";
	int e = yk_self_steps(t, 2, loss);
	if (e == 0)
		e = yoke_stats(&stats);
	const uint64_t limit = yk_pool_limit(pool, 0);
	yk_log_to(discard_line, NULL); // warnings about steps that do not fit are expected
	// leaves an ever smaller fraction of the memory of a whole step
	for (double share = 0.85; share > 0.3 && steps < MANY && halved < 2 && e == 0;
	     share -= 0.07) {
		yk_pool_trim(pool);
		yk_pool_limit(pool,
			      stats.pool_allocated +
				      (uint64_t)(share * (double)(stats.predicted_peak -
								  stats.pool_allocated)));
		e = yk_self_steps(t, 1, &loss[steps++]);
		if (t->micro < micro[halved])
			micro[++halved] = t->micro;
	}
	for (int i = 0; i < steps && e == 0; i++)
		off = fmax(off, fabs(loss[i] / left.loss[i] - 1));
	if (e == 0) { // now nothing fits
		yk_pool_trim(pool);
		yk_pool_limit(pool, 1);
		const int n = filled(fill, sizeof fill / sizeof *fill);
		e = yk_trainer_step(t);
		for (int i = 0; i < n; i++)
			yoke_free(fill[i]);
		e = e == YOKE_ENOMEM ? yk_trainer_advise(t) : 0;
		snprintf(why, sizeof why, "%s", yoke_error() + (*yoke_error() == ';' ? 2 : 0));
		yoke_error_clear();
		e = e == YOKE_ENOMEM ? 0 : e;
	}
	yk_log_to(NULL, NULL);
	yk_pool_limit(pool, limit);
	if (e < 0)
		return e;
	const bool good = micro[0] == 32 && micro[1] == 16 && micro[2] == 8 && off <= 5 * NEAR &&
			  strstr(why, "batch");
	return yk_self_result(
		s, good ? YK_SELF_PASS : YK_SELF_FAIL,
		"batches of %" PRId64 ", %" PRId64 ", %" PRId64
		", each window used once: losses differ by %.2g; below one window: %.200s",
		micro[0], micro[1], micro[2], off, why);
}

int yk_self_shrinking(struct yk_self *s)
{
	const char *const keys[] = { "batch=32", "context=64", "balance=0" };
	int e = yk_self_with(s, NULL, 3, keys, ten_steps);
	return e < 0 ? e : yk_self_with(s, NULL, 3, keys, reduced_batch);
}

// ---- the loop ----

static int loop(struct yk_self *s, struct yk_trainer *t)
{
	struct yoke_stats stats = { .size = sizeof stats };
	const int64_t batch = t->micro;
	double loss[2 * MANY], valid = NAN;
	int e = yoke_stats_reset_peaks();
	if (e == 0)
		e = yk_self_steps(t, 2 * MANY, loss);
	if (e == 0)
		e = yoke_stats(&stats); // the last plan is that of a step
	if (e == 0)
		e = yk_model_validate(t->replica.net, t->feed.data, NULL, NULL, t->batch, t->batch,
				      NULL, NULL, NULL, &valid);
	if (e < 0)
		return e;
	return yk_self_result(
		s,
		t->micro == batch && loss[2 * MANY - 1] < loss[0] && isfinite(valid) ?
			YK_SELF_PASS :
			YK_SELF_FAIL,
		"%s: %d steps, loss %.4f to %.4f, validation %.4f, no allocation failed; peak %.1f MiB, predicted %.1f",
		s->device, 2 * MANY, loss[0], loss[2 * MANY - 1], valid,
		(double)stats.pool_allocated_peak / 1048576,
		(double)stats.predicted_peak / 1048576);
}

int yk_self_loop(struct yk_self *s)
{
	return yk_self_with(s, NULL, 2, (const char *[]){ "batch=4", "valid=0.1" }, loop);
}
