// SPDX-License-Identifier: Apache-2.0
// Normalizers, and the two things that pre-tokenizers and decoders share with them: patterns and
// the byte-level alphabet.
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "tokenizer/steps.h"
#include "tokenizer/unicode.h"

// ---- the byte-level alphabet ----

// GPT-2: printable Latin-1 characters stand for themselves, the others for U+0100 and following.
uint32_t yk_byte_char(unsigned char b)
{
	if ((b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae)
		return b;
	if (b < '!')
		return 0x100u + b;
	return b <= 0xa0 ? 0x121u + (b - 0x7fu) : 0x143;
}

int yk_char_byte(uint32_t c)
{
	if (c < 0x100)
		return yk_byte_char((unsigned char)c) == c ? (int)c : -1;
	if (c < 0x121)
		return (int)(c - 0x100);
	if (c < 0x143)
		return (int)(c - 0x121 + 0x7f);
	return c == 0x143 ? 0xad : -1;
}

void yk_bytes_add(struct yk_string *to, const char *s, size_t n)
{
	if (!yk_string_reserve(to, 2 * n))
		return;
	for (size_t i = 0; i < n; i++) {
		const uint32_t c = yk_byte_char((unsigned char)s[i]);
		if (c < 0x80) {
			to->s[to->n++] = (char)c;
		} else {
			to->s[to->n++] = (char)(0xc0 | c >> 6);
			to->s[to->n++] = (char)(0x80 | (c & 0x3f));
		}
	}
}

// ---- patterns ----

static int regex_matches(const struct yk_token_step *p, const char *s, size_t n,
			 void (*fn)(void *, const char *, size_t, bool), void *arg)
{
	struct yk_regex_scan scan;
	size_t done = 0, from = 0, to = 0;
	int e = yk_regex_begin(&scan, p->regex, s, n);

	if (e < 0)
		return e;
	while ((e = yk_regex_next(&scan, &from, &to)) > 0) {
		if (from > done)
			fn(arg, s + done, from - done, false);
		fn(arg, s + from, to - from, true);
		done = to;
	}
	yk_regex_end(&scan);
	if (done < n && e == 0)
		fn(arg, s + done, n - done, false);
	return e;
}

int yk_matches(const struct yk_token_step *p, const char *s, size_t n,
	       void (*fn)(void *, const char *, size_t, bool), void *arg)
{
	const char *end = s + n, *at = s;

	if (p->regex)
		return regex_matches(p, s, n, fn, arg);
	while (p->na && at < end) {
		const char *found = memmem(at, (size_t)(end - at), p->a, p->na);
		if (!found)
			break;
		if (found > at)
			fn(arg, at, (size_t)(found - at), false);
		fn(arg, found, p->na, true);
		at = found + p->na;
	}
	if (at < end)
		fn(arg, at, (size_t)(end - at), false);
	return 0;
}

// ---- normalizers ----

static bool is_chinese(uint32_t c)
{
	return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
	       (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
	       (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
	       (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

// Control characters and spaces, as the BERT normalizer cleans them: 0 removes the character.
static uint32_t clean(uint32_t c)
{
	if (c == '\t' || c == '\n' || c == '\r' || yk_is_space(c))
		return ' ';
	return c == 0 || c == 0xfffd || yk_is_other(c) ? 0 : c;
}

static int bert(const struct yk_token_step *p, const char *s, size_t n, struct yk_string *to)
{
	struct yk_string a = { 0 }, b = { 0 };
	int e = 0;

	for (const char *at = s; at < s + n;) {
		uint32_t c = yk_char_next(&at);
		if (p->clean) {
			const bool control = c < ' ' && c != '\t' && c != '\n' && c != '\r';
			c = control ? 0 : clean(c);
			if (!c)
				continue;
		}
		if (p->chinese && is_chinese(c)) {
			yk_string_char(&a, ' ');
			yk_string_char(&a, c);
			yk_string_char(&a, ' ');
		} else {
			yk_string_char(&a, c);
		}
	}
	if (p->strip)
		e = yk_unicode_normal(&b, a.s, a.n, YK_NFD);
	const struct yk_string *from = p->strip ? &b : &a;
	for (const char *at = from->s; e == 0 && at < from->s + from->n;) {
		const uint32_t c = yk_char_next(&at);
		if (p->strip && yk_is_nonspacing(c))
			continue;
		if (p->lower)
			yk_char_lower(to, c);
		else
			yk_string_char(to, c);
	}
	to->failed |= a.failed | b.failed;
	yk_string_fini(&a);
	yk_string_fini(&b);
	return e;
}

static void strip(const struct yk_token_step *p, const char *s, size_t n, struct yk_string *to)
{
	const char *end = s + n, *from = s, *until = s;

	if (p->left)
		while (from < end) {
			const char *next = from;
			if (!yk_is_space(yk_char_next(&next)))
				break;
			from = next;
		}
	for (const char *at = from; at < end;)
		if (!yk_is_space(yk_char_next(&at)))
			until = at;
	if (!p->right)
		until = end;
	if (until > from)
		yk_string_add(to, from, (size_t)(until - from));
}

// The character map of SentencePiece's rule nmt_nfkc, without NFKC: 0 removes the character.
static uint32_t nmt(uint32_t c)
{
	if (c == '\t' || c == '\n' || c == '\f' || c == '\r' || c == 0x1680 ||
	    (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
	    c == 0xfeff || c == 0xfffd)
		return ' ';
	if ((c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f ||
	    c == 0x9f)
		return 0;
	return c;
}

// As the reference does it: by grapheme clusters of less than 6 bytes, and the shortest match
// replaces all of the cluster.
static void charsmap(const struct yk_charsmap *m, const char *s, size_t n, struct yk_string *to)
{
	for (const char *end = s + n; s < end;) {
		const size_t bytes = yk_grapheme(s, (size_t)(end - s));
		size_t used;
		const char *r = bytes < 6 ? yk_charsmap_find(m, s, s + bytes, false, &used) : NULL;
		if (r) {
			yk_string_add(to, r, strlen(r));
			s += bytes;
			continue;
		}
		for (const char *stop = s + bytes; s < stop;) {
			const size_t size = yk_char_size(*s);
			r = yk_charsmap_find(m, s, s + size, false, &used);
			yk_string_add(to, r ? r : s, r ? strlen(r) : size);
			s += size;
		}
	}
}

struct replace {
	const struct yk_token_step *step;
	struct yk_string *to;
};

static void replace(void *arg, const char *s, size_t n, bool match)
{
	struct replace *r = arg;

	yk_string_add(r->to, match ? r->step->b : s, match ? r->step->nb : n);
}

static int step_run(const struct yk_token_step *p, const char *s, size_t n, struct yk_string *to)
{
	const char *end = s + n;

	switch (p->kind) {
	case YK_BERT: return bert(p, s, n, to);
	case YK_STRIP: strip(p, s, n, to); break;
	case YK_STRIP_ACCENTS:
		while (s < end) {
			const uint32_t c = yk_char_next(&s);
			if (!yk_is_mark(c))
				yk_string_char(to, c);
		}
		break;
	case YK_FORM: return yk_unicode_normal(to, s, n, (enum yk_unicode_form)p->form);
	case YK_LOWERCASE:
		while (s < end)
			yk_char_lower(to, yk_char_next(&s));
		break;
	case YK_NMT:
		while (s < end) {
			const uint32_t c = yk_char_next(&s), to_c = nmt(c);
			if (to_c || !c)
				yk_string_char(to, to_c);
		}
		break;
	case YK_CHARSMAP: charsmap(p->map, s, n, to); break;
	case YK_REPLACE: return yk_matches(p, s, n, replace, &(struct replace){ p, to });
	case YK_PREPEND:
		if (n)
			yk_string_add(to, p->a, p->na);
		yk_string_add(to, s, n);
		break;
	case YK_BYTES: yk_bytes_add(to, s, n); break;
	default: break;
	}
	return 0;
}

int yk_normalize(const struct yk_steps *steps, const char *s, size_t n, struct yk_string *to,
		 struct yk_string *swap)
{
	to->n = 0;
	if (!steps->count)
		yk_string_add(to, s, n);
	for (size_t i = 0; i < steps->count; i++) {
		// the first step reads the caller's text, each other one the result before it
		swap->n = 0;
		const int e = i ? step_run(&steps->step[i], to->s, to->n, swap) :
				  step_run(&steps->step[i], s, n, swap);
		if (e < 0)
			return e;
		const struct yk_string t = *to;
		*to = *swap;
		*swap = t;
	}
	return to->failed || swap->failed ?
		       yk_fail(YOKE_ENOMEM, "no memory to normalize %zu bytes", n) :
		       0;
}

void yk_steps_fini(struct yk_steps *steps)
{
	for (size_t i = 0; i < steps->count; i++) {
		yk_regex_free(steps->step[i].regex);
		yk_charsmap_free(steps->step[i].map);
	}
	free(steps->step);
	*steps = (struct yk_steps){ 0 };
}
