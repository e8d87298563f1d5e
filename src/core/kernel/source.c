// SPDX-License-Identifier: Apache-2.0
// Assembles programs: replaces each #include "NAME" line by the kernel text cl/NAME, once, at its
// first use.  Each text thus declares what it depends on, and no other list of texts is needed.
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kernel/kerneltext.h"
#include "kernel/mapsrc.h"

// A text being written, and the text that includes it.
struct file {
	const struct file *by;
	const char *name, *text;
};

struct program {
	yk_text_fn *text_of;
	const char *prologue; // the dialect's prologue, included as prologue.h
	char *to;
	size_t cap, length; // keeps counting beyond cap
	const char **had;   // the texts written so far
	size_t nhad;
};

static void put(struct program *p, const char *text, size_t bytes)
{
	const size_t room = p->length < p->cap ? p->cap - p->length : 0;

	if (room) {
		const size_t n = bytes < room - 1 ? bytes : room - 1;
		memcpy(p->to + p->length, text, n);
		p->to[p->length + n] = 0;
	}
	p->length += bytes;
}

// Is the line an #include of a name in quotation marks?
static bool is_include(const char *line, size_t bytes, char name[64])
{
	char copy[100], end;

	if (line[strspn(line, " \t")] != '#')
		return false;
	snprintf(copy, sizeof copy, "%.*s", (int)(bytes < sizeof copy ? bytes : sizeof copy), line);
	return sscanf(copy, " # include \"%63[^\"\n]%c", name, &end) == 2 && end != '\n';
}

// Records a text as written; 1 if it was before.
static int note(struct program *p, const char *text)
{
	for (size_t i = 0; i < p->nhad; i++)
		if (p->had[i] == text)
			return 1;
	const char **more = realloc(p->had, (p->nhad + 1) * sizeof *more);
	if (!more)
		return yk_fail(YOKE_ENOMEM, "no memory for a kernel's text");
	p->had = more;
	p->had[p->nhad++] = text;
	return 0;
}

static int put_file(struct program *, const struct file *);

static int put_named(struct program *p, const char *name, const struct file *by)
{
	const char *of = strcmp(name, "prologue.h") ? name : p->prologue;
	const struct file f = { by, name, p->text_of(of) };

	if (!f.text)
		return yk_fail(YOKE_EUNSUPPORTED,
			       "there is no kernel text \"%s\", which %s includes", name, by->name);
	for (const struct file *outer = by; outer; outer = outer->by)
		if (outer->text == f.text)
			return yk_fail(
				YOKE_EUNSUPPORTED,
				"kernel text \"%s\" is included by \"%s\", which it includes", name,
				by->name);
	const int had = note(p, f.text);
	return had < 0 ? had : had ? 0 : put_file(p, &f);
}

// Texts do not include themselves, so the depth is bounded by the number of texts.
static int put_file(struct program *p, const struct file *f)
{
	char name[64];
	int err = 0;

	for (const char *line = f->text, *next; *line && !err; line = next) {
		next = line + strcspn(line, "\n");
		next += *next == '\n';
		if (is_include(line, (size_t)(next - line), name))
			err = put_named(p, name, f);
		else
			put(p, line, (size_t)(next - line));
	}
	return err;
}

// The op's map as functions; the caller frees it.
static int map_of(const struct yoke_op *op, char **to)
{
	const int64_t bytes = yk_map_source(op, NULL, 0);

	if (bytes < 0)
		return (int)bytes;
	if (!(*to = malloc((size_t)bytes + 1)))
		return yk_fail(YOKE_ENOMEM, "no memory for a kernel's text");
	yk_map_source(op, *to, (size_t)bytes + 1);
	return 0;
}

int64_t yk_kernel_source_of(yk_text_fn *text_of, int dialect, const struct yoke_op *op,
			    const char *text, char *to, size_t cap)
{
	struct program p = { .text_of = text_of, .to = to, .cap = cap };
	char *map = NULL;
	int err = 0;

	if (dialect != YOKE_DIALECT_OPENCL && dialect != YOKE_DIALECT_CUDA)
		return YOKE_EUNSUPPORTED;
	p.prologue = dialect == YOKE_DIALECT_CUDA ? "prologue_cuda.h" : "prologue_opencl.h";
	if (cap)
		*to = 0;
	if (op && !(err = map_of(op, &map)))
		err = put_file(&p, &(struct file){ NULL, "a map's text", map });
	if (!err)
		err = put_file(&p, &(struct file){ NULL, "the program", text });
	free(map);
	free(p.had);
	return err ? err : (int64_t)p.length;
}

int64_t yk_kernel_source(int dialect, const struct yoke_op *op, const char *text, char *to,
			 size_t cap)
{
	return yk_kernel_source_of(yk_kernel_text, dialect, op, text, to, cap);
}
