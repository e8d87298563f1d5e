// SPDX-License-Identifier: Apache-2.0
// Recording of a pool's history: started on request or by a setting, and written to a file as JSON.
#include "config.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/number.h"
#include "base/param.h"
#include "device/pool_priv.h"

YK_PARAM(history_setting, "memory.history", YK_BOOL, "0",
	 "keep a history of allocations on a device, with op, range and call site");
YK_PARAM(events_setting, "memory.events", YK_INT, "65536", "number of latest events that a memory "
	"history holds",
	 .min = 16, .max = 1 << 26);
YK_PARAM(snapshot_setting, "memory.snapshot", YK_STRING, "",
	 "file to which the memory history is written when an allocation fails");

bool yk_pool_is_recorded(struct yk_pool *p)
{
	return __atomic_load_n(&p->history, __ATOMIC_RELAXED) != NULL;
}

// Fills the tables with the blocks and segments that exist before the first event.
static bool take_over(struct yk_pool *p, struct yk_history *h)
{
	bool good = true;
	for (const struct yk_pool_segment *s = p->segments; s && good; s = s->next) {
		struct yk_moment m = { .kind = YK_MOMENT_SEGMENT,
				       .segment = s->serial,
				       .bytes = s->bytes };
		good = yk_held_apply(&h->first, &m) && yk_held_apply(&h->now, &m);
		m.kind = YK_MOMENT_ALLOC;
		for (const struct yk_chunk *c = s->first; c && good; c = c->next) {
			m.offset = c->block.offset;
			m.bytes = c->block.bytes;
			good = c->free ||
			       (yk_held_apply(&h->first, &m) && yk_held_apply(&h->now, &m));
		}
	}
	return good;
}

int yk_pool_record(struct yk_pool *p, bool on)
{
	struct yk_history *h = on ? yk_history_new((size_t)yk_param_int(&events_setting)) : NULL,
			  *old = NULL;
	if (on && !h)
		return yk_fail(YOKE_ENOMEM, "no memory for a history of %s", p->device->id);
	pthread_mutex_lock(&p->lock);
	bool good = true;
	if (on && p->history) {
		old = h; // one is recorded already
	} else {
		good = !h || take_over(p, h);
		old = good ? p->history : h;
		if (good)
			__atomic_store_n(&p->history, h, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&p->lock);
	yk_history_free(old);
	return good ? 0 : yk_fail(YOKE_ENOMEM, "no memory for a history of %s", p->device->id);
}

void yk_pool_with_history(struct yk_pool *p,
			  void (*fn)(const struct yk_history *, const struct yk_pool_stats *,
				     void *),
			  void *arg)
{
	pthread_mutex_lock(&p->lock);
	fn(p->history, &p->stats, arg);
	pthread_mutex_unlock(&p->lock);
}

// ---- the file ----

__attribute__((format(printf, 2, 3)))
static int add(struct yk_file_writer *w, const char *fmt, ...)
{
	char line[256];
	va_list ap;
	va_start(ap, fmt);
	int n = yk_vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	return yk_file_add(w, line, (size_t)n);
}

static int add_who(struct yk_file_writer *w, const struct yk_history *h)
{
	int e = add(w, ",\n\"who\":[");
	for (size_t i = 0; i < h->whos && e == 0; i++) {
		json_t *o = json_pack("{s:s, s:s, s:s}", "op", h->who[i].op, "range",
				      h->who[i].range, "site", h->who[i].site);
		char *text = o ? yk_json_text(o, JSON_COMPACT) : NULL;
		// json_pack fails on a name that is not UTF-8
		e = add(w, "%s", i ? ",\n" : "\n");
		if (e == 0)
			e = text ? yk_file_add(w, text, strlen(text)) :
				   add(w, "{\"op\":\"?\",\"range\":\"\",\"site\":\"\"}");
		free(text);
		json_decref(o);
	}
	return e == 0 ? add(w, "]") : e;
}

static int add_table(struct yk_file_writer *w, const char *name, const struct yk_held_table *t,
		     uint64_t from)
{
	bool more = false;
	int e = add(w, ",\n\"%s\":{\"segments\":[", name);
	for (size_t i = 0; i < t->segments && e == 0; i++)
		e = add(w, "%s[%llu,%llu]", i ? "," : "", (unsigned long long)t->segment[i].serial,
			(unsigned long long)t->segment[i].bytes);
	if (e == 0)
		e = add(w, "],\n\"blocks\":[");
	for (size_t i = 0; i < t->size && e == 0; i++) {
		const struct yk_held *b = &t->at[i];
		if (!b->used)
			continue;
		e = add(w, "%s[%llu,%llu,%llu,%u,%llu]", more ? ",\n" : "\n",
			(unsigned long long)b->segment, (unsigned long long)b->offset,
			(unsigned long long)b->bytes, b->who,
			(unsigned long long)(b->ns > from ? b->ns - from : 0));
		more = true;
	}
	return e == 0 ? add(w, "]}") : e;
}

static int add_events(struct yk_file_writer *w, const struct yk_history *h, uint64_t from)
{
	int e = add(w, ",\n\"events\":[");
	for (size_t i = 0; i < h->n && e == 0; i++) {
		const struct yk_moment *m = &h->ring[(h->next + h->cap - h->n + i) % h->cap];
		e = add(w, "%s[%llu,\"%s\",%llu,%llu,%llu,%u", i ? ",\n" : "\n",
			(unsigned long long)(m->ns - from), yk_moment_name[m->kind],
			(unsigned long long)m->segment, (unsigned long long)m->offset,
			(unsigned long long)m->bytes, m->who);
		if (e == 0 && m->kind == YK_MOMENT_MOVE)
			e = add(w, ",%llu,%llu", (unsigned long long)m->to_segment,
				(unsigned long long)m->to_offset);
		if (e == 0)
			e = add(w, "]");
	}
	return e == 0 ? add(w, "]") : e;
}

struct writing {
	struct yk_file_writer *to;
	const struct yk_pool *pool;
	const char *why;
	int code;
};

static void write_history(const struct yk_history *h, const struct yk_pool_stats *s, void *arg)
{
	struct writing *x = arg;
	struct yk_file_writer *w = x->to;
	if (!h || h->failed) {
		x->code = yk_fail(
			h ? YOKE_ENOMEM : YOKE_EINVAL, "%s",
			h ? "there was not enough "
			    "memory for a history" :
			    "no history of memory is kept: YOKE_MEMORY_HISTORY=1, or yoke_memory_record");
		return;
	}
	const uint64_t from =
		h->n ? h->ring[(h->next + h->cap - h->n) % h->cap].ns : yk_nanoseconds();
	int e = add(
		w,
		"{\"format\":\"yoke memory\",\"version\":1,\"device\":\"%s\",\"time\":%lld,\"why\":\"%s\","
		"\"overflowed\":%llu,\n",
		x->pool->device->id, (long long)time(NULL), x->why,
		(unsigned long long)h->overflowed);
	if (e == 0)
		e = add(w, "\"allocated\":%llu,\"peak\":%llu,\"reserved\":%llu",
			(unsigned long long)s->allocated_bytes.current,
			(unsigned long long)s->allocated_bytes.peak,
			(unsigned long long)s->reserved_bytes.current);
	e = e == 0 ? add_who(w, h) : e;
	e = e == 0 ? add_table(w, "first", &h->first, from) : e;
	e = e == 0 ? add_events(w, h, from) : e;
	e = e == 0 ? add_table(w, "live", &h->now, from) : e;
	x->code = e == 0 ? add(w, "}\n") : e;
}

int yk_pool_snapshot(struct yk_pool *p, const char *path, const char *why)
{
	struct yk_file_writer w;
	int e = yk_file_begin(&w, path);
	if (e < 0)
		return e;
	struct writing x = { &w, p, why, 0 };
	yk_pool_with_history(p, write_history, &x);
	if (x.code == 0)
		return yk_file_commit(&w);
	yk_file_abort(&w);
	return x.code;
}

// ---- settings ----

void yk_pool_record_begin(struct yk_pool *p)
{
	if (!yk_param_bool(&history_setting))
		return;
	struct yk_error_aside *was = yk_error_aside();
	if (yk_pool_record(p, true) < 0)
		yk_warn("pool", "%s", yoke_error());
	yk_error_restore(was);
}

void yk_pool_failed(struct yk_pool *p)
{
	const char *path = yk_param_str(&snapshot_setting);
	if (!*path)
		return;
	struct yk_error_aside *was = yk_error_aside();
	if (yk_pool_snapshot(p, path, "oom") < 0)
		yk_warn("pool", "%s", yoke_error());
	else
		yk_warn("pool", "%s: an allocation failed; the allocated blocks are listed in %s "
			"(yoke info memory %s)", p->device->id,
			path, path);
	yk_error_restore(was);
}
