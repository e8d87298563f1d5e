// SPDX-License-Identifier: Apache-2.0
// Tests custom ops that an application registers: results against float64 loops on the CPU and
// OpenCL, through each of their implementations; gradients against closed forms; and errors that
// name the op.
// custom_op.t BACKEND tests only that backend; tests/custom_op.sh uses this on the fake CUDA and
// ROCm drivers.
#include "config.h"

#include "base/log.h"
#include "tap.h"
#include "yoke-nn.h"
#include "yoke-observe.h"

enum { N = 1001 };

static char text[] =
	"#include \"prologue.h\"\n"
	"\n"
	"KERNEL void axpb(GLOBAL uchar *y, ulong y0, GLOBAL uchar *x, ulong x0, GLOBAL uchar *b, ulong b0,\n"
	"	double by, long n)\n"
	"{\n"
	"	ulong i = GLOBAL_ID(0);\n"
	"	if (i < (ulong)n)\n"
	"		((GLOBAL float *)(y + y0))[i] = (float)by * ((GLOBAL const float *)(x + x0))[i] +\n"
	"			(b ? ((GLOBAL const float *)(b + b0))[i] : 0.0f);\n"
	"}\n";

static int64_t count(const struct yoke_op_tensor *t)
{
	int64_t n = 1;
	for (int i = 0; i < t->rank; i++)
		n *= t->dims[i];
	return n;
}

// ---- a x + b: attributes a and the number of elements; b is optional ----

static int like_first(const struct yoke_op_args *o, struct yoke_op_tensor *out)
{
	if (o->in[0].dtype != yoke_f32)
		return yoke_op_fail(o, YOKE_EDTYPE, "x has to be f32");
	for (int i = 0; i < o->nout; i++)
		out[i] = o->in[0];
	return 0;
}

static int axpb_cpu(const struct yoke_op_args *o, int64_t chunk, int64_t chunks)
{
	const float *x = o->in[0].data, *b = o->in[1].data;
	float *y = o->out[0].data;
	const int64_t n = count(&o->out[0]);
	for (int64_t i = n * chunk / chunks; i < n * (chunk + 1) / chunks; i++)
		y[i] = (float)o->attr[0].f * x[i] + (b ? b[i] : 0);
	return 0;
}

static int axpb_parts(const struct yoke_op_args *o, yoke_tensor *const *in, yoke_tensor **out)
{
	out[0] = yoke_mul(in[0], yoke_const(o->attr[0].f));
	if (in[1] != YOKE_NONE)
		out[0] = yoke_add(out[0], in[1]);
	return 0;
}

static int axpb_gradient(const struct yoke_op_args *o, yoke_tensor *const *in,
			 yoke_tensor *const *out, yoke_tensor *const *g, yoke_tensor **to)
{
	(void)out;
	to[0] = yoke_mul(g[0], yoke_const(o->attr[0].f));
	to[1] = in[1] == YOKE_NONE ? YOKE_NONE : g[0];
	return 0;
}

static int wrong_gradient(const struct yoke_op_args *o, yoke_tensor *const *in,
			  yoke_tensor *const *out, yoke_tensor *const *g, yoke_tensor **to)
{
	(void)in, (void)out;
	to[0] = yoke_mul(g[0], yoke_const(o->attr[0].f * 1.05));
	to[1] = g[0];
	return 0;
}

static int groups_of_16(const struct yoke_op_args *o, uint64_t global[3], uint64_t local[3])
{
	global[0] = (uint64_t)count(&o->out[0]);
	local[0] = 16;
	return 0;
}

static struct yoke_op_def axpb(const char *name)
{
	return (struct yoke_op_def){ .size = sizeof(struct yoke_op_def),
				     .name = name,
				     .nin = 2,
				     .nout = 1,
				     .nattr = 2,
				     .optional = 2,
				     .shape = like_first,
				     .text = text,
				     .entry = "axpb",
				     .geometry = groups_of_16,
				     .cpu = axpb_cpu,
				     .decompose = axpb_parts,
				     .gradient = axpb_gradient };
}

static float x[N], b[N];

static union yoke_attr *attributes(void)
{
	static union yoke_attr a[2];
	a[0].f = 1.75;
	a[1].i = N;
	return a;
}

static yoke_tensor *vector(const float *from)
{
	return yoke_from(yoke_f32, 1, (int64_t[]){ N }, from);
}

static void values(yoke_tensor *t, double *to)
{
	float got[N];
	for (int i = 0; i < N; i++)
		got[i] = NAN;
	yoke_read(t, got, sizeof got);
	for (int i = 0; i < N; i++)
		to[i] = got[i];
}

// The implementation that computed it, from the rows of a profile.
static void who(yoke_tensor *t, const char *op, char *to, size_t cap)
{
	struct yoke_profile_options o = {
		.size = sizeof o, .flags = YOKE_PROFILE_IMPLEMENTATIONS, .active = 1, .repeat = 1
	};
	struct yoke_profile_row row[32] = { { .size = sizeof *row } };
	yoke_profile *p = yoke_profile_new(&o);
	yoke_eval(1, &t);
	yoke_sync();
	const int n = yoke_profile_rows(p, 32, row);
	snprintf(to, cap, "none");
	for (int i = 0; i < n && i < 32; i++)
		if (!strcmp(row[i].op, op))
			snprintf(to, cap, "%s", row[i].implementation);
	yoke_profile_free(p);
}

static int whole_op, text_op, cpu_op, parts_op;

static void test_values(bool gpu)
{
	const char *const names[] = { "all of it", "a text", "a CPU function", "a decomposition" };
	const int op[] = { whole_op, text_op, cpu_op, parts_op };
	for (int i = 0; i < N; i++) {
		x[i] = (float)rnd_real(-2, 2);
		b[i] = (float)rnd_real(-2, 2);
	}
	for (int k = 0; k < 4; k++)
		for (int with = 0; with < 2; with++) {
			double got[N], want[N], dx[N], db[N], wx[N], wb[N];
			if (k == 1 && !gpu)
				continue;
			yoke_scope *s = yoke_scope_begin("own");
			yoke_tensor *in[2] = { vector(x), with ? vector(b) : YOKE_NONE }, *y = NULL,
				    *g[2];
			bool good = yoke_op_call(op[k], 2, in, 2, attributes(), 1, &y) == 0;
			yoke_tensor *loss = yoke_sum(yoke_square(y), YOKE_ALL);
			good = good && yoke_grad(loss, 1 + with, in, g) == 0;
			values(y, got);
			values(g[0], dx);
			for (int i = 0; i < N; i++) {
				want[i] = 1.75 * x[i] + (with ? b[i] : 0);
				wx[i] = 2 * want[i] * 1.75;
				wb[i] = 2 * want[i];
			}
			good = good && near(got, want, N, 1e-6, 1, "values") &&
			       near(dx, wx, N, 1e-6, 1, "gradient by x");
			if (with) {
				values(g[1], db);
				good = good && near(db, wb, N, 1e-6, 1, "gradient by b");
			}
			good &= yoke_scope_end(s) == 0;
			ok(good, "%s, %s: values and gradients: %s", names[k],
			   with ? "two operands" : "one is absent", yoke_error());
			yoke_error_clear();
		}
	yoke_scope *s = yoke_scope_begin("own");
	yoke_tensor *in[2] = { vector(x), vector(b) }, *y = NULL;
	char said[80];
	yoke_op_call(whole_op, 2, in, 2, attributes(), 1, &y);
	who(y, "test.whole", said, sizeof said);
	ok(!strcmp(said, tap_eager() ? "none" : gpu ? "source" : "host"),
	   "a profile lists the op by name, computed by '%s'", said);
	ok(yoke_op_check(whole_op, 2, in, 2, attributes(), 0) == 0, "all implementations agree: %s",
	   yoke_error());
	yoke_scope_end(s);
}

// ---- two results; only one of them is used ----

static int two_cpu(const struct yoke_op_args *o, int64_t chunk, int64_t chunks)
{
	const float *a = o->in[0].data, *c = o->in[1].data;
	float *sum = o->out[0].data, *product = o->out[1].data;
	const int64_t n = count(&o->out[0]);
	for (int64_t i = n * chunk / chunks; i < n * (chunk + 1) / chunks; i++) {
		sum[i] = a[i] + c[i];
		product[i] = a[i] * c[i];
	}
	return 0;
}

static int two_gradient(const struct yoke_op_args *o, yoke_tensor *const *in,
			yoke_tensor *const *out, yoke_tensor *const *g, yoke_tensor **to)
{
	(void)o, (void)out;
	to[0] = yoke_add(g[0], yoke_mul(g[1], in[1]));
	to[1] = yoke_add(g[0], yoke_mul(g[1], in[0]));
	return 0;
}

static void test_two(void)
{
	static int op;
	double got[N], want[N];
	if (!op)
		op = yoke_op_register(&(struct yoke_op_def){ .size = sizeof(struct yoke_op_def),
							     .name = "test.two",
							     .nin = 2,
							     .nout = 2,
							     .shape = like_first,
							     .cpu = two_cpu,
							     .gradient = two_gradient });
	yoke_scope *s = yoke_scope_begin("two");
	yoke_tensor *in[2] = { vector(x), vector(b) }, *y[2], *g[2], *h = YOKE_NONE;
	bool good = yoke_op_call(op, 2, in, 0, NULL, 2, y) == 0 &&
		    yoke_grad(yoke_sum(yoke_square(y[1]), YOKE_ALL), 2, in, g) == 0;
	values(g[0], got); // 2 x b b
	for (int i = 0; i < N; i++)
		want[i] = 2.0 * x[i] * b[i] * b[i];
	good = good && near(got, want, N, 1e-6, 1, "gradient");
	// the custom gradient of the sum of its squares by b: 4 x^2 b^3 * 4
	good = good && yoke_grad(yoke_sum(yoke_square(g[0]), YOKE_ALL), 1, &in[1], &h) == 0;
	values(h, got);
	for (int i = 0; i < N; i++)
		want[i] = 16.0 * x[i] * x[i] * b[i] * b[i] * b[i];
	good = good && near(got, want, N, 1e-5, 1, "gradient of the gradient");
	ok(good && yoke_op_check(op, 2, in, 0, NULL, 0) == 0,
	   "two results, one of them unused, and a second gradient: %s",
	   yoke_error());
	yoke_scope_end(s);
	yoke_error_clear();
}

// ---- a decomposition with a gradient of its own: rounding that lets gradients through ----

static int round_parts(const struct yoke_op_args *o, yoke_tensor *const *in, yoke_tensor **out)
{
	(void)o;
	yoke_scope *s = yoke_scope_begin("inner");
	out[0] = yoke_lift(yoke_round(in[0]));
	return yoke_scope_end(s);
}

static int through(const struct yoke_op_args *o, yoke_tensor *const *in, yoke_tensor *const *out,
		   yoke_tensor *const *g, yoke_tensor **to)
{
	(void)o, (void)in, (void)out;
	to[0] = g[0];
	return 0;
}

static void test_through(void)
{
	static int op;
	double got[N], want[N], slope[N], one[N];
	if (!op)
		op = yoke_op_register(&(struct yoke_op_def){ .size = sizeof(struct yoke_op_def),
							     .name = "test.round",
							     .nin = 1,
							     .nout = 1,
							     .shape = like_first,
							     .decompose = round_parts,
							     .gradient = through });
	yoke_scope *s = yoke_scope_begin("through");
	yoke_autocast(yoke_bf16, NULL); // does not reach inside
	yoke_tensor *in = vector(x), *y = NULL, *g = NULL;
	bool good = yoke_op_call(op, 1, &in, 0, NULL, 1, &y) == 0 && yoke_dtype(y) == yoke_f32;
	good = good && yoke_grad(yoke_sum(y, YOKE_ALL), 1, &in, &g) == 0;
	values(y, got);
	values(g, slope);
	for (int i = 0; i < N; i++) {
		want[i] = rint(x[i]);
		one[i] = 1;
	}
	ok(good && near(got, want, N, 0, 1, "rounded") && near(slope, one, N, 0, 1, "gradient"),
	   "a decomposition with a custom gradient: %s", yoke_error());
	yoke_scope_end(s);
	yoke_error_clear();
}

// ---- operands as they lie ----

static int turned_cpu(const struct yoke_op_args *o, int64_t chunk, int64_t chunks)
{
	const struct yoke_op_tensor *t = &o->in[0];
	const float *from = t->data;
	float *y = o->out[0].data;
	const int64_t rows = t->dims[0];
	if (t->strides[0] == 1 && t->strides[1] == 7)
		*(int *)o->arg = 1; // no copy was made
	for (int64_t r = rows * chunk / chunks; r < rows * (chunk + 1) / chunks; r++)
		for (int64_t c = 0; c < t->dims[1]; c++)
			y[r * t->dims[1] + c] = from[r * t->strides[0] + c * t->strides[1]];
	return 0;
}

static void test_strided(bool gpu)
{
	static int op, seen;
	float got[35];
	if (!op)
		op = yoke_op_register(&(struct yoke_op_def){ .size = sizeof(struct yoke_op_def),
							     .name = "test.turned",
							     .nin = 1,
							     .nout = 1,
							     .flags = YOKE_STRIDED,
							     .shape = like_first,
							     .cpu = turned_cpu,
							     .arg = &seen });
	seen = 0;
	yoke_scope *s = yoke_scope_begin("strided");
	yoke_tensor *in = yoke_permute(yoke_from(yoke_f32, 2, (int64_t[]){ 5, 7 }, x),
				       (int[]){ 1, 0 }),
		    *y = NULL;
	bool good =
		yoke_op_call(op, 1, &in, 0, NULL, 1, &y) == 0 && yoke_read(y, got, sizeof got) == 0;
	for (int i = 0; i < 35; i++)
		good = good && got[i] == x[i % 5 * 7 + i / 5];
	ok(good && (seen || gpu || tap_eager()), "operands with strides: %s", yoke_error());
	yoke_scope_end(s);
}

// ---- what is wrong ----

static void judge(int err, int code, const char *a, const char *c, const char *what)
{
	const char *line = yoke_error();
	const bool good = err == code && yoke_error_code() == code && strstr(line, a) &&
			  strstr(line, c) && !strchr(line, '\n');
	ok(good, "%s: %s", what, line);
	if (!good)
		diag("wanted %s with '%s' and '%s', got %s", yoke_error_name(code), a, c,
		     yoke_error_name(err));
	yoke_error_clear();
}

static int lies;

static int lying(const struct yoke_op_args *o, struct yoke_op_tensor *out)
{
	out[0] = o->in[0];
	out[0].dims[0] += lies;
	return 0;
}

static int impossible(const struct yoke_op_args *o, struct yoke_op_tensor *out)
{
	(void)o;
	out[0].dtype = 77;
	return 0;
}

static int short_parts(const struct yoke_op_args *o, yoke_tensor *const *in, yoke_tensor **out)
{
	(void)o;
	out[0] = yoke_sum(in[0], YOKE_ALL | YOKE_KEEP);
	return 0;
}

static int reading(const struct yoke_op_args *o, yoke_tensor *const *in, yoke_tensor *const *out,
		   yoke_tensor *const *g, yoke_tensor **to)
{
	static float v[N];
	(void)o, (void)out;
	to[0] = g[0];
	return yoke_read(yoke_add(in[0], yoke_const(1)), v, sizeof v);
}

static int open_ended(const struct yoke_op_args *o, yoke_tensor *const *in, yoke_tensor *const *out,
		      yoke_tensor *const *g, yoke_tensor **to)
{
	(void)o, (void)out, (void)in;
	to[0] = yoke_scope_begin("open") ? yoke_neg(g[0]) : NULL;
	return 0;
}

static int fails(const struct yoke_op_args *o, int64_t chunk, int64_t chunks)
{
	(void)o, (void)chunks;
	return chunk == 0 ? YOKE_ERANGE : 0;
}

static struct yoke_op_def one(const char *name)
{
	return (struct yoke_op_def){ .size = sizeof(struct yoke_op_def),
				     .name = name,
				     .nin = 1,
				     .nout = 1,
				     .shape = like_first };
}

static void test_registering(void)
{
	struct yoke_op_def d = axpb("test.whole");
	judge(yoke_op_register(&d), YOKE_EINVAL, "test.whole", "already", "an op registered twice");
	d = axpb("whole");
	judge(yoke_op_register(&d), YOKE_EINVAL, "'whole'", "no name", "a name without a dot");
	d = one("test.nothing");
	judge(yoke_op_register(&d), YOKE_EINVAL, "test.nothing", "neither",
	      "an op that nothing computes");
	d = axpb("test.counts");
	d.nout = 9;
	judge(yoke_op_register(&d), YOKE_EINVAL, "test.counts", "1 to 8", "nine results");
	d = axpb("test.entry");
	d.entry = NULL;
	judge(yoke_op_register(&d), YOKE_EINVAL, "test.entry", "kernel", "a text without an entry");
	ok(yoke_op_find("test.whole") == whole_op, "the error names the op");
	judge(yoke_op_find("test.entry"), YOKE_ENOENT, "test.entry", "no op",
	      "one that was refused is not there");
}

static int named(struct yoke_op_def d)
{
	const int op = yoke_op_register(&d);
	if (op > 0)
		return op;
	yoke_error_clear(); // it is reported by the previous device
	return yoke_op_find(d.name);
}

static void test_calls(bool gpu)
{
	float v[N];
	struct yoke_op_def d = one("test.liar");
	yoke_error_clear();
	yoke_scope *s = yoke_scope_begin("wrong");
	yoke_tensor *in[2] = { vector(x), vector(b) },
		    *whole = yoke_iota(yoke_i32, 1, (int64_t[]){ N }, 0), *y[2], *g;
	judge(yoke_op_call(whole_op, 1, in, 2, attributes(), 1, y), YOKE_EINVAL, "test.whole",
	      "got 1, 2 and 1", "too few operands");
	judge(yoke_op_call(whole_op, 2, in, 0, NULL, 1, y), YOKE_EINVAL, "test.whole",
	      "got 2, 0 and 1", "too few attributes");
	judge(yoke_op_call(9999, 2, in, 0, NULL, 1, y), YOKE_EINVAL, "9999", "no op",
	      "no op of that number");
	judge(yoke_op_call(whole_op, 2, (yoke_tensor *[]){ YOKE_NONE, in[0] }, 2, attributes(), 1,
			   y),
	      YOKE_EINVAL, "test.whole", "operand 0", "an operand that is not optional");
	judge(yoke_op_call(whole_op, 2, (yoke_tensor *[]){ whole, in[1] }, 2, attributes(), 1, y),
	      YOKE_EDTYPE, "test.whole", "x has to be f32", "what the shape function refuses");
	d.shape = lying;
	d.cpu = two_cpu;
	yoke_error_clear();
	int op = named(d);
	lies = 0;
	yoke_error_clear();
	if (tap_eager()) {
		skip("a shape function that says another shape later", "it is asked at once");
	} else {
		yoke_op_call(op, 1, in, 0, NULL, 1, y);
		lies = 3;
		ok(yoke_read(y[0], v, sizeof v) < 0 && strstr(yoke_error(), "test.liar") &&
			   strstr(yoke_error(), "[1004]"),
		   "a shape function that changes its result: %s", yoke_error());
		yoke_error_clear();
	}
	d = one("test.impossible");
	d.shape = impossible;
	d.cpu = two_cpu;
	judge(yoke_op_call(named(d), 1, in, 0, NULL, 1, y), YOKE_ESHAPE, "test.impossible", "77",
	      "a dtype that there is not");
	d = one("test.short");
	d.decompose = short_parts;
	yoke_error_clear();
	judge(yoke_op_call(named(d), 1, in, 0, NULL, 1, y), YOKE_ESHAPE, "test.short", "f32 [1]",
	      "a decomposition of another shape");
	d = one("test.flat");
	d.decompose = round_parts;
	yoke_error_clear();
	op = named(d);
	yoke_error_clear();
	ok(yoke_op_call(op, 1, in, 0, NULL, 1, y) == 0, "an op without a gradient: %s",
	   yoke_error());
	judge(yoke_grad(yoke_sum(y[0], YOKE_ALL), 1, in, &g), YOKE_EUNSUPPORTED, "test.flat",
	      "no gradient", "its gradient");
	d = one("test.reading");
	d.decompose = round_parts;
	d.gradient = reading;
	op = named(d);
	yoke_error_clear();
	yoke_op_call(op, 1, in, 0, NULL, 1, y);
	judge(yoke_grad(yoke_sum(y[0], YOKE_ALL), 1, in, &g), YOKE_EINVAL, "record", "evaluate",
	      "a gradient that reads");
	d = one("test.open");
	d.decompose = round_parts;
	d.gradient = open_ended;
	op = named(d);
	yoke_error_clear();
	yoke_op_call(op, 1, in, 0, NULL, 1, y);
	judge(yoke_grad(yoke_sum(y[0], YOKE_ALL), 1, in, &g), YOKE_EINVAL, "test.open", "scope",
	      "a gradient that leaves a scope open");
	d = one("test.fails");
	d.cpu = fails;
	op = named(d);
	yoke_error_clear();
	bool bad = yoke_op_call(op, 1, in, 0, NULL, 1, y) < 0 || yoke_read(y[0], v, sizeof v) < 0;
	ok(bad && strstr(yoke_error(), "test.fails"), "a CPU function that fails: %s",
	   yoke_error());
	yoke_error_clear();
	d = axpb("test.only");
	d.cpu = NULL;
	d.decompose = NULL;
	op = named(d);
	yoke_error_clear();
	if (!gpu)
		judge(yoke_op_call(op, 2, in, 2, attributes(), 1, y), YOKE_EUNSUPPORTED,
		      "test.only", "no kernel text",
		      "a text alone, on a device that compiles none");
	yoke_scope_end(s);
	yoke_error_clear();
}

static void test_texts(bool gpu)
{
	static char wrong[sizeof text], broken[sizeof text];
	yoke_scope *s = yoke_scope_begin("texts");
	yoke_tensor *in[2] = { vector(x), vector(b) }, *y;
	struct yoke_op_def d = axpb("test.gradient");
	d.gradient = wrong_gradient;
	judge(yoke_op_check(named(d), 2, in, 2, attributes(), 0), YOKE_EINVAL, "test.gradient",
	      "gradient by operand 0", "a wrong gradient");
	if (gpu) {
		memcpy(wrong, text, sizeof text);
		*strstr(wrong, "+\n") = '-';
		d = axpb("test.wrong");
		d.text = wrong;
		judge(yoke_op_check(named(d), 2, in, 2, attributes(), 0), YOKE_EINVAL, "test.wrong",
		      "text gives", "a wrong text");
		memcpy(broken, text, sizeof text);
		memcpy(strstr(broken, "ulong i"), "nolong", 6);
		d = axpb("test.broken");
		d.text = broken;
		judge(yoke_op_call(named(d), 2, in, 2, attributes(), 1, &y), YOKE_EUNSUPPORTED,
		      "test.broken:6", "nolong", "a text that does not compile, with its own line");
		ok(yoke_op_call(whole_op, 2, in, 2, attributes(), 1, &y) == 0,
		   "other ops still work: %s", yoke_error());
	}
	yoke_scope_end(s);
	yoke_error_clear();
}

// ---- kinks ----

// relu; attributes: its gradient at 0, and the error of the gradient elsewhere
static int relu_parts(const struct yoke_op_args *o, yoke_tensor *const *in, yoke_tensor **out)
{
	(void)o;
	out[0] = yoke_relu(in[0]);
	return 0;
}

static int relu_gradient(const struct yoke_op_args *o, yoke_tensor *const *in,
			 yoke_tensor *const *out, yoke_tensor *const *g, yoke_tensor **to)
{
	(void)out;
	yoke_tensor *here = yoke_mul(g[0], yoke_const(o->attr[0].f)),
		    *off = yoke_mul(g[0], yoke_const(o->attr[1].f));
	yoke_tensor *none = yoke_mul(g[0], yoke_const(0)), *zero = yoke_const(0);
	to[0] = yoke_select(yoke_gt(in[0], zero), off,
			    yoke_select(yoke_eq(in[0], zero), here, none));
	return 0;
}

static int warnings;
static void count_warning(int level, const char *topic, const char *line, void *arg)
{
	(void)arg;
	warnings += level == YOKE_LOG_WARN && !strcmp(topic, "op");
	if (level <= YOKE_LOG_WARN)
		diag("%s", line);
}

static void test_kinks(void)
{
	static const char *const where[] = { "some at the kink", "many within a step of the kink",
					     "all at the kink" };
	static const double slope[] = { 0, 0.5, 1 }; // finite differences give 1/2 at 0
	enum { MANY = 60 };
	float v[MANY];
	struct yoke_op_def d = { .size = sizeof d,
				 .name = "test.relu",
				 .nin = 1,
				 .nout = 1,
				 .nattr = 2,
				 .shape = like_first,
				 .decompose = relu_parts,
				 .gradient = relu_gradient };
	const int op = yoke_op_register(&d);
	yk_log_to(count_warning, NULL);
	for (int k = 0; k < 3 * 3; k++) {
		const int how = k / 3;
		for (int i = 0; i < MANY; i++)
			v[i] = how == 2 || (how == 0 && i % 7 == 3) ?
				       0 :
				       (float)rnd_real(0.3, 1) * (i % 2 ? 1 : -1);
		for (int i = 0; how == 1 && i < MANY; i += 5)
			v[i] = (float)rnd_real(-0.02, 0.02);
		for (int wrong = 0; wrong < 2; wrong++) {
			yoke_scope *s = yoke_scope_begin("kinks");
			yoke_tensor *in = yoke_from(yoke_f32, 1, (int64_t[]){ MANY }, v);
			const union yoke_attr attr[2] = { { .f = slope[k % 3] },
							  { .f = wrong ? 1.05 : 1 } };
			warnings = 0;
			const int err = yoke_op_check(op, 1, &in, 2, attr, 0);
			ok(err == (wrong && how < 2 ? YOKE_EINVAL : 0) &&
				   (warnings > 0) == (how == 2 && slope[k % 3] != 0.5),
			   "relu, %s, slope %g at 0, a gradient that is %s: %d, %d warnings, %s",
			   where[how], slope[k % 3], wrong ? "wrong elsewhere" : "right", err,
			   warnings, yoke_error());
			yoke_error_clear();
			yoke_scope_end(s);
		}
	}
	yk_log_to(NULL, NULL);
}

int main(int argc, char **argv)
{
	tap_seed();
	if (argc < 2)
		tap_plugin_path();
	struct yoke_op_def d = axpb("test.whole");
	whole_op = yoke_op_register(&d);
	d = axpb("test.text"), d.cpu = NULL, d.decompose = NULL;
	text_op = yoke_op_register(&d);
	d = axpb("test.cpu"), d.text = d.entry = NULL, d.decompose = NULL;
	cpu_op = yoke_op_register(&d);
	d = axpb("test.parts"), d.text = d.entry = NULL, d.cpu = NULL;
	parts_op = yoke_op_register(&d);
	ok(whole_op > 0 && text_op > whole_op && cpu_op > 0 && parts_op > 0, "registered: %s",
	   yoke_error());
	if (argc < 2)
		test_kinks();
	const char *const backends[] = { "cpu", argc < 2 ? "opencl" : argv[1] };
	for (int k = argc > 1; k < 2; k++) {
		const bool gpu = k;
		yoke_context *ctx = yoke_context_new(backends[k]);
		if (!ctx) {
			argc > 1 ? (void)ok(false, "%s: %s", backends[k], yoke_error()) :
				   skip(backends[k], yoke_error());
			yoke_error_clear();
			continue;
		}
		diag("%s", backends[k]);
		yoke_use(ctx);
		test_values(gpu);
		test_two();
		test_through();
		test_strided(gpu);
		if (!gpu)
			test_registering();
		test_calls(gpu);
		test_texts(gpu);
		yoke_use(NULL);
		yoke_context_free(ctx);
	}
	return done();
}
