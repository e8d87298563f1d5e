// SPDX-License-Identifier: Apache-2.0
// Custom ops, registered by applications. Each has two definitions after the built-in ones, which
// are never freed. The first is the op itself, SOURCE of the plugin ABI: a kernel source, or a
// function on the CPU. The second wraps a recorded decomposition: its results are its last
// operands, and its gradient is that of the op.
// operands, and its gradient is the op's own.
#ifndef YK_CUSTOM_H
#define YK_CUSTOM_H

#include "device/device.h"
#include "graph/op.h"
#include "yoke-op.h"

enum yk_custom_way { YK_CUSTOM_ANY, YK_CUSTOM_TEXT, YK_CUSTOM_CPU, YK_CUSTOM_PARTS };

struct yk_custom {
	struct yk_op_def row[2];
	struct yoke_op_def def; // its strings are copies
	uint16_t op;            // code of the first definition
	uint64_t hash[3];       // of the source, by dialect; of the CPU function
	struct yk_device *built[16]; // devices that compiled the source; under the lock
};

// The op with the number that yoke_op_register returned, or NULL.
struct yk_custom *yk_custom_of(int number);
// Sets *to to the op's source for this device, if it accepts one.  op: a SOURCE with its views.
// EINVAL: the shape function returns another result than when the op was recorded.
int yk_custom_source(const struct yk_custom *, struct yoke_op *op, struct yk_device *,
		     struct yoke_source *to);
// yoke_op_call restricted to one way; EUNSUPPORTED, without setting this thread's error, if the op
// cannot run that way here.
int yk_custom_call(struct yk_custom *, int way, yoke_tensor *const *in, const union yoke_attr *attr,
		   yoke_tensor **out);
// The arguments that a callback receives for a node or call, and their storage.
struct yk_custom_args {
	struct yoke_op_args args;
	struct yoke_op_tensor in[YOKE_OP_MAX_IN], out[YOKE_OP_MAX_OUT];
};
// in: ids, or YK_NIL; outs: values of the results, NULL if not yet known
void yk_custom_see(const struct yk_custom *, const struct yk_graph *, const yk_id *in,
		   const union yoke_attr *attr, const struct yk_value *outs,
		   struct yk_custom_args *to);
yk_shape_fn yk_shape_custom, yk_shape_custom_joined;
yk_grad_fn yk_grad_custom;

#endif
