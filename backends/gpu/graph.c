// SPDX-License-Identifier: Apache-2.0
// Graphs: the work enqueued on a queue is recorded by the driver and later submitted at once.
// Kernels keep the arguments of the recording. Reports go to slots that the graph owns and that are
// read after each run. Tables read by its kernels also belong to the graph, since the op handles
// that created them may be recorded again.
#include "config.h"

#include <stdlib.h>

#include "report.h"

struct yk_gpu_graph {
	struct yk_gpu_device *device;
	void *graph; // the driver's
	// the graph's reports; the queue's own, which the graph's replace while recording
	struct yk_gpu_reports *reports, *queues;
	void **tables;
	size_t n, cap;
};

static void free_graph(struct yk_gpu_graph *g)
{
	for (size_t i = 0; i < g->n; i++)
		yk_gpu_buffer_free(g->device, g->tables[i], NULL);
	if (g->reports)
		yk_gpu_reports_free(g->reports);
	free(g->tables);
	free(g);
}

int yk_gpu_graph_begin(void *queue)
{
	struct yk_gpu_queue *q = queue;
	int err = yk_gpu_forked();
	struct yk_gpu_graph *g = err ? NULL : calloc(1, sizeof *g);

	if (!g)
		return err ? err : yk_gpu_error(YOKE_ENOMEM, "no memory for a graph's record");
	g->device = q->device;
	g->queues = q->reports;
	if ((err = yk_gpu_reports_new(q->device, &g->reports)) ||
	    (err = yk_gpu_reports_ready(q, g->reports)) || (err = yk_gpu_driver.graph_begin(q))) {
		free_graph(g);
		return err;
	}
	q->reports = g->reports;
	q->graph = g;
	return 0;
}

int yk_gpu_graph_end(void *queue, void **graph)
{
	struct yk_gpu_queue *q = queue;
	struct yk_gpu_graph *g = q->graph;
	int err = yk_gpu_forked();

	if (err)
		return err;
	if (!g)
		return yk_gpu_error(YOKE_EINVAL, "graph_end without graph_begin");
	q->reports = g->queues;
	q->graph = NULL;
	if ((err = yk_gpu_driver.graph_end(q, &g->graph)))
		free_graph(g);
	else
		*graph = g;
	return err;
}

int yk_gpu_graph_run(void *queue, void *graph)
{
	struct yk_gpu_queue *q = queue;
	struct yk_gpu_graph *g = graph;
	int err = yk_gpu_forked();

	if (err)
		return err;
	if (q->device != g->device)
		return yk_gpu_error(YOKE_EINVAL, "a graph of %s:%u cannot run on a queue of %s:%u",
				    yk_gpu_driver.name, g->device->index, yk_gpu_driver.name,
				    q->device->index);
	q->busy = true;
	err = yk_gpu_driver.graph_run(q, g->graph);
	return err ? err : yk_gpu_reports_replay(q, g->reports);
}

void yk_gpu_graph_free(void *graph)
{
	struct yk_gpu_graph *g = graph;

	if (!g || yk_gpu_forked())
		return;
	yk_gpu_driver.graph_free(g->graph);
	free_graph(g);
}

bool yk_gpu_graph_adopt(struct yk_gpu_queue *q, void *const *tables, size_t n)
{
	struct yk_gpu_graph *g = q->graph;

	if (g->n + n > g->cap) {
		const size_t cap = 2 * (g->n + n);
		void **more = realloc(g->tables, cap * sizeof *more);
		if (!more)
			return false;
		g->tables = more;
		g->cap = cap;
	}
	for (size_t i = 0; i < n; i++)
		g->tables[g->n++] = tables[i];
	return true;
}
