// SPDX-License-Identifier: Apache-2.0
// Findings of the self-test: a bit for each, read whenever a plan is made, and a list that is
// stored in the cache as lines of text.  An invalid line there is ignored.
#include "config.h"

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/number.h"
#include "base/param.h"
#include "kernel/cache.h"
#include "device/device.h"
#include "device/trust.h"

YK_PARAM(selftest_setting, "selftest", YK_STRING, "1",
	 "check implementations of plugins at first use, once for each device, driver and plugin file; "
	 "force: again, and the CPU backend's too; 0: never");

enum { DTYPES = 10, MAX_BYTES = 1 << 20 };

struct yk_trust_table {
	_Atomic uint64_t right[YK_TRUST_SUBJECTS][DTYPES], wrong[YK_TRUST_SUBJECTS][DTYPES];
	pthread_mutex_t lock; // protects the following
	struct yk_finding *list;
	bool *keep;
	size_t n, cap, keep_cap;
	char *key;
	size_t key_bytes;
	_Atomic(char *) refusal;
	bool remembered, force;
};

const char *yk_trust_subject(int subject, char to[40])
{
	static const char *const names[YOKE_OP_LIMIT] = {
#define X(name, number) [number] = #name,
		YOKE_OP_CODES(X)
#undef X
	};
	const char *name = subject == YK_TRUST_MEMORY ? "memory" :
			   subject == YK_TRUST_MAPPED ? "contract with a map" :
			   subject == YK_TRUST_DEVICE ? "device" :
			   subject > 0 && subject < YOKE_OP_LIMIT ? names[subject] : NULL;
	size_t n = 0;

	for (name = name ? name : "?"; name[n] && n < 39; n++)
		to[n] = yk_small_letter(name[n]);
	to[n] = '\0';
	return to;
}

// ---- the key of findings ----

static void add_changed(struct yk_param *p, void *arg)
{
	void **to = arg;
	const char *backend = to[1];
	size_t n = strlen(backend);
	if (!strncmp(p->name, backend, n) && p->name[n] == '.' && p->origin >= YK_CONFIG)
		fprintf(to[0], "%s=%s\n", p->name, yk_param_str(p));
}

// The key: device, driver, plugin file, and the settings of the backend.
static char *make_key(const struct yk_device *d, size_t *bytes)
{
	const char *name = d->backend->table.name, *version = d->backend->table.version;
	const struct yoke_device_info *i = &d->info;
	char *key = NULL, prefix[80];
	struct stat st;
	FILE *to = open_memstream(&key, bytes);

	if (!to)
		return NULL;
	fprintf(to, "self-test 2 of yoke %s, ABI %x\n%s %s\n%s\n%s\n%s\n%s\n", PACKAGE_VERSION,
		YOKE_ABI, name, version ? version : "", i->platform, i->vendor, i->name, i->driver);
	if (*d->backend->path && !stat(d->backend->path, &st))
		fprintf(to, "%s %llu %lld %lld.%09ld\n", d->backend->path,
			(unsigned long long)st.st_ino, (long long)st.st_size,
			(long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	int n = snprintf(prefix, sizeof prefix, "YOKE_%s_", name);
	for (int k = 5; k < n && k < (int)sizeof prefix; k++)
		prefix[k] = yk_capital_letter(prefix[k]);
	for (char **e = environ; *e; e++)
		if (!strncmp(*e, prefix, strlen(prefix)))
			fprintf(to, "%s\n", *e);
	yk_param_each(add_changed, (void *[]){ to, (void *)name });
	if (!fclose(to))
		return key;
	free(key);
	return NULL;
}

// ---- as text ----

static bool number(char **rest, unsigned max, unsigned *to)
{
	char *word = strsep(rest, "\t"), *end;
	if (!word || !isdigit((unsigned char)*word))
		return false;
	unsigned long value = strtoul(word, &end, 10);
	*to = (unsigned)value;
	return !*end && value <= max;
}

static bool read_line(char *line, struct yk_finding *f)
{
	unsigned subject, dtype, impl, right;
	if (!number(&line, YK_TRUST_SUBJECTS - 1, &subject) || !number(&line, DTYPES - 1, &dtype) ||
	    !number(&line, 63, &impl) || !number(&line, 1, &right))
		return false;
	*f = (struct yk_finding){ .subject = (uint16_t)subject, .dtype = (uint8_t)dtype,
				  .impl = (uint8_t)impl, .right = right };
	const char *name = strsep(&line, "\t");
	if (!name || !line)
		return false;
	snprintf(f->name, sizeof f->name, "%s", name);
	snprintf(f->why, sizeof f->why, "%s", line);
	return true;
}

// Makes a string fit into one field of a line.
static void clean(char *text)
{
	for (; *text; text++)
		if (iscntrl((unsigned char)*text))
			*text = ' ';
}

static bool same(const struct yk_finding *a, const struct yk_finding *b)
{
	return a->subject == b->subject && a->dtype == b->dtype && a->impl == b->impl;
}

// ---- findings, with the lock held ----

static void mark(struct yk_trust_table *t, const struct yk_finding *f)
{
	uint64_t bit = (uint64_t)1 << f->impl;
	if (f->right) {
		atomic_fetch_or(&t->right[f->subject][f->dtype], bit);
		return;
	}
	if (f->subject == YK_TRUST_DEVICE && !atomic_load(&t->refusal))
		atomic_store(&t->refusal, strdup(f->why));
	atomic_fetch_or(&t->wrong[f->subject][f->dtype], bit);
}

// Adds a finding unless it is known.
static bool add(struct yk_trust_table *t, const struct yk_finding *f, bool keep)
{
	for (size_t i = 0; i < t->n; i++)
		if (same(&t->list[i], f))
			return false;
	if (yk_grow(&t->list, &t->cap, t->n + 1, sizeof *t->list) < 0 ||
	    yk_grow(&t->keep, &t->keep_cap, t->n + 1, sizeof *t->keep) < 0)
		return false;
	t->keep[t->n] = keep;
	t->list[t->n++] = *f;
	return true;
}

// Adds the findings in the cache; `believe`: new ones take effect.
static size_t fetch(struct yk_trust_table *t, bool believe)
{
	char *text = malloc(MAX_BYTES + 1);
	int64_t bytes = text ? yk_cache_get(t->key, t->key_bytes, text, MAX_BYTES) : -1;
	size_t found = 0;

	if (bytes >= 0 && bytes <= MAX_BYTES) {
		struct yk_finding f;
		char *rest = text, *line;
		text[bytes] = '\0';
		while ((line = strsep(&rest, "\n")))
			if (read_line(line, &f) && add(t, &f, true)) {
				found++;
				if (believe)
					mark(t, &f);
			}
	}
	free(text);
	return found;
}

static void store(struct yk_trust_table *t)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *to = open_memstream(&text, &bytes);

	for (size_t i = 0; to && i < t->n; i++) {
		const struct yk_finding *f = &t->list[i];
		if (t->keep[i])
			fprintf(to, "%u\t%u\t%u\t%d\t%s\t%s\n", f->subject, f->dtype, f->impl,
				f->right, f->name, f->why);
	}
	if (to && !fclose(to))
		yk_cache_put(t->key, t->key_bytes, text, bytes);
	free(text);
}

// ---- entry points ----

void yk_trust_load(struct yk_device *d)
{
	const char *mode = yk_param_str(&selftest_setting);
	bool force = !strcmp(mode, "force");
	static bool complained;

	if (!force && strcmp(mode, "0") && strcmp(mode, "1") && !complained) {
		complained = true;
		yk_warn("selftest", "YOKE_SELFTEST=%s must be 0, 1 or force; using 1", mode);
	}
	if (!strcmp(mode, "0") || (!force && !*d->backend->path))
		return;
	struct yk_trust_table *t = calloc(1, sizeof *t);
	if (!t || !(t->key = make_key(d, &t->key_bytes))) {
		free(t);
		yk_warn("selftest", "%s: no memory for what its self-test finds, it is not made",
			d->id);
		return;
	}
	pthread_mutex_init(&t->lock, NULL);
	t->force = force;
	if (!force)
		t->remembered = fetch(t, true) > 0;
	d->trust = t;
}

void yk_trust_free(struct yk_device *d)
{
	struct yk_trust_table *t = d->trust;

	if (!t)
		return;
	d->trust = NULL;
	pthread_mutex_destroy(&t->lock);
	free(atomic_load(&t->refusal));
	free(t->list);
	free(t->keep);
	free(t->key);
	free(t);
}

bool yk_trust_remembered(const struct yk_device *d)
{
	return d->trust->remembered;
}

enum yk_trust yk_trust_of(const struct yk_device *d, int subject, int dtype, uint32_t impl)
{
	uint64_t bit = (uint64_t)1 << impl;
	if (atomic_load_explicit(&d->trust->wrong[subject][dtype], memory_order_relaxed) & bit)
		return YK_WRONG;
	return atomic_load_explicit(&d->trust->right[subject][dtype], memory_order_relaxed) & bit ?
		       YK_RIGHT : YK_UNTESTED;
}

void yk_trust_set(struct yk_device *d, const struct yk_finding *found, bool keep)
{
	struct yk_trust_table *t = d->trust;
	struct yk_finding f = *found;

	clean(f.name);
	clean(f.why);
	pthread_mutex_lock(&t->lock);
	mark(t, &f);
	add(t, &f, keep);
	if (keep && !t->force)
		fetch(t, false); // keep findings that other processes stored in the meantime
	if (keep)
		store(t);
	pthread_mutex_unlock(&t->lock);
}

uint64_t yk_trust_hash(const struct yk_device *d)
{
	uint64_t hash = 0;
	for (unsigned i = 0; i < YK_TRUST_SUBJECTS && d->trust; i++)
		for (unsigned k = 0; k < DTYPES; k++) {
			const uint64_t at[] = { i, k, atomic_load(&d->trust->wrong[i][k]) };
			hash += at[2] ? yk_hash(at, sizeof at, 0) : 0;
		}
	return hash;
}

const char *yk_trust_refusal(const struct yk_device *d)
{
	return d->trust ? atomic_load(&d->trust->refusal) : NULL;
}

size_t yk_trust_wrong(const struct yk_device *d, struct yk_finding *to, size_t max)
{
	struct yk_trust_table *t = d->trust;
	size_t n = 0;

	if (!t)
		return 0;
	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < t->n; i++) {
		const struct yk_finding *f = &t->list[i];
		if (f->right || yk_trust_of(d, f->subject, f->dtype, f->impl) != YK_WRONG)
			continue;
		if (n < max)
			to[n] = *f;
		n++;
	}
	pthread_mutex_unlock(&t->lock);
	return n;
}
