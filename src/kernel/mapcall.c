// SPDX-License-Identifier: Apache-2.0
// The call of a generated map: key and arguments, which follow from its form.  A step of a plan
// asks for the same one at every launch: all of it is kept but what its views and constants are.
#include "config.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/mapform.h"
#include "kernel/mapsrc.h"

// Where an argument's word is found anew: the offset of view `from`, results first, or behind
// CONSTANT a constant; STAYS: a segment, a dim or a stride.
enum { STAYS = -1, CONSTANT = 1 << 14 };

struct sources {
	int16_t from[YOKE_MAP_MAX_ARGS];
};

struct yk_map_kept {
	uint32_t dtypes, narg, key_bytes;
	uint64_t count[YOKE_MAP_INDICES];
	uint8_t key[YOKE_MAP_KEY_BYTES];
	struct kept_arg {
		struct yoke_map_arg arg;
		int from;
	} arg[]; // narg
};

static void add_from(struct yoke_map_call *c, struct sources *s, uint64_t word, int from)
{
	s->from[c->narg] = (int16_t)from;
	c->arg[c->narg++] = (struct yoke_map_arg){ .operand = -1, .word = word };
}

static void add_word(struct yoke_map_call *c, struct sources *s, uint64_t word)
{
	add_from(c, s, word, STAYS);
}

static void add_segment(struct yoke_map_call *c, struct sources *s, int32_t operand)
{
	s->from[c->narg] = STAYS;
	c->arg[c->narg++] = (struct yoke_map_arg){ .operand = operand };
}

static void add_key(struct yoke_map_call *c, const void *data, size_t bytes)
{
	memcpy(c->key + c->key_bytes, data, bytes);
	c->key_bytes += (uint32_t)bytes;
}

static void fill_key(const struct yk_map_form *f, struct yoke_map_call *c)
{
	const struct yoke_map *m = f->map;
	const uint16_t head[] = { f->code, (uint16_t)(f->rank << 8 | f->split),
				  (uint16_t)(f->narrow << 1 | f->flat),
				  m->ninsn, m->nconst, m->nin, m->nout };

	add_key(c, head, sizeof head);
	add_key(c, m->out, m->nout * sizeof *m->out);
	for (unsigned k = 0; k <= f->noperand; k++) {
		const struct yk_map_operand *o = &f->operand[k];
		uint8_t step[] = { o->dtype, o->class, 0 };
		// at most two axes have other than ANY
		for (int i = 0; i < f->rank && o->class == YK_MAP_STRIDED; i++)
			if (i == f->rank - 1 || i == f->split - 1)
				step[2] = (uint8_t)(step[2] * 3 + o->step[i]);
		add_key(c, step, sizeof step);
	}
	add_key(c, m->insn, m->ninsn * sizeof *m->insn);
}

static void fill_args(const struct yk_map_form *f, struct yoke_map_call *c, struct sources *s)
{
	for (unsigned k = 0; k < f->noperand; k++) {
		const struct yk_map_operand *o = &f->operand[k];
		if (o->class < YK_MAP_LINEAR)
			continue;
		add_segment(c, s, o->number);
		add_from(c, s, o->view->offset, o->number);
	}
	for (unsigned k = 0; k < f->noperand; k++)
		if (f->operand[k].class == YK_MAP_VALUE)
			add_from(c, s, f->operand[k].view->offset, f->operand[k].number);
	for (unsigned k = 0; k < f->map->nconst; k++)
		add_from(c, s, f->map->konst[k], CONSTANT + (int)k);
	if (f->flat)
		return;
	if (f->code != YOKE_OP_REDUCE)
		add_word(c, s, f->count[1]);
	for (int i = 0; i < f->rank; i++)
		if (yk_map_length(f, i))
			add_word(c, s, (uint64_t)f->dims[i]);
	for (unsigned k = 0; k <= f->noperand; k++)
		for (int i = 0; i < f->rank && f->operand[k].class == YK_MAP_STRIDED; i++)
			if (f->operand[k].step[i] == YK_MAP_ANY)
				add_word(c, s, (uint64_t)f->operand[k].strides[i]);
}

// ---- a step's ----

static void keep(struct yk_map_memo *memo, const struct yoke_map_call *c, const struct sources *s)
{
	struct yk_map_kept *k = malloc(sizeof *k + c->narg * sizeof *k->arg);

	if (!k)
		return; // the next launch tries again
	k->dtypes = c->dtypes;
	k->narg = c->narg;
	k->key_bytes = c->key_bytes;
	memcpy(k->count, c->count, sizeof k->count);
	memcpy(k->key, c->key, c->key_bytes);
	for (uint32_t i = 0; i < c->narg; i++)
		k->arg[i] = (struct kept_arg){ c->arg[i], s->from[i] };
	memo->kept = k;
}

static void give(const struct yk_map_kept *k, const struct yoke_op *op, struct yoke_map_call *to)
{
	to->dtypes = k->dtypes;
	to->narg = k->narg;
	to->key_bytes = k->key_bytes;
	memcpy(to->count, k->count, sizeof to->count);
	memcpy(to->key, k->key, k->key_bytes);
	for (uint32_t i = 0; i < k->narg; i++) {
		const int from = k->arg[i].from;
		to->arg[i] = k->arg[i].arg;
		if (from >= CONSTANT)
			to->arg[i].word = op->map->konst[from - CONSTANT];
		else if (from != STAYS)
			to->arg[i].word = (uint32_t)from < op->nout ?
						  op->out[from].offset :
						  op->in[(uint32_t)from - op->nout].offset;
	}
}

void yk_map_memo_bind(struct yk_map_memo *memo, struct yoke_op *op)
{
	memo->op = op;
	op->memo = memo;
}

void yk_map_memo_fini(struct yk_map_memo *memo)
{
	free(memo->kept);
}

// Not of an op whose size says that it has none, nor of a copy, which may have been changed.
static struct yk_map_memo *memo_of(const struct yoke_op *op)
{
	struct yk_map_memo *memo =
		op->size >= offsetof(struct yoke_op, memo) + sizeof op->memo ? op->memo : NULL;

	return memo && memo->op == op ? memo : NULL;
}

int yk_map_call(const struct yoke_op *op, struct yoke_map_call *to)
{
	_Static_assert(14 + 2 * YOKE_MAP_MAX_OUTPUTS + 3 * YK_MAP_OPERANDS +
		       YOKE_MAP_MAX_INSNS * sizeof(struct yoke_insn) <= YOKE_MAP_KEY_BYTES, "key");
	struct yk_map_memo *memo = memo_of(op);
	struct yk_map_form f;
	struct sources s;
	if (to->size < sizeof *to)
		return YOKE_EINVAL;
	if (memo && memo->kept) {
		give(memo->kept, op, to);
		return 0;
	}
	int err = yk_map_form(op, &f);
	if (err)
		return err;
	to->dtypes = f.dtypes;
	memcpy(to->count, f.count, sizeof f.count);
	to->key_bytes = to->narg = 0;
	fill_key(&f, to);
	fill_args(&f, to, &s);
	if (memo)
		keep(memo, to, &s);
	return 0;
}
