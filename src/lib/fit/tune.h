// SPDX-License-Identifier: Apache-2.0
// trainer.benchmark: times the matrix products of a step before the first step.
#ifndef YK_FIT_TUNE_H
#define YK_FIT_TUNE_H

// Calls `try`, which evaluates a step, then times all kernels that the device has for the products
// seen.  Later plans use the fastest correct kernels.
int yk_fit_tune(int (*try)(void *arg), void *arg);

#endif
