// SPDX-License-Identifier: Apache-2.0
// Cases of MAP and REDUCE.
#include "config.h"

#include <math.h>

#include "conform/draw_program.h"
#include "conform/program.h"

// Dims of an iteration space of at most `limit` elements; returns the rank.
static int draw_dims(struct yk_case *c, int64_t *dims, int64_t limit)
{
	int rank = (int)yk_draw_int(c, yk_case_plain(c), yk_draw_one_in(c, 4) ? 6 : 3);
	int64_t left = limit;
	for (int d = rank - 1; d >= 0; d--) {
		dims[d] = yk_draw_size(c, left);
		left /= dims[d];
	}
	if (rank && !yk_case_plain(c) && yk_draw_one_in(c, 24))
		dims[yk_draw_int(c, 0, rank - 1)] = 0;
	return rank;
}

static void set_space(struct yk_case *c, int rank, const int64_t *dims)
{
	c->op.rank = (uint8_t)rank;
	for (int i = 0; i < rank; i++)
		c->op.dims[i] = dims[i];
	c->op.map = &c->map;
}

// Operands of the fused program, from view `first` on, at an element.
static void inputs_at(const struct yk_case *c, uint32_t first, int64_t i,
		      struct yk_expected *in)
{
	for (uint32_t k = 0; k < c->map.nin; k++) {
		struct yk_num x = c->array[first + k].num[i];
		in[k] = (struct yk_expected){ .f = x.f, .i = x.i };
	}
}

static void add_inputs(struct yk_case *c, int rank, const int64_t *dims, bool tame)
{
	for (int k = 0; k < c->map.nin; k++) {
		int dtype = c->map.insn[k].dtype,
		    layout = YK_ANY | YK_REPEATED | YK_OR_SCALAR;
		if (!tame && !yk_draw_one_in(c, 4))
			yk_case_in_by(c, dtype, rank, dims, YK_ANY, yk_draw_wild);
		else if (!yk_draw_one_in(c, 4))
			yk_case_in_by(c, dtype, rank, dims, YK_ANY, yk_draw_tame);
		else
			yk_case_in(c, dtype, rank, dims, layout, -8, 8);
	}
}

bool yk_make_map(struct yk_case *c, int dtype)
{
	int64_t dims[YOKE_MAX_RANK];
	struct yk_expected in[YOKE_MAP_MAX_INPUTS], reg[YOKE_MAP_MAX_INSNS];
	bool each = c->number % 2 == 0, tame = true;

	yk_case_op(c, YOKE_OP_MAP);
	int rank = draw_dims(c, dims, each ? 3000 : 10000);
	if (c->number % 12 == 3) {
		yk_draw_one(c, dtype, c->number / 12);
	} else if (each) {
		c->number /= 2; // cycles through all instructions
		tame = yk_draw_each(c, dtype);
		c->number *= 2;
	} else {
		int other = yk_draw_one_in(c, 2) ? yoke_f32 :
			    yk_draw_one_in(c, 2) ? yoke_i64 :
						   dtype;
		const bool many = c->number % 12 == 9; // the max number of operands
		int dtypes[YOKE_MAP_MAX_INPUTS];
		for (int k = 0; k < YOKE_MAP_MAX_INPUTS; k++)
			dtypes[k] = k == 2 ? other : dtype;
		const int nout = many ? YOKE_MAP_MAX_OUTPUTS : (int)yk_draw_int(c, 1, 3);
		yk_draw_mixture(c, many ? YOKE_MAP_MAX_INPUTS : (int)yk_draw_int(c, 1, 3), dtypes,
				(int)yk_draw_int(c, nout, yk_draw_one_in(c, 4) ? 40 : 8), nout);
	}
	set_space(c, rank, dims);
	const struct yoke_map *m = &c->map;
	for (int k = 0; k < m->nout; k++)
		yk_case_out(c, m->insn[m->out[k]].dtype, rank, dims, YK_ANY);
	add_inputs(c, rank, dims, tame);
	for (int64_t i = 0, n = yk_count_of(rank, dims); i < n; i++) {
		inputs_at(c, m->nout, i, in);
		yk_program_at(m, in, i, c->flushes, reg);
		for (int k = 0; k < m->nout; k++)
			c->array[k].want[i] = reg[m->out[k]];
	}
	if (yk_draw_one_in(c, 4))
		yk_case_alias(c, 0, m->nout, 0);
	yk_case_note(c, "%d instructions", m->ninsn);
	return true;
}

// ---- reductions ----

// Whether x replaces the best value so far: NaN wins over all, the first of equal values stays.
static bool wins(const struct yk_fold *s, double x, bool max)
{
	const double best = (double)s->f;
	if (!s->set || isnan(best))
		return !s->set;
	return isnan(x) || (max ? x > best : x < best);
}

static bool wins_int(const struct yk_fold *s, int64_t x, bool max)
{
	return !s->set || (max ? x > s->i : x < s->i);
}

void yk_fold(struct yk_fold *s, int kind, bool real, const struct yk_expected *x)
{
	bool max = kind == YOKE_REDUCE_MAX || kind == YOKE_REDUCE_ARGMAX;
	s->n++;
	s->loose |= x->loose;
	s->abs += fabs(x->f);
	s->tol += x->tol;
	s->max = fmax(s->max, x->tol);
	if (kind == YOKE_REDUCE_SUM) {
		s->f += x->f;
		s->i = (int64_t)((uint64_t)s->i + (uint64_t)x->i);
	} else if (kind == YOKE_REDUCE_PROD) {
		s->f = s->n == 1 ? x->f : s->f * x->f;
		s->i = s->n == 1 ? x->i : (int64_t)((uint64_t)s->i * (uint64_t)x->i);
	} else if (real ? wins(s, x->f, max) : wins_int(s, x->i, max)) {
		s->f = x->f;
		s->i = x->i;
		s->at = s->n - 1;
		s->set = true;
	}
}

void yk_fold_expect(struct yk_expected *w, const struct yk_fold *s, int kind, int dtype,
		   bool repeated)
{
	const double unit = 2 * yk_num_unit(yk_num_acc(dtype)), n = (double)s->n,
		     f = (double)s->f;
	const double roundings = 4 + (repeated ? n : sqrt(n));
	if (kind >= YOKE_REDUCE_ARGMAX)
		*w = (struct yk_expected){ .i = s->at, .loose = s->loose };
	else if (!yk_num_real(dtype))
		*w = (struct yk_expected){ .i = yk_num_wrap((uint64_t)s->i, dtype),
				       .loose = s->loose };
	else if (kind == YOKE_REDUCE_SUM)
		yk_expect_real(w, dtype, f, s->tol + roundings * unit * s->abs);
	else if (kind == YOKE_REDUCE_PROD)
		yk_expect_real(w, dtype, f, (4 + n) * unit * fabs(f));
	else
		*w = (struct yk_expected){ .f = f, .tol = s->max };
	w->loose |= s->loose;
}

static struct yk_num near_one(struct yk_case *c, int dtype, int64_t index)
{
	(void)index;
	if (!yk_num_real(dtype))
		return (struct yk_num){ .i = yk_draw_one_in(c, 2) ? 1 :
					     dtype == yoke_u8     ? 3 :
								    -1 };
	return (struct yk_num){ .f = yk_num_round(yk_draw_real(c, 0.9, 1.1), dtype) };
}

static int draw_kind(struct yk_case *c, int dtype)
{
	if (dtype == yoke_bool)
		return c->number % 2 ? YOKE_REDUCE_MAX : YOKE_REDUCE_MIN;
	return YOKE_REDUCE_SUM + (int)(c->number / 2 % 6);
}

bool yk_make_reduce(struct yk_case *c, int dtype)
{
	int64_t dims[YOKE_MAX_RANK], to[YOKE_MAX_RANK], stride[YOKE_MAX_RANK] = { 0 },
							n = 1;
	struct yk_expected in[YOKE_MAP_MAX_INPUTS], reg[YOKE_MAP_MAX_INSNS];
	int kind = draw_kind(c, dtype), rank = 0;
	bool arg = kind >= YOKE_REDUCE_ARGMAX, prod = kind == YOKE_REDUCE_PROD;
	bool chooses = kind != YOKE_REDUCE_SUM && !prod;

	yk_case_op(c, YOKE_OP_REDUCE);
	while (!rank)
		rank = draw_dims(c, dims,
				 prod                 ? 300 :
				 yk_draw_one_in(c, 4) ? 200000 :
							20000);
	int64_t mask = arg ? 1 << yk_draw_int(c, 0, rank - 1) :
			     yk_draw_int(c, 1, (1 << rank) - 1);
	// few results, each over more elements than a kernel reads at once
	if (c->number % 24 == 13 || c->number % 24 == 9) {
		rank = 2, mask = 2;
		dims[0] = yk_draw_int(c, 1, 2);
		dims[1] = yk_draw_int(c, 140000, 200000);
	}
	for (int d = rank - 1; d >= 0; d--) {
		if (chooses && mask >> d & 1 && !dims[d])
			dims[d] = 1; // min and max need at least one element
		to[d] = mask >> d & 1 ? 1 : dims[d];
		stride[d] = mask >> d & 1 ? 0 : n;
		n *= to[d];
	}
	yk_draw_front(c, dtype, prod);
	set_space(c, rank, dims);
	c->op.nattr = 2;
	c->op.attr[0].i = kind;
	c->op.attr[1].i = mask;
	yk_case_out(c, arg ? yoke_i64 : dtype, rank, to, YK_ANY);
	for (int k = 0; k < c->map.nin; k++) {
		int type = c->map.insn[k].dtype;
		if (prod)
			yk_case_in_by(c, type, rank, dims, YK_ANY, near_one);
		else if (chooses && yk_draw_one_in(c, 2))
			yk_case_in_by(c, type, rank, dims, YK_ANY, yk_draw_wild);
		else
			yk_case_in(c, type, rank, dims, YK_ANY | YK_REPEATED,
				   type == yoke_u8 ? 0 : -3, 5);
	}
	bool repeated = false;
	for (uint32_t k = 1; k < c->views; k++)
		for (int d = 0; d < rank; d++)
			repeated |= c->view[k].strides[d] == 0;
	struct yk_fold *sum = yk_case_alloc(c, (uint64_t)n * sizeof *sum);
	for (int64_t j = 0; prod && j < n; j++)
		sum[j].f = 1, sum[j].i = 1; // empty product
	for (int64_t i = 0, all = yk_count_of(rank, dims); i < all; i++) {
		int64_t at = 0, rest = i;
		for (int d = rank - 1; d >= 0; d--) {
			at += rest % dims[d] * stride[d];
			rest /= dims[d];
		}
		inputs_at(c, 1, i, in);
		yk_program_at(&c->map, in, i, c->flushes, reg);
		yk_fold(&sum[at], kind, yk_num_real(dtype), &reg[c->map.out[0]]);
	}
	for (int64_t j = 0; j < n; j++)
		yk_fold_expect(&c->array[0].want[j], &sum[j], kind, dtype, repeated);
	yk_case_note(c, "kind %d axes %#llx", kind, (unsigned long long)mask);
	return true;
}
