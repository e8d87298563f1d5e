// SPDX-License-Identifier: Apache-2.0
// Trend of a series: Theil-Sen slope and Mann-Kendall statistic, which single spikes hardly affect.
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "report/conditions.h"

enum { LIMIT = 300 };

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;
	return (a > b) - (a < b);
}

// Correction for ties: sum of t (t - 1)(2 t + 5) over groups of t equal values.
static double ties(int n, const double *y)
{
	double sorted[LIMIT], sum = 0;
	for (int i = 0; i < n; i++)
		sorted[i] = y[i];
	qsort(sorted, (size_t)n, sizeof *sorted, by_value);
	for (int i = 0, k; i < n; i = k) {
		for (k = i; k < n && sorted[k] == sorted[i]; k++)
			;
		double t = k - i;
		sum += t * (t - 1) * (2 * t + 5);
	}
	return sum;
}

double yk_trend(int n, const double *x, const double *y, double *z)
{
	double *slope, s = 0, middle = 0, xs[LIMIT], ys[LIMIT];
	size_t slopes = 0;
	int m = n < LIMIT ? n : LIMIT;
	*z = 0;
	for (int i = 0; i < m; i++) { // a longer series is sampled evenly
		int at = m < n ? (int)((double)i * (n - 1) / (m - 1)) : i;
		xs[i] = x[at];
		ys[i] = y[at];
	}
	if (m < 3 || !(slope = malloc((size_t)m * (size_t)(m - 1) / 2 * sizeof *slope)))
		return 0;
	for (int i = 0; i < m; i++)
		for (int k = i + 1; k < m; k++) {
			s += (ys[k] > ys[i]) - (ys[k] < ys[i]);
			if (xs[k] != xs[i])
				slope[slopes++] = (ys[k] - ys[i]) / (xs[k] - xs[i]);
		}
	qsort(slope, slopes, sizeof *slope, by_value);
	if (slopes)
		middle = slopes % 2 ? slope[slopes / 2] :
				      (slope[slopes / 2 - 1] + slope[slopes / 2]) / 2;
	free(slope);
	double variance = ((double)m * (m - 1) * (2. * m + 5) - ties(m, ys)) / 18;
	if (variance > 0 && s != 0)
		*z = (s > 0 ? s - 1 : s + 1) / sqrt(variance);
	return middle;
}
