// SPDX-License-Identifier: Apache-2.0
// A slot of the table of handles, with its tensor (handle.h).
#ifndef YK_SLOT_H
#define YK_SLOT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "graph/graph.h"

struct yk_moved;
struct yk_storage;

enum yk_kind { YK_VALUE, YK_VARIABLE, YK_HOST_SCALAR, YK_LITERAL };

// Why a slot's last tensor ended.
enum yk_end { YK_END_FREED, YK_END_SCOPE, YK_END_CONTEXT };

// The tensor whose value this is: for an assigned variable, the tensor that it was assigned.
struct yk_origin {
	uint64_t handle;  // of the first tensor with the value, 0: this tensor
	uint32_t version; // its version, if it is a variable
};

enum { YK_LINE = 64 }; // bytes of a cache line
struct yk_tensor { // a slot, and the tensor that its current handle refers to
	// first cache line: members that operands and the end of a scope use
	struct yoke_context *ctx; // owner of the slot; changes under the table's lock
	atomic_uint generation;   // odd while the slot holds a tensor
	uint32_t index;
	// members from here to dims are reset for a new tensor
	yk_id id;                   // its value in the context's graph, or YK_NIL: see yk_take_id
	yk_id leaf;                 // leaf for the storage
	uint32_t leaf_epoch;        // `leaf` is valid while the context's epoch equals this
	uint32_t root;              // its index among the pending roots, YK_NIL: none
	struct yk_storage *storage; // its bytes; for a variable with an id, the previous version
	struct yk_tensor *next;     // in the list of its scope or of the context
	uint16_t op;
	uint8_t kind, dtype, rank;
	uint8_t end;    // enum yk_end of the slot's last tensor
	bool host;      // variable placed in host memory
	uint32_t path;  // scope it was recorded in, for messages
	// second cache line
	struct yk_tensor *prev;
	struct yk_scope *scope; // owner; NULL: the caller
	const char *name;       // of variables
	union {
		double scalar;          // of a host scalar or literal
		// of a value that yoke_to copied from another context, or NULL
		struct yk_moved *moved;
	};
	uint32_t outermost; // variable: `outermost` at the last assignment in a scope
	uint32_t chain; // index of its newest leaf; valid in the same epoch as leaf
	uint32_t version;        // variable: number of earlier versions
	struct yk_origin origin; // of variables
	_Alignas(YK_LINE) int64_t dims[YOKE_MAX_RANK];
};

#endif
