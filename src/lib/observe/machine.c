// SPDX-License-Identifier: Apache-2.0
// Samples the host and this process.  A value that the system does not report is NaN, never 0.
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/number.h"
#include "observe/machine.h"
#include "observe/sysfs.h"

static double min_of(double a, double b)
{
	return isnan(a) ? b : isnan(b) ? a : fmin(a, b);
}

// ---- processors and the process ----

// Time of all processors in ticks: the first line of /proc/stat has user nice system idle iowait
// irq softirq steal.
static void read_processors(double *busy, double *all)
{
	char text[256];
	double t[8] = { 0 };
	*busy = *all = NAN;
	if (yk_sys_read("/proc/stat", text, sizeof text) || strncmp(text, "cpu ", 4) ||
	    yk_sscanf(text + 4, "%lf %lf %lf %lf %lf %lf %lf %lf", &t[0], &t[1], &t[2], &t[3],
		      &t[4], &t[5], &t[6], &t[7]) < 4)
		return;
	*all = 0;
	for (int i = 0; i < 8; i++)
		*all += t[i];
	*busy = *all - t[3] - t[4];
}

// Processor seconds of this process, and its thread count; proc(5): fields 14, 15 and 20, counted
// after the name, which may contain any character.
static double read_process(double *threads)
{
	char text[1024];
	double user, system;
	*threads = NAN;
	if (yk_sys_read("/proc/self/stat", text, sizeof text))
		return NAN;
	const char *at = strrchr(text, ')');
	if (!at ||
	    yk_sscanf(at + 1,
		      " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lf %lf %*d %*d %*d %*d %lf",
		      &user, &system, threads) != 3)
		return NAN;
	const long tick = sysconf(_SC_CLK_TCK);
	return (user + system) / (double)(tick > 0 ? tick : 100);
}

static void sample_processors(struct yk_host_state *s, struct yoke_host_sample *to)
{
	double busy, all, now = (double)yk_nanoseconds(), process = read_process(&to->threads);
	read_processors(&busy, &all);
	if (s->seen && all > s->all && busy >= s->busy)
		to->cpu = (busy - s->busy) / (all - s->all);
	if (s->seen && now > s->ns && process >= s->process)
		to->process_cpu = (process - s->process) / (1e-9 * (now - s->ns));
	s->busy = busy;
	s->all = all;
	s->process = process;
	s->ns = now;
	s->seen = true;
}

static void sample_files(struct yoke_host_sample *to)
{
	static const char *const waits[] = { "cpu", "memory", "io" };
	double *const pressure[] = { &to->pressure_cpu, &to->pressure_memory, &to->pressure_io };
	char text[YK_SYS_TEXT], path[64];
	if (!yk_sys_read("/proc/self/status", text, sizeof text)) {
		to->rss = yk_sys_field(text, "VmRSS", 1024);
		to->rss_peak = yk_sys_field(text, "VmHWM", 1024);
	}
	if (!yk_sys_read("/proc/self/io", text, sizeof text)) {
		to->read_bytes = yk_sys_field(text, "read_bytes", 1);
		to->written_bytes = yk_sys_field(text, "write_bytes", 1);
	}
	if (!yk_sys_read("/proc/meminfo", text, sizeof text)) {
		to->memory_total = yk_sys_field(text, "MemTotal", 1024);
		to->memory_available = yk_sys_field(text, "MemAvailable", 1024);
	}
	for (int i = 0; i < 3; i++) { // "some avg10=0.12 avg60=.."
		snprintf(path, sizeof path, "/proc/pressure/%s", waits[i]);
		const char *at =
			yk_sys_read(path, text, sizeof text) ? NULL : strstr(text, "some avg10=");
		if (at)
			*pressure[i] = yk_strtod(at + strlen("some avg10="), NULL) / 100;
	}
}

// ---- heat and clocks ----

// Temperature of the hottest processor sensor.
static double hottest(void)
{
	char folder[YK_SYS_PATH], name[64], path[YK_SYS_PATH + 8], entry[YK_SYS_PATH];
	double max = NAN;
	for (int i = 0; yk_sys_entry("/sys/class/hwmon", "hwmon", i, folder); i++) {
		snprintf(path, sizeof path, "%s/name", folder);
		if (yk_sys_read(path, name, sizeof name) ||
		    (strcmp(name, "coretemp") && strcmp(name, "k10temp") &&
		     strcmp(name, "zenpower") && strcmp(name, "cpu_thermal")))
			continue;
		for (int k = 0; yk_sys_entry(folder, "temp", k, entry); k++) {
			const size_t n = strlen(entry);
			const double t = n > 6 && !strcmp(entry + n - 6, "_input") ?
						 yk_sys_number(entry, 1e-3) :
						 NAN;
			max = isnan(max) || t > max ? (isnan(t) ? max : t) : max;
		}
	}
	return max;
}

// Mean clock of all processors, and the highest maximum clock.
static void clocks(struct yoke_host_sample *to)
{
	char folder[YK_SYS_PATH];
	double sum = 0;
	int n = 0;
	for (int i = 0; yk_sys_entry("/sys/devices/system/cpu/cpufreq", "policy", i, folder); i++) {
		const double hz = yk_sys_number_in(folder, "scaling_cur_freq", 1e3);
		const double max = yk_sys_number_in(folder, "cpuinfo_max_freq", 1e3);
		sum += isnan(hz) ? 0 : hz;
		n += !isnan(hz);
		if (!isnan(max))
			to->clock_max_hz =
				isnan(to->clock_max_hz) ? max : fmax(to->clock_max_hz, max);
	}
	if (n)
		to->clock_hz = sum / n;
}

// ---- energy ----

static void rapl_find(struct yk_host_state *s)
{
	char folder[YK_SYS_PATH];
	s->rapls = 0;
	for (int i = 0; s->rapls < YK_RAPL_MAX &&
			yk_sys_entry("/sys/class/powercap", "intel-rapl:", i, folder);
	     i++)
		// packages; names of subdomains have a second colon
		if (!strchr(strchr(folder, ':') + 1, ':')) {
			struct yk_rapl *r = &s->rapl[s->rapls++];
			snprintf(r->path, sizeof r->path, "%.90s", folder);
			r->last = yk_sys_number_in(folder, "energy_uj", 1);
			r->joules = 0;
		}
}

// Joules of all packages since the first sample.  A counter wraps at max_energy_range_uj.
static void energy(struct yk_host_state *s, bool first, struct yoke_host_sample *to)
{
	char path[128], text[64];
	double sum = 0;
	if (first)
		rapl_find(s);
	if (!s->rapls)
		snprintf(to->energy_why, sizeof to->energy_why, "there is no RAPL");
	for (int i = 0; i < s->rapls && !*to->energy_why; i++) {
		struct yk_rapl *r = &s->rapl[i];
		snprintf(path, sizeof path, "%s/energy_uj", r->path);
		const int code = yk_sys_read(path, text, sizeof text);
		if (code) {
			snprintf(to->energy_why, sizeof to->energy_why, "%s",
				 code == EACCES || code == EPERM ?
					 "RAPL is readable by root only since Linux 5.10" :
					 strerror(code));
			break;
		}
		const double now = yk_strtod(text, NULL),
			     range = yk_sys_number_in(r->path, "max_energy_range_uj", 1);
		double more = now - r->last;
		if (more < 0)
			more += isnan(range) ? -more : range;
		r->joules += isnan(more) ? 0 : 1e-6 * more;
		r->last = now;
		sum += r->joules;
	}
	if (!*to->energy_why)
		to->energy_j = sum;
}

// ---- control groups ----

// The group's path in a hierarchy: version 2 (controller "") or version 1.
static bool group_path(const char *text, const char *controller, char *to, size_t cap)
{
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		const char *names = strchr(line, ':'),
			   *path = names ? strchr(names + 1, ':') : NULL;
		if (!path)
			continue;
		const size_t n = (size_t)(path - names - 1), want = strlen(controller);
		bool is = !want && !n;
		for (const char *at = names + 1; want && at < path; at += strcspn(at, ",:") + 1)
			is |= strcspn(at, ",:") == want && !strncmp(at, controller, want);
		if (is) {
			snprintf(to, cap, "%.*s", (int)strcspn(path + 1, "\n"), path + 1);
			return true;
		}
	}
	return false;
}

struct group { // one hierarchy: where it is mounted, and the group there
	const char *mount;
	char path[YK_SYS_PATH / 2];
	void (*look)(const char *folder, struct yoke_host_sample *to);
};

// Visits the group and its ancestors: each may have a limit.
static void up_the_tree(struct group *g, struct yoke_host_sample *to)
{
	char folder[YK_SYS_PATH];
	for (;;) {
		while (*g->path && g->path[strlen(g->path) - 1] == '/')
			g->path[strlen(g->path) - 1] = 0;
		snprintf(folder, sizeof folder, "%s%s", g->mount, g->path);
		g->look(folder, to);
		char *end = strrchr(g->path, '/');
		if (!end)
			break;
		*end = 0;
	}
}

static double read_in(const char *folder, const char *name, const char *word, double unit)
{
	char path[2 * YK_SYS_PATH], text[YK_SYS_TEXT];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	return yk_sys_read(path, text, sizeof text) ? NAN : yk_sys_field(text, word, unit);
}

// Keeps the first value: that of the group itself, which is visited first.
static void take(double *to, double x)
{
	*to = isnan(*to) ? x : *to;
}

static void look_2(const char *folder, struct yoke_host_sample *to)
{
	char path[2 * YK_SYS_PATH], text[64];
	double quota, period;
	snprintf(path, sizeof path, "%s/cpu.max", folder);
	if (!yk_sys_read(path, text, sizeof text) &&
	    yk_sscanf(text, "%lf %lf", &quota, &period) == 2 && period > 0)
		to->cpu_limit = min_of(to->cpu_limit, quota / period);
	// "max" reads as NaN
	to->memory_limit = min_of(to->memory_limit, yk_sys_number_in(folder, "memory.max", 1));
	take(&to->memory_used, yk_sys_number_in(folder, "memory.current", 1));
	take(&to->oom_kills, read_in(folder, "memory.events", "oom_kill", 1));
	take(&to->throttled_s, read_in(folder, "cpu.stat", "throttled_usec", 1e-6));
}

static void look_memory_1(const char *folder, struct yoke_host_sample *to)
{
	const double limit = yk_sys_number_in(folder, "memory.limit_in_bytes", 1);
	if (limit < 0x1p62) // version 1 reports "no limit" as a huge number
		to->memory_limit = min_of(to->memory_limit, limit);
	take(&to->memory_used, yk_sys_number_in(folder, "memory.usage_in_bytes", 1));
	take(&to->oom_kills, read_in(folder, "memory.oom_control", "oom_kill", 1));
}

static void look_cpu_1(const char *folder, struct yoke_host_sample *to)
{
	const double quota = yk_sys_number_in(folder, "cpu.cfs_quota_us", 1);
	const double period = yk_sys_number_in(folder, "cpu.cfs_period_us", 1);
	if (quota > 0 && period > 0)
		to->cpu_limit = min_of(to->cpu_limit, quota / period);
	take(&to->throttled_s, read_in(folder, "cpu.stat", "throttled_time", 1e-9));
}

static void groups(struct yoke_host_sample *to)
{
	char text[YK_SYS_TEXT];
	struct group memory = { "/sys/fs/cgroup/memory", "", look_memory_1 };
	struct group cpu = { "/sys/fs/cgroup/cpu", "", look_cpu_1 },
		     both = { "/sys/fs/cgroup", "", look_2 };
	if (yk_sys_read("/proc/self/cgroup", text, sizeof text))
		return;
	if (group_path(text, "memory", memory.path, sizeof memory.path))
		up_the_tree(&memory, to);
	if (group_path(text, "cpu", cpu.path, sizeof cpu.path))
		up_the_tree(&cpu, to);
	if (group_path(text, "", both.path, sizeof both.path))
		up_the_tree(&both, to);
}

// Copies hwloc's constant topology data.
static void topology(const struct yk_host_state *s, struct yoke_host_sample *to)
{
	to->packages = s->count.packages;
	to->cores = s->count.cores;
	to->processors = s->count.processors;
	to->processors_allowed = s->count.allowed;
	to->numa_nodes = s->count.nodes;
}

void yk_host_begin(struct yk_host_state *s)
{
	*s = (struct yk_host_state){ 0 };
	yk_topology_count(&s->count);
}

void yk_host_sample(struct yk_host_state *s, struct yoke_host_sample *to)
{
	const bool first = !s->seen;
	*to = (struct yoke_host_sample){ .size = sizeof *to,
					 .cpu = NAN,
					 .process_cpu = NAN,
					 .threads = NAN,
					 .rss = NAN,
					 .rss_peak = NAN,
					 .read_bytes = NAN,
					 .written_bytes = NAN,
					 .pressure_cpu = NAN,
					 .pressure_memory = NAN,
					 .pressure_io = NAN,
					 .temp_c = NAN,
					 .clock_hz = NAN,
					 .clock_max_hz = NAN,
					 .memory_total = NAN,
					 .memory_available = NAN,
					 .memory_limit = NAN,
					 .memory_used = NAN,
					 .cpu_limit = NAN,
					 .oom_kills = NAN,
					 .throttled_s = NAN,
					 .energy_j = NAN };
	sample_processors(s, to);
	sample_files(to);
	to->temp_c = hottest();
	clocks(to);
	energy(s, first, to);
	groups(to);
	topology(s, to);
}

double yk_host_memory_limit(void)
{
	struct yoke_host_sample s = { .cpu_limit = NAN,
				      .memory_limit = NAN,
				      .memory_used = NAN,
				      .oom_kills = NAN,
				      .throttled_s = NAN };
	groups(&s);
	return s.memory_limit;
}

// ---- as JSON ----

json_t *yk_host_json(const struct yoke_host_sample *h)
{
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"cpu", yk_json_of_real(h->cpu), "process_cpu", yk_json_of_real(h->process_cpu),
		"rss", yk_json_of_int(h->rss), "energy_why",
		*h->energy_why ? json_string(h->energy_why) : json_null(), "threads",
		yk_json_of_int(h->threads), "rss_peak", yk_json_of_int(h->rss_peak), "read_bytes",
		yk_json_of_int(h->read_bytes), "written_bytes", yk_json_of_int(h->written_bytes),
		"pressure_cpu", yk_json_of_real(h->pressure_cpu), "pressure_memory",
		yk_json_of_real(h->pressure_memory), "pressure_io", yk_json_of_real(h->pressure_io),
		"temp_c", yk_json_of_real(h->temp_c), "clock_hz", yk_json_of_int(h->clock_hz),
		"clock_max_hz", yk_json_of_int(h->clock_max_hz), "memory_total",
		yk_json_of_int(h->memory_total), "memory_available",
		yk_json_of_int(h->memory_available), "memory_limit",
		yk_json_of_int(h->memory_limit), "memory_used", yk_json_of_int(h->memory_used),
		"cpu_limit", yk_json_of_real(h->cpu_limit), "oom_kills",
		yk_json_of_int(h->oom_kills), "throttled_s", yk_json_of_real(h->throttled_s),
		"energy_j", yk_json_of_real(h->energy_j), "packages", yk_json_of_int(h->packages),
		"cores", yk_json_of_int(h->cores), "processors", yk_json_of_int(h->processors),
		"processors_allowed", yk_json_of_int(h->processors_allowed), "numa_nodes",
		yk_json_of_int(h->numa_nodes));
}
