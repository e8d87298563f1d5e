// SPDX-License-Identifier: Apache-2.0
// Published tokenizers: ids and texts equal those of the libraries that made the files; damaged
// files and exploding patterns get one line; long words take time in proportion.
#include "config.h"

#include "fuzz/targets.h"
#include "hostile.h"
#include "models/tokenizer_cases.h"
#include "tokenizer/gguf.h"
#include "yoke-tokenizer.h"

#if defined HAVE_ONIG && defined HAVE_UTF8PROC
#define COMPLETE 1
#else
#define COMPLETE 0
#endif

static const char *seeds; // folder for files to begin fuzzing with, or NULL

static bool refused(int e, int code, const char *part)
{
	const bool good = is_error(e, code, part);

	yoke_error_clear();
	return good;
}

static char *read_model(const char *file, size_t *bytes)
{
	const char *source = getenv("srcdir");
	char path[4096], *data = NULL;

	snprintf(path, sizeof path, "%s/tests/models/%s", source ? source : ".", file);
	if (yk_file_read(path, 1 << 20, &data, bytes) < 0)
		diag("%s", yoke_error());
	return data;
}

static yoke_tokenizer *open_model(const char *file)
{
	size_t bytes;
	char *data = read_model(file, &bytes);
	yoke_tokenizer *t = data ? yoke_tokenizer_parse(data, bytes, file) : NULL;

	if (!t)
		diag("%s", yoke_error());
	free(data);
	return t;
}

static bool same(const yoke_tokenizer *t, const struct recorded *r)
{
	const unsigned flags = r->parse ? YOKE_TOKENIZER_ADD | YOKE_TOKENIZER_PARSE : 0;
	int32_t *ids = NULL;
	size_t n = 0, bytes = 0;
	char *text = NULL;

	if (yoke_tokenizer_encode(t, r->text, strlen(r->text), flags, &ids, &n) < 0 ||
	    yoke_tokenizer_decode(t, r->ids, (size_t)r->count, 0, &text, &bytes) < 0) {
		diag("%s", yoke_error());
		yoke_error_clear();
		free(ids);
		return false;
	}
	bool good = n == (size_t)r->count;
	for (size_t i = 0; good && i < n; i++)
		good = ids[i] == r->ids[i];
	if (!good)
		diag("'%s': got %zu ids, wanted %d or others", r->text, n, r->count);
	if (strcmp(text, r->decoded) || bytes != strlen(r->decoded)) {
		diag("'%s': got text '%s', wanted '%s'", r->text, text, r->decoded);
		good = false;
	}
	free(ids);
	free(text);
	return good;
}

static void test_recorded(void)
{
	const size_t count = sizeof recorded / sizeof *recorded;

	for (size_t i = 0; i < count;) {
		const char *file = recorded[i].file;
		yoke_tokenizer *t = open_model(file);
		bool good = t;
		int n = 0;
		for (; i < count && !strcmp(recorded[i].file, file); i++, n++)
			good = t && same(t, &recorded[i]) && good;
		ok(good, "%s: ids and texts of %d inputs equal the recorded ones", file, n);
		yoke_tokenizer_free(t);
	}
}

static void test_queries(void)
{
	yoke_tokenizer *t = open_model("bert.json");
	size_t n = 0;
	const int32_t id = yoke_tokenizer_id(t, "[SEP]", 5);
	const char *s = yoke_tokenizer_piece(t, id, &n);

	ok(id == 3 && s && n == 5 && !strcmp(s, "[SEP]") && yoke_tokenizer_is_special(t, 3) &&
		   !yoke_tokenizer_is_special(t, 10) && yoke_tokenizer_unknown(t) == 1,
	   "a token and its id lead to each other");
	ok(!yoke_tokenizer_piece(t, -1, &n) &&
		   !yoke_tokenizer_piece(t, yoke_tokenizer_size(t), &n) &&
		   yoke_tokenizer_id(t, "no such token", 13) == -1,
	   "ids and tokens that do not exist are reported as such");
	int32_t *ids = NULL;
	ok(refused(yoke_tokenizer_encode(t, "a\xff", 2, 0, &ids, &n), YOKE_EFORMAT, "1") && !ids,
	   "text that is not UTF-8 is refused with its position");
	ok(refused(yoke_tokenizer_encode(t, "a", 1, 64, &ids, &n), YOKE_EINVAL, "0x40"),
	   "an unknown flag is refused");
	yoke_tokenizer_free(t);
	t = open_model("gpt2.json");
	char *text = NULL;
	const int32_t byte = yoke_tokenizer_id(t, "\xc3\xa2", 2); // stands for the byte 0xe2
	ok(byte >= 0 && yoke_tokenizer_decode(t, &byte, 1, YOKE_TOKENIZER_BYTES, &text, &n) == 0 &&
		   n == 1 && !strcmp(text, "\xe2"),
	   "an incomplete character is kept as bytes on request");
	free(text);
	yoke_tokenizer_free(t);
}

// ---- a folder ----

static void test_folder(void)
{
	size_t bytes;
	char *data = read_model("llama3.json", &bytes);
	static const char config[] =
		"{\"bos_token\": {\"content\": \"<|begin|>\"}, \"eos_token\": \"<|eot|>\","
		" \"chat_template\": \"{{ x }}\"}";
	static const char generation[] = "{\"eos_token_id\": [1, 7, 99999999]}";
	const int32_t *eos = NULL;

	yk_dir_make("folder");
	yk_file_write("folder/tokenizer.json", data, bytes);
	yk_file_write("folder/tokenizer_config.json", config, sizeof config - 1);
	yk_file_write("folder/generation_config.json", generation, sizeof generation - 1);
	yoke_tokenizer *t = yoke_tokenizer_open("folder");
	ok(t && yoke_tokenizer_bos(t) == 0 && yoke_tokenizer_eos(t, &eos) == 2 && eos[0] == 1 &&
		   eos[1] == 7 && yoke_tokenizer_pad(t) == -1 &&
		   !strcmp(yoke_tokenizer_template(t), "{{ x }}"),
	   "a folder supplies special ids and the chat template");
	yoke_tokenizer_free(t);
	yk_dir_make("empty");
	ok(!yoke_tokenizer_open("empty") && refused(yk_error_last(), YOKE_ENOENT, "empty"),
	   "a folder without a tokenizer is an error");
	ok(!yoke_tokenizer_open("nowhere.json") &&
		   refused(yk_error_last(), YOKE_ENOENT, "nowhere.json"),
	   "a missing file is an error");
	free(data);
}

// ---- GGUF ----

static void test_gguf(void)
{
	static const struct yk_gguf_string tokens[] = {
		{ "a", 1 }, { "b", 1 }, { "ab", 2 }, { "<e>", 3 }
	};
	static const struct yk_gguf_string merges[] = { { "a b", 3 } }, wrong[] = { { "a c", 3 } };
	static const int32_t types[] = { 1, 1, 1, 3 };
	struct yk_gguf_tokenizer g = { .model = "gpt2",
				       .tokens = tokens,
				       .count = 4,
				       .token_type = types,
				       .merges = merges,
				       .merge_count = 1,
				       .bos = 3,
				       .eos = 3,
				       .eot = -1,
				       .pad = -1,
				       .unknown = -1,
				       .separator = -1,
				       .cls = -1,
				       .add_bos = 1,
				       .add_eos = -1,
				       .add_space_prefix = -1,
				       .remove_extra_spaces = -1 };
	char names[256];

	ok(!yk_tokenizer_gguf(&g, "g") && refused(yk_error_last(), YOKE_EFORMAT, "pre"),
	   "GGUF without the name of a pre-tokenizer is an error");
	g.pre = "none-such";
	ok(!yk_tokenizer_gguf(&g, "g") && refused(yk_error_last(), YOKE_EFORMAT, "none-such"),
	   "GGUF with an unknown pre-tokenizer is an error");
	snprintf(names, sizeof names, "%s", yk_tokenizer_pre_names());
	for (char *rest, *name = strtok_r(names, " ", &rest); name;
	     name = strtok_r(NULL, " ", &rest)) {
		int32_t *ids = NULL;
		size_t n = 0;
		g.pre = name;
		yoke_tokenizer *t = yk_tokenizer_gguf(&g, "g");
		if (t)
			yoke_tokenizer_encode(t, "ab<e>", 5,
					      YOKE_TOKENIZER_ADD | YOKE_TOKENIZER_PARSE, &ids, &n);
		ok(t && n == 3 && ids[0] == 3 && ids[1] == 2 && ids[2] == 3,
		   "GGUF: pre-tokenizer %s", name);
		free(ids);
		yoke_tokenizer_free(t);
	}
	g.merges = wrong;
	ok(!yk_tokenizer_gguf(&g, "g") && refused(yk_error_last(), YOKE_EFORMAT, "merge 0"),
	   "GGUF: a merge of unknown tokens is an error");
	g.model = "rwkv";
	ok(!yk_tokenizer_gguf(&g, "g") && refused(yk_error_last(), YOKE_EFORMAT, "rwkv"),
	   "GGUF: an unknown model is an error");
}

// Vocabularies that are padded with pieces of the type unknown, as Phi-3's is.
static void test_gguf_padded(void)
{
	static const struct yk_gguf_string tokens[] = {
		{ "<unk>", 5 }, { "a", 1 }, { "[PAD2]", 6 }, { "[PAD3]", 6 }
	};
	static const int32_t types[] = { 3, 1, 2, 2 };
	static const float scores[] = { 0, -1, -2, -3 };
	const struct yk_gguf_tokenizer g = { .model = "llama",
					     .tokens = tokens,
					     .count = 4,
					     .token_type = types,
					     .scores = scores,
					     .bos = -1,
					     .eos = -1,
					     .eot = -1,
					     .pad = -1,
					     .unknown = 0,
					     .separator = -1,
					     .cls = -1,
					     .add_bos = 0,
					     .add_eos = 0,
					     .add_space_prefix = 0,
					     .remove_extra_spaces = -1 };
	int32_t *ids = NULL;
	size_t n = 0;
	yoke_tokenizer *t = yk_tokenizer_gguf(&g, "g");
	if (t)
		yoke_tokenizer_encode(t, "aza", 3, 0, &ids, &n);
	ok(t && yoke_tokenizer_unknown(t) == 0 && n == 3 && ids[0] == 1 && ids[1] == 0 &&
		   ids[2] == 1,
	   "GGUF: pieces of the type unknown pad the vocabulary");
	free(ids);
	yoke_tokenizer_free(t);
}

// Tokens that end an answer: named by key, or found by their text.
static void test_gguf_ends(void)
{
	static const struct {
		const char *text;
		int type, ends; // 3: control, 4: user-defined; does it end a text?
	} cases[] = {
		{ "a", 1, 0 },		   { "<key>", 3, 1 },	    { "<|end|>", 4, 1 },
		{ "<end_of_turn>", 3, 1 }, { "<|im_end|>", 3, 1 },  { "<|eot_id|>", 3, 1 },
		{ "<|endoftext|>", 3, 1 }, { "</s>", 4, 0 },	    { "<|end_of_text|>", 1, 0 },
		{ "<|im_start|>", 3, 0 },  { "<|eom_id|>", 3, 1 },  { "<EOT>", 3, 1 },
	};
	enum { TOKENS = sizeof cases / sizeof *cases };
	struct yk_gguf_string tokens[TOKENS];
	int32_t types[TOKENS];
	struct yk_gguf_tokenizer g = { .model = "gpt2", .pre = "gpt-2", .tokens = tokens,
				       .count = TOKENS, .token_type = types, .bos = -1, .eos = 1,
				       .eot = 4, .pad = -1, .unknown = -1, .separator = -1,
				       .cls = -1, .add_bos = -1, .add_eos = -1,
				       .add_space_prefix = -1, .remove_extra_spaces = -1 };
	for (int round = 0; round < 2; round++) { // in the second, </s> is a control token
		const int32_t *ids = NULL;
		int ends[TOKENS] = { 0 }, wrong = 0;
		for (int i = 0; i < TOKENS; i++) {
			tokens[i] = (struct yk_gguf_string){ cases[i].text, strlen(cases[i].text) };
			types[i] = round && !strcmp(cases[i].text, "</s>") ? 3 : cases[i].type;
		}
		yoke_tokenizer *t = yk_tokenizer_gguf(&g, "g");
		const int n = t ? yoke_tokenizer_eos(t, &ids) : 0;
		for (int i = 0; i < n; i++)
			ends[ids[i]]++;
		for (int i = 0; i < TOKENS; i++)
			wrong += ends[i] !=
				 (round && !strcmp(cases[i].text, "</s>") ? 1 : cases[i].ends);
		ok(n == 8 + round && wrong == 0 && ids[0] == 1,
		   "GGUF: end tokens by key and by text, each once: %d, %d wrong, the first is %d",
		   n, wrong, n ? (int)ids[0] : -1);
		yoke_tokenizer_free(t);
	}
}

// ---- damaged files ----

// Opens and uses what can be opened; true if errors are single lines.
static bool survives(const char *data, size_t bytes)
{
	static int number;
	if (seeds)
		seed(seeds, "tokenizer", number++, data, bytes);
	yk_fuzz_tokenizer((const uint8_t *)data, bytes);
	return true;
}

// Each value of the file is replaced by values of other types, one at a time.
static int test_types(const char *file)
{
	static const char *const values[] = { "null", "-1",          "1e300", "99999999999", "[]",
					      "{}",   "\"\\u00ff\"", "true",  "[[[1]]]" };
	size_t bytes;
	char *data = read_model(file, &bytes);
	int n = 0;

	for (char *at = data; at && (at = strstr(at, "\":")); at += 2) {
		if (n > 400 && n % 7) { // vocabularies have many entries of one kind
			n++;
			continue;
		}
		const char *v = values[n % 9], *rest = at + 2;
		int depth = 0;
		for (bool quoted = false; *rest; rest++) {
			if (*rest == '\\' && quoted)
				rest++;
			else if (*rest == '"')
				quoted = !quoted;
			else if (!quoted && (*rest == '[' || *rest == '{'))
				depth++;
			else if (!quoted && (*rest == ']' || *rest == '}') && depth-- == 0)
				break;
			else if (!quoted && !depth && *rest == ',')
				break;
		}
		char *changed = malloc(bytes + 64);
		const int length = snprintf(changed, bytes + 64, "%.*s%s%s", (int)(at + 2 - data),
					    data, v, rest);
		survives(changed, (size_t)length);
		free(changed);
		n++;
		if (n > 600)
			break;
	}
	free(data);
	return n;
}

static int test_bytes(const char *file)
{
	size_t bytes;
	char *data = read_model(file, &bytes);

	for (size_t i = 0; data && i < 60; i++) {
		const size_t at = (i * 7919 + 13) % bytes;
		const char was = data[at];
		data[at] ^= (char)(1 << i % 8);
		survives(data, bytes);
		data[at] = was;
		survives(data, bytes * i / 60);
	}
	free(data);
	return data ? 120 : 0;
}

static void test_hostile(void)
{
	static const char *const json[] = { "gpt2.json",  "llama3.json",  "llama2.json",
					    "bert.json",  "unigram.json", "words.json",
					    "suffix.json" };
	static const struct {
		const char *text, *part;
	} bad[] = {
		{ "", "" },
		{ "{", "JSON" },
		{ "{}", "model" },
		{ "{\"model\": 3}", "model" },
		{ "{\"model\": {\"type\": \"Quantum\"}}", "Quantum" },
		{ "{\"model\": {\"type\": \"BPE\"}}", "vocab" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}}}", "merges" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [\"a b\"]}}",
		  "merge 0" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [\"a a\"]}}",
		  "merge 0" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [\"a\"]}}",
		  "merge 0" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [3]}}",
		  "merge 0" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": -1}, \"merges\": []}}",
		  "-1" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 1e9}, \"merges\": []}}",
		  "'a'" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 16000000}, \"merges\": []}}",
		  "16000000" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 1, \"b\": 1}, \"merges\": "
		  "[]}}",
		  "two tokens" },
		{ "{\"model\": {\"type\": \"Unigram\", \"vocab\": []}}", "vocab" },
		{ "{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\", 1]], \"unk_id\": 1}}",
		  "unk_id" },
		{ "{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\"]]}}", "token 0" },
		{ "{\"normalizer\": {\"type\": \"Magic\"}}", "Magic" },
		{ "{\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [1]}}", "entry 0" },
		{ "{\"pre_tokenizer\": {\"type\": \"Magic\"}}", "Magic" },
#if COMPLETE
		{ "{\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": "
		  "\"AAAA\"}}",
		  "map" },
		{ "{\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": \"!\"}}",
		  "base64" },
		{ "{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"(\"}, "
		  "\"behavior\": "
		  "\"Isolated\"}}",
		  "regular expression" },
		{ "{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"a\"}, "
		  "\"behavior\": \"X\"}}",
		  "behavior" },
#endif
		{ "{\"pre_tokenizer\": {\"type\": \"FixedLength\", \"length\": 0}}", "length" },
		{ "\x0a\x03\x0a\x01", "" }, // a field that is longer than the file
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
		  "\"merges\": [\"a b\", \"ab c\"]}}",
		  "merge 1" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
		  "\"merges\": [[\"a\", \"b\", \"c\"]]}}",
		  "merge 0" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
		  "\"merges\": [[\"a\"]]}}",
		  "merge 0" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
		  "\"merges\": [[\"a\", 1]]}}",
		  "merge 0" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
		  "\"merges\": {}}}",
		  "merges" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
		  "\"merges\": [\"b a\"]}}",
		  "merge 0" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
		  "\"merges\": [null]}}",
		  "merge 0" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
		  "\"merges\": [], \"byte_fallback\": 1}}",
		  "byte_fallback" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
		  "\"merges\": [], \"unk_token\": 5}}",
		  "unk_token" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
		  "\"merges\": []}, \"added_tokens\": {}}",
		  "added_tokens" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
		  "\"merges\": []}, \"added_tokens\": [1]}",
		  "id" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
		  "\"merges\": []}, \"added_tokens\": [{\"id\": -1, \"content\": \"x\"}]}",
		  "-1" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
		  "\"merges\": []}, \"added_tokens\": [{\"id\": 4294967296, \"content\": \"x\"}]}",
		  "" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
		  "\"merges\": []}, \"added_tokens\": [{\"id\": 3}]}",
		  "content" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
		  "\"merges\": []}, \"added_tokens\": [{\"content\": \"x\"}]}",
		  "id" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
		  "\"merges\": []}, \"added_tokens\": [{\"id\": 3, \"content\": \"\"}]}",
		  "" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
		  "\"merges\": []}, \"added_tokens\": [{\"id\": 3, \"content\": \"x\"}, {\"id\": "
		  "3, \"content\": \"y\"}]}",
		  "id 3" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
		  "\"merges\": []}, \"post_processor\": 3}",
		  "post-processor" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
		  "\"merges\": []}, \"post_processor\": {\"type\": \"Magic\"}}",
		  "Magic" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
		  "\"merges\": []}, \"decoder\": {\"type\": \"Magic\"}}",
		  "Magic" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
		  "\"merges\": []}, \"decoder\": []}",
		  "decoder" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
		  "\"merges\": []}, \"post_processor\": {\"type\": \"TemplateProcessing\", "
		  "\"single\": []}}",
		  "single" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
		  "\"merges\": []}, \"post_processor\": {\"type\": \"TemplateProcessing\", "
		  "\"single\": [{\"SpecialToken\": {\"id\": \"x\", \"type_id\": 0}}, "
		  "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}], \"special_tokens\": {\"x\": "
		  "{\"ids\": [99]}}}}",
		  "" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, "
		  "\"merges\": []}, \"post_processor\": {\"type\": \"TemplateProcessing\", "
		  "\"single\": [{\"SpecialToken\": {\"id\": \"x\"}}], \"special_tokens\": {}}}",
		  "" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": [], \"merges\": []}}", "vocab" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 1.5}, \"merges\": []}}",
		  "'a'" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": \"0\"}, \"merges\": []}}",
		  "'a'" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 9223372036854775807}, "
		  "\"merges\": []}}",
		  "a" },
		{ "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"a\": 1}, \"merges\": "
		  "[]}}",
		  "" },
		{ "{\"model\": {\"vocab\": 3}}", "" },
		{ "[]", "" },
		{ "3", "" },
		{ "null", "" },
		{ "{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\", \"1\"]]}}", "token 0" },
		{ "{\"model\": {\"type\": \"Unigram\", \"vocab\": [[1, 1]]}}", "token 0" },
		{ "{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\", 1], [\"a\", 2]], "
		  "\"unk_id\": -1}}",
		  "unk_id" },
		{ "{\"model\": {\"type\": \"Unigram\", \"vocab\": {\"a\": 1}}}", "vocab" },
		{ "{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}, \"unk_token\": "
		  "\"a\"}, \"normalizer\": 3}",
		  "normalizer" },
		{ "{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}, \"unk_token\": "
		  "\"a\"}, \"normalizer\": {\"type\": \"Sequence\"}}",
		  "normalizers" },
		{ "{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}, \"unk_token\": "
		  "\"a\"}, \"normalizer\": {\"type\": \"Prepend\"}}",
		  "prepend" },
		{ "{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}, \"unk_token\": "
		  "\"a\"}, \"normalizer\": {\"type\": \"Replace\", \"pattern\": {}, \"content\": "
		  "\"a\"}}",
		  "pattern" },
		{ "{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}, \"unk_token\": "
		  "\"a\"}, \"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"String\": "
		  "\"a\"}}}",
		  "content" },
		{ "{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}, \"unk_token\": "
		  "\"a\"}, \"pre_tokenizer\": []}",
		  "pre-tokenizer" },
		{ "{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}, \"unk_token\": "
		  "\"a\"}, \"pre_tokenizer\": {\"type\": 3}}",
		  "" },
		{ "{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}, \"unk_token\": "
		  "\"a\"}, \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": {}}}",
		  "pretokenizers" },
		{ "{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}, \"unk_token\": "
		  "\"a\"}, \"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"ab\"}}",
		  "character" },
		{ "{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}, \"unk_token\": "
		  "\"a\"}, \"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"a\", "
		  "\"prepend_scheme\": \"often\"}}",
		  "often" },
		{ "{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}, \"unk_token\": "
		  "\"a\"}, \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": 1}}",
		  "add_prefix_space" },
		{ "{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}, \"unk_token\": "
		  "\"a\"}, \"pre_tokenizer\": {\"type\": \"FixedLength\", \"length\": -1}}",
		  "length" },
		{ "\x0a", "" },     // a field without its length
		{ "\x0a\x80", "" }, // a length that is cut
		{ "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "" },     // 2^64 - 1 bytes
		{ "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "" },     // more than 64 bits
		{ "\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "" }, // a number of 11 bytes
		{ "\x0a\x05\x0a\x09"
		  "abc",
		  "" },                         // a piece that is longer than its message
		{ "\x0b\x0b\x0b", "" },         // groups
		{ "\x0e", "" },                 // wire type 6
		{ "\x0a\x03\x0a\x01\xff", "" }, // no UTF-8
		{ "\x12\x02\x18\x7f", "" },     // an unknown model type, and no pieces
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "" },
	};
	const int files = open_files();
	int n = 0;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		yoke_tokenizer *t = yoke_tokenizer_parse(bad[i].text, strlen(bad[i].text), "bad");
		ok(!t && refused(yk_error_last(), YOKE_EFORMAT, bad[i].part),
		   "damaged file %zu is refused", i);
		yoke_tokenizer_free(t);
	}
	for (size_t i = 0; i < sizeof json / sizeof *json; i++)
		n += test_types(json[i]);
	ok(n > 1000,
	   "%d tokenizer.json with a value of another type: an error of one line, or usable", n);
	n = test_bytes("spm_bpe.model") + test_bytes("spm_unigram.model") + test_bytes("gpt2.json");
	ok(n == 360, "%d files with a changed bit or cut short: an error of one line, or usable",
	   n);
	ok(open_files() == files, "damaged files leave no descriptor open");
}

// ---- limits ----

static void test_explosion(void)
{
	static const char text[] = "{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}, "
				   "\"unk_token\": \"a\"}, \"pre_tokenizer\": "
				   "{\"type\": \"Split\", \"pattern\": {\"Regex\": "
				   "\"((a|a)*)*$\"}, \"behavior\": \"Isolated\"}}";
	char input[64];
	int32_t *ids = NULL;
	size_t n;
	yoke_tokenizer *t = yoke_tokenizer_parse(text, sizeof text - 1, "explosion");

	memset(input, 'a', sizeof input);
	input[63] = 'b';
	ok(t &&
		   refused(yoke_tokenizer_encode(t, input, sizeof input, 0, &ids, &n), YOKE_ERANGE,
			   "backtrack") &&
		   !ids,
	   "a pattern that explodes is stopped");
	yoke_tokenizer_free(t);
}

// One word of 1 MiB: quadratic merging would need minutes.
static void test_long_word(const char *file)
{
	const size_t bytes = 1 << 20;
	char *text = malloc(bytes), *back = NULL;
	int32_t *ids = NULL;
	size_t n = 0, length = 0;
	yoke_tokenizer *t = open_model(file);

	memset(text, 'a', bytes);
	ok(t && yoke_tokenizer_encode(t, text, bytes, 0, &ids, &n) == 0 && n > 1 &&
		   yoke_tokenizer_decode(t, ids, n, 0, &back, &length) == 0 && length == bytes &&
		   !memcmp(back, text, bytes),
	   "%s: a word of 1 MiB comes back from its %zu ids", file, n);
	free(text);
	free(back);
	free(ids);
	yoke_tokenizer_free(t);
}

int main(int argc, char **argv)
{
	seeds = argc > 1 ? argv[1] : NULL;
	tap_folder();
	if (COMPLETE) {
		test_recorded();
		test_queries();
		test_folder();
		test_gguf();
		test_gguf_ends();
		test_gguf_padded();
		test_explosion();
		test_long_word("gpt2.json");
		test_long_word("llama2.json");
		test_long_word("spm_bpe.model");
		test_long_word("spm_unigram.model");
	} else {
		size_t bytes;
		char *data = read_model("gpt2.json", &bytes);
		ok(!yoke_tokenizer_parse(data, bytes, "gpt2.json") &&
			   yk_error_last() == YOKE_EUNSUPPORTED &&
			   refused(YOKE_EUNSUPPORTED, YOKE_EUNSUPPORTED, "libonig-dev"),
		   "without Oniguruma, byte-level tokenizers name the missing library");
		free(data);
	}
	test_hostile();
	return done();
}
