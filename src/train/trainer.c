// SPDX-License-Identifier: Apache-2.0
// The trainer.
#include "config.h"

#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "data/loader.h"
#include "graph/context.h"
#include "observe/memory.h"
#include "optim/optim.h"
#include "train/advise.h"
#include "train/batch.h"
#include "train/ranks.h"
#include "yoke-observe.h"

// ---- building ----

// What a checkpoint has for good may be given again, but not as something else.
static int same_kind(const struct yk_trainer *t, const struct yk_checkpoint *from,
		     const char *folder)
{
	const char *name = yk_tokenizer_name(t->tokenizer);
	int64_t seed = yk_config_int(t->config, YK_KEY_seed);
	if (strcmp(yk_config_str(t->config, YK_KEY_tokenizer), name))
		return yk_fail(YOKE_EINVAL,
			       "%s: holds a model of tokenizer=%s; drop the key, or "
			       "train another one with another out",
			       folder, name);
	if ((uint64_t)seed != from->seed)
		return yk_fail(YOKE_EINVAL,
			       "%s: was begun with seed=%llu; drop the key, or train "
			       "another one with another out",
			       folder, (unsigned long long)from->seed);
	return 0;
}

// Where to go on in the text.  A place in another text, or another split of it, means
// nothing.
static int position_take(struct yk_trainer *t, const struct yk_checkpoint *from,
			 const char *folder)
{
	int64_t windows = yk_data_train_windows(t->data);
	t->position.epoch = from->data.epoch;
	t->position.index = from->data.index;
	char what[480];
	const int e = yk_data_verify(t->data, from->sources);
	if (e < 0)
		return e;
	yk_sources_differ(from->sources, yk_data_sources(t->data), what, sizeof what);
	const char *order = json_string_value(json_object_get(from->config, "shuffle"));
	const char *wanted = yk_config_str(t->config, YK_KEY_shuffle);
	if (from->text && from->text != yk_data_fingerprint(t->data)) {
		yk_warn("train",
			"%s: was trained on another text, or with another share of it "
			"for "
			"validation%s%s; goes on at the start of this one",
			folder, *what ? ": " : "", what);
		t->position.epoch++;
		t->position.index = 0;
	} else if (from->data.index > windows) {
		return yk_fail(YOKE_EINVAL,
			       "%s: was at window %lld of an epoch, but data has "
			       "%lld; resume with the text it was trained on",
			       folder, (long long)from->data.index, (long long)windows);
	}
	return 0;
}

// Of text that is read now, as the keys say; of tokens that others made, theirs.
static struct yk_tokenizer *tokenizer_new(const struct yk_config *c, const struct yk_data_spec *spec)
{
	const char *paths = yk_config_str(c, YK_KEY_data), *name = yk_config_str(c, YK_KEY_tokenizer);
	const bool ids = !strcmp(name, "ids"), prepared = *paths && yk_data_prepared(paths, spec);
	if (!prepared && (ids || strcmp(name, "word")) && (spec->vocab > 0) != ids) {
		yk_fail(YOKE_EINVAL, ids ? "tokenizer=ids: the text does not say how many different tokens there are; give "
			"vocab=" : "vocab=: of text that is tokenized here it follows from tokenizer=%s; it bounds that of "
			"tokenizer=word", name);
		return NULL;
	}
	if (!prepared)
		return ids ? yk_tokenizer_ids(spec->vocab, "vocab") : yk_tokenizer_new(name);
	struct yk_tokenizer *t = yk_data_tokenizer(paths, spec);
	if (t && yk_config_asked(c, YK_KEY_tokenizer) && strcmp(name, yk_tokenizer_name(t))) {
		yk_fail(YOKE_EINVAL, "%s: holds tokens of tokenizer=%s, not %s; drop the key, or prepare the text again", paths,
			yk_tokenizer_name(t), name);
		yk_tokenizer_free(t);
		return NULL;
	}
	return t;
}

// Of a pipe nobody knows how long an epoch is.
static int check_pipe(const struct yk_config *c)
{
	static const enum yk_config_key passes[] = { YK_KEY_epochs, YK_KEY_eval_every, YK_KEY_save_every };
	for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
		if (yk_config_real(c, passes[i]) > 0)
			return yk_fail(YOKE_EINVAL, "%s=%s: a pipe has no end that is known; give steps",
				       yk_config_rows[passes[i]].name, yk_config_str(c, passes[i]));
	if (yk_config_int(c, YK_KEY_shuffle) == 1)
		return yk_fail(YOKE_EINVAL, "shuffle=1: the windows of a pipe come in its order; give shuffle=0, or the windows "
			       "of a block that are mixed, as shuffle=1000");
	return 0;
}

static int data_open(struct yk_trainer *t, const struct yk_checkpoint *from,
		     const char *folder)
{
	const struct yk_config *c = t->config;
	int e;
	const struct yk_data_spec spec = yk_config_data(c, t->context);
	t->tokenizer = from ? yk_tokenizer_load(from->tokenizer, folder) : tokenizer_new(c, &spec);
	if (!t->tokenizer)
		return yoke_error_code();
	if (from && (e = same_kind(t, from, folder)) < 0)
		return e;
	t->data = yk_data_new(yk_config_str(c, YK_KEY_data), t->tokenizer, &spec);
	if (!t->data)
		return yoke_error_code();
	e = yk_data_endless(t->data) ? check_pipe(c) : 0;
	return e == 0 && from ? position_take(t, from, folder) : e;
}

static bool recomputes(const struct yk_trainer *t)
{
	return strcmp(yk_config_str(t->config, YK_KEY_recompute), "none");
}

static bool offloads(const struct yk_trainer *t)
{
	return !strcmp(yk_config_str(t->config, YK_KEY_offload), "optimizer");
}

// Refuses what the device cannot hold before a part of it is taken: a host that gives out
// more memory than it has would kill us, or others, later.  What would fit is said by yk_trainer_advise.
static int check_memory(const struct yk_trainer *t, const struct yk_model *m,
			const struct yk_model_shape *s)
{
	char need[32], has[32];
	const struct yoke_context *ctx = yk_current();
	if (!ctx)
		return yoke_error_code();
	if (ctx->dry) // its pool will say
		return 0;
	// at least: weights, gradients, states and sums of every parameter; what tokens leave
	int64_t parameters = yk_model_elements(m, s);
	int states = offloads(t) && ctx->device != ctx->cpu ? 0 : yk_optim_states_each(t->config);
	double tokens = (double)t->batch * (double)t->context;
	if (recomputes(t))
		tokens = 0; // of what they leave little may be kept
	double bytes = sizeof(float) * ((double)parameters * (2 + states + floor(log2((double)t->accumulate))) +
					tokens * m->kept(s));
	uint64_t most = yk_pool_could(ctx->device->pool);
	if (bytes <= (double)most)
		return 0;
	return yk_fail(
		YOKE_ENOMEM,
		"%lld parameters and batches of %lld x %lld tokens take %s at "
		"least, %s has %s%s",
		(long long)parameters, (long long)t->batch, (long long)t->context,
		yk_bytes_text(need, bytes < 1e19 ? (uint64_t)bytes : UINT64_MAX),
		ctx->device->id, yk_bytes_text(has, most),
		most < yk_pool_most(ctx->device->pool) ? " that nothing else uses" : "");
}

static int offload(const struct yk_parameters *states)
{
	int e = 0;
	for (int i = 0; i < states->count && e == 0; i++)
		e = yoke_place(states->var[i], YOKE_ON_HOST);
	return e;
}

static int model_init(struct yk_trainer *t, const struct yk_checkpoint *from,
		      const char *folder)
{
	struct yk_model_shape shape;
	const struct yk_model *m = yk_config_model(t->config, yk_tokenizer_size(t->tokenizer), &shape);
	char had[160] = "";
	int e = check_memory(t, m, &shape);
	if (e == 0)
		e = from ? yk_trained_network(folder, from, &t->net) :
			   yk_network_new(m, &shape, &t->net);
	if (e < 0)
		return e;
	if (t->net->model != m || memcmp(&t->net->shape, &shape, sizeof shape)) {
		yk_model_text(t->net->model, &t->net->shape, had, sizeof had);
		return yk_fail(YOKE_ESHAPE, "%s: holds a model of %s; drop the keys that differ, or "
			       "train another one with another out", folder, had);
	}
	if (shape.experts) {
		const int64_t dims[] = { shape.layers, shape.experts };
		t->net->shares = yoke_keep(yoke_variable("shares", yoke_f32, 2, dims));
		e = t->net->shares ? 0 : yoke_error_code();
	}
	if (e == 0 && !from)
		e = yk_parameters_draw(&t->net->params, t->seed);
	if (e == 0 && !from && t->group)
		e = yk_ranks_start(t);
	if (e == 0 && t->precision.scaled && !(t->scaler = yk_scaler_make(t->config)))
		e = yoke_error_code();
	if (e == 0)
		e = yk_optim_new(t->config, &t->net->params, &t->optim);
	if (e == 0 && offloads(t))
		e = offload(yk_optim_states(t->optim));
	if (e < 0 || !from)
		return e;
	t->step = from->step;
	t->random_step = from->random_step;
	t->skipped = from->skipped;
	if ((e = yk_scaler_parse(from->scaler, folder, t->scaler)) < 0)
		return e;
	return yk_trained_load(folder, from, YK_CHECKPOINT_OPTIMIZER, yk_optim_states(t->optim));
}

static int buffers_init(struct yk_trainer *t)
{
	const struct yk_parameters *ps = &t->net->params;
	const int64_t two = 2;
	t->record = yoke_keep(yoke_variable("record", yoke_f32, 1, &two));
	if (!t->record)
		return yoke_error_code();
	t->grad = calloc((size_t)ps->count, sizeof *t->grad);
	if (!t->grad)
		return yk_fail(YOKE_ENOMEM, "trainer: no memory");
	t->ids = calloc((size_t)t->parts, sizeof *t->ids);
	t->zeros = calloc((size_t)t->batch, (size_t)(t->context + 1) * sizeof *t->zeros);
	if (!t->ids || !t->zeros)
		return yk_fail(YOKE_ENOMEM, "batch=%lld: no host memory for windows of %lld tokens",
			       (long long)t->batch, (long long)t->context);
	return yk_sums_init(&t->sums, ps, t->accumulate);
}

yoke_tensor *yk_trainer_zeros(const struct yk_trainer *t, int64_t rows)
{
	return yoke_from(yoke_i32, 2, (int64_t[]){ rows, t->context + 1 }, t->zeros);
}

// Which scopes there are is known when a pass is recorded: of one that is not run, so that a pattern which
// names none is refused before the first step.
static int check_kept(const struct yk_trainer *t)
{
	if (!t->precision.keep)
		return 0;
	yoke_scope *s = yoke_scope_begin("step");
	yk_precision_begin(&t->precision);
	yk_windows_loss(t->net, yk_trainer_zeros(t, t->batch), t->dropout);
	return yoke_scope_end(s);
}

double yk_trainer_pass(const struct yk_trainer *t)
{
	return t->data ? (double)yk_data_train_windows(t->data) / ((double)t->batch * (double)t->parts) : 0;
}

// Windows of one validation.  A step is a pass forward and one back that costs twice that, so this
// share of the windows trained on takes VALID_SHARE of the time; whole batches have one plan.
#define VALID_SHARE 0.05
static int64_t validation_windows(const struct yk_trainer *t)
{
	int64_t all = t->data ? yk_data_valid_windows(t->data) : t->batch, every, tokens, n;
	double trained = (double)t->steps * (double)t->batch * (double)t->parts, times = 1;
	tokens = yk_config_int(t->config, YK_KEY_eval_tokens);
	every = yk_config_every(t->config, YK_KEY_eval_every, yk_trainer_pass(t));
	n = tokens / t->context + (tokens % t->context > 0);
	if (tokens != YK_AUTO)
		return tokens > 0 && n < all ? n : all;
	if (every > 0 && t->steps > every)
		times = ceil((double)t->steps / (double)every);
	double most = 3 * VALID_SHARE * trained / times;
	n = most < (double)all ? (int64_t)most : all;
	if (n > t->batch && n < all)
		n -= n % t->batch;
	return n > 0 || all == 0 ? n : 1;
}

static void drop_fed(struct yk_trainer *t)
{
	for (int64_t k = 0; t->ids && k < t->parts; k++) {
		yoke_free(t->ids[k]);
		t->ids[k] = NULL;
	}
	t->fed = false;
}

static void drop_loader(struct yk_trainer *t)
{
	drop_fed(t);
	yoke_loader_free(t->loader);
	t->loader = NULL;
}

// All but text and tokenizer.
void yk_trainer_unmake(struct yk_trainer *t)
{
	drop_loader(t);
	free(t->ids);
	free(t->zeros);
	free(t->grad);
	yk_sums_fini(&t->sums);
	yoke_free(t->record);
	yk_ranks_leave(t);
	yk_optim_free(t->optim);
	yoke_scaler_free(t->scaler);
	yk_network_free(t->net);
	t->zeros = NULL;
	t->grad = NULL;
	t->ids = NULL;
	t->record = NULL;
	t->optim = NULL;
	t->scaler = NULL;
	t->net = NULL;
}

int yk_trainer_make(struct yk_trainer *t, int64_t batch, const struct yk_checkpoint *from,
		    const char *folder)
{
	double epochs = yk_config_real(t->config, YK_KEY_epochs);
	t->batch = t->micro = batch;
	t->steps = yk_config_int(t->config, YK_KEY_steps);
	if (epochs > 0 && t->data)
		t->steps = (int64_t)ceil(epochs * (double)yk_data_train_windows(t->data) /
					 ((double)batch * (double)t->parts));
	t->schedule = yk_optim_schedule_of(t->config, t->steps);
	t->valid_windows = validation_windows(t);
	int e = yk_ranks_join(t);
	if (e == 0)
		e = yk_precision_of(t->config, &t->precision);
	if (e == 0)
		e = model_init(t, from, folder);
	if (e == 0)
		e = buffers_init(t);
	return e == 0 ? check_kept(t) : e;
}

static void config_read(struct yk_trainer *t, const struct yk_config *c)
{
	t->config = c;
	t->position.size = sizeof t->position;
	t->context = yk_config_int(c, YK_KEY_context);
	const int64_t ranks = yk_config_int(c, YK_KEY_ranks), given = yk_config_int(c, YK_KEY_parts);
	t->parts = given == YK_AUTO ? ranks * yk_config_int(c, YK_KEY_accumulate) : given;
	t->accumulate = t->parts / ranks; // yk_config_check saw that it is whole
	t->dropout = yk_config_real(c, YK_KEY_dropout);
	t->seed = (uint64_t)yk_config_int(c, YK_KEY_seed);
}

// What the data say of themselves is what the keys are.
static int take_words(struct yk_config *c, const struct yk_trainer *t)
{
	const double share = yk_data_share(t->data);
	char text[32];
	int e = yk_config_settle_text(c, YK_KEY_tokenizer, yk_tokenizer_name(t->tokenizer));
	if (e < 0 || share == yk_config_real(c, YK_KEY_valid))
		return e;
	for (int digits = 15; digits < 18; digits++) { // as few as give the number back
		snprintf(text, sizeof text, "%.*g", digits, share);
		if (strtod(text, NULL) == share)
			break;
	}
	return yk_config_settle_text(c, YK_KEY_valid, text);
}

int yk_trainer_new(struct yk_config *c, const char *folder, const struct yk_checkpoint *from,
		   struct yk_trainer **to)
{
	struct yk_trainer *t = calloc(1, sizeof *t);
	if (!t)
		return yk_fail(YOKE_ENOMEM, "trainer: no memory");
	config_read(t, c);
	if (from)
		t->seed = from->seed;
	int e = data_open(t, from, folder);
	if (e == 0)
		e = take_words(c, t);
	if (e == 0 && yk_config_int(c, YK_KEY_batch) == YK_AUTO)
		e = yk_batch_choose(t, c);
	if (e == 0)
		e = yk_trainer_make(t, yk_config_int(c, YK_KEY_batch), from, folder);
	if (e < 0) {
		if (e == YOKE_ENOMEM && t->batch)
			e = yk_trainer_advise(t);
		yk_trainer_free(t);
		return e;
	}
	*to = t;
	return 0;
}

int yk_trainer_plan(const struct yk_config *c, struct yk_trainer **to)
{
	struct yk_trainer *t = calloc(1, sizeof *t);
	if (!t)
		return yk_fail(YOKE_ENOMEM, "trainer: no memory");
	config_read(t, c);
	int e = 0;
	if (*yk_config_str(c, YK_KEY_data))
		e = data_open(t, NULL, NULL);
	else if (!(t->tokenizer = tokenizer_new(c, &(struct yk_data_spec){ .vocab = yk_config_int(c, YK_KEY_vocab) })))
		e = yoke_error_code();
	if (e < 0)
		yk_trainer_free(t);
	else
		*to = t;
	return e;
}

void yk_trainer_free(struct yk_trainer *t)
{
	if (!t)
		return;
	yk_trainer_unmake(t);
	yk_data_free(t->data);
	yk_tokenizer_free(t->tokenizer);
	free(t);
}

// ---- a step ----

// What became of the last step that was launched: the next one's scale, rate and corrections depend on it.
static int look_back(struct yk_trainer *t)
{
	const struct yoke_context *ctx = yk_current();
	if (!t->checked || (ctx && ctx->dry)) // where values mean nothing
		return 0;
	int got = yoke_scaler_update(t->scaler);
	if (got >= 0) {
		t->checked = false;
		t->overflowed = got == YOKE_SKIPPED;
		t->skipped += t->overflowed;
	}
	return got < 0 ? got : 0;
}

// ---- windows ----

static int read_nothing(void *arg, int64_t n, struct yoke_item *const *s)
{
	(void)arg, (void)n, (void)s;
	return YOKE_EUNSUPPORTED;
}

// What a rehearsal has in place of data: it is never read.
static yoke_dataset *no_windows(const struct yk_trainer *t)
{
	const struct yoke_field ids = { .size = sizeof ids, .name = "ids", .dtype = yoke_i32, .rank = 1,
					.dims = { t->context + 1 } };
	return yoke_dataset_new(&(struct yoke_dataset_options){
		.size = sizeof(struct yoke_dataset_options), .name = "rehearsal", .count = 1, .fields = 1, .field = &ids,
		.read = read_nothing });
}

static int loader_open(struct yk_trainer *t)
{
	const struct yk_config *c = t->config;
	char settings[256];
	const int64_t shuffle = yk_config_int(c, YK_KEY_shuffle), order = !t->data || !yk_data_endless(t->data);
	snprintf(settings, sizeof settings, "batch=%lld split=%lld held=1 workers=%s prefetch=%lld on_error=%s seed=%lld "
		 "shuffle=%lld",
		 (long long)(t->parts * t->batch), (long long)t->parts,
		 yk_config_str(c, YK_KEY_workers), (long long)yk_config_int(c, YK_KEY_prefetch),
		 yk_config_str(c, YK_KEY_on_error), (long long)t->seed,
		 (long long)(shuffle == YK_AUTO ? order : shuffle));
	yoke_dataset *set = t->data ? yk_data_set(t->data) : no_windows(t);
	t->loader = set ? yoke_loader_new(set, settings) : NULL;
	yoke_dataset_free(set);
	if (!t->loader)
		return yoke_error_code();
	if (t->watched)
		yk_loader_watch(t->loader, t->watched);
	yoke_loader_errors(t->loader, t->heard, t->heard_arg);
	return t->data ? yoke_loader_seek(t->loader, &t->position) : 0;
}

int yk_trainer_feed(struct yk_trainer *t)
{
	if (t->fed)
		return 0;
	int e = t->loader ? 0 : loader_open(t);
	if (e < 0)
		return e;
	const int64_t rows = yoke_loader_next(t->loader, (int)t->parts, t->ids, NULL);
	t->starved = yk_loader_failed(t->loader);
	if (rows < 0)
		drop_fed(t);
	t->fed = rows > 0;
	return rows < 0 ? (int)rows : 0;
}

const int32_t *yk_trainer_windows(const struct yk_trainer *t, int64_t k)
{
	return yk_loader_current(t->loader, 0, k);
}

void yk_trainer_seek(struct yk_trainer *t, const struct yoke_position *at)
{
	drop_loader(t);
	t->position = *at;
}

struct yoke_loader_stats yk_trainer_data(const struct yk_trainer *t)
{
	struct yoke_loader_stats s = { .size = sizeof s };
	if (t->loader)
		yoke_loader_stats(t->loader, &s);
	return s;
}

// ---- micro-batches ----

// One of a step: each of a batch has t->micro windows or what is left of it.
struct micro {
	int64_t number;
	int64_t first, rows; // of the step's windows
};

static int64_t parts_of(const struct yk_trainer *t)
{
	return (t->batch + t->micro - 1) / t->micro;
}

static int64_t micro_count(const struct yk_trainer *t)
{
	return parts_of(t) * t->accumulate;
}

static struct micro micro_of(const struct yk_trainer *t, int64_t number)
{
	const int64_t parts = parts_of(t), at = number % parts * t->micro, left = t->batch - at;
	return (struct micro){ number, (t->first + number / parts) * t->batch + at, left < t->micro ? left : t->micro };
}

// Of a whole batch as it came; else a copy of its windows.
static yoke_tensor *micro_ids(const struct yk_trainer *t, const struct micro *m)
{
	const int64_t part = m->first / t->batch;
	if (m->rows == t->batch)
		return t->ids[part];
	return yoke_from(yoke_i32, 2, (int64_t[]){ m->rows, t->context + 1 },
			 yk_trainer_windows(t, part) + m->first % t->batch * (t->context + 1));
}

// Its share of the mean over the step's windows.
static yoke_tensor *micro_share(const struct yk_trainer *t, const struct micro *m, yoke_tensor *loss)
{
	if (parts_of(t) * t->parts == 1)
		return loss;
	return yoke_mul(loss, yoke_const((double)m->rows / ((double)t->batch * (double)t->parts)));
}

// The loss of the step's windows by the parameters as they are while its last micro-batch is recorded.
static yoke_tensor *loss_now(void *arg)
{
	const struct yk_trainer *t = arg;
	const int64_t n = micro_count(t);
	yoke_tensor *sum[YK_SUMS_MOST];
	if (parts_of(t) * t->parts == 1)
		return yk_windows_loss(t->net, t->part, t->dropout);
	for (int64_t k = 0; k < n; k++) {
		const struct micro m = micro_of(t, k);
		int held, joined = yk_sums_joined(k, n, &held);
		yoke_tensor *loss = yk_windows_loss(t->net, micro_ids(t, &m), t->dropout);
		loss = micro_share(t, &m, loss);
		for (; joined > 0; joined--)
			loss = yoke_add(sum[--held], loss);
		sum[held] = loss;
	}
	return t->group ? yoke_all_reduce(t->group, YOKE_REDUCE_SUM, sum[0]) : sum[0];
}

// Records a micro-batch: its share of the mean loss and of the gradients is added to what is there; the last one
// updates the parameters.
static void micro_record(struct yk_trainer *t, const struct micro *m)
{
	const struct yk_parameters *ps = &t->net->params;
	const int64_t k = m->number, n = micro_count(t);
	yk_precision_begin(&t->precision);
	t->part = micro_ids(t, m);
	yoke_tensor *loss = micro_share(t, m, yk_windows_loss(t->net, t->part, t->dropout)), *norm;
	yoke_tensor *scaled = t->scaler ? yoke_scaler_scale(t->scaler, loss) : loss;
	yoke_range_push("backward");
	int e = yoke_grad(scaled, ps->count, ps->var, t->grad);
	yoke_range_pop();
	if (e < 0 || (k == 0 && look_back(t) < 0))
		return;
	yk_sums_add(&t->sums, k, n, ps->count, t->grad, &loss);
	if (k < n - 1 || (t->group && yk_ranks_reduce(t, &loss) < 0))
		return;
	int64_t now = yk_trainer_stepped(t) + 1;
	t->lr = yk_schedule_lr(&t->schedule, now);
	yoke_range_push("optimizer");
	e = yk_optim_step(t->optim, t->scaler, now, t->lr, t->grad, loss_now, t, &norm);
	yoke_range_pop();
	if (e < 0)
		return;
	const int64_t one = 1;
	yoke_tensor *both[] = { yoke_reshape(loss, 1, &one),
				yoke_reshape(norm, 1, &one) };
	yoke_assign(t->record, yoke_concat(2, both, 0));
}

// Weights are cast by the first micro-batch for all of a step.
static void hold_casts(const struct yk_trainer *t, const struct micro *m)
{
	struct yoke_context *ctx = yk_current();
	if (!ctx || !t->precision.half)
		return;
	if (m->number == micro_count(t) - 1)
		yk_autocast_release(ctx);
	else if (m->number == 0 && !yoke_error_code())
		yk_autocast_hold(ctx);
}

static int micro_step(struct yk_trainer *t, const struct micro *m)
{
	yoke_scope *s = yoke_scope_begin("step");
	yoke_random_set(t->seed, t->random_step + t->first * parts_of(t) + m->number);
	micro_record(t, m);
	hold_casts(t, m);
	if (!yoke_error_code())
		yoke_eval(0, NULL);
	int e = yoke_scope_end(s);
	struct yoke_context *ctx = yk_current();
	if (ctx && ctx->casts.n) // what is held keeps the graph, which would keep the old versions of what it assigned
		yk_history_collect(ctx);
	return e;
}

// All micro-batches of the next step.
static int try_step(struct yk_trainer *t)
{
	const int64_t n = micro_count(t);
	int e = yk_sums_init(&t->sums, &t->net->params, n);
	yoke_range_push("data");
	if (e == 0)
		e = yk_trainer_feed(t);
	yoke_range_pop();
	for (int64_t k = 0; k < n && e == 0; k++) {
		const struct micro m = micro_of(t, k);
		e = micro_step(t, &m);
	}
	if (e < 0) {
		if (yk_current())
			yk_autocast_release(yk_current());
		return e;
	}
	yoke_loader_position(t->loader, &t->position);
	drop_fed(t);
	t->random_step += t->parts * parts_of(t);
	t->step++;
	t->checked = t->scaler;
	return t->group ? yk_ranks_hear(t) : 0;
}

// A step that there was no memory for is made again in halves, of which each window is a part once; but not
// what did not fit from the beginning: of that the user should know.
static bool may_halve(const struct yk_trainer *t)
{
	const struct yoke_context *ctx = yk_current();
	return t->micro > 1 && ctx && !ctx->dry && !t->group && (t->stepped || *t->batch_why);
}

int yk_trainer_step(struct yk_trainer *t)
{
	int e;
	while ((e = try_step(t)) == YOKE_ENOMEM && may_halve(t)) {
		t->micro = (t->micro + 1) / 2;
		yk_warn("train", "step %lld: %s; it is made again, and those behind it, in parts of %lld windows",
			(long long)t->step + 1, yoke_error(), (long long)t->micro);
		yoke_error_clear();
		yk_assign_undo(yk_current());
	}
	t->stepped |= e == 0;
	return e;
}

int yk_trainer_record(struct yk_trainer *t, struct yk_record *to)
{
	float v[2];
	int e = look_back(t);
	if (e == 0)
		e = yoke_read(t->record, v, sizeof v);
	if (e < 0)
		return e;
	if ((!isfinite(v[0]) || !isfinite(v[1])) && !t->overflowed) {
		const char *bad = yk_optim_bad(t->optim->rule);
		return yk_fail(YOKE_ERANGE,
			       "step %lld: loss %g, gradient norm %g%s%s; use a smaller "
			       "lr, more warmup, or clip",
			       (long long)t->step, v[0], v[1],
			       bad ? ", the first gradient that is not finite is that of " : "", bad ? bad : "");
	}
	*to = (struct yk_record){ .loss = v[0], .grad_norm = v[1] };
	return 0;
}

// ---- what fits ----

enum { REHEARSED = 3 }; // steps: the first has a plan of its own

int yk_trainer_validate_any(const struct yk_trainer *t)
{
	float loss;
	const int64_t rows = t->valid_windows < t->batch ? t->valid_windows : t->batch;
	if (rows == 0)
		return 0;
	yoke_scope *s = yoke_scope_begin("validate");
	yoke_read(yk_windows_likelihood(t->net, yk_trainer_zeros(t, rows)), &loss, sizeof loss);
	return yoke_scope_end(s);
}

int yk_trainer_rehearse(void *arg, int64_t batch)
{
	struct yk_trainer t = *(const struct yk_trainer *)arg; // without a model
	int e = yk_trainer_make(&t, batch, NULL, NULL);
	t.data = NULL; // any tokens will do
	for (int i = 0; i < REHEARSED && e == 0; i++)
		e = yk_trainer_step(&t);
	if (e == 0)
		e = yk_trainer_validate_any(&t);
	yk_trainer_unmake(&t);
	return e;
}

int yk_trainer_advise(struct yk_trainer *t)
{
	struct yoke_context *ctx = yk_current();
	if (!ctx)
		return YOKE_ENOMEM;
	yk_trainer_unmake(t);
	yoke_context_free(ctx); // with what is pending, or failed
	return yk_advise_batch(t->batch, recomputes(t) ? "use a smaller context or embed, or fewer layers" :
			       "use recompute=auto, a smaller context or embed, or fewer layers", yk_trainer_rehearse, t);
}
