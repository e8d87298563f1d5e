// SPDX-License-Identifier: Apache-2.0
// Writes progress to the screen and to the run's records.
#include "config.h"

#include "train/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/number.h"
#include "device/warmup.h"

#define REDRAW 0.2   // seconds between redraws of the bar
enum { DIGITS = 9 }; // significant digits of losses in the records: all of a float

// ---- failed writes ----

int yk_progress_gave_up(int code, const char *advice)
{
	char why[512];
	snprintf(why, sizeof why, "%s", yoke_error());
	yoke_error_clear();
	return yk_fail(code, "%s, twice in a row; %s", why, advice);
}

bool yk_progress_again(struct yk_progress *p, int code)
{
	if (code != YOKE_EIO && code != YOKE_ENOENT)
		return false;
	yk_progress_print(p, "%s; retrying once", yoke_error());
	yoke_error_clear();
	nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
	return true;
}

void yk_progress_open(struct yk_progress *p, yoke_run *record, const char *show, int64_t steps)
{
	bool automatic = !strcmp(show, "auto"), bar = automatic && isatty(STDERR_FILENO);
	*p = (struct yk_progress){ .record = record,
				   .bar = bar || !strcmp(show, "1"),
				   .lines = automatic && !bar,
				   .steps = steps };
}

// ---- the screen ----

static void clear_bar(struct yk_progress *p)
{
	if (p->drawn)
		fputs("\r\033[K", stderr);
	p->drawn = false;
}

void yk_progress_time(char *to, size_t cap, double seconds)
{
	int64_t s = (int64_t)(seconds + 0.5);
	int minutes = (int)(s / 60 % 60), rest = (int)(s % 60);
	if (s >= 3600)
		snprintf(to, cap, "%" PRId64 ":%02d:%02d", s / 3600, minutes, rest);
	else
		snprintf(to, cap, "%d:%02d", minutes, rest);
}

// "loss 1.8321  39.8k tokens/s  312 MiB  ETA 0:41"
static void print_state(const struct yk_progress *p, int64_t step, char *to, size_t cap)
{
	const struct yk_step_metrics *m = &p->last;
	char eta[32] = "?";
	double spent = yk_seconds() - p->began - (yk_warmup_seconds() - p->warmed);
	double done = (double)(step - p->first);
	if (done > 0)
		yk_progress_time(eta, sizeof eta, spent / done * (double)(p->steps - step));
	double rate = m->tokens_per_s, mib = (double)m->peak_bytes / (1 << 20);
	bool thousands = rate >= 1e4;
	int n = yk_snprintf(to, cap, "loss %.4f  ", m->loss);
	if (m->scale > 0)
		n += yk_snprintf(to + n, cap - (size_t)n,
				 "%s%.80s%sscale %g, %" PRId64 " skipped  ",
				 m->overflow ? "overflow in " : "", m->overflow ? m->overflow : "",
				 m->overflow ? "  " : "", m->scale, m->skipped);
	yk_snprintf(to + n, cap - (size_t)n, "%.*f%s tokens/s  %.*f MiB  ETA %s",
		 thousands && rate < 1e5, thousands ? rate / 1e3 : rate,
		 thousands ? "k" : "", mib < 100, mib, eta);
}

// " 40% 400/1000 [====>     ]  state": n of `of` are done.
static void draw(struct yk_progress *p, int64_t n, int64_t of, const char *state)
{
	int columns = yk_log_columns();
	double done = of > 0 ? (double)n / (double)of : 1;
	char head[64];
	int used = snprintf(head, sizeof head, "%3d%% %" PRId64 "/%" PRId64 " ",
			    (int)(100 * done), n, of);
	int room = columns - used - (int)strlen(state) - 5;
	int width = room > 30 ? 30 : room;
	fprintf(stderr, "\r%s", head);
	if (width >= 5) {
		int full = (int)(done * width);
		fputc('[', stderr);
		for (int i = 0; i < width; i++)
			fputc(i < full ? '=' : i == full ? '>' : ' ', stderr);
		fputs("]  ", stderr);
	}
	// A line that wraps could not be overwritten.
	int rest = columns - 1 - used - (width >= 5 ? width + 4 : 0);
	fprintf(stderr, "%.*s\033[K", rest > 0 ? rest : 0, state);
	fflush(stderr);
	p->drawn = true;
	p->drew = yk_seconds();
}

static void draw_step(struct yk_progress *p, int64_t step)
{
	char state[256];
	print_state(p, step, state, sizeof state);
	draw(p, step, p->steps, state);
}

void yk_progress_print(struct yk_progress *p, const char *fmt, ...)
{
	clear_bar(p);
	va_list ap;
	va_start(ap, fmt);
	yk_vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

// Starts the ETA clock after the first step, which plans and compiles.
static void met(struct yk_progress *p, int64_t step)
{
	if (p->began > 0)
		return;
	p->first = step;
	p->began = yk_seconds();
	p->warmed = yk_warmup_seconds();
}

void yk_progress_logged(struct yk_progress *p, const struct yk_step_metrics *m)
{
	met(p, m->step);
	p->last = *m;
	if (p->bar) {
		if (m->step == p->steps || yk_seconds() - p->drew >= REDRAW)
			draw_step(p, m->step);
	} else if (p->lines) {
		char state[256];
		print_state(p, m->step, state, sizeof state);
		fprintf(stderr, "step %" PRId64 "/%" PRId64 "  %s\n", m->step, p->steps,
			state);
	}
	yk_records_train(p->record, DIGITS, m);
}

void yk_progress_validating(struct yk_progress *p, int64_t step, int64_t done, int64_t windows)
{
	char state[64];
	if (!p->bar || (done > 0 && yk_seconds() - p->drew < REDRAW))
		return;
	snprintf(state, sizeof state, "windows validated at step %" PRId64, step);
	draw(p, done, windows, state);
}

void yk_progress_validated(struct yk_progress *p, int64_t step, double loss, int64_t skipped)
{
	double perplexity = exp(loss);
	char windows[64], without[96] = "";
	if (skipped)
		snprintf(without, sizeof without, "  %s skipped",
			 yk_counted(windows, skipped, "window"));
	yk_progress_print(p, "step %" PRId64 "/%" PRId64 "  val_loss %.4f  perplexity %.4g%s", step,
			  p->steps, loss, perplexity, without);
	yk_records_valid(p->record, DIGITS, step, loss, perplexity, skipped);
}

void yk_progress_memory(struct yk_progress *p, int64_t step, int64_t epochs,
		       double seconds, const struct yk_memory *m)
{
	char b[4][32], head[64] = "before training";
	if (seconds > 0)
		yk_snprintf(head, sizeof head, "epoch %" PRId64 ", %.1f s", epochs, seconds);
	yk_progress_print(p, "%s: memory %s in use, peak %s, %s reserved; resident %s", head,
			  yk_bytes_text(b[0], m->allocated), yk_bytes_text(b[1], m->peak),
			  yk_bytes_text(b[2], m->reserved),
			  m->resident ? yk_bytes_text(b[3], m->resident) : "n/a");
	yk_records_memory(p->record, step, epochs, seconds, m);
}

void yk_progress_line(void *p, const char *line)
{
	const int columns = yk_log_columns() - 1, indent = 6; // of continuation lines
	int margin = 0;
	while (*line) {
		int room = columns - margin > 8 ? columns - margin : 8, n = (int)strlen(line);
		if (n > room) {
			for (n = room; n > margin && line[n] != ' '; n--)
				;
			if (strspn(line, " ") >= (size_t)n) // a word longer than a line
				n = room;
		}
		int next = n + (int)strspn(line + n, " ");
		while (n > 0 && line[n - 1] == ' ')
			n--;
		yk_progress_print(p, "%*s%.*s", margin, "", n, line);
		line += next;
		margin = indent;
	}
}

void yk_progress_report(struct yk_progress *p, int64_t step, bool show, const struct yk_report *r)
{
	if (show)
		yk_report_print(r, yk_progress_line, p);
	yk_records_report(p->record, step, r);
}

void yk_progress_tick(struct yk_progress *p, int64_t step)
{
	met(p, step);
	if (p->bar && p->last.step > 0 && yk_seconds() - p->drew >= REDRAW)
		draw_step(p, step);
}

void yk_progress_close(struct yk_progress *p)
{
	if (p->drawn)
		fputc('\n', stderr);
	*p = (struct yk_progress){ 0 };
}
