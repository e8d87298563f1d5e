// SPDX-License-Identifier: Apache-2.0
// Training steps in the forms that people write: hand-written updates, moving averages and sums,
// optimizers; with and without scopes; reading the loss before or after the update, or never.
// Each form of an update does the same arithmetic.
#ifndef TESTS_UPDATES_H
#define TESTS_UPDATES_H

#include <stdlib.h>

#include "yoke.h"

enum update {
	UPDATE_SGD,
	UPDATE_MOMENTUM,
	UPDATE_AVERAGE_AFTER,
	UPDATE_AVERAGE_BEFORE,
	UPDATE_SUM,
	UPDATE_ADAMW,
	UPDATES
};
enum update_scope {
	UPDATE_PLAIN,
	UPDATE_SCOPE,
	UPDATE_SCOPE_INSIDE,
	UPDATE_LAYERS_INSIDE,
	UPDATE_SCOPES
};
enum update_read { UPDATE_READS_LAST, UPDATE_READS_FIRST, UPDATE_EVALS, UPDATE_READS };
enum { UPDATE_WIDTH = 16 };

static const char *const update_name[] = { "w - lr g",       "momentum",      "average after",
					   "average before", "sum of losses", "AdamW" };
static const char *const update_scope_name[] = { "no scope", "step", "step inside another",
						 "layer in a step inside another" };
static const char *const update_read_name[] = { "read last", "read first", "eval" };

struct updates {
	enum update update;
	enum update_scope scope;
	enum update_read read;
	yoke_scope *outer;
	yoke_tensor *w, *average, *m, *v, *total, *x, *lr, *c, *keep, *rest, *mu;
};

// In a new context.
static inline void updates_begin(struct updates *u, enum update update, enum update_scope scope,
				 enum update_read read)
{
	const int64_t dims[2] = { UPDATE_WIDTH, UPDATE_WIDTH };
	float data[UPDATE_WIDTH * UPDATE_WIDTH];
	for (int i = 0; i < UPDATE_WIDTH * UPDATE_WIDTH; i++)
		data[i] = (float)(i * 7 % 31) / 31 - 0.5f;
	yoke_context_free(yoke_use(NULL));
	yoke_use(yoke_context_new(NULL));
	*u = (struct updates){ update,
			       scope,
			       read,
			       .w = yoke_variable("w", yoke_f32, 2, dims),
			       .average = yoke_variable("average", yoke_f32, 2, dims),
			       .m = yoke_variable("m", yoke_f32, 2, dims),
			       .v = yoke_variable("v", yoke_f32, 2, dims),
			       .total = yoke_variable("total", yoke_f32, 0, NULL),
			       .lr = yoke_scalar(0.01),
			       .c = yoke_scalar(0.5),
			       .keep = yoke_const(0.99),
			       .rest = yoke_const(0.01),
			       .mu = yoke_const(0.9) };
	yoke_put(u->w, data, sizeof data);
	yoke_put(u->average, data, sizeof data);
	u->outer = scope >= UPDATE_SCOPE_INSIDE ? yoke_scope_begin("program") : NULL;
	u->x = yoke_from(yoke_f32, 2, dims, data); // lives as long as the program
}

static inline void update_average(const struct updates *u)
{
	yoke_tensor *a = yoke_mul(u->average, u->keep), *b = yoke_mul(u->w, u->rest),
		    *c = yoke_add(a, b);
	yoke_assign(u->average, c);
	yoke_free(a);
	yoke_free(b);
	yoke_free(c);
}

static inline void update_weights(struct updates *u, yoke_tensor *g)
{
	if (u->update == UPDATE_ADAMW) {
		yoke_adamw_step(1, &u->w, &g, &u->m, &u->v,
				&(struct yoke_adamw){ .size = sizeof(struct yoke_adamw),
						      u->lr,
						      u->c,
						      u->c,
						      YOKE_NONE,
						      0.9,
						      0.99,
						      1e-8,
						      0.1 });
		return;
	}
	yoke_tensor *a = NULL, *by = g;
	if (u->update == UPDATE_MOMENTUM) {
		a = yoke_mul(u->m, u->mu);
		by = yoke_add(a, g);
		yoke_assign(u->m, by);
	}
	yoke_tensor *d = yoke_mul(by, u->lr), *next = yoke_sub(u->w, d);
	yoke_assign(u->w, next);
	yoke_free(a);
	yoke_free(d);
	yoke_free(next);
	if (by != g)
		yoke_free(by);
}

static inline void update_step(struct updates *u)
{
	float got;
	yoke_scope *step = u->scope ? yoke_scope_begin("step") : NULL;
	yoke_scope *layer = u->scope == UPDATE_LAYERS_INSIDE ? yoke_scope_begin("layer") : NULL;
	yoke_tensor *h = yoke_matmul(u->x, u->w, 0), *t = yoke_tanh(h), *q = yoke_square(t),
		    *g = NULL;
	yoke_tensor *loss = yoke_mean(layer ? yoke_lift(q) : q, YOKE_ALL);
	if (layer) {
		yoke_lift(loss);
		yoke_scope_end(layer);
	}
	if (u->read == UPDATE_READS_FIRST)
		yoke_read(loss, &got, sizeof got);
	yoke_grad(loss, 1, &u->w, &g);
	if (u->update == UPDATE_AVERAGE_BEFORE)
		update_average(u);
	update_weights(u, g);
	if (u->update == UPDATE_AVERAGE_AFTER)
		update_average(u);
	if (u->update == UPDATE_SUM) {
		yoke_tensor *sum = yoke_add(u->total, loss);
		yoke_assign(u->total, sum);
		yoke_free(sum);
	}
	if (u->read == UPDATE_READS_LAST)
		yoke_read(loss, &got, sizeof got);
	if (u->read == UPDATE_EVALS)
		yoke_eval(0, NULL);
	yoke_tensor *const all[] = { h, t, q, loss, g };
	for (size_t i = 0; i < sizeof all / sizeof *all && !step; i++)
		yoke_free(all[i]);
	if (step)
		yoke_scope_end(step);
}

static inline void updates_end(struct updates *u)
{
	if (u->outer)
		yoke_scope_end(u->outer);
	else
		yoke_free(u->x);
	yoke_tensor *const all[] = { u->w,  u->average, u->m,    u->v,    u->total,
				     u->lr, u->c,       u->keep, u->rest, u->mu };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		yoke_free(all[i]);
}
#endif
