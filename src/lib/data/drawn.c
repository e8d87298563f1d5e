// SPDX-License-Identifier: Apache-2.0
// Synthetic cubes: random spectra under varying illumination, disc-shaped anomalies, and noise.
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/param.h"
#include "base/philox.h"
#include "data/cube.h"
#include "data/noise.h"
#include "data/set.h"

struct drawn {
	int64_t count, lines, samples, bands, seed;
	float *normal, *anomaly; // [bands]
	double *across;          // [samples]: illumination
};

static void drawn_free(void *arg)
{
	struct drawn *d = arg;
	free(d->normal);
	free(d->across);
	free(d);
}

static double uniform(uint32_t bits)
{
	return ((double)(bits >> 8) + 0.5) * 0x1p-24; // never 0
}

// Adds discs until they cover a twentieth of the pixels.
static void discs(const struct drawn *d, int64_t cube, uint8_t *label)
{
	const int64_t pixels = d->lines * d->samples;
	const uint64_t step = (uint64_t)cube | (uint64_t)1 << 63;
	int64_t marked = 0;
	memset(label, 0, (size_t)pixels);
	for (uint64_t n = 0; marked < (pixels + 19) / 20; n++) {
		const double y = uniform(yk_philox(4 * n, (uint64_t)d->seed, step)) *
				 (double)d->lines,
			     x = uniform(yk_philox(4 * n + 1, (uint64_t)d->seed, step)) *
				 (double)d->samples,
			     r = 2 + 3 * uniform(yk_philox(4 * n + 2, (uint64_t)d->seed, step));
		for (int64_t i = (int64_t)fmax(0, floor(y - r));
		     i <= (int64_t)(y + r) && i < d->lines; i++)
			for (int64_t j = (int64_t)fmax(0, floor(x - r));
			     j <= (int64_t)(x + r) && j < d->samples; j++) {
				const double di = (double)i + 0.5 - y, dj = (double)j + 0.5 - x;
				uint8_t *to = &label[i * d->samples + j];
				if (di * di + dj * dj > r * r || *to)
					continue;
				*to = 1;
				marked++;
			}
	}
}

typedef float f32x4 __attribute__((vector_size(16)));

// x holds the noise: x = signal * light + 10 * x.
static void add_signal(float *x, const float *signal, float light, int64_t bands)
{
	int64_t b = 0;
	for (; b + 4 <= bands; b += 4) {
		f32x4 v, s;
		memcpy(&v, x + b, sizeof v);
		memcpy(&s, signal + b, sizeof s);
		v = s * light + v * 10.f;
		memcpy(x + b, &v, sizeof v);
	}
	for (; b < bands; b++)
		x[b] = signal[b] * light + x[b] * 10.f;
}

static void draw(const struct drawn *d, int64_t cube, float *x, uint8_t *label)
{
	const int64_t line = d->samples * d->bands;
	discs(d, cube, label);
	for (int64_t i = 0; i < d->lines; i++) { // line by line, so that a line stays in the cache
		const double along = 1 + 0.2 * sin(2 * M_PI * (double)i / (double)d->lines);
		yk_noise(x + i * line, line, (uint64_t)(i * line), (uint64_t)d->seed,
			 (uint64_t)cube);
		for (int64_t j = 0; j < d->samples; j++) {
			const bool odd = label[i * d->samples + j];
			add_signal(x + i * line + j * d->bands, odd ? d->anomaly : d->normal,
				   odd ? 1 : (float)(along * d->across[j]), d->bands);
		}
	}
}

static int read_drawn(void *arg, int64_t n, struct yoke_item *const *item)
{
	const struct drawn *d = arg;
	for (int64_t i = 0; i < n; i++) {
		float *weight = item[i]->to[1];
		draw(d, item[i]->number, item[i]->to[0], item[i]->to[2]);
		for (int64_t k = 0; k < d->lines * d->samples; k++)
			weight[k] = 1;
	}
	return 0;
}

static int take(struct drawn *d, char *word)
{
	static const char *const names[] = { "count", "lines", "samples", "bands", "seed" };
	static const int64_t max[] = { INT32_MAX, 16384, 16384, 4096, INT64_MAX };
	int64_t *const to[] = { &d->count, &d->lines, &d->samples, &d->bands, &d->seed };
	char hint[200], *value = strchr(word, '='), *end;
	if (value)
		*value++ = 0;
	for (int i = 0; i < 5; i++) {
		if (strcmp(word, names[i]))
			continue;
		errno = 0;
		*to[i] = value ? strtoll(value, &end, 10) : -1;
		if (value && *value && !*end && !errno && *to[i] >= (i < 4) && *to[i] <= max[i])
			return 0;
		return yk_fail(YOKE_EINVAL,
			       "dataset_synthetic: %s=%s: must be a whole number from %d to %lld",
			       word, value ? value : "", i < 4, (long long)max[i]);
	}
	return yk_fail(YOKE_EINVAL, "dataset_synthetic: there is no key '%s'; %s", word,
		       yk_hint(word, names, 5, hint, sizeof hint));
}

yoke_dataset *yoke_dataset_synthetic(const char *settings)
{
	struct drawn *d = calloc(1, sizeof *d);
	char *copy = strdup(settings ? settings : ""), *rest = copy, *word;
	yoke_dataset *set = NULL;
	int err = d && copy ? 0 : yk_fail(YOKE_ENOMEM, "dataset_synthetic: no memory");
	if (d)
		*d = (struct drawn){ 200, 128, 128, 50, 42, NULL, NULL, NULL };
	while (!err && (word = strsep(&rest, " ")))
		if (*word)
			err = take(d, word);
	free(copy);
	if (!err && (!(d->normal = calloc((size_t)d->bands * 2, sizeof *d->normal)) ||
		     !(d->across = calloc((size_t)d->samples, sizeof *d->across))))
		err = yk_fail(YOKE_ENOMEM, "dataset_synthetic: no memory");
	for (int64_t j = 0; !err && j < d->samples; j++)
		d->across[j] = 1 + 0.2 * cos(2 * M_PI * (double)j / (double)d->samples);
	for (int64_t b = 0; !err && b < d->bands; b++) {
		const double w = d->bands > 1 ? (double)b / (double)(d->bands - 1) : 0;
		d->anomaly = d->normal + d->bands;
		d->normal[b] = (float)(100 * exp(-(w - 0.5) * (w - 0.5) / 0.1));
		d->anomaly[b] = (float)(150 * (exp(-(w - 0.3) * (w - 0.3) / 0.05) +
					       exp(-(w - 0.7) * (w - 0.7) / 0.05)));
	}
	if (!err)
		set = yk_cube_set("synthetic", d->count,
				  &(struct yk_cube_shape){ d->lines, d->samples, d->bands, false },
				  true, read_drawn, d, drawn_free,
				  yk_hash_numbers(d, sizeof d->count,
						  offsetof(struct drawn, normal) / sizeof d->count,
						  1));
	if (!set && d)
		drawn_free(d);
	return set;
}
