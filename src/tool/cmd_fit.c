// SPDX-License-Identifier: Apache-2.0
// yoke fit: a pipeline is fitted by cubes, and trained; yoke apply: its nodes' results for cubes, as files.
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "tool/fit_config.h"
#include "tool/tool.h"
#include "yoke-cube.h"

enum { PATH = 4096 };

static const char states[] = "pipeline.safetensors", configuration[] = "pipeline.json";

static void in(char path[PATH], const char *folder, const char *file)
{
	snprintf(path, PATH, "%.3000s/%.1000s", folder, file);
}

// ---- fit ----

// The samples of a part of the split, one behind another; NULL: it has none, or an error.
static yoke_dataset *part(const struct yk_fit_config *c, int which)
{
	double from = 0;
	for (int i = 0; i < which; i++)
		from += c->split[i];
	const int64_t first = llround(from * (double)c->samples), last = llround((from + c->split[which]) * (double)c->samples);
	return last > first ? yoke_dataset_subset(c->set, first, last - first, NULL) : NULL;
}

static int fit_phases(const struct yk_fit_config *c, yoke_pipeline *p, yoke_run *run)
{
	struct yoke_pipeline_stats s = { .size = sizeof s };
	yoke_dataset *train = part(c, 0), *valid = part(c, 1);
	int err = train ? 0 : yoke_error_code() ? yk_error_last() : yk_fail(YOKE_EINVAL, "data: split: no sample is left to train by");
	double began = yk_seconds();
	if (!err && !valid && yoke_error_code())
		err = yk_error_last();
	if (!err)
		err = yoke_pipeline_fit(p, train, c->loader);
	if (!err) {
		yoke_pipeline_stats(p, &s);
		printf("statistics  %.2f s, %d %s over %" PRId64 " cubes\n", yk_seconds() - began, s.passes, s.passes == 1 ? "pass" : "passes",
		       yoke_dataset_count(train));
		const struct yoke_training o = { .size = sizeof o, .train = train, .valid = valid, .loader = c->loader, .run = run };
		began = yk_seconds();
		err = yoke_pipeline_train(p, &o);
	}
	if (!err)
		printf("training    %.2f s\n", yk_seconds() - began);
	yoke_dataset_free(train);
	yoke_dataset_free(valid);
	return err;
}

static int fit(struct yk_fit_config *c, const char *out)
{
	char path[PATH];
	int err = yk_fit_config_data(c);
	yoke_pipeline *p = err ? NULL : yk_fit_config_pipeline(c);
	char *text = p ? json_dumps(c->root, JSON_COMPACT) : NULL;
	const struct yoke_run_options o = { .size = sizeof o, .config = text, .data = p ? yoke_dataset_fingerprint(c->set) : 0 };
	yoke_run *run = p ? yoke_run_open(out, &o) : NULL;
	if (!err && !run)
		err = yk_error_last();
	in(path, out, configuration);
	if (!err)
		err = yk_json_save(path, c->root);
	if (!err)
		err = fit_phases(c, p, run);
	in(path, out, states);
	if (!err && (err = yoke_pipeline_save(p, path)) == 0)
		yoke_run_artifact(run, path);
	yoke_run_close(run, err ? "failed" : "done", err ? yoke_error() : NULL);
	yoke_pipeline_free(p);
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
	const char *out = NULL;
	if (argc < 2)
		return yk_usage("fit", "takes a file with a pipeline, out=FOLDER, and keys over the file's");
	int err = yk_fit_config_load(&c, argv[1]);
	if (!err)
		err = arguments(&c, argc, argv, &(struct own){ "out", &out }, 1);
	if (!err && !out)
		err = yk_fail(YOKE_EINVAL, "give out=, the folder of the run");
	if (!err)
		err = fit(&c, out);
	yk_fit_config_fini(&c);
	return yk_finish("fit", err ? yk_failed("fit") : YK_DONE);
}

// ---- apply ----

static int write_result(yoke_pipeline *p, const char *node, yoke_tensor *x, const char *path)
{
	yoke_tensor *y = yoke_pipeline_apply(p, *node ? node : NULL, x);
	const int64_t n = y ? yoke_count(y) : 0;
	float *to = malloc(((size_t)n + 1) * sizeof *to);
	int err = !y ? yk_error_last() : to ? yoke_read(y, to, (size_t)n * sizeof *to) : yk_fail(YOKE_ENOMEM, "no memory for a result");
	if (!err) {
		const struct yoke_cube_info i = { .size = sizeof i, .lines = yoke_dim(y, 0), .samples = yoke_dim(y, 1),
						  .bands = yoke_dim(y, 2), .type = "f32", .interleave = "bip", .scale = 1,
						  .ignore = NAN };
		err = yoke_cube_write(path, &i, to);
	}
	free(to);
	return err;
}

static int apply_one(const struct yk_fit_config *c, yoke_pipeline *p, int64_t sample, const char *out, const char *nodes, const char *format)
{
	struct yoke_field f[3] = { { .size = sizeof *f } };
	const int n = yoke_dataset_fields(c->set, 3, f);
	void *to[3] = { NULL };
	char path[PATH], file[900], list[600];
	int err = 0;
	for (int k = 0; k < n; k++) {
		size_t bytes = yoke_dtype_size(f[k].dtype);
		for (int d = 0; d < f[k].rank; d++)
			bytes *= (size_t)f[k].dims[d];
		if (!(to[k] = malloc(bytes)))
			err = yk_fail(YOKE_ENOMEM, "no memory for a cube");
	}
	if (!err)
		err = yoke_dataset_read(c->set, sample, 0, 0, sample, to, NULL);
	snprintf(list, sizeof list, "%s", nodes);
	char *rest = list, *node;
	yoke_scope *s = yoke_scope_begin("apply");
	yoke_tensor *x = err ? NULL : yoke_from(yoke_f32, 3, f[0].dims, to[0]);
	while (!err && (node = strsep(&rest, ","))) {
		snprintf(file, sizeof file, "%.400s%s%.200s.%s", c->name[sample], *node ? "_" : "", node, format);
		in(path, out, file);
		err = write_result(p, node, x, path);
	}
	yoke_scope_end(s);
	for (int k = 0; k < n; k++)
		free(to[k]);
	return err;
}

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
	if (!err)
		err = arguments(&c, argc, argv, own, 3);
	if (!err && (!out || strlen(nodes) > 500))
		err = yk_fail(YOKE_EINVAL, out ? "nodes= is too long" : "give out=, the folder for the results");
	if (!err && strcmp(format, "hdr") && strcmp(format, "npy"))
		err = yk_fail(YOKE_EINVAL, "format=%s: must be hdr or npy", format);
	if (!err)
		err = yk_fit_config_data(&c);
	yoke_pipeline *p = err ? NULL : yk_fit_config_pipeline(&c);
	in(path, argv[1], states);
	if (!err)
		err = p ? yoke_pipeline_load(p, path) : yk_error_last();
	if (!err)
		err = yk_dir_make(out);
	for (int64_t i = 0; i < c.samples && !err; i++)
		err = apply_one(&c, p, i, out, nodes, format);
	yoke_pipeline_free(p);
	yk_fit_config_fini(&c);
	return yk_finish("apply", err ? yk_failed("apply") : YK_DONE);
}
