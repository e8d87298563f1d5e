// SPDX-License-Identifier: Apache-2.0
// Events: to a request's callback, or to the queue of yoke_engine_next.  The end of a request's
// last choice frees the request.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/engine.h"

static void point_to(struct yk_queued_event *v)
{
	v->is.alternative = v->alternative;
	v->is.alternative_logprob = v->logprob;
	if (v->is.error)
		v->is.message = v->message;
}

void yk_engine_emit(struct yoke_engine *e, struct yk_sequence *s, struct yk_queued_event *v)
{
	const struct yk_request *r = s->request;
	v->is.size = sizeof v->is;
	v->is.request = r->id;
	v->is.user = r->is.user;
	v->is.choice = s->choice;
	v->is.generated = s->generated;
	point_to(v);
	if (r->is.event) {
		r->is.event(r->is.user, &v->is);
		return;
	}
	struct yk_queued_event *kept = malloc(sizeof *kept);
	if (!kept) // nothing is left to report it with
		return;
	*kept = *v;
	kept->next = NULL;
	point_to(kept);
	*e->last_event = kept;
	e->last_event = &kept->next;
}

static void release(struct yoke_engine *e, struct yk_request *r, int reason)
{
	struct yk_engine_shared *x = &e->shared;
	pthread_mutex_lock(&x->lock);
	*(r->newer ? &r->newer->older : &x->newest) = r->older;
	if (r->older)
		r->older->newer = r->newer;
	x->stats.ended++;
	x->stats.cancelled += reason == YOKE_ENGINE_CANCELLED;
	x->stats.failed += reason == YOKE_ENGINE_ERROR;
	pthread_mutex_unlock(&x->lock);
	yk_request_free(r);
}

void yk_engine_end(struct yoke_engine *e, struct yk_sequence *s, int reason, int32_t token,
		   int error, const char *message)
{
	struct yk_request *r = s->request;
	struct yk_queued_event v = { .is = { .kind = YOKE_ENGINE_END,
					     .token = token,
					     .reason = reason,
					     .error = error,
					     .prompt = r->is.count,
					     .cached = s->cached > 0 ? s->cached : 0 } };
	snprintf(v.message, sizeof v.message, "%s", message ? message : "");
	s->ended = true;
	pthread_mutex_lock(&e->shared.lock);
	e->shared.live--; // before a client hears of it and submits the next one
	pthread_mutex_unlock(&e->shared.lock);
	yk_engine_emit(e, s, &v);
	if (--r->live == 0)
		release(e, r, reason);
}

void yk_request_free(struct yk_request *r)
{
	for (int i = 0; r && i < r->is.choices; i++) {
		free(r->choice[i].ids);
		free(r->choice[i].page);
	}
	if (r) {
		free((void *)r->is.prompt);
		free((void *)r->is.bias_id);
		free((void *)r->is.bias);
		free((void *)r->is.stop);
	}
	free(r);
}
