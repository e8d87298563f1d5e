// SPDX-License-Identifier: Apache-2.0
// Hostile files of published models: sets of shards, configurations that contradict the weights,
// GGUF files and split models with one flaw each, and many with arbitrary damage.  Each is refused
// with one line that names the file; no file stays open, and nothing is written.
// With an argument FOLDER the program writes GGUF files there, as seeds for tests/fuzz.
#include "config.h"

#include "hostile.h"

#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "../tests/gguf_write.h"
#include "export/export.h"
#include "fuzz/targets.h"
#include "models/pretrained.h"
#include "../tests/models/recorded_files.h"

static char place[300]; // of the case
static int cases_refused;

// Opens the path.  code: expected, 0: success; part: of the message.  The folder stays as it is.
static void check(const char *what, const char *path, int code, const char *part)
{
	const int open = open_files(), before = entries_of(place);
	yoke_model *m = yoke_model_open(path, NULL);
	const bool good = code ? !m && is_error(yoke_error_code(), code, part) : m != NULL;

	cases_refused += code != 0;
	if (!good)
		diag("%s: got %s", what, m ? "a model" : yoke_error());
	const bool open_here = m && !code;
	yoke_model_free(m);
	ok(good && (open_here || open_files() == open) && entries_of(place) == before, "%s: %s: %s",
	   code ? "refused" : "read", what, yoke_error());
	yoke_error_clear();
}

static void write_text(const char *name, const char *text)
{
	char path[400];

	snprintf(path, sizeof path, "%s/%s", place, name);
	yk_file_write(path, text, strlen(text));
}

// ---- sets of shards ----

// The first `n` tensors in the shard 1, the others in 2, and their index; `twice` is in both.
static json_t *write_shards(const struct tensors *all, int n, int twice)
{
	struct yk_host_tensor first[MAX_TENSORS];
	uint64_t bytes, hash;
	char path[400];
	json_t *map = json_object();

	snprintf(place, sizeof place, "%s/set", folder);
	mkdir(place, 0777);
	write_text("config.json", recorded[0].config);
	memcpy(first, all->t, sizeof first);
	if (twice >= 0)
		first[n] = all->t[twice];
	snprintf(path, sizeof path, "%s/one.safetensors", place);
	yk_safetensors_write(path, n + (twice >= 0), first, &bytes, &hash);
	snprintf(path, sizeof path, "%s/two.safetensors", place);
	memcpy(first, all->t, sizeof first);
	yk_safetensors_write(path, all->n - n, first + n, &bytes, &hash);
	for (int i = 0; i < all->n; i++)
		json_object_set_new(map, all->t[i].name,
				    json_string(i < n ? "one.safetensors" : "two.safetensors"));
	return json_pack("{s:o}", "weight_map", map);
}

static void write_index(const json_t *index)
{
	char *text = json_dumps(index, 0);

	write_text("model.safetensors.index.json", text);
	free(text);
}

static void check_index(const char *what, const json_t *index, int code, const char *part)
{
	write_index(index);
	check(what, place, code, part);
}

// The value of the first tensor in the map is replaced.
static void test_map(const json_t *index, const char *first)
{
	static const struct {
		const char *what, *json;
		int code;
		const char *part;
	} values[] = {
		{ "a shard that is missing", "\"three.safetensors\"", YOKE_ENOENT, "three" },
		{ "the other shard", "\"two.safetensors\"", YOKE_EFORMAT, "one.safetensors" },
		{ "a shard above", "\"../one.safetensors\"", YOKE_EFORMAT, "beside" },
		{ "a shard below", "\"x/one.safetensors\"", YOKE_EFORMAT, "beside" },
		{ "a shard by its absolute path", "\"/etc/passwd\"", YOKE_EFORMAT, "beside" },
		{ "a shard with ./", "\"./one.safetensors\"", YOKE_EFORMAT, "beside" },
		{ "the folder above", "\"..\"", YOKE_EFORMAT, "beside" },
		{ "the folder", "\".\"", YOKE_EFORMAT, "beside" },
		{ "no name", "\"\"", YOKE_EFORMAT, "beside" },
		{ "a number", "1", YOKE_EFORMAT, "beside" },
		{ "null", "null", YOKE_EFORMAT, "beside" },
		{ "a list of shards", "[\"one.safetensors\"]", YOKE_EFORMAT, "beside" },
		{ "config.json", "\"config.json\"", YOKE_EFORMAT, "config.json" },
		{ "the index", "\"model.safetensors.index.json\"", YOKE_EFORMAT, "index" },
		{ "a name of two lines", "\"a\\nb\"", YOKE_ENOENT, "directory" },
		{ "a device", "\"zero\"", YOKE_EFORMAT, "zero" },
		{ "a pipe", "\"pipe\"", YOKE_EFORMAT, "pipe" },
		{ "a link to nowhere", "\"nowhere\"", YOKE_ENOENT, "nowhere" },
	};
	char path[400];
	const char *links[][2] = { { "zero", "/dev/zero" }, { "nowhere", "none" } };

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/%s", place, links[i][0]);
		ok(symlink(links[i][1], path) == 0, "a link");
	}
	snprintf(path, sizeof path, "%s/pipe", place);
	ok(mkfifo(path, 0600) == 0, "a pipe");
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		json_t *copy = json_deep_copy(index);
		json_object_set_new(json_object_get(copy, "weight_map"), first,
				    json_loads(values[i].json, JSON_DECODE_ANY, NULL));
		check_index(values[i].what, copy, values[i].code, values[i].part);
		json_decref(copy);
	}
}

static void test_indexes(void)
{
	static const struct {
		const char *what, *text, *part;
	} texts[] = {
		{ "an empty index", "", "index" },
		{ "an index that is cut", "{\"weight_map\": {", "index" },
		{ "an index that is a list", "[]", "weight_map" },
		{ "an index without a map", "{\"metadata\": {}}", "weight_map" },
		{ "a map that is a list", "{\"weight_map\": []}", "weight_map" },
		{ "a map that is empty", "{\"weight_map\": {}}", "" },
		{ "a tensor listed twice",
		  "{\"weight_map\": {\"a\": \"one.safetensors\", \"a\": \"two.safetensors\"}}",
		  "index" },
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		write_text("model.safetensors.index.json", texts[i].text);
		check(texts[i].what, place, YOKE_EFORMAT, texts[i].part);
	}
}

static void test_shards(const struct tensors *all)
{
	const char *names[] = { "one.safetensors", "two.safetensors" };
	json_t *index = write_shards(all, 9, -1), *map = json_object_get(index, "weight_map");
	char path[400], outside[400];

	check_index("a set of two shards", index, 0, "");
	test_map(index, all->t[0].name);
	test_indexes();
	json_object_set_new(map, "surplus", json_string("one.safetensors"));
	check_index("a tensor that the shard lacks", index, YOKE_EFORMAT, "surplus");
	json_object_del(map, "surplus");
	json_object_del(map, all->t[0].name);
	check_index("a tensor that the index lacks", index, YOKE_EFORMAT, all->t[0].name);
	json_decref(index);
	index = write_shards(all, 9, 12);
	check_index("a tensor in two shards", index, YOKE_EFORMAT, "also in");
	json_decref(index);
	// as in Hugging Face's cache: a shard may be a link to another folder; the total is only a
	// remark
	index = write_shards(all, 9, -1);
	snprintf(path, sizeof path, "%s/%s", place, names[1]);
	snprintf(outside, sizeof outside, "%s/blob", folder);
	ok(rename(path, outside) == 0 && symlink("../blob", path) == 0, "a link to another folder");
	json_object_set_new(index, "metadata", json_pack("{s:i}", "total_size", 7));
	check_index("a link, and a total_size of 7", index, 0, "");
	for (int i = 0; i < 2; i++) { // each shard cut short
		char *data;
		size_t n;
		snprintf(path, sizeof path, "%s/%s", place, names[i]);
		if (yk_file_read(path, 1 << 20, &data, &n) < 0)
			break;
		for (size_t k = 0; k < 8; k++) {
			yk_file_write(path, data, n * k / 8);
			check("a shard that is cut short", place, YOKE_EFORMAT, names[i]);
		}
		yk_file_write(path, data, n);
		free(data);
	}
	json_decref(index);
}

// ---- configurations ----

// A copy of the configuration with one member of this JSON text, or without it if NULL.
static char *configured(const char *config, const char *key, const char *json)
{
	json_t *c = json_loads(config, 0, NULL);

	if (json)
		json_object_set_new(c, key, json_loads(json, JSON_DECODE_ANY, NULL));
	else
		json_object_del(c, key);
	char *text = json_dumps(c, 0);
	json_decref(c);
	return text;
}

static void check_config(const struct recorded *r, const struct tensors *all, const char *key,
			 const char *json)
{
	char what[200], *config = configured(r->config, key, json);

	snprintf(what, sizeof what, "%s: %s is %.60s", r->name, key, json);
	snprintf(place, sizeof place, "%s", write_folder("config", config, all));
	check(what, place, YOKE_EFORMAT, "config");
	free(config);
}

// Each size of the configuration, replaced.
static void test_sizes(const struct recorded *r, const char *const *keys)
{
	static const char *const values[] = { "0",    "-1",  "4294967296", "9223372036854775807",
					      "1e3",  "2.5", "\"32\"",     "true",
					      "[32]", "{}" };
	struct tensors all = tensors_of(r);
	json_t *c = json_loads(r->config, 0, NULL);

	for (; *keys; keys++) {
		const json_int_t is = json_integer_value(json_object_get(c, *keys));
		char text[32];
		for (size_t i = 0; i < sizeof values / sizeof *values; i++)
			check_config(r, &all, *keys, values[i]);
		for (int by = -1; by <= 1; by += 2) {
			snprintf(text, sizeof text, "%lld", (long long)(is + by));
			check_config(r, &all, *keys, text);
		}
	}
	json_decref(c);
	tensors_free(&all);
}

static void test_members(void)
{
	static const char *const members[][2] = {
		{ "model_type", "\"mamba\"" },
		{ "model_type", "\"\"" },
		{ "model_type", "\"a\\u0007\\nb\"" },
		{ "model_type", "null" },
		{ "model_type", "[\"llama\"]" },
		{ "model_type", "\"bert\"" },
		{ "model_type", "\"gpt2\"" },
		{ "hidden_act", "\"relu\"" },
		{ "hidden_act", "7" },
		{ "hidden_act", "\"\"" },
		{ "rope_scaling", "{\"rope_type\": \"spiral\", \"factor\": 2}" },
		{ "rope_scaling", "{\"rope_type\": 7}" },
		{ "rope_scaling", "{\"rope_type\": \"linear\", \"factor\": 0}" },
		{ "rope_scaling", "{\"rope_type\": \"linear\", \"factor\": -2}" },
		{ "rope_scaling", "{\"rope_type\": \"linear\", \"factor\": \"2\"}" },
		{ "rope_scaling", "{\"rope_type\": \"yarn\", \"factor\": 2, \"truncate\": false}" },
		{ "rope_scaling", "{\"rope_type\": \"llama3\", \"factor\": 2, "
				  "\"original_max_position_embeddings\": 0}" },
		{ "rope_scaling", "{\"rope_type\": \"longrope\"}" },
		{ "rope_scaling",
		  "{\"rope_type\": \"longrope\", \"long_factor\": [1], \"short_factor\": [1]}" },
		{ "rope_scaling", "{\"rope_type\": \"longrope\", \"short_factor\": [1, 1, 1, 0], "
				  "\"long_factor\": [1, 1, 1, 0]}" },
		{ "rope_scaling", "{\"rope_type\": \"longrope\", \"short_factor\": [1, 1, \"1\", "
				  "1], \"long_factor\": [1, 1, \"1\", 1]}" },
		{ "rope_scaling", "{\"rope_type\": \"longrope\", \"short_factor\": [1, 1e300, 1, "
				  "1], \"long_factor\": [1, 1e300, 1, 1]}" },
		{ "rope_scaling", "[]" },
		{ "rope_scaling", "\"linear\"" },
		{ "rope_parameters", "7" },
		{ "rope_theta", "0" },
		{ "rope_theta", "-10000" },
		{ "rope_theta", "\"1e4\"" },
		{ "partial_rotary_factor", "0.5" },
		{ "rms_norm_eps", "-1" },
		{ "rms_norm_eps", "\"small\"" },
		{ "rms_norm_eps", "[]" },
		{ "tie_word_embeddings", "\"no\"" },
		{ "attention_bias", "true" },
		{ "mlp_bias", "true" },
		{ "mlp_bias", "1" },
		{ "quantization_config", "{\"bits\": 4}" },
		{ "head_dim", "0" },
		{ "head_dim", "7" },
		{ "head_dim", "16" },
		{ "head_dim", "4097" },
		{ "head_dim", "\"8\"" },
	};
	struct tensors all = tensors_of(&recorded[0]);
	char *deep = malloc(1 << 20);

	for (size_t i = 0; i < sizeof members / sizeof *members; i++)
		check_config(&recorded[0], &all, members[i][0], members[i][1]);
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"null",
		"3",
		"{}",
		"{\"model_type\": \"llama\"} x",
		"{\"model_type\": \"llama\", \"model_type\": \"llama\"}",
		"\xff\xfe{\0}\0",
		"{'model_type': 'llama'}"
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		snprintf(place, sizeof place, "%s", write_folder("config", texts[i], &all));
		check("a config.json that is none", place, YOKE_EFORMAT, "config");
	}
	static const char *const opens[] = { "[", "{\"a\":", "[{\"a\":" };
	for (int i = 0; i < 3; i++) {
		char *at = deep;
		while (at - deep < (1 << 20) - 8)
			at = stpcpy(at, opens[i]);
		snprintf(place, sizeof place, "%s", write_folder("config", deep, &all));
		check("a config.json that is deeply nested", place, YOKE_EFORMAT, "config");
	}
	free(deep);
	tensors_free(&all);
}

static void test_configurations(void)
{
	static const char *const llama[] = { "vocab_size",
					     "hidden_size",
					     "intermediate_size",
					     "num_hidden_layers",
					     "num_attention_heads",
					     "num_key_value_heads",
					     NULL };
	static const char *const gpt2[] = { "vocab_size", "n_embd", "n_layer", NULL };

	test_sizes(&recorded[0], llama);
	for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++)
		if (!strcmp(recorded[i].name, "gpt2"))
			test_sizes(&recorded[i], gpt2);
	test_members();
}

// ---- GGUF ----

static unsigned char *gguf;
static size_t gguf_size;

// A key's value in a copy of the file: behind its name and type.
static unsigned char *value_of(unsigned char *data, const char *key)
{
	unsigned char *at = memmem(data, gguf_size, key, strlen(key));

	return at + strlen(key) + 4;
}

static void check_gguf(const char *what, const void *data, size_t bytes, const char *part)
{
	char path[400];

	snprintf(path, sizeof path, "%s/bad.gguf", place);
	yk_file_write(path, data, bytes);
	check(what, path, YOKE_EFORMAT, part);
}

// A key of four bytes with another value, or another type.
static void test_keys(void)
{
	static const char *const keys[] = { "llama.block_count",
					    "llama.embedding_length",
					    "llama.context_length",
					    "llama.attention.head_count",
					    "llama.attention.head_count_kv",
					    "llama.feed_forward_length" };
	static const uint32_t values[] = { 0, 3, 1u << 16 | 1, INT32_MAX, UINT32_MAX };
	static const uint32_t types[] = { 6, 8, 9, 13, UINT32_MAX };
	unsigned char *copy = malloc(gguf_size);
	char what[200];

	for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
		for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
			// contexts are as one likes
			if (k == 2 && (i == 1 || i == 2 || i == 3))
				continue;
			memcpy(copy, gguf, gguf_size);
			memcpy(value_of(copy, keys[k]), &values[i], 4);
			snprintf(what, sizeof what, "%s of %u", keys[k], (unsigned)values[i]);
			check_gguf(what, copy, gguf_size, "bad.gguf");
		}
		for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
			memcpy(copy, gguf, gguf_size);
			memcpy(value_of(copy, keys[k]) - 4, &types[i], 4);
			snprintf(what, sizeof what, "%s of type %u", keys[k], (unsigned)types[i]);
			check_gguf(what, copy, gguf_size, "bad.gguf");
		}
		// another name: the key is missing
		memcpy(copy, gguf, gguf_size);
		value_of(copy, keys[k])[-5] = '?';
		snprintf(what, sizeof what, "no %s", keys[k]);
		check_gguf(what, copy, gguf_size, "bad.gguf");
	}
	free(copy);
}

// Tensors with another name, dim, format or offset; the entry is the name, rank, dims, format,
// offset.
static void test_entries(void)
{
	static const struct {
		const char *what;
		size_t at, bytes; // behind the name
		uint64_t value;
	} cases[] = {
		{ "a rank of 0", 0, 4, 0 },
		{ "a rank of 1", 0, 4, 1 },
		{ "a rank of 5", 0, 4, 5 },
		{ "a rank of 2^32 - 1", 0, 4, UINT32_MAX },
		{ "a dim of 0", 4, 8, 0 },
		{ "a dim of 31", 4, 8, 31 },
		{ "a dim of 33", 4, 8, 33 },
		{ "a dim of 2^48", 4, 8, UINT64_C(1) << 48 },
		{ "a dim of 2^63", 4, 8, UINT64_C(1) << 63 },
		{ "a dim of 2^64 - 1", 4, 8, UINT64_MAX },
		{ "rows of 0", 12, 8, 0 },
		{ "rows of 2^61", 12, 8, UINT64_C(1) << 61 },
		{ "format 4", 20, 4, 4 },
		{ "format 31", 20, 4, 31 },
		{ "format 99", 20, 4, 99 },
		{ "format 2^32 - 1", 20, 4, UINT32_MAX },
		{ "an offset that is not aligned", 24, 8, 1 },
		{ "an offset beyond the file", 24, 8, UINT64_C(1) << 40 },
		{ "an offset of 2^63", 24, 8, UINT64_C(1) << 63 },
		{ "an offset of 2^64 - 32", 24, 8, UINT64_MAX - 31 },
	};
	unsigned char *copy = malloc(gguf_size);

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		memcpy(copy, gguf, gguf_size);
		memcpy(value_of(copy, "blk.1.attn_q.weight") - 4 + cases[i].at, &cases[i].value,
		       cases[i].bytes);
		check_gguf(cases[i].what, copy, gguf_size, "bad.gguf");
	}
	memcpy(copy, gguf, gguf_size);
	value_of(copy, "blk.1.attn_q.weight")[-5] = '\n';
	check_gguf("a name with a line break", copy, gguf_size, "bad.gguf");
	memcpy(copy, gguf, gguf_size);
	// as the entry of another tensor, with its offset
	memcpy(value_of(copy, "blk.1.attn_v.weight") + 20,
	       value_of(copy, "blk.1.attn_k.weight") + 20, 8);
	check_gguf("two tensors at one place", copy, gguf_size, "overlap");
	free(copy);
}

static void test_headers(void)
{
	static const struct {
		const char *what;
		size_t at, bytes;
		uint64_t value;
	} cases[] = {
		{ "version 0", 4, 4, 0 },
		{ "version 1", 4, 4, 1 },
		{ "version 4", 4, 4, 4 },
		{ "version 99", 4, 4, 99 },
		{ "big endian", 4, 4, 3u << 24 },
		{ "no tensors", 8, 8, 0 },
		{ "2^32 tensors", 8, 8, UINT64_C(1) << 32 },
		{ "2^63 tensors", 8, 8, UINT64_C(1) << 63 },
		{ "2^64 - 1 tensors", 8, 8, UINT64_MAX },
		{ "no keys", 16, 8, 0 },
		{ "2^32 keys", 16, 8, UINT64_C(1) << 32 },
		{ "2^64 - 1 keys", 16, 8, UINT64_MAX },
		{ "a key's name of 0 bytes", 24, 8, 0 },
		{ "a key's name of 256 bytes", 24, 8, 256 },
		{ "a key's name of 2^63 bytes", 24, 8, UINT64_C(1) << 63 },
		{ "a key's name of 2^64 - 1 bytes", 24, 8, UINT64_MAX },
	};
	static const uint32_t alignments[] = { 0, 3, 24, 1u << 21, 1u << 31, UINT32_MAX };
	unsigned char *copy = malloc(gguf_size);

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		memcpy(copy, gguf, gguf_size);
		memcpy(copy + cases[i].at, &cases[i].value, cases[i].bytes);
		check_gguf(cases[i].what, copy, gguf_size, "bad.gguf");
	}
	for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++) {
		struct gguf_file f = { 0 };
		size_t bytes;
		char what[64];
		gguf_text(&f, "general.architecture", "llama");
		gguf_u32(&f, "general.alignment", alignments[i]);
		unsigned char *data = gguf_bytes(&f, &bytes);
		snprintf(what, sizeof what, "an alignment of %u", (unsigned)alignments[i]);
		check_gguf(what, data, bytes, "alignment");
		free(data);
	}
	static const char *const names[] = { "", "mamba", "LLAMA", "llama2", "llama\n\033[31m" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct gguf_file f = { 0 };
		size_t bytes;
		gguf_text(&f, "general.architecture", names[i]);
		unsigned char *data = gguf_bytes(&f, &bytes);
		check_gguf("an unknown architecture", data, bytes, "architecture");
		free(data);
	}
	static const uint64_t lengths[] = { UINT64_C(1) << 20, UINT64_C(1) << 61, UINT64_C(1) << 63,
					    UINT64_MAX };
	for (uint32_t type = 0; type < 14; type++)
		for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
			struct gguf_file f = { 0 };
			size_t bytes;
			char what[64];
			gguf_array(&f, "long", type, lengths[i]);
			unsigned char *data = gguf_bytes(&f, &bytes);
			snprintf(what, sizeof what, "%llu elements of type %u",
				 (unsigned long long)lengths[i], (unsigned)type);
			check_gguf(what, data, bytes, "long");
			free(data);
		}
	free(copy);
}

// Numbers that no computation can use.
static void test_reals(void)
{
	static const char *const keys[] = { "llama.attention.layer_norm_rms_epsilon",
					    "llama.rope.freq_base", "llama.rope.scaling.factor",
					    "llama.rope.scaling.attn_factor",
					    "llama.final_logit_softcapping" };
	static const float values[] = { NAN, INFINITY, -1 };
	char what[200], path[400];

	snprintf(path, sizeof path, "%s/bad.gguf", place);
	for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
		for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
			const bool yarn = strstr(keys[k], "attn_factor");
			struct gguf_file f = { 0 };
			size_t bytes;
			gguf_text(&f, "general.architecture", "llama");
			for (int n = 0; n < 6; n++)
				gguf_u32(&f,
					 (const char *[]){ "llama.block_count",
							   "llama.embedding_length",
							   "llama.context_length",
							   "llama.attention.head_count",
							   "llama.feed_forward_length",
							   "llama.attention.head_count_kv" }[n],
					 (uint32_t[]){ 1, 8, 8, 2, 8, 2 }[n]);
			gguf_real(&f, keys[k], values[i]);
			if (yarn)
				gguf_real(&f, "llama.rope.scaling.factor", 2);
			if (strstr(keys[k], "scaling"))
				gguf_text(&f, "llama.rope.scaling.type", yarn ? "yarn" : "linear");
			gguf_tensor(&f, "token_embd.weight", 2, (const int64_t[]){ 8, 8 },
				    YK_GGUF_F32, gguf, 256);
			unsigned char *data = gguf_bytes(&f, &bytes);
			snprintf(what, sizeof what, "%s of %g", keys[k], (double)values[i]);
			check_gguf(what, data, bytes, "no possible model");
			free(data);
		}
}

// ---- tokenizers in GGUF ----

static void check_tokenizer(const char *what, struct gguf_file *f, const char *part)
{
	char path[400];

	snprintf(path, sizeof path, "%s/tokenizer.gguf", place);
	gguf_save(f, path);
	const int open = open_files();
	yoke_tokenizer *t = yoke_tokenizer_open(path);
	ok(!t && is_error(yoke_error_code(), YOKE_EFORMAT, part) && open_files() == open,
	   "refused: a tokenizer with %s: %s", what, yoke_error());
	cases_refused++;
	yoke_error_clear();
	yoke_tokenizer_free(t);
}

static void test_tokenizers(void)
{
	static const char *const tokens[] = { "<s>", "a", "b", "ab" },
				 *const twice[] = { "<s>", "a", "a", "ab" },
				 *const merges[] = { "a c", "a", "a b c", "", " ", "b a" };
	static const struct {
		const char *what, *key;
		int64_t value; // an integer
		const char *part;
	} ids[] = {
		{ "a flag that is a number", "tokenizer.ggml.add_bos_token", 1, "add_bos" },
		{ "tokens that are a number", "tokenizer.ggml.tokens", 1, "tokens" },
		{ "merges that are a number", "tokenizer.ggml.merges", 1, "merges" },
		{ "scores that are a number", "tokenizer.ggml.scores", 1, "scores" },
		{ "types that are a number", "tokenizer.ggml.token_type", 1, "token_type" },
		{ "a model that is a number", "tokenizer.ggml.model", 1, "model" },
		{ "a name that is a number", "tokenizer.ggml.pre", 1, "pre" },
		{ "a template that is a number", "tokenizer.chat_template", 1, "chat_template" },
	};

	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
		struct gguf_file f = { 0 };
		if (!strstr(ids[i].key, ".model"))
			gguf_text(&f, "tokenizer.ggml.model", "gpt2");
		if (!strstr(ids[i].key, ".pre"))
			gguf_text(&f, "tokenizer.ggml.pre", "gpt-2");
		if (!strstr(ids[i].key, ".tokens"))
			gguf_texts(&f, "tokenizer.ggml.tokens", 4, tokens);
		gguf_u32(&f, ids[i].key, (uint32_t)ids[i].value);
		check_tokenizer(ids[i].what, &f, ids[i].part);
	}
	for (size_t i = 0; i < sizeof merges / sizeof *merges; i++) {
		struct gguf_file f = { 0 };
		gguf_text(&f, "tokenizer.ggml.model", "gpt2");
		gguf_text(&f, "tokenizer.ggml.pre", "gpt-2");
		gguf_texts(&f, "tokenizer.ggml.tokens", 4, tokens);
		gguf_texts(&f, "tokenizer.ggml.merges", 1, &merges[i]);
		check_tokenizer("a merge of unknown pieces", &f, "merge 0");
	}
	static const char *const models[] = { "gpt2", "llama", "bert", "t5" };
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		struct gguf_file f = { 0 };
		gguf_text(&f, "tokenizer.ggml.model", models[i]);
		gguf_text(&f, "tokenizer.ggml.pre", "gpt-2");
		check_tokenizer("no tokens", &f, "token");
		gguf_text(&f, "tokenizer.ggml.model", models[i]);
		gguf_text(&f, "tokenizer.ggml.pre", "gpt-2");
		gguf_texts(&f, "tokenizer.ggml.tokens", 4, tokens);
		gguf_ints(&f, "tokenizer.ggml.token_type", 3, (const int32_t[]){ 1, 1, 1 });
		check_tokenizer("three types for four tokens", &f, "token_type");
		gguf_text(&f, "tokenizer.ggml.model", models[i]);
		gguf_text(&f, "tokenizer.ggml.pre", "none-such");
		gguf_texts(&f, "tokenizer.ggml.tokens", 4, i ? twice : tokens);
		gguf_ints(&f, "tokenizer.ggml.scores", 4, (const int32_t[]){ 1, 1, 1, 1 });
		check_tokenizer("an unknown name, or scores that are integers", &f, "");
	}
}

// ---- split models ----

// File `at` of a model of `of` files: says that it is number `no` of `count`, and has this tensor.
static void write_split(int at, int of, int no, int count, int tensors, const char *tensor)
{
	static const float x[8];
	char path[400];
	struct gguf_file f = { 0 };

	if (no >= 0)
		gguf_u32(&f, "split.no", (uint32_t)no);
	if (count >= 0)
		gguf_u32(&f, "split.count", (uint32_t)count);
	gguf_u32(&f, "split.tensors.count", (uint32_t)tensors);
	gguf_tensor(&f, tensor, 1, (const int64_t[]){ 8 }, YK_GGUF_F32, x, sizeof x);
	snprintf(path, sizeof path, "%s/m-%05d-of-%05d.gguf", place, at, of);
	gguf_save(&f, path);
}

static void test_splits(void)
{
	static const struct {
		const char *what;
		int no[3], count[3], tensors;
		const char *name[3], *part;
	} cases[] = {
		{ "the second part is the third",
		  { 0, 2, 2 },
		  { 3, 3, 3 },
		  3,
		  { "a", "b", "c" },
		  "00002-of" },
		{ "parts in another order",
		  { 0, 2, 1 },
		  { 3, 3, 3 },
		  3,
		  { "a", "b", "c" },
		  "00002-of" },
		{ "the first part twice",
		  { 0, 0, 2 },
		  { 3, 3, 3 },
		  3,
		  { "a", "b", "c" },
		  "00002-of" },
		{ "a part of another count",
		  { 0, 1, 2 },
		  { 3, 3, 2 },
		  3,
		  { "a", "b", "c" },
		  "00003-of" },
		{ "a part without a number",
		  { 0, 1, -1 },
		  { 3, 3, 3 },
		  3,
		  { "a", "b", "c" },
		  "00003-of" },
		{ "a part without a count",
		  { 0, -1, 2 },
		  { 3, -1, 3 },
		  3,
		  { "a", "b", "c" },
		  "00002-of" },
		{ "a tensor in two parts",
		  { 0, 1, 2 },
		  { 3, 3, 3 },
		  3,
		  { "a", "b", "b" },
		  "twice" },
		{ "another number of tensors",
		  { 0, 1, 2 },
		  { 3, 3, 3 },
		  4,
		  { "a", "b", "c" },
		  "tensors" },
		{ "the first says it is the second",
		  { 1, 1, 2 },
		  { 3, 3, 3 },
		  3,
		  { "a", "b", "c" },
		  "name" },
		{ "a count of 0", { 0, 1, 2 }, { 0, 3, 3 }, 3, { "a", "b", "c" }, "split.count" },
		{ "a count of 2", { 0, 1, 2 }, { 2, 3, 3 }, 3, { "a", "b", "c" }, "name" },
		{ "a count of 10^5",
		  { 0, 1, 2 },
		  { 100000, 3, 3 },
		  3,
		  { "a", "b", "c" },
		  "split.count" },
	};
	char path[400];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (int k = 0; k < 3; k++)
			write_split(k + 1, 3, cases[i].no[k], cases[i].count[k], cases[i].tensors,
				    cases[i].name[k]);
		snprintf(path, sizeof path, "%s/m-00001-of-00003.gguf", place);
		check(cases[i].what, path, YOKE_EFORMAT, cases[i].part);
	}
	for (int k = 0; k < 3; k++)
		write_split(k + 1, 3, k, 3, 3, (const char *[]){ "a", "b", "c" }[k]);
	struct yk_gguf g;
	const int e = yk_gguf_open(&g, path);
	ok(e == 0 && g.tensors == 3, "a split model of three files opens %s", yoke_error());
	if (e == 0)
		yk_gguf_close(&g);
	for (int k = 3; k > 1; k--) {
		char other[400];
		snprintf(other, sizeof other, "%s/m-%05d-of-00003.gguf", place, k);
		check("not the first part", other, YOKE_EFORMAT, "00001-of");
		unlink(other);
		check("a part that is missing", path, YOKE_ENOENT, "of-00003");
	}
}

// ---- damage ----

// Cut short at many places, and with changed bytes and words: an error of one line, or a model.
static void test_damage(const char *seeds)
{
	unsigned char *copy = malloc(gguf_size);
	static const uint32_t words[] = { 0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x00010000 };
	const size_t head = (size_t)(value_of(gguf, "output_norm.weight") - gguf);
	const int open = open_files();
	int n = 0;

	for (size_t i = 0; i < 100; i++, n++)
		yk_fuzz_gguf(gguf, gguf_size * i / 100);
	for (uint32_t i = 0; i < 400; i++, n++) {
		const size_t at = mix(i, 11) % (head - 4);
		memcpy(copy, gguf, gguf_size);
		if (i % 2)
			memcpy(copy + at, &words[mix(i, 17) % 6], 4);
		else
			copy[at] = (unsigned char)mix(i, 13);
		if (seeds && i < 40)
			seed(seeds, "gguf", (int)i, copy, gguf_size);
		yk_fuzz_gguf(copy, gguf_size);
	}
	ok(open_files() == open, "%d damaged GGUF files: an error of one line, or a model", n);
	free(copy);
}

// The same for config.json and the index of shards.
static void test_damaged_text(const struct tensors *all)
{
	static const char odd[] = "{}[]\",:0-9eE.\\x\n\xff";
	const char *config = recorded[0].config;
	char *copy = strdup(config);
	const size_t length = strlen(config);
	int wrong = 0, n = 0;

	for (size_t i = 0; i < length; i += 2, n++) {
		const char was = copy[i];
		copy[i] = i % 3 ? odd[mix(i, 19) % (sizeof odd - 1)] : 0;
		snprintf(place, sizeof place, "%s", write_folder("damaged", copy, all));
		yoke_model *m = yoke_model_open(place, NULL);
		wrong += !m && (!yoke_error_code() || !*yoke_error() ||
				strpbrk(yoke_error(), "\n\r\033"));
		yoke_error_clear();
		yoke_model_free(m);
		copy[i] = was;
	}
	ok(wrong == 0, "%d damaged config.json: an error of one line, or a model", n);
	free(copy);
}

int main(int argc, char **argv)
{
	char model[300], path[300];

	setenv("YOKE_BACKEND", "cpu", 1);
	tap_seed();
	tap_folder();
	mkdir(folder, 0777);
	struct tensors all = tensors_of(&recorded[0]);
	snprintf(model, sizeof model, "%s", write_folder("llama", recorded[0].config, &all));
	snprintf(path, sizeof path, "%s/llama.gguf", folder);
	snprintf(place, sizeof place, "%s", folder);
	const struct yk_export_options o = { .format = -1 };
	char *data = NULL;
	if (!ok(yk_export_gguf(model, path, &o) == 0 &&
			yk_file_read(path, 1 << 24, &data, &gguf_size) == 0,
		"a model as GGUF %s", yoke_error()))
		return done();
	gguf = (unsigned char *)data;
	if (argc > 1)
		seed(argv[1], "gguf", 999, gguf, gguf_size);
	check("the model", path, 0, "");
	test_headers();
	test_keys();
	test_entries();
	test_reals();
	test_tokenizers();
	test_splits();
	test_damage(argc > 1 ? argv[1] : NULL);
	test_shards(&all);
	test_configurations();
	test_damaged_text(&all);
	diag("%d files were refused one by one", cases_refused);
	tensors_free(&all);
	free(data);
	return done();
}
