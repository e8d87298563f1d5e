// SPDX-License-Identifier: Apache-2.0
// Recognizes the maps that vendor libraries can compute as epilogues of a product: adding a bias
// row, relu, and gelu with tanh. The libraries' gelu is the tanh approximation of Hendrycks and
// Gimpel, equal to yoke_gelu_tanh; yoke_gelu uses erf and is not supported. The libraries round
// once, to the result's dtype; maps of 16-bit dtypes also round in between.
#include "config.h"

#include <math.h>
#include <string.h>

#include "products.h"

static bool is_short(int dtype)
{
	return dtype == yoke_f32 || dtype == yoke_f16 || dtype == yoke_bf16;
}

// The instruction that computes this value, ignoring casts between 16-bit dtypes and f32.
static uint32_t skip_casts(const struct yoke_map *m, uint32_t i)
{
	while (m->insn[i].op == YOKE_MAP_CAST && is_short(m->insn[i].dtype) &&
	       is_short(m->insn[m->insn[i].a].dtype))
		i = m->insn[i].a;
	return i;
}

static bool is_op(const struct yoke_map *m, uint32_t i, int op)
{
	return m->insn[i].op == op && is_short(m->insn[i].dtype);
}

static bool is_zero(const struct yoke_map *m, uint32_t i)
{
	i = skip_casts(m, i);
	return is_op(m, i, YOKE_MAP_CONST) && !m->konst[m->insn[i].a]; // +0, in any dtype
}

static bool is_number(const struct yoke_map *m, uint32_t i, double x)
{
	const float f = (float)x;
	uint32_t bits;

	memcpy(&bits, &f, sizeof bits);
	return m->insn[i].op == YOKE_MAP_CONST && m->insn[i].dtype == yoke_f32 &&
	       m->konst[m->insn[i].a] == bits;
}

// x <= 0 ? 0 : x
static bool relu_of(const struct yoke_map *m, uint32_t i, uint32_t *x)
{
	if (!is_op(m, i, YOKE_MAP_SELECT) || !is_zero(m, m->insn[i].b))
		return false;
	const struct yoke_insn *if_it = &m->insn[m->insn[i].a];
	*x = skip_casts(m, m->insn[i].c);
	return if_it->op == YOKE_MAP_LE && skip_casts(m, if_it->a) == *x && is_zero(m, if_it->b);
}

// For a commutative instruction: `one` is its operand with that op, `other` the other operand.
// False: neither operand has it.
static bool other_of(const struct yoke_map *m, uint32_t i, int op, uint32_t *one, uint32_t *other)
{
	const uint32_t a = skip_casts(m, m->insn[i].a), b = skip_casts(m, m->insn[i].b);

	*one = is_op(m, a, op) ? a : b;
	*other = is_op(m, a, op) ? b : a;
	return is_op(m, *one, op);
}

// k (1 + 0.044715 x^2), k = 2 sqrt(2/pi)
static bool is_inner(const struct yoke_map *m, uint32_t i, uint32_t x)
{
	const double k = 2 * sqrt(2 / M_PI);
	uint32_t product, number, square;

	if (!is_op(m, i, YOKE_MAP_ADD) || !other_of(m, i, YOKE_MAP_MUL, &product, &number) ||
	    !is_number(m, number, k) || !other_of(m, product, YOKE_MAP_SQUARE, &square, &number) ||
	    !is_number(m, number, k * 0.044715))
		return false;
	return skip_casts(m, m->insn[square].a) == x;
}

// x sigmoid(x inner)
static bool gelu_of(const struct yoke_map *m, uint32_t i, uint32_t *x)
{
	uint32_t sigmoid;

	if (!is_op(m, i, YOKE_MAP_MUL) || !other_of(m, i, YOKE_MAP_SIGMOID, &sigmoid, x))
		return false;
	const uint32_t p = skip_casts(m, m->insn[sigmoid].a);
	if (!is_op(m, p, YOKE_MAP_MUL))
		return false;
	const uint32_t a = skip_casts(m, m->insn[p].a), b = skip_casts(m, m->insn[p].b);
	return (a == *x && is_inner(m, b, *x)) || (b == *x && is_inner(m, a, *x));
}

// True if `i` is the product plus the other input; or the product itself.
static bool has_bias(const struct yoke_map *m, uint32_t i)
{
	if (!is_op(m, i, YOKE_MAP_ADD))
		return false;
	const uint32_t a = skip_casts(m, m->insn[i].a), b = skip_casts(m, m->insn[i].b);
	return is_op(m, a, YOKE_MAP_INPUT) && is_op(m, b, YOKE_MAP_INPUT) &&
	       m->insn[a].a != m->insn[b].a;
}

// True if the view is one row of the result's dtype, broadcast over all rows.
static bool is_row(const struct yoke_view *row, const struct yoke_view *y)
{
	if (row->kind != YOKE_VIEW_BUFFER || row->dtype != y->dtype || row->rank != y->rank ||
	    row->align % 16 || row->strides[row->rank - 1] != 1)
		return false;
	for (int k = 0; k < row->rank - 1; k++)
		if (row->dims[k] > 1 && row->strides[k])
			return false;
	return true;
}

int yk_native_then_of(const struct yoke_op *op, int product)
{
	const struct yoke_map *m = op->map;
	const struct yoke_view *y = &op->out[0];
	int then = YK_THEN_NOTHING;
	uint32_t x;

	// rounding the product to 16 bits and then requesting f32 is not what a library computes in
	// f32
	if (m->nout != 1 || op->nin < 2 || op->nin > 3 || !is_short(y->dtype) ||
	    !yk_gpu_dense_of(y, y->dtype) || (product != y->dtype && product != yoke_f32))
		return -1;
	uint32_t at = skip_casts(m, m->out[0]);
	if (relu_of(m, at, &x))
		then = YK_THEN_RELU;
	else if (gelu_of(m, at, &x))
		then = YK_THEN_GELU;
	at = then ? x : at;
	if (has_bias(m, at) && op->nin == 3)
		return is_row(&op->in[2], y) ? then | YK_THEN_BIAS : -1;
	return is_op(m, at, YOKE_MAP_INPUT) && !m->insn[at].a && op->nin == 2 ? then : -1;
}
