// SPDX-License-Identifier: Apache-2.0
// yoke report: summarizes runs as HTML, Markdown, CSV or JSON.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "report/summary.h"
#include "tool/tool.h"

enum { MAX_RUNS = 16 };
enum { HTML, MARKDOWN, CSV, JSON, FORMS };

// The requested formats and their destinations; NULL: not requested; "-": standard output.
struct forms {
	const char *file[FORMS];
};
static const char *const option[FORMS] = { "--html", "--md", "--csv", "--json" };

static int write_form(FILE *to, int form, const json_t *o)
{
	char *text;
	switch (form) {
	case HTML: return yk_summary_html(to, o);
	case MARKDOWN: yk_summary_markdown(to, o); return 0;
	case CSV: yk_summary_csv(to, o); return 0;
	}
	if (!(text = json_dumps(o, JSON_INDENT(1) | JSON_REAL_PRECISION(9))))
		return yk_fail(YOKE_ENOMEM, "out of memory for the report");
	fprintf(to, "%s\n", text);
	free(text);
	return 0;
}

static int write_file(const char *path, int form, const json_t *o)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *f = open_memstream(&text, &bytes);
	int e = f ? write_form(f, form, o) : YOKE_ENOMEM;
	if (f && fclose(f) < 0)
		e = YOKE_ENOMEM;
	e = e == 0 ? yk_file_write(path, text, bytes) : yk_fail(e, "out of memory for the report");
	free(text);
	return e;
}

static int report(int n, const char *const *folder, const struct forms *to)
{
	struct yk_view *v[MAX_RUNS];
	json_t *o = NULL;
	int opened = 0, e = 0;
	while (opened < n && e == 0)
		if ((e = yk_view_open(folder[opened], true, &v[opened])) == 0)
			opened++;
	yk_view_names(opened, v);
	if (e == 0 && !(o = yk_summary_make(n, v)))
		e = yk_fail(YOKE_ENOMEM, "out of memory for the report");
	for (int i = 0; i < FORMS && e == 0; i++)
		if (to->file[i])
			e = strcmp(to->file[i], "-") ? write_file(to->file[i], i, o) :
						       write_form(stdout, i, o);
	json_decref(o);
	while (opened)
		yk_view_close(v[--opened]);
	return e;
}

int yk_cmd_report(int argc, char **argv)
{
	const char *folder[MAX_RUNS];
	struct forms to = { { NULL } };
	int n = 0, forms = 0, printed = 0;
	for (int i = 1; i < argc; i++) {
		const char *value = NULL, *argument = argv[i];
		int form = 0;
		while (form < JSON && !(value = yk_option(option[form], argc, argv, &i)))
			form++;
		if (form == JSON && !strcmp(argument, "--json"))
			value = "-";
		if (value) {
			if (to.file[form] || !*value)
				return yk_usage("report", "'%s': give %s FILE once", argument,
						option[form]);
			to.file[form] = value;
			forms++;
			printed += !strcmp(value, "-");
		} else if (argument[0] == '-') {
			return yk_usage("report",
					"unknown option '%s'; the options are --html FILE, --md "
					"FILE, --csv FILE and --json",
					argument);
		} else if (n == MAX_RUNS) {
			return yk_usage("report", "'%s': more than %d runs", argument, MAX_RUNS);
		} else {
			folder[n++] = argument;
		}
	}
	if (!n)
		return yk_usage("report",
				"no run given; name the folder of a run, the out= of `yoke train`");
	if (printed > 1)
		return yk_usage("report", "only one format can go to standard output; write the "
					  "others to files, for example --html FILE");
	if (!forms)
		to.file[MARKDOWN] = "-";
	const int e = report(n, folder, &to);
	return e < 0 && !yk_reader_exited() ? yk_failed("report") : YK_DONE;
}
