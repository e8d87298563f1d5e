// SPDX-License-Identifier: Apache-2.0
// Call sites: where in the application an operation was recorded, kept when YOKE_TRACE_OPS=1 asks.
#ifndef YK_SITE_H
#define YK_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { YK_SITE_FRAMES = 12, YK_SITE_TEXT = 400 };

// Return addresses, innermost first, from the caller of the library on.
struct yk_site {
	uint64_t hash;
	const char *text; // of the application's own (yoke_site_hook), and then there are no frames; NULL: none
	uint32_t frames;
	void *frame[YK_SITE_FRAMES];
};

// Each place once, known by its number from 1 on.
struct yk_sites {
	struct yk_site *site;
	size_t n, cap;
	uint32_t *table; // open addressing by hash
	size_t table_size;
};

// The place that the running call of the library came from; 0: not known, or no memory.
uint32_t yk_site_here(struct yk_sites *);
// "program(train+0x1c) < program(main+0x41)" into a buffer of YK_SITE_TEXT bytes, which it returns; ""
// for 0.  Where no symbol is known the address is the one that `addr2line -e program` takes.
char *yk_site_text(const struct yk_sites *, uint32_t site, char *to);
// The first place of it: "train.c:120" where a debugger would know the line (libdw), else
// "program(train+0x1c)"; as yk_site_text.
char *yk_site_line(const struct yk_sites *, uint32_t site, char *to);
// A hash of the lines of all its calls: equal for what a compiler made several sites of, as of a loop that it unrolled.
uint64_t yk_site_lines(const struct yk_sites *, uint32_t site);
// "train.c:120" of an address in this process; false: it is not known.
bool yk_source_line(const void *address, char *to, size_t cap);
void yk_sites_fini(struct yk_sites *);

#endif
