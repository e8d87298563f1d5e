// SPDX-License-Identifier: Apache-2.0
// Settings of optimizers: parses options by name and checks their ranges and the rules between
// them.
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "base/param.h"
#include "optim/optim.h"

const struct yk_optim_row yk_optim_rows[YK_OPTIM_OPTION_COUNT] = {
#define O(key, group, level, type, min, max, words, help) \
	{ #key, YK_OPTIM_##type, min, max, words },
	YK_OPTIM_OPTIONS(O) YK_OPTIM_OWN_OPTIONS(O)
#undef O
};

// Rules between options; an option is "on" if it is above 0, or not the first word.
static const struct {
	int option;
	bool needs; // the other must be on, else off
	int other;
} rules[] = {
	{ YK_O_nesterov, true, YK_O_momentum },
	{ YK_O_nesterov, false, YK_O_dampening },
	{ YK_O_clip, false, YK_O_clip_value },
	{ YK_O_window_by, true, YK_O_window },
	{ YK_O_initial, false, YK_O_window },
};

// The value of a key in "key=value ..", and its length; NULL: the key is absent.
static const char *value_of(const char *text, const char *key, size_t *length)
{
	const size_t n = strlen(key);
	for (; *(text += strspn(text, " ")); text += strcspn(text, " "))
		if (!strncmp(text, key, n) && text[n] == '=') {
			*length = strcspn(text + n + 1, " ");
			return text + n + 1;
		}
	return NULL;
}

bool yk_optim_has(const struct yk_optim_kind *k, int option)
{
	size_t n;
	return value_of(k->options, yk_optim_rows[option].name, &n);
}

// The index of a word among the option's words; -1: it is none of them.
static int word_number(const struct yk_optim_row *row, const char *text)
{
	char words[128], *rest = words, *word;
	snprintf(words, sizeof words, "%s", row->words + 1);
	for (int i = 0; (word = strsep(&rest, " ")); i++)
		if (!strcmp(word, text))
			return i;
	return -1;
}

static bool number(const char *text, double *to)
{
	char *end;
	*to = yk_strtod(text, &end);
	return end != text && !*end && *text != ' ';
}

static int parse(const struct yk_optim_kind *k, const char *call, int option, const char *text,
		 double *to)
{
	const struct yk_optim_row *row = &yk_optim_rows[option];
	double x;
	if (row->type == YK_OPTIM_CHOICE) {
		const int n = word_number(row, text);
		if (n < 0)
			return yk_fail(YOKE_EINVAL, "%s: %s: %s=%s: must be one of:%s", call,
				       k->name, row->name, text, row->words);
		*to = n;
		return 0;
	}
	const bool whole = row->type == YK_OPTIM_INT;
	if (!number(text, &x) || !(x >= row->min && x <= row->max) || (whole && x != floor(x)))
		return yk_fail(YOKE_EINVAL, "%s: %s: %s=%s: must be a %snumber from %g to %s%g",
			       call, k->name, row->name, text, whole ? "whole " : "", row->min,
			       row->max == YK_BELOW_1 ? "below " : "", row->max);
	*to = x;
	return 0;
}

size_t yk_optim_value_text(int option, double value, char *to, size_t room)
{
	const struct yk_optim_row *row = &yk_optim_rows[option];
	const char *word = row->words;
	if (row->type != YK_OPTIM_CHOICE)
		return (size_t)(value == YK_OPTIM_NOT_GIVEN ?
					snprintf(to, room, "%s", "") :
					yk_snprintf(to, room, "%.10g", value));
	for (int k = (int)value; k > 0; k--)
		word += 1 + strcspn(word + 1, " ");
	return (size_t)snprintf(to, room, "%.*s", (int)strcspn(word + 1, " "), word + 1);
}

static bool on(const double *option, int i)
{
	return option[i] > 0;
}

static int check(const struct yk_optim_kind *k, const char *call, const double *o)
{
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		const int a = rules[i].option, b = rules[i].other;
		char x[32], y[32];
		if (!yk_optim_has(k, a) || !yk_optim_has(k, b) || !on(o, a) ||
		    on(o, b) == rules[i].needs)
			continue;
		yk_optim_value_text(a, o[a], x, sizeof x);
		yk_optim_value_text(b, o[b], y, sizeof y);
		return yk_fail(YOKE_EINVAL,
			       rules[i].needs ?
				       "%s: %s: %s=%s needs %s above 0, got %s=%s" :
				       "%s: %s: %s=%s does not go with %s above 0, got %s=%s",
			       call, k->name, yk_optim_rows[a].name, x, yk_optim_rows[b].name,
			       yk_optim_rows[b].name, y);
	}
	if (yk_optim_has(k, YK_O_norm_max) && on(o, YK_O_norm_max) &&
	    o[YK_O_norm_max] < o[YK_O_norm_min])
		return yk_fail(YOKE_EINVAL, "%s: %s: no norm is in norm_min=%g .. norm_max=%g",
			       call, k->name, o[YK_O_norm_min], o[YK_O_norm_max]);
	const enum yk_schedule_kind schedule = (enum yk_schedule_kind)o[YK_O_schedule];
	if (yk_schedule_ends(schedule) && o[YK_O_steps] == YK_OPTIM_NOT_GIVEN &&
	    o[YK_O_lr_cycle] == YK_OPTIM_NOT_GIVEN)
		return yk_fail(YOKE_EINVAL, "%s: %s: schedule=%s needs steps, which is not set",
			       call, k->name, yk_schedule_names[schedule]);
	return 0;
}

// The option of a word "key=.."; the error suggests the nearest option of the kind.
static int option_of(const struct yk_optim_kind *k, const char *call, const char *word, size_t n)
{
	const char *names[YK_OPTIM_OPTION_COUNT];
	char key[64], hint[600];
	int count = 0;
	snprintf(key, sizeof key, "%.*s", (int)(n < sizeof key ? n : sizeof key - 1), word);
	for (int i = 0; i < YK_OPTIM_OPTION_COUNT; i++) {
		if (!yk_optim_has(k, i))
			continue;
		names[count++] = yk_optim_rows[i].name;
		if (!strcmp(yk_optim_rows[i].name, key))
			return i;
	}
	yk_fail(YOKE_ENOENT, "%s: %s has no setting '%s'; %s", call, k->name, key,
		yk_hint(key, names, count, hint, sizeof hint));
	return -1;
}

int yk_optim_settings(const struct yk_optim_kind *k, const char *call, const char *text,
		      double *option)
{
	double o[YK_OPTIM_OPTION_COUNT];
	memcpy(o, option, sizeof o);
	for (text = text ? text : ""; *(text += strspn(text, " ")); text += strcspn(text, " ")) {
		const size_t all = strcspn(text, " "), n = strcspn(text, "= ");
		char value[64];
		if (n == all || all - n > sizeof value)
			return yk_fail(YOKE_EINVAL, "%s: setting '%.*s': must be key=value", call,
				       (int)(all < 80 ? all : 80), text);
		snprintf(value, sizeof value, "%.*s", (int)(all - n - 1), text + n + 1);
		const int i = option_of(k, call, text, n);
		if (i < 0)
			return YOKE_ENOENT;
		int err = parse(k, call, i, value, &o[i]);
		if (err)
			return err;
	}
	int err = check(k, call, o);
	if (!err)
		memcpy(option, o, sizeof o);
	return err;
}

void yk_optim_defaults(const struct yk_optim_kind *k, double *option)
{
	for (int i = 0; i < YK_OPTIM_OPTION_COUNT; i++) {
		size_t n = 0;
		char value[32];
		const char *text = value_of(k->options, yk_optim_rows[i].name, &n);
		option[i] = text ? YK_OPTIM_NOT_GIVEN : 0;
		snprintf(value, sizeof value, "%.*s", (int)n, text ? text : "");
		if (n)
			parse(k, "defaults", i, value, &option[i]);
	}
}

const char *yoke_optim_options(const char *kind)
{
	const struct yk_optim_kind *k = kind ? yk_optim_kind_find(kind) : NULL;
	if (!k)
		yk_fail(YOKE_ENOENT, "optim_options: there is no optimizer '%s'", kind ? kind : "");
	return k ? k->options : NULL;
}

struct yk_lr_schedule yk_optim_schedule(const double *o)
{
	const enum yk_schedule_kind kind = (enum yk_schedule_kind)o[YK_O_schedule];
	const int64_t steps = o[YK_O_steps] > 0 ? (int64_t)o[YK_O_steps] : 0;
	const double warmup = o[YK_O_warmup], min = o[YK_O_lr_min], cycle = o[YK_O_lr_cycle];
	return (struct yk_lr_schedule){
		.kind = kind,
		.peak = o[YK_O_lr],
		.steps = steps,
		.min = min == YK_OPTIM_NOT_GIVEN ? yk_schedule_min(kind, o[YK_O_lr]) : min,
		.warmup = warmup == YK_OPTIM_NOT_GIVEN ? yk_schedule_warmup(kind, steps) :
							 (int64_t)warmup,
		.factor = o[YK_O_lr_factor],
		.grow = o[YK_O_lr_cycle_grow],
		.every = (int64_t)o[YK_O_lr_every],
		.cycle = cycle > 0 ? (int64_t)cycle : 0,
	};
}
