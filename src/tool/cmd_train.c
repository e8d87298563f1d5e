// SPDX-License-Identifier: Apache-2.0
// yoke train: trains a model on text.
#include "config.h"

#include "tool/tool.h"

#include "train/run.h"

int yk_cmd_train(int argc, char **argv)
{
	struct yk_config c;
	if (yk_config_init(&c, YK_T) < 0)
		return yk_failed("train");
	int status = YK_DONE;
	if (yk_config_arguments(&c, argc - 1, argv + 1) < 0) {
		yk_failed("train");
		status = YK_USAGE;
	} else if (yk_train(&c) < 0) {
		status = yk_failed("train");
	}
	yk_config_fini(&c);
	return yk_finish("train", status);
}
