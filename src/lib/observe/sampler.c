// SPDX-License-Identifier: Apache-2.0
// A thread that samples the host and the devices periodically and appends each sample to a file as
// a line of JSON.
//
// Keys: time (s since 1970), run, rank, step, rss, cpu (0..1), process_cpu (processors), throttled
// (s), data_wait_s, devices [{id, ..}], host {..}, collective {seq, op, since}.  null: not
// available; for op: no collective in progress.
#include "config.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/param.h"
#include "base/shared.h"
#include "base/sized.h"
#include "graph/context.h"
#include "observe/machine.h"
#include "observe/telemetry.h"

// Keeps a long run's file small: lines come every `seconds` at first, then as often as the budget
// allows.
YK_PARAM(day_setting, "telemetry.day", YK_BYTES, "5000000",
	 "maximum bytes of telemetry.jsonl per day, a fifth of them at the beginning; 0: no limit");

enum { DAY_S = 86400 };

struct yoke_recorder {
	struct yoke_recorder_options options;
	char *path, *run;
	struct yk_device *device;
	int fd;
	pthread_t thread;
	pthread_mutex_t lock; // protects the members below
	pthread_cond_t wake;
	bool ends, failed;
	int64_t step;
	double data_wait;
	struct yk_host_state host; // this and the following members belong to the thread
	double day, written;       // bytes: daily budget, total written
};

static json_t *collective_json(const yoke_group *g)
{
	struct yoke_group_state now = { .size = sizeof now };
	if (!g || yoke_group_state(g, &now) < 0)
		return json_null();
	return json_pack("{s:I, s:s?, s:f, s:I}", "seq", (json_int_t)now.seq, "op",
			 now.open ? now.op : NULL, "since", now.since, "sent",
			 (json_int_t)now.sent);
}

static json_t *line_json(yoke_recorder *s)
{
	struct yoke_host_sample h;
	struct yoke_sample d;
	json_t *devices = json_array(), *device;
	yk_host_sample(&s->host, &h);
	device = yk_telemetry_sample(s->device, &d) ? yk_telemetry_json(&d) : json_object();
	json_object_set_new(device, "id", json_string(s->device->id));
	json_array_append_new(devices, device);
	// read before the time, so that it never appears newer than the sample
	json_t *collective = collective_json(s->options.group);
	const double now = yk_unix_seconds();
	pthread_mutex_lock(&s->lock);
	const int64_t step = s->step;
	const double waited = s->data_wait;
	pthread_mutex_unlock(&s->lock);
	return json_pack("{s:f, s:s?, s:i, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "time",
			 now, "run", s->run, "rank", s->options.rank, "step", (json_int_t)step,
			 "rss", yk_json_of_int(h.rss), "cpu", yk_json_of_real(h.cpu), "process_cpu",
			 yk_json_of_real(h.process_cpu), "throttled",
			 yk_json_of_real(h.throttled_s), "data_wait_s", yk_json_of_real(waited),
			 "devices", devices, "host", yk_host_json(&h), "collective", collective);
}

double yk_recorder_wait(double day, double elapsed, double written, double line, double seconds)
{
	const double burst = day / 5, rate = (day - burst) / DAY_S;

	return day > 0 ? fmax(seconds, (written + line - burst) / rate - elapsed) : seconds;
}

// Writes one line; returns its length in bytes.
static size_t sample(yoke_recorder *s)
{
	json_t *o = line_json(s);
	char *text = o ? yk_json_text(o, JSON_COMPACT) : NULL, *line = NULL;
	json_decref(o);
	if (text && (line = malloc(strlen(text) + 2))) {
		strcpy(line, text);
		strcat(line, "\n");
	}
	struct yk_error_aside *was = yk_error_aside();
	if (line && yk_file_append(s->fd, s->path, NULL, line) < 0 && !s->failed) {
		s->failed = true;
		yk_warn("telemetry", "%s; the run continues", yoke_error());
	}
	yk_error_restore(was);
	const size_t n = line ? strlen(line) : 0;
	free(line);
	free(text);
	return n;
}

static void *run(void *arg)
{
	yoke_recorder *s = arg;
	struct timespec next;
	const double began = yk_seconds();
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (bool ends = false; !ends;) {
		const double line = (double)sample(s);
		s->written += line;
		const double seconds = yk_recorder_wait(s->day, yk_seconds() - began, s->written,
							line, s->options.seconds);
		next.tv_sec += (time_t)seconds;
		next.tv_nsec += (long)(1e9 * fmod(seconds, 1));
		next.tv_sec += next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		pthread_mutex_lock(&s->lock);
		while (!s->ends && pthread_cond_timedwait(&s->wake, &s->lock, &next) != ETIMEDOUT)
			;
		ends = s->ends;
		pthread_mutex_unlock(&s->lock);
	}
	sample(s); // final sample
	return NULL;
}

static void fini(yoke_recorder *s)
{
	if (s->fd >= 0)
		close(s->fd);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s->path);
	free(s->run);
	free(s);
}

yoke_recorder *yoke_recorder_new(const struct yoke_recorder_options *from)
{
	struct yoke_recorder_options o = { 0 };
	struct yoke_context *ctx = yk_current();
	if (!ctx || yk_sized_read(&o, sizeof o, from, "sampler_new", "yoke_recorder_options") < 0)
		return NULL;
	o.seconds = o.seconds == 0 ? 1 : o.seconds;
	if (!o.path || !(o.seconds >= 0.001 && o.seconds <= 1e6)) {
		yk_fail(YOKE_EINVAL,
			"sampler_new: it has a path, and samples every 0.001 to 1e6 seconds");
		return NULL;
	}
	yoke_recorder *s = calloc(1, sizeof *s);
	if (!s) {
		yk_fail(YOKE_ENOMEM, "sampler: no memory");
		return NULL;
	}
	pthread_mutex_init(&s->lock, NULL);
	yk_cond_init(&s->wake);
	s->options = o;
	s->day = (double)yk_param_int(&day_setting);
	s->device = ctx->device;
	yk_host_begin(&s->host);
	s->path = strdup(o.path);
	s->run = o.run ? strdup(o.run) : NULL;
	s->fd = s->path && (s->run || !o.run) ? yk_file_append_open(o.path) : -1;
	if (s->fd < 0 || pthread_create(&s->thread, NULL, run, s)) {
		if (s->fd >= 0 || !s->path)
			yk_fail(YOKE_ENOMEM, "sampler: no memory");
		fini(s);
		return NULL;
	}
	return s;
}

void yoke_recorder_progress(yoke_recorder *s, int64_t step, double data_wait)
{
	if (yk_require(s, "recorder"))
		return;
	pthread_mutex_lock(&s->lock);
	s->step = step;
	s->data_wait = data_wait;
	pthread_mutex_unlock(&s->lock);
}

void yoke_recorder_free(yoke_recorder *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->ends = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	fini(s);
}

// ---- of the process ----

int yoke_host_telemetry(struct yoke_host_sample *to)
{
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER; // protects the previous sample
	static struct yk_host_state state;
	static bool began;
	struct yoke_host_sample h;
	pthread_mutex_lock(&one);
	if (!began)
		yk_host_begin(&state);
	began = true;
	yk_host_sample(&state, &h);
	pthread_mutex_unlock(&one);
	return yk_sized_write(to, sizeof h, &h, "host_telemetry", "yoke_host_sample");
}
