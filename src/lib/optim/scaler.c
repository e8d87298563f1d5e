// SPDX-License-Identifier: Apache-2.0
// Dynamic loss scaling: the host adapts the scale; whether a step overflowed, and whether it is
// skipped, is decided on the device.

#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/sized.h"
#include "graph/handle.h"
#include "ops/list.h"
#include "graph/record.h"

enum { RECENT = 100 }; // steps that statistics cover

struct yoke_scaler {
	struct yoke_scaler_options rule;
	struct yoke_scaler_state now;
	yoke_tensor *scale, *inverse; // host scalars
	yoke_tensor *each, *found;    // variables: squares of norms [n], overflow flag []; NULL
				      // before the first check
	uint32_t *order;              // by square: index of its tensor
	const char **name;            // by tensor; owned by the context
	int n;
	bool checked;                 // a step's flag has not been read yet
	int64_t first;                // see yoke_scaler_stats
};

// ---- options and state ----

static double or_default(double x, double by_default)
{
	return x == 0 ? by_default : x;
}

static int check_rule(const struct yoke_scaler_options *r)
{
	if (!(r->min > 0 && isfinite(r->max) && r->min <= r->max))
		return yk_fail(YOKE_EINVAL,
			       "scaler_new: the scale stays within %g .. %g; give 0 < min <= max",
			       r->min, r->max);
	if (!(r->scale >= r->min && r->scale <= r->max))
		return yk_fail(YOKE_EINVAL, "scaler_new: scale %g is not in %g .. %g, its "
			"limits", r->scale,
			       r->min, r->max);
	if (!(r->growth > 1 && isfinite(r->growth)))
		return yk_fail(YOKE_EINVAL, "scaler_new: growth %g; it is above 1", r->growth);
	if (!(r->backoff > 0 && r->backoff < 1))
		return yk_fail(YOKE_EINVAL, "scaler_new: backoff %g; it is between 0 and 1",
			       r->backoff);
	if (r->interval < 1 || r->hysteresis < 1)
		return yk_fail(YOKE_EINVAL, "scaler_new: %s %" PRId64 "; it is at least 1",
			       r->interval < 1 ? "interval" : "hysteresis",
			       r->interval < 1 ? r->interval : r->hysteresis);
	return 0;
}

static int numbers_set(struct yoke_scaler *s)
{
	int err = yoke_scalar_set(s->scale, s->now.scale);
	return err ? err : yoke_scalar_set(s->inverse, 1 / s->now.scale);
}

yoke_scaler *yoke_scaler_new(const struct yoke_scaler_options *given)
{
	struct yoke_scaler_options r = { 0 };
	struct yoke_scaler *s;
	if (given && yk_sized_read(&r, sizeof r, given, "scaler_new", "yoke_scaler_options"))
		return NULL;
	r.scale = or_default(r.scale, 65536);
	r.growth = or_default(r.growth, 2);
	r.backoff = or_default(r.backoff, 0.5);
	r.min = or_default(r.min, 1);
	r.max = or_default(r.max, 8388608);
	r.interval = r.interval ? r.interval : 2000;
	r.hysteresis = r.hysteresis ? r.hysteresis : 1;
	if (check_rule(&r))
		return NULL;
	if (!(s = calloc(1, sizeof *s))) {
		yk_fail(YOKE_ENOMEM, "scaler_new: no memory");
		return NULL;
	}
	s->rule = r;
	s->now = (struct yoke_scaler_state){ .scale = r.scale, .left = r.hysteresis };
	s->first = -1;
	s->scale = yoke_keep(yoke_scalar(r.scale));
	s->inverse = yoke_keep(yoke_scalar(1 / r.scale));
	if (s->scale && s->inverse)
		return s;
	yoke_scaler_free(s);
	return NULL;
}

void yoke_scaler_free(yoke_scaler *s)
{
	if (!s)
		return;
	yoke_free(s->scale);
	yoke_free(s->inverse);
	yoke_free(s->each);
	yoke_free(s->found);
	free(s->order);
	free(s->name);
	free(s);
}

int yoke_scaler_save(const yoke_scaler *s, struct yoke_scaler_state *to)
{
	const int err = yk_require(s, "scaler");
	return err ? err :
		     yk_sized_write(to, sizeof s->now, &s->now, "scaler_save", "yoke_scaler_state");
}

int yoke_scaler_load(yoke_scaler *s, const struct yoke_scaler_state *from)
{
	struct yoke_scaler_state now = { 0 };
	int err = yk_require(s, "scaler");
	if (!err)
		err = yk_sized_read(&now, sizeof now, from, "scaler_load", "yoke_scaler_state");
	if (err)
		return err;
	if (!(now.scale >= s->rule.min && now.scale <= s->rule.max))
		return yk_fail(YOKE_EINVAL, "scaler_load: scale %g is not in %g .. %g", now.scale,
			       s->rule.min, s->rule.max);
	if (now.clean < 0 || now.clean >= s->rule.interval || now.left < 0 ||
	    now.left > s->rule.hysteresis)
		return yk_fail(YOKE_EINVAL,
			       "scaler_load: %" PRId64 " steps without an overflow and %" PRId64
			       " overflows left; the interval is %" PRId64
			       ", the hysteresis %" PRId64,
			       now.clean, now.left, s->rule.interval, s->rule.hysteresis);
	if (now.skipped > now.steps)
		return yk_fail(YOKE_EINVAL,
			       "scaler_load: %" PRIu64 " of %" PRIu64 " steps were skipped",
			       now.skipped, now.steps);
	s->now = now;
	s->checked = false;
	s->first = -1;
	return numbers_set(s);
}

int yoke_scaler_stats(const yoke_scaler *s, struct yoke_scaler_stats *to)
{
	const int err = yk_require(s, "scaler");
	if (err)
		return err;
	const struct yoke_scaler_state *now = &s->now;
	struct yoke_scaler_stats x = {
		.scale = now->scale,
		.steps = now->steps < RECENT ? now->steps : RECENT,
		.overflows = (uint64_t)(__builtin_popcountll(now->recent[0]) +
					__builtin_popcountll(now->recent[1])),
		.all_steps = now->steps, .skipped = now->skipped, .first = s->first,
		.name = s->first >= 0 && s->name[s->first] ? s->name[s->first] : "",
	};
	x.rate = x.steps ? (double)x.overflows / (double)x.steps : 0;
	return yk_sized_write(to, sizeof x, &x, "scaler_stats", "yoke_scaler_stats");
}

// ---- a step ----

yoke_tensor *yoke_scaler_scale(yoke_scaler *s, yoke_tensor *loss)
{
	if (yk_require(s, "scaler"))
		return NULL;
	struct yk_rec r = yk_rec_begin(1, &loss);
	yk_id x = r.in[0] == YK_BAD || !yk_rec_reals(&r, 1) ? YK_BAD : yk_cast_acc(r.g, r.in[0]);
	yk_id by = x == YK_BAD ? x : yk_operand(r.ctx, s->scale, r.g->value[x].dtype);
	return yk_rec_end(&r, x == YK_BAD ? x : yk_bin(r.g, YK_MUL, x, by));
}

yoke_tensor *yoke_scaler_inverse(yoke_scaler *s)
{
	return yk_require(s, "scaler") ? NULL : s->inverse;
}

static int begin(struct yoke_scaler *s, int n)
{
	if (s->n && s->n != n)
		return yk_fail(YOKE_EINVAL, "scaler_check: %d gradients; there were %d before", n,
			       s->n);
	if (s->n || n < 1)
		return 0;
	const int64_t dim = n;
	s->order = s->order ? s->order : calloc((size_t)n, sizeof *s->order);
	s->name = s->name ? s->name : calloc((size_t)n, sizeof *s->name);
	if (!s->order || !s->name)
		return yk_fail(YOKE_ENOMEM, "scaler_check: no memory for %d gradients", n);
	s->each = s->each ? s->each : yoke_keep(yoke_variable("scaler.squares", yoke_f32, 1, &dim));
	s->found =
		s->found ? s->found : yoke_keep(yoke_variable("scaler.found", yoke_f32, 0, NULL));
	if (!s->each || !s->found)
		return yk_error_last();
	s->n = n;
	return 0;
}

// to: as in yk_scaled_squares.
static int take(struct yoke_scaler *s, int n, yoke_tensor *const *p, yoke_tensor *const to[3],
		yoke_tensor **norm, yoke_tensor **skip)
{
	int err = 0;
	for (int i = 0; i < n && p && !err; i++) {
		const struct yk_tensor *t = yk_tensor(p[i], "scaler_check"),
				       *own = t ? yk_tensor(s->scale, "scaler_check") : NULL;
		s->name[i] = own && t->ctx == own->ctx ? t->name : NULL;
		if (!own)
			err = yk_error_last();
		else if (t->ctx != own->ctx)
			err = yk_fail(
				YOKE_ECONTEXT,
				"scaler_check: variable %d is of another context than the scaler",
				i);
	}
	if (!err)
		err = yoke_assign(s->each, to[0]);
	if (!err)
		err = yoke_assign(s->found, to[2]);
	if (err)
		return err;
	s->checked = true;
	*norm = to[1];
	*skip = to[2];
	return 0;
}

int yoke_scaler_check(yoke_scaler *s, int n, yoke_tensor *const *p, yoke_tensor *const *g,
		      yoke_tensor **norm, yoke_tensor **skip)
{
	yoke_tensor *to[3];
	if (norm)
		*norm = NULL;
	if (skip)
		*skip = NULL;
	int err = yk_require(s, "scaler");
	if (!err && !(err = yk_require(norm, "place of the norm")))
		err = yk_require(skip, "place of skip");
	if (!err)
		err = begin(s, n);
	if (!err)
		err = yk_scaled_squares(n, g, s->inverse, s->order, to);
	return err ? err : take(s, n, p, to, norm, skip);
}

int yk_scaler_take(yoke_scaler *s, int n, const char *const *name, yoke_tensor *squares,
		   yoke_tensor **norm, yoke_tensor **skip)
{
	int err = begin(s, n);
	if (err)
		return err;
	for (int i = 0; i < n; i++) {
		s->order[i] = (uint32_t)i;
		s->name[i] = name[i];
	}
	yoke_tensor *sum = yoke_sum(squares, YOKE_ALL);
	yoke_tensor *to[] = { squares, yoke_sqrt(sum),
			      yoke_cast(yoke_not(yoke_isfinite(sum)), yoke_f32) };
	return to[1] && to[2] ? take(s, n, NULL, to, norm, skip) : yk_error_last();
}

// Finds the first tensor that was not finite.
static int find_first(struct yoke_scaler *s)
{
	const size_t bytes = (size_t)s->n * sizeof(float);
	float *each = malloc(bytes);
	int err = each ? yoke_read(s->each, each, bytes) :
			 yk_fail(YOKE_ENOMEM, "scaler_update: no memory");
	s->first = -1;
	for (int i = 0; i < s->n && !err; i++)
		if (!isfinite(each[i]) && (s->first < 0 || s->order[i] < s->first))
			s->first = s->order[i];
	free(each);
	return err;
}

static void grow(struct yoke_scaler *s)
{
	if (++s->now.clean < s->rule.interval)
		return;
	s->now.clean = 0;
	s->now.left = s->rule.hysteresis;
	s->now.scale = fmin(s->now.scale * s->rule.growth, s->rule.max);
}

static int fall(struct yoke_scaler *s)
{
	int err = find_first(s);
	if (err)
		return err;
	s->now.clean = 0;
	if (s->now.scale <= s->rule.min) {
		char which[200] = "all tensors together";
		if (s->first >= 0 && s->name[s->first])
			snprintf(which, sizeof which, "%s", s->name[s->first]);
		else if (s->first >= 0)
			snprintf(which, sizeof which, "tensor %" PRId64, s->first);
		return yk_fail(
			YOKE_ERANGE,
			"scaler_update: overflow at the min loss scale, %g: the gradient of %s "
			"is not finite; use a smaller lr, bf16, or keep more scopes in f32",
			s->rule.min, which);
	}
	s->now.left -= s->now.left > 0;
	if (!s->now.left)
		s->now.scale = fmax(s->now.scale * s->rule.backoff, s->rule.min);
	return 0;
}

int yoke_scaler_update(yoke_scaler *s)
{
	float found;
	int err = yk_require(s, "scaler");
	if (err)
		return err;
	if (!s->checked)
		return YOKE_STEPPED;
	err = yoke_read(s->found, &found, sizeof found);
	if (err)
		return err;
	const uint64_t at = s->now.steps++ % RECENT, bit = (uint64_t)1 << at % 64;
	s->checked = false;
	s->now.recent[at / 64] &= ~bit;
	if (found != 0) {
		s->now.recent[at / 64] |= bit;
		s->now.skipped++;
		err = fall(s);
	} else {
		grow(s);
	}
	if (!err)
		err = numbers_set(s);
	return err ? err : found != 0 ? YOKE_SKIPPED : YOKE_STEPPED;
}
