// SPDX-License-Identifier: Apache-2.0
// Arrays of requests and replies.  Sizes come from outside: products of them are checked.
#include "config.h"

#include "http/arrays.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/error.h"
#include "base/json.h"
#include "base/num.h"
#include "base/number.h"
#include "data/part.h"

static bool is_known(int dtype)
{
	return dtype == yoke_f32 || dtype == yoke_f64 || dtype == yoke_i32 || dtype == yoke_i64;
}

size_t yk_array_element(int dtype)
{
	return dtype == yoke_f32 || dtype == yoke_i32 ? 4 : 8;
}

int64_t yk_array_sample(const struct yoke_serve_array *a)
{
	int64_t n = 1;
	for (int k = 1; k < a->rank; k++)
		n *= a->dims[k];
	return n;
}

// Allocates the data of an array whose dims come from outside.
static int reserve(struct yoke_serve_array *a, int64_t *count)
{
	int64_t n = 1, bytes;
	for (int k = 0; k < a->rank; k++)
		if (a->dims[k] < 1 || __builtin_mul_overflow(n, a->dims[k], &n))
			return yk_fail(YOKE_EFORMAT,
				       "the array has an empty axis, or too many elements");
	if (__builtin_mul_overflow(n, (int64_t)yk_array_element(a->dtype), &bytes))
		return yk_fail(YOKE_EFORMAT, "the array has too many elements");
	a->data = malloc((size_t)bytes);
	*count = n;
	return a->data ? 0 : yk_fail(YOKE_ENOMEM, "no memory for an array");
}

static int store(struct yoke_serve_array *a, int64_t i, struct yk_num v, bool real)
{
	void *to = (char *)a->data + (size_t)i * yk_array_element(a->dtype);
	if (yk_num_real(a->dtype)) {
		const double x = real ? v.f : (double)v.i;
		if (a->dtype == yoke_f32 && isfinite(x) &&
		    fabs(x) > 3.4028235677973366e38) // rounds to infinity
			return yk_fail(YOKE_ERANGE, "element %lld is beyond f32", (long long)i);
		yk_num_store(to, (struct yk_num){ .f = x }, a->dtype);
		return 0;
	}
	if (real && !(v.f == floor(v.f) && fabs(v.f) < 0x1p63))
		return yk_fail(YOKE_ERANGE, "element %lld is not an integer", (long long)i);
	const int64_t n = real ? (int64_t)v.f : v.i;
	if (a->dtype == yoke_i32 && (n < INT32_MIN || n > INT32_MAX))
		return yk_fail(YOKE_ERANGE, "element %lld is beyond i32", (long long)i);
	yk_num_store(to, (struct yk_num){ .i = n }, a->dtype);
	return 0;
}

// ---- JSON ----

// Stores the lists below an axis; *at: the next element.
static int flatten(struct yoke_serve_array *a, const json_t *o, int axis, int64_t *at)
{
	int e = 0;
	if (axis == a->rank) {
		const struct yk_num v = { json_real_value(o), json_integer_value(o) };
		if (!json_is_number(o))
			return yk_fail(YOKE_EFORMAT, "element %lld is not a number",
				       (long long)*at);
		return store(a, (*at)++, v, json_is_real(o));
	}
	if ((int64_t)json_array_size(o) != a->dims[axis])
		return yk_fail(YOKE_EFORMAT, "the lists of axis %d have different lengths", axis);
	for (int64_t i = 0; i < a->dims[axis] && e == 0; i++)
		e = flatten(a, json_array_get(o, (size_t)i), axis + 1, at);
	return e;
}

int yk_array_of_json(const char *text, size_t bytes, int dtype, struct yoke_serve_array *to)
{
	struct yoke_serve_array a = { .dtype = dtype };
	int64_t count, at = 0;
	json_t *o = yk_json_parse(text, bytes, "the request");
	if (!o)
		return yk_error_last();
	int e = 0;
	for (const json_t *l = o; json_is_array(l) && e == 0; l = json_array_get(l, 0)) {
		if (a.rank == YOKE_MAX_RANK)
			e = yk_fail(YOKE_EFORMAT, "the array has more than %d axes", YOKE_MAX_RANK);
		else
			a.dims[a.rank++] = (int64_t)json_array_size(l);
	}
	if (e == 0 && a.rank == 0)
		e = yk_fail(YOKE_EFORMAT, "the request must be a list of numbers, or of lists");
	if (e == 0)
		e = reserve(&a, &count);
	if (e == 0)
		e = flatten(&a, o, 0, &at);
	json_decref(o);
	if (e < 0)
		free(a.data);
	else
		*to = a;
	return e;
}

static void put_number(const struct yoke_serve_array *a, int64_t i, struct yk_string *to)
{
	char text[40];
	const struct yk_num v = yk_num_load(
		(const char *)a->data + (size_t)i * yk_array_element(a->dtype), a->dtype);
	int n;
	if (!yk_num_real(a->dtype))
		n = snprintf(text, sizeof text, "%lld", (long long)v.i);
	else if (!isfinite(v.f)) // JSON has neither NaN nor infinity
		n = snprintf(text, sizeof text, "null");
	else
		n = yk_snprintf(text, sizeof text, a->dtype == yoke_f32 ? "%.9g" : "%.17g", v.f);
	yk_string_add(to, text, (size_t)n);
}

static void put_axis(const struct yoke_serve_array *a, int axis, int64_t *at, struct yk_string *to)
{
	if (axis == a->rank) {
		put_number(a, (*at)++, to);
		return;
	}
	yk_string_add(to, "[", 1);
	for (int64_t i = 0; i < a->dims[axis]; i++) {
		if (i)
			yk_string_add(to, ",", 1);
		put_axis(a, axis + 1, at, to);
	}
	yk_string_add(to, "]", 1);
}

int yk_array_to_json(const struct yoke_serve_array *a, struct yk_string *to)
{
	int64_t at = 0;
	if (!is_known(a->dtype))
		return yk_fail(YOKE_EDTYPE, "the function's result is not f32, f64, i32 or i64");
	put_axis(a, 0, &at, to);
	return 0;
}

// ---- .npy ----

int yk_array_of_npy(const char *data, size_t bytes, int dtype, struct yoke_serve_array *to)
{
	struct yk_npy n;
	struct yoke_serve_array a = { .dtype = dtype };
	int64_t count;
	int e = yk_npy_header(&n, "the request", data, bytes, bytes);
	if (e < 0)
		return e;
	const size_t width = (size_t)n.element->width;
	if (n.big || n.fortran || !is_known(n.element->dtype) ||
	    width != yk_array_element(n.element->dtype))
		return yk_fail(YOKE_EUNSUPPORTED, "the request: elements must be f4, f8, i4 or i8, "
						  "little endian, in C order");
	a.rank = n.rank;
	memcpy(a.dims, n.dims, sizeof a.dims);
	e = reserve(&a, &count);
	for (int64_t i = 0; i < count && e == 0; i++) {
		char element[8];
		memcpy(element, data + n.offset + (size_t)i * width, width);
		yk_le(element, width, 1);
		e = store(&a, i, yk_num_load(element, n.element->dtype),
			  yk_num_real(n.element->dtype));
	}
	if (e < 0)
		free(a.data);
	else
		*to = a;
	return e;
}

int yk_array_to_npy(const struct yoke_serve_array *a, struct yk_string *to)
{
	char head[YK_NPY_BYTES], descr[8];
	if (!is_known(a->dtype))
		return yk_fail(YOKE_EDTYPE, "the function's result is not f32, f64, i32 or i64");
	const size_t width = yk_array_element(a->dtype),
		     count = (size_t)(a->dims[0] * yk_array_sample(a));
	snprintf(descr, sizeof descr, "<%c%d", yk_num_real(a->dtype) ? 'f' : 'i', (int)width);
	yk_string_add(to, head, yk_npy_head(head, descr, a->rank, a->dims));
	yk_string_add(to, a->data, count * width);
	if (!to->failed)
		yk_le(to->s + to->n - count * width, width, count);
	return 0;
}
