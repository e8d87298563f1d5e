// SPDX-License-Identifier: Apache-2.0
// yoke data get: writes a well-known data set that an installed package contains, or prints the
// command that downloads and verifies it.  It uses no network itself, and does not overwrite files.
#include "config.h"

#include "tool/tool.h"

#include <glob.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/param.h"
#include "base/system.h"
#include "config/advice.h"

extern char **environ;

struct set {
	const char *name, *what, *file; // file: its default name
	const char *package,
		*inside; // PyPI package, and its gzip file below site-packages; or NULL
	const char *url, *sha256, *then; // else the download; then: shell commands after it
	const char *next[2];             // commands that use it; %s is the file
};

static const struct set sets[] = {
	{ .name = "tinyshakespeare",
	  .what = "plays, 1.1 MB of text (Karpathy 2015)",
	  .file = "tinyshakespeare.txt",
	  .url = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/"
		 "input.txt",
	  .sha256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
	  .next = { "yoke train data=%s" } },
	{ .name = "wikitext2",
	  .what = "articles of Wikipedia, 4.7 MB zipped (Merity et al. 2016)",
	  .file = "wikitext-2-raw-v1.zip",
	  .url = "https://huggingface.co/datasets/ggml-org/ci/resolve/main/wikitext-2-raw-v1.zip",
	  .sha256 = "ef7edb566e3e2b2d31b29c1fdb0c89a4cc683597484c3dc2517919c615435a11",
	  .then = "unzip -n %s",
	  .next = { "yoke train data=wikitext-2-raw/wiki.train.raw" } },
	{ .name = "mnist",
	  .what = "70000 handwritten digits of 28 x 28, 11 MB (LeCun et al. 1998)",
	  .file = "mnist.npz",
	  .url = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",
	  .sha256 = "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1",
	  .next = { "yoke data info %s fields=x_train,y_train" } },
	{ .name = "digits",
	  .what = "1797 handwritten digits of 8 x 8, a table (Alpaydin and Kaynak 1998)",
	  .file = "digits.csv",
	  .package = "scikit-learn",
	  .inside = "sklearn/datasets/data/digits.csv.gz",
	  .next = { "yoke data info %s", "yoke data check %s" } },
};
enum { SETS = sizeof sets / sizeof *sets };

// ---- the installed package ----

// Searches the package folders of a prefix such as /usr.
static bool find_below(const char *prefix, const char *inside, char *to, size_t cap)
{
	static const char *const below[] = { "lib/python3*/site-packages",
					     "lib/python3*/dist-packages",
					     "lib/python3/dist-packages" };
	char pattern[4200];
	glob_t found;
	bool good = false;
	for (size_t i = 0; i < sizeof below / sizeof *below && !good; i++) {
		if ((size_t)snprintf(pattern, sizeof pattern, "%s/%s/%s", prefix, below[i],
				     inside) >= sizeof pattern ||
		    glob(pattern, 0, NULL, &found))
			continue;
		good = (size_t)snprintf(to, cap, "%s", found.gl_pathv[found.gl_pathc - 1]) < cap;
		globfree(&found);
	}
	return good;
}

// Searches the virtual environment, the user's folder, and the prefix of each python3 in PATH.
static bool find_installed(const char *inside, char *to, size_t cap)
{
	char prefix[4096];
	const char *path = getenv("PATH"), *home = getenv("HOME"),
		   *env[] = { getenv("VIRTUAL_ENV"), getenv("CONDA_PREFIX"), NULL };
	char *copy = strdup(path ? path : ""), *rest = copy, *folder;
	bool found = false;
	if (home && (size_t)snprintf(prefix, sizeof prefix, "%s/.local", home) < sizeof prefix)
		env[2] = prefix;
	for (size_t i = 0; i < 3 && !found; i++)
		found = env[i] && find_below(env[i], inside, to, cap);
	while (!found && rest && (folder = strsep(&rest, ":"))) {
		if ((size_t)snprintf(prefix, sizeof prefix, "%s/python3", folder) >=
			    sizeof prefix ||
		    access(prefix, X_OK))
			continue;
		snprintf(prefix, sizeof prefix, "%s/..", folder);
		found = find_below(prefix, inside, to, cap);
	}
	free(copy);
	return found;
}

static pid_t start_gzip(const char *path, int *out)
{
	int ends[2];
	pid_t pid = -1;
	posix_spawn_file_actions_t actions;
	if (yk_pipe(ends))
		return -1;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
	if (posix_spawnp(&pid, "gzip", &actions, NULL,
			 (char *[]){ "gzip", "-dc", "--", (char *)path, NULL }, environ))
		pid = -1;
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	*out = ends[0];
	if (pid < 0)
		close(ends[0]);
	return pid;
}

// Copies the table and returns its rows; negative: an error of the input.  The first line names
// columns.
static int64_t copy_digits(FILE *from, FILE *to)
{
	char *line = NULL;
	size_t cap = 0;
	int64_t rows = 0;
	for (int i = 0; i < 64; i++)
		fprintf(to, "p%d,", i);
	fprintf(to, "digit\n");
	while (rows >= 0 && getline(&line, &cap, from) > 0) {
		int commas = 0;
		for (const char *c = line; *c; c++)
			commas += *c == ',';
		rows = commas == 64 && !line[strspn(line, "0123456789,\n")] ? rows + 1 : -1;
		fputs(line, to);
	}
	free(line);
	return rows;
}

static int write_digits(const char *path, const char *out)
{
	char *text = NULL;
	size_t bytes = 0;
	int ends = -1, state = -1;
	FILE *to = open_memstream(&text, &bytes);
	if (!to)
		return yk_fail(YOKE_ENOMEM, "%s: out of memory", out);
	const pid_t pid = start_gzip(path, &ends);
	FILE *from = pid < 0 ? NULL : fdopen(ends, "r");
	const int64_t rows = from ? copy_digits(from, to) : -1;
	if (from)
		fclose(from);
	else if (pid > 0)
		close(ends);
	if (pid > 0)
		waitpid(pid, &state, 0);
	int e = 0;
	if (fclose(to))
		e = yk_fail(YOKE_ENOMEM, "%s: out of memory", out);
	else if (pid < 0)
		e = yk_fail(YOKE_ENOENT, "gzip, which unpacks %s, cannot be run; install it", path);
	else if (rows != 1797 || state)
		e = yk_fail(YOKE_EINVAL,
			    "%s: not the table of 1797 rows of 65 numbers; reinstall the package",
			    path);
	if (!e) // replaces the file only now that the table is complete
		e = yk_file_write(out, text, bytes);
	free(text);
	return e;
}

// ---- the command ----

static void print_with(const char *format, const char *file)
{
	const char *at = strstr(format, "%s");
	if (at)
		printf("%.*s%s%s", (int)(at - format), format, file, at + 2);
	else
		fputs(format, stdout);
}

// Prints the download as one line for a shell; `file` is quoted for it.
static void print_download(const struct set *s, const char *file)
{
	printf("curl -fL -o %s '%s' && echo '%s  '%s | sha256sum -c", file, s->url, s->sha256,
	       file);
	if (s->then) {
		fputs(" && ", stdout);
		print_with(s->then, file);
	}
	putchar('\n');
}

// Prints the commands that use the file, as comments.
static void print_next(const struct set *s, const char *file)
{
	for (int i = 0; i < 2 && s->next[i]; i++) {
		fputs("# next: ", stdout);
		print_with(s->next[i], file);
		putchar('\n');
	}
}

static int list(void)
{
	char path[4096];
	for (int i = 0; i < SETS; i++) {
		const bool here =
			sets[i].package && find_installed(sets[i].inside, path, sizeof path);
		printf("%-16s  %-68s  ", sets[i].name, sets[i].what);
		if (sets[i].package)
			printf("%s%s\n",
			       here ? "installed with " : "not installed: ", sets[i].package);
		else
			puts("download");
	}
	return YK_DONE;
}

static const struct set *find_set(const char *name)
{
	for (int i = 0; i < SETS; i++)
		if (!strcmp(sets[i].name, name))
			return &sets[i];
	return NULL;
}

// file: `out`, quoted for a shell.
static int get(const struct set *s, const char *out, const char *file, bool overwrite)
{
	char path[4096];
	if (!overwrite && access(out, F_OK) == 0)
		return yk_fail(YOKE_EINVAL, "%s exists; overwrite=1 replaces it", out);
	if (s->package && !find_installed(s->inside, path, sizeof path))
		return yk_fail(YOKE_ENOENT,
			       "%s is part of the Python package %s, which is not installed; run "
			       "`pip install %s` and repeat this",
			       s->name, s->package, s->package);
	const int e = s->package ? write_digits(path, out) : 0;
	if (e < 0)
		return e;
	if (s->package)
		printf("# wrote %s, from %s\n", out, path);
	else
		print_download(s, file);
	print_next(s, file);
	return 0;
}

int yk_data_get(int argc, char **argv)
{
	const struct set *s = NULL;
	const char *out = NULL, *names[SETS], *nearest;
	bool overwrite = false;
	for (int i = 0; i < SETS; i++)
		names[i] = sets[i].name;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--list"))
			return list();
		if (!strncmp(argv[i], "out=", 4) && argv[i][4])
			out = argv[i] + 4;
		else if (!strcmp(argv[i], "overwrite=1") || !strcmp(argv[i], "overwrite=0"))
			overwrite = argv[i][10] == '1';
		else if (strchr(argv[i], '=') || argv[i][0] == '-')
			return yk_usage("data get",
					"'%s' is none of out=FILE, overwrite=1 and --list",
					argv[i]);
		else if (s)
			return yk_usage("data get", "one data set at a time, not '%s' too",
					argv[i]);
		else if (!(s = find_set(argv[i])) && (nearest = yk_nearest(argv[i], names, SETS)))
			return yk_usage("data get", "no data set '%s'; did you mean '%s'", argv[i],
					nearest);
		else if (!s)
			return yk_usage("data get", "no data set '%s'; --list shows them", argv[i]);
	}
	if (!s)
		return yk_usage("data get", "needs the name of a data set; --list shows them");
	if (!out)
		out = s->file;
	char *file = yk_shell_word(out);
	const int e = file ? get(s, out, file, overwrite) :
			     yk_fail(YOKE_ENOMEM, "%s: out of memory", out);
	free(file);
	return e < 0 ? yk_failed("data get") : YK_DONE;
}
