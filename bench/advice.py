#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is `yoke plan device` right, and is backend=fastest worth its measuring?  In slices, so that a machine need not be quiet for long.

    bench/advice.py YOKE TEXT RESULTS [seconds, 60] [seconds of a run of fastest, 120]

Each of 20 trainings, tiny to large, beside runs ten times as long on each device; then, three times, the steps that
backend=fastest has done after some seconds from its start, measuring included, beside those of each device.  What is not in
RESULTS yet is done and appended there, as long as it fits into so many seconds; call it again until nothing is left.
Then, or with 0 seconds, it prints what is there.  The CPU has one thread, the other devices (YOKE_PLUGIN_PATH) what they
like.  Kernels have to have been compiled and tested before: give a training of each device a minute first.
"""
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

yoke, text, results = map(os.path.abspath, sys.argv[1:4])
seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 60
whole = float(sys.argv[5]) if len(sys.argv) > 5 else 120
shapes = [(1, 2, 16, 16), (1, 2, 32, 32), (2, 4, 64, 64), (2, 4, 128, 64), (4, 4, 256, 128)]
cases = [list(shape) + [batch] for batch in (1, 4, 16, 64) for shape in shapes]
names = 'layers', 'heads', 'embed', 'context', 'batch'
quiet = ['report=0', 'progress=0', 'checkpoints=0', 'valid=0', 'telemetry=0']
TURNS, TIMED, LONG = 3, 0.75, 10  # TIMED: seconds for which yoke plan device times a device; LONG: the same for a long measurement


def keys_of(case):
    return ['data=' + text, 'threads=1'] + ['%s=%d' % pair for pair in zip(names, case)]


def train(backend, keys, **more):
    return subprocess.Popen([yoke, 'train', 'out=run', 'backend=' + backend] + quiet + keys, stdout=subprocess.DEVNULL, **more)


def lines():
    with open('run/metrics.jsonl') as f:
        found = [l for l in map(json.loads, f) if l['stage'] == 'train']
    shutil.rmtree('run')
    return found


def steps_a_second(case, device, step):
    steps = max(8, int(TIMED * LONG / 2 / step))
    run = train(device.split(':')[0], keys_of(case) + ['steps=%d' % steps, 'log_every=%d' % max(1, steps // 20)])
    if run.wait():
        sys.exit('it failed')
    rates = [l['tokens_per_s'] for l in lines() if 'tokens_per_s' in l]
    return statistics.median(rates[2:])


def advice(case):
    began = time.time()
    said = subprocess.run([yoke, 'plan', 'device', '--measure', '--json'] + keys_of(case), check=True, stdout=subprocess.PIPE).stdout
    took, times = time.time() - began, json.loads(said)['times']
    step = {d['device']: d['step_s'] for d in times['devices'] if d['step_s']}
    rate = {device: [] for device in step}
    for turn in range(2):
        for device in sorted(step, reverse=turn):
            rate[device].append(steps_a_second(case, device, step[device]))
    return {'case': case, 'took': took, 'said': times['best'], 'claimed': times['ratio'], 'spread': times['ratio_spread'],
            'crosses': times['crosses'], 'rate': rate}


def fastest(backend, turn):
    began = time.time()
    run = train(backend, keys_of([2, 4, 64, 64, 8]) + ['steps=100000000', 'log_every=10'], stderr=subprocess.PIPE, text=True)
    time.sleep(whole)
    run.send_signal(signal.SIGTERM)
    said = [l.strip() for l in run.communicate()[1].splitlines() if 'fastest' in l]
    logged = lines()
    return {'backend': backend, 'turn': turn, 'seconds': whole, 'steps': logged[-1]['step'], 'first': logged[0]['time'] - began,
            'said': said}


def known():
    if not os.path.exists(results):
        return []
    with open(results) as f:
        return [json.loads(l) for l in f]


def left_to_do():
    there = known()
    todo = [(advice, (case,), 2 * LONG * TIMED + 15) for case in cases if not any(r.get('case') == case for r in there)]
    backends = sorted({d.split(':')[0] for r in there for d in r.get('rate', {})}) + ['fastest']
    return todo + [(fastest, (b, turn), whole + 5) for turn in range(TURNS) for b in backends
                   if len(backends) > 1 and not any(r.get('backend') == b and r['turn'] == turn for r in there)]


def summary():
    right = near = quick = clear = n = 0
    steps, first = {}, {}
    for r in known():
        if 'backend' in r:
            steps[r['backend'], r['turn']], first[r['backend'], r['turn']] = r['steps'], r['first']
            continue
        rate = {device: statistics.mean(rates) for device, rates in r['rate'].items()}
        best = max(rate, key=rate.get)
        ratio = rate[best] / max([x for d, x in rate.items() if d != best] or [rate[best]])
        claimed = r['claimed'] if r['said'] == best else 1 / r['claimed']
        n, right, near, quick, clear = (n + 1, right + (r['said'] == best or ratio < 1.15), near + (abs(claimed / ratio - 1) <= 0.2),
                                        quick + (r['took'] <= 20), clear + (ratio >= 1.15))
        print('%-60s advised %-9s %5.2f, long runs %-9s %5.2f, in %4.1f s%s' % (
            ' '.join('%s=%d' % pair for pair in zip(names, r['case'])), r['said'], r['claimed'], best, ratio, r['took'],
            '' if abs(claimed / ratio - 1) <= 0.2 else '  *'))
    print('%d of %d right (%d of a ratio of 1.15 or more), %d within 20 %%, %d in 20 s' % (right, n, clear, near, quick))
    backends = sorted({b for b, turn in steps})
    turns = [t for t in range(TURNS) if all((b, t) in steps for b in backends)]
    for b in backends:
        print('%-8s steps in %g s: %s' % (b, whole, ' '.join(str(steps[b, t]) for t in turns)))
    if 'fastest' in backends and turns:
        share = sorted(steps['fastest', t] / max(steps[b, t] for b in backends if b != 'fastest') for t in turns)
        print('fastest  %.3f of the better (%.3f to %.3f), want 0.95' % (statistics.median(share), share[0], share[-1]))
        # the machine's own speed varies between runs
        first = {b: statistics.median(first[b, t] for t in turns) for b in backends}
        print('its first step is behind %.2f s, that of the others behind %s: %.3f of %g s are left' % (
            first['fastest'], ', '.join('%.2f s (%s)' % (first[b], b) for b in backends if b != 'fastest'),
            (whole - first['fastest']) / (whole - min(x for b, x in first.items() if b != 'fastest')), whole))


folder = tempfile.mkdtemp(prefix='yoke-advice.')
os.chdir(folder)
until = time.time() + seconds
while left_to_do() and seconds:
    what, arguments, takes = left_to_do()[0]
    if time.time() + takes > until:
        break
    found = what(*arguments)
    with open(results, 'a') as f:
        f.write(json.dumps(found) + '\n')
os.chdir('/')
shutil.rmtree(folder)
if not seconds or not left_to_do():
    summary()
else:
    print('%d slices are left' % len(left_to_do()))
