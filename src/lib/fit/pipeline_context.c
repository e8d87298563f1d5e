// SPDX-License-Identifier: Apache-2.0
// Applies the keys trainer.accelerator, devices, precision, statistics and deterministic to
// contexts.
#include "config.h"

#include "fit/pipeline_context.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/param.h"
#include "fit/parse.h"
#include "graph/context.h"
#include "plan/lower.h"

// ---- devices ----

static bool is_gpu(const struct yk_device *d)
{
	return d->info.kind == YOKE_DEVICE_GPU || d->info.kind == YOKE_DEVICE_IGPU ||
	       d->info.kind == YOKE_DEVICE_ACCELERATOR;
}

// The GPU with that number, counting each physical GPU once, best first; -1: the first.
static const struct yk_device *gpu(int64_t number)
{
	for (const struct yk_device *d = yk_devices("*"); d; d = d->next)
		if (is_gpu(d) && !d->alias && number-- <= 0)
			return d;
	return NULL;
}

static yoke_context *context_on_backend(const struct yk_trainer_keys *t)
{
	char name[YK_FIT_TEXT_SIZE + 24];
	if (t->device >= 0 && strpbrk(t->accelerator, ":,")) {
		yk_fail(YOKE_EINVAL,
			"pipeline: trainer: devices: [%lld] needs an accelerator that names one backend, but it is '%s'",
			(long long)t->device, t->accelerator);
		return NULL;
	}
	if (t->device < 0 && !strchr(t->accelerator, ':'))
		return yoke_context_new(t->accelerator);
	snprintf(name, sizeof name, t->device < 0 ? "%s" : "%s:%lld", t->accelerator,
		 (long long)t->device);
	return yoke_context_new_on(name);
}

static yoke_context *context_on_gpu(const struct yk_trainer_keys *t)
{
	const struct yk_device *d = gpu(t->device);
	if (d)
		return yoke_context_new_on(d->id);
	if (yk_strict() || t->device > 0) {
		yk_fail(YOKE_ENODEV,
			"pipeline: trainer: accelerator: no GPU was found%s; yoke info lists the devices; or set it to \"cpu\"",
			t->device > 0 ? " with that number" :
					", and YOKE_STRICT forbids running on the CPU instead");
		return NULL;
	}
	yk_warn("fit", "trainer.accelerator=gpu: no GPU was found; using the CPU");
	return yoke_context_new("cpu");
}

yoke_context *yoke_pipeline_context(const char *json)
{
	struct yk_trainer_keys t;
	if (yk_require(json, "configuration"))
		return NULL;
	json_t *root = yk_json_parse(json, strlen(json), "pipeline");
	int err = root ? yk_parse_trainer(root, &t) : yk_error_last();
	if (root)
		json_decref(root);
	if (err)
		return NULL;
	if (!strcmp(t.accelerator, "gpu"))
		return context_on_gpu(&t);
	return strcmp(t.accelerator, "auto") ? context_on_backend(&t) : yoke_context_new(NULL);
}

// ---- states ----

int yk_pipeline_variables(yoke_pipeline *p)
{
	for (int i = 0; i < p->nodes && p->channels; i++) {
		struct yk_fit_node *n = &p->node[i];
		const bool fitted = n->fitted;
		for (int s = 0; s < n->type->states; s++) {
			int64_t dims[YOKE_MAX_RANK];
			int rank;
			yk_state_count(n, s, &rank, dims);
			yoke_free(n->variable[s]);
			n->variable[s] = yoke_variable(n->type->state[s], yoke_f32, rank, dims);
			if (!n->variable[s])
				return yk_error_last();
		}
		int err = fitted ? yk_node_settle(n) : 0;
		if (err)
			return err;
	}
	return 0;
}

int yk_statistics_context(const yoke_pipeline *p, yoke_context **to)
{
	const struct yoke_context *now = yk_current();
	*to = NULL;
	if (!now)
		return yk_error_last();
	const struct yk_device *d = yk_device_real(now->device);
	if (now->mode.dry || d->backend == now->cpu->backend)
		return 0;
	if (p->plan.keys.statistics == 1 && d->info.flags & YOKE_DEVICE_F64)
		return 0;
	if (p->plan.keys.statistics == 1)
		yk_warn("fit",
			"trainer.statistics=device: %s does not support f64; statistics are collected on the CPU",
			d->id);
	*to = yoke_context_new("cpu");
	return *to ? 0 : yk_error_last();
}

struct yoke_context *yk_fit_varying_begin(const struct yk_set_fields *f)
{
	struct yoke_context *ctx = yk_current_or_null();
	if (!ctx || f->extent < 0 || ctx->mode.shapes_vary)
		return NULL;
	ctx->mode.shapes_vary = true;
	return ctx;
}

void yk_fit_varying_end(struct yoke_context *ctx)
{
	if (ctx)
		ctx->mode.shapes_vary = false;
}

// ---- precision, determinism ----

void yk_fit_cast(const yoke_pipeline *p)
{
	const int precision = p->plan.keys.precision;
	if (precision != YK_FIT_F32)
		yoke_autocast(precision == YK_FIT_F16 ? yoke_f16 : yoke_bf16, NULL);
}

int yk_fit_deterministic(const yoke_pipeline *p, const char *call)
{
	static const struct {
		const char *name, *required;
	} setting[] = { { "cpu.gemm", "own" }, { "cpu.lapack", "0" } };
	for (size_t i = 0; p->plan.keys.deterministic && i < sizeof setting / sizeof *setting;
	     i++) {
		struct yk_param *s = yk_param_find(setting[i].name);
		if (s && strcmp(yk_param_str(s), setting[i].required))
			return yk_fail(
				YOKE_EINVAL,
				"%s: trainer.deterministic excludes %s=%s, whose results depend on the number of threads "
				"and the library's version; set it to %s",
				call, setting[i].name, yk_param_str(s), setting[i].required);
	}
	return 0;
}
