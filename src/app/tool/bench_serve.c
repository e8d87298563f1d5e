// SPDX-License-Identifier: Apache-2.0
// yoke bench serve: requests per second, tokens per second and latencies of a server with OpenAI's
// API: one that runs already, or `yoke serve` of a model, which is started as a child process on a
// free port of loopback.
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system.h"
#include "http/guard.h"
#include "live/process.h"
#include "tool/bench.h"
#include "tool/bench_load.h"
#include "tool/tool.h"

enum { REQUESTS = 1000000, TOKENS = 1 << 20, ARGUMENTS = 64, URL = 256 };

struct bench {
	struct yk_load load;
	bool json;
	const char *what; // URL or model
	const char *key_file;
	char key[YK_TOKEN_BYTES], url[URL];
	char *serve[ARGUMENTS]; // command of the child
	int words;
	pid_t child;      // 0: the server ran already
	double memory[2]; // resident bytes of the child when it is ready, and after the load
};

struct quantiles {
	double p50, p99, max;
};

// ---- arguments ----

// Parses "128" or "16-256".
static int parse_range(const char *text, struct yk_load_range *to)
{
	char first[24];
	const size_t n = strcspn(text, "-");
	uint64_t min, max;
	if (n >= sizeof first)
		return -1;
	memcpy(first, text, n);
	first[n] = '\0';
	if (yk_option_number(first, &min) < 0 ||
	    (text[n] && yk_option_number(text + n + 1, &max) < 0))
		return -1;
	max = text[n] ? max : min;
	if (min < 1 || max < min || max > TOKENS)
		return -1;
	*to = (struct yk_load_range){ (int64_t)min, (int64_t)max };
	return 0;
}

// Takes a key of this command; 0: it is none of them; negative: its value is wrong.
static int take_key(struct bench *b, const char *argument, const char *value)
{
	struct yk_load *l = &b->load;
	uint64_t clients = (uint64_t)l->clients, stream = l->stream, timeout = (uint64_t)l->timeout;
	uint64_t warm = (uint64_t)l->warm;
	const struct {
		const char *name;
		uint64_t min, max, *to;
	} numbers[] = {
		{ "clients", 1, YK_LOAD_CLIENTS, &clients },
		{ "requests", 1, REQUESTS, (uint64_t *)&l->requests },
		{ "warm", 0, REQUESTS, &warm },
		{ "shared", 0, TOKENS, (uint64_t *)&l->shared },
		{ "inputs", 1, 2048, (uint64_t *)&l->inputs },
		{ "stream", 0, 1, &stream },
		{ "seed", 0, UINT64_MAX, &l->seed },
		{ "timeout", 1, 86400, &timeout },
	};
	const size_t n = (size_t)(value - argument) - 1;
	int taken = 0;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers && !taken; i++)
		if (strlen(numbers[i].name) == n && !strncmp(argument, numbers[i].name, n))
			taken = yk_option_number(value, numbers[i].to) == 0 &&
						*numbers[i].to >= numbers[i].min &&
						*numbers[i].to <= numbers[i].max ?
					1 :
					-1;
	if (!strncmp(argument, "prompt=", 7) || !strncmp(argument, "tokens=", 7))
		taken = parse_range(value, *argument == 'p' ? &l->prompt : &l->tokens) == 0 ? 1 :
											      -1;
	for (int i = 0; i < YK_LOAD_ENDPOINTS && !strncmp(argument, "endpoint=", 9) && taken <= 0;
	     i++) {
		taken = strcmp(value, yk_load_endpoints[i]) == 0 ? 1 : -1;
		l->endpoint = (enum yk_load_endpoint)i;
	}
	if (!strncmp(argument, "model=", 6)) {
		l->model = value;
		taken = *value ? 1 : -1;
	}
	l->clients = (int)clients;
	l->stream = stream;
	l->timeout = (double)timeout;
	l->warm = (int64_t)warm;
	return taken;
}

static int parse(struct bench *b, int argc, char **argv)
{
	static const char command[] = "serve", port[] = "port=0", host[] = "host=127.0.0.1";
	const char *const own[] = { yk_program(), command, NULL, port, host };
	if (argc < 2 || argv[1][0] == '-' || strchr(argv[1], '='))
		return yk_usage("bench serve",
				"no server given; put its URL, or a model to serve, first");
	b->what = argv[1];
	const bool is_url = !strncmp(b->what, "http://", 7) || !strncmp(b->what, "https://", 8);
	for (b->words = 0; b->words < 5; b->words++)
		b->serve[b->words] = (char *)(uintptr_t)(own[b->words] ? own[b->words] : b->what);
	b->load.warm = -1;
	for (int i = 2; i < argc; i++) {
		const char *value = strchr(argv[i], '='), *twice = yk_option_twice(argv, i);
		const int taken = value ? take_key(b, argv[i], value + 1) : 0;
		if (!strcmp(argv[i], "--json"))
			b->json = true;
		else if (twice && strncmp(argv[i], "adapter=", 8))
			return yk_usage("bench serve", "argument '%s' repeats '%s'; give it once",
					argv[i], twice);
		else if (taken < 0)
			return yk_usage("bench serve", "'%s': the value is out of range", argv[i]);
		else if (taken)
			continue;
		else if (!strncmp(argv[i], "key_file=", 9))
			b->key_file = value + 1;
		else if (!value || is_url || !strncmp(argv[i], "port=", 5) ||
			 !strncmp(argv[i], "host=", 5))
			return yk_usage("bench serve", "unknown argument '%s'", argv[i]);
		if (value && !taken && !is_url && b->words < ARGUMENTS - 1)
			b->serve[b->words++] = argv[i];
	}
	if (b->load.warm < 0)
		b->load.warm = b->load.clients;
	if (is_url)
		b->words = 0;
	return YK_DONE;
}

// ---- the server ----

// Reads the address that `yoke serve` prints when it is ready.
static int read_address(struct bench *b, FILE *from)
{
	static const char before[] = "yoke serve: ";
	char line[URL];
	while (fgets(line, sizeof line, from))
		if (!strncmp(line, before, sizeof before - 1)) {
			snprintf(b->url, sizeof b->url, "%.*s",
				 (int)strcspn(line + sizeof before - 1, "\n"),
				 line + sizeof before - 1);
			return 0;
		}
	return yk_fail(YOKE_EFAILED, "yoke serve %s has ended; its message is above", b->what);
}

static int start_server(struct bench *b)
{
	int ends[2];
	const pid_t self = getpid();
	if (yk_pipe(ends) < 0)
		return yk_fail(YOKE_EIO, "no pipe for the server: %s", strerror(errno));
	b->child = fork();
	if (b->child == 0) { // only async-signal-safe calls before exec
		yk_end_with_parent(SIGKILL);
		if (getppid() != self || dup2(ends[1], STDOUT_FILENO) < 0)
			_exit(126);
		execv(b->serve[0], b->serve);
		_exit(127);
	}
	close(ends[1]);
	FILE *from = b->child > 0 ? fdopen(ends[0], "r") : NULL;
	const int e =
		from ? read_address(b, from) :
		       yk_fail(YOKE_ENOMEM, "the server cannot be started: %s", strerror(errno));
	if (from)
		fclose(from);
	else
		close(ends[0]);
	b->child = b->child > 0 ? b->child : 0;
	return e;
}

static void stop_server(const struct bench *b)
{
	if (!b->child)
		return;
	kill(b->child, SIGTERM);
	while (waitpid(b->child, NULL, 0) < 0 && errno == EINTR)
		;
}

static double memory_of(const struct bench *b)
{
	char name[32];
	double cpu, rss = NAN;
	if (b->child && !yk_process_read(b->child, name, &cpu, &rss))
		rss = NAN;
	return rss;
}

// ---- results ----

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

// By nearest rank; sorts x.
static struct quantiles quantiles_of(double *x, int64_t n)
{
	if (!n)
		return (struct quantiles){ 0 };
	qsort(x, (size_t)n, sizeof *x, by_value);
	return (struct quantiles){ x[(n + 1) / 2 - 1], x[(99 * n + 99) / 100 - 1], x[n - 1] };
}

static void print_quantiles(const char *name, const struct quantiles *q)
{
	printf("%-14s %12.2f ms %12.2f ms %12.2f ms\n", name, 1e3 * q->p50, 1e3 * q->p99,
	       1e3 * q->max);
}

static json_t *quantiles_json(const struct quantiles *q)
{
	return json_pack("{s:f, s:f, s:f}", "p50", q->p50, "p99", q->p99, "max", q->max);
}

struct sums {
	int64_t done, prompt, cached, generated;
	struct quantiles first, gap, all;
	json_t *errors; // message: count
};

static int add_up(const struct bench *b, struct yk_load_result *r, struct sums *s)
{
	const int64_t n = b->load.requests;
	double *first = malloc((size_t)n * sizeof *first), *all = malloc((size_t)n * sizeof *all);
	int64_t firsts = 0;
	*s = (struct sums){ .errors = json_object() };
	for (int64_t i = 0; first && all && i < n; i++) {
		const struct yk_load_sample *x = &r->sample[i];
		if (*x->error) {
			const json_int_t count =
				json_integer_value(json_object_get(s->errors, x->error));
			json_object_set_new(s->errors, x->error, json_integer(count + 1));
			continue;
		}
		all[s->done++] = x->all;
		if (x->first > 0)
			first[firsts++] = x->first;
		s->prompt += x->prompt;
		s->cached += x->cached;
		s->generated += x->generated;
	}
	const bool good = first && all && s->errors;
	if (good) {
		s->first = quantiles_of(first, firsts);
		s->all = quantiles_of(all, s->done);
		s->gap = quantiles_of(r->gap, r->gaps);
	}
	free(first);
	free(all);
	return good ? 0 : yk_fail(YOKE_ENOMEM, "no memory for the results");
}

static bool streams(const struct bench *b)
{
	return b->load.stream && b->load.endpoint != YK_LOAD_EMBEDDINGS;
}

static void print(const struct bench *b, const struct yk_load_result *r, const struct sums *s)
{
	const struct yk_load *l = &b->load;
	printf("%s of %s at %s%s, %d client%s, seed %" PRIu64 "\n", yk_load_endpoints[l->endpoint],
	       r->model, b->url, streams(b) ? ", streamed" : "", l->clients,
	       l->clients > 1 ? "s" : "", l->seed);
	printf("%-14s %12" PRId64 " done, %" PRId64 " failed, in %.2f s\n", "requests", s->done,
	       l->requests - s->done, r->seconds);
	printf("%-14s %12" PRId64 " of prompts%s, of these %" PRId64 " cached, %" PRId64
	       " generated\n",
	       "tokens", s->prompt, r->exact ? "" : " (made of words)", s->cached, s->generated);
	printf("%-14s %12.2f requests/s %12.1f tokens/s %12.1f generated tokens/s\n", "rate",
	       (double)s->done / r->seconds, (double)(s->prompt + s->generated) / r->seconds,
	       (double)s->generated / r->seconds);
	printf("%-14s %15s %15s %15s\n", "time", "p50", "p99", "max");
	if (streams(b)) {
		print_quantiles("first token", &s->first);
		print_quantiles("between tokens", &s->gap);
	}
	print_quantiles("request", &s->all);
	if (b->child)
		printf("%-14s %12.1f MB before, %.1f MB after the load\n", "server's memory",
		       1e-6 * b->memory[0], 1e-6 * b->memory[1]);
	const char *message;
	json_t *count;
	json_object_foreach (s->errors, message, count)
		printf("%-14s %12" PRId64 " x %s\n", "error", (int64_t)json_integer_value(count),
		       message);
}

static json_t *results_json(const struct bench *b, const struct yk_load_result *r,
			    const struct sums *s)
{
	const struct yk_load *l = &b->load;
	json_t *o =
		json_pack("{s:s, s:s, s:s, s:s, s:i, s:I, s:I, s:f, s:f, s:f, s:f, s:I, s:I, s:I, "
			  "s:b, s:o, s:O}",
			  "version", yoke_version(), "url", b->url, "model", r->model, "endpoint",
			  yk_load_endpoints[l->endpoint], "clients", l->clients, "requests",
			  (json_int_t)l->requests, "failed", (json_int_t)(l->requests - s->done),
			  "seconds", r->seconds, "requests_per_s", (double)s->done / r->seconds,
			  "tokens_per_s", (double)(s->prompt + s->generated) / r->seconds,
			  "generated_per_s", (double)s->generated / r->seconds, "prompt_tokens",
			  (json_int_t)s->prompt, "cached_tokens", (json_int_t)s->cached,
			  "generated_tokens", (json_int_t)s->generated, "exact", r->exact,
			  "request_s", quantiles_json(&s->all), "errors", s->errors);
	if (o && streams(b)) {
		json_object_set_new(o, "first_token_s", quantiles_json(&s->first));
		json_object_set_new(o, "between_tokens_s", quantiles_json(&s->gap));
	}
	if (o && b->child)
		json_object_set_new(
			o, "server_bytes",
			json_pack("{s:f, s:f}", "before", b->memory[0], "after", b->memory[1]));
	return o;
}

static int report(const struct bench *b, struct yk_load_result *r)
{
	struct sums s;
	FILE *json = b->json ? yk_json_only() : NULL;
	int e = b->json && !json ? YOKE_EIO : add_up(b, r, &s);
	if (b->json && !json)
		return e;
	if (e == 0)
		print(b, r, &s);
	if (json) {
		const int ended = yk_json_end(json, e == 0 ? results_json(b, r, &s) : NULL);
		e = e < 0 ? e : ended;
	}
	const int64_t failed = b->load.requests - s.done;
	if (e == 0 && failed)
		e = yk_fail(YOKE_EFAILED,
			    "%" PRId64 " of %" PRId64 " requests failed, the first with: %s",
			    failed, b->load.requests,
			    json_object_iter_key(json_object_iter(s.errors)));
	json_decref(s.errors);
	return e;
}

static int measure(struct bench *b)
{
	struct yk_load_result r = { 0 };
	int e = yk_api_key_read(b->key_file, !b->words, b->key);
	b->load.key = *b->key ? b->key : NULL;
	if (e == 0 && b->words)
		e = start_server(b);
	else
		snprintf(b->url, sizeof b->url, "%s", b->what);
	size_t n = strlen(b->url);
	n -= n && b->url[n - 1] == '/';
	if (n > 3 &&
	    !strncmp(b->url + n - 3, "/v1", 3)) // a base URL as clients of the API are given
		b->url[n - 3] = '\0';
	b->load.url = b->url;
	b->memory[0] = memory_of(b);
	if (e == 0)
		e = yk_load_run(&b->load, &r);
	b->memory[1] = memory_of(b);
	if (e == 0)
		e = report(b, &r);
	free(r.sample);
	free(r.gap);
	return e;
}

int yk_bench_serve(int argc, char **argv)
{
	struct bench b = { .load = { .clients = 8,
				     .requests = 64,
				     .prompt = { 128, 128 },
				     .tokens = { 128, 128 },
				     .inputs = 1,
				     .stream = true,
				     .seed = 1,
				     .timeout = 600 } };
	int status = parse(&b, argc, argv);
	if (status != YK_DONE)
		return status;
	if (measure(&b) < 0)
		status = yk_failed("bench serve");
	stop_server(&b);
	return status;
}
