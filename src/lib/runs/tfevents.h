// SPDX-License-Identifier: Apache-2.0
// A file of TensorBoard's events: records of scalars.
//
// Record: u64 length, masked CRC-32C of it, data, masked CRC-32C of the data, little endian.  Data: an Event of
// TensorFlow's event.proto, in the encoding of protocol buffers.
#ifndef YK_TFEVENTS_H
#define YK_TFEVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct yk_tfevents;
struct yk_scalar {
	const char *tag;
	float value;
};

// events.out.tfevents.<seconds>.<host>.<pid> in the folder.  resumed: what the folder's other files have of steps
// from `step` on is void.  NULL, with an error: it cannot be written.
struct yk_tfevents *yk_tfevents_open(const char *folder, bool resumed, int64_t step);
// Kept in memory, and written when two seconds are gone.  EIO.
int yk_tfevents_scalars(struct yk_tfevents *, double time, int64_t step, int n, const struct yk_scalar *);
int yk_tfevents_close(struct yk_tfevents *); // NULL is fine; EIO: the last of it was not written

// CRC-32C (Castagnoli), as RFC 3720 has it.
uint32_t yk_crc32c(const void *data, size_t bytes);

#endif
