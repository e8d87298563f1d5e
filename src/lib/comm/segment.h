// SPDX-License-Identifier: Apache-2.0
// Memory that the ranks of one machine share, and how they come to it.
//
// It is a sealed memfd, so that nobody can make it smaller under the others, and nothing of it is left when the last
// process has gone.  It is handed over a socket whose name is abstract: no file.  Both ends look who the other is.
#ifndef YK_SEGMENT_H
#define YK_SEGMENT_H

#include "comm/place.h"
#include "comm/ranks.h"

struct yk_segment;
// A new one, and its descriptor; its first area is the world's.
struct yk_segment *yk_segment_new(uint32_t ranks, int *fd);
// Bytes of that area: what ranks of a machine share before any is in another group.
uint64_t yk_segment_min(uint32_t ranks);
struct yk_segment *yk_segment_ref(struct yk_segment *);
void yk_segment_unref(struct yk_segment *);
// Room for the area of one more group; where it is, or 0: there is none left.
uint64_t yk_segment_take(struct yk_segment *, uint32_t ranks);
// The area at a place that another process has taken; NULL: no such thing can be there.
struct yk_area *yk_segment_area(struct yk_segment *, uint64_t at, uint32_t ranks);
struct yk_area *yk_segment_world(const struct yk_segment *);
// The world goes no further; the first reason stays.
void yk_segment_break(struct yk_segment *, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
uint32_t yk_segment_first(const struct yk_segment *); // rank of the machine: who made the memory
int *yk_segment_peer(struct yk_segment *, uint32_t rank); // room of this process for a descriptor of that one
// The process that asked first: it tells people what the ranks ended with.
pid_t yk_segment_speaker(struct yk_segment *);

// The process's own, by its place: from its parent, or made by the first rank of the machine and handed to the others,
// for whom that one waits.  For the life of the process.  ERANK: they do not come.
int yk_segment_get(const struct yk_started *, struct yk_segment **to);

// ---- sockets ----

int yk_socket_listen(const char *name, int most); // not blocking; -1: errno
pid_t yk_socket_peer(int fd); // who is at the other end, if it is of the same user; else -1

// What whoever wants the memory says first, in whatever version of yoke: nothing of the memory may be alike in two.
struct yk_hello {
	uint32_t magic, rank;
	char version[56];
};

enum { YK_STARTER = 0xffff }; // in place of the rank, of who started them

// What it hears: of whom, and which rank is of another version than that, if one is known; then no memory comes with it.
struct yk_answer {
	struct yk_hello host, unlike;
};
struct yk_answer yk_answer_of(uint32_t host);
int yk_answer_error(const struct yk_answer *); // EINVAL, naming both: some are unlike
bool yk_socket_serve(int to, int fd, struct yk_answer *); // listens and answers, a second at most; false: not that

#endif
