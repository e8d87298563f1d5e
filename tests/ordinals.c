// SPDX-License-Identifier: Apache-2.0
// Tests that random numbers are a function of seed, scope, call, step, index and how often the
// scope drew before, only: not of other computations, threads, modes or shapes. The reference is
// Philox 4x32-10 (Salmon et al. 2011), implemented here.

#include "config.h"

#include "base/hash.h"
#include "tap.h"
#include "yoke.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

enum { N = 1013 };

// Element `index` for a key and a step.
static uint32_t philox(uint64_t key, uint64_t step, uint64_t index)
{
	uint32_t k[2] = { (uint32_t)key, (uint32_t)(key >> 32) };
	uint32_t c[4] = { (uint32_t)(index / 4), (uint32_t)(index / 4 >> 32), (uint32_t)step,
			  (uint32_t)(step >> 32) };
	for (int round = 0; round < 10; round++) {
		uint64_t a = (uint64_t)0xd2511f53 * c[0], b = (uint64_t)0xcd9e8d57 * c[2];
		uint32_t d[4] = { (uint32_t)(b >> 32) ^ c[1] ^ k[0], (uint32_t)b,
				  (uint32_t)(a >> 32) ^ c[3] ^ k[1], (uint32_t)a };
		memcpy(c, d, sizeof c);
		k[0] += 0x9e3779b9;
		k[1] += 0xbb67ae85;
	}
	return c[index % 4];
}

static yoke_tensor *numbers(int64_t n)
{
	return yoke_uniform(yoke_f32, 1, DIMS(n));
}

// The n-th call in a scope, counted from 0, against the reference.
static bool is(const float *got, int n, uint64_t seed, const char *path, uint64_t call,
	       uint64_t step, const char *what)
{
	uint64_t key = seed ^ yk_hash(path, strlen(path), call);
	int wrong = -1;
	for (int i = 0; i < n && wrong < 0; i++)
		if (got[i] != (float)(philox(key, step, (uint64_t)i) >> 8) * 0x1p-24f)
			wrong = i;
	if (wrong >= 0)
		diag("%s: [%d] got %.9g", what, wrong, (double)got[wrong]);
	return ok(wrong < 0, "%s", what);
}

// Two layers; with a metric before, between and after them that also draws numbers.
static void layers(bool metric, float *one, float *two)
{
	yoke_scope *s = yoke_scope_begin("step"), *t;
	yoke_tensor *a, *b, *m = NULL;
	if (metric)
		m = yoke_keep(yoke_sum(numbers(99), YOKE_ALL));
	t = yoke_scope_begin("layer1");
	a = yoke_lift(numbers(N));
	yoke_scope_end(t);
	if (metric) {
		t = yoke_scope_begin("metric");
		m = (yoke_free(m), yoke_keep(yoke_sum(numbers(77), YOKE_ALL)));
		yoke_scope_end(t);
	}
	t = yoke_scope_begin("layer2");
	b = yoke_lift(numbers(N));
	if (metric)
		yoke_sum(numbers(5), YOKE_ALL); // without readers
	yoke_scope_end(t);
	memset(one, 0xff, N * sizeof *one);
	memset(two, 0xff, N * sizeof *two);
	yoke_eval(2, (yoke_tensor *[]){ a, b });
	yoke_read(a, one, N * sizeof *one);
	yoke_read(b, two, N * sizeof *two);
	yoke_free(m);
	yoke_scope_end(s);
}

static void scopes(void)
{
	static float a[2][N], b[2][N], c[N];
	yoke_random_set(0x123456789abcdefu, 7);
	layers(false, a[0], b[0]);
	yoke_random_set(0x123456789abcdefu, 7);
	layers(true, a[1], b[1]);
	is(a[0], N, 0x123456789abcdefu, "step/layer1", 0, 7, "the first layer, as defined");
	is(b[0], N, 0x123456789abcdefu, "step/layer2", 0, 7, "the second");
	ok(!memcmp(a[0], a[1], sizeof *a) && !memcmp(b[0], b[1], sizeof *b),
	   "a metric beside the layers changes neither mask");
	ok(memcmp(a[0], b[0], sizeof *a), "the two masks differ");
	yoke_random_set(0x123456789abcdefu, 8);
	layers(false, a[1], b[1]);
	is(a[1], N, 0x123456789abcdefu, "step/layer1", 0, 8, "the next step");
	ok(memcmp(a[0], a[1], sizeof *a), "the next step has another mask");
	yoke_random_set(3, (int64_t)1 << 40);
	layers(false, a[1], b[1]);
	is(a[1], N, 3, "step/layer1", 0, (uint64_t)1 << 40, "another seed, a large step");
	// calls in one scope are counted
	yoke_scope *s = yoke_scope_begin("twice");
	yoke_tensor *x = numbers(N), *y = numbers(N);
	yoke_eval(2, (yoke_tensor *[]){ x, y });
	yoke_read(x, a[0], sizeof *a);
	yoke_read(y, a[1], sizeof *a);
	is(a[0], N, 3, "twice", 0, (uint64_t)1 << 40, "the first call in a scope");
	is(a[1], N, 3, "twice", 1, (uint64_t)1 << 40, "the second");
	yoke_scope_end(s);
	for (uint64_t turn = 1; turn < 4; turn++) {
		s = yoke_scope_begin("twice");
		yoke_read(numbers(N), c, sizeof c);
		yoke_scope_end(s);
		is(c, N, 3, "twice", turn << 32, (uint64_t)1 << 40,
		   "a scope opened again draws other numbers");
	}
	yoke_random_set(3, (int64_t)1 << 40);
	s = yoke_scope_begin("twice");
	yoke_read(numbers(N), c, sizeof c);
	yoke_scope_end(s);
	ok(!memcmp(c, a[0], sizeof c),
	   "after the same seed and step were set again, the first numbers");
}

// A loop with dropout draws another mask in each round, and needs one plan.
static void rounds(void)
{
	static float mask[5][N];
	struct yoke_stats before = { .size = sizeof before }, after = { .size = sizeof after };
	int equal = 0;
	yoke_random_set(5, 0);
	for (int round = 0; round < 5; round++) {
		yoke_stats(&before);
		yoke_scope *s = yoke_scope_begin("round");
		yoke_read(yoke_dropout(yoke_full(yoke_f32, 1, DIMS(N), 1), 0.5), mask[round],
			  sizeof *mask);
		yoke_scope_end(s);
		yoke_stats(&after);
		for (int other = 0; other < round; other++)
			equal += !memcmp(mask[round], mask[other], sizeof *mask);
		ok(!round || after.plan_misses == before.plan_misses, "round %d needs no new plan",
		   round);
	}
	ok(!equal, "%d of the masks of five rounds are equal", equal);
	// without scopes: in between, a scope is opened
	float a, b;
	yoke_read(numbers(1), &a, sizeof a);
	yoke_scope_end(yoke_scope_begin("between"));
	yoke_read(numbers(1), &b, sizeof b);
	ok(a != b, "%g and %g outside of scopes", (double)a, (double)b);
}

// Two steps in one evaluation; calls are counted anew after the second.
static void steps(void)
{
	static float a[N], b[N];
	yoke_scope *s = yoke_scope_begin("parts");
	yoke_random_set(9, 4);
	yoke_tensor *x = numbers(N);
	yoke_random_set(9, 5);
	yoke_tensor *y = numbers(N);
	yoke_eval(2, (yoke_tensor *[]){ x, y });
	yoke_read(x, a, sizeof a);
	yoke_read(y, b, sizeof b);
	is(a, N, 9, "parts", 0, 4, "two steps in one evaluation: the first");
	is(b, N, 9, "parts", 0, 5, "the second");
	yoke_scope_end(s);
}

// The index is that of the element, whatever the shape.
static void shapes(void)
{
	static float a[N], b[2 * N];
	yoke_random_set(11, 2);
	for (int n = 1; n <= 9; n++) {
		yoke_random_set(11, 2);
		yoke_scope *s = yoke_scope_begin("shape");
		memset(a, 0xff, sizeof a);
		yoke_read(numbers(n), a, (size_t)n * sizeof *a);
		char what[40];
		snprintf(what, sizeof what, "%d elements", n);
		is(a, n, 11, "shape", 0, 2, what);
		yoke_scope_end(s);
	}
	yoke_random_set(11, 2);
	yoke_scope *s = yoke_scope_begin("shape");
	yoke_tensor *x = yoke_uniform(yoke_f32, 2, DIMS(2, N));
	yoke_read(x, b, sizeof b);
	is(b, 2 * N, 11, "shape", 0, 2, "rows and columns");
	yoke_scope_end(s);
	// a view of them, and an element of a fused chain
	yoke_random_set(11, 2);
	s = yoke_scope_begin("shape");
	x = yoke_slice(yoke_uniform(yoke_f32, 2, DIMS(2, N)), 0, 1, 2, 1);
	yoke_read(yoke_neg(yoke_add(x, yoke_const(1))), a, sizeof a);
	int wrong = 0;
	for (int i = 0; i < N; i++)
		wrong += a[i] != -(b[N + i] + 1);
	ok(!wrong, "the second row alone, in a fused chain: %d wrong", wrong);
	yoke_scope_end(s);
}

// The hash of dropout's mask under an environment.
static int print_hash(void)
{
	static float got[20000];
	uint64_t hash = 0;
	for (int t = 0; t < 3; t++) {
		yoke_random_set(21, t);
		yoke_scope *s = yoke_scope_begin("step");
		yoke_tensor *x = yoke_full(yoke_f32, 1, DIMS(20000), 1);
		yoke_read(yoke_dropout(yoke_dropout(x, 0.3), 0.5), got, sizeof got);
		yoke_scope_end(s);
		hash = yk_hash(got, sizeof got, hash);
	}
	printf("%016llx\n", (unsigned long long)hash);
	return 0;
}

static void modes(const char *self)
{
	static const char *const mode[] = { "", "YOKE_THREADS=1", "YOKE_THREADS=2", "YOKE_EAGER=1",
					    "YOKE_FUSE=0", "YOKE_CPU_ISA=base", "YOKE_PLAN_MAX=0" };
	char want[64] = "", line[64];
	for (size_t i = 0; i < sizeof mode / sizeof *mode; i++) {
		char command[1024];
		snprintf(command, sizeof command, "%s '%s' hash", mode[i], self);
		FILE *f = popen(command, "r");
		if (!f || !fgets(line, sizeof line, f))
			snprintf(line, sizeof line, "nothing");
		if (f)
			pclose(f);
		line[strcspn(line, "\n")] = 0;
		if (!i)
			memcpy(want, line, sizeof want);
		ok(strlen(line) == 16 && !strcmp(line, want), "masks of dropout with \"%s\": %s",
		   mode[i], line);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return print_hash();
	tap_seed();
	scopes();
	steps();
	rounds();
	shapes();
	modes(argv[0]);
	ok(!yoke_error_code(), "no error is left: %s", yoke_error());
	return done();
}
