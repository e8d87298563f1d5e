// SPDX-License-Identifier: Apache-2.0
// paged_attention against loops in float64, by its kernel and by its decomposition; a query's bits
// do not depend on the others; scatter_set replaces rows in order, by its kernel and by its
// decomposition. `paged.t kernel` tests kernels only, of the device that YOKE_BACKEND names.
#include "config.h"

#include "tap.h"
#include "yoke.h"

enum { PAGE = 16, PAGES = 24, ROWS = 3, M = 40, MOST = 64 };

struct shape {
	int64_t h, g, d, window;
	double cap;
	int dtype; // of the cache
};

static int32_t table[ROWS * M];
static float keys[ROWS * M * PAGE * 192], values[ROWS * M * PAGE * 192];

static yoke_tensor *cache_of(const struct shape *s, const float *from, int64_t pages)
{
	const int64_t dims[] = { pages, PAGE, s->g, s->d };
	return yoke_cast(yoke_from(yoke_f32, 4, dims, from), s->dtype);
}

// Fills the caches with numbers that f16 and bf16 have.
static void draw_cache(const struct shape *s, int64_t pages)
{
	for (int64_t i = 0; i < pages * PAGE * s->g * s->d; i++) {
		keys[i] = (float)rnd_int(-64, 64) / 32;
		values[i] = (float)rnd_int(-64, 64) / 32;
	}
}

static int attend(const struct shape *s, int64_t t, const float *q, const int32_t *row,
		  const int32_t *pos, int64_t pages, float *to)
{
	const int64_t dims[] = { t, s->h, s->d }, tables[] = { ROWS, M };
	yoke_scope *scope = yoke_scope_begin("test");
	yoke_tensor *y = yoke_paged_attention(
		yoke_from(yoke_f32, 3, dims, q), cache_of(s, keys, pages),
		cache_of(s, values, pages), yoke_from(yoke_i32, 2, tables, table),
		yoke_from(yoke_i32, 1, &t, row), yoke_from(yoke_i32, 1, &t, pos), 0, s->window,
		s->cap);
	yoke_read(y, to, (size_t)(t * s->h * s->d) * sizeof *to);
	return yoke_scope_end(scope);
}

// The largest difference from float64, relative to the values' largest modulus.
static double error_of(const struct shape *s, int64_t t, const float *q, const int32_t *row,
		       const int32_t *pos, const float *got)
{
	static double w[M * PAGE];
	double worst = 0;
	for (int64_t i = 0; i < t; i++)
		for (int64_t h = 0; h < s->h; h++) {
			const int64_t g = h / (s->h / s->g);
			double max = -INFINITY, sum = 0;
			for (int64_t k = 0; k <= pos[i] && row[i] >= 0; k++) {
				const float *key =
					keys +
					((table[row[i] * M + k / PAGE] * PAGE + k % PAGE) * s->g +
					 g) * s->d;
				w[k] = 0;
				for (int64_t d = 0; d < s->d; d++)
					w[k] += (double)q[(i * s->h + h) * s->d + d] * key[d];
				w[k] /= sqrt((double)s->d);
				w[k] = s->cap > 0 ? s->cap * tanh(w[k] / s->cap) : w[k];
				if (s->window && k <= pos[i] - s->window)
					w[k] = -INFINITY;
				max = fmax(max, w[k]);
			}
			for (int64_t k = 0; k <= pos[i] && row[i] >= 0; k++)
				sum += w[k] = exp(w[k] - max);
			for (int64_t d = 0; d < s->d; d++) {
				double y = 0;
				for (int64_t k = 0; k <= pos[i] && row[i] >= 0; k++)
					y += w[k] / sum *
					     values[((table[row[i] * M + k / PAGE] * PAGE +
						      k % PAGE) *
							     s->g +
						     g) * s->d +
						    d];
				worst = fmax(worst, fabs(y - got[(i * s->h + h) * s->d + d]));
			}
		}
	return worst / 2;
}

static void test_shape(const struct shape *s, const char *what)
{
	static float q[MOST * 9 * 128], got[MOST * 9 * 128], one[MOST * 9 * 128];
	static const int64_t counts[] = { 1, 3, 16, 17, 40, 64 };
	int32_t row[MOST], pos[MOST];
	const int64_t pages = ROWS * M, each = s->h * s->d;
	bool same = true;
	double worst = 0;
	draw_cache(s, pages);
	for (int32_t i = 0; i < ROWS * M; i++)
		table[i] = (int32_t)((i * 7 + 5) % pages);
	for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
		const int64_t t = counts[c];
		for (int64_t i = 0; i < t; i++) {
			const bool follows =
				i && rnd_int(0, 7) && row[i - 1] >= 0 && pos[i - 1] + 1 < M * PAGE;
			row[i] = follows ? row[i - 1] : (int32_t)rnd_int(-1, ROWS - 1);
			pos[i] = follows ? pos[i - 1] + 1 :
					   (int32_t)rnd_int(0, rnd_int(0, 1) ? 40 : M * PAGE - 1);
		}
		for (int64_t i = 0; i < t * each; i++)
			q[i] = (float)rnd_real(-2, 2);
		for (int64_t i = 0; i < t * each; i++)
			got[i] = NAN;
		if (attend(s, t, q, row, pos, pages, got) < 0)
			break;
		worst = fmax(worst, error_of(s, t, q, row, pos, got));
		for (int64_t i = 0; i < t; i += 1 + t / 7) { // alone
			attend(s, 1, q + i * each, row + i, pos + i, pages, one);
			same = same && !memcmp(one, got + i * each, (size_t)each * sizeof *one);
		}
	}
	ok(worst < 2e-6 && !isnan(worst) && !yoke_error_code(),
	   "%s: paged_attention is within %.2g of float64 %s", what, worst, yoke_error());
	ok(same, "%s: a query has the bits it has alone", what);
	yoke_error_clear();
}

// Is e the error of a bad index? Devices report it after the operation.
static bool is_refused(int e)
{
	return e == YOKE_ERANGE || e == YOKE_EFAILED;
}

static void test_scatter(const char *what)
{
	const int64_t n = 9, dims[] = { 9, 2, 3 }, rows[] = { 6, 2, 3 }, count = 6;
	const int32_t idx[] = { 3, -1, 8, 3, 0, -1 };
	float x[54], v[36], got[54], want[54];
	for (int i = 0; i < 54; i++)
		x[i] = want[i] = (float)i;
	for (int i = 0; i < 36; i++)
		v[i] = i == 7 ? NAN : -1 - (float)i; // 7: of a row that is skipped
	for (int k = 0; k < 6; k++)
		for (int i = 0; idx[k] >= 0 && i < 6; i++)
			want[idx[k] * 6 + i] = v[k * 6 + i];
	yoke_tensor *to = yoke_variable("x", yoke_f32, 3, dims);
	yoke_put(to, x, sizeof x);
	yoke_scope *s = yoke_scope_begin("test");
	yoke_tensor *i = yoke_from(yoke_i32, 1, &count, idx),
		    *from = yoke_from(yoke_f32, 3, rows, v);
	yoke_read(yoke_scatter_set(to, i, from), got, sizeof got);
	ok(!memcmp(got, want, sizeof want),
	   "%s: scatter_set replaces rows, the last of equal ones counts %s", what, yoke_error());
	yoke_assign(to, yoke_scatter_set(to, i, from));
	yoke_read(to, got, sizeof got);
	ok(!memcmp(got, want, sizeof want), "%s: and in place", what);
	const int32_t bad[] = { 3, 9, 0, 0, 0, 0 };
	const int e = yoke_read(yoke_scatter_set(to, yoke_from(yoke_i32, 1, &count, bad), from),
				got, sizeof got);
	ok(is_refused(e), "%s: row 9 of %d is refused: %s", what, (int)n, yoke_error());
	yoke_error_clear();
	yoke_scope_end(s);
	yoke_error_clear();
	yoke_free(to);
}

static void test_errors(void)
{
	const struct shape s = { .h = 2, .g = 1, .d = 8, .dtype = yoke_f32 };
	float q[16] = { 0 }, y[16];
	static const struct {
		int32_t row, page, pos;
		const char *what;
	} bad[] = { { 3, 0, 0, "row 3 of 3" },
		    { -2, 0, 0, "row -2" },
		    { 0, 30, 0, "page 30 of 24" },
		    { 0, -1, 0, "no page" } };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		for (int k = 0; k < ROWS * M; k++)
			table[k] = bad[i].page;
		const int e = attend(&s, 1, q, &bad[i].row, &bad[i].pos, PAGES, y);
		ok(is_refused(e), "%s is refused: %s", bad[i].what, yoke_error());
		yoke_error_clear();
	}
}

int main(int argc, char **argv)
{
	static const struct shape shapes[] = {
		{ .h = 9, .g = 3, .d = 64, .dtype = yoke_f16 },
		{ .h = 4, .g = 4, .d = 32, .dtype = yoke_f32 },
		{ .h = 8, .g = 1, .d = 128, .dtype = yoke_bf16 },
		{ .h = 3, .g = 3, .d = 7, .dtype = yoke_f32, .window = 21 },
		{ .h = 2, .g = 1, .d = 40, .dtype = yoke_f16, .window = 300, .cap = 1.5 },
	};
	char what[100];
	const bool kernel = argc > 1 && !strcmp(argv[1], "kernel");
	tap_seed();
	for (int k = 0; k < (kernel ? 1 : 2); k++) {
		const char *by = k ? "decomposition" : "kernel";
		yoke_setting_set("plan.named", k ? "0" : "1");
		yoke_use(NULL);
		for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
			const struct shape *s = &shapes[i];
			snprintf(what, sizeof what,
				 "%s, %d heads of %d for %d, %s, window %d, cap %g", by, (int)s->h,
				 (int)s->d, (int)s->g, yoke_dtype_name(s->dtype), (int)s->window,
				 s->cap);
			test_shape(s, what);
		}
		test_scatter(by);
	}
	yoke_setting_set("plan.named", "1");
	yoke_use(NULL);
	test_errors();
	return done();
}
