// SPDX-License-Identifier: Apache-2.0
// Tests the pool's history: random calls, replayed from the first state, give the current blocks,
// also when the ring buffer overflows; snapshots in memory and in files agree; leaks are found,
// without false positives; a failed allocation leaves a snapshot.
#include "config.h"

#include <jansson.h>

#include "base/log.h"
#include "device/pool_priv.h"
#include "graph/context.h"
#include "tap.h"
#include "yoke-observe.h"

static int warnings;
static char said[8][300];

static void keep_warning(int level, const char *topic, const char *line, void *arg)
{
	(void)arg;
	if (level <= YOKE_LOG_WARN)
		snprintf(said[warnings++ % 8], sizeof *said, "%s: %s", topic, line);
}

static bool same_tables(const struct yk_held_table *a, const struct yk_held_table *b)
{
	bool same = a->n == b->n && a->segments == b->segments;
	for (size_t i = 0; i < a->size && same; i++) {
		const struct yk_held *x = &a->at[i],
				     *y = x->used ? yk_held_find(b, x->segment, x->offset) : NULL;
		same = !x->used || (y && y->bytes == x->bytes && y->who == x->who);
	}
	return same;
}

// Does it equal the pool's own state?
static bool is_truth(struct yk_pool *p, const struct yk_held_table *t)
{
	size_t n = 0, segments = 0;
	bool good = true;
	for (const struct yk_pool_segment *s = p->segments; s; s = s->next, segments++)
		for (const struct yk_chunk *c = s->first; c; c = c->next) {
			const struct yk_held *h = yk_held_find(t, s->serial, c->block.offset);
			good &= c->free ? !h : h && h->bytes == c->block.bytes;
			n += !c->free;
		}
	return good && n == t->n && segments == t->segments;
}

// Replays the ring's events by hand.
static bool replays(struct yk_pool *p)
{
	const struct yk_history *h = p->history;
	struct yk_held_table t;
	bool good = yk_held_copy(&t, &h->first);
	for (size_t i = 0; i < h->n && good; i++)
		good = yk_held_apply(&t, &h->ring[(h->next + h->cap - h->n + i) % h->cap]);
	good = good && same_tables(&t, &h->now) && is_truth(p, &t);
	yk_held_fini(&t);
	return good;
}

// A snapshot file: its events, replayed on JSON lists, lead to the live blocks.
static bool file_replays(const char *path)
{
	json_t *f = json_load_file(path, 0, NULL), *b, *e, *key = json_object();
	json_t *live = json_object_get(json_object_get(f, "live"), "blocks");
	size_t i;
	char at[64], to[64];
	bool good = f && json_is_array(live);
	json_array_foreach (json_object_get(json_object_get(f, "first"), "blocks"), i, b) {
		snprintf(at, sizeof at, "%lld/%lld",
			 (long long)json_integer_value(json_array_get(b, 0)),
			 (long long)json_integer_value(json_array_get(b, 1)));
		json_object_set(key, at, json_array_get(b, 2));
	}
	json_array_foreach (json_object_get(f, "events"), i, e) {
		const char *kind = json_string_value(json_array_get(e, 1));
		snprintf(at, sizeof at, "%lld/%lld",
			 (long long)json_integer_value(json_array_get(e, 2)),
			 (long long)json_integer_value(json_array_get(e, 3)));
		if (!strcmp(kind, "alloc"))
			json_object_set(key, at, json_array_get(e, 4));
		if (!strcmp(kind, "free"))
			good &= json_object_del(key, at) == 0;
		if (!strcmp(kind, "move")) {
			snprintf(to, sizeof to, "%lld/%lld",
				 (long long)json_integer_value(json_array_get(e, 6)),
				 (long long)json_integer_value(json_array_get(e, 7)));
			json_object_set(key, to, json_object_get(key, at));
			good &= json_object_del(key, at) == 0;
		}
	}
	good &= json_object_size(key) == json_array_size(live);
	json_array_foreach (live, i, b) {
		snprintf(at, sizeof at, "%lld/%lld",
			 (long long)json_integer_value(json_array_get(b, 0)),
			 (long long)json_integer_value(json_array_get(b, 1)));
		good &= json_integer_value(json_object_get(key, at)) ==
			json_integer_value(json_array_get(b, 2));
	}
	json_decref(key);
	json_decref(f);
	return good;
}

static void test_random(int calls)
{
	enum { HELD = 200 };
	static const struct yk_who who[] = { { "matmul", "train/forward", "" },
					     { "add", "", "a.c:1" },
					     { "put", "", "" } };
	struct yoke_context *ctx = yoke_context_new("cpu"), *former = yoke_use(ctx);
	struct yk_pool *p = ctx->device->pool;
	struct yk_block *held[HELD] = { NULL };
	yoke_setting_set("memory.events", "5000");
	int bad = 0, checks = 0;
	// some before it begins
	for (int i = 0; i < 20; i++)
		yk_pool_alloc(p, (uint64_t)rnd_int(1, 1 << 20), ctx->queues.steps, &held[i]);
	ok(yk_pool_record(p, true) == 0 && yk_pool_is_recorded(p), "recorded from now on");
	for (int i = 0; i < calls; i++) {
		const int k = (int)rnd_int(0, HELD - 1);
		struct yk_movable m = { .who = &who[rnd_int(0, 2)] };
		const uint64_t bytes = rnd_int(0, 99) ? (uint64_t)rnd_int(1, 60000) :
							(uint64_t)rnd_int(1, 40 << 20);
		if (held[k]) {
			yk_pool_free(held[k], ctx->queues.steps, NULL);
			held[k] = NULL;
		} else if (yk_pool_alloc_among(p, bytes, ctx->queues.steps, m, &held[k]) < 0) {
			bad++;
		}
		if (rnd_int(0, 999) == 0)
			yk_pool_trim(p);
		if (i % (calls / 8 + 1) == 0) {
			checks++;
			bad += !replays(p);
		}
	}
	bad += !replays(p);
	ok(!bad && p->history->overflowed > 0,
	   "%d random calls, replayed %d times; %llu events were dropped", calls, checks,
	   (unsigned long long)p->history->overflowed);
	ok(yk_pool_snapshot(p, "random.json", "request") == 0 && file_replays("random.json"),
	   "and from a file %s", yoke_error());
	for (int i = 0; i < HELD; i++)
		yk_pool_free(held[i], ctx->queues.steps, NULL);
	ok(replays(p), "all freed: %zu blocks are left", p->history->now.n);
	yk_pool_record(p, false);
	ok(yoke_memory_snapshot("none.json") == YOKE_EINVAL &&
		   strstr(yoke_error(), "memory_record"),
	   "%s", yoke_error());
	yoke_error_clear();
	yoke_setting_set("memory.events", "65536");
	yoke_use(former);
	yoke_context_free(ctx);
}

static yoke_tensor *variable(const char *name, int64_t bytes)
{
	return yoke_variable(name, yoke_u8, 1, &bytes);
}

// A leak of 101 MB warns, one of 99 does not; leaks of more than 1 MB are listed, the largest
// first.
static void test_leaks(void)
{
	struct yoke_context *ctx = yoke_context_new("cpu"), *former = yoke_use(ctx);
	struct yoke_leak at = { .size = sizeof at };
	yoke_tensor *before = variable("before", 7000000);
	yoke_leaks *l = yoke_leaks_begin();
	yoke_range_push("hoard");
	yoke_tensor *x[] = { variable("a", 60 << 20), variable("b", 34 << 20),
			     variable("c", 2000) };
	yoke_range_pop();
	warnings = 0;
	int e = yoke_leaks_check(l, "small", &at);
	ok(e == 0 && !at.warned && !warnings && at.diff >= 94 << 20 && at.diff < 100000000,
	   "a leak of %lld bytes is not reported", (long long)at.diff);
	yoke_tensor *more = variable("d", 4 << 20);
	e = yoke_leaks_check(l, "step 7", &at);
	ok(e == 0 && at.warned && at.diff > 100000000, "a leak of %lld bytes is reported",
	   (long long)at.diff);
	ok(warnings == 4 && strstr(said[0], "step 7") && strstr(said[1], "60.0 MiB") &&
		   strstr(said[1], "hoard") && strstr(said[2], "34.0 MiB") &&
		   strstr(said[3], "4.0 MiB") && !strstr(said[3], "hoard"),
	   "three blocks, the largest first: %s;%s;%s", said[1], said[2], said[3]);
	for (int i = 0; i < 3; i++)
		yoke_free(x[i]);
	yoke_free(more);
	yoke_sync();
	e = yoke_leaks_check(l, "after", &at);
	ok(e == 0 && !at.warned && at.diff <= 0 && at.peak >= at.begin,
	   "freed blocks are not listed: %lld bytes", (long long)at.diff);
	yoke_leaks_end(l);
	ok(!yk_pool_is_recorded(ctx->device->pool), "a context's history ends with it");
	yoke_leaks_end(NULL);
	yoke_free(before);
	yoke_use(former);
	yoke_context_free(ctx);
}

// Attribution of blocks: op, range and site of a root.
static void test_who(void)
{
	struct yoke_context *ctx = yoke_context_new("cpu"), *former = yoke_use(ctx);
	struct yk_pool *p = ctx->device->pool;
	bool found = false;
	ok(yoke_memory_record(1) == 0, "recorded");
	yoke_range_push("train");
	yoke_range_push("forward");
	yoke_tensor *x = yoke_keep(yoke_tanh(yoke_uniform(yoke_f32, 1, (int64_t[]){ 1000 })));
	yoke_range_pop();
	yoke_range_pop();
	yoke_eval(1, &x);
	for (size_t i = 0; i < p->history->whos; i++)
		found |= !strcmp(p->history->who[i].op, "tanh") &&
			 !strcmp(p->history->who[i].range, "train/forward");
	ok(found, "a kept value is attributed to its op and its range");
	yoke_free(x);
	yoke_memory_record(0);
	yoke_use(former);
	yoke_context_free(ctx);
}

static void test_failure(void)
{
	struct yoke_context *ctx = yoke_context_new("cpu"), *former = yoke_use(ctx);
	yoke_setting_set("memory.snapshot", "oom.json");
	yoke_memory_record(1);
	yoke_tensor *x = variable("kept", 5 << 20);
	uint64_t was = yk_pool_limit(ctx->device->pool, 64 << 20);
	yoke_tensor *y = variable("more", 100 << 20);
	json_t *f = json_load_file("oom.json", 0, NULL), *events = json_object_get(f, "events"), *e;
	size_t i, ooms = 0;
	json_array_foreach (events, i, e)
		ooms += !strcmp(json_string_value(json_array_get(e, 1)), "oom") &&
			json_integer_value(json_array_get(e, 4)) == 100 << 20;
	ok(!y && yoke_error_code() == YOKE_ENOMEM && ooms == 1 &&
		   !strcmp(json_string_value(json_object_get(f, "why")), "oom"),
	   "a failed allocation leaves oom.json: %.60s", yoke_error());
	yoke_error_clear();
	json_decref(f);
	yk_pool_limit(ctx->device->pool, was);
	yoke_setting_set("memory.snapshot", "");
	yoke_memory_record(0);
	yoke_free(x);
	yoke_use(former);
	yoke_context_free(ctx);
}

int main(void)
{
	if (getenv("YOKE_POOL"))
		return skip_all("each block is a segment");
	tap_seed();
	tap_folder();
	yk_log_to(keep_warning, NULL);
	yoke_setting_set("backend", "cpu");
	test_random(tap_cases(100000, 1000000));
	test_leaks();
	test_who();
	test_failure();
	return done();
}
