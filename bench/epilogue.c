// SPDX-License-Identifier: Apache-2.0
// Measures an f32 product followed by bias and gelu, in one launch and in two, and the product
// alone. All three run in turn in every round; the figures are medians, and the median of the
// per-round ratio of two launches to one. YOKE_CPU_ISA and YOKE_THREADS apply.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operand.h"
#include "rounds.h"

enum { ROUNDS = 31 };

static const struct {
	int64_t m, n, k;
} shapes[] = { { 4096, 512, 128 }, { 4096, 1536, 384 }, { 512, 512, 512 } };

static struct yk_segment memory(int64_t floats)
{
	return operand_memory((uint64_t)floats * sizeof(float), yoke_f32);
}

static struct yoke_view view(struct yk_segment *s, int64_t rows, int64_t cols)
{
	return operand_view(s, yoke_f32, 2, (int64_t[]){ rows, cols });
}

// y = h/2 (1 + tanh(sqrt(2/pi) (h + 0.044715 h^3))), h = x + bias
static struct yoke_map bias_gelu(void)
{
	static const uint16_t code[][3] = {
		{ YOKE_MAP_INPUT, 0, 0 }, { YOKE_MAP_INPUT, 1, 0 },
		{ YOKE_MAP_ADD, 0, 1 },   { YOKE_MAP_SQUARE, 2, 0 },
		{ YOKE_MAP_MUL, 3, 2 },   { YOKE_MAP_CONST, 0, 0 },
		{ YOKE_MAP_MUL, 4, 5 },   { YOKE_MAP_ADD, 6, 2 },
		{ YOKE_MAP_CONST, 1, 0 }, { YOKE_MAP_MUL, 7, 8 },
		{ YOKE_MAP_TANH, 9, 0 },  { YOKE_MAP_CONST, 2, 0 },
		{ YOKE_MAP_ADD, 10, 11 }, { YOKE_MAP_CONST, 3, 0 },
		{ YOKE_MAP_MUL, 2, 13 },  { YOKE_MAP_MUL, 14, 12 },
	};
	static const float konst[] = { 0.044715f, 0.79788456f, 1, 0.5f };
	struct yoke_map m = { .size = sizeof m, .nin = 2, .nout = 1, .nconst = 4 };

	for (size_t i = 0; i < sizeof code / sizeof *code; i++)
		m.insn[m.ninsn++] = (struct yoke_insn){ .op = code[i][0],
							.dtype = yoke_f32,
							.a = code[i][1],
							.b = code[i][2] };
	for (int i = 0; i < 4; i++)
		memcpy(&m.konst[i], &konst[i], sizeof konst[i]);
	m.out[0] = (uint16_t)(m.ninsn - 1);
	return m;
}

static void run(const struct yk_isa *isa, struct yoke_op *op)
{
	if (yk_kernel_once(isa->op[op->code], op, 0) < 0)
		exit(1);
}

static void measure(const struct yk_isa *isa, int64_t m, int64_t n, int64_t k)
{
	uint64_t bytes[2];
	struct yk_segment a = memory(m * k), b = memory(k * n), bias = memory(n), c = memory(m * n),
			  y = memory(m * n), w;
	struct yoke_view in[3] = { view(&a, m, k), view(&b, k, n), view(&bias, m, n) };
	struct yoke_view product = view(&c, m, n), out = view(&y, m, n);
	in[2].strides[0] = 0; // one row for all
	struct yoke_view seen[2] = { product, in[2] };
	struct yoke_map map = bias_gelu();
	struct yoke_op alone = { .size = sizeof alone,
				 .code = YOKE_OP_CONTRACT,
				 .nout = 1,
				 .nin = 2,
				 .out = &product,
				 .in = in };
	struct yoke_op fused = alone, after = { .size = sizeof after,
						.code = YOKE_OP_MAP,
						.rank = 2,
						.nout = 1,
						.nin = 2,
						.out = &out,
						.in = seen,
						.map = &map,
						.dims = { m, n } };
	double t[3][ROUNDS], ratio[ROUNDS];

	fused.nin = 3, fused.out = &out, fused.map = &map;
	fused.nattr = 1, fused.attr[0].i = yoke_f32;
	bytes[0] = isa->op[YOKE_OP_CONTRACT]->workspace(&alone, 0);
	bytes[1] = isa->op[YOKE_OP_CONTRACT]->workspace(&fused, 0);
	w = memory((int64_t)((bytes[0] > bytes[1] ? bytes[0] : bytes[1]) / sizeof(float) + 1));
	alone.workspace = fused.workspace = view(&w, 1, (int64_t)(w.bytes / sizeof(float)));
	for (int i = -2; i < ROUNDS; i++) {
		double at[4];
		at[0] = yk_seconds();
		run(isa, &fused);
		at[1] = yk_seconds();
		run(isa, &alone);
		at[2] = yk_seconds();
		run(isa, &after);
		at[3] = yk_seconds();
		if (i < 0) // warm-up
			continue;
		t[0][i] = at[1] - at[0];
		t[1][i] = at[3] - at[1];
		t[2][i] = at[2] - at[1];
		ratio[i] = t[1][i] / t[0][i];
	}
	double middle = median(ratio, ROUNDS);
	qsort(ratio, ROUNDS, sizeof *ratio, by_value);
	printf("%5lld %5lld %5lld %8.1f %8.1f %8.1f  %5.2f %5.2f..%-5.2f\n", (long long)m,
	       (long long)n, (long long)k, median(t[0], ROUNDS) * 1e6, median(t[1], ROUNDS) * 1e6,
	       median(t[2], ROUNDS) * 1e6, middle, ratio[ROUNDS / 4],
	       ratio[ROUNDS * 3 / 4]);
	free(a.base), free(b.base), free(bias.base), free(c.base), free(y.base),
		free(w.base);
}

int main(void)
{
	const char *request = getenv("YOKE_CPU_ISA"), *threads = getenv("YOKE_THREADS");
	const struct yk_isa *isa = yk_isa_choose(request ? request : "");

	if (!isa) {
		fprintf(stderr, "bench/epilogue: YOKE_CPU_ISA=%s cannot be used here\n",
			request);
		return 1;
	}
	yk_team_limit(threads ? atoi(threads) : 0);
	printf("# product, bias, gelu; f32, %s, %d threads%s%s; us, medians of %d rounds "
	       "after "
	       "2\n",
	       isa->name, yk_team_size(), threads ? ", limit " : "",
	       threads ? threads : "", ROUNDS);
	printf("%5s %5s %5s %8s %8s %8s  %5s %s\n", "M", "N", "K", "fused", "two",
	       "product", "ratio", "quartiles");
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		measure(isa, shapes[i].m, shapes[i].n, shapes[i].k);
	return 0;
}
