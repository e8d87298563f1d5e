// SPDX-License-Identifier: Apache-2.0
// Tests the records of yoke_fit: the numbers that the callback receives, settings, events and how a
// run ended, also one that was killed; resumed runs; ranks. With arguments it is a program for
// tests/fit_records.sh: `run FOLDER` trains, `endless FOLDER` trains until it is killed.
#include "config.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/shared.h"
#include "runs/read.h"
#include "tap.h"
#include "yoke-dist.h"
#include "yoke-fit.h"

enum { ROWS = 8, IN = 3, STEPS = 9, PARAMETERS = IN + 1 };

struct run {
	const char *out;
	int64_t steps, ends_at, fails_at, raises_at, waits_at; // 0: never
	int ready;                                             // a pipe: waits_at writes one byte
	volatile int stop;
	yoke_loader *loader;
	pid_t child; // forked at step 2 if it is not 0
	bool adds;
	int64_t n, valids;
	struct yoke_fit_step step[64], valid[8];
};

static int next(void *arg, int64_t part, int max, yoke_tensor **in)
{
	const struct run *r = arg;
	float x[ROWS][IN], y[ROWS];
	(void)max;
	if (r->loader)
		return yoke_loader_next(r->loader, 2, in, NULL) > 0 ? 2 : YOKE_EIO;
	if (r->fails_at && part >= r->fails_at)
		return YOKE_EIO;
	for (int i = 0; i < ROWS; i++) {
		y[i] = 0;
		for (int c = 0; c < IN; c++) {
			x[i][c] = (float)((part * 7 + i * 5 + c * 3) % 11) / 11;
			y[i] += (float)c * x[i][c];
		}
	}
	in[0] = yoke_from(yoke_f32, 2, (int64_t[]){ ROWS, IN }, x);
	in[1] = yoke_from(yoke_f32, 2, (int64_t[]){ ROWS, 1 }, y);
	return 2;
}

static int valid(void *arg, int64_t number, int max, yoke_tensor **in)
{
	const struct run all = { .steps = 1 };
	(void)arg;
	return number < 2 ? next((void *)(uintptr_t)&all, 100 + number, max, in) : 0;
}

static yoke_tensor *loss(void *arg, yoke_module *net, int n, yoke_tensor *const *in)
{
	(void)arg, (void)n;
	return yoke_mse(yoke_call(net, in[0]), in[1]);
}

static int note(void *arg, const struct yoke_fit_step *s)
{
	struct run *r = arg;
	if (!isnan(s->valid)) {
		if (r->valids < 8)
			r->valid[r->valids++] = *s;
		return 0;
	}
	if (r->n < 64)
		r->step[r->n++] = *s;
	if (r->adds)
		yoke_run_log(s->run, s->step, "train", 1, (const char *const[]){ "mine" },
			     (double[]){ 2.0 * (double)s->step });
	if (s->step == r->raises_at)
		kill(getpid(), SIGTERM);
	if (s->step == 2 && r->child && (r->child = fork()) == 0)
		for (;;)
			pause();
	if (s->step == r->waits_at && write(r->ready, "1", 1) == 1)
		pause();
	return s->step == r->ends_at;
}

static int fit(struct run *r, void (*change)(struct yoke_fit *))
{
	yoke_random_set(3, 0);
	yoke_module *net = yoke_nn_linear(IN, 1, 1);
	yoke_optim *o = yoke_optim_new("sgd", "lr=0.05 momentum=0.5 warmup=4");
	struct yoke_fit f = { .size = sizeof f,
			      .net = net,
			      .optim = o,
			      .steps = r->steps,
			      .next = next,
			      .loss = loss,
			      .log = note,
			      .arg = r,
			      .log_every = 1,
			      .out = r->out,
			      .save_every = 4,
			      .stop = &r->stop,
			      .telemetry = -1 };
	if (change)
		change(&f);
	const int err = yoke_fit(&f, NULL);
	yoke_optim_free(o);
	yoke_module_free(net);
	return err;
}

static struct yk_view *view_of(const char *folder)
{
	struct yk_view *v = NULL;
	if (yk_view_open(folder, true, &v) < 0 || yk_view_poll(v) < 0)
		diag("%s: %s", folder, yoke_error());
	return v;
}

static const char *how_of(const struct yk_view *v)
{
	const char *s =
		json_string_value(json_object_get(json_object_get(v->about, "ended"), "how"));
	return s ? s : "";
}

static const char *setting(const struct yk_view *v, const char *key)
{
	const char *s =
		json_string_value(json_object_get(json_object_get(v->about, "config"), key));
	return s ? s : "";
}

static double value(const struct yk_view *v, const char *stage, const char *column, size_t row)
{
	const struct yk_view_table *t = yk_view_table(v, stage);
	const int c = yk_view_column(t, column);
	return c >= 0 && row < t->rows ? yk_view_value(v, t, c, row) : NAN;
}

static bool has_event(const struct yk_view *v, const char *event, int64_t step)
{
	for (size_t i = 0; i < v->events; i++)
		if (!strcmp(v->event[i].event, event) && v->event[i].step == step)
			return true;
	return false;
}

// Does `train` have these steps, each once?
static bool has_steps(const struct yk_view *v, int64_t from, int64_t to)
{
	const struct yk_view_table *t = yk_view_table(v, "train");
	bool good = t && t->rows == (size_t)(to - from + 1);
	for (int64_t i = from; i <= to && good; i++)
		good = yk_view_step(t, (size_t)(i - from)) == i;
	return good;
}

// ---- a run ----

static void many(struct yoke_fit *f)
{
	f->accumulate = 2;
	f->valid = valid;
	f->valid_every = 3;
	f->config = "{\"text\": \"mine\", \"rate\": 0.5, \"lr\": \"as given\"}";
	f->telemetry = 0;
	f->tensorboard = 1;
}

static void test_numbers(void)
{
	struct run r = { .out = "numbers", .steps = STEPS };
	const int err = fit(&r, many);
	struct yk_view *v = view_of("numbers");
	bool good =
		err == 0 && v && has_steps(v, 1, STEPS) && r.n == STEPS && r.valids == STEPS / 3;
	for (size_t i = 0; i < STEPS && good; i++)
		good = value(v, "train", "loss", i) == r.step[i].loss &&
		       value(v, "train", "lr", i) == r.step[i].lr &&
		       value(v, "train", "grad_norm", i) == r.step[i].grad_norm &&
		       value(v, "train", "samples_per_s", i) > 0 &&
		       value(v, "train", "peak_bytes", i) > 0 &&
		       value(v, "train", "data_wait_s", i) >= 0 && r.step[i].run;
	for (size_t i = 0; i < STEPS / 3 && good; i++)
		good = value(v, "valid", "val_loss", i) == r.valid[i].valid &&
		       yk_view_step(yk_view_table(v, "valid"), i) == r.valid[i].step;
	ok(good, "the records have the numbers that the callback receives: %s", yoke_error());
	if (!v)
		return;
	const json_t *about = v->about, *config = json_object_get(about, "config");
	good = json_integer_value(json_object_get(about, "steps")) == STEPS &&
	       json_integer_value(json_object_get(about, "parameters")) == PARAMETERS &&
	       *yk_view_field(v, "device") && !strcmp(setting(v, "text"), "mine") &&
	       json_real_value(json_object_get(config, "rate")) == 0.5 &&
	       !strcmp(setting(v, "lr"), "as given") && !strcmp(setting(v, "momentum"), "0.5") &&
	       !strcmp(setting(v, "optimizer"), "sgd") && !strcmp(setting(v, "accumulate"), "2") &&
	       !strcmp(setting(v, "eval_every"), "3") && !strcmp(setting(v, "precision"), "fp32");
	ok(good, "run.json has the device, the settings of the program and those of the run");
	const json_t *artifact = json_array_get(json_object_get(about, "artifacts"), 0);
	const char *name = json_string_value(json_object_get(artifact, "name"));
	ok(v->state == YK_VIEW_ENDED && !strcmp(how_of(v), "done") && has_event(v, "started", 0) &&
		   has_event(v, "saved", 4) && has_event(v, "saved", STEPS) &&
		   has_event(v, "done", STEPS) && name && !strcmp(name, "manifest.json"),
	   "events, the end, and the checkpoint as an artifact");
	const struct yk_view_table *memory = yk_view_table(v, "memory");
	good = memory && memory->rows == 6 && yk_view_step(memory, 0) == 0 &&
	       yk_view_step(memory, 5) == STEPS && value(v, "memory", "rss", 1) > 0 &&
	       !isnan(value(v, "memory", "pending_nodes", 1));
	ok(good, "memory before the first step, and where it validates or saves: %zu lines",
	   memory ? memory->rows : 0);
	good = json_number_value(json_object_get(v->report, "wall")) > 0 &&
	       json_is_object(json_object_get(v->report, "devices")) && !v->foreign;
	ok(good, "a report of where the time went");
	const struct yk_view_table *telemetry = yk_view_table(v, "telemetry");
	ok(telemetry && telemetry->rows && yk_view_step(telemetry, telemetry->rows - 1) == STEPS &&
		   value(v, "telemetry", "rss", 0) > 0,
	   "telemetry");
	yk_view_close(v);
	ok(system("ls numbers/events.out.tfevents.* >/dev/null 2>&1") == 0,
	   "events for TensorBoard");
}

static void test_own_values(void)
{
	struct run r = { .out = "own", .steps = 3, .adds = true },
		   none = { .steps = 2, .adds = true };
	bool good = fit(&r, NULL) == 0;
	struct yk_view *v = view_of("own");
	const struct yk_view_table *t = v ? yk_view_table(v, "train") : NULL;
	const int c = yk_view_column(t, "mine");
	good = good && c >= 0 && t->column[c].count == 3 && t->column[c].last == 6;
	good = good && fit(&none, NULL) == 0 && none.n == 2 && !none.step[0].run;
	good = good && access("own/telemetry.jsonl", F_OK) != 0;
	ok(good, "the callback adds values, and there is no telemetry if it is not wanted: %s",
	   yoke_error());
	yk_view_close(v);
}

static int read_rows(void *arg, int64_t n, struct yoke_item *const *rows)
{
	(void)arg;
	for (int64_t i = 0; i < n; i++) {
		float *x = rows[i]->to[0], *y = rows[i]->to[1];
		*y = (float)rows[i]->number;
		for (int c = 0; c < IN; c++)
			x[c] = (float)(c + 1) / (float)(rows[i]->number + 1);
	}
	return 0;
}

static yoke_loader *loader_of_test;
static void with_loader(struct yoke_fit *f)
{
	f->data = loader_of_test;
}

static void test_loader(void)
{
	const struct yoke_field fields[] = {
		{ .size = sizeof *fields,
		  .name = "x",
		  .dtype = yoke_f32,
		  .rank = 1,
		  .dims = { IN } },
		{ .name = "y", .dtype = yoke_f32, .rank = 1, .dims = { 1 } }
	};
	const struct yoke_dataset_options o = { .size = sizeof o,
						.name = "made rows",
						.count = 12,
						.fields = 2,
						.field = fields,
						.read = read_rows,
						.fingerprint = 0x1234 };
	yoke_dataset *set = yoke_dataset_new(&o);
	struct run r = { .out = "loader",
			 .steps = STEPS,
			 .loader = yoke_loader_new(set, "batch=4 workers=0") };
	loader_of_test = r.loader;
	char fingerprint[24];
	snprintf(fingerprint, sizeof fingerprint, "%016llx",
		 (unsigned long long)yoke_dataset_fingerprint(set));
	bool good = r.loader && fit(&r, with_loader) == 0;
	struct yk_view *v = view_of("loader");
	good = good && v && !strcmp(setting(v, "data"), "made rows") &&
	       !strcmp(setting(v, "batch"), "4") && !strcmp(yk_view_field(v, "data"), fingerprint);
	good = good && value(v, "train", "data_read_s", STEPS - 1) >= 0 &&
	       value(v, "train", "data_errors", STEPS - 1) == 0;
	good = good && value(v, "memory", "epoch", 1) == 1 &&
	       yk_view_step(yk_view_table(v, "memory"), 1) <= 4;
	ok(good, "the data set is named, and its loader's times are recorded: %s", yoke_error());
	yk_view_close(v);
	yoke_loader_free(r.loader);
	yoke_dataset_free(set);
	yoke_error_clear();
}

// ---- ends ----

static void with_signals(struct yoke_fit *f)
{
	f->signals = 1;
}

static void endless(struct yoke_fit *f)
{
	f->steps = 0;
	f->steps_expected = 5;
}

static void test_end(struct run r, void (*change)(struct yoke_fit *), int code, const char *how,
		     int64_t steps)
{
	const int err = fit(&r, change);
	struct yk_view *v = view_of(r.out);
	const json_t *error =
		v ? json_object_get(json_object_get(v->about, "ended"), "error") : NULL;
	const bool told =
		code ? strlen(json_string_value(error)) > 0 : error && !*json_string_value(error);
	ok(err == code && v && v->state == YK_VIEW_ENDED && !strcmp(how_of(v), how) &&
		   has_event(v, how, yk_view_last_step(v)) && told &&
		   (!steps || json_integer_value(json_object_get(v->about, "steps")) == steps),
	   "%s: code %d, ended '%s'", r.out, err, v ? how_of(v) : "");
	yk_view_close(v);
	yoke_error_clear();
}

static void test_ends(void)
{
	test_end((struct run){ .out = "end-log", .steps = 50, .ends_at = 3 }, NULL, 0, "stopped",
		 50);
	test_end((struct run){ .out = "end-last", .steps = 3, .ends_at = 3 }, NULL, 0, "done", 3);
	test_end((struct run){ .out = "end-signal", .steps = 1000000, .raises_at = 3 },
		 with_signals, 0, "SIGTERM", 0);
	test_end((struct run){ .out = "end-stop", .steps = 50, .stop = SIGINT }, NULL, 0, "SIGINT",
		 50);
	test_end((struct run){ .out = "end-failed", .steps = 50, .fails_at = 5 }, NULL, YOKE_EIO,
		 "failed", 50);
	test_end((struct run){ .out = "end-unknown", .ends_at = 4 }, endless, 0, "stopped", 5);
}

static void refuse(struct yoke_fit *f)
{
	f->config = "[1]";
}

static void refuse_telemetry(struct yoke_fit *f)
{
	f->telemetry = 1e-9;
}

static void test_refused(void)
{
	struct run r = { .out = "refused", .steps = 2 };
	bool good = fit(&r, refuse) == YOKE_EINVAL;
	yoke_error_clear();
	good = good && fit(&r, refuse_telemetry) == YOKE_EINVAL && access("refused", F_OK) != 0;
	ok(good, "settings that are no object, an interval below a millisecond: %s", yoke_error());
	yoke_error_clear();
}

// A child that the program forked, such as a worker that reads data, does not keep the run alive.
static void test_forked(void)
{
	struct run r = { .out = "forked", .steps = 4, .child = -1 };
	bool good = fit(&r, NULL) == 0 && r.child > 0;
	struct yk_view *v = view_of("forked");
	ok(good && v && v->state == YK_VIEW_ENDED && !yk_dir_locked("forked"),
	   "a run has ended though a forked process remains");
	yk_view_close(v);
	if (r.child > 0) {
		kill(r.child, SIGKILL);
		waitpid(r.child, NULL, 0);
	}
}

static void with_resume(struct yoke_fit *f)
{
	f->resume = 1;
}

// Trains in a child that is killed after step 6, whose last checkpoint has step 4; then resumes.
static void test_killed(void)
{
	int ends[2];
	char byte;
	struct run r = { .out = "killed", .steps = STEPS, .waits_at = 6 };
	if (pipe(ends) != 0)
		return;
	fflush(stdout);
	const pid_t pid = fork(); // first of all: the library has no threads yet
	if (pid == 0) {
		r.ready = ends[1];
		fit(&r, NULL);
		_exit(0);
	}
	close(ends[1]);
	if (pid < 0 || read(ends[0], &byte, 1) != 1) {
		ok(false, "the child did not train");
		return;
	}
	close(ends[0]);
	struct yk_view *v = view_of("killed");
	ok(v && v->state == YK_VIEW_LIVE && has_steps(v, 1, 6), "a run in progress is alive");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	yk_view_poll(v);
	ok(v && v->state == YK_VIEW_LOST && !json_object_get(v->about, "ended"),
	   "a killed run is lost");
	yk_view_close(v);
	r = (struct run){ .out = "killed", .steps = STEPS };
	const int err = fit(&r, with_resume);
	v = view_of("killed");
	bool good = err == 0 && r.n == STEPS - 4 && v && has_steps(v, 1, STEPS) &&
		    has_event(v, "resumed", 4) && v->state == YK_VIEW_ENDED;
	for (size_t i = 4; i < STEPS && good; i++)
		good = value(v, "train", "loss", i) == r.step[i - 4].loss;
	ok(good, "the resumed run replaces the lines of the steps that it repeats: %s",
	   yoke_error());
	yk_view_close(v);
}

// ---- ranks ----

static int rank_main(yoke_group *world, void *arg)
{
	struct run r = { .out = arg, .steps = 4 };
	const int err = fit(&r, many);
	const bool leads = yoke_group_rank(world) == 0;
	return err ? err : leads == (r.step[0].run != NULL) ? 0 : YOKE_EINVAL;
}

static void test_ranks(void)
{
	const int err = yoke_group_run(2, NULL, rank_main, (void *)(uintptr_t) "ranks");
	struct yk_view *v = view_of("ranks");
	ok(!err && v && has_steps(v, 1, 4) && value(v, "train", "ranks", 3) == 2 &&
		   !strcmp(setting(v, "ranks"), "2") && yk_view_table(v, "telemetry.1"),
	   "two ranks write one record, and each its telemetry: %s", yoke_error());
	yk_view_close(v);
}

int main(int argc, char **argv)
{
	if (argc == 3) {
		struct run r = { .out = argv[2],
				 .steps = strcmp(argv[1], "run") ? 1000000000 : 40 };
		const int err = fit(&r, many);
		if (err)
			fprintf(stderr, "%s\n", yoke_error());
		return err != 0;
	}
	tap_folder();
	setenv("YOKE_CPU_DEVICES", "2", 1); // for ranks
	test_killed();
	test_numbers();
	test_own_values();
	test_loader();
	test_ends();
	test_refused();
	test_forked();
	test_ranks();
	return done();
}
