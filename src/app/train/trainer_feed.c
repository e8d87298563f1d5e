// SPDX-License-Identifier: Apache-2.0
// Loads the windows of a trainer's steps.
#include "config.h"

#include "train/trainer.h"

#include <stdio.h>

#include "data/loader.h"

void yk_trainer_fed(struct yk_trainer *t)
{
	for (int64_t k = 0; t->feed.ids && k < t->replica.batches.accumulate; k++) {
		yoke_free(t->feed.ids[k]);
		t->feed.ids[k] = NULL;
	}
	t->feed.fed = false;
}

void yk_trainer_unfeed(struct yk_trainer *t)
{
	yk_trainer_fed(t);
	yoke_loader_free(t->feed.loader);
	t->feed.loader = NULL;
}

static int read_nothing(void *arg, int64_t n, struct yoke_item *const *s)
{
	(void)arg, (void)n, (void)s;
	return YOKE_EUNSUPPORTED;
}

// A dataset for rehearsals; it is never read.
static yoke_dataset *no_windows(const struct yk_trainer *t)
{
	const struct yoke_field ids = { .size = sizeof ids,
					.name = "ids",
					.dtype = yoke_i32,
					.rank = 1,
					.dims = { t->feed.width } };
	return yoke_dataset_new(
		&(struct yoke_dataset_options){ .size = sizeof(struct yoke_dataset_options),
						.name = "rehearsal",
						.count = 1,
						.fields = 1,
						.field = &ids,
						.read = read_nothing });
}

static int loader_open(struct yk_trainer *t)
{
	const struct yk_config *c = t->replica.config;
	char settings[320];
	const int64_t shuffle = yk_config_int(c, YK_KEY_shuffle),
		      order = !t->feed.data || !yk_data_endless(t->feed.data);
	snprintf(
		settings, sizeof settings,
		"batch=%lld split=%lld part=%lld parts=%lld stride=%lld held=1 workers=%s prefetch=%lld "
		"on_error=%s seed=%lld shuffle=%lld",
		(long long)(t->replica.batches.count * t->batch),
		(long long)t->replica.batches.count, (long long)t->replica.batches.first,
		(long long)t->replica.batches.accumulate, (long long)t->replica.batches.stride,
		yk_config_str(c, YK_KEY_workers), (long long)yk_config_int(c, YK_KEY_prefetch),
		yk_config_str(c, YK_KEY_on_error), (long long)t->replica.seed,
		(long long)(shuffle == YK_AUTO ? order : shuffle));
	yoke_dataset *set = t->feed.data ? yk_data_set(t->feed.data) : no_windows(t);
	t->feed.loader = set ? yk_loader_new_at(set, settings, &t->feed.position) : NULL;
	yoke_dataset_free(set);
	if (!t->feed.loader)
		return yoke_error_code();
	if (t->feed.watched)
		yk_loader_watch(t->feed.loader, t->feed.watched);
	yoke_loader_errors(t->feed.loader, t->feed.on_error, t->feed.on_error_arg);
	return 0;
}

static int64_t targets_of(void *data, int64_t window)
{
	return yk_data_train_targets(data, window);
}

int yk_trainer_feed(struct yk_trainer *t)
{
	if (t->feed.fed)
		return 0;
	int e = t->feed.loader ? 0 : loader_open(t);
	if (e == 0 && t->feed.packed && t->feed.data)
		e = yk_loader_sum(t->feed.loader, &t->feed.position, targets_of, t->feed.data,
				  &t->feed.targets);
	if (e < 0)
		return e;
	const int64_t rows = yoke_loader_next(t->feed.loader, (int)t->replica.batches.accumulate,
					      t->feed.ids, NULL);
	t->feed.starved = yk_loader_failed(t->feed.loader);
	if (rows < 0)
		yk_trainer_fed(t);
	t->feed.fed = rows > 0;
	return rows < 0 ? (int)rows : 0;
}

const int32_t *yk_trainer_windows(const struct yk_trainer *t, int64_t k)
{
	return yk_loader_current(t->feed.loader, 0, k);
}

void yk_trainer_seek(struct yk_trainer *t, const struct yoke_position *at)
{
	yk_trainer_unfeed(t);
	t->feed.position = *at;
}

struct yoke_loader_stats yk_trainer_data(const struct yk_trainer *t)
{
	struct yoke_loader_stats s = { .size = sizeof s };
	if (t->feed.loader)
		yoke_loader_stats(t->feed.loader, &s);
	return s;
}
