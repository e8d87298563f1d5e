// SPDX-License-Identifier: Apache-2.0
// Tests the checks of `yoke doctor` that depend on the user: OpenCL's ICD directories as the
// loader reads them, and device nodes that the user may not open. The latter run in a child
// process that is not root.
#include "config.h"

#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/cache.h"
#include "tool/doctor.h"
#include "device/icd.h"
#include "device/nodes.h"
#include "tap.h"

static char top[PATH_MAX];

static const char *in(const char *name)
{
	static char path[4][PATH_MAX];
	static int turn;
	char *to = path[turn++ % 4];
	snprintf(to, PATH_MAX, "%.3000s/%s", top, name);
	return to;
}

static void file(const char *name, const char *text, mode_t mode)
{
	int fd = open(in(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) ||
	    fchmod(fd, mode) < 0)
		diag("cannot write %s", name);
	close(fd);
}

// The result under these variables: state, count, the first library.
static void found(const char *vendors, const char *path, enum yk_icd_state state, size_t n,
		  const char *library)
{
	struct yk_icds icds;

	vendors ? setenv("OCL_ICD_VENDORS", vendors, 1) : unsetenv("OCL_ICD_VENDORS");
	path ? setenv("OPENCL_VENDOR_PATH", path, 1) : unsetenv("OPENCL_VENDOR_PATH");
	yk_icds_find(&icds);
	ok(icds.state == state && icds.n == n && (!n || !strcmp(icds.at[0].library, library)),
	   "OCL_ICD_VENDORS=%s OPENCL_VENDOR_PATH=%s: state %d (want %d), %zu of them (%zu), %s (%s)",
	   vendors ? vendors : "", path ? path : "", icds.state, state, icds.n, n,
	   icds.n ? icds.at[0].library : "", n ? library : "");
	yk_icds_free(&icds);
}

// Files without a plain line: the remaining name, and whether the loader can use the file or would
// block on it.
static void flaws(void)
{
	static const struct { const char *text, *library; bool flaw; } cases[] = {
		{ "liba.so\n", "liba.so", false },
		{ "liba.so", "liba.so", false },
		{ "liba.so\n\nmore\r\n", "liba.so", false },
		{ "liba.so\r\n", "liba.so", true },
		{ "liba.so \n", "liba.so", true },
		{ "liba.so\t", "liba.so", true },
		{ "\xef\xbb\xbfliba.so\n", "liba.so", true },
		{ "\xef\xbb\xbfliba.so\r\n", "liba.so", true },
		{ "\xff\xfel", "", true },
		{ "\xfe\xff", "", true },
		{ "\r\n", "", false },
		{ "\n", "", false },
	};
	static const struct { const char *name; bool blocks;
	} others[] = {
		{ "fifo.icd", true },
		{ "folder.icd", false },
		{ "off.icd", false },
		{ "terminal.icd", true },
	};
	struct yk_icds icds;

	mkdir(in("odd"), 0755);
	unsetenv("OPENCL_VENDOR_PATH");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		file("odd/a.icd", cases[i].text, 0644);
		setenv("OCL_ICD_VENDORS", in("odd"), 1);
		yk_icds_find(&icds);
		ok(icds.n == 1 && !strcmp(icds.at[0].library, cases[i].library) &&
			   !icds.at[0].flaw == !cases[i].flaw && !icds.at[0].blocks &&
			   !icds.at[0].error,
		   "text %zu of an .icd file: '%s' (want '%s'), %s", i,
		   icds.n ? icds.at[0].library : "none", cases[i].library,
		   icds.n && icds.at[0].flaw ? icds.at[0].flaw : "usable");
		yk_icds_free(&icds);
	}
	unlink(in("odd/a.icd"));
	mkdir(in("odd/folder.icd"), 0755);
	if (mkfifo(in("odd/fifo.icd"), 0644) || symlink("/dev/null", in("odd/off.icd")) ||
	    symlink("/dev/ptmx", in("odd/terminal.icd")))
		diag("no files");
	yk_icds_find(&icds);
	ok(icds.n == 4, "%zu files that are none (4)", icds.n);
	for (size_t i = 0; i < icds.n && i < 4; i++) {
		if (!strcmp(others[i].name, "terminal.icd") && access("/dev/ptmx", F_OK)) {
			skip(others[i].name, "there is no /dev/ptmx");
			continue;
		}
		ok(strstr(icds.at[i].file, others[i].name) && icds.at[i].flaw &&
			   !*icds.at[i].library && icds.at[i].blocks == others[i].blocks,
		   "%s: %s", others[i].name,
		   icds.at[i].blocks ? "a loader would wait" : "passed over");
	}
	yk_icds_free(&icds);
}

static void folders(void)
{
	mkdir(in("two"), 0755);
	file("two/b.icd", "libb.so\n", 0644);
	file("two/a.icd", "/x/liba.so\r\nlibnone.so\n", 0644);
	file("two/a.icd.old", "libold.so\n", 0644);
	file("two/.icd", "libhidden.so\n", 0644);
	mkdir(in("none"), 0755);
	file("none/readme", "text\n", 0644);
	mkdir(in("blank"), 0755);
	file("blank/blank.icd", "", 0644);

	found(in("two"), NULL, YK_ICD_FOUND, 2, "/x/liba.so");
	found(NULL, in("two"), YK_ICD_FOUND, 2, "/x/liba.so");
	found("", in("two"), YK_ICD_FOUND, 2, "/x/liba.so");
	found(in("none"), in("two"), YK_ICD_EMPTY, 0, NULL);
	found(in("two/b.icd"), NULL, YK_ICD_FOUND, 1, "libb.so");
	found("b.icd", in("two"), YK_ICD_FOUND, 1, "libb.so");
	found("c.icd", in("two"), YK_ICD_MISSING, 1, "");
	found("libfoo.so.1", NULL, YK_ICD_FOUND, 1, "libfoo.so.1");
	found(in("nowhere"), NULL, YK_ICD_MISSING, 1, in("nowhere"));
	found(NULL, in("nowhere"), YK_ICD_MISSING, 0, NULL);
	found(in("blank"), NULL, YK_ICD_FOUND, 1, "");
}

static const json_t *node(const json_t *list, const char *name)
{
	const json_t *o;
	size_t i;

	json_array_foreach (list, i, o)
		if (!strcmp(json_string_value(json_object_get(o, "path")), in(name)))
			return o;
	return NULL;
}

static bool is(const json_t *o, const char *key, const char *want)
{
	const char *got = json_string_value(json_object_get(o, key));
	return got && !strcmp(got, want);
}

static bool advised(const json_t *advice, const char *words)
{
	const json_t *line;
	size_t i;

	json_array_foreach (advice, i, line)
		if (strstr(json_string_value(line), words))
			return true;
	diag("no advice '%s'", words);
	return false;
}

// Runs as a user who is not root.
static void refused(void)
{
	struct yk_device_node denied = { 0 };
	struct group *group = getgrgid(getegid());
	char words[100];

	mkdir(in("dev"), 0755);
	mkdir(in("dev/dri"), 0755);
	file("dev/nvidia0", "", 0600);
	file("dev/nvidiactl.txt", "", 0000);
	file("dev/null", "", 0000);
	file("dev/dri/renderD128", "", 0060);
	file("dev/dri/card0", "", 0000);
	file("dev/kfd", "", 0000);

	json_t *advice = json_array(), *list = yk_doctor_nodes(in("dev"), false, advice);
	ok(json_array_size(list) == 3, "3 device nodes are listed, got %zu", json_array_size(list));
	ok(is(node(list, "dev/nvidia0"), "state", "opens"), "one can be opened");
	ok(is(node(list, "dev/kfd"), "state", "denied") && is(node(list, "dev/kfd"), "group", "") &&
	   advised(advice, "/kfd: assign it to a group"), "one belongs to root");
	ok(is(node(list, "dev/dri/renderD128"), "state", "denied") && group &&
		   is(node(list, "dev/dri/renderD128"), "group", group->gr_name),
	   "one belongs to a group: %s", group ? group->gr_name : "?");
	snprintf(words, sizeof words, "usermod -aG %s USER", group ? group->gr_name : "?");
	ok(advised(advice, words), "and the advice names the group");
	ok(yk_node_denied(in("dev"), &denied) && !strcmp(denied.path, in("dev/kfd")),
	   "a denied node: %s", denied.path);
	json_decref(list);
	json_decref(advice);

	chmod(in("dev/kfd"), 0600);
	chmod(in("dev/dri/renderD128"), 0600);
	advice = json_array();
	list = yk_doctor_nodes(in("dev"), false, advice);
	ok(advised(advice, "install its OpenCL driver") && json_array_size(advice) == 1,
	   "a GPU without a driver");
	json_decref(list);
	json_decref(advice);
	advice = json_array();
	json_decref(yk_doctor_nodes(in("dev"), true, advice));
	ok(!json_array_size(advice) && !yk_node_denied(in("dev"), &denied), "nothing to advise");
	json_decref(advice);
	list = yk_doctor_nodes(in("none"), false, NULL);
	ok(list && !json_array_size(list), "no device nodes");
	json_decref(list);

	mkdir(in("closed"), 0000);
	found(in("closed"), NULL, YK_ICD_UNREADABLE, 0, NULL);
	mkdir(in("secret"), 0755);
	file("secret/s.icd", "libs.so\n", 0000);
	found(in("secret"), NULL, YK_ICD_FOUND, 1, "");
	chmod(in("closed"), 0700);

	struct yk_cache_state s;
	mkdir(in("locked"), 0500);
	setenv("XDG_CACHE_HOME", in("locked"), 1);
	yk_cache_inspect(&s);
	ok(!s.usable && !s.requested && strstr(s.why, "it cannot be made in "), "a cache: %s",
	   s.why);
}

static int forget(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

int main(void)
{
	const char *tmp = getenv("TMPDIR");
	char made[1024];

	snprintf(made, sizeof made, "%s/yoke-doctor-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(made) || !realpath(made, top))
		return skip_all("no folder for temporary files");
	folders();
	flaws();
	fflush(stdout);
	if (geteuid() == 0) { // root may open everything
		char as[1024] = "/tmp/yoke-doctor-XXXXXX"; // in a path that others can reach
		if (!mkdtemp(as) || chown(as, 65534, 65534) < 0 || setgroups(0, NULL) < 0 ||
		    setegid(65534) < 0 || seteuid(65534) < 0) {
			skip("as another user", "this one cannot become nobody");
			return done();
		}
		snprintf(top, sizeof top, "%s", as);
		mkdir(in("none"), 0755);
	}
	refused();
	if (geteuid() == 65534 && (seteuid(0) < 0 || setegid(0) < 0))
		diag("cannot become root again");
	nftw(top, forget, 16, FTW_DEPTH | FTW_PHYS);
	nftw(made, forget, 16, FTW_DEPTH | FTW_PHYS);
	return done();
}
