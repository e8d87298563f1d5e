// SPDX-License-Identifier: Apache-2.0
// Loads arrays of a checkpoint: one rank per machine reads the files and broadcasts them.
#include "config.h"

#include "parallel/shared_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "comm/ranks.h"
#include "parallel/host_list.h"

// Broadcast before each tensor and at the end: 0, or the error of the reading rank.
struct word {
	int32_t code;
	char why[508];
};

struct reader {
	const struct yk_grid *grid;
	yk_checkpoint_sink_fn *take;
	void *arg;
};

static int store_and_broadcast(void *arg, int i, const void *data, uint64_t bytes)
{
	const struct reader *r = arg;
	int e = yk_group_broadcast(r->grid->near, 0, &(struct word){ 0 }, sizeof(struct word));
	if (e == 0 && bytes)
		e = yk_group_broadcast(r->grid->near, 0, (void *)(uintptr_t)data, bytes);
	return e ? e : r->take(r->arg, i, data, bytes);
}

static int receive(const struct yk_grid *g, int n, const struct yk_host_tensor *t,
		   yk_checkpoint_sink_fn *take, void *arg)
{
	size_t max = 0;
	for (int i = 0; i < n; i++)
		max = yk_host_bytes(&t[i]) > max ? yk_host_bytes(&t[i]) : max;
	char *data = malloc(max + 1);
	int e = data ? 0 :
		       yk_fail(YOKE_ENOMEM,
			       "checkpoint: out of host memory for an array of %zu bytes", max);
	for (int i = 0; i <= n && e == 0; i++) {
		const size_t bytes = i < n ? yk_host_bytes(&t[i]) : 0;
		struct word w;
		e = yk_group_broadcast(g->near, 0, &w, sizeof w);
		if (e == 0 && w.code)
			e = yk_fail(w.code, "%s", w.why);
		if (e == 0 && bytes)
			e = yk_group_broadcast(g->near, 0, data, bytes);
		if (e == 0 && i < n)
			e = take(arg, i, data, bytes);
	}
	free(data);
	return e;
}

int yk_shared_load(const struct yk_grid *g, const char *folder, const struct yk_checkpoint *ck,
		   int part, int n, const struct yk_host_tensor *t, yk_checkpoint_sink_fn *take,
		   void *arg)
{
	if (!g || !g->near)
		return yk_checkpoint_load(folder, ck, part, n, t, take, arg);
	if (yoke_group_rank(g->near) > 0)
		return receive(g, n, t, take, arg);
	const int e = yk_checkpoint_load(folder, ck, part, n, t, store_and_broadcast,
					 &(struct reader){ g, take, arg });
	struct word w = { .code = e };
	snprintf(w.why, sizeof w.why, "%s", e < 0 ? yoke_error() : "");
	const int sent = yk_group_broadcast(g->near, 0, &w, sizeof w);
	return e ? e : sent;
}
