// SPDX-License-Identifier: Apache-2.0
// Opens a trained model for the sub-commands that use one.
#include "config.h"

#include "tool/model_open.h"

#include <string.h>

#include "base/error.h"
#include "tool/tool.h"

static int64_t context_of(const struct yk_config *c)
{
	return yk_config_given(c, YK_KEY_context) ? yk_config_int(c, YK_KEY_context) : 0;
}

int yk_with_model(unsigned command, int argc, char **argv, int (*fn)(const struct yk_opened *))
{
	struct yk_opened o = { 0 };
	const char *name = argv[0];
	int status = YK_DONE;
	if (argc < 2 || !*argv[1] || strchr(argv[1], '='))
		return yk_usage(name, "no model given: its folder comes before the keys");
	o.folder = argv[1];
	if (yk_config_init(&o.config, command) < 0)
		return yk_failed(name);
	if (yk_config_arguments(&o.config, argc - 2, argv + 2) < 0) {
		yk_failed(name);
		status = YK_USAGE;
	} else if (yk_config_apply(&o.config) < 0 || yk_trained_open(o.folder, context_of(&o.config), &o.model) < 0 ||
		   fn(&o) < 0) {
		status = yk_reader_gone() ? YK_DONE : yk_failed(name);
	}
	yk_trained_close(&o.model);
	yk_config_fini(&o.config);
	return status;
}
