// SPDX-License-Identifier: Apache-2.0
// Verdicts on plugins, stored in the cache of kernels: a line with time and duration, a line with
// the outcome, then one line with the stamp of each library that the trial loaded.
#include "config.h"

#include "device/verdict.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernel/cache.h"

enum { PATIENCE_MIN_S = 300, PATIENCE_MAX_S = 3600, SHARE = 100 };
#define VALUE_MAX ((size_t)256 << 10)

void yk_verdict_save(const char *key, size_t bytes, const struct yk_verdict *v,
		     const char *libraries)
{
	char *text = NULL, *list = strdup(libraries), *rest = list, *path;
	size_t n = 0;
	FILE *to = open_memstream(&text, &n);

	if (to) {
		fprintf(to, "%" PRId64 " %" PRId64 "\n%s\n", v->tried, v->cost_ms, v->outcome);
		while (list && (path = strsep(&rest, "\n")))
			if (*path)
				yk_stamp_file(to, path);
	}
	if (to && !fclose(to) && list && n <= VALUE_MAX)
		yk_cache_put(key, bytes, text, n);
	free(text);
	free(list);
}

// Does the stamp in a line, "PATH: ...", match the file's current one?
static bool unchanged(const char *line)
{
	const char *colon = line;
	char *path, *now = NULL;
	size_t n = 0;

	for (const char *c = line; (c = strstr(c, ": ")); c += 2)
		colon = c;
	path = strndup(line, (size_t)(colon - line));
	FILE *to = open_memstream(&now, &n);
	if (path && to)
		yk_stamp_file(to, path);
	const bool same =
		to && !fclose(to) && path && n && !strncmp(now, line, n - 1) && !line[n - 1];
	free(path);
	free(now);
	return same;
}

static bool libraries_unchanged(char *lines)
{
	char *line;

	while ((line = strsep(&lines, "\n")))
		if (*line && !unchanged(line))
			return false;
	return true;
}

int64_t yk_verdict_patience(const struct yk_verdict *v)
{
	const int64_t s = v->cost_ms * SHARE / 1000;

	if (s < PATIENCE_MIN_S)
		return PATIENCE_MIN_S;
	return s < PATIENCE_MAX_S ? s : PATIENCE_MAX_S;
}

bool yk_verdict_recall(const char *key, size_t bytes, int64_t now, struct yk_verdict *to)
{
	struct yk_verdict v;
	char *text = malloc(VALUE_MAX + 1), *rest = text;
	int64_t n = text ? yk_cache_get(key, bytes, text, VALUE_MAX) : -1;
	bool good = n >= 0 && (size_t)n <= VALUE_MAX;

	if (good) {
		text[n] = '\0';
		const char *head = strsep(&rest, "\n"),
			   *outcome = rest ? strsep(&rest, "\n") : NULL;
		good = outcome && sscanf(head, "%" SCNd64 " %" SCNd64, &v.tried, &v.cost_ms) == 2 &&
		       v.cost_ms >= 0;
		if (good)
			snprintf(v.outcome, sizeof v.outcome, "%s", outcome);
	// a time in the future means that the clock was set back
		if (good && *v.outcome)
			good = v.tried <= now && now - v.tried < yk_verdict_patience(&v);
		good = good && libraries_unchanged(rest);
	}
	free(text);
	if (good)
		*to = v;
	return good;
}
