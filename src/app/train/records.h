// SPDX-License-Identifier: Apache-2.0
// The records of a run in its directory, which `yoke train` and yoke_fit write alike: run.json,
// events, and the lines of metrics.jsonl.
//
// A line of metrics.jsonl is an object with `time`, in seconds since 1970, and `stage`. Numbers
// that are not finite are omitted.
// train:  a logged step: step, loss, lr, grad_norm, tokens_per_s, peak_bytes, tokens (total); with
//         loss scaling the scale and the number of skipped steps. yoke_fit, which does not know
//         tokens, writes samples_per_s, rows of the batches' first tensors. About the data, since
//         the run began: data_wait_s (steps waiting for data), data_read_s and data_pad_s (all
//         threads), data_send_s (passing copies to the device), data_ready (batches read ahead),
//         data_errors; without a loader data_wait_s only.
//         With ranks: their number, sent_bytes and ranks_wait_s (sent by rank 0, and its waiting
//         time, since the run began), slowest_rank (which waited least since the previous line)
// valid:  a validation: step, val_loss; of `yoke train` perplexity, and data_errors if windows were
//         skipped
// memory: at the start and after epochs, in yoke_fit also when it validates or saves: step, epoch,
//         seconds since the previous line, pool_allocated, pool_peak, pool_reserved and rss
//         (bytes; rss is null where the system does not report it), pool_retries, pending_nodes
// report: at the end: step, report (observe/report.h)
#ifndef YK_TRAIN_RECORDS_H
#define YK_TRAIN_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "observe/memory.h"
#include "observe/report.h"
#include "runs/write.h"
#include "yoke-data.h"

struct yk_step_metrics {
	int64_t step, tokens; // tokens 0: unknown
	double loss, lr, grad_norm;
	double tokens_per_s, samples_per_s; // 0: unknown
	uint64_t peak_bytes;
	struct yoke_loader_stats data;
	bool unread;         // there is no loader: of `data` only `waited` is known
	double scale;        // loss scale of the next step; 0: none
	int64_t skipped;     // steps skipped because of overflow
	bool leaks;          // the model can see the tokens it predicts
	const float *shares; // fraction of tokens per layer and expert; NULL: no experts
	int64_t layers, experts;
	int64_t ranks;        // 0: no other ranks
	uint64_t sent;        // bytes of tensors that this rank sent since the run began
	double waited;        // seconds that it waited for other ranks
	int slowest;          // the rank that waited least since the last line
	const char *overflow; // the tensor whose gradient was not finite in this step; NULL: none
};

struct yk_records_options {
	const json_t *config;
	uint64_t data; // fingerprint; 0: unknown
	int64_t step;  // completed before
	int64_t steps; // total; 0: unknown
	int64_t parameters;
	bool tensorboard;
};

// Begins the records of a run on the current context's device. The caller holds the lock of the
// directory. NULL: ENOMEM; files that cannot be written cause a warning.
yoke_run *yk_records_begin(const char *out, const struct yk_records_options *);
// digits: significant ones of the numbers; 17 keep every bit of a double.
void yk_records_train(yoke_run *, int digits, const struct yk_step_metrics *);
// skipped: windows that could not be read.
void yk_records_valid(yoke_run *, int digits, int64_t step, double loss, double perplexity,
		      int64_t skipped);
void yk_records_memory(yoke_run *, int64_t step, int64_t epochs, double seconds,
		       const struct yk_memory *);
void yk_records_report(yoke_run *, int64_t step, const struct yk_report *);
void yk_records_saved(yoke_run *, int64_t step, double seconds);
// code: 0, or that of the thread's error, which remains. saved: the directory has a checkpoint.
// Frees the run, which may be NULL.
void yk_records_end(yoke_run *, const char *out, int64_t step, bool saved, const char *ended,
		    int code);

#endif
