// SPDX-License-Identifier: Apache-2.0
// Checkpoints of phase 2: states.EPOCH and optimizer.EPOCH, both safetensors, and checkpoint.json.

#include "config.h"

#include "fit/resume.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

enum { PATH = 4096 };

static void path_of(char to[PATH], const char *folder, const char *what, int64_t epoch)
{
	if (epoch < 0)
		snprintf(to, PATH, "%.3900s/%s", folder, what);
	else
		snprintf(to, PATH, "%.3900s/%s.%" PRId64 ".safetensors", folder, what, epoch);
}

// What checkpoint.json says; epoch 0: there is none.
static int read_place(const char *folder, int64_t *epoch, int64_t *step)
{
	char path[PATH];
	*epoch = *step = 0;
	path_of(path, folder, "checkpoint.json", -1);
	if (access(path, F_OK) && errno == ENOENT)
		return 0;
	json_t *j = yk_json_load(path);
	int err = j ? yk_json_int(j, path, "epoch", 1, INT64_MAX - 1, epoch) : yk_error_last();
	if (!err)
		err = yk_json_int(j, path, "step", 0, INT64_MAX - 1, step);
	if (j)
		json_decref(j);
	return err;
}

int yk_fit_checkpoint(const yoke_pipeline *p, yoke_optim *o, const char *folder, int64_t epoch, int64_t step)
{
	char path[PATH];
	int64_t before, steps;
	int err = read_place(folder, &before, &steps);
	path_of(path, folder, "states", epoch);
	yk_file_sweep(path); // a save that was killed was of the same epoch
	if (!err)
		err = yoke_pipeline_save(p, path);
	path_of(path, folder, "optimizer", epoch);
	yk_file_sweep(path);
	if (!err)
		err = yoke_optim_save(o, path);
	json_t *j = err ? NULL : json_pack("{s:I, s:I}", "epoch", (json_int_t)epoch, "step", (json_int_t)step);
	path_of(path, folder, "checkpoint.json", -1);
	yk_file_sweep(path);
	if (!err)
		err = j ? yk_json_save(path, j) : yk_fail(YOKE_ENOMEM, "no memory for %s", path);
	if (j)
		json_decref(j);
	if (err || !before || before == epoch)
		return err;
	path_of(path, folder, "states", before);
	unlink(path);
	path_of(path, folder, "optimizer", before);
	unlink(path);
	return 0;
}

int yk_fit_resume(yoke_optim *o, const char *folder, int64_t *epoch, int64_t *step)
{
	char path[PATH];
	int err = read_place(folder, epoch, step);
	path_of(path, folder, "optimizer", *epoch);
	return err || !*epoch ? err : yoke_optim_load(o, path);
}

int64_t yoke_pipeline_resume(yoke_pipeline *p, const char *folder)
{
	char path[PATH];
	int64_t epoch, step;
	int err = read_place(folder, &epoch, &step);
	path_of(path, folder, "states", epoch);
	if (!err && epoch)
		err = yoke_pipeline_load(p, path);
	return err ? err : step;
}
