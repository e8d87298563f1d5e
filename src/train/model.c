// SPDX-License-Identifier: Apache-2.0
// Models in checkpoints.
#include "config.h"

#include "train/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"

json_t *yk_model_describe(const struct yk_gpt_shape *s)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "kind", "gpt", "vocab",
			 (json_int_t)s->vocab, "context", (json_int_t)s->context, "layers",
			 (json_int_t)s->layers, "heads", (json_int_t)s->heads, "embed",
			 (json_int_t)s->embed);
}

int yk_model_shape(const json_t *model, const char *what, struct yk_gpt_shape *to,
		   uint64_t *bytes)
{
	const int64_t most = INT64_C(1) << 31;
	const char *kind;
	struct yk_gpt_shape s;
	int e = yk_json_str(model, what, "kind", &kind);
	if (e < 0)
		return e;
	if (strcmp(kind, "gpt"))
		return yk_fail(YOKE_EFORMAT, "%s: model of unknown kind '%s'; this yoke knows "
			       "gpt", what, kind);
	if ((e = yk_json_int(model, what, "vocab", 1, most, &s.vocab)) < 0 ||
	    (e = yk_json_int(model, what, "context", 1, most, &s.context)) < 0 ||
	    (e = yk_json_int(model, what, "layers", 1, most, &s.layers)) < 0 ||
	    (e = yk_json_int(model, what, "heads", 1, most, &s.heads)) < 0 ||
	    (e = yk_json_int(model, what, "embed", 1, most, &s.embed)) < 0)
		return e;
	int64_t elements;
	uint64_t all;
	if (yk_gpt_elements(&s, &elements) < 0 ||
	    __builtin_mul_overflow((uint64_t)elements, sizeof(float), &all)) {
		yoke_error_clear(); // it speaks of keys, not of a file
		return yk_fail(YOKE_EFORMAT, "%s: no model has layers=%lld heads=%lld "
			       "embed=%lld context=%lld vocab=%lld", what,
			       (long long)s.layers, (long long)s.heads, (long long)s.embed,
			       (long long)s.context, (long long)s.vocab);
	}
	*to = s;
	*bytes = all;
	return 0;
}

int yk_host_list_new(const struct yk_parameters *ps, struct yk_host_list *to)
{
	struct yk_host_list l = { .tensor = calloc((size_t)ps->count + 1, sizeof *l.tensor) };
	if (!l.tensor)
		goto no_memory;
	for (; l.count < ps->count; l.count++) {
		const yoke_tensor *var = ps->var[l.count];
		struct yk_host_tensor *t = &l.tensor[l.count];
		t->name = ps->row[l.count].name;
		t->dtype = yoke_dtype(var);
		t->rank = yoke_rank(var);
		for (int i = 0; i < t->rank; i++)
			t->dims[i] = yoke_dim(var, i);
		t->data = malloc(yoke_bytes(var));
		if (!t->data)
			goto no_memory;
	}
	*to = l;
	return 0;
no_memory:
	yk_host_list_free(&l);
	return yk_fail(YOKE_ENOMEM, "checkpoint: no host memory for %d arrays", ps->count);
}

void yk_host_list_free(struct yk_host_list *l)
{
	for (int i = 0; i < l->count; i++)
		free(l->tensor[i].data);
	free(l->tensor);
	*l = (struct yk_host_list){ 0 };
}

int yk_host_list_read(struct yk_host_list *l, const struct yk_parameters *ps)
{
	for (int i = 0; i < l->count; i++) {
		int e = yoke_read(ps->var[i], l->tensor[i].data, yoke_bytes(ps->var[i]));
		if (e < 0)
			return e;
	}
	return 0;
}

int yk_host_list_put(const struct yk_host_list *l, const struct yk_parameters *ps)
{
	for (int i = 0; i < l->count; i++) {
		int e = yoke_put(ps->var[i], l->tensor[i].data, yoke_bytes(ps->var[i]));
		if (e < 0)
			return e;
	}
	return 0;
}

int yk_model_load(const char *folder, const struct yk_checkpoint *ck, struct yk_gpt **to)
{
	struct yk_gpt_shape shape;
	struct yk_gpt *gpt = NULL;
	struct yk_host_list list = { 0 };
	uint64_t bytes;
	int e = yk_model_shape(ck->model, folder, &shape, &bytes);
	if (e == 0)
		e = yk_checkpoint_holds(folder, ck, YK_CHECKPOINT_MODEL, bytes);
	if (e == 0)
		e = yk_gpt_new(&shape, &gpt);
	if (e == 0)
		e = yk_host_list_new(&gpt->params, &list);
	if (e == 0)
		e = yk_checkpoint_load(folder, ck, YK_CHECKPOINT_MODEL, list.count, list.tensor);
	if (e == 0)
		e = yk_host_list_put(&list, &gpt->params);
	yk_host_list_free(&list);
	if (e < 0) {
		yk_gpt_free(gpt);
		return e;
	}
	*to = gpt;
	return 0;
}
