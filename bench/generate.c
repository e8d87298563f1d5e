// SPDX-License-Identifier: Apache-2.0
// Measures generation with key-value caches: tokens per second over a full context, and the time
// of the last tokens relative to the first. For each position in the context the fastest time
// over all rounds counts, because other load on the machine affects it least; `first` and `last`
// are means over 8 positions. The prompt is one token; the weights are random.
//
//	bench/generate [texts, 1] [rounds, 5] [layers heads embed context, 6 6 384 256]
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "models/generate.h"

enum { LIMIT = 4096, ENDS = 8 };

static double min[LIMIT], before; // seconds of a position
static int64_t place;

static int emit(void *arg, int text, int32_t id)
{
	(void)arg, (void)id;
	if (text)
		return 0;
	const double now = yk_seconds();
	if (place > 0 && place < LIMIT)
		min[place] = fmin(min[place], now - before);
	before = now;
	place++;
	return 0;
}

static uint64_t plans(void)
{
	struct yoke_stats s = { .size = sizeof s };
	yoke_stats(&s);
	return s.plan_misses;
}

static double mean(int64_t from, int64_t n)
{
	double sum = 0;
	for (int64_t i = from; i < from + n; i++)
		sum += min[i];
	return sum / (double)n;
}

static int measure(const struct yk_network *net, int texts, int rounds)
{
	const struct yk_sampling greedy = { 0 };
	// the prompt's token is in the cache before the first generated one
	const int64_t tokens = net->shape.context;
	struct yk_tokens prompt[YK_SEQUENCES] = { 0 };
	uint64_t planned[2] = { 0 };
	int e = 0;

	for (int i = 0; i < texts && e == 0; i++) {
		e = yk_tokens_reserve(&prompt[i], (int32_t)net->shape.vocab, 1);
		if (e == 0)
			yk_tokens_add(&prompt[i], 65 + i % 26);
	}
	for (int64_t i = 0; i < tokens; i++)
		min[i] = INFINITY;
	for (int r = 0; r < rounds && e == 0; r++) {
		place = 0;
		e = yk_generate(net, &greedy, texts, prompt, tokens, emit, NULL);
		planned[r > 0] = plans();
	}
	for (int i = 0; i < texts; i++)
		yk_tokens_fini(&prompt[i]);
	if (e < 0)
		return e;
	const double first = mean(1, ENDS), last = mean(tokens - ENDS, ENDS);
	printf("%d texts: %.1f tokens/s, first %.3f ms, last %.3f ms: %.2f times; %d plans, %d more behind the first "
	       "round\n",
	       texts, (double)texts / mean(1, tokens - 1), first * 1e3, last * 1e3, last / first,
	       (int)planned[0], rounds > 1 ? (int)(planned[1] - planned[0]) : 0);
	return 0;
}

int main(int argc, char **argv)
{
	const int texts = argc > 1 ? atoi(argv[1]) : 1, rounds = argc > 2 ? atoi(argv[2]) : 5;
	struct yk_model_shape s = {
		.vocab = 256, .context = 256, .layers = 6, .heads = 6, .embed = 384
	};
	struct yk_network *net = NULL;

	if (argc == 7)
		s.layers = atol(argv[3]), s.heads = atol(argv[4]), s.embed = atol(argv[5]),
		s.context = atol(argv[6]);
	if ((argc > 3 && argc != 7) || texts < 1 || texts > YK_SEQUENCES || rounds < 1 ||
	    s.context < 2 * ENDS || s.context > LIMIT)
		return fprintf(stderr,
			       "usage: generate [texts] [rounds] [layers heads embed context]\n"),
		       2;
	int e = yk_network_new(&yk_model_gpt, &s, &net);
	if (e == 0)
		e = yk_parameters_draw(&net->params, 1);
	if (e == 0)
		e = measure(net, texts, rounds);
	if (e < 0)
		fprintf(stderr, "generate: %s\n", yoke_error());
	yk_network_free(net);
	return e < 0;
}
