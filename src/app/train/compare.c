// SPDX-License-Identifier: Apache-2.0
// Trains in f32 and in mixed precision, and compares the two runs.
#include "config.h"

#include "train/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "graph/context.h"
#include "config/capable.h"
#include "train/check.h"
#include "train/trainer.h"
#include "train/trainer_open.h"

enum { STEPS = 50, WARM = 3 }; // STEPS: default; WARM: steps that are not timed

// Results of a run.
struct ran {
	double *loss;       // per step, NaN where it was skipped
	int64_t steps, skipped;
	float **gradient;   // per parameter, at the first step
	int64_t *elements;
	char **name;
	int parameters;
	double tokens_per_s, scale;
	uint64_t peak;      // bytes of the pool
	bool native;        // the device computes the products natively
	char device[64];
};

static void ran_free(struct ran *r)
{
	for (int i = 0; i < r->parameters; i++) {
		if (r->gradient)
			free(r->gradient[i]);
		if (r->name)
			free(r->name[i]);
	}
	free(r->gradient);
	free(r->elements);
	free(r->name);
	free(r->loss);
}

static int no_memory(void)
{
	return yk_fail(YOKE_ENOMEM, "validate: out of host memory for gradients and losses");
}

// ---- a run ----

static int ran_init(struct ran *r, const struct yk_trainer *t)
{
	const struct yk_parameters *ps = &t->replica.net->params;
	const size_t n = (size_t)ps->count;
	r->steps = t->steps;
	r->loss = calloc((size_t)t->steps + 1, sizeof *r->loss);
	r->gradient = calloc(n, sizeof *r->gradient);
	r->elements = calloc(n, sizeof *r->elements);
	r->name = calloc(n, sizeof *r->name);
	if (!r->loss || !r->gradient || !r->elements || !r->name)
		return no_memory();
	r->parameters = ps->count;
	for (int i = 0; i < ps->count; i++) {
		r->elements[i] = yoke_count(ps->var[i]);
		r->name[i] = strdup(ps->row[i].name);
		r->gradient[i] = malloc(sizeof(float) * (size_t)r->elements[i] + 1);
		if (!r->name[i] || !r->gradient[i])
			return no_memory();
	}
	return 0;
}

// Computes the unscaled gradients of the first batch. *finite: all of them are.
static int gradients(struct yk_trainer *t, struct ran *r, bool *finite)
{
	const struct yk_parameters *ps = &t->replica.net->params;
	int e = yk_trainer_feed(t);
	if (e < 0)
		return e;
	yoke_scope *s = yoke_scope_begin("step");
	yoke_random_set(t->replica.seed, t->random_step);
	yk_precision_begin(&t->precision);
	yoke_tensor *loss = yk_trainer_loss(t, t->feed.ids[0]);
	if (yoke_grad(t->replica.scaler ? yoke_scaler_scale(t->replica.scaler, loss) : loss,
		      ps->count, ps->var, t->replica.grad) == 0) {
		for (int i = 0; i < ps->count && t->replica.scaler; i++)
			t->replica.grad[i] = yoke_mul(t->replica.grad[i],
						      yoke_scaler_inverse(t->replica.scaler));
		yoke_eval(ps->count, t->replica.grad);
	}
	*finite = true;
	for (int i = 0; i < ps->count && !yoke_error_code(); i++) {
		yoke_read(t->replica.grad[i], r->gradient[i], yoke_bytes(t->replica.grad[i]));
		for (int64_t k = 0; k < r->elements[i] && *finite; k++)
			*finite = isfinite(r->gradient[i][k]);
	}
	return yoke_scope_end(s);
}

// Halves the loss scale until they are finite, then restores it for the run.
static int first_gradients(struct yk_trainer *t, struct ran *r)
{
	struct yoke_scaler_state was = { .size = sizeof was }, now;
	bool finite;
	if (t->replica.scaler)
		yoke_scaler_save(t->replica.scaler, &was);
	now = was;
	int e = gradients(t, r, &finite);
	while (e == 0 && !finite && t->replica.scaler && now.scale > 1) {
		now.scale = fmax(now.scale / 2, 1);
		yoke_scaler_load(t->replica.scaler, &now);
		e = gradients(t, r, &finite);
	}
	return e == 0 && t->replica.scaler ? yoke_scaler_load(t->replica.scaler, &was) : e;
}

static int steps(struct yk_trainer *t, struct ran *r)
{
	double began = yk_seconds();
	int e = 0;
	for (int64_t k = 0; k < t->steps && e == 0; k++) {
		struct yk_record record;
		if (k == WARM)
			began = yk_seconds();
		e = yk_trainer_step(t);
		if (e == 0)
			e = yk_trainer_record(t, &record);
		if (e == 0)
			r->loss[k] = t->overflowed ? NAN : (double)record.loss;
	}
	double counted = (double)(t->steps > WARM ? t->steps - WARM : t->steps);
	r->tokens_per_s = counted * (double)(t->batch * t->replica.batches.count * t->context) /
			  (yk_seconds() - began);
	r->skipped = t->skipped;
	return e;
}

static int run(struct yk_config *c, struct ran *r)
{
	struct yoke_context *ctx = yoke_context_new(NULL), *former;
	struct yk_trainer *t = NULL;
	struct yoke_stats stats = { .size = sizeof stats };
	if (!ctx)
		return yoke_error_code();
	former = yoke_use(ctx);
	snprintf(r->device, sizeof r->device, "%.63s", ctx->device->id);
	int e = yk_trainer_new(c, "validate", NULL, &t);
	if (e == 0)
		e = ran_init(r, t);
	if (e == 0)
		e = first_gradients(t, r);
	if (e == 0)
		e = yoke_stats_reset_peaks();
	if (e == 0)
		e = steps(t, r);
	if (e == 0)
		e = yoke_stats(&stats);
	r->peak = stats.pool_allocated_peak;
	if (t && t->precision.half)
		r->native =
			yk_capable(ctx->device, YOKE_OP_CONTRACT, t->precision.half) == YK_NATIVE;
	if (t && t->replica.scaler) {
		struct yoke_scaler_stats s = { .size = sizeof s };
		yoke_scaler_stats(t->replica.scaler, &s);
		r->scale = s.scale;
	}
	yk_trainer_free(t);
	yk_trainer_leave(ctx, former);
	return e;
}

// ---- the result ----

// Mean loss over the last tenth of the steps, without skipped ones.
static double last_loss(const struct ran *r)
{
	double sum = 0;
	int n = 0;
	for (int64_t k = r->steps - (r->steps + 9) / 10; k < r->steps; k++)
		if (isfinite(r->loss[k]))
			sum += r->loss[k], n++;
	return n ? sum / n : NAN;
}

// Parameters belong to the same layer if their names agree up to the first dot.
static size_t layer_of(const char *name)
{
	return strcspn(name, ".");
}

static bool same_layer(const struct ran *r, int i, int k)
{
	size_t n = layer_of(r->name[i]);
	return n == layer_of(r->name[k]) && !strncmp(r->name[i], r->name[k], n);
}

// |a - b| / |a| over all tensors in the layer of parameter i.
static double layer_error(const struct ran *a, const struct ran *b, int i, double *norm)
{
	double all = 0, off = 0;
	for (int k = 0; k < a->parameters; k++)
		for (int64_t j = 0; same_layer(a, i, k) && j < a->elements[k]; j++) {
			double x = (double)a->gradient[k][j], y = (double)b->gradient[k][j];
			all += x * x;
			off += (x - y) * (x - y);
		}
	*norm = sqrt(all);
	return all > 0 ? sqrt(off / all) : sqrt(off);
}

// Sets *good if all errors are within the bound.
static json_t *layers(const struct ran *a, const struct ran *b, double bound, bool *good)
{
	json_t *list = json_array();
	*good = true;
	for (int i = 0; i < a->parameters; i++) {
		bool first = true;
		double norm;
		for (int k = 0; k < i && first; k++)
			first = !same_layer(a, i, k);
		if (!first)
			continue;
		double error = layer_error(a, b, i, &norm);
		*good &= error <= bound;
		char name[64];
		snprintf(name, sizeof name, "%.*s", (int)layer_of(a->name[i]), a->name[i]);
		json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:f}", "layer", name, "norm",
						      yk_json_of_real(norm), "error",
						      yk_json_of_real(error), "bound", bound));
	}
	return list;
}

static json_t *report(const struct ran *a, const struct ran *b, const char *precision, int half,
		      bool choices)
{
	// unit roundoff, times a factor for a few dozen consecutive roundings
	const double rounding = 16 * (half == yoke_bf16 ? 0x1p-8 : 0x1p-11), loss_bound = 0.01;
	// with experts, a fraction of routing decisions as large as the rounding flips, each with a
	// different gradient
	const double bound = choices ? sqrt(rounding) : rounding;
	double was = last_loss(a), is = last_loss(b), difference = fabs(is - was) / was;
	bool gradients_good, loss_good = difference <= loss_bound;
	json_t *list = layers(a, b, bound, &gradients_good);
	double memory = (double)b->peak / (double)a->peak,
	       speed = b->tokens_per_s / a->tokens_per_s;
	bool often = b->skipped > b->steps / 2, good = loss_good && gradients_good && !often;
	char verdict[256];
	yk_snprintf(
		verdict, sizeof verdict, "%s%s%s%s; %.2f times the memory, %.2f times the speed%s",
		good ? "trains like fp32" : "does not train like fp32:",
		loss_good ? "" : " losses differ", gradients_good ? "" : " gradients differ",
		often ? " most steps overflow" : "", memory, speed,
		b->native ? "" :
			    ": this device converts its products to f32, so it saves only memory");
	return json_pack(
		"{s:s, s:s, s:I, s:{s:o, s:o, s:o, s:f}, s:o, s:{s:I, s:I, s:f}, s:{s:f, s:f, s:f}, s:I, s:f, "
		"s:b, s:s}",
		"precision", precision, "device", b->device, "steps", (json_int_t)b->steps, "loss",
		"f32", yk_json_of_real(was), "mixed", yk_json_of_real(is), "difference",
		yk_json_of_real(difference), "bound", loss_bound, "layers", list, "memory", "f32",
		(json_int_t)a->peak, "mixed", (json_int_t)b->peak, "ratio", memory, "speed", "f32",
		a->tokens_per_s, "mixed", b->tokens_per_s, "ratio", speed, "overflows",
		(json_int_t)b->skipped, "scale", b->scale, "good", good, "verdict", verdict);
}

static int set(struct yk_config *c, const char *key, const char *value)
{
	char text[128];
	snprintf(text, sizeof text, "%s=%s", key, value);
	return yk_config_argument(c, text);
}

json_t *yk_compare_precision(struct yk_config *c)
{
	struct ran a = { 0 }, b = { 0 };
	char precision[32], count[24];
	const struct yk_model *model = yk_model_find(yk_config_str(c, YK_KEY_model));
	json_t *o = NULL;
	snprintf(precision, sizeof precision, "%s",
		 yk_config_is_set(c, YK_KEY_precision) ? yk_config_str(c, YK_KEY_precision) :
							 "bf16-mixed");
	if (!strstr(precision, "mixed")) {
		yk_fail(YOKE_EINVAL,
			"precision=%s: it would be compared with itself; give precision=bf16-mixed "
			"or precision=fp16-mixed",
			precision);
		return NULL;
	}
	snprintf(count, sizeof count, "%d", STEPS);
	int e = yk_config_is_set(c, YK_KEY_steps) ? 0 : set(c, "steps", count);
	if (e == 0)
		e = set(c, "allow_emulated", "1");
	if (e == 0)
		e = set(c, "precision", "fp32");
	if (e == 0)
		e = yk_config_check(c);
	if (e == 0)
		e = yk_config_apply(c);
	if (e == 0)
		e = run(c, &a);
	if (e == 0)
		e = set(c, "precision", precision);
	if (e == 0)
		e = run(c, &b);
	if (e == 0 &&
	    !(o = report(&a, &b, precision, strstr(precision, "bf16") ? yoke_bf16 : yoke_f16,
			 model && model->choices)))
		yk_fail(YOKE_ENOMEM, "validate: no memory for the report");
	ran_free(&a);
	ran_free(&b);
	return o;
}
