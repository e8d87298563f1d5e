'use strict';
// Page of `yoke dashboard`: shows plots drawn by the server, and reads the numbers stored in them.
const $ = id => document.getElementById(id);
const make = (tag, text, kind) => {
	const e = document.createElement(tag);
	if (text !== undefined) e.textContent = text;
	if (kind) e.className = kind;
	return e;
};
history.replaceState(null, '', location.pathname); // the token is a cookie now

const units = [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e4, 'k']];
const short = x => {
	if (x === null || x === undefined) return 'n/a';
	if (typeof x !== 'number') return String(x);
	const size = Math.abs(x), unit = units.find(u => size >= u[0]);
	if (!unit) return String(+x.toPrecision(6));
	return +(x / (unit[1] === 'k' ? 1e3 : unit[0])).toPrecision(4) + unit[1];
};

let runs = [];
const cards = new Map();

// ---- plots ----

const scaleOf = (svg, axis) => {
	const n = k => Number(svg.dataset[k]), log = svg.dataset[axis] !== 'linear';
	const f = log ? Math.log : x => x, back = log ? Math.exp : x => x;
	const a = f(n(axis + '0')), b = f(n(axis + '1'));
	const from = n(axis === 'x' ? 'left' : 'bottom'), to = n(axis === 'x' ? 'right' : 'top');
	return { to: v => from + (f(v) - a) / (b - a) * (to - from), back: p => back(a + (p - from) / (to - from) * (b - a)),
		from, end: to };
};
const at = (svg, event) => {
	const box = svg.getBoundingClientRect();
	return (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
};
const curvesOf = svg => [...svg.querySelectorAll('[data-points]')].map(e => ({
	name: e.dataset.name, kind: [...e.classList].find(c => /^c\d$/.test(c)),
	points: e.dataset.points ? e.dataset.points.split(' ').map(p => p.split(',').map(Number)) : [],
}));

class Card {
	constructor(plot) {
		this.name = plot.name;
		this.title = plot.title;
		this.box = make('section', undefined, 'card');
		this.tip = make('div', undefined, 'tip');
		this.tip.hidden = true;
		this.reset = make('button', 'show all', 'reset');
		this.reset.hidden = true;
		this.reset.onclick = () => this.zoom(null);
		this.why = plot.why;
		this.range = null;
		$('plots').append(this.box);
	}
	zoom(range) {
		this.range = range;
		this.reset.hidden = !range;
		this.load();
	}
	query() {
		const q = new URLSearchParams();
		if (this.range) q.set('from', this.range[0]), q.set('to', this.range[1]);
		if ($('log').checked) q.set('log', 1);
		if (+$('smooth').value > 0) q.set('smooth', $('smooth').value);
		const width = 40 * Math.round(this.box.clientWidth / 40); // text would be too small in a narrow one
		if (width < 480) q.set('width', width);
		return q.toString();
	}
	async load() {
		if (this.busy) { this.again = true; return; }
		this.busy = true;
		try {
			const answer = await fetch(`/plot/${encodeURIComponent(this.name)}.svg?${this.query()}`);
			if (answer.ok) this.show(await answer.text());
		} catch (e) { /* the stream says when the server is gone */ }
		this.busy = false;
		if (this.again) { this.again = false; this.load(); }
	}
	show(text) {
		const svg = document.importNode(new DOMParser().parseFromString(text, 'image/svg+xml').documentElement, true);
		this.box.classList.toggle('none', !svg.querySelector('[data-points]'));
		if (!svg.querySelector('[data-points]')) {
			this.box.replaceChildren(make('strong', this.title),
				make('span', this.range ? 'no data in this range' : `n/a: needs ${this.why}`, 'soft'), this.reset);
			return;
		}
		this.box.replaceChildren(svg, this.tip, this.reset);
		svg.onpointermove = e => this.move(svg, e);
		svg.onpointerleave = () => { this.tip.hidden = true; svg.querySelector('.cursor')?.remove(); };
		svg.onpointerdown = e => { this.down = at(svg, e); svg.setPointerCapture(e.pointerId); };
		svg.onpointerup = e => this.up(svg, e);
	}
	mark(svg, tag, kind, set) {
		svg.querySelector('.' + kind)?.remove();
		const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
		e.setAttribute('class', kind);
		for (const k in set) e.setAttribute(k, set[k]);
		svg.append(e);
	}
	move(svg, event) {
		const x = scaleOf(svg, 'x'), y = scaleOf(svg, 'y'), p = at(svg, event);
		if (this.down !== undefined) {
			this.mark(svg, 'rect', 'drag', { x: Math.min(p, this.down), width: Math.abs(p - this.down), y: y.end,
				height: y.from - y.end });
			return;
		}
		const rows = [];
		let where;
		for (const c of curvesOf(svg)) {
			let best, off = Infinity;
			for (const q of c.points) {
				const d = Math.abs(x.to(q[0]) - p);
				if (d < off) off = d, best = q;
			}
			if (best && off < 40) rows.push([c, best]), where ??= x.to(best[0]);
		}
		if (!rows.length) { this.tip.hidden = true; return; }
		this.mark(svg, 'path', 'cursor', { d: `M${where} ${y.from}V${y.end}` });
		this.tip.replaceChildren(make('div', `${short(rows[0][1][0])}`, 'soft'), ...rows.map(([c, q]) => {
			const line = make('div');
			line.append(make('span', undefined, `chip ${c.kind}`), `${c.name} ${+q[1].toPrecision(6)}`);
			return line;
		}));
		this.tip.hidden = false;
		const box = this.box.getBoundingClientRect(), left = event.clientX - box.left;
		this.tip.style.top = '34px';
		this.tip.style.left = left > box.width / 2 ? '' : `${left + 14}px`;
		this.tip.style.right = left > box.width / 2 ? `${box.width - left + 14}px` : '';
	}
	up(svg, event) {
		const x = scaleOf(svg, 'x'), p = at(svg, event), from = this.down;
		this.down = undefined;
		svg.querySelector('.drag')?.remove();
		if (from === undefined || Math.abs(p - from) < 6) return;
		this.zoom([x.back(Math.min(p, from)), x.back(Math.max(p, from))]);
	}
}

const loadPlots = () => cards.forEach(c => c.load());

// ---- tables ----

const table = (head, rows) => {
	const t = make('table'), h = make('tr');
	const number = head.map((_, i) => rows.length && rows.every(r => typeof r[i] === 'number' || r[i] === null));
	head.forEach((x, i) => h.append(make('th', x, number[i] ? 'n' : '')));
	t.append(h);
	for (const r of rows) {
		const line = make('tr');
		r.forEach((x, i) => line.append(make('td', short(x), number[i] ? 'n' : '')));
		t.append(line);
	}
	return t;
};

// Shows training metrics as tiles, the others in a table.
const nowTable = () => {
	const names = [...new Set(runs.flatMap(r => Object.keys(r.numbers)))], plain = names.filter(n => !n.includes(' '));
	const tile = (name, values) => {
		const t = make('div', undefined, 'tile');
		t.append(make('div', name, 'soft'));
		values.forEach((v, i) => {
			const line = make('div', undefined, 'value');
			if (runs.length > 1) line.append(make('span', undefined, `chip c${i % 8}`));
			line.append(v);
			t.append(line);
		});
		return t;
	};
	$('now').replaceChildren(tile('step', runs.map(r => r.steps ? `${r.step} of ${r.steps}` : String(r.step))),
		...plain.map(n => tile(n.replaceAll('_', ' '), runs.map(r => short(r.numbers[n])))));
	$('more').replaceChildren(table(['', ...runs.map(r => r.name)],
		names.filter(n => n.includes(' ')).map(n => [n.replaceAll('_', ' '), ...runs.map(r => r.numbers[n] ?? null)])));
};

const head = () => {
	$('runs').replaceChildren(...runs.map((r, i) => {
		const e = make('span');
		e.append(make('span', undefined, `chip c${i % 8}`), `${r.name} `, make('span', r.state === 'ended' && r.how ?
			`ended: ${r.how}` : r.state, `state ${r.state.split(' ')[0]}`));
		if (r.device) e.append(make('span', ` ${r.device}`, 'soft'));
		return e;
	}));
};

const facts = () => {
	const config = new Set(runs.flatMap(r => Object.keys(r.config)));
	$('config').replaceChildren(table(['key', ...runs.map(r => r.name)],
		[...config].map(k => [k, ...runs.map(r => r.config[k] ?? null)])));
	const events = runs.flatMap(r => r.events.map(e => [new Date(1000 * e.time).toLocaleTimeString(), r.name, e.step, e.event,
		e.text]));
	$('events').replaceChildren(events.length ? table(['time', 'run', 'step', 'event', ''], events.reverse()) :
		make('span', 'none yet', 'soft'));
};

const kernels = async () => {
	const answer = await fetch('/kernels.json');
	if (!answer.ok) return;
	const rows = (await answer.json()).flatMap(r => r.rows.slice(0, 40).map(k => [r.name, k.op ?? '', k.implementation ?? '',
		k.device ?? '', k.scope ?? '', k.calls ?? null, k.seconds ?? null]));
	$('kernels').replaceChildren(rows.length ? table(['run', 'op', 'implementation', 'device', 'scope', 'calls', 'seconds'],
		rows) : make('span', 'n/a: needs a run with profile=1, after its end', 'soft'));
};

const load = async () => {
	const answer = await fetch('/run.json');
	if (!answer.ok) return;
	const all = await answer.json();
	runs = all.runs;
	for (const p of all.plots)
		if (!cards.has(p.name)) cards.set(p.name, new Card(p));
	head();
	nowTable();
	facts();
	kernels();
	loadPlots();
};

// ---- events ----

let stream, late, last;
// Reloads after a pause without events, because the server may have sent an expensive plot from
// its cache.
const later = wait => {
	clearTimeout(last);
	last = setTimeout(() => { loadPlots(); if (wait < 60) later(8 * wait); }, 1000 * wait);
};
const soon = () => {
	later(2);
	if (late) return;
	late = setTimeout(() => { late = undefined; loadPlots(); }, 300);
};
const listen = () => {
	stream = new EventSource('/events');
	stream.onopen = () => {
		if (!$('gone').hidden) load(); // what came meanwhile is told to nobody again
		$('gone').hidden = true;
	};
	stream.addEventListener('update', e => {
		const news = JSON.parse(e.data), r = runs[news.run];
		if (!r || r.state !== news.state || r.generation !== news.generation || r.event_count !== news.event_count) {
			load();
			later(2);
			return;
		}
		Object.assign(r, { step: news.step, numbers: news.numbers });
		nowTable();
		soon();
	});
	stream.addEventListener('gap', load);
	stream.onerror = () => {
		$('gone').hidden = false;
		if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 3000);
	};
};

$('smooth').oninput = () => { $('smooth-is').textContent = (+$('smooth').value).toFixed(2); soon(); };
$('log').onchange = loadPlots;
addEventListener('resize', soon);
load().then(listen);
