// SPDX-License-Identifier: Apache-2.0
// trainer.benchmark: times the matrix products of a step before the first step.
#ifndef YK_FIT_TUNE_H
#define YK_FIT_TUNE_H

// Has `try` evaluate what a step does, measures what its device has several kernels for, and has what is planned from
// then on use the fastest that are right.
int yk_fit_tune(int (*try)(void *arg), void *arg);

#endif
