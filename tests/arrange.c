// SPDX-License-Identifier: Apache-2.0
// Tests einsum and its relatives, functions that arrange elements, results whose number depends on
// values, writes by masks and indices, functions of bits, and quantiles, against float64 loops and
// the C library; gradients against finite differences in f64; errors.
#include "config.h"

#include "slope.h"

static void compare(yoke_tensor *y, const double *want, int64_t n, double tol, const char *what)
{
	double got[4 * LIMIT];
	const bool read = values(y, got, n);
	ok(read && near(got, want, (size_t)n, tol, 1, what), "%s: %s", what, yoke_error());
	yoke_error_clear();
}

static void fails(int code, yoke_tensor *y, const char *what)
{
	const char *text = yoke_error();
	ok(!y && yoke_error_code() == code && *text && !strchr(text, '\n'), "%s: %s", what, text);
	yoke_error_clear();
}

// ---- einsum ----

enum { OPERANDS = 10 };
// of a letter; digits are axes of one element under that letter's name
static int64_t size_of(char c)
{
	return 2 + (c - 'a') % 3;
}

struct einsum {
	const char *text;     // for einsum
	const char *terms;    // for the reference: letters alone, capitals have one element
	double *x[OPERANDS];
	int of, n;            // operand that varies, number of operands
};

static int dims_of(const char *term, int64_t *dims)
{
	int rank = 0;
	for (; *term && *term != ',' && *term != '-'; term++)
		dims[rank++] = *term >= 'a' ? size_of(*term) : 1;
	return rank;
}

static const char *term_of(const struct einsum *e, int k)
{
	const char *at = e->terms;
	for (; k; k--)
		at = strchr(at, ',') + 1;
	return at;
}

static yoke_tensor *einsum_fn(yoke_tensor *x, void *arg)
{
	const struct einsum *e = arg;
	yoke_tensor *in[OPERANDS];
	int64_t dims[YOKE_MAX_RANK];
	for (int k = 0; k < e->n; k++) {
		const int rank = dims_of(term_of(e, k), dims);
		in[k] = k == e->of ? x : yoke_from(yoke_f64, rank, dims, e->x[k]);
	}
	return yoke_einsum(e->text, e->n, in);
}

// Adds each product of elements to the result's element, for all values of all letters.
static int64_t einsum_reference(const struct einsum *e, double *y)
{
	const char *result = strchr(e->terms, '>') + 1;
	int64_t at[26] = { 0 }, dims[YOKE_MAX_RANK];
	const int64_t n = product(dims_of(result, dims), dims);
	bool present[26] = { false };
	for (const char *c = e->terms; *c; c++)
		if (*c >= 'a')
			present[*c - 'a'] = true;
	memset(y, 0, (size_t)n * sizeof *y);
	for (bool more = true; more;) {
		double all = 1;
		for (int k = 0; k <= e->n; k++) {
			const char *term = k < e->n ? term_of(e, k) : result;
			int64_t index = 0;
			for (; *term && *term != ',' && *term != '-'; term++)
				index = *term >= 'a' ? index * size_of(*term) + at[*term - 'a'] :
						       index;
			if (k < e->n)
				all *= e->x[k][index];
			else
				y[index] += all;
		}
		more = false;
		for (int c = 0; c < 26 && !more; c++) {
			if (!present[c])
				continue;
			at[c] = (at[c] + 1) % size_of((char)('a' + c));
			more = at[c];
		}
	}
	return n;
}

static void test_einsum(void)
{
	static const struct {
		const char *text, *terms;
		int n;
	} row[] = {
		{ "ab->ba", "ab->ba", 1 },
		{ "ab->", "ab->", 1 },
		{ "aab", "aab->b", 1 },
		{ "aa->a", "aa->a", 1 },
		{ "aaa->a", "aaa->a", 1 },
		{ "bab->ab", "bab->ab", 1 },
		{ "ab,bc", "ab,bc->ac", 2 },
		{ "ab,bc->ca", "ab,bc->ca", 2 },
		{ "ba,cb->ac", "ba,cb->ac", 2 },
		{ "ab,cb->ac", "ab,cb->ac", 2 },
		{ "dab,dbc->dac", "dab,dbc->dac", 2 },
		{ "adb,bcd->dca", "adb,bcd->dca", 2 },
		{ "ab,ab", "ab,ab->", 2 },
		{ "ab,ab->a", "ab,ab->a", 2 },
		{ "ab,ab->ab", "ab,ab->ab", 2 },
		{ "a,b->ab", "a,b->ab", 2 },
		{ "a,b", "a,b->ab", 2 },
		{ "abc,cbd->ad", "abc,cbd->ad", 2 },
		{ "abcd,cbef->adef", "abcd,cbef->adef", 2 },
		{ "ab,ac,ad->bcd", "ab,ac,ad->bcd", 3 },
		{ "ab,bc,cd,de->ae", "ab,bc,cd,de->ae", 4 },
		{ "aab,bcc->ac", "aab,bcc->ac", 2 },
		{ "abc,d->a", "abc,d->a", 2 },
		{ " a b , b c -> a c ", "ab,bc->ac", 2 },
		{ "ab,bc->ac", "aB,bc->ac", 2 },
		{ "ab,ab->ab", "Ab,aB->ab", 2 },
		{ "a...b,b...->a...", "acdb,bcd->acd", 2 },
		{ "...b,bc", "aeb,bc->aec", 2 },
		{ "...,...", "acd,cd->acd", 2 },
		{ "a...->...", "acd->cd", 1 },
		{ "...a,...a->...", "cda,da->cd", 2 },
		{ "ab,bc,cd,de,ef,fg,gh,hi,ij,jk->ak", "ab,bc,cd,de,ef,fg,gh,hi,ij,jk->ak", 10 },
	};
	static double data[OPERANDS][256], want[2 * LIMIT];
	for (size_t r = 0; r < sizeof row / sizeof *row; r++) {
		struct einsum e = { .text = row[r].text, .terms = row[r].terms, .n = row[r].n };
		int64_t dims[YOKE_MAX_RANK];
		for (int k = 0; k < e.n; k++) {
			draw(yoke_f64, data[k], 256, -1, 1);
			e.x[k] = data[k];
		}
		e.of = (int)rnd_int(0, e.n - 1);
		const int rank = dims_of(term_of(&e, e.of), dims);
		const int64_t n = einsum_reference(&e, want);
		yoke_scope *s = yoke_scope_begin("einsum");
		compare(einsum_fn(yoke_from(yoke_f64, rank, dims, e.x[e.of]), &e), want, n, 1e-13,
			e.text);
		yoke_scope_end(s);
		gradient(einsum_fn, &e, rank, dims, e.x[e.of], product(rank, dims), e.text);
	}
}

// Operands 3 and 35 share an axis that no other one has; the others are vectors.
static void test_einsum_many(void)
{
	enum { MANY = 40, N = 3, M = 4 };
	double vector[N], a[N * M], b[N * M], want[N] = { 0 };
	char text[4 * MANY] = "";
	yoke_tensor *in[MANY];
	draw(yoke_f64, a, N * M, -1, 1);
	draw(yoke_f64, b, N * M, -1, 1);
	for (int i = 0; i < N; i++) {
		vector[i] = rnd_real(0.9, 1.1);
		for (int j = 0; j < M; j++)
			want[i] += a[i * M + j] * b[i * M + j];
		want[i] *= pow(vector[i], MANY - 2);
	}
	yoke_scope *s = yoke_scope_begin("many");
	for (int k = 0; k < MANY; k++) {
		const bool wide = k == 3 || k == 35;
		strcat(text, k ? wide ? ",ij" : ",i" : "i");
		in[k] = wide ? yoke_from(yoke_f64, 2, (int64_t[]){ N, M }, k == 3 ? a : b) :
			       yoke_from(yoke_f64, 1, (int64_t[]){ N }, vector);
	}
	strcat(text, "->i");
	compare(yoke_einsum(text, MANY, in), want, N, 1e-13, "40 operands");
	yoke_scope_end(s);
}

static void test_einsum_errors(void)
{
	yoke_scope *s = yoke_scope_begin("errors");
	yoke_tensor *a = yoke_full(yoke_f32, 2, (int64_t[]){ 2, 3 }, 1),
		    *b = yoke_full(yoke_f32, 2, (int64_t[]){ 4, 5 }, 1),
		    *d = yoke_full(yoke_f64, 2, (int64_t[]){ 3, 5 }, 1);
	fails(YOKE_ESHAPE, yoke_einsum("ij,jk", 2, (yoke_tensor *[]){ a, b }), "sizes that differ");
	fails(YOKE_ESHAPE, yoke_einsum("ijk,jk", 2, (yoke_tensor *[]){ a, b }),
	      "a term for another rank");
	fails(YOKE_ESHAPE, yoke_einsum("ii", 1, (yoke_tensor *[]){ a }),
	      "a diagonal of different sizes");
	fails(YOKE_EDTYPE, yoke_einsum("ij,jk", 2, (yoke_tensor *[]){ a, d }),
	      "dtypes that differ");
	fails(YOKE_EINVAL, yoke_einsum("ij,jk->ii", 2, (yoke_tensor *[]){ a, a }),
	      "an axis twice in the result");
	fails(YOKE_EINVAL, yoke_einsum("ij,jk->il", 2, (yoke_tensor *[]){ a, a }),
	      "an axis that no operand has");
	fails(YOKE_EINVAL, yoke_einsum("ij", 2, (yoke_tensor *[]){ a, a }), "too few terms");
	fails(YOKE_EINVAL, yoke_einsum("ij,ij", 1, (yoke_tensor *[]){ a }), "too many terms");
	fails(YOKE_EINVAL, yoke_einsum("i?", 1, (yoke_tensor *[]){ a }),
	      "a character that is no letter");
	fails(YOKE_EINVAL, yoke_einsum("ij", 0, NULL), "no operands");
	fails(YOKE_ESHAPE, yoke_tensordot(a, b, 1, (int[]){ 1 }, (int[]){ 0 }),
	      "tensordot of sizes that differ");
	yoke_scope_end(s);
}

static void test_products(void)
{
	enum { A = 2 * 3 * 4, B = 4 * 5 * 2 };
	double a[A], b[B], want[256] = { 0 };
	draw(yoke_f64, a, A, -1, 1);
	draw(yoke_f64, b, B, -1, 1);
	yoke_scope *s = yoke_scope_begin("products");
	yoke_tensor *ta = yoke_from(yoke_f64, 3, (int64_t[]){ 2, 3, 4 }, a),
		    *tb = yoke_from(yoke_f64, 3, (int64_t[]){ 4, 5, 2 }, b);
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 3; j++)
			for (int k = 0; k < 4; k++)
				for (int l = 0; l < 5; l++)
					want[j * 5 + l] +=
						a[(i * 3 + j) * 4 + k] * b[(k * 5 + l) * 2 + i];
	compare(yoke_tensordot(ta, tb, 2, (int[]){ -1, 0 }, (int[]){ 0, 2 }), want, 15, 1e-14,
		"tensordot over two axes");
	for (int i = 0; i < A; i++)
		for (int j = 0; j < 8; j++)
			want[i * 8 + j] = a[i] * b[j];
	compare(yoke_outer(ta, yoke_from(yoke_f64, 1, (int64_t[]){ 8 }, b)), want, 8 * A, 0,
		"outer");
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 12; j++)
			want[i * 12 + j] = a[i / 2 * 3 + j / 4] * b[i % 2 * 4 + j % 4];
	compare(yoke_kron(yoke_from(yoke_f64, 2, (int64_t[]){ 2, 3 }, a),
			  yoke_from(yoke_f64, 2, (int64_t[]){ 2, 4 }, b)),
		want, 48, 0, "kron");
	yoke_scope_end(s);
}

// ---- arranging ----

// Elements of the result by the index of x that they have, -1: 0.
struct arranged {
	const char *name;
	fn *f;
	int rank;
	int64_t dims[4], n;
	int64_t from[256];
	int64_t arg[4];
};

static yoke_tensor *tril_fn(yoke_tensor *x, void *arg)
{
	return yoke_tril(x, ((struct arranged *)arg)->arg[0]);
}
static yoke_tensor *triu_fn(yoke_tensor *x, void *arg)
{
	return yoke_triu(x, ((struct arranged *)arg)->arg[0]);
}
static yoke_tensor *diag_fn(yoke_tensor *x, void *arg)
{
	return yoke_diag(x, ((struct arranged *)arg)->arg[0]);
}
static yoke_tensor *diagonal_fn(yoke_tensor *x, void *arg)
{
	const int64_t *a = ((struct arranged *)arg)->arg;
	return yoke_diagonal(x, a[0], (int)a[1], (int)a[2]);
}
static yoke_tensor *roll_fn(yoke_tensor *x, void *arg)
{
	const int64_t *a = ((struct arranged *)arg)->arg;
	return yoke_roll(x, a[0], (int)a[1]);
}
// Rows from `row` on before those above, of which each has the columns from `column` on before the
// others.
static yoke_tensor *blocks(yoke_tensor *x, int64_t row, int64_t column)
{
	yoke_tensor *rows[2], *part[2];
	for (int k = 0; k < 2; k++) {
		yoke_tensor *half = k ? yoke_slice(x, 0, 0, row, 1) : yoke_slice(x, 0, row, 4, 1);
		part[0] = yoke_slice(half, 1, column, 6, 1);
		part[1] = yoke_slice(half, 1, 0, column, 1);
		rows[k] = yoke_concat(2, part, 1);
	}
	return yoke_concat(2, rows, 0);
}
// Concats within concats, with a view and a product among them; y is read twice.
static yoke_tensor *nested_fn(yoke_tensor *x, void *arg)
{
	yoke_tensor *y = yoke_concat(2, (yoke_tensor *[]){ x, blocks(x, 1, 5) }, 1);
	(void)arg;
	return yoke_concat(4, (yoke_tensor *[]){ blocks(x, 3, 2), y, yoke_neg(yoke_neg(x)), y }, 1);
}
static yoke_tensor *repeat_fn(yoke_tensor *x, void *arg)
{
	const int64_t *a = ((struct arranged *)arg)->arg;
	return yoke_repeat(x, a[0], (int)a[1]);
}
static yoke_tensor *tile_fn(yoke_tensor *x, void *arg)
{
	const int64_t *a = ((struct arranged *)arg)->arg;
	return yoke_tile(x, (int)a[0], a + 1);
}
static yoke_tensor *each_fn(yoke_tensor *x, void *arg)
{
	const int64_t *a = ((struct arranged *)arg)->arg;
	return yoke_repeat_each(
		x, yoke_from(yoke_i64, 1, (int64_t[]){ 3 }, (int64_t[]){ a[0], a[1], a[2] }), a[3],
		1);
}
static yoke_tensor *stack_fn(yoke_tensor *x, void *arg)
{
	(void)arg;
	return yoke_stack(3, (yoke_tensor *[]){ x, x, x }, -2);
}
static yoke_tensor *split_fn(yoke_tensor *x, void *arg)
{
	yoke_tensor *to[3];
	(void)arg;
	if (yoke_split(x, 1, 3, (int64_t[]){ 1, 0, 4 }, to) < 0)
		return NULL;
	return yoke_concat(3, (yoke_tensor *[]){ to[2], to[1], to[0] }, 1);
}
static yoke_tensor *chunk_fn(yoke_tensor *x, void *arg)
{
	yoke_tensor *to[4];
	(void)arg;
	if (yoke_chunk(x, 1, 4, to) != 3 || to[3])
		return NULL;
	return yoke_concat(3, (yoke_tensor *[]){ to[2], to[1], to[0] }, 1);
}
static yoke_tensor *grid_fn(yoke_tensor *x, void *arg)
{
	yoke_tensor *to[2];
	(void)arg;
	return yoke_meshgrid(2, (yoke_tensor *[]){ x, x }, to) < 0 ? NULL : yoke_stack(2, to, 0);
}

static void arrange(struct arranged *a)
{
	double x[LIMIT], want[LIMIT];
	const int64_t n = product(a->rank, a->dims);
	draw(yoke_f64, x, n, -1, 1);
	for (int64_t i = 0; i < a->n; i++)
		want[i] = a->from[i] < 0 ? 0 : x[a->from[i]];
	yoke_scope *s = yoke_scope_begin("arrange");
	compare(a->f(yoke_from(yoke_f64, a->rank, a->dims, x), a), want, a->n, 0, a->name);
	yoke_scope_end(s);
	gradient(a->f, a, a->rank, a->dims, x, n, a->name);
}

static void test_arranged(void)
{
	struct arranged a = { "concats within concats", nested_fn, 2, { 4, 6 }, 144, .arg = { 0 } };
	for (int i = 0; i < 144; i++) {
		const int r = i / 36, c = i % 36, block = c / 6, k = c % 6;
		a.from[i] = block == 0                 ? (r + 3) % 4 * 6 + (k + 2) % 6 :
			    block == 2 || block == 5 ? (r + 1) % 4 * 6 + (k + 5) % 6 :
						       r * 6 + k;
	}
	arrange(&a);
	for (int64_t k = -4; k <= 6; k++) { // [2,3,5]
		for (int upper = 0; upper < 2; upper++) {
			a = (struct arranged){ upper ? "triu" : "tril",
					       upper ? triu_fn : tril_fn,
					       3,
					       { 2, 3, 5 },
					       30,
					       .arg = { k } };
			for (int i = 0; i < 30; i++) {
				const int64_t apart_by = i % 5 - i / 5 % 3;
				a.from[i] = (upper ? apart_by >= k : apart_by <= k) ? i : -1;
			}
			arrange(&a);
		}
		a = (struct arranged){ "diagonal of axes 2 and 0", diagonal_fn, 3, { 4, 2, 3 }, 0,
				       .arg = { k, -1, 0 } };
		int64_t many = 0; // rows are axis 2, columns axis 0
		for (int64_t r = 0; r < 3; r++)
			many += r + k >= 0 && r + k < 4;
		const int64_t first = k < 0 ? -k : 0;
		for (int64_t j = 0; j < 2; j++)
			for (int64_t r = 0; r < many; r++)
				a.from[a.n++] = ((first + r + k) * 2 + j) * 3 + first + r;
		arrange(&a);
		a = (struct arranged){ "diag of a vector", diag_fn, 1, { 4 }, 0, .arg = { k } };
		const int64_t side = 4 + (k < 0 ? -k : k);
		a.n = side * side;
		for (int64_t i = 0; i < a.n; i++)
			a.from[i] = i % side - i / side == k ? (k < 0 ? i % side : i / side) : -1;
		arrange(&a);
		a = (struct arranged){ "roll", roll_fn, 2, { 3, 5 }, 15, .arg = { k, 1 } };
		for (int i = 0; i < 15; i++)
			a.from[i] = i / 5 * 5 + (i % 5 - k + 20) % 5;
		arrange(&a);
	}
	a = (struct arranged){ "diag of a matrix", diag_fn, 2, { 3, 4 }, 3, { 1, 6, 11 }, { 1 } };
	arrange(&a);
	a = (struct arranged){ "repeat", repeat_fn, 3, { 2, 3, 2 }, 36, .arg = { 3, 1 } };
	for (int i = 0; i < 36; i++)
		a.from[i] = i / 18 * 6 + i % 18 / 6 * 2 + i % 2;
	arrange(&a);
	a = (struct arranged){ "tile", tile_fn, 2, { 2, 3 }, 48, .arg = { 3, 2, 2, 2 } };
	for (int i = 0; i < 48; i++)
		a.from[i] = i / 6 % 4 % 2 * 3 + i % 6 % 3;
	arrange(&a);
	a = (struct arranged){ "repeat_each", each_fn, 2, { 2, 3 }, 12, .arg = { 2, 0, 4, 6 } };
	for (int i = 0; i < 12; i++)
		a.from[i] = i / 6 * 3 + (i % 6 < 2 ? 0 : 2);
	arrange(&a);
	a = (struct arranged){ "repeat_each, cut off", each_fn, 2, { 2, 3 }, 8,
			       .arg = { 1, 2, 4, 4 } };
	for (int i = 0; i < 8; i++)
		a.from[i] = i / 4 * 3 + (int64_t[]){ 0, 1, 1, 2 }[i % 4];
	arrange(&a);
	a = (struct arranged){ "repeat_each, filled", each_fn, 2, { 2, 3 }, 10,
			       .arg = { -1, 1, 1, 5 } };
	for (int i = 0; i < 10; i++)
		a.from[i] = i / 5 * 3 + (i % 5 ? 2 : 1);
	arrange(&a);
	a = (struct arranged){ "stack", stack_fn, 2, { 2, 3 }, 18, .arg = { 0 } };
	for (int i = 0; i < 18; i++)
		a.from[i] = i / 9 * 3 + i % 3;
	arrange(&a);
	a = (struct arranged){ "split", split_fn, 2, { 2, 5 }, 10, .arg = { 0 } };
	for (int i = 0; i < 10; i++)
		a.from[i] = i / 5 * 5 + (i % 5 + 1) % 5;
	arrange(&a);
	a = (struct arranged){ "chunk", chunk_fn, 2, { 2, 5 }, 10, .arg = { 0 } };
	for (int i = 0; i < 10; i++)
		a.from[i] = i / 5 * 5 + (int64_t[]){ 4, 2, 3, 0, 1 }[i % 5];
	arrange(&a);
	a = (struct arranged){ "meshgrid", grid_fn, 1, { 3 }, 18, .arg = { 0 } };
	for (int i = 0; i < 18; i++)
		a.from[i] = i < 9 ? i / 3 : i % 3;
	arrange(&a);
}

static void test_tile_of_many_axes(void)
{
	const int64_t dims[] = { 2, 1, 2, 1, 2, 1 }, times[] = { 1, 2, 2, 1, 2, 3 };
	int64_t to[6];
	double x[8], want[192];
	draw(yoke_f64, x, 8, -1, 1);
	for (int k = 0; k < 6; k++)
		to[k] = dims[k] * times[k];
	for (int i = 0; i < 192; i++) {
		int64_t rest = i, from = 0, step = 1;
		for (int k = 5; k >= 0; k--) {
			from += rest % to[k] % dims[k] * step;
			rest /= to[k];
			step *= dims[k];
		}
		want[i] = x[from];
	}
	yoke_scope *s = yoke_scope_begin("tile");
	compare(yoke_tile(yoke_from(yoke_f64, 6, dims, x), 6, times), want, 192, 0,
		"tile of six axes");
	yoke_scope_end(s);
}

static void test_one_hot(void)
{
	static const int dtypes[] = { yoke_i64, yoke_f32, yoke_bool };
	const int64_t ids[] = { 2, 0, -1, 4, 3, 2 };
	double want[24];
	for (int i = 0; i < 24; i++)
		want[i] = ids[i / 4] == i % 4;
	for (int k = 0; k < 3; k++) {
		yoke_scope *s = yoke_scope_begin("one_hot");
		compare(yoke_one_hot(yoke_from(yoke_i64, 2, (int64_t[]){ 2, 3 }, ids), 4,
				     dtypes[k]),
			want, 24, 0, "one_hot");
		yoke_scope_end(s);
	}
}

// ---- numbers of results ----

static void test_counted(void)
{
	enum { N = 60 };
	for (int round = 0; round < 6; round++) {
		const int64_t dims[] = { 3, 4, 5 },
			      capacity = (int64_t[]){ 0, 1, 20, 60, 70, 33 }[round];
		double x[N], selected[LIMIT] = { 0 }, index[3 * LIMIT], count = 0;
		char mask[N];
		for (int i = 0; i < N; i++) {
			x[i] = (double)rnd_int(-1, 1);
			mask[i] = x[i] != 0;
		}
		for (int i = 0; i < 3 * LIMIT; i++)
			index[i] = -1;
		for (int i = 0; i < N; i++)
			if (mask[i]) {
				if (count < (double)capacity) {
					const int at = (int)count;
					index[at] = i / 20;
					index[capacity + at] = i / 5 % 4;
					index[2 * capacity + at] = i % 5;
					selected[at] = x[i];
				}
				count++;
			}
		yoke_scope *s = yoke_scope_begin("counted");
		yoke_tensor *t = yoke_from(yoke_f64, 3, dims, x),
			    *m = yoke_from(yoke_bool, 3, dims, mask), *n;
		compare(yoke_nonzero(t, capacity, &n), index, 3 * capacity, 0, "nonzero");
		compare(n, &count, 1, 0, "the count of nonzero");
		compare(yoke_masked_select(t, m, capacity, &n), selected, capacity, 0,
			"masked_select");
		compare(n, &count, 1, 0, "the count of masked_select");
		const int64_t found = yoke_counted(n, capacity);
		const bool fits = count <= (double)capacity;
		ok(fits ? found == (int64_t)count :
			  found == YOKE_ERANGE && yoke_error_code() == YOKE_ERANGE,
		   "counted: %lld: %s", (long long)found, yoke_error());
		yoke_error_clear();
		yoke_scope_end(s);
	}
	yoke_scope *s = yoke_scope_begin("empty");
	yoke_tensor *none = yoke_full(yoke_f32, 2, (int64_t[]){ 0, 3 }, 0), *n;
	compare(yoke_nonzero(none, 2, &n), (double[]){ -1, -1, -1, -1 }, 4, 0,
		"nonzero without elements");
	compare(yoke_unique(none, 2, NULL, NULL, &n), (double[]){ 0, 0 }, 2, 0,
		"unique without elements");
	compare(n, (double[]){ 0 }, 1, 0, "their number");
	yoke_scope_end(s);
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static void test_unique(void)
{
	enum { N = 48 };
	for (int round = 0; round < 4; round++) {
		const int64_t dims[] = { 6, 8 }, capacity = (int64_t[]){ 48, 50, 5, 9 }[round];
		double x[N], sorted[N], value[64] = { 0 }, counts[64] = { 0 }, inverse[N],
					number = 0;
		for (int i = 0; i < N; i++)
			sorted[i] = x[i] = (double)rnd_int(-4, 4) / 2;
		qsort(sorted, N, sizeof *sorted, by_size);
		double all[N];
		for (int i = 0; i < N; i++)
			if (!i || sorted[i] != sorted[i - 1])
				all[(int)number++] = sorted[i];
		for (int k = 0; k < (int)number && k < capacity; k++)
			value[k] = all[k];
		for (int i = 0; i < N; i++)
			for (int k = 0; k < (int)number; k++)
				if (x[i] == all[k]) {
					inverse[i] = k;
					if (k < capacity)
						counts[k]++;
				}
		yoke_scope *s = yoke_scope_begin("unique");
		yoke_tensor *i, *c, *n,
			*y = yoke_unique(yoke_from(yoke_f64, 2, dims, x), capacity, &i, &c, &n);
		compare(y, value, capacity, 0, "unique");
		compare(i, inverse, N, 0, "its inverse");
		compare(c, counts, capacity, 0, "its counts");
		compare(n, &number, 1, 0, "its number");
		yoke_scope_end(s);
	}
}

// ---- masks and indices ----

struct masked {
	const char *mask;
	const int64_t *i, *j;
	double *other; // the operand that does not vary
	int of, accumulate;
};

static const int64_t grid[] = { 4, 5 };

static yoke_tensor *select_fn(yoke_tensor *x, void *arg)
{
	const struct masked *m = arg;
	return yoke_masked_select(x, yoke_from(yoke_bool, 2, grid, m->mask), 20, NULL);
}

static yoke_tensor *masked_scatter_fn(yoke_tensor *t, void *arg)
{
	const struct masked *m = arg;
	yoke_tensor *other = yoke_from(yoke_f64, 2, grid, m->other),
		    *mask = yoke_from(yoke_bool, 2, grid, m->mask);
	return m->of ? yoke_masked_scatter(other, mask, t) : yoke_masked_scatter(t, mask, other);
}

static yoke_tensor *put_fn(yoke_tensor *t, void *arg)
{
	const struct masked *m = arg;
	const int64_t x[] = { 4, 5, 2 }, v[] = { 3, 4, 2 };
	yoke_tensor *other =
		m->of ? yoke_from(yoke_f64, 3, x, m->other) : yoke_from(yoke_f64, 3, v, m->other);
	yoke_tensor *idx[] = { yoke_from(yoke_i64, 2, (int64_t[]){ 3, 1 }, m->i),
			       yoke_from(yoke_i64, 1, (int64_t[]){ 4 }, m->j) };
	return m->of ? yoke_index_put(other, 2, idx, t, m->accumulate) :
		       yoke_index_put(t, 2, idx, other, m->accumulate);
}

static void test_masks(void)
{
	double x[40], v[40], want[40] = { 0 };
	char mask[20];
	int n = 0;
	draw(yoke_f64, x, 40, -1, 1);
	draw(yoke_f64, v, 40, -1, 1);
	for (int i = 0; i < 20; i++)
		mask[i] = (char)(rnd_int(0, 2) == 0);
	struct masked m = { .mask = mask, .other = v };
	for (int i = 0; i < 20; i++)
		want[i] = mask[i] ? v[n++] : x[i];
	yoke_scope *s = yoke_scope_begin("masks");
	yoke_tensor *t = yoke_from(yoke_f64, 2, grid, x),
		    *bits = yoke_from(yoke_bool, 2, grid, mask);
	compare(masked_scatter_fn(t, &m), want, 20, 0, "masked_scatter");
	for (int i = 0; i < 20; i++)
		want[i] = mask[i] ? 7 : x[i];
	compare(yoke_masked_fill(t, bits, yoke_const(7)), want, 20, 0, "masked_fill");
	compare(yoke_where(bits, yoke_const(7), t), want, 20, 0, "where with a number");
	for (int i = 0; i < 20; i++)
		want[i] = mask[i] ? 1.5 : -2;
	yoke_tensor *two = yoke_where(yoke_cast(bits, yoke_i64), yoke_const(1.5), yoke_const(-2));
	ok(yoke_dtype(two) == yoke_f32, "two numbers are f32");
	compare(two, want, 20, 0, "where of an integer condition with two numbers");
	fails(YOKE_ESHAPE,
	      yoke_masked_fill(t, yoke_full(yoke_bool, 1, (int64_t[]){ 3 }, 1), yoke_const(0)),
	      "a mask of another shape");
	fails(YOKE_EDTYPE, yoke_masked_select(t, t, 4, NULL), "a mask of numbers");
	yoke_tensor *few = yoke_masked_scatter(t, yoke_full(yoke_bool, 0, NULL, 1),
					       yoke_full(yoke_f64, 1, (int64_t[]){ 3 }, 0));
	ok(yoke_read(few, want, 20 * sizeof *want) == YOKE_ERANGE, "too few values: %s",
	   yoke_error());
	yoke_error_clear();
	yoke_scope_end(s);
	gradient(select_fn, &m, 2, grid, x, 20, "masked_select");
	gradient(masked_scatter_fn, &m, 2, grid, x, 20, "masked_scatter");
	m.of = 1;
	gradient(masked_scatter_fn, &m, 2, grid, x, 20, "masked_scatter by the values");
}

static void test_index_put(void)
{
	double x[40], v[24], want[40];
	int64_t i[3], j[4];
	for (int k = 0; k < 3; k++)
		i[k] = rnd_int(0, 3);
	i[2] = i[0];
	for (int k = 0; k < 4; k++)
		j[k] = rnd_int(0, 4);
	draw(yoke_f64, x, 40, -1, 1);
	draw(yoke_f64, v, 24, -1, 1);
	for (int accumulate = 0; accumulate < 2; accumulate++) {
		struct masked m = { .i = i, .j = j, .other = v, .accumulate = accumulate };
		memcpy(want, x, sizeof want);
		for (int k = 0; k < 24; k++) {
			double *to = &want[(i[k / 8] * 5 + j[k / 2 % 4]) * 2 + k % 2];
			*to = accumulate ? *to + v[k] : v[k];
		}
		yoke_scope *s = yoke_scope_begin("index_put");
		compare(put_fn(yoke_from(yoke_f64, 3, (int64_t[]){ 4, 5, 2 }, x), &m), want, 40,
			1e-15, "index_put");
		yoke_scope_end(s);
		gradient(put_fn, &m, 3, (int64_t[]){ 4, 5, 2 }, x, 40, "index_put");
		m.of = 1;
		m.other = x;
		gradient(put_fn, &m, 3, (int64_t[]){ 3, 4, 2 }, v, 24, "index_put by the values");
	}
	i[1] = 4;
	struct masked m = { .i = i, .j = j, .other = v };
	yoke_scope *s = yoke_scope_begin("index_put");
	ok(yoke_read(put_fn(yoke_from(yoke_f64, 3, (int64_t[]){ 4, 5, 2 }, x), &m), want,
		     sizeof want) == YOKE_ERANGE,
	   "out of range: %s", yoke_error());
	yoke_error_clear();
	yoke_scope_end(s);
}

// ---- searching and counting ----

static void test_search(void)
{
	bool good = true;
	for (int64_t n = 0; n < 20; n++)
		for (int right = 0; right < 2; right++) {
			const int64_t s[] = { 2, 3, n }, v[] = { 2, 3, 7 };
			double sorted[120], x[42], got[42], want[42];
			for (int64_t r = 0; r < 6; r++) {
				for (int64_t i = 0; i < n; i++)
					sorted[r * n + i] = (double)rnd_int(0, 12);
				qsort(sorted + r * n, (size_t)n, sizeof *sorted, by_size);
			}
			for (int i = 0; i < 42; i++) {
				const double *row = sorted + i / 7 * n;
				x[i] = (double)rnd_int(-1, 13);
				want[i] = 0;
				for (int64_t k = 0; k < n; k++)
					want[i] += right ? row[k] <= x[i] : row[k] < x[i];
			}
			yoke_scope *scope = yoke_scope_begin("search");
			good = good &&
			       values(yoke_searchsorted(tensor(yoke_f32, 3, s, sorted),
							tensor(yoke_f32, 3, v, x), right),
				      got, 42) &&
			       near(got, want, 42, 0, 1, "positions");
			yoke_scope_end(scope);
		}
	ok(good, "searchsorted in rows of 0 to 19 elements: %s", yoke_error());
	yoke_scope *scope = yoke_scope_begin("search");
	yoke_tensor *b = yoke_from(yoke_f64, 1, (int64_t[]){ 3 }, (double[]){ 1, 2, 3 }),
		    *v = yoke_from(yoke_f64, 1, (int64_t[]){ 4 }, (double[]){ 0, 2, 2.5, 9 });
	compare(yoke_bucketize(v, b, 0), (double[]){ 0, 1, 2, 3 }, 4, 0, "bucketize");
	compare(yoke_bucketize(v, b, 1), (double[]){ 0, 2, 2, 3 }, 4, 0,
		"bucketize from the right");
	fails(YOKE_EDTYPE, yoke_searchsorted(b, yoke_cast(v, yoke_f32), 0),
	      "a search for another dtype");
	fails(YOKE_ESHAPE, yoke_searchsorted(yoke_reshape(b, 2, (int64_t[]){ 1, 3 }), v, 0),
	      "rows for a vector");
	yoke_tensor *w = yoke_from(yoke_f64, 1, (int64_t[]){ 4 }, (double[]){ 1, 2, 4, 8 });
	compare(yoke_histogram_weighted(v, w, 4, 0, 4), (double[]){ 1, 0, 6, 0 }, 4, 0,
		"a histogram of weights");
	yoke_scope_end(scope);
}

static yoke_tensor *weights_fn(yoke_tensor *w, void *arg)
{
	return yoke_histogram_weighted(yoke_from(yoke_f64, 1, (int64_t[]){ 6 }, arg), w, 3, -1, 1);
}

static yoke_tensor *quantile_fn(yoke_tensor *x, void *arg)
{
	const double q[] = { 0, 0.1, 0.35, 0.5, 0.61, 1 };
	return yoke_quantile_by(x, yoke_from(yoke_f64, 1, (int64_t[]){ 6 }, q), 1, *(int *)arg);
}

static void test_quantiles(void)
{
	static const char *const name[] = { "linear", "lower", "higher", "midpoint", "nearest" };
	const double q[] = { 0, 0.1, 0.35, 0.5, 0.61, 1 };
	const int64_t dims[] = { 2, 8 };
	double x[16], sorted[16], want[12], w[6];
	apart(x, 16, 2);
	memcpy(sorted, x, sizeof x);
	qsort(sorted, 8, sizeof *sorted, by_size);
	qsort(sorted + 8, 8, sizeof *sorted, by_size);
	for (int mode = YOKE_QUANTILE_LINEAR; mode <= YOKE_QUANTILE_NEAREST; mode++) {
		for (int i = 0; i < 12; i++) {
			const double *row = sorted + i % 2 * 8, at = q[i / 2] * 7,
				     lo = row[(int)at], hi = row[(int)ceil(at)];
			const double all[] = { lo + (hi - lo) * (at - floor(at)), lo, hi,
					       (lo + hi) / 2, row[(int)rint(at)] };
			want[i] = all[mode];
		}
		yoke_scope *s = yoke_scope_begin("quantile");
		compare(quantile_fn(yoke_from(yoke_f64, 2, dims, x), &mode), want, 12, 1e-15,
			name[mode]);
		yoke_scope_end(s);
		gradient(quantile_fn, &mode, 2, dims, x, 16, name[mode]);
	}
	draw(yoke_f64, x, 6, -1, 1);
	draw(yoke_f64, w, 6, -1, 1);
	gradient(weights_fn, x, 1, (int64_t[]){ 6 }, w, 6, "a histogram by its weights");
}

// ---- bits ----

static yoke_tensor *copysign_fn(yoke_tensor *x, void *arg)
{
	return yoke_copysign(x, yoke_from(yoke_f64, 1, (int64_t[]){ 4 }, arg));
}

static yoke_tensor *hypot_fn(yoke_tensor *x, void *arg)
{
	return yoke_hypot(x, yoke_from(yoke_f64, 1, (int64_t[]){ 4 }, arg));
}

static yoke_tensor *frexp_fn(yoke_tensor *x, void *arg)
{
	(void)arg;
	return yoke_frexp(x, NULL);
}

static void test_bits(void)
{
	static const double v[] = { 0,    -0.0,           1,      -1,       0.5,       3,
				    -7e5, 1e-40,          -1e-44, INFINITY, -INFINITY, NAN,
				    3e38, 1.17549435e-38, 5e-324, 1e300 };
	enum { N = sizeof v / sizeof *v };
	const int64_t n = N, square[] = { N, 1 };
	double want[N * N], e[N], got[N * N], m[N];
	for (int wide = 0; wide < 2; wide++) {
		const int dtype = wide ? yoke_f64 : yoke_f32;
		yoke_scope *s = yoke_scope_begin("bits");
		yoke_tensor *x = tensor(dtype, 1, &n, v), *y = yoke_reshape(x, 2, square),
			    *exponent;
		bool good = values(yoke_copysign(yoke_add(x, yoke_const(0)), y), got, n * n);
		for (int i = 0; i < N * N; i++) {
			const double to = wide ? v[i / N] : (float)v[i / N],
				     from = wide ? v[i % N] : (float)v[i % N];
			good = good && (isnan(got[i]) ? isnan(from) :
							fabs(got[i]) == fabs(from) &&
								!signbit(got[i]) == !signbit(to));
		}
		ok(good, "copysign, %s: %s", yoke_dtype_name(dtype), yoke_error());
		for (int i = 0; i < N * N; i++)
			want[i] = wide ? nextafter(v[i % N], v[i / N]) :
					 nextafterf((float)v[i % N], (float)v[i / N]);
		compare(yoke_nextafter(x, y), want, n * n, 0, "nextafter");
		for (int i = 0; i < N * N; i++)
			want[i] = wide ? hypot(v[i % N], v[i / N]) :
					 hypotf((float)v[i % N], (float)v[i / N]);
		compare(yoke_hypot(x, y), want, n * n, wide ? 4e-16 : 2e-7, "hypot");
		for (int i = 0; i < N; i++) {
			int places = 0;
			m[i] = frexp(wide ? v[i] : (float)v[i], &places);
			e[i] = isfinite(m[i]) ? places : 0;
		}
		compare(yoke_frexp(x, &exponent), m, n, 0, "the mantissa of frexp");
		compare(exponent, e, n, 0, "the exponent of frexp");
		yoke_scope_end(s);
	}
	yoke_scope *s = yoke_scope_begin("bits");
	const float b[] = { 1, 0, -3, 1 }, to[] = { 2, -1, 0, 0 };
	yoke_tensor *x = yoke_cast(yoke_from(yoke_f32, 1, (int64_t[]){ 4 }, b), yoke_bf16),
		    *y = yoke_cast(yoke_from(yoke_f32, 1, (int64_t[]){ 4 }, to), yoke_bf16);
	compare(yoke_nextafter(x, y), (double[]){ 1 + 0x1p-7, -0x1p-133, -3 + 0x1p-6, 1 - 0x1p-8 },
		4, 0, "nextafter in bf16");
	fails(YOKE_EDTYPE, yoke_nextafter(yoke_cast(x, yoke_f16), yoke_cast(y, yoke_f16)),
	      "nextafter in f16");
	yoke_scope_end(s);
	double p[] = { 0.3, -2.5, 5, -0.7 }, sign[] = { -1, 2, 3, -4 };
	gradient(copysign_fn, sign, 1, (int64_t[]){ 4 }, p, 4, "copysign");
	gradient(hypot_fn, sign, 1, (int64_t[]){ 4 }, p, 4, "hypot");
	gradient(frexp_fn, NULL, 1, (int64_t[]){ 4 }, p, 4, "frexp");
}

// Rows of a part of a matrix, whose lengths are multiples of no block, with a value per row and one
// per column; and the same on a variable, whose memory the result takes.
static void test_rows(void)
{
	enum { ROWS = 5, MAX = 1100, MORE = 3 };
	static float x[ROWS * (MAX + MORE)], got[2][ROWS * MAX];
	static unsigned char less[ROWS * MAX];
	float b[ROWS], c[MAX];
	const int lengths[] = {
		1, 63, 64, 65, 127, 255, 256, 257, 300, 321, 1000, 1023, 1025, 1100
	};
	for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
		const int n = lengths[k];
		int wrong = 0;
		for (int i = 0; i < ROWS * (n + MORE); i++)
			x[i] = (float)rnd_real(-1, 1);
		for (int i = 0; i < ROWS; i++)
			b[i] = (float)rnd_real(-1, 1);
		for (int i = 0; i < n; i++)
			c[i] = (float)rnd_real(-1, 1);
		memset(got, 0xff, sizeof got);
		memset(less, 0xff, sizeof less);
		yoke_scope *s = yoke_scope_begin("rows");
		yoke_tensor *all = yoke_from(yoke_f32, 2, (int64_t[]){ ROWS, n + MORE }, x),
			    *part = yoke_slice(all, 1, 1, n + 1, 1),
			    *col = yoke_from(yoke_f32, 2, (int64_t[]){ ROWS, 1 }, b),
			    *row = yoke_from(yoke_f32, 1, (int64_t[]){ n }, c),
			    *y = yoke_mul(yoke_add(part, col), row);
		yoke_tensor *v = yoke_variable(NULL, yoke_f32, 2, (int64_t[]){ ROWS, n });
		yoke_assign(v, part);
		yoke_eval(0, NULL);
		yoke_assign(v, yoke_mul(yoke_add(v, col), v));
		yoke_eval(0, NULL);
		const bool read = yoke_read(y, got[0], sizeof(float) * (size_t)(ROWS * n)) >= 0 &&
				  yoke_read(v, got[1], sizeof(float) * (size_t)(ROWS * n)) >= 0 &&
				  yoke_read(yoke_lt(part, col), less, (size_t)(ROWS * n)) >= 0;
		for (int i = 0; i < ROWS * n; i++) {
			const float at = x[i / n * (n + MORE) + 1 + i % n], sum = at + b[i / n];
			wrong += got[0][i] != sum * c[i % n] || got[1][i] != sum * at ||
				 less[i] != (at < b[i / n]);
		}
		ok(read && !wrong, "rows of %d elements: %d wrong: %s", n, wrong, yoke_error());
		yoke_error_clear();
		yoke_scope_end(s);
	}
}

int main(void)
{
	tap_seed();
	test_rows();
	test_einsum();
	test_einsum_many();
	test_einsum_errors();
	test_products();
	test_arranged();
	test_tile_of_many_axes();
	test_one_hot();
	test_counted();
	test_unique();
	test_masks();
	test_index_put();
	test_search();
	test_quantiles();
	test_bits();
	return done();
}
