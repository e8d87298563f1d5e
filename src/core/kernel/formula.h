// SPDX-License-Identifier: Apache-2.0
// Map programs over lists, written as formulas: what an optimizer is, for one element of each list.
#ifndef YK_FORMULA_H
#define YK_FORMULA_H

#include "yoke-plugin.h"

// Names are parted by blanks.  text is assignments, each closed by a semicolon, with + - * / and map
// instructions as functions: "m = beta * m + (1 - beta) * g; p = p - lr * sqrt(m);".  Arithmetic among
// constants is done in f64, and each is then rounded once; a factor of 1 and a term with the factor 0
// are left out.  Where there is a name skip, a number or an assignment, and it is not 0, results of a list's name
// are that list's elements as they were, with the same bits, whatever the formula makes of them.
struct yk_formula {
	const char *name;
	const char *lists;     // the program's first inputs
	const char *numbers;   // the inputs behind them, one number for all elements of a tensor
	const char *constants; // numbers that are in the program
	const char *results;   // one of a list's name has the list's dtype, others that of the arithmetic
	const char *text;
};

// How many names there are.
int yk_formula_count(const char *names);
// The program, in the arithmetic of dtype, f32 or f64.  in: dtypes of lists and numbers; 0: the number is
// absent, which counts as 1 and is no input.  EUNSUPPORTED: it is too long; EINVAL: it has no meaning.
int yk_formula_map(const struct yk_formula *, int dtype, const uint8_t *in, const double *constant,
		   struct yoke_map *to);
// The same with one input more behind all others, the number skip, of dtype.
int yk_formula_map_skipped(const struct yk_formula *, int dtype, const uint8_t *in, const double *constant,
			   struct yoke_map *to);

// Texts that formulas share.  Adam's moments, of Kingma and Ba 2015, and its denominator
#define YK_TEXT_FIRST "m = beta1 * m + (1 - beta1) * g;"
#define YK_TEXT_SECOND "v = beta2 * v + (1 - beta2) * (g * g);"
#define YK_TEXT_ROOT "root = sqrt(v) / sqrt(c2) + eps;"
// Loshchilov and Hutter 2019
#define YK_TEXT_ADAMW "p = p * (1 - lr * decay) - lr / c1 * m / root;"
// You et al. 2020: the step, and with the squares of the norms
#define YK_TEXT_LAMB "r = m / c1 / root + p * decay;"
#define YK_TEXT_LAMB_STEP \
	"phi = min(max(sqrt(pp), least), most) / sqrt(rr);" \
	"p = p - lr * select(or(eq(pp, 0), eq(rr, 0)), 1, phi) * r;"
// PyTorch's momentum; nesterov is 0 or 1
#define YK_TEXT_MOMENTUM \
	"b = select(ne(first, 0), g, momentum * b + (1 - dampening) * g);" \
	"p = p - lr * (nesterov * g + (1 - nesterov + nesterov * momentum) * b);"

// By number: formulas of steps, and what stands around them.
enum yk_formula_id {
	YK_FORMULA_ADAMW, YK_FORMULA_LAMB, YK_FORMULA_LAMB_STEP, YK_FORMULA_LAMB_PLAIN,
	YK_FORMULA_SGD, YK_FORMULA_MOMENTUM, YK_FORMULA_SCALE, YK_FORMULA_SQUARE, YK_FORMULA_SCALED_SQUARE,
	YK_FORMULA_FINITE,
	YK_FORMULAS
};
extern const struct yk_formula yk_formulas[YK_FORMULAS];

#endif
