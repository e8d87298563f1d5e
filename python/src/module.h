// SPDX-License-Identifier: Apache-2.0
// Modules as Python objects. The C library frees a tree of modules at its root, so an object of any
// module in it keeps the whole tree.
#pragma once

#include "core.h"

namespace py {

struct Tree {
	yoke_module *root = nullptr;
	std::shared_ptr<Tree> into; // the module that it became part of
	~Tree();
};

struct Module {
	yoke_module *m = nullptr;
	std::shared_ptr<Tree> tree;
	yoke_module *get(const char *call) const;
};

// An object of a new module without a parent.
Made<Module> made(yoke_module *);

} // namespace py
