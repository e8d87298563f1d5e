// SPDX-License-Identifier: Apache-2.0
// Measures the time per step of hand-written training loops (tests/updates.h) after 1,000 and
// after 20,000 steps; the recorded graph must not grow with the number of steps. A step has a
// product of 16 x 16 matrices and about 20 operations. Prints medians over 200 steps in
// microseconds, and the largest number of nodes between steps.
//
//	bench/history [STEPS]

#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "../tests/updates.h"
#include "graph/context.h"
#include "rounds.h"

enum { WINDOW = 200, EARLY = 1000, LATE = 20000 };

// The median over the last steps up to step `to`.
static double run(struct updates *u, int from, int to, size_t *nodes)
{
	static double at[WINDOW];
	for (int i = from; i < to; i++) {
		const double t = yk_seconds();
		update_step(u);
		at[i % WINDOW] = (yk_seconds() - t) * 1e6;
		const size_t n = yk_current()->graph.nodes;
		*nodes = n > *nodes ? n : *nodes;
	}
	return median(at, WINDOW);
}

int main(int argc, char **argv)
{
	const int late = argc > 1 ? atoi(argv[1]) : LATE;
	if (late < EARLY + WINDOW) {
		fprintf(stderr, "bench/history: at least %d steps\n", EARLY + WINDOW);
		return 2;
	}
	printf("%-16s%-32s%-12s%10s%10s%8s\n", "update", "scope", "evaluated", "us early",
	       "us late", "nodes");
	for (int k = 0; k < UPDATES * UPDATE_SCOPES * UPDATE_READS; k++) {
		struct updates u;
		size_t nodes = 0;
		updates_begin(&u, k / (UPDATE_SCOPES * UPDATE_READS),
			      k / UPDATE_READS % UPDATE_SCOPES, k % UPDATE_READS);
		const double first = run(&u, 0, EARLY, &nodes), last = run(&u, EARLY, late, &nodes);
		printf("%-16s%-32s%-12s%10.1f%10.1f%8zu\n", update_name[u.update],
		       update_scope_name[u.scope], update_read_name[u.read], first, last, nodes);
		if (yoke_error_code()) {
			fprintf(stderr, "%s\n", yoke_error());
			return 1;
		}
		updates_end(&u);
	}
	return 0;
}
