// SPDX-License-Identifier: Apache-2.0
// Memory layout.  Roots get blocks of their own, or reuse the block of the dead old version that
// they replace; all other values lie in an arena, placed by lifetime; and a result may overwrite an
// operand that dies in the same step (overwrite.c).

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "plan/layout.h"
#include "plan/lower.h"
#include "plan/passes.h"
#include "plan/spans.h"

enum { FOREVER = UINT32_MAX - 1 };

// The first step of stream `home` that knows step s, of another stream, to be done; if none does,
// the last of all steps.
static uint32_t known_over(const struct yk_placement *l, uint32_t s, int home)
{
	const struct yk_plan *p = l->p;
	int stream = p->step[s].stream;
	uint32_t t = s + 1;
	while (t < p->steps &&
	       (p->step[t].stream != home || l->w->schedule.clock[t].over[stream] <= s))
		t++;
	return t < p->steps ? t : (uint32_t)p->steps - 1;
}

static void find_lives(struct yk_placement *l)
{
	const struct yk_graph *g = &l->w->g;
	for (uint32_t v = 0; v < g->values; v++) {
		const struct yk_node *n = yk_maker(g, v);
		struct yk_life *f = &l->life[v];
		*f = (struct yk_life){
			.born = FOREVER, .writer = YK_NIL, .in = v, .block = YK_NIL, .leaf = YK_NIL
		};
		f->bytes = yk_bytes_of_value(&g->value[v]);
		if (n->op == YK_LEAF) {
			f->leaf = (uint32_t)yk_attrs(g, n)[0].i;
			l->leaf_value[f->leaf] = v;
			f->born = 0;
			l->p->layout.leaf_bytes[f->leaf] = f->bytes;
		}
	}
	for (uint32_t s = 0; s < l->p->steps; s++) {
		const struct yk_step *step = &l->p->step[s];
		for (uint32_t i = 0; i < step->views; i++) {
			const struct yk_ref *r = &l->p->ref[step->view + i];
			if (r->where != YK_AT_ARENA)
				continue;
			struct yk_life *f = &l->life[r->index];
			int home = yk_maker(g, r->index)->stream;
			bool away = step->stream != home;
			uint32_t from = away ? l->w->schedule.clock[s].over[home] : s;
			uint32_t to = away ? known_over(l, s, home) : s;
			if (f->writer == YK_NIL)
				f->writer = s;
			f->born = f->born < from ? f->born : from;
			f->dies = f->dies > to ? f->dies : to;
			f->used = true;
		}
	}
}

// The first step that only computes gradients; earlier steps may compute other operands for them.
static uint32_t first_gradient(const struct yk_placement *l)
{
	const struct yk_work *w = l->w;
	for (uint32_t s = 0; s < l->p->steps; s++) {
		const struct yk_step *step = &l->p->step[s];
		uint32_t back = 0;
		while (back < step->nodes &&
		       w->ctx->graph.node[w->marks->node[step->part[back].recorded]].back)
			back++;
		if (step->nodes && back == step->nodes)
			return s;
	}
	return (uint32_t)l->p->steps;
}

// Peak of the bytes computed forward and kept for the backward pass on the device; and the largest
// workspace.
static int count_kinds(struct yk_placement *l)
{
	const struct yk_graph *g = &l->w->g;
	struct yk_plan *p = l->p;
	const uint32_t turn = first_gradient(l);
	uint64_t *change = calloc(p->steps + 2, sizeof *change), now = 0;
	if (!change)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (uint32_t v = 0; v < g->values; v++) {
		const struct yk_life *f = &l->life[v];
		if (!f->used || f->leaf != YK_NIL || f->dies == FOREVER || f->writer == YK_NIL ||
		    f->writer >= turn || f->dies < turn || yk_made_on_cpu(l->w, v))
			continue;
		change[f->born] += f->bytes;
		change[f->dies + 1] -= f->bytes;
	}
	for (size_t s = 0; s < p->steps; s++) {
		now += change[s];
		p->layout.activations = now > p->layout.activations ? now : p->layout.activations;
		if (p->step[s].work_bytes > p->layout.workspace)
			p->layout.workspace = p->step[s].work_bytes;
	}
	free(change);
	return 0;
}

// Assigns blocks to distinct roots; a root that is an unchanged leaf needs none.
static int find_blocks(struct yk_placement *l)
{
	struct yk_work *w = l->w;
	struct yk_plan *p = l->p;
	if (!(p->layout.root_block = malloc((w->roots + 1) * sizeof *p->layout.root_block)))
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (size_t i = 0; i < w->roots; i++) {
		struct yk_life *f = &l->life[w->value[w->root_value[i]].place.base];
		if (f->block == YK_NIL) {
			if (yk_grow(&p->layout.block, &p->layout.block_cap, p->layout.blocks + 1,
				    sizeof *p->layout.block) < 0)
				return yk_fail(YOKE_ENOMEM, "no memory to plan");
			p->layout.block[p->layout.blocks] = (struct yk_root_block){
				.bytes = f->bytes, .donor = YK_NIL, .home = YK_NIL, .leaf = f->leaf
			};
			p->layout.block[p->layout.blocks].host =
				yk_made_on_cpu(w, w->value[w->root_value[i]].place.base);
			f->block = (uint32_t)p->layout.blocks++;
		}
		p->layout.root_block[i] = f->block;
		f->dies = FOREVER;
	}
	return 0;
}

// ---- offsets ----

static uint64_t aligned(uint64_t bytes)
{
	return (bytes + YK_ALIGN - 1) / YK_ALIGN * YK_ALIGN;
}

static int place_arena(struct yk_placement *l, int stream)
{
	struct yk_plan *p = l->p;
	struct yk_arena_plan *a = &p->layout.arena[stream];
	const struct yk_graph *g = &l->w->g;
	struct yk_device *d = yk_work_device(l->w, stream);
	struct yk_span *span = malloc((g->values + p->steps + 1) * sizeof *span);
	size_t n = 0;
	if (!span)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (uint32_t v = 0; v < g->values; v++) {
		struct yk_life *f = &l->life[v];
		if (!f->used || f->in != v || f->block != YK_NIL || f->leaf != YK_NIL ||
		    yk_maker(g, v)->stream != stream)
			continue;
		// also an empty value: its readers (a sum, a product) need a segment
		span[n++] = (struct yk_span){ f->born, f->dies,
					   aligned(f->bytes + !f->bytes), &f->offset };
	}
	for (uint32_t s = 0; s < p->steps; s++) {
		struct yk_step *step = &p->step[s];
		if (yk_work_stream(step) != stream || !step->work_bytes)
			continue;
		const bool away = step->stream != stream;
		span[n++] = (struct yk_span){ away ? l->w->schedule.clock[s].over[stream] : s,
					      away ? known_over(l, s, stream) : s,
					      aligned(step->work_bytes), &step->work.offset };
	}
	uint64_t largest = l->largest[stream] = d->info.max_segment / YK_ALIGN * YK_ALIGN;
	int err = 0;
	for (yk_id v = 0; v < g->values && stream == YK_STREAM_DEVICE; v++)
		if (l->life[v].used && l->life[v].block == YK_NIL && l->life[v].leaf == YK_NIL &&
		    yk_maker(g, v)->stream == stream && yk_note_large(l->w, v))
			err = YOKE_ENOMEM;
	for (size_t i = 0; i < n && !err; i++)
		if (span[i].bytes > largest)
			err = yk_fail(YOKE_ENOMEM,
				      "a value of %llu bytes does not fit the largest "
				      "allocation "
				      "of %s, %llu bytes",
				      (unsigned long long)span[i].bytes, d->id,
				      (unsigned long long)largest);
	if (!err)
		err = yk_spans_assign(span, n, (uint32_t)p->steps, largest, &l->top[stream]);
	free(span);
	for (uint64_t at = 0; at < l->top[stream] && !err; at += largest) {
		if (yk_grow(&a->chunk, &a->cap, a->n + 1, sizeof *a->chunk) < 0)
			return yk_fail(YOKE_ENOMEM, "no memory to plan");
		uint64_t left = l->top[stream] - at;
		a->chunk[a->n++] = left < largest ? left : largest;
	}
	return err;
}

// Resolves refs from values to locations.
static void bind(struct yk_placement *l)
{
	struct yk_plan *p = l->p;
	for (uint32_t s = 0; s < p->steps; s++) {
		struct yk_step *step = &p->step[s];
		if (step->work_bytes) {
			step->work.where = YK_AT_ARENA;
			step->work.stream = (uint8_t)yk_work_stream(step);
			step->work.index =
				(uint32_t)(step->work.offset / l->largest[step->work.stream]);
			step->work.offset %= l->largest[step->work.stream];
			step->op.workspace =
				(struct yoke_view){ .kind = YOKE_VIEW_BUFFER,
						    .dtype = yoke_u8,
						    .rank = 1,
						    .dims = { (int64_t)step->work_bytes },
						    .strides = { 1 },
						    .align = l->w->align };
		}
		for (uint32_t i = 0; i < step->views; i++) {
			struct yk_ref *r = &p->ref[step->view + i];
			if (r->where != YK_AT_ARENA)
				continue;
			uint32_t v = yk_owner(l, r->index);
			const struct yk_life *f = &l->life[v];
			if (f->block != YK_NIL && f->leaf == YK_NIL) {
				r->where = YK_AT_ROOT;
				r->index = f->block;
			} else if (f->leaf != YK_NIL && l->donated[f->leaf] != YK_NIL) {
				r->where = YK_AT_ROOT; // its block is allocated at launch
				r->index = l->donated[f->leaf];
			} else if (f->leaf != YK_NIL) {
				r->where = YK_AT_LEAF;
				r->index = f->leaf;
			} else {
				r->stream = yk_maker(&l->w->g, v)->stream;
				r->index = (uint32_t)(f->offset / l->largest[r->stream]);
				r->offset += f->offset % l->largest[r->stream];
			}
		}
	}
}

// Removes copies of a value onto itself.  now: by former step, the number of steps left before it.
static void drop_copies(struct yk_placement *l, uint32_t *now)
{
	struct yk_plan *p = l->p;
	size_t n = 0;
	for (size_t s = 0; s < p->steps; s++) {
		struct yk_step *step = &p->step[s];
		const struct yk_ref *r = &p->ref[step->view];
		bool nothing = step->kind == YK_STEP_RUN &&
			       step->op.code == YOKE_OP_MOVE &&
			       (step->op.alias_mask & 1) && r[0].offset == r[1].offset &&
			       !step->waits && step->event == YK_NIL;
		now[s] = (uint32_t)n;
		if (nothing) {
			if (step->handle)
				step->ops->release(step->handle);
			continue;
		}
		p->step[n++] = *step;
	}
	p->steps = n;
}

// ---- lifetimes, for profiles ----

static void note_live(struct yk_plan *p, struct yk_live live)
{
	const uint32_t last = (uint32_t)p->steps - 1;
	live.born = live.born < last ? live.born : last;
	live.dies = live.dies < last ? live.dies : last;
	live.writer = live.writer < last ? live.writer : last;
	if (live.dies > live.born) {
		p->step[live.born].growth += (int64_t)live.bytes;
		p->step[live.dies].growth -= (int64_t)live.bytes;
	}
	p->layout.live[p->layout.lives++] = live;
}

// now: as drop_copies sets it.
static int note_lives(struct yk_placement *l, const uint32_t *now, size_t former)
{
	const struct yk_graph *g = &l->w->g;
	struct yk_plan *p = l->p;
	if (!p->steps)
		return 0;
	if (!(p->layout.live =
		      yk_arena_alloc(&p->memory, (g->values + p->steps) * sizeof *p->layout.live)))
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (uint32_t v = 0; v < g->values; v++) {
		const struct yk_life *f = &l->life[v];
		const bool written = f->writer != YK_NIL && f->in == v;
		if (!written || !f->used || f->leaf != YK_NIL)
			continue;
		if (f->block == YK_NIL)
			note_live(p, (struct yk_live){
					     now[f->born], f->dies < former ? now[f->dies] : YK_NIL,
					     now[f->writer], aligned(f->bytes + !f->bytes),
					     (uint8_t)yk_maker(g, v)->stream, false });
		else if (yk_is_new(&p->layout.block[f->block]) && now[f->writer] < p->steps)
			p->step[now[f->writer]].growth += (int64_t)f->bytes;
	}
	for (uint32_t s = 0; s < p->steps; s++) {
		const struct yk_step *step = &p->step[s];
		if (step->work_bytes)
			note_live(p, (struct yk_live){ s, s, s, aligned(step->work_bytes),
						       (uint8_t)yk_work_stream(step), true });
	}
	return 0;
}

static int layout_init(struct yk_placement *l)
{
	struct yk_plan *p = l->p;
	size_t leaves = l->w->marks->leaves, values = l->w->g.values, views = 0;
	for (size_t s = 0; s < p->steps; s++)
		views = p->step[s].views > views ? p->step[s].views : views;
	l->life = malloc((values + 1) * sizeof *l->life);
	l->leaf_value = malloc((leaves + 1) * sizeof *l->leaf_value);
	l->donated = malloc((leaves + 1) * sizeof *l->donated);
	l->first = malloc((values + 1) * sizeof *l->first);
	l->link = calloc(values + 1, sizeof *l->link);
	l->next = malloc((views + 1) * sizeof *l->next);
	p->layout.leaf_bytes =
		yk_arena_alloc(&p->memory, (leaves + 1) * sizeof *p->layout.leaf_bytes);
	if (!l->life || !l->leaf_value || !l->donated || !l->first || !l->link || !l->next ||
	    !p->layout.leaf_bytes)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	memset(l->leaf_value, 0xff, (leaves + 1) * sizeof *l->leaf_value);
	memset(l->donated, 0xff, (leaves + 1) * sizeof *l->donated);
	p->layout.leaves = leaves;
	return 0;
}

static void layout_fini(struct yk_placement *l)
{
	free(l->life);
	free(l->leaf_value);
	free(l->donated);
	free(l->first);
	free(l->link);
	free(l->next);
}

int yk_layout(struct yk_work *w)
{
	struct yk_placement l = { .w = w, .p = w->plan };
	int err = layout_init(&l);
	if (!err) {
		find_lives(&l);
		err = find_blocks(&l);
	}
	if (!err)
		err = count_kinds(&l);
	if (!err) {
		yk_donate_leaves(&l);
		yk_share_arena(&l);
	}
	for (int k = YK_STREAM_DEVICE; k <= YK_STREAM_CPU && !err; k++)
		err = place_arena(&l, k);
	uint32_t *now = malloc((w->plan->steps + 1) * sizeof *now);
	const size_t former = w->plan->steps;
	if (!err && !now)
		err = yk_fail(YOKE_ENOMEM, "no memory to plan");
	if (!err) {
		bind(&l);
		drop_copies(&l, now);
		err = note_lives(&l, now, former);
	}
	free(now);
	layout_fini(&l);
	return err;
}
