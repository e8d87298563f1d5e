// SPDX-License-Identifier: Apache-2.0
// Computes the layout of ranks and creates its groups.
#include "config.h"

#include "parallel/grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "comm/carrier.h"
#include "comm/ranks.h"
#include "graph/context.h"

int64_t yk_grid_unit(const struct yk_config *c)
{
	return yk_config_int(c, YK_KEY_stages) * yk_config_int(c, YK_KEY_tensor);
}

int64_t yk_grid_data(const struct yk_config *c)
{
	const int64_t ranks = yk_config_int(c, YK_KEY_ranks);
	return ranks == YK_AUTO ? 1 : ranks / yk_grid_unit(c);
}

// Splits off the group of ranks with this color, `size` of them, in which this one has index `at`;
// a negative color: none.
static int part(const struct yk_grid *g, int64_t size, int64_t color, int64_t at, yoke_group **to)
{
	const struct yoke_context *ctx = yk_current();
	if (size == 1)
		return 0;
	if (size == g->data * g->stages * g->tensor)
		*to = g->all;
	else if (!ctx->mode.dry)
		*to = yoke_group_split(g->all, (int)color, (int)at);
	else if (color >= 0)
		*to = yk_group_dry((uint32_t)size, (uint32_t)at, false);
	return *to ? 0 : yoke_error_code(); // no color: no group, but no error
}

// Creates the group of the first and the last stage.
static int join_first_and_last_stage(struct yk_grid *g)
{
	const bool here = g->s == 0 || g->s == g->stages - 1;
	if (g->stages > 2)
		return part(g, 2, here ? g->d * g->tensor + g->p : -1, g->s > 0, &g->ends);
	g->ends = g->over_stages;
	return 0;
}

// Creates the group of ranks on this machine; the color is its first rank.
static int join_machine(struct yk_grid *g)
{
	const struct yk_carrier_route *r = g->all ? g->all->rendezvous->route : NULL;
	const int rank = g->all ? yoke_group_rank(g->all) : 0;
	int first = 0;
	if (!g->all || yk_current()->mode.dry)
		return 0;
	while (r && first < rank && yk_route_away(r, (uint32_t)first))
		first++;
	g->near = r ? yoke_group_split(g->all, first, rank) : g->all;
	if (!g->near)
		return yoke_error_code();
	if (yoke_group_size(g->near) > 1)
		return 0;
	yoke_group_free(g->near);
	g->near = NULL;
	return 0;
}

// Checks that all ranks have the same layout; otherwise their first collectives would not match.
static int check_layout(const struct yk_grid *g, const char *split)
{
	struct layout {
		int64_t stages, tensor;
		char split[256];
	} mine = { .stages = g->stages, .tensor = g->tensor };
	const int n = yoke_group_size(g->all);
	struct layout *all = calloc((size_t)n, sizeof mine);
	snprintf(mine.split, sizeof mine.split, "%s", split);
	int e = all ? yoke_group_exchange(g->all, &mine, sizeof mine, all) :
		      yk_fail(YOKE_ENOMEM, "ranks: out of memory");
	for (int i = 1; i < n && e == 0; i++) {
		if (all[i].stages != all->stages)
			e = yk_fail(YOKE_EINVAL, "rank 0 has stages=%lld, rank %d stages=%lld",
				    (long long)all->stages, i, (long long)all[i].stages);
		else if (all[i].tensor != all->tensor)
			e = yk_fail(YOKE_EINVAL, "rank 0 has tensor=%lld, rank %d tensor=%lld",
				    (long long)all->tensor, i, (long long)all[i].tensor);
		else if (strcmp(all[i].split, all->split))
			e = yk_fail(YOKE_EINVAL, "rank 0 has split=%s, rank %d split=%s",
				    all->split, i, all[i].split);
	}
	free(all);
	return e;
}

int yk_grid_join(const struct yk_config *c, struct yk_grid *to)
{
	const int64_t ranks = yk_config_int(c, YK_KEY_ranks);
	const struct yoke_context *ctx = yk_current();
	struct yk_grid g = { .data = 1,
			     .stages = yk_config_int(c, YK_KEY_stages),
			     .tensor = yk_config_int(c, YK_KEY_tensor) };
	const int64_t dry = to->s * g.tensor;
	yoke_group *world = ctx && ctx->mode.dry && ranks > 1 ?
				    yk_group_dry((uint32_t)ranks, (uint32_t)dry, true) :
				    yoke_group_world();
	if (!world)
		return yoke_error_code();
	const int64_t n = yoke_group_size(world), rank = yoke_group_rank(world),
		      unit = g.stages * g.tensor;
	if (n > 1)
		g.all = world;
	if (n % unit)
		return yk_fail(YOKE_EINVAL,
			       "%lld ranks are not a multiple of %lld, the product of stages=%lld "
			       "and tensor=%lld",
			       (long long)n, (long long)unit, (long long)g.stages,
			       (long long)g.tensor);
	g.data = n / unit;
	g.d = rank / unit;
	g.s = rank / g.tensor % g.stages;
	g.p = rank % g.tensor;
	int e = g.all && !ctx->mode.dry ? check_layout(&g, yk_config_str(c, YK_KEY_split)) : 0;
	if (e == 0)
		e = part(&g, g.data, g.s * g.tensor + g.p, g.d, &g.over_data);
	if (e == 0)
		e = part(&g, g.stages, g.d * g.tensor + g.p, g.s, &g.over_stages);
	if (e == 0)
		e = part(&g, g.tensor, g.d * g.stages + g.s, g.p, &g.over_tensor);
	if (e == 0)
		e = join_first_and_last_stage(&g);
	if (e == 0)
		e = join_machine(&g);
	if (e < 0)
		yk_grid_leave(&g);
	else
		*to = g;
	return e;
}

uint64_t yk_grid_sent(const struct yk_grid *g)
{
	yoke_group *const part[] = { g->all,         g->over_data, g->over_stages,
				     g->over_tensor, g->near,      g->stages > 2 ? g->ends : NULL };
	struct yoke_group_state now = { .size = sizeof now };
	uint64_t sent = 0;
	for (size_t i = 0; i < sizeof part / sizeof *part; i++)
		if (part[i] && (i == 0 || part[i] != g->all) &&
		    yoke_group_state(part[i], &now) == 0)
			sent += now.sent;
	return sent;
}

void yk_grid_leave(struct yk_grid *g)
{
	yoke_group *const part[] = { g->over_data, g->over_stages, g->over_tensor, g->near,
				     g->stages > 2 ? g->ends : NULL };
	for (size_t i = 0; i < sizeof part / sizeof *part; i++)
		if (part[i] != g->all)
			yoke_group_free(part[i]);
	*g = (struct yk_grid){ 0 };
}
