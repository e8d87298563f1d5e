// SPDX-License-Identifier: Apache-2.0
// Parses options and device names for sub-commands.
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/param.h"
#include "device/device.h"
#include "tool/tool.h"

struct yk_device *yk_option_device(const char *name)
{
	char backend[64];

	if (!name)
		return yk_device_choose(NULL);
	size_t n = strcspn(name, ":");
	if (n >= sizeof backend) {
		yk_fail(YOKE_ENODEV,
			"device '%s' cannot be used: there is no such backend", name);
		return NULL;
	}
	memcpy(backend, name, n);
	backend[n] = '\0';
	if (name[n])
		yk_param_set("device", name, YK_ARGUMENT);
	return yk_device_choose(backend);
}

const char *yk_option(const char *option, int argc, char **argv, int *i)
{
	size_t n = strlen(option);
	if (strncmp(argv[*i], option, n))
		return NULL;
	if (argv[*i][n] == '=')
		return argv[*i] + n + 1;
	if (argv[*i][n])
		return NULL;
	return *i + 1 < argc ? argv[++*i] : "";
}

const char *yk_option_twice(char **argv, int i)
{
	size_t n = strcspn(argv[i], "=") + 1;

	for (int k = 1; argv[i][n - 1] && k < i; k++)
		if (!strncmp(argv[k], argv[i], n))
			return argv[k];
	return NULL;
}

int yk_option_number(const char *text, uint64_t *to)
{
	char *end;
	errno = 0;
	*to = strtoull(text, &end, 0);
	return isdigit((unsigned char)*text) && !*end && !errno ? 0 : -1;
}

void yk_print_json(const json_t *o)
{
	if (!o || json_dumpf(o, stdout, JSON_INDENT(2)) < 0)
		fputs("{}", stdout); // out of memory
	putchar('\n');
}

FILE *yk_json_only(void)
{
	FILE *to = NULL;
	fflush(stdout);
	const int fd = dup(STDOUT_FILENO);
	if (fd >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0)
		to = fdopen(fd, "w");
	if (!to)
		yk_fail(YOKE_EIO, "cannot reserve standard output for JSON: %s", strerror(errno));
	return to;
}

int yk_json_end(FILE *to, json_t *o)
{
	int e = o ? 0 :
		    yk_fail(YOKE_ENOMEM, "out of memory for the results, or a name is not UTF-8");
	errno = 0;
	if (e == 0 && (json_dumpf(o, to, JSON_INDENT(2)) < 0 || fputc('\n', to) == EOF))
		e = YOKE_EIO;
	if (to && fclose(to) == EOF && e == 0)
		e = YOKE_EIO;
	if (e == YOKE_EIO && errno == EPIPE) // the reader exited
		e = 0;
	if (e == YOKE_EIO)
		yk_fail(e, "standard output: %s", errno ? strerror(errno) : "write error");
	json_decref(o);
	return e;
}
