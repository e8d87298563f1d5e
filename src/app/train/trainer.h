// SPDX-License-Identifier: Apache-2.0
// The trainer: model, optimizer, data and schedule of one run, advanced a step at a
// time.  Its whole state is what a checkpoint holds: a resumed trainer gives the losses
// of an unbroken one, bit for bit.  Every step records the same graph, so that only the
// first is planned.
#ifndef YK_TRAINER_H
#define YK_TRAINER_H

#include "train/conf.h"
#include "train/corpus.h"
#include "train/grid.h"
#include "yoke-dist.h"
#include "optim/schedule.h"
#include "train/optim.h"
#include "train/precision.h"
#include "train/sums.h"
#include "train/trained.h"
#include "train/validate.h"

// What a step leaves to be read, 8 bytes.
struct yk_record {
	float loss, grad_norm; // not finite only where the step was skipped
};

// In place of a model on windows of tokens: a loss of the caller's, whose batches are micro-batches (yoke_fit).
struct yk_trains {
	// Records the loss of the next batch, the k-th of the step; again: of the same as the last call did.
	yoke_tensor *(*loss)(void *arg, int64_t k, bool again);
	int (*stepped)(void *arg); // behind each step
	void *arg;
};

struct yk_trainer {
	const struct yk_config *config;
	int64_t context, batch, accumulate; // the last: parts of a step that are this rank's
	int64_t parts, first, stride;       // of all ranks; this rank's first one, and from one of its to the next
	struct yk_grid grid;
	yoke_group *group;                  // its data ranks, who have the other parts; NULL: it has all
	int stage;                          // zero=, 0 alone
	int64_t step, steps; // done, and in all
	int64_t valid_windows; // of one validation
	uint64_t seed;
	int64_t random_step; // one for each micro-batch: no two share a dropout mask
	double dropout;
	double lr; // of the last step
	char batch_why[160]; // of batch=auto; "": it was given
	uint64_t predicted;   // bytes that the run, or the rank that needs most, is to take at most; 0: not known
	struct yk_lr_schedule schedule;
	struct yk_corpus *corpus;
	struct yk_tokenizer *tokenizer; // the corpus's
	struct yk_data *data;           // the corpus's; NULL: a rehearsal goes without
	struct yoke_position position; // behind the last step
	yoke_loader *loader;           // of the data; NULL before the first step
	bool fed;                      // ids are those of the step that is next, or being made
	yoke_tensor **ids;             // [accumulate] of [batch, context + 1] i32
	void (*heard)(void *arg, const struct yoke_data_error *); // of windows that were passed over; NULL: nobody
	void *heard_arg;
	size_t watched;                // readings that a trace will have, 0: none
	bool starved;                  // there are no more windows to be had: its loader failed
	struct yk_network *net;                    // NULL: `own` is what is trained
	const struct yk_trains *own;
	const struct yk_parameters *params, *kept; // those that are trained, and all that checkpoints keep
	struct yk_optim *optim;
	struct yk_zero *zero;      // NULL: each rank updates all
	struct yk_cuts *cuts;      // NULL: its parameters are whole
	struct yk_stages *stages;  // NULL: it has all layers
	struct yk_compress *compress; // NULL: gradients are sent whole
	struct yk_checkpoint_gather *whole;       // while it is saved
	struct yk_precision precision;
	yoke_scaler *scaler; // NULL: no loss scale
	int64_t skipped;     // steps of those done that changed nothing
	bool checked, overflowed; // is it not known yet of the last step; was it one of those
	int64_t micro;             // windows of a micro-batch: the batch, or less when memory did not suffice
	bool stepped;              // this process made a step
	struct yk_ranks_says *says; // with ranks: what each says to all behind a step
	bool ends;                 // so some rank does, as all have heard at the same step
	yoke_tensor *part;         // the micro-batch's ids, while it is recorded
	yoke_tensor *record;       // [2] f32: struct yk_record of the last step
	struct yk_sums sums;       // where a step has several micro-batches
	yoke_tensor **grad;
	int32_t *zeros;            // a batch of windows in place of data
};

// Builds all of it from a checked configuration, parameters drawn or, where `from` is
// not NULL, taken from that checkpoint in `folder`.  batch=auto becomes the number that was chosen.
// ENOMEM names the largest batch that fits.
int yk_trainer_new(struct yk_config *, const char *folder, const struct yk_checkpoint *from,
		   struct yk_trainer **);
// The same on data that others train on as well; NULL: its own.
int yk_trainer_share(struct yk_corpus *, struct yk_config *, const char *folder, const struct yk_checkpoint *from,
		     struct yk_trainer **);
// One without a model, to be asked what it would take: its data need not be given.
int yk_trainer_plan(const struct yk_config *, struct yk_trainer **);
void yk_trainer_free(struct yk_trainer *); // NULL is fine
// The thread's error, ENOMEM, with the largest batch that fits the device, if its memory was what is
// missing.  Frees what the trainer has on the device, and the current context.
int yk_trainer_advise(struct yk_trainer *);
// Steps that changed the parameters: the schedule and the optimizer's t count these.
static inline int64_t yk_trainer_stepped(const struct yk_trainer *t)
{
	return t->step - t->skipped;
}
// Steps to a pass over the training part; 0 without data.
double yk_trainer_pass(const struct yk_trainer *);
// What of it is on the device, for that batch: as yk_trainer_new; and its end, after an
// error too.
int yk_trainer_make(struct yk_trainer *, int64_t batch, const struct yk_checkpoint *from,
		    const char *folder);
void yk_trainer_unmake(struct yk_trainer *);
// States of the optimizer for each parameter.
int yk_trainer_states_each(const struct yk_trainer *);
// Room for a step's gradients, by t->params, and for its record.
int yk_trainer_buffers(struct yk_trainer *);
// Of a trainer without a model, in a dry context: all that a run with that batch takes memory for, each stage of it.
int yk_trainer_rehearse(void *trainer, int64_t batch);
// The same of one stage.
int yk_trainer_rehearse_stage(const struct yk_trainer *, int64_t stage, int64_t batch);
// A validation's largest batch, of whatever tokens.
int yk_trainer_validate_any(struct yk_trainer *);
// Asks for the windows of the next step, which are t->ids until it is done.
int yk_trainer_feed(struct yk_trainer *);
// They are used; and, besides, those that are read ahead are dropped.
void yk_trainer_fed(struct yk_trainer *);
void yk_trainer_unfeed(struct yk_trainer *);
// Those of its part k as they lie in the host's memory, row by row.
const int32_t *yk_trainer_windows(const struct yk_trainer *, int64_t k);
// Room for sums over so many micro-batches.
int yk_trainer_sums(struct yk_trainer *, int64_t n);
// Any windows.
yoke_tensor *yk_trainer_zeros(const struct yk_trainer *, int64_t rows);
// The next step is the one at this position.
void yk_trainer_seek(struct yk_trainer *, const struct yoke_position *);
// What its loader counted.
struct yoke_loader_stats yk_trainer_data(const struct yk_trainer *);
// One optimizer step, launched; waits for the one before only where the loss has a scale, and behind most of the
// recording.  Where an allocation fails though steps before it went well, or the batch was chosen by what fits, it is
// made again in halves, from then on; the error is YOKE_ENOMEM when single windows do not fit.
int yk_trainer_step(struct yk_trainer *);
// Waits for the last step.  ERANGE when its loss or norm is not finite, unless it was skipped for that.
int yk_trainer_record(struct yk_trainer *, struct yk_record *);
// Is the learning rate of the next step above the last one's and above what the schedule of the
// checkpoint that was resumed meant it to be?
struct yk_rise {
	double was, next;
	char why[160], keep[80]; // keys that differ from the checkpoint's, and those that keep the rate
};
bool yk_trainer_rises(const struct yk_trainer *, const json_t *schedule, struct yk_rise *);
// A checkpoint of the present state, unless its last step was not finite (ERANGE).
int yk_trainer_save(struct yk_trainer *, const char *folder);
// The same, its manifest begun by the caller with what it says of model, tokenizer, keys, schedule and data; ended
// here, after an error too.
int yk_trainer_keep(struct yk_trainer *, const char *folder, struct yk_checkpoint *);
// Steps, random numbers, scale and the optimizer's states as a checkpoint has them.
int yk_trainer_go_on(struct yk_trainer *, const char *folder, const struct yk_checkpoint *);

#endif
