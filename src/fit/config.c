// SPDX-License-Identifier: Apache-2.0
// The JSON of phase 2: losses, trainer, optimizer, metrics.

#include "config.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/param.h"
#include "fit/node.h"
#include "fit/parse.h"

static const char what[] = "pipeline";

int yk_parse_known(json_t *object, const char *where, const char *const *names, int n)
{
	const char *key;
	char hint[400];
	json_t *value;
	if (!json_is_object(object))
		return yk_fail(YOKE_EINVAL, "%s: must be an object", where);
	json_object_foreach(object, key, value) {
		int i = 0;
		while (i < n && strcmp(names[i], key))
			i++;
		if (i == n)
			return yk_fail(YOKE_EINVAL, "%s: there is no key '%s'; %s", where, key,
				       yk_hint(key, names, n, hint, sizeof hint));
	}
	return 0;
}

int yk_parse_word(const json_t *value, const char *words)
{
	const char *word = json_is_string(value) ? json_string_value(value) : "";
	const size_t n = strlen(word);
	for (int place = 0; *words; place++) {
		const size_t length = strcspn(words, " ");
		if (length == n && n && !memcmp(words, word, n))
			return place;
		words += length + (words[length] == ' ');
	}
	return -1;
}

// A number within bounds; one that is not there, or null, leaves *to.
static int number(const json_t *object, const char *where, const char *key, double least, double most, double *to)
{
	const json_t *value = json_object_get(object, key);
	if (!value || json_is_null(value))
		return 0;
	const double x = json_is_number(value) ? json_number_value(value) : NAN;
	if (!(x >= least && x <= most))
		return yk_fail(YOKE_EINVAL, "%s: %s must be a number from %g to %g", where, key, least, most);
	*to = x;
	return 0;
}

static int whole(const json_t *object, const char *where, const char *key, int64_t least, int64_t most, int64_t *to)
{
	const json_t *value = json_object_get(object, key);
	if (!value)
		return 0;
	const int64_t x = json_is_integer(value) ? json_integer_value(value) : least - 1;
	if (x < least || x > most)
		return yk_fail(YOKE_EINVAL, "%s: %s must be a whole number from %lld to %lld", where, key, (long long)least,
			       (long long)most);
	*to = x;
	return 0;
}

// ---- losses ----

static int node_named(const yoke_pipeline *p, const json_t *object, const char *where, const char *key, bool stream, int *to)
{
	const char *names[YK_NODES + 1] = { "input" }, *name;
	char hint[400];
	if (yk_json_str(object, where, key, &name) < 0)
		return yk_error_last();
	*to = -1;
	if (stream && !strcmp(name, "input"))
		return 0;
	for (int i = 0; i < p->nodes; i++) {
		names[i + 1] = p->node[i].name;
		if (!strcmp(p->node[i].name, name))
			*to = i;
	}
	return *to >= 0 ? 0 : yk_fail(YOKE_EINVAL, "%s: %s: there is no node '%s'; %s", where, key, name,
				      yk_hint(name, names + !stream, p->nodes + stream, hint, sizeof hint));
}

static bool has_state(const struct yk_fit_node *n, const char *state)
{
	for (int s = 0; s < n->type->states; s++)
		if (!strcmp(n->type->state[s], state))
			return true;
	return false;
}

// May training change something that the loss depends on?
static bool reaches(const yoke_pipeline *p, const struct yk_loss *l)
{
	bool before[YK_NODES] = { false };
	before[l->of] = true;
	if (l->kind == YK_LOSS_MSE && l->node >= 0)
		before[l->node] = true;
	for (int i = p->nodes - 1; i >= 0; i--) {
		if (!before[i])
			continue;
		if (p->node[i].train && p->node[i].type->trained)
			return true;
		if (l->kind == YK_LOSS_ORTHOGONALITY || l->kind == YK_LOSS_ENTROPY)
			return false;
		for (int k = 0; k < p->node[i].in.count; k++)
			if (p->node[i].in.from[k] >= 0)
				before[p->node[i].in.from[k]] = true;
	}
	return false;
}

static int take_loss(yoke_pipeline *p, struct yk_loss *l, json_t *object, int index)
{
	static const char kinds[] = "orthogonality bce mse entropy";
	static const char *const keys[] = { "type", "of", "weight", "pos_weight", "node" };
	char where[100];
	snprintf(where, sizeof where, "pipeline: loss %d", index);
	int err = yk_parse_known(object, where, keys, 5);
	if (err)
		return err;
	const int kind = yk_parse_word(json_object_get(object, "type"), kinds);
	if (kind < 0)
		return yk_fail(YOKE_EINVAL, "%s: type must be one of: %s", where, kinds);
	*l = (struct yk_loss){ .kind = (enum yk_loss_kind)kind, .node = -1, .weight = 1, .pos_weight = 1 };
	const char *name = json_string_value(json_object_get(object, "type"));
	int same = 0;
	for (int i = 0; i < index; i++)
		same += p->plan.loss[i].kind == l->kind;
	snprintf(l->name, sizeof l->name, same ? "%s%d" : "%s", name, same + 1);
	if ((err = node_named(p, object, where, "of", false, &l->of)) < 0 ||
	    (err = number(object, where, "weight", 0, 1e30, &l->weight)) < 0 ||
	    (err = number(object, where, "pos_weight", 0, 1e30, &l->pos_weight)) < 0)
		return err;
	if (l->kind == YK_LOSS_MSE && (err = node_named(p, object, where, "node", true, &l->node)) < 0)
		return err;
	const struct yk_fit_node *n = &p->node[l->of];
	const char *state = l->kind == YK_LOSS_ORTHOGONALITY ? "w" : l->kind == YK_LOSS_ENTROPY ? "l" : NULL;
	if (state && !has_state(n, state))
		return yk_fail(YOKE_EINVAL, "%s: %s is of nodes with a state %s; %s has none", where, name, state, n->name);
	if (!reaches(p, l))
		return yk_fail(YOKE_EINVAL, "%s: it reaches no parameter that is trained; give \"train\": true to %s or to a node before it",
			       where, n->name);
	return 0;
}

// ---- the rest ----

static int take_optimizer(struct yk_plan2 *t, json_t *o)
{
	static const char *const keys[] = { "name", "lr", "weight_decay", "betas", "momentum" };
	static const char where[] = "pipeline: optimizer", words[] = "adam adamw sgd";
	double lr = 1e-3, decay = 0, momentum = 0, beta[2] = { NAN, NAN };
	int err = o ? yk_parse_known(o, where, keys, 5) : 0, name = 0;
	if (!err && json_object_get(o, "name"))
		name = yk_parse_word(json_object_get(o, "name"), words);
	if (name < 0)
		return yk_fail(YOKE_EINVAL, "%s: name must be one of: %s", where, words);
	snprintf(t->optimizer, sizeof t->optimizer, "%s", name == 0 ? "adam" : name == 1 ? "adamw" : "sgd");
	if (err || (err = number(o, where, "lr", 0, 1e6, &lr)) < 0 ||
	    (err = number(o, where, "weight_decay", 0, 1e6, &decay)) < 0 ||
	    (err = number(o, where, "momentum", 0, 1, &momentum)) < 0)
		return err;
	const json_t *betas = json_object_get(o, "betas");
	if (betas && !json_is_null(betas)) {
		for (size_t i = 0; i < 2; i++)
			beta[i] = json_number_value(json_array_get(betas, i));
		if (name == 2 || json_array_size(betas) != 2 || !(beta[0] >= 0 && beta[0] < 1 && beta[1] >= 0 && beta[1] < 1))
			return yk_fail(YOKE_EINVAL, "%s: betas are two numbers from 0 to below 1, of adam and adamw", where);
	}
	if (momentum > 0 && name != 2)
		return yk_fail(YOKE_EINVAL, "%s: momentum is of sgd", where);
	const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = c ? uselocale(c) : (locale_t)0;
	int n = snprintf(t->settings, sizeof t->settings, "lr=%.17g weight_decay=%.17g", lr, decay);
	if (!isnan(beta[0]))
		n += snprintf(t->settings + n, sizeof t->settings - (size_t)n, " beta1=%.17g beta2=%.17g", beta[0], beta[1]);
	if (momentum > 0)
		n += snprintf(t->settings + n, sizeof t->settings - (size_t)n, " momentum=%.17g", momentum);
	if (t->clip > 0)
		snprintf(t->settings + n, sizeof t->settings - (size_t)n, " clip=%.17g", t->clip);
	if (c) {
		uselocale(before);
		freelocale(c);
	}
	return 0;
}

static int take_trainer(yoke_pipeline *p, json_t *o)
{
	static const char *const keys[] = { "max_epochs", "accumulate_grad_batches", "gradient_clip_val", "log_every_n_steps",
					    "check_val_every_n_epoch", "passes" };
	static const char where[] = "pipeline: trainer";
	struct yk_plan2 *t = &p->plan;
	t->max_epochs = t->accumulate = t->valid_every = 1;
	t->log_every = 50;
	int err = o ? yk_parse_known(o, where, keys, 6) : 0;
	if (err || (err = whole(o, where, "max_epochs", 0, 1000000, &t->max_epochs)) < 0 ||
	    (err = whole(o, where, "accumulate_grad_batches", 1, 65536, &t->accumulate)) < 0 ||
	    (err = whole(o, where, "log_every_n_steps", 1, 1000000000, &t->log_every)) < 0 ||
	    (err = whole(o, where, "check_val_every_n_epoch", 1, 1000000, &t->valid_every)) < 0 ||
	    (err = number(o, where, "gradient_clip_val", 0, 1e30, &t->clip)) < 0)
		return err;
	const json_t *passes = json_object_get(o, "passes");
	const int place = passes ? yk_parse_word(passes, "one each") : 0;
	p->each = place == 1;
	return place < 0 ? yk_fail(YOKE_EINVAL, "%s: passes must be one of: one each", where) : 0;
}

int yk_parse_training(yoke_pipeline *p, json_t *root)
{
	json_t *losses = json_object_get(root, "losses"), *metrics = json_object_get(root, "metrics"), *one;
	size_t i;
	int err = take_trainer(p, json_object_get(root, "trainer"));
	if (!err)
		err = take_optimizer(&p->plan, json_object_get(root, "optimizer"));
	if (!err && losses && (!json_is_array(losses) || json_array_size(losses) > YK_LOSSES))
		err = yk_fail(YOKE_EINVAL, "%s: losses: must be a list of up to %d", what, YK_LOSSES);
	json_array_foreach(losses, i, one)
		if (!err) {
			err = take_loss(p, &p->plan.loss[i], one, (int)i);
			p->plan.losses++;
		}
	if (!err && metrics && !json_is_array(metrics))
		err = yk_fail(YOKE_EINVAL, "%s: metrics: must be a list", what);
	json_array_foreach(metrics, i, one) {
		if (!err && yk_parse_word(one, "roc_auc") < 0)
			err = yk_fail(YOKE_EINVAL, "%s: metrics: must be of: roc_auc", what);
		p->plan.roc_auc = true;
	}
	return err;
}
