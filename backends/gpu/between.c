// SPDX-License-Identifier: Apache-2.0
// Copies between two devices. Some drivers claim that two devices can reach each other but transfer
// wrong data or none (for example where the bus isolates boards). So the first copy of each
// direction transfers a test pattern, which is verified.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "gpu.h"

enum { UNKNOWN, GOOD, BAD };
enum { WORDS = 1 << 16 }; // of the pattern: more than a page, and more than one packet

// Indexed by the source device.
struct yk_gpu_between {
	uint32_t n;
	unsigned char state[];
};

// Neighbouring words differ, and none is 0.
static void write_pattern(uint32_t *to)
{
	for (uint32_t i = 0; i < WORDS; i++)
		to[i] = (i + 1) * 2654435761u | 1;
}

struct end {
	struct yk_gpu_device *device;
	void *buffer;
};

// Copies the pattern from one device to the other and back to the host.
static int copy_pattern(struct yk_gpu_queue *q, const struct end *to, const struct end *from,
			uint32_t *got)
{
	const size_t bytes = WORDS * sizeof *got;
	const uint32_t none = 0;
	int err = yk_gpu_driver.fill(q, to->buffer, 0, bytes, &none, sizeof none);

	if (!err)
		err = yk_gpu_driver.copy_between(q, to->device, to->buffer, 0, from->device,
						 from->buffer, 0, bytes);
	if (!err)
		err = yk_gpu_driver.get(q, to->buffer, 0, got, bytes);
	const int over = yk_gpu_driver.finish(q);
	return err ? err : over;
}

static int try_copy(struct yk_gpu_device *to, struct yk_gpu_device *from, uint32_t *pattern,
		    uint32_t *got)
{
	struct yk_gpu_queue q = { .device = to };
	struct end t = { to, NULL }, f = { from, NULL };
	const size_t bytes = WORDS * sizeof *got;
	void *host = NULL;
	int err = yk_gpu_driver.buffer_new(from, YOKE_SEGMENT_DEVICE, bytes, pattern, &f.buffer,
					   &host);

	if (err)
		return err;
	if (!(err = yk_gpu_driver.buffer_new(to, YOKE_SEGMENT_DEVICE, bytes, NULL, &t.buffer,
					     &host))) {
		if (!(err = yk_gpu_driver.queue_new(to, false, &q.queue))) {
			err = copy_pattern(&q, &t, &f, got);
			yk_gpu_driver.queue_free(q.queue);
		}
		yk_gpu_buffer_free(to, t.buffer, NULL);
	}
	yk_gpu_buffer_free(from, f.buffer, NULL);
	return err;
}

static int test(struct yk_gpu_device *to, struct yk_gpu_device *from)
{
	uint32_t *pattern = malloc(WORDS * sizeof *pattern), *got = calloc(WORDS, sizeof *got);
	int state = BAD;

	if (pattern && got) {
		write_pattern(pattern);
		const int err = try_copy(to, from, pattern, got);
		state = !err && !memcmp(pattern, got, WORDS * sizeof *got) ? GOOD : BAD;
		if (state == BAD && err != YOKE_EUNSUPPORTED)
			yk_gpu_log(YOKE_LOG_WARN,
				   "direct copies from %s:%u to %s:%u %s: copying through the host",
				   yk_gpu_driver.name, from->index, yk_gpu_driver.name, to->index,
				   err ? "failed" : "deliver wrong data");
	}
	free(pattern);
	free(got);
	return state;
}

// The caller holds no lock.
static bool test_copy(struct yk_gpu_device *to, struct yk_gpu_device *from)
{
	pthread_mutex_lock(&to->lock);
	if (!to->between || to->between->n <= from->index) {
		const uint32_t had = to->between ? to->between->n : 0, n = from->index + 1;
		struct yk_gpu_between *more = realloc(to->between, sizeof *more + n);
		if (!more) {
			pthread_mutex_unlock(&to->lock);
			return false;
		}
		memset(more->state + had, UNKNOWN, n - had);
		more->n = n;
		to->between = more;
	}
	if (to->between->state[from->index] == UNKNOWN)
		to->between->state[from->index] = (unsigned char)test(to, from);
	const bool good = to->between->state[from->index] == GOOD;
	pthread_mutex_unlock(&to->lock);
	return good;
}

int yk_gpu_copy_between(void *queue, uint32_t to_device, void *to, uint64_t to_offset,
			uint32_t from_device, void *from, uint64_t from_offset, uint64_t bytes)
{
	struct yk_gpu_queue *q = queue;
	struct yk_gpu_segment *t = to, *f = from;
	int err = yk_gpu_forked();

	(void)to_device, (void)from_device; // the segments know their devices
	if (err)
		return err;
	if (t->device == f->device)
		return yk_gpu_copy(q, t, to_offset, f, from_offset, bytes);
	if (t->host || f->host || (q->device != t->device && q->device != f->device))
		return YOKE_EUNSUPPORTED;
	if ((err = yk_gpu_check_range(q, t, to_offset, bytes)) ||
	    (err = yk_gpu_check_range(q, f, from_offset, bytes)))
		return err;
	if (!test_copy(t->device, f->device))
		return YOKE_EUNSUPPORTED;
	if (!bytes)
		return 0;
	return yk_gpu_driver.copy_between(q, t->device, t->buffer, to_offset, f->device, f->buffer,
					  from_offset, bytes);
}
