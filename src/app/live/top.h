// SPDX-License-Identifier: Apache-2.0
// Runs as lines of a terminal, and as an object.
#ifndef YK_TOP_H
#define YK_TOP_H

#include "live/live.h"
#include "live/process.h"

enum { YK_TOP_COLUMNS = 400 };

struct yk_top {
	bool all;   // runs of the user, whichever live
	bool plain; // no characters beyond ASCII
	int n;
	struct yk_view *view[YK_LIVE_RUNS];
	struct yk_process process[YK_LIVE_RUNS];
};

// n 0: all runs of the user that live, looked for at each yk_top_look.
int yk_top_open(struct yk_top *, int n, const char *const *folder);
void yk_top_close(struct yk_top *);
void yk_top_look(struct yk_top *);
// Lines of at most that many columns; nothing in them is a control character.  line: called with each.
void yk_top_lines(const struct yk_top *, int columns, void (*line)(void *arg, const char *text), void *arg);
json_t *yk_top_json(const struct yk_top *); // NULL: no memory

// On the terminal, until q or a signal (screen.c).  EUNSUPPORTED, EIO: there is none.
int yk_top_screen(struct yk_top *);

#endif
