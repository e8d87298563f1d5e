// SPDX-License-Identifier: Apache-2.0
// Quirks of devices: reads quirks.conf (the installed one, the administrator's, the user's) once
// and returns the implementations to avoid.  An invalid line is ignored, with a warning that gives
// its number.  Only names and versions are compared.
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fixed.h"
#include "base/file.h"
#include "base/log.h"
#include "base/number.h"
#include "base/param.h"
#include "base/system.h"
#include "device/device.h"
#include "device/installed.h"
#include "device/plugin.h"
#include "device/quirks.h"

YK_PARAM(quirks_setting, "quirks", YK_STRING, "",
	 "file with quirks of devices, instead of the installed, the system's and the user's "
		"file; 0: none");

enum { FIELDS = 6, MAX_BYTES = 1 << 20, MAX_COMPLAINTS = 10 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct yk_quirk *quirks; // in the order of the files; constant after `once`
static const char *trouble;     // with the requested file, or NULL; constant after `once`
static struct yk_quirk_use *uses; // under the lock of choose.c

// ---- names of ops ----

static const char *const names[YOKE_OP_LIMIT] = {
#define X(name, number) [number] = #name,
	YOKE_OP_CODES(X)
#undef X
};

static int op_code(const char *name, size_t n)
{
	for (int i = 0; i < YOKE_OP_LIMIT; i++)
		if (names[i] && strlen(names[i]) == n && yk_same_words(names[i], name, n))
			return i;
	return 0;
}

// ---- versions ----

// Reads the next number of a version; false: there is none.
static bool component(const char **at, uint64_t *to)
{
	if (!isdigit((unsigned char)**at))
		return false;
	for (*to = 0; isdigit((unsigned char)**at); ++*at)
		*to = *to < UINT64_MAX / 10 - 1 ? *to * 10 + (uint64_t)(**at - '0') : *to;
	if (**at == '.' && isdigit((unsigned char)(*at)[1]))
		++*at;
	return true;
}

// Compares the numbers between dots; a missing one counts as 0.
static int compare(const char *a, const char *b)
{
	for (;;) {
		uint64_t x = 0, y = 0;
		bool more = component(&a, &x);
		more |= component(&b, &y);
		if (x != y)
			return x < y ? -1 : 1;
		if (!more)
			return 0;
	}
}

// Reads the condition at the beginning of text: its operator and version.
static const char *condition(const char *text, char op[3])
{
	size_t n = strspn(text, "<>=");
	if (!n || n > 2 || (n == 2 && text[1] != '=') || !isdigit((unsigned char)text[n]))
		return NULL;
	snprintf(op, 3, "%.*s", (int)n, text);
	return text + n;
}

static bool good_range(const char *range)
{
	char op[3];
	if (!strcmp(range, "*"))
		return true;
	for (;;) {
		const char *version = condition(range, op);
		if (!version)
			return false;
		size_t n = strspn(version, "0123456789.");
		if (!version[n])
			return true;
		if (version[n] != ',')
			return false;
		range = version + n + 1;
		range += strspn(range, " ");
	}
}

bool yk_version_in(const char *version, const char *range)
{
	char op[3];
	if (!strcmp(range, "*"))
		return true;
	version += strcspn(version, "0123456789");
	if (!*version)
		return false;
	for (const char *limit; (limit = condition(range, op)); ) {
		int order = compare(version, limit);
		bool in = (order < 0 && op[0] == '<') || (order > 0 && op[0] == '>') ||
			  (order == 0 && (op[0] == '=' || op[1] == '='));
		if (!in)
			return false;
		range = limit + strspn(limit, "0123456789.");
		range += strspn(range, ", ");
	}
	return true;
}

// ---- lines ----

static int dtype_of(const char *name, size_t n)
{
	for (int d = yoke_f32; d <= yoke_bool; d++)
		if (strlen(yoke_dtype_name(d)) == n && !memcmp(yoke_dtype_name(d), name, n))
			return d;
	return 0;
}

// Parses "device", or OP[.DTYPE][/IMPLEMENTATION] with "*" for all ops.  Returns an error text, or
// NULL.
static const char *read_avoid(struct yk_quirk *q)
{
	const char *text = q->avoid;
	size_t n = strcspn(text, "./");

	if (!strcmp(text, "device")) {
		q->whole = true;
		return NULL;
	}
	q->op = op_code(text, n);
	if (!q->op && !(n == 1 && *text == '*'))
		return "what to avoid is neither 'device' nor an op";
	text += n;
	if (*text == '.') {
		n = strcspn(++text, "/");
		q->dtype = (uint8_t)dtype_of(text, n);
		if (!q->dtype)
			return "no dtype follows the '.'";
		text += n;
	}
	if (*text == '/' && !text[1])
		return "no implementation follows the '/'";
	if (*text == '/')
		q->impl = text + 1;
	return NULL;
}

static char *trim(char *text)
{
	text += strspn(text, " \t\r");
	size_t n = strlen(text);
	while (n && strchr(" \t\r", text[n - 1]))
		n--;
	text[n] = '\0';
	return text;
}

// Parses a line into q, which keeps pointers into it; returns an error text, or NULL.
static const char *read_line(char *line, struct yk_quirk *q)
{
	char *field[FIELDS], *rest = line, *word;
	int n = 0;

	for (const unsigned char *c = (unsigned char *)line; *c; c++)
		if (iscntrl(*c) && *c != '\t' && *c != '\r')
			return "it is no text";
	while ((word = strsep(&rest, "|"))) {
		if (n == FIELDS)
			return "more than six fields";
		field[n++] = trim(word);
	}
	if (n < FIELDS)
		return "fewer than six fields";
	for (int i = 0; i < FIELDS; i++)
		if (!*field[i])
			return "a field is empty";
	q->platform = field[0];
	q->device = field[1];
	q->driver = field[2];
	q->avoid = field[3];
	q->reason = field[4];
	q->source = field[5];
	if (!good_range(q->driver))
		return "the driver's versions are neither '*' nor as '>=2,<2.4'";
	return read_avoid(q);
}

int yk_quirks_parse(const char *text, const char *file, struct yk_quirk **to)
{
	int line = 0, corrupt = 0;

	while (*to)
		to = &(*to)->next;
	while (*text) {
		size_t n = strcspn(text, "\n");
		const char *from = text;
		text += n + (text[n] == '\n');
		line++;
		if (from[strspn(from, " \t\r")] == '#' || strspn(from, " \t\r") >= n)
			continue;
		struct yk_quirk *q = calloc(1, sizeof *q + n + 1);
		const char *why = "no memory";
		if (q)
			why = read_line(memcpy(q->text, from, n), q);
		if (!why) {
			q->file = file;
			q->line = line;
			*to = q;
			to = &q->next;
			continue;
		}
		if (++corrupt <= MAX_COMPLAINTS)
			yk_warn("quirks", "%s:%d: %s; the line is ignored", file, line, why);
		free(q);
	}
	return corrupt;
}

// ---- files ----

static void read_file(const char *path, bool requested)
{
	char *text, *name;
	size_t bytes;

	if (!requested && access(path, F_OK) < 0)
		return;
	bool had = yoke_error_code() != 0;
	if (yk_file_read(path, MAX_BYTES, &text, &bytes) < 0) {
		char *why = had ? NULL : strdup(yoke_error());
		yk_warn("quirks", "%s is not read%s%s", path, why ? ": " : "", why ? why : "");
		if (!had)
			yoke_error_clear();
		if (requested)
			trouble = why ? why : "it cannot be read";
		else
			free(why);
		return;
	}
	if (bytes >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
		memset(text, ' ', 3); // byte order mark of UTF-8
	if (strlen(text) != bytes)
		yk_warn("quirks", "%s is not read: it is no text", path);
	else if ((name = strdup(path)))
		yk_quirks_parse(text, name, &quirks);
	free(text);
}

static void read_all(void)
{
	const char *set = yk_param_str(&quirks_setting);
	yk_param_fix("quirks", "known faults were read");
	const char *xdg = yk_getenv_secure("XDG_CONFIG_HOME"), *home = yk_getenv_secure("HOME");
	char path[4096], beside[4096];

	if (!strcmp(set, "0"))
		return;
	if (*set) {
		read_file(set, true);
		return;
	}
	const bool moved = yk_beside("quirks.conf", beside, sizeof beside) ||
			   yk_installed(YK_QUIRKS, beside, sizeof beside);
	read_file(moved ? beside : YK_QUIRKS, false);
	read_file(YK_CONF_DIR "/yoke/quirks.conf", false);
	int n = 0;
	if (xdg && xdg[0] == '/')
		n = snprintf(path, sizeof path, "%s/yoke/quirks.conf", xdg);
	else if (home && home[0] == '/')
		n = snprintf(path, sizeof path, "%s/.config/yoke/quirks.conf", home);
	if (n > 0 && (size_t)n < sizeof path)
		read_file(path, false);
}

// ---- matching ----

static bool applies(const struct yk_quirk *q, const struct yk_device *d)
{
	const locale_t before = yk_locale_begin(); // in some locales I and i are not a pair
	const bool is = (!fnmatch(q->platform, d->info.platform, FNM_CASEFOLD) ||
			 !fnmatch(q->platform, d->backend->table.name, FNM_CASEFOLD)) &&
			!fnmatch(q->device, d->info.name, FNM_CASEFOLD);
	yk_locale_end(before);
	return is && yk_version_in(d->info.driver, q->driver);
}

static void note(struct yk_device *d, const struct yk_quirk *q)
{
	struct yk_quirk_use *u = calloc(1, sizeof *u), **end = &uses;
	if (!u)
		return;
	while (*end)
		end = &(*end)->next;
	memcpy(u->device, d->id, sizeof u->device);
	u->quirk = q;
	*end = u;
}

const struct yk_quirk *yk_quirks_of(struct yk_device *d)
{
	const struct yk_quirk *whole = NULL;

	pthread_once(&once, read_all);
	for (const struct yk_quirk *q = quirks; q; q = q->next) {
		if (!applies(q, d))
			continue;
		note(d, q);
		if (q->whole && !whole)
			whole = q;
		else if (!q->whole && !d->quirks)
			d->quirks = q;
	}
	return whole;
}

const char *yk_quirks_trouble(void)
{
	pthread_once(&once, read_all);
	return trouble;
}

const struct yk_quirk_use *yk_quirk_uses(void)
{
	return uses;
}

static bool has_dtype(const struct yoke_op *op, int dtype)
{
	bool has = false;
	for (uint32_t i = 0; i < op->nout; i++)
		has |= op->out[i].kind != YOKE_VIEW_NONE && op->out[i].dtype == dtype;
	for (uint32_t i = 0; i < op->nin; i++)
		has |= op->in[i].kind != YOKE_VIEW_NONE && op->in[i].dtype == dtype;
	for (int i = 0; op->map && i < op->map->ninsn; i++)
		has |= op->map->insn[i].dtype == dtype;
	return has;
}

uint64_t yk_quirks_mask(const struct yk_device *d, const struct yoke_op *op, uint64_t impls)
{
	for (const struct yk_quirk *q = d->quirks; q; q = q->next) {
		if (!applies(q, d) || q->whole || (q->op && q->op != op->code) ||
		    (q->dtype && !has_dtype(op, q->dtype)))
			continue;
		for (uint32_t i = 0; i < 64 && impls >> i; i++) {
			const char *name = q->impl ? d->ops->impl_name(d->index, op, i) : NULL;
			if (impls >> i & 1 && (!q->impl || (name && !strcmp(name, q->impl))))
				impls &= ~((uint64_t)1 << i);
		}
	}
	return impls;
}
