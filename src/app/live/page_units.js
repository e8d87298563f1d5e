'use strict';
// Numbers as people read them: three or four digits, with a unit.

const scaled = (x, steps, digits = 3) => {
	let [from, size, unit] = steps[0];
	for (const s of steps) if (Math.abs(x) >= s[0] * 0.9995) [from, size, unit] = s;
	const y = x / size;
	return `${Math.abs(y) >= 10 ** digits ? String(Math.round(y)) : String(+y.toPrecision(digits))}${unit && ' ' + unit}`;
};
const thousands = [[0, 1, ''], [1e4, 1e3, 'k'], [1e6, 1e6, 'M'], [1e9, 1e9, 'G'], [1e12, 1e12, 'T'], [1e15, 1e15, 'P']];
const powers = [[0, 1, 'B'], [1024, 1024, 'KiB'], [2 ** 20, 2 ** 20, 'MiB'], [2 ** 30, 2 ** 30, 'GiB'], [2 ** 40, 2 ** 40, 'TiB']];
const unit = {
	number: x => Math.abs(x) < 1e4 && Number.isInteger(x) ? String(x) : Math.abs(x) < 1e-3 && x ? x.toExponential(2).replace('e-', 'e−') :
		scaled(x, thousands, 4),
	loss: x => Math.abs(x) >= 1e-3 && Math.abs(x) < 1e4 ? x.toFixed(4) : unit.number(x),
	bytes: x => scaled(x, powers),
	seconds: x => Math.abs(x) >= 120 ? unit.duration(x) : x === 0 ? '0 s' : scaled(x, [[0, 1e-6, 'µs'], [1e-3, 1e-3, 'ms'], [1, 1, 's']]),
	share: x => `${+(100 * x).toPrecision(3)} %`,
	rate: x => { const s = scaled(x, thousands); return s.includes(' ') ? s : s + ' '; },
	hertz: x => scaled(x, [[0, 1, 'Hz'], [1e3, 1e3, 'kHz'], [1e6, 1e6, 'MHz'], [1e9, 1e9, 'GHz']]),
	celsius: x => `${Math.round(x)} °C`,
	watts: x => scaled(x, [[0, 1, 'W'], [1e3, 1e3, 'kW']]),
	joules: x => scaled(x, [[0, 1, 'J'], [1e3, 1e3, 'kJ'], [1e6, 1e6, 'MJ']]),
	count: x => unit.number(x),
	// 42 s, 2:13 min, 3 h 12 min, 2 d 3 h
	duration: x => {
		const s = Math.round(x), two = n => String(n).padStart(2, '0');
		if (s < 60) return `${s} s`;
		if (s < 3600) return `${Math.floor(s / 60)}:${two(s % 60)} min`;
		if (s < 172800) return `${Math.floor(s / 3600)} h ${two(Math.floor(s / 60) % 60)} min`;
		return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
	},
};
// The unit of a recorded quantity follows from the end of its name.
const unitNames = [
	[/_per_s$/, x => unit.rate(x).trim()], [/loss$/, unit.loss],
	[/(^|\W)(rss|rss_peak|mem_used|mem_total|pool_(allocated|peak|reserved)|memory_(total|available|limit|used)|\w*bytes)$/, unit.bytes],
	[/(_s|^seconds| seconds)$/, unit.seconds], [/(^|\W|_)(cpu|util|fan)$/, unit.share], [/temp_c$/, unit.celsius],
	[/power\w*_w$/, unit.watts], [/energy_j$/, unit.joules], [/_hz$/, unit.hertz],
];
const show = (name, x) => {
	if (x === null || x === undefined) return '–';
	if (typeof x !== 'number') return String(x);
	if (/process_cpu$/.test(name)) return `${+x.toPrecision(3)} processors`;
	const u = unitNames.find(([pattern]) => pattern.test(name));
	return u ? u[1](x) : unit.number(x);
};
// Exact to the second; with the day if that is not today's.
const clock = t => {
	const d = new Date(1000 * t), today = new Date().toDateString() === d.toDateString(), two = n => String(n).padStart(2, '0');
	const time = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
	return today ? time : `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${time}`;
};
