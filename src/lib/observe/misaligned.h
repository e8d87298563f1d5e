// SPDX-License-Identifier: Apache-2.0
// Finds layers whose matrix sizes are not multiples that the device prefers, and measures the gain
// from padding.
#ifndef YK_MISALIGNED_H
#define YK_MISALIGNED_H

#include <jansson.h>
#include <stdint.h>

struct yoke_context;

enum { YK_LAYERS = 16, YK_LAYER_SIZES = 4 };

struct yk_layers {
	int n; // number of layers found; layer[] holds the first of them
	struct yk_layer {
		uint32_t path;
		char scope[96];  // its name, "layer3/mlp"
		int sizes;       // number of distinct sizes; size[] holds the first: actual,
				 // preferred
		int64_t size[YK_LAYER_SIZES][2];
		int products, padded;  // number of product shapes, forward and backward; number
				       // that plans pad
		double before, after;  // useful FLOP/s of the padded products, without and with
				       // padding; 0: not measured
	} layer[YK_LAYERS];
};

// Examines the matrix products of the plans that the context made.
void yk_layers_find(const struct yoke_context *, struct yk_layers *);
// Times each padded product by itself, in separate contexts on the chosen device, for a few seconds
// in total at most.  The time is the shortest of several runs from launch to end, after planning,
// including the padding copies.  A layer gets no rate if one of its products is not measured for
// lack of time or memory.
void yk_layers_measure(const struct yoke_context *, struct yk_layers *);
void yk_layers_print(const struct yk_layers *, void (*line)(void *arg, const char *), void *arg);
json_t *yk_layers_json(const struct yk_layers *); // NULL: out of memory

#endif
