# SPDX-License-Identifier: Apache-2.0
"""Writes template_cases.h: small chat templates with the texts that jinja2 renders from them.

    python record_templates.py > template_cases.h

The environment is the one of transformers' apply_chat_template.  The recorded file names the version.
"""
import json
import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

MESSAGES = [
    {"role": "system", "content": "Be <b>brief</b> & \"kind\"."},
    {"role": "user", "content": "  Hello, w\u00f6rld \U0001f600\n"},
    {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHi!", "tool_calls": [
        {"function": {"name": "f", "arguments": {"b": [1, 2.5, None, True], "a": "\u00e9\n"}}}]},
    {"role": "user", "content": "Bye"},
]
CASES = r'''
{% for m in messages %}{{ '<|' + m['role'] + '|>\n' + m.content | trim + '<|end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}
~~
{%- for m in messages %}
    {%- if m.role == 'user' %}
        {{- bos_token ~ '[INST] ' ~ m.content.strip() ~ ' [/INST]' }}
    {%- elif m.role == "assistant" -%}
        {{ m.content.split('</think>')[-1].lstrip('\n') }}
    {%- else %}
   [{{ m.role|upper }}]
    {% endif %}
{%- endfor %}
~~
a
  {% if true %}
  b
  {% endif %}
c {# comment #}
  {#- x -#}  d
    {%+ if true %}e{%+ endif +%}
f
{% raw %} {{ x }} {% endraw %}
g
~~
{% set ns = namespace(n=0, s='') %}{% for m in messages if m.role != 'system' %}{% set ns.n = ns.n + loop.index %}{% set ns.s = ns.s ~ loop.first ~ loop.last ~ loop.length ~ loop.revindex ~ loop.cycle('x', 'y') ~ (loop.previtem.role if loop.previtem is defined) ~ (loop.nextitem.role if not loop.last) %}{% endfor %}{{ ns.n }} {{ ns.s }}
~~
{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i > 5 %}{% break %}{% endif %}{{ i }},{% else %}none{% endfor %}{% for x in [] %}{% else %}empty{% endfor %}{% for k, v in {'a': 1, 'b': [2]}.items() %}{{ k }}={{ v }};{% endfor %}{{ i is defined }}
~~
{% macro f(a, b=2, c='z') %}({{ a }}|{{ b }}|{{ c }}{% if caller %}|{{ caller(a) }}{% endif %}){% endmacro %}{{ f(1) }}{{ f(1, c=3) }}{{ f('x', *[4, 5]) }}{{ f(**{'a': 6}) }}{% call(v) f(7) %}body {{ v }}{% endcall %}{% macro g() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ g(1, 'a', k=2) }}
~~
{% set x %}  block {{ 1 + 1 }} {% endset %}[{{ x }}]{% set y | upper | trim %} ab {% endset %}[{{ y }}]{% set a, b = 1, (2, 3) %}{{ a }}{{ b }}{% filter upper %}low{% endfilter %}{% with p = 1, q = 2 %}{{ p + q }}{% endwith %}{% generation %}gen{{ 1 }}{% endgeneration %}
~~
{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 1e20 }} {{ 0.1 + 0.2 }} {{ 1.0 }} {{ 1e-5 }} {{ 123456789012345680.0 }} {{ 5 * 'ab' }} {{ [1] * 2 + [3] }} {{ 1 < 2 < 3 }} {{ 1 < 2 > 3 }} {{ not 1 == 2 }} {{ 'a' in 'cat' }} {{ 3 not in [1, 2] }} {{ -2 | abs }} {{ 10 - 2 - 3 }} {{ 0x1f + 0b11 + 0o17 + 1_000 }} {{ none }} {{ true and 0 or 'x' }}
~~
{{ [1, 'a', "it's", "q\"'", none, true, 1.5, (1,), (), {'k': [2]}] }} {{ 'tab\tnl\n\\ \x41\u00e9 \u200b'|list }} {{ {'a': 1, 2: 'b'} }} {{ {}.keys() }} {{ {'a': 1}.items() }} {{ range(3) }} {{ range(1, 7, 2)|list }}
~~
{{ 'hello'[1:3] }} {{ 'hello'[::-1] }} {{ 'hello'[-3:] }} {{ [1, 2, 3, 4][::2] }} {{ [1, 2, 3][5:] }} {{ (1, 2, 3)[:-1] }} {{ 'w\u00f6rld'[1] }} {{ messages[1:][0].role }} {{ messages[-1]['content'] }} {{ 'abc'[9] }}|{{ messages[0].nothing }}|{{ nothing }}|{{ nothing is defined }}
~~
{{ messages | tojson }} {{ messages[2] | tojson(indent=2) }} {{ {'b': 1, 'a': '\u00e9<>&\'"\\/'} | tojson(ensure_ascii=true, sort_keys=true) }} {{ [1, [], {}] | tojson(indent=4) }} {{ [1, 2] | tojson(separators=(',', ':')) }} {{ 1.0 | tojson }} {{ {'x': none, 1: true} | tojson }}
~~
{{ messages | map(attribute='role') | join(', ') }} {{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | map('trim') | list }} {{ [3, 1, 2] | sort }} {{ ['b', 'A', 'c'] | sort(reverse=true) | join }} {{ [1, 2, 3, 4] | reject('odd') | list }} {{ [1, 2, 3] | select('>', 1) | list | length }} {{ messages | rejectattr('tool_calls', 'defined') | list | count }} {{ {'b': 2, 'a': 1} | dictsort }} {{ [1, 1, 2] | unique | list }} {{ [1, 2, 3] | sum }} {{ [4, 2] | min }} {{ 'abc' | first }}{{ 'abc' | last }} {{ 'abc' | reverse }} {{ [1, 2, 3] | batch(2) | list }} {{ messages | groupby('role') | map('first') | list }}
~~
{{ '%s is %d and %.2f %5s|%-5s|%03d %x %%' | format('a', 3, 2.5, 'b', 'c', 7, 255) }} {{ '%(a)s' % {'a': 1} }} {{ '{} {1} {k} {0.role} {0[role]!r} {2:>5}|{2:<5}|{2:^5}|{3:05d} {3:,} {4:.3f} {4:e}'.format(messages[0], 'p', 'q', 1234567, 3.14159, k='kw') if false else '{0[role]} {k:*^9} {1:05d} {1:,} {2:.3f} {{}}'.format(messages[0], 1234567, 3.14159, k='kw') }}
~~
{{ ' a b  c '.split() }} {{ 'a,b,,c'.split(',') }} {{ 'a,b,c'.split(',', 1) }} {{ 'a b c'.rsplit(' ', 1) }} {{ 'a\nb\r\nc\n'.splitlines() }} {{ 'abcabc'.replace('b', 'X', 1) }} {{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'c')) }} {{ 'x--'.rstrip('-') }} {{ 'abc'.find('c') }} {{ 'Hello World'.title() }} {{ 'hELLO'.capitalize() }} {{ 'ab'.join(['1', '2']) }} {{ 'abc'.upper() }} {{ '\u00df\u00e9'.upper() }} {{ '12'.isdigit() }} {{ 'a=b=c'.partition('=') }} {{ 'ab'.center(5, '*') }} {{ '7'.zfill(3) }} {{ 'ab'.removeprefix('a') }} {{ 'banana'.count('an') }} {{ {'a': 1}.get('a') }}{{ {'a': 1}.get('b', 'no') }}{{ {}.get('x') }}
~~
{{ '<b>' | escape }} {{ '<b>' | safe }} {{ ('<i>' | safe) + '<b>' }} {{ 'a b/c' | urlencode }} {{ 'hello world foo' | truncate(9) }} {{ 'x\ny\n\nz' | indent(2) }} {{ 'x\ny' | indent(2, true) }} {{ 'hello world' | title }} {{ 'a b c' | wordcount }} {{ 3.7 | int }} {{ '42' | int + 1 }} {{ 'x' | int(5) }} {{ '2.5' | float }} {{ 2.5 | round }} {{ 3.14159 | round(2) }} {{ 2.1 | round(0, 'ceil') }} {{ nothing | default('d') }} {{ '' | default('e', true) }} {{ 5 | string + '6' }} {{ [1, 2] | string | length }}
~~
{{ 1 is number }} {{ true is number }} {{ 1 is integer }} {{ true is integer }} {{ 1.0 is float }} {{ 'a' is string }} {{ {} is mapping }} {{ 'a' is iterable }} {{ 1 is iterable }} {{ [] is sequence }} {{ nothing is sequence }} {{ none is none }} {{ 4 is even }} {{ 4 is divisibleby 2 }} {{ 'a' is in ['a'] }} {{ 1 is sameas 1 }} {{ 'a' is lower }} {{ true is true }} {{ 1 is true }} {{ messages is not none and messages is iterable }} {{ 1 is eq(1) }} {{ range is callable }}
~~
{% for n in [{'v': 1, 'c': [{'v': 2, 'c': []}]}] recursive %}{{ n.v }}@{{ loop.depth }}{{ loop(n.c) }}{% endfor %}{% for x in 'aab' %}{{ loop.changed(x) }}{% endfor %}{% if false %}{% set z = 1 %}{% elif 1 %}{% set z = 2 %}{% endif %}{{ z }}{% for x in [1] %}{% set z = 9 %}{% endfor %}{{ z }}{% print 1, 2 %}{{ "con" "cat" }}{{ (1, 2) }}{{ 1, 2 }}{{ {'a': {'b': {'c': 1}}}.a.b.c }}
'''


def generation(env):
    class Generation(jinja2.ext.Extension):
        tags = {"generation"}

        def parse(self, parser):
            line = next(parser.stream).lineno
            body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
            return jinja2.nodes.CallBlock(self.call_method("_text"), [], [], body).set_lineno(line)

        def _text(self, caller):
            return caller()
    env.add_extension(Generation)


def dumps(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def quoted(text):
    data = text.encode()
    return '"' + "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else "\\%03o" % b for b in data) + '"'


def main():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    generation(env)
    env.filters["tojson"] = dumps
    print("// SPDX-License-Identifier: Apache-2.0")
    print(f"// Recorded by record_templates.py with jinja2 {jinja2.__version__}.")
    print("// clang-format off")
    print(f"static const char messages[] = {quoted(json.dumps(MESSAGES))};")
    print("static const struct {\n\tconst char *source, *text;\n} cases[] = {")
    for source in CASES.strip("\n").split("\n~~\n"):
        text = env.from_string(source).render(messages=MESSAGES, tools=None, add_generation_prompt=True, bos_token="<s>")
        print(f"\t{{ {quoted(source)},\n\t  {quoted(text)} }},")
    print("};")


if __name__ == "__main__":
    main()
