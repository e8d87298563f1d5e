// SPDX-License-Identifier: Apache-2.0
// The devices and the host of this machine, and the processes that use its devices.
#ifndef YK_LIVE_HARDWARE_H
#define YK_LIVE_HARDWARE_H

#include "device/device.h"
#include "live/process.h"
#include "observe/machine.h"

enum { YK_HARDWARE_DEVICES = 32, YK_HARDWARE_USERS = 64 };

// A process that has a device open or runs yoke.
struct yk_user {
	pid_t pid;
	char name[32];      // of its program
	char device[64];    // ids of devices, or device nodes that yoke does not know
	double rss, memory; // bytes of host and of device memory; NaN: unknown
	double cpu, since;  // seconds of processor time, and when they were read
	double share;       // processors in use since the previous look; NaN: the first one
};

struct yk_hardware {
	struct yk_host_state state;
	struct yoke_host_sample host;
	double joules, at, watts; // of the processor packages; watts NaN: unknown
	int devices, users;
	struct yk_hardware_device {
		struct yk_device *device;
		struct yoke_sample sample;
	} device[YK_HARDWARE_DEVICES];
	struct yk_user user[YK_HARDWARE_USERS];
};

// Finds the devices of all backends. yk_hardware_sample samples them; rates refer to the time since
// the previous call.
void yk_hardware_open(struct yk_hardware *);
void yk_hardware_sample(struct yk_hardware *);
// Sets the device of a process, as its run recorded it.
void yk_hardware_assign(struct yk_hardware *, pid_t, const char *device);
json_t *yk_hardware_host_json(const struct yk_hardware *);
json_t *yk_hardware_devices_json(const struct yk_hardware *);
json_t *yk_hardware_users_json(const struct yk_hardware *);

#endif
