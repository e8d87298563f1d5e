// SPDX-License-Identifier: Apache-2.0
// Fake NVML: a device with 50 % utilization.
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "vendor.h"

#define FAKE_OF_TELEMETRY ~, FAKE_YES
FAKE_CALLS(FAKE_DECLARE)

enum { UNINITIALISED = 1, INVALID_ARGUMENT = 2, NVML_NOT_SUPPORTED = 3, NVML_NOT_FOUND = 6 };

static bool initialised;
static char devices[MAX_DEVICES];

int fake_code_of(const char *name)
{
	(void)name;
	return 0; // another library's
}

#define ENTER(name) \
	do { \
		const int fault = fake_fault(#name); \
		if (fault) \
			return fault; \
		if (!initialised) \
			return UNINITIALISED; \
	} while (0)

nvmlReturn_t nvmlInit_v2(void)
{
	const int fault = fake_fault("nvmlInit_v2");

	initialised = initialised || !fault;
	return fault;
}

const char *nvmlErrorString(nvmlReturn_t code)
{
	return code == 0 ? "Success" : code == NVML_NOT_SUPPORTED ? "Not Supported" :
	       code == NVML_NOT_FOUND ? "Not Found" : code == 15 ? "GPU is lost" : "Unknown Error";
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *pci, nvmlDevice_t *device)
{
	unsigned domain, bus;

	ENTER(nvmlDeviceGetHandleByPciBusId_v2);
	if (sscanf(pci, "%x:%x:", &domain, &bus) != 2 || bus < 0x3b ||
	    bus >= 0x3bu + (unsigned)fake_number("DEVICES", 1) || bus >= 0x3b + MAX_DEVICES)
		return NVML_NOT_FOUND;
	*device = TO_POINTER(&devices[bus - 0x3b]);
	return 0;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *now, unsigned int *pending)
{
	ENTER(nvmlDeviceGetMigMode);
	(void)device;
	*now = *pending = (unsigned)fake_number("MIG", 0);
	return 0;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *to)
{
	ENTER(nvmlDeviceGetUtilizationRates);
	(void)device;
	*to = (nvmlUtilization_t){ 50, 25 };
	return 0;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *to)
{
	ENTER(nvmlDeviceGetMemoryInfo);
	(void)device;
	*to = (nvmlMemory_t){ 4ull << 30, 3ull << 30, 1ull << 30 };
	return 0;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor,
				      unsigned int *celsius)
{
	ENTER(nvmlDeviceGetTemperature);
	(void)device;
	*celsius = 61;
	return sensor ? INVALID_ARGUMENT : 0;
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatts)
{
	ENTER(nvmlDeviceGetPowerUsage);
	(void)device;
	*milliwatts = 151000;
	return 0;
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *milliwatts)
{
	ENTER(nvmlDeviceGetEnforcedPowerLimit);
	(void)device;
	*milliwatts = 400000;
	return 0;
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device,
						 unsigned long long *millijoules)
{
	ENTER(nvmlDeviceGetTotalEnergyConsumption);
	(void)device;
	*millijoules = 123456789;
	return 0;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t clock,
				    unsigned int *megahertz)
{
	ENTER(nvmlDeviceGetClockInfo);
	(void)device;
	*megahertz = clock == NVML_CLOCK_MEM ? 1215 : 1200;
	return 0;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t clock,
				       unsigned int *megahertz)
{
	ENTER(nvmlDeviceGetMaxClockInfo);
	(void)device;
	*megahertz = clock == NVML_CLOCK_MEM ? 1215 : 1410;
	return 0;
}

nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *percent)
{
	ENTER(nvmlDeviceGetFanSpeed);
	(void)device;
	(void)percent;
	return NVML_NOT_SUPPORTED; // a card in a rack has no fan
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
						       unsigned long long *reasons)
{
	ENTER(nvmlDeviceGetCurrentClocksThrottleReasons);
	(void)device;
	*reasons = 4; // the power cap
	return 0;
}
