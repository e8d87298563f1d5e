// SPDX-License-Identifier: Apache-2.0
// Tests src/core/base: errors, settings, log, arena, hash.
#include "config.h"

#include <pthread.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/number.h"
#include "base/param.h"
#include "tap.h"

YK_PARAM(an_int, "base.int", YK_INT, "42", "for this test");
YK_PARAM(a_bool, "base.bool", YK_BOOL, "1", "for this test");
YK_PARAM(bytes_setting, "base.bytes", YK_BYTES, "2M", "for this test");
YK_PARAM(a_string, "base.string", YK_STRING, "left", "for this test");
YK_PARAM(bad_int, "base.bad-int", YK_INT, "7", "for this test");
YK_PARAM(bad_bool, "base.bad-bool", YK_BOOL, "0", "for this test");
YK_PARAM(ranged, "base.ranged", YK_INT, "3", "for this test", .min = 1, .max = 9);
YK_PARAM(bad_range, "base.bad-range", YK_INT, "3", "for this test", .max = INT64_MAX);
YK_PARAM(raced, "base.raced", YK_INT, "5", "for this test");

static bool is(const char *got, const char *want, const char *what)
{
	bool good = got && want ? !strcmp(got, want) : got == want;
	if (!good)
		diag("%s: got '%s' want '%s'", what, got ? got : "NULL",
		     want ? want : "NULL");
	return ok(good, "%s", what);
}

static bool is_int(int64_t got, int64_t want, const char *what)
{
	if (got != want)
		diag("%s: got %lld want %lld", what, (long long)got, (long long)want);
	return ok(got == want, "%s", what);
}

// Does the thread's error have this code and contain this text? Clears it.
static void is_error(int code, const char *part, const char *what)
{
	bool good = yoke_error_code() == code && strstr(yoke_error(), part);
	if (!good)
		diag("%s: got %d '%s' want %d '..%s..'", what, yoke_error_code(),
		     yoke_error(), code, part);
	ok(good, "%s", what);
	yoke_error_clear();
}

// ---- errors ----

static void *other_thread(void *arg)
{
	*(bool *)arg = yoke_error_code() == 0 && !*yoke_error();
	yk_fail(YOKE_EIO, "in the other thread");
	return NULL;
}

static void errors(void)
{
	char longest[3000];
	bool clean = false;
	pthread_t t;

	is(yoke_error(), "", "no error at first");
	is_int(yk_fail(YOKE_ESHAPE, "shapes %d and %d", 3, 4), YOKE_ESHAPE,
	       "yk_fail returns its code");
	is_int(yk_fail(YOKE_EIO, "later"), YOKE_EIO,
	       "a later failure returns its own code");
	is(yoke_error(), "shapes 3 and 4", "the first line stays");
	is_int(yoke_error_code(), YOKE_ESHAPE, "the first code stays");
	pthread_create(&t, NULL, other_thread, &clean);
	pthread_join(t, NULL);
	ok(clean, "an error is per thread: another thread has none");
	is_error(YOKE_ESHAPE, "shapes 3 and 4", "and leaves none here");
	is(yoke_error(), "", "nothing left after clear");

	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = 0;
	yk_fail(YOKE_EINVAL, "%s", longest);
	ok(strlen(yoke_error()) < 2048 && strstr(yoke_error(), "x ..."),
	   "a long error line is truncated");
	yoke_error_clear();

	is(yk_error_text(YOKE_ENOMEM), "out of memory", "text of an error");
	is(yk_error_text(12345), "unknown error", "text of an unknown error");
	is(yoke_error_name(YOKE_ESHAPE), "YOKE_ESHAPE", "name of an error");
	is(yoke_error_name(0), "YOKE_OK", "name of success");
	is(yoke_error_name(1), "?", "name of an unknown error");
	is(yoke_dtype_name(yoke_bool), "bool", "name of a dtype");
	is(yoke_dtype_name(99), "?", "name of an unknown dtype");
	is_int((int64_t)yoke_dtype_size(yoke_bf16), 2, "bytes of a dtype");
	is_int((int64_t)yoke_dtype_size(0), 0, "bytes of an unknown dtype");
	is(yoke_version(), PACKAGE_VERSION, "version");
}

// ---- settings ----

static char logged[4096]; // lines of the log, each followed by a newline
static int lines;

static void collect(int level, const char *topic, const char *line, void *arg)
{
	size_t n = strlen(logged);
	snprintf(logged + n, sizeof logged - n, "%d %s %s\n", level, topic, line);
	lines++;
	(void)arg;
}

static void forget(void)
{
	logged[0] = 0;
	lines = 0;
}

static void *race(void *arg)
{
	*(int64_t *)arg = yk_param_int(&raced);
	return NULL;
}

struct listed {
	int n;
	bool sorted, found;
	const char *last;
};

static void list(struct yk_param *p, void *arg)
{
	struct listed *l = arg;
	l->sorted &= !l->last || strcmp(l->last, p->name) < 0;
	l->found |= p == &an_int && p->text && !strcmp(p->text, "43");
	l->last = p->name;
	l->n++;
}

static void settings(void)
{
	pthread_t t[4];
	int64_t seen[4];
	char name[64];

	yk_param_env("plan.max", name, sizeof name);
	is(name, "YOKE_PLAN_MAX", "name in the environment");
	yk_param_env("plan.max", name, 8);
	is(name, "YOKE_PL", "which is cut, not overrun");

	setenv("YOKE_BASE_STRING", "right", 1);
	setenv("YOKE_BASE_BYTES", "", 1);
	setenv("YOKE_BASE_BAD_INT", "7x", 1);
	setenv("YOKE_BASE_BAD_BOOL", "yes", 1);
	setenv("YOKE_BASE_RACED", "6", 1);
	is_int(yk_param_int(&an_int), 42, "default of an integer");
	is_int(an_int.origin, YK_DEFAULT, "origin: default");
	ok(yk_param_bool(&a_bool), "default of a boolean");
	is_int(yk_param_int(&bytes_setting), 2 << 20,
	       "an empty variable counts as not set");
	is(yk_param_str(&a_string), "right", "environment before default");
	is_int(a_string.origin, YK_ENVIRONMENT, "origin: environment");
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, race, &seen[i]);
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], NULL);
		is_int(seen[i], 6, "first use by several threads at once");
	}

	forget();
	is_int(yk_param_int(&bad_int), 7, "bad integer: the default");
	is_int(yk_param_int(&bad_int), 7, "and again");
	is_int(lines, 1, "bad integer: one warning");
	ok(strstr(logged, "YOKE_BASE_BAD_INT=7x") && strstr(logged, "integer"),
	   "the error names variable, value and form");
	is_int(yk_param_bool(&bad_bool), 0, "bad boolean: the default");
	is_int(lines, 2, "bad boolean: a warning");

	is_int(yk_param_set("base.int", "43", YK_CONFIG), 0, "set from a config file");
	is_int(yk_param_int(&an_int), 43, "config before default");
	is_int(yk_param_set("base.string", "config", YK_CONFIG), 0, "set a string");
	const char *before = yk_param_str(&a_string);
	is(before, "config", "config before environment");
	is_int(yoke_setting_set("base.string", "argument"), 0, "set by argument");
	is(yk_param_str(&a_string), "argument", "argument before config");
	is(before, "config", "a value once returned stays readable");
	is_int(yk_param_set("base.string", "config2", YK_CONFIG), 0,
	       "config after argument");
	is(yk_param_str(&a_string), "argument", "changes nothing");
	is_int(a_string.origin, YK_ARGUMENT, "origin: argument");

	char **all = yk_param_environment();
	int as_set = 0, strings = 0, others = 0, here = 0;
	for (int i = 0; all && all[i]; i++) {
		as_set += !strcmp(all[i], "YOKE_BASE_STRING=argument") ||
			  !strcmp(all[i], "YOKE_BASE_INT=43");
		strings += !strncmp(all[i], "YOKE_BASE_STRING=", 17);
		others++;
	}
	for (char **e = environ; *e; e++)
		here++;
	is_int(as_set, 2, "a child's environment has what was set");
	is_int(strings, 1, "in place of what was there");
	is_int(others, here + 1, "and the rest");
	free(all);

	is_int(yk_param_set("base.int", "4.5", YK_ARGUMENT), YOKE_EINVAL, "bad value");
	is_error(YOKE_EINVAL, "base.int=4.5", "bad value: message");
	is_int(yk_param_set("base.int", "9223372036854775808", YK_ARGUMENT), YOKE_EINVAL,
	       "too large");
	yoke_error_clear();
	is_int(yk_param_set("base.int", "", YK_ARGUMENT), YOKE_EINVAL, "empty integer");
	yoke_error_clear();
	is_int(yk_param_int(&an_int), 43, "a bad value changes nothing");
	is_int(yk_param_set("base.ranged", "9", YK_ARGUMENT), 0, "the most");
	is_int(yk_param_set("base.ranged", "10", YK_ARGUMENT), YOKE_EINVAL, "more than the most");
	is_error(YOKE_EINVAL, "base.ranged=10: must be an integer from 1 to 9", "more: message");
	is_int(yk_param_set("base.ranged", "0", YK_ARGUMENT), YOKE_EINVAL, "less than the least");
	yoke_error_clear();
	is_int(yk_param_int(&ranged), 9, "changes nothing");
	setenv("YOKE_BASE_BAD_RANGE", "-5", 1);
	forget();
	is_int(yk_param_int(&bad_range), 3, "out of range in the environment: the default");
	is(logged,
	   "1 param YOKE_BASE_BAD_RANGE=-5 is not an integer from 0; the default 3 is used\n",
	   "and a line");

	// before any context
	is_int(yoke_setting_set("threads", "2"), 0, "a setting of the CPU backend");
	is_int(yoke_setting_set("cpu.isa", "base"), 0, "another");
	is_int(yoke_setting_set("threads", "-5"), YOKE_EINVAL, "threads=-5");
	is_error(YOKE_EINVAL, "threads=-5: must be an integer from 0 to 65536",
		 "threads=-5: message");
	is_int(yoke_setting_set("base.nit", "1"), YOKE_ENOENT, "unknown setting");
	is_error(YOKE_ENOENT, "'base.int'", "unknown setting: the nearest");
	is_int(yoke_setting_set("zzzzzzzzzzzz", "1"), YOKE_ENOENT, "nothing near");
	is_error(YOKE_ENOENT, "yoke info --env", "nothing near: where to look");
	is_int(yoke_setting_set(NULL, "1"), YOKE_EINVAL, "NULL for a name");
	yoke_error_clear();

	struct listed l = { .sorted = true };
	yk_param_each(list, &l);
	ok(l.sorted && l.found && l.n >= 8, "all %d listed, sorted, resolved", l.n);
	ok(yk_param_find("log") && !yk_param_find("lo"), "a setting is found by name");
}

static void counts(void)
{
	static const struct { long long n; const char *noun, *want;
	} cases[] = {
		{ 0, "file", "0 files" },  { 1, "file", "1 file" },     { 2, "file", "2 files" },
		{ 1, "class", "1 class" }, { 3, "class", "3 classes" }, { 2, "batch", "2 batches" },
		{ 2, "copy", "2 copies" }, { 1, "copy", "1 copy" },     { 2, "key", "2 keys" },
		{ 2, "path", "2 paths" },  { -1, "step", "-1 steps" },
	};
	char text[64];
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		ok(!strcmp(yk_counted(text, cases[i].n, cases[i].noun), cases[i].want), "%s", text);
}

static void bytes(void)
{
	static const struct {
		const char *text;
		int64_t want; // -1: EINVAL
	} row[] = {
		{ "0", 0 },
		{ "1000", 1000 },
		{ "1K", 1024 },
		{ "512M", 512ll << 20 },
		{ "2GiB", 2ll << 30 },
		{ "3g", 3ll << 30 },
		{ "1T", 1ll << 40 },
		{ "9223372036854775807", INT64_MAX },
		{ "8388607T", 8388607ll << 40 },
		{ "8388608T", -1 },
		{ "9223372036854775808", -1 },
		{ "99999999999999999999G", -1 },
		{ "", -1 },
		{ "-1", -1 },
		{ "+1", -1 },
		{ " 1", -1 },
		{ "1 M", -1 },
		{ "M", -1 },
		{ "1.5G", -1 },
		{ "1MB", -1 },
		{ "1iB", -1 },
		{ "1Mi", -1 },
		{ "0x10", -1 },
		{ "1GiBx", -1 },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		int64_t got = -7;
		int e = yk_parse_bytes(row[i].text, &got);
		bool good = row[i].want < 0 ? e == YOKE_EINVAL && got == -7 :
					      !e && got == row[i].want;
		if (!good)
			diag("got %d, %lld", e, (long long)got);
		ok(good, "bytes '%s'", row[i].text);
	}
}

static void nearest(void)
{
	static const char *const names[] = {
		"layers", "heads", "embed", "context", "batch", "lr", "save_every", "eval_every",
		"log",
	};
	static const struct {
		const char *word, *want;
	} row[] = {
		{ "layer", "layers" },
		{ "hed", "heads" },
		{ "batc", "batch" },
		{ "abtch", "batch" },
		{ "rl", "lr" },
		{ "foo", NULL }, // two edits from "log"
		{ "save-every", "save_every" },
		{ "eval_evry", "eval_every" },
		{ "x", NULL },
		{ "", NULL },
		{ "momentum", NULL },
		{ "a_word_that_is_longer_than_any_name_of_a_setting_can_be_and_then_more",
		  NULL },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		is(yk_nearest(row[i].word, names, 9), row[i].want, row[i].word);
	is(yk_nearest("heads", names, 0), NULL, "of no names none is near");
}

// ---- log ----

static void logging(void)
{
	forget();
	ok(yk_log_on(YOKE_LOG_WARN, "plan") && !yk_log_on(YOKE_LOG_INFO, "plan"),
	   "warn by default");
	yk_info("plan", "hidden");
	yk_warn("plan", "shown %d", 1);
	is(logged, "1 plan shown 1\n", "a line has level, topic, text");

	is_int(yoke_setting_set("log", "error,pool"), 0, "level and topic");
	ok(!yk_log_on(YOKE_LOG_WARN, "plan"), "level error hides warnings");
	ok(yk_log_on(YOKE_LOG_DEBUG, "pool"), "a topic enables all of its lines");
	ok(!yk_log_on(YOKE_LOG_WARN, "poo") && !yk_log_on(YOKE_LOG_WARN, "pools"),
	   "topic names match completely");
	yoke_setting_set("log", " debug ");
	ok(yk_log_on(YOKE_LOG_DEBUG, "anything") && yk_log_on(YOKE_LOG_DEBUG, NULL),
	   "debug shows all lines");

	forget();
	yk_log(YOKE_LOG_ERROR, "device", "two\nlines");
	is(logged, "0 device two lines\n", "a line is one line");
	yoke_setting_set("log", "warn");
}

// ---- arena ----

static void arenas(void)
{
	struct yk_arena a = { 0 };
	size_t used = 0;
	bool zero = true, aligned = true, kept = true;
	unsigned char *piece[500];
	size_t size[500];

	for (int i = 0; i < 500; i++) {
		size[i] = (size_t)rnd_int(0, i % 50 ? 300 : 50000);
		piece[i] = yk_arena_alloc(&a, size[i]);
		for (size_t k = 0; k < size[i]; k++)
			zero &= !piece[i][k];
		aligned &= (uintptr_t)piece[i] % 16 == 0;
		memset(piece[i], i % 251 + 1, size[i]);
		used += size[i];
	}
	for (int i = 0; i < 500; i++)
		for (size_t k = 0; k < size[i]; k++)
			kept &= piece[i][k] == i % 251 + 1;
	ok(zero && aligned, "an arena's %zu bytes in 500 blocks are zero and aligned to 16", used);
	ok(kept, "blocks of an arena do not overlap");
	ok(yk_arena_alloc(&a, 0) != yk_arena_alloc(&a, 0),
	   "blocks of 0 bytes are distinct");
	is(yk_arena_strdup(&a, "text"), "text", "a copy of a text");
	ok(!yk_arena_alloc(&a, SIZE_MAX) && !yk_arena_alloc(&a, SIZE_MAX - 16),
	   "an arena without memory returns NULL");
	is_error(YOKE_ENOMEM, "no memory", "and an error");
	yk_arena_reset(&a);
	unsigned char *again = yk_arena_alloc(&a, 1000);
	zero = true;
	for (int k = 0; k < 1000; k++)
		zero &= !again[k];
	ok(zero, "memory is zero again after a reset");
	yk_arena_fini(&a);
	ok(!a.chunk && !a.used, "an arena is empty after fini");
	yk_arena_reset(&a);
	yk_arena_fini(&a);
	ok(yk_arena_alloc(&a, 1) != NULL, "and usable again");
	yk_arena_fini(&a);
}

static void growing(void)
{
	int64_t *n = NULL;
	size_t cap = 0;
	int e = 0, changes = 0;
	bool same = true;

	for (size_t i = 0; i < 10000; i++) {
		size_t old = cap;
		e |= yk_grow(&n, &cap, i + 1, sizeof *n);
		changes += cap != old;
		n[i] = (int64_t)i;
	}
	for (size_t i = 0; i < 10000; i++)
		same &= n[i] == (int64_t)i;
	ok(!e && same && cap >= 10000 && changes < 20,
	   "an array grew to %zu elements in %d allocations", cap, changes);
	int64_t *old = n;
	size_t old_cap = cap;
	is_int(yk_grow(&n, &cap, SIZE_MAX / 4, sizeof *n), YOKE_ENOMEM,
	       "a size that overflows");
	ok(n == old && cap == old_cap, "a failed growth leaves the array unchanged");
	yoke_error_clear();
	free(n);
}

// ---- hash ----

static void hashes(void)
{
	unsigned char data[1000];

	// xxHash's specification gives this value for no input
	ok(yk_hash("", 0, 0) == 0xef46db3751d8e999u, "XXH64 of empty input");
	ok(yk_hash("a", 1, 0) == 0xd24ec4f1a98c6e5bu, "XXH64 of 'a'");
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (unsigned char)rnd();
	ok(yk_hash(data, sizeof data, 1) != yk_hash(data, sizeof data, 2),
	   "the seed changes the hash");
	struct yk_hash_state *s = yk_hash_new(0);
	for (size_t at = 0, n; at < sizeof data; at += n) {
		n = (size_t)rnd_int(0, 97);
		if (n > sizeof data - at)
			n = sizeof data - at;
		yk_hash_add(s, data + at, n);
	}
	ok(yk_hash_end(s) == yk_hash(data, sizeof data, 0), "hashing in chunks gives the same");
	ok(yk_hash_end(yk_hash_new(0)) == yk_hash("", 0, 0), "an empty chunk changes nothing");
}

int main(void)
{
	tap_seed();
	yk_log_to(collect, NULL);
	errors();
	settings();
	bytes();
	counts();
	nearest();
	logging();
	arenas();
	growing();
	hashes();
	return done();
}
