// SPDX-License-Identifier: Apache-2.0
// Tests the parser of quirks.conf: versions and their ranges, valid lines and errors.
#include "config.h"

#include "base/log.h"
#include "device/quirks.h"
#include "tap.h"

static char said[4000];

static void hear(int level, const char *topic, const char *line, void *arg)
{
	size_t n = strlen(said);
	(void)level, (void)topic, (void)arg;
	snprintf(said + n, sizeof said - n, "%s\n", line);
}

static void in(const char *version, const char *range, bool want)
{
	bool got = yk_version_in(version, range);
	ok(got == want, "%s is %sin %s: %d", version, want ? "" : "not ", range, got);
}

static void drop(struct yk_quirk *list)
{
	for (struct yk_quirk *next; list; list = next) {
		next = list->next;
		free(list);
	}
}

// A line and its result: NULL a quirk, otherwise words of the error.
static void line(const char *text, const char *want)
{
	struct yk_quirk *list = NULL;

	said[0] = '\0';
	int corrupt = yk_quirks_parse(text, "f.conf", &list);
	if (want)
		ok(corrupt == 1 && !list && strstr(said, "f.conf:1: ") && strstr(said, want),
		   "'%s': %d corrupt, %s%s", text, corrupt, list ? "a quirk, " : "", said);
	else
		ok(!corrupt && list && !list->next && !*said, "'%s': %d corrupt, %s%s", text,
		   corrupt, list ? "a quirk" : "none", said);
	drop(list);
}

int main(void)
{
	yk_log_to(hear, NULL);
	in("560.35.03", "*", true);
	in("", "*", true);
	in("", "<3", false); // a device without a version is in no range
	in("unknown", ">=0", false);
	in("560.35.03", "<560.35.4", true);
	in("560.35.03", "<560.35.3", false);
	in("560.35.03", "<=560.35.3", true);
	in("560.35", "=560.35.0", true);
	in("560.35.1", ">560.35", true);
	in("9.10", ">9.9", true);
	in("5.0+debian", ">=5,<6", true);
	in("5.0+debian", ">=5, <5.0", false);
	in("PoCL 3.1, LLVM 14", "<3.2", true);
	in("99999999999999999999999", ">1", true);
	in("2.4.", ">=2.4", true);

	line("a|b|*|device|why|where", NULL);
	line("  a  |\tb | >=2,<2.4 | *.f64 | why | where  ", NULL);
	line("a|b|*|contract/tiled|why|where\r", NULL);
	line("a|b|*|Contract.f16/tiled|why|where", NULL);
	line("a|b|*|device|why", "fewer than six fields");
	line("a|b|*|device|why|where|more", "more than six fields");
	line("a|b||device|why|where", "a field is empty");
	line("a|b|2.4|device|why|where", "versions");
	line("a|b|>=|device|why|where", "versions");
	line("a|b|<<2|device|why|where", "versions");
	line("a|b|<2,|device|why|where", "versions");
	line("a|b|*|devices|why|where", "nor an op");
	line("a|b|*|softmax.half|why|where", "no dtype");
	line("a|b|*|softmax/|why|where", "no implementation");
	line("a|b|*|device|wh\x01y|where", "no text");

	struct yk_quirk *list = NULL;
	const char text[] =
		"\n# a|comment\na|b|*|softmax_backward.bf16/x y|why|where\n|\n\na|b|*|*|why|where";
	int corrupt = yk_quirks_parse(text, "f.conf", &list);
	ok(corrupt == 1 && list && list->line == 3 && list->op == YOKE_OP_SOFTMAX_BACKWARD &&
		   list->dtype == yoke_bf16 && !strcmp(list->impl, "x y") && !list->whole &&
		   list->next && list->next->line == 6 && !list->next->op && !list->next->dtype &&
		   !list->next->impl && !list->next->next,
	   "lines are numbered as in the file, and read");
	drop(list);
	return done();
}
