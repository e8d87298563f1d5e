// SPDX-License-Identifier: Apache-2.0
// Filters of sequences and dicts.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "template/functions.h"

// ---- attributes of elements ----

// "a.b.0": attributes and items one after another; `otherwise` for an undefined one.
static struct yk_v_value attribute_of(struct yk_render *r, struct yk_v_value v,
				      struct yk_v_value path, struct yk_v_value otherwise)
{
	if (path.kind != YK_V_STRING) {
		v = yk_v_item(r, v, path);
	} else {
		const char *at = path.s->s, *end = at + path.s->n;
		for (const char *stop; at <= end && !r->failed; at = stop + 1) {
			stop = memchr(at, '.', (size_t)(end - at));
			stop = stop ? stop : end;
			const size_t n = (size_t)(stop - at);
			if (n && n < 10 && strspn(at, "0123456789") >= n)
				v = yk_v_item(r, v, yk_v_int(atoi(at)));
			else
				v = yk_v_item(r, v, yk_v_string(r, at, n));
			if (stop == end)
				break;
		}
	}
	return v.kind == YK_V_UNDEFINED && yk_v_is_present(otherwise) ? otherwise : v;
}

// The key of an element for sorting and grouping.
static struct yk_v_value key_of(struct yk_render *r, struct yk_v_value v, struct yk_v_value path,
			      bool sensitive)
{
	if (yk_v_is_present(path) && path.kind != YK_V_NONE)
		v = attribute_of(r, v, path, yk_v_absent());
	return v.kind == YK_V_STRING && !sensitive && !r->failed ? yk_v_case(r, v.s, YK_LOWER) : v;
}

// For several attributes, separated by commas: a list of keys.
static struct yk_v_value sort_key(struct yk_render *r, struct yk_v_value v, struct yk_v_value path,
				bool sensitive)
{
	if (path.kind != YK_V_STRING || !memchr(path.s->s, ',', path.s->n))
		return key_of(r, v, path, sensitive);
	struct yk_v_value keys = yk_v_list(r, YK_V_LIST, 0);
	for (const char *at = path.s->s, *end = at + path.s->n, *stop; at <= end && !r->failed;
	     at = stop + 1) {
		stop = memchr(at, ',', (size_t)(end - at));
		stop = stop ? stop : end;
		yk_v_append(r, keys,
			    key_of(r, v, yk_v_string(r, at, (size_t)(stop - at)), sensitive));
		if (stop == end)
			break;
	}
	return keys;
}

// Sorts pairs by key, stably, by merging runs of doubling length.
static void sort_pairs(struct yk_render *r, struct yk_v_pair *p, size_t n, bool reverse)
{
	struct yk_v_pair *from = p, *to = yk_render_alloc(r, n * sizeof *to + 1);
	for (size_t run = 1; run < n && to && !r->failed; run *= 2) {
		for (size_t at = 0; at < n; at += 2 * run) {
			size_t a = at, b = at + run < n ? at + run : n, k = at;
			const size_t middle = b, end = b + run < n ? b + run : n;
			while (a < middle || b < end) {
				bool second = a == middle;
				if (a < middle && b < end) {
					const int order = yk_v_compare(r, from[b].key, from[a].key);
					second = reverse ? order > 0 : order < 0;
				}
				to[k++] = second ? from[b++] : from[a++];
			}
		}
		struct yk_v_pair *other = from;
		from = to;
		to = other;
	}
	if (from != p && !r->failed)
		memcpy(p, from, n * sizeof *p);
}

static struct yk_v_pair *keyed(struct yk_render *r, const struct yk_items *l,
			       struct yk_v_value path, bool sensitive)
{
	struct yk_v_pair *p = l ? yk_render_alloc(r, l->n * sizeof *p + 1) : NULL;
	for (size_t i = 0; p && i < l->n && !r->failed; i++)
		p[i] = (struct yk_v_pair){ sort_key(r, l->v[i], path, sensitive), l->v[i] };
	return r->failed ? NULL : p;
}

static struct yk_v_value values_of(struct yk_render *r, const struct yk_v_pair *p, size_t n)
{
	struct yk_v_value list = yk_v_list(r, YK_V_LIST, n);
	for (size_t i = 0; i < n && !r->failed; i++)
		yk_v_append(r, list, p[i].value);
	return list;
}

static struct yk_v_value sort(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const struct yk_items *l = yk_v_iterate(r, v);
	struct yk_v_pair *p = keyed(r, l, a->v[2], yk_arg_truth(a, 1, false));
	if (!p)
		return v;
	sort_pairs(r, p, l->n, yk_arg_truth(a, 0, false));
	return values_of(r, p, l->n);
}

static struct yk_v_value pair_of(struct yk_render *r, struct yk_v_value a, struct yk_v_value b)
{
	struct yk_v_value pair = yk_v_list(r, YK_V_TUPLE, 2);
	yk_v_append(r, pair, a);
	yk_v_append(r, pair, b);
	return pair;
}

static struct yk_v_value items_of(struct yk_render *r, struct yk_v_value v, enum yk_value_kind kind)
{
	struct yk_v_value list = yk_v_list(r, kind, 0);
	if (v.kind != YK_V_DICT)
		return v.kind == YK_V_UNDEFINED && kind == YK_V_ITERATOR ?
			       list :
			       yk_render_fail(r, YOKE_EFORMAT,
					      "expected a dict for its pairs, not '%s'",
					      yk_v_type(v));
	for (size_t i = 0; i < v.dict->n && !r->failed; i++)
		yk_v_append(r, list, pair_of(r, v.dict->pair[i].key, v.dict->pair[i].value));
	return list;
}

static struct yk_v_value items(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	(void)a;
	return items_of(r, v, YK_V_ITERATOR);
}

static struct yk_v_value dictsort(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const struct yk_v_value by = yk_arg(a, 1, yk_v_none());
	const struct yk_v_value pairs = items_of(r, v, YK_V_LIST);
	if (by.kind != YK_V_NONE && !yk_v_is_string(by, "key") && !yk_v_is_string(by, "value"))
		return yk_render_fail(r, YOKE_EFORMAT, "dictsort sorts by 'key' or 'value'");
	struct yk_v_pair *p = r->failed ? NULL :
					keyed(r, pairs.list, yk_v_int(yk_v_is_string(by, "value")),
					      yk_arg_truth(a, 0, false));
	if (!p)
		return v;
	sort_pairs(r, p, pairs.list->n, yk_arg_truth(a, 2, false));
	return values_of(r, p, pairs.list->n);
}

static struct yk_v_value extreme(struct yk_render *r, struct yk_v_value v, const struct yk_args *a,
			       int sign)
{
	const struct yk_items *l = yk_v_iterate(r, v);
	struct yk_v_pair *p = keyed(r, l, a->v[1], yk_arg_truth(a, 0, false));
	size_t best = 0;
	if (!p || !l->n)
		return yk_v_undefined(NULL);
	for (size_t i = 1; i < l->n && !r->failed; i++)
		best = sign * yk_v_compare(r, p[i].key, p[best].key) > 0 ? i : best;
	return l->v[best];
}

static struct yk_v_value min_of(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	return extreme(r, v, a, -1);
}

static struct yk_v_value max_of(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	return extreme(r, v, a, 1);
}

static struct yk_v_value unique(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const struct yk_items *l = yk_v_iterate(r, v);
	struct yk_v_pair *p = keyed(r, l, a->v[1], yk_arg_truth(a, 0, false));
	struct yk_v_value list = yk_v_list(r, YK_V_ITERATOR, 0), keys = yk_v_list(r, YK_V_LIST, 0);
	for (size_t i = 0; p && i < l->n && !r->failed; i++) {
		if (yk_v_contains(r, keys, p[i].key))
			continue;
		yk_v_append(r, keys, p[i].key);
		yk_v_append(r, list, l->v[i]);
	}
	return list;
}

static struct yk_v_value groupby(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const bool sensitive = yk_arg_truth(a, 2, false);
	const struct yk_items *l = yk_v_iterate(r, v);
	struct yk_v_pair *p = l ? yk_render_alloc(r, l->n * sizeof *p + 1) : NULL;
	struct yk_v_value groups = yk_v_list(r, YK_V_LIST, 0), group = groups;
	for (size_t i = 0; p && i < l->n && !r->failed; i++) {
		const struct yk_v_value key = attribute_of(r, l->v[i], a->v[0], a->v[1]);
		p[i] = (struct yk_v_pair){ key_of(r, key, yk_v_absent(), sensitive), l->v[i] };
	}
	if (!p || r->failed)
		return v;
	sort_pairs(r, p, l->n, false);
	for (size_t i = 0; i < l->n && !r->failed; i++) {
		if (i == 0 || !yk_v_equal(r, p[i].key, p[i - 1].key)) {
			group = yk_v_list(r, YK_V_LIST, 0);
			yk_v_append(
				r, groups,
				pair_of(r, attribute_of(r, p[i].value, a->v[0], a->v[1]), group));
		}
		if (!r->failed)
			yk_v_append(r, group, p[i].value);
	}
	return groups;
}

// ---- map, select, reject ----

static struct yk_args rest_of(const struct yk_args *a, size_t first)
{
	return (struct yk_args){ a->n > first ? a->v + first : NULL,
				 a->n > first ? a->n - first : 0, a->named };
}

static struct yk_v_value map(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const struct yk_v_value *path =
		a->named && !a->n ? yk_dict_get(a->named, "attribute", 9) : NULL;
	const struct yk_v_value *otherwise = path ? yk_dict_get(a->named, "default", 7) : NULL;
	const struct yk_function *f =
		a->n && a->v[0].kind == YK_V_STRING ? yk_filter_find(a->v[0].s) : NULL;
	const struct yk_args rest = rest_of(a, 1);
	if (!path && !f)
		return yk_render_fail(r, YOKE_EFORMAT,
				      "map needs the name of a filter, or attribute=");
	const struct yk_items *l = yk_v_iterate(r, v);
	struct yk_v_value list = yk_v_list(r, YK_V_ITERATOR, 0);
	for (size_t i = 0; l && i < l->n && !r->failed; i++)
		yk_v_append(r, list,
			    path ? attribute_of(r, l->v[i], *path,
						otherwise ? *otherwise : yk_v_absent()) :
				   yk_function_call(r, f, l->v[i], &rest));
	return list;
}

static struct yk_v_value select_where(struct yk_render *r, struct yk_v_value v,
				      const struct yk_args *a, bool by_attribute, bool keep)
{
	const size_t off = by_attribute;
	const bool tested = a->n > off;
	const struct yk_function *f =
		tested && a->v[off].kind == YK_V_STRING ? yk_test_find(a->v[off].s) : NULL;
	const struct yk_args rest = rest_of(a, off + 1);
	struct yk_v_value list = yk_v_list(r, YK_V_ITERATOR, 0);
	if (!yk_v_truth(v))
		return list;
	if (by_attribute && !a->n)
		return yk_render_fail(r, YOKE_EFORMAT,
				      "selectattr and rejectattr need an attribute");
	if (tested && !f)
		return yk_render_fail(r, YOKE_EFORMAT, "select and reject need the name of a test");
	const struct yk_items *l = yk_v_iterate(r, v);
	for (size_t i = 0; l && i < l->n && !r->failed; i++) {
		const struct yk_v_value x =
			by_attribute ? attribute_of(r, l->v[i], a->v[0], yk_v_absent()) : l->v[i];
		const struct yk_v_value holds = f ? yk_function_call(r, f, x, &rest) : x;
		if (!r->failed && yk_v_truth(holds) == keep)
			yk_v_append(r, list, l->v[i]);
	}
	return list;
}

static struct yk_v_value select_items(struct yk_render *r, struct yk_v_value v,
				      const struct yk_args *a)
{
	return select_where(r, v, a, false, true);
}

static struct yk_v_value reject(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	return select_where(r, v, a, false, false);
}

static struct yk_v_value selectattr(struct yk_render *r, struct yk_v_value v,
				    const struct yk_args *a)
{
	return select_where(r, v, a, true, true);
}

static struct yk_v_value rejectattr(struct yk_render *r, struct yk_v_value v,
				    const struct yk_args *a)
{
	return select_where(r, v, a, true, false);
}

// ---- sequences ----

static struct yk_v_value length(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	(void)a;
	return yk_v_int(yk_v_length(r, v));
}

static struct yk_v_value list_of(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const struct yk_items *l = yk_v_iterate(r, v);
	struct yk_v_value list = yk_v_list(r, YK_V_LIST, l ? l->n : 0);
	(void)a;
	for (size_t i = 0; l && i < l->n && !r->failed; i++)
		yk_v_append(r, list, l->v[i]);
	return list;
}

static struct yk_v_value first(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const bool once = v.kind == YK_V_ITERATOR;
	struct yk_items *l = once ? v.list : yk_v_iterate(r, v);
	(void)a;
	if (!l || !l->n)
		return yk_v_undefined(NULL);
	const struct yk_v_value x = l->v[0];
	if (once) { // the others can still be iterated
		l->v++;
		l->n--;
		l->cap--;
	}
	return x;
}

static struct yk_v_value last(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	(void)a;
	if (v.kind == YK_V_ITERATOR)
		return yk_render_fail(
			r, YOKE_EFORMAT,
			"the last element of a generator is not known; use list before last");
	const struct yk_items *l = yk_v_iterate(r, v);
	return l && l->n ? l->v[l->n - 1] : yk_v_undefined(NULL);
}

static struct yk_v_value reverse(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const struct yk_items *l = yk_v_iterate(r, v);
	struct yk_v_value list = yk_v_list(r, YK_V_ITERATOR, l ? l->n : 0);
	struct yk_v_buffer to = { 0 };
	(void)a;
	for (size_t i = l ? l->n : 0; i-- > 0 && !r->failed;) {
		if (v.kind == YK_V_STRING)
			yk_text_add(&to, l->v[i].s, l->v[i].s->s, l->v[i].s->n);
		else
			yk_v_append(r, list, l->v[i]);
	}
	return v.kind == YK_V_STRING ? yk_v_built(r, &to) : list;
}

static struct yk_v_value sum(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const struct yk_items *l = yk_v_iterate(r, v);
	struct yk_v_value total = yk_arg(a, 1, yk_v_int(0));
	for (size_t i = 0; l && i < l->n && !r->failed; i++)
		total = yk_v_binary(r, YK_ADD, total,
				    yk_v_is_present(a->v[0]) && a->v[0].kind != YK_V_NONE ?
					    attribute_of(r, l->v[i], a->v[0], yk_v_absent()) :
					    l->v[i]);
	return total;
}

static struct yk_v_value join(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const struct yk_items *l = yk_v_iterate(r, v);
	const struct yk_v_value path = yk_arg(a, 1, yk_v_none());
	struct yk_v_buffer to = { 0 };
	for (size_t i = 0; l && i < l->n && yk_render_charge(r, 1); i++) {
		if (i && yk_v_is_present(a->v[0]))
			yk_v_str(r, a->v[0], &to);
		yk_v_str(r,
			 path.kind == YK_V_NONE ? l->v[i] :
						  attribute_of(r, l->v[i], path, yk_v_absent()),
			 &to);
		if ((int64_t)to.s.n > YK_RENDER_MEMORY)
			yk_render_fail(r, YOKE_ERANGE, "join makes more than %lld MiB",
				       (long long)(YK_RENDER_MEMORY >> 20));
	}
	return yk_v_built(r, &to);
}

static struct yk_v_value batch(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const int64_t count = yk_arg_int(r, a, 0, 1);
	const struct yk_v_value fill = yk_arg(a, 1, yk_v_none());
	const struct yk_items *l = yk_v_iterate(r, v);
	struct yk_v_value list = yk_v_list(r, YK_V_ITERATOR, 0), row = list;
	for (size_t i = 0; l && i < l->n && !r->failed; i++) {
		if (i == 0 || (int64_t)row.list->n == count) {
			row = yk_v_list(r, YK_V_LIST, 0);
			yk_v_append(r, list, row);
		}
		if (!r->failed)
			yk_v_append(r, row, l->v[i]);
	}
	while (l && l->n && fill.kind != YK_V_NONE && yk_render_charge(r, 1) &&
	       (int64_t)row.list->n < count)
		yk_v_append(r, row, fill);
	return list;
}

static struct yk_v_value slice(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const int64_t slices = yk_arg_int(r, a, 0, 1);
	const struct yk_v_value fill = yk_arg(a, 1, yk_v_none());
	const struct yk_items *l = yk_v_iterate(r, v);
	struct yk_v_value list = yk_v_list(r, YK_V_ITERATOR, 0);
	if (slices < 1)
		return yk_render_fail(r, YOKE_EFORMAT, "slice needs a number of slices, not %lld",
				      (long long)slices);
	size_t at = 0;
	for (int64_t s = 0; l && s < slices && yk_render_charge(r, 1); s++) {
		const int64_t n = (int64_t)l->n / slices + (s < (int64_t)l->n % slices);
		struct yk_v_value row = yk_v_list(r, YK_V_LIST, 0);
		for (int64_t i = 0; i < n && !r->failed; i++)
			yk_v_append(r, row, l->v[at++]);
		if (fill.kind != YK_V_NONE && s >= (int64_t)l->n % slices)
			yk_v_append(r, row, fill);
		yk_v_append(r, list, row);
	}
	return list;
}

const struct yk_function *yk_sequence_filter_find(const struct yk_chars *name)
{
	static const struct yk_function filters[] = {
		{ "batch", "linecount! fill_with", batch },
		{ "count", "", length },
		{ "dictsort", "case_sensitive by reverse", dictsort },
		{ "first", "", first },
		{ "groupby", "attribute! default case_sensitive", groupby },
		{ "items", "", items },
		{ "join", "d attribute", join },
		{ "last", "", last },
		{ "length", "", length },
		{ "list", "", list_of },
		{ "map", NULL, map },
		{ "max", "case_sensitive attribute", max_of },
		{ "min", "case_sensitive attribute", min_of },
		{ "reject", NULL, reject },
		{ "rejectattr", NULL, rejectattr },
		{ "reverse", "", reverse },
		{ "select", NULL, select_items },
		{ "selectattr", NULL, selectattr },
		{ "slice", "slices! fill_with", slice },
		{ "sort", "reverse case_sensitive attribute", sort },
		{ "sum", "attribute start", sum },
		{ "unique", "case_sensitive attribute", unique },
	};
	return YK_FUNCTION_IN(filters, name->s, name->n);
}
