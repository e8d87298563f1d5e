// SPDX-License-Identifier: Apache-2.0
// Makes the tensors of parameters from a file's weights: on the mapped file itself where its rows
// are in the decoder's order and the format is kept, otherwise on converted copies of the rows.
#include "config.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/context.h"
#include "models/weights.h"
#include "yoke-quant.h"

// Only matrices of products and the embedding's have another format than F32.
static int kept_format(const struct yk_weight_source *s, const char *name, int wanted)
{
	int format = wanted;
	if (s->rank != 2 || !strcmp(name, "positions.weight"))
		return YOKE_QUANT_F32;
	if (format == YK_WEIGHTS_AS_PUBLISHED)
		format = s->weight.format == YK_GGUF_F64 ? YOKE_QUANT_F32 : (int)s->weight.format;
	if (yoke_quant_bytes(format, s->dims[1]))
		return format;
	// no op computes with the format, or its blocks do not divide the rows; MXFP4 has the
	// exponents of bf16 and fewer digits
	return format == YK_GGUF_MXFP4 ? YOKE_QUANT_BF16 : YOKE_QUANT_F16;
}

// A tensor of f32 numbers, or of a matrix's rows in another format.
static yoke_tensor *on_memory(const struct yk_weight_source *s, int format, const void *data,
			      void (*free_fn)(void *), void *arg)
{
	const int64_t blocks[] = { s->dims[0],
				   yoke_quant_bytes(format, s->rank == 2 ? s->dims[1] : 1) };
	if (format == YOKE_QUANT_F32)
		return yoke_wrap(yoke_f32, s->rank, s->dims, (void *)(uintptr_t)data, free_fn, arg);
	return yoke_wrap(yoke_u8, 2, blocks, (void *)(uintptr_t)data, free_fn, arg);
}

// The bytes of the first row in the file, if the parameter can use them as they are.
static const unsigned char *in_place(const struct yk_weight_source *s, int format)
{
	const int64_t columns = s->rank == 2 ? s->dims[1] : 1;
	if ((int)s->weight.format != format || s->transposed || s->swapped || s->offset)
		return NULL;
	const unsigned char *at =
		(const unsigned char *)s->weight.data + s->from * yoke_quant_bytes(format, columns);
	// formats with 16-bit fields; yoke_wrap copies misaligned f32
	return (uintptr_t)at % 2 && format != YOKE_QUANT_F32 ? NULL : at;
}

static int check_range(const struct yk_weight_source *s, const float *row)
{
	for (int64_t i = 0; i < s->dims[1]; i++)
		if (isfinite(row[i]) && fabsf(row[i]) >= 65520)
			return yk_fail(
				YOKE_ERANGE,
				"%s: tensor '%s' has %g, which f16 does not; open it with dtype=bf16",
				s->weight.path, s->weight.name, (double)row[i]);
	return 0;
}

static int quantize_row(const struct yk_weight_source *s, int format, const float *row, void *to)
{
	char why[200];
	const int e = format == YOKE_QUANT_F16 ? check_range(s, row) : 0;
	if (e < 0 || yoke_quantize(format, 1, s->dims[1], row, to) == 0)
		return e;
	snprintf(why, sizeof why, "%s", yoke_error());
	yoke_error_clear();
	return yk_fail(YOKE_ERANGE, "%s: tensor '%s': %s", s->weight.path, s->weight.name, why);
}

// Bytes of a row of the file's tensor.
static int64_t row_bytes(const struct yk_weight_source *s)
{
	unsigned elements, bytes;
	yk_gguf_format_name(s->weight.format, &elements, &bytes);
	return (s->weight.rank > 1 ? s->weight.dims[1] : 1) / (int64_t)elements * (int64_t)bytes;
}

// Rows of a parameter that are read before their pages are given back: the file would otherwise be
// in memory beside the converted rows.
static int64_t window_of(const struct yk_weight_source *s)
{
	enum { WINDOW = 4 << 20 };
	const int64_t row = row_bytes(s), rows = row ? WINDOW / row : s->dims[0];
	const int64_t head = s->swapped ? s->head_dim : 1; // whose rows are permuted
	return s->transposed ? s->dims[0] : (rows / head + 1) * head;
}

// Gives back the pages of rows from .. to - 1 of a parameter.
static void forget(const struct yk_weight_source *s, int64_t from, int64_t to)
{
	const int64_t row = row_bytes(s), first = s->transposed ? 0 : s->from + from;
	const int64_t rows = s->transposed ? s->weight.dims[0] : to - from;
	yk_weights_forget((const unsigned char *)s->weight.data + first * row,
			  (uint64_t)(rows * row));
}

// Rows in another format than F32, one at a time.
static int convert_rows(const struct yk_weight_source *s, int format, unsigned char *to)
{
	const int64_t bytes = yoke_quant_bytes(format, s->dims[1]);
	// transposed matrices are read at once, because each of their rows is in all of the file's
	const int64_t rows = s->transposed ? s->dims[0] : 1, window = window_of(s);
	float *row = malloc((size_t)rows * (size_t)s->dims[1] * sizeof *row);
	int e = row ? 0 : yk_fail(YOKE_ENOMEM, "%s: no memory for a row", s->weight.path);
	for (int64_t r = 0; r < s->dims[0] && e == 0; r++) {
		if (r % window == 0 && r)
			forget(s, r - window, r);
		if ((int)s->weight.format == format && !s->transposed) {
			memcpy(to + r * bytes,
			       (const unsigned char *)s->weight.data +
				       yk_weight_source_row(s, r) * bytes,
			       (size_t)bytes);
			continue;
		}
		if (r % rows == 0)
			e = yk_weight_source_rows(s, r, rows, row);
		if (e == 0)
			e = quantize_row(s, format, row + r % rows * s->dims[1], to + r * bytes);
	}
	forget(s, (s->dims[0] - 1) / window * window, s->dims[0]);
	free(row);
	return e;
}

// All rows as F32.
static int read_rows(const struct yk_weight_source *s, float *to)
{
	const int64_t columns = s->rank == 2 ? s->dims[1] : 1, window = window_of(s);
	int e = 0;
	for (int64_t r = 0; r < s->dims[0] && e == 0; r += window) {
		const int64_t n = s->dims[0] - r < window ? s->dims[0] - r : window;
		e = yk_weight_source_rows(s, r, n, to + r * columns);
		forget(s, r, r + n);
	}
	return e;
}

static yoke_tensor *variable_of(const struct yk_weight_source *s, const char *name,
				const void *host, size_t bytes)
{
	yoke_tensor *t = yoke_variable(name, yoke_f32, s->rank, s->dims);
	if (!t || yoke_put(t, host, bytes) == 0)
		return t;
	yoke_free(t);
	return NULL;
}

static yoke_tensor *copied(const struct yk_weight_source *s, const char *name, int format,
			   bool variable)
{
	const int64_t columns = s->rank == 2 ? s->dims[1] : 1;
	const size_t bytes = (size_t)(s->dims[0] * yoke_quant_bytes(format, columns));
	void *host = malloc(bytes);
	int e = host ? 0 : yk_fail(YOKE_ENOMEM, "%s: no memory for %s", s->weight.path, name);
	if (e == 0)
		e = format == YOKE_QUANT_F32 ? read_rows(s, host) : convert_rows(s, format, host);
	if (e == 0 && !variable)
		return on_memory(s, format, host, free, host);
	yoke_tensor *t = e == 0 ? variable_of(s, name, host, bytes) : NULL;
	free(host);
	return t;
}

// A variable of the size that the values would have.
static yoke_tensor *without_values(const struct yk_weight_source *s, const char *name, int format)
{
	const int64_t blocks[] = { s->dims[0],
				   s->rank == 2 ? yoke_quant_bytes(format, s->dims[1]) : 0 };
	return format == YOKE_QUANT_F32 ? yoke_variable(name, yoke_f32, s->rank, s->dims) :
					  yoke_variable(name, yoke_u8, 2, blocks);
}

int yk_weight_hold(struct yk_weights *w, const struct yk_weight_source *s, int wanted,
		   struct yk_parameters *p, int i)
{
	const char *name = p->row[i].name;
	const bool variable = wanted == YOKE_QUANT_F32;
	const int format = kept_format(s, name, wanted);
	const struct yoke_context *ctx = yk_current();
	if (ctx && ctx->mode.dry)
		return yk_parameters_set(p, i, without_values(s, name, format), format);
	const unsigned char *at = variable ? NULL : in_place(s, format);
	if (at)
		w->users++; // yoke_wrap releases it, even if it fails
	return yk_parameters_set(p, i,
				 at ? on_memory(s, format, at, yk_weights_release, w) :
				      copied(s, name, format, variable),
				 format);
}
