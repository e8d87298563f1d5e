// SPDX-License-Identifier: Apache-2.0
// Tests `yoke doctor` on runs of a program that leaks handles or waits for a slow loader, and
// that it reports nothing for the same program without these faults.
#include "config.h"

#include <time.h>

#include "report/conditions.h"
#include "runs/read.h"
#include "tap.h"
#include "yoke-data.h"
#include "yoke-run.h"

enum { STEPS = 60, BLOCK = 1 << 18 }; // elements: 1 MiB

// Does the run have the condition, with these words? NULL: any condition?
static bool has(const char *folder, const char *condition, const char *words)
{
	bool found = false;
	size_t i;
	json_t *one;
	struct yk_view *v = NULL;
	json_t *list = yk_view_open(folder, true, &v) == 0 ?
			       yk_conditions(v, NULL, (double)time(NULL)) :
			       NULL;
	json_array_foreach (list, i, one) {
		const char *is = json_string_value(json_object_get(one, "condition"));
		const char *what = json_string_value(json_object_get(one, "what"));
		diag("%s: %s: %s", folder, is, what);
		found |= !condition || (!strcmp(is, condition) && strstr(what, words));
	}
	if (!list)
		ok(false, "%s: %s", folder, yoke_error());
	json_decref(list);
	yk_view_close(v);
	return found;
}

// Each step makes a tensor of 1 MiB and keeps or frees its handle.
static void kept_handles(const char *folder, bool keeps)
{
	const struct yoke_run_options o = { .size = sizeof o };
	static const char *const name = "pool_allocated";
	yoke_tensor *kept[STEPS] = { NULL };
	yoke_run *r = yoke_run_open(folder, &o);
	for (int t = 0; t < STEPS; t++) {
		struct yoke_stats s = { .size = sizeof s };
		yoke_scope *scope = yoke_scope_begin("step");
		yoke_tensor *y =
			yoke_add(yoke_full(yoke_f32, 1, &(int64_t){ BLOCK }, 1), yoke_const(1));
		if (keeps)
			kept[t] = yoke_keep(y);
		yoke_eval(1, &y);
		yoke_scope_end(scope);
		yoke_stats(&s);
		yoke_run_log(r, t + 1, "memory", 1, &name, (double[]){ (double)s.pool_allocated });
	}
	yoke_run_close(r, "done", NULL);
	for (int t = 0; t < STEPS; t++)
		yoke_free(kept[t]);
	if (keeps)
		ok(has(folder, "leak", "pool_allocated"), "kept handles are found as a leak");
	else
		ok(!has(folder, NULL, NULL), "a program without leaks: nothing is found");
}

// Reading a sample is slow and a step is fast, so steps wait.
static int sleeps(void *arg, int64_t n, struct yoke_item *const *items)
{
	(void)arg;
	for (int64_t i = 0; i < n; i++) {
		*(int32_t *)items[i]->to[0] = (int32_t)items[i]->number;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return 0;
}

static void sleeping_loader(const char *folder)
{
	const struct yoke_run_options o = { .size = sizeof o };
	const struct yoke_field field = { .size = sizeof field, .name = "x", .dtype = yoke_i32 };
	const struct yoke_dataset_options data = { .size = sizeof data,
						   .name = "sleepers",
						   .count = 8 * STEPS,
						   .fields = 1,
						   .field = &field,
						   .read = sleeps };
	static const char *const name = "data_wait_s";
	yoke_dataset *d = yoke_dataset_new(&data);
	yoke_loader *l = d ? yoke_loader_new(d, "batch=8 workers=1") : NULL;
	yoke_run *r = yoke_run_open(folder, &o);
	int n = 0;
	for (int t = 0; l && t < STEPS; t++) {
		struct yoke_loader_stats s = { .size = sizeof s };
		yoke_scope *scope = yoke_scope_begin("step");
		yoke_tensor *x;
		n += yoke_loader_next(l, 1, &x, NULL) == 8;
		yoke_scope_end(scope);
		yoke_loader_stats(l, &s);
		yoke_run_log(r, t + 1, "train", 1, &name, &s.waited);
	}
	yoke_run_close(r, "done", NULL);
	ok(n == STEPS && has(folder, "slow", "waiting for data"), "a slow loader is found: %s",
	   yoke_error());
	yoke_loader_free(l);
	yoke_dataset_free(d);
}

int main(void)
{
	char name[16];
	tap_seed();
	tap_folder();
	yoke_setting_set("backend", "cpu");
	kept_handles("kept", true);
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof name, "well%d", i);
		kept_handles(name, false);
	}
	sleeping_loader("sleeping");
	return done();
}
