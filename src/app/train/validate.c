// SPDX-License-Identifier: Apache-2.0
// Computes the validation loss, on one or several ranks.
#include "config.h"

#include "train/validate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "nn/stage.h"
#include "nn/windows.h"
#include "train/advise.h"
#include "yoke-dist.h"

int yk_windows_judge(const struct yk_network *net, const struct yk_gathered *gathered, int64_t rows,
		     int64_t width, const int32_t *windows, double *to)
{
	struct yk_passage p = { .out = NULL };
	float loss = NAN;
	yoke_scope *s = yoke_scope_begin("validate");
	int e = gathered ? gathered->enter(gathered->arg) : 0;
	yoke_tensor *ids = yoke_from(yoke_i32, 2, (int64_t[]){ rows, width }, windows);
	const bool last = net->stage.at == net->stage.of - 1;
	*to = NAN;
	if (e == 0 && net->stage.of == 1)
		p.out = yk_windows_likelihood(net, ids);
	else if (e == 0)
		e = yk_stage_forward(net, ids, 0, &p);
	if (e == 0 && last)
		e = yoke_keep(p.out) ? 0 : yoke_error_code();
	if (gathered)
		gathered->leave(gathered->arg);
	// before it is computed, so that no handle keeps gathered parameters alive
	const int ended = yoke_scope_end(s);
	e = e ? e : ended;
	if (e == 0)
		e = last ? yoke_read(p.out, &loss, sizeof loss) : yoke_eval(0, NULL);
	if (last)
		yoke_free(p.out);
	*to = loss;
	return e;
}

// Index of window k when `windows` of them are spread evenly over `all`: k * all / windows without
// overflow.
static int64_t spread(int64_t k, int64_t windows, int64_t all)
{
	return k * (all / windows) + k * (all % windows) / windows;
}

bool yk_skips_of(const char *on_error, struct yk_skips *to)
{
	const bool skip = !strcmp(on_error, "skip");
	*to = (struct yk_skips){ .max = skip ? -1 : strtoll(on_error, NULL, 10) };
	return skip || strcmp(on_error, "stop") != 0;
}

static bool unreadable(int64_t code)
{
	return code == YOKE_EIO || code == YOKE_EFORMAT;
}

// The first readable window after number k, which is not readable itself.
static int read_next_good(const struct yk_data *data, int64_t k, int32_t *to)
{
	const int64_t all = yk_data_valid_windows(data);
	int64_t got = YOKE_EIO, i = 1;
	for (; i < all && unreadable(got); i++) {
		yoke_error_clear();
		got = yk_data_valid(data, (k + i) % all, 1, to);
	}
	if (!unreadable(got))
		return got < 0 ? (int)got : 0;
	if (all == 1) // restore the error
		got = yk_data_valid(data, k, 1, to);
	char why[400];
	snprintf(why, sizeof why, "%s", yoke_error());
	yoke_error_clear();
	return yk_fail((int)got, "%s; no other validation window can be read", why);
}

int yk_validation_read(const struct yk_data *data, int64_t k, int64_t windows, int32_t *to,
		       struct yk_skips *skips)
{
	const int64_t at = spread(k, windows, yk_data_valid_windows(data)),
		      got = yk_data_valid(data, at, 1, to);
	if (!skips || !unreadable(got))
		return got < 0 ? (int)got : 0;
	skips->count++;
	return read_next_good(data, at, to);
}

static int read_rows(const struct yk_data *data, int64_t first, int64_t rows, int64_t windows,
		     int32_t *to, int64_t width, struct yk_skips *skips)
{
	int e = 0;
	for (int64_t k = 0; k < rows && e == 0; k++)
		e = yk_validation_read(data, first + k, windows, to + k * width, skips);
	return e;
}

// Reads the windows of a batch again to report those that cannot be read. EIO, EFORMAT: one more
// than the limit.
static int report_batch(const struct yk_data *data, int64_t first, int64_t rows, int64_t windows,
			int32_t *scratch, struct yk_skips *skips)
{
	char why[400];
	for (int64_t k = first; k < first + rows; k++) {
		const int64_t at = spread(k, windows, yk_data_valid_windows(data)),
			      got = yk_data_valid(data, at, 1, scratch);
		if (!unreadable(got))
			continue;
		snprintf(why, sizeof why, "%s", yoke_error());
		yoke_error_clear();
		if (skips->max >= 0 && skips->count == skips->max)
			return yk_fail((int)got, "%s; this exceeds on_error=%lld", why,
				       (long long)skips->max);
		skips->count++;
		if (skips->report)
			skips->report(skips->arg, &(struct yoke_data_error){
							  .size = sizeof(struct yoke_data_error),
							  .name = yk_data_valid_name(data),
							  .number = at,
							  .code = (int)got,
							  .why = why });
	}
	return 0;
}

// Distributes the losses to all ranks: batch k is from rank k mod size or, if first is -1, from the
// last rank.
static int gather(yoke_group *group, int first, double *loss, int64_t n)
{
	const int size = yoke_group_size(group);
	double *all = malloc((size_t)n * (size_t)size * sizeof *all);
	int e = all ? yoke_group_exchange(group, loss, (size_t)n * sizeof *loss, all) :
		      yk_fail(YOKE_ENOMEM, "validation: out of memory");
	for (int64_t k = 0; k < n && e == 0; k++)
		loss[k] = all[(first < 0 ? size - 1 : k % size) * n + k];
	free(all);
	return e;
}

// Whether a rank computes batch k. With gathered parameters all ranks must compute equally many
// batches of equal size, because gathering is a collective: a rank without its own batch computes
// another rank's.
static bool takes_part(const struct yk_gathered *gathered, int64_t k, int64_t batches, bool whole,
		       int rank, int size)
{
	if (k % size == rank)
		return true;
	// a smaller last batch is computed by all ranks
	const int64_t full = whole ? batches : batches - 1;
	return gathered && (k >= full || (k == full - 1 && full % size && rank > k % size));
}

// Weight of the mean loss of windows first .. first + rows - 1 of those that are validated.
static double weight_of(const struct yk_data *data, int64_t first, int64_t rows, int64_t windows)
{
	const int64_t all = yk_data_valid_windows(data);
	int64_t targets = 0;
	if (!yk_data_chats(data))
		return (double)rows;
	for (int64_t k = 0; k < rows; k++)
		targets += yk_data_valid_targets(data, spread(first + k, windows, all));
	return (double)targets;
}

// Losses are weighted by targets, which are equally many in each row of text. Full batches share
// one plan; a smaller last batch has its own. Batches are distributed over ranks, and added in the
// order of the text.
int yk_model_validate(const struct yk_network *net, const struct yk_data *data, yoke_group *group,
		      const struct yk_gathered *gathered, int64_t batch, int64_t max,
		      struct yk_skips *skips, yk_validate_fn *go_on, void *arg, double *to)
{
	int64_t all = yk_data_valid_windows(data), width = yk_data_width(data);
	int64_t windows = max < all ? max : all, done = 0;
	const int rank = group ? yoke_group_rank(group) : 0,
		  size = group ? yoke_group_size(group) : 1;
	*to = NAN;
	if (windows == 0)
		return 0;
	if (batch > windows)
		batch = windows;
	const int64_t batches = (windows + batch - 1) / batch;
	int32_t *host = yk_data_windows(data, batch);
	double *loss = calloc((size_t)batches, sizeof *loss),
	       *bad = calloc((size_t)batches, sizeof *bad), sum = 0, weights = 0;
	int e = !host       ? yoke_error_code() :
		loss && bad ? 0 :
			      yk_fail(YOKE_ENOMEM, "validation: out of memory");
	for (int64_t k = 0; k < batches && e == 0 && (!go_on || go_on(arg, done, windows)); k++) {
		const int64_t left = windows - done, rows = left < batch ? left : batch;
		if (takes_part(gathered, k, batches, windows % batch == 0, rank, size)) {
			struct yk_skips here = { .count = 0 };
			e = read_rows(data, done, rows, windows, host, width, skips ? &here : NULL);
			bad[k] = (double)here.count;
			if (e == 0)
				e = yk_windows_judge(net, gathered, rows, width, host, &loss[k]);
		}
		done += rows;
	}
	if (size > 1 && e == 0)
		e = gather(group, 0, loss, batches);
	if (net->stage.of > 1 && e == 0)
		e = gather(net->stage.group, -1, loss, batches);
	if (skips && size > 1 && e == 0)
		e = gather(group, 0, bad, batches);
	if (skips)
		skips->count = 0;
	for (int64_t k = 0; skips && k < batches && e == 0; k++)
		if (bad[k] > 0)
			e = report_batch(data, k * batch,
					 k < batches - 1 ? batch : windows - k * batch, windows,
					 host, skips);
	for (int64_t k = 0; k < batches; k++) {
		const double weight = weight_of(
			data, k * batch, k < batches - 1 ? batch : windows - k * batch, windows);
		sum += loss[k] * weight;
		weights += weight;
	}
	free(loss);
	free(bad);
	free(host);
	if (e == 0 && done == windows)
		*to = sum / weights;
	return e;
}

struct validation {
	const struct yk_network *net;
	const struct yk_data *data;
};

// Validates with a new network of the same shape; values do not matter.
static int rehearse(void *arg, int64_t batch)
{
	const struct validation *v = arg;
	struct yk_network *net = NULL;
	double loss;
	int e = yk_network_new(v->net->model, &v->net->shape, &net);
	if (e == 0)
		e = yk_model_validate(net, v->data, NULL, NULL, batch, batch, NULL, NULL, NULL,
				      &loss);
	yk_network_free(net);
	return e;
}

int yk_validate_advise(const struct yk_network *net, const struct yk_data *data, int64_t batch)
{
	struct validation v = { net, data };
	int64_t windows = yk_data_valid_windows(data);
	return yk_advise_batch(batch < windows ? batch : windows,
			       "YOKE_BACKEND=cpu may have enough memory", rehearse, &v);
}
