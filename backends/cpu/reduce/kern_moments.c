// SPDX-License-Identifier: Apache-2.0
// MOMENTS: weight, means, products of deviations and extremes of rows, reading the rows once.
//
// Rows are divided into groups, by shape alone, which are work items and are merged in order (Chan,
// Golub and LeVeque 1979). A group processes its rows a few hundred at a time, which stay in cache:
// their sums, and deviations from the group's mean so far; then the products of those, with the
// innermost loop of contractions, while the next rows are prefetched. The chunk's mean differs from
// the group's, and the group's mean moves; both are corrected when the products are added.
// Everything is in f64: products in f32 would overflow for deviations beyond 1e19, and would lose
// small eigenvalues of a covariance. Products above the diagonal are computed, in units of vectors;
// the first unit is the partial one, because the fewest rows need it.
#include "config.h"

#include <math.h>
#include <stdatomic.h>

#include "../algebra/matrix.h"
#include "../contract/kern_contract.h"

enum {
	ROWS = 6,           // read together
	FOLD = 128,         // rows multiplied at a time
	CHUNK_ROWS = 512,  // max rows per chunk ...
	CHUNK_ELEMENTS = 1 << 15, // ... and max elements, if that leaves FOLD rows
	TALL = 12,          // max channels per tile
	GROUPS = 32,
	MEMORY = 1 << 23,   // max doubles of all groups
	WORTH = 8           // min chunks per group
};

struct group {
	double weight;
	double *mean, *low, *high, *square;
};

struct job {
	const char *x, *w;
	int64_t rows, channels, rs, cs, ws, size; // strides in elements; size: bytes per element
	int64_t extent; // elements from the first row to the end of the last
	int64_t odd;   // channels in the first unit
	int64_t width; // slots, in whole units: channels from `odd` on start after the first unit
	int64_t line;  // doubles per row of products
	// distance of rows of deviations: an odd number of vectors, to spread over the cache's sets
	int64_t apart;
	int64_t each;  // rows per chunk
	int64_t items, groups;
	bool diagonal;
	double *memory; // of the groups
	struct group group[GROUPS];
	void (*sum)(struct job *, int64_t index);
	atomic_bool no_memory;
};

// A chunk of a group's rows, without rows of weight 0.
struct part {
	const struct job *job;
	struct group *group;
	int64_t rows, *row, next; // next: first row of the group's next chunk
	bool weighed; // some weight is not 1
	double weight, factor;
	double *mean, *sum, *delta, *squares, *shift, *low, *high; // per slot
};

static inline int64_t slot(const struct job *j, int64_t channel)
{
	return channel < j->odd ? channel : channel + (j->width - j->channels);
}

// The minimum; NaN if either is NaN.
static inline double min(double a, double b)
{
	return isnan(a) || a < b ? a : b;
}

// VD floats as doubles
static inline vd widen_f32(const float *p)
{
#if defined __AVX512F__
	return (vd)_mm512_cvtps_pd(_mm256_loadu_ps(p));
#elif defined __AVX2__
	return (vd)_mm256_cvtps_pd(_mm_loadu_ps(p));
#else
	typedef float half __attribute__((vector_size(VD * 4)));
	half h;
	memcpy(&h, p, sizeof h);
	return __builtin_convertvector(h, vd);
#endif
}

typedef int64_t vl __attribute__((vector_size(VD * 8)));

static inline vd vd_min(vd a, vd b)
{
	const vl less = a < b;
#ifdef YK_SVE
	return yk_sve_select_f64(less, a, b);
#else
	return (vd)((less & (vl)a) | (~less & (vl)b));
#endif
}

static inline vd vd_max(vd a, vd b)
{
	return -vd_min(-a, -b);
}

// Bytes of the group's next chunk, to be prefetched; 0 if its rows are not contiguous.
static int64_t next_bytes(const struct part *p)
{
	const struct job *j = p->job;
	const int64_t rows = j->rows - p->next < j->each ? j->rows - p->next : j->each;
	return j->cs != 1 || j->rs > 2 * j->channels || rows <= 0 ? 0 : rows * j->rs * j->size;
}

// Adds a tile to the group's products: n rows from slot s (channel i0) on, all columns from `first`
// on.
static inline void add_tile(const struct part *p, const double *tile, int64_t s, int64_t i0, int n,
			    int64_t first)
{
	const struct job *j = p->job;
	for (int i = 0; i < n; i++) {
		const vd s1 = vd_splat(-p->sum[s + i] / p->weight),
			 delta = vd_splat(p->delta[s + i] * p->factor);
		const double *from = tile + i * j->apart;
		double *to = p->group->square + (i0 + i) * j->line;
		for (int64_t at = first; at < j->width; at += VD) {
			const vd off = vd_fma(s1, vd_load(p->sum + at), vd_load(from + at - first));
			vd_store(to + at,
				 vd_load(to + at) + vd_fma(delta, vd_load(p->delta + at), off));
		}
	}
}

// Adds the products of the chunk's channels above the diagonal to the group's. Tiles do not cross
// units. Each tile prefetches a share of the next chunk proportional to its work.
static void products(const struct part *p, const double *d, const double *e, double *tile)
{
	const struct job *j = p->job;
	const int64_t gap = j->width - j->channels, units = j->width / VD;
	// in vectors
	const int64_t work = (j->odd * units + VD * units * (units - 1) / 2) * p->rows;
	const int64_t max = ISA(yk_gemm_f64_rows), bytes = next_bytes(p);
	const char *next = j->x + (bytes ? p->next * j->rs * j->size : 0);
	for (int64_t s = 0, n, done = 0; s < j->width; s = s + n == j->odd ? VD : s + n) {
		const int64_t first = s / VD * VD, end = s < j->odd ? j->odd : first + VD;
		n = end - s < max ? end - s : max;
		for (int64_t r = 0, deep; r < p->rows; r += deep) {
			deep = p->rows - r < FOLD ? p->rows - r : FOLD;
			const int64_t from = bytes * done / work;
			done += n * (j->width - first) / VD * deep;
			ISA(yk_gemm_f64_across)
			((int)n, j->width - first, deep, e + r * j->apart + s, j->apart,
			 d + r * j->apart + first, j->apart, tile, j->apart, r > 0, next + from,
			 bytes * done / work - from);
		}
		add_tile(p, tile, s, s < j->odd ? s : s - gap, (int)n, first);
	}
}

#define T float
#define LOAD widen_f32
#define NAME(what) what##_f32
#include "kern_moments.h"
#undef T
#undef LOAD
#undef NAME
#define T double
#define LOAD vd_load
#define NAME(what) what##_f64
#include "kern_moments.h"

static int64_t whole(int64_t n)
{
	return (n + VF - 1) / VF * VF;
}

// Doubles of memory per group.
static uint64_t group_doubles(const struct job *j)
{
	return (uint64_t)(3 * whole(j->channels) +
			  (j->diagonal ? whole(j->channels) : j->channels * j->line));
}

// Selects the rows with nonzero weight and sums their weights.
static void choose(const struct job *j, struct part *p, int64_t from, int64_t to, bool wide)
{
	p->rows = 0;
	p->weight = 0;
	p->weighed = false;
	for (int64_t r = from; r < to; r++) {
		const double w = !j->w ? 1 :
				 wide  ? ((const double *)(const void *)j->w)[r * j->ws] :
					 ((const float *)(const void *)j->w)[r * j->ws];
		if (w == 0)
			continue;
		p->row[p->rows++] = r;
		p->weight += w;
		p->weighed |= w != 1;
	}
}

static void sum_group(struct job *j, int64_t index, bool wide,
		      void (*item)(struct part *, double *))
{
	const int64_t first = index * j->items / j->groups,
		      last = (index + 1) * j->items / j->groups;
	const int64_t c = whole(j->channels);
	const uint64_t panels =
		(uint64_t)(j->diagonal ? 0 : (2 * j->each + TALL) * j->apart) * sizeof(double);
	char *at = yk_team_scratch((uint64_t)(7 * c + j->each) * 8 + panels);
	struct part p = { .job = j, .group = &j->group[index] };
	struct group *g = p.group;
	if (!at) {
		atomic_store(&j->no_memory, true);
		return;
	}
	p.mean = (double *)(void *)at;
	p.sum = p.mean + c;
	p.delta = p.sum + c;
	p.squares = p.delta + c;
	p.shift = p.squares + c;
	p.low = p.squares + 2 * c;
	p.high = p.squares + 3 * c;
	at += 7 * c * 8;
	p.row = (int64_t *)(void *)at;
	at += j->each * 8;
	g->weight = 0;
	for (int64_t i = 0; i < j->width; i++) {
		g->mean[i] = 0;
		g->low[i] = INFINITY;
		g->high[i] = -INFINITY;
	}
	memset(g->square, 0, (size_t)(j->diagonal ? c : j->channels * j->line) * sizeof *g->square);
	for (int64_t k = first; k < last; k++) {
		const int64_t end = (k + 1) * j->each < j->rows ? (k + 1) * j->each : j->rows;
		choose(j, &p, k * j->each, end, wide);
		p.next = k + 1 < last ? end : j->rows;
		if (p.rows)
			item(&p, (double *)(void *)at);
	}
}

static void sum_f32(struct job *j, int64_t index)
{
	sum_group(j, index, false, item_f32);
}

static void sum_f64(struct job *j, int64_t index)
{
	sum_group(j, index, true, item_f64);
}

static void work(void *arg, int64_t index)
{
	struct job *j = arg;
	j->sum(j, index);
}

// Merges group b into a.
static void join(const struct job *j, struct group *a, const struct group *b)
{
	const double n = a->weight, m = b->weight, f = n * m / (n + m);
	if (m == 0)
		return;
	for (int64_t i = 0; i < j->channels; i++) {
		const int64_t s = slot(j, i);
		const double delta = b->mean[s] - a->mean[s];
		if (j->diagonal)
			a->square[s] += b->square[s] + (n == 0 ? 0 : delta * delta * f);
		for (int64_t k = s; k < j->width && !j->diagonal; k++)
			a->square[i * j->line + k] +=
				b->square[i * j->line + k] +
				(n == 0 ? 0 : delta * (b->mean[k] - a->mean[k]) * f);
	}
	for (int64_t i = 0; i < j->width; i++) {
		a->mean[i] = n == 0 ? b->mean[i] :
				      a->mean[i] + (b->mean[i] - a->mean[i]) * (m / (n + m));
		a->low[i] = min(a->low[i], b->low[i]);
		a->high[i] = -min(-a->high[i], -b->high[i]);
	}
	a->weight = n + m;
}

static bool setup(const struct yoke_op *op, struct job *j)
{
	const struct yoke_view *x = &op->in[0], *w = &op->in[1];
	*j = (struct job){ .rows = x->dims[0],
			   .channels = x->dims[1],
			   .rs = x->strides[0],
			   .cs = x->strides[1],
			   .ws = w->strides[0],
			   .diagonal = op->attr[0].i };
	j->size = x->dtype == yoke_f64 ? sizeof(double) : sizeof(float);
	j->extent = (j->rows - 1) * j->rs + (j->channels - 1) * j->cs + 1;
	j->width = (j->channels + VD - 1) / VD * VD;
	j->odd = j->channels - (j->channels - 1) / VD * VD;
	j->line = whole(j->channels);
	j->apart = (j->width / VD | 1) * VD;
	j->sum = x->dtype == yoke_f64 ? sum_f64 : sum_f32;
	j->each = CHUNK_ELEMENTS / (j->channels ? j->channels : 1) / FOLD * FOLD;
	j->each = j->each < FOLD ? FOLD : j->each > CHUNK_ROWS ? CHUNK_ROWS : j->each;
	j->items = (j->rows + j->each - 1) / j->each;
	j->groups = GROUPS;
	while (j->groups > 1 &&
	       (j->groups * WORTH > j->items || (uint64_t)j->groups * group_doubles(j) > MEMORY))
		j->groups /= 2;
	return x->kind == YOKE_VIEW_BUFFER && (x->dtype == yoke_f32 || x->dtype == yoke_f64) &&
	       (w->kind == YOKE_VIEW_NONE || w->kind == YOKE_VIEW_BUFFER);
}

static uint64_t can(const struct yoke_op *op)
{
	struct job j;
	return setup(op, &j);
}

static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	struct job j;
	(void)impl;
	setup(op, &j);
	return (uint64_t)j.groups * group_doubles(&j) * sizeof(double);
}

static double *result(const struct yoke_op *op, int k)
{
	return op->out[k].kind == YOKE_VIEW_NONE ? NULL : yk_ptr(&op->out[k]);
}

static void store(const struct yoke_op *op, const struct job *j)
{
	const struct group *g = &j->group[0];
	const struct yoke_view *m2 = &op->out[2];
	double *n = result(op, 0), *mean = result(op, 1), *square = result(op, 2);
	struct matrix extreme[2];
	for (int k = 0; k < 2; k++)
		if (op->out[3 + k].kind != YOKE_VIEW_NONE)
			extreme[k] = matrix_of(&op->out[3 + k], 1, 0);
	if (n)
		*n = g->weight;
	for (int64_t i = 0; i < j->channels; i++) {
		const int64_t s = slot(j, i);
		if (mean)
			mean[i * op->out[1].strides[0]] = g->mean[s];
		for (int k = 0; k < 2; k++)
			if (op->out[3 + k].kind != YOKE_VIEW_NONE)
				matrix_put(&extreme[k], 0, i, k ? g->high[s] : g->low[s]);
		if (square && j->diagonal)
			square[i * m2->strides[0]] = g->square[s];
		for (int64_t k = 0; square && !j->diagonal && k < j->channels; k++)
			square[i * m2->strides[0] + k * m2->strides[1]] =
				g->square[i < k ? i * j->line + slot(j, k) : k * j->line + s];
	}
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct job j;
	(void)impl, (void)prepared;
	setup(op, &j);
	if (j.channels) {
		j.x = yk_ptr(&op->in[0]);
		j.w = op->in[1].kind == YOKE_VIEW_NONE ? NULL : yk_ptr(&op->in[1]);
		j.memory = yk_ptr(&op->workspace);
	}
	atomic_init(&j.no_memory, false);
	for (int64_t k = 0; k < j.groups; k++) {
		double *at = j.channels ? j.memory + (uint64_t)k * group_doubles(&j) : NULL;
		const int64_t c = whole(j.channels);
		j.group[k] = (struct group){
			.mean = at, .low = at + c, .high = at + 2 * c, .square = at + 3 * c
		};
	}
	if (j.channels)
		yk_team_run(j.groups, work, &j);
	if (atomic_load(&j.no_memory))
		return yk_cpu_fail(YOKE_ENOMEM, "moments: no memory for %lld channels",
				   (long long)j.channels);
	for (int64_t k = 1; k < j.groups && j.channels; k++)
		join(&j, &j.group[0], &j.group[k]);
	store(op, &j);
	return 0;
}

YK_KERNEL(moments,
	  MOMENTS) = { .can = can, .workspace = workspace, .run = run, .impl = { "panels" } };
