// SPDX-License-Identifier: Apache-2.0
// Samples the devices, the host and the processes of this machine for `yoke top`.
#include "config.h"

#include "live/hardware.h"

#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/number.h"
#include "observe/telemetry.h"

void yk_hardware_open(struct yk_hardware *h)
{
	*h = (struct yk_hardware){ .watts = NAN, .joules = NAN };
	for (struct yk_device *d = yk_devices("*"); d && h->devices < YK_HARDWARE_DEVICES;
	     d = d->next)
		h->device[h->devices++].device = d;
	yk_host_begin(&h->state);
	yk_hardware_sample(h);
}

// ---- devices ----

// The CPU's state is that of the host.
static void complete_cpu(const struct yk_hardware *h, struct yoke_sample *s)
{
	const struct yoke_host_sample *o = &h->host;
	const struct {
		uint32_t bit;
		double from, *to;
	} reals[] = { { YOKE_SAMPLE_UTIL, o->cpu, &s->util },
		      { YOKE_SAMPLE_TEMP, o->temp_c, &s->temp_c },
		      { YOKE_SAMPLE_POWER, h->watts, &s->power_w } };
	for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
		if (isfinite(reals[i].from) && !(s->known & reals[i].bit)) {
			*reals[i].to = reals[i].from;
			s->known |= reals[i].bit;
		}
	if (isfinite(o->memory_total) && isfinite(o->memory_available)) {
		s->mem_total = (uint64_t)o->memory_total;
		s->mem_used = (uint64_t)(o->memory_total - o->memory_available);
		s->known |= YOKE_SAMPLE_MEM_TOTAL | YOKE_SAMPLE_MEM_USED;
	}
}

// ---- processes ----

// The id of the device at that PCI address, or the text itself.
static const char *id_of(const struct yk_hardware *h, const char *pci)
{
	for (int i = 0; i < h->devices; i++)
		if (*h->device[i].device->info.pci &&
		    yk_same_word(h->device[i].device->info.pci, pci))
			return h->device[i].device->id;
	return pci;
}

static void add_device(struct yk_user *u, const char *id)
{
	const size_t n = strlen(u->device), length = strlen(id);
	bool there = false;
	for (const char *at = u->device; *at && !there; at += strcspn(at, ","), at += *at == ',')
		there = !strncmp(at, id, length) && (!at[length] || at[length] == ',');
	if (!there)
		snprintf(u->device + n, sizeof u->device - n, "%s%.40s", n ? "," : "", id);
}

struct opened {
	const struct yk_hardware *hardware;
	struct yk_user *user;
};

// The device of an NVIDIA node by its minor number, from the driver's list.
static const char *nvidia(const struct yk_hardware *h, const char *minor, char to[320])
{
	static const char folder[] = "/proc/driver/nvidia/gpus";
	DIR *dir = opendir(folder);
	const struct dirent *d;
	const char *found = NULL;
	char path[320], line[256];
	while (dir && !found && (d = readdir(dir))) {
		snprintf(path, sizeof path, "%s/%s/information", folder, d->d_name);
		FILE *f = *d->d_name == '.' ? NULL : fopen(path, "re");
		while (f && fgets(line, sizeof line, f))
			if (!strncmp(line, "Device Minor:", 13) && atol(line + 13) == atol(minor)) {
				snprintf(to, 320, "%s", d->d_name);
				found = id_of(h, to);
			}
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return found;
}

// Device nodes of GPUs among the files of a process.
static void open_file(void *arg, const char *target)
{
	struct opened *o = arg;
	char address[320];
	if (!strncmp(target, "/dev/nvidia", 11) && isdigit((unsigned char)target[11])) {
		const char *id = nvidia(o->hardware, target + 11, address);
		add_device(o->user, id ? id : target);
	} else if (!strncmp(target, "/dev/dri/renderD", 16)) {
		char path[64], link[256];
		snprintf(path, sizeof path, "/sys/class/drm/%.24s/device", target + 9);
		const ssize_t n = readlink(path, link, sizeof link - 1);
		link[n > 0 ? n : 0] = '\0';
		const char *slash = strrchr(link, '/');
		add_device(o->user, slash ? id_of(o->hardware, slash + 1) : target);
	} else if (!strcmp(target, "/dev/kfd")) {
		add_device(o->user, "kfd");
	}
}

// Device memory that the kernel's drivers account to a process, in bytes; NaN: none of them does.
static double device_memory(pid_t pid)
{
	char path[320], line[256], unit[8];
	unsigned long long n;
	double sum = NAN;
	snprintf(path, sizeof path, "/proc/%ld/fdinfo", (long)pid);
	DIR *dir = opendir(path);
	const struct dirent *d;
	while (dir && (d = readdir(dir))) {
		snprintf(path, sizeof path, "/proc/%ld/fdinfo/%s", (long)pid, d->d_name);
		FILE *f = *d->d_name == '.' ? NULL : fopen(path, "re");
		while (f && fgets(line, sizeof line, f))
			if (sscanf(line, "drm-memory-vram: %llu %7s", &n, unit) == 2 ||
			    sscanf(line, "drm-total-vram0: %llu %7s", &n, unit) == 2)
				sum = (isnan(sum) ? 0 : sum) +
				      (double)n * (!strcmp(unit, "MiB") ? 0x1p20 :
						   !strcmp(unit, "KiB") ? 0x1p10 :
									  1);
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return sum;
}

// Whether the process has loaded libyoke, or is the command.
static bool runs_yoke(pid_t pid)
{
	char path[64], line[512];
	bool found = false;
	snprintf(path, sizeof path, "/proc/%ld/maps", (long)pid);
	FILE *f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof line, f)) {
		const char *slash = strrchr(line, '/');
		found = slash && (!strncmp(slash, "/libyoke", 8) || !strcmp(slash, "/yoke\n"));
	}
	if (f)
		fclose(f);
	return found;
}

static void look_at(struct yk_hardware *h, pid_t pid, const struct yk_hardware *before)
{
	struct yk_user u = { .pid = pid, .rss = NAN, .share = NAN };
	struct opened o = { h, &u };
	yk_process_files(pid, open_file, &o);
	if (pid == getpid() || h->users == YK_HARDWARE_USERS || (!*u.device && !runs_yoke(pid)) ||
	    !yk_process_read(pid, u.name, &u.cpu, &u.rss))
		return;
	if (!*u.device)
		snprintf(u.device, sizeof u.device, "cpu:0");
	u.memory = device_memory(pid);
	u.since = yk_seconds();
	for (int i = 0; i < before->users; i++)
		if (before->user[i].pid == pid && u.since > before->user[i].since)
			u.share = (u.cpu - before->user[i].cpu) / (u.since - before->user[i].since);
	h->user[h->users++] = u;
}

static void find_users(struct yk_hardware *h)
{
	struct yk_hardware *before = malloc(sizeof *before);
	DIR *dir = before ? opendir("/proc") : NULL;
	const struct dirent *d;
	if (before)
		*before = *h;
	h->users = 0;
	while (dir && (d = readdir(dir)))
		if (isdigit((unsigned char)*d->d_name))
			look_at(h, (pid_t)atol(d->d_name), before);
	if (dir)
		closedir(dir);
	free(before);
}

void yk_hardware_sample(struct yk_hardware *h)
{
	const double joules = h->joules, at = h->at;
	yk_host_sample(&h->state, &h->host);
	h->at = yk_seconds();
	h->joules = h->host.energy_j;
	h->watts = h->at > at ? (h->joules - joules) / (h->at - at) : NAN;
	for (int i = 0; i < h->devices; i++) {
		struct yk_hardware_device *d = &h->device[i];
		if (!yk_telemetry_sample(d->device, &d->sample))
			d->sample = (struct yoke_sample){ .size = sizeof d->sample };
		if (!strncmp(d->device->id, "cpu:", 4))
			complete_cpu(h, &d->sample);
	}
	find_users(h);
}

void yk_hardware_assign(struct yk_hardware *h, pid_t pid, const char *device)
{
	for (int i = 0; i < h->users && *device; i++)
		if (h->user[i].pid == pid)
			snprintf(h->user[i].device, sizeof h->user[i].device, "%.63s", device);
}

// ---- JSON ----

json_t *yk_hardware_host_json(const struct yk_hardware *h)
{
	char name[256] = "";
	json_t *o = yk_host_json(&h->host);
	gethostname(name, sizeof name - 1);
	json_object_set_new(o, "name", yk_json_of_text(name));
	json_object_set_new(o, "power_w", yk_json_of_real(h->watts));
	return o;
}

json_t *yk_hardware_devices_json(const struct yk_hardware *h)
{
	json_t *list = json_array();
	for (int i = 0; i < h->devices; i++) {
		const struct yk_device *d = h->device[i].device;
		json_t *o = yk_telemetry_json(&h->device[i].sample);
		json_object_set_new(o, "id", yk_json_of_text(d->id));
		json_object_set_new(o, "name", yk_json_of_text(d->info.name));
		json_object_set_new(o, "driver", yk_json_of_text(d->info.driver));
		json_object_set_new(o, "pci", yk_json_of_text(d->info.pci));
		json_array_append_new(list, o);
	}
	return list;
}

json_t *yk_hardware_users_json(const struct yk_hardware *h)
{
	json_t *list = json_array();
	for (int i = 0; i < h->users; i++) {
		const struct yk_user *u = &h->user[i];
		json_array_append_new(
			list, json_pack("{s:I, s:o, s:o, s:o, s:o, s:o}", "pid", (json_int_t)u->pid,
					"name", yk_json_of_text(u->name), "devices",
					yk_json_of_text(u->device), "cpu",
					yk_json_of_real(u->share), "rss", yk_json_of_real(u->rss),
					"device_memory", yk_json_of_real(u->memory)));
	}
	return list;
}
