// SPDX-License-Identifier: Apache-2.0
// The table of formulas: optimizer steps, and helpers for lists of gradients.
#include "config.h"

#include "kernel/formula.h"

#define MOMENTS "g = g * scale;" YK_TEXT_FIRST YK_TEXT_SECOND YK_TEXT_ROOT

const struct yk_formula yk_formulas[YK_FORMULAS] = {
	// Loshchilov and Hutter 2019
	[YK_FORMULA_ADAMW] = { "adamw", "p g m v", "lr c1 c2 scale", "beta1 beta2 eps decay",
			       "p m v", MOMENTS YK_TEXT_ADAMW },
	// You et al. 2020: the direction, then the step scaled by the ratio of the norms, given
	// their squares
	[YK_FORMULA_LAMB] = { "lamb", "p g m v", "c1 c2 scale", "beta1 beta2 eps decay", "m v r",
			      MOMENTS YK_TEXT_LAMB },
	[YK_FORMULA_LAMB_STEP] = { "lamb_step", "p r", "lr pp rr", "low high", "p",
				   YK_TEXT_LAMB_STEP },
	[YK_FORMULA_LAMB_PLAIN] = { "lamb_plain", "p g m v", "lr c1 c2 scale",
				    "beta1 beta2 eps decay", "p m v",
				    MOMENTS "p = p - lr * (m / c1 / root + p * decay);" },
	// PyTorch's SGD; nesterov is 0 or 1
	[YK_FORMULA_SGD] = { "sgd", "p g", "lr scale", "decay", "p",
			     "g = g * scale + decay * p;"
			     "p = p - lr * g;" },
	[YK_FORMULA_MOMENTUM] = { "momentum", "p g b", "lr scale first",
				  "decay momentum dampening nesterov", "p b",
				  "g = g * scale + decay * p;" YK_TEXT_MOMENTUM },
	[YK_FORMULA_SCALE] = { "scale", "g", "scale", "", "y", "y = g * scale;" },
	[YK_FORMULA_SQUARE] = { "square", "x", "", "", "y", "y = x * x;" },
	[YK_FORMULA_SCALED_SQUARE] = { "scaled_square", "x", "scale", "", "y",
				       "x = x * scale; y = x * x;" },
	// 0 for a finite x, else NaN
	[YK_FORMULA_FINITE] = { "finite", "x", "", "", "y", "y = x - x;" },
};
