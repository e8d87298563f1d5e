// SPDX-License-Identifier: Apache-2.0
// Computes the transmission of a chain between two leads, T(E) = G_L G_R |G_1N|^2 (Fisher and Lee
// 1981): for equal sites, and with one site raised by 0.8.
// The leads are half-infinite chains with the same hopping 1. Their self-energy at energy E
// within the band is S = (E - i sqrt(4 - E^2)) / 2, added to the first and the last site; G = -2
// Im S.
#include <math.h>
#include <stdio.h>
#include <yoke.h>

enum { N = 200, ENERGIES = 13 };

int main(void)
{
	static double a[2][ENERGIES][N], a_im[ENERGIES][N], z[ENERGIES][2], g[2][ENERGIES][2];
	const int64_t sites[] = { 2, ENERGIES, N }, leads[] = { ENERGIES, N },
		      points[] = { ENERGIES, 2 };
	for (int i = 0; i < ENERGIES; i++) {
		const double e = -1.8 + 0.3 * i;
		z[i][0] = e; // on the real axis: the leads broaden all states
		a_im[i][0] = a_im[i][N - 1] = -sqrt(4 - e * e) / 2;
		for (int k = 0; k < 2; k++)
			a[k][i][0] = a[k][i][N - 1] = e / 2;
		a[1][i][N / 2] = 0.8;
	}
	yoke_tensor *y = yoke_resolvent_corner(yoke_from(yoke_f64, 3, sites, a),
					       yoke_from(yoke_f64, 2, leads, a_im), YOKE_NONE,
					       YOKE_NONE, yoke_from(yoke_f64, 2, points, z));
	if (yoke_read(y, g, sizeof g) < 0)
		return fprintf(stderr, "%s\n", yoke_error()), 1;
	printf("  energy  equal sites   one higher\n");
	for (int i = 0; i < ENERGIES; i++) {
		const double gamma = sqrt(4 - z[i][0] * z[i][0]);
		double t[2];
		for (int k = 0; k < 2; k++)
			t[k] = gamma * gamma * (g[k][i][0] * g[k][i][0] + g[k][i][1] * g[k][i][1]);
		printf("%8.3f %12.10f %12.10f\n", z[i][0], t[0], t[1]);
	}
	return 0;
}
