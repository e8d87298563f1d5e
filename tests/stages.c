// SPDX-License-Identifier: Apache-2.0
// Tests pipeline parallelism: the order in which stages process micro-batches, for all numbers of
// both; the distribution of blocks; loss and gradients of 2 and 3 stages bit for bit those of one
// rank; the maximum memory of each stage's pool.
#include "config.h"

#include <pthread.h>

#include "base/error.h"
#include "comm/simulate.h"
#include "nn/model.h"
#include "nn/stage.h"
#include "tap.h"
#include "train/check.h"
#include "train/memory_estimate.h"
#include "parallel/sums.h"

enum { MAX_STAGES = 8, MAX_PARTS = 24 };

// ---- turns ----

// Runs all stages' schedules, forward in 1 and backward in 2 units of time, with messages in zero
// time; returns the total time, or a negative number for a deadlock.
static int clock_of(enum yk_pipeline how, int stages, int parts)
{
	int forward[MAX_STAGES][MAX_PARTS] = { { 0 } }, back[MAX_STAGES][MAX_PARTS] = { { 0 } };
	int now[MAX_STAGES] = { 0 }, at[MAX_STAGES] = { 0 }, last = 0;
	for (bool moved = true; moved;) {
		moved = false;
		for (int s = 0; s < stages; s++) {
			if (at[s] == 2 * parts)
				continue;
			const struct yk_turn t = yk_turn_of(how, stages, s, parts, at[s]);
			const int needs = t.back ? (s < stages - 1 ? back[s + 1][t.part] :
								     forward[s][t.part]) :
						   (s ? forward[s - 1][t.part] : 1);
			if (!needs || (t.back && !forward[s][t.part]))
				continue;
			const int from = needs - (s == 0 && !t.back);
			now[s] = (now[s] > from ? now[s] : from) + (t.back ? 2 : 1);
			(t.back ? back : forward)[s][t.part] = now[s];
			at[s]++;
			moved = true;
		}
	}
	for (int s = 0; s < stages; s++) {
		if (at[s] < 2 * parts)
			return -1;
		last = now[s] > last ? now[s] : last;
	}
	return last;
}

// The simulator's bubble: with free messages the formula, otherwise within 10 % of it for short
// ones; and a step by hand.
static void test_simulated(void)
{
	const struct yk_wire_model free = { .node = MAX_STAGES },
				   wire = { .alpha1 = 2e-6, .beta1 = 1e-10, .node = MAX_STAGES };
	double took, bubble;
	int wrong = 0;
	for (int how = 0; how < 2; how++)
		for (int stages = 1; stages <= MAX_STAGES; stages++)
			for (int parts = 1; parts <= MAX_PARTS; parts++) {
				const struct yk_pipeline_request w = { how,  stages, parts,
								       1e-3, 2e-3,   1 << 20 };
				const double want = (double)(stages - 1) / (parts + stages - 1);
				wrong += yk_simulate_pipeline(&free, &w, &took, &bubble) ||
					 fabs(bubble - want) > 1e-12 ||
					 fabs(took - 3e-3 * (parts + stages - 1)) > 1e-12;
			}
	ok(!wrong, "simulated: with free messages the bubble is (S - 1)/(M + S - 1): %d wrong",
	   wrong);
	for (int stages = 4; stages <= 8; stages *= 2)
		for (int how = 0; how < 2; how++) {
			const struct yk_pipeline_request w = {
				how, stages, 8, 10e-3, 20e-3, 1 << 20
			};
			const double want = (stages - 1.) / (8 + stages - 1);
			const int e = yk_simulate_pipeline(&wire, &w, &took, &bubble);
			ok(!e && bubble > want && bubble < 1.1 * want,
			   "simulated: %s, %d stages, messages of 0.1 ms: bubble %.4f, formula %.4f",
			   how == YK_GPIPE ? "gpipe" : "1f1b", stages, bubble, want);
		}
	// 2 stages, 1 micro-batch: forward, a message, forward and backward, a message, backward
	const struct yk_pipeline_request w = { YK_1F1B, 2, 1, 1, 2, 10 };
	const struct yk_wire_model slow = { .alpha1 = 0.5, .beta1 = 0.25, .node = 2 };
	yk_simulate_pipeline(&slow, &w, &took, &bubble);
	ok(fabs(took - (1 + 3 + 1 + 2 + 3 + 2)) < 1e-12,
	   "simulated: two stages, one micro-batch, by hand: %g", took);
}

static void test_turns(void)
{
	int wrong = 0;
	char where[100] = "";
	for (int how = 0; how < 2; how++)
		for (int stages = 1; stages <= MAX_STAGES; stages++)
			for (int parts = 1; parts <= MAX_PARTS; parts++) {
				bool good =
					clock_of(how, stages, parts) == 3 * (parts + stages - 1);
				for (int s = 0; s < stages; s++) {
					int went[MAX_PARTS] = { 0 }, live = 0, max = 0, next = 0;
					for (int i = 0; i < 2 * parts; i++) {
						const struct yk_turn t =
							yk_turn_of(how, stages, s, parts, i);
						good &= t.part >= 0 && t.part < parts &&
							went[t.part] == t.back;
						went[t.part % MAX_PARTS]++;
						// sums have an order
						good &= !t.back || t.part == next++;
						live += t.back ? -1 : 1;
						max = live > max ? live : max;
					}
					const int want = how == YK_GPIPE || parts < stages - s ?
								 parts :
								 stages - s;
					good &= next == parts && max == want;
				}
				if (!good && !wrong++)
					snprintf(where, sizeof where, ": %s, %d stages, %d parts",
						 how == YK_GPIPE ? "gpipe" : "1f1b", stages, parts);
			}
	ok(!wrong,
	   "each micro-batch goes forward and back once, at most the permitted number wait, and it takes (M + S - 1) turns: %d wrong%s",
	   wrong, where);
}

// ---- who has which blocks ----

// The minimum time of the slowest stage, over all distributions of blocks from `first` on.
static double min_of(const struct yk_model *m, const struct yk_model_shape *s, int64_t first,
		     int64_t stages)
{
	double best = INFINITY, sum = stages == 1 ? m->work(s, s->layers) : 0;
	for (int64_t end = first; end < s->layers; end++) {
		sum += m->work(s, end);
		if (stages == 1 || end + 1 == s->layers)
			continue;
		best = fmin(best, fmax(sum, min_of(m, s, end + 1, stages - 1)));
	}
	return stages == 1 && first < s->layers ? sum : best;
}

static void test_split(void)
{
	static const struct {
		const char *split;
		int64_t stages, layers;
		const char *words; // NULL: supported
	} given[] = {
		{ "4,4", 2, 8, NULL },
		{ "1,6,1", 3, 8, NULL },
		{ "4,3", 2, 8, "comes to 7 blocks, but there are layers=8" },
		{ "4,4", 3, 8, "has 2 numbers, but there are stages=3" },
		{ "8,0", 2, 8, "the number of blocks of each stage" },
		{ "4;4", 2, 8, "the number of blocks of each stage" },
		{ "4,", 2, 8, "the number of blocks of each stage" },
		{ "", 2, 8, "the number of blocks of each stage" },
		{ "99999999999999999999,1", 2, 8, "the number of blocks of each stage" },
		{ "auto", 9, 8, "stages=9 are more than layers=8" },
	};
	int64_t from, to;
	for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
		const struct yk_model_shape s = { .vocab = 256,
						  .context = 8,
						  .layers = given[i].layers,
						  .heads = 4,
						  .embed = 16 };
		const int e = yk_stage_split(&yk_model_gpt, &s, given[i].split, given[i].stages, 1,
					     &from, &to);
		ok(given[i].words ? e == YOKE_EINVAL && strstr(yoke_error(), given[i].words) :
				    e == 0 && to > from,
		   "split=%s of %lld layers: %s", given[i].split, (long long)given[i].layers,
		   yoke_error());
		yoke_error_clear();
	}
	ok(yk_stage_split(&yk_model_bk, &(struct yk_model_shape){ .layers = 4 }, "auto", 2, 0,
			  &from, &to) == YOKE_EINVAL,
	   "a model that cannot be split into stages: %s", yoke_error());
	yoke_error_clear();
	int wrong = 0;
	for (int round = 0; round < 300; round++) {
		const struct yk_model *m = round % 2 ? &yk_model_gpt : &yk_model_mlp;
		const struct yk_model_shape s = { .vocab = rnd_int(2, 4000),
						  .context = rnd_int(1, 200),
						  .layers = rnd_int(1, 10),
						  .heads = 1,
						  .embed = rnd_int(1, 64),
						  .history = rnd_int(1, 20) };
		const int64_t stages = rnd_int(1, s.layers < 5 ? (int)s.layers : 5);
		double max = 0;
		int64_t next = 0;
		for (int64_t k = 0; k < stages; k++) {
			double sum = k == stages - 1 ? m->work(&s, s.layers) : 0;
			wrong += yk_stage_split(m, &s, "auto", stages, k, &from, &to) < 0 ||
				 from != next || to <= from;
			for (int64_t i = from; i < to; i++)
				sum += m->work(&s, i);
			max = fmax(max, sum);
			next = to;
		}
		wrong += next != s.layers || max > min_of(m, &s, 0, stages) * (1 + 1e-9);
	}
	ok(!wrong, "blocks by work: the slowest stage is as fast as possible: %d wrong of 300",
	   wrong);
}

// ---- passes ----

enum { LIMIT = 60, PARTS = 5, TOKENS = 8 * 33 };

static struct {
	const struct yk_model *model;
	struct yk_model_shape shape;
	uint64_t seed;
	double dropout;
	enum yk_pipeline how;
	const char *split;
	int64_t rows, context; // of a micro-batch
	int32_t ids[PARTS][TOKENS];
	int parts;
	// of one rank, by parameter
	int count;
	char name[LIMIT][64];
	float *gradient[LIMIT], loss;
	bool found[LIMIT];
	// of all stages
	int differ;
	// for parameters on two stages: relative difference of their sums from one rank's
	double worst, told;
	char where[200];
	uint64_t peak[MAX_STAGES];
	float *end[2];
} now;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static yoke_tensor *windows(int64_t part)
{
	return yoke_from(yoke_i32, 2, (int64_t[]){ now.rows, now.context + 1 }, now.ids[part]);
}

static struct yk_network *network(yoke_group *g)
{
	struct yk_network *n = NULL;
	struct yk_stage s = { .group = g,
			      .at = g ? yoke_group_rank(g) : 0,
			      .of = g ? yoke_group_size(g) : 1 };
	if (yk_stage_split(now.model, &now.shape, g ? now.split : "auto", s.of, s.at, &s.from,
			   &s.to) ||
	    yk_network_new_part(NULL, &s, now.model, &now.shape, &n) ||
	    yk_parameters_draw(&n->params, now.seed)) {
		yk_network_free(n);
		return NULL;
	}
	return n;
}

// Gradients of all micro-batches' losses, as one evaluation; loss: NULL where another stage has it.
// 0, or an error.
static int step(struct yk_network *n, int stages, int stage, float **to, float *loss)
{
	const int64_t parts = now.parts;
	const bool last = stage == stages - 1;
	struct yk_sums sums = { 0 };
	struct yk_passage x[PARTS];
	yoke_tensor *g[LIMIT + 1], *l = NULL;
	int e = yk_sums_init(&sums, parts, n->params.count, NULL, NULL);
	yoke_scope *s = yoke_scope_begin("step");
	for (int64_t i = 0; i < 2 * parts && e == 0; i++) {
		const struct yk_turn t = yk_turn_of(now.how, stages, stage, parts, i);
		if (!t.back) {
			yoke_random_set(now.seed, 100 + t.part);
			e = yk_stage_forward(n, windows(t.part), now.dropout, &x[t.part]);
			continue;
		}
		e = yk_stage_backward(n, &x[t.part], x[t.part].out, n->params.count, n->params.var,
				      g);
		l = last ? x[t.part].out : yoke_full(yoke_f32, 0, NULL, 0);
		yk_sums_add(&sums, t.part, parts, g, &l);
	}
	g[n->params.count] = l;
	if (e == 0)
		e = yoke_eval(n->params.count + 1, g);
	for (int i = 0; i < n->params.count && e == 0; i++) {
		to[i] = malloc(yoke_bytes(g[i]) + 1);
		e = yoke_read(g[i], to[i], yoke_bytes(g[i]));
	}
	if (e == 0 && last)
		e = yoke_read(l, loss, sizeof *loss);
	const int ended = yoke_scope_end(s);
	yk_sums_fini(&sums);
	return e ? e : ended;
}

// As step, but each micro-batch is an evaluation of its own, and sums are made here: order T for up
// to 5 micro-batches.
static int one(yoke_group *world, void *arg)
{
	struct yk_network *n = network(NULL);
	float *part[PARTS][LIMIT] = { { NULL } }, loss[PARTS];
	int e = n ? 0 : yoke_error_code();
	(void)world;
	(void)arg;
	for (int k = 0; k < now.parts && e == 0; k++) {
		yoke_tensor *g[LIMIT + 1];
		yoke_random_set(now.seed, 100 + k);
		yoke_scope *s = yoke_scope_begin("step");
		yoke_tensor *ids = windows(k);
		yoke_tensor *l =
			now.model->loss(n, yoke_slice(ids, 1, 0, now.context, 1),
					yoke_slice(ids, 1, 1, now.context + 1, 1), now.dropout);
		e = yoke_grad(l, n->params.count, n->params.var, g);
		g[n->params.count] = l;
		if (e == 0)
			e = yoke_eval(n->params.count + 1, g);
		if (e == 0)
			e = yoke_read(l, &loss[k], sizeof loss[k]);
		for (int i = 0; i < n->params.count && e == 0; i++) {
			part[k][i] = malloc(yoke_bytes(g[i]) + 1);
			e = yoke_read(g[i], part[k][i], yoke_bytes(g[i]));
		}
		const int ended = yoke_scope_end(s);
		e = e ? e : ended;
	}
	for (int d = 1; d < now.parts && e == 0; d *= 2)
		for (int k = 0; k + d < now.parts; k += 2 * d) {
			loss[k] += loss[k + d];
			for (int i = 0; i < n->params.count; i++)
				for (int64_t j = 0; j < yoke_count(n->params.var[i]); j++)
					part[k][i][j] += part[k + d][i][j];
		}
	now.count = e ? 0 : n->params.count;
	now.loss = loss[0];
	for (int i = 0; i < now.count; i++) {
		snprintf(now.name[i], sizeof now.name[i], "%s", n->params.row[i].name);
		now.gradient[i] = part[0][i];
		now.found[i] = false;
	}
	for (int k = 1; k < now.parts; k++)
		for (int i = 0; n && i < n->params.count; i++)
			free(part[k][i]);
	yk_network_free(n);
	return e;
}

static void compare(const struct yk_network *n, int i, const float *got)
{
	const char *name = n->params.row[i].name;
	int k = 0;
	bool twice = false;
	while (k < now.count && strcmp(now.name[k], name))
		k++;
	for (size_t a = 0; a < n->alls; a++)
		twice |= n->all[a].here == i && n->all[a].twice;
	if (k == now.count || (now.found[k] && !twice)) {
		now.differ++;
		snprintf(now.where, sizeof now.where, ", %s is of no one, or of two", name);
		return;
	}
	now.found[k] = true;
	const int64_t count = yoke_count(n->params.var[i]);
	if (twice) {
		float *copy = now.end[n->stage.at > 0] = malloc((size_t)count * sizeof *copy);
		memcpy(copy, got, (size_t)count * sizeof *copy);
	} else if (memcmp(got, now.gradient[k], (size_t)count * sizeof *got)) {
		now.differ++;
		snprintf(now.where, sizeof now.where, ", first %s", name);
	}
	if (!now.end[0] || !now.end[1] || !twice)
		return;
	double max = 0, apart = 0;
	for (int64_t j = 0; j < count; j++) {
		max = fmax(max, fabs((double)now.gradient[k][j]));
		apart = fmax(apart,
			     fabs((double)now.end[0][j] + now.end[1][j] - now.gradient[k][j]));
	}
	now.worst = apart / max;
}

static int several(yoke_group *world, void *arg)
{
	const int stage = yoke_group_rank(world), stages = yoke_group_size(world);
	struct yk_network *n = network(world);
	float *g[LIMIT] = { NULL }, loss = NAN;
	(void)arg;
	int e = n ? step(n, stages, stage, g, &loss) : yoke_error_code();
	pthread_mutex_lock(&lock);
	for (int i = 0; n && i < n->params.count && e == 0; i++)
		compare(n, i, g[i]);
	if (stage == stages - 1)
		now.told = loss;
	pthread_mutex_unlock(&lock);
	for (int i = 0; n && i < n->params.count; i++)
		free(g[i]);
	yk_network_free(n);
	return e;
}

static void test_passes(const struct yk_model *m, int64_t layers, bool tied, int stages,
			const char *split, int parts)
{
	char what[160];
	now.model = m;
	now.rows = 2;
	now.context = 7;
	now.shape = (struct yk_model_shape){ .vocab = 50,
					     .context = 7,
					     .layers = layers,
					     .embed = 16,
					     .heads = m == &yk_model_gpt ? 4 : 0,
					     .history = m == &yk_model_mlp ? 3 : 0 };
	now.shape.tied = !tied && m == &yk_model_gpt;
	now.seed = (uint64_t)rnd_int(1, 1 << 30);
	now.dropout = 0.2;
	now.parts = parts;
	now.split = split;
	for (int i = 0; i < PARTS * TOKENS; i++)
		now.ids[i / TOKENS][i % TOKENS] = (int32_t)rnd_int(0, 49);
	for (int how = 0; how < 2; how++) {
		now.how = how;
		now.differ = 0;
		now.worst = 0;
		*now.where = 0;
		snprintf(what, sizeof what, "%s%s, %lld layers, split=%s, %d parts, %s", m->name,
			 now.shape.tied ? " tied=0" : "", (long long)layers, split, parts,
			 how == YK_GPIPE ? "gpipe" : "1f1b");
		int e = yoke_group_run(1, NULL, one, NULL);
		if (e == 0)
			e = yoke_group_run(stages, NULL, several, NULL);
		bool all = true;
		for (int i = 0; i < now.count; i++)
			all &= now.found[i];
		ok(e == 0 && !now.differ && all,
		   "%s: gradients of each parameter, on one stage, equal one rank's: %d differ%s %s",
		   what, now.differ, now.where, yoke_error());
		ok(now.told == (double)now.loss, "%s: loss %.9g, want %.9g", what, now.told,
		   (double)now.loss);
		if (m == &yk_model_gpt && tied)
			ok(now.end[0] && now.end[1] && now.worst < 1e-6,
			   "%s: the embedding's gradient, summed over both ends: %.2g apart", what,
			   now.worst);
		yoke_error_clear();
		for (int i = 0; i < now.count; i++)
			free(now.gradient[i]);
		for (int i = 0; i < 2; i++) {
			free(now.end[i]);
			now.end[i] = NULL;
		}
		now.count = 0;
	}
}

// ---- memory ----

// The pool's peak, of this stage's device, in the second step.
static int hold(yoke_group *world, void *arg)
{
	const int stage = yoke_group_rank(world), stages = yoke_group_size(world);
	struct yk_network *n = network(world);
	float loss;
	int e = n ? 0 : yoke_error_code();
	(void)arg;
	for (int i = 0; i < 2 && e == 0; i++) {
		float *g[LIMIT] = { NULL };
		struct yoke_stats s = { .size = sizeof s };
		yoke_stats_reset_peaks();
		e = step(n, stages, stage, g, &loss);
		yoke_stats(&s);
		now.peak[stage] = s.pool_allocated_peak;
		for (int k = 0; k < n->params.count; k++)
			free(g[k]);
	}
	yk_network_free(n);
	return e;
}

// The activations that one micro-batch keeps for its backward pass are the growth of GPipe's peak
// per micro-batch, plus another set of sums where their number is a power of two: compare 3 and 2
// micro-batches, which have one.
static void test_peaks(void)
{
	enum { STAGES = 4 };
	uint64_t peak[2][PARTS + 1][STAGES];
	int e = 0;
	now.model = &yk_model_gpt;
	now.rows = 8;
	now.context = 32;
	now.shape = (struct yk_model_shape){
		.vocab = 50, .context = 32, .layers = 8, .embed = 16, .heads = 4, .tied = 1
	};
	now.dropout = 0;
	now.split = "2,2,2,2";
	for (int how = 0; how < 2; how++)
		for (now.parts = 1; now.parts <= PARTS && e == 0; now.parts++) {
			now.how = how;
			e = yoke_group_run(STAGES, NULL, hold, NULL);
			memcpy(peak[how][now.parts], now.peak, sizeof peak[how][now.parts]);
		}
	ok(e == 0, "steps of 1 to %d micro-batches on %d stages: %s", PARTS, STAGES, yoke_error());
	yoke_error_clear();
	for (int s = 0; s < STAGES && e == 0; s++) {
		const double part = (double)peak[YK_GPIPE][3][s] - (double)peak[YK_GPIPE][2][s];
		bool good = part > 0;
		char is[200] = "";
		for (int m = 2; m <= PARTS; m++) {
			const int live = m < STAGES - s ? m : STAGES - s;
			// against GPipe's peak with as many micro-batches, which has the same sums
			const double less =
				((double)peak[YK_GPIPE][m][s] - (double)peak[YK_1F1B][m][s]) / part;
			good &= fabs(less - (m - live)) < 0.15 * (m - live) + 0.1;
			snprintf(is + strlen(is), sizeof is - strlen(is), " %.2f of %d", m - less,
				 live);
		}
		ok(good,
		   "stage %d of %d: micro-batches that 1f1b holds, of 2 to %d:%s; %.0f bytes each",
		   s, STAGES, PARTS, is, part);
	}
}

// ---- what is said before a run ----

static void test_plan(void)
{
	enum { STAGES = 4, MANY = 16 };
	struct yk_config c;
	struct yk_trainer *t = NULL;
	struct yk_memory_estimate one[STAGES], n;
	for (int how = 0; how < 3; how++) {
		const char *const keys[] = { "layers=8",
					     "heads=4",
					     "embed=64",
					     "context=32",
					     "batch=2",
					     "tied=0",
					     "ranks=4",
					     "stages=4",
					     "split=2,2,2,2",
					     how ? "micro_batches=16" : "micro_batches=1",
					     how == 2 ? "pipeline=gpipe" : "pipeline=1f1b" };
		int e = yk_config_init(&c, YK_T);
		for (size_t i = 0; i < sizeof keys / sizeof *keys && e == 0; i++)
			e = yk_config_argument(&c, keys[i]);
		if (e == 0)
			e = yk_config_check_model(&c);
		if (e == 0)
			e = yk_trainer_plan(&c, &t);
		for (int s = 0; s < STAGES && e == 0; s++) {
			e = yk_memory_estimate_of_stage(t, s, 2, UINT64_MAX, how ? &n : &one[s]);
			const int live = how == 2 ? MANY : STAGES - s;
			const double parts =
				how ? (double)n.activations / (double)one[s].activations : 1;
			if (how)
				ok(e == 0 && parts <= live && parts > 0.9 * live,
				   "%s, stage %d: activations of %.2f micro-batches, at most %d",
				   keys[10], s, parts, live);
		}
		ok(e == 0, "%s, %s: predicted without allocations: %s", keys[9], keys[10],
		   yoke_error());
		yoke_error_clear();
		yk_trainer_free(t);
		yk_config_fini(&c);
		t = NULL;
	}
}

int main(void)
{
	yoke_setting_set("backend", "cpu");
	yoke_setting_set("cpu.devices", "4");
	tap_seed();
	test_turns();
	test_simulated();
	test_split();
	test_passes(&yk_model_gpt, 3, false, 2, "auto", 5);
	test_passes(&yk_model_gpt, 3, true, 3, "auto", 4);
	test_passes(&yk_model_gpt, 4, true, 2, "3,1", 1);
	test_passes(&yk_model_mlp, 3, false, 3, "1,1,1", 3);
	test_peaks();
	test_plan();
	return done();
}
