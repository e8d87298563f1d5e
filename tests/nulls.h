// SPDX-License-Identifier: Apache-2.0
// Builds arguments for every public function, for the program that tests/nulls.py writes: each
// call of a function here makes a new object. Objects that nothing frees live as long as the
// child process of a function's test.
#ifndef YK_NULLS_H
#define YK_NULLS_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include <yoke-cube.h>
#include <yoke-data.h>
#include <yoke-dist.h>
#include <yoke-engine.h>
#include <yoke-serve.h>
#include <yoke-fit.h>
#include <yoke-linalg.h>
#include <yoke-math.h>
#include <yoke-model.h>
#include <yoke-nn.h>
#include <yoke-observe.h>
#include <yoke-op.h>
#include <yoke-optim.h>
#include <yoke-pipeline.h>
#include <yoke-quant.h>
#include <yoke-run.h>
#include <yoke-tokenizer.h>
#include <yoke.h>

enum { MANY = 4 };

// ---- tensors ----

static const int64_t d22[YOKE_MAX_RANK] = { 2, 2 },
		     ones[YOKE_MAX_RANK] = { 1, 1, 1, 1, 1, 1, 1, 1 }, zeros[YOKE_MAX_RANK];
static const int axis_0[YOKE_MAX_RANK] = { 0 }, axis_1[YOKE_MAX_RANK] = { 1 };

static inline yoke_tensor *full(int dtype, int rank, int64_t a, int64_t b, int64_t c, int64_t d,
				double value)
{
	return yoke_full(dtype, rank, (int64_t[]){ a, b, c, d }, value);
}

static inline yoke_tensor *x22(void) { return full(yoke_f32, 2, 2, 2, 0, 0, 0.5); }
static inline yoke_tensor *v2(void) { return full(yoke_f32, 1, 2, 0, 0, 0, 0.5); }
static inline yoke_tensor *v1(void) { return full(yoke_f32, 1, 1, 0, 0, 0, 0.5); }
static inline yoke_tensor *x0(void) { return full(yoke_f32, 0, 0, 0, 0, 0, 0.5); }
static inline yoke_tensor *i22(void) { return full(yoke_i32, 2, 2, 2, 0, 0, 1); }
static inline yoke_tensor *ids(void) { return full(yoke_i64, 1, 2, 0, 0, 0, 1); }
static inline yoke_tensor *ids3(void) { return full(yoke_i64, 1, 3, 0, 0, 0, 0); }
static inline yoke_tensor *ids22(void) { return full(yoke_i64, 2, 2, 2, 0, 0, 1); }
static inline yoke_tensor *yes(void) { return full(yoke_bool, 2, 2, 2, 0, 0, 1); }
static inline yoke_tensor *x4(void) { return full(yoke_f32, 4, 2, 2, 2, 2, 0.5); }
static inline yoke_tensor *x3(void) { return full(yoke_f32, 3, 2, 2, 2, 0, 0.5); }
static inline yoke_tensor *number(void) { return yoke_scalar(1); }

static inline yoke_tensor *unit(void) // positive definite
{
	return yoke_add(x22(), yoke_cast(yoke_eq(yoke_iota(yoke_i32, 2, d22, 0),
						 yoke_iota(yoke_i32, 2, d22, 1)),
					 yoke_f32));
}

static inline yoke_tensor *variable(void)
{
	yoke_tensor *v = yoke_variable("v", yoke_f32, 2, d22);
	yoke_put(v, (float[]){ 1, 2, 3, 4 }, 4 * sizeof(float));
	return v;
}

// The gradients of a sum of variables.
static yoke_tensor *grew[2];
static inline yoke_tensor *grown(void)
{
	grew[0] = variable();
	grew[1] = variable();
	return yoke_sum(yoke_mul(grew[0], grew[1]), YOKE_ALL);
}
static inline yoke_tensor **grown_by(void) { return grew; }

static inline yoke_tensor **starts(void)
{
	yoke_tensor **list = calloc(MANY, sizeof *list);
	list[0] = list[1] = YOKE_NONE;
	return list;
}

static inline const char *where(void) { return "here"; }

// Several of them: lists that a call may change are also made anew.
#define LIST(name, one) \
	static inline yoke_tensor **name(void) \
	{ \
		yoke_tensor **list = calloc(MANY, sizeof *list); \
		for (int i = 0; i < MANY; i++) \
			list[i] = one(); \
		return list; \
	}
LIST(list22, x22)
LIST(list0, x0)
LIST(variables, variable)
LIST(numbers, number)
LIST(listv, v1)
LIST(list_ids, ids)

static inline yoke_tensor **room(void)
{
	return calloc(16, sizeof(yoke_tensor *));
}

static inline yoke_tensor *gone(void)
{
	yoke_tensor *t = yoke_variable("gone", yoke_f32, 2, d22);
	yoke_free(t);
	return t;
}

static yoke_context *elsewhere;
static inline yoke_context *other(void)
{
	return elsewhere ? elsewhere : (elsewhere = yoke_context_new("cpu"));
}

static inline yoke_tensor *foreign(void)
{
	yoke_context *here = yoke_use(other());
	yoke_tensor *t = yoke_variable("foreign", yoke_f32, 2, d22);
	yoke_use(here);
	return t;
}

// The argument for an operand: valid, or invalid as number `at` says.
enum { TENSOR_WAYS = 4, LIST_WAYS = 5, SIZE_WAYS = 5 };
static inline yoke_tensor *tensor(int at, yoke_tensor *good)
{
	switch (at) {
	case 0: return NULL;
	case 1: return YOKE_NONE;
	case 2: return gone();
	case 3: return foreign();
	}
	return good;
}

static inline yoke_tensor **tensors(int at, yoke_tensor **good)
{
	if (at == 0)
		return NULL;
	if (at > 0 && at < LIST_WAYS)
		good[0] = tensor(at - 1, NULL);
	return good;
}

// Invalid sizes.
static inline void *sized(int at, void *good, int bytes)
{
	const size_t size[] = { 0, 3, bytes, (size_t)-1 };
	if (at == 0)
		return NULL;
	if (at > 0 && at < SIZE_WAYS && bytes == sizeof(uint32_t))
		*(uint32_t *)good = (uint32_t)size[at - 1];
	else if (at > 0 && at < SIZE_WAYS)
		*(size_t *)good = size[at - 1];
	return good;
}

// ---- structs ----

// A struct with its size and these members.
#define STRUCT(name, type, ...) \
	static inline struct type *name(void) \
	{ \
		struct type *s = malloc(sizeof *s); \
		*s = (struct type){ .size = sizeof *s, ##__VA_ARGS__ }; \
		return s; \
	}
// An array of them, of which only the first has a size.
#define STRUCTS(name, type) \
	static inline struct type *name(void) \
	{ \
		struct type *s = calloc(16, sizeof *s); \
		s->size = sizeof *s; \
		return s; \
	}

static int read_item(void *arg, int64_t n, struct yoke_item *const *s)
{
	(void)arg;
	for (int64_t i = 0; i < n; i++)
		for (int k = 0; k < 2; k++)
			((float *)s[i]->to[0])[k] = (float)(s[i]->number * (k + 1) % 7);
	return 0;
}

static const struct yoke_field pair = {
	.size = sizeof pair, .name = "x", .dtype = yoke_f32, .rank = 1, .dims = { 2 }
};
STRUCT(field, yoke_field, .name = "x", .dtype = yoke_f32, .rank = 1, .dims = { 2 })
STRUCT(set_options, yoke_dataset_options, .name = "pairs", .count = 16, .fields = 1, .field = &pair,
       .read = read_item)
STRUCTS(fields, yoke_field)
STRUCT(item, yoke_item)
STRUCT(position, yoke_position)
STRUCT(loader_stats, yoke_loader_stats)
STRUCT(group_state, yoke_group_state)
STRUCT(loss, yoke_loss)
STRUCT(stft_options, yoke_stft_options, .hop = 1)
STRUCT(layer, yoke_recurrent, .w_ih = x22(), .w_hh = x22(), .b_ih = v2(), .b_hh = v2())
STRUCT(recurrent_options, yoke_nn_recurrent_options, .in = 2, .units = 2)
static inline yoke_tensor *ones64(void) { return full(yoke_i64, 2, 2, 2, 0, 0, 1); }
static inline yoke_tensor *counts64(void) { return full(yoke_i64, 1, 2, 0, 0, 0, 2); }
STRUCT(conv_options, yoke_conv_options)
STRUCT(pool_options, yoke_pool_options, .window = { 1, 1 })
STRUCT(fold_options, yoke_pool_options, .window = { 1, 1 }, .axes = 2)
STRUCT(interpolate, yoke_interpolate, .scale = { 1, 1, 1 })
STRUCT(embedding_bag, yoke_embedding_bag, .padding = -1, .offsets = YOKE_NONE, .weights = YOKE_NONE)
STRUCT(load, yoke_module_load)
STRUCT(attention, yoke_nn_attention_options, .width = 4, .heads = 2)
STRUCT(schedule, yoke_profile_schedule, .active = 1)
STRUCTS(profile_rows, yoke_profile_row)
STRUCTS(profile_ranges, yoke_profile_range)
STRUCTS(holders, yoke_profile_holder)
STRUCT(quality, yoke_profile_quality)
STRUCT(limits, yoke_limits)
STRUCT(counters, yoke_counters)
STRUCT(leak, yoke_leak)
STRUCT(sample, yoke_sample)
STRUCT(host_sample, yoke_host_sample)
STRUCT(recorder_options, yoke_recorder_options, .path = "telemetry.jsonl", .seconds = 3600)
STRUCT(op_args, yoke_op_args, .name = "nulls.op")
STRUCT(step, yoke_step, .scale = YOKE_NONE, .skip = YOKE_NONE)
STRUCT(pipeline_stats, yoke_pipeline_stats)
STRUCT(run_options, yoke_run_options)
STRUCT(moments, yoke_moments)
STRUCT(scaler_options, yoke_scaler_options)
STRUCT(scaler_stats, yoke_scaler_stats)
STRUCT(scaler_state, yoke_scaler_state, .scale = 2, .left = 1)
STRUCT(stats, yoke_stats)
STRUCTS(fallbacks, yoke_fallback)
STRUCT(fit_end, yoke_fit_end)
STRUCT(cube_info, yoke_cube_info)
STRUCT(new_cube, yoke_cube_info, .lines = 2, .samples = 2, .bands = 2, .type = "f32",
       .interleave = "bip", .ignore = NAN)
STRUCT(adamw, yoke_adamw, .lr = number(), .c1 = number(), .c2 = number(), .scale = YOKE_NONE,
       .skip = YOKE_NONE, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8)
STRUCT(lamb, yoke_lamb, .lr = number(), .c1 = number(), .c2 = number(), .scale = YOKE_NONE,
       .skip = YOKE_NONE, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8)
STRUCT(sgd, yoke_sgd, .lr = number(), .first = number(), .scale = YOKE_NONE, .skip = YOKE_NONE,
       .momentum = 0.5)
STRUCT(profile_options, yoke_profile_options, .active = 1,
       .flags = YOKE_PROFILE_SHAPES | YOKE_PROFILE_MEMORY)

static inline struct yoke_resolvent *resolvent(void)
{
	struct yoke_resolvent *s = malloc(sizeof *s);
	*s = (struct yoke_resolvent)YOKE_RESOLVENT_INIT;
	return s;
}

// ---- modules ----

static int forward_same(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k,
			yoke_tensor **out)
{
	(void)m;
	(void)state;
	if (n < 1 || k < 1)
		return YOKE_EINVAL;
	return (out[0] = yoke_relu(in[0])) ? 0 : YOKE_EINVAL;
}
static const struct yoke_module_class same = { .size = sizeof same,
					       .name = "same",
					       .forward = forward_same };
STRUCT(module_class, yoke_module_class, .name = "same", .forward = forward_same)

static inline yoke_module *linear(void) { return yoke_nn_linear(2, 2, 1); }
static inline yoke_module *plain(void) { return yoke_module_new(&same, NULL); }
static inline yoke_module *stateful(void)
{
	return yoke_module_new(&same, (void *)(uintptr_t)&same);
}
static inline yoke_module **modules(void)
{
	yoke_module **list = calloc(MANY, sizeof(yoke_module *));
	for (int i = 0; i < MANY; i++)
		list[i] = linear();
	return list;
}
static inline yoke_module *chain(void) { return yoke_nn_sequential(2, modules()); }
static int each(void *arg, const char *path, yoke_tensor *t, unsigned flags)
{
	(void)arg;
	(void)path;
	(void)t;
	(void)flags;
	return 0;
}

// ---- data ----

static inline yoke_dataset *set(void) { return yoke_dataset_new(set_options()); }
static inline yoke_dataset *pixels(void)
{
	return yoke_dataset_synthetic("count=2 lines=4 samples=4 bands=3");
}
static inline yoke_dataset **sets(void)
{
	yoke_dataset **list = calloc(MANY, sizeof(yoke_dataset *));
	for (int i = 0; i < MANY; i++)
		list[i] = set();
	return list;
}
static inline yoke_loader *loader(void) { return yoke_loader_new(set(), "batch=2 workers=0"); }
static inline yoke_tensor **batch(void)
{
	yoke_tensor **list = calloc(MANY, sizeof *list);
	list[0] = yoke_variable("batch", yoke_f32, 2, d22);
	return list;
}
static inline int map_same(void *arg, const struct yoke_item *from, struct yoke_item *to)
{
	(void)arg;
	(void)from;
	memset(to->to[0], 0, 2 * sizeof(float));
	return 0;
}
static inline void hear(void *arg, const struct yoke_data_error *e)
{
	(void)arg;
	(void)e;
}
static inline void nothing(void *arg) { (void)arg; }
static inline void **pointers(void)
{
	void **list = calloc(MANY, sizeof(void *));
	for (int i = 0; i < MANY; i++)
		list[i] = calloc(64, sizeof(double));
	return list;
}
static inline double *doubles(void)
{
	double *d = malloc(16 * sizeof(double));
	for (int i = 0; i < 16; i++)
		d[i] = 1;
	return d;
}
static inline float *floats(void)
{
	float *d = malloc(64 * sizeof(float));
	for (int i = 0; i < 64; i++)
		d[i] = (float)i;
	return d;
}
static inline int64_t *numbers64(void)
{
	int64_t *d = calloc(64, sizeof(int64_t));
	return d;
}

// ---- cubes ----

static inline const char *cube_path(void)
{
	yoke_cube_write("cube.hdr", new_cube(), floats());
	return "cube.hdr";
}
static inline yoke_cube *cube(void) { return yoke_cube_open(cube_path(), NULL); }
static inline const char **cube_paths(void)
{
	const char **list = calloc(MANY, sizeof *list);
	for (int i = 0; i < MANY; i++)
		list[i] = cube_path();
	return list;
}
static inline const char **label_paths(void)
{
	struct yoke_cube_info *one = new_cube();
	one->bands = 1;
	yoke_cube_write("label.hdr", one, floats());
	const char **list = calloc(MANY, sizeof *list);
	for (int i = 0; i < MANY; i++)
		list[i] = "label.hdr";
	return list;
}
STRUCT(cube_files, yoke_cube_files, .n = 1, .path = cube_paths(), .label = label_paths(),
       .mask = label_paths())

static inline const char *cube_npy(void)
{
	yoke_cube_write("cube.npy", new_cube(), floats());
	return "cube.npy";
}
static inline yoke_dataset *classes(void)
{
	FILE *f = fopen("classes.csv", "w");
	fputs("kind\na\nb\n", f);
	fclose(f);
	return yoke_dataset_open("classes.csv", "columns=kind:category");
}

// ---- ranks ----

static inline yoke_group *world(void) { return yoke_group_world(); }
static inline int of_rank(yoke_group *g, void *arg)
{
	(void)g;
	(void)arg;
	return 0;
}
static char *const command[] = { (char *)"true", NULL };

// ---- profiles ----

static inline yoke_profile *profile(void) { return yoke_profile_new(profile_options()); }
static inline yoke_leaks *leaks(void) { return yoke_leaks_begin(); }
static inline yoke_recorder *recorder(void) { return yoke_recorder_new(recorder_options()); }
static inline char *text(void) { return calloc(1, 4096); }

// ---- ops ----

static int op_shape(const struct yoke_op_args *a, struct yoke_op_tensor *out)
{
	out[0].dtype = a->in[0].dtype;
	out[0].rank = a->in[0].rank;
	memcpy(out[0].dims, a->in[0].dims, sizeof out[0].dims);
	return 0;
}
static int op_make(const struct yoke_op_args *a, yoke_tensor *const *in, yoke_tensor **out)
{
	(void)a;
	return (out[0] = yoke_mul(in[0], yoke_const(2))) ? 0 : YOKE_EINVAL;
}
static int op_gradient(const struct yoke_op_args *a, yoke_tensor *const *in,
		       yoke_tensor *const *out, yoke_tensor *const *g, yoke_tensor **to)
{
	(void)a;
	(void)in;
	(void)out;
	return (to[0] = yoke_mul(g[0], yoke_const(2))) ? 0 : YOKE_EINVAL;
}
static inline struct yoke_op_def *op_def(void)
{
	static int count;
	static char name[64][32];
	snprintf(name[count % 64], sizeof name[0], "nulls.op%d", count);
	struct yoke_op_def *d = malloc(sizeof *d);
	*d = (struct yoke_op_def){ .size = sizeof *d,
				   .name = name[count++ % 64],
				   .nin = 1,
				   .nout = 1,
				   .nattr = 1,
				   .shape = op_shape,
				   .decompose = op_make,
				   .gradient = op_gradient };
	return d;
}
static inline int op(void) { return yoke_op_register(op_def()); }
static inline union yoke_attr *attributes(void) { return calloc(16, sizeof(union yoke_attr)); }

// ---- optimizers ----

static const char *const names[] = { "a", "b", "c", "d" };
static inline yoke_optim *fresh(void) { return yoke_optim_new("adamw", "lr=0.1 check=1"); }
static inline yoke_optim *optim(void)
{
	yoke_optim *o = fresh();
	yoke_optim_add(o, 2, variables(), names, NULL);
	return o;
}
static inline yoke_optim *stepped(void)
{
	yoke_optim *o = optim();
	yoke_optim_step(o, 2, list22(), NULL);
	return o;
}
static inline yoke_tensor **moved(void)
{
	yoke_context *here = yoke_use(other());
	yoke_tensor **list = variables();
	yoke_use(here);
	return list;
}
static inline yoke_scaler *scaler(void) { return yoke_scaler_new(NULL); }
static inline yoke_scaler *checked(void)
{
	yoke_tensor *norm, *skip;
	yoke_scaler *s = scaler();
	yoke_scaler_check(s, 1, NULL, list22(), &norm, &skip);
	return s;
}

static int next_batch(void *arg, int64_t part, int max, yoke_tensor **in)
{
	(void)arg;
	(void)max;
	in[0] = x22();
	return part < 2;
}
static yoke_tensor *fit_loss(void *arg, yoke_module *net, int n, yoke_tensor *const *in)
{
	(void)arg;
	(void)n;
	return yoke_mean(yoke_call(net, in[0]), YOKE_ALL);
}
STRUCT(fit, yoke_fit, .net = linear(), .optim = fresh(), .steps = 2, .next = next_batch,
       .loss = fit_loss)

// ---- statistics and pipelines ----

static inline yoke_statistic *statistic(void)
{
	yoke_statistic *s = yoke_statistic_new(2, 0);
	yoke_statistic_add(s, x22(), YOKE_NONE);
	return s;
}
static int64_t node_channels(const double *key, int64_t in, char *why, size_t size)
{
	(void)key;
	(void)why;
	(void)size;
	return in;
}
static int node_dims(const double *key, int64_t in, int state, int64_t *dims)
{
	(void)key;
	(void)in;
	(void)state;
	dims[0] = 1;
	return 1;
}
static int node_fit(const struct yoke_node_fit *f, double *const *state, char *why, size_t size)
{
	(void)f;
	(void)why;
	(void)size;
	state[0][0] = 1;
	return 0;
}
static yoke_tensor *node_forward(const struct yoke_node_call *c, yoke_tensor *x)
{
	(void)c;
	return yoke_relu(x);
}
static inline struct yoke_node_type *node_type(void)
{
	static int count;
	static char name[64][32];
	snprintf(name[count % 64], sizeof name[0], "node%d", count);
	struct yoke_node_type *t = malloc(sizeof *t);
	*t = (struct yoke_node_type){ .size = sizeof *t,
				      .name = name[count++ % 64],
				      .states = 1,
				      .state = { "w" },
				      .channels = node_channels,
				      .dims = node_dims,
				      .fit = node_fit,
				      .forward = node_forward };
	return t;
}
#define PIPELINE "{\"nodes\": [{\"name\": \"scale\", \"type\": \"standard\"}, {\"name\": \"logit\", \"type\": \"linear\", " \
	"\"k\": 1, \"train\": true}], \"losses\": [{\"type\": \"bce\", \"of\": \"logit\"}], " \
	"\"trainer\": {\"max_epochs\": 1, \"enable_progress_bar\": false}}"
static inline yoke_pipeline *pipeline(void)
{
	yoke_pipeline *p = yoke_pipeline_new(PIPELINE);
	yoke_pipeline_fit(p, pixels(), NULL);
	return p;
}
static inline yoke_pipeline *unfitted(void) { return yoke_pipeline_new(PIPELINE); }
static inline yoke_tensor *pixel(void) { return full(yoke_f32, 2, 2, 3, 0, 0, 1); }
static inline unsigned char *labels(void)
{
	unsigned char *l = calloc(64, 1);
	l[1] = 1;
	return l;
}
STRUCT(fitting, yoke_fitting, .set = pixels())
STRUCT(training, yoke_training, .train = pixels())

// ---- files, runs ----

static inline const char *weights(void)
{
	yoke_module_save(linear(), "weights.safetensors");
	return "weights.safetensors";
}
static inline yoke_module *below(yoke_module *parent, const char *name, yoke_module *child)
{
	yoke_module_child(parent, name, child);
	return child;
}
// A llama of one layer in a folder.
static inline const char *model_folder(void)
{
	yoke_module *top = plain(), *m = below(top, "model", plain()),
		    *layer = below(below(m, "layers", plain()), "0", plain());
	yoke_module *attention = below(layer, "self_attn", plain()),
		    *mlp = below(layer, "mlp", plain());
	const char *products[] = { "q_proj", "k_proj", "v_proj", "o_proj" },
		   *inner[] = { "gate_proj", "up_proj", "down_proj" };
	mkdir("model", 0777);
	FILE *f = fopen("model/config.json", "w");
	fputs("{\"model_type\": \"llama\", \"vocab_size\": 4, \"hidden_size\": 2, \"num_hidden_layers\": 1, \"intermediate_size\": 2, "
	      "\"num_attention_heads\": 1, \"max_position_embeddings\": 8, \"tie_word_embeddings\": true}",
	      f);
	fclose(f);
	below(m, "embed_tokens", yoke_nn_embedding(4, 2));
	below(m, "norm", yoke_nn_rms_norm(2, 1e-5));
	below(layer, "input_layernorm", yoke_nn_rms_norm(2, 1e-5));
	below(layer, "post_attention_layernorm", yoke_nn_rms_norm(2, 1e-5));
	for (int i = 0; i < 4; i++)
		below(attention, products[i], yoke_nn_linear(2, 2, 0));
	for (int i = 0; i < 3; i++)
		below(mlp, inner[i], yoke_nn_linear(2, 2, 0));
	yoke_module_save(top, "model/model.safetensors");
	yoke_module_free(top);
	return "model";
}
static const char words_json[] =
	"{\"version\": \"1.0\", \"added_tokens\": [], \"pre_tokenizer\": {\"type\": \"WhitespaceSplit\"}, "
	"\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0, \"b\": 1, \"u\": 2}, \"unk_token\": \"u\"}}";
static inline yoke_tokenizer *tokenizer(void)
{
	return yoke_tokenizer_parse(words_json, sizeof words_json - 1, "words");
}
static inline yoke_tokenizer *trained(void)
{
	return yoke_tokenizer_train((const char *const[]){ "a b" }, NULL, 1, 260);
}
static inline const char *tokenizer_folder(void)
{
	mkdir("tokenizer", 0777);
	FILE *f = fopen("tokenizer/tokenizer.json", "w"),
	     *chat = fopen("tokenizer/chat_template.jinja", "w");
	fputs(words_json, f);
	fputs("{{ messages }}", chat);
	fclose(f);
	f = fopen("tokenizer/tokenizer_config.json", "w");
	fputs("{\"bos_token\": \"a\", \"pad_token\": \"b\"}", f);
	fclose(f);
	fclose(chat);
	return "tokenizer";
}
static inline yoke_tokenizer *chat_tokenizer(void)
{
	return yoke_tokenizer_open(tokenizer_folder());
}
static inline yoke_chat_template *chat_template(void)
{
	return yoke_chat_template_parse("x", 1, "x");
}
static inline struct yoke_chat_message *chat_message(void)
{
	static struct yoke_chat_message m;
	m = (struct yoke_chat_message){ "user", "x" };
	return &m;
}
static inline struct yoke_text_span *text_span(void)
{
	static struct yoke_text_span s;
	s = (struct yoke_text_span){ 1, 2, 0 };
	return &s;
}
static inline struct yoke_text_span **text_spans(void)
{
	static struct yoke_text_span *s;
	return &s;
}
static inline struct yoke_chat_options *chat_options(void)
{
	static struct yoke_chat_options o;
	o = (struct yoke_chat_options){ .size = sizeof o, .tools = "[]", .variables = "{}" };
	return &o;
}
static inline yoke_model *model(void) { return yoke_model_open(model_folder(), NULL); }
static inline yoke_tensor *lengths(void) { return full(yoke_i32, 1, 2, 0, 0, 0, 1); }
static inline yoke_model *model_with_words(void)
{
	model_folder();
	FILE *f = fopen("model/tokenizer.json", "w");
	fputs(words_json, f);
	fclose(f);
	return model();
}
static inline struct yoke_lora_options *lora_options(void)
{
	static struct yoke_lora_options o;
	o = (struct yoke_lora_options){ .size = sizeof o, .rank = 1, .alpha = 1, .targets = "q" };
	return &o;
}
static inline struct yoke_text_options *text_options(void)
{
	static struct yoke_text_options o;
	o = (struct yoke_text_options){
		.size = sizeof o, .context = 1, .text = "a b a b", .bytes = 7
	};
	return &o;
}
static inline yoke_model *adapted(void)
{
	yoke_model *m = model();
	yoke_model_adapt(m, lora_options());
	return m;
}
static inline const char *adapter_folder(void)
{
	yoke_model_save_adapter(adapted(), "adapter", 1);
	return "adapter";
}
STRUCT(embed_options, yoke_embed_options)
STRUCT(onnx_options, yoke_onnx_options)
STRUCT(generation_options, yoke_generation_options)
static inline const int32_t *const *prompts(void)
{
	static const int32_t prompt[] = { 1 };
	static const int32_t *all[64]; // as many as the lists with a hole that are made from it
	all[0] = prompt;
	return all;
}
static inline const int64_t *counts(void)
{
	static const int64_t one = 1;
	return &one;
}
static inline yoke_generation *generation(void)
{
	return yoke_generation_new(model(), 1, prompts(), counts(), generation_options());
}
STRUCT(engine_options, yoke_engine_options)
STRUCT(engine_event, yoke_engine_event)
STRUCT(engine_stats, yoke_engine_stats)
static inline struct yoke_engine_request *engine_request(void)
{
	static const int32_t prompt[] = { 1 };
	static struct yoke_engine_request r;
	r = (struct yoke_engine_request){
		.size = sizeof r, .prompt = prompt, .count = 1, .tokens = 1
	};
	return &r;
}
STRUCT(server_options, yoke_server_options)
STRUCT(serve_options, yoke_serve_options)
static inline int serve_call(void *user, const struct yoke_serve_array *in,
			     struct yoke_serve_array *out)
{
	(void)user;
	(void)in;
	(void)out;
	return YOKE_EFAILED;
}
static inline yoke_server *idle_server(void)
{
	return yoke_server_new(server_options());
}
static inline yoke_server *server(void) // that listens; yoke_server_run returns at once
{
	yoke_server *s = idle_server();
	yoke_server_start(s);
	yoke_server_stop(s);
	return s;
}
static inline yoke_engine *engine(void) // with request 1
{
	yoke_engine *e = yoke_engine_new(model(), engine_options());
	yoke_engine_submit(e, engine_request());
	return e;
}
STRUCT(model_info, yoke_model_info)
STRUCT(model_options, yoke_model_options)
static inline const char *states(void)
{
	yoke_optim_save(optim(), "states.safetensors");
	return "states.safetensors";
}
static inline const char *statistics(void)
{
	yoke_statistic_save(statistic(), "statistic.safetensors");
	return "statistic.safetensors";
}
static inline const char *fitted(void)
{
	yoke_pipeline_save(pipeline(), "pipeline.safetensors");
	return "pipeline.safetensors";
}
static inline const char *new_folder(void)
{
	static int count;
	static char name[32];
	snprintf(name, sizeof name, "folder%d.%d", (int)getpid(), count++);
	return name;
}
static inline yoke_run *run(void) { return yoke_run_open(new_folder(), NULL); }
static inline int history(void) { return yoke_memory_record(1); }

// ---- the cases ----

// Runs right before a call: there is no error, or an earlier call's error, which returned the NULL.
static bool after_error;
static inline void before(void)
{
	yoke_error_clear();
	if (after_error)
		yoke_setting_set("no.such", "earlier");
}

enum { MUST, MAY, FINE }; // must fail; may fail, without a crash; must succeed
struct way {
	const char *what;
	int verdict;
};
struct function {
	const char *name;
	int (*call)(int way); // 1: it failed; 0: not; -1: it cannot report failure
	const struct way *way;
	int ways;
};

// The results of a child process that tests a function.
struct shown {
	int way, bad;
	char why[1024];
};

static inline void judge(const struct function *f, struct shown *s)
{
	const struct way *w = &f->way[s->way];
	for (int k = 0; k < 2; k++) {
		after_error = k;
		const int failed = f->call(s->way), code = yoke_error_code();
		const bool told = failed == 1 && code < 0 && *yoke_error() &&
				  (!k || strstr(yoke_error(), "no.such"));
		if (w->verdict == MAY || failed < 0 || (w->verdict == MUST ? told : !failed || k))
			continue;
		s->bad++;
		snprintf(s->why + strlen(s->why), sizeof s->why - strlen(s->why),
			 "\n# %s%s: %s instead of %s: %s %s", w->what, k ? " after an error" : "",
			 failed ? "failure" : "success",
			 w->verdict == MUST ? "an error" : "success", yoke_error_name(code),
			 yoke_error());
	}
}

// All variants of one function, each in a child that continues with the next one unless it crashes.
static inline void try_all(const struct function *f)
{
	struct shown *s =
		mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED)
		exit(99);
	while (s->way < f->ways) {
		int status = 0;
		const pid_t pid = fork();
		if (pid == 0) {
			alarm(300); // catches a hang
			signal(SIGPIPE, SIG_DFL);
			for (; s->way < f->ways; s->way++)
				judge(f, s);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		if (s->way < f->ways) { // it ended there
			s->bad++;
			snprintf(s->why + strlen(s->why), sizeof s->why - strlen(s->why),
				 "\n# %s: ended by %s %d", f->way[s->way].what,
				 WIFSIGNALED(status) ? "signal" : "exit status",
				 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
			s->way++;
		}
	}
	ok(!s->bad, "%s, %d calls%s", f->name, f->ways, s->why);
	munmap(s, sizeof *s);
}

#endif
