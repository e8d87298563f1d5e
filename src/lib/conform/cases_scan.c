// SPDX-License-Identifier: Apache-2.0
// Cases of SCAN_MAP: recurrences from practice, and random programs.
#include "config.h"

#include "conform/draw_program.h"
#include "conform/program.h"
#include "kernel/mapform.h"

static int add(struct yoke_map *m, int op, int dtype, int a, int b)
{
	m->insn[m->ninsn] =
		(struct yoke_insn){ (uint16_t)op, (uint8_t)dtype, 0, (uint16_t)a, (uint16_t)b, 0 };
	return m->ninsn++;
}

// s' = a s + x, y = s' - x
static int linear(struct yoke_map *m, int dtype)
{
	int a = yk_program_input(m, dtype), x = yk_program_input(m, dtype),
	    s = yk_program_input(m, dtype);
	int next = add(m, YOKE_MAP_ADD, dtype, add(m, YOKE_MAP_MUL, dtype, a, s), x);
	m->out[m->nout++] = (uint16_t)add(m, YOKE_MAP_SUB, dtype, next, x);
	m->out[m->nout++] = (uint16_t)next;
	return 1;
}

// Forward elimination of a tridiagonal system with b = 1 + |.|: c' = c / (b - a c'), d' = (d - a
// d') / (b - a c').
static int tridiagonal(struct yoke_map *m, int dtype)
{
	int a = yk_program_input(m, dtype), b = yk_program_input(m, dtype),
	    c = yk_program_input(m, dtype), d = yk_program_input(m, dtype),
	    c1 = yk_program_input(m, dtype), d1 = yk_program_input(m, dtype);
	m->konst[m->nconst] = yk_num_bits((struct yk_num){ 8, 8 }, dtype);
	int eight = add(m, YOKE_MAP_CONST, dtype, m->nconst++, 0);
	b = add(m, YOKE_MAP_ADD, dtype, add(m, YOKE_MAP_ABS, dtype, b, 0), eight);
	int under = add(m, YOKE_MAP_SUB, dtype, b, add(m, YOKE_MAP_MUL, dtype, a, c1));
	int over = add(m, YOKE_MAP_SUB, dtype, d, add(m, YOKE_MAP_MUL, dtype, a, d1));
	int next[2] = { add(m, YOKE_MAP_DIV, dtype, c, under),
			add(m, YOKE_MAP_DIV, dtype, over, under) };
	for (int k = 0; k < 4; k++) // the operands as elements, then as carried values
		m->out[m->nout++] = (uint16_t)next[k % 2];
	return 2;
}

// Two carried values that swap, and one that does not change; an input is passed through.
static int swap(struct yoke_map *m, int dtype)
{
	int x = yk_program_input(m, dtype), s[3];
	for (int k = 0; k < 3; k++)
		s[k] = yk_program_input(m, dtype);
	m->out[m->nout++] = (uint16_t)s[0];
	m->out[m->nout++] = (uint16_t)x;
	m->out[m->nout++] = (uint16_t)x;
	m->out[m->nout++] = (uint16_t)s[0];
	m->out[m->nout++] = (uint16_t)s[2];
	return 3;
}

// A random program whose carried values are cast to the required dtype.
static int any(struct yk_case *c, int dtype)
{
	struct yoke_map *m = &c->map;
	const int other = yk_draw_one_in(c, 2) ? dtype :
			  yk_draw_one_in(c, 2) ? yoke_bool :
						 yoke_i32;
	const int carried = (int)yk_draw_int(c, 0, 2), made = (int)yk_draw_int(c, 1, 2);
	const int dtypes[] = { dtype, other, dtype, other };

	do
		yk_draw_mixture(c, 2 + carried, dtypes, (int)yk_draw_int(c, 2, 9), made);
	while (yk_map_indexed(m));
	for (int k = 0; k < carried; k++) {
		int last = m->ninsn - 1 - k;
		m->out[m->nout++] =
			(uint16_t)(m->insn[last].dtype == dtypes[2 + k] ?
					   last :
					   add(m, YOKE_MAP_CAST, dtypes[2 + k], last, 0));
	}
	return carried;
}

static int draw(struct yk_case *c, int dtype)
{
	struct yoke_map *m = &c->map;

	*m = (struct yoke_map){ .size = sizeof *m };
	switch (c->number % 4) {
	case 0: return dtype == yoke_bool ? swap(m, dtype) : linear(m, dtype);
	case 1: return yk_num_real(dtype) ? tridiagonal(m, dtype) : any(c, dtype);
	case 2: return swap(m, dtype);
	}
	return any(c, dtype);
}

bool yk_make_scan_map(struct yk_case *c, int dtype)
{
	int64_t dims[4], first[4], inner = 1, lines = 1;
	struct yk_expected in[YOKE_MAP_MAX_INPUTS], reg[YOKE_MAP_MAX_INSNS];
	const bool back = yk_draw_one_in(c, 2);

	yk_case_op(c, YOKE_OP_SCAN_MAP);
	int rank = (int)yk_draw_int(c, 1, 4), axis = (int)yk_draw_int(c, 0, rank - 1);
	for (int d = 0; d < rank; d++)
		dims[d] = first[d] = yk_draw_size(c, d == axis ? 40 :
						     rank == 2 ? 520 :
						     rank == 3 ? 40 :
								 9);
	if (!yk_case_plain(c) && yk_draw_one_in(c, 16))
		dims[yk_draw_int(c, 0, 1) ? axis : 0] = 0;
	for (int d = 0; d < rank; d++) {
		first[d] = d == axis ? 1 : dims[d];
		lines *= first[d];
		inner *= d > axis ? dims[d] : 1;
	}
	const int carried = draw(c, dtype);
	const struct yoke_map *m = &c->map;
	c->op.map = m;
	c->op.rank = (uint8_t)rank;
	for (int d = 0; d < rank; d++)
		c->op.dims[d] = dims[d];
	c->op.nattr = 3;
	c->op.attr[0].i = axis;
	c->op.attr[1].i = back;
	c->op.attr[2].i = carried;
	const int elements = m->nout - carried, inputs = m->nin - carried;
	for (int k = 0; k < m->nout; k++)
		yk_case_out(c, m->insn[m->out[k]].dtype, rank, k < elements ? dims : first, YK_ANY);
	for (int k = 0; k < m->nin; k++)
		yk_case_in(c, m->insn[k].dtype, rank, k < inputs ? dims : first,
			   YK_ANY | YK_REPEATED | YK_OR_SCALAR,
			   m->insn[k].dtype == yoke_u8 || m->insn[k].dtype == yoke_bool ? 0 : -1,
			   1);
	for (int64_t line = 0; line < lines; line++) {
		struct yk_expected s[YOKE_MAP_MAX_INPUTS];
		for (int k = 0; k < carried; k++) {
			struct yk_num x = c->array[m->nout + inputs + k].num[line];
			s[k] = (struct yk_expected){ .f = x.f, .i = x.i };
		}
		for (int64_t step = 0; step < dims[axis]; step++) {
			int64_t along = back ? dims[axis] - 1 - step : step;
			int64_t at = (line / inner * dims[axis] + along) * inner + line % inner;
			for (int k = 0; k < m->nin; k++) {
				struct yk_num x = k < inputs ? c->array[m->nout + k].num[at] :
							       (struct yk_num){ 0, 0 };
				in[k] = k < inputs ? (struct yk_expected){ .f = x.f, .i = x.i } :
						     s[k - inputs];
			}
			yk_program_at(m, in, 0, c->flushes, reg);
			for (int k = 0; k < elements; k++)
				c->array[k].want[at] = reg[m->out[k]];
			for (int k = 0; k < carried; k++)
				s[k] = reg[m->out[elements + k]];
		}
		for (int k = 0; k < carried; k++)
			c->array[elements + k].want[line] = s[k];
	}
	if (yk_draw_one_in(c, 3))
		yk_case_alias(c, 0, m->nout, 0);
	if (!yk_case_plain(c) && m->nout > 1 && yk_draw_one_in(c, 4)) // one result is not requested
		c->view[yk_draw_int(c, 1, m->nout - 1)] =
			(struct yoke_view){ .kind = YOKE_VIEW_NONE };
	yk_case_note(c, "axis %d%s, %d instructions, %d carried", axis, back ? " from the end" : "",
		     m->ninsn, carried);
	return true;
}
