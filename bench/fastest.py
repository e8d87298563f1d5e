#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What backend=fastest costs and gains: steps that a training has done after a while, beside those on each device.

    bench/fastest.py YOKE TEXT [seconds, 120] [turns, 3] [KEY=VALUE ..]

The CPU has one thread, the other devices (YOKE_PLUGIN_PATH) what they like.  Each run is ended after so many seconds
from its start, measuring included; those of a turn follow each other, behind a short one on each device.  Prints the medians of the turns, and the steps
of backend=fastest as a share of the better device's in the same turn.
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

yoke, text = map(os.path.abspath, sys.argv[1:3])
numbers = [a for a in sys.argv[3:] if '=' not in a]
seconds = float(numbers[0]) if numbers else 120
turns = int(numbers[1]) if len(numbers) > 1 else 3
keys = [a for a in sys.argv[3:] if '=' in a] or ['layers=2', 'heads=4', 'embed=64', 'context=64', 'batch=8']
folder = tempfile.mkdtemp(prefix='yoke-fastest.')
os.chdir(folder)


def steps_on(backend, seconds):
    shutil.rmtree('run', ignore_errors=True)
    run = subprocess.Popen([yoke, 'train', 'out=run', 'steps=100000000', 'data=' + text, 'threads=1', 'backend=' + backend,
                            'report=0', 'progress=0', 'checkpoints=0', 'valid=0', 'log_every=1'] + keys,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(seconds)
    run.send_signal(signal.SIGTERM)
    run.wait()
    with open('run/metrics.jsonl') as f:
        return max(l['step'] for l in map(json.loads, f) if l['stage'] == 'train')


info = json.loads(subprocess.run([yoke, 'advise', '--measure', '--json', 'data=' + text, 'threads=1'] + keys, check=True,
                                 stdout=subprocess.PIPE).stdout)
devices = [d['device'].split(':')[0] for d in info['times']['devices'] if d['step_s']]
for backend in devices:
    steps_on(backend, 10)  # kernels are compiled and tested before anything counts
done = {backend: [] for backend in devices + ['fastest']}
for turn in range(turns):
    for backend in done:
        done[backend].append(steps_on(backend, seconds))
for backend, steps in done.items():
    print('%-8s %8d steps in %g s (%d to %d in %d turns)' % (backend, statistics.median(steps), seconds, min(steps),
                                                             max(steps), turns))
share = sorted(f / max(done[d][k] for d in devices) for k, f in enumerate(done['fastest']))
print('fastest  %.3f of the better (%.3f to %.3f), want 0.95' % (statistics.median(share), share[0], share[-1]))
shutil.rmtree(folder)
