// Tables, the headline of a run, and the list of runs.
const table = (title, head, rows) => {
	const t = make('table'), h = make('tr'), top = make('thead'), body = make('tbody');
	const number = head.map((_, i) => rows.length && rows.every(r => typeof r[i] === 'number' || r[i] === null || r[i]?.n));
	t.setAttribute('aria-label', title);
	t.append(top, body);
	top.append(h);
	head.forEach((x, i) => {
		const th = make('th', x, number[i] ? 'n' : '');
		th.scope = 'col';
		h.append(th);
	});
	for (const r of rows) {
		const line = make('tr');
		r.forEach((x, i) => {
			const cell = make(i ? 'td' : 'th', undefined, number[i] ? 'n' : '');
			if (!i) cell.scope = 'row';
			cell.append(x instanceof Node ? x : x?.n ?? show('', x));
			line.append(cell);
		});
		body.append(line);
	}
	return t;
};
// A value of a record, which may be of any type.
const plain = x => typeof x === 'object' && x !== null ? JSON.stringify(x) : x ?? null;
const numberCell = (name, x) => ({ n: show(name, x) });

// "running", "done", "failed", "lost"
const stateOf = r => r.state === 'ended' && r.how ? r.how : r.state;
const stateKind = r => r.state === 'running' ? 'good' : r.state === 'lost' || /fail|error/.test(r.how) ? 'bad' : 'soft';
const stateMark = r => {
	const e = make('span', undefined, `state ${stateKind(r)}`);
	e.append(make('span', undefined, 'dot'), stateOf(r));
	return e;
};

const progress = r => {
	const p = make('progress');
	p.max = 1;
	if (r.steps) p.value = Math.min(1, r.step / r.steps);
	else if (r.state !== 'running') p.value = r.state === 'ended' ? 1 : 0; // without a value: in progress
	p.className = stateKind(r);
	p.setAttribute('aria-label', `progress of ${r.name}`);
	return p;
};
const percent = r => r.steps ? `${Math.floor(100 * Math.min(1, r.step / r.steps))} %` : '';
const stepText = r => `step ${r.step}${r.steps ? ` of ${r.steps}` : ''}`;
// Seconds since the numbers were computed.
const age = r => r.state === 'running' ? (performance.now() - r.at) / 1000 : 0;
const elapsedText = r => r.elapsed === null ? '' : unit.duration(r.elapsed + age(r));
const toGoText = r => r.to_go === null || r.state !== 'running' ? '' : unit.duration(Math.max(0, r.to_go - age(r)));
const memoryText = r => r.memory === undefined ? '–' : unit.bytes(r.memory);
const memoryNote = r => r.memory === undefined ? '' : r.memory_what + (r.memory_total ? `, of ${unit.bytes(r.memory_total)}` : '');

const tile = (name, value, note) => {
	const t = make('div', undefined, 'tile');
	t.append(make('dt', name), make('dd', value, 'value'));
	if (note) t.append(make('dd', note, 'soft'));
	return t;
};

// Text with commands in backticks.
const withCode = text => text.split('`').map((x, i) => make(i % 2 ? 'code' : 'span', x));
const finding = f => {
	const e = make('li'), what = make('strong');
	what.append(...withCode(f.what));
	e.append(what);
	if (f.change) e.append(' → ', ...withCode(f.change));
	if (f.gain) e.append(make('span', ` (up to ${f.gain.toFixed(2)} times as fast)`, 'soft'));
	return e;
};
const health = r => {
	const list = r.findings ?? [];
	const box = make('div', undefined, 'health');
	if (!list.length) {
		const text = r.state === 'running' ? 'Healthy: doctor finds no problem so far' :
			r.state === 'lost' ? 'Lost: the process is gone without having ended' : 'Doctor finds no problem';
		box.append(make('p', text, r.state === 'lost' ? 'bad' : 'good'));
		return box;
	}
	box.append(make('p', list.length === 1 ? 'Doctor finds a problem:' : `Doctor finds ${list.length} problems:`, 'warn'));
	const ul = make('ul');
	ul.append(...list.map(finding));
	box.append(ul);
	return box;
};

// The headline of a single run.
const headline = r => {
	const box = make('div', undefined, 'card head'), top = make('div', undefined, 'bar'), dl = make('dl'), n = r.numbers;
	const name = make('h2', r.name), line = make('div', undefined, 'times');
	top.append(name, stateMark(r));
	if (r.device) top.append(make('span', [r.device, r.driver].filter(Boolean).join(' · '), 'soft'));
	const where = make('strong', percent(r) || stepText(r), 'big');
	line.append(where);
	if (percent(r)) line.append(make('span', stepText(r)));
	if (elapsedText(r)) {
		const e = make('span');
		e.append(make('span', elapsedText(r), 'elapsed'), ' elapsed');
		line.append(e);
	}
	if (toGoText(r)) {
		const e = make('strong');
		e.append(make('span', toGoText(r), 'to-go'), ' to go');
		line.append(e, make('span', `until about ${clock(Date.now() / 1000 + r.to_go - age(r)).slice(0, -3)}`, 'soft'));
	}
	if (r.state !== 'running' && r.newest) line.append(make('span', `last record ${clock(r.newest)}`, 'soft'));
	dl.append(tile('Loss', r.loss === null ? '–' : unit.loss(r.loss)));
	if (r.val_loss !== null || n.val_loss !== undefined)
		dl.append(tile('Validation loss', unit.loss(r.val_loss), n.perplexity ? `perplexity ${unit.number(+n.perplexity.toPrecision(4))}` : ''));
	if (r.tokens_per_s !== null)
		dl.append(tile('Speed', `${unit.rate(r.tokens_per_s)}tokens/s`.replace(/([kMG])tokens/, '$1 tokens')));
	else if (typeof n.samples_per_s === 'number')
		dl.append(tile('Speed', `${unit.rate(n.samples_per_s)}samples/s`.replace(/([kMG])samples/, '$1 samples')));
	if (r.memory !== undefined) dl.append(tile('Memory', memoryText(r), memoryNote(r)));
	if (r.utilisation !== null) dl.append(tile('Utilisation', unit.share(r.utilisation), /^cpu/.test(r.device) ? 'of the processors' : 'of the device'));
	if (n.lr !== undefined) dl.append(tile('Learning rate', unit.number(n.lr)));
	if (n.tokens !== undefined) dl.append(tile('Tokens', unit.number(n.tokens)));
	box.append(top, progress(r), line, dl, health(r));
	if (r.error && !r.findings?.length) box.append(make('p', r.error, 'bad'));
	return box;
};

// The list of several runs; a row stays the same element, so that the keyboard's focus stays.
const listHead = ['Draw', 'Run', 'State', 'Progress', 'To go', 'Loss', 'Valid', 'Tokens/s', 'Memory', 'Device', 'Problems'];
const rows = new Map();
let listBody;
const listTable = () => {
	const t = make('table', undefined, 'runs'), h = make('tr'), top = make('thead');
	t.setAttribute('role', 'table');
	listBody = make('tbody');
	t.setAttribute('aria-label', 'Runs');
	t.append(top, listBody);
	for (const e of [top, listBody]) e.setAttribute('role', 'rowgroup');
	h.setAttribute('role', 'row');
	listHead.forEach((x, i) => {
		const th = make('th', x, i >= 4 && i <= 8 ? 'n' : '');
		th.scope = 'col';
		th.setAttribute('role', 'columnheader');
		h.append(th);
	});
	top.append(h);
	return t;
};
const listRow = (r, choose) => {
	let row = rows.get(r.run);
	if (!row) {
		const tr = make('tr'), box = make('input'), label = make('label'), chip = make('span', undefined, 'chip'), name = make('span', undefined, 'name');
		tr.setAttribute('role', 'row');
		box.type = 'checkbox';
		box.onchange = () => choose(r.run, box.checked);
		const cells = listHead.map((x, i) => {
			const cell = make(i === 1 ? 'th' : 'td', undefined, i >= 4 && i <= 8 ? 'n' : '');
			cell.dataset.label = x;
			cell.setAttribute('role', i === 1 ? 'rowheader' : 'cell');
			if (i === 1) cell.scope = 'row';
			tr.append(cell);
			return cell;
		});
		cells[0].append(box, chip);
		cells[1].append(label);
		box.id = `run-${r.run}`;
		label.htmlFor = box.id;
		label.append(name);
		row = { tr, box, chip, name, cells };
		rows.set(r.run, row);
		listBody.append(tr);
	}
	const color = colorOf(r.run), c = row.cells, problems = r.findings ? r.findings.length : null;
	row.box.checked = color >= 0;
	row.box.disabled = color < 0 && chosen.filter(i => i !== null).length >= colors;
	row.chip.className = color >= 0 ? `chip c${color}` : 'chip none';
	row.name.textContent = r.name;
	const cell = (i, ...what) => c[i].replaceChildren(...what);
	cell(2, stateMark(r));
	cell(3, progress(r), make('span', [percent(r), stepText(r), elapsedText(r)].filter(Boolean).join(' · '), 'soft'));
	cell(4, make('span', toGoText(r) || '–', 'to-go'));
	cell(5, r.loss === null ? '–' : unit.loss(r.loss));
	cell(6, r.val_loss === null ? '–' : unit.loss(r.val_loss));
	const samples = r.numbers?.samples_per_s;
	cell(7, r.tokens_per_s !== null ? unit.rate(r.tokens_per_s).trim() : typeof samples === 'number' ? `${unit.rate(samples).trim()} samples` : '–');
	cell(8, memoryText(r));
	cell(9, r.device || '–');
	cell(10, make('span', problems === null ? '–' : problems ? `${problems} found` : 'none', problems ? 'warn' : problems === 0 ? 'good' : 'soft'));
};
