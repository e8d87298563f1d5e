// SPDX-License-Identifier: Apache-2.0
// The table that ext("fault") returns, with which a test controls the fault backend at run time.
#ifndef FAULT_H
#define FAULT_H

struct fault_control {
	// Number of calls of a kind ("run", "segment", "mark", ..) so far, -1: unknown kind.
	long (*calls)(const char *kind);
	// From now on the n-th call of a kind fails, counted from 1; 0: none.
	void (*arm)(const char *kind, long n);
	// Effect of a failing call: "error", "enomem", "hang", "segv", "abort", "exit".
	void (*how)(const char *how);
	// Name of an op ("softmax_backward") whose results are wrong from now on; "": none.
	void (*wrong)(const char *op);
	// Limit on the total bytes of segments, 0: none; overcommit: more are granted, and the
	// first use fails.
	void (*memory)(long bytes, int overcommit);
	// Number of polls of an event before it reports completion.
	void (*lag)(long polls);
	// Segments, queues, events and handles of ops that were not freed.
	long (*alive)(void);
	// Handles that were released before an event reported that their last run was over.
	long (*early)(void);
	// With fault.defer: deferred work may also be executed before it must be, at random from
	// this seed; 0: not.
	void (*chance)(long seed);
	// From now on a put occupies its queue for that time per KiB, and each run for that time,
	// by a clock of the backend: the host's work takes no time, and its waits end when the
	// awaited work ends.
	void (*timed)(long put, long run);
	long (*clock)(void);
};

#endif
