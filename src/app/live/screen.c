// SPDX-License-Identifier: Apache-2.0
// Displays runs on a terminal with ncurses, updated once per second.
#include "config.h"

#include "live/top.h"

#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

struct draw {
	int line, first, count; // current line; first visible line; number of lines
};

static void draw_line(void *arg, const char *text)
{
	struct draw *d = arg;
	const int at = d->line++ - d->first;
	if (at < 0 || at >= LINES - 1)
		return;
	move(at, 0);
	if (*text && *text != ' ')
		attron(A_BOLD);
	addstr(text);
	attrset(A_NORMAL);
}

static void draw(const struct yk_top *t, struct draw *d)
{
	d->line = 0;
	erase();
	yk_top_lines(t, COLS, draw_line, d);
	d->count = d->line;
	move(LINES - 1, 0);
	attron(A_REVERSE);
	addnstr(d->count > LINES - 1 ? " q: quit, arrows: scroll " : " q: quit ", COLS - 1);
	attrset(A_NORMAL);
	refresh();
}

static void scroll_by(struct draw *d, int lines)
{
	const int max = d->count > LINES - 1 ? d->count - (LINES - 1) : 0;
	d->first += lines;
	d->first = d->first > max ? max : d->first;
	d->first = d->first < 0 ? 0 : d->first;
}

int yk_top_screen(struct yk_top *t)
{
	struct draw d = { .first = 0 };
	if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		return yk_fail(YOKE_EIO, "standard output is not a terminal; --once prints the "
					 "table, --json the same for programs");
	setlocale(LC_CTYPE, "");
	t->plain = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
	SCREEN *screen = newterm(NULL, stdout, stdin);
	if (!screen)
		return yk_fail(YOKE_EIO, "unknown terminal type (TERM); --once prints the table");
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	timeout(1000);
	for (int key = 0; key != 'q' && key != 'Q';) {
		if (key == ERR || key == 0 || key == KEY_RESIZE)
			yk_top_sample(t);
		draw(t, &d);
		key = getch();
		if (key == KEY_DOWN || key == KEY_NPAGE)
			scroll_by(&d, key == KEY_DOWN ? 1 : LINES - 2);
		if (key == KEY_UP || key == KEY_PPAGE)
			scroll_by(&d, key == KEY_UP ? -1 : 2 - LINES);
	}
	endwin();
	delscreen(screen);
	return 0;
}
