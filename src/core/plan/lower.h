// SPDX-License-Identifier: Apache-2.0
// Shared by lowering and by the lowering of values too large for the device.
#ifndef YK_LOWER_H
#define YK_LOWER_H

#include "plan/work.h"

// Lowers a call with results outs; out[i] receives the lowered value of result i.  device: the
// preferred one.
int yk_lower_node(struct yk_work *, const struct yk_call *, uint32_t nout,
		  const struct yk_value *outs, int device, yk_id *out);
int yk_lower_view(struct yk_work *, const struct yk_call *, const struct yk_value *out, yk_id *to);
// The same on this device: as one op if the device supports it, else decomposed.
int yk_lower_on(struct yk_work *, const struct yk_call *, uint32_t nout,
		const struct yk_value *outs, int device, const char *cause, yk_id *out);
// Appends the call for a device, if the device supports it as one op: 1, 0, or an error.
int yk_lower_try(struct yk_work *, const struct yk_call *, uint32_t nout,
		 const struct yk_value *outs, int device, const char *cause, yk_id *out);
// Lowers a product on the device with operands padded to its preferred multiples: 1; 0: padding
// does not pay.
int yk_lower_aligned(struct yk_work *, const struct yk_call *, const struct yk_value *, yk_id *out);
// v's elements on a device: v itself, or the same view of a copy of v's base.
int yk_lower_on_device(struct yk_work *, yk_id v, int device, yk_id *out);
// A contiguous row-major copy of v on this device.
int yk_lower_dense(struct yk_work *, yk_id v, int device, yk_id *out);
bool yk_strict(void);

bool yk_is_too_large(const struct yk_work *, yk_id); // for the device
extern const char yk_too_large[], yk_placed[];       // causes for running elsewhere
uint64_t yk_bytes_of_value(const struct yk_value *);
// Is a result, or the base of an operand, larger than the device's largest allocation?
bool yk_is_large(const struct yk_work *, const struct yk_call *, uint32_t nout,
		 const struct yk_value *outs);
// Lowers the call in slices, or on the CPU.
int yk_lower_large(struct yk_work *, const struct yk_call *, uint32_t nout,
		   const struct yk_value *outs, yk_id *out);

#endif
