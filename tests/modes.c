// SPDX-License-Identifier: Apache-2.0
// Tests that results do not depend on the execution mode: threads, plan cache, fusion, donation,
// arena, merging, pool. The program runs itself once for each mode and compares the bits of a
// small transformer and of a mix of maps and reductions after five steps.

#include "config.h"

#include <sys/wait.h>

#include "base/hash.h"
#include "tap.h"
#include "yoke.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

enum { B = 3, T = 37, E = 48, H = 3, V = 61, PARAMS = 12, STEPS = 5 };

static yoke_tensor *p[PARAMS], *m[PARAMS], *v[PARAMS];

static void make_params(void)
{
	static const int64_t dims[PARAMS][2] = {
		{ V, E }, { T, E }, { E, 0 },     { E, 0 },     { 3 * E, E }, { 3 * E, 0 },
		{ E, E }, { E, 0 }, { 4 * E, E }, { 4 * E, 0 }, { E, 4 * E }, { E, 0 }
	};
	for (int i = 0; i < PARAMS; i++) {
		int rank = dims[i][1] ? 2 : 1;
		size_t n = (size_t)(dims[i][0] * (rank > 1 ? dims[i][1] : 1));
		float *data = malloc(n * sizeof *data);
		for (size_t k = 0; k < n; k++)
			data[k] = i == 2 ? 1 : (float)rnd_real(-0.1, 0.1);
		p[i] = yoke_variable("p", yoke_f32, rank, dims[i]);
		m[i] = yoke_variable("m", yoke_f32, rank, dims[i]);
		v[i] = yoke_variable("v", yoke_f32, rank, dims[i]);
		yoke_put(p[i], data, n * sizeof *data);
		free(data);
	}
}

// A slice of the last axis of qkv [B,T,3E] as [B,T,H,E/H]: a view.
static yoke_tensor *head(yoke_tensor *qkv, int k)
{
	return yoke_reshape(yoke_slice(qkv, 2, k * E, k * E + E, 1), 4, DIMS(B, T, H, E / H));
}

static yoke_tensor *forward(yoke_tensor *ids)
{
	yoke_tensor *x = yoke_slice(ids, 1, 0, T, 1), *y = yoke_slice(ids, 1, 1, T + 1, 1);
	yoke_tensor *h = yoke_dropout(yoke_add(yoke_embedding(p[0], x), p[1]), 0.1);
	yoke_scope *s = yoke_scope_begin("block");
	yoke_tensor *n = yoke_layer_norm(h, p[2], p[3], 1e-5);
	yoke_tensor *qkv = yoke_linear(n, p[4], p[5]);
	yoke_tensor *a =
		yoke_attention(head(qkv, 0), head(qkv, 1), head(qkv, 2), YOKE_NONE, 1, 0, 0.1);
	a = yoke_linear(yoke_reshape(a, 3, DIMS(B, T, E)), p[6], p[7]);
	h = yoke_add(h, yoke_dropout(a, 0.1));
	n = yoke_rms_norm(h, p[2], 1e-5);
	a = yoke_linear(yoke_gelu_tanh(yoke_linear(n, p[8], p[9])), p[10], p[11]);
	h = yoke_lift(yoke_add(h, a));
	yoke_scope_end(s);
	return yoke_cross_entropy(yoke_matmul(h, p[0], YOKE_TB), y, -1, 0.05);
}

// Tokens one by one through a cache of keys and values, of which only the written entries count.
static uint64_t decode(uint64_t hash)
{
	enum { S = T, D = E / H };
	float out[H * D];
	yoke_tensor *k = yoke_variable("k", yoke_f32, 4, DIMS(1, S, H, D));
	yoke_tensor *val = yoke_variable("v", yoke_f32, 4, DIMS(1, S, H, D));
	yoke_tensor *at = yoke_scalar(0), *n = yoke_scalar(0);
	yoke_tensor *start[4] = { YOKE_NONE, at, YOKE_NONE, YOKE_NONE };
	for (int t = 0; t < S; t += 3) {
		yoke_scope *s = yoke_scope_begin("token");
		yoke_scalar_set(at, t);
		yoke_scalar_set(n, t + 1);
		yoke_tensor *x = yoke_slice_at(p[1], (yoke_tensor *[]){ at, YOKE_NONE },
					       DIMS(1, E)); // any rows will do
		x = yoke_reshape(yoke_linear(x, p[4], p[5]), 4, DIMS(1, 1, 3 * H, D));
		yoke_assign_at(k, start, yoke_slice(x, 2, H, 2 * H, 1));
		yoke_assign_at(val, start, yoke_slice(x, 2, 2 * H, 3 * H, 1));
		yoke_read(yoke_attention_keys(yoke_slice(x, 2, 0, H, 1), k, val, n, YOKE_NONE, 1, 0,
					      0),
			  out, sizeof out);
		hash = yk_hash(out, sizeof out, hash);
		yoke_scope_end(s);
	}
	yoke_free(k);
	yoke_free(val);
	return hash;
}

static int run(void)
{
	int32_t ids[B * (T + 1)];
	uint64_t hash = 0;
	float out[2];
	make_params();
	yoke_tensor *x = yoke_variable("x", yoke_i32, 2, DIMS(B, T + 1));
	yoke_tensor *lr = yoke_scalar(0), *c1 = yoke_scalar(0), *c2 = yoke_scalar(0), *g[PARAMS];
	for (int t = 1; t <= STEPS; t++) {
		yoke_random_set(5, t);
		for (int i = 0; i < B * (T + 1); i++)
			ids[i] = (int32_t)rnd_int(0, V - 1);
		yoke_scope *s = yoke_scope_begin("step");
		yoke_put(x, ids, sizeof ids);
		yoke_scalar_set(lr, 0.01 * t);
		yoke_scalar_set(c1, 1 - pow(0.9, t));
		yoke_scalar_set(c2, 1 - pow(0.99, t));
		yoke_tensor *loss = forward(x);
		yoke_grad(loss, PARAMS, p, g);
		yoke_tensor *norm = yoke_global_norm(PARAMS, g);
		yoke_tensor *scale = yoke_min(
			yoke_div(yoke_const(1), yoke_add(norm, yoke_const(1e-6))), yoke_const(1));
		struct yoke_adamw o = { .size = sizeof o, lr, c1, c2, scale, 0.9, 0.99, 1e-8, 0.1 };
		yoke_adamw_step(PARAMS, p, g, m, v, &o);
		yoke_read(yoke_concat(2, (yoke_tensor *[]){ yoke_reshape(loss, 1, DIMS(1)),
							   yoke_reshape(norm, 1, DIMS(1)) }, 0),
			  out, sizeof out);
		hash = yk_hash(out, sizeof out, hash);
		if (yoke_scope_end(s) < 0) {
			printf("error %s\n", yoke_error());
			return 1;
		}
	}
	for (int i = 0; i < PARAMS; i++) {
		size_t n = yoke_bytes(p[i]);
		char *data = malloc(n);
		yoke_read(p[i], data, n);
		hash = yk_hash(data, n, hash);
		free(data);
	}
	hash = decode(hash);
	struct yoke_stats st = { .size = sizeof st };
	yoke_stats(&st);
	printf("%016llx loss %.9g norm %.9g misses %llu copies %llu %s\n", (unsigned long long)hash,
	       (double)out[0], (double)out[1], (unsigned long long)st.plan_misses,
	       (unsigned long long)st.assign_copies, yoke_error());
	return yoke_error_code() != 0;
}

// The line that this program prints in an environment; false when it fails.
static bool line_of(const char *self, const char *mode, char *to, int cap)
{
	char command[1024];
	const char *emulator = getenv("YOKE_TEST_EMULATOR");
	snprintf(command, sizeof command, "%s %s '%s' run", mode, emulator ? emulator : "", self);
	FILE *f = popen(command, "r");
	bool good = f && fgets(to, cap, f);
	while (good && *to == '#')
		good = fgets(to, cap, f);
	if (good)
		to[strcspn(to, "\n")] = 0;
	return f && pclose(f) == 0 && good;
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		tap_seed();
		return run();
	}
	static const char *const mode[] = {
		"YOKE_THREADS=1",
		"YOKE_THREADS=2",
		"YOKE_PLAN_MAX=0",
		"YOKE_FUSE=0",
		"YOKE_DONATE=0",
		"YOKE_EAGER=1",
		"YOKE_EAGER=1 YOKE_THREADS=1",
		"YOKE_CHECK=nan",
		"YOKE_TRACE_OPS=1 YOKE_SYNC=1",
		"YOKE_ARENA=0",
		"YOKE_PLAN_CSE=0",
		"YOKE_POOL=off",
		"YOKE_PLAN_HASH=0",
		"YOKE_FUSE=0 YOKE_DONATE=0 YOKE_ARENA=0 YOKE_THREADS=1",
	};
	char want[256] = "no line", got[256] = "no line";
	tap_seed();
	if (!ok(line_of(argv[0], "", want, sizeof want), "the plain run succeeds: %s", want))
		return done();
	double loss = atof(strstr(want, "loss ") + 5);
	ok(loss > 1 && loss < 8, "its loss is a number: %g", loss);
	for (size_t i = 0; i < sizeof mode / sizeof *mode; i++) {
		bool good = line_of(argv[0], mode[i], got, sizeof got) && !memcmp(got, want, 16);
		if (!good)
			diag("got %s, want %s", got, want);
		ok(good, "the same bits with %s", mode[i]);
	}
	// decomposed, the numbers are close but not equal
	bool good = line_of(argv[0], "YOKE_PLAN_NAMED=0", got, sizeof got);
	double other = good ? atof(strstr(got, "loss ") + 5) : NAN;
	ok(fabs(other - loss) < 1e-4 * loss,
	   "loss with named ops decomposed %.9g, by their kernels %.9g", other, loss);
	return done();
}
