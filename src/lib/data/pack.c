// SPDX-License-Identifier: Apache-2.0
// Packing by best fit decreasing: the longest text first, each into the fullest window that has
// room for it. The result depends only on the lengths.
#include "config.h"

#include "data/pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

// Windows that are not full, in lists by remaining room. in[leaves + r] counts the windows with
// room r, and each inner node of this binary tree counts the windows of its two children.
struct open_windows {
	int64_t leaves; // a power of two, above the largest room
	int64_t *in;    // [2 * leaves]
	int64_t *head;  // [leaves]: the last one added with that room, -1: none
	int64_t *next;  // by window
};

static void count(struct open_windows *o, int64_t room, int64_t more)
{
	for (int64_t i = o->leaves + room; i > 0; i /= 2)
		o->in[i] += more;
}

static void add(struct open_windows *o, int64_t window, int64_t room)
{
	if (room == 0)
		return;
	o->next[window] = o->head[room];
	o->head[room] = window;
	count(o, room, 1);
}

// The smallest room of at least `wanted`; 0: no window has that much room.
static int64_t fitting(const struct open_windows *o, int64_t wanted)
{
	int64_t i = o->leaves + wanted;
	if (o->in[i])
		return wanted;
	while (i > 1 &&
	       (i % 2 || !o->in[i + 1])) // up, until there is a filled subtree to the right
		i /= 2;
	if (i <= 1)
		return 0;
	for (i++; i < o->leaves;)
		i = o->in[2 * i] ? 2 * i : 2 * i + 1;
	return i - o->leaves;
}

static int64_t take(struct open_windows *o, int64_t room)
{
	const int64_t window = o->head[room];
	o->head[room] = o->next[window];
	count(o, room, -1);
	return window;
}

static int open_init(struct open_windows *o, int64_t room, int64_t windows)
{
	*o = (struct open_windows){ .leaves = 2 };
	while (o->leaves <= room)
		o->leaves *= 2;
	o->in = calloc(2 * (size_t)o->leaves, sizeof *o->in);
	o->head = malloc((size_t)o->leaves * sizeof *o->head);
	o->next = malloc((size_t)windows * sizeof *o->next);
	if (!o->in || !o->head || !o->next)
		return YOKE_ENOMEM;
	for (int64_t r = 0; r < o->leaves; r++)
		o->head[r] = -1;
	return 0;
}

static void open_fini(struct open_windows *o)
{
	free(o->in);
	free(o->head);
	free(o->next);
}

// Sorts numbers begin .. end - 1 by decreasing length, equal lengths in their order. A counting
// sort, because lengths are bounded.
static int longest_first(const int64_t *length, int64_t begin, int64_t end, int64_t room,
			 int64_t *to)
{
	int64_t *at = calloc((size_t)room + 2, sizeof *at);
	if (!at)
		return YOKE_ENOMEM;
	for (int64_t i = begin; i < end; i++)
		at[room - length[i] + 1]++;
	for (int64_t k = 1; k <= room; k++)
		at[k] += at[k - 1];
	for (int64_t i = begin; i < end; i++)
		to[at[room - length[i]]++] = i;
	free(at);
	return 0;
}

// Assigns a window to each text; returns the number of windows.
static int64_t distribute(const int64_t *length, int64_t begin, int64_t n, int64_t room, bool pack,
			  const int64_t *order, struct open_windows *o, int64_t *window)
{
	int64_t windows = 0;
	for (int64_t k = 0; k < n; k++) {
		const int64_t i = order[k], fits = pack ? fitting(o, length[i]) : 0;
		const int64_t w = fits ? take(o, fits) : windows++;
		window[i - begin] = w;
		if (pack)
			add(o, w, (fits ? fits : room) - length[i]);
	}
	return windows;
}

// Numbers the windows by their first texts, and lists the texts of each.
static void list(struct yk_packing *p, int64_t begin, int64_t n, int64_t *window, int64_t *renamed)
{
	int64_t known = 0;
	for (int64_t w = 0; w < p->windows; w++)
		renamed[w] = -1;
	for (int64_t i = 0; i < n; i++) {
		if (renamed[window[i]] < 0)
			renamed[window[i]] = known++;
		window[i] = renamed[window[i]];
		p->first[window[i] + 1]++;
	}
	for (int64_t w = 0; w < p->windows; w++) {
		p->first[w + 1] += p->first[w];
		renamed[w] = p->first[w];
	}
	for (int64_t i = 0; i < n; i++)
		p->text[renamed[window[i]]++] = begin + i;
}

int yk_packing_make(struct yk_packing *to, const int64_t *length, int64_t begin, int64_t end,
		    int64_t room, bool pack)
{
	const int64_t n = end - begin;
	struct yk_packing p = { 0 };
	struct open_windows o;
	int64_t *order = malloc(((size_t)n + 1) * sizeof *order),
		*window = malloc(((size_t)n + 1) * sizeof *window);
	p.text = malloc(((size_t)n + 1) * sizeof *p.text);
	int e = open_init(&o, room, n + 1);
	if (e == 0 && order && window && p.text)
		e = longest_first(length, begin, end, room, order);
	else
		e = YOKE_ENOMEM;
	if (e == 0) {
		p.windows = distribute(length, begin, n, room, pack, order, &o, window);
		p.first = calloc((size_t)p.windows + 1, sizeof *p.first);
		e = p.first ? 0 : YOKE_ENOMEM;
	}
	if (e == 0)
		list(&p, begin, n, window, order);
	free(order);
	free(window);
	open_fini(&o);
	if (e < 0) {
		yk_packing_fini(&p);
		return yk_fail(e, "data: no memory to pack %lld texts", (long long)n);
	}
	*to = p;
	return 0;
}

void yk_packing_fini(struct yk_packing *p)
{
	free(p->first);
	free(p->text);
	*p = (struct yk_packing){ 0 };
}
