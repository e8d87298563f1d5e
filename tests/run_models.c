// SPDX-License-Identifier: Apache-2.0
// yoke_model_open opens what `yoke train` made: tokens, losses and tokenizers are those of `yoke
// generate` and `yoke eval`, for each tokenizer, for runs from init= and with adapters.
#include "config.h"

#include <sys/stat.h>
#include <unistd.h>

#include "formats/checkpoint.h"
#include "models/generate.h"
#include "tap.h"
#include "../tests/models/recorded_files.h"
#include "train/trained.h"
#include "yoke-model.h"

enum { NEW = 20, BATCH = 2, WINDOW = 9 };

static void write_text(void)
{
	static const char *const words[] = { "the", "cat", "sat", "on", "mats", "and", "ran" };
	char path[256], text[16384];
	size_t n = 0;
	uint32_t state = 1;
	for (int i = 0; i < 2000; i++) {
		state = state * 1664525 + 1013904223;
		n += (size_t)snprintf(text + n, sizeof text - n, "%s%c",
				      words[(i + (state >> 30)) % 7], i % 9 ? ' ' : '\n');
	}
	snprintf(path, sizeof path, "%s/text.txt", folder);
	yk_file_write(path, text, n);
}

static bool same_tokens(yoke_model *m, struct yk_trained *t, const struct yk_tokens *prompt)
{
	const struct yk_sampling greedy = { .top_p = 1 };
	const struct yoke_generation_options o = { .size = sizeof o, .tokens = NEW };
	struct yk_generation *want = NULL;
	int32_t ids[64], a, b;
	const int32_t *from[] = { ids };
	const int64_t count = (int64_t)prompt->count;
	bool same = true;
	yk_tokens_copy(prompt, 0, prompt->count, ids);
	yoke_generation *got = yoke_generation_new(m, 1, from, &count, &o);
	if (!got || yk_generation_new(t->net, &greedy, 1, prompt, NEW, &want) < 0)
		return false;
	for (int i = 0; i < NEW && same; i++) {
		same = yk_generation_next(want, &a) == 1;
		if (same && yk_tokenizer_ends(t->tokenizer, a))
			break;
		same = same && yoke_generation_next(got, &b) == 1 && a == b;
	}
	yk_generation_free(want);
	yoke_generation_free(got);
	return same;
}

// Text of the tokenizer: the same ids and back.
static bool same_ids(yoke_model *m, const struct yk_tokens *want, const char *text)
{
	const yoke_tokenizer *t = yoke_model_tokenizer(m);
	int32_t *ids;
	char *back;
	size_t n, bytes;
	if (!t || yoke_tokenizer_encode(t, text, strlen(text), YOKE_TOKENIZER_ADD, &ids, &n) < 0)
		return false;
	bool same = n == want->count;
	for (size_t i = 0; i < n && same; i++)
		same = ids[i] == yk_tokens_get(want, i);
	if (yoke_tokenizer_decode(t, ids, n, 0, &back, &bytes) < 0)
		return false;
	same = same && !strcmp(back, text);
	free(ids);
	free(back);
	return same;
}

static void test_run(const char *name, const char *text, double limit)
{
	char path[256];
	struct yk_trained t;
	struct yk_tokens prompt = { 0 };
	int32_t ids[BATCH * WINDOW];
	float a = 0, b = 1;
	snprintf(path, sizeof path, "%s/%s", folder, name);
	yoke_model *m = yoke_model_open(path, NULL);
	if (!ok(m && yk_trained_open(path, NULL, &t) == 0, "%s: opens %s", name, yoke_error()))
		return;
	const struct yoke_model_options f32 = { .size = sizeof f32, .dtype = "f32" };
	yk_tokenizer_prompt(t.tokenizer, text, strlen(text), &prompt);
	ok(same_tokens(m, &t, &prompt), "%s: continues as yoke generate %s", name, yoke_error());
	if (yk_tokenizer_is_text(t.tokenizer))
		ok(same_ids(m, &prompt, text), "%s: the tokenizer gives the ids of the training %s",
		   name, yoke_error());
	else
		ok(!yoke_model_tokenizer(m) && yoke_error_code() == YOKE_ENOENT,
		   "%s: has no tokenizer", name);
	yoke_error_clear();
	for (int i = 0; i < BATCH * WINDOW; i++)
		ids[i] = (int32_t)((7 * i + 3) % t.net->shape.vocab);
	const int64_t dims[] = { BATCH, WINDOW };
	yoke_scope *s = yoke_scope_begin("test");
	yoke_tensor *w = yoke_from(yoke_i32, 2, dims, ids);
	yoke_read(yoke_model_loss(m, w), &a, sizeof a);
	yoke_read(t.net->model->loss(t.net, yoke_slice(w, 1, 0, WINDOW - 1, 1),
				     yoke_slice(w, 1, 1, WINDOW, 1), 0),
		  &b, sizeof b);
	yoke_scope_end(s);
	ok(fabs((double)a - (double)b) <= limit * fabs((double)b),
	   "%s: the loss is that of yoke eval, %.9g and %.9g", name, (double)a, (double)b);
	struct yoke_model_info info = { .size = sizeof info };
	yoke_model_info(m, &info);
	ok(info.parameters == yk_network_base(t.net)->elements &&
		   info.context == t.net->shape.context,
	   "%s: has its %lld parameters", name, (long long)info.parameters);
	yoke_model_free(m);
	yk_trained_close(&t);
	yk_tokens_fini(&prompt);
	m = yoke_model_open(path, &f32);
	yoke_module *module = m ? yoke_model_module(m) : NULL;
	ok(module, "%s: with dtype f32 it can be trained %s", name, yoke_error());
	yoke_module_free(module);
	yoke_model_free(m);
}

static void refuse(const char *what, const char *path, int code)
{
	yoke_model *m = yoke_model_open(path, NULL);
	ok(!m && yoke_error_code() == code && !strchr(yoke_error(), '\n'), "refused: %s: %s", what,
	   yoke_error());
	yoke_error_clear();
	yoke_model_free(m);
}

static void test_refused(const char *name)
{
	char path[256], file[400], *data;
	struct yk_checkpoint ck;
	size_t n;
	snprintf(path, sizeof path, "%s/mlp", folder);
	refuse("a model that is no decoder", path, YOKE_EUNSUPPORTED);
	snprintf(path, sizeof path, "%s/%s", folder, name);
	const struct yoke_model_options far = { .size = sizeof far, .context = 9 };
	ok(!yoke_model_open(path, &far) && yoke_error_code() == YOKE_EINVAL,
	   "refused: a context beyond the run's: %s", yoke_error());
	yoke_error_clear();
	if (yk_checkpoint_open(path, &ck) < 0)
		return;
	snprintf(file, sizeof file, "%s/%s", path, ck.file[YK_CHECKPOINT_MODEL].name);
	yk_file_read(file, 1 << 24, &data, &n);
	data[n / 2] ^= 1;
	yk_file_write(file, data, n);
	refuse("altered weights", path, YOKE_EFORMAT);
	yk_file_write(file, data, n / 2);
	refuse("half of the weights", path, YOKE_EFORMAT);
	unlink(file);
	refuse("no weights", path, YOKE_ENOENT);
	free(data);
	// a complete checkpoint whose description is of another shape
	float zero[64] = { 0 };
	struct yk_host_tensor t = {
		.name = "wte.weight", .dtype = yoke_f32, .rank = 2, .dims = { 8, 8 }, .data = zero
	};
	json_object_set_new(ck.model, "embed", json_integer(1));
	json_object_set_new(ck.model, "heads", json_integer(1));
	json_object_set_new(ck.model, "vocab", json_integer(8));
	json_object_set_new(ck.model, "context", json_integer(1));
	json_object_set_new(ck.model, "layers", json_integer(1));
	ok(yk_checkpoint_save(path, &ck, 1, &t, 0, NULL) == 0, "a checkpoint of one matrix %s",
	   yoke_error());
	yoke_error_clear();
	refuse("weights of another shape", path, YOKE_EFORMAT);
	yk_checkpoint_fini(&ck);
	snprintf(file, sizeof file, "%s/manifest.json", path);
	yk_file_read(file, 1 << 24, &data, &n);
	yk_file_write(file, data, n / 2);
	refuse("half of a manifest", path, YOKE_EFORMAT);
	free(data);
	unlink(file);
	refuse("a run without a checkpoint", path, YOKE_ENOENT);
}

int main(void)
{
	static const struct {
		const char *name, *keys, *prompt;
	} runs[] = {
		{ "byte", "layers=2 heads=2 embed=16", "the cat" },
		{ "untied", "tied=0 layers=1 heads=2 embed=16", "mats and" },
		{ "word", "tokenizer=word layers=2 heads=2 embed=16", "the cat sat" },
		{ "bpe", "tokenizer=bpe vocab=290 layers=1 heads=1 embed=16", "the cat sat" },
		{ "mlp", "model=mlp layers=1 embed=8", NULL },
	};
	char init[256], keys[600];
	tap_folder();
	mkdir(folder, 0777);
	write_text();
	write_ids();
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
		snprintf(keys, sizeof keys, "data=%s/text.txt %s", folder, runs[i].keys);
		ok(train("", runs[i].name, 60, keys) == 0, "%s: trains %s", runs[i].name,
		   yoke_error());
		yoke_error_clear();
		if (runs[i].prompt)
			test_run(runs[i].name, runs[i].prompt, 1e-6);
	}
	struct tensors all = tensors_of(&recorded[0]);
	snprintf(init, sizeof init, "%s", write_folder("llama", recorded[0].config, &all));
	tensors_free(&all);
	ok(train(init, "init", 4, "dropout=0") == 0, "init: trains %s", yoke_error());
	test_run("init", "1 2 3", 0);
	ok(train(init, "lora", 4, "lora=2") == 0, "lora: trains %s", yoke_error());
	char path[256];
	struct yk_trained t = { 0 };
	snprintf(path, sizeof path, "%s/lora", folder);
	yoke_model *m = yoke_model_open(path, NULL);
	struct yk_tokens prompt = { 0 };
	if (ok(m && yk_trained_open(path, NULL, &t) == 0, "lora: opens %s", yoke_error())) {
		yk_tokenizer_prompt(t.tokenizer, "1 2 3", 5, &prompt);
		ok(same_tokens(m, &t, &prompt), "lora: continues as yoke generate %s",
		   yoke_error());
	}
	yk_tokens_fini(&prompt);
	yoke_model_free(m);
	yk_trained_close(&t);
	test_refused("byte");
	return done();
}
