// SPDX-License-Identifier: Apache-2.0
// The wrapper of Oniguruma.
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "tokenizer/regex.h"
#include "tokenizer/pieces.h"

#define MAX_PATTERN 65536

#ifdef HAVE_ONIG

#include <oniguruma.h>
#include <pthread.h>

#define MAX_RETRIES 10000000 // the library's default for one match

struct yk_regex {
	regex_t *regex;
	OnigMatchParam *limits;
	char *what;
};

static void start(void)
{
	OnigEncoding utf8 = ONIG_ENCODING_UTF8;

	onig_initialize(&utf8, 1);
}

struct yk_regex *yk_regex_new(const char *pattern, size_t n, const char *what)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const OnigUChar *s = (const OnigUChar *)pattern;
	OnigErrorInfo why;
	struct yk_regex *r;

	if (n > MAX_PATTERN) {
		yk_fail(YOKE_EFORMAT, "%s: a regular expression has %zu bytes, at most %d", what, n,
			MAX_PATTERN);
		return NULL;
	}
	pthread_once(&once, start);
	r = calloc(1, sizeof *r);
	if (r) {
		r->what = strdup(what);
		r->limits = onig_new_match_param();
	}
	if (!r || !r->what || !r->limits) {
		yk_fail(YOKE_ENOMEM, "%s: no memory for a regular expression", what);
		yk_regex_free(r);
		return NULL;
	}
	onig_initialize_match_param(r->limits);
	onig_set_retry_limit_in_match_of_match_param(r->limits, MAX_RETRIES);
#if ONIGURUMA_VERSION_INT >= 60905 // before, the limit is that of each position
	onig_set_retry_limit_in_search_of_match_param(r->limits, MAX_RETRIES);
#endif
	const int e = onig_new(&r->regex, s, s + n, ONIG_OPTION_NONE, ONIG_ENCODING_UTF8,
			       ONIG_SYNTAX_ONIGURUMA, &why);
	if (e != ONIG_NORMAL) {
		OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];
		onig_error_code_to_str(text, e, &why);
		yk_fail(e == ONIGERR_MEMORY ? YOKE_ENOMEM : YOKE_EFORMAT,
			"%s: regular expression '%.80s': %s", what, pattern, (char *)text);
		r->regex = NULL;
		yk_regex_free(r);
		return NULL;
	}
	return r;
}

void yk_regex_free(struct yk_regex *r)
{
	if (!r)
		return;
	if (r->regex)
		onig_free(r->regex);
	if (r->limits)
		onig_free_match_param(r->limits);
	free(r->what);
	free(r);
}

int yk_regex_begin(struct yk_regex_scan *s, const struct yk_regex *r, const char *text, size_t n)
{
	if (n > YK_REGEX_TEXT)
		return yk_fail(YOKE_ERANGE,
			       "%s: a regular expression would search %zu bytes without a break; "
			       "at most %d are possible; add line ends to the text",
			       r->what, n, YK_REGEX_TEXT);
	*s = (struct yk_regex_scan){
		.regex = r, .text = text, .n = n, .region = onig_region_new()
	};
	return s->region ? 0 :
			   yk_fail(YOKE_ENOMEM, "%s: no memory for a regular expression", r->what);
}

int yk_regex_next(struct yk_regex_scan *s, size_t *from, size_t *to)
{
	const OnigUChar *text = (const OnigUChar *)s->text, *end = text + s->n;
	OnigRegion *region = s->region;

	while (s->at <= s->n) {
		const int e = onig_search_with_param(s->regex->regex, text, end, text + s->at, end,
						     region, ONIG_OPTION_NONE, s->regex->limits);
		if (e == ONIG_MISMATCH)
			break;
		if (e < 0)
			return yk_fail(e == ONIGERR_MEMORY ? YOKE_ENOMEM : YOKE_ERANGE,
				       "%s: a regular expression backtracks too much at byte %zu "
				       "of the text",
				       s->regex->what, s->at);
		const size_t start_at = (size_t)region->beg[0], end_at = (size_t)region->end[0];
		if (start_at == end_at && s->matched && end_at == s->at) {
			s->at += s->at < s->n ? yk_char_size(s->text[s->at]) : 1;
			s->matched = false;
			continue;
		}
		s->at = end_at;
		s->matched = true;
		*from = start_at;
		*to = end_at;
		return 1;
	}
	s->at = s->n + 1;
	return 0;
}

void yk_regex_end(struct yk_regex_scan *s)
{
	onig_region_free(s->region, 1);
}

#else

struct yk_regex *yk_regex_new(const char *pattern, size_t n, const char *what)
{
	(void)pattern;
	(void)n;
	yk_fail(YOKE_EUNSUPPORTED,
		"%s: this tokenizer needs regular expressions, and yoke was built without "
		"Oniguruma (libonig-dev)",
		what);
	return NULL;
}

void yk_regex_free(struct yk_regex *r)
{
	free(r);
}

int yk_regex_begin(struct yk_regex_scan *s, const struct yk_regex *r, const char *text, size_t n)
{
	*s = (struct yk_regex_scan){ .regex = r, .text = text, .n = n };
	return 0;
}

int yk_regex_next(struct yk_regex_scan *s, size_t *from, size_t *to)
{
	(void)s;
	*from = *to = 0;
	return 0;
}

void yk_regex_end(struct yk_regex_scan *s)
{
	s->at = s->n;
}

#endif
