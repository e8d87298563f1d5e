// SPDX-License-Identifier: Apache-2.0
// yoke fit: a pipeline is fitted by cubes, and trained; yoke apply: its nodes' results for cubes, as files.
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
#include "fit/node.h"
#include "formats/image.h"
#include "tool/fit_config.h"
#include "tool/fit_maps.h"
#include "tool/tool.h"
#include "yoke-cube.h"

enum { PATH = 4096 };

static const char states[] = "pipeline.safetensors", configuration[] = "pipeline.json";

static void in(char path[PATH], const char *folder, const char *file)
{
	snprintf(path, PATH, "%.3000s/%.1000s", folder, file);
}

// ---- progress ----

// A line on a terminal, drawn over itself.
struct bar {
	bool terminal, drawn;
	double last;
};

static void draw(void *arg, const struct yoke_fitting_progress *x)
{
	struct bar *b = arg;
	const double now = yk_seconds();
	if (!b->terminal || (now - b->last < 0.2 && x->done < x->all))
		return;
	b->last = now;
	b->drawn = true;
	fprintf(stderr, "\r%-6s %" PRId64, x->stage, x->round);
	if (x->rounds)
		fprintf(stderr, "/%" PRId64, x->rounds);
	fprintf(stderr, "  %" PRId64 "/%" PRId64, x->done, x->all);
	if (!isnan(x->loss))
		fprintf(stderr, "  loss %.4g", x->loss);
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
	yoke_dataset *set; // NULL: there is none
};

// The samples of a part of the split, one behind another.
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

static int phases(const struct yk_fit_config *c, yoke_pipeline *p, yoke_run *run, const char *out, bool resume, int64_t done,
		  const struct part part[3])
{
	struct yoke_pipeline_stats s = { .size = sizeof s };
	struct bar bar = { .terminal = isatty(STDERR_FILENO) };
	const struct yoke_fitting fitting = { .size = sizeof fitting, .set = part[0].set, .loader = c->loader, .folder = out,
					      .resume = resume, .progress = draw, .arg = &bar };
	const struct yoke_training training = { .size = sizeof training, .train = part[0].set, .valid = part[1].set, .loader = c->loader,
						.run = run, .folder = out, .resume = done > 0, .test = part[2].set,
						.progress = draw, .arg = &bar };
	double began = yk_seconds();
	int err = yk_training_check(p, &training); // before any pass
	if (!err && !done)
		err = yoke_pipeline_fit_as(p, &fitting);
	clear(&bar);
	if (!err && !done) {
		yoke_pipeline_stats(p, &s);
		printf("statistics  %.2f s, %d %s over %" PRId64 " cubes\n", yk_seconds() - began, s.passes,
		       s.passes == 1 ? "pass" : "passes", part[0].count);
	}
	began = yk_seconds();
	if (!err)
		err = yoke_pipeline_train(p, &training);
	clear(&bar);
	if (!err)
		printf("training    %.2f s\n", yk_seconds() - began);
	return err;
}

static int made(void *run, const char *path)
{
	return yoke_run_artifact(run, path);
}

// Maps of scores of the validation's cubes, or else the training's.
static int write_maps(const struct yk_fit_config *c, yoke_pipeline *p, yoke_run *run, const char *out, const struct part part[3])
{
	const struct part *of = part[1].count > 0 ? &part[1] : &part[0];
	const bool picture = yk_png_writes() && p->node[p->last].channels == 1;
	char folder[PATH];
	in(folder, out, "maps");
	int err = yk_dir_make(folder);
	for (int64_t i = 0; i < of->count && !err; i++)
		err = yk_fit_maps(c, p, of->first + i, folder, "", picture ? "npy,png" : "npy", made, run);
	return err;
}

// done: steps of the run that is gone on with, with whose states the pipeline is fitted; 0: it begins.
static int fit_parts(const struct yk_fit_config *c, yoke_pipeline *p, yoke_run *run, const char *out, bool resume, int64_t done)
{
	struct part part[3] = { { .set = NULL } };
	int err = 0;
	for (int i = 0; i < 3 && !err; i++)
		err = take_part(c, i, &part[i]);
	if (!err && !part[0].set)
		err = yk_fail(YOKE_EINVAL, "data: split: no sample is left to train by");
	if (!err)
		err = phases(c, p, run, out, resume, done, part);
	const int64_t skipped = yoke_dataset_cubes_skipped(c->files ? c->files : c->set);
	if (skipped)
		printf("skipped     %" PRId64 " pixels that are not finite\n", skipped);
	if (!err && p->plan.monitors & YK_MONITOR_MAPS)
		err = write_maps(c, p, run, out, part);
	for (int i = 0; i < 3; i++)
		yoke_dataset_free(part[i].set);
	return err;
}

static int fit(struct yk_fit_config *c, const char *out, bool resume)
{
	char path[PATH];
	int err = yk_fit_config_data(c);
	yoke_context *ctx = err ? NULL : yk_fit_config_context(c), *before = ctx ? yoke_use(ctx) : NULL;
	yoke_pipeline *p = ctx ? yk_fit_config_pipeline(c) : NULL;
	const int64_t done = p && resume ? yoke_pipeline_resume(p, out) : 0;
	char *text = p ? json_dumps(c->root, JSON_COMPACT) : NULL;
	const struct yoke_run_options o = { .size = sizeof o, .config = text, .data = p ? yoke_dataset_fingerprint(c->set) : 0,
					    .step = done > 0 ? done : 0,
					    .tensorboard = p && p->plan.monitors & YK_MONITOR_TENSORBOARD };
	yoke_run *run = p && done >= 0 ? yoke_run_open(out, &o) : NULL;
	if (!err && !run)
		err = yk_error_last();
	in(path, out, "checkpoint.json");
	if (!err && !resume)
		unlink(path); // of a run before
	in(path, out, configuration);
	yk_file_sweep(path); // of a run that was killed
	if (!err)
		err = yk_json_save(path, c->root);
	if (!err)
		err = fit_parts(c, p, p->plan.monitors & YK_MONITOR_METRICS ? run : NULL, out, resume, done);
	in(path, out, states);
	yk_file_sweep(path);
	if (!err && (err = yoke_pipeline_save(p, path)) == 0)
		yoke_run_artifact(run, path);
	yoke_run_close(run, err ? "failed" : "done", err ? yoke_error() : NULL);
	yoke_pipeline_free(p);
	if (ctx)
		yoke_use(before);
	yoke_context_free(ctx);
	free(text);
	return err;
}

// key=value behind the first; `own` are the command's, each with its place for the text.
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
		while (k < n && (strlen(own[k].key) != length || strncmp(argv[i], own[k].key, length)))
			k++;
		if (k < n && argv[i][length] == '=')
			*own[k].to = argv[i] + length + 1;
		else
			err = yk_fit_config_set(c, argv[i]);
	}
	return err;
}

int yk_cmd_fit(int argc, char **argv)
{
	struct yk_fit_config c = { .root = NULL };
	const char *out = NULL, *resume = "0";
	const struct own own[] = { { "out", &out }, { "resume", &resume } };
	if (argc < 2)
		return yk_usage("fit", "takes a file with a pipeline, out=FOLDER, and keys over the file's");
	int err = yk_fit_config_load(&c, argv[1]);
	if (!err)
		err = arguments(&c, argc, argv, own, 2);
	if (!err && strcmp(resume, "0") && strcmp(resume, "1"))
		err = yk_fail(YOKE_EINVAL, "resume=%s: must be 0 or 1", resume);
	if (!err && !out)
		err = yk_fail(YOKE_EINVAL, "give out=, the folder of the run");
	if (!err)
		err = yk_fit_config_failed(&c, fit(&c, out, *resume == '1'));
	yk_fit_config_fini(&c);
	return yk_finish("fit", err ? yk_failed("fit") : YK_DONE);
}

// ---- apply ----

int yk_cmd_apply(int argc, char **argv)
{
	struct yk_fit_config c = { .root = NULL };
	const char *out = NULL, *nodes = "", *format = "hdr";
	const struct own own[] = { { "out", &out }, { "nodes", &nodes }, { "format", &format } };
	char path[PATH];
	if (argc < 2)
		return yk_usage("apply", "takes the folder of a run, out=FOLDER, data.cubes=, nodes=NAME,..");
	in(path, argv[1], configuration);
	int err = yk_fit_config_load(&c, path);
	yk_fit_config_cubes_alone(&c);
	if (!err)
		err = arguments(&c, argc, argv, own, 3);
	if (!err && (!out || strlen(nodes) > 500))
		err = yk_fail(YOKE_EINVAL, out ? "nodes= is too long" : "give out=, the folder for the results");
	if (!err && strcmp(format, "hdr") && strcmp(format, "npy") && strcmp(format, "png"))
		err = yk_fail(YOKE_EINVAL, "format=%s: must be hdr, npy or png", format);
	if (!err)
		err = yk_fit_config_failed(&c, yk_fit_config_data(&c));
	yoke_context *ctx = err ? NULL : yk_fit_config_context(&c), *before = ctx ? yoke_use(ctx) : NULL;
	yoke_pipeline *p = ctx ? yk_fit_config_pipeline(&c) : NULL;
	in(path, argv[1], states);
	if (!err)
		err = p ? yoke_pipeline_load(p, path) : yk_error_last();
	if (!err)
		err = yk_dir_make(out);
	for (int64_t i = 0; i < c.samples && !err; i++)
		err = yk_fit_maps(&c, p, i, out, nodes, format, NULL, NULL);
	yoke_pipeline_free(p);
	if (ctx)
		yoke_use(before);
	yoke_context_free(ctx);
	yk_fit_config_fini(&c);
	return yk_finish("apply", err ? yk_failed("apply") : YK_DONE);
}
