// SPDX-License-Identifier: Apache-2.0
// Buffers are device addresses; host buffers are pinned and have an address on both sides. All
// operations are asynchronous, except setting a new buffer's initial content.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "native.h"

// Host memory of the caller registered with the driver, with the address that the device uses for
// it.
struct yk_native_wrap {
	struct yk_native_wrap *next;
	void *buffer, *memory;
};

// Sets a buffer's initial content and waits for it.
static int first_data(struct yk_native_device *d, v_address at, const void *data, uint64_t bytes)
{
	int err = yk_gpu_check(&d->gpu, V_PUT(at, data, bytes, d->helper));

	return err ? err : yk_gpu_check(&d->gpu, V_STREAM_WAIT(d->helper));
}

static int host_new(struct yk_gpu_device *d, uint64_t bytes, void **buffer, void **host)
{
	v_address at;
	void *memory;
	int err = yk_gpu_check(d, V_HOST_ALLOC(&memory, bytes));

	if (err)
		return err;
	if ((err = yk_gpu_check(d, V_HOST_ADDRESS(&at, memory)))) {
		yk_native_code(V_HOST_FREE(memory));
		return err;
	}
	*buffer = v_buffer_of(at);
	*host = memory;
	return 0;
}

int yk_native_buffer_new(struct yk_gpu_device *d, int kind, uint64_t bytes, const void *data,
			 void **buffer, void **host)
{
	v_address at;
	int err = yk_native_use(d);

	if (err || kind == YOKE_SEGMENT_HOST)
		return err ? err : host_new(d, bytes, buffer, host);
	if ((err = yk_gpu_check(d, V_ALLOC(&at, bytes))))
		return err;
	if (data && (err = first_data(yk_native_of(d), at, data, bytes))) {
		yk_native_code(V_FREE(at));
		return err;
	}
	*buffer = v_buffer_of(at);
	return 0;
}

int yk_native_buffer_wrap(struct yk_gpu_device *device, void *memory, uint64_t bytes, void **buffer)
{
	struct yk_native_device *d = yk_native_of(device);
	struct yk_native_wrap *w = malloc(sizeof *w);
	v_address at;
	int err = w ? yk_native_use(device) :
		      yk_gpu_error(YOKE_ENOMEM, "no memory for a segment's record");

	// memory that is read-only or already registered is copied by the core instead
	if (!err && yk_native_code(V_REGISTER(memory, bytes)))
		err = YOKE_EUNSUPPORTED;
	if (err) {
		free(w);
		return err;
	}
	if ((err = yk_gpu_check(device, V_HOST_ADDRESS(&at, memory)))) {
		yk_native_code(V_UNREGISTER(memory));
		free(w);
		return err;
	}
	pthread_mutex_lock(&d->wrap_lock);
	*w = (struct yk_native_wrap){ d->wraps, v_buffer_of(at), memory };
	d->wraps = w;
	pthread_mutex_unlock(&d->wrap_lock);
	*buffer = w->buffer;
	return 0;
}

// Removes the record of a wrapped buffer and returns the host memory; NULL: the driver allocated
// the buffer.
static void *unwrap(struct yk_native_device *d, const void *buffer)
{
	void *memory = NULL;

	pthread_mutex_lock(&d->wrap_lock);
	struct yk_native_wrap **at = &d->wraps, *w;
	while ((w = *at) && w->buffer != buffer)
		at = &w->next;
	if (w) {
		memory = w->memory;
		*at = w->next;
		free(w);
	}
	pthread_mutex_unlock(&d->wrap_lock);
	return memory;
}

// The drivers wait for enqueued work before they release memory.
void yk_native_buffer_free(struct yk_gpu_device *device, void *buffer, void *host)
{
	struct yk_native_device *d = yk_native_of(device);
	void *memory = host ? NULL : unwrap(d, buffer);

	if (yk_native_code(V_USE(d)))
		return; // the device is lost, and its memory with it
	if (host)
		yk_native_code(V_HOST_FREE(host));
	else if (memory)
		yk_native_code(V_UNREGISTER(memory));
	else
		yk_native_code(V_FREE(v_address_of(buffer, 0)));
}

int yk_native_put(struct yk_gpu_queue *q, void *buffer, uint64_t offset, const void *from,
		  uint64_t bytes)
{
	int err = yk_native_use(q->device);

	return err ? err :
		     yk_gpu_check(q->device, V_PUT(v_address_of(buffer, offset), from, bytes,
						   yk_native_stream(q)));
}

int yk_native_get(struct yk_gpu_queue *q, void *buffer, uint64_t offset, void *to, uint64_t bytes)
{
	int err = yk_native_use(q->device);

	return err ? err :
		     yk_gpu_check(q->device, V_GET(to, v_address_of(buffer, offset), bytes,
						   yk_native_stream(q)));
}

int yk_native_copy(struct yk_gpu_queue *q, void *to, uint64_t to_offset, void *from,
		   uint64_t from_offset, uint64_t bytes)
{
	int err = yk_native_use(q->device);

	return err ? err :
		     yk_gpu_check(q->device, V_COPY(v_address_of(to, to_offset),
						    v_address_of(from, from_offset), bytes,
						    yk_native_stream(q)));
}

// ---- fills ----

// There is no fill with 8-byte patterns: writes the first 8 bytes, then doubles the filled range by
// copying.
static int fill_pairs(struct yk_gpu_queue *q, v_address at, uint64_t bytes, const uint32_t half[2])
{
	int err = yk_gpu_check(q->device, V_SET32(at, half[0], 1, yk_native_stream(q)));

	err = err ? err :
		    yk_gpu_check(q->device, V_SET32(v_address_of(v_buffer_of(at), 4), half[1], 1,
						    yk_native_stream(q)));
	for (uint64_t done = 8; done < bytes && !err; done *= 2) {
		const uint64_t n = done < bytes - done ? done : bytes - done;
		err = yk_gpu_check(q->device, V_COPY(v_address_of(v_buffer_of(at), done), at, n,
						     yk_native_stream(q)));
	}
	return err;
}

int yk_native_fill(struct yk_gpu_queue *q, void *buffer, uint64_t offset, uint64_t bytes,
		   const void *pattern, uint32_t pattern_bytes)
{
	const v_address at = v_address_of(buffer, offset);
	uint32_t word[2] = { 0 };
	int err = yk_native_use(q->device);

	if (err)
		return err;
	memcpy(word, pattern, pattern_bytes); // host and devices are little-endian
	switch (pattern_bytes) {
	case 1:
		return yk_gpu_check(q->device,
				    V_SET8(at, (unsigned char)word[0], bytes, yk_native_stream(q)));
	case 2:
		return yk_gpu_check(q->device, V_SET16(at, (unsigned short)word[0], bytes / 2,
						       yk_native_stream(q)));
	case 8:
		if (word[0] != word[1])
			return fill_pairs(q, at, bytes, word);
	}
	return yk_gpu_check(q->device, V_SET32(at, word[0], bytes / 4, yk_native_stream(q)));
}

// ---- peer devices ----

// Enables access to another device's memory if possible, which makes copies direct. Otherwise the
// driver copies through the host.
static void enable_peer_access(struct yk_native_device *d, struct yk_native_device *peer)
{
	const uint64_t bit = (uint64_t)1 << peer->gpu.index;
	int can = 0;

	if (__atomic_fetch_or(&d->peers, bit, __ATOMIC_RELAXED) & bit)
		return;
	if (yk_native_code(V_CAN_PEER(&can, d, peer)) || !can)
		return;
	const int code = yk_native_code(V_ENABLE_PEER(peer));
	yk_gpu_log(YOKE_LOG_DEBUG, "device %u %s the memory of device %u", d->gpu.index,
		   !code || code == V_PEER_ALREADY ? "can access" : "cannot access",
		   peer->gpu.index);
}

int yk_native_copy_between(struct yk_gpu_queue *q, struct yk_gpu_device *to_device, void *to,
			   uint64_t to_offset, struct yk_gpu_device *from_device, void *from,
			   uint64_t from_offset, uint64_t bytes)
{
	struct yk_native_device *t = yk_native_of(to_device), *f = yk_native_of(from_device);
	int err;

	if (!V_HAS_PEERS)
		return YOKE_EUNSUPPORTED;
	if ((err = yk_native_use(q->device)))
		return err;
	enable_peer_access(yk_native_of(q->device), q->device == to_device ? f : t);
	return yk_gpu_check(q->device, V_COPY_PEER(v_address_of(to, to_offset), t,
						   v_address_of(from, from_offset), f, bytes,
						   yk_native_stream(q)));
}
