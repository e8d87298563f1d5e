// SPDX-License-Identifier: Apache-2.0
// Opening a model for a sub-command.
#include "config.h"

#include "tool/model_open.h"

#include <string.h>

#include "base/error.h"
#include "tool/tool.h"

int yk_open_model(struct yk_opened *o, unsigned command, int argc, char **argv)
{
	*o = (struct yk_opened){ 0 };
	const char *name = argv[0];
	if (argc < 2 || !*argv[1] || strchr(argv[1], '='))
		return yk_usage(name, "no model given: its folder comes before the keys");
	o->folder = argv[1];
	if (yk_config_init(&o->config, command) < 0)
		return yk_failed(name);
	int status = YK_DONE;
	if (yk_config_arguments(&o->config, argc - 2, argv + 2) < 0) {
		yk_failed(name);
		status = YK_USAGE;
	} else if (yk_config_apply(&o->config) < 0 || yk_trained_open(o->folder, &o->model) < 0) {
		status = yk_failed(name);
	}
	if (status != YK_DONE)
		yk_close_model(o);
	return status;
}

void yk_close_model(struct yk_opened *o)
{
	yk_trained_close(&o->model);
	yk_config_fini(&o->config);
}
