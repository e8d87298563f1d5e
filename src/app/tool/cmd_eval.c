// SPDX-License-Identifier: Apache-2.0
// yoke eval: mean loss of a trained model on a given text, or on the validation split of its
// training data.
#include "config.h"

#include "tool/tool.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "tool/model_open.h"
#include "train/validate.h"

struct result {
	// predicted tokens (all but the first of a window; of conversations, the assistant's) and
	// their bytes
	int64_t tokens, bytes;
	int64_t chats;         // conversations; 0: text
	int64_t skipped;       // windows that could not be read
	int64_t unknown;       // number of predicted tokens that are not in the vocabulary
	double loss;           // mean of -log p(token), in nats
};

// Counts the bytes of the predicted tokens, and the unknown tokens.
static int count(const struct yk_opened *o, const struct yk_data *data, struct yk_skips *skips,
		 struct result *to)
{
	int64_t width = yk_data_width(data), bytes = 0, unknown = 0, tokens = 0;
	size_t blank = strlen(yk_tokenizer_separator(o->model.tokenizer));
	const bool chats = yk_data_chats(data) > 0;
	const int64_t first = chats ? o->model.net->shape.context : 1,
		      end = chats ? 2 * first : width;
	int32_t *window = yk_data_windows(data, 1);
	if (!window)
		return yoke_error_code();
	for (int64_t i = 0; i < yk_data_valid_windows(data); i++) {
		const int e =
			yk_validation_read(data, i, yk_data_valid_windows(data), window, skips);
		if (e < 0) {
			free(window);
			return e;
		}
		tokens += yk_data_targets(data, window, 1);
		for (int64_t k = first; k < end; k++) {
			size_t n = 0;
			if (window[k] < 0) // not a target
				continue;
			yk_tokenizer_decode(o->model.tokenizer, window[k], &n);
			bytes += (int64_t)(n + blank);
			unknown += window[k] == yk_tokenizer_unknown(o->model.tokenizer);
		}
	}
	free(window);
	to->tokens = tokens;
	to->bytes = bytes;
	to->unknown = unknown;
	return 0;
}

// Adds the model's folder and a remedy to the error; returns NULL.
static struct yk_data *fail_data(const struct yk_opened *o, const char *what)
{
	const int e = yoke_error_code();
	char why[400];
	snprintf(why, sizeof why, "%s", yoke_error());
	yoke_error_clear();
	yk_fail(e, "%s: the %s cannot be used: %s; give text with data=", o->folder, what, why);
	return NULL;
}

// Opens the file of valid=, with the keys of the training.
static struct yk_data *validation_file(const struct yk_opened *o, const struct yk_config *trained)
{
	const char *paths = yk_config_str(trained, YK_KEY_valid);
	const struct yk_data_spec spec =
		yk_config_valid_data(trained, o->model.net->shape.context);
	struct yk_data *data = yk_data_new(paths, o->model.tokenizer, &spec);
	if (!data)
		return fail_data(o, "validation data");
	printf("data           %s\n", paths);
	return data;
}

// Opens the text that the model was trained on, for its validation split.
static struct yk_data *validation_data(const struct yk_opened *o, const struct yk_config *trained)
{
	const char *paths = yk_config_str(trained, YK_KEY_data);
	char why[400];
	if (yk_config_is_path(trained, YK_KEY_valid))
		return validation_file(o, trained);
	struct yk_data_spec spec = yk_config_data(trained, o->model.net->shape.context);
	spec.valid_given = false;
	if (!(spec.valid > 0)) {
		yk_fail(YOKE_EINVAL,
			"%s: was trained with valid=0, so there is no validation split; give text "
			"with data=",
			o->folder);
		return NULL;
	}
	struct yk_data *data = yk_data_new(paths, o->model.tokenizer, &spec);
	if (!data)
		return fail_data(o, "training text");
	yk_sources_differ(o->model.checkpoint.sources, yk_data_sources(data), why, sizeof why);
	if (o->model.checkpoint.text && o->model.checkpoint.text != yk_data_fingerprint(data))
		yk_warn("eval",
			"%s: %s has changed since the training%s%s; its validation split may "
			"contain text that the model was trained on",
			o->folder, paths, *why ? ": " : "", why);
	printf("data           %s, validation split\n", paths);
	return data;
}

static struct yk_data *open_data(const struct yk_opened *o)
{
	struct yk_data_spec spec = { .context = o->model.net->shape.context,
				     .valid = 1,
				     .valid_given = true,
				     .format = yk_config_str(&o->config, YK_KEY_format),
				     .vocab = yk_config_int(&o->config, YK_KEY_vocab),
				     .field = yk_config_str(&o->config, YK_KEY_field),
				     .chats = o->model.net->model->packed,
				     .pack = true };
	struct yk_data *data = NULL;
	struct yk_config trained;
	if (*yk_config_str(&o->config, YK_KEY_data))
		return yk_data_new(yk_config_str(&o->config, YK_KEY_data), o->model.tokenizer,
				   &spec);
	if (o->model.pretrained) {
		yk_fail(YOKE_EINVAL,
			"%s: is a pretrained model, without training text; give text with data=",
			o->folder);
		return NULL;
	}
	if (yk_config_init(&trained, YK_T) < 0)
		return NULL;
	if (yk_config_take(&trained, o->model.checkpoint.config, o->folder) == 0)
		data = validation_data(o, &trained);
	yk_config_fini(&trained);
	return data;
}

// batch=auto: uses the batch size of the training.
static int64_t batch_of(const struct yk_opened *o)
{
	int64_t n = yk_config_int(&o->config, YK_KEY_batch);
	struct yk_config trained;
	if (n != YK_AUTO)
		return n;
	if (o->model.pretrained)
		return 1;
	if (yk_config_init(&trained, YK_T) < 0)
		return yoke_error_code();
	int e = yk_config_take(&trained, o->model.checkpoint.config, o->folder);
	n = yk_config_int(&trained, YK_KEY_batch);
	yk_config_fini(&trained);
	return e < 0 ? e : n == YK_AUTO ? 1 : n;
}

static void print(const struct yk_opened *o, const struct result *r)
{
	if (r->chats)
		printf("conversations  %" PRId64 "\n", r->chats);
	printf("tokens         %" PRId64 "\n", r->tokens);
	printf("loss           %.6f\n", r->loss);
	printf("perplexity     %.6f\n", exp(r->loss));
	if (yk_tokenizer_unknown(o->model.tokenizer) >= 0)
		printf("unknown        %" PRId64 "\n", r->unknown);
	if (r->skipped)
		printf("skipped        %" PRId64 "\n", r->skipped);
	// bits per byte are undefined with unknown words, and for bare token ids
	if (r->unknown == 0 && yk_tokenizer_is_text(o->model.tokenizer))
		printf("bits_per_byte  %.6f\n",
		       r->loss / M_LN2 * (double)r->tokens / (double)r->bytes);
}

static int eval(const struct yk_opened *o, void *arg)
{
	(void)arg;
	const struct yk_network *net = o->model.net;
	struct yk_data *data = open_data(o);
	if (!data)
		return yoke_error_code();
	struct result r = { .chats = yk_data_chats(data) };
	int64_t batch = batch_of(o);
	struct yk_skips skips;
	const bool skip = yk_skips_of(yk_config_str(&o->config, YK_KEY_on_error), &skips);
	int e = batch < 0 ? (int)batch : count(o, data, skip ? &skips : NULL, &r);
	if (e == 0)
		e = yk_model_validate(net, data, yoke_group_world(), NULL, batch, INT64_MAX,
				      skip ? &skips : NULL, NULL, NULL, &r.loss);
	if (e == YOKE_ENOMEM)
		e = yk_validate_advise(net, data, batch);
	r.skipped = skips.count;
	if (e == 0)
		print(o, &r);
	yk_data_free(data);
	return e;
}

int yk_cmd_eval(int argc, char **argv)
{
	return yk_with_model(YK_E, argc, argv, eval, NULL);
}
