// SPDX-License-Identifier: Apache-2.0
// SOURCE: runs application-supplied C functions, one chunk at a time on the team.
#include "config.h"

#include <stdatomic.h>

#include "../cpu.h"

enum { VIEWS = 32 };

struct job {
	const struct yoke_op *op;
	void *data[VIEWS]; // results, then operands
	atomic_int err;    // error of one of the failed chunks
};

static bool given(const struct yoke_view *v, bool strided)
{
	return v->kind == YOKE_VIEW_BUFFER && (strided || yk_dense(v));
}

static uint64_t can(const struct yoke_op *op)
{
	const struct yoke_source *s = op->source;

	if (!s || s->size < sizeof *s || s->dialect != YOKE_DIALECT_HOST || !s->host ||
	    s->chunks < 1 || op->nout + op->nin > VIEWS)
		return 0;
	for (uint32_t i = 0; i < op->nout; i++)
		if (!given(&op->out[i], false))
			return 0;
	for (uint32_t i = 0; i < op->nin; i++)
		if (op->in[i].kind != YOKE_VIEW_NONE && !given(&op->in[i], s->strided))
			return 0;
	return 1;
}

static void item(void *arg, int64_t index)
{
	struct job *j = arg;
	const struct yoke_source *s = j->op->source;
	const int err = s->host(s->arg, j->op, j->data, index, s->chunks);

	if (err)
		atomic_store(&j->err, err);
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct job j = { .op = op };

	(void)impl, (void)prepared;
	for (uint32_t i = 0; i < op->nout + op->nin; i++) {
		const struct yoke_view *v = i < op->nout ? &op->out[i] : &op->in[i - op->nout];
		j.data[i] = v->kind == YOKE_VIEW_BUFFER ? yk_ptr(v) : NULL;
	}
	yk_team_run(op->source->chunks, item, &j);
	const int err = atomic_load(&j.err);
	if (err)
		return yk_cpu_fail(err < 0 ? err : YOKE_EINVAL,
				   "the application's function returned %d", err);
	return 0;
}

YK_KERNEL(source, SOURCE) = { .can = can, .run = run, .impl = { "host" } };
