// SPDX-License-Identifier: Apache-2.0
// Telemetry of devices: collects it from several sources and checks that it is plausible.
#ifndef YK_TELEMETRY_H
#define YK_TELEMETRY_H

#include <jansson.h>
#include <stdbool.h>

#include "device/device.h"

// Samples the device.  Sources in order: its backend, another backend's alias of the same hardware,
// the system's files; each fills in values that are still unknown.  False: nothing is known.
bool yk_telemetry_sample(struct yk_device *, struct yoke_sample *to);
// The most recent sample that any caller took of the device, and its time; false: none.
bool yk_telemetry_last(const struct yk_device *, struct yoke_sample *to, uint64_t *ns);
// Why a sample is implausible, given the one before (NULL: none); NULL: it is plausible.
const char *yk_telemetry_implausible(const struct yoke_sample *, const struct yoke_sample *before);
// Samples the device at that PCI address from the system's files.
bool yk_telemetry_system(const char *pci, struct yoke_sample *to);
// Seconds until the next telemetry line, so that a day takes at most `day` bytes (0: no limit),
// given `elapsed` seconds and `written` bytes so far and lines of length `line`; at least
// `seconds`.
double yk_recorder_wait(double day, double elapsed, double written, double line, double seconds);
// The known values as JSON; NULL: out of memory.
json_t *yk_telemetry_json(const struct yoke_sample *);

#endif
