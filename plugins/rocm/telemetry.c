// SPDX-License-Identifier: Apache-2.0
// Telemetry with ROCm SMI. A device is found by its PCI address, because visible-device lists
// renumber the indexes. PCIe traffic is omitted: measuring takes a second.
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "../native/native.h"

static pthread_once_t started = PTHREAD_ONCE_INIT;
static int failure;

static void start(void)
{
	failure = yk_native_code(V(rsmi_init, 0));
}

static int fail(const char *call, int code)
{
	const char *text = NULL;

	yk_native.rsmi_status_string(code, &text);
	return yk_gpu_error(YOKE_EUNSUPPORTED, "%s: %s (%d)", call,
			    text ? text : "unknown ROCm SMI error", code);
}

// False if the function is missing or fails.
#define ASK(call, ...) (yk_native.call && !yk_native.call(__VA_ARGS__))

// Finds the index of the device at a PCI address.
static int find(const char *pci, uint32_t *index)
{
	uint32_t n = 0;
	// last: last error of a device whose address is unknown
	int code = yk_native_code(V(rsmi_num_monitor_devices, &n)), last = 0;

	if (code)
		return fail("rsmi_num_monitor_devices", code);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t id = 0;
		char text[32];
		if ((code = yk_native_code(V(rsmi_dev_pci_id_get, i, &id)))) {
			last = code;
			continue;
		}
		snprintf(text, sizeof text, "%04x:%02x:%02x.%x", (unsigned)(id >> 32),
			 (unsigned)(id >> 8 & 0xff), (unsigned)(id >> 3 & 0x1f),
			 (unsigned)(id & 7));
		if (!strcasecmp(text, pci)) {
			*index = i;
			return 0;
		}
	}
	return last ? fail("rsmi_dev_pci_id_get", last) :
		      yk_gpu_error(YOKE_EUNSUPPORTED, "ROCm SMI lists no device at %s", pci);
}

static void query_power(uint32_t i, struct yoke_sample *s)
{
	uint64_t uw, count, time;
	float each;

	// MI300 and later do not report an average
	if (ASK(rsmi_dev_power_ave_get, i, 0, &uw) ||
	    ASK(rsmi_dev_current_socket_power_get, i, &uw)) {
		s->power_w = (double)uw / 1e6;
		s->known |= YOKE_SAMPLE_POWER;
	}
	if (ASK(rsmi_dev_power_cap_get, i, 0, &uw)) {
		s->power_limit_w = (double)uw / 1e6;
		s->known |= YOKE_SAMPLE_POWER_LIMIT;
	}
	if (ASK(rsmi_dev_energy_count_get, i, &count, &each, &time)) {
		s->energy_j = (double)count * (double)each / 1e6;
		s->known |= YOKE_SAMPLE_ENERGY;
	}
}

static void query_memory(uint32_t i, struct yoke_sample *s)
{
	if (ASK(rsmi_dev_memory_usage_get, i, RSMI_MEM_TYPE_VRAM, &s->mem_used))
		s->known |= YOKE_SAMPLE_MEM_USED;
	if (ASK(rsmi_dev_memory_total_get, i, RSMI_MEM_TYPE_VRAM, &s->mem_total))
		s->known |= YOKE_SAMPLE_MEM_TOTAL;
}

static void query_other(uint32_t i, struct yoke_sample *s)
{
	int64_t value;
	uint64_t max;
	uint32_t percent;

	if (ASK(rsmi_dev_temp_metric_get, i, RSMI_TEMP_TYPE_EDGE, RSMI_TEMP_CURRENT, &value) ||
	    ASK(rsmi_dev_temp_metric_get, i, RSMI_TEMP_TYPE_JUNCTION, RSMI_TEMP_CURRENT, &value)) {
		s->temp_c = (double)value / 1000;
		s->known |= YOKE_SAMPLE_TEMP;
	}
	if (ASK(rsmi_dev_temp_metric_get, i, RSMI_TEMP_TYPE_MEMORY, RSMI_TEMP_CURRENT, &value)) {
		s->mem_temp_c = (double)value / 1000;
		s->known |= YOKE_SAMPLE_MEM_TEMP;
	}
	if (ASK(rsmi_dev_fan_speed_get, i, 0, &value) &&
	    ASK(rsmi_dev_fan_speed_max_get, i, 0, &max) && max) {
		s->fan = (double)value / (double)max;
		s->known |= YOKE_SAMPLE_FAN;
	}
	if (ASK(rsmi_dev_busy_percent_get, i, &percent)) {
		s->util = percent / 100.0;
		s->known |= YOKE_SAMPLE_UTIL;
	}
	if (ASK(rsmi_dev_memory_busy_percent_get, i, &percent)) {
		s->mem_util = percent / 100.0;
		s->known |= YOKE_SAMPLE_MEM_UTIL;
	}
}

int yk_vendor_sample(const struct yk_native_device *d, struct yoke_sample *s)
{
	pthread_once(&started, start);
	if (failure)
		return fail("rsmi_init", failure);
	uint32_t i = 0;
	int err = find(d->gpu.info.pci, &i);
	if (err)
		return err;
	query_power(i, s);
	query_memory(i, s);
	query_other(i, s);
	return 0;
}
