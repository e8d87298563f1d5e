// SPDX-License-Identifier: Apache-2.0
// The training loop.
#include "config.h"

#include "train/steps.h"

static bool due(int64_t step, int64_t every)
{
	return every > 0 && step % every == 0;
}

static int call(int (*fn)(void *), void *arg)
{
	return fn ? fn(arg) : 0;
}

static bool over(const struct yk_between *b, void *arg)
{
	return b->over && b->over(arg);
}

int yk_steps(struct yk_trainer *t, int64_t first, const struct yk_between *b, void *arg,
	     int *signal)
{
	int e = 0;
	*signal = call(b->asked, arg); // a stop may have been requested earlier
	while (t->replica.step < t->steps && e == 0 && !*signal && !over(b, arg)) {
		if (b->before)
			b->before(arg);
		e = yk_trainer_step(t);
		*signal = call(b->asked, arg);
		const bool end = t->replica.step == t->steps || *signal;
		if (e == 0 &&
		    (t->replica.step == first + 1 || end || due(t->replica.step, b->every.log)))
			e = call(b->log, arg);
		else if (e == 0 && b->tick)
			b->tick(arg);
		if (e == 0 && b->logged)
			e = b->logged(arg, end);
		if (e == 0 && due(t->replica.step, b->every.eval) && !*signal)
			e = call(b->validate, arg);
		if (e == 0 && due(t->replica.step, b->every.save))
			e = call(b->save, arg);
		if (e == 0 && due(t->replica.step, b->every.snapshot))
			e = call(b->snapshot, arg);
		if (b->after) {
			const int after = b->after(arg, e == 0);
			e = e ? e : after;
		}
		*signal = call(b->asked, arg); // a signal may have ended the validation
	}
	return e;
}
