// SPDX-License-Identifier: Apache-2.0
// Runs a program on bytes.  The set of its threads after a text is a state; states and the steps
// between them are found when they are needed, and kept.  Stacks share their frames.
#ifndef YK_SCHEMA_STATES_H
#define YK_SCHEMA_STATES_H

#include "schema/program.h"

enum {
	YK_STATE_UNKNOWN, // of a step: not found yet
	YK_STATE_DEAD,    // no value begins so
	YK_STATE_FIRST,
};

struct yk_states {
	const struct yk_program *p;
	uint8_t class_of[256]; // bytes of a class are in the same edges of all automata
	uint8_t byte_of[256];  // one byte of each class
	uint32_t classes;
	struct yk_frame {
		uint32_t op, number, parent; // parent 0: none
		uint32_t depth;              // frames below
		uint32_t stamp;
	} * frame; // 0 is none
	size_t frames, frame_cap;
	uint32_t *frame_table; // open addressing, 0: unused
	size_t frame_table_size;
	struct yk_state {
		size_t thread; // the first of its threads
		uint32_t threads;
		uint32_t slot;  // of the cache of masks + 1, 0: none
		uint32_t plain; // what yk_states_plain returned, YK_STATE_UNKNOWN: not found yet
		bool complete;
	} * state; // the first two are none
	size_t states, state_cap;
	uint32_t *step; // [states, classes]
	size_t step_cap;
	uint32_t *thread; // frames of RUN and END
	size_t threads, thread_cap;
	uint32_t *state_table;
	size_t state_table_size;
	uint32_t *todo;
	size_t todos, todo_cap;
	uint32_t stamp;
	size_t work; // since it was last set to 0
};

// ENOMEM.
int yk_states_init(struct yk_states *, const struct yk_program *, uint32_t *start);
void yk_states_fini(struct yk_states *);
// Finds a step that is unknown.  ERANGE, not reported: too much memory or work; ENOMEM.
int yk_states_find(struct yk_states *, uint32_t state, uint32_t class, uint32_t *to);
static inline int yk_states_step(struct yk_states *s, uint32_t state, uint8_t byte, uint32_t *to)
{
	const uint32_t class = s->class_of[byte];
	*to = s->step[state * (size_t)s->classes + class];
	return *to ? 0 : yk_states_find(s, state, class, to);
}
// The state after any character that a JSON string does not escape, if it is the same for all of
// them, also YK_STATE_DEAD; YK_STATE_UNKNOWN: it is not.  Errors as yk_states_find.
int yk_states_plain(struct yk_states *, uint32_t state, uint32_t *to);
// Does a JSON string have this byte of UTF-8 as it is?
static inline bool yk_plain_byte(uint8_t c)
{
	return c >= 32 && c != '"' && c != '\\';
}
size_t yk_states_bytes(const struct yk_states *); // of memory
// Moves n states to an empty table.  On failure `state` is unchanged, and `to` empty.
int yk_states_move(const struct yk_states *, uint32_t *state, size_t n, struct yk_states *to);

#endif
