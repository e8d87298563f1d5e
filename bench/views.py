#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the views of a run cost: the page, the table in a terminal, the report, and TensorBoard's own writer.

    bench/views.py YOKE [lines, 1000000]

Makes a run of so many lines in a folder of its own, and prints, each beside what is wanted: how long a report of it
takes, and its size; how long the page's server takes to answer with the page and its first plot; what four readers of
its stream cost while a line a second comes, how long such a line is under way, and the server's resident set; what
`yoke top` costs.  Where tensorboard is installed also the scalars a second of its writer, to be held against
bench/watching scalars.
"""
import http.client
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from urllib.parse import parse_qs, urlsplit

yoke = os.path.abspath(sys.argv[1])
lines = int(sys.argv[2]) if len(sys.argv) > 2 else 1000000
os.chdir(tempfile.mkdtemp(prefix='yoke-views.'))


def line(step, now):
    return '{"step":%d,"loss":%.6f,"lr":0.001,"grad_norm":1.5,"tokens_per_s":%d,"time":%.3f,"stage":"train"}\n' % (
        step, 5 / (1 + step * 1e-4), 100000 + step % 977, now)


def say(what, got, want):
    print('%-58s %-22s want %s' % (what, got, want), flush=True)


def processors(pid):
    with open('/proc/%d/stat' % pid) as f:
        fields = f.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def resident(pid, word='VmHWM'):
    with open('/proc/%d/status' % pid) as f:
        return [int(x.split()[1]) for x in f if x.startswith(word)][0] / 1024


os.mkdir('run')
began = time.time()
with open('run/run.json', 'w') as f:
    json.dump({'format': 1, 'device': 'cpu:0', 'started': began - lines, 'config': {}, 'settings': {}}, f)
with open('run/metrics.jsonl', 'w') as f:
    for i in range(1, lines + 1):
        f.write(line(i, began - lines + i))

# ---- a report ----

before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
subprocess.run([yoke, 'report', 'run', '--html=r.html'], check=True)
took, after = time.time() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
say('report of %d lines' % lines, '%.2f s (%.2f busy)' % (took, busy), '3 s')
say('  its size', '%.2f MiB' % (os.path.getsize('r.html') / 2**20), '2 MiB')

# ---- the page ----

began = time.time()
server = subprocess.Popen([yoke, 'dashboard', 'run'], stdout=subprocess.PIPE, text=True)
url = urlsplit(server.stdout.readline().split(': ', 1)[1].strip())
bearer = {'Authorization': 'Bearer ' + parse_qs(url.query)['token'][0]}


def ask(path):
    c = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
    c.request('GET', path, headers=bearer)
    return c.getresponse()


for path in ('/', '/run.json', '/plot/loss.svg'):
    ask(path).read()
say('page and first plot of it', '%.2f s (%.2f busy)' % (time.time() - began, processors(server.pid)), '2 s')

late, written, lock = [], {}, threading.Lock()


def listen():
    stream = ask('/events')
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
seconds, busy, began = 20, processors(server.pid), time.time()
with open('run/metrics.jsonl', 'a') as f:
    for i in range(1, seconds + 1):
        with lock:
            written[lines + i] = time.time()
        f.write(line(lines + i, time.time()))
        f.flush()
        for plot in ('loss', 'lr', 'grad_norm', 'tokens_per_s') if i % 5 == 0 else ():
            for reader in range(4):
                ask('/plot/%s.svg' % plot).read()
        time.sleep(max(0, began + i - time.time()))
share = (processors(server.pid) - busy) / (time.time() - began)
say('a line is told to four readers after', '%.2f s at most' % max(late), '1 s')
say('the server takes, with four readers', '%.2f %% of a core' % (100 * share), '2 %')
say('  its resident set', '%.0f MiB' % resident(server.pid), '64 MiB')
server.terminate()
server.wait()

# ---- yoke top ----

def drain():
    try:
        while os.read(out, 65536):
            pass
    except OSError:  # it ended
        pass


pid, out = os.forkpty()
if pid == 0:
    os.environ.update(TERM='xterm', LINES='24', COLUMNS='80')
    os.execv(yoke, [yoke, 'top', 'run'])
threading.Thread(target=drain, daemon=True).start()
time.sleep(5)
busy = processors(pid)
time.sleep(10)
say('yoke top', '%.2f %% of a core' % (10 * (processors(pid) - busy)), '1 %')
os.write(out, b'q')
os.waitpid(pid, 0)

# ---- TensorBoard's writer ----

try:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
except ImportError:
    print("without TensorBoard's writer: it is not installed")
else:
    writer, n, began, busy = EventFileWriter('tb'), 20000, time.time(), time.process_time()
    for i in range(n):
        for tag in ('loss', 'lr'):
            writer.add_event(Event(wall_time=time.time(), step=i, summary=Summary(
                value=[Summary.Value(tag=tag, simple_value=1 / (1 + i))])))
    writer.close()
    took, busy = time.time() - began, time.process_time() - busy
    print("TensorBoard's writer: %.0f scalars/s, %.0f a second of processors" % (2 * n / took, 2 * n / busy))
shutil.rmtree(os.getcwd())
