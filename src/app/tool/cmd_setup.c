// SPDX-License-Identifier: Apache-2.0
// yoke setup: writes a configuration file with every key, its meaning and its default. The
// defaults are commented out, because a key that is not set keeps its value from a resumed
// checkpoint.
#include "config.h"

#include "tool/tool.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "config/advice.h"
#include "config/conf.h"

static void write_value(FILE *to, const char *value)
{
	bool plain = *value && !value[strspn(value, "abcdefghijklmnopqrstuvwxyz"
						    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")];
	if (plain || !*value)
		fputs(value, to);
	else if (!strcmp(value, "\n"))
		fputs("\"\\n\"", to);
	else
		fprintf(to, "'%s'", value);
}

static void write_key(FILE *to, const struct yk_config_row *r)
{
	fprintf(to, "\n# %c%s", toupper((unsigned char)r->help[0]), r->help + 1);
	if (r->type == YK_KEY_CHOICE)
		fprintf(to, " (%s)", r->choices);
	else if (r->type == YK_KEY_CHOICE_OR_PATH)
		fprintf(to, " (%s, or a path)", r->choices);
	else if (r->type == YK_KEY_INT || r->type == YK_KEY_REAL || r->type == YK_KEY_REAL_OR_PATHS)
		fprintf(to, " (%.10g .. %.10g%s%s)", r->min, r->max, r->choices ? ", or " : "",
			r->choices ? r->choices : "");
	fputs("\n#", to);
	for (const char *s = r->name; *s; s++)
		fputc(toupper((unsigned char)*s), to);
	fputc('=', to);
	write_value(to, r->def);
	fputc('\n', to);
}

static void write_keys(FILE *to, const char *path)
{
	static const struct {
		unsigned commands, without;
		const char *title;
	} part[] = { { YK_T, 0, "train" },
		     { YK_G, YK_T, "generate" },
		     { YK_C, YK_T | YK_G, "chat" },
		     { YK_E, YK_T | YK_G | YK_C, "eval" },
		     { YK_S, YK_T | YK_G | YK_C | YK_E, "serve" } };
	fprintf(to,
		"# All keys with their defaults. Remove the '#' from the lines that you change, "
		"DATA first, then run\n#\n#\tyoke train %s\n#\n# Arguments override this file: "
		"yoke train %s steps=100\n",
		path, path);
	for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
		bool titled = false;
		for (int k = 0; k < YK_KEYS; k++) {
			const struct yk_config_row *r = &yk_config_rows[k];
			if (!(r->commands & part[i].commands) || r->commands & part[i].without)
				continue;
			if (!titled)
				fprintf(to, "\n# ---- %s ----\n", part[i].title);
			titled = true;
			write_key(to, r);
		}
	}
}

static int setup(const char *path)
{
	char *word = yk_shell_word(path);
	int fd = word ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
	if (!word)
		return yk_fail(YOKE_ENOMEM, "%s: out of memory for its name", path);
	FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
	int e = 0, reason = errno;
	if (f) {
		write_keys(f, word);
		bool bad = ferror(f);
		if (fclose(f) || bad) {
			e = yk_fail(YOKE_EIO, "%s: %s", path,
				    errno ? strerror(errno) : "write error");
			unlink(path); // only the file that was created here
		}
	} else if (reason == EEXIST) {
		e = yk_fail(YOKE_EPERM, "%s: exists and is not overwritten; name another file",
			    path);
	} else {
		e = yk_fail(YOKE_EIO, "%s: %s", path, strerror(reason));
	}
	if (fd >= 0 && !f)
		close(fd);
	if (e == 0)
		printf("wrote %s; set DATA in it, then run: yoke train %s\n", path, word);
	free(word);
	return e;
}

int yk_cmd_setup(int argc, char **argv)
{
	if (argc > 2 || (argc == 2 && (!*argv[1] || argv[1][0] == '-')))
		return yk_usage("setup", "give at most one file name");
	if (setup(argc == 2 ? argv[1] : "config.env") < 0)
		return yk_failed("setup");
	return YK_DONE;
}
