// SPDX-License-Identifier: Apache-2.0
// Layers whose products have sizes of which the device would like multiples, and what padding gains there.
#ifndef YK_MISALIGNED_H
#define YK_MISALIGNED_H

#include <jansson.h>
#include <stdint.h>

struct yoke_context;

enum { YK_LAYERS = 16, YK_LAYER_SIZES = 4 };

struct yk_layers {
	int n; // how many there are, of which the first are here
	struct yk_layer {
		uint32_t path;
		char scope[96];  // its name, "layer3/mlp"
		int sizes;       // distinct ones, of which the first are here: what it is, what is wanted
		int64_t size[YK_LAYER_SIZES][2];
		int products, padded;  // of different shapes, forward and backward; of those, padded by plans
		double before, after;  // FLOP/s asked for, of the padded ones: not padded and padded; 0: not measured
	} layer[YK_LAYERS];
};

// From the products of the plans that the context made.
void yk_layers_find(const struct yoke_context *, struct yk_layers *);
// Times the padded products, each alone, in contexts of their own on the device that is chosen, for at most some
// seconds together: once planned the least of several runs from launch to end, copies that pad included.  A
// layer of which one is not measured, for want of time or memory, gets no rate.
void yk_layers_measure(const struct yoke_context *, struct yk_layers *);
void yk_layers_print(const struct yk_layers *, void (*line)(void *arg, const char *), void *arg);
json_t *yk_layers_json(const struct yk_layers *); // NULL: no memory

#endif
