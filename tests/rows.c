// SPDX-License-Identifier: Apache-2.0
// Tests every map and reduction op in every dtype and layout, including the extremes of each
// dtype's range, against loops in wide types; unsupported combinations are refused.
#include "config.h"

#include "rows.h"

#define DTYPES 9

enum takes { INTEGERS = 1, REALS = 2, BOOLS = 4, NUMBERS = 3, BITS = 5, ANY = 7 };

struct row {
	const char *name;
	int code; // enum yoke_map_code or yoke_reduce_kind
	yoke_tensor *(*one)(yoke_tensor *);
	yoke_tensor *(*two)(yoke_tensor *, yoke_tensor *);
	int takes;
	double ulps; // in units of the dtype computed in; 0: exact
};

#define ONE(name, code, takes, ulps) { #name, YOKE_MAP_##code, yoke_##name, NULL, takes, ulps }
#define TWO(name, code, takes, ulps) { #name, YOKE_MAP_##code, NULL, yoke_##name, takes, ulps }
static const struct row maps[] = {
	TWO(add, ADD, NUMBERS, 0),
	TWO(sub, SUB, NUMBERS, 0),
	TWO(mul, MUL, NUMBERS, 0),
	TWO(div, DIV, NUMBERS, 0),
	TWO(pow, POW, REALS, 4),
	TWO(min, MIN, NUMBERS, 0),
	TWO(max, MAX, NUMBERS, 0),
	ONE(neg, NEG, NUMBERS, 0),
	ONE(abs, ABS, NUMBERS, 0),
	ONE(sign, SIGN, NUMBERS, 0),
	ONE(floor, FLOOR, NUMBERS, 0),
	ONE(round, ROUND, NUMBERS, 0),
	ONE(ceil, CEIL, NUMBERS, 0),
	ONE(exp, EXP, REALS, 4),
	ONE(log, LOG, REALS, 4),
	ONE(log1p, LOG1P, REALS, 4),
	ONE(expm1, EXPM1, REALS, 4),
	ONE(sqrt, SQRT, REALS, 0),
	ONE(rsqrt, RSQRT, REALS, 4),
	ONE(recip, RECIP, REALS, 0),
	ONE(square, SQUARE, NUMBERS, 0),
	ONE(sin, SIN, REALS, 4),
	ONE(cos, COS, REALS, 4),
	ONE(tanh, TANH, REALS, 6),
	ONE(sigmoid, SIGMOID, REALS, 6),
	ONE(erf, ERF, REALS, 4),
	TWO(eq, EQ, ANY, 0),
	TWO(ne, NE, ANY, 0),
	TWO(lt, LT, ANY, 0),
	TWO(le, LE, ANY, 0),
	TWO(gt, GT, ANY, 0),
	TWO(ge, GE, ANY, 0),
	TWO(mod, MOD, NUMBERS, 0),
	TWO(and, AND, BITS, 0),
	TWO(or, OR, BITS, 0),
	TWO(xor, XOR, BITS, 0),
	ONE(not, NOT, BITS, 0),
	TWO(shl, SHL, INTEGERS, 0),
	TWO(shr, SHR, INTEGERS, 0),
	ONE(isfinite, ISFINITE, REALS, 0),
};
static const struct row reductions[] = {
	{ .name = "sum", .code = YOKE_REDUCE_SUM, .takes = NUMBERS },
	{ .name = "mean", .code = -YOKE_REDUCE_SUM, .takes = REALS },
	{ .name = "prod", .code = YOKE_REDUCE_PROD, .takes = NUMBERS },
	{ .name = "reduce_max", .code = YOKE_REDUCE_MAX, .takes = NUMBERS },
	{ .name = "reduce_min", .code = YOKE_REDUCE_MIN, .takes = NUMBERS },
	{ .name = "argmax", .code = YOKE_REDUCE_ARGMAX, .takes = NUMBERS },
	{ .name = "argmin", .code = YOKE_REDUCE_ARGMIN, .takes = NUMBERS },
	{ .name = "any", .code = -1000, .takes = BOOLS },
	{ .name = "all", .code = -1001, .takes = BOOLS },
};

static bool taken(int takes, int d)
{
	return takes & (d == yoke_bool ? BOOLS : is_real(d) ? REALS : INTEGERS);
}

static struct arr a, b, c, want;
static char text[120];

static void map(const struct row *r, int d)
{
	bool good = true, minmax = r->code == YOKE_MAP_MIN || r->code == YOKE_MAP_MAX;
	bool wave = r->code == YOKE_MAP_SIN || r->code == YOKE_MAP_COS;
	// one rounding to half precision may go either way
	double unit = r->ulps > 0 ? r->ulps * unit_of(d == yoke_f64 ? d : yoke_f32) : 0;
	if (r->ulps > 0 && (d == yoke_f16 || d == yoke_bf16))
		unit = 2.1 * unit_of(d);
	struct bound bound = { unit, unit > 0 && d == yoke_f16 ? 0x1p-24 : 0,
			       minmax || r->code == YOKE_MAP_SIGN };
	if (unit > 0 && d == yoke_bf16)
		bound.absolute = 0x1p-133;
	for (int layout = 0; layout < LAYOUTS; layout++) {
		make(&a, d, layout, 4, true);
		make(&b, d, r->two && layout < RANK8 ? (layout + 1) % RANK8 : layout, 4, true);
		// the argument reduction for large arguments is coarse
		for (int64_t i = 0; i < a.n; i++)
			if (wave && !(fabs(a.v[i].r) < 1e4))
				a.v[i].r = 1.5;
		if (wave)
			lay_plain(&a);
		bool test = r->code >= YOKE_MAP_EQ;
		set_dims(&want, test ? yoke_bool : d, a.rank, a.dims);
		for (int64_t i = 0; i < a.n; i++) {
			want.v[i] = insn_of(r->code, d, test ? yoke_bool : d, a.v[i], b.v[i]);
			if (r->code == YOKE_MAP_RSQRT && a.v[i].r == 0)
				want.v[i].r = INFINITY; // of either sign
		}
		yoke_tensor *y = r->one ? r->one(view_of(&a)) : r->two(view_of(&a), view_of(&b));
		if (r->code == YOKE_MAP_RSQRT)
			y = yoke_select(yoke_eq(view_of(&a), yoke_const(0)), yoke_abs(y), y);
		snprintf(text, sizeof text, "%s %s, %s", r->name, yoke_dtype_name(d),
			 layout_name[layout]);
		good = same(y, &want, bound, text) && good;
	}
	ok(good, "%s %s", r->name, yoke_dtype_name(d));
}

static void select_row(int d)
{
	bool good = true;
	for (int layout = 0; layout < LAYOUTS; layout++) {
		make(&a, d, layout, 9, true);
		make(&b, d, layout < RANK8 ? (layout + 2) % RANK8 : layout, 9, true);
		make(&c, yoke_bool, layout < RANK8 ? (layout + 1) % RANK8 : layout, 1, false);
		set_dims(&want, d, a.rank, a.dims);
		for (int64_t i = 0; i < a.n; i++)
			want.v[i] = c.v[i].i ? a.v[i] : b.v[i];
		good = same(yoke_select(view_of(&c), view_of(&a), view_of(&b)), &want, exact,
			    "select") &&
		       good;
	}
	ok(good, "select %s", yoke_dtype_name(d));
}

static void cast_row(int d)
{
	bool good = true;
	for (int to = yoke_f32; to <= yoke_bool; to++)
		for (int layout = 0; layout < LAYOUTS; layout++) {
			make(&a, d, layout, 300, true);
			set_dims(&want, to, a.rank, a.dims);
			for (int64_t i = 0; i < a.n; i++)
				want.v[i] = insn_of(YOKE_MAP_CAST, d, to, a.v[i], a.v[i]);
			snprintf(text, sizeof text, "%s to %s, %s", yoke_dtype_name(d),
				 yoke_dtype_name(to), layout_name[layout]);
			good = same(yoke_cast(view_of(&a), to), &want, exact, text) && good;
		}
	ok(good, "cast %s to all", yoke_dtype_name(d));
}

// ---- reductions ----

static bool better(int code, int d, struct value x, struct value best)
{
	bool largest = code == YOKE_REDUCE_MAX || code == YOKE_REDUCE_ARGMAX;
	if (!is_real(d))
		return largest ? x.i > best.i : x.i < best.i;
	if (isnan(best.r))
		return false;
	return isnan(x.r) || (largest ? x.r > best.r : x.r < best.r);
}

// Loops over x once for each result; *size gets the largest sum of magnitudes.
static void reduce_reference(int code, unsigned axes, bool keep, double *size)
{
	bool arg = code == YOKE_REDUCE_ARGMAX || code == YOKE_REDUCE_ARGMIN;
	int64_t dims[YOKE_MAX_RANK], from[YOKE_MAX_RANK] = { 0 }, count = 1;
	int rank = 0, d = a.dtype;
	for (int i = 0; i < a.rank; i++) {
		count *= axes >> i & 1 ? a.dims[i] : 1;
		if (!(axes >> i & 1) || keep)
			dims[rank++] = axes >> i & 1 ? 1 : a.dims[i];
	}
	set_dims(&want, arg ? yoke_i64 : d, rank, dims);
	*size = 0;
	for (int64_t k = 0; k < want.n; k++) {
		long double sum = 0, magnitude = 0, prod = 1;
		__int128 whole = 0;
		int64_t times = 1, best = -1, place = 0, ix[YOKE_MAX_RANK] = { 0 };
		struct value smallest = { 0, 0 };
		bool any = false, all = true;
		for (int64_t j = 0; j < a.n; j++, next_index(a.rank, a.dims, ix)) {
			bool mine = true;
			for (int i = 0; i < a.rank && mine; i++)
				mine = axes >> i & 1 || ix[i] == from[i];
			if (!mine)
				continue;
			sum += a.v[j].r;
			magnitude += fabs(a.v[j].r);
			prod *= a.v[j].r;
			whole += a.v[j].i;
			times = yk_num_wrap((uint64_t)times * (uint64_t)a.v[j].i, d);
			any |= a.v[j].i != 0;
			all &= a.v[j].i != 0;
			if (best < 0 || better(code, d, a.v[j], smallest)) {
				best = j;
				smallest = a.v[j];
				place = ix[arg ? __builtin_ctz(axes) : 0];
			}
		}
		struct value *to = &want.v[k];
		*to = (struct value){ 0, 0 };
		*size = fmax(*size, isfinite((double)magnitude) ? (double)magnitude : 0);
		switch (code) {
		case YOKE_REDUCE_SUM:
			*to = (struct value){ round_real(d, sum), yk_num_wrap((uint64_t)whole, d) };
			break;
		case -YOKE_REDUCE_SUM: to->r = round_real(d, sum / (long double)count); break;
		case YOKE_REDUCE_PROD: *to = (struct value){ round_real(d, prod), times }; break;
		case YOKE_REDUCE_MAX:
		case YOKE_REDUCE_MIN: *to = smallest; break;
		case -1000: to->i = any; break;
		case -1001: to->i = all; break;
		default: to->i = place;
		}
		for (int i = a.rank - 1; i >= 0; i--) { // the next of the kept axes
			if (axes >> i & 1)
				continue;
			if (++from[i] < a.dims[i])
				break;
			from[i] = 0;
		}
	}
}

static yoke_tensor *reduce_call(int code, yoke_tensor *x, unsigned axes)
{
	switch (code) {
	case YOKE_REDUCE_SUM: return yoke_sum(x, axes);
	case -YOKE_REDUCE_SUM: return yoke_mean(x, axes);
	case YOKE_REDUCE_PROD: return yoke_prod(x, axes);
	case YOKE_REDUCE_MAX: return yoke_reduce_max(x, axes);
	case YOKE_REDUCE_MIN: return yoke_reduce_min(x, axes);
	case YOKE_REDUCE_ARGMAX: return yoke_argmax(x, __builtin_ctz(axes));
	case YOKE_REDUCE_ARGMIN: return yoke_argmin(x, __builtin_ctz(axes));
	case -1000: return yoke_any(x, axes);
	}
	return yoke_all(x, axes);
}

static void reduce(const struct row *r, int d)
{
	static const unsigned masks[] = { 1, 2, 4, 3, 5, 6, 7, 0, YOKE_ALL, 8, 0x28 };
	bool arg = r->code == YOKE_REDUCE_ARGMAX || r->code == YOKE_REDUCE_ARGMIN, good = true;
	bool picks = r->code >= YOKE_REDUCE_MAX && r->code != YOKE_REDUCE_PROD;
	bool sums = !picks && is_real(d);
	for (int layout = 0; layout < LAYOUTS; layout++)
		for (size_t m = 0; m < sizeof masks / sizeof *masks; m++) {
			double size, range = r->code == YOKE_REDUCE_PROD ? 1.7 : 4;
			make(&a, d, layout, range, !sums);
			if (sums && m % 4 == 0 && a.n > 2) { // sometimes infinities and NaN
				a.v[rnd_int(0, a.n - 1)].r = INFINITY;
				a.v[rnd_int(0, a.n - 1)].r = m % 8 ? -INFINITY : NAN;
				lay_plain(&a);
			}
			unsigned axes = masks[m] & ((1u << a.rank) - 1);
			bool keep = !arg && m % 2, empty = false;
			if (arg && (!axes || axes & (axes - 1)))
				continue;
			for (int i = 0; i < a.rank; i++)
				empty |= axes >> i & 1 && !a.dims[i];
			yoke_tensor *y =
				reduce_call(r->code, view_of(&a), axes | (keep ? YOKE_KEEP : 0));
			snprintf(text, sizeof text, "%s %s over %x, %s", r->name,
				 yoke_dtype_name(d), axes, layout_name[layout]);
			if (empty && picks) {
				good = refused(y, YOKE_ESHAPE) && good;
				continue;
			}
			reduce_reference(r->code, axes, keep, &size);
			double unit = d == yoke_f64 ? 0x1p-53 : 0x1p-24;
			struct bound bound = exact_but_sign;
			if (sums) // in f32 or f64, in any order; rounded once
				bound = (struct bound){
					2.1 * unit_of(d) +
						(r->code == YOKE_REDUCE_PROD ? 120 : 0) * unit,
					8 * unit * size, true
				};
			good = same(y, &want, bound, text) && good;
		}
	ok(good, "%s %s", r->name, yoke_dtype_name(d));
}

static void refuses(const struct row *r, int d, bool is_map)
{
	make(&a, d, PLAIN, 4, false);
	yoke_tensor *y = !is_map ? reduce_call(r->code, view_of(&a), 1) :
			 r->one  ? r->one(view_of(&a)) :
				   r->two(view_of(&a), view_of(&a));
	ok(refused(y, YOKE_EDTYPE), "%s refuses %s", r->name, yoke_dtype_name(d));
}

int main(void)
{
	tap_seed();
	for (int d = yoke_f32; d <= DTYPES; d++) {
		yoke_scope *s = yoke_scope_begin("rows");
		for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
			if (taken(maps[i].takes, d))
				map(&maps[i], d);
			else
				refuses(&maps[i], d, true);
		select_row(d);
		cast_row(d);
		for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
			if (taken(reductions[i].takes, d))
				reduce(&reductions[i], d);
			else
				refuses(&reductions[i], d, false);
		yoke_scope_end(s);
	}
	ok(!yoke_error_code(), "no error is left: %s", yoke_error());
	return done();
}
