#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is `yoke advise` right?  Each of 20 trainings, tiny to large, beside runs ten times as long on each device.

    bench/advice.py YOKE TEXT [cases, 20] [seconds of each long run, 20]

The CPU has one thread, the other devices (YOKE_PLUGIN_PATH) what they like.  Prints, a line a case, the device that was
advised and how many times as fast it is said to be, the ratio of the long runs, which go in turns, and how long the
advice took.  Where the long runs differ by less than 1.15 times either device is right.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

yoke, text = map(os.path.abspath, sys.argv[1:3])
most = int(sys.argv[3]) if len(sys.argv) > 3 else 20
seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 20
folder = tempfile.mkdtemp(prefix='yoke-advice.')
os.chdir(folder)
shapes = [(1, 2, 16, 16), (1, 2, 32, 32), (2, 4, 64, 64), (2, 4, 128, 64), (4, 4, 256, 128)]
cases = [(shape, batch) for batch in (1, 4, 16, 64) for shape in shapes]
cases = [cases[i * len(cases) // most] for i in range(min(most, len(cases)))]


def steps_a_second(keys, device, steps):
    shutil.rmtree('run', ignore_errors=True)
    backend = device.split(':')[0]
    subprocess.run([yoke, 'train', 'out=run', 'steps=%d' % steps, 'backend=' + backend, 'log_every=1', 'report=0', 'progress=0',
                    'checkpoints=0', 'valid=0'] + keys, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open('run/metrics.jsonl') as f:
        rates = [l['tokens_per_s'] for l in map(json.loads, f) if l['stage'] == 'train' and 'tokens_per_s' in l]
    return statistics.median(rates[len(rates) // 10:])


right = near = 0
for (layers, heads, embed, context), batch in cases:
    keys = ['data=' + text, 'threads=1', 'layers=%d' % layers, 'heads=%d' % heads, 'embed=%d' % embed,
            'context=%d' % context, 'batch=%d' % batch]
    began = time.time()
    said = subprocess.run([yoke, 'advise', '--measure', '--json'] + keys, check=True, stdout=subprocess.PIPE).stdout
    took, times = time.time() - began, json.loads(said)['times']
    step = {d['device']: d['step_s'] for d in times['devices'] if d['step_s']}
    rate = {device: [] for device in step}
    for turn in range(2):
        for device in step:
            rate[device].append(steps_a_second(keys, device, max(20, int(seconds / 2 / step[device]))))
    rate = {device: statistics.mean(rates) for device, rates in rate.items()}
    best = max(rate, key=rate.get)
    ratio = rate[best] / max(r for d, r in rate.items() if d != best) if len(rate) > 1 else 1
    claimed = times['ratio'] if times['best'] == best else 1 / times['ratio']
    right += times['best'] == best or ratio < 1.15
    near += abs(claimed / ratio - 1) <= 0.2
    print('layers %d embed %-4d context %-4d batch %-3d advised %-9s %6.2f, long runs %-9s %6.2f, in %5.1f s' % (
        layers, embed, context, batch, times['best'], times['ratio'], best, ratio, took), flush=True)
print('%d of %d right, %d within 20 %%' % (right, len(cases), near))
shutil.rmtree(folder)
