// SPDX-License-Identifier: Apache-2.0
// Adafactor (Shazeer and Stern 2018) in PyTorch's form: the second moments of a matrix are the
// product of the means of its rows and columns.
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "optim/optim.h"

enum { WEIGHT, SLOWNESS }; // the kind's numbers: t^beta2_decay, 1 / sqrt(t)

// Operands that are the same for all parameters of a group.
struct shared {
	const struct yk_optim_group *g;
	yoke_tensor *go;     // is the step not skipped?  NULL: it never is
	yoke_tensor *factor; // of gradients: scale and clip; NULL: 1
	double eps;
};

static yoke_tensor *number(yoke_tensor *x, int dtype)
{
	return yoke_cast(yoke_reshape(x, 0, NULL), dtype);
}

static yoke_tensor *factor_of(const struct yk_optim_pass *pass, const struct yk_optim_group *g)
{
	yoke_tensor *scale = pass->scale == YOKE_NONE ? NULL : number(pass->scale, g->dtype),
		    *clip = NULL;
	if (g->option[YK_O_clip] > 0) {
		yoke_tensor *norm =
			yoke_add(yoke_sqrt(number(pass->total, g->dtype)), yoke_const(1e-6));
		clip = yoke_min(yoke_div(yoke_const(g->option[YK_O_clip]), norm), yoke_const(1));
	}
	return scale && clip ? yoke_mul(scale, clip) : scale ? scale : clip;
}

static yoke_tensor *gradient(const struct shared *s, int k)
{
	yoke_tensor *x = s->g->g[k];
	const double max = s->g->option[YK_O_clip_value];
	if (s->factor)
		x = yoke_mul(x, s->factor);
	return max > 0 ? yoke_clamp(x, yoke_const(-max), yoke_const(max)) : x;
}

// Assigns the step's new value of a variable.
static int assign(const struct shared *s, yoke_tensor *to, yoke_tensor *x)
{
	return yoke_assign(to, s->go ? yoke_select(s->go, x, to) : x);
}

// The running mean of x.
static yoke_tensor *mean_of(const struct shared *s, yoke_tensor *mean, yoke_tensor *x)
{
	return yoke_add(mean, yoke_mul(s->g->number[WEIGHT], yoke_sub(x, mean)));
}

static yoke_tensor *rms(yoke_tensor *x)
{
	return yoke_sqrt(yoke_mean(yoke_square(x), YOKE_ALL));
}

// Updates the second moments of parameter k; *to is their estimate.
static int moments(const struct shared *s, int k, yoke_tensor *g, yoke_tensor **to)
{
	yoke_tensor ***state = s->g->state;
	const int rank = yoke_rank(g);
	if (!(s->g->option[YK_O_matrix] > 0)) {
		*to = mean_of(s, state[0][k], yoke_square(g));
		return assign(s, state[0][k], *to);
	}
	const unsigned last = YOKE_AXIS(rank - 1) | YOKE_KEEP,
		       before = YOKE_AXIS(rank - 2) | YOKE_KEEP;
	yoke_tensor *rows = mean_of(s, state[0][k], yoke_mean(yoke_square(g), last));
	yoke_tensor *columns = mean_of(s, state[1][k], yoke_mean(yoke_square(g), before));
	yoke_tensor *all = yoke_max(yoke_mean(rows, before), yoke_const(s->eps));
	*to = yoke_mul(yoke_div(rows, all), columns);
	const int err = assign(s, state[0][k], rows);
	return err ? err : assign(s, state[1][k], columns);
}

static int update(const struct shared *s, int k)
{
	const double *o = s->g->option;
	yoke_tensor *p = s->g->p[k], *g = gradient(s, k), *v, *lr = s->g->lr;
	const int err = moments(s, k, g, &v);
	if (err)
		return err;
	yoke_tensor *u = yoke_mul(g, yoke_rsqrt(yoke_max(v, yoke_const(s->eps * s->eps))));
	yoke_tensor *alpha = yoke_max(rms(p), yoke_const(o[YK_O_eps2]));
	alpha = yoke_min(yoke_mul(alpha, lr), yoke_mul(alpha, s->g->number[SLOWNESS]));
	alpha = yoke_div(alpha, yoke_max(yoke_div(rms(u), yoke_const(o[YK_O_clip_threshold])),
					 yoke_const(1)));
	yoke_tensor *kept =
		o[YK_O_weight_decay] > 0 ?
			yoke_sub(p, yoke_mul(yoke_mul(p, lr), yoke_const(o[YK_O_weight_decay]))) :
			p;
	return assign(s, p, yoke_sub(kept, yoke_mul(u, alpha)));
}

int yk_optim_adafactor(const struct yk_optim_pass *pass, struct yk_optim_group *g)
{
	const double eps = g->option[YK_O_eps1];
	const struct shared s = { .g = g,
				  .go = yk_optim_not_skipped(pass),
				  .factor = factor_of(pass, g),
				  .eps = eps != YK_OPTIM_NOT_GIVEN ? eps :
					 g->dtype == yoke_f64      ? 0x1p-52 :
								     0x1p-23 };
	int err = 0;
	for (int k = 0; k < g->n && !err; k++)
		err = yoke_count(g->p[k]) ? update(&s, k) : 0;
	return err;
}
