// SPDX-License-Identifier: Apache-2.0
// yoke_fit: trains an application's own network with the trainer of `yoke train`, alone or on
// several ranks.
#include "config.h"

#include "yoke-fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/shared.h"
#include "base/sized.h"
#include "base/stop.h"
#include "data/loader.h"
#include "comm/process.h"
#include "nn/module.h"
#include "parallel/consistency.h"
#include "parallel/ranks.h"
#include "train/fit_record.h"
#include "train/resume.h"
#include "train/snapshot.h"
#include "train/steps.h"
#include "parallel/gather_checkpoint.h"
#include "parallel/zero.h"
#include "yoke-observe.h"

struct fit {
	struct yoke_fit o;
	struct yk_trainer t;
	struct yk_trains trains;
	struct yk_parameters params, kept; // names and variables belong to the modules
	struct yk_config config; // keys that ranks and gradient exchange read
	struct yk_stop stop;
	int lock;                // lock of the directory, -1: none
	yoke_tensor *in[YOKE_FIT_MAX]; // tensors of the last batch
	int n;
	int64_t given;             // batches of this step already requested from `next`
	bool enough;               // `log` requested a stop
	bool over;                 // `next` has no more batches
	int64_t first, saved, validated, logged;
	// busy: seconds of steps since the last log; since: when that clock was last started
	double busy, since;
	struct yk_fit_record record;
	int64_t rows; // of the batches of this step
	struct yoke_fit_end end;
};

// ---- parameters and optimizer ----

static int room(struct yk_parameters *p, size_t n)
{
	p->var = calloc(n + 1, sizeof(yoke_tensor *));
	p->row = calloc(n + 1, sizeof *p->row);
	return p->var && p->row ? 0 : yk_fail(YOKE_ENOMEM, "fit: out of memory");
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
		err = yk_fail(YOKE_EINVAL, "fit: the network has no trainable parameter");
	return err;
}

static void unlist(struct yk_parameters *p)
{
	free(p->var);
	free(p->row);
}

// How ranks shard the optimizer's states; *shares false: not at all. If a step has several
// micro-batches, norms are computed piecewise even without zero=, so that zero= changes no bits.
static int share(struct fit *f, struct yk_optim_sharding *to, bool *shares)
{
	struct yk_trainer *t = &f->t;
	*shares = t->replica.batches.count > 1;
	if (!t->replica.stage)
		return 0;
	for (int i = 0; i < f->params.count; i++)
		if (yoke_dtype(f->params.var[i]) != yoke_f32 ||
		    f->o.optim->member[i].states != f->o.optim->member[0].states)
			return yk_fail(YOKE_EDTYPE,
				       "fit: zero=%d needs f32 parameters with equally many "
				       "optimizer states; %s is %s",
				       t->replica.stage, f->params.row[i].name,
				       yoke_dtype_name(yoke_dtype(f->params.var[i])));
	if (f->o.optim->t > 0)
		return yk_fail(YOKE_EINVAL,
			       "fit: zero=%d: the optimizer has already made %lld steps, and their "
			       "states would be lost; give a new optimizer",
			       t->replica.stage, (long long)f->o.optim->t);
	const int err = yk_zero_new(&t->replica);
	if (!err)
		*to = *yk_zero_sharding(t->replica.zero);
	return err;
}

static int optimizer(struct fit *f)
{
	const int n = f->params.count, has = yk_optim_parameters(f->o.optim);
	const char **name = malloc((size_t)n * sizeof *name);
	int err = name ? 0 : yk_fail(YOKE_ENOMEM, "fit: out of memory");
	for (int i = 0; i < n && !err; i++)
		name[i] = f->params.row[i].name;
	if (!err && !has)
		err = yoke_optim_add(f->o.optim, n, f->params.var, name, NULL);
	for (int i = 0; i < n && !err && has; i++)
		if (has != n || f->o.optim->member[i].p != f->params.var[i])
			err = yk_fail(YOKE_EINVAL,
				      "fit: the optimizer's %d parameters are not the network's %d "
				      "trainable parameters in the same order; give an optimizer "
				      "without parameters",
				      has, n);
	free(name);
	if (!err) // a step that is not finite changes nothing, and the error names the gradient
		err = yoke_optim_set(f->o.optim, NULL, "check=1");
	struct yk_optim_sharding parts = { 0 };
	bool shares = false;
	if (!err)
		err = share(f, &parts, &shares);
	return err ? err :
		     yk_optim_of(f->o.optim, &f->params, shares ? &parts : NULL,
				 &f->t.replica.optim);
}

// ---- a step ----

// Requests a batch; returns the number of tensors, 0: no more batches, or an error.
static int ask(struct fit *f, int (*next)(void *, int64_t, int, yoke_tensor **), int64_t number,
	       const char *what, yoke_tensor *in[YOKE_FIT_MAX])
{
	memset(in, 0, YOKE_FIT_MAX * sizeof *in);
	const double began = yk_seconds();
	int n = next(f->o.arg, number, YOKE_FIT_MAX, in);
	if (next == f->o.next)
		f->record.waited += yk_seconds() - began;
	if (n > YOKE_FIT_MAX)
		n = yk_fail(YOKE_ERANGE, "fit: %s returned %d tensors; at most %d are allowed",
			    what, n, YOKE_FIT_MAX);
	if (n < 0 && !yoke_error_code())
		yk_fail(n, "fit: %s failed", what);
	return n;
}

static int batch(struct fit *f, int (*next)(void *, int64_t, int, yoke_tensor **), int64_t number,
		 const char *what)
{
	return f->n = ask(f, next, number, what, f->in);
}

static yoke_tensor *loss_of(struct fit *f)
{
	yoke_tensor *loss = f->o.loss(f->o.arg, f->o.net, f->n, f->in);
	if (!loss && !yoke_error_code())
		yk_fail(YOKE_EINVAL, "fit: loss returned nothing");
	if (loss && yoke_count(loss) != 1) {
		yk_fail(YOKE_ESHAPE, "fit: loss returned %lld numbers; it must return one",
			(long long)yoke_count(loss));
		return NULL;
	}
	return loss ? yoke_cast(yoke_rank(loss) ? yoke_reshape(loss, 0, NULL) : loss, yoke_f32) :
		      NULL;
}

// All ranks request all batches of a step up to `end`, so that any source gives them the same
// batches and all of them see its end at the same call. The result is the loss of batch `own`.
static yoke_tensor *losses(struct fit *f, int64_t own, int64_t end)
{
	yoke_tensor *others[YOKE_FIT_MAX], *loss = NULL;
	while (f->given < end && !yoke_error_code()) {
		const int64_t part = f->given++, number = f->t.random_step + part;
		const int n = part == own ? batch(f, f->o.next, number, "next") :
					    ask(f, f->o.next, number, "next", others);
		if (n == 0) {
			f->over = true; // the step and everything recorded for it are abandoned
			yk_fail(YOKE_EINVAL, "fit: next returned no tensor for micro-batch %lld",
				(long long)number);
		}
		const yoke_tensor *first = part == own ? f->in[0] : others[0];
		f->rows += n > 0 && first && yoke_rank(first) ? yoke_dim(first, 0) : n > 0;
		if (part == own && n > 0)
			loss = loss_of(f);
	}
	return yoke_error_code() ? NULL : loss;
}

static yoke_tensor *train_loss(void *arg, int64_t k, bool again)
{
	struct fit *f = arg;
	const struct yk_trainer *t = &f->t;
	const int64_t own = t->replica.batches.first + k * t->replica.batches.stride;
	if (again)
		return loss_of(f);
	f->given = k ? f->given : 0;
	if (k == t->replica.batches.accumulate - 1)
		return losses(f, own, t->replica.batches.count);
	// with zero >= 2, gradients are exchanged after each micro-batch
	return losses(f, own, t->replica.stage < 2 ? own + 1 : (k + 1) * t->replica.batches.stride);
}

static int stepped(void *arg)
{
	struct fit *f = arg;
	f->record.rows += f->rows;
	f->rows = 0;
	return f->o.data ? yoke_loader_position(f->o.data, &f->t.feed.position) : 0;
}

// ---- between steps ----

// The signal received; -1: `log` requested a stop; 0: neither.
static int wants(const struct fit *f)
{
	int signal = f->o.signals ? atomic_load(&f->stop.signal) : 0;
	if (!signal && f->o.stop && *f->o.stop > 0)
		signal = *f->o.stop;
	return signal ? signal : f->enough ? -1 : 0;
}

// Ranks end at the same step: the request of one rank reaches the others a step later.
static int asked(void *arg)
{
	const struct fit *f = arg;
	const int request = wants(f);
	if (!f->t.replica.grid.all)
		return request;
	return !f->t.replica.ends ? 0 : request ? request : -1;
}

static void on_before(void *arg)
{
	struct fit *f = arg;
	if (f->t.replica.grid.all)
		yk_ranks_set_status(&f->t.replica, wants(f) != 0);
}

static void clock_stop(struct fit *f)
{
	const double now = yk_seconds();
	f->busy += now - f->since;
	f->record.busy += now - f->since;
	f->since = now;
}

// Reports the last step, or a validation after it with its loss.
static int report(struct fit *f, bool validated, double valid)
{
	struct yk_record last;
	// waits for the step, so the clock stops after it
	int err = yk_trainer_record(&f->t, &last);
	if (err)
		return err;
	clock_stop(f);
	f->end.loss = last.loss;
	struct yoke_fit_step s = { .size = sizeof s,
				   .step = f->t.replica.step,
				   .skipped = f->t.skipped,
				   .loss = last.loss,
				   .grad_norm = last.grad_norm,
				   .lr = f->t.lr,
				   .scale = 1,
				   .valid = valid,
				   .seconds = f->busy };
	if (f->t.replica.scaler) {
		struct yoke_scaler_stats now = { .size = sizeof now };
		yoke_scaler_stats(f->t.replica.scaler, &now);
		s.scale = now.scale;
	}
	f->busy = 0;
	f->logged = f->t.replica.step;
	s.run = f->record.run;
	err = validated ? yk_fit_record_validated(&f->record, &f->t, valid) :
			  yk_fit_record_logged(&f->record, &f->t, &f->o, &s);
	if (err < 0)
		return err;
	const int got = f->o.log ? f->o.log(f->o.arg, &s) : 0;
	f->since = yk_seconds();
	f->enough |= got > 0;
	if (got < 0 && !yoke_error_code())
		yk_fail(got, "fit: log failed");
	return got < 0 ? got : 0;
}

static int on_log(void *arg)
{
	return report(arg, false, NAN);
}

// Loss and number of rows of the next validation batch. Returns 1, 0: no more batches, or an error.
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
	if (!f->o.valid || f->validated == f->t.replica.step)
		return 0;
	struct yk_record record;
	// wait for the step, so that its time does not count as validation
	if ((got = yk_trainer_record(&f->t, &record)) < 0)
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
	f->validated = f->t.replica.step;
	f->end.valid = sum / all;
	return report(f, true, f->end.valid);
}

static bool leads(const struct fit *f)
{
	return !f->t.replica.grid.all || yoke_group_rank(f->t.replica.grid.all) == 0;
}

static int on_save(void *arg)
{
	struct fit *f = arg;
	struct yk_checkpoint ck = { .model = json_pack("{s:s}", "kind", "module"),
				    .tokenizer = json_object(),
				    .config = json_object(),
				    .schedule = json_object() };
	if (!f->o.out || f->saved == f->t.replica.step) {
		yk_checkpoint_fini(&ck);
		return 0;
	}
	clock_stop(f);
	yk_fit_record_saving(&f->record);
	yoke_range_push("save");
	int err = f->t.replica.grid.all ? yk_ranks_check_replicas(&f->t.replica, true) : 0;
	if (!err)
		err = yk_checkpoint_gather_begin(&f->t.replica);
	if (!err && leads(f)) {
		err = yk_trainer_save_with(&f->t, f->o.out, &ck);
	} else {
		if (!err)
			err = yk_checkpoint_gather_serve(&f->t.replica);
		yk_checkpoint_fini(&ck);
	}
	yk_checkpoint_gather_end(&f->t.replica);
	yoke_range_pop();
	f->since = yk_seconds();
	if (err)
		return err;
	f->saved = f->t.replica.step;
	return yk_fit_record_saved(&f->record, &f->t);
}

static int on_after(void *arg, bool good)
{
	struct fit *f = arg;
	return good ? yk_fit_record_step(&f->record, &f->t) : 0;
}

// ---- beginning and end ----

static int go_on(struct fit *f)
{
	struct yk_checkpoint ck = { 0 };
	const char *out = f->o.out;
	if (!out || !yk_checkpoint_exists(out))
		return 0;
	if (!f->o.resume)
		return yk_fail(YOKE_EINVAL,
			       "fit: %s contains a checkpoint; set resume to continue from it, or "
			       "choose another out",
			       out);
	int err = yk_checkpoint_open(out, &ck);
	if (err)
		return err;
	const char *kind = json_string_value(json_object_get(ck.model, "kind"));
	if (!kind || strcmp(kind, "module"))
		err = yk_fail(YOKE_EINVAL,
			      "fit: %s contains a model of `yoke train`, not a network of yoke_fit",
			      out);
	if (!err)
		err = yk_host_list_load(out, &ck, YK_CHECKPOINT_MODEL, &f->kept);
	if (!err)
		err = yk_trainer_go_on(&f->t, out, &ck);
	f->t.replica.seed = ck.seed;
	f->t.feed.position.epoch = ck.data.epoch;
	f->t.feed.position.index = ck.data.index;
	f->t.feed.position.failed = ck.data.failed;
	yk_checkpoint_fini(&ck);
	if (!err && f->o.data)
		err = yoke_loader_seek(f->o.data, &f->t.feed.position);
	f->first = f->saved = f->logged = f->t.replica.step;
	return err;
}

// Finds this process's or thread's rank among those that were started.
static int join(struct fit *f)
{
	const struct yoke_fit *o = &f->o;
	struct yk_trainer *t = &f->t;
	yoke_group *world = yoke_group_world();
	const int n = world ? yoke_group_size(world) : 0;
	char ranks[32], zero[32], optim[48], order[48];
	if (!world)
		return yk_error_last();
	if (o->ranks && o->ranks != n)
		return yk_fail(YOKE_EINVAL,
			       "fit: ranks=%d, but %d %s started, and fit does not start ranks: "
			       "start them with mpirun, srun or torchrun, with yoke_group_spawn, "
			       "or with yoke_group_run",
			       o->ranks, n, n == 1 ? "rank was" : "ranks were");
	if (n > 1 && o->data && o->data->feed.world > 1)
		return yk_fail(YOKE_EINVAL,
			       "fit: the loader was opened with rank= and world=, but fit itself "
			       "distributes the batches among ranks; open the loader without them");
	snprintf(ranks, sizeof ranks, "ranks=%d", n);
	snprintf(zero, sizeof zero, "zero=%d", o->zero);
	snprintf(optim, sizeof optim, "optimizer=%.30s", o->optim->kind->name);
	snprintf(order, sizeof order, "accumulate_order=%.30s",
		 o->accumulate_order ? o->accumulate_order : "tree");
	char *const words[] = { ranks, zero, optim, order };
	int err = yk_config_init(&f->config, YK_T);
	if (!err)
		err = yk_config_arguments(&f->config, 4, words);
	t->replica.config = &f->config;
	if (!err)
		err = yk_ranks_join(&t->replica);
	if (!err && t->replica.group)
		t->replica.batches.count =
			t->replica.batches.accumulate * yoke_group_size(t->replica.group);
	return err;
}

// Gives all ranks the same initial values or those of the checkpoint, and checks that they agree on
// the run.
static int unite(struct fit *f)
{
	if (!f->t.replica.grid.all)
		return 0;
	char order[400];
	if (yk_ranks_order_text(&f->t.replica, order, sizeof order) && leads(f))
		yk_info("fit", "%d ranks: %s", yoke_group_size(f->t.replica.grid.all), order);
	const int err = yk_ranks_check_setup(&f->t.replica, NULL);
	return err ? err : yk_ranks_start(&f->t.replica, &f->kept, 0, f->kept.count);
}

// Only one run at a time may use the directory.
static int lock(struct fit *f)
{
	if (!f->o.out || !leads(f))
		return 0;
	const int err = yk_dir_make(f->o.out);
	return err ? err : yk_resume_lock(f->o.out, &f->lock);
}

static int begin(struct fit *f)
{
	struct yk_trainer *t = &f->t;
	const struct yoke_fit *o = &f->o;
	const char *what = !o->net   ? "net" :
			   !o->optim ? "optim" :
			   !o->next  ? "next" :
			   !o->loss  ? "loss" :
				       NULL;
	if (what)
		return yk_fail(YOKE_EINVAL, "fit: %s is missing", what);
	if (o->steps < 0 || o->steps_expected < 0 || o->accumulate < 0 || o->log_every < 0 ||
	    o->valid_every < 0 || o->save_every < 0)
		return yk_fail(YOKE_EINVAL, "fit: steps, steps_expected, accumulate, log_every, "
					    "valid_every and save_every must be at least 0");
	if (o->ranks < 0 || o->zero < 0 || o->zero > 2)
		return yk_fail(
			YOKE_EINVAL,
			"fit: ranks=%d zero=%d: ranks must be at least 0, and zero 0, 1 or 2%s",
			o->ranks, o->zero,
			o->zero == 3 ?
				"; only `yoke train` shards the parameters themselves (zero=3)" :
				"");
	if (o->accumulate > 1 << 20)
		return yk_fail(YOKE_ERANGE, "fit: accumulate=%lld is more than %d",
			       (long long)o->accumulate, 1 << 20);
	const int bad = yk_fit_record_check(o);
	if (bad)
		return bad;
	f->trains = (struct yk_trains){ .loss = train_loss, .stepped = stepped, .arg = f };
	t->batch = t->micro = 1;
	t->replica.batches.count = t->replica.batches.accumulate =
		o->accumulate ? o->accumulate : 1;
	t->replica.batches.stride = 1;
	t->steps = o->steps ? o->steps : INT64_MAX;
	t->replica.seed = o->seed;
	t->feed.position.size = sizeof t->feed.position;
	t->own = &f->trains;
	t->replica.params = &f->params;
	t->replica.kept = &f->kept;
	f->saved = f->validated = -1;
	int err = join(f);
	if (!err)
		err = yk_precision_named(o->precision ? o->precision : "fp32", o->keep_f32,
					 o->allow_emulated, &t->precision);
	if (!err)
		err = list(f);
	if (!err && t->precision.scaled && !(t->replica.scaler = yoke_scaler_new(NULL)))
		err = yoke_error_code();
	if (!err)
		err = optimizer(f);
	if (!err)
		err = yk_trainer_buffers(t);
	if (!err)
		err = yoke_eval(0, NULL); // evaluate initial values that are still pending
	if (!err)
		err = lock(f);
	if (!err)
		err = go_on(f);
	if (!err)
		err = unite(f);
	return err ? err : yk_fit_record_begin(&f->record, o, t, leads(f));
}

static int train(struct fit *f)
{
	const struct yk_between between = {
		.before = on_before,
		.asked = asked,
		.log = on_log,
		.validate = on_validate,
		.save = on_save,
		.after = on_after,
		.every.log = f->o.log_every ? f->o.log_every : 10,
		.every.eval = f->o.valid_every,
		.every.save = f->o.save_every,
	};
	int signal = 0;
	yoke_module_mode(f->o.net, 1);
	f->since = yk_seconds();
	int err = yk_steps(&f->t, f->first, &between, f, &signal);
	if (f->over) {
		yoke_error_clear();
		err = 0;
	}
	if (!err && (signal || f->over) && f->logged < f->t.replica.step)
		err = report(f, false, NAN);
	if (!err && !signal && f->t.replica.step > f->first)
		err = on_validate(f);
	if (!err && f->t.replica.step > f->first)
		err = on_save(f);
	f->end.signal = signal > 0 ? signal : 0;
	return err;
}

// How the run ended, for its records.
static const char *ended(const struct fit *f)
{
	const int signal = f->end.signal;
	if (f->over || f->t.replica.step == f->t.steps)
		return "done";
	return signal == SIGINT || signal == SIGTERM || signal == SIGHUP ? yk_stop_name(signal) :
									   "stopped";
}

int yoke_fit(const struct yoke_fit *given, struct yoke_fit_end *end)
{
	const int size = end ? yk_sized_check(end, sizeof end->size, "fit", "yoke_fit_end") : 0;
	if (size < 0)
		return size;
	struct fit *f = calloc(1, sizeof *f);
	if (!f)
		return yk_fail(YOKE_ENOMEM, "fit: out of memory");
	f->lock = -1;
	f->end = (struct yoke_fit_end){ .size = sizeof f->end, .loss = NAN, .valid = NAN };
	int err = yk_sized_read(&f->o, sizeof f->o, given, "fit", "yoke_fit");
	bool stops = false;
	if (!err && f->o.signals) {
		err = yk_stop_begin(&f->stop, NULL, NULL);
		stops = !err;
	}
	if (!err && !(err = begin(f)))
		err = train(f);
	if (stops)
		yk_stop_end(&f->stop);
	f->end.step = f->t.replica.step;
	// report the error to the other ranks before they wait for this one
	if (err < 0 && f->t.replica.grid.all)
		yk_ranks_failed(&f->t.replica);
	yk_fit_record_end(&f->record, &f->t, &f->o, err < 0 ? "failed" : ended(f), err);
	yk_dir_unlock(f->lock);
	yk_trainer_unmake(&f->t);
	yk_config_fini(&f->config);
	unlist(&f->params);
	unlist(&f->kept);
	const int wrong =
		end ? yk_sized_write(end, sizeof *end, &f->end, "fit", "yoke_fit_end") : 0;
	free(f);
	return err ? err : wrong;
}
