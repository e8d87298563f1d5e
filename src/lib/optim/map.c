// SPDX-License-Identifier: Apache-2.0
// One launch over a group: assembles the formula from the fragments of the table entry, with
// scaling and clipping before them and the select of a skipped step after them, and binds the
// lists, numbers and constants that the formula names.
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "optim/optim.h"

enum { TEXT = 2048, NAMES = 320 };

// Codes of operands, resolved to tensors in each step.
enum operand {
	// LIST_STATE + k: state k
	LIST_P,
	LIST_G,
	LIST_PRECONDITION,
	LIST_WINDOW,
	LIST_OWN,
	LIST_STATE,
	NUMBER_LR = 32,
	NUMBER_SCALE,
	NUMBER_SKIP,
	NUMBER_TOTAL,
	NUMBER_LATCHED,
	NUMBER_BETA,
	NUMBER_OWN,
	NOTHING = NUMBER_OWN + 2, // there are two NUMBER_OWN
	NUMBER_KIND               // NUMBER_KIND + k: number k of the kind
};

// A compiled formula, reused in all steps of a group that have the same texts and numbers.
struct yk_optim_formula {
	struct yk_optim_formula *next;
	const char *body, *between, *given_results, *own; // as in struct yk_optim_map
	unsigned with;                                    // which numbers the pass has
	char text[TEXT], lists[NAMES], numbers[NAMES], constants[NAMES], results[NAMES];
	double constant[YK_OPTIM_OPTION_COUNT];
	// enum operand
	uint8_t list[YOKE_MAP_MAX_INPUTS], number[YOKE_MAP_MAX_INPUTS], to[YOKE_MAP_MAX_OUTPUTS];
	int list_count, number_count, constant_count, result_count;
	bool full, assigns; // assigns: some results are variables
	struct yk_formula formula;
	struct yoke_map map;
};

// Buffers are sized for the table's texts; an entry that overflows them makes the step fail.
static void add(struct yk_optim_formula *f, char *to, size_t room, const char *text)
{
	const size_t n = strlen(to);
	f->full |= n + strlen(text) + 1 > room;
	snprintf(to + n, room - n, "%s", text);
}

static void append(struct yk_optim_formula *f, const char *text)
{
	add(f, f->text, sizeof f->text, text);
}

static void add_name(struct yk_optim_formula *f, char *to, const char *name)
{
	if (*to)
		add(f, to, NAMES, " ");
	add(f, to, NAMES, name);
}

static bool in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool names(const char *text, const char *name)
{
	const size_t n = strlen(name);
	for (const char *at = text; (at = strstr(at, name)); at += n)
		if ((at == text || !in_word(at[-1])) && !in_word(at[n]))
			return true;
	return false;
}

// ---- operands ----

static int list_of(const struct yk_optim_group *g, const struct yk_optim_map *m, const char *name)
{
	if (m->list && !strcmp(name, m->list))
		return LIST_OWN;
	for (int k = 0; k < g->states; k++)
		if (!strcmp(name, g->list[k]))
			return LIST_STATE + k;
	return !strcmp(name, "p")              ? LIST_P :
	       !strcmp(name, "g")              ? LIST_G :
	       !strcmp(name, "P")              ? LIST_PRECONDITION :
	       !strcmp(name, "w") && g->window ? LIST_WINDOW :
						 NOTHING;
}

static yoke_tensor *const *list_at(const struct yk_optim_group *g, const struct yk_optim_map *m,
				   int operand)
{
	switch (operand) {
	case LIST_P: return g->p;
	case LIST_G: return g->g;
	case LIST_PRECONDITION: return g->P;
	case LIST_WINDOW: return g->state[g->states + m->slot];
	case LIST_OWN: return m->of;
	case NOTHING: return NULL;
	default: return g->state[operand - LIST_STATE];
	}
}

static yoke_tensor *number_at(const struct yk_optim_pass *pass, const struct yk_optim_group *g,
			      const struct yk_optim_map *m, int operand)
{
	switch (operand) {
	case NUMBER_LR: return g->lr;
	case NUMBER_SCALE: return pass->scale;
	case NUMBER_SKIP: return pass->skip;
	case NUMBER_TOTAL: return pass->total;
	case NUMBER_LATCHED: return pass->latched;
	case NUMBER_BETA: return pass->beta;
	case NUMBER_OWN:
	case NUMBER_OWN + 1: return m->value[operand - NUMBER_OWN];
	default: return g->number[operand - NUMBER_KIND];
	}
}

static void take_list(struct yk_optim_formula *f, const struct yk_optim_group *g,
		      const struct yk_optim_map *m, const char *name)
{
	const int list = list_of(g, m, name);
	if (list == NOTHING || (f->list_count && !names(f->text, name)))
		return;
	add_name(f, f->lists, name);
	f->list[f->list_count++] = (uint8_t)list;
}

static void take_number(struct yk_optim_formula *f, const char *name, int operand)
{
	if (!name || !names(f->text, name))
		return;
	add_name(f, f->numbers, name);
	f->number[f->number_count++] = (uint8_t)operand;
}

static void take_operands(struct yk_optim_formula *f, const struct yk_optim_pass *pass,
			  const struct yk_optim_group *g, const struct yk_optim_map *m)
{
	const struct yk_optim_kind *kind = pass->o->kind;
	take_list(f, g, m, "p"); // first in every formula
	take_list(f, g, m, "g");
	for (int k = 0; k < g->states; k++)
		take_list(f, g, m, g->list[k]);
	take_list(f, g, m, "w");
	take_list(f, g, m, "P");
	if (m->list)
		take_list(f, g, m, m->list);
	take_number(f, "lr", NUMBER_LR);
	take_number(f, "scale", NUMBER_SCALE);
	// otherwise it is computed by the formula
	take_number(f, pass->skip == YOKE_NONE ? NULL : "skip", NUMBER_SKIP);
	take_number(f, "total", NUMBER_TOTAL);
	take_number(f, "latched", NUMBER_LATCHED);
	take_number(f, "beta", NUMBER_BETA);
	for (int k = 0; k < 2; k++)
		take_number(f, m->number[k], NUMBER_OWN + k);
	for (int k = 0; k < YK_OPTIM_NUMBERS; k++)
		take_number(f, kind->number[k].name, NUMBER_KIND + k);
	for (int k = 0; k < YK_OPTIM_OPTION_COUNT; k++)
		if (k != YK_O_lr && names(f->text, yk_optim_rows[k].name)) {
			add_name(f, f->constants, yk_optim_rows[k].name);
			f->constant[f->constant_count++] = g->option[k];
		}
}

// ---- text ----

// Text for the gradient, scaled and clipped.
static void append_gradient(struct yk_optim_formula *f, const struct yk_optim_pass *pass,
			 const struct yk_optim_group *g)
{
	if (pass->scale != YOKE_NONE)
		append(f, "g = g * scale;");
	if (g->option[YK_O_clip] > 0)
		append(f, "g = g * min(clip / (sqrt(total) + 1 / 1000000), 1);");
	if (g->option[YK_O_clip_value] > 0)
		append(f, "g = min(max(g, 0 - clip_value), clip_value);");
}

static void append_body(struct yk_optim_formula *f, const struct yk_optim_pass *pass,
		     const struct yk_optim_group *g, const struct yk_optim_map *m)
{
	const struct yk_optim_part *part = pass->o->kind->part;
	if (m->text) {
		append(f, m->text);
		return;
	}
	for (; part->text; part++)
		if (yk_optim_enables(part, g->option))
			append(f, strcmp(part->text, YK_OPTIM_BETWEEN) ? part->text : m->between);
}

static void append_all(struct yk_optim_formula *f, const struct yk_optim_pass *pass,
		       const struct yk_optim_group *g, const struct yk_optim_map *m)
{
	const bool skips = pass->skip != YOKE_NONE, checks = pass->latched != YOKE_NONE;
	if (!m->text || names(m->text, "g"))
		append_gradient(f, pass, g);
	append_body(f, pass, g, m);
	if (f->assigns && (skips || checks))
		append(f,
		       skips && checks ?
			       "skip = or(ne(skip, 0), not(and(isfinite(total), isfinite(latched))));" :
		       skips ? "skip = ne(skip, 0);" :
			       "skip = not(and(isfinite(total), isfinite(latched)));");
}

static void append_results(struct yk_optim_formula *f, const struct yk_optim_group *g,
			const struct yk_optim_map *m)
{
	char rest[NAMES], *at = rest, *name;
	if (m->results) {
		add(f, f->results, sizeof f->results, m->results);
	} else {
		add_name(f, f->results, "p");
		for (int k = 0; k < g->states; k++)
			add_name(f, f->results, g->list[k]);
		if (g->window)
			add_name(f, f->results, "w");
	}
	snprintf(rest, sizeof rest, "%s", f->results);
	while ((name = strsep(&at, " ")) && f->result_count < YOKE_MAP_MAX_OUTPUTS) {
		f->to[f->result_count] = (uint8_t)list_of(g, m, name);
		f->assigns |= f->to[f->result_count++] != NOTHING;
	}
}

// ---- compilation ----

static unsigned numbers_of(const struct yk_optim_pass *pass)
{
	return (pass->scale != YOKE_NONE) | (pass->skip != YOKE_NONE) << 1 |
	       (pass->latched != YOKE_NONE) << 2;
}

static int compile(struct yk_optim_formula *f, const struct yk_optim_kind *kind, int dtype)
{
	uint8_t dtypes[2 * YOKE_MAP_MAX_INPUTS];
	f->formula = (struct yk_formula){ kind->name,   f->lists,   f->numbers,
					  f->constants, f->results, f->text };
	memset(dtypes, dtype, sizeof dtypes);
	int err = f->full ? YOKE_EUNSUPPORTED :
			    yk_formula_map(&f->formula, dtype, dtypes, f->constant, &f->map);
	return err ? yk_fail(err, "optim_step: the formula of %s makes no map program",
			     kind->name) :
		     0;
}

static struct yk_optim_formula *make(const struct yk_optim_pass *pass,
				     const struct yk_optim_group *g, const struct yk_optim_map *m)
{
	struct yk_optim_formula *f = calloc(1, sizeof *f);
	if (!f) {
		yk_fail(YOKE_ENOMEM, "optim_step: no memory for a formula");
		return NULL;
	}
	f->body = m->text, f->between = m->between, f->given_results = m->results, f->own = m->list;
	f->with = numbers_of(pass);
	append_results(f, g, m);
	append_all(f, pass, g, m);
	take_operands(f, pass, g, m);
	if (!compile(f, pass->o->kind, g->dtype))
		return f;
	free(f);
	return NULL;
}

void yk_optim_formulas_free(struct yk_optim_formula *f)
{
	while (f) {
		struct yk_optim_formula *next = f->next;
		free(f);
		f = next;
	}
}

static struct yk_optim_formula *formula_of(const struct yk_optim_pass *pass,
					   struct yk_optim_group *g, const struct yk_optim_map *m)
{
	const unsigned with = numbers_of(pass);
	struct yk_optim_formula *f = g->formula;
	while (f && (f->body != m->text || f->between != m->between ||
		     f->given_results != m->results || f->own != m->list || f->with != with))
		f = f->next;
	if (!f && (f = make(pass, g, m))) {
		f->next = g->formula;
		g->formula = f;
	}
	return f;
}

// ---- launches ----

struct operands {
	yoke_tensor *const *list[YOKE_MAP_MAX_INPUTS], *number[YOKE_MAP_MAX_INPUTS];
	yoke_tensor *const *to[YOKE_MAP_MAX_OUTPUTS];
};

static bool fill(const struct yk_optim_pass *pass, struct yk_optim_group *g,
		 const struct yk_optim_map *m, struct operands *o, struct yk_list_step *to)
{
	const struct yk_optim_formula *f = formula_of(pass, g, m);
	if (!f)
		return false;
	for (int k = 0; k < f->list_count; k++)
		o->list[k] = list_at(g, m, f->list[k]);
	for (int k = 0; k < f->number_count; k++)
		o->number[k] = number_at(pass, g, m, f->number[k]);
	yoke_tensor **made = m->made;
	for (int k = 0; k < f->result_count; k++) {
		const bool shard =
			f->to[k] == LIST_P && pass->o->sharding.range && !pass->o->sharding.held;
		o->to[k] = shard ? NULL : list_at(g, m, f->to[k]);
		made = shard ? g->made : made; // no map uses both
	}
	*to = (struct yk_list_step){ .what = "optim_step",
				     .formula = &f->formula,
				     .constant = f->constant,
				     .map = &f->map,
				     .n = g->n,
				     .list = o->list,
				     .number = o->number,
				     .to = o->to,
				     .made = made };
	return true;
}

int yk_optim_map(const struct yk_optim_pass *pass, struct yk_optim_group *g,
		 const struct yk_optim_map *m)
{
	struct operands o;
	struct yk_list_step step;
	return fill(pass, g, m, &o, &step) ? yk_list_step(&step) : yk_error_last();
}

yoke_tensor *yk_optim_sum(const struct yk_optim_pass *pass, struct yk_optim_group *g,
			  const struct yk_optim_map *m, int each, bool wide)
{
	struct operands o;
	struct yk_list_step step;
	if (!fill(pass, g, m, &o, &step))
		return NULL;
	step.wide = wide;
	return yk_list_sum(&step, each);
}
