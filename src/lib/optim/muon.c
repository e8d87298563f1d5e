// SPDX-License-Identifier: Apache-2.0
// Muon (Jordan et al. 2024): the momentum of a matrix is orthogonalized before it is applied.
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "optim/optim.h"

enum { ORIGINAL, MATCH_RMS_ADAMW, SPECTRAL_UNCLAMPED }; // indices of the words of adjust_lr_fn

// The factor of the learning rate for a matrix [rows, columns].
static double ratio_of(const double *option, const int64_t *dims)
{
	const double rows = (double)dims[0], columns = (double)dims[1];
	switch ((int)option[YK_O_adjust_lr_fn]) {
	case MATCH_RMS_ADAMW: return 0.2 * sqrt(fmax(rows, columns));
	case SPECTRAL_UNCLAMPED: return sqrt(rows / columns);
	default: return sqrt(fmax(1, rows / columns));
	}
}

// These factors for all tensors of a group, [n].
static yoke_tensor *ratios(const struct yk_optim_pass *pass, const struct yk_optim_group *g)
{
	const int64_t n = g->n;
	double *ratio = malloc((size_t)n * sizeof *ratio);
	if (!ratio) {
		yk_fail(YOKE_ENOMEM, "optim_step: no memory for %d tensors", g->n);
		return NULL;
	}
	for (int k = 0; k < g->n; k++)
		ratio[k] = ratio_of(g->option, pass->o->member[g->member[k]].dims);
	yoke_tensor *to = yoke_cast(yoke_from(yoke_f64, 1, &n, ratio), g->dtype);
	free(ratio);
	return to;
}

// a x + b y, rounded once to x's dtype
static yoke_tensor *combine(double a, yoke_tensor *x, double b, yoke_tensor *y)
{
	const int dtype = yoke_dtype(x), wide = dtype == yoke_f64 ? yoke_f64 : yoke_f32;
	return yoke_cast(yoke_add(yoke_mul(yoke_cast(x, wide), yoke_const(a)),
				  yoke_mul(yoke_cast(y, wide), yoke_const(b))),
			 dtype);
}

enum { PANELS = 4, LARGE = 512 };

// The product x y of which it is known that it is symmetric: rows i and columns j up to the
// diagonal are computed, in panels, the others are transposed.  flags: as for yoke_matmul.
static yoke_tensor *symmetric(yoke_tensor *x, yoke_tensor *y, unsigned flags)
{
	const int rows = flags & YOKE_TA ? 1 : 0, columns = flags & YOKE_TB ? 0 : 1;
	const int64_t m = yoke_dim(x, rows), step = (m + PANELS - 1) / PANELS;
	yoke_tensor *panel[PANELS], *row[PANELS], *block[PANELS];
	if (m < LARGE)
		return yoke_matmul(x, y, flags);
	for (int i = 0; i < PANELS; i++) {
		const int64_t from = i * step, to = from + step < m ? from + step : m;
		panel[i] = yoke_matmul(yoke_slice(x, rows, from, to, 1),
				       yoke_slice(y, columns, 0, to, 1), flags);
	}
	for (int i = 0; i < PANELS; i++) {
		block[i] = panel[i];
		for (int j = i + 1; j < PANELS; j++)
			block[j] =
				yoke_permute(yoke_slice(panel[j], 1, i * step, (i + 1) * step, 1),
					     (const int[]){ 1, 0 });
		row[i] = yoke_concat(PANELS - i, block + i, 1);
	}
	return yoke_concat(PANELS, row, 0);
}

// The quintic Newton-Schulz iteration: singular values of x [M,N] in (0, 1] approach 1.  The Gram
// matrix is of the shorter side.
static yoke_tensor *orthogonalize(yoke_tensor *x, const double *option)
{
	const bool tall = yoke_dim(x, 0) > yoke_dim(x, 1);
	yoke_tensor *norm = yoke_sqrt(yoke_sum(yoke_square(x), YOKE_ALL));
	x = yoke_div(x, yoke_max(norm, yoke_const(option[YK_O_eps])));
	if (yoke_dtype(x) == yoke_f32 && !(option[YK_O_ns_dtype] > 0))
		x = yoke_cast(x, yoke_bf16);
	for (int k = 0; k < (int)option[YK_O_ns_steps]; k++) {
		yoke_tensor *gram = symmetric(x, x, tall ? YOKE_TA : YOKE_TB);
		yoke_tensor *by = combine(-4.7750, gram, 2.0315, symmetric(gram, gram, 0));
		x = combine(3.4445, x, 1, tall ? yoke_matmul(x, by, 0) : yoke_matmul(by, x, 0));
	}
	return x;
}

int yk_optim_muon(const struct yk_optim_pass *pass, struct yk_optim_group *g)
{
	if (!(g->option[YK_O_matrix] > 0)) // AdamW
		return yk_optim_map(pass, g, &(struct yk_optim_map){ 0 });
	yoke_tensor **u = calloc((size_t)g->n, sizeof *u);
	if (!u)
		return yk_fail(YOKE_ENOMEM, "optim_step: no memory for %d tensors", g->n);
	int err = yk_optim_map(pass, g, &(struct yk_optim_map){ .results = "b u", .made = u });
	for (int k = 0; k < g->n && !err; k++) {
		u[k] = yoke_count(u[k]) ? yoke_cast(orthogonalize(u[k], g->option), g->dtype) :
					  u[k];
		err = u[k] ? 0 : yk_error_last();
	}
	if (!err) {
		struct yk_optim_map m = {
			.text = "p = p * (1 - lr * weight_decay) - lr * ratio * o;",
			.results = "p",
			.list = "o",
			.of = u,
			.number = { "ratio" },
			.value = { ratios(pass, g) }
		};
		err = m.value[0] ? yk_optim_map(pass, g, &m) : yk_error_last();
	}
	free(u);
	return err;
}
