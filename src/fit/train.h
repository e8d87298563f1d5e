// SPDX-License-Identifier: Apache-2.0
// What phase 2 minimises and how, as the JSON says it.
#ifndef YK_FIT_TRAIN_H
#define YK_FIT_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

enum { YK_LOSSES = 16 };
enum yk_loss_kind { YK_LOSS_ORTHOGONALITY, YK_LOSS_BCE, YK_LOSS_MSE, YK_LOSS_ENTROPY };

struct yk_loss {
	enum yk_loss_kind kind;
	char name[64];   // "bce", with a number behind it where there are several
	int of, node;    // of which node; mse: to which, -1: the stream
	double weight, pos_weight;
};

struct yk_plan2 {
	int losses;
	struct yk_loss loss[YK_LOSSES];
	bool roc_auc;
	int64_t max_epochs, accumulate, log_every, valid_every;
	double clip;     // 0: none
	char optimizer[16], settings[200]; // of yoke_optim_new
};

#endif
