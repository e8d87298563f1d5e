// SPDX-License-Identifier: Apache-2.0
// One launch over a group: the formula is put together of the row's parts, with what comes before them
// (scale, clipping) and behind (a step that is held back), and takes the lists, numbers and constants
// that it names.
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "optim/optim.h"

enum { TEXT = 2048, NAMES = 320 };

struct formula {
	char text[TEXT], lists[NAMES], numbers[NAMES], constants[NAMES], results[NAMES];
	double constant[YK_OPTIM_OPTION_COUNT];
	yoke_tensor *const *list[YOKE_MAP_MAX_INPUTS], *number[YOKE_MAP_MAX_INPUTS];
	yoke_tensor *const *to[YOKE_MAP_MAX_OUTPUTS];
	int list_count, number_count, constant_count;
	bool full, assigns; // has results that are variables
};

// The table's texts are bounded: what does not fit would be a new row's fault, and fails the step.
static void add(struct formula *f, char *to, size_t room, const char *text)
{
	const size_t n = strlen(to);
	f->full |= n + strlen(text) + 1 > room;
	snprintf(to + n, room - n, "%s", text);
}

static void say(struct formula *f, const char *text)
{
	add(f, f->text, sizeof f->text, text);
}

static void add_name(struct formula *f, char *to, const char *name)
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

// The tensors of a list by its name in formulas; NULL: it is none.
static yoke_tensor *const *list_of(const struct yk_optim_group *g, const struct yk_optim_map *m, const char *name)
{
	if (m->list && !strcmp(name, m->list))
		return m->of;
	for (int k = 0; k < g->states; k++)
		if (!strcmp(name, g->list[k]))
			return g->state[k];
	return !strcmp(name, "p") ? g->p : !strcmp(name, "g") ? g->g : !strcmp(name, "P") ? g->P :
	       !strcmp(name, "w") && g->window ? g->state[g->states + m->slot] : NULL;
}

static void take_list(struct formula *f, const struct yk_optim_group *g, const struct yk_optim_map *m,
		      const char *name)
{
	yoke_tensor *const *list = list_of(g, m, name);
	if (!list || (f->list_count && !names(f->text, name)))
		return;
	add_name(f, f->lists, name);
	f->list[f->list_count++] = list;
}

static void take_number(struct formula *f, const char *name, yoke_tensor *value)
{
	if (!name || !names(f->text, name))
		return;
	add_name(f, f->numbers, name);
	f->number[f->number_count++] = value;
}

static void take_operands(struct formula *f, const struct yk_optim_pass *pass, const struct yk_optim_group *g,
			  const struct yk_optim_map *m)
{
	const struct yk_optim_kind *kind = pass->o->kind;
	take_list(f, g, m, "p"); // the first, so in any case
	take_list(f, g, m, "g");
	for (int k = 0; k < g->states; k++)
		take_list(f, g, m, g->list[k]);
	take_list(f, g, m, "w");
	take_list(f, g, m, "P");
	if (m->list)
		take_list(f, g, m, m->list);
	take_number(f, "lr", g->lr);
	for (int k = 0; k < YK_OPTIM_NUMBERS; k++)
		take_number(f, kind->number[k].name, g->number[k]);
	take_number(f, "scale", pass->scale);
	take_number(f, "skip", pass->skip);
	take_number(f, "total", pass->total);
	take_number(f, "latched", pass->latched);
	take_number(f, "beta", pass->beta);
	for (int k = 0; k < 2; k++)
		take_number(f, m->number[k], m->value[k]);
	for (int k = 0; k < YK_OPTIM_OPTION_COUNT; k++)
		if (k != YK_O_lr && names(f->text, yk_optim_rows[k].name)) {
			add_name(f, f->constants, yk_optim_rows[k].name);
			f->constant[f->constant_count++] = g->option[k];
		}
}

// ---- text ----

// The gradient, scaled and clipped.
static void say_gradient(struct formula *f, const struct yk_optim_pass *pass, const struct yk_optim_group *g)
{
	if (pass->scale != YOKE_NONE)
		say(f, "g = g * scale;");
	if (g->option[YK_O_clip] > 0)
		say(f, "g = g * min(clip / (sqrt(total) + 1 / 1000000), 1);");
	if (g->option[YK_O_clip_value] > 0)
		say(f, "g = min(max(g, 0 - clip_value), clip_value);");
}

static void say_body(struct formula *f, const struct yk_optim_pass *pass, const struct yk_optim_group *g,
		     const struct yk_optim_map *m)
{
	const struct yk_optim_part *part = pass->o->kind->part;
	if (m->text) {
		say(f, m->text);
		return;
	}
	for (; part->text; part++)
		if (yk_optim_takes(part, g->option))
			say(f, strcmp(part->text, YK_OPTIM_BETWEEN) ? part->text : m->between);
}

// "old_p = p;" for each result that a step may leave as it was, or what leaves it so.
static void say_kept(struct formula *f, const struct yk_optim_group *g, const struct yk_optim_map *m, bool behind)
{
	char rest[NAMES], *at = rest, *name, line[96];
	snprintf(rest, sizeof rest, "%s", f->results);
	while ((name = strsep(&at, " "))) {
		if (!list_of(g, m, name))
			continue;
		snprintf(line, sizeof line, behind ? "%s = select(go, %s, old_%s);" : "old_%s = %s;", name, name, name);
		say(f, line);
	}
}

static void say_all(struct formula *f, const struct yk_optim_pass *pass, const struct yk_optim_group *g,
		    const struct yk_optim_map *m)
{
	const bool skips = pass->skip != YOKE_NONE, checks = pass->latched != YOKE_NONE;
	const bool keeps = f->assigns && (skips || checks);
	if (keeps)
		say_kept(f, g, m, false);
	if (!m->text || names(m->text, "g"))
		say_gradient(f, pass, g);
	say_body(f, pass, g, m);
	if (!keeps)
		return;
	say(f, skips && checks ? "go = and(eq(skip, 0), and(isfinite(total), isfinite(latched)));" :
	       skips           ? "go = eq(skip, 0);" :
				 "go = and(isfinite(total), isfinite(latched));");
	say_kept(f, g, m, true);
}

static void say_results(struct formula *f, const struct yk_optim_group *g, const struct yk_optim_map *m)
{
	char rest[NAMES], *at = rest, *name;
	int count = 0;
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
	while ((name = strsep(&at, " ")) && count < YOKE_MAP_MAX_OUTPUTS) {
		f->to[count] = list_of(g, m, name);
		f->assigns |= f->to[count++] != NULL;
	}
}

// ---- launches ----

static struct formula *formula_of(const struct yk_optim_pass *pass, const struct yk_optim_group *g,
				  const struct yk_optim_map *m, struct yk_formula *to, struct yk_list_step *step)
{
	struct formula *f = calloc(1, sizeof *f);
	if (!f) {
		yk_fail(YOKE_ENOMEM, "optim_step: no memory for a formula");
		return NULL;
	}
	say_results(f, g, m);
	say_all(f, pass, g, m);
	take_operands(f, pass, g, m);
	if (f->full) {
		yk_fail(YOKE_EUNSUPPORTED, "optim_step: the formula of %s is too long", pass->o->kind->name);
		free(f);
		return NULL;
	}
	*to = (struct yk_formula){ pass->o->kind->name, f->lists, f->numbers, f->constants, f->results, f->text };
	*step = (struct yk_list_step){ "optim_step", to, f->constant, g->n, f->list, f->number, f->to, m->made };
	return f;
}

int yk_optim_map(const struct yk_optim_pass *pass, const struct yk_optim_group *g, const struct yk_optim_map *m)
{
	struct yk_formula formula;
	struct yk_list_step step;
	struct formula *f = formula_of(pass, g, m, &formula, &step);
	int err = f ? yk_list_step(&step) : yk_error_last();
	free(f);
	return err;
}

yoke_tensor *yk_optim_sum(const struct yk_optim_pass *pass, const struct yk_optim_group *g,
			  const struct yk_optim_map *m, int each)
{
	struct yk_formula formula;
	struct yk_list_step step;
	struct formula *f = formula_of(pass, g, m, &formula, &step);
	yoke_tensor *sum = f ? yk_list_sum(&step, each) : NULL;
	free(f);
	return sum;
}
