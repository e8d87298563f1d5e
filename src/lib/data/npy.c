// SPDX-License-Identifier: Apache-2.0
// Headers of .npy files (NumPy's NEP 1, versions 1.0, 2.0 and 3.0), which are parsed strictly: a
// dict with exactly descr, fortran_order and shape, each once.  Nothing is evaluated, and object
// arrays are refused.
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/endian.h"
#include "base/error.h"
#include "base/kind.h"
#include "base/scan.h"
#include "data/part.h"

struct scan {
	const char *path, *at, *end;
};

static int bad(const struct scan *s, const char *why)
{
	return yk_fail(YOKE_EFORMAT, "%s: cannot be read as a .npy file: %s", s->path, why);
}

static void blanks(struct scan *s)
{
	while (s->at < s->end && *s->at == ' ')
		s->at++;
}

static bool is(struct scan *s, char c)
{
	blanks(s);
	if (s->at == s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

static bool word(struct scan *s, const char *w)
{
	const size_t n = strlen(w);
	blanks(s);
	if ((size_t)(s->end - s->at) < n || memcmp(s->at, w, n))
		return false;
	s->at += n;
	return true;
}

// Parses a string in single or double quotes, without escapes.
static bool string(struct scan *s, const char **to, size_t *length)
{
	const char quote = is(s, '\'') ? '\'' : is(s, '"') ? '"' : 0;
	const char *begin = s->at;
	if (!quote)
		return false;
	while (s->at < s->end && *s->at != quote && *s->at != '\\')
		s->at++;
	*to = begin;
	*length = (size_t)(s->at - begin);
	return s->at < s->end && *s->at++ == quote;
}

static int read_descr(struct scan *s, struct yk_npy *to)
{
	const char *d;
	size_t n;
	if (!string(s, &d, &n))
		return bad(s, "descr is not a string: structured arrays are not supported");
	if (n >= 2 && d[1] == 'O') // NumPy writes no width for objects
		return yk_fail(YOKE_EUNSUPPORTED,
			       "%s: holds pickled objects, which are never loaded", s->path);
	if (n < 3 || n > 4 || !strchr("<>|=", *d) || d[2] < '0' || d[2] > '9')
		return bad(s, "descr is an unknown type");
	to->big = *d == '>' || (*d == '=' && YK_HOST_BIG);
	to->element = n == 3 ? yk_element_of(d[1], d[2] - '0') : NULL;
	if (to->element)
		return 0;
	return yk_fail(
		YOKE_EUNSUPPORTED,
		"%s: elements of type '%.*s' are not supported; save it as one of b1, i1, i2, i4, i8, "
		"u1, u2, u4, u8, f2, f4, f8",
		s->path, (int)n, d);
}

static int read_number(struct scan *s, int64_t *to)
{
	blanks(s);
	const char *first = s->at;
	if (!yk_scan_digits(&s->at, s->end, to))
		return bad(s, "a dim exceeds 2^63 - 1");
	return s->at > first ? 0 : bad(s, "shape is not a tuple of numbers");
}

static int read_shape(struct scan *s, struct yk_npy *to)
{
	bool comma = true;
	if (!is(s, '('))
		return bad(s, "shape is not a tuple of numbers");
	while (!is(s, ')')) {
		if (!comma)
			return bad(s, "shape is not a tuple of numbers");
		if (to->rank == YOKE_MAX_RANK)
			return bad(s, "more than 8 axes");
		int e = read_number(s, &to->dims[to->rank]);
		if (e < 0)
			return e;
		to->rank++;
		comma = is(s, ',');
	}
	if (to->rank == 1 && !comma) // "(3)" is a number, not a tuple
		return bad(s, "shape is not a tuple of numbers");
	return 0;
}

static int read_dict(struct scan *s, struct yk_npy *to)
{
	enum { DESCR = 1, ORDER = 2, SHAPE = 4, ALL = 7 };
	int seen = 0, e = 0;
	bool comma = true;
	if (!is(s, '{'))
		return bad(s, "its header is not a dict");
	while (!is(s, '}')) {
		const char *key;
		size_t n;
		int which;
		if (!comma || !string(s, &key, &n) || !is(s, ':'))
			return bad(s, "its header is not a dict");
		if (n == 5 && !memcmp(key, "descr", n)) {
			which = DESCR;
			e = read_descr(s, to);
		} else if (n == 13 && !memcmp(key, "fortran_order", n)) {
			which = ORDER;
			to->fortran = word(s, "True");
			e = to->fortran || word(s, "False") ?
				    0 :
				    bad(s, "fortran_order is neither True nor False");
		} else if (n == 5 && !memcmp(key, "shape", n)) {
			which = SHAPE;
			e = seen & SHAPE ? 0 : read_shape(s, to);
		} else {
			return bad(s, "a key other than descr, fortran_order and shape");
		}
		if (e < 0)
			return e;
		if (seen & which)
			return bad(s, "a duplicate key");
		seen |= which;
		comma = is(s, ',');
	}
	if (seen != ALL)
		return bad(s, "descr, fortran_order or shape is missing");
	for (; s->at < s->end; s->at++)
		if (*s->at != ' ' && *s->at != '\n')
			return bad(s, "trailing characters after the dict");
	return 0;
}

// There must be rows, and the file must contain all their bytes.
static int check(const struct scan *s, const struct yk_npy *n, uint64_t bytes)
{
	uint64_t need = (uint64_t)n->element->width;
	if (n->rank == 0)
		return bad(s, "it is a scalar, without rows");
	for (int k = 0; k < n->rank; k++) {
		if (n->dims[k] == 0)
			return bad(s, "it has no elements");
		if (__builtin_mul_overflow(need, (uint64_t)n->dims[k], &need))
			return bad(s, "its shape is too large");
	}
	if (need <= bytes - n->offset)
		return 0;
	return yk_fail(YOKE_EFORMAT, "%s: its shape needs %llu bytes, but %llu follow the header",
		       s->path, (unsigned long long)need, (unsigned long long)(bytes - n->offset));
}

int yk_npy_header(struct yk_npy *to, const char *path, const char *text, size_t length,
		  uint64_t bytes)
{
	struct scan s = { path, text, text + length };
	struct yk_npy n = { 0 };
	const unsigned char *u = (const unsigned char *)text;
	if (length < 10 || memcmp(text, "\x93NUMPY", 6))
		return yk_file_refused(path, text, length, "a .npy file that can be read",
				       "it has no .npy signature");
	if (u[6] < 1 || u[6] > 3 || u[7])
		return bad(&s, "its version is not 1.0, 2.0 or 3.0");
	uint64_t header = (uint64_t)u[8] | (uint64_t)u[9] << 8;
	n.offset = 10;
	if (u[6] > 1) {
		if (length < 12)
			return bad(&s, "its header is cut");
		header |= (uint64_t)u[10] << 16 | (uint64_t)u[11] << 24;
		n.offset = 12;
	}
	if (header > 65536)
		return bad(&s, "its header has more than 64 KiB");
	if (header > length - n.offset)
		return bad(&s, "its header is cut");
	s.at = text + n.offset;
	s.end = s.at + header;
	n.offset += header;
	int e = read_dict(&s, &n);
	if (e == 0)
		e = check(&s, &n, bytes);
	if (e == 0)
		*to = n;
	return e;
}

size_t yk_npy_head(char to[YK_NPY_BYTES], const char *descr, int rank, const int64_t *dims)
{
	char *dict = to + 10;
	const size_t cap = YK_NPY_BYTES - 10;
	size_t n = (size_t)snprintf(dict, cap, "{'descr': '%s', 'fortran_order': False, 'shape': (",
				    descr);
	for (int k = 0; k < rank; k++)
		n += (size_t)snprintf(dict + n, cap - n, "%s%" PRId64 "%s", k ? " " : "", dims[k],
				      k < rank - 1 || rank == 1 ? "," : "");
	n += (size_t)snprintf(dict + n, cap - n, "), }");
	while ((10 + n + 1) % 64)
		dict[n++] = ' ';
	dict[n++] = '\n';
	memcpy(to, "\x93NUMPY\x01\x00", 8);
	to[8] = (char)(n & 255);
	to[9] = (char)(n >> 8);
	return 10 + n;
}

void yk_npy_part(struct yk_field_file *p, const struct yk_npy *n, struct yk_field_shape *shape)
{
	*shape = (struct yk_field_shape){ .rank = n->rank - 1 };
	p->elements = 1;
	for (int k = 1; k < n->rank; k++)
		p->elements *= shape->dims[k - 1] = n->dims[k];
	p->element = n->element;
	p->big = n->big;
	p->offset = n->offset;
	p->stride = (uint64_t)p->elements * (uint64_t)n->element->width;
	if (n->fortran && n->rank > 1) {
		p->rank = n->rank;
		memcpy(p->dims, n->dims, sizeof p->dims);
	}
}
