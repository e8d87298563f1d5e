// SPDX-License-Identifier: Apache-2.0
// Tests which bytes of a rendered template come from messages, and that special tokens in messages
// are text.  Messages are written in Greek and templates in ASCII, so that a byte's origin can be
// read off the text itself; message i uses letters of its own.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "models/template_cases.h"
#include "tap.h"
#include "yoke-tokenizer.h"

enum { MESSAGES = 4 };

// Letters of message i: alpha + 6i .. alpha + 6i + 5, small or large, and an ideographic space.
static int message_of(uint32_t c)
{
	if (c == 0x3000)
		return -2; // of any
	return c >= 0x3b1 ? (int)(c - 0x3b1) / 6 : (int)(c - 0x391) / 6;
}

static const char greek[] =
	"[{\"role\": \"system\", \"content\": \"\u3000\u03b1\u03b2 \u03b3\u3000\"},"
	" {\"role\": \"user\", \"content\": \"\u3000\u03b7\u03b8\u03b9\u3000\"},"
	" {\"role\": \"assistant\", \"content\": \"\u03bd\u03be\", \"\u03bd\": {\"\u03be\": "
	"[\"\u03bf\u03bf\", 1, true]}},"
	" {\"role\": \"user\", \"content\": \"\u03c4\u03c5\u03c6\u03c4\u03c5\u03c6\"}]";

static char *render(const char *source, const char *json, struct yoke_text_span **spans, size_t *n,
		    size_t *bytes)
{
	const struct yoke_chat_options o = { .size = sizeof o,
					     .add_generation_prompt = 1,
					     .tools = "[{\"f\": \"x\"}]",
					     .variables = "{\"bos_token\": \"<s>\"}" };
	yoke_chat_template *t = yoke_chat_template_parse(source, strlen(source), "test");
	char *text = NULL;
	if (!t ||
	    yoke_chat_template_render_spans(t, json, strlen(json), &o, &text, bytes, spans, n) < 0)
		text = NULL;
	yoke_chat_template_free(t);
	return text;
}

// The message that a span gives for a byte; -3: the template.
static int64_t span_of(const struct yoke_text_span *s, size_t n, size_t at)
{
	for (size_t i = 0; i < n; i++)
		if (s[i].from <= at && at < s[i].to)
			return s[i].message;
	return -3;
}

static bool ordered(const struct yoke_text_span *s, size_t n, size_t bytes)
{
	for (size_t i = 0; i < n; i++)
		if (s[i].from >= s[i].to || s[i].to > bytes || (i && s[i].from < s[i - 1].to))
			return false;
	return true;
}

// Number of bytes that come from messages, all of which must be the Greek ones (and spaces between
// them); -1: wrong.
static int greek_bytes(const char *source)
{
	struct yoke_text_span *s = NULL;
	size_t n, bytes;
	int marked = 0;
	char *text = render(source, greek, &s, &n, &bytes);
	bool good = text && ordered(s, n, bytes);
	for (size_t i = 0; good && i < bytes;) {
		const unsigned char c = (unsigned char)text[i];
		const size_t size = c < 0x80 ? 1 : c < 0xe0 ? 2 : 3;
		const int64_t got = span_of(s, n, i);
		if (c >= 0x80) {
			const uint32_t x =
				size == 2 ? (uint32_t)(c & 31) << 6 | (text[i + 1] & 63) : 0x3000;
			const int wanted = message_of(x);
			good = wanted == -2 ? got >= 0 : got == wanted;
			marked += (int)size;
		} else {
			// a space is a message's between two of its letters
			good = got < 0 || (c == ' ' && got == 0);
			marked += got >= 0;
		}
		for (size_t k = 1; k < size; k++)
			good = good && span_of(s, n, i + k) == got;
		if (!good)
			printf("# byte %zu of '%s' has origin %d\n", i, text, (int)got);
		i += size;
	}
	if (!text)
		printf("# %s: %s\n", source, yoke_error());
	yoke_error_clear();
	free(text);
	free(s);
	return good ? marked : -1;
}

// A template and the number of bytes of its text that come from messages.
static const struct {
	const char *source;
	int bytes;
} operations[] = {
	{ "{{ messages[1].content }}", 12 },
	{ "a{{ messages[1].content|trim }}b", 6 },
	{ "{{ messages[1].content.strip() }}", 6 },
	{ "{{ messages[1].content.lstrip() }}", 9 },
	{ "{{ messages[1].content.rstrip() + 'x' }}", 9 },
	{ "{{ 'x' + messages[3].content + 'y' + messages[1].content }}", 24 },
	{ "{{ 'x' ~ messages[3].content ~ 1 ~ messages[2].content }}", 16 },
	{ "{{ messages[3].content * 3 }}", 36 },
	{ "{{ messages[3].content[1:3] }}", 4 },
	{ "{{ messages[3].content[::-1] }}", 12 },
	{ "{{ messages[3].content[0] }}{{ messages[3].content[-1] }}", 4 },
	{ "{{ messages[3].content|first }}{{ messages[3].content|last }}", 4 },
	{ "{% for c in messages[3].content %}{{ c }},{% endfor %}", 12 },
	{ "{{ messages[3].content|list|join('-') }}", 12 },
	{ "{{ '-'.join(messages[3].content) }}", 12 },
	{ "{{ messages[3].content.join(['a', 'b', 'c']) }}", 24 },
	{ "{{ messages|map(attribute='content')|join('/') }}", 12 + 12 + 4 + 12 + 1 },
	{ "{{ messages[3].content.split('\u03c5') }}", 8 },
	{ "{{ messages[3].content.split('\u03c5')[0] }}", 2 },
	{ "{{ messages[3].content.rsplit('\u03c5', 1)[1] }}", 2 },
	{ "{{ messages[0].content.split()[1] }}", 2 },
	{ "{{ messages[0].content.rsplit(none, 1)[0] }}", 7 },
	{ "{{ messages[3].content.partition('\u03c5')[0] }}", 2 },
	{ "{{ messages[3].content.rpartition('\u03c5')[2] }}", 2 },
	{ "{{ messages[3].content.splitlines()[0] }}", 12 },
	{ "{{ messages[3].content.replace('\u03c5', '+') }}", 8 },
	{ "{{ 'a+b+c'.replace('+', messages[3].content) }}", 24 },
	{ "{{ messages[3].content|replace('\u03c4', 'abc') }}", 8 },
	{ "{{ 'abc'.replace('', messages[2].content) }}", 16 },
	{ "{{ messages[3].content.removeprefix('\u03c4') }}", 10 },
	{ "{{ messages[3].content.removesuffix('\u03c6') }}", 10 },
	{ "{{ messages[3].content|upper }}{{ messages[2].content.title() }}", 16 },
	{ "{{ messages[3].content|capitalize }}{{ messages[3].content|title }}", 24 },
	{ "{{ messages[3].content.swapcase()|lower }}", 12 },
	{ "{{ messages[3].content|center(20) }}", 12 },
	{ "{{ messages[3].content.ljust(9, '.') }}{{ 'a'.rjust(3, messages[3].content[0]) }}", 16 },
	{ "{{ messages[3].content.zfill(9) }}", 12 },
	{ "{{ messages[3].content|indent(2, true) }}", 12 },
	{ "{{ 'a\nb'|indent(messages[2].content) }}", 4 },
	{ "{{ messages[3].content|truncate(5, true, '..', 0) }}", 6 },
	{ "{{ messages[3].content|reverse }}", 12 },
	{ "{{ messages[3].content|escape }}{{ '<'|e ~ messages[3].content }}", 24 },
	{ "{{ messages[3].content|string|safe }}", 12 },
	{ "{{ messages[3].content|tojson }}", 12 },
	{ "{{ messages[2]|tojson(indent=1) }}", 4 + 2 + 2 + 4 },
	{ "{{ messages[2] }}", 4 + 2 + 2 + 4 },
	{ "{% for k in messages[2] %}{{ k }}{% endfor %}", 2 },
	{ "{{ 'a{}b{:>9}{x}'.format(messages[3].content, messages[1].content, "
	  "x=messages[2].content) }}",
	  28 },
	{ "{{ '{0.content}{0[role]}'.format(messages[2]) }}", 4 },
	{ "{{ 'a%sb%-9sc%(d)s' % {'d': messages[3].content} if false else 'a%sb%9s' % "
	  "(messages[3].content, messages[2].content) }}",
	  16 },
	{ "{{ '%(d)s' % {'d': messages[3].content} }}{{ '%.2s'|format(messages[3].content) }}",
	  16 },
	{ "{% set x = messages[3].content %}{{ x }}{% set y %}a{{ x }}b{% endset %}{{ y|trim }}",
	  24 },
	{ "{% set ns = namespace(s='') %}{% for m in messages %}{% set ns.s = ns.s + m.content + "
	  "'|' %}{% endfor %}{{ ns.s }}",
	  41 },
	{ "{% macro f(x) %}<{{ x }}>{% endmacro %}{{ f(messages[3].content) }}", 12 },
	{ "{% macro f() %}<{{ caller() }}>{% endmacro %}{% call f() %}{{ messages[3].content }}{% "
	  "endcall %}",
	  12 },
	{ "{% filter upper %}ab{{ messages[3].content }}{% endfilter %}", 12 },
	{ "{% for m in messages recursive %}{{ m.role }}{{ m.content|default('x') }}{{ "
	  "nothing|default(m.content) }}{% endfor %}",
	  82 },
	{ "{{ messages|selectattr('role', 'equalto', "
	  "'user')|map(attribute='content')|map('trim')|list }}",
	  18 },
	{ "{{ messages[3].content|length }}{{ messages[2].role }}{{ messages[2]|length }}", 0 },
	{ "{{ messages[3].content == 'x' }}{{ 'a' if messages[3].content else 'b' }}", 0 },
	{ "{{ (messages|last).content|batch(2)|map('join')|join(' ') }}", 12 },
	{ "{{ messages|map(attribute='content')|sort|first }}", 4 },
	{ "{% for g in messages|groupby('content') %}{{ g[0] }}{% endfor %}", 41 },
	{ "{{ [messages[3].content, 'a']|unique|join }}{{ dict(a=messages[3].content).items()|list "
	  "}}",
	  24 },
	{ "{{ tools }}{{ bos_token }}{{ add_generation_prompt }}", 0 },
};

static void test_operations(void)
{
	size_t wrong = 0;
	const size_t n = sizeof operations / sizeof *operations;
	for (size_t i = 0; i < n; i++) {
		const int got = greek_bytes(operations[i].source);
		if (got == operations[i].bytes)
			continue;
		wrong++;
		printf("# %s: %d bytes, wanted %d\n", operations[i].source, got,
		       operations[i].bytes);
	}
	ok(wrong == 0, "through %zu operations each byte keeps its message", n);
}

// The recorded templates, with the messages above.
static void test_recorded(void)
{
	size_t tried = 0, wrong = 0;
	int bytes = 0;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct yoke_text_span *s = NULL;
		size_t n, length;
		char *text = render(cases[i].source, greek, &s, &n, &length);
		bool ascii = text != NULL; // the template's own text
		for (const char *c = cases[i].source; *c; c++)
			ascii = ascii && (unsigned char)*c < 0x80 && strncmp(c, "\\u", 2) &&
				strncmp(c, "\\x", 2);
		free(text);
		free(s);
		yoke_error_clear();
		if (!ascii)
			continue;
		const int got = greek_bytes(cases[i].source);
		tried++;
		wrong += got < 0;
		bytes += got;
	}
	ok(tried > 10 && wrong == 0 && bytes > 50,
	   "in %zu recorded templates, %d bytes keep their message", tried, bytes);
}

static void test_escapes(void)
{
	struct yoke_text_span *s = NULL;
	size_t n = 0, bytes = 0;
	char *text =
		render("{{ messages[0].content|tojson(ensure_ascii=true) }}{{ messages[0].role "
		       "}}{{ tools[0].f }}",
		       "[{\"role\": \"<|eot|>\", \"content\": \"\u03b1\\n<\"}]", &s, &n, &bytes);
	// "\u03b1\n<" between quotes, the role, the tool
	ok(text && bytes == 11 + 7 + 1 && n == 3 && s[0].from == 1 && s[0].to == 10 &&
		   s[0].message == 0 && s[1].from == 11 && s[1].to == 18 && s[1].message == 0 &&
		   s[2].from == 18 && s[2].to == 19 && s[2].message == -1,
	   "escapes of a message, a role that is no plain word and tools have an origin: %s, %zu "
	   "intervals",
	   text ? text : yoke_error(), n);
	free(text);
	free(s);
	s = NULL;
	text = render("x", "[]", &s, &n, &bytes);
	ok(text && s && n == 0,
	   "a text without messages has no intervals, and a pointer that can be freed");
	free(text);
	free(s);
}

// ---- tokens ----

static yoke_tokenizer *open_tokenizer(const char *file, const char *from, const char *to)
{
	const char *source = getenv("srcdir");
	char path[4096], *data = NULL;
	size_t bytes;
	snprintf(path, sizeof path, "%s/tests/models/%s", source ? source : ".", file);
	if (yk_file_read(path, 1 << 20, &data, &bytes) < 0)
		return NULL;
	for (char *at = data;
	     from && (at = memmem(at, (size_t)(data + bytes - at), from, strlen(from))) != NULL;)
		memcpy(at, to, strlen(to));
	yoke_tokenizer *t = yoke_tokenizer_parse(data, bytes, file);
	free(data);
	return t;
}

static bool same_ids(const int32_t *a, size_t n, const int32_t *b, size_t m)
{
	bool same = a && b && n == m;
	for (size_t i = 0; same && i < n; i++)
		same = a[i] == b[i];
	for (size_t i = 0; !same && i < n + m; i++)
		printf("# %s %d\n", i < n ? "got" : "wanted", i < n ? a[i] : b[i - n]);
	return same;
}

// Ids of template text and messages by turns, the first being the template's; NULL ends them.
static size_t ids_by_turns(const yoke_tokenizer *t, const char *const *text, int32_t *to)
{
	size_t n = 0;
	for (int i = 0; text[i]; i++) {
		int32_t *ids;
		size_t m;
		if (yoke_tokenizer_encode(t, text[i], strlen(text[i]),
					  i % 2 ? 0 : YOKE_TOKENIZER_PARSE, &ids, &m) < 0)
			return 0;
		memcpy(to + n, ids, m * sizeof *ids);
		n += m;
		free(ids);
	}
	return n;
}

static void test_tokens(void)
{
	static const char source[] =
		"{% for m in messages %}<|begin|>{{ m.content }}<|eot|>{% endfor %}";
	static const struct {
		const char *what, *content;
	} cases_of[] = {
		{ "a special token", "a <|eot|> b" },
		{ "nothing but a special token", "<|begin|>" },
		{ "the beginning of one", "a<|e" },
		{ "special tokens side by side", "<|eot|><|eot|><|begin|>" },
		{ "the end of one", "ot|>" },
		{ "one in another", "<|e<|eot|>ot|>" },
		{ "no text", "" },
	};
	yoke_tokenizer *t = open_tokenizer("llama3.json", NULL, NULL);
	yoke_chat_template *c = yoke_chat_template_parse(source, strlen(source), "test");
	for (size_t i = 0; t && i < sizeof cases_of / sizeof *cases_of; i++) {
		const char *x = cases_of[i].content;
		const struct yoke_chat_message m[] = { { "user", x }, { "user", x } };
		const char *const turns[] = {
			"<|begin|>", x, "<|eot|><|begin|>", x, "<|eot|>", NULL
		};
		int32_t wanted[200], *ids = NULL;
		size_t n = 0;
		const size_t k = ids_by_turns(t, turns, wanted);
		const int e = yoke_chat_template_encode(c, t, m, 2, NULL, &ids, &n);
		ok(e == 0 && k > 3 && same_ids(ids, n, wanted, k), "%s in a message is text",
		   cases_of[i].what);
		free(ids);
	}
	yoke_chat_template_free(c);
	yoke_tokenizer_free(t);
}

// Special tokens that are sought after normalization.  The model joins words to the text before
// them, so that the whole text is compared, with the token that counts put in by hand.
static void test_normalized(void)
{
	static const char text[] = "ab  <s> cd <s> ef";
	yoke_tokenizer *t =
		open_tokenizer("llama2.json", "\"normalized\": false", "\"normalized\":  true");
	const int32_t id = t ? yoke_tokenizer_id(t, "<s>", 3) : -1;
	static const struct {
		size_t from, to;
		int count;
	} spans[] = { { 0, 0, 2 },  { 3, 7, 1 },  { 8, 17, 1 }, { 6, 12, 0 },
		      { 0, 17, 0 }, { 7, 11, 2 }, { 14, 17, 2 } };
	for (size_t i = 0; t && i < sizeof spans / sizeof *spans; i++) {
		const struct yoke_text_span s = { spans[i].from, spans[i].to, 0 };
		int32_t *ids = NULL;
		size_t n = 0;
		int count = 0;
		const int e = yoke_tokenizer_encode_spans(t, text, strlen(text),
							  YOKE_TOKENIZER_PARSE, &s, 1, &ids, &n);
		for (size_t k = 0; e == 0 && k < n; k++)
			count += ids[k] == id;
		ok(e == 0 && count == spans[i].count,
		   "with bytes %zu .. %zu as text, %d tokens of a normalized text are special, "
		   "wanted %d",
		   spans[i].from, spans[i].to, count, spans[i].count);
		free(ids);
	}
	yoke_tokenizer_free(t);
}

static void test_arguments(void)
{
	static const struct yoke_text_span bad[][2] = { { { 2, 1, 0 }, { 3, 3, 0 } },
							{ { 0, 2, 0 }, { 1, 3, 0 } },
							{ { 0, 1, 0 }, { 1, 9, 0 } } };
	yoke_tokenizer *t = open_tokenizer("gpt2.json", NULL, NULL);
	int32_t *ids = NULL;
	size_t n = 77;
	for (int i = 0; i < 3; i++)
		ok(yoke_tokenizer_encode_spans(t, "abc", 3, 0, bad[i], 2, &ids, &n) ==
				   YOKE_EINVAL &&
			   !ids && n == 77,
		   "intervals out of order or beyond the text are refused (%d)", i);
	yoke_error_clear();
	yoke_tokenizer_free(t);
}

int main(void)
{
	test_operations();
	test_recorded();
	test_escapes();
	test_tokens();
	test_normalized();
	test_arguments();
	return done();
}
