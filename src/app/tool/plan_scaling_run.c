// SPDX-License-Identifier: Apache-2.0
// yoke plan scaling RUN: predicts a training step on more ranks from the profile of a run with one
// rank. The trace gives the end time and the scope of each operation; the model file lists the
// parameters. A parameter's gradient is taken as ready when the last operation of the innermost
// scope with its name has ended or, without such a scope, when all have ended.
#include "config.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "comm/simulate_step.h"
#include "formats/checkpoint.h"
#include "parallel/bucket.h"
#include "tool/plan_scaling.h"
#include "tool/tool.h"

struct interval { // an interval of work on the device
	double from, to;
	const char *nodes; // "step/layer0/attn: matmul add; step/layer0: add"
	bool updates;
};

struct step { // intervals first .. end - 1; the optimizer's update begins at `update`
	size_t first, update, end;
	double began; // end of the previous step
};

struct profile {
	json_t *trace;
	struct interval *interval;
	struct step *step;
	size_t intervals, cap_intervals, steps, cap_steps;
};

// ---- reading ----

static int by_begin(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;
	return (x->from > y->from) - (x->from < y->from);
}

static int read_trace(const char *folder, struct profile *p)
{
	char path[PATH_MAX];
	size_t i;
	json_t *e;
	if (snprintf(path, sizeof path, "%s/trace.json", folder) >= (int)sizeof path)
		return yk_fail(YOKE_EINVAL, "%s: the name is too long", folder);
	if (access(path, R_OK))
		return yk_fail(YOKE_ENOENT, "%s: %s; train with profile=1 first", path,
			       strerror(errno));
	if (!(p->trace = yk_json_load(path)))
		return yk_error_last();
	json_array_foreach(json_object_get(p->trace, "traceEvents"), i, e) {
		const char *nodes = json_string_value(
				   json_object_get(json_object_get(e, "args"), "nodes")),
			   *kind = json_string_value(json_object_get(e, "cat"));
		if (!nodes || !kind || strncmp(nodes, "step", 4))
			continue;
		if (!strcmp(kind, "ranks"))
			return yk_fail(YOKE_EINVAL,
				       "%s is a profile of several ranks; profile a run with "
				       "ranks=1 on the processors of one rank",
				       path);
		if (yk_grow(&p->interval, &p->cap_intervals, p->intervals + 1,
			    sizeof *p->interval) < 0)
			return yk_fail(YOKE_ENOMEM, "out of memory for the profile");
		const double from = 1e-6 * json_number_value(json_object_get(e, "ts"));
		p->interval[p->intervals++] = (struct interval){
			from, from + 1e-6 * json_number_value(json_object_get(e, "dur")), nodes,
			!strncmp(nodes, "step/optimizer", 14)
		};
	}
	qsort(p->interval, p->intervals, sizeof *p->interval, by_begin);
	return 0;
}

// An update ends a step. The first step is ignored, because it includes planning.
static int find_steps(const char *folder, struct profile *p)
{
	struct step s = { 0 };
	size_t last = 0;
	bool any = false, passes = false; // an update was found; then forward or backward
	for (size_t i = 0; i < p->intervals; i++) {
		if (!p->interval[i].updates) {
			passes |= any && !strncmp(p->interval[i].nodes, "step/", 5);
			continue;
		}
		if (passes) {
			s.end = last + 1;
			if (s.first &&
			    yk_grow(&p->step, &p->cap_steps, p->steps + 1, sizeof *p->step) < 0)
				return yk_fail(YOKE_ENOMEM, "out of memory for the profile");
			if (s.first)
				p->step[p->steps++] = s;
			s = (struct step){ .first = s.end,
					   .update = i,
					   .began = p->interval[last].to };
		}
		passes = false;
		any = true;
		last = i;
	}
	return p->steps ? 0 :
			  yk_fail(YOKE_EINVAL,
				  "%s: its profile has no complete step after the first; train "
				  "longer with profile=1",
				  folder);
}

static double length_of(const struct profile *p, const struct step *s)
{
	return p->interval[s->end - 1].to - s->began;
}

// The step of median duration.
static const struct step *usual_step(struct profile *p)
{
	for (size_t i = 1; i < p->steps; i++)
		for (size_t k = i;
		     k > 0 && length_of(p, &p->step[k - 1]) > length_of(p, &p->step[k]); k--) {
			const struct step s = p->step[k];
			p->step[k] = p->step[k - 1];
			p->step[k - 1] = s;
		}
	return &p->step[p->steps / 2];
}

// ---- gradients ----

// Is the scope one of those in "SCOPE: op op; SCOPE: op"?
static bool has_scope(const char *nodes, const char *scope, size_t n)
{
	for (const char *at = nodes; at; at = (at = strchr(at, ';')) ? at + 2 : NULL)
		if (!strncmp(at, scope, n) && (at[n] == ':' || at[n] == '/'))
			return true;
	return false;
}

// Seconds from the start of the step until the gradient of e.g. "layer0.attn.qkv.weight" is ready.
static double ready_at(const struct profile *p, const struct step *s, const char *name)
{
	char scope[240];
	size_t n = (size_t)snprintf(scope, sizeof scope, "step/%s", name);
	n = n < sizeof scope ? n : sizeof scope - 1;
	for (char *at = scope; *at; at++)
		*at = *at == '.' ? '/' : *at;
	for (; n > 4; n--)
		for (size_t i = s->update; i > s->first && (!scope[n] || scope[n] == '/'); i--)
			if (has_scope(p->interval[i - 1].nodes, scope, n))
				return p->interval[i - 1].to - s->began;
	return p->interval[s->update - 1].to - s->began;
}

// Forms buckets of parameters in the same order as ranks do; bytes: transferred bytes per element.
static int make_buckets(const struct profile *p, const struct step *s,
			const struct yk_safetensors *model, double bytes, struct yk_step_bucket *to)
{
	int n = 0;
	for (int end = model->count; end > 0; n++) {
		const size_t max_bytes = yk_bucket_bytes(end == model->count);
		size_t whole = 0;
		to[n] = (struct yk_step_bucket){ 0 };
		do {
			const struct yk_safetensors_entry *e = &model->entries[--end];
			const double ready = ready_at(p, s, e->name);
			whole += e->bytes;
			to[n].ready = ready > to[n].ready ? ready : to[n].ready;
			to[n].bytes += bytes * (double)(e->bytes / sizeof(float));
		} while (whole < max_bytes && end > 0);
	}
	return n;
}

static int read_model(const char *folder, struct yk_safetensors *model, double *bytes)
{
	struct yk_checkpoint ck;
	char path[PATH_MAX + 80];
	int e = yk_checkpoint_open(folder, &ck);
	if (e < 0)
		return e;
	const char *wire = json_string_value(json_object_get(ck.config, "wire"));
	*bytes = wire && strcmp(wire, "fp32") ? 2 : 4;
	snprintf(path, sizeof path, "%s/%s", folder, ck.file[YK_CHECKPOINT_MODEL].name);
	yk_checkpoint_fini(&ck);
	return yk_safetensors_open(model, path);
}

// ---- the command ----

static int table(const struct yk_simulation *s, const struct profile *p, const struct step *usual,
		 const struct yk_safetensors *model, double bytes)
{
	struct yk_step_bucket *bucket = calloc((size_t)model->count + 1, sizeof *bucket);
	const double alone = length_of(p, usual);
	int e = bucket ? 0 : yk_fail(YOKE_ENOMEM, "out of memory for buckets");
	struct yk_step_times t = { .bucket = bucket,
				   .computed = p->interval[usual->update - 1].to - usual->began };
	t.update = alone - t.computed;
	if (e == 0)
		t.buckets = make_buckets(p, usual, model, bytes, bucket);
	if (e == 0) {
		double all = 0;
		for (int k = 0; k < t.buckets; k++)
			all += bucket[k].bytes;
		printf("a step of %s: %.3f ms, the median of %zu, including %.3f ms for the "
		       "update; %.0f bytes of gradients in %d bucket%s, the first ready after %.3f "
		       "ms\n",
		       s->run, 1e3 * alone, p->steps, 1e3 * t.update, all, t.buckets,
		       t.buckets == 1 ? "" : "s", 1e3 * bucket[0].ready);
		printf("%9s  %5s  %17s  %17s  %6s  %11s\n", "", "ranks", "step", "formula", "ratio",
		       "efficiency");
	}
	for (uint64_t n = s->first; n && e == 0; n = yk_simulation_next(s, n)) {
		double took, formula;
		e = yk_simulate_step(&s->m, (uint32_t)n, &t, &took, &formula);
		if (e == 0 && isnan(formula))
			printf("simulated  %5u  %14.3f ms  %14s     %6s  %9.1f %%\n", (unsigned)n,
			       1e3 * took, "-", "-", 100 * alone / took);
		else if (e == 0)
			printf("simulated  %5u  %14.3f ms  %14.3f ms  %6.3f  %9.1f %%\n",
			       (unsigned)n, 1e3 * took, 1e3 * formula, took / formula,
			       100 * alone / took);
	}
	free(bucket);
	return e;
}

int yk_plan_scaling_run(const struct yk_simulation *s)
{
	struct profile p = { 0 };
	struct yk_safetensors model = { 0 };
	double bytes;
	int e = read_trace(s->run, &p);
	if (e == 0)
		e = find_steps(s->run, &p);
	if (e == 0 && (e = read_model(s->run, &model, &bytes)) == 0) {
		e = table(s, &p, usual_step(&p), &model, bytes);
		yk_safetensors_close(&model);
	}
	json_decref(p.trace);
	free(p.interval);
	free(p.step);
	return e;
}
