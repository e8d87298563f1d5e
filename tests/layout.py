# SPDX-License-Identifier: Apache-2.0
# Finds faults of a page's layout in a browser: texts that overlap, are clipped or lack contrast, words
# that are broken, and what a screen reader misses.

# Texts with their rectangles, as far as they are visible: lines of HTML text and SVG text elements.
TEXTS = r"""
const texts = [];
const hidden = e => {
	for (let n = e; n && n.nodeType === 1; n = n.parentElement) {
		const s = getComputedStyle(n);
		if (s.display === 'none' || s.visibility === 'hidden' || s.clipPath !== 'none' || n.classList.contains('tip')) return true;
		if (n.tagName === 'DETAILS' && !n.open && !n.querySelector(':scope > summary')?.contains(e)) return true;
	}
	return false;
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let n; (n = walker.nextNode());) {
	const e = n.parentElement, range = document.createRange();
	if (!n.data.trim() || /^(script|style|title|option)$/i.test(e.tagName) || hidden(e)) continue;
	range.selectNodeContents(n);
	const rects = e.closest('svg') ? [e.getBoundingClientRect()] : [...range.getClientRects()];
	for (const r of rects) if (r.width > 0 && r.height > 0) texts.push({ e, n, r, text: n.data.trim().slice(0, 40) });
}
const name = t => `"${t.text}" (${t.e.closest('[id]')?.id ?? ''} ${t.e.tagName})`;
"""

OVERLAPS = TEXTS + r"""
const bad = [];
texts.sort((a, b) => a.r.top - b.r.top);
for (let i = 0; i < texts.length; i++)
	for (let k = i + 1; k < texts.length && texts[k].r.top < texts[i].r.bottom - 3; k++) {
		const a = texts[i].r, b = texts[k].r;
		const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left), high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
		if (texts[i].n !== texts[k].n && wide > 1 && high > 3) bad.push(`${name(texts[i])} over ${name(texts[k])}`);
	}
return bad;
"""

# Text outside of what shows it, unless that can be scrolled.
CLIPPED = TEXTS + r"""
const bad = [];
for (const t of texts) {
	const svg = t.e.closest('svg')?.getBoundingClientRect();
	if (svg && (t.r.left < svg.left - 1 || t.r.right > svg.right + 1 || t.r.top < svg.top - 1 || t.r.bottom > svg.bottom + 1)) bad.push(name(t));
	let scrolls = false;
	for (let n = t.e; n && n !== document.documentElement; n = n.parentElement) {
		const s = getComputedStyle(n), box = n.getBoundingClientRect();
		scrolls ||= s.overflowX === 'auto' || s.overflowX === 'scroll';
		const cuts = !scrolls && (s.overflowX !== 'visible' || n.classList.contains('card'));
		if (cuts && (t.r.left < box.left - 1 || t.r.right > box.right + 1)) { bad.push(`${name(t)} in ${n.tagName}.${n.className}`); break; }
	}
	if (!scrolls && (t.r.right > document.documentElement.clientWidth + 1 || t.r.left < -1)) bad.push(`${name(t)} outside of the page`);
}
return bad;
"""

# WCAG 2: 4.5 for text, 3 for large text and for curves.
CONTRAST = TEXTS + r"""
const bad = [];
const rgba = s => { const m = s.match(/[\d.]+/g).map(Number); return { c: m.slice(0, 3), a: m[3] ?? 1 }; };
const over = (f, a, b) => f.map((x, i) => x * a + b[i] * (1 - a));
const light = c => c.map(x => x / 255).map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
	.reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
const canvas = matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18] : [255, 255, 255];
const behind = e => {
	const list = [];
	for (let n = e; n; n = n.parentElement) list.push(rgba(getComputedStyle(n).backgroundColor));
	return list.reverse().reduce((b, x) => over(x.c, x.a, b), canvas);
};
const seen = new Set();
for (const t of texts) {
	const s = getComputedStyle(t.e), svg = t.e.closest('svg'), back = behind(t.e);
	const f = rgba(svg ? s.fill : s.color), a = f.a * (svg ? +s.fillOpacity : 1);
	const size = parseFloat(s.fontSize), large = size >= 24 || (size >= 18.66 && +s.fontWeight >= 700);
	const got = ratio(over(f.c, a, back), back);
	if (got < (large ? 3 : 4.5)) bad.push(`${name(t)} ${got.toFixed(2)}`);
}
for (const e of document.querySelectorAll('svg .curve')) {
	const back = behind(e.closest('svg')), got = ratio(rgba(getComputedStyle(e).stroke).c, back);
	if (got < 2.95) bad.push(`curve ${e.getAttribute('class')} ${got.toFixed(2)}`);
}
return bad;
"""

# Words of tables that are broken into two lines although they have a usual length.
BROKEN = TEXTS + r"""
const bad = [];
for (const n of new Set(texts.filter(t => t.e.closest('table')).map(t => t.n)))
	for (const m of n.data.matchAll(/[^\s\/-]{2,24}/g)) {
		const range = document.createRange();
		range.setStart(n, m.index);
		range.setEnd(n, m.index + m[0].length);
		if (new Set([...range.getClientRects()].map(r => Math.round(r.top))).size > 1) bad.push(m[0]);
	}
return bad;
"""

# One first heading, no level left out, headers of all tables with a scope, names of controls and pictures.
SPOKEN = r"""
const bad = [];
const levels = [...document.querySelectorAll('h1,h2,h3,h4')].filter(e => !e.closest('[hidden]')).map(e => +e.tagName[1]);
if (levels.filter(x => x === 1).length !== 1 || levels[0] !== 1) bad.push(`headings ${levels}`);
levels.forEach((x, i) => { if (i && x > levels[i - 1] + 1) bad.push(`heading ${i} of level ${x} after ${levels[i - 1]}`); });
for (const t of document.querySelectorAll('table')) {
	if (!t.querySelector('thead th')) bad.push(`table without headers: ${t.textContent.slice(0, 40)}`);
	if ([...t.querySelectorAll('th')].some(h => !h.scope)) bad.push(`header without scope: ${t.textContent.slice(0, 40)}`);
}
for (const e of document.querySelectorAll('svg[role=img], progress, input, [role=img]'))
	if (!e.getAttribute('aria-label') && !(e.labels && e.labels.length)) bad.push(`${e.tagName} without a name`);
if (!document.documentElement.lang || !document.title) bad.push('no language or title');
return bad;
"""

CHECKS = (('texts overlap', OVERLAPS), ('text is clipped', CLIPPED), ('too little contrast', CONTRAST), ('words are broken', BROKEN),
          ('not for screen readers', SPOKEN))

# The faults of the page as lines of text.
def faults(browser):
    return ['%s: %s' % (title, x) for title, script in CHECKS for x in browser.run(script)[:6]]
