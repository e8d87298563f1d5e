// SPDX-License-Identifier: Apache-2.0
// Writes messages of protocol buffers (base/wire.h).
#include "config.h"

#include "base/wire.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

enum { VARINT = 0, LENGTH = 2, FIXED32 = 5 };

static void append(struct yk_wire *w, const void *data, size_t bytes)
{
	if (w->failed || yk_grow(&w->at, &w->cap, w->n + bytes + 1, 1) < 0) {
		w->failed = true;
		return;
	}
	if (bytes)
		memcpy(w->at + w->n, data, bytes);
	w->n += bytes;
}

void yk_wire_add(struct yk_wire *w, uint64_t v)
{
	unsigned char to[10];
	size_t n = 0;
	do {
		to[n++] = (unsigned char)((v & 127) | (v > 127 ? 128 : 0));
		v >>= 7;
	} while (v);
	append(w, to, n);
}

static void key(struct yk_wire *w, unsigned field, unsigned type)
{
	yk_wire_add(w, (uint64_t)field << 3 | type);
}

void yk_wire_int(struct yk_wire *w, unsigned field, uint64_t v)
{
	key(w, field, VARINT);
	yk_wire_add(w, v);
}

void yk_wire_f32(struct yk_wire *w, unsigned field, float v)
{
	uint32_t bits;
	memcpy(&bits, &v, sizeof bits);
	const unsigned char to[] = { bits & 255, bits >> 8 & 255, bits >> 16 & 255, bits >> 24 };
	key(w, field, FIXED32);
	append(w, to, sizeof to);
}

void yk_wire_head(struct yk_wire *w, unsigned field, uint64_t bytes)
{
	key(w, field, LENGTH);
	yk_wire_add(w, bytes);
}

void yk_wire_bytes(struct yk_wire *w, unsigned field, const void *data, size_t bytes)
{
	yk_wire_head(w, field, bytes);
	append(w, data, bytes);
}

void yk_wire_text(struct yk_wire *w, unsigned field, const char *text)
{
	yk_wire_bytes(w, field, text, strlen(text));
}

void yk_wire_fini(struct yk_wire *w)
{
	free(w->at);
	*w = (struct yk_wire){ 0 };
}
