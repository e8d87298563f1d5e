// SPDX-License-Identifier: Apache-2.0
// Writes the recorded models as folders: their weights are the formula of record.py.  Trains from
// them.
#ifndef RECORDED_FILES_H
#define RECORDED_FILES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "formats/safetensors.h"
#include "../tests/models/recorded.h"
#include "train/run.h"

enum { MAX_TENSORS = 96 };
static const char folder[] = "recorded"; // of all models

static uint32_t mix(uint64_t i, uint32_t seed)
{
	uint32_t u = (uint32_t)(i * 2654435761u) + seed;
	u ^= u >> 15;
	u *= 2246822519u;
	return u ^ u >> 13;
}

static void fill(const char *name, bool offset, double scale, int rank, size_t n, float *to)
{
	uint32_t seed = 2166136261u;
	const bool bias = strlen(name) > 4 && !strcmp(name + strlen(name) - 4, "bias");
	const bool embedding = strstr(name, "embed") || strstr(name, "wte") || strstr(name, "wpe");
	for (const char *c = name; *c; c++)
		seed = (seed ^ (unsigned char)*c) * 16777619u;
	for (size_t i = 0; i < n; i++) {
		const double v = (mix(i, seed) >> 8) / 8388608.0 - 1;
		to[i] = (float)(rank == 1 ? 0.2 * v + (offset || bias ? 0 : 1) :
					    v * (embedding ? scale : 0.4));
	}
}

struct tensors {
	struct yk_host_tensor t[MAX_TENSORS];
	int n;
	char *names;
};

// The tensors of a list "name:dims ..", with embeddings of elements up to `scale`.
static struct tensors tensors_scaled(const char *list, bool offset, double scale)
{
	struct tensors all = { .names = strdup(list) };
	char *save = NULL;
	for (char *word = strtok_r(all.names, " ", &save); word && all.n < MAX_TENSORS;
	     word = strtok_r(NULL, " ", &save)) {
		struct yk_host_tensor *t = &all.t[all.n++];
		char *dims = strchr(word, ':');
		size_t n = 1;
		*dims++ = 0;
		*t = (struct yk_host_tensor){ .name = word, .dtype = yoke_f32 };
		for (char *end = dims; *dims; dims = *end ? end + 1 : end)
			n *= (size_t)(t->dims[t->rank++] = strtoll(dims, &end, 10));
		t->data = malloc(n * sizeof(float));
		fill(word, offset, scale, t->rank, n, t->data);
	}
	return all;
}

static inline struct tensors tensors_listed(const char *list, bool offset)
{
	return tensors_scaled(list, offset, 1);
}

static inline struct tensors tensors_of(const struct recorded *r)
{
	return tensors_scaled(r->tensors, !strncmp(r->name, "gemma", 5), r->embedding);
}

// Does its configuration have only what is necessary?  Nothing else is special about it.
static inline bool is_minimal(const struct recorded *r)
{
	return strstr(r->name, "_minimal") != NULL;
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

// ---- training ----

static inline void write_ids(void)
{
	char path[256], text[4096];
	size_t n = 0;
	for (int i = 0; i < 1000; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%d ",
				      (i * i + 3 * i) % RECORDED_VOCAB);
	snprintf(path, sizeof path, "%s/ids.txt", folder);
	yk_file_write(path, text, n);
}

// Trains from `init` into folder/name up to a step, with further keys separated by blanks.
static inline int train(const char *init, const char *name, int steps, const char *further)
{
	char text[5][400], more[400], *save = NULL;
	struct yk_config c;
	const char *keys[] = {
		text[0],       text[1],       text[2],       text[3],    text[4],
		"context=8",   "batch=2",     "warmup=1",    "lr=0.01",  "schedule=constant",
		"backend=cpu", "resume=auto", "telemetry=0", "report=0", "progress=0"
	};
	snprintf(text[0], sizeof *text, "init=%s", init);
	snprintf(text[1], sizeof *text, "data=%s/ids.txt", folder);
	snprintf(text[2], sizeof *text, "out=%s/%s", folder, name);
	snprintf(text[3], sizeof *text, "steps=%d", steps);
	snprintf(text[4], sizeof *text, "training_log=%s/log.tsv", folder);
	snprintf(more, sizeof more, "%s", further);
	int e = yk_config_init(&c, YK_T);
	for (size_t i = 0; e == 0 && i < sizeof keys / sizeof *keys; i++)
		e = yk_config_argument(&c, keys[i]);
	for (char *key = strtok_r(more, " ", &save); key && e == 0;
	     key = strtok_r(NULL, " ", &save))
		e = yk_config_argument(&c, key);
	if (e == 0)
		e = yk_train(&c, NULL);
	yk_config_fini(&c);
	return e;
}

#endif
