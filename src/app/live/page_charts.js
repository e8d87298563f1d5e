// Charts: the server draws them; this reads the numbers stored in them.
const $ = id => document.getElementById(id);
const make = (tag, text, kind) => {
	const e = document.createElement(tag);
	if (text !== undefined) e.textContent = text;
	if (kind) e.className = kind;
	return e;
};
const colors = 12;
// The numbers of the drawn runs by color, null where a color is free, and this list as a query.
let chosen = [];
const chosenQuery = () => `runs=${chosen.map(i => i ?? '').join(',')}`;
const colorOf = run => chosen.indexOf(run);

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
	name: e.dataset.name, kind: [...e.classList].find(c => /^c\d+$/.test(c)),
	points: e.dataset.points ? e.dataset.points.split(' ').map(p => p.split(',').map(Number)) : [],
}));
const unitOfPlot = { loss: 'loss', memory: 'bytes', resident: 'bytes', data_wait: 'seconds', utilisation: 'share', temperature: 'celsius',
	power: 'watts', tokens_per_s: 'rate', samples_per_s: 'rate' };
const bySeconds = ['utilisation', 'resident', 'temperature', 'power'];

class Card {
	constructor(plot) {
		this.name = plot.name;
		this.title = plot.title;
		this.box = make('section', undefined, 'card');
		this.box.setAttribute('aria-label', plot.title);
		this.heading = make('h3', plot.title, 'unseen');
		this.tip = make('div', undefined, 'tip');
		this.tip.hidden = true;
		this.reset = make('button', 'show all', 'reset');
		this.reset.type = 'button';
		this.reset.hidden = true;
		this.reset.onclick = () => this.zoom(null);
		this.range = null;
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
		if (chosen.filter(i => i !== null).length > 1) q.set('plain', 1);
		const width = 40 * Math.floor((this.box.clientWidth - 20) / 40); // text would be too small in a narrow one
		if (width > 0 && width < 640) q.set('width', Math.max(width, 320));
		return `${chosenQuery()}&${q}`;
	}
	async load() {
		if (this.busy) { this.again = true; return; }
		this.busy = true;
		try {
			const answer = await fetch(`/plot/${encodeURIComponent(this.name)}.svg?${this.query()}`);
			if (answer.ok) this.draw(await answer.text());
		} catch (e) { /* the stream reports that the server is gone */ }
		this.busy = false;
		if (this.again) { this.again = false; this.load(); }
	}
	draw(text) {
		const svg = document.importNode(new DOMParser().parseFromString(text, 'image/svg+xml').documentElement, true);
		if (!svg.querySelector('[data-points]')) {
			this.box.replaceChildren(this.heading, make('p', `${this.title}: no data in this range`, 'soft'), this.reset);
			return;
		}
		this.box.replaceChildren(this.heading, svg, this.tip, this.reset);
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
		const head = bySeconds.includes(this.name) ? `after ${unit.duration(rows[0][1][0])}` : `step ${rows[0][1][0]}`;
		const value = unit[unitOfPlot[this.name]] ?? unit.number;
		this.tip.replaceChildren(make('div', head, 'soft'), ...rows.map(([c, q]) => {
			const line = make('div');
			line.append(make('span', undefined, `chip ${c.kind}`), `${c.name} ${value(q[1])}`);
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

const cards = new Map();
const loadPlots = () => cards.forEach(c => { if (c.box.isConnected && c.box.clientWidth) c.load(); });

// Places the charts: those with one value or only zeros are folded, those without values are named at
// the end of the page. Returns the latter.
const placeCharts = plots => {
	const names = new Set(plots.map(p => p.name)), absent = [], main = [], folded = [];
	for (const name of [...cards.keys()])
		if (!names.has(name)) cards.get(name).box.remove(), cards.delete(name);
	for (const p of plots) {
		if (!p.values) {
			cards.get(p.name)?.box.remove();
			absent.push(p);
			continue;
		}
		if (!cards.has(p.name)) cards.set(p.name, new Card(p));
		(p.values > 1 && !p.zeros ? main : folded).push(cards.get(p.name));
	}
	for (const [list, where] of [[main, $('plots')], [folded, $('folded-plots')]])
		list.forEach((c, i) => { if (where.children[i] !== c.box) where.insertBefore(c.box, where.children[i] ?? null); });
	$('folded').hidden = !folded.length;
	$('folded').firstElementChild.textContent = `${folded.length} ${folded.length === 1 ? 'chart' : 'charts'} of one value or of zeros: ${
		folded.map(c => c.title.toLowerCase()).join(', ')}`;
	return absent;
};

// The seconds of each stage of reading data, one bar for each run.
const stageCard = make('section', undefined, 'card');
const stageKinds = ['wait', 'read', 'decode', 'pad', 'send'];
const stageKind = name => `stage-${stageKinds.includes(name) ? name : 'other'}`;
const stages = runs => {
	const lines = runs.map(r => [r, Object.entries(r.numbers).flatMap(([k, v]) => {
		const name = /^data_(\w+)_s$/.exec(k)?.[1];
		return name && typeof v === 'number' ? [[name, v]] : [];
	})]).filter(([, list]) => list.some(([, v]) => v > 0));
	if (!lines.length) { stageCard.remove(); return; }
	const sum = list => list.reduce((all, [, v]) => all + v, 0), max = Math.max(...lines.map(([, list]) => sum(list)));
	const words = (list, values) => {
		const box = make('div', undefined, 'words');
		for (const [k, v] of list) {
			const word = make('span');
			word.append(make('span', undefined, `chip ${stageKind(k)}`), values ? `${k} ${unit.seconds(v)}` : k);
			box.append(word);
		}
		return box;
	};
	const many = lines.length > 1;
	stageCard.setAttribute('aria-label', 'Time in data stages');
	stageCard.replaceChildren(make('h3', 'Time in data stages'), ...many ? [words(lines[0][1], false)] : [], ...lines.map(([r, list]) => {
		const line = make('div', undefined, many ? 'stages many' : 'stages'), bar = make('div', undefined, 'stack');
		bar.setAttribute('role', 'img');
		bar.setAttribute('aria-label', list.map(([k, v]) => `${k} ${unit.seconds(v)}`).join(', '));
		bar.title = bar.getAttribute('aria-label');
		for (const [k, v] of list) {
			const e = make('span', undefined, stageKind(k));
			e.style.width = `${100 * v / max}%`;
			bar.append(e);
		}
		line.append(...many ? [make('span', r.name), bar, make('span', unit.seconds(sum(list)))] : [bar, words(list, true)]);
		return line;
	}), make('p', 'wait: steps stood still; the others: workers, beside the steps', 'soft'));
	if (!stageCard.isConnected || $('plots').lastElementChild !== stageCard) $('plots').append(stageCard);
};
