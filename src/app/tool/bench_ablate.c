// SPDX-License-Identifier: Apache-2.0
// yoke bench ablate: measures the effect of configuration options on speed, memory and loss.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "observe/memory.h"
#include "tool/table.h"
#include "tool/tool.h"
#include "train/ablate.h"

static json_t *text(const char *format, const json_t *number)
{
	char s[32] = "n/a";
	if (json_is_number(number))
		snprintf(s, sizeof s, format, json_number_value(number));
	return json_string(s);
}

static void print(const json_t *o)
{
	char steps[64], rounds[64];
	static const char *const keys[] = { "name", "rate", "spread",     "ratio",
					    "peak", "loss", "loss_spread" };
	static const char *const titles[] = { "",     "steps/s", "+-", "vs all off", "peak memory",
					      "loss", "+-" };
	json_t *list = json_array();
	const json_t *v;
	size_t i;
	char peak[32];
	json_array_foreach (json_object_get(o, "variants"), i, v)
		json_array_append_new(
			list,
			json_pack("{s:s, s:o, s:o, s:o, s:s, s:o, s:o}", "name", yk_cell(v, "name"),
				  "rate", text("%.4g", json_object_get(v, "steps_per_s")), "spread",
				  text("%.2g", json_object_get(v, "spread")), "ratio",
				  text("%.3f", json_object_get(v, "ratio")), "peak",
				  yk_bytes_text(peak, (uint64_t)json_integer_value(
							      json_object_get(v, "peak_bytes"))),
				  "loss", text("%.6g", json_object_get(v, "loss")), "loss_spread",
				  text("%.2g", json_object_get(v, "loss_spread"))));
	printf("on %s, %s per variant, %s in alternation\n\n", yk_cell(o, "device"),
	       yk_counted(steps, (long long)json_integer_value(json_object_get(o, "steps")),
			  "step"),
	       yk_counted(rounds, (long long)json_integer_value(json_object_get(o, "rounds")),
			  "round"));
	yk_table(list, "", 7, keys, titles);
	json_decref(list);
}

// Default toggles for models with resolvents: their kernels and the toolbox.
static const char *default_toggles(struct yk_config *c)
{
	if (strcmp(yk_config_str(c, YK_KEY_model), "bk") ||
	    yk_config_argument(c, "allow_emulated=1") < 0)
		return NULL;
	return "plan.named=0,bk_tier=mixed,precision=bf16-mixed,align=0,recompute=block,offload=optimizer";
}

int yk_bench_ablate(int argc, char **argv)
{
	struct yk_config c;
	const char *toggles = NULL;
	uint64_t rounds = 3;
	bool json = false;
	int n = 0, status = YK_DONE;
	for (int i = 1; i < argc; i++)
		if (!strncmp(argv[i], "toggles=", 8))
			toggles = argv[i] + 8;
		else if (!strncmp(argv[i], "rounds=", 7)) {
			if (yk_option_number(argv[i] + 7, &rounds) < 0 || rounds < 1 || rounds > 31)
				return yk_usage("bench ablate",
						"'%s': must be a number from 1 to 31", argv[i]);
		} else if (!strcmp(argv[i], "--json"))
			json = true;
		else
			argv[1 + n++] = argv[i];
	if (yk_config_init(&c, YK_T) < 0)
		return yk_failed("bench ablate");
	json_t *o = NULL;
	if (yk_config_arguments(&c, n, argv + 1) < 0) {
		yk_failed("bench ablate");
		status = YK_USAGE;
	} else if (!toggles && !(toggles = default_toggles(&c))) {
		status = yk_usage("bench ablate", "no toggles; give some, for example "
						  "toggles=recompute=block,precision=bf16-mixed");
	} else if (!(o = yk_ablate(&c, toggles, (int)rounds))) {
		status = yk_failed("bench ablate");
	} else if (json)
		yk_print_json(o);
	else
		print(o);
	json_decref(o);
	yk_config_fini(&c);
	return status;
}
