// SPDX-License-Identifier: Apache-2.0
// A custom operation: the gated unit a b sigmoid(b) (Shazeer 2020) and its gradient, each with a
// kernel text for GPUs and a function for the CPU. The operation is checked, then trained for 200
// steps, or for the number given as argument. YOKE_BACKEND=opencl runs the kernel text.
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <yoke-nn.h>
#include <yoke-optim.h>

static const char forward_text[] =
	"#include \"prologue.h\"\n"
	"KERNEL void gate(GLOBAL uchar *y, ulong y0, GLOBAL uchar *a, ulong a0, GLOBAL uchar *b, ulong b0)\n"
	"{\n"
	"	ulong i = GLOBAL_ID(0);\n"
	"	float s = ((GLOBAL const float *)(b + b0))[i];\n"
	"	((GLOBAL float *)(y + y0))[i] = ((GLOBAL const float *)(a + a0))[i] * s / (1.0f + exp(-s));\n"
	"}\n";

static const char backward_text[] =
	"#include \"prologue.h\"\n"
	"KERNEL void gate_backward(GLOBAL uchar *da, ulong da0, GLOBAL uchar *db, ulong db0, GLOBAL uchar *a, ulong a0,\n"
	"	GLOBAL uchar *b, ulong b0, GLOBAL uchar *g, ulong g0)\n"
	"{\n"
	"	ulong i = GLOBAL_ID(0);\n"
	"	float x = ((GLOBAL const float *)(b + b0))[i], s = 1.0f / (1.0f + exp(-x)), h = ((GLOBAL const float *)(g + g0))[i];\n"
	"	((GLOBAL float *)(da + da0))[i] = h * x * s;\n"
	"	((GLOBAL float *)(db + db0))[i] = h * ((GLOBAL const float *)(a + a0))[i] * s * (1.0f + x * (1.0f - s));\n"
	"}\n";

// All results are as the first operand, of which the others have to have shape and dtype.
static int shape(const struct yoke_op_args *o, struct yoke_op_tensor *out)
{
	for (int i = 0; i < o->nin; i++) {
		bool same = o->in[i].dtype == yoke_f32 && o->in[i].rank == o->in[0].rank;
		for (int k = 0; same && k < o->in[i].rank; k++)
			same = o->in[i].dims[k] == o->in[0].dims[k];
		if (!same)
			return yoke_op_fail(o, YOKE_ESHAPE, "operands are f32 of one shape");
	}
	for (int i = 0; i < o->nout; i++)
		out[i] = o->in[0];
	return 0;
}

// The elements of a chunk.
static int64_t first_of(const struct yoke_op_args *o, int64_t chunk, int64_t chunks)
{
	int64_t n = 1;
	for (int k = 0; k < o->in[0].rank; k++)
		n *= o->in[0].dims[k];
	return n * chunk / chunks;
}

static int forward(const struct yoke_op_args *o, int64_t chunk, int64_t chunks)
{
	const float *a = o->in[0].data, *b = o->in[1].data;
	float *y = o->out[0].data;
	const int64_t end = first_of(o, chunk + 1, chunks);
	for (int64_t i = first_of(o, chunk, chunks); i < end; i++)
		y[i] = a[i] * b[i] / (1 + expf(-b[i]));
	return 0;
}

static int backward(const struct yoke_op_args *o, int64_t chunk, int64_t chunks)
{
	const float *a = o->in[0].data, *b = o->in[1].data, *g = o->in[2].data;
	float *da = o->out[0].data, *db = o->out[1].data;
	const int64_t end = first_of(o, chunk + 1, chunks);
	for (int64_t i = first_of(o, chunk, chunks); i < end; i++) {
		const float s = 1 / (1 + expf(-b[i]));
		da[i] = g[i] * b[i] * s;
		db[i] = g[i] * a[i] * s * (1 + b[i] * (1 - s));
	}
	return 0;
}

static int gate, gate_backward;

static int gradient(const struct yoke_op_args *o, yoke_tensor *const *in, yoke_tensor *const *out,
		    yoke_tensor *const *g, yoke_tensor **to)
{
	(void)o, (void)out;
	return yoke_op_call(gate_backward, 3, (yoke_tensor *[]){ in[0], in[1], g[0] }, 0, NULL, 2,
			    to);
}

// x [..,in] -> [..,hidden]: two linear layers and the gate.
static int unit_forward(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k,
			yoke_tensor **out)
{
	yoke_tensor *x[] = { yoke_call(yoke_module_at(m, 0), in[0]),
			     yoke_call(yoke_module_at(m, 1), in[0]) };
	(void)state;
	return n == 1 && k == 1 ? yoke_op_call(gate, 2, x, 0, NULL, 1, out) : YOKE_EINVAL;
}

static yoke_module *unit(int64_t in, int64_t hidden)
{
	static const struct yoke_module_class class = { .size = sizeof class,
							.name = "gated",
							.forward = unit_forward };
	yoke_module *m = yoke_module_new(&class, NULL);
	yoke_module_child(m, "up", yoke_nn_linear(in, hidden, 1));
	yoke_module_child(m, "gate", yoke_nn_linear(in, hidden, 1));
	return m;
}

int main(int argc, char **argv)
{
	const int steps = argc > 1 ? atoi(argv[1]) : 200;
	const int64_t n[] = { 9, 31 }, batch[] = { 64, 2 };
	struct yoke_op_def d = { .size = sizeof d,
				 .name = "example.gate",
				 .nin = 2,
				 .nout = 1,
				 .shape = shape,
				 .cpu = forward,
				 .text = forward_text,
				 .entry = "gate",
				 .gradient = gradient };
	gate = yoke_op_register(&d);
	d = (struct yoke_op_def){ .size = sizeof d,
				  .name = "example.gate_backward",
				  .nin = 3,
				  .nout = 2,
				  .shape = shape,
				  .cpu = backward,
				  .text = backward_text,
				  .entry = "gate_backward" };
	gate_backward = yoke_op_register(&d);
	yoke_tensor *x[] = { yoke_normal(yoke_f32, 2, n), yoke_normal(yoke_f32, 2, n),
			     yoke_normal(yoke_f32, 2, n) };
	yoke_eval(3, x);
	if (yoke_op_check(gate, 2, x, 0, NULL, 0) < 0 ||
	    yoke_op_check(gate_backward, 3, x, 0, NULL, 0) < 0)
		return fprintf(stderr, "%s\n", yoke_error()), 1;
	puts("checked");

	yoke_module *net =
		yoke_nn_sequential(2, (yoke_module *[]){ unit(2, 16), yoke_nn_linear(16, 1, 1) });
	yoke_tensor *p[8], *g[8];
	const char *names[8];
	const int count = yoke_module_parameters(net, 8, p, names);
	yoke_optim *o = yoke_optim_new("adamw", "lr=1e-2");
	int bad = yoke_optim_add(o, count, p, names, NULL) < 0;
	for (int t = 0; t < steps && !bad; t++) { // the product of two numbers
		float v;
		yoke_scope *s = yoke_scope_begin("step");
		yoke_tensor *in = yoke_normal(yoke_f32, 2, batch),
			    *want = yoke_prod(in, YOKE_AXIS(1) | YOKE_KEEP);
		yoke_tensor *loss = yoke_mse(yoke_call(net, in), want);
		bad = yoke_random_set(1, t) < 0 || yoke_grad(loss, count, p, g) < 0 ||
		      yoke_optim_step(o, count, g, NULL) < 0 || yoke_read(loss, &v, sizeof v) < 0;
		bad |= yoke_scope_end(s) < 0;
		if (t % 50 == 0 || t == steps - 1)
			printf("step %3d  loss %.4f\n", t, v);
	}
	yoke_optim_free(o);
	yoke_module_free(net);
	return bad ? fprintf(stderr, "%s\n", yoke_error()), 1 : 0;
}
