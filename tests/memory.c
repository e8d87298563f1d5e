// SPDX-License-Identifier: Apache-2.0
// Tests low memory: blocks are moved together when free memory suffices but is fragmented, and
// keep their contents; a launch that finds no memory is retried once; a request larger than the
// device is refused with its numbers.
// The program runs itself once for each backend, because the limit is a setting.

#include "config.h"

#include "device/device.h"
#include "device/pool.h"
#include "fault/fault.h"
#include "stats.h"
#include "tap.h"
#include "yoke.h"

enum { MIB = 1 << 20, LIMIT = 64 };

static const struct fault_control *ctl; // NULL: another backend
static struct yk_device *device;
static uint32_t stamp; // state of the contents

struct held { // a value and its expected contents: every word is `first` plus its index
	yoke_tensor *t;
	uint32_t first;
	int64_t words;
};

static bool hold(struct held *h, int64_t bytes)
{
	int64_t words = bytes / 4;
	uint32_t *data = malloc((size_t)bytes);
	*h = (struct held){ .first = stamp += 7919, .words = words };
	for (int64_t i = 0; i < words; i++)
		data[i] = h->first + (uint32_t)i;
	h->t = yoke_from(yoke_i32, 1, &words, data);
	free(data);
	return h->t;
}

static void drop(struct held *h)
{
	yoke_free(h->t);
	h->t = NULL;
}

static bool is_whole(const struct held *h)
{
	size_t bytes = (size_t)h->words * 4;
	uint32_t *got = malloc(bytes), wrong = 0;
	memset(got, 0xff, bytes);
	bool read = yoke_read(h->t, got, bytes) == 0;
	for (int64_t i = 0; i < h->words && read; i++)
		wrong += got[i] != h->first + (uint32_t)i;
	free(got);
	return read && !wrong;
}

static bool all_whole(const struct held *h, int n)
{
	int bad = 0;
	for (int i = 0; i < n; i++)
		bad += h[i].t && !is_whole(&h[i]);
	if (bad)
		diag("%d values are not what they were: %s", bad, yoke_error());
	return !bad;
}

static void drop_all(struct held *h, int n)
{
	for (int i = 0; i < n; i++)
		if (h[i].t)
			drop(&h[i]);
}

// n blocks that fill the limit; every second one, or all but every fourth, is freed.
static int checkered(struct held *h, int64_t bytes, int every, bool keep)
{
	int n = 0;
	yoke_sync();
	yk_pool_trim(device->pool); // full segments from here on
	while (n < LIMIT && hold(&h[n], bytes))
		n++;
	yoke_error_clear();
	for (int i = 0; i < n; i++)
		if ((i % every == 0) != keep)
			drop(&h[i]);
	return n;
}

// Under a limit of 96 MiB, three segments of 32.
static void pieces(void)
{
	struct held h[LIMIT] = { { 0 } }, more = { 0 };
	struct yoke_stats a = stats();
	int n = checkered(h, 4 * MIB, 2, true);
	ok(n >= 22 && n <= 24, "%d blocks of 4 MiB fill 96", n);
	bool had = hold(&more, 12 * MIB);
	struct yoke_stats b = stats();
	ok(had && is_whole(&more) && all_whole(h, n),
	   "12 MiB fit although no hole has more than 4: %s", yoke_error());
	yoke_error_clear();
	ok(b.pool_compactions == a.pool_compactions + 1 &&
		   b.pool_moved_bytes - a.pool_moved_bytes <= 8 * MIB &&
		   b.pool_ooms == a.pool_ooms + 1,
	   "blocks moved once, %llu bytes, and no failure counted beside the one that "
	   "filled it",
	   (unsigned long long)(b.pool_moved_bytes - a.pool_moved_bytes));
	drop(&more);
	had = hold(&more, 16 * MIB);
	ok(had && is_whole(&more) && all_whole(h, n), "16 MiB: %s", yoke_error());
	yoke_error_clear();
	if (more.t)
		drop(&more);
	a = stats();
	had = hold(&more, 60 * MIB);
	b = stats();
	ok(!had && yoke_error_code() == YOKE_ENOMEM && b.pool_compactions == a.pool_compactions,
	   "a request larger than the free memory moves nothing: %s", yoke_error());
	yoke_error_clear();
	ok(all_whole(h, n), "and loses nothing");
	if (more.t)
		drop(&more);
	drop_all(h, n);
}

// Moved variables are written in place, and moved again.
static void variables(void)
{
	struct held v[2], h[LIMIT] = { { 0 } }, more = { 0 };
	const int64_t words = MIB;
	int wrong = 0;
	for (int i = 0; i < 2; i++) {
		v[i] = (struct held){ .t = yoke_variable("v", yoke_i32, 1, &words),
				      .words = words };
		yoke_tensor *x = yoke_keep(yoke_iota(yoke_i32, 1, &words, 0));
		yoke_assign(v[i].t, x);
		yoke_eval(0, NULL);
		yoke_free(x);
	}
	uint64_t moved = stats().pool_moved_bytes;
	for (int k = 1; k <= 3; k++) {
		int n = checkered(h, 4 * MIB, 2, k & 1);
		wrong += !hold(&more, 12 * MIB);
		for (int i = 0; i < 2; i++) {
			yoke_scope *s = yoke_scope_begin("step");
			yoke_assign(v[i].t, yoke_add(v[i].t, yoke_const(3)));
			v[i].first += 3;
			wrong += yoke_eval(0, NULL) < 0;
			yoke_scope_end(s);
		}
		wrong += !all_whole(h, n) + !is_whole(&more);
		if (more.t)
			drop(&more);
		drop_all(h, n);
	}
	ok(!wrong && all_whole(v, 2) && stats().pool_moved_bytes > moved,
	   "variables are moved and keep working: %s", yoke_error());
	yoke_error_clear();
	drop_all(v, 2);
}

// A request larger than any segment: whole segments are emptied and released.
static void segments(void)
{
	struct held h[LIMIT] = { { 0 } }, more = { 0 };
	int n = checkered(h, 4 * MIB, 4, true);
	struct yoke_stats a = stats();
	bool had = hold(&more, 32 * MIB + 2 * MIB);
	struct yoke_stats b = stats();
	bool fits = b.pool_reserved <= 96 * MIB;
	ok(had && is_whole(&more) && all_whole(h, n) && fits &&
		   b.pool_compactions > a.pool_compactions,
	   "34 MiB, when segments have 32 and a quarter of each is in use: %s", yoke_error());
	yoke_error_clear();
	if (more.t)
		drop(&more);
	drop_all(h, n);
}

// A launch's arena and results, between values of another context.
static void launches(void)
{
	struct held h[LIMIT] = { { 0 } }, other[LIMIT] = { { 0 } };
	int n = checkered(h, 4 * MIB, 2, true);
	yoke_context *mine = yoke_use(NULL);
	yoke_use(mine);
	const int64_t words = 3 * MIB; // 12 MiB
	struct yoke_stats a = stats();
	yoke_tensor *x = yoke_keep(yoke_iota(yoke_i32, 1, &words, 0));
	int32_t *got = malloc((size_t)words * 4), wrong = 0;
	memset(got, 0xff, (size_t)words * 4);
	int err = yoke_read(x, got, (size_t)words * 4);
	for (int64_t i = 0; i < words; i++)
		wrong += got[i] != i;
	ok(!err && !wrong && all_whole(h, n) && stats().pool_compactions > a.pool_compactions,
	   "a launch's result: %s", yoke_error());
	yoke_error_clear();
	free(got);
	yoke_free(x);
	drop_all(h, n);
	// the holes are between another context's blocks, which cannot move
	yoke_context *theirs = yoke_context_new(NULL);
	yoke_use(theirs);
	n = checkered(other, 4 * MIB, 2, true);
	yoke_use(mine);
	struct held more = { 0 };
	bool had = hold(&more, 12 * MIB);
	ok(!had && yoke_error_code() == YOKE_ENOMEM, "another context's blocks are not moved: %s",
	   yoke_error());
	yoke_error_clear();
	if (more.t)
		drop(&more);
	yoke_use(theirs);
	ok(all_whole(other, n), "and keep their contents");
	drop_all(other, n);
	yoke_use(mine);
	yoke_context_free(theirs);
}

// Values of all sizes are allocated and freed.
static void traffic(void)
{
	struct held h[LIMIT] = { { 0 } };
	uint64_t before = stats().pool_compactions;
	int refused = 0, bad = 0;
	for (int i = 0; i < 300; i++) {
		struct held *x = &h[rnd_int(0, 23)];
		if (x->t) {
			bad += !is_whole(x);
			drop(x);
		}
		if (!hold(x, 4 * rnd_int(1, rnd_int(0, 9) ? MIB : 4 * MIB))) {
			refused++;
			bad += yoke_error_code() != YOKE_ENOMEM;
			yoke_error_clear();
		}
	}
	struct yoke_stats s = stats();
	ok(!bad && all_whole(h, LIMIT),
	   "300 values allocated and freed, %d refused, %llu compactions", refused,
	   (unsigned long long)(s.pool_compactions - before));
	drop_all(h, LIMIT);
	ok(stats().pool_allocated == 0, "no memory is left allocated, %llu bytes",
	   (unsigned long long)stats().pool_allocated);
}

// Uploads have their own queue: each evaluation reads the values written before it, whatever was
// written after it, or over it unread.
static void overlap(void)
{
	enum { ROUNDS = 60, WORDS = 100000 };
	const int64_t words = WORDS;
	int32_t *data = malloc(WORDS * sizeof *data);
	int64_t got[ROUNDS], want[ROUNDS], wrong = 0;
	yoke_tensor *v = yoke_variable("v", yoke_i32, 1, &words), *sum[ROUNDS];
	for (int k = 0; k < ROUNDS; k++) {
		int puts = (int)rnd_int(1, 3);
		while (puts--) {
			want[k] = 0;
			for (int i = 0; i < WORDS; i++)
				want[k] += data[i] = (int32_t)rnd_int(-1000, 1000);
			wrong += yoke_put(v, data, WORDS * sizeof *data) < 0;
			memset(data, 0xff, WORDS * sizeof *data); // the caller may reuse it
		}
		yoke_scope *s = yoke_scope_begin("round");
		sum[k] = yoke_keep(yoke_sum(yoke_cast(v, yoke_i64), YOKE_ALL));
		if (k % 3)
			wrong += yoke_eval(0, NULL) < 0;
		yoke_scope_end(s);
	}
	for (int k = ROUNDS; k-- > 0;) {
		got[k] = -1;
		wrong += yoke_read(sum[k], &got[k], sizeof *got) < 0 || got[k] != want[k];
		yoke_free(sum[k]);
	}
	wrong += yoke_put(v, data, WORDS * sizeof *data) < 0; // and freed unread
	yoke_free(v);
	ok(!wrong, "%d rounds of puts and sums, %lld wrong: %s", ROUNDS, (long long)wrong,
	   yoke_error());
	yoke_error_clear();
	free(data);
}

// A failing copy leaves everything unchanged; a launch without memory is retried.
static void faults(void)
{
	struct held h[LIMIT] = { { 0 } }, more = { 0 };
	int n = checkered(h, 4 * MIB, 2, true);
	ctl->arm("copy", 2);
	bool had = hold(&more, 16 * MIB);
	ctl->arm("copy", 0);
	ok(had || (yoke_error_code() == YOKE_ENOMEM && all_whole(h, n)), "a failing copy: %s",
	   yoke_error());
	yoke_error_clear();
	if (more.t)
		drop(&more);
	had = hold(&more, 16 * MIB);
	ok(had && is_whole(&more) && all_whole(h, n), "the next attempt moves the blocks: %s",
	   yoke_error());
	drop(&more);
	drop_all(h, n);
	static const char *const kinds[] = { "put", "event" }; // immediately, and late
	for (int i = 0; i < 2; i++) {
		ctl->arm(kinds[i], 1);
		had = hold(&more, 8 * MIB) && is_whole(&more);
		ctl->arm(kinds[i], 0);
		ok(!had && strstr(yoke_error(), "fault."), "a failing large upload: %s",
		   yoke_error());
		yoke_error_clear();
		if (more.t)
			drop(&more);
	}
	ok(hold(&more, 8 * MIB) && is_whole(&more), "the next upload succeeds");
	drop(&more);
	const float one = 1;
	float got = NAN;
	yoke_tensor *x = yoke_from(yoke_f32, 0, NULL, &one);
	ctl->how("enomem");
	ctl->arm("run", 1);
	int err = yoke_read(yoke_exp(x), &got, sizeof got);
	ctl->arm("run", 0);
	ctl->how("error");
	ok(!err && fabsf(got - 2.7182817f) < 1e-6f, "a launch without memory is retried: %g %s",
	   (double)got, yoke_error());
	yoke_error_clear();
}

// Large values are uploaded through a small pinned buffer, and arrive complete.
static void staging(void)
{
	struct held h = { 0 };
	struct yk_pool_stats pinned;
	bool good = true;
	for (int i = 0; i < 5; i++) {
		good &= hold(&h, 40 * MIB + 4) && is_whole(&h);
		if (h.t)
			drop(&h);
	}
	yk_pool_stats(device->pinned, &pinned);
	ok(good && pinned.allocated_bytes.peak <= 4 * 32 * MIB,
	   "five times 40 MiB are uploaded through %.0f MiB: %s",
	   (double)pinned.allocated_bytes.peak / MIB, yoke_error());
	yoke_error_clear();
}

// The zeros of a new variable, and a value filled with one number.
static void fills(void)
{
	const int64_t words = 3 * MIB + 5;
	int32_t *got = malloc((size_t)words * 4);
	int64_t wrong = 0;
	for (int k = 0; k < 2; k++) {
		yoke_tensor *t = k ? yoke_keep(yoke_full(yoke_i32, 1, &words, -77)) :
				     yoke_variable("zeros", yoke_i32, 1, &words);
		memset(got, 0x55, (size_t)words * 4);
		wrong += yoke_read(t, got, (size_t)words * 4) < 0;
		for (int64_t i = 0; i < words; i++)
			wrong += got[i] != (k ? -77 : 0);
		yoke_free(t);
	}
	ok(!wrong, "a variable of zeros, a value of one number: %lld wrong, %s", (long long)wrong,
	   yoke_error());
	yoke_error_clear();
	free(got);
}

static int child(const char *backend)
{
	tap_seed();
	yoke_context *ctx = yoke_context_new(NULL);
	if (!ctx) {
		skip(backend, yoke_error());
		return done();
	}
	yoke_use(ctx);
	device = yk_device_choose(NULL);
	ctl = strcmp(backend, "fault") ? NULL : device->ops->ext("fault");
	fills();
	pieces();
	variables();
	segments();
	staging();
	launches();
	overlap();
	traffic();
	if (ctl)
		faults();
	yoke_use(NULL);
	yoke_context_free(ctx);
	return done();
}

static void mode(const char *self, const char *settings, const char *what)
{
	char command[2048];
	snprintf(command, sizeof command, "YOKE_MEMORY=96M YOKE_BACKEND=%s %s '%s' %s 2>&1", what,
		 settings, self, what);
	ok(tap_run(command), "%s %s", what, settings);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return child(argv[1]);
	const char *opencl = getenv("YOKE_TEST_OPENCL");
	tap_plugin_path();
	mode(argv[0], "", "cpu");
	mode(argv[0], "", "fault");
	mode(argv[0], "YOKE_FAULT_HOST=0 YOKE_FAULT_LAG=3", "fault");
	mode(argv[0], "YOKE_FAULT_UNIFIED=1", "fault");
	mode(argv[0], "YOKE_FAULT_LACKS=event_after YOKE_FAULT_LAG=3", "fault");
	mode(argv[0], "YOKE_FAULT_LACKS=table_fill,table_copy YOKE_FAULT_HOST=0", "fault");
	mode(argv[0], "YOKE_EAGER=1", "cpu");
	if (opencl)
		mode(argv[0], "", "opencl");
	else
		skip("opencl", "it is not built");
	setenv("YOKE_BACKEND", "fault", 1);
	setenv("YOKE_FAULT_MAX_SEGMENT", "1048576", 1);
	const int64_t words = MIB;
	yoke_tensor *t = yoke_variable("large", yoke_f32, 1, &words);
	ok(t && !yoke_error_code(), "a value larger than any segment stays in host memory: %s",
	   yoke_error());
	yoke_error_clear();
	return done();
}
