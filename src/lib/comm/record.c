// SPDX-License-Identifier: Apache-2.0
// Writes a queue's recent operations to a file, to diagnose failures.
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/number.h"
#include "comm/ranks.h"

static struct yk_past_job describe(const struct yk_job *j, int code)
{
	struct yk_past_job p = { .sequence = j->sequence, .begun = j->begun, .code = code };
	memcpy(p.group, j->task->group->name, sizeof p.group);
	memcpy(p.text, j->task->text, sizeof p.text);
	return p;
}

void yk_ranks_history_add(struct yk_ranks_history *h, const struct yk_job *j, int code)
{
	h->job[h->count++ % YK_PAST] = describe(j, code);
}

static const char *state_of(const struct yk_past_job *p, bool open)
{
	if (open)
		return p->begun ? "open" : "waits";
	return p->code ? yoke_error_name(p->code) : "done";
}

// Writes one line. since: seconds from 1970 to the clock's zero.
static int add(struct yk_file_writer *w, const struct yk_ranks *q, const struct yk_past_job *p,
	       bool open, double since)
{
	char line[YK_TASK_TEXT + 256];
	const int n =
		yk_snprintf(line, sizeof line,
			    "{\"rank\":%u,\"group\":\"%.32s\",\"operation\":%" PRIu64
			    ",\"op\":\"%.96s\",\"time\":%.6f,"
			    "\"state\":\"%s\"}\n",
			    q->world ? q->world->rank : 0, p->group, p->sequence + 1, p->text,
			    p->begun ? since + 1e-9 * (double)p->begun : 0, state_of(p, open));
	return yk_file_add(w, line, (size_t)n);
}

int yk_ranks_record(struct yk_ranks *q, const char *path)
{
	struct yk_file_writer w;
	struct timespec now;
	int e = yk_file_begin(&w, path);
	if (e < 0)
		return e;
	clock_gettime(CLOCK_REALTIME, &now);
	const double since =
		(double)now.tv_sec + 1e-9 * (double)now.tv_nsec - 1e-9 * (double)yk_nanoseconds();
	pthread_mutex_lock(&q->drive);
	const struct yk_ranks_history *h = &q->history;
	for (uint64_t k = h->count > YK_PAST ? h->count - YK_PAST : 0; k < h->count && e == 0; k++)
		e = add(&w, q, &h->job[k % YK_PAST], false, since);
	for (const struct yk_job *j = q->active; j && e == 0; j = j->next) {
		const struct yk_past_job p = describe(j, 0);
		e = add(&w, q, &p, true, since);
	}
	pthread_mutex_unlock(&q->drive);
	if (e == 0)
		return yk_file_commit(&w);
	yk_file_abort(&w);
	return e;
}
