# SPDX-License-Identifier: Apache-2.0
# Tests the layout of pages of yoke report and yoke bench in Chromium: report_page.py PAGE ..; with everything folded and
# unfolded, at 400 and 1280 pixels, light and dark.
import os, sys
import browser, layout

if not any(os.environ.get(k, '0') != '0' for k in ('YOKE_TEST_LONG', 'YOKE_TEST_CLIENTS')):
    print('ok pages in a browser # SKIP costs seconds (YOKE_TEST_CLIENTS=1)')
    sys.exit(0)
b = browser.start()
if not b:
    print('ok pages in a browser # SKIP there is none')
    sys.exit(0)

def devtools(command, **parameters):
    b.call('POST', '/session/%s/goog/cdp/execute' % b.session, {'cmd': command, 'params': parameters})

try:
    for page in sys.argv[1:]:
        wrong = []
        for width in (400, 1280):
            for scheme in ('light', 'dark'):
                devtools('Emulation.setDeviceMetricsOverride', width=width, height=1000, deviceScaleFactor=1, mobile=False)
                devtools('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': scheme}])
                b.go('file://' + os.path.abspath(page))
                if os.environ.get('YOKE_TEST_SHOTS'):
                    b.shot('%s/%s-%d-%s.png' % (os.environ['YOKE_TEST_SHOTS'], os.path.basename(page), width, scheme))
                wrong += ['%d %s: %s' % (width, scheme, x) for x in layout.faults(b)]
                b.run('for (const d of document.querySelectorAll("details")) d.open = true')
                wrong += ['%d %s, unfolded: %s' % (width, scheme, x) for x in layout.faults(b)]
                small = b.run('''return [...document.querySelectorAll('svg text')].map(e => [e, e.ownerSVGElement]).filter(([e, s]) =>
                    s.clientWidth && parseFloat(getComputedStyle(e).fontSize) * s.clientWidth / s.viewBox.baseVal.width < 9).map(([e]) =>
                    e.textContent)''')
                wrong += ['%d: too small to read: %s' % (width, x) for x in small[:3]]
        wrong += [e['message'] for e in b.log('browser')]
        print('%s %s: nothing overlaps, is clipped, too small or too pale, and a screen reader finds all' % ('not ok' if wrong else 'ok', page))
        if wrong:
            print('\n'.join(wrong[:12]))
finally:
    b.close()
