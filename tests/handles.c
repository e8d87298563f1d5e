// SPDX-License-Identifier: Apache-2.0
// Tests stale handles of tensors, scopes and contexts: each use is refused and the error names
// the former object, whatever has reused its slot. Also handles that other threads free.
#include "config.h"

#include <pthread.h>
#include <semaphore.h>

#include "base/log.h"
#include "graph/context.h"
#include "tap.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

static const float data[4] = { 1, 2, 3, 4 };

// Is it an error with this code whose line contains both words? Clears it.
static void refused(const char *what, int code, const char *word, const char *other)
{
	const char *line = yoke_error();
	ok(yoke_error_code() == code && strstr(line, word) && strstr(line, other) &&
		   !strchr(line, '\n'),
	   "%s: %s %s", what, yoke_error_name(yoke_error_code()), line);
	yoke_error_clear();
}

static yoke_tensor *variable(const char *name)
{
	yoke_tensor *v = yoke_variable(name, yoke_f32, 1, DIMS(4));
	if (yoke_put(v, data, sizeof data) < 0)
		printf("Bail out! %s\n", yoke_error()), exit(1);
	return v;
}

// Every kind of call with a stale handle.
static void every_call(yoke_tensor *gone, int code, const char *word)
{
	float got[4];
	yoke_tensor *live = yoke_from(yoke_f32, 1, DIMS(4), data), *pair[] = { live, gone }, *to[2];
	yoke_sgd_step(1, &live, &gone, NULL, &(struct yoke_sgd){ .size = sizeof(struct yoke_sgd),
								 .lr = live, .first = YOKE_NONE });
	refused("in a list", code, word, "was used");
	ok(yoke_read(gone, got, sizeof got) == code, "read");
	refused("read", code, word, "was used");
	ok(!yoke_add(gone, live), "add");
	refused("first operand", code, word, "was used");
	ok(!yoke_add(live, gone), "add");
	refused("second operand", code, word, "was used");
	ok(yoke_put(gone, data, sizeof data) == code, "put");
	refused("put", code, word, "was used");
	ok(yoke_assign(gone, live) == code && (yoke_error_clear(), yoke_assign(live, gone)) < 0,
	   "assign");
	yoke_error_clear();
	ok(yoke_scalar_set(gone, 1) == code, "scalar_set");
	refused("scalar_set", code, word, "was used");
	ok(!yoke_keep(gone), "keep");
	refused("keep", code, word, "was used");
	ok(!yoke_lift(gone), "lift");
	refused("lift", code, word, "was used");
	ok(yoke_rank(gone) < 0 && yoke_dtype(gone) < 0 && yoke_dim(gone, 0) < 0 &&
		   yoke_count(gone) < 0 && !yoke_bytes(gone),
	   "its facts");
	refused("a fact", code, word, "was used");
	ok(!yoke_concat(2, pair, 0), "concat");
	refused("concat", code, word, "was used");
	ok(yoke_eval(2, pair) == code, "eval");
	refused("eval", code, word, "was used");
	ok(yoke_grad(gone, 1, &live, to) == code && !to[0], "grad");
	refused("grad of it", code, word, "was used");
	ok(yoke_barrier(1, &live, 1, &gone, to) == code, "barrier");
	refused("barrier", code, word, "was used");
	yoke_free(gone);
	refused("freed again", code, word, "was used");
	yoke_free(live);
}

static void freed(void)
{
	yoke_tensor *v = variable("weights"), *s = yoke_scalar(2);
	yoke_free(v);
	yoke_free(v);
	refused("freed twice", YOKE_EINVAL, "variable weights", "after it was freed");
	every_call(v, YOKE_EINVAL, "variable");
	yoke_free(s);
	every_call(s, YOKE_EINVAL, "number on the host");
	yoke_tensor *x = variable("x"), *y = yoke_keep(yoke_exp(x));
	yoke_free(y);
	yoke_tensor *z = yoke_keep(yoke_neg(x)); // in y's place
	float got[4] = { 0 };
	ok(yoke_read(y, got, sizeof got) == YOKE_EINVAL && !got[0],
	   "a scalar of another context is not read");
	refused("its place is taken", YOKE_EINVAL, "a result of exp", "freed");
	yoke_free(y);
	yoke_error_clear();
	ok(!yoke_read(z, got, sizeof got) && got[3] == -4, "nor freed: %s", yoke_error());
	yoke_free(z);
	yoke_free(x);
	yoke_add((yoke_tensor *)0x5000, YOKE_NONE);
	refused("no handle at all", YOKE_EINVAL, "0x5000", "no tensor");
}

static void scopes(void)
{
	yoke_tensor *x = variable("x");
	yoke_scope *outer = yoke_scope_begin("step"), *inner = yoke_scope_begin("layer");
	yoke_tensor *y = yoke_tanh(x);
	yoke_scope_end(inner);
	yoke_add(y, y);
	refused("its scope has ended", YOKE_EINVAL, "a result of tanh in scope \"step/layer\"",
		"yoke_keep");
	every_call(y, YOKE_EINVAL, "a result of tanh");
	yoke_scope_end(inner);
	refused("a scope is ended twice", YOKE_EINVAL, "scope_end", "no such scope");
	ok(yoke_scope_end(outer) == 0, "an enclosing scope is not affected: %s", yoke_error());
	yoke_free(x);
}

static void contexts(void)
{
	yoke_context *mine = yoke_use(NULL), *ctx = yoke_context_new("cpu");
	yoke_use(ctx);
	yoke_tensor *v = variable("v"), *y = yoke_keep(yoke_square(v));
	yoke_scope *s = yoke_scope_begin("open");
	yoke_tensor *z = yoke_exp(v);
	yoke_context_free(ctx);
	yoke_use(mine);
	yoke_sync(); // this thread has its own context
	yoke_add(v, v);
	refused("its context is gone", YOKE_ECONTEXT, "a variable", "after its context was freed");
	every_call(y, YOKE_ECONTEXT, "a result of square");
	every_call(z, YOKE_ECONTEXT, "a result of exp");
	yoke_scope_end(s);
	refused("its scope, too", YOKE_EINVAL, "scope_end", "another context");
	// their slots are reused by another context
	yoke_use(ctx = yoke_context_new("cpu"));
	for (int i = 0; i < 300; i++)
		yoke_keep(yoke_scalar(i));
	every_call(y, YOKE_EINVAL, "a result of square");
	yoke_context_free(ctx);
	yoke_use(mine);
}

// ---- freed by other threads ----

enum { N = 1000 };

static struct {
	yoke_tensor *t[N], *one;
	sem_t inside, tried;
	int errors;
} other;

static void *free_all(void *arg)
{
	(void)arg;
	for (int i = 0; i < N; i++)
		yoke_free(other.t[i]);
	other.errors = yoke_error_code();
	return NULL;
}

static uint64_t live(void)
{
	struct yoke_stats s = { .size = sizeof s };
	yoke_stats(&s);
	return s.live_handles;
}

static void elsewhere(void)
{
	pthread_t thread;
	yoke_tensor *x = variable("x");
	uint64_t before = live();
	for (int i = 0; i < N; i++)
		other.t[i] = yoke_keep(yoke_scalar(i));
	float got[4];
	yoke_tensor *y = yoke_keep(yoke_mul(x, other.t[7]));
	pthread_create(&thread, NULL, free_all, NULL);
	for (int i = 0; i < 2000; i++) // the owner records meanwhile
		yoke_free(yoke_scalar(i));
	pthread_join(thread, NULL);
	ok(!other.errors, "another thread frees %d handles", N);
	ok(!yoke_read(y, got, sizeof got) && got[3] == 28,
	   "a freed number keeps its value in pending work: %g", got[3]);
	yoke_free(y);
	ok(live() == before, "the handles are released: %llu, before %llu",
	   (unsigned long long)live(), (unsigned long long)before);
	yoke_exp(other.t[0]);
	refused("one of them", YOKE_EINVAL, "number on the host", "freed");
	pthread_create(&thread, NULL, free_all, NULL);
	pthread_join(thread, NULL);
	ok(other.errors == YOKE_EINVAL, "freeing again is an error in that thread: %s",
	   yoke_error_name(other.errors));
	yoke_free(x);
}

static void *free_one(void *arg)
{
	(void)arg;
	sem_wait(&other.inside);
	yoke_free(other.one);
	other.errors = yoke_error_code();
	sem_post(&other.tried);
	return NULL;
}

// Called from inside a library call.
static void wait_inside(void *arg)
{
	(void)arg;
	sem_post(&other.inside);
	sem_wait(&other.tried);
	yoke_free(other.t[0]); // by the calling thread itself, as a garbage collector may
}

static void busy(void)
{
	static _Alignas(64) float lent[64];
	pthread_t thread;
	sem_init(&other.inside, 0, 0);
	sem_init(&other.tried, 0, 0);
	other.one = variable("one");
	other.t[0] = variable("two");
	uint64_t before = live();
	yoke_tensor *w = yoke_wrap(yoke_f32, 1, DIMS(64), lent, wait_inside, NULL);
	pthread_create(&thread, NULL, free_one, NULL);
	yoke_free(w);
	pthread_join(thread, NULL);
	ok(!other.errors && !yoke_error_code(), "freed while the context is busy: %s",
	   yoke_error());
	ok(live() == before - 2, "and released by the next call: %llu, before %llu",
	   (unsigned long long)live(), (unsigned long long)before);
}

// ---- handles that pile up ----

static int warnings;
static char warning[600];

static void count_warnings(int level, const char *topic, const char *line, void *arg)
{
	(void)arg;
	if (level != YOKE_LOG_WARN || strcmp(topic, "graph"))
		return;
	warnings++;
	snprintf(warning, sizeof warning, "%s", line);
}

// n values and numbers, each in a scope or in none; returns the number of warnings.
static int pile(const char *max, int n, bool scoped, bool freed_at_once)
{
	yoke_setting_set("graph.handles", max);
	yoke_context *ctx = yoke_context_new("cpu"), *before = yoke_use(ctx);
	warnings = 0;
	yk_log_to(count_warnings, NULL);
	for (int i = 0; i < n; i += 2) {
		yoke_scope *s = scoped ? yoke_scope_begin("step") : NULL;
		yoke_tensor *t = yoke_neg(yoke_const(1));
		if (freed_at_once)
			yoke_free(t);
		if (s)
			yoke_scope_end(s);
	}
	yk_log_to(NULL, NULL);
	yoke_use(before);
	yoke_context_free(ctx);
	return warnings;
}

static void piles(void)
{
	int got = pile("10000", 10000, false, false);
	ok(got == 0, "10000 handles outside of scopes: %d warnings", got);
	got = pile("10000", 30000, false, false);
	ok(got == 1 && strstr(warning, "yoke_scope_begin") && strstr(warning, "10001 "),
	   "30000 handles: %d warnings, %s", got, warning);
	got = pile("10000", 30000, true, false);
	ok(got == 0, "30000 in scopes of two: %d warnings", got);
	got = pile("100", 198, false, true);
	ok(got == 0, "99 numbers, and values that are freed, of 100: %d warnings", got);
	got = pile("100", 204, false, true);
	ok(got == 1, "102 numbers: %d, %s", got, warning);
	got = pile("0", 30000, false, false);
	ok(got == 0, "constants do not count: %d warnings", got);
	yoke_setting_set("graph.handles", "100");
	yoke_context *ctx = yoke_context_new("cpu"), *before = yoke_use(ctx);
	warnings = 0;
	yk_log_to(count_warnings, NULL);
	for (int i = 0; i < 200; i++)
		variable("many");
	ok(warnings == 0, "200 variables, as in a model: %d warnings", warnings);
	for (int i = 0; i < 200; i++) {
		yoke_scope *s = yoke_scope_begin("kept");
		yoke_keep(yoke_neg(yoke_const(1)));
		yoke_scope_end(s);
	}
	ok(warnings == 1, "kept values outside of scopes: %d, %s", warnings, warning);
	yk_log_to(NULL, NULL);
	yoke_use(before);
	yoke_context_free(ctx);
	ctx = yoke_context_new("cpu");
	before = yoke_use(ctx);
	warnings = 0;
	yk_log_to(count_warnings, NULL);
	for (int i = 0; i < 1200; i++)
		yoke_scope_begin("s");
	ok(warnings == 1 && strstr(warning, "yoke_scope_end"),
	   "1200 scopes that do not end: %d, %s", warnings, warning);
	yk_log_to(NULL, NULL);
	yoke_use(before);
	yoke_context_free(ctx);
	yoke_setting_set("graph.handles", "10000");
}

int main(void)
{
	piles();
	freed();
	scopes();
	contexts();
	elsewhere();
	busy();
	return done();
}
