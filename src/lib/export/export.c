// SPDX-License-Identifier: Apache-2.0
// Opens a model's files for an export and maps each tensor of the written files to the parameters
// that it consists of.
#include "config.h"

#include "export/export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/endian.h"
#include "base/error.h"
#include "formats/checkpoint.h"
#include "models/pretrained.h"
#include "models/run_files.h"
#include "text/tokenizer.h"
#include "yoke-quant.h"

// ---- opening ----

const char *yk_export_tokenizer_files(const struct yk_export *x, char path[4096])
{
	snprintf(path, 4096, "%s/tokenizer/tokenizer.gguf", x->path);
	if (access(path, F_OK) < 0)
		snprintf(path, 4096, "%s/tokenizer", x->path);
	return path;
}

// The tokenizer of a published model with which it was trained, if it was.
static int open_tokenizer(struct yk_export *x)
{
	const char *name = json_string_value(json_object_get(x->words, "name"));
	char path[4096];
	if (!name || strcmp(name, YK_TOKENIZER_PUBLISHED))
		return 0;
	x->tokenizer = yoke_tokenizer_open(yk_export_tokenizer_files(x, path));
	return x->tokenizer ? 0 : yoke_error_code();
}

static int open_gpt(struct yk_export *x, const struct yk_checkpoint *ck)
{
	const struct yk_model *model;
	struct yk_model_shape s;
	char *file = NULL;
	int e = yk_model_parse(ck->model, x->path, &model, &s);
	if (e == 0 && model != &yk_model_gpt)
		e = yk_fail(
			YOKE_EINVAL,
			"%s: no other program has models of kind '%s'; only model=gpt can be exported",
			x->path, model->name);
	if (e == 0)
		e = yk_checkpoint_holds(x->path, ck, YK_CHECKPOINT_MODEL,
					sizeof(float) * (uint64_t)yk_model_elements(model, &s));
	if (e == 0 && asprintf(&file, "%s/%s", x->path, ck->file[YK_CHECKPOINT_MODEL].name) < 0)
		e = yk_fail(YOKE_ENOMEM, "%s: no memory for a path", x->path);
	if (e == 0)
		e = yk_safetensors_set_open(&x->weights->set, file);
	if (e == 0) {
		x->read = &yk_family_gpt;
		x->written = yk_family_named("gpt2");
		yk_gpt_as_decoder(&s, &x->shape);
		x->words = json_incref(ck->tokenizer);
		e = open_tokenizer(x);
	}
	free(file);
	return e;
}

static int open_published(struct yk_export *x)
{
	int e = yk_pretrained_files(x->path, 0, x->weights, &x->read, &x->shape, &x->config);
	if (e < 0)
		return e;
	x->written = x->read;
	x->tokenizer = yoke_tokenizer_open(x->path);
	if (x->tokenizer || yoke_error_code() != YOKE_ENOENT)
		return x->tokenizer ? 0 : yoke_error_code();
	yoke_error_clear(); // a model without a tokenizer
	return 0;
}

// The frozen model and the adapters of a run.
static int open_adapted(struct yk_export *x, const struct yk_checkpoint *ck)
{
	struct yk_adapter_manifest m;
	int e = yk_adapter_parse(x->path, ck->adapter, &m);
	if (e < 0)
		return e;
	free(m.layer);
	if (!(x->base = strdup(m.base)))
		return yk_fail(YOKE_ENOMEM, "%s: no memory for a path", x->path);
	e = yk_adapter_same_base(x->path, ck, x->base);
	if (e == 0 && !yk_pretrained_is(x->base))
		e = yk_fail(
			YOKE_EINVAL,
			"%s: adapts %s, which yoke trained; only adapters of published models can be exported",
			x->path, x->base);
	if (e == 0) {
		const char *run = x->path;
		x->path = x->base;
		e = open_published(x);
		x->path = run;
	}
	return e == 0 ? yk_adapter_of_run(x->path, ck, &x->shape, &x->adapter) : e;
}

static int open_trained(struct yk_export *x)
{
	struct yk_checkpoint ck;
	int e = yk_checkpoint_open(x->path, &ck);
	if (e < 0)
		return e;
	e = ck.adapter ? open_adapted(x, &ck) : open_gpt(x, &ck);
	yk_checkpoint_fini(&ck);
	return e;
}

// Opens the model, and its adapters.
static int open_all(struct yk_export *x, const char *adapter)
{
	int e = yk_pretrained_is(x->path) ? open_published(x) : open_trained(x);
	if (e < 0 || !adapter)
		return e;
	if (x->base || !yk_pretrained_is(x->path))
		return yk_fail(YOKE_EINVAL, "adapter=%s: %s %s", adapter, x->path,
			       x->base ? "has adapters already" : "is no pretrained model");
	return yk_adapter_open(adapter, x->path, x->read, &x->shape, &x->adapter);
}

// ---- tensors ----

struct listing {
	struct yk_export *x;
	bool gguf;
};

static struct yk_export_tensor *find(struct yk_export *x, const char *name)
{
	for (size_t i = x->tensors; i-- > 0;)
		if (!strcmp(x->tensor[i].name, name))
			return &x->tensor[i];
	return NULL;
}

static struct yk_export_tensor *add(struct yk_export *x, const char *name)
{
	if (yk_grow(&x->tensor, &x->cap, x->tensors + 1, sizeof *x->tensor) < 0)
		return NULL;
	struct yk_export_tensor *t = &x->tensor[x->tensors++];
	*t = (struct yk_export_tensor){ 0 };
	strcpy(t->name, name);
	return t;
}

static int find_source(struct yk_export *x, const struct yk_weight_spec *wanted,
		       struct yk_weight_source *to)
{
	char *text = NULL;
	size_t bytes;
	FILE *problems = open_memstream(&text, &bytes);
	int e = problems ? yk_weight_source(x->weights, x->read, &x->shape, wanted, to, problems) :
			   yk_fail(YOKE_ENOMEM, "%s: no memory", x->path);
	if (problems)
		fclose(problems);
	if (e > 0)
		e = yk_fail(YOKE_EFORMAT, "%s: %s", x->path, text);
	free(text);
	return e;
}

static int list_one(void *arg, const char *name, int rank, const int64_t *dims)
{
	const struct listing *l = arg;
	struct yk_export *x = l->x;
	const struct yk_family *f = x->written;
	struct yk_weight_spec wanted = { .name = name, .rank = rank };
	struct yk_weight_location place;
	struct yk_weight_source source;
	memcpy(wanted.dims, dims, (size_t)rank * sizeof *dims);
	if (l->gguf)
		yk_family_locate(f, true, name, &place);
	else
		yk_family_locate_full(f, name, &place);
	const int e = find_source(x, &wanted, &source);
	if (e < 0)
		return e;
	struct yk_export_tensor *t = place.shared[0] ? find(x, place.name) : NULL;
	t = t ? t : add(x, place.name);
	if (!t)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for tensors", x->path);
	const bool in_block = !strncmp(name, "layer", 5),
		   product = strstr(name, ".attn.") || strstr(name, ".mlp.");
	const bool rows = strstr(name, ".attn.q.") || strstr(name, ".attn.k.");
	const bool offset =
		f->norm_offset && !l->gguf && rank == 1 && !strcmp(strrchr(name, '.'), ".weight");
	t->rank = rank;
	t->transposed = f->transposed && !l->gguf && in_block && product && rank == 2;
	t->swapped = f->swapped && l->gguf && rows;
	t->decrement = offset && !source.offset;
	if (offset)
		source.offset = false; // stored as it is to be written
	t->segments += 1;
	t->segment[place.segment] = source;
	char layer[64];
	snprintf(layer, sizeof layer, "%.*s", (int)(strrchr(name, '.') - name), name);
	if (rank == 2)
		t->added[place.segment] = yk_adapter_find(&x->adapter, layer);
	const int axis = t->transposed ? 1 : 0;
	t->dims[axis] += dims[0];
	if (rank == 2)
		t->dims[!axis] = dims[1];
	return 0;
}

int yk_export_files(const char *path, const struct yk_export_options *o, struct yk_export *x)
{
	*x = (struct yk_export){ .path = path };
	x->weights = yk_weights_new(path);
	return x->weights ? open_all(x, o->adapter) : YOKE_ENOMEM;
}

int yk_export_open(const char *path, bool gguf, const struct yk_export_options *o,
		   struct yk_export *x)
{
	struct listing l = { .x = x, .gguf = gguf };
	int e = yk_export_files(path, o, x);
	if (e == 0 && x->adapter.n && !o->merge)
		e = yk_fail(
			YOKE_EINVAL,
			"%s: has adapters; give merge=1 to add them to the weights, or format=peft to write them alone",
			path);
	if (e == 0 && !x->adapter.n && o->merge)
		e = yk_fail(YOKE_EINVAL,
			    "merge=1: %s has no adapters; name some with adapter=FOLDER", path);
	return e < 0 ? e : yk_model_each(&yk_model_decoder, &x->shape, list_one, &l);
}

void yk_export_close(struct yk_export *x)
{
	yk_weights_release(x->weights);
	yoke_tokenizer_free(x->tokenizer);
	json_decref(x->config);
	json_decref(x->words);
	yk_adapter_close(&x->adapter);
	free(x->base);
	free(x->tensor);
	*x = (struct yk_export){ 0 };
}

enum yk_gguf_format yk_export_stored(const struct yk_export_tensor *t)
{
	return t->segment[0].weight.format;
}

int yk_export_target(const char *path, const char *to, bool overwrite)
{
	struct stat st;
	if (stat(to, &st) < 0)
		return 0;
	if (yk_file_is_same(path, to))
		return yk_fail(YOKE_EINVAL, "out=%s: is the model itself; choose another name", to);
	return overwrite ?
		       0 :
		       yk_fail(YOKE_EINVAL,
			       "out=%s: exists; give overwrite=1 to replace it, or another name",
			       to);
}

// ---- values ----

// Rows of the segments' own order, in the decoder's layout.
static int decoder_rows(const struct yk_export_tensor *t, int64_t from, int64_t rows, float *to)
{
	const int64_t columns = t->rank == 2 ? t->segment[0].dims[1] : 1;
	int64_t before = 0;
	int e = 0;
	for (int i = 0; i < t->segments && e == 0; i++) {
		const struct yk_weight_source *s = &t->segment[i];
		const int64_t end = before + s->dims[0];
		const int64_t first = from > before ? from : before,
			      last = from + rows < end ? from + rows : end;
		if (first < last)
			e = yk_weight_source_rows(s, first - before, last - first,
						  to + (first - from) * columns);
		if (first < last && e == 0 && t->added[i])
			yk_adapter_add_rows(t->added[i], first - before, last - first,
					    to + (first - from) * columns);
		before = end;
	}
	return e;
}

static int transposed_rows(const struct yk_export_tensor *t, int64_t from, int64_t rows, float *to)
{
	const int64_t n = t->dims[1], columns = t->dims[0];
	float *all = malloc((size_t)(n * columns) * sizeof *all);
	const int e = all ? decoder_rows(t, 0, n, all) :
			    yk_fail(YOKE_ENOMEM, "no memory for tensor '%s'", t->name);
	for (int64_t r = 0; r < rows && e == 0; r++)
		for (int64_t c = 0; c < n; c++)
			to[r * n + c] = all[c * columns + from + r];
	free(all);
	return e;
}

int yk_export_rows(const struct yk_export_tensor *t, int64_t from, int64_t rows, float *to)
{
	const int64_t columns = t->rank == 2 ? t->dims[1] : 1, d = t->segment[0].head_dim;
	int e = 0;
	if (t->transposed)
		return transposed_rows(t, from, rows, to);
	if (!t->swapped)
		e = decoder_rows(t, from, rows, to);
	// row p D/2 + j of a head here is row 2 j + p in the file
	for (int64_t r = from; r < from + rows && t->swapped && e == 0; r++)
		e = decoder_rows(t, r / d * d + r % 2 * (d / 2) + r % d / 2, 1,
				 to + (r - from) * columns);
	for (int64_t i = 0; i < rows && t->decrement; i++)
		to[i] -= 1;
	return e;
}

enum { WINDOW = 4 << 20 }; // elements converted at once

// As yoke_quantize; errors name the tensor.
static int quantize(const struct yk_export_tensor *t, int format, int64_t rows, int64_t k,
		    const float *from, void *to)
{
	char why[256];
	const int e = yoke_quantize(format, rows, k, from, to);
	if (e == 0)
		return 0;
	snprintf(why, sizeof why, "%s", yoke_error());
	yoke_error_clear();
	return yk_fail(e, "tensor '%s': %s", t->name, why);
}

int yk_export_write_tensor(const struct yk_export_tensor *t, int format, struct yk_file_writer *to)
{
	const int64_t columns = t->rank == 2 ? t->dims[1] : 1;
	const int64_t window = columns < WINDOW && !t->transposed ? WINDOW / columns :
			       t->transposed                      ? t->dims[0] :
								    1;
	const int64_t max = window < t->dims[0] ? window : t->dims[0];
	// a vector is one row of blocks
	const int64_t length = t->rank == 2 ? columns : max, row = yoke_quant_bytes(format, length);
	// 0: of blocks, which only little-endian hosts write
	const size_t width = (size_t)yoke_quant_bytes(format, 1);
	float *values = malloc((size_t)(max * columns) * sizeof *values);
	char *bytes = malloc((size_t)(row * (t->rank == 2 ? max : 1)) + 1);
	int e = values && bytes ? 0 : yk_fail(YOKE_ENOMEM, "no memory for tensor '%s'", t->name);
	for (int64_t at = 0; at < t->dims[0] && e == 0; at += max) {
		const int64_t n = t->dims[0] - at < max ? t->dims[0] - at : max;
		const int64_t rows = t->rank == 2 ? n : 1, k = t->rank == 2 ? columns : n;
		e = yk_export_rows(t, at, n, values);
		if (e == 0)
			e = quantize(t, format, rows, k, values, bytes);
		if (e == 0)
			yk_le(bytes, width, (size_t)(rows * k));
		if (e == 0)
			e = yk_file_add(to, bytes, (size_t)(rows * yoke_quant_bytes(format, k)));
	}
	free(values);
	free(bytes);
	return e;
}
