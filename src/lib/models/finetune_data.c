// SPDX-License-Identifier: Apache-2.0
// Datasets of windows for fine-tuning a model, tokenized by its own tokenizer.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sized.h"
#include "data/chats.h"
#include "data/text.h"
#include "models/pretrained.h"
#include "yoke-model.h"

// Copies a window, whose shape may be another one.
static int copy(void *arg, const struct yoke_item *from, struct yoke_item *to)
{
	const struct yk_data *d = arg;
	memcpy(to->to[0], from->to[0], (size_t)yk_data_width(d) * sizeof(int32_t));
	return 0;
}

static void release(void *data)
{
	yk_data_free(data);
}

// The windows as a dataset that owns the data.
static yoke_dataset *windows(struct yk_data *d, int64_t context)
{
	const bool packed = yk_data_chats(d);
	const struct yoke_field ids = {
		.size = sizeof ids,
		.name = "ids",
		.dtype = yoke_i32,
		.rank = packed ? 2 : 1,
		.dims = { packed ? YK_PACKED_FIELDS : context + 1, packed ? context : 0 },
	};
	yoke_dataset *set = yk_data_set(d);
	yoke_dataset *to = set ? yoke_dataset_map(set, 1, &ids, copy, d, release) : NULL;
	yoke_dataset_free(set);
	return to;
}

// The model's tokenizer; ids need none.
static struct yk_tokenizer *tokenizer_of(yoke_model *m, const struct yoke_text_options *o)
{
	const int64_t vocab = m->is.net->shape.vocab;
	if (o->ids)
		return yk_tokenizer_ids(vocab, m->path);
	const yoke_tokenizer *t = yoke_model_tokenizer(m);
	return t ? yk_tokenizer_borrow(t, (int32_t)vocab) : NULL;
}

static int check(const yoke_model *m, const char *paths, const struct yoke_text_options *o)
{
	const int64_t context = m->is.net->shape.context;
	const int e = yk_pretrained_trains(m, "model_dataset");
	if (e < 0)
		return e;
	if (o->text && o->ids)
		return yk_fail(YOKE_EINVAL,
			       "model_dataset: a text and ids are given; give one of them");
	if (!paths && !o->text && !o->ids)
		return yk_fail(YOKE_EINVAL,
			       "model_dataset: neither paths nor data in memory are given");
	if (o->count < 0)
		return yk_fail(YOKE_EINVAL, "model_dataset: %lld ids", (long long)o->count);
	if (o->context < 0 || o->context > context)
		return yk_fail(YOKE_EINVAL,
			       "model_dataset: context %lld is not in 1 .. %lld, the model's",
			       (long long)o->context, (long long)context);
	return 0;
}

yoke_dataset *yoke_model_dataset(yoke_model *m, const char *paths,
				 const struct yoke_text_options *options)
{
	struct yoke_text_options o = { 0 };
	if (!m) {
		yk_fail(YOKE_EINVAL, "model_dataset: the model is NULL");
		return NULL;
	}
	if (yk_sized_read(&o, sizeof o, options, "model_dataset", "yoke_text_options") < 0 ||
	    check(m, paths, &o) < 0)
		return NULL;
	struct yk_tokenizer *t = tokenizer_of(m, &o);
	if (!t)
		return NULL;
	const struct yk_data_spec spec = {
		.context = o.context ? o.context : m->is.net->shape.context,
		.valid_given = true,
		.chats = m->is.net->model->packed,
		.pack = !o.separate,
		.text = o.text,
		.text_bytes = o.bytes,
		.ids = o.ids,
		.id_count = o.count,
	};
	struct yk_data *d = yk_data_new(paths ? paths : o.ids ? "ids" : "text", t, &spec);
	yk_tokenizer_free(t);
	yoke_dataset *to = d ? windows(d, spec.context) : NULL;
	if (!to)
		yk_data_free(d);
	return to;
}
