// SPDX-License-Identifier: Apache-2.0
// Reads and searches precompiled character maps.  Offsets come from the file, so each access is
// checked.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tokenizer/charsmap.h"

struct yk_charsmap *yk_charsmap_new(const void *data, size_t bytes, const char *what)
{
	const unsigned char *d = data;
	uint32_t trie;

	if (bytes < 4)
		goto damaged;
	trie = (uint32_t)d[0] | (uint32_t)d[1] << 8 | (uint32_t)d[2] << 16 | (uint32_t)d[3] << 24;
	if (trie > bytes - 4 || trie % 4 || !trie || (bytes > 4 + (size_t)trie && d[bytes - 1]))
		goto damaged;
	struct yk_charsmap *m = calloc(1, sizeof *m);
	if (m) {
		m->units = trie / 4;
		m->bytes = bytes - 4 - trie;
		m->unit = malloc(trie);
		m->text = malloc(m->bytes + 1);
	}
	if (!m || !m->unit || !m->text) {
		yk_charsmap_free(m);
		yk_fail(YOKE_ENOMEM, "%s: no memory for the character map", what);
		return NULL;
	}
	for (size_t i = 0; i < m->units; i++) {
		const unsigned char *u = d + 4 + 4 * i;
		m->unit[i] = (uint32_t)u[0] | (uint32_t)u[1] << 8 | (uint32_t)u[2] << 16 |
			     (uint32_t)u[3] << 24;
	}
	if (m->bytes)
		memcpy(m->text, d + 4 + trie, m->bytes);
	m->text[m->bytes] = 0;
	return m;
damaged:
	yk_fail(YOKE_EFORMAT, "%s: the precompiled character map of %zu bytes is damaged", what,
		bytes);
	return NULL;
}

static int digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

struct yk_charsmap *yk_charsmap_base64(const char *s, size_t n, const char *what)
{
	struct yk_charsmap *m = NULL;
	unsigned char *to = malloc(n / 4 * 3 + 3);
	size_t bytes = 0;
	uint32_t bits = 0;
	int have = 0;

	if (!to) {
		yk_fail(YOKE_ENOMEM, "%s: no memory for the character map", what);
		return NULL;
	}
	while (n && s[n - 1] == '=')
		n--;
	size_t i = 0;
	for (; i < n && digit(s[i]) >= 0; i++) {
		bits = (bits << 6 | (uint32_t)digit(s[i])) & 0xffffff;
		have += 6;
		if (have >= 8) {
			have -= 8;
			to[bytes++] = (unsigned char)(bits >> have);
		}
	}
	if (i < n)
		yk_fail(YOKE_EFORMAT, "%s: byte %zu of the precompiled character map is not base64",
			what, i);
	else
		m = yk_charsmap_new(to, bytes, what);
	free(to);
	return m;
}

// Layout of a unit (darts-clone): bits 0..7 label, 8 has a leaf, 9 the offset is shifted by 8, 10..
// offset, 31 is a leaf, whose bits 0..30 are the value.
const char *yk_charsmap_find(const struct yk_charsmap *m, const char *s, const char *end,
			     bool longest, size_t *n)
{
	const char *found = NULL;
	size_t node = 0;

	node ^= (size_t)(m->unit[0] >> 10) << ((m->unit[0] & 1u << 9) >> 6);
	for (const char *at = s; at < end; at++) {
		const unsigned char c = (unsigned char)*at;
		node ^= c;
		if (node >= m->units || (m->unit[node] & (1u << 31 | 0xffu)) != c)
			break;
		const uint32_t u = m->unit[node];
		node ^= (size_t)(u >> 10) << ((u & 1u << 9) >> 6);
		if (!(u >> 8 & 1))
			continue;
		if (node >= m->units || (m->unit[node] & 0x7fffffffu) >= m->bytes)
			break;
		found = m->text + (m->unit[node] & 0x7fffffffu);
		*n = (size_t)(at + 1 - s);
		if (!longest)
			break;
	}
	return found;
}

void yk_charsmap_free(struct yk_charsmap *m)
{
	if (!m)
		return;
	free(m->unit);
	free(m->text);
	free(m);
}
