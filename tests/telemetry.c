// SPDX-License-Identifier: Apache-2.0
// Tests telemetry: host samples from recorded trees of /proc and /sys, device samples from
// recorded files and from a backend that returns invalid values or blocks, and the lines of a
// recorder.
#include "config.h"

#include <jansson.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"
#include "graph/context.h"
#include "observe/machine.h"
#include "observe/telemetry.h"
#include "tap.h"
#include "yoke-dist.h"

#ifndef HAVE_HWLOC
#define HAVE_HWLOC 0
#endif

static atomic_int warnings;
static char last[400];

static void keep_warning(int level, const char *topic, const char *line, void *arg)
{
	(void)arg;
	if (level <= YOKE_LOG_WARN && !strcmp(topic, "telemetry")) {
		warnings++;
		snprintf(last, sizeof last, "%s", line);
	}
}

// ---- trees ----

static char root[200];

static void put(const char *path, const char *text)
{
	char name[600];
	snprintf(name, sizeof name, "%s%s", root, path);
	for (char *c = name + 1; (c = strchr(c, '/')); c++) {
		*c = 0;
		mkdir(name, 0777);
		*c = '/';
	}
	FILE *f = fopen(name, "w");
	if (f)
		fputs(text, f);
	if (f)
		fclose(f);
}

static void tree(const char *name)
{
	snprintf(root, sizeof root, "tree.%s", name);
	mkdir(root, 0777);
	yoke_setting_set("telemetry.root", root);
}

static bool is(double got, double want)
{
	return isnan(want) ? isnan(got) : fabs(got - want) <= 1e-9 * fabs(want) + 1e-12;
}

#define SELF "4242 (a )b) c) R 1 2 3 4 5 6 7 8 9 10 "

// An Intel server with cgroups of version 2, whose energy counter wraps.
static void test_intel(void)
{
	struct yk_host_state s;
	struct yoke_host_sample h;
	tree("intel");
	put("/proc/stat", "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 2 3\n");
	put("/proc/self/stat", SELF "100 50 0 0 20 0 7 0 0\n");
	put("/proc/self/status",
	    "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nThreads:\t7\n");
	put("/proc/self/io",
	    "rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 3\n");
	put("/proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    600 kB\n");
	put("/proc/pressure/cpu", "some avg10=12.50 avg60=1.00 avg300=0.00 total=1\n");
	put("/proc/self/cgroup", "0::/user.slice/app.scope\n");
	put("/sys/fs/cgroup/memory.max", "max\n");
	put("/sys/fs/cgroup/user.slice/memory.max", "500000\n");
	put("/sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");
	put("/sys/fs/cgroup/user.slice/memory.current", "99\n");
	put("/sys/fs/cgroup/user.slice/app.scope/memory.max", "700000\n");
	put("/sys/fs/cgroup/user.slice/app.scope/memory.current", "1234\n");
	put("/sys/fs/cgroup/user.slice/app.scope/memory.events",
	    "low 0\nhigh 0\noom 5\noom_kill 2\n");
	put("/sys/fs/cgroup/user.slice/app.scope/cpu.max", "max 100000\n");
	put("/sys/fs/cgroup/user.slice/app.scope/cpu.stat",
	    "usage_usec 1\nthrottled_usec 2500000\n");
	put("/sys/class/hwmon/hwmon0/name", "nvme\n");
	put("/sys/class/hwmon/hwmon0/temp1_input", "99000\n");
	put("/sys/class/hwmon/hwmon1/name", "coretemp\n");
	put("/sys/class/hwmon/hwmon1/temp1_input", "51000\n");
	put("/sys/class/hwmon/hwmon1/temp2_input", "63500\n");
	put("/sys/class/hwmon/hwmon1/temp2_max", "100000\n");
	put("/sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq", "2000000\n");
	put("/sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq", "3000000\n");
	put("/sys/devices/system/cpu/cpufreq/policy1/scaling_cur_freq", "3000000\n");
	put("/sys/devices/system/cpu/cpufreq/policy1/cpuinfo_max_freq", "3500000\n");
	put("/sys/class/powercap/intel-rapl:0/energy_uj", "9000000\n");
	put("/sys/class/powercap/intel-rapl:0/max_energy_range_uj", "10000000\n");
	put("/sys/class/powercap/intel-rapl:0:0/energy_uj", "5\n");
	put("/sys/class/powercap/intel-rapl:1/energy_uj", "100\n");
	put("/sys/class/powercap/intel-rapl:1/max_energy_range_uj", "10000000\n");
	yk_host_begin(&s);
	yk_host_sample(&s, &h);
	ok(isnan(h.cpu) && isnan(h.process_cpu) && is(h.energy_j, 0) && is(h.threads, 7),
	   "the first sample has no rates");
	ok(is(h.rss, 1 << 20) && is(h.rss_peak, 2 << 20) && is(h.read_bytes, 4096) &&
		   is(h.written_bytes, 8192) && is(h.memory_total, 1024000) &&
		   is(h.memory_available, 614400),
	   "memory and files: %g %g", h.rss, h.written_bytes);
	ok(is(h.pressure_cpu, .125) && isnan(h.pressure_io) && isnan(h.pressure_memory),
	   "pressure %g", h.pressure_cpu);
	ok(is(h.temp_c, 63.5) && is(h.clock_hz, 2.5e9) && is(h.clock_max_hz, 3.5e9),
	   "%g C, %g Hz of %g", h.temp_c, h.clock_hz, h.clock_max_hz);
	ok(is(h.memory_limit, 500000) && is(h.cpu_limit, 1.5) && is(h.memory_used, 1234) &&
		   is(h.oom_kills, 2) && is(h.throttled_s, 2.5),
	   "the minimum of limits up the tree: %g bytes, %g processors", h.memory_limit,
	   h.cpu_limit);
	put("/proc/stat", "cpu  150 0 150 900 0 0 0 0 0 0\n");
	put("/proc/self/stat", SELF "200 50 0 0 20 0 9 0 0\n");
	put("/sys/class/powercap/intel-rapl:0/energy_uj", "1000000\n"); // after its end
	put("/sys/class/powercap/intel-rapl:1/energy_uj", "600100\n");
	yk_host_sample(&s, &h);
	ok(is(h.cpu, .5) && h.process_cpu > 0 && is(h.threads, 9), "busy %g", h.cpu);
	ok(is(h.energy_j, 2.6), "a counter that wraps: %g J", h.energy_j);
	ok(isnan(h.packages) && isnan(h.cores) && isnan(h.processors) && isnan(h.numa_nodes),
	   "the topology was not recorded");
}

#define NUMBERS(set) \
	"cpuset=\"" set "\" complete_cpuset=\"" set \
	"\" nodeset=\"0x00000001\" complete_nodeset=\"0x00000001\""
#define PROCESSOR(n, set) \
	"<object type=\"Core\" os_index=\"" n "\" " NUMBERS(set) \
	"><object type=\"PU\" os_index=\"" n "\" " NUMBERS(set) "/></object>"

// Two packages of two cores each at one memory node, the last of which belong to other processes;
// in the format that hwloc writes.
static void test_topology(void)
{
	struct yk_host_state s;
	struct yoke_host_sample h;
	tree("made");
	put("/topology.xml",
	    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n"
	    "<object type=\"Machine\" os_index=\"0\" allowed_cpuset=\"0x00000007\" allowed_nodeset=\"0x00000001\" "
	    NUMBERS("0x0000000f") ">"
	    "<object type=\"NUMANode\" os_index=\"0\" " NUMBERS("0x0000000f")
	    " local_memory=\"1000000\"/>"
	    "<object type=\"Package\" os_index=\"0\" " NUMBERS("0x00000003") ">"
	    PROCESSOR("0", "0x00000001") PROCESSOR("1", "0x00000002") "</object>"
	    "<object type=\"Package\" os_index=\"1\" " NUMBERS("0x0000000c") ">"
	    PROCESSOR("2", "0x00000004") PROCESSOR("3", "0x00000008")
	    "</object></object></topology>\n");
	yk_host_begin(&s);
	yk_host_sample(&s, &h);
	yk_host_sample(&s, &h);
#if HAVE_HWLOC
	const double want[] = { 2, 4, 4, 3, 1 };
#else
	const double want[] = { NAN, NAN, NAN, NAN, NAN };
#endif
	ok(is(h.packages, want[0]) && is(h.cores, want[1]) && is(h.processors, want[2]) &&
		   is(h.processors_allowed, want[3]) && is(h.numa_nodes, want[4]),
	   "%g packages, %g cores, %g processors, %g of them for this process, %g memory nodes",
	   h.packages, h.cores, h.processors, h.processors_allowed, h.numa_nodes);
	put("/topology.xml", "<?xml version=\"1.0\"?><topology");
	yk_host_begin(&s);
	yk_host_sample(&s, &h);
	ok(isnan(h.packages) && isnan(h.processors_allowed), "a truncated record is ignored");
}

// An AMD machine with cgroups of version 1, without RAPL.
static void test_version_1(void)
{
	struct yk_host_state s;
	struct yoke_host_sample h;
	tree("one");
	put("/proc/self/cgroup",
	    "12:cpuset:/\n5:cpu,cpuacct:/batch/job\n4:memory:/batch/job\n1:name=systemd:/x\n");
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("/sys/fs/cgroup/memory/batch/memory.limit_in_bytes", "3000000\n");
	put("/sys/fs/cgroup/memory/batch/job/memory.limit_in_bytes", "4000000\n");
	put("/sys/fs/cgroup/memory/batch/job/memory.usage_in_bytes", "77\n");
	put("/sys/fs/cgroup/memory/batch/job/memory.oom_control",
	    "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
	put("/sys/fs/cgroup/cpu/batch/job/cpu.cfs_quota_us", "-1\n");
	put("/sys/fs/cgroup/cpu/batch/job/cpu.cfs_period_us", "100000\n");
	put("/sys/fs/cgroup/cpu/batch/cpu.cfs_quota_us", "250000\n");
	put("/sys/fs/cgroup/cpu/batch/cpu.cfs_period_us", "100000\n");
	put("/sys/fs/cgroup/cpu/batch/job/cpu.stat",
	    "nr_periods 5\nnr_throttled 2\nthrottled_time 1500000000\n");
	put("/sys/class/hwmon/hwmon3/name", "k10temp\n");
	put("/sys/class/hwmon/hwmon3/temp1_input", "42125\n");
	yk_host_begin(&s);
	yk_host_sample(&s, &h);
	ok(is(h.memory_limit, 3000000) && is(h.cpu_limit, 2.5) && is(h.memory_used, 77) &&
		   is(h.oom_kills, 3) && is(h.throttled_s, 1.5),
	   "%g bytes, %g processors", h.memory_limit, h.cpu_limit);
	ok(is(h.temp_c, 42.125) && isnan(h.energy_j) && strstr(h.energy_why, "RAPL"),
	   "energy n/a: %s", h.energy_why);
	ok(isnan(h.cpu) && isnan(h.rss) && isnan(h.clock_hz), "values without a file are n/a");
}

static void test_empty(void)
{
	struct yk_host_state s;
	struct yoke_host_sample h;
	tree("none");
	put("/proc/stat", "nonsense\n");
	put("/proc/self/stat", "no parenthesis\n");
	put("/proc/self/cgroup", "::\n0\n:::\n");
	yk_host_begin(&s);
	yk_host_sample(&s, &h);
	yk_host_sample(&s, &h);
	ok(isnan(h.cpu) && isnan(h.process_cpu) && isnan(h.memory_limit) && isnan(h.temp_c) &&
		   isnan(h.energy_j),
	   "without a tree everything is n/a");
}

static void test_cards(void)
{
	struct yoke_sample s;
	tree("cards");
	put("/sys/bus/pci/devices/0000:03:00.0/gpu_busy_percent", "37\n");
	put("/sys/bus/pci/devices/0000:03:00.0/mem_info_vram_used", "1000\n");
	put("/sys/bus/pci/devices/0000:03:00.0/mem_info_vram_total", "4000\n");
	put("/sys/bus/pci/devices/0000:03:00.0/pp_dpm_sclk",
	    "0: 500Mhz\n1: 2400Mhz *\n2: 2500Mhz\n");
	put("/sys/bus/pci/devices/0000:03:00.0/hwmon/hwmon5/temp1_input", "65000\n");
	put("/sys/bus/pci/devices/0000:03:00.0/hwmon/hwmon5/temp3_input", "72000\n");
	put("/sys/bus/pci/devices/0000:03:00.0/hwmon/hwmon5/temp3_label", "mem\n");
	put("/sys/bus/pci/devices/0000:03:00.0/hwmon/hwmon5/power1_average", "150000000\n");
	put("/sys/bus/pci/devices/0000:03:00.0/hwmon/hwmon5/power1_cap", "200000000\n");
	put("/sys/bus/pci/devices/0000:03:00.0/hwmon/hwmon5/pwm1", "51\n");
	put("/sys/bus/pci/devices/0000:03:00.0/hwmon/hwmon5/freq1_input", "2400000000\n");
	ok(yk_telemetry_system("0000:03:00.0", &s) && is(s.util, .37) && s.mem_used == 1000 &&
		   s.mem_total == 4000 && is(s.temp_c, 65) && is(s.mem_temp_c, 72) &&
		   is(s.power_w, 150) && is(s.power_limit_w, 200) && is(s.fan, .2) &&
		   s.clock_hz == 2400000000u && s.clock_max_hz == 2500000000u &&
		   !(s.known & YOKE_SAMPLE_ENERGY),
	   "amdgpu: busy %g, %g W", s.util, s.power_w);
	put("/sys/bus/pci/devices/0000:00:02.0/drm/card1/gt_act_freq_mhz", "1300\n");
	put("/sys/bus/pci/devices/0000:00:02.0/drm/card1/gt_max_freq_mhz", "1500\n");
	put("/sys/bus/pci/devices/0000:00:02.0/hwmon/hwmon2/energy1_input", "7000000\n");
	ok(yk_telemetry_system("0000:00:02.0", &s) && s.clock_hz == 1300000000u &&
		   s.clock_max_hz == 1500000000u && is(s.energy_j, 7),
	   "i915: %g J", s.energy_j);
	put("/sys/bus/pci/devices/0000:08:00.0/tile0/gt0/freq0/act_freq", "900\n");
	ok(yk_telemetry_system("0000:08:00.0", &s) && s.clock_hz == 900000000u, "xe");
	ok(!yk_telemetry_system("0000:99:00.0", &s) && !s.known &&
		   !yk_telemetry_system("../../../etc", &s) && !yk_telemetry_system("", &s),
	   "without a card nothing is known");
}

// ---- lies ----

static void test_lies(void)
{
	const struct yoke_sample good = { .size = sizeof good,
					  .known = 0xffff,
					  .util = 1,
					  .mem_used = 5,
					  .mem_total = 5,
					  .energy_j = 10 };
	struct yoke_sample s = good, before = good;
	ok(!yk_telemetry_implausible(&good, NULL) && !yk_telemetry_implausible(&good, &before),
	   "plausible values are accepted");
	s.util = 1.01;
	ok(yk_telemetry_implausible(&s, NULL), "%s", yk_telemetry_implausible(&s, NULL));
	s.known &= ~(uint32_t)YOKE_SAMPLE_UTIL;
	ok(!yk_telemetry_implausible(&s, NULL), "unknown values do not count");
	s = good;
	s.temp_c = NAN;
	ok(yk_telemetry_implausible(&s, NULL), "%s", yk_telemetry_implausible(&s, NULL));
	s = good;
	s.mem_used = 6;
	ok(yk_telemetry_implausible(&s, NULL), "%s", yk_telemetry_implausible(&s, NULL));
	before.energy_j = 10.5;
	ok(yk_telemetry_implausible(&good, &before), "%s",
	   yk_telemetry_implausible(&good, &before));
}

// The fault backend, with a setting that selects its invalid values.
static void test_backend(void)
{
	static const char *const kind[] = { "nan", "over", "back", "block" };
	struct yoke_sample s = { .size = sizeof s };
	yoke_setting_set("telemetry.root", "tree.none");
	struct yoke_context *ctx = yoke_context_new("fault"), *former = yoke_use(ctx);
	if (!ctx) {
		skip("a backend with invalid values", yoke_error());
		yoke_error_clear();
		return;
	}
	ok(yoke_telemetry("fault:4", &s) == YOKE_EUNSUPPORTED, "%s", yoke_error());
	yoke_error_clear();
	yoke_setting_set("fault.telemetry", "good");
	const int known = yoke_telemetry(NULL, &s);
	ok(known == 0 && s.known & YOKE_SAMPLE_UTIL && is(s.util, .5), "fault:0 has utilization %g",
	   s.util);
	for (int k = 0; k < 4; k++) {
		char id[16];
		snprintf(id, sizeof id, "fault:%d", k);
		yoke_setting_set("fault.telemetry", kind[k]);
		warnings = 0;
		double began = yk_seconds();
		int e = 0;
		for (int i = 0; i < 3 && e == 0; i++)
			e = yoke_telemetry(id, &s);
		ok(e == YOKE_EUNSUPPORTED && warnings == 1 && strstr(last, id), "%s: %s", kind[k],
		   last);
		yoke_error_clear();
		yoke_setting_set("fault.telemetry", "good");
		ok(yoke_telemetry(id, &s) == YOKE_EUNSUPPORTED && warnings == 1 &&
			   yk_seconds() - began < 60,
		   "%s: ignored from then on", kind[k]);
		yoke_error_clear();
	}
	ok(yoke_telemetry("fault:9", &s) == YOKE_ENODEV, "%s", yoke_error());
	yoke_error_clear();
	yoke_use(former);
	yoke_context_free(ctx);
}

// ---- this machine ----

static void test_here(void)
{
	struct yoke_host_sample h = { .size = sizeof h };
	struct rusage u;
	// the kernel counts pages per thread or processor and adds them up occasionally: so much
	// that this hardly matters
	const size_t much = (size_t)64 << 20;
	volatile char *touched = malloc(much);
	for (size_t i = 0; touched && i < much; i += 1024)
		touched[i] = 1;
	free((void *)(uintptr_t)touched);
	yoke_setting_set("telemetry.root", "");
	int e = yoke_host_telemetry(&h);
	getrusage(RUSAGE_SELF, &u);
	ok(e == 0 && fabs(h.rss_peak / (1024. * (double)u.ru_maxrss) - 1) < .1 && h.threads >= 1,
	   "max resident memory: %g bytes, getrusage reports %g", h.rss_peak,
	   1024. * (double)u.ru_maxrss);
}

static void test_sampler(void)
{
	struct yoke_context *ctx = yoke_context_new("cpu"), *former = yoke_use(ctx);
	struct yoke_recorder_options o = { .size = sizeof o,
					   .path = "telemetry.jsonl",
					   .seconds = .01,
					   .run = "a \"run\"\n",
					   .rank = 3 };
	unlink(o.path);
	yoke_recorder *s = yoke_recorder_new(&o);
	for (int i = 1; i <= 5; i++) {
		struct stat st = { .st_size = 0 };
		yoke_recorder_progress(s, i, .5 * i);
		// until there is a sample before step 5
		for (int k = 0; k < 600000 && i == 4 && st.st_size == 0; k++) {
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
			stat(o.path, &st);
		}
	}
	yoke_recorder_free(s);
	FILE *f = fopen(o.path, "r");
	char line[8192];
	int n = 0, bad = 0;
	double time = 0;
	json_int_t step = 0;
	while (f && fgets(line, sizeof line, f)) {
		json_t *x = json_loads(line, 0, NULL);
		const json_t *devices = json_object_get(x, "devices");
		bad += !x || json_number_value(json_object_get(x, "time")) < time ||
		       json_array_size(devices) != 1 ||
		       strcmp(json_string_value(json_object_get(x, "run")), o.run) ||
		       json_integer_value(json_object_get(x, "rank")) != 3 ||
		       !json_object_get(x, "rss") ||
		       json_integer_value(json_object_get(x, "step")) < step;
		time = json_number_value(json_object_get(x, "time"));
		step = json_integer_value(json_object_get(x, "step"));
		json_decref(x);
		n++;
	}
	if (f)
		fclose(f);
	ok(n >= 2 && !bad && step == 5, "%d lines, the last of step %d", n, (int)step);
	// a full disk gives one warning
	o.path = "/dev/full";
	warnings = 0;
	s = yoke_recorder_new(&o);
	for (int k = 0; k < 600000 && !atomic_load(&warnings); k++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	yoke_recorder_free(s);
	ok(s && warnings == 1 && !yoke_error_code(), "%s", last);
	o.path = "no/such/folder/x";
	ok(!yoke_recorder_new(&o) && yoke_error_code(), "%s", yoke_error());
	yoke_error_clear();
	o.seconds = -1;
	ok(!yoke_recorder_new(&o) && yoke_error_code() == YOKE_EINVAL, "%s", yoke_error());
	yoke_error_clear();
	yoke_recorder_free(NULL);
	yoke_use(former);
	yoke_context_free(ctx);
}

// ---- ranks ----

// Counts in ranks.jsonl: samples of a rank that waits in its second barrier, samples outside of it,
// and invalid lines.
static void count_samples(int *waits, int *over, int *bad)
{
	char line[8192];
	FILE *f = fopen("ranks.jsonl", "r");
	*waits = *over = *bad = 0;
	while (f && fgets(line, sizeof line, f)) {
		json_t *x = json_loads(line, 0, NULL), *c = json_object_get(x, "collective");
		const char *op = json_string_value(json_object_get(c, "op"));
		const double since = json_number_value(json_object_get(c, "since"));
		const double time = json_number_value(json_object_get(x, "time"));
		*waits += op && !strcmp(op, "barrier") &&
			  json_integer_value(json_object_get(c, "seq")) == 2;
		*over += json_is_null(json_object_get(c, "op"));
		*bad += since > time + .01 || since < time - 60;
		json_decref(x);
	}
	if (f)
		fclose(f);
}

// Rank 1 enters the second barrier only after a sample of rank 0 waiting for it.
static int member(yoke_group *world, void *arg)
{
	struct yoke_group_state now = { .size = sizeof now };
	struct yoke_recorder_options o = {
		.size = sizeof o, .path = "ranks.jsonl", .seconds = .005, .group = world
	};
	(void)arg;
	int err = yoke_group_barrier(world);
	if (err || yoke_group_rank(world) == 1) {
		for (int tries = 0, waits = 0, over, bad; !err && !waits && tries < 60000;
		     tries++) {
			nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
			count_samples(&waits, &over, &bad);
		}
		return err ? err : yoke_group_barrier(world);
	}
	err = yoke_group_state(world, &now);
	const uint64_t seq = now.seq;
	const bool first = !err && now.seq == 1 && !now.open && !strcmp(now.op, "barrier");
	yoke_recorder *s = yoke_recorder_new(&o);
	err = yoke_group_barrier(world);
	if (!err)
		err = yoke_group_state(world, &now);
	yoke_recorder_free(s);
	return err ? err : first && s && now.seq == seq + 1 && !now.open ? 0 : YOKE_EINVAL;
}

static void test_ranks(void)
{
	int waits, over, bad;
	unlink("ranks.jsonl");
	const int err = yoke_group_run(2, NULL, member, NULL);
	count_samples(&waits, &over, &bad);
	ok(!err && waits && over && !bad,
	   "%d samples of a rank that waits in its second barrier, %d before and behind: %s", waits,
	   over, yoke_error());
	yoke_error_clear();
}

// Days of lines, without waiting for them.
static void test_budget(void)
{
	static const struct {
		double line, seconds;
	} cases[] = { { 741, 1 }, { 1500, 1 }, { 6000, 1 }, { 741, 0.01 }, { 741, 60 } };
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		double now = 0, written = 0, first_day = 0, first_hundred = 0;
		int64_t lines = 0;
		while (now < 3 * 86400) {
			written += cases[i].line;
			first_day = now < 86400 ? written : first_day;
			now += yk_recorder_wait(5e6, now, written, cases[i].line, cases[i].seconds);
			first_hundred = ++lines == 100 ? now : first_hundred;
		}
		ok(first_day <= 5e6 && written <= 15e6 &&
			   fabs(first_hundred - 100 * cases[i].seconds) < 1e-6,
		   "lines of %.0f bytes every %g s: %.2f MB the first day (5 at most), %.2f in three, 100 lines in %g s",
		   cases[i].line, cases[i].seconds, 1e-6 * first_day, 1e-6 * written,
		   first_hundred);
	}
	ok(yk_recorder_wait(0, 1, 1e9, 741, 1) == 1, "a limit of 0 means none");
}

int main(void)
{
	setenv("YOKE_CPU_DEVICES", "2", 1);
	setenv("YOKE_FAULT_DEVICES", "5", 1);
	tap_seed();
	tap_folder();
	tap_plugin_path();
	yk_log_to(keep_warning, NULL);
	test_intel();
	test_topology();
	test_version_1();
	test_empty();
	test_cards();
	test_lies();
	test_here();
	test_sampler();
	test_budget();
	test_ranks();
	test_backend(); // leaves a thread running, as it must
	return done();
}
