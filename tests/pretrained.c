// SPDX-License-Identifier: Apache-2.0
// Pretrained models: the logits of small models of each family are those that transformers computes
// (models/recorded.h), at once and token by token; files that contradict themselves are refused.
#include "config.h"

#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "../tests/gguf_write.h"
#include "base/error.h"
#include "base/file.h"
#include "data/chats.h"
#include "export/export.h"
#include "models/pretrained.h"
#include "nn/windows.h"
#include "onnx_case.h"
#include "tap.h"
#include "../tests/models/recorded_files.h"
#include "train/trained.h"

enum { MODELS = sizeof recorded / sizeof *recorded };

// ---- the same as GGUF ----

// Names as llama.cpp's converter writes them.
static const char *const gguf_names[][2] = {
	{ "model.embed_tokens", "token_embd" },
	{ "model.norm", "output_norm" },
	{ "lm_head", "output" },
	{ "input_layernorm", "attn_norm" },
	{ "self_attn.q_proj", "attn_q" },
	{ "self_attn.k_proj", "attn_k" },
	{ "self_attn.v_proj", "attn_v" },
	{ "self_attn.qkv_proj", "attn_qkv" },
	{ "self_attn.o_proj", "attn_output" },
	{ "self_attn.q_norm", "attn_q_norm" },
	{ "self_attn.k_norm", "attn_k_norm" },
	{ "mlp.gate_proj", "ffn_gate" },
	{ "mlp.gate_up_proj", "ffn_up" },
	{ "mlp.up_proj", "ffn_up" },
	{ "mlp.down_proj", "ffn_down" },
	{ "pre_feedforward_layernorm", "ffn_norm" },
	{ "post_feedforward_layernorm", "post_ffw_norm" },
	{ "wte", "token_embd" },
	{ "wpe", "position_embd" },
	{ "ln_f", "output_norm" },
	{ "ln_1", "attn_norm" },
	{ "ln_2", "ffn_norm" },
	{ "attn.c_attn", "attn_qkv" },
	{ "attn.c_proj", "attn_output" },
	{ "mlp.c_fc", "ffn_up" },
	{ "mlp.c_proj", "ffn_down" },
};

static void gguf_name(const char *family, const char *name, char *to, size_t room)
{
	const bool gemma = !strncmp(family, "gemma", 5);
	const char *kind = strrchr(name, '.'), *layer = name;
	char before[32] = "";
	int block = -1, end = 0;
	if (!strncmp(name, "transformer.", 12))
		layer = name += 12;
	if ((sscanf(name, "model.layers.%d.%n", &block, &end) == 1 ||
	     sscanf(name, "h.%d.%n", &block, &end) == 1) &&
	    end) {
		snprintf(before, sizeof before, "blk.%d.", block);
		layer = name + end;
	}
	const char *found = NULL;
	for (size_t i = 0; i < sizeof gguf_names / sizeof *gguf_names; i++)
		if (strlen(gguf_names[i][0]) == (size_t)(kind - layer) &&
		    !strncmp(gguf_names[i][0], layer, (size_t)(kind - layer)))
			found = gguf_names[i][1];
	if (!found) // post_attention_layernorm
		found = gemma ? "post_attention_norm" : "ffn_norm";
	snprintf(to, room, "%s%s%s", before, found, kind);
}

// to [n,m] from [m,n]
static void transpose(const float *from, int64_t m, int64_t n, float *to)
{
	for (int64_t i = 0; i < m; i++)
		for (int64_t k = 0; k < n; k++)
			to[k * m + i] = from[i * n + k];
}

// Rows p D/2 + j of each head become rows 2 j + p.
static void interleave(const float *from, int64_t rows, int64_t columns, int64_t d, float *to)
{
	for (int64_t r = 0; r < rows; r++) {
		const int64_t head = r / d, p = r % d / (d / 2), j = r % (d / 2);
		memcpy(to + (head * d + 2 * j + p) * columns, from + r * columns,
		       (size_t)columns * sizeof *to);
	}
}

static void add_tensor(struct gguf_file *f, const char *family, const struct yk_host_tensor *t,
		       int64_t head_dim)
{
	const size_t n = (size_t)t->dims[0] * (size_t)(t->rank == 2 ? t->dims[1] : 1);
	float *v = malloc(n * sizeof *v);
	int64_t dims[] = { t->dims[0], t->dims[1] };
	char name[128];
	const bool llama = !strncmp(family, "llama", 5) || !strcmp(family, "mistral");
	gguf_name(family, t->name, name, sizeof name);
	memcpy(v, t->data, n * sizeof *v);
	if (!strcmp(family, "gpt2") && strstr(t->name, ".h.") && t->rank == 2) {
		transpose(t->data, dims[0], dims[1], v);
		dims[0] = t->dims[1];
		dims[1] = t->dims[0];
	} else if (llama && (strstr(name, "attn_q.") || strstr(name, "attn_k."))) {
		interleave(t->data, dims[0], t->rank == 2 ? dims[1] : 1, head_dim, v);
	}
	for (size_t i = 0; i < n && !strncmp(family, "gemma", 5) && t->rank == 1; i++)
		v[i] += 1;
	gguf_tensor(f, name, t->rank, dims, YK_GGUF_F32, v, n * sizeof *v);
	free(v);
}

static int64_t number(const json_t *config, const char *key, const char *other, int64_t otherwise)
{
	const json_t *v = json_object_get(config, key);
	v = v ? v : json_object_get(config, other);
	return v && json_is_integer(v) ? json_integer_value(v) : otherwise;
}

static const char *write_gguf(const struct recorded *r, const struct tensors *all)
{
	static char path[256];
	struct gguf_file f = { 0 };
	json_t *c = json_loads(r->config, 0, NULL);
	const char *type = json_string_value(json_object_get(c, "model_type"));
	const char *arch = !strcmp(type, "mistral")     ? "llama" :
			   !strcmp(type, "gemma3_text") ? "gemma3" :
							  type;
	const int64_t heads = number(c, "num_attention_heads", "n_head", 0),
		      width = number(c, "hidden_size", "n_embd", 0);
	const int64_t d = number(c, "head_dim", "head_dim", width / heads);
	const struct {
		const char *key;
		int64_t value;
	} keys[] = {
		{ "block_count", number(c, "num_hidden_layers", "n_layer", 0) },
		{ "embedding_length", width },
		{ "context_length", number(c, "max_position_embeddings", "n_positions", 0) },
		{ "attention.head_count", heads },
		{ "attention.head_count_kv", number(c, "num_key_value_heads", "none", heads) },
		{ "feed_forward_length", number(c, "intermediate_size", "none", 4 * width) },
		{ "attention.key_length", d },
		{ "attention.value_length", d },
		{ "attention.sliding_window", number(c, "sliding_window", "none", 0) },
	};
	char key[64];
	snprintf(path, sizeof path, "%s/%s.gguf", folder, r->name);
	gguf_text(&f, "general.architecture", arch);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		snprintf(key, sizeof key, "%s.%s", arch, keys[i].key);
		gguf_u32(&f, key, (uint32_t)keys[i].value);
	}
	snprintf(key, sizeof key, "%s.attention.layer_norm_%sepsilon", arch,
		 strcmp(arch, "gpt2") ? "rms_" : "");
	gguf_real(&f, key, 1e-5f);
	const char *caps[] = { "attn_logit_softcapping", "final_logit_softcapping" };
	for (int i = 0; i < 2; i++) {
		snprintf(key, sizeof key, "%s.%s", arch, caps[i]);
		if (json_object_get(c, caps[i]))
			gguf_real(&f, key, (float)json_number_value(json_object_get(c, caps[i])));
	}
	for (int i = 0; i < all->n; i++)
		add_tensor(&f, r->name, &all->t[i], d);
	gguf_save(&f, path);
	json_decref(c);
	return path;
}

// ---- logits ----

// The largest difference to the recorded logits of position recorded_shown[k], as a share of the
// largest logit.
static double difference(const struct recorded *r, int k, const float *got)
{
	const float *want = r->logits + (size_t)k * RECORDED_VOCAB;
	double worst = 0, largest = 0;
	for (int i = 0; i < RECORDED_VOCAB; i++) {
		largest = fmax(largest, fabs((double)want[i]));
		worst = fmax(worst,
			     isnan(got[i]) ? INFINITY : fabs((double)got[i] - (double)want[i]));
	}
	return worst / largest;
}

static void check_at_once(const struct recorded *r, yoke_model *m)
{
	static float got[RECORDED_TOKENS * RECORDED_VOCAB];
	const int64_t dims[] = { 1, RECORDED_TOKENS };
	double worst = 0;
	memset(got, -1, sizeof got);
	yoke_scope *s = yoke_scope_begin("test");
	const int e = yoke_read(yoke_model_logits(m, yoke_from(yoke_i32, 2, dims, recorded_ids)),
				got, sizeof got);
	yoke_scope_end(s);
	for (int k = 0; k < RECORDED_SHOWN; k++)
		worst = fmax(worst, difference(r, k, got + recorded_shown[k] * RECORDED_VOCAB));
	ok(e == 0 && worst < 1e-4,
	   "%s: logits differ from transformers' by %.2g of the largest; at most 1e-4", r->name,
	   worst);
}

// Two sequences in caches: a prompt each, then one token at a time for both.
static void check_cached(const struct recorded *r, const char *path)
{
	struct yk_pretrained p;
	struct yk_network_cache *c[2] = { NULL, NULL };
	float got[2 * RECORDED_VOCAB];
	double worst = 0;
	int e = yk_pretrained_open(path, NULL, &p);
	if (e < 0) {
		ok(false, "%s: opens again: %s", r->name, yoke_error());
		return;
	}
	for (int i = 0; i < 2 && e == 0; i++)
		e = yk_network_cache_new(p.net, p.net->shape.context, &c[i]);
	for (int t = recorded_shown[1]; t < RECORDED_TOKENS && e == 0; t++) {
		const bool begins = t == recorded_shown[1];
		for (int i = 0; i < (begins ? 2 : 1) && e == 0; i++) {
			const int64_t rows = begins ? 1 : 2, n = begins ? t + 1 : 1,
				      dims[] = { rows, n };
			const int32_t twice[] = { recorded_ids[t], recorded_ids[t] };
			yoke_scope *s = yoke_scope_begin("test");
			yoke_tensor *ids =
				yoke_from(yoke_i32, 2, dims, begins ? recorded_ids : twice);
			yoke_tensor *h = yk_network_extend(p.net, begins ? &c[i] : c, ids);
			h = yoke_slice(h, 1, n - 1, n, 1);
			memset(got, -1, sizeof got);
			e = yoke_read(p.net->model->logits(p.net, h), got,
				      (size_t)rows * RECORDED_VOCAB * sizeof *got);
			yoke_scope_end(s);
			for (int k = 1; k < RECORDED_SHOWN; k++)
				for (int64_t row = 0; row < rows && t == recorded_shown[k]; row++)
					worst = fmax(worst,
						     difference(r, k, got + row * RECORDED_VOCAB));
		}
	}
	ok(e == 0 && worst < 1e-4,
	   "%s: token by token, two sequences at once: logits differ by %.2g; at most 1e-4 %s",
	   r->name, worst, e ? yoke_error() : "");
	for (int i = 0; i < 2; i++)
		yk_network_cache_free(c[i]);
	yk_pretrained_close(&p);
}

static void test_family(const struct recorded *r)
{
	struct tensors all = tensors_of(r);
	const char *path = write_folder(r->name, r->config, &all);
	yoke_model *m = yoke_model_open(path, NULL);
	if (ok(m != NULL, "%s: opens %s", r->name, m ? "" : yoke_error())) {
		check_at_once(r, m);
		check_cached(r, path);
	}
	yoke_error_clear();
	yoke_model_free(m);
	// what GGUF does not say is fixed by the family: llama.cpp's windows and scales
	if (!strcmp(r->name, "llama") || !strcmp(r->name, "llama_bias") ||
	    !strcmp(r->name, "qwen2") || !strcmp(r->name, "qwen3") || !strcmp(r->name, "phi3") ||
	    !strcmp(r->name, "gpt2")) {
		m = yoke_model_open(write_gguf(r, &all), NULL);
		if (ok(m != NULL, "%s: opens as GGUF %s", r->name, m ? "" : yoke_error()))
			check_at_once(r, m);
		yoke_error_clear();
		yoke_model_free(m);
	}
	tensors_free(&all);
}

// ---- packed windows ----

// A window of three texts: A, which varies, the recorded one, and the rest of the window, one token
// each.
enum { PACKED_A = 9, PACKED_T = 32, PACKED_ROWS = 2 };

static void pack_window(int seed, int32_t *row)
{
	for (int t = 0; t < PACKED_T; t++) {
		const bool a = t < PACKED_A, b = !a && t < PACKED_A + RECORDED_TOKENS;
		row[t] = a ? (t * t + seed) % RECORDED_VOCAB : b ? recorded_ids[t - PACKED_A] : 0;
		row[PACKED_T + t] = YK_NO_TARGET;
		row[2 * PACKED_T + t] = a ? t : b ? t - PACKED_A : 0;
	}
	for (int k = 0; k < RECORDED_SHOWN; k++)
		row[PACKED_T + PACKED_A + recorded_shown[k]] = 7 * k + 3;
}

// -log of the probability of a token by the recorded logits of position recorded_shown[k], in
// float64.
static double surprise(const struct recorded *r, int k, int id)
{
	const float *x = r->logits + (size_t)k * RECORDED_VOCAB;
	double largest = -INFINITY, sum = 0;
	for (int i = 0; i < RECORDED_VOCAB; i++)
		largest = fmax(largest, (double)x[i]);
	for (int i = 0; i < RECORDED_VOCAB; i++)
		sum += exp((double)x[i] - largest);
	return largest + log(sum) - (double)x[id];
}

// The loss of two windows, whose texts A differ by seeds, the logits of the second, and all
// gradients.
static int packed_pass(const struct yk_network *net, int seed, float *loss, float *logits,
		       float *gradient)
{
	int32_t rows[PACKED_ROWS][3 * PACKED_T];
	const int64_t dims[] = { PACKED_ROWS, 3 * PACKED_T }, t = PACKED_T;
	yoke_tensor *g[MAX_TENSORS + 1];
	const int n = net->params.count;
	for (int i = 0; i < PACKED_ROWS; i++)
		pack_window(seed + i, rows[i]);
	yoke_scope *s = yoke_scope_begin("test");
	yoke_tensor *w = yoke_from(yoke_i32, 2, dims, rows), *l = yk_windows_loss(net, w, 0);
	yoke_tensor *h = net->model->packed(net, yoke_slice(w, 1, 0, t, 1),
					    yoke_slice(w, 1, 2 * t, 3 * t, 1), 0);
	yoke_tensor *x = yoke_slice(net->model->logits(net, h), 0, 1, 2, 1);
	int e = n <= MAX_TENSORS ? yoke_grad(l, n, net->params.var, g) : -1;
	if (e == 0)
		e = yoke_read(l, loss, sizeof *loss);
	if (e == 0)
		e = yoke_read(x, logits, sizeof(float) * PACKED_T * RECORDED_VOCAB);
	for (int i = 0; i < n && e == 0; i++) {
		e = yoke_read(g[i], gradient, yoke_bytes(g[i]));
		gradient += yoke_count(g[i]);
	}
	yoke_scope_end(s);
	return e;
}

// Texts in a window do not see each other: the numbers of one are transformers' for it alone, and
// do not depend on the others.
static void test_packed(const struct recorded *r)
{
	static float logits[2][PACKED_T * RECORDED_VOCAB];
	struct tensors all = tensors_of(r);
	const struct yoke_model_options o = { .size = sizeof o,
					      .context = PACKED_T,
					      .dtype = "f32" };
	struct yk_pretrained p;
	float loss[2] = { NAN, NAN };
	double want = 0, worst = 0;
	if (!ok(yk_pretrained_open(write_folder(r->name, r->config, &all), &o, &p) == 0,
		"%s: opens %s", r->name, yoke_error()))
		return;
	const size_t n = (size_t)p.net->params.elements;
	float *gradient[2] = { malloc(n * sizeof(float)), malloc(n * sizeof(float)) };
	memset(logits, -1, sizeof logits);
	memset(gradient[0], -1, n * sizeof(float));
	memset(gradient[1], -2, n * sizeof(float));
	const int e = packed_pass(p.net, 5, &loss[0], logits[0], gradient[0]);
	const int f = packed_pass(p.net, 11, &loss[1], logits[1], gradient[1]);
	for (int k = 0; k < RECORDED_SHOWN; k++) {
		worst = fmax(worst, difference(r, k,
					       logits[0] + (PACKED_A + recorded_shown[k]) *
								   RECORDED_VOCAB));
		want += surprise(r, k, 7 * k + 3) / RECORDED_SHOWN;
	}
	ok(e == 0 && worst < 1e-4,
	   "%s: packed after another text: logits differ from transformers' for it alone by %.2g; at most 1e-4 %s",
	   r->name, worst, yoke_error());
	ok(fabs((double)loss[0] - want) < 1e-4 * want,
	   "%s: the loss of packed windows is %.7g; the mean over their targets, in float64, is %.7g",
	   r->name, (double)loss[0], want);
	const size_t from = PACKED_A * RECORDED_VOCAB,
		     size = RECORDED_TOKENS * RECORDED_VOCAB * sizeof(float);
	ok(f == 0 && memcmp(logits[0], logits[1], from * sizeof(float)) &&
		   !memcmp(logits[0] + from, logits[1] + from, size),
	   "%s: another text before it changes no bit of its logits", r->name);
	ok(f == 0 && !memcmp(&loss[0], &loss[1], sizeof *loss) &&
		   !memcmp(gradient[0], gradient[1], n * sizeof(float)),
	   "%s: nor of its loss and its gradient, %g", r->name, (double)gradient[0][n - 1]);
	yoke_error_clear();
	free(gradient[0]);
	free(gradient[1]);
	yk_pretrained_close(&p);
	tensors_free(&all);
}

// ---- generation ----

enum { NEW = 6 };

// The most likely next token after n ids, by a pass over all of them.
static int32_t likeliest(yoke_model *m, const int32_t *ids, int64_t n)
{
	static float got[(RECORDED_TOKENS + NEW) * RECORDED_VOCAB];
	int32_t best = 0;
	yoke_scope *s = yoke_scope_begin("test");
	yoke_read(yoke_model_logits(m, yoke_from(yoke_i32, 2, (int64_t[]){ 1, n }, ids)), got,
		  (size_t)n * RECORDED_VOCAB * sizeof *got);
	yoke_scope_end(s);
	for (int32_t i = 1; i < RECORDED_VOCAB; i++)
		if (got[(n - 1) * RECORDED_VOCAB + i] > got[(n - 1) * RECORDED_VOCAB + best])
			best = i;
	return best;
}

// Continues one or two prompts; returns the number of steps that gave tokens, an error if there was
// one.
static int continued(yoke_model *m, int n, const int32_t *const *prompt, const int64_t *count,
		     struct yoke_generation_options o, int32_t to[][NEW])
{
	int e, steps = 0;
	o.size = sizeof o;
	memset(to, -1, (size_t)n * sizeof *to);
	yoke_generation *g = yoke_generation_new(m, n, prompt, count, &o);
	if (!g)
		return yoke_error_code();
	for (int32_t ids[2]; (e = yoke_generation_next(g, ids)) > 0; steps++)
		for (int i = 0; i < n && steps < NEW; i++)
			to[i][steps] = ids[i];
	yoke_generation_free(g);
	return e < 0 ? e : steps;
}

static void write_file(const char *path, const char *name, const char *text)
{
	char file[300];
	snprintf(file, sizeof file, "%s/%s", path, name);
	yk_file_write(file, text, strlen(text));
}

// Adds a tokenizer, in which one token ends a text.
static void write_tokenizer(const char *path, int32_t end)
{
	char text[4096], more[80];
	size_t n = (size_t)snprintf(
		text, sizeof text,
		"{\"version\":\"1.0\",\"added_tokens\":[],\"pre_tokenizer\":"
		"{\"type\":\"WhitespaceSplit\"},\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"w0\",\"vocab\":{");
	for (int i = 0; i < RECORDED_VOCAB; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%s\"w%d\":%d", i ? "," : "", i,
				      i);
	snprintf(text + n, sizeof text - n, "}}}");
	write_file(path, "tokenizer.json", text);
	snprintf(more, sizeof more, "{\"eos_token_id\": [%d]}", (int)end);
	write_file(path, "generation_config.json", more);
}

static void test_refused_generation(yoke_model *m)
{
	const int32_t good[] = { 1 }, bad[] = { 1, RECORDED_VOCAB };
	const struct {
		const char *what;
		int n;
		const int32_t *ids;
		int64_t count;
		struct yoke_generation_options o;
		int code;
	} cases[] = {
		{ "no prompts", 0, good, 1, { .tokens = 1 }, YOKE_EINVAL },
		{ "65 prompts", 65, good, 1, { .tokens = 1 }, YOKE_EINVAL },
		{ "an empty prompt", 1, good, 0, { .tokens = 1 }, YOKE_EINVAL },
		{ "an id outside of the vocabulary", 1, bad, 2, { .tokens = 1 }, YOKE_ERANGE },
		{ "tokens -1", 1, good, 1, { .tokens = -1 }, YOKE_EINVAL },
		{ "top_p NaN", 1, good, 1, { .tokens = 1, .top_p = NAN }, YOKE_EINVAL },
		{ "temperature -1", 1, good, 1, { .tokens = 1, .temperature = -1 }, YOKE_EINVAL },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct yoke_generation_options o = cases[i].o;
		o.size = sizeof o;
		yoke_generation *g =
			yoke_generation_new(m, cases[i].n, &cases[i].ids, &cases[i].count, &o);
		ok(!g && yoke_error_code() == cases[i].code, "generation refuses %s: %s",
		   cases[i].what, yoke_error());
		yoke_error_clear();
		yoke_generation_free(g);
	}
}

static void test_generation(const struct recorded *r)
{
	struct tensors all = tensors_of(r);
	const char *path = write_folder("generation", r->config, &all);
	yoke_model *m = yoke_model_open(path, NULL);
	const int32_t *prompt[] = { recorded_ids, recorded_ids + 5 };
	const int64_t count[] = { RECORDED_TOKENS, 4 };
	const struct yoke_generation_options greedy = { .tokens = NEW };
	const struct yoke_generation_options drawn = {
		.tokens = NEW, .temperature = 1.5, .top_k = 20, .seed = 3, .repetition = 1.2
	};
	int32_t ids[RECORDED_TOKENS + NEW], got[2][NEW], again[2][NEW], alone[1][NEW];
	bool same = true;
	ok(!yoke_model_tokenizer(m) && yoke_error_code() == YOKE_ENOENT,
	   "a folder without a tokenizer has none: %s", yoke_error());
	yoke_error_clear();
	int steps = continued(m, 2, prompt, count, greedy, got);
	memcpy(ids, recorded_ids, sizeof recorded_ids);
	for (int i = 0; i < NEW; i++) {
		ids[RECORDED_TOKENS + i] = likeliest(m, ids, RECORDED_TOKENS + i);
		same = same && got[0][i] == ids[RECORDED_TOKENS + i];
	}
	ok(steps == NEW && same,
	   "%s: temperature 0 continues with the most likely tokens: %d, %d, .. in %d steps",
	   r->name, got[0][0], got[0][1], steps);
	continued(m, 1, prompt + 1, count + 1, greedy, alone);
	ok(!memcmp(got[1], alone[0], sizeof alone),
	   "%s: the second of two prompts has the tokens it has alone: %d, %d, ..", r->name,
	   got[1][0], got[1][1]);
	continued(m, 2, prompt, count, drawn, got);
	continued(m, 2, prompt, count, drawn, again);
	ok(!memcmp(got, again, sizeof got), "%s: the same seed draws the same tokens: %d, %d, ..",
	   r->name, got[0][0], got[0][1]);
	test_refused_generation(m);
	yoke_model_free(m);
	// the third likeliest token ends the text
	write_tokenizer(path, ids[RECORDED_TOKENS + 2]);
	m = yoke_model_open(path, NULL);
	int before = 0;
	while (ids[RECORDED_TOKENS + before] != ids[RECORDED_TOKENS + 2])
		before++;
	steps = continued(m, 1, prompt, count, greedy, got);
	ok(steps == before, "%s: a text ends before token %d, after %d tokens; want %d", r->name,
	   (int)ids[RECORDED_TOKENS + 2], steps, before);
	steps = continued(m, 1, prompt, count,
			  (struct yoke_generation_options){ .tokens = NEW, .past_end = 1 }, got);
	ok(steps == NEW, "%s: with past_end it goes on: %d tokens", r->name, steps);
	yoke_model_free(m);
	tensors_free(&all);
}

// A conversation: prompts that begin with parts of earlier ones and their continuations.
struct turn {
	int64_t keep;  // tokens of the text before
	int64_t added; // new ones
};

static bool next_turn(yoke_model *m, yoke_generation *g, int32_t *ids, int64_t *n, struct turn turn,
		      int64_t *wanted)
{
	const struct yoke_generation_options o = { .size = sizeof o, .tokens = NEW, .past_end = 1 };
	static int32_t prompt[1000];
	const int32_t *const at[] = { prompt };
	int32_t fresh[1][NEW], id;
	const int64_t keep = turn.keep < *n ? turn.keep : *n, count = keep + turn.added,
		      cached = *n ? *n - 1 : 0;
	memcpy(prompt, ids, (size_t)keep * sizeof *ids);
	for (int64_t i = keep; i < count; i++)
		prompt[i] = (int32_t)((7 * i + 11 * *n + 3) % RECORDED_VOCAB);
	int64_t same = 0;
	while (same < cached && same < count - 1 && prompt[same] == ids[same])
		same++;
	*wanted += count - same + NEW - 1; // the last token of a text is not computed
	if (yoke_generation_again(g, at, &count, &o) < 0 ||
	    continued(m, 1, at, &count, o, fresh) != NEW)
		return false;
	memcpy(ids, prompt, (size_t)count * sizeof *ids);
	*n = count;
	for (int i = 0; i < NEW; i++) {
		if (yoke_generation_next(g, &id) != 1 || id != fresh[0][i])
			return false;
		ids[(*n)++] = id;
	}
	return yoke_generation_next(g, &id) == 0;
}

// Texts that begin again keep what their caches have, and continue as if they had not.
static void test_again(const struct recorded *r)
{
	static const struct turn turns[] = {
		// then beyond a cache of 256
		{ 0, 14 }, { 1000, 3 }, { 1000, 1 }, { 10, 4 }, { 14, 0 }, { 5, 0 }, { 0, 3 },
		{ 1000, 300 }, { 1000, 4 }, { 1000, 260 }, { 200, 10 }, { 1000, 5 },
	};
	struct tensors all = tensors_of(r);
	const char *path = write_folder("again", r->config, &all);
	yoke_model *m = yoke_model_open(path, NULL);
	struct yoke_model_info info = { .size = sizeof info };
	const struct yoke_generation_options none = { .size = sizeof none, .tokens = 0 };
	const int32_t *const first[] = { recorded_ids };
	const int64_t one = 1;
	static int32_t ids[1000];
	int64_t n = 0, wanted = 0, computed = 0;
	size_t turn = 0;
	yoke_model_info(m, &info);
	yoke_generation *g =
		strcmp(info.family, "bert") ? yoke_generation_new(m, 1, first, &one, &none) : NULL;
	const size_t count = info.context >= 1000 ? sizeof turns / sizeof *turns : 7;
	while (g && turn < count && next_turn(m, g, ids, &n, turns[turn], &wanted)) {
		turn++;
		computed = yoke_generation_computed(g);
		if (computed != wanted)
			break;
	}
	ok(!g || (turn == count && computed == wanted),
	   "%s: %zu of %zu prompts of a conversation are continued as by themselves; computed %lld tokens, wanted %lld",
	   r->name, turn, count, (long long)computed, (long long)wanted);
	const int64_t none_given = 0;
	ok(!g || (yoke_generation_again(g, first, &none_given, &none) == YOKE_EINVAL &&
		  yoke_generation_computed(g) == computed),
	   "%s: an empty prompt is refused: %s", r->name, yoke_error());
	yoke_error_clear();
	yoke_generation_free(g);
	yoke_model_free(m);
	tensors_free(&all);
}

// ---- export ----

static int logits_of(const char *path, float *to, size_t bytes)
{
	const int64_t dims[] = { 1, RECORDED_TOKENS };
	yoke_model *m = yoke_model_open(path, NULL);
	if (!m)
		return -1;
	yoke_scope *s = yoke_scope_begin("test");
	const int e = yoke_read(yoke_model_logits(m, yoke_from(yoke_i32, 2, dims, recorded_ids)),
				to, bytes);
	yoke_scope_end(s);
	yoke_model_free(m);
	return e;
}

// Does the exported model give the bits of the source's logits?
static void check_export(const struct recorded *r, const char *what, const char *from,
			 const char *to, int e)
{
	static float a[RECORDED_TOKENS * RECORDED_VOCAB], b[RECORDED_TOKENS * RECORDED_VOCAB];
	memset(a, -1, sizeof a);
	memset(b, -2, sizeof b);
	const bool same = e == 0 && logits_of(from, a, sizeof a) == 0 &&
			  logits_of(to, b, sizeof b) == 0 && !memcmp(a, b, sizeof a);
	ok(same, "%s: exported as %s: the same logits, bit by bit %s", r->name, what, yoke_error());
	yoke_error_clear();
}

// A folder with something that no export writes is not replaced, and no folder is left beside it.
static void test_replaced(void)
{
	static const char *const foreign[] = { "notes", "onnx/", ".git/", "config.json.bak" };
	const struct yk_export_options o = { .format = -1, .shard = 10000, .overwrite = true };
	char from[256], to[256], name[400], command[600];
	snprintf(from, sizeof from, "%s/%s", folder, recorded[0].name);
	snprintf(to, sizeof to, "%s/replaced", folder);
	ok(yk_export_hf(from, to, &o) == 0 && yk_export_hf(from, to, &o) == 0,
	   "an exported folder is replaced %s", yoke_error());
	for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
		snprintf(name, sizeof name, "%s/%s", to, foreign[i]);
		const bool made = strchr(foreign[i], '/') ? mkdir(name, 0777) == 0 :
							    yk_file_write(name, "mine", 4) == 0;
		const int e = yk_export_hf(from, to, &o);
		ok(made && e == YOKE_EINVAL && access(name, F_OK) == 0,
		   "a folder with %s is not replaced: %s", foreign[i], yoke_error());
		yoke_error_clear();
		remove(name);
	}
	snprintf(command, sizeof command, "ls %s | grep -q '^replaced[.]'", folder);
	ok(system(command) != 0 && yk_export_hf(from, to, &o) == 0,
	   "no folder is left beside it %s", yoke_error());
}

static void test_export(const struct recorded *r)
{
	const struct yk_export_options o = { .format = -1, .shard = 10000 },
				       replace = { .format = YK_GGUF_F32, .overwrite = true };
	struct tensors all = tensors_of(r);
	const char *from = write_folder(r->name, r->config, &all);
	char hf[300], gguf[300], back[300];
	snprintf(hf, sizeof hf, "%s/%s.hf", folder, r->name);
	snprintf(gguf, sizeof gguf, "%s/%s.exported.gguf", folder, r->name);
	snprintf(back, sizeof back, "%s/%s.back", folder, r->name);
	check_export(r, "a folder", from, hf, yk_export_hf(from, hf, &o));
	ok(yk_export_hf(from, hf, &o) == YOKE_EINVAL &&
		   yk_export_hf(from, from, &replace) == YOKE_EINVAL,
	   "%s: an existing folder and the model itself are not replaced: %s", r->name,
	   yoke_error());
	yoke_error_clear();
	const bool minimal = is_minimal(r);
	// by another number than GGUF files mean
	const bool scaled = !strncmp(r->name, "gemma", 5) && !minimal;
	// frequencies are rounded, or the window is not stated
	const bool rounded = strstr(r->name, "llama_llama3") || strstr(r->name, "_yarn") ||
			     strstr(r->name, "_newer") ||
			     (!strncmp(r->name, "mistral", 7) && !minimal) ||
			     strstr(r->name, "_window");
	const int e = yk_export_gguf(from, gguf, &replace);
	if (scaled) {
		ok(e == YOKE_EINVAL && access(gguf, F_OK) < 0, "%s: refused as GGUF: %s", r->name,
		   yoke_error());
		yoke_error_clear();
	} else if (rounded) {
		ok(e == 0, "%s: exported as GGUF %s", r->name, yoke_error());
	} else {
		check_export(r, "GGUF", from, gguf, e);
		check_export(r, "GGUF and back as a folder", from, back,
			     yk_export_hf(gguf, back, &o));
	}
	yoke_error_clear();
	tensors_free(&all);
}

// As ONNX: tests/onnx.py compares the logits.
static bool test_onnx(const struct recorded *r)
{
	const struct yk_onnx_export o = { .batch = 1, .context = RECORDED_TOKENS };
	const struct yoke_model_options options = { .size = sizeof options, .dtype = "f32" };
	const int64_t dims[] = { 1, RECORDED_TOKENS };
	char name[300], path[400], from[300];
	snprintf(from, sizeof from, "%s/%s", folder, r->name);
	snprintf(name, sizeof name, "%s/onnx/%s", folder, r->name);
	snprintf(path, sizeof path, "%s.onnx", name);
	yoke_model *m = yoke_model_open(from, &options);
	const bool good = m && yk_export_onnx(m->is.net, from, path, &o) == 0;
	ok(good, "%s: exported as ONNX %s", r->name, yoke_error());
	yoke_scope *s = yoke_scope_begin("test");
	yoke_tensor *ids = yoke_from(yoke_i32, 2, dims, recorded_ids),
		    *in = yoke_cast(ids, yoke_i64), *out = yoke_model_logits(m, ids);
	onnx_bytes(name, "tol", 0, "1e-4", 4);
	const bool written =
		good && onnx_tensors(name, "in", 1, &in) && onnx_tensors(name, "out", 1, &out);
	yoke_scope_end(s);
	yoke_model_free(m);
	yoke_error_clear();
	return written;
}

static void test_all_onnx(void)
{
	char path[300], here[4096];
	int written = 0;
	onnx_find();
	snprintf(path, sizeof path, "%s/onnx", folder);
	mkdir(path, 0777);
	for (int i = 0; i < MODELS; i++)
		written += !is_minimal(&recorded[i]) && test_onnx(&recorded[i]);
	if (!getcwd(here, sizeof here) || chdir(path) < 0)
		return;
	onnx_compare(written);
	ok(chdir(here) == 0, "back in the tests' folder");
}

// ---- training ----

// The sum of absolute differences between all parameters of two models; -1: they cannot be opened,
// or have other parameters.
static double distance(const char *a, const char *b)
{
	struct yk_trained m[2] = { 0 };
	double sum = yk_trained_open(a, NULL, &m[0]) == 0 && yk_trained_open(b, NULL, &m[1]) == 0 ?
			     0 :
			     -1;
	for (int i = 0; sum >= 0 && i < m[0].net->params.count; i++) {
		yoke_tensor *x = m[0].net->params.var[i], *y = m[1].net->params.var[i];
		const int64_t n = yoke_count(x);
		float *host = calloc((size_t)(2 * n), sizeof *host);
		if (n != yoke_count(y) || yoke_read(x, host, (size_t)n * 4) < 0 ||
		    yoke_read(y, host + n, (size_t)n * 4) < 0)
			sum = -1;
		for (int64_t k = 0; sum >= 0 && k < n; k++)
			sum += fabs((double)host[k] - (double)host[n + k]);
		free(host);
	}
	yk_trained_close(&m[0]);
	yk_trained_close(&m[1]);
	return sum;
}

// Training continues from a checkpoint with the bits of an uninterrupted run.
static void test_training(const struct recorded *r)
{
	struct tensors all = tensors_of(r);
	char init[256], once[256], twice[256], name[2][64];
	snprintf(init, sizeof init, "%s", write_folder(r->name, r->config, &all));
	snprintf(name[0], sizeof *name, "%s-once", r->name);
	snprintf(name[1], sizeof *name, "%s-twice", r->name);
	snprintf(once, sizeof once, "%s/%s", folder, name[0]);
	snprintf(twice, sizeof twice, "%s/%s", folder, name[1]);
	ok(train(init, name[0], 4, "accumulate=2") == 0, "%s: trains %s", r->name, yoke_error());
	yoke_error_clear();
	ok(distance(init, once) > 0, "%s: training changes the weights by %g", r->name,
	   distance(init, once));
	ok(train(init, name[1], 2, "accumulate=2") == 0 &&
		   train(init, name[1], 4, "accumulate=2") == 0,
	   "%s: resumes %s", r->name, yoke_error());
	yoke_error_clear();
	ok(distance(once, twice) == 0,
	   "%s: a resumed run has the weights of an uninterrupted one, got a difference of %g",
	   r->name, distance(once, twice));
	snprintf(name[0], sizeof *name, "%s-next", r->name);
	ok(train(once, name[0], 0, "dropout=0") == 0 && distance(once, init) > 0,
	   "%s: a trained model is itself a start %s", r->name, yoke_error());
	yoke_error_clear();
	snprintf(once, sizeof once, "%s/%s", folder, name[0]);
	ok(distance(twice, once) == 0, "%s: it starts with its weights, got a difference of %g",
	   r->name, distance(twice, once));
	tensors_free(&all);
}

static void test_training_refused(void)
{
	static const struct {
		const char *key;
		int code;
	} cases[] = { { "layers=2", YOKE_EINVAL },  { "tied=0", YOKE_EINVAL },
		      { "model=gpt", YOKE_EINVAL }, { "tokenizer=word", YOKE_EINVAL },
		      { "vocab=61", YOKE_EINVAL },  { "stages=2", YOKE_EINVAL },
		      { "zero=3", YOKE_EINVAL },    { "tensor=2", YOKE_EINVAL } };
	char path[256], init[256];
	snprintf(init, sizeof init, "%s/%s", folder, recorded[0].name);
	snprintf(path, sizeof path, "%s/none", folder);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const int e = train(init, "none", 1, cases[i].key);
		ok(e == cases[i].code && !strchr(yoke_error(), '\n'), "refused: init= with %s: %s",
		   cases[i].key, yoke_error());
		yoke_error_clear();
	}
	ok(train("nothing", "none", 1, "dropout=0") == YOKE_ENOENT,
	   "refused: init= that does not exist: %s", yoke_error());
	yoke_error_clear();
	ok(train(folder, "none", 1, "dropout=0") < 0,
	   "refused: init= of a folder without a model: %s", yoke_error());
	yoke_error_clear();
	struct stat st;
	ok(stat(path, &st) < 0, "a refused run leaves nothing");
}

// ---- what is refused ----

// The configuration of the first recorded model with a member replaced or added.
static char *changed(const char *key, json_t *value)
{
	json_t *c = json_loads(recorded[0].config, 0, NULL);
	json_object_set_new(c, key, value);
	char *text = json_dumps(c, 0);
	json_decref(c);
	return text;
}

static void refuse(const char *what, const char *path, const char *fragment)
{
	yoke_model *m = yoke_model_open(path, NULL);
	ok(!m && yoke_error_code() == YOKE_EFORMAT && strstr(yoke_error(), fragment) &&
		   !strchr(yoke_error(), '\n'),
	   "refused: %s: %s", what, yoke_error());
	yoke_error_clear();
	yoke_model_free(m);
}

static void test_configurations(void)
{
	const struct {
		const char *key;
		json_t *value;
		const char *fragment;
	} cases[] = {
		{ "model_type", json_string("mamba"), "mamba" },
		{ "model_type", json_integer(1), "model_type" },
		{ "hidden_act", json_string("relu"), "relu" },
		{ "quantization_config", json_object(), "quantization_config" },
		{ "rope_scaling", json_pack("{s:s}", "rope_type", "spiral"), "spiral" },
		{ "rope_scaling", json_pack("{s:s}", "rope_type", "linear"), "factor" },
		{ "rope_scaling", json_integer(3), "rope_scaling" },
		{ "rope_theta", json_real(0), "base" },
		{ "partial_rotary_factor", json_real(0.5), "partial_rotary_factor" },
		{ "hidden_size", json_integer(0), "hidden_size" },
		{ "hidden_size", json_string("32"), "hidden_size" },
		{ "num_attention_heads", json_integer(3), "heads" },
		{ "num_key_value_heads", json_integer(4), "k_proj" },
		{ "num_hidden_layers", json_integer(1), "layers.1" },
		{ "num_hidden_layers", json_integer(1000), "weights" },
		{ "intermediate_size", json_integer(1 << 24), "weights" },
		{ "vocab_size", json_integer(60), "embed_tokens" },
		{ "attention_bias", json_true(), "q_proj.bias" },
		{ "tie_word_embeddings", json_integer(1), "tie_word_embeddings" },
		{ "rms_norm_eps", json_real(-1), "norm_eps" },
	};
	struct tensors all = tensors_of(&recorded[0]);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *config = changed(cases[i].key, cases[i].value);
		refuse(cases[i].key, write_folder("refused", config, &all), cases[i].fragment);
		free(config);
	}
	refuse("config.json is no JSON", write_folder("refused", "{", &all), "config.json");
	all.n--;
	refuse("a tensor is missing", write_folder("refused", recorded[0].config, &all), "lm_head");
	all.n++;
	tensors_free(&all);
}

// A vector with blocks, whose elements cannot be read one at a time; heads of one column.
static void test_gguf_vectors(void)
{
	struct gguf_file f = { 0 };
	char path[64];
	const unsigned char blocks[4096] = { 0 };
	const char *matrices[] = { "attn_q",   "attn_k", "attn_v",  "attn_output",
				   "ffn_gate", "ffn_up", "ffn_down" };
	const char *norms[] = { "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight",
				"output_norm.weight" };
	const int64_t square[] = { 32, 32 };
	snprintf(path, sizeof path, "%s/vector.gguf", folder);
	gguf_text(&f, "general.architecture", "llama");
	gguf_u32(&f, "llama.block_count", 1);
	gguf_u32(&f, "llama.embedding_length", 32);
	gguf_u32(&f, "llama.context_length", 8);
	gguf_u32(&f, "llama.attention.head_count", 4);
	gguf_u32(&f, "llama.feed_forward_length", 32);
	gguf_tensor(&f, "token_embd.weight", 2, square, YK_GGUF_F32, blocks, 4096);
	for (int i = 0; i < 7; i++) {
		char name[64];
		snprintf(name, sizeof name, "blk.0.%s.weight", matrices[i]);
		gguf_tensor(&f, name, 2, square, YK_GGUF_F32, blocks, 4096);
		snprintf(name, sizeof name, "blk.0.%s.bias", matrices[i]);
		gguf_tensor(&f, name, 1, square, i == 0 ? YK_GGUF_Q4_0 : YK_GGUF_F32, blocks,
			    i == 0 ? 18 : 128);
	}
	for (int i = 0; i < 3; i++)
		gguf_tensor(&f, norms[i], 1, square, YK_GGUF_F32, blocks, 128);
	gguf_save(&f, path);
	yoke_model *m = yoke_model_open(path, NULL);
	ok(!m && yoke_error_code() == YOKE_EDTYPE && strstr(yoke_error(), "attn_q.bias"),
	   "refused: a bias in Q4_0: %s", yoke_error());
	yoke_error_clear();
	yoke_model_free(m);
}

int main(void)
{
	tap_folder();
	mkdir(folder, 0777);
	for (int i = 0; i < MODELS; i++)
		test_family(&recorded[i]);
	for (int i = 0; i < MODELS; i++)
		if (!is_minimal(&recorded[i]))
			test_packed(&recorded[i]);
	test_generation(&recorded[0]);
	for (int i = 0; i < MODELS; i++)
		if (!is_minimal(&recorded[i]))
			test_again(&recorded[i]);
	for (int i = 0; i < MODELS; i++)
		test_export(&recorded[i]);
	test_replaced();
	test_all_onnx();
	write_ids();
	test_training(&recorded[0]);
	for (int i = 1; i < MODELS; i++)
		if (!strcmp(recorded[i].name, "gpt2") || !strcmp(recorded[i].name, "gemma2"))
			test_training(&recorded[i]);
	test_training_refused();
	test_configurations();
	test_gguf_vectors();
	return done();
}
