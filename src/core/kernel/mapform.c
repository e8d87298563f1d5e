// SPDX-License-Identifier: Apache-2.0
// Analyzes a map program in its op: checks it, merges axes and classifies each operand's strides.
#include "config.h"

#include <string.h>

#include "kernel/mapform.h"

// ---- the program ----

// The view that is input k of the program: NULL for a contraction's product.
static const struct yoke_view *input_view(const struct yoke_op *op, unsigned k)
{
	if (op->code != YOKE_OP_CONTRACT)
		return &op->in[k];
	return k ? &op->in[k + 1] : NULL;
}

static unsigned input_count(const struct yoke_op *op)
{
	return op->code != YOKE_OP_CONTRACT ? op->nin : op->nin - 1;
}

// In a recurrence: is output or input k a carried value?  These come last.
static bool is_carried(const struct yoke_op *op, unsigned k, unsigned count)
{
	return op->code == YOKE_OP_SCAN_MAP && k + (uint64_t)op->attr[2].i >= count;
}

static int input_dtype(const struct yoke_op *op, unsigned k)
{
	const struct yoke_view *v = input_view(op, k);
	return v ? v->dtype : (int)op->attr[0].i;
}

static bool earlier(const struct yoke_map *m, unsigned k, unsigned operand, int dtype)
{
	return operand < k && m->insn[operand].dtype == dtype;
}

// Can the generator write instruction k, and have its operands the right dtypes?
static int check_insn(const struct yoke_op *op, unsigned k)
{
	const struct yoke_map *m = op->map;
	const struct yoke_insn *n = &m->insn[k];
	int d = n->dtype;
	bool real = yk_map_real(d), integer = yk_map_integer(d), boolean = d == yoke_bool;
	bool good, fits = true;

	if (!real && !integer && !boolean)
		return YOKE_EUNSUPPORTED;
	switch (n->op) {
	case YOKE_MAP_INPUT:
		good = n->a < m->nin && input_dtype(op, n->a) == d;
		break;
	case YOKE_MAP_CONST:
		good = n->a < m->nconst;
		break;
	case YOKE_MAP_INDEX:
		good = d == yoke_i64;
		fits = op->code != YOKE_OP_SCAN_MAP;
		break;
	case YOKE_MAP_RAND:
		good = d == yoke_i32 && earlier(m, k, n->a, yoke_i64) &&
		       earlier(m, k, n->b, yoke_i64) && earlier(m, k, n->c, yoke_i64);
		fits = op->code != YOKE_OP_SCAN_MAP;
		break;
	case YOKE_MAP_UNIFORM:
		good = real && earlier(m, k, n->a, yoke_i32);
		break;
	case YOKE_MAP_NORMAL:
		good = real && earlier(m, k, n->a, d) && earlier(m, k, n->b, d);
		break;
	case YOKE_MAP_MIN: case YOKE_MAP_MAX:
		good = earlier(m, k, n->a, d) && earlier(m, k, n->b, d);
		break;
	case YOKE_MAP_ADD: case YOKE_MAP_SUB: case YOKE_MAP_MUL: case YOKE_MAP_DIV:
	case YOKE_MAP_POW: case YOKE_MAP_MOD:
		good = earlier(m, k, n->a, d) && earlier(m, k, n->b, d);
		fits = !boolean;
		break;
	case YOKE_MAP_AND: case YOKE_MAP_OR: case YOKE_MAP_XOR:
		good = earlier(m, k, n->a, d) && earlier(m, k, n->b, d);
		fits = !real;
		break;
	case YOKE_MAP_SHL: case YOKE_MAP_SHR:
		good = earlier(m, k, n->a, d) && earlier(m, k, n->b, d);
		fits = integer;
		break;
	case YOKE_MAP_NEG: case YOKE_MAP_ABS: case YOKE_MAP_SIGN: case YOKE_MAP_FLOOR:
	case YOKE_MAP_ROUND: case YOKE_MAP_CEIL: case YOKE_MAP_SQUARE:
		good = earlier(m, k, n->a, d);
		fits = !boolean;
		break;
	case YOKE_MAP_EXP: case YOKE_MAP_LOG: case YOKE_MAP_LOG1P: case YOKE_MAP_EXPM1:
	case YOKE_MAP_SQRT: case YOKE_MAP_RSQRT: case YOKE_MAP_RECIP: case YOKE_MAP_SIN:
	case YOKE_MAP_COS: case YOKE_MAP_TANH: case YOKE_MAP_SIGMOID: case YOKE_MAP_ERF:
		good = earlier(m, k, n->a, d);
		fits = real;
		break;
	case YOKE_MAP_EQ: case YOKE_MAP_NE: case YOKE_MAP_LT: case YOKE_MAP_LE:
	case YOKE_MAP_GT: case YOKE_MAP_GE:
		good = boolean && n->a < k && earlier(m, k, n->b, m->insn[n->a].dtype);
		break;
	case YOKE_MAP_NOT:
		good = earlier(m, k, n->a, d);
		fits = !real;
		break;
	case YOKE_MAP_ISFINITE:
		good = boolean && n->a < k;
		break;
	case YOKE_MAP_SELECT:
		good = earlier(m, k, n->a, yoke_bool) && earlier(m, k, n->b, d) &&
		       earlier(m, k, n->c, d);
		break;
	case YOKE_MAP_CAST:
		good = n->a < k;
		break;
	default:
		return YOKE_EUNSUPPORTED;
	}
	return !good ? YOKE_EINVAL : fits ? 0 : YOKE_EUNSUPPORTED;
}

// A reduction's result has its own dtype, which the backend handles.
static bool output_fits(const struct yoke_op *op, unsigned k)
{
	const struct yoke_map *m = op->map;
	if (m->out[k] >= m->ninsn)
		return false;
	const int dtype = m->insn[m->out[k]].dtype;
	if (is_carried(op, k, op->nout) && op->in[k + op->nin - op->nout].dtype != dtype)
		return false;
	return op->code == YOKE_OP_REDUCE || dtype == op->out[k].dtype ||
	       (op->code == YOKE_OP_SCAN_MAP && op->out[k].kind == YOKE_VIEW_NONE);
}

static int check_program(const struct yoke_op *op, uint32_t *dtypes)
{
	const struct yoke_map *m = op->map;
	const bool contract = op->code == YOKE_OP_CONTRACT;

	if (contract && (op->nin < 2 || op->nattr < 1 || op->attr[0].i < yoke_f32 ||
			 op->attr[0].i > yoke_bool))
		return YOKE_EINVAL;
	if (m->ninsn < 1 || m->ninsn > YOKE_MAP_MAX_INSNS ||
	    m->nconst > YOKE_MAP_MAX_CONSTS || op->nout < 1 ||
	    op->nout > YOKE_MAP_MAX_OUTPUTS || m->nin > YOKE_MAP_MAX_INPUTS ||
	    m->nout != op->nout || m->nin != input_count(op) ||
	    (op->code == YOKE_OP_REDUCE && op->nout != 1))
		return YOKE_EINVAL;
	if (op->code == YOKE_OP_SCAN_MAP && (op->nattr < 3 || op->attr[2].i < 0 ||
					     op->attr[2].i > op->nout || op->attr[2].i > op->nin))
		return YOKE_EINVAL;
	*dtypes = 0;
	for (unsigned k = 0; k < m->ninsn; k++) {
		int err = check_insn(op, k);
		if (err)
			return err;
		*dtypes |= 1u << m->insn[k].dtype;
	}
	for (unsigned k = 0; k < m->nout; k++)
		if (!output_fits(op, k))
			return YOKE_EINVAL;
	return 0;
}

// ---- operands ----

// The iteration space; for a contraction, the iteration space of its result.
struct space {
	int rank, split; // axes 0 .. split-1 of perm are the first group
	int perm[YOKE_MAX_RANK];
	const int64_t *dims;
	uint64_t reduced; // mask
};

static int space_of(const struct yoke_op *op, struct space *s)
{
	int64_t count = 1;
	int n = 0;

	s->rank = op->code == YOKE_OP_CONTRACT ? op->out[0].rank : op->rank;
	s->dims = op->code == YOKE_OP_CONTRACT ? op->out[0].dims : op->dims;
	s->reduced = 0;
	s->split = 0;
	if (s->rank > YOKE_MAX_RANK)
		return YOKE_EINVAL;
	for (int i = 0; i < s->rank; i++)
		if (s->dims[i] < 0 || __builtin_mul_overflow(count, s->dims[i], &count))
			return YOKE_EINVAL;
	if (op->code == YOKE_OP_CONTRACT && s->rank < 2)
		return YOKE_EINVAL;
	if (op->code == YOKE_OP_REDUCE) {
		if (op->nattr < 2 || op->attr[1].i < 0 || op->attr[1].i >> s->rank)
			return YOKE_EINVAL;
		s->reduced = (uint64_t)op->attr[1].i;
	}
	if (op->code == YOKE_OP_SCAN_MAP) {
		if (op->attr[0].i < 0 || op->attr[0].i >= s->rank)
			return YOKE_EINVAL;
		s->reduced = (uint64_t)1 << op->attr[0].i;
	}
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < s->rank; i++)
			if ((int)(s->reduced >> i & 1) == pass)
				s->perm[n++] = i;
		if (pass == 0 && (op->code == YOKE_OP_REDUCE || op->code == YOKE_OP_SCAN_MAP))
			s->split = n; // also if all reduced axes had one element and were dropped
	}
	return 0;
}

static bool has_memory(const struct yk_map_operand *o)
{
	return o->class == YK_MAP_STRIDED;
}

// Does operand k have one element along the axes of the second group?
static bool is_still(const struct yoke_op *op, unsigned k)
{
	if (op->code == YOKE_OP_SCAN_MAP)
		return k < op->nout ? is_carried(op, k, op->nout) :
				      is_carried(op, k - op->nout, op->nin);
	return k < op->nout;
}

static int take_operand(const struct yoke_op *op, const struct space *s, unsigned k,
			struct yk_map_operand *to)
{
	const bool output = k < op->nout;
	const struct yoke_view *v = output ? &op->out[k] : input_view(op, k - op->nout);

	to->view = v;
	to->number = (int32_t)(k + (!output && op->code == YOKE_OP_CONTRACT));
	to->class = v ? YK_MAP_VALUE : YK_MAP_PRODUCT;
	to->dtype = v ? v->dtype : (uint8_t)op->attr[0].i;
	if (!v || (v->kind == YOKE_VIEW_SCALAR && !output))
		return 0;
	if (output && v->kind == YOKE_VIEW_NONE && op->code == YOKE_OP_SCAN_MAP) {
		to->class = YK_MAP_ABSENT;
		to->dtype = op->map->insn[op->map->out[k]].dtype;
		return 0;
	}
	if (v->kind != YOKE_VIEW_BUFFER || v->rank != s->rank)
		return YOKE_EINVAL;
	for (int i = 0; i < s->rank; i++)
		if (v->dims[i] != (is_still(op, k) && s->reduced >> i & 1 ? 1 : s->dims[i]))
			return YOKE_EINVAL;
	to->class = YK_MAP_STRIDED;
	return 0;
}

// Stores dims and strides of the axes of perm at index 1 and up; the merged axes later overwrite
// them.
static void take_strides(const struct yoke_op *op, const struct space *s,
			 struct yk_map_form *f)
{
	for (int i = 0; i < s->rank; i++)
		f->dims[i + 1] = s->dims[s->perm[i]];
	for (unsigned k = 0; k < f->noperand; k++)
		for (int i = 0; i < s->rank && has_memory(&f->operand[k]); i++) {
			int axis = s->perm[i];
			bool still = is_still(op, k) && s->reduced >> axis & 1;
			f->operand[k].strides[i + 1] =
				still ? 0 : f->operand[k].view->strides[axis];
		}
	int64_t count = 1;
	for (int axis = s->rank - 1; axis >= 0; axis--) {
		for (int i = 0; i < s->rank; i++)
			if (s->perm[i] == axis)
				f->operand[f->noperand].strides[i + 1] = count;
		count *= s->dims[axis];
	}
}

// Can merged axis `to` and the axis `from` before it be traversed as one axis?
static bool mergeable(const struct yk_map_form *f, int from, int to)
{
	for (unsigned k = 0; k <= f->noperand; k++) {
		const struct yk_map_operand *o = &f->operand[k];
		int64_t outer;
		if (has_memory(o) &&
		    (__builtin_mul_overflow(o->strides[to], f->dims[to], &outer) ||
		     outer != o->strides[from]))
			return false;
	}
	return true;
}

static void move_axis(struct yk_map_form *f, int to, int from)
{
	f->dims[to] = f->dims[from];
	for (unsigned k = 0; k <= f->noperand; k++)
		f->operand[k].strides[to] = f->operand[k].strides[from];
}

// Drops axes of one element among first .. end-1 and merges neighbours, except the axis `apart`;
// stores the result from index `at` on.  Returns the number of axes left, at least one.  The order
// of axes is kept, so the row-major index of each element stays the same.
static int merge(struct yk_map_form *f, int first, int end, int at, int apart)
{
	int n = at;

	for (int axis = first; axis < end; axis++) {
		if (f->dims[axis] == 1 && axis != apart)
			continue;
		// the loop runs forwards: each axis is merged into the one before it
		if (n > at && axis != apart && mergeable(f, n - 1, axis)) {
			int64_t dim = f->dims[n - 1];
			move_axis(f, n - 1, axis);
			f->dims[n - 1] *= dim;
		} else {
			move_axis(f, n++, axis);
		}
	}
	return n - at;
}

static void classify(const struct yk_map_form *f, struct yk_map_operand *o)
{
	bool linear = !f->split, one = true;
	int64_t n = 1;

	for (int i = f->rank - 1; i >= 0; i--) {
		if (f->dims[i] != 1) {
			linear = linear && o->strides[i] == n;
			one = one && o->strides[i] == 0;
		}
		n *= f->dims[i];
		o->step[i] = YK_MAP_ANY;
		if (i == f->rank - 1 || i == f->split - 1)
			o->step[i] = f->dims[i] == 1 || o->strides[i] == 0 ? YK_MAP_STILL :
				     o->strides[i] == 1 ? YK_MAP_UNIT : YK_MAP_ANY;
	}
	o->class = linear ? YK_MAP_LINEAR : one ? YK_MAP_ONE : YK_MAP_STRIDED;
}

// Do all indices fit 31 bits?
static bool is_narrow(const struct yk_map_form *f)
{
	int64_t count = 1;

	for (int i = 0; i < f->rank; i++)
		if (__builtin_mul_overflow(count, f->dims[i], &count) || count > INT32_MAX)
			return false;
	for (unsigned k = 0; k <= f->noperand; k++) {
		int64_t span = 0, reach;
		for (int i = 0; i < f->rank && f->operand[k].class == YK_MAP_STRIDED; i++) {
			int64_t s = f->operand[k].strides[i];
			if (f->dims[i] > 1 &&
			    (__builtin_mul_overflow(s < 0 ? -s : s, f->dims[i] - 1, &reach) ||
			     __builtin_add_overflow(span, reach, &span) ||
			     span > INT32_MAX))
				return false;
		}
	}
	return true;
}

static void count_items(struct yk_map_form *f)
{
	bool empty = false;
	uint64_t *count = f->count;

	for (int i = 0; i < YOKE_MAP_INDICES; i++)
		count[i] = 1;
	for (int i = 0; i < f->rank; i++) {
		int part = f->split && i >= f->split ? 2 : 0;
		int last = i == f->rank - 1 || i == f->split - 1;
		count[part + last] *= (uint64_t)f->dims[i];
		empty = empty || !f->dims[i];
	}
	if (empty && !f->split)
		count[0] = count[1] = 0;
}

bool yk_map_indexed(const struct yoke_map *m)
{
	for (unsigned k = 0; k < m->ninsn; k++)
		if (m->insn[k].op == YOKE_MAP_INDEX)
			return true;
	return false;
}

static void take_index(struct yk_map_form *f)
{
	// Other ops get the index from the function's parameters.
	bool used = f->code == YOKE_OP_REDUCE && yk_map_indexed(f->map);
	f->operand[f->noperand] = (struct yk_map_operand){
		.number = -1,
		.class = used ? YK_MAP_STRIDED : YK_MAP_LINEAR,
		.dtype = yoke_i64,
	};
}

static void take_axes(const struct yoke_op *op, const struct space *s,
		      struct yk_map_form *f)
{
	const int parts[] = { 1, s->split + 1, s->rank + 1 };
	int apart = f->code == YOKE_OP_CONTRACT ? s->rank : -1;

	take_strides(op, s, f);
	f->rank = f->split = 0;
	for (int p = f->code == YOKE_OP_REDUCE || f->code == YOKE_OP_SCAN_MAP ? 0 : 1; p < 2; p++) {
		int n = merge(f, parts[p], parts[p + 1], f->rank, apart);
		if (n == 0) { // at least one axis, of one element
			f->dims[f->rank] = 1;
			for (unsigned k = 0; k <= f->noperand; k++)
				f->operand[k].strides[f->rank] = 0;
			n = 1;
		}
		f->rank += n;
		if (p == 0)
			f->split = f->rank;
	}
}

bool yk_map_length(const struct yk_map_form *f, int axis)
{
	int first = axis < f->split ? 0 : f->split;
	int end = axis < f->split ? f->split : f->rank;
	return axis > first && axis < end - 1;
}

static int count_args(const struct yk_map_form *f)
{
	int n = f->map->nconst + 1;

	for (unsigned k = 0; k <= f->noperand; k++) {
		const struct yk_map_operand *o = &f->operand[k];
		n += o->class == YK_MAP_VALUE ? 1 : o->class < YK_MAP_LINEAR ? 0 : o->view ? 2 : 0;
		for (int i = 0; i < f->rank && o->class == YK_MAP_STRIDED; i++)
			n += o->step[i] == YK_MAP_ANY;
	}
	for (int i = 0; i < f->rank; i++)
		n += yk_map_length(f, i);
	return n;
}

// ---- lists ----

enum { VIEWS = YOKE_MAP_MAX_OUTPUTS + YOKE_MAP_MAX_INPUTS };

// Builds the MAP that an op over lists applies to one tensor, over the views `v`; number[k] is the
// op's view that v[k] stands for.  The output of a reduction is treated as the program's.
static int flatten(const struct yoke_op *op, struct yoke_view *v, int32_t *number,
		   struct yoke_op *to)
{
	const struct yoke_map *m = op->map;
	const uint32_t list = op->list, lists = op->lists_in, outs = m->nout;
	const bool reduces = op->code == YOKE_OP_LIST_REDUCE;

	*to = (struct yoke_op){ .size = sizeof *to,
				.code = YOKE_OP_MAP,
				.rank = 1,
				.dims = { 2 },
				.map = m,
				.nout = outs,
				.nin = m->nin,
				.out = v,
				.in = v + outs };
	if (!list || !lists || outs > YOKE_MAP_MAX_OUTPUTS || m->nin > YOKE_MAP_MAX_INPUTS ||
	    op->nin < lists * list || m->nin != lists + op->nin - lists * list ||
	    op->lists_out != (reduces ? 0 : outs) || op->nout != (reduces ? 1 : outs * list) ||
	    (reduces && (outs != 1 || m->out[0] >= m->ninsn)))
		return YOKE_EINVAL;
	for (unsigned k = 0; k < m->ninsn; k++)
		if (m->insn[k].op == YOKE_MAP_INDEX || m->insn[k].op == YOKE_MAP_RAND)
			return YOKE_EUNSUPPORTED;
	for (uint32_t k = 0; k < outs + m->nin; k++) {
		const uint32_t input = k - outs;
		const bool one = k >= outs && input >= lists; // a number, not a list
		const uint32_t at = k < outs ? (reduces ? 0 : k * list) :
				    one	     ? op->nout + lists * list + input - lists :
					       op->nout + input * list;
		number[k] = (int32_t)at;
		v[k] = at < op->nout ? op->out[at] : op->in[at - op->nout];
		v[k].rank = 1, v[k].dims[0] = 2, v[k].strides[0] = !one;
	}
	if (reduces)
		v[0].dtype = m->insn[m->out[0]].dtype;
	return 0;
}

// Adapts the form of the MAP to the op over lists.
static void take_list(const struct yoke_op *op, const int32_t *number, struct yk_map_form *f)
{
	f->list = true;
	f->code = op->code;
	for (unsigned k = 0; k < f->noperand; k++) {
		struct yk_map_operand *o = &f->operand[k];
		const uint32_t at = (uint32_t)number[k];
		o->view = at < op->nout ? &op->out[at] : &op->in[at - op->nout];
		o->number = number[k];
		o->each = o->class == YK_MAP_ONE && o->view->rank == 1 && o->view->dims[0] != 1;
	}
	if (op->code == YOKE_OP_LIST_REDUCE) { // the program does not store it
		f->operand[0].view = NULL;
		f->operand[0].class = YK_MAP_PRODUCT;
	}
	for (unsigned k = 0; k < f->map->ninsn; k++) {
		const struct yoke_insn *n = &f->map->insn[k];
		const uint16_t used[] = { n->a, n->b, n->c };
		bool given = n->op != YOKE_MAP_INPUT ||
			     f->operand[f->map->nout + n->a].class != YK_MAP_LINEAR;
		for (int i = 0; i < yk_map_operands(n->op); i++)
			given = given && f->given >> used[i] & 1;
		f->given |= (uint64_t)given << k;
	}
}

int yk_map_operands(int op)
{
	if (op <= YOKE_MAP_INDEX)
		return 0;
	if (op == YOKE_MAP_RAND || op == YOKE_MAP_SELECT)
		return 3;
	return op == YOKE_MAP_NORMAL || (op >= YOKE_MAP_ADD && op < YOKE_MAP_NEG) ||
	       (op >= YOKE_MAP_EQ && op <= YOKE_MAP_GE) ? 2 : 1;
}

int yk_map_form(const struct yoke_op *of, struct yk_map_form *f)
{
	const bool list = of->code == YOKE_OP_LIST_MAP || of->code == YOKE_OP_LIST_REDUCE;
	const struct yoke_op *op = of;
	int32_t number[VIEWS];
	struct yoke_view v[VIEWS];
	struct yoke_op flat;
	struct space s = { .rank = 0 };
	bool divides = false;

	if ((op->code != YOKE_OP_MAP && op->code != YOKE_OP_REDUCE &&
	     op->code != YOKE_OP_CONTRACT && op->code != YOKE_OP_SCAN_MAP && !list) || !op->map)
		return YOKE_EINVAL;
	if (list) {
		int bad = flatten(of, v, number, &flat);
		if (bad)
			return bad;
		op = &flat;
	}
	f->list = false;
	f->given = 0;
	int err = check_program(op, &f->dtypes);
	if (!err)
		err = space_of(op, &s);
	f->map = op->map;
	f->code = op->code;
	f->carried = op->code == YOKE_OP_SCAN_MAP ? (unsigned)op->attr[2].i : 0;
	f->noperand = op->map->nout + op->map->nin;
	for (unsigned k = 0; k <= f->noperand && !err; k++)
		f->operand[k].each = false;
	for (unsigned k = 0; k < f->noperand && !err; k++)
		err = take_operand(op, &s, k, &f->operand[k]);
	if (err)
		return err;
	take_index(f);
	take_axes(op, &s, f);
	f->flat = f->rank == 1;
	for (unsigned k = 0; k <= f->noperand; k++) {
		struct yk_map_operand *o = &f->operand[k];
		if (has_memory(o))
			classify(f, o);
		f->flat = f->flat && o->class != YK_MAP_STRIDED;
	}
	for (int i = 0; i < f->rank; i++)
		divides = divides || yk_map_length(f, i);
	f->narrow = divides && is_narrow(f);
	count_items(f);
	if (list)
		take_list(of, number, f);
	return count_args(f) <= YOKE_MAP_MAX_ARGS ? 0 : YOKE_EUNSUPPORTED;
}
