// SPDX-License-Identifier: Apache-2.0
// yoke info memory: prints the contents and history of a memory snapshot. The file is treated as
// untrusted input.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "device/pool_history.h"
#include "observe/memory.h"
#include "tool/table.h"
#include "tool/tool.h"

enum { WIDTH = 72, HEIGHT = 12, ROWS = 10, SEGMENTS = 65536 };

struct holder {
	const json_t *who;
	uint64_t bytes, blocks;
};

struct view {
	const char *path;
	json_t *file;
	size_t whos;
	struct yk_held_table now; // blocks after the events replayed so far
	uint64_t live;            // bytes
	struct point {
		uint64_t ns, bytes;
	} *point;                 // after each event
	size_t points;
	uint64_t peak, peak_ns, kind[YK_MOMENT_KINDS];
	struct yk_held_table at_peak;
};

static int bad(const struct view *v, const char *what)
{
	return yk_fail(YOKE_EFORMAT, "%s: %s: the memory snapshot is damaged; write it again",
		       v->path, what);
}

static bool number(const json_t *list, size_t i, uint64_t *to)
{
	const json_t *x = json_array_get(list, i);
	*to = json_is_integer(x) ? (uint64_t)json_integer_value(x) : 0;
	return json_is_integer(x) && json_integer_value(x) >= 0;
}

static bool parse_moment(const struct view *v, const json_t *x, struct yk_moment *m)
{
	uint64_t who = 0;
	const char *kind = json_string_value(json_array_get(x, 1));
	int k = 0;
	*m = (struct yk_moment){ 0 };
	while (kind && k < YK_MOMENT_KINDS && strcmp(kind, yk_moment_name[k]))
		k++;
	m->kind = (uint8_t)k;
	if (!kind || k == YK_MOMENT_KINDS || !number(x, 0, &m->ns) || !number(x, 2, &m->segment) ||
	    !number(x, 3, &m->offset) || !number(x, 4, &m->bytes) || !number(x, 5, &who) ||
	    who >= v->whos)
		return false;
	m->who = (uint32_t)who;
	return k != YK_MOMENT_MOVE || (number(x, 6, &m->to_segment) && number(x, 7, &m->to_offset));
}

// Loads a table from the file.
static int load_table(const struct view *v, const char *name, struct yk_held_table *to,
		      uint64_t *bytes)
{
	const json_t *t = json_object_get(v->file, name),
		     *segments = json_object_get(t, "segments");
	const json_t *blocks = json_object_get(t, "blocks"), *x;
	struct yk_moment m = { .kind = YK_MOMENT_SEGMENT };
	size_t i;
	*bytes = 0;
	if (!json_is_array(segments) || !json_is_array(blocks) ||
	    json_array_size(segments) > SEGMENTS)
		return bad(v, name);
	json_array_foreach (segments, i, x)
		if (!number(x, 0, &m.segment) || !number(x, 1, &m.bytes))
			return bad(v, name);
		else if (!yk_held_apply(to, &m))
			return yk_fail(YOKE_ENOMEM, "%s: no memory", v->path);
	m.kind = YK_MOMENT_ALLOC;
	json_array_foreach (blocks, i, x) {
		uint64_t who;
		if (!number(x, 0, &m.segment) || !number(x, 1, &m.offset) ||
		    !number(x, 2, &m.bytes) || !number(x, 3, &who) || who >= v->whos ||
		    !number(x, 4, &m.ns) || __builtin_add_overflow(*bytes, m.bytes, bytes))
			return bad(v, name);
		m.who = (uint32_t)who;
		if (!yk_held_apply(to, &m))
			return yk_fail(YOKE_ENOMEM, "%s: no memory", v->path);
	}
	return 0;
}

// Computes the live bytes after an event.
static bool follow(const struct yk_held_table *t, const struct yk_moment *m, uint64_t *live)
{
	const struct yk_held *old =
		m->kind == YK_MOMENT_FREE ? yk_held_find(t, m->segment, m->offset) : NULL;
	if (m->kind == YK_MOMENT_ALLOC)
		return !__builtin_add_overflow(*live, m->bytes, live);
	*live -= old ? old->bytes : 0;
	return true;
}

static int replay(struct view *v)
{
	const json_t *events = json_object_get(v->file, "events"), *x;
	uint64_t live;
	size_t i;
	struct yk_moment m;
	int e = load_table(v, "first", &v->now, &live);
	if (e == 0 && !json_is_array(events))
		e = bad(v, "events");
	if (e == 0 && !(v->point = malloc((json_array_size(events) + 1) * sizeof *v->point)))
		e = yk_fail(YOKE_ENOMEM, "%s: no memory", v->path);
	if (e < 0)
		return e;
	v->point[v->points++] = (struct point){ 0, live };
	v->peak = live;
	json_array_foreach (events, i, x) {
		if (!parse_moment(v, x, &m) || !follow(&v->now, &m, &live))
			return bad(v, "events");
		if (!yk_held_apply(&v->now, &m))
			return yk_fail(YOKE_ENOMEM, "%s: no memory", v->path);
		v->kind[m.kind]++;
		v->point[v->points++] = (struct point){ m.ns, live };
		if (live > v->peak) {
			v->peak = live;
			v->peak_ns = m.ns;
		}
	}
	v->live = live;
	return 0;
}

// Replays the tables up to the moment with the max live bytes.
static int replay_to_peak(struct view *v)
{
	const json_t *events = json_object_get(v->file, "events"), *x;
	uint64_t live;
	size_t i;
	struct yk_moment m;
	int e = load_table(v, "first", &v->at_peak, &live);
	if (e < 0 || live == v->peak)
		return e;
	json_array_foreach (events, i, x) {
		parse_moment(v, x, &m);
		follow(&v->at_peak, &m, &live);
		if (!yk_held_apply(&v->at_peak, &m))
			return yk_fail(YOKE_ENOMEM, "%s: no memory", v->path);
		if (live == v->peak)
			break;
	}
	return 0;
}

static bool same_table(const struct yk_held_table *a, const struct yk_held_table *b)
{
	bool same = a->n == b->n && a->segments == b->segments;
	for (size_t i = 0; i < a->size && same; i++) {
		const struct yk_held *x = &a->at[i],
				     *y = x->used ? yk_held_find(b, x->segment, x->offset) : NULL;
		same = !x->used || (y && y->bytes == x->bytes && y->who == x->who);
	}
	return same;
}

// ---- printing ----

static void print_safe(const char *s)
{
	for (; *s; s++)
		putchar((unsigned char)*s < ' ' || *s == 127 ? '?' : *s);
}

static int by_bytes(const void *a, const void *b)
{
	const struct holder *x = a, *y = b;
	return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) :
				      (x->who > y->who) - (x->who < y->who);
}

static int print_holders(const struct view *v, const char *title, const struct yk_held_table *t)
{
	struct holder *h = calloc(v->whos + 1, sizeof *h);
	const json_t *who = json_object_get(v->file, "who");
	char bytes[32];
	size_t n = 0;
	if (!h)
		return yk_fail(YOKE_ENOMEM, "%s: no memory", v->path);
	for (size_t i = 0; i < v->whos; i++)
		h[i].who = json_array_get(who, i);
	for (size_t i = 0; i < t->size; i++)
		if (t->at[i].used) {
			h[t->at[i].who].bytes += t->at[i].bytes;
			h[t->at[i].who].blocks++;
		}
	qsort(h, v->whos, sizeof *h, by_bytes);
	printf("\n%s\n  %12s %8s  op, range, site\n", title, "bytes", "blocks");
	for (; n < v->whos && n < ROWS && h[n].blocks; n++) {
		static const char *const key[] = { "op", "range", "site" };
		printf("  %12s %8llu", yk_bytes_text(bytes, h[n].bytes),
		       (unsigned long long)h[n].blocks);
		for (int k = 0; k < 3; k++) {
			const char *s = json_string_value(json_object_get(h[n].who, key[k]));
			if (s && (*s || !k)) {
				printf("  ");
				print_safe(*s ? s : "unknown");
			}
		}
		printf("\n");
	}
	struct holder rest = { 0 };
	for (; n < v->whos; n++) {
		rest.bytes += h[n].bytes;
		rest.blocks += h[n].blocks;
	}
	if (rest.blocks)
		printf("  %12s %8llu  others\n", yk_bytes_text(bytes, rest.bytes),
		       (unsigned long long)rest.blocks);
	free(h);
	return 0;
}

// Prints the max live bytes in each interval of time.
static void print_timeline(const struct view *v)
{
	uint64_t max[WIDTH] = { 0 }, last = v->point[v->points - 1].ns, now = v->point[0].bytes;
	char bytes[32];
	size_t i = 0;
	for (int x = 0; x < WIDTH; x++) {
		const double end = (double)last * (x + 1) / WIDTH;
		max[x] = now;
		for (; i < v->points && ((double)v->point[i].ns <= end || x + 1 == WIDTH); i++) {
			now = v->point[i].bytes;
			max[x] = now > max[x] ? now : max[x];
		}
	}
	printf("\nlive bytes over %.3f s\n", 1e-9 * (double)last);
	for (int y = HEIGHT; y > 0; y--) {
		const double level = (double)v->peak * (y - .5) / HEIGHT;
		printf("  %10s |", y == HEIGHT ? yk_bytes_text(bytes, v->peak) : y == 1 ? "0" : "");
		for (int x = 0; x < WIDTH; x++)
			putchar(v->peak && (double)max[x] >= level ? '#' : ' ');
		printf("\n");
	}
	printf("  %10s +", "");
	for (int x = 0; x < WIDTH; x++)
		putchar('-');
	printf("\n");
}

static void print_head(const struct view *v)
{
	const json_t *f = v->file;
	char a[32], b[32], events[64];
	printf("%s, %s, ", yk_cell(f, "device"), yk_cell(f, "why"));
	printf("%s allocated, %s reserved\n",
	       yk_bytes_text(a, (uint64_t)json_integer_value(json_object_get(f, "allocated"))),
	       yk_bytes_text(b, (uint64_t)json_integer_value(json_object_get(f, "reserved"))));
	printf("%s", yk_counted(events, (long long)v->points - 1, "event"));
	for (int k = 0; k < YK_MOMENT_KINDS; k++)
		if (v->kind[k])
			printf(", %llu %s", (unsigned long long)v->kind[k], yk_moment_name[k]);
	const json_int_t lost = json_integer_value(json_object_get(f, "overflowed"));
	if (lost > 0)
		printf("; %lld earlier %s dropped", (long long)lost,
		       lost == 1 ? "event was" : "events were");
	printf("\n");
}

static int show(struct view *v)
{
	struct yk_held_table live = { 0 };
	uint64_t bytes;
	const json_t *x, *who = json_object_get(v->file, "who");
	const char *format = json_string_value(json_object_get(v->file, "format"));
	size_t i;
	if (!format || strcmp(format, "yoke memory"))
		return yk_fail(YOKE_EFORMAT,
			       "%s: is not a memory snapshot; yoke_memory_snapshot or "
			       "memory_history=1 of yoke train writes one",
			       v->path);
	v->whos = json_array_size(who);
	json_array_foreach (who, i, x)
		if (!json_is_string(json_object_get(x, "op")))
			return bad(v, "who");
	if (!v->whos || v->whos > UINT32_MAX / 2)
		return bad(v, "who");
	int e = replay(v);
	if (e == 0)
		e = load_table(v, "live", &live, &bytes);
	if (e == 0 && !same_table(&live, &v->now))
		e = bad(v, "its events do not lead to its list of live blocks");
	if (e == 0)
		e = replay_to_peak(v);
	if (e == 0) {
		print_head(v);
		print_timeline(v);
		e = print_holders(v, "live at the peak", &v->at_peak);
	}
	if (e == 0)
		e = print_holders(v, "live at the end", &v->now);
	yk_held_fini(&live);
	return e;
}

int yk_info_memory(int argc, char **argv)
{
	if (argc != 2)
		return yk_usage("info memory", "needs the file of one snapshot");
	struct view v = { .path = argv[1], .file = yk_json_load(argv[1]) };
	int e = v.file ? show(&v) : yoke_error_code();
	yk_held_fini(&v.now);
	yk_held_fini(&v.at_peak);
	free(v.point);
	json_decref(v.file);
	return e < 0 ? yk_failed("info memory") : YK_DONE;
}
