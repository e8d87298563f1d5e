// SPDX-License-Identifier: Apache-2.0
// Opens and shares the data and the tokenizer of a run.
#include "config.h"

#include "train/corpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/stream.h"
#include "train/start.h"
#include "tokenizer/train.h"
#include "models/tokenizer_files.h"

static int add_words(void *arg, const char *text, size_t n)
{
	return yk_bpe_words_add(arg, text, n);
}

// Learns a BPE from all of the text.
static struct yk_tokenizer *train_bpe(const struct yk_config *c, const struct yk_data_spec *spec)
{
	struct yk_bpe_words words = { .what = "tokenizer=bpe" };
	const int64_t vocab = yk_config_int(c, YK_KEY_vocab);
	const int e = yk_data_each_text(yk_config_str(c, YK_KEY_data), spec, add_words, &words);
	yoke_tokenizer *t = e == 0 ? yk_bpe_train(&words, vocab ? vocab : YK_BPE_VOCAB) : NULL;
	yk_bpe_words_fini(&words);
	return t ? yk_tokenizer_published(t, yoke_tokenizer_size(t)) : NULL;
}

// A tokenizer that is neither one of yoke's nor that of a model.
static struct yk_tokenizer *tokenizer_of_files(const struct yk_config *c,
					       const struct yk_data_spec *spec)
{
	if (!yk_config_is_path(c, YK_KEY_tokenizer))
		return train_bpe(c, spec);
	if (spec->vocab > 0) {
		yk_fail(YOKE_EINVAL, "vocab=%s: the vocabulary is that of %s; drop the key",
			yk_config_str(c, YK_KEY_vocab), yk_config_str(c, YK_KEY_tokenizer));
		return NULL;
	}
	return yk_tokenizer_of_files(yk_config_str(c, YK_KEY_tokenizer));
}

// For text: a tokenizer as the keys specify. For token files: theirs.
static struct yk_tokenizer *tokenizer_new(const struct yk_config *c,
					  const struct yk_data_spec *spec)
{
	const char *paths = yk_config_str(c, YK_KEY_data),
		   *name = yk_config_str(c, YK_KEY_tokenizer);
	if (yk_starts_from_model(c))
		return yk_start_tokenizer(c);
	const bool ids = !strcmp(name, "ids"), prepared = *paths && yk_data_prepared(paths, spec);
	if (!prepared && (!strcmp(name, "bpe") || yk_config_is_path(c, YK_KEY_tokenizer)))
		return tokenizer_of_files(c, spec);
	if (!prepared && (ids || strcmp(name, "word")) && (spec->vocab > 0) != ids) {
		yk_fail(YOKE_EINVAL,
			ids ? "tokenizer=ids: the text does not contain the vocabulary size; give "
			      "vocab=" :
			      "vocab=: tokenizer=%s determines the vocabulary size; vocab= applies "
			      "to tokenizer=word and tokenizer=ids",
			name);
		return NULL;
	}
	if (!prepared)
		return ids ? yk_tokenizer_ids(spec->vocab, "vocab") : yk_tokenizer_new(name);
	struct yk_tokenizer *t = yk_data_tokenizer(paths, spec);
	if (t && yk_config_is_explicit(c, YK_KEY_tokenizer) && strcmp(name, yk_tokenizer_name(t))) {
		yk_fail(YOKE_EINVAL,
			"%s: contains tokens of tokenizer=%s, not %s; remove the key, or prepare "
			"the text again",
			paths, yk_tokenizer_name(t), name);
		yk_tokenizer_free(t);
		return NULL;
	}
	return t;
}

// Properties that are fixed in the checkpoint may be given again but not changed.
static int same_kind(const struct yk_tokenizer *t, const struct yk_config *c,
		     const struct yk_checkpoint *from, const char *folder)
{
	const char *was = json_string_value(json_object_get(from->config, "tokenizer"));
	const char *name = yk_tokenizer_has_files(t) && was ? was : yk_tokenizer_name(t);
	const char *vocab = json_string_value(json_object_get(from->config, "vocab"));
	int64_t seed = yk_config_int(c, YK_KEY_seed);
	if (vocab && !strcmp(name, "bpe") && strcmp(vocab, yk_config_str(c, YK_KEY_vocab)))
		return yk_fail(
			YOKE_EINVAL,
			"%s: was begun with vocab=%s; drop the key, or train another one with another out",
			folder, vocab);
	if (!yk_starts_from_model(c) && strcmp(yk_config_str(c, YK_KEY_tokenizer), name))
		return yk_fail(YOKE_EINVAL,
			       "%s: contains a model with tokenizer=%s; remove the key, or train "
			       "another model with another out",
			       folder, name);
	if ((uint64_t)seed != from->seed)
		return yk_fail(YOKE_EINVAL,
			       "%s: was started with seed=%llu; remove the key, or train another "
			       "model with another out",
			       folder, (unsigned long long)from->seed);
	return 0;
}

// The length of an epoch is unknown for a pipe, which excludes some keys.
static int check_pipe(const struct yk_config *c)
{
	static const enum yk_config_key passes[] = { YK_KEY_epochs, YK_KEY_eval_every,
						     YK_KEY_save_every };
	for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
		if (yk_config_real(c, passes[i]) > 0)
			return yk_fail(
				YOKE_EINVAL,
				"%s=%s: the length of a pipe is unknown; give a number of steps",
				yk_config_rows[passes[i]].name, yk_config_str(c, passes[i]));
	if (yk_config_int(c, YK_KEY_shuffle) == 1)
		return yk_fail(YOKE_EINVAL,
			       "shuffle=1: a pipe is read in order; give shuffle=0, or shuffle=N "
			       "to shuffle within blocks of N windows, for example shuffle=1000");
	return 0;
}

// The data of valid=FILE; all of it is for validation.
static int open_valid(struct yk_corpus *x, const struct yk_config *c)
{
	const char *paths = yk_config_str(c, YK_KEY_valid);
	const struct yk_data_spec spec = yk_config_valid_data(c, yk_config_int(c, YK_KEY_context));
	if (yk_data_piped(paths) || yk_is_stream(paths))
		return yk_fail(
			YOKE_EINVAL,
			"valid=%s: a pipe is read once, but every validation reads this data; write it to a file",
			paths);
	struct yk_data *other = yk_data_new(paths, x->tokenizer, &spec);
	return other ? yk_data_validate_on(x->data, other, paths) : yoke_error_code();
}

static int read_all(struct yk_corpus *x, const struct yk_config *c,
		    const struct yk_checkpoint *from, const char *folder)
{
	const char *paths = yk_config_str(c, YK_KEY_data);
	const struct yk_data_spec spec = yk_config_data(c, yk_config_int(c, YK_KEY_context));
	x->tokenizer = from ? yk_tokenizer_of_checkpoint(from, folder) : tokenizer_new(c, &spec);
	if (!x->tokenizer)
		return yoke_error_code();
	int e = from ? same_kind(x->tokenizer, c, from, folder) : 0;
	if (e < 0 || !*paths)
		return e;
	if (!(x->data = yk_data_new(paths, x->tokenizer, &spec)))
		return yoke_error_code();
	e = yk_data_endless(x->data) ? check_pipe(c) : 0;
	if (e == 0 && spec.apart)
		e = open_valid(x, c);
	return e == 0 && from ? yk_data_verify(x->data, from->sources) : e;
}

int yk_corpus_open(struct yk_corpus *x, const struct yk_config *c, const struct yk_checkpoint *from,
		   const char *folder)
{
	pthread_mutex_lock(&x->lock);
	if (!x->opened) {
		x->code = read_all(x, c, from, folder);
		snprintf(x->why, sizeof x->why, "%s", x->code < 0 ? yoke_error() : "");
		x->opened = true;
	} else if (x->code < 0) {
		yk_fail(x->code, "%s", x->why);
	}
	const int e = x->code;
	pthread_mutex_unlock(&x->lock);
	return e;
}

struct yk_corpus *yk_corpus_new(void)
{
	struct yk_corpus *x = calloc(1, sizeof *x);
	if (!x) {
		yk_fail(YOKE_ENOMEM, "data: out of memory");
		return NULL;
	}
	pthread_mutex_init(&x->lock, NULL);
	x->users = 1;
	return x;
}

struct yk_corpus *yk_corpus_ref(struct yk_corpus *x)
{
	pthread_mutex_lock(&x->lock);
	x->users++;
	pthread_mutex_unlock(&x->lock);
	return x;
}

void yk_corpus_free(struct yk_corpus *x)
{
	if (!x)
		return;
	pthread_mutex_lock(&x->lock);
	const int left = --x->users;
	pthread_mutex_unlock(&x->lock);
	if (left)
		return;
	yk_data_free(x->data);
	yk_tokenizer_free(x->tokenizer);
	pthread_mutex_destroy(&x->lock);
	free(x);
}
