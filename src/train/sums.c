// SPDX-License-Identifier: Apache-2.0
// Sums over the parts of a step: a binary counter, of which each digit 1 is a sum that is held.
#include "config.h"

#include "train/sums.h"

#include <stdio.h>

#include "base/error.h"

int yk_sums_joined(int64_t k, int64_t n, int *held)
{
	*held = __builtin_popcountll((uint64_t)k);
	return k == n - 1 ? *held : __builtin_ctzll(~(uint64_t)k);
}

int yk_sums_init(struct yk_sums *s, const struct yk_parameters *ps, int64_t parts)
{
	const int places = 63 - __builtin_clzll((uint64_t)parts);
	while (s->places < places) {
		char kind[24];
		snprintf(kind, sizeof kind, "sum%d", s->places);
		for (int i = s->grad.count - s->places * ps->count; i < ps->count && !s->grad.error; i++)
			yk_parameters_like(&s->grad, ps, i, kind);
		if (s->grad.error)
			return s->grad.error;
		if (!(s->loss[s->places] = yoke_keep(yoke_variable("loss_sum", yoke_f32, 0, NULL))))
			return yoke_error_code();
		s->places++;
	}
	return 0;
}

void yk_sums_fini(struct yk_sums *s)
{
	yk_parameters_fini(&s->grad);
	for (int i = 0; i < s->places; i++)
		yoke_free(s->loss[i]);
	*s = (struct yk_sums){ 0 };
}

void yk_sums_add(struct yk_sums *s, int64_t k, int64_t n, int count, yoke_tensor **grad, yoke_tensor **loss)
{
	int held, joined = yk_sums_joined(k, n, &held);
	for (; joined > 0; joined--) {
		held--;
		*loss = yoke_add(s->loss[held], *loss);
		for (int i = 0; i < count; i++)
			grad[i] = yoke_add(s->grad.var[held * count + i], grad[i]);
	}
	if (k == n - 1)
		return;
	yoke_assign(s->loss[held], *loss);
	for (int i = 0; i < count; i++)
		yoke_assign(s->grad.var[held * count + i], grad[i]);
}
