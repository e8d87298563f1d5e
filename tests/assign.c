// SPDX-License-Identifier: Apache-2.0
// Tests hazards of assignments: each case is compared bit for bit with sequential execution by
// value, with donation and the arena on and off; copies that could not be avoided are counted.

#include "config.h"

#include "tap.h"
#include "yoke.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

enum { N = 16, ROUNDS = 4 };

// Variables f32 [16] and their expected contents; integers, so every result is exact.
static yoke_tensor *a, *b;
static double A[N], B[N];
static yoke_tensor *kept[ROUNDS]; // held to the end, with their expected contents
static double want_kept[ROUNDS][N];
static int nkept;

static yoke_tensor *shaped(yoke_tensor *x, int64_t rows)
{
	return yoke_reshape(x, 2, DIMS(rows, N / rows));
}

static yoke_tensor *flat(yoke_tensor *x)
{
	return yoke_reshape(x, 1, DIMS(N));
}

static yoke_tensor *part(yoke_tensor *x, int64_t from, int64_t to)
{
	return yoke_slice(x, 0, from, to, 1);
}

static void keep(yoke_tensor *t, const double *want)
{
	memcpy(want_kept[nkept], want, sizeof *want_kept);
	kept[nkept++] = yoke_keep(t);
}

#define EACH(expression) \
	for (int k = 0; k < N; k++) \
		expression

static void diamond(void)
{
	yoke_assign(a, yoke_add(yoke_add(a, yoke_const(1)), yoke_mul(a, yoke_const(2))));
	EACH(A[k] = A[k] + 1 + A[k] * 2);
}

static void swap(void)
{
	double old[N];
	yoke_tensor *t = yoke_reshape(a, 1, DIMS(N)); // a view of the old version
	yoke_assign(a, b);
	yoke_assign(b, t);
	memcpy(old, A, sizeof old);
	memcpy(A, B, sizeof A);
	memcpy(B, old, sizeof B);
}

static void swap_halves(void)
{
	double old[N];
	yoke_assign(a, yoke_concat(2, (yoke_tensor *[]){ part(a, 8, 16), part(a, 0, 8) }, 0));
	memcpy(old, A, sizeof old);
	EACH(A[k] = old[(k + 8) % N]);
}

static void shift_up(void)
{
	yoke_assign(a, yoke_slice_update(a, DIMS(1), part(a, 0, 15)));
	for (int k = N - 1; k > 0; k--)
		A[k] = A[k - 1];
}

static void shift_down(void)
{
	yoke_assign(a, yoke_slice_update(a, DIMS(0), part(a, 1, 16)));
	for (int k = 0; k < N - 1; k++)
		A[k] = A[k + 1];
}

static void reverse(void)
{
	double old[N];
	yoke_assign(a, yoke_flip(a, YOKE_ALL));
	memcpy(old, A, sizeof old);
	EACH(A[k] = old[N - 1 - k]);
}

static void add_reverse(void)
{
	double old[N];
	yoke_assign(a, yoke_add(a, yoke_flip(a, YOKE_ALL)));
	memcpy(old, A, sizeof old);
	EACH(A[k] = old[k] + old[N - 1 - k]);
}

static void add_transpose(void)
{
	double old[N];
	yoke_tensor *m = shaped(a, 4);
	yoke_assign(a, flat(yoke_add(m, yoke_permute(m, (int[]){ 1, 0 }))));
	memcpy(old, A, sizeof old);
	EACH(A[k] = old[k] + old[k % 4 * 4 + k / 4]);
}

static void transpose(void)
{
	double old[N];
	yoke_assign(a, flat(yoke_permute(shaped(a, 2), (int[]){ 1, 0 })));
	memcpy(old, A, sizeof old);
	EACH(A[k] = old[k % 2 * 8 + k / 2]);
}

// A cache of 8 rows of 2; each step writes one row and reads all.
static void cache_append(void)
{
	static int t;
	int row = t++ % 8;
	yoke_tensor *v = yoke_reshape(part(b, 0, 2), 2, DIMS(1, 2));
	yoke_assign(a, flat(yoke_slice_update(shaped(a, 8), DIMS(row, 0), v)));
	yoke_assign(b, yoke_add(b, yoke_broadcast_to(yoke_sum(a, YOKE_ALL), 1, DIMS(N))));
	A[2 * row] = B[0];
	A[2 * row + 1] = B[1];
	double sum = 0;
	EACH(sum += A[k]);
	EACH(B[k] += sum);
}

// A reader between two assignments gets the version between them, though it is evaluated after the
// last.
static void between(void)
{
	double mid[N];
	yoke_assign(a, yoke_mul(a, yoke_const(2)));
	yoke_tensor *t = yoke_add(a, yoke_const(7));
	yoke_assign(a, yoke_add(a, yoke_const(3)));
	EACH(mid[k] = A[k] * 2 + 7);
	EACH(A[k] = A[k] * 2 + 3);
	keep(t, mid);
}

static void before(void)
{
	double old[N];
	yoke_tensor *t = yoke_mul(a, yoke_const(10));
	yoke_assign(a, yoke_add(a, yoke_const(1)));
	EACH(old[k] = A[k] * 10);
	EACH(A[k] += 1);
	keep(t, old);
}

static void twice(void)
{
	yoke_assign(a, yoke_mul(a, yoke_const(100)));
	yoke_assign(a, yoke_add(b, yoke_const(1)));
	EACH(A[k] = B[k] + 1);
}

static void twice_read(void)
{
	yoke_assign(a, yoke_mul(a, yoke_const(2)));
	yoke_assign(b, yoke_add(a, b));
	yoke_assign(a, yoke_add(a, yoke_const(1)));
	EACH(B[k] += A[k] * 2);
	EACH(A[k] = A[k] * 2 + 1);
}

static void crossed(void)
{
	yoke_assign(a, yoke_add(b, yoke_const(1)));
	yoke_assign(b, yoke_add(a, yoke_const(1)));
	EACH(A[k] = B[k] + 1);
	EACH(B[k] = A[k] + 1);
}

static void crossed_old(void)
{
	double old[N];
	yoke_tensor *t = flat(a);
	yoke_assign(a, yoke_add(b, yoke_const(1)));
	yoke_assign(b, yoke_add(t, yoke_const(2)));
	memcpy(old, A, sizeof old);
	EACH(A[k] = B[k] + 1);
	EACH(B[k] = old[k] + 2);
}

static void parts_of_both(void)
{
	yoke_assign(b, yoke_slice_update(b, DIMS(4), part(a, 0, 8)));
	yoke_assign(a, yoke_slice_update(a, DIMS(2), part(b, 3, 9)));
	memcpy(B + 4, A, 8 * sizeof *B);
	memcpy(A + 2, B + 3, 6 * sizeof *A);
}

static void rows_of_itself(void)
{
	static const int32_t row[3] = { 3, 0, 3 };
	yoke_tensor *m = shaped(a, 4), *i = yoke_from(yoke_i32, 1, DIMS(3), row);
	yoke_assign(a, flat(yoke_scatter_add(m, i, yoke_slice(m, 0, 0, 3, 1))));
	double old[N];
	memcpy(old, A, sizeof old);
	for (int r = 0; r < 3; r++)
		for (int k = 0; k < 4; k++)
			A[row[r] * 4 + k] += old[r * 4 + k];
}

static void square(void)
{
	double old[N];
	yoke_tensor *m = shaped(a, 4);
	yoke_assign(a, flat(yoke_matmul(m, m, 0)));
	memcpy(old, A, sizeof old);
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 4; j++) {
			A[4 * i + j] = 0;
			for (int k = 0; k < 4; k++)
				A[4 * i + j] += old[4 * i + k] * old[4 * k + j];
		}
}

static void hold_old(void)
{
	keep(shaped(a, 2), A); // a view of a version that an update could overwrite
	yoke_assign(a, yoke_sub(a, yoke_const(5)));
	EACH(A[k] -= 5);
}

static void share(void)
{
	yoke_assign(b, a); // two variables with the same elements
	yoke_eval(0, NULL);
	yoke_assign(a, yoke_add(a, yoke_const(1)));
	memcpy(B, A, sizeof B);
	EACH(A[k] += 1);
}

static void through_concat(void)
{
	double old[N];
	yoke_tensor *half = yoke_mul(part(a, 0, 8), yoke_const(3)), *rest = part(a, 0, 8);
	yoke_assign(a, yoke_concat(2, (yoke_tensor *[]){ rest, half }, 0));
	memcpy(old, A, sizeof old);
	EACH(A[k] = k < 8 ? old[k] : 3 * old[k - 8]);
}

static const struct {
	const char *name;
	void (*run)(void);
	int copies; // number of assignments per round that cannot be in place; -1: any
} row[] = {
	{ "diamond", diamond, 0 },
	{ "swap", swap, -1 },
	{ "swap halves", swap_halves, 1 },
	{ "overlapping shift up", shift_up, -1 },
	{ "overlapping shift down", shift_down, -1 },
	{ "reverse", reverse, 1 },
	{ "add its own reverse", add_reverse, 1 },
	{ "add its own transpose", add_transpose, 1 },
	{ "transpose", transpose, 1 },
	{ "append to a cache", cache_append, 0 },
	{ "read between two writes, realised behind both", between, 0 },
	{ "reader recorded before an assignment", before, 0 },
	{ "two assignments, the first dead", twice, -1 },
	{ "two assignments, the first read", twice_read, -1 },
	{ "each from the other", crossed, -1 },
	{ "each from the other's old version", crossed_old, -1 },
	{ "parts of each other", parts_of_both, -1 },
	{ "rows of itself added to itself", rows_of_itself, -1 },
	{ "matrix times itself", square, 1 },
	{ "a view of the old version is held", hold_old, -1 },
	{ "two variables with the same elements", share, -1 },
	{ "concat of itself and a map of itself", through_concat, 1 },
};

enum { ROWS = sizeof row / sizeof *row };

static bool same(yoke_tensor *t, const double *want, const char *name, const char *which)
{
	float got[N];
	memset(got, 0xff, sizeof got);
	int err = yoke_read(t, got, sizeof got), wrong = -1;
	for (int k = 0; k < N && wrong < 0; k++)
		if ((double)got[k] != want[k])
			wrong = k;
	if (err || wrong >= 0)
		diag("%s, %s: [%d] got %g want %g %s", name, which, wrong,
		     (double)got[wrong < 0 ? 0 : wrong], want[wrong < 0 ? 0 : wrong], yoke_error());
	return !err && wrong < 0;
}

// Writes new integers to a variable.
static void fill(yoke_tensor *t, double *x)
{
	float f[N];
	EACH(f[k] = (float)(x[k] = (double)rnd_int(-3, 3)));
	yoke_put(t, f, sizeof f);
}

static uint64_t copies(void)
{
	struct yoke_stats s = { .size = sizeof s };
	yoke_stats(&s);
	return s.assign_copies;
}

// Runs rounds with new data each, so that later ones reuse plans. The first read evaluates
// everything.
static bool try(size_t i, bool kept_first, uint64_t *copied)
{
	bool good = true;
	nkept = 0;
	*copied = copies();
	for (int r = 0; r < ROUNDS && good; r++) {
		fill(a, A);
		fill(b, B);
		yoke_scope *s = yoke_scope_begin("row");
		row[i].run();
		if (nkept && kept_first)
			good &= same(kept[nkept - 1], want_kept[nkept - 1], row[i].name,
				     "kept, first");
		good &= same(a, A, row[i].name, "a") && same(b, B, row[i].name, "b");
		good &= yoke_scope_end(s) == 0;
	}
	*copied = copies() - *copied;
	for (int k = 0; k < nkept; k++) {
		good &= same(kept[k], want_kept[k], row[i].name, "kept");
		yoke_free(kept[k]);
	}
	return good;
}

static uint64_t launches(void)
{
	struct yoke_stats s = { .size = sizeof s };
	yoke_stats(&s);
	return s.launches;
}

// A version without readers is not computed.
static void dead_version(void)
{
	uint64_t steps[2];
	for (int dead = 0; dead < 2; dead++) {
		yoke_scope *s = yoke_scope_begin("dead");
		uint64_t before = launches();
		if (dead)
			yoke_assign(a, yoke_softmax(yoke_exp(a), -1));
		yoke_assign(a, yoke_add(b, yoke_const(1)));
		yoke_eval(0, NULL);
		steps[dead] = launches() - before;
		yoke_scope_end(s);
	}
	ok(steps[0] == steps[1] || tap_eager(), "an unread version adds no step: %llu, %llu",
	   (unsigned long long)steps[0], (unsigned long long)steps[1]);
}

int main(void)
{
	tap_seed();
	a = yoke_variable("a", yoke_f32, 1, DIMS(N));
	b = yoke_variable("b", yoke_f32, 1, DIMS(N));
	yoke_setting_set("log", "error"); // new plans are expected
	for (int mode = 0; mode < 8; mode++) {
		yoke_setting_set("donate", mode & 1 ? "0" : "1");
		yoke_setting_set("arena", mode & 2 ? "0" : "1");
		for (size_t i = 0; i < ROWS; i++) {
			uint64_t n;
			bool good = try(i, mode & 4, &n);
			ok(good, "random assignments %s; donate %d, arena %d, kept read %s",
			   row[i].name, !(mode & 1), !(mode & 2), mode & 4 ? "first" : "last");
			if (mode || row[i].copies < 0 || tap_eager())
				continue;
			ok(n == (uint64_t)row[i].copies * ROUNDS,
			   "%s: %llu assignments copied, want %d", row[i].name,
			   (unsigned long long)n, row[i].copies * ROUNDS);
		}
	}
	dead_version();
	return done();
}
