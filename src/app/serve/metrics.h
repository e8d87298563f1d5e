// SPDX-License-Identifier: Apache-2.0
// Counts of a server in Prometheus' text format.
#ifndef YK_SERVE_METRICS_H
#define YK_SERVE_METRICS_H

#include <pthread.h>
#include <stdint.h>

#include "yoke-engine.h"

enum yk_histogram { YK_TTFT, YK_TOKEN, YK_STEP, YK_HISTOGRAMS };
enum { YK_BUCKETS = 20, YK_METRIC_REQUESTS = 128 };

struct yk_metrics {
	pthread_mutex_t mutex;
	struct {
		const char *endpoint;
		int code;
		uint64_t count;
	} request[YK_METRIC_REQUESTS];
	int requests;
	int64_t in_flight; // requests that were received and are not among those above yet
	struct {
		uint64_t bucket[YK_BUCKETS + 1], count;
		double sum;
	} histogram[YK_HISTOGRAMS];
};

void yk_metrics_init(struct yk_metrics *);
void yk_metrics_fini(struct yk_metrics *);
void yk_metrics_received(struct yk_metrics *);
// the string must remain
void yk_metrics_replied(struct yk_metrics *, const char *endpoint, int code);
void yk_metrics_observe(struct yk_metrics *, enum yk_histogram, double);
// The metrics as text, to be freed; NULL: no memory.  stats: of the engine, NULL: none.
char *yk_metrics_text(struct yk_metrics *, const struct yoke_engine_stats *stats);

#endif
