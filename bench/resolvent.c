// SPDX-License-Identifier: Apache-2.0
// Times each tier of the resolvent, forward and with gradient. The references are its
// decomposition, LAPACK (opened at run time: cgtsv, and zgttrf with zgttrs, one right-hand side per
// row) and the vendor's solvers of the device (bench/peers/sparse.h). Rounds alternate between all
// of them, so that they meet the same machine conditions. The libraries overwrite their operands,
// which are copied outside of the timed region; their results are compared.
// Counted: 12 bytes per element (one read, and the result written), in f32; z = i, off-diagonal
// ones. One long row is also measured with a = 0 and z = 0.01 i, where distant elements contribute.
#include "config.h"

#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/complex.h"
#include "base/error.h"
#include "base/param.h"
#include "graph/context.h"
#include "tool/bench.h"
#include "tool/tool.h"
#include "train/trial.h"
#include "yoke-observe.h"

#include "peers/sparse.h"

// Each call of a vendor's solver is measured alone and including its buffer.
enum { TIERS = 5, PARTS = 2 * TIERS, CGTSV, ZGTTRF, SPARSE, KINDS = SPARSE + 2 * YK_SPARSE_CALLS };
enum { MAX_ROUNDS = 999, MAX_PARTS = 1 << 17, CELLS = 30 };
static const char *const names[KINDS] = { "f32",        "f64",        "mixed",      "f16",
					  "bf16",       "f32 +grad",  "f64 +grad",  "mixed +grad",
					  "f16 +grad",  "bf16 +grad", "parts",      "cgtsv",
					  "zgttrs",     "strided",    "str+buffer", "interleave",
					  "int+buffer", "columns",    "col+buffer" };

typedef float complex c8;
typedef double complex c16;
typedef void cgtsv_fn(const int *n, const int *nrhs, c8 *dl, c8 *d, c8 *du, c8 *b, const int *ldb,
		      int *info);
typedef void zgttrf_fn(const int *n, c16 *dl, c16 *d, c16 *du, c16 *du2, int *pivot, int *info);
typedef void zgttrs_fn(const char *trans, const int *n, const int *nrhs, const c16 *dl,
		       const c16 *d, const c16 *du, const c16 *du2, const int *pivot, c16 *b,
		       const int *ldb, int *info, size_t trans_length);

struct bench {
	uint64_t rounds, warm, max; // most: max number of elements
	double each;                 // no round begins after so many seconds of a cell; 0: no limit
	const char *page;
	bool json;
	struct yk_device *device;
	struct yk_bench_limits limits;
	bool quick;
	cgtsv_fn *cgtsv;
	zgttrf_fn *zgttrf;
	zgttrs_fn *zgttrs;
	char library[64];
	struct yk_sparse *sparse; // NULL: not available, see `why`
	char vendor[80], why[200];
	json_t *results, *ratios;
	double ratio[KINDS][CELLS]; // time of a kind relative to f32
	double speed[CELLS];        // time of cgtsv relative to f32, 16 rows
	double long_speed, flat_speed; // for one long row, and for the same with a = 0
	double strided;             // f32 relative to Cgtsv2StridedBatch, 16 x 4096
	int cells, speeds;
};

struct cell {
	int64_t rows, n;
	bool flat;  // a = 0
	float eta;
	yoke_tensor *a, *z, *g;
	float *host, *got;
	bool known; // `got` holds the reference result
	int rounds; // timed rounds
	void *work;
	double time[KINDS][MAX_ROUNDS], off[KINDS], occupancy;
};

// ---- timed operations ----

static int evaluate(struct cell *c, int kind, double *seconds)
{
	static const int tiers[TIERS] = { YOKE_TIER_F32, YOKE_TIER_F64, YOKE_TIER_MIXED,
					  YOKE_TIER_HALF, YOKE_TIER_HALF };
	struct yoke_resolvent how = YOKE_RESOLVENT_INIT;
	yoke_scope *s = yoke_scope_begin("bench");
	how.tier = kind == PARTS ? YOKE_TIER_F32 : tiers[kind % TIERS];
	how.half = kind % TIERS == 4 ? yoke_bf16 : yoke_f16;
	yoke_tensor *y = yoke_resolvent(c->a, YOKE_NONE, YOKE_NONE, c->z, &how), *slope = y;
	if (kind >= TIERS && kind < PARTS &&
	    yoke_grad(yoke_sum(yoke_mul(y, c->g), YOKE_ALL), 1, (yoke_tensor *const[]){ c->a },
		      &slope) < 0)
		slope = NULL;
	yoke_tensor *both[] = { y, slope };
	const double began = yk_seconds();
	int e = slope ? yoke_eval(slope == y ? 1 : 2, both) : yoke_error_code();
	if (e == 0)
		e = yoke_sync();
	*seconds = yk_seconds() - began;
	// copied only once, because worker threads fall asleep during the copy
	if (e == 0 && kind == 0 && !c->known) {
		e = yoke_read(y, c->got, (size_t)(c->rows * c->n) * 8);
		c->known = e == 0;
	}
	int f = yoke_scope_end(s);
	return e < 0 ? e : f;
}

// Solves for the unit vector i of each row, in turn; the result is element i of the solution, a
// diagonal element of the inverse.
static void solve(const struct bench *b, struct cell *c, int kind, int64_t i, double *seconds)
{
	const int n = (int)c->n, one = 1;
	*seconds = 0;
	for (int64_t row = 0; row < c->rows; row++) {
		const float *a = c->host + row * n, *mine = c->got + 2 * (row * n + i);
		int info = 0;
		double began;
		c16 x;
		if (kind == CGTSV) {
			c8 *dl = c->work, *d = dl + n, *du = d + n, *r = du + n;
			for (int k = 0; k < n; k++) {
				dl[k] = du[k] = 1;
				d[k] = CMPLXF(a[k], -c->eta);
				r[k] = k == i;
			}
			began = yk_seconds();
			b->cgtsv(&n, &one, dl, d, du, r, &n, &info);
			*seconds += yk_seconds() - began;
			x = (c16)r[i];
		} else {
			c16 *dl = c->work, *d = dl + n, *du = d + n, *du2 = du + n, *r = du2 + n;
			int *pivot = (int *)(void *)(r + n);
			for (int k = 0; k < n; k++) {
				dl[k] = du[k] = 1;
				d[k] = CMPLX((double)a[k], -(double)c->eta);
				r[k] = k == i;
			}
			began = yk_seconds();
			b->zgttrf(&n, dl, d, du, du2, pivot, &info);
			b->zgttrs("N", &n, &one, dl, d, du, du2, pivot, r, &n, &info, 1);
			*seconds += yk_seconds() - began;
			x = r[i];
		}
		const double off =
			info ? INFINITY : cabs(x - CMPLX((double)mine[0], (double)mine[1]));
		c->off[kind] = fmax(c->off[kind], off);
	}
}

// Calls the vendor's solver for the unit vector i of each row, or for all unit vectors.
static int solve_there(const struct bench *b, struct cell *c, int call, int64_t i, int64_t to)
{
	const bool all = call == YK_SPARSE_COLUMNS;
	const int64_t count = all ? c->rows * c->n : c->rows;
	float complex *got = malloc((size_t)count * sizeof *got);
	double seconds[2];
	int e = got ? yk_sparse_solve(b->sparse, (enum yk_sparse_call)call, c->rows, c->n, c->host,
				      i, got, seconds) :
		      yk_fail(YOKE_ENOMEM, "no host memory for %lld results", (long long)count);
	for (int64_t k = 0; k < count && e == 0; k++) {
		const float *mine = c->got + 2 * (all ? k : k * c->n + i);
		const double off = (double)cabsf(got[k] - CMPLXF(mine[0], mine[1]));
		c->off[SPARSE + 2 * call] =
			off <= c->off[SPARSE + 2 * call] ? c->off[SPARSE + 2 * call] : off;
	}
	free(got);
	for (int k = 0; k < 2 && e == 0; k++)
		c->time[SPARSE + 2 * call + k][to] = seconds[k];
	return e;
}

static bool is_there(const struct bench *b, const struct cell *c, int kind)
{
	if (kind >= SPARSE) // the vendor's operands here have z = i
		return b->sparse && !c->flat &&
		       yk_sparse_takes((enum yk_sparse_call)((kind - SPARSE) / 2), c->n);
	return kind == CGTSV ? b->cgtsv != NULL : kind == ZGTTRF ? b->zgttrf && b->zgttrs :
	       kind == PARTS ? c->rows * c->n <= MAX_PARTS : true;
}

// One round of all kinds. The decomposition is selected by a setting that invalidates plans, so
// each kind is evaluated once before it is timed. The first round does so as well, because
// otherwise many unused plans would cause a warning.
static int round_of(const struct bench *b, struct cell *c, int64_t k, int64_t to)
{
	const bool parts = is_there(b, c, PARTS), twice = parts || !c->known;
	double t;
	int e = 0;
	for (int kind = 0; kind < PARTS && e == 0; kind++) {
		e = twice ? evaluate(c, kind, &t) : 0;
		if (e == 0)
			e = evaluate(c, kind, &c->time[kind][to]);
	}
	if (parts && e == 0) {
		e = yk_param_set("plan.named", "0", YK_ARGUMENT);
		for (int i = 0; i < 2 && e == 0; i++)
			e = evaluate(c, PARTS, &c->time[PARTS][to]);
		int f = yk_param_set("plan.named", "1", YK_ARGUMENT);
		e = e < 0 ? e : f;
	}
	for (int kind = CGTSV; kind < SPARSE && e == 0; kind++)
		if (is_there(b, c, kind))
			solve(b, c, kind, k % c->n, &c->time[kind][to]);
	for (int call = 0; call < YK_SPARSE_CALLS && e == 0; call++)
		if (is_there(b, c, SPARSE + 2 * call))
			e = solve_there(b, c, call, k % c->n, to);
	return e;
}

// Resident warps of the launch for f32, if the device reports them; NaN otherwise.
static double occupancy(struct cell *c)
{
	struct yoke_profile_row row[16];
	const struct yoke_profile_options o = { .size = sizeof o };
	yoke_profile *p = yoke_profile_new(&o);
	double t, found = NAN;
	for (int i = 0; i < 16; i++)
		row[i].size = sizeof row[i];
	if (p && yoke_profile_step(p) >= 0 && evaluate(c, 0, &t) == 0) {
		const int n = yoke_profile_rows(p, 16, row);
		for (int i = 0; i < n && i < 16; i++)
			if (strstr(row[i].op, "resolvent"))
				found = row[i].occupancy;
	}
	yoke_profile_free(p);
	yoke_error_clear();
	return found;
}

// ---- cells ----

static int prepare(struct cell *c)
{
	const int64_t dims[] = { c->rows, c->n, 2 }, two = 2;
	const size_t all = (size_t)(c->rows * c->n);
	const float z[2] = { 0, c->eta };
	uint64_t state = 1;
	c->host = malloc(all * sizeof *c->host);
	c->got = malloc(2 * all * sizeof *c->got);
	c->work = malloc((size_t)c->n * (5 * sizeof(c16) + sizeof(int)));
	float *g = malloc(2 * all * sizeof *g);
	int e = c->host && c->got && c->work && g ?
			0 :
			yk_fail(YOKE_ENOMEM, "no host memory for %zu elements", all);
	for (size_t i = 0; i < 3 * all && e == 0; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		const float x = (float)((double)(state >> 11) * 0x1p-52 - 1);
		if (i < all)
			c->host[i] = c->flat ? 0 : 2 * x;
		else
			g[i - all] = x;
	}
	c->a = yoke_variable("a", yoke_f32, 2, dims);
	c->z = yoke_variable("z", yoke_f32, 1, &two);
	c->g = yoke_variable("g", yoke_f32, 3, dims);
	if (e == 0 && (!c->a || !c->z || !c->g))
		e = yoke_error_code();
	if (e == 0)
		e = yoke_put(c->a, c->host, all * sizeof *c->host);
	if (e == 0)
		e = yoke_put(c->z, z, sizeof z);
	if (e == 0)
		e = yoke_put(c->g, g, 2 * all * sizeof *g);
	free(g);
	return e;
}

static void drop(struct cell *c)
{
	yoke_free(c->a);
	yoke_free(c->z);
	yoke_free(c->g);
	free(c->host);
	free(c->got);
	free(c->work);
	free(c);
}

// Prints one line, and adds one JSON entry per kind.
static int say(struct bench *b, struct cell *c)
{
	const double bytes = 12.0 * (double)c->rows * (double)c->n;
	char title[64];
	double f32 = 0;
	snprintf(title, sizeof title, "%lld x %lld%s", (long long)c->rows, (long long)c->n,
		 c->flat ? " a=0" : "");
	printf("%5lld x %-10s", (long long)c->rows, strchr(title, 'x') + 2);
	for (int kind = 0; kind < (b->sparse ? KINDS : SPARSE); kind++) {
		double spread;
		b->ratio[kind][b->cells] = NAN;
		if (!is_there(b, c, kind)) {
			printf("  %10s", "n/a");
			continue;
		}
		const double median = yk_median(c->rounds, c->time[kind], &spread);
		f32 = kind ? f32 : median;
		b->ratio[kind][b->cells] = median / f32;
		printf("  %10.1f", 1e6 * median);
		json_t *o = json_pack("{s:s, s:s, s:s, s:f, s:f, s:i, s:f, s:f, s:f, s:f, s:f}",
				      "device", names[kind], "suite", "resolvent", "case", title,
				      "median_s", median, "spread_s", spread, "samples", c->rounds,
				      "bytes", bytes, "bytes_per_s", bytes / median, "roofline",
				      bytes / median / b->limits.copy, "of_f32", median / f32,
				      "rows", (double)c->rows);
		if (o && c->rows == 16) // plots have one curve over lengths
			json_object_set_new(o, "size", json_real((double)c->n));
		if (o && kind >= CGTSV)
			json_object_set_new(o, "apart", json_real(c->off[kind]));
		if (o && !kind)
			json_object_set_new(o, "occupancy",
					    isnan(c->occupancy) ? json_null() :
								  json_real(c->occupancy));
		if (json_array_append_new(b->results, o) < 0)
			return yk_fail(YOKE_ENOMEM, "out of memory for the results");
	}
	const double speed = b->ratio[CGTSV][b->cells];
	if (c->rows == 16 && b->cgtsv)
		b->speed[b->speeds++] = speed;
	else if (c->n == 65536 && b->cgtsv)
		*(c->flat ? &b->flat_speed : &b->long_speed) = speed;
	if (c->rows == 16 && c->n == 4096 && b->sparse)
		b->strided = 1 / b->ratio[SPARSE][b->cells];
	printf("  %6.2f %4.0f %%", 1e-9 * bytes / f32, 100 * bytes / f32 / b->limits.copy);
	if (isnan(c->occupancy))
		printf("  %5s", "n/a");
	else
		printf("  %3.0f %%", 100 * c->occupancy);
	double apart = 0;
	for (int kind = CGTSV; kind < KINDS; kind++)
		apart = fmax(apart, c->off[kind]);
	if (b->cgtsv || b->sparse)
		printf("  %.1g", apart);
	printf("\n");
	fflush(stdout);
	b->cells++;
	return 0;
}

static int measure(struct bench *b, int64_t rows, int64_t n, bool flat)
{
	if ((uint64_t)(rows * n) > b->max)
		return 0;
	struct cell *c = calloc(1, sizeof *c);
	if (!c)
		return yk_fail(YOKE_ENOMEM, "out of memory for a benchmark");
	c->rows = rows;
	c->n = n;
	c->flat = flat;
	c->eta = flat ? 0.01f : 1;
	int e = prepare(c);
	const double began = yk_seconds();
	for (int64_t k = 0; c->rounds < (int)b->rounds && e == 0; k++) {
		const double spent = yk_seconds() - began;
		if (b->each > 0 && c->rounds && spent > b->each)
			break;
		const bool warm =
			k < (int64_t)b->warm && !(b->each > 0 && k && spent > b->each / 4);
		e = round_of(b, c, k, c->rounds);
		c->rounds += !warm;
	}
	if (e == 0) {
		c->occupancy = occupancy(c);
		e = say(b, c);
	}
	drop(c);
	return e;
}

// ---- peers ----

static void *found(void *library, const char *name)
{
	return library ? dlsym(library, name) : NULL;
}

static void open_lapack(struct bench *b)
{
	static const char *const files[] = { "liblapack.so.3", "libopenblas.so.0", "libmkl_rt.so" };
	for (size_t i = 0; i < sizeof files / sizeof *files && !b->cgtsv; i++) {
		void *library = dlopen(files[i], RTLD_NOW),
		     *fn[3] = { found(library, "cgtsv_"), found(library, "zgttrf_"),
				found(library, "zgttrs_") };
		memcpy(&b->cgtsv, &fn[0], sizeof fn[0]);
		memcpy(&b->zgttrf, &fn[1], sizeof fn[1]);
		memcpy(&b->zgttrs, &fn[2], sizeof fn[2]);
		snprintf(b->library, sizeof b->library, "%s", files[i]);
	}
}

// ---- summary ----

static int say_ratio(const struct bench *b, const char *title, const double *v, int n,
		     double target, bool min)
{
	double low = INFINITY, high = 0, sum = 0;
	int count = 0;
	for (int i = 0; i < n; i++)
		if (!isnan(v[i])) {
			low = fmin(low, v[i]);
			high = fmax(high, v[i]);
			sum += v[i];
			count++;
		}
	if (!count) {
		printf("%-44s n/a\n", title);
		return 0;
	}
	const bool met = min ? low >= target : high <= target;
	char text[32];
	snprintf(text, sizeof text, "%s %g", min ? ">=" : "<=", target);
	printf("%-44s %8.2f %8.2f %8.2f   %s: %s\n", title, sum / count, low, high, text,
	       met ? "met" : "not met");
	json_t *o = json_pack("{s:s, s:f, s:f, s:f, s:s, s:b}", "name", title, "average",
			      sum / count, "min", low, "max", high, "target", text, "met", met);
	return json_array_append_new(b->ratios, o) < 0 ?
		       yk_fail(YOKE_ENOMEM, "out of memory for the results") :
		       0;
}

static int say_ratios(const struct bench *b)
{
	double inverse[CELLS];
	// the device's name lists its instruction sets
	const bool wide =
		strstr(b->device->info.driver, "avx512") || strstr(b->device->info.driver, "amx");
	for (int i = 0; i < b->cells; i++)
		inverse[i] = b->ratio[1][i] / b->ratio[2][i];
	printf("\n%-44s %8s %8s %8s   target, all devices\n", "time ratio", "average", "minimum",
	       "maximum");
	const struct {
		const char *title;
		const double *ratio;
		int n;
		double target;
		bool min;
	} all[] = {
		{ "cgtsv / f32, 16 rows", b->speed, b->speeds, wide ? 12 : 8, true },
		{ "cgtsv / f32, 1 x 65536", &b->long_speed, b->long_speed > 0, 4, true },
		{ "cgtsv / f32, 1 x 65536, a = 0, z = 0.01 i", &b->flat_speed, b->flat_speed > 0,
		  2.5, true },
		{ "f32 / Cgtsv2StridedBatch, 16 x 4096", &b->strided, b->strided > 0, 1, false },
		{ "parts / f32", b->ratio[PARTS], b->cells, 5, true },
		{ "f64 / f32", b->ratio[1], b->cells, 1.8, true },
		{ "f64 / mixed", inverse, b->cells, 1.4, true },
		{ "f32 forward and gradient / forward", b->ratio[TIERS], b->cells, 3.5, false },
	};
	int e = 0;
	for (size_t i = 0; i < sizeof all / sizeof *all && e == 0; i++)
		e = say_ratio(b, all[i].title, all[i].ratio, all[i].n, all[i].target, all[i].min);
	printf("f16 and bf16 have none: they cost more than f32.\n");
	return e;
}

static json_t *kinds_json(const struct bench *b)
{
	json_t *o = json_array();
	for (int kind = 0; kind < (b->sparse ? KINDS : SPARSE); kind++)
		json_array_append_new(
			o,
			json_pack("{s:s, s:s, s:i, s:f, s:f}", "device", names[kind], "name",
				  kind == CGTSV || kind == ZGTTRF ? b->library :
				  kind >= SPARSE                  ? b->vendor :
								    b->device->id,
				  "units",
				  kind == CGTSV || kind == ZGTTRF ? 1 : (int)b->device->info.units,
				  "flops_per_s", b->limits.flops, "copy_bytes_per_s",
				  b->limits.copy));
	return o;
}

static int save(const struct bench *b, FILE *to)
{
	json_t *kinds = kinds_json(b);
	int e = 0;
	if (to)
		e = yk_json_end(to, json_pack("{s:s, s:s, s:i, s:O, s:O, s:O}", "version",
					      yoke_version(), "device", b->device->id, "rounds",
					      (int)b->rounds, "kinds", kinds, "ratios", b->ratios,
					      "results", b->results));
	if (e == 0 && b->page)
		e = yk_bench_page(b->page, kinds, b->ratios, b->results);
	json_decref(kinds);
	return e;
}

static int grid(struct bench *b)
{
	static const int64_t rows[] = { 1, 4, 8, 16, 32 },
			     lengths[] = { 128, 256, 512, 1024, 2048 };
	static const int64_t more[][3] = {
		{ 16, 4096 }, { 1, 65536 }, { 1, 65536, true }, { 4096, 4096 }
	};
	FILE *json = b->json ? yk_json_only() : NULL;
	int e = b->json && !json ? YOKE_EIO : 0;
	printf("%s, %s; copy %.2f GB/s; medians of %s%d rounds after %d of warm-up, in microseconds; 12 bytes per element\n",
	       b->device->id, b->device->info.name, 1e-9 * b->limits.copy,
	       b->each > 0 ? "up to " : "", (int)b->rounds, (int)b->warm);
	if (b->cgtsv)
		printf("cgtsv, zgttrs: %s, one right-hand side a row, one thread\n", b->library);
	else
		printf("cgtsv, zgttrs: n/a, there is no LAPACK\n");
	if (b->sparse)
		printf("strided, interleave, columns: %s, Cgtsv2StridedBatch, CgtsvInterleavedBatch (one right-hand side a row), "
		       "Cgtsv2_nopivot (all columns of I, 3 to 1024)\n",
		       b->vendor);
	else
		printf("%s: n/a, %s\n", b->vendor, b->why);
	printf("parts: n/a above %d elements\n\n%5s x %-10s", MAX_PARTS, "rows", "length");
	for (int kind = 0; kind < (b->sparse ? KINDS : SPARSE); kind++)
		printf("  %10s", names[kind]);
	printf("  %6s %6s  %5s  apart\n", "GB/s", "copy", "warps");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (size_t k = 0; k < sizeof lengths / sizeof *lengths && e == 0; k++)
			e = measure(b, rows[i], lengths[k], false);
	for (size_t i = 0; i < sizeof more / sizeof *more && e == 0; i++)
		e = measure(b, more[i][0], more[i][1], more[i][2]);
	if (e == 0)
		e = say_ratios(b);
	return e < 0 ? e : save(b, json);
}

__attribute__((format(printf, 1, 2))) static int usage(const char *fmt, ...)
{
	va_list ap;
	fputs("bench/resolvent: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return YK_USAGE;
}

static int failed(void)
{
	fprintf(stderr, "bench/resolvent: %s\n", yoke_error());
	return YK_FAILED;
}

static int parse(struct bench *b, int argc, char **argv)
{
	const char *value;
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--json")) {
			b->json = true;
		} else if ((value = yk_option("--html", argc, argv, &i))) {
			b->page = value;
		} else if (!strcmp(argv[i], "--quick")) {
			b->quick = true;
		} else if (!strncmp(argv[i], "rounds=", 7)) {
			b->each = 0;
			if (yk_option_number(argv[i] + 7, &b->rounds) < 0 || b->rounds < 1 ||
			    b->rounds > MAX_ROUNDS)
				return usage("'%s': must be a number from 1 to %d", argv[i],
					     MAX_ROUNDS);
		} else if (!strncmp(argv[i], "warm=", 5)) {
			if (yk_option_number(argv[i] + 5, &b->warm) < 0 || b->warm > MAX_ROUNDS)
				return usage("'%s': must be a number from 0 to %d", argv[i],
					     MAX_ROUNDS);
		} else if (!strncmp(argv[i], "max=", 4)) {
			if (yk_option_number(argv[i] + 4, &b->max) < 0 || b->max < 1)
				return usage("'%s': must be a number of elements", argv[i]);
		} else {
			return usage(
				"unknown option '%s'; there are rounds=, warm=, max=, --quick, "
				"--json and --html",
				argv[i]);
		}
	return b->page && !*b->page ? usage("--html needs a file name") : YK_DONE;
}

int main(int argc, char **argv)
{
	struct bench *b = calloc(1, sizeof *b);
	if (!b)
		return failed();
	b->rounds = 100;
	b->warm = 10;
	b->max = 1 << 20; // 4096 x 4096 alone takes longer than all other sizes
	b->each = 1;
	int status = parse(b, argc, argv), e = 0;
	if (status == YK_DONE) {
		yoke_context *ctx = yoke_context_new(NULL);
		yoke_use(ctx);
		b->results = json_array();
		b->ratios = json_array();
		open_lapack(b);
		if (ctx)
			b->device = ctx->device;
		e = ctx && b->results && b->ratios ?
			    yk_limits_measure(b->device, b->quick, &b->limits) :
			    yoke_error_code();
		if (e == 0) {
			b->sparse = yk_sparse_open(b->device, b->vendor, b->why, sizeof b->vendor,
						   sizeof b->why);
			e = grid(b);
		}
		yk_sparse_close(b->sparse);
		yoke_use(NULL);
		yoke_context_free(ctx);
		json_decref(b->results);
		json_decref(b->ratios);
		if (e < 0)
			status = failed();
	}
	free(b);
	return status;
}
