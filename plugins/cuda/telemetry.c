// SPDX-License-Identifier: Apache-2.0
// Telemetry with NVML. A device is found by its PCI address, because visible-device lists renumber
// the indexes. PCIe traffic is omitted: NVML measures it for 20 ms.
#include "config.h"

#include "../native/native.h"

// Reasons for reduced clocks: bits of nvmlClocksThrottleReasons.
enum {
	IDLE = 1 << 0, // not a fault; neither is the next
	APPLICATIONS = 1 << 1,
	POWER_CAP = 1 << 2,
	HARDWARE = 1 << 3,
	SOFTWARE_HEAT = 1 << 5,
	HARDWARE_HEAT = 1 << 6,
	POWER_BRAKE = 1 << 7
};

static pthread_once_t started = PTHREAD_ONCE_INIT;
static int failure;

static void start(void)
{
	failure = yk_native_code(V(nvmlInit_v2));
}

static int fail(const char *call, int code)
{
	return yk_gpu_error(YOKE_EUNSUPPORTED, "%s: %s (%d)", call, yk_native.nvmlErrorString(code),
			    code);
}

// False if the function is missing or fails.
#define ASK(call, ...) (yk_native.call && !yk_native.call(__VA_ARGS__))

static void query_clocks(nvmlDevice_t device, struct yoke_sample *s)
{
	unsigned mhz;

	if (ASK(nvmlDeviceGetClockInfo, device, NVML_CLOCK_SM, &mhz)) {
		s->clock_hz = mhz * (uint64_t)1000000;
		s->known |= YOKE_SAMPLE_CLOCK;
	}
	if (ASK(nvmlDeviceGetMaxClockInfo, device, NVML_CLOCK_SM, &mhz)) {
		s->clock_max_hz = mhz * (uint64_t)1000000;
		s->known |= YOKE_SAMPLE_CLOCK_MAX;
	}
	if (ASK(nvmlDeviceGetClockInfo, device, NVML_CLOCK_MEM, &mhz)) {
		s->mem_clock_hz = mhz * (uint64_t)1000000;
		s->known |= YOKE_SAMPLE_MEM_CLOCK;
	}
}

static void query_power(nvmlDevice_t device, struct yoke_sample *s)
{
	unsigned long long mj;
	unsigned mw;

	if (ASK(nvmlDeviceGetPowerUsage, device, &mw)) {
		s->power_w = mw / 1000.0;
		s->known |= YOKE_SAMPLE_POWER;
	}
	if (ASK(nvmlDeviceGetEnforcedPowerLimit, device, &mw)) {
		s->power_limit_w = mw / 1000.0;
		s->known |= YOKE_SAMPLE_POWER_LIMIT;
	}
	if (ASK(nvmlDeviceGetTotalEnergyConsumption, device, &mj)) {
		s->energy_j = (double)mj / 1000.0;
		s->known |= YOKE_SAMPLE_ENERGY;
	}
}

static void query_other(nvmlDevice_t device, struct yoke_sample *s)
{
	unsigned long long why;
	nvmlMemory_t memory;
	unsigned n;

	if (ASK(nvmlDeviceGetMemoryInfo, device, &memory)) {
		s->mem_used = memory.used;
		s->mem_total = memory.total;
		s->known |= YOKE_SAMPLE_MEM_USED | YOKE_SAMPLE_MEM_TOTAL;
	}
	if (ASK(nvmlDeviceGetTemperature, device, NVML_TEMPERATURE_GPU, &n)) {
		s->temp_c = n;
		s->known |= YOKE_SAMPLE_TEMP;
	}
	if (ASK(nvmlDeviceGetFanSpeed, device, &n)) {
		s->fan = n / 100.0;
		s->known |= YOKE_SAMPLE_FAN;
	}
	if (ASK(nvmlDeviceGetCurrentClocksThrottleReasons, device, &why)) {
		s->throttle =
			(why & (POWER_CAP | POWER_BRAKE) ? YOKE_THROTTLE_POWER : 0) |
			(why & (SOFTWARE_HEAT | HARDWARE_HEAT) ? YOKE_THROTTLE_HEAT : 0) |
			(why & ~(unsigned long long)(IDLE | APPLICATIONS | POWER_CAP | POWER_BRAKE |
						     SOFTWARE_HEAT | HARDWARE_HEAT) ?
				 YOKE_THROTTLE_OTHER :
				 0);
		s->known |= YOKE_SAMPLE_THROTTLE;
	}
}

int yk_vendor_sample(const struct yk_native_device *d, struct yoke_sample *s)
{
	nvmlDevice_t device;
	nvmlUtilization_t used;
	unsigned mig = 0, pending;
	int code;

	pthread_once(&started, start);
	if (failure)
		return fail("nvmlInit_v2", failure);
	if ((code = yk_native_code(V(nvmlDeviceGetHandleByPciBusId_v2, d->gpu.info.pci, &device))))
		return fail("nvmlDeviceGetHandleByPciBusId_v2", code);
	query_clocks(device, s);
	query_power(device, s);
	query_other(device, s);
	// with MIG, the card's counters belong to no instance
	if (ASK(nvmlDeviceGetMigMode, device, &mig, &pending) && mig)
		return 0;
	if (ASK(nvmlDeviceGetUtilizationRates, device, &used)) {
		s->util = used.gpu / 100.0;
		s->mem_util = used.memory / 100.0;
		s->known |= YOKE_SAMPLE_UTIL | YOKE_SAMPLE_MEM_UTIL;
	}
	return 0;
}
