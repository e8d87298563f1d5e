// SPDX-License-Identifier: Apache-2.0
// Maps and reductions of the CPU backend over arrays beyond the caches: GB/s for each
// instruction set, beside plain loops of copy and triad on the same arrays by the same
// threads in the same run. Bytes are those of the operands, read or written once.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../backends/cpu/frame.h"

enum { RUNS = 7, PIECE = 1 << 16 }; // the first run of each is not counted

static struct yk_segment segment[3];
static int64_t count;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// ---- the machine's limit ----

static void copy_piece(void *unused, int64_t i)
{
	float *y = (float *)segment[2].base + i * PIECE,
	      *x = (float *)segment[0].base + i * PIECE;
	(void)unused;
	memcpy(y, x, PIECE * sizeof *y);
}

static void triad_piece(void *unused, int64_t i)
{
	float *restrict y = (float *)segment[2].base + i * PIECE;
	const float *a = (float *)segment[0].base + i * PIECE,
		    *b = (float *)segment[1].base + i * PIECE;
	(void)unused;
	for (int k = 0; k < PIECE; k++)
		y[k] = a[k] + 3.0f * b[k];
}

// ---- programs ----

static int insn(struct yoke_map *m, int op, int a, int b)
{
	m->insn[m->ninsn] = (struct yoke_insn){
		.op = (uint16_t)op, .dtype = yoke_f32, .a = (uint16_t)a, .b = (uint16_t)b
	};
	m->out[0] = m->ninsn;
	return m->ninsn++;
}

static int constant(struct yoke_map *m, float x)
{
	memcpy(&m->konst[m->nconst], &x, sizeof x);
	return insn(m, YOKE_MAP_CONST, m->nconst++, 0);
}

static struct yoke_map program(int nin)
{
	struct yoke_map m = { .size = sizeof m, .nin = (uint16_t)nin, .nout = 1 };
	for (int k = 0; k < nin; k++)
		insn(&m, YOKE_MAP_INPUT, k, 0);
	return m;
}

static struct yoke_map simple(int nin, int op)
{
	struct yoke_map m = program(nin);
	if (op)
		insn(&m, op, 0, nin - 1);
	return m;
}

// x/2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3)
static struct yoke_map gelu(void)
{
	struct yoke_map m = program(1);
	int u = insn(&m, YOKE_MAP_MUL, insn(&m, YOKE_MAP_SQUARE, 0, 0), 0);
	u = insn(&m, YOKE_MAP_ADD, insn(&m, YOKE_MAP_MUL, u, constant(&m, 0.044715f)), 0);
	u = insn(&m, YOKE_MAP_TANH, insn(&m, YOKE_MAP_MUL, u, constant(&m, 0.797884561f)),
		 0);
	u = insn(&m, YOKE_MAP_ADD, u, constant(&m, 1));
	insn(&m, YOKE_MAP_MUL, insn(&m, YOKE_MAP_MUL, 0, constant(&m, 0.5f)), u);
	return m;
}

// g (1/2 (1 + t) + x/2 (1 - t^2) sqrt(2/pi) (1 + 3 * 0.044715 x^2)), t = tanh(u)
static struct yoke_map gelu_back(void)
{
	struct yoke_map m = program(2);
	int one = constant(&m, 1), half = constant(&m, 0.5f), c = constant(&m, 0.044715f);
	int s = insn(&m, YOKE_MAP_SQUARE, 0, 0), r = constant(&m, 0.797884561f);
	int u = insn(&m, YOKE_MAP_ADD,
		     insn(&m, YOKE_MAP_MUL, insn(&m, YOKE_MAP_MUL, s, 0), c), 0);
	int t = insn(&m, YOKE_MAP_TANH, insn(&m, YOKE_MAP_MUL, u, r), 0);
	int d = insn(&m, YOKE_MAP_MUL, s, constant(&m, 0.134145f));
	d = insn(&m, YOKE_MAP_MUL, insn(&m, YOKE_MAP_ADD, d, one), r);
	d = insn(&m, YOKE_MAP_MUL, d,
		 insn(&m, YOKE_MAP_SUB, one, insn(&m, YOKE_MAP_SQUARE, t, 0)));
	d = insn(&m, YOKE_MAP_MUL, d, insn(&m, YOKE_MAP_MUL, 0, half));
	t = insn(&m, YOKE_MAP_MUL, insn(&m, YOKE_MAP_ADD, t, one), half);
	insn(&m, YOKE_MAP_MUL, 1, insn(&m, YOKE_MAP_ADD, t, d));
	return m;
}

// x [u >= p] / (1 - p)
static struct yoke_map dropout(void)
{
	struct yoke_map m = program(1);
	int index = insn(&m, YOKE_MAP_INDEX, 0, 0), key = constant(&m, 0),
	    step = constant(&m, 0);
	int bits = insn(&m, YOKE_MAP_RAND, index, key),
	    u = insn(&m, YOKE_MAP_UNIFORM, bits, 0);
	int keep = insn(&m, YOKE_MAP_GE, u, constant(&m, 0.1f));
	int y = insn(&m, YOKE_MAP_MUL, 0, constant(&m, 1 / 0.9f)), zero = constant(&m, 0);
	insn(&m, YOKE_MAP_SELECT, keep, y);
	m.insn[m.out[0]].c = (uint16_t)zero;
	m.insn[bits].c = (uint16_t)step, m.insn[bits].dtype = yoke_i32,
	m.insn[keep].dtype = yoke_bool;
	m.insn[index].dtype = m.insn[key].dtype = m.insn[step].dtype = yoke_i64;
	return m;
}

// ---- measuring ----

static struct yoke_view view(int k, int rank, const int64_t *dims)
{
	struct yoke_view v = { .segment = &segment[k],
			       .kind = YOKE_VIEW_BUFFER,
			       .dtype = yoke_f32,
			       .rank = (uint8_t)rank,
			       .align = 64 };
	int64_t n = 1;
	for (int d = rank - 1; d >= 0; d--) {
		v.dims[d] = dims[d], v.strides[d] = n;
		n *= dims[d];
	}
	return v;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double rate(const char *isa, const char *name, double bytes, double *seconds,
		   double limit)
{
	qsort(seconds + 1, RUNS - 1, sizeof *seconds, by_value);
	double median = seconds[1 + (RUNS - 1) / 2],
	       spread = seconds[RUNS - 1] / seconds[1];
	printf("%-7s %-10s %8.2f GB/s  %5.2f of triad  spread %.2f\n", isa, name,
	       bytes / median / 1e9, limit > 0 ? bytes / median / limit : 1, spread);
	return bytes / median;
}

static void kernel(const struct yk_isa *isa, const char *name, int code,
		   const struct yoke_map *m, int64_t mask, double limit)
{
	int64_t dims[2] = { count / 512, 512 },
		outs[2] = { mask & 1 ? 1 : dims[0], mask & 2 ? 1 : 512 };
	struct yoke_view in[2] = { view(0, 2, dims), view(1, 2, dims) },
			 out = view(2, 2, outs);
	struct yoke_op op = { .size = sizeof op,
			      .code = (uint16_t)code,
			      .rank = 2,
			      .nout = 1,
			      .nin = m->nin,
			      .nattr = 2,
			      .out = &out,
			      .in = in,
			      .map = m,
			      .dims = { dims[0], 512 },
			      .attr = { { .i = YOKE_REDUCE_SUM }, { .i = mask } } };
	const struct yk_kernel *k = isa->op[code];
	double seconds[RUNS];
	struct yk_segment space = { NULL, k->workspace ? k->workspace(&op, 0) : 0 };

	if (!k->can(&op) || !(space.base = malloc(space.bytes + 1))) {
		printf("%-7s %-10s cannot run\n", isa->name, name);
		return;
	}
	op.workspace = (struct yoke_view){ .segment = &space, .kind = YOKE_VIEW_BUFFER };
	for (int r = 0; r < RUNS; r++) {
		double t = now();
		k->run(&op, 0);
		seconds[r] = now() - t;
	}
	free(space.base);
	rate(isa->name, name, (double)count * 4 * (m->nin + (mask == 0)), seconds, limit);
}

static double plain(const char *name, void (*fn)(void *, int64_t), int arrays)
{
	double seconds[RUNS];
	for (int r = 0; r < RUNS; r++) {
		double t = now();
		yk_team_run(count / PIECE, fn, NULL);
		seconds[r] = now() - t;
	}
	return rate("loops", name, (double)count * 4 * arrays, seconds, 0);
}

int main(int argc, char **argv)
{
	const struct yk_isa *list[3];
	const int64_t mib = argc > 1 ? atol(argv[1]) : 64;
	const struct yoke_map add = simple(2, YOKE_MAP_ADD),
			      exp = simple(1, YOKE_MAP_EXP),
			      tanh = simple(1, YOKE_MAP_TANH),
			      erf = simple(1, YOKE_MAP_ERF), none = simple(1, 0),
			      chain = gelu(), back = gelu_back(), drop = dropout();

	if (mib < 1 || mib > 4096)
		return fprintf(stderr, "usage: map [MiB of each array, 1 to 4096]\n"), 2;
	count = mib << 18;
	for (int k = 0; k < 3; k++) {
		segment[k] = (struct yk_segment){ malloc((size_t)count * 4),
						  (uint64_t)count * 4 };
		if (!segment[k].base)
			return fprintf(stderr, "map: no memory\n"), 1;
		for (int64_t i = 0; i < count; i++)
			((float *)segment[k].base)[i] = (float)(i % 2003) * 0.002f - 2;
	}
	printf("%lld MiB an array, %d threads, median of %d\n", (long long)mib,
	       yk_team_size(), RUNS - 1);
	plain("copy", copy_piece, 2);
	double limit = plain("triad", triad_piece, 3);
	for (int i = 0, n = yk_isa_usable(list); i < n; i++) {
		kernel(list[i], "add", YOKE_OP_MAP, &add, 0, limit);
		kernel(list[i], "exp", YOKE_OP_MAP, &exp, 0, limit);
		kernel(list[i], "tanh", YOKE_OP_MAP, &tanh, 0, limit);
		kernel(list[i], "erf", YOKE_OP_MAP, &erf, 0, limit);
		kernel(list[i], "gelu", YOKE_OP_MAP, &chain, 0, limit);
		kernel(list[i], "gelu back", YOKE_OP_MAP, &back, 0, limit);
		kernel(list[i], "dropout", YOKE_OP_MAP, &drop, 0, limit);
		kernel(list[i], "sum rows", YOKE_OP_REDUCE, &none, 2, limit);
		kernel(list[i], "sum cols", YOKE_OP_REDUCE, &none, 1, limit);
		kernel(list[i], "sum all", YOKE_OP_REDUCE, &none, 3, limit);
	}
	for (int k = 0; k < 3; k++)
		free(segment[k].base);
	return 0;
}
