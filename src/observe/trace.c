// SPDX-License-Identifier: Apache-2.0
// A profile as a file of Chrome's trace format: complete events ("X") in microseconds.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "observe/profile_priv.h"

// The part of an event that all pieces of a row share: name, category, arguments.
static char *row_text(const struct yk_row *r)
{
	json_t *o = json_pack("{s:s, s:s, s:{s:s, s:s, s:s, s:I, s:f}}", "name", r->op,
			      "cat", r->device, "args", "scope", r->scope, "nodes",
			      r->nodes, "implementation", r->impl, "bytes",
			      (json_int_t)r->bytes, "flops", r->flops);
	char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
	json_decref(o);
	return text;
}

static int add_line(struct yk_file_writer *w, const char *text)
{
	return yk_file_add(w, text, strlen(text));
}

static int add_lane(struct yk_file_writer *w, int slot, const char *device)
{
	static const char *const what[YK_SLOTS] = { [YK_SLOT_UP] = " up", [YK_SLOT_DOWN] = " down" };
	char text[256], reader[40];
	if (slot > YK_SLOTS)
		snprintf(reader, sizeof reader, "data worker %d", slot - YK_SLOTS - 1);
	else
		snprintf(reader, sizeof reader, "data, read by the loop");
	snprintf(text, sizeof text,
		 "%s{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,"
		 "\"args\":{\"name\":\"%s%s\"}}",
		 slot ? ",\n" : "", slot, slot < YK_SLOTS ? device : reader,
		 slot < YK_SLOTS && what[slot] ? what[slot] : "");
	return add_line(w, text);
}

static int add_events(struct yk_file_writer *w, const struct yk_profile *p,
		      char *const *row)
{
	char text[160];
	int e = 0, slots = p->ctx->device == p->ctx->cpu ? 1 : YK_SLOTS;
	for (int k = 0; k < slots && e == 0; k++)
		e = add_lane(w, k, p->ctx->slot[k].device->id);
	for (int k = 0; k < p->readers && e == 0; k++)
		e = add_lane(w, YK_SLOTS + k, "");
	for (size_t i = 0; i < p->traced && e == 0; i++) {
		const struct yk_traced *x = &p->trace[i];
		snprintf(
			text, sizeof text,
			",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,",
			x->slot, 1e-3 * (double)x->begin, 1e-3 * (double)x->ns);
		e = add_line(w, text);
		if (e == 0)
			e = add_line(w, row[x->row] + 1); // its opening brace is ours
	}
	return e;
}

int yk_profile_trace(struct yk_profile *p, const char *path)
{
	struct yk_file_writer w;
	char **row = calloc(p->rows.n + 1, sizeof *row), tail[128];
	int e = row ? 0 : YOKE_ENOMEM;
	for (size_t i = 0; i < p->rows.n && e == 0; i++)
		if (!(row[i] = row_text(&p->rows.row[i])))
			e = YOKE_ENOMEM;
	if (e < 0)
		yk_fail(e, "%s: no memory for the trace", path);
	if (e == 0 && (e = yk_file_begin(&w, path)) == 0) {
		e = add_line(&w, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
		if (e == 0)
			e = add_events(&w, p, row);
		snprintf(tail, sizeof tail, "\n],\"dropped\":%llu}\n",
			 (unsigned long long)p->dropped);
		if (e == 0)
			e = add_line(&w, tail);
		if (e == 0)
			e = yk_file_commit(&w);
		else
			yk_file_abort(&w);
	}
	for (size_t i = 0; row && i < p->rows.n; i++)
		free(row[i]);
	free(row);
	return e;
}
