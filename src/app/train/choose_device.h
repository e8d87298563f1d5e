// SPDX-License-Identifier: Apache-2.0
// Which device a run suits: rules of thumb, and the run itself, timed on each.
#ifndef YK_CHOOSE_DEVICE_H
#define YK_CHOOSE_DEVICE_H

#include <stdbool.h>

#include "train/trial.h"

// What the rules ask for; NaN: not known, and then no rule that asks for it holds.
struct yk_device_choice_ask {
	bool device, trains; // is there another device than the CPU; is anything trained?
	double samples, batch, channels, height, width; // of images the last three
	double parameters, epochs;
	double loader;       // share of the time that waits for data
};
enum yk_device_choice { YK_WHICH_CPU, YK_WHICH_DEVICE, YK_WHICH_MEASURE };
struct yk_device_choice_said {
	enum yk_device_choice which;
	bool strongly;
	const char *why, *hint; // hint: NULL, or what would do better
};
// The first rule that holds.
struct yk_device_choice_said yk_device_choice_rule(const struct yk_device_choice_ask *);

// What to expect of a device by its memory's GB/s and its TFLOP/s; never a reason to decide.
struct yk_device_choice_tier {
	const char *name;
	double least, most; // times as fast as a CPU
	int batch;          // from which on
};
const struct yk_device_choice_tier *yk_device_choice_tier_of(double gb_s, double tflop_s);

enum { YK_WHICH_DEVICES = 6, YK_WHICH_ROUNDS = 5, YK_WHICH_CROSSINGS = 4 };
struct yk_device_choice_times {
	int devices, rounds;
	struct yk_device_choice_device {
		char id[48];
		double seconds, spread; // of a step, median of rounds
		double round[YK_WHICH_ROUNDS];
		double within, spent; // of the last trial: its spread, and seconds of all its steps
		char why[256]; // it could not be timed; "": it was
	} device[YK_WHICH_DEVICES];
	int64_t batch;
	int best;       // -1: none could be timed
	double ratio;   // times as fast as the next best; NaN: there is none
	double ratio_spread;
	bool undecided; // several rounds were asked for, and one took so long that there is no second
	double crosses; // batch at which the two best are equally fast, by batches that were timed; NaN: none of them
};
// Times the configuration on each of these devices in turn, `rounds` times, or as often as 12 seconds of steps allow, but
// twice where one round takes less than two minutes.
// crossing: looks for the batch at which the two best change places, in what is left of them.  ENOMEM; a device that
// fails is one that says why.
int yk_device_choice_measure(const struct yk_config *, int n, const char *const *id, int rounds, bool crossing,
		     struct yk_device_choice_times *);
// Does another round follow, after the last one took `last` seconds and with `left` seconds to go? There is a second round even
// if time was left for the first only, because one round does not show the spread.
bool yk_device_choice_another(int done, int wanted, double last, double left);
// Devices that YOKE_BACKEND allows, one for each that the machine has, the best first; or of each backend the first.
int yk_device_choice_devices(bool one_a_backend, char id[YK_WHICH_DEVICES][48]);

// backend=fastest: what it comes to, written into the configuration; says so in `said`.
int yk_device_choice_settle(struct yk_config *, char said[256]);

#endif
