// SPDX-License-Identifier: Apache-2.0
// Ops that applications register: each has two rows of the op table, behind the library's own, for good.  The first is
// the op whole, SOURCE of the plugin ABI: a text, or a function of the CPU.  The second joins a decomposition that
// was recorded: its results are its last operands, and its gradient the op's own.
#ifndef YK_CUSTOM_H
#define YK_CUSTOM_H

#include "device/device.h"
#include "graph/op.h"
#include "yoke-op.h"

enum yk_custom_way { YK_CUSTOM_ANY, YK_CUSTOM_TEXT, YK_CUSTOM_CPU, YK_CUSTOM_PARTS };

struct yk_custom {
	struct yk_op_def row[2];
	struct yoke_op_def def; // its strings are its own
	uint16_t op;            // of the first row
	uint64_t hash[3];       // of the text, by dialect; of the CPU's function
	struct yk_device *built[16]; // devices that compiled the text, under the lock
};

// The op of the number that yoke_op_register gave; NULL.
struct yk_custom *yk_custom_of(int number);
// Sets the op's source to what the device takes of it, where it takes something.  op: a SOURCE with its views.  EINVAL:
// the shape function says something else than it did.
int yk_custom_source(const struct yk_custom *, struct yoke_op *op, struct yk_device *, struct yoke_source *to);
// yoke_op_call in one way alone; EUNSUPPORTED, which is no error of this thread, where the op has not that way here.
int yk_custom_call(struct yk_custom *, int way, yoke_tensor *const *in, const union yoke_attr *attr, yoke_tensor **out);
// What the op's functions are told of a node or call, and where it is put.
struct yk_custom_seen {
	struct yoke_op_args args;
	struct yoke_op_tensor in[YOKE_OP_MAX_IN], out[YOKE_OP_MAX_OUT];
};
// in: ids, or NIL; outs: results' values, or NULL: not known yet
void yk_custom_see(const struct yk_custom *, const struct yk_graph *, const yk_id *in, const union yoke_attr *attr,
		const struct yk_value *outs, struct yk_custom_seen *to);
yk_shape_fn yk_shape_custom, yk_shape_custom_joined;
yk_grad_fn yk_grad_custom;

#endif
