// SPDX-License-Identifier: Apache-2.0
// Gradient accumulation as a binary counter: each digit 1 is a pending sum. In fast order there is
// a single pending sum.
#include "config.h"

#include "parallel/sums.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"

int yk_sums_joined(bool fast, int64_t k, int64_t n, int *held)
{
	if (fast)
		return *held = k > 0;
	*held = __builtin_popcountll((uint64_t)k);
	return k == n - 1 ? *held : __builtin_ctzll(~(uint64_t)k);
}

static int add_place(struct yk_sums *s, yoke_tensor *const *like, const int64_t *flat)
{
	int64_t dims[YOKE_MAX_RANK];
	char name[48];
	yoke_tensor **sum = calloc((size_t)s->count + 1, sizeof *sum);
	if (!sum)
		return yk_fail(YOKE_ENOMEM, "trainer: out of memory");
	s->grad[s->places] = sum;
	const int k = s->places++;
	if (s->inside)
		return 0;
	s->loss[k] = yoke_keep(yoke_variable("loss_sum", yoke_f32, 0, NULL));
	for (int i = 0; i < s->count && s->loss[k]; i++) {
		for (int d = 0; like && d < yoke_rank(like[i]); d++)
			dims[d] = yoke_dim(like[i], d);
		snprintf(name, sizeof name, "sum%d.%d", k, i);
		sum[i] = yoke_keep(yoke_variable(name, like ? yoke_dtype(like[i]) : yoke_f32,
						 like ? yoke_rank(like[i]) : 1,
						 like ? dims : &flat[i]));
		if (!sum[i])
			return yoke_error_code();
	}
	return s->loss[k] ? 0 : yoke_error_code();
}

int yk_sums_init(struct yk_sums *s, int64_t parts, int count, yoke_tensor *const *like,
		 const int64_t *flat)
{
	const int places = s->fast ? parts > 1 : 63 - __builtin_clzll((uint64_t)parts);
	int e = 0;
	s->count = count;
	s->inside = !like && !flat;
	while (s->places < places && e == 0)
		e = add_place(s, like, flat);
	return e;
}

void yk_sums_fini(struct yk_sums *s)
{
	for (int k = 0; k < s->places; k++) {
		for (int i = 0; i < s->count && !s->inside; i++)
			yoke_free(s->grad[k][i]);
		free(s->grad[k]);
		if (!s->inside)
			yoke_free(s->loss[k]);
	}
	*s = (struct yk_sums){ 0 };
}

uint64_t yk_sums_bytes(const struct yk_sums *s)
{
	uint64_t bytes = 0;
	for (int k = 0; k < s->places && !s->inside; k++)
		for (int i = 0; i < s->count; i++)
			bytes += s->grad[k][i] ? yoke_bytes(s->grad[k][i]) : 0;
	return bytes;
}

void yk_sums_add(struct yk_sums *s, int64_t k, int64_t n, yoke_tensor **grad, yoke_tensor **loss)
{
	int held, joined = yk_sums_joined(s->fast, k, n, &held);
	for (; joined > 0; joined--) {
		held--;
		*loss = yoke_add(s->loss[held], *loss);
		for (int i = 0; i < s->count; i++)
			grad[i] = yoke_add(s->grad[held][i], grad[i]);
	}
	if (k == n - 1)
		return;
	// a barrier per sum; otherwise one sum over all micro-batches' gradients could be fused,
	// keeping all of them in memory
	if (s->inside) {
		s->loss[held] = *loss;
		yoke_barrier(s->count, grad, 0, NULL, s->grad[held]);
		return;
	}
	yoke_assign(s->loss[held], *loss);
	for (int i = 0; i < s->count; i++)
		yoke_assign(s->grad[held][i], grad[i]);
}
