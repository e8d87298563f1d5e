// SPDX-License-Identifier: Apache-2.0
// Creates and frees a trainer, and determines its memory needs.
#include "config.h"

#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/number.h"
#include "data/loader.h"
#include "graph/context.h"
#include "models/adapter.h"
#include "nn/stage.h"
#include "observe/memory.h"
#include "optim/optim.h"
#include "parallel/consistency.h"
#include "parallel/load_states.h"
#include "parallel/compress.h"
#include "parallel/ranks.h"
#include "parallel/stages.h"
#include "parallel/tensor.h"
#include "parallel/zero.h"
#include "train/adapted.h"
#include "train/start.h"
#include "yoke-observe.h"

// Restores the position in the data, which is meaningless for another text or another split.
static int position_take(struct yk_trainer *t, const struct yk_checkpoint *from,
			 const char *folder)
{
	int64_t windows = yk_data_train_windows(t->feed.data);
	t->feed.position.epoch = from->data.epoch;
	t->feed.position.index = from->data.index;
	t->feed.position.failed = from->data.failed;
	const char *was = json_string_value(json_object_get(from->config, "shuffle"));
	const char *order = was ? was : yk_config_rows[YK_KEY_shuffle].def;
	char what[480];
	yk_sources_differ(from->sources, yk_data_sources(t->feed.data), what, sizeof what);
	if (from->text && from->text != yk_data_fingerprint(t->feed.data)) {
		yk_warn("train",
			"%s: was trained on another text, or with another validation split%s%s; "
			"training continues at the start of the new text",
			folder, *what ? ": " : "", what);
		t->feed.position.epoch++;
		t->feed.position.index = t->feed.position.failed = 0;
	} else if (from->data.index > windows) {
		return yk_fail(YOKE_EINVAL,
			       "%s: stopped at window %lld of an epoch, but data has %lld windows; "
			       "resume with the text of the run",
			       folder, (long long)from->data.index, (long long)windows);
	} else if (from->data.index > 0 &&
		   !yk_config_is(t->replica.config, YK_KEY_shuffle, order)) {
		return yk_fail(YOKE_EINVAL,
			       "%s: stopped in the middle of an epoch with shuffle=%s; remove the "
			       "key, or train another model with another out",
			       folder, order);
	}
	return 0;
}

static int data_open(struct yk_trainer *t, const struct yk_checkpoint *from, const char *folder)
{
	const int e = yk_corpus_open(t->feed.corpus, t->replica.config, from, folder);
	if (e < 0)
		return e;
	t->feed.tokenizer = t->feed.corpus->tokenizer;
	t->feed.data = t->feed.corpus->data;
	t->feed.width = t->feed.data ? yk_data_width(t->feed.data) : t->context + 1;
	t->feed.packed = t->feed.data && yk_data_chats(t->feed.data);
	const int shaped = yk_start_shape(t->replica.config, yk_tokenizer_size(t->feed.tokenizer),
					  from, folder, &t->model, &t->shape);
	if (shaped < 0)
		return shaped;
	return from ? position_take(t, from, folder) : 0;
}

static bool recomputes(const struct yk_trainer *t)
{
	return strcmp(yk_config_str(t->replica.config, YK_KEY_recompute), "none");
}

static bool offloads(const struct yk_trainer *t)
{
	return !strcmp(yk_config_str(t->replica.config, YK_KEY_offload), "optimizer");
}

// Number of copies of the gradients that accumulation over micro-batches needs.
static double sums_of(const struct yk_trainer *t)
{
	const bool fast =
		!strcmp(yk_config_str(t->replica.config, YK_KEY_accumulate_order), "fast");
	return fast ? t->replica.batches.accumulate > 1 :
		      floor(log2((double)t->replica.batches.accumulate));
}

// The number of parameters of adapters; the frozen weights are not counted, since they may be
// mapped.
static int adapter_elements(const struct yk_trainer *t, const struct yk_model *m,
			    const struct yk_model_shape *s, int64_t *to)
{
	struct yk_lora_layer *l;
	size_t n;
	*to = 0;
	if (*yk_config_str(t->replica.config, YK_KEY_adapter)) // not read yet; small
		return 0;
	const int e = yk_adapted_layers(t->replica.config, s, &l, &n);
	if (e < 0)
		return e;
	*to = yk_lora_elements(m, s, n, l);
	free(l);
	return 0;
}

// Rejects a model that the device cannot hold before allocating any of it: a host that promises
// more memory than it has would later kill this or other processes. yk_trainer_advise determines
// what would fit.
static int check_memory(const struct yk_trainer *t, const struct yk_model *m,
			const struct yk_model_shape *s, const struct yk_stage *stage)
{
	const struct yk_model_shape here = yk_stage_shape(s, stage);
	char need[32], has[32];
	const struct yoke_context *ctx = yk_current();
	if (!ctx)
		return yoke_error_code();
	if (ctx->mode.dry) // the dry pool detects it
		return 0;
	// lower bound: weights, gradients, states and sums of all parameters, and activations
	int64_t parameters = yk_model_elements_in(stage, m, s);
	const bool adapts = yk_trains_adapters(t->replica.config);
	const int counted = adapts ? adapter_elements(t, m, s, &parameters) : 0;
	if (counted < 0)
		return counted;
	int states = offloads(t) && ctx->device != ctx->cpu ?
			     0 :
			     yk_optim_states_each(t->replica.config);
	double tokens = (double)t->batch * (double)t->context;
	const double shares = t->replica.stage > 0 ? yoke_group_size(t->replica.group) : 1,
		     sums = sums_of(t);
	if (recomputes(t))
		tokens = 0; // most activations may be recomputed
	double bytes =
		sizeof(float) / (double)t->replica.grid.tensor *
		((double)parameters * ((t->replica.stage < 3 ? 1 : 1 / shares) + states / shares +
				       (t->replica.stage < 2 ? 1 + sums : (1 + sums) / shares)) +
		 tokens * m->kept(&here));
	uint64_t max = yk_pool_could(ctx->device->pool);
	if (bytes <= (double)max)
		return 0;
	return yk_fail(YOKE_ENOMEM,
		       "%lld parameters and batches of %lld x %lld tokens need at least %s, but %s "
		       "has %s%s",
		       (long long)parameters, (long long)t->batch, (long long)t->context,
		       yk_bytes_text(need, bytes < 1e19 ? (uint64_t)bytes : UINT64_MAX),
		       ctx->device->id, yk_bytes_text(has, max),
		       max < yk_pool_capacity(ctx->device->pool) ?
			       " that other processes leave free" :
			       "");
}

static int offload(const struct yk_parameters *states)
{
	int e = 0;
	for (int i = 0; i < states->count && e == 0; i++)
		e = yoke_place(states->var[i], YOKE_ON_HOST);
	return e;
}

// Draws initial values of parameters first .. end - 1, the same on all ranks.
static int first_values(struct yk_replica *r, int first, int end)
{
	int e = yk_parameters_draw_some(&r->net->params, first, end, r->seed);
	if (e == 0 && r->group)
		e = yk_ranks_start(r, &r->net->params, first, end);
	if (e == 0 && r->tensor_parallel)
		e = yk_tensor_parallel_start(r, first, end);
	return e;
}

// Creates the network: from the checkpoint that is resumed, from init=, or with new parameters.
static int network_init(struct yk_trainer *t, const struct yk_checkpoint *from, const char *folder)
{
	const struct yk_model *m = t->model;
	struct yk_stage stage;
	int e = yk_stages_assign(&t->replica, m, &t->shape, &stage);
	if (e == 0)
		e = check_memory(t, m, &t->shape, &stage);
	if (e < 0)
		return e;
	if (from)
		return yk_trained_network(folder, from, &t->replica.grid, &stage, &t->replica.net);
	if (yk_starts_from_model(t->replica.config))
		return yk_start_network(t->replica.config, &t->shape, &t->replica.net);
	return yk_network_new_part(t->replica.grid.over_tensor, &stage, m, &t->shape,
				   &t->replica.net);
}

static json_t *describe_adapter(const struct yk_trainer *t)
{
	const struct yk_config *c = t->replica.config;
	return yk_adapter_describe(yk_config_str(c, YK_KEY_init), yk_config_str(c, YK_KEY_dtype),
				   yk_config_str(c, YK_KEY_quant), t->replica.net);
}

// Describes the adapters for the manifest; a resumed run keeps its description.
static int adapter_describe(struct yk_trainer *t, const struct yk_checkpoint *from)
{
	if (yk_current()->mode.dry) // nothing will be saved
		return 0;
	t->adapter = from ? json_incref(from->adapter) : describe_adapter(t);
	return t->adapter ? 0 : yoke_error_code();
}

static int model_init(struct yk_trainer *t, const struct yk_checkpoint *from,
		      const char *folder)
{
	const struct yk_model_shape shape = t->shape;
	const bool given = yk_starts_from_model(t->replica.config),
		   adapted = yk_trains_adapters(t->replica.config);
	char had[160] = "";
	int e = network_init(t, from, folder);
	if (e < 0)
		return e;
	if (!given && (t->replica.net->model != t->model ||
		       memcmp(&t->replica.net->shape, &shape, sizeof shape))) {
		yk_model_text(t->replica.net->model, &t->replica.net->shape, had, sizeof had);
		return yk_fail(YOKE_ESHAPE,
			       "%s: contains a model with %s; remove the keys that differ, or "
			       "train another model with another out",
			       folder, had);
	}
	t->replica.params = t->replica.kept = &t->replica.net->params;
	if (adapted && (e = adapter_describe(t, from)) < 0)
		return e;
	if (shape.experts) {
		const int64_t dims[] = { shape.layers, shape.experts };
		t->replica.net->shares = yoke_keep(yoke_variable("shares", yoke_f32, 2, dims));
		e = t->replica.net->shares ? 0 : yoke_error_code();
	}
	if (e == 0)
		e = yk_tensor_parallel_new(&t->replica);
	if (e == 0)
		e = yk_stages_new(&t->replica);
	// with zero=3 the parameters are never all complete at once
	const bool drawn =
		!given || (adapted && !*yk_config_str(t->replica.config, YK_KEY_adapter));
	if (e == 0 && !from && drawn && t->replica.stage < 3)
		e = first_values(&t->replica, 0, t->replica.net->params.count);
	if (e == 0 && !from && t->replica.stages)
		e = yk_stages_start(&t->replica);
	if (e == 0 && t->precision.scaled &&
	    !(t->replica.scaler = yk_scaler_make(t->replica.config)))
		e = yoke_error_code();
	if (e == 0)
		e = yk_compress_new(&t->replica);
	if (e == 0 && t->replica.stage > 0)
		e = yk_zero_new(&t->replica);
	if (e == 0 && t->replica.stage > 2)
		e = yk_zero_hold(&t->replica, from ? NULL : first_values);
	// with several micro-batches, norms are computed as if sharded, for the same bits
	struct yk_optim_sharding share = { 0 };
	if (e == 0 && t->replica.zero)
		share = *yk_zero_sharding(t->replica.zero);
	if (e == 0 && t->replica.tensor_parallel)
		yk_tensor_parallel_sharding(&t->replica, &share);
	if (e == 0 && t->replica.stages)
		yk_stages_sharding(&t->replica, &share);
	if (e == 0)
		e = yk_optim_new(t->replica.config,
				 t->replica.stage > 2 ? yk_zero_held(t->replica.zero) :
							&t->replica.net->params,
				 t->replica.zero || t->replica.tensor_parallel ||
						 t->replica.stages || t->replica.batches.count > 1 ?
					 &share :
					 NULL,
				 &t->replica.optim);
	if (e == 0 && offloads(t))
		e = offload(yk_optim_states(t->replica.optim));
	return e < 0 || !from ? e : yk_trainer_go_on(t, folder, from);
}

int yk_trainer_go_on(struct yk_trainer *t, const char *folder, const struct yk_checkpoint *from)
{
	t->replica.step = from->step;
	t->random_step = from->random_step;
	t->skipped = from->skipped;
	const int best = yk_best_parse(from->best, folder, &t->best);
	if (best < 0)
		return best;
	const int e = yk_scaler_parse(from->scaler, folder, t->replica.scaler);
	if (e < 0)
		return e;
	return yk_load_states(&t->replica, folder, from);
}

int yk_trainer_buffers(struct yk_trainer *t)
{
	const int64_t two = 2;
	t->record = yoke_keep(yoke_variable("record", yoke_f32, 1, &two));
	if (!t->record)
		return yoke_error_code();
	t->replica.grad = calloc((size_t)t->replica.params->count + 1, sizeof *t->replica.grad);
	return t->replica.grad ? 0 : yk_fail(YOKE_ENOMEM, "trainer: out of memory");
}

static int buffers_init(struct yk_trainer *t)
{
	int e = yk_trainer_buffers(t);
	if (e < 0)
		return e;
	t->feed.ids = calloc((size_t)t->replica.batches.accumulate, sizeof *t->feed.ids);
	t->feed.zeros = calloc((size_t)t->batch, (size_t)t->feed.width * sizeof *t->feed.zeros);
	if (!t->feed.ids || !t->feed.zeros)
		return yk_fail(YOKE_ENOMEM,
			       "batch=%lld: out of host memory for windows of %lld tokens",
			       (long long)t->batch, (long long)t->context);
	return yk_trainer_sums(t, t->replica.batches.accumulate);
}

yoke_tensor *yk_trainer_zeros(const struct yk_trainer *t, int64_t rows)
{
	return yoke_from(yoke_i32, 2, (int64_t[]){ rows, t->feed.width }, t->feed.zeros);
}

// Scopes become known when a pass is recorded. Records one without running it, so that a keep_f32
// pattern that matches no scope is rejected before the first step.
static int check_kept(struct yk_trainer *t)
{
	if (!t->precision.keep)
		return 0;
	yoke_scope *s = yoke_scope_begin("step");
	yk_precision_begin(&t->precision);
	yk_zero_enter(&t->replica);
	yk_stage_alone(t->replica.net, yk_trainer_zeros(t, t->batch), t->dropout);
	yk_zero_leave(&t->replica);
	return yoke_scope_end(s);
}

double yk_trainer_pass(const struct yk_trainer *t)
{
	return t->feed.data ? (double)yk_data_train_windows(t->feed.data) /
				      ((double)t->batch * (double)t->replica.batches.count) :
			      0;
}

// Number of windows per validation. A training step costs three forward passes, so 3 * VALID_SHARE
// of the windows trained on take VALID_SHARE of the time. Complete batches share one plan.
#define VALID_SHARE 0.05
static int64_t validation_windows(const struct yk_trainer *t)
{
	int64_t all = t->feed.data ? yk_data_valid_windows(t->feed.data) : t->batch, every, tokens,
		n;
	double trained = (double)t->steps * (double)t->batch * (double)t->replica.batches.count,
	       times = 1;
	tokens = yk_config_int(t->replica.config, YK_KEY_eval_tokens);
	every = yk_config_every(t->replica.config, YK_KEY_eval_every, yk_trainer_pass(t));
	n = tokens / t->context + (tokens % t->context > 0);
	if (tokens != YK_AUTO)
		return tokens > 0 && n < all ? n : all;
	if (every > 0 && t->steps > every)
		times = ceil((double)t->steps / (double)every);
	double max = 3 * VALID_SHARE * trained / times;
	n = max < (double)all ? (int64_t)max : all;
	if (n > t->batch && n < all)
		n -= n % t->batch;
	return n > 0 || all == 0 ? n : 1;
}

// Frees everything but data and tokenizer.
void yk_trainer_unmake(struct yk_trainer *t)
{
	yk_trainer_unfeed(t);
	free(t->feed.ids);
	free(t->feed.zeros);
	free(t->replica.grad);
	yk_sums_fini(&t->replica.sums);
	yoke_free(t->record);
	yk_optim_free(t->replica.optim);
	yk_zero_free(t->replica.zero);
	yk_tensor_parallel_free(t->replica.tensor_parallel);
	yk_stages_free(t->replica.stages);
	yk_compress_free(t->replica.compress);
	yoke_scaler_free(t->replica.scaler);
	yk_network_free(t->replica.net);
	json_decref(t->adapter);
	yk_ranks_leave(&t->replica);
	t->feed.zeros = NULL;
	t->replica.grad = NULL;
	t->feed.ids = NULL;
	t->record = NULL;
	t->replica.optim = NULL;
	t->replica.zero = NULL;
	t->replica.tensor_parallel = NULL;
	t->replica.stages = NULL;
	t->replica.compress = NULL;
	t->replica.scaler = NULL;
	t->replica.net = NULL;
	t->adapter = NULL;
}

int yk_trainer_make(struct yk_trainer *t, int64_t batch, const struct yk_checkpoint *from,
		    const char *folder)
{
	double epochs = yk_config_real(t->replica.config, YK_KEY_epochs);
	t->batch = t->micro = batch;
	t->steps = yk_config_int(t->replica.config, YK_KEY_steps);
	if (epochs > 0 && t->feed.data)
		t->steps = (int64_t)ceil(epochs * (double)yk_data_train_windows(t->feed.data) /
					 ((double)batch * (double)t->replica.batches.count));
	t->schedule = yk_optim_schedule_of(t->replica.config, t->steps);
	t->valid_windows = validation_windows(t);
	int e = yk_ranks_join(&t->replica);
	if (e == 0)
		e = yk_precision_of(t->replica.config, &t->precision);
	if (e == 0)
		e = model_init(t, from, folder);
	if (e == 0 && t->replica.grid.all)
		e = yk_ranks_check_setup(&t->replica, t->feed.data);
	if (e == 0)
		e = buffers_init(t);
	return e == 0 ? check_kept(t) : e;
}

static void config_read(struct yk_trainer *t, const struct yk_config *c)
{
	t->replica.config = c;
	t->feed.position.size = sizeof t->feed.position;
	t->context = yk_config_int(c, YK_KEY_context);
	const int64_t data = yk_grid_data(c), given = yk_config_int(c, YK_KEY_micro_batches);
	t->replica.batches.count =
		given == YK_AUTO ? data * yk_config_int(c, YK_KEY_accumulate) : given;
	// yk_config_check has verified that it divides
	t->replica.batches.accumulate = t->replica.batches.count / data;
	t->replica.batches.stride = 1;
	t->dropout = yk_config_real(c, YK_KEY_dropout);
	t->replica.seed = (uint64_t)yk_config_int(c, YK_KEY_seed);
}

static struct yk_trainer *trainer_of(const struct yk_config *c, struct yk_corpus *shared)
{
	struct yk_trainer *t = calloc(1, sizeof *t);
	if (!t) {
		yk_fail(YOKE_ENOMEM, "trainer: out of memory");
		return NULL;
	}
	config_read(t, c);
	t->best = YK_BEST_NONE;
	t->feed.corpus = shared ? yk_corpus_ref(shared) : yk_corpus_new();
	if (t->feed.corpus)
		return t;
	free(t);
	return NULL;
}

int yk_trainer_alloc(const struct yk_config *c, struct yk_corpus *shared, const char *folder,
		     const struct yk_checkpoint *from, struct yk_trainer **to)
{
	struct yk_trainer *t = trainer_of(c, shared);
	if (!t)
		return yoke_error_code();
	if (from)
		t->replica.seed = from->seed;
	const int e = data_open(t, from, folder);
	if (e < 0)
		yk_trainer_free(t);
	else
		*to = t;
	return e;
}

int yk_trainer_plan(const struct yk_config *c, struct yk_trainer **to)
{
	return yk_trainer_alloc(c, NULL, NULL, NULL, to);
}

void yk_trainer_free(struct yk_trainer *t)
{
	if (!t)
		return;
	yk_trainer_unmake(t);
	yk_corpus_free(t->feed.corpus);
	free(t);
}

// ---- memory rehearsal ----

enum { REHEARSED = 3 }; // number of steps: the first has its own plan

int yk_trainer_validate_any(struct yk_trainer *t)
{
	const int64_t rows = t->valid_windows < t->batch ? t->valid_windows : t->batch;
	double loss;
	return rows > 0 ? yk_windows_judge(t->replica.net, yk_zero_gathered(&t->replica), rows,
					   t->feed.width, t->feed.zeros, &loss) :
			  0;
}

int yk_trainer_dry_run_stage(const struct yk_trainer *like, int64_t stage, int64_t batch)
{
	struct yk_trainer t = *like; // without a model
	t.replica.grid.s = stage;
	int e = yk_trainer_make(&t, batch, NULL, NULL);
	t.feed.data = NULL; // any tokens
	for (int i = 0; i < REHEARSED && e == 0; i++)
		e = yk_trainer_step(&t);
	if (e == 0)
		e = yk_trainer_validate_any(&t);
	yk_trainer_unmake(&t);
	return e;
}

int yk_trainer_dry_run(void *arg, int64_t batch)
{
	const struct yk_trainer *t = arg;
	int e = 0;
	for (int64_t s = 0; s < yk_config_int(t->replica.config, YK_KEY_stages) && e == 0; s++)
		e = yk_trainer_dry_run_stage(t, s, batch);
	return e;
}
