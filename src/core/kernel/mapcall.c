// SPDX-License-Identifier: Apache-2.0
// The cache key and the arguments of a generated map kernel, both derived from the map's form.
#include "config.h"

#include <string.h>

#include "kernel/mapform.h"
#include "kernel/mapsrc.h"

static void add_word(struct yoke_map_call *c, uint64_t word)
{
	c->arg[c->narg++] = (struct yoke_map_arg){ .kind = YOKE_MAP_ARG_WORD, .word = word };
}

static void add_operand(struct yoke_map_call *c, enum yoke_map_arg_kind kind,
			const struct yk_map_operand *o)
{
	c->arg[c->narg++] = (struct yoke_map_arg){ .kind = kind, .operand = (uint32_t)o->number };
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
				  (uint16_t)(f->carried << 2 | f->narrow << 1 | f->flat),
				  m->ninsn, m->nconst, m->nin, m->nout };

	add_key(c, head, sizeof head);
	add_key(c, m->out, m->nout * sizeof *m->out);
	for (unsigned k = 0; k <= f->noperand; k++) {
		const struct yk_map_operand *o = &f->operand[k];
		uint8_t step[] = { o->dtype, o->class, o->each };
		// at most two axes differ from ANY
		for (int i = 0; i < f->rank && o->class == YK_MAP_STRIDED; i++)
			if (i == f->rank - 1 || i == f->split - 1)
				step[2] = (uint8_t)(step[2] * 3 + o->step[i]);
		add_key(c, step, sizeof step);
	}
	add_key(c, m->insn, m->ninsn * sizeof *m->insn);
}

static void fill_args(const struct yk_map_form *f, struct yoke_map_call *c)
{
	for (unsigned k = 0; k < f->noperand; k++) {
		const struct yk_map_operand *o = &f->operand[k];
		if (o->class < YK_MAP_LINEAR || (f->list && o->class == YK_MAP_LINEAR))
			continue;
		add_operand(c, YOKE_MAP_ARG_SEGMENT, o);
		add_operand(c, YOKE_MAP_ARG_OFFSET, o);
	}
	for (unsigned k = 0; k < f->noperand; k++)
		if (f->operand[k].class == YK_MAP_VALUE)
			add_operand(c, YOKE_MAP_ARG_OFFSET, &f->operand[k]);
	for (unsigned k = 0; k < f->map->nconst; k++)
		add_word(c, f->map->konst[k]);
	if (f->flat)
		return;
	if (!f->split)
		add_word(c, f->count[1]);
	for (int i = 0; i < f->rank; i++)
		if (yk_map_length(f, i))
			add_word(c, (uint64_t)f->dims[i]);
	for (unsigned k = 0; k <= f->noperand; k++)
		for (int i = 0; i < f->rank && f->operand[k].class == YK_MAP_STRIDED; i++)
			if (f->operand[k].step[i] == YK_MAP_ANY)
				add_word(c, (uint64_t)f->operand[k].strides[i]);
}

int yk_map_call(const struct yoke_op *op, struct yoke_map_call *to)
{
	_Static_assert(14 + 2 * YOKE_MAP_MAX_OUTPUTS + 3 * YK_MAP_OPERANDS +
		       YOKE_MAP_MAX_INSNS * sizeof(struct yoke_insn) <= YOKE_MAP_KEY_BYTES, "key");
	struct yk_map_form f;
	if (to->size < sizeof *to)
		return YOKE_EINVAL;
	int err = yk_map_form(op, &f);
	if (err)
		return err;
	to->dtypes = f.dtypes;
	memcpy(to->count, f.count, sizeof f.count);
	to->key_bytes = to->narg = 0;
	fill_key(&f, to);
	fill_args(&f, to);
	return 0;
}
