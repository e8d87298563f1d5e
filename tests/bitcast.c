// SPDX-License-Identifier: Apache-2.0
// Tests yoke_bitcast for every pair of dtypes and every layout, against the bytes themselves.
// Bytes are copied only where necessary; in-place writes need a reader of the same dtype; invalid
// casts are refused.
#include "config.h"

#include "rows.h"

static const struct {
	int dtype;
	const char *name;
} dtypes[] = {
#define X(name, number, bytes) { yoke_##name, #name },
	YOKE_DTYPES(X)
#undef X
};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static uint64_t launches(void)
{
	struct yoke_stats s = { .size = sizeof s };
	yoke_stats(&s);
	return s.launches;
}

// The elements of a, row major, as they are in memory.
static void bytes_of(const struct arr *a, unsigned char *to)
{
	for (int64_t i = 0; i < a->n; i++)
		store(a->dtype, a->v[i], to + (size_t)i * yoke_dtype_size(a->dtype));
}

static bool pair(int from, int to, enum layout layout)
{
	static struct arr a;
	static unsigned char want[8 * ELEMENTS], got[sizeof want];
	const size_t was = yoke_dtype_size(from), size = yoke_dtype_size(to);

	make(&a, from, layout, 100, false);
	const int64_t bytes = a.dims[a.rank - 1] * (int64_t)was, all = a.n * (int64_t)was;
	yoke_tensor *y = yoke_bitcast(view_of(&a), to);
	if (bytes % (int64_t)size)
		return refused(y, YOKE_ESHAPE);
	bytes_of(&a, want);
	memset(got, 0xa5, sizeof got);
	bool good = y && yoke_dtype(y) == to && yoke_dim(y, -1) == bytes / (int64_t)size &&
		    yoke_rank(y) == a.rank && !yoke_read(y, got, (size_t)all) &&
		    !memcmp(got, want, (size_t)all);
	// a kernel's operand: followed by another conversion
	yoke_tensor *z = yoke_cast(yoke_bitcast(view_of(&a), to), yoke_f64);
	double f[8 * ELEMENTS];
	good = good && !yoke_read(z, f, (size_t)(all / (int64_t)size) * 8);
	for (int64_t i = 0; good && i < all / (int64_t)size; i++) {
		struct value v = load(to, want + (size_t)i * size);
		double x = is_real(to) ? v.r : (double)v.i;
		good = f[i] == x || (isnan(x) && isnan(f[i]));
	}
	return good;
}

static void pairs(void)
{
	for (int from = 0; from < DTYPES; from++)
		for (int to = 0; to < DTYPES; to++) {
			bool good = true;
			if (dtypes[to].dtype == yoke_bool || from == to)
				continue;
			for (int layout = 0; layout < LAYOUTS; layout++) {
				yoke_scope *s = yoke_scope_begin("pair");
				if (!pair(dtypes[from].dtype, dtypes[to].dtype, layout)) {
					diag("%s: %s", layout_name[layout], yoke_error());
					yoke_error_clear();
					good = false;
				}
				yoke_scope_end(s);
			}
			ok(good, "%s as %s", dtypes[from].name, dtypes[to].name);
		}
}

static const int64_t d8[] = { 8 }, d32[] = { 4, 8 }, d33[] = { 33 };

// Number of launches that the evaluation of y takes.
static uint64_t cost(yoke_tensor *y)
{
	uint64_t before = launches();
	return yoke_eval(1, &y) < 0 ? 99 : launches() - before;
}

static void copies(void)
{
	yoke_scope *s = yoke_scope_begin("copies");
	yoke_tensor *x = yoke_variable("x", yoke_f32, 2, d32),
		    *b = yoke_variable("b", yoke_u8, 1, d33);
	yoke_tensor *one = yoke_const(1), *t = yoke_permute(x, (int[]){ 1, 0 });
	ok(cost(yoke_add(yoke_bitcast(x, yoke_i32), one)) == 1,
	   "between dtypes of equal size nothing is copied");
	ok(cost(yoke_add(yoke_bitcast(t, yoke_i32), one)) == 1, "a permuted view is not copied");
	ok(cost(yoke_add(yoke_bitcast(x, yoke_u8), one)) == 1,
	   "a cast to smaller elements is not copied");
	ok(cost(yoke_add(yoke_bitcast(yoke_flip(x, YOKE_AXIS(0)), yoke_u8), one)) == 1,
	   "reversed rows are not copied");
	ok(cost(yoke_add(yoke_bitcast(t, yoke_u8), one)) == 2, "a strided last axis is copied");
	ok(cost(yoke_add(yoke_bitcast(x, yoke_f64), one)) == 1,
	   "a cast to larger elements is not copied");
	ok(cost(yoke_add(yoke_bitcast(yoke_slice(x, 1, 2, 6, 1), yoke_i64), one)) == 1,
	   "an offset that is a multiple of them is not copied");
	ok(cost(yoke_add(yoke_bitcast(yoke_slice(x, 1, 1, 7, 1), yoke_i64), one)) == 2,
	   "an offset between two elements is copied");
	ok(cost(yoke_add(yoke_bitcast(yoke_slice(b, 0, 0, 32, 1), yoke_f32), one)) == 1,
	   "bytes from the first one");
	ok(cost(yoke_add(yoke_bitcast(yoke_slice(b, 0, 1, 33, 1), yoke_f32), one)) == 2,
	   "bytes from the second one");
	int32_t bits[8];
	ok(!yoke_read(yoke_bitcast(yoke_full(yoke_f32, 1, d8, 1), yoke_i32), bits, sizeof bits) &&
		   bits[7] == 0x3f800000,
	   "a literal can be bitcast");
	yoke_free(x);
	yoke_free(b);
	yoke_scope_end(s);
}

// Writes variables over their own bytes in another dtype.
static void in_place(void)
{
	float f[8], got[8], want[8];
	int32_t w[8];
	unsigned char c[32];
	yoke_tensor *v = yoke_variable("v", yoke_f32, 1, d8);
	struct yoke_stats before = { .size = sizeof before }, after = before;

	for (int i = 0; i < 8; i++)
		f[i] = (float)rnd_real(-4, 4);
	yoke_put(v, f, sizeof f);
	yoke_scope *s = yoke_scope_begin("in place");
	yoke_stats(&before);
	// an i32 over an i32 of the same bytes
	yoke_assign(v, yoke_bitcast(yoke_xor(yoke_bitcast(v, yoke_i32), yoke_const(INT32_MIN)),
				    yoke_f32));
	yoke_read(v, got, sizeof got);
	yoke_stats(&after);
	for (int i = 0; i < 8; i++)
		want[i] = -f[i];
	ok(!memcmp(got, want, sizeof want) && after.assign_copies == before.assign_copies,
	   "signs are flipped in place");
	// i32 from every fourth byte, backwards: in place it would read bytes that it has already
	// written
	memcpy(c, want, sizeof c);
	yoke_tensor *bytes = yoke_flip(yoke_slice(yoke_bitcast(v, yoke_u8), 0, 3, 32, 4), 1);
	yoke_assign(v, yoke_bitcast(yoke_cast(bytes, yoke_i32), yoke_f32));
	for (int i = 0; i < 8; i++)
		w[i] = c[31 - 4 * i];
	yoke_read(v, got, sizeof got);
	yoke_stats(&after);
	ok(!memcmp(got, w, sizeof w) && after.assign_copies == before.assign_copies + 1,
	   "a reader of another dtype keeps its operand unchanged");
	// two readers, of which either alone would permit it
	yoke_put(v, f, sizeof f);
	yoke_tensor *i = yoke_bitcast(v, yoke_i32);
	yoke_assign(v, yoke_add(yoke_mul(v, yoke_const(2)),
				yoke_cast(yoke_shr(i, yoke_const(31)), yoke_f32)));
	for (int k = 0; k < 8; k++)
		want[k] = 2 * f[k] - (f[k] < 0);
	yoke_read(v, got, sizeof got);
	ok(!memcmp(got, want, sizeof want), "a value is read in two dtypes");
	yoke_free(v);
	yoke_scope_end(s);
}

// Intermediate values: not fused with operations of another dtype, and not overwritten while they
// have readers.
static void on_the_way(void)
{
	float f[8], sum[8];
	unsigned char got[37], want[37];
	yoke_scope *s = yoke_scope_begin("way");
	for (int i = 0; i < 8; i++)
		f[i] = (float)rnd_real(-4, 4);
	yoke_tensor *x = yoke_from(yoke_f32, 1, d8, f), *y = yoke_add(x, yoke_const(1));
	yoke_tensor *head = yoke_from(yoke_u8, 1, (int64_t[]){ 5 }, "abcde");
	for (int i = 0; i < 8; i++)
		sum[i] = f[i] + 1;
	memcpy(want, "abcde", 5);
	memcpy(want + 5, sum, 32);
	memset(got, 0xa5, sizeof got);
	yoke_tensor *all = yoke_concat(2, (yoke_tensor *[]){ head, yoke_bitcast(y, yoke_u8) }, 0);
	ok(!yoke_read(all, got, 37) && !memcmp(got, want, 37), "concatenated at an odd offset");
	ok(!yoke_read(yoke_bitcast(yoke_slice(all, 0, 5, 37, 1), yoke_f32), got, 32) &&
		   !memcmp(got, sum, 32),
	   "and sliced out again");
	int32_t bits[8], read[8];
	memcpy(bits, sum, sizeof bits);
	for (int i = 0; i < 8; i++)
		bits[i] = bits[i] & 0x7fffffff;
	y = yoke_bitcast(yoke_add(x, yoke_const(1)), yoke_i32);
	ok(!yoke_read(yoke_and(y, yoke_const(0x7fffffff)), read, 32) && !memcmp(read, bits, 32),
	   "between two maps");
	double wide[8], as[8];
	memcpy(bits, sum, sizeof bits);
	for (int i = 0; i < 8; i++)
		as[i] = bits[i];
	y = yoke_cast(yoke_bitcast(yoke_add(x, yoke_const(1)), yoke_i32), yoke_f64);
	ok(!yoke_read(y, wide, sizeof wide) && !memcmp(wide, as, sizeof wide), "before a cast");
	int32_t joined[13];
	y = yoke_bitcast(yoke_add(x, yoke_const(1)), yoke_i32);
	y = yoke_concat(2, (yoke_tensor *[]){ yoke_iota(yoke_i32, 1, (int64_t[]){ 5 }, 0), y }, 0);
	ok(!yoke_read(y, joined, sizeof joined) && joined[4] == 4 &&
		   !memcmp(joined + 5, bits, sizeof bits),
	   "concatenated where they are computed");
	y = yoke_bitcast(yoke_bitcast(yoke_add(x, yoke_const(1)), yoke_u8), yoke_f32);
	ok(!yoke_read(y, got, 32) && !memcmp(got, sum, 32), "a round trip");
	yoke_scope_end(s);
}

static void refusals(void)
{
	yoke_scope *s = yoke_scope_begin("refusals");
	yoke_tensor *x = yoke_variable("x", yoke_f32, 1, d8),
		    *b = yoke_variable("b", yoke_u8, 1, d33), *g;
	ok(refused(yoke_bitcast(x, yoke_bool), YOKE_EDTYPE), "bitcast to bool is refused");
	ok(refused(yoke_bitcast(x, 77), YOKE_EDTYPE), "bitcast to an unknown dtype is refused");
	ok(refused(yoke_bitcast(b, yoke_f32), YOKE_ESHAPE),
	   "a size that is no multiple of the element is refused");
	ok(refused(yoke_bitcast(yoke_sum(x, YOKE_ALL), yoke_u8), YOKE_ESHAPE),
	   "bitcast of a scalar to another size is refused");
	yoke_tensor *y =
		yoke_bitcast(yoke_and(yoke_bitcast(x, yoke_i32), yoke_const(-2)), yoke_f32);
	ok(yoke_grad(yoke_sum(yoke_mul(x, y), YOKE_ALL), 1, &x, &g) == YOKE_EUNSUPPORTED &&
		   strstr(yoke_error(), "bitcast has no gradient"), "a bitcast has no gradient");
	yoke_error_clear();
	ok(!yoke_grad(yoke_sum(yoke_mul(x, yoke_stop_grad(y)), YOKE_ALL), 1, &x, &g),
	   "other operands have gradients");
	yoke_free(x);
	yoke_free(b);
	yoke_scope_end(s);
}

int main(void)
{
	tap_seed();
	pairs();
	copies();
	in_place();
	on_the_way();
	refusals();
	ok(!yoke_error_code(), "no error is left: %s", yoke_error());
	return done();
}
