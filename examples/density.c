// SPDX-License-Identifier: Apache-2.0
// Computes the local density of states of a disordered chain, -Im G_ii(E + i eta) / pi, at 400
// energies: one matrix, many z. In the printed picture each column is an energy and each line a
// twelfth of the chain.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <yoke.h>

enum { N = 600, ENERGIES = 400, LINES = 12, COLUMNS = 80 };

int main(void)
{
	static const char shade[] = " .:-=+*#%@";
	static float a[N], z[ENERGIES][2], g[ENERGIES][N][2];
	const int64_t n = N, points[] = { ENERGIES, 2 };
	double total = 0;
	srand(1);
	for (int i = 0; i < N; i++) // disorder that grows along the chain
		a[i] = (float)i / N * 3 * ((float)rand() / (float)RAND_MAX - 0.5f);
	for (int e = 0; e < ENERGIES; e++) {
		z[e][0] = -4 + 8 * (float)e / (ENERGIES - 1);
		z[e][1] = 0.05f;
	}
	yoke_tensor *y = yoke_resolvent(yoke_from(yoke_f32, 1, &n, a), YOKE_NONE, YOKE_NONE,
					yoke_from(yoke_f32, 2, points, z), NULL);
	if (yoke_read(y, g, sizeof g) < 0)
		return fprintf(stderr, "%s\n", yoke_error()), 1;
	for (int line = 0; line < LINES; line++) {
		for (int c = 0; c < COLUMNS; c++) {
			double sum = 0;
			for (int e = c * ENERGIES / COLUMNS; e < (c + 1) * ENERGIES / COLUMNS; e++)
				for (int i = line * N / LINES; i < (line + 1) * N / LINES; i++)
					sum += (double)g[e][i][1] / 3.14159265;
			const double density = sum / (ENERGIES / COLUMNS * (N / LINES));
			putchar(shade[(int)fmin(9, 18 * density)]);
		}
		putchar('\n');
	}
	for (int e = 0; e < ENERGIES; e++)
		for (int i = 0; i < N; i++)
			total += (double)g[e][i][1] / 3.14159265 * 8 / (ENERGIES - 1) / N;
	printf("states an element between -4 and 4: %.3f\n", total);
	return 0;
}
