// SPDX-License-Identifier: Apache-2.0
// Parses ENVI headers, which are untrusted: the text is scanned once, and values are bounded before
// use.
#include "config.h"

#include "data/envi.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/kind.h"
#include "base/log.h"
#include "base/number.h"

const char *const yk_interleave_names[] = { "bsq", "bil", "bip" };

static const struct yk_envi_type types[] = {
	{ 1, "u8", 'u', 1 },   { 2, "i16", 'i', 2 },  { 3, "i32", 'i', 4 },
	{ 4, "f32", 'f', 4 },  { 5, "f64", 'f', 8 },  { 12, "u16", 'u', 2 },
	{ 13, "u32", 'u', 4 }, { 14, "i64", 'i', 8 }, { 15, "u64", 'u', 8 },
};
#define TYPES (sizeof types / sizeof *types)

const struct yk_envi_type *yk_envi_type(int number)
{
	for (size_t i = 0; i < TYPES; i++)
		if (types[i].number == number)
			return &types[i];
	return NULL;
}

const struct yk_envi_type *yk_envi_type_named(const char *name)
{
	for (size_t i = 0; name && i < TYPES; i++)
		if (!strcmp(types[i].name, name))
			return &types[i];
	return NULL;
}

struct scan {
	const char *path, *at, *end;
	bool unpaired; // a brace is never closed: from there on values end at the end of the line
};

// A key and its value, without surrounding blanks and braces.
struct entry {
	char key[64];
	const char *value, *value_end;
	bool braces;
};

static int bad(const struct scan *s, const char *key, const char *why)
{
	return yk_fail(YOKE_EFORMAT, "%s: cannot be read as an ENVI header: %s: %s", s->path, key,
		       why);
}

static void line_end(const struct scan *s, const char **end)
{
	while (*end < s->end && **end != '\n' && **end != '\r')
		++*end;
}

// Finds the brace that closes the one before s->at, skipping nested pairs; if braces are not
// balanced, the first one at the end of a line.  NULL: none.
static const char *closing(struct scan *s, const char *at)
{
	int depth = 1;
	for (const char *p = at; p < s->end && !s->unpaired; p++) {
		depth += *p == '{' ? 1 : *p == '}' ? -1 : 0;
		if (!depth)
			return p;
	}
	s->unpaired = true;
	for (const char *p = at; (p = memchr(p, '}', (size_t)(s->end - p))); p++) {
		const char *rest = p + 1;
		while (rest < s->end && (*rest == ' ' || *rest == '\t'))
			rest++;
		if (rest == s->end || *rest == '\n' || *rest == '\r')
			return p;
	}
	return NULL;
}

// Reads the next entry; 0: there is none.
static int next(struct scan *s, struct entry *e)
{
	const char *brace;
	while (s->at < s->end) {
		const char *end = s->at, *begin = s->at, *equals;
		line_end(s, &end);
		while (begin < end && isspace((unsigned char)*begin))
			begin++;
		if (begin == end || *begin == ';') {
			s->at = end + (end < s->end);
			continue;
		}
		equals = memchr(begin, '=', (size_t)(end - begin));
		if (!equals) {
			s->at = end + (end < s->end); // a line without a key is ignored
			continue;
		}
		const char *last = equals;
		size_t n = 0;
		while (last > begin && isspace((unsigned char)last[-1]))
			last--;
		for (const char *p = begin; p < last && n + 1 < sizeof e->key; p++)
			if (!isspace((unsigned char)*p) || (n && e->key[n - 1] != ' '))
				e->key[n++] =
					isspace((unsigned char)*p) ? ' ' : yk_small_letter(*p);
		e->key[n] = 0;
		e->value = equals + 1;
		while (e->value < end && isspace((unsigned char)*e->value))
			e->value++;
		brace = e->value;
		// the brace may be on the next line
		while (brace < s->end && isspace((unsigned char)*brace))
			brace++;
		e->braces =
			brace < s->end && *brace == '{' && (e->value == end || brace == e->value);
		if (e->braces) {
			e->value = brace + 1;
			end = closing(s, e->value);
			if (!end)
				return bad(s, e->key, "its { is never closed");
			s->at = end + 1;
			line_end(s, &s->at);
		} else {
			s->at = end + (end < s->end);
		}
		e->value_end = end;
		while (e->value_end > e->value && isspace((unsigned char)e->value_end[-1]))
			e->value_end--;
		return 1;
	}
	return 0;
}

// Copies a value that is a single word.
static bool text_of(const struct entry *e, char *to, size_t room)
{
	const size_t n = (size_t)(e->value_end - e->value);
	if (n >= room || memchr(e->value, 0, n))
		return false;
	memcpy(to, e->value, n);
	to[n] = 0;
	return true;
}

static int whole(const struct scan *s, const struct entry *e, int64_t min, int64_t max, int64_t *to)
{
	char word[32], *end = word, why[100];
	errno = 0;
	const long long n = text_of(e, word, sizeof word) && *word ? strtoll(word, &end, 10) : min;
	snprintf(why, sizeof why, "must be a whole number from %" PRId64 " to %" PRId64, min, max);
	if (end == word || *end || errno || n < min || n > max)
		return bad(s, e->key, why);
	*to = n;
	return 0;
}

static int real(const struct scan *s, const struct entry *e, double *to)
{
	char word[64];
	return text_of(e, word, sizeof word) && yk_number_or_nan(word, to) ?
		       0 :
		       bad(s, e->key, "must be a number");
}

static bool is_flag(const char *word, double *to)
{
	*to = yk_same_word(word, "true");
	return *to != 0 || yk_same_word(word, "false");
}

// Finds the next item of a list from *at on, without blanks and comment lines around it, and moves
// *at past its comma, or to `end`.  False: no item is left, as after a trailing comma.
static bool next_item(const char **at, const char *end, struct entry *item)
{
	const char *from = *at;
	for (;;) {
		while (from < end && isspace((unsigned char)*from))
			from++;
		if (from == end || *from != ';')
			break;
		while (from < end && *from != '\n')
			from++;
	}
	const char *comma = from < end ? memchr(from, ',', (size_t)(end - from)) : NULL,
		   *last = comma ? comma : end;
	while (last > from && isspace((unsigned char)last[-1]))
		last--;
	*item = (struct entry){ .value = from, .value_end = last };
	*at = comma ? comma + 1 : end;
	return comma || last > from;
}

// Parses `count` comma-separated numbers, or flags written as true and false; the caller frees the
// list.
static int list(const struct scan *s, const struct entry *e, int64_t count, double **to)
{
	const char *at = e->value;
	struct entry item;
	double *x = malloc((size_t)count * sizeof *x);
	int64_t n = 0;
	bool good = true;
	if (!x)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for %s", s->path, e->key);
	for (; good && next_item(&at, e->value_end, &item); n++) {
		char word[64];
		double one = 0;
		good = text_of(&item, word, sizeof word) &&
		       (yk_number(word, &one) || is_flag(word, &one));
		if (n < count)
			x[n] = one;
	}
	if (!good || n != count) {
		char why[100];
		snprintf(why, sizeof why,
			 good ? "has %" PRId64 " numbers for %" PRId64 " bands" :
				"item %" PRId64 " is not a number",
			 n, count);
		free(x);
		return bad(s, e->key, why);
	}
	*to = x;
	return 0;
}

enum { SAMPLES = 1, LINES = 2, BANDS = 4, TYPE = 8, INTERLEAVE = 16, NEEDED = 31 };

static int take_type(const struct scan *s, const struct entry *e, struct yk_envi *to)
{
	int64_t number;
	int err = whole(s, e, 0, 1000, &number);
	if (err)
		return err;
	to->type = yk_envi_type((int)number);
	if (number == 6 || number == 9)
		return yk_fail(YOKE_EUNSUPPORTED,
			       "%s: data type: %d is complex, which is not supported", s->path,
			       (int)number);
	return to->type ? 0 : bad(s, e->key, "unknown type; must be 1 2 3 4 5 12 13 14 or 15");
}

static int take_interleave(const struct scan *s, const struct entry *e, struct yk_envi *to)
{
	char word[16];
	for (int i = 0; text_of(e, word, sizeof word) && i < 3; i++)
		if (yk_same_word(word, yk_interleave_names[i])) {
			to->interleave = (enum yk_interleave)i;
			return 0;
		}
	return bad(s, e->key, "must be bsq, bil or bip");
}

static int take_zero(const struct scan *s, const struct entry *e, const char *why)
{
	int64_t n;
	int err = whole(s, e, 0, INT64_MAX, &n);
	return err || !n ? err : yk_fail(YOKE_EUNSUPPORTED, "%s: %s: %s", s->path, e->key, why);
}

// Does the value consist of one or more zeros only?
static bool zeros(const struct entry *e)
{
	const char *at = e->value;
	while (at < e->value_end && *at && strchr("0, \t\r\n", *at))
		at++;
	return at == e->value_end && memchr(e->value, '0', (size_t)(at - e->value));
}

// Keys that locate the scene; files of results with the same lines and samples inherit them.
static bool locates_scene(const char *key)
{
	static const char *const keys[] = {
		"map info",   "projection info", "coordinate system string",
		"geo points", "rpc info",        "x start",
		"y start",    "pixel size"
	};
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (!strcmp(key, keys[i]))
			return true;
	return false;
}

// Appends the entry to the scene's lines.
static int keep_line(const struct scan *s, const struct entry *e, struct yk_envi *to)
{
	const int n = (int)(e->value_end - e->value);
	char *more;
	if (memchr(e->value, 0, (size_t)n) || n > YK_ENVI_LINE)
		return bad(s, e->key, "is too long, or contains a NUL byte");
	if (asprintf(&more, "%s%s = %s%.*s%s\n", to->scene ? to->scene : "", e->key,
		     e->braces ? "{" : "", n, e->value, e->braces ? "}" : "") < 0)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for %s", s->path, e->key);
	free(to->scene);
	to->scene = more;
	return 0;
}

// Processes one entry.  Lists are deferred until the number of bands is known.
static int take(const struct scan *s, const struct entry *e, struct yk_envi *to, int *seen)
{
	static const struct {
		const char *key;
		int bit;
	} needed[] = { { "samples", SAMPLES },
		       { "lines", LINES },
		       { "bands", BANDS },
		       { "data type", TYPE },
		       { "interleave", INTERLEAVE } };
	int64_t n;
	int err;
	if (e->value == e->value_end) // treated as missing
		return 0;
	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
		if (strcmp(e->key, needed[i].key))
			continue;
		if (*seen & needed[i].bit)
			return bad(s, e->key, "is there twice");
		*seen |= needed[i].bit;
		switch (needed[i].bit) {
		case SAMPLES: return whole(s, e, 1, INT32_MAX, &to->samples);
		case LINES: return whole(s, e, 1, INT32_MAX, &to->lines);
		case BANDS: return whole(s, e, 1, YK_ENVI_BANDS, &to->bands);
		case TYPE: return take_type(s, e, to);
		default: return take_interleave(s, e, to);
		}
	}
	if (!strcmp(e->key, "header offset")) {
		err = whole(s, e, 0, INT64_MAX, &n);
		to->offset = err ? 0 : (uint64_t)n;
		return err;
	}
	if (!strcmp(e->key, "byte order")) {
		err = whole(s, e, 0, 1, &n);
		to->big = !err && n;
		return err;
	}
	if (!strcmp(e->key, "reflectance scale factor")) {
		err = real(s, e, &to->scale);
		return err || (isfinite(to->scale) && to->scale > 0) ?
			       err :
			       bad(s, e->key, "must be above 0");
	}
	if (!strcmp(e->key, "wavelength units")) {
		if (!text_of(e, to->units, sizeof to->units) || strpbrk(to->units, "\r\n"))
			to->units[0] = 0;
		return 0;
	}
	if (locates_scene(e->key))
		return keep_line(s, e, to);
	if (!strcmp(e->key, "file compression"))
		return take_zero(s, e, "compressed data are not supported");
	if (!strcmp(e->key, "major frame offsets") || !strcmp(e->key, "minor frame offsets"))
		return zeros(e) ?
			       0 :
			       yk_fail(YOKE_EUNSUPPORTED, "%s: %s: frame offsets are not supported",
				       s->path, e->key);
	return 0;
}

// Frees a list if each of its values is `what`, which has no effect.
static void drop_list(double **list, int64_t n, double what)
{
	int64_t same = 0;
	while (*list && same < n && (*list)[same] == what)
		same++;
	if (same < n)
		return;
	free(*list);
	*list = NULL;
}

// Converts an integer to an element of the type; false: out of range.
static bool whole_element(const struct yk_envi_type *t, bool minus, uint64_t n, uint64_t *to)
{
	const int bits = 8 * t->width;
	const uint64_t max = t->kind == 'i' ? ((uint64_t)1 << (bits - 1)) - !minus :
			     minus          ? 0 :
					      UINT64_MAX >> (64 - bits);
	const uint64_t all = minus ? 0 - n : n;
	const uint32_t word = (uint32_t)all;
	const uint16_t half = (uint16_t)all;
	const uint8_t byte = (uint8_t)all;
	memcpy(to,
	       t->width == 8 ? (const void *)&all :
	       t->width == 4 ? (const void *)&word :
	       t->width == 2 ? (const void *)&half :
			       &byte,
	       (size_t)t->width);
	return n <= max;
}

// Converts the ignore value to an element: rounded for floating-point types, exact for integers.
static int take_ignored(const struct scan *s, const struct entry *e, struct yk_envi *to)
{
	char word[64];
	double v;
	int err = real(s, e, &v);
	if (err)
		return err;
	float f = (float)v;
	if (isinf(f) && fabs(v) < 3.41e38) // the max of f32, printed with too few digits
		f = copysignf(FLT_MAX, f);
	if (to->type->kind == 'f') {
		memcpy(&to->ignored, to->type->width == 4 ? (const void *)&f : &v,
		       (size_t)to->type->width);
		to->ignore = to->type->width == 4 ? (double)f : v;
		to->ignores = true;
		return 0;
	}
	text_of(e, word, sizeof word);
	const bool minus = *word == '-';
	const char *digits = word + (minus || *word == '+');
	char *end;
	errno = 0;
	uint64_t n = strtoull(digits, &end, 10);
	bool is_whole = end > digits && !*end && !errno;
	if (!is_whole && fabs(v) < 0x1p63 && v == rint(v)) { // "255.0", "1e3"
		n = (uint64_t)fabs(v);
		is_whole = true;
	}
	to->ignores = is_whole && whole_element(to->type, minus && n, n, &to->ignored);
	to->ignore = to->ignores ? v : NAN;
	if (!to->ignores)
		yk_warn("data",
			"%s: data ignore value = %s cannot be represented in %s: no pixel is ignored",
			s->path, word, to->type->name);
	return 0;
}

// Parses a list that is not needed to read the cube; an invalid one is ignored with a warning.
static int optional_list(const struct scan *s, const struct entry *e, int64_t count, double **to)
{
	struct yk_error_aside *aside = yk_error_aside();
	int err = list(s, e, count, to);
	if (err == YOKE_EFORMAT) {
		yk_warn("data", "%s; it is ignored", yoke_error());
		err = 0;
	}
	if (!err || aside) // otherwise an earlier error is kept
		yk_error_restore(aside);
	return err;
}

static int take_lists(struct scan *s, struct yk_envi *to)
{
	struct entry e;
	int err;
	while ((err = next(s, &e)) > 0) {
		double *flags = NULL;
		if (e.value == e.value_end)
			continue;
		if (!strcmp(e.key, "data ignore value"))
			err = take_ignored(s, &e, to);
		else if (!strcmp(e.key, "wavelength") && !to->wavelength)
			err = optional_list(s, &e, to->bands, &to->wavelength);
		else if (!strcmp(e.key, "bbl") && !to->good &&
			 !(err = optional_list(s, &e, to->bands, &flags)))
			to->odd_bbl = !flags;
		else if (!strcmp(e.key, "data gain values") && !to->gain)
			err = list(s, &e, to->bands, &to->gain);
		else if (!strcmp(e.key, "data offset values") && !to->shift)
			err = list(s, &e, to->bands, &to->shift);
		if (err < 0)
			return err;
		if (!flags)
			continue;
		to->good = malloc((size_t)to->bands);
		for (int64_t i = 0; to->good && i < to->bands; i++)
			to->good[i] = flags[i] != 0;
		free(flags);
		if (!to->good)
			return yk_fail(YOKE_ENOMEM, "%s: no memory for bbl", s->path);
	}
	drop_list(&to->gain, to->bands, 1);
	drop_list(&to->shift, to->bands, 0);
	// no specification defines which of the two is applied first
	if (!err && to->scale != 1 && (to->gain || to->shift))
		return yk_fail(YOKE_EUNSUPPORTED, "%s: has both a reflectance scale factor and "
			"data gain or offset values; remove one of them", s->path);
	return err;
}

static int parse(struct scan *s, struct yk_envi *to)
{
	static const char *const names[] = { "samples", "lines", "bands", "data type",
					     "interleave" };
	struct entry e;
	int seen = 0, err;
	const char *begin;
	while (s->at < s->end && isspace((unsigned char)*s->at))
		s->at++;
	if (s->end - s->at < 4 || !yk_same_words(s->at, "ENVI", 4) ||
	    (s->end - s->at > 4 && !isspace((unsigned char)s->at[4])))
		return yk_file_refused(s->path, s->at, (size_t)(s->end - s->at), "an ENVI header",
				       "its first line is not 'ENVI'");
	line_end(s, &s->at);
	begin = s->at;
	while ((err = next(s, &e)) > 0)
		if ((err = take(s, &e, to, &seen)) < 0)
			return err;
	for (int i = 0; i < 5 && !err; i++)
		if (!(seen >> i & 1))
			err = bad(s, names[i], "is not there");
	if (err)
		return err;
	to->bytes = (uint64_t)to->type->width;
	if (__builtin_mul_overflow(to->bytes, (uint64_t)to->samples, &to->bytes) ||
	    __builtin_mul_overflow(to->bytes, (uint64_t)to->lines, &to->bytes) ||
	    __builtin_mul_overflow(to->bytes, (uint64_t)to->bands, &to->bytes) ||
	    to->bytes > INT64_MAX / 16 || to->offset > INT64_MAX / 2)
		return bad(s, "lines", "the cube is too large");
	s->at = begin;
	s->unpaired = false;
	return take_lists(s, to);
}

int yk_envi_parse(struct yk_envi *to, const char *path, const char *text, size_t length)
{
	struct scan s = { .path = path, .at = text, .end = text + length };
	*to = (struct yk_envi){ .scale = 1, .ignore = NAN };
	int err = parse(&s, to);
	if (err)
		yk_envi_fini(to);
	return err;
}

void yk_envi_fini(struct yk_envi *e)
{
	free(e->wavelength);
	free(e->good);
	free(e->gain);
	free(e->shift);
	free(e->scene);
	e->wavelength = e->gain = e->shift = NULL;
	e->scene = NULL;
	e->good = NULL;
}

char *yk_envi_text(const struct yk_envi *e)
{
	char *text = NULL;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);
	if (!f)
		return NULL;
	yk_fprintf(
		f,
		"ENVI\ndescription = {written by yoke}\nsamples = %" PRId64 "\nlines = %" PRId64
		"\nbands = %" PRId64
		"\nheader offset = 0\nfile type = ENVI Standard\ndata type = %d\ninterleave = %s\nbyte order = %d\n",
		e->samples, e->lines, e->bands, e->type->number, yk_interleave_names[e->interleave],
		e->big);
	if (!isnan(e->ignore))
		yk_fprintf(f, "data ignore value = %.17g\n", e->ignore);
	if (e->scale != 1)
		yk_fprintf(f, "reflectance scale factor = %.17g\n", e->scale);
	for (int64_t i = 0; e->wavelength && i < e->bands; i++)
		yk_fprintf(f, "%s%.17g%s", i ? ", " : "wavelength = {", e->wavelength[i],
			   i + 1 == e->bands ? "}\n" : "");
	if (e->wavelength && *e->units)
		fprintf(f, "wavelength units = %s\n", e->units);
	if (e->scene)
		fputs(e->scene, f);
	if (fclose(f)) {
		free(text);
		text = NULL;
	}
	return text;
}
