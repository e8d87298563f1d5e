/* SPDX-License-Identifier: Apache-2.0 */
/* What the executor and a kernel's shared object know of each other, in C and in C++. */
#ifndef FAKE_ABI_H
#define FAKE_ABI_H

struct fake_dim {
	unsigned x, y, z;
};

struct fake_span {
	unsigned long from, bytes;
};

enum fake_exchange { FAKE_SYNC, FAKE_SHUFFLE, FAKE_BALLOT };

#define FAKE_LIVE 8

/* Of one shared object, in which one launch at a time runs. */
struct fake_state {
	struct fake_dim thread, block, threads, blocks; /* threadIdx, blockIdx, blockDim, gridDim */
	unsigned warp;
	unsigned check; /* look at each access */
	void *group;    /* the executor's */
	void (*barrier)(void *group, int site);
	/* All lanes of the warp that are in mask come here; a lane gets the value of lane `source`,
	 * or the bits of those whose value is not 0.  mask 0: all that have not ended. */
	unsigned long (*exchange)(void *group, int site, int what, unsigned long mask,
				  unsigned long value, unsigned source);
	/* An access that is in none of `live`: returns if the executor knows better. */
	void (*access)(void *group, unsigned long address, unsigned long bytes, int store);
	void (*misaligned)(void *group, unsigned long address, unsigned long align, unsigned line);
	struct fake_span live[FAKE_LIVE], stacks;
	unsigned next_live;
};

struct fake_kernel {
	const char *name;
	void (*call)(void **params); /* one item */
	unsigned params;
	const unsigned *bytes; /* of each parameter */
	unsigned threads;      /* of __launch_bounds__, 0: none */
};

/* A __shared__ variable, where the compiler has left room behind it. */
struct fake_shared {
	unsigned long from, bytes;
	const char *name;
};

/* Its one symbol, fake_object. */
struct fake_object {
	struct fake_state *state;
	const struct fake_kernel *kernels;
	unsigned count;
	const unsigned *shared_count; /* known once its constructors ran */
	const struct fake_shared *shared_vars;
	char *shared, *shared_end, *image, *image_end;
};

#endif
