// SPDX-License-Identifier: Apache-2.0
// Recommends a device for a run: by rules of thumb, or by timing the run on each device.
#ifndef YK_CHOOSE_DEVICE_H
#define YK_CHOOSE_DEVICE_H

#include <stdbool.h>

#include "train/trial.h"

// Facts for the rules; NaN: unknown, in which case rules that depend on it do not apply.
struct yk_device_choice_facts {
	bool device, trains; // a device other than the CPU exists; something is trained
	double samples, batch, channels, height, width; // the last three describe images
	double parameters, epochs;
	double loader;       // fraction of the time spent waiting for data
};
enum yk_device_choice { YK_WHICH_CPU, YK_WHICH_DEVICE, YK_WHICH_MEASURE };
struct yk_device_choice_advice {
	enum yk_device_choice which;
	bool strongly;
	const char *why, *hint; // hint: NULL, or what would be faster
};
// The first rule that applies.
struct yk_device_choice_advice yk_device_choice_rule(const struct yk_device_choice_facts *);

// Performance to expect of a device with this memory bandwidth (GB/s) and compute rate (TFLOP/s).
// Informative only.
struct yk_device_choice_tier {
	const char *name;
	double min, max; // speedup over a CPU
	int batch;          // smallest batch for which that holds
};
const struct yk_device_choice_tier *yk_device_choice_tier_of(double gb_s, double tflop_s);

enum { YK_WHICH_DEVICES = 6, YK_WHICH_ROUNDS = 5, YK_WHICH_CROSSINGS = 4 };
struct yk_device_choice_times {
	int devices, rounds;
	struct yk_device_choice_device {
		char id[48];
		double seconds, spread; // of a step; median of the rounds
		double round[YK_WHICH_ROUNDS];
		// of the last trial: its spread, and the total seconds of its steps
		double within, spent;
		char why[256]; // why it could not be timed; "": it was
	} device[YK_WHICH_DEVICES];
	int64_t batch;
	int best;       // -1: none could be timed
	double ratio;   // speedup over the second best; NaN: there is none
	double ratio_spread;
	bool undecided; // several rounds were requested but there was only time for one
	// batch at which the two best devices are equally fast, interpolated between timed batches;
	// NaN: none found
	double crosses;
};
// Times the configuration on each of these devices in turn, for `rounds` rounds or as many as fit
// in 12 seconds of steps, but at least two if one round takes less than two minutes. crossing: uses
// the remaining time to find the batch at which the two best devices are equally fast. ENOMEM; a
// device that fails stores the reason in `why`.
int yk_device_choice_measure(const struct yk_config *, int n, const char *const *id, int rounds,
			     bool crossing, struct yk_device_choice_times *);
// Whether to run another round, after `done` rounds of which the last took `last` seconds, with
// `left` seconds remaining. The second round runs even without time left, because one round does
// not show the spread.
bool yk_device_choice_another(int done, int wanted, double last, double left);
// Devices that YOKE_BACKEND allows, best first: one per physical device, or the first of each
// backend.
int yk_device_choice_devices(bool one_a_backend, char id[YK_WHICH_DEVICES][48]);

// backend=fastest: measures, and stores the chosen device in the configuration; `summary` receives
// a summary.
int yk_device_choice_settle(struct yk_config *, char summary[256]);

#endif
