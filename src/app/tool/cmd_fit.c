// SPDX-License-Identifier: Apache-2.0
// yoke fit: fits a pipeline to cubes and trains it. yoke apply: writes the results of its nodes for
// cubes to files.
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/stop.h"
#include "fit/pipeline_context.h"
#include "formats/image.h"
#include "tool/fit_config.h"
#include "tool/fit_maps.h"
#include "tool/tool.h"
#include "train/progress.h"
#include "yoke-cube.h"

enum { PATH = 4096 };

static const char states[] = "pipeline.safetensors", configuration[] = "pipeline.json";

// ---- progress ----

// A progress line on a terminal, redrawn in place.
struct bar {
	bool terminal, drawn;
	double last;
	char stage[16];
	int64_t round, first; // round, and the amount that was done when its timing began
	double began;
};

static void draw(struct bar *b, const struct yoke_fitting_progress *x)
{
	const double now = yk_seconds();
	if (!b->terminal)
		return;
	if (strcmp(b->stage, x->stage) || b->round != x->round || x->done < b->first) {
		snprintf(b->stage, sizeof b->stage, "%s", x->stage);
		b->round = x->round;
		b->first = x->done;
		b->began = now;
	}
	if (now - b->last < 0.2 && x->done < x->all)
		return;
	b->last = now;
	b->drawn = true;
	fprintf(stderr, "\r%-6s %" PRId64, x->stage, x->round);
	if (x->rounds)
		fprintf(stderr, "/%" PRId64, x->rounds);
	fprintf(stderr, "  %" PRId64 "/%" PRId64, x->done, x->all);
	if (!isnan(x->loss))
		fprintf(stderr, "  loss %.4g", x->loss);
	if (x->done > b->first && now > b->began) {
		const bool is_trained = !strcmp(x->stage, "train");
		const double rate = (double)(x->done - b->first) / (now - b->began);
		const int64_t left =
			x->all - x->done +
			(is_trained && x->rounds > x->round ? (x->rounds - x->round) * x->all : 0);
		char go[32];
		yk_progress_time(go, sizeof go, (double)left / rate);
		fprintf(stderr, "  %.3g %s/s  ETA %s", rate, is_trained ? "batches" : "cubes", go);
	}
	fputs("\033[K", stderr);
}

static void clear(struct bar *b)
{
	if (b->drawn)
		fputs("\r\033[K", stderr);
	b->drawn = false;
}

// ---- fit ----

struct part {
	int64_t first, count;
	yoke_dataset *set; // NULL: empty
};

// Collects the samples of one split into a contiguous range.
static int take_part(const struct yk_fit_config *c, int which, struct part *to)
{
	double from = 0;
	for (int i = 0; i < which; i++)
		from += c->split[i];
	to->first = llround(from * (double)c->samples);
	to->count = llround((from + c->split[which]) * (double)c->samples) - to->first;
	to->set = to->count > 0 ? yoke_dataset_subset(c->set, to->first, to->count, NULL) : NULL;
	return to->count > 0 && !to->set ? yk_error_last() : 0;
}

// State of a run from start to end.
struct watch {
	struct bar bar;
	struct yk_stop stop;
	struct {
		char stage[16], *text; // last line of losses and metrics per stage
	} line[3];
};

static void on_progress(void *arg, const struct yoke_fitting_progress *x)
{
	draw(&((struct watch *)arg)->bar, x);
}

static int on_stop(void *arg)
{
	return atomic_load(&((struct watch *)arg)->stop.signal);
}

// Called on a separate thread.
static void on_signal(void *arg, int signal, bool again)
{
	(void)arg;
	fprintf(stderr, "%s%s%s\n", isatty(STDERR_FILENO) ? "\n" : "", yk_stop_name(signal),
		again ? " again: exits now" :
			": finishing the batch and saving; a second signal exits at once");
}

// Keeps the last line of each stage, for the final output.
static void on_line(void *arg, const char *stage, int64_t step, int n, const char *const *name,
		    const double *value)
{
	struct watch *w = arg;
	char *text = NULL;
	size_t bytes;
	int k = 0;
	FILE *f = open_memstream(&text, &bytes);
	while (k < 2 && *w->line[k].stage && strcmp(w->line[k].stage, stage))
		k++;
	if (!f)
		return;
	fprintf(f, "%-12sstep %" PRId64, stage, step);
	for (int i = 0; i < n; i++)
		if (strcmp(name[i], "epoch"))
			fprintf(f, isnan(value[i]) ? "  %s n/a" : "  %s %.6g", name[i], value[i]);
	fclose(f);
	snprintf(w->line[k].stage, sizeof w->line[k].stage, "%s", stage);
	free(w->line[k].text);
	w->line[k].text = text;
}

static void print_lines(struct watch *w)
{
	for (int k = 0; k < 3; k++) {
		if (w->line[k].text)
			puts(w->line[k].text);
		free(w->line[k].text);
	}
}

static int made(void *run, const char *path)
{
	return yoke_run_artifact(run, path);
}

static bool has_maps(const yoke_pipeline *p)
{
	return p->plan.monitors & YK_MONITOR_MAPS;
}

// Formats of the maps of the last node.
static const char *map_formats(const yoke_pipeline *p)
{
	return yk_png_writes() && p->node[p->last].channels == 1 ? "npy,png" : "npy";
}

// The cubes for which maps are written: the validation cubes or, if there are none, the training
// cubes.
static const struct part *mapped(const struct part part[3])
{
	return part[1].count > 0 ? &part[1] : &part[0];
}

// Checks, before anything is written, that the maps can be written.
static int check_maps(const struct yk_fit_config *c, const yoke_pipeline *p, const char *out,
		      const struct part part[3], bool overwrite)
{
	const struct part *of = mapped(part);
	struct yk_file_list to = { .path = NULL };
	char folder[PATH];
	int err = 0;
	yk_out_path(folder, out, "maps");
	for (int64_t i = 0; i < of->count && !err; i++)
		err = yk_fit_maps_paths(c, p, of->first + i, folder, "", map_formats(p), &to);
	if (!err)
		err = yk_out_check(&to, &c->read, overwrite);
	yk_file_list_fini(&to);
	return err;
}

static int write_maps(const struct yk_fit_config *c, yoke_pipeline *p, yoke_run *run,
		      const char *out, const struct part part[3])
{
	const struct part *of = mapped(part);
	char folder[PATH];
	yk_out_path(folder, out, "maps");
	int err = yk_dir_make(folder);
	for (int64_t i = 0; i < of->count && !err; i++)
		err = yk_fit_maps(c, p, of->first + i, folder, "", map_formats(p), made, run);
	return err;
}

// ---- a run ----

// Arguments of `yoke fit`, and the objects created from them.
struct fitting {
	struct yk_fit_config *c;
	const char *out;
	bool resume, overwrite;
	yoke_pipeline *p;
	struct part part[3];
	const struct part *by, *valid; // cubes to which nodes are fitted; cubes for validation
	int64_t done; // steps of the resumed run whose states are loaded; 0: a new run
};

static bool is_trained(const yoke_pipeline *p)
{
	return p->plan.losses && p->plan.keys.max_epochs;
}

// If the split leaves no cubes for training, nodes are fitted to the validation cubes. If it leaves
// no cubes for validation, a pipeline that is not trained gets its metrics from the cubes to which
// it is fitted.
static int choose_cubes(struct fitting *f)
{
	int err = 0;
	for (int i = 0; i < 3 && !err; i++)
		err = take_part(f->c, i, &f->part[i]);
	f->by = &f->part[0];
	f->valid = &f->part[1];
	if (err)
		return err;
	if (!f->by->set && is_trained(f->p))
		return yk_fail(
			YOKE_EINVAL,
			"data: split: leaves no sample for training; increase its first number, or "
			"set trainer.max_epochs=0 to fit the nodes to the other samples");
	for (int i = 1; i < 3 && !f->by->set; i++)
		f->by = &f->part[i];
	const bool none = f->p->plan.metrics && !f->part[1].set && !f->part[2].set;
	if (none && !is_trained(f->p))
		f->valid = f->by;
	else if (none)
		yk_warn("fit",
			"metrics: not computed, because data.split leaves no cube for validation");
	return 0;
}

static struct yoke_training training_of(const struct fitting *f)
{
	return (struct yoke_training){ .size = sizeof(struct yoke_training),
				       .train = f->by->set,
				       .valid = f->valid->set,
				       .loader = f->c->loader,
				       .folder = f->out,
				       .resume = f->done > 0,
				       .test = f->part[2].set };
}

// Checks that need no computation and write nothing.
static int prepare(struct fitting *f)
{
	int err = choose_cubes(f);
	const struct yoke_training training = training_of(f);
	if (!err)
		err = yk_training_check(f->p, &training);
	if (!err)
		err = yk_out_run(f->out, f->c->path, f->resume, f->overwrite, &f->resume);
	if (!err && has_maps(f->p))
		err = check_maps(f->c, f->p, f->out, f->part, f->overwrite || f->resume);
	return err;
}

// Runs both phases; returns 1 if a signal ended them.
static int phases(struct fitting *f, yoke_run *run, struct watch *w)
{
	struct yoke_pipeline_stats s = { .size = sizeof s };
	const struct yoke_fitting fitting = { .size = sizeof fitting,
					      .set = f->by->set,
					      .loader = f->c->loader,
					      .folder = f->out,
					      .resume = f->resume,
					      .progress = on_progress,
					      .arg = w,
					      .stop = on_stop };
	struct yoke_training training = training_of(f);
	training.run = run;
	training.progress = on_progress;
	training.arg = w;
	training.stop = on_stop;
	training.logged = on_line;
	double began = yk_seconds();
	int err = f->done ? 0 : yoke_pipeline_fit_as(f->p, &fitting);
	clear(&w->bar);
	if (!err && !f->done) {
		yoke_pipeline_stats(f->p, &s);
		printf("statistics  %.2f s, %d %s over %" PRId64 " %s\n", yk_seconds() - began,
		       s.passes, s.passes == 1 ? "pass" : "passes", f->by->count,
		       f->by->count == 1 ? "cube" : "cubes");
	}
	began = yk_seconds();
	if (!err)
		err = yoke_pipeline_train(f->p, &training);
	clear(&w->bar);
	if (!err)
		printf("training    %.2f s\n", yk_seconds() - began);
	return err;
}

// Returns 1 if a signal ended the run.
static int run_parts(struct fitting *f, yoke_run *run, struct watch *w)
{
	const bool recorded = f->p->plan.monitors & YK_MONITOR_METRICS;
	int err = phases(f, recorded ? run : NULL, w);
	const int64_t skipped = yoke_dataset_cubes_skipped(f->c->files ? f->c->files : f->c->set);
	if (skipped)
		printf("skipped     %" PRId64 " pixels with non-finite values\n", skipped);
	print_lines(w);
	if (!err && f->p->plan.metrics && (f->by != &f->part[0] || f->valid == f->by))
		printf("            the metrics are computed on the cubes to which the nodes are "
		       "fitted\n");
	return !err && has_maps(f->p) ? write_maps(f->c, f->p, run, f->out, f->part) : err;
}

// Saves the results of a run, unless a signal ended it; then only the checkpoint remains.
static int finish(struct fitting *f, yoke_run *run, int signal)
{
	char path[PATH];
	int err = 0;
	yk_out_path(path, f->out, states);
	yk_file_sweep(path);
	if (signal)
		printf("%s: saved in %s; resume=1 continues\n", yk_stop_name(signal), f->out);
	else if ((err = yoke_pipeline_save(f->p, path)) == 0)
		yoke_run_artifact(run, path);
	return err;
}

static int run(struct fitting *f, struct watch *w)
{
	char path[PATH], *text = json_dumps(f->c->root, JSON_COMPACT);
	const struct yoke_run_options o = { .size = sizeof o,
					    .config = text,
					    .data = yoke_dataset_fingerprint(f->c->set),
					    .step = f->done,
					    .tensorboard =
						    f->p->plan.monitors & YK_MONITOR_TENSORBOARD };
	yoke_run *run = yoke_run_open(f->out, &o);
	int err = run ? 0 : yk_error_last(), signal = 0;
	if (!err && !f->resume)
		yk_out_clear(f->out);
	yk_out_path(path, f->out, configuration);
	yk_file_sweep(path); // left by a killed run
	if (!err)
		err = yk_json_save(path, f->c->root);
	if (!err)
		err = run_parts(f, run, w);
	if (err > 0) {
		signal = atomic_load(&w->stop.signal);
		err = 0;
	}
	if (!err)
		err = finish(f, run, signal);
	yoke_run_close(run,
		       err    ? "failed" :
		       signal ? yk_stop_name(signal) :
				"done",
		       err ? yoke_error() : NULL);
	free(text);
	return err;
}

static int fit(struct yk_fit_config *c, const char *out, bool resume, bool overwrite)
{
	struct fitting f = { .c = c, .out = out, .resume = resume, .overwrite = overwrite };
	struct watch w = { .bar = { .terminal = isatty(STDERR_FILENO) } };
	int err = yk_stop_begin(&w.stop, on_signal, NULL); // before any thread is created
	if (err)
		return err;
	err = yk_fit_config_data(c);
	yoke_context *ctx = err ? NULL : yk_fit_config_context(c),
		     *before = ctx ? yoke_use(ctx) : NULL;
	f.p = ctx ? yk_fit_config_pipeline(c) : NULL;
	if (!err)
		err = f.p ? prepare(&f) : yk_error_last();
	if (!err && f.resume)
		f.done = yoke_pipeline_resume(f.p, out);
	if (!err)
		err = f.done < 0 ? (int)f.done : run(&f, &w);
	for (int i = 0; i < 3; i++)
		yoke_dataset_free(f.part[i].set);
	yoke_pipeline_free(f.p);
	if (ctx)
		yoke_use(before);
	yoke_context_free(ctx);
	yk_stop_end(&w.stop);
	return err;
}

// Parses the arguments key=value after the first. `own` lists the command's keys with the
// destinations of their values.
struct own {
	const char *key;
	const char **to;
};

static int arguments(struct yk_fit_config *c, int argc, char **argv, const struct own *own, int n)
{
	int err = 0;
	for (int i = 2; i < argc && !err; i++) {
		int k = 0;
		const size_t length = strcspn(argv[i], "=");
		while (k < n &&
		       (strlen(own[k].key) != length || strncmp(argv[i], own[k].key, length)))
			k++;
		if (k < n && argv[i][length] == '=')
			*own[k].to = argv[i] + length + 1;
		else
			err = yk_fit_config_set(c, argv[i]);
	}
	return err;
}

static int flag(const char *key, const char *value)
{
	return !strcmp(value, "0") || !strcmp(value, "1") ?
		       0 :
		       yk_fail(YOKE_EINVAL, "%s=%s: must be 0 or 1", key, value);
}

int yk_cmd_fit(int argc, char **argv)
{
	struct yk_fit_config c = { .root = NULL };
	const char *out = NULL, *resume = "0", *overwrite = "0";
	const struct own own[] = { { "out", &out },
				   { "resume", &resume },
				   { "overwrite", &overwrite } };
	if (argc < 2)
		return yk_usage("fit", "needs a pipeline file and out=FOLDER; further keys "
				       "override those of the file");
	int err = yk_fit_config_load(&c, argv[1]);
	if (!err)
		err = arguments(&c, argc, argv, own, 3);
	if (!err)
		err = flag("resume", resume);
	if (!err)
		err = flag("overwrite", overwrite);
	if (!err && !out)
		err = yk_fail(YOKE_EINVAL, "give out=, the folder of the run");
	if (!err)
		err = yk_fit_config_failed(&c, fit(&c, out, *resume == '1', *overwrite == '1'));
	yk_fit_config_fini(&c);
	return err ? yk_failed("fit") : YK_DONE;
}

// ---- apply ----

// Arguments of `yoke apply`.
struct applying {
	struct yk_fit_config *c;
	const char *run, *out, *nodes, *format;
	bool overwrite;
};

// Checks that all result files may be written.
static int check_results(const struct applying *a, const yoke_pipeline *p)
{
	struct yk_file_list to = { .path = NULL };
	int err = 0;
	for (int64_t i = 0; i < a->c->samples && !err; i++)
		err = yk_fit_maps_paths(a->c, p, i, a->out, a->nodes, a->format, &to);
	if (!err)
		err = yk_out_check(&to, &a->c->read, a->overwrite);
	yk_file_list_fini(&to);
	return err;
}

// ESHAPE: the cubes and the pipeline differ in the number of bands.
static int check_bands(const struct applying *a, const yoke_pipeline *p)
{
	struct yk_set_fields f;
	int64_t bands;
	int err = yk_set_fields(a->c->set, "apply", &f, &bands);
	if (!err)
		yk_fit_varying_begin(&f);
	return err || bands == p->channels ?
		       err :
		       yk_fail(YOKE_ESHAPE,
			       "%s has %" PRId64
			       " bands, but the pipeline of %s is fitted to %" PRId64
			       "; bands= can select the matching ones",
			       a->c->file ? a->c->file[0] : "data.synthetic", bands, a->run,
			       p->channels);
}

static int apply(struct applying *a, const char *config)
{
	char path[PATH];
	int err = yk_fit_config_data(a->c);
	yoke_context *ctx = err ? NULL : yk_fit_config_context(a->c),
		     *before = ctx ? yoke_use(ctx) : NULL;
	yoke_pipeline *p = ctx ? yk_fit_config_pipeline(a->c) : NULL;
	yk_out_path(path, a->run, states);
	if (!err)
		err = p ? yoke_pipeline_load(p, path) : yk_error_last();
	if (!err)
		err = check_bands(a, p);
	if (!err && (err = yk_file_list_add(&a->c->read, path)) == 0)
		err = yk_file_list_add(&a->c->read, config);
	if (!err)
		err = check_results(a, p);
	if (!err)
		err = yk_dir_make(a->out);
	for (int64_t i = 0; i < a->c->samples && !err; i++)
		err = yk_fit_maps(a->c, p, i, a->out, a->nodes, a->format, NULL, NULL);
	yoke_pipeline_free(p);
	if (ctx)
		yoke_use(before);
	yoke_context_free(ctx);
	return err;
}

int yk_cmd_apply(int argc, char **argv)
{
	struct yk_fit_config c = { .root = NULL };
	struct applying a = { .c = &c, .nodes = "", .format = "hdr" };
	const char *overwrite = "0";
	const struct own own[] = { { "out", &a.out },
				   { "nodes", &a.nodes },
				   { "format", &a.format },
				   { "overwrite", &overwrite } };
	char path[PATH];
	if (argc < 2)
		return yk_usage("apply", "needs the folder of a run and out=FOLDER; it accepts "
					 "data.cubes=, nodes=NAME,..");
	a.run = argv[1];
	yk_out_path(path, argv[1], configuration);
	int err = yk_fit_config_load(&c, path);
	yk_fit_config_cubes_alone(&c);
	if (!err)
		err = arguments(&c, argc, argv, own, 4);
	if (!err && (!a.out || strlen(a.nodes) > 500))
		err = yk_fail(YOKE_EINVAL, a.out ? "nodes= is too long" :
						   "give out=, the folder for the results");
	if (!err && strcmp(a.format, "hdr") && strcmp(a.format, "npy") && strcmp(a.format, "png"))
		err = yk_fail(YOKE_EINVAL, "format=%s: must be hdr, npy or png", a.format);
	if (!err)
		err = flag("overwrite", overwrite);
	a.overwrite = !strcmp(overwrite, "1");
	if (!err)
		err = yk_fit_config_failed(&c, apply(&a, path));
	yk_fit_config_fini(&c);
	return err ? yk_failed("apply") : YK_DONE;
}
