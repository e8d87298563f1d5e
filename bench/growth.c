// SPDX-License-Identifier: Apache-2.0
// Measures how the cost of a training step grows: doubles one dimension at a time and prints the
// exponent of each cost over the last doublings, and the exponent that the arithmetic asks for.
// The step trains a transformer with AdamW (layers, width, context, batch, vocabulary; ranks that
// train copies of it), many small variables, or a chain of linear sub-modules.  Each size runs in a
// process of its own, with one thread.
//
//	plan    CPU time of the first step in a dry context: recording and planning
//	again   CPU time of a step whose plan is found, in a dry context; with ranks, of a computed
//	        one
//	step    CPU time of a computed step
//	host    bytes of host memory after it, of the dry run
//	device  peak bytes of device memory
//
// Times are the smallest of several steps, and of APART processes where one takes less than BRIEF
// seconds. With ranks, times and bytes are of all ranks together.
//
//	bench/growth [DIMENSION ..]
#include "config.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __GLIBC__ // known once a header is included
#include <malloc.h>
#endif

#include "base/clock.h"
#include "yoke-dist.h"
#include "yoke-nn.h"
#include "yoke-optim.h"

enum { LAYERS, WIDTH, CONTEXT, BATCH, VOCABULARY, RANKS, VARIABLES, MODULES, DIMENSIONS };
enum { PLAN, AGAIN, STEP, HOST, DEVICE, COSTS };
enum { MIN_ROUNDS = 5, MAX_ROUNDS = 50, APART = 3, FITTED = 3, HEADS = 4, ELEMENTS = 16 };
#define BRIEF 0.5 // seconds
#define MARGIN 0.05

static const char *const cost_name[] = { "plan", "again", "step", "host", "device" };
static const struct {
	const char *name;
	int64_t first, last; // sizes
	// bit i: cost i may grow as the dimension does, beside the arithmetic of `step`
	int linear;
} dimension[] = {
	{ "layers", 4, 64, 1 << PLAN | 1 << AGAIN | 1 << HOST },
	{ "width", 64, 512, 0 },
	{ "context", 64, 512, 0 },
	{ "batch", 2, 16, 0 },
	{ "vocabulary", 512, 8192, 0 },
	{ "ranks", 1, 8, 1 << PLAN | 1 << AGAIN | 1 << HOST },
	{ "variables", 1000, 128000, 1 << PLAN | 1 << AGAIN | 1 << HOST },
	{ "modules", 64, 4096, 1 << PLAN | 1 << AGAIN | 1 << HOST },
};

struct size {
	int grows; // the dimension that is doubled
	int64_t n[DIMENSIONS];
};

struct costs {
	double of[COSTS]; // 0: not measured
};

// ---- what the arithmetic asks for ----

static double weights(const struct size *s)
{
	const double e = (double)s->n[WIDTH];
	return (double)s->n[LAYERS] * 12 * e * e + 2 * e * (double)s->n[VOCABULARY];
}

// Multiplications and additions of a step: those of the weights but the embedding's, attention's,
// the loss's (about 40 per logit, for its exponentials) and the optimizer's (about 60 per weight,
// for its memory).
static double flops(const struct size *s)
{
	const double e = (double)s->n[WIDTH], t = (double)s->n[CONTEXT],
		     rows = t * (double)s->n[BATCH];
	return 6 * rows *
		       (weights(s) - e * (double)s->n[VOCABULARY] +
			2 * (double)s->n[LAYERS] * t * e) +
	       40 * rows * (double)s->n[VOCABULARY] + 60 * weights(s);
}

// Values held at the peak: weights and two moments; activations and logits, or later the gradients.
static double values(const struct size *s)
{
	const double rows = (double)(s->n[CONTEXT] * s->n[BATCH]);
	return 3 * weights(s) + fmax(weights(s), rows * (17 * (double)(s->n[LAYERS] * s->n[WIDTH]) +
							 3 * (double)s->n[VOCABULARY]));
}

static bool is_transformer(const struct size *s)
{
	return s->grows < VARIABLES;
}

static double asked(int cost, const struct size *s)
{
	const double n = (double)s->n[s->grows];
	if (dimension[s->grows].linear >> cost & 1)
		return n;
	if (cost != STEP && cost != DEVICE)
		return 1;
	if (s->grows >= RANKS)
		return n;
	return cost == STEP ? flops(s) : values(s);
}

// ---- a training step ----

struct training {
	const struct size *size;
	yoke_group *world; // NULL: no ranks
	yoke_module *net;
	yoke_optim *optim;
	yoke_tensor *ids, **p, **g;
	int n;
};

static yoke_module *network(const struct size *s)
{
	const int transformer = is_transformer(s),
		  depth = (int)s->n[transformer ? LAYERS : MODULES];
	const struct yoke_nn_attention_options o = {
		.size = sizeof o, .width = s->n[WIDTH], .heads = HEADS, .causal = 1
	};
	yoke_module **list = malloc(((size_t)depth + 3) * sizeof *list);
	int n = 0;
	if (!list)
		return NULL;
	if (transformer)
		list[n++] = yoke_nn_embedding(s->n[VOCABULARY], s->n[WIDTH]);
	for (int i = 0; i < depth; i++)
		list[n++] = transformer ? yoke_nn_block(&o) : yoke_nn_linear(ELEMENTS, ELEMENTS, 1);
	if (transformer) {
		list[n++] = yoke_nn_layer_norm(s->n[WIDTH], 1e-5);
		list[n++] = yoke_nn_linear(s->n[WIDTH], s->n[VOCABULARY], 0);
	}
	yoke_module *net = yoke_nn_sequential(n, list);
	free(list);
	return net;
}

static int training_begin(struct training *t, const struct size *s, yoke_group *world)
{
	const int64_t each = ELEMENTS, batch[2] = { s->n[BATCH], s->n[CONTEXT] };
	const bool modules = s->grows != VARIABLES;
	*t = (struct training){ .size = s, .world = world, .net = modules ? network(s) : NULL };
	t->n = modules ? yoke_module_parameters(t->net, 0, NULL, NULL) : (int)s->n[VARIABLES];
	const char **name = t->n > 0 ? calloc((size_t)t->n, sizeof *name) : NULL;
	char (*text)[16] = t->n > 0 ? calloc((size_t)t->n, sizeof *text) : NULL;
	t->p = t->n > 0 ? calloc((size_t)t->n, 2 * sizeof *t->p) : NULL;
	if (!name || !text || !t->p)
		return -1;
	t->g = t->p + t->n;
	if (modules)
		yoke_module_parameters(t->net, t->n, t->p, name);
	for (int i = 0; i < t->n && !modules; i++) {
		snprintf(text[i], sizeof *text, "p%d", i);
		name[i] = text[i];
		t->p[i] = yoke_variable(name[i], yoke_f32, 1, &each);
	}
	t->ids = yoke_variable("ids", yoke_i32, 2, batch);
	t->optim = yoke_optim_new("adamw", NULL);
	const int err = yoke_optim_add(t->optim, t->n, t->p, name, NULL);
	free(name);
	free(text);
	return err ? err : yoke_eval(0, NULL);
}

static yoke_tensor *loss_of(const struct training *t)
{
	const int64_t row[2] = { 1, ELEMENTS };
	if (is_transformer(t->size))
		return yoke_cross_entropy(yoke_call(t->net, t->ids), t->ids, -1, 0);
	if (t->net)
		return yoke_sum(yoke_call(t->net, yoke_full(yoke_f32, 2, row, 1)), YOKE_ALL);
	yoke_tensor *loss = yoke_sum(yoke_square(t->p[0]), YOKE_ALL);
	for (int i = 1; i < t->n; i++)
		loss = yoke_add(loss, yoke_sum(yoke_square(t->p[i]), YOKE_ALL));
	return loss;
}

static int step(struct training *t)
{
	yoke_scope *s = yoke_scope_begin("step");
	int err = yoke_grad(loss_of(t), t->n, t->p, t->g);
	if (!err && t->world)
		err = yoke_all_reduce_list(t->world, YOKE_REDUCE_SUM, t->n, t->g, t->g);
	err = err ? err : yoke_optim_step(t->optim, t->n, t->g, NULL);
	err = err ? err : yoke_eval(0, NULL);
	err = err ? err : yoke_sync();
	const int ended = yoke_scope_end(s);
	return err ? err : ended;
}

static void training_end(struct training *t)
{
	yoke_optim_free(t->optim);
	for (int i = 0; i < t->n && !t->net && t->p; i++)
		yoke_free(t->p[i]);
	yoke_module_free(t->net);
	yoke_free(t->ids);
	free(t->p);
}

// ---- its costs ----

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Bytes that the process holds by malloc; 0 where the C library does not tell.
static double held(void)
{
#ifdef __GLIBC__
	const struct mallinfo2 m = mallinfo2();
	return (double)m.uordblks + (double)m.hblkhd;
#else
	return 0;
#endif
}

// The first step, and the smallest time of the later ones.
static int time_steps(struct training *t, double *first, double *later)
{
	const int max = t->world ? MIN_ROUNDS : MAX_ROUNDS; // ranks make equal numbers of steps
	const double start = cpu_seconds();
	int err = 0;
	*later = HUGE_VAL;
	for (int i = 0; !err && (i <= MIN_ROUNDS || (i <= max && cpu_seconds() - start < BRIEF));
	     i++) {
		if (t->world)
			yoke_group_barrier(t->world);
		const double began = cpu_seconds();
		err = step(t);
		if (t->world)
			yoke_group_barrier(t->world);
		const double took = cpu_seconds() - began;
		if (!i)
			*first = took;
		else
			*later = took < *later ? took : *later;
	}
	return err;
}

static double device_peak(void)
{
	struct yoke_stats stats = { .size = sizeof stats };
	yoke_stats(&stats);
	return (double)stats.pool_allocated_peak;
}

static int measure_dry(const struct size *s, struct costs *c)
{
	struct training t;
	const double before = held();
	yoke_context *ctx = yoke_context_dry(NULL);
	yoke_use(ctx);
	int err = ctx ? training_begin(&t, s, NULL) : -1;
	err = err ? err : time_steps(&t, &c->of[PLAN], &c->of[AGAIN]);
	c->of[HOST] = held() - before;
	c->of[DEVICE] = device_peak();
	training_end(&t);
	yoke_context_free(ctx);
	return err;
}

static int measure_computed(const struct size *s, struct costs *c)
{
	struct training t;
	double first;
	yoke_context *ctx = yoke_context_new("cpu");
	yoke_use(ctx);
	int err = ctx ? training_begin(&t, s, NULL) : -1;
	err = err ? err : time_steps(&t, &first, &c->of[STEP]);
	training_end(&t);
	yoke_context_free(ctx);
	return err;
}

struct shared {
	const struct size *size;
	struct costs *costs;
};

static int rank(yoke_group *world, void *arg)
{
	const struct shared *shared = arg;
	struct training t;
	double first, later;
	int err = training_begin(&t, shared->size, world);
	err = err ? err : time_steps(&t, &first, &later);
	if (!err && yoke_group_rank(world) == 0) {
		shared->costs->of[PLAN] = first;
		shared->costs->of[AGAIN] = later;
		shared->costs->of[HOST] = held();
		shared->costs->of[DEVICE] = device_peak();
	}
	if (!err)
		err = yoke_group_barrier(world);
	training_end(&t);
	return err;
}

static int measure(const struct size *s, struct costs *c)
{
	*c = (struct costs){ 0 };
	yoke_setting_set("threads", "1");
	yoke_setting_set("graph.warn", "100000000");
	yoke_setting_set("graph.max", "0");
	yoke_setting_set("dist.share", "1");
	if (s->grows == RANKS)
		return yoke_group_run((int)s->n[RANKS], NULL, rank, &(struct shared){ s, c });
	const int err = measure_dry(s, c);
	return err || s->grows >= VARIABLES ? err : measure_computed(s, c);
}

// Measures in a child process, whose memory holds nothing of other sizes.
static int measure_apart(const struct size *s, struct costs *c)
{
	int pipes[2], status = 0;
	if (pipe(pipes) < 0)
		return -1;
	fflush(stdout);
	const pid_t child = fork();
	if (!child) {
		const int err = measure(s, c);
		if (err)
			fprintf(stderr, "bench/growth: %s\n", yoke_error());
		_exit(err || write(pipes[1], c, sizeof *c) != (ssize_t)sizeof *c);
	}
	close(pipes[1]);
	const bool got = child > 0 && read(pipes[0], c, sizeof *c) == (ssize_t)sizeof *c;
	close(pipes[0]);
	if (child > 0)
		waitpid(child, &status, 0);
	return got && !status ? 0 : -1;
}

// The smallest of several measurements.
static int measure_again(const struct size *s, struct costs *c)
{
	const double start = yk_seconds();
	int err = measure_apart(s, c);
	for (int i = 1; i < APART && !err && yk_seconds() - start < BRIEF * i; i++) {
		struct costs other;
		err = measure_apart(s, &other);
		for (int k = 0; k < COSTS && !err; k++)
			c->of[k] = fmin(c->of[k], other.of[k]);
	}
	return err;
}

// ---- exponents ----

// The slope of log y over log x, of the last FITTED + 1 of n sizes.
static double exponent(int n, const double *x, const double *y)
{
	const int from = n > FITTED + 1 ? n - FITTED - 1 : 0;
	double mx = 0, my = 0, xy = 0, xx = 0;
	for (int i = from; i < n; i++) {
		mx += log(x[i]) / (n - from);
		my += log(y[i]) / (n - from);
	}
	for (int i = from; i < n; i++) {
		xy += (log(x[i]) - mx) * (log(y[i]) - my);
		xx += (log(x[i]) - mx) * (log(x[i]) - mx);
	}
	return xy / xx;
}

static int grow(int d)
{
	enum { SIZES = 16 };
	static const int64_t usual[DIMENSIONS] = { 2, 64, 64, 2, 512, 1, 0, 0 };
	double x[SIZES], y[COSTS][SIZES], want[COSTS][SIZES];
	int n = 0;
	for (int64_t at = dimension[d].first; at <= dimension[d].last && n < SIZES; at *= 2, n++) {
		struct size s = { .grows = d };
		struct costs c;
		memcpy(s.n, usual, sizeof s.n);
		s.n[d] = at;
		if (measure_again(&s, &c) < 0)
			return 1;
		x[n] = (double)at;
		printf("%-11s%8lld", dimension[d].name, (long long)at);
		for (int k = 0; k < COSTS; k++) {
			y[k][n] = c.of[k];
			want[k][n] = asked(k, &s);
			printf("  %12.6g", k < HOST ? 1e3 * c.of[k] : c.of[k] / 1024);
		}
		printf("\n");
	}
	printf("%-11s%8s", "", "exponent");
	for (int k = 0; k < COSTS; k++) {
		if (!y[k][0]) {
			printf("  %12s", "-");
			continue;
		}
		const double is = exponent(n, x, y[k]), may = exponent(n, x, want[k]);
		printf("  %5.2f (%4.2f)%s", is, may, is > may + MARGIN ? "!" : " ");
	}
	printf("\n");
	return 0;
}

int main(int argc, char **argv)
{
	int err = 0;
	printf("%-11s%8s", "", "");
	for (int k = 0; k < COSTS; k++)
		printf("  %8s %s", cost_name[k], k < HOST ? " ms" : "KiB");
	printf("\n");
	for (int d = 0; d < DIMENSIONS && !err; d++) {
		bool named = argc < 2;
		for (int i = 1; i < argc; i++)
			named |= !strcmp(argv[i], dimension[d].name);
		err = named ? grow(d) : 0;
	}
	printf("Exponents over the last %d doublings; in brackets what the arithmetic asks for; '!': more by over %.2f.\n",
	       (int)FITTED, MARGIN);
	return err;
}
