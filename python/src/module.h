// SPDX-License-Identifier: Apache-2.0
// Modules as objects.  What C has is a tree, of which the root is freed; objects of any part of it keep all of it.
#pragma once

#include "core.h"

namespace py {

struct Tree {
	yoke_module *root = nullptr;
	std::shared_ptr<Tree> into; // what it became a part of
	~Tree();
};

struct Module {
	yoke_module *m = nullptr;
	std::shared_ptr<Tree> tree;
	yoke_module *get(const char *call) const;
};

// An object of a module that is new, and nobody's.
Made<Module> made(yoke_module *);

} // namespace py
