// SPDX-License-Identifier: Apache-2.0
// Writes TensorBoard event files with scalars.
//
// Record: u64 length, masked CRC-32C of it, data, masked CRC-32C of the data, little endian.  Data:
// an Event of TensorFlow's event.proto, in the encoding of protocol buffers.
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

// Creates events.out.tfevents.<seconds>.<host>.<pid> in the folder.  resumed: invalidates steps of
// the folder's other files from `step` on.  NULL, with an error: it cannot be written.
struct yk_tfevents *yk_tfevents_open(const char *folder, bool resumed, int64_t step);
// Buffers the scalars; they are written at most every two seconds.  EIO.
int yk_tfevents_scalars(struct yk_tfevents *, double time, int64_t step, int n,
			const struct yk_scalar *);
int yk_tfevents_close(struct yk_tfevents *); // NULL is allowed; EIO: the last records were not
					     // written

// CRC-32C (Castagnoli), RFC 3720.
uint32_t yk_crc32c(const void *data, size_t bytes);

#endif
