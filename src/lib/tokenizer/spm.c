// SPDX-License-Identifier: Apache-2.0
// SentencePiece apart from its models: tables of the pieces, normalization of text, and joining of
// tokens to text.
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tokenizer/spm.h"

#define SPACE "\xe2\x96\x81" // U+2581 stands for a space
#define UNKNOWN " \xe2\x81\x87 "

static int piece(yoke_tokenizer *t, size_t i, const struct yk_spm_piece *x)
{
	struct yk_token_model *m = &t->model;
	int e = yk_vocab_add(&t->vocab, t->name, (int64_t)i, x->s, x->n);

	if (e < 0)
		return e;
	if (!x->n)
		return yk_fail(YOKE_EFORMAT, "%s: piece %zu is empty", t->name, i);
	if (yk_utf8_check(x->s, x->n) < x->n)
		return yk_fail(YOKE_EFORMAT, "%s: piece %zu is not UTF-8", t->name, i);
	if (!isfinite(x->score))
		return yk_fail(YOKE_EFORMAT, "%s: the score of piece %zu is not finite", t->name,
			       i);
	const struct yk_added_token special = { .id = (int32_t)i, .special = true };
	m->score[i] = x->score;
	switch (x->type) {
	case YK_PIECE_NORMAL: break;
	case YK_PIECE_USER: e = yk_trie_add(&m->user, x->s, x->n, (int32_t)i); break;
	case YK_PIECE_UNUSED: m->score[i] = NAN; break;
	case YK_PIECE_BYTE: m->score[i] = NAN; break;
	case YK_PIECE_UNKNOWN:
		if (m->unknown >= 0)
			return yk_fail(YOKE_EFORMAT,
				       "%s: pieces %d and %zu are both the unknown one", t->name,
				       m->unknown, i);
		m->unknown = (int32_t)i;
		m->score[i] = NAN;
		t->vocab.token[i].special = 1;
		break;
	case YK_PIECE_CONTROL: m->score[i] = NAN; return yk_tokenizer_added(t, special, false);
	default:
		return yk_fail(YOKE_EFORMAT, "%s: piece %zu has the unknown type %d", t->name, i,
			       x->type);
	}
	return e < 0 ? yk_fail(YOKE_ENOMEM, "%s: no memory for %zu pieces", t->name, i + 1) : 0;
}

int yk_spm_build(yoke_tokenizer *t, enum yk_model_kind kind, const struct yk_spm_piece *p, size_t n)
{
	struct yk_token_model *m = &t->model;
	float min = INFINITY, max = -INFINITY;

	t->spm.on = true;
	m->kind = kind;
	m->scored = true;
	m->fuse = true;
	if (!n || n > YK_VOCAB_MAX)
		return yk_fail(YOKE_EFORMAT, "%s: %zu pieces, not 1 .. %d", t->name, n,
			       YK_VOCAB_MAX);
	m->score = calloc(n, sizeof *m->score);
	if (!m->score)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for %zu pieces", t->name, n);
	for (size_t i = 0; i < n; i++) {
		const int e = piece(t, i, &p[i]);
		if (e < 0)
			return e;
		if (p[i].type == YK_PIECE_NORMAL) {
			min = fminf(min, p[i].score);
			max = fmaxf(max, p[i].score);
		}
	}
	if (m->unknown < 0)
		return yk_fail(YOKE_EFORMAT, "%s: no piece is the unknown one", t->name);
	yk_model_settle(m, &t->vocab);
	for (int i = 0; m->fallback && i < 256; i++)
		if (m->byte[i] < 0)
			return yk_fail(YOKE_EFORMAT,
				       "%s: byte fallback is on, but <0x%02X> is no piece", t->name,
				       i);
	m->unknown_score = (float)(min - 10);
	for (size_t i = 0; kind == YK_UNIGRAM && i < n; i++) {
		if (p[i].type == YK_PIECE_USER) // longer ones are preferred
			m->score[i] = (double)((float)p[i].n * max) - 0.1;
		if (!isnan(m->score[i]) && yk_trie_add(&m->trie, p[i].s, p[i].n, (int32_t)i) < 0)
			return yk_fail(YOKE_ENOMEM, "%s: no memory for %zu pieces", t->name, n);
	}
	return 0;
}

// ---- normalization ----

// The normal form of what s begins with, and the bytes that it replaces.
static const char *prefix(const yoke_tokenizer *t, const char *s, const char *end, size_t *used,
			  size_t *n)
{
	const char *r = NULL;

	if (yk_trie_longest(&t->model.user, s, end, used) < 0) {
		if (t->spm.map)
			r = yk_charsmap_find(t->spm.map, s, end, true, used);
		if (!r)
			*used = yk_char_size(*s);
	}
	*n = r ? strlen(r) : *used;
	return r ? r : s;
}

static bool ends_with(const struct yk_string *t, size_t from, const char *s, size_t n)
{
	return t->n - from >= n && !memcmp(t->s + t->n - n, s, n);
}

void yk_spm_normalize(const yoke_tokenizer *t, const char *s, size_t n, struct yk_string *to)
{
	const struct yk_spm *p = &t->spm;
	const char *space = p->escape ? SPACE : " ", *end = s + n, *r;
	const size_t space_n = strlen(space), from = to->n;
	bool spaced = p->squeeze;
	size_t used, bytes;

	while (p->squeeze && s < end) {
		r = prefix(t, s, end, &used, &bytes);
		if (bytes != 1 || *r != ' ')
			break;
		s += used;
	}
	if (s == end)
		return;
	if (p->dummy && !p->suffix)
		yk_string_add(to, space, space_n);
	for (; s < end; s += used) {
		r = prefix(t, s, end, &used, &bytes);
		for (; spaced && bytes && *r == ' '; r++)
			bytes--;
		for (size_t i = 0; i < bytes; i++)
			yk_string_add(to, r[i] == ' ' ? space : r + i, r[i] == ' ' ? space_n : 1);
		if (bytes)
			spaced = r[bytes - 1] == ' ';
		spaced &= p->squeeze;
	}
	while (p->squeeze && !to->failed && ends_with(to, from, space, space_n))
		to->n -= space_n;
	if (p->dummy && p->suffix)
		yk_string_add(to, space, space_n);
}

// ---- decoding ----

static void bytes_end(struct yk_string *run, bool raw, struct yk_string *to)
{
	for (size_t i = 0; i < run->n;) {
		const size_t good = raw ? run->n - i : yk_utf8_check(run->s + i, run->n - i);
		yk_string_add(to, run->s + i, good);
		i += good;
		if (i < run->n) {
			yk_string_add(to, "\xef\xbf\xbd", 3);
			i++;
		}
	}
	run->n = 0;
}

void yk_spm_decode(const yoke_tokenizer *t, const int32_t *ids, size_t count, bool skip, bool raw,
		   struct yk_string *to)
{
	struct yk_string run = { 0 };
	bool begins = true, dropped = false;
	size_t n;

	for (size_t i = 0; i < count; i++) {
		const char *s = yoke_tokenizer_piece(t, ids[i], &n);
		if (!s || (t->vocab.token[ids[i]].special && (skip || ids[i] != t->model.unknown)))
			continue;
		if (n == 6 && t->model.byte[0] >= 0 && !strncmp(s, "<0x", 3)) {
			const char byte = (char)strtoul(s + 3, NULL, 16);
			if (t->model.byte[(unsigned char)byte] == ids[i]) {
				yk_string_add(&run, &byte, 1);
				continue;
			}
		}
		bytes_end(&run, raw, to);
		if (dropped || to->n)
			begins = false;
		if (ids[i] == t->model.unknown) {
			s = UNKNOWN;
			n = sizeof UNKNOWN - 1;
			dropped = false;
		} else if (begins && (t->spm.dummy || t->spm.squeeze)) {
			dropped = n >= 3 && !memcmp(s, SPACE, 3);
			s += dropped ? 3 : 0;
			n -= dropped ? 3 : 0;
			dropped &= !t->spm.squeeze;
		} else {
			dropped = false;
		}
		for (const char *end = s + n; s < end;) {
			const bool is = end - s >= 3 && !memcmp(s, SPACE, 3);
			yk_string_add(to, is ? " " : s, 1);
			s += is ? 3 : 1;
		}
	}
	bytes_end(&run, raw, to);
	to->failed |= run.failed;
	yk_string_fini(&run);
}
