// SPDX-License-Identifier: Apache-2.0
// A mixture of experts (Shazeer et al. 2017): a router sends each token to active_experts of
// several perceptrons. Tokens are sorted by expert and multiplied group by group. So no token is
// dropped, no padding is computed, and the recorded graph does not depend on the routing.
#ifndef YK_MOE_H
#define YK_MOE_H

#include "nn/model.h"

struct yk_moe {
	int64_t embed, experts, active_experts;
	bool gated; // multiply outputs by probabilities, even if active_experts = 1
	double dropout;
	yoke_tensor *const *var; // in the order of yk_moe_parameters
};

enum { YK_MOE_PARAMETERS = 6 };
void yk_moe_parameters(struct yk_parameters *, int64_t embed, int64_t experts, const char *at);
// x [..,E] -> [..,E]: with p = softmax(x Wr' + br), the sum of p_e expert_e(x) over the
// active_experts largest p, which are normalized by their sum for 1 < active_experts < experts. An
// expert is E -> 2E, relu, dropout, 2E -> E. *balance: experts times the sum over experts of their
// fraction of tokens times their mean p, 1 for an even load (Fedus et al. 2022). *share [experts]:
// these fractions. Both outlive the scope they are recorded in.
yoke_tensor *yk_moe(const struct yk_network *, const struct yk_moe *, yoke_tensor *x,
		    yoke_tensor **balance, yoke_tensor **share);

#endif
