// SPDX-License-Identifier: Apache-2.0
// Trial runs: times a few steps of a configuration on a device.
#ifndef YK_TRIAL_H
#define YK_TRIAL_H

#include "config/conf.h"

enum { YK_TRIAL_GROUPS = 31 };

struct yk_trial {
	char device[48];
	int64_t batch, steps; // windows per step; number of timed steps
	// per step: median of the groups, and half their interquartile range
	double seconds, spread;
	uint64_t peak;        // bytes of the device's pool
	double loss;          // of the last step
};

// Trains for `warm` steps, then times `groups` groups of equally many steps, such that each group
// takes at least `each` seconds (0: one step). Uses a new context on a backend or device
// ("opencl:1"; NULL: the configuration's) and initial parameters. Saves nothing and restores all
// settings.
struct yk_trial_options {
	const char *device;
	int64_t warm, max; // max: total number of steps; 0: unlimited
	int groups;
	double each, enough; // enough: seconds after which no further group begins; 0: unlimited
};
int yk_trial_run(const struct yk_config *, const struct yk_trial_options *, struct yk_trial *);

// Median, and half the interquartile range; sorts x.
double yk_median(int n, double *x, double *spread);

#endif
