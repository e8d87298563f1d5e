# SPDX-License-Identifier: Apache-2.0
# Queries yoke dashboard as browsers, Prometheus and others do: dashboard.py URL RUN EVIL YOKE
import base64, hashlib, http.client, json, os, random, re, socket, sys, threading, time
from urllib.parse import urlsplit, parse_qs
from xml.dom import minidom

def verdict(title, wrong):
    print('ok ' + title if not wrong else 'not ok %s\n%s' % (title, wrong), flush=True)

def connect(url):
    parts = urlsplit(url)
    return parts.hostname, parts.port, parse_qs(parts.query)['token'][0]

if sys.argv[1] in ('--grows', '--state'):
    host, port, token = connect(sys.argv[-1])
    c = http.client.HTTPConnection(host, port, timeout=600)
    bearer = {'Authorization': 'Bearer ' + token}
    if sys.argv[1] == '--state':
        c.request('GET', '/run.json', headers=bearer)
        state = json.load(c.getresponse())['runs'][0]['state']
        sys.exit(0 if state == sys.argv[2] else 'it says ' + state)
    c.request('GET', '/events', headers=bearer)
    answer = c.getresponse()
    steps, until = [], time.time() + 600
    while len(steps) < 3 and time.time() < until:
        line = answer.readline().decode()
        if line.startswith('data: {"run"'):
            news = json.loads(line[6:])
            steps.append(news['step'])
            if news['state'] != 'running':
                sys.exit('it says ' + news['state'])
    sys.exit(0 if len(steps) == 3 and steps[0] < steps[2] else 'steps %s' % steps)

url, run, evil, yoke = sys.argv[1:5]
host, port, token = connect(url)
bearer = {'Authorization': 'Bearer ' + token}

def ask(path, method='GET', headers=bearer, body=None, name=None):
    c = http.client.HTTPConnection(host, port, timeout=600)
    c.putrequest(method, path, skip_host=name is not None)
    if name:
        c.putheader('Host', name)
    for k, v in headers.items():
        c.putheader(k, v)
    if body is not None:
        c.putheader('Content-Length', str(len(body)))
    c.endheaders(body)
    r = c.getresponse()
    text = r.read()
    c.close()
    return r.status, text, r.headers

# ---- who is answered ----

wrong = []
for name, want in (('127.0.0.1', 200), ('localhost:1', 200), ('LocalHost', 200), ('[::1]:99', 200), ('example.org', 403),
                   ('127.0.0.1.example.org', 403), ('localhost:x', 403), ('', 403), ('[::1', 403), ('127.0.0.1:123456', 403)):
    got = ask('/run.json', name=name or ' ')[0]
    if got != want and not (name == '' and got == 400):
        wrong.append('%r: %d' % (name, got))
verdict('Host: this machine alone', '\n'.join(wrong))
wrong = []
for origin, want in (('http://127.0.0.1:5', 200), ('http://localhost', 200), ('https://127.0.0.1', 403), ('null', 403),
                     ('http://example.org', 403), ('http://localhost.example.org', 403)):
    got = ask('/run.json', headers=dict(bearer, Origin=origin))[0]
    if got != want:
        wrong.append('%s: %d' % (origin, got))
verdict('Origin likewise', '\n'.join(wrong))
cookie = 'yoke-%d=' % port
wrong = []
for headers, want in (({}, 401), ({'Authorization': 'Bearer ' + token[:-1]}, 401), ({'Authorization': 'Bearer ' + token + '0'}, 401),
                      ({'Authorization': 'Bearer '}, 401), ({'Authorization': 'Basic ' + token}, 401),
                      ({'Cookie': 'a=b; ' + cookie + token}, 200), ({'Cookie': cookie + 'x' * 5000}, 401),
                      ({'Cookie': 'x' + cookie + token}, 401), (bearer, 200)):
    for path in ('/run.json', '/metrics', '/plot/loss.svg', '/series?name=loss', '/kernels.json', '/'):
        got = ask(path, headers=headers)[0]
        if got != want:
            wrong.append('%s %s: %d' % (path, headers, got))
if ask('/run.json?token=' + token, headers={})[0] != 401:
    wrong.append('the token in the query of another path')
verdict('the token, as Bearer or cookie', '\n'.join(wrong))
wrong = []
for method in ('POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'HEAD', 'TRACE', 'NONSENSE'):
    got = ask('/run.json', method, body=b'x' * 1000 if method in ('POST', 'PUT') else None)[0]
    if got not in (405, 501, 400):
        wrong.append('%s: %d' % (method, got))
verdict('GET alone', '\n'.join(wrong))

# ---- the page ----

status, text, headers = ask('/?token=' + token, headers={})
text = text.decode()
policy = headers['Content-Security-Policy']
wrong = []
for tag, directive in (('script', 'script-src'), ('style', 'style-src')):
    inside = re.search('<%s>(.*?)</%s>' % (tag, tag), text, re.S).group(1)
    want = "%s 'sha256-%s'" % (directive, base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode())
    if want not in policy:
        wrong.append('%s, not %s' % (policy, want))
if status != 200 or "default-src 'none'" not in policy or headers['Set-Cookie'] != cookie + token + '; Path=/; SameSite=Strict; HttpOnly':
    wrong.append('%d %s' % (status, headers))
if token in text or re.search(r'\b(src|href)=', text):
    wrong.append('the token, or something from elsewhere, is in the page')
verdict('the page: its policy has its hashes, its cookie is strict', '\n'.join(wrong))

# ---- what is answered ----

lines = [json.loads(l) for l in open(run + '/metrics.jsonl')]
loss = [l['loss'] for l in lines if l['stage'] == 'train']
o = json.loads(ask('/run.json')[1])
r = o['runs'][0]
verdict('run.json', '' if r['state'] == 'ended' and r['step'] == len(loss) and abs(r['numbers']['loss'] - loss[-1]) < 1e-4 and
        o['runs'][1]['state'] == 'not known' else r)
s = json.loads(ask('/series?name=loss&points=4000')[1])
got = [c for c in s['curves'] if c['name'] == run][0]
verdict('a series is what was logged', '' if got['x'] == list(range(1, len(loss) + 1)) and
        all(abs(a - b) < 1e-6 * abs(b) for a, b in zip(got['y'], loss)) else (got, loss))
s = json.loads(ask('/series?name=loss&from=3&to=5')[1])
verdict('a part of it', '' if s['curves'][0]['x'] == [3, 4, 5] else s)
wrong = []
for p in o['plots']:
    from urllib.parse import quote
    status, svg, headers = ask('/plot/%s.svg?log=1&smooth=0.5' % quote(p['name'], safe=''))
    if status != 200 or headers['Content-Type'] != 'image/svg+xml':
        wrong.append('%s: %d' % (p['name'], status))
    minidom.parseString(svg)
    if b'<script' in svg:
        wrong.append('%s has a script' % p['name'])
verdict('each of %d plots is well-formed' % len(o['plots']), '\n'.join(wrong))
rows = json.loads(ask('/kernels.json')[1])[0]['rows']
verdict('kernels.json has %d rows' % len(rows), '' if rows and all(k['seconds'] >= 0 for k in rows) else rows)
metrics = ask('/metrics')[1].decode()
wrong = ''
if 'yoke_train_loss{run="%s"} %s' % (run, repr(loss[-1])[:6]) not in metrics:
    wrong = metrics
verdict('metrics for Prometheus', wrong)
try:
    from prometheus_client.parser import text_string_to_metric_families
    families = list(text_string_to_metric_families(metrics))
    names = {f.name for f in families}
    samples = {s.name: s.value for f in families for s in f.samples if s.labels.get('run') == run}
    verdict("prometheus_client's parser takes them", '' if 'yoke_train_step' in names and samples['yoke_train_step'] == len(loss) and
            samples['yoke_train_tokens_total'] == lines[-2].get('tokens', samples['yoke_train_tokens_total']) and
            'yoke_kernel_seconds_total' in samples else names)
except ImportError:
    print("ok prometheus_client's parser # SKIP not installed")

# ---- streams ----

def stream(headers=None):
    s = socket.create_connection((host, port), timeout=600)
    s.sendall(('GET /events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n%s\r\n' % (token, headers or '')).encode())
    return s
def until(s, word, limit=1 << 20):
    got = b''
    while word not in got and len(got) < limit:
        part = s.recv(65536)
        if not part:
            break
        got += part
    return got.decode(errors='replace')
s = stream('Last-Event-ID: 0,0;0,0\r\n')
got = until(s, b'"run":1')
ids = re.findall(r'id: ([^\r\n]*)', got)
verdict('one who was away gets the present at once', '' if 'event: update' in got and ids else got)
s.close()
s = stream('Last-Event-ID: %s\r\n' % (ids[-1] if ids else ''))
got = until(s, b'\n\n')
got += until(s, b'hello') if 'hello' not in got else ''
verdict('one who was not gets nothing', '' if 'hello' in got and 'update' not in got else got)
with open(run + '/metrics.jsonl', 'a') as f:
    f.write('{"step":13,"loss":1.25,"stage":"train","time":%.3f}\n' % time.time())
began = time.time()
got = until(s, b'"step":13')
took = time.time() - began
verdict('a line that is written comes', '' if '"loss":1.25' in got else got)
print('after %.2f s' % took)
s.close()
streams = []
for i in range(17):
    streams.append(stream())
answers = []
for s in streams:
    answers.append(until(s, b'\r\n', 4096).split('\r\n')[0])
full = [a for a in answers if ' 503 ' in a]
verdict('the 17th stream is refused, and who left takes no place', '' if len(full) == 1 and ' 503 ' in answers[16] else answers)
for s in streams:
    s.close()

# ---- hostile requests ----

random.seed(int(os.environ.get('YOKE_TEST_SEED', '1')))
def hostile(i):
    head = 'Host: localhost\r\nAuthorization: Bearer %s\r\n' % token
    kinds = [
        lambda: 'GET /plot/%s.svg HTTP/1.1\r\n%s\r\n' % ('../' * random.randint(1, 50), head),
        lambda: 'GET /plot/%s.svg HTTP/1.1\r\n%s\r\n' % ('%00%ff' * random.randint(1, 500), head),
        lambda: 'GET /series?name=loss&from=%s&to=%s&points=%s HTTP/1.1\r\n%s\r\n' % (
            random.choice(['nan', 'inf', '1e999', '-0', 'x']), random.choice(['-1e308', 'nan', '', '0x1p3']),
            random.choice(['-5', '1e18', '0', 'nan', '3.7']), head),
        lambda: 'GET / HTTP/1.1\r\n' + 'X: %s\r\n' % ('a' * random.randint(1, 100000)) + '\r\n',
        lambda: 'GET ' + 'a' * random.randint(1, 100000),
        lambda: ''.join(chr(random.randint(0, 255)) for _ in range(random.randint(1, 2000))),
        lambda: 'POST /run.json HTTP/1.1\r\n%sContent-Length: 99999999999999999999\r\n\r\nx' % head,
        lambda: 'POST / HTTP/1.1\r\n%sTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx' % head,
        lambda: 'GET /events HTTP/1.1\r\n%sLast-Event-ID: %s\r\n\r\n' % (head, '9' * random.randint(0, 9000)),
        lambda: 'GET /plot/%s.svg HTTP/1.0\r\n%s\r\n' % ('train.' + 'x' * random.randint(0, 300), head),
    ]
    try:
        s = socket.create_connection((host, port), timeout=600)
        s.sendall(kinds[i % len(kinds)]().encode('latin-1'))
        if random.random() < 0.5:
            s.settimeout(0.02)
            s.recv(1000)
        s.close()
    except OSError:
        pass
for i in range(200):
    hostile(i)
status, text, _ = ask('/run.json')
verdict('200 hostile requests harm nothing', '' if status == 200 and json.loads(text)['runs'] else text)

# ---- a browser ----

import browser
if not any(os.environ.get(k, '0') != '0' for k in ('YOKE_TEST_LONG', 'YOKE_TEST_CLIENTS')):
    print('ok the page in a browser # SKIP costs seconds (YOKE_TEST_CLIENTS=1)')
    sys.exit(0)
b = browser.start()
if not b:
    print('ok the page in a browser # SKIP there is none')
    sys.exit(0)
try:
    b.go(url)
    drawn = b.wait("document.querySelectorAll('#plots svg').length >= 5")
    verdict('plots are drawn', '' if drawn else b.run('return document.body.innerText'))
    before = b.run("return document.querySelector('#plots svg [data-points]').dataset.points.split(' ').length")
    with open(run + '/metrics.jsonl', 'a') as f:
        f.write('{"step":14,"loss":1.5,"stage":"train","time":%.3f}\n' % time.time())
    grown = b.wait("document.querySelector('#plots svg [data-points]').dataset.points.split(' ').length > %d" % before)
    verdict('they grow', '' if grown else before)
    tip = b.run("""const s = document.querySelector('#plots svg'), r = s.getBoundingClientRect();
        s.dispatchEvent(new PointerEvent('pointermove', {clientX: r.left + r.width / 2, clientY: r.top + 80}));
        return document.querySelector('.tip').innerText""")
    verdict('a number is read out: %s' % tip.replace('\n', ' '), '' if re.search(r'\d', tip) else tip)
    b.run("""const s = document.querySelector('#plots svg'), r = s.getBoundingClientRect();
        const at = (kind, x) => s.dispatchEvent(new PointerEvent(kind, {clientX: r.left + r.width * x, clientY: r.top + 80, pointerId: 1}));
        s.setPointerCapture = () => {};
        at('pointerdown', 0.4); at('pointermove', 0.6); at('pointerup', 0.6);""")
    fewer = b.wait("document.querySelector('#plots svg [data-points]').dataset.points.split(' ').length < %d" % before)
    verdict('a drag shows a part', '' if fewer else 'as before')
    kind = b.run("return [document.querySelector('.runs tbody .state').className, document.querySelector('#absent').hidden]")
    verdict('it shows the state, and what was not recorded', '' if kind == ['state soft', False] else kind)
    verdict('names are text', '' if not b.run("return [...document.scripts].some(s => s.textContent.startsWith('alert'))") and
            'train.<script>alert(1)</script>'[6:] in b.run('return document.body.textContent') else 'a script')
    wide = []
    for width in (400, 1280):
        b.size(width, 900)
        b.run('scrollTo(0, document.querySelector("#plots").offsetTop - 60)')
        if not b.wait("document.querySelector('#plots svg').viewBox.baseVal.width %s 480" % ('<' if width == 400 else '>')):
            wide.append('%d: plots are as they were' % width)
        if os.environ.get('YOKE_TEST_SHOTS'):
            b.shot('%s/page-%d.png' % (os.environ['YOKE_TEST_SHOTS'], width))
        over = b.run('return document.documentElement.scrollWidth - document.documentElement.clientWidth')
        if over > 0:
            wide.append('%d: %d too wide: %s' % (width, over, b.run("""const w = document.documentElement.clientWidth;
                return [...document.body.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > w).map(e =>
                    e.tagName + ' ' + e.getAttribute('class') + ' ' + e.textContent.slice(0, 30))""")[:6]))
    verdict('nothing sticks out at 400 and 1280 pixels', '\n'.join(wide))
    errors = [e['message'] for e in b.log('browser')]
    verdict('the console has no error', '\n'.join(errors))
    elsewhere = [u for u in b.asked() if not u.startswith('http://%s:%d/' % (host, port))]
    verdict('nothing is asked for elsewhere', '\n'.join(elsewhere))
finally:
    b.close()
