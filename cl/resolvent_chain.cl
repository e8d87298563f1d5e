// SPDX-License-Identifier: Apache-2.0
// Shared by resolvent.cl and resolvent_backward.cl: rows of tridiagonal matrices are divided into
// chunks, held in local memory. resolvent_link.cl computes what chunks need from each other.
// Reference: kern_resolvent.c of the CPU backend, with the same equations.
//
// A lane is a chunk of `len` elements of a row; an item processes VEC_WIDTH lanes, a group ITEMS
// times as many: `sides` rows of `chunks` lanes, or one of the `parts` of a row that does not fit
// in a group. Local memory is [element][lane]. Beyond a row's ends k is 0, which makes lanes of
// different rows independent.
//
// In f32, elements and products beyond 1e18 are clamped to that. F64_LANES: REAL is f64. ODD: in
// f32, rows whose numbers may leave the range, or with a negative k, are odd; ODD 1 marks them for
// a later launch in f64, which (ODD 2) computes their results.
#include "number.cl"
#include "report.cl"

#ifndef ITEMS // items per group: 1, or 16 and more
#define ITEMS 64
#endif
#ifndef CHUNK // max elements per lane, at least 8; on GPUs, exactly
#define CHUNK 8
#endif
#ifndef LEFT // one-sided: only 1/L
#define LEFT 0
#endif
#ifndef ODD
#define ODD 0
#endif
#ifndef WHICH // see resolvent.cl and resolvent_backward.cl
#define WHICH 0
#endif

#ifdef F64_LANES
#define REAL double
#define HUGE_REAL 1e145
#define RFMA(a, b, c) ((a) * (b) + (c))
#else
#define REAL float
#define HUGE_REAL 1e18f
#define RFMA(a, b, c) FMA(a, b, c)
#endif
#if VEC_WIDTH == 1
#define RV REAL
#else
#define RV VEC_PASTE(REAL, VEC_WIDTH)
#endif
#define VW VEC_WIDTH
#define LANES (ITEMS * VW)
// Barriers only for several items: a CPU compiler splits the loop over a group's items at each
// barrier.
#if ITEMS > 1
#define WAIT() BARRIER()
#else
#define WAIT()
#endif
#if ITEMS > 1
#define PITCH (ITEMS + 1) // padding: neighbours along a lane, and of a step, are in different banks
#define LEN(s) CHUNK
#define SEG (ITEMS >= 128 ? 16 : ITEMS >= 32 ? 8 : 4) // lanes that one item chains
#else
#define PITCH 1
#define LEN(s) ((int)(s)->len)
#define SEG LANES
#endif
#define SEGS (LANES / SEG)
// vectors for `planes` planes, one of them longer
#define ROOM(planes) ((planes) * CHUNK * PITCH + PITCH)

#define AT(t) ((t) * PITCH + item)
#define LANE_AT(t, lane) (((t) * PITCH + (lane) / VW) * VW + (lane) % VW)
#define AS_REALS(p) ((LOCAL_POINTER REAL *)(p))
#define LARGER(a, b) ((a) > (b) ? (a) : (b))

struct chain_tensor {
	long strides[4], along, pair; // in elements
};

struct chain_args {
	long rank, dims[4]; // of the axes before the row axis
	long n, rows, len, chunks, sides, parts;
	long sweeps;
	float tolerance, blend, blend_rest, adaptive; // blend is split into the sum of two
	int has_b, has_c, has_bound;
	// marks per row: ints at byte `marked` of the workspace; 1 for each of its f32 parts
	int marks;
	long marked;
	struct chain_tensor a, b, c, z, g, out[4];
};

#define CHAIN_PARAMS \
	GLOBAL uchar *a, ulong a_at, GLOBAL uchar *b, ulong b_at, GLOBAL uchar *c, ulong c_at, \
	GLOBAL uchar *z, ulong z_at, GLOBAL uchar *work, ulong work_at

// Position of a group's lanes.
struct chain_place {
	// its first row; for a row with several parts: which part, and its first element
	long row, part, from;
};

struct chain_memory {
	LOCAL_POINTER RV *a, *k, *y; // a - Re z, k before each element and after the last, Im z
	LOCAL_POINTER RV *entry;     // [4][lanes] 1/L before, 1/R after
	LOCAL_POINTER RV *link;      // [8][lanes] u0, u1, v0, v1
	LOCAL_POINTER REAL *seg, *seg_entry; // [8][segments], [4][segments]
	LOCAL_POINTER int *flag;     // set if the square of an element, or of 1/L, leaves the range
};

// ---- positions ----

FN struct chain_place place_of(const struct chain_args *s, ulong group)
{
	struct chain_place p;
	p.row = (long)group * s->sides;
	p.part = 0;
	if (s->parts > 1) {
		p.row = (long)(group / (ulong)s->parts);
		p.part = (long)(group % (ulong)s->parts);
	}
	p.from = p.part * s->chunks * LEN(s);
	return p;
}

FN long row_at(const struct chain_args *s, const struct chain_tensor *t, long row)
{
	ulong r = (ulong)row;
	long at = 0;
	for (int d = (int)s->rank - 1; d > 0; d--) {
		ulong n = (ulong)s->dims[d], q = r / n;
		at += (long)(r - q * n) * t->strides[d];
		r = q;
	}
	return s->rank ? at + (long)r * t->strides[0] : 0;
}

// The row of a lane, or -1; and the lane's first element.
FN long lane_row(const struct chain_args *s, const struct chain_place *p, int lane, long *first)
{
	int side = lane / (int)s->chunks;
	*first = p->from + (long)(lane - side * (int)s->chunks) * LEN(s);
	return side < (int)s->sides && p->row + side < s->rows ? p->row + side : -1;
}

// ---- odd rows ----

#define ROW_MARKS(s, work, work_at, row) \
	((GLOBAL int *)((work) + (work_at) + (s)->marked) + (row) * (s)->marks)

FN bool row_is_odd(const struct chain_args *s, GLOBAL uchar *work, ulong work_at, long row)
{
	int odd = 0;
	for (int i = 0; i < s->marks; i++)
		odd |= ROW_MARKS(s, work, work_at, row)[i];
	return odd != 0;
}

// True if a group has an odd row.
FN bool group_is_odd(const struct chain_args *s, const struct chain_place *p, GLOBAL uchar *work,
		     ulong work_at)
{
	bool odd = false;
	for (int side = 0; side < (int)s->sides && p->row + side < s->rows; side++)
		odd = odd || row_is_odd(s, work, work_at, p->row + side);
	return odd;
}

// ---- transfers from and to global memory ----

// Loops over the elements of all lanes; `from` is 0 if there are several items.
#if ITEMS > 1
#define EACH_OF(lane, t, from, len) \
	for (int e_ = item + (from), lane = e_ / (len), t = e_ - lane * (len); e_ < LANES * (len); \
		e_ += ITEMS, lane = e_ / (len), t = e_ - lane * (len))
#else
#define EACH_OF(lane, t, from, len) \
	for (int lane = 0; lane < LANES; lane++) \
		for (int t = (from); t < (len); t++)
#endif

// Squares of VW elements of VW lanes: vectors of memory, transposed in registers.
#if ITEMS == 1 && defined TURN
#if VW == 16 && DTYPE == 1 && !defined F64_LANES
TURN(float, 16)
#define SQUARE_TURN turn_float
#elif VW == 8 && DTYPE == 2 && defined F64_LANES
TURN(double, 8)
#define SQUARE_TURN turn_double
#endif
#endif
#ifdef SQUARE_TURN
typedef RV any_square __attribute__((aligned(sizeof(REAL))));

struct squares {
	long at[LANES]; // first element of each lane
	bool some[LANES];
	int len; // length common to all non-empty lanes, a multiple of VW
};

// Sets len to 0 if elements are not `along` apart, or pairs not adjacent.
FN void squares_of(const struct chain_args *s, const struct chain_place *p,
		   const struct chain_tensor *of, long along, struct squares *q)
{
	q->len = of->along == along && (along == 1 || of->pair == 1) ? LEN(s) : 0;
	for (int lane = 0; lane < LANES; lane++) {
		long first, row = lane_row(s, p, lane, &first);
		q->some[lane] = row >= 0 && first < s->n;
		q->at[lane] = q->some[lane] ? row_at(s, of, row) + first * along : 0;
		if (q->some[lane] && s->n - first < q->len)
			q->len = (int)(s->n - first);
	}
	q->len -= q->len % VW;
}

FN void square_read(const struct squares *q, GLOBAL number *x, RV *v)
{
	UNROLL
	for (int lane = 0; lane < VW; lane++)
		v[lane] = q->some[lane] ? *(GLOBAL any_square *)(x + q->at[lane]) : (RV)((REAL)0);
	SQUARE_TURN(v);
}

FN void square_write(const struct squares *q, RV *v, GLOBAL number *x)
{
	SQUARE_TURN(v);
	UNROLL
	for (int lane = 0; lane < VW; lane++)
		if (q->some[lane])
			*(GLOBAL any_square *)(x + q->at[lane]) = v[lane];
}
#endif

// Loads elements of a tensor [.., n]; 0 outside.
FN void stage(const struct chain_args *s, const struct chain_place *p, int item, GLOBAL uchar *base,
	      ulong at, const struct chain_tensor *of, LOCAL_POINTER RV *plane)
{
	GLOBAL number *x = NUMBERS(base, at);
	int done = 0;
#ifdef SQUARE_TURN
	struct squares q;
	squares_of(s, p, of, 1, &q);
	for (; done < q.len; done += VW) {
		RV v[VW];
		square_read(&q, x + done, v);
		UNROLL
		for (int k = 0; k < VW; k++)
			plane[done + k] = v[k];
	}
#endif
	EACH_OF(lane, t, done, LEN(s)) {
		long first, row = lane_row(s, p, lane, &first), i = first + t;
		AS_REALS(plane)
		[LANE_AT(t, lane)] =
			row >= 0 && i < s->n ? (REAL)ACC_OF(x[row_at(s, of, row) + i * of->along]) :
					       (REAL)0;
	}
}

// The same for pairs [.., n, 2].
FN void stage_pairs(const struct chain_args *s, const struct chain_place *p, int item,
		    GLOBAL uchar *base, ulong at, const struct chain_tensor *of,
		    LOCAL_POINTER RV *re, LOCAL_POINTER RV *im)
{
	GLOBAL number *x = NUMBERS(base, at);
	int done = 0;
#ifdef SQUARE_TURN
	struct squares q;
	squares_of(s, p, of, 2, &q);
	for (; done < q.len; done += VW / 2) {
		RV v[VW];
		square_read(&q, x + 2 * done, v);
		UNROLL
		for (int k = 0; k < VW / 2; k++) {
			re[done + k] = v[2 * k];
			im[done + k] = v[2 * k + 1];
		}
	}
#endif
	EACH_OF(lane, t, done, LEN(s)) {
		long first, row = lane_row(s, p, lane, &first), i = first + t;
		bool there = row >= 0 && i < s->n;
		long from = there ? row_at(s, of, row) + i * of->along : 0;
		AS_REALS(re)[LANE_AT(t, lane)] = there ? (REAL)ACC_OF(x[from]) : (REAL)0;
		AS_REALS(im)[LANE_AT(t, lane)] = there ? (REAL)ACC_OF(x[from + of->pair]) : (REAL)0;
	}
}

FN RV splat(REAL x)
{
	return (RV)(x);
}

FN void stage_bonds(const struct chain_args *s, const struct chain_place *p, int item,
		    GLOBAL uchar *b, ulong b_at, GLOBAL uchar *c, ulong c_at,
		    LOCAL_POINTER RV *plane)
{
#if ITEMS == 1
	if (!s->has_b && !s->has_c) { // all are 1, except beyond a row's ends
		for (int t = 0; t <= LEN(s); t++)
			plane[AT(t)] = splat((REAL)1);
		for (int lane = 0; lane < LANES; lane++) {
			long first, row = lane_row(s, p, lane, &first);
			if (!first)
				AS_REALS(plane)[LANE_AT(0, lane)] = (REAL)0;
			for (int t = LEN(s); t >= 0 && (row < 0 || first + t >= s->n); t--)
				AS_REALS(plane)[LANE_AT(t, lane)] = (REAL)0;
		}
		return;
	}
#endif
	EACH_OF(lane, t, 0, LEN(s) + 1) {
		long first, row = lane_row(s, p, lane, &first), i = first + t - 1;
		REAL k = (REAL)0;
		if (row >= 0 && i >= 0 && i < s->n - 1) {
			k = (REAL)1;
			REAL x = k, y = k;
			if (s->has_b)
				x = (REAL)ACC_OF(
					NUMBERS(b, b_at)[row_at(s, &s->b, row) + i * s->b.along]);
			if (s->has_c)
				y = (REAL)ACC_OF(
					NUMBERS(c, c_at)[row_at(s, &s->c, row) + i * s->c.along]);
			k = x * y;
			if (k - k != 0 && x - x == 0 && y - y == 0) // too large, but finite
				k = (x < 0) == (y < 0) ? (REAL)1e38f : -(REAL)1e38f;
		}
		AS_REALS(plane)[LANE_AT(t, lane)] = k;
	}
}

// Loads planes of a - x, k and z, and sets entries to 0. Reports rejected values; returns true if
// squares of a lane leave the range or a k is negative.
FN bool stage_chain(const struct chain_args *s, const struct chain_place *p, int item,
		    const struct chain_memory *to, CHAIN_PARAMS REPORT_PARAMS)
{
	int len = LEN(s);

	if (item == 0)
		*to->flag = 0;
	stage(s, p, item, a, a_at, &s->a, to->a);
	stage_bonds(s, p, item, b, b_at, c, c_at, to->k);
	for (int lane = item; lane < LANES; lane += ITEMS) {
		long first, row = lane_row(s, p, lane, &first);
		REAL re = (REAL)0, im = (REAL)1;
		if (row >= 0) {
			GLOBAL number *of = NUMBERS(z, z_at) + row_at(s, &s->z, row);
			re = (REAL)ACC_OF(of[0]);
			im = (REAL)ACC_OF(of[s->z.along]);
		}
		AS_REALS(to->entry)[lane] = re; // until all are present
		AS_REALS(to->y)[lane] = im;
	}
	WAIT();
	{
		RV x = to->entry[item], lo = to->k[AT(len)], hi = fabs(lo);
		RV none = lo * (REAL)0 + x * (REAL)0 + to->y[item] * (REAL)0;
		for (int t = 0; t < len; t++) {
			RV v = to->a[AT(t)], k = to->k[AT(t)];
			none += v * (REAL)0 + k * (REAL)0; // NaN if a value is not finite
			v -= x;
			to->a[AT(t)] = v;
			hi = LARGER(LARGER(fabs(v), fabs(k)), hi);
			lo = k < lo ? k : lo;
		}
		to->entry[item] = hi;
		to->entry[ITEMS + item] = lo;
		to->entry[2 * ITEMS + item] = none;
	}
	for (int lane = item * VW; lane < (item + 1) * VW; lane++) {
		long first, row = lane_row(s, p, lane, &first);
		LOCAL_POINTER REAL *of = AS_REALS(to->entry) + lane;
		REAL y = AS_REALS(to->y)[lane];
		if (row >= 0 && of[2 * LANES] != 0)
			report_bad(REPORT_AT, (ulong)row);
		// elements after the row's end must not look like an eigenvalue at a real z
		for (long t = y == 0 && first + len > s->n ? (s->n > first ? s->n - first : 0) :
							     len;
		     t < len; t++)
			AS_REALS(to->a)[LANE_AT(t, lane)] = (REAL)1;
#if ODD == 1
		// links of rows that share a group are combined, so values out of range must not
		// enter them
		bool beyond = !(of[0] < (REAL)1e8 && fabs(y) > (REAL)1e-8 && fabs(y) < (REAL)1e8);
		for (int t = 0; t <= len && beyond; t++) {
			AS_REALS(to->k)[LANE_AT(t, lane)] = (REAL)0;
			if (t < len)
				AS_REALS(to->a)[LANE_AT(t, lane)] = (REAL)0;
		}
		if (beyond) {
			// marks a row for which half precision is insufficient too
			AS_REALS(to->k)[LANE_AT(len, lane)] = (REAL)-1;
			AS_REALS(to->y)[lane] = (REAL)1;
		}
#endif
		if (!(of[0] <= (REAL)1e4 && of[LANES] >= 0 && fabs(y) >= (REAL)1e-4 &&
		      fabs(y) <= (REAL)1e4))
			*to->flag = 1;
#if ODD == 1
		of[3 * LANES] = beyond || of[LANES] < 0 ? (REAL)1 : (REAL)0;
		of[0] = of[LANES] = of[2 * LANES] = (REAL)0;
#else
		of[0] = of[LANES] = of[2 * LANES] = of[3 * LANES] = (REAL)0;
#endif
	}
	WAIT();
#if ODD == 1
	for (int side = item; side < (int)s->sides && p->row + side < s->rows; side += ITEMS) {
		int first = side * (int)s->chunks, odd = 0;
		for (int lane = first; lane < first + (int)s->chunks; lane++)
			odd |= AS_REALS(to->entry)[3 * LANES + lane] != 0;
		ROW_MARKS(s, work, work_at, p->row + side)[p->part] = odd;
	}
	WAIT();
	to->entry[3 * ITEMS + item] = splat((REAL)0);
	WAIT();
#endif
	if (*to->flag)
		for (int t = 0; t <= len; t++) {
			RV v = t < len ? to->a[AT(t)] : splat((REAL)0), k = to->k[AT(t)];
			v = LARGER(v, splat(-HUGE_REAL));
			k = LARGER(k, splat(-HUGE_REAL));
			if (t < len)
				to->a[AT(t)] = v > HUGE_REAL ? splat(HUGE_REAL) : v;
			to->k[AT(t)] = k > HUGE_REAL ? splat(HUGE_REAL) : k;
		}
	return *to->flag;
}

// Assigns a group's local memory; returns where the planes after those of the matrix begin.
FN LOCAL_POINTER RV *chain_places(struct chain_memory *m, LOCAL_POINTER RV *room,
				  LOCAL_POINTER RV *lanes, LOCAL_POINTER REAL *segments,
				  LOCAL_POINTER int *flag)
{
	m->k = room;
	m->a = room + (CHUNK + 1) * PITCH;
	m->y = lanes;
	m->entry = lanes + ITEMS;
	m->seg = segments;
	m->seg_entry = segments + 8 * SEGS;
	m->flag = flag;
	return m->a + CHUNK * PITCH;
}

