// SPDX-License-Identifier: Apache-2.0
// Tests the plugin loader with valid and defective plugins: each defective one costs one clear
// line, the others load. Every case runs this program again with its own directory in
// YOKE_PLUGIN_PATH.
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "device/device.h"
#include "device/guard.h"
#include "device/pool.h"
#include "device/verdict.h"
#include "tap.h"

// The directory of the modules of tests/bad, as bad_NAME.so.
#ifndef BAD_DIR
#define BAD_DIR "tests/bad/.libs"
#endif

// Everything except plugins installed on this machine.
#define ALL "^opencl,cuda,rocm"

static char self[PATH_MAX], top[PATH_MAX]; // this program; the directory for all files
static char output[16384];                 // of the last run: outcomes, then the log

// ---- the program that is run ----

// Prints every outcome, device and choice; the log goes to the same output.
static int child(const char *list)
{
	dup2(STDOUT_FILENO, STDERR_FILENO);
	setvbuf(stdout, NULL, _IONBF, 0);
	struct yk_device *d = yk_device_choose(*list ? list : NULL);
	printf("chosen: %s\n", d ? d->id : yoke_error());
	printf("backends:");
	for (struct yk_backend *b = yk_backends("cpu"); b; b = b->next)
		printf(" %s", b->table.name);
	printf("\n");
	for (d = yk_devices(*list ? list : NULL); d; d = d->next)
		printf("device: %s [%s] [%s] kind %u, %llu of %llu bytes\n", d->id, d->info.name,
		       d->info.uuid, d->info.kind, (unsigned long long)d->info.max_segment,
		       (unsigned long long)d->info.memory);
	for (const struct yk_plugin_outcome *o = yk_plugin_outcomes(); o; o = o->next)
		printf("outcome: %s: %d %s\n", o->path, o->code, o->text);
	return 0;
}

// ---- folders ----

static const char *in(const char *folder, const char *name)
{
	static char path[4][PATH_MAX];
	static int turn;
	char *to = path[turn++ % 4];
	snprintf(to, PATH_MAX, "%.2000s/%.1000s%s%.1000s", top, folder, *name ? "/" : "", name);
	return to;
}

static const char *folder(const char *name)
{
	const char *path = in(name, "");
	mkdir(path, 0755);
	chmod(path, 0755);
	return path;
}

static void write_file(const char *path, const void *data, size_t bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes)
		diag("cannot write %s", path);
	if (fd >= 0) {
		fchmod(fd, 0644);
		close(fd);
	}
}

// Installs a module of tests/bad as a plugin of that name.
static void install(const char *module, const char *to, const char *as)
{
	char from[PATH_MAX], name[64], *data = NULL;
	size_t n = 0, got;
	const char *dir = getenv("YOKE_TEST_BAD");

	if (module[0] == '/')
		snprintf(from, sizeof from, "%s", module);
	else
		snprintf(from, sizeof from, "%s/bad_%s.so", dir ? dir : BAD_DIR, module);
	FILE *f = fopen(from, "rb");
	do {
		data = realloc(data, n + (1 << 20));
		got = f && data ? fread(data + n, 1, 1 << 20, f) : 0;
		n += got;
	} while (got == 1 << 20);
	if (f)
		fclose(f);
	else
		diag("no %s", from);
	snprintf(name, sizeof name, "yoke_%s.so", as);
	write_file(in(to, name), data, n);
	free(data);
}

static bool hides_sys; // the next runs find an empty file system at /sys
static rlim_t files;   // and a limit on open files; 0: unchanged

// False: it needs root.
static bool hide_sys(void)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("none", "/sys", "tmpfs", 0, NULL) == 0;
}

// Runs this program with a path and a list.
static void run(const char *path, const char *backend, const char *log)
{
	int pipes[2];
	size_t n = 0;
	ssize_t got;

	if (pipe(pipes) < 0)
		return;
	pid_t pid = fork();
	if (!pid) {
		dup2(pipes[1], STDOUT_FILENO);
		close(pipes[0]);
		setenv("YOKE_PLUGIN_PATH", path, 1);
		setenv("YOKE_BACKEND", backend, 1);
		setenv("YOKE_LOG", log, 1);
		unsetenv("YOKE_DEVICE");
		if (hides_sys && !hide_sys())
			_exit(126);
		if (files)
			setrlimit(RLIMIT_NOFILE, &(struct rlimit){ files, files });
		execl(self, self, "child", "", (char *)NULL);
		_exit(127);
	}
	close(pipes[1]);
	while (n < sizeof output - 1 &&
	       (got = read(pipes[0], output + n, sizeof output - 1 - n)) > 0)
		n += (size_t)got;
	output[n] = '\0';
	close(pipes[0]);
	int status;
	waitpid(pid, &status, 0);
	if (status)
		diag("status %d", status);
}

static int count(const char *word)
{
	int n = 0;
	for (const char *s = output; (s = strstr(s, word)); s += strlen(word))
		n++;
	return n;
}

static bool has(const char *word)
{
	if (count(word))
		return true;
	diag("'%s' not in:", word);
	printf("#  ");
	for (const char *c = output; *c; c++) {
		putchar(*c);
		if (*c == '\n')
			printf("#  ");
	}
	putchar('\n');
	return false;
}

// ---- cases ----

static void broken(void)
{
	static const struct {
		const char *module, *want;
	} cases[] = {
		{ "nosymbol", "exports no yoke_plugin_init" },
		{ "older", "made for plugin ABI 1.0, this yoke has 2." },
		{ "newer", "made for plugin ABI 3.0, this yoke has 2." },
		{ "short", "are mandatory in ABI 2." },
		{ "refuses", "yoke_plugin_init failed: the driver is too old" },
		{ "tableless", "gave no table" },
		{ "text", "not loaded: " },
		{ "good2", "named yoke_good.so" },
		{ "Upper", "a plugin's file is yoke_NAME.so" },
	};
	char word[128];

	folder("all");
	install("good", "all", "good");
	install("good", "all", "good2");
	install("good", "all", "Upper");
	install("larger", "all", "larger");
	for (int i = 0; i < 6; i++)
		install(cases[i].module, "all", cases[i].module);
	write_file(in("all", "yoke_text.so"), "no library\n", 11);
	write_file(in("all", "README.so"), "no plugin\n", 10);
	run(in("all", ""), ALL, "warn");
	ok(has("backends: cpu good larger\n"),
	   "the valid plugin and a later one load, the broken ones do not");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(word, sizeof word, "warn: plugin: %s/yoke_%s.so: ", in("all", ""),
			 cases[i].module);
		ok(count(word) == 1 && has(cases[i].want), "%s: one line, with the reason",
		   cases[i].module);
	}
	ok(count(" warn: ") == 9 && count(" error: ") == 0, "there is no other line");
	ok(!count("README"), "other files are ignored");

	run(in("all", ""), "short", "warn");
	ok(has("chosen: backend 'short' cannot be used: its table has") &&
		   has("(there are: cpu, good") && !count(" warn: "),
	   "a broken plugin requested by name: the error gives the reason");
	run(in("all", ""), "godo", "warn");
	ok(has("there is no such backend, did you mean 'good'?"),
	   "an unknown name: the error suggests the nearest name");
	run(in("all", ""), "newer,good,cpu", "warn");
	ok(has("chosen: good:0") && count(" warn: ") == 1 &&
	   has("backend 'newer' cannot be used: made for plugin ABI 3.0"),
	   "a list: the first usable entry wins, and the error names the reasons for earlier ones");
	run(in("all", ""), "cpu", "debug");
	ok(has("chosen: cpu:0") && !count("outcome:"), "cpu loads no plugin file");
	run(in("all", ""), "good", "info");
	ok(has("yoke_short.so: 0 not requested") && has("yoke_good.so: 0 loaded"),
	   "a list loads only the plugins that it names");
	run(in("all", ""), "^good", "error");
	ok(has("chosen: ") && !count("chosen: good") && has("yoke_good.so: 0 not requested"),
	   "excluded plugins are not loaded");
	run(in("all", ""), "good,^cpu", "error");
	ok(has("'^' stands once, at the beginning"), "'^' inside a list");
}

// A module whose header has another value in one byte.
static void patch(const char *folder, const char *name, long at, int value)
{
	char file[64];
	snprintf(file, sizeof file, "yoke_%s.so", name);
	install("good", folder, name);
	FILE *f = fopen(in(folder, file), "r+b");
	if (!f || fseek(f, at, SEEK_SET) || fputc(value, f) == EOF)
		diag("cannot change %s", file);
	if (f)
		fclose(f);
}

static void foreign(void)
{
	const bool big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	folder("foreign");
	patch("foreign", "machine", big ? 19 : 18, 2); // a SPARC
	patch("foreign", "word", 4, sizeof(void *) == 8 ? 1 : 2);
	patch("foreign", "order", 5, big ? 1 : 2);
	run(in("foreign", ""), ALL, "warn");
	ok(count(" warn: ") == 3 && count("built for another processor") >= 3 &&
		   has("ELF machine 2,") && has(sizeof(void *) == 8 ? "32 bits" : "64 bits") &&
		   has(big ? "little-endian; this" : "big-endian; this"),
	   "modules for another processor, word size and byte order: one line each, which names both");
}

static void devices(void)
{
	folder("odd");
	install("absurd", "odd", "absurd");
	install("nodevices", "odd", "nodevices");
	run(in("odd", ""), "absurd", "warn");
	install("crowd", "odd", "crowd");
	run(in("odd", ""), "crowd", "warn");
	ok(has("crowd: reports 4000000000 devices, which is too many") && count(" warn: ") == 1 &&
	   has("chosen: backend 'crowd' cannot be used"), "too many devices");
	run(in("odd", ""), "absurd", "warn");
	ok(has("absurd:0 refused: alignment 0") && has("absurd:1 refused: alignment 48") &&
	   has("absurd:2 refused: 0 bytes of memory") && has("absurd:3 refused: ") &&
	   has("absurd:4 refused: device error") &&
	   has("absurd:5 refused: alignment 1073741824") &&
	   has("absurd:6 refused: prefers multiples of 4097") && count(" warn: ") == 7,
	   "absurd devices are refused, one line each");
	ok(has("chosen: absurd:7") && has("xxx] [???") && has("kind 0, 1048576 of 1048576 bytes"),
	   "correctable properties are corrected");
	run(in("odd", ""), "nodevices", "warn");
	ok(has("chosen: backend 'nodevices' cannot be used: no devices"),
	   "a plugin without devices");
	run(in("odd", ""), "nodevices,cpu", "warn");
	ok(has("chosen: cpu:0") && has("backend 'nodevices' cannot be used: no devices"),
	   "a plugin without devices, in a list");
}

static void order(void)
{
	char path[2 * PATH_MAX + 64];

	folder("first");
	folder("second");
	install("good", "first", "good");
	install("good", "second", "good");
	install("nodevices", "second", "nodevices");
	snprintf(path, sizeof path, "%s:%s:%s", in("first", ""), in("second", ""), in("first", ""));
	run(path, ALL, "info");
	ok(has("first/yoke_good.so: 0 loaded") && has("second/yoke_good.so: -13 hidden by") &&
	   has("yoke_nodevices.so: 0 loaded") && count("second/yoke_good.so: hidden by") == 1,
	   "two plugins of the same name: the first wins, which is reported");
	ok(count("first: 0 searched\n") == 1 && count("first: 0 searched already\n") == 1,
	   "no directory is searched twice");

	install("newer", "first", "good");
	run(path, "good", "info");
	ok(has("chosen: good:0") && has("second/yoke_good.so: 0 loaded"),
	   "a refused file does not hide a valid one");

	run("relative:./here", ALL, "warn");
	ok(count("not an absolute path; not searched") == 4 && count(" warn: ") == 2,
	   "relative directories are not searched");
	run(in("nowhere", ""), ALL, "warn");
	ok(count(" warn: ") == 1 && has("No such file or directory; not searched"),
	   "a configured directory must exist");
}

static void owners(void)
{
	folder("open");
	install("good", "open", "good");
	chmod(in("open", "yoke_good.so"), 0646);
	run(in("open", ""), "good", "error");
	ok(has("may be written by others (mode 0646); chmod go-w") &&
	   has("chosen: backend 'good' cannot"),
	   "a file that others may write is refused");
	chmod(in("open", "yoke_good.so"), 0644);
	chmod(in("open", ""), 0777);
	run(in("open", ""), "good", "warn");
	ok(has("may be written by others (mode 0777)") && count(" warn: ") == 1,
	   "a directory that others may write is refused");
	folder("linked");
	if (symlink(in("open", "yoke_good.so"), in("linked", "yoke_good.so")) < 0)
		diag("no link");
	run(in("linked", ""), "good", "warn");
	ok(has("may be written by others (mode 0777)"),
	   "a symbolic link into such a directory is refused");
	chmod(in("open", ""), 0755);
	run(in("linked", ""), "good", "warn");
	ok(has("chosen: good:0"), "a link into a safe directory is accepted");
	if (geteuid()) {
		skip("a file of another user is refused", "only root can give files away");
		return;
	}
	if (chown(in("open", "yoke_good.so"), 12345, 12345) < 0)
		diag("chown failed");
	run(in("open", ""), "good", "warn");
	ok(has("is owned by user 12345, who is neither root"), "a file of another user is refused");
}

// After fork, no device can be used.
static void forked(void)
{
	struct yk_device *d = yk_device_choose("cpu");
	struct yk_block *b;
	fflush(stdout);
	pid_t pid = fork();
	if (!pid) {
		void *x;
		uint64_t n;
		bool good = d->ops->segment_new(0, 0, 1, &x) == YOKE_EFORK &&
			d->ops->queue_new(0, 0, &x) == YOKE_EFORK &&
			d->ops->run(NULL, NULL, NULL) == YOKE_EFORK && d->ops->can(0, NULL) == 0 &&
			d->ops->prepare(0, NULL, 0, 1, &x, &n) == YOKE_EFORK &&
			yk_pool_alloc(d->pool, 1, NULL, &b) == YOKE_EFORK &&
			!yk_device_choose("cpu") && yoke_error_code() == YOKE_EFORK;
		_exit(good ? 0 : 1);
	}
	int status = -1;
	waitpid(pid, &status, 0);
	ok(status == 0, "calls in a forked child return YOKE_EFORK");
	ok(d->ops->run != NULL && yk_device_choose("cpu") == d, "the parent still works");
}

// ---- first contact, in a child process ----

// A plugin with a deadly defect; the others continue. how NULL: a module of that name.
static void deadly(const char *kind, const char *how, const char *want)
{
	char line[PATH_MAX + 200], name[64], setting[64];
	snprintf(name, sizeof name, "%s", how ? "fault" : kind);
	if (how) {
		snprintf(setting, sizeof setting, "YOKE_FAULT_%s", kind);
		setenv(setting, "1", 1);
		setenv("YOKE_FAULT_HOW", how, 1);
	} else {
		install(kind, "deadly", kind);
	}
	snprintf(line, sizeof line, "warn: plugin: %s/yoke_%s.so: %s when it was tried;",
		 in("deadly", ""), name, want);
	run(in("deadly", ""), ALL, "warn");
	ok(count(line) == 1 && count(" warn: ") == 1 && has("backends: cpu good\n"), "%s %s: %s",
	   kind, how ? how : "", want);
	snprintf(line, sizeof line, "backend '%s' cannot be used: %s when it was tried before;",
		 name, want);
	run(in("deadly", ""), name, "debug");
	ok(has(line) && !count(" tried by "), "and the verdict is remembered");
	if (how) {
		unsetenv(setting);
		unsetenv("YOKE_FAULT_HOW");
	} else {
		snprintf(line, sizeof line, "yoke_%s.so", name);
		unlink(in("deadly", line));
	}
}

static void tried(void)
{
	const char *helper = getenv("YOKE_PLUGIN_PROBE"), *modules = getenv("YOKE_TEST_MODULES");
	char fault[PATH_MAX], kept[PATH_MAX];

	// the last directory is the fault backend's
	modules = modules ? strrchr(modules, ':') : NULL;
	if (!helper || !modules) {
		skip("first contact in a child process",
		     "YOKE_PLUGIN_PROBE or YOKE_TEST_MODULES is not set");
		return;
	}
	snprintf(kept, sizeof kept, "%s", helper);
	snprintf(fault, sizeof fault, "%s/yoke_fault.so", modules + 1);
	folder("deadly");
	install("good", "deadly", "good");
	run(in("deadly", ""), "good", "debug");
	ok(has("chosen: good:0") && count(" tried by ") == 1 && has(": passed"),
	   "a new plugin is probed");
	run(in("deadly", ""), "good", "debug");
	ok(has("chosen: good:0") && !count(" tried "), "only once");
	install("good", "deadly", "good");
	run(in("deadly", ""), "good", "debug");
	ok(count(" tried by ") == 1, "and again after its file has changed");
	setenv("OCL_ICD_VENDORS", top, 1);
	run(in("deadly", ""), "good", "debug");
	ok(count(" tried by ") == 1, "or its driver's environment");
	write_file(in("", "some.icd"), "libnone.so\n", 11);
	run(in("deadly", ""), "good", "debug");
	ok(count(" tried by ") == 1, "or the installed drivers");
	unsetenv("OCL_ICD_VENDORS");
	run(in("deadly", ""), "cpu", "debug");
	ok(has("chosen: cpu:0") && !count(" tried "), "the CPU backend needs no probe");

	deadly("vandal", NULL, "died of SIGSEGV");
	deadly("constructor", NULL, "ended the process with status 3");
	install(fault, "deadly", "fault");
	deadly("INIT", "segv", "died of SIGSEGV");
	deadly("PROBE", "segv", "died of SIGSEGV");
	deadly("PROBE", "abort", "died of SIGABRT");
	deadly("INFO", "exit", "ended the process with status 3");
	setenv("YOKE_PLUGIN_PROBE_TIME", "3", 1);
	deadly("PROBE", "hang", "gave no answer within 3 s (YOKE_PLUGIN_PROBE_TIME)");
	deadly("INIT", "hang", "gave no answer within 3 s (YOKE_PLUGIN_PROBE_TIME)");
	unsetenv("YOKE_PLUGIN_PROBE_TIME");
	setenv("YOKE_FAULT_PROBE", "1", 1);
	run(in("deadly", ""), ALL, "warn");
	ok(has("fault: fault.probe: call 1") && count(" warn: ") == 1, "an error is not a crash");
	unsetenv("YOKE_FAULT_PROBE");
	run(in("deadly", ""), "fault", "warn");
	ok(has("chosen: fault:0") && !count(" warn: "), "a plugin that behaves again is used");

	setenv("YOKE_PLUGIN_PROBE", "/nowhere/yoke-probe", 1);
	run(in("deadly", ""), "fault", "debug");
	ok(has("chosen: fault:0") && count(" warn: ") == 1 &&
		   has("tried in this process: YOKE_PLUGIN_PROBE=/nowhere/yoke-probe: "),
	   "without the probe helper it is tried in this process, with a warning");
	setenv("YOKE_PLUGIN_PROBE", "0", 1);
	run(in("deadly", ""), "fault", "warn");
	ok(has("chosen: fault:0") && !count(" warn: "), "without a warning if that was requested");
	setenv("YOKE_PLUGIN_PROBE", "/bin/false", 1);
	run(in("deadly", ""), "good", "warn");
	ok(has("ended the process with status 1 when it was tried"),
	   "another program is refused as probe helper");
	setenv("YOKE_PLUGIN_PROBE", kept, 1);
}

// ---- what a verdict is remembered with ----

// Runs the plugins of the directory "kept"; was one probed in a child?
static bool tries(const char *list)
{
	run(in("kept", ""), list, "debug");
	return count(" tried by ");
}

static void remembered(void)
{
	char library[PATH_MAX];
	struct stat st;

	if (!getenv("YOKE_PLUGIN_PROBE")) {
		skip("the inputs of a verdict's key", "YOKE_PLUGIN_PROBE is not set");
		return;
	}
	folder("kept");
	install("good", "kept", "good");
	ok(tries("good") && !tries("good"), "a plugin is probed once");
	setenv("SOME_DRIVERS_MODE", "7", 1);
	ok(tries("good") && !tries("good"), "and again with any other environment variable");
	unsetenv("SOME_DRIVERS_MODE");
	setenv("COLUMNS", "133", 1);
	ok(!tries("good"), "but not with one of the terminal");
	unsetenv("COLUMNS");
	files = 200;
	ok(tries("good") && !tries("good"), "and with another limit of the process");
	files = 0;
	hides_sys = true;
	run(in("kept", ""), "good", "debug");
	if (*output)
		ok(count(" tried by ") == 1, "and with another /sys");
	else
		skip("another /sys", "only root may mount");
	hides_sys = false;
	ok(!tries("good"), "earlier verdicts remain valid");

	// a library that a plugin loads by itself is in no list that could be checked beforehand
	install("ambush", "kept", "ambush");
	snprintf(library, sizeof library, "%s", in("kept", "libdependency.so"));
	install("nodevices", "kept", "other");
	rename(in("kept", "yoke_other.so"), library);
	setenv("YOKE_TEST_LIBRARY", library, 1);
	ok(tries("ambush") && !tries("ambush"), "a plugin with a private library is probed once");
	stat(library, &st);
	utimensat(AT_FDCWD, library, (struct timespec[]){ { 1000000000, 0 }, { 1000000000, 0 } },
		  0);
	ok(tries("ambush") && !tries("ambush"), "and again after that library has changed");
	unsetenv("YOKE_TEST_LIBRARY");
}

// Verdicts about failures expire; the clock is an argument.
static void patience(void)
{
	const struct {
		int64_t cost_ms, seconds;
	} cases[] = { { 0, 300 }, { 3000, 300 }, { 20000, 2000 }, { 90000, 3600 } };
	struct yk_verdict v = { .outcome = "", .tried = 1000000 }, got = { .outcome = "none" };
	const int64_t year = 365 * 86400;

	yk_verdict_save("a", 1, &v, "");
	ok(yk_verdict_recall("a", 1, v.tried + year, &got) && !*got.outcome && got.tried == v.tried,
	   "a success is valid as long as nothing changes");
	ok(!yk_verdict_recall("b", 1, v.tried, &got), "another key has no verdict");
	snprintf(v.outcome, sizeof v.outcome, "died of SIGABRT");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		v.cost_ms = cases[i].cost_ms;
		yk_verdict_save("a", 1, &v, "");
		const bool kept = yk_verdict_recall("a", 1, v.tried + cases[i].seconds - 1, &got);
		ok(kept && !strcmp(got.outcome, v.outcome) && got.cost_ms == v.cost_ms &&
			   !yk_verdict_recall("a", 1, v.tried + cases[i].seconds, &got),
		   "a failure that took %lld ms is valid for %lld s", (long long)v.cost_ms,
		   (long long)cases[i].seconds);
	}
	ok(!yk_verdict_recall("a", 1, v.tried - 1, &got), "not when the clock was set back");
	yk_verdict_save("a", 1, &v, "/nowhere/lib.so\n");
	ok(yk_verdict_recall("a", 1, v.tried, &got), "a missing library is still missing");
}

// A plugin that a child survives and this process does not.
static void ambushed(void)
{
	static const struct { const char *how, *want;
	} cases[] = {
		{ "abort", "died of SIGABRT" },  { "segv", "died of SIGSEGV" },
		{ "exit", "ended the process" }, { "hang", "gave no answer within 40 s" },
		{ "info", "died of SIGABRT" },
	};
	char line[PATH_MAX + 200];

	if (!getenv("YOKE_PLUGIN_PROBE")) {
		skip("a plugin that only a child survived", "YOKE_PLUGIN_PROBE is not set");
		return;
	}
	folder("ambush");
	install("good", "ambush", "good");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		install("ambush", "ambush", "ambush"); // a new file: no verdict
		setenv("YOKE_TEST_AMBUSH", cases[i].how, 1);
		snprintf(line, sizeof line, "yoke_ambush.so: %s when it was tried;", cases[i].want);
		run(in("ambush", ""), ALL, "warn");
		ok(count(line) == 1 && has("backends: cpu good\n"),
		   "%s in this process: the program continues without it",
		   cases[i].how);
		run(in("ambush", ""), ALL, "warn");
		ok(has("when it was tried before;") && has("backends: cpu good\n"),
		   "and so does the next one");
	}
	setenv("YOKE_CACHE", "0", 1);
	run(in("ambush", ""), ALL, "warn");
	ok(has("died of SIGABRT when it was tried;") && has("backends: cpu good\n"),
	   "also where nothing is remembered");
	setenv("YOKE_CACHE", in("cache", ""), 1);
	unsetenv("YOKE_TEST_AMBUSH");
}

static void remove_all(const char *path)
{
	DIR *dir = opendir(path);
	for (struct dirent *e; dir && (e = readdir(dir)); ) {
		char name[PATH_MAX];
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		snprintf(name, sizeof name, "%.3000s/%s", path, e->d_name);
		if (unlink(name) < 0)
			remove_all(name);
	}
	if (dir)
		closedir(dir);
	rmdir(path);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "child")) {
		yk_guard_program(argv);
		return child(argv[2]);
	}
	const char *tmp = getenv("TMPDIR");
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	char made[1024];
	snprintf(made, sizeof made, "%s/yoke-plugin-XXXXXX", tmp ? tmp : "/tmp");
	if (n < 0 || !mkdtemp(made) || !realpath(made, top))
		return skip_all("no folder for temporary files");
	setenv("YOKE_CACHE", in("cache", ""), 1);
	broken();
	foreign();
	devices();
	order();
	owners();
	tried();
	remembered();
	patience();
	ambushed();
	forked();
	remove_all(top);
	return done();
}
