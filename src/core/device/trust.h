// SPDX-License-Identifier: Apache-2.0
// Results of self-tests of a device's implementations, kept for the process and in the cache, keyed
// by device, driver and plugin file.  usable.h applies them.
#ifndef YK_TRUST_H
#define YK_TRUST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "yoke-plugin.h"

struct yk_device;

enum yk_trust { YK_UNTESTED, YK_RIGHT, YK_WRONG };

// Subjects of a test: an op code, or one of these.
enum {
	YK_TRUST_MEMORY = 0,             // put, get, copy and fill
	YK_TRUST_MAPPED = YOKE_OP_LIMIT, // CONTRACT with a map as epilogue
	YK_TRUST_DEVICE,                 // the device as a whole; recorded only when wrong
	YK_TRUST_SUBJECTS
};

struct yk_finding {
	uint16_t subject;
	uint8_t dtype, impl; // 0 for memory and device
	bool right;
	int code;      // of a failed call; 0: the results are wrong
	char name[32]; // the implementation's name
	char why[400]; // if wrong, why
};

// For a device just found: creates d->trust and reads cached findings, unless the setting
// "selftest" is 0 or the backend is built in.
void yk_trust_load(struct yk_device *d);
// Undoes yk_trust_load, for a device that is not used after all.
void yk_trust_free(struct yk_device *d);
// These require d->trust.
enum yk_trust yk_trust_of(const struct yk_device *d, int subject, int dtype, uint32_t impl);
// Were findings read from the cache?
bool yk_trust_remembered(const struct yk_device *d);
// keep: also store it in the cache for other processes.
void yk_trust_set(struct yk_device *d, const struct yk_finding *, bool keep);

// A hash of the failed ones, independent of their order; 0: none.
uint64_t yk_trust_hash(const struct yk_device *d);

// Why the device must not be used, or NULL.
const char *yk_trust_refusal(const struct yk_device *d);
// Copies at most `max` findings of failed tests; returns their total number.
size_t yk_trust_wrong(const struct yk_device *d, struct yk_finding *to, size_t max);
// "softmax", "contract with a map", "memory".
const char *yk_trust_subject(int subject, char to[40]);

#endif
