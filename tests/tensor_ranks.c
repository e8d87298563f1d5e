// SPDX-License-Identifier: Apache-2.0
// Tests tensor parallelism: loss and gradients of 2 and 4 ranks against those of one rank and
// finite differences; initialization; sharding in host memory; dropout; models that cannot be
// sharded.
#include "config.h"

#include <pthread.h>

#include "base/error.h"
#include "nn/model.h"
#include "nn/shard_layers.h"
#include "tap.h"

enum { B = 2, T = 6, LIMIT = 60 }; // windows, tokens, parameters
enum { DIRECTIONS = 3 };

static struct {
	const struct yk_model *model;
	struct yk_model_shape shape;
	uint64_t seed;
	double dropout;
	int dtype; // dtype of parameters, and so of all computations
	int32_t ids[B][T + 1];
	// of one rank, by parameter, complete
	int count;
	int64_t n[LIMIT];
	double *value[LIMIT], *gradient[LIMIT];
	double loss;
	// of all ranks
	double worst, loss_of[4], slope[DIRECTIONS][4], change[DIRECTIONS][4];
	int directions; // directions of differentiation
	char where[200];
} now;

static double *numbers(const yoke_tensor *t)
{
	const int64_t n = yoke_count(t);
	double *x = malloc((size_t)n * sizeof *x + 1);
	float *f = yoke_dtype(t) == yoke_f32 ? malloc((size_t)n * sizeof *f + 1) : NULL;
	memset(x, 0xff, (size_t)n * sizeof *x);
	const int e = yoke_read((yoke_tensor *)(uintptr_t)t, f ? (void *)f : x, yoke_bytes(t));
	for (int64_t i = 0; i < n && f && !e; i++)
		x[i] = f[i];
	free(f);
	return e ? (free(x), NULL) : x;
}

static int put(yoke_tensor *t, const double *x)
{
	const int64_t n = yoke_count(t);
	if (yoke_dtype(t) == yoke_f64)
		return yoke_put(t, x, yoke_bytes(t));
	float *f = malloc((size_t)n * sizeof *f + 1);
	for (int64_t i = 0; i < n; i++)
		f[i] = (float)x[i];
	const int e = yoke_put(t, f, yoke_bytes(t));
	free(f);
	return e;
}

static yoke_tensor *loss_of(const struct yk_network *n)
{
	yoke_tensor *ids = yoke_from(yoke_i32, 2, (int64_t[]){ B, T + 1 }, now.ids);
	return n->model->loss(n, yoke_slice(ids, 1, 0, T, 1), yoke_slice(ids, 1, 1, T + 1, 1),
			      now.dropout);
}

// Direction k, which depends only on name and position.
static float along(const char *name, int k, int64_t i)
{
	uint64_t h = 14695981039346656037u ^ (uint64_t)i * 0x9e3779b97f4a7c15u ^
		     (uint64_t)k * 0xd6e8feb86659fd93u;
	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 1099511628211u;
	h ^= h >> 31;
	h *= 0xbf58476d1ce4e5b9u;
	return (float)((double)(h >> 40) / (1 << 23) - 1);
}

// This rank's shard of direction k in parameter i.
static double *part_along(const struct yk_parameters *ps, int i, int k)
{
	int64_t dims[YOKE_MAX_RANK], all = 1;
	const int rank = yk_parameters_dims(ps, i, dims);
	for (int d = 0; d < rank; d++)
		all *= dims[d];
	double *whole = malloc((size_t)all * sizeof *whole),
	       *part = malloc((size_t)yoke_count(ps->var[i]) * sizeof *part + 1);
	for (int64_t j = 0; j < all; j++)
		whole[j] = along(ps->row[i].name, k, j);
	yk_shard_extract(&ps->row[i].shard, rank, dims, sizeof *whole, whole, part);
	free(whole);
	return part;
}

// Relu inputs are exact in any order of sums: weights are multiples of 1/4, and a layer's bias an
// odd multiple of half the unit of the products that it is added to; so no sign depends on the
// order of the ranks' sums, and no input is closer to 0 than 2^-11.
static float rounded(const char *name, double x)
{
	int layer;
	const int bits =
		strstr(name, ".bias") && sscanf(name, "layer%d", &layer) == 1 ? 5 + 3 * layer : 2;
	return (float)(bits > 2 ? ldexp(2 * floor(ldexp(x, bits - 1)) + 1, -bits) :
				  ldexp(nearbyint(ldexp(x, bits)), -bits));
}

static struct yk_network *network(yoke_group *g)
{
	struct yk_network *n = NULL;
	if (yk_network_new_on(g, now.model, &now.shape, &n) ||
	    yk_parameters_draw(&n->params, now.seed))
		return NULL;
	// larger than initial values, so that softmax and activations are not nearly linear
	for (int i = 0; i < n->params.count; i++) {
		double *part = numbers(n->params.var[i]), *added = part_along(&n->params, i, -1);
		for (int64_t k = 0; part && k < yoke_count(n->params.var[i]); k++)
			part[k] = now.model == &yk_model_mlp ?
					  rounded(n->params.row[i].name, part[k] + 0.3 * added[k]) :
					  (float)(part[k] + 0.3 * added[k]);
		if (now.dtype != yoke_f32) {
			int64_t dims[YOKE_MAX_RANK];
			const int rank = yoke_rank(n->params.var[i]);
			for (int d = 0; d < rank; d++)
				dims[d] = yoke_dim(n->params.var[i], d);
			yoke_free(n->params.var[i]);
			n->params.var[i] = yoke_keep(
				yoke_variable(n->params.row[i].name, now.dtype, rank, dims));
		}
		if (part)
			put(n->params.var[i], part);
		free(added);
		free(part);
	}
	return n;
}

static int one(yoke_group *world, void *arg)
{
	(void)world;
	(void)arg;
	struct yk_network *n = network(NULL);
	yoke_tensor *g[LIMIT + 1];
	if (!n)
		return yoke_error_code();
	yoke_random_set(now.seed, 1);
	yoke_scope *s = yoke_scope_begin("step");
	yoke_tensor *loss = loss_of(n);
	yoke_grad(loss, n->params.count, n->params.var, g);
	g[n->params.count] = loss;
	int e = yoke_eval(n->params.count + 1, g);
	double *x = e ? NULL : numbers(loss);
	now.loss = x ? *x : NAN;
	free(x);
	now.count = n->params.count;
	for (int i = 0; i < now.count && !e; i++) {
		now.n[i] = yoke_count(n->params.var[i]);
		now.value[i] = numbers(n->params.var[i]);
		now.gradient[i] = numbers(g[i]);
	}
	yoke_scope_end(s);
	yk_network_free(n);
	return e ? e : yoke_error_code();
}

static void worse(double error, const char *what, const char *name, int rank)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&lock);
	if (!(error <= now.worst)) {
		now.worst = error;
		snprintf(now.where, sizeof now.where, "%s of %s on rank %d", what, name, rank);
	}
	pthread_mutex_unlock(&lock);
}

// This rank's shard of a parameter of the single rank.
static double *part_of(const struct yk_parameters *ps, int i, const double *whole)
{
	int64_t dims[YOKE_MAX_RANK];
	const int rank = yk_parameters_dims(ps, i, dims);
	double *part = malloc((size_t)yoke_count(ps->var[i]) * sizeof *part + 1);
	yk_shard_extract(&ps->row[i].shard, rank, dims, sizeof *part, whole, part);
	return part;
}

// The loss after parameters are moved by h along direction k.
static int loss_at(struct yk_network *n, int k, double h, double *to)
{
	int e = 0;
	for (int i = 0; i < n->params.count && !e; i++) {
		double *x = part_of(&n->params, i, now.value[i]), *d = part_along(&n->params, i, k);
		for (int64_t j = 0; j < yoke_count(n->params.var[i]); j++)
			x[j] += h * d[j];
		e = put(n->params.var[i], x);
		free(x);
		free(d);
	}
	yoke_random_set(now.seed, 1);
	yoke_scope *s = yoke_scope_begin("step");
	double *l = e ? NULL : numbers(loss_of(n));
	*to = l ? *l : NAN;
	free(l);
	const int ended = yoke_scope_end(s);
	return e ? e : ended;
}

// Slopes by gradients, and by central differences.
static int slopes(struct yk_network *n, int rank, double *const *gradient)
{
	const double h = 1e-6;
	int e = 0;
	for (int k = 0; k < now.directions && !e; k++) {
		double up = NAN, down = NAN;
		now.slope[k][rank] = 0;
		// replicated parameters count on the first rank only
		for (int i = 0; i < n->params.count; i++) {
			double *d = part_along(&n->params, i, k);
			for (int64_t j = 0; j < yoke_count(n->params.var[i]) &&
					    (n->params.row[i].shard.blocks || rank == 0);
			     j++)
				now.slope[k][rank] += gradient[i][j] * d[j];
			free(d);
		}
		e = loss_at(n, k, h, &up);
		e = e ? e : loss_at(n, k, -h, &down);
		now.change[k][rank] = (up - down) / (2 * h);
	}
	return e;
}

// Values are those of one rank bit for bit, gradients nearly so.
static int several(yoke_group *world, void *arg)
{
	(void)arg;
	const int rank = yoke_group_rank(world);
	struct yk_network *n = network(world);
	yoke_tensor *g[LIMIT + 1];
	double *gradient[LIMIT] = { NULL };
	if (!n)
		return yoke_error_code();
	yoke_random_set(now.seed, 1);
	yoke_scope *s = yoke_scope_begin("step");
	yoke_tensor *l = loss_of(n);
	yoke_grad(l, n->params.count, n->params.var, g);
	g[n->params.count] = l;
	int e = yoke_eval(n->params.count + 1, g);
	double *x = e ? NULL : numbers(l);
	now.loss_of[rank] = x ? *x : NAN;
	free(x);
	for (int i = 0; i < n->params.count && !e; i++) {
		const char *name = n->params.row[i].name;
		const size_t count = (size_t)yoke_count(n->params.var[i]);
		double *value = numbers(n->params.var[i]),
		       *want = part_of(&n->params, i, now.value[i]), max = 1e-3, off = 0;
		double *d = gradient[i] = numbers(g[i]);
		e = value && d ? 0 : yoke_error_code();
		if (!e && memcmp(value, want, count * sizeof *want))
			worse(INFINITY, "value", name, rank);
		free(want);
		for (int64_t k = 0; k < now.n[i]; k++)
			max = fmax(max, fabs(now.gradient[i][k]));
		want = part_of(&n->params, i, now.gradient[i]);
		for (size_t k = 0; k < count && !e; k++) {
			const double apart = fabs(d[k] - want[k]) / max;
			off = apart <= off ? off : apart;
		}
		if (now.dropout == 0)
			worse(off, "gradient", name, rank);
		free(value);
		free(want);
	}
	const int ended = yoke_scope_end(s);
	e = e ? e : ended ? ended : slopes(n, rank, gradient);
	for (int i = 0; i < n->params.count; i++)
		free(gradient[i]);
	yk_network_free(n);
	return e ? e : yoke_error_code();
}

static void forget(void)
{
	for (int i = 0; i < now.count; i++) {
		free(now.value[i]);
		free(now.gradient[i]);
	}
	now.count = 0;
}

static bool run(int ranks, const char *what)
{
	now.worst = 0;
	*now.where = 0;
	const int e = yoke_group_run(ranks, NULL, several, NULL);
	if (e)
		ok(false, "%s: %s", what, yoke_error());
	yoke_error_clear();
	return !e;
}

// Slopes of the loss along directions equal its differences: in f64, where rounding leaves about
// 1e-9 of a quotient and the third derivative less; and no relu input, some of which move by 1e-4
// at most, changes its sign in between.
static void compare_slopes(const char *what, int ranks)
{
	double worst = 0;
	char words[80] = "";
	for (int k = 0; k < DIRECTIONS; k++) {
		const double want = now.change[k][0];
		double slope = 0;
		for (int r = 0; r < ranks; r++)
			slope += now.slope[k][r];
		const double apart = fabs(slope - want) / fmax(fabs(want), 1);
		if (!(apart < worst)) {
			worst = apart;
			snprintf(words, sizeof words, "differences %.9g, gradients %.9g", want,
				 slope);
		}
	}
	ok(worst < 1e-7, "%s: along %d directions at most %.2g apart: %s", what, DIRECTIONS, worst,
	   words);
}

static void test_model(const struct yk_model *model, int64_t layers, int64_t vocab, int ranks)
{
	now.model = model;
	now.shape = (struct yk_model_shape){ .vocab = vocab,
					     .context = T,
					     .layers = layers,
					     .heads = model == &yk_model_gpt ? 4 : 0,
					     .embed = 16,
					     .history = model == &yk_model_mlp ? 3 : 0 };
	now.seed = (uint64_t)rnd_int(1, 1 << 30);
	now.dropout = 0;
	for (int i = 0; i < B * (T + 1); i++)
		now.ids[i / (T + 1)][i % (T + 1)] = (int32_t)rnd_int(0, (int)vocab - 1);
	for (int wide = 0; wide < 2; wide++) {
		char what[100];
		const double max = wide ? 1e-13 : 1e-5;
		now.dtype = wide ? yoke_f64 : yoke_f32;
		now.directions = wide ? DIRECTIONS : 0;
		snprintf(what, sizeof what, "%s of %lld layers, %lld tokens, on %d ranks, %s",
			 model->name, (long long)layers, (long long)vocab, ranks,
			 wide ? "f64" : "f32");
		if (yoke_group_run(1, NULL, one, NULL)) {
			ok(false, "%s: %s", what, yoke_error());
			yoke_error_clear();
			return;
		}
		if (run(ranks, what)) {
			ok(now.worst < max,
			   "%s: values are equal, gradients at most %.2g apart: %s", what,
			   now.worst, now.where);
			bool same = true;
			for (int r = 1; r < ranks; r++)
				same &= now.loss_of[r] == now.loss_of[0];
			ok(same && fabs(now.loss_of[0] - now.loss) < max * now.loss,
			   "%s: loss %.9g, want %.9g, the same on all", what, now.loss_of[0],
			   now.loss);
			if (wide)
				compare_slopes(what, ranks);
		}
		forget();
	}
}

// ---- shards in host memory ----

static void test_cuts(void)
{
	static const struct yk_shard_rule rules[] = {
		{ "column*", YK_COLUMN, 3 }, { "row*", YK_ROW, 0 }, { "vocab*", YK_VOCAB, 0 }, { 0 }
	};
	static const char *const names[] = { "column.weight", "column.bias", "row.weight",
					     "vocab.weight", "whole" };
	bool good = true;
	for (int round = 0; round < 200; round++) {
		const int which = (int)rnd_int(0, 4), rank = which == 1 ? 1 : 2,
			  ranks = (int)rnd_int(2, 5);
		const int64_t dims[] = { which < 2 ? 3 * ranks * rnd_int(1, 4) : rnd_int(ranks, 20),
					 which == 2 ? ranks * rnd_int(1, 4) : rnd_int(1, 9) };
		const int64_t columns = rank == 2 ? dims[1] : 1, n = dims[0] * columns;
		int64_t taken = 0;
		float *whole = malloc((size_t)n * sizeof *whole),
		      *again = malloc((size_t)n * sizeof *again),
		      *part = malloc((size_t)n * sizeof *part);
		for (int64_t i = 0; i < n; i++)
			whole[i] = (float)i;
		memset(again, 0xff, (size_t)n * sizeof *again);
		for (int r = 0; r < ranks; r++) {
			const struct yk_shard s = { .rank = r, .ranks = ranks, .rule = rules };
			int64_t here[] = { dims[0], dims[1] }, at = 0;
			struct yk_shard_range c;
			good &= yk_shard_range_of(&s, names[which], rank, here, &c) == 0;
			memset(part, 0xff, (size_t)n * sizeof *part);
			yk_shard_extract(&c, rank, dims, sizeof *whole, whole, part);
			// by a loop over all elements: does this rank own it?
			for (int64_t i = 0; i < n; i++) {
				const int64_t row = i / columns, column = i % columns,
					      third = dims[0] / 3;
				const bool mine =
					which < 2  ? row % third * ranks / third == r :
					which == 2 ? column * ranks / columns == r :
					which == 3 ? row >= r * dims[0] / ranks &&
							     row < (r + 1) * dims[0] / ranks :
						     true;
				if (mine)
					good &= part[at++] == whole[i];
			}
			good &= at == here[0] * (rank == 2 ? here[1] : 1);
			taken += at;
			yk_shard_insert(&c, rank, dims, sizeof *part, part, again);
		}
		good &= taken == (which == 4 ? ranks * n : n) &&
			!memcmp(whole, again, (size_t)n * sizeof *whole);
		free(whole);
		free(again);
		free(part);
	}
	ok(good, "shards in host memory, against a loop over all elements, and reassembled");
}

// ---- dropout ----

enum { DROPPED = 1 << 14 };
static float masks[2][2][DROPPED]; // per rank: the replicated part, and its own

static int draw(yoke_group *world, void *arg)
{
	(void)arg;
	const int64_t n = DROPPED;
	const struct yk_network net = { .shard = { world, yoke_group_rank(world), 2, NULL } };
	yoke_random_set(3, 1);
	yoke_scope *s = yoke_scope_begin("layer");
	yoke_tensor *all = yoke_dropout(yoke_full(yoke_f32, 1, &n, 1), 0.25);
	yoke_scope *own = yk_shard_begin(&net);
	yoke_tensor *mine = yk_shard_end(own, yoke_dropout(yoke_full(yoke_f32, 1, &n, 1), 0.25));
	yoke_read(all, masks[net.shard.rank][0], sizeof masks[0][0]);
	yoke_read(mine, masks[net.shard.rank][1], sizeof masks[0][1]);
	return yoke_scope_end(s);
}

static void test_dropout(void)
{
	int kept[2] = { 0 }, both = 0;
	ok(!yoke_group_run(2, NULL, draw, NULL), "dropout on two ranks %s", yoke_error());
	ok(!memcmp(masks[0][0], masks[1][0], sizeof masks[0][0]),
	   "dropout of replicated values is the same");
	for (int i = 0; i < DROPPED; i++) {
		for (int r = 0; r < 2; r++)
			kept[r] += masks[r][1][i] > 0;
		both += masks[0][1][i] > 0 && masks[1][1][i] > 0;
	}
	const double n = DROPPED, sigma = sqrt(n * 0.75 * 0.25), pair = 0.75 * 0.75,
		     wide = sqrt(n * pair * (1 - pair));
	ok(fabs(kept[0] - 0.75 * n) < 5 * sigma && fabs(kept[1] - 0.75 * n) < 5 * sigma &&
		   fabs(both - pair * n) < 5 * wide,
	   "dropout of sharded values differs by rank: %d and %d of %d kept, %d on both", kept[0],
	   kept[1], DROPPED, both);
	// a step with dropout, twice; with one seed, because by chance it may be as good as without
	now.seed = 7;
	for (int i = 0; i < B * (T + 1); i++)
		now.ids[i / (T + 1)][i % (T + 1)] = i % 13;
	now.model = &yk_model_gpt;
	now.shape = (struct yk_model_shape){
		.vocab = 13, .context = T, .layers = 2, .heads = 4, .embed = 16
	};
	now.dropout = 0;
	now.dtype = yoke_f32;
	now.directions = 0;
	if (yoke_group_run(1, NULL, one, NULL))
		ok(false, "%s", yoke_error());
	now.dropout = 0.2;
	double first = run(2, "dropout") ? now.loss_of[0] : NAN;
	ok(now.loss_of[1] == first && run(2, "dropout") && now.loss_of[0] == first &&
		   fabs(first - now.loss) > 1e-4,
	   "a step repeats exactly: %.7g, %.7g; without dropout %.7g", first, now.loss_of[0],
	   now.loss);
	forget();
}

static int refuse(yoke_group *world, void *arg)
{
	struct yk_network *n = NULL;
	char *why = arg;
	const int e = yk_network_new_on(world, now.model, &now.shape, &n);
	if (yoke_group_rank(world) == 0)
		snprintf(why, 200, "%s", e ? yoke_error() : "it was taken");
	yoke_error_clear();
	yk_network_free(n);
	return 0;
}

static void test_refused(void)
{
	static const struct {
		const struct yk_model *model;
		struct yk_model_shape shape;
		const char *words;
	} rows[] = {
		{ &yk_model_gpt,
		  { .vocab = 9, .context = T, .layers = 1, .heads = 3, .embed = 12 },
		  "tensor=2 does not divide heads=3" },
		{ &yk_model_mlp,
		  { .vocab = 9, .context = T, .layers = 1, .embed = 5, .history = 2 },
		  "tensor=2 does not divide embed=5" },
		{ &yk_model_bk,
		  { .vocab = 9,
		    .context = T,
		    .layers = 1,
		    .embed = 8,
		    .experts = 1,
		    .active_experts = 1,
		    .eta = 1,
		    .v_max = 1,
		    .feature_clamp = 1,
		    .bk_sweeps = -1 },
		  "model=bk" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char why[200] = "";
		now.model = rows[i].model;
		now.shape = rows[i].shape;
		ok(!yoke_group_run(2, NULL, refuse, why) && strstr(why, rows[i].words),
		   "refused: %s", why);
	}
}

int main(void)
{
	yoke_setting_set("backend", "cpu");
	yoke_setting_set("cpu.devices", "4");
	tap_seed();
	test_cuts();
	for (int ranks = 2; ranks <= 4; ranks += 2) {
		test_model(&yk_model_gpt, 2, 16, ranks);
		for (int64_t layers = 1; layers <= 3; layers++)
			test_model(&yk_model_mlp, layers, 12, ranks);
	}
	// a vocabulary size not divisible by the number of ranks
	test_model(&yk_model_gpt, 1, 13, 2);
	test_model(&yk_model_mlp, 1, 7, 4);
	test_dropout();
	test_refused();
	return done();
}
