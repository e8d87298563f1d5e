// SPDX-License-Identifier: Apache-2.0
// The tuning file of a device and its driver: read once, and used only if it is complete and
// belongs to the user.  Nothing else decides between implementations, so the choice never depends
// on timing in this process.
#include "config.h"

#include "device/tuning.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fixed.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/param.h"
#include "kernel/cache.h"

YK_PARAM(tune_setting, "tune", YK_BOOL, "1",
	 "use the implementations that `yoke tune` found to be fastest");

enum { MAX_BYTES = 1 << 20 };

// ---- the text ----

// The expected first line: a file of another driver or version is not used; f32 and tf32 have
// separate files.
static void head_of(const struct yk_device *d, char *to, size_t cap)
{
	snprintf(to, cap, "yoke-tuning 1 %s; %s; %s; %s%s", PACKAGE_VERSION, d->ops->name,
		 d->info.name, d->info.driver, d->info.flags & YOKE_DEVICE_TF32 ? "; tf32" : "");
	for (; *to; to++)
		*to = *to == '\n' ? ' ' : *to;
}

static bool good_value(const char *text, size_t n)
{
	size_t digits = strspn(text, "0123456789");

	return (digits == n && n && n < 19) || (n == 5 && !memcmp(text, "wrong", 5)) ||
	       (n == 5 && !memcmp(text, "fails", 5));
}

// What is wrong with a line of results, or NULL.
static const char *complaint(const char *line)
{
	size_t n = strcspn(line, " ");

	if (!n || n >= YK_TUNING_NAME || !memchr(line, '.', n))
		return "it begins with no class";
	if (!line[n])
		return "no implementation follows its class";
	for (line += n; *line; line += n) {
		n = strcspn(++line, " ");
		const char *value = memchr(line, '=', n);
		if (!value || value == line)
			return "it is not NAME=NANOSECONDS, NAME=wrong or NAME=fails";
		value++;
		if (!good_value(value, n - (size_t)(value - line)))
			return "neither nanoseconds nor 'wrong' nor 'fails' follow a '='";
	}
	return NULL;
}

// Parses the text; returns the number of the first invalid line, and why; 0: all are valid.
static int parse(struct yk_tuning *t, const char *head, char *text, size_t bytes,
		 const char **why)
{
	int number = 1;
	char *at = text;

	for (;; number++) {
		char *end = strchr(at, '\n');
		*why = at + strlen(at) < text + bytes ? "it is no text" : "it is cut off";
		if (!end)
			return number;
		*end = '\0';
		if (number == 1) {
			*why = "it is of another device, driver or version";
			if (strcmp(at, head))
				return number;
		} else if (!strncmp(at, "end ", 4)) {
			char want[64];
			*end = '\n';
			for (char *c = text; c < at; c++) // restore the text for the checksum
				*c = *c ? *c : '\n';
			snprintf(want, sizeof want, "end %d %016" PRIx64 "\n", number - 2,
				 yk_hash(text, (size_t)(at - text), 0));
			*why = "number of lines or checksum are wrong";
			return strcmp(at, want) ? number : 0;
		} else if ((*why = complaint(at))) {
			return number;
		} else if (yk_tuning_add(t, at) < 0) {
			*why = "no memory";
			return number;
		}
		at = end + 1;
	}
}

// ---- the file ----

static void drop_lines(struct yk_tuning *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->line[i]);
	free(t->line);
	t->line = NULL;
	t->n = 0;
}

void yk_tuning_fini(struct yk_tuning *t)
{
	drop_lines(t);
}

void yk_tuning_try_read(const struct yk_device *d, struct yk_tuning *t, char *why, size_t cap)
{
	char head[600];

	head_of(d, head, sizeof head);
	yk_tuning_open(head, t, why, cap);
}

void yk_tuning_open(const char *head, struct yk_tuning *t, char *why, size_t cap)
{
	struct yk_cache_state folder;
	char *text;
	struct stat st;
	const char *complaint_of;
	size_t bytes;

	*t = (struct yk_tuning){ .line = NULL };
	why[0] = '\0';
	yk_cache_inspect(&folder);
	if (!folder.usable)
		return;
	int n = snprintf(t->path, sizeof t->path, "%.4000s/tuning-%016" PRIx64 ".txt",
			 folder.path, yk_hash(head, strlen(head), 0));
	if (n < 0 || (size_t)n >= sizeof t->path) {
		t->path[0] = '\0';
		return;
	}
	if (lstat(t->path, &st) < 0)
		return;
	if (!S_ISREG(st.st_mode) || !yk_cache_ours(&st)) {
		snprintf(why, cap, "%s: it must be a file that only this user may write", t->path);
		return;
	}
	bool had = yoke_error_code() != 0;
	if (yk_file_read(t->path, MAX_BYTES, &text, &bytes) < 0) {
		snprintf(why, cap, "%s", had ? t->path : yoke_error());
		if (!had)
			yoke_error_clear();
		return;
	}
	int line = parse(t, head, text, bytes, &complaint_of);
	if (line) {
		snprintf(why, cap, "%s:%d: %s", t->path, line, complaint_of);
		drop_lines(t);
	}
	free(text);
}

void yk_tuning_read(const struct yk_device *d, struct yk_tuning *t)
{
	char why[PATH_MAX + 200];

	yk_tuning_try_read(d, t, why, sizeof why);
	if (*why)
		yk_warn("tune", "%s; the file is ignored, `yoke tune` writes it anew", why);
	if (t->n)
		yk_info("tune", "%s: %zu classes from %s", d->id, t->n, t->path);
}

bool yk_tuning_applied(void)
{
	return yk_param_bool(&tune_setting);
}

static int entry_of(const struct yk_tuning *t, const char *name, size_t n)
{
	for (size_t i = 0; i < t->n; i++)
		if (!strncmp(t->line[i], name, n) && t->line[i][n] == ' ')
			return (int)i;
	return -1;
}

const char *yk_tuning_find(const struct yk_tuning *t, const char *class_name)
{
	int i = entry_of(t, class_name, strlen(class_name));

	return i < 0 ? NULL : t->line[i];
}

int yk_tuning_add(struct yk_tuning *t, const char *line)
{
	int i = entry_of(t, line, strcspn(line, " "));
	char *copy = strdup(line);

	if (!copy)
		return yk_fail(YOKE_ENOMEM, "no memory for results");
	if (i >= 0) {
		free(t->line[i]);
		t->line[i] = copy;
		return 0;
	}
	char **more = realloc(t->line, (t->n + 1) * sizeof *more);
	if (!more) {
		free(copy);
		return yk_fail(YOKE_ENOMEM, "no memory for results");
	}
	t->line = more;
	t->line[t->n++] = copy;
	return 0;
}

int yk_tuning_write(const struct yk_device *d, const struct yk_tuning *t)
{
	char head[600];

	head_of(d, head, sizeof head);
	return yk_tuning_save(head, t);
}

int yk_tuning_save(const char *head, const struct yk_tuning *t)
{
	char *text = NULL;
	size_t bytes = 0;
	int folder = yk_cache_folder(true);

	if (folder < 0 || !*t->path) {
		if (folder >= 0)
			close(folder);
		return yk_fail(YOKE_EIO, "there is no folder to keep results in; see YOKE_CACHE "
					 "in yoke-settings(7)");
	}
	close(folder);
	FILE *to = open_memstream(&text, &bytes);
	if (!to)
		return yk_fail(YOKE_ENOMEM, "no memory for results");
	fprintf(to, "%s\n", head);
	for (size_t i = 0; i < t->n; i++)
		fprintf(to, "%s\n", t->line[i]);
	bool good = !fflush(to);
	uint64_t sum = good ? yk_hash(text, bytes, 0) : 0;
	fprintf(to, "end %zu %016" PRIx64 "\n", t->n, sum);
	good = !fclose(to) && good;
	int err = good ? yk_file_write(t->path, text, bytes) :
			 yk_fail(YOKE_ENOMEM, "no memory for results");
	free(text);
	return err;
}

// ---- choosing ----

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // protects the devices' `tuning`

static struct yk_tuning_watch *watcher; // with the lock held

bool yk_tuning_watched(const struct yk_tuning_watch *w, const struct yk_tuning_class *c)
{
	char name[2][YK_TUNING_NAME];

	yk_tuning_class_name(c, name[0]);
	for (size_t i = 0; i < w->n; i++) {
		yk_tuning_class_name(&w->seen[i], name[1]);
		if (!strcmp(name[0], name[1]))
			return true;
	}
	return false;
}

void yk_tuning_watch(struct yk_tuning_watch *w)
{
	pthread_mutex_lock(&lock);
	watcher = w;
	pthread_mutex_unlock(&lock);
}

static void note(const struct yk_device *d, const struct yk_tuning_class *c)
{
	pthread_mutex_lock(&lock);
	struct yk_tuning_watch *w = watcher;
	if (w && w->device == d && w->n < sizeof w->seen / sizeof *w->seen &&
	    !yk_tuning_watched(w, c))
		w->seen[w->n++] = *c;
	pthread_mutex_unlock(&lock);
}

// The results for a device, read at first use, with the lock held; NULL: no memory.
static struct yk_tuning *known(struct yk_device *d)
{
	if (d->tuning || !(d->tuning = calloc(1, sizeof *d->tuning)))
		return d->tuning;
	if (yk_param_bool(&tune_setting))
		yk_tuning_read(d, d->tuning);
	yk_param_fix(tune_setting.name, "the results of `yoke tune` were read");
	return d->tuning;
}

// A copy of the line for a class; NULL: there is none.
static char *line_known(struct yk_device *d, const struct yk_tuning_class *c)
{
	char name[YK_TUNING_NAME];

	yk_tuning_class_name(c, name);
	pthread_mutex_lock(&lock);
	const struct yk_tuning *t = known(d);
	const char *line = t ? yk_tuning_find(t, name) : NULL;
	char *copy = line ? strdup(line) : NULL;
	pthread_mutex_unlock(&lock);
	return copy;
}

bool yk_tuning_learnt(struct yk_device *d, const struct yk_tuning_class *c)
{
	char *line = line_known(d, c);

	free(line);
	return line != NULL;
}

int yk_tuning_learn(struct yk_device *d, const char *line)
{
	pthread_mutex_lock(&lock);
	struct yk_tuning *t = known(d);
	int err = t ? yk_tuning_add(t, line) : yk_fail(YOKE_ENOMEM, "no memory for results");
	pthread_mutex_unlock(&lock);
	return err;
}

// The bit of the implementation with that name, 0: none.
static uint64_t bit_of(const struct yk_device *d, const struct yoke_op *op, uint64_t impls,
		       const char *name, size_t n)
{
	for (; impls; impls &= impls - 1) {
		const char *s = d->ops->impl_name(d->index, op,
						  (uint32_t)__builtin_ctzll(impls));
		if (s && strlen(s) == n && !memcmp(s, name, n))
			return impls & -impls;
	}
	return 0;
}

uint32_t yk_tuning_pick(struct yk_device *d, const struct yoke_op *op, uint64_t impls)
{
	uint64_t left = impls, best = 0;
	struct yk_tuning_class c;
	char *copy = NULL; // a copy: the line may be replaced meanwhile
	const char *line;

	if ((impls & (impls - 1)) && yk_tuning_class_of(op, &c)) {
		note(d, &c);
		copy = line_known(d, &c);
	}
	for (line = copy ? strchr(copy, ' ') : NULL; line && !best; line = strchr(line, ' ')) {
		size_t n = strcspn(++line, "=");
		uint64_t bit = bit_of(d, op, impls, line, n);
		if (line[n + 1] >= '0' && line[n + 1] <= '9')
			best = bit;
		else
			left &= ~bit;
	}
	free(copy);
	return (uint32_t)__builtin_ctzll(best ? best : left ? left : impls);
}
