// SPDX-License-Identifier: Apache-2.0
// Sums over sharded tensors. Each tensor is divided into intervals; each interval is summed on one
// rank, and all ranks add the intervals' sums in the same order.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "optim/optim.h"

int yk_optim_member_of(const struct yoke_optim *o, int i)
{
	return o->sharding.tensor ? o->sharding.tensor[i].member : i;
}

// Does this rank count tensor i in sums over parts of tensors?
static bool counts(const struct yoke_optim *o, int i)
{
	return o->sharding.tensor ? o->sharding.tensor[i].counts :
				    !o->sharding.counts || o->sharding.counts[i];
}

bool yk_optim_interval_here(const struct yoke_optim *o, const struct yk_optim_norm *n, int k)
{
	const int m = yk_optim_member_of(o, n->tensor[k]);
	const struct yk_optim_range *range =
		o->sharding.range && m >= 0 ? &o->sharding.range[m] : NULL;
	return m >= 0 &&
	       (!range || (n->interval[k].from >= range->from && n->interval[k].to <= range->to));
}

int yk_optim_intervals_here(const struct yoke_optim *o, const struct yk_optim_norm *n)
{
	int own = 0;
	for (int k = 0; k < n->n; k++)
		own += yk_optim_interval_here(o, n, k);
	return own;
}

// Zeros for intervals `before` .. `from` - 1, then the squares of those up to `to`, which begin at
// `at` in `mine`.
static yoke_tensor *in_place(yoke_tensor *mine, int64_t at, int64_t from, int64_t to,
			     int64_t before)
{
	const int64_t zeros = from - before;
	yoke_tensor *both[] = { yoke_full(yoke_f64, 1, &zeros, 0),
				yoke_slice(mine, 0, at, at + to - from, 1) };
	return zeros ? yoke_concat(2, both, 0) : both[1];
}

yoke_tensor *yk_optim_intervals_join(const struct yoke_optim *o, const struct yk_optim_norm *n,
				     yoke_tensor *mine)
{
	int64_t own = 0, done = 0, zeros;
	yoke_tensor *all = NULL;
	for (int k = 0, from; k < n->n; k++) {
		if (!yk_optim_interval_here(o, n, k))
			continue;
		for (from = k; k + 1 < n->n && yk_optim_interval_here(o, n, k + 1); k++)
			;
		yoke_tensor *run = in_place(mine, own, from, k + 1, done);
		all = all ? yoke_concat(2, (yoke_tensor *[]){ all, run }, 0) : run;
		own += k + 1 - from;
		done = k + 1;
	}
	zeros = n->n - done;
	if (zeros) {
		yoke_tensor *rest = yoke_full(yoke_f64, 1, &zeros, 0);
		all = all ? yoke_concat(2, (yoke_tensor *[]){ all, rest }, 0) : rest;
	}
	if (o->sharding.sum)
		all = o->sharding.sum(o->sharding.arg, all);
	return o->sharding.join ? o->sharding.join(o->sharding.arg, all) : all;
}

static yoke_tensor *total(const struct yoke_optim *o, yoke_tensor *x)
{
	return o->sharding.total ? o->sharding.total(o->sharding.arg, x) : x;
}

// Computes numbers for whole tensors from f32 [n] for parts of tensors; count: weight of each part
// on this rank, freed. NULL: an error.
static yoke_tensor *total_of(const struct yoke_optim *o, float *count, int64_t n, yoke_tensor *x)
{
	yoke_tensor *own = yoke_mul(x, yoke_from(yoke_f32, 1, &n, count));
	free(count);
	return total(o, own);
}

static float *counters(int n)
{
	float *to = calloc((size_t)n + 1, sizeof *to);
	if (!to)
		yk_fail(YOKE_ENOMEM, "optim_step: no memory for %d tensors", n);
	return to;
}

yoke_tensor *yk_optim_total(const struct yoke_optim *o, const int *member, int members, int n,
			    yoke_tensor *x)
{
	if (!o->sharding.total)
		return x;
	float *count = counters(n);
	for (int k = 0; k < n && count; k++)
		count[k] = o->sharding.counts[member[k % members]];
	return count ? total_of(o, count, n, x) : NULL;
}

yoke_tensor *yk_optim_total_all(const struct yoke_optim *o, yoke_tensor *x)
{
	const int n = yk_optim_tensors(o);
	if (!o->sharding.total)
		return x;
	float *count = counters(n);
	for (int i = 0; i < n && count; i++)
		count[i] = counts(o, i);
	return count ? total_of(o, count, n, x) : NULL;
}

yoke_tensor *yk_optim_in_order(const struct yoke_optim *o, yoke_tensor *x, int n, const int *tensor)
{
	static const struct yk_formula same = { "same", "x", "", "", "y", "y = x;" };
	yoke_tensor **one = calloc((size_t)n, sizeof *one), *sum = NULL;
	int counted = 0;
	for (int k = 0; k < n && one; k++)
		if (!tensor || counts(o, tensor[k]))
			one[counted++] = yoke_slice(x, 0, k, k + 1, 1);
	if (one && !counted)
		sum = yoke_full(yoke_f64, 0, NULL, 0);
	else if (one)
		sum = yk_list_sum(
			&(struct yk_list_step){ .what = "optim_step",
						.formula = &same,
						.n = counted,
						.list = (yoke_tensor *const *const[]){ one } },
			0);
	else
		yk_fail(YOKE_ENOMEM, "optim_step: no memory for %d intervals", n);
	free(one);
	return sum;
}

yoke_tensor *yk_optim_in_order_all(const struct yoke_optim *o, yoke_tensor *each,
				   const struct yk_optim_norm *n)
{
	return total(o, yk_optim_in_order(o, each, n->n, n->tensor));
}

// ---- sums of a map ----

// Interval k as a slice of `whole`, this rank's data of the member.
static yoke_tensor *interval_of(const struct yoke_optim *o, const struct yk_optim_norm *n, int k,
				yoke_tensor *whole)
{
	const int64_t first = o->sharding.range ?
				      o->sharding.range[yk_optim_member_of(o, n->tensor[k])].from :
				      0,
		      all = yoke_count(whole);
	return yoke_slice(yoke_reshape(whole, 1, &all), 0, n->interval[k].from - first,
			  n->interval[k].to - first, 1);
}

// The intervals of all members like this one. Fails if tensors of other ranks are in the norm,
// because their options are unknown here.
static int intervals_like(const struct yoke_optim *o, int like, struct yk_optim_norm *to)
{
	const struct yk_optim_norm *all = &o->norm[o->member[like].dtype == yoke_f64];
	*to = (struct yk_optim_norm){ .tensor = calloc((size_t)all->n, sizeof *to->tensor),
				      .interval = calloc((size_t)all->n, sizeof *to->interval) };
	if (!to->tensor || !to->interval)
		return yk_fail(YOKE_ENOMEM, "optim_step: no memory for %d intervals", all->n);
	for (int k = 0; k < all->n; k++) {
		const int m = yk_optim_member_of(o, all->tensor[k]);
		if (m < 0)
			return yk_fail(YOKE_EUNSUPPORTED,
				       "optim_step: sums over tensors of which others have some");
		if (yk_optim_together(&o->member[like], &o->member[m])) {
			to->tensor[to->n] = all->tensor[k];
			to->interval[to->n++] = all->interval[k];
		}
	}
	return 0;
}

// Sums the map's result over this rank's intervals, f64 [intervals here]: a group whose tensors are
// the intervals.
static yoke_tensor *sums_here(const struct yk_optim_pass *pass, struct yk_optim_group *g,
			      const struct yk_optim_norm *n, int own, const struct yk_optim_map *m)
{
	struct yk_optim_group by = *g;
	const size_t lists = 2 + (size_t)(g->states + g->window);
	yoke_tensor **room = calloc(lists * (size_t)own, sizeof *room),
		    ***state = calloc(lists, sizeof *state), *sum = NULL;
	if (room && state) {
		by.p = room;
		by.g = room + own;
		by.state = state;
		for (size_t l = 2; l < lists; l++)
			state[l - 2] = room + l * (size_t)own;
		by.n = 0;
		for (int k = 0, at = 0; k < n->n; k++) {
			if (!yk_optim_interval_here(pass->o, n, k))
				continue;
			while (g->member[at] != yk_optim_member_of(pass->o, n->tensor[k]))
				at++;
			by.p[by.n] = interval_of(pass->o, n, k, g->p[at]);
			by.g[by.n] = interval_of(pass->o, n, k, g->g[at]);
			for (size_t l = 2; l < lists; l++)
				by.state[l - 2][by.n] =
					interval_of(pass->o, n, k, g->state[l - 2][at]);
			by.n++;
		}
		sum = yk_optim_sum(pass, &by, m, 1, true);
		g->formula = by.formula;
	} else {
		yk_fail(YOKE_ENOMEM, "optim_step: no memory for %d intervals", own);
	}
	free(room);
	free(state);
	return sum;
}

yoke_tensor *yk_optim_sum_intervals(const struct yk_optim_pass *pass, int like,
				    struct yk_optim_group *g, const struct yk_optim_map *m)
{
	struct yk_optim_norm n;
	yoke_tensor *sum = NULL;
	if (intervals_like(pass->o, like, &n) == 0) {
		const int own = yk_optim_intervals_here(pass->o, &n);
		yoke_tensor *mine = own ? sums_here(pass, g, &n, own, m) : NULL;
		if (!own || mine)
			sum = yk_optim_in_order_all(pass->o,
						    yk_optim_intervals_join(pass->o, &n, mine), &n);
	}
	free(n.tensor);
	free(n.interval);
	return sum ? yoke_cast(sum, pass->o->member[like].dtype) : NULL;
}
