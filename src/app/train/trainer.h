// SPDX-License-Identifier: Apache-2.0
// The trainer: model, optimizer, data and schedule of one run, advanced one step at a time. Its
// complete state is what a checkpoint holds: a resumed trainer gives the losses of an uninterrupted
// one, bit for bit. Every step records the same graph, so only the first one is planned.
#ifndef YK_TRAINER_H
#define YK_TRAINER_H

#include "train/best.h"
#include "train/corpus.h"
#include "optim/schedule.h"
#include "parallel/replica.h"
#include "config/precision.h"
#include "train/trained.h"
#include "train/validate.h"

// Results of a step, 8 bytes.
struct yk_record {
	float loss, grad_norm; // finite unless the step was skipped
};

// Replaces the model and its token windows by the caller's loss function, whose batches are the
// micro-batches (yoke_fit).
struct yk_trains {
	// Records the loss of the next batch, the k-th of the step. again: of the same batch as in
	// the last call.
	yoke_tensor *(*loss)(void *arg, int64_t k, bool again);
	int (*stepped)(void *arg); // after each step
	void *arg;
};

// The windows that a trainer reads.
struct yk_trainer_feed {
	struct yk_corpus *corpus;
	struct yk_tokenizer *tokenizer; // owned by the corpus
	struct yk_data *data;           // owned by the corpus; NULL: rehearsal without data
	struct yoke_position position;  // after the last step
	yoke_loader *loader;            // of the data; NULL before the first step
	bool fed;                       // ids hold the windows of the next or current step
	yoke_tensor **ids;              // [accumulate] of [batch, context + 1] i32
	int32_t *zeros;                 // a batch of windows used instead of data
	int64_t width;                  // numbers in a window
	bool packed;                    // conversations: windows differ in their number of targets
	int64_t targets;                // of packed windows: in the step, of all ranks
	// reports skipped windows; may be NULL
	void (*on_error)(void *arg, const struct yoke_data_error *);
	void *on_error_arg;
	size_t watched; // number of read times kept for the trace, 0: none
	bool starved;   // the loader failed: there are no more windows
};

struct yk_trainer {
	struct yk_replica replica; // parameters, gradients, optimizer, ranks
	struct yk_trainer_feed feed;
	const struct yk_trains *own; // trained if the replica has no network
	const struct yk_model *model;
	struct yk_model_shape shape; // of the model
	int64_t context, batch;
	// windows per micro-batch: the batch size, or less after running out of memory
	int64_t micro;
	int64_t steps;         // total
	int64_t valid_windows; // per validation
	int64_t random_step; // advances by one per micro-batch, so that no two share a dropout mask
	// the manifest's member of a network with adapters (adapted.h); NULL: all weights are
	// trained
	json_t *adapter;
	double dropout;
	double lr; // of the last step
	struct yk_lr_schedule schedule;
	struct yk_precision precision;
	char batch_why[160]; // how batch=auto was chosen; "": not auto
	// predicted max bytes of the run, on the rank that needs most; 0: unknown
	uint64_t predicted;
	struct yk_best best; // counted by the run with keep_best or stop_after
	int64_t skipped; // completed steps that changed nothing
	// checked: the last step's overflow check is pending; overflowed: it was skipped
	bool checked, overflowed;
	bool stepped;        // this process has completed a step
	yoke_tensor *part;   // the micro-batch's ids while it is recorded
	yoke_tensor *record; // [2] f32: struct yk_record of the last step
};

// Allocates a trainer without a model and opens its data, if there is some: `shared`, if not NULL,
// is the data of other trainers. from: the checkpoint in `folder` to resume, NULL: none. If data of
// the position differ, EINVAL or a warning.
int yk_trainer_alloc(const struct yk_config *, struct yk_corpus *shared, const char *folder,
		     const struct yk_checkpoint *from, struct yk_trainer **);
// A trainer without a model, for memory prediction; needs no data.
int yk_trainer_plan(const struct yk_config *, struct yk_trainer **);
void yk_trainer_free(struct yk_trainer *); // NULL is allowed
// Number of steps that changed the parameters, which the schedule and the optimizer count.
static inline int64_t yk_trainer_stepped(const struct yk_trainer *t)
{
	return t->replica.step - t->skipped;
}
// Steps per pass over the training data; 0 without data.
double yk_trainer_pass(const struct yk_trainer *);
// Creates the trainer's device state for that batch, as in yk_trainer_new (trainer_open.h). unmake
// frees it, also after an error.
int yk_trainer_make(struct yk_trainer *, int64_t batch, const struct yk_checkpoint *from,
		    const char *folder);
void yk_trainer_unmake(struct yk_trainer *);
// Allocates the gradients, by replica.params, and the step's record.
int yk_trainer_buffers(struct yk_trainer *);
// For a trainer without a model, in a dry context: allocates everything that a run with that batch
// needs, for each stage.
int yk_trainer_dry_run(void *trainer, int64_t batch);
// The same for one stage.
int yk_trainer_dry_run_stage(const struct yk_trainer *, int64_t stage, int64_t batch);
// Validates with arbitrary tokens and the largest batch.
int yk_trainer_validate_any(struct yk_trainer *);
// Gets the windows of the next step, which are feed.ids until the step is done.
int yk_trainer_feed(struct yk_trainer *);
// fed: the windows were used. unfeed: also drops those that were read ahead.
void yk_trainer_fed(struct yk_trainer *);
void yk_trainer_unfeed(struct yk_trainer *);
// The windows of micro-batch k of the step in host memory, row by row.
const int32_t *yk_trainer_windows(const struct yk_trainer *, int64_t k);
// Allocates sums over n micro-batches.
int yk_trainer_sums(struct yk_trainer *, int64_t n);
// The loss of windows that is trained on, with dropout.
yoke_tensor *yk_trainer_loss(struct yk_trainer *, yoke_tensor *windows);
// Arbitrary windows.
yoke_tensor *yk_trainer_zeros(const struct yk_trainer *, int64_t rows);
// Sets the position of the next step in the data.
void yk_trainer_seek(struct yk_trainer *, const struct yoke_position *);
// Statistics of the trainer's loader.
struct yoke_loader_stats yk_trainer_data(const struct yk_trainer *);
// Launches one optimizer step. With loss scaling it waits for the previous step, after most of the
// recording. If an allocation fails although earlier steps succeeded, or the batch was chosen
// automatically, this and later steps run in smaller micro-batches, halved until they fit.
// YOKE_ENOMEM: single windows do not fit.
int yk_trainer_step(struct yk_trainer *);
// Waits for the last step. ERANGE if its loss or norm is not finite, unless it was skipped for that
// reason.
int yk_trainer_record(struct yk_trainer *, struct yk_record *);
// Whether the learning rate of the next step is higher than that of the last one and than what the
// resumed checkpoint's schedule planned.
struct yk_rise {
	double was, next;
	// keys that differ from the checkpoint's; settings that would keep the rate
	char why[160], keep[80];
};
bool yk_trainer_rises(const struct yk_trainer *, const json_t *schedule, struct yk_rise *);
// Saves a checkpoint, unless the last step was not finite (ERANGE).
int yk_trainer_save(struct yk_trainer *, const char *folder);
// The same with a manifest that the caller has begun with model, tokenizer, keys, schedule and
// data. Always frees it.
int yk_trainer_save_with(struct yk_trainer *, const char *folder, struct yk_checkpoint *);
// Restores steps, random numbers, loss scale and optimizer states from a checkpoint.
int yk_trainer_go_on(struct yk_trainer *, const char *folder, const struct yk_checkpoint *);

#endif
