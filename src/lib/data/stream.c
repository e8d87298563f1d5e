// SPDX-License-Identifier: Apache-2.0
// Pipes as datasets: a ring keeps the last samples.  Sample n of epoch e is sample e * count + n of
// the stream.  A request for a later sample reads the stream up to it; a request for a sample that
// has left the ring is an error.
//
// One thread at a time reads the pipe, without the lock: a sample in the ring is delivered at once
// even while another thread waits for the writer.
#include "config.h"

#include "data/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "data/set.h"
#include "data/walk.h"

enum { SKIP = 4096, KEPT_BYTES = 64 << 20 };

struct stream {
	char *name;
	int fd;
	struct yk_field_file part;  // how elements are converted to a sample
	size_t bytes, overlap; // of a sample in the stream; bytes that it shares with the end of
			       // the previous one
	int64_t count, keep, have;
	uint64_t skip;        // bytes before the first sample that were not read yet
	unsigned char *ring;  // [keep][bytes]
	unsigned char *next;  // [bytes], the sample that is being read
	uint64_t at;          // stream offset
	bool ended;
	int error;            // errno of a failed read, which ends the stream; 0: none
	pthread_mutex_t lock; // guards ring, have and reading; only the reader uses the rest
	pthread_cond_t read;  // a sample was read, or reading failed
	bool reading;         // a thread reads the pipe
};

bool yk_is_stream(const char *path)
{
	struct stat st;
	return !strcmp(path, YK_STDIN) || (stat(path, &st) == 0 && S_ISFIFO(st.st_mode));
}

static void stream_free(void *arg)
{
	struct stream *s = arg;
	if (s->fd > STDIN_FILENO)
		close(s->fd);
	free(s->name);
	free(s->ring);
	free(s->next);
	pthread_cond_destroy(&s->read);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static int take_bytes(struct stream *s, void *to, size_t n)
{
	char *p = to;
	while (n && !s->ended && !s->error) {
		const ssize_t got = read(s->fd, p, n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			s->error = errno;
			break;
		}
		s->ended = got == 0;
		p += got;
		n -= (size_t)got;
		s->at += (uint64_t)got;
	}
	if (s->error)
		return yk_fail(YOKE_EIO, "%s: cannot be read at byte %llu: %s", s->name,
			       (unsigned long long)s->at, strerror(s->error));
	if (n)
		return yk_fail(YOKE_EIO, "%s: the stream ended at byte %llu, after %lld samples",
			       s->name, (unsigned long long)s->at, (long long)s->have);
	return 0;
}

static unsigned char *ring_entry(const struct stream *s, int64_t n)
{
	return s->ring + (size_t)(n % s->keep) * s->bytes;
}

static int skip_bytes(struct stream *s)
{
	char some[SKIP];
	int e = 0;
	for (uint64_t n; s->skip && e == 0; s->skip -= e == 0 ? n : 0) {
		n = s->skip < SKIP ? s->skip : SKIP;
		e = take_bytes(s, some, n);
	}
	return e;
}

// Reads the sample after the last one into s->next. Called by the reading thread, without the lock.
static int read_next(struct stream *s)
{
	const size_t known = s->have ? s->overlap : 0;
	const int e = skip_bytes(s);
	if (known)
		memcpy(s->next, ring_entry(s, s->have - 1) + s->bytes - known, known);
	return e == 0 ? take_bytes(s, s->next + known, s->bytes - known) : e;
}

// Reads the pipe until it has delivered sample n, or waits until another thread has.  Called under
// the lock.
static int read_up_to(struct stream *s, int64_t n)
{
	int e = 0;
	while (n >= s->have && e == 0) {
		if (s->reading) {
			pthread_cond_wait(&s->read, &s->lock);
			continue;
		}
		s->reading = true;
		pthread_mutex_unlock(&s->lock);
		e = read_next(s);
		pthread_mutex_lock(&s->lock);
		s->reading = false;
		if (e == 0)
			memcpy(ring_entry(s, s->have++), s->next, s->bytes);
		pthread_cond_broadcast(&s->read);
	}
	return e;
}

static int read_one(struct stream *s, struct yoke_item *x)
{
	int64_t n;
	if (__builtin_mul_overflow(x->epoch, s->count, &n) ||
	    __builtin_add_overflow(n, x->number, &n))
		return yk_fail(YOKE_ERANGE, "%s: a stream has fewer than 2^63 samples", s->name);
	pthread_mutex_lock(&s->lock);
	int e = read_up_to(s, n);
	if (e == 0) {
		if (n < s->have - s->keep)
			e = yk_fail(
				YOKE_EINVAL,
				"%s: sample %lld of the stream is no longer kept: only the last %lld are; raise "
				"keep=, or shuffle in blocks, as with shuffle=%lld",
				s->name, (long long)n, (long long)s->keep,
				(long long)(s->keep / 2));
		else
			memcpy(yk_field_buffer(&s->part, x->to[0]), ring_entry(s, n), s->bytes);
	}
	pthread_mutex_unlock(&s->lock);
	return e == 0 ? yk_field_convert(&s->part, n, x->to[0]) : e;
}

static int read_samples(void *arg, int64_t n, struct yoke_item *const *x)
{
	for (int64_t i = 0; i < n; i++) {
		const int e = read_one(arg, x[i]);
		if (e < 0)
			yk_sample_failed(x[i], e);
	}
	return 0;
}

static int set_up(struct stream *s, const char *path, const struct yk_field_file *p, int64_t keep)
{
	s->name = strdup(strcmp(path, YK_STDIN) ? path : "standard input");
	s->bytes = (size_t)p->elements * (size_t)p->element->width;
	s->overlap = s->bytes - (size_t)p->stride;
	s->keep = keep ? keep : (int64_t)(KEPT_BYTES / s->bytes);
	s->keep = s->keep < 2 ? 2 : s->keep > s->count && !keep ? s->count + 1 : s->keep;
	size_t bytes;
	if (__builtin_mul_overflow((size_t)s->keep, s->bytes, &bytes) || !s->name ||
	    !(s->ring = malloc(bytes)) || !(s->next = malloc(s->bytes)))
		return yk_fail(YOKE_ENOMEM,
			       "%s: no memory to keep %lld samples; give a smaller keep=", path,
			       (long long)s->keep);
	s->part = *p;
	s->part.path = s->name;
	s->fd = strcmp(path, YK_STDIN) ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	if (s->fd < 0)
		return yk_fail(YOKE_EIO, "cannot read '%s': %s", path, strerror(errno));
	if (isatty(s->fd))
		return yk_fail(YOKE_EINVAL, "%s: is a terminal; pipe the data in, or name files",
			       s->name);
	s->skip = p->offset;
	return 0;
}

yoke_dataset *yk_stream_open(const char *path, const struct yk_field_file *p,
			     const struct yk_field_shape *shape, int64_t count, int64_t keep)
{
	struct stream *s = calloc(1, sizeof *s);
	struct yoke_field f = {
		.size = sizeof f, .name = p->name, .dtype = p->element->dtype, .rank = shape->rank
	};
	yoke_dataset *d = NULL;
	if (!s) {
		yk_fail(YOKE_ENOMEM, "%s: no memory", path);
		return NULL;
	}
	memcpy(f.dims, shape->dims, sizeof f.dims);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->read, NULL);
	s->fd = -1;
	s->count = count;
	if (set_up(s, path, p, keep) == 0)
		d = yoke_dataset_new(
			&(struct yoke_dataset_options){ .size = sizeof(struct yoke_dataset_options),
							.name = s->name,
							.count = count,
							.fields = 1,
							.field = &f,
							.read = read_samples,
							.chunk = 8,
							.arg = s,
							.free_fn = stream_free });
	if (d)
		d->stream = true;
	else
		stream_free(s);
	return d;
}
