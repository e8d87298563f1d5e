// SPDX-License-Identifier: Apache-2.0
// Measures each distinct convolution of ResNet-18 and ResNet-50 (224 x 224, f32), forward and both
// gradients, in turn with matrix products of the same M, N and K.
// Forward and the gradient by x: M is O or C, N the positions of the whole batch, K taps times
// channels (for CONV_X, the mean number per position). Gradient by w: M is O, N the taps, K the
// positions. Arguments: the batch [8]; "y", "dx", "dw" or "all" [all]; a shape's index or -1 for
// all [-1]; 1 for the implicit product where there are several implementations [0].
// YOKE_CPU_ISA and YOKE_THREADS apply.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operand.h"
#include "rounds.h"

enum { ROUNDS = 9, WARM_UP = 2 };

static const struct {
	int64_t channels, outputs, size, taps, stride, pad;
} shapes[] = {
	{ 3, 64, 224, 7, 2, 3 },
	{ 64, 64, 56, 3, 1, 1 },
	{ 64, 128, 56, 3, 2, 1 },
	{ 64, 128, 56, 1, 2, 0 },
	{ 128, 128, 28, 3, 1, 1 },
	{ 128, 256, 28, 3, 2, 1 },
	{ 128, 256, 28, 1, 2, 0 },
	{ 256, 256, 14, 3, 1, 1 },
	{ 256, 512, 14, 3, 2, 1 },
	{ 256, 512, 14, 1, 2, 0 },
	{ 512, 512, 7, 3, 1, 1 },
	// ResNet-50, without those above
	{ 64, 64, 56, 1, 1, 0 },
	{ 64, 256, 56, 1, 1, 0 },
	{ 256, 64, 56, 1, 1, 0 },
	{ 256, 128, 56, 1, 1, 0 },
	{ 128, 128, 56, 3, 2, 1 },
	{ 128, 512, 28, 1, 1, 0 },
	{ 256, 512, 56, 1, 2, 0 },
	{ 512, 128, 28, 1, 1, 0 },
	{ 512, 256, 28, 1, 1, 0 },
	{ 256, 256, 28, 3, 2, 1 },
	{ 256, 1024, 14, 1, 1, 0 },
	{ 512, 1024, 28, 1, 2, 0 },
	{ 1024, 256, 14, 1, 1, 0 },
	{ 1024, 512, 14, 1, 1, 0 },
	{ 512, 512, 14, 3, 2, 1 },
	{ 512, 2048, 7, 1, 1, 0 },
	{ 1024, 2048, 14, 1, 2, 0 },
	{ 2048, 512, 7, 1, 1, 0 },
};

// An operand with its own memory.
static struct yoke_view made(struct yk_segment *s, int rank, const int64_t *dims)
{
	const struct yoke_view v = operand_view(s, yoke_f32, rank, dims);

	*s = operand_memory((uint64_t)(v.dims[0] * v.strides[0]) * sizeof(float), yoke_f32);
	return v;
}

struct timed {
	struct yoke_op op;
	struct yoke_view in[2], out;
	struct yk_segment memory[4];
	struct yk_prepared *prepared;
	const char *name; // of the implementation
	double seconds[ROUNDS];
};

// skip: take the implementation after the first.
static void prepare(const struct yk_isa *isa, struct timed *t, int code, bool skip)
{
	const struct yk_kernel *k = isa->op[code];

	t->op.size = sizeof t->op;
	t->op.code = (uint16_t)code;
	t->op.nin = 2;
	t->op.nout = 1;
	t->op.in = t->in;
	t->op.out = &t->out;
	const uint64_t can = k->can(&t->op), left = skip && can & (can - 1) ? can & (can - 1) : can;
	uint32_t impl = 0;
	if (!can) {
		fprintf(stderr, "bench/conv: the kernel does not take it\n");
		exit(1);
	}
	while (!(left >> impl & 1))
		impl++;
	t->name = k->impl[impl];
	const int64_t bytes = k->workspace ? (int64_t)k->workspace(&t->op, impl) : 0,
		      words = bytes / 4 + 1;
	t->op.workspace = made(&t->memory[3], 1, &words);
	if (yk_kernel_prepare(k, &t->op, impl, &t->prepared) < 0)
		exit(1);
}

static double once(const struct timed *t)
{
	const double from = yk_seconds();

	if (yk_kernel_run(t->prepared, &t->op) < 0)
		exit(1);
	return yk_seconds() - from;
}

static void done(struct timed *t)
{
	yk_kernel_release(t->prepared);
	for (int i = 0; i < 4; i++)
		free(t->memory[i].base);
}

// A convolution, and the matrix product of the same size.
static void measure(const struct yk_isa *isa, const char *what, int code, const int64_t *x,
		    const int64_t *w, const int64_t *y, int64_t stride, int64_t pad, bool skip)
{
	struct timed conv = { .op = { .code = 0 } }, product = { .op = { .code = 0 } };
	const int64_t *of[3] = { code == YOKE_OP_CONV_X ? y : x, code == YOKE_OP_CONV_W ? y : w,
				 code == YOKE_OP_CONV ? y : code == YOKE_OP_CONV_X ? x : w };
	const int64_t taps = w[2] * w[3], out = y[0] * y[2] * y[3];
	int64_t m = w[0], n = out, k = w[1] * taps;
	double ratio[ROUNDS];

	if (code == YOKE_OP_CONV_X)
		m = w[1], n = x[0] * x[2] * x[3], k = w[0] * taps / stride / stride;
	else if (code == YOKE_OP_CONV_W)
		n = w[1] * taps, k = out;
	k = k > 0 ? k : 1;
	for (int i = 0; i < 2; i++)
		conv.in[i] = made(&conv.memory[i], 4, of[i]);
	conv.out = made(&conv.memory[2], 4, of[2]);
	conv.op.attr[conv.op.nattr++].i = 1;
	for (int i = 0; i < 2; i++)
		conv.op.attr[conv.op.nattr++].i =
			stride | 1 << 16 | pad << 32 | (int64_t)((uint64_t)pad << 48);
	for (int i = 0; i < 2; i++)
		conv.op.attr[conv.op.nattr++].i = code == YOKE_OP_CONV_W ? w[2 + i] : x[2 + i];
	prepare(isa, &conv, code, skip);
	product.in[0] = made(&product.memory[0], 2, (int64_t[]){ m, k });
	product.in[1] = made(&product.memory[1], 2, (int64_t[]){ k, n });
	product.out = made(&product.memory[2], 2, (int64_t[]){ m, n });
	product.op.nattr = 1;
	product.op.attr[0].i = yoke_f32;
	prepare(isa, &product, YOKE_OP_CONTRACT, false);
	for (int i = -WARM_UP; i < ROUNDS; i++) {
		const double a = once(&conv), b = once(&product);
		if (i < 0)
			continue;
		conv.seconds[i] = a;
		product.seconds[i] = b;
		ratio[i] = b / a;
	}
	const double middle = median(ratio, ROUNDS), t = median(conv.seconds, ROUNDS);
	qsort(ratio, ROUNDS, sizeof *ratio, by_value);
	printf("%-4s %4lld %4lld %4lld %lldx%lld/%lld %6lld %7lld %7lld %9.2f %8.1f %8.1f  %5.2f %5.2f..%-5.2f %s%s\n",
	       what, (long long)w[1], (long long)w[0], (long long)x[2], (long long)w[2],
	       (long long)w[3], (long long)stride, (long long)m, (long long)n, (long long)k,
	       t * 1e3, 2e-9 * (double)m * (double)n * (double)k / t,
	       2e-9 * (double)m * (double)n * (double)k / median(product.seconds, ROUNDS), middle,
	       ratio[ROUNDS / 4], ratio[ROUNDS * 3 / 4], conv.name, k < 256 ? "  (K < 256)" : "");
	done(&conv);
	done(&product);
}

static const struct {
	const char *name;
	int code;
} ops[] = { { "y", YOKE_OP_CONV }, { "dx", YOKE_OP_CONV_X }, { "dw", YOKE_OP_CONV_W } };

int main(int argc, char **argv)
{
	const char *request = getenv("YOKE_CPU_ISA"), *threads = getenv("YOKE_THREADS");
	const struct yk_isa *isa = yk_isa_choose(request ? request : "");
	const int64_t batch = argc > 1 ? atoi(argv[1]) : 8;
	const char *which = argc > 2 ? argv[2] : "all";
	const int only = argc > 3 ? atoi(argv[3]) : -1;
	const bool skip = argc > 4 && atoi(argv[4]);

	if (!isa || batch < 1) {
		fprintf(stderr,
			"bench/conv: YOKE_CPU_ISA=%s cannot be used here, or no batch of %s\n",
			request ? request : "", argc > 1 ? argv[1] : "8");
		return 1;
	}
	yk_team_limit(threads ? atoi(threads) : 0);
	printf("# convolutions of ResNet-18 and ResNet-50, batch %lld, f32, %s, %d threads; medians of %d rounds after %d\n",
	       (long long)batch, isa->name, yk_team_size(), ROUNDS, WARM_UP);
	printf("%-4s %4s %4s %4s %5s %6s %7s %7s %9s %8s %8s  %5s %s\n", "", "C", "O", "in",
	       "kernel", "M", "N", "K", "ms", "GF/s", "product", "ratio", "quartiles");
	for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes); i++) {
		const int64_t out =
			(shapes[i].size + 2 * shapes[i].pad - shapes[i].taps) / shapes[i].stride +
			1;
		const int64_t x[] = { batch, shapes[i].channels, shapes[i].size, shapes[i].size };
		const int64_t w[] = { shapes[i].outputs, shapes[i].channels, shapes[i].taps,
				      shapes[i].taps };
		const int64_t y[] = { batch, shapes[i].outputs, out, out };
		for (int k = 0; k < 3 && (only < 0 || i == only); k++)
			if (!strcmp(which, "all") || !strcmp(which, ops[k].name))
				measure(isa, ops[k].name, ops[k].code, x, w, y, shapes[i].stride,
					shapes[i].pad, skip);
	}
	return 0;
}
