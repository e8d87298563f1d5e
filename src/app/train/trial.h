// SPDX-License-Identifier: Apache-2.0
// A few steps of a run, to be timed: what a configuration does on a device.
#ifndef YK_TRIAL_H
#define YK_TRIAL_H

#include "train/conf.h"

enum { YK_TRIAL_GROUPS = 31 };

struct yk_trial {
	char device[48];
	int64_t batch, steps; // windows of a step; steps that were timed
	double seconds, spread; // of a step: the median of groups, half the distance of their quartiles
	uint64_t peak;        // bytes of the device's pool
	double loss;          // of the last step
};

// Trains for `warm` steps, then `groups` times so many that each group takes `each` seconds or more (0: one), in a
// context of its own on a backend or device ("opencl:1"; NULL: the configuration's), from the first values.  Nothing
// is saved.  Settings are as before afterwards.
struct yk_trial_ask {
	const char *device;
	int64_t warm, most; // most: steps in all, at most; 0: any
	int groups;
	double each, enough; // enough: seconds behind which no further group begins; 0: any
};
int yk_trial_run(const struct yk_config *, const struct yk_trial_ask *, struct yk_trial *);

// The median, and half the distance between the quartiles; sorts x.
double yk_median(int n, double *x, double *spread);

#endif
