// SPDX-License-Identifier: Apache-2.0
// Layout: where each value lies.  Roots have blocks of their own, or take over the block of the dead
// old version they replace; everything else lies in an arena, by lifetime; and a result may lie where an
// operand lay that dies in the same step.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/param.h"
#include "plan/plan.h"

YK_PARAM(donate, "donate", YK_BOOL, "1",
	 "write over operands that are read for the last time");
YK_PARAM(arena, "arena", YK_BOOL, "1",
	 "share memory between values whose lifetimes do not overlap");

enum { FOREVER = UINT32_MAX - 1 };

struct life {                // of one base value's bytes
	uint32_t born, dies; // steps
	uint32_t heir;       // value whose bytes these are as well, or itself
	uint32_t block;      // root block, or YK_NIL
	uint32_t leaf;       // plan's leaf, or YK_NIL
	uint64_t bytes;
	uint64_t offset; // in the arena, virtual: chunk = offset / largest
	bool used;
};

struct layout {
	struct yk_work *w;
	struct yk_plan *p;
	struct life *life;   // by base value
	uint32_t *donated;   // by leaf: root block it goes to, or YK_NIL
	uint64_t largest[2]; // allocation of each device
	uint64_t top[2];
};

// The value whose bytes these are, at the end of the chain of heirs.
static uint32_t owner(const struct layout *l, uint32_t v)
{
	while (l->life[v].heir != v)
		v = l->life[v].heir;
	return v;
}

static void find_lives(struct layout *l)
{
	const struct yk_graph *g = &l->w->g;
	for (uint32_t v = 0; v < g->values; v++) {
		const struct yk_node *n = yk_maker(g, v);
		struct life *f = &l->life[v];
		*f = (struct life){
			.born = FOREVER, .heir = v, .block = YK_NIL, .leaf = YK_NIL
		};
		f->bytes = (uint64_t)yk_count(&g->value[v]) *
			   yoke_dtype_size(g->value[v].dtype);
		if (n->op == YK_LEAF) {
			f->leaf = (uint32_t)yk_attrs(g, n)[0].i;
			f->born = 0;
			l->p->need[f->leaf] = f->bytes;
		}
	}
	for (uint32_t s = 0; s < l->p->steps; s++) {
		const struct yk_step *step = &l->p->step[s];
		for (uint32_t i = 0; i < step->views; i++) {
			const struct yk_ref *r = &l->p->ref[step->view + i];
			if (r->where != YK_AT_ARENA)
				continue;
			struct life *f = &l->life[r->index];
			if (f->born == FOREVER)
				f->born = s;
			f->dies = s;
			f->used = true;
		}
	}
}

// Distinct roots get blocks; a root that is a leaf unchanged stays that leaf.
static int find_blocks(struct layout *l)
{
	struct yk_work *w = l->w;
	struct yk_plan *p = l->p;
	if (!(p->root_block = malloc((w->roots + 1) * sizeof *p->root_block)))
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	p->roots = w->roots;
	for (size_t i = 0; i < w->roots; i++) {
		struct life *f = &l->life[w->place[w->root_value[i]].base];
		if (f->block == YK_NIL) {
			if (yk_grow(&p->block, &p->block_cap, p->blocks + 1,
				    sizeof *p->block) < 0)
				return yk_fail(YOKE_ENOMEM, "no memory to plan");
			p->block[p->blocks] = (struct yk_root_block){ .bytes = f->bytes,
								      .donor = YK_NIL,
								      .leaf = f->leaf };
			f->block = (uint32_t)p->blocks++;
		}
		p->root_block[i] = f->block;
		f->dies = FOREVER;
	}
	return 0;
}

// ---- in place ----

// Do two views of a step run through the same bytes in the same order, from the first?
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

// May result `out` of the step be written where operand `in` lies?  Both are views of the step.
static bool may_share(const struct yk_step *s, uint32_t in, uint32_t out)
{
	if (s->kind != YK_STEP_RUN)
		return false;
	if (s->op.code == YOKE_OP_MAP || s->op.code == YOKE_OP_MOVE)
		return true;
	if (s->op.code == YOKE_OP_CONTRACT) // an epilogue goes element by element, its product not
		return in - s->op.nout >= 2;
	const struct yk_op_row *row = &yk_ops[s->opcode];
	uint32_t list = s->op.list, operand = in - s->op.nout, result = out;
	if (list) {
		if (operand >= list * row->lists_in || result >= list * row->lists_out ||
		    operand % list != result % list)
			return false;
		operand /= list;
		result /= list;
	}
	for (int i = 0; i < row->ninplace && s->op.code != YOKE_OP_REDUCE; i++)
		if (row->inplace[i].in == operand && row->inplace[i].out == result)
			return true;
	return false;
}

// The operand of step s that lies in value v and that result `out` may overwrite; every way in which the
// step reads v must be that one.  YK_NIL: none.
static uint32_t share_with(const struct layout *l, uint32_t s, uint32_t out, uint32_t v)
{
	const struct yk_plan *p = l->p;
	const struct yk_step *step = &p->step[s];
	uint32_t found = YK_NIL;
	for (uint32_t i = step->op.nout; i < step->views; i++) {
		const struct yk_ref *r = &p->ref[step->view + i];
		if (r->where != YK_AT_ARENA || owner(l, r->index) != v)
			continue;
		if (!same_walk(p, step->view + i, step->view + out) ||
		    !may_share(step, i, out))
			return YK_NIL;
		found = i;
	}
	for (uint32_t o = 0; o < step->op.nout && found != YK_NIL;
	     o++) // another result there already
		if (o != out && p->ref[step->view + o].where == YK_AT_ARENA &&
		    owner(l, p->ref[step->view + o].index) == v)
			return YK_NIL;
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

// The step that writes a root first, and which of its views; false when that is no kernel.
static bool sole_writer(const struct layout *l, uint32_t v, uint32_t *s, uint32_t *out)
{
	const struct yk_plan *p = l->p;
	*s = l->life[v].born;
	if (*s >= p->steps)
		return false;
	const struct yk_step *step = &p->step[*s];
	*out = YK_NIL;
	for (uint32_t i = 0; i < step->op.nout && step->kind == YK_STEP_RUN; i++)
		if (p->ref[step->view + i].where == YK_AT_ARENA &&
		    p->ref[step->view + i].index == v)
			*out = i;
	return *out != YK_NIL;
}

// Results that are checked must leave their operands as they were.
static bool may_overwrite(const struct yk_work *w)
{
	return yk_param_bool(&donate) && !w->ctx->planner->check_nan;
}

// Roots over the old versions of their variables.
static void donate_leaves(struct layout *l)
{
	struct yk_work *w = l->w;
	struct yk_plan *p = l->p;
	for (size_t i = 0; i < w->roots; i++) {
		uint32_t v = w->place[w->root_value[i]].base, donor = w->root[i].donor, s,
			 out;
		struct yk_root_block *block = &p->block[p->root_block[i]];
		if (!w->root[i].handle || w->root[i].handle->kind != YK_VARIABLE ||
		    block->leaf != YK_NIL || block->donor != YK_NIL)
			continue;
		uint32_t old = YK_NIL;
		for (uint32_t k = 0; k < w->g.values && donor != YK_NIL; k++)
			if (l->life[k].leaf == donor)
				old = k;
		uint32_t in = YK_NIL;
		if (old != YK_NIL && w->root[i].idle && may_overwrite(w) &&
		    l->donated[donor] == YK_NIL && l->life[old].block == YK_NIL &&
		    sole_writer(l, v, &s, &out) && l->life[old].dies <= s) {
			if (!l->life[old].used || l->life[old].dies < s) {
				// read for the last time before: the block is simply taken over
				block->donor = donor;
				l->donated[donor] = p->root_block[i];
				continue;
			}
			in = share_with(l, s, out, old);
		}
		if (in != YK_NIL) {
			block->donor = donor;
			l->donated[donor] = p->root_block[i];
			note_alias(l, s, in);
		} else if (donor != YK_NIL) {
			p->copies++;
			p->copy_bytes += block->bytes;
		}
	}
}

// Results over operands in the arena that die with the step.
static void share_arena(struct layout *l)
{
	struct yk_plan *p = l->p;
	for (uint32_t s = 0; s < p->steps && may_overwrite(l->w); s++) {
		const struct yk_step *step = &p->step[s];
		for (uint32_t o = 0; o < step->op.nout && step->kind == YK_STEP_RUN;
		     o++) {
			const struct yk_ref *r = &p->ref[step->view + o];
			if (r->where != YK_AT_ARENA)
				continue;
			struct life *mine = &l->life[r->index];
			if (mine->born != s || mine->block != YK_NIL ||
			    mine->heir != r->index)
				continue;
			for (uint32_t i = step->op.nout; i < step->views; i++) {
				const struct yk_ref *x = &p->ref[step->view + i];
				if (x->where != YK_AT_ARENA)
					continue;
				uint32_t v = owner(l, x->index);
				struct life *f = &l->life[v];
				if (f->leaf != YK_NIL || f->block != YK_NIL ||
				    f->dies != s || f->bytes != mine->bytes ||
				    v == r->index)
					continue;
				uint32_t in = share_with(l, s, o, v);
				if (in == YK_NIL)
					continue;
				mine->heir = v;
				f->dies = mine->dies;
				note_alias(l, s, in);
				break;
			}
		}
	}
}

// ---- offsets ----

struct span {
	uint32_t born, dies;
	uint64_t bytes;
	uint64_t *offset; // where it goes
};

static int by_size(const void *x, const void *y)
{
	const struct span *a = x, *b = y;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? 1 : -1;
	return a->born != b->born ? (a->born > b->born ? 1 : -1) : 0;
}

static int by_offset(const void *x, const void *y)
{
	const struct span *const *a = x, *const *b = y;
	return *(*a)->offset > *(*b)->offset ? 1 : *(*a)->offset < *(*b)->offset ? -1 : 0;
}

// Spans that are placed, by the stretches of time they touch, so that what is alive together is found
// without looking at all of them: 300,000 steps are planned in a moment.
enum { STRETCH = 64 }; // steps

struct placed {
	uint32_t *head; // by stretch: the first of its entries, or YK_NIL
	struct entry {
		uint32_t span, next;
	} *entry;
	size_t n, cap;
	uint32_t *seen; // by span: who looked at it last
};

static int placed_add(struct placed *t, const struct span *span, uint32_t i)
{
	for (uint32_t k = span[i].born / STRETCH; k <= span[i].dies / STRETCH; k++) {
		if (yk_grow(&t->entry, &t->cap, t->n + 1, sizeof *t->entry) < 0)
			return yk_fail(YOKE_ENOMEM, "no memory to plan");
		t->entry[t->n] = (struct entry){ i, t->head[k] };
		t->head[k] = (uint32_t)t->n++;
	}
	return 0;
}

// Those that live while span i does, by offset.
static size_t placed_beside(struct placed *t, struct span *span, uint32_t i, const struct span **busy)
{
	size_t n = 0;
	for (uint32_t k = span[i].born / STRETCH; k <= span[i].dies / STRETCH; k++)
		for (uint32_t e = t->head[k]; e != YK_NIL; e = t->entry[e].next) {
			uint32_t j = t->entry[e].span;
			if (t->seen[j] == i || span[j].born > span[i].dies ||
			    span[i].born > span[j].dies)
				continue;
			t->seen[j] = i;
			busy[n++] = &span[j];
		}
	qsort(busy, n, sizeof *busy, by_offset);
	return n;
}

// Largest first, each at the lowest offset that is free through its life; none crosses a chunk.
static int place_spans(struct span *span, size_t n, uint32_t steps, uint64_t largest, uint64_t *top)
{
	bool share = yk_param_bool(&arena);
	size_t stretches = steps / STRETCH + (size_t)1;
	struct placed t = { .head = malloc(stretches * sizeof *t.head),
			    .seen = malloc((n + 1) * sizeof *t.seen) };
	const struct span **busy = malloc((n + 1) * sizeof *busy);
	int err = t.head && t.seen && busy ? 0 : yk_fail(YOKE_ENOMEM, "no memory to plan");
	if (!err) {
		memset(t.head, 0xff, stretches * sizeof *t.head);
		memset(t.seen, 0xff, n * sizeof *t.seen);
		qsort(span, n, sizeof *span, by_size);
	}
	for (uint32_t i = 0; i < n && !err; i++) {
		size_t k = share ? placed_beside(&t, span, i, busy) : 0;
		uint64_t at = share ? 0 : *top;
		for (size_t j = 0; j <= k; j++) {
			if (at / largest != (at + span[i].bytes - 1) / largest)
				at = (at / largest + 1) * largest;
			if (j == k || at + span[i].bytes <= *busy[j]->offset)
				break;
			uint64_t end = *busy[j]->offset + busy[j]->bytes;
			at = end > at ? end : at;
		}
		*span[i].offset = at;
		if (at + span[i].bytes > *top)
			*top = at + span[i].bytes;
		err = share ? placed_add(&t, span, i) : 0;
	}
	free(t.head);
	free(t.entry);
	free(t.seen);
	free(busy);
	return err;
}

static uint64_t aligned(uint64_t bytes)
{
	return (bytes + YK_ALIGN - 1) / YK_ALIGN * YK_ALIGN;
}

static int place_device(struct layout *l, int device)
{
	struct yk_plan *p = l->p;
	const struct yk_graph *g = &l->w->g;
	struct yk_device *d = yk_work_device(l->w, device);
	struct span *span = malloc((g->values + p->steps + 1) * sizeof *span);
	size_t n = 0;
	if (!span)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (uint32_t v = 0; v < g->values; v++) {
		struct life *f = &l->life[v];
		if (!f->used || f->heir != v || f->block != YK_NIL || f->leaf != YK_NIL ||
		    yk_maker(g, v)->device != device)
			continue;
		// an empty value too: what reads it (a sum, a product) is given a segment
		span[n++] = (struct span){ f->born, f->dies,
					   aligned(f->bytes + !f->bytes), &f->offset };
	}
	for (uint32_t s = 0; s < p->steps; s++) {
		struct yk_step *step = &p->step[s];
		if (step->device != device || !step->work_bytes ||
		    step->kind != YK_STEP_RUN)
			continue;
		span[n++] = (struct span){ s, s, aligned(step->work_bytes),
					   &step->work.offset };
	}
	l->largest[device] = d->info.max_segment / YK_ALIGN * YK_ALIGN;
	int err = 0;
	for (size_t i = 0; i < n && !err; i++)
		if (span[i].bytes > l->largest[device])
			err = yk_fail(YOKE_ENOMEM,
				      "a value of %llu bytes does not fit the largest "
				      "allocation "
				      "of %s, %llu bytes",
				      (unsigned long long)span[i].bytes, d->id,
				      (unsigned long long)l->largest[device]);
	if (!err)
		err = place_spans(span, n, (uint32_t)p->steps, l->largest[device],
				  &l->top[device]);
	free(span);
	uint64_t largest = l->largest[device];
	for (uint64_t at = 0; at < l->top[device] && !err; at += largest) {
		if (yk_grow(&p->chunk[device], &p->chunk_cap[device],
			    p->chunks[device] + 1, sizeof **p->chunk) < 0)
			return yk_fail(YOKE_ENOMEM, "no memory to plan");
		uint64_t left = l->top[device] - at;
		p->chunk[device][p->chunks[device]++] = left < largest ? left : largest;
	}
	return err;
}

// Refs of values become places.
static void bind(struct layout *l)
{
	struct yk_plan *p = l->p;
	for (uint32_t s = 0; s < p->steps; s++) {
		struct yk_step *step = &p->step[s];
		int device = step->device;
		if (step->work_bytes) {
			step->work.where = YK_AT_ARENA;
			step->work.device = step->device;
			step->work.index =
				(uint32_t)(step->work.offset / l->largest[device]);
			step->work.offset %= l->largest[device];
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
			} else if (f->leaf != YK_NIL) {
				r->where = YK_AT_LEAF;
				r->index = f->leaf;
			} else {
				r->device = yk_maker(&l->w->g, v)->device;
				r->index = (uint32_t)(f->offset / l->largest[r->device]);
				r->offset += f->offset % l->largest[r->device];
			}
		}
	}
}

// Copies of a value onto itself do nothing.
static void drop_copies(struct layout *l)
{
	struct yk_plan *p = l->p;
	size_t n = 0;
	for (size_t s = 0; s < p->steps; s++) {
		struct yk_step *step = &p->step[s];
		const struct yk_ref *r = &p->ref[step->view];
		bool nothing = step->kind == YK_STEP_RUN &&
			       step->op.code == YOKE_OP_MOVE &&
			       (step->op.alias_mask & 1) && r[0].offset == r[1].offset;
		if (nothing)
			continue;
		p->step[n++] = *step;
	}
	p->steps = n;
}

int yk_layout(struct yk_work *w)
{
	struct layout l = { .w = w, .p = w->plan };
	size_t leaves = w->marks->leaves;
	int err = YOKE_ENOMEM;
	l.life = malloc((w->g.values + 1) * sizeof *l.life);
	l.donated = malloc((leaves + 1) * sizeof *l.donated);
	w->plan->need = yk_arena_alloc(&w->plan->memory, (leaves + 1) * sizeof *w->plan->need);
	if (!l.life || !l.donated || !w->plan->need) {
		yk_fail(err, "no memory to plan");
		goto out;
	}
	memset(l.donated, 0xff, (leaves + 1) * sizeof *l.donated);
	w->plan->leaves = leaves;
	find_lives(&l);
	if ((err = find_blocks(&l)) < 0)
		goto out;
	donate_leaves(&l);
	share_arena(&l);
	for (int d = 0; d < 2 && !err; d++)
		err = place_device(&l, d);
	if (err)
		goto out;
	bind(&l);
	drop_copies(&l);
out:
	free(l.life);
	free(l.donated);
	return err;
}
