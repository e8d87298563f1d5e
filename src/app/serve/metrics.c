// SPDX-License-Identifier: Apache-2.0
// Counts and writes metrics.  Buckets of histograms are fixed, so that scrapes of several servers
// add up.
#include "config.h"

#include "serve/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

static const struct {
	const char *name, *help;
	int n;
	double limit[YK_BUCKETS];
} kinds[YK_HISTOGRAMS] = {
	[YK_TTFT] = { "yoke_ttft_seconds",
		      "Time from a request's arrival to its first token.",
		      14,
		      { 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120 } },
	[YK_TOKEN] = { "yoke_token_seconds",
		       "Time between two tokens of a text.",
		       12,
		       { 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5 } },
	[YK_STEP] = { "yoke_step_tokens",
		      "Tokens computed in a step.",
		      11,
		      { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024 } },
};

void yk_metrics_init(struct yk_metrics *m)
{
	memset(m, 0, sizeof *m);
	pthread_mutex_init(&m->mutex, NULL);
}

void yk_metrics_fini(struct yk_metrics *m)
{
	pthread_mutex_destroy(&m->mutex);
}

void yk_metrics_received(struct yk_metrics *m)
{
	pthread_mutex_lock(&m->mutex);
	m->in_flight++;
	pthread_mutex_unlock(&m->mutex);
}

void yk_metrics_replied(struct yk_metrics *m, const char *endpoint, int code)
{
	int i = 0;
	pthread_mutex_lock(&m->mutex);
	m->in_flight--;
	while (i < m->requests &&
	       (m->request[i].code != code || strcmp(m->request[i].endpoint, endpoint)))
		i++;
	if (i < YK_METRIC_REQUESTS) {
		m->request[i].endpoint = endpoint;
		m->request[i].code = code;
		m->request[i].count++;
		m->requests += i == m->requests;
	}
	pthread_mutex_unlock(&m->mutex);
}

void yk_metrics_observe(struct yk_metrics *m, enum yk_histogram which, double x)
{
	int i = 0;
	while (i < kinds[which].n && x > kinds[which].limit[i])
		i++;
	pthread_mutex_lock(&m->mutex);
	m->histogram[which].bucket[i]++;
	m->histogram[which].count++;
	m->histogram[which].sum += x;
	pthread_mutex_unlock(&m->mutex);
}

static void write_head(FILE *to, const char *name, const char *type, const char *help)
{
	fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_engine(FILE *to, const struct yoke_engine_stats *s)
{
	const int64_t unused = s->pages - s->pages_used - s->pages_kept;
	write_head(to, "yoke_tokens_total", "counter",
		   "Tokens of prompts, those found in the cache, and generated ones.");
	fprintf(to,
		"yoke_tokens_total{kind=\"prompt\"} %" PRId64
		"\nyoke_tokens_total{kind=\"cached\"} %" PRId64
		"\nyoke_tokens_total{kind=\"generated\"} %" PRId64 "\n",
		s->prompt_tokens, s->cached_tokens, s->generated_tokens);
	write_head(to, "yoke_running", "gauge", "Texts being generated.");
	fprintf(to, "yoke_running %" PRId64 "\n", s->running);
	write_head(to, "yoke_queued", "gauge", "Texts waiting for a slot.");
	fprintf(to, "yoke_queued %" PRId64 "\n", s->queued);
	write_head(to, "yoke_pages", "gauge",
		   "Pages of 16 tokens in the cache of keys and values.");
	fprintf(to,
		"yoke_pages{state=\"used\"} %" PRId64 "\nyoke_pages{state=\"kept\"} %" PRId64
		"\nyoke_pages{state=\"free\"} %" PRId64 "\n",
		s->pages_used, s->pages_kept, unused);
	write_head(to, "yoke_preempted_total", "counter", "Texts put back because pages ran out.");
	fprintf(to, "yoke_preempted_total %" PRId64 "\n", s->preempted);
}

static void write_histogram(FILE *to, const struct yk_metrics *m, int h)
{
	uint64_t sum = 0;
	write_head(to, kinds[h].name, "histogram", kinds[h].help);
	for (int i = 0; i < kinds[h].n; i++) {
		sum += m->histogram[h].bucket[i];
		yk_fprintf(to, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", kinds[h].name,
			   kinds[h].limit[i], sum);
	}
	fprintf(to, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", kinds[h].name, m->histogram[h].count);
	yk_fprintf(to, "%s_sum %.9g\n%s_count %" PRIu64 "\n", kinds[h].name, m->histogram[h].sum,
		   kinds[h].name, m->histogram[h].count);
}

char *yk_metrics_text(struct yk_metrics *m, const struct yoke_engine_stats *stats)
{
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);
	if (!to)
		return NULL;
	pthread_mutex_lock(&m->mutex);
	write_head(to, "yoke_requests_total", "counter", "Requests by path and status.");
	for (int i = 0; i < m->requests; i++)
		fprintf(to, "yoke_requests_total{endpoint=\"%s\",code=\"%d\"} %" PRIu64 "\n",
			m->request[i].endpoint, m->request[i].code, m->request[i].count);
	write_head(to, "yoke_requests_in_flight", "gauge",
		   "Requests without a complete reply, this one included.");
	fprintf(to, "yoke_requests_in_flight %" PRId64 "\n", m->in_flight);
	for (int h = 0; h < YK_HISTOGRAMS; h++)
		write_histogram(to, m, h);
	pthread_mutex_unlock(&m->mutex);
	if (stats)
		write_engine(to, stats);
	if (fclose(to) == 0)
		return text;
	free(text);
	return NULL;
}
