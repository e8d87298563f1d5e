// SPDX-License-Identifier: Apache-2.0
// The table of optimizers: adding one takes an entry here and a test.
#include "config.h"

#include <math.h>
#include <string.h>

#include "optim/optim.h"

// Options that every kind has after its specific ones.
#define COMMON \
	" clip=0 clip_value=0 check=0 schedule=constant warmup= steps= lr_min= lr_every=1000 lr_factor=0.5" \
	" lr_cycle= lr_cycle_grow=1"

#define COUPLED { .text = "g = g + weight_decay * p;" }
#define EITHER_DECAY \
	{ .when = "!decoupled_weight_decay", .text = "g = g + weight_decay * p;" }, \
	{ .when = "decoupled_weight_decay", .text = "p = p * (1 - lr * weight_decay);" }
#define MOMENTS \
	{ .list = "m", .state = "m", .text = YK_TEXT_FIRST }, { .list = "v", .state = "v", .text = YK_TEXT_SECOND }
#define ADAM_ROOT \
	{ .when = "amsgrad", .list = "top", .state = "vmax", .text = "top = max(top, v); v_root = sqrt(top);" }, \
	{ .when = "!amsgrad", .text = "v_root = sqrt(v);" }, \
	{ .text = "root = v_root / sqrt(c2) + eps;" }

// Kingma and Ba 2015, algorithm 1; bias corrections in double precision
static double c1(const double *option, int64_t t)
{
	return 1 - pow(option[YK_O_beta1], (double)t);
}

static double c2(const double *option, int64_t t)
{
	return 1 - pow(option[YK_O_beta2], (double)t);
}

static double first(const double *option, int64_t t)
{
	(void)option;
	return t == 1;
}

// The number of squared gradients in the window.
static double held(const double *option, int64_t t)
{
	return fmin((double)t, option[YK_O_window]);
}

static double adagrad_slower(const double *option, int64_t t)
{
	return 1 + (double)(t - 1) * option[YK_O_lr_decay];
}

// Dozat 2016: the momentum of step t, and the product of those up to t.  Products that 1 - product
// rounds to 1 need no more factors.
static double nadam_momentum(const double *option, int64_t t)
{
	return option[YK_O_beta1] * (1 - 0.5 * pow(0.96, (double)t * option[YK_O_momentum_decay]));
}

static double nadam_product(const double *option, int64_t t)
{
	double product = 1;
	for (int64_t i = 1; i <= t && product > 1e-18; i++)
		product *= nadam_momentum(option, i);
	return product;
}

// Factors of the gradient and of its mean, corrected for bias.
static double nadam_now(const double *option, int64_t t)
{
	return (1 - nadam_momentum(option, t)) / (1 - nadam_product(option, t));
}

static double nadam_ahead(const double *option, int64_t t)
{
	return nadam_momentum(option, t + 1) / (1 - nadam_product(option, t + 1));
}

// Liu et al. 2020: the rectification times Adam's sqrt(c2); 0 while the variance is intractable.
static double rectified(const double *option, int64_t t)
{
	const double beta2 = option[YK_O_beta2], correction = c2(option, t),
		     longest = 2 / (1 - beta2) - 1;
	const double length = longest - 2 * (double)t * pow(beta2, (double)t) / correction;
	return length > 5 ? sqrt((length - 4) * (length - 2) * longest /
				 ((longest - 4) * (longest - 2) * length) * correction) :
			    0;
}

// Polyak and Juditsky 1992: the weight of the newest parameters in the average.
static double average(const double *option, int64_t t)
{
	return 1 / fmax(1, (double)(t - 1) - option[YK_O_t0]);
}

static double asgd_slower(const double *option, int64_t t)
{
	return pow(1 + option[YK_O_lambd] * option[YK_O_lr] * (double)(t - 1), option[YK_O_alpha]);
}

// AdamW beside Muon has a learning rate of its own.
static double muon_slower(const double *option, int64_t t)
{
	const double lr = option[YK_O_adamw_lr];
	(void)t;
	return option[YK_O_matrix] > 0 || lr == YK_OPTIM_NOT_GIVEN || !(option[YK_O_lr] > 0) ?
		       1 :
		       option[YK_O_lr] / lr;
}

static bool muon_matrix(const double *option, int rank)
{
	return rank == 2 && option[YK_O_orthogonalize] > 0;
}

static double adafactor_weight(const double *option, int64_t t)
{
	return pow((double)t, option[YK_O_beta2_decay]);
}

static double adafactor_slowness(const double *option, int64_t t)
{
	(void)option;
	return 1 / sqrt((double)t);
}

static bool adafactor_matrix(const double *option, int rank)
{
	(void)option;
	return rank > 1;
}

#define BIAS { { "c1", c1 }, { "c2", c2 } }
#define FIRST { { "first", first } }

const struct yk_optim_kind yk_optim_kinds[] = {
	{ .name = "sgd",
	  .options = "lr=0.001 momentum=0 dampening=0 weight_decay=0 nesterov=0" COMMON,
	  .part = { COUPLED,
		    { .when = "momentum",
		      .list = "b",
		      .state = "momentum",
		      .text = YK_TEXT_MOMENTUM },
		    { .when = "!momentum", .text = "p = p - lr * g;" } },
	  .number = FIRST },
	{ .name = "heavy_ball",
	  .options = "lr=0.001 momentum=0.9 weight_decay=0" COMMON,
	  .part = { COUPLED,
		    { .list = "prev",
		      .state = "prev",
		      .text = "gone = select(ne(first, 0), p, prev);"
			      "prev = p;"
			      "p = p - lr * g + momentum * (p - gone);" } },
	  .number = FIRST },
	{ .name = "accelerated",
	  .options = "lr=0.001 q=0 restart=gradient weight_decay=0" COMMON,
	  .part = { COUPLED, { .list = "x", .state = "x", .text = "" } },
	  .number = FIRST,
	  .together = yk_optim_accelerated,
	  .scalar = { { "theta", 1 }, { "last", INFINITY }, { "since", 0 }, { "restarts", 0 } } },
	{ .name = "adam",
	  .options = "lr=0.001 beta1=0.9 beta2=0.999 eps=1e-08 weight_decay=0 amsgrad=0" COMMON,
	  .part = { COUPLED, MOMENTS, ADAM_ROOT, { .text = "p = p - lr / c1 * m / root;" } },
	  .number = BIAS },
	{ .name = "adamw",
	  .options = "lr=0.001 beta1=0.9 beta2=0.999 eps=1e-08 weight_decay=0.01 amsgrad=0" COMMON,
	  .part = { { .text = "decay = weight_decay;" },
		    MOMENTS,
		    ADAM_ROOT,
		    { .text = YK_TEXT_ADAMW } },
	  .number = BIAS },
	{ .name = "lamb",
	  .options =
		  "lr=0.001 beta1=0.9 beta2=0.999 eps=1e-06 weight_decay=0.01 adapt=1 norm_min=0 "
		  "norm_max=0" COMMON,
	  .part = { { .text = "decay = weight_decay;" },
		    MOMENTS,
		    { .text = YK_TEXT_ROOT YK_TEXT_LAMB },
		    { .when = "!adapt", .text = "p = p - lr * r;" } },
	  .number = BIAS,
	  .update = yk_optim_lamb },
	{ .name = "rmsprop",
	  .options =
		  "lr=0.01 alpha=0.99 eps=1e-08 weight_decay=0 momentum=0 nesterov=0 centered=0" COMMON,
	  .part = { COUPLED,
		    { .list = "v",
		      .state = "v",
		      .text = "v = alpha * v + (1 - alpha) * (g * g); square = v;" },
		    { .when = "centered",
		      .list = "mean",
		      .state = "mean",
		      .text = "mean = alpha * mean + (1 - alpha) * g; square = max(v - mean * mean, 0);" },
		    { .text = "u = g / (sqrt(square) + eps);" },
		    { .when = "momentum",
		      .list = "b",
		      .state = "momentum",
		      .text = "b = momentum * b + u;"
			      "p = p - lr * (nesterov * u + (1 - nesterov + nesterov * momentum) * b);" },
		    { .when = "!momentum", .text = "p = p - lr * u;" } } },
	{ .name = "adagrad",
	  .options =
		  "lr=0.01 lr_decay=0 weight_decay=0 initial=0 eps=1e-10 precondition=none window= "
		  "window_by=sum" COMMON,
	  .part = { COUPLED,
		    { .when = "precondition=1", .text = "g = g * P;" },
		    { .list = "h", .state = "sum", .fill = "initial", .text = "" },
		    { .text = "squares = g * g;" },
		    { .when = "!window", .text = "h = h + squares; root = sqrt(h) + eps;" },
		    { .when = "window", .text = YK_OPTIM_BETWEEN },
		    { .when = "precondition=2", .text = "g = g * P;" },
		    { .text = "p = p - lr * (g / root);" } },
	  .number = { { "held", held } },
	  .slower = adagrad_slower,
	  .update = yk_optim_adagrad },
	{ .name = "adadelta",
	  .options = "lr=1 rho=0.9 eps=1e-06 weight_decay=0" COMMON,
	  .part = { COUPLED,
		    { .list = "e",
		      .state = "square",
		      .text = "e = rho * e + (1 - rho) * (g * g);" },
		    { .list = "d",
		      .state = "delta",
		      .text = "by = sqrt(d + eps) / sqrt(e + eps) * g;"
			      "d = rho * d + (1 - rho) * (by * by);"
			      "p = p - lr * by;" } } },
	{ .name = "nadam",
	  .options = "lr=0.002 beta1=0.9 beta2=0.999 eps=1e-08 weight_decay=0 momentum_decay=0.004 "
		     "decoupled_weight_decay=0" COMMON,
	  .part = { EITHER_DECAY,
		    MOMENTS,
		    { .text = YK_TEXT_ROOT "p = p - lr * (now * g + ahead * m) / root;" } },
	  .number = { { "c2", c2 }, { "now", nadam_now }, { "ahead", nadam_ahead } } },
	{ .name = "radam",
	  .options =
		  "lr=0.001 beta1=0.9 beta2=0.999 eps=1e-08 weight_decay=0 decoupled_weight_decay=0" COMMON,
	  .part = { EITHER_DECAY,
		    MOMENTS,
		    { .text = "by = select(ne(rectified, 0), rectified / (sqrt(v) + eps), 1);"
			      "p = p - lr / c1 * m * by;" } },
	  .number = { { "c1", c1 }, { "rectified", rectified } } },
	{ .name = "adamax",
	  .options = "lr=0.002 beta1=0.9 beta2=0.999 eps=1e-08 weight_decay=0" COMMON,
	  .part = { COUPLED,
		    { .list = "m", .state = "m", .text = YK_TEXT_FIRST },
		    { .list = "u", .state = "norm", .text = "u = max(beta2 * u, abs(g) + eps);" },
		    { .text = "p = p - lr / c1 * m / u;" } },
	  .number = { { "c1", c1 } } },
	{ .name = "rprop",
	  .options = "lr=0.01 etaminus=0.5 etaplus=1.2 step_size_min=1e-06 step_size_max=50" COMMON,
	  .part = { { .list = "prev", .state = "prev", .text = "turn = g * prev;" },
		    { .list = "s",
		      .state = "step_size",
		      .fill = "lr",
		      .text = "by = select(gt(turn, 0), etaplus, select(lt(turn, 0), etaminus, 1));"
			      "s = min(max(s * by, step_size_min), step_size_max);"
			      "prev = select(lt(turn, 0), 0, g);"
			      "p = p - sign(prev) * s;" } } },
	{ .name = "asgd",
	  .options = "lr=0.01 lambd=0.0001 alpha=0.75 t0=1000000 weight_decay=0" COMMON,
	  .part = { COUPLED,
		    { .list = "a",
		      .state = "average",
		      .text = "p = p * (1 - lambd * lr) - lr * g;"
			      "a = select(eq(newest, 1), p, a + newest * (p - a));" } },
	  .number = { { "newest", average } },
	  .slower = asgd_slower },
	{ .name = "muon",
	  .options =
		  "lr=0.001 momentum=0.95 nesterov=1 weight_decay=0.1 ns_steps=5 ns_dtype=bf16 eps=1e-07 "
		  "adjust_lr_fn=original orthogonalize=1 adamw_lr= beta1=0.9 beta2=0.999" COMMON,
	  .part = { { .when = "matrix",
		      .list = "b",
		      .state = "momentum",
		      .text = "b = momentum * b + (1 - momentum) * g;"
			      "u = nesterov * (momentum * b + (1 - momentum) * g) + (1 - nesterov) * b;" },
		    { .when = "!matrix", .list = "m", .state = "m", .text = YK_TEXT_FIRST },
		    { .when = "!matrix",
		      .list = "v",
		      .state = "v",
		      .text = YK_TEXT_SECOND YK_TEXT_ROOT },
		    { .when = "!matrix", .text = "decay = weight_decay;" YK_TEXT_ADAMW } },
	  .number = BIAS,
	  .slower = muon_slower,
	  .matrix = muon_matrix,
	  .update = yk_optim_muon },
	{ .name = "adafactor",
	  .options =
		  "lr=0.01 beta2_decay=-0.8 eps1= eps2=0.001 clip_threshold=1 weight_decay=0" COMMON,
	  .part = { { .when = "matrix",
		      .list = "r",
		      .state = "row_var",
		      .shape = YK_OPTIM_ROWS,
		      .text = "" },
		    { .when = "matrix",
		      .list = "c",
		      .state = "col_var",
		      .shape = YK_OPTIM_COLUMNS,
		      .text = "" },
		    { .when = "!matrix", .list = "v", .state = "variance", .text = "" } },
	  .number = { { "weight", adafactor_weight }, { "slowness", adafactor_slowness } },
	  .matrix = adafactor_matrix,
	  .update = yk_optim_adafactor },
};
const int yk_optim_kind_count = sizeof yk_optim_kinds / sizeof *yk_optim_kinds;

const struct yk_optim_kind *yk_optim_kind_find(const char *name)
{
	for (int i = 0; i < yk_optim_kind_count; i++)
		if (!strcmp(yk_optim_kinds[i].name, name))
			return &yk_optim_kinds[i];
	return NULL;
}

const char *yoke_optim_kind(int i)
{
	return i >= 0 && i < yk_optim_kind_count ? yk_optim_kinds[i].name : NULL;
}
