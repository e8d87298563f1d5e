// SPDX-License-Identifier: Apache-2.0
// Tests chat templates: the texts are those that jinja2 renders; hostile templates end with one
// line.
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz/targets.h"
#include "models/template_cases.h"
#include "tap.h"
#include "yoke-tokenizer.h"

static const char *seeds; // folder for files to begin fuzzing with, or NULL

// Renders the recorded messages; NULL: an error, with *code.
static char *render(const char *source, size_t length, const char *json, int *code)
{
	const struct yoke_chat_options o = { .size = sizeof o,
					     .add_generation_prompt = 1,
					     .variables = "{\"bos_token\": \"<s>\"}" };
	yoke_chat_template *t = yoke_chat_template_parse(source, length, "test");
	char *text = NULL;
	size_t bytes;
	*code = t ? yoke_chat_template_render_json(t, json, strlen(json), &o, &text, &bytes) :
		    yoke_error_code();
	if (*code == 0 && strlen(text) != bytes)
		ok(false, "a text without NUL has its length");
	yoke_chat_template_free(t);
	return text;
}

static void write_seed(size_t i, const char *text, size_t bytes)
{
	char path[600];
	snprintf(path, sizeof path, "%s/template", seeds);
	mkdir(path, 0777);
	snprintf(path, sizeof path, "%s/template/%zu", seeds, i);
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(text, 1, bytes, f) != bytes || fclose(f))
		exit(99);
}

static void test_recorded(void)
{
	size_t wrong = 0;
	const size_t n = sizeof cases / sizeof *cases;
	for (size_t i = 0; i < n; i++) {
		int e;
		if (seeds)
			write_seed(i, cases[i].source, strlen(cases[i].source));
		char *text = render(cases[i].source, strlen(cases[i].source), messages, &e);
		if (!text || strcmp(text, cases[i].text)) {
			wrong++;
			printf("# case %zu: %s\n#  wanted %s\n#  got    %s\n", i, cases[i].source,
			       cases[i].text, text ? text : yoke_error());
		}
		yoke_error_clear();
		free(text);
	}
	ok(n >= 15 && wrong == 0, "%zu templates render the texts that jinja2 recorded", n);
}

static void test_array(void)
{
	static const char source[] = "{% for m in messages %}{{ m.role }}:{{ m.content }};{% "
				     "endfor %}{{ tools|length }}{{ add_generation_prompt }}"
				     "{{ strftime_now('%Y-%m-%d') }}";
	const struct yoke_chat_message m[] = { { "user", "a" }, { "assistant", "<b>" } };
	const struct yoke_chat_options o = { .size = sizeof o,
					     .tools = "[1, 2]",
					     .now = 86400 * 365 + 43200 };
	yoke_chat_template *t = yoke_chat_template_parse(source, strlen(source), "test");
	char *text = NULL;
	size_t bytes = 0;
	const int e = yoke_chat_template_render(t, m, 2, &o, &text, &bytes);
	ok(e == 0 && text && !strcmp(text, "user:a;assistant:<b>;2False1971-01-01"),
	       "messages may be an array of role and content: %s", text ? text : yoke_error());
	free(text);
	const struct yoke_chat_options bad = { .size = sizeof bad, .tools = "{}" };
	ok(yoke_chat_template_render(t, m, 2, &bad, &text, &bytes) == YOKE_EINVAL,
	       "tools must be an array");
	yoke_error_clear();
	yoke_chat_template_free(t);
}

// The error code expected for each hostile template.
static const struct {
	const char *source;
	int code;
} hostile[] = {
	{ "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
	  YOKE_ERANGE },
	{ "{% for a in range(100002) %}{% endfor %}", YOKE_ERANGE },
	{ "{{ 'a' * 99999999999 }}", YOKE_ERANGE },
	{ "{{ 'a' * 2000000 }}", YOKE_ERANGE },
	{ "{% set ns = namespace(s='aaaaaaaaaaaaaaaa') %}{% for i in range(64) %}{% set ns.s = "
	  "ns.s + ns.s %}{% endfor %}",
	  YOKE_ERANGE },
	{ "{% set ns = namespace(l=[]) %}{% for i in range(9999) %}{% set ns.l = [ns.l] %}{% "
	  "endfor %}{{ ns.l }}",
	  YOKE_ERANGE },
	{ "{% set ns = namespace(l=[]) %}{% for i in range(9999) %}{% set ns.l = [ns.l] %}{% "
	  "endfor %}{{ ns.l|tojson }}",
	  YOKE_ERANGE },
	{ "{% set ns = namespace(l=[], m=[]) %}{% for i in range(9999) %}{% set ns.l = [ns.l] %}{% "
	  "set ns.m = [ns.m] %}{% endfor %}"
	  "{{ ns.l == ns.m }}",
	  YOKE_ERANGE },
	{ "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", YOKE_ERANGE },
	{ "{% macro f(n) %}{% call f(n) %}{% endcall %}{% endmacro %}{{ f(1) }}", YOKE_ERANGE },
	{ "{{ '%999999999d' % 1 }}{{ '%999999999d' % 1 }}{{ '%999999999d' % 1 }}", YOKE_ERANGE },
	{ "{{ 'a'|indent(999999999) }}", YOKE_ERANGE },
	{ "{{ 'a'.ljust(999999999) }}", YOKE_ERANGE },
	{ "{{ 9223372036854775 * 9223372036854775 }}", YOKE_ERANGE },
	{ "{{ 99999999999999999999999 }}", YOKE_EFORMAT },
	{ "{{ 2 ** 9999999 }}", YOKE_ERANGE },
	{ "{{ 1 // 0 }}", YOKE_EFORMAT },
	{ "{{ 1 % 0 }}", YOKE_EFORMAT },
	{ "{{ raise_exception('no\nway \033[1m') }}", YOKE_EFORMAT },
	{ "{{ [].append(1) }}", YOKE_EFORMAT },
	{ "{{ messages.pop() }}", YOKE_EFORMAT },
	{ "{{ ''.__class__.__mro__ }}", YOKE_EFORMAT },
	{ "{{ nothing.member }}", YOKE_EFORMAT },
	{ "{{ nothing + 1 }}", YOKE_EFORMAT },
	{ "{{ none|length }}", YOKE_EFORMAT },
	{ "{{ 1 < 'a' }}", YOKE_EFORMAT },
	{ "{{ nothing|tojson }}", YOKE_EFORMAT },
	{ "{{ x|nofilter }}", YOKE_EFORMAT },
	{ "{{ x is notest }}", YOKE_EFORMAT },
	{ "{% set messages.x = 1 %}", YOKE_EFORMAT },
	{ "{% set ns = namespace(__a=1) %}", YOKE_EFORMAT },
	{ "{% for a, b in [1] %}{% endfor %}", YOKE_EFORMAT },
	{ "{% for a, b in [(1, 2, 3)] %}{% endfor %}", YOKE_EFORMAT },
	{ "{% if true %}", YOKE_EFORMAT },
	{ "{% endif %}", YOKE_EFORMAT },
	{ "{% for %}", YOKE_EFORMAT },
	{ "{% for x in %}", YOKE_EFORMAT },
	{ "{% set %}", YOKE_EFORMAT },
	{ "{% include 'x' %}", YOKE_EFORMAT },
	{ "{{ 'open }}", YOKE_EFORMAT },
	{ "{{ (1 }}", YOKE_EFORMAT },
	{ "{{ 1) }}", YOKE_EFORMAT },
	{ "{{ ", YOKE_EFORMAT },
	{ "{%", YOKE_EFORMAT },
	{ "{#", YOKE_EFORMAT },
	{ "{{ ? }}", YOKE_EFORMAT },
	{ "{{ '\\ud800' }}", YOKE_EFORMAT },
	{ "{% raw %}", YOKE_EFORMAT },
	{ "\xff", YOKE_EFORMAT },
	{ "{{ messages[1:2:0] }}", YOKE_EFORMAT },
	{ "{{ '{'.format(1) }}", YOKE_EFORMAT },
	{ "{{ '{0}'.format() }}", YOKE_EFORMAT },
	{ "{{ '%d' % 'a' }}", YOKE_EFORMAT },
	{ "{{ range(1, 2, 0) }}", YOKE_EFORMAT },
	{ "{% macro f(n) %}{{ g(n) }}{% endmacro %}{% macro g(n) %}{{ f(n) }}{% endmacro %}{{ f(1) "
	  "}}",
	  YOKE_ERANGE },
	{ "{% for a in range(9999) %}{{ messages|tojson }}{{ messages|tojson }}{% endfor %}{{ 'a' "
	  "* 1048576 }}",
	  YOKE_ERANGE },
	{ "{% for a in range(-1, 999999999) %}{% endfor %}", YOKE_ERANGE },
	{ "{{ range(999999999)|list }}", YOKE_ERANGE },
	{ "{{ [1] * 999999999 }}", YOKE_ERANGE },
	{ "{{ 'a'.center(999999999) }}", YOKE_ERANGE },
	{ "{{ 'a'.rjust(999999999) }}", YOKE_ERANGE },
	{ "{{ ('a' * 1000000).replace('a', 'aaaaaaaa') }}", YOKE_ERANGE },
	{ "{{ ('a' * 1000000).replace('', 'aaaaaaaa') }}", YOKE_ERANGE },
	{ "{{ raise_exception('stop') }}", YOKE_EFORMAT },
	{ "{{ raise_exception() }}", YOKE_EFORMAT },
	{ "{{ open('/etc/passwd') }}", YOKE_EFORMAT },
	{ "{{ lipsum() }}", YOKE_EFORMAT },
	{ "{{ cycler.__init__.__globals__ }}", YOKE_EFORMAT },
	{ "{{ messages.__class__ }}{{ messages.__class__.__base__ }}", YOKE_EFORMAT },
	{ "{{ 'a'.nothing() }}", YOKE_EFORMAT },
	{ "{{ messages[0].nothing() }}", YOKE_EFORMAT },
	{ "{{ 1() }}", YOKE_EFORMAT },
	{ "{{ f(1) }}", YOKE_EFORMAT },
	{ "{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", YOKE_EFORMAT },
	{ "{% macro f(a) %}{% endmacro %}{{ f(b=2) }}", YOKE_EFORMAT },
	{ "{% macro f(a, a) %}", YOKE_EFORMAT },
	{ "{% extends 'x' %}", YOKE_EFORMAT },
	{ "{% import 'x' as y %}", YOKE_EFORMAT },
	{ "{% block x %}", YOKE_EFORMAT },
	{ "{% unknown %}", YOKE_EFORMAT },
	{ "{% else %}", YOKE_EFORMAT },
	{ "{% if true %}{% endfor %}", YOKE_EFORMAT },
	{ "{% for x in 3 %}{% endfor %}", YOKE_EFORMAT },
	{ "{% for x in none %}{% endfor %}", YOKE_EFORMAT },
	{ "{{ 'a' + 1 }}", YOKE_EFORMAT },
	{ "{{ {} + {} }}", YOKE_EFORMAT },
	{ "{{ {[]: 1} }}", YOKE_EFORMAT },
	{ "{{ -'a' }}", YOKE_EFORMAT },
	{ "{{ 'a' if }}", YOKE_EFORMAT },
	{ "{{ a b }}", YOKE_EFORMAT },
	{ "{{ a. }}", YOKE_EFORMAT },
	{ "{{ a| }}", YOKE_EFORMAT },
	{ "{{ [1, }}", YOKE_EFORMAT },
	{ "{{ {'a' 1} }}", YOKE_EFORMAT },
	{ "{{ 1 / 0 }}", YOKE_EFORMAT },
	{ "{{ 9223372036854775807 + 1 }}", YOKE_EFORMAT },
	{ "{{ '%s %s' % 1 }}", YOKE_EFORMAT },
	{ "{{ strftime_now(1) }}", YOKE_EFORMAT },
};

static void test_hostile(void)
{
	size_t wrong = 0;
	const size_t n = sizeof hostile / sizeof *hostile;
	for (size_t i = 0; i < n; i++) {
		int e;
		if (seeds)
			write_seed(1000 + i, hostile[i].source, strlen(hostile[i].source));
		char *text = render(hostile[i].source, strlen(hostile[i].source), messages, &e);
		const bool one_line = *yoke_error() && !strpbrk(yoke_error(), "\n\r\033");
		if (text || e != hostile[i].code || !one_line) {
			wrong++;
			printf("# %s\n#  wanted code %d, got %d: %s\n", hostile[i].source,
			       hostile[i].code, e, yoke_error());
		}
		yoke_error_clear();
		free(text);
	}
	ok(wrong == 0,
	       "%zu hostile templates end with one line and the code that names their fault", n);
}

// Deep nesting of each kind, repeated n times around or before something.
static void test_deep(void)
{
	static const struct {
		const char *open, *middle, *close;
	} kinds[] = { { "(", "1", ")" }, { "[", "1", "]" },     { "not ", "1", "" },
		      { "-", "1", "" },  { "{'a':", "1", "}" }, { "1 if 1 else ", "1", "" },
		      { "x[", "1", "]" } };
	size_t wrong = 0;
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		char *source = calloc(1, 1000000);
		int e;
		char *end = stpcpy(source, "{{ ");
		for (int i = 0; i < 20000; i++)
			end = stpcpy(end, kinds[k].open);
		end = stpcpy(end, kinds[k].middle);
		for (int i = 0; i < 20000; i++)
			end = stpcpy(end, kinds[k].close);
		strcpy(end, " }}");
		char *text = render(source, strlen(source), messages, &e);
		if (text || (e != YOKE_ERANGE && e != YOKE_EFORMAT))
			printf("# %s: code %d: %s\n", kinds[k].open, e, yoke_error());
		wrong += text || (e != YOKE_ERANGE && e != YOKE_EFORMAT);
		yoke_error_clear();
		free(text);
		free(source);
	}
	ok(wrong == 0, "expressions that are nested 20000 deep are refused");
}

// Damages the recorded templates in all ways of one byte of a sample.
static void test_damaged(void)
{
	size_t n = 0;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const size_t length = strlen(cases[i].source);
		char *copy = strdup(cases[i].source);
		for (size_t at = 0; at < length; at += 3) {
			static const char bytes[] = "{}%'|(\xf0";
			copy[at] = bytes[(at / 3) % (sizeof bytes - 1)];
			yk_fuzz_template((const uint8_t *)copy, length);
			copy[at] = cases[i].source[at];
			yk_fuzz_template((const uint8_t *)copy, at);
			n += 2;
		}
		free(copy);
	}
	ok(n > 1000, "%zu damaged templates render or give one line", n);
}

int main(int argc, char **argv)
{
	seeds = argc > 1 ? argv[1] : NULL;
	test_recorded();
	test_array();
	test_hostile();
	test_deep();
	test_damaged();
	return done();
}
