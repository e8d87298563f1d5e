// SPDX-License-Identifier: Apache-2.0
// Training on several ranks: gradient reduction and the exchange of status. For consistency
// checks see consistency.c, for starting ranks train/launch_ranks.c.
#include "config.h"

#include "parallel/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/fixed.h"
#include "base/log.h"
#include "base/param.h"
#include "comm/adapt.h"
#include "comm/process.h"
#include "parallel/bucket.h"
#include "parallel/compress.h"
#include "parallel/stages.h"
#include "parallel/zero.h"

// ---- the order of sums ----

// The sum over all micro-batches is in order T (parallel/sums.h, comm/schedule.h) if each rank's
// own sum is a complete subtree of it.
bool yk_ranks_in_order(const struct yk_config *c, int64_t data, int64_t parts,
		       char why[YK_ORDER_WHY])
{
	const int64_t each = parts / data, zero = yk_config_int(c, YK_KEY_zero),
		      n = zero < 2 ? each : data;
	const struct yk_param *order = yk_param_find("dist.order");
	char line[YK_ORDER_WHY] = "";
	if (data == 1)
		return true;
	if (strcmp(yk_config_str(c, YK_KEY_wire), "fp32"))
		snprintf(line, sizeof line, "wire=%.20s rounds the sent gradients",
			 yk_config_str(c, YK_KEY_wire));
	else if (strcmp(yk_config_str(c, YK_KEY_compress), "none"))
		snprintf(line, sizeof line,
			 "compress=%.20s sends only some elements of the gradients",
			 yk_config_str(c, YK_KEY_compress));
	else if (!strcmp(yk_ranks_algorithm(), "ring") && data > 2)
		snprintf(line, sizeof line, "dist.algorithm=ring adds around the ring");
	else if (order && !strcmp(yk_param_str((struct yk_param *)(uintptr_t)order), "fast"))
		snprintf(line, sizeof line,
			 "dist.order=fast lets the vendor's library choose the order");
	else if (strcmp(yk_config_str(c, YK_KEY_accumulate_order), "tree") &&
		 (each > 1 || data > 3))
		snprintf(line, sizeof line,
			 "accumulate_order=fast adds each rank's micro-batches sequentially");
	else if ((n & (n - 1)) && each > 1 && zero < 2)
		snprintf(line, sizeof line,
			 "each of %lld ranks has %lld micro-batches, which is not a power of 2",
			 (long long)data, (long long)each);
	else if ((n & (n - 1)) && each > 1)
		snprintf(line, sizeof line,
			 "zero=%lld adds over %lld ranks first, which is not a power of 2",
			 (long long)zero, (long long)data);
	if (why)
		snprintf(why, YK_ORDER_WHY, "%s", line);
	return !*line;
}

bool yk_ranks_order_text(const struct yk_replica *t, char *to, size_t cap)
{
	const int64_t data = t->group ? yoke_group_size(t->group) : 1;
	char why[YK_ORDER_WHY] = "";
	if (t->batches.count == 1)
		return false;
	if (!yk_ranks_in_order(t->config, data, t->batches.count, why))
		snprintf(
			to, cap,
			"gradients are not added in the order of one rank with micro_batches=%lld: %s",
			(long long)t->batches.count, why);
	else
		snprintf(
			to, cap,
			"gradients are added in the order of one rank with micro_batches=%lld accumulate_order=%s",
			(long long)t->batches.count,
			yk_config_str(t->config, YK_KEY_accumulate_order));
	return true;
}

// ---- status that ranks exchange after each step ----

// STOP: stop request; ADAPT: rank 0's yk_adapt_propose; from WAITED on: per rank, seconds of
// waiting
enum { STOP, ADAPT, WAITED };

struct yk_ranks_status {
	yoke_tensor *number[3]; // host scalars
	yoke_tensor *place[3];  // [WAITED + ranks]: one-hot position of the number
	yoke_tensor *all[2];    // sums over all ranks: of the previous step, of the last step
	double before;          // this rank's total waiting time when it last reported
	double *waited;         // per rank, seconds since yk_ranks_released
};

static void status_free(struct yk_ranks_status *s)
{
	if (!s)
		return;
	for (int i = 0; i < 3; i++) {
		yoke_free(s->number[i]);
		yoke_free(s->place[i]);
	}
	yoke_free(s->all[0]);
	yoke_free(s->all[1]);
	free(s->waited);
	free(s);
}

static int64_t status_count(const struct yk_replica *t)
{
	return WAITED + yoke_group_size(t->grid.all);
}

static int status_make(struct yk_replica *t)
{
	const int64_t n = status_count(t);
	struct yk_ranks_status *s = t->status = calloc(1, sizeof *s);
	float *one = calloc((size_t)n, sizeof *one);
	if (s && one && (s->waited = calloc((size_t)n, sizeof *s->waited)))
		for (int i = 0; i < 3; i++) {
			const int64_t at = i == WAITED ? WAITED + yoke_group_rank(t->grid.all) : i;
			one[at] = 1;
			s->number[i] = yoke_keep(yoke_scalar(0));
			s->place[i] = yoke_keep(yoke_from(yoke_f32, 1, &n, one));
			one[at] = 0;
		}
	const bool good = s && s->waited;
	free(one);
	return good ? yoke_error_code() : yk_fail(YOKE_ENOMEM, "ranks: out of memory");
}

static double waited(const struct yk_replica *t)
{
	struct yoke_group_state now = { .size = sizeof now };
	return yoke_group_state(t->grid.all, &now) == 0 ? now.waited : 0;
}

void yk_ranks_set_status(struct yk_replica *t, bool ends)
{
	struct yk_ranks_status *s = t->status;
	const double now = waited(t);
	yoke_scalar_set(s->number[STOP], ends);
	yoke_scalar_set(s->number[WAITED], now - s->before);
	if (t->group && t->group->adapt && yoke_group_rank(t->grid.all) == 0) {
		char line[200];
		yoke_scalar_set(s->number[ADAPT],
				yk_adapt_propose(t->group->adapt, t->step, line, sizeof line));
		if (*line)
			yk_info("dist", "step %lld: %s", (long long)t->step, line);
	}
	s->before = now;
}

static yoke_tensor *status_row(const struct yk_ranks_status *s)
{
	yoke_tensor *sum = yoke_mul(s->place[0], s->number[0]);
	for (int i = 1; i < 3; i++)
		sum = yoke_add(sum, yoke_mul(s->place[i], s->number[i]));
	return sum;
}

int yk_ranks_read_status(struct yk_replica *t)
{
	struct yk_ranks_status *s = t->status;
	const int64_t n = status_count(t);
	float *all = s->all[0] ? calloc((size_t)n, sizeof *all) : NULL;
	int e = !s->all[0] ? 0 :
		all        ? yoke_read(s->all[0], all, (size_t)n * sizeof *all) :
			     yk_fail(YOKE_ENOMEM, "ranks: out of memory");
	yoke_free(s->all[0]);
	s->all[0] = s->all[1];
	s->all[1] = NULL;
	if (e == 0 && all) {
		t->ends |= all[STOP] > 0;
		for (int64_t r = WAITED; r < n; r++)
			s->waited[r - WAITED] += (double)all[r];
		if (t->group && t->group->adapt)
			yk_adapt_apply(t->group->adapt, (uint32_t)all[ADAPT]);
	}
	free(all);
	return e;
}

void yk_ranks_released(struct yk_replica *t, double *seconds, uint64_t *sent, int *slowest)
{
	struct yk_ranks_status *s = t->status;
	const int n = yoke_group_size(t->grid.all);
	*seconds = waited(t);
	*sent = yk_grid_sent(&t->grid);
	*slowest = 0;
	for (int r = 1; r < n; r++)
		if (s->waited[r] < s->waited[*slowest])
			*slowest = r;
	memset(s->waited, 0, (size_t)n * sizeof *s->waited);
}

// ---- joining ----

int yk_ranks_join(struct yk_replica *t)
{
	const int e = yk_grid_join(t->config, &t->grid);
	if (e < 0 || !t->grid.all)
		return e;
	t->group = t->grid.over_data;
	t->stage = t->group ? (int)yk_config_int(t->config, YK_KEY_zero) : 0;
	t->batches.first = t->grid.d * (t->stage < 2 ? t->batches.accumulate : 1);
	t->batches.stride = t->stage < 2 ? 1 : t->grid.data;
	if (t->group && yk_adapt_enabled() &&
	    !(t->group->adapt = yk_adapt_new(t->group->ranks, t->group->rendezvous->node)))
		return yk_fail(YOKE_ENOMEM, "ranks: out of memory");
	return status_make(t);
}

void yk_ranks_failed(const struct yk_replica *t)
{
	uint32_t rank, n;
	if (yk_process_rank(&rank, &n) > 0)
		yk_process_failed();
	else
		yk_ranks_break(t->grid.all->queue, YOKE_ERANK, yoke_error());
}

void yk_ranks_leave(struct yk_replica *t)
{
	status_free(t->status);
	t->status = NULL;
	yk_grid_leave(&t->grid);
	t->group = NULL;
}

int yk_ranks_start(const struct yk_replica *t, const struct yk_parameters *ps, int first, int end)
{
	const int n = end - first;
	yoke_tensor *const *var = ps->var + first, **to = calloc((size_t)n + 1, sizeof *to);
	if (!to)
		return yk_fail(YOKE_ENOMEM, "ranks: out of memory");
	yoke_scope *s = yoke_scope_begin("start");
	int e = n ? yoke_broadcast_list(t->group, 0, n, var, to) : 0;
	for (int i = 0; i < n && e == 0; i++)
		e = yoke_assign(var[i], to[i]);
	if (e == 0)
		e = yoke_eval(0, NULL);
	const int ended = yoke_scope_end(s);
	free(to);
	return e ? e : ended;
}

// Sums a bucket's gradients over all ranks.
static int reduce_bucket(struct yk_replica *t, int first, int end)
{
	for (int i = first; i < end; i++)
		t->grad[i] = yk_bucket_cast(t->config, t->grad[i]);
	const int e = yoke_all_reduce_list(t->group, YOKE_REDUCE_SUM, end - first, t->grad + first,
					   t->grad + first);
	for (int i = first; i < end; i++)
		t->grad[i] = yoke_cast(t->grad[i], yoke_dtype(t->params->var[i]));
	return e;
}

int yk_ranks_reduce(struct yk_replica *t, yoke_tensor **loss)
{
	const int64_t one = 1;
	int e = 0;
	const bool in_part = yk_compress_now(t),
		   has_loss = !t->stages || t->grid.s == t->grid.stages - 1;
	if (t->stages && (e = yk_stages_reduce(t)) < 0)
		return e;
	if (t->stage == 1 && !in_part)
		yk_zero_reduce(t);
	if (t->stage > 0 && !in_part)
		yk_zero_take(t);
	for (int end = (t->stage && !in_part) || !t->group ? 0 : t->params->count, first;
	     end > 0 && e == 0; end = first) {
		first = yk_bucket_first(t->params, end);
		e = in_part ? yk_compress_reduce(t, first, end) : reduce_bucket(t, first, end);
	}
	if (t->stage > 0 && in_part)
		yk_zero_take_reduced(t);
	yoke_tensor *own = status_row(t->status), **to = &t->status->all[1];
	if (t->stage < 2 && t->group == t->grid.all) { // loss and status in one message
		yoke_tensor *all = yoke_all_reduce(
			t->group, YOKE_REDUCE_SUM,
			yoke_concat(2, (yoke_tensor *[]){ yoke_reshape(*loss, 1, &one), own }, 0));
		*loss = yoke_reshape(yoke_slice(all, 0, 0, 1, 1), 0, NULL);
		*to = yoke_keep(yoke_slice(all, 0, 1, 1 + status_count(t), 1));
	} else { // with zero >= 2 the loss is already summed
		if (t->stage < 2 && t->group && has_loss)
			*loss = yoke_all_reduce(t->group, YOKE_REDUCE_SUM, *loss);
		if (t->stages)
			*loss = yk_stages_broadcast_loss(t, *loss);
		*to = yoke_keep(yoke_all_reduce(t->grid.all, YOKE_REDUCE_SUM, own));
	}
	return e ? e : *to ? 0 : yoke_error_code();
}

yoke_tensor **yk_ranks_part(struct yk_replica *t, yoke_tensor **loss)
{
	if (t->stage < 2)
		return t->grad;
	*loss = yoke_all_reduce(t->group, YOKE_REDUCE_SUM, *loss);
	return yk_zero_reduce(t);
}

// The first rank receives the other ranks' events; to[r - 1] are for free().
static int take_events(yoke_group *g, const uint64_t *bytes, char **to)
{
	int e = 0;
	for (int r = 1; r < yoke_group_size(g) && e == 0; r++) {
		to[r - 1] = malloc(bytes[r]);
		e = to[r - 1] ? yk_group_recv(g, (uint32_t)r, to[r - 1], bytes[r]) :
				yk_fail(YOKE_ENOMEM, "ranks: out of memory for a trace");
	}
	return e;
}

int yk_ranks_trace(const struct yk_replica *t, struct yk_profile *p, const char *path)
{
	yoke_group *g = t->grid.all;
	const int n = yoke_group_size(g), rank = yoke_group_rank(g);
	uint64_t mine = yk_profile_began(p), *all = calloc((size_t)n, sizeof *all), first = mine;
	char **other = calloc((size_t)n, sizeof *other), *own = NULL;
	int e = all && other ? yoke_group_exchange(g, &mine, sizeof mine, all) :
			       yk_fail(YOKE_ENOMEM, "ranks: out of memory for a trace");
	for (int r = 0; r < n && e == 0; r++)
		first = all[r] < first ? all[r] : first;
	yk_profile_rank(p, rank, n, mine - first);
	if (e == 0 && rank > 0)
		e = (own = yk_profile_events(p)) ? 0 : yoke_error_code();
	mine = own ? strlen(own) + 1 : 0;
	if (e == 0)
		e = yoke_group_exchange(g, &mine, sizeof mine, all);
	if (e == 0)
		e = rank > 0 ? yk_group_send(g, 0, own, mine) : take_events(g, all, other);
	if (e == 0 && rank == 0)
		e = yk_profile_trace_ranks(p, path, n - 1, other);
	for (int r = 0; r < n && other; r++)
		free(other[r]);
	free(other);
	free(own);
	free(all);
	return e;
}

int yk_ranks_settle(struct yk_config *c)
{
	const int64_t parts = yk_config_int(c, YK_KEY_micro_batches);
	uint32_t rank, started;
	char argument[32];
	const int place = yk_process_rank(&rank, &started);
	if (place < 0)
		return place;
	// takes precedence over the checkpoint's value
	if (place && !yk_config_is_explicit(c, YK_KEY_ranks)) {
		snprintf(argument, sizeof argument, "ranks=%u", started);
		return yk_config_argument(c, argument);
	}
	if (yk_config_int(c, YK_KEY_ranks) != YK_AUTO)
		return 0;
	if (place) // the starting process determined it
		return yk_config_settle(c, YK_KEY_ranks, started);
	int n = yk_config_apply(c);
	if (n == 0)
		n = yk_ranks_devices();
	const int unit = (int)yk_grid_unit(c);
	n = n < unit ? n : n - n % unit;
	while (n > unit && parts != YK_AUTO && parts % (n / unit))
		n -= unit;
	return n < 0 ? n : yk_config_settle(c, YK_KEY_ranks, n);
}

bool yk_ranks_leads(void)
{
	uint32_t rank = 0, ranks;
	return yk_process_rank(&rank, &ranks) <= 0 || rank == 0;
}

int yk_ranks_divide_cpu(int64_t ranks)
{
	char n[24];
	uint32_t index, share = 1;
	if (ranks == 1 || getenv("YOKE_CPU_DEVICES") || yk_param_is_fixed("cpu.devices"))
		return 0;
	if (yk_process_launched()) { // the launcher may have bound ranks to processors
		const int e = yk_process_cpu(&index, &share);
		if (e < 0)
			return e;
		ranks = share;
	}
	snprintf(n, sizeof n, "%lld", (long long)ranks);
	return yoke_setting_set("cpu.devices", n);
}

int yk_ranks_run(int64_t ranks, int (*fn)(yoke_group *, void *), void *arg)
{
	uint32_t rank, n;
	return yk_process_rank(&rank, &n) ? yk_process_run(NULL, fn, arg) :
					     yoke_group_run((int)ranks, NULL, fn, arg);
}
