// SPDX-License-Identifier: Apache-2.0
// Every kernel text, compiled for real: the launch layer over a driver that only takes notes is given the cases of
// `yoke conform` and products, rows and attention of usual sizes, as devices of several kinds; each text with each set
// of options that it then asks for is compiled by what this machine has (gpu_compile.h).  Nothing may spill, and the
// table of doc/gpu.md has to be true.  `gpu_texts.t --table` prints that table.
#include "config.h"

#include "../backends/gpu/contract.h"
#include "base/error.h"
#include "conform/sample.h"
#include "device/plugin.h"
#include "gpu_compile.h"
#include "tap.h"

// ---- what is asked for ----

enum { KERNELS = 4 };
struct text {
	struct text *next;
	int device;
	char *text, *options;
	bool usual; // asked for by an op of usual size
	int n;
	struct used {
		struct text *text;
		char name[64];
		int items; // of a group
		bool usual;
		void *buffer; // its first argument
	} kernel[KERNELS];
};
static struct text *texts, **last = &texts;
static bool usual; // ops of usual size are asked for now

struct buffer {
	uint64_t bytes; // of data
	char data[];
};

// ---- the driver ----

static const char *code_name(int code)
{
	return code ? "NO" : "YES";
}

static bool is_memory(int code)
{
	(void)code;
	return false;
}

static int probe(const char **why)
{
	static struct yk_gpu_device devices[TARGETS];

	*why = "";
	for (int i = 0; i < TARGETS; i++) {
		const struct target *t = &targets[i];
		struct yk_gpu_device *d = &devices[i];
		d->info = (struct yoke_device_info){ .size = sizeof d->info, .kind = YOKE_DEVICE_GPU, .units = 108,
						     .flags = YOKE_DEVICE_F64 | YOKE_DEVICE_F16,
						     .memory = (uint64_t)1 << 36, .max_segment = (uint64_t)1 << 36,
						     .align = 256, .max_args = 4096, .name = "a card", .driver = "1" };
		d->info.products = (uint32_t)t->products;
		d->max_group = d->max_items[0] = d->max_items[1] = 1024;
		d->local_bytes = t->amd ? 64 << 10 : 48 << 10;
		d->vector = 1;
		d->warp = t->warp;
		d->identity = t->name;
		d->options = t->amd ? "-ffp-contract=off" : "-fmad=false";
		if (yk_gpu_device_add(d))
			return YOKE_ENOMEM;
	}
	return 0;
}

static int open_device(struct yk_gpu_device *d)
{
	(void)d;
	return 0;
}

static int build(struct yk_gpu_device *d, const char *text, const char *options, const char *kernel, void **program)
{
	struct text *t = texts;

	(void)kernel;
	while (t && (t->device != (int)d->index || strcmp(t->options, options) || strcmp(t->text, text)))
		t = t->next;
	if (!t) {
		t = calloc(1, sizeof *t);
		t->device = (int)d->index;
		t->text = strdup(text);
		t->options = strdup(options);
		*last = t;
		last = &t->next;
	}
	*program = t;
	return 0;
}

static int load(struct yk_gpu_device *d, const void *binary, size_t bytes, const char *options, void **program)
{
	(void)d, (void)binary, (void)bytes, (void)options, (void)program;
	return YOKE_EDEVICE;
}

static void *binary(struct yk_gpu_device *d, void *program, size_t *bytes)
{
	(void)d, (void)program, (void)bytes;
	return NULL;
}

static void keep(void *what)
{
	(void)what;
}

static int kernel_new(struct yk_gpu_device *d, void *program, const char *name, void **kernel)
{
	struct text *t = program;
	int k = 0;

	(void)d;
	while (k < t->n && strcmp(t->kernel[k].name, name))
		k++;
	if (k == KERNELS)
		return yk_gpu_error(YOKE_EINVAL, "more kernels of a text than expected");
	if (k == t->n) {
		t->kernel[t->n++].text = t;
		snprintf(t->kernel[k].name, sizeof t->kernel[k].name, "%s", name);
	}
	*kernel = &t->kernel[k];
	return 0;
}

static size_t kernel_group(struct yk_gpu_device *d, void *kernel)
{
	(void)kernel;
	return d->max_group;
}

static uint32_t kernel_params(void *kernel)
{
	(void)kernel;
	return 0;
}

static int arg(void *kernel, uint32_t index, size_t bytes, const void *value)
{
	if (!index && bytes == sizeof(void *))
		memcpy(&((struct used *)kernel)->buffer, value, bytes);
	return 0;
}

// What f64.c wants of a device that has it.
static void compute_f64(double *x)
{
	const volatile double a = x[0], b = x[1], tiny = x[2], big = x[3], product = a * b;

	x[4] = a + b, x[5] = a - b, x[6] = product, x[7] = a / b, x[8] = sqrt(a), x[9] = product - a;
	x[10] = tiny * 0.5, x[11] = big * a, x[12] = (double)(int64_t)(a * 1e15), x[13] = (double)(float)a;
}

static int launch(struct yk_gpu_queue *q, void *kernel, uint32_t dims, const size_t *items, const size_t *group)
{
	struct used *k = kernel;

	(void)q, (void)items;
	k->items = 1;
	for (uint32_t i = 0; i < dims; i++)
		k->items *= group ? (int)group[i] : 1;
	k->usual |= usual;
	k->text->usual |= usual;
	if (!strcmp(k->name, "f16_same"))
		memset(((struct buffer *)k->buffer)->data, 1, ((struct buffer *)k->buffer)->bytes);
	if (!strcmp(k->name, "f64_results"))
		compute_f64((double *)(void *)((struct buffer *)k->buffer)->data);
	return 0;
}

static int buffer_new(struct yk_gpu_device *d, int kind, uint64_t bytes, const void *data, void **buffer, void **host)
{
	struct buffer *b = calloc(1, sizeof *b + (data || kind == YOKE_SEGMENT_HOST ? bytes : 0));

	(void)d;
	if (data)
		memcpy(b->data, data, b->bytes = bytes);
	if (kind == YOKE_SEGMENT_HOST)
		*host = b->data;
	*buffer = b;
	return 0;
}

static int buffer_wrap(struct yk_gpu_device *d, void *memory, uint64_t bytes, void **buffer)
{
	(void)memory;
	return buffer_new(d, YOKE_SEGMENT_DEVICE, bytes, NULL, buffer, NULL);
}

static void buffer_free(struct yk_gpu_device *d, void *buffer, void *host)
{
	(void)d, (void)host;
	free(buffer);
}

static int put(struct yk_gpu_queue *q, void *buffer, uint64_t offset, const void *from, uint64_t bytes)
{
	(void)q, (void)buffer, (void)offset, (void)from, (void)bytes;
	return 0;
}

static int get(struct yk_gpu_queue *q, void *buffer, uint64_t offset, void *to, uint64_t bytes)
{
	const struct buffer *b = buffer;

	(void)q, (void)offset;
	if (b->bytes)
		memcpy(to, b->data, bytes);
	else
		memset(to, 0xff, bytes); // reports: no complaint
	return 0;
}

static int copy(struct yk_gpu_queue *q, void *to, uint64_t to_offset, void *from, uint64_t from_offset, uint64_t bytes)
{
	(void)q, (void)to, (void)to_offset, (void)from, (void)from_offset, (void)bytes;
	return 0;
}

static int fill(struct yk_gpu_queue *q, void *buffer, uint64_t offset, uint64_t bytes, const void *pattern,
		uint32_t pattern_bytes)
{
	(void)q, (void)buffer, (void)offset, (void)bytes, (void)pattern, (void)pattern_bytes;
	return 0;
}

static int queue_new(struct yk_gpu_device *d, bool times, void **queue)
{
	(void)d, (void)times;
	*queue = calloc(1, 1);
	return 0;
}

static int flush(void *queue)
{
	(void)queue;
	return 0;
}

static int finish(struct yk_gpu_queue *q)
{
	(void)q;
	return 0;
}

static int mark(struct yk_gpu_queue *q, void **event)
{
	(void)q;
	*event = calloc(1, 1);
	return 0;
}

static int after(struct yk_gpu_queue *q, struct yk_gpu_event *e)
{
	(void)q, (void)e;
	return 0;
}

static int status(struct yk_gpu_event *e)
{
	(void)e;
	return 1;
}

static int wait(struct yk_gpu_event *e)
{
	(void)e;
	return 0;
}

static int elapsed(struct yk_gpu_event *from, struct yk_gpu_event *to, uint64_t *nanoseconds)
{
	(void)from, (void)to;
	*nanoseconds = 0;
	return 0;
}

static const struct yoke_setting profile = { sizeof profile, "notes.profile", "bool", "0", "times" };

const struct yk_gpu_driver yk_gpu_driver = {
	.name = "notes", .title = "Notes", .version = "1", .dialect = YOKE_DIALECT_CUDA, .profile = &profile,
	.code_name = code_name, .is_memory = is_memory, .probe = probe, .open = open_device, .build = build, .load = load,
	.binary = binary, .program_free = keep, .kernel_new = kernel_new, .kernel_free = keep,
	.kernel_group = kernel_group, .kernel_params = kernel_params, .arg = arg, .launch = launch, .arg_call = "arg",
	.launch_call = "launch", .buffer_new = buffer_new, .buffer_wrap = buffer_wrap, .buffer_free = buffer_free,
	.put = put, .get = get, .copy = copy, .fill = fill, .queue_new = queue_new, .queue_free = free, .flush = flush,
	.flush_call = "flush", .finish = finish, .mark = mark, .event_free = free, .after = after, .status = status,
	.wait = wait, .elapsed = elapsed,
};

// ---- asking ----

static const struct yoke_backend *gpu;
static void *queue[TARGETS], *segment[TARGETS];

// Every implementation of an op, prepared and run on a device.
static void ask(uint32_t device, struct yoke_op *op)
{
	const uint64_t some = gpu->can(device, op);

	for (uint32_t i = 0; i < 64; i++) {
		uint64_t bytes;
		void *handle;
		if (!(some >> i & 1) || gpu->prepare(device, op, i, 0, &handle, &bytes))
			continue;
		op->workspace = (struct yoke_view){ .kind = YOKE_VIEW_BUFFER, .segment = segment[device],
						    .dtype = yoke_u8, .rank = 1, .strides = { 1 }, .align = 256,
						    .dims = { (int64_t)bytes } };
		gpu->run(queue[device], handle, op);
		gpu->release(handle);
	}
	yoke_error_clear();
}

static void ask_case(uint32_t device, struct yk_case *c)
{
	for (uint32_t k = 0; k < c->views; k++) {
		struct yoke_view *v = &c->view[k];
		const uint64_t at = c->array[k].origin + c->array[k].shift * yoke_dtype_size(v->dtype) + 256;
		if (v->kind != YOKE_VIEW_BUFFER)
			continue;
		v->segment = segment[device];
		v->offset = at;
		v->align = (uint32_t)(at & -at);
	}
	ask(device, &c->op);
}

static void ask_conform(uint32_t device, bool quick, struct yk_case *c, struct yk_arena *memory)
{
	for (const struct yk_case_row *row = yk_case_rows; row->name; row++)
		for (int dtype = yoke_f32; dtype <= yoke_bool; dtype++)
			for (uint32_t k = 0; k < row->full && row->dtypes >> dtype & 1; k++)
				if (yk_case_sampled(k, quick) &&
				    yk_case_make(c, row, dtype, k, tap_seed_value(), false, memory))
					ask_case(device, c);
}

static struct yoke_view dense(uint32_t device, int dtype, int rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
	struct yoke_view v = { .kind = YOKE_VIEW_BUFFER, .dtype = (uint8_t)dtype, .rank = (uint8_t)rank, .align = 256,
			       .segment = segment[device], .dims = { a, b, c, d } };
	int64_t n = 1;

	for (int i = rank - 1; i >= 0; i--) {
		v.strides[i] = n;
		n *= v.dims[i];
	}
	return v;
}

static void turn(struct yoke_view *v)
{
	const int64_t dim = v->dims[0], stride = v->strides[0];

	v->dims[0] = v->dims[1], v->strides[0] = v->strides[1];
	v->dims[1] = dim, v->strides[1] = stride;
}

static void ask_products(uint32_t device, int dtype, int64_t m, int64_t n, int64_t k)
{
	for (int form = 0; form < 3; form++) { // as they are, and the transposed ones of gradients
		struct yoke_view v[3] = { dense(device, dtype, 2, m, n, 0, 0),
					  form == 2 ? dense(device, dtype, 2, k, m, 0, 0) :
						      dense(device, dtype, 2, m, k, 0, 0),
					  form == 1 ? dense(device, dtype, 2, n, k, 0, 0) :
						      dense(device, dtype, 2, k, n, 0, 0) };
		struct yoke_op op = { .size = sizeof op, .code = YOKE_OP_CONTRACT, .nout = 1, .nin = 2, .out = v,
				      .in = v + 1 };
		if (form)
			turn(&v[form == 1 ? 2 : 1]);
		ask(device, &op);
	}
}

static void ask_rows(uint32_t device, int dtype, int64_t rows, int64_t cols)
{
	const struct yoke_view x = dense(device, dtype, 2, rows, cols, 0, 0), w = dense(device, dtype, 1, cols, 0, 0, 0),
			       s = dense(device, yoke_f32, 1, rows, 0, 0, 0);
	struct yoke_view soft[] = { x, x, x }, norm[] = { x, s, s, x, w, w },
			 back[] = { x, w, w, x, w, s, s, x };
	struct yoke_op op = { .size = sizeof op, .code = YOKE_OP_SOFTMAX, .nout = 1, .nin = 1, .out = soft,
			      .in = soft + 1, .nattr = 1 };

	ask(device, &op);
	op.code = YOKE_OP_SOFTMAX_BACK;
	op.nin = 2;
	ask(device, &op);
	op = (struct yoke_op){ .size = sizeof op, .code = YOKE_OP_LAYER_NORM, .nout = 3, .nin = 3, .out = norm,
			       .in = norm + 3, .nattr = 1 };
	ask(device, &op);
	op = (struct yoke_op){ .size = sizeof op, .code = YOKE_OP_LAYER_NORM_BACK, .nout = 3, .nin = 5, .out = back,
			       .in = back + 3, .nattr = 1 };
	ask(device, &op);
}

static void ask_attention(uint32_t device, int dtype, int64_t d)
{
	const struct yoke_view x = dense(device, dtype, 4, 4, 1024, 12, d), lse = dense(device, yoke_f32, 3, 4, 12, 1024, 0),
			       none = { .kind = YOKE_VIEW_NONE };
	struct yoke_view on[] = { x, lse, x, x, x, none, none, none, none },
			 back[] = { x, x, x, x, x, x, none, none, none, x, lse, x, none };
	struct yoke_op op = { .size = sizeof op, .code = YOKE_OP_ATTENTION, .nout = 2, .nin = 7, .out = on, .in = on + 2,
			      .nattr = 3 };

	op.attr[0].i = 1;
	op.attr[1].f = 0.125;
	ask(device, &op);
	op.code = YOKE_OP_ATTENTION_BACK;
	op.nout = 3, op.nin = 10, op.out = back, op.in = back + 3;
	ask(device, &op);
}

static void ask_usual(uint32_t device)
{
	static const int dtypes[] = { yoke_f32, yoke_f16, yoke_bf16 };

	usual = true;
	for (int i = 0; i < 3; i++) {
		ask_products(device, dtypes[i], 4096, 4096, 1024);
		ask_products(device, dtypes[i], 256, 256, 65536);
		ask_products(device, dtypes[i], 8, 4096, 4096);
		ask_rows(device, dtypes[i], 4096, 768);
		ask_rows(device, dtypes[i], 4096, 50304);
		for (int64_t d = 64; d <= 256; d *= 2)
			ask_attention(device, dtypes[i], d);
	}
	usual = false;
}

// ---- judging ----

// What a text and its options are called: kernels and the options that are not the device's.
static const char *name_of(const struct text *t, char *to, size_t cap)
{
	const char *own = strstr(t->options, " -D");

	snprintf(to, cap, "%s%s", t->n ? t->kernel[0].name : "?", own ? own : "");
	return to;
}

static const struct used *used_of(const struct text *t, const char *name)
{
	for (int k = 0; k < t->n; k++)
		if (!strcmp(t->kernel[k].name, name))
			return &t->kernel[k];
	return NULL;
}

static void judge(const struct text *t, int *compiled, int *kernels)
{
	const struct target *g = &targets[t->device];
	struct usage all[16];
	char name[300], *log = NULL;
	const int n = target_compile(g, t->text, t->options, all, 16, &log);

	(*compiled)++;
	name_of(t, name, sizeof name);
	if (n < 0)
		ok(false, "%s: %s does not compile: %.1500s", g->name, name, log ? log : "");
	for (int i = 0; i < n && i < 16; i++) {
		const struct used *u = used_of(t, all[i].kernel);
		if (!u)
			continue;
		(*kernels)++;
		if (all[i].spilled || getenv("YOKE_TEST_SHOW"))
			ok(!all[i].spilled, "%s: %s of %s: %d registers, %d spilled, %d of stack, %d local, %d items, %d %%",
			   g->name, u->name, name, all[i].registers, all[i].spilled, all[i].stack, all[i].local, u->items,
			   target_occupancy(g, &all[i], u->items ? u->items : 256));
	}
	free(log);
}

static const char *setting(const struct yoke_setting *s)
{
	return s->def;
}

int main(int argc, char **argv)
{
	struct yoke_host host = *yk_host();
	struct yk_arena memory = { 0 };
	static struct yk_case c;
	uint32_t n = 0;

	// For people: a target, what the name of a text has to have in it.
	const char *only = argc > 1 ? argv[1] : "", *part = argc > 2 ? argv[2] : "";

	tap_seed();
	host.setting = setting;
	if (!ok(!yoke_plugin_init(YOKE_ABI, &host, &gpu) && !gpu->probe(&n) && n == TARGETS, "%u devices", n))
		return done();
	for (uint32_t i = 0; i < n; i++) {
		const char *how;
		if (*only && strcmp(only, targets[i].name))
			continue;
		const bool ready = target_ready(&targets[i], &how);
		if (!ready) {
			skip(targets[i].name, how);
			continue;
		}
		gpu->queue_new(i, YOKE_QUEUE_COMPUTE, &queue[i]);
		gpu->segment_new(i, YOKE_SEGMENT_DEVICE, 1 << 20, &segment[i]);
		ask_usual(i);
		ask_conform(i, !tap_long(), &c, &memory);
		int all = 0, compiled = 0, kernels = 0;
		for (const struct text *t = texts; t; t = t->next) {
			if (t->device != (int)i)
				continue;
			all++;
			char name[300];
			snprintf(name, sizeof name, "%s %d", targets[i].name, all);
			const bool turn = t->usual || tap_turn(name, 40);
			name_of(t, name, sizeof name);
			if (*part ? strstr(name, part) != NULL : turn)
				judge(t, &compiled, &kernels);
		}
		ok(all && compiled, "%s, by %s: %d of %d texts compile, with %d kernels", targets[i].name, how, compiled,
		   all, kernels);
	}
	return done();
}
