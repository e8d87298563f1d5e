// SPDX-License-Identifier: Apache-2.0
// Writes the files in a run's directory that describe it.
#include "config.h"

#include "train/run.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "graph/context.h"
#include "observe/kernels.h"

int yk_run_record_begin(struct yk_run *r, const struct yk_config *c)
{
	const struct yk_trainer *t = r->trainer;
	json_t *config = yk_config_json(c);
	if (!config)
		return yoke_error_code();
	const struct yk_records_options o = {
		.config = config,
		.data = yk_data_fingerprint(t->feed.data),
		.step = t->replica.step,
		.steps = t->steps,
		.parameters = t->replica.net->params.elements,
		.tensorboard = !strcmp(yk_config_str(c, YK_KEY_tensorboard), "1"),
	};
	r->record = yk_records_begin(r->out, &o);
	json_decref(config);
	return r->record ? 0 : yoke_error_code();
}

void yk_run_record_device(struct yk_run *r, const char *why)
{
	const struct yk_device *d = yk_current()->device;
	yk_runs_event(r->record, r->done.logged > 0 ? r->done.logged : 0, "device lost", why);
	// remove lines of steps that will be repeated
	yk_runs_truncate(r->record, r->trainer->replica.step);
	yk_runs_set(r->record, "device", json_string(d->id));
	yk_runs_set(r->record, "driver", json_string(d->info.driver));
	yk_runs_event(r->record, r->trainer->replica.step, "goes on", d->id);
}

void yk_run_record_best(struct yk_run *r, double seconds)
{
	char text[96];
	yk_snprintf(text, sizeof text, "val_loss %.6g, in %.3f s", r->best.saved.loss, seconds);
	yk_runs_event(r->record, r->best.saved.step, "best", text);
	yk_runs_set(r->record, "best",
		    json_pack("{s:I, s:f}", "step", (json_int_t)r->best.saved.step, "val_loss",
			      r->best.saved.loss));
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
	yk_error_restore(aside);
}

void yk_run_record_end(struct yk_run *r, const char *ended, int code)
{
	yk_records_end(r->record, r->out, r->trainer ? r->trainer->replica.step : r->state.step,
		       r->done.saved >= 0, ended, code);
	r->record = NULL;
}
