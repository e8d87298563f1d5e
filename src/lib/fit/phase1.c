// SPDX-License-Identifier: Apache-2.0
// Phase 1: fits nodes from statistics of their inputs, in as few passes over the stream as possible
// (flow.h).  Each pass collects all statistics whose inputs are already computable.

#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/param.h"
#include "base/sized.h"
#include "fit/fold.h"
#include "fit/pipeline_context.h"
#include "fit/resume.h"
#include "graph/context.h"

YK_PARAM(save_setting, "fit.save", YK_INT, "10",
	 "seconds between checkpoints of the statistics of a pass over a stream", .min = 0,
	 .max = 1000000);
YK_PARAM(chunk_setting, "fit.chunk", YK_INT, "1048576", "the number of elements of a batch "
	"for which values of nodes are computed at a time on the CPU",
	 .min = 1, .max = INT32_MAX, .debug = true);

struct phase {
	yoke_pipeline *p;
	const struct yoke_fitting *o;
	struct yk_set_fields fields;
	struct yk_flows flows;
	yoke_statistic *of[YK_BASES];
	struct yk_folds folds;   // of this pass
	bool chunked;             // x is processed in chunks on the host
	bool done[YK_BASES];     // its pass is complete
	int64_t samples;         // of the current pass, restored from a checkpoint
	double saved;            // time of the last checkpoint
	bool stopped;            // by the caller, within a pass
};

struct pass {
	int base[YK_BASES], count;
};

// ---- checkpoints ----

// Hash of everything that the statistics depend on.
static uint64_t fingerprint(const struct phase *f)
{
	const yoke_pipeline *p = f->p;
	uint64_t hash = yoke_dataset_fingerprint(f->o->set) + p->seed + p->each;
	for (int i = 0; i < p->nodes; i++) {
		const struct yk_fit_node *n = &p->node[i];
		hash = yk_hash(n->name, strlen(n->name), hash);
		hash = yk_hash(n->type->name, strlen(n->type->name), hash);
		hash = yk_hash_numbers(n->key, sizeof *n->key, (size_t)n->type->keys, hash);
		for (int k = 0; k < n->type->keys; k++)
			if (n->list && yk_key_is_list(&n->type->key[k]))
				hash = yk_hash_numbers(n->list, sizeof *n->list, (size_t)n->key[k],
						       hash);
		hash = yk_hash_numbers(n->in.from, sizeof *n->in.from, (size_t)n->in.count, hash);
	}
	return hash;
}

static bool keeps(const struct phase *f)
{
	return f->o->folder && f->p->plan.keys.checkpoints;
}

static int save(struct phase *f, int64_t samples)
{
	int base[YK_BASES];
	bool open[YK_BASES];
	yoke_statistic *statistic[YK_BASES];
	struct yk_collected c = { .of = fingerprint(f),
				  .base = base,
				  .open = open,
				  .statistic = statistic,
				  .passes = f->p->stats.passes,
				  .samples = samples };
	for (int b = 0; b < YK_BASES; b++) {
		if (!f->of[b])
			continue;
		base[c.n] = b;
		open[c.n] = !f->done[b];
		statistic[c.n++] = f->of[b];
	}
	f->saved = yk_seconds();
	return yk_collected_save(&c, f->o->folder);
}

static int load(struct phase *f)
{
	int base[YK_BASES];
	bool open[YK_BASES];
	yoke_statistic *statistic[YK_BASES];
	struct yk_collected c = {
		.of = fingerprint(f), .base = base, .open = open, .statistic = statistic
	};
	int err = yk_collected_load(&c, YK_BASES, f->o->folder);
	for (int i = 0; i < c.n; i++) {
		const int b = base[i] < YK_BASES ? base[i] : 0;
		const bool fits =
			base[i] == b && f->flows.wants[b] && !f->of[b] &&
			statistic[i]->channels == yk_flow_channels(f->p, b) &&
			statistic[i]->diagonal == !(f->flows.wants[b] & YOKE_WANTS_COVARIANCE);
		if (err || !fits) {
			yoke_statistic_free(statistic[i]);
			err = err ? err :
				    yk_fail(YOKE_EFORMAT,
					    "%s: its statistics are not those of the pipeline",
					    f->o->folder);
			continue;
		}
		f->of[b] = statistic[i];
		f->done[b] = !open[i];
	}
	if (err || !c.n)
		return err;
	f->samples = c.samples;
	f->p->stats.passes = c.passes;
	return 0;
}

// ---- a pass ----

static int add_batch(struct phase *f, const struct pass *pass, yoke_tensor *x, yoke_tensor *weight,
		     yoke_tensor *extent)
{
	struct yk_values v = { .stream = x,
			       .weight = weight == YOKE_NONE ? NULL : weight,
			       .extent = extent };
	yoke_tensor *t[YK_BASES];
	yk_folds_put(&f->folds, f->p, &v);
	for (int k = 0; k < pass->count; k++)
		t[k] = yk_base_value(f->p, &v, pass->base[k]);
	// evaluated together, so that shared subexpressions are computed once
	int err = pass->count > 1 ? yoke_eval(pass->count, t) : 0;
	for (int k = 0; k < pass->count && !err; k++)
		err = yoke_statistic_add(f->of[pass->base[k]], t[k], weight);
	return err;
}

static void report_progress(const struct phase *f, int64_t done)
{
	const struct yoke_fitting_progress x = { .size = sizeof x,
						 .stage = "fit",
						 .round = f->p->stats.passes + 1,
						 .done = done,
						 .all = yoke_dataset_count(f->o->set),
						 .loss = NAN };
	if (f->o->progress && f->p->plan.keys.progress_bar)
		f->o->progress(f->o->arg, &x);
}

// Adds the values of x in consecutive chunks without copying, so that intermediate values stay in
// the cache and use little memory.
static int add_chunks(struct phase *f, const struct pass *pass, yoke_tensor *x, yoke_tensor *weight)
{
	const int64_t c = f->p->channels, rows = yoke_count(x) / c,
		      chunk = yk_param_int(&chunk_setting), each = chunk < c ? 1 : chunk / c;
	const void *at, *w = NULL;
	yoke_tensor *kept = yoke_share(x, &at),
		    *kept_w = weight == YOKE_NONE ? NULL : yoke_share(weight, &w);
	int err = kept && (kept_w || weight == YOKE_NONE) ? 0 : yk_error_last();
	for (int64_t from = 0; from < rows && !err; from += each) {
		const int64_t n = rows - from < each ? rows - from : each, dims[2] = { n, c };
		yoke_scope *s = yoke_scope_begin("chunk");
		err = add_batch(
			f, pass, yoke_wrap(yoke_f32, 2, dims, (float *)at + from * c, NULL, NULL),
			w ? yoke_wrap(yoke_f32, 1, dims, (float *)w + from, NULL, NULL) : YOKE_NONE,
			NULL);
		yoke_scope_end(s);
	}
	yoke_free(kept);
	yoke_free(kept_w);
	return err;
}

// Checks that each weight is a number and not negative.
static int check_weights(yoke_tensor *weight)
{
	float wrong = 0;
	if (weight == YOKE_NONE)
		return 0;
	int err = yoke_read(yoke_sum(yoke_sub(yoke_const(1),
					      yoke_cast(yoke_ge(weight, yoke_const(0)), yoke_f32)),
				     YOKE_ALL),
			    &wrong, sizeof wrong);
	return err || wrong == 0 ?
		       err :
		       yk_fail(YOKE_ERANGE,
			       "pipeline_fit: the set has weights that are negative or NaN");
}

// Reads the next batch; returns its row count.
static int64_t read_batch(struct phase *f, const struct pass *pass, yoke_loader *l)
{
	yoke_tensor *t[64] = { NULL };
	yoke_scope *s = yoke_scope_begin("fit");
	const double began = yk_seconds();
	const int64_t rows = yoke_loader_next(l, f->fields.count, t, NULL);
	f->p->stats.loading += yk_seconds() - began;
	int err = 0;
	if (rows > 0) {
		yoke_tensor *x = t[f->fields.x],
			    *w = f->fields.weight < 0 ? YOKE_NONE : t[f->fields.weight],
			    *extent = f->fields.extent < 0 ? NULL : t[f->fields.extent];
		x = yoke_dtype(x) == yoke_f32 ? x : yoke_cast(x, yoke_f32);
		w = w == YOKE_NONE || yoke_dtype(w) == yoke_f32 ? w : yoke_cast(w, yoke_f32);
		err = check_weights(w);
		if (!err)
			err = f->chunked ? add_chunks(f, pass, x, w) :
					   add_batch(f, pass, x, w, extent);
	}
	if (s)
		yoke_scope_end(s);
	return err ? err : rows;
}

static int read_pass(struct phase *f, const struct pass *pass)
{
	const struct yoke_position at = { .size = sizeof at, .index = f->samples };
	struct yoke_pipeline_stats *stats = &f->p->stats;
	const double began = yk_seconds(), loading = stats->loading;
	int64_t done = f->samples;
	yoke_loader *l = yk_fit_loader(f->o->set, "", f->o->loader, "shuffle=0 epochs=1");
	int err = l ? 0 : yk_error_last();
	if (!err && done)
		err = yoke_loader_seek(l, &at);
	f->samples = 0;
	for (bool more = true; more && !err;) {
		const int64_t rows = read_batch(f, pass, l);
		more = rows > 0 && done + rows < yoke_dataset_count(f->o->set);
		err = rows < 0 ? (int)rows : 0;
		done += rows > 0 ? rows : 0;
		stats->samples += rows > 0 ? rows : 0;
		report_progress(f, done);
		f->stopped = more && !err && f->o->stop && f->o->stop(f->o->arg);
		if (f->stopped && f->o->folder)
			err = save(f, done);
		more &= !f->stopped;
		if (more && !err && keeps(f) &&
		    yk_seconds() - f->saved >= (double)yk_param_int(&save_setting))
			err = save(f, done);
	}
	yoke_loader_free(l);
	const double taken = yk_seconds() - began - (stats->loading - loading);
	if (stats->passes < YOKE_PIPELINE_PASSES)
		stats->pass[stats->passes] = taken;
	stats->collecting += taken;
	stats->passes++;
	stats->statistics += pass->count;
	return err;
}

// Collects the statistics that unfitted nodes request and that can be computed by now.
static int collect(struct phase *f)
{
	struct pass pass = { .count = 0 };
	char names[300] = "";
	for (int base = 0; base < YK_BASES; base++) {
		if (!f->flows.wants[base] || f->done[base] || !yk_flow_computable(f->p, base) ||
		    (f->p->each && pass.count))
			continue;
		if (!f->of[base])
			f->of[base] =
				yoke_statistic_new(yk_flow_channels(f->p, base),
						   !(f->flows.wants[base] & YOKE_WANTS_COVARIANCE));
		if (!f->of[base])
			return yk_error_last();
		pass.base[pass.count++] = base;
		const size_t n = strlen(names);
		snprintf(names + n, sizeof names - n, "%s%s%s", n ? ", " : "",
			 base == 0            ? "the stream" :
			 base < YK_BASE_INPUT ? "the result of " :
						"the input of ",
			 base == 0 ?
				 "" :
				 f->p->node[base < YK_BASE_INPUT ? base - 1 : base - YK_BASE_INPUT]
					 .name);
	}
	if (!pass.count)
		return yk_fail(YOKE_EINVAL, "pipeline_fit: nothing can be fitted");
	yk_log(YOKE_LOG_INFO, "fit", "pass %d over the stream: statistics of %s",
	       f->p->stats.passes + 1, names);
	f->saved = yk_seconds();
	f->chunked = (pass.count > 1 || pass.base[0]) &&
		     yk_current_or_null()->device == yk_current_or_null()->cpu;
	for (int i = 0; i < f->p->nodes; i++) // chunks of pixels are not scenes
		f->chunked &= !f->p->node[i].type->spatial;
	int err = f->p->each ?
			  0 :
			  yk_folds_make(&f->folds, f->p, &f->flows, f->of, pass.count, pass.base);
	if (!err)
		err = read_pass(f, &pass);
	yk_folds_free(&f->folds);
	if (err || f->stopped)
		return err;
	for (int k = 0; k < pass.count; k++)
		f->done[pass.base[k]] = true;
	return keeps(f) ? save(f, 0) : 0;
}

// ---- fitting a node ----

static int fit_node(struct phase *f, int node)
{
	struct yk_fit_node *n = &f->p->node[node];
	const int wants = n->type->wants;
	const yoke_statistic *s = wants ? f->of[f->flows.base[node]] : NULL;
	const int64_t c = n->channels_in;
	struct yk_affine in = { 0 };
	double *numbers = NULL;
	char why[400] = "";
	struct yoke_node_fit to = { .size = sizeof to,
				    .node = n->name,
				    .key = n->key,
				    .in = c,
				    .seed = yk_hash(n->name, strlen(n->name), f->p->seed),
				    .list = n->list };
	int err = 0;
	if (wants && s->count < 2 && wants & (YOKE_WANTS_VARIANCE | YOKE_WANTS_COVARIANCE))
		return yk_fail(
			YOKE_ERANGE,
			"pipeline_fit: %s: its input has a weight of %g; it takes two observations",
			n->name, s->count);
	if (wants && s->count == 0)
		return yk_fail(YOKE_ERANGE, "pipeline_fit: %s: its input has no observations",
			       n->name);
	if (wants) {
		if ((err = yk_flow_affine(&f->flows, f->p, node, &in)) < 0)
			return err;
		numbers = calloc((size_t)(4 * c + c * c + in.cols), sizeof *numbers);
		if (!numbers) {
			free(in.a);
			return yk_fail(YOKE_ENOMEM, "pipeline_fit: no memory for %lld channels",
				       (long long)c);
		}
		yk_flow_derive(s, &in, numbers, numbers + c, numbers + 4 * c, numbers + 2 * c,
			       numbers + 3 * c);
		to.count = s->count;
		to.mean = numbers;
		to.variance =
			wants & (YOKE_WANTS_VARIANCE | YOKE_WANTS_COVARIANCE) ? numbers + c : NULL;
		to.min = wants & YOKE_WANTS_EXTREMES ? numbers + 2 * c : NULL;
		to.max = wants & YOKE_WANTS_EXTREMES ? numbers + 3 * c : NULL;
		to.covariance = wants & YOKE_WANTS_COVARIANCE ? numbers + 4 * c : NULL;
	}
	n->added = to.variance ? yk_node_added(n->type, &to, &n->variance) : NAN;
	if (n->type->fit)
		err = n->type->fit(&to, n->state, why, sizeof why);
	if (err && *why)
		yk_fail(err, "pipeline_fit: %s: %s", n->name, why);
	free(in.a);
	free(numbers);
	return err ? err : yk_node_settle(n);
}

// Fits all nodes whose statistics are collected; returns their number.
static int fit_some(struct phase *f, int *fitted)
{
	const yoke_pipeline *p = f->p;
	*fitted = 0;
	for (int i = 0; i < p->nodes; i++) {
		const struct yk_fit_node *n = &p->node[i];
		bool ready = !n->fitted && (!n->type->wants || f->done[f->flows.base[i]]);
		for (int k = 0; k < n->in.count; k++)
			ready &= n->in.from[k] < 0 || p->node[n->in.from[k]].fitted;
		if (!ready)
			continue;
		const double began = yk_seconds();
		int err = fit_node(f, i);
		f->p->stats.solving += yk_seconds() - began;
		if (err)
			return err;
		++*fitted;
	}
	return 0;
}

// ---- entry point ----

static int run(struct phase *f)
{
	yoke_pipeline *p = f->p;
	struct yoke_context *varied = NULL;
	int64_t channels;
	int left = p->nodes, some = 0;
	int err = yk_set_fields(f->o->set, "pipeline_fit", &f->fields, &channels);
	if (!err) {
		varied = yk_fit_varying_begin(&f->fields);
		err = yk_scenes_check(p, "pipeline_fit", f->fields.rank);
	}
	if (!err && (err = yk_pipeline_shape(p, channels)) == 0)
		yk_flow_plan(&f->flows, p);
	for (int i = 0; i < p->nodes; i++)
		p->node[i].fitted = false;
	if (!err && f->o->resume && f->o->folder)
		err = load(f);
	else if (!err && keeps(f))
		yk_collected_forget(f->o->folder);
	while (!err && left && !f->stopped) {
		err = fit_some(f, &some);
		left -= some;
		if (!err && left && !some)
			err = collect(f);
	}
	for (int base = 0; base < YK_BASES; base++)
		yoke_statistic_free(f->of[base]);
	yk_fit_varying_end(varied);
	return err ? err : f->stopped;
}

int yoke_pipeline_fit_as(yoke_pipeline *p, const struct yoke_fitting *options)
{
	struct yoke_fitting o = { .size = sizeof o };
	yoke_context *cpu = NULL, *before = NULL;
	int err = yk_require(p, "pipeline");
	if (!err)
		err = yk_sized_read(&o, sizeof o, options, "pipeline_fit", "yoke_fitting");
	if (err)
		return err;
	struct phase *f = calloc(1, sizeof *f);
	if (!f)
		return yk_fail(YOKE_ENOMEM, "pipeline_fit: no memory");
	f->p = p;
	f->o = &o;
	p->stats = (struct yoke_pipeline_stats){ .size = sizeof p->stats };
	err = o.set ? yk_fit_deterministic(p, "pipeline_fit") :
		      yk_fail(YOKE_EINVAL, "pipeline_fit: there is no set");
	if (!err)
		err = yk_statistics_context(p, &cpu);
	if (cpu) {
		before = yoke_use(cpu);
		err = yk_pipeline_variables(p);
	}
	if (!err)
		err = run(f);
	if (cpu) {
		yoke_use(before);
		const int moved = yk_pipeline_variables(p);
		err = err ? err : moved;
		yoke_context_free(cpu);
	}
	free(f);
	return err;
}

int yoke_pipeline_fit(yoke_pipeline *p, yoke_dataset *set, const char *loader)
{
	return yoke_pipeline_fit_as(p, &(struct yoke_fitting){ .size = sizeof(struct yoke_fitting),
							       .set = set,
							       .loader = loader });
}
