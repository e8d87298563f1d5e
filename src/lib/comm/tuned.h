// SPDX-License-Identifier: Apache-2.0
// What `yoke tune ranks` found on this machine, in a file as device/tuning.h has them: lines
// "all_reduce.f32.BYTES NAME=NANOSECONDS ..", and "model.fs" with alpha in femtoseconds, beta and gamma in those a byte.
#ifndef YK_TUNED_H
#define YK_TUNED_H

#include "device/tuning.h"
#include "comm/ranks.h"
#include "comm/simulate.h"

// The file of so many ranks, `node` to a machine: transport "processes" or "mpi".
void yk_tuned_open(const char *transport, uint32_t ranks, uint32_t node, struct yk_tuning *);
int yk_tuned_keep(const char *transport, uint32_t ranks, uint32_t node, const struct yk_tuning *);
// Bytes of the sizes that are measured, and the one that is nearest to so many, by the factor.
uint64_t yk_tuned_bytes(int size);
int yk_tuned_size(uint64_t bytes);
// For processes on one machine: yk_area.best.
void yk_tuned_best(uint32_t ranks, uint8_t best[YK_TUNED_SIZES]);
// What is known of two ranks; others stay.  False: nothing is.
bool yk_tuned_model(struct yk_wire_model *);

#endif
