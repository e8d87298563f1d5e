// SPDX-License-Identifier: Apache-2.0
// The form of a MAP op, and the call that follows from it: key and arguments of the
// generated kernel.
#include "config.h"

#include <string.h>

#include "device/mapform.h"
#include "device/mapsrc.h"

// ---- the program ----

static bool earlier(const struct yoke_map *m, unsigned k, unsigned operand, int dtype)
{
	return operand < k && m->insn[operand].dtype == dtype;
}

// Is instruction k one of those the generator writes, with operands of the right dtypes?
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
		good = n->a < op->nin && op->in[n->a].dtype == d;
		break;
	case YOKE_MAP_CONST:
		good = n->a < m->nconst;
		break;
	case YOKE_MAP_INDEX:
		good = d == yoke_i64;
		break;
	case YOKE_MAP_RAND:
		good = d == yoke_i32 && earlier(m, k, n->a, yoke_i64) &&
		       earlier(m, k, n->b, yoke_i64) && earlier(m, k, n->c, yoke_i64);
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
	case YOKE_MAP_POW:
		good = earlier(m, k, n->a, d) && earlier(m, k, n->b, d);
		fits = !boolean;
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
	case YOKE_MAP_AND: case YOKE_MAP_OR:
		good = boolean && earlier(m, k, n->a, yoke_bool) &&
		       earlier(m, k, n->b, yoke_bool);
		break;
	case YOKE_MAP_NOT:
		good = boolean && earlier(m, k, n->a, yoke_bool);
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

static int check_program(const struct yoke_op *op, uint32_t *dtypes)
{
	const struct yoke_map *m = op->map;
	if (m->ninsn < 1 || m->ninsn > YOKE_MAP_MAX_INSNS ||
	    m->nconst > YOKE_MAP_MAX_CONSTS || op->nout < 1 ||
	    op->nout > YOKE_MAP_MAX_OUTPUTS || op->nin > YOKE_MAP_MAX_INPUTS ||
	    m->nout != op->nout || m->nin != op->nin)
		return YOKE_EINVAL;
	*dtypes = 0;
	for (unsigned k = 0; k < m->ninsn; k++) {
		int err = check_insn(op, k);
		if (err)
			return err;
		*dtypes |= 1u << m->insn[k].dtype;
	}
	for (unsigned k = 0; k < m->nout; k++)
		if (m->out[k] >= m->ninsn || m->insn[m->out[k]].dtype != op->out[k].dtype)
			return YOKE_EINVAL;
	return 0;
}

// ---- operands ----

static int take_operand(const struct yoke_op *op, const struct yoke_view *v, bool output,
			struct yk_map_operand *to)
{
	to->view = v;
	to->class = YK_MAP_VALUE;
	if (v->kind == YOKE_VIEW_SCALAR && !output)
		return 0;
	if (v->kind != YOKE_VIEW_BUFFER || v->rank != op->rank)
		return YOKE_EINVAL;
	for (int i = 0; i < op->rank; i++)
		if (v->dims[i] != op->dims[i])
			return YOKE_EINVAL;
	to->class = YK_MAP_GENERAL;
	return 0;
}

static bool mergeable(const struct yk_map_form *f, int64_t stride[YK_MAP_OPERANDS],
		      const int64_t *inner_dim, int axis)
{
	for (unsigned k = 0; k < f->noperand; k++) {
		int64_t outer;
		if (f->operand[k].class == YK_MAP_VALUE)
			continue;
		if (__builtin_mul_overflow(stride[k], *inner_dim, &outer) ||
		    outer != f->operand[k].view->strides[axis])
			return false;
	}
	return true;
}

// Drops axes of one element and merges neighbours, from the last axis on; order is kept,
// so that the row-major index of an element stays what it was.
static void merge(const struct yoke_op *op, struct yk_map_form *f)
{
	int64_t dims[YOKE_MAX_RANK], strides[YOKE_MAX_RANK][YK_MAP_OPERANDS];
	int n = 0; // axes so far, the last one first

	for (int axis = op->rank - 1; axis >= 0; axis--) {
		if (op->dims[axis] == 1)
			continue;
		if (n && mergeable(f, strides[n - 1], &dims[n - 1], axis)) {
			dims[n - 1] *= op->dims[axis];
			continue;
		}
		dims[n] = op->dims[axis];
		for (unsigned k = 0; k < f->noperand; k++)
			strides[n][k] = f->operand[k].class == YK_MAP_VALUE ? 0 :
					f->operand[k].view->strides[axis];
		n++;
	}
	if (n == 0) {
		dims[n] = 1;
		for (unsigned k = 0; k < f->noperand; k++)
			strides[n][k] = 1;
		n++;
	}
	f->rank = n;
	for (int i = 0; i < n; i++) {
		f->dims[i] = dims[n - 1 - i];
		for (unsigned k = 0; k < f->noperand; k++)
			f->operand[k].strides[i] = strides[n - 1 - i][k];
	}
}

static int classify(const struct yk_map_form *f, const struct yk_map_operand *o)
{
	bool linear = true, one = true;
	int64_t n = 1, last = o->strides[f->rank - 1];

	for (int i = f->rank - 1; i >= 0; i--) {
		linear = linear && o->strides[i] == n;
		one = one && o->strides[i] == 0;
		n *= f->dims[i];
	}
	return linear ? YK_MAP_LINEAR : one ? YK_MAP_ONE : last == 1 ? YK_MAP_ROW :
	       last == 0 ? YK_MAP_COLUMN : YK_MAP_GENERAL;
}

int yk_map_form(const struct yoke_op *op, struct yk_map_form *f)
{
	if (op->code != YOKE_OP_MAP || !op->map || op->rank > YOKE_MAX_RANK)
		return YOKE_EINVAL;
	int err = check_program(op, &f->dtypes);
	if (err)
		return err;
	f->map = op->map;
	f->noperand = op->nout + op->nin;
	for (unsigned k = 0; k < f->noperand && !err; k++)
		err = take_operand(op, k < op->nout ? &op->out[k] : &op->in[k - op->nout],
				   k < op->nout, &f->operand[k]);
	if (err)
		return err;
	int64_t count = 1;
	for (int i = 0; i < op->rank; i++)
		if (op->dims[i] < 0 || __builtin_mul_overflow(count, op->dims[i], &count))
			return YOKE_EINVAL;
	merge(op, f);
	if (f->rank > YK_MAP_RANK)
		return YOKE_EUNSUPPORTED;
	f->flat = f->rank == 1;
	for (unsigned k = 0; k < f->noperand; k++) {
		struct yk_map_operand *o = &f->operand[k];
		if (o->class != YK_MAP_VALUE)
			o->class = (uint8_t)classify(f, o);
		f->flat = f->flat && o->class <= YK_MAP_ONE;
	}
	f->cols = (uint64_t)f->dims[f->rank - 1];
	f->rows = f->cols ? (uint64_t)count / f->cols : 0;
	return 0;
}

int yk_map_strides(const struct yk_map_form *f, const struct yk_map_operand *o)
{
	return o->class == YK_MAP_GENERAL ? f->rank :
	       o->class >= YK_MAP_ROW     ? f->rank - 1 :
					    0;
}

// ---- the call ----

static void add_word(struct yoke_map_call *c, uint64_t word)
{
	c->arg[c->narg++] = (struct yoke_map_arg){ .operand = -1, .word = word };
}

static void add_key(struct yoke_map_call *c, const void *data, size_t bytes)
{
	memcpy(c->key + c->key_bytes, data, bytes);
	c->key_bytes += (uint32_t)bytes;
}

static void fill_key(const struct yk_map_form *f, struct yoke_map_call *c)
{
	const struct yoke_map *m = f->map;
	const uint16_t head[] = { (uint16_t)f->rank, m->ninsn, m->nconst, m->nin,
				  m->nout };

	add_key(c, head, sizeof head);
	add_key(c, m->out, m->nout * sizeof *m->out);
	for (unsigned k = 0; k < f->noperand; k++) {
		const uint8_t pair[] = { f->operand[k].view->dtype, f->operand[k].class };
		add_key(c, pair, sizeof pair);
	}
	add_key(c, m->insn, m->ninsn * sizeof *m->insn);
}

static void fill_args(const struct yk_map_form *f, struct yoke_map_call *c)
{
	for (unsigned k = 0; k < f->noperand; k++) {
		if (f->operand[k].class == YK_MAP_VALUE)
			continue;
		c->arg[c->narg++] = (struct yoke_map_arg){ .operand = (int32_t)k };
		add_word(c, f->operand[k].view->offset);
	}
	for (unsigned k = 0; k < f->noperand; k++)
		if (f->operand[k].class == YK_MAP_VALUE)
			add_word(c, f->operand[k].view->offset);
	for (unsigned k = 0; k < f->map->nconst; k++)
		add_word(c, f->map->konst[k]);
	add_word(c, f->cols);
	if (f->flat)
		return;
	add_word(c, f->rows);
	for (int i = 1; i < f->rank - 1; i++)
		add_word(c, (uint64_t)f->dims[i]);
	for (unsigned k = 0; k < f->noperand; k++)
		for (int i = 0; i < yk_map_strides(f, &f->operand[k]); i++)
			add_word(c, (uint64_t)f->operand[k].strides[i]);
}

int yk_map_call(const struct yoke_op *op, struct yoke_map_call *to)
{
	_Static_assert(10 + 2 * YOKE_MAP_MAX_OUTPUTS + 2 * YK_MAP_OPERANDS +
		       YOKE_MAP_MAX_INSNS * sizeof(struct yoke_insn) <= YOKE_MAP_KEY_BYTES, "key");
	_Static_assert(2 * YK_MAP_OPERANDS + YOKE_MAP_MAX_CONSTS + YK_MAP_RANK +
		       YK_MAP_OPERANDS * YK_MAP_RANK <= YOKE_MAP_MAX_ARGS, "arguments");
	struct yk_map_form f;
	if (to->size < sizeof *to)
		return YOKE_EINVAL;
	int err = yk_map_form(op, &f);
	if (err)
		return err;
	to->dtypes = f.dtypes;
	to->cols = f.rows ? f.cols : 0;
	to->rows = f.cols ? f.rows : 0;
	to->key_bytes = to->narg = 0;
	fill_key(&f, to);
	fill_args(&f, to);
	return 0;
}
