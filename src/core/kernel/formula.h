// SPDX-License-Identifier: Apache-2.0
// Map programs over lists of tensors, written as formulas: an optimizer's update of one element,
// for example.
#ifndef YK_FORMULA_H
#define YK_FORMULA_H

#include "yoke-plugin.h"

// Names are separated by blanks.  text is a sequence of assignments, each ended by a semicolon,
// with + - * / and map instructions as functions: "m = beta * m + (1 - beta) * g; p = p - lr *
// sqrt(m);".  Arithmetic on constants is done in f64 and the result rounded once; multiplications
// by 1 and terms multiplied by 0 are omitted.  If a number or an assignment is named skip and its
// value is not 0, results that have a list's name keep that list's elements bit for bit, whatever
// the formula computes.
struct yk_formula {
	const char *name;
	const char *lists;     // the program's first inputs
	const char *numbers;   // inputs after the lists: one number for a whole tensor
	const char *constants; // numbers compiled into the program
	const char *results;   // a list's name: the list's dtype; else that of the arithmetic
	const char *text;
};

// The number of names in a list of names.
int yk_formula_count(const char *names);
// Compiles the program for arithmetic in dtype, f32 or f64.  in: the dtypes of lists and numbers; 0
// means that the number is absent: it counts as 1 and is no input.  EUNSUPPORTED: too long; EINVAL:
// not a valid formula.
int yk_formula_map(const struct yk_formula *, int dtype, const uint8_t *in, const double *constant,
		   struct yoke_map *to);
// The same with one more input after all others: the number skip, of dtype.
int yk_formula_map_skipped(const struct yk_formula *, int dtype, const uint8_t *in,
			   const double *constant, struct yoke_map *to);

// Fragments that several formulas share.  Adam's moments (Kingma and Ba 2015) and its denominator:
#define YK_TEXT_FIRST "m = beta1 * m + (1 - beta1) * g;"
#define YK_TEXT_SECOND "v = beta2 * v + (1 - beta2) * (g * g);"
#define YK_TEXT_ROOT "root = sqrt(v) / sqrt(c2) + eps;"
// Loshchilov and Hutter 2019
#define YK_TEXT_ADAMW "p = p * (1 - lr * decay) - lr / c1 * m / root;"
// You et al. 2020: the direction, then the step given the squares of the norms
#define YK_TEXT_LAMB "r = m / c1 / root + p * decay;"
#define YK_TEXT_LAMB_STEP \
	"phi = min(max(sqrt(pp), low), high) / sqrt(rr);" \
	"p = p - lr * select(or(eq(pp, 0), eq(rr, 0)), 1, phi) * r;"
// PyTorch's momentum; nesterov is 0 or 1
#define YK_TEXT_MOMENTUM \
	"b = select(ne(first, 0), g, momentum * b + (1 - dampening) * g);" \
	"p = p - lr * (nesterov * g + (1 - nesterov + nesterov * momentum) * b);"

// Indices into yk_formulas: optimizer steps, and helpers for lists of gradients.
enum yk_formula_id {
	YK_FORMULA_ADAMW,
	YK_FORMULA_LAMB,
	YK_FORMULA_LAMB_STEP,
	YK_FORMULA_LAMB_PLAIN,
	YK_FORMULA_SGD,
	YK_FORMULA_MOMENTUM,
	YK_FORMULA_SCALE,
	YK_FORMULA_SQUARE,
	YK_FORMULA_SCALED_SQUARE,
	YK_FORMULA_FINITE,
	YK_FORMULAS
};
extern const struct yk_formula yk_formulas[YK_FORMULAS];

#endif
