// SPDX-License-Identifier: Apache-2.0
// Interprets the configuration as a whole: the model's shape, data, settings, and invalid
// combinations.
#include "config.h"

#include <string.h>

#include "base/error.h"
#include "base/param.h"
#include "train/conf.h"
#include "train/optim.h"
#include "train/ranks.h"
#include "train/watch.h"

const enum yk_config_key yk_config_sizes[YK_SIZE_COUNT] = {
#define S(key, ...) YK_KEY_##key,
	YK_SIZES(S)
#undef S
};

static const enum yk_config_key traits[YK_TRAIT_COUNT] = {
#define T(key, ...) YK_KEY_##key,
	YK_TRAITS(T, )
#undef T
};

// Index of a CHOICE's value in its list of words.
static int word_number(const char *list, const char *word)
{
	int i = 0;
	const size_t n = strlen(word);
	for (; *list && (strncmp(list, word, n) || (list[n] && list[n] != ' ')); i++) {
		list += strcspn(list, " ");
		list += strspn(list, " ");
	}
	return i;
}

const struct yk_model *yk_config_model(const struct yk_config *c, int64_t vocab,
				       struct yk_model_shape *to)
{
	const struct yk_model *m = yk_model_find(yk_config_str(c, YK_KEY_model));
	*to = (struct yk_model_shape){ .vocab = vocab, .context = yk_config_int(c, YK_KEY_context) };
	for (int k = 0; k < YK_SIZE_COUNT; k++)
		if (m->sizes >> k & 1)
			to->size[k] = yk_config_int(c, yk_config_sizes[k]);
	for (int k = 0; k < YK_TRAIT_COUNT; k++) {
		if (!(m->traits >> k & 1))
			continue;
		const struct yk_config_row *row = &yk_config_rows[traits[k]];
		to->trait[k] = row->type == YK_KEY_REAL ? yk_config_real(c, traits[k]) :
			       row->type == YK_KEY_INT	? (double)yk_config_int(c, traits[k]) :
							  word_number(row->choices, yk_config_str(c, traits[k]));
	}
	return m;
}

// Rejects an argument for a size that the model does not have. Files are exempt because they may
// serve several models.
static int foreign_size(const struct yk_config *c, const struct yk_model *m)
{
	for (int k = 0; k < YK_SIZE_COUNT; k++) {
		enum yk_config_key key = yk_config_sizes[k];
		const char *name = yk_config_rows[key].name;
		if (!(m->sizes >> k & 1) && c->value[key].origin == YK_BY_ARGUMENT)
			return yk_fail(YOKE_EINVAL, "argument '%s=%s': model=%s has no %s; drop it",
				       name, yk_config_str(c, key), m->name, name);
	}
	for (int k = 0; k < YK_TRAIT_COUNT; k++) {
		const char *name = yk_config_rows[traits[k]].name;
		if (!(m->traits >> k & 1) && c->value[traits[k]].origin == YK_BY_ARGUMENT)
			return yk_fail(YOKE_EINVAL, "argument '%s=%s': model=%s has no %s; drop it", name,
				       yk_config_str(c, traits[k]), m->name, name);
	}
	return 0;
}

int yk_config_check(const struct yk_config *c)
{
	if (c->command == YK_T && !*yk_config_str(c, YK_KEY_data))
		return yk_fail(YOKE_EINVAL,
			       "data is not given: name text to read, as in data=FILE");
	return c->command == YK_T ? yk_config_check_model(c) : 0;
}

int yk_config_check_model(const struct yk_config *c)
{
	struct yk_model_shape shape;

	const struct yk_model *m = yk_config_model(c, 1, &shape);
	int e = yk_model_check(m, &shape);
	if (e == 0)
		e = foreign_size(c, m);
	if (e == 0 && !strcmp(yk_config_str(c, YK_KEY_tokenizer), "word") && yk_config_int(c, YK_KEY_vocab) > 0 &&
	    yk_config_int(c, YK_KEY_vocab) < 3)
		e = yk_fail(YOKE_EINVAL, "vocab=%s: two ids are <pad> and <unk>; 3 or more are possible",
			    yk_config_str(c, YK_KEY_vocab));
	if (e == 0)
		e = yk_optim_check(c);
	if (e == 0)
		e = yk_ranks_check(c);
	struct yk_watch watch = { 0 };
	if (e == 0)
		e = yk_watch_check(&watch, c);
	if (e == 0 && !*yk_config_str(c, YK_KEY_out))
		return yk_fail(YOKE_EINVAL, "out is empty: name a folder for the model");
	return e;
}

struct yk_data_spec yk_config_data(const struct yk_config *c, int64_t context)
{
	return (struct yk_data_spec){
		.context = context, .valid = yk_config_real(c, YK_KEY_valid), .valid_given = yk_config_asked(c, YK_KEY_valid),
		.format = yk_config_str(c, YK_KEY_format), .vocab = yk_config_int(c, YK_KEY_vocab),
		.limit = c->command == YK_T ? yk_config_int(c, YK_KEY_limit) : 0,
		.shuffle = c->command == YK_T ? yk_config_int(c, YK_KEY_shuffle) : 0, .field = yk_config_str(c, YK_KEY_field) };
}

int yk_config_apply(const struct yk_config *c)
{
	// an empty value, or threads=0, leaves the setting unchanged
	static const struct {
		enum yk_config_key key;
		const char *setting;
	} settings[] = {
		{ YK_KEY_backend, "backend" }, { YK_KEY_memory, "memory" },
		{ YK_KEY_threads, "threads" }, { YK_KEY_recompute, "recompute" },
	};
	int e = 0;

	for (size_t i = 0; i < sizeof settings / sizeof *settings && e == 0; i++) {
		const char *text = yk_config_str(c, settings[i].key);
		if (yk_config_rows[settings[i].key].commands & c->command && *text &&
		    (settings[i].key != YK_KEY_threads || yk_config_int(c, YK_KEY_threads) > 0) &&
		    (settings[i].key != YK_KEY_recompute || yk_config_given(c, YK_KEY_recompute)))
			e = yoke_setting_set(settings[i].setting, text);
	}
	// with a memory limit, activations may be spilled to host memory
	if (e == 0 && *yk_config_str(c, YK_KEY_memory))
		e = yoke_setting_set("spill", "1");
	return e;
}
