// SPDX-License-Identifier: Apache-2.0
// Matrix products by plain loops, in a stream of the fake driver.
#include "config.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "multiply.h"

// ---- numbers ----

static float f32_of_bits(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof x);
	return x;
}

static uint32_t bits_of_f32(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof bits);
	return bits;
}

static float f32_of_f16(uint16_t h)
{
	const uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 0x3ff;
	const float x = e == 31 ? f32_of_bits(0x7f800000 | m << 13) :
			e       ? f32_of_bits((e + 112) << 23 | m << 13) :
				  (float)m * 0x1p-24f;

	return sign ? -x : x;
}

static uint16_t f16_of_f32(float x)
{
	const uint16_t sign = bits_of_f32(x) >> 16 & 0x8000;
	const uint32_t b = bits_of_f32(x) & 0x7fffffff;

	if (b > 0x7f800000)
		return sign | 0x7e00;
	if (b >= 0x477ff000)
		return sign | 0x7c00;
	if (b >= 0x38800000)
		return sign | (uint16_t)((b - 0x38000000 + 0xfff + (b >> 13 & 1)) >> 13);
	// a multiple of 2^-24: the sum rounds to one
	return sign | (uint16_t)(bits_of_f32(f32_of_bits(b) + 0.5f) - bits_of_f32(0.5f));
}

static uint16_t bf16_of_f32(float x)
{
	const uint32_t b = bits_of_f32(x);

	return x != x ? (uint16_t)(b >> 16 | 0x40) : (uint16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

static size_t bytes_of(TYPE type)
{
	return type == TWIN(CUDA_R_64F, HIP_R_64F) ? 8 :
	       type == TWIN(CUDA_R_32F, HIP_R_32F) ? 4 :
						     2;
}

double fake_number_at(const void *at, TYPE type, int64_t i)
{
	switch (type) {
	case TWIN(CUDA_R_64F, HIP_R_64F): return ((const double *)at)[i];
	case TWIN(CUDA_R_32F, HIP_R_32F): return (double)((const float *)at)[i];
	case TWIN(CUDA_R_16F, HIP_R_16F): return (double)f32_of_f16(((const uint16_t *)at)[i]);
	default: return (double)f32_of_bits((uint32_t)((const uint16_t *)at)[i] << 16);
	}
}

static void store(void *at, TYPE type, int64_t i, double x)
{
	switch (type) {
	case TWIN(CUDA_R_64F, HIP_R_64F): ((double *)at)[i] = x; break;
	case TWIN(CUDA_R_32F, HIP_R_32F): ((float *)at)[i] = (float)x; break;
	case TWIN(CUDA_R_16F, HIP_R_16F): ((uint16_t *)at)[i] = f16_of_f32((float)x); break;
	default: ((uint16_t *)at)[i] = bf16_of_f32((float)x); break;
	}
}

// ---- products: matrices lie by columns ----

// The libraries' gelu is the tanh form; with YOKE_FAKE_EPILOGUES=other it is the erf form, and relu
// loses NaNs.
static double then(int epilogue, double x)
{
	const bool other = fake_setting("EPILOGUES");

	if (epilogue & 2)
		return x > 0 || (x != x && !other) ? x : 0;
	if (epilogue & 32 && other)
		return x / 2 * (1 + erf(x * M_SQRT1_2));
	return epilogue & 32 ? x / 2 * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))) : x;
}

static void run(void *arg)
{
	const struct product *p = arg;
	const int64_t m = (int64_t)p->d.rows, n = (int64_t)p->d.cols;
	const int64_t k = (int64_t)(p->desc.transpose[0] ? p->a.rows : p->a.cols);
	const int64_t a_m = p->desc.transpose[0] ? p->a.ld : 1,
		      a_k = p->desc.transpose[0] ? 1 : p->a.ld;
	const int64_t b_k = p->desc.transpose[1] ? p->b.ld : 1,
		      b_n = p->desc.transpose[1] ? 1 : p->b.ld;

	if (fake_setting("EMPTY"))
		return;
	for (int64_t z = 0; z < p->d.batch; z++)
		for (int64_t j = 0; j < n; j++)
			for (int64_t i = 0; i < m; i++) {
				double sum = 0;
				for (int64_t l = 0; l < k; l++)
					sum += fake_number_at(p->a_at, p->a.type,
							      z * p->a.stride + i * a_m + l * a_k) *
					       fake_number_at(p->b_at, p->b.type,
							      z * p->b.stride + l * b_k + j * b_n);
				sum *= p->alpha;
				if (p->beta != 0)
					sum += p->beta *
					       fake_number_at(p->c_at, p->c.type,
							      z * p->c.stride + j * p->c.ld + i);
				if (p->desc.epilogue & 4)
					sum += fake_number_at(p->desc.bias, p->d.type, i);
				sum = then(p->desc.epilogue, sum);
				store(p->d_at, p->d.type, z * p->d.stride + j * p->d.ld + i, sum);
			}
}

bool fake_fits(const struct product *p)
{
	const uint64_t m = p->d.rows, n = p->d.cols;
	const uint64_t k = p->desc.transpose[0] ? p->a.rows : p->a.cols;

	return (p->desc.transpose[0] ? p->a.cols : p->a.rows) == m &&
	       (p->desc.transpose[1] ? p->b.cols : p->b.rows) == k &&
	       (p->desc.transpose[1] ? p->b.rows : p->b.cols) == n && p->c.rows == m &&
	       p->c.cols == n && p->a.batch == p->d.batch && p->b.batch == p->d.batch &&
	       p->c.batch == p->d.batch && p->a.type == p->b.type &&
	       (p->a.type == TWIN(CUDA_R_64F, HIP_R_64F)) ==
		       (p->desc.scale == TWIN(CUDA_R_64F, HIP_R_64F)) &&
	       (p->desc.epilogue == 1 || (p->desc.epilogue & ~4) == 2 ||
		(p->desc.epilogue & ~4) == 32 || p->desc.epilogue == 4);
}

static void *of_driver(const char *name)
{
	void *driver = dlopen(TWIN("libcuda.so.1", "libamdhip64.so.6"), RTLD_NOW | RTLD_NOLOAD);
	void *symbol = driver ? dlsym(driver, name) : NULL;

	if (driver)
		dlclose(driver);
	return symbol;
}

// Is the whole matrix in memory of the driver?
static bool is_there(const void *at, const struct layout *l)
{
	bool (*within)(const void *, size_t);
	const size_t last =
		(size_t)((l->batch - 1) * l->stride + (int64_t)(l->cols - 1) * l->ld) + l->rows;

	*(void **)&within = of_driver("fake_within");
	return within && (l->batch == 1 || l->stride >= 0) && within(at, last * bytes_of(l->type));
}

enum fake_multiplied fake_multiply(struct product *p, void *stream)
{
	int (*enqueue)(void *, void (*)(void *), void *);

	*(void **)&enqueue = of_driver("fake_enqueue");
	if (enqueue && fake_fits(p) && is_there(p->a_at, &p->a) && is_there(p->b_at, &p->b) &&
	    is_there(p->d_at, &p->d) && (p->beta == 0 || is_there(p->c_at, &p->c)) &&
	    (!(p->desc.epilogue & 4) ||
	     is_there(p->desc.bias, &(struct layout){ p->d.type, p->d.rows, 1, 1, 0, 1 })))
		return enqueue(stream, run, p) ? NOT_ENQUEUED : MULTIPLIED;
	free(p);
	return enqueue ? BAD_PRODUCT : NO_DRIVER;
}
