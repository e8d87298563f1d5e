// SPDX-License-Identifier: Apache-2.0
// yoke doctor RUN: prints the problems of runs, as text or JSON.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "report/conditions.h"
#include "runs/write.h"
#include "tool/doctor.h"
#include "tool/table.h"
#include "tool/tool.h"

static void print_one(const json_t *o)
{
	const json_t *e, *gain = json_object_get(o, "gain");
	size_t i;
	printf("%s: %s: %s\n", yk_cell(o, "run"), yk_cell(o, "condition"), yk_cell(o, "what"));
	json_array_foreach (json_object_get(o, "evidence"), i, e) {
		long long from = json_integer_value(json_object_get(e, "from")),
			  to = json_integer_value(json_object_get(e, "to"));
		char lines[64] = "";
		if (from > 0 && to > from)
			snprintf(lines, sizeof lines, ", lines %lld to %lld", from, to);
		else if (from > 0)
			snprintf(lines, sizeof lines, ", line %lld", from);
		printf("  evidence  %s%s: %s\n", yk_cell(e, "file"), lines, yk_cell(e, "text"));
	}
	if (*yk_cell(o, "change") != '-')
		printf("  change    %s\n", yk_cell(o, "change"));
	if (json_is_number(gain))
		printf("  gain      at most %.3g times as fast\n", json_number_value(gain));
	if (*yk_cell(o, "needs") != '-')
		printf("  needs     %s\n", yk_cell(o, "needs"));
}

static void print(const json_t *list, int runs)
{
	const json_t *o;
	size_t i;
	int printed = 0;
	json_array_foreach (list, i, o)
		print_one(o);
	printf(json_array_size(list) ? "\nnot found:" : "none found of:");
	for (int k = 0; yk_condition_names[k]; k++) {
		bool found = runs < 2 && !strcmp(yk_condition_names[k], "inconsistent");
		json_array_foreach (list, i, o)
			found |= !strcmp(yk_cell(o, "condition"), yk_condition_names[k]);
		if (!found)
			printf("%s %s", printed++ ? "," : "", yk_condition_names[k]);
	}
	printf("\n");
}

int yk_doctor_runs(int n, const char *const *folder, bool json)
{
	struct yk_view *v[2] = { NULL, NULL };
	json_t *list = NULL;
	int e = 0;
	for (int i = 0; i < n && e == 0; i++)
		e = yk_view_open(folder[i], true, &v[i]);
	if (e == 0) {
		yk_view_names(n, v);
		list = yk_conditions(v[0], v[1], yk_unix_seconds());
		if (!list)
			e = yk_fail(YOKE_ENOMEM, "out of memory for the diagnosis");
	}
	if (list && json) {
		json_t *o = json_pack("{s:O}", "conditions", list);
		yk_print_json(o);
		json_decref(o);
	} else if (list) {
		print(list, n);
	}
	int status = e < 0 ? yk_failed("doctor") : json_array_size(list) ? YK_FAILED : YK_DONE;
	json_decref(list);
	yk_view_close(v[0]);
	yk_view_close(v[1]);
	return status;
}
