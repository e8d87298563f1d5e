// SPDX-License-Identifier: Apache-2.0
// Methods of lists, tuples and dicts.
#include "config.h"

#include "base/error.h"
#include "template/functions.h"

static struct yk_v_value list_index(struct yk_render *r, struct yk_v_value v,
				    const struct yk_args *a)
{
	for (size_t i = 0; i < v.list->n && !r->failed; i++)
		if (yk_v_equal(r, v.list->v[i], a->v[0]))
			return yk_v_int((int64_t)i);
	return yk_render_fail(r, YOKE_EFORMAT, "index: the value does not occur");
}

static struct yk_v_value list_count(struct yk_render *r, struct yk_v_value v,
				    const struct yk_args *a)
{
	int64_t n = 0;
	for (size_t i = 0; i < v.list->n && !r->failed; i++)
		n += yk_v_equal(r, v.list->v[i], a->v[0]);
	return yk_v_int(n);
}

static struct yk_v_value list_copy(struct yk_render *r, struct yk_v_value v,
				   const struct yk_args *a)
{
	(void)a;
	(void)r;
	return v; // values do not change
}

static struct yk_v_value dict_get(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const struct yk_v_value *found_value = yk_dict_find(r, v.dict, a->v[0]);
	return found_value ? *found_value : yk_arg(a, 1, yk_v_none());
}

static struct yk_v_value view(struct yk_render *r, struct yk_v_value v, const char *type)
{
	struct yk_v_value list = yk_v_list(r, YK_V_VIEW, v.dict->n);
	for (size_t i = 0; i < v.dict->n && !r->failed; i++) {
		struct yk_v_value x = type[5] == 'v' ? v.dict->pair[i].value : v.dict->pair[i].key;
		if (type[5] == 'i') {
			x = yk_v_list(r, YK_V_TUPLE, 2);
			yk_v_append(r, x, v.dict->pair[i].key);
			yk_v_append(r, x, v.dict->pair[i].value);
		}
		yk_v_append(r, list, x);
	}
	if (!r->failed)
		list.list->type = type;
	return list;
}

static struct yk_v_value dict_keys(struct yk_render *r, struct yk_v_value v,
				   const struct yk_args *a)
{
	(void)a;
	return view(r, v, "dict_keys");
}

static struct yk_v_value dict_values(struct yk_render *r, struct yk_v_value v,
				     const struct yk_args *a)
{
	(void)a;
	return view(r, v, "dict_values");
}

static struct yk_v_value dict_items(struct yk_render *r, struct yk_v_value v,
				    const struct yk_args *a)
{
	(void)a;
	return view(r, v, "dict_items");
}

// Methods without a function change their object, which the sandbox does not allow: they are
// undefined.
const struct yk_function *yk_container_method_find(enum yk_value_kind kind, const char *name,
						   size_t n)
{
	static const struct yk_function of_lists[] = {
		{ "index", "value!", list_index },
		{ "count", "value!", list_count },
		{ "copy", "", list_copy },
		{ "append", NULL, NULL },
		{ "clear", NULL, NULL },
		{ "pop", NULL, NULL },
		{ "reverse", NULL, NULL },
		{ "insert", NULL, NULL },
		{ "sort", NULL, NULL },
		{ "extend", NULL, NULL },
		{ "remove", NULL, NULL },
	};
	static const struct yk_function of_dicts[] = {
		{ "get", "key! default", dict_get },
		{ "keys", "", dict_keys },
		{ "values", "", dict_values },
		{ "items", "", dict_items },
		{ "copy", "", list_copy },
		{ "clear", NULL, NULL },
		{ "pop", NULL, NULL },
		{ "popitem", NULL, NULL },
		{ "setdefault", NULL, NULL },
		{ "update", NULL, NULL },
	};
	if (kind == YK_V_TUPLE)
		return yk_function_in(of_lists, 2, name, n);
	if (kind == YK_V_LIST)
		return YK_FUNCTION_IN(of_lists, name, n);
	return kind == YK_V_DICT ? YK_FUNCTION_IN(of_dicts, name, n) : NULL;
}
