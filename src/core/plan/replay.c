// SPDX-License-Identifier: Apache-2.0
// Recorded graphs of a plan's launches.  A graph is bound to memory addresses: uploads and
// out-of-place assignments alternate between two versions, so a plan has one graph for each of the
// few combinations of block addresses.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "plan/replay.h"

static bool is_of(const struct yk_graph_of *g, const struct yk_spot *spot, size_t n)
{
	return g->spots == n && g->spot && !memcmp(g->spot, spot, n * sizeof *spot);
}

static void forget(struct yk_graph_of *g)
{
	if (g->graph)
		g->ops->graph_free(g->graph);
	free(g->spot);
	*g = (struct yk_graph_of){ 0 };
}

void yk_replay_free(struct yk_replay *r, bool over)
{
	for (int i = 0; r && i < YK_GRAPHS; i++) {
		if (!over)
			r->of[i].graph = NULL;
		forget(&r->of[i]);
	}
	free(r);
}

// At most two launches are in progress, so the least recently used graph is idle and can be
// replaced.
struct yk_graph_of *yk_replay_find(struct yk_replay *r, const struct yk_spot *spot, size_t n)
{
	struct yk_graph_of *oldest = r->of;
	r->launches++;
	for (int i = 0; i < YK_GRAPHS; i++) {
		struct yk_graph_of *g = &r->of[i];
		if (is_of(g, spot, n)) {
			g->used = r->launches;
			g->seen++;
			return g;
		}
		oldest = g->used < oldest->used ? g : oldest;
	}
	forget(oldest);
	if (!(oldest->spot = malloc((n + 1) * sizeof *spot)))
		return NULL; // run without a graph
	memcpy(oldest->spot, spot, n * sizeof *spot);
	oldest->spots = n;
	oldest->used = r->launches;
	return oldest;
}

int yk_replay_record(struct yk_graph_of *g, struct yk_queue *q, int (*steps)(void *), void *arg)
{
	const struct yoke_backend *ops = q->device->ops;
	void *graph = NULL;
	int err = ops->graph_begin(q->handle);
	if (err)
		return err;
	err = steps(arg);
	int ended = ops->graph_end(q->handle, &graph);
	err = err ? err : ended;
	if (err && graph)
		ops->graph_free(graph);
	if (!err) {
		g->graph = graph;
		g->ops = ops;
	}
	return err;
}
