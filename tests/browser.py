# SPDX-License-Identifier: Apache-2.0
# Controls Chromium for tests through the WebDriver protocol, without third-party Python packages.
import base64, json, shutil, subprocess, threading, time, urllib.error, urllib.request

def find():
    driver = shutil.which('chromedriver')
    browser = shutil.which('chromium') or shutil.which('google-chrome')
    return (driver, browser) if driver and browser else None

# One, or None: it is not there, or does not start here, as is said.
def start(width=1280, height=1000, dark=False):
    if not find():
        print('no chromium with chromedriver')
        return None
    try:
        return Browser(width, height, dark)
    except (RuntimeError, OSError) as e:
        print('it does not start: %s' % str(e).splitlines()[0])
        return None

class Browser:
    def __init__(self, width=1280, height=1000, dark=False):
        driver, browser = find()
        self.process = subprocess.Popen([driver, '--port=0'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        port, limit = None, threading.Timer(60, self.process.kill)
        limit.start()
        for line in self.process.stdout:
            if 'successfully on port' in line:
                port = int(line.rsplit(' ', 1)[1].rstrip('.\n'))
                break
        limit.cancel()
        if port is None:
            self.process.wait(10)
            raise RuntimeError('chromedriver ended, or said nothing for a minute')
        self.base = 'http://127.0.0.1:%d' % port
        arguments = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars', '--force-device-scale-factor=1',
                     '--disable-background-networking', '--window-size=%d,%d' % (width, height)]
        if dark:
            arguments.append('--force-dark-mode')
        want = {'capabilities': {'alwaysMatch': {
            'goog:chromeOptions': {'binary': browser, 'args': arguments},
            'goog:loggingPrefs': {'browser': 'ALL', 'performance': 'ALL'}}}}
        try:
            self.session = self.call('POST', '/session', want)['sessionId']
        except (RuntimeError, OSError):
            self.process.terminate()
            self.process.wait(10)
            raise

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        ask = urllib.request.Request(self.base + path, data, {'Content-Type': 'application/json'}, method=method)
        try:
            with urllib.request.urlopen(ask, timeout=600) as answer:
                return json.load(answer)['value']
        except urllib.error.HTTPError as e:
            raise RuntimeError(json.load(e)['value']['message']) from None

    def go(self, url):
        self.call('POST', '/session/%s/url' % self.session, {'url': url})

    def run(self, script, *arguments):
        return self.call('POST', '/session/%s/execute/sync' % self.session, {'script': script, 'args': list(arguments)})

    def wait(self, script, seconds=600):
        until = time.time() + seconds
        while time.time() < until:
            x = self.run('return ' + script)
            if x:
                return x
            time.sleep(0.1)
        return None

    def log(self, kind):
        return self.call('POST', '/session/%s/se/log' % self.session, {'type': kind})

    # addresses that were asked for
    def asked(self):
        urls = []
        for entry in self.log('performance'):
            m = json.loads(entry['message'])['message']
            if m['method'] == 'Network.requestWillBeSent':
                urls.append(m['params']['request']['url'])
        return urls

    def size(self, width, height):
        self.call('POST', '/session/%s/window/rect' % self.session, {'width': width, 'height': height})

    def shot(self, path):
        with open(path, 'wb') as f:
            f.write(base64.b64decode(self.call('GET', '/session/%s/screenshot' % self.session)))

    def close(self):
        try:
            self.call('DELETE', '/session/%s' % self.session)
        finally:
            self.process.terminate()
            self.process.wait(10)
