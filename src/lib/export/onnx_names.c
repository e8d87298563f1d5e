// SPDX-License-Identifier: Apache-2.0
// Names of an ONNX file: makes them valid and unique.
#include "config.h"

#include "export/onnx_names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/number.h"
#include "base/scan.h"

void yk_onnx_clean(const char *name, char to[YK_ONNX_NAME])
{
	const unsigned char *s = (const unsigned char *)name, *end = s + strlen(name);
	size_t n = 0, length;
	for (; s < end; s += length, n += length) {
		const int several = *s < 128 ? 0 : yk_utf8(s, end);
		length = several ? (size_t)several : 1;
		if (n + length >= YK_ONNX_NAME)
			break;
		if (several)
			memcpy(to + n, s, length);
		else
			to[n] = *s > ' ' && *s < 127 ? (char)*s : '_';
	}
	to[n] = 0;
	if (!n)
		strcpy(to, "unnamed");
}

bool yk_onnx_is_utf8(const char *text)
{
	const unsigned char *s = (const unsigned char *)text, *end = s + strlen(text);
	int length = 1;
	for (; s < end && length; s += length)
		length = *s < 128 ? 1 : yk_utf8(s, end);
	return length;
}

// The entry of a text, or the free one where it belongs.
static struct yk_onnx_name *entry_of(const struct yk_onnx_names *t, const char *text)
{
	size_t at = yk_hash(text, strlen(text), 0) & (t->size - 1);
	while (t->at[at].text && strcmp(t->at[at].text, text))
		at = (at + 1) & (t->size - 1);
	return &t->at[at];
}

// Makes room for one more.
static bool grow(struct yk_onnx_names *t)
{
	struct yk_onnx_names larger = { .count = t->count, .size = t->size ? 2 * t->size : 256 };
	if (2 * (t->count + 1) <= t->size)
		return true;
	larger.at = calloc(larger.size, sizeof *larger.at);
	if (!larger.at)
		return false;
	for (size_t i = 0; i < t->size; i++)
		if (t->at[i].text)
			*entry_of(&larger, t->at[i].text) = t->at[i];
	free(t->at);
	*t = larger;
	return true;
}

struct yk_onnx_name *yk_onnx_names_find(const struct yk_onnx_names *t, const char *text)
{
	struct yk_onnx_name *entry = t->size ? entry_of(t, text) : NULL;
	return entry && entry->text ? entry : NULL;
}

bool yk_onnx_names_add(struct yk_onnx_names *t, const char *text)
{
	if (!grow(t))
		return false;
	struct yk_onnx_name *entry = entry_of(t, text);
	t->count += !entry->text;
	entry->text = text;
	return true;
}

const char *yk_onnx_names_unique(struct yk_onnx_names *t, struct yk_arena *memory,
				 const char *wanted)
{
	char clean[YK_ONNX_NAME], text[YK_ONNX_NAME + 16];
	yk_onnx_clean(wanted, clean);
	yk_snprintf(text, sizeof text, "%s", clean);
	struct yk_onnx_name *same = yk_onnx_names_find(t, text);
	while (same && yk_onnx_names_find(t, text))
		yk_snprintf(text, sizeof text, "%s.%" PRIu32, clean, ++same->copies);
	const char *name = yk_arena_strdup(memory, text);
	return name && yk_onnx_names_add(t, name) ? name : NULL;
}

void yk_onnx_names_fini(struct yk_onnx_names *t)
{
	free(t->at);
	*t = (struct yk_onnx_names){ 0 };
}
