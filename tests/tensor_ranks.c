// SPDX-License-Identifier: Apache-2.0
// Networks that ranks compute together: loss and gradients of 2 and 4 ranks against those of one, and by finite
// differences; parameters drawn; cuts in host memory; dropout; what cannot be cut.
#include "config.h"

#include <pthread.h>

#include "base/error.h"
#include "nn/model.h"
#include "tap.h"

enum { B = 2, T = 6, MOST = 60 }; // windows, tokens, parameters

static struct {
	const struct yk_model *model;
	struct yk_model_shape shape;
	uint64_t seed;
	double dropout;
	int32_t ids[B][T + 1];
	// of one rank, by parameter, whole
	int count;
	int64_t n[MOST];
	float *value[MOST], *gradient[MOST];
	float loss;
	// of all ranks
	double worst, slope[4], loss_of[4], step; // step: parameters go this far along a random direction
	char where[200];
} now;

static float *floats(const yoke_tensor *t)
{
	float *x = malloc(yoke_bytes(t) + 1);
	memset(x, 0xff, yoke_bytes(t));
	return yoke_read((yoke_tensor *)(uintptr_t)t, x, yoke_bytes(t)) ? (free(x), NULL) : x;
}

static yoke_tensor *loss_of(const struct yk_network *n)
{
	yoke_tensor *ids = yoke_from(yoke_i32, 2, (int64_t[]){ B, T + 1 }, now.ids);
	return n->model->loss(n, yoke_slice(ids, 1, 0, T, 1), yoke_slice(ids, 1, 1, T + 1, 1), now.dropout);
}

// A direction that depends on name and place alone.
static float along(const char *name, int64_t i)
{
	uint64_t h = 14695981039346656037u ^ (uint64_t)i * 0x9e3779b97f4a7c15u;
	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 1099511628211u;
	h ^= h >> 31;
	h *= 0xbf58476d1ce4e5b9u;
	return (float)((double)(h >> 40) / (1 << 23) - 1);
}

static struct yk_network *network(yoke_group *g)
{
	struct yk_network *n = NULL;
	if (yk_network_new_on(g, now.model, &now.shape, &n) || yk_parameters_draw(&n->params, now.seed))
		return NULL;
	// larger than first values, so that softmax and activations are not nearly linear
	for (int i = 0; i < n->params.count; i++) {
		const struct yk_parameter *row = &n->params.row[i];
		int64_t dims[YOKE_MAX_RANK], all = 1;
		const int rank = yk_parameters_whole(&n->params, i, dims);
		for (int d = 0; d < rank; d++)
			all *= dims[d];
		float *whole = malloc((size_t)all * sizeof *whole), *part = floats(n->params.var[i]);
		for (int64_t k = 0; k < all; k++)
			whole[k] = along(row->name, k + 7);
		float *added = malloc(yoke_bytes(n->params.var[i]) + 1);
		yk_cut_take(&row->cut, rank, dims, sizeof *whole, whole, added);
		for (int64_t k = 0; part && k < yoke_count(n->params.var[i]); k++)
			part[k] += 0.3f * added[k];
		for (int64_t k = 0; k < all; k++)
			whole[k] = along(row->name, k);
		yk_cut_take(&row->cut, rank, dims, sizeof *whole, whole, added);
		for (int64_t k = 0; part && k < yoke_count(n->params.var[i]); k++)
			part[k] += (float)(now.step * added[k]);
		if (part)
			yoke_put(n->params.var[i], part, yoke_bytes(n->params.var[i]));
		free(whole);
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
	yoke_tensor *g[MOST];
	if (!n)
		return yoke_error_code();
	yoke_random_set(now.seed, 1);
	yoke_scope *s = yoke_scope_begin("step");
	yoke_tensor *loss = loss_of(n);
	yoke_grad(loss, n->params.count, n->params.var, g);
	yoke_keep(loss);
	int e = yoke_eval(n->params.count, g);
	if (!e)
		e = yoke_read(loss, &now.loss, sizeof now.loss);
	yoke_free(loss);
	now.count = n->params.count;
	for (int i = 0; i < now.count && !e; i++) {
		now.n[i] = yoke_count(n->params.var[i]);
		now.value[i] = floats(n->params.var[i]);
		now.gradient[i] = floats(g[i]);
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

// Values are bit by bit those of one rank, gradients nearly so.
static int several(yoke_group *world, void *arg)
{
	(void)arg;
	const int rank = yoke_group_rank(world);
	struct yk_network *n = network(world);
	yoke_tensor *g[MOST];
	float loss;
	if (!n)
		return yoke_error_code();
	yoke_random_set(now.seed, 1);
	yoke_scope *s = yoke_scope_begin("step");
	yoke_tensor *l = loss_of(n);
	yoke_grad(l, n->params.count, n->params.var, g);
	yoke_keep(l);
	int e = yoke_eval(n->params.count, g);
	if (!e)
		e = yoke_read(l, &loss, sizeof loss);
	yoke_free(l);
	now.loss_of[rank] = loss;
	for (int i = 0; i < n->params.count && !e; i++) {
		const struct yk_parameter *row = &n->params.row[i];
		int64_t dims[YOKE_MAX_RANK];
		const int dim = yk_parameters_whole(&n->params, i, dims);
		const size_t bytes = yoke_bytes(n->params.var[i]);
		float *x = floats(n->params.var[i]), *d = floats(g[i]), *want = malloc(bytes + 1);
		double most = 1e-3, off = 0;
		e = x && d ? 0 : yoke_error_code();
		yk_cut_take(&row->cut, dim, dims, sizeof *want, now.value[i], want);
		if (!e && memcmp(x, want, bytes))
			worse(INFINITY, "value", row->name, rank);
		for (int64_t k = 0; k < now.n[i]; k++)
			most = fmax(most, fabs((double)now.gradient[i][k]));
		yk_cut_take(&row->cut, dim, dims, sizeof *want, now.gradient[i], want);
		for (size_t k = 0; k < bytes / sizeof *want && !e; k++) {
			const double apart = fabs((double)d[k] - want[k]) / most;
			off = apart <= off ? off : apart;
		}
		if (now.dropout == 0)
			worse(off, "gradient", row->name, rank);
		// along the direction; what all have counts on the first alone
		float *whole = malloc((size_t)now.n[i] * sizeof *whole);
		for (int64_t k = 0; k < now.n[i]; k++)
			whole[k] = along(row->name, k);
		yk_cut_take(&row->cut, dim, dims, sizeof *whole, whole, want);
		for (size_t k = 0; k < bytes / sizeof *want && !e && (row->cut.blocks || rank == 0); k++)
			now.slope[rank] += (double)d[k] * want[k];
		free(whole);
		free(x);
		free(d);
		free(want);
	}
	yoke_scope_end(s);
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
	memset(now.slope, 0, sizeof now.slope);
	const int e = yoke_group_run(ranks, NULL, several, NULL);
	if (e)
		ok(false, "%s: %s", what, yoke_error());
	yoke_error_clear();
	return !e;
}

static double mean_loss(int ranks)
{
	double sum = 0;
	for (int r = 0; r < ranks; r++)
		sum += now.loss_of[r];
	return sum / ranks;
}

static void test_model(const struct yk_model *model, int64_t layers, int64_t vocab, int ranks)
{
	char what[100];
	snprintf(what, sizeof what, "%s of %lld layers, %lld tokens, on %d ranks", model->name, (long long)layers,
		 (long long)vocab, ranks);
	now.model = model;
	now.shape = (struct yk_model_shape){ .vocab = vocab, .context = T, .layers = layers, .heads = model == &yk_model_gpt ? 4 : 0,
					     .embed = 16, .history = model == &yk_model_mlp ? 3 : 0 };
	now.seed = (uint64_t)rnd_int(1, 1 << 30);
	now.dropout = now.step = 0;
	for (int i = 0; i < B * (T + 1); i++)
		now.ids[i / (T + 1)][i % (T + 1)] = (int32_t)rnd_int(0, (int)vocab - 1);
	if (yoke_group_run(1, NULL, one, NULL)) {
		ok(false, "%s: %s", what, yoke_error());
		yoke_error_clear();
		return;
	}
	if (run(ranks, what)) {
		ok(now.worst < 1e-5, "%s: values are equal, gradients %.2g apart at most: %s", what, now.worst, now.where);
		bool same = true;
		for (int r = 1; r < ranks; r++)
			same &= now.loss_of[r] == now.loss_of[0];
		ok(same && fabs(now.loss_of[0] - now.loss) < 1e-5 * now.loss, "%s: loss %.7g, want %.7g, the same on all", what,
		   now.loss_of[0], now.loss);
	}
	// the slope of the loss along a direction, and how much it changes there
	double slope = 0;
	const double h = 1e-3;
	for (int r = 0; r < ranks; r++)
		slope += now.slope[r];
	now.step = h;
	double up = run(ranks, what) ? mean_loss(ranks) : NAN;
	now.step = -h;
	double down = run(ranks, what) ? mean_loss(ranks) : NAN;
	const double want = (up - down) / (2 * h);
	ok(fabs(slope - want) < 5e-3 * fmax(fabs(want), 0.1), "%s: finite differences %.5g, gradients %.5g", what, want, slope);
	now.step = 0;
	forget();
}

// ---- cuts in host memory ----

static void test_cuts(void)
{
	static const struct yk_shard_rule rules[] = {
		{ "column*", YK_COLUMN, 3 }, { "row*", YK_ROW, 0 }, { "vocab*", YK_VOCAB, 0 }, { 0 } };
	static const char *const names[] = { "column.weight", "column.bias", "row.weight", "vocab.weight", "whole" };
	bool good = true;
	for (int round = 0; round < 200; round++) {
		const int which = (int)rnd_int(0, 4), rank = which == 1 ? 1 : 2, ranks = (int)rnd_int(2, 5);
		const int64_t dims[] = { which < 2 ? 3 * ranks * rnd_int(1, 4) : rnd_int(ranks, 20), which == 2 ? ranks * rnd_int(1, 4) : rnd_int(1, 9) };
		const int64_t columns = rank == 2 ? dims[1] : 1, n = dims[0] * columns;
		int64_t taken = 0;
		float *whole = malloc((size_t)n * sizeof *whole), *again = malloc((size_t)n * sizeof *again),
		      *part = malloc((size_t)n * sizeof *part);
		for (int64_t i = 0; i < n; i++)
			whole[i] = (float)i;
		memset(again, 0xff, (size_t)n * sizeof *again);
		for (int r = 0; r < ranks; r++) {
			const struct yk_shard s = { .rank = r, .ranks = ranks, .rule = rules };
			int64_t here[] = { dims[0], dims[1] }, at = 0;
			struct yk_cut c;
			good &= yk_shard_cut(&s, names[which], rank, here, &c) == 0;
			memset(part, 0xff, (size_t)n * sizeof *part);
			yk_cut_take(&c, rank, dims, sizeof *whole, whole, part);
			// by a loop over all: is it this rank's?
			for (int64_t i = 0; i < n; i++) {
				const int64_t row = i / columns, column = i % columns, third = dims[0] / 3;
				const bool mine = which < 2 ? row % third * ranks / third == r :
						  which == 2 ? column * ranks / columns == r :
						  which == 3 ? row >= r * dims[0] / ranks && row < (r + 1) * dims[0] / ranks : true;
				if (mine)
					good &= part[at++] == whole[i];
			}
			good &= at == here[0] * (rank == 2 ? here[1] : 1);
			taken += at;
			yk_cut_put(&c, rank, dims, sizeof *part, part, again);
		}
		good &= taken == (which == 4 ? ranks * n : n) && !memcmp(whole, again, (size_t)n * sizeof *whole);
		free(whole);
		free(again);
		free(part);
	}
	ok(good, "cuts in host memory, against a loop over all elements, and put together again");
}

// ---- dropout ----

enum { DROPPED = 1 << 14 };
static float masks[2][2][DROPPED]; // of each rank: what is the same on all, and its own

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
	ok(!memcmp(masks[0][0], masks[1][0], sizeof masks[0][0]), "is the same where nothing is cut");
	for (int i = 0; i < DROPPED; i++) {
		for (int r = 0; r < 2; r++)
			kept[r] += masks[r][1][i] > 0;
		both += masks[0][1][i] > 0 && masks[1][1][i] > 0;
	}
	const double n = DROPPED, sigma = sqrt(n * 0.75 * 0.25), pair = 0.75 * 0.75, wide = sqrt(n * pair * (1 - pair));
	ok(fabs(kept[0] - 0.75 * n) < 5 * sigma && fabs(kept[1] - 0.75 * n) < 5 * sigma && fabs(both - pair * n) < 5 * wide,
	   "is each rank's own between: %d and %d of %d kept, %d on both", kept[0], kept[1], DROPPED, both);
	// a step with dropout, twice
	now.model = &yk_model_gpt;
	now.shape = (struct yk_model_shape){ .vocab = 13, .context = T, .layers = 2, .heads = 4, .embed = 16 };
	now.dropout = now.step = 0;
	if (yoke_group_run(1, NULL, one, NULL))
		ok(false, "%s", yoke_error());
	now.dropout = 0.2;
	double first = run(2, "dropout") ? now.loss_of[0] : NAN;
	ok(now.loss_of[1] == first && run(2, "dropout") && now.loss_of[0] == first && fabs(first - now.loss) > 1e-4,
	   "a step is the same again: %.7g, %.7g; without dropout %.7g", first, now.loss_of[0], now.loss);
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
		{ &yk_model_gpt, { .vocab = 9, .context = T, .layers = 1, .heads = 3, .embed = 12 }, "tensor=2 does not divide heads=3" },
		{ &yk_model_mlp, { .vocab = 9, .context = T, .layers = 1, .embed = 5, .history = 2 }, "tensor=2 does not divide embed=5" },
		{ &yk_model_bk, { .vocab = 9, .context = T, .layers = 1, .embed = 8, .experts = 1, .top_k = 1, .eta = 1, .v_max = 1, .feature_clamp = 1, .bk_sweeps = -1 },
		  "model=bk" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char why[200] = "";
		now.model = rows[i].model;
		now.shape = rows[i].shape;
		ok(!yoke_group_run(2, NULL, refuse, why) && strstr(why, rows[i].words), "refused: %s", why);
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
	test_model(&yk_model_gpt, 1, 13, 2); // a vocabulary that ranks do not divide
	test_model(&yk_model_mlp, 1, 7, 4);
	test_dropout();
	test_refused();
	return done();
}
