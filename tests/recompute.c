// SPDX-License-Identifier: Apache-2.0
// Tests recomputed activations: loss and gradients of random networks, and of a GPT with dropout,
// equal those of the plain run to the bit, in less memory; under a memory limit no more is
// recomputed than needed to fit.

#include "config.h"

#include "device/pool.h"
#include "graph/context.h"
#include "nn/windows.h"
#include "tap.h"

enum { ROWS = 96, E = 32, BLOCKS = 24, PARAMETERS = 2 * BLOCKS + 1 };

struct result {
	size_t n;
	float *v; // gradients, preceded by the loss for networks
	uint64_t peak, launches;
	int err;
};

static void reserve(struct result *r, size_t n)
{
	r->v = realloc(r->v, (r->n + n) * sizeof *r->v);
	r->n += n;
}

// ---- networks ----

static yoke_tensor *p[PARAMETERS];
static int np;

static yoke_tensor *parameter(int rank, const int64_t *dims)
{
	float x[E * E];
	size_t n = 1;
	for (int i = 0; i < rank; i++)
		n *= (size_t)dims[i];
	for (size_t i = 0; i < n; i++)
		x[i] = (float)rnd_real(-0.3, 0.3);
	yoke_tensor *t = yoke_keep(yoke_variable("p", yoke_f32, rank, dims));
	yoke_put(t, x, n * sizeof *x);
	return p[np++] = t;
}

static yoke_tensor *matrix(void)
{
	return parameter(2, (int64_t[]){ E, E });
}

// x [ROWS,E] -> [ROWS,E]
static yoke_tensor *layer(int kind, yoke_tensor *x)
{
	const int64_t e = E, heads[] = { 8, ROWS / 8, 4, E / 4 }, flat[] = { ROWS, E };
	yoke_tensor *a, *b, *part[2];
	switch (kind) {
	case 0: return yoke_tanh(yoke_matmul(x, matrix(), 0));
	case 1: return yoke_layer_norm(x, parameter(1, &e), parameter(1, &e), 1e-5);
	case 2: return yoke_mul(yoke_softmax(yoke_matmul(x, matrix(), 0), 1), x);
	case 3:
		return yoke_dropout(yoke_gelu_tanh(yoke_linear(x, matrix(), parameter(1, &e))),
				    0.2);
	case 4: // attention of a few heads
		a = yoke_reshape(x, 4, heads);
		b = yoke_reshape(yoke_matmul(x, matrix(), 0), 4, heads);
		return yoke_reshape(yoke_attention(a, b, a, YOKE_NONE, 1, 0, 0), 2, flat);
	case 5: // halves change places, by views
		part[1] = yoke_slice(x, 1, 0, E / 2, 1);
		part[0] = yoke_sigmoid(yoke_slice(x, 1, E / 2, E, 1));
		return yoke_matmul(yoke_concat(2, part, 1), matrix(), YOKE_TB);
	case 6:
		return yoke_div(x, yoke_add(yoke_sum(yoke_mul(x, x), YOKE_AXIS(1) | YOKE_KEEP),
					    yoke_const(1)));
	default:
		return yoke_rms_norm(yoke_mul(x, yoke_exp(yoke_neg(yoke_abs(x)))), parameter(1, &e),
				     1e-5);
	}
}

// Blocks with and without residual connections, some of which read distant values.
static yoke_tensor *network(int blocks, bool plain, yoke_tensor *x)
{
	yoke_tensor *was[BLOCKS + 1] = { x };
	for (int i = 0; i < blocks; i++) {
		yoke_tensor *y = layer(plain ? 0 : (int)rnd_int(0, 7), x);
		uint64_t way = plain ? 3 : rnd() % 4;
		x = way == 0 ? yoke_add(y, was[rnd_int(0, i)]) : way == 1 ? yoke_add(x, y) : y;
		was[i + 1] = x;
	}
	return yoke_mean(yoke_mul(x, x), YOKE_ALL);
}

static struct result gradients(uint64_t seed, bool plain)
{
	struct result r = { 0 };
	yoke_tensor *g[PARAMETERS];
	const int64_t dims[] = { ROWS, E };
	float x[ROWS * E];
	const uint64_t former = tap_state;
	tap_state = seed;
	np = 0;
	for (int i = 0; i < ROWS * E; i++)
		x[i] = (float)rnd_real(-1, 1);
	yoke_scope *s = yoke_scope_begin("step");
	yoke_random_set(seed, 3);
	const int blocks = plain ? BLOCKS : (int)rnd_int(2, BLOCKS);
	yoke_tensor *first = yoke_matmul(yoke_from(yoke_f32, 2, dims, x), matrix(), 0);
	yoke_tensor *loss = network(blocks, plain, first);
	if (!(r.err = yoke_grad(loss, np, p, g))) {
		struct yoke_stats before = { .size = sizeof before }, now = before;
		yoke_tensor *all[PARAMETERS + 1] = { loss };
		memcpy(all + 1, g, (size_t)np * sizeof *g);
		yoke_stats_reset_peaks();
		yoke_stats(&before);
		r.err = yoke_eval(np + 1, all);
		yoke_stats(&now);
		r.launches = now.launches - before.launches;
		r.peak = now.pool_allocated_peak - before.pool_allocated;
		if (now.predicted_peak && now.predicted_peak != now.pool_allocated_peak)
			r.err = YOKE_ERANGE; // of the plan's own account
		for (int i = 0; i <= np && !r.err; i++) {
			const size_t n = yoke_bytes(all[i]) / sizeof *r.v;
			reserve(&r, n);
			r.err = yoke_read(all[i], r.v + r.n - n, n * sizeof *r.v);
		}
	}
	for (int i = 0; i < np; i++)
		yoke_free(p[i]);
	yoke_scope_end(s);
	tap_state = former;
	return r;
}

// ---- a GPT ----

static struct result gpt(uint64_t seed, bool plain)
{
	enum { B = 4, T = 64, V = 31 };
	struct result r = { 0 };
	struct yk_network *n = NULL;
	struct yk_model_shape shape = {
		.vocab = V, .context = T, .layers = 8, .heads = 2, .embed = 96
	};
	int32_t ids[B * (T + 1)];
	yoke_tensor *g[128];
	if ((r.err = yk_network_new(&yk_model_gpt, &shape, &n)) ||
	    (r.err = yk_parameters_draw(&n->params, 3)))
		return r;
	for (int i = 0; i < B * (T + 1); i++)
		ids[i] = i * i % V;
	yoke_scope *s = yoke_scope_begin("step");
	yoke_random_set(seed, plain);
	yoke_tensor *l =
		yk_windows_loss(n, yoke_from(yoke_i32, 2, (int64_t[]){ B, T + 1 }, ids), 0.1);
	struct yoke_stats before = { .size = sizeof before }, now = before;
	if (!(r.err = yoke_grad(l, n->params.count, n->params.var, g))) {
		yoke_stats_reset_peaks();
		yoke_stats(&before);
		r.err = yoke_eval(n->params.count, g);
		yoke_stats(&now);
		r.peak = now.pool_allocated_peak - before.pool_allocated;
		r.launches = now.launches - before.launches;
	}
	for (int i = 0; i < n->params.count && !r.err; i++) {
		const size_t k = yoke_bytes(g[i]) / sizeof *r.v;
		reserve(&r, k);
		r.err = yoke_read(g[i], r.v + r.n - k, k * sizeof *r.v);
	}
	yoke_scope_end(s);
	yk_network_free(n);
	return r;
}

// ---- comparisons ----

static bool same(const struct result *a, const struct result *b)
{
	return !a->err && !b->err && a->n == b->n && !memcmp(a->v, b->v, a->n * sizeof *a->v);
}

// mode: of recomputation; "spill" and "both" spill as much as possible
static struct result with(const char *mode, struct result (*f)(uint64_t, bool), uint64_t seed,
			  bool plain)
{
	const bool both = !strcmp(mode, "both"), spill = both || !strcmp(mode, "spill");
	yoke_setting_set("recompute", both ? "block" : spill ? "none" : mode);
	if (spill)
		yoke_setting_set("spill", "2");
	struct result r = f(seed, plain);
	yoke_setting_set("recompute", "none");
	if (spill)
		yoke_setting_set("spill", "0");
	return r;
}

// Between both peaks, a limit is kept by recomputing no more than necessary; or, with spill, by
// values that wait in host memory.
static void limited(const char *what, bool spill, struct result (*f)(uint64_t, bool),
		    const struct result *none, const struct result *block)
{
	yoke_context *ctx = yk_current();
	struct yk_pool *pool = ctx->device->pool;
	struct yoke_stats now = { .size = sizeof now };
	for (int k = 4; k > spill; k--) {
		yk_pool_trim(pool);
		yoke_stats(&now);
		// the size of the networks' parameters, and some space for fragmentation
		const uint64_t room = (uint64_t)2 << 20;
		const uint64_t peak = block->peak + (none->peak - block->peak) * (uint64_t)k / 4;
		const uint64_t limit = yk_pool_limit(pool, now.pool_allocated + peak + room);
		yoke_setting_set("spill", spill ? "1" : "0");
		struct result r = with(spill ? "none" : "auto", f, 0, false);
		yoke_setting_set("spill", "0");
		yk_pool_limit(pool, limit);
		ok(same(&r, none) && r.launches >= none->launches &&
			   (spill || r.launches <= block->launches),
		   "%s, limit %llu%s: peak %llu, %llu launches (%llu to %llu): %s", what,
		   (unsigned long long)peak, spill ? ", spilled" : "", (unsigned long long)r.peak,
		   (unsigned long long)r.launches, (unsigned long long)none->launches,
		   (unsigned long long)block->launches, yoke_error());
		yoke_error_clear();
		free(r.v);
	}
}

// saves: most activations are on the device
static void on(const char *backend, int networks, bool saves)
{
	yoke_context *ctx = yoke_context_new(backend);
	int more[3] = { 0 }, bad = 0;
	if (!ctx) {
		skip(backend, yoke_error());
		yoke_error_clear();
		return;
	}
	yoke_context *was = yoke_use(ctx);
	// a map that gradients read, of values that are recomputed only after the readers of the
	// map
	const uint64_t hard = 12981932767047115441u;
	for (int i = 0; i < networks; i++) {
		const uint64_t seed = i || networks == 1 ? rnd() : hard;
		static const char *const mode[] = { "block", "spill", "both" };
		struct result none = with("none", gradients, seed, false);
		for (int k = 0; k < (strcmp(backend, "cpu") ? 3 : 1); k++) {
			struct result r = with(mode[k], gradients, seed, false);
			if (!same(&none, &r)) {
				diag("network %llu, %s, differs: %s", (unsigned long long)seed,
				     mode[k], yoke_error());
				bad++;
			}
			more[k] += r.launches > none.launches;
			yoke_error_clear();
			free(r.v);
		}
		free(none.v);
	}
	ok(!bad, "%s: %d random networks, %d recomputed something, %d spilled, %d both: equal bits",
	   backend, networks, more[0], more[1], more[2]);
	ok(3 * more[0] > networks && (!saves || !strcmp(backend, "cpu") || more[1]),
	   "%s: most of them did", backend);
	struct result none = with("none", gradients, 1, true),
		      block = with("block", gradients, 1, true);
	ok(same(&none, &block) && (!saves || 10 * block.peak < 6 * none.peak),
	   "%s: a chain of %d products, %llu bytes of %llu", backend, BLOCKS,
	   (unsigned long long)block.peak, (unsigned long long)none.peak);
	free(none.v);
	free(block.v);
	none = with("none", gpt, 0, false);
	block = with("block", gpt, 0, false);
	ok(same(&none, &block) && (!saves || 10 * block.peak < 6 * none.peak),
	   "%s: a GPT with dropout, %llu bytes of %llu: %s", backend,
	   (unsigned long long)block.peak, (unsigned long long)none.peak, yoke_error());
	if (saves)
		limited(backend, false, gpt, &none, &block);
	if (saves && strcmp(backend, "cpu"))
		limited(backend, true, gpt, &none, &block);
	free(none.v);
	free(block.v);
	yoke_use(was);
	yoke_context_free(ctx);
}

int main(void)
{
	if (tap_eager())
		return skip_all("nothing is made again of what is there");
	tap_seed();
	tap_plugin_path();
	on("cpu", tap_cases(40, 5000), true);
	on("opencl", tap_cases(1, 300), true);
	on("fault", tap_cases(10, 300), true);
	on("skeleton", tap_cases(10, 300), false);
	struct result r = with("some", gradients, 1, true);
	ok(r.err == YOKE_EINVAL, "recompute=some: %s", yoke_error());
	yoke_error_clear();
	return done();
}
