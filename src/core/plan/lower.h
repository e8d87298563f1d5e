// SPDX-License-Identifier: Apache-2.0
// What lowering shares with the part of it that cuts large values into pieces.
#ifndef YK_LOWER_H
#define YK_LOWER_H

#include "plan/plan.h"

// Lowers a call whose results are outs, each to where out[i] says; device: where it would rather be.
int yk_lower_node(struct yk_work *, const struct yk_call *, uint32_t nout, const struct yk_value *outs,
		  int device, yk_id *out);
int yk_lower_view(struct yk_work *, const struct yk_call *, const struct yk_value *out, yk_id *to);
// The same on this device, whole if it takes it so, else what it is made of.
int yk_lower_on(struct yk_work *, const struct yk_call *, uint32_t nout, const struct yk_value *outs,
		int device, const char *cause, yk_id *out);
// Appends the call for a device, if that runs it whole: 1, 0, or an error.
int yk_lower_try(struct yk_work *, const struct yk_call *, uint32_t nout, const struct yk_value *outs, int device,
		 const char *cause, yk_id *out);
// A product on the device with operands padded as that likes it: 1; 0: there is nothing to gain.
int yk_lower_aligned(struct yk_work *, const struct yk_call *, const struct yk_value *, yk_id *out);
// v's elements on a device: v itself, or the same view of a copy of what it is a view of.
int yk_lower_bring(struct yk_work *, yk_id v, int device, yk_id *out);
// A copy of v on this device, whichever made it, whose elements lie row major.
int yk_lower_dense(struct yk_work *, yk_id v, int device, yk_id *out);
bool yk_strict(void);

bool yk_is_too_large(const struct yk_work *, yk_id); // to be on the device
extern const char yk_too_large[], yk_placed[];       // causes to be elsewhere
uint64_t yk_bytes_of_value(const struct yk_value *);
// Is a result, or what an operand is a view of, larger than the device's largest allocation?
bool yk_is_large(const struct yk_work *, const struct yk_call *, uint32_t nout, const struct yk_value *outs);
// The call by pieces, or on the CPU.
int yk_lower_large(struct yk_work *, const struct yk_call *, uint32_t nout, const struct yk_value *outs,
		   yk_id *out);

#endif
