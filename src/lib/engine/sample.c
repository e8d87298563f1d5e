// SPDX-License-Identifier: Apache-2.0
// Chooses a sequence's next token: logarithms of probabilities if they are requested, biases, the
// request's mask, and then as all text generation (models/sampling.h).
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/engine.h"

struct yk_sampler {
	int64_t vocabulary;
	uint32_t *bits; // of a mask
	float *raw;     // the model's logits, for the log-probability of the token
};

static int64_t words_of(int64_t vocabulary)
{
	return (vocabulary + 31) / 32;
}

struct yk_sampler *yk_sampler_new(int64_t vocabulary)
{
	struct yk_sampler *s = calloc(1, sizeof *s);
	if (s) {
		s->vocabulary = vocabulary;
		s->bits = malloc((size_t)words_of(vocabulary) * sizeof *s->bits);
		s->raw = malloc((size_t)vocabulary * sizeof *s->raw);
	}
	if (s && s->bits && s->raw)
		return s;
	yk_sampler_free(s);
	yk_fail(YOKE_ENOMEM, "engine: no memory to sample from %lld tokens", (long long)vocabulary);
	return NULL;
}

void yk_sampler_free(struct yk_sampler *s)
{
	if (s) {
		free(s->bits);
		free(s->raw);
	}
	free(s);
}

// ln of the sum of exp(logits); of the finite ones.
static double log_sum(const float *logits, int64_t n)
{
	double max = -INFINITY, sum = 0;
	for (int64_t i = 0; i < n; i++)
		if (isfinite(logits[i]) && logits[i] > max)
			max = logits[i];
	for (int64_t i = 0; i < n; i++)
		sum += isfinite(logits[i]) ? exp(logits[i] - max) : 0;
	return max + log(sum);
}

// The `count` largest logits, the first among equals first; returns how many there are.
static int largest(const float *logits, int64_t n, int count, int32_t *to)
{
	int m = 0;
	for (int64_t i = 0; i < n; i++) {
		if (!isfinite(logits[i]) || (m == count && !(logits[i] > logits[to[m - 1]])))
			continue;
		int at = m < count ? m++ : m - 1;
		for (; at > 0 && logits[i] > logits[to[at - 1]]; at--)
			to[at] = to[at - 1];
		to[at] = (int32_t)i;
	}
	return m;
}

// 1: the mask ends the text.
static int apply_mask(struct yk_sampler *s, const struct yk_sequence *q, float *logits)
{
	const struct yoke_engine_request *r = &q->request->is;
	memset(s->bits, 0xff, (size_t)words_of(s->vocabulary) * sizeof *s->bits);
	const int e = r->mask(r->user, q->choice, q->generated, q->ids + r->count, s->bits);
	if (e > 0)
		return 1;
	if (e < 0)
		return yk_fail(e, "engine: the request's mask failed: %s", yoke_error_name(e));
	for (int64_t i = 0; i < s->vocabulary; i++)
		if (!(s->bits[i / 32] >> i % 32 & 1))
			logits[i] = -INFINITY;
	return 0;
}

// Fills the alternatives of `to`; returns the logarithm of the sum.
static double report(const struct yk_sampler *s, const struct yk_sequence *q, const float *logits,
		     struct yk_queued_event *to)
{
	const int wanted = q->request->is.logprobs;
	const double sum = log_sum(logits, s->vocabulary);
	to->is.alternatives =
		wanted > 0 ? largest(logits, s->vocabulary, wanted, to->alternative) : 0;
	for (int i = 0; i < to->is.alternatives; i++)
		to->logprob[i] = (float)(logits[to->alternative[i]] - sum);
	return sum;
}

void yk_sampler_score(struct yk_sampler *s, const struct yk_sequence *q, const float *logits,
		      int32_t token, struct yk_queued_event *to)
{
	to->is.token = token;
	to->is.logprob = (float)(logits[token] - report(s, q, logits, to));
}

int yk_sampler_choose(struct yk_sampler *s, const struct yk_sequence *q, float *logits,
		      struct yk_queued_event *to)
{
	const struct yoke_engine_request *r = &q->request->is;
	const struct yk_sampling how = {
		.temperature = r->temperature,
		.top_p = r->top_p == 0 ? 1 : r->top_p,
		.seed = r->seed + (uint64_t)q->choice,
		.top_k = r->top_k,
		.min_p = r->min_p,
		.repetition = r->repetition,
		.frequency = r->frequency,
		.presence = r->presence,
	};
	double sum = 0;
	if (r->logprobs) {
		sum = report(s, q, logits, to);
		memcpy(s->raw, logits, (size_t)s->vocabulary * sizeof *logits);
	}
	for (int64_t i = 0; i < r->biases; i++)
		logits[r->bias_id[i]] += r->bias[i];
	int e = r->mask ? apply_mask(s, q, logits) : 0;
	if (e == 0)
		e = yk_sample(logits, (int32_t)s->vocabulary, &how, q->ids, q->n,
			      (uint64_t)q->generated, &to->is.token);
	if (e == 0 && r->logprobs)
		to->is.logprob = (float)(s->raw[to->is.token] - sum);
	return e;
}
