#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ranks are worth here, each figure beside what is wanted.  In slices, so that a machine need not be quiet for long.

    bench/ranks.py BUILD TEXT RESULTS [seconds, 60] [PART ..]

The parts, in this order: all_reduce among threads, processes and by MPI's messages (yoke bench ranks, bench/mpi), and of two OpenCL
devices; training GPT on two ranks, beside one rank and beside PyTorch (TORCH, a python that has it); on OpenCL sub-devices;
what of a slow link's time is hidden, and what compress=topk saves on a slower one; ZeRO's memory, bytes and time; the bubble of a
pipeline; what yoke plan scaling says; how long ranks take to start, and a save.  Those that are not in RESULTS yet are done and
appended there, as long as they fit into so many seconds, or those that are named; call it again until nothing is left.
Then, or with 0 seconds, it prints what is there.  BUILD has yoke, its modules, bench/largest and bench/mpi.  For two processors.
"""
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

from slices import build, measure, say, text

yoke, here = build + '/yoke', os.path.dirname(os.path.abspath(__file__))
torch = os.environ.get('TORCH')
os.environ.setdefault('YOKE_PLUGIN_PATH', build + '/backends/opencl/.libs:' + build + '/plugins/mpi/.libs')
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1')  # in a container
two = {'YOKE_CPU_DEVICES': '2'}


def run(words, **env):
    r = subprocess.run(list(map(str, words)), env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True)
    if r.returncode:
        sys.exit('%s\n%s ended with status %d' % (r.stdout, ' '.join(map(str, words)), r.returncode))
    return r.stdout


# ---- training ----

def train(out, *words, **env):
    """Its lines of metrics."""
    shutil.rmtree(out, ignore_errors=True)
    usual = {'backend': 'cpu', 'valid': 0, 'checkpoints': 0, 'log_every': 1, 'progress': 0, 'report': 0, 'telemetry': 0}
    usual.update(w.split('=', 1) for w in words)
    run([yoke, 'train', 'data=' + text, 'out=' + out] + ['%s=%s' % x for x in usual.items()], **env)
    with open(out + '/metrics.jsonl') as f:
        return [l for l in map(json.loads, f) if l['stage'] == 'train']


def step_of(lines, first=2):
    """Seconds of a step: those behind the first ones."""
    rate = [l['tokens_per_s'] for l in lines if l['step'] > first]
    each = (lines[-1]['tokens'] - lines[0]['tokens']) / (lines[-1]['step'] - lines[0]['step'])
    return [each / r for r in rate]


def by_turns(ways, rounds, first=2):
    """Median seconds of a step of each way, a name and what trains, and half of what lies between the quartiles."""
    took = {name: [] for name, _ in ways}
    for _ in range(rounds):
        for name, way in ways:
            took[name] += step_of(way(), first)
            print('%s: %.1f ms' % (name, 1e3 * statistics.median(took[name])), file=sys.stderr)
    return {name: statistics.median(t) for name, t in took.items()}, {name: spread(t) for name, t in took.items()}


def spread(x):
    q = statistics.quantiles(x, n=4)
    return (q[2] - q[0]) / 2


def shown(took, off, name):
    return '%s %.1f ms (+- %.1f)' % (name, 1e3 * took[name], 1e3 * off[name])


gpt = ['layers=6', 'heads=6', 'embed=384', 'context=256', 'batch=8', 'micro_batches=2']
small = ['layers=2', 'heads=4', 'embed=128', 'context=64', 'batch=4']


def ranks_of(model, *words, **env):
    return lambda: train('run', *model, 'ranks=2', *words, **two, **env)


def gpt_parts():
    ways = [('threads', ranks_of(gpt, 'steps=4')), ('two cores', lambda: train('run', *gpt, 'accumulate=2', 'threads=2', 'steps=4')),
            ('processes', ranks_of(gpt, 'steps=4', 'spawn=process')),
            ('one core', lambda: train('run', *gpt, 'accumulate=2', 'threads=1', 'steps=4'))]
    took, off = by_turns(ways, 1, 1)
    say('GPT, one rank', '%s; %s' % (shown(took, off, 'two cores'), shown(took, off, 'one core')))
    theirs = ddp()
    for name in 'threads', 'processes':
        say('  two ranks of one core, ' + name, '%s: %.2f x one rank of two cores, %.2f x one of one core%s' % (
            shown(took, off, name), took['two cores'] / took[name], took['one core'] / took[name],
            '; %.2f x PyTorch DDP over gloo, %.1f ms' % (theirs / took[name], 1e3 * theirs) if theirs else ''),
            '0.95, 1.85, 1.5')


def ddp():
    """Seconds of a step of PyTorch's; None: there is none."""
    if not torch:
        return None
    run([yoke, 'train', 'data=' + text, 'out=start', 'steps=0', 'progress=0'] + gpt[:5])
    said_ = run([torch, here + '/peers/gpt_torch.py', 'start', text, 'batch=8', 'micro_batches=2', 'ranks=2', 'threads=1', 'steps=5',
                 'validate=0', 'warm=2'])
    return 2 * 8 * 256 / json.loads(said_.splitlines()[-1])['tokens_per_s']


def subdevices():
    model = ['layers=2', 'heads=4', 'embed=128', 'context=64', 'batch=8', 'micro_batches=2', 'backend=opencl', 'steps=8']
    took, off = by_turns([('one', lambda: train('run', *model, 'accumulate=2', YOKE_OPENCL_SPLIT='2')),
                          ('two', lambda: train('run', *model, 'ranks=2', YOKE_OPENCL_SPLIT='2'))], 1)
    say('two OpenCL sub-devices beside one', '%.2f times as fast: %s, %s' % (
        took['one'] / took['two'], shown(took, off, 'one'), shown(took, off, 'two')), '1.8')


# ---- links ----

def planned(pattern, words):
    """The number in what yoke plan says."""
    return int(re.search(pattern, run([yoke, 'plan', 'data=' + text, 'backend=cpu'] + words), re.M).group(1))


def parameters(words):
    return 4 * planned(r'(\d+) parameters', words)


def hidden():
    bytes_, words = parameters(gpt[:5]), ['steps=4']
    with_bucket = {'YOKE_DIST_BUCKET': '2M'}
    free, _ = by_turns([('free', ranks_of(gpt, *words, 'spawn=process', **with_bucket, YOKE_DIST_LINK='0,0'))], 1, 1)
    link = free['free'] / 3  # backward takes two thirds of forward plus backward
    took, off = by_turns([('free', ranks_of(gpt, *words, 'spawn=process', **with_bucket, YOKE_DIST_LINK='0,0')), ('link', ranks_of(
        gpt, *words, 'spawn=process', **with_bucket, YOKE_DIST_LINK='0,%.4g' % (link / bytes_)))], 1, 1)
    say('bucket=2M, a link that takes half of the backward pass', '%.2f of %.0f ms hidden: %s, %s' % (
        1 - (took['link'] - took['free']) / link, 1e3 * link, shown(took, off, 'free'), shown(took, off, 'link')), '0.80')


def topk():
    bytes_, words = parameters(small), ['compress=topk', 'compress_ratio=0.01', 'compress_after=0']
    free, _ = by_turns([('free', ranks_of(small, 'steps=20', 'spawn=process', YOKE_DIST_LINK='0,0'))], 1)
    link = {'YOKE_DIST_LINK': '0,%.4g' % (20 * free['free'] / bytes_)}
    took, off = by_turns([('dense', ranks_of(small, 'steps=8', 'spawn=process', **link)), ('topk', ranks_of(small, 'steps=30', 'spawn=process', *words, **link))], 1)
    say('compress=topk at 0.01, a link that takes 20 steps', '%.1f times as fast: %s, %s; without it %.1f ms' % (
        took['dense'] / took['topk'], shown(took, off, 'dense'), shown(took, off, 'topk'), 1e3 * free['free']), '5')
    for line in run([build + '/bench/largest']).splitlines()[2:]:
        name, time_, _, ratio = re.match(r'  (.*?)  +([\d.]+) ms +([\d.]+) GB/s read +([\d.]+) of', line).groups()
        say('  selection of 250,000 in 25 M, ' + name, '%s times as long as their sum: %s ms' % (ratio, time_), '8 at most')


# ---- what ranks share out ----

def zero_memory():
    model, bucket, piece = ['layers=6', 'heads=6', 'embed=384', 'context=64', 'batch=1', 'steps=4'], 4 * 384 * 1536, 4 << 14
    # a bucket ends after 2 MiB: each of these holds one matrix of the MLP, or the parameters before
    # them in a block
    whole = parameters(model[:5])
    work = planned(r'^workspace +(\d+)', model[:5])  # bytes of the largest gradient, after which stage 0 has its peak
    for d in 2, 4:
        for stage in range(4):
            lines = train('run', *model, 'ranks=%d' % d, 'zero=%d' % stage, YOKE_CPU_DEVICES=str(d), YOKE_DIST_BUCKET='2M')
            peak = lines[-1]['peak_bytes']
            w, g, o = (whole / (d if stage >= k else 1) for k in (3, 2, 1))
            other = other if stage else peak - 4 * whole  # activations and workspace
            # two buckets of gradients are pending in stage 2 while the next is computed; two of
            # weights are gathered in stage 3
            formula = other + w + g + 2 * o + (2 * bucket + work if stage >= 2 else 0) + (2 * bucket if stage == 3 else 0)
            pieces = whole / bucket * piece * (0, 2, 3, 4)[stage]
            sent = (lines[-1]['sent_bytes'] - lines[0]['sent_bytes']) / (len(lines) - 1)
            times = [2, 2, 2, 3][stage] * whole * (d - 1) / d
            say('zero=%d, %d ranks' % (stage, d), 'peak %.1f MiB, %+.1f %% of the formula, %+.1f %% with a piece a bucket; the first rank '
                'sent %.0f a step, %+.3f %% of it' % (peak / 2**20, 100 * (peak / formula - 1), 100 * (peak / (formula + pieces) - 1), sent,
                                                  100 * (sent / times - 1)), '3 %, 0 %' if stage else '')


def zero_time():
    took, off = by_turns([(str(z), ranks_of(gpt, 'steps=4', 'zero=%d' % z)) for z in range(4)], 1, 1)
    for z in '123':
        say('zero=%s beside zero=0, time' % z, '%.2f: %s, %s' % (took[z] / took['0'], shown(took, off, z), shown(took, off, '0')),
            '%.2f at most' % (1.35 if z == '3' else 1.10))


def bubble():
    model = ['layers=6', 'heads=6', 'embed=384', 'context=128', 'batch=2', 'stages=2', 'split=3,3', 'micro_batches=8', 'accumulate=8',
             'ranks=2', 'profile=1', 'steps=6', 'report=1']
    for how in 'gpipe', '1f1b':
        train('run', *model, 'pipeline=' + how, **two)
        with open('run/trace.json') as f:
            events = [e for e in json.load(f)['traceEvents'] if e.get('ph') == 'X' and e.get('cat') == 'cpu:0' and
                      e['args'].get('nodes', '').startswith('step')]
        share, now = [], []
        for e in sorted(events, key=lambda e: e['ts']):
            if not e['args']['nodes'].startswith('step/optimizer'):
                now.append(e)
            elif len(now) > 20:
                share.append(1 - sum(x['dur'] for x in now) / (now[-1]['ts'] + now[-1]['dur'] - now[0]['ts']))
                now = []
        say('pipeline=%s, 2 stages, 8 parts' % how, 'the first stage is idle %.1f %% (+- %.1f), formula %.1f' % (
            100 * statistics.median(share[1:]), 100 * spread(share[1:]), 100 / 9), '10 % more at most')
    for s in 4, 8:
        words = run([yoke, 'plan', 'scaling', 'stages=%d' % s, 'micro_batches=%d' % (4 * s), 'forward=0.01', 'backward=0.02', 'bytes=1000',
                     'alpha1=1e-6', 'beta1=1e-10']).splitlines()
        say('  %d stages, %d parts' % (s, 4 * s), '; '.join(w.strip() for w in words[-2:]))


def simulate():
    began = time.time()
    rows = run([yoke, 'plan', 'scaling', 'ranks=8..4096', 'group=8', 'alpha1=1e-6', 'beta1=1e-10', 'alpha2=5e-6', 'beta2=1e-10',
                'gamma=5e-11']).splitlines()
    ratio = [float(f[7]) for f in map(str.split, rows) if f[0] == 'simulated' and f[5] != '-']
    say('yoke plan scaling, 8 to 4096 ranks, %d closed forms' % len(ratio), '%.2f %% off at most, %.1f s' % (
        100 * max(abs(r - 1) for r in ratio), time.time() - began), '1 %, 10 s')


def predicted():
    model = ['layers=6', 'heads=6', 'embed=384', 'context=128', 'batch=8']
    keep = {'YOKE_CACHE': os.getcwd() + '/cache'}
    run([yoke, 'tune', 'ranks', 'max=16777216'], **keep)
    train('profiled', *model, 'profile=1', 'report=1', 'threads=1', 'steps=10', 'checkpoints=1')
    line = run([yoke, 'plan', 'scaling', 'profiled', 'ranks=2', 'group=2'], **keep).splitlines()[-1]
    want = float(line.split()[2])
    took, off = by_turns([('processes', ranks_of(model, 'steps=10', 'spawn=process')), ('threads', ranks_of(model, 'steps=10'))], 1)
    for name in took:
        say('a step of 2 ranks as yoke plan scaling predicts it, ' + name, '%.2f: %.1f ms, %s' % (
            1e-3 * want / took[name], want, shown(took, off, name)), '0.80 to 1.20')


# ---- beginning and end ----

def wall(words, **env):
    began = time.time()
    run(words, **env)
    return time.time() - began


def start():
    words = [yoke, 'train', 'data=' + text, 'out=run', 'backend=cpu', 'valid=0', 'steps=1', 'checkpoints=0', 'progress=0',
             'telemetry=0', 'limit=20000'] + small
    ways = {'one rank': ([], {}), 'threads': (['ranks=2'], two), 'processes': (['ranks=2', 'spawn=process'], two)}
    took = {name: [] for name in ways}
    for _ in range(9):
        for name, (more, env) in ways.items():
            took[name].append(wall(words + more, **env))
    one = statistics.median(took['one rank'])
    for name, want in ('threads', 0.1), ('processes', 0.4):
        say('start of two ranks, ' + name, '%.3f s more than one, which takes %.3f s with a step (+- %.3f)' % (
            statistics.median(took[name]) - one, one, spread(took[name])), '%.1f s at most' % want)


def save():
    model = ['layers=6', 'heads=8', 'embed=512', 'context=16', 'batch=1', 'micro_batches=2', 'steps=6', 'save_every=1', 'checkpoints=1']

    def saves(*words, **env):
        train('run', *model, *words, **env)
        with open('run/events.jsonl') as f:
            return [float(l['text'].split()[0]) for l in map(json.loads, f) if l['event'] == 'saved']
    one, shared = [], {z: [] for z in (1, 3)}
    for _ in range(2):
        one += saves('accumulate=2', 'threads=2')
        for z in shared:
            shared[z] += saves('ranks=2', 'zero=%d' % z, **two)
    for z in shared:
        say('a save of zero=%d on two ranks' % z, '%.2f of one rank\'s speed: %.0f ms (+- %.0f), %.0f ms (+- %.0f)' % (
            statistics.median(one) / statistics.median(shared[z]), 1e3 * statistics.median(shared[z]), 1e3 * spread(shared[z]),
            1e3 * statistics.median(one), 1e3 * spread(one)), '0.80')


# ---- collectives ----

def table(lines):
    """{bytes: {name: microseconds}} of yoke bench ranks."""
    to = {}
    for line in lines.splitlines():
        m = re.match(r' *(\d+)  (.{9}) +([\d.]+) us ', line)
        if m:
            to.setdefault(int(m.group(1)), {})[m.group(2).strip()] = float(m.group(3))
    return to


def of_mpi(size):
    """{library: microseconds} of all_reduce, of the MPI libraries that have an mpirun and a module."""
    to = {}
    for name in 'openmpi', 'mpich':
        mpirun = shutil.which('mpirun.' + name)
        if mpirun and os.path.exists('%s/plugins/mpi/.libs/yoke_mpi_%s.so' % (build, name)):
            to.update(table(run([mpirun, '-n', '2', build + '/bench/mpi', size], YOKE_DIST_MPI=name))[size])
    return to


def named(bytes_):
    return '%d %s' % ((bytes_ >> 20, 'MiB') if bytes_ >> 20 else (bytes_ >> 10, 'KiB') if bytes_ >> 10 else (bytes_, 'B'))


# A machine's speed varies over time, so each size of yoke's is measured next to MPI's, several
# times; medians.
def sums(size, rounds, wants, mpi_wants):
    ours, mpi = {'threads': [], 'processes': []}, []
    bytes_ = 'bytes=%d' % size
    for _ in range(rounds):
        for name in ours:
            ours[name].append(table(run([yoke, 'bench', 'ranks', bytes_] + ['spawn=process'] * (name == 'processes')))[size])
        mpi.append(of_mpi(size))
    for name, got in ours.items():
        tell(name, size, got, mpi, wants if name == 'threads' else mpi_wants)


def tell(name, size, got, mpi, want):
    med = statistics.median
    allowed = 'tree', 'doubling', 'halving', 'pairwise', '2d', 'auto'  # algorithms that add in the fixed order
    text_ = ['auto %.2f us' % med(r['auto'] for r in got), 'in a plan %+.1f us' % med(r['in a plan'] - r['auto'] for r in got),
             '%.2f of the best, %.2f at least' % tuple(f(min(r[n] for n in allowed if n in r) / r['auto'] for r in got) for f in (med, min))]
    if 'by hand' in got[0]:
        text_.append('%.2f x by hand' % med(r['by hand'] / r['auto'] for r in got))
    for peer in 'openmpi', 'mpich':
        if peer in mpi[0]:
            text_.append('%.2f x %s, %.2f us' % (med(m[peer] / r['auto'] for r, m in zip(got, mpi)), peer, med(m[peer] for m in mpi)))
    say('all_reduce of %s, %s' % (named(size), name), '; '.join(text_), want)


def few():
    for size in 1 << 15, 1 << 12, 1 << 10, 8:
        sums(size, 2, '1.4 x Open MPI' if size == 1 << 10 else '', '1.0 x Open MPI')


def many():
    for size in 1 << 26, 1 << 20, 1 << 18:
        sums(size, 3 if size < 1 << 26 else 2, '5 x Open MPI, 0.8 x by hand' if size >= 1 << 20 else '', '%.1f x Open MPI' % (1.5 if size >= 1 << 20 else 1))


def messages():
    mpirun = shutil.which('mpirun.openmpi') or 'mpirun'
    for size in 1 << 16, 1 << 20, 1 << 26:
        mpi, got = [], []
        for _ in range(3):
            mpi.append(of_mpi(size))
            got.append(table(run([mpirun, '-n', '2', yoke, 'bench', 'ranks', 'bytes=%d' % size], YOKE_DIST_PRETEND='1'))[size])
        tell("MPI's messages", size, got, mpi, '1.0 x Open MPI')


def devices():
    got = table(run([yoke, 'bench', 'ranks', 'bytes=67108864'], YOKE_BACKEND='opencl', POCL_DEVICES='pthread pthread'))[1 << 26]
    alone = got['down'] + got['auto'] + got['up']
    say('all_reduce of 64 MiB, two OpenCL devices', '%.2f of down, all_reduce and up, each alone: %.1f ms of %.1f + %.1f + %.1f' % (
        got['in a plan'] / alone, 1e-3 * got['in a plan'], 1e-3 * got['down'], 1e-3 * got['auto'], 1e-3 * got['up']), '1 at most')


# name: the measurement and its seconds
parts = {'few': (few, 50), 'many': (many, 50), 'messages': (messages, 50), 'devices': (devices, 20),
         'gpt': (gpt_parts, 70), 'subdevices': (subdevices, 60), 'hidden': (hidden, 60),
         'topk': (topk, 40), 'zero': (zero_memory, 30), 'zero-time': (zero_time, 60), 'bubble': (bubble, 40), 'simulate': (simulate, 10),
         'predicted': (predicted, 40), 'start': (start, 15), 'save': (save, 40)}


measure(parts)
