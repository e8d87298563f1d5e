// SPDX-License-Identifier: Apache-2.0
// Events, and stream capture into graphs. A graph is the list of captured operations in their
// order.
#include "config.h"

#include <stdlib.h>

#include "stream.h"

#define EVENT_MAGIC 0x45564e54u

static struct capture *captures[16]; // captures in progress

// ---- events ----

static struct mark *mark_ref(struct mark *m)
{
	__atomic_add_fetch(&m->refs, 1, __ATOMIC_RELAXED);
	return m;
}

struct fake_event *fake_event_new(bool timed)
{
	struct fake_event *e = calloc(1, sizeof *e);

	if (e) {
		e->magic = EVENT_MAGIC;
		e->timed = timed;
		e->device = -1;
	}
	return e;
}

bool fake_is_event(const void *e)
{
	return e && ((const struct fake_event *)e)->magic == EVENT_MAGIC;
}

int fake_event_device(const struct fake_event *e)
{
	return e->device;
}

static void capture_unref(struct capture *c)
{
	if (c && !--c->refs)
		free(c);
}

void fake_event_free(struct fake_event *e)
{
	pthread_mutex_lock(&fake_lock);
	capture_unref(e->capture);
	pthread_mutex_unlock(&fake_lock);
	fake_mark_unref(e->mark);
	e->magic = 0;
	free(e);
}

int fake_event_record(struct fake_event *e, struct fake_stream *s)
{
	struct mark *m = calloc(1, sizeof *m);
	struct op *o = fake_op_new(RECORD);
	int code = OUT_OF_MEMORY;

	if (!m || !o) {
		free(m);
		free(o);
		return code;
	}
	m->refs = 2;
	o->mark = m;
	pthread_mutex_lock(&fake_lock);
	e->device = s->device;
	if (s->capture) {
		// only an edge of the graph
		if (!s->capture->invalid) {
			capture_unref(e->capture);
			e->capture = s->capture;
			e->capture->refs++;
			e->stream = s;
			e->captured = s->captured;
		}
		code = s->capture->invalid ? CAPTURE_INVALIDATED : OK;
		m->refs = 1;
		fake_op_unref(o);
	} else if (!(code = fake_push(s, o))) {
		capture_unref(e->capture);
		e->capture = NULL;
		fake_mark_unref(e->mark);
		e->mark = m;
	} else {
		m->refs = 1;
		fake_op_unref(o);
	}
	pthread_mutex_unlock(&fake_lock);
	return code;
}

// The state of an event for a query by the host.
static int not_captured(struct fake_event *e)
{
	if (!e->capture || !e->capture->graph)
		return OK;
	fake_invalidate(e->capture);
	return CAPTURED_EVENT;
}

int fake_event_query(struct fake_event *e)
{
	pthread_mutex_lock(&fake_lock);
	int code = not_captured(e);
	if (!code && e->mark && !e->mark->over)
		code = NOT_READY;
	pthread_mutex_unlock(&fake_lock);
	return code;
}

int fake_event_wait(struct fake_event *e)
{
	pthread_mutex_lock(&fake_lock);
	const int code = not_captured(e);
	if (!code && e->mark) {
		struct mark *m = mark_ref(e->mark);
		while (!m->over)
			pthread_cond_wait(&fake_progress, &fake_lock);
		fake_mark_unref(m);
	}
	pthread_mutex_unlock(&fake_lock);
	return code;
}

int fake_event_elapsed(struct fake_event *from, struct fake_event *to, float *milliseconds)
{
	int code = OK;

	pthread_mutex_lock(&fake_lock);
	if (!from->timed || !to->timed || !from->mark || !to->mark)
		code = INVALID_HANDLE;
	else if (!from->mark->over || !to->mark->over)
		code = NOT_READY;
	else
		*milliseconds = (float)((double)(to->mark->at - from->mark->at) * 1e-6);
	pthread_mutex_unlock(&fake_lock);
	return code;
}

void fake_invalidate(struct capture *c)
{
	c->invalid = true;
}

// The origin stream has waited for all work of a stream up to that point.
static void join(struct fake_stream *of, uint64_t captured)
{
	if (of->joined < captured)
		of->joined = captured;
}

static int join_capture(struct fake_stream *s, struct fake_event *e)
{
	struct capture *c = e->capture;

	if (c->invalid)
		return CAPTURE_INVALIDATED;
	if (s->capture && s->capture != c)
		return CAPTURE_MERGE;
	if (!s->capture) {
		if (c->members == (int)(sizeof c->member / sizeof *c->member))
			return OUT_OF_MEMORY;
		c->member[c->members++] = s;
		s->capture = c;
		s->captured = 1; // even an empty capture must be joined
		s->joined = 0;
	}
	if (s != e->stream)
		join(e->stream, e->captured);
	return OK;
}

int fake_stream_after(struct fake_stream *s, struct fake_event *e)
{
	struct op *o = fake_op_new(WAIT);
	int code = OK;

	if (!o)
		return OUT_OF_MEMORY;
	pthread_mutex_lock(&fake_lock);
	if (e->capture && e->capture->graph)
		code = join_capture(s, e);
	else if (s->capture && e->mark)
		code = CAPTURE_ISOLATION;
	else if (e->mark) {
		o->mark = mark_ref(e->mark);
		if (!(code = fake_push(s, o)))
			o = NULL;
	}
	if (s->capture && code)
		fake_invalidate(s->capture);
	pthread_mutex_unlock(&fake_lock);
	if (o)
		fake_op_unref(o);
	return code;
}

// ---- graphs ----

int fake_capture_begin(struct fake_stream *s, int mode)
{
	int code = OK;

	pthread_mutex_lock(&fake_lock);
	struct capture *c = calloc(1, sizeof *c);
	struct fake_graph *g = calloc(1, sizeof *g);
	struct capture **place = captures;
	while (place < captures + 16 && *place)
		place++;
	if (s->capture)
		code = ILLEGAL_STATE;
	else if (!c || !g || place == captures + 16)
		code = OUT_OF_MEMORY;
	if (code) {
		free(c);
		free(g);
	} else {
		g->refs = 1;
		*c = (struct capture){ .refs = 1,
				       .mode = mode,
				       .thread = pthread_self(),
				       .origin = s,
				       .graph = g,
				       .member = { s },
				       .members = 1 };
		s->capture = *place = c;
		s->captured = s->joined = 0;
	}
	pthread_mutex_unlock(&fake_lock);
	return code;
}

int fake_capture_end(struct fake_stream *s, struct fake_graph **to)
{
	int code = OK;

	pthread_mutex_lock(&fake_lock);
	struct capture *c = s->capture;
	if (!c || c->origin != s) {
		pthread_mutex_unlock(&fake_lock);
		return c ? CAPTURE_UNMATCHED : ILLEGAL_STATE;
	}
	for (int i = 0; i < c->members; i++) {
		struct fake_stream *m = c->member[i];
		if (m != s && m->joined < m->captured)
			code = CAPTURE_UNJOINED;
		m->capture = NULL;
	}
	if (c->invalid)
		code = CAPTURE_INVALIDATED;
	struct fake_graph *g = c->graph;
	c->graph = NULL; // its events belong to nobody
	for (int i = 0; i < 16; i++)
		if (captures[i] == c)
			captures[i] = NULL;
	capture_unref(c);
	pthread_mutex_unlock(&fake_lock);
	if (code)
		fake_graph_free(g);
	else
		*to = g;
	return code;
}

int fake_capture_allows(void)
{
	int code = OK;

	pthread_mutex_lock(&fake_lock);
	for (int i = 0; i < 16; i++)
		if (captures[i] && captures[i]->mode != 2 && // not relaxed
		    (!captures[i]->mode || pthread_equal(captures[i]->thread, pthread_self()))) {
			fake_invalidate(captures[i]);
			code = CAPTURE_UNSUPPORTED;
		}
	pthread_mutex_unlock(&fake_lock);
	return code;
}

struct fake_graph *fake_graph_ref(struct fake_graph *g)
{
	__atomic_add_fetch(&g->refs, 1, __ATOMIC_RELAXED);
	return g;
}

void fake_graph_free(struct fake_graph *g)
{
	if (__atomic_sub_fetch(&g->refs, 1, __ATOMIC_ACQ_REL))
		return;
	fake_ops_free(&g->ops);
	free(g);
}

int fake_graph_launch(struct fake_graph *g, struct fake_stream *s)
{
	struct op *o = fake_op_new(GRAPH);

	if (!o)
		return OUT_OF_MEMORY;
	o->graph = fake_graph_ref(g);
	return fake_push_new(s, o);
}
