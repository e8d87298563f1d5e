// SPDX-License-Identifier: Apache-2.0
// Writes TensorBoard event files.
#include "config.h"

#include "runs/tfevents.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

#define FLUSH_EVERY 2. // seconds

struct yk_tfevents {
	FILE *file;
	char *path;
	double flushed;
	unsigned char *data; // the record being written
	size_t n, cap;
};

// ---- CRC-32C ----

static uint32_t crc_row(uint32_t x)
{
	for (int k = 0; k < 8; k++)
		x = x >> 1 ^ (x & 1 ? 0x82f63b78u : 0); // the polynomial 0x1edc6f41, bit-reversed
	return x;
}

static uint32_t table[256];

static void make_table(void)
{
	for (uint32_t i = 0; i < 256; i++)
		table[i] = crc_row(i);
}

uint32_t yk_crc32c(const void *data, size_t bytes)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const unsigned char *at = data;
	uint32_t crc = ~0u;
	pthread_once(&once, make_table);
	while (bytes--)
		crc = table[(crc ^ *at++) & 255] ^ crc >> 8;
	return ~crc;
}

static uint32_t masked(const void *data, size_t bytes)
{
	uint32_t c = yk_crc32c(data, bytes);
	return (c >> 15 | c << 17) + 0xa282ead8u;
}

// ---- protocol buffers ----

enum wire { VARINT, FIXED64, BYTES, FIXED32 = 5 };

static bool add(struct yk_tfevents *t, const void *data, size_t bytes)
{
	if (t->cap - t->n < bytes) {
		size_t cap = 2 * (t->n + bytes) + 256;
		unsigned char *more = realloc(t->data, cap);
		if (!more)
			return false;
		t->data = more;
		t->cap = cap;
	}
	memcpy(t->data + t->n, data, bytes);
	t->n += bytes;
	return true;
}

static bool add_varint(struct yk_tfevents *t, uint64_t x)
{
	unsigned char b[10];
	size_t n = 0;
	for (; x > 127; x >>= 7)
		b[n++] = (unsigned char)(x | 128);
	b[n++] = (unsigned char)x;
	return add(t, b, n);
}

static size_t varint_bytes(uint64_t x)
{
	size_t n = 1;
	for (; x > 127; x >>= 7)
		n++;
	return n;
}

// Stores n bytes in little-endian order.
static void put(unsigned char *to, uint64_t x, int n)
{
	for (int i = 0; i < n; i++)
		to[i] = (unsigned char)(x >> 8 * i);
}

static bool add_key(struct yk_tfevents *t, unsigned field, enum wire wire)
{
	return add_varint(t, field << 3 | wire);
}

static bool add_double(struct yk_tfevents *t, unsigned field, double x)
{
	uint64_t bits;
	unsigned char b[8];
	memcpy(&bits, &x, 8);
	put(b, bits, 8);
	return add_key(t, field, FIXED64) && add(t, b, 8);
}

static bool add_float(struct yk_tfevents *t, unsigned field, float x)
{
	uint32_t bits;
	unsigned char b[4];
	memcpy(&bits, &x, 4);
	put(b, bits, 4);
	return add_key(t, field, FIXED32) && add(t, b, 4);
}

static bool add_bytes(struct yk_tfevents *t, unsigned field, const void *data, size_t bytes)
{
	return add_key(t, field, BYTES) && add_varint(t, bytes) && add(t, data, bytes);
}

// Event { 1 wall_time, 2 step, 3 file_version, 5 summary, 7 session_log }
static bool begin(struct yk_tfevents *t, double time, int64_t step)
{
	t->n = 0;
	return add_double(t, 1, time) && add_key(t, 2, VARINT) && add_varint(t, (uint64_t)step);
}

static int fail(const struct yk_tfevents *t)
{
	return yk_fail(YOKE_EIO, "cannot write '%s': %s", t->path, strerror(errno));
}

static int write_record(struct yk_tfevents *t, bool good)
{
	unsigned char head[12], tail[4];
	if (!good)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for a record", t->path);
	put(head, t->n, 8);
	put(head + 8, masked(head, 8), 4);
	put(tail, masked(t->data, t->n), 4);
	if (fwrite(head, sizeof head, 1, t->file) != 1 || fwrite(t->data, t->n, 1, t->file) != 1 ||
	    fwrite(tail, sizeof tail, 1, t->file) != 1)
		return fail(t);
	double now = yk_seconds();
	if (now - t->flushed < FLUSH_EVERY)
		return 0;
	t->flushed = now;
	return fflush(t->file) < 0 ? fail(t) : 0;
}

// Value { 1 tag, 2 simple_value }, in Summary { 1 value, .. }
int yk_tfevents_scalars(struct yk_tfevents *t, double time, int64_t step, int n,
			const struct yk_scalar *s)
{
	size_t all = 0;
	if (!n)
		return 0;
	for (int i = 0; i < n; i++) {
		size_t tag = strlen(s[i].tag), value = 1 + varint_bytes(tag) + tag + 5;
		all += 1 + varint_bytes(value) + value;
	}
	bool good = begin(t, time, step) && add_key(t, 5, BYTES) && add_varint(t, all);
	for (int i = 0; i < n && good; i++) {
		size_t tag = strlen(s[i].tag);
		good = add_key(t, 1, BYTES) && add_varint(t, 1 + varint_bytes(tag) + tag + 5) &&
		       add_bytes(t, 1, s[i].tag, tag) && add_float(t, 2, s[i].value);
	}
	return write_record(t, good);
}

struct yk_tfevents *yk_tfevents_open(const char *folder, bool resumed, int64_t step)
{
	static const char version[] = "brain.Event:2";
	// SessionLog { 1 status: START }
	static const unsigned char start[] = { 1 << 3 | VARINT, 1 };
	struct yk_tfevents *t = calloc(1, sizeof *t);
	char host[65] = "localhost";
	double now = yk_unix_seconds();
	gethostname(host, sizeof host - 1);
	host[strcspn(host, "/")] = '\0';
	if (!t || asprintf(&t->path, "%s/events.out.tfevents.%010lld.%s.%ld", folder,
			   (long long)now, host, (long)getpid()) < 0) {
		free(t);
		yk_fail(YOKE_ENOMEM, "%s: no memory for events", folder);
		return NULL;
	}
	t->file = fopen(t->path, "ae");
	t->flushed = yk_seconds();
	int e = t->file ? 0 : fail(t);
	if (e == 0)
		e = write_record(t,
				 begin(t, now, 0) && add_bytes(t, 3, version, sizeof version - 1));
	if (e == 0 && resumed)
		e = write_record(t, begin(t, now, step) && add_bytes(t, 7, start, sizeof start));
	if (e == 0 && fflush(t->file) < 0)
		e = fail(t);
	if (e == 0)
		return t;
	if (t->file)
		fclose(t->file);
	free(t->data);
	free(t->path);
	free(t);
	return NULL;
}

int yk_tfevents_close(struct yk_tfevents *t)
{
	if (!t)
		return 0;
	int e = fclose(t->file) < 0 ? fail(t) : 0;
	free(t->data);
	free(t->path);
	free(t);
	return e;
}
