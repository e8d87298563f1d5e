// SPDX-License-Identifier: Apache-2.0
// Events, and captures of streams into graphs, which are what was pushed, in that order.
#include "config.h"

#include <stdlib.h>

#include "stream.h"

#define EVENT_MAGIC 0x45564e54u

static struct capture *captures[16]; // that are going on

// ---- events ----

static struct mark *mark_ref(struct mark *m)
{
	__atomic_add_fetch(&m->refs, 1, __ATOMIC_RELAXED);
	return m;
}

struct standin_event *standin_event_new(bool timed)
{
	struct standin_event *e = calloc(1, sizeof *e);

	if (e) {
		e->magic = EVENT_MAGIC;
		e->timed = timed;
		e->device = -1;
	}
	return e;
}

bool standin_is_event(const void *e)
{
	return e && ((const struct standin_event *)e)->magic == EVENT_MAGIC;
}

int standin_event_device(const struct standin_event *e)
{
	return e->device;
}

static void capture_unref(struct capture *c)
{
	if (c && !--c->refs)
		free(c);
}

void standin_event_free(struct standin_event *e)
{
	pthread_mutex_lock(&standin_lock);
	capture_unref(e->capture);
	pthread_mutex_unlock(&standin_lock);
	standin_mark_unref(e->mark);
	e->magic = 0;
	free(e);
}

int standin_event_record(struct standin_event *e, struct standin_stream *s)
{
	struct mark *m = calloc(1, sizeof *m);
	struct op *o = standin_op_new(RECORD);
	int code = OUT_OF_MEMORY;

	if (!m || !o) {
		free(m);
		free(o);
		return code;
	}
	m->refs = 2;
	o->mark = m;
	pthread_mutex_lock(&standin_lock);
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
		standin_op_unref(o);
	} else if (!(code = standin_push(s, o))) {
		capture_unref(e->capture);
		e->capture = NULL;
		standin_mark_unref(e->mark);
		e->mark = m;
	} else {
		m->refs = 1;
		standin_op_unref(o);
	}
	pthread_mutex_unlock(&standin_lock);
	return code;
}

// Of an event that somebody asks about on the host.
static int not_captured(struct standin_event *e)
{
	if (!e->capture || !e->capture->graph)
		return OK;
	standin_invalidate(e->capture);
	return CAPTURED_EVENT;
}

int standin_event_query(struct standin_event *e)
{
	pthread_mutex_lock(&standin_lock);
	int code = not_captured(e);
	if (!code && e->mark && !e->mark->over)
		code = NOT_READY;
	pthread_mutex_unlock(&standin_lock);
	return code;
}

int standin_event_wait(struct standin_event *e)
{
	pthread_mutex_lock(&standin_lock);
	const int code = not_captured(e);
	if (!code && e->mark) {
		struct mark *m = mark_ref(e->mark);
		while (!m->over)
			pthread_cond_wait(&standin_progress, &standin_lock);
		standin_mark_unref(m);
	}
	pthread_mutex_unlock(&standin_lock);
	return code;
}

int standin_event_elapsed(struct standin_event *from, struct standin_event *to, float *milliseconds)
{
	int code = OK;

	pthread_mutex_lock(&standin_lock);
	if (!from->timed || !to->timed || !from->mark || !to->mark)
		code = INVALID_HANDLE;
	else if (!from->mark->over || !to->mark->over)
		code = NOT_READY;
	else
		*milliseconds = (float)((double)(to->mark->at - from->mark->at) * 1e-6);
	pthread_mutex_unlock(&standin_lock);
	return code;
}

void standin_invalidate(struct capture *c)
{
	c->invalid = true;
}

// The origin waited for all of a stream up to there.
static void join(struct standin_stream *of, uint64_t captured)
{
	if (of->joined < captured)
		of->joined = captured;
}

static int join_capture(struct standin_stream *s, struct standin_event *e)
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
		s->captured = 1; // even what does nothing has to be joined
		s->joined = 0;
	}
	if (s != e->stream)
		join(e->stream, e->captured);
	return OK;
}

int standin_stream_after(struct standin_stream *s, struct standin_event *e)
{
	struct op *o = standin_op_new(WAIT);
	int code = OK;

	if (!o)
		return OUT_OF_MEMORY;
	pthread_mutex_lock(&standin_lock);
	if (e->capture && e->capture->graph)
		code = join_capture(s, e);
	else if (s->capture && e->mark)
		code = CAPTURE_ISOLATION;
	else if (e->mark) {
		o->mark = mark_ref(e->mark);
		if (!(code = standin_push(s, o)))
			o = NULL;
	}
	if (s->capture && code)
		standin_invalidate(s->capture);
	pthread_mutex_unlock(&standin_lock);
	if (o)
		standin_op_unref(o);
	return code;
}

// ---- graphs ----

int standin_capture_begin(struct standin_stream *s, int mode)
{
	int code = OK;

	pthread_mutex_lock(&standin_lock);
	struct capture *c = calloc(1, sizeof *c);
	struct standin_graph *g = calloc(1, sizeof *g);
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
		*c = (struct capture){ .refs = 1, .mode = mode, .thread = pthread_self(), .origin = s, .graph = g,
				       .member = { s }, .members = 1 };
		s->capture = *place = c;
		s->captured = s->joined = 0;
	}
	pthread_mutex_unlock(&standin_lock);
	return code;
}

int standin_capture_end(struct standin_stream *s, struct standin_graph **to)
{
	int code = OK;

	pthread_mutex_lock(&standin_lock);
	struct capture *c = s->capture;
	if (!c || c->origin != s) {
		pthread_mutex_unlock(&standin_lock);
		return c ? CAPTURE_UNMATCHED : ILLEGAL_STATE;
	}
	for (int i = 0; i < c->members; i++) {
		struct standin_stream *m = c->member[i];
		if (m != s && m->joined < m->captured)
			code = CAPTURE_UNJOINED;
		m->capture = NULL;
	}
	if (c->invalid)
		code = CAPTURE_INVALIDATED;
	struct standin_graph *g = c->graph;
	c->graph = NULL; // its events are nobody's
	for (int i = 0; i < 16; i++)
		if (captures[i] == c)
			captures[i] = NULL;
	capture_unref(c);
	pthread_mutex_unlock(&standin_lock);
	if (code)
		standin_graph_free(g);
	else
		*to = g;
	return code;
}

int standin_capture_allows(void)
{
	int code = OK;

	pthread_mutex_lock(&standin_lock);
	for (int i = 0; i < 16; i++)
		if (captures[i] && captures[i]->mode != 2 && // not relaxed
		    (!captures[i]->mode || pthread_equal(captures[i]->thread, pthread_self()))) {
			standin_invalidate(captures[i]);
			code = CAPTURE_UNSUPPORTED;
		}
	pthread_mutex_unlock(&standin_lock);
	return code;
}

struct standin_graph *standin_graph_ref(struct standin_graph *g)
{
	__atomic_add_fetch(&g->refs, 1, __ATOMIC_RELAXED);
	return g;
}

void standin_graph_free(struct standin_graph *g)
{
	if (__atomic_sub_fetch(&g->refs, 1, __ATOMIC_ACQ_REL))
		return;
	standin_ops_free(&g->ops);
	free(g);
}

int standin_graph_launch(struct standin_graph *g, struct standin_stream *s)
{
	struct op *o = standin_op_new(GRAPH);

	if (!o)
		return OUT_OF_MEMORY;
	o->graph = standin_graph_ref(g);
	return standin_push_new(s, o);
}
