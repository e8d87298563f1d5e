// SPDX-License-Identifier: Apache-2.0
// Telemetry of devices: who says it, and whether it may be believed.
#ifndef YK_TELEMETRY_H
#define YK_TELEMETRY_H

#include <jansson.h>
#include <stdbool.h>

#include "device/device.h"

// A sample of the device: its own backend's, that of another offer of the same hardware, or the system's, each
// filling in what those before do not know.  False: nothing is known.
bool yk_telemetry_sample(struct yk_device *, struct yoke_sample *to);
// The last sample that anybody took of it, and when; false: there is none.
bool yk_telemetry_last(const struct yk_device *, struct yoke_sample *to, uint64_t *ns);
// What is wrong with a sample, with the one before (NULL: none) in mind; NULL: nothing.
const char *yk_telemetry_lie(const struct yoke_sample *, const struct yoke_sample *before);
// By the system's files, of a device at that address on the bus.
bool yk_telemetry_system(const char *pci, struct yoke_sample *to);
// Seconds from one line of telemetry to the next, so that a day takes at most `day` bytes (0: no limit): after `elapsed`
// seconds and `written` bytes, for lines of that length, not before `seconds` have passed.
double yk_recorder_wait(double day, double elapsed, double written, double line, double seconds);
// What is known of it, as an object; NULL: no memory.
json_t *yk_telemetry_json(const struct yoke_sample *);

#endif
