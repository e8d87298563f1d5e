// SPDX-License-Identifier: Apache-2.0
// Results of `yoke tune ranks` on this machine, in a file in the format of device/tuning.h. Lines
// are "all_reduce.f32.BYTES NAME=NANOSECONDS ..", and "model.fs" with alpha in femtoseconds and
// beta and gamma in femtoseconds per byte.
#ifndef YK_TUNED_H
#define YK_TUNED_H

#include "device/tuning.h"
#include "comm/ranks.h"
#include "comm/simulate.h"

// The file for this number of ranks with `node` ranks per machine. transport: "processes" or "mpi".
void yk_tuned_open(const char *transport, uint32_t ranks, uint32_t node, struct yk_tuning *);
int yk_tuned_save(const char *transport, uint32_t ranks, uint32_t node, const struct yk_tuning *);
// Bytes of a measured size; and the measured size nearest (by ratio) to `bytes`.
uint64_t yk_tuned_bytes(int size);
int yk_tuned_size(uint64_t bytes);
// Fills yk_area.best, for processes on one machine.
void yk_tuned_best(uint32_t ranks, uint8_t best[YK_TUNED_SIZES]);
// Sets the model's values that were measured with two ranks and leaves the others. False: there are
// none.
bool yk_tuned_model(struct yk_wire_model *);

#endif
