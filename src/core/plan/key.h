// SPDX-License-Identifier: Apache-2.0
// Keys: the structure of an evaluation as an array of words. Evaluations with equal keys share a
// plan. Marks record which nodes the evaluation needs.
#ifndef YK_KEY_H
#define YK_KEY_H

#include "graph/context.h"

struct yk_key {
	uint32_t *word;
	size_t n, cap;
	uint64_t hash;
};

// The scope of an evaluation: its roots and all nodes they depend on, numbered in creation order.
struct yk_node_mark { // of a node of the context's graph
	uint32_t need;  // while marking: which of its results are needed (yk_result_bit); else 0
	uint32_t index; // its position among the marked nodes; YK_NIL: not needed
	uint32_t shift; // added to the graph's number of a result gives the evaluation's
};
struct yk_node_shape { // of a node
	uint32_t op, nin, nout, list; // op: with the number of attributes in the upper half
};
// The recorded operations of the last evaluation, kept if no earlier one had left anything in the
// graph.  An evaluation of the same operations has the same marks.
struct yk_shapes {
	struct yk_node_shape *node;
	yk_id *arg, *root;
	union yoke_attr *attr;
	size_t nodes, args, attrs, leaves, roots; // nodes 0: nothing is kept
	size_t node_cap, arg_cap, root_cap, attr_cap;
};
struct yk_marks {
	struct yk_node_mark *mark; // by node of the context's graph
	uint32_t *node;    // by index of a mark
	uint32_t *leaf;    // leaves by first use: indices of the context's leaves
	uint32_t *leaf_index; // by the context's leaf: its index in `leaf`
	uint32_t *made; // by index of a mark: 0, or its needed results (yk_result_bit) if all are
			// computed: they are leaves, and the node is not computed again
	size_t nodes, leaves, values;
	size_t numbers;         // leaves that are host scalars
	bool failed, uploads;   // a leaf's storage has failed; is still being uploaded
	size_t repeated;   // nodes that an earlier evaluation computed
	uint32_t repeats;  // the last of them, in the context's graph
	size_t mark_cap, node_cap, leaf_cap, leaf_index_cap, made_cap;
	struct yk_shapes last; // whose marks these are
	uint32_t *word;        // by index in `leaf`: where its words begin in the key
	size_t word_cap;
	bool keyed;            // the key was made from these marks
};
// The number that the evaluation gives a needed value.
static inline uint32_t yk_number_of(const struct yk_marks *m, const struct yk_graph *g, yk_id v)
{
	return v + m->mark[g->value[v].node].shift;
}

struct yk_root {
	yk_id id;             // in the context's graph
	struct yk_tensor *handle; // NULL: a node that stays pending reads it
	uint32_t donor;       // index in marks.leaf of the variable's old version, or YK_NIL
	bool idle;            // only the variable holds the old version, read or packed: it may be
			      // overwritten
};

// Marks the nodes that the roots need; values that are already computed become leaves. ERELEASED if
// a needed value was computed from a version of a variable that has since been overwritten.
int yk_mark(struct yoke_context *, struct yk_marks *, const struct yk_root *, size_t roots);
void yk_marks_fini(struct yk_marks *);
// The key of the marked nodes; only leaves and roots are looked at where the marks are those of the
// key.
int yk_key_make(struct yoke_context *, struct yk_marks *, const struct yk_root *, size_t roots,
		uint32_t settings, struct yk_key *);
enum {
	YK_ROOT_WORDS = 4,    // words per root, at the end of a key
	YK_KEY_MADE = 0xffff, // instead of an op: a node with computed results; number of results,
			      // mask of the needed ones, their number, a leaf's words for each
};

#endif
