// SPDX-License-Identifier: Apache-2.0
// Finds the op classes of a model: runs training and generation once, and records each op for which
// an implementation is chosen.
#include "config.h"

#include "tool/tune_model.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "config/conf.h"
#include "models/generate.h"
#include "nn/windows.h"
#include "train/trained.h"
#include "train/validate.h"

// Loss and gradients of a batch that repeats one token.
static int train_once(const struct yk_network *net, const struct yk_config *c)
{
	const int64_t dims[] = { yk_config_int(c, YK_KEY_batch), net->shape.context + 1 };
	int params = net->params.count;
	yoke_tensor **grad = calloc((size_t)params, sizeof *grad), *ids;
	int e = grad ? 0 : yk_fail(YOKE_ENOMEM, "out of memory for %d gradients", params);
	yoke_scope *s = yoke_scope_begin("tune");

	ids = yoke_variable("ids", yoke_i32, 2, dims);
	if (e == 0)
		e = yoke_grad(yk_windows_loss(net, ids, yk_config_real(c, YK_KEY_dropout)), params,
			      net->params.var, grad);
	if (e == 0)
		e = yoke_eval(params, grad);
	int f = yoke_scope_end(s);
	yoke_free(ids);
	free(grad);
	return e < 0 ? e : f;
}

static int ignore(void *arg, int text, int32_t id)
{
	(void)arg;
	(void)text;
	(void)id;
	return 0;
}

// Generates two tokens after a prompt of that length: the whole prompt in one pass, then one token.
static int generate_once(const struct yk_network *net, int64_t length)
{
	const struct yk_sampling s = { .temperature = 0 };
	struct yk_tokens prompt = { 0 };
	int e = yk_tokens_reserve(&prompt, (int32_t)net->shape.vocab, (size_t)length);

	for (int64_t i = 0; i < length && e == 0; i++)
		yk_tokens_add(&prompt, 0);
	if (e == 0)
		e = yk_generate(net, &s, 1, &prompt, 2, ignore, NULL);
	yk_tokens_fini(&prompt);
	return e;
}

// The same; returns 1 if the time is over.
static int generate_until(const struct yk_network *net, int64_t length, double until)
{
	return yk_seconds() >= until ? 1 : generate_once(net, length);
}

// Prompts of 1, 8, 64, ... tokens, of a whole window, and of half a window, with which generation
// continues when the window is full.
static int generate_all(const struct yk_network *net, double until)
{
	int64_t context = net->shape.context;
	int e = generate_until(net, context / 2 ? context / 2 : 1, until);

	for (int64_t n = 1; n <= context && e == 0; n *= 8)
		e = generate_until(net, n, until);
	return e == 0 ? generate_until(net, context, until) : e;
}

static int run_model(const char *folder, struct yk_config *c, double until)
{
	struct yk_trained t;
	int e = yk_trained_open(folder, NULL, &t);

	if (e < 0)
		return e;
	e = t.pretrained ? yk_fail(YOKE_EINVAL,
				   "%s: is a pretrained model; kernels can be tuned only with a "
				   "model that yoke trained",
				   folder) :
			   yk_config_take(c, t.checkpoint.config, folder);
	if (e == 0)
		e = yk_seconds() >= until ? 1 : train_once(t.net, c);
	if (e == 0)
		e = generate_all(t.net, until);
	yk_trained_close(&t);
	return e;
}

int yk_tune_model(struct yk_device *d, const char *folder, double until,
		  struct yk_tuning_watch *w)
{
	yoke_context *ctx = yoke_context_new(d->backend->table.name), *former;
	struct yk_config c;
	int e = ctx ? yk_config_init(&c, YK_T) : yoke_error_code();

	if (e < 0) {
		yoke_context_free(ctx);
		return e;
	}
	former = yoke_use(ctx);
	*w = (struct yk_tuning_watch){ .device = d };
	yk_tuning_watch(w);
	e = run_model(folder, &c, until);
	yk_tuning_watch(NULL);
	yoke_use(former);
	yoke_context_free(ctx);
	yk_config_fini(&c);
	return e;
}
