// SPDX-License-Identifier: Apache-2.0
// Tests the launch layer of GPU backends over a driver defined here (in CUDA C++ dialect), which
// computes nothing but counts calls and fails on demand. Every driver call may fail: the error
// names call, code and device, nothing leaks, and the failure does not persist. Arguments are set
// only when they change; event marks are reused only while they are valid; events outlive their
// queues.
#include "config.h"

#include "../backends/gpu/contract.h"
#include "base/error.h"
#include "device/plugin.h"
#include "tap.h"

// In the order in which everything() creates them; built objects persist from the kernel on.
enum call {
	OPEN,
	QUEUE,
	BUFFER,
	WRAP,
	PUT,
	COPY,
	FINISH,
	FILL,
	BUILD,
	KERNEL,
	ARG,
	LAUNCH,
	FLUSH,
	MARK,
	AFTER,
	STATUS,
	WAIT,
	ELAPSED,
	GET,
	LOAD,
	CALLS
};
static const char *const names[CALLS] = {
	"open",  "queue",  "buffer", "wrap",    "put",    "copy",  "finish",
	"fill",  "build",  "kernel", "arg",     "launch", "flush", "mark",
	"after", "status", "wait",   "elapsed", "get",    "load",
};
enum { LOST = 7, FULL = 9 }; // codes

static int count[CALLS], fails[CALLS]; // fails: the code that the next call returns
static int alive;                      // programs, kernels, buffers, queues, events
static bool right_text = true;
static bool wants; // does the library accept every product?
static char profiled[2] = "0";

static int note(enum call c)
{
	const int code = fails[c];

	count[c]++;
	fails[c] = 0;
	return code;
}

// A call that describes its error itself.
static int said(struct yk_gpu_device *d, enum call c)
{
	return yk_gpu_check(d, names[c], note(c));
}

static int make(struct yk_gpu_device *d, enum call c, void **to)
{
	int err = said(d, c);

	if (err)
		return err;
	*to = calloc(1, 64);
	alive++;
	return 0;
}

static void drop(void *what)
{
	alive--;
	free(what);
}

static const char *code_name(int code)
{
	return code == LOST ? "STUB_LOST" : "STUB_FULL";
}

static bool is_memory(int code)
{
	return code == FULL;
}

static int probe(const char **why)
{
	static struct yk_gpu_device devices[2];

	*why = "never said";
	for (int i = 0; i < 2; i++) {
		struct yk_gpu_device *d = &devices[i];
		d->info = (struct yoke_device_info){ .size = sizeof d->info,
						     .kind = YOKE_DEVICE_GPU,
						     .units = 4,
						     .flags = YOKE_DEVICE_UNIFIED,
						     .memory = 1 << 30,
						     .max_segment = 1 << 28,
						     .align = 64,
						     .max_args = 4096,
						     .name = "a card",
						     .driver = "1.0" };
		d->max_group = d->max_items[0] = d->max_items[1] = 256;
		d->local_bytes = 1 << 16;
		d->vector = 1;
		d->identity = "stub";
		d->options = "-fmad=false";
		d->binaries = i;
		if (yk_gpu_device_add(d))
			return YOKE_ENOMEM;
	}
	return 0;
}

static int open_device(struct yk_gpu_device *d)
{
	return said(d, OPEN);
}

static int build(struct yk_gpu_device *d, const char *text, const char *options, const char *kernel,
		 void **program)
{
	const int code = note(BUILD);

	right_text &= strstr(text, "__global__") && !strstr(text, "#include \"") &&
		      !strncmp(options, "-fmad=false", 11);
	if (code)
		return yk_gpu_build_failed(d, "build", code, kernel, options, "line 1: nonsense");
	*program = strdup("a program");
	alive++;
	return 0;
}

static int load(struct yk_gpu_device *d, const void *binary, size_t bytes, const char *options,
		void **program)
{
	(void)d, (void)binary, (void)bytes, (void)options;
	if (note(LOAD))
		return YOKE_EDEVICE;
	*program = strdup("a program");
	alive++;
	return 0;
}

static void *binary(struct yk_gpu_device *d, void *program, size_t *bytes)
{
	(void)d;
	*bytes = strlen(program);
	return strdup(program);
}

static int kernel_new(struct yk_gpu_device *d, void *program, const char *name, void **kernel)
{
	return program && *name ? make(d, KERNEL, kernel) : YOKE_EINVAL;
}

static size_t kernel_group(struct yk_gpu_device *d, void *kernel)
{
	(void)d, (void)kernel;
	return 128;
}

static uint32_t kernel_params(void *kernel)
{
	(void)kernel;
	return 0;
}

static int arg(void *kernel, uint32_t index, size_t bytes, const void *value)
{
	(void)kernel, (void)index;
	return bytes && value ? note(ARG) : LOST;
}

static int launch(struct yk_gpu_queue *q, void *kernel, uint32_t dims, const size_t *items,
		  const size_t *group)
{
	(void)q, (void)kernel;
	for (uint32_t i = 0; i < dims; i++)
		right_text &= group[i] && items[i] % group[i] == 0;
	return note(LAUNCH);
}

static int buffer_new(struct yk_gpu_device *d, int kind, uint64_t bytes, const void *data,
		      void **buffer, void **host)
{
	int err = make(d, BUFFER, buffer);

	(void)bytes, (void)data; // all have 64 bytes, except those whose bytes are not accessed
	if (!err && kind == YOKE_SEGMENT_HOST)
		*host = *buffer;
	return err;
}

static int buffer_wrap(struct yk_gpu_device *d, void *memory, uint64_t bytes, void **buffer)
{
	(void)memory, (void)bytes;
	return make(d, WRAP, buffer);
}

static void buffer_free(struct yk_gpu_device *d, void *buffer, void *host)
{
	(void)d, (void)host;
	drop(buffer);
}

static int put(struct yk_gpu_queue *q, void *buffer, uint64_t offset, const void *from,
	       uint64_t bytes)
{
	(void)buffer, (void)offset, (void)from, (void)bytes;
	return said(q->device, PUT);
}

static int get(struct yk_gpu_queue *q, void *buffer, uint64_t offset, void *to, uint64_t bytes)
{
	(void)buffer, (void)offset;
	memset(to, 0xff, bytes); // reports: not an error
	return said(q->device, GET);
}

static int copy(struct yk_gpu_queue *q, void *to, uint64_t to_offset, void *from,
		uint64_t from_offset, uint64_t bytes)
{
	(void)to, (void)to_offset, (void)from, (void)from_offset, (void)bytes;
	return said(q->device, COPY);
}

static int fill(struct yk_gpu_queue *q, void *buffer, uint64_t offset, uint64_t bytes,
		const void *pattern, uint32_t pattern_bytes)
{
	(void)buffer, (void)offset, (void)bytes, (void)pattern, (void)pattern_bytes;
	return said(q->device, FILL);
}

static int queue_new(struct yk_gpu_device *d, bool times, void **queue)
{
	(void)times;
	return make(d, QUEUE, queue);
}

static int flush(void *queue)
{
	(void)queue;
	return note(FLUSH);
}

static int finish(struct yk_gpu_queue *q)
{
	return said(q->device, FINISH);
}

static int mark(struct yk_gpu_queue *q, void **event)
{
	return make(q->device, MARK, event);
}

static int after(struct yk_gpu_queue *q, struct yk_gpu_event *e)
{
	right_text &= e->flushed && e->queue != q;
	return said(q->device, AFTER);
}

static int status(struct yk_gpu_event *e)
{
	int err = said(e->queue->device, STATUS);

	return err ? err : 1;
}

static int wait(struct yk_gpu_event *e)
{
	return said(e->queue->device, WAIT);
}

static int elapsed(struct yk_gpu_event *from, struct yk_gpu_event *to, uint64_t *nanoseconds)
{
	*nanoseconds = from == to ? 0 : 5;
	return said(to->queue->device, ELAPSED);
}

static bool library_takes(const struct yk_gpu_device *d, struct yk_gpu_contract *c)
{
	(void)d;
	return c->dtype == yoke_f32 && !c->map;
}

static int library_run(struct yk_gpu_queue *q, const struct yoke_op *op, const void *data)
{
	(void)op;
	return yk_gpu_check(q->device, data ? "library" : "no data", note(LAUNCH));
}

static int library_record(struct yk_gpu_record *r, const struct yk_gpu_contract *c)
{
	return yk_gpu_call(r, library_run, c, sizeof *c);
}

static bool library_always(void)
{
	return wants;
}

static const struct yk_gpu_library library = {
	"lib", { library_takes, library_record }, library_always, NULL
};
static const struct yoke_setting profile = { sizeof profile, "stub.profile", "bool", "0", "times" };

const struct yk_gpu_driver yk_gpu_driver = {
	.name = "stub",
	.title = "Stub",
	.version = "1",
	.dialect = YOKE_DIALECT_CUDA,
	.profile = &profile,
	.library = { &library },
	.code_name = code_name,
	.is_memory = is_memory,
	.probe = probe,
	.open = open_device,
	.build = build,
	.load = load,
	.binary = binary,
	.program_free = drop,
	.kernel_new = kernel_new,
	.kernel_free = drop,
	.kernel_group = kernel_group,
	.kernel_params = kernel_params,
	.arg = arg,
	.launch = launch,
	.arg_call = "arg",
	.launch_call = "launch",
	.buffer_new = buffer_new,
	.buffer_wrap = buffer_wrap,
	.buffer_free = buffer_free,
	.put = put,
	.get = get,
	.copy = copy,
	.fill = fill,
	.queue_new = queue_new,
	.queue_free = drop,
	.flush = flush,
	.flush_call = "flush",
	.finish = finish,
	.mark = mark,
	.event_free = drop,
	.after = after,
	.status = status,
	.wait = wait,
	.elapsed = elapsed,
};

// ---- the backend over it ----

static const struct yoke_backend *gpu;
static char binaries[16]; // the host's cache: of one program

static const char *setting(const struct yoke_setting *s)
{
	return s == &profile ? profiled : s->def;
}

static int64_t cache_get(const void *key, size_t key_bytes, void *to, size_t cap)
{
	const size_t n = strlen(binaries);

	(void)key, (void)key_bytes;
	if (cap)
		memcpy(to, binaries, n);
	return n ? (int64_t)n : YOKE_ENOENT;
}

static int cache_put(const void *key, size_t key_bytes, const void *data, size_t bytes)
{
	(void)key, (void)key_bytes;
	memcpy(binaries, data, bytes);
	return 0;
}

static struct yoke_map map = { .size = sizeof map, .ninsn = 2, .nin = 1, .nout = 1, .out = { 1 } };
static struct yoke_view y, x;
static struct yoke_op op = { .size = sizeof op, .code = YOKE_OP_MAP, .rank = 1, .nout = 1, .nin = 1,
			     .dims = { 16 }, .out = &y, .in = &x, .map = &map };

// Another map each time, so that it must be built.
static void new_map(void)
{
	static int form;

	map.insn[0] = (struct yoke_insn){ .op = YOKE_MAP_INPUT, .dtype = yoke_f32 };
	map.ninsn = (uint16_t)(2 + ++form);
	for (int i = 1; i < map.ninsn; i++)
		map.insn[i] = (struct yoke_insn){ .op = YOKE_MAP_NEG,
						  .dtype = yoke_f32,
						  .a = (uint16_t)(i - 1) };
	map.out[0] = (uint16_t)(map.ninsn - 1);
}

// Every backend operation once, on two queues, one of which may belong to another device; returns
// the first error.
static int everything(uint32_t other)
{
	void *q[2] = { NULL }, *s[4] = { NULL }, *e[2] = { NULL }, *handle = NULL;
	static _Alignas(64) char memory[64];
	uint64_t bytes, ns;
	int err = gpu->queue_new(0, YOKE_QUEUE_COMPUTE, &q[0]);

	new_map();
	err = err ? err : gpu->queue_new(other, YOKE_QUEUE_COMPUTE, &q[1]);
	err = err ? err : gpu->segment_new(0, YOKE_SEGMENT_DEVICE, 64, &s[0]);
	err = err ? err : gpu->segment_new(0, YOKE_SEGMENT_DEVICE, 64, &s[1]);
	err = err ? err : gpu->segment_new(0, YOKE_SEGMENT_HOST, 64, &s[2]);
	err = err ? err : gpu->segment_wrap(0, memory, 64, &s[3]);
	err = err ? err : gpu->put(q[0], s[0], 0, memory, 64);
	err = err ? err : gpu->copy(q[0], s[1], 0, s[0], 0, 64);
	err = err ? err : gpu->put(q[0], s[2], 0, memory, 64); // through its address
	err = err ? err : gpu->fill(q[0], s[1], 0, 64, "\1", 1);
	y = x = (struct yoke_view){ .kind = YOKE_VIEW_BUFFER,
				    .dtype = yoke_f32,
				    .rank = 1,
				    .dims = { 16 },
				    .strides = { 1 },
				    .align = 64 };
	x.segment = s[0], y.segment = s[1];
	err = err ? err : gpu->prepare(0, &op, 0, 0, &handle, &bytes);
	err = err ? err : gpu->run(q[0], handle, &op);
	err = err ? err : gpu->queue_flush(q[0]);
	err = err ? err : gpu->event_mark(q[0], &e[0]);
	err = err ? err : gpu->event_after(q[1], e[0]);
	err = err ? err : gpu->event_mark(q[1], &e[1]);
	const int done = err ? 0 : gpu->event_done(e[0]);
	err = done < 0 ? done : err;
	err = err ? err : gpu->event_wait(e[1]);
	err = err ? err : gpu->event_elapsed(e[0], e[1], &ns);
	err = err ? err : gpu->get(q[0], s[1], 0, memory, 64);
	for (int i = 0; i < 2; i++)
		gpu->queue_free(q[i]); // events outlive them
	if (handle)
		gpu->release(handle);
	for (int i = 0; i < 2; i++)
		gpu->event_free(e[i]);
	for (int i = 0; i < 4; i++)
		gpu->segment_free(0, s[i]);
	return err;
}

static void failures(void)
{
	for (int c = 0; c < LOAD; c++)
		for (int code = LOST; code <= FULL; code += FULL - LOST) {
			const int before = alive;
			fails[c] = code;
			int err = everything(c % 2), want = c == BUILD ? YOKE_EUNSUPPORTED :
							    code == LOST ? YOKE_EDEVICE :
							    YOKE_ENOMEM;
			const char *line = yoke_error();
			ok(err == want && strstr(line, names[c]) && strstr(line, code_name(code)) &&
				   strstr(line, "on stub:") && strstr(line, "(a card, 1.0)"),
			   "%s fails: %s", names[c], line);
			ok(alive - before == (c > KERNEL ? 2 : 0),
			   "program and kernel are kept if they existed: %d", alive - before);
			yoke_error_clear();
			fails[c] = 0;
		}
	ok(!everything(0) && !everything(1), "and everything works afterwards %s", yoke_error());
	ok(right_text,
	   "texts are complete, groups divide items, events are flushed before they are waited for");
}

// ---- launches ----

static void launches(void)
{
	void *q, *s, *handle;
	uint64_t bytes;
	int set[4];

	new_map();
	gpu->queue_new(0, YOKE_QUEUE_COMPUTE, &q);
	gpu->segment_new(0, YOKE_SEGMENT_DEVICE, 4096, &s);
	x.segment = y.segment = s;
	int err = gpu->prepare(0, &op, 0, 0, &handle, &bytes);
	for (int i = 0; i < 4 && !err; i++) {
		void *other;
		if (i == 2)
			y.offset = 256;
		if (i == 3) {
			gpu->segment_new(0, YOKE_SEGMENT_DEVICE, 64, &other);
			gpu->segment_free(0, other);
		}
		set[i] = count[ARG];
		err = gpu->run(q, handle, &op);
		set[i] = count[ARG] - set[i];
	}
	ok(!err && set[0] == 4 && !set[1] && set[2] == 1 && set[3] == 4,
	   "numbers of arguments set at first, again, with another offset, after a buffer was released: %d %d %d %d",
	   set[0], set[1], set[2], set[3]);
	const int before = count[FLUSH];
	for (int i = 0; i < 64 && !err; i++)
		err = gpu->run(q, handle, &op);
	ok(!err && count[FLUSH] == before + 4, "64 launches are flushed %d times",
	   count[FLUSH] - before);
	fails[FLUSH] = LOST;
	for (int i = 0; i < 16 && !err; i++)
		err = gpu->run(q, handle, &op);
	ok(!err && !yoke_error_code() && !fails[FLUSH], "a failing flush is no error yet");
	y.offset = 0;
	gpu->release(handle);
	gpu->segment_free(0, s);
	gpu->queue_free(q);
}

static void marks(void)
{
	void *q, *s, *e[6];

	for (int times = 0; times < 2; times++) {
		*profiled = (char)('0' + times);
		gpu->queue_new(0, YOKE_QUEUE_COMPUTE, &q);
		gpu->segment_new(0, YOKE_SEGMENT_DEVICE, 64, &s);
		for (int i = 0; i < 6; i++) {
			if (i == 2)
				gpu->put(q, s, 0, "", 1);
			if (i == 4) {
				fails[STATUS] = LOST;
				gpu->event_done(e[3]);
				yoke_error_clear();
			}
			gpu->event_mark(q, &e[i]);
		}
		ok((e[0] == e[1]) == !times && e[1] != e[2] && (e[2] == e[3]) == !times &&
			   e[3] != e[4] && (e[4] == e[5]) == !times,
		   "event marks are reused unless work or failures came after them, %s times",
		   times ? "and not with" : "without");
		for (int i = 0; i < 6; i++)
			gpu->event_free(e[i]);
		gpu->queue_free(q);
		gpu->segment_free(0, s);
	}
	*profiled = '0';
}

// Programs of the device that keeps binaries.
static void programs(void)
{
	static const int builds[] = { 1, 0, 1 }, loads[] = { 0, 1, 1 };

	for (int i = 0; i < 3; i++) {
		const int built = count[BUILD], loaded = count[LOAD];
		uint64_t bytes;
		void *handle;
		new_map();
		fails[LOAD] = i == 2 ? LOST : 0;
		int err = gpu->prepare(1, &op, 0, 0, &handle, &bytes);
		ok(!err && !yoke_error_code() && count[BUILD] == built + builds[i] &&
			   count[LOAD] == loaded + loads[i],
		   "a program %s: %d built, %d loaded",
		   i == 2 ? "whose binary does not load" :
		   i      ? "that is in the cache" :
			    "that nobody has built",
		   count[BUILD] - built, count[LOAD] - loaded);
		if (!err)
			gpu->release(handle);
	}
}

static void libraries(void)
{
	struct yoke_view v[3];
	struct yoke_op product = { .size = sizeof product,
				   .code = YOKE_OP_CONTRACT,
				   .nout = 1,
				   .nin = 2,
				   .out = v,
				   .in = v + 1 };
	void *q, *handle;
	uint64_t bytes;

	for (int i = 0; i < 3; i++)
		v[i] = (struct yoke_view){ .kind = YOKE_VIEW_BUFFER,
					   .dtype = yoke_f32,
					   .rank = 2,
					   .dims = { 64, 64 },
					   .strides = { 64, 1 },
					   .align = 64 };
	const uint64_t some = gpu->can(0, &product);
	uint32_t impl = 0;
	while (impl < 64 &&
	       (!(some >> impl & 1) || strcmp(gpu->impl_name(0, &product, impl), "lib")))
		impl++;
	const uint64_t later = impl < 63 ? some >> (impl + 1) << (impl + 1) : 0;
	ok(later &&
		   !strcmp(gpu->impl_name(0, &product, (uint32_t)__builtin_ctzll(later)), "blocks"),
	   "the library precedes the other implementations: %#llx", (unsigned long long)some);
	wants = true;
	ok(gpu->can(0, &product) == (uint64_t)1 << impl, "or is the only one, if so requested");
	for (int i = 0; i < 3; i++)
		v[i].dtype = yoke_f16;
	ok(gpu->can(0, &product) && !(gpu->can(0, &product) >> impl & 1),
	   "but not for unsupported products");
	for (int i = 0; i < 3; i++)
		v[i].dtype = yoke_f32;
	wants = false;
	gpu->queue_new(0, YOKE_QUEUE_COMPUTE, &q);
	const int before = count[LAUNCH];
	int err = gpu->prepare(0, &product, impl, 0, &handle, &bytes);
	if (!err)
		err = gpu->run(q, handle, &product);
	ok(!err && count[LAUNCH] == before + 1, "the library is called");
	gpu->release(handle);
	gpu->queue_free(q);
}

int main(void)
{
	struct yoke_host host = *yk_host();
	struct yoke_device_info info = { .size = sizeof info };
	uint32_t n = 0;

	host.setting = setting;
	host.cache_get = cache_get;
	host.cache_put = cache_put;
	const bool good = !yoke_plugin_init(YOKE_ABI, &host, &gpu) && !strcmp(gpu->name, "stub") &&
			  !gpu->probe(&n) && !gpu->device_info(1, &info) &&
			  !strcmp(info.name, "a card");
	ok(good && n == 2, "two devices: %u", n);
	*profiled = '1';
	failures();
	*profiled = '0';
	launches();
	marks();
	programs();
	libraries();
	return done();
}
