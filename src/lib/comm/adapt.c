// SPDX-License-Identifier: Apache-2.0
// Measures the all_reduce algorithms of a group per size class and selects the next one to use or
// try.
#include "config.h"

#include "comm/adapt.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/param.h"
#include "comm/simulate.h"
#include "comm/tuned.h"

enum { SEEN = 32, APART = 50 };
static const double BETTER = 1.2, TOO_SLOW = 2;

YK_PARAM(adapt_setting, "dist.adapt", YK_BOOL, "0",
	 "during training, ranks that communicate by messages time the all_reduce algorithms and "
		"continue with the fastest; results have the same bits");

struct size { // per size class of jobs
	uint8_t applied;             // 1 + the algorithm that ranks currently use; 0: the default
	int now, best;              // algorithm of the latest jobs; best algorithm so far; -1: none
	bool once;
	uint32_t seen, at; // number of times in took[], at most SEEN; ring position once it is full
	double took[SEEN];          // seconds
	double median[YK_BY_SHARED]; // per algorithm; 0: not tried
	double was;                 // median of the best algorithm when it became the best
};

struct yk_adapt {
	uint32_t ranks, node;
	int64_t last;         // step of the last change
	bool known;           // a change was made
	bool waits;           // a change is pending until the ranks apply it
	pthread_mutex_t lock; // protects size[], except `applied`
	struct size size[YK_TUNED_SIZES];
};

bool yk_adapt_enabled(void)
{
	double alpha, beta;
	(void)yk_ranks_link(&alpha, &beta);
	return yk_param_bool(&adapt_setting) && !*yk_ranks_algorithm();
}

struct yk_adapt *yk_adapt_new(uint32_t ranks, uint32_t node)
{
	struct yk_adapt *a = calloc(1, sizeof *a);
	if (!a)
		return NULL;
	*a = (struct yk_adapt){ .ranks = ranks, .node = node ? node : ranks };
	for (int i = 0; i < YK_TUNED_SIZES; i++)
		a->size[i].now = a->size[i].best = -1;
	pthread_mutex_init(&a->lock, NULL);
	return a;
}

void yk_adapt_free(struct yk_adapt *a)
{
	if (!a)
		return;
	pthread_mutex_destroy(&a->lock);
	free(a);
}

int yk_adapt_how(const struct yk_adapt *a, uint64_t bytes)
{
	return a->size[yk_tuned_size(bytes)].applied;
}

void yk_adapt_took(struct yk_adapt *a, uint64_t bytes, bool once, int how, double seconds)
{
	struct size *s = &a->size[yk_tuned_size(bytes)];
	pthread_mutex_lock(&a->lock);
	if (s->now != how) {
		s->now = how;
		s->seen = 0;
	}
	s->once |= once;
	if (s->seen < SEEN)
		s->took[s->seen++] = seconds;
	else // keep the latest SEEN times
		s->took[s->at++ % SEEN] = seconds;
	pthread_mutex_unlock(&a->lock);
}

// ---- selection ----

static int by_time(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static double median(const double *x)
{
	double sorted[SEEN];
	memcpy(sorted, x, sizeof sorted);
	qsort(sorted, SEEN, sizeof *sorted, by_time);
	return (sorted[SEEN / 2 - 1] + sorted[SEEN / 2]) / 2;
}

// Closed-form prediction for measured links, or typical links between processes if none were
// measured. Infinite: no such algorithm.
static double predicted(const struct yk_adapt *a, int how, double bytes)
{
	struct yk_wire_model m = {
		.alpha1 = 1e-6, .beta1 = 2e-10, .alpha2 = 2e-5, .beta2 = 1e-9, .gamma = 1e-10
	};
	const struct yk_schedule_request w = {
		.what = YK_DO_ALL_REDUCE, .how = (uint8_t)how, .ranks = a->ranks, .node = a->node
	};
	double alpha, beta, seconds;
	yk_tuned_model(&m);
	if (yk_ranks_link(&alpha, &beta)) {
		m.alpha1 = m.alpha2 = alpha;
		m.beta1 = m.beta2 = beta;
	}
	m.node = a->node;
	return yk_simulate_formula(&m, &w, bytes, &seconds) ? seconds : INFINITY;
}

static bool may(const struct yk_adapt *a, const struct size *s, int how, double bytes)
{
	const struct yk_schedule_request w = {
		.what = YK_DO_ALL_REDUCE, .how = (uint8_t)how, .ranks = a->ranks, .node = a->node
	};
	return yk_schedule_exists(&w) && yk_schedule_in_order(&w) &&
	       (!s->once || yk_schedule_rounds_once(&w)) &&
	       (how != YK_BY_2D || (a->node > 1 && a->node < a->ranks)) &&
	       predicted(a, how, bytes) <= TOO_SLOW * predicted(a, s->best, bytes);
}

// Selects the algorithm for the next jobs of this size. `message` is set if another algorithm has
// become the best.
static int next_of(const struct yk_adapt *a, struct size *s, double bytes, char *message,
		   size_t room)
{
	const double took = median(s->took);
	if (s->best < 0) {
		s->best = s->now;
		s->was = took;
	} else if (s->now != s->best && took * BETTER <= s->median[s->best]) {
		yk_snprintf(
			message, room,
			"all_reduce of %.0f bytes now uses algorithm %s, %.3g ms; algorithm %s took %.3g ms",
			bytes, yk_algorithm_name[s->now], 1e3 * took, yk_algorithm_name[s->best],
			1e3 * s->median[s->best]);
		s->best = s->now;
		s->was = took;
	} else if (s->now == s->best && took >= BETTER * s->was) {
	// conditions have changed: measure all again
		memset(s->median, 0, sizeof s->median);
		s->was = took;
	}
	s->median[s->now] = took;
	for (int how = 0; how < YK_BY_SHARED; how++)
		if (s->median[how] <= 0 && may(a, s, how, bytes))
			return how;
	return s->best;
}

uint32_t yk_adapt_propose(struct yk_adapt *a, int64_t step, char *message, size_t room)
{
	uint32_t change = 0;
	*message = '\0';
	if (a->waits || (a->known && step - a->last < APART))
		return 0;
	pthread_mutex_lock(&a->lock);
	for (int i = 0; i < YK_TUNED_SIZES && !change; i++) {
		struct size *s = &a->size[i];
		const int now = s->now,
			  next = s->seen == SEEN ?
					 next_of(a, s, (double)yk_tuned_bytes(i), message, room) :
					 now;
		if (next != now)
			change = (uint32_t)(i * YK_ALGORITHMS + next + 1);
	}
	pthread_mutex_unlock(&a->lock);
	if (change) {
		a->last = step;
		a->known = a->waits = true;
	}
	return change;
}

void yk_adapt_apply(struct yk_adapt *a, uint32_t change)
{
	const uint32_t i = (change - 1) / YK_ALGORITHMS, how = (change - 1) % YK_ALGORITHMS;
	if (!change || i >= YK_TUNED_SIZES || how >= YK_BY_SHARED)
		return;
	struct size *s = &a->size[i];
	s->applied = (uint8_t)(how + 1);
	a->waits = false;
	pthread_mutex_lock(&a->lock);
	s->now = (int)how;
	s->seen = 0;
	pthread_mutex_unlock(&a->lock);
}
