// SPDX-License-Identifier: Apache-2.0
// Call sites: where in the application an operation was recorded; collected with YOKE_TRACE_OPS=1.
#ifndef YK_SITE_H
#define YK_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { YK_SITE_FRAMES = 12, YK_SITE_TEXT = 400 };

// Return addresses, innermost first, starting with the caller of the library.
struct yk_site {
	uint64_t hash;
	const char *text; // set by the application (yoke_site_hook), without frames then; or NULL
	uint32_t frames;
	void *frame[YK_SITE_FRAMES];
};

// Call sites without duplicates, numbered from 1.
struct yk_sites {
	struct yk_site *site;
	size_t n, cap;
	uint32_t *table; // open addressing by hash
	size_t table_size;
};

// The site of the library call in progress; 0: not known, or no memory.
uint32_t yk_site_here(struct yk_sites *);
// "program(train+0x1c) < program(main+0x41)" in a buffer of YK_SITE_TEXT bytes, which it returns;
// "" for 0.  Without a symbol it prints the address for `addr2line -e program`.
char *yk_site_text(const struct yk_sites *, uint32_t site, char *to);
// Only the innermost frame: "train.c:120" if debugging information has the line (libdw), else
// "program(train+0x1c)".  Buffer as for yk_site_text.
char *yk_site_line(const struct yk_sites *, uint32_t site, char *to);
// A hash of the source lines of all frames: equal for sites that the compiler duplicated, as in an
// unrolled loop.
uint64_t yk_site_lines(const struct yk_sites *, uint32_t site);
// The source line of an address in this process, "train.c:120"; false: not known.
bool yk_source_line(const void *address, char *to, size_t cap);
void yk_sites_fini(struct yk_sites *);

#endif
