# SPDX-License-Identifier: Apache-2.0
# Writes runs, serves them with yoke dashboard, and compares its answers and its page with them: dashboard_page.py YOKE
import fcntl, http.client, json, math, os, shutil, subprocess, sys, time, urllib.parse
import browser, layout

yoke = sys.argv[1]
START = 1700000000.125
LONG = any(os.environ.get(k, '0') != '0' for k in ('YOKE_TEST_LONG',))
CLIENTS = LONG or os.environ.get('YOKE_TEST_CLIENTS', '0') != '0'

def verdict(title, wrong):
    print('ok ' + title if not wrong else 'not ok %s\n%s' % (title, wrong), flush=True)

def loss_of(seed, step):
    return 2 + 3 / (1 + 0.01 * step) + 0.3 * math.sin(12.9898 * step + seed)

# A run of `rows` steps with a validation each tenth of them; devices: number of GPUs.
def write(folder, seed, rows, devices=0, ended=True, steps=None, events=2):
    os.makedirs(folder)
    with open(folder + '/run.json', 'w') as f:
        about = {'format': 1, 'started': START + 100 * seed, 'host': 'machine', 'device': 'cuda:0' if devices else 'cpu:0', 'driver': 'some driver 1.2.3',
                 'steps': steps or rows, 'settings': {}, 'config': {'lr': str(seed), 'data': 'a/long/path/to/some/data/set/of/words.txt'}}
        if ended:
            about['ended'] = {'time': START + 100 * seed + rows, 'how': 'done', 'error': ''}
        json.dump(about, f)
    with open(folder + '/metrics.jsonl', 'w') as f:
        for i in range(1, rows + 1):
            f.write('{"step":%d,"loss":%.6f,"lr":%.6f,"grad_norm":%.4f,"tokens_per_s":%.1f,"peak_bytes":7549747,"scale":0,"data_wait_s":%.6f,'
                    '"data_read_s":%.6f,"data_pad_s":%.6f,"data_send_s":0,"stage":"train","time":%.3f}\n' % (
                        i, loss_of(seed, i), 1e-3 * (i % 7), 1 + (i % 5), 12345 + i % 100, 43e-5 * i, 1e-4 * i, 1e-5 * i, START + 100 * seed + i))
            if i % max(1, rows // 10) == 0:
                f.write('{"step":%d,"val_loss":%.6f,"perplexity":9.5,"stage":"valid","time":%.3f}\n' % (
                    i, loss_of(seed, i) + 0.1, START + 100 * seed + i))
    with open(folder + '/telemetry.jsonl', 'w') as f:
        for i in range(0, rows, max(1, rows // 50)):
            f.write(json.dumps({'time': START + 100 * seed + i, 'step': i, 'rss': 20 << 20, 'cpu': 0.9, 'process_cpu': 1.0,
                                'devices': [{'id': 'cuda:%d' % d, 'util': 0.5 + 0.1 * d, 'mem_used': (d + 1) << 30, 'mem_total': 16 << 30,
                                             'temp_c': 50 + d} for d in range(devices)],
                                'host': {'processors_allowed': 4, 'memory_total': 8 << 30}}) + '\n')
    with open(folder + '/events.jsonl', 'w') as f:
        for i in range(events):
            f.write('{"step":%d,"event":"%s","text":"%s","time":%.3f}\n' % (
                i, 'saved' if i else 'started', 'checkpoint of everything after 0.034 s into the folder' if i else 'cpu:0', START + 100 * seed + i))

class Server:
    def __init__(self, *folders):
        self.process = subprocess.Popen([yoke, 'dashboard', *folders, '--until-eof'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().split(': ', 1)[1].strip()
        parts = urllib.parse.urlsplit(self.url)
        self.at = parts.hostname, parts.port
        self.token = urllib.parse.parse_qs(parts.query)['token'][0]
    def get(self, path):
        c = http.client.HTTPConnection(*self.at, timeout=600)
        c.request('GET', path, headers={'Authorization': 'Bearer ' + self.token})
        r = c.getresponse()
        return r.read()
    def json(self, path):
        return json.loads(self.get(path))
    # reads events until the test is true
    def events(self, test):
        c = http.client.HTTPConnection(*self.at, timeout=600)
        c.request('GET', '/events', headers={'Authorization': 'Bearer ' + self.token})
        r = c.getresponse()
        yield
        while not test(r.readline().decode()):
            pass
        yield
    def close(self):
        self.process.stdin.close()
        self.process.wait(600)

# ---- runs below a folder ----

for i in range(14):
    write('all/sweep/run-%02d' % i, i, 40)
os.makedirs('all/.hidden')
write('all/.hidden/no', 30, 5)
write('all/base/fine-tuned', 20, 40, ended=False)
s = Server('all')
o = s.json('/run.json')
names = [r['name'] for r in o['runs']]
verdict('all runs below a folder, by their paths', '' if names == ['base/fine-tuned'] + ['sweep/run-%02d' % i for i in range(14)] else names)
newest = {r['run'] for r in o['runs'] if r['name'] == 'base/fine-tuned' or r['name'] >= 'sweep/run-03'}
verdict('12 of them are drawn, the newest', '' if set(o['chosen']) == newest and len(newest) == 12 else (o['chosen'], newest))
verdict('details of these only', '' if {r['run'] for r in o['runs'] if 'config' in r} == newest else 'others')
svg = s.get('/plot/loss.svg?' + 'runs=' + ','.join(str(i) for i in sorted(newest))).decode()
classes = {c: svg.count('class="curve c%d"' % c) for c in range(12)}
verdict('12 colors, each for training and validation of a run', '' if all(n == 2 for n in classes.values()) and svg.count('stroke-dasharray') >= 12 else classes)
one = s.json('/series?name=loss&runs=,,3')
verdict('one chosen run', '' if [c['name'] for c in one['curves']] == ['loss', 'val_loss'] else one['curves'])
verdict('a run without an end is lost', '' if o['runs'][0]['state'] == 'lost' and o['runs'][1]['state'] == 'ended' else o['runs'][:2])
fresh = s.events(lambda line: line.startswith('event: runs'))
next(fresh)
write('new', 40, 20)
os.rename('new', 'all/new')
next(fresh)
verdict('a run that appears is shown', '' if 'new' in [r['name'] for r in s.json('/run.json')['runs']] else 'not')
gone = s.events(lambda line: line.startswith('event: runs'))
next(gone)
shutil.rmtree('all/sweep/run-07')
next(gone)
later = s.json('/run.json')
verdict('a run that is removed is not, and the others keep their numbers', '' if
        {r['name']: r['run'] for r in later['runs'] if r['name'] != 'new'} ==
        {r['name']: r['run'] for r in o['runs'] if r['name'] != 'sweep/run-07'} else later['runs'])
s.close()

# ---- numbers ----

write('one', 1, 400, devices=3, events=40)
s = Server('one')
o = s.json('/run.json')
r = o['runs'][0]
times = [e['time'] for e in r['events']]
verdict('times of events are exact', '' if times == [round(START + 100 + i, 3) for i in range(40)] else times[:3])
want = {'elapsed': 400, 'loss': loss_of(1, 400), 'val_loss': loss_of(1, 400) + 0.1, 'step': 400, 'steps': 400, 'memory': 1 << 30, 'memory_total': 16 << 30,
        'utilisation': 0.5}
verdict('the headline', '\n'.join('%s: %s, not %s' % (k, r[k], v) for k, v in want.items() if abs(r[k] - v) > 1e-5 * abs(v)))
curves = s.json('/series?name=utilisation')['curves']
verdict('three devices, and not the host', '' if sorted(c['y'][0] for c in curves) == [0.5, 0.6000000238418579, 0.699999988079071] or
        sorted(round(c['y'][0], 6) for c in curves) == [0.5, 0.6, 0.7] else curves)
whole = s.json('/series?name=loss&smooth=0.9&points=4000')['curves'][0]
part = s.json('/series?name=loss&smooth=0.9&points=4000&from=300&to=320')['curves'][0]
same = dict(zip(whole['x'], whole['y']))
few = s.json('/series?name=loss&smooth=0.9&points=50')['curves'][0]
mean = weight = 0
for i in range(1, 301):
    mean, weight = 0.9 * mean + 0.1 * loss_of(1, i), 0.9 * weight + 0.1
verdict('zooming does not change a smoothed curve, whose mean is over all rows', '' if len(part['x']) == 21 and
        all(same[x] == y for c in (part, few) for x, y in zip(c['x'], c['y'])) and abs(part['y'][0] - mean / weight) < 1e-5 else (part, mean / weight))
plain, smooth = s.json('/series?name=learning_rate'), s.json('/series?name=learning_rate&smooth=0.9')
verdict('the learning rate is not smoothed', '' if plain == smooth else smooth)
plots = {p['name']: p for p in o['plots']}
verdict('charts of zeros and without numbers are known', '' if plots['loss_scale']['zeros'] and not plots['loss']['zeros'] and
        plots['power']['values'] == 0 and plots['loss']['values'] == 400 else plots)
verdict('stages of data have no charts of their own', '' if not [p for p in plots if p.startswith('train.data_')] else list(plots))

# ---- the page ----

def checks(title, url, minimum, act=None):
    for dark in (False, True):
        b = browser.start(1280, 1000, dark)
        if not b:
            print('ok %s # SKIP no browser' % title)
            return
        try:
            b.go(url)
            wrong = []
            if not b.wait("document.querySelectorAll('#plots svg').length >= %d" % minimum):
                wrong.append('charts are missing')
            for width in (1280, 400):
                b.size(width, 1000)
                if not b.wait("[...document.querySelectorAll('#plots svg')].every(s => Math.abs(s.viewBox.baseVal.width - s.clientWidth) < 60 || "
                              "s.viewBox.baseVal.width === 720)"):
                    wrong.append('%d: the charts keep their width' % width)
                if act:
                    wrong += ['%d: %s' % (width, x) for x in act(b)]
                wrong += ['%d: %s' % (width, x) for x in layout.faults(b)]
                over = b.run('return document.documentElement.scrollWidth - document.documentElement.clientWidth')
                if over > 0:
                    wrong.append('%d: the page is %d too wide' % (width, over))
                if os.environ.get('YOKE_TEST_SHOTS'):
                    b.size(width, min(6000, b.run('return document.documentElement.scrollHeight')))
                    b.shot('%s/%s-%s-%d.png' % (os.environ['YOKE_TEST_SHOTS'], title.replace(' ', '-'), 'dark' if dark else 'light', width))
            if title == 'one run' and not dark:
                wrong += planted(b)
            wrong += [e['message'] for e in b.log('browser')]
            verdict('%s, %s: layout, contrast, headings and console' % (title, 'dark' if dark else 'light'), '\n'.join(wrong))
        finally:
            b.close()

# Each check finds a fault that is planted for it.
def planted(b):
    plants = {
        layout.OVERLAPS: '<div data-css="height:0">first words</div><div data-css="height:20px">other words</div>',
        layout.CLIPPED: '<div data-css="overflow:hidden;width:20px;white-space:nowrap">many words in a narrow box</div>',
        layout.CONTRAST: '<p data-css="color:#aaa;background:#fff">pale</p>',
        layout.BROKEN: '<table data-css="width:30px;table-layout:fixed;overflow-wrap:anywhere"><tr><td>television</td></tr></table>',
        layout.SPOKEN: '<table><tr><td>without headers</td></tr></table>',
    }
    wrong = []
    for script, html in plants.items():
        # styles are set by the script, because the page's policy refuses attributes
        found = b.run("""const e = document.createElement('section');
            e.id = 'planted';
            e.append(...new DOMParser().parseFromString(arguments[0], 'text/html').body.children);
            document.querySelector('main').append(e);
            for (const x of e.querySelectorAll('[data-css]')) x.style.cssText = x.dataset.css;
            try { return (() => {""" + script + """})(); } finally { e.remove(); }""", html)
        if not found:
            wrong.append('the planted fault is not found: ' + html)
    return wrong

# What a reader sees of one run, and that folded charts open.
def one_run(b):
    wrong = []
    seen = b.run("""return { progress: document.querySelector('#heads progress').value, tiles: document.querySelectorAll('#heads dd.value').length,
        folded: document.querySelectorAll('#folded-plots .card').length, absent: document.querySelector('#absent').hidden,
        list: document.querySelector('#list').hidden, stack: document.querySelectorAll('.stack span').length,
        events: document.querySelectorAll('#events time').length,
        first: document.querySelector('#events time').dateTime }""")
    if seen['progress'] != 1 or seen['tiles'] < 5 or not seen['folded'] or seen['absent'] or not seen['list'] or seen['stack'] != 4 or seen['events'] != 40:
        wrong.append(str(seen))
    if seen['first'] != '2023-11-14T22:15:39.125Z':
        wrong.append(seen['first'])
    b.run("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    if not b.wait("document.querySelector('#folded-plots svg')"):
        wrong.append('the folded chart stays empty')
    return wrong

def many_runs(b):
    wrong = []
    b.run("const s = document.querySelector('#search'); s.value = 'fine'; s.oninput()")
    rows = b.run("return [...document.querySelectorAll('.runs tbody tr')].filter(r => !r.hidden).length")
    b.run("const s = document.querySelector('#search'); s.value = ''; s.oninput()")
    every = b.run("return [...document.querySelectorAll('.runs tbody tr')].filter(r => !r.hidden).length")
    if rows != 1 or every != 15:
        wrong.append('a search shows %d of %d' % (rows, every))
    hues = b.run("return new Set([...document.querySelectorAll('.runs .chip:not(.none)')].map(e => getComputedStyle(e).backgroundColor)).size")
    if hues != 12:
        wrong.append('%d colors' % hues)
    return wrong

size = len(s.get('/')) + sum(len(s.get('/plot/%s.svg' % urllib.parse.quote(p))) for p in plots) + len(s.get('/run.json'))
verdict('the page of a run has %d bytes' % size, '' if size < 2 << 20 else size)
if CLIENTS:
    checks('one run', s.url, 6, one_run)
s.close()
lock = os.open('all/base/fine-tuned', os.O_RDONLY)
fcntl.flock(lock, fcntl.LOCK_EX)
s = Server('all')
state = s.json('/run.json')['runs'][0]['state']
verdict('a run that is locked is running', '' if state == 'running' else state)
if CLIENTS:
    checks('many runs', s.url, 6, many_runs)
else:
    print('ok pages in a browser # SKIP costs seconds (YOKE_TEST_CLIENTS=1)')
s.close()
os.close(lock)

# ---- a run that is killed while it is shown ----

write('killed', 6, 20, ended=False)
# damaged records: a time in nanoseconds, and a value of a key that has no text
with open('killed/events.jsonl', 'a') as f:
    f.write('{"step":1,"event":"saved","text":"","time":1.7e18}\n')
about = json.load(open('killed/run.json'))
about['config']['data'] = {'toString': 1, 'valueOf': 1}
json.dump(about, open('killed/run.json', 'w'))
lock = os.open('killed', os.O_RDONLY)
fcntl.flock(lock, fcntl.LOCK_EX)
s = Server('killed')
before = [f['condition'] for f in s.json('/run.json')['runs'][0]['findings']]
lost = s.events(lambda line: '"state":"lost"' in line)
next(lost)
os.close(lock)
next(lost)
found = [f['condition'] for f in s.json('/run.json')['runs'][0]['findings']]
verdict('findings follow the state of a run', '' if 'killed' not in before and 'killed' in found else (before, found))
if CLIENTS:
    checks('a damaged run', s.url, 3)
s.close()

# ---- time to go ----

# Started again at step 40, 30 s ago; each step takes 1 s since then, and took 50 s before.
write('resumed', 5, 5)
now = time.time()
json.dump({'started': now - 30, 'steps': 1000040, 'device': 'cpu:0'}, open('resumed/run.json', 'w'))
with open('resumed/metrics.jsonl', 'w') as f:
    for i in range(1, 71):
        f.write('{"step":%d,"loss":2.5,"stage":"train","time":%.3f}\n' % (i, now - 70 + i if i > 40 else now - 30 - 50 * (41 - i)))
lock = os.open('resumed', os.O_RDONLY)
fcntl.flock(lock, fcntl.LOCK_EX)
s = Server('resumed')
r = s.json('/run.json')['runs'][0]
s.close()
os.close(lock)
verdict('time to go follows the steps since the last start: %s s' % r['to_go'], '' if r['state'] == 'running' and 29 < r['elapsed'] < 3600 and
        abs(r['to_go'] - 999970) < 3600 else r)
if LONG:
    write('million', 3, 1000000)
    s = Server('million')
    o = s.json('/run.json')
    size = len(s.get('/')) + sum(len(s.get('/plot/%s.svg' % urllib.parse.quote(p['name']))) for p in o['plots']) + len(s.get('/run.json'))
    verdict('the page of a million lines has %d bytes' % size, '' if size <= 2 << 20 else size)
    s.close()
