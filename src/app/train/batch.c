// SPDX-License-Identifier: Apache-2.0
// Choosing a batch: what fits is predicted, what is fastest is timed.
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

// ---- which to time ----

#define GAIN 1.01  // less is not worth more memory, and may be noise
#define CLOSE 1.05 // batches nearer than that are not told apart
enum { ONCE_MORE = 4 }; // steps timed by then: a batch that was slow is timed twice, and enough are left

struct search {
	struct {
		int64_t batch;
		double rate; // of the fastest step: what else the machine does makes one slower, never faster
	} tried[YK_BATCH_TIMED];
	int n, best, timed;
	yk_batch_time_fn *time;
	void *arg;
};

// Times a step of a batch, the one that was tried last or a new one.
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

// The batch midway, by ratio, between the best and a neighbour: the faster one, if it is not much
// nearer than the other.  0: there is none worth a try.
static int64_t between(const struct search *s)
{
	const int64_t best = s->tried[s->best].batch;
	int64_t below = 0, above = 0;
	double rate[2] = { 0 }; // below, above
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

int yk_batch_pick(int64_t most, yk_batch_time_fn *time, void *arg, struct yk_batch_pick *to)
{
	struct search s = { .time = time, .arg = arg };
	int64_t batch = 1, factor = 4;
	double gain = GAIN + 1;
	int e = try(&s, batch);
	while (e == 0 && batch < most && s.timed < YK_BATCH_TIMED && gain > GAIN) {
		factor = s.n > 1 && gain > 0.9 * (double)factor ?
				 16 :
				 4; // little of a step is its windows'
		batch = batch > most / factor ? most : batch * factor;
		e = try(&s, batch);
		if (e == 0 && gain_of_last(&s) <= GAIN && s.timed <= ONCE_MORE) // before this ends
			e = try(&s, batch);
		gain = e == 0 ? gain_of_last(&s) : 0;
	}
	while (e == 0 && s.timed < YK_BATCH_TIMED && (batch = between(&s)))
		e = try(&s, batch);
	*to = (struct yk_batch_pick){ s.tried[s.best].batch, s.timed, s.tried[s.best].rate };
	return e;
}

// ---- timing ----

enum { WARMUP = 2 }; // steps that plan

static int timed_steps(struct yk_trainer *t, double *seconds)
{
	struct yk_record record;
	int e = 0;
	for (int i = 0; i < WARMUP && e == 0; i++)
		e = yk_trainer_step(t);
	if (e == 0)
		e = yk_trainer_record(t, &record); // waits
	double began = yk_seconds();
	if (e == 0)
		e = yk_trainer_step(t);
	if (e == 0)
		e = yk_trainer_record(t, &record);
	*seconds = yk_seconds() - began;
	return e;
}

// In a context of its own, which leaves nothing behind.
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
	yk_pool_reset_peaks(pool); // they are to be the run's
	return e;
}

int yk_batch_choose(struct yk_trainer *t, struct yk_config *c)
{
	struct yk_batch_pick p;
	int64_t most = (int64_t)yk_config_rows[YK_KEY_batch].most,
		windows = yk_data_train_windows(t->data);
	int64_t fits = yk_dry_batch(windows < most ? windows : most, yk_dry_room(),
				    yk_trainer_rehearse, t);
	if (fits == 0)
		return yk_fail(
			YOKE_ENOMEM,
			"batch=auto: not even batch=1 fits: use a smaller context or embed, or "
			"fewer layers");
	int e = yk_batch_pick(fits, time_step, t, &p);
	if (e < 0)
		return e;
	yk_snprintf(t->batch_why, sizeof t->batch_why,
		 "batch=%" PRId64 ": the fastest of %d that were timed, at %.0f "
		 "tokens/s; up to %" PRId64 " %s",
		 p.batch, p.timed, p.rate * (double)t->context, fits,
		 fits == windows ? "are in the text" : "fit");
	return yk_config_settle(c, YK_KEY_batch, p.batch);
}
