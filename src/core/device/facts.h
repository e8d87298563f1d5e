// SPDX-License-Identifier: Apache-2.0
// Facts about devices, backends and plugins as JSON, for `yoke info` and `yoke doctor`; the caller
// releases each result with json_decref.
#ifndef YK_FACTS_H
#define YK_FACTS_H

#include <stdbool.h>

#include "base/json.h"

struct yk_device;

// Devices of the backends that YOKE_BACKEND allows; other backends' files are not opened.
json_t *yk_facts_devices(void);
// Devices found so far that are not used because they failed their self-test, with the reason as
// "refused".
json_t *yk_facts_refused(void);
json_t *yk_facts_backends(void);
json_t *yk_facts_plugins(bool folders, bool files);
// Lines of backends: "notes" about the libraries that they load themselves, "processors" about
// where their threads run.
json_t *yk_facts_notes(const char *name);
// The entries of quirks.conf that apply to the devices found so far.
json_t *yk_facts_quirks(void);
// The failed self-tests of a device; NULL: of all devices that YOKE_BACKEND allows.
json_t *yk_facts_quarantine(const struct yk_device *);
// The device that would be chosen, or why none can be.
json_t *yk_facts_choice(void);

#endif
