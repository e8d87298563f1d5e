// SPDX-License-Identifier: Apache-2.0
// Failures of a context: errors that a device reports, at once or late, and the values that are
// lost with them.  A late report shows only that something after the last good event failed.  So
// every value written since is lost, and no value that may be bad is ever treated as good.
#include "config.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "base/log.h"
#include "base/number.h"
#include "graph/context.h"

void yk_failure_set(struct yoke_context *ctx, int code, const char *fmt, ...)
{
	struct yk_failure *f = &ctx->failure;
	va_list ap;

	f->number++;
	f->code = code;
	f->reported = f->variables = false;
	va_start(ap, fmt);
	yk_vsnprintf(f->text, sizeof f->text, fmt, ap);
	va_end(ap);
	yk_info("eval", "%s", f->text);
}

static const char reload[] = "; parameters lost, reload a checkpoint";

int yk_failure_report(struct yoke_context *ctx)
{
	struct yk_failure *f = &ctx->failure;

	f->reported = true;
	return yk_fail(f->code, "%s%s", f->text, f->variables ? reload : "");
}

int yk_failure_of(const struct yk_tensor *t)
{
	struct yk_failure *f = &t->ctx->failure;
	const struct yk_storage *s = t->storage;
	bool variable = t->kind == YK_VARIABLE;

	if (s->failure == f->number)
		f->reported = true;
	return yk_fail(YOKE_EFAILED, "%s%s%s is lost: %s%s",
		       variable ? "variable" : "a value", t->name ? " " : "",
		       t->name ? t->name : "",
		       s->failure == f->number ? f->text : yk_error_text(s->failed),
		       variable ? reload : "");
}

// ---- lost values ----

struct lost {
	uint64_t since[YK_STREAMS]; // events of each queue that completed without error
	int code;
	uint32_t failure;
	bool variables; // a variable's value is among them
};

static bool lose(struct yk_storage *s, struct lost *l)
{
	bool whole = true;
	for (int k = 0; s && k < YK_STREAMS; k++)
		whole &= s->written[k] <= l->since[k];
	if (!s || s->failed || whole)
		return false;
	s->failed = l->code;
	s->failure = l->failure;
	return true;
}

static void lose_handles(const struct yk_tensor *t, struct lost *l)
{
	for (; t; t = t->next)
		if (lose(t->storage, l) && t->kind == YK_VARIABLE)
			l->variables = true;
}

// Names the cause in a buffer: the run whose event failed; else the current call, `where`; else the
// first run not known to have succeeded: "evaluation 17 (40 steps, matmul in "a/b" to adamw in
// "c")".
static void describe_cause(const struct yoke_context *ctx, uint64_t since, const char *where,
		  char *to, size_t cap)
{
	const struct yk_flight *f = NULL;

	for (uint64_t i = ctx->flights.n; i < ctx->flights.n + 2;
	     i++) { // the older one first
		const struct yk_flight *g = &ctx->flights.last[i % 2];
		if (!f && g->steps && g->serial > since &&
		    (!where || yk_event_done(g->done[YK_STREAM_DEVICE]) != 1))
			f = g;
	}
	if (f)
		snprintf(to, cap,
			 "evaluation %llu (%zu steps, %s in \"%s\" to %s in \"%s\"; "
			 "YOKE_SYNC=1 shows which), on %s",
			 (unsigned long long)f->number, f->steps, yk_op_def(f->op[0])->name,
			 yk_path_name(&ctx->scopes.paths, f->scope[0]), yk_op_def(f->op[1])->name,
			 yk_path_name(&ctx->scopes.paths, f->scope[1]), ctx->device->id);
	else
		snprintf(to, cap, "%s, on %s (%s)", where ? where : "a copy or fill",
			 ctx->device->id, ctx->device->info.name);
}

// The event of the steps' queue up to which its results are good although another stream's queue
// failed: later steps may have read data that the failed queue should have delivered.
static uint64_t whole_steps(const struct yoke_context *ctx, int stream)
{
	bool less = stream == YK_STREAM_UP && ctx->flights.good_uploads < ctx->flights.good_others;
	return less ? ctx->flights.good_uploads : ctx->flights.good_others;
}

static int settle(struct yoke_context *ctx, int stream, const char *where)
{
	struct yk_queue *q = ctx->stream[stream].queue;
	struct yk_queue_failure f, later;
	char culprit[1200];

	if (!yk_queue_failed(q) || !yk_queue_take(q, &f))
		return 0;
	// Work enqueued after the failure may still use memory that is about to be reused.
	// It may fail too; its results are already lost.
	yk_queue_drain(q);
	yk_queue_take(q, &later);
	struct lost l = { .code = f.code };
	for (int k = 0; k < YK_STREAMS; k++)
		l.since[k] = UINT64_MAX;
	if (stream != YK_STREAM_DEVICE) // also lose results computed from its data
		l.since[YK_STREAM_DEVICE] = whole_steps(ctx, stream);
	l.since[stream] = f.since;
	if (stream == YK_STREAM_UP || stream == YK_STREAM_DOWN)
		snprintf(culprit, sizeof culprit, "a copy %s %s (%s)",
			 stream == YK_STREAM_UP ? "to" : "from", ctx->device->id,
			 ctx->device->info.name);
	else if (stream == YK_STREAM_RANKS)
		snprintf(culprit, sizeof culprit, "a collective");
	else
		describe_cause(ctx, l.since[YK_STREAM_DEVICE], where, culprit, sizeof culprit);
	yk_failure_set(ctx, f.code, "%s failed: %s: %s", culprit, yoke_error_name(f.code),
		       f.why);
	l.failure = ctx->failure.number;
	lose_handles(ctx->handles.list, &l);
	for (struct yk_scope *s = ctx->scopes.innermost; s; s = s->parent)
		lose_handles(s->handles, &l);
	for (size_t i = 0; i < ctx->leaves.n;
	     i++) // old versions that pending operations read
		lose(ctx->leaves.at[i].storage, &l);
	ctx->failure.variables = l.variables;
	if (stream != YK_STREAM_DEVICE)
		ctx->flights.good_uploads = ctx->flights.good_others = ctx->queues.steps->marks;
	return f.code;
}

void yk_upload_poll(struct yoke_context *ctx)
{
	for (uint32_t i = 0; i < 4 && !yk_queue_failed(ctx->queues.up); i++) { // the oldest first
		const struct yk_staging *s = &ctx->uploads.staging[(ctx->uploads.staged + i) % 4];
		if (!s->event)
			continue;
		if (yk_event_done(s->event) != 1)
			break;
		if (s->event->queue == ctx->queues.up && s->marks > ctx->flights.good_uploads)
			ctx->flights.good_uploads = s->marks;
	}
	for (uint32_t i = 0; i < YK_AHEAD && !yk_queue_failed(ctx->queues.up); i++) {
		const struct yk_prefetch *a =
			&ctx->uploads.ahead[(ctx->uploads.aheads + i) % YK_AHEAD];
		if (!a->event)
			continue;
		if (yk_event_done(a->event) != 1)
			break;
		if (a->marks > ctx->flights.good_uploads)
			ctx->flights.good_uploads = a->marks;
	}
}

int yk_settle_at(struct yoke_context *ctx, const char *where)
{
	yk_upload_poll(ctx);
	static const int order[] = { YK_STREAM_UP, YK_STREAM_RANKS, YK_STREAM_DEVICE, YK_STREAM_CPU,
				     YK_STREAM_DOWN };
	int code = 0;
	for (int i = 0; i < YK_STREAMS && !code; i++)
		if (order[i] == YK_STREAM_DEVICE ||
		    ctx->stream[order[i]].queue != ctx->queues.steps)
			code = settle(ctx, order[i], where);
	return code;
}

int yk_settle(struct yoke_context *ctx)
{
	return yk_settle_at(ctx, NULL);
}

void yk_flight_wait(struct yoke_context *ctx)
{
	struct yk_flight *f = &ctx->flights.last[ctx->flights.n % 2];

	bool good = f->done[YK_STREAM_DEVICE] != NULL, over = true;
	for (int k = 0; k < YK_STREAMS; k++)
		over &= yk_event_done(f->done[k]) != 0;
	const uint64_t began = over ? 0 : yk_wait_begin();
	for (int k = 0; k < YK_STREAMS; k++) // the queues keep the failures
		good &= yk_event_sync(f->done[k]) >= 0;
	if (!over)
		yk_wait_end(ctx, began, "an evaluation, after two others,");
	if (!yk_settle(ctx) && good)
		ctx->flights.good_others = f->serial;
	for (int k = 0; k < YK_STREAMS; k++)
		yk_event_unref(f->done[k]);
	*f = (struct yk_flight){ 0 };
}
