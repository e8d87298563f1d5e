// SPDX-License-Identifier: Apache-2.0
// Tests recurrences in the graph (yk_scan): filters, tridiagonal systems and segmented sums
// against float64 loops, on every axis and in both directions; plan reuse, fallbacks, refused
// arguments.
#include "config.h"

#include "graph/record.h"
#include "rows.h"

enum { X = 3, N = 37, Y = 5, ALL = X * N * Y };

static const int64_t dims[3] = { X, N, Y };

// ---- programs ----

static int add(struct yoke_map *m, int op, int dtype, int a, int b, int c)
{
	m->insn[m->ninsn] = (struct yoke_insn){ (uint16_t)op, (uint8_t)dtype, 0,
						(uint16_t)a,  (uint16_t)b,    (uint16_t)c };
	return m->ninsn++;
}

static int input(struct yoke_map *m, int dtype)
{
	return add(m, YOKE_MAP_INPUT, dtype, m->nin++, 0, 0);
}

static void output(struct yoke_map *m, int insn)
{
	m->out[m->nout++] = (uint16_t)insn;
}

static int constant(struct yoke_map *m, double x)
{
	m->konst[m->nconst] = yk_bits(yoke_f64, x);
	return add(m, YOKE_MAP_CONST, yoke_f64, m->nconst++, 0, 0);
}

// A filter of second order, transposed direct form II: y = b0 x + s0, s0' = b1 x - a1 y + s1, s1' =
// b2 x - a2 y.
static struct yoke_map biquad(const double *b, const double *a)
{
	struct yoke_map m = { .size = sizeof m };
	int x = input(&m, yoke_f64), s0 = input(&m, yoke_f64), s1 = input(&m, yoke_f64);
	int y = add(&m, YOKE_MAP_ADD, yoke_f64,
		    add(&m, YOKE_MAP_MUL, yoke_f64, constant(&m, b[0]), x, 0), s0, 0);
	int p = add(&m, YOKE_MAP_MUL, yoke_f64, constant(&m, b[1]), x, 0);
	p = add(&m, YOKE_MAP_SUB, yoke_f64, p,
		add(&m, YOKE_MAP_MUL, yoke_f64, constant(&m, a[1]), y, 0), 0);
	int q = add(&m, YOKE_MAP_MUL, yoke_f64, constant(&m, b[2]), x, 0);
	q = add(&m, YOKE_MAP_SUB, yoke_f64, q,
		add(&m, YOKE_MAP_MUL, yoke_f64, constant(&m, a[2]), y, 0), 0);
	output(&m, y);
	output(&m, add(&m, YOKE_MAP_ADD, yoke_f64, p, s1, 0));
	output(&m, q);
	return m;
}

// Thomas, forwards: a, b, c, d; c', d' -> c', d'; c' = c / (b - a c'), d' = (d - a d') / (b - a
// c').
static struct yoke_map forwards(int dtype)
{
	struct yoke_map m = { .size = sizeof m };
	int in[6], next[2];
	for (int k = 0; k < 6; k++)
		in[k] = input(&m, dtype);
	int under = add(&m, YOKE_MAP_SUB, dtype, in[1],
			add(&m, YOKE_MAP_MUL, dtype, in[0], in[4], 0), 0);
	int over = add(&m, YOKE_MAP_SUB, dtype, in[3],
		       add(&m, YOKE_MAP_MUL, dtype, in[0], in[5], 0), 0);
	next[0] = add(&m, YOKE_MAP_DIV, dtype, in[2], under, 0);
	next[1] = add(&m, YOKE_MAP_DIV, dtype, over, under, 0);
	for (int k = 0; k < 4; k++)
		output(&m, next[k % 2]);
	return m;
}

// .. and backwards: x = d' - c' x.
static struct yoke_map backwards(int dtype)
{
	struct yoke_map m = { .size = sizeof m };
	int c = input(&m, dtype), d = input(&m, dtype), x = input(&m, dtype);
	int next = add(&m, YOKE_MAP_SUB, dtype, d, add(&m, YOKE_MAP_MUL, dtype, c, x, 0), 0);
	output(&m, next);
	output(&m, next);
	return m;
}

// Sums that restart where the flag is set.
static struct yoke_map segmented(void)
{
	struct yoke_map m = { .size = sizeof m };
	int x = input(&m, yoke_i32), flag = input(&m, yoke_bool), s = input(&m, yoke_i32);
	int next = add(&m, YOKE_MAP_SELECT, yoke_i32, flag, x,
		       add(&m, YOKE_MAP_ADD, yoke_i32, s, x, 0));
	output(&m, next);
	output(&m, next);
	return m;
}

// ---- recording ----

// Handles of all outputs; false after an error.
static bool scan(struct yk_scan_op s, yoke_tensor *const *in, yoke_tensor **out)
{
	struct yk_rec r = yk_rec_begin_as("scan", YK_LEAF, 0, s.map->nin, in);
	yk_id first;
	s.in = r.in;
	if (!r.ctx || yk_scan(r.g, &s, &first) < 0)
		return yk_rec_end(&r, YK_BAD);
	for (int k = 1; k < s.map->nout; k++)
		out[k] = yk_handle_of(r.ctx, first + (yk_id)k);
	return (out[0] = yk_rec_end(&r, first));
}

static struct yk_scan_op along(const struct yoke_map *m, int axis, bool from_end, uint32_t carried)
{
	return (struct yk_scan_op){ .map = m,
				    .rank = 3,
				    .axis = axis,
				    .dims = dims,
				    .from_end = from_end,
				    .carried = carried };
}

static int64_t place(int axis, int64_t line, int64_t k)
{
	const int64_t inner = axis == 0 ? N * Y : axis == 1 ? Y : 1;
	return (line / inner * dims[axis] + k) * inner + line % inner;
}

static bool close_to(const double *got, const double *want, int n, double bound, const char *what)
{
	for (int i = 0; i < n; i++)
		if (!(fabs(got[i] - want[i]) <= bound)) {
			diag("%s: [%d] got %.17g want %.17g", what, i, got[i], want[i]);
			return false;
		}
	return true;
}

static void draw(double *x, int n)
{
	for (int i = 0; i < n; i++)
		x[i] = rnd_real(-1, 1);
}

// ---- values ----

static void filters(void)
{
	static const double b[] = { 0.2, 0.4, 0.2 }, a[] = { 1, -0.5, 0.25 };
	const struct yoke_map m = biquad(b, a);
	double x[ALL], y[ALL], last[ALL], got[ALL];

	for (int axis = 0; axis < 3; axis++)
		for (int back = 0; back < 2; back++) {
			const int64_t n = dims[axis], lines = ALL / n;
			yoke_scope *s = yoke_scope_begin("filter");
			yoke_tensor *out[3], *in[] = { NULL, yoke_const(0), yoke_scalar(0.5) };
			draw(x, ALL);
			for (int64_t line = 0; line < lines; line++) {
				double s0 = 0, s1 = 0.5;
				for (int64_t t = 0; t < n; t++) {
					int64_t at = place(axis, line, back ? n - 1 - t : t);
					y[at] = b[0] * x[at] + s0;
					s0 = b[1] * x[at] - a[1] * y[at] + s1;
					s1 = b[2] * x[at] - a[2] * y[at];
				}
				last[line] = s1;
			}
			in[0] = yoke_from(yoke_f64, 3, dims, x);
			bool good = scan(along(&m, axis, back, 2), in, out) &&
				    !yoke_read(out[0], got, sizeof got) &&
				    close_to(got, y, ALL, 1e-13, "y") &&
				    yoke_dim(out[2], axis) == 1 &&
				    !yoke_read(out[2], got, (size_t)lines * 8) &&
				    close_to(got, last, (int)lines, 1e-13, "s1");
			ok(good, "a filter along axis %d%s: %s", axis, back ? " from the end" : "",
			   yoke_error());
			yoke_free(in[2]);
			yoke_scope_end(s);
		}
}

static void tridiagonal(void)
{
	const struct yoke_map up = forwards(yoke_f64), down = backwards(yoke_f64);
	double v[4][ALL], x[ALL];
	bool good = true;

	for (int axis = 0; axis < 3; axis++) {
		const int64_t n = dims[axis];
		yoke_scope *s = yoke_scope_begin("thomas");
		yoke_tensor *in[6], *mid[4], *out[2];
		for (int k = 0; k < 4; k++) {
			draw(v[k], ALL);
			for (int i = 0; i < ALL && k == 1; i++)
				v[k][i] += 4;
			in[k] = yoke_from(yoke_f64, 3, dims, v[k]);
		}
		in[4] = in[5] = yoke_const(0);
		good = good && scan(along(&up, axis, false, 2), in, mid) &&
		       scan(along(&down, axis, true, 1),
			    (yoke_tensor *[]){ mid[0], mid[1], yoke_const(0) }, out) &&
		       !yoke_read(out[0], x, sizeof x);
		for (int64_t line = 0; good && line < ALL / n; line++)
			for (int64_t t = 0; t < n; t++) { // the residual of a x- + b x + c x+ - d
				int64_t at = place(axis, line, t);
				double rest = v[1][at] * x[at] - v[3][at];
				rest += t ? v[0][at] * x[place(axis, line, t - 1)] : 0;
				rest += t < n - 1 ? v[2][at] * x[place(axis, line, t + 1)] : 0;
				good = good && fabs(rest) < 1e-14 * 8;
			}
		yoke_scope_end(s);
	}
	ok(good, "tridiagonal systems along all axes: %s", yoke_error());
}

static void segments(void)
{
	const struct yoke_map m = segmented();
	int32_t x[ALL], got[ALL], want[ALL];
	unsigned char flag[N];
	bool good = true;
	yoke_scope *s = yoke_scope_begin("segments");
	yoke_tensor *out[2], *in[3];

	for (int i = 0; i < ALL; i++)
		x[i] = (int32_t)rnd_int(-9, 9);
	for (int t = 0; t < N; t++)
		flag[t] = rnd_int(0, 4) == 0;
	in[0] = yoke_from(yoke_i32, 3, dims, x);
	in[1] = yoke_from(yoke_bool, 2, (int64_t[]){ N, 1 }, flag); // broadcasts
	in[2] = yoke_const(7);
	for (int64_t line = 0; line < X * Y; line++)
		for (int32_t t = 0, sum = 7; t < N; t++) {
			int64_t at = place(1, line, t);
			want[at] = sum = flag[t] ? x[at] : sum + x[at];
		}
	good = scan(along(&m, 1, false, 1), in, out) && !yoke_read(out[0], got, sizeof got) &&
	       !memcmp(got, want, sizeof got);
	ok(good, "sums of segments: %s", yoke_error());
	yoke_scope_end(s);
}

// ---- plans ----

static uint64_t misses(void)
{
	struct yoke_stats s = { .size = sizeof s };
	yoke_stats(&s);
	return s.plan_misses;
}

// The program is structure, its constants are not; unused outputs are not computed; a sequence may
// overwrite its operand.
static void plans(void)
{
	double b[] = { 0.2, 0.4, 0.2 }, a[] = { 1, -0.5, 0.25 }, x[ALL], got[ALL], want[ALL];
	yoke_tensor *v = yoke_variable("v", yoke_f64, 3, dims), *s1 = yoke_scalar(0);
	uint64_t before = 0;
	bool good = true;

	draw(x, ALL);
	for (int k = 0; k < 4; k++) {
		b[2] = k < 3 ? 0.2 : 0.3;
		const struct yoke_map m = biquad(b, a);
		yoke_scope *s = yoke_scope_begin("plan");
		yoke_tensor *out[3];
		yoke_scalar_set(s1, k);
		good = good && !yoke_put(v, x, sizeof x) &&
		       scan(along(&m, 1, false, 2), (yoke_tensor *[]){ v, yoke_const(0), s1 },
			    out) &&
		       !yoke_assign(v, out[0]) && !yoke_read(v, got, sizeof got);
		if (k == 1)
			before = misses();
		if (k == 2)
			ok(good && misses() == before, "another constant needs no new plan");
		yoke_scope_end(s);
	}
	ok(good && misses() > before, "another program does");
	for (int64_t line = 0; line < X * Y; line++) {
		double s0 = 0, t1 = 3;
		for (int t = 0; t < N; t++) {
			int64_t at = place(1, line, t);
			want[at] = b[0] * x[at] + s0;
			s0 = b[1] * x[at] - a[1] * want[at] + t1;
			t1 = b[2] * x[at] - a[2] * want[at];
		}
	}
	struct yoke_stats stats = { .size = sizeof stats };
	yoke_stats(&stats);
	ok(close_to(got, want, ALL, 1e-13, "in place") && (!stats.assign_copies || stats.fallbacks),
	   "a variable is filtered in place");
	yoke_free(v);
	yoke_free(s1);
}

// ---- refusals ----

static void refusals(void)
{
	const struct yoke_map m = backwards(yoke_f32);
	struct yoke_map wild = m;
	yoke_scope *s = yoke_scope_begin("refusals");
	yoke_tensor *x = yoke_variable("x", yoke_f32, 3, dims), *d = yoke_cast(x, yoke_f64),
		    *out[3] = { NULL }, *g;
	ok(!scan(along(&m, 3, false, 1), (yoke_tensor *[]){ x, x, yoke_const(0) }, out) &&
		   refused(NULL, YOKE_EINVAL), "a missing axis is refused");
	ok(!scan(along(&m, 1, false, 1), (yoke_tensor *[]){ x, d, yoke_const(0) }, out) &&
		   refused(NULL, YOKE_EDTYPE), "an input of another dtype");
	ok(!scan(along(&m, 1, false, 1), (yoke_tensor *[]){ x, x, x }, out) &&
		   refused(NULL, YOKE_ESHAPE),
	   "a first value with the axis");
	wild.insn[3].op = YOKE_MAP_RAND;
	ok(!scan(along(&wild, 1, false, 1), (yoke_tensor *[]){ x, x, yoke_const(0) }, out) &&
		   refused(NULL, YOKE_EINVAL),
	   "random bits in a recurrence");
	wild = m;
	wild.insn[4].a = 4;
	ok(!scan(along(&wild, 1, false, 1), (yoke_tensor *[]){ x, x, yoke_const(0) }, out) &&
		   refused(NULL, YOKE_EINVAL),
	   "an instruction that reads itself");
	yoke_tensor *far = yoke_variable("far", yoke_f32, 1, (int64_t[]){ 100 });
	struct yk_scan_op s100 = { .map = &m, .rank = 1, .dims = (int64_t[]){ 100 }, .carried = 1 };
	ok(scan(s100, (yoke_tensor *[]){ far, far, yoke_const(0) }, out) &&
		   yoke_grad(yoke_sum(out[0], YOKE_ALL), 1, &far, &g) == YOKE_EUNSUPPORTED &&
		   strstr(yoke_error(), "scan has no gradient"),
	   "no gradient along many steps: %s", yoke_error());
	yoke_error_clear();
	yoke_free(x);
	yoke_free(far);
	yoke_scope_end(s);
}

static void on(const char *backend, const char *what)
{
	struct yoke_stats s = { .size = sizeof s };
	yoke_context *ctx = yoke_context_new(backend);
	if (!ctx) {
		skip(what, yoke_error());
		yoke_error_clear();
		return;
	}
	yoke_context *was = yoke_use(ctx);
	filters();
	tridiagonal();
	segments();
	plans();
	refusals();
	yoke_stats(&s);
	yoke_setting_set("plan.named", "0"); // step by step
	tridiagonal();
	segments();
	yoke_setting_set("plan.named", "1");
	diag("%s: %llu fell back", what, (unsigned long long)s.fallbacks);
	yoke_use(was);
	yoke_context_free(ctx);
}

int main(void)
{
	tap_seed();
	tap_plugin_path();
	on("cpu", "cpu");
	on("opencl", "OpenCL");
	on("skeleton", "a backend that lacks it");
	ok(!yoke_error_code(), "no error is left: %s", yoke_error());
	return done();
}
