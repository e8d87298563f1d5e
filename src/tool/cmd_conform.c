// SPDX-License-Identifier: Apache-2.0
// yoke conform: the ops of a device against their definitions, as TAP.
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/param.h"
#include "conform/conform.h"
#include "tool/tool.h"

// "mychip" is a backend, "mychip:1" a device of it; NULL: what YOKE_BACKEND and YOKE_DEVICE say.
static struct yk_device *choose(const char *name)
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

// The value behind an option: "--seed=7" or the next argument; NULL: another option.
static const char *value_of(const char *option, int argc, char **argv, int *i)
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

static int number(const char *text, uint64_t *to)
{
	char *end;
	errno = 0;
	*to = strtoull(text, &end, 0);
	return isdigit((unsigned char)*text) && !*end && !errno ? 0 : -1;
}

int yk_cmd_conform(int argc, char **argv)
{
	struct yk_conform_options o = { .seed = 1 };
	const char *name = NULL, *value;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--quick")) {
			o.quick = true;
		} else if ((value = value_of("--ops", argc, argv, &i))) {
			o.ops = value;
			if (!*value)
				return yk_usage(
					"conform",
					"--ops wants a list, as map,contract.f32");
		} else if ((value = value_of("--seed", argc, argv, &i))) {
			if (number(value, &o.seed) < 0)
				return yk_usage("conform",
						"--seed wants a number, got '%s'", value);
		} else if (argv[i][0] == '-') {
			return yk_usage(
				"conform",
				"unknown option '%s'; there are --ops, --seed and "
				"--quick",
				argv[i]);
		} else if (name) {
			return yk_usage("conform", "one device at a time: '%s' or '%s'",
					name, argv[i]);
		} else {
			name = argv[i];
		}
	}
	if (yk_conform_check(o.ops) < 0)
		return yk_usage("conform", "%s", yoke_error());
	struct yk_device *d = choose(name);
	if (!d)
		return yk_failed("conform");
	int failed = yk_conform(d, &o, stdout);
	if (failed < 0)
		return yk_failed("conform");
	return yk_finish("conform", failed ? YK_FAILED : YK_DONE);
}
