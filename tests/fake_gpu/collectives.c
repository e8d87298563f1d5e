// SPDX-License-Identifier: Apache-2.0
// Fake NCCL and, compiled with FAKE_HIP, RCCL. Ranks are threads or processes, which exchange
// data through a file that all of them map. Communicators are blocking or not, as configured; a
// stream that reaches a collective waits for the other ranks, until it is aborted.
// Sums are in float64 and start at the caller's own rank, so that their rounding differs from
// that of order T.
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "vendor.h"

#define FAKE_OF_COLLECTIVES ~, FAKE_YES
FAKE_CALLS(FAKE_DECLARE)

#define STREAM TWIN(cudaStream_t, hipStream_t)

enum { MAX_RANKS = 16, RING = 1 << 14 };

struct ring { // bytes from one rank to another
	_Alignas(64) uint64_t head, tail;
	char data[RING];
};

struct world { // mapped by all ranks
	int ranks, came, gone;
	int device[MAX_RANKS], process[MAX_RANKS];
	struct ring ring[MAX_RANKS][MAX_RANKS]; // from, to
};

enum what { SEND, RECV, ALL_GATHER, BROADCAST, ALL_REDUCE, REDUCE, REDUCE_SCATTER };

struct task {
	struct task *next;
	ncclComm_t comm;
	STREAM stream;
	enum what what;
	const char *in;
	char *out;
	size_t count;
	int type, op, peer;
};

struct ncclComm {
	struct world *world;
	int rank, ranks;
	bool nonblocking, finalized;
	// number of polls of the operation in progress: the first ones return "in progress"
	int asked;
	ncclResult_t failed;
	int aborted, refs;
	char path[128];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // number of references

int fake_code_of(const char *name)
{
	static const char *const names[] = { "ncclSuccess",         "ncclUnhandledCudaError",
					     "ncclSystemError",     "ncclInternalError",
					     "ncclInvalidArgument", "ncclInvalidUsage",
					     "ncclRemoteError",     "ncclInProgress" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(names[i], name))
			return (int)i;
	return 0; // another library's
}

#define ENTER(call) \
	do { \
		const int fault = fake_fault(#call); \
		if (fault) \
			return fault; \
	} while (0)

static size_t size_of(int type)
{
	switch (type) {
	case ncclInt8:
	case ncclUint8: return 1;
	case ncclFloat16:
	case ncclBfloat16: return 2;
	case ncclInt32:
	case ncclFloat32: return 4;
	default: return 8;
	}
}

static void *of_driver(const char *name)
{
	void *driver = dlopen(TWIN("libcuda.so.1", "libamdhip64.so.6"), RTLD_NOW | RTLD_NOLOAD);
	void *symbol = driver ? dlsym(driver, name) : NULL;

	if (driver)
		dlclose(driver);
	return symbol;
}

static void comm_unref(ncclComm_t c)
{
	pthread_mutex_lock(&lock);
	const int left = --c->refs;
	pthread_mutex_unlock(&lock);
	if (left)
		return;
	munmap(c->world, sizeof *c->world);
	unlink(c->path); // if not all ranks came
	free(c);
}

static void comm_ref(ncclComm_t c)
{
	pthread_mutex_lock(&lock);
	c->refs++;
	pthread_mutex_unlock(&lock);
}

static void pause_briefly(void)
{
	const struct timespec t = { 0, 50000 };

	nanosleep(&t, NULL);
}

// ---- bytes between ranks ----

// Returns how many of `left` bytes moved; all ends of a task advance in turn, so that none blocks
// another.
struct end {
	struct ring *ring;
	char *at;
	size_t left;
	bool sends;
};

static bool move(struct end *e)
{
	const uint64_t other = __atomic_load_n(e->sends ? &e->ring->tail : &e->ring->head,
					       __ATOMIC_ACQUIRE),
		       own = e->sends ? e->ring->head : e->ring->tail;
	size_t n = e->sends ? RING - (size_t)(own - other) : (size_t)(other - own);
	const size_t at = own % RING;

	n = n < e->left ? n : e->left;
	n = n < RING - at ? n : RING - at;
	if (e->sends)
		memcpy(e->ring->data + at, e->at, n);
	else
		memcpy(e->at, e->ring->data + at, n);
	__atomic_store_n(e->sends ? &e->ring->head : &e->ring->tail, own + n, __ATOMIC_RELEASE);
	e->at += n;
	e->left -= n;
	return n;
}

// False: aborted.
static bool move_all(ncclComm_t c, struct end *e, size_t n)
{
	size_t open = n;

	while (open) {
		bool any = false;
		open = 0;
		for (size_t i = 0; i < n; i++) {
			bool held = false; // an element reduced before, of the same ring
			for (size_t k = 0; k < i; k++)
				held |= e[k].left && e[k].ring == e[i].ring &&
					e[k].sends == e[i].sends;
			if (e[i].left && !held)
				any |= move(&e[i]);
			open += e[i].left != 0;
		}
		if (__atomic_load_n(&c->aborted, __ATOMIC_ACQUIRE))
			return false;
		if (!any && open)
			pause_briefly();
	}
	return true;
}

// ---- numbers ----

static double half_of(uint16_t h)
{
	const int e = h >> 10 & 31, m = h & 1023;
	const double x = e == 31 ? (m ? NAN : INFINITY) :
			 e       ? ldexp(1024 + m, e - 25) :
				   ldexp(m, -24);

	return h >> 15 ? -x : x;
}

static uint16_t to_half(double x)
{
	const uint16_t sign = signbit(x) ? 0x8000 : 0;
	int e;

	if (isnan(x))
		return 0x7e00;
	x = fabs(x);
	if (x >= 65520)
		return sign | 0x7c00;
	if (!(x > 0)) // which has no exponent
		return sign;
	frexp(x, &e);
	e = e < -13 ? -13 : e;
	const double m = nearbyint(ldexp(x, 11 - e)); // of 11 bits
	return (uint16_t)(sign + (uint16_t)(m + (e + 13) * 1024));
}

static double load(const char *at, int type)
{
	float f;
	double d;
	int32_t i;
	uint16_t h;
	uint32_t u;

	switch (type) {
	case ncclInt8: return *(const signed char *)at;
	case ncclUint8: return *(const unsigned char *)at;
	case ncclInt32: return memcpy(&i, at, 4), i;
	case ncclFloat16: return memcpy(&h, at, 2), half_of(h);
	case ncclBfloat16:
		return memcpy(&h, at, 2), u = (uint32_t)h << 16, memcpy(&f, &u, 4), (double)f;
	case ncclFloat32: return memcpy(&f, at, 4), (double)f;
	default: return memcpy(&d, at, 8), d;
	}
}

static void store(char *at, int type, double x)
{
	float f = (float)x;
	int64_t l = (int64_t)x;
	uint16_t h;
	uint32_t u;

	switch (type) {
	case ncclInt8:
	case ncclUint8: *at = (char)l; return;
	case ncclInt32: memcpy(at, &(int32_t){ (int32_t)l }, 4); return;
	case ncclFloat16: memcpy(at, &(uint16_t){ to_half(x) }, 2); return;
	case ncclBfloat16:
		memcpy(&u, &f, 4);
		h = (uint16_t)(isnan(f) ? 0x7fc0 : (u + 0x7fff + (u >> 16 & 1)) >> 16);
		memcpy(at, &h, 2);
		return;
	case ncclFloat32: memcpy(at, &f, 4); return;
	default: memcpy(at, &x, 8);
	}
}

static double join(double a, double b, int op)
{
	if (op == ncclSum)
		return a + b;
	return isnan(a) || isnan(b) ? NAN : op == ncclMax ? fmax(a, b) : fmin(a, b);
}

static void join_all(char *to, const char *const *term, int n, int type, int op)
{
	double x = load(term[0], type);

	for (int k = 1; k < n; k++)
		x = join(x, load(term[k], type), op);
	store(to, type, x);
}

// Values that are not float64.
static void join_long(char *to, const char *const *term, int n, int op)
{
	int64_t x = 0, y;

	for (int k = 0; k < n; k++) {
		memcpy(&y, term[k], 8);
		x = !k ? y : op == ncclSum ? (int64_t)((uint64_t)x + (uint64_t)y) :
			     (op == ncclMax) == (x > y) ? x : y;
	}
	memcpy(to, &x, 8);
}

// ---- what a stream comes to ----

struct group { // tasks that form one operation
	struct task *first;
	size_t n;
};

struct ends {
	struct end e[4096];
	size_t n;
};

static void to_ring(struct ends *to, const struct task *t, int peer, const void *at, size_t bytes,
		    bool sends)
{
	const ncclComm_t c = t->comm;

	if (bytes && to->n < sizeof to->e / sizeof *to->e)
		to->e[to->n++] = (struct end){ sends ? &c->world->ring[c->rank][peer] :
						       &c->world->ring[peer][c->rank],
					       (char *)(uintptr_t)at, bytes, sends };
}

// Its sends and receives; the reduced values go to `room` first.
static void ends_of(struct ends *to, const struct task *t, char *room)
{
	const ncclComm_t c = t->comm;
	const size_t bytes = t->count * size_of(t->type);

	if (t->what == SEND || t->what == RECV) {
		to_ring(to, t, t->peer, t->what == SEND ? t->in : t->out, bytes, t->what == SEND);
		return;
	}
	for (int i = 0; i < c->ranks; i++) {
		const bool gives = i != c->rank &&
				   (t->what == BROADCAST ? c->rank == t->peer :
							   t->what != REDUCE || i == t->peer),
			   gets = i != c->rank &&
				  (t->what == BROADCAST ? i == t->peer :
							  t->what != REDUCE || c->rank == t->peer);
		if (gives)
			to_ring(to, t, i,
				t->in + (t->what == REDUCE_SCATTER ? (size_t)i * bytes : 0), bytes,
				true);
		if (gets)
			to_ring(to, t, i,
				t->what == ALL_GATHER ? t->out + (size_t)i * bytes :
				t->what == BROADCAST  ? t->out :
							room + (size_t)i * bytes,
				bytes, false);
	}
}

static void finish(const struct task *t, const char *room)
{
	const ncclComm_t c = t->comm;
	const size_t size = size_of(t->type), bytes = t->count * size;
	const char *own = t->in;

	if (t->what == ALL_GATHER && t->out + (size_t)c->rank * bytes != own)
		memmove(t->out + (size_t)c->rank * bytes, own, bytes);
	if (t->what == BROADCAST && c->rank == t->peer && t->out != own)
		memmove(t->out, own, bytes);
	if (t->what < ALL_REDUCE || (t->what == REDUCE && c->rank != t->peer))
		return;
	if (t->what == REDUCE_SCATTER)
		own += (size_t)c->rank * bytes;
	for (size_t i = 0; i < t->count; i++) {
		// the same on all ranks, but not starting at 0
		const int first = t->what == ALL_REDUCE ? 1 : c->rank;
		const char *term[MAX_RANKS];
		for (int k = 0; k < c->ranks; k++) {
			const int r = (first + k) % c->ranks;
			term[k] = (r == c->rank ? own : room + (size_t)r * bytes) + i * size;
		}
		if (t->type == ncclInt64)
			join_long(t->out + i * size, term, c->ranks, t->op);
		else
			join_all(t->out + i * size, term, c->ranks, t->type, t->op);
	}
}

static void run(void *arg)
{
	struct group *g = arg;
	struct ends *all = calloc(1, sizeof *all);
	char **room = calloc(g->n, sizeof *room);
	size_t k = 0;

	for (struct task *t = g->first; t; t = t->next, k++) {
		room[k] = t->what < ALL_REDUCE ?
				  NULL :
				  malloc(t->count * size_of(t->type) * (size_t)t->comm->ranks + 1);
		ends_of(all, t, room[k]);
	}
	const bool whole = move_all(g->first->comm, all->e, all->n);
	k = 0;
	for (struct task *t = g->first; t; k++) {
		struct task *next = t->next;
		if (whole)
			finish(t, room[k]);
		comm_unref(t->comm);
		free(room[k]);
		free(t);
		t = next;
	}
	g->first = NULL;
	free(room);
	free(all);
}

// ---- groups of calls ----

static _Thread_local int depth;
static _Thread_local struct task *pending, **pending_end;
static _Thread_local size_t npending;

static ncclResult_t launch(void)
{
	int (*enqueue)(void *, void (*)(void *), void *);
	struct group *g = calloc(1, sizeof *g);

	*(void **)&enqueue = of_driver("fake_enqueue");
	if (!npending || !g || !enqueue) {
		free(g);
		return npending ? ncclUnhandledCudaError : 0;
	}
	const ncclComm_t c = pending->comm;
	*g = (struct group){ pending, npending };
	void *stream = pending->stream;
	pending = NULL;
	npending = 0;
	c->asked = 0;
	if (enqueue(stream, run, g))
		return ncclUnhandledCudaError;
	return c->nonblocking ? ncclInProgress : 0;
}

static void drop(void)
{
	while (pending) {
		struct task *next = pending->next;
		comm_unref(pending->comm);
		free(pending);
		pending = next;
	}
	npending = 0;
}

ncclResult_t ncclGroupStart(void)
{
	ENTER(ncclGroupStart);
	depth++;
	return 0;
}

ncclResult_t ncclGroupEnd(void)
{
	const int fault = fake_fault("ncclGroupEnd");

	depth--;
	if (fault) {
		drop();
		return fault;
	}
	return depth ? 0 : launch();
}

static ncclResult_t add(ncclComm_t c, STREAM stream, enum what what, const void *in, void *out,
			size_t count, int type, int op, int peer)
{
	bool (*within)(const void *, size_t);
	struct task *t = calloc(1, sizeof *t);
	const size_t bytes = count * size_of(type), ranks = (size_t)c->ranks;

	*(void **)&within = of_driver("fake_within");
	const bool good = within &&
			  (!in || within(in, bytes * (what == REDUCE_SCATTER ? ranks : 1))) &&
			  (!out || within(out, bytes * (what == ALL_GATHER ? ranks : 1))) &&
			  peer >= 0 && peer < c->ranks && (what > RECV || peer != c->rank);
	if (!t || !good) {
		free(t);
		return ncclInvalidArgument;
	}
	*t = (struct task){ NULL, c, stream, what, in, out, count, type, op, peer };
	comm_ref(c);
	if (!pending)
		pending_end = &pending;
	*pending_end = t;
	pending_end = &t->next;
	npending++;
	return depth ? 0 : launch();
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer,
		      ncclComm_t comm, STREAM stream)
{
	ENTER(ncclSend);
	return add(comm, stream, SEND, from, NULL, count, type, 0, peer);
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
		      STREAM stream)
{
	ENTER(ncclRecv);
	return add(comm, stream, RECV, NULL, to, count, type, 0, peer);
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
			   ncclComm_t comm, STREAM stream)
{
	ENTER(ncclAllGather);
	return add(comm, stream, ALL_GATHER, from, to, count, type, 0, 0);
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
			   ncclComm_t comm, STREAM stream)
{
	ENTER(ncclBroadcast);
	return add(comm, stream, BROADCAST, from, to, count, type, 0, root);
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
			   ncclRedOp_t op, ncclComm_t comm, STREAM stream)
{
	ENTER(ncclAllReduce);
	return add(comm, stream, ALL_REDUCE, from, to, count, type, op, 0);
}

ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type,
			ncclRedOp_t op, int root, ncclComm_t comm, STREAM stream)
{
	ENTER(ncclReduce);
	return add(comm, stream, REDUCE, from, to, count, type, op, root);
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type,
			       ncclRedOp_t op, ncclComm_t comm, STREAM stream)
{
	ENTER(ncclReduceScatter);
	return add(comm, stream, REDUCE_SCATTER, from, to, count, type, op, 0);
}

// ---- communicators ----

ncclResult_t ncclGetVersion(int *version)
{
	ENTER(ncclGetVersion);
	*version = (int)fake_number("NCCL", 22809);
	return 0;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	const char *folder = getenv("TMPDIR");

	ENTER(ncclGetUniqueId);
	snprintf(id->internal, sizeof id->internal, "%.90s/fake_gpu-%d-XXXXXX",
		 folder && *folder ? folder : "/tmp", (int)getpid());
	const int fd = mkstemp(id->internal);
	const bool good = fd >= 0 && ftruncate(fd, (off_t)sizeof(struct world)) == 0;
	if (fd >= 0)
		close(fd);
	return good ? 0 : ncclSystemError;
}

static struct world *map_world(const char *path)
{
	const int fd = open(path, O_RDWR | O_CLOEXEC);
	void *at = fd < 0 ? MAP_FAILED :
			    mmap(NULL, sizeof(struct world), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				 0);

	if (fd >= 0)
		close(fd);
	return at == MAP_FAILED ? NULL : at;
}

static bool all_came(ncclComm_t c)
{
	return __atomic_load_n(&c->world->came, __ATOMIC_ACQUIRE) == c->ranks;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
				    ncclConfig_t *config)
{
	ENTER(ncclCommInitRankConfig);
	if (ranks < 1 || ranks > MAX_RANKS || rank < 0 || rank >= ranks ||
	    config->magic != 0xcafebeef || config->size < sizeof *config)
		return ncclInvalidArgument;
	ncclComm_t c = calloc(1, sizeof *c);
	if (!c || !(c->world = map_world(id.internal))) {
		free(c);
		return ncclSystemError;
	}
	memcpy(c->path, id.internal, sizeof c->path);
	c->rank = rank;
	c->ranks = ranks;
	c->refs = 1;
	c->nonblocking = config->blocking == 0;
	if (__atomic_add_fetch(&c->world->came, 1, __ATOMIC_ACQ_REL) == ranks)
		unlink(id.internal);
	*comm = c;
	while (!c->nonblocking && !all_came(c))
		pause_briefly();
	return c->nonblocking ? ncclInProgress : 0;
}

// An operation in progress reports so a few times.
ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *code)
{
	ENTER(ncclCommGetAsyncError);
	if (!c->failed)
		c->failed = fake_fault("async");
	*code = c->failed                      ? c->failed :
		!all_came(c) || c->asked++ < 2 ? ncclInProgress :
						 ncclSuccess;
	if (c->finalized && !c->failed &&
	    __atomic_load_n(&c->world->gone, __ATOMIC_ACQUIRE) < c->ranks)
		*code = ncclInProgress;
	return 0;
}

ncclResult_t ncclCommFinalize(ncclComm_t c)
{
	ENTER(ncclCommFinalize);
	c->finalized = true;
	__atomic_add_fetch(&c->world->gone, 1, __ATOMIC_ACQ_REL);
	return c->nonblocking ? ncclInProgress : 0;
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
	ENTER(ncclCommDestroy);
	comm_unref(c);
	return 0;
}

ncclResult_t ncclCommAbort(ncclComm_t c)
{
	ENTER(ncclCommAbort);
	__atomic_store_n(&c->aborted, 1, __ATOMIC_RELEASE);
	comm_unref(c);
	return 0;
}

const char *ncclGetLastError(ncclComm_t c)
{
	return c && c->failed ? "the fake driver was told to fail" : "";
}
