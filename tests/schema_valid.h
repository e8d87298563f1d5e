// SPDX-License-Identifier: Apache-2.0
// A validator of JSON Schema for tests, written from the specification and without any part of the
// module that it checks.
#ifndef YK_SCHEMA_VALID_H
#define YK_SCHEMA_VALID_H

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool valid(const json_t *root, const json_t *schema, const json_t *x);

static bool valid_type(const char *type, const json_t *x)
{
	if (!strcmp(type, "integer"))
		return json_is_integer(x) ||
		       (json_is_real(x) && floor(json_real_value(x)) == json_real_value(x));
	if (!strcmp(type, "number"))
		return json_is_number(x);
	if (!strcmp(type, "string"))
		return json_is_string(x);
	if (!strcmp(type, "boolean"))
		return json_is_boolean(x);
	if (!strcmp(type, "null"))
		return json_is_null(x);
	return !strcmp(type, "array") ? json_is_array(x) : json_is_object(x);
}

static bool valid_types(const json_t *types, const json_t *x)
{
	if (json_is_string(types))
		return valid_type(json_string_value(types), x);
	for (size_t i = 0; i < json_array_size(types); i++)
		if (valid_type(json_string_value(json_array_get(types, i)), x))
			return true;
	return false;
}

static bool valid_date(const char *s)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int y, m, d, n = 0;

	if (strlen(s) != 10 || sscanf(s, "%4d-%2d-%2d%n", &y, &m, &d, &n) != 3 || n != 10 ||
	    y < 1 || m < 1 || m > 12 || d < 1)
		return false;
	return d <= days[m - 1] + (m == 2 && ((y % 4 == 0 && y % 100) || y % 400 == 0));
}

static bool valid_format(const char *format, const char *s)
{
	int at[5], n = 0;
	char copy[11];

	if (!strcmp(format, "date"))
		return valid_date(s);
	if (!strcmp(format, "date-time")) {
		snprintf(copy, sizeof copy, "%.10s", s);
		return valid_date(copy) && s[10] == 'T' && valid_format("time", s + 11);
	}
	if (!strcmp(format, "time"))
		return sscanf(s, "%2d:%2d:%2d%n", &at[0], &at[1], &at[2], &n) == 3 && n == 8 &&
		       at[0] < 24 && at[1] < 60 && at[2] < 60 && strpbrk(s + n, "Z+-");
	if (!strcmp(format, "uuid"))
		return strlen(s) == 36 && strspn(s, "0123456789abcdefABCDEF-") == 36 &&
		       s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-';
	if (!strcmp(format, "email"))
		return strchr(s, '@') && strchr(s, '@') > s && strchr(strchr(s, '@'), '.') &&
		       !strchr(s, ' ');
	if (!strcmp(format, "ipv4"))
		return sscanf(s, "%3d.%3d.%3d.%3d%n", &at[0], &at[1], &at[2], &at[3], &n) == 4 &&
		       !s[n] && at[0] < 256 && at[1] < 256 && at[2] < 256 && at[3] < 256;
	return true;
}

// Consists the text of the characters?
static bool made_of(const char *s, const char *chars)
{
	return !s[strspn(s, chars)];
}

#define SMALL "abcdefghijklmnopqrstuvwxyz"

// The patterns of the tests, written by hand.
static bool valid_pattern(const char *pattern, const char *s)
{
	const size_t n = strlen(s);

	if (!strcmp(pattern, "^[a-z]{1,3}$"))
		return n >= 1 && n <= 3 && made_of(s, SMALL);
	if (!strcmp(pattern, "^[a-z ]{1,40}$"))
		return n >= 1 && n <= 40 && made_of(s, SMALL " ");
	if (!strcmp(pattern, "^(ab|cd)*e?$")) {
		while (!strncmp(s, "ab", 2) || !strncmp(s, "cd", 2))
			s += 2;
		return !*s || !strcmp(s, "e");
	}
	if (!strcmp(pattern, "x"))
		return strchr(s, 'x');
	if (!strcmp(pattern, "^[A-Z][a-z]+( [A-Z][a-z]+)*$"))
		for (;; s++) {
			const size_t word = *s >= 'A' && *s <= 'Z' ? strspn(s + 1, SMALL) : 0;
			if (!word)
				return false;
			s += 1 + word;
			if (*s != ' ')
				return !*s;
		}
	if (!strcmp(pattern, "^[^0-9]{2}")) {
		size_t chars = 0;
		for (; *s && chars < 2 && (*s < '0' || *s > '9'); s++)
			chars += ((unsigned char)s[1] & 0xc0) !=
				 0x80; // the last byte of a character
		return chars == 2;
	}
	if (!strcmp(pattern, "[0-9]$"))
		return n && s[n - 1] >= '0' && s[n - 1] <= '9';
	if (!strcmp(pattern, "^[a-c]{2,3}x?$"))
		return strspn(s, "abc") >= 2 && strspn(s, "abc") <= 3 &&
		       made_of(s + strspn(s, "abc"), "x");
	if (!strcmp(pattern, "^a|b$"))
		return *s == 'a' || (n && s[n - 1] == 'b');
	return !strcmp(pattern, "^.{3,}$") && n >= 3;
}

static bool valid_string(const json_t *schema, const char *s)
{
	const json_t *min = json_object_get(schema, "minLength"),
		     *max = json_object_get(schema, "maxLength");
	const char *pattern = json_string_value(json_object_get(schema, "pattern"));
	const char *format = json_string_value(json_object_get(schema, "format"));
	size_t n = 0;

	for (const char *c = s; *c; c++)
		n += ((unsigned char)*c & 0xc0) != 0x80;
	return (!min || n >= (size_t)json_integer_value(min)) &&
	       (!max || n <= (size_t)json_integer_value(max)) &&
	       (!pattern || valid_pattern(pattern, s)) && (!format || valid_format(format, s));
}

static bool valid_number(const json_t *schema, double v)
{
	const json_t *min = json_object_get(schema, "minimum"),
		     *max = json_object_get(schema, "maximum");
	const json_t *above = json_object_get(schema, "exclusiveMinimum"),
		     *below = json_object_get(schema, "exclusiveMaximum");
	const json_t *multiple = json_object_get(schema, "multipleOf");
	const double ratio = multiple ? v / json_number_value(multiple) : 0;

	return (!min || v >= json_number_value(min)) && (!max || v <= json_number_value(max)) &&
	       (!above || v > json_number_value(above)) &&
	       (!below || v < json_number_value(below)) && fabs(ratio - round(ratio)) < 1e-6;
}

static bool valid_array(const json_t *root, const json_t *schema, const json_t *x)
{
	const json_t *prefix = json_object_get(schema, "prefixItems"),
		     *items = json_object_get(schema, "items");
	const json_t *min = json_object_get(schema, "minItems"),
		     *max = json_object_get(schema, "maxItems");
	const size_t n = json_array_size(x);

	for (size_t i = 0; i < n; i++) {
		const json_t *of = i < json_array_size(prefix) ? json_array_get(prefix, i) : items;
		if (of && !valid(root, of, json_array_get(x, i)))
			return false;
	}
	return (!min || n >= (size_t)json_integer_value(min)) &&
	       (!max || n <= (size_t)json_integer_value(max));
}

static bool valid_object(const json_t *root, const json_t *schema, const json_t *x)
{
	const json_t *properties = json_object_get(schema, "properties"),
		     *required = json_object_get(schema, "required");
	const json_t *more = json_object_get(schema, "additionalProperties");
	const char *name;
	json_t *value;

	for (size_t i = 0; i < json_array_size(required); i++)
		if (!json_object_get(x, json_string_value(json_array_get(required, i))))
			return false;
	json_object_foreach ((json_t *)(uintptr_t)x, name, value) {
		const json_t *of = json_object_get(properties, name);
		if ((of || more) && !valid(root, of ? of : more, value))
			return false;
	}
	return true;
}

static bool valid_any(const json_t *root, const json_t *list, const json_t *x)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (valid(root, json_array_get(list, i), x))
			return true;
	return false;
}

static bool valid_equal(const json_t *a, const json_t *b)
{
	return json_is_number(a) && json_is_number(b) ?
		       json_number_value(a) == json_number_value(b) :
		       json_equal(a, b);
}

static bool valid_rest(const json_t *root, const json_t *s, const json_t *x)
{
	const json_t *type = json_object_get(s, "type"), *one = json_object_get(s, "const"),
		     *list = json_object_get(s, "enum");
	const json_t *any = json_object_get(s, "anyOf"), *either = json_object_get(s, "oneOf"),
		     *all = json_object_get(s, "allOf");
	bool listed = !list;

	for (size_t i = 0; i < json_array_size(list); i++)
		listed |= valid_equal(json_array_get(list, i), x);
	for (size_t i = 0; i < json_array_size(all); i++)
		if (!valid(root, json_array_get(all, i), x))
			return false;
	if (!listed || (type && !valid_types(type, x)) || (one && !valid_equal(one, x)) ||
	    (any && !valid_any(root, any, x)) || (either && !valid_any(root, either, x)))
		return false;
	if (json_is_string(x))
		return valid_string(s, json_string_value(x));
	if (json_is_number(x))
		return valid_number(s, json_number_value(x));
	if (json_is_array(x))
		return valid_array(root, s, x);
	return !json_is_object(x) || valid_object(root, s, x);
}

// oneOf counts as anyOf.  References are '#' and '#/$defs/NAME'.
static bool valid(const json_t *root, const json_t *s, const json_t *x)
{
	if (json_is_boolean(s))
		return json_is_true(s);
	const char *ref = json_string_value(json_object_get(s, "$ref"));
	const json_t *to = !ref || !ref[1] ? root :
					     json_object_get(json_object_get(root, "$defs"),
							     strrchr(ref, '/') + 1);
	if (json_is_true(json_object_get(s, "nullable")) && json_is_null(x))
		return true;
	return (!ref || valid(root, to, x)) && valid_rest(root, s, x);
}

#endif
