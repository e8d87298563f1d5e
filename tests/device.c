// SPDX-License-Identifier: Apache-2.0
// Tests the ranking and choice of devices among backends defined here; also settings, errors and
// the kernel cache.
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/param.h"
#include "kernel/cache.h"
#include "device/device.h"
#include "tap.h"

// ---- backends: alike but for name, kind and memory ----

static int probe_one(uint32_t *n)
{
	*n = 1;
	return 0;
}

static int probe_two(uint32_t *n)
{
	*n = 2;
	return 0;
}

static int probe_fails(uint32_t *n)
{
	(void)n;
	yk_host()->error(YOKE_EDEVICE, "VENDOR_ERROR_42: no permission for /dev/x");
	return YOKE_EDEVICE;
}

static int give(struct yoke_device_info *i, uint32_t kind, uint64_t memory)
{
	i->kind = kind;
	i->memory = i->max_segment = memory;
	i->align = 256;
	strcpy(i->name, "made up");
	return 0;
}

static int info_gpu(uint32_t device, struct yoke_device_info *i)
{
	give(i, YOKE_DEVICE_GPU, (uint64_t)(device + 1) << 50); // the second is the larger
	snprintf(i->uuid, sizeof i->uuid, "pci:0000:0a:0%u.0", device); // as in ABI 0.2
	strcpy(i->name, device ? "made up XT" : "made up");
	return 0;
}

static int info_igpu(uint32_t device, struct yoke_device_info *i)
{
	(void)device;
	strcpy(i->uuid, "00112233-4455-6677-8899-AABBCCDDEEFF");
	return give(i, YOKE_DEVICE_IGPU, (uint64_t)1 << 50);
}

// Also reported by t_big, with half of its memory, and another device that shares only its UUID
// with t_small.
static int info_again(uint32_t device, struct yoke_device_info *i)
{
	strcpy(device ? i->uuid : i->pci,
	       device ? "00112233-4455-6677-8899-aabbccddeeff" : "0000:0A:01.0");
	return give(i, device ? YOKE_DEVICE_IGPU : YOKE_DEVICE_GPU, (uint64_t)1 << 49);
}

static int info_cpu(uint32_t device, struct yoke_device_info *i)
{
	(void)device;
	return give(i, YOKE_DEVICE_CPU, (uint64_t)1 << 50);
}

static const struct yoke_backend tables[] = {
	{ .size = sizeof *tables, .abi = YOKE_ABI, .name = "t_soft", .probe = probe_one,
	  .device_info = info_cpu },
	{ .size = sizeof *tables, .abi = YOKE_ABI, .name = "t_small", .probe = probe_one,
	  .device_info = info_igpu },
	{ .size = sizeof *tables, .abi = YOKE_ABI, .name = "t_big", .probe = probe_two,
	  .device_info = info_gpu },
	{ .size = sizeof *tables, .abi = YOKE_ABI, .name = "t_again", .probe = probe_two,
	  .device_info = info_again },
	{ .size = sizeof *tables, .abi = YOKE_ABI, .name = "t_broken", .probe = probe_fails,
	  .device_info = info_gpu },
};

static bool has(const char *word)
{
	bool is = strstr(yoke_error(), word) != NULL;
	if (!is)
		diag("'%s' not in: %s", word, yoke_error());
	return is;
}

// Is this device chosen? NULL: none, with the words in the error.
static void chosen(const char *list, const char *want, const char *words)
{
	yoke_error_clear();
	struct yk_device *d = yk_device_choose(list);
	if (want)
		ok(d && !strcmp(d->id, want) && !yoke_error_code(), "'%s': %s (want %s) %s",
		   list ? list : "", d ? d->id : "none", want, yoke_error());
	else
		ok(!d && yoke_error_code() == YOKE_ENODEV && has(words), "'%s': none, since %s",
		   list ? list : "", words);
	yoke_error_clear();
}

static void check_choice(const char *device, const char *list, const char *want, const char *words)
{
	yk_param_set("device", device, YK_ARGUMENT);
	diag("YOKE_DEVICE=%s", device);
	chosen(list, want, words);
	yk_param_set("device", "", YK_ARGUMENT);
}

static void choice(void)
{
	ok(yk_list_has(NULL, "a") && yk_list_has("", "a") && yk_list_has("*", "a") &&
	   yk_list_has("b,a", "a") && !yk_list_has("b,ab", "a") && yk_list_has("^b,c", "a") &&
	   !yk_list_has("^b,a", "a"), "lists of names");
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		ok(yk_backend_add(&tables[i], "") != NULL, "%s", tables[i].name);
	ok(!yk_backend_add(&tables[0], "/x/yoke_t_soft.so") && yoke_error_code() == YOKE_EPLUGIN &&
	   has("there is a backend 't_soft' already, linked in"), "a duplicate name is refused");
	yoke_error_clear();

	chosen("cpu", "cpu:0", NULL);
	chosen("t_small", "t_small:0", NULL);
	chosen("t_small,t_big", "t_small:0", NULL);
	// among equal kinds the first wins, whatever its memory
	chosen("t_big,t_small", "t_big:0", NULL);
	chosen("", "t_big:0", NULL);
	chosen("*", "t_big:0", NULL);
	chosen("auto", "t_big:0", NULL);
	chosen(",", NULL, "it names none");
	chosen("^t_big,t_again", "t_small:0", NULL);
	chosen("t_nothing", NULL, "there is no such backend");
	chosen("t_bag", NULL, "did you mean 't_big'?");
	chosen("CPU", NULL, "did you mean 'cpu'?");
	chosen("T_big", NULL, "did you mean 't_big'?");
	chosen("host", NULL, "did you mean 'cpu'?");
	chosen("gpu", NULL, "there is no such backend (there are: ");
	chosen("t_broken", NULL, "VENDOR_ERROR_42: no permission for /dev/x");
	chosen("t_broken,t_nothing", NULL, "t_nothing: there is no such backend");
	chosen("t_broken,cpu", "cpu:0", NULL);

	bool seen_cpu = false, order = true;
	int n = 0;
	for (struct yk_device *d = yk_devices("^opencl,cuda,rocm"); d; d = d->next, n++) {
		seen_cpu |= !strcmp(d->id, "cpu:0");
		if (!strncmp(d->id, "t_", 2))
			order &= seen_cpu == !strcmp(d->id, "t_soft:0");
	}
	ok(n >= 5 && order, "%d devices, with CPUs of other drivers after the CPU backend", n);
	ok(yk_device_cpu() && !strcmp(yk_device_cpu()->id, "cpu:0"),
	   "the CPU backend's device comes before other CPUs");

	yk_param_set("backend", "t_big", YK_ARGUMENT);
	chosen(NULL, "t_big:0", NULL);
	check_choice("t_big:1", NULL, "t_big:1", NULL);
	// a list set by the program overrides YOKE_DEVICE
	check_choice("t_big:1", "cpu", "cpu:0", NULL);
	check_choice("pci:0000:0a:01.0", "cpu", "cpu:0", NULL);
	check_choice("t_big:7", NULL, NULL,
		     "t_big:0 (made up, pci:0000:0a:00.0), t_big:1 (made up XT, pci:");
	check_choice("t_small:0", NULL, NULL, "not among those of backend 't_big'");
	yk_param_set("backend", "", YK_ARGUMENT);
	check_choice("t_big:1", NULL, "t_big:1", NULL);
	check_choice("cpu:0", NULL, "cpu:0", NULL);
	check_choice("t_nothing:0", NULL, NULL, "there is no such backend");
	check_choice("t_broken:0", NULL, NULL, "VENDOR_ERROR_42");
	check_choice("pci:0000:0A:01.0", NULL, "t_big:1", NULL);
	check_choice("pci:0a:01.0", NULL, "t_big:1", NULL);
	check_choice("pci:0a:01.0", "t_again,cpu", "t_again:0", NULL);
	check_choice("pci:0a:01", NULL, NULL, "device 'pci:0a:01' cannot be used");
	check_choice("pci:", NULL, NULL, "device 'pci:' cannot be used");
	check_choice("uuid:00112233445566778899aabbccddeeff", NULL, "t_small:0", NULL);
	check_choice("uuid:GPU-00112233-4455-6677-8899-aabbccddeeff", NULL, "t_small:0", NULL);
	check_choice("uuid:00112233", NULL, NULL, "device 'uuid:00112233' cannot be used");
	check_choice("Made*XT", NULL, "t_big:1", NULL);
	check_choice("t_again:*", NULL, "t_again:0", NULL);
	check_choice("*nobody*", NULL, NULL, "device '*nobody*' cannot be used");
	// a name pattern needs its star
	check_choice("made up", NULL, NULL, "device 'made up' cannot be used");

	const char *aliases[4] = { "", "", "", "" };
	for (struct yk_device *d = yk_devices("t_big,t_small,t_again"); d; d = d->next)
		if (!strncmp(d->id, "t_again:", 8))
			aliases[d->index] = d->alias ? d->alias->id : "none";
		else if (d->alias)
			aliases[2] = d->id;
	ok(!strcmp(aliases[0], "t_big:1") && !strcmp(aliases[1], "t_small:0") && !*aliases[2],
	   "one device found by two backends is listed once: %s, %s %s", aliases[0], aliases[1],
	   aliases[2]);
	bool alone = true;
	for (struct yk_device *d = yk_devices("t_again"); d; d = d->next)
		alone &= !d->alias;
	ok(alone, "without the other it is no alias");

	struct yk_device *d = yk_device_choose("t_big");
	void *handle = NULL;
	uint64_t bytes = 0;
	ok(d->ops->segment_new(0, 0, 1, &handle) == YOKE_EUNSUPPORTED &&
		   d->ops->can(0, NULL) == 0 &&
		   d->ops->run(NULL, NULL, NULL) == YOKE_EUNSUPPORTED &&
		   !d->ops->segment_host(NULL) &&
		   d->ops->prepare(0, NULL, 0, 1, &handle, &bytes) == 0 && !handle && !bytes &&
		   d->ops->ext("x") == NULL && !strcmp(d->ops->impl_name(0, NULL, 0), ""),
	   "missing table entries are replaced by functions that return 'unsupported'");
	struct yk_queue *q;
	ok(yk_queue_new(d, YOKE_QUEUE_COMPUTE, &q) == YOKE_EUNSUPPORTED && has("t_big:0"),
	   "and their callers report it");
	yoke_error_clear();
}

// ---- services ----

static void services(void)
{
	const struct yoke_host *h = yk_host();
	static const struct yoke_setting good = { sizeof good, "t.answer", "int", "42",
						  "a number" },
					 typed = { sizeof typed, "t.other", "number", "1",
						   "no such type" },
					 named = { sizeof named, "T bad", "int", "1",
						   "no such name" };

	setenv("YOKE_T_ANSWER", "43", 1);
	const char *value = h->setting(&good);
	ok(value && !strcmp(value, "43") && h->setting(&good) == value, "a setting: %s", value);
	ok(!h->setting(&typed) && !h->setting(&named) && !h->setting(NULL),
	   "unknown settings are refused");
	h->error(0, "no error");
	ok(!yoke_error_code(), "code 0 is no error");
	h->error(YOKE_EDEVICE, "line 1\nline 2");
	ok(yoke_error_code() == YOKE_EDEVICE && !strcmp(yoke_error(), "line 1 line 2"),
	   "an error is one line");
	yoke_error_clear();
	ok(h->kernel_source(YOKE_DIALECT_OPENCL, NULL, "#include \"no such file\"", NULL, 0) ==
			   YOKE_EUNSUPPORTED &&
		   strstr(yoke_error(), "no such file"),
	   "an unknown kernel: %s", yoke_error());
	yoke_error_clear();
}

// ---- the cache ----

// Changes the only entry of a directory: truncates it, or flips a bit at `where`.
static void damage(const char *folder, int64_t where, bool cut)
{
	char path[PATH_MAX] = "";
	DIR *dir = opendir(folder);
	for (struct dirent *e; dir && (e = readdir(dir)); )
		if (strstr(e->d_name, ".krn"))
			snprintf(path, sizeof path, "%.3000s/%s", folder, e->d_name);
	if (dir)
		closedir(dir);
	int fd = open(path, O_RDWR);
	char c;
	if (pread(fd, &c, 1, where) != 1)
		diag("cannot read %s", path);
	c ^= 1;
	if (cut ? ftruncate(fd, where) : pwrite(fd, &c, 1, where) != 1)
		diag("cannot damage %s", path);
	close(fd);
}

#define ENTRY(digit) "0123456789abcdef0123456789abcde" #digit ".krn"

// Makes a file of that many bytes, last used `age` seconds ago.
static void make_file(int dir, const char *name, int bytes, int age)
{
	struct timespec at[2];
	char data[1000] = { 0 };
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	clock_gettime(CLOCK_REALTIME, &at[0]);
	at[0].tv_sec -= age;
	at[1] = at[0];
	if (fd < 0 || write(fd, data, (size_t)bytes) != bytes || futimens(fd, at) < 0)
		diag("cannot make %s", name);
	close(fd);
}

// Sweeping removes files of killed writers and the least recently used entries, and nothing else.
static void sweep(const char *folder)
{
	char dead[64], living[64], old[64];
	pid_t pid = fork();
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	snprintf(dead, sizeof dead, ENTRY(0) ".%d.1", (int)pid);
	snprintf(living, sizeof living, ENTRY(0) ".%d.2", (int)getpid());
	snprintf(old, sizeof old, ENTRY(0) ".%d.3", (int)getpid());
	const struct {
		const char *name;
		int bytes, age;
		bool stays;
	} file[] = {
		{ dead, 10, 0, false },       { living, 10, 0, true },
		{ old, 10, 2 * 86400, false }, { ENTRY(1), 400, 50, true },
		{ ENTRY(2), 400, 70, false },  { ENTRY(3), 400, 60, true },
		{ ENTRY(4), 900, 80, false },  { "notes.krn", 1000, 9999, true },
		{ ENTRY(5) "x", 1000, 9999, true },
	};
	mkdir(folder, 0700);
	int dir = open(folder, O_RDONLY | O_DIRECTORY);
	for (size_t i = 0; i < sizeof file / sizeof *file; i++)
		make_file(dir, file[i].name, file[i].bytes, file[i].age);
	yoke_setting_set("cache.max", "1000");
	yk_cache_sweep(dir);
	yoke_setting_set("cache.max", "512M");
	for (size_t i = 0; i < sizeof file / sizeof *file; i++)
		ok((faccessat(dir, file[i].name, F_OK, 0) == 0) == file[i].stays, "swept: %s %s",
		   file[i].name, file[i].stays ? "stays" : "goes");
	close(dir);
	yk_dir_remove(folder);
}

static void cache(void)
{
	char folder[PATH_MAX], key[3] = "k0", data[1000], got[1000];
	struct stat st;

	const char *tmp = getenv("TMPDIR");
	snprintf(folder, sizeof folder, "%s/yoke-cache-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(folder)) {
		skip("the cache", "no folder for temporary files");
		return;
	}
	setenv("XDG_CACHE_HOME", folder, 1);
	strcat(folder, "/yoke");
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (char)rnd();

	fflush(stdout);
	pid_t child = fork(); // a process sweeps the directory when it writes its first file
	if (!child) {
		mkdir(folder, 0700);
		int dir = open(folder, O_RDONLY | O_DIRECTORY);
		make_file(dir, ENTRY(0) ".1.1", 5, 3 * 86400);
		int err = yk_cache_put("s", 1, data, 9);
		_exit(err || faccessat(dir, ENTRY(0) ".1.1", F_OK, 0) == 0);
	}
	int status = -1;
	waitpid(child, &status, 0);
	ok(!status, "writing a file sweeps the directory");
	yk_dir_remove(folder);
	ok(yk_cache_get("a", 1, got, sizeof got) == YOKE_ENOENT, "an empty cache misses");
	ok(stat(folder, &st) < 0, "a lookup creates no directory");
	ok(yk_cache_put("a", 1, data, sizeof data) == 0, "an entry is written");
	ok(!stat(folder, &st) && (st.st_mode & 0777) == 0700,
	   "the directory is private to the user");
	memset(got, 0, sizeof got);
	ok(yk_cache_get("a", 1, got, sizeof got) == sizeof data &&
	   !memcmp(got, data, sizeof data), "it is read back");
	memset(got, 0, sizeof got);
	ok(yk_cache_get("a", 1, got, 10) == sizeof data && !memcmp(got, data, 10) && !got[10],
	   "a read fills the buffer at most, and returns the length");
	ok(yk_cache_get("a", 1, NULL, 0) == sizeof data, "a length query");
	ok(yk_cache_get("b", 1, got, sizeof got) == YOKE_ENOENT, "another key misses");
	ok(!yk_cache_put("a", 1, "new", 3) && yk_cache_get("a", 1, got, sizeof got) == 3 &&
	   !memcmp(got, "new", 3), "put replaces an entry");
	ok(!yk_cache_put("e", 1, NULL, 0) && yk_cache_get("e", 1, got, 5) == 0, "an empty entry");
	ok(yk_cache_put(NULL, 0, NULL, 0) < 0 && yk_cache_get(NULL, 1, got, 5) < 0,
	   "invalid arguments are refused");

	// Entries written by this process are cached in memory, so a child process writes those
	// that must be read from files.
	static const struct {
		const char *what;
		int64_t at; // -1: whole
		bool cut;
	} cases[] = {
		{ "whole", -1, false }, { "header", 3, false }, { "length", 16, false },
		{ "checksum", 25, false }, { "key", 32, false }, { "data", 500, false },
		{ "cut in the data", 900, true }, { "cut in the header", 20, true },
		{ "empty", 0, true },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		yk_dir_remove(folder);
		key[1]++;
		fflush(stdout);
		pid_t pid = fork();
		if (!pid)
			_exit(yk_cache_put(key, 2, data, sizeof data) ? 1 : 0);
		waitpid(pid, NULL, 0);
		if (cases[i].at >= 0)
			damage(folder, cases[i].at, cases[i].cut);
		int64_t n = yk_cache_get(key, 2, got, sizeof got);
		if (cases[i].at < 0)
			ok(n == sizeof data && !memcmp(got, data, sizeof data),
			   "an entry written by another process");
		else
			ok(n == YOKE_ENOENT, "a damaged entry, %s, is a miss", cases[i].what);
	}
	yk_dir_remove(folder);
	sweep(folder);
	chmod(folder, 0777);
	ok(!yk_cache_put("w", 1, data, 9) && yk_cache_get("w", 1, got, 9) == 9,
	   "a directory writable by others is not used; entries are kept in memory");
	yk_dir_remove(folder);
	*strrchr(folder, '/') = '\0';
	rmdir(folder);
}

int main(void)
{
	tap_seed();
	cache(); // before the first backend, because it forks
	choice();
	services();
	return done();
}
