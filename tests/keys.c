// SPDX-License-Identifier: Apache-2.0
// Tests the plan key field by field: two graphs that differ in one field get two plans, each is
// found again and gives correct values, and the report of a miss names that field.

#include "config.h"

#include "base/log.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "tap.h"
#include "yoke.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

struct made { // what a variant gives, and should
	yoke_tensor *t;
	int n;
	double want[24];
};

static yoke_tensor *x, *y;  // f32 [2,3]: 1 .. 6 and 10, 20 .. 60
static yoke_tensor *v, *u;  // variables f32 [2,3]
static yoke_tensor *wide;   // f64 [2,3], as x
static yoke_tensor *scalar; // 3

static const double X[6] = { 1, 2, 3, 4, 5, 6 }, Y[6] = { 10, 20, 30, 40, 50, 60 };

static uint64_t misses(void)
{
	struct yoke_stats s = { .size = sizeof s };
	yoke_stats(&s);
	return s.plan_misses;
}

// A value whose element k should be f(k).
#define MADE(tensor, count, expression) \
	struct made m = { .t = (tensor), .n = (count) }; \
	for (int k = 0; k < m.n; k++) \
		m.want[k] = (expression); \
	return m

static struct made op(int b)
{
	MADE(b ? yoke_mul(x, y) : yoke_add(x, y), 6, b ? X[k] * Y[k] : X[k] + Y[k]);
}

static struct made rank(int b)
{
	MADE(yoke_neg(yoke_reshape(x, b ? 1 : 3, b ? DIMS(6) : DIMS(3, 1, 2))), 6, -X[k]);
}

static struct made operands(int b)
{
	MADE(yoke_concat(2 + b, (yoke_tensor *[]){ x, x, x }, 0), 12 + 6 * b, X[k % 6]);
}

static struct made operand(int b)
{
	MADE(yoke_mul(yoke_add(x, y), b ? yoke_sub(y, x) : yoke_sub(x, y)), 6,
	     (X[k] + Y[k]) * (b ? Y[k] - X[k] : X[k] - Y[k]));
}

static struct made list(int b)
{
	double sum = 0;
	for (int k = 0; k < 6; k++)
		sum += (2 + b) * X[k] * X[k];
	MADE(yoke_global_norm(2 + b, (yoke_tensor *[]){ x, x, x }), 1, (double)sqrtf((float)sum));
}

static struct made leaf_dtype(int b)
{
	MADE(yoke_square(b ? wide : x), 6, X[k] * X[k]);
}

static struct made leaf_rank(int b)
{
	static const float d[6] = { 1, 2, 3, 4, 5, 6 };
	MADE(yoke_square(yoke_from(yoke_f32, 1 + b, b ? DIMS(3, 2) : DIMS(6), d)), 6, X[k] * X[k]);
}

static struct made leaf_dim(int b)
{
	static const float d[6] = { 1, 2, 3, 4, 5, 6 };
	MADE(yoke_square(yoke_from(yoke_f32, 1, DIMS(5 + b), d)), 5 + b, X[k] * X[k]);
}

static struct made leaf_alias(int b)
{
	static const float d[6] = { 1, 2, 3, 4, 5, 6 };
	yoke_tensor *f = yoke_from(yoke_f32, 2, DIMS(2, 3), d);
	const void *at; // b: another handle of the same elements
	yoke_tensor *same = b ? yoke_share(f, &at) : yoke_from(yoke_f32, 2, DIMS(2, 3), d);
	MADE(yoke_add(yoke_mul(f, yoke_const(2)), same), 6, 3 * X[k]);
}

static struct made scalar_dtype(int b)
{
	yoke_tensor *sum = yoke_add(yoke_cast(x, yoke_f64), wide);
	yoke_tensor *p = b ? yoke_mul(scalar, wide) : yoke_cast(yoke_mul(scalar, x), yoke_f64);
	MADE(yoke_add(sum, p), 6, 5 * X[k]);
}

static struct made kind_of_leaf(int b)
{
	static const float three = 3;
	MADE(yoke_mul(b ? yoke_from(yoke_f32, 0, NULL, &three) : scalar, x), 6, 3 * X[k]);
}

static struct made matmul_flags(int b)
{
	yoke_tensor *p = b ? yoke_matmul(x, y, YOKE_TA) : yoke_matmul(x, y, YOKE_TB);
	struct made m = { .t = p, .n = b ? 9 : 4 };
	for (int i = 0; i < (b ? 3 : 2); i++)
		for (int j = 0; j < (b ? 3 : 2); j++)
			for (int k = 0; k < (b ? 2 : 3); k++)
				m.want[i * (b ? 3 : 2) + j] += b ? X[k * 3 + i] * Y[k * 3 + j] :
								   X[i * 3 + k] * Y[j * 3 + k];
	return m;
}

static struct made axes(int b)
{
	MADE(yoke_sum(x, YOKE_AXIS(b) | YOKE_KEEP), b ? 2 : 3,
	     b ? X[3 * k] + X[3 * k + 1] + X[3 * k + 2] : X[k] + X[k + 3]);
}

static struct made keep_axes(int b)
{
	MADE(yoke_neg(yoke_sum(x, YOKE_AXIS(0) | (b ? YOKE_KEEP : 0))), 3, -(X[k] + X[k + 3]));
}

static struct made reshape_dim(int b)
{
	MADE(yoke_neg(yoke_reshape(x, 2, b ? DIMS(6, 1) : DIMS(3, 2))), 6, -X[k]);
}

static struct made broadcast_dim(int b)
{
	MADE(yoke_neg(yoke_broadcast_to(x, 3, DIMS(2 + b, 2, 3))), 12 + 6 * b, -X[k % 6]);
}

static struct made permute_axis(int b)
{
	yoke_tensor *c = yoke_reshape(x, 3, DIMS(1, 2, 3));
	MADE(yoke_neg(yoke_permute(c, b ? (int[]){ 0, 2, 1 } : (int[]){ 0, 1, 2 })), 6,
	     b ? -X[k % 2 * 3 + k / 2] : -X[k]);
}

static struct made slice_start(int b)
{
	MADE(yoke_neg(yoke_slice(x, 1, b, 2 + b, 1)), 4, -X[k / 2 * 3 + k % 2 + b]);
}

static struct made slice_step(int b)
{
	MADE(yoke_neg(yoke_slice(x, 1, 0, b ? 3 : 2, 1 + b)), 4, -X[k / 2 * 3 + k % 2 * (1 + b)]);
}

static struct made slice_size(int b)
{
	MADE(yoke_neg(yoke_slice(x, 0, 0, 1 + b, 1)), 3 + 3 * b, -X[k]);
}

static struct made pad_before(int b)
{
	MADE(yoke_pad(x, DIMS(b, 0), DIMS(1 - b, 0), 0), 9,
	     b ? (k < 3 ? 0 : X[k - 3]) : (k < 6 ? X[k] : 0));
}

static struct made pad_value(int b)
{
	MADE(yoke_pad(x, DIMS(0, 0), DIMS(1, 0), 7 + b), 9, k < 6 ? X[k] : 7 + b);
}

static struct made absent_operand(int b) // the same leaves and operands, another of them left out
{
	static const float one[3] = { 1, 1, 1 };
	yoke_tensor *w = yoke_from(yoke_f32, 1, DIMS(3), one);
	double root = sqrt(2.0 / 3 + 1);
	MADE(yoke_layer_norm(x, b ? YOKE_NONE : w, b ? w : YOKE_NONE, 1), 6,
	     (X[k] - (k < 3 ? 2 : 5)) / root + b);
}

static struct made literal(int b)
{
	MADE(yoke_mul(x, yoke_const(2 + b)), 6, (2 + b) * X[k]);
}

static struct made cast_dtype(int b)
{
	MADE(yoke_cast(x, b ? yoke_i64 : yoke_i32), 6, X[k]);
}

static struct made concat_axis(int b)
{
	MADE(yoke_concat(2, (yoke_tensor *[]){ x, y }, b), 12,
	     !b ? (k < 6 ? X[k] : Y[k - 6]) : k % 6 < 3 ? X[k / 6 * 3 + k % 6] :
							  Y[k / 6 * 3 + k % 6 - 3]);
}

static struct made gather_axis(int b)
{
	static const int32_t one[1] = { 1 };
	yoke_tensor *i = yoke_from(yoke_i32, 1, DIMS(1), one);
	MADE(yoke_gather(x, i, b), b ? 2 : 3, b ? X[3 * k + 1] : X[3 + k]);
}

static struct made update_start(int b)
{
	static const float nine = 9;
	yoke_tensor *p = yoke_from(yoke_f32, 2, DIMS(1, 1), &nine);
	MADE(yoke_slice_update(x, DIMS(0, 1 + b), p), 6, k == 1 + b ? 9 : X[k]);
}

static struct made epsilon(int b) // an attribute that is a fraction
{
	double eps = b ? 6 : 1, mean[2] = { 2, 5 }, root = sqrt(2.0 / 3 + eps);
	MADE(yoke_layer_norm(x, YOKE_NONE, YOKE_NONE, eps), 6, (X[k] - mean[k / 3]) / root);
}

static struct made iota_dim(int b)
{
	MADE(yoke_iota(yoke_f32, 1, DIMS(5 + b), 0), 5 + b, k);
}

// want is what the first call in the scope gave.
static struct made ordinal(int b)
{
	static double first[2][8];
	static bool known[2];
	yoke_scope *s = yoke_scope_begin(b ? "b" : "a");
	struct made m = { .t = yoke_lift(yoke_uniform(yoke_f32, 1, DIMS(8))), .n = 8 };
	yoke_scope_end(s);
	if (!known[b]) {
		float got[8];
		known[b] = true;
		yoke_read(yoke_keep(m.t), got, sizeof got);
		for (int k = 0; k < 8; k++)
			first[b][k] = (double)got[k];
	}
	memcpy(m.want, first[b], sizeof first[b]);
	return m;
}

static struct made roots(int b)
{
	yoke_tensor *e = yoke_neg(x);
	yoke_tensor *kept = b ? yoke_square(e) : NULL;
	struct made m = { .t = yoke_abs(e), .n = 6 };
	memcpy(m.want, X, sizeof X);
	if (b) // one result more
		yoke_eval(2, (yoke_tensor *[]){ m.t, kept });
	return m;
}

static struct made root_value(int b)
{
	yoke_tensor *e = yoke_mul(x, yoke_const(-2)), *f = yoke_abs(e);
	yoke_eval(2, b ? (yoke_tensor *[]){ f, e } : (yoke_tensor *[]){ e, f });
	MADE(b ? f : e, 6, b ? 2 * X[k] : -2 * X[k]);
}

static struct made root_kind(int b)
{
	yoke_tensor *e = yoke_mul(x, yoke_const(5));
	if (b)
		yoke_assign(v, e);
	MADE(b ? v : e, 6, 5 * X[k]);
}

static struct made donor(int b)
{
	static const float d[6] = { 1, 2, 3, 4, 5, 6 };
	yoke_put(v, d, sizeof d);
	yoke_put(u, d, sizeof d);
	yoke_assign(b ? u : v, yoke_mul(v, yoke_const(7)));
	MADE(b ? u : v, 6, 7 * X[k]);
}

static struct made idle(int b)
{
	static const float d[6] = { 1, 2, 3, 4, 5, 6 };
	yoke_put(v, d, sizeof d);
	yoke_assign(u, b ? v : x); // the old version is u's as well
	yoke_eval(0, NULL);
	yoke_assign(v, yoke_mul(v, yoke_const(8)));
	MADE(v, 6, 8 * X[k]);
}

static const struct {
	const char *name, *report;
	struct made (*make)(int);
} row[] = {
	{ "op", "it was", op },
	{ "rank of a reshape", "rank: 3 -> 1", rank },
	{ "number of operands", "operands: 2 -> 3", operands },
	{ "operand", "operand 0 is another value", operand },
	{ "tensors in a list", "operands: 2 -> 3", list },
	{ "dtype of a leaf", "dtype: f32 -> f64", leaf_dtype },
	{ "rank of a leaf", "rank: 1 -> 2", leaf_rank },
	{ "dim of a leaf", "dim 0: 5 -> 6", leaf_dim },
	{ "leaves that share elements", "which earlier leaf", leaf_alias },
	{ "dtype of a scalar", "dtype: f32 -> f64", scalar_dtype },
	{ "kind of leaf", "it was scalar", kind_of_leaf },
	{ "transposition", "flags: 2 -> 1", matmul_flags },
	{ "axes", "axes: 1 -> 2", axes },
	{ "axes kept", "keep: 0 -> 1", keep_axes },
	{ "dim of a reshape", "dim 0: 3 -> 6", reshape_dim },
	{ "dim of a broadcast", "dim 0: 2 -> 3", broadcast_dim },
	{ "axis of a permutation", "axis 1: 1 -> 2", permute_axis },
	{ "start of a slice", "start 1: 0 -> 1", slice_start },
	{ "step of a slice", "step 1: 1 -> 2", slice_step },
	{ "size of a slice", "size 0: 1 -> 2", slice_size },
	{ "elements before", "before 0: 0 -> 1", pad_before },
	{ "value of a pad", "value: bits 0x40e00000 -> 0x41000000", pad_value },
	{ "operand that is absent", "operand 1 is another value", absent_operand },
	{ "literal", "value: bits 0x40000000 -> 0x40400000", literal },
	{ "dtype of a cast", "dtype: i32 -> i64", cast_dtype },
	{ "axis of a concat", "axis: 0 -> 1", concat_axis },
	{ "axis of a gather", "axis: 0 -> 1", gather_axis },
	{ "start of an update", "start 1: 1 -> 2", update_start },
	{ "an attribute of a named op", "attribute 0: 1 -> 6", epsilon },
	{ "dim of iota", "dim 0: 5 -> 6", iota_dim },
	{ "random ordinal", "another call of a random op", ordinal },
	{ "number of results", "results: 1 -> 2", roots },
	{ "which results", "result 0: another value", root_value },
	{ "kind of result", "result 0: a variable or a kept value", root_kind },
	{ "old version of a variable", "result 0: whether a variable's old version exists", donor },
	{ "whether it is idle", "may be overwritten", idle },
};

static bool right(const struct made *m, const char *name)
{
	unsigned char got[24 * 8];
	memset(got, 0xff, sizeof got);
	size_t size = yoke_dtype_size(yoke_dtype(m->t));
	if (!ok(m->t && yoke_count(m->t) == m->n, "%s: %d elements %s", name, m->n, yoke_error()) ||
	    !ok(!yoke_read(m->t, got, size * (size_t)m->n), "%s: read %s", name, yoke_error()))
		return false;
	double g[24];
	for (int k = 0; k < m->n; k++)
		switch (yoke_dtype(m->t)) {
		case yoke_f32: g[k] = (double)((float *)got)[k]; break;
		case yoke_f64: g[k] = ((double *)got)[k]; break;
		case yoke_i32: g[k] = ((int32_t *)got)[k]; break;
		default: g[k] = (double)((int64_t *)got)[k];
		}
	return near(g, m->want, (size_t)m->n, 1e-6, 1, name);
}

// Evaluations that needed a plan, of one variant.
static uint64_t try(size_t i, int b)
{
	yoke_random_set(0, 0); // the same random numbers each time
	yoke_scope *s = yoke_scope_begin("key");
	uint64_t before = misses();
	struct made m = row[i].make(b);
	right(&m, row[i].name);
	yoke_scope_end(s);
	return misses() - before;
}

// A context with the leaves that graphs are made of, and no plans.
static void begin(void)
{
	float fx[6], fy[6];
	for (int k = 0; k < 6; k++) {
		fx[k] = (float)X[k];
		fy[k] = (float)Y[k];
	}
	yoke_use(yoke_context_new(NULL));
	x = yoke_from(yoke_f32, 2, DIMS(2, 3), fx);
	y = yoke_from(yoke_f32, 2, DIMS(2, 3), fy);
	wide = yoke_from(yoke_f64, 2, DIMS(2, 3), X);
	v = yoke_variable("v", yoke_f32, 2, DIMS(2, 3));
	u = yoke_variable("u", yoke_f32, 2, DIMS(2, 3));
	scalar = yoke_scalar(3);
}

static void end(void)
{
	yoke_context_free(yoke_use(NULL));
}

static void field(size_t i)
{
	begin();
	try(i, 0);
	uint64_t first = try(i, 0), second = try(i, 1);
	char report[300];
	snprintf(report, sizeof report, "%s", yoke_plan_miss());
	ok(!first && second >= 1,
	   "%s: the same graph reuses its plan, another graph gets a new one: %llu, %llu",
	   row[i].name, (unsigned long long)first, (unsigned long long)second);
	ok(strstr(report, row[i].report), "%s: the report names \"%s\" in \"%s\"", row[i].name,
	   report, row[i].report);
	uint64_t again = try(i, 0) + try(i, 1);
	ok(!again, "%s: both plans are found again", row[i].name);
	end();
}

// After a setting was set an old plan may not be used.
static void settings(void)
{
	begin();
	try(0, 0);
	yoke_setting_set("fuse", "0");
	uint64_t n = try(0, 0);
	ok(n == 1 && strstr(yoke_plan_miss(), "setting"),
	   "after a setting changed, a new plan is made: \"%s\"", yoke_plan_miss());
	yoke_setting_set("fuse", "1");
	end();
}

// The report compares with the nearest plan, not with the one used last.
static void nearest(void)
{
	static const float d[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	begin();
	for (int n = 7; n <= 8; n++) {
		float got[8] = { NAN };
		yoke_scope *s = yoke_scope_begin("step");
		yoke_tensor *a = yoke_from(yoke_f32, 1, DIMS(n), d), *h = a;
		for (int i = 0; i < 20; i++)
			h = yoke_neg(yoke_abs(h));
		yoke_read(h, got, sizeof *got * (size_t)n);
		ok(got[n - 1] == -(float)n, "a chain of %d elements: %g", n, (double)got[n - 1]);
		if (n == 7) // two that come between
			try(0, 0), try(1, 1);
		yoke_scope_end(s);
	}
	ok(!strcmp(yoke_plan_miss(), "node 0 leaf in step: dim 0: 7 -> 8"),
	   "the report compares with the nearest plan: \"%s\"",
	   yoke_plan_miss());
	end();
}

// What lies in memory of the application's, or in the host's, is read as what it is.
static void apart(void)
{
	static float d[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	begin();
	for (int n = 7; n <= 9; n++) {
		const int size = n < 8 ? n : 8;
		float got[8] = { NAN };
		yoke_scope *s = yoke_scope_begin("step");
		yoke_tensor *first = n < 9 ? yoke_wrap(yoke_f32, 1, DIMS(1), d, NULL, NULL) :
					     yoke_from(yoke_f32, 1, DIMS(1), d);
		yoke_tensor *h = yoke_add(first, yoke_from(yoke_f32, 1, DIMS(size), d));
		yoke_read(h, got, sizeof *got * (size_t)size);
		ok(got[size - 1] == (float)(size + 1), "a sum of %d elements: %g", size,
		   (double)got[size - 1]);
		yoke_scope_end(s);
		if (n == 8)
			ok(!strcmp(yoke_plan_miss(), "node 1 leaf in step: dim 0: 7 -> 8"),
			   "after a wrapped value: \"%s\"", yoke_plan_miss());
	}
	ok(!strcmp(yoke_plan_miss(), "node 0 leaf in step: whose memory holds it"),
	   "wrapped or not is part of the key: \"%s\"", yoke_plan_miss());
	end();
}

static char warning[400];
static int warnings;

static void on_log(int level, const char *topic, const char *line, void *arg)
{
	(void)arg;
	if (level > YOKE_LOG_WARN || strcmp(topic, "plan"))
		return;
	warnings++;
	snprintf(warning, sizeof warning, "%s", line);
}

// A literal that changes needs a plan each time.  In every fourth step nobody hears of it; in every
// second one the eighth among sixteen warns, once, and names the field.
static void often(void)
{
	int at = -1;
	float got[6] = { NAN };
	begin();
	yk_log_to(on_log, NULL);
	yoke_setting_set("log", "warn");
	for (int t = 0; t < 64; t++) {
		int value = t % (t < 32 ? 4 : 2) ? 1 : 1 + t;
		yoke_scope *s = yoke_scope_begin("step");
		yoke_read(yoke_mul(x, yoke_const(value)), got, sizeof got);
		if (got[5] != 6 * (float)value)
			ok(false, "step %d: %g", t, (double)got[5]);
		yoke_scope_end(s);
		if (warnings && at < 0)
			at = t;
	}
	yoke_setting_set("log", "error");
	yk_log_to(NULL, NULL);
	// 32, 34, .. 46 are the first eight of 31 .. 46
	ok(warnings == 1 && at == 46, "many new plans: %d warnings, at step %d", warnings, at);
	ok(strstr(warning, "8 of the last 16 evaluations") &&
		   strstr(warning, "const in step: value: bits"),
	   "the warning names the field: %s", warning);
	end();
}

// Evaluations of other operations each, and of shapes that come twice, need plans and nobody is
// warned.
static void first_ones(void)
{
	float got[6] = { NAN };
	begin();
	const uint64_t before = misses();
	warnings = 0;
	yk_log_to(on_log, NULL);
	yoke_setting_set("log", "warn");
	for (int t = 0; t < 24; t++) {
		yoke_scope *s = yoke_scope_begin("step");
		yoke_tensor *power = x;
		for (int k = 0; k <= t; k++)
			power = yoke_mul(power, x);
		yoke_read(power, got, sizeof got);
		yoke_scope_end(s);
	}
	for (int t = 0; t < 48; t++) {
		const int64_t n = 2 + t / 2;
		yoke_scope *s = yoke_scope_begin("step");
		yoke_read(yoke_sum(yoke_full(yoke_f32, 1, &n, 1), YOKE_ALL), got, sizeof *got);
		if (got[0] != (float)n)
			ok(false, "%d ones: %g", (int)n, (double)got[0]);
		yoke_scope_end(s);
	}
	yoke_setting_set("log", "error");
	yk_log_to(NULL, NULL);
	ok(!warnings && misses() - before >= 24 + 24,
	   "%llu first evaluations: %d warnings", (unsigned long long)(misses() - before),
	   warnings);
	end();
}

// A layer that makes a number of its own: freed before the evaluation, its value is still no part
// of the plan.
static void freed_scalars(void)
{
	begin();
	uint64_t before = misses();
	bool good = true;
	for (int t = 0; t < 8; t++) {
		float got[6] = { NAN };
		yoke_scope *s = yoke_scope_begin("layer");
		yoke_tensor *own = yoke_scalar(t), *f = yoke_lift(yoke_mul(x, own));
		yoke_scope_end(s);
		good &= !yoke_read(f, got, sizeof got) && got[5] == 6 * (float)t;
		yoke_free(f);
	}
	ok(good && misses() - before == 1, "eight values of a freed number: %llu plans, \"%s\"",
	   (unsigned long long)(misses() - before), yoke_plan_miss());
	end();
}

// Were a key to say too little, the launch would notice: here the plan wants more than the leaf
// has.
static void slots(void)
{
	begin();
	try(0, 0);
	struct yk_plan *p = NULL;
	struct yk_planner *pl = yoke_use(NULL)->planner;
	yoke_use(pl->ctx);
	for (int i = 0; i < YK_BUCKETS && !p; i++)
		p = pl->cache.bucket[i];
	uint64_t had = p->layout.leaf_bytes[1];
	float got[6];
	p->layout.leaf_bytes[1] = 1 << 20;
	yoke_scope *s = yoke_scope_begin("key");
	yoke_tensor *t = yoke_add(x, y);
	int err = yoke_read(t, got, sizeof got);
	ok(had == sizeof got && err == YOKE_EINVAL && strstr(yoke_error(), "1048576 bytes"),
	   "a leaf too small for its slot is refused: %s", yoke_error());
	yoke_error_clear();
	p->layout.leaf_bytes[1] = had;
	err = yoke_read(t, got, sizeof got);
	ok(!err && got[5] == 66, "the refusal has no side effect: %s", yoke_error());
	yoke_scope_end(s);
	end();
}

int main(void)
{
	if (tap_eager())
		return skip_all("its plans are of whole graphs");
	tap_seed();
	yoke_setting_set("log", "error"); // new plans are what we want
	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		field(i);
	settings();
	nearest();
	apart();
	often();
	first_ones();
	freed_scalars();
	slots();
	ok(!yoke_error_code(), "no error is left: %s", yoke_error());
	return done();
}
