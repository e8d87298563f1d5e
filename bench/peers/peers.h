// SPDX-License-Identifier: Apache-2.0
// Interface to the peer libraries of bench/contract, which are called directly.
#ifndef YK_BENCH_PEERS_H
#define YK_BENCH_PEERS_H

#include <stdbool.h>
#include <stdint.h>

// Multiplies `batch` matrices; a is (m,k), or (k,m) when ta; b (k,n), or (n,k) when tb; c (m,n):
// dense, all f32 or, with bf16, all bf16.
struct peer_shape {
	int m, n, k, batch;
	bool ta, tb, bf16;
};

// f32 only. False: there is no CBLAS.
bool peer_sgemm(const struct peer_shape *, const float *a, const float *b, float *c);
const char *peer_sgemm_name(void);

// A product prepared once, as its users do; NULL: no oneDNN, or it does not support the shape.
struct peer_matmul;
struct peer_matmul *peer_matmul_new(const struct peer_shape *, void *a, void *b, void *c);
void peer_matmul_run(struct peer_matmul *);
void peer_matmul_free(struct peer_matmul *);
const char *peer_matmul_name(void);

// ---- peak.c ----

// GFLOP/s of multiply-adds in registers by as many threads as the team has, the upper limit of any
// f32 product; 0 where the instruction set has no fma.
double peak_gflops(const char *isa);
// The same for bf16 by vdpbf16ps, or by AMX tiles if that is the instruction set; 0 without either.
double peak_bf16_gflops(const char *isa);

#endif
