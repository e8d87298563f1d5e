// SPDX-License-Identifier: Apache-2.0
// Contraction in f32: a (..,M,K), b (..,K,N) -> y (..,M,N), any strides, up to 6 leading
// axes d0 .. d5 (those not used have 1 element).  Reference: the contract kernel of the
// CPU backend.
//
// A work group computes a block of BM x BN elements of y; along K it goes in steps of BK:
// its items load both blocks into local memory, zeros where the matrices end, then each
// item works off SM x SN pieces of TM x TN vectors, that lie WG_M * TM rows and WG_N * TN
// * VEC_WIDTH columns apart. Each element is one sum over k in ascending order, whatever
// the parameters.
// Groups: ceil(N / BN) x ceil(M / BM) x product of leading dims; items: WG_N x WG_M.
#ifndef WG_M // items along rows, along columns
#define WG_M 16
#define WG_N 16
#endif
#ifndef TM // rows, vectors in a row of one piece
#define TM 4
#define TN 4
#endif
#ifndef SM // pieces of an item
#define SM 1
#define SN 1
#endif
#ifndef BK
#define BK 16
#endif
#define BM (WG_M * SM * TM)
#define BN (WG_N * SN * TN * VEC_WIDTH)
#define ITEMS (WG_M * WG_N)

// BK x width elements, [k][r]: row or column first_r + r, step first_k + k; zeros beyond the
// matrix.  Neighbouring items read along whichever axis is contiguous.
FN void load_block(LOCAL_POINTER float *to, int width, int item, GLOBAL float *from,
	ulong first_r, ulong r_size, long r_stride, ulong first_k, ulong k_size, long k_stride)
{
	for (int e = item; e < BK * width; e += ITEMS) {
		int k = k_stride == 1 ? e % BK : e / width;
		int r = k_stride == 1 ? e / BK : e % width;
		bool inside = first_k + k < k_size && first_r + r < r_size;
		long at = (long)(first_r + r) * r_stride + (long)(first_k + k) * k_stride;
		to[k * width + r] = inside ? from[at] : 0.0f;
	}
}

KERNEL void WORK_GROUP(WG_N, WG_M) contract(GLOBAL uchar *y_base, ulong y_at,
	GLOBAL uchar *a_base, ulong a_at, GLOBAL uchar *b_base, ulong b_at,
	ulong m_size, ulong n_size, ulong k_size,
	long y_m, long y_n, long a_m, long a_k, long b_k, long b_n,
	ulong d1, ulong d2, ulong d3, ulong d4, ulong d5,
	long y0, long y1, long y2, long y3, long y4, long y5,
	long a0, long a1, long a2, long a3, long a4, long a5,
	long b0, long b1, long b2, long b3, long b4, long b5)
{
	LOCAL float a_block[BK * BM], b_block[BK * BN]; // [k][m], [k][n]
	VEC sum[SM][SN][TM][TN];
	ulong first_m = GROUP_ID(1) * BM, first_n = GROUP_ID(0) * BN, d = GROUP_ID(2);
	int item_m = LOCAL_ID(1), item_n = LOCAL_ID(0), item = item_m * WG_N + item_n;

	long i5 = (long)(d % d5);
	d /= d5;
	long i4 = (long)(d % d4);
	d /= d4;
	long i3 = (long)(d % d3);
	d /= d3;
	long i2 = (long)(d % d2);
	d /= d2;
	long i1 = (long)(d % d1), i0 = (long)(d / d1);
	GLOBAL float *y = (GLOBAL float *)(y_base + y_at) +
		(i0 * y0 + i1 * y1 + i2 * y2 + i3 * y3 + i4 * y4 + i5 * y5);
	GLOBAL float *a = (GLOBAL float *)(a_base + a_at) +
		(i0 * a0 + i1 * a1 + i2 * a2 + i3 * a3 + i4 * a4 + i5 * a5);
	GLOBAL float *b = (GLOBAL float *)(b_base + b_at) +
		(i0 * b0 + i1 * b1 + i2 * b2 + i3 * b3 + i4 * b4 + i5 * b5);

	for (int s = 0; s < SM; s++)
		for (int t = 0; t < SN; t++)
			for (int i = 0; i < TM; i++)
				for (int j = 0; j < TN; j++)
					sum[s][t][i][j] = VEC_SPLAT(0.0f);

	for (ulong first_k = 0; first_k < k_size; first_k += BK) {
		load_block(a_block, BM, item, a, first_m, m_size, a_m, first_k, k_size, a_k);
		load_block(b_block, BN, item, b, first_n, n_size, b_n, first_k, k_size, b_k);
		BARRIER();
		for (int s = 0; s < SM; s++)
			for (int t = 0; t < SN; t++) {
				int pa = (s * WG_M + item_m) * TM;
				int pb = (t * WG_N + item_n) * TN * VEC_WIDTH;
				VEC c[TM][TN], v[TN];
				for (int i = 0; i < TM; i++)
					for (int j = 0; j < TN; j++)
						c[i][j] = sum[s][t][i][j];
				for (int k = 0; k < BK; k++, pa += BM, pb += BN) {
					for (int j = 0; j < TN; j++)
						v[j] = VEC_LOAD(b_block + pb + j * VEC_WIDTH);
					for (int i = 0; i < TM; i++) {
						VEC x = VEC_SPLAT(a_block[pa + i]);
						for (int j = 0; j < TN; j++)
							c[i][j] = VEC_FMA(x, v[j], c[i][j]);
					}
				}
				for (int i = 0; i < TM; i++)
					for (int j = 0; j < TN; j++)
						sum[s][t][i][j] = c[i][j];
			}
		BARRIER();
	}

	for (int s = 0; s < SM; s++)
		for (int t = 0; t < SN; t++)
			for (int i = 0; i < TM; i++)
				for (int j = 0; j < TN; j++) {
					float row[VEC_WIDTH];
					ulong m = first_m + (s * WG_M + item_m) * TM + i;
					int column = ((t * WG_N + item_n) * TN + j) * VEC_WIDTH;
					ulong n = first_n + column;
					VEC_STORE(sum[s][t][i][j], row);
					for (int l = 0; l < VEC_WIDTH; l++, n++)
						if (m < m_size && n < n_size)
							y[(long)m * y_m + (long)n * y_n] = row[l];
				}
}
