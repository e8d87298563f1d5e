// SPDX-License-Identifier: Apache-2.0
// Declarations shared by streams (stream.c), events and graphs (graph.c).
#ifndef FAKE_STREAM_H
#define FAKE_STREAM_H

#include "device.h"

// A position in a stream.
struct mark {
	int refs;
	bool over;
	int64_t at; // ns
};

enum op_kind { LAUNCH, COPY, FILL, CALL, RECORD, WAIT, GRAPH };

// An enqueued operation; a graph and a stream may share one.
struct op {
	int refs;
	enum op_kind kind;
	union {
		struct fake_launch launch; // and its parameters
		struct {
			void *to;
			const void *from;
			size_t bytes;
			bool lie, owned; // owned: `from` must be freed
		} copy;
		struct {
			char *to;
			size_t count, bytes;
			unsigned char pattern[8];
		} fill;
		struct {
			void (*call)(void *);
			void *arg;
		} call;
		struct mark *mark;
		struct fake_graph *graph;
	};
};

struct ops {
	struct op **op;
	size_t n, cap;
};

struct fake_graph {
	int refs;
	struct ops ops;
};

struct capture {
	int refs, mode;
	bool invalid;
	pthread_t thread;
	struct fake_stream *origin;
	struct fake_graph *graph;
	struct fake_stream *member[16];
	int members;
};

struct fake_stream {
	unsigned magic;
	int device;
	bool closing;
	struct ops ops;      // operations from `first` on
	size_t first;
	uint64_t pushed, done;
	uint64_t random;
	pthread_t thread;
	pthread_cond_t work;
	struct capture *capture;
	uint64_t captured;   // number of operations; number that the origin waited for:
	uint64_t joined;
	struct fake_stream *next;
};

struct fake_event {
	unsigned magic;
	bool timed;
	int device;              // of the last record; -1: none
	struct mark *mark;       // NULL: never recorded
	struct capture *capture; // recorded there
	struct fake_stream *stream;
	uint64_t captured;
};

// One lock for all queues; it is not held while operations run.
extern pthread_mutex_t fake_lock;
extern pthread_cond_t fake_progress; // of any running operation

struct op *fake_op_new(enum op_kind);
void fake_op_unref(struct op *);
void fake_ops_free(struct ops *);
void fake_mark_unref(struct mark *);
// Enqueues into the stream, or into the graph that captures it. The lock must be held.
int fake_push(struct fake_stream *, struct op *);
// The same, taking the lock; on failure the op, which may be NULL, is freed.
int fake_push_new(struct fake_stream *, struct op *);
// Marks a capture as broken.
void fake_invalidate(struct capture *);

#endif
