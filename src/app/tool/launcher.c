// SPDX-License-Identifier: Apache-2.0
// Detects the launcher of ranks and the installed MPI modules.
#include "config.h"

#include "tool/launcher.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "device/plugin.h"
#include "comm/launch_env.h"
#include "comm/mpi_load.h"
#include "tool/table.h"

json_t *yk_launcher_facts(void)
{
	struct yk_started p;
	char path[PATH_MAX], why[400] = "";
	json_t *modules = json_array();
	const int is = yk_started_find(&p);
	if (is < 0) {
		snprintf(why, sizeof why, "%s", yoke_error());
		yoke_error_clear();
	}
	for (int i = 0; i < YK_MPIS; i++)
		if (yk_module_find(yk_mpi_names[i], path, sizeof path))
			json_array_append_new(modules, json_pack("{s:s, s:s}", "name",
								 yk_mpi_names[i], "path", path));
	return json_pack("{s:s, s:i, s:i, s:i, s:s, s:o}", "launcher",
			 is <= 0    ? "" :
			 p.launcher ? p.launcher :
				      "yoke",
			 "rank", is > 0 ? (int)p.rank : 0, "ranks", is > 0 ? (int)p.ranks : 1,
			 "here", is > 0 ? (int)p.locals : 1, "why", why, "modules", modules);
}

void yk_launcher_print(const json_t *o)
{
	const json_t *list = json_object_get(o, "modules"), *m;
	size_t i;
	if (*yk_cell(o, "why") != '-')
		printf("  launcher    %s\n", yk_cell(o, "why"));
	else if (*yk_cell(o, "launcher") != '-')
		printf("  launcher    %s: rank %lld of %lld, %lld of them on this machine\n",
		       yk_cell(o, "launcher"),
		       (long long)json_integer_value(json_object_get(o, "rank")),
		       (long long)json_integer_value(json_object_get(o, "ranks")),
		       (long long)json_integer_value(json_object_get(o, "here")));
	else
		printf("  launcher    none: one process, or the processes that ranks= starts\n");
	json_array_foreach (list, i, m)
		printf("  module      %s  %s\n", yk_cell(m, "name"), yk_cell(m, "path"));
	if (!json_array_size(list))
		printf("  module      no MPI library: ranks= and launchers work on one machine, "
		       "but not across machines\n");
}
