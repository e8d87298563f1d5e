// SPDX-License-Identifier: Apache-2.0
// What there is, as JSON for `yoke info` and `yoke doctor`; the caller gives each to json_decref.
#ifndef YK_FACTS_H
#define YK_FACTS_H

#include <stdbool.h>

#include "base/json.h"

struct yk_device;

// Of the backends that YOKE_BACKEND allows: the others' files are not opened.
json_t *yk_facts_devices(void);
// Devices met so far that are not used since they failed their self-test, with the reason as "refused".
json_t *yk_facts_refused(void);
json_t *yk_facts_backends(void);
json_t *yk_facts_plugins(bool folders, bool files);
// Lines of backends about libraries that they open by themselves.
json_t *yk_facts_notes(void);
// What quirks.conf says of the devices met so far.
json_t *yk_facts_quirks(void);
// What failed the self-test of a device; NULL: of all that YOKE_BACKEND allows.
json_t *yk_facts_quarantine(const struct yk_device *);
// The device that work would go to, or why there is none.
json_t *yk_facts_choice(void);

#endif
