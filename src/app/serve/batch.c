// SPDX-License-Identifier: Apache-2.0
// yoke serve batch: the requests of a file, as many at once as the engine takes, answered in their
// order. A line is appended when it is complete, so a batch that was ended goes on after the last
// complete line.
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/stop.h"
#include "serve/open.h"
#include "serve/routes.h"

struct waiting {
	struct yk_exchange *x; // NULL: free
	json_t *id;            // custom_id; NULL: none
	int64_t line;
	char *why; // the line is no request
};

struct batch {
	struct yk_serve *s;
	struct yk_stop stop;
	const char *in;
	FILE *from, *to;
	int64_t line, skip;      // lines read, and answered before
	struct waiting *waiting; // a ring
	int64_t room, first, n;
};

static int begin_output(struct batch *b, const char *path)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	off_t good = 0;
	b->to = fopen(path, "a+e");
	if (!b->to)
		return yk_fail(YOKE_EIO, "%s: %s", path, strerror(errno));
	rewind(b->to);
	while ((n = getline(&line, &cap, b->to)) > 0 && line[n - 1] == '\n') {
		good += n;
		b->skip++;
	}
	free(line);
	// the last line is incomplete if the batch was killed while writing it
	if (ftruncate(fileno(b->to), good) < 0 || fseeko(b->to, 0, SEEK_END) < 0)
		return yk_fail(YOKE_EIO, "%s: %s", path, strerror(errno));
	return 0;
}

// ---- requests ----

// The exchange of a line; NULL, and *why: it is no request.
static struct yk_exchange *request_of(const json_t *o, const char **why)
{
	const char *url = json_string_value(json_object_get(o, "url")),
		   *method = json_string_value(json_object_get(o, "method"));
	const json_t *body = json_object_get(o, "body");
	*why = !json_is_object(o)                               ? "the line is not a JSON object" :
	       !json_is_string(json_object_get(o, "custom_id")) ? "'custom_id' must be a string" :
	       !method || strcmp(method, "POST")                ? "'method' must be POST" :
	       !url                                             ? "'url' must be a string" :
	       !json_is_object(body)                            ? "'body' must be an object" :
	       json_is_true(json_object_get(body, "stream")) ?
				       "'stream' is not possible in a batch" :
				       NULL;
	char *text = *why ? NULL : yk_json_text(body, JSON_COMPACT);
	struct yk_exchange *x = text ? yk_exchange_local(url, text, strlen(text)) : NULL;
	free(text);
	if (!x && !*why)
		*why = "out of memory";
	return x;
}

// Reads a line and passes its request on.  Returns 1, or 0 at the end of the file.
static int read_request(struct batch *b)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	const char *why;
	do {
		errno = 0;
		n = getline(&line, &cap, b->from);
		b->line += n > 0;
	} while (n > 0 && (strspn(line, " \t\r\n") == (size_t)n || b->skip-- > 0));
	if (n <= 0) {
		const int e =
			ferror(b->from) ? yk_fail(YOKE_EIO, "%s: %s", b->in, strerror(errno)) : 0;
		free(line);
		return e;
	}
	struct waiting *w = &b->waiting[(b->first + b->n++) % b->room];
	json_t *o = yk_json_parse(line, (size_t)n, "the line");
	*w = (struct waiting){ .x = request_of(o, &why), .line = b->line };
	w->id = json_incref(json_object_get(o, "custom_id"));
	if (!w->x)
		w->why = strdup(o ? why : yoke_error());
	yoke_error_clear();
	json_decref(o);
	free(line);
	if (w->x)
		yk_route_local(b->s, w->x);
	return 1;
}

// ---- replies ----

static json_t *reply_of(const struct waiting *w)
{
	size_t bytes;
	const char *text = w->x ? yk_exchange_text(w->x, &bytes) : NULL;
	char id[40];
	snprintf(id, sizeof id, "batch_req_%lld", (long long)w->line);
	json_t *body = text ? yk_json_parse(text, bytes, "a reply") : NULL;
	if (w->x)
		return json_pack("{s:s, s:O?, s:{s:i, s:s, s:o}, s:n}", "id", id, "custom_id",
				 w->id, "response", "status_code", yk_exchange_status(w->x),
				 "request_id", id, "body", body, "error");
	return json_pack("{s:s, s:O?, s:n, s:{s:s, s:s}}", "id", id, "custom_id", w->id, "response",
			 "error", "code", "invalid_request", "message",
			 w->why ? w->why : "out of memory");
}

// Writes the replies that are complete, in order.
static int write_replies(struct batch *b)
{
	int e = 0;
	while (b->n && e == 0) {
		struct waiting *w = &b->waiting[b->first % b->room];
		if (w->x && !yk_exchange_is_done(w->x))
			return 0;
		json_t *o = reply_of(w);
		char *text = o ? yk_json_text(o, JSON_COMPACT) : NULL;
		if (!text)
			e = yk_fail(YOKE_ENOMEM, "no memory for a reply");
		else if (fprintf(b->to, "%s\n", text) < 0 || fflush(b->to))
			e = yk_fail(YOKE_EIO, "the replies: %s", strerror(errno));
		free(text);
		json_decref(o);
		json_decref(w->id);
		free(w->why);
		yk_exchange_release(w->x);
		*w = (struct waiting){ 0 };
		b->first++;
		b->n--;
	}
	return e;
}

static int answer(struct batch *b)
{
	int e = 0, more = 1, busy = 0;
	while (e >= 0 && (more || b->n)) {
		if (atomic_load(&b->stop.signal))
			return yk_fail(YOKE_EFAILED, "ended by a signal; the same command goes on");
		while (e >= 0 && more > 0 && b->n < b->room) {
			e = more = read_request(b);
		}
		if (e >= 0)
			e = busy = yk_serve_work(b->s);
		if (e >= 0)
			e = write_replies(b);
		if (e >= 0 && !busy && b->n)
			yk_serve_wait(b->s, 100);
	}
	return e < 0 ? e : 0;
}

int yk_serve_batch(const struct yk_serve_options *options, const char *in, const char *out)
{
	struct batch b = { .in = in };
	struct yk_serve_options o = *options;
	if (yk_file_is_same(in, out))
		return yk_fail(YOKE_EINVAL, "in=%s and out=%s are the same file", in, out);
	int e = yk_stop_begin(&b.stop, NULL, NULL);
	if (e < 0)
		return e;
	b.room = o.slots + o.queue < 2 * o.slots ? o.slots + o.queue : 2 * o.slots;
	o.queue = INT32_MAX; // the room limits them
	b.waiting = calloc((size_t)b.room, sizeof *b.waiting);
	b.s = b.waiting ? yk_serve_new(&o) : NULL;
	b.from = fopen(in, "re");
	if (!b.s)
		e = yk_fail(YOKE_ENOMEM, "no memory for a batch");
	else if (!b.from)
		e = yk_fail(YOKE_EIO, "%s: %s", in, strerror(errno));
	else
		e = begin_output(&b, out);
	if (e == 0)
		e = yk_serve_open(b.s);
	if (e == 0) {
		atomic_store(&b.s->phase, YK_READY);
		e = answer(&b);
	}
	for (; b.n; b.n--, b.first++) {
		struct waiting *w = &b.waiting[b.first % b.room];
		json_decref(w->id);
		free(w->why);
		yk_exchange_release(w->x);
	}
	if (b.from)
		fclose(b.from);
	if (b.to && fclose(b.to) && e == 0)
		e = yk_fail(YOKE_EIO, "%s: %s", out, strerror(errno));
	yk_serve_free(b.s);
	free(b.waiting);
	yk_stop_end(&b.stop);
	return e;
}
