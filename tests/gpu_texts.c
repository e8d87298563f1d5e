// SPDX-License-Identifier: Apache-2.0
// Compiles every kernel text with real compilers. The launch layer, over a driver that only
// records, gets the cases of the conformance test and products, row ops and attention of usual
// sizes, for several kinds of devices; each text is compiled with each set of options that the
// layer requests, by the compilers of gpu_compile.h. No kernel may spill registers, and the table
// in doc/gpu.md must be correct; `gpu_texts.t --table` prints it.
#include "config.h"

#include "../backends/gpu/contract.h"
#include "base/error.h"
#include "base/half.h"
#include "conform/sample.h"
#include "device/plugin.h"
#include "gpu_compile.h"
#include "tap.h"
#include "yoke-quant.h"

// ---- what is asked for ----

enum { KERNELS = 8 };
struct text {
	struct text *next;
	int device;
	char *text, *options;
	bool usual; // requested by an op of usual size
	int n;
	struct used {
		struct text *text;
		char name[64];
		int items; // of a group
		int sized; // bytes of local memory that launches assign
		bool usual;
		void *buffer; // its first argument
	} kernel[KERNELS];
};
static struct text *texts, **last = &texts;
static bool usual; // ops of usual size are being requested
static bool tf32;  // the setting `matmul`

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
		d->info = (struct yoke_device_info){ .size = sizeof d->info,
						     .kind = YOKE_DEVICE_GPU,
						     .units = 108,
						     .flags = YOKE_DEVICE_F64 | YOKE_DEVICE_F16,
						     .memory = (uint64_t)1 << 36,
						     .max_segment = (uint64_t)1 << 36,
						     .align = 256,
						     .max_args = 4096,
						     .name = "a card",
						     .driver = "1" };
		d->info.products = (uint32_t)t->products;
		d->max_group = d->max_items[0] = d->max_items[1] = 1024;
		d->local_bytes = t->amd ? 64 << 10 : 48 << 10;
		d->vector = 1;
		d->warp = t->warp;
		d->head_columns = strncmp(t->name, "gfx11", 5) ? 0 : 64;
		d->tf32 = !t->amd && t->products >> yoke_bf16 & 1;
		d->sized_bytes = d->tf32 ? (size_t)t->local - 1024 : 0;
		d->identity = t->name;
		d->options = t->amd ? "-ffp-contract=off" : "-fmad=false";
		d->wgmma_options = strcmp(t->name, "sm_90") ? NULL : "-fmad=false -arch=sm_90a";
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

static int build(struct yk_gpu_device *d, const char *text, const char *options, const char *kernel,
		 void **program)
{
	struct text *t = texts;

	(void)kernel;
	while (t &&
	       (t->device != (int)d->index || strcmp(t->options, options) || strcmp(t->text, text)))
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

static int load(struct yk_gpu_device *d, const void *binary, size_t bytes, const char *options,
		void **program)
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

static int kernel_sized(struct yk_gpu_device *d, void *kernel, size_t bytes)
{
	((struct used *)kernel)->sized = (int)bytes;
	return bytes > d->sized_bytes;
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

// Requirements of f64.c on a device that supports it.
static void compute_f64(double *x)
{
	const volatile double a = x[0], b = x[1], tiny = x[2], big = x[3], product = a * b;

	x[4] = a + b, x[5] = a - b, x[6] = product, x[7] = a / b, x[8] = sqrt(a),
	x[9] = product - a;
	x[10] = tiny * 0.5, x[11] = big * a, x[12] = (double)(int64_t)(a * 1e15),
	x[13] = (double)(float)a;
}

// Requirements of units.cl on matrix units.
static void compute_units(char *data, const char *options)
{
	const int dtype = atoi(strstr(options, "-DMATRIX=") + strlen("-DMATRIX="));
	const bool bytes = dtype == yoke_i8 || dtype == yoke_u8;
	const int steps = dtype == yoke_f32 ? 8 : bytes ? 32 : 16;
	float x[2 * 16 * 32], *y = (float *)(void *)(data + 1024);
	int32_t *whole = (int32_t *)(void *)y;

	for (int i = 0; i < 2 * 16 * steps; i++) {
		uint16_t half;
		memcpy(&half, data + 2 * i % 1024, 2);
		x[i] = dtype == yoke_f16 ? yk_float_of_f16(half) : yk_float_of_bf16(half);
		if (dtype == yoke_f32)
			memcpy(&x[i], data + 4 * i, 4);
		if (bytes)
			x[i] = dtype == yoke_i8 ? (float)(int8_t)data[i] : (float)(uint8_t)data[i];
	}
	for (int i = 0; i < 256; i++) {
		float sum = 0;
		for (int k = 0; k < steps; k++)
			sum += 2 * x[i / 16 * steps + k] * x[(16 + i % 16) * steps + k];
		if (bytes)
			whole[i] = whole[256 + i] = (int32_t)sum;
		else
			y[i] = y[256 + i] = sum;
	}
}

static int launch(struct yk_gpu_queue *q, void *kernel, uint32_t dims, const size_t *items,
		  const size_t *group)
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
	if (!strcmp(k->name, "units_product"))
		compute_units(((struct buffer *)k->buffer)->data, k->text->options);
	if (!strcmp(k->name, "f64_results"))
		compute_f64((double *)(void *)((struct buffer *)k->buffer)->data);
	return 0;
}

static int buffer_new(struct yk_gpu_device *d, int kind, uint64_t bytes, const void *data,
		      void **buffer, void **host)
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

static int put(struct yk_gpu_queue *q, void *buffer, uint64_t offset, const void *from,
	       uint64_t bytes)
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
		memset(to, 0xff, bytes); // reports: not an error
	return 0;
}

static int copy(struct yk_gpu_queue *q, void *to, uint64_t to_offset, void *from,
		uint64_t from_offset, uint64_t bytes)
{
	(void)q, (void)to, (void)to_offset, (void)from, (void)from_offset, (void)bytes;
	return 0;
}

static int fill(struct yk_gpu_queue *q, void *buffer, uint64_t offset, uint64_t bytes,
		const void *pattern, uint32_t pattern_bytes)
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

static const struct yoke_setting profile = { sizeof profile, "notes.profile", "bool", "0",
					     "times" };

const struct yk_gpu_driver yk_gpu_driver = {
	.name = "notes",
	.title = "Notes",
	.version = "1",
	.dialect = YOKE_DIALECT_CUDA,
	.profile = &profile,
	.code_name = code_name,
	.is_memory = is_memory,
	.probe = probe,
	.open = open_device,
	.build = build,
	.load = load,
	.binary = binary,
	.program_free = keep,
	.kernel_new = kernel_new,
	.kernel_free = keep,
	.kernel_sized = kernel_sized,
	.sized_call = "sized",
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
	.queue_free = free,
	.flush = flush,
	.flush_call = "flush",
	.finish = finish,
	.mark = mark,
	.event_free = free,
	.after = after,
	.status = status,
	.wait = wait,
	.elapsed = elapsed,
};

// ---- asking ----

static const struct yoke_backend *gpu;
static void *queue[TARGETS], *segment[TARGETS];

// Prepares and runs every implementation of an op on a device.
static void ask(uint32_t device, struct yoke_op *op)
{
	const uint64_t some = gpu->can(device, op);

	for (uint32_t i = 0; i < 64; i++) {
		uint64_t bytes;
		void *handle;
		if (!(some >> i & 1) || gpu->prepare(device, op, i, 0, &handle, &bytes))
			continue;
		op->workspace = (struct yoke_view){ .kind = YOKE_VIEW_BUFFER,
						    .segment = segment[device],
						    .dtype = yoke_u8,
						    .rank = 1,
						    .strides = { 1 },
						    .align = 256,
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
		const uint64_t at =
			c->array[k].origin + c->array[k].shift * yoke_dtype_size(v->dtype) + 256;
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
				    yk_case_make(c, row, dtype, k, tap_seed_value(), 0, memory))
					ask_case(device, c);
}

static struct yoke_view dense(uint32_t device, int dtype, int rank, int64_t a, int64_t b, int64_t c,
			      int64_t d)
{
	struct yoke_view v = { .kind = YOKE_VIEW_BUFFER,
			       .dtype = (uint8_t)dtype,
			       .rank = (uint8_t)rank,
			       .align = 256,
			       .segment = segment[device],
			       .dims = { a, b, c, d } };
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
	const int to = dtype == yoke_i8 || dtype == yoke_u8 ? yoke_i32 : dtype;

	// the plain products, and the transposed ones of gradients
	for (int form = 0; form < 3; form++) {
		struct yoke_view v[3] = { dense(device, to, 2, m, n, 0, 0),
					  form == 2 ? dense(device, dtype, 2, k, m, 0, 0) :
						      dense(device, dtype, 2, m, k, 0, 0),
					  form == 1 ? dense(device, dtype, 2, n, k, 0, 0) :
						      dense(device, dtype, 2, k, n, 0, 0) };
		struct yoke_op op = { .size = sizeof op,
				      .code = YOKE_OP_CONTRACT,
				      .nout = 1,
				      .nin = 2,
				      .out = v,
				      .in = v + 1 };
		if (form)
			turn(&v[form == 1 ? 2 : 1]);
		ask(device, &op);
	}
}

static void ask_rows(uint32_t device, int dtype, int64_t rows, int64_t cols)
{
	const struct yoke_view x = dense(device, dtype, 2, rows, cols, 0, 0),
			       w = dense(device, dtype, 1, cols, 0, 0, 0),
			       s = dense(device, yoke_f32, 1, rows, 0, 0, 0);
	struct yoke_view soft[] = { x, x, x }, norm[] = { x, s, s, x, w, w },
			 back[] = { x, w, w, x, w, s, s, x };
	struct yoke_op op = { .size = sizeof op,
			      .code = YOKE_OP_SOFTMAX,
			      .nout = 1,
			      .nin = 1,
			      .out = soft,
			      .in = soft + 1,
			      .nattr = 1 };

	ask(device, &op);
	op.code = YOKE_OP_SOFTMAX_BACKWARD;
	op.nin = 2;
	ask(device, &op);
	op = (struct yoke_op){ .size = sizeof op,
			       .code = YOKE_OP_LAYER_NORM,
			       .nout = 3,
			       .nin = 3,
			       .out = norm,
			       .in = norm + 3,
			       .nattr = 1 };
	ask(device, &op);
	op = (struct yoke_op){ .size = sizeof op,
			       .code = YOKE_OP_LAYER_NORM_BACKWARD,
			       .nout = 3,
			       .nin = 5,
			       .out = back,
			       .in = back + 3,
			       .nattr = 1 };
	ask(device, &op);
}

static void ask_attention(uint32_t device, int dtype, int64_t d)
{
	const struct yoke_view x = dense(device, dtype, 4, 4, 1024, 12, d),
			       lse = dense(device, yoke_f32, 3, 4, 12, 1024, 0),
			       none = { .kind = YOKE_VIEW_NONE };
	struct yoke_view on[] = { x, lse, x, x, x, none, none, none, none },
			 back[] = { x, x, x, x, x, x, none, none, none, x, lse, x, none };
	struct yoke_op op = { .size = sizeof op,
			      .code = YOKE_OP_ATTENTION,
			      .nout = 2,
			      .nin = 7,
			      .out = on,
			      .in = on + 2,
			      .nattr = 3 };

	op.attr[0].i = 1;
	op.attr[1].f = 0.125;
	ask(device, &op);
	op.code = YOKE_OP_ATTENTION_BACKWARD;
	op.nout = 3, op.nin = 10, op.out = back, op.in = back + 3;
	ask(device, &op);
}

// 64 channels to 64 by windows of 3 x 3, on images of 56 x 56; its gradients; a pool's.
static void ask_conv(uint32_t device, int dtype)
{
	const struct yoke_view x = dense(device, dtype, 4, 32, 64, 56, 56),
			       w = dense(device, dtype, 4, 64, 64, 3, 3),
			       windows = dense(device, dtype, 4, 32 * 64, 28, 56, 2),
			       pooled = dense(device, dtype, 3, 32 * 64, 56, 56, 0);
	struct yoke_view conv[] = { x, x, w }, by_x[] = { x, x, w }, by_w[] = { w, x, x },
			 add[] = { pooled, windows };
	const int64_t axis = 1 | 1 << 16 | (int64_t)1 << 32 | (int64_t)1 << 48;
	struct yoke_op op = {
		.size = sizeof op,
		.code = YOKE_OP_CONV,
		.nout = 1,
		.nin = 2,
		.out = conv,
		.in = conv + 1,
		.nattr = 5,
		.attr = { { .i = 1 }, { .i = axis }, { .i = axis }, { .i = 56 }, { .i = 56 } }
	};

	ask(device, &op);
	op.code = YOKE_OP_CONV_X, op.out = by_x, op.in = by_x + 1;
	ask(device, &op);
	op.code = YOKE_OP_CONV_W, op.out = by_w, op.in = by_w + 1;
	op.attr[3].i = op.attr[4].i = 3;
	ask(device, &op);
	op = (struct yoke_op){
		.size = sizeof op,
		.code = YOKE_OP_WINDOW_ADD,
		.nout = 1,
		.nin = 1,
		.out = add,
		.in = add + 1,
		.nattr = 5,
		.attr = { { .i = 1 }, { .i = 2 }, { .i = 2 }, { .i = 1 }, { .i = 56 } }
	};
	ask(device, &op);
}

// Rows of 512, and longer than a block; a table's gradient; the largest elements of a weight
// matrix.
static void ask_places(uint32_t device)
{
	for (int64_t n = 512; n <= 4096; n *= 8) {
		const struct yoke_view x = dense(device, yoke_f32, 2, 4096, n, 0, 0);
		struct yoke_view all[] = { x, dense(device, yoke_i64, 2, 4096, n, 0, 0), x };
		struct yoke_op op = { .size = sizeof op,
				      .code = YOKE_OP_SORT,
				      .nout = 2,
				      .nin = 1,
				      .out = all,
				      .in = all + 2,
				      .nattr = 2,
				      .attr = { { .i = n } } };
		ask(device, &op);
	}
	const struct yoke_view none = { .kind = YOKE_VIEW_NONE };
	struct yoke_view all[] = { dense(device, yoke_f32, 2, 50304, 768, 0, 0), none,
				   dense(device, yoke_i32, 1, 8192, 0, 0, 0),
				   dense(device, yoke_f32, 2, 8192, 768, 0, 0) };
	struct yoke_op op = { .size = sizeof op,
			      .code = YOKE_OP_SCATTER_ADD,
			      .nout = 1,
			      .nin = 3,
			      .out = all,
			      .in = all + 1 };

	ask(device, &op);
	const struct yoke_view x = dense(device, yoke_f32, 1, 1 << 20, 0, 0, 0);
	struct yoke_view some[] = { dense(device, yoke_f32, 1, 10000, 0, 0, 0),
				    dense(device, yoke_i32, 1, 10000, 0, 0, 0), x, x, x };
	op = (struct yoke_op){ .size = sizeof op,
			       .code = YOKE_OP_LARGEST,
			       .nout = 3,
			       .nin = 2,
			       .out = some,
			       .in = some + 3,
			       .nattr = 1,
			       .attr = { { .i = 10000 } } };
	ask(device, &op);
}

// y = x w + x, of tensors and of lists of 16, and its sum over lists
static void ask_maps(uint32_t device, int dtype)
{
	struct yoke_map map = { .size = sizeof map, .ninsn = 4, .nin = 2, .nout = 1, .out = { 3 } };
	struct yoke_view v[48];
	struct yoke_op op = { .size = sizeof op,
			      .code = YOKE_OP_MAP,
			      .nout = 1,
			      .nin = 2,
			      .out = v,
			      .in = v + 1,
			      .map = &map,
			      .rank = 1,
			      .dims = { 1 << 20 } };
	static const struct yoke_insn program[] = {
		{ .op = YOKE_MAP_INPUT, .a = 0 },
		{ .op = YOKE_MAP_INPUT, .a = 1 },
		{ .op = YOKE_MAP_MUL, .a = 0, .b = 1 },
		{ .op = YOKE_MAP_ADD, .a = 2, .b = 0 },
	};

	for (int i = 0; i < 4; i++) {
		map.insn[i] = program[i];
		map.insn[i].dtype = (uint8_t)dtype;
	}
	for (int i = 0; i < 48; i++)
		v[i] = dense(device, dtype, 1, 1 << 20, 0, 0, 0);
	ask(device, &op);
	op.code = YOKE_OP_LIST_MAP;
	op.nout = op.list = 16;
	op.nin = 32;
	op.in = v + 16;
	op.lists_out = 1;
	op.lists_in = 2;
	ask(device, &op);
	v[0] = dense(device, dtype, 0, 0, 0, 0, 0);
	op.code = YOKE_OP_LIST_REDUCE;
	op.nout = 1, op.in = v + 1, op.lists_out = 0;
	op.nattr = 2, op.attr[0].i = YOKE_REDUCE_SUM;
	ask(device, &op);
}

// x [m,4096] times w [4096,4096] in Q4_0 or Q4_K; w's numbers.
static void ask_quantized(uint32_t device, int dtype, int format, int64_t m)
{
	const int64_t k = 4096, bytes = format == YOKE_QUANT_Q4_K ? k / 256 * 144 : k / 32 * 18;
	struct yoke_view v[] = { dense(device, dtype, 2, m, k, 0, 0),
				 dense(device, dtype, 2, m, k, 0, 0),
				 dense(device, yoke_u8, 2, k, bytes, 0, 0) },
			 all[] = { dense(device, dtype, 2, k, k, 0, 0), v[2] };
	struct yoke_op op = { .size = sizeof op,
			      .code = YOKE_OP_QLINEAR,
			      .nout = 1,
			      .nin = 2,
			      .out = v,
			      .in = v + 1,
			      .nattr = 2,
			      .attr = { { .i = format }, { .i = k } } };

	ask(device, &op);
	op.code = YOKE_OP_DEQUANT;
	op.nin = 1, op.out = all, op.in = all + 1;
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
		ask_conv(device, dtypes[i]);
		ask_maps(device, dtypes[i]);
		for (int64_t m = 1; m <= 1024; m *= 1024) {
			ask_quantized(device, dtypes[i], YOKE_QUANT_Q4_0, m);
			ask_quantized(device, dtypes[i], YOKE_QUANT_Q4_K, m);
		}
	}
	ask_places(device);
	for (int dtype = yoke_i8; dtype <= yoke_u8; dtype++) {
		ask_products(device, dtype, 4096, 4096, 1024);
		ask_products(device, dtype, 256, 256, 65536);
	}
	tf32 = true;
	ask_products(device, yoke_f32, 4096, 4096, 1024);
	tf32 = usual = false;
}

// ---- judging ----

// Identification of a text and its options: a kernel and the options that are not the device's.
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

enum {
	ROOM = 16,
	// bytes that may be saved around calls, as for 64-bit divisions, or for rare cases of
	// divisions and roots; none for the table's kernels
	FEW = 64
};

// Compiles a text for its target; returns the number of kernels, or -1 with a diagnostic.
static int compile(const struct text *t, struct usage all[ROOM])
{
	const struct target *g = &targets[t->device];
	char name[300], *log = NULL;
	const int n = target_compile(g, t->text, t->options, all, ROOM, &log);

	if (n < 0)
		ok(false, "%s: %s does not compile: %.1500s", g->name,
		   name_of(t, name, sizeof name), log ? log : "");
	free(log);
	return n < ROOM ? n : ROOM;
}

static void judge(const struct text *t, int *compiled, int *kernels)
{
	const struct target *g = &targets[t->device];
	struct usage all[ROOM];
	char name[300];
	const int n = compile(t, all);

	*compiled += n >= 0;
	name_of(t, name, sizeof name);
	for (int i = 0; i < n; i++) {
		const struct used *u = used_of(t, all[i].kernel);
		if (!u)
			continue;
		(*kernels)++;
		if (all[i].spilled > FEW || getenv("YOKE_TEST_SHOW"))
			ok(all[i].spilled <= FEW,
			   "%s: %s of %s: %d registers, %d spilled, %d of stack, %d local, %d items, %d wide loads, %d %%",
			   g->name, u->name, name, all[i].registers, all[i].spilled, all[i].stack,
			   all[i].local, u->items, all[i].wide,
			   target_occupancy(g, &all[i], u->items ? u->items : 256));
	}
}

// ---- the table of doc/gpu.md ----

// Kernels of usual ops; which of the texts, by options; and the occupancy, in percent, that their
// rule assumes: products and attention depend on register reuse, row ops on the number of loads in
// flight.
static const struct row {
	const char *title, *kernel, *options[4];
	int min;
	bool wide; // it loads 16 bytes at a time
} rows[] = {
	{ "product, f32, 128 x 128",
	  "contract_blocks",
	  { "-DTM=8", "-DA_FORM=3 -DB_FORM=2", "-DDTYPE=1" },
	  10,
	  true },
	{ "product, f32, 64 x 64",
	  "contract_blocks",
	  { "-DTM=4", "-DA_FORM=3 -DB_FORM=2", "-DDTYPE=1" },
	  10,
	  true },
	{ "product, f16, matrix units, 128 x 128",
	  "contract_matrix",
	  { "-DTILES_M=4", "-DA_FORM=3 -DB_FORM=2", "-DDTYPE=3" },
	  10,
	  true },
	{ "product, f16, matrix units, 64 x 64",
	  "contract_matrix",
	  { "-DTILES_M=2", "-DA_FORM=3 -DB_FORM=2", "-DDTYPE=3" },
	  10,
	  true },
	{ "product, bf16, matrix units, 128 x 128",
	  "contract_matrix",
	  { "-DTILES_M=4", "-DA_FORM=3 -DB_FORM=2", "-DDTYPE=4" },
	  10,
	  true },
	{ "product, f32 as tf32, 128 x 128",
	  "contract_matrix",
	  { "-DTILES_M=4", "-DA_FORM=3 -DB_FORM=2", "-DDTYPE=1" },
	  10,
	  false },
	{ "product, i8 to i32, matrix units, 128 x 128",
	  "contract_matrix",
	  { "-DTILES_M=4", "-DA_FORM=3 -DB_FORM=2", "-DDTYPE=5 -DRESULT=7" },
	  10,
	  true },
	{ "product, f16, tiles in stages, 128 x 128",
	  "contract_stages",
	  { "-DTILES_N=4", "-DA_FORM=3 -DB_FORM=2", "-DDTYPE=3" },
	  10,
	  true },
	{ "product, bf16, tiles in stages, 128 x 128",
	  "contract_stages",
	  { "-DTILES_N=4", "-DA_FORM=3 -DB_FORM=2", "-DDTYPE=4" },
	  10,
	  true },
	{ "product, bf16, tiles in stages, 64 x 64",
	  "contract_stages",
	  { "-DTILES_N=2", "-DA_FORM=3 -DB_FORM=2", "-DDTYPE=4" },
	  10,
	  true },
	{ "product, f32 as tf32, tiles in stages, 128 x 128",
	  "contract_stages",
	  { "-DTILES_N=4", "-DA_FORM=3 -DB_FORM=2", "-DDTYPE=1" },
	  10,
	  true },
	{ "product, i8 to i32, tiles in stages, 128 x 128",
	  "contract_stages",
	  { "-DTILES_N=4", "-DA_FORM=3 -DB_FORM=3", "-DDTYPE=5 -DRESULT=7" },
	  10,
	  true },
	{ "product, f16, warp groups, 128 x 128",
	  "contract_wgmma",
	  { "-DBN=128", "-DA_FORM=3 -DB_FORM=2", "-DDTYPE=3" },
	  10,
	  true },
	{ "product, bf16, warp groups, 128 x 128",
	  "contract_wgmma",
	  { "-DBN=128", "-DA_FORM=3 -DB_FORM=2", "-DDTYPE=4" },
	  10,
	  true },
	{ "product, bf16, warp groups, 128 x 256",
	  "contract_wgmma",
	  { "-DBN=256", "-DA_FORM=3 -DB_FORM=2", "-DDTYPE=4" },
	  10,
	  true },
	{ "product, k split, parts added", "contract_join", { "-DDTYPE=1" }, 50, false },
	{ "product, f16, 8 rows", "contract_rows_n", { "-DROWS=8", "-DDTYPE=3" }, 30, false },
	{ "quantized product, Q4_0, f32, one row",
	  "qlinear_rows",
	  { "-DROWS=1", "-DSTORE=0", "-DFORMAT=2" },
	  30,
	  true },
	{ "quantized product, Q4_K, f16, one row",
	  "qlinear_rows",
	  { "-DROWS=1", "-DSTORE=1", "-DFORMAT=12" },
	  30,
	  false },
	{ "quantized product, Q4_K, f32, 128 x 128",
	  "qlinear_tiles",
	  { "-DTM=8", "-DSTORE=0", "-DFORMAT=12" },
	  10,
	  true },
	{ "quantized product, Q4_K, f32, matrix units",
	  "qlinear_matrix",
	  { "-DTILES_M=4", "-DSTORE=0", "-DFORMAT=12" },
	  10,
	  true },
	{ "quantized product, Q4_K, bf16, matrix units",
	  "qlinear_matrix",
	  { "-DTILES_M=4", "-DSTORE=2", "-DFORMAT=12" },
	  10,
	  false },
	{ "quantized weights decoded, Q4_K, f32",
	  "dequant",
	  { "-DSTORE=0", "-DFORMAT=12" },
	  50,
	  true },
	{ "map, f32", "map", { "-DMAP_QUAD=1" }, 50, true },
	{ "update of lists, f32", "list_map", { "-DMAP_QUAD=1" }, 50, true },
	{ "sum over lists, f32", "list_reduce", { "-DMAP_QUAD=1", "-DOUT=1" }, 50, true },
	{ "softmax, f32, rows of 768",
	  "softmax",
	  { "-DSTORE=0", "-DITEMS=64", "-DHELD=3" },
	  30,
	  true },
	{ "softmax, f32, rows of 50304", "softmax", { "-DSTORE=0", "-DITEMS=256" }, 30, true },
	{ "softmax backward, f32", "softmax_backward", { "-DSTORE=0", "-DITEMS=128" }, 30, true },
	{ "layer norm, f32, rows of 768", "norm_rows", { "-DSTORE=0", "-DITEMS=128" }, 30, true },
	{ "layer norm backward, f32", "norm_backward", { "-DSTORE=0", "-DITEMS=128" }, 30, true },
	{ "layer norm, f16", "norm_rows", { "-DSTORE=1", "-DITEMS=128" }, 30, false },
	{ "convolution, f32", "conv", { "-DDTYPE=1", "-DTM=4" }, 10, false },
	{ "convolution, f16", "conv", { "-DDTYPE=3", "-DTM=4" }, 10, false },
	{ "convolution, by the window, f16", "conv", { "-DDTYPE=3", "-DALONG=1" }, 10, false },
	{ "windows added, f32", "window_add", { "-DDTYPE=1" }, 20, false },
	{ "sort, f32, rows of 512", "sort_short", { "-DUNIT=4" }, 30, false },
	{ "sort, f32, rows of 4096, a block", "sort_local", { "-DUNIT=4" }, 30, false },
	{ "largest, counted", "largest_count", { "-DITEMS=256" }, 30, false },
	{ "largest, taken", "largest_take", { "-DITEMS=256" }, 40, false },
	{ "scatter-add, f32, lists into order", "scatter_long", { "-DITEMS=256" }, 50, false },
	{ "scatter-add, f32, sums", "scatter_add", { "-DDTYPE=1" }, 30, false },
	{ "attention, f16, D 64", "attention_tiles", { "-DSTORE=1", "-DHEAD=64" }, 10, false },
	{ "attention, f16, D 128", "attention_tiles", { "-DSTORE=1", "-DHEAD=128" }, 10, false },
	{ "attention, f16, D 256", "attention_tiles", { "-DSTORE=1", "-DHEAD=256" }, 10, false },
	{ "attention, f16, matrix units, D 64",
	  "attention_matrix",
	  { "-DSTORE=1", "-DHEAD=64" },
	  10,
	  false },
	{ "attention, bf16, warp groups, D 64",
	  "attention_wgmma",
	  { "-DSTORE=2", "-DHEAD=64" },
	  10,
	  true },
	{ "attention, bf16, warp groups, D 128",
	  "attention_wgmma",
	  { "-DSTORE=2", "-DHEAD=128" },
	  10,
	  true },
	{ "attention, f16, matrix units, D 128",
	  "attention_matrix",
	  { "-DSTORE=1", "-DHEAD=128" },
	  10,
	  false },
	{ "attention backward, keys, f16, matrix units, D 64",
	  "attention_matrix_keys",
	  { "-DSTORE=1", "-DHEAD=64" },
	  10,
	  false },
	{ "attention backward, queries, f16, matrix units, D 64",
	  "attention_matrix_queries",
	  { "-DSTORE=1", "-DHEAD=64" },
	  10,
	  false },
	{ "attention backward, keys, f16, D 64",
	  "attention_back_keys",
	  { "-DSTORE=1", "-DHEAD=64" },
	  10,
	  false },
	{ "attention backward, queries, f16, D 64",
	  "attention_back_queries",
	  { "-DSTORE=1", "-DHEAD=64" },
	  10,
	  false },
};
enum { ROWS = sizeof rows / sizeof *rows };

static bool is_row(const struct row *r, const struct text *t)
{
	char options[700];

	snprintf(options, sizeof options, "%s ", t->options);
	for (int i = 0; i < 4 && r->options[i]; i++) {
		char word[80];
		snprintf(word, sizeof word, "%s ", r->options[i]);
		if (!strstr(options, word))
			return false;
	}
	const struct used *u = used_of(t, r->kernel);
	return u && u->usual && !strstr(options, "-DSPLIT");
}

// The contents of a cell; false: the target has no such kernel, or it could not be compiled.
static bool cell_of(const struct row *r, int device, struct usage *to, int *occupancy)
{
	struct usage all[ROOM];

	for (const struct text *t = texts; t; t = t->next) {
		if (t->device != device || !is_row(r, t))
			continue;
		const int n = compile(t, all);
		for (int i = 0; i < n; i++)
			if (!strcmp(all[i].kernel, r->kernel)) {
				*to = all[i];
				to->local += used_of(t, r->kernel)->sized;
				*occupancy = target_occupancy(&targets[device], to,
							      used_of(t, r->kernel)->items);
				return true;
			}
		return false;
	}
	return false;
}

static void print_table(const bool *ready, const char *part)
{
	printf("| kernel |");
	for (int i = 0; i < TARGETS; i++)
		printf(" %s |", targets[i].name);
	printf("\n|---|");
	for (int i = 0; i < TARGETS; i++)
		printf("---|");
	for (int k = 0; k < ROWS; k++) {
		if (!strstr(rows[k].title, part))
			continue;
		printf("\n| %s |", rows[k].title);
		for (int i = 0; i < TARGETS; i++) {
			struct usage u;
			int occupancy;
			if (ready[i] && cell_of(&rows[k], i, &u, &occupancy))
				printf(" %d, %d, %d %% |", u.registers, u.local, occupancy);
			else
				printf(" - |");
			fflush(stdout);
		}
	}
	printf("\n");
}

// The cell of doc/gpu.md, "registers, local bytes, occupancy %"; false: "-" or none.
static bool told(const char *title, int device, int *registers, int *local, int *occupancy)
{
	const char *src = getenv("srcdir");
	char path[1000], line[2000], mark[200];
	bool found = false;

	snprintf(path, sizeof path, "%s/doc/gpu.md", src ? src : ".");
	snprintf(mark, sizeof mark, "| %s |", title);
	FILE *f = fopen(path, "r");
	while (f && !found && fgets(line, sizeof line, f)) {
		char *cell = line + strlen(mark) - 1;
		if (strncmp(line, mark, strlen(mark)))
			continue;
		for (int i = 0; i < device && cell; i++)
			cell = strchr(cell + 1, '|');
		found = cell && sscanf(cell, "| %d, %d, %d %%", registers, local, occupancy) == 3;
	}
	if (f)
		fclose(f);
	return found;
}

// Other versions of compilers may use a few registers more or less.
static bool alike(int a, int b)
{
	const int much = a / 4 > 16 ? a / 4 : 16;

	return a - b <= much && b - a <= much;
}

static void check_cell(const struct row *r, int device)
{
	int registers = 0, local = 0, said = 0, occupancy;
	struct usage u;

	if (!cell_of(r, device, &u, &occupancy))
		return;
	const bool is = told(r->title, device, &registers, &local, &said);
	ok(is && !u.spilled && occupancy >= r->min && alike(u.registers, registers) &&
		   u.local == local && (!r->wide || u.wide),
	   "%s, %s: %d wide loads, %d registers, %d local, %d %% of the warps, %d at least, %d spilled; doc/gpu.md says %d, %d, %d %%",
	   targets[device].name, r->title, u.wide, u.registers, u.local, occupancy, r->min,
	   u.spilled, registers, local, said);
}

static const char *setting(const struct yoke_setting *s)
{
	return !strcmp(s->name, "matmul") && tf32 ? "tf32" : s->def;
}

enum { EACH_TEXT = 197 }; // one of that many is selected

// All texts requested as device i, and the compiled ones: everything, or texts whose names contain
// `part`, or the seed's sample.
static void check_target(int i, const char *how, const char *part)
{
	int all = 0, compiled = 0, kernels = 0;

	for (const struct text *t = texts; t; t = t->next) {
		char name[300];
		if (t->device != i)
			continue;
		all++;
		const bool turn = tap_long() || ((uint64_t)all + tap_seed_value()) % EACH_TEXT == 0;
		if (*part ? strstr(name_of(t, name, sizeof name), part) != NULL : turn)
			judge(t, &compiled, &kernels);
	}
	ok(all || *part, "%s, by %s: %d of %d texts compiled, with %d kernels", targets[i].name,
	   how, compiled, all, kernels);
	for (int k = 0; k < ROWS && !*part; k++) {
		char turn[200];
		snprintf(turn, sizeof turn, "%s %s", targets[i].name, rows[k].title);
		if (tap_turn(turn, 9))
			check_cell(&rows[k], i);
	}
}

int main(int argc, char **argv)
{
	struct yoke_host host = *yk_host();
	struct yk_arena memory = { 0 };
	static struct yk_case c;
	bool ready[TARGETS] = { false };
	const char *how[TARGETS];
	uint32_t n = 0;
	// For interactive use: "--table" and a substring of the row titles; or a target and a
	// substring of the text's name.
	const bool table = argc > 1 && !strcmp(argv[1], "--table");
	const char *only = argc > 1 && !table ? argv[1] : "", *part = argc > 2 ? argv[2] : "";

	tap_seed();
	host.setting = setting;
	const bool probed = !yoke_plugin_init(YOKE_ABI, &host, &gpu) && !gpu->probe(&n);
	if (!ok(probed && n == TARGETS, "%u devices", n))
		return done();
	// the selected one, or the next one for which there is a compiler
	const bool one = !*only && !table && !tap_long();
	bool any = false;
	for (int k = 0; k < TARGETS && !(one && any); k++) {
		const int i = (int)((tap_seed_value() + (uint64_t)k) % TARGETS);
		if (*only && strcmp(only, targets[i].name))
			continue;
		if (!(ready[i] = target_ready(&targets[i], &how[i]))) {
			skip(targets[i].name, how[i]);
			continue;
		}
		any = true;
		gpu->queue_new((uint32_t)i, YOKE_QUEUE_COMPUTE, &queue[i]);
		gpu->segment_new((uint32_t)i, YOKE_SEGMENT_DEVICE, 1 << 20, &segment[i]);
		ask_usual((uint32_t)i);
		if (!table)
			ask_conform((uint32_t)i, !tap_long(), &c, &memory);
	}
	if (table)
		print_table(ready, part);
	for (int i = 0; i < TARGETS && !table; i++)
		if (ready[i])
			check_target(i, how[i], part);
	return done();
}
