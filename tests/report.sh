#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke report: its four formats agree, for one run and for several, for any characters in
# names.
set -u
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/yoke.sh"
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
verdict "the key that differs" "$(grep -q '^| lr | auto | 1e-2 |' r.md || cat r.md)"
if python3 -c '' 2>/dev/null; then
	cat >forms.py <<'END'
import csv, json, re, sys
from xml.dom import minidom
def numbers(x, skip=()):
    if isinstance(x, dict):
        return [n for k, v in x.items() if k not in skip for n in numbers(v)]
    if isinstance(x, list):
        return [n for v in x for n in numbers(v)]
    return [x] if isinstance(x, (int, float)) and not isinstance(x, bool) else []
o = json.load(open('r.json'))
want = sorted(numbers([r for r in o['runs']], ('limits',)) + numbers(o['ratios']) + numbers(o['differences']))
def number(t):
    try:
        return float(t)
    except ValueError:
        return None
text = open('r.html').read()
# a text that looks like a number is no number of the report, and of class t
html = sorted(float(t) for t in re.findall(r'<td class="n">([^<]*)</td>', text) if number(t) is not None)
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
if html != [float(n) for n in want]:
    a, b = counted(html), counted([float(n) for n in want])
    wrong.append('html: %s' % [(n, a.get(n), b.get(n)) for n in set(a) | set(b) if a.get(n) != b.get(n)][:5])
cells = [c.strip() for l in open('r.md') if l.startswith('|') for c in l.strip().strip('|').split('|')]
md = counted([float(c) for c in cells if number(c) is not None])
rows = list(csv.reader(open('r.csv', newline='')))
values = counted([float(r[4]) for r in rows[1:] if number(r[4]) is not None and r[1] not in [p['name'] for p in o['plots']]])
for n, k in counted([float(n) for n in want]).items():
    if md.get(n, 0) < k:
        wrong.append('md lacks %r' % n)
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
verdict "torn and foreign lines" "$(grep -q '^| train | loss | 1 | 2 |' out && grep -q '^| foreign\\_lines | 1 |' out || cat out)"
echo "1..$count"
