// SPDX-License-Identifier: Apache-2.0
// A mixture of experts (Shazeer et al. 2017): a router sends each token to top_k of several perceptrons.
// No token is dropped, no expert is computed for others' tokens, and what is recorded does not depend on how many
// tokens an expert gets: tokens are sorted by expert and multiplied group by group.
#ifndef YK_MOE_H
#define YK_MOE_H

#include "nn/model.h"

struct yk_moe {
	int64_t embed, experts, top_k;
	bool gated; // what an expert gives is multiplied by its probability; else, of top_k 1, it is not
	double dropout;
	yoke_tensor *const *var; // as yk_moe_parameters adds them
};

enum { YK_MOE_PARAMETERS = 6 };
void yk_moe_parameters(struct yk_parameters *, int64_t embed, int64_t experts, const char *at);
// x [..,E] -> [..,E]: with p = softmax(x Wr' + br), the sum of p_e expert_e(x) over the top_k largest p, which
// are divided by their sum for 1 < top_k < experts.  An expert is E -> 2E, relu, dropout, 2E -> E.
// *balance: experts times the sum over experts of their share of tokens times their mean p, 1 where tokens are even
// (Fedus et al. 2022).  *share [experts]: those shares.  Both outlive the scope they are recorded in.
yoke_tensor *yk_moe(const struct yk_network *, const struct yk_moe *, yoke_tensor *x, yoke_tensor **balance,
		    yoke_tensor **share);

#endif
