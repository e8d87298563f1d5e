// SPDX-License-Identifier: Apache-2.0
// yoke train: trains a model on text or token files.
#include "config.h"

#include "tool/tool.h"

#include "comm/process.h"
#include "parallel/ranks.h"
#include "train/launch_ranks.h"

int yk_cmd_train(int argc, char **argv)
{
	struct yk_config c;
	if (yk_config_init(&c, YK_T) < 0)
		return yk_failed("train");
	int status = YK_DONE;
	if (yk_config_arguments(&c, argc - 1, argv + 1) < 0) {
		yk_failed("train");
		status = YK_USAGE;
	} else if ((yk_ranks_spawns(&c) ? yk_ranks_spawn(&c, argc, argv) :
					  yk_ranks_train(&c, argc, argv)) < 0) {
		// one process reports the error for all
		status = yk_process_failed() ? YK_FAILED : yk_failed("train");
	}
	yk_config_fini(&c);
	return status;
}
