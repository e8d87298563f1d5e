// SPDX-License-Identifier: Apache-2.0
// Tests base/file and base/json: a reader sees either the old or the new file; bad files are
// refused.
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "tap.h"

static char folder[512]; // of this test
static char path[600];   // a file in it

// Does the thread's error have this code and contain these texts? Clears it.
static void is_error(int code, const char *part, const char *part2, const char *what)
{
	bool good = yoke_error_code() == code && strstr(yoke_error(), part) &&
		    strstr(yoke_error(), part2);
	if (!good)
		diag("%s: got %d '%s' want %d '..%s..%s..'", what, yoke_error_code(),
		     yoke_error(), code, part, part2);
	ok(good, "%s", what);
	yoke_error_clear();
}

// The file contains this text, followed by a NUL.
static void holds(const char *file, const char *want, const char *what)
{
	char *data = NULL;
	size_t n = 0;
	int e = yk_file_read(file, 1 << 20, &data, &n);
	bool good = !e && n == strlen(want) && !memcmp(data, want, n + 1);
	if (!good)
		diag("%s: %s: got %d, %zu bytes '%.40s'; want '%.40s'", file,
		     yoke_error(), e, n, data ? data : "", want);
	ok(good, "%s", what);
	free(data);
	yoke_error_clear();
}

static int entries(const char *dir)
{
	DIR *d = opendir(dir);
	int n = -2; // . and ..
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static char *in(const char *name)
{
	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

static void reading(void)
{
	char *data = NULL;
	size_t n = 0;

	ok(yk_file_read(in("none"), 100, &data, &n) == YOKE_ENOENT,
	   "a missing file");
	is_error(YOKE_ENOENT, "none", "No such file", "names path and reason");
	ok(yk_file_read(folder, 100, &data, &n) == YOKE_EIO, "a directory");
	is_error(YOKE_EIO, folder, "directory", "names path and reason");
	ok(!yk_file_write(in("empty"), "", 0), "an empty file");
	holds(path, "", "is empty");
	ok(!yk_file_write(in("ten"), "0123456789", 10), "ten bytes");
	ok(!yk_file_read(path, 10, &data, &n) && n == 10, "ten bytes of at most ten");
	free(data);
	ok(yk_file_read(path, 9, &data, &n) == YOKE_EFORMAT, "ten bytes with a limit of nine");
	is_error(YOKE_EFORMAT, "ten", "9", "names path and limit");
	ok(!yk_file_read("/proc/self/status", 1 << 20, &data, &n) && n > 0,
	   "a file of /proc, whose size is unknown");
	free(data);
	ok(yk_file_read("/dev/zero", 100000, &data, &n) == YOKE_EFORMAT,
	   "an endless file");
	yoke_error_clear();
}

static void writing(void)
{
	struct yk_file_writer w;
	struct stat st;

	umask(027);
	ok(!yk_file_write(in("a"), "old", 3), "write");
	holds(path, "old", "read back");
	ok(!stat(path, &st) && (st.st_mode & 0777) == 0640,
	   "permissions follow the umask");
	umask(022);

	int before = entries(folder);
	ok(!yk_file_begin(&w, path) && !yk_file_add(&w, "n", 1) &&
		   !yk_file_add(&w, "ew", 2),
	   "written in parts");
	ok(w.bytes == 3, "bytes are counted");
	holds(path, "old", "the old file until the commit");
	ok(!yk_file_commit(&w), "commit");
	holds(path, "new", "the new file");
	ok(!yk_file_begin(&w, path) && !yk_file_add(&w, "newer", 5), "a second commit");
	yk_file_abort(&w);
	holds(path, "new", "abort leaves the old file");
	yk_file_abort(&w);
	ok(entries(folder) == before, "no temporary file is left");

	char link[600];
	snprintf(link, sizeof link, "%s/link", folder);
	ok(!symlink("a", link) && !yk_file_write(link, "through", 7),
	   "written through a symbolic link");
	ok(!lstat(link, &st) && S_ISLNK(st.st_mode), "the link stays a link");
	holds(in("a"), "through", "to the file");

	ok(yk_file_write(in("no/such"), "x", 1) == YOKE_ENOENT,
	   "into a missing directory");
	is_error(YOKE_ENOENT, "no/such", "No such file", "names path and reason");
	ok(yk_file_write(folder, "x", 1) == YOKE_EIO, "over a directory");
	is_error(YOKE_EIO, folder, "not a regular file", "names path and reason");
	ok(yk_file_write("/dev/full", "x", 1) == YOKE_EIO, "over a device");
	ok(!stat("/dev/full", &st) && S_ISCHR(st.st_mode), "which stays one");
	yoke_error_clear();
}

// Two files that belong together, of which `first` exists or not; `fails`: a folder takes the
// second's name.
static void pair(bool exists, bool fails)
{
	struct yk_file_writer a, b;
	char first[600], second[600];
	snprintf(first, sizeof first, "%s/pair.data", folder);
	snprintf(second, sizeof second, "%s/pair", folder);
	if (exists)
		yk_file_write(first, "old", 3);
	const int before = entries(folder);
	ok(!yk_file_begin(&a, first) && !yk_file_begin(&b, second) && !yk_file_add(&a, "new", 3) &&
		   !yk_file_add(&b, "n", 1) && (!fails || !mkdir(second, 0777)),
	   "two files, the first %s", exists ? "exists" : "is new");
	ok(yk_file_commit_both(&a, &b) == (fails ? YOKE_EIO : 0), "are committed: %s",
	   yoke_error());
	yoke_error_clear();
	if (fails && !exists)
		ok(access(first, F_OK) < 0, "the first is removed when the second fails");
	else
		holds(first, fails ? "old" : "new", "the first is old when the second fails");
	if (!fails)
		holds(second, "n", "the second is new");
	ok(entries(folder) == before + 1 + (!fails && !exists), "no temporary file is left");
	unlink(first);
	if (fails)
		rmdir(second);
	unlink(second);
}

static void failing(void)
{
	struct rlimit old, limit;
	char *large = calloc(1, 200000);

	// A file-size limit simulates a full disk: some bytes are written, then write fails.
	ok(!yk_file_write(in("limited"), "old", 3), "a file");
	int before = entries(folder);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	limit = (struct rlimit){ 100000, old.rlim_max };
	setrlimit(RLIMIT_FSIZE, &limit);
	int e = yk_file_write(path, large, 200000);
	setrlimit(RLIMIT_FSIZE, &old);
	ok(e == YOKE_EIO, "a disk that becomes full");
	is_error(YOKE_EIO, "limited", strerror(EFBIG), "names path and reason");
	holds(path, "old", "leaves the old file");
	ok(entries(folder) == before, "no temporary file is left");
	free(large);

	struct yk_file_writer w;
	ok(!yk_file_begin(&w, path), "begin");
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	if (full < 0) {
		skip("a full device", "no /dev/full");
	} else {
		dup2(full, w.fd);
		close(full);
		ok(yk_file_add(&w, "x", 1) == YOKE_EIO, "a full device");
		is_error(YOKE_EIO, "limited", strerror(ENOSPC), "names path and reason");
	}
	yk_file_abort(&w);
	holds(path, "old", "leaves the old file");
	for (int i = 0; i < 4; i++)
		pair(i & 1, i & 2);

	if (geteuid() == 0) {
		skip("a read-only directory", "root writes everywhere");
		return;
	}
	mkdir(in("locked"), 0555);
	ok(yk_file_write(in("locked/a"), "x", 1) == YOKE_EIO,
	   "a read-only directory");
	is_error(YOKE_EIO, "locked/a", "denied", "names path and reason");
	rmdir(in("locked"));
}

// A child rewrites a file again and again, with whole lines of one letter, until it is killed.
static void killed(void)
{
	enum { BYTES = 100000, ROUNDS = 10 };
	char *text = malloc(BYTES);
	bool whole = true;

	memset(text, 'a', BYTES);
	yk_file_write(in("killed"), text, BYTES);
	for (int i = 0; i < ROUNDS; i++) {
		pid_t child = fork();
		if (!child) {
			for (int c = 0;; c++) {
				memset(text, 'a' + c % 26, BYTES);
				yk_file_write(path, text, BYTES);
			}
		}
		for (int64_t k = rnd_int(20, 200); k > 0; k--) { // while the child writes
			char *got = NULL;
			size_t n = 0;
			whole &= !yk_file_read(path, BYTES, &got, &n) && n == BYTES &&
				 !memcmp(got, got + 1, BYTES - 1);
			free(got);
		}
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		char *got = NULL;
		size_t n = 0;
		whole &= !yk_file_read(path, BYTES, &got, &n) && n == BYTES &&
			 !memcmp(got, got + 1, BYTES - 1);
		free(got);
	}
	ok(whole, "complete at any time, and after kill -9, %d times", ROUNDS);
	free(text);
}

static void folders(void)
{
	struct stat st;
	char deep[600];

	snprintf(deep, sizeof deep, "%s/x//y/z/", folder);
	ok(!yk_dir_make(deep) && !stat(deep, &st) && S_ISDIR(st.st_mode), "mkdir -p");
	ok(!yk_dir_make(deep), "mkdir of an existing directory");
	ok(!yk_dir_make("/"), "the root");
	ok(yk_dir_make("") < 0, "an empty path");
	yoke_error_clear();
	yk_file_write(in("x/file"), "x", 1);
	ok(yk_dir_make(path) == YOKE_EIO, "mkdir over a file");
	is_error(YOKE_EIO, "x/file", "Not a directory", "names path and reason");
	ok(yk_dir_make(in("x/file/y")) == YOKE_EIO, "mkdir below a file");
	yoke_error_clear();
	ok(!yk_dir_sync(in("x")), "sync");
	ok(yk_dir_sync(in("none")) == YOKE_ENOENT, "sync of an empty path");
	yoke_error_clear();

	ok(!yk_dir_remove(in("none")), "removing a missing directory is no error");
	yk_file_write(in("x/y/z/1"), "", 0);
	yk_file_write(in("x/y/z/2"), "", 0);
	ok(!yk_dir_remove(in("x/y/z")) && stat(path, &st) < 0,
	   "a directory with files is removed");
	ok(yk_dir_remove(in("x")) == YOKE_EIO, "a directory with a subdirectory is kept");
	is_error(YOKE_EIO, "/x/", "cannot remove", "names path and reason");
	ok(!stat(in("x/y"), &st), "with the subdirectory");
	yk_file_write(in("x/y/precious"), "kept", 4);
	ok(!symlink("x/y", in("way")) && yk_dir_remove(path) == YOKE_EIO,
	   "a symbolic link to one is kept");
	yoke_error_clear();
	holds(in("x/y/precious"), "kept", "and what it points to");
}

// ---- JSON ----

static json_t *parse(const char *text)
{
	return yk_json_parse(text, strlen(text), "test");
}

static void json_bad(const char *text, const char *part, const char *what)
{
	json_t *j = parse(text);
	ok(!j, "%s", what);
	json_decref(j);
	is_error(YOKE_EFORMAT, "test", part, "says where and why");
}

static void json(void)
{
	char deep[300], *d = deep;
	int64_t i = -7;
	double r = -7;
	const char *s = NULL;

	json_t *j =
		parse("{\"i\": 9007199254740993, \"r\": 0.1, \"s\": \"x\", \"n\": null}");
	ok(j != NULL, "an object");
	ok(!yk_json_int(j, "test", "i", 0, INT64_MAX, &i) && i == 9007199254740993,
	   "an integer beyond 2^53");
	ok(!yk_json_real(j, "test", "r", &r) && r == 0.1, "a number");
	ok(!yk_json_real(j, "test", "i", &r) && r == 9007199254740992.0,
	   "an integer as a number");
	ok(!yk_json_str(j, "test", "s", &s) && !strcmp(s, "x"), "a string");
	json_t *named = yk_json_with(json_object(), "ab", 1, json_integer(7));
	ok(named && json_integer_value(json_object_get(named, "a")) == 7,
	   "a member whose name has one byte");
	ok(!yk_json_with(named, "a\0b", 3, json_integer(8)) &&
		   !yk_json_with(json_object(), "\xff", 1, json_null()) &&
		   !yk_json_with(NULL, "a", 1, json_null()),
	   "names with a NUL or not in UTF-8 are refused, also without an object");
	i = -7;
	ok(yk_json_int(j, "test", "i", 0, 10, &i) == YOKE_EFORMAT && i == -7,
	   "an integer outside its limits");
	is_error(YOKE_EFORMAT, "'i' is 9007199254740993", "0 .. 10",
		 "says what and which");
	ok(yk_json_int(j, "test", "r", 0, 10, &i) == YOKE_EFORMAT,
	   "a fraction for an integer");
	is_error(YOKE_EFORMAT, "'r'", "integer", "says what");
	ok(yk_json_str(j, "test", "n", &s) == YOKE_EFORMAT, "null for a string");
	is_error(YOKE_EFORMAT, "'n'", "string", "says what");
	ok(yk_json_real(j, "test", "s", &r) == YOKE_EFORMAT, "a string for a number");
	is_error(YOKE_EFORMAT, "'s'", "number", "says what");
	ok(yk_json_int(j, "test", "none", 0, 1, &i) == YOKE_EFORMAT,
	   "a missing member");
	is_error(YOKE_EFORMAT, "'none'", "missing", "says what");
	ok(yk_json_int(NULL, "test", "i", 0, 1, &i) == YOKE_EFORMAT,
	   "a member of a value that is no object");
	is_error(YOKE_EFORMAT, "'i'", "not an object", "says what");

	ok(!yk_json_save(in("j.json"), j), "save");
	json_t *again = yk_json_load(path);
	ok(json_equal(j, again), "loaded JSON equals the saved");
	json_decref(again);
	json_decref(j);
	static const char begins[] = "{\n  \"i\": 9007199254740993,\n  \"r\": ";
	char *text;
	size_t n;
	ok(!yk_file_read(path, 1000, &text, &n) && !strncmp(text, begins, strlen(begins)),
	   "JSON is indented by two, in order");
	free(text);

	json_bad("", "it is empty", "nothing");
	json_bad("{\"a\": 1,\n\"b\": }", "test:2", "an error in line 2");
	json_bad("{\"a\": 1, \"a\": 2}", "duplicate", "a key twice");
	json_bad("{\"a\": 1} x", "end of file", "something behind it");
	json_bad("{\"a\": \"\xff\"}", "byte 0xff", "not UTF-8");
	json_bad("[1e999]", "test:1", "a number too large");
	ok(!yk_json_parse("[1\0]", 4, "test"), "a NUL inside");
	yoke_error_clear();

	for (int k = 0; k < 65; k++)
		*d++ = '[';
	for (int k = 0; k < 65; k++)
		*d++ = ']';
	*d = 0;
	json_bad(deep, "deep", "65 levels");
	deep[129] = 0;
	j = parse(deep + 1);
	ok(j != NULL, "64 levels");
	json_decref(j);
	j = parse("[\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
		  "\\\"[\"]");
	ok(j != NULL, "brackets in a string do not nest");
	json_decref(j);

	ok(!yk_json_load(in("none.json")), "a missing file");
	is_error(YOKE_ENOENT, "none.json", "No such", "says which");
	yk_file_write(in("bad.json"), "{\n\n!", 4);
	ok(!yk_json_load(path), "an invalid file");
	is_error(YOKE_EFORMAT, "bad.json:3", "", "names file and line");
}

int main(void)
{
	const char *tmp = getenv("TMPDIR");

	tap_seed();
	snprintf(folder, sizeof folder, "%s/yoke-files-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(folder)) {
		printf("Bail out! no temporary folder: %s\n", strerror(errno));
		return 1;
	}
	reading();
	writing();
	failing();
	killed();
	folders();
	json();
	char command[600];
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	ok(!system(command), "cleaned up");
	return done();
}
