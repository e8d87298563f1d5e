// SPDX-License-Identifier: Apache-2.0
// Writes the files in a run's directory that describe it.
#include "config.h"

#include "train/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "graph/context.h"
#include "observe/kernels.h"

int yk_run_record_begin(struct yk_run *r, const struct yk_config *c)
{
	const struct yk_device *d = yk_current()->device;
	const struct yk_trainer *t = r->trainer;
	json_t *config = yk_config_json(c);
	if (!config)
		return yoke_error_code();
	const struct yk_runs_options o = {
		.device = d->id, .driver = d->info.driver, .config = config, .locked = true,
		.data = yk_data_fingerprint(t->feed.data), .step = t->replica.step,
		.tensorboard = !strcmp(yk_config_str(c, YK_KEY_tensorboard), "1"),
	};
	r->record = yk_runs_open(r->out, &o);
	json_decref(config);
	if (!r->record)
		return yoke_error_code();
	yk_runs_set(r->record, "steps", json_integer((json_int_t)t->steps));
	yk_runs_set(r->record, "parameters", json_integer((json_int_t)t->replica.net->params.elements));
	yk_runs_event(r->record, t->replica.step, t->replica.step > 0 ? "resumed" : "started", d->id);
	return 0;
}

void yk_run_record_device(struct yk_run *r, const char *why)
{
	const struct yk_device *d = yk_current()->device;
	yk_runs_event(r->record, r->logged > 0 ? r->logged : 0, "device lost", why);
	yk_runs_truncate(r->record, r->trainer->replica.step); // remove lines of steps that will be repeated
	yk_runs_set(r->record, "device", json_string(d->id));
	yk_runs_set(r->record, "driver", json_string(d->info.driver));
	yk_runs_event(r->record, r->trainer->replica.step, "goes on", d->id);
}

void yk_run_record_saved(struct yk_run *r, double seconds)
{
	char text[48];
	yk_snprintf(text, sizeof text, "%.3f s", seconds);
	yk_runs_event(r->record, r->trainer->replica.step, "saved", text);
}

void yk_run_record_best(struct yk_run *r, double seconds)
{
	char text[96];
	yk_snprintf(text, sizeof text, "val_loss %.6g, in %.3f s", r->kept.loss, seconds);
	yk_runs_event(r->record, r->kept.step, "best", text);
	yk_runs_set(r->record, "best", json_pack("{s:I, s:f}", "step", (json_int_t)r->kept.step, "val_loss", r->kept.loss));
}

void yk_run_record_early(struct yk_run *r)
{
	char text[160];
	yk_run_early_text(r, text, sizeof text);
	yk_runs_event(r->record, r->trainer->replica.step, "stopped early", text);
	yk_runs_set(r->record, "reason", json_string(text));
}

void yk_run_record_profile(struct yk_run *r, const char *trace)
{
	char path[4096];
	json_t *kernels = yk_profile_kernels(r->profile);
	struct yk_error_aside *aside = yk_error_aside();
	yoke_run_artifact(r->record, trace);
	snprintf(path, sizeof path, "%s/kernels.json", r->out);
	if (kernels && yk_json_save(path, kernels) == 0)
		yoke_run_artifact(r->record, path);
	json_decref(kernels);
	yoke_error_clear();
	yk_error_back(aside);
}

void yk_run_record_end(struct yk_run *r, const char *ended, int code)
{
	char path[4096];
	if (!r->record)
		return;
	const int64_t step = r->trainer ? r->trainer->replica.step : r->state.step;
	if (code < 0) {
		char text[2048];
		snprintf(text, sizeof text, "%s: %s", yoke_error_name(code), yoke_error());
		yk_runs_event(r->record, step, ended, text);
	} else {
		yk_runs_event(r->record, step, ended, "");
	}
	if (r->saved >= 0) {
		struct yk_error_aside *aside = yk_error_aside();
		snprintf(path, sizeof path, "%s/manifest.json", r->out);
		yoke_run_artifact(r->record, path);
		yoke_error_clear();
		yk_error_back(aside);
	}
	yoke_run_close(r->record, ended, code < 0 ? yoke_error() : NULL);
	r->record = NULL;
}
