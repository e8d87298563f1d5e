// SPDX-License-Identifier: Apache-2.0
// The public functions that write records of a run; they check their arguments.
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/sized.h"
#include "graph/context.h"
#include "runs/write.h"

#define MAX_CONFIG ((size_t)1 << 20)

yoke_run *yoke_run_open(const char *folder, const struct yoke_run_options *given)
{
	struct yoke_run_options o = { .size = sizeof o };
	json_t *config = NULL;
	if (!folder || !*folder) {
		yk_fail(YOKE_EINVAL, "yoke_run_open: no folder");
		return NULL;
	}
	if (given && yk_sized_read(&o, sizeof o, given, "yoke_run_open", "yoke_run_options") < 0)
		return NULL;
	if (o.step < 0) {
		yk_fail(YOKE_EINVAL, "yoke_run_open: step %lld is below 0", (long long)o.step);
		return NULL;
	}
	if (o.config) {
		if (!(config = yk_json_parse(o.config, strnlen(o.config, MAX_CONFIG),
					     "yoke_run_open: config")))
			return NULL;
		if (!json_is_object(config)) {
			json_decref(config);
			yk_fail(YOKE_EFORMAT, "yoke_run_open: config is no JSON object");
			return NULL;
		}
	}
	const struct yoke_context *ctx = yk_current_or_null();
	const struct yk_runs_options r = {
		.device = o.device ? o.device : ctx ? ctx->device->id : "",
		.driver = o.driver ? o.driver : ctx ? ctx->device->info.driver : "",
		.config = config, .data = o.data, .step = o.step, .tensorboard = o.tensorboard,
	};
	yoke_run *run = yk_dir_make(folder) == 0 ? yk_runs_open(folder, &r) : NULL;
	json_decref(config);
	return run;
}

static bool reserved(const char *name)
{
	return !*name || !strcmp(name, "step") || !strcmp(name, "time") || !strcmp(name, "stage");
}

int yoke_run_log(yoke_run *r, int64_t step, const char *stage, int n, const char *const *name,
		 const double *value)
{
	if (!r)
		return 0;
	if (step < 0 || n < 0 || !stage || !*stage || (n && (!name || !value)))
		return yk_fail(YOKE_EINVAL, "yoke_run_log: step %lld, stage '%s', %d numbers",
			       (long long)step, stage ? stage : "(null)", n);
	json_t *line = json_pack("{s:I}", "step", (json_int_t)step);
	for (int i = 0; i < n; i++) {
		const char *bad = !name[i] || reserved(name[i]) ? "cannot be a number's name" :
				  json_object_get(line, name[i]) ? "stands there twice" : NULL;
		// a non-finite value becomes null, so that readers know that there was one
		if (!bad && line &&
		    json_object_set_new(line, name[i],
					isfinite(value[i]) ? json_real(value[i]) : json_null()))
			bad = "is not UTF-8";
		if (bad) {
			json_decref(line);
			return yk_fail(YOKE_EINVAL, "yoke_run_log: '%s' %s",
				       name[i] ? name[i] : "(null)", bad);
		}
	}
	for (int i = 0; i < n; i++)
		if (!isfinite(value[i]))
			json_object_del(line, name[i]);
	yk_runs_line(r, stage, 17, line);
	return 0;
}

int yoke_run_event(yoke_run *r, int64_t step, const char *event, const char *text)
{
	if (!r)
		return 0;
	if (step < 0 || !event || !*event)
		return yk_fail(YOKE_EINVAL, "yoke_run_event: step %lld, event '%s'",
			       (long long)step, event ? event : "(null)");
	yk_runs_event(r, step, event, text);
	return 0;
}
