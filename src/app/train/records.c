// SPDX-License-Identifier: Apache-2.0
// Writes the records of a training run.
#include "config.h"

#include "train/records.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/number.h"
#include "graph/context.h"

enum { DIGITS = 9 }; // of seconds and counters

yoke_run *yk_records_begin(const char *out, const struct yk_records_options *from)
{
	const struct yk_device *d = yk_current()->device;
	const struct yk_runs_options o = {
		.device = d->id,
		.driver = d->info.driver,
		.config = from->config,
		.locked = true,
		.data = from->data,
		.step = from->step,
		.tensorboard = from->tensorboard,
	};
	yoke_run *r = yk_runs_open(out, &o);
	if (!r)
		return NULL;
	if (from->steps)
		yk_runs_set(r, "steps", json_integer((json_int_t)from->steps));
	yk_runs_set(r, "parameters", json_integer((json_int_t)from->parameters));
	yk_runs_event(r, from->step, from->step > 0 ? "resumed" : "started", d->id);
	return r;
}

// ---- lines ----

// One list per layer.
static json_t *shares_json(const struct yk_step_metrics *m)
{
	json_t *all = json_array();
	for (int64_t i = 0; i < m->layers; i++) {
		json_t *layer = json_array();
		for (int64_t k = 0; k < m->experts; k++)
			json_array_append_new(layer,
					      json_real((double)m->shares[i * m->experts + k]));
		json_array_append_new(all, layer);
	}
	return all;
}

static json_t *known(double x)
{
	return x > 0 ? json_real(x) : NULL;
}

void yk_records_train(yoke_run *r, int digits, const struct yk_step_metrics *m)
{
	json_t *line = json_pack("{s:I, s:o*, s:f, s:o*, s:o*, s:o*, s:I, s:o*, s:f}", "step",
				 (json_int_t)m->step, "loss", json_real(m->loss), "lr", m->lr,
				 "grad_norm", json_real(m->grad_norm), "tokens_per_s",
				 known(m->tokens_per_s), "samples_per_s", known(m->samples_per_s),
				 "peak_bytes", (json_int_t)m->peak_bytes, "tokens",
				 m->tokens ? json_integer((json_int_t)m->tokens) : NULL,
				 "data_wait_s", m->data.waited);
	if (line && !m->unread) {
		json_object_set_new(line, "data_read_s", json_real(m->data.reading));
		json_object_set_new(line, "data_pad_s", json_real(m->data.padding));
		json_object_set_new(line, "data_send_s", json_real(m->data.sending));
		json_object_set_new(line, "data_ready", json_integer((json_int_t)m->data.ready));
		json_object_set_new(line, "data_errors", json_integer((json_int_t)m->data.failed));
	}
	if (line && m->scale > 0) {
		json_object_set_new(line, "scale", json_real(m->scale));
		json_object_set_new(line, "skipped", json_integer((json_int_t)m->skipped));
	}
	if (line && m->ranks) {
		json_object_set_new(line, "ranks", json_integer((json_int_t)m->ranks));
		json_object_set_new(line, "sent_bytes", json_integer((json_int_t)m->sent));
		json_object_set_new(line, "ranks_wait_s", json_real(m->waited));
		json_object_set_new(line, "slowest_rank", json_integer(m->slowest));
	}
	if (line && m->leaks)
		json_object_set_new(line, "leaks", json_true());
	if (line && m->shares)
		json_object_set_new(line, "experts", shares_json(m));
	yk_runs_line(r, "train", digits, line);
}

void yk_records_valid(yoke_run *r, int digits, int64_t step, double loss, double perplexity,
		      int64_t skipped)
{
	json_t *line =
		json_pack("{s:I, s:o*}", "step", (json_int_t)step, "val_loss", json_real(loss));
	if (line && isfinite(perplexity))
		json_object_set_new(line, "perplexity", json_real(perplexity));
	if (line && skipped)
		json_object_set_new(line, "data_errors", json_integer((json_int_t)skipped));
	yk_runs_line(r, "valid", digits, line);
}

void yk_records_memory(yoke_run *r, int64_t step, int64_t epochs, double seconds,
		       const struct yk_memory *m)
{
	yk_runs_line(r, "memory", DIGITS,
		     json_pack("{s:I, s:I, s:f, s:I, s:I, s:I, s:o, s:I, s:I}", "step",
			       (json_int_t)step, "epoch", (json_int_t)epochs, "seconds", seconds,
			       "pool_allocated", (json_int_t)m->allocated, "pool_peak",
			       (json_int_t)m->peak, "pool_reserved", (json_int_t)m->reserved, "rss",
			       m->resident ? json_integer((json_int_t)m->resident) : json_null(),
			       "pool_retries", (json_int_t)m->retries,
			       "pending_nodes", (json_int_t)m->pending));
}

void yk_records_report(yoke_run *r, int64_t step, const struct yk_report *report)
{
	yk_runs_line(r, "report", DIGITS,
		     json_pack("{s:I, s:o}", "step", (json_int_t)step, "report",
			       yk_report_json(report)));
}

// ---- events ----

void yk_records_saved(yoke_run *r, int64_t step, double seconds)
{
	char text[48];
	yk_snprintf(text, sizeof text, "%.3f s", seconds);
	yk_runs_event(r, step, "saved", text);
}

void yk_records_end(yoke_run *r, const char *out, int64_t step, bool saved, const char *ended,
		    int code)
{
	char text[4096] = "";
	if (!r)
		return;
	if (code < 0)
		snprintf(text, sizeof text, "%s: %s", yoke_error_name(code), yoke_error());
	yk_runs_event(r, step, ended, text);
	if (saved) {
		struct yk_error_aside *aside = yk_error_aside();
		snprintf(text, sizeof text, "%s/manifest.json", out);
		yoke_run_artifact(r, text);
		yoke_error_clear();
		yk_error_restore(aside);
	}
	yoke_run_close(r, ended, code < 0 ? yoke_error() : NULL);
}
