// SPDX-License-Identifier: Apache-2.0
// RESOLVENT_BACKWARD: the adjoint. Reference: kern_resolvent_backward.h of the CPU backend, with
// the same equations.
//
// 1/L and 1/R are recomputed; then D = -G^2 g~ for each element, where g~ is the conjugate of its
// cotangent; then the cotangent of L is propagated downwards (D plus k/L^2 times the next one), and
// that of R upwards. What leaves a lane is A + M times what enters it, and these affine maps
// compose like links. WHICH: 0 whole rows, which fit in a group; for longer rows, 1 computes links
// of parts, 2 the parts' affine maps, 3 results. SERVE: 1 rows whose largest |g| is below
// `adaptive`, 2 the others, 0 all. SURROGATE: the gradient of a is one of the surrogates of
// yoke-plugin.h, the others are 0.
#include "resolvent_link.cl"

#ifndef SERVE
#define SERVE 0
#endif
#ifndef SURROGATE
#define SURROGATE 0
#endif

struct adjoint {
	// 1/L, 1/R; later those of L hold the gradients of a and k
	LOCAL_POINTER RV *lr, *li, *rr, *ri;
	LOCAL_POINTER RV *dr, *di;           // the cotangent of G, then D
	LOCAL_POINTER RV *enter; // [4][lanes] cotangents entering from the right, from the left
	LOCAL_POINTER RV *affine;            // [16][lanes] A, M and their sums, in both directions
};

FN void inverses(const struct chain_args *s, int item, const struct chain_memory *m,
		 const struct adjoint *j, const bool wild)
{
	int len = LEN(s);
	RV im = -m->y[item];
	struct cx l, r;
	l.re = m->entry[item];
	l.im = m->entry[ITEMS + item];
	r.re = m->entry[2 * ITEMS + item];
	r.im = m->entry[3 * ITEMS + item];
	for (int t = 0; t < len; t++) {
		RV k = m->k[AT(t)];
		l = inverse(m->a[AT(t)] - k * l.re, im - k * l.im, wild);
		j->lr[AT(t)] = l.re;
		j->li[AT(t)] = l.im;
#if !LEFT
		int e = len - 1 - t;
		k = m->k[AT(e + 1)];
		r = inverse(m->a[AT(e)] - k * r.re, im - k * r.im, wild);
		j->rr[AT(e)] = r.re;
		j->ri[AT(e)] = r.im;
#endif
	}
}

FN struct cx diagonal(const struct chain_args *s, int item, const struct chain_memory *m,
		      const struct adjoint *j, int t, const bool wild)
{
	struct cx g;
#if LEFT
	g.re = j->lr[AT(t)];
	g.im = j->li[AT(t)];
	return g;
#else
	bool last = t + 1 == LEN(s);
	RV before = m->k[AT(t)], after = m->k[AT(t + 1)];
	g.re = m->a[AT(t)] - before * (t ? j->lr[AT(t - 1)] : m->entry[item]);
	g.im = -m->y[item] - before * (t ? j->li[AT(t - 1)] : m->entry[ITEMS + item]);
	g.re -= after * (last ? m->entry[2 * ITEMS + item] : j->rr[AT(t + 1)]);
	g.im -= after * (last ? m->entry[3 * ITEMS + item] : j->ri[AT(t + 1)]);
	return inverse(g.re, g.im, wild);
#endif
}

#if SURROGATE
FN RV surrogate(const struct chain_args *s, struct cx g, struct cx cot)
{
	struct cx f = cx_product(g, g);
	RV cross = f.im * cot.im, diag = f.re * cot.re + (SURROGATE == 4 ? -cross : cross);
	RV modulus = sqrt(f.re * f.re + f.im * f.im),
	   beta = splat((REAL)s->blend + (REAL)s->blend_rest);
	RV smallest = splat((REAL)1e-3), inv, da;
	RV scale = modulus < smallest ? smallest / (modulus + splat((REAL)1e-9)) : splat((REAL)1);
	f.re = f.re * scale + splat((REAL)1e-6);
	f.im = f.im * scale;
	inv = (cot.re * f.re + cot.im * f.im) / (f.re * f.re + f.im * f.im);
	da = SURROGATE == 1 ? diag :
	     SURROGATE == 2 ? inv :
			      (splat((REAL)1) - beta) * diag + beta * inv;
	da = da - da == splat((REAL)0) ? -da : splat((REAL)0);
	da = da > splat((REAL)1000) ? splat((REAL)1000) : da;
	return da < splat((REAL)-1000) ? splat((REAL)-1000) : da;
}
#endif

// Computes D, or the surrogate's results.
FN void seeds(const struct chain_args *s, int item, const struct chain_memory *m,
	      const struct adjoint *j, const bool wild)
{
	for (int t = 0; t < LEN(s); t++) {
		struct cx g = diagonal(s, item, m, j, t, wild), cot;
		cot.re = j->dr[AT(t)];
		cot.im = j->di[AT(t)];
#if SURROGATE
		j->dr[AT(t)] = surrogate(s, g, cot);
#else
		struct cx f = cx_product(g, g);
		j->dr[AT(t)] = -RFMA(f.re, cot.re, f.im * cot.im);
		j->di[AT(t)] = RFMA(f.re, cot.im, -(f.im * cot.re));
#endif
	}
}

// k x^2, the factor by which a cotangent is propagated.
FN struct cx factor(RV re, RV im, RV k)
{
	struct cx f, x;
	x.re = re;
	x.im = im;
	f = cx_product(x, x);
	f.re *= k;
	f.im *= k;
	return f;
}

FN struct cx onward(struct cx c, struct cx f, RV re, RV im)
{
	struct cx q;
	q.re = RFMA(c.re, f.re, RFMA(-c.im, f.im, re));
	q.im = RFMA(c.re, f.im, RFMA(c.im, f.re, im));
	return q;
}

// The affine maps of the item's lanes in one direction: down from the right, or up from the left.
FN void affine_lanes(const struct chain_args *s, int item, const struct chain_memory *m,
		     const struct adjoint *j, int up)
{
	struct cx c, f, sum, sums;
	LOCAL_POINTER RV *to = j->affine + 8 * up * ITEMS + item;
	struct cx all;
	c.re = c.im = sum.re = sum.im = sums.re = sums.im = all.im = splat((REAL)0);
	all.re = splat((REAL)1);
	for (int i = 0; i < LEN(s); i++) {
		int t = up ? i : LEN(s) - 1 - i;
		RV re = j->dr[AT(t)], im = j->di[AT(t)];
		if (up)
			f = factor(j->rr[AT(t)], j->ri[AT(t)], m->k[AT(t)]);
		else
			f = factor(j->lr[AT(t)], j->li[AT(t)], m->k[AT(t + 1)]);
		c = onward(c, f, re, im);
		all = cx_product(all, f);
		sum.re += c.re;
		sum.im += c.im;
		if (!LEFT && !up) { // D is included in both
			sum.re -= re;
			sum.im -= im;
		}
		sums.re += all.re;
		sums.im += all.im;
	}
	to[0] = c.re;
	to[ITEMS] = c.im;
	to[2 * ITEMS] = all.re;
	to[3 * ITEMS] = all.im;
	to[4 * ITEMS] = sum.re;
	to[5 * ITEMS] = sum.im;
	to[6 * ITEMS] = sums.re;
	to[7 * ITEMS] = sums.im;
}

// a + m c
FN struct c1 c1_onward(struct c1 a, struct c1 m, struct c1 c)
{
	struct c1 t = c1_product(m, c);
	t.re += a.re;
	t.im += a.im;
	return t;
}

// Composes the maps of the lanes of each segment, one item per segment, and computes what enters
// each segment.
FN void affine_segments(int item, const struct chain_memory *m, const struct adjoint *j)
{
	if (item >= SEGS)
		return;
	for (int up = 0; up < (LEFT ? 1 : 2); up++) {
		struct c1 sum = nothing(), all = nothing(), a, f;
		all.re = (REAL)1;
		for (int i = 0; i < SEG; i++) {
			int lane = item * SEG + (up ? i : SEG - 1 - i);
			LOCAL_POINTER REAL *of = AS_REALS(j->affine) + 8 * up * LANES + lane;
			GET_C1(a, of, 0, LANES);
			GET_C1(f, of, 1, LANES);
			sum = c1_onward(a, f, sum);
			all = c1_product(all, f);
		}
		PUT_C1(m->seg + 4 * up * SEGS + item, 0, SEGS, sum);
		PUT_C1(m->seg + 4 * up * SEGS + item, 1, SEGS, all);
	}
}

// Computes what enters the lanes from what enters the group from the right and from the left.
FN void affine_enter(int item, const struct chain_memory *m, struct c1 right, struct c1 left)
{
	for (int up = 0; up < (LEFT ? 1 : 2); up++) {
		struct c1 at = up ? left : right, a, f;
		if (item == 0)
			for (int i = 0; i < SEGS; i++) {
				int seg = up ? i : SEGS - 1 - i;
				PUT_C1(m->seg_entry + seg, up, SEGS, at);
				GET_C1(a, m->seg + 4 * up * SEGS + seg, 0, SEGS);
				GET_C1(f, m->seg + 4 * up * SEGS + seg, 1, SEGS);
				at = c1_onward(a, f, at);
			}
	}
}

FN void affine_enter_lanes(int item, const struct chain_memory *m, const struct adjoint *j)
{
	for (int up = 0; up < (LEFT ? 1 : 2) && item < SEGS; up++) {
		struct c1 at, a, f;
		GET_C1(at, m->seg_entry + item, up, SEGS);
		for (int i = 0; i < SEG; i++) {
			int lane = item * SEG + (up ? i : SEG - 1 - i);
			LOCAL_POINTER REAL *of = AS_REALS(j->affine) + 8 * up * LANES + lane;
			PUT_C1(AS_REALS(j->enter) + lane, up, LANES, at);
			GET_C1(a, of, 0, LANES);
			GET_C1(f, of, 1, LANES);
			at = c1_onward(a, f, at);
		}
	}
}

// Stores A, M and their sums of a part of the row, in both directions.
FN void affine_part(int item, const struct adjoint *j, GLOBAL REAL *to)
{
	if (item)
		return;
	for (int up = 0; up < (LEFT ? 1 : 2); up++) {
		struct c1 a = nothing(), f = nothing(), sum = nothing(), sums = nothing(), of[4];
		f.re = (REAL)1;
		for (int i = 0; i < LANES; i++) {
			LOCAL_POINTER REAL *from =
				AS_REALS(j->affine) + 8 * up * LANES + (up ? i : LANES - 1 - i);
			struct c1 t;
			for (int k = 0; k < 4; k++)
				GET_C1(of[k], from, k, LANES);
			t = c1_onward(of[2], of[3], a);
			sum.re += t.re;
			sum.im += t.im;
			t = c1_product(of[3], f);
			sums.re += t.re;
			sums.im += t.im;
			a = c1_onward(of[0], of[1], a);
			f = c1_product(of[1], f);
		}
		PUT_C1(to + 8 * up, 0, 1, a);
		PUT_C1(to + 8 * up, 1, 1, f);
		PUT_C1(to + 8 * up, 2, 1, sum);
		PUT_C1(to + 8 * up, 3, 1, sums);
	}
}

// Computes what enters a part from both sides, in the memory of segment entries; each item composes
// the maps of an equal number of parts, in the memory of lane maps.
FN void affine_enter_part(const struct chain_args *s, const struct chain_place *p, int item,
			  const struct chain_memory *m, const struct adjoint *j, GLOBAL uchar *work,
			  ulong work_at)
{
	GLOBAL REAL *all = PART_OF(s, work, work_at, p->row, 0) + PART_AFFINE;
	LOCAL_POINTER REAL *link = AS_REALS(j->affine);
	for (int up = 0; up < (LEFT ? 1 : 2); up++) {
		long begin = up ? 0 : p->part + 1, stop = up ? p->part : s->parts,
		     each = (stop - begin + ITEMS - 1) / ITEMS;
		long from = begin + item * each, to = from + each < stop ? from + each : stop;
		struct c1 a = nothing(), f = nothing(), b, g;
		f.re = (REAL)1;
		for (long i = from; i < to; i++) {
			GLOBAL REAL *of = all + (up ? i : from + to - 1 - i) * RECORD + 8 * up;
			GET_C1(b, of, 0, 1);
			GET_C1(g, of, 1, 1);
			a = c1_onward(b, g, a);
			f = c1_product(g, f);
		}
		PUT_C1(link + 4 * up * ITEMS + item, 0, ITEMS, a);
		PUT_C1(link + 4 * up * ITEMS + item, 1, ITEMS, f);
	}
	WAIT();
	for (int up = 0; up < (LEFT ? 1 : 2) && item == 0; up++) {
		struct c1 at = nothing(), b, g;
		for (int i = 0; i < ITEMS; i++) {
			int one = up ? i : ITEMS - 1 - i;
			GET_C1(b, link + 4 * up * ITEMS + one, 0, ITEMS);
			GET_C1(g, link + 4 * up * ITEMS + one, 1, ITEMS);
			at = c1_onward(b, g, at);
		}
		PUT_C1(m->seg_entry, up, 1, at);
	}
	WAIT();
}

// Propagates the cotangents: gradients of a and k replace the planes of 1/L; sums for z in `sums`.
FN void ways(const struct chain_args *s, int item, const struct chain_memory *m,
	     const struct adjoint *j, struct cx *sums)
{
	struct cx c, f;
	RV zero = splat((REAL)0);
	c.re = j->enter[item];
	c.im = j->enter[ITEMS + item];
	sums->re = sums->im = zero;
	for (int t = LEN(s) - 1; t >= 0; t--) {
		RV re = j->dr[AT(t)], im = j->di[AT(t)];
		RV ir = t ? j->lr[AT(t - 1)] : m->entry[item],
		   ii = t ? j->li[AT(t - 1)] : m->entry[ITEMS + item];
		f = factor(j->lr[AT(t)], j->li[AT(t)], m->k[AT(t + 1)]);
		c = onward(c, f, re, im);
		j->lr[AT(t)] = LEFT ? c.re : c.re - re;
		j->li[AT(t)] = RFMA(c.im, ii, -(c.re * ir));
		sums->re += LEFT ? c.re : c.re - re;
		sums->im += LEFT ? c.im : c.im - im;
	}
#if !LEFT
	c.re = j->enter[2 * ITEMS + item];
	c.im = j->enter[3 * ITEMS + item];
	for (int t = 0; t < LEN(s); t++) {
		RV rr = j->rr[AT(t)], ri = j->ri[AT(t)];
		j->li[AT(t)] += RFMA(c.im, ri, -(c.re * rr));
		f = factor(rr, ri, m->k[AT(t)]);
		c = onward(c, f, j->dr[AT(t)], j->di[AT(t)]);
		j->lr[AT(t)] += c.re;
		sums->re += c.re;
		sums->im += c.im;
	}
#endif
}

// Writes the gradient of a (0), of b (1) or of c (2); those of b and c are multiplied by the other
// one.
FN void put_back(const struct chain_args *s, const struct chain_place *p, int item,
		 LOCAL_POINTER RV *plane, LOCAL_POINTER REAL *only, int which, GLOBAL uchar *y,
		 ulong y_at, GLOBAL uchar *times, ulong times_at, bool factors)
{
	const struct chain_tensor *out = which == 0 ? &s->out[0] :
					 which == 1 ? &s->out[1] :
						      &s->out[2];
	const struct chain_tensor *of = which == 1 ? &s->c : &s->b;
	if (!out->pair)
		return;
	int done = 0;
#if defined SQUARE_TURN && !SERVE && ODD != 2
	struct squares q;
	squares_of(s, p, out, 1, &q);
	for (; !which && done < q.len; done += VW) {
		RV v[VW];
		UNROLL
		for (int k = 0; k < VW; k++)
			v[k] = plane[done + k];
		square_write(&q, v, NUMBERS(y, y_at) + done);
	}
#endif
	EACH_OF(lane, t, done, LEN(s)) {
		long first, row = lane_row(s, p, lane, &first), i = first + t - (which ? 1 : 0);
		if (row >= 0 && i >= 0 && first + t < s->n && only[lane] != 0) {
			REAL v = AS_REALS(plane)[LANE_AT(t, lane)];
			if (factors)
				v *= (REAL)ACC_OF(NUMBERS(
					times, times_at)[row_at(s, of, row) + i * of->along]);
			NUMBERS(y, y_at)[row_at(s, out, row) + i * out->along] = NUMBER_OF((ACC)v);
		}
	}
}

FN void put_z(const struct chain_args *s, long row, REAL re, REAL im, GLOBAL uchar *y, ulong y_at)
{
	GLOBAL number *to = NUMBERS(y, y_at) + row_at(s, &s->out[3], row);
	to[0] = NUMBER_OF((ACC)-re);
	to[s->out[3].along] = NUMBER_OF((ACC)im);
}

// Marks the lanes of rows that this program processes; if there are none, it returns.
FN bool serves(const struct chain_args *s, const struct chain_place *p, int item,
	       const struct adjoint *j, LOCAL_POINTER REAL *only, GLOBAL uchar *work, ulong work_at)
{
	(void)work;
	(void)work_at;
#if SERVE
	bool some = false;
	for (int lane = item * VW; lane < (item + 1) * VW; lane++) {
		REAL largest = (REAL)0;
		for (int t = 0; t < LEN(s); t++) {
			largest = LARGER(fabs(AS_REALS(j->dr)[LANE_AT(t, lane)]), largest);
			largest = LARGER(fabs(AS_REALS(j->di)[LANE_AT(t, lane)]), largest);
		}
		AS_REALS(j->enter)[lane] = largest;
	}
	WAIT();
	for (int side = 0; side < (int)s->sides; side++) {
		REAL largest = (REAL)0;
		int first = side * (int)s->chunks;
		for (int lane = first; lane < first + (int)s->chunks; lane++)
			largest = LARGER(AS_REALS(j->enter)[lane], largest);
		bool served = (largest < (REAL)s->adaptive) == (SERVE == 1);
#if ODD == 2
		served = served || row_is_odd(s, work, work_at,
					      p->row + side < s->rows ? p->row + side : p->row);
#endif
		some = some || (served && p->row + side < s->rows);
		for (int lane = first + item; lane < first + (int)s->chunks; lane += ITEMS)
			only[lane] = served ? (REAL)1 : (REAL)0;
	}
	WAIT();
	return some;
#else
	for (int lane = item; lane < LANES; lane += ITEMS) {
#if ODD == 2
		long first, row = lane_row(s, p, lane, &first);
		only[lane] = row >= 0 && row_is_odd(s, work, work_at, row) ? (REAL)1 : (REAL)0;
#else
		only[lane] = (REAL)1;
#endif
	}
	WAIT();
	(void)s;
	(void)p;
	(void)j;
	return true;
#endif
}

KERNEL void WORK_GROUP_REGISTERS(ITEMS, 1)
	resolvent_backward(GLOBAL uchar *da, ulong da_at, GLOBAL uchar *db, ulong db_at,
			   GLOBAL uchar *dc, ulong dc_at, GLOBAL uchar *dz, ulong dz_at,
			   CHAIN_PARAMS, GLOBAL uchar *g, ulong g_at,
			   struct chain_args s REPORT_PARAMS)
{
	LOCAL RV room[ROOM(8)], lanes[26 * ITEMS];
	LOCAL REAL segments[12 * SEGS];
	LOCAL int flag[1];
	int item = LOCAL_ID(0);
	struct chain_place p = place_of(&s, GROUP_ID(0));
	struct chain_memory m;
	struct adjoint j;
	LOCAL_POINTER REAL *only = AS_REALS(lanes + 25 * ITEMS);
	bool wild;

#if ODD == 2 && !SERVE
	if (!group_is_odd(&s, &p, work, work_at))
		return;
#endif
	j.lr = chain_places(&m, room, lanes, segments, flag);
	j.li = j.lr + CHUNK * PITCH;
	j.rr = j.li + CHUNK * PITCH;
	j.ri = j.rr + CHUNK * PITCH;
	j.dr = j.ri + CHUNK * PITCH;
	j.di = j.dr + CHUNK * PITCH;
	j.enter = lanes + 5 * ITEMS;
	m.link = j.affine = lanes + 9 * ITEMS; // used one after the other
	stage_pairs(&s, &p, item, g, g_at, &s.g, j.dr, j.di);
	wild = stage_chain(&s, &p, item, &m, a, a_at, b, b_at, c, c_at, z, z_at, work, work_at,
			   reports, report_slot);
#if WHICH == 1
	(void)only;
	leave_link(&s, &p, item, &m, wild, work, work_at);
#else
	struct c1 front, after;
	bool some = serves(&s, &p, item, &j, only, work, work_at);
	enter_all(&s, &p, item, &m, wild, some && (s.chunks > 1 || s.parts > 1), work, work_at,
		  &front, &after);
	if (some && wild) {
		inverses(&s, item, &m, &j, true);
		seeds(&s, item, &m, &j, true);
	} else if (some) {
		inverses(&s, item, &m, &j, false);
		seeds(&s, item, &m, &j, false);
	}
#if SURROGATE
	for (int t = 0; t < LEN(&s); t++)
		j.li[AT(t)] = splat((REAL)0);
	WAIT();
	put_back(&s, &p, item, j.dr, only, 0, da, da_at, a, a_at, false);
#else
	struct cx sums;
#if WHICH == 3
	affine_enter_part(&s, &p, item, &m, &j, work, work_at);
	struct c1 right, left;
	GET_C1(right, m.seg_entry, 0, 1);
	GET_C1(left, m.seg_entry, 1, 1);
	WAIT();
#else
	struct c1 right = nothing(), left = nothing();
#endif
	if (some) {
		affine_lanes(&s, item, &m, &j, 0);
		if (!LEFT)
			affine_lanes(&s, item, &m, &j, 1);
	}
	WAIT();
#if WHICH == 2
	(void)sums;
	(void)right;
	(void)left;
	affine_part(item, &j, PART_OF(&s, work, work_at, p.row, p.part) + PART_AFFINE);
	leave_entry(&s, &p, item, front, after, work, work_at);
#else
	if (some)
		affine_segments(item, &m, &j);
	WAIT();
	if (some)
		affine_enter(item, &m, right, left);
	WAIT();
	if (some)
		affine_enter_lanes(item, &m, &j);
	WAIT();
	if (some) {
		ways(&s, item, &m, &j, &sums);
		m.link[item] = sums.re;
		m.link[ITEMS + item] = sums.im;
	}
	WAIT();
	if (some)
		put_back(&s, &p, item, j.lr, only, 0, da, da_at, a, a_at, false);
#endif
#endif
#if SURROGATE || WHICH != 2
	if (some) {
		put_back(&s, &p, item, j.li, only, 1, db, db_at, c, c_at, s.has_c);
		put_back(&s, &p, item, j.li, only, 2, dc, dc_at, b, b_at, s.has_b);
	}
	for (int side = item;
	     some && side < (int)s.sides && p.row + side < s.rows && s.out[3].pair && !p.part;
	     side += ITEMS) {
		int first = side * (int)s.chunks;
		struct c1 sum = nothing();
		if (only[first] == 0)
			continue;
#if !SURROGATE && WHICH == 3
		for (int up = 0; up < (LEFT ? 1 : 2); up++) {
			struct c1 at = nothing(), of[4];
			for (long i = 0; i < s.parts; i++) {
				GLOBAL REAL *from = PART_OF(&s, work, work_at, p.row,
							    up ? i : s.parts - 1 - i) +
						    PART_AFFINE + 8 * up;
				struct c1 t;
				for (int k = 0; k < 4; k++)
					GET_C1(of[k], from, k, 1);
				t = c1_onward(of[2], of[3], at);
				sum.re += t.re;
				sum.im += t.im;
				at = c1_onward(of[0], of[1], at);
			}
		}
#elif !SURROGATE
		for (int lane = first; lane < first + (int)s.chunks; lane++) {
			sum.re += AS_REALS(m.link)[lane];
			sum.im += AS_REALS(m.link)[LANES + lane];
		}
#endif
		put_z(&s, p.row + side, sum.re, sum.im, dz, dz_at);
	}
#endif
#endif
}
