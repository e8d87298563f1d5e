// SPDX-License-Identifier: Apache-2.0
// yoke_fit: a network of the application's own in the trainer of `yoke train`.
#include "config.h"

#include "yoke-fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/sized.h"
#include "base/stop.h"
#include "nn/module.h"
#include "train/snapshot.h"
#include "train/steps.h"
#include "yoke-observe.h"

struct fit {
	struct yoke_fit o;
	struct yk_trainer t;
	struct yk_trains trains;
	struct yk_parameters params, kept; // names and variables are the modules'
	struct yk_stop stop;
	yoke_tensor *in[YOKE_FIT_MOST]; // of the last batch
	int n;
	bool enough;               // log wants no more
	bool over;                 // next has no more
	int64_t first, saved, validated, logged;
	double busy, since;        // seconds of steps since the last log; when their clock was last started
	struct yoke_fit_end end;
};

// ---- what is trained ----

static int room(struct yk_parameters *p, size_t n)
{
	p->var = calloc(n + 1, sizeof(yoke_tensor *));
	p->row = calloc(n + 1, sizeof *p->row);
	return p->var && p->row ? 0 : yk_fail(YOKE_ENOMEM, "fit: no memory");
}

static void put(struct yk_parameters *p, const struct yk_module_own *o)
{
	p->var[p->count] = o->tensor;
	p->row[p->count++] = (struct yk_parameter){ .name = o->path };
	p->elements += yoke_count(o->tensor);
}

static int list(struct fit *f)
{
	size_t n;
	struct yk_module_entry *e = yk_module_entries(f->o.net, &n);
	int err = e ? room(&f->params, n) : yoke_error_code();
	if (!err)
		err = room(&f->kept, n);
	for (size_t i = 0; i < n && !err; i++) {
		put(&f->kept, e[i].own);
		if (!e[i].own->buffer && !e[i].own->frozen)
			put(&f->params, e[i].own);
	}
	free(e);
	if (!err && !f->params.count)
		err = yk_fail(YOKE_EINVAL, "fit: the net has no parameter to train");
	return err;
}

static void unlist(struct yk_parameters *p)
{
	free(p->var);
	free(p->row);
}

static int optimizer(struct fit *f)
{
	const int n = f->params.count, has = yk_optim_parameters(f->o.optim);
	const char **name = malloc((size_t)n * sizeof *name);
	int err = name ? 0 : yk_fail(YOKE_ENOMEM, "fit: no memory");
	for (int i = 0; i < n && !err; i++)
		name[i] = f->params.row[i].name;
	if (!err && !has)
		err = yoke_optim_add(f->o.optim, n, f->params.var, name, NULL);
	for (int i = 0; i < n && !err && has; i++)
		if (has != n || f->o.optim->member[i].p != f->params.var[i])
			err = yk_fail(YOKE_EINVAL, "fit: the optimizer has %d parameters, and they are not the %d of the net that "
				      "are not frozen, in their order; give one without parameters", has, n);
	free(name);
	if (!err) // a step that is not finite changes nothing, and says which gradient was not
		err = yoke_optim_set(f->o.optim, NULL, "check=1");
	return err ? err : yk_optim_of(f->o.optim, &f->params, &f->t.optim);
}

// ---- a step ----

static int batch(struct fit *f, int (*next)(void *, int64_t, int, yoke_tensor **), int64_t number, const char *what)
{
	for (int i = 0; i < YOKE_FIT_MOST; i++)
		f->in[i] = NULL;
	f->n = next(f->o.arg, number, YOKE_FIT_MOST, f->in);
	if (f->n > YOKE_FIT_MOST)
		f->n = yk_fail(YOKE_ERANGE, "fit: %s gave %d tensors; %d are possible", what, f->n, YOKE_FIT_MOST);
	if (f->n < 0 && !yoke_error_code())
		yk_fail(f->n, "fit: %s failed", what);
	return f->n;
}

static yoke_tensor *loss_of(struct fit *f)
{
	yoke_tensor *loss = f->o.loss(f->o.arg, f->o.net, f->n, f->in);
	if (!loss && !yoke_error_code())
		yk_fail(YOKE_EINVAL, "fit: loss gave nothing");
	if (loss && yoke_count(loss) != 1) {
		yk_fail(YOKE_ESHAPE, "fit: loss gave %lld numbers; it has to be one", (long long)yoke_count(loss));
		return NULL;
	}
	return loss ? yoke_cast(yoke_rank(loss) ? yoke_reshape(loss, 0, NULL) : loss, yoke_f32) : NULL;
}

static yoke_tensor *train_loss(void *arg, int64_t k, bool again)
{
	struct fit *f = arg;
	if (!again && batch(f, f->o.next, f->t.random_step + k, "next") == 0) {
		f->over = true; // the step is given up, and what has been recorded of it
		yk_fail(YOKE_EINVAL, "fit: next gave no tensor for part %lld", (long long)(f->t.random_step + k));
	}
	return yoke_error_code() ? NULL : loss_of(f);
}

static int stepped(void *arg)
{
	struct fit *f = arg;
	return f->o.data ? yoke_loader_position(f->o.data, &f->t.position) : 0;
}

// ---- between steps ----

static int asked(void *arg)
{
	struct fit *f = arg;
	const int signal = f->o.signals ? atomic_load(&f->stop.signal) : 0;
	return signal ? signal : f->enough ? -1 : 0;
}

static void clock_stop(struct fit *f)
{
	const double now = yk_seconds();
	f->busy += now - f->since;
	f->since = now;
}

static int tell(struct fit *f, double valid)
{
	struct yk_record record;
	int err = yk_trainer_record(&f->t, &record); // waits: the clock stops behind it
	if (err)
		return err;
	clock_stop(f);
	f->end.loss = record.loss;
	struct yoke_fit_step s = { .size = sizeof s, .step = f->t.step, .skipped = f->t.skipped, .loss = record.loss,
				   .grad_norm = record.grad_norm, .lr = f->t.lr, .scale = 1, .valid = valid,
				   .seconds = f->busy };
	if (f->t.scaler) {
		struct yoke_scaler_stats now = { .size = sizeof now };
		yoke_scaler_stats(f->t.scaler, &now);
		s.scale = now.scale;
	}
	f->busy = 0;
	f->logged = f->t.step;
	const int got = f->o.log ? f->o.log(f->o.arg, &s) : 0;
	f->since = yk_seconds();
	f->enough |= got > 0;
	if (got < 0 && !yoke_error_code())
		yk_fail(got, "fit: log failed");
	return got < 0 ? got : 0;
}

static int on_log(void *arg)
{
	return tell(arg, NAN);
}

// The next batch's loss, and its rows; 1, 0: there is none, or an error.
static int valid_loss(struct fit *f, int64_t number, double *to, double *rows)
{
	float loss = NAN;
	yoke_scope *s = yoke_scope_begin("validate");
	const int got = batch(f, f->o.valid, number, "valid");
	*rows = got > 0 && f->in[0] && yoke_rank(f->in[0]) > 0 ? (double)yoke_dim(f->in[0], 0) : 1;
	if (got > 0)
		yoke_read(loss_of(f), &loss, sizeof loss);
	const int err = yoke_scope_end(s);
	*to = loss;
	return got < 0 ? got : err ? err : got > 0;
}

static int on_validate(void *arg)
{
	struct fit *f = arg;
	double sum = 0, all = 0, one, rows;
	int64_t n = 0;
	int got = 1;
	if (!f->o.valid || f->validated == f->t.step)
		return 0;
	struct yk_record record;
	if ((got = yk_trainer_record(&f->t, &record)) < 0) // behind the step, so that its time is the step's
		return got;
	clock_stop(f);
	yoke_module_mode(f->o.net, 0);
	yoke_range_push("validate");
	while ((got = valid_loss(f, n, &one, &rows)) > 0) {
		sum += rows * one;
		all += rows;
		n++;
	}
	yoke_range_pop();
	yoke_module_mode(f->o.net, 1);
	f->since = yk_seconds();
	if (got < 0 || !n)
		return got;
	f->validated = f->t.step;
	f->end.valid = sum / all;
	return tell(f, f->end.valid);
}

static int on_save(void *arg)
{
	struct fit *f = arg;
	struct yk_checkpoint ck = { .model = json_pack("{s:s}", "kind", "module"), .tokenizer = json_object(),
				    .config = json_object(), .schedule = json_object() };
	if (!f->o.out || f->saved == f->t.step) {
		yk_checkpoint_fini(&ck);
		return 0;
	}
	clock_stop(f);
	yoke_range_push("save");
	const int err = yk_trainer_keep(&f->t, f->o.out, &ck);
	yoke_range_pop();
	f->since = yk_seconds();
	if (!err)
		f->saved = f->t.step;
	return err;
}

// ---- beginning and end ----

static int go_on(struct fit *f)
{
	struct yk_checkpoint ck = { 0 };
	const char *out = f->o.out;
	if (!out || !yk_checkpoint_exists(out))
		return 0;
	if (!f->o.resume)
		return yk_fail(YOKE_EINVAL, "fit: %s holds a checkpoint; resume goes on from it, another out begins anew", out);
	int err = yk_checkpoint_open(out, &ck);
	if (err)
		return err;
	const char *kind = json_string_value(json_object_get(ck.model, "kind"));
	if (!kind || strcmp(kind, "module"))
		err = yk_fail(YOKE_EINVAL, "fit: %s holds a model of yoke train's, not a network of yoke_fit's", out);
	if (!err)
		err = yk_trained_load(out, &ck, YK_CHECKPOINT_MODEL, &f->kept);
	if (!err)
		err = yk_trainer_go_on(&f->t, out, &ck);
	f->t.seed = ck.seed;
	f->t.position.epoch = ck.data.epoch;
	f->t.position.index = ck.data.index;
	f->t.position.failed = ck.data.failed;
	yk_checkpoint_fini(&ck);
	if (!err && f->o.data)
		err = yoke_loader_seek(f->o.data, &f->t.position);
	f->first = f->saved = f->logged = f->t.step;
	return err;
}

static int begin(struct fit *f)
{
	struct yk_trainer *t = &f->t;
	const struct yoke_fit *o = &f->o;
	const char *what = !o->net ? "net" : !o->optim ? "optim" : !o->next ? "next" : !o->loss ? "loss" : NULL;
	if (what)
		return yk_fail(YOKE_EINVAL, "fit: %s is not given", what);
	if (o->steps < 0 || o->accumulate < 0 || o->log_every < 0 || o->valid_every < 0 || o->save_every < 0)
		return yk_fail(YOKE_EINVAL, "fit: steps, accumulate and what is done every so many steps have to be 0 or more");
	if (o->accumulate > 1 << 20)
		return yk_fail(YOKE_ERANGE, "fit: accumulate=%lld is more than %d", (long long)o->accumulate, 1 << 20);
	f->trains = (struct yk_trains){ .loss = train_loss, .stepped = stepped, .arg = f };
	t->batch = t->micro = 1;
	t->parts = t->accumulate = o->accumulate ? o->accumulate : 1;
	t->stride = 1;
	t->steps = o->steps ? o->steps : INT64_MAX;
	t->seed = o->seed;
	t->position.size = sizeof t->position;
	t->own = &f->trains;
	t->params = &f->params;
	t->kept = &f->kept;
	f->saved = f->validated = -1;
	int err = yk_precision_named(o->precision ? o->precision : "fp32", o->keep_f32, o->allow_emulated, &t->precision);
	if (!err)
		err = list(f);
	if (!err && t->precision.scaled && !(t->scaler = yoke_scaler_new(NULL)))
		err = yoke_error_code();
	if (!err)
		err = optimizer(f);
	if (!err)
		err = yk_trainer_buffers(t);
	if (!err)
		err = yoke_eval(0, NULL); // first values, as they were drawn
	return err ? err : go_on(f);
}

static int train(struct fit *f)
{
	const struct yk_between between = {
		.asked = asked, .log = on_log, .validate = on_validate, .save = on_save,
		.log_every = f->o.log_every ? f->o.log_every : 10, .eval_every = f->o.valid_every,
		.save_every = f->o.save_every,
	};
	int signal = 0;
	yoke_module_mode(f->o.net, 1);
	f->since = yk_seconds();
	int err = yk_steps(&f->t, f->first, &between, f, &signal);
	if (f->over) {
		yoke_error_clear();
		err = 0;
	}
	if (!err && (signal || f->over) && f->logged < f->t.step)
		err = tell(f, NAN);
	if (!err && !signal && f->t.step > f->first)
		err = on_validate(f);
	if (!err && f->t.step > f->first)
		err = on_save(f);
	f->end.signal = signal > 0 ? signal : 0;
	return err;
}

int yoke_fit(const struct yoke_fit *given, struct yoke_fit_end *end)
{
	const int size = end ? yk_sized_check(end, sizeof end->size, "fit", "yoke_fit_end") : 0;
	if (size < 0)
		return size;
	struct fit *f = calloc(1, sizeof *f);
	if (!f)
		return yk_fail(YOKE_ENOMEM, "fit: no memory");
	f->end = (struct yoke_fit_end){ .size = sizeof f->end, .loss = NAN, .valid = NAN };
	int err = yk_sized_take(&f->o, sizeof f->o, given, "fit", "yoke_fit");
	bool stops = false;
	if (!err && f->o.signals) {
		err = yk_stop_begin(&f->stop, NULL, NULL);
		stops = !err;
	}
	if (!err && !(err = begin(f)))
		err = train(f);
	if (stops)
		yk_stop_end(&f->stop);
	f->end.step = f->t.step;
	yk_trainer_unmake(&f->t);
	unlist(&f->params);
	unlist(&f->kept);
	const int wrong = end ? yk_sized_give(end, sizeof *end, &f->end, "fit", "yoke_fit_end") : 0;
	free(f);
	return err ? err : wrong;
}
