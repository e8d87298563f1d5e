// SPDX-License-Identifier: Apache-2.0
// Settings: the list of all declared ones, and how each gets its value.  Readers take no lock once
// a setting is resolved: its text is published last, and texts are never freed.
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fixed.h"
#include "base/number.h"
#include "base/param.h"
#include "base/system.h"

// Current and former texts of settings; a reader may still use one that was replaced.
struct text {
	struct text *next;
	char s[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // protects the following
static struct yk_param *params;                          // sorted by name
static struct text *texts;
static uint32_t epoch; // number of assignments

void (*yk_param_warn_hook)(const char *line);

__attribute__((format(printf, 1, 2)))
static void warn(const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	int n = yk_vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (n >= 0 && yk_param_warn_hook)
		yk_param_warn_hook(line);
}

enum { FORM = 80 };

// Describes valid values of p, "an integer from 0 to 9", in FORM bytes; returns `to`.
static const char *form(const struct yk_param *p, char *to)
{
	static const char *const of_type[] = {
		[YK_BOOL] = "0, 1, off or on",
		[YK_INT] = "an integer",
		[YK_BYTES] = "a number of bytes, e.g. 1000, 512M or 2GiB",
		[YK_STRING] = "text",
	};
	int n = snprintf(to, FORM, "%s", of_type[p->type]);
	if (p->min || p->max)
		n += snprintf(to + n, (size_t)(FORM - n), " from %lld", (long long)p->min);
	if (p->max && p->max < INT64_MAX)
		snprintf(to + n, (size_t)(FORM - n), " to %lld", (long long)p->max);
	return to;
}

int yk_parse_bytes(const char *text, int64_t *to)
{
	static const char units[] = "KMGT";

	if (!isdigit((unsigned char)*text))
		return YOKE_EINVAL;
	char *end;
	errno = 0;
	long long n = strtoll(text, &end, 10);
	if (errno)
		return YOKE_EINVAL;
	const char *unit = *end ? strchr(units, yk_capital_letter(*end)) : NULL;
	if (unit) {
		int64_t scale = (int64_t)1 << 10 * (unit - units + 1);
		if (__builtin_mul_overflow(n, scale, &n))
			return YOKE_EINVAL;
		end++;
		if (!strcmp(end, "iB"))
			end += 2;
	}
	if (*end)
		return YOKE_EINVAL;
	*to = n;
	return 0;
}

static int parse(const struct yk_param *p, const char *text, int64_t *to)
{
	char *end;

	switch (p->type) {
	case YK_STRING:
		return 0;
	case YK_BYTES:
		return yk_parse_bytes(text, to);
	case YK_BOOL:
		if (strcmp(text, "0") && strcmp(text, "1") && strcmp(text, "off") &&
		    strcmp(text, "on"))
			return YOKE_EINVAL;
		*to = !strcmp(text, "1") || !strcmp(text, "on");
		return 0;
	case YK_INT:
		errno = 0;
		long long n = strtoll(text, &end, 10);
		if (errno || end == text || *end || isspace((unsigned char)*text))
			return YOKE_EINVAL;
		if ((p->min || p->max) && (n < p->min || n > p->max))
			return YOKE_EINVAL;
		*to = n;
		return 0;
	}
	return YOKE_EINVAL;
}

// With the lock held.  NULL: no memory.
static char *keep_text(const char *s)
{
	for (struct text *t = texts; t; t = t->next)
		if (!strcmp(t->s, s))
			return t->s;
	size_t n = strlen(s) + 1;
	struct text *t = malloc(sizeof *t + n);
	if (!t)
		return NULL;
	memcpy(t->s, s, n);
	t->next = texts;
	texts = t;
	return t->s;
}

// With the lock held.
static void publish(struct yk_param *p, char *text, int64_t value,
		    enum yk_param_origin origin)
{
	p->origin = origin;
	__atomic_store_n(&p->value, value, __ATOMIC_RELAXED);
	__atomic_store_n(&p->text, text, __ATOMIC_RELEASE);
}

void yk_param_declare(struct yk_param *p)
{
	pthread_mutex_lock(&lock);
	struct yk_param **at = &params;
	while (*at && strcmp((*at)->name, p->name) < 0)
		at = &(*at)->next;
	p->next = *at;
	*at = p;
	pthread_mutex_unlock(&lock);
}

void yk_param_env(const char *name, char *to, unsigned long cap)
{
	int n = snprintf(to, cap, "YOKE_%s", name);
	if (n < 0 || !cap)
		return;
	for (char *c = to; *c; c++)
		*c = *c == '.' || *c == '-' ? '_' : yk_capital_letter(*c);
}

static void resolve(struct yk_param *p)
{
	char variable[128], expected[FORM];
	bool bad = false;
	int64_t value = 0;

	if (__atomic_load_n(&p->text, __ATOMIC_ACQUIRE))
		return;
	yk_param_env(p->name, variable, sizeof variable);
	// yk_getenv_secure ignores it in setuid programs; an empty variable counts as not set
	const char *text = yk_getenv_secure(variable);

	pthread_mutex_lock(&lock);
	if (!p->text) {
		enum yk_param_origin origin = YK_ENVIRONMENT;
		bad = text && *text && parse(p, text, &value) < 0;
		if (!text || !*text || bad) {
			origin = YK_DEFAULT;
			parse(p, p->def, &value);
		}
		char *kept = keep_text(origin == YK_DEFAULT ? p->def : text);
		if (!kept) // the default is a static string: no copy
			kept = (char *)p->def, parse(p, p->def, &value);
		publish(p, kept, value, origin);
	}
	pthread_mutex_unlock(&lock);

	if (bad) // outside the lock: the log reads a setting itself
		warn("%s=%s is not %s; the default %s is used", variable,
			text, form(p, expected), p->def);
}

int64_t yk_param_int(struct yk_param *p)
{
	resolve(p);
	return __atomic_load_n(&p->value, __ATOMIC_RELAXED);
}

bool yk_param_bool(struct yk_param *p)
{
	return yk_param_int(p) != 0;
}

const char *yk_param_str(struct yk_param *p)
{
	resolve(p);
	return __atomic_load_n(&p->text, __ATOMIC_ACQUIRE);
}

// The list only grows, so a pointer into it stays valid without the lock.
static struct yk_param *next_param(struct yk_param *p)
{
	pthread_mutex_lock(&lock);
	p = p ? p->next : params;
	pthread_mutex_unlock(&lock);
	return p;
}

struct yk_param *yk_param_find(const char *name)
{
	struct yk_param *p = NULL;
	while ((p = next_param(p)) && strcmp(p->name, name))
		;
	return p;
}

// Fails with the nearest name.
static int unknown(const char *name)
{
	const char *names[256];
	int n = 0;

	for (struct yk_param *p = NULL; n < 256 && (p = next_param(p)); )
		names[n++] = p->name;
	const char *near = yk_nearest(name, names, n);
	if (near)
		return yk_fail(YOKE_ENOENT, "no setting '%s'; did you mean '%s'?", name,
			       near);
	return yk_fail(YOKE_ENOENT, "no setting '%s'; yoke info --env lists them", name);
}

int yk_param_set(const char *name, const char *value, enum yk_param_origin origin)
{
	struct yk_param *p = yk_param_find(name);
	if (!p)
		return unknown(name);
	char expected[FORM];
	int64_t number = 0;
	if (parse(p, value, &number) < 0)
		return yk_fail(YOKE_EINVAL, "%s=%s: must be %s", name, value, form(p, expected));

	pthread_mutex_lock(&lock);
	bool weaker = p->text && p->origin > origin;
	char *text = weaker ? NULL : keep_text(value);
	if (text) {
		publish(p, text, number, origin);
		__atomic_add_fetch(&epoch, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	if (!text && !weaker)
		return yk_fail(YOKE_ENOMEM, "no memory for setting %s", name);
	return 0;
}

void yk_param_fix(const char *name, const char *when)
{
	struct yk_param *p = yk_param_find(name);
	if (p)
		__atomic_store_n(&p->fixed, when, __ATOMIC_RELEASE);
}

bool yk_param_is_fixed(const char *name)
{
	const struct yk_param *p = yk_param_find(name);
	return p && __atomic_load_n(&p->fixed, __ATOMIC_ACQUIRE);
}

int yk_param_is_open(const char *name, const char *value)
{
	struct yk_param *p = yk_param_find(name);
	const char *when = p ? __atomic_load_n(&p->fixed, __ATOMIC_ACQUIRE) : NULL;
	int64_t number = 0;
	if (!when || parse(p, value, &number) < 0 ||
	    (p->type == YK_STRING ? !strcmp(yk_param_str(p), value) : yk_param_int(p) == number))
		return 0;
	return yk_fail(YOKE_EINVAL,
		       "%s=%s is set too late, since %s with %s=%s; set it before that", name,
		       value, when, name, yk_param_str(p));
}

uint32_t yk_param_epoch(void)
{
	return __atomic_load_n(&epoch, __ATOMIC_ACQUIRE);
}

void yk_param_each(void (*fn)(struct yk_param *, void *), void *arg)
{
	for (struct yk_param *p = NULL; (p = next_param(p)); ) {
		resolve(p);
		fn(p, arg);
	}
}

// ---- the environment of a child ----

// Writes "YOKE_PLAN_MAX=4" for a setting that was set here; returns its length, 0: not set.  to may
// be NULL.
static size_t assignment(struct yk_param *p, char *to, size_t cap)
{
	char variable[128];
	const char *text = NULL;

	pthread_mutex_lock(&lock);
	if (p->text && p->origin >= YK_CONFIG)
		text = p->text;
	pthread_mutex_unlock(&lock);
	if (!text)
		return 0;
	yk_param_env(p->name, variable, sizeof variable);
	return (size_t)snprintf(to, cap, "%s=%s", variable, text);
}

// Is the variable in the list?
static bool has_variable(char *const *list, size_t n, const char *entry)
{
	size_t name = strcspn(entry, "=") + 1;
	for (size_t i = 0; i < n; i++)
		if (!strncmp(list[i], entry, name))
			return true;
	return false;
}

char **yk_param_environment(void)
{
	size_t entries = 1, bytes = 0, n = 0, set;

	for (char **e = environ; *e; e++)
		entries++;
	for (struct yk_param *p = NULL; (p = next_param(p)); entries++)
		bytes += assignment(p, NULL, 0) + 1;
	char **list = malloc(entries * sizeof *list + bytes);
	if (!list)
		return NULL;
	char *at = (char *)(list + entries), *end = at + bytes;
	for (struct yk_param *p = NULL; (p = next_param(p));) {
		size_t length = assignment(p, at, (size_t)(end - at));
		if (!length || length >= (size_t)(end - at)) // another thread just set it
			continue;
		list[n++] = at;
		at += length + 1;
	}
	set = n;
	for (char **e = environ; *e && n + 1 < entries; e++)
		if (!has_variable(list, set, *e))
			list[n++] = *e;
	list[n] = NULL;
	return list;
}

// ---- the nearest name ----

#define WORD_MAX 63 // longer words have no nearest name

// Edits from a to b: insert, delete, replace, swap neighbours (optimal string alignment).
static int distance(const char *a, const char *b)
{
	int la = (int)strlen(a), lb = (int)strlen(b);
	int rows[3][WORD_MAX + 1]; // the last three rows of the table; row i is rows[i % 3]

	for (int j = 0; j <= lb; j++)
		rows[0][j] = j;
	for (int i = 1; i <= la; i++) {
		int *row = rows[i % 3];
		const int *up = rows[(i + 2) % 3], *upup = rows[(i + 1) % 3];
		row[0] = i;
		for (int j = 1; j <= lb; j++) {
			int min = up[j - 1] + (a[i - 1] != b[j - 1]);
			if (up[j] + 1 < min)
				min = up[j] + 1;
			if (row[j - 1] + 1 < min)
				min = row[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1] && upup[j - 2] + 1 < min)
				min = upup[j - 2] + 1;
			row[j] = min;
		}
	}
	return rows[la % 3][lb];
}

const char *yk_nearest(const char *word, const char *const *names, int n)
{
	size_t length = strlen(word);
	if (length > WORD_MAX)
		return NULL;
	int min =
		2 +
		(int)length / 3; // at most a third of the letters and one
	const char *best = NULL;
	for (int i = 0; i < n; i++) {
		size_t other = strlen(names[i]);
		if (other > WORD_MAX)
			continue;
		int d = distance(word, names[i]);
		if (other < 5 && d > 1) // two edits turn a short word into another one
			continue;
		if (d < min && d < (int)(length > other ? length : other))
			min = d, best = names[i];
	}
	return best;
}

// ---- unknown variables ----

#define NEAR 2   // maximum edits of a mistyped name
#define PREFIX 5 // bytes of "YOKE_"

// Does any setting's name begin with that word and a dot?
static bool has_room(const char *word, size_t n)
{
	for (struct yk_param *p = NULL; (p = next_param(p));)
		if (!strncmp(p->name, word, n) && p->name[n] == '.')
			return true;
	return false;
}

// The variable of the setting nearest to the unknown variable.
static bool nearest_variable(const char *variable, char *to, size_t cap)
{
	const char *names[256], *near;
	char *copies = NULL;
	size_t bytes = 0;
	int n = 0;

	FILE *f = open_memstream(&copies, &bytes);
	if (!f)
		return false;
	for (struct yk_param *p = NULL; n < 256 && (p = next_param(p)); n++) {
		char text[128];
		yk_param_env(p->name, text, sizeof text);
		fprintf(f, "%s%c", text, '\0');
	}
	if (fclose(f)) {
		free(copies);
		return false;
	}
	const char *at = copies;
	for (int i = 0; i < n; i++, at += strlen(at) + 1)
		names[i] = at + PREFIX;
	near = yk_nearest(variable + PREFIX, names, n);
	if (near)
		snprintf(to, cap, "YOKE_%s", near);
	free(copies);
	return near != NULL;
}

static void judge(const char *variable)
{
	char near[128], word[128];
	size_t n = strcspn(variable + PREFIX, "_");

	for (struct yk_param *p = NULL; (p = next_param(p));) {
		yk_param_env(p->name, near, sizeof near);
		if (!strcmp(near, variable))
			return;
	}
	bool has = nearest_variable(variable, near, sizeof near);
	for (size_t i = 0; i < n && i < sizeof word; i++)
		word[i] = yk_small_letter(variable[PREFIX + i]);
	// a prefix without settings may belong to a plugin that is not loaded
	bool foreign = variable[PREFIX + n] && n < sizeof word && !has_room(word, n);
	if (foreign && !(has && distance(variable + PREFIX, near + PREFIX) <= NEAR))
		return;
	warn("%s is set, but there is no such setting%s%s%s", variable,
		has ? "; did you mean " : "; `yoke info --env` lists them", has ? near : "",
		has ? "?" : "");
}

static void judge_all(void)
{
	for (char **e = environ; *e; e++) {
		char variable[WORD_MAX + 1];
		size_t n = strcspn(*e, "=");
		// YOKE_BUILD belongs to quickstart
		if (strncmp(*e, "YOKE_", PREFIX) || !strncmp(*e, "YOKE_TEST_", 10) ||
		    !strncmp(*e, "YOKE_BUILD=", 11) || n >= sizeof variable)
			continue;
		memcpy(variable, *e, n);
		variable[n] = '\0';
		judge(variable);
	}
}

void yk_param_judge(void)
{
	static pthread_once_t judged = PTHREAD_ONCE_INIT;

	pthread_once(&judged, judge_all);
}

const char *yk_hint(const char *word, const char *const *names, int n, char *to, size_t cap)
{
	const char *near = yk_nearest(word, names, n);
	size_t at = (size_t)snprintf(to, cap, "%s%s%sthere are ", near ? "did you mean '" : "",
				     near ? near : "", near ? "'; " : "");

	for (int i = 0; i < n && at < cap; i++)
		at += (size_t)snprintf(to + at, cap - at, "%s%s", i ? ", " : "", names[i]);
	return to;
}
