// SPDX-License-Identifier: Apache-2.0
// The exponential of a matrix by scaling and squaring of a Pade approximant (Higham 2005), for one
// element type REAL. The degree follows from the 1-norm.

struct pade {
	int degree;
	double below; // the largest 1-norm
	double b[14];
};

static const struct pade pades[] = {
	{ 3, IS_WIDE ? 1.495585217958292e-2 : 4.258730016922831e-1, { 120, 60, 12, 1 } },
	{ 5,
	  IS_WIDE ? 2.539398330063230e-1 : 1.880152677804762,
	  { 30240, 15120, 3360, 420, 30, 1 } },
	{ 7,
	  IS_WIDE ? 9.504178996162932e-1 : 3.925724783138660,
	  { 17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1 } },
#if IS_WIDE
	{ 9,
	  2.097847961257068,
	  { 17643225600, 8821612800, 2075673600, 302702400, 30270240, 2162160, 110880, 3960, 90,
	    1 } },
	{ 13,
	  5.371920351148152,
	  { 64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800,
	    129060195264000, 10559470521600, 670442572800, 33522128640, 1323241920, 40840800,
	    960960, 16380, 182, 1 } },
#endif
};

static void square_product(int64_t n, int64_t ld, const REAL *a, const REAL *b, REAL *c)
{
	product(1, false, n, ld, n, a, ld, 1, b, ld, c, ld);
}

// to = sum over k of factor[k] power[k], plus `one` on the diagonal; count is 4 at most
static void combine(int64_t n, int64_t ld, int count, const REAL *const *power,
		    const double *factor, double one, REAL *to)
{
	for (int64_t i = 0; i < n; i++) {
		for (int64_t j = 0; j < ld; j++) {
			REAL s = 0;
			for (int k = 0; k < count; k++)
				s += (REAL)factor[k] * power[k][i * ld + j];
			to[i * ld + j] = s;
		}
		to[i * ld + i] += (REAL)one;
	}
}

static double norm_1(int64_t n, int64_t ld, const REAL *a)
{
	double max = 0;
	for (int64_t j = 0; j < n; j++) {
		double s = 0;
		for (int64_t i = 0; i < n; i++)
			s += (double)ABS(a[i * ld + j]);
		max = s > max || s != s ? s : max;
	}
	return max;
}

static void exponential(int64_t n, void *from, void *to, int64_t ld, void *memory, int64_t *perm)
{
	REAL *a = from, *y = to, *part[6];
	const int last = (int)(sizeof pades / sizeof *pades) - 1;
	const double norm = norm_1(n, ld, a);
	int which = 0, squarings = 0;
	for (int k = 0; k < 6; k++)
		part[k] = (REAL *)memory + k * n * ld;
	if (!(norm < INFINITY)) {
		for (int64_t i = 0; i < n * ld; i++)
			y[i] = NAN;
		return;
	}
	while (which < last && norm > pades[which].below)
		which++;
	const struct pade *p = &pades[which];
	if (norm > p->below) {
		const double ratio = norm / p->below;
		squarings = ilogb(ratio) + (ratio > exp2(ilogb(ratio)));
		const REAL scale = (REAL)exp2(-squarings);
		for (int64_t i = 0; i < n * ld; i++)
			a[i] *= scale;
	}
	// U = A (odd terms), V = even terms; exp(A) = (V - U)^-1 (V + U)
	REAL *u = part[3], *v = part[4], *sum = part[5];
	const REAL *power[4] = { part[0], part[1], part[2], v }; // A^2, A^4, A^6, A^8
	const double *b = p->b;
	square_product(n, ld, a, a, part[0]);
	if (p->degree > 3)
		square_product(n, ld, part[0], part[0], part[1]);
	if (p->degree > 5)
		square_product(n, ld, part[1], part[0], part[2]);
	if (p->degree < 13) {
		double odd[4], even[4];
		const int terms = p->degree / 2;
		if (terms == 4) // A^8 lies in y until U and V are combined
			square_product(n, ld, part[1], part[1], y);
		power[3] = y;
		for (int k = 0; k < terms; k++) {
			even[k] = b[2 * k + 2];
			odd[k] = b[2 * k + 3];
		}
		combine(n, ld, terms, power, odd, b[1], sum);
		combine(n, ld, terms, power, even, b[0], v);
	} else {
		combine(n, ld, 3, power, (double[]){ b[9], b[11], b[13] }, 0, y);
		square_product(n, ld, part[2], y, sum);
		combine(n, ld, 3, power, (double[]){ b[3], b[5], b[7] }, b[1], y);
		for (int64_t i = 0; i < n * ld; i++)
			sum[i] += y[i];
		combine(n, ld, 3, power, (double[]){ b[8], b[10], b[12] }, 0, y);
		square_product(n, ld, part[2], y, v);
		combine(n, ld, 3, power, (double[]){ b[2], b[4], b[6] }, b[0], y);
		for (int64_t i = 0; i < n * ld; i++)
			v[i] += y[i];
	}
	square_product(n, ld, a, sum, u);
	for (int64_t i = 0; i < n * ld; i++) {
		part[0][i] = v[i] - u[i];
		v[i] += u[i];
	}
	lu(n, n, part[0], ld, (REAL *)memory + 6 * n * ld, perm);
	for (int64_t i = 0; i < n; i++)
		memcpy(y + i * ld, v + perm[i] * ld, (size_t)ld * sizeof *y);
	triangular(n, ld, part[0], ld, false, false, true, false, y, ld);
	triangular(n, ld, part[0], ld, true, false, false, false, y, ld);
	for (; squarings; squarings--) {
		square_product(n, ld, y, y, part[0]);
		memcpy(y, part[0], (size_t)(n * ld) * sizeof *y);
	}
}
