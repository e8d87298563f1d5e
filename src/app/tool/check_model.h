// SPDX-License-Identifier: Apache-2.0
// Interface between the source files of `yoke check model`.
#ifndef YK_TOOL_SELFTEST_H
#define YK_TOOL_SELFTEST_H

#include "train/trainer.h"

enum { YK_SELF_STEPS = 2, YK_SELF_TEXT = 400 };

enum yk_model_verdict { YK_SELF_FAIL, YK_SELF_PASS, YK_SELF_SKIP };

// Results of earlier sections, needed by later ones.
struct yk_self {
	struct yk_config *config;
	char device[48];
	double loss[YK_SELF_STEPS], slope; // measured on the CPU
	char text[YK_SELF_TEXT];
	enum yk_model_verdict verdict;
};

typedef int yk_self_fn(struct yk_self *, struct yk_trainer *);

__attribute__((format(printf, 3, 4))) int yk_self_result(struct yk_self *, enum yk_model_verdict,
							 const char *fmt, ...);
// Calls fn with a trainer that has these keys in addition to the configuration, in a new context on
// a backend; NULL: the default backend.
int yk_self_with(struct yk_self *, const char *backend, int n, const char *const *keys,
		 yk_self_fn *fn);
// Trains n steps and returns their losses.
int yk_self_steps(struct yk_trainer *, int n, double *loss);

// Sections for models with resolvents (check_model_bk.c); they create their own trainers.
int yk_self_kernels(struct yk_self *);
int yk_self_tiers(struct yk_self *);
int yk_self_mixed(struct yk_self *);
int yk_self_accumulation(struct yk_self *);
int yk_self_offload(struct yk_self *);
int yk_self_shrinking(struct yk_self *);
int yk_self_loop(struct yk_self *);

#endif
