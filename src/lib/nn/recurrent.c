// SPDX-License-Identifier: Apache-2.0
// Recurrent networks: layers of yoke_recurrent in one or both directions, with PyTorch's names.
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/sized.h"
#include "nn/layer.h"
#include "yoke-math.h"

enum { LAYERS = 64 };

static int64_t gates_of(int cell)
{
	return cell == YOKE_CELL_LSTM ? 4 : cell == YOKE_CELL_GRU ? 3 : 1;
}

// State `at` of [layers x directions,B,H], or none
static yoke_tensor *state_of(yoke_tensor *all, int at)
{
	if (all == YOKE_NONE)
		return all;
	yoke_tensor *one = yoke_slice(all, 0, at, at + 1, 1);
	int64_t dims[2] = { yoke_dim(all, 1), yoke_dim(all, 2) };
	return yoke_reshape(one, 2, dims);
}

static yoke_tensor *swapped(yoke_tensor *x)
{
	return yoke_permute(x, (int[]){ 1, 0, 2 });
}

static yoke_tensor *stacked(int n, yoke_tensor **each)
{
	for (int i = 0; i < n; i++) {
		int64_t dims[3] = { 1, yoke_dim(each[i], 0), yoke_dim(each[i], 1) };
		each[i] = yoke_reshape(each[i], 3, dims);
	}
	return yoke_concat(n, each, 0);
}

// in: x, lengths, h0, c0; out: y, h, c
static int forward(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k,
		   yoke_tensor **out)
{
	const struct yoke_nn_recurrent_options *o = state;
	const int directions = o->bidirectional ? 2 : 1, weights = o->no_bias ? 2 : 4,
		  own = weights + (o->proj > 0);
	yoke_tensor *const lengths = n > 1 ? in[1] : YOKE_NONE,
			   *const h0 = n > 2 ? in[2] : YOKE_NONE,
			   *const c0 = n > 3 ? in[3] : YOKE_NONE;
	yoke_tensor *h[2 * LAYERS], *c[2 * LAYERS], *y[2];
	if (n < 1 || n > 4 || k < 1 || k > 3)
		return yk_fail(YOKE_EINVAL,
			       "recurrent: computes y, h and c of x, lengths, h0 and c0, not %d "
			       "values of %d",
			       k, n);
	yoke_tensor *x = in[0];
	if (yoke_rank(x) != 3)
		return yoke_error_code() ?
			       yoke_error_code() :
			       yk_fail(YOKE_ESHAPE, "recurrent: takes inputs of 3 axes, got %d",
				       yoke_rank(x));
	if (o->batch_first)
		x = swapped(x);
	for (int64_t layer = 0; layer < o->layers; layer++) {
		if (layer && o->dropout > 0 && yoke_module_training(m))
			x = yoke_dropout(x, o->dropout);
		for (int d = 0; d < directions; d++) {
			const int at = (int)layer * directions + d;
			const struct yoke_recurrent one = {
				.size = sizeof one,
				.w_ih = yoke_module_own(m, own * at),
				.w_hh = yoke_module_own(m, own * at + 1),
				.b_ih = o->no_bias ? YOKE_NONE : yoke_module_own(m, own * at + 2),
				.b_hh = o->no_bias ? YOKE_NONE : yoke_module_own(m, own * at + 3),
				.cell = o->cell,
				.reverse = d,
				.w_hr = o->proj ? yoke_module_own(m, own * at + weights) : YOKE_NONE
			};
			y[d] = yoke_recurrent(x, &one, state_of(h0, at), state_of(c0, at), lengths,
					      &h[at], &c[at]);
		}
		x = directions == 2 ? yoke_concat(2, y, 2) : y[0];
	}
	out[0] = o->batch_first ? swapped(x) : x;
	if (k > 1)
		out[1] = stacked((int)o->layers * directions, h);
	if (k > 2)
		out[2] = stacked((int)o->layers * directions, c);
	return yoke_error_code();
}

static const struct yoke_module_class class = {
	.size = sizeof class, .name = "recurrent", .forward = forward, .release = free
};

// The parameters of a layer in one direction
static bool parameters(yoke_module *m, const struct yoke_nn_recurrent_options *o, int64_t layer,
		       bool reverse)
{
	const int64_t size = gates_of(o->cell) * o->units, state = o->proj ? o->proj : o->units,
		      in = !layer ? o->in : state * (o->bidirectional ? 2 : 1);
	const struct {
		const char *name;
		bool is;
		int rank;
		int64_t dims[2];
	} p[] = {
		{ "weight_ih", true, 2, { size, in } },
		{ "weight_hh", true, 2, { size, state } },
		{ "bias_ih", !o->no_bias, 1, { size } },
		{ "bias_hh", !o->no_bias, 1, { size } },
		{ "weight_hr", o->proj, 2, { o->proj, o->units } },
	};
	for (size_t i = 0; i < sizeof p / sizeof *p; i++) {
		char name[48];
		snprintf(name, sizeof name, "%s_l%d%s", p[i].name, (int)layer,
			 reverse ? "_reverse" : "");
		if (p[i].is && !yk_module_parameter(m, false, name, p[i].rank, p[i].dims,
						    YOKE_FIRST_UNIFORM, 1 / sqrt((double)o->units)))
			return false;
	}
	return true;
}

yoke_module *yoke_nn_recurrent(const struct yoke_nn_recurrent_options *given)
{
	struct yoke_nn_recurrent_options o = { .size = sizeof o, .layers = 0 };
	if (yk_sized_read(&o, sizeof o, given, "nn_recurrent", "yoke_nn_recurrent_options") < 0)
		return NULL;
	if (!o.layers)
		o.layers = 1;
	if (!yk_layer_size("nn_recurrent", "in", o.in) ||
	    !yk_layer_size("nn_recurrent", "units", o.units))
		return NULL;
	if (o.layers < 1 || o.layers > LAYERS || o.cell < 0 || o.cell > YOKE_CELL_GRU ||
	    !(o.dropout >= 0 && o.dropout < 1)) {
		yk_fail(YOKE_EINVAL,
			"nn_recurrent: %lld layers of 1 to %d, cell %d of yoke_cell, dropout %g in "
			"[0, 1)",
			(long long)o.layers, LAYERS, o.cell, o.dropout);
		return NULL;
	}
	if (o.proj < 0 || o.proj >= o.units || (o.proj && o.cell != YOKE_CELL_LSTM)) {
		yk_fail(YOKE_EINVAL,
			"nn_recurrent: proj %lld: a projection is of an LSTM, to fewer than its "
			"%lld units",
			(long long)o.proj, (long long)o.units);
		return NULL;
	}
	yoke_module *m = yk_layer_new(&class, &o, sizeof o);
	bool good = m;
	for (int64_t layer = 0; layer < o.layers; layer++)
		for (int d = 0; d < (o.bidirectional ? 2 : 1); d++)
			good = good && parameters(m, &o, layer, d);
	return yk_layer_done(m, good);
}
