// SPDX-License-Identifier: Apache-2.0
// The suites of `yoke bench`, based on the public interface alone; inputs are small random numbers.
// Counted: flops of the mathematical operation (causal attention: half of the square), and bytes of
// each operand once.
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "nn/model.h"
#include "nn/shard_layers.h"
#include "tool/bench.h"
#include "train/advise.h"

// ---- operands ----

struct operands {
	yoke_tensor *x[4];
};

static int finish_all(yoke_scope *s, int n, yoke_tensor *const *y)
{
	int e = y[0] ? yoke_eval(n, y) : yoke_error_code();
	int f;

	if (e == 0)
		e = yoke_sync();
	f = yoke_scope_end(s);
	return e < 0 ? e : f;
}

static int finish(yoke_scope *s, yoke_tensor *y)
{
	return finish_all(s, 1, &y);
}

// Creates n variables of these shapes with uniform random values.
static int make_operands_of(struct yk_bench_case *c, int dtype, int n, const int *rank,
			    const int64_t (*dims)[4])
{
	struct operands *o = calloc(1, sizeof *o);
	int e = 0;

	if (!o)
		return yk_fail(YOKE_ENOMEM, "out of memory for a benchmark");
	c->state = o;
	for (int i = 0; e == 0 && i < n; i++) {
		yoke_scope *s;
		o->x[i] = yoke_variable("x", dtype, rank[i], dims[i]);
		if (!o->x[i])
			return yoke_error_code();
		s = yoke_scope_begin("bench");
		e = yoke_assign(o->x[i], yoke_uniform(dtype, rank[i], dims[i]));
		if (e == 0)
			e = yoke_eval(0, NULL);
		int f = yoke_scope_end(s);
		e = e < 0 ? e : f;
	}
	return e;
}

static int make_operands(struct yk_bench_case *c, int n, const int *rank, const int64_t (*dims)[4])
{
	return make_operands_of(c, yoke_f32, n, rank, dims);
}

static void drop_operands(struct yk_bench_case *c)
{
	struct operands *o = c->state;

	for (int i = 0; o && i < 4; i++)
		yoke_free(o->x[i]);
	free(o);
	c->state = NULL;
}

// ---- contract ----

// size: M, N, K; a (M,K), b (K,N)
static int make_contract(struct yk_bench_case *c)
{
	int64_t m = c->size[0], n = c->size[1], k = c->size[2];
	const int rank[2] = { 2, 2 };
	const int64_t dims[2][4] = { { m, k }, { k, n } };

	c->flops = 2.0 * (double)m * (double)n * (double)k;
	c->bytes = 4.0 * (double)(m * k + k * n + m * n);
	c->x = m == n && n == k ? (double)n : 0;
	return make_operands(c, 2, rank, dims);
}

static int run_contract(struct yk_bench_case *c)
{
	struct operands *o = c->state;
	yoke_scope *s = yoke_scope_begin("contract");

	return finish(s, yoke_matmul(o->x[0], o->x[1], 0));
}

// ---- map ----

// size: elements
static int make_map(struct yk_bench_case *c)
{
	const int rank[2] = { 1, 1 };
	const int64_t dims[2][4] = { { c->size[0] }, { c->size[0] } };

	c->bytes = 12.0 * (double)c->size[0]; // two operands read, one result written
	return make_operands(c, 2, rank, dims);
}

static int run_add(struct yk_bench_case *c)
{
	struct operands *o = c->state;
	yoke_scope *s = yoke_scope_begin("map");

	return finish(s, yoke_add(o->x[0], o->x[1]));
}

static int run_gelu(struct yk_bench_case *c)
{
	struct operands *o = c->state;
	yoke_scope *s = yoke_scope_begin("map");

	return finish(s, yoke_gelu(yoke_add(o->x[0], o->x[1])));
}

// ---- rows ----

// size: rows, their length, bytes read and written per element; x [rows,n], w and b [n]
static int make_rows(struct yk_bench_case *c)
{
	const int rank[3] = { 2, 1, 1 };
	const int64_t dims[3][4] = { { c->size[0], c->size[1] }, { c->size[1] }, { c->size[1] } };

	c->bytes = (double)(c->size[0] * c->size[1] * c->size[2]);
	return make_operands(c, 3, rank, dims);
}

static int run_sum(struct yk_bench_case *c)
{
	struct operands *o = c->state;
	yoke_scope *s = yoke_scope_begin("rows");

	return finish(s, yoke_sum(o->x[0], YOKE_ALL));
}

static int run_sum_of_columns(struct yk_bench_case *c)
{
	struct operands *o = c->state;
	yoke_scope *s = yoke_scope_begin("rows");

	return finish(s, yoke_sum(o->x[0], YOKE_AXIS(0)));
}

static int run_rms_norm(struct yk_bench_case *c)
{
	struct operands *o = c->state;
	yoke_scope *s = yoke_scope_begin("rows");

	return finish(s, yoke_rms_norm(o->x[0], o->x[1], 1e-5));
}

static int run_softmax(struct yk_bench_case *c)
{
	struct operands *o = c->state;
	yoke_scope *s = yoke_scope_begin("rows");

	return finish(s, yoke_softmax(o->x[0], -1));
}

static int run_layer_norm(struct yk_bench_case *c)
{
	struct operands *o = c->state;
	yoke_scope *s = yoke_scope_begin("rows");

	return finish(s, yoke_layer_norm(o->x[0], o->x[1], o->x[2], 1e-5));
}

static struct yoke_adamw adamw(void)
{
	return (struct yoke_adamw){
		.size = sizeof(struct yoke_adamw),
		.lr = yoke_scalar(1e-4),
		.c1 = yoke_scalar(0.1),
		.c2 = yoke_scalar(0.01),
		.scale = YOKE_NONE,
		.beta1 = 0.9,
		.beta2 = 0.99,
		.eps = 1e-8,
		.weight_decay = 0.1,
	};
}

// size: parameters; w, g, m, v
static int make_adamw(struct yk_bench_case *c)
{
	const int rank[4] = { 1, 1, 1, 1 };
	const int64_t dims[4][4] = {
		{ c->size[0] }, { c->size[0] }, { c->size[0] }, { c->size[0] }
	};

	c->bytes = 28.0 * (double)c->size[0]; // four arrays read, three written
	return make_operands(c, 4, rank, dims);
}

static int run_adamw(struct yk_bench_case *c)
{
	struct operands *o = c->state;
	yoke_scope *s = yoke_scope_begin("rows");
	const struct yoke_adamw how = adamw();
	int e = yoke_adamw_step(1, o->x, o->x + 1, o->x + 2, o->x + 3, &how);

	if (e == 0)
		e = yoke_eval(0, NULL);
	if (e == 0)
		e = yoke_sync();
	int f = yoke_scope_end(s);
	return e < 0 ? e : f;
}

// ---- attention ----

// size: B, T, H, D; causal, forward; q, k, v [B,T,H,D]
static int make_attention(struct yk_bench_case *c)
{
	int64_t b = c->size[0], t = c->size[1], h = c->size[2], d = c->size[3];
	const int rank[3] = { 4, 4, 4 };
	const int64_t dims[3][4] = { { b, t, h, d }, { b, t, h, d }, { b, t, h, d } };

	c->flops = 2.0 * (double)(b * h) * (double)t * (double)t * (double)d;
	c->bytes = 16.0 * (double)(b * t * h * d);
	return make_operands(c, 3, rank, dims);
}

static int run_attention(struct yk_bench_case *c)
{
	struct operands *o = c->state;
	yoke_scope *s = yoke_scope_begin("attention");

	return finish(s, yoke_attention(o->x[0], o->x[1], o->x[2], YOKE_NONE, 1, 0, 0));
}

// size: B, T, H, D, with gradient (0, 1); bf16; q, k, v and the cotangent [B,T,H,D]. Backward
// counts 2.5 times the flops of forward: five products instead of two.
static int make_attention_bf16(struct yk_bench_case *c)
{
	const int64_t b = c->size[0], t = c->size[1], h = c->size[2], d = c->size[3];
	const int rank[4] = { 4, 4, 4, 4 };
	const int64_t dims[4][4] = {
		{ b, t, h, d }, { b, t, h, d }, { b, t, h, d }, { b, t, h, d }
	};

	c->flops = (c->size[4] ? 7.0 : 2.0) * (double)(b * h) * (double)t * (double)t * (double)d;
	c->bytes = (c->size[4] ? 16.0 : 8.0) * (double)(b * t * h * d);
	return make_operands_of(c, yoke_bf16, 4, rank, dims);
}

static int run_attention_gradient(struct yk_bench_case *c)
{
	struct operands *o = c->state;
	yoke_scope *s = yoke_scope_begin("attention");
	yoke_tensor *y = yoke_attention(o->x[0], o->x[1], o->x[2], YOKE_NONE, 1, 0, 0),
		    *g[3] = { NULL };

	if (yoke_grad_from(1, &y, &o->x[3], 3, o->x, g) < 0)
		g[0] = NULL;
	return finish_all(s, 3, g);
}

// ---- resolvent ----

// size: rows, elements, tier, with gradient (0, 1); f32, z = i; bytes: one read, and the result
// written
static int make_resolvent(struct yk_bench_case *c)
{
	const int64_t rows = c->size[0], n = c->size[1];
	const int rank[3] = { 2, 1, 3 };
	const int64_t dims[3][4] = { { rows, n }, { 2 }, { rows, n, 2 } };
	const float z[2] = { 0, 1 };

	c->bytes = 12.0 * (double)(rows * n);
	int e = make_operands(c, 3, rank, dims);
	return e < 0 ? e : yoke_put(((struct operands *)c->state)->x[1], z, sizeof z);
}

static int run_resolvent(struct yk_bench_case *c)
{
	struct operands *o = c->state;
	struct yoke_resolvent how = YOKE_RESOLVENT_INIT;
	yoke_scope *s = yoke_scope_begin("resolvent");
	how.tier = (int)c->size[2];
	yoke_tensor *y = yoke_resolvent(o->x[0], YOKE_NONE, YOKE_NONE, o->x[1], &how), *g = y;

	if (c->size[3] && yoke_grad(yoke_sum(yoke_mul(y, o->x[2]), YOKE_ALL), 1, o->x, &g) < 0)
		g = NULL;
	return finish(s, g);
}

// ---- train ----

struct training {
	struct yk_network *net;
	yoke_tensor *ids, *targets, **g;
	struct yk_parameters m, v;
};

static void drop_train(struct yk_bench_case *c)
{
	struct training *t = c->state;

	if (!t)
		return;
	yk_parameters_fini(&t->m);
	yk_parameters_fini(&t->v);
	free(t->g);
	yoke_free(t->ids);
	yoke_free(t->targets);
	yk_network_free(t->net);
	free(t);
	c->state = NULL;
}

static int make_states(struct training *t)
{
	const struct yk_parameters *p = &t->net->params;
	t->g = calloc((size_t)p->count, sizeof *t->g);
	if (!t->g)
		return yk_fail(YOKE_ENOMEM, "out of memory for a benchmark");
	for (int i = 0; i < p->count; i++) {
		yk_parameters_like(&t->m, p, i, "m");
		yk_parameters_like(&t->v, p, i, "v");
	}
	return t->m.error ? t->m.error : t->v.error;
}

// size: layers, heads, embed, context, batch; 256 tokens in the vocabulary
static int make_model(struct yk_bench_case *c, bool trains)
{
	const struct yk_model_shape shape = { .vocab = 256,
					      .context = c->size[3],
					      .layers = c->size[0],
					      .heads = c->size[1],
					      .embed = c->size[2] };
	const int64_t dims[2] = { c->size[4], c->size[3] };
	struct training *t = calloc(1, sizeof *t);
	int64_t weights = 12 * c->size[0] * c->size[2] * c->size[2] + 256 * c->size[2];
	int32_t *ids = malloc((size_t)(dims[0] * dims[1]) * sizeof *ids);
	int e;

	c->state = t;
	if (!t || !ids) {
		free(ids);
		return yk_fail(YOKE_ENOMEM, "out of memory for a benchmark");
	}
	c->tokens = (double)(dims[0] * dims[1]);
	// Kaplan et al. 2020: 6 flops per weight and token, and 6 T E per layer and token for
	// causal attention; forward alone is a third
	c->flops = c->tokens * (trains ? 6.0 : 2.0) *
		   ((double)weights + (double)(c->size[0] * c->size[3] * c->size[2]));
	for (int64_t i = 0; i < dims[0] * dims[1]; i++)
		ids[i] = (int32_t)(i * 7919 % 251);
	e = yk_network_new(&yk_model_gpt, &shape, &t->net);
	if (e == 0)
		e = yk_parameters_draw(&t->net->params, 1);
	if (e == 0 && trains)
		e = make_states(t);
	if (e == 0) {
		t->ids = yoke_from(yoke_i32, 2, dims, ids);
		t->targets = yoke_from(yoke_i32, 2, dims, ids);
		e = t->ids && t->targets ? 0 : yoke_error_code();
	}
	free(ids);
	return e;
}

static int make_train(struct yk_bench_case *c)
{
	return make_model(c, true);
}

static int run_train(struct yk_bench_case *c)
{
	struct training *t = c->state;
	const struct yk_parameters *p = &t->net->params;
	yoke_scope *s = yoke_scope_begin("train");
	const struct yoke_adamw how = adamw();
	yoke_tensor *loss = yk_network_loss(t->net, t->ids, t->targets, 0);
	int e = loss ? yoke_grad(loss, p->count, p->var, t->g) : yoke_error_code();

	if (e == 0)
		e = yoke_adamw_step(p->count, p->var, t->g, t->m.var, t->v.var, &how);
	return finish(s, e == 0 ? loss : NULL);
}

// ---- batch: forward and loss only ----

static int make_forward(struct yk_bench_case *c)
{
	return make_model(c, false);
}

static int run_forward(struct yk_bench_case *c)
{
	struct training *t = c->state;
	yoke_scope *s = yoke_scope_begin("forward");
	return finish(s, yk_network_loss(t->net, t->ids, t->targets, 0));
}

static int rehearse_forward(void *arg)
{
	struct yk_bench_case c = *(const struct yk_bench_case *)arg;
	c.state = NULL;
	int e = make_forward(&c);
	if (e == 0)
		e = run_forward(&c);
	drop_train(&c);
	return e;
}

// Based on the prediction, not on a trial: exceeding the memory may disturb the whole machine.
static bool forward_fits(const struct yk_bench_case *c)
{
	int e = yk_dry_try(yk_dry_capacity(), rehearse_forward, (void *)(uintptr_t)c);
	yoke_error_clear();
	return e == 0;
}

struct yk_bench_case yk_cases[] = {
#define CONTRACT(title, ...) \
	{ \
		.suite = "contract", .name = title, .make = make_contract, .run = run_contract, \
		.drop = drop_operands, .size = { __VA_ARGS__ } \
	}
	CONTRACT("128 x 128 x 128", 128, 128, 128),
	CONTRACT("256 x 256 x 256", 256, 256, 256),
	CONTRACT("512 x 512 x 512", 512, 512, 512),
	CONTRACT("1024 x 1024 x 1024", 1024, 1024, 1024),
	CONTRACT("4096 x 512 x 128", 4096, 512, 128),
	CONTRACT("4096 x 1536 x 384", 4096, 1536, 384),
#define MAP(title, fn, n) \
	{ \
		.suite = "map", .name = title, .make = make_map, .run = fn, .drop = drop_operands, .size = { n } \
	}
	MAP("add, 2^16", run_add, 1 << 16),
	MAP("add, 2^24", run_add, 1 << 24),
	MAP("gelu(a + b), 2^22", run_gelu, 1 << 22),
	{
		.suite = "map",
		.name = "add, 2^27",
		.make = make_map,
		.run = run_add,
		.drop = drop_operands,
		.size = { 1 << 27 },
		.accelerator = true,
	},
	{
		.suite = "map",
		.name = "gelu(a + b), 2^27",
		.make = make_map,
		.run = run_gelu,
		.drop = drop_operands,
		.size = { 1 << 27 },
		.accelerator = true,
	},
#define ROWS(title, fn, bytes) \
	{ \
		.suite = "rows", .name = title, .make = make_rows, .run = fn, .drop = drop_operands, \
		.size = { 1 << 16, 1 << 10, bytes } \
	}
	ROWS("sum, 2^26", run_sum, 4),
	ROWS("softmax, 2^16 x 1024", run_softmax, 8),
	ROWS("layer norm, 2^16 x 1024", run_layer_norm, 8),
#define MORE_ROWS(title, fn, bytes) \
	{ \
		.suite = "rows", .name = title, .make = make_rows, .run = fn, .drop = drop_operands, \
		.size = { 1 << 16, 1 << 10, bytes }, .accelerator = true \
	}
	MORE_ROWS("sum of columns, 2^16 x 1024", run_sum_of_columns, 4),
	MORE_ROWS("rms norm, 2^16 x 1024", run_rms_norm, 8),
	{
		.suite = "rows",
		.name = "adamw, 2^24",
		.make = make_adamw,
		.run = run_adamw,
		.drop = drop_operands,
		.size = { 1 << 24 },
	},
#define ATTENTION(title, ...) \
	{ \
		.suite = "attention", .name = title, .make = make_attention, .run = run_attention, \
		.drop = drop_operands, .size = { __VA_ARGS__ } \
	}
	ATTENTION("B 32 T 128 H 4 D 32", 32, 128, 4, 32),
	ATTENTION("B 16 T 256 H 6 D 64", 16, 256, 6, 64),
	ATTENTION("B 1 T 2048 H 4 D 64", 1, 2048, 4, 64),
#define ATTENTION_BF16(title, fn, ...) \
	{ \
		.suite = "attention", .name = title, .make = make_attention_bf16, .run = fn, .drop = drop_operands, \
		.size = { __VA_ARGS__ }, .accelerator = true \
	}
	ATTENTION_BF16("B 8 T 1024 H 12 D 64 bf16", run_attention, 8, 1024, 12, 64),
	ATTENTION_BF16("B 8 T 1024 H 12 D 64 bf16 +grad", run_attention_gradient, 8, 1024, 12, 64,
		       1),
	ATTENTION_BF16("B 4 T 4096 H 16 D 128 bf16", run_attention, 4, 4096, 16, 128),
	ATTENTION_BF16("B 4 T 4096 H 16 D 128 bf16 +grad", run_attention_gradient, 4, 4096, 16, 128,
		       1),
#define RESOLVENT(title, ...) \
	{ \
		.suite = "resolvent", .name = title, .make = make_resolvent, .run = run_resolvent, .drop = drop_operands, \
		.size = { __VA_ARGS__ } \
	}
	RESOLVENT("B 16 N 1024", 16, 1024, YOKE_TIER_F32),
	RESOLVENT("B 16 N 1024, f64", 16, 1024, YOKE_TIER_F64),
	RESOLVENT("B 16 N 1024, mixed", 16, 1024, YOKE_TIER_MIXED),
	RESOLVENT("B 16 N 1024, half", 16, 1024, YOKE_TIER_HALF),
	RESOLVENT("B 16 N 1024, adjoint", 16, 1024, YOKE_TIER_F32, 1),
	RESOLVENT("B 16 N 4096", 16, 4096, YOKE_TIER_F32),
	RESOLVENT("B 1 N 65536", 1, 65536, YOKE_TIER_F32),
#define TRAIN(title, ...) \
	{ \
		.suite = "train", .name = title, .make = make_train, .run = run_train, .drop = drop_train, \
		.size = { __VA_ARGS__ } \
	}
	TRAIN("L 2 H 4 E 128 T 128 B 32", 2, 4, 128, 128, 32),
	TRAIN("L 6 H 6 E 384 T 256 B 16", 6, 6, 384, 256, 16),
#define COPY(title, direction, pinned) \
	{ \
		.suite = "memory", .name = title, .make = yk_bench_copy_make, .run = yk_bench_copy_run, \
		.drop = yk_bench_copy_drop, .size = { direction, pinned, 1 << 26 } \
	}
	COPY("to the device, pageable", YK_COPY_UP, 0),
	COPY("to the device, pinned", YK_COPY_UP, 1),
	COPY("to the host, pageable", YK_COPY_DOWN, 0),
	COPY("to the host, pinned", YK_COPY_DOWN, 1),
	COPY("copy on the device", YK_COPY_ON, 0),
	{
		.suite = "memory",
		.name = "c = a + b, 12 B an element",
		.make = make_map,
		.run = run_add,
		.drop = drop_operands,
		.size = { 1 << 25 },
	},
	{
		.suite = "launches",
		.name = "40 layers of 64 x 64",
		.make = yk_bench_launches_make,
		.run = yk_bench_launches_run,
		.drop = yk_bench_launches_drop,
		.size = { 64 },
	},
#define SCALING(batch) \
	{ \
		.suite = "scaling", .name = "train, batch " #batch, .make = make_train, \
		.run = run_train, .drop = drop_train, .size = { 2, 4, 128, 128, batch }, \
		.x = batch, .samples = batch \
	}
	SCALING(4),
	SCALING(8),
	SCALING(16),
	SCALING(32),
	SCALING(64),
#define BATCH(batch) \
	{ \
		.suite = "batch", .name = "forward, batch " #batch, .make = make_forward, \
		.run = run_forward, .drop = drop_train, .size = { 2, 4, 128, 128, batch }, \
		.x = batch, .samples = batch, .fits = forward_fits \
	}
	BATCH(1),
	BATCH(2),
	BATCH(4),
	BATCH(8),
	BATCH(16),
	BATCH(32),
	BATCH(64),
	BATCH(128),
	BATCH(256),
	BATCH(512),
	{ 0 },
};
