// SPDX-License-Identifier: Apache-2.0
// The representation of modules: trees of parameters and buffers.
#ifndef YK_MODULE_H
#define YK_MODULE_H

#include <stdbool.h>
#include <stddef.h>

#include "yoke-nn.h"

// A tensor of a module. A tensor held by several modules is reference counted, and freed with the
// last one; a network's tensor is shared, and freed by the network.
struct yk_module_own {
	char *name, *path; // path: from the module of the last request; NULL: not requested
	yoke_tensor *tensor;
	size_t *places; // number of entries that hold the tensor; NULL: only this one
	bool buffer, frozen, shared;
	int rank; // rank and dims of a declared parameter
	int64_t dims[2];
	int format; // YOKE_QUANT_F32, or the format of yoke-quant.h of the tensor's rows
	const struct yoke_module *with; // tied to this module's first parameter
};

// A low-rank update: x -> scale (x a') b'.
struct yk_low_rank {
	yoke_tensor *a, *b; // [rank,in], [out,rank]
	double scale;
	// Several updates side by side, of which each row of x has one or none: factors of the
	// elements of x a', [..,rank], and bool [..,1], whether the row has one.  NULL: there is
	// one update.
	yoke_tensor *factor, *chosen;
};

struct yoke_module {
	const struct yoke_module_class *class;
	void *state;
	struct yoke_module *parent;
	char *name; // in its parent
	struct yk_module_own *own;
	size_t n, cap;
	struct yoke_module **child;
	size_t children, child_cap;
	bool evaluates;
	const struct yk_network *net; // the network that it is a layer of, or NULL
	bool inputs_sharded;              // its weight is sharded by inputs (shard.h)
	const struct yk_low_rank *lora; // added to a linear layer's product, or NULL
};

// Adds a parameter; declared: the network creates the tensor and gives it to the module before
// computing.
bool yk_module_parameter(struct yoke_module *, bool declared, const char *name, int rank,
			 const int64_t *dims, int first, double value);
// Declares a parameter that is tied to the first parameter of another module.
bool yk_module_tie(struct yoke_module *, const char *name, const struct yoke_module *with);

// Adds children "0", "1", ..; the module owns them.  On an error, children without an owner are
// freed.  m NULL: creating the module failed.
int yk_module_children(struct yoke_module *m, int n, yoke_module *const *child);

// A tensor found by walking a module tree.
struct yk_module_entry {
	struct yoke_module *module;
	struct yk_module_own *own;
};
// All parameters and buffers with their paths, each tensor once; the caller frees the array.  NULL
// with an error; never NULL otherwise, even if empty.
struct yk_module_entry *yk_module_entries(struct yoke_module *, size_t *n);
// The same, with a shared tensor listed once per entry.
struct yk_module_entry *yk_module_places(struct yoke_module *, size_t *n);
// Computes the module on n values, as yoke_forward with one result, in the open scope.
yoke_tensor *yk_call_inside(struct yoke_module *, int n, yoke_tensor *const *in);
// Stores a tensor's dims; returns its rank.
int yk_module_dims(const yoke_tensor *, int64_t dims[YOKE_MAX_RANK]);
// The context of the first live tensor of a module and its descendants; NULL: there is none.
yoke_context *yk_module_context(const struct yoke_module *);
// All tensors of a module must be in one context: is that true after `other` is added?  ECONTEXT
// names `what` and `name`.
int yk_module_one_context(const struct yoke_module *, const yoke_context *other, const char *what,
			  const char *name);
// Releases an entry's reference to its tensor; the last one frees it.
void yk_module_drop(struct yk_module_own *);
// Is the argument a module?  Otherwise EINVAL, unless there is an error already.
bool yk_module_require(const struct yoke_module *, const char *what);

#endif
