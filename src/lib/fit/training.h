// SPDX-License-Identifier: Apache-2.0
// Settings of phase 2 as read from the JSON: losses, optimizer, trainer and monitors.
#ifndef YK_FIT_TRAINING_H
#define YK_FIT_TRAINING_H

#include <stdbool.h>
#include <stdint.h>

#include "fit/keys.h"

enum { YK_LOSSES = 16, YK_METRICS = 16, YK_QUANTILES = 8 };
enum yk_loss_kind { YK_LOSS_ORTHOGONALITY, YK_LOSS_BCE, YK_LOSS_MSE, YK_LOSS_ENTROPY };
#define YK_LOSS_WORDS "orthogonality bce mse entropy"

struct yk_loss {
	int kind;
	char name[64];   // "bce", with a number appended if there are several
	int of, node;    // operand node; mse: target node, -1: the stream
	double weight, pos_weight;
};

enum yk_metric_kind {
	YK_METRIC_ROC_AUC,
	YK_METRIC_PRECISION,
	YK_METRIC_RECALL,
	YK_METRIC_F1,
	YK_METRIC_IOU,
	YK_METRIC_ACCURACY,
	YK_METRIC_QUANTILES,
	YK_METRIC_EXPLAINED_VARIANCE,
	YK_METRIC_ORTHOGONALITY
};
#define YK_METRIC_WORDS "roc_auc precision recall f1 iou accuracy quantiles explained_variance orthogonality"

struct yk_metric {
	int kind;
	char name[64];      // "f1", "orthogonality.pca", with a number appended if there are
			    // several
	int of;             // operand node
	double threshold;   // a score above it predicts label 1
	int quantiles;
	double q[YK_QUANTILES];
};

enum yk_precision_word { YK_FIT_F32, YK_FIT_F16, YK_FIT_BF16 };
enum { YK_MONITOR_METRICS = 1, YK_MONITOR_TENSORBOARD = 2, YK_MONITOR_MAPS = 4 };

struct yk_trainer_keys {
	int64_t max_epochs, accumulate, log_every, valid_every;
	char accelerator[YK_FIT_TEXT_SIZE];
	int64_t device;       // index among the accelerator's devices; -1: the best
	int precision, statistics, passes; // indices of their words
	bool progress_bar, checkpoints, deterministic, benchmark;
	double valid_share;   // fraction of an epoch between validations; 0: valid_batches applies
	int64_t valid_batches;
	double clip;          // NaN: no clipping
};

struct yk_training {
	struct yk_trainer_keys keys;
	int losses, metrics;
	struct yk_loss loss[YK_LOSSES];
	struct yk_metric metric[YK_METRICS];
	unsigned monitors;    // YK_MONITOR_*, or'ed
	char optimizer[16], settings[300]; // arguments of yoke_optim_new
};

#endif
