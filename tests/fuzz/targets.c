// SPDX-License-Identifier: Apache-2.0
// The fuzz targets. Input files are in memory, accessed through /proc/self/fd.
#include "config.h"

#include "fuzz/targets.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "data/envi.h"
#include "formats/checkpoint.h"
#include "formats/gguf.h"
#include "formats/image.h"
#include "nn/model.h"
#include "schema/schema.h"
#include "text/tokenizer.h"
#include "config/conf.h"
#include "train/check.h"
#include "yoke-data.h"
#include "yoke-model.h"
#include "yoke-tokenizer.h"

#define MUST(x) \
	((x) ? (void)0 : fail(#x, __LINE__))

static void fail(const char *what, int line)
{
	fprintf(stderr, "targets.c:%d: does not hold: %s; %s\n", line, what, yoke_error());
	abort();
}

// Checks the outcome: 0 without an error, or a code with one line.
static void check_error(int e)
{
	MUST(e <= 0 && yoke_error_code() == e);
	MUST(!e == !*yoke_error() && !strpbrk(yoke_error(), "\n\r\033"));
	yoke_error_clear();
}

// A file in memory and its path.
static int file_of(const uint8_t *data, size_t bytes, char path[32])
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	MUST(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes);
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return fd;
}

// ---- safetensors ----

// Accepted entries are contiguous in `size` bytes from `start` on, and are found by their names.
static void check_entries(const struct yk_safetensors *s, uint64_t start, uint64_t size)
{
	uint64_t at = start;

	for (int i = 0; i < s->count; i++) {
		const struct yk_safetensors_entry *x = &s->entries[i];
		struct yk_host_tensor t = { .name = x->name, .dtype = x->dtype,
					    .rank = x->rank };
		uint64_t bytes;
		memcpy(t.dims, x->dims, sizeof t.dims);
		MUST(x->rank >= 0 && x->rank <= YOKE_MAX_RANK);
		MUST(yk_host_tensor_bytes(&t, &bytes) == 0 && bytes == x->bytes);
		MUST(x->offset == at && yk_safetensors_find(s, x->name) == x);
		at += bytes;
	}
	MUST(at == start + size);
}

// Another JSON reader must agree about accepted input.
static void check_tree(const struct yk_safetensors *s, const json_t *o)
{
	bool metadata = json_object_get(o, YK_SAFETENSORS_METADATA) != NULL;

	MUST(json_object_size(o) == (size_t)s->count + metadata);
	for (int i = 0; i < s->count; i++) {
		const struct yk_safetensors_entry *x = &s->entries[i];
		const json_t *t = json_object_get(o, x->name);
		const json_t *shape = json_object_get(t, "shape");
		const json_t *at = json_object_get(t, "data_offsets");
		const char *dtype = json_string_value(json_object_get(t, "dtype"));
		MUST(dtype && !strcmp(dtype, yk_safetensors_dtype(x->dtype)));
		MUST(json_array_size(shape) == (size_t)x->rank);
		for (int k = 0; k < x->rank; k++)
			MUST(json_integer_value(json_array_get(shape, (size_t)k)) ==
			     x->dims[k]);
		MUST((uint64_t)json_integer_value(json_array_get(at, 0)) == x->offset);
		MUST((uint64_t)json_integer_value(json_array_get(at, 1)) ==
		     x->offset + x->bytes);
	}
}

static void fuzz_header(const uint8_t *data, size_t bytes, uint64_t size)
{
	struct yk_safetensors s = { .fd = -1, .path = strdup("fuzz") };
	char *copy = malloc(bytes + 1);

	s.text = malloc(bytes + 1); // exactly sized, so that an access past the end shows
	MUST(s.path && copy && s.text);
	memcpy(copy, data, bytes);
	memcpy(s.text, data, bytes);
	int e = yk_safetensors_header(&s, s.text, bytes, size);
	check_error(e);
	if (e == 0) {
		json_t *o = json_loadb(copy, bytes, 0, NULL);
		MUST(o);
		check_entries(&s, 0, size);
		check_tree(&s, o);
		json_decref(o);
	}
	free(copy);
	yk_safetensors_close(&s);
}

static void fuzz_file(const uint8_t *data, size_t bytes)
{
	struct yk_safetensors s;
	char path[32];
	uint64_t length;
	int fd = file_of(data, bytes, path), e = yk_safetensors_open(&s, path);

	check_error(e);
	if (e == 0) {
		memcpy(&length, data, 8);
		check_entries(&s, 8 + length, bytes - 8 - length);
		for (int i = 0; i < s.count; i++) {
			void *to = malloc(s.entries[i].bytes + 1);
			MUST(to);
			check_error(yk_safetensors_read(&s, &s.entries[i], to));
			free(to);
		}
		yk_safetensors_close(&s);
	}
	close(fd);
}

void yk_fuzz_safetensors(const uint8_t *data, size_t bytes)
{
	fuzz_file(data, bytes);
	if (bytes >= 2)
		fuzz_header(data + 2, bytes - 2, (uint64_t)data[0] | (uint64_t)data[1] << 8);
}

// ---- manifests ----

static void repair(json_t *o)
{
	char hex[17];

	json_object_del(o, "xxh64");
	char *text = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS);
	MUST(text);
	snprintf(hex, sizeof hex, "%016" PRIx64, yk_hash(text, strlen(text), 0));
	free(text);
	MUST(json_object_set_new(o, "xxh64", json_string(hex)) == 0);
}

static void fuzz_parts(const struct yk_checkpoint *c)
{
	const struct yk_model *model;
	struct yk_model_shape shape;
	struct yk_config config;

	MUST(c->generation > 0 && c->step >= 0);
	for (int part = 0; part < YK_CHECKPOINT_PARTS; part++)
		MUST(!strchr(c->file[part].name, '/') && *c->file[part].name);
	struct yk_tokenizer *t = yk_tokenizer_load(c->tokenizer, "fuzz");
	check_error(t ? 0 : yoke_error_code());
	yk_tokenizer_free(t);
	int e = yk_model_parse(c->model, "fuzz", &model, &shape);
	MUST(e < 0 || yk_model_elements(model, &shape) > 0);
	check_error(e);
	MUST(yk_config_init(&config, YK_T) == 0);
	check_error(yk_config_take(&config, c->config, "fuzz"));
	yk_config_fini(&config);
}

void yk_fuzz_manifest(const uint8_t *data, size_t bytes)
{
	struct yk_checkpoint c;
	json_t *o = yk_json_parse((const char *)data, bytes, "fuzz");

	check_error(o ? 0 : yoke_error_code());
	if (!o)
		return;
	if (json_is_object(o))
		repair(o);
	int e = yk_checkpoint_parse(o, "fuzz", &c);
	check_error(e);
	json_decref(o);
	if (e < 0)
		return;
	fuzz_parts(&c);
	yk_checkpoint_fini(&c);
}

// ---- configuration ----

void yk_fuzz_config(const uint8_t *data, size_t bytes)
{
	struct yk_config c;
	char path[32];
	int fd = file_of(data, bytes, path);

	MUST(yk_config_init(&c, YK_T) == 0);
	int e = yk_config_file(&c, path);
	check_error(e);
	if (e == 0)
		check_error(yk_config_check(&c));
	yk_config_fini(&c);
	close(fd);
}

// ---- sources of samples ----

// The first and the last sample of accepted input are in the file, or the error names the file.
// packed: the number of bytes that one byte of the file may expand to.
static void fuzz_source(const uint8_t *data, size_t bytes, const char *settings, size_t packed)
{
	char path[32];
	int fd = file_of(data, bytes, path);
	yoke_dataset *d = yoke_dataset_open(path, settings);

	check_error(d ? 0 : yoke_error_code());
	if (d) {
		const int n = yoke_dataset_fields(d, 0, NULL);
		struct yoke_field *f = calloc((size_t)n, sizeof *f);
		void **to = calloc((size_t)n, sizeof *to);
		MUST(f && to && n > 0 && yoke_dataset_count(d) > 0);
		f[0].size = sizeof *f;
		MUST(yoke_dataset_fields(d, n, f) == n);
		for (int i = 0; i < n; i++) {
			size_t size = yoke_dtype_size(f[i].dtype);
			for (int k = 0; k < f[i].rank; k++)
				size *= (size_t)f[i].dims[k];
			// elements grow by at most a factor of eight
			MUST(size <= 8 * packed * bytes + 8);
			to[i] = malloc(size);
			MUST(to[i]);
		}
		check_error(yoke_dataset_read(d, 0, 1, 0, 0, to, NULL));
		check_error(yoke_dataset_read(d, yoke_dataset_count(d) - 1, 1, 0, 0, to, NULL));
		for (int i = 0; i < n; i++)
			free(to[i]);
		free(to);
		free(f);
	}
	yoke_dataset_free(d);
	close(fd);
}

void yk_fuzz_npy(const uint8_t *data, size_t bytes)
{
	fuzz_source(data, bytes, "format=npy", 1);
}

void yk_fuzz_tokens(const uint8_t *data, size_t bytes)
{
	fuzz_source(data, bytes, "format=tokens context=2", 1);
	fuzz_source(data, bytes, "format=safetensors", 1);
}

void yk_fuzz_table(const uint8_t *data, size_t bytes)
{
	fuzz_source(data, bytes, "format=csv columns=a:text,b:category", 1);
	fuzz_source(data, bytes, "format=csv", 1);
	fuzz_source(data, bytes, "format=jsonl field=a", 1);
}

void yk_fuzz_npz(const uint8_t *data, size_t bytes)
{
	fuzz_source(data, bytes, "format=npz", 1100);
}

void yk_fuzz_image(const uint8_t *data, size_t bytes)
{
	struct yk_image im;
	const int e = yk_image_decode(&im, "fuzz", data, bytes);

	check_error(e);
	if (e < 0)
		return;
	MUST(im.width > 0 && im.height > 0 && im.width <= YK_IMAGE_SIDE &&
	     im.height <= YK_IMAGE_SIDE);
	MUST((int64_t)im.width * im.height <= YK_IMAGE_PIXELS);
	unsigned sum = 0; // all of it is there
	for (size_t i = 0; i < (size_t)3 * (size_t)im.width * (size_t)im.height; i++)
		sum += im.rgb[i];
	MUST(sum <= 255u * 3 * YK_IMAGE_PIXELS);
	free(im.rgb);
}

// ---- GGUF ----

// Are all keys and tensors inside the files, and found by their names?
static void check_gguf(const struct yk_gguf *g)
{
	for (size_t i = 0; i < g->keys; i++) {
		const struct yk_gguf_key *k = &g->key[i];
		struct yk_gguf_strings s = yk_gguf_strings(k);
		const char *text;
		size_t bytes, sum = 0;
		MUST(yk_gguf_key(g, k->name) == k);
		while (yk_gguf_next(&s, &text, &bytes))
			sum += bytes + 8;
		MUST(k->type != YK_GGUF_STRING || sum == k->bytes);
		MUST(k->data >= g->file[0].map &&
		     k->bytes <= g->file[0].bytes - (size_t)(k->data - g->file[0].map));
	}
	for (size_t i = 0; i < g->tensors; i++) {
		const struct yk_gguf_tensor *t = &g->tensor[i];
		const struct yk_gguf_file *f = &g->file[t->file];
		MUST(yk_gguf_tensor(g, t->name) == t);
		MUST(t->data >= f->map && t->bytes <= f->bytes - (size_t)(t->data - f->map));
	}
}

void yk_fuzz_gguf(const uint8_t *data, size_t bytes)
{
	char path[32];
	struct yk_gguf g;
	int fd = file_of(data, bytes, path), e = yk_gguf_open(&g, path);

	check_error(e);
	if (e == 0) {
		check_gguf(&g);
		yk_gguf_close(&g);
		yoke_model *m = yoke_model_open(path, NULL);
		check_error(m ? 0 : yoke_error_code());
		yoke_model_free(m);
		yoke_tokenizer *t = yoke_tokenizer_open(path);
		check_error(t ? 0 : yoke_error_code());
		yoke_tokenizer_free(t);
	}
	close(fd);
}

// ---- tokenizers ----

void yk_fuzz_tokenizer(const uint8_t *data, size_t bytes)
{
	static const char text[] =
		"Hello <s>[SEP] world's  12345 \xe5\x8c\x97\xe4\xba\xac \xf0\x9f\x99\x82 e\xcc\x81";
	yoke_tokenizer *t = yoke_tokenizer_parse(data, bytes, "fuzz");

	check_error(t ? 0 : yk_error_last());
	for (unsigned flags = 0; t && flags < 4; flags++) {
		int32_t *ids;
		char *back;
		size_t n, length;
		int e = yoke_tokenizer_encode(t, text, sizeof text - 1, flags, &ids, &n);
		check_error(e);
		if (e < 0)
			continue;
		for (size_t i = 0; i < n; i++)
			MUST(ids[i] >= 0);
		e = yoke_tokenizer_decode(t, ids, n, 4 * flags, &back, &length);
		check_error(e);
		if (e == 0)
			MUST(!back[length]);
		free(ids);
		if (e == 0)
			free(back);
	}
	yoke_tokenizer_free(t);
}

// ---- chat templates ----

void yk_fuzz_template(const uint8_t *data, size_t bytes)
{
	static const char messages[] =
		"[{\"role\": \"user\", \"content\": \"Hello \\u00e9\", \"n\": [1, 2.5, null, true]}]";
	const struct yoke_chat_options o = { .size = sizeof o,
					     .add_generation_prompt = 1,
					     .tools = "[{\"name\": \"f\"}]" };
	yoke_chat_template *t = yoke_chat_template_parse((const char *)data, bytes, "fuzz");
	char *text;
	size_t length;

	check_error(t ? 0 : yk_error_last());
	if (!t)
		return;
	const int e = yoke_chat_template_render_json(t, messages, sizeof messages - 1, &o, &text,
						     &length);
	check_error(e);
	if (e == 0) {
		MUST(!text[length] && length <= (size_t)1 << 20);
		free(text);
	}
	yoke_chat_template_free(t);
}

// ---- schemas ----

// A vocabulary of all bytes, a few longer tokens, and one that ends a text.
static struct yk_schema_vocab *schema_vocab(void)
{
	static const char *const words[] = { "{\"",  "\":", "\",\"", "\"}", "}]}",
					     "[[",   "]",   ", ",    ": ",  "true",
					     "null", "12",  "abc",   "\\u", "\xc3\xa9" };
	enum { WORDS = sizeof words / sizeof *words, TOKENS = 256 + WORDS + 1 };
	const char *text[TOKENS];
	size_t n[TOKENS];
	enum yk_schema_token kind[TOKENS] = { 0 };
	char byte[256];

	for (int i = 0; i < 256; i++) {
		byte[i] = (char)i;
		text[i] = &byte[i];
		n[i] = 1;
	}
	for (int i = 0; i <= WORDS; i++) {
		text[256 + i] = i < WORDS ? words[i] : "";
		n[256 + i] = strlen(text[256 + i]);
	}
	kind[TOKENS - 1] = YK_TOKEN_ENDS;
	return yk_schema_vocab_of(TOKENS, text, n, kind);
}

// The token that a hash chooses among those of a bitmap; -1: none.
static int schema_token(const uint32_t *bits, int n, uint64_t hash)
{
	for (int i = 0, at = (int)(hash % (uint64_t)n); i < n; i++, at = (at + 1) % n)
		if (bits[at / 32] >> at % 32 & 1)
			return at;
	return -1;
}

void yk_fuzz_schema(const uint8_t *data, size_t bytes)
{
	json_t *j = yk_json_parse((const char *)data, bytes, "fuzz");
	struct yk_schema_vocab *v = schema_vocab();
	struct yk_schema *g = j && v ? yk_schema_compile(j, v) : NULL;
	uint32_t bits[16];

	MUST(v && yk_schema_vocab_words(v) <= 16);
	check_error(g ? 0 : yk_error_last());
	struct yk_schema_state *s = g ? yk_schema_begin(g) : NULL;
	for (uint64_t i = 0; s && i < 100 && !yk_schema_finished(s); i++) {
		int e = yk_schema_allowed(s, bits);
		check_error(e);
		if (e < 0)
			break;
		const int token = schema_token(bits, (int)yk_schema_vocab_words(v) * 32,
					       yk_hash(&i, sizeof i, bytes));
		MUST(token >= 0);
		e = yk_schema_advance(s, token);
		check_error(e);
		MUST(e == 0 || e == YOKE_ERANGE);
	}
	yk_schema_end(s);
	yk_schema_free(g);
	yk_schema_vocab_free(v);
	json_decref(j);
}

// ---- ENVI ----

void yk_fuzz_envi(const uint8_t *data, size_t bytes)
{
	struct yk_envi e;
	uint64_t n;
	int err = yk_envi_parse(&e, "fuzz", (const char *)data, bytes);

	check_error(err);
	if (err)
		return;
	MUST(e.lines > 0 && e.samples > 0 && e.bands > 0 && e.bands <= YK_ENVI_BANDS &&
	     e.scale > 0);
	MUST(!__builtin_mul_overflow((uint64_t)e.lines, (uint64_t)e.samples, &n));
	MUST(!__builtin_mul_overflow(n, (uint64_t)(e.bands * e.type->width), &n) && n == e.bytes);
	for (int64_t i = 0; e.wavelength && i < e.bands; i++)
		MUST(e.wavelength[i] - e.wavelength[i] == 0);
	yk_envi_fini(&e);
}
