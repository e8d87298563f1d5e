// SPDX-License-Identifier: Apache-2.0
// Folding for inference: merges LoRA updates, scales of norms and running statistics into the
// weights of adjacent layers.  A layer is folded only into the one layer that reads it, which is
// known for neighbours in a sequence and within a block; tied weights are never changed.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "nn/layer.h"

// Leaves a layer without parameters.
static void drop_own(yoke_module *m)
{
	for (size_t i = 0; i < m->n; i++) {
		yoke_free(m->own[i].tensor);
		free(m->own[i].name);
		free(m->own[i].path);
	}
	m->n = 0;
}

static int times_held(const yoke_module *m, const yoke_tensor *t)
{
	int n = 0;
	for (size_t i = 0; i < m->n; i++)
		n += m->own[i].tensor == t;
	for (size_t i = 0; i < m->children; i++)
		n += times_held(m->child[i], t);
	return n;
}

// Does the module have parameters, none of which is shared with another module?
static bool is_free(const yoke_module *top, const yoke_module *m)
{
	bool alone = m->n > 0;
	for (size_t i = 0; i < m->n && alone; i++)
		alone = !m->own[i].shared && !m->own[i].places &&
			times_held(top, m->own[i].tensor) == 1;
	return alone;
}

// The layer's bias, created if it has none.
static yoke_tensor *bias_of(yoke_module *m, int64_t n)
{
	if (m->n > 1)
		return m->own[1].tensor;
	yoke_tensor *b = yoke_module_parameter(m, "bias", yoke_dtype(m->own[0].tensor), 1, &n,
					       YOKE_FIRST_VALUE, 0);
	if (b)
		m->own[1].frozen = m->own[0].frozen;
	return b;
}

// Evaluates the operations recorded in the scope, and ends it.
static int settle(yoke_scope *s, int err)
{
	if (!err)
		err = yoke_eval(0, NULL);
	const int ended = yoke_scope_end(s);
	return err ? err : ended;
}

static yoke_tensor *as(yoke_tensor *x, const yoke_tensor *like)
{
	return yoke_cast(x, yoke_dtype(like));
}

// For norm(layer(x)) with running statistics: the norm's scale goes into the rows of the weight,
// its shift into the bias.
static int fold_after(yoke_module *layer, yoke_module *norm)
{
	yoke_tensor *w = layer->own[0].tensor;
	const int64_t n = yoke_count(norm->own[0].tensor);
	int64_t dims[YOKE_MAX_RANK], by[YOKE_MAX_RANK] = { n };
	const int rank = yoke_rank(w);
	const bool transposed = layer->class == &yk_conv_transposed_class;
	const int64_t groups = transposed ? yk_conv_groups(layer) : 1;
	if (n != (transposed ? groups * yoke_dim(w, 1) : yoke_dim(w, 0)))
		return yk_fail(
			YOKE_ESHAPE,
			"module_fold: a batch norm of %lld channels follows a %s with another number",
			(long long)n, layer->class->name);
	yoke_tensor *b = bias_of(layer, n);
	yoke_scope *s = yoke_scope_begin("fold");
	yoke_tensor *rstd =
		yoke_rsqrt(yoke_add(norm->own[3].tensor, yoke_const(yk_norm_eps(norm))));
	yoke_tensor *scale = yoke_mul(rstd, norm->own[0].tensor);
	yoke_tensor *shift = yoke_sub(norm->own[1].tensor, yoke_mul(norm->own[2].tensor, scale));
	for (int i = 0; i < rank; i++) {
		dims[i] = yoke_dim(w, i);
		by[i] = i ? 1 : n;
	}
	yoke_tensor *scaled;
	if (transposed) { // [C,O/groups,K..]: outputs are the second axis, within the group of the
			  // first
		int64_t apart[YOKE_MAX_RANK] = { groups, dims[0] / groups, dims[1], -1 };
		scaled = yoke_mul(
			yoke_reshape(w, 4, apart),
			as(yoke_reshape(scale, 4, (int64_t[]){ groups, 1, dims[1], 1 }), w));
		scaled = yoke_reshape(scaled, rank, dims);
	} else {
		scaled = yoke_mul(w, as(yoke_reshape(scale, rank, by), w));
	}
	int err = b ? yoke_assign(w, scaled) : yoke_error_code();
	if (!err)
		err = yoke_assign(b, yoke_add(yoke_mul(b, as(scale, b)), as(shift, b)));
	err = settle(s, err);
	if (!err)
		drop_own(norm);
	return err;
}

// For layer(norm(x)), where the linear layers are the norm's only readers: its scale goes into the
// columns of their weights, its shift into their biases.
static int fold_before(yoke_module *norm, int n, yoke_module *const *layer)
{
	yoke_scope *s = yoke_scope_begin("fold");
	int err = 0;
	for (int i = 0; i < n && !err; i++) {
		yoke_tensor *w = layer[i]->own[0].tensor;
		if (norm->n > 1) {
			yoke_tensor *b = bias_of(layer[i], yoke_dim(w, 0));
			yoke_tensor *more = yoke_linear(as(norm->own[1].tensor, w), w, YOKE_NONE);
			err = b ? yoke_assign(b, yoke_add(b, as(more, b))) : yoke_error_code();
		}
		if (!err)
			err = yoke_assign(w, yoke_mul(w, as(norm->own[0].tensor, w)));
	}
	err = settle(s, err);
	if (!err)
		drop_own(norm);
	return err;
}

static bool is_product(const yoke_module *m)
{
	return m->class == &yk_linear_class || m->class == &yk_conv_class ||
	       m->class == &yk_conv_transposed_class;
}

static bool is_row_norm(const yoke_module *m)
{
	return m->class == &yk_layer_norm_class || m->class == &yk_rms_norm_class;
}

static int fold_neighbours(yoke_module *top, yoke_module *a, yoke_module *b)
{
	if (!is_free(top, a) || !is_free(top, b))
		return 0;
	if (is_product(a) && b->class == &yk_batch_norm_class)
		return fold_after(a, b);
	if (is_row_norm(a) && b->class == &yk_linear_class)
		return fold_before(a, 1, &b);
	return 0;
}

// norm1, attn (q, k, v, out), norm2, mlp (up, ..)
static int fold_block(yoke_module *top, yoke_module *m)
{
	yoke_module *norm1 = m->child[0], *norm2 = m->child[2], *up = m->child[3]->child[0];
	bool all = is_free(top, norm1);
	for (int i = 0; i < 3; i++)
		all = all && m->child[1]->child[i]->class == &yk_linear_class &&
		      is_free(top, m->child[1]->child[i]);
	int err = all ? fold_before(norm1, 3, m->child[1]->child) : 0;
	return err ? err : fold_neighbours(top, norm2, up);
}

static int fold(yoke_module *top, yoke_module *m)
{
	int err = 0;
	for (size_t i = 0; i < m->children && !err; i++)
		err = fold(top, m->child[i]);
	for (size_t i = 0; i + 1 < m->children && !err && m->class == &yk_sequential_class; i++)
		err = fold_neighbours(top, m->child[i], m->child[i + 1]);
	if (!err && m->class == &yk_block_class)
		err = fold_block(top, m);
	if (!err && m->class == &yk_lora_class && m->n) {
		yoke_scope *s = yoke_scope_begin("fold");
		err = settle(s, yk_lora_join(m));
		if (!err)
			drop_own(m);
	}
	return err;
}

int yoke_module_fold(yoke_module *m)
{
	return yk_module_require(m, "module_fold") ? fold(m, m) : yoke_error_code();
}
