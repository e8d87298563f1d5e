// SPDX-License-Identifier: Apache-2.0
// RESOLVENT: the diagonal of (H - z)^-1 for tridiagonal H. Reference: kern_resolvent.c and
// kern_resolvent_half.h of the CPU backend.
//
// A lane processes its chunk from both ends at once, L upwards and R downwards, storing both; after
// they have passed each other both are known. WHICH: 0 whole rows, which fit in a group; for longer
// rows, 1 computes the links of parts, 2 the results from those links, 3 recomputes rows for
// which half precision was insufficient.
// HALF: the half-precision tier, 3 f16 or 4 bf16: L and R with each operation rounded, then sweeps,
// and a bound of the remaining error; rows above the tolerance are recomputed in f32 and counted in
// the report. DIVIDE: computes 1 / (L + R - alpha) in f64. Groups: rows / sides, or rows * parts.
#include "resolvent_link.cl"

#ifndef HALF
#define HALF 0
#endif
#ifdef DIVIDE
#define LAST double
#else
#define LAST REAL
#endif

struct results {
	LOCAL_POINTER RV *re, *im;
};

// Steps from 1 / L = `from` before element t, with k: u = k from, and L = alpha - u.
#define GO(at, bond, from, u, v) \
	struct cx u, v; \
	RV k##u = m->k[AT(bond)]; \
	u.re = k##u * from.re; \
	u.im = k##u * from.im; \
	v.re = m->a[AT(at)] - u.re; \
	v.im = im - u.im;
#define KEEP(at, v) (to.re[AT(at)] = v.re, to.im[AT(at)] = v.im)
#define MEET(at, u) \
	{ \
		struct cx d; \
		d.re = to.re[AT(at)] - u.re; \
		d.im = to.im[AT(at)] - u.im; \
		if (wild) \
			nearest = nearer(nearest, d, \
					 LARGER(cx_size(u), LARGER(fabs(to.re[AT(at)]), \
								   fabs(to.im[AT(at)])))); \
		if (divide) \
			d = inverse(d.re, d.im, wild); \
		KEEP(at, d); \
	}

// Divisors below SINGULAR are rounding errors. An eigenvector has about 1 / n of its norm in each
// element, which f64 allows for; in f32 that would exclude valid z of long rows.
#ifdef F64_LANES
#define SINGULAR(n) (1 / 562949953421312.0 * ((n) > 8 ? (double)(n) : 8.0)) // 2^-49 n
#define NEAR_0 1e-125
#else
#define SINGULAR(n) (1 / 1048576.0f) // 2^-20
#define NEAR_0 1e-16f
#endif

FN RV cx_size(struct cx a)
{
	return LARGER(fabs(a.re), fabs(a.im));
}

// The smaller of `nearest` and |d| relative to `of`, the size of the values whose difference is d;
// where z is an eigenvalue, that is a rounding error. A d as small as a division by 0 gives counts
// as 0.
FN RV nearer(RV nearest, struct cx d, RV of)
{
	RV size = cx_size(d), ratio = size / of;
	ratio = size <= splat((REAL)(NEAR_0)) ? splat((REAL)0) : ratio;
	return ratio < nearest ? ratio : nearest;
}

// Computes G, or its reciprocal without `divide`. Returns the smallest divisor relative to the
// terms of its difference.
FN RV pass(const struct chain_args *s, int item, const struct chain_memory *m, struct results to,
	   const bool wild, const bool divide)
{
	int len = LEN(s), half_way = len / 2;
	RV im = -m->y[item], nearest = splat((REAL)1);
	struct cx l;
	l.re = m->entry[item];
	l.im = m->entry[ITEMS + item];
#if LEFT
	for (int t = 0; t < len; t++) {
		GO(t, t, l, u, v)
		if (wild)
			nearest = nearer(nearest, v,
					 LARGER(cx_size(u), LARGER(fabs(m->a[AT(t)]), fabs(im))));
		l = inverse(v.re, v.im, wild);
		if (divide)
			KEEP(t, l);
		else
			KEEP(t, v);
	}
	(void)half_way;
#else
	struct cx r;
	r.re = m->entry[2 * ITEMS + item];
	r.im = m->entry[3 * ITEMS + item];
	for (int t = 0; t < half_way; t++) {
		GO(t, t, l, ul, vl)
		GO(len - 1 - t, len - t, r, ur, vr)
		KEEP(t, vl);
		KEEP(len - 1 - t, vr);
		l = inverse(vl.re, vl.im, wild);
		r = inverse(vr.re, vr.im, wild);
	}
	if (len % 2) {
		GO(half_way, half_way, l, ul, vl)
		GO(half_way, half_way + 1, r, ur, vr)
		KEEP(half_way, vr);
		MEET(half_way, ul)
		l = inverse(vl.re, vl.im, wild);
		r = inverse(vr.re, vr.im, wild);
	}
	for (int t = len - half_way; t < len; t++) {
		GO(t, t, l, ul, vl)
		GO(len - 1 - t, len - t, r, ur, vr)
		l = inverse(vl.re, vl.im, wild);
		r = inverse(vr.re, vr.im, wild);
		MEET(t, ul)
		MEET(len - 1 - t, ur)
	}
#endif
	return nearest;
}

FN RV forward(const struct chain_args *s, int item, const struct chain_memory *m, struct results to,
	      bool wild)
{
#ifdef DIVIDE
	const bool divide = false;
#else
	const bool divide = true;
#endif
	if (wild)
		return pass(s, item, m, to, true, divide);
	return pass(s, item, m, to, false, divide);
}

// Reports rows whose z is an eigenvalue: z is real, or a k is negative. In other rows no eigenvalue
// is nearer than |Im z|.
FN void note_singular(const struct chain_args *s, const struct chain_place *p, int item,
		      const struct chain_memory *m, RV nearest REPORT_PARAMS)
{
	m->entry[item] = nearest; // entries are no longer needed
	for (int lane = item * VW; lane < (item + 1) * VW; lane++) {
		long first, row = lane_row(s, p, lane, &first);
		bool negative = AS_REALS(m->y)[lane] == 0;
		for (int t = 0; t <= LEN(s); t++)
			negative = negative || lane_bond(m, t, lane) < 0;
		if (row >= 0 && negative && AS_REALS(m->entry)[lane] < SINGULAR(s->n))
			report_bad(REPORT_AT, (ulong)row);
	}
}

// Writes G; only: if not NULL, writes only the rows marked there.
FN void put_results(const struct chain_args *s, const struct chain_place *p, int item,
		    struct results from, LOCAL_POINTER REAL *only, GLOBAL uchar *y, ulong y_at)
{
	int done = 0;
#if defined SQUARE_TURN && !defined DIVIDE
	struct squares q;
	squares_of(s, p, &s->out[0], 2, &q);
	for (; !only && done < q.len; done += VW / 2) {
		RV v[VW];
		UNROLL
		for (int k = 0; k < VW / 2; k++) {
			v[2 * k] = from.re[done + k];
			v[2 * k + 1] = from.im[done + k];
		}
		square_write(&q, v, NUMBERS(y, y_at) + 2 * done);
	}
#endif
	EACH_OF(lane, t, done, LEN(s)) {
		long first, row = lane_row(s, p, lane, &first), i = first + t;
		if (row >= 0 && i < s->n && (!only || only[lane])) {
			GLOBAL number *to =
				NUMBERS(y, y_at) + row_at(s, &s->out[0], row) + i * s->out[0].along;
			LAST re = (LAST)AS_REALS(from.re)[LANE_AT(t, lane)],
			     im = (LAST)AS_REALS(from.im)[LANE_AT(t, lane)];
#ifdef DIVIDE
			LAST r = 1 / (re * re + im * im);
			re *= r;
			im *= -r;
#endif
			to[0] = NUMBER_OF((ACC)re);
			to[s->out[0].pair] = NUMBER_OF((ACC)im);
		}
	}
}

// ---- half precision ----

#if HALF
FN float rounded(float x)
{
#if HALF == 3
	return round_f16(x);
#else
	return round_bf16(x);
#endif
}

// alpha - k / from
FN struct c1 half_step(float re, float im, float k, struct c1 from)
{
	float largest = c1_size(from), scale, x, y, square, w;
	struct c1 q;
	// a power of two such that |from| times it is in 1 .. 3
	scale = AS_FLOAT(0x7f000000u - (AS_UINT(largest) & 0x7f800000u));
	x = from.re * scale;
	y = from.im * scale;
	square = rounded(rounded(x * x) + rounded(y * y));
	w = rounded(k / square);
	q.re = rounded(re - rounded(rounded(w * x) * scale));
	q.im = rounded(im - rounded(rounded(w * -y) * scale));
	return q;
}

// Computes L of a lane, or R.
FN void half_chain(const struct chain_args *s, const struct chain_memory *m, int lane, int from_end,
		   struct results to)
{
	LOCAL_POINTER REAL *entry = AS_REALS(m->entry) + lane;
	struct c1 in, at;
	float y = rounded(-AS_REALS(m->y)[lane]);
	int len = LEN(s);
	GET_C1(in, entry, from_end, LANES);
	at.re = (REAL)1;
	at.im = (REAL)0;
	if (in.re != 0 || in.im != 0) { // otherwise the row begins here: there is no k
		at = c1_ratio(at, in);
		at.re = rounded(at.re);
		at.im = rounded(at.im);
	}
	for (int i = 0; i < len; i++) {
		int t = from_end ? len - 1 - i : i, place = LANE_AT(t, lane);
		at = half_step(rounded(AS_REALS(m->a)[place]), y,
			       rounded(lane_bond(m, t + from_end, lane)), at);
		AS_REALS(to.re)[place] = at.re;
		AS_REALS(to.im)[place] = at.im;
	}
}

// One sweep over all elements, each from its neighbour's previous value; returns the largest
// change, squared.
FN RV half_sweep(const struct chain_args *s, int item, const struct chain_memory *m, int from_end,
		 struct results to)
{
	int len = LEN(s);
	RV largest = splat((REAL)0), im = -m->y[item];
	for (int i = 0; i < len; i++) {
		int t = from_end ? i : len - 1 - i;
		RV k = m->k[AT(t + from_end)], dr, di, d;
		struct cx u, is;
		u.re = m->entry[2 * from_end * ITEMS + item];
		u.im = m->entry[(2 * from_end + 1) * ITEMS + item];
		if (i < len - 1) {
			int next = from_end ? t + 1 : t - 1;
			u = inverse(to.re[AT(next)], to.im[AT(next)], false);
		}
		is.re = m->a[AT(t)] - k * u.re;
		is.im = im - k * u.im;
		dr = is.re - to.re[AT(t)];
		di = is.im - to.im[AT(t)];
		d = RFMA(dr, dr, di * di);
		largest = d > largest || d != d ? d : largest;
		KEEP(t, is);
	}
	return largest;
}

// Half-precision results and, per lane, the change (including the sweeps' own rounding) and the
// largest |Im G|; the change is negative where f32 is required.
FN void half_pass(const struct chain_args *s, int item, const struct chain_memory *m,
		  struct results to, struct results other, LOCAL_POINTER RV *change,
		  LOCAL_POINTER RV *high)
{
	RV smallest = m->k[AT(0)], squares[2], largest = splat((REAL)0), im = -m->y[item],
	   large = splat((REAL)1);
	for (int end = 0; end < (LEFT ? 1 : 2); end++) {
		struct results at = end ? other : to;
		squares[end] = splat((REAL)0);
		for (int lane = item * VW; lane < (item + 1) * VW; lane++)
			half_chain(s, m, lane, end, at);
		for (long i = 0; i < s->sweeps; i++)
			squares[end] = half_sweep(s, item, m, end, at);
	}
	for (int t = 0; t < LEN(s); t++) {
		struct cx d;
		d.re = to.re[AT(t)];
		d.im = to.im[AT(t)];
#if !LEFT
		d.re += other.re[AT(t)] - m->a[AT(t)];
		d.im += other.im[AT(t)] - im;
#endif
		d = inverse(d.re, d.im, false);
		KEEP(t, d);
		largest = fabs(d.im) > largest || d.im != d.im ? fabs(d.im) : largest;
		smallest = m->k[AT(t + 1)] < smallest ? m->k[AT(t + 1)] : smallest;
		large = LARGER(LARGER(fabs(m->a[AT(t)]), m->k[AT(t)]), large);
	}
	// 2^-20: the sweeps round as if matrix elements were off by a few roundings
	squares[0] = sqrt(squares[0]) + large * (REAL)9.5367431640625e-7;
#if !LEFT
	squares[0] += sqrt(squares[1]);
#endif
	change[item] = smallest < 0 ? splat((REAL)-1) : squares[0];
	high[item] = largest;
}

// Decides from a row's largest change and |Im G| whether it must be recomputed; writes its error
// bound if `write`.
FN bool judged(const struct chain_args *s, REAL y, REAL change, REAL high, GLOBAL uchar *bound,
	       ulong bound_at, long row, bool write REPORT_PARAMS)
{
	bool known = change >= 0 && s->sweeps && change - change == 0 && high - high == 0;
	float value = known ? change * high / fabs(y) : AS_FLOAT(0x7f800000);
	bool again = change < 0 || y == 0 || value > s->tolerance;
	if (write && s->has_bound)
		((GLOBAL float *)(bound + bound_at))[row_at(s, &s->out[1], row)] = value;
	if (write && again)
		ATOMIC_ADD(&REPORT_AT->count, 1u);
	return again;
}
#endif

FN REAL worse(REAL a, REAL b) // for changes: negative is worst, then NaN, then the larger
{
	return a < 0 || b < 0 ? (REAL)-1 : b > a || b != b ? b : a;
}

#if HALF && !LEFT
#define PLANES 6
#else
#define PLANES 4
#endif

KERNEL void WORK_GROUP_REGISTERS(ITEMS, 1)
	resolvent(GLOBAL uchar *y, ulong y_at, GLOBAL uchar *bound, ulong bound_at, CHAIN_PARAMS,
		  struct chain_args s REPORT_PARAMS)
{
	LOCAL RV room[ROOM(PLANES)], lanes[(HALF ? 8 : ODD == 2 ? 6 : 5) * ITEMS];
	LOCAL REAL segments[12 * SEGS];
	LOCAL int flag[1];
	int item = LOCAL_ID(0);
	struct chain_place p = place_of(&s, GROUP_ID(0));
	struct chain_memory m;
	struct results to;
#if WHICH != 1 && !HALF
	LOCAL_POINTER REAL *only = 0; // lanes of rows that are processed
#endif
	bool wild;

#if ODD == 2
	if (!group_is_odd(&s, &p, work, work_at))
		return;
#if WHICH != 1 && !HALF
	only = AS_REALS(lanes + 5 * ITEMS);
	for (int lane = item; lane < LANES; lane += ITEMS) {
		long first, row = lane_row(&s, &p, lane, &first);
		only[lane] = row >= 0 && row_is_odd(&s, work, work_at, row) ? (REAL)1 : (REAL)0;
	}
#endif
#endif
	to.re = chain_places(&m, room, lanes, segments, flag);
	to.im = to.re + CHUNK * PITCH;
	m.link = to.re; // the results' memory is not yet in use
	wild = stage_chain(&s, &p, item, &m, a, a_at, b, b_at, c, c_at, z, z_at, work, work_at,
			   reports, report_slot);
#if WHICH == 1
	leave_link(&s, &p, item, &m, wild, work, work_at);
#else
	struct c1 front, after;
	enter_all(&s, &p, item, &m, wild, s.chunks > 1 || s.parts > 1, work, work_at, &front,
		  &after);
#if HALF
	LOCAL_POINTER RV *change = lanes + 5 * ITEMS, *high = lanes + 6 * ITEMS;
	LOCAL_POINTER REAL *again = AS_REALS(lanes + 7 * ITEMS);
	bool some = false;
#if WHICH != 3
	struct results other;
	other.re = to.im + CHUNK * PITCH;
	other.im = other.re + CHUNK * PITCH;
	half_pass(&s, item, &m, to, other, change, high);
	WAIT();
	put_results(&s, &p, item, to, 0, y, y_at);
#endif
#if WHICH == 2
	if (item == 0) {
		GLOBAL REAL *of = PART_OF(&s, work, work_at, p.row, p.part);
		REAL worst = (REAL)0, largest = (REAL)0;
		for (int lane = 0; lane < LANES; lane++) {
			worst = worse(worst, AS_REALS(change)[lane]);
			largest = worse(largest, AS_REALS(high)[lane]);
		}
		of[PART_CHANGE] = worst;
		of[PART_HIGH] = largest;
	}
	leave_entry(&s, &p, item, front, after, work, work_at);
	(void)again;
	(void)some;
#else
	for (int side = item; side < (int)s.sides; side += ITEMS) {
		long row = p.row + side;
		int first = side * (int)s.chunks;
		REAL worst = (REAL)0, largest = (REAL)0;
		bool judge = false;
#if WHICH == 3
		(void)change;
		(void)high;
		for (long part = 0; part < s.parts && row < s.rows; part++) {
			GLOBAL REAL *of = PART_OF(&s, work, work_at, row, part);
			worst = worse(worst, of[PART_CHANGE]);
			largest = worse(largest, of[PART_HIGH]);
		}
#else
		for (int lane = first; lane < first + (int)s.chunks; lane++) {
			worst = worse(worst, AS_REALS(change)[lane]);
			largest = worse(largest, AS_REALS(high)[lane]);
		}
#endif
		if (row < s.rows)
			judge = judged(&s, AS_REALS(m.y)[first], worst, largest, bound, bound_at,
				       row, p.part == 0, reports, report_slot);
		for (int lane = first; lane < first + (int)s.chunks; lane++)
			again[lane] = judge ? (REAL)1 : (REAL)0;
	}
	WAIT();
	for (int side = 0; side < (int)s.sides; side++)
		some = some || again[side * (int)s.chunks] != 0;
	if (some)
		forward(&s, item, &m, to, wild);
	WAIT();
	if (some)
		put_results(&s, &p, item, to, again, y, y_at);
#endif
#else
	RV nearest = forward(&s, item, &m, to, wild);
	WAIT();
	if (wild && ODD != 1)
		note_singular(&s, &p, item, &m, nearest, reports, report_slot);
	put_results(&s, &p, item, to, only, y, y_at);
	for (int side = item; side < (int)s.sides && s.has_bound && p.part == 0 && ODD != 2;
	     side += ITEMS)
		if (p.row + side < s.rows) {
#if DTYPE == 2
			((GLOBAL double *)(bound + bound_at))[row_at(&s, &s.out[1], p.row + side)] =
				0;
#else
			((GLOBAL float *)(bound + bound_at))[row_at(&s, &s.out[1], p.row + side)] =
				0;
#endif
		}
#endif
#endif
}
