// SPDX-License-Identifier: Apache-2.0
// Tests whether matrix units multiply as matrix.cl expects. One warp; data: 16 lines of a and 16
// columns of b, contiguous along k; then 16 x 16 sums of twice their product, and again with b's
// tile transposed. MATRIX, WARP: as in matrix.cl.
#ifndef MATRIX
#define MATRIX 3
#endif
#include "matrix.cl"

#define ROOM (16 / (int)sizeof(matrix_element))
#define ALONG (MATRIX_K + ROOM) // distance between lines, which are aligned to 16 bytes
#define ACROSS (16 + ROOM)

KERNEL void WORK_GROUP(WARP, 1) units_product(GLOBAL uchar *data)
{
	LOCAL matrix_element a_tile[16 * ALONG], b_tile[16 * ALONG], b_turned[MATRIX_K * ACROSS];
	GLOBAL const matrix_element *a = (GLOBAL const matrix_element *)data,
				    *b = a + 16 * MATRIX_K;
	GLOBAL matrix_sum *y = (GLOBAL matrix_sum *)(data + 32 * MATRIX_K * sizeof(matrix_element));
	struct matrix_sums sums = matrix_zero(), turned = matrix_zero();
	int lane = LOCAL_ID(0);

	for (int i = lane; i < 16 * MATRIX_K; i += WARP) {
		int line = i / MATRIX_K, k = i % MATRIX_K;
		a_tile[line * ALONG + k] = a[i];
		b_tile[line * ALONG + k] = b[i];
		b_turned[k * ACROSS + line] = b[i];
	}
	BARRIER();
	struct matrix_part x = matrix_a(a_tile, ALONG, lane), z = matrix_b(b_tile, ALONG, lane);
	struct matrix_part t = matrix_b_turned(b_turned, ACROSS, lane);
	for (int twice = 0; twice < 2; twice++) {
		matrix_multiply(&sums, &x, &z, lane);
		matrix_multiply(&turned, &x, &t, lane);
	}
	UNROLL
	for (int i = 0; i < MATRIX_SUMS; i++) {
		int at = matrix_row(i, lane) * 16 + matrix_column(i, lane);
		y[at] = sums.x[i];
		y[256 + at] = turned.x[i];
	}
}
