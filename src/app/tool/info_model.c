// SPDX-License-Identifier: Apache-2.0
// yoke info MODEL: describes a pretrained model from its configuration and the directory of its
// files. No weight is read.
#include "config.h"

#include "tool/tool.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/json.h"
#include "formats/checkpoint.h"
#include "models/pretrained.h"
#include "observe/memory.h"
#include "tokenizer/tokenizer.h"
#include "tool/table.h"

// ---- gathering ----

static int64_t integer(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

static void add_to(json_t *o, const char *key, uint64_t n)
{
	json_object_set_new(o, key, json_integer((json_int_t)((uint64_t)integer(o, key) + n)));
}

// One entry per format in order of appearance; *bytes: of all tensors.
static json_t *gather_formats(const struct yk_weights *w, uint64_t *bytes)
{
	json_t *list = json_array(), *o;
	struct yk_weight_stored x;
	size_t k;

	*bytes = 0;
	for (size_t i = 0; yk_weights_stored(w, i, &x); i++) {
		json_t *found = NULL;
		json_array_foreach (list, k, o)
			if (!strcmp(yk_cell(o, "format"), x.format))
				found = o;
		if (!found) {
			found = json_pack("{s:s}", "format", x.format);
			json_array_append_new(list, found);
		}
		add_to(found, "tensors", 1);
		add_to(found, "elements", x.elements);
		add_to(found, "bytes", x.bytes);
		*bytes += x.bytes;
	}
	return list;
}

// Null if there is no tokenizer; an unusable one does not hide the rest of the model.
static json_t *gather_tokenizer(const char *path)
{
	yoke_tokenizer *t = yoke_tokenizer_open(path);
	json_t *o;

	if (t)
		o = json_pack("{s:s, s:i, s:b}", "kind", yk_tokenizer_model_name(t), "tokens",
			      yoke_tokenizer_size(t), "chat_template",
			      yoke_tokenizer_template(t) != NULL);
	else if (yoke_error_code() == YOKE_ENOENT)
		o = json_null();
	else
		o = json_pack("{s:s}", "error", yoke_error());
	yoke_error_clear();
	yoke_tokenizer_free(t);
	return o;
}

// Bytes of the weights, and of the keys and values of one sequence as long as the context; an
// encoder keeps none.
static json_t *gather_memory(const struct yk_family *f, const struct yk_model_shape *s,
			     uint64_t stored, int64_t parameters)
{
	const int64_t columns = f->encoder ? 0 : s->decoder.kv_heads * s->decoder.head_dim;
	int64_t elements;

	if (__builtin_mul_overflow(2 * s->layers * columns, s->context, &elements) ||
	    elements > INT64_MAX / 8) {
		yk_fail(YOKE_EFORMAT,
			"keys and values of %" PRId64 " tokens in %" PRId64
			" layers exceed any memory",
			s->context, s->layers);
		return NULL;
	}
	return json_pack("{s:I, s:I, s:I, s:I}", "weights_stored", (json_int_t)stored,
			 "weights_f32", (json_int_t)(4 * parameters), "kv_f16",
			 (json_int_t)(2 * elements), "kv_f32", (json_int_t)(4 * elements));
}

static json_t *describe(const char *path, const struct yk_weights *w, const struct yk_family *f,
			const struct yk_model_shape *s)
{
	const int64_t parameters = yk_model_elements(yk_pretrained_model(f), s);
	uint64_t stored;
	json_t *formats = gather_formats(w, &stored),
	       *memory = gather_memory(f, s, stored, parameters);

	if (!memory) {
		json_decref(formats);
		return NULL;
	}
	json_t *o = json_pack(
		"{s:s, s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}",
		"path", path, "family", f->name, "encoder", f->encoder, "parameters",
		(json_int_t)parameters, "layers", (json_int_t)s->layers, "width",
		(json_int_t)s->embed, "heads", (json_int_t)s->heads, "kv_heads",
		(json_int_t)s->decoder.kv_heads, "head_dim", (json_int_t)s->decoder.head_dim,
		"hidden", (json_int_t)s->decoder.hidden, "context", (json_int_t)s->context,
		"vocabulary", (json_int_t)s->vocab, "formats", formats, "tokenizer",
		gather_tokenizer(path), "memory", memory);
	if (!o)
		yk_fail(YOKE_EINVAL, "%s: no memory, or a name is not UTF-8", path);
	return o;
}

static json_t *gather(const char *path)
{
	const struct yk_family *family;
	struct yk_model_shape shape;
	struct yk_weights *w;
	struct stat st;
	json_t *config = NULL, *o = NULL;

	if (stat(path, &st) == 0 && !yk_pretrained_is(path)) {
		yk_fail(YOKE_EFORMAT, yk_checkpoint_exists(path) ?
			"%s: was trained by yoke; use `yoke info models` for it" :
			"%s: is neither a folder with a config.json nor a GGUF file", path);
		return NULL;
	}
	w = yk_weights_new(path);
	if (w && yk_pretrained_files(path, 0, w, &family, &shape, &config) == 0 &&
	    yk_pretrained_check(path, w, family, &shape) == 0)
		o = describe(path, w, family, &shape);
	json_decref(config);
	yk_weights_release(w);
	return o;
}

// ---- printing ----

static void print_number(const char *name, int64_t n)
{
	printf("%-12s%" PRId64 "\n", name, n);
}

static void print_formats(const json_t *list)
{
	static const char *const keys[] = { "format", "tensors", "elements", "bytes" };
	json_t *rows = json_array();
	const json_t *o;
	size_t i;

	json_array_foreach (list, i, o) {
		json_t *row = json_pack("{s:s}", "format", yk_cell(o, "format"));
		for (int k = 1; k < 4; k++)
			json_object_set_new(row, keys[k],
					    json_sprintf("%" PRId64, integer(o, keys[k])));
		json_array_append_new(rows, row);
	}
	printf("\nweights in the files\n");
	yk_table(rows, "  ", 4, keys, keys);
	json_decref(rows);
}

static void print_tokenizer(const json_t *t)
{
	if (json_is_null(t))
		printf("%-12snone\n", "tokenizer");
	else if (json_object_get(t, "error"))
		printf("%-12scannot be used: %s\n", "tokenizer", yk_cell(t, "error"));
	else
		printf("%-12s%s, %" PRId64 " tokens, %s chat template\n", "tokenizer",
		       yk_cell(t, "kind"), integer(t, "tokens"),
		       json_is_true(json_object_get(t, "chat_template")) ? "with a" : "no");
}

static void print_memory(const json_t *memory, int64_t context, bool encoder)
{
	static const struct {
		const char *key, *text;
		bool cache;
	} lines[] = { { "weights_stored", "weights as stored", false },
		      { "weights_f32", "weights as f32", false },
		      { "kv_f16", "keys and values, f16", true },
		      { "kv_f32", "keys and values, f32", true } };
	char bytes[32];

	printf("\nmemory%s", encoder ? "\n" : "");
	if (!encoder)
		printf("; keys and values of one sequence of %" PRId64 " tokens\n", context);
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		if (!encoder || !lines[i].cache)
			printf("  %-22s%s\n", lines[i].text,
			       yk_bytes_text(bytes, (uint64_t)integer(memory, lines[i].key)));
}

static void print_model(const json_t *o)
{
	const bool encoder = json_is_true(json_object_get(o, "encoder"));

	printf("%-12s%s\n%-12s%s, %s\n", "model", yk_cell(o, "path"), "family",
	       yk_cell(o, "family"), encoder ? "encoder" : "decoder");
	print_number("parameters", integer(o, "parameters"));
	printf("%-12s%" PRId64 " of width %" PRId64 ", hidden %" PRId64 "\n", "layers",
	       integer(o, "layers"), integer(o, "width"), integer(o, "hidden"));
	printf("%-12s%" PRId64 " of width %" PRId64 ", %" PRId64 " of keys and values\n", "heads",
	       integer(o, "heads"), integer(o, "head_dim"), integer(o, "kv_heads"));
	print_number("context", integer(o, "context"));
	print_number("vocabulary", integer(o, "vocabulary"));
	print_tokenizer(json_object_get(o, "tokenizer"));
	print_formats(json_object_get(o, "formats"));
	print_memory(json_object_get(o, "memory"), integer(o, "context"), encoder);
}

int yk_info_model(const char *path, bool json)
{
	json_t *o = gather(path);

	if (!o)
		return yk_failed("info");
	if (json)
		yk_print_json(o);
	else
		print_model(o);
	json_decref(o);
	return YK_DONE;
}
