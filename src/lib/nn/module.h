// SPDX-License-Identifier: Apache-2.0
// What a module is made of.
#ifndef YK_MODULE_H
#define YK_MODULE_H

#include <stdbool.h>
#include <stddef.h>

#include "yoke-nn.h"

// A tensor of a module.  One that several places hold counts them, and the last one to go frees it; that of a network is
// shared, and freed by the network.
struct yk_module_own {
	char *name, *path; // path: from the module that was asked last; NULL: not asked for
	yoke_tensor *tensor;
	size_t *places; // how many hold the tensor; NULL: this one alone
	bool buffer, frozen, shared;
	int rank; // of one that is declared
	int64_t dims[2];
	const struct yoke_module *with; // whose first one it is
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
	const struct yk_network *net; // NULL, or that it is a layer of
	bool inputs_cut;              // its product is of a cut of the inputs (shard.h)
};

// Adds a parameter; declared: of a network, which has its tensor and gives it to the module before that computes.
bool yk_module_parameter(struct yoke_module *, bool declared, const char *name, int rank, const int64_t *dims, int first,
			 double value);
// Declares one that is the first of another module.
bool yk_module_tie(struct yoke_module *, const char *name, const struct yoke_module *with);

// Adds children "0", "1", ..; the module owns them.  After an error those without an owner are freed.  m NULL: there was no
// memory for the module.
int yk_module_children(struct yoke_module *m, int n, yoke_module *const *child);

// An entry of a walk.
struct yk_module_entry {
	struct yoke_module *module;
	struct yk_module_own *own;
};
// All parameters and buffers by their paths, each tensor once; to be freed.  NULL with an error; an empty one has
// room for one.
struct yk_module_entry *yk_module_entries(struct yoke_module *, size_t *n);
// A shared tensor wherever it is.
struct yk_module_entry *yk_module_places(struct yoke_module *, size_t *n);
// Another tensor in the place of an entry's, wherever it is shared below `top`; what it was is freed.
void yk_module_replace(struct yoke_module *top, const struct yk_module_entry *, yoke_tensor *);
// What the module computes of n values, as yoke_forward with one result, in the scope that is open.
yoke_tensor *yk_call_inside(struct yoke_module *, int n, yoke_tensor *const *in);
// A tensor's dims; returns its rank.
int yk_module_dims(const yoke_tensor *, int64_t dims[YOKE_MAX_RANK]);
// Is it a module?  EINVAL, unless there is an error already.
bool yk_module_given(const struct yoke_module *, const char *what);

#endif
