// SPDX-License-Identifier: Apache-2.0
// Expands placeholders in the value of `out`.
#include "config.h"

#include "train/outname.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/param.h"
#include "device/device.h"

// The model sizes, and two placeholders that are not keys or not their values.
static const char *const words[] = {
#define S(key, ...) #key,
	YK_SIZES(S)
#undef S
	"device", "data"
};
enum { WORDS = sizeof words / sizeof *words };

static int add_device(const struct yk_config *c, FILE *to)
{
	int e = yk_config_apply(c);
	const struct yk_device *d = e == 0 ? yk_device_choose(NULL) : NULL;
	if (!d)
		return yoke_error_code();
	for (const char *s = d->id; *s; s++) // many tools read a colon as the end of a host name
		fputc(*s == ':' ? '-' : *s, to);
	return 0;
}

// "dir/book.txt" gives "book"; 0: no usable name, as for "/", "." and "..".
static size_t add_name(const char *path, size_t n, FILE *to)
{
	while (n > 1 && path[n - 1] == '/')
		n--;
	size_t from = n;
	while (from > 0 && path[from - 1] != '/')
		from--;
	size_t end = n, name = n - from;
	if (name == strspn(path + from, ".") && name <= 2)
		return 0;
	while (end > from + 1 && path[end - 1] != '.')
		end--;
	end = end > from + 1 ? end - 1 : n;
	return fwrite(path + from, 1, end - from, to);
}

// A path without a usable name is resolved to the directory it refers to.
static int add_text(const struct yk_config *c, const char *path, size_t n, FILE *to)
{
	if (add_name(path, n, to) > 0)
		return 0;
	char *given = strndup(path, n), *real = given ? realpath(given, NULL) : NULL;
	size_t added = real ? add_name(real, strlen(real), to) : 0;
	int e = 0;
	if (added == 0)
		e = yk_fail(YOKE_EINVAL,
			    "out=%s: data=%s has no file name that can replace {data}; write a "
			    "name instead",
			    yk_config_str(c, YK_KEY_out), given ? given : "");
	free(real);
	free(given);
	return e;
}

static int add_data(const struct yk_config *c, FILE *to)
{
	const char *at = yk_config_str(c, YK_KEY_data);
	int e = 0;
	if (!*at)
		return yk_fail(YOKE_EINVAL, "out=%s: {data} needs data=, which is missing",
			       yk_config_str(c, YK_KEY_out));
	for (;; at++) {
		size_t n = strcspn(at, ",");
		if (n == 1 && *at == '-')
			fputs("stdin", to);
		else
			e = add_text(c, at, n, to);
		at += n;
		if (e < 0 || !*at)
			return e;
		fputc('+', to);
	}
}

static int add_word(const struct yk_config *c, const char *word, FILE *to)
{
	const char *near;
	if (!strcmp(word, "device"))
		return add_device(c, to);
	if (!strcmp(word, "data"))
		return add_data(c, to);
	for (int k = 0; k < YK_SIZE_COUNT; k++)
		if (!strcmp(word, words[k])) {
			fputs(yk_config_str(c, yk_config_sizes[k]), to);
			return 0;
		}
	near = yk_nearest(word, words, WORDS);
#define S(key, ...) "{" #key "}, "
	return yk_fail(YOKE_EINVAL, "out=%s: unknown {%s}%s%s%s; the names are " YK_SIZES(S)
		       "{device} and {data}", yk_config_str(c, YK_KEY_out), word,
		       near ? ", did you mean {" : "", near ? near : "", near ? "}?" : "");
#undef S
}

int yk_out_name(const struct yk_config *c, char **to)
{
	char *name = NULL;
	size_t bytes = 0;
	FILE *f = open_memstream(&name, &bytes);
	int e = 0;
	if (!f)
		return yk_fail(YOKE_ENOMEM, "train: out of memory for a name");
	for (const char *at = yk_config_str(c, YK_KEY_out); *at && e == 0;) {
		char word[32];
		size_t n = *at == '{' ? strspn(at + 1, "abcdefghijklmnopqrstuvwxyz_") : 0;
		if (n == 0 || n >= sizeof word || at[n + 1] != '}') { // any other brace is literal
			fputc(*at++, f);
			continue;
		}
		memcpy(word, at + 1, n);
		word[n] = '\0';
		at += n + 2;
		e = add_word(c, word, f);
	}
	bool bad = ferror(f);
	if ((fclose(f) || bad) && e == 0)
		e = yk_fail(YOKE_ENOMEM, "train: out of memory for a name");
	if (e < 0)
		free(name);
	else
		*to = name;
	return e;
}
