// SPDX-License-Identifier: Apache-2.0
// Telemetry from the files of the kernel drivers amdgpu, i915 and xe, found by PCI address.
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "observe/sysfs.h"
#include "observe/telemetry.h"

static void know(struct yoke_sample *s, uint32_t bit, double x, double *to)
{
	if (isnan(x))
		return;
	*to = x;
	s->known |= bit;
}

static void know_count(struct yoke_sample *s, uint32_t bit, double x, uint64_t *to)
{
	if (!(x >= 0))
		return;
	*to = (uint64_t)x;
	s->known |= bit;
}

static double either(double a, double b)
{
	return isnan(a) ? b : a;
}

// The card's sensors: temperatures in 1e-3 degrees, power in 1e-6 W, energy in 1e-6 J, a fan in
// 1/255.
static void sensors(const char *card, struct yoke_sample *s)
{
	char folder[YK_SYS_PATH], sensor[YK_SYS_PATH], path[2 * YK_SYS_PATH], label[32];
	snprintf(path, sizeof path, "%s/hwmon", card);
	if (strlen(path) >= YK_SYS_PATH || !yk_sys_entry(path, "hwmon", 0, folder))
		return;
	know(s, YOKE_SAMPLE_TEMP, yk_sys_number_in(folder, "temp1_input", 1e-3), &s->temp_c);
	for (int i = 0; yk_sys_entry(folder, "temp", i, sensor); i++) {
		const size_t n = strlen(sensor);
		if (n < 6 || strcmp(sensor + n - 6, "_label") ||
		    yk_sys_read(sensor, label, sizeof label) || strcmp(label, "mem"))
			continue;
		snprintf(path, sizeof path, "%.*s_input", (int)(n - 6), sensor);
		know(s, YOKE_SAMPLE_MEM_TEMP, yk_sys_number(path, 1e-3), &s->mem_temp_c);
	}
	know(s, YOKE_SAMPLE_POWER,
	     either(yk_sys_number_in(folder, "power1_average", 1e-6),
		    yk_sys_number_in(folder, "power1_input", 1e-6)),
	     &s->power_w);
	know(s, YOKE_SAMPLE_POWER_LIMIT,
	     either(yk_sys_number_in(folder, "power1_cap", 1e-6),
		    yk_sys_number_in(folder, "power1_max", 1e-6)),
	     &s->power_limit_w);
	know(s, YOKE_SAMPLE_ENERGY, yk_sys_number_in(folder, "energy1_input", 1e-6), &s->energy_j);
	know(s, YOKE_SAMPLE_FAN, yk_sys_number_in(folder, "pwm1", 1.0 / 255), &s->fan);
	know_count(s, YOKE_SAMPLE_CLOCK, yk_sys_number_in(folder, "freq1_input", 1), &s->clock_hz);
	know_count(s, YOKE_SAMPLE_MEM_CLOCK, yk_sys_number_in(folder, "freq2_input", 1),
		   &s->mem_clock_hz);
}

// amdgpu lists the levels of a clock, the last of which is the highest: "2: 2400Mhz *".
static double highest(const char *card, const char *name)
{
	char path[2 * YK_SYS_PATH], text[YK_SYS_TEXT];
	double max = NAN;
	snprintf(path, sizeof path, "%s/%s", card, name);
	if (yk_sys_read(path, text, sizeof text))
		return NAN;
	for (const char *colon = text; (colon = strchr(colon, ':')); colon++) {
		const double mhz = yk_strtod(colon + 1, NULL);
		if (mhz > 0 && !(mhz <= max))
			max = mhz;
	}
	return max * 1e6;
}

// Frequencies of Intel's drivers, in MHz.
static void intel(const char *card, struct yoke_sample *s)
{
	char folder[YK_SYS_PATH], path[2 * YK_SYS_PATH];
	snprintf(path, sizeof path, "%s/drm", card);
	if (strlen(path) < YK_SYS_PATH && yk_sys_entry(path, "card", 0, folder)) { // i915
		know_count(s, YOKE_SAMPLE_CLOCK,
			   either(yk_sys_number_in(folder, "gt_act_freq_mhz", 1e6),
				  yk_sys_number_in(folder, "gt_cur_freq_mhz", 1e6)),
			   &s->clock_hz);
		know_count(s, YOKE_SAMPLE_CLOCK_MAX,
			   yk_sys_number_in(folder, "gt_max_freq_mhz", 1e6), &s->clock_max_hz);
	}
	snprintf(path, sizeof path, "%s/tile0/gt0/freq0", card); // xe
	know_count(s, YOKE_SAMPLE_CLOCK, yk_sys_number_in(path, "act_freq", 1e6), &s->clock_hz);
	know_count(s, YOKE_SAMPLE_CLOCK_MAX, yk_sys_number_in(path, "max_freq", 1e6),
		   &s->clock_max_hz);
}

bool yk_telemetry_system(const char *pci, struct yoke_sample *s)
{
	char card[128];
	*s = (struct yoke_sample){ .size = sizeof *s };
	if (strspn(pci, "0123456789abcdefABCDEF:.") != strlen(pci) || !*pci)
		return false;
	snprintf(card, sizeof card, "/sys/bus/pci/devices/%s", pci);
	know(s, YOKE_SAMPLE_UTIL, yk_sys_number_in(card, "gpu_busy_percent", .01), &s->util);
	know(s, YOKE_SAMPLE_MEM_UTIL, yk_sys_number_in(card, "mem_busy_percent", .01),
	     &s->mem_util);
	know_count(s, YOKE_SAMPLE_MEM_USED, yk_sys_number_in(card, "mem_info_vram_used", 1),
		   &s->mem_used);
	know_count(s, YOKE_SAMPLE_MEM_TOTAL, yk_sys_number_in(card, "mem_info_vram_total", 1),
		   &s->mem_total);
	sensors(card, s);
	know_count(s, YOKE_SAMPLE_CLOCK_MAX, highest(card, "pp_dpm_sclk"), &s->clock_max_hz);
	intel(card, s);
	return s->known;
}
