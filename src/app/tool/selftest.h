// SPDX-License-Identifier: Apache-2.0
// What the files of yoke selftest share.
#ifndef YK_TOOL_SELFTEST_H
#define YK_TOOL_SELFTEST_H

#include "train/trainer.h"

enum { YK_SELF_STEPS = 2, YK_SELF_TEXT = 400 };

enum yk_verdict { YK_SELF_FAIL, YK_SELF_PASS, YK_SELF_SKIP };

// What earlier sections found.
struct yk_self {
	struct yk_config *config;
	char device[48];
	double loss[YK_SELF_STEPS], slope; // on the CPU
	char said[YK_SELF_TEXT];
	enum yk_verdict verdict;
};

typedef int yk_self_fn(struct yk_self *, struct yk_trainer *);

__attribute__((format(printf, 3, 4))) int yk_self_say(struct yk_self *, enum yk_verdict, const char *fmt, ...);
// Calls fn with a trainer of the configuration with these keys besides, in a context of its own on a backend; NULL: the
// one that work goes to.
int yk_self_with(struct yk_self *, const char *backend, int n, const char *const *keys, yk_self_fn *fn);
// Steps and their losses.
int yk_self_steps(struct yk_trainer *, int n, double *loss);

// Sections of models with resolvents (selftest_bk.c), which make their own trainers.
int yk_self_kernels(struct yk_self *);
int yk_self_tiers(struct yk_self *);
int yk_self_mixed(struct yk_self *);
int yk_self_accumulation(struct yk_self *);
int yk_self_offload(struct yk_self *);
int yk_self_shrinking(struct yk_self *);
int yk_self_loop(struct yk_self *);

#endif
