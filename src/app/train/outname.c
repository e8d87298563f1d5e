// SPDX-License-Identifier: Apache-2.0
// Expands placeholders in the value of `out`.
#include "config.h"

#include "train/outname.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/param.h"
#include "config/optim.h"
#include "device/device.h"

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
static int add_text(const struct yk_config *c, enum yk_config_key key, const char *path, size_t n,
		    FILE *to)
{
	if (add_name(path, n, to) > 0)
		return 0;
	char *given = strndup(path, n), *real = given ? realpath(given, NULL) : NULL;
	size_t added = real ? add_name(real, strlen(real), to) : 0;
	int e = 0;
	if (added == 0)
		e = yk_fail(YOKE_EINVAL,
			    "out=%s: %s=%s has no file name that can replace {%s}; write a "
			    "name instead",
			    yk_config_str(c, YK_KEY_out), yk_config_rows[key].name,
			    given ? given : "", yk_config_rows[key].name);
	free(real);
	free(given);
	return e;
}

// A list of paths as their names, joined by '+'.
static int add_paths(const struct yk_config *c, enum yk_config_key key, FILE *to)
{
	const char *at = yk_config_str(c, key);
	int e = 0;
	for (;; at++) {
		size_t n = strcspn(at, ",");
		if (n == 1 && *at == '-')
			fputs("stdin", to);
		else
			e = add_text(c, key, at, n, to);
		at += n;
		if (e < 0 || !*at)
			return e;
		fputc('+', to);
	}
}

static bool has_paths(const struct yk_config *c, enum yk_config_key key)
{
	switch (yk_config_rows[key].type) {
	case YK_KEY_PATHS: return true;
	case YK_KEY_CHOICE_OR_PATH:
	case YK_KEY_REAL_OR_PATHS: return yk_config_is_path(c, key);
	default: return key == YK_KEY_init || key == YK_KEY_adapter;
	}
}

// The key's value; of an option of the optimizer that is auto, the number it stands for.
static int add_value(const struct yk_config *c, enum yk_config_key key, FILE *to)
{
	const char *value = yk_config_str(c, key), *name = yk_config_rows[key].name;
	char number[64];
	if (!*value)
		return yk_fail(YOKE_EINVAL, "out=%s: {%s} needs %s=, which is missing",
			       yk_config_str(c, YK_KEY_out), name, name);
	if (has_paths(c, key))
		return add_paths(c, key, to);
	if (yk_optim_option(c, key, number, sizeof number))
		value = number;
	for (const char *s = value; *s; s++)
		fputc(strchr("/:\n", *s) ? '-' : *s, to);
	return 0;
}

static int add_word(const struct yk_config *c, const char *word, FILE *to)
{
	const char *names[YK_KEYS + 1] = { "device" }, *near;
	int n = 1;
	if (!strcmp(word, "device"))
		return add_device(c, to);
	for (int k = 0; k < YK_KEYS; k++) {
		if (!(yk_config_rows[k].commands & YK_T) || k == YK_KEY_out || k == YK_KEY_resume)
			continue;
		if (!strcmp(word, yk_config_rows[k].name))
			return add_value(c, (enum yk_config_key)k, to);
		names[n++] = yk_config_rows[k].name;
	}
	near = yk_nearest(word, names, n);
	return yk_fail(YOKE_EINVAL,
		       "out=%s: unknown {%s}%s%s%s; the names are {device} and the keys of `yoke "
		       "train` but out and resume",
		       yk_config_str(c, YK_KEY_out), word, near ? ", did you mean {" : "",
		       near ? near : "", near ? "}?" : "");
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
		size_t n = *at == '{' ? strspn(at + 1, "abcdefghijklmnopqrstuvwxyz_0123456789") : 0;
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
