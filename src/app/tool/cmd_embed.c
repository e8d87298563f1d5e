// SPDX-License-Identifier: Apache-2.0
// yoke embed: vectors of texts, or how similar they are.
#include "config.h"

#include "tool/tool.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/endian.h"
#include "base/error.h"
#include "base/file.h"
#include "base/number.h"
#include "data/part.h"
#include "tokenizer/pieces.h"
#include "tool/prompts.h"
#include "yoke-model.h"

enum { BLOCK = 256 }; // texts computed, and written, at a time

enum key {
	KEY_PROMPT,
	KEY_PROMPTS,
	KEY_OUT,
	KEY_FORMAT,
	KEY_OVERWRITE,
	KEY_SIMILARITY,
	KEY_POOLING,
	KEY_NORMALIZE,
	KEY_PROMPT_NAME,
	KEY_CONTEXT,
	KEY_DTYPE,
	KEY_QUANT,
	KEY_BACKEND,
	KEY_MEMORY,
	KEY_THREADS,
	KEYS
};
static const char *const names[KEYS] = { "prompt",      "prompts",    "out",     "format",
					 "overwrite",   "similarity", "pooling", "normalize",
					 "prompt_name", "context",    "dtype",   "quant",
					 "backend",     "memory",     "threads" };

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV, FORMAT_NPY, FORMATS };
static const char *const formats[FORMATS] = { "text", "json", "csv", "npy" };

struct embed {
	const char *command, *model;
	const char *value[KEYS]; // NULL: not given
	enum format format;
	bool similarity;
	struct yoke_embed_options options;
	char *file; // contents of prompts=
	const char **text;
	int64_t count;
	size_t cap;
	struct yk_file_writer out; // if `out` is given
	bool writes;
};

// ---- arguments ----

static int word_of(const char *const *list, int n, const char *word)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(list[i], word))
			return i;
	return -1;
}

static int add_text(struct embed *x, const char *text)
{
	if (yk_grow(&x->text, &x->cap, (size_t)x->count + 1, sizeof *x->text) < 0)
		return yk_fail(YOKE_ENOMEM, "embed: no memory for %" PRId64 " texts", x->count + 1);
	x->text[x->count++] = text;
	return 0;
}

// A text may contain "=" if no word is before it.
static bool is_key(const char *argument)
{
	size_t n = 0;
	while (isalnum((unsigned char)argument[n]) || argument[n] == '_')
		n++;
	return n && argument[n] == '=';
}

static int take(struct embed *x, const char *argument)
{
	if (!is_key(argument))
		return add_text(x, argument) < 0 ? yk_failed(x->command) : YK_DONE;
	for (int k = 0; k < KEYS; k++) {
		const size_t n = strlen(names[k]);
		if (strncmp(argument, names[k], n) || argument[n] != '=')
			continue;
		if (x->value[k])
			return yk_usage(x->command, "'%s' is given twice", argument);
		x->value[k] = argument + n + 1;
		return YK_DONE;
	}
	return yk_usage(x->command,
			"unknown key in '%s'; a text that begins so is given as prompt=TEXT",
			argument);
}

static int flag(const struct embed *x, enum key k, bool *to)
{
	const char *s = x->value[k];
	if (s && strcmp(s, "0") && strcmp(s, "1"))
		return yk_usage(x->command, "%s=%s: must be 0 or 1", names[k], s);
	*to = s && *s == '1';
	return YK_DONE;
}

static int check(struct embed *x)
{
	static const char *const poolings[] = { "mean", "cls", "max", "last" };
	bool overwrite = false, normalize = false;
	const char *format = x->value[KEY_FORMAT], *pooling = x->value[KEY_POOLING],
		   *out = x->value[KEY_OUT];
	const int f = format ? word_of(formats, FORMATS, format) : 0;
	if (f < 0)
		return yk_usage(x->command, "format=%s: must be one of text, json, csv, npy",
				format);
	x->format = (enum format)f;
	if (x->format == FORMAT_NPY && (!out || !*out))
		return yk_usage(x->command, "format=npy needs out=FILE");
	if (pooling && word_of(poolings, 4, pooling) < 0)
		return yk_usage(x->command, "pooling=%s: must be one of mean, cls, max, last",
				pooling);
	int status = flag(x, KEY_OVERWRITE, &overwrite);
	if (status == YK_DONE)
		status = flag(x, KEY_SIMILARITY, &x->similarity);
	if (status == YK_DONE)
		status = flag(x, KEY_NORMALIZE, &normalize);
	if (status == YK_DONE && out && !overwrite && access(out, F_OK) == 0) {
		yk_fail(YOKE_EINVAL, "out=%s exists; overwrite=1 replaces it", out);
		status = yk_failed(x->command);
	}
	x->options = (struct yoke_embed_options){ .size = sizeof x->options,
						  .pooling = pooling,
						  .prompt_name = x->value[KEY_PROMPT_NAME] };
	if (x->value[KEY_NORMALIZE])
		x->options.normalize = normalize ? 1 : -1;
	return status;
}

// ---- texts ----

// Ends each line with a NUL, in place.
static int add_lines(struct embed *x, const char *path, char *at, size_t left)
{
	for (int64_t line = 1; left > 0; line++) {
		char *end = memchr(at, '\n', left);
		const size_t n = end ? (size_t)(end - at) : left, good = yk_utf8_check(at, n);
		if (good < n || memchr(at, 0, n))
			return yk_fail(YOKE_EFORMAT, "%s:%" PRId64 ": %s", path, line,
				       good < n ? "the line is not UTF-8" :
						  "the line has a NUL byte");
		at[n] = 0;
		const int e = add_text(x, at);
		if (e < 0)
			return e;
		at += n + (end != NULL);
		left -= n + (end != NULL);
	}
	return 0;
}

static int gather(struct embed *x)
{
	const char *prompt = x->value[KEY_PROMPT], *path = x->value[KEY_PROMPTS];
	size_t bytes;
	int e = prompt ? add_text(x, prompt) : 0;
	for (int64_t i = 0; i < x->count && e == 0; i++)
		if (yk_utf8_check(x->text[i], strlen(x->text[i])) < strlen(x->text[i]))
			e = yk_fail(YOKE_EFORMAT,
				    "embed: text %" PRId64 " of the arguments is not UTF-8", i + 1);
	if (!path && !x->count)
		path = "-";
	if (e < 0 || !path)
		return e;
	const char *from = strcmp(path, "-") ? path : "standard input";
	const int64_t before = x->count;
	e = yk_prompts_read(path, "texts; end them", &x->file, &bytes);
	if (e == 0)
		e = add_lines(x, from, x->file, bytes);
	if (e == 0 && x->count == before)
		e = yk_fail(YOKE_EINVAL, "%s is empty; give one text per line", from);
	return e;
}

// ---- output ----

// Writes the buffered output of a block, and empties the buffer.
static int flush(struct embed *x, const char *text, size_t bytes)
{
	if (x->writes)
		return yk_file_add(&x->out, text, bytes);
	return fwrite(text, 1, bytes, stdout) == bytes && fflush(stdout) == 0 ?
		       0 :
		       yk_fail(YOKE_EIO, "standard output: %s", strerror(errno));
}

static void npy_header(FILE *to, int64_t rows, int64_t columns)
{
	char head[YK_NPY_BYTES];
	fwrite(head, 1, yk_npy_head(head, "<f4", 2, (int64_t[]){ rows, columns }), to);
}

static void csv_header(FILE *to, int64_t columns)
{
	for (int64_t i = 0; i < columns; i++)
		fprintf(to, "%sv%" PRId64, i ? "," : "", i);
	fputc('\n', to);
}

static void put_numbers(FILE *to, const float *v, int64_t n, const char *separator, bool json)
{
	for (int64_t i = 0; i < n; i++) {
		fputs(i ? separator : "", to);
		if (json && !isfinite(v[i]))
			fputs("null", to);
		else
			yk_fprintf(to, "%.9g", (double)v[i]);
	}
}

static int put_json(FILE *to, const char *text, const char *name, const float *v, int64_t n)
{
	json_t *string = json_string(text);
	char *quoted = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
	if (quoted) {
		fprintf(to, "{\"text\": %s, \"%s\": [", quoted, name);
		put_numbers(to, v, n, ", ", true);
		fputs("]}\n", to);
	}
	json_decref(string);
	free(quoted);
	return quoted ? 0 : yk_fail(YOKE_ENOMEM, "embed: no memory for JSON");
}

static int put_row(const struct embed *x, FILE *to, int64_t text, const float *v, int64_t n)
{
	switch (x->format) {
	case FORMAT_JSON:
		return put_json(to, x->text[text], x->similarity ? "similarity" : "vector", v, n);
	case FORMAT_NPY:
		for (int64_t i = 0; i < n; i++) {
			uint32_t bits;
			memcpy(&bits, &v[i], sizeof bits);
			fwrite(&(uint32_t){ yk_le32(bits) }, sizeof bits, 1, to);
		}
		return 0;
	default: put_numbers(to, v, n, x->format == FORMAT_CSV ? "," : " ", false); fputc('\n', to);
	}
	return 0;
}

// Writes rows [rows,n] of texts first ..; the first block begins with the header.
static int put_block(struct embed *x, int64_t first, int64_t rows, const float *v, int64_t n)
{
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);
	int e = to ? 0 : yk_fail(YOKE_ENOMEM, "embed: no memory for the output");
	if (to && !first && x->format == FORMAT_NPY)
		npy_header(to, x->count, n);
	if (to && !first && x->format == FORMAT_CSV)
		csv_header(to, n);
	for (int64_t i = 0; i < rows && e == 0; i++)
		e = put_row(x, to, first + i, v + i * n, n);
	if (to && fclose(to) && e == 0)
		e = yk_fail(YOKE_ENOMEM, "embed: no memory for the output");
	if (e == 0)
		e = flush(x, text, bytes);
	free(text);
	return e;
}

// ---- vectors ----

static int embed_block(const struct embed *x, yoke_model *m, int64_t first, int64_t n, float *to)
{
	return yoke_model_embed_texts(m, n, x->text + first, &x->options, to);
}

static int each_vector(struct embed *x, yoke_model *m, int64_t width)
{
	float *v = malloc(BLOCK * (size_t)width * sizeof *v);
	int e = v ? 0 : yk_fail(YOKE_ENOMEM, "embed: no memory for %d vectors", BLOCK);
	for (int64_t i = 0; i < x->count && e == 0; i += BLOCK) {
		const int64_t n = x->count - i < BLOCK ? x->count - i : BLOCK;
		e = embed_block(x, m, i, n, v);
		if (e == 0)
			e = put_block(x, i, n, v, width);
	}
	free(v);
	return e;
}

// Cosine of two vectors, in float64; 0 if one is 0.
static float cosine(const float *a, const float *b, int64_t n)
{
	double dot = 0, aa = 0, bb = 0;
	for (int64_t i = 0; i < n; i++) {
		dot += (double)a[i] * (double)b[i];
		aa += (double)a[i] * (double)a[i];
		bb += (double)b[i] * (double)b[i];
	}
	return aa > 0 && bb > 0 ? (float)(dot / sqrt(aa * bb)) : 0;
}

static int each_similarity(struct embed *x, yoke_model *m, int64_t width)
{
	size_t bytes;
	float *v = NULL, *row = malloc((size_t)x->count * sizeof *row);
	if (!__builtin_mul_overflow((size_t)x->count, (size_t)width * sizeof *v, &bytes))
		v = malloc(bytes);
	int e = v && row ?
			0 :
			yk_fail(YOKE_ENOMEM, "embed: no memory for %" PRId64 " vectors", x->count);
	for (int64_t i = 0; i < x->count && e == 0; i += BLOCK)
		e = embed_block(x, m, i, x->count - i < BLOCK ? x->count - i : BLOCK,
				v + i * width);
	for (int64_t i = 0; i < x->count && e == 0; i++) {
		for (int64_t j = 0; j < x->count; j++)
			row[j] = cosine(v + i * width, v + j * width, width);
		e = put_block(x, i, 1, row, x->count);
	}
	free(row);
	free(v);
	return e;
}

static int compute(struct embed *x)
{
	struct yoke_model_options o = { .size = sizeof o,
					.dtype = x->value[KEY_DTYPE],
					.quant = x->value[KEY_QUANT] };
	struct yoke_model_info info = { .size = sizeof info };
	const char *context = x->value[KEY_CONTEXT];
	char *end;
	if (context) {
		o.context = strtoll(context, &end, 10);
		if (end == context || *end || o.context < 1)
			return yk_fail(YOKE_EINVAL, "context=%s: must be a number of tokens",
				       context);
	}
	yoke_model *m = yoke_model_open(x->model, &o);
	int e = m ? yoke_model_info(m, &info) : yoke_error_code();
	if (e == 0 && x->value[KEY_OUT]) {
		e = yk_file_begin(&x->out, x->value[KEY_OUT]);
		x->writes = e == 0;
	}
	if (e == 0)
		e = x->similarity ? each_similarity(x, m, info.width) :
				    each_vector(x, m, info.width);
	if (x->writes && e == 0)
		e = yk_file_commit(&x->out);
	else if (x->writes)
		yk_file_abort(&x->out);
	yoke_model_free(m);
	return e;
}

static int run(struct embed *x)
{
	static const enum key settings[] = { KEY_BACKEND, KEY_MEMORY, KEY_THREADS };
	int e = gather(x);
	for (size_t i = 0; i < sizeof settings / sizeof *settings && e == 0; i++)
		if (x->value[settings[i]])
			e = yoke_setting_set(names[settings[i]], x->value[settings[i]]);
	return e == 0 ? compute(x) : e;
}

int yk_cmd_embed(int argc, char **argv)
{
	struct embed x = { .command = argv[0] };
	int status = YK_DONE;
	if (argc < 2 || !*argv[1] || is_key(argv[1]))
		return yk_usage(argv[0], "no model given: it comes before texts and keys");
	x.model = argv[1];
	for (int i = 2; i < argc && status == YK_DONE; i++)
		status = take(&x, argv[i]);
	if (status == YK_DONE)
		status = check(&x);
	if (status == YK_DONE && run(&x) < 0)
		status = yk_reader_exited() ? YK_DONE : yk_failed(x.command);
	free(x.file);
	free(x.text);
	return status;
}
