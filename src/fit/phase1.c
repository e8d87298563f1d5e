// SPDX-License-Identifier: Apache-2.0
// Phase 1: nodes are fitted by statistics of their inputs, in as few passes over the stream as can be.
//
// What a node reads is, where everything before it is affine, A b + t of a base b: the stream, or the result of a node
// that is not affine.  So a pass collects statistics of bases only, all at once that can be computed by then, and nodes
// take theirs from A mu + t and A S A'.  Extremes go through a diagonal A alone; where A is none, the node's own input is
// the base.

#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "fit/node.h"

// Bases: 0 is the stream, 1 + i the result of node i, BASE_INPUT + i what node i reads.
enum { BASE_INPUT = 1 + YK_NODES, BASES = 1 + 2 * YK_NODES };

// What is known of a value without its numbers.
struct flow {
	int base;
	bool diagonal; // no row of A has more than one number
};

struct phase {
	yoke_pipeline *p;
	struct flow in[YK_NODES], out[YK_NODES]; // of each node's input and result
	int base[YK_NODES];      // which its statistics come of
	int wants[BASES];        // of a base, or'ed
	yoke_statistic *of[BASES];
};

static int64_t base_channels(const yoke_pipeline *p, int base)
{
	return base == 0 ? p->channels : base < BASE_INPUT ? p->node[base - 1].channels :
							      p->node[base - BASE_INPUT].channels_in;
}

// ---- what is needed ----

static struct flow flow_of(const struct phase *f, int from)
{
	return from < 0 ? (struct flow){ 0, true } : f->out[from];
}

static void plan(struct phase *f)
{
	const yoke_pipeline *p = f->p;
	for (int i = 0; i < p->nodes; i++) {
		const struct yk_fit_node *n = &p->node[i];
		const int wants = n->type->wants;
		struct flow in = flow_of(f, n->in.from[0]);
		for (int k = 1; k < n->in.count; k++) { // beside each other they are one matrix
			const struct flow more = flow_of(f, n->in.from[k]);
			in.diagonal &= more.diagonal;
			if (more.base != in.base)
				in.base = BASE_INPUT + i;
		}
		if (in.base == BASE_INPUT + i)
			in.diagonal = true;
		const bool own = p->each || (wants & YOKE_WANTS_EXTREMES && !in.diagonal);
		f->in[i] = in;
		f->base[i] = own && n->in.count == 1 && n->in.from[0] < 0 ? 0 : own ? BASE_INPUT + i : in.base;
		if (wants) {
			int *to = &f->wants[f->base[i]];
			*to |= wants;
			if (f->base[i] == in.base && !in.diagonal && wants & YOKE_WANTS_VARIANCE)
				*to |= YOKE_WANTS_COVARIANCE;
		}
		f->out[i] = n->type->affine ? (struct flow){ in.base, in.diagonal && n->type->diagonal } :
					      (struct flow){ 1 + i, true };
	}
}

// Is everything fitted that the base is computed by?
static bool computable(const yoke_pipeline *p, int base)
{
	bool before[YK_NODES] = { false };
	int last = base == 0 ? -1 : base < BASE_INPUT ? base - 1 : base - BASE_INPUT;
	if (base >= 1 && base < BASE_INPUT)
		before[last] = true;
	for (int k = 0; base >= BASE_INPUT && k < p->node[last].in.count; k++)
		if (p->node[last].in.from[k] >= 0)
			before[p->node[last].in.from[k]] = true;
	for (int i = last; i >= 0; i--) {
		if (!before[i])
			continue;
		if (!p->node[i].fitted)
			return false;
		for (int k = 0; k < p->node[i].in.count; k++)
			if (p->node[i].in.from[k] >= 0)
				before[p->node[i].in.from[k]] = true;
	}
	return true;
}

// ---- a pass ----

struct pass {
	int base[BASES], count;
};

static int add_batch(struct phase *f, const struct pass *pass, yoke_tensor *x, yoke_tensor *weight)
{
	struct yk_values v = { .stream = x };
	for (int k = 0; k < pass->count; k++) {
		const int base = pass->base[k];
		yoke_tensor *t = base == 0 ? v.stream : base < BASE_INPUT ? yk_node_value(f->p, &v, base - 1) :
									    yk_node_input(f->p, &v, base - BASE_INPUT);
		int err = t ? yoke_statistic_add(f->of[base], t, weight) : yk_error_last();
		if (err)
			return err;
	}
	return 0;
}

static int read_pass(struct phase *f, const struct pass *pass, yoke_dataset *set, const char *settings,
		     const struct yk_set_fields *fields)
{
	char words[600];
	snprintf(words, sizeof words, "shuffle=0 last=keep epochs=1 %.500s", settings ? settings : "");
	yoke_loader *l = yoke_loader_new(set, words);
	int err = l ? 0 : yk_error_last();
	for (bool more = true; more && !err;) {
		yoke_tensor *t[64] = { NULL };
		yoke_scope *s = yoke_scope_begin("fit");
		const int64_t rows = yoke_loader_next(l, fields->count, t, NULL);
		more = rows > 0;
		err = rows < 0 ? (int)rows : 0;
		if (more) {
			f->p->stats.samples += rows;
			yoke_tensor *x = t[fields->x], *w = fields->weight < 0 ? YOKE_NONE : t[fields->weight];
			err = add_batch(f, pass, yoke_dtype(x) == yoke_f32 ? x : yoke_cast(x, yoke_f32),
					w == YOKE_NONE || yoke_dtype(w) == yoke_f32 ? w : yoke_cast(w, yoke_f32));
		}
		if (s)
			yoke_scope_end(s);
	}
	yoke_loader_free(l);
	f->p->stats.passes++;
	f->p->stats.statistics += pass->count;
	return err;
}

// Collects what the nodes that are not fitted yet want and what can be computed by now.
static int collect(struct phase *f, yoke_dataset *set, const char *loader, const struct yk_set_fields *fields)
{
	struct pass pass = { .count = 0 };
	char names[300] = "";
	for (int base = 0; base < BASES; base++) {
		if (!f->wants[base] || f->of[base] || !computable(f->p, base) || (f->p->each && pass.count))
			continue;
		f->of[base] = yoke_statistic_new(base_channels(f->p, base), !(f->wants[base] & YOKE_WANTS_COVARIANCE));
		if (!f->of[base])
			return yk_error_last();
		pass.base[pass.count++] = base;
		const size_t n = strlen(names);
		snprintf(names + n, sizeof names - n, "%s%s%s", n ? ", " : "",
			 base == 0 ? "the stream" : base < BASE_INPUT ? "the result of " : "the input of ",
			 base == 0 ? "" : f->p->node[base < BASE_INPUT ? base - 1 : base - BASE_INPUT].name);
	}
	if (!pass.count)
		return yk_fail(YOKE_EINVAL, "pipeline_fit: nothing can be fitted");
	yk_log(YOKE_LOG_INFO, "fit", "pass %d over the stream: statistics of %s", f->p->stats.passes + 1, names);
	return read_pass(f, &pass, set, loader, fields);
}

// ---- fitting a node ----

// A [channels of node's input, base's] and t, of the input of node `node`; all before it is fitted.
struct affine {
	int64_t rows, cols;
	double *a, *t; // one block
};

static int affine_new(struct affine *to, int64_t rows, int64_t cols)
{
	to->rows = rows;
	to->cols = cols;
	to->a = calloc((size_t)(rows * cols + rows), sizeof *to->a);
	to->t = to->a + rows * cols;
	return to->a ? 0 : yk_fail(YOKE_ENOMEM, "pipeline_fit: no memory for %lld x %lld", (long long)rows, (long long)cols);
}

// to = (a, t) of node applied behind x
static int compose(const struct yk_fit_node *n, const struct affine *x, struct affine *to)
{
	struct affine own;
	int err = affine_new(&own, n->channels, n->channels_in);
	if (!err && (err = affine_new(to, n->channels, x->cols)) < 0)
		free(own.a);
	if (err)
		return err;
	n->type->affine(n->key, n->channels_in, (const double *const *)n->state, own.a, own.t);
	for (int64_t i = 0; i < own.rows; i++) {
		to->t[i] = own.t[i];
		for (int64_t k = 0; k < own.cols; k++) {
			const double c = own.a[i * own.cols + k];
			if (c == 0)
				continue;
			to->t[i] += c * x->t[k];
			for (int64_t j = 0; j < x->cols; j++)
				to->a[i * to->cols + j] += c * x->a[k * x->cols + j];
		}
	}
	free(own.a);
	return 0;
}

// Of all nodes up to this one whose values are affine in `base`; what they read is put beside each other.
static int affine_input(const struct phase *f, int node, int base, struct affine *to)
{
	const yoke_pipeline *p = f->p;
	const int64_t cols = base_channels(p, base);
	struct affine out[YK_NODES] = { { 0 } };
	int err = 0;
	for (int i = 0; i <= node && !err; i++) {
		const struct yk_fit_node *n = &p->node[i];
		struct affine in;
		int64_t row = 0;
		if (i < node && (!n->type->affine || f->in[i].base != base))
			continue;
		if ((err = affine_new(&in, n->channels_in, cols)) < 0)
			break;
		for (int k = 0; k < n->in.count; k++) {
			const int from = n->in.from[k];
			const int64_t rows = from < 0 ? p->channels : p->node[from].channels;
			if (from >= 0 && out[from].a) {
				memcpy(in.a + row * cols, out[from].a, (size_t)(rows * cols) * sizeof *in.a);
				memcpy(in.t + row, out[from].t, (size_t)rows * sizeof *in.t);
			} else { // it is the base
				for (int64_t r = 0; r < rows; r++)
					in.a[(row + r) * cols + r + (base >= BASE_INPUT ? row : 0)] = 1;
			}
			row += rows;
		}
		if (i == node) {
			*to = in;
			break;
		}
		err = compose(n, &in, &out[i]);
		free(in.a);
	}
	for (int i = 0; i < node; i++)
		free(out[i].a);
	return err;
}

// The statistics of A b + t.
static void derive(const yoke_statistic *s, const struct affine *f, double *mean, double *variance,
		   double *covariance, double *least, double *greatest)
{
	const int64_t n = f->rows, c = f->cols;
	const double under = s->count > 1 ? s->count - 1 : 1;
	double *line = covariance + n * n; // [c]
	for (int64_t i = 0; i < n; i++) {
		const double *a = f->a + i * c;
		mean[i] = least[i] = greatest[i] = f->t[i];
		variance[i] = 0;
		for (int64_t k = 0; k < c; k++) {
			mean[i] += a[k] * s->mean[k];
			if (a[k] == 0)
				continue;
			least[i] += a[k] * (a[k] > 0 ? s->least[k] : s->greatest[k]);
			greatest[i] += a[k] * (a[k] > 0 ? s->greatest[k] : s->least[k]);
			if (s->diagonal)
				variance[i] += a[k] * a[k] * s->square[k] / under;
		}
		if (s->diagonal)
			continue;
		for (int64_t k = 0; k < c; k++)
			line[k] = 0;
		for (int64_t q = 0; q < c; q++)
			for (int64_t k = 0; a[q] != 0 && k < c; k++)
				line[k] += a[q] * s->square[q * c + k];
		for (int64_t j = 0; j <= i; j++) {
			double sum = 0;
			for (int64_t k = 0; k < c; k++)
				sum += line[k] * f->a[j * c + k];
			covariance[i * n + j] = covariance[j * n + i] = sum / under;
		}
		variance[i] = covariance[i * n + i];
	}
}

static int fit_node(struct phase *f, int node)
{
	struct yk_fit_node *n = &f->p->node[node];
	const int wants = n->type->wants;
	const yoke_statistic *s = wants ? f->of[f->base[node]] : NULL;
	const int64_t c = n->channels_in;
	struct affine in = { 0 };
	double *numbers = NULL;
	char why[400] = "";
	struct yoke_node_fit to = { .size = sizeof to, .node = n->name, .key = n->key, .in = c,
				    .seed = yk_hash(n->name, strlen(n->name), f->p->seed) };
	int err = 0;
	if (wants && s->count < 2 && wants & (YOKE_WANTS_VARIANCE | YOKE_WANTS_COVARIANCE))
		return yk_fail(YOKE_ERANGE, "pipeline_fit: %s: its input has a weight of %g; it takes two observations",
			       n->name, s->count);
	if (wants && s->count == 0)
		return yk_fail(YOKE_ERANGE, "pipeline_fit: %s: its input has no observations", n->name);
	if (wants) {
		if ((err = affine_input(f, node, f->base[node], &in)) < 0)
			return err;
		numbers = calloc((size_t)(4 * c + c * c + in.cols), sizeof *numbers);
		if (!numbers) {
			free(in.a);
			return yk_fail(YOKE_ENOMEM, "pipeline_fit: no memory for %lld channels", (long long)c);
		}
		derive(s, &in, numbers, numbers + c, numbers + 4 * c, numbers + 2 * c, numbers + 3 * c);
		to.count = s->count;
		to.mean = numbers;
		to.variance = wants & (YOKE_WANTS_VARIANCE | YOKE_WANTS_COVARIANCE) ? numbers + c : NULL;
		to.least = wants & YOKE_WANTS_EXTREMES ? numbers + 2 * c : NULL;
		to.greatest = wants & YOKE_WANTS_EXTREMES ? numbers + 3 * c : NULL;
		to.covariance = wants & YOKE_WANTS_COVARIANCE ? numbers + 4 * c : NULL;
	}
	if (n->type->fit)
		err = n->type->fit(&to, n->state, why, sizeof why);
	if (err && *why)
		yk_fail(err, "pipeline_fit: %s: %s", n->name, why);
	free(in.a);
	free(numbers);
	return err ? err : yk_node_settle(n);
}

// Fits what can be by what is collected; how many.
static int fit_some(struct phase *f, int *fitted)
{
	const yoke_pipeline *p = f->p;
	*fitted = 0;
	for (int i = 0; i < p->nodes; i++) {
		const struct yk_fit_node *n = &p->node[i];
		bool ready = !n->fitted && (!n->type->wants || f->of[f->base[i]]);
		for (int k = 0; k < n->in.count; k++)
			ready &= n->in.from[k] < 0 || p->node[n->in.from[k]].fitted;
		if (!ready)
			continue;
		int err = fit_node(f, i);
		if (err)
			return err;
		++*fitted;
	}
	return 0;
}

// ---- entry point ----

int yk_set_fields(const yoke_dataset *set, const char *call, struct yk_set_fields *to, int64_t *channels)
{
	struct yoke_field field[64] = { { .size = sizeof *field } };
	to->count = yoke_dataset_fields(set, 64, field);
	to->x = to->weight = to->label = -1;
	for (int i = 0; i < to->count && i < 64; i++) {
		int *which = !strcmp(field[i].name, "x") ? &to->x : !strcmp(field[i].name, "weight") ? &to->weight :
			     !strcmp(field[i].name, "label") && field[i].dtype == yoke_u8 ? &to->label : NULL;
		if (which)
			*which = i;
	}
	if (to->count > 64 || to->x < 0 || field[to->x].rank < 1 ||
	    (field[to->x].dtype != yoke_f32 && field[to->x].dtype != yoke_f64))
		return yk_fail(YOKE_EINVAL, "%s: the set %s has no field x [..,C] of f32 or f64", call, yoke_dataset_name(set));
	*channels = field[to->x].dims[field[to->x].rank - 1];
	return 0;
}

int yoke_pipeline_fit(yoke_pipeline *p, yoke_dataset *set, const char *loader)
{
	struct phase *f = calloc(1, sizeof *f);
	struct yk_set_fields fields;
	int64_t channels;
	int left = p->nodes, some = 0;
	int err = f ? yk_set_fields(set, "pipeline_fit", &fields, &channels) : yk_fail(YOKE_ENOMEM, "pipeline_fit: no memory");
	if (!err)
		err = yk_pipeline_shape(p, channels);
	p->stats = (struct yoke_pipeline_stats){ .size = sizeof p->stats };
	for (int i = 0; i < p->nodes; i++)
		p->node[i].fitted = false;
	if (!err) {
		f->p = p;
		plan(f);
	}
	while (!err && left) {
		err = fit_some(f, &some);
		left -= some;
		if (!err && left && !some)
			err = collect(f, set, loader, &fields);
	}
	for (int base = 0; f && base < BASES; base++)
		yoke_statistic_free(f->of[base]);
	free(f);
	return err;
}
