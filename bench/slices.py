# SPDX-License-Identifier: Apache-2.0
"""What ranks.py and watch.py have in common: a measurement in parts, whose figures are kept in a file, so that a machine need not be
quiet for long.  Arguments: BUILD TEXT RESULTS [seconds, 60] [PART ..]"""
import json
import os
import shutil
import sys
import tempfile
import time

build, text, results = map(os.path.abspath, sys.argv[1:4])
seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 60
said = []


def say(what, got, want=''):
    said.append([what, got, want])


def known():
    if not os.path.exists(results):
        return {}
    with open(results) as f:
        return {r['part']: r['said'] for r in map(json.loads, f)}


def measure(parts, line='%-58s %s%s'):
    """Of parts, name: (function, seconds that it takes), those that are named, or those that RESULTS has not, as long as they
    fit; then what is left, or the figures."""
    def left():
        return [name for name in parts if name not in known()]

    folder = tempfile.mkdtemp(prefix='yoke-bench.')
    os.chdir(folder)
    until, named = time.time() + seconds, sys.argv[5:]
    wanted = list(named)
    while wanted or (not named and seconds and left() and time.time() + parts[left()[0]][1] <= until):
        name = wanted.pop(0) if wanted else left()[0]
        said.clear()
        began = time.time()
        parts[name][0]()
        with open(results, 'a') as f:
            f.write(json.dumps({'part': name, 'took': time.time() - began, 'said': said}) + '\n')
    os.chdir('/')
    shutil.rmtree(folder)
    if seconds and left():
        print('left: %s' % ' '.join(left()))
        return
    for name in parts:
        for what, got, want in known().get(name, []):
            print(line % (what, got, '  (want %s)' % want if want else ''))
