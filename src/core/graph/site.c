// SPDX-License-Identifier: Apache-2.0
// Records call sites by unwinding the stack, where the C library permits it.
//
// Frames in the library's shared object are skipped.  In a statically linked program library and
// application are one object and cannot be distinguished, so the frames start inside the library.

#include "config.h"

#include <dlfcn.h>
#ifdef __ELF__
#include <elf.h>
#include <link.h>
#endif
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_UNWIND
#include <unwind.h>
#endif

#include "base/arena.h"
#include "base/hash.h"
#include "base/system.h"
#include "graph/site.h"
#include "yoke.h"

// SHOWN: frames in a text.  DEEPEST: frames inspected.  INNER: frames of this file and its callers
// in the library, at least.
enum { SHOWN = 4, DEEPEST = 64, INNER = 3 };

static const char *(*_Atomic hook)(void);

void yoke_site_hook(const char *(*where)(void))
{
	atomic_store(&hook, where);
}

#ifdef HAVE_UNWIND
struct walk {
	struct yk_site *to;
	const void *own; // base address of the library's object; NULL: linked into the program
	int seen;
	bool outside; // a frame outside the library was reached
};

static const void *object_of(uintptr_t address)
{
	Dl_info info;
	return dladdr((void *)address, &info) ? info.dli_fbase : NULL;
}

static _Unwind_Reason_Code step(struct _Unwind_Context *frame, void *arg)
{
	struct walk *w = arg;
	struct yk_site *to = w->to;
	// a return address may belong to the next function: one byte before it is the call
	uintptr_t address = _Unwind_GetIP(frame) - 1;
	if (address + 1 == 0 || w->seen++ == DEEPEST)
		return _URC_END_OF_STACK;
	w->outside |= w->own ? object_of(address) != w->own : w->seen > INNER;
	if (w->outside)
		to->frame[to->frames++] = (void *)address;
	return to->frames == YK_SITE_FRAMES ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static void find_frames(struct yk_site *here)
{
	struct walk w = { .to = here, .own = object_of((uintptr_t)yk_site_here) };
	if (w.own == object_of(yk_program_address()))
		w.own = NULL;
	_Unwind_Backtrace(step, &w);
}
#else
static void find_frames(struct yk_site *here)
{
	(void)here;
}
#endif

static int table_grow(struct yk_sites *s)
{
	size_t size = s->table_size ? 2 * s->table_size : 64;
	uint32_t *table = calloc(size, sizeof *table);
	if (!table)
		return YOKE_ENOMEM;
	for (size_t i = 0; i < s->n; i++) {
		size_t at = s->site[i].hash & (size - 1);
		while (table[at])
			at = (at + 1) & (size - 1);
		table[at] = (uint32_t)i + 1;
	}
	free(s->table);
	s->table = table;
	s->table_size = size;
	return 0;
}

uint32_t yk_site_here(struct yk_sites *s)
{
	struct yk_site here = { 0 };
	const char *(*where)(void) = atomic_load(&hook);
	if (where && (here.text = where())) {
		here.hash = yk_hash(here.text, strlen(here.text), 0);
	} else {
		find_frames(&here);
		here.hash = yk_hash(here.frame, here.frames * sizeof *here.frame, 0);
	}
	if ((!here.text && !here.frames) || (2 * (s->n + 1) > s->table_size && table_grow(s) < 0))
		return 0;
	size_t at = here.hash & (s->table_size - 1);
	for (; s->table[at]; at = (at + 1) & (s->table_size - 1)) {
		const struct yk_site *old = &s->site[s->table[at] - 1];
		if (old->hash == here.hash && old->frames == here.frames &&
		    !old->text == !here.text && (!here.text || !strcmp(old->text, here.text)) &&
		    !memcmp(old->frame, here.frame, here.frames * sizeof *here.frame))
			return s->table[at];
	}
	if (yk_grow(&s->site, &s->cap, s->n + 1, sizeof *s->site) < 0 ||
	    (here.text && !(here.text = strdup(here.text))))
		return 0;
	s->site[s->n++] = here;
	return s->table[at] = (uint32_t)s->n;
}

// Address for addr2line: relative to the file for position-independent objects.
static uintptr_t in_file(const Dl_info *info, uintptr_t address)
{
#ifdef __ELF__
	const ElfW(Ehdr) *head = info->dli_fbase;
	if (head->e_type == ET_EXEC)
		return address;
#endif
	return address - (uintptr_t)info->dli_fbase;
}

static int frame_text(const void *frame, char *to, size_t cap)
{
	Dl_info info;
	uintptr_t address = (uintptr_t)frame;
	if (!dladdr(frame, &info) || !info.dli_fname)
		return snprintf(to, cap, "0x%lx", (unsigned long)address);
	const char *name = strrchr(info.dli_fname, '/');
	name = name ? name + 1 : info.dli_fname;
	if (!info.dli_sname)
		return snprintf(to, cap, "%s 0x%lx", name,
				(unsigned long)in_file(&info, address));
	return snprintf(to, cap, "%s(%s+0x%lx)", name, info.dli_sname,
			(unsigned long)(address - (uintptr_t)info.dli_saddr));
}

char *yk_site_text(const struct yk_sites *s, uint32_t site, char *to)
{
	size_t n = 0;
	*to = '\0';
	if (!s || !site || site > s->n)
		return to;
	const struct yk_site *at = &s->site[site - 1];
	if (at->text)
		snprintf(to, YK_SITE_TEXT, "%s", at->text);
	for (uint32_t i = 0; i < at->frames && i < SHOWN && n + 4 < YK_SITE_TEXT; i++) {
		if (i)
			n += (size_t)snprintf(to + n, YK_SITE_TEXT - n, " < ");
		n += (size_t)frame_text(at->frame[i], to + n, YK_SITE_TEXT - n);
	}
	return to;
}

static void frame_line(const void *frame, char to[YK_SITE_TEXT])
{
	if (!yk_source_line(frame, to, YK_SITE_TEXT))
		frame_text(frame, to, YK_SITE_TEXT);
}

char *yk_site_line(const struct yk_sites *s, uint32_t site, char *to)
{
	*to = '\0';
	const struct yk_site *at = s && site && site <= s->n ? &s->site[site - 1] : NULL;
	if (at && at->text)
		snprintf(to, YK_SITE_TEXT, "%s", at->text);
	else if (at)
		frame_line(at->frame[0], to);
	return to;
}

uint64_t yk_site_lines(const struct yk_sites *s, uint32_t site)
{
	char text[YK_SITE_TEXT];
	uint64_t hash = 0;
	const struct yk_site *at = s && site && site <= s->n ? &s->site[site - 1] : NULL;
	if (at && at->text)
		return at->hash;
	for (uint32_t i = 0; at && i < at->frames; i++) {
		frame_line(at->frame[i], text);
		hash = yk_hash(text, strlen(text), hash);
	}
	return hash;
}

void yk_sites_fini(struct yk_sites *s)
{
	for (size_t i = 0; i < s->n; i++)
		free((char *)s->site[i].text);
	free(s->site);
	free(s->table);
	*s = (struct yk_sites){ 0 };
}
