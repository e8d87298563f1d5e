#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What watching a run costs, each figure beside what is wanted.  In slices, so that a machine need not be quiet for long.

    bench/watch.py BUILD TEXT RESULTS [seconds, 60] [PART ..]

The parts, in this order: steps on the CPU and on OpenCL with telemetry, a history of memory and a profile
(bench/watching); steps of a run while its page is open and not, in turns; a trace; scalars, beside TensorBoard's own
writer where that is installed; a report of a run of a million lines; the page of it, with four readers; `yoke dashboard terminal`.  Those
that are not in RESULTS yet are done and appended there, as long as they fit into so many seconds, or those that are named;
call it again until nothing is left.  Then, or with 0 seconds, it prints what is there.  BUILD has yoke and bench/watching.
"""
import http.client
import json
import os
import resource
import statistics
import subprocess
import threading
import time
from urllib.parse import parse_qs, urlsplit

from slices import build, measure, say, text

yoke, watching, lines = build + '/yoke', build + '/bench/watching', 1000000
gpt = ['data=' + text, 'threads=1', 'layers=2', 'heads=4', 'embed=128', 'context=64', 'batch=8']


def processors(pid):
    with open('/proc/%d/stat' % pid) as f:
        fields = f.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def resident(pid):
    with open('/proc/%d/status' % pid) as f:
        return [int(x.split()[1]) for x in f if x.startswith('VmHWM')][0] / 1024


def by_watching(*words):
    return subprocess.run([watching, *words], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


# ---- steps ----

def steps(backend):
    modules = os.environ.get('YOKE_PLUGIN_PATH', build + '/backends/opencl/.libs')
    os.environ['YOKE_PLUGIN_PATH'] = modules
    got = by_watching('steps', '25', 'backend=' + backend, *gpt)
    say('steps on ' + backend, got[0], '')
    for l in got[2:]:
        name, wall, busy, want = l.rsplit(None, 3)
        say('  with ' + name.strip(), 'wall %s, processors %s' % (wall, busy), '0.90' if backend != 'cpu' and name[0] == 'p' else want)


def living():
    run = subprocess.Popen([yoke, 'train', 'out=live', 'backend=cpu', 'steps=100000000', 'report=0', 'progress=0', 'checkpoints=0',
                            'valid=0', 'log_every=5'] + gpt, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(4)
    return run


# The page of a living run is opened for a while, and closed for a while, by turns; a reader does what its script does.
def open_page():
    run = living()
    spans, each, turns = [], 2.0, 12
    for turn in range(turns):
        for opened in (turn % 2, 1 - turn % 2):
            server = Page('live') if opened else None
            stop = threading.Event()
            if opened:
                threading.Thread(target=reader, args=(server, stop), daemon=True).start()
            time.sleep(0.2)
            spans.append((opened, time.time(), time.time() + each))
            time.sleep(each)
            stop.set()
            if opened:
                server.end()
    run.terminate()
    run.wait()
    with open('live/metrics.jsonl') as f:
        at = [(l['time'], l['step']) for l in map(json.loads, f) if l['stage'] == 'train']
    rate = []
    for opened, begin, end in spans:
        inside = [x for x in at if begin <= x[0] <= end]
        rate.append((opened, (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])))
    ratio = sorted((a[1] / b[1]) if a[0] else (b[1] / a[1]) for a, b in zip(rate[::2], rate[1::2]))
    say('steps while the page is open, telemetry every second', '%.3f (%.3f to %.3f)' % (
        statistics.median(ratio), ratio[len(ratio) // 4], ratio[3 * len(ratio) // 4]), '0.99')


def reader(page, stop):
    stream = page.ask('/events')
    for path in ('/', '/run.json', '/kernels.json'):
        page.ask(path).read()
    while not stop.is_set():
        for plot in ('loss', 'lr', 'grad_norm', 'tokens_per_s', 'memory'):
            page.ask('/plot/%s.svg' % plot).read()
        until = time.time() + 0.3
        while time.time() < until:
            stream.readline()


# ---- files ----

def trace():
    say('trace', by_watching('trace')[0].split(': ', 1)[1].split('; want')[0], '3 s, 64 MiB')


def scalars():
    ours = by_watching('scalars')[0]
    say('scalars to both logs', ours.split(' to both')[0] + ',' + ours.split(',')[1], '')
    try:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError:
        say("  beside TensorBoard's writer", 'it is not installed', '')
        return
    writer, n, began, busy = EventFileWriter('tb'), 20000, time.time(), time.process_time()
    for i in range(n):
        for tag in ('loss', 'lr'):
            writer.add_event(Event(wall_time=time.time(), step=i, summary=Summary(
                value=[Summary.Value(tag=tag, simple_value=1 / (1 + i))])))
    writer.close()
    took, busy = time.time() - began, time.process_time() - busy
    say("  beside TensorBoard's writer", '%.1f times as fast (%.0f a second there), by processors %.1f' % (
        float(ours.split()[0]) * took / (2 * n), 2 * n / took, float(ours.split(', ')[1].split()[0]) * busy / (2 * n)), '10')


# ---- views of a million lines ----

def line(step, now):
    return '{"step":%d,"loss":%.6f,"lr":0.001,"grad_norm":1.5,"tokens_per_s":%d,"time":%.3f,"stage":"train"}\n' % (
        step, 5 / (1 + step * 1e-4), 100000 + step % 977, now)


def million():
    if os.path.exists('run'):
        return
    os.mkdir('run')
    began = time.time()
    with open('run/run.json', 'w') as f:
        json.dump({'format': 1, 'device': 'cpu:0', 'started': began - lines, 'config': {}, 'settings': {}}, f)
    with open('run/metrics.jsonl', 'w') as f:
        for i in range(1, lines + 1):
            f.write(line(i, began - lines + i))


def report():
    million()
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
    subprocess.run([yoke, 'report', 'run', '--html', 'r.html'], check=True)
    took, after = time.time() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    say('report of %d lines' % lines, '%.2f s (%.2f busy)' % (took, busy), '3 s')
    say('  its size', '%.2f MiB' % (os.path.getsize('r.html') / 2**20), '2 MiB')


class Page:
    def __init__(self, run):
        self.server = subprocess.Popen([yoke, 'dashboard', run], stdout=subprocess.PIPE, text=True)
        self.url = urlsplit(self.server.stdout.readline().split(': ', 1)[1].strip())
        self.bearer = {'Authorization': 'Bearer ' + parse_qs(self.url.query)['token'][0]}

    def ask(self, path):
        c = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=60)
        c.request('GET', path, headers=self.bearer)
        return c.getresponse()

    def end(self):
        self.server.terminate()
        self.server.wait()


def page():
    million()
    began = time.time()
    p = Page('run')
    for path in ('/', '/run.json', '/plot/loss.svg'):
        p.ask(path).read()
    say('page and first plot of it', '%.2f s (%.2f busy)' % (time.time() - began, processors(p.server.pid)), '2 s')
    late, written, lock = [], {}, threading.Lock()

    def listen():
        stream = p.ask('/events')
        while True:
            text = stream.readline().decode()
            if not text:
                return
            if text.startswith('data: {"run"'):
                step, now = json.loads(text[6:])['step'], time.time()
                with lock:
                    if step in written:
                        late.append(now - written[step])

    for i in range(4):
        threading.Thread(target=listen, daemon=True).start()
    time.sleep(1)
    turns, busy, began = 20, processors(p.server.pid), time.time()
    with open('run/metrics.jsonl', 'a') as f:
        for i in range(1, turns + 1):
            with lock:
                written[lines + i] = time.time()
            f.write(line(lines + i, time.time()))
            f.flush()
            for plot in ('loss', 'lr', 'grad_norm', 'tokens_per_s') if i % 5 == 0 else ():
                for reader in range(4):
                    p.ask('/plot/%s.svg' % plot).read()
            time.sleep(max(0, began + i - time.time()))
    share = (processors(p.server.pid) - busy) / (time.time() - began)
    say('a line is told to four readers after', '%.2f s at most' % max(late), '1 s')
    say('the server takes, with four readers', '%.2f %% of a core' % (100 * share), '2 %')
    say('  its resident set', '%.0f MiB' % resident(p.server.pid), '64 MiB')
    p.end()


def top():
    run = living()

    def drain():
        try:
            while os.read(out, 65536):
                pass
        except OSError:  # it ended
            pass

    pid, out = os.forkpty()
    if pid == 0:
        os.environ.update(TERM='xterm', LINES='24', COLUMNS='80')
        os.execv(yoke, [yoke, 'dashboard', 'terminal', 'live'])
    threading.Thread(target=drain, daemon=True).start()
    time.sleep(5)
    busy = processors(pid)
    time.sleep(10)
    say('yoke dashboard terminal, of a run that lives', '%.2f %% of a core' % (10 * (processors(pid) - busy)), '1 %')
    os.write(out, b'q')
    os.waitpid(pid, 0)
    run.terminate()
    run.wait()


# name: what is done, and how many seconds it takes
parts = {'cpu': (lambda: steps('cpu'), 50), 'opencl': (lambda: steps('opencl'), 55), 'open': (open_page, 60), 'trace': (trace, 15),
         'scalars': (scalars, 15), 'report': (report, 15), 'page': (page, 40), 'top': (top, 25)}


measure(parts, '%-58s %-50s%s')
