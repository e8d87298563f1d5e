// SPDX-License-Identifier: Apache-2.0
// Parses the JSON of phase 2 (training by gradients): trained states, losses, trainer, optimizer,
// monitors.

#include "config.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "base/param.h"
#include "fit/losses.h"
#include "fit/parse.h"

static const char what[] = "pipeline";

json_t *yk_parse_member(json_t *object, const char *name, const char *def)
{
	json_t *one = json_object_get(object, name);
	if (!one && !json_object_set_new(object, name, yk_json_of(def, JSON_DECODE_ANY)))
		one = json_object_get(object, name);
	if (!one)
		yk_fail(YOKE_ENOMEM, "%s: no memory", what);
	return one;
}

int yk_parse_node(const yoke_pipeline *p, const json_t *value, const char *where, const char *key,
		  bool stream, int *to)
{
	char at[300];
	snprintf(at, sizeof at, "%.200s: %s", where, key);
	return json_is_string(value) ? yk_node_find(p, json_string_value(value), stream, at, to) :
				       yk_fail(YOKE_EINVAL, "%s must be the name of a node", at);
}

int yk_state_named(const struct yk_fit_node *n, const char *state)
{
	for (int s = 0; s < n->type->states; s++)
		if (!strcmp(n->type->state[s], state))
			return s;
	return -1;
}

// ---- trained states ----

// Applies a pattern (a node or node.state): marks the matching states as trainable, or not.
static int apply_pattern(yoke_pipeline *p, const char *key, const json_t *pattern, bool train)
{
	const char *text = json_string_value(pattern);
	char name[400];
	int found = 0, may = 0;
	if (!text)
		return yk_fail(
			YOKE_EINVAL,
			"%s: %s: must be a pattern of nodes, as \"pca*\", or a list of those", what,
			key);
	for (int i = 0; i < p->nodes; i++) {
		struct yk_fit_node *n = &p->node[i];
		const bool node = !fnmatch(text, n->name, 0);
		found += node;
		for (int s = 0; s < n->type->states; s++) {
			snprintf(name, sizeof name, "%.200s.%.100s", n->name, n->type->state[s]);
			const bool one = node || !fnmatch(text, name, 0);
			found += one;
			if (!one || !(n->type->trained >> s & 1))
				continue;
			may++;
			n->train = train ? n->train | 1u << s : n->train & ~(1u << s);
		}
	}
	if (!found)
		return yk_fail(YOKE_EINVAL,
			       "%s: %s: no node, and no state as pca.w, has a name like '%s'", what,
			       key, text);
	return may || !train ? 0 : yk_fail(YOKE_EINVAL, "%s: %s: '%s' has no state to "
		"train", what, key, text);
}

static int take_patterns(yoke_pipeline *p, json_t *root, const char *key, bool train)
{
	json_t *patterns = yk_parse_member(root, key, "[]"), *one;
	size_t i;
	int err = patterns ? 0 : yk_error_last();
	if (!err && !json_is_array(patterns) && !json_is_null(patterns))
		return apply_pattern(p, key, patterns, train);
	json_array_foreach(patterns, i, one)
		if (!err)
			err = apply_pattern(p, key, one, train);
	return err;
}

// ---- losses ----

// Whether a trainable state affects the loss.
static bool reaches(const yoke_pipeline *p, const struct yk_loss *l)
{
	bool before[YK_NODES] = { false };
	if (yk_loss_of_state(l))
		return p->node[l->of].train >>
			       yk_state_named(&p->node[l->of],
					      l->kind == YK_LOSS_ENTROPY ? "l" : "w") &
		       1;
	before[l->of] = true;
	if (l->kind == YK_LOSS_MSE && l->node >= 0)
		before[l->node] = true;
	for (int i = p->nodes - 1; i >= 0; i--) {
		if (!before[i])
			continue;
		if (p->node[i].train)
			return true;
		for (int k = 0; k < p->node[i].in.count; k++)
			if (p->node[i].in.from[k] >= 0)
				before[p->node[i].in.from[k]] = true;
	}
	return false;
}

static const struct yk_fit_key loss_keys[] = {
	{ .name = "type",
	  .kind = YK_FIT_WORD,
	  .def = "null",
	  .words = YK_LOSS_WORDS,
	  .at = offsetof(struct yk_loss, kind) },
	{ .name = "weight",
	  .kind = YK_FIT_REAL,
	  .def = "1.0",
	  .max = 1e30,
	  .at = offsetof(struct yk_loss, weight) },
	{ .name = "pos_weight",
	  .kind = YK_FIT_REAL,
	  .def = "1.0",
	  .max = 1e30,
	  .at = offsetof(struct yk_loss, pos_weight) },
};

static int take_loss(yoke_pipeline *p, struct yk_loss *l, json_t *object, int index)
{
	char where[100];
	snprintf(where, sizeof where, "pipeline: loss %d", index);
	*l = (struct yk_loss){ .node = -1 };
	// node names are parsed separately from the key table
	json_t *of = json_incref(json_object_get(object, "of")),
	       *node = json_incref(json_object_get(object, "node"));
	json_object_del(object, "of");
	json_object_del(object, "node");
	int err = yk_fit_keys(object, where, loss_keys, sizeof loss_keys / sizeof *loss_keys, l);
	if (!err)
		err = yk_parse_node(p, of, where, "of", false, &l->of);
	if (!err && l->kind == YK_LOSS_MSE)
		err = yk_parse_node(p, node, where, "node", true, &l->node);
	if (!err && ((of && json_object_set(object, "of", of)) ||
		     (node && json_object_set(object, "node", node))))
		err = yk_fail(YOKE_ENOMEM, "%s: no memory", where);
	json_decref(of);
	json_decref(node);
	if (err)
		return err;
	const char *name = json_string_value(json_object_get(object, "type"));
	int same = 0;
	for (int i = 0; i < index; i++)
		same += p->plan.loss[i].kind == l->kind;
	snprintf(l->name, sizeof l->name, same ? "%s%d" : "%s", name, same + 1);
	const struct yk_fit_node *n = &p->node[l->of];
	const char *state = l->kind == YK_LOSS_ORTHOGONALITY ? "w" :
			    l->kind == YK_LOSS_ENTROPY       ? "l" :
							       NULL;
	if (state && yk_state_named(n, state) < 0)
		return yk_fail(YOKE_EINVAL, "%s: %s is of nodes with a state %s; %s has none",
			       where, name, state, n->name);
	if (!reaches(p, l))
		return yk_fail(
			YOKE_EINVAL,
			"%s: it reaches no parameter that is trained; give \"train\": true to %s%s",
			where, n->name, state ? "" : " or to a node before it");
	return 0;
}

// ---- trainer ----

static int take_devices(const struct yk_fit_key *k, const char *where, const json_t *value,
			void *to)
{
	struct yk_trainer_keys *t = to;
	const json_t *one = json_array_get(value, 0);
	t->device = json_is_integer(one) ? json_integer_value(one) : -1;
	if ((json_is_array(value) && json_array_size(value) == 1 && t->device >= 0 &&
	     t->device < 1024) ||
	    (json_is_integer(value) && json_integer_value(value) == 1) ||
	    yk_parse_word(value, "auto") == 0)
		return 0;
	return yk_fail(
		YOKE_EINVAL,
		"%s: %s must be 1 or \"auto\", the best device, or [N], the one of that number; a pipeline is on one "
		"device",
		where, k->name);
}

static int take_interval(const struct yk_fit_key *k, const char *where, const json_t *value,
			 void *to)
{
	struct yk_trainer_keys *t = to;
	t->valid_share = json_is_real(value) ? json_real_value(value) : 0;
	t->valid_batches = json_is_integer(value) ? json_integer_value(value) : 0;
	if ((t->valid_share > 0 && t->valid_share <= 1) ||
	    (t->valid_batches > 0 && t->valid_batches <= INT32_MAX))
		return 0;
	return yk_fail(
		YOKE_EINVAL,
		"%s: %s must be a share of an epoch above 0 up to 1.0, or a whole number of batches",
		where, k->name);
}

#define AT(member) .at = offsetof(struct yk_trainer_keys, member)
static const struct yk_fit_key trainer_keys[] = {
	{ .name = "max_epochs",
	  .train = "epochs",
	  .kind = YK_FIT_WHOLE,
	  .def = "1",
	  .max = 1e6,
	  AT(max_epochs) },
	{ .name = "accelerator", .kind = YK_FIT_TEXT, .def = "\"cpu\"", AT(accelerator) },
	{ .name = "devices", .kind = YK_FIT_OTHER, .def = "1", .take = take_devices },
	{ .name = "precision",
	  .kind = YK_FIT_WORD,
	  .def = "\"32-true\"",
	  .words = "32-true 16-mixed bf16-mixed",
	  .train_words = "fp32 fp16-mixed bf16-mixed",
	  AT(precision) },
	{ .name = "accumulate_grad_batches",
	  .train = "accumulate",
	  .kind = YK_FIT_WHOLE,
	  .def = "1",
	  .min = 1,
	  .max = 65536,
	  AT(accumulate) },
	{ .name = "enable_progress_bar",
	  .train = "progress",
	  .kind = YK_FIT_FLAG,
	  .def = "true",
	  AT(progress_bar) },
	{ .name = "enable_checkpointing", .kind = YK_FIT_FLAG, .def = "false", AT(checkpoints) },
	{ .name = "log_every_n_steps",
	  .train = "log_every",
	  .kind = YK_FIT_WHOLE,
	  .def = "50",
	  .min = 1,
	  .max = 1e9,
	  AT(log_every) },
	{ .name = "val_check_interval", .kind = YK_FIT_OTHER, .def = "1.0", .take = take_interval },
	{ .name = "check_val_every_n_epoch",
	  .kind = YK_FIT_WHOLE,
	  .def = "1",
	  .min = 1,
	  .max = 1e6,
	  AT(valid_every) },
	{ .name = "gradient_clip_val",
	  .train = "clip",
	  .kind = YK_FIT_REAL,
	  .def = "null",
	  .max = 1e30,
	  AT(clip) },
	{ .name = "deterministic", .kind = YK_FIT_FLAG, .def = "false", AT(deterministic) },
	{ .name = "benchmark", .kind = YK_FIT_FLAG, .def = "false", AT(benchmark) },
	{ .name = "statistics",
	  .kind = YK_FIT_WORD,
	  .def = "\"cpu\"",
	  .words = "cpu device",
	  AT(statistics) },
	{ .name = "passes",
	  .kind = YK_FIT_WORD,
	  .def = "\"one\"",
	  .words = "one each",
	  AT(passes) },
};
#undef AT

const char *yk_trainer_key(const char *name)
{
	for (size_t i = 0; i < sizeof trainer_keys / sizeof *trainer_keys; i++)
		if (trainer_keys[i].train && !strcmp(trainer_keys[i].train, name))
			return trainer_keys[i].name;
	return name;
}

int yk_parse_trainer(json_t *root, struct yk_trainer_keys *t)
{
	json_t *o = yk_parse_member(root, "trainer", "{}");
	const char *backend = yk_param_str(yk_param_find("backend")),
		   *device = yk_param_str(yk_param_find("device"));
	if (!o)
		return yk_error_last();
	if (json_is_object(o) && !json_object_get(o, "accelerator") && (*backend || *device) &&
	    json_object_set_new(o, "accelerator", json_string(*backend ? backend : device)))
		return yk_fail(YOKE_EINVAL, "%s: YOKE_BACKEND and YOKE_DEVICE have to be UTF-8",
			       what);
	int err = yk_fit_keys(o, "pipeline: trainer", trainer_keys,
			      sizeof trainer_keys / sizeof *trainer_keys, t);
	if (!err && t->deterministic && (t->benchmark || !strcmp(t->accelerator, "auto")))
		err = yk_fail(YOKE_EINVAL, "pipeline: trainer: deterministic does not go with %s",
			      t->benchmark ?
				      "benchmark: the fastest kernel may differ between runs" :
				      "accelerator \"auto\": name the device");
	return err;
}

// ---- optimizer ----

struct optimizer_keys {
	int name;
	double lr, weight_decay, momentum, beta[2];
};

static int take_betas(const struct yk_fit_key *k, const char *where, const json_t *value, void *to)
{
	struct optimizer_keys *o = to;
	o->beta[0] = o->beta[1] = NAN;
	if (json_is_null(value))
		return 0;
	for (size_t i = 0; i < 2; i++)
		o->beta[i] = json_number_value(json_array_get(value, i));
	if (json_array_size(value) == 2 && o->beta[0] >= 0 && o->beta[0] < 1 && o->beta[1] >= 0 &&
	    o->beta[1] < 1)
		return 0;
	return yk_fail(YOKE_EINVAL, "%s: %s are two numbers from 0 to below 1", where, k->name);
}

#define AT(member) .at = offsetof(struct optimizer_keys, member)
static const char optimizers[] = "adam adamw sgd";
static const struct yk_fit_key optimizer_keys[] = {
	{ .name = "name", .kind = YK_FIT_WORD, .def = "\"adam\"", .words = optimizers, AT(name) },
	{ .name = "lr", .kind = YK_FIT_REAL, .def = "1e-3", .max = 1e6, AT(lr) },
	{ .name = "weight_decay", .kind = YK_FIT_REAL, .def = "0.0", .max = 1e6, AT(weight_decay) },
	{ .name = "betas", .kind = YK_FIT_OTHER, .def = "null", .take = take_betas },
	{ .name = "momentum", .kind = YK_FIT_REAL, .def = "0.0", .max = 1, AT(momentum) },
};
#undef AT

static int take_optimizer(struct yk_training *t, json_t *root)
{
	static const char where[] = "pipeline: optimizer";
	enum { ADAM, ADAMW, SGD };
	struct optimizer_keys k = { 0 };
	json_t *o = yk_parse_member(root, "optimizer", "{}");
	int err = o ? yk_fit_keys(o, where, optimizer_keys,
				  sizeof optimizer_keys / sizeof *optimizer_keys, &k) :
		      yk_error_last();
	if (!err && k.name == SGD && !isnan(k.beta[0]))
		err = yk_fail(YOKE_EINVAL, "%s: betas are of adam and adamw", where);
	if (!err && k.name != SGD && k.momentum > 0)
		err = yk_fail(YOKE_EINVAL, "%s: momentum is of sgd", where);
	if (err)
		return err;
	static const char *const names[] = { [ADAM] = "adam", [ADAMW] = "adamw", [SGD] = "sgd" };
	snprintf(t->optimizer, sizeof t->optimizer, "%s", names[k.name]);
	int n = yk_snprintf(t->settings, sizeof t->settings, "lr=%.17g weight_decay=%.17g", k.lr,
			    k.weight_decay);
	if (!isnan(k.beta[0]))
		n += yk_snprintf(t->settings + n, sizeof t->settings - (size_t)n,
				 " beta1=%.17g beta2=%.17g", k.beta[0], k.beta[1]);
	if (k.momentum > 0)
		n += yk_snprintf(t->settings + n, sizeof t->settings - (size_t)n, " momentum=%.17g",
				 k.momentum);
	if (t->keys.clip > 0)
		yk_snprintf(t->settings + n, sizeof t->settings - (size_t)n, " clip=%.17g",
			    t->keys.clip);
	return 0;
}

// ---- all sections ----

static int take_monitors(struct yk_training *t, json_t *root)
{
	static const char words[] = "metrics tensorboard maps";
	json_t *list = yk_parse_member(root, "monitors", "[\"metrics\"]"), *one;
	size_t i;
	if (!list)
		return yk_error_last();
	json_array_foreach(list, i, one) {
		const int place = yk_parse_word(one, words);
		if (place < 0)
			return yk_fail(YOKE_EINVAL, "%s: monitors: must be a list of: %s", what,
				       words);
		t->monitors |= 1u << place;
	}
	return json_is_array(list) ?
		       0 :
		       yk_fail(YOKE_EINVAL, "%s: monitors: must be a list of: %s", what, words);
}

int yk_parse_training(yoke_pipeline *p, json_t *root)
{
	json_t *losses = yk_parse_member(root, "losses", "[]"), *one;
	size_t i;
	int err = losses ? yk_parse_trainer(root, &p->plan.keys) : yk_error_last();
	p->each = p->plan.keys.passes == 1;
	if (!err && (err = take_optimizer(&p->plan, root)) == 0 &&
	    (err = take_patterns(p, root, "freeze", false)) == 0)
		err = take_patterns(p, root, "unfreeze", true);
	if (!err && (!json_is_array(losses) || json_array_size(losses) > YK_LOSSES))
		err = yk_fail(YOKE_EINVAL, "%s: losses: must be a list of up to %d", what,
			      YK_LOSSES);
	json_array_foreach(losses, i, one)
		if (!err) {
			err = take_loss(p, &p->plan.loss[i], one, (int)i);
			p->plan.losses++;
		}
	if (!err)
		err = yk_parse_metrics(p, root);
	return err ? err : take_monitors(&p->plan, root);
}
