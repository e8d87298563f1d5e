// SPDX-License-Identifier: Apache-2.0
// Training on conversations: the loss of a step is the mean over its targets, however it is
// divided; resumed runs and ranks have the same bits.
#include "config.h"

#include "tap.h"
#include "../tests/models/recorded_files.h"
#include "base/error.h"
#include "data/chats.h"
#include "data/text.h"
#include "models/tokenizer_files.h"
#include "train/trained.h"
#include "train/validate.h"

static void put(const char *path, const char *name, const char *text)
{
	char file[400];
	snprintf(file, sizeof file, "%s/%s", path, name);
	yk_file_write(file, text, strlen(text));
}

// A tokenizer with a token for each word w0, w1, .., and a template of words.
static void write_tokenizer(const char *path)
{
	char text[4096];
	size_t n = (size_t)snprintf(text, sizeof text,
				    "{\"version\":\"1.0\",\"added_tokens\":[],\"pre_tokenizer\":"
				    "{\"type\":\"WhitespaceSplit\"},\"model\":{\"type\":"
				    "\"WordLevel\",\"unk_token\":\"w0\",\"vocab\":{");
	for (int i = 0; i < RECORDED_VOCAB; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%s\"w%d\":%d", i ? "," : "", i,
				      i);
	snprintf(text + n, sizeof text - n, "}}}");
	put(path, "tokenizer.json", text);
	put(path, "chat_template.jinja",
	    "{% for m in messages %}{{ 'w1 ' if m.role == 'user' else 'w2 ' }}{{ m.content }} w3 "
	    "{% endfor %}"
	    "{% if add_generation_prompt %}w2 {% endif %}");
}

// Conversations whose answers have from 1 to 9 words.
static void write_chats(void)
{
	char text[8000];
	size_t n = 0;
	for (int i = 0; i < 24; i++) {
		n += (size_t)snprintf(text + n, sizeof text - n,
				      "{\"messages\":[{\"role\":\"user\",\"content\":\"w%d\"},{"
				      "\"role\":\"assistant\","
				      "\"content\":\"w%d",
				      5 + i, 10 + i);
		for (int k = 0; k < i * i % 9; k++)
			n += (size_t)snprintf(text + n, sizeof text - n, " w%d",
					      4 + (i + 5 * k) % 50);
		n += (size_t)snprintf(text + n, sizeof text - n, "\"}]}\n");
	}
	put(folder, "chats.jsonl", text);
}

static char init[256];

static int run(const char *name, int steps, const char *further)
{
	char keys[400];
	snprintf(keys, sizeof keys, "data=%s/chats.jsonl context=16 eval_every=0 %s", folder,
		 further);
	return train(init, name, steps, keys);
}

// The largest difference between the parameters of two models; -1: an error.
static double difference(const char *a, const char *b)
{
	char path[2][300];
	struct yk_trained m[2] = { 0 };
	double worst = 0;
	snprintf(path[0], sizeof *path, "%s/%s", folder, a);
	snprintf(path[1], sizeof *path, "%s/%s", folder, b);
	if (yk_trained_open(path[0], NULL, &m[0]) < 0 || yk_trained_open(path[1], NULL, &m[1]) < 0)
		worst = -1;
	for (int i = 0; worst >= 0 && i < m[0].net->params.count; i++) {
		yoke_tensor *x = m[0].net->params.var[i], *y = m[1].net->params.var[i];
		const size_t n = (size_t)yoke_count(x);
		float *v = calloc(2 * n, sizeof *v);
		if (yoke_read(x, v, n * 4) < 0 || yoke_read(y, v + n, n * 4) < 0)
			worst = -1;
		for (size_t k = 0; k < n && worst >= 0; k++)
			worst = fmax(worst, fabs((double)v[k] - (double)v[n + k]));
		free(v);
	}
	yk_trained_close(&m[0]);
	yk_trained_close(&m[1]);
	return worst;
}

static void same(const char *what, const char *a, const char *b, double max)
{
	const double d = difference(a, b);
	ok(d >= 0 && d <= max, "%s: weights differ by %g, at most %g %s", what, d, max,
	   yoke_error());
	yoke_error_clear();
}

static void trains(const char *name, int steps, const char *further)
{
	ok(run(name, steps, further) == 0, "%s: %d steps with %s %s", name, steps, further,
	   yoke_error());
	yoke_error_clear();
}

// -log of the probability of an id by logits, in float64
static double surprise(const float *x, int id)
{
	double largest = -INFINITY, sum = 0;
	for (int i = 0; i < RECORDED_VOCAB; i++)
		largest = fmax(largest, (double)x[i]);
	for (int i = 0; i < RECORDED_VOCAB; i++)
		sum += exp((double)x[i] - largest);
	return largest + log(sum) - (double)x[id];
}

// The validation loss against the sum over conversations that are computed one by one.
static void test_loss(void)
{
	enum { T = 16 };
	const struct yoke_model_options o = { .size = sizeof o, .context = T };
	struct yk_trained m;
	char path[300];
	snprintf(path, sizeof path, "%s/chats.jsonl", folder);
	if (!ok(yk_trained_open(init, &o, &m) == 0, "the model opens %s", yoke_error()))
		return;
	struct yk_data_spec spec = { .context = T, .valid = 1, .valid_given = true, .chats = true };
	struct yk_data *one = yk_data_new(path, m.tokenizer, &spec);
	spec.pack = true;
	struct yk_data *packed = yk_data_new(path, m.tokenizer, &spec);
	double sum = 0, got = NAN;
	int64_t targets = 0;
	for (int64_t w = 0; one && w < yk_data_valid_windows(one); w++) {
		static float logits[T * RECORDED_VOCAB];
		int32_t row[3 * T];
		yk_data_valid(one, w, 1, row);
		yoke_scope *s = yoke_scope_begin("test");
		yoke_tensor *h = yk_network_forward(
			m.net, yoke_from(yoke_i32, 2, (int64_t[]){ 1, T }, row), 0);
		yoke_read(m.net->model->logits(m.net, h), logits, sizeof logits);
		yoke_scope_end(s);
		for (int t = 0; t < T; t++)
			if (row[T + t] != YK_NO_TARGET) {
				sum += surprise(logits + t * RECORDED_VOCAB, row[T + t]);
				targets++;
			}
	}
	const int e = packed ? yk_model_validate(m.net, packed, NULL, NULL, 3, INT64_MAX, NULL,
						 NULL, NULL, &got) :
			       -1;
	ok(e == 0 && fabs(got - sum / (double)targets) < 1e-5 * got,
	   "the loss is %.8g; the mean over %d targets, in float64, is %.8g %s", got, (int)targets,
	   sum / (double)targets, yoke_error());
	yk_data_free(one);
	yk_data_free(packed);
	yk_trained_close(&m);
}

int main(void)
{
	setenv("YOKE_CPU_DEVICES", "2", 1); // devices are enumerated once
	tap_folder();
	mkdir(folder, 0777);
	struct tensors all = tensors_of(&recorded[0]);
	snprintf(init, sizeof init, "%s", write_folder("llama", recorded[0].config, &all));
	tensors_free(&all);
	write_tokenizer(init);
	write_chats();
	test_loss();
	trains("once", 6, "accumulate=2");
	trains("twice", 3, "accumulate=2");
	trains("twice", 6, "accumulate=2");
	same("a resumed run", "once", "twice", 0);
	trains("ranks", 6, "ranks=2");
	same("two ranks as two micro-batches", "once", "ranks", 0);
	// the windows of a step, divided differently
	trains("parts", 1, "optimizer=sgd accumulate=4 batch=1");
	trains("whole", 1, "optimizer=sgd batch=4");
	same("micro-batches as one batch", "parts", "whole", 1e-7);
	ok(difference("parts", "llama") > 1e-4, "a step changes weights by %g",
	   difference("parts", "llama"));
	struct stat st;
	char path[300], tokens[600];
	struct yk_chats_prepared made;
	struct yk_tokenizer *t = yk_tokenizer_of_files(init);
	snprintf(path, sizeof path, "%s/chats.jsonl", folder);
	snprintf(tokens, sizeof tokens, "%s/chats.tokens.safetensors", folder);
	ok(t && yk_data_prepare_chats(path, t, tokens, &made) == 0 && made.lines == 24 &&
		   made.samples == 24,
	   "conversations are prepared: %d lines %s", t ? (int)made.lines : 0, yoke_error());
	yk_tokenizer_free(t);
	snprintf(tokens, sizeof tokens,
		 "data=%s/chats.tokens.safetensors context=16 eval_every=0 accumulate=2", folder);
	ok(train(init, "prepared", 6, tokens) == 0, "training on prepared conversations %s",
	   yoke_error());
	yoke_error_clear();
	same("prepared conversations", "once", "prepared", 0);
	ok(run("none", 1, "limit=10") == YOKE_EINVAL, "refused: limit= of conversations: %s",
	   yoke_error());
	yoke_error_clear();
	put(folder, "chats.jsonl", "{\"messages\":[]}\n");
	ok(run("none", 1, "pack=1") == YOKE_EFORMAT, "refused: a line without messages: %s",
	   yoke_error());
	yoke_error_clear();
	snprintf(path, sizeof path, "%s/none", folder);
	ok(stat(path, &st) < 0, "a refused run leaves nothing");
	return done();
}
