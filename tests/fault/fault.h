// SPDX-License-Identifier: Apache-2.0
// The table that ext("fault") returns, with which a test controls the fault backend at run time.
#ifndef FAULT_H
#define FAULT_H

struct fault_control {
	// Calls of a kind ("run", "segment", "mark", ..) so far, -1: there is no such kind.
	long (*calls)(const char *kind);
	// From now on the n-th call of a kind fails, counted anew from 1; 0: none.
	void (*arm)(const char *kind, long n);
	// What a faulty call does: "error", "enomem", "hang", "segv", "abort", "exit".
	void (*how)(const char *how);
	// Name of an op ("softmax_backward") whose results are wrong from now on; "": none.
	void (*wrong)(const char *op);
	// Most bytes of segments at a time, 0: no limit; overcommit: more are given, and the first use
	// fails.
	void (*memory)(long bytes, int overcommit);
	// How often an event is asked before it says that it is done.
	void (*lag)(long polls);
	// Segments, queues, events and handles of ops that were not freed.
	long (*alive)(void);
	// Handles that were released before an event said that their last run was over.
	long (*early)(void);
	// With fault.defer: what is put off may also be done before it must be, by chance from this seed on;
	// 0: not.
	void (*chance)(long seed);
	// From now on a put takes its queue so long for each KiB, and each run so long, by a clock of the
	// backend's: the host's work takes no time, and its waits last until what it waits for is over.
	void (*timed)(long put, long run);
	long (*clock)(void);
};

#endif
