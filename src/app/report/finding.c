// SPDX-License-Identifier: Apache-2.0
// Findings as JSON, and the facts of a run that several rules need.
#include "config.h"

#include "report/finding.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "observe/report.h"
#include "report/quantity.h"

void yk_advise(struct yk_advice *a, bool applies, const char *fmt, ...)
{
	const size_t n = strlen(a->text);
	va_list ap;
	if (!applies)
		return;
	if (n)
		yk_snprintf(a->text + n, sizeof a->text - n, ", or ");
	va_start(ap, fmt);
	yk_vsnprintf(a->text + strlen(a->text), sizeof a->text - strlen(a->text), fmt, ap);
	va_end(ap);
}

// A text that may contain words from the files of a run: control characters become '?', and a
// character that was truncated at the end is left out. Text that is not UTF-8 becomes "?".
static json_t *clean_string(const char *s)
{
	char *copy = strdup(s);
	const size_t n = strlen(s);
	json_t *j = NULL;
	for (size_t i = 0; copy && i < n; i++) {
		const unsigned char *c = (const unsigned char *)&copy[i];
		if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) // U+0080 to U+009F
			copy[i] = copy[i + 1] = '?';
		else if (iscntrl(*c))
			copy[i] = '?';
	}
	for (size_t cut = 0; copy && !j && cut < 4 && cut <= n; cut++)
		j = json_stringn(copy, n - cut);
	free(copy);
	return j ? j : json_string("?");
}

json_t *yk_advice_text(const struct yk_advice *a)
{
	return clean_string(a->text);
}

json_t *yk_finding_text(const char *fmt, ...)
{
	char text[600];
	va_list ap;
	va_start(ap, fmt);
	yk_vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return clean_string(text);
}

json_t *yk_evidence(const char *file, uint32_t from, uint32_t to, json_t *text)
{
	return json_pack("{s:s, s:I, s:I, s:o}", "file", file, "from", (json_int_t)from, "to",
			 (json_int_t)to, "text", text);
}

json_t *yk_evidence_train(const struct yk_found *f, json_t *text)
{
	return yk_evidence("metrics.jsonl", yk_found_line(f->train, f->first),
			   yk_found_line(f->train, SIZE_MAX), text);
}

json_t *yk_evidence_report(json_t *text)
{
	return yk_evidence("metrics.jsonl", 0, 0, text);
}

json_t *yk_find(struct yk_found *f, const char *condition, json_t *what, json_t *change,
		const char *needs, double gain)
{
	json_t *list = json_array();
	json_t *o = json_pack("{s:s, s:o, s:o, s:O, s:o, s:s, s:o}", "condition", condition, "run",
			      clean_string(f->v->name), "what", what, "evidence", list, "change",
			      change, "needs", needs, "gain",
			      gain > 1 ? yk_summary_real(gain) : json_null());
	json_decref(list);
	json_array_append_new(f->list, o);
	return list;
}

bool yk_found_any(const struct yk_found *f, const char *condition)
{
	json_t *name = clean_string(f->v->name);
	const json_t *o;
	bool any = false;
	size_t i;
	json_array_foreach (f->list, i, o)
		any |= json_equal(json_object_get(o, "run"), name) &&
		       (!condition ||
			!strcmp(json_string_value(json_object_get(o, "condition")), condition));
	json_decref(name);
	return any;
}

const char *yk_found_key(const struct yk_view *v, const char *key)
{
	const char *s =
		json_string_value(json_object_get(json_object_get(v->about, "config"), key));
	return s ? s : "n/a";
}

bool yk_found_is(const struct yk_view *v, const char *key, const char *value)
{
	return !strcmp(yk_found_key(v, key), value);
}

bool yk_found_set(const struct yk_view *v, const char *setting)
{
	return json_object_get(json_object_get(v->about, "settings"), setting) != NULL;
}

bool yk_found_on_cpu(const struct yk_view *v)
{
	return !strncmp(yk_view_field(v, "device"), "cpu", 3);
}

double yk_found_report(const struct yk_view *v, const char *key)
{
	const json_t *x = json_object_get(v->report, key);
	return json_is_number(x) ? json_number_value(x) : NAN;
}

double yk_found_phase(const struct yk_view *v, const char *name, bool *timed)
{
	double sum = 0;
	const char *device;
	json_t *d;
	json_object_foreach (json_object_get(v->report, "devices"), device, d) {
		const json_t *s = json_object_get(json_object_get(d, name), "seconds");
		if (json_is_number(s))
			sum += json_number_value(s);
		if (timed)
			*timed &= json_is_true(json_object_get(d, "timed"));
	}
	return sum;
}

uint32_t yk_found_line(const struct yk_view_table *t, size_t row)
{
	return t && t->rows ? yk_view_line(t, row < t->rows ? row : t->rows - 1) : 0;
}

double yk_found_gain(double share)
{
	return share > 0 && share < 1 ? yk_amdahl(1, share) : 0;
}

int yk_found_by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;
	return (a > b) - (a < b);
}
