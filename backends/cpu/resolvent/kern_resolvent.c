// SPDX-License-Identifier: Apache-2.0
// RESOLVENT and RESOLVENT_BACKWARD: divides rows into lanes, computes what chunks need from each
// other, and handles the precision tiers.
//
// For a divided row, 1/L before each chunk and 1/R after it are found from discs of Moebius maps:
// without negative k, L - alpha lies in the disc whose diameter is from 0 to -i k/y; a step maps
// discs to discs, and after w steps the disc is often smaller than the rounding of L. For rows
// where it is not, products of the elements' matrices over each chunk are chained, which is valid
// for any z.
#include "config.h"

#include <stdlib.h>

#include "kern_resolvent.h"

// in elements: min chunk; max chunk, forward and backward; min work for two threads
enum { MIN_SIZE = 128, LONGEST = 1024, LONGEST_BACKWARD = 8192, MANY = 1 << 16 };
enum { LANES = 64 }; // at least the width of a pack
enum { OPEN_BACK = 16 }; // mark: the row's backward entries are not known yet
#define HUGE_ENTRY 1e140 // the inverse of a pivot that is 0
// numbers of elements next to a chunk that are tried
static const int64_t reach[] = { 32, 256, 2048 };

// ---- operands ----

static bool is_real(const struct yoke_view *v)
{
	return v->kind == YOKE_VIEW_BUFFER && yk_is_float(v->dtype);
}

static bool is_real_or_none(const struct yoke_view *v)
{
	return v->kind == YOKE_VIEW_NONE || is_real(v);
}

static struct chain_view view_of(const struct yoke_view *v, int last)
{
	struct chain_view c = { .base = NULL };
	if (v->kind != YOKE_VIEW_BUFFER)
		return c;
	c = (struct chain_view){ .base = yk_ptr(v), .dtype = v->dtype, .rank = v->rank - last };
	c.size = (int64_t)yk_esize(v->dtype);
	c.load = ISA(yk_load)(v->dtype);
	c.store = ISA(yk_store)(v->dtype);
	c.along = v->strides[c.rank];
	c.pair = last > 1 ? v->strides[c.rank + 1] : 0;
	for (int d = 0; d < c.rank; d++) {
		c.dims[d] = v->dims[d];
		c.strides[d] = v->strides[d];
	}
	return c;
}

// ---- packs ----

// An operation on all lanes of a job, or on those of rows marked in `flag`.
struct round {
	struct chain_job *job;
	int64_t *lane; // lanes of marked rows; NULL: all lanes
	int64_t lanes;
	int width;
	void (*run)(struct round *, const struct chain_pack *);
	int64_t w; // elements covered by discs
	bool first;
	atomic_int_fast64_t left_open;
};

static void item(void *arg, int64_t index)
{
	struct round *r = arg;
	struct chain_lane lane[LANES];
	const int64_t from = index * r->width, left = r->lanes - from;
	struct chain_pack p = { .job = r->job,
				.lane = lane,
				.count = (int)(left < r->width ? left : r->width) };
	for (int l = 0; l < p.count; l++)
		lane[l] = lane_at(r->job, r->lane ? r->lane[from + l] : from + l);
	p.divide = r->job->tier == TIER_MIXED;
	r->run(r, &p);
}

// Runs an operation on rows marked with `mark`, or on all if it is 0. Packs are narrower if that
// gives two threads work.
static int every(struct chain_job *j, void (*run)(struct round *, const struct chain_pack *),
		 int64_t w, bool first, unsigned mark, int64_t *left_open)
{
	const int max = j->tier == TIER_F64 ? ISA(yk_chain_f64).width : ISA(yk_chain_f32).width;
	struct round r = {
		.job = j, .run = run, .w = w, .first = first, .lanes = j->rows * j->chunks
	};
	if (mark) {
		r.lane = malloc((size_t)r.lanes * sizeof *r.lane);
		if (!r.lane)
			return YOKE_ENOMEM;
		r.lanes = 0;
		for (int64_t i = 0; i < j->rows; i++)
			for (int64_t c = 0; c < j->chunks && j->flag[i] & mark; c++)
				r.lane[r.lanes++] = i * j->chunks + c;
	}
	r.width = r.lanes <= max && r.lanes > max / 2 && j->n * j->rows >= MANY ? max / 2 : max;
	yk_team_run((r.lanes + r.width - 1) / r.width, item, &r);
	free(r.lane);
	if (left_open)
		*left_open = atomic_load(&r.left_open);
	return atomic_load(&j->no_memory) ? YOKE_ENOMEM : 0;
}

// Processes in f64 the lanes for which f32 is insufficient.
static void leftovers(const struct chain_pack *p, const bool *odd, bool first,
		      void (*wide)(const struct chain_pack *, bool first))
{
	struct chain_lane lane[LANES];
	struct chain_pack q = { .job = p->job, .lane = lane };
	for (int l = 0; l < p->count; l++) {
		if (odd[l])
			lane[q.count++] = p->lane[l];
		if (q.count && (q.count == ISA(yk_chain_f64).width || l == p->count - 1)) {
			wide(&q, first);
			q.count = 0;
		}
	}
}

static void forward_wide(const struct chain_pack *p, bool first)
{
	(void)first;
	ISA(yk_chain_f64).forward(p, NULL);
}

static void matrices_wide(const struct chain_pack *p, bool first)
{
	(void)first;
	ISA(yk_chain_f64).matrices(p, NULL);
}

static void back_wide(const struct chain_pack *p, bool first)
{
	ISA(yk_chain_f64).back(p, first, NULL);
}

static void forward(struct round *r, const struct chain_pack *p)
{
	bool odd[LANES] = { false };
	if (r->job->tier == TIER_F64) {
		forward_wide(p, false);
		return;
	}
	ISA(yk_chain_f32).forward(p, odd);
	leftovers(p, odd, false, forward_wide);
}

static void half(struct round *r, const struct chain_pack *p)
{
	(void)r;
	ISA(yk_chain_half)(p);
}

// Marks the rows of lanes that failed.
static void mark_failed_rows(struct round *r, const struct chain_pack *p, const bool *failed,
			     unsigned char mark)
{
	for (int l = 0; l < p->count; l++)
		if (failed[l]) {
			// several lanes of a row may write the same byte the same value
			__atomic_fetch_or(&r->job->flag[p->lane[l].row], mark, __ATOMIC_RELAXED);
			atomic_fetch_add(&r->left_open, 1);
		}
}

static void disc(struct round *r, const struct chain_pack *p)
{
	bool failed[LANES] = { false };
	(r->job->tier == TIER_F64 ? &ISA(yk_chain_f64) : &ISA(yk_chain_f32))->disc(p, r->w, failed);
	mark_failed_rows(r, p, failed, 1);
}

static void entries_from_neighbours(struct round *r, const struct chain_pack *p)
{
	bool failed[LANES] = { false };
	(r->job->tier == TIER_F64 ? &ISA(yk_chain_f64) : &ISA(yk_chain_f32))->near(p, r->w, failed);
	mark_failed_rows(r, p, failed, OPEN_BACK);
}

static void matrices(struct round *r, const struct chain_pack *p)
{
	bool odd[LANES] = { false };
	if (r->job->tier == TIER_F64) {
		matrices_wide(p, false);
		return;
	}
	ISA(yk_chain_f32).matrices(p, odd);
	leftovers(p, odd, false, matrices_wide);
}

static void back(struct round *r, const struct chain_pack *p)
{
	bool odd[LANES] = { false };
	struct chain_job *j = r->job;
	if (j->tier == TIER_F64) {
		back_wide(p, r->first);
		return;
	}
	for (int l = 0; l < p->count; l++) // rows with small cotangents
		odd[l] = false;
	ISA(yk_chain_f32).back(p, r->first, odd);
	leftovers(p, odd, r->first, back_wide);
}

// ---- values passed between chunks ----

typedef struct {
	double re, im;
} cx;

static cx times(cx a, cx b)
{
	return (cx){ a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
}

// a - k b c
static cx less(cx a, double k, cx b, cx c)
{
	const cx t = times(b, c);
	return (cx){ a.re - k * t.re, a.im - k * t.im };
}

static cx at(const double *of)
{
	return (cx){ of[0], of[1] };
}

// a / b, at most HUGE_ENTRY in magnitude
static void ratio(cx a, cx b, double *to)
{
	const double max = fmax(fabs(b.re), fabs(b.im));
	if (!(max > 0)) {
		to[0] = HUGE_ENTRY;
		to[1] = 0;
		return;
	}
	const double s = 1 / max, re = b.re * s, im = b.im * s, q = s / (re * re + im * im);
	to[0] = (a.re * re + a.im * im) * q;
	to[1] = (a.im * re - a.re * im) * q;
	if (!(fabs(to[0]) < HUGE_ENTRY && fabs(to[1]) < HUGE_ENTRY)) {
		to[0] = HUGE_ENTRY;
		to[1] = 0;
	}
}

// k between elements i - 1 and i of a row
static double bond(const struct chain_job *j, int64_t row, int64_t i)
{
	const double b =
		j->b.base ?
			number_at(&j->b, row_of(&j->b, row) + (i - 1) * j->b.along * j->b.size) :
			1;
	const double c =
		j->c.base ?
			number_at(&j->c, row_of(&j->c, row) + (i - 1) * j->c.along * j->c.size) :
			1;
	return b * c;
}

// Computes a row's entries from its chunks' matrices.
static void chain(struct chain_job *j, int64_t row)
{
	const int64_t last = (row + 1) * j->chunks - 1, first = row * j->chunks;
	double in[2] = { 0, 0 };
	for (int64_t l = first; l < last; l++) {
		const struct chain_link *m = &j->link[l];
		const double k = l > first ? bond(j, row, lane_at(j, l).first) : 0;
		// theta after the chunk and after its last but one element, from 1 and 1/L before
		// it
		ratio(less(at(m->of[1]), k, at(m->of[3]), at(in)),
		      less(at(m->of[0]), k, at(m->of[2]), at(in)), in);
		memcpy(j->entry[l + 1].before, in, sizeof in);
	}
	in[0] = in[1] = 0;
	for (int64_t l = last; l > first; l--) {
		const struct chain_link *m = &j->link[l];
		const double k = l < last ? bond(j, row, lane_at(j, l).first + j->length) : 0;
		ratio(less(at(m->of[2]), k, at(m->of[3]), at(in)),
		      less(at(m->of[0]), k, at(m->of[1]), at(in)), in);
		memcpy(j->entry[l - 1].after, in, sizeof in);
	}
}

// True if covering w elements costs more than chaining whole chunks.
static bool is_far(const struct chain_job *j, int64_t w)
{
	return w * 4 > j->length && yk_chain_entry != YK_ENTRY_DISC;
}

static int entries(struct chain_job *j)
{
	int64_t open = 1;
	int err = 0;
	memset(j->flag, 1, (size_t)j->rows);
	for (int i = 0; i < 3 && open && !err && yk_chain_entry != YK_ENTRY_MATRICES; i++) {
		if (i && is_far(j, reach[i]))
			break;
		memset(j->flag, 0, (size_t)j->rows);
		err = every(j, disc, reach[i], false, 0, &open);
	}
	if (err || !open)
		return err;
	err = every(j, matrices, 0, false, 1, NULL);
	for (int64_t row = 0; row < j->rows && !err; row++)
		if (j->flag[row] & 1)
			chain(j, row);
	return err;
}

// Entries of the backward pass: the cotangents passed between chunks.
static void chain_backward(struct chain_job *j, int64_t row)
{
	const int64_t last = (row + 1) * j->chunks - 1, first = row * j->chunks;
	cx in = { 0, 0 };
	for (int64_t l = last; l >= first; l--) {
		const struct chain_link *m = &j->link[l];
		j->entry[l].from_right[0] = in.re;
		j->entry[l].from_right[1] = in.im;
		const cx t = times(at(m->of[1]), in);
		in = (cx){ m->of[0][0] + t.re, m->of[0][1] + t.im };
	}
	in = (cx){ 0, 0 };
	for (int64_t l = first; l <= last; l++) {
		const struct chain_link *m = &j->link[l];
		j->entry[l].from_left[0] = in.re;
		j->entry[l].from_left[1] = in.im;
		const cx t = times(at(m->of[3]), in);
		in = (cx){ m->of[2][0] + t.re, m->of[2][1] + t.im };
	}
}

// ---- jobs ----

// Divides rows into chunks, depending only on number and length of rows, tier and pass.
static void cut(struct chain_job *j, int64_t longest)
{
	const int64_t width =
		j->tier == TIER_F64 ? ISA(yk_chain_f64).width : ISA(yk_chain_f32).width;
	// desired number of lanes
	const int64_t wanted =
		j->n * j->rows >= MANY ? (longest == LONGEST ? 4 * width : width) : width / 2;
	int64_t chunks = j->rows ? (wanted + j->rows - 1) / j->rows : 1;
	j->length = (j->n + chunks - 1) / chunks;
	j->length = j->length < MIN_SIZE ? MIN_SIZE : j->length > longest ? longest : j->length;
	if (yk_chain_length)
		j->length = yk_chain_length;
	j->length = j->length < j->n ? j->length : j->n;
	j->chunks = j->length ? (j->n + j->length - 1) / j->length : 1;
}

static int init(struct chain_job *j, const struct yoke_op *op)
{
	const struct yoke_view *a = &op->in[0];
	*j = (struct chain_job){ .a = view_of(a, 1),
				 .b = view_of(&op->in[1], 1),
				 .c = view_of(&op->in[2], 1),
				 .z = view_of(&op->in[3], 1),
				 .n = a->dims[a->rank - 1],
				 .rows = 1 };
	j->side = (int)op->attr[0].i;
	j->tier = (int)op->attr[1].i;
	j->sweeps = (int)op->attr[2].i;
	j->tolerance = op->attr[3].f;
	j->gradient = (int)op->attr[4].i;
	j->blend = op->attr[5].f;
	j->adaptive = op->attr[6].f;
	for (int d = 0; d < a->rank - 1; d++)
		j->rows *= a->dims[d];
	atomic_init(&j->bad, INT64_MAX);
	atomic_init(&j->singular, INT64_MAX);
	atomic_init(&j->no_memory, false);
	cut(j, op->code == YOKE_OP_RESOLVENT ? LONGEST : LONGEST_BACKWARD);
	j->one_z = true;
	for (int d = 0; d < j->z.rank; d++)
		j->one_z &= !j->z.strides[d] || j->z.dims[d] == 1;
	// allocates only what is used: for short rows this dominates a call's cost
	const size_t lanes = (size_t)(j->rows * j->chunks);
	const bool back = op->code == YOKE_OP_RESOLVENT_BACKWARD, cut = j->chunks > 1,
		   half = j->tier >= TIER_F16;
	if (back || cut)
		j->link = calloc(lanes + 1, sizeof *j->link);
	if (back || cut || half)
		j->flag = calloc((size_t)j->rows + 1, 1);
	if (half)
		j->bound = calloc(2 * lanes + 1, sizeof *j->bound);
	if (cut)
		j->entry = calloc(lanes, sizeof *j->entry);
	return (j->link || !(back || cut)) && (j->flag || !(back || cut || half)) &&
			       (j->bound || !half) && (j->entry || !cut) ?
		       0 :
		       YOKE_ENOMEM;
}

static int fini(struct chain_job *j, int err)
{
	const int64_t bad = atomic_load(&j->bad), singular = atomic_load(&j->singular);
	double x, y;
	free(j->link);
	free(j->flag);
	free(j->bound);
	free(j->entry);
	if (err)
		return yk_cpu_fail(err, "resolvent: no memory for %lld rows of %lld elements",
				   (long long)j->rows, (long long)j->n);
	if (bad == INT64_MAX && singular == INT64_MAX)
		return 0;
	if (bad == INT64_MAX)
		return yk_cpu_fail(
			YOKE_ERANGE,
			"resolvent: in row %lld z is an eigenvalue of the matrix, or, with side left, of a "
			"leading block; choose another z",
			(long long)singular);
	z_of(j, bad, &x, &y);
	if (!isfinite(x) || !isfinite(y))
		return yk_cpu_fail(YOKE_ERANGE,
				   "resolvent: z of row %lld is %g + %gi; it has to be finite",
				   (long long)bad, x, y);
	return yk_cpu_fail(
		YOKE_ERANGE,
		"resolvent: an element of a, b or c in row %lld is infinite or NaN; all have to be finite",
		(long long)bad);
}

// ---- the ops ----

static bool takes(const struct yoke_op *op, uint32_t in, uint32_t out)
{
	if (op->nin != in || op->nout != out || op->nattr < 7 || op->attr[1].i < TIER_F64 ||
	    op->attr[1].i > TIER_BF16)
		return false;
	return is_real(&op->in[0]) && is_real_or_none(&op->in[1]) && is_real_or_none(&op->in[2]) &&
	       is_real(&op->in[3]);
}

static uint64_t can(const struct yoke_op *op)
{
	return takes(op, 4, 2) && is_real(&op->out[0]) && is_real_or_none(&op->out[1]);
}

// Combines the error bounds of lanes to those of rows; marks rows that must be recomputed.
static uint64_t bounds(struct chain_job *j)
{
	const bool wanted = j->out[1].base;
	uint64_t promoted = 0;
	for (int64_t row = 0; row < j->rows; row++) {
		float change = 0, high = 0;
		bool odd = false;
		double x, y;
		for (int64_t l = row * j->chunks; l < (row + 1) * j->chunks; l++) {
			odd |= j->bound[2 * l] < 0;
			change = fmaxf(change, j->bound[2 * l]);
			high = fmaxf(high, j->bound[2 * l + 1]);
		}
		z_of(j, row, &x, &y);
		odd |= y == 0; // nothing bounds the error then
		const double value = (double)change * (double)high / fabs(y);
		const float bound = !odd && isfinite(value) ? (float)value : INFINITY;
		j->flag[row] = odd || (double)bound > j->tolerance ? 2 : 0;
		promoted += j->flag[row] != 0;
		if (!wanted)
			continue;
		char *to = row_of(&j->out[1], row);
		j->out[1].store(to, &bound, 1, 1);
	}
	return promoted;
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct chain_job j;
	int err = init(&j, op);
	const bool halves = j.tier >= TIER_F16;

	(void)impl, (void)prepared;
	j.out[0] = view_of(&op->out[0], 2);
	j.out[1] = view_of(&op->out[1], 0);
	if (!err && j.n && j.rows && j.chunks > 1)
		err = entries(&j);
	if (!err && j.n && j.rows)
		err = every(&j, halves ? half : forward, 0, false, 0, NULL);
	if (!err && halves && j.n) {
		const uint64_t promoted = bounds(&j);
		if (promoted)
			err = every(&j, forward, 0, false, 2, NULL);
		yk_cpu_promoted(promoted);
	} else if (!err && j.out[1].base) {
		const double none = 0;
		for (int64_t row = 0; row < j.rows; row++)
			j.out[1].store(row_of(&j.out[1], row), &none, 1, 1);
	}
	return fini(&j, err);
}

static uint64_t can_backward(const struct yoke_op *op)
{
	bool good = takes(op, 5, 4) && is_real(&op->in[4]);
	for (int k = 0; k < 4; k++)
		good &= is_real_or_none(&op->out[k]);
	return good;
}

// Marks rows of the mixed and half-precision tiers whose largest |cotangent| is small; they are
// computed in f64.
static void mark_small(struct chain_job *j)
{
	for (int64_t row = 0; row < j->rows; row++) {
		const char *g = row_of(&j->g, row);
		double max = 0;
		for (int64_t i = 0; i < j->n; i++)
			for (int k = 0; k < 2; k++) {
				const double x = number_at(
					&j->g, g + (i * j->g.along + k * j->g.pair) * j->g.size);
				max = fmax(max, fabs(x));
			}
		j->flag[row] = max < j->adaptive ? 4 : 8;
	}
}

// Computes the cotangents passed between chunks, for rows marked with `mark`, or all if it is 0.
static int entries_backward(struct chain_job *j, unsigned mark)
{
	int64_t open = 1;
	int err = 0;
	for (int64_t row = 0; row < j->rows; row++)
		j->flag[row] |= OPEN_BACK;
	for (int i = 0;
	     i < 2 && open && !err && yk_chain_entry != YK_ENTRY_MATRICES && !is_far(j, reach[i]);
	     i++) {
		for (int64_t row = 0; row < j->rows; row++)
			j->flag[row] &= (unsigned char)~OPEN_BACK;
		err = every(j, entries_from_neighbours, reach[i], false, mark, &open);
	}
	for (int64_t row = 0; row < j->rows; row++)
		j->flag[row] &= mark && !(j->flag[row] & mark) ? (unsigned char)~OPEN_BACK : 0xff;
	if (!err && open)
		err = every(j, back, 0, true, OPEN_BACK, NULL);
	for (int64_t row = 0; row < j->rows && !err && open; row++)
		if (j->flag[row] & OPEN_BACK)
			chain_backward(j, row);
	return err;
}

static int passes_backward(struct chain_job *j, unsigned mark)
{
	int err = j->chunks > 1 && j->gradient == EXACT ? entries_backward(j, mark) : 0;
	return err ? err : every(j, back, 0, false, mark, NULL);
}

static void store_z(const struct chain_job *j)
{
	for (int64_t row = 0; row < j->rows && j->out[3].base; row++) {
		double sum[2] = { 0, 0 };
		for (int64_t l = row * j->chunks;
		     l < (row + 1) * j->chunks && j->n && j->gradient == EXACT; l++) {
			sum[0] -= j->link[l].of[0][0];
			sum[1] += j->link[l].of[0][1];
		}
		for (int k = 0; k < 2; k++) {
			const float narrow = (float)sum[k];
			char *to = row_of(&j->out[3], row) + k * j->out[3].along * j->out[3].size;
			if (j->out[3].dtype == yoke_f64)
				memcpy(to, &sum[k], sizeof sum[k]);
			else
				j->out[3].store(to, &narrow, 1, 1);
		}
	}
}

static int run_backward(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct chain_job j;
	int err = init(&j, op);

	(void)impl, (void)prepared;
	j.g = view_of(&op->in[4], 2);
	for (int k = 0; k < 4; k++)
		j.out[k] = view_of(&op->out[k], 1);
	if (!err && j.n && j.rows && j.chunks > 1)
		err = entries(&j);
	if (!err && j.n && j.rows && j.tier > TIER_F32 && j.adaptive > 0) {
		const int tier = j.tier;
		mark_small(&j);
		err = passes_backward(&j, 8);
		j.tier = TIER_F64;
		err = err ? err : passes_backward(&j, 4);
		j.tier = tier;
	} else if (!err && j.n && j.rows) {
		err = passes_backward(&j, 0);
	}
	if (!err)
		store_z(&j);
	return fini(&j, err);
}

YK_KERNEL(resolvent, RESOLVENT) = { .can = can, .run = run, .impl = { "lanes" } };
YK_KERNEL(resolvent_backward,
	  RESOLVENT_BACKWARD) = { .can = can_backward, .run = run_backward, .impl = { "lanes" } };
