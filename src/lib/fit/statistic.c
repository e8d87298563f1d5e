// SPDX-License-Identifier: Apache-2.0
// Statistics: moments of tensors, merged on the host in f64.

#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fit/statistic.h"
#include "formats/safetensors.h"

enum { MAX_CHANNELS = 1 << 15 }; // sums of products of deviations take 8 GiB

static void clear(yoke_statistic *s)
{
	s->count = 0;
	for (int64_t i = 0; i < s->channels; i++) {
		s->mean[i] = 0;
		s->min[i] = INFINITY;
		s->max[i] = -INFINITY;
	}
	memset(s->square, 0, (size_t)yk_statistic_squares(s) * sizeof *s->square);
}

yoke_statistic *yoke_statistic_new(int64_t channels, int diagonal)
{
	if (channels < 1 || channels > MAX_CHANNELS) {
		yk_fail(YOKE_EINVAL, "statistic_new: %lld channels, must be 1 .. %d",
			(long long)channels, MAX_CHANNELS);
		return NULL;
	}
	yoke_statistic *s = calloc(1, sizeof *s);
	if (s) {
		s->channels = channels;
		s->diagonal = diagonal;
		s->mean = calloc((size_t)(3 * channels + yk_statistic_squares(s)), sizeof *s->mean);
	}
	if (!s || !s->mean) {
		free(s);
		yk_fail(YOKE_ENOMEM, "statistic_new: no memory for %lld channels",
			(long long)channels);
		return NULL;
	}
	s->min = s->mean + channels;
	s->max = s->min + channels;
	s->square = s->max + channels;
	clear(s);
	return s;
}

void yoke_statistic_free(yoke_statistic *s)
{
	if (!s)
		return;
	free(s->mean);
	free(s);
}

int64_t yoke_statistic_channels(const yoke_statistic *s)
{
	const int err = yk_require(s, "statistic");
	return err ? err : s->channels;
}

// Merges the moments of another portion of the stream.
static void join(yoke_statistic *s, double count, const double *mean, const double *square,
		 const double *min, const double *max)
{
	const int64_t c = s->channels;
	const double n = s->count, m = count, factor = n * m / (n + m);
	if (m == 0)
		return;
	for (int64_t i = 0; i < c; i++) {
		const double delta = n > 0 ? mean[i] - s->mean[i] : 0;
		if (s->diagonal)
			s->square[i] += square[i] + delta * delta * factor;
		for (int64_t k = 0; k < c && !s->diagonal; k++)
			s->square[i * c + k] +=
				square[i * c + k] +
				(n > 0 ? delta * (mean[k] - s->mean[k]) * factor : 0);
	}
	for (int64_t i = 0; i < c; i++) {
		s->mean[i] = n > 0 ? s->mean[i] + (mean[i] - s->mean[i]) * (m / (n + m)) : mean[i];
		s->min[i] = fmin(s->min[i], min[i]);
		s->max[i] = fmax(s->max[i], max[i]);
	}
	s->count = n + m;
}

// Evaluates the moments of x [..,C] into an empty statistic.
static int moments(yoke_statistic *to, yoke_tensor *x, yoke_tensor *weight)
{
	struct yoke_moments m = { .size = sizeof m };
	const size_t line = (size_t)to->channels * sizeof(double);
	yoke_tensor *rows = yoke_reshape(x, 2, (int64_t[]){ -1, to->channels });
	if (weight != YOKE_NONE)
		weight = yoke_reshape(weight, 1, (int64_t[]){ -1 });
	if (yoke_moments(rows, weight, to->diagonal, &m) < 0)
		return yk_error_last();
	yoke_tensor *part[] = { m.weight, m.mean, m.square, yoke_cast(m.min, yoke_f64),
				yoke_cast(m.max, yoke_f64) };
	if (yoke_eval(5, part) < 0 || yoke_read(part[0], &to->count, sizeof to->count) < 0 ||
	    yoke_read(part[1], to->mean, line) < 0 ||
	    yoke_read(part[2], to->square, (size_t)yk_statistic_squares(to) * sizeof(double)) < 0 ||
	    yoke_read(part[3], to->min, line) < 0 || yoke_read(part[4], to->max, line) < 0)
		return yk_error_last();
	for (int64_t i = 0; i < to->channels && to->count > 0; i++)
		if (!isfinite(to->min[i]) || !isfinite(to->max[i]) || !isfinite(to->mean[i]))
			return yk_fail(
				YOKE_ERANGE,
				"statistic_add: channel %lld has an element that is infinite or NaN",
				(long long)i);
	return 0;
}

int yoke_statistic_add(yoke_statistic *s, yoke_tensor *x, yoke_tensor *weight)
{
	int err = yk_require(s, "statistic");
	if (!err && !(err = yk_require(x, "tensor of observations")))
		err = yk_require(weight, "tensor of weights");
	if (err)
		return err;
	const int rank = yoke_rank(x);
	if (rank < 1 || yoke_dim(x, rank - 1) != s->channels)
		return yk_fail(
			YOKE_ESHAPE,
			"statistic_add: the last axis has %lld elements, the statistic %lld channels",
			(long long)(rank < 1 ? 1 : yoke_dim(x, rank - 1)), (long long)s->channels);
	yoke_statistic *part = yoke_statistic_new(s->channels, s->diagonal);
	if (!part)
		return yk_error_last();
	yoke_scope *scope = yoke_scope_begin("statistic");
	err = moments(part, x, weight);
	if (scope)
		yoke_scope_end(scope);
	if (!err)
		join(s, part->count, part->mean, part->square, part->min, part->max);
	yoke_statistic_free(part);
	return err;
}

int yoke_statistic_merge(yoke_statistic *s, const yoke_statistic *from)
{
	int err = yk_require(s, "statistic");
	if (!err)
		err = yk_require(from, "statistic");
	if (err)
		return err;
	if (s->channels != from->channels || s->diagonal != from->diagonal)
		return yk_fail(YOKE_ESHAPE, "statistic_merge: %lld channels%s and %lld%s",
			       (long long)s->channels, s->diagonal ? ", diagonal" : "",
			       (long long)from->channels, from->diagonal ? ", diagonal" : "");
	join(s, from->count, from->mean, from->square, from->min, from->max);
	return 0;
}

int yoke_statistic_read(const yoke_statistic *s, int what, double *to, size_t n)
{
	int err = yk_require(s, "statistic");
	if (!err && n)
		err = yk_require(to, "room for numbers");
	if (err)
		return err;
	const int64_t c = s->channels;
	const bool square = what == YOKE_STATISTIC_COVARIANCE || what == YOKE_STATISTIC_CORRELATION;
	const size_t want = what == YOKE_STATISTIC_COUNT ? 1 : (size_t)(square ? c * c : c);
	if (what < YOKE_STATISTIC_COUNT || what > YOKE_STATISTIC_MAX)
		return yk_fail(YOKE_EINVAL, "statistic_read: there is no %d", what);
	if (n != want)
		return yk_fail(YOKE_EINVAL, "statistic_read: %zu numbers are asked for, it has %zu",
			       n, want);
	if (square && s->diagonal)
		return yk_fail(
			YOKE_EINVAL,
			"statistic_read: a diagonal statistic has no covariance; make it with diagonal 0");
	if ((square || what == YOKE_STATISTIC_VARIANCE) && s->count <= 1)
		return yk_fail(YOKE_ERANGE,
			       "statistic_read: a count of %g has no variance; it takes two",
			       s->count);
	switch (what) {
	case YOKE_STATISTIC_COUNT: *to = s->count; break;
	case YOKE_STATISTIC_MEAN: memcpy(to, s->mean, n * sizeof *to); break;
	case YOKE_STATISTIC_MIN: memcpy(to, s->min, n * sizeof *to); break;
	case YOKE_STATISTIC_MAX: memcpy(to, s->max, n * sizeof *to); break;
	case YOKE_STATISTIC_VARIANCE:
		for (int64_t i = 0; i < c; i++)
			to[i] = s->square[s->diagonal ? i : i * (c + 1)] / (s->count - 1);
		break;
	default:
		for (int64_t i = 0; i < c * c; i++) {
			const double both =
				sqrt(s->square[i / c * (c + 1)]) * sqrt(s->square[i % c * (c + 1)]);
			if (what == YOKE_STATISTIC_COVARIANCE)
				to[i] = s->square[i] / (s->count - 1);
			else
				to[i] = i / c == i % c ? 1 :
					both > 0       ? fmax(-1, fmin(1, s->square[i] / both)) :
							 0;
		}
	}
	return 0;
}

// ---- files ----

static const char *const names[] = { "count", "mean", "square", "min", "max" };
enum { PARTS = 5 };

static void parts(const yoke_statistic *s, struct yk_host_tensor *t)
{
	double *const data[PARTS] = { (double *)&s->count, s->mean, s->square, s->min, s->max };
	for (int i = 0; i < PARTS; i++)
		t[i] = (struct yk_host_tensor){ .name = names[i], .dtype = yoke_f64, .rank = i > 0,
						.dims = { s->channels }, .data = data[i] };
	if (!s->diagonal) {
		t[2].rank = 2;
		t[2].dims[1] = s->channels;
	}
}

int yoke_statistic_save(const yoke_statistic *s, const char *path)
{
	struct yk_host_tensor t[PARTS];
	uint64_t bytes, hash;
	int err = yk_require(s, "statistic");
	if (!err)
		err = yk_require(path, "path");
	if (err)
		return err;
	parts(s, t);
	return yk_safetensors_write(path, PARTS, t, &bytes, &hash);
}

static int bad(const char *path, const char *why)
{
	return yk_fail(YOKE_EFORMAT, "%s: no statistic: %s", path, why);
}

// Checks that loaded moments are plausible.
static int plausible(const yoke_statistic *s, const char *path)
{
	if (!isfinite(s->count) || s->count < 0)
		return bad(path, "its count is no number from 0 on");
	for (int64_t i = 0; i < s->channels; i++) {
		const double square = s->square[s->diagonal ? i : i * (s->channels + 1)];
		if (!isfinite(s->mean[i]) || !isfinite(square) || square < 0 || isnan(s->min[i]) ||
		    isnan(s->max[i]))
			return bad(path, "its numbers are not moments");
	}
	for (int64_t i = 0; i < yk_statistic_squares(s); i++)
		if (!isfinite(s->square[i]))
			return bad(path, "its numbers are not moments");
	return 0;
}

yoke_statistic *yoke_statistic_load(const char *path)
{
	struct yk_safetensors f;
	struct yk_host_tensor t[PARTS];
	yoke_statistic *s = NULL;
	if (yk_require(path, "path") || yk_safetensors_open(&f, path) < 0)
		return NULL;
	const struct yk_safetensors_entry *mean = yk_safetensors_find(&f, "mean"),
					  *square = yk_safetensors_find(&f, "square");
	int err = !mean || mean->rank != 1 || !square || square->rank < 1 || square->rank > 2 ?
			  bad(path, "it has no arrays mean [C] and square") : 0;
	// checked before memory is allocated for them
	for (int d = 0; !err && d < square->rank; d++)
		if (square->dims[d] != mean->dims[0])
			err = bad(path, "its arrays do not fit each other");
	if (!err && !(s = yoke_statistic_new(mean->dims[0], square->rank == 1)))
		err = yk_error_last();
	if (!err)
		parts(s, t);
	for (int i = 0; i < PARTS && !err; i++) {
		const struct yk_safetensors_entry *e = yk_safetensors_find(&f, names[i]);
		bool fits = e && e->dtype == yoke_f64 && e->rank == t[i].rank;
		for (int d = 0; fits && d < e->rank; d++)
			fits = e->dims[d] == t[i].dims[d];
		err = fits ? yk_safetensors_read(&f, e, t[i].data) :
			     bad(path, "its arrays do not fit each other");
	}
	if (!err)
		err = plausible(s, path);
	yk_safetensors_close(&f);
	if (!err)
		return s;
	yoke_statistic_free(s);
	return NULL;
}
