// SPDX-License-Identifier: Apache-2.0
// The choice of a token from logits, beside a reference that sorts all tokens in float64 and has
// its own Philox.
#include "config.h"

#include "base/error.h"
#include "models/sampling.h"
#include "tap.h"
#include "yoke.h"

enum { VOCABULARY = 700 };

// ---- reference ----

// Philox 4x32-10 (Salmon et al. 2011), written as in the article: the counter's halves are L and R
static void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t to[4])
{
	uint32_t l[2] = { counter[1], counter[3] }, r[2] = { counter[0], counter[2] };
	static const uint32_t m[2] = { 0xD2511F53, 0xCD9E8D57 }, w[2] = { 0x9E3779B9, 0xBB67AE85 };
	for (uint32_t round = 0; round < 10; round++) {
		uint64_t product[2];
		uint32_t high[2];
		for (int i = 0; i < 2; i++) {
			product[i] = (uint64_t)m[i] * r[i];
			high[i] = (uint32_t)(product[i] >> 32);
		}
		r[0] = high[1] ^ l[0] ^ (key[0] + round * w[0]);
		r[1] = high[0] ^ l[1] ^ (key[1] + round * w[1]);
		l[0] = (uint32_t)product[1];
		l[1] = (uint32_t)product[0];
	}
	to[0] = r[0], to[1] = l[0], to[2] = r[1], to[3] = l[1];
}

struct token {
	double l;
	int32_t id;
};

static int by_logit(const void *a, const void *b)
{
	const struct token *x = a, *y = b;
	return x->l != y->l ? (x->l < y->l) - (x->l > y->l) : x->id - y->id;
}

static int32_t reference(const float *logits, int32_t n, const struct yk_sampling *s,
			 const int32_t *before, int64_t count, uint64_t k)
{
	static struct token t[VOCABULARY];
	int32_t m = 0, kept = 0;
	double sum = 0, part = 0;
	for (int32_t i = 0; i < n; i++) {
		double l = logits[i], times = 0;
		for (int64_t j = 0; j < count; j++)
			times += before[j] == i;
		if (times > 0) {
			if (s->repetition > 0)
				l = l > 0 ? l / s->repetition : l * s->repetition;
			l -= s->frequency * times + s->presence;
		}
		if (isfinite(l))
			t[m++] = (struct token){ (float)l, i };
	}
	qsort(t, (size_t)m, sizeof *t, by_logit);
	if (s->temperature == 0)
		return t[0].id;
	const double largest = t[0].l;
	if (s->top_k && s->top_k < m)
		m = (int32_t)s->top_k;
	for (int32_t i = 0; i < m; i++)
		sum += exp((t[i].l - largest) / s->temperature);
	while (kept < m && (kept == 0 || part < s->top_p * sum))
		part += exp((t[kept++].l - largest) / s->temperature);
	m = kept;
	while (m > 1 && exp((t[m - 1].l - largest) / s->temperature) < s->min_p)
		m--;
	sum = part = 0;
	for (int32_t i = 0; i < m; i++)
		sum += exp((t[i].l - largest) / s->temperature);
	uint32_t bits[4];
	philox((uint32_t[]){ (uint32_t)k, (uint32_t)(k >> 32), 0, 0 },
	       (uint32_t[]){ (uint32_t)s->seed, (uint32_t)(s->seed >> 32) }, bits);
	const double u = (double)(((uint64_t)bits[1] << 32 | bits[0]) >> 11) / 9007199254740992.0;
	for (int32_t i = 0; i < m; i++) {
		part += exp((t[i].l - largest) / s->temperature);
		if (part > u * sum)
			return t[i].id;
	}
	return t[m - 1].id;
}

static void test_philox(void)
{
	// published with Random123
	static const struct {
		uint32_t counter[4], key[2], want[4];
	} known[] = {
		{ { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
		{ { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff }, { 0xffffffff, 0xffffffff },
		  { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
		{ { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 }, { 0xa4093822, 0x299f31d0 },
		  { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
	};
	uint32_t got[4];
	bool good = true;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		philox(known[i].counter, known[i].key, got);
		good = good && !memcmp(got, known[i].want, sizeof got);
	}
	ok(good, "the reference's Philox gives the published bits: %08x", (unsigned)got[0]);
}

static void test_reference(void)
{
	static const int32_t sizes[] = { 1, 2, 3, 37, 256, VOCABULARY };
	static float given[VOCABULARY], logits[VOCABULARY];
	int32_t before[60];
	int wrong = 0, cases = 0;
	for (int round = 0; round < 3000; round++) {
		const int32_t n = sizes[round % 6];
		const int64_t count = rnd_int(0, 60);
		struct yk_sampling s = { .temperature = round % 11 == 0 ? 0 : rnd_real(0.1, 2),
					 .top_p = round % 3 ? rnd_real(0.01, 1) : 1,
					 .seed = (uint64_t)rnd_int(0, INT64_C(1) << 60) - 5,
					 .top_k = round % 4 ? 0 : rnd_int(1, n + 3),
					 .min_p = round % 5 ? 0 : rnd_real(0, 0.5) };
		if (round % 2)
			s.repetition = rnd_real(0.5, 2);
		if (round % 7 > 3) {
			s.frequency = rnd_real(-1, 1);
			s.presence = rnd_real(-1, 1);
		}
		for (int32_t i = 0; i < n; i++) {
			given[i] = (float)rnd_real(-6, 6);
			if (i && round % 13 == 0)
				given[i] = i % 3 ? given[i - 1] : -INFINITY;
		}
		for (int64_t i = 0; i < count; i++)
			before[i] = (int32_t)rnd_int(0, n - 1);
		const uint64_t k = (uint64_t)rnd_int(0, round % 2 ? 5 : INT64_C(1) << 40);
		memcpy(logits, given, (size_t)n * sizeof *logits);
		int32_t got = -1;
		const int e = yk_sample(logits, n, &s, before, count, k, &got);
		const int32_t want = reference(given, n, &s, before, count, k);
		cases++;
		wrong += e < 0 || got != want;
		if (e < 0 || got != want)
			diag("case %d: %d of %d logits, wanted %d", round, (int)got, (int)n,
			     (int)want);
	}
	ok(!wrong, "%d of %d tokens are those of the reference", cases - wrong, cases);
}

// ---- known cases ----

static void test_sampling(void)
{
	enum { N = 5, DRAWS = 20000 };
	const float given[N] = { 0, 2, 1, 2, -INFINITY };
	float logits[N];
	struct yk_sampling s = { .temperature = 0, .top_p = 1, .seed = 7 };
	int count[N] = { 0 };
	int32_t id = -1, again = -1;
	double sum = 0, got[N], want[N];

	memcpy(logits, given, sizeof logits);
	ok(yk_sample(logits, N, &s, NULL, 0, 0, &id) == 0 && id == 1,
	   "temperature 0 selects the first of equals");
	s = (struct yk_sampling){ .temperature = 0.5, .top_p = 1, .seed = 7 };
	for (int i = 0; i < N; i++)
		sum += want[i] = exp(logits[i] / 0.5);
	for (int k = 0; k < DRAWS; k++) {
		yk_sample(logits, N, &s, NULL, 0, (uint64_t)k, &id);
		count[id]++;
	}
	for (int i = 0; i < N; i++)
		got[i] = count[i] / (double)DRAWS, want[i] /= sum;
	near(got, want, N, 0.02, 1, "frequencies at temperature 0.5");
	s = (struct yk_sampling){ .temperature = 1, .top_p = 0.5, .seed = 7 };
	memset(count, 0, sizeof count);
	for (int k = 0; k < 1000; k++) {
		yk_sample(logits, N, &s, NULL, 0, (uint64_t)k, &id);
		count[id]++;
	}
	ok(count[1] > 400 && count[3] > 400 && count[1] + count[3] == 1000,
	   "top_p 0.5 keeps the two most likely");
	yk_sample(logits, N, &s, NULL, 0, 42, &id);
	yk_sample(logits, N, &s, NULL, 0, 42, &again);
	ok(id == again, "the same seed and position give the same token");
	// the two likeliest of top_k; of min_p those above exp(-0.8)
	const struct yk_sampling limits[] = {
		{ .temperature = 1, .top_p = 1, .seed = 7, .top_k = 2 },
		{ .temperature = 1, .top_p = 1, .seed = 7, .min_p = 0.45 }
	};
	for (int i = 0; i < 2; i++) {
		memset(count, 0, sizeof count);
		for (int k = 0; k < 1000; k++) {
			yk_sample(logits, N, &limits[i], NULL, 0, (uint64_t)k, &id);
			count[id]++;
		}
		ok(count[1] > 400 && count[3] > 400 && count[1] + count[3] == 1000,
		   "%s keeps the two most likely", i ? "min_p 0.45" : "top_k 2");
	}
	const int32_t before[] = { 1, 3, 3 };
	const struct yk_sampling penalties[] = {
		{ .repetition = 4 },
		{ .presence = 1.5 },
		{ .frequency = 0.6 },
		{ .frequency = 0.4, .presence = 0.4 },
	};
	const int32_t after[] = { 2, 2, 1, 1 };
	for (int i = 0; i < 4; i++) {
		memcpy(logits, given, sizeof logits);
		yk_sample(logits, N, &penalties[i], before, 3, 0, &id);
		ok(id == after[i], "penalty %d: the largest logit is that of token %d, got %d", i,
		   (int)after[i], (int)id);
	}
	float broken[2] = { NAN, -INFINITY };
	int e = yk_sample(broken, 2, &s, NULL, 0, 0, &id);
	ok(e == YOKE_EFORMAT, "refused: %s", yoke_error());
	yoke_error_clear();
}

int main(void)
{
	tap_seed();
	test_philox();
	test_reference();
	test_sampling();
	return done();
}
