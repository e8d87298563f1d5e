#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke report: its four formats agree, for one run and for several, for any characters in
# names.
set -u
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/yoke.sh"
tests=$(cd "${srcdir:-.}" && pwd)/tests
workspace report
trap 'rm -rf "${TMPDIR:-/tmp}/report.work"' EXIT

easy_text 120 >text
small="data=text threads=1 layers=1 heads=2 embed=32 context=32 batch=8 log_every=1 progress=0 report=0"
# shellcheck disable=SC2086 # words
"$yoke" train out=a steps=12 eval_every=4 profile=1 $small 2>err
verdict "a run with a profile" "$([ $? -eq 0 ] || cat err)"
# shellcheck disable=SC2086
"$yoke" train out='<script>alert(1)' steps=8 lr=1e-2 $small 2>err
verdict "a run of an evil name" "$([ $? -eq 0 ] || cat err)"

report()
{
	"$yoke" report "$@" --html r.html --md r.md --csv=r.csv --json >r.json 2>out
}
report a
verdict "a report" "$([ $? -eq 0 ] || cat out)"
verdict "no scripts, and nothing from elsewhere, in the page" "$(grep -n '<script\|http[^"]*//' r.html |
	grep -v 'xmlns="http://www.w3.org/2000/svg"')"
report a '<script>alert(1)'
verdict "of two" "$([ $? -eq 0 ] || cat out)"
verdict "names are text" "$(grep -n '<script' r.html; grep -q '&lt;script&gt;alert(1)' r.html || echo no name)"
verdict "the key that differs" "$(grep -qE '^\| lr +\| auto +\| +1e-2 \|' r.md || cat r.md)"
if python3 -c '' 2>/dev/null; then
	cat >forms.py <<'END'
import csv, json, re, sys
from xml.dom import minidom
def numbers(x, skip=()):
    if isinstance(x, dict):
        return [n for k, v in x.items() if k not in skip for n in numbers(v, skip)]
    if isinstance(x, list):
        return [n for v in x for n in numbers(v, skip)]
    return [x] if isinstance(x, (int, float)) and not isinstance(x, bool) else []
o = json.load(open('r.json'))
want = sorted(numbers([r for r in o['runs']], ('limits', 'findings')) + numbers(o['ratios']) + numbers(o['differences']))
def number(t):
    try:
        return float(t)
    except ValueError:
        return None
text = open('r.html').read()
# a text that looks like a number is no number of the report, and of class t
cells = re.findall(r'<td class="n"><data value="([^"]*)">([^<]*)</data></td>', text)
html = sorted(float(v) for v, t in cells)
strings = set()
def texts(x):
    if isinstance(x, dict):
        [texts(v) for v in x.values()]
    elif isinstance(x, list):
        [texts(v) for v in x]
    elif isinstance(x, str):
        strings.add(x)
texts(o)
counted = lambda list: {n: list.count(n) for n in list}
wrong = []
unit = {'': 1, 'B': 1, 'KiB': 2**10, 'MiB': 2**20, 'GiB': 2**30, 'TiB': 2**40, 'k': 1e3, 'M': 1e6, 'G': 1e9, 'T': 1e12, 's': 1, 'ms': 1e-3,
        'µs': 1e-6, 'ns': 1e-9, 'min': 60, 'h': 3600, 'd': 86400, '%': 0.01, '/s': 1, 'k/s': 1e3, 'M/s': 1e6, 'G/s': 1e9, 'W': 1, '°C': 1,
        'Hz': 1, 'MHz': 1e6, 'GHz': 1e9}
# the value of "7.2 MiB" or "4 min 5 s"
def readable(t):
    words = t.split(' ')
    return sum(float(words[i]) * unit[words[i + 1] if i + 1 < len(words) else ''] for i in range(0, len(words), 2))
for exact, t in cells:
    x, y = float(exact), readable(t)
    # half of the last digit that is shown; columns in GB/s and GFLOP/s have their unit in the title
    last = t.split(' ')[-1 if len(t.split(' ')) % 2 else -2]
    digit = 10.0 ** -len(last.split('.')[1]) if '.' in last and 'e' not in last else 1
    half = 0.51 * digit * unit[t.split(' ')[-1]] if ' ' in t else 0.51 * digit
    if not any(abs(y * g - x) <= max(half * g, 0.0006 * abs(x)) for g in ((1, 1e9) if ' ' not in t else (1,))) or len(t) > 16:
        wrong.append('%s is shown as %s' % (exact, t))
if html != [float(n) for n in want]:
    a, b = counted(html), counted([float(n) for n in want])
    wrong.append('html: %s' % [(n, a.get(n), b.get(n)) for n in set(a) | set(b) if a.get(n) != b.get(n)][:5])
md = counted([c.strip() for l in open('r.md') if l.startswith('|') for c in l.strip().strip('|').split('|')])
for t, k in counted([t for v, t in cells]).items():
    if md.get(t, 0) < k:
        wrong.append('md lacks %s' % t)
rows = list(csv.reader(open('r.csv', newline='')))
values = counted([float(r[4]) for r in rows[1:] if number(r[4]) is not None and r[1] not in [p['name'] for p in o['plots']]])
for n, k in counted([float(n) for n in want]).items():
    if values.get(n, 0) < k:
        wrong.append('csv lacks %r' % n)
svgs = re.findall(r'<svg.*?</svg>', text, re.S)
points = [r for r in rows[1:] if r[1] in [p['name'] for p in o['plots']]]
for p in o['plots']:
    svg = [minidom.parseString(s) for s in svgs if 'data-name="%s"' % p['name'] in s.split('>')[0]][0]
    paths = [e for e in svg.getElementsByTagName('path') if e.hasAttribute('data-points')]
    if len(paths) != len(p['curves']):
        wrong.append('%s: %d curves' % (p['name'], len(paths)))
    for e, c in zip(paths, p['curves']):
        got = [tuple(map(float, q.split(','))) for q in e.getAttribute('data-points').split()]
        if got != list(zip(map(float, c['x']), c['y'])):
            wrong.append('%s: other points' % p['name'])
        of = [(float(r[3]), float(r[4])) for r in points if r[1] == p['name'] and r[0] == c['name']]
        if of != got:
            wrong.append('%s: other points in the table' % p['name'])
losses = [json.loads(l) for l in open('a/metrics.jsonl')]
loss = [l['loss'] for l in losses if l['stage'] == 'train']
curve = [c for p in o['plots'] if p['name'] == 'loss' for c in p['curves']][0]
if curve['y'] != loss:
    wrong.append('the curve is not the losses: %s %s' % (curve['y'][:3], loss[:3]))
wall = [l['report']['wall'] for l in losses if l['stage'] == 'report'][0]
phases = o['runs'][0]['phases']
if abs([p['seconds'] for p in phases if p['phase'] == 'wall'][0] / wall - 1) > 1e-5:
    wrong.append('another wall')
if abs(sum(k['share'] for k in o['runs'][0]['kernels']) - 1) > 1e-4:
    wrong.append('shares of kernels do not sum to 1')
if not want or len(svgs) < 5:
    wrong.append('too little')
print('\n'.join(wrong))
END
	verdict "the four forms have the same numbers, the plots their points" "$(python3 forms.py 2>&1)"
else
	skip 'the four forms' 'no python3'
fi
mkdir earlier && sed 's/"intervals"/"pieces"/g' a/metrics.jsonl >earlier/metrics.jsonl
verdict "phases of a run of an earlier version" "$("$yoke" report earlier --json >earlier.json && "$yoke" report a --json >a.json
	sed -n '/"phases"/,/^ *]/p' a.json >phases && grep -q contractions phases && sed -n '/"phases"/,/^ *]/p' earlier.json | cmp - phases 2>&1)"
# a killed run, and the order of the page: state, figures and findings before the curves
mkdir gone && cp a/metrics.jsonl gone/ && printf '{"format":1,"device":"cpu:0","steps":100,"config":{"save_every":"5","batch":"8"}}' >gone/run.json
printf '{"format":1,"step":10}' >gone/manifest.json
"$yoke" report gone --html gone.html 2>out
verdict "a killed run is named first, with the command that continues it" "$(head -c "$(grep -ob '<h2>Curves' gone.html | cut -d: -f1)" gone.html >first
	grep -q 'pill killed' first && grep -q '<code>yoke train out=gone resume=1</code>' first && grep -q 'data-findings="[1-9]' first || cat first)"
"$yoke" report a --html one.html 2>out
verdict "only keys that differ from their defaults are unfolded" "$(sed -n '/<h2>Configuration/,/<details>/p' one.html >keys
	grep -q '>embed<' keys && ! grep -q '>optimizer<' keys && grep -q 'All keys' one.html || cat keys)"
awk 'BEGIN { for (t = 1; t <= 50000; t++) printf "{\"step\":%d,\"loss\":%.6f,\"lr\":%g,\"stage\":\"train\",\"time\":%.1f}\n",
	t, 5 / t + t % 7 / 10, t % 11 / 100, 1000000 + t / 10 }' >long.jsonl
mkdir long && mv long.jsonl long/metrics.jsonl && "$yoke" report long --html long.html 2>out
verdict "a page of many lines stays small: $(wc -c <long.html) bytes" "$([ "$(wc -c <long.html)" -le 2097152 ] || echo 'over 2 MiB')"
if python3 -c '' 2>/dev/null; then
	python3 "$tests/report_page.py" one.html gone.html r.html >page.out 2>&1
	verdicts <page.out
fi
refuses()
{
	title=$1 want=$2
	shift 2
	"$yoke" report "$@" >out 2>&1
	[ $? -eq "$want" ] && [ "$(wc -l <out)" -eq 1 ] && verdict "$title: $(cat out)" '' || verdict "$title" "$(cat out)"
}
refuses "no run" 1 nowhere
refuses "two forms at once" 2 a --html - --json
refuses "a format without a file" 2 a --html
refuses "an option" 2 a --pdf
refuses "nothing" 2
mkdir torn && printf '{"step":1,"loss":2,"stage":"train"}\n\377\377\n{"step":2,"loss"' >torn/metrics.jsonl
"$yoke" report torn >out 2>&1
verdict "torn and foreign lines" "$(grep -qE '^\| train +\| loss +\| +1 +\| +2 +\|' out && grep -qE '^\| foreign\\_lines +\| +1 +\|' out || cat out)"
echo "1..$count"
