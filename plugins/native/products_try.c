// SPDX-License-Identifier: Apache-2.0
// Tests a library's product before similar products are trusted to it: with factors that are small
// integers, whose sums are exact in every dtype, with a NaN, which must propagate, and with the
// epilogue.
#include "config.h"

#include <math.h>
#include <string.h>

#include "products.h"

enum { SIDE = YK_TRY_SIDE, N = SIDE * SIDE };

void yk_native_try_problem(struct yk_native_problem *to, int dtype, int result, int then)
{
	memset(to, 0, sizeof *to);
	to->dtype = dtype;
	to->to = result;
	to->then = then;
	to->m = to->n = to->k = SIDE;
	to->batch = 1;
	for (int i = 0; i < YK_OPERANDS; i++) {
		to->ld[i] = SIDE;
		to->align[i] = 256;
	}
}

// Stores -1, 0 or 1, or NaN for 2, in the given dtype.
static void put_number(void *to, int64_t i, int dtype, int x)
{
	static const uint16_t f16[] = { 0xbc00, 0, 0x3c00, 0x7e00 },
			      bf16[] = { 0xbf80, 0, 0x3f80, 0x7fc0 };

	if (dtype == yoke_f64)
		((double *)to)[i] = x == 2 ? (double)NAN : x;
	else if (dtype == yoke_f32)
		((float *)to)[i] = x == 2 ? NAN : (float)x;
	else
		((uint16_t *)to)[i] = dtype == yoke_f16 ? f16[x + 1] : bf16[x + 1];
}

static double get_number(const void *from, int64_t i, int dtype)
{
	const uint16_t h = dtype == yoke_f64 || dtype == yoke_f32 ? 0 : ((const uint16_t *)from)[i];
	const uint32_t wide = (uint32_t)h << 16;
	float f;

	if (dtype == yoke_f64)
		return ((const double *)from)[i];
	if (dtype == yoke_f32)
		return (double)((const float *)from)[i];
	memcpy(&f, &wide, sizeof f);
	if (dtype == yoke_bf16)
		return (double)f;
	const int e = h >> 10 & 31, m = h & 0x3ff;
	const double x = e == 31 ? (m ? (double)NAN : (double)INFINITY) :
			 e       ? ldexp(1024 + m, e - 25) :
				   ldexp(m, -24);
	return h >> 15 ? -x : x;
}

// The expected result for a sum, and the tolerance. The erf form of gelu differs by at least ten
// times the tolerance for |x| from 2 to 3.
static double wanted(double sum, const struct yk_native_problem *p, double *off)
{
	const double unit = p->to == yoke_bf16 ? 0x1p-8 : p->to == yoke_f16 ? 0x1p-11 : 0x1p-20;

	*off = 0;
	if (p->then & YK_THEN_RELU)
		return sum > 0 ? sum : 0;
	if (!(p->then & YK_THEN_GELU))
		return sum;
	const double y = sum / 2 * (1 + tanh(sqrt(2 / M_PI) * (sum + 0.044715 * sum * sum * sum)));
	*off = unit * fabs(y) + 2e-5;
	return y;
}

static bool right(const struct yk_native_problem *p, const void *y, const signed char *a,
		  const signed char *b, const signed char *bias)
{
	for (int i = 0; i < N; i++) {
		int sum = p->then & YK_THEN_BIAS ? bias[i % SIDE] : 0;
		bool nan = false;
		for (int k = 0; k < SIDE; k++) {
			nan |= a[i / SIDE * SIDE + k] == 2;
			sum += a[i / SIDE * SIDE + k] * b[k * SIDE + i % SIDE];
		}
		double off;
		const double got = get_number(y, i, p->to), want = wanted(sum, p, &off);
		if (nan ? !isnan(got) : !(fabs(got - want) <= off))
			return false;
	}
	return true;
}

int yk_native_try(struct yk_gpu_device *d, const struct yk_native_problem *p, const void *plan,
		  size_t workspace, yk_native_multiply *multiply, bool *good)
{
	const v_stream helper = yk_native_of(d)->helper;
	enum { BIAS = YK_OPERANDS, ALL };
	signed char whole[ALL][N];
	double from_device[ALL][N];
	void *at[ALL] = { NULL }, *work = NULL, *host;
	int err = 0;

	memset(from_device, 0xff, sizeof from_device);
	for (int i = YK_A; i < ALL; i++)
		for (int k = 0; k < N; k++) {
			whole[i][k] =
				(signed char)(((unsigned)(i * N + k) * 2654435761u >> 16) % 3 - 1);
			if (i == YK_A && k == SIDE)
				whole[i][k] = 2; // all of row 1
			put_number(from_device[i], k, i == BIAS ? p->to : p->dtype, whole[i][k]);
		}
	for (int i = 0; i < ALL && !err; i++)
		err = yk_native_buffer_new(d, YOKE_SEGMENT_DEVICE, sizeof from_device[i],
					   from_device[i], &at[i], &host);
	if (!err && workspace)
		err = yk_native_buffer_new(d, YOKE_SEGMENT_DEVICE, workspace, NULL, &work, &host);
	const struct yk_native_addresses place = { { at[YK_Y], at[YK_A], at[YK_B] },
						   at[BIAS],
						   work };
	err = err ? err : multiply(d, p, plan, &place, helper);
	err = err ? err :
		    yk_gpu_check(d, V_GET(from_device[YK_Y], v_address_of(at[YK_Y], 0),
					  sizeof from_device[YK_Y], helper));
	err = err ? err : yk_gpu_check(d, V_STREAM_WAIT(helper));
	*good = !err && right(p, from_device[YK_Y], whole[YK_A], whole[YK_B], whole[BIAS]);
	for (int i = 0; i < ALL; i++)
		if (at[i])
			yk_gpu_buffer_free(d, at[i], NULL);
	if (work)
		yk_gpu_buffer_free(d, work, NULL);
	return err;
}
