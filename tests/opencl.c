// SPDX-License-Identifier: Apache-2.0
// Tests the OpenCL backend through its function table: segments, transfers, queues, events.
#include "config.h"

#include <sys/wait.h>
#include <unistd.h>

#include "opencl_host.h"

static void *queue;

static void finish(void)
{
	void *e;
	must(cl->event_mark(queue, &e), "event_mark");
	must(cl->event_wait(e), "event_wait");
	cl->event_free(e);
}

// ---- memory ----

static void fill_random(unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)rnd();
}

static void test_transfers(int kind)
{
	enum { N = 10007 };
	static unsigned char want[N], got[N], part[N];
	const char *what = kind == YOKE_SEGMENT_HOST ? "host" : "device";
	void *s, *other;
	bool same = true;

	must(cl->segment_new(device, kind, N, &s), "segment_new");
	must(cl->segment_new(device, YOKE_SEGMENT_DEVICE, N, &other), "segment_new");
	ok(!cl->segment_host(s) == (kind == YOKE_SEGMENT_DEVICE), "%s segment: address",
	   what);
	fill_random(want, N);
	must(cl->put(queue, s, 0, want, N), "put");
	for (int i = 0; i < 50; i++) {
		uint64_t at = (uint64_t)rnd_int(0, N - 1),
			 n = (uint64_t)rnd_int(0, N - (int64_t)at);
		finish(); // part is reused
		fill_random(part, n);
		memcpy(want + at, part, n);
		must(cl->put(queue, s, at, part, n), "put");
	}
	finish(); // part is reused
	for (uint32_t p = 1; p <= 8; p *= 2) {
		uint64_t at = (uint64_t)rnd_int(0, 100) * 8,
			 n = (uint64_t)rnd_int(1, 1000) * 8;
		fill_random(part, p);
		must(cl->fill(queue, s, at, n, part, p), "fill");
		finish();
		for (uint64_t i = 0; i < n; i++)
			want[at + i] = part[i % p];
	}
	must(cl->copy(queue, other, 5, s, 3, N - 5), "copy");
	must(cl->copy(queue, s, 0, other, 5, 100), "copy back");
	memmove(want, want + 3, 100);
	must(cl->get(queue, s, 0, got, N), "get");
	finish();
	ok(!memcmp(got, want, N), "%s segment: put, fill, copy, get", what);
	must(cl->get(queue, other, 105, got, N - 105), "get");
	finish();
	for (size_t i = 105; i < N; i++)
		same = same && got[i - 105] == want[i - 2];
	ok(same, "%s segment: copied to another segment", what);
	ok(cl->put(queue, s, N - 3, part, 4) == YOKE_ERANGE, "put beyond the end: %s",
	   last_error);
	ok(cl->get(queue, s, UINT64_MAX, part, 2) == YOKE_ERANGE,
	   "get with a sum that overflows");
	ok(cl->fill(queue, s, 2, 4, part, 4) == YOKE_EINVAL, "fill at an unaligned offset");
	cl->segment_free(device, s);
	cl->segment_free(device, other);
}

// Host memory is used in place, is not written, and remains after the segment is freed.
static void test_wrap(const struct yoke_device_info *info)
{
	enum { N = 70001 };
	unsigned char *memory, got[500];
	void *s, *other;
	bool same = true;

	if (posix_memalign((void **)&memory, info->align > 4096 ? info->align : 4096, N))
		exit(99);
	for (int i = 0; i < N; i++)
		memory[i] = (unsigned char)(i * 31 >> 3);
	int err = cl->segment_wrap(device, memory, N, &s);
	if (!(info->flags & YOKE_DEVICE_UNIFIED)) {
		ok(err == YOKE_EUNSUPPORTED, "an allocated segment wraps nothing");
		free(memory);
		return;
	}
	must(err, "segment_wrap");
	must(cl->segment_new(device, YOKE_SEGMENT_DEVICE, N, &other), "segment_new");
	for (int at = 0; at + (int)sizeof got <= N; at += 6007) {
		memset(got, 0xff, sizeof got);
		must(cl->copy(queue, other, 7, s, (uint64_t)at, sizeof got), "copy");
		must(cl->get(queue, other, 7, got, sizeof got), "get");
		finish();
		same = same && !memcmp(got, memory + at, sizeof got);
		memset(got, 0xff, sizeof got);
		must(cl->get(queue, s, (uint64_t)at, got, sizeof got), "get");
		finish();
		same = same && !memcmp(got, memory + at, sizeof got);
	}
	ok(same, "wrapped memory is read");
	cl->segment_free(device, s);
	for (int i = 0; i < N; i++)
		same = same && memory[i] == (unsigned char)(i * 31 >> 3);
	ok(same, "and not written");
	ok(info->align == 1 || cl->segment_wrap(device, memory + 1, N - 1, &s) == YOKE_EUNSUPPORTED,
	   "wrapping NULL is refused");
	ok(cl->segment_wrap(device, memory, info->max_segment + 1, &s) == YOKE_EUNSUPPORTED,
	   "and more than a buffer may have");
	cl->segment_free(device, other);
	free(memory);
}

static void test_errors(const struct yoke_device_info *info)
{
	void *s;
	int err = cl->segment_new(device, YOKE_SEGMENT_DEVICE, (uint64_t)1 << 60, &s);

	ok(err == YOKE_ENOMEM && strstr(last_error, "CL_") &&
		   strstr(last_error, info->name),
	   "a segment too large: %s", last_error);
	ok(cl->segment_new(device, YOKE_SEGMENT_DEVICE, 0, &s) == YOKE_EINVAL,
	   "a segment of size 0");
	ok(cl->segment_new(1000, YOKE_SEGMENT_DEVICE, 8, &s) == YOKE_ENODEV,
	   "an unknown device");
}

static void test_fork(void)
{
	int status = -1;
	pid_t child = fork();

	if (!child) {
		void *q;
		_exit(cl->queue_new(device, YOKE_QUEUE_COMPUTE, &q) == YOKE_EFORK ? 0 :
										    1);
	}
	waitpid(child, &status, 0);
	ok(WIFEXITED(status) && !WEXITSTATUS(status), "a forked child gets EFORK");
}

// ---- events ----

// Two queues pass a value back and forth, each after the other's event.
static void test_events(void)
{
	enum { N = 4099, ROUNDS = 40 };
	static uint32_t got[N];
	void *q[2], *s[2], *e;
	uint32_t bad = 0, pattern;

	for (int i = 0; i < 2; i++) {
		must(cl->queue_new(device, i ? YOKE_QUEUE_DOWN : YOKE_QUEUE_COMPUTE,
				   &q[i]),
		     "queue");
		must(cl->segment_new(device, YOKE_SEGMENT_DEVICE, sizeof got, &s[i]),
		     "segment");
	}
	for (pattern = 1; pattern <= ROUNDS; pattern++) {
		int from = pattern & 1, to = !from;
		must(cl->fill(q[from], s[from], 0, sizeof got, &pattern, 4), "fill");
		must(cl->event_mark(q[from], &e), "mark");
		must(cl->event_after(q[to], e), "after");
		cl->event_free(e);
		must(cl->copy(q[to], s[to], 0, s[from], 0, sizeof got), "copy");
		must(cl->get(q[to], s[to], 0, got, sizeof got), "get");
		must(cl->event_mark(q[to], &e), "mark");
		must(cl->event_after(q[from], e), "after");
		int state;
		while ((state = cl->event_done(e)) == 0)
			;
		must(state - 1, "done");
		cl->event_free(e);
		for (int i = 0; i < N; i++)
			bad += got[i] != pattern;
	}
	ok(!bad, "two queues in turn: %u wrong elements", bad);
	ok(cl->event_done(NULL) == 1 && !cl->event_wait(NULL) &&
		   !cl->event_after(q[0], NULL),
	   "NULL counts as a completed event");
	must(cl->event_mark(q[0], &e), "mark");
	cl->queue_free(q[0]);
	ok(!cl->event_wait(e), "an event outlives its queue");
	uint64_t ns;
	ok(cl->event_elapsed(e, e, &ns) == YOKE_EUNSUPPORTED, "without timing: %s", last_error);
	cl->event_free(e);
	cl->queue_free(q[1]);
	cl->segment_free(device, s[0]);
	cl->segment_free(device, s[1]);
}

// Two devices share only the host; work on one still waits for the other.
static void test_two(uint32_t other)
{
	enum { N = 1 << 20 };
	static uint32_t got[N];
	void *q[2], *s[2], *e;
	const uint32_t id[2] = { device, other };
	uint32_t bad = 0, pattern;

	for (int i = 0; i < 2; i++) {
		must(cl->queue_new(id[i], YOKE_QUEUE_COMPUTE, &q[i]), "queue");
		must(cl->segment_new(id[i], YOKE_SEGMENT_DEVICE, sizeof got, &s[i]), "segment");
	}
	for (pattern = 1; pattern <= 20; pattern++) {
		int from = pattern & 1, to = !from;
		memset(got, 0xff, sizeof got);
		must(cl->fill(q[from], s[from], 0, sizeof got, &pattern, 4), "fill");
		must(cl->get(q[from], s[from], 0, got, sizeof got), "get");
		must(cl->event_mark(q[from], &e), "mark");
		must(cl->event_after(q[to], e), "after");
		cl->event_free(e);
		must(cl->put(q[to], s[to], 0, got, sizeof got), "put");
		must(cl->event_mark(q[to], &e), "mark");
		must(cl->event_wait(e), "wait");
		cl->event_free(e);
		for (int i = 0; i < N; i++)
			bad += got[i] != pattern;
		must(cl->get(q[to], s[to], 0, got, sizeof got), "get back");
		must(cl->event_mark(q[to], &e), "mark");
		must(cl->event_wait(e), "wait");
		cl->event_free(e);
		for (int i = 0; i < N; i++)
			bad += got[i] != pattern;
	}
	ok(!bad, "devices %u and %u in turn: %u wrong elements", device, other, bad);
	int err = cl->copy(q[0], s[0], 0, s[1], 0, 4);
	ok(err == YOKE_EUNSUPPORTED && strstr(last_error, "opencl:0") &&
		   strstr(last_error, "opencl:1"),
	   "there is no direct copy between them: %s", last_error);
	for (int i = 0; i < 2; i++) {
		cl->segment_free(id[i], s[i]);
		cl->queue_free(q[i]);
	}
}

static void test_elapsed(void)
{
	void *q, *s, *a, *b;
	uint64_t ns = UINT64_MAX;
	uint32_t zero = 0;

	profile = "1";
	must(cl->queue_new(device, YOKE_QUEUE_COMPUTE, &q), "queue");
	profile = "0";
	must(cl->segment_new(device, YOKE_SEGMENT_DEVICE, 1 << 24, &s), "segment");
	must(cl->event_mark(q, &a), "mark");
	must(cl->fill(q, s, 0, 1 << 24, &zero, 4), "fill");
	must(cl->event_mark(q, &b), "mark");
	int err = cl->event_elapsed(a, b, &ns);
	ok(!err && ns > 0 && ns < 60000000000u, "elapsed: %llu ns",
	   (unsigned long long)ns);
	cl->event_free(a);
	cl->event_free(b);
	cl->queue_free(q);
	cl->segment_free(device, s);
}

// x squared, between buffers that are created and freed; returns the number of wrong elements. key:
// another one means another kernel.
static unsigned squares(uint16_t key)
{
	enum { N = 1031 };
	static float x[N], y[N];
	const int64_t dims[1] = { N };
	const struct yoke_map square = { .size = sizeof square,
					 .ninsn = 2,
					 .nin = 1,
					 .nout = 1,
					 .out = { 1 },
					 .insn = { { YOKE_MAP_INPUT, yoke_f32, 0, 0, 0, 0 },
						   { YOKE_MAP_SQUARE, yoke_f32, 0, 0, key, 0 } } };
	const uint64_t at = 4 * (uint64_t)rnd_int(0, 1), bytes = sizeof x + 8;
	void *from, *to;
	unsigned bad = 0;

	must(cl->segment_new(device, YOKE_SEGMENT_DEVICE, bytes, &from), "segment_new");
	must(cl->segment_new(device, YOKE_SEGMENT_DEVICE, bytes, &to), "segment_new");
	for (int twice = 0; twice < 2; twice++) {
		struct yoke_view out = dense_view(to, 8 - at, yoke_f32, 1, dims),
				 in = dense_view(from, at, yoke_f32, 1, dims);
		struct yoke_op op = { .size = sizeof op, .code = YOKE_OP_MAP, .rank = 1,
				      .nout = 1, .nin = 1, .dims = { N }, .out = &out,
				      .in = &in, .map = &square };
		for (int i = 0; i < N; i++)
			x[i] = (float)rnd_int(-2000, 2000);
		memset(y, 0xff, sizeof y);
		must(cl->put(queue, from, at, x, sizeof x), "put");
		must(cl->put(queue, to, 8 - at, y, sizeof y), "put");
		must(run_op(queue, &op, 0), "run");
		must(cl->get(queue, to, 8 - at, y, sizeof y), "get");
		finish();
		for (int i = 0; i < N; i++)
			bad += !(y[i] == x[i] * x[i]);
	}
	cl->segment_free(device, from);
	cl->segment_free(device, to);
	return bad;
}

// One kernel alternates between buffers, some of which reuse a freed handle: only changed arguments
// are set, and these always.
static void test_arguments(void)
{
	unsigned bad = 0;
	for (int round = 0; round < 60; round++)
		bad += squares(0);
	ok(!bad, "a kernel over buffers that are created and freed: %u wrong elements", bad);
}

// Another copy of the module has no kernels yet: it finds the binaries of the first.
static bool load_copy(const char *copy)
{
	static char buffer[1 << 16];
	FILE *from = fopen(getenv("YOKE_TEST_OPENCL"), "rb"), *to = fopen(copy, "wb");
	uint32_t n;
	size_t bytes;

	if (!from || !to)
		return false;
	while ((bytes = fread(buffer, 1, sizeof buffer, from)))
		fwrite(buffer, 1, bytes, to);
	fclose(from);
	if (fclose(to))
		return false;
	cl->queue_free(queue);
	const char *why = test_load(copy, &n);
	remove(copy);
	if (!ok(!why, "another copy of the module starts %s", why ? why : ""))
		return false;
	must(cl->queue_new(device, YOKE_QUEUE_COMPUTE, &queue), "queue_new");
	return true;
}

static void test_binaries(void)
{
	keeps = "1";
	spoilt = true;
	if (!load_copy("./yoke_opencl_one.so"))
		return;
	ok(!squares(1), "an invalid binary is a miss");
	spoilt = false;
	if (!load_copy("./yoke_opencl_two.so"))
		return;
	cache_hits = 0;
	bool good = !squares(1);
	ok(good && (cache_hits == 1 || !nbinaries), "a cached binary is used (%u of %u)",
	   cache_hits, nbinaries);
}

// Consecutive marks without work between them share an event; each is waited for and freed
// separately.
static void test_marks(void)
{
	enum { N = 1 << 20 };
	static uint32_t got[N];
	const uint32_t pattern = 0x1234567;
	void *e[3], *s;
	unsigned bad = 0;

	must(cl->segment_new(device, YOKE_SEGMENT_DEVICE, sizeof got, &s), "segment_new");
	must(cl->event_mark(queue, &e[0]), "mark");
	must(cl->fill(queue, s, 0, sizeof got, &pattern, sizeof pattern), "fill");
	must(cl->get(queue, s, 0, got, sizeof got), "get");
	must(cl->event_mark(queue, &e[1]), "mark");
	must(cl->event_mark(queue, &e[2]), "mark");
	cl->event_free(e[1]);
	must(cl->event_wait(e[2]), "wait");
	for (int i = 0; i < N; i++)
		bad += got[i] != pattern;
	ok(!bad, "the second of two marks is after the work, too: %u wrong", bad);
	ok(cl->event_done(e[0]) == 1 && cl->event_done(e[2]) == 1, "all events are complete");
	cl->event_free(e[0]);
	cl->event_free(e[2]);
	cl->segment_free(device, s);
}

// An application's text is compiled once, identified by its contents, and refused with a message.
static void test_source(void)
{
	static const char good[] = "__kernel void add(__global uchar *y, ulong y0, long by)"
				   "{ ((__global int *)(y + y0))[get_global_id(0)] += (int)by; }",
			  other[] = "__kernel void add(__global uchar *y, ulong y0, long by)"
				    "{ ((__global int *)(y + y0))[get_global_id(0)] -= (int)by; }";
	static const struct {
		const char *text, *entry, *says;
		uint64_t local;
	} bad[] = {
		{ "__kernel void add() { nonsense = 3; }", "add", "nonsense", 0 },
		{ good, "sum", "sum", 0 },
		{ "#include \"none.cl\"\n", "add", "could not generate", 0 },
		{ "__kernel void add(__global uchar *y, ulong y0) {}", "add", "2 parameters", 0 },
		{ "__kernel void add(__global uchar *y, ulong y0, int by) {}", "add", "parameter 2",
		  0 },
		{ good, "add", "no implementation", 3 },
	};
	const int64_t n = 8;
	int32_t got[8] = { 0 };
	void *s;
	must(cl->segment_new(device, YOKE_SEGMENT_DEVICE, sizeof got, &s), "segment_new");
	must(cl->put(queue, s, 0, got, sizeof got), "put");
	struct yoke_view y = dense_view(s, 0, yoke_i32, 1, &n);
	struct yoke_source source = { .size = sizeof source,
				      .dialect = YOKE_DIALECT_OPENCL,
				      .entry = "add",
				      .hash = 1,
				      .global = { 8, 1, 1 } };
	struct yoke_op op = { .size = sizeof op,
			      .code = YOKE_OP_SOURCE,
			      .nout = 1,
			      .out = &y,
			      .nattr = 1,
			      .source = &source };
	const unsigned before = compiled;
	for (int i = 0; i < 6; i++) { // all with the same hash
		char copy[sizeof good];
		memcpy(copy, i % 3 ? good : other, sizeof good);
		source.text = copy;
		op.attr[0].i = 10 + i;
		must(run_op(queue, &op, 0), "run");
	}
	source.text = good;
	must(cl->get(queue, s, 0, got, sizeof got), "get");
	must(run_op(queue, &op, 0), "run");
	ok(got[0] == -10 + 11 + 12 - 13 + 14 + 15 && got[7] == got[0],
	   "two texts in turn: %d wrong", got[7]);
	ok(compiled == before + 2, "each text is compiled once: %u", compiled - before);
	source.text = "#include \"half.cl\"\nKERNEL void add(GLOBAL uchar *y, ulong y0, long by)"
		      "{ ((GLOBAL int *)(y + y0))[GLOBAL_ID(0)] = (int)f32_of_bf16((ushort)by); }";
	op.attr[0].i = 0x4228; // 42
	must(run_op(queue, &op, 0), "run");
	must(cl->get(queue, s, 0, got, sizeof got), "get");
	op.attr[0].i = 0;
	must(run_op(queue, &op, 0), "run");
	ok(got[0] == 42 && got[7] == 42, "a text that includes one of yoke's: %d", got[0]);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		source.text = bad[i].text;
		source.entry = bad[i].entry;
		source.local[0] = source.local[1] = source.local[2] = bad[i].local;
		int err = run_op(queue, &op, 0);
		ok(err == YOKE_EUNSUPPORTED && strstr(last_error, bad[i].says),
		   "invalid text %zu: %s", i, last_error);
	}
	cl->segment_free(device, s);
}

static void test_refusals(void)
{
	struct yoke_op op = { .size = sizeof op, .code = YOKE_OP_LIMIT - 1 };

	ok(!cl->can(device, &op) && run_op(queue, &op, 0) == YOKE_EUNSUPPORTED,
	   "an unknown op is refused");
}

int main(void)
{
	struct yoke_device_info info = { .size = sizeof info };
	uint32_t n;
	const char *why = test_load(getenv("YOKE_TEST_OPENCL"), &n);

	if (why)
		return skip_all(why);
	tap_seed();
	ok(!cl->device_info(device, &info) && *info.name, "device: %s, %s, %s", info.name,
	   info.vendor, info.driver);
	ok(info.align >= 1 && !(info.align & (info.align - 1)) && info.align <= 65536 &&
	   info.max_segment && info.max_segment <= info.memory,
	   "align %u, memory %llu, largest segment %llu", info.align,
	   (unsigned long long)info.memory, (unsigned long long)info.max_segment);
	ok(cl->device_info(n, &info) == YOKE_ENODEV, "device %u does not exist: %s", n, last_error);
	must(cl->device_info(device, &info), "device_info");
	must(cl->queue_new(device, YOKE_QUEUE_COMPUTE, &queue), "queue_new");
	test_transfers(YOKE_SEGMENT_DEVICE);
	test_transfers(YOKE_SEGMENT_HOST);
	test_wrap(&info);
	test_errors(&info);
	test_events();
	test_arguments();
	test_marks();
	if (n > 1)
		test_two(!device);
	test_elapsed();
	test_refusals();
	test_source();
	test_fork();
	test_binaries();
	cl->queue_free(queue);
	test_forget();
	return done();
}
