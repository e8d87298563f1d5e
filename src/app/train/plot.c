// SPDX-License-Identifier: Apache-2.0
// Draws a learning-rate schedule as text: steps to the right, the rate upwards from 0.
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "train/run.h"

enum { WIDE = 60, HIGH = 12 };

// The step that a column represents.
static int64_t step_of(int column, int columns, int64_t steps)
{
	return columns < 2 ?
		       1 :
		       1 + (int64_t)((double)column * (double)(steps - 1) / (columns - 1) + 0.5);
}

void yk_run_plot(const struct yk_lr_schedule *s, int64_t steps, struct yk_progress *p)
{
	char row[HIGH][WIDE + 1];
	double max = 0;
	const int columns = steps < WIDE ? (int)steps : WIDE;
	memset(row, ' ', sizeof row);
	for (int c = 0; c < columns; c++)
		max = fmax(max, yk_schedule_lr(s, step_of(c, columns, steps)));
	for (int c = 0; c < columns; c++) {
		double share = max > 0 ? yk_schedule_lr(s, step_of(c, columns, steps)) / max : 0;
		row[HIGH - 1 - (int)(share * (HIGH - 1) + 0.5)][c] = '*';
	}
	yk_progress_print(p, "learning rate: %s, %" PRId64 " steps", yk_schedule_names[s->kind],
			  steps);
	for (int k = 0; k < HIGH; k++) {
		int n = columns;
		while (n > 0 && row[k][n - 1] == ' ')
			n--;
		yk_progress_print(p, "%10.3g |%.*s", max * (HIGH - 1 - k) / (HIGH - 1), n, row[k]);
	}
	yk_progress_print(p, "%10s +%.*s", "", columns,
			  "------------------------------------------------------------");
	yk_progress_print(p, "%10s  1%*" PRId64, "step", columns > 1 ? columns - 1 : 0, steps);
}
