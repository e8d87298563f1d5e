// SPDX-License-Identifier: Apache-2.0
// Fine-tuning a model through yoke-model.h: yoke_fit on its adapters, for each family, has the
// adapters of `yoke train` bit for bit; they are saved, opened and merged with the same logits;
// what it refuses.
#include "config.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"
#include "../tests/models/recorded_files.h"
#include "yoke-fit.h"
#include "yoke-model.h"

enum { MODELS = sizeof recorded / sizeof *recorded, STEPS = 3, IDS = 1000, T = 5 };

static int32_t *ids_of_text(void)
{
	static int32_t ids[IDS];
	for (int i = 0; i < IDS; i++)
		ids[i] = (i * i + 3 * i) % RECORDED_VOCAB;
	return ids;
}

struct run {
	yoke_model *m;
	yoke_loader *loader;
};

static int next(void *arg, int64_t part, int max, yoke_tensor **in)
{
	struct run *r = arg;
	(void)part;
	return yoke_loader_next(r->loader, max < 1 ? max : 1, in, NULL) > 0 ? 1 : YOKE_EIO;
}

static yoke_tensor *loss(void *arg, yoke_module *net, int n, yoke_tensor *const *in)
{
	struct run *r = arg;
	(void)n;
	yoke_model_mode(r->m, yoke_module_training(net));
	return yoke_model_loss(r->m, in[0]);
}

// The same run as train() of recorded_files.h.
static int fit(yoke_model *m, yoke_module *net)
{
	const struct yoke_text_options o = {
		.size = sizeof o, .context = 8, .ids = ids_of_text(), .count = 900
	};
	yoke_dataset *set = yoke_model_dataset(m, NULL, &o);
	struct run r = { m, set ? yoke_loader_new(set, "batch=2 seed=1") : NULL };
	const struct yoke_fit f = {
		.size = sizeof f,
		.net = net,
		.steps = STEPS,
		.next = next,
		.loss = loss,
		.arg = &r,
		.optim = yoke_optim_new("adamw", "lr=0.01 beta2=0.99 weight_decay=0.1 clip=1"),
	};
	const int e = r.loader ? yoke_fit(&f, NULL) : yoke_error_code();
	yoke_loader_free(r.loader);
	yoke_dataset_free(set);
	yoke_optim_free(f.optim);
	return e;
}

static bool logits(yoke_model *m, float to[T * RECORDED_VOCAB])
{
	const int32_t ids[T] = { 3, 1, 4, 1, 5 };
	yoke_scope *s = yoke_scope_begin("logits");
	const int e =
		yoke_read(yoke_model_logits(m, yoke_from(yoke_i32, 2, (int64_t[]){ 1, T }, ids)),
			  to, T * RECORDED_VOCAB * sizeof *to);
	return yoke_scope_end(s) == 0 && e == 0;
}

static double error_of(const float *a, const float *b)
{
	double most = 0, scale = 0;
	for (int i = 0; i < T * RECORDED_VOCAB; i++) {
		most = fmax(most, fabs((double)a[i] - (double)b[i]));
		scale = fmax(scale, fabs((double)b[i]));
	}
	return most / scale;
}

static bool same_files(const char *a, const char *b)
{
	char path[2][400], *text[2] = { NULL, NULL };
	size_t n[2] = { 0, 1 };
	snprintf(path[0], sizeof *path, "%s/adapter_model.safetensors", a);
	snprintf(path[1], sizeof *path, "%s/adapter_model.safetensors", b);
	for (int i = 0; i < 2; i++)
		yk_file_read(path[i], 1 << 20, &text[i], &n[i]);
	const bool same = text[0] && text[1] && n[0] == n[1] && !memcmp(text[0], text[1], n[0]);
	free(text[0]);
	free(text[1]);
	return same;
}

static const struct yoke_lora_options lora = {
	.size = sizeof lora, .rank = 3, .alpha = 6, .targets = "all", .seed = 1
};

// The context of the run decides which factors of longrope are used.
static yoke_model *open_for_training(const char *path, const char *dtype)
{
	const struct yoke_model_options o = { .size = sizeof o, .context = 8, .dtype = dtype };
	return yoke_model_open(path, &o);
}

static void test_family(const struct recorded *r)
{
	struct tensors all = tensors_of(r);
	char path[300], run[300], adapter[300];
	float before[T * RECORDED_VOCAB], after[T * RECORDED_VOCAB], again[T * RECORDED_VOCAB];
	struct yoke_model_info info = { .size = sizeof info };
	snprintf(path, sizeof path, "%s", write_folder(r->name, r->config, &all));
	tensors_free(&all);
	snprintf(run, sizeof run, "%s/%s-run", folder, r->name);
	snprintf(adapter, sizeof adapter, "%s/%s-adapter", folder, r->name);
	yoke_model *m = open_for_training(path, NULL);
	logits(m, before);
	const int weights = yoke_model_parameters(m, 0, NULL, NULL);
	int e = yoke_model_adapt(m, &lora);
	ok(e == 0 && logits(m, after) && !memcmp(before, after, sizeof before),
	   "%s: new adapters change nothing: %s", r->name, yoke_error());
	yoke_module *net = yoke_model_module(m);
	const int n = net ? yoke_module_parameters(net, 0, NULL, NULL) : -1;
	yoke_model_info(m, &info);
	ok(n > 0 && n % 2 == 0 && yoke_model_parameters(m, 0, NULL, NULL) == weights &&
		   info.parameters > 0,
	   "%s: %d matrices are trained, and the model still has its %d weights", r->name, n,
	   weights);
	e = fit(m, net);
	ok(e == 0 && logits(m, after) && memcmp(before, after, sizeof before),
	   "%s: fit changes the logits: %s", r->name, yoke_error());
	char name[64];
	snprintf(name, sizeof name, "%s-run", r->name);
	e = train(path, name, STEPS,
		  "lora=3 lora_alpha=6 lora_targets=all valid=0 limit=900 seed=1");
	const int saved = yoke_model_save_adapter(m, adapter, 0);
	ok(e == 0 && saved == 0 && same_files(run, adapter),
	   "%s: the adapters have the bits of those of train: %d %d %s", r->name, e, saved,
	   yoke_error());
	yoke_error_clear();
	yoke_module_free(net);

	yoke_model *other = open_for_training(path, "f32");
	e = yoke_model_load_adapter(other, adapter);
	yoke_model *plain = open_for_training(path, NULL);
	if (e == 0)
		e = yoke_model_load_adapter(plain, run);
	ok(e == 0 && logits(plain, again) && !memcmp(after, again, sizeof after),
	   "%s: a loaded adapter has the same logits: %s", r->name, yoke_error());
	e = yoke_model_merge_adapter(other);
	ok(e == 0 && logits(other, again) && error_of(again, after) < 1e-4,
	   "%s: a merged one differs by %.1e: %s", r->name, error_of(again, after), yoke_error());
	yoke_model_free(m);
	yoke_model_free(other);
	yoke_model_free(plain);
}

static void refused(int code, int e, const char *what)
{
	ok(code == e && yoke_error_code() == e && !strchr(yoke_error(), '\n'), "refused: %s: %s",
	   what, yoke_error());
	yoke_error_clear();
}

static void test_refused(const char *path)
{
	yoke_model *m = yoke_model_open(path, NULL);
	struct yoke_lora_options o = lora;
	struct yoke_text_options t = {
		.size = sizeof t, .context = 8, .ids = ids_of_text(), .count = 8
	};
	refused(yoke_model_module(m) ? 0 : yoke_error_code(), YOKE_EINVAL,
		"to train frozen weights");
	refused(yoke_model_merge_adapter(m), YOKE_EINVAL, "to merge no adapters");
	refused(yoke_model_save_adapter(m, "nothing", 0), YOKE_EINVAL, "to save no adapters");
	ok(access("nothing", F_OK) < 0, "nothing is written then");
	o.rank = 0;
	refused(yoke_model_adapt(m, &o), YOKE_EINVAL, "rank 0");
	o.rank = 2;
	o.alpha = INFINITY;
	refused(yoke_model_adapt(m, &o), YOKE_EINVAL, "an infinite alpha");
	o.alpha = 1;
	o.dropout = 1;
	refused(yoke_model_adapt(m, &o), YOKE_EINVAL, "a dropout of 1");
	o.dropout = 0;
	o.targets = "q,all,none";
	refused(yoke_model_adapt(m, &o), YOKE_EINVAL, "an unknown matrix");
	refused(yoke_model_load_adapter(m, path), YOKE_ENOENT, "an adapter without files");
	refused(yoke_model_dataset(m, NULL, &t) ? 0 : yoke_error_code(), YOKE_ERANGE,
		"fewer ids than a window");
	t.count = 9;
	t.context = 1 << 20;
	refused(yoke_model_dataset(m, NULL, &t) ? 0 : yoke_error_code(), YOKE_EINVAL,
		"a context beyond the model's");
	t.context = 8;
	t.text = "3 1";
	refused(yoke_model_dataset(m, NULL, &t) ? 0 : yoke_error_code(), YOKE_EINVAL,
		"a text and ids");
	t.ids = NULL;
	refused(yoke_model_dataset(m, NULL, &t) ? 0 : yoke_error_code(), YOKE_ENOENT,
		"a text without a tokenizer");
	t.text = NULL;
	refused(yoke_model_dataset(m, NULL, &t) ? 0 : yoke_error_code(), YOKE_EINVAL, "no data");
	t.ids = (int32_t[]){ 0, 1, 2, RECORDED_VOCAB, 1, 2, 3, 4, 5 };
	refused(yoke_model_dataset(m, NULL, &t) ? 0 : yoke_error_code(), YOKE_ERANGE,
		"an id beyond the vocabulary");
	// the model is still what it was
	float one[T * RECORDED_VOCAB], two[T * RECORDED_VOCAB];
	yoke_model *fresh = yoke_model_open(path, NULL);
	ok(logits(m, one) && logits(fresh, two) && !memcmp(one, two, sizeof one),
	   "refusals leave the model unchanged");
	yoke_model_free(fresh);
	ok(yoke_model_adapt(m, &lora) == 0, "and it can be adapted");
	refused(yoke_model_adapt(m, &lora), YOKE_EINVAL, "adapters twice");
	refused(yoke_model_save_adapter(m, path, 1), YOKE_EINVAL, "to write over the model");
	for (int k = 0; k < 3; k++) {
		static const int64_t shapes[3][3] = { { 2, 1, 0 }, { 1, 2, 4 }, { 2, 3, 1 << 20 } };
		yoke_tensor *x = yoke_full(yoke_i32, k ? 3 : 2, shapes[k], 0);
		refused(yoke_model_loss(m, x) ? 0 : yoke_error_code(), YOKE_ESHAPE,
			"windows of another shape");
		yoke_free(x);
	}
	yoke_model_free(m);
}

int main(void)
{
	char path[300];
	int first = -1;
	tap_folder();
	mkdir(folder, 0777);
	write_ids();
	for (int i = 0; i < MODELS; i++) {
		if (strstr(recorded[i].config, "\"bert\""))
			continue;
		first = first < 0 ? i : first;
		test_family(&recorded[i]);
	}
	snprintf(path, sizeof path, "%s/%s", folder, recorded[first].name);
	test_refused(path);
	return done();
}
