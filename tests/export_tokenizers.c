// SPDX-License-Identifier: Apache-2.0
// Tests tokenizers in exported GGUF files: they give the ids of the folder's tokenizer, also for
// the forms in which published tokenizer.json files of one family differ; what GGUF cannot express
// is refused.
#include "config.h"

#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "export/export.h"
#include "tap.h"
#include "yoke-tokenizer.h"

#if defined HAVE_ONIG && defined HAVE_UTF8PROC
#include "../tests/models/recorded_files.h"

static const char *const texts[] = {
	"Hello world!  It's 3.14, 1234567; isn't it?\n\n\n I'LL\t\tx+=y<<2; // caf\xc3\xa9\r\n",
	("x\n    for (int i = 0; i < 10; i++)\n   \n\xe4\xbd\xa0\xe5\xa5\xbd \xd0\x9f\xd1\x80\xd0\xb8 "
	 "\xf0\x9f\x9a\x80 the end "),
	"",
};

static json_t *read_json(const char *name)
{
	char path[4096];
	const char *top = getenv("srcdir");
	snprintf(path, sizeof path, "%s/tests/models/%s", top ? top : ".", name);
	return json_load_file(path, 0, NULL);
}

static json_t *added(int id, const char *text, bool special)
{
	return json_pack("{s:i, s:s, s:b, s:b, s:b, s:b, s:b}", "id", id, "content", text,
			 "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0, "special",
			 special);
}

// A post-processor that puts token 1 before each text and, if wanted, token 2 after it.
static json_t *processor(bool after)
{
	json_t *single = json_pack("[{s:{s:s, s:i}}, {s:{s:s, s:i}}]", "SpecialToken", "id",
				   "first", "type_id", 0, "Sequence", "id", "A", "type_id", 0);
	if (after)
		json_array_append_new(single, json_pack("{s:{s:s, s:i}}", "SpecialToken", "id",
							"last", "type_id", 0));
	return json_pack("{s:s, s:o, s:[], s:{s:{s:s, s:[i], s:[s]}, s:{s:s, s:[i], s:[s]}}}",
			 "type", "TemplateProcessing", "single", single, "pair", "special_tokens",
			 "first", "id", "first", "ids", 1, "tokens", "first", "last", "id", "last",
			 "ids", 2, "tokens", "last");
}

static const char replace[] =
	"{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"\xe2\x96\x81\"}";
enum change { AS_IS, FORM_C, FORM_KC, FIRST, FIRST_LAST, BEYOND, BEYOND_FIRST, METASPACE, GEMMA };

static int change(json_t *o, enum change c, int vocab)
{
	switch (c) {
	case AS_IS: return 0;
	case FORM_C: return json_object_set_new(o, "normalizer", json_pack("{s:s}", "type", "NFC"));
	case FORM_KC:
		return json_object_set_new(o, "normalizer", json_pack("{s:s}", "type", "NFKC"));
	case FIRST: return json_object_set_new(o, "post_processor", processor(false));
	case FIRST_LAST: return json_object_set_new(o, "post_processor", processor(true));
	case BEYOND_FIRST: {
		json_t *t = processor(false);
		json_array_set_new(
			json_object_get(
				json_object_get(json_object_get(t, "special_tokens"), "first"),
				"ids"),
			0, json_integer(vocab));
		json_object_set_new(o, "post_processor", t);
		return json_array_append_new(json_object_get(o, "added_tokens"),
					     added(vocab, "<pad>", true));
	}
	case BEYOND:
		return json_array_append_new(json_object_get(o, "added_tokens"),
					     added(vocab, "<pad>", true));
	case METASPACE:
		json_object_set_new(o, "normalizer", json_null());
		return json_object_set_new(o, "pre_tokenizer",
					   json_pack("{s:s, s:s, s:s, s:b}", "type", "Metaspace",
						     "replacement", "\xe2\x96\x81",
						     "prepend_scheme", "first", "split", 0));
	case GEMMA:
		json_object_set_new(o, "normalizer", json_loads(replace, 0, NULL));
		return json_object_set_new(o, "pre_tokenizer",
					   json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split",
						     "pattern", "String", " ", "behavior",
						     "MergedWithPrevious", "invert", 0));
	}
	return -1;
}

// The ids of the model: the largest in the file and one more.
static int count_ids(const json_t *o)
{
	const json_t *v;
	const char *key;
	json_int_t n = 0;
	size_t i;
	json_object_foreach (json_object_get(json_object_get(o, "model"), "vocab"), key, v)
		n = json_integer_value(v) >= n ? json_integer_value(v) + 1 : n;
	json_array_foreach (json_object_get(o, "added_tokens"), i, v)
		n = json_integer_value(json_object_get(v, "id")) >= n ?
			    json_integer_value(json_object_get(v, "id")) + 1 :
			    n;
	return (int)n;
}

static void write_model(const char *path, int vocab)
{
	char list[800], config[400];
	snprintf(config, sizeof config,
		 "{\"model_type\": \"llama\", \"vocab_size\": %d, \"hidden_size\": 8, "
		 "\"intermediate_size\": 8, "
		 "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, "
		 "\"max_position_embeddings\": 8, \"tie_word_embeddings\": true}",
		 vocab);
	snprintf(list, sizeof list,
		 "model.embed_tokens.weight:%d,8 model.norm.weight:8 "
		 "model.layers.0.self_attn.q_proj.weight:8,8 "
		 "model.layers.0.self_attn.k_proj.weight:8,8 "
		 "model.layers.0.self_attn.v_proj.weight:8,8 "
		 "model.layers.0.self_attn.o_proj.weight:8,8 "
		 "model.layers.0.mlp.gate_proj.weight:8,8 model.layers.0.mlp.up_proj.weight:8,8 "
		 "model.layers.0.mlp.down_proj.weight:8,8 model.layers.0.input_layernorm.weight:8 "
		 "model.layers.0.post_attention_layernorm.weight:8",
		 vocab);
	struct tensors all = tensors_listed(list, false);
	write_folder(path, config, &all);
	tensors_free(&all);
}

static bool same_ids(const yoke_tokenizer *a, const yoke_tokenizer *b)
{
	bool same = a && b;
	for (size_t i = 0; i < sizeof texts / sizeof *texts && same; i++) {
		int32_t *x = NULL, *y = NULL;
		size_t n = 0, m = 0;
		same = yoke_tokenizer_encode(a, texts[i], strlen(texts[i]), YOKE_TOKENIZER_ADD, &x,
					     &n) == 0 &&
		       yoke_tokenizer_encode(b, texts[i], strlen(texts[i]), YOKE_TOKENIZER_ADD, &y,
					     &m) == 0 &&
		       n == m && !memcmp(x, y, n * sizeof *x);
		if (!same)
			diag("text %zu: %zu ids, want %zu", i, m, n);
		free(x);
		free(y);
	}
	return same;
}

static void test(const char *file, enum change c, const char *what, bool possible)
{
	const struct yk_export_options o = { .format = YK_GGUF_F32, .overwrite = true };
	char path[300], from[256], gguf[300];
	json_t *json = read_json(file);
	const int vocab = count_ids(json);
	snprintf(from, sizeof from, "%s/model", folder);
	snprintf(path, sizeof path, "%s/tokenizer.json", from);
	snprintf(gguf, sizeof gguf, "%s/model.gguf", folder);
	unlink(gguf);
	write_model("model", vocab);
	const bool made = json && change(json, c, vocab) == 0 && json_dump_file(json, path, 0) == 0;
	json_decref(json);
	const int e = made ? yk_export_gguf(from, gguf, &o) : -1;
	if (possible) {
		yoke_tokenizer *a = e == 0 ? yoke_tokenizer_open(from) : NULL,
			       *b = a ? yoke_tokenizer_open(gguf) : NULL;
		ok(same_ids(a, b), "%s, %s: the GGUF file gives the same ids %s", file, what,
		   yoke_error());
		yoke_tokenizer_free(a);
		yoke_tokenizer_free(b);
	} else {
		ok(made && e == YOKE_EINVAL && access(gguf, F_OK) < 0 &&
			   !strchr(yoke_error(), '\n'),
		   "%s, %s: refused, and no file is left: %s", file, what, yoke_error());
	}
	yoke_error_clear();
}
#endif

int main(void)
{
	tap_folder();
#if defined HAVE_ONIG && defined HAVE_UTF8PROC
	mkdir(folder, 0777);
	static const char *const bytes[] = { "llama3.json", "gpt2.json" };
	for (int i = 0; i < 2; i++) {
		test(bytes[i], AS_IS, "as it is", true);
		test(bytes[i], FORM_C, "with the normal form NFC, as Qwen's", true);
		test(bytes[i], FORM_KC, "with the normal form NFKC", false);
	}
	static const char *const all[] = { "llama3.json", "gpt2.json", "llama2.json" };
	for (int i = 0; i < 3; i++) {
		test(all[i], FIRST, "with a token before each text that no other file names", true);
		test(all[i], FIRST_LAST, "with tokens around each text", true);
		test(all[i], BEYOND, "with an added token beyond the model's vocabulary", true);
		test(all[i], BEYOND_FIRST, "which is put before each text", false);
	}
	test("llama2.json", AS_IS, "as it is", true);
	test("llama2.json", METASPACE, "with Metaspace, as Mistral's", true);
	test("llama2.json", GEMMA, "split at blanks, as Gemma's", true);
	test("words.json", AS_IS, "of words", false);
#else
	skip("GGUF files give the same ids", "built without Oniguruma or utf8proc");
#endif
	return done();
}
