// SPDX-License-Identifier: Apache-2.0
// Tests loaders whose samples fail or never arrive, that are closed at any time, or that are
// refused.
#include "config.h"

#include <dirent.h>

#include "fed.h"

// ---- failures ----

struct heard {
	int n;
	int64_t number[64];
};

static void hear(void *arg, const struct yoke_data_error *e)
{
	struct heard *h = arg;
	if (h->n < 64 && e->code == YOKE_EIO && strstr(e->why, "is bad"))
		h->number[h->n++] = e->number;
}

static void test_failures(void)
{
	enum { COUNT = 11, BATCH = 4 };
	bool good = true;
	// the k-th sample of the order fails, and a second one
	for (int k = 0; k < COUNT && good; k++) {
		struct source x = { .count = COUNT, .sleep_us = 20 };
		const int64_t other = rnd_int(0, COUNT - 1);
		x.bad[yk_order_at(k, COUNT, 1, 4, 0)] = true;
		x.bad[yk_order_at(other, COUNT, 1, 4, 0)] = true;
		const int nbad = other == k ? 1 : 2;
		yoke_dataset *d = set_of(&x, 1 + k % 3, 0);
		for (int workers = 0; workers <= 3 && good; workers += 3) {
			struct heard h = { 0 };
			void *data[2];
			int64_t rows, at = 0;
			// skip
			yoke_loader *l = loader(
				d, "batch=%d seed=4 on_error=skip epochs=1 last=keep workers=%d",
				BATCH, workers);
			yoke_loader_errors(l, hear, &h);
			while ((rows = yoke_loader_host(l, 2, data, NULL)) > 0)
				for (int64_t r = 0; r < rows; r++, at++) {
					int64_t place = at, number;
					do
						number = yk_order_at(place++ % COUNT, COUNT, 1, 4,
								     0);
					while (x.bad[number]);
					good = good && ((int64_t *)data[0])[2 * r] == number;
				}
			good = good && rows == 0 && at == COUNT && h.n == nbad;
			int seen = 0; // in the order of positions
			for (int64_t i = 0; i < COUNT && good; i++)
				if (x.bad[yk_order_at(i, COUNT, 1, 4, 0)])
					good = h.number[seen++] == yk_order_at(i, COUNT, 1, 4, 0);
			yoke_loader_free(l);
			// on_error=stop, and a limit of one
			for (int max = 0; max <= 1 && good; max++) {
				char name[40];
				int64_t first = k < other ? k : other,
					second = k < other ? other : k;
				const int64_t place = max == 0 ? first : nbad == 2 ? second : COUNT;
				l = loader(
					d,
					"batch=%d seed=4 on_error=%s epochs=1 last=keep workers=%d",
					BATCH, max ? "1" : "stop", workers);
				at = 0;
				while ((rows = yoke_loader_host(l, 2, data, NULL)) > 0)
					at += rows;
				good = at == (place == COUNT ? COUNT : place / BATCH * BATCH) &&
				       rows == (place == COUNT ? 0 : YOKE_EIO);
				if (place < COUNT) {
					snprintf(name, sizeof name, "numbers: sample %lld: ",
						 (long long)yk_order_at(place, COUNT, 1, 4, 0));
					good = good && strstr(yoke_error(), name) &&
					       strstr(yoke_error(), "is bad");
					struct yoke_position p = { .size = sizeof p };
					yoke_loader_position(l, &p);
					good = good && p.index == at;
					yoke_error_clear();
					// and again
					good = good &&
					       yoke_loader_host(l, 2, data, NULL) == YOKE_EIO;
				}
				if (!good)
					diag("most %d place %lld rows %lld at %lld: %s", max,
					     (long long)place, (long long)rows, (long long)at,
					     yoke_error());
				yoke_error_clear();
				yoke_loader_free(l);
			}
			if (!good)
				diag("k %d other %lld workers %d", k, (long long)other, workers);
		}
		yoke_dataset_free(d);
	}
	ok(good, "each sample of an epoch fails, in each error mode");

	// at most one per epoch, over three epochs, closed and resumed after each batch
	struct source one = { .count = COUNT, .bad = { [6] = true } };
	yoke_dataset *e = set_of(&one, 1, 0);
	struct yoke_position at = { .size = sizeof at };
	for (int b = 0; b < 3 * COUNT / BATCH && good; b++) {
		void *data[2];
		yoke_loader *l = loader(e, "batch=%d seed=4 on_error=1 workers=%d", BATCH, b % 3);
		good = yoke_loader_seek(l, &at) == 0 && yoke_loader_host(l, 2, data, NULL) == BATCH;
		const int64_t before = at.epoch;
		yoke_loader_position(l, &at);
		bool behind = false; // is the failing position of this epoch already passed?
		for (int64_t i = 0; i < at.index; i++)
			behind |= yk_order_at(i, COUNT, 1, 4, at.epoch) == 6;
		good = good && at.failed == behind && at.epoch >= before;
		yoke_loader_free(l);
	}
	ok(good, "failures are counted per epoch, and stored in positions: %s", yoke_error());
	at = (struct yoke_position){ .size = sizeof at, .failed = 1 };
	yoke_loader *again = loader(e, "batch=%d seed=4 on_error=1", COUNT);
	void *none[2];
	ok(yoke_loader_seek(again, &at) == 0 &&
		   yoke_loader_host(again, 2, none, NULL) == YOKE_EIO &&
		   strstr(yoke_error(), "on_error=1"),
	   "%s", yoke_error());
	yoke_error_clear();
	yoke_loader_free(again);
	yoke_dataset_free(e);

	// a long run of failing samples needs no search for each
	struct source row = { .count = 64, .sleep_us = 1 };
	for (int i = 10; i < 64; i++)
		row.bad[i] = i != 30;
	yoke_dataset *many = set_of(&row, 1, 0);
	yoke_loader *in_row = loader(many, "batch=8 shuffle=0 on_error=skip epochs=1 workers=0");
	for (int64_t begin = 0; begin < 64 && good; begin += 8) {
		void *data[2];
		good = yoke_loader_host(in_row, 2, data, NULL) == 8;
		for (int64_t r = begin; r < begin + 8 && good; r++)
			good = ((int64_t *)data[0])[2 * (r - begin)] ==
			       (r < 10 ? r : r <= 30 ? 30 : 0);
	}
	ok(good && row.calls <= 64 + 53 + 20 + 33, "runs of bad samples need %d reads", row.calls);
	yoke_loader_free(in_row);
	yoke_dataset_free(many);

	struct source x = { .count = 5, .bad = { 1, 1, 1, 1, 1 } };
	yoke_dataset *d = set_of(&x, 1, 0);
	yoke_loader *l = loader(d, "batch=2 on_error=skip workers=1");
	void *data[2];
	ok(yoke_loader_host(l, 2, data, NULL) == YOKE_EIO &&
		   strstr(yoke_error(), "no other sample"),
	   "if all samples fail the loader ends: %s", yoke_error());
	yoke_error_clear();
	yoke_loader_free(l);
	yoke_dataset_free(d);
}

// ---- ends ----

static int entries(const char *folder)
{
	int n = 0;
	DIR *f = opendir(folder);
	while (f && readdir(f))
		n++;
	if (f)
		closedir(f);
	return n;
}

// A joined thread remains in the task list for a moment.
static int tasks(int max)
{
	int n = entries("/proc/self/task");
	for (int k = 0; n > max && k < 5000; k++) {
		pause_us(1000);
		n = entries("/proc/self/task");
	}
	return n;
}

static void test_open_close(void)
{
	struct source x = { .count = 100, .sleep_us = 100 };
	yoke_dataset *d = set_of(&x, 3, 0);
	const int threads = entries("/proc/self/task"), files = entries("/proc/self/fd");
	const int n = tap_cases(300, 1000);
	bool good = true;
	for (int k = 0; k < n && good; k++) {
		void *data[2];
		yoke_loader *l = loader(d, "batch=8 workers=%d prefetch=%d", (int)rnd_int(0, 4),
					(int)rnd_int(0, 3));
		for (int64_t b = rnd_int(0, 2); b > 0 && good; b--)
			good = yoke_loader_host(l, 2, data, NULL) == 8;
		yoke_loader_free(l);
	}
	const int left = tasks(threads), open = entries("/proc/self/fd");
	ok(good && left == threads && open == files,
	   "%d loaders closed in the middle: %d threads of %d, %d files of %d remain", n,
	   left, threads, open, files);
	yoke_dataset_free(d);
	ok(x.freed == 1, "the set is freed after them");

	struct source serial = { .count = 30, .sleep_us = 50 };
	d = set_of(&serial, 1, 1);
	yoke_loader *l = loader(d, "batch=7 workers=5");
	void *data[2];
	for (int b = 0; b < 12; b++)
		yoke_loader_host(l, 2, data, NULL);
	yoke_loader_free(l);
	yoke_dataset_free(d);
	ok(serial.together == 0, "a set that is not thread safe is read by one thread at a time");
}

static atomic_bool stuck_may_end;

static int read_stuck(void *arg, int64_t n, struct yoke_item *const *s)
{
	(void)arg;
	(void)n;
	*(float *)s[0]->to[0] = 1;
	while (s[0]->number == 3 && !atomic_load(&stuck_may_end))
		pause_us(1000);
	return 0;
}

static void test_stuck(void)
{
	static struct source gone;
	const struct yoke_field f = { .size = sizeof f, .name = "x", .dtype = yoke_f32 };
	yoke_dataset *d = yoke_dataset_new(
		&(struct yoke_dataset_options){ .size = sizeof(struct yoke_dataset_options),
						.name = "stuck",
						.count = 9,
						.fields = 1,
						.field = &f,
						.read = read_stuck,
						.arg = &gone,
						.free_fn = free_source });
	yoke_loader *l = loader(d, "batch=2 shuffle=0 workers=2");
	void *data[1];
	const int64_t first = yoke_loader_host(l, 1, data, NULL);
	yoke_setting_set("data.timeout", "1");
	const int64_t second = yoke_loader_host(l, 1, data, NULL);
	ok(first == 2 && second == YOKE_EIO && strstr(yoke_error(), "stuck: sample 3") &&
		   strstr(yoke_error(), "data.timeout"),
	   "a read that does not return ends the run: %s", yoke_error());
	yoke_error_clear();
	struct yoke_position p = { .size = sizeof p };
	yoke_loader_position(l, &p);
	yoke_loader_free(l);
	yoke_setting_set("data.timeout", "300");
	yoke_dataset_free(d);
	const bool held = gone.freed == 0;
	atomic_store(&stuck_may_end, true);
	for (int k = 0; k < 600000 && !gone.freed; k++)
		pause_us(1000);
	ok(p.index == 2 && held && gone.freed == 1,
	   "the position is before the failed batch; its data lives until the read returns");
}

// ---- reads ahead that wait ----

static atomic_int waiting_reads;
static atomic_bool reads_may_end;

// Samples from 2 on arrive only when they may.
static int read_waiting(void *arg, int64_t n, struct yoke_item *const *s)
{
	(void)arg;
	for (int64_t i = 0; i < n; i++) {
		if (s[i]->number >= 2)
			atomic_fetch_add(&waiting_reads, 1);
		while (s[i]->number >= 2 && !atomic_load(&reads_may_end))
			pause_us(1000);
		*(float *)s[i]->to[0] = (float)s[i]->number;
	}
	return 0;
}

// The first batch is there, and a worker waits for the second: a seek to the first returns it.
static void test_seek_waiting(void)
{
	const struct yoke_field f = { .size = sizeof f, .name = "x", .dtype = yoke_f32 };
	yoke_dataset *d = yoke_dataset_new(
		&(struct yoke_dataset_options){ .size = sizeof(struct yoke_dataset_options),
						.name = "slow",
						.count = 9,
						.fields = 1,
						.field = &f,
						.read = read_waiting });
	const struct yoke_position begin = { .size = sizeof begin },
				   later = { .size = sizeof later, .index = 4 };
	struct yoke_position p = { .size = sizeof p };
	yoke_loader *l = loader(d, "batch=2 shuffle=0 workers=1");
	void *data[1];
	while (l && atomic_load(&waiting_reads) == 0)
		pause_us(1000);
	yoke_setting_set("data.timeout", "20"); // against a hang
	int e = yoke_loader_seek(l, &begin);
	bool good = e == 0 && yoke_loader_host(l, 1, data, NULL) == 2 &&
		    ((float *)data[0])[0] == 0 && ((float *)data[0])[1] == 1;
	ok(good, "a seek to the next batch keeps it: %d %s", e, yoke_error());
	e = yoke_loader_position(l, &p);
	e = e ? e : yoke_loader_seek(l, &p);
	ok(e == 0 && p.index == 2, "a seek to a batch that is being read does not wait: %d %s", e,
	   yoke_error());
	atomic_store(&reads_may_end, true);
	yoke_setting_set("data.timeout", "300");
	good = yoke_loader_host(l, 1, data, NULL) == 2 && ((float *)data[0])[0] == 2 &&
	       ((float *)data[0])[1] == 3;
	good = good && yoke_loader_seek(l, &begin) == 0 &&
	       yoke_loader_host(l, 1, data, NULL) == 2 && ((float *)data[0])[1] == 1;
	good = good && yoke_loader_seek(l, &later) == 0 &&
	       yoke_loader_host(l, 1, data, NULL) == 2 && ((float *)data[0])[1] == 5;
	ok(good, "and seeks to other positions discard it: %s", yoke_error());
	yoke_loader_free(l);
	yoke_dataset_free(d);
}

// ---- what is refused ----

static void test_refused(void)
{
	static const struct {
		const char *settings, *say;
		int code;
	} row[] = {
		{ "batch=0", "batch=0: must be a whole number from 1", YOKE_EINVAL },
		{ "batch=", "batch=: must be", YOKE_EINVAL },
		{ "batch=3x", "batch=3x", YOKE_EINVAL },
		{ "batch=99999999999999999999", "batch=9", YOKE_EINVAL },
		{ "workers=-2", "workers=-2: must be auto or a whole number from 0 to 1024",
		  YOKE_EINVAL },
		{ "last=some", "must be wrap or drop or keep or pad", YOKE_EINVAL },
		{ "last=1", "last=1", YOKE_EINVAL },
		{ "on_error=0", "must be skip or stop or a whole number from 1", YOKE_EINVAL },
		{ "rank=2 world=2", "rank=2: must be below world=2", YOKE_EINVAL },
		{ "bach=2", "did you mean 'batch'", YOKE_EINVAL },
		{ "batch", "'batch' is not key=value", YOKE_EINVAL },
		{ "batch=11 last=drop", "an epoch has 10 samples, batch=11", YOKE_ERANGE },
		{ "batch=4 last=drop world=3", "an epoch has 4", 0 },
		{ "batch=5 last=drop world=3", "an epoch has 4 samples for each rank",
		  YOKE_ERANGE },
		{ "batch=4 split=3", "split=3: must divide batch=4", YOKE_EINVAL },
		{ "batch=4 split=2 last=keep", "split=2: must divide", YOKE_EINVAL },
		{ "batch=4 split=2 part=2",
		  "part=2 parts=0 stride=1: must be among those of split=2", YOKE_EINVAL },
		{ "batch=4 split=2 part=1 parts=2", "part=1 parts=2 stride=1: must be among",
		  YOKE_EINVAL },
		{ "batch=4 split=4 parts=2 stride=4", "parts=2 stride=4: must be among",
		  YOKE_EINVAL },
		{ "batch=4 split=2 parts=1 last=pad", "last=pad does not go with them",
		  YOKE_EINVAL },
		{ "batch=4 split=0", "split=0: must be a whole number from 1", YOKE_EINVAL },
		{ "batch=4000000000000000000", "no memory", YOKE_ENOMEM },
	};
	struct source x = { .count = 10 };
	yoke_dataset *d = set_of(&x, 1, 0);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		yoke_loader *l = yoke_loader_new(d, row[i].settings);
		ok(row[i].code ? !l && yoke_error_code() == row[i].code &&
					 strstr(yoke_error(), row[i].say) :
				 l != NULL,
		   "loader %s: %s", row[i].settings, yoke_error());
		yoke_error_clear();
		yoke_loader_free(l);
	}
	const int64_t places[][2] = { { -1, 0 }, { 0, -1 }, { 0, 11 }, { INT64_MAX, 0 } };
	yoke_loader *l = loader(d, "batch=2 workers=0");
	bool good = true;
	for (int i = 0; i < 4; i++) {
		struct yoke_position p = { .size = sizeof p,
					   .epoch = places[i][0],
					   .index = places[i][1] };
		good = good && yoke_loader_seek(l, &p) == YOKE_EINVAL;
		yoke_error_clear();
	}
	ok(good, "invalid positions are refused");
	void *data[3];
	ok(yoke_loader_host(l, 3, data, NULL) == YOKE_EINVAL, "three tensors for two fields: %s",
	   yoke_error());
	yoke_error_clear();
	yoke_loader_free(l);
	struct yoke_field f = { .size = sizeof f, .name = "x", .dtype = yoke_u8 }, g = f;
	struct yoke_dataset_options o = {
		.size = sizeof o, .count = 1, .fields = 1, .field = &f, .read = read_stuck
	};
	struct yoke_dataset_options none = o, empty = o, large = o, axes = o;
	none.read = NULL;
	empty.count = 0;
	f.pad = 0.5;
	ok(!yoke_dataset_new(&o) && strstr(yoke_error(), "pad 0.5"), "%s", yoke_error());
	yoke_error_clear();
	f.pad = 0;
	ok(!yoke_dataset_new(&none) && yoke_error_code() == YOKE_EINVAL, "%s", yoke_error());
	yoke_error_clear();
	ok(!yoke_dataset_new(&empty) && yoke_error_code() == YOKE_EINVAL, "%s", yoke_error());
	yoke_error_clear();
	g.rank = 3;
	g.dims[0] = g.dims[1] = g.dims[2] = INT64_MAX / 2;
	large.field = &g;
	ok(!yoke_dataset_new(&large) && yoke_error_code() == YOKE_ERANGE, "%s", yoke_error());
	yoke_error_clear();
	g.rank = YOKE_MAX_RANK;
	axes.field = &g;
	ok(!yoke_dataset_new(&axes) && yoke_error_code() == YOKE_EINVAL, "%s", yoke_error());
	yoke_error_clear();
	yoke_dataset *e = yoke_dataset_new(&o), *const two[] = { d, e };
	ok(e && !yoke_dataset_concat(2, two) && strstr(yoke_error(), "has 2 fields"), "%s",
	   yoke_error());
	yoke_error_clear();
	ok(!yoke_dataset_subset(d, 5, 6, NULL) && yoke_error_code() == YOKE_ERANGE, "%s",
	   yoke_error());
	yoke_error_clear();
	ok(!yoke_dataset_mix(1, two, (double[]){ -1 }, 5, 0) && yoke_error_code() == YOKE_EINVAL,
	   "%s", yoke_error());
	yoke_error_clear();
	yoke_dataset_free(d);
	yoke_dataset_free(e);
}

int main(void)
{
	tap_seed();
	setenv("YOKE_BACKEND", "cpu", 0);
	setenv("YOKE_LOG", "error", 1);
	test_failures();
	test_open_close();
	test_stuck();
	test_seek_waiting();
	test_refused();
	return done();
}
