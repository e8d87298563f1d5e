// SPDX-License-Identifier: Apache-2.0
// For bench/native_launches: records launches with their arguments, to be replayed by the bare
// driver call.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "driver.h"

EXPORT void fake_tape(bool notes);
EXPORT size_t fake_tape_length(void);
EXPORT int fake_tape_launch(size_t i);

enum { MAX_PARAMS = 64 };

static struct noted {
	FUNCTION function;
	struct fake_dim blocks, threads;
	STREAM stream;
	void *params[MAX_PARAMS];
} *tape;
static size_t length, cap;
static bool on;

void fake_tape(bool notes)
{
	on = notes;
}

size_t fake_tape_length(void)
{
	return length;
}

void fake_tape_note(FUNCTION function, const struct fake_kernel *k, struct fake_dim blocks,
		       struct fake_dim threads, STREAM stream, void **params)
{
	if (!on || k->params > MAX_PARAMS)
		return;
	if (length == cap) {
		struct noted *more = realloc(tape, (cap = cap ? 2 * cap : 64) * sizeof *more);
		if (!more)
			abort();
		tape = more;
	}
	struct noted *n = &tape[length++];
	*n = (struct noted){ function, blocks, threads, stream, { NULL } };
	for (unsigned i = 0; i < k->params; i++)
		if ((n->params[i] = malloc(k->bytes[i] + 1)))
			memcpy(n->params[i], params[i], k->bytes[i]);
}

int fake_tape_launch(size_t i)
{
	struct noted *n = &tape[i];

	return TWIN(cuLaunchKernel, hipModuleLaunchKernel)(
		n->function, n->blocks.x, n->blocks.y, n->blocks.z, n->threads.x, n->threads.y,
		n->threads.z, 0, n->stream, n->params, NULL);
}
