// SPDX-License-Identifier: Apache-2.0
// The public functions of yoke-engine.h.
#include "config.h"

#include "yoke-engine.h"

#include "base/error.h"
#include "base/sized.h"

static int missing(const char *call)
{
	return yk_fail(YOKE_EUNSUPPORTED, "%s: this version has no engine yet", call);
}

yoke_engine *yoke_engine_new(yoke_model *m, const struct yoke_engine_options *options)
{
	struct yoke_engine_options o = { 0 };
	if (!m)
		yk_fail(YOKE_EINVAL, "engine_new: the model is NULL");
	else if (!options || yk_sized_take(&o, sizeof o, options, "engine_new", "yoke_engine_options") == 0)
		missing("engine_new");
	return NULL;
}

void yoke_engine_free(yoke_engine *e)
{
	(void)e;
}

int yoke_engine_adapter(yoke_engine *e, const char *name, const char *folder)
{
	return e && name && folder ? missing("engine_adapter") : yk_fail(YOKE_EINVAL, "engine_adapter: an argument is NULL");
}

int64_t yoke_engine_submit(yoke_engine *e, const struct yoke_engine_request *r)
{
	return e && r ? missing("engine_submit") : yk_fail(YOKE_EINVAL, "engine_submit: an argument is NULL");
}

int yoke_engine_cancel(yoke_engine *e, int64_t request)
{
	(void)request;
	return e ? missing("engine_cancel") : yk_fail(YOKE_EINVAL, "engine_cancel: the engine is NULL");
}

int64_t yoke_engine_context(const yoke_engine *e)
{
	return e ? missing("engine_context") : yk_fail(YOKE_EINVAL, "engine_context: the engine is NULL");
}

int yoke_engine_step(yoke_engine *e)
{
	return e ? missing("engine_step") : yk_fail(YOKE_EINVAL, "engine_step: the engine is NULL");
}

int yoke_engine_next(yoke_engine *e, struct yoke_engine_event *to)
{
	return e && to ? missing("engine_next") : yk_fail(YOKE_EINVAL, "engine_next: an argument is NULL");
}

int yoke_engine_wait(yoke_engine *e, int64_t milliseconds)
{
	(void)milliseconds;
	return e ? missing("engine_wait") : yk_fail(YOKE_EINVAL, "engine_wait: the engine is NULL");
}

void yoke_engine_wake(yoke_engine *e)
{
	(void)e;
}

int yoke_engine_stats(yoke_engine *e, struct yoke_engine_stats *to)
{
	return e && to ? missing("engine_stats") : yk_fail(YOKE_EINVAL, "engine_stats: an argument is NULL");
}
