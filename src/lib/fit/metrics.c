// SPDX-License-Identifier: Apache-2.0
// Metrics of the scores and labels of a whole split, and of the states of nodes.

#include "config.h"

#include "fit/metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "fit/parse.h"

// ---- statistics that metrics need ----

static bool of_states(const struct yk_metric *m)
{
	return m->kind == YK_METRIC_EXPLAINED_VARIANCE || m->kind == YK_METRIC_ORTHOGONALITY;
}

static bool of_labels(const struct yk_metric *m)
{
	return !of_states(m) && m->kind != YK_METRIC_QUANTILES;
}

static bool keeps_scores(const struct yk_metric *m)
{
	return m->kind == YK_METRIC_ROC_AUC || m->kind == YK_METRIC_QUANTILES;
}

// ---- JSON ----

static int take_quantiles(const struct yk_fit_key *k, const char *where, const json_t *value,
			  void *to)
{
	struct yk_metric *m = to;
	const size_t n = json_array_size(value);
	bool good = n > 0 && n <= YK_QUANTILES;
	for (size_t i = 0; good && i < n; i++) {
		m->q[i] = json_number_value(json_array_get(value, i));
		good = json_is_number(json_array_get(value, i)) && m->q[i] >= 0 && m->q[i] <= 1;
	}
	m->quantiles = (int)n;
	return good ? 0 :
		      yk_fail(YOKE_EINVAL, "%s: %s must be a list of 1 to %d numbers from 0 to 1",
			      where, k->name, YK_QUANTILES);
}

static const struct yk_fit_key keys[] = {
	{ .name = "type",
	  .kind = YK_FIT_WORD,
	  .def = "null",
	  .words = YK_METRIC_WORDS,
	  .at = offsetof(struct yk_metric, kind) },
	{ .name = "threshold",
	  .kind = YK_FIT_REAL,
	  .def = "0.0",
	  .min = -1e30,
	  .max = 1e30,
	  .at = offsetof(struct yk_metric, threshold) },
	{ .name = "q", .kind = YK_FIT_OTHER, .def = "[0.5, 0.9, 0.99]", .take = take_quantiles },
};

// The last node that has a state w.
static int last_with_w(const yoke_pipeline *p)
{
	int i = p->nodes - 1;
	while (i > 0 && yk_state_named(&p->node[i], "w") < 0)
		i--;
	return i;
}

static int take(yoke_pipeline *p, struct yk_metric *m, json_t *object, int index)
{
	char where[100];
	snprintf(where, sizeof where, "pipeline: metrics: %d", index);
	json_t *of = json_incref(json_object_get(object, "of"));
	json_object_del(object, "of");
	int err = yk_fit_keys(object, where, keys, sizeof keys / sizeof *keys, m);
	if (!err && of)
		err = yk_parse_node(p, of, where, "of", false, &m->of);
	else if (!err)
		m->of = of_states(m) ? last_with_w(p) : p->last;
	if (!err && !of)
		of = json_string(p->node[m->of].name);
	if (!err && json_object_set(object, "of", of))
		err = yk_fail(YOKE_ENOMEM, "%s: no memory", where);
	json_decref(of);
	if (err)
		return err;
	// metrics of states are named TYPE.NODE, because a loss may have the name TYPE
	const char *type = json_string_value(json_object_get(object, "type"));
	char name[60];
	int same = 0;
	for (int i = 0; i < index; i++)
		same += p->plan.metric[i].kind == m->kind &&
			(!of_states(m) || p->plan.metric[i].of == m->of);
	snprintf(name, sizeof name, of_states(m) ? "%.20s.%.30s" : "%.20s", type,
		 p->node[m->of].name);
	snprintf(m->name, sizeof m->name, same ? "%s%d" : "%s", name, same + 1);
	return !of_states(m) || yk_state_named(&p->node[m->of], "w") >= 0 ?
		       0 :
		       yk_fail(YOKE_EINVAL, "%s: %s is of nodes with a state w; %s has none", where,
			       type, p->node[m->of].name);
}

int yk_parse_metrics(yoke_pipeline *p, json_t *root)
{
	json_t *list = yk_parse_member(root, "metrics", "[]"), *one;
	size_t i;
	int err = list ? 0 : yk_error_last();
	if (!err && (!json_is_array(list) || json_array_size(list) > YK_METRICS))
		err = yk_fail(YOKE_EINVAL, "pipeline: metrics: must be a list of up to %d",
			      YK_METRICS);
	json_array_foreach(list, i, one) {
		if (!err && json_is_string(one)) {
			if (yk_parse_word(one, YK_METRIC_WORDS) < 0)
				return yk_fail(YOKE_EINVAL, "pipeline: metrics: must be of: %s",
					       YK_METRIC_WORDS);
			json_t *object = json_object();
			if (json_object_set(object, "type", one) ||
			    json_array_set_new(list, i, object))
				return yk_fail(YOKE_ENOMEM, "pipeline: metrics: no memory");
			one = object;
		}
		if (!err)
			err = take(p, &p->plan.metric[p->plan.metrics++], one, (int)i);
	}
	return err;
}

int yk_metrics_check(const yoke_pipeline *p, bool labels, const char *set)
{
	for (int i = 0; i < p->plan.metrics; i++) {
		const struct yk_metric *m = &p->plan.metric[i];
		const struct yk_fit_node *n = &p->node[m->of];
		if (of_labels(m) && !labels)
			return yk_fail(YOKE_EINVAL,
				       "pipeline_train: %s wants a field label u8 in the set %s",
				       m->name, set);
		if (!of_states(m) && n->channels != 1)
			return yk_fail(YOKE_EINVAL,
				       "pipeline_train: %s of %s: it has %lld channels, must be 1",
				       m->name, n->name, (long long)n->channels);
	}
	return 0;
}

// ---- a split ----

int yk_meter_init(struct yk_meter *m, yoke_pipeline *p)
{
	*m = (struct yk_meter){ .p = p };
	for (int i = 0; i < p->plan.metrics; i++) {
		const struct yk_metric *x = &p->plan.metric[i];
		const struct yk_fit_node *n = &p->node[x->of];
		if (keeps_scores(x) && !m->scored[x->of]) {
			m->scored[x->of] = true;
			yk_scores_init(&m->scores[x->of], YK_SCORES_EXACT);
		}
		if (x->kind != YK_METRIC_EXPLAINED_VARIANCE)
			continue;
		m->in[i] = yoke_statistic_new(n->channels_in, 1);
		m->out[i] = yoke_statistic_new(n->channels, 1);
		if (!m->in[i] || !m->out[i])
			return yk_error_last();
	}
	return 0;
}

void yk_meter_fini(struct yk_meter *m)
{
	for (int i = 0; i < YK_NODES; i++)
		if (m->scored[i])
			yk_scores_fini(&m->scores[i]);
	for (int i = 0; i < YK_METRICS; i++) {
		yoke_statistic_free(m->in[i]);
		yoke_statistic_free(m->out[i]);
	}
}

// A batch in host memory; NULL: absent.
struct host {
	int64_t n;
	float *score[YK_NODES], *weight;
	uint8_t *label;
};

static int read_score(struct yk_meter *m, struct yk_values *v, struct host *h, int node)
{
	yoke_tensor *y = yk_node_value(m->p, v, node);
	if (!y)
		return yk_error_last();
	if (yoke_count(y) != h->n)
		return yk_fail(YOKE_ESHAPE, "metrics: %s has %lld numbers for %lld pixels",
			       m->p->node[node].name, (long long)yoke_count(y), (long long)h->n);
	h->score[node] = malloc(((size_t)h->n + 1) * sizeof(float));
	if (!h->score[node])
		return yk_fail(YOKE_ENOMEM, "metrics: no memory");
	return yoke_read(yoke_cast(y, yoke_f32), h->score[node], (size_t)h->n * sizeof(float));
}

static int read_pixels(struct host *h, yoke_tensor *label, yoke_tensor *weight)
{
	const size_t n = (size_t)h->n;
	int err = 0;
	if (label &&
	    (yoke_count(label) != h->n || (weight != YOKE_NONE && yoke_count(weight) != h->n)))
		return yk_fail(YOKE_ESHAPE,
			       "metrics: labels, weights and pixels are not of one number");
	if (label) {
		h->label = malloc(n + 1);
		err = h->label ? yoke_read(label, h->label, n) :
				 yk_fail(YOKE_ENOMEM, "metrics: no memory");
	}
	if (!err && weight != YOKE_NONE) {
		h->weight = malloc((n + 1) * sizeof(float));
		err = h->weight ? yoke_read(weight, h->weight, n * sizeof(float)) :
				  yk_fail(YOKE_ENOMEM, "metrics: no memory");
	}
	return err;
}

static int add_scores(struct yk_meter *m, const struct host *h)
{
	static const uint8_t none = 0;
	int err = 0;
	for (int node = 0; node < m->p->nodes && !err; node++) {
		if (!m->scored[node])
			continue;
		if (h->label) {
			err = yk_scores_add(&m->scores[node], (size_t)h->n, h->score[node],
					    h->label, h->weight);
			continue;
		}
		for (int64_t i = 0; i < h->n && !err; i++)
			err = yk_scores_add(&m->scores[node], 1, h->score[node] + i, &none,
					    h->weight ? h->weight + i : NULL);
	}
	for (int k = 0; k < m->p->plan.metrics && !err; k++) {
		const struct yk_metric *x = &m->p->plan.metric[k];
		const float *score = h->score[x->of];
		for (int64_t i = 0; of_labels(x) && !keeps_scores(x) && i < h->n; i++)
			m->count[k][h->label[i] != 0][(double)score[i] > x->threshold] +=
				h->weight ? (double)h->weight[i] : 1;
	}
	return err;
}

static int add_variances(struct yk_meter *m, struct yk_values *v, yoke_tensor *weight)
{
	int err = 0;
	for (int k = 0; k < m->p->plan.metrics && !err; k++) {
		const int node = m->p->plan.metric[k].of;
		if (!m->in[k])
			continue;
		yoke_tensor *x = yoke_cast(yk_node_input(m->p, v, node), yoke_f32),
			    *y = yoke_cast(yk_node_value(m->p, v, node), yoke_f32);
		err = yoke_statistic_add(m->in[k], x, weight);
		if (!err)
			err = yoke_statistic_add(m->out[k], y, weight);
	}
	return err;
}

int yk_meter_add(struct yk_meter *m, struct yk_values *v, yoke_tensor *label, yoke_tensor *weight)
{
	const int rank = yoke_rank(v->stream);
	struct host h = { .n = yoke_count(v->stream) / yoke_dim(v->stream, rank - 1) };
	bool any = false;
	int err = 0;
	for (int k = 0; k < m->p->plan.metrics && !err; k++) {
		const struct yk_metric *x = &m->p->plan.metric[k];
		if (of_states(x))
			continue;
		any = true;
		if (!h.score[x->of])
			err = read_score(m, v, &h, x->of);
	}
	if (!err && any)
		err = read_pixels(&h, label, weight);
	if (!err && any)
		err = add_scores(m, &h);
	for (int i = 0; i < YK_NODES; i++)
		free(h.score[i]);
	free(h.weight);
	free(h.label);
	return err ? err : add_variances(m, v, weight);
}

// ---- results ----

static double of_counts(const struct yk_metric *m, double (*count)[2])
{
	const double tn = count[0][0], fp = count[0][1], fn = count[1][0], tp = count[1][1];
	switch (m->kind) {
	case YK_METRIC_PRECISION: return tp / (tp + fp);
	case YK_METRIC_RECALL: return tp / (tp + fn);
	case YK_METRIC_F1: return 2 * tp / (2 * tp + fp + fn);
	case YK_METRIC_IOU: return tp / (tp + fp + fn);
	default: return (tp + tn) / (tp + tn + fp + fn);
	}
}

// Copies a node's state; the caller frees it.
static double *state_of(const struct yk_fit_node *n, const char *state, int64_t *count)
{
	const int s = yk_state_named(n, state);
	int64_t dims[YOKE_MAX_RANK];
	int rank;
	*count = s < 0 ? 0 : yk_state_count(n, s, &rank, dims);
	float *f = malloc(((size_t)*count + 1) * sizeof *f);
	double *x = malloc(((size_t)*count + 1) * sizeof *x);
	if (!f || !x)
		yk_fail(YOKE_ENOMEM, "metrics: no memory");
	else if (s >= 0)
		yoke_read(n->variable[s], f, (size_t)*count * sizeof *f);
	for (int64_t i = 0; f && x && i < *count; i++)
		x[i] = f[i];
	free(f);
	return x;
}

// Explained variance: the variance of x W' over that of x.
static double explained(const struct yk_meter *m, int k)
{
	const struct yk_fit_node *n = &m->p->node[m->p->plan.metric[k].of];
	int64_t scales;
	double *scale = state_of(n, "scale", &scales), in = 0, out = 0;
	for (int64_t i = 0; i < n->channels_in; i++)
		in += m->in[k]->square[i];
	for (int64_t i = 0; scale && i < n->channels; i++)
		out += m->out[k]->square[i] / (scales ? scale[i] * scale[i] : 1);
	free(scale);
	return in > 0 ? out / in : NAN;
}

static double orthogonality(const struct yk_fit_node *n)
{
	int64_t count;
	double *w = state_of(n, "w", &count), sum = 0;
	for (int64_t i = 0; w && i < n->channels; i++)
		for (int64_t j = 0; j < n->channels; j++) {
			double off = -(i == j);
			for (int64_t c = 0; c < n->channels_in; c++)
				off += w[i * n->channels_in + c] * w[j * n->channels_in + c];
			sum += off * off;
		}
	free(w);
	return sum;
}

static void add_value(struct yk_meter_values *to, const char *name, double value)
{
	snprintf(to->name[to->n], sizeof *to->name, "%.90s", name);
	to->value[to->n++] = value;
}

int yk_meter_read(struct yk_meter *m, struct yk_meter_values *to)
{
	int err = 0;
	to->n = 0;
	for (int k = 0; k < m->p->plan.metrics && !err; k++) {
		const struct yk_metric *x = &m->p->plan.metric[k];
		char name[100];
		double value[YK_QUANTILES], bound = 0;
		switch (x->kind) {
		case YK_METRIC_ROC_AUC:
			add_value(to, x->name, yk_scores_area(&m->scores[x->of], &bound));
			snprintf(name, sizeof name, "%.80s_bound", x->name);
			if (bound > 0)
				add_value(to, name, bound);
			break;
		case YK_METRIC_QUANTILES:
			err = yk_scores_quantiles(&m->scores[x->of], x->quantiles, x->q, value);
			for (int i = 0; i < x->quantiles && !err; i++) {
				yk_snprintf(name, sizeof name, "%.60s_%g", x->name, x->q[i]);
				if (strchr(name, ',')) // a locale's decimal comma
					*strchr(name, ',') = '.';
				add_value(to, name, value[i]);
			}
			break;
		case YK_METRIC_EXPLAINED_VARIANCE: add_value(to, x->name, explained(m, k)); break;
		case YK_METRIC_ORTHOGONALITY:
			add_value(to, x->name, orthogonality(&m->p->node[x->of]));
			break;
		default: add_value(to, x->name, of_counts(x, m->count[k]));
		}
	}
	return err ? err : yoke_error_code() ? yk_error_last() : 0;
}
