// SPDX-License-Identifier: Apache-2.0
// Tests threads: four contexts on four threads of one device give the results of one; a context
// that two threads use at once refuses the second and names it; a forked child, which has no
// threads, is refused. --enable-sanitize=thread finds races.

#include "config.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "tap.h"
#include "yoke.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

enum { THREADS = 4, STEPS = 12, B = 24, E = 40 };

// Trains a model for some steps in a new context; returns a hash of all losses and weights.
static void *train(void *arg)
{
	static const int64_t dims[3][2] = { { 3 * E, E }, { E, 3 * E }, { 7, E } };
	uint64_t *hash = arg, state = 99; // the same data in every thread
	yoke_tensor *p[3], *m[3], *v[3], *g[3];
	float data[3 * E * E];
	yoke_context *ctx = yoke_context_new("cpu");
	if (!ctx)
		return "no context";
	yoke_use(ctx);
	for (int i = 0; i < 3; i++) {
		for (int k = 0; k < 3 * E * E; k++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			data[k] = (float)(int32_t)(state >> 32) * 0x1p-33f;
		}
		p[i] = yoke_variable("p", yoke_f32, 2, dims[i]);
		m[i] = yoke_variable("m", yoke_f32, 2, dims[i]);
		v[i] = yoke_variable("v", yoke_f32, 2, dims[i]);
		yoke_put(p[i], data, yoke_bytes(p[i]));
	}
	yoke_tensor *x = yoke_variable("x", yoke_f32, 2, DIMS(B, E)), *one = yoke_scalar(0.01);
	*hash = 0;
	for (int t = 0; t < STEPS; t++) {
		int32_t id[B];
		float l = NAN;
		for (int i = 0; i < B; i++)
			id[i] = (i * 5 + t) % 7;
		yoke_random_set(4, t);
		yoke_scope *s = yoke_scope_begin("step");
		yoke_put(x, data + t, B * E * sizeof *data);
		yoke_tensor *ids = yoke_from(yoke_i32, 1, DIMS(B), id);
		yoke_tensor *h = yoke_gelu_tanh(
			yoke_linear(yoke_rms_norm(x, YOKE_NONE, 1e-5), p[0], YOKE_NONE));
		h = yoke_linear(yoke_dropout(h, 0.2), p[1], YOKE_NONE);
		yoke_tensor *loss = yoke_cross_entropy(yoke_linear(h, p[2], YOKE_NONE), ids, -1, 0);
		yoke_grad(loss, 3, p, g);
		yoke_adamw_step(3, p, g, m, v,
				&(struct yoke_adamw){ .size = sizeof(struct yoke_adamw),
						      one,
						      one,
						      one,
						      YOKE_NONE,
						      0.9,
						      0.99,
						      1e-8,
						      0.1 });
		yoke_read(loss, &l, sizeof l);
		*hash = yk_hash(&l, sizeof l, *hash);
		if (yoke_scope_end(s) < 0 || !(l > 0)) {
			printf("# step %d: loss %g %s\n", t, (double)l, yoke_error());
			return "failed";
		}
	}
	for (int i = 0; i < 3; i++) {
		yoke_read(p[i], data, yoke_bytes(p[i]));
		*hash = yk_hash(data, yoke_bytes(p[i]), *hash);
	}
	yoke_context_free(ctx);
	return NULL;
}

static void four(void)
{
	pthread_t thread[THREADS];
	uint64_t alone, hash[THREADS] = { 0 };
	void *why = train(&alone);
	ok(!why, "a thread alone: %016llx %s", (unsigned long long)alone, why ? (char *)why : "");
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, train, &hash[i]))
			ok(false, "a thread could not be made");
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &why);
		ok(!why && hash[i] == alone, "thread %d of %d: %016llx %s", i, THREADS,
		   (unsigned long long)hash[i], why ? (char *)why : "");
	}
}

// ---- misuse ----

static struct {
	yoke_context *ctx;
	yoke_tensor *x;
	sem_t inside, tried;
	int id, add, use, put; // the second thread: its number, and the codes of its calls
	char text[400];
} misuse;

// Runs inside a call of the thread that owns the context.
static void wait_inside(void *arg)
{
	(void)arg;
	sem_post(&misuse.inside);
	sem_wait(&misuse.tried);
}

static void *second(void *arg)
{
	float d = 1;
	(void)arg;
	misuse.id = (int)gettid();
	sem_wait(&misuse.inside);
	misuse.add = yoke_add(misuse.x, misuse.x) ? 0 : yoke_error_code();
	snprintf(misuse.text, sizeof misuse.text, "%s", yoke_error());
	yoke_error_clear();
	misuse.put = yoke_put(misuse.x, &d, sizeof d);
	yoke_error_clear();
	yoke_use(misuse.ctx);
	misuse.use = yoke_random_set(1, 1);
	yoke_error_clear();
	yoke_use(NULL);
	sem_post(&misuse.tried);
	return NULL;
}

static void two_in_one(void)
{
	static _Alignas(64) float data[64];
	pthread_t thread;
	char mine[32], other[32];
	float got = NAN, d = 5;
	sem_init(&misuse.inside, 0, 0);
	sem_init(&misuse.tried, 0, 0);
	misuse.ctx = yoke_context_new("cpu");
	yoke_context *former = yoke_use(misuse.ctx);
	misuse.x = yoke_variable("x", yoke_f32, 0, NULL);
	yoke_put(misuse.x, &d, sizeof d);
	yoke_tensor *w = yoke_wrap(yoke_f32, 1, DIMS(64), data, wait_inside, NULL);
	if (!w || pthread_create(&thread, NULL, second, NULL)) {
		ok(false, "the test cannot begin: %s", yoke_error());
		return;
	}
	yoke_free(w); // calls wait_inside
	pthread_join(thread, NULL);
	snprintf(mine, sizeof mine, "thread %d is inside", (int)gettid());
	snprintf(other, sizeof other, "thread %d may not", misuse.id);
	ok(misuse.add == YOKE_EBUSY && strstr(misuse.text, mine) && strstr(misuse.text, other),
	   "a second thread is refused, and both are named: %s", misuse.text);
	ok(misuse.put == YOKE_EBUSY && misuse.use == YOKE_EBUSY,
	   "so are put and random_set: %s, %s", yoke_error_name(misuse.put),
	   yoke_error_name(misuse.use));
	ok(!yoke_read(misuse.x, &got, sizeof got) && got == 5, "the first thread continues: %s",
	   yoke_error());
	yoke_use(former);
	yoke_context_free(misuse.ctx);
}

// ---- a forked child ----

// Is it refused, with a line that mentions the fork?
static bool refused(int err, const char *what)
{
	bool good =
		err == YOKE_EFORK && strstr(yoke_error(), "fork") && !strchr(yoke_error(), '\n');
	if (!good)
		diag("%s: %s, %s", what, yoke_error_name(err), yoke_error());
	yoke_error_clear();
	return good;
}

static void forked(void)
{
	float d[64], got[64] = { NAN };
	int status = -1;
	for (int i = 0; i < 64; i++)
		d[i] = (float)i;
	yoke_context *ctx = yoke_context_new("cpu"), *former = yoke_use(ctx);
	yoke_tensor *v = yoke_variable("v", yoke_f32, 1, DIMS(64));
	yoke_put(v, d, sizeof d);
	yoke_read(yoke_keep(yoke_add(v, v)), got, sizeof got);
	yoke_tensor *pending = yoke_keep(yoke_neg(v));
	fflush(stdout);
	pid_t pid = fork();
	if (!pid) {
		alarm(600); // a hang ends the child
		bool good =
			refused(yoke_read(pending, got, sizeof got), "a read of what is pending");
		good &= refused(yoke_read(yoke_mul(v, v), got, sizeof got), "a new operation");
		good &= refused(yoke_read(v, got, sizeof got), "a read of a variable");
		good &= refused(yoke_put(v, d, sizeof d), "a put");
		good &= !yoke_context_new("cpu");
		good &= refused(yoke_error_code(), "a context");
		exit(good ? 0 : 1); // through the library's exit handlers
	}
	waitpid(pid, &status, 0);
	ok(pid > 0 && status == 0, "a forked child is refused at every call, and ends: status %#x",
	   status);
	ok(!yoke_read(pending, got, sizeof got) && got[63] == -63, "the parent still works: %s",
	   yoke_error());
	yoke_use(former);
	yoke_context_free(ctx);
}

int main(void)
{
	tap_seed();
	two_in_one();
	four();
	forked();
	return done();
}
