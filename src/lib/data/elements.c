// SPDX-License-Identifier: Apache-2.0
// Converts elements of cube files to pixels of f32: contiguous runs in vectors, and where a run
// does not consist of a pixel's bands, tiles are transposed.
#include "config.h"

#include <math.h>
#include <string.h>

#include "data/elements.h"

enum { BANDS = 128, RUN = 32 }; // bands and contiguous elements transposed at a time; fits the L1
				// cache

typedef float f32x4 __attribute__((vector_size(16)));
typedef float f32x8 __attribute__((vector_size(32)));
typedef double f64x8 __attribute__((vector_size(64)));

// ---- runs ----

struct element {
	int number, width; // ENVI type number; bytes
	void (*convert)(const void *from, int64_t n, double scale, float *to);
	void (*ignore)(const void *from, int64_t n, const void *ignored, float *weight,
		       int64_t stride);
	double (*number_at)(const void *from);
};

#define LANES(id, T, min, max) typedef T from_##id __attribute__((vector_size(8 * sizeof(T))));
YK_ELEMENTS(LANES)

#define CONVERT_AS(name, from_t, T, target) \
	target static void name(const void *from, int64_t n, double scale, float *to) \
	{ \
		const T *f = from; \
		int64_t i = 0; \
		for (; i + 8 <= n && scale == 1; i += 8) { \
			from_t v; \
			memcpy(&v, f + i, sizeof v); \
			const f32x8 y = __builtin_convertvector(v, f32x8); \
			memcpy(to + i, &y, sizeof y); \
		} \
		for (; i + 8 <= n; i += 8) { \
			from_t v; \
			memcpy(&v, f + i, sizeof v); \
			const f32x8 y = __builtin_convertvector( \
				__builtin_convertvector(v, f64x8) / scale, f32x8); \
			memcpy(to + i, &y, sizeof y); \
		} \
		for (; i < n; i++) \
			to[i] = scale == 1 ? (float)f[i] : (float)((double)f[i] / scale); \
	}
#define CONVERT(id, T, min, max) \
	CONVERT_AS(convert_##id, from_##id, T, ) \
	static double number_##id(const void *from) \
	{ \
		return (double)*(const T *)from; \
	} \
	static void ignore_##id(const void *from, int64_t n, const void *ignored, float *weight, \
				int64_t stride) \
	{ \
		const T *f = from, what = *(const T *)ignored; \
		const bool nans = isnan((double)what); \
		for (int64_t i = 0; i < n; i++) \
			if (f[i] == what || (nans && isnan((double)f[i]))) \
				weight[i * stride] = 0; \
	}
YK_ELEMENTS(CONVERT)

#ifdef __x86_64__ // the same with vectorized integer conversion
#define CONVERT_AVX2(id, T, min, max) CONVERT_AS(convert_avx2_##id, from_##id, T, __attribute__((target("avx2"))))
YK_ELEMENTS(CONVERT_AVX2)
#endif

static const struct element *element_of(int number)
{
#define ROW(id, T, min, max) { id, sizeof(T), convert_##id, ignore_##id, number_##id },
	static const struct element all[] = { YK_ELEMENTS(ROW) };
	const struct element *e = all;
#ifdef __x86_64__
#define ROW_AVX2(id, T, min, max) { id, sizeof(T), convert_avx2_##id, ignore_##id, number_##id },
	static const struct element avx2[] = { YK_ELEMENTS(ROW_AVX2) };
	e = __builtin_cpu_supports("avx2") ? avx2 : all;
#endif
	while (e->number != number)
		e++;
	return e;
}

// ---- contiguous bands ----

// Converts the pixels of a line in runs of bands that are contiguous in the file.
static void take_pixels(const struct element *e, const struct yk_taken *t, const char *from,
			int64_t step, float *x, float *weight)
{
	const bool weighed = weight && t->ignored;
	if (!weighed && t->packed) { // all bands of all pixels
		e->convert(from, t->samples * t->bands, t->scale, x);
		return;
	}
	for (int64_t s = 0; s < t->samples; s++, from += step * e->width)
		for (int64_t k = 0, n; k < t->bands; k += n) {
			for (n = 1; k + n < t->bands && t->band[k + n] == t->band[k] + n; n++)
				;
			e->convert(from + t->band[k] * e->width, n, t->scale, x + s * t->bands + k);
			if (weighed)
				e->ignore(from + t->band[k] * e->width, n, t->ignored, weight + s,
					  0);
		}
}

// ---- contiguous pixels ----

#if defined __clang__
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
typedef int32_t i32x4 __attribute__((vector_size(16)));
#define PICK(a, b, ...) __builtin_shuffle(a, b, (i32x4){ __VA_ARGS__ })
#endif

static inline void put(float *to, f32x4 v)
{
	memcpy(to, &v, sizeof v);
}

// to[r * step + k] = from[k * far + r] for k < n, r < m
static void turn(const float *from, int64_t far, int64_t n, int64_t m, float *to, int64_t step)
{
	int64_t r = 0;
	for (; r + 4 <= m; r += 4) {
		int64_t k = 0;
		for (; k + 4 <= n; k += 4) {
			const float *at = from + k * far + r;
			f32x4 a, b, c, d;
			memcpy(&a, at, sizeof a);
			memcpy(&b, at + far, sizeof b);
			memcpy(&c, at + 2 * far, sizeof c);
			memcpy(&d, at + 3 * far, sizeof d);
			const f32x4 ab = PICK(a, b, 0, 4, 1, 5), cd = PICK(c, d, 0, 4, 1, 5),
				    ba = PICK(a, b, 2, 6, 3, 7), dc = PICK(c, d, 2, 6, 3, 7);
			put(to + r * step + k, PICK(ab, cd, 0, 1, 4, 5));
			put(to + (r + 1) * step + k, PICK(ab, cd, 2, 3, 6, 7));
			put(to + (r + 2) * step + k, PICK(ba, dc, 0, 1, 4, 5));
			put(to + (r + 3) * step + k, PICK(ba, dc, 2, 3, 6, 7));
		}
		for (; k < n; k++)
			for (int i = 0; i < 4; i++)
				to[(r + i) * step + k] = from[k * far + r + i];
	}
	for (; r < m; r++)
		for (int64_t k = 0; k < n; k++)
			to[r * step + k] = from[k * far + r];
}

// Converts a run of n pixels that are contiguous in the file; bands are `far` elements apart there,
// and pixels `step` in x.
static void take_run(const struct element *e, const struct yk_taken *t, const char *from,
		     int64_t far, int64_t n, int64_t step, float *x, float *weight)
{
	float tile[BANDS][RUN];
	const bool as_it_is = e->number == 4 && t->scale == 1 && t->packed,
		   weighed = weight && t->ignored;
	for (int64_t r = 0; r < n; r += RUN)
		for (int64_t k0 = 0; k0 < t->bands; k0 += BANDS) {
			const int64_t m = r + RUN < n ? RUN : n - r,
				      bands = k0 + BANDS < t->bands ? BANDS : t->bands - k0;
			float *to = x + r * step * t->bands + k0;
			for (int64_t k = 0; k < bands && (!as_it_is || weighed); k++) {
				const char *run =
					from + ((t->packed ? k0 + k : t->band[k0 + k]) * far + r) *
						       e->width;
				if (!as_it_is)
					e->convert(run, m, t->scale, tile[k]);
				if (weighed)
					e->ignore(run, m, t->ignored, weight + r * step, step);
			}
			if (as_it_is)
				turn((const float *)(const void *)from + k0 * far + r, far, bands,
				     m, to, step * t->bands);
			else
				turn(tile[0], RUN, bands, m, to, step * t->bands);
		}
}

// ---- elements with gains ----

// Converts a pixel whose bands each have a gain and an offset: one band at a time, in f64.
static void take_gained(const struct element *e, const struct yk_taken *t, const char *from,
			float *x, float *weight)
{
	for (int64_t k = 0; k < t->bands; k++) {
		const char *at = from + (t->packed ? k : t->band[k]) * t->far * e->width;
		x[k] = (float)((t->gain ? t->gain[k] : 1) * e->number_at(at) +
			       (t->shift ? t->shift[k] : 0));
		if (weight && t->ignored)
			e->ignore(at, 1, t->ignored, weight, 0);
	}
}

void yk_convert_elements(const struct yk_taken *t, const void *block, int64_t first, int64_t lines,
			 float *x, float *weight)
{
	const struct element *e = element_of(t->number);
	const char *from = block;
	x += first * t->samples * t->bands;
	weight = weight ? weight + first * t->samples : NULL;
	if (t->gain || t->shift) {
		for (int64_t i = 0; i < lines * t->samples; i++)
			take_gained(e, t,
				    from + (i / t->samples * t->line + i % t->samples * t->sample) *
						    e->width,
				    x + i * t->bands, weight ? weight + i : NULL);
		return;
	}
	for (int64_t l = 0; l < lines && t->line > 1; l++) {
		const char *line = from + l * t->line * e->width;
		float *to = x + l * t->samples * t->bands,
		      *weights = weight ? weight + l * t->samples : NULL;
		if (t->far == 1)
			take_pixels(e, t, line, t->sample, to, weights);
		else
			take_run(e, t, line, t->far, t->samples, 1, to, weights);
	}
	for (int64_t s = 0; s < t->samples && t->line == 1; s++) // column-major
		take_run(e, t, from + s * t->sample * e->width, t->far, lines, t->samples,
			 x + s * t->bands, weight ? weight + s : NULL);
}
