// SPDX-License-Identifier: Apache-2.0
// Results that overwrite operands: a root reuses the block of the old version that it replaces, and
// a result in the arena the bytes of an operand that dies with the step.

#include "config.h"

#include "base/param.h"
#include "plan/layout.h"
#include "plan/passes.h"
#include "plan/planner.h"

YK_PARAM(donate, "donate", YK_BOOL, "1", "write over operands that are read for the last time",
	 .debug = true);

// Lists the step's views by the value that owns their bytes.
static void link_views(struct yk_placement *l, uint32_t s)
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
		uint32_t v = yk_owner(l, r->index);
		l->next[i] = l->link[v] == l->links ? l->first[v] : YK_NIL;
		l->first[v] = i;
		l->link[v] = l->links;
	}
}

// The first of the step's views of value v, YK_NIL: none.
static uint32_t first_view(struct yk_placement *l, uint32_t s, uint32_t v)
{
	link_views(l, s);
	return l->link[v] == l->links ? l->first[v] : YK_NIL;
}

// Do two views of a step access the same bytes in the same order?
static bool same_walk(const struct yk_plan *p, uint32_t a, uint32_t b)
{
	const struct yoke_view *x = &p->view[a], *y = &p->view[b];
	if (x->kind != YOKE_VIEW_BUFFER || y->kind != YOKE_VIEW_BUFFER || x->rank != y->rank ||
	    x->dtype != y->dtype || p->ref[a].offset != p->ref[b].offset)
		return false;
	for (int i = 0; i < x->rank; i++)
		if (x->dims[i] != y->dims[i] || (x->dims[i] != 1 && x->strides[i] != y->strides[i]))
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
	// an epilogue works element by element, the product does not
	if (s->op.code == YOKE_OP_CONTRACT)
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
static uint32_t share_with(struct yk_placement *l, uint32_t s, uint32_t out, uint32_t v)
{
	const struct yk_plan *p = l->p;
	const struct yk_step *step = &p->step[s];
	uint32_t found = YK_NIL;
	for (uint32_t i = first_view(l, s, v); i != YK_NIL; i = l->next[i]) {
		if (i == out)
			continue;
		if (i < step->op.nout) // another result lies there
			return YK_NIL;
		if (!same_walk(p, step->view + i, step->view + out) || !may_share(step, i, out))
			return YK_NIL;
		found = i;
	}
	return found;
}

static void note_alias(struct yk_placement *l, uint32_t s, uint32_t in)
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
static bool sole_writer(struct yk_placement *l, uint32_t v, uint32_t *s, uint32_t *out)
{
	const struct yk_plan *p = l->p;
	*s = l->life[v].writer;
	if (*s == YK_NIL || p->step[*s].kind != YK_STEP_RUN)
		return false;
	*out = first_view(l, *s, v); // results come first
	return *out < p->step[*s].op.nout;
}

// Is a root first written by an upload that knows all readers of the old version to be done?
static bool is_uploaded(const struct yk_placement *l, uint32_t v, uint32_t old)
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
			over = r->where != YK_AT_ARENA || yk_owner(l, r->index) != old;
		}
	}
	return over;
}

// Does step s know all other steps that view value v to be done?
static bool is_alone(const struct yk_placement *l, uint32_t s, uint32_t v)
{
	const struct yk_plan *p = l->p;
	const struct yk_step *own = &p->step[s];
	bool alone = true;
	for (uint32_t t = 0; t < p->steps && alone; t++) {
		const struct yk_step *other = &p->step[t];
		const bool before =
			t < s && (own->stream != YK_STREAM_RANKS || !yk_may_overtake(other, own));
		const bool over =
			t == s || (other->stream == own->stream ?
					   before :
					   l->w->schedule.clock[s].over[other->stream] > t);
		for (uint32_t i = 0; i < other->views && !over && alone; i++) {
			const struct yk_ref *r = &p->ref[other->view + i];
			alone = r->where != YK_AT_ARENA || yk_owner(l, r->index) != v;
		}
	}
	return alone;
}

// The view of `old` that a collective that first writes a root may overwrite; YK_NIL: none.
static uint32_t by_ranks(struct yk_placement *l, uint32_t v, uint32_t old)
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

void yk_donate_leaves(struct yk_placement *l)
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
		const bool may = old != YK_NIL && yk_made_on_cpu(w, old) == block->host &&
				 w->root[i].idle && may_overwrite(w) &&
				 l->donated[donor] == YK_NIL && l->life[old].block == YK_NIL;
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
static uint32_t may_alias(struct yk_placement *l, uint32_t s, uint32_t o, uint32_t i)
{
	const struct yk_step *step = &l->p->step[s];
	const struct yk_ref *r = &l->p->ref[step->view + o], *x = &l->p->ref[step->view + i];
	if (x->where != YK_AT_ARENA)
		return YK_NIL;
	uint32_t v = yk_owner(l, x->index);
	const struct yk_life *f = &l->life[v];
	if (f->leaf != YK_NIL || f->block != YK_NIL ||
	    (f->dies != s && step->kind != YK_STEP_RANKS) || f->bytes != l->life[r->index].bytes ||
	    v == r->index)
		return YK_NIL;
	// lifetimes are in steps of another stream
	if (step->kind == YK_STEP_RANKS && !is_alone(l, s, v))
		return YK_NIL;
	return share_with(l, s, o, v);
}

static uint32_t find_alias(struct yk_placement *l, uint32_t s, uint32_t o)
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
static void relink(struct yk_placement *l, uint32_t s, uint32_t v, uint32_t to)
{
	uint32_t last = first_view(l, s, v), after = first_view(l, s, to);
	if (last == YK_NIL)
		return;
	l->first[to] = last;
	while (l->next[last] != YK_NIL)
		last = l->next[last];
	l->next[last] = after;
}

void yk_share_arena(struct yk_placement *l)
{
	struct yk_plan *p = l->p;
	for (uint32_t s = 0; s < p->steps && may_overwrite(l->w); s++) {
		const struct yk_step *step = &p->step[s];
		const bool runs = step->kind == YK_STEP_RUN || step->kind == YK_STEP_RANKS;
		for (uint32_t o = 0; o < step->op.nout && runs; o++) {
			const struct yk_ref *r = &p->ref[step->view + o];
			if (r->where != YK_AT_ARENA)
				continue;
			struct yk_life *mine = &l->life[r->index];
			if (mine->writer != s || mine->block != YK_NIL || mine->in != r->index)
				continue;
			uint32_t in = find_alias(l, s, o);
			if (in == YK_NIL)
				continue;
			uint32_t v = yk_owner(l, p->ref[step->view + in].index);
			relink(l, s, r->index, v);
			mine->in = v;
			if (step->kind == YK_STEP_RUN || l->life[v].dies < mine->dies)
				l->life[v].dies = mine->dies;
			note_alias(l, s, in);
		}
	}
}
