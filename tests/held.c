// SPDX-License-Identifier: Apache-2.0
// Opened models hold their matrices in the format of the file: logits equal those of the same file
// dequantized, the mapped bytes are the tensors, and dtype, quant and kv convert.
#include "config.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../tests/gguf_write.h"
#include "models/pretrained.h"
#include "tap.h"
#include "yoke-quant.h"

enum { WIDTH = 256, VOCAB = 19, TOKENS = 7, MAX_BYTES = WIDTH * WIDTH * 4 };
static const char folder[] = "held";
static char path[64];

static const struct {
	int format, block, bytes, scales, scale[2];
	const char *name;
} formats[] = {
	{ YOKE_QUANT_Q4_0, 32, 18, 1, { 0 }, "Q4_0" },
	{ YOKE_QUANT_Q4_1, 32, 20, 2, { 0, 2 }, "Q4_1" },
	{ YOKE_QUANT_Q5_0, 32, 22, 1, { 0 }, "Q5_0" },
	{ YOKE_QUANT_Q5_1, 32, 24, 2, { 0, 2 }, "Q5_1" },
	{ YOKE_QUANT_Q8_0, 32, 34, 1, { 0 }, "Q8_0" },
	{ YOKE_QUANT_Q4_K, 256, 144, 2, { 0, 2 }, "Q4_K" },
	{ YOKE_QUANT_Q5_K, 256, 176, 2, { 0, 2 }, "Q5_K" },
	{ YOKE_QUANT_Q6_K, 256, 210, 1, { 208 }, "Q6_K" },
	{ YOKE_QUANT_F16, 1, 2, 1, { 0 }, "F16" },
	{ YOKE_QUANT_BF16, 1, 2, 1, { 0 }, "BF16" },
	{ YK_GGUF_IQ4_NL, 32, 18, 1, { 0 }, "IQ4_NL" },
	{ YOKE_QUANT_F32, 1, 4, 0, { 0 }, "F32" },
};
enum { FORMATS = sizeof formats / sizeof *formats };

// Random blocks whose numbers are about 0.1; returns their bytes.
static size_t draw(int f, int64_t rows, unsigned char *to)
{
	const int64_t blocks = rows * WIDTH / formats[f].block;
	for (int64_t i = 0; i < blocks; i++) {
		unsigned char *b = to + i * formats[f].bytes;
		const float v = (float)rnd_real(-0.2, 0.2);
		for (int j = 0; j < formats[f].bytes; j++)
			b[j] = (unsigned char)rnd();
		// f16 of 0.001 .. 0.002, less for the products of two scales
		for (int j = 0; j < formats[f].scales; j++) {
			const uint16_t h =
				(uint16_t)((formats[f].block == 256 ? 0x0400 :
					    formats[f].format == YOKE_QUANT_BF16 ? 0x3d00 :
					    formats[f].block == 1 ? 0x2c00 :
					    0x1800) +
					   rnd_int(0, 255));
			memcpy(b + formats[f].scale[j], &h, sizeof h);
		}
		if (formats[f].format == YOKE_QUANT_F32)
			memcpy(b, &v, sizeof v);
	}
	return (size_t)(blocks * formats[f].bytes);
}

static void add(struct gguf_file *g, const char *name, int f, int64_t rows)
{
	static unsigned char bytes[MAX_BYTES];
	const int64_t dims[] = { rows, WIDTH };
	gguf_tensor(g, name, 2, dims, (enum yk_gguf_format)formats[f].format, bytes,
		    draw(f, rows, bytes));
}

// A model of one block, whose matrices have one format.
static void write_model(int f)
{
	static const char *const matrices[] = { "attn_q",   "attn_k", "attn_v",  "attn_output",
						"ffn_gate", "ffn_up", "ffn_down" };
	static const char *const norms[] = { "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight",
					     "output_norm.weight" };
	struct gguf_file g = { 0 };
	float one[WIDTH];
	const int64_t width = WIDTH;
	for (int i = 0; i < WIDTH; i++)
		one[i] = 1;
	gguf_text(&g, "general.architecture", "llama");
	gguf_u32(&g, "llama.block_count", 1);
	gguf_u32(&g, "llama.embedding_length", WIDTH);
	gguf_u32(&g, "llama.context_length", 16);
	gguf_u32(&g, "llama.attention.head_count", 4);
	gguf_u32(&g, "llama.feed_forward_length", WIDTH);
	add(&g, "token_embd.weight", f, VOCAB);
	for (int i = 0; i < 7; i++) {
		char name[64];
		snprintf(name, sizeof name, "blk.0.%s.weight", matrices[i]);
		add(&g, name, f, WIDTH);
	}
	for (int i = 0; i < 3; i++)
		gguf_tensor(&g, norms[i], 1, &width, YK_GGUF_F32, one, sizeof one);
	snprintf(path, sizeof path, "%s/%s.gguf", folder, formats[f].name);
	gguf_save(&g, path);
}

static yoke_model *open_as(const char *dtype, const char *quant, const char *kv)
{
	const struct yoke_model_options o = {
		.size = sizeof o, .dtype = dtype, .quant = quant, .kv = kv
	};
	return yoke_model_open(path, &o);
}

static int logits(yoke_model *m, double *to)
{
	static const int32_t ids[TOKENS] = { 1, 18, 0, 7, 7, 3, 11 };
	const int64_t dims[] = { 1, TOKENS };
	float got[TOKENS * VOCAB];
	memset(got, -1, sizeof got);
	yoke_scope *s = yoke_scope_begin("test");
	const int e = m ? yoke_read(yoke_model_logits(m, yoke_from(yoke_i32, 2, dims, ids)), got,
				    sizeof got) :
			  yoke_error_code();
	yoke_scope_end(s);
	for (int i = 0; i < TOKENS * VOCAB; i++)
		to[i] = (double)got[i];
	return e;
}

static double largest(int n, const double *x)
{
	double y = 0;
	for (int i = 0; i < n; i++)
		y = fmax(y, fabs(x[i]));
	return y;
}

// Do all matrices have that format, and the vectors f32?
static bool held_as(yoke_model *m, int format)
{
	yoke_tensor *t[16];
	const int n = yoke_model_parameters(m, 16, t, NULL);
	bool good = n == 11;
	for (int i = 0; i < n && good; i++)
		good = yoke_rank(t[i]) == 1 || format == YOKE_QUANT_F32 ?
			       yoke_dtype(t[i]) == yoke_f32 :
			       yoke_dtype(t[i]) == yoke_u8 &&
				       yoke_dim(t[i], 1) == yoke_quant_bytes(format, WIDTH);
	return good;
}

static void test_format(int f)
{
	double want[TOKENS * VOCAB], got[TOKENS * VOCAB];
	char text[96];
	const int kept = formats[f].format == YK_GGUF_IQ4_NL ? YOKE_QUANT_F16 : formats[f].format;
	write_model(f);
	yoke_model *whole = open_as("f32", NULL, NULL), *m = yoke_model_open(path, NULL);
	unlink(path); // it stays mapped
	ok(m && held_as(m, kept), "%s: is held in format %d %s", formats[f].name, kept,
	   m ? "" : yoke_error());
	ok(whole && held_as(whole, YOKE_QUANT_F32), "%s: dtype f32 dequantizes", formats[f].name);
	const int e = logits(whole, want) | logits(m, got);
	snprintf(text, sizeof text, "%s: logits of the held and of the dequantized model",
		 formats[f].name);
	// f16 rounds what has no op
	ok(!e && largest(TOKENS * VOCAB, want) > 0, "%s: logits are computed: %d", formats[f].name,
	   e);
	near(got, want, TOKENS * VOCAB, formats[f].format == kept ? 5e-4 : 2e-3,
	     largest(TOKENS * VOCAB, want), text);
	yoke_model_free(whole);
	yoke_model_free(m);
	yoke_error_clear();
}

static void test_conversions(void)
{
	static const struct {
		const char *dtype, *quant;
		int format;
		double tolerance;
	} cases[] = {
		{ "f16", NULL, YOKE_QUANT_F16, 2e-3 },   { "bf16", NULL, YOKE_QUANT_BF16, 0.02 },
		{ NULL, "q8_0", YOKE_QUANT_Q8_0, 0.03 }, { NULL, "q5_1", YOKE_QUANT_Q5_1, 0.2 },
		{ NULL, "q5_0", YOKE_QUANT_Q5_0, 0.3 },  { NULL, "q4_1", YOKE_QUANT_Q4_1, 0.5 },
		{ NULL, "q4_0", YOKE_QUANT_Q4_0, 0.5 },
	};
	double want[TOKENS * VOCAB], got[TOKENS * VOCAB];
	char text[96];
	write_model(FORMATS - 1);
	yoke_model *m = yoke_model_open(path, NULL);
	logits(m, want);
	yoke_model_free(m);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		m = open_as(cases[i].dtype, cases[i].quant, NULL);
		snprintf(text, sizeof text, "%s: logits",
			 cases[i].dtype ? cases[i].dtype : cases[i].quant);
		ok(m && held_as(m, cases[i].format), "%s: converts %s", text,
		   m ? "" : yoke_error());
		const int e = logits(m, got);
		near(got, want, e ? 0 : TOKENS * VOCAB, cases[i].tolerance,
		     largest(TOKENS * VOCAB, want), text);
		yoke_model_free(m);
		yoke_error_clear();
	}
}

static void refused(const char *dtype, const char *quant, const char *kv)
{
	yoke_model *m = open_as(dtype, quant, kv);
	ok(!m && yoke_error_code() == YOKE_EINVAL, "refused: dtype %s, quant %s, kv %s: %s",
	   dtype ? dtype : "-", quant ? quant : "-", kv ? kv : "-", yoke_error());
	yoke_error_clear();
	yoke_model_free(m);
}

// The last logits after a prompt and one more token, with a cache.
static int last(const char *kv, double *to)
{
	const struct yoke_model_options o = { .size = sizeof o, .kv = kv };
	static const int32_t ids[] = { 1, 18, 0, 7, 5 };
	struct yk_pretrained p;
	struct yk_network_cache *c = NULL;
	float got[VOCAB];
	int e = yk_pretrained_open(path, &o, &p);
	if (e < 0)
		return e;
	e = yk_network_cache_new(p.net, p.net->shape.context, &c);
	for (int i = 0; i < 2 && e == 0; i++) {
		const int64_t n = i ? 1 : 4, dims[] = { 1, n };
		yoke_scope *s = yoke_scope_begin("test");
		yoke_tensor *h =
			yk_network_extend(p.net, &c, yoke_from(yoke_i32, 2, dims, ids + 4 * i));
		e = yoke_read(p.net->model->logits(p.net, yoke_slice(h, 1, n - 1, n, 1)), got,
			      sizeof got);
		yoke_scope_end(s);
	}
	const bool half = c && yoke_dtype(c->state.var[0]) == yoke_f16;
	yk_network_cache_free(c);
	yk_pretrained_close(&p);
	for (int i = 0; i < VOCAB; i++)
		to[i] = (double)got[i];
	return e < 0 ? e : half;
}

static void test_cache(void)
{
	double whole[VOCAB], half[VOCAB], same[VOCAB];
	write_model(4);
	const int f32 = last("f32", whole), f16 = last("f16", half);
	ok(f32 == 0 && f16 == 1, "a cache has the dtype of kv: %d, %d", f32, f16);
	near(half, whole, VOCAB, 5e-3, largest(VOCAB, whole), "logits with keys and values in f16");
	ok(last(NULL, same) == 1 && !memcmp(same, half, sizeof same),
	   "quantized models have caches in f16");
	write_model(FORMATS - 1);
	ok(last(NULL, same) == 0, "models in f32 have caches in f32");
}

// Bytes that were given back to the kernel; the library's calls come here.
static size_t given_back;

int madvise(void *at, size_t bytes, int advice)
{
	given_back += advice == MADV_DONTNEED ? bytes : 0;
	return (int)syscall(SYS_madvise, at, bytes, advice);
}

// A model that was converted does not stay in memory a second time, as pages of its file.
static void test_memory(const char *dtype, const char *quant)
{
	struct stat st;
	write_model(FORMATS - 1); // F32
	given_back = 0;
	yoke_model *m = open_as(dtype, quant, NULL);
	ok(m && stat(path, &st) == 0 && st.st_size > 1 << 20 &&
		   given_back > (size_t)st.st_size / 4 * 3,
	   "converted to %s: the pages of %zu bytes of the file are given back",
	   dtype ? dtype : quant, given_back);
	yoke_model_free(m);
	yoke_error_clear();
}

int main(void)
{
	tap_folder();
	mkdir(folder, 0777);
	tap_seed();
	for (int f = 0; f < FORMATS; f++)
		test_format(f);
	test_conversions();
	test_cache();
	test_memory(NULL, "q8_0");
	test_memory("bf16", NULL);
	refused("f32", "q8_0", NULL);
	refused("f64", NULL, NULL);
	refused(NULL, "q4_k", NULL);
	refused(NULL, NULL, "bf16");
	return done();
}
