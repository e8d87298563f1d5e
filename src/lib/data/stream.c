// SPDX-License-Identifier: Apache-2.0
// Pipes as datasets: a ring keeps the last samples.  Sample n of epoch e is number e * count + n of
// the stream; a request for a later sample reads on, a request for one that has left the ring is an
// error.
#include "config.h"

#include "data/stream.h"

#include <errno.h>
#include <fcntl.h>
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
	struct yk_part part;  // how elements are converted to a sample
	size_t bytes, overlap; // of a sample in the stream; bytes that it shares with the end of
			       // the previous one
	int64_t count, keep, have;
	uint64_t skip;        // bytes before the first sample that were not read yet
	unsigned char *ring;  // [keep][bytes]
	uint64_t at;          // stream offset
	bool ended;
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
	free(s);
}

static int take_bytes(struct stream *s, void *to, size_t n)
{
	char *p = to;
	while (n && !s->ended) {
		const ssize_t got = read(s->fd, p, n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return yk_fail(YOKE_EIO, "%s: cannot be read at byte %llu: %s", s->name, (unsigned long long)s->at,
				       strerror(errno));
		s->ended = got == 0;
		p += got;
		n -= (size_t)got;
		s->at += (uint64_t)got;
	}
	if (n)
		return yk_fail(YOKE_EIO, "%s: the stream ended at byte %llu, behind %lld samples", s->name,
			       (unsigned long long)s->at, (long long)s->have);
	return 0;
}

static unsigned char *place(const struct stream *s, int64_t n)
{
	return s->ring + (size_t)(n % s->keep) * s->bytes;
}

static int pass_over(struct stream *s)
{
	char some[SKIP];
	int e = 0;
	for (uint64_t n; s->skip && e == 0; s->skip -= e == 0 ? n : 0) {
		n = s->skip < SKIP ? s->skip : SKIP;
		e = take_bytes(s, some, n);
	}
	return e;
}

static int read_on(struct stream *s)
{
	const size_t known = s->have ? s->overlap : 0;
	unsigned char *to = place(s, s->have);
	int e = pass_over(s);
	if (known)
		memmove(to, place(s, s->have - 1) + s->bytes - known, known);
	if (e == 0)
		e = take_bytes(s, to + known, s->bytes - known);
	s->have += e == 0;
	return e;
}

static int read_one(struct stream *s, struct yoke_item *x)
{
	int64_t n;
	int e = 0;
	if (__builtin_mul_overflow(x->epoch, s->count, &n) || __builtin_add_overflow(n, x->number, &n))
		return yk_fail(YOKE_ERANGE, "%s: a stream has less than 2^63 samples", s->name);
	while (n >= s->have && e == 0)
		e = read_on(s);
	if (e < 0)
		return e;
	if (n < s->have - s->keep)
		return yk_fail(YOKE_EINVAL, "%s: sample %lld of the stream has passed: the last %lld are kept; raise keep=, or "
			       "shuffle in blocks, as shuffle=%lld", s->name, (long long)n, (long long)s->keep,
			       (long long)(s->keep / 2));
	memcpy(yk_part_room(&s->part, x->to[0]), place(s, n), s->bytes);
	return yk_part_convert(&s->part, n, x->to[0]);
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

static int set_up(struct stream *s, const char *path, const struct yk_part *p, int64_t keep)
{
	s->name = strdup(strcmp(path, YK_STDIN) ? path : "standard input");
	s->bytes = (size_t)p->elements * (size_t)p->element->width;
	s->overlap = s->bytes - (size_t)p->stride;
	s->keep = keep ? keep : (int64_t)(KEPT_BYTES / s->bytes);
	s->keep = s->keep < 2 ? 2 : s->keep > s->count && !keep ? s->count + 1 : s->keep;
	size_t room;
	if (__builtin_mul_overflow((size_t)s->keep, s->bytes, &room) || !s->name || !(s->ring = malloc(room)))
		return yk_fail(YOKE_ENOMEM, "%s: no memory to keep %lld samples; give a smaller keep=", path, (long long)s->keep);
	s->part = *p;
	s->part.path = s->name;
	s->fd = strcmp(path, YK_STDIN) ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	if (s->fd < 0)
		return yk_fail(YOKE_EIO, "cannot read '%s': %s", path, strerror(errno));
	if (isatty(s->fd))
		return yk_fail(YOKE_EINVAL, "%s: is a terminal; give its bytes by a pipe, or name files", s->name);
	s->skip = p->offset;
	return 0;
}

yoke_dataset *yk_stream_open(const char *path, const struct yk_part *p, const struct yk_parts_shape *shape, int64_t count,
			     int64_t keep)
{
	struct stream *s = calloc(1, sizeof *s);
	struct yoke_field f = { .size = sizeof f, .name = p->name, .dtype = p->element->dtype, .rank = shape->rank };
	yoke_dataset *d = NULL;
	if (!s) {
		yk_fail(YOKE_ENOMEM, "%s: no memory", path);
		return NULL;
	}
	memcpy(f.dims, shape->dims, sizeof f.dims);
	s->fd = -1;
	s->count = count;
	if (set_up(s, path, p, keep) == 0)
		d = yoke_dataset_new(&(struct yoke_dataset_options){
			.size = sizeof(struct yoke_dataset_options), .name = s->name, .count = count, .fields = 1, .field = &f,
			.read = read_samples, .chunk = 8, .serial = 1, .arg = s, .free_fn = stream_free });
	if (d)
		d->stream = true;
	else
		stream_free(s);
	return d;
}
