// SPDX-License-Identifier: Apache-2.0
// Tests dist.adapt: the group's first rank chooses the collective algorithm from a table of
// times. Each permitted algorithm is tried, 50 steps apart; the fastest one is kept if it is at
// least 1.2 times as fast as the initial one; a change of the times causes a new choice.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "comm/adapt.h"
#include "comm/tuned.h"
#include "tap.h"

enum { RANKS = 4, STEPS = 900 };

static double table[YK_BY_SHARED];

struct course {
	int now, changes, tried[YK_BY_SHARED];
	bool near; // requests closer than 50 steps
	char said[200];
};

// Steps of one all_reduce each, which initially uses the algorithm `how`.
static void steps(struct yk_adapt *a, uint64_t bytes, int64_t from, int64_t to, bool once,
		  struct course *c)
{
	int64_t last = -1000;
	for (int64_t step = from; step < to; step++) {
		const double noise = 1 + 0.05 * rnd_real(0, 1);
		yk_adapt_took(a, bytes, once, c->now,
			      step % 10 == 3 ? 20 * table[c->now] : noise * table[c->now]);
		c->tried[c->now]++;
		char said[200];
		const uint32_t request = yk_adapt_propose(a, step, said, sizeof said);
		if (*said)
			memcpy(c->said, said, sizeof said);
		if (!request)
			continue;
		c->near |= step - last < 50;
		last = step;
		yk_adapt_apply(a, request);
		c->changes++;
		c->now = yk_adapt_how(a, bytes) - 1;
	}
}

static void set(double tree, double doubling, double halving, double pairwise)
{
	table[YK_BY_TREE] = tree;
	table[YK_BY_DOUBLING] = doubling;
	table[YK_BY_HALVING] = halving;
	table[YK_BY_PAIRWISE] = pairwise;
	table[YK_BY_RING] = table[YK_BY_2D] = 1e-9; // must never be seen
}

int main(void)
{
	const uint64_t bytes = 1 << 20;
	tap_seed();
	// tree: 4 B; doubling: 2 B; halving and pairwise: 1.5 B
	setenv("YOKE_DIST_LINK", "0,1e-8", 1);
	ok(!yk_adapt_enabled(), "adaptation is off by default");
	setenv("YOKE_DIST_ADAPT", "1", 1);
	struct yk_adapt *a = yk_adapt_new(RANKS, RANKS);
	set(1, 1e-3, 3e-3, 0.75e-3); // 1.2 times as fast even with the most noise
	struct course c = { .now = YK_BY_DOUBLING };
	steps(a, bytes, 0, STEPS, false, &c);
	ok(c.now == YK_BY_PAIRWISE && strstr(c.said, "pairwise"),
	   "the fastest algorithm is chosen: %s", c.said);
	ok(c.tried[YK_BY_HALVING] && !c.tried[YK_BY_RING] && !c.tried[YK_BY_2D],
	   "only algorithms with the same bits are tried: halving %d steps, ring %d, 2d %d",
	   c.tried[YK_BY_HALVING], c.tried[YK_BY_RING], c.tried[YK_BY_2D]);
	ok(!c.near && c.changes < 8, "%d changes of the algorithm, at least 50 steps apart",
	   c.changes);
	const int before = c.changes;
	steps(a, bytes, STEPS, 2 * STEPS, false, &c);
	ok(c.changes == before, "the choice is stable while times are");
	set(1, 1e-3, 0.9e-3, 2e-3);
	steps(a, bytes, 2 * STEPS, 4 * STEPS, false, &c);
	ok(c.now == YK_BY_HALVING || c.now == YK_BY_DOUBLING,
	   "an algorithm that becomes slower is replaced: %s", c.said);
	ok(yk_adapt_how(a, 4096) == 0, "the choice for other sizes does not change");
	yk_adapt_free(a);
	a = yk_adapt_new(RANKS, RANKS);
	set(1, 1e-3, 0.9e-3, 0.95e-3);
	c = (struct course){ .now = YK_BY_DOUBLING };
	steps(a, bytes, 0, STEPS, false, &c);
	ok(c.now == YK_BY_DOUBLING, "a gain of 10 %% causes no change");
	yk_adapt_free(a);
	a = yk_adapt_new(RANKS, RANKS);
	set(0.1e-3, 1e-3, 0.9e-3, 0.95e-3);
	c = (struct course){ .now = YK_BY_HALVING };
	steps(a, bytes, 0, STEPS, false, &c);
	ok(!c.tried[YK_BY_TREE],
	   "an algorithm whose predicted time is more than twice the best is not tried");
	yk_adapt_free(a);
	a = yk_adapt_new(RANKS, RANKS);
	set(1, 0.1e-3, 0.1e-3, 1e-3);
	c = (struct course){ .now = YK_BY_PAIRWISE };
	steps(a, bytes, 0, STEPS, true, &c);
	ok(c.now == YK_BY_PAIRWISE && !c.changes,
	   "half precision uses the only algorithm that rounds once");
	yk_adapt_free(a);
	return done();
}
