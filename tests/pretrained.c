// SPDX-License-Identifier: Apache-2.0
// Pretrained models: the logits of small models of each family are those that transformers computes
// (models/recorded.h), at once and token by token; files that contradict themselves are refused.
#include "config.h"

#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "formats/safetensors.h"
#include "models/pretrained.h"
#include "../tests/models/recorded.h"
#include "tap.h"

enum { MODELS = sizeof recorded / sizeof *recorded, MAX_TENSORS = 64 };
static char folder[] = "pretrained.XXXXXX";

// ---- files with the weights of record.py ----

static uint32_t mix(uint64_t i, uint32_t seed)
{
	uint32_t u = (uint32_t)(i * 2654435761u) + seed;
	u ^= u >> 15;
	u *= 2246822519u;
	return u ^ u >> 13;
}

static void fill(const char *name, bool offset, int rank, size_t n, float *to)
{
	uint32_t seed = 2166136261u;
	const bool bias = strlen(name) > 4 && !strcmp(name + strlen(name) - 4, "bias");
	const bool embedding = strstr(name, "embed") || strstr(name, "wte") || strstr(name, "wpe");
	for (const char *c = name; *c; c++)
		seed = (seed ^ (unsigned char)*c) * 16777619u;
	for (size_t i = 0; i < n; i++) {
		const double v = (mix(i, seed) >> 8) / 8388608.0 - 1;
		to[i] = (float)(rank == 1 ? 0.2 * v + (offset || bias ? 0 : 1) : v * (embedding ? 1 : 0.4));
	}
}

struct tensors {
	struct yk_host_tensor t[MAX_TENSORS];
	int n;
	char *names;
};

static struct tensors tensors_of(const struct recorded *r)
{
	struct tensors all = { .names = strdup(r->tensors) };
	char *save = NULL;
	for (char *word = strtok_r(all.names, " ", &save); word && all.n < MAX_TENSORS; word = strtok_r(NULL, " ", &save)) {
		struct yk_host_tensor *t = &all.t[all.n++];
		char *dims = strchr(word, ':');
		size_t n = 1;
		*dims++ = 0;
		*t = (struct yk_host_tensor){ .name = word, .dtype = yoke_f32 };
		for (char *end = dims; *dims; dims = *end ? end + 1 : end)
			n *= (size_t)(t->dims[t->rank++] = strtoll(dims, &end, 10));
		t->data = malloc(n * sizeof(float));
		fill(word, !strncmp(r->name, "gemma", 5), t->rank, n, t->data);
	}
	return all;
}

static void tensors_free(struct tensors *all)
{
	for (int i = 0; i < all->n; i++)
		free(all->t[i].data);
	free(all->names);
}

static const char *write_folder(const char *name, const char *config, const struct tensors *all)
{
	static char path[256];
	char file[300];
	uint64_t bytes, hash;
	snprintf(path, sizeof path, "%s/%s", folder, name);
	mkdir(path, 0777);
	snprintf(file, sizeof file, "%s/config.json", path);
	yk_file_write(file, config, strlen(config));
	snprintf(file, sizeof file, "%s/model.safetensors", path);
	yk_safetensors_write(file, all->n, all->t, &bytes, &hash);
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
		worst = fmax(worst, isnan(got[i]) ? INFINITY : fabs((double)got[i] - (double)want[i]));
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
	const int e = yoke_read(yoke_model_logits(m, yoke_from(yoke_i32, 2, dims, recorded_ids)), got, sizeof got);
	yoke_scope_end(s);
	for (int k = 0; k < RECORDED_SHOWN; k++)
		worst = fmax(worst, difference(r, k, got + recorded_shown[k] * RECORDED_VOCAB));
	ok(e == 0 && worst < 1e-4, "%s: logits differ from transformers' by %.2g of the largest; at most 1e-4", r->name, worst);
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
		e = yk_network_cache_new(p.net, &c[i]);
	for (int t = recorded_shown[1]; t < RECORDED_TOKENS && e == 0; t++) {
		const bool begins = t == recorded_shown[1];
		for (int i = 0; i < (begins ? 2 : 1) && e == 0; i++) {
			const int64_t rows = begins ? 1 : 2, n = begins ? t + 1 : 1, dims[] = { rows, n };
			const int32_t twice[] = { recorded_ids[t], recorded_ids[t] };
			yoke_scope *s = yoke_scope_begin("test");
			yoke_tensor *ids = yoke_from(yoke_i32, 2, dims, begins ? recorded_ids : twice);
			yoke_tensor *h = yk_network_extend(p.net, begins ? &c[i] : c, ids);
			h = yoke_slice(h, 1, n - 1, n, 1);
			memset(got, -1, sizeof got);
			e = yoke_read(p.net->model->logits(p.net, h), got, (size_t)rows * RECORDED_VOCAB * sizeof *got);
			yoke_scope_end(s);
			for (int k = 1; k < RECORDED_SHOWN; k++)
				for (int64_t row = 0; row < rows && t == recorded_shown[k]; row++)
					worst = fmax(worst, difference(r, k, got + row * RECORDED_VOCAB));
		}
	}
	ok(e == 0 && worst < 1e-4, "%s: token by token, two sequences at once: logits differ by %.2g; at most 1e-4 %s", r->name, worst,
	   e ? yoke_error() : "");
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
	tensors_free(&all);
}

int main(void)
{
	if (!mkdtemp(folder))
		return 1;
	for (int i = 0; i < MODELS; i++)
		test_family(&recorded[i]);
	return done();
}
