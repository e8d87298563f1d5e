// SPDX-License-Identifier: Apache-2.0
// Runs as lines for a terminal and as a JSON object (yoke dashboard terminal).
#ifndef YK_TOP_H
#define YK_TOP_H

#include "live/hardware.h"
#include "live/live.h"
#include "live/process.h"

enum { YK_TOP_COLUMNS = 400 };

struct yk_top {
	bool all;   // all active runs of the user
	bool plain; // ASCII characters only
	int n;
	struct yk_view *view[YK_LIVE_RUNS];
	struct yk_process process[YK_LIVE_RUNS];
	struct yk_hardware *hardware; // with `all`: the machine; NULL: not shown
};

// n 0: the machine and all active runs of the user, searched for again by each yk_top_sample.
// ENOMEM.
int yk_top_open(struct yk_top *, int n, const char *const *folder);
void yk_top_close(struct yk_top *);
void yk_top_sample(struct yk_top *);
// Calls line() with each line. Lines have at most that many columns and contain no control
// characters.
void yk_top_lines(const struct yk_top *, int columns, void (*line)(void *arg, const char *text),
		  void *arg);
json_t *yk_top_json(const struct yk_top *); // NULL: out of memory

// Displays on the terminal until q or a signal (screen.c). EUNSUPPORTED, EIO: no usable terminal.
int yk_top_screen(struct yk_top *);

#endif
