// SPDX-License-Identifier: Apache-2.0
// A bound becomes a pattern of the decimals on one side of it: equal leading digits, a smaller or
// greater digit, then any digits.  The result is the intersection of these patterns with that of
// all numbers.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "schema/number.h"
#include "schema/pattern.h"
#include "yoke.h"

enum { WHOLE = 18, FRACTION = 15, MULTIPLE = 1000 };

#define DIGITS "(0|[1-9][0-9]{0,17})"
// The exponent keeps 18 digits below the largest f64.
#define EXPONENT "([eE]([+]?([0-9]{1,2}|[01][0-9]{2}|2[0-8][0-9])|-[0-9]{1,3}))?"

// The magnitude of a bound in decimal, without leading or trailing zeros.
struct decimal {
	bool negative, huge;   // huge: more than WHOLE digits
	char whole[WHOLE + 2]; // "0" at least
	char fraction[FRACTION + 1];
	int digits, fractions;
};

static int to_decimal(const json_t *x, struct decimal *to, const char **why)
{
	const double v = json_number_value(x);
	char text[40], digit[20];
	int precision = 0, n = 0;

	*to = (struct decimal){ .negative = v < 0 };
	if (json_is_integer(x)) {
		const json_int_t i = json_integer_value(x);
		to->huge = i >= 1000000000000000000 || i <= -1000000000000000000;
		if (!to->huge)
			to->digits = yk_snprintf(to->whole, sizeof to->whole, "%lld",
						 (long long)(i < 0 ? -i : i));
		return 0;
	}
	do { // the shortest decimal that is this number
		yk_snprintf(text, sizeof text, "%.*e", precision, v < 0 ? -v : v);
	} while (yk_strtod(text, NULL) != (v < 0 ? -v : v) && ++precision < 17);
	for (const char *s = text; *s != 'e'; s++)
		if (*s != '.')
			digit[n++] = *s;
	while (n > 1 && digit[n - 1] == '0')
		n--;
	const int exponent = v == 0 ? 0 : (int)strtol(strchr(text, 'e') + 1, NULL, 10);
	to->huge = exponent >= WHOLE;
	if (to->huge)
		return 0;
	for (int i = 0; i <= exponent; i++)
		to->whole[to->digits++] = i < n ? digit[i] : '0';
	if (!to->digits)
		to->whole[to->digits++] = '0';
	const int zeros = exponent < -1 ? -exponent - 1 : 0, from = exponent < 0 ? 0 : exponent + 1;
	if (zeros + n - from > FRACTION) {
		*why = "has more than 15 decimal places";
		return YOKE_EUNSUPPORTED;
	}
	for (int i = 0; i < zeros; i++)
		to->fraction[to->fractions++] = '0';
	for (int i = from; i < n; i++)
		to->fraction[to->fractions++] = digit[i];
	return 0;
}

// A pattern under construction: alternatives.
struct text {
	char s[YK_PATTERN_BYTES];
	size_t n;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	const int n = yk_vsnprintf(t->s + t->n, sizeof t->s - t->n, format, ap);
	va_end(ap);
	t->n += n > 0 && (size_t)n < sizeof t->s - t->n ? (size_t)n : 0;
}

#define REST "([.][0-9]+)?"

// Alternatives for magnitudes up to d.
static void add_upto(struct text *t, const char *sign, const struct decimal *d, bool open)
{
	if (d->huge) {
		add(t, "|%s[0-9]+" REST, sign);
		return;
	}
	if (d->digits > 1)
		add(t, "|%s(0|[1-9][0-9]{0,%d})" REST, sign, d->digits - 2);
	for (int i = 0; i < d->digits; i++) {
		const char low = !i && d->digits > 1 ? '1' : '0';
		if (d->whole[i] > low)
			add(t, "|%s%.*s[%c-%c][0-9]{%d}" REST, sign, i, d->whole, low,
			    d->whole[i] - 1, d->digits - 1 - i);
	}
	for (int i = 0; i < d->fractions; i++) {
		if (i)
			add(t, "|%s%s[.]%.*s", sign, d->whole, i, d->fraction);
		if (d->fraction[i] > '0')
			add(t, "|%s%s[.]%.*s[0-%c][0-9]*", sign, d->whole, i, d->fraction,
			    d->fraction[i] - 1);
	}
	if (d->fractions)
		add(t, "|%s%s", sign, d->whole);
	if (!open)
		add(t, d->fractions ? "|%s%s[.]%s0*" : "|%s%s([.]%s0+)?", sign, d->whole,
		    d->fraction);
}

// Alternatives for magnitudes from d.
static void add_from(struct text *t, const char *sign, const struct decimal *d, bool open)
{
	if (d->huge)
		return;
	add(t, "|%s[1-9][0-9]{%d,}" REST, sign, d->digits);
	for (int i = 0; i < d->digits; i++)
		if (d->whole[i] < '9')
			add(t, "|%s%.*s[%c-9][0-9]{%d}" REST, sign, i, d->whole, d->whole[i] + 1,
			    d->digits - 1 - i);
	for (int i = 0; i < d->fractions; i++)
		if (d->fraction[i] < '9')
			add(t, "|%s%s[.]%.*s[%c-9][0-9]*", sign, d->whole, i, d->fraction,
			    d->fraction[i] + 1);
	const char *dot = d->fractions ? "" : "[.]";
	if (d->fractions)
		add(t, "|%s%s[.]%s%s", sign, d->whole, d->fraction,
		    open ? "[0-9]*[1-9][0-9]*" : "[0-9]*");
	else if (open)
		add(t, "|%s%s%s[0-9]*[1-9][0-9]*", sign, d->whole, dot);
	else
		add(t, "|%s%s(%s[0-9]+)?", sign, d->whole, dot);
}

static int meet_pattern(struct yk_dfa *d, const char *s, size_t n, uint32_t *start,
			const char **why)
{
	uint32_t other = YK_DFA_NONE;
	const int e = yk_pattern_compile(d, s, n, YK_PATTERN_TEXT, &other, why);
	return e < 0 ? e : yk_dfa_meet(d, *start, other, false, start);
}

// Keeps the numbers on one side of a bound.
static int meet_bound(struct yk_dfa *d, const struct decimal *x, bool upper, bool open,
		      uint32_t *start, const char **why)
{
	struct text *t = calloc(1, sizeof *t);
	const bool zero = !x->huge && !x->fractions && !strcmp(x->whole, "0");

	if (!t)
		return YOKE_ENOMEM;
	// A magnitude grows with a number that has no sign and falls with one that has.
	if (upper ? x->negative : !x->negative) {
		add_from(t, x->negative ? "-" : "", x, open);
	} else {
		add_upto(t, x->negative ? "-" : "", x, open);
		if (upper && zero && open)
			add_from(t, "-", x, true);
		else
			add(t, "|%s[0-9]+" REST, x->negative ? "" : "-");
	}
	int e = 0;
	if (t->n)
		e = meet_pattern(d, t->s + 1, t->n - 1, start, why);
	else
		*start = YK_DFA_NONE;
	free(t);
	return e;
}

// Keeps multiples of n, by the remainder of the digits so far.
static int meet_multiple(struct yk_dfa *d, int n, uint32_t *start)
{
	struct yk_nfa a = { 0 };
	uint32_t first, sign, s;
	int e;

	if ((e = yk_nfa_state(&a, &first)) == 0)
		e = yk_nfa_state(&a, &sign);
	for (int i = 0; i < n && e == 0; i++)
		e = yk_nfa_state(&a, &s); // 2 + i
	if (e == 0 && (e = yk_nfa_edge(&a, first, '-', '-', sign)) == 0)
		e = yk_nfa_empty(&a, first, sign);
	for (int i = -1; i < n && e == 0; i++)
		for (int digit = 0; digit < 10 && e == 0; digit++)
			e = yk_nfa_edge(&a, i < 0 ? sign : 2 + (uint32_t)i, (uint8_t)('0' + digit),
					(uint8_t)('0' + digit),
					2 + (uint32_t)(((i < 0 ? 0 : i) * 10 + digit) % n));
	if (e == 0)
		e = yk_dfa_of(d, &a, first, 2, &s);
	yk_nfa_fini(&a);
	return e < 0 ? e : yk_dfa_meet(d, *start, s, false, start);
}

// The number of decimal places that multiples of 0.1, 0.01 .. have; 0: of another number.
static int decimal_places(double multiple)
{
	static const double tenths[] = { 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9 };

	for (int i = 0; i < 9; i++)
		if (multiple == tenths[i])
			return i + 1;
	return 0;
}

int yk_number_compile(struct yk_dfa *d, const struct yk_number_rule *r, uint32_t *start,
		      const char **why)
{
	struct decimal min, max;
	const double multiple = r->multiple ? json_number_value(r->multiple) : 0;
	const bool whole = r->multiple && multiple >= 1 && multiple <= MULTIPLE &&
			   multiple == (double)(int)multiple;
	const bool integer = r->integer || whole;
	const int places = decimal_places(multiple);
	int e = 0, digits = 1;

	if (r->multiple && !whole && !places) {
		*why = "must be 1 .. 1000, or 0.1, 0.01 .. 1e-9";
		return YOKE_EUNSUPPORTED;
	}
	if ((r->min && (e = to_decimal(r->min, &min, why)) < 0) ||
	    (r->max && (e = to_decimal(r->max, &max, why)) < 0))
		return e;
	if (r->min && min.digits > digits)
		digits = min.digits;
	if (r->max && max.digits > digits)
		digits = max.digits;
	// Of up to 15 digits no two decimals are the same f64, so that none is rounded to a bound.
	const bool sign_only = r->min && !r->max && !r->min_open && json_number_value(r->min) == 0;
	const int fraction = FRACTION - digits;
	char base[128];
	if (integer || (fraction < 1 && (r->min || r->max)))
		yk_snprintf(base, sizeof base, "-?" DIGITS);
	else if (places)
		yk_snprintf(base, sizeof base, "-?" DIGITS "([.][0-9]{1,%d})?",
			    places < fraction ? places : fraction);
	else if (sign_only)
		yk_snprintf(base, sizeof base, DIGITS "([.][0-9]{1,20})?" EXPONENT);
	else if (r->min || r->max)
		yk_snprintf(base, sizeof base, "-?" DIGITS "([.][0-9]{1,%d})?", fraction);
	else
		yk_snprintf(base, sizeof base, "-?" DIGITS "([.][0-9]{1,20})?" EXPONENT);
	e = yk_pattern_compile(d, base, strlen(base), YK_PATTERN_TEXT, start, why);
	if (e == 0 && r->min && !(sign_only && !integer && !places))
		e = meet_bound(d, &min, false, r->min_open, start, why);
	if (e == 0 && r->max)
		e = meet_bound(d, &max, true, r->max_open, start, why);
	if (e == 0 && whole && multiple > 1)
		e = meet_multiple(d, (int)multiple, start);
	return e;
}
