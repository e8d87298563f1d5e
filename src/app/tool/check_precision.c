// SPDX-License-Identifier: Apache-2.0
// yoke check precision: compares a configuration with a reference configuration that is known to be
// correct.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "observe/memory.h"
#include "tool/table.h"
#include "tool/tool.h"
#include "train/compare.h"

static json_t *text(const char *format, const json_t *number)
{
	char s[32] = "-";
	if (json_is_number(number))
		snprintf(s, sizeof s, format, json_number_value(number));
	return json_string(s);
}

static json_t *bytes(const json_t *number)
{
	char s[32];
	return json_string(yk_bytes_text(s, (uint64_t)json_integer_value(number)));
}

static void row(json_t *list, const char *what, json_t *f32, json_t *mixed, json_t *off,
		json_t *bound)
{
	json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:o, s:o}", "what", what, "f32", f32,
					      "mixed", mixed, "off", off, "bound", bound));
}

static const json_t *at(const json_t *o, const char *group, const char *key)
{
	return json_object_get(json_object_get(o, group), key);
}

static void print(const json_t *o)
{
	char steps[64];
	static const char *const keys[] = { "what", "f32", "mixed", "off", "bound" };
	const char *titles[] = { "", "fp32", yk_cell(o, "precision"), "relative", "bound" };
	json_t *list = json_array();
	const json_t *l;
	size_t i;

	row(list, "loss", text("%.4f", at(o, "loss", "f32")), text("%.4f", at(o, "loss", "mixed")),
	    text("%.2g off", at(o, "loss", "difference")), text("%.2g", at(o, "loss", "bound")));
	json_array_foreach (json_object_get(o, "layers"), i, l) {
		char what[96];
		snprintf(what, sizeof what, "gradient %s", yk_cell(l, "layer"));
		row(list, what, text("%.4g", json_object_get(l, "norm")), json_string("-"),
		    text("%.2g off", json_object_get(l, "error")),
		    text("%.2g", json_object_get(l, "bound")));
	}
	row(list, "peak memory", bytes(at(o, "memory", "f32")), bytes(at(o, "memory", "mixed")),
	    text("%.2f of it", at(o, "memory", "ratio")), json_string("-"));
	row(list, "tokens/s", text("%.0f", at(o, "speed", "f32")),
	    text("%.0f", at(o, "speed", "mixed")), text("%.2f of it", at(o, "speed", "ratio")),
	    json_string("-"));
	row(list, "overflows", json_string("-"), text("%.0f", json_object_get(o, "overflows")),
	    json_string("-"), json_string("-"));
	printf("on %s, %s each\n\n", yk_cell(o, "device"),
	       yk_counted(steps, (long long)json_integer_value(json_object_get(o, "steps")),
			  "step"));
	yk_table(list, "", 5, keys, titles);
	printf("\n%s %s\n", yk_cell(o, "precision"), yk_cell(o, "verdict"));
	json_decref(list);
}

// Arguments that are not options of this command are keys of train.
int yk_check_precision(int argc, char **argv)
{
	struct yk_config c;
	bool json = false;
	int n = 0, status = YK_FAILED;
	json_t *o = NULL;
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--json"))
			json = true;
		else
			argv[1 + n++] = argv[i];
	if (yk_config_init(&c, YK_T) < 0)
		return yk_failed("check precision");
	if (yk_config_arguments(&c, n, argv + 1) < 0) {
		yk_failed("check precision");
		status = YK_USAGE;
	} else if (!(o = yk_compare_precision(&c))) {
		yk_failed("check precision");
	} else {
		if (json)
			yk_print_json(o);
		else
			print(o);
		status = json_is_true(json_object_get(o, "good")) ? YK_DONE : YK_FAILED;
	}
	json_decref(o);
	yk_config_fini(&c);
	return status;
}
