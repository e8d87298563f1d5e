// SPDX-License-Identifier: Apache-2.0
// Memory that the ranks of one machine share, and the sockets that distribute it.
//
// It is a sealed memfd: no rank can shrink it while others use it, and nothing remains after the
// last process has ended. The descriptor is passed over a socket with an abstract name (no file);
// both ends check the other's identity.
#ifndef YK_SEGMENT_H
#define YK_SEGMENT_H

#include "comm/launch_env.h"
#include "comm/ranks.h"

struct yk_segment;
// Creates a segment and its file descriptor. The first area is the world's.
struct yk_segment *yk_segment_new(uint32_t ranks, int *fd);
// Bytes of the world's area, the minimum that the ranks of a machine share.
uint64_t yk_segment_min(uint32_t ranks);
struct yk_segment *yk_segment_ref(struct yk_segment *);
void yk_segment_unref(struct yk_segment *);
// Reserves an area for another group. Returns its offset, or 0 if there is no space left.
uint64_t yk_segment_reserve(struct yk_segment *, uint32_t ranks);
// The area that another process reserved at an offset. NULL: the offset is invalid.
struct yk_area *yk_segment_area(struct yk_segment *, uint64_t at, uint32_t ranks);
struct yk_area *yk_segment_world(const struct yk_segment *);
// Breaks the world; the first reason is kept.
void yk_segment_break(struct yk_segment *, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
uint32_t yk_segment_first(const struct yk_segment *); // the machine's rank that created the segment
// where this process caches a pidfd of that rank
int *yk_segment_peer(struct yk_segment *, uint32_t rank);
// The process that reports the failure to the user: the first that called this.
pid_t yk_segment_speaker(struct yk_segment *);

// This process's segment, kept until the process ends: received from the parent process, or created
// by the machine's first rank, which waits until all others have fetched it. ERANK: some did not in
// time.
int yk_segment_get(const struct yk_started *, struct yk_segment **to);

// ---- sockets ----

int yk_socket_listen(const char *name, int max); // non-blocking; -1: see errno

// First message of a process that wants the segment. Its layout never changes, because the
// segment's layout may differ between versions of yoke.
struct yk_hello {
	uint32_t magic, rank;
	char version[56];
};

enum { YK_STARTER = 0xffff }; // the rank of the starting process

// The reply: the version of the segment's creator, and a rank with a different version if one is
// known. In that case no descriptor comes with it.
struct yk_answer {
	struct yk_hello host, unlike;
};
struct yk_answer yk_answer_of(uint32_t host);
int yk_answer_error(const struct yk_answer *); // EINVAL with both named if versions differ
// reads the hello and replies, within a second; false: the process did not get the memory
bool yk_socket_serve(int to, int fd, struct yk_answer *);

#endif
