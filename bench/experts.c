// SPDX-License-Identifier: Apache-2.0
// Measures grouped products beside one product of equal flops, and a mixture-of-experts layer in
// which each token uses one expert beside a dense layer of equal width, forward and with
// gradients. The variants run in turn; the figures are medians of the times and of the per-round
// ratios. YOKE_THREADS applies.
//
//	bench/experts [tokens, 2560]
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "nn/moe.h"
#include "rounds.h"

enum { EXPERTS = 4, ROUNDS = 15, WARM = 2 };

static int fail(void)
{
	fprintf(stderr, "bench/experts: %s\n", yoke_error());
	return 1;
}

static yoke_tensor *variable(int rank, const int64_t *dims)
{
	yoke_tensor *v = yoke_keep(yoke_variable("v", yoke_f32, rank, dims));
	yoke_assign(v, yoke_sub(yoke_uniform(yoke_f32, rank, dims), yoke_const(0.5)));
	return v;
}

// Seconds to compute y, and with `n` also its gradients by the tensors of `by`.
static double evaluated(yoke_tensor *y, int n, yoke_tensor *const *by)
{
	yoke_tensor *all[16] = { y };
	if (n && yoke_grad(yoke_sum(yoke_square(y), YOKE_ALL), n, by, all + 1) < 0)
		return -1;
	const double began = yk_seconds();
	const int err = yoke_eval(n + 1, all) | yoke_sync();
	return err ? -1 : yk_seconds() - began;
}

struct pair {
	yoke_tensor *x, *w, *one, *first; // [T,K], [E,K,N], [K,N], first rows of groups
	struct yk_parameters moe;
	yoke_tensor *dense[4]; // two matrices [in,out] and their biases
	int64_t embed;
};

static yoke_tensor *products(const struct pair *p, int way)
{
	return way ? yoke_matmul(p->x, p->one, 0) : yoke_grouped_matmul(p->x, p->w, p->first);
}

static yoke_tensor *layers(const struct pair *p, int way)
{
	static const struct yk_network net = { .by_row = false };
	const struct yk_moe m = { .embed = p->embed,
				  .experts = EXPERTS,
				  .active_experts = 1,
				  .gated = true,
				  .var = p->moe.var };
	yoke_tensor *balance, *share;
	if (!way) {
		yoke_scope *s = yoke_scope_begin("layer");
		yoke_tensor *y = yoke_lift(yk_moe(&net, &m, p->x, &balance, &share));
		yoke_scope_end(s);
		return y;
	}
	yoke_tensor *h = yoke_relu(yoke_add(yoke_matmul(p->x, p->dense[0], 0), p->dense[1]));
	return yoke_add(yoke_matmul(h, p->dense[2], 0), p->dense[3]);
}

// Measures both in turn and prints a line. by: [2] lists of tensors to differentiate by.
static int measure(const struct pair *p, yoke_tensor *(*make)(const struct pair *, int way),
		   const char *title, int n, yoke_tensor *const *const *by, const int *count)
{
	double t[2][ROUNDS], ratio[ROUNDS];
	for (int i = -WARM; i < ROUNDS; i++)
		for (int way = 0; way < 2; way++) {
			yoke_scope *s = yoke_scope_begin("bench");
			const double seconds = evaluated(make(p, way), n ? count[way] : 0, by[way]);
			if (yoke_scope_end(s) < 0 || seconds < 0)
				return fail();
			if (i >= 0)
				t[way][i] = seconds;
		}
	for (int i = 0; i < ROUNDS; i++)
		ratio[i] = make == products ? t[1][i] / t[0][i] : t[0][i] / t[1][i];
	const double middle = median(ratio, ROUNDS);
	qsort(ratio, ROUNDS, sizeof *ratio, by_value);
	printf("%-34s %-10s %10.1f %10.1f  %5.2f  %.2f..%.2f\n", title,
	       n ? "+ gradient" : "forward", 1e6 * median(t[0], ROUNDS), 1e6 * median(t[1], ROUNDS),
	       middle, ratio[ROUNDS / 4], ratio[ROUNDS * 3 / 4]);
	return 0;
}

static int groups(int64_t rows, int64_t k, int64_t n)
{
	int64_t first[EXPERTS + 1];
	char title[60];
	for (int e = 0; e <= EXPERTS; e++)
		first[e] = rows * e;
	const int64_t bounds = EXPERTS + 1;
	struct pair p = { .x = variable(2, (int64_t[]){ rows * EXPERTS, k }),
			  .w = variable(3, (int64_t[]){ EXPERTS, k, n }),
			  .one = variable(2, (int64_t[]){ k, n }),
			  .first = yoke_keep(yoke_variable("first", yoke_i64, 1, &bounds)) };
	yoke_tensor *by[2][2] = { { p.x, p.w }, { p.x, p.one } };
	yoke_put(p.first, first, sizeof first);
	snprintf(title, sizeof title, "%d groups of %lld rows, %lld x %lld", EXPERTS,
		 (long long)rows, (long long)k, (long long)n);
	int status = 0;
	for (int grad = 0; grad < 2 && !status; grad++)
		status = measure(&p, products, title, grad,
				 (yoke_tensor *const *const[]){ by[0], by[1] }, (int[]){ 2, 2 });
	yoke_free(p.x), yoke_free(p.w), yoke_free(p.one), yoke_free(p.first);
	return status;
}

static int layer(int64_t tokens, int64_t embed)
{
	struct pair p = { .embed = embed, .x = variable(2, (int64_t[]){ tokens, embed }) };
	yoke_tensor *by[2][8];
	int count[2] = { 0, 0 };
	char title[60];
	yk_moe_parameters(&p.moe, embed, EXPERTS, "");
	p.dense[0] = variable(2, (int64_t[]){ embed, 2 * embed });
	p.dense[1] = variable(1, (int64_t[]){ 2 * embed });
	p.dense[2] = variable(2, (int64_t[]){ 2 * embed, embed });
	p.dense[3] = variable(1, &embed);
	if (yk_parameters_draw(&p.moe, 1) < 0)
		return fail();
	by[0][count[0]++] = by[1][count[1]++] = p.x;
	for (int i = 0; i < p.moe.count; i++)
		by[0][count[0]++] = p.moe.var[i];
	for (int i = 0; i < 4; i++)
		by[1][count[1]++] = p.dense[i];
	snprintf(title, sizeof title, "layer of %lld, %lld tokens", (long long)embed,
		 (long long)tokens);
	int status = 0;
	for (int grad = 0; grad < 2 && !status; grad++)
		status = measure(&p, layers, title, grad,
				 (yoke_tensor *const *const[]){ by[0], by[1] }, count);
	yk_parameters_fini(&p.moe);
	for (int i = 0; i < 4; i++)
		yoke_free(p.dense[i]);
	yoke_free(p.x);
	return status;
}

int main(int argc, char **argv)
{
	const int64_t tokens = argc > 1 ? atoll(argv[1]) : 2560;
	int status = tokens < 1;
	printf("%-34s %-10s %10s %10s  ratio  quartiles\n", "", "", "groups us", "one us");
	status = status ? status : groups(128, 64, 128);
	status = status ? status : groups(128, 256, 512);
	status = status ? status : groups(512, 256, 512);
	status = status ? status : groups(512, 512, 1024);
	for (int64_t embed = 64; embed <= 512 && !status; embed *= 2)
		status = layer(tokens, embed);
	return status;
}
