// SPDX-License-Identifier: Apache-2.0
// Evaluates the network for the tokens of a step.  The number of tokens is rounded up to a power of
// two, and unless there are many slots or pages, those of logits and of pages in the table follow
// from it: few plans serve all steps.
#include "config.h"

#include <string.h>

#include "engine/engine.h"
#include "plan/varying.h"

enum {
	FEW_LOGITS = 16,     // max rows of logits that are computed whether needed or not
	FEW_PAGES = 1 << 16, // max pages of a table that has room for the longest sequences
	MIN_PAGES = 16       // of a row of a larger table
};

int64_t yk_engine_rounded(int64_t n)
{
	int64_t p = 1;
	while (p < n)
		p *= 2;
	return p;
}

// Operands of tokens, in e->operand, each `size` elements.
enum { IDS, ROW, POS, SLOT, ADAPTER, LAST };
_Static_assert(LAST + 1 == YK_ENGINE_OPERANDS, "room in e->operand");

static void fill(struct yoke_engine *e, int64_t size)
{
	int32_t *const to = e->operand;
	int64_t t = 0;
	for (int64_t i = 0; i < size; i++) {
		to[IDS * size + i] = to[POS * size + i] = to[LAST * size + i] = 0;
		to[ROW * size + i] = to[SLOT * size + i] = to[ADAPTER * size + i] = -1;
	}
	for (int i = 0; i < e->count; i++) {
		const struct yk_sequence *s = e->running[i];
		for (int64_t k = s->computed; k < s->computed + s->news; k++, t++) {
			to[IDS * size + t] = s->ids[k];
			to[ROW * size + t] = s->slot;
			to[POS * size + t] = (int32_t)k;
			to[SLOT * size + t] =
				s->page[k / YK_PAGE] * YK_PAGE + (int32_t)(k % YK_PAGE);
			to[ADAPTER * size + t] = s->request->adapter;
		}
		for (int k = 0; s->logits >= 0 && k < s->rows; k++)
			to[LAST * size + s->logits + k] = (int32_t)t - s->rows + k;
	}
}

// Fills the table [slots, M] of the pages of each slot; the dims.
static void fill_table(const struct yoke_engine *e, int32_t *to, int64_t *dims)
{
	const int64_t all = yk_engine_rounded((e->max_tokens + YK_PAGE - 1) / YK_PAGE);
	int64_t max = e->options.slots * all <= FEW_PAGES ? all : MIN_PAGES;
	for (int i = 0; i < e->count; i++)
		max = e->running[i]->pages > max ? e->running[i]->pages : max;
	dims[0] = e->options.slots;
	dims[1] = yk_engine_rounded(max);
	memset(to, 0xff, (size_t)(dims[0] * dims[1]) * sizeof *to);
	for (int i = 0; i < e->count; i++) {
		const struct yk_sequence *s = e->running[i];
		memcpy(to + s->slot * dims[1], s->page, (size_t)s->pages * sizeof *s->page);
	}
}

// `n` of the integers from `from` on.
static yoke_tensor *part_of(yoke_tensor *all, int64_t from, int64_t n)
{
	return yoke_slice(all, 0, from, from + n, 1);
}

int yk_engine_compute(struct yoke_engine *e, int64_t tokens, int rows)
{
	const int64_t size = yk_engine_rounded(tokens), line[] = { 1, size },
		      slots = yk_engine_rounded(e->options.slots);
	int64_t lasts = yk_engine_rounded(rows);
	if (slots <= FEW_LOGITS && lasts <= slots)
		lasts = size < slots ? size : slots;
	const int64_t width[] = { size, -1 }, before = YK_ENGINE_OPERANDS * size;
	int64_t table[2];
	fill(e, size);
	fill_table(e, e->operand + before, table);
	const int64_t count = before + table[0] * table[1];
	yoke_scope *scope = yoke_scope_begin("engine");
	const bool varied = yk_shapes_vary(e->context, true); // in few ways
	yoke_tensor *all = yoke_from(yoke_i32, 1, &count, e->operand); // one copy to the device
	const struct yk_network_step step = {
		.ids = yoke_reshape(part_of(all, IDS * size, size), 2, line),
		.table = yoke_reshape(part_of(all, before, table[0] * table[1]), 2, table),
		.row = part_of(all, ROW * size, size),
		.pos = part_of(all, POS * size, size),
		.slot = part_of(all, SLOT * size, size),
	};
	if (yk_engine_adapters_use(e, size, e->operand + ADAPTER * size) == 0) {
		yoke_tensor *x = e->net->model->step(e->net, &e->cache, &step);
		if (rows || slots <= FEW_LOGITS) {
			yoke_tensor *last = part_of(all, LAST * size, lasts);
			yoke_tensor *y = e->net->model->logits(
				e->net, yoke_gather(yoke_reshape(x, 2, width), last, 0));
			yoke_read(y, e->logits,
				  (size_t)(lasts * e->net->shape.vocab) * sizeof *e->logits);
		} else {
			yoke_eval(e->cache.count, e->cache.var);
		}
	}
	yk_engine_adapters_drop(e);
	yk_shapes_vary(e->context, varied);
	return yoke_scope_end(scope);
}
