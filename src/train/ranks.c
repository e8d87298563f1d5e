// SPDX-License-Identifier: Apache-2.0
// Data-parallel training.
#include "config.h"

#include "train/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/param.h"
#include "dist/process.h"
#include "graph/context.h"
#include "train/compress.h"
#include "train/outname.h"
#include "train/resume.h"
#include "train/run.h"
#include "train/stages.h"
#include "train/zero.h"

enum { FIRST_BUCKET = 1 << 20 }; // bytes, and 25 MiB, as in PyTorch's DDP (Li et al. 2020)
YK_PARAM(bucket_setting, "dist.bucket", YK_BYTES, "25M", "bytes of gradients that go between ranks together", .least = 1,
	 .most = INT64_MAX);
enum { GRACE = 900000000 }; // nanoseconds that processes have to end in once one of them has failed

// What processes cannot do each for itself; and the launcher's count.
static int check_processes(const struct yk_config *c, int64_t ranks)
{
	uint32_t rank, n = 0;
	const int place = yk_process_place(&rank, &n);
	if (place < 0)
		return place;
	if (place && n != ranks)
		return yk_fail(YOKE_EINVAL, "ranks=%lld, but %u processes were started as ranks", (long long)ranks, n);
	if (yk_config_int(c, YK_KEY_restarts) > 0 && yk_process_launched())
		return yk_fail(YOKE_EINVAL, "restarts=%lld: ranks are started by a launcher here, which would have to start them "
			       "again", (long long)yk_config_int(c, YK_KEY_restarts));
	if (yk_config_int(c, YK_KEY_min_ranks) > ranks)
		return yk_fail(YOKE_EINVAL, "min_ranks=%lld is more than ranks=%lld",
			       (long long)yk_config_int(c, YK_KEY_min_ranks), (long long)ranks);
	const bool threads = !place && strcmp(yk_config_str(c, YK_KEY_spawn), "process") != 0;
	if (threads && (ranks == 1 || !yk_config_int(c, YK_KEY_restarts)))
		return 0;
	if (!threads && !strcmp(yk_config_str(c, YK_KEY_backend), "fastest"))
		return yk_fail(YOKE_EINVAL, "backend=fastest measures in one process; with ranks that are processes name a backend");
	for (const char *at = yk_config_str(c, YK_KEY_data); *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == 1 && *at == '-')
			return yk_fail(YOKE_EINVAL, threads ? "data=- can be read once only; with restarts= name a file" :
				       "data=- can be read by one process only; with ranks that are processes name a file");
	return 0;
}

int yk_ranks_check(const struct yk_config *c)
{
	const bool known = yk_config_int(c, YK_KEY_ranks) != YK_AUTO; // else whoever starts them will settle it
	const int64_t ranks = known ? yk_config_int(c, YK_KEY_ranks) : 1, parts = yk_config_int(c, YK_KEY_parts),
		      unit = yk_grid_unit(c);
	char those[200] = "";
	int e = yk_grid_check(c);
	if (e < 0)
		return e;
	if (parts != YK_AUTO && parts % yk_grid_data(c)) {
		for (int64_t n = 1; n <= parts && n * unit <= 1024 && strlen(those) < sizeof those - 24; n++)
			if (parts % n == 0)
				snprintf(those + strlen(those), sizeof those - strlen(those), " %lld", (long long)(n * unit));
		return yk_fail(YOKE_EINVAL, "ranks=%lld do not divide the parts=%lld of a step; these do:%s",
			       (long long)ranks, (long long)parts, those);
	}
	if (ranks > 1 && yk_config_int(c, YK_KEY_batch) == YK_AUTO)
		return yk_fail(YOKE_EINVAL, "batch=auto measures one device; with ranks=%lld give a number",
			       (long long)ranks);
	if (ranks > 1 && yk_config_int(c, YK_KEY_snapshot_every) > 0)
		return yk_fail(YOKE_EINVAL, "snapshot_every is for the change to another device; with ranks=%lld "
			       "use save_every", (long long)ranks);
	e = yk_compress_check(c);
	return e ? e : check_processes(c, ranks);
}

int yk_ranks_join(struct yk_trainer *t)
{
	const int e = yk_grid_join(t->config, &t->grid);
	if (e < 0 || !t->grid.all)
		return e;
	t->group = t->grid.over_data;
	t->stage = t->group ? (int)yk_config_int(t->config, YK_KEY_zero) : 0;
	t->first = t->grid.d * (t->stage < 2 ? t->accumulate : 1);
	t->stride = t->stage < 2 ? 1 : t->grid.data;
	t->wish = yoke_keep(yoke_scalar(0));
	return t->wish ? 0 : yoke_error_code();
}

void yk_ranks_leave(struct yk_trainer *t)
{
	yoke_free(t->wish);
	yoke_free(t->wished[0]);
	yoke_free(t->wished[1]);
	t->wish = t->wished[0] = t->wished[1] = NULL;
	yk_grid_leave(&t->grid);
	t->group = NULL;
}

int yk_ranks_start(const struct yk_trainer *t)
{
	const struct yk_parameters *ps = &t->net->params;
	yoke_tensor **to = calloc((size_t)ps->count, sizeof *to);
	if (!to)
		return yk_fail(YOKE_ENOMEM, "ranks: no memory");
	yoke_scope *s = yoke_scope_begin("start");
	int e = yoke_broadcast_list(t->group, 0, ps->count, ps->var, to);
	for (int i = 0; i < ps->count && e == 0; i++)
		e = yoke_assign(ps->var[i], to[i]);
	if (e == 0)
		e = yoke_eval(0, NULL);
	const int ended = yoke_scope_end(s);
	free(to);
	return e ? e : ended;
}

size_t yk_ranks_room(bool first)
{
	const size_t most = (size_t)yk_param_int(&bucket_setting);
	return first && most > FIRST_BUCKET ? FIRST_BUCKET : most;
}

int yk_ranks_bucket(const struct yk_parameters *ps, int end)
{
	const size_t room = yk_ranks_room(end == ps->count); // those of the last layers come first
	size_t bytes = 0;
	do
		bytes += yoke_bytes(ps->var[--end]);
	while (bytes < room && end > 0);
	return end;
}

yoke_tensor *yk_ranks_narrow(const struct yk_trainer *t, yoke_tensor *gradient)
{
	const char *wire = yk_config_str(t->config, YK_KEY_wire);
	return strcmp(wire, "fp32") ? yoke_cast(gradient, strcmp(wire, "fp16") ? yoke_bf16 : yoke_f16) : gradient;
}

// All of a bucket's gradients become those of all ranks.
static int reduce_bucket(struct yk_trainer *t, int first, int end)
{
	for (int i = first; i < end; i++)
		t->grad[i] = yk_ranks_narrow(t, t->grad[i]);
	const int e = yoke_all_reduce_list(t->group, YOKE_REDUCE_SUM, end - first, t->grad + first, t->grad + first);
	for (int i = first; i < end; i++)
		t->grad[i] = yoke_cast(t->grad[i], yoke_f32);
	return e;
}

int yk_ranks_reduce(struct yk_trainer *t, yoke_tensor **loss)
{
	const int64_t one = 1;
	int e = 0;
	const bool in_part = yk_compress_now(t), has_loss = !t->stages || t->grid.s == t->grid.stages - 1;
	if (t->stages && (e = yk_stages_reduce(t)) < 0)
		return e;
	if (t->stage == 1 && !in_part)
		yk_zero_reduce(t);
	if (t->stage > 0 && !in_part)
		yk_zero_take(t);
	for (int end = (t->stage && !in_part) || !t->group ? 0 : t->net->params.count, first; end > 0 && e == 0; end = first) {
		first = yk_ranks_bucket(&t->net->params, end);
		e = in_part ? yk_compress_reduce(t, first, end) : reduce_bucket(t, first, end);
	}
	if (t->stage > 0 && in_part)
		yk_zero_cut(t);
	yoke_tensor *wish = yoke_mul(yoke_full(yoke_f32, 1, &one, 1), t->wish);
	if (t->stage < 2 && t->group == t->grid.all) { // in one message
		yoke_tensor *all = yoke_all_reduce(t->group, YOKE_REDUCE_SUM,
						   yoke_concat(2, (yoke_tensor *[]){ yoke_reshape(*loss, 1, &one), wish }, 0));
		*loss = yoke_reshape(yoke_slice(all, 0, 0, 1, 1), 0, NULL);
		t->wished[1] = yoke_keep(yoke_slice(all, 0, 1, 2, 1));
	} else { // of stage 2 the loss is that of all already
		if (t->stage < 2 && t->group && has_loss)
			*loss = yoke_all_reduce(t->group, YOKE_REDUCE_SUM, *loss);
		if (t->stages)
			*loss = yk_stages_tell(t, *loss);
		t->wished[1] = yoke_keep(yoke_all_reduce(t->grid.all, YOKE_REDUCE_SUM, wish));
	}
	return e ? e : t->wished[1] ? 0 : yoke_error_code();
}

yoke_tensor **yk_ranks_part(struct yk_trainer *t, yoke_tensor **loss)
{
	if (t->stage < 2)
		return t->grad;
	*loss = yoke_all_reduce(t->group, YOKE_REDUCE_SUM, *loss);
	return yk_zero_reduce(t);
}

int yk_ranks_hear(struct yk_trainer *t)
{
	float wishes = 0;
	int e = t->wished[0] ? yoke_read(t->wished[0], &wishes, sizeof wishes) : 0;
	yoke_free(t->wished[0]);
	t->wished[0] = t->wished[1];
	t->wished[1] = NULL;
	t->ends |= wishes > 0;
	return e;
}

// ---- what they have to have in common ----

struct creed {
	uint64_t version, config, data;
	int64_t step;
	uint64_t device;
};

// Of what kernels its numbers come.  0: nobody else has a copy of a parameter, or its one owner sends it to those who do.
static uint64_t device_hash(const struct yk_trainer *t)
{
	const struct yk_device *d = yk_current()->device;
	char text[sizeof d->info.driver + 64];
	const bool copies = t->grid.tensor > 1 || (t->grid.stages > 1 && yk_config_int(t->config, YK_KEY_tied));
	if (!copies && (t->stage > 0 || t->grid.data < 2))
		return 0;
	snprintf(text, sizeof text, "%s %u %s", d->backend->table.name, d->info.kind, d->info.driver);
	return yk_hash(text, strlen(text), 0);
}

int yk_ranks_agree(const struct yk_trainer *t)
{
	static const char *const words[] = {
		"version of yoke", "configuration", "data", "step of the checkpoint",
		("device (its kind, driver or instruction set), and what each updates for itself would drift apart: zero=1 has one "
		 "owner for each parameter, but for what tensor= and the ends of stages= (tied=1) have twice"),
	};
	const char *version = yoke_version();
	const int n = yoke_group_size(t->grid.all);
	if (yk_current()->dry) // the others are not there
		return 0;
	json_t *o = yk_config_json(t->config);
	char *text = o ? json_dumps(o, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
	struct creed mine = { .version = yk_hash(version, strlen(version), 0), .step = t->step, .device = device_hash(t) };
	uint64_t *all = calloc((size_t)n, sizeof mine);
	int e = text && all ? 0 : yk_fail(YOKE_ENOMEM, "ranks: no memory");
	if (e == 0) {
		mine.config = yk_hash(text, strlen(text), 0);
		mine.data = t->data ? yk_data_fingerprint(t->data) : 0;
		e = yoke_group_exchange(t->grid.all, &mine, sizeof mine, all);
	}
	const int facts = sizeof mine / sizeof *all;
	for (int i = facts; i < n * facts && e == 0; i++)
		if (all[i] != all[i % facts])
			e = yk_fail(YOKE_EINVAL, "ranks 0 and %d differ in their %s", i / facts, words[i % facts]);
	free(all);
	free(text);
	json_decref(o);
	return e;
}

int yk_ranks_settle(struct yk_config *c)
{
	const int64_t parts = yk_config_int(c, YK_KEY_parts);
	uint32_t rank, started;
	char said[32];
	const int place = yk_process_place(&rank, &started);
	if (place < 0)
		return place;
	if (place && !yk_config_asked(c, YK_KEY_ranks)) { // it stands before what a checkpoint says
		snprintf(said, sizeof said, "ranks=%u", started);
		return yk_config_argument(c, said);
	}
	if (yk_config_int(c, YK_KEY_ranks) != YK_AUTO)
		return 0;
	if (place) // who started it has settled that
		return yk_config_settle(c, YK_KEY_ranks, started);
	int n = yk_config_apply(c);
	if (n == 0)
		n = yk_ranks_devices();
	const int unit = (int)yk_grid_unit(c);
	n = n < unit ? n : n - n % unit;
	while (n > unit && parts != YK_AUTO && parts % (n / unit))
		n -= unit;
	return n < 0 ? n : yk_config_settle(c, YK_KEY_ranks, n);
}

// ---- as threads or processes ----

bool yk_ranks_spawns(const struct yk_config *c)
{
	uint32_t rank, ranks;
	return !strcmp(yk_config_str(c, YK_KEY_spawn), "process") && !yk_process_place(&rank, &ranks);
}

// The configuration as ranks will have it: of a run that goes on, with what its checkpoint says.
static int complete(const struct yk_config *c, struct yk_config *to)
{
	struct yk_checkpoint ck;
	bool resumes = false;
	char *out = NULL;
	int e = yk_config_with(c, 0, NULL, to);
	if (e < 0)
		return e;
	e = yk_out_name(to, &out);
	if (e == 0)
		e = yk_ranks_settle(to);
	if (e == 0)
		e = yk_resume_open(to, out, &ck, &resumes);
	if (resumes)
		yk_checkpoint_fini(&ck);
	if (e == 0)
		e = yk_config_check(to);
	if (e < 0)
		yk_config_fini(to);
	free(out);
	return e;
}

// The command's words as one rank has them, with another count of ranks behind a restart.
struct words {
	char **word, name[8], ranks[32], parts[32], resume[16];
};

static bool is_key(const char *word, const char *key)
{
	const size_t n = strlen(key);
	return !strncasecmp(word, key, n) && word[n] == '=';
}

static int words_make(struct words *w, int argc, char *const argv[])
{
	w->word = calloc((size_t)argc + 5, sizeof *w->word);
	if (!w->word)
		return yk_fail(YOKE_ENOMEM, "ranks: no memory");
	snprintf(w->name, sizeof w->name, "yoke");
	w->word[0] = w->name;
	memcpy(w->word + 1, argv, (size_t)argc * sizeof *w->word);
	return 0;
}

static void words_set(struct words *w, int64_t ranks, int64_t parts)
{
	size_t n = 0;
	for (size_t i = 0; w->word[i]; i++)
		if (!is_key(w->word[i], "ranks") && !is_key(w->word[i], "parts") && !is_key(w->word[i], "resume"))
			w->word[n++] = w->word[i];
	snprintf(w->ranks, sizeof w->ranks, "ranks=%lld", (long long)ranks);
	snprintf(w->parts, sizeof w->parts, "parts=%lld", (long long)parts);
	snprintf(w->resume, sizeof w->resume, "resume=auto");
	w->word[n++] = w->ranks;
	w->word[n++] = w->parts;
	w->word[n++] = w->resume;
	w->word[n] = NULL;
}

// The most ranks, of so many, a multiple of `unit`, that give the bits of all: each has 2^k parts of a step.  0: too few.
static int64_t go_on_with(int64_t left, int64_t least, int64_t parts, int64_t unit)
{
	for (int64_t data = left / unit; data > 0 && data * unit >= least; data--)
		if (parts % data == 0 && !((parts / data) & (parts / data - 1)))
			return data * unit;
	return 0;
}

// Where so many ranks are lost: how many others go on, of which it says so.  0: they do not.
static int64_t others(const struct yk_config *c, int64_t ranks, int64_t lost, int64_t parts, int64_t again)
{
	const int64_t restarts = yk_config_int(c, YK_KEY_restarts);
	if (!lost || again > restarts)
		return 0;
	ranks = go_on_with(ranks - lost, yk_config_int(c, YK_KEY_min_ranks), parts, yk_grid_unit(c));
	if (ranks)
		yk_warn("train", "%s; %lld rank%s go%s on from the last checkpoint, restart %lld of %lld", yoke_error(),
			(long long)ranks, ranks == 1 ? "" : "s", ranks == 1 ? "es" : "", (long long)again, (long long)restarts);
	return ranks;
}

static int64_t parts_of(const struct yk_config *c)
{
	const int64_t parts = yk_config_int(c, YK_KEY_parts);
	return parts == YK_AUTO ? yk_grid_data(c) * yk_config_int(c, YK_KEY_accumulate) : parts;
}

static int spawn_all(const struct yk_config *c, struct words *w, const sigset_t *set)
{
	const int64_t parts = parts_of(c);
	int64_t ranks = yk_config_int(c, YK_KEY_ranks);
	for (int64_t again = 1;; again++) {
		struct yk_launch launch = { .path = "/proc/self/exe", .grace = GRACE, .forward = set };
		const int e = yk_spawn((int)ranks, w->word, &launch);
		if (e < 0 && launch.signals > 1)
			_exit(128 + launch.signal);
		if (e == 0 || launch.signals || !(ranks = others(c, ranks, launch.lost, parts, again)))
			return e;
		yoke_error_clear();
		words_set(w, ranks, parts);
	}
}

// The words and the whole configuration of children; both are the caller's.
static int prepare(const struct yk_config *c, int argc, char *const argv[], struct yk_config *all, struct words *w)
{
	int e = words_make(w, argc, argv);
	if (e < 0)
		return e;
	e = complete(c, all);
	if (e < 0)
		free(w->word);
	return e;
}

int yk_ranks_spawn(const struct yk_config *c, int argc, char *const argv[])
{
	sigset_t set, old;
	struct yk_config all;
	struct words w;
	int e = prepare(c, argc, argv, &all, &w);
	if (e < 0)
		return e;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	e = spawn_all(&all, &w, &set);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	yk_config_fini(&all);
	free(w.word);
	return e;
}

int yk_ranks_train(struct yk_config *c, int argc, char *const argv[])
{
	struct yk_config all, again;
	struct words w;
	int lost = 0;
	if (!yk_config_int(c, YK_KEY_restarts) || yk_process_place(&(uint32_t){ 0 }, &(uint32_t){ 0 }))
		return yk_train(c, NULL);
	int e = prepare(c, argc, argv, &all, &w);
	if (e < 0)
		return e;
	const int64_t parts = parts_of(&all);
	int64_t ranks = yk_config_int(&all, YK_KEY_ranks);
	e = yk_train(c, &lost);
	for (int64_t n = 1; e < 0 && (ranks = others(&all, ranks, lost, parts, n)); n++) {
		yoke_error_clear();
		words_set(&w, ranks, parts);
		int count = 2;
		while (w.word[count])
			count++;
		e = yk_config_init(&again, YK_T);
		if (e == 0)
			e = yk_config_arguments(&again, count - 2, w.word + 2);
		lost = 0;
		if (e == 0)
			e = yk_train(&again, &lost);
		yk_config_fini(&again);
	}
	yk_config_fini(&all);
	free(w.word);
	return e;
}

bool yk_ranks_leads(void)
{
	uint32_t rank = 0, ranks;
	return yk_process_place(&rank, &ranks) <= 0 || rank == 0;
}

int yk_ranks_run(int64_t ranks, int (*fn)(yoke_group *, void *), void *arg)
{
	uint32_t rank, n;
	return yk_process_place(&rank, &n) ? yk_process_run(NULL, fn, arg) :
					     yoke_group_run((int)ranks, NULL, fn, arg);
}
