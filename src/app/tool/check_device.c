// SPDX-License-Identifier: Apache-2.0
// yoke check device: tests the ops of a device against their definitions; writes TAP.
#include "config.h"

#include <string.h>

#include "base/error.h"
#include "base/param.h"
#include "conform/conform.h"
#include "tool/tool.h"

// Parses "K/N", 0 <= K < N: every N-th test, starting with test K.
static int parse_every(const char *text, uint64_t *k, uint64_t *n)
{
	char first[24];
	const size_t length = strcspn(text, "/");

	if (length >= sizeof first || !text[length])
		return -1;
	memcpy(first, text, length);
	first[length] = '\0';
	return yk_option_number(first, k) < 0 || yk_option_number(text + length + 1, n) < 0 ||
			       *k >= *n ?
		       -1 :
		       0;
}

int yk_check_device(int argc, char **argv)
{
	struct yk_conform_options o = { .seed = 1 };
	const char *name = NULL, *value;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--quick")) {
			o.quick = true;
		} else if (!strcmp(argv[i], "--skipped")) {
			o.skipped = true;
		} else if (!strcmp(argv[i], "--bits")) {
			o.bits = true;
		} else if ((value = yk_option("--ops", argc, argv, &i))) {
			o.ops = value;
			if (!*value)
				return yk_usage(
					"check device",
					"--ops needs a list, for example --ops=map,contract.f32");
		} else if ((value = yk_option("--seed", argc, argv, &i))) {
			if (yk_option_number(value, &o.seed) < 0)
				return yk_usage("check device",
						"--seed must be a number, got '%s'", value);
		} else if ((value = yk_option("--shard", argc, argv, &i))) {
			if (parse_every(value, &o.shard, &o.shards) < 0)
				return yk_usage("check device",
						"--shard must be K/N with K below N, for example "
						"0/4, got '%s'",
						value);
		} else if ((value = yk_option("--pass", argc, argv, &i))) {
			if (parse_every(value, &o.pass, &o.passes) < 0)
				return yk_usage("check device",
						"--pass must be K/N with K below N, for example "
						"0/4, got '%s'",
						value);
		} else if (argv[i][0] == '-') {
			return yk_usage("check device",
					"unknown option '%s'; the options are --ops, --seed, "
					"--quick, --shard, --pass, "
					"--skipped and --bits",
					argv[i]);
		} else if (name) {
			return yk_usage("check device", "two devices, '%s' and '%s'; name one",
					name, argv[i]);
		} else {
			name = argv[i];
		}
	}
	if (yk_conform_check(o.ops) < 0)
		return yk_usage("check device", "%s", yoke_error());
	// no self-tests at start, which would disable faulty kernels before they are reported here
	yk_param_set("selftest", "0", YK_ARGUMENT);
	struct yk_device *d = yk_option_device(name);
	if (!d)
		return yk_failed("check device");
	int failed = yk_conform(d, &o, stdout);
	if (failed < 0)
		return yk_failed("check device");
	return failed ? YK_FAILED : YK_DONE;
}
