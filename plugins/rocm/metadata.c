// SPDX-License-Identifier: Apache-2.0
// Reads a kernel's parameters, which HIP does not report, from its code object: an ELF file with a
// MessagePack note ("User Guide for AMDGPU Backend" of LLVM, "Code Object V3 Metadata"), a map
// whose "amdhsa.kernels" are maps with ".name" and ".args". All offsets are checked, since the file
// may come from a cache.
#include "config.h"

#include <elf.h>
#include <string.h>

#include "../native/native.h"

#define NOTE_METADATA 32
#define DEEPEST 16

struct reader {
	const unsigned char *at, *end;
	bool bad;
};

static uint64_t take(struct reader *r, int bytes)
{
	uint64_t x = 0;

	if (r->end - r->at < bytes) {
		r->bad = true;
		return 0;
	}
	while (bytes--)
		x = x << 8 | *r->at++;
	return x;
}

enum kind { NUMBER, TEXT, LIST, MAP, OTHER };

// Reads one item: its number, or the count of bytes or items that follow. The bytes of a string are
// skipped and begin at *text.
static enum kind item(struct reader *r, uint64_t *n, const char **text)
{
	const unsigned c = (unsigned)take(r, 1);
	enum kind kind = OTHER;

	*n = 0;
	if (c < 0x80 || c >= 0xe0)
		return *n = c, NUMBER;
	if (c < 0x90)
		return *n = c & 15, MAP;
	if (c < 0xa0)
		return *n = c & 15, LIST;
	if (c < 0xc0) {
		*n = c & 31;
		kind = TEXT;
	} else if (c >= 0xcc && c <= 0xd3) { // unsigned or signed, 1, 2, 4 or 8 bytes
		return *n = take(r, 1 << ((c - 0xcc) & 3)), NUMBER;
	} else if (c >= 0xd9 && c <= 0xdb) {
		*n = take(r, 1 << (c - 0xd9));
		kind = TEXT;
	} else if (c == 0xdc || c == 0xdd) {
		return *n = take(r, c == 0xdc ? 2 : 4), LIST;
	} else if (c == 0xde || c == 0xdf) {
		return *n = take(r, c == 0xde ? 2 : 4), MAP;
	} else if (c == 0xc0 || c == 0xc2 || c == 0xc3) {
		return OTHER;
	} else {
		r->bad = true; // metadata contain no binaries or extensions
	}
	*text = (const char *)r->at;
	if (*n > (uint64_t)(r->end - r->at))
		r->bad = true;
	else
		r->at += *n;
	return kind;
}

static void skip_item(struct reader *r, int depth)
{
	const char *text;
	uint64_t n;
	const enum kind kind = item(r, &n, &text);

	if (depth > DEEPEST)
		r->bad = true;
	if (kind == LIST || kind == MAP)
		for (uint64_t i = 0; i < n * (kind == MAP ? 2 : 1) && !r->bad; i++)
			skip_item(r, depth + 1);
}

// Moves to the value of a key in the map that begins here; false: not found.
static bool find(struct reader *r, const char *key)
{
	const char *text;
	uint64_t n, bytes;

	if (item(r, &n, &text) != MAP)
		return false;
	for (; n && !r->bad; n--) {
		if (item(r, &bytes, &text) == TEXT && !r->bad && bytes == strlen(key) &&
		    !memcmp(text, key, bytes))
			return true;
		skip_item(r, 0);
	}
	return false;
}

// True if the runtime sets this argument.
static bool is_hidden(struct reader arg)
{
	static const char hidden[] = "hidden_";
	const char *text;
	uint64_t n;

	return find(&arg, ".value_kind") && item(&arg, &n, &text) == TEXT && !arg.bad &&
	       n >= sizeof hidden - 1 && !memcmp(text, hidden, sizeof hidden - 1);
}

// Reads the parameters from a kernel's map.
static int params_of(struct reader r, uint32_t max, size_t *sizes)
{
	const char *text;
	uint64_t n, size;
	int count = 0;

	if (!find(&r, ".args"))
		return r.bad ? -1 : 0;
	if (item(&r, &n, &text) != LIST)
		return -1;
	for (; n && !r.bad; n--) {
		struct reader arg = r;
		const bool hidden = is_hidden(r);
		skip_item(&r, 0);
		if (hidden)
			continue;
		if (!find(&arg, ".size") || item(&arg, &size, &text) != NUMBER || arg.bad ||
		    (uint32_t)count == max)
			return -1;
		sizes[count++] = (size_t)size;
	}
	return r.bad ? -1 : count;
}

static int kernel_in(struct reader r, const char *name, uint32_t max, size_t *sizes)
{
	const char *text;
	uint64_t n;

	if (!find(&r, "amdhsa.kernels") || item(&r, &n, &text) != LIST)
		return -1;
	for (; n && !r.bad; n--) {
		struct reader value = r;
		if (find(&value, ".name")) {
			uint64_t bytes;
			if (item(&value, &bytes, &text) == TEXT && !value.bad &&
			    bytes == strlen(name) && !memcmp(text, name, bytes))
				return params_of(r, max, sizes);
		}
		skip_item(&r, 0);
	}
	return -1;
}

// Searches the notes in a segment of the file for the metadata.
static int in_notes(const char *file, uint64_t at, uint64_t bytes, const char *name, uint32_t max,
		    size_t *sizes)
{
	for (const uint64_t end = at + bytes; end - at >= sizeof(Elf64_Nhdr);) {
		Elf64_Nhdr note;
		memcpy(&note, file + at, sizeof note);
		const uint64_t owner = at + sizeof note,
			       data = owner + ((uint64_t)note.n_namesz + 3) / 4 * 4;
		const uint64_t next = data + ((uint64_t)note.n_descsz + 3) / 4 * 4;
		if (data > end || note.n_descsz > end - data)
			return -1;
		const unsigned char *from = (const unsigned char *)file + data;
		if (note.n_type == NOTE_METADATA && note.n_namesz == 7 &&
		    !memcmp(file + owner, "AMDGPU", 7))
			return kernel_in((struct reader){ from, from + note.n_descsz, false }, name,
					 max, sizes);
		if (next > end)
			return -1;
		at = next;
	}
	return -1;
}

int yk_vendor_params(v_function f, const void *image, size_t bytes, const char *name, uint32_t max,
		     size_t *sizes)
{
	const char *file = image;
	Elf64_Ehdr head;
	int n = -1;

	(void)f;
	if (bytes < sizeof head || memcmp(file, ELFMAG, SELFMAG))
		return -1;
	memcpy(&head, file, sizeof head);
	for (int i = 0; i < head.e_phnum && n < 0; i++) {
		Elf64_Phdr part;
		const uint64_t at = head.e_phoff + (uint64_t)i * sizeof part;
		if (head.e_phoff > bytes || at > bytes - sizeof part)
			return -1;
		memcpy(&part, file + at, sizeof part);
		if (part.p_type == PT_NOTE && part.p_offset <= bytes &&
		    part.p_filesz <= bytes - part.p_offset)
			n = in_notes(file, part.p_offset, part.p_filesz, name, max, sizes);
	}
	return n;
}
