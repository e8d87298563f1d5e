// SPDX-License-Identifier: Apache-2.0
// Memory layout.  Roots get blocks of their own, or reuse the block of the dead old version that
// they replace; all other values lie in an arena, placed by lifetime; and a result may overwrite an
// operand that dies in the same step.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/param.h"
#include "plan/lower.h"
#include "plan/passes.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "plan/spans.h"
#include "plan/work.h"

YK_PARAM(donate, "donate", YK_BOOL, "1",
	 "write over operands that are read for the last time", .debug = true);

enum { FOREVER = UINT32_MAX - 1 };

// Lifetime of a base value's bytes, in steps of the stream that owns the memory: a value born after
// another's death may reuse its memory.  A copy on another stream counts from the first step that
// may run at the same time as its beginning, to the first step that knows it to be done.
struct life {
	uint32_t born, dies;
	uint32_t writer;     // the first step that writes it, YK_NIL: none
	uint32_t in;         // the value in whose bytes it lies, or itself
	uint32_t block;      // root block, or YK_NIL
	uint32_t leaf;       // plan's leaf, or YK_NIL
	uint64_t bytes;
	uint64_t offset; // virtual offset in the arena: chunk = offset / largest
	bool used;
};

struct layout {
	struct yk_work *w;
	struct yk_plan *p;
	struct life *life;   // by base value
	uint32_t *leaf_value; // by leaf: its value, or YK_NIL
	uint32_t *donated;   // by leaf: the root block that reuses it, or YK_NIL
	// the views of one step by the value that owns their bytes: first[v], then next[view],
	// ascending
	uint32_t linked, links; // that step + 1, and a count of such steps
	uint32_t *first, *link, *next; // link[v]: equals links if first[v] is valid
	uint64_t largest[YK_STREAMS]; // maximum allocation of each device
	uint64_t top[YK_STREAMS];
};

// The value that owns these bytes, at the end of the chain `in`.
static uint32_t owner(const struct layout *l, uint32_t v)
{
	while (l->life[v].in != v)
		v = l->life[v].in;
	return v;
}

// The first step of stream `home` that knows step s, of another stream, to be done; if none does,
// the last of all steps.
static uint32_t known_over(const struct layout *l, uint32_t s, int home)
{
	const struct yk_plan *p = l->p;
	int stream = p->step[s].stream;
	uint32_t t = s + 1;
	while (t < p->steps && (p->step[t].stream != home || l->w->schedule.clock[t].over[stream] <= s))
		t++;
	return t < p->steps ? t : (uint32_t)p->steps - 1;
}

static void find_lives(struct layout *l)
{
	const struct yk_graph *g = &l->w->g;
	for (uint32_t v = 0; v < g->values; v++) {
		const struct yk_node *n = yk_maker(g, v);
		struct life *f = &l->life[v];
		*f = (struct life){
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
			struct life *f = &l->life[r->index];
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

static bool is_hosts(const struct yk_work *w, yk_id v)
{
	return yk_maker(&w->g, v)->stream == YK_STREAM_CPU;
}

// The first step that only computes gradients; earlier steps may compute other operands for them.
static uint32_t first_gradient(const struct layout *l)
{
	const struct yk_work *w = l->w;
	for (uint32_t s = 0; s < l->p->steps; s++) {
		const struct yk_step *step = &l->p->step[s];
		uint32_t back = 0;
		while (back < step->nodes && w->ctx->graph.node[w->marks->node[step->part[back].recorded]].back)
			back++;
		if (step->nodes && back == step->nodes)
			return s;
	}
	return (uint32_t)l->p->steps;
}

// Peak of the bytes computed forward and kept for the backward pass on the device; and the largest
// workspace.
static int count_kinds(struct layout *l)
{
	const struct yk_graph *g = &l->w->g;
	struct yk_plan *p = l->p;
	const uint32_t turn = first_gradient(l);
	uint64_t *change = calloc(p->steps + 2, sizeof *change), now = 0;
	if (!change)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (uint32_t v = 0; v < g->values; v++) {
		const struct life *f = &l->life[v];
		if (!f->used || f->leaf != YK_NIL || f->dies == FOREVER || f->writer == YK_NIL ||
		    f->writer >= turn || f->dies < turn || is_hosts(l->w, v))
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
static int find_blocks(struct layout *l)
{
	struct yk_work *w = l->w;
	struct yk_plan *p = l->p;
	if (!(p->layout.root_block = malloc((w->roots + 1) * sizeof *p->layout.root_block)))
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (size_t i = 0; i < w->roots; i++) {
		struct life *f = &l->life[w->value[w->root_value[i]].place.base];
		if (f->block == YK_NIL) {
			if (yk_grow(&p->layout.block, &p->layout.block_cap, p->layout.blocks + 1,
				    sizeof *p->layout.block) < 0)
				return yk_fail(YOKE_ENOMEM, "no memory to plan");
			p->layout.block[p->layout.blocks] = (struct yk_root_block){
				.bytes = f->bytes, .donor = YK_NIL, .home = YK_NIL, .leaf = f->leaf
			};
			p->layout.block[p->layout.blocks].host =
				is_hosts(w, w->value[w->root_value[i]].place.base);
			f->block = (uint32_t)p->layout.blocks++;
		}
		p->layout.root_block[i] = f->block;
		f->dies = FOREVER;
	}
	return 0;
}

// ---- in place ----

static void link_views(struct layout *l, uint32_t s)
{
	const struct yk_step *step = &l->p->step[s];
	if (l->linked == s + 1)
		return;
	l->linked = s + 1;
	l->links++;
	for (uint32_t i = step->views; i-- > 0;) {
		const struct yk_ref *r = &l->p->ref[step->view + i];
		if (r->where != YK_AT_ARENA)
			continue;
		uint32_t v = owner(l, r->index);
		l->next[i] = l->link[v] == l->links ? l->first[v] : YK_NIL;
		l->first[v] = i;
		l->link[v] = l->links;
	}
}

// The first of the step's views of value v, YK_NIL: none.
static uint32_t first_view(struct layout *l, uint32_t s, uint32_t v)
{
	link_views(l, s);
	return l->link[v] == l->links ? l->first[v] : YK_NIL;
}

// Do two views of a step access the same bytes in the same order?
static bool same_walk(const struct yk_plan *p, uint32_t a, uint32_t b)
{
	const struct yoke_view *x = &p->view[a], *y = &p->view[b];
	if (x->kind != YOKE_VIEW_BUFFER || y->kind != YOKE_VIEW_BUFFER ||
	    x->rank != y->rank ||
	    x->dtype != y->dtype ||
	    p->ref[a].offset != p->ref[b].offset)
		return false;
	for (int i = 0; i < x->rank; i++)
		if (x->dims[i] != y->dims[i] ||
		    (x->dims[i] != 1 && x->strides[i] != y->strides[i]))
			return false;
	return true;
}

// May result `out` of the step overwrite operand `in`?  Both are views of the step.
static bool may_share(const struct yk_step *s, uint32_t in, uint32_t out)
{
	if (s->kind == YK_STEP_RANKS)
		return in - s->op.nout == out &&
		       (s->opcode == YK_RANKS_ALL_REDUCE || s->opcode == YK_RANKS_BROADCAST ||
			(s->opcode == YK_RANKS_GATHER_SHARDS && !yk_ranked(s->op.attr).whole));
	if (s->kind != YK_STEP_RUN)
		return false;
	if (s->op.code == YOKE_OP_MAP || s->op.code == YOKE_OP_MOVE)
		return true;
	if (s->op.code == YOKE_OP_CONTRACT) // an epilogue works element by element, the product
					    // does not
		return in - s->op.nout >= 2;
	const struct yk_op_def *row = yk_op_def(s->opcode);
	const uint32_t list = s->op.list, operand = in - s->op.nout;
	if (s->op.code == YOKE_OP_LIST_MAP) // only the same tensor of a list
		return operand < list * s->op.lists_in && operand % list == out % list;
	for (int i = 0; i < row->ninplace && s->op.code != YOKE_OP_REDUCE; i++)
		if (row->inplace[i].in == operand && row->inplace[i].out == out)
			return true;
	return false;
}

// The operand of step s that lies in value v and that result `out` may overwrite; the step must not
// read v in any other way.  YK_NIL: none.
static uint32_t share_with(struct layout *l, uint32_t s, uint32_t out, uint32_t v)
{
	const struct yk_plan *p = l->p;
	const struct yk_step *step = &p->step[s];
	uint32_t found = YK_NIL;
	for (uint32_t i = first_view(l, s, v); i != YK_NIL; i = l->next[i]) {
		if (i == out)
			continue;
		if (i < step->op.nout) // another result lies there
			return YK_NIL;
		if (!same_walk(p, step->view + i, step->view + out) ||
		    !may_share(step, i, out))
			return YK_NIL;
		found = i;
	}
	return found;
}

static void note_alias(struct layout *l, uint32_t s, uint32_t in)
{
	struct yk_step *step = &l->p->step[s];
	uint32_t operand = in - step->op.nout, list = step->op.list;
	if (list)
		operand = operand < list * step->op.lists_in ?
				  operand / list :
				  operand - list * step->op.lists_in + step->op.lists_in;
	if (operand < 64)
		step->op.alias_mask |= 1ull << operand;
}

// The step that first writes a root, and by which of its views; false if that is no kernel.
static bool sole_writer(struct layout *l, uint32_t v, uint32_t *s, uint32_t *out)
{
	const struct yk_plan *p = l->p;
	*s = l->life[v].writer;
	if (*s == YK_NIL || p->step[*s].kind != YK_STEP_RUN)
		return false;
	*out = first_view(l, *s, v); // results come first
	return *out < p->step[*s].op.nout;
}

// Is a root first written by an upload that knows all readers of the old version to be done?
static bool is_uploaded(const struct layout *l, uint32_t v, uint32_t old)
{
	const struct yk_plan *p = l->p;
	const uint32_t up = l->life[v].writer;
	bool over = up != YK_NIL && p->step[up].kind == YK_STEP_UP;
	for (uint32_t s = 0; s < p->steps && over; s++) {
		const struct yk_step *step = &p->step[s];
		const uint32_t known = step->stream == p->step[up].stream ?
					       up :
					       l->w->schedule.clock[up].over[step->stream];
		for (uint32_t i = 0; i < step->views && s >= known && over; i++) {
			const struct yk_ref *r = &p->ref[step->view + i];
			over = r->where != YK_AT_ARENA || owner(l, r->index) != old;
		}
	}
	return over;
}

// Does step s know all other steps that view value v to be done?
static bool is_alone(const struct layout *l, uint32_t s, uint32_t v)
{
	const struct yk_plan *p = l->p;
	const struct yk_step *own = &p->step[s];
	bool alone = true;
	for (uint32_t t = 0; t < p->steps && alone; t++) {
		const struct yk_step *other = &p->step[t];
		const bool before = t < s && (own->stream != YK_STREAM_RANKS || !yk_may_overtake(other, own));
		const bool over = t == s || (other->stream == own->stream ?
						     before :
						     l->w->schedule.clock[s].over[other->stream] > t);
		for (uint32_t i = 0; i < other->views && !over && alone; i++) {
			const struct yk_ref *r = &p->ref[other->view + i];
			alone = r->where != YK_AT_ARENA || owner(l, r->index) != v;
		}
	}
	return alone;
}

// The view of `old` that a collective that first writes a root may overwrite; YK_NIL: none.
static uint32_t by_ranks(struct layout *l, uint32_t v, uint32_t old)
{
	const uint32_t s = l->life[v].writer;
	if (s == YK_NIL || l->p->step[s].kind != YK_STEP_RANKS || !is_alone(l, s, old))
		return YK_NIL;
	const uint32_t out = first_view(l, s, v);
	return out < l->p->step[s].op.nout ? share_with(l, s, out, old) : YK_NIL;
}

// With YOKE_CHECK=nan, a step must not overwrite its operands.
static bool may_overwrite(const struct yk_work *w)
{
	return yk_param_bool(&donate) && !w->ctx->planner->check.nan;
}

// Lets roots reuse the blocks of their variables' old versions.
static void donate_leaves(struct layout *l)
{
	struct yk_work *w = l->w;
	struct yk_plan *p = l->p;
	for (size_t i = 0; i < w->roots; i++) {
		uint32_t v = w->value[w->root_value[i]].place.base, donor = w->root[i].donor, s,
			 out;
		struct yk_root_block *block = &p->layout.block[p->layout.root_block[i]];
		if (!w->root[i].handle || w->root[i].handle->kind != YK_VARIABLE ||
		    block->leaf != YK_NIL || block->donor != YK_NIL || block->home != YK_NIL)
			continue;
		if (donor == YK_NIL && w->root[i].idle && may_overwrite(w)) {
			block->home = (uint32_t)i;
			continue;
		}
		uint32_t old = donor == YK_NIL ? YK_NIL : l->leaf_value[donor], in = YK_NIL;
		const bool may = old != YK_NIL && is_hosts(w, old) == block->host && w->root[i].idle &&
				  may_overwrite(w) && l->donated[donor] == YK_NIL &&
				  l->life[old].block == YK_NIL;
		if (may && is_uploaded(l, v, old)) {
			block->donor = donor;
			l->donated[donor] = p->layout.root_block[i];
			continue;
		}
		if (may && sole_writer(l, v, &s, &out) && l->life[old].dies <= s) {
			if (!l->life[old].used || l->life[old].dies < s) {
				// its last reader ran before: the block is simply reused
				block->donor = donor;
				l->donated[donor] = p->layout.root_block[i];
				continue;
			}
			in = share_with(l, s, out, old);
		}
		if (may && in == YK_NIL && (in = by_ranks(l, v, old)) != YK_NIL)
			s = l->life[v].writer;
		if (in != YK_NIL) {
			block->donor = donor;
			l->donated[donor] = p->layout.root_block[i];
			note_alias(l, s, in);
		} else if (donor != YK_NIL) {
			p->layout.copies++;
			p->layout.copy_bytes += block->bytes;
		}
	}
}

// The operand, one of the step's views, that result o may overwrite; YK_NIL: it may not, or no
// operand dies with the step.
static uint32_t may_alias(struct layout *l, uint32_t s, uint32_t o, uint32_t i)
{
	const struct yk_step *step = &l->p->step[s];
	const struct yk_ref *r = &l->p->ref[step->view + o], *x = &l->p->ref[step->view + i];
	if (x->where != YK_AT_ARENA)
		return YK_NIL;
	uint32_t v = owner(l, x->index);
	const struct life *f = &l->life[v];
	if (f->leaf != YK_NIL || f->block != YK_NIL || (f->dies != s && step->kind != YK_STEP_RANKS) ||
	    f->bytes != l->life[r->index].bytes || v == r->index)
		return YK_NIL;
	// lifetimes are in steps of another stream
	if (step->kind == YK_STEP_RANKS && !is_alone(l, s, v))
		return YK_NIL;
	return share_with(l, s, o, v);
}

static uint32_t find_alias(struct layout *l, uint32_t s, uint32_t o)
{
	const struct yk_step *step = &l->p->step[s];
	const uint32_t list = step->op.list; // for lists, only the same tensor qualifies
	uint32_t in = YK_NIL;
	for (uint32_t i = step->op.nout + (list ? o % list : 0); i < step->views && in == YK_NIL;
	     i += list ? list : 1)
		in = may_alias(l, s, o, i);
	return in;
}

// Moves the views of value v, in the current step, to the list of its new owner.
static void relink(struct layout *l, uint32_t s, uint32_t v, uint32_t to)
{
	uint32_t last = first_view(l, s, v), after = first_view(l, s, to);
	if (last == YK_NIL)
		return;
	l->first[to] = last;
	while (l->next[last] != YK_NIL)
		last = l->next[last];
	l->next[last] = after;
}

// Lets results overwrite operands in the arena that die with the step.
static void share_arena(struct layout *l)
{
	struct yk_plan *p = l->p;
	for (uint32_t s = 0; s < p->steps && may_overwrite(l->w); s++) {
		const struct yk_step *step = &p->step[s];
		const bool runs = step->kind == YK_STEP_RUN || step->kind == YK_STEP_RANKS;
		for (uint32_t o = 0; o < step->op.nout && runs; o++) {
			const struct yk_ref *r = &p->ref[step->view + o];
			if (r->where != YK_AT_ARENA)
				continue;
			struct life *mine = &l->life[r->index];
			if (mine->writer != s || mine->block != YK_NIL ||
			    mine->in != r->index)
				continue;
			uint32_t in = find_alias(l, s, o);
			if (in == YK_NIL)
				continue;
			uint32_t v = owner(l, p->ref[step->view + in].index);
			relink(l, s, r->index, v);
			mine->in = v;
			if (step->kind == YK_STEP_RUN || l->life[v].dies < mine->dies)
				l->life[v].dies = mine->dies;
			note_alias(l, s, in);
		}
	}
}

// ---- offsets ----

static uint64_t aligned(uint64_t bytes)
{
	return (bytes + YK_ALIGN - 1) / YK_ALIGN * YK_ALIGN;
}

static int place_arena(struct layout *l, int stream)
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
		struct life *f = &l->life[v];
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
static void bind(struct layout *l)
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
			uint32_t v = owner(l, r->index);
			const struct life *f = &l->life[v];
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
static void drop_copies(struct layout *l, uint32_t *now)
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
static int note_lives(struct layout *l, const uint32_t *now, size_t former)
{
	const struct yk_graph *g = &l->w->g;
	struct yk_plan *p = l->p;
	if (!p->steps)
		return 0;
	if (!(p->layout.live =
		      yk_arena_alloc(&p->memory, (g->values + p->steps) * sizeof *p->layout.live)))
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (uint32_t v = 0; v < g->values; v++) {
		const struct life *f = &l->life[v];
		const bool written = f->writer != YK_NIL && f->in == v;
		if (!written || !f->used || f->leaf != YK_NIL)
			continue;
		if (f->block == YK_NIL)
			note_live(p, (struct yk_live){ now[f->born], f->dies < former ? now[f->dies] : YK_NIL,
						       now[f->writer], aligned(f->bytes + !f->bytes),
						       (uint8_t)yk_maker(g, v)->stream, false });
		else if (yk_is_new(&p->layout.block[f->block]) && now[f->writer] < p->steps)
			p->step[now[f->writer]].growth += (int64_t)f->bytes;
	}
	for (uint32_t s = 0; s < p->steps; s++) {
		const struct yk_step *step = &p->step[s];
		if (step->work_bytes)
			note_live(p, (struct yk_live){ s, s, s, aligned(step->work_bytes), (uint8_t)yk_work_stream(step), true });
	}
	return 0;
}

static int layout_init(struct layout *l)
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

static void layout_fini(struct layout *l)
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
	struct layout l = { .w = w, .p = w->plan };
	int err = layout_init(&l);
	if (!err) {
		find_lives(&l);
		err = find_blocks(&l);
	}
	if (!err)
		err = count_kinds(&l);
	if (!err) {
		donate_leaves(&l);
		share_arena(&l);
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
