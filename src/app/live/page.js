// Page of `yoke dashboard`: what a reader asks first, then charts, then tables.
history.replaceState(null, '', location.pathname); // the token is a cookie now

let runs = [], absentPlots = [], noKernels = true;
let custom = false; // the reader has chosen the runs that are drawn
let loaded = 0;     // time of the last load, ms
let hidden = 0;     // number of runs that the server leaves out
const shown = () => chosen.flatMap(i => runs.filter(r => r.run === i && r.numbers));

// ---- the list of runs ----

const matches = r => $('search').value.toLowerCase().split(/\s+/).every(w => `${r.name} ${stateOf(r)} ${r.device} ${r.host}`.toLowerCase().includes(w));
const choose = (run, on) => {
	custom = true;
	const at = chosen.indexOf(run);
	if (on && at < 0) {
		const free = chosen.indexOf(null);
		if (free >= 0) chosen[free] = run;
		else if (chosen.length < colors) chosen.push(run);
	} else if (!on && at >= 0) {
		chosen[at] = null;
	}
	load(chosenQuery());
};
const list = () => {
	$('list').hidden = runs.length < 2;
	if (runs.length < 2) return;
	if (!listBody) $('runs').append(listTable());
	for (const [run, row] of [...rows]) if (!runs.some(r => r.run === run)) row.tr.remove(), rows.delete(run);
	let found = 0;
	for (const r of runs) {
		listRow(r, choose);
		rows.get(r.run).tr.hidden = !matches(r);
		found += matches(r);
	}
	const drawn = chosen.filter(i => i !== null).length;
	$('drawn').textContent = `${found === runs.length ? `${found} runs` : `${found} of ${runs.length} runs`}, ${drawn} drawn${
		drawn >= colors && runs.length > colors ? ` (${colors} at most)` : ''}${hidden ? `; ${hidden} more are not listed` : ''}`;
	$('first').hidden = !$('search').value;
	$('search').hidden = runs.length < 3;
};
$('search').oninput = list;
$('first').onclick = () => {
	custom = true;
	chosen = runs.filter(matches).slice(0, colors).map(r => r.run);
	load(chosenQuery());
};

// ---- headline ----

const findings = () => {
	const bad = runs.length > 1 ? shown().filter(r => r.findings?.length) : [];
	$('findings').hidden = !bad.length;
	const open = new Set([...$('found').querySelectorAll('details[open]')].map(e => e.dataset.run));
	$('found').replaceChildren(...bad.map(r => {
		const box = make('details'), head = make('summary'), name = make('h3', r.name), ul = make('ul'), [first, ...rest] = r.findings;
		box.dataset.run = r.run;
		box.open = open.has(box.dataset.run);
		head.append(make('span', undefined, `chip c${colorOf(r.run)}`), name, ' ', ...withCode(first.what),
			...first.change ? [' → ', ...withCode(first.change)] : [], make('span', rest.length ? ` (and ${rest.length} more)` : '', 'soft'));
		ul.append(...r.findings.map(finding));
		box.append(head, ul);
		return box;
	}));
};
const heads = () => {
	const one = runs.length === 1 && runs[0].numbers ? runs[0] : null;
	$('heads').replaceChildren(...one ? [headline(one)] : []);
	const live = runs.filter(r => r.state === 'running').length;
	$('count').textContent = runs.length > 1 ? `${runs.length} runs, ${live} running` : '';
	document.title = one ? [percent(one), one.name, 'yoke'].filter(Boolean).join(' · ') : `${live} of ${runs.length} running · yoke`;
	list();
	findings();
	stages(shown());
};
// Clocks go on between two updates.
setInterval(() => {
	const one = runs.length === 1 ? runs[0] : null;
	for (const [kind, text] of [['elapsed', elapsedText], ['to-go', toGoText]]) {
		const e = one && document.querySelector(`#heads .${kind}`);
		if (e && text(one)) e.textContent = text(one);
	}
	for (const r of runs) if (rows.has(r.run) && r.state === 'running') rows.get(r.run).cells[4].firstChild.textContent = toGoText(r) || '–';
}, 1000);

// ---- tables ----

const newest = 20; // events shown at once
const numbersTable = () => {
	const all = shown(), names = [...new Set(all.flatMap(r => Object.keys(r.numbers)))];
	$('numbers').replaceChildren(table('All numbers', ['quantity', ...all.map(r => r.name)],
		names.map(n => [n.replaceAll('_', ' '), ...all.map(r => numberCell(n, r.numbers[n] ?? null))])));
};
const facts = () => {
	const all = shown(), config = new Set(all.flatMap(r => Object.keys(r.config)));
	$('config').replaceChildren(table('Configuration', ['key', ...all.map(r => r.name)],
		[...config].map(k => [k, ...all.map(r => plain(r.config[k]))])));
	const events = all.flatMap(r => r.events.map(e => ({ ...e, r }))).sort((a, b) => b.time - a.time);
	const eventTable = list => {
		const t = table('Events', ['Time', 'Step', 'Event'], list.map(e => {
			const date = new Date(e.time === null ? NaN : 1000 * e.time), known = !isNaN(date); // damaged records have any time
			const time = make('time', known ? clock(e.time) : '–'), what = make('span');
			if (known) time.title = time.dateTime = date.toISOString();
			if (all.length > 1) what.append(make('span', undefined, `chip c${colorOf(e.r.run)}`), `${e.r.name} `);
			what.append(make('strong', e.event), e.text ? ` ${e.text}` : '');
			return [time, e.step, what];
		}));
		t.classList.add('events');
		return t;
	};
	const open = $('events').querySelector('details')?.open, older = make('details');
	if (events.length > newest) older.append(make('summary', `${events.length - newest} older events`), eventTable(events.slice(newest)));
	older.open = open;
	$('events').replaceChildren(events.length ? eventTable(events.slice(0, newest)) : make('span', 'none yet', 'soft'),
		...events.length > newest ? [older] : []);
};
const slowest = 12; // kernels shown at once, of all runs
const kernels = async () => {
	const answer = await fetch(`/kernels.json?${chosenQuery()}`);
	if (!answer.ok) return;
	const all = await answer.json(), many = all.length > 1;
	const list = all.flatMap(r => r.rows.slice(0, 40).map(k => ({ ...k, run: r.name }))).sort((a, b) => (b.seconds ?? 0) - (a.seconds ?? 0))
		.map(k => [plain(k.op) ?? '', ...many ? [k.run] : [], plain(k.implementation) ?? '', plain(k.device) ?? '', plain(k.scope) ?? '', plain(k.calls),
			numberCell('seconds', plain(k.seconds))]);
	const kernelTable = some => table('Kernels', ['op', ...many ? ['run'] : [], 'implementation', 'device', 'scope', 'calls', 'time'], some);
	const more = make('details'), open = $('kernels').querySelector('details')?.open;
	noKernels = !list.length;
	$('kernels-card').hidden = noKernels;
	if (list.length > slowest) more.append(make('summary', `${list.length - slowest} more`), kernelTable(list.slice(slowest)));
	more.open = open;
	$('kernels').replaceChildren(kernelTable(list.slice(0, slowest)), ...list.length > slowest ? [more] : []);
	absent();
};
// What these runs did not record, in one line.
const absent = () => {
	const list = absentPlots.map(p => `${p.title.toLowerCase()} (needs ${p.why})`);
	if (noKernels) list.push('kernels (needs profile=1, after the end)');
	$('absent').hidden = !list.length || !shown().length;
	$('absent').textContent = `Not recorded: ${list.join(', ')}.`;
};

const load = async query => {
	const answer = await fetch(`/run.json${query ? `?${query}` : ''}`);
	if (!answer.ok) return;
	const all = await answer.json();
	const now = performance.now();
	loaded = now;
	chosen = all.chosen;
	hidden = all.hidden;
	const were = new Map(runs.map(r => [r.run, r]));
	runs = all.runs.map(r => ({ findings: were.get(r.run)?.findings, ...r, at: now }));
	absentPlots = placeCharts(all.plots);
	heads();
	numbersTable();
	facts();
	kernels();
	loadPlots();
};
const reload = () => load(custom ? chosenQuery() : '');

// ---- events ----

let late, last;
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
	const stream = new EventSource('/events');
	stream.onopen = () => {
		if (!$('gone').hidden) reload(); // updates sent meanwhile are not sent again
		$('gone').hidden = true;
	};
	stream.addEventListener('update', e => {
		const news = JSON.parse(e.data), r = runs.find(r => r.run === news.run), drawn = colorOf(news.run) >= 0;
		if (!r || (drawn && (r.state !== news.state || r.generation !== news.generation || r.event_count !== news.event_count ||
			Object.keys(r.numbers).length !== Object.keys(news.numbers).length || unfolds()))) {
			reload();
			later(2);
			return;
		}
		if (!drawn) delete news.numbers;
		Object.assign(r, news, { at: performance.now() });
		heads();
		if (drawn) {
			numbersTable();
			soon();
		}
	});
	stream.addEventListener('gap', reload);
	stream.addEventListener('runs', reload);
	stream.onerror = () => {
		$('gone').hidden = false;
		if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 3000);
	};
};
// A second value unfolds a chart, which is looked for now and then.
const unfolds = () => !$('folded').hidden && performance.now() - loaded > 5000;

$('smooth').oninput = () => { $('smooth-is').textContent = (+$('smooth').value).toFixed(2); soon(); };
$('log').onchange = loadPlots;
$('folded').ontoggle = loadPlots;
addEventListener('resize', soon);
load().then(listen);
