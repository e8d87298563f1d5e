// SPDX-License-Identifier: Apache-2.0
// Files of low-rank adapters: those that PEFT saved give the logits that it computes; what is
// written is read back; merged models have the same logits; files of other kinds are refused by
// name.
#include "config.h"

#include <math.h>
#include <unistd.h>

#include <jansson.h>

#include "base/error.h"
#include "export/export.h"
#include "models/adapter.h"
#include "models/pretrained.h"
#include "tap.h"
#include "../tests/models/recorded_files.h"
#include "../tests/models/recorded_adapters.h"
#include "train/trained.h"

enum {
	MODELS = sizeof recorded / sizeof *recorded,
	ADAPTERS = sizeof recorded_adapters / sizeof *recorded_adapters,
	LOGITS = RECORDED_TOKENS * RECORDED_VOCAB
};

static const struct recorded *named(const char *name)
{
	int i = 0;
	while (strcmp(recorded[i].name, name))
		i++;
	return &recorded[i];
}

static void in_folder(char to[300], const char *name)
{
	snprintf(to, 300, "%s/%s", folder, name);
}

static void write_model(const char *name, char to[300])
{
	const struct recorded *r = named(name);
	struct tensors all = tensors_of(r);
	snprintf(to, 300, "%s", write_folder(r->name, r->config, &all));
	tensors_free(&all);
}

static void write_adapter(const char *name, const char *config, const struct tensors *all)
{
	char path[300], file[400];
	uint64_t bytes, hash;
	in_folder(path, name);
	mkdir(path, 0777);
	snprintf(file, sizeof file, "%s/adapter_config.json", path);
	yk_file_write(file, config, strlen(config));
	snprintf(file, sizeof file, "%s/adapter_model.safetensors", path);
	yk_safetensors_write(file, all->n, all->t, &bytes, &hash);
}

// The logits of a model with adapters; NULL: without.
static int logits_of(const char *path, const char *adapter, float *to)
{
	struct yk_trained t = { 0 };
	int e = yk_trained_open(path, NULL, &t);
	for (int i = 0; i < LOGITS; i++)
		to[i] = NAN;
	if (e == 0 && adapter)
		e = yk_trained_attach(&t, path, adapter);
	if (e == 0) // of a run: beyond the windows of its training
		yk_trained_widen(&t);
	yoke_scope *s = yoke_scope_begin("logits");
	if (e == 0) {
		yoke_tensor *x = yk_network_forward(
			t.net,
			yoke_from(yoke_i32, 2, (int64_t[]){ 1, RECORDED_TOKENS }, recorded_ids), 0);
		e = yoke_read(t.net->model->logits(t.net, x), to, LOGITS * sizeof *to);
	}
	yoke_scope_end(s);
	yk_trained_close(&t);
	return e;
}

static double distance(const float *a, const float *b, int n)
{
	double worst = 0;
	for (int i = 0; i < n; i++) {
		const double d = fabs((double)a[i] - (double)b[i]);
		worst = d <= worst ? worst : d; // also for NaN
	}
	return worst;
}

static double largest(const float *a, int n)
{
	double max = 0;
	for (int i = 0; i < n; i++)
		max = fmax(max, fabs((double)a[i]));
	return max;
}

static double recorded_distance(const float *logits, const float *want)
{
	double worst = 0;
	for (int i = 0; i < RECORDED_SHOWN; i++)
		worst = fmax(worst, distance(logits + recorded_shown[i] * RECORDED_VOCAB,
					     want + i * RECORDED_VOCAB, RECORDED_VOCAB));
	return worst;
}

// ---- what PEFT saved ----

static void test_recorded(const struct recorded_adapter *r)
{
	static float plain[LOGITS], got[LOGITS], again[LOGITS];
	char model[300], adapter[300], written[300], name[80];
	struct tensors all = tensors_listed(r->tensors, false);
	write_model(r->model, model);
	snprintf(name, sizeof name, "%s-adapter", r->model);
	in_folder(adapter, name);
	write_adapter(name, r->config, &all);
	tensors_free(&all);
	logits_of(model, NULL, plain);
	int e = logits_of(model, adapter, got);
	const double max = largest(got, LOGITS), d = recorded_distance(got, r->logits),
		     changed = distance(got, plain, LOGITS);
	ok(e == 0 && d < 1e-4 * max && changed > 0.05 * max,
	   "%s: logits with PEFT's adapter, got a difference of %g of %g (without it %g) %s",
	   r->model, d, max, changed, e < 0 ? yoke_error() : "");
	yoke_error_clear();
	// written anew, and read
	snprintf(name, sizeof name, "%s-written", r->model);
	in_folder(written, name);
	e = yk_export_peft(model, written, &(struct yk_export_options){ .adapter = adapter });
	if (e == 0)
		e = logits_of(model, written, again);
	ok(e == 0 && distance(got, again, LOGITS) < 1e-5 * max,
	   "%s: written and read, got a difference of %g %s", r->model,
	   distance(got, again, LOGITS), e < 0 ? yoke_error() : "");
	yoke_error_clear();
	// merged
	const struct yk_export_options o = {
		.format = -1, .shard = 1 << 20, .adapter = adapter, .merge = true
	};
	snprintf(name, sizeof name, "%s-merged", r->model);
	in_folder(written, name);
	e = yk_export_hf(model, written, &o);
	if (e == 0)
		e = logits_of(written, NULL, again);
	ok(e == 0 && distance(got, again, LOGITS) < 1e-4 * max,
	   "%s: merged as a folder, got a difference of %g %s", r->model,
	   distance(got, again, LOGITS), e < 0 ? yoke_error() : "");
	yoke_error_clear();
	if (!strncmp(r->model, "gemma", 5)) // of sizes that GGUF files do not express
		return;
	snprintf(name, sizeof name, "%s-merged.gguf", r->model);
	in_folder(written, name);
	e = yk_export_gguf(model, written, &o);
	if (e == 0)
		e = logits_of(written, NULL, again);
	const double limit = strcmp(r->model, "llama_llama3") ? 1e-4 : 1e-2; // rounded frequencies
	ok(e == 0 && distance(got, again, LOGITS) < limit * max,
	   "%s: merged as GGUF, got a difference of %g %s", r->model, distance(got, again, LOGITS),
	   e < 0 ? yoke_error() : "");
	yoke_error_clear();
}

static bool same_file(const char *a, const char *b, const char *name)
{
	char path[400], *text[2] = { NULL };
	size_t bytes[2] = { 0 };
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/%s", i ? b : a, name);
		yk_file_read(path, 1 << 24, &text[i], &bytes[i]);
	}
	const bool same =
		text[0] && text[1] && bytes[0] == bytes[1] && !memcmp(text[0], text[1], bytes[0]);
	free(text[0]);
	free(text[1]);
	return same;
}

// The largest rank of an adapter's configuration.
static int64_t rank_of(const char *adapter)
{
	char path[400];
	const char *key;
	json_t *value;
	snprintf(path, sizeof path, "%s/adapter_config.json", adapter);
	json_t *c = json_load_file(path, 0, NULL);
	json_int_t most = json_integer_value(json_object_get(c, "r"));
	json_object_foreach (json_object_get(c, "rank_pattern"), key, value)
		most = json_integer_value(value) > most ? json_integer_value(value) : most;
	json_decref(c);
	return most;
}

// Reading and writing adapters repeatedly changes neither ranks nor files.
static void test_repeated(const char *name, const char *from, const char *model, int64_t rank)
{
	char path[2][300], next[80];
	for (int i = 0; i < 2; i++) {
		snprintf(next, sizeof next, "%s-again%d", name, i);
		in_folder(path[i], next);
		const int e = yk_export_peft(
			model, path[i],
			&(struct yk_export_options){ .adapter = i ? path[0] : from });
		ok(e == 0 && rank_of(path[i]) == rank,
		   "%s: written %d times, has rank %lld, wanted %lld %s", name, i + 1,
		   (long long)rank_of(path[i]), (long long)rank, e < 0 ? yoke_error() : "");
		yoke_error_clear();
	}
	ok(same_file(path[0], path[1], "adapter_model.safetensors") &&
		   same_file(path[0], path[1], "adapter_config.json"),
	   "%s: the second time, the files are the same", name);
}

// Do A and B of two networks have the same values?
static bool same_values(const struct yk_network *n, int i, const struct yk_network *m, int k)
{
	bool same = true;
	for (int side = 0; side < 2 && same; side++) {
		yoke_tensor *t[] = { n->params.var[i + side], m->params.var[k + side] };
		const size_t bytes = (size_t)yoke_bytes(t[0]);
		char *x[] = { malloc(bytes), malloc(bytes) };
		same = bytes == (size_t)yoke_bytes(t[1]) && yoke_read(t[0], x[0], bytes) == 0 &&
		       yoke_read(t[1], x[1], bytes) == 0 && !memcmp(x[0], x[1], bytes);
		free(x[0]);
		free(x[1]);
	}
	return same;
}

// Layers that a family stores as one matrix: PEFT's adapters have A in common, those of runs do
// not.
static void test_fused(void)
{
	static const char *const cases[][4] = {
		{ "phi3", "fused-all", "lora=2 lora_targets=all lora_alpha=0.7", "6" },
		{ "phi3", "fused-two", "lora=2 lora_targets=q,v", "4" },
		{ "phi3", "fused-one", "lora=3 lora_targets=v", "3" },
		{ "gpt2", "fused-gpt2", "lora=2 lora_targets=q,k,v,o", "6" },
	};
	char model[300], run[300], written[300], keys[400], next[80];
	for (int i = 0; i < ADAPTERS; i++) {
		char adapter[300];
		write_model(recorded_adapters[i].model, model);
		snprintf(next, sizeof next, "%s-adapter", recorded_adapters[i].model);
		in_folder(adapter, next);
		test_repeated(recorded_adapters[i].model, adapter, model, rank_of(adapter));
	}
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		write_model(cases[i][0], model);
		in_folder(run, cases[i][1]);
		int e = train(model, cases[i][1], 3, cases[i][2]);
		ok(e == 0, "%s: trains with %s %s", cases[i][0], cases[i][2], yoke_error());
		snprintf(next, sizeof next, "%s-peft", cases[i][1]);
		in_folder(written, next);
		e = yk_export_peft(run, written, &(struct yk_export_options){ 0 });
		ok(e == 0 && rank_of(written) == atoi(cases[i][3]),
		   "%s: the module has rank %lld, wanted %s %s", cases[i][1],
		   (long long)rank_of(written), cases[i][3], yoke_error());
		yoke_error_clear();
		test_repeated(cases[i][1], written, model, atoi(cases[i][3]));
		// a run that continues from the files has the layers, ranks and values of the first
		// one
		snprintf(next, sizeof next, "%s-next", cases[i][1]);
		snprintf(keys, sizeof keys, "adapter=%.300s", written);
		e = train(model, next, 0, keys);
		struct yk_trained t[2] = { 0 };
		in_folder(written, next);
		if (e == 0)
			e = yk_trained_open(run, NULL, &t[0]);
		if (e == 0)
			e = yk_trained_open(written, NULL, &t[1]);
		bool same = e == 0 && t[0].net->adapters == t[1].net->adapters;
		for (size_t k = 0; same && k < t[0].net->adapters; k++) {
			const struct yk_lora_layer *a = &t[0].net->adapter[k].as, *b;
			same = false;
			for (size_t j = 0; j < t[1].net->adapters; j++) {
				b = &t[1].net->adapter[j].as;
				same |= !strcmp(a->name, b->name) && a->rank == b->rank &&
					fabs(a->alpha - b->alpha) < 1e-14 &&
					same_values(t[0].net, t[0].net->adapter[k].a, t[1].net,
						    t[1].net->adapter[j].a);
			}
		}
		ok(same, "%s: read back, they are the adapters of the run %s", cases[i][1],
		   yoke_error());
		yoke_error_clear();
		yk_trained_close(&t[0]);
		yk_trained_close(&t[1]);
	}
}

// ---- runs ----

static void test_run(void)
{
	static float got[LOGITS], again[LOGITS];
	char model[300], other[300], run[300], next[300], path[300];
	write_model("llama", model);
	write_model("llama_linear", other);
	in_folder(run, "run");
	in_folder(next, "next");
	int e = train(model, "run", 3, "lora=4 lora_targets=all");
	ok(e == 0 && logits_of(run, NULL, got) == 0, "a run with adapters opens as a model %s",
	   yoke_error());
	yoke_error_clear();
	const double max = largest(got, LOGITS);
	e = logits_of(model, run, again);
	ok(e == 0 && distance(got, again, LOGITS) == 0,
	   "adapter=RUN on its model gives the same logits %s", e < 0 ? yoke_error() : "");
	in_folder(path, "exported");
	e = yk_export_peft(run, path, &(struct yk_export_options){ 0 });
	if (e == 0)
		e = logits_of(model, path, again);
	ok(e == 0 && distance(got, again, LOGITS) == 0, "so does its export as PEFT's folder %s",
	   e < 0 ? yoke_error() : "");
	yoke_error_clear();
	char moved[300], from[320], to[320];
	in_folder(moved, "files");
	mkdir(moved, 0777);
	const char *files[] = { "adapter_config.json", "adapter_model.safetensors" };
	for (int i = 0; i < 2; i++) {
		snprintf(from, sizeof from, "%.290s/%s", run, files[i]);
		snprintf(to, sizeof to, "%.290s/%s", moved, files[i]);
		e = link(from, to);
	}
	if (e == 0)
		e = logits_of(model, moved, again);
	ok(e == 0 && distance(got, again, LOGITS) == 0,
	   "so do the files of PEFT that the run wrote %s", e < 0 ? yoke_error() : "");
	yoke_error_clear();
	e = logits_of(other, run, again);
	ok(e == YOKE_EINVAL && strstr(yoke_error(), "rope"),
	   "refused: a run on a model with the same weights and other frequencies: %s",
	   yoke_error());
	yoke_error_clear();
	write_model("mistral", other);
	e = logits_of(other, run, again);
	ok(e == YOKE_EINVAL && !strchr(yoke_error(), '\n'), "refused: a run on another model: %s",
	   yoke_error());
	yoke_error_clear();
	e = logits_of(run, path, again);
	ok(e == YOKE_EINVAL, "refused: an adapter for a run with adapters: %s", yoke_error());
	yoke_error_clear();
	const struct yk_export_options o = { .format = -1, .shard = 1 << 20 },
				       merge = { .format = -1, .shard = 1 << 20, .merge = true };
	in_folder(path, "merged");
	e = yk_export_hf(run, path, &o);
	ok(e == YOKE_EINVAL && access(path, F_OK) < 0,
	   "refused: export of a run with adapters without merge: %s", yoke_error());
	yoke_error_clear();
	e = yk_export_hf(model, path, &merge);
	ok(e == YOKE_EINVAL && access(path, F_OK) < 0, "refused: merge without adapters: %s",
	   yoke_error());
	yoke_error_clear();
	e = yk_export_hf(run, path, &merge);
	if (e == 0)
		e = logits_of(path, NULL, again);
	ok(e == 0 && distance(got, again, LOGITS) < 1e-4 * max,
	   "the merged run has the same logits, got a difference of %g of %g %s",
	   distance(got, again, LOGITS), max, e < 0 ? yoke_error() : "");
	yoke_error_clear();
	// training continues from an adapter
	char keys[400];
	in_folder(path, "exported");
	snprintf(keys, sizeof keys, "adapter=%.300s", path);
	e = train(model, "next", 0, keys);
	if (e == 0)
		e = logits_of(next, NULL, again);
	ok(e == 0 && distance(got, again, LOGITS) == 0,
	   "training starts from an adapter's values %s", e < 0 ? yoke_error() : "");
	yoke_error_clear();
	e = train(model, "next", 2, keys);
	if (e == 0)
		e = logits_of(next, NULL, again);
	ok(e == 0 && distance(got, again, LOGITS) > 0, "and changes them, after resuming %s",
	   e < 0 ? yoke_error() : "");
	yoke_error_clear();
	snprintf(keys, sizeof keys, "adapter=%.300s lora=4", path);
	e = train(model, "none", 1, keys);
	ok(e == YOKE_EINVAL && !strchr(yoke_error(), '\n'), "refused: lora with adapter: %s",
	   yoke_error());
	yoke_error_clear();
	snprintf(keys, sizeof keys, "adapter=%.300s", path);
	e = train("", "none", 1, keys);
	ok(e == YOKE_EINVAL && !strchr(yoke_error(), '\n'), "refused: adapter without init: %s",
	   yoke_error());
	yoke_error_clear();
}

// ---- what is refused ----

static void refuse(const char *what, const char *model, const char *adapter, const char *fragment)
{
	static float got[LOGITS];
	char path[300];
	in_folder(path, adapter);
	const int e = logits_of(model, path, got);
	ok(e < 0 && e != YOKE_ENOMEM && strstr(yoke_error(), fragment) &&
		   !strchr(yoke_error(), '\n'),
	   "refused: %s: %s", what, yoke_error());
	yoke_error_clear();
}

static void test_configurations(const struct recorded_adapter *r, const char *model)
{
	const struct {
		const char *key;
		json_t *value;
		const char *fragment;
	} cases[] = {
		{ "peft_type", json_string("IA3"), "peft_type" },
		{ "peft_type", json_null(), "peft_type" },
		{ "task_type", json_string("SEQ_CLS"), "task_type" },
		{ "bias", json_string("all"), "bias" },
		{ "bias", json_string("lora_only"), "bias" },
		{ "use_dora", json_true(), "use_dora" },
		{ "modules_to_save", json_pack("[s]", "lm_head"), "modules_to_save" },
		{ "fan_in_fan_out", json_true(), "fan_in_fan_out" },
		{ "lora_bias", json_true(), "lora_bias" },
		{ "use_qalora", json_true(), "use_qalora" },
		{ "layer_replication", json_pack("[[ii]]", 0, 1), "layer_replication" },
		{ "trainable_token_indices", json_pack("[i]", 1), "trainable_token_indices" },
		{ "target_parameters", json_pack("[s]", "x"), "target_parameters" },
		{ "alora_invocation_tokens", json_pack("[i]", 1), "alora_invocation_tokens" },
		{ "init_lora_weights", json_string("pissa"), "init_lora_weights" },
		{ "some_new_setting", json_string("on"), "some_new_setting" },
		{ "r", json_integer(0), "r" },
		{ "r", json_integer(-4), "r" },
		{ "r", json_real(4.5), "r" },
		{ "r", json_string("4"), "r" },
		{ "r", json_integer(5), "lora_A" },
		{ "r", json_integer(INT64_MAX), "r" },
		{ "lora_alpha", json_null(), "lora_alpha" },
		{ "lora_alpha", json_string("16"), "lora_alpha" },
		{ "lora_alpha", json_real(1e300), "lora_alpha" },
		{ "target_modules", json_pack("[s]", "k_proj"), "target_modules" },
		{ "target_modules", json_pack("[i]", 3), "target_modules" },
		{ "target_modules", json_integer(3), "target_modules" },
		{ "rank_pattern", json_pack("{s:i}", "q_.*", 2), "rank_pattern" },
		{ "rank_pattern", json_pack("{s:i}", "q_proj", 0), "rank_pattern" },
		{ "rank_pattern", json_pack("{s:i}", "q_proj", 2), "lora_A" },
		{ "rank_pattern", json_pack("[s]", "q_proj"), "rank_pattern" },
		{ "rank_pattern", json_pack("{s:f}", "q_proj", 4.5), "rank_pattern" },
		{ "alpha_pattern", json_pack("{s:s}", "q_proj", "2"), "alpha_pattern" },
		{ "lora_dropout", json_real(1), "lora_dropout" },
		{ "lora_dropout", json_real(-0.1), "lora_dropout" },
		{ "lora_dropout", json_string("0.1"), "lora_dropout" },
	};
	struct tensors all = tensors_listed(r->tensors, false);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *c = json_loads(r->config, 0, NULL);
		json_object_set_new(c, cases[i].key, cases[i].value);
		char *text = json_dumps(c, 0);
		write_adapter("refused", text, &all);
		refuse(cases[i].key, model, "refused", cases[i].fragment);
		free(text);
		json_decref(c);
	}
	write_adapter("refused", "{", &all);
	refuse("adapter_config.json is no JSON", model, "refused", "adapter_config.json");
	write_adapter("refused", "[]", &all);
	refuse("adapter_config.json is a list", model, "refused", "adapter_config.json");
	tensors_free(&all);
}

static void test_tensors(const struct recorded_adapter *r, const char *model)
{
	struct tensors all = tensors_listed(r->tensors, false);
	const char *name = all.t[0].name;
	char path[400], text[4096];
	float values[64] = { 0 };
	free(all.t[--all.n].data);
	write_adapter("tensors", r->config, &all);
	refuse("a tensor is missing", model, "tensors", "only one of");
	all.t[all.n++] = (struct yk_host_tensor){
		"base_model.model.lm_head.weight", yoke_f32, 2, { 8, 8 }, values
	};
	write_adapter("tensors", r->config, &all);
	refuse("a tensor is missing and another one is there", model, "tensors", "lora");
	all.n--;
	tensors_free(&all);
	static const char *const foreign[] = {
		"base_model.model.model.layers.9.self_attn.q_proj.lora_A.weight",
		"base_model.model.model.embed_tokens.lora_embedding_A",
		"base_model.model.model.layers.0.self_attn.q_proj.lora_magnitude_vector",
		"model.layers.0.self_attn.q_proj.lora_A.weight",
		"base_model.model.lm_head.modules_to_save.weight"
	};
	for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
		all = tensors_listed(r->tensors, false);
		all.t[all.n++] =
			(struct yk_host_tensor){ foreign[i], yoke_f32, 2, { 8, 8 }, values };
		write_adapter("tensors", r->config, &all);
		refuse(foreign[i], model, "tensors", "adapter of a matrix");
		all.n--;
		tensors_free(&all);
	}
	all = tensors_listed(r->tensors, false);
	name = all.t[0].name;
	const struct yk_host_tensor was = all.t[0], bad[] = {
		{ name, yoke_i32, 2, { 4, 32 }, was.data },
		{ name, yoke_f32, 1, { 128 }, was.data },
		{ name, yoke_f32, 2, { 32, 4 }, was.data },
		{ name, yoke_f32, 2, { 4, 16 }, was.data },
		{ name, yoke_f32, 3, { 4, 32, 1 }, was.data },
		{ name, yoke_f32, 2, { 0, 32 }, was.data },
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		all.t[0] = bad[i];
		write_adapter("tensors", r->config, &all);
		refuse("a tensor of another shape or dtype", model, "tensors", "lora_A");
	}
	all.t[0] = was;
	write_adapter("tensors", r->config, &all);
	snprintf(path, sizeof path, "%s/tensors/adapter_model.safetensors", folder);
	for (int bytes = 0; bytes < 4000; bytes += 499) {
		truncate(path, bytes);
		refuse("a truncated file", model, "tensors", "adapter_model");
		write_adapter("tensors", r->config, &all);
	}
	unlink(path);
	refuse("no tensors", model, "tensors", "adapter_model");
	memset(text, 'x', sizeof text);
	yk_file_write(path, text, sizeof text);
	refuse("tensors that are no safetensors", model, "tensors", "adapter_model");
	tensors_free(&all);
}

// A module that holds several layers: its tensors have the rows of all, and any values in them.
static void test_fused_tensors(const struct recorded_adapter *r, const char *model)
{
	struct tensors all = tensors_listed(r->tensors, false);
	static float got[LOGITS];
	char path[300];
	int b = 0;
	while (b < all.n && !strstr(all.t[b].name, "qkv_proj.lora_B"))
		b++;
	const struct yk_host_tensor was = all.t[b];
	const int64_t rows = was.dims[0], rank = was.dims[1];
	const struct yk_host_tensor bad[] = {
		{ was.name, yoke_f32, 2, { rows - 1, rank }, was.data },
		{ was.name, yoke_f32, 2, { rows / 2, rank }, was.data },
		{ was.name, yoke_f32, 2, { rows, rank - 1 }, was.data },
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		all.t[b] = bad[i];
		write_adapter("fused", r->config, &all);
		refuse("a module of several layers with another shape", model, "fused", "lora_B");
	}
	all.t[b] = was;
	in_folder(path, "fused");
	float *v = was.data;
	for (int k = 0; k < 3; k++) { // zeros; zeros but for two layers in one column; NaN
		memset(v, 0, (size_t)(rows * rank) * sizeof *v);
		v[0] = v[(rows - 1) * rank] = k == 1 ? 1 : 0;
		v[1] = k == 2 ? NAN : 0;
		write_adapter("fused", r->config, &all);
		const int e = logits_of(model, path, got);
		ok(e == 0, "opens values of kind %d of a module of several layers %s", k,
		   yoke_error());
		yoke_error_clear();
	}
	tensors_free(&all);
}

int main(void)
{
	char model[300];
	tap_folder();
	mkdir(folder, 0777);
	write_ids();
	for (int i = 0; i < ADAPTERS; i++)
		test_recorded(&recorded_adapters[i]);
	test_fused();
	test_run();
	write_model("llama", model);
	test_configurations(&recorded_adapters[0], model);
	test_tensors(&recorded_adapters[0], model);
	for (int i = 0; i < ADAPTERS; i++) {
		if (strcmp(recorded_adapters[i].model, "phi3"))
			continue;
		write_model("phi3", model);
		test_fused_tensors(&recorded_adapters[i], model);
	}
	write_model("llama", model);
	refuse("no folder", model, "nothing", "nothing");
	refuse("a folder without adapters", model, "llama", "adapter_config");
	write_model("gpt2", model);
	refuse("an adapter of another family", model, "llama-adapter", "adapter of a matrix");
	return done();
}
