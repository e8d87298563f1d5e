// SPDX-License-Identifier: Apache-2.0
// The OpenCL backend under its table: segments, transfers, queues, events, contractions,
// binaries.
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
	ok(same, "%s segment: copied to another", what);
	ok(cl->put(queue, s, N - 3, part, 4) == YOKE_ERANGE, "put beyond the end: %s",
	   last_error);
	ok(cl->get(queue, s, UINT64_MAX, part, 2) == YOKE_ERANGE,
	   "get with a sum that overflows");
	ok(cl->fill(queue, s, 2, 4, part, 4) == YOKE_EINVAL, "fill at a crooked offset");
	cl->segment_free(device, s);
	cl->segment_free(device, other);
}

static void test_errors(const struct yoke_device_info *info)
{
	void *s;
	int err = cl->segment_new(device, YOKE_SEGMENT_DEVICE, (uint64_t)1 << 60, &s);

	ok(err == YOKE_ENOMEM && strstr(last_error, "CL_") &&
		   strstr(last_error, info->name),
	   "a segment too large: %s", last_error);
	ok(cl->segment_new(device, YOKE_SEGMENT_DEVICE, 0, &s) == YOKE_EINVAL,
	   "a segment of nothing");
	ok(cl->segment_new(1000, YOKE_SEGMENT_DEVICE, 8, &s) == YOKE_ENODEV,
	   "no such device");
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

// Two queues hand a value back and forth, each behind the other's event.
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
	ok(!bad, "two queues in turn: %u wrong", bad);
	ok(cl->event_done(NULL) == 1 && !cl->event_wait(NULL) &&
		   !cl->event_after(q[0], NULL),
	   "NULL is an event that is done");
	must(cl->event_mark(q[0], &e), "mark");
	cl->queue_free(q[0]);
	ok(!cl->event_wait(e), "an event outlives its queue");
	uint64_t ns;
	ok(cl->event_elapsed(e, e, &ns) == YOKE_EUNSUPPORTED, "no times: %s", last_error);
	cl->event_free(e);
	cl->queue_free(q[1]);
	cl->segment_free(device, s[0]);
	cl->segment_free(device, s[1]);
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

// ---- contractions ----

// A view of random layout over dims: axes in random order in memory, batch axes perhaps
// broadcast.
static struct yoke_view random_view(int rank, const int64_t *dims, bool output,
				    int64_t *elements)
{
	struct yoke_view v = { .kind = YOKE_VIEW_BUFFER,
			       .dtype = yoke_f32,
			       .rank = (uint8_t)rank,
			       .align = 4 };
	int64_t n = 1;
	int order[YOKE_MAX_RANK];

	for (int i = 0; i < rank; i++) {
		int j = (int)rnd_int(0, i);
		order[i] = order[j];
		order[j] = i;
	}
	for (int i = 0; i < rank; i++) {
		int axis = order[i];
		v.dims[axis] = dims[axis];
		if (!output && axis < rank - 2 && rnd_int(0, 2) == 0)
			continue; // stride 0
		v.strides[axis] = n;
		n *= dims[axis] + rnd_int(0, 1);
	}
	v.offset = (uint64_t)rnd_int(0, 5) * 4;
	*elements = n + 8;
	return v;
}

static int64_t at(const struct yoke_view *v, const int64_t *index, int64_t row,
		  int64_t col)
{
	int64_t e = (int64_t)(v->offset / 4) + row * v->strides[v->rank - 2] +
		    col * v->strides[v->rank - 1];
	for (int i = 0; i < v->rank - 2; i++)
		e += index[i] * v->strides[i];
	return e;
}

// |error| <= 2 K 2^-24 sum |a b| is what any order of f32 sums keeps; NaN marks what was
// not written.
static bool compare(const struct yoke_op *op, const float *y, const float *a,
		    const float *b, int64_t m, int64_t n, int64_t k)
{
	const struct yoke_view *vy = op->out, *va = op->in, *vb = op->in + 1;
	int64_t index[YOKE_MAX_RANK] = { 0 };

	for (;;) {
		for (int64_t i = 0; i < m; i++)
			for (int64_t j = 0; j < n; j++) {
				double want = 0, size = 0, got = y[at(vy, index, i, j)];
				for (int64_t l = 0; l < k; l++) {
					double p = (double)a[at(va, index, i, l)] *
						   b[at(vb, index, l, j)];
					want += p;
					size += fabs(p);
				}
				if (!(fabs(got - want) <=
				      2 * (double)(k + 1) * 0x1p-24 * size)) {
					diag("[%d,%d] got %.9g want %.9g", (int)i, (int)j,
					     got, want);
					return false;
				}
			}
		int axis = vy->rank - 3;
		while (axis >= 0 && ++index[axis] == vy->dims[axis])
			index[axis--] = 0;
		if (axis < 0)
			return true;
	}
}

static float *random_floats(int64_t n)
{
	float *p = malloc((size_t)n * sizeof *p);
	for (int64_t i = 0; i < n; i++)
		p[i] = (float)rnd_real(-1, 1);
	return p;
}

static void test_contract(int64_t m, int64_t n, int64_t k, int batch)
{
	int64_t lead[6], dims[3][YOKE_MAX_RANK], elements[3];
	const int64_t last[3][2] = { { m, n }, { m, k }, { k, n } };
	struct yoke_view v[3];
	void *s[3];
	float *host[3];
	char text[128] = "";
	uint64_t work = 1;

	for (int i = 0; i < batch; i++) {
		lead[i] = rnd_int(1, 3);
		snprintf(text + strlen(text), 16, "%d ", (int)lead[i]);
	}
	for (int t = 0; t < 3; t++) {
		memcpy(dims[t], lead, sizeof lead);
		memcpy(dims[t] + batch, last[t], sizeof last[t]);
		v[t] = random_view(batch + 2, dims[t], t == 0, &elements[t]);
		host[t] = random_floats(elements[t]);
		for (int64_t i = 0; t == 0 && i < elements[t]; i++)
			host[t][i] = NAN;
		must(cl->segment_new(device, 0, (uint64_t)elements[t] * 4, &s[t]),
		     "segment");
		must(cl->put(queue, s[t], 0, host[t], (uint64_t)elements[t] * 4), "put");
		v[t].segment = s[t];
	}
	struct yoke_op op = { .size = sizeof op,
			      .code = YOKE_OP_CONTRACT,
			      .nout = 1,
			      .nin = 2,
			      .out = v,
			      .in = v + 1 };
	bool good = cl->can(device, &op) == 1 && !cl->workspace(device, &op, 0, &work) &&
		    !work;
	must(cl->run(queue, &op, 0), "run");
	must(cl->get(queue, s[0], 0, host[0], (uint64_t)elements[0] * 4), "get");
	finish();
	good = good && compare(&op, host[0], host[1], host[2], m, n, k);
	ok(good, "contract %sx %dx%dx%d", text, (int)m, (int)n, (int)k);
	for (int t = 0; t < 3; t++) {
		cl->segment_free(device, s[t]);
		free(host[t]);
	}
}

static void test_contractions(void)
{
	static const int64_t sizes[] = {
		1, 2, 15, 16, 17, 63, 64, 65, 97, 127, 128, 129
	};
	enum { NSIZES = sizeof sizes / sizeof *sizes };
	int rounds = tap_long() ? 300 : 40;

	for (int i = 0; i < rounds; i++)
		test_contract(
			sizes[rnd_int(0, NSIZES - 1)], sizes[rnd_int(0, NSIZES - 1)],
			sizes[rnd_int(0, NSIZES - 1)], (int)(i % 7 < 3 ? i % 7 : 0));
	test_contract(3, 2, 5, 6);
	test_contract(1, 1, 0, 1);
	test_contract(0, 4, 4, 0);
	test_contract(257, 130, 300, 0);
}

static void test_refusals(void)
{
	const int64_t dims[] = { 2, 2 };
	struct yoke_view v[3], twin;
	struct yoke_op op = { .size = sizeof op,
			      .code = YOKE_OP_CONTRACT,
			      .nout = 1,
			      .nin = 2,
			      .out = v,
			      .in = v + 1 };
	struct yoke_map map = { .size = sizeof map };

	for (int i = 0; i < 3; i++)
		v[i] = dense_view(NULL, 0, yoke_f32, 2, dims);
	ok(cl->can(device, &op) == 1, "takes a plain contraction");
	op.map = &map;
	ok(!cl->can(device, &op), "not one with a map behind it");
	op.map = NULL;
	twin = v[1];
	v[1].dtype = yoke_f16;
	ok(!cl->can(device, &op), "nor one of f16");
	v[1] = twin;
	v[2].dims[0] = 3;
	ok(!cl->can(device, &op), "nor one whose shapes do not fit");
	op.code = YOKE_OP_SOFTMAX;
	ok(!cl->can(device, &op) && cl->run(queue, &op, 0) == YOKE_EUNSUPPORTED,
	   "nor a softmax");
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
	ok(cl->device_info(n, &info) == YOKE_ENODEV, "no device %u: %s", n, last_error);
	must(cl->device_info(device, &info), "device_info");
	must(cl->queue_new(device, YOKE_QUEUE_COMPUTE, &queue), "queue_new");
	test_transfers(YOKE_SEGMENT_DEVICE);
	test_transfers(YOKE_SEGMENT_HOST);
	test_errors(&info);
	test_events();
	test_elapsed();
	test_refusals();
	test_contractions();
	ok(nbinaries == 1 || nbinaries == 0, "one program built: %u binaries kept",
	   nbinaries);
	test_fork();
	cl->queue_free(queue);
	test_forget();
	return done();
}
