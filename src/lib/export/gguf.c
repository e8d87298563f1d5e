// SPDX-License-Identifier: Apache-2.0
// Writes GGUF files with the keys, names and layout of llama.cpp's converter
// (convert_hf_to_gguf.py).
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "export/export.h"
#include "formats/gguf_write.h"
#include "nn/decoder.h"
#include "yoke-quant.h"

// Divisors of RoPE's frequencies, which GGUF stores as tensors.
struct extra {
	const char *name;
	float v[YK_ROPE_COLUMNS];
	int64_t n;
};

struct writing {
	const struct yk_export *x;
	const struct yk_export_options *options;
	struct yk_gguf_writer w;
	struct extra extra[2];
	size_t extras;
	int64_t context; // tokens that the file states
};

// ---- formats ----

static enum yk_gguf_format format_of(const struct writing *g, const struct yk_export_tensor *t)
{
	const enum yk_gguf_format stored = yk_export_stored(t);
	int format = g->options->format;
	// as the converter: norms, biases and learned positions stay exact
	if (t->rank == 1 || !strcmp(t->name, "position_embd.weight"))
		return YK_GGUF_F32;
	if (format < 0)
		format = stored == YK_GGUF_F32 || stored == YK_GGUF_BF16 ? (int)stored :
			 YOKE_QUANT_F16;
	return yoke_quant_bytes(format, t->dims[1]) ? (enum yk_gguf_format)format : YK_GGUF_F16;
}

// general.file_type, llama.cpp's number for what most matrices are.
static uint32_t file_type(int format)
{
	switch (format) {
	case YOKE_QUANT_F32: return 0;
	case YOKE_QUANT_Q4_0: return 2;
	case YOKE_QUANT_Q4_1: return 3;
	case YOKE_QUANT_Q8_0: return 7;
	case YOKE_QUANT_Q5_0: return 8;
	case YOKE_QUANT_Q5_1: return 9;
	case YOKE_QUANT_BF16: return 32;
	default: return 1; // F16
	}
}

static void put_type(struct writing *g)
{
	int format = YOKE_QUANT_F32;
	for (size_t i = 0; i < g->x->tensors && format == YOKE_QUANT_F32; i++)
		format = (int)format_of(g, &g->x->tensor[i]);
	yk_gguf_put_u32(&g->w, "general.file_type", file_type(format));
	if (format != YOKE_QUANT_F32 && format != YOKE_QUANT_F16 && format != YOKE_QUANT_BF16)
		yk_gguf_put_u32(&g->w, "general.quantization_version", 2);
}

// ---- keys ----

static const char *key(char to[128], const struct writing *g, const char *name)
{
	snprintf(to, 128, "%s.%s", g->x->written->name, name);
	return to;
}

static void put_u32(struct writing *g, const char *name, int64_t v)
{
	char full[128];
	yk_gguf_put_u32(&g->w, key(full, g, name), (uint32_t)v);
}

static void put_real(struct writing *g, const char *name, double v)
{
	char full[128];
	yk_gguf_put_real(&g->w, key(full, g, name), v);
}

static void put_word(struct writing *g, const char *name, const char *v)
{
	char full[128];
	yk_gguf_put_string(&g->w, key(full, g, name), v, strlen(v));
}

// The divisors of Llama 3's frequencies, f / f' as the converter writes them.
static void add_llama3(struct writing *g, const struct yk_rope *r, int64_t head_dim)
{
	struct extra *to = &g->extra[g->extras++];
	to->name = "rope_freqs.weight";
	to->n = head_dim / 2;
	for (int64_t i = 0; i < to->n; i++) {
		const double length = 2 * acos(-1) * pow(r->base, 2 * (double)i / (double)head_dim);
		const double smooth = (r->original / length - r->low) / (r->high - r->low);
		to->v[i] = (float)(length < r->original / r->high ?
					   1 :
				   length > r->original / r->low ?
					   r->factor :
					   1 / ((1 - smooth) / r->factor + smooth));
	}
}

static int add_table(struct writing *g, const json_t *list, const char *name)
{
	const int64_t n = g->x->shape.decoder.head_dim / 2;
	struct extra *to = &g->extra[g->extras++];
	to->name = name;
	to->n = n;
	if (!json_is_array(list) || (int64_t)json_array_size(list) != n)
		return yk_fail(YOKE_EFORMAT,
			       "%s: config.json: the factors of RoPE are not two lists of %" PRId64
			       " numbers",
			       g->x->path, n);
	for (int64_t i = 0; i < n; i++)
		to->v[i] = (float)json_number_value(json_array_get(list, (size_t)i));
	return 0;
}

static int put_longrope(struct writing *g, const struct yk_rope *r)
{
	const json_t *o = json_object_get(g->x->config, "rope_scaling"),
		     *newer = json_object_get(g->x->config, "rope_parameters");
	o = json_is_object(o) ? o : newer;
	if (g->x->written->names != YK_NAMES_PHI3)
		return yk_fail(YOKE_EINVAL,
			       "%s: GGUF files of %s have no tables of long and short factors",
			       g->x->path, g->x->written->name);
	put_u32(g, "rope.scaling.original_context_length", (int64_t)r->original);
	put_real(g, "rope.scaling.attn_factor", r->magnitude != 0 ? r->magnitude : 1);
	const int e = add_table(g, json_object_get(o, "long_factor"), "rope_factors_long.weight");
	return e == 0 ? add_table(g, json_object_get(o, "short_factor"),
				  "rope_factors_short.weight") :
			e;
}

static int put_rope(struct writing *g)
{
	const struct yk_decoder *d = &g->x->shape.decoder;
	const struct yk_rope *r = &d->rope;
	const bool two = g->x->written->names == YK_NAMES_GEMMA && d->qk_norm;
	if (r->base == 0)
		return 0;
	put_u32(g, "rope.dimension_count", d->head_dim);
	put_real(g, "rope.freq_base", r->base);
	if (two && d->rope_local.base != 0)
		put_real(g, "rope.freq_base_swa", d->rope_local.base);
	switch (r->scaling) {
	case YK_ROPE_PLAIN: break;
	case YK_ROPE_LINEAR:
		put_word(g, "rope.scaling.type", "linear");
		put_real(g, "rope.scaling.factor", r->factor);
		break;
	case YK_ROPE_YARN: {
		const double usual = r->factor > 1 ? 0.1 * log(r->factor) + 1 : 1;
		put_word(g, "rope.scaling.type", "yarn");
		put_real(g, "rope.scaling.factor", r->factor);
		put_u32(g, "rope.scaling.original_context_length", (int64_t)r->original);
		put_real(g, "rope.scaling.yarn_beta_fast", r->high);
		put_real(g, "rope.scaling.yarn_beta_slow", r->low);
		if (fabs(r->magnitude - usual) > 1e-6 * usual)
			put_real(g, "rope.scaling.attn_factor", r->magnitude / usual);
		break;
	}
	case YK_ROPE_LLAMA3: add_llama3(g, r, d->head_dim); break;
	case YK_ROPE_DIVIDED: return put_longrope(g, r);
	}
	return 0;
}

// Refuses settings that the file cannot state because llama.cpp derives them from the family.
static int check_fixed(const struct writing *g)
{
	const struct yk_export *x = g->x;
	const struct yk_decoder *d = &x->shape.decoder;
	const bool large = x->shape.layers == x->written->large_layers;
	const double scale = 1 / sqrt(large ? (double)x->shape.embed / (double)x->shape.heads :
					      (double)d->head_dim);
	if (fabs(d->attention_scale - scale) > 1e-6 * scale)
		return yk_fail(YOKE_EINVAL, "%s: scores are scaled by %g; GGUF files of %s mean %g",
			       x->path, d->attention_scale, x->written->name, scale);
	const int64_t period = x->written->is.window_period;
	for (int64_t i = 0; i < x->shape.layers && period && d->window; i++)
		if (yk_decoder_is_local(d, i) != ((i + 1) % period != 0))
			return yk_fail(YOKE_EINVAL,
				       "%s: layer %" PRId64
				       " %s; GGUF files of %s mean that only every %" PRId64
				       "th has none",
				       x->path, i,
				       yk_decoder_is_local(d, i) ? "has a window" : "has no window",
				       x->written->name, period);
	return 0;
}

static void put_sizes(struct writing *g)
{
	const struct yk_model_shape *s = &g->x->shape;
	const struct yk_decoder *d = &s->decoder;
	const bool gpt2 = g->x->written->names == YK_NAMES_GPT2;
	put_u32(g, "vocab_size", s->vocab);
	put_u32(g, "block_count", s->layers);
	put_u32(g, "context_length", g->context);
	put_u32(g, "embedding_length", s->embed);
	put_u32(g, "feed_forward_length", d->hidden);
	put_u32(g, "attention.head_count", s->heads);
	if (!gpt2) {
		put_u32(g, "attention.head_count_kv", d->kv_heads);
		put_u32(g, "attention.key_length", d->head_dim);
		put_u32(g, "attention.value_length", d->head_dim);
	}
	put_real(g, gpt2 ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon",
		 d->norm_eps);
	if (g->x->written->names == YK_NAMES_GEMMA || g->x->written->names == YK_NAMES_PHI3)
		put_u32(g, "attention.sliding_window", d->window);
	if (d->attention_cap != 0)
		put_real(g, "attn_logit_softcapping", d->attention_cap);
	if (d->logit_cap != 0)
		put_real(g, "final_logit_softcapping", d->logit_cap);
}

static const char *base_name(const char *path, size_t *n)
{
	size_t end = strlen(path);
	while (end > 1 && path[end - 1] == '/')
		end--;
	size_t from = end;
	while (from > 0 && path[from - 1] != '/')
		from--;
	*n = end - from;
	return path + from;
}

static int put_metadata(struct writing *g)
{
	const struct yk_export *x = g->x;
	const struct yk_decoder *d = &x->shape.decoder;
	size_t n;
	const char *name = base_name(x->path, &n);
	int e = check_fixed(g);
	if (e < 0)
		return e;
	const bool has_windows =
		x->written->names == YK_NAMES_GEMMA || x->written->names == YK_NAMES_PHI3;
	g->context = x->shape.context;
	if (d->window && !has_windows && d->window < g->context) {
		yk_warn("export",
			"%s: GGUF files of %s have no window; the context is limited to its %" PRId64
			" tokens",
			x->path, x->written->name, d->window);
		g->context = d->window;
	}
	yk_gguf_put_string(&g->w, "general.architecture", x->written->name,
			   strlen(x->written->name));
	yk_gguf_put_string(&g->w, "general.type", "model", 5);
	yk_gguf_put_string(&g->w, "general.name", name, n);
	put_sizes(g);
	e = put_rope(g);
	put_type(g);
	return e == 0 ? yk_export_tokenizer_gguf(x, g->options->pre, &g->w) : e;
}

// Keys of a GGUF file are kept but for those that this file decides.
static void copy_metadata(struct writing *g)
{
	static const char *const decided[] = { "general.file_type", "general.quantization_version",
					       "general.alignment" };
	const struct yk_gguf *from = &g->x->weights->gguf;
	for (size_t i = 0; i < from->keys; i++) {
		bool keep = strncmp(from->key[i].name, "split.", 6) != 0;
		for (int k = 0; k < 3; k++)
			keep = keep && strcmp(from->key[i].name, decided[k]);
		if (keep)
			yk_gguf_put_key(&g->w, &from->key[i]);
	}
	put_type(g);
	static const char *const tables[] = { "rope_freqs.weight", "rope_factors_long.weight",
					      "rope_factors_short.weight" };
	for (int k = 0; k < 3 && g->extras < 2; k++) {
		const struct yk_gguf_tensor *t = yk_gguf_tensor(from, tables[k]);
		if (!t || t->format != YK_GGUF_F32 || t->rank != 1 || t->dims[0] > YK_ROPE_COLUMNS)
			continue;
		struct extra *to = &g->extra[g->extras++];
		to->name = tables[k];
		to->n = t->dims[0];
		memcpy(to->v, t->data, (size_t)to->n * sizeof *to->v);
	}
}

// ---- the file ----

static int fill(void *arg, size_t i, struct yk_file_writer *to)
{
	const struct writing *g = arg;
	if (i < g->extras)
		return yk_file_add(to, g->extra[i].v,
				   (size_t)g->extra[i].n * sizeof *g->extra[i].v);
	const struct yk_export_tensor *t = &g->x->tensor[i - g->extras];
	return yk_export_write_tensor(t, (int)format_of(g, t), to);
}

static int declare(struct writing *g)
{
	int e = 0;
	for (size_t i = 0; i < g->extras && e == 0; i++)
		e = yk_gguf_put_tensor(&g->w, g->extra[i].name, 1, &g->extra[i].n, YK_GGUF_F32);
	for (size_t i = 0; i < g->x->tensors && e == 0; i++) {
		const struct yk_export_tensor *t = &g->x->tensor[i];
		e = yk_gguf_put_tensor(&g->w, t->name, t->rank, t->dims, format_of(g, t));
	}
	return e;
}

int yk_export_gguf(const char *path, const char *to, const struct yk_export_options *o)
{
	struct yk_export x = { 0 };
	struct writing g = { .x = &x, .options = o };
	int e = yk_export_target(path, to, o->overwrite);
	if (e < 0)
		return e;
	e = yk_export_open(path, true, o, &x);
	if (e == 0 && x.base)
		e = yk_export_target(x.base, to, o->overwrite);
	if (e == 0)
		e = yk_gguf_writer_init(&g.w);
	if (e == 0 && x.weights->is_gguf)
		copy_metadata(&g);
	else if (e == 0)
		e = put_metadata(&g);
	if (e == 0)
		e = declare(&g);
	if (e == 0)
		e = yk_gguf_write(&g.w, to, fill, &g);
	yk_gguf_writer_fini(&g.w);
	yk_export_close(&x);
	return e;
}
