// SPDX-License-Identifier: Apache-2.0
// Programs and their analysis: which instructions lead to a value at all, and with how deep a
// stack.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "schema/program.h"
#include "yoke.h"

void yk_program_fini(struct yk_program *p)
{
	yk_dfa_fini(&p->dfa);
	free(p->op);
	free(p->target);
}

int yk_program_add(struct yk_program *p, struct yk_instr x, uint32_t *to)
{
	if (p->ops >= YK_PROGRAM_OPS)
		return YOKE_ERANGE;
	const int e = yk_grow(&p->op, &p->op_cap, p->ops + 1, sizeof *p->op);
	if (e < 0)
		return e;
	p->op[p->ops] = x;
	*to = (uint32_t)p->ops++;
	return 0;
}

int yk_program_choose(struct yk_program *p, uint32_t choice, const uint32_t *target, size_t n)
{
	if (n > YK_PROGRAM_TARGETS - p->targets)
		return YOKE_ERANGE;
	const int e = yk_grow(&p->target, &p->target_cap, p->targets + n, sizeof *p->target);
	if (e < 0)
		return e;
	if (n)
		memcpy(p->target + p->targets, target, n * sizeof *target);
	p->op[choice].first = (uint32_t)p->targets;
	p->op[choice].choices = (uint32_t)n;
	p->targets += n;
	return 0;
}

// The instructions that the need of one depends on; at most `choices` or 2.
static size_t inputs(const struct yk_program *p, uint32_t at, const uint32_t **list,
		     uint32_t two[2])
{
	const struct yk_instr *x = &p->op[at];

	*list = two;
	two[0] = x->next;
	two[1] = x->target;
	switch (x->op) {
	case YK_OP_RUN: return x->start != YK_DFA_NONE;
	case YK_OP_CALL: return 2;
	case YK_OP_LOOP: return x->min ? 2 : 1;
	case YK_OP_CHOICE:
		if (x->choices)
			*list = p->target + x->first;
		return x->choices;
	default: return 0;
	}
}

// The need of an instruction as far as its inputs are known.
static uint32_t need(const struct yk_program *p, const struct yk_instr *x)
{
	const uint32_t next = x->op == YK_OP_END || x->op == YK_OP_RETURN ? 0 : p->op[x->next].need;
	uint32_t min = YK_NO_VALUE;

	switch (x->op) {
	case YK_OP_END:
	case YK_OP_RETURN: return 0;
	case YK_OP_RUN: return x->start ? next : YK_NO_VALUE;
	case YK_OP_LOOP:
		if (!x->min)
			return next;
		break;
	case YK_OP_CHOICE:
		for (uint32_t i = 0; i < x->choices; i++)
			if (p->op[p->target[x->first + i]].need < min)
				min = p->op[p->target[x->first + i]].need;
		return min;
	default: break;
	}
	const uint32_t called = p->op[x->target].need + 1u;
	return called > next ? called : next;
}

// The instructions that depend on each one: those of i are user[first[i]] .. user[first[i + 1] -
// 1].
static int find_users(const struct yk_program *p, uint32_t **first, uint32_t **user)
{
	size_t sum = 0;
	const uint32_t *list;
	uint32_t two[2];

	*first = calloc(p->ops + 2, sizeof **first);
	*user = malloc((p->targets + 2 * p->ops + 1) * sizeof **user);
	if (!*first || !*user)
		return YOKE_ENOMEM;
	for (uint32_t i = 0; i < p->ops; i++)
		for (size_t j = 0, n = inputs(p, i, &list, two); j < n; j++)
			(*first)[list[j] + 2]++;
	for (size_t i = 0; i < p->ops; i++)
		(*first)[i + 2] = (uint32_t)(sum += (*first)[i + 2]);
	for (uint32_t i = 0; i < p->ops; i++)
		for (size_t j = 0, n = inputs(p, i, &list, two); j < n; j++)
			(*user)[(*first)[list[j] + 1]++] = i;
	return 0;
}

// Needs become known in ascending order (D. Knuth, A generalization of Dijkstra's algorithm, 1977):
// an instruction needs at least as much as what it depends on.
int yk_program_measure(struct yk_program *p)
{
	uint32_t *first = NULL, *user = NULL, bucket[YK_STACK_MAX + 1];
	uint32_t *chain =
		calloc(p->ops + 1, sizeof *chain); // instructions of equal need: number + 1
	int e = chain ? find_users(p, &first, &user) : YOKE_ENOMEM;

	memset(bucket, 0, sizeof bucket);
	for (uint32_t i = 0; i < p->ops; i++) {
		p->op[i].need = YK_NO_VALUE;
		if (e == 0 && (p->op[i].op == YK_OP_END || p->op[i].op == YK_OP_RETURN)) {
			p->op[i].need = 0;
			chain[i] = bucket[0];
			bucket[0] = i + 1;
		}
	}
	for (uint32_t level = 0; e == 0 && level <= YK_STACK_MAX; level++)
		while (bucket[level]) {
			const uint32_t at = bucket[level] - 1;
			bucket[level] = chain[at];
			for (uint32_t i = first[at]; i < first[at + 1]; i++) {
				struct yk_instr *x = &p->op[user[i]];
				const uint32_t n = need(p, x);
				if (n > YK_STACK_MAX || n >= x->need)
					continue;
				// All of its inputs that are not infinite are final, so that it
				// enters a list only once.
				x->need = (uint16_t)n;
				chain[user[i]] = bucket[n];
				bucket[n] = user[i] + 1;
			}
		}
	free(first);
	free(user);
	free(chain);
	return e;
}

int yk_program_cycle(const struct yk_program *p, int64_t *choice)
{
	enum { NEW, OPEN, DONE };
	struct walk {
		uint32_t at, i;
	} *stack = malloc((p->ops + 1) * sizeof *stack);
	uint8_t *mark = calloc(p->ops + 1, 1);
	int e = stack && mark ? 0 : YOKE_ENOMEM;

	*choice = -1;
	for (uint32_t root = 0; e == 0 && root < p->ops && *choice < 0; root++) {
		size_t n = 0;
		if (mark[root] != NEW)
			continue;
		mark[root] = OPEN;
		stack[n++] = (struct walk){ root, 0 };
		while (n && *choice < 0) {
			struct walk *w = &stack[n - 1];
			const struct yk_instr *x = &p->op[w->at];
			if (x->op != YK_OP_CHOICE || w->i == x->choices) {
				mark[w->at] = DONE;
				n--;
				continue;
			}
			const uint32_t to = p->target[x->first + w->i++];
			if (mark[to] == OPEN)
				*choice = to;
			if (mark[to] == NEW) {
				mark[to] = OPEN;
				stack[n++] = (struct walk){ to, 0 };
			}
		}
	}
	free(stack);
	free(mark);
	return e;
}
