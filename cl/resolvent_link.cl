// SPDX-License-Identifier: Apache-2.0
// How chunks of tridiagonal matrices (resolvent_chain.cl) are combined.
//
// A chunk's continuants, u0 of all its elements, u1 without the last, v0 without the first, v1
// without both, give the value leaving it from the value entering it: after 1/L = x, with k before
// the chunk, 1/L = (u1 - k x v1) / (u0 - k x v0); before 1/R = y, with k after the chunk, 1/R = (v0
// - k y v1) / (u0 - k y u1). Continuants of neighbours with k between combine: u0 = u0 u0' - k u1
// v0', and so on. Only ratios matter, so they are scaled by powers of two.
#include "resolvent_chain.cl"

// Numbers per part in the workspace, followed by the links of its lanes if these are few.
#define RECORD (ITEMS > 1 ? 32 : PART_LANES + 8 * LANES)

struct cx {
	RV re, im;
};

struct c1 { // one lane
	REAL re, im;
};

struct link {
	struct c1 u0, u1, v0, v1;
};

// ---- complex numbers ----

// 1 / (re + i im). wild: the value may be too small or too large to be squared; values below 1 /
// HUGE_REAL are clamped to it.
FN struct cx inverse(RV re, RV im, const bool wild)
{
	struct cx q;
	RV r, scale = splat((REAL)1);
	if (wild) {
		// 2^60
		RV largest = LARGER(fabs(re), fabs(im)), up = splat((REAL)1152921504606846976.0);
		RV smallest = splat((REAL)1 / HUGE_REAL);
		im = largest < smallest ? splat((REAL)0) : im;
		re = largest < smallest ? smallest : re;
		scale = largest < (REAL)1 / up ? up : scale;
		scale = largest > up ? (REAL)1 / up : scale;
		re *= scale;
		im *= scale;
	}
	r = splat((REAL)1) / RFMA(re, re, im * im);
	q.re = re * r * scale;
	q.im = -im * r * scale;
	return q;
}

FN struct cx cx_product(struct cx a, struct cx b)
{
	struct cx q;
	q.re = RFMA(a.re, b.re, -(a.im * b.im));
	q.im = RFMA(a.re, b.im, a.im * b.re);
	return q;
}

FN struct c1 c1_product(struct c1 a, struct c1 b)
{
	struct c1 q;
	q.re = RFMA(a.re, b.re, -(a.im * b.im));
	q.im = RFMA(a.re, b.im, a.im * b.re);
	return q;
}

// a - k b c
FN struct c1 c1_less(struct c1 a, REAL k, struct c1 b, struct c1 c)
{
	struct c1 t = c1_product(b, c);
	a.re -= k * t.re;
	a.im -= k * t.im;
	return a;
}

FN REAL c1_size(struct c1 a)
{
	return LARGER(fabs(a.re), fabs(a.im));
}

FN struct c1 c1_times(struct c1 a, REAL by)
{
	a.re *= by;
	a.im *= by;
	return a;
}

// a / b, at most HUGE_REAL
FN struct c1 c1_ratio(struct c1 a, struct c1 b)
{
	struct c1 q;
	REAL largest = c1_size(b), r;
	if (largest > 0) {
		b = c1_times(b, (REAL)1 / largest);
		r = (REAL)1 / (b.re * b.re + b.im * b.im) / largest;
		q.re = RFMA(a.re, b.re, a.im * b.im) * r;
		q.im = RFMA(a.im, b.re, -(a.re * b.im)) * r;
		if (c1_size(q) <= HUGE_REAL)
			return q;
	}
	q.re = HUGE_REAL;
	q.im = (REAL)0;
	return q;
}

FN struct c1 nothing(void)
{
	struct c1 q;
	q.re = q.im = (REAL)0;
	return q;
}

// ---- links ----

// A power of two that keeps numbers up to `largest` in range for a few steps.
FN RV scale_of(RV largest)
{
#ifdef F64_LANES // products of numbers of f32 may be as large as 1e76
	RV up = splat((REAL)1.6069380442589903e60),
	   high = splat((REAL)1.2676506002282294e30); // 2^200, 2^100
#else
	RV up = splat((REAL)1152921504606846976.0),
	   high = splat((REAL)1099511627776.0); // 2^60, 2^40
#endif
	RV scale = largest < (REAL)1 / high ? up : splat((REAL)1);
	return largest > high ? (REAL)1 / up : scale;
}

// The continuants of the item's lanes, excluding the bond before them.
FN void link_lanes(const struct chain_args *s, int item, const struct chain_memory *m, bool wild)
{
	struct cx u0, u1, v0, v1;
	RV im = -m->y[item], zero = splat((REAL)0), one = splat((REAL)1);

	u0.re = m->a[AT(0)];
	u0.im = im;
	u1.re = v0.re = one;
	u1.im = v0.im = v1.re = v1.im = zero;
	for (int t = 1; t < LEN(s); t++) {
		struct cx alpha, u, v;
		RV k = m->k[AT(t)];
		alpha.re = m->a[AT(t)];
		alpha.im = im;
		u = cx_product(alpha, u0);
		v = cx_product(alpha, v0);
		u.re -= k * u1.re;
		u.im -= k * u1.im;
		v.re -= k * v1.re;
		v.im -= k * v1.im;
		u1 = u0;
		v1 = v0;
		u0 = u;
		v0 = v;
		if (wild || t % 4 == 3) {
			RV p = LARGER(LARGER(fabs(u0.re), fabs(u0.im)),
				      LARGER(fabs(u1.re), fabs(u1.im)));
			RV q = LARGER(LARGER(fabs(v0.re), fabs(v0.im)),
				      LARGER(fabs(v1.re), fabs(v1.im)));
			RV scale = scale_of(LARGER(p, q));
			u0.re *= scale, u0.im *= scale, u1.re *= scale, u1.im *= scale;
			v0.re *= scale, v0.im *= scale, v1.re *= scale, v1.im *= scale;
		}
	}
	m->link[item] = u0.re;
	m->link[ITEMS + item] = u0.im;
	m->link[2 * ITEMS + item] = u1.re;
	m->link[3 * ITEMS + item] = u1.im;
	m->link[4 * ITEMS + item] = v0.re;
	m->link[5 * ITEMS + item] = v0.im;
	m->link[6 * ITEMS + item] = v1.re;
	m->link[7 * ITEMS + item] = v1.im;
}

// Combines two consecutive links with k between.
FN struct link joined(const struct link *a, const struct link *b, REAL k)
{
	struct link q;
	REAL largest;
	q.u0 = c1_less(c1_product(a->u0, b->u0), k, a->u1, b->v0);
	q.u1 = c1_less(c1_product(a->u0, b->u1), k, a->u1, b->v1);
	q.v0 = c1_less(c1_product(a->v0, b->u0), k, a->v1, b->v0);
	q.v1 = c1_less(c1_product(a->v0, b->u1), k, a->v1, b->v1);
	// scale to about 1: exact, since by a power of two
	largest =
		LARGER(LARGER(c1_size(q.u0), c1_size(q.u1)), LARGER(c1_size(q.v0), c1_size(q.v1)));
#ifdef F64_LANES
	for (int i = 0; i < 4 && largest > 0 && !(largest < (REAL)1e38f && largest > (REAL)1e-38f);
	     i++) { // 2^+-200
		REAL by = largest > 1 ? (REAL)6.223015277861142e-61 : (REAL)1.6069380442589903e60;
		q.u0 = c1_times(q.u0, by);
		q.u1 = c1_times(q.u1, by);
		q.v0 = c1_times(q.v0, by);
		q.v1 = c1_times(q.v1, by);
		largest *= by;
	}
#endif
	for (int i = 0; i < 6 && largest > 0 && !(largest < 2 && largest > (REAL)1e-6); i++) {
		REAL by = largest > 1 ?
				  (largest > (REAL)4294967296.0 ? (REAL)1 / (REAL)4294967296.0 :
								  (REAL)1 / (REAL)65536) :
				  (largest < (REAL)1e-12 ? (REAL)4294967296.0 : (REAL)65536);
		q.u0 = c1_times(q.u0, by);
		q.u1 = c1_times(q.u1, by);
		q.v0 = c1_times(q.v0, by);
		q.v1 = c1_times(q.v1, by);
		largest *= by;
	}
	return q;
}

#define GET_C1(to, from, i, step) \
	((to).re = (from)[(2 * (i)) * (step)], (to).im = (from)[(2 * (i) + 1) * (step)])
#define PUT_C1(to, i, step, of) \
	((to)[(2 * (i)) * (step)] = (of).re, (to)[(2 * (i) + 1) * (step)] = (of).im)
#define GET_LINK(to, from, step) \
	(GET_C1((to).u0, from, 0, step), GET_C1((to).u1, from, 1, step), \
	 GET_C1((to).v0, from, 2, step), GET_C1((to).v1, from, 3, step))
#define PUT_LINK(to, step, of) \
	(PUT_C1(to, 0, step, (of).u0), PUT_C1(to, 1, step, (of).u1), PUT_C1(to, 2, step, (of).v0), \
	 PUT_C1(to, 3, step, (of).v1))

FN struct link lane_link(const struct chain_memory *m, int lane)
{
	struct link q;
	GET_LINK(q, AS_REALS(m->link) + lane, LANES);
	return q;
}

FN REAL lane_bond(const struct chain_memory *m, int t, int lane)
{
	return AS_REALS(m->k)[LANE_AT(t, lane)];
}

// 1/L after a link from x before it and the bond k between; and 1/R before it.
FN struct c1 leaves_right(const struct link *q, REAL k, struct c1 x)
{
	return c1_ratio(c1_less(q->u1, k, x, q->v1), c1_less(q->u0, k, x, q->v0));
}

FN struct c1 leaves_left(const struct link *q, REAL k, struct c1 y)
{
	return c1_ratio(c1_less(q->v0, k, y, q->v1), c1_less(q->u0, k, y, q->u1));
}

// Combines the links of each segment of lanes, one item per segment.
FN void link_segments(int item, const struct chain_memory *m)
{
	if (item < SEGS) {
		struct link q = lane_link(m, item * SEG);
		for (int i = 1; i < SEG; i++) {
			struct link next = lane_link(m, item * SEG + i);
			q = joined(&q, &next, lane_bond(m, 0, item * SEG + i));
		}
		PUT_LINK(m->seg + item, SEGS, q);
	}
}

// From the segments' links: the values before and after each segment, given those before and after
// the group.
FN void enter_segments(const struct chain_args *s, int item, const struct chain_memory *m,
		       struct c1 x, struct c1 y)
{
	if (item == 0)
		for (int i = 0; i < SEGS; i++) {
			struct link q;
			GET_LINK(q, m->seg + i, SEGS);
			PUT_C1(m->seg_entry + i, 0, SEGS, x);
			x = leaves_right(&q, lane_bond(m, 0, i * SEG), x);
		}
	if (item == (ITEMS > 1 ? 1 : 0))
		for (int i = SEGS - 1; i >= 0; i--) {
			struct link q;
			GET_LINK(q, m->seg + i, SEGS);
			PUT_C1(m->seg_entry + i, 1, SEGS, y);
			y = leaves_left(&q, lane_bond(m, LEN(s), (i + 1) * SEG - 1), y);
		}
}

FN void enter_lanes(const struct chain_args *s, int item, const struct chain_memory *m)
{
	LOCAL_POINTER REAL *to = AS_REALS(m->entry);
	int seg = item % SEGS;
	struct c1 at;
	if (item < SEGS) {
		GET_C1(at, m->seg_entry + seg, 0, SEGS);
		for (int lane = seg * SEG; lane < (seg + 1) * SEG; lane++) {
			struct link q = lane_link(m, lane);
			PUT_C1(to + lane, 0, LANES, at);
			at = leaves_right(&q, lane_bond(m, 0, lane), at);
		}
	}
	if (ITEMS == 1 || (item >= SEGS && item < 2 * SEGS)) {
		GET_C1(at, m->seg_entry + seg, 1, SEGS);
		for (int lane = (seg + 1) * SEG - 1; lane >= seg * SEG; lane--) {
			struct link q = lane_link(m, lane);
			PUT_C1(to + lane, 1, LANES, at);
			at = leaves_left(&q, lane_bond(m, LEN(s), lane), at);
		}
	}
}

// ---- parts of rows ----

#define PART_BOND 8
#define PART_CHANGE 9 // half-precision tier: the change, the largest |Im G|
#define PART_HIGH 10
#define PART_ENTRY 12
#define PART_AFFINE 16
#define PART_LANES 32
#define PART_OF(s, work, work_at, row, part) \
	((GLOBAL REAL *)((work) + (work_at)) + ((row) * (s)->parts + (part)) * RECORD)

// Writes the link of a part, combined from those of its segments.
FN void link_part(const struct chain_args *s, int item, const struct chain_memory *m,
		  GLOBAL REAL *to)
{
	if (item == 0) {
		struct link q;
		GET_LINK(q, m->seg, SEGS);
		for (int i = 1; i < SEGS; i++) {
			struct link next;
			GET_LINK(next, m->seg + i, SEGS);
			q = joined(&q, &next, lane_bond(m, 0, i * SEG));
		}
		PUT_LINK(to, 1, q);
		to[PART_BOND] = lane_bond(m, 0, 0);
	}
}

// The values before and after a part, from the links of all parts: each item combines an equal
// number of neighbours, and two items go through the results. Uses the memory of lanes' and
// segments' links and, for bonds, that of entries.
FN void enter_part(const struct chain_args *s, const struct chain_place *p, int item,
		   const struct chain_memory *m, GLOBAL uchar *work, ulong work_at)
{
	GLOBAL REAL *all = PART_OF(s, work, work_at, p->row, 0);
	LOCAL_POINTER REAL *link = AS_REALS(m->link), *bond = AS_REALS(m->entry);
	long count[2], each[2];
	for (int end = 0; end < 2; end++) {
		long begin = end ? p->part + 1 : 0, from, to;
		count[end] = (end ? s->parts : p->part) - begin;
		each[end] = (count[end] + ITEMS - 1) / ITEMS;
		from = begin + item * each[end];
		to = from + each[end] < begin + count[end] ? from + each[end] : begin + count[end];
		if (from < to) {
			struct link q;
			GET_LINK(q, all + from * RECORD, 1);
			for (long i = from + 1; i < to; i++) {
				struct link next;
				GET_LINK(next, all + i * RECORD, 1);
				q = joined(&q, &next, all[i * RECORD + PART_BOND]);
			}
			PUT_LINK(link + 8 * end * ITEMS + item, ITEMS, q);
			bond[end * ITEMS + item] =
				end ? (to < s->parts ? all[to * RECORD + PART_BOND] : (REAL)0) :
				      all[from * RECORD + PART_BOND];
		}
	}
	WAIT();
	for (int end = 0; end < 2; end++)
		if (item == (ITEMS > 1 ? end : 0)) {
			int n = each[end] ? (int)((count[end] + each[end] - 1) / each[end]) : 0;
			struct c1 at = nothing();
			for (int i = 0; i < n; i++) {
				int one = end ? n - 1 - i : i;
				struct link q;
				GET_LINK(q, link + 8 * end * ITEMS + one, ITEMS);
				at = end ? leaves_left(&q, bond[end * ITEMS + one], at) :
					   leaves_right(&q, bond[one], at);
			}
			PUT_C1(m->seg_entry, end, 1, at);
		}
	WAIT();
	m->entry[item] = m->entry[ITEMS + item] = splat((REAL)0);
	WAIT();
}

// ---- steps of a group ----

// Stores the link of a part for the other groups.
FN void leave_link(const struct chain_args *s, const struct chain_place *p, int item,
		   const struct chain_memory *m, const bool wild, GLOBAL uchar *work, ulong work_at)
{
	link_lanes(s, item, m, wild);
	WAIT();
#if ITEMS == 1
	for (int i = 0; i < 8 * LANES; i++)
		(PART_OF(s, work, work_at, p->row, p->part) + PART_LANES)[i] = AS_REALS(m->link)[i];
#endif
	link_segments(item, m);
	WAIT();
	link_part(s, item, m, PART_OF(s, work, work_at, p->row, p->part));
}

// Computes the values before and after each lane. For a part, also those at the whole part's ends,
// which WHICH 2 computes from links and 3 reads from the workspace. several: lanes have neighbours.
FN void enter_all(const struct chain_args *s, const struct chain_place *p, int item,
		  const struct chain_memory *m, const bool wild, bool several, GLOBAL uchar *work,
		  ulong work_at, struct c1 *front, struct c1 *after)
{
	*front = *after = nothing();
#if WHICH == 2
	enter_part(s, p, item, m, work, work_at);
	GET_C1(*front, m->seg_entry, 0, 1);
	GET_C1(*after, m->seg_entry, 1, 1);
	WAIT();
#elif WHICH == 3
	GLOBAL REAL *entered = PART_OF(s, work, work_at, p->row, p->part) + PART_ENTRY;
	GET_C1(*front, entered, 0, 1);
	GET_C1(*after, entered, 1, 1);
#else
	(void)p;
	(void)work;
	(void)work_at;
#endif
#if ITEMS == 1 && WHICH > 1
	for (int i = 0; i < 8 * LANES; i++)
		AS_REALS(m->link)[i] = (PART_OF(s, work, work_at, p->row, p->part) + PART_LANES)[i];
	(void)wild;
#else
	if (several)
		link_lanes(s, item, m, wild);
#endif
	WAIT();
	if (several)
		link_segments(item, m);
	WAIT();
	if (several)
		enter_segments(s, item, m, *front, *after);
	WAIT();
	if (several)
		enter_lanes(s, item, m);
	WAIT();
}

// Stores the values before and after a part for WHICH 3.
FN void leave_entry(const struct chain_args *s, const struct chain_place *p, int item,
		    struct c1 front, struct c1 after, GLOBAL uchar *work, ulong work_at)
{
	if (item == 0) {
		GLOBAL REAL *to = PART_OF(s, work, work_at, p->row, p->part) + PART_ENTRY;
		PUT_C1(to, 0, 1, front);
		PUT_C1(to, 1, 1, after);
	}
}
