// SPDX-License-Identifier: Apache-2.0
// Chooses a batch size: memory is predicted, speed is measured.
#include "config.h"

#include "train/batch.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/number.h"
#include "device/pool.h"
#include "graph/context.h"
#include "train/advise.h"

// ---- search ----

#define GAIN 1.01  // a smaller gain is not worth the memory, and may be noise
#define CLOSE 1.05 // batches whose ratio is smaller are not distinguished
enum { ONCE_MORE = 4 }; // while at most this many steps were timed, a slow batch is timed twice

struct search {
	struct {
		int64_t batch;
		double rate; // of the fastest step: other load makes steps slower, never faster
	} tried[YK_BATCH_TIMED];
	int n, best, timed;
	yk_batch_time_fn *time;
	void *arg;
};

// Times a step with the batch that was tried last, or with a new one.
static int try(struct search *s, int64_t batch)
{
	double seconds;
	int e = s->time(s->arg, batch, &seconds);
	if (e < 0)
		return e;
	s->timed++;
	if (!s->n || s->tried[s->n - 1].batch != batch) {
		s->tried[s->n].batch = batch;
		s->tried[s->n++].rate = 0;
	}
	const int last = s->n - 1;
	s->tried[last].rate = fmax(s->tried[last].rate, (double)batch / fmax(seconds, 1e-9));
	if (s->tried[last].rate > s->tried[s->best].rate)
		s->best = last;
	return 0;
}

static double gain_of_last(const struct search *s)
{
	return s->tried[s->n - 1].rate / s->tried[s->n - 2].rate;
}

// The geometric mean of the best batch and a neighbour: the faster neighbour, unless it is much
// closer than the other. 0: no batch left to try.
static int64_t between(const struct search *s)
{
	const int64_t best = s->tried[s->best].batch;
	int64_t below = 0, above = 0;
	double rate[2] = { 0 }; // of the neighbours below and above
	for (int i = 0; i < s->n; i++) {
		int64_t b = s->tried[i].batch;
		if (b < best && b > below) {
			below = b;
			rate[0] = s->tried[i].rate;
		} else if (b > best && (!above || b < above)) {
			above = b;
			rate[1] = s->tried[i].rate;
		}
	}
	double down = below ? (double)best / (double)below : 1;
	double up = above ? (double)above / (double)best : 1;
	bool upwards = rate[1] >= rate[0] ? up * up >= down : down * down < up;
	int64_t other = upwards ? above : below;
	int64_t middle = llround(sqrt((double)best * (double)other));
	return (upwards ? up : down) < CLOSE || middle == best || middle == other ? 0 : middle;
}

int yk_batch_pick(int64_t max, yk_batch_time_fn *time, void *arg, struct yk_batch_pick *to)
{
	struct search s = { .time = time, .arg = arg };
	int64_t batch = 1, factor = 4;
	double gain = GAIN + 1;
	int e = try(&s, batch);
	while (e == 0 && batch < max && s.timed < YK_BATCH_TIMED && gain > GAIN) {
		factor = s.n > 1 && gain > 0.9 * (double)factor ?
				 16 :
				 4; // 16: the time hardly depends on the batch yet
		batch = batch > max / factor ? max : batch * factor;
		e = try(&s, batch);
		// confirm before the search ends
		if (e == 0 && gain_of_last(&s) <= GAIN && s.timed <= ONCE_MORE)
			e = try(&s, batch);
		gain = e == 0 ? gain_of_last(&s) : 0;
	}
	while (e == 0 && s.timed < YK_BATCH_TIMED && (batch = between(&s)))
		e = try(&s, batch);
	*to = (struct yk_batch_pick){ s.tried[s.best].batch, s.timed, s.tried[s.best].rate };
	return e;
}

// ---- timing ----

enum { WARMUP = 2 }; // steps that plan and compile

static int timed_steps(struct yk_trainer *t, double *seconds)
{
	struct yk_record record;
	int e = 0;
	for (int i = 0; i < WARMUP && e == 0; i++)
		e = yk_trainer_step(t);
	if (e == 0)
		e = yk_trainer_record(t, &record); // waits for the step
	double began = yk_seconds();
	if (e == 0)
		e = yk_trainer_step(t);
	if (e == 0)
		e = yk_trainer_record(t, &record);
	*seconds = yk_seconds() - began;
	return e;
}

// Uses a new context, which leaves nothing behind.
static int time_step(void *trainer, int64_t batch, double *seconds)
{
	struct yk_trainer t = *(const struct yk_trainer *)trainer;
	yoke_context *ctx = yoke_context_new(NULL), *former;
	if (!ctx)
		return yoke_error_code();
	former = yoke_use(ctx);
	struct yk_pool *pool = ctx->device->pool;
	int e = yk_trainer_make(&t, batch, NULL, NULL);
	if (e == 0)
		e = timed_steps(&t, seconds);
	yk_trainer_unmake(&t);
	yoke_use(former);
	yoke_context_free(ctx);
	yk_pool_trim(pool);
	yk_pool_reset_peaks(pool); // later peaks are those of the run itself
	return e;
}

int yk_batch_choose(struct yk_trainer *t, struct yk_config *c)
{
	struct yk_batch_pick p;
	int64_t max = (int64_t)yk_config_rows[YK_KEY_batch].max,
		windows = yk_data_train_windows(t->feed.data);
	int64_t fits = yk_dry_batch(windows < max ? windows : max, yk_dry_capacity(),
				    yk_trainer_dry_run, t);
	if (fits == 0)
		return yk_fail(
			YOKE_ENOMEM,
			"batch=auto: not even batch=1 fits: use a smaller context or embed, or "
			"fewer layers");
	int e = yk_batch_pick(fits, time_step, t, &p);
	if (e < 0)
		return e;
	yk_snprintf(t->batch_why, sizeof t->batch_why,
		 "batch=%" PRId64 ": the fastest of %d measured batches, at %.0f "
		 "tokens/s; up to %" PRId64 " %s",
		 p.batch, p.timed, p.rate * (double)t->context, fits,
		 fits == windows ? "are in the data" : "fit");
	return yk_config_settle(c, YK_KEY_batch, p.batch);
}
