// SPDX-License-Identifier: Apache-2.0
// Fake ROCm SMI: a device with 50 % utilization.
#include "config.h"

#include "vendor.h"

#define FAKE_OF_TELEMETRY ~, FAKE_YES
FAKE_CALLS(FAKE_DECLARE)

enum { INVALID_ARGUMENTS = 1, RSMI_NOT_SUPPORTED = 2 };

int fake_code_of(const char *name)
{
	(void)name;
	return 0; // another library's
}

static uint32_t devices(void)
{
	return (uint32_t)fake_number("DEVICES", 1);
}

#define ENTER(name, device) \
	do { \
		const int fault = fake_fault(#name); \
		if (fault) \
			return fault; \
		if (device >= devices()) \
			return INVALID_ARGUMENTS; \
	} while (0)
#define GIVE(to, value) \
	do { \
		*to = value; \
		return 0; \
	} while (0)

rsmi_status_t rsmi_init(uint64_t flags)
{
	(void)flags;
	return fake_fault("rsmi_init");
}

rsmi_status_t rsmi_status_string(rsmi_status_t code, const char **text)
{
	*text = code == 0                  ? "RSMI_STATUS_SUCCESS" :
		code == RSMI_NOT_SUPPORTED ? "RSMI_STATUS_NOT_SUPPORTED" :
					     "RSMI_STATUS_UNKNOWN_ERROR";
	return 0;
}

rsmi_status_t rsmi_num_monitor_devices(uint32_t *count)
{
	*count = devices();
	return fake_fault("rsmi_num_monitor_devices");
}

rsmi_status_t rsmi_dev_pci_id_get(uint32_t device, uint64_t *id)
{
	ENTER(rsmi_dev_pci_id_get, device);
	GIVE(id, (uint64_t)(0x83 + device) << 8);
}

rsmi_status_t rsmi_dev_busy_percent_get(uint32_t device, uint32_t *percent)
{
	ENTER(rsmi_dev_busy_percent_get, device);
	GIVE(percent, 50);
}

rsmi_status_t rsmi_dev_memory_busy_percent_get(uint32_t device, uint32_t *percent)
{
	ENTER(rsmi_dev_memory_busy_percent_get, device);
	GIVE(percent, 25);
}

rsmi_status_t rsmi_dev_memory_total_get(uint32_t device, rsmi_memory_type_t type, uint64_t *bytes)
{
	ENTER(rsmi_dev_memory_total_get, device);
	(void)type;
	GIVE(bytes, (uint64_t)4 << 30);
}

rsmi_status_t rsmi_dev_memory_usage_get(uint32_t device, rsmi_memory_type_t type, uint64_t *bytes)
{
	ENTER(rsmi_dev_memory_usage_get, device);
	(void)type;
	GIVE(bytes, (uint64_t)1 << 30);
}

rsmi_status_t rsmi_dev_temp_metric_get(uint32_t device, uint32_t sensor,
				       rsmi_temperature_metric_t metric, int64_t *millidegrees)
{
	ENTER(rsmi_dev_temp_metric_get, device);
	if (sensor == RSMI_TEMP_TYPE_EDGE || metric != RSMI_TEMP_CURRENT)
		return RSMI_NOT_SUPPORTED; // as for cards in a rack
	GIVE(millidegrees, 61000);
}

rsmi_status_t rsmi_dev_power_ave_get(uint32_t device, uint32_t sensor, uint64_t *microwatts)
{
	ENTER(rsmi_dev_power_ave_get, device);
	(void)sensor;
	(void)microwatts;
	return RSMI_NOT_SUPPORTED; // too
}

rsmi_status_t rsmi_dev_current_socket_power_get(uint32_t device, uint64_t *microwatts)
{
	ENTER(rsmi_dev_current_socket_power_get, device);
	GIVE(microwatts, 151000000);
}

rsmi_status_t rsmi_dev_power_cap_get(uint32_t device, uint32_t sensor, uint64_t *microwatts)
{
	ENTER(rsmi_dev_power_cap_get, device);
	(void)sensor;
	GIVE(microwatts, 400000000);
}

rsmi_status_t rsmi_dev_energy_count_get(uint32_t device, uint64_t *count, float *microjoules_each,
					uint64_t *time)
{
	ENTER(rsmi_dev_energy_count_get, device);
	*microjoules_each = 15.3f;
	*time = 1;
	GIVE(count, 8000000);
}

rsmi_status_t rsmi_dev_fan_speed_get(uint32_t device, uint32_t sensor, int64_t *speed)
{
	ENTER(rsmi_dev_fan_speed_get, device);
	(void)sensor;
	(void)speed;
	return RSMI_NOT_SUPPORTED;
}

rsmi_status_t rsmi_dev_fan_speed_max_get(uint32_t device, uint32_t sensor, uint64_t *speed)
{
	ENTER(rsmi_dev_fan_speed_max_get, device);
	(void)sensor;
	(void)speed;
	return RSMI_NOT_SUPPORTED;
}
