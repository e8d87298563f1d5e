// SPDX-License-Identifier: Apache-2.0
// The half-precision tier in lanes of f32: L and R with the state and each operation rounded to f16
// or bf16 (emulated on every processor), then sweeps over all elements in f32, and a bound of the
// remaining error.

struct half_planes {
	struct planes_f32 f; // the planes of its result receive G
	float *lr, *li, *rr, *ri;
};

static inline __attribute__((always_inline)) vf rounded(vf x, const bool wide_range)
{
	return wide_range ? vf_round_bf16(x) : vf_round_f16(x);
}

// alpha - k / from
static inline __attribute__((always_inline)) struct complex_f32
half_step(vf re, vf im, vf k, struct complex_f32 from, const bool wide_range)
{
	const vf max = larger_f32(size_f32(from.re), size_f32(from.im));
	const vi power = (vi)max & EXPONENT;
	// |from|^2 times the square of scale is in 1 .. 8
	const vf scale = (vf)((vi){ 0 } + TWICE_BIAS - power);
	const vf x = from.re * scale, y = from.im * scale;
	const vf square =
		rounded(rounded(x * x, wide_range) + rounded(y * y, wide_range), wide_range);
	const vf w = rounded(k / square, wide_range);
	const vf ur = rounded(rounded(w * x, wide_range) * scale, wide_range);
	const vf ui = rounded(rounded(w * -y, wide_range) * scale, wide_range);
	return (struct complex_f32){ rounded(re - ur, wide_range), rounded(im - ui, wide_range) };
}

// Computes L from the first element on, or R from the last.
static inline __attribute__((always_inline)) void half_chain(const struct half_planes *p, int64_t n,
							     int wide, const bool from_end,
							     const bool wide_range)
{
	float *re = from_end ? p->rr : p->lr, *im = from_end ? p->ri : p->li;
	for (int q = 0; q < wide / VF; q++) {
		const float(*entry)[2 * VF] = from_end ? p->f.after : p->f.before;
		const vf er = vf_load(entry[0] + q * VF), ei = vf_load(entry[1] + q * VF);
		const vf none = (vf){ 0 };
		// the row begins here: there is no k
		const vi outside = (er == none) & (ei == none);
		const vf y = rounded(-vf_load(p->f.y + q * VF), wide_range);
		struct complex_f32 at = inverse_f32(er, ei, true, 1e-30f);
		at.re = vf_select(outside, splat_f32(1), rounded(at.re, wide_range));
		at.im = vf_select(outside, none, rounded(at.im, wide_range));
		for (int64_t i = 0; i < n; i++) {
			const int64_t t = from_end ? n - 1 - i : i, place = t * wide + q * VF;
			const vf k = rounded(vf_load(p->f.k + place + (from_end ? wide : 0)),
					     wide_range);
			at = half_step(rounded(vf_load(p->f.a + place), wide_range), y, k, at,
				       wide_range);
			to_f32(re, im, place, at);
		}
	}
}

// One sweep over all elements of L or R: each from its neighbour's previous value. Accumulates the
// largest change, squared.
static void half_sweep(const struct half_planes *p, int64_t n, int wide, bool from_end, vf *change)
{
	float *re = from_end ? p->rr : p->lr, *im = from_end ? p->ri : p->li;
	for (int q = 0; q < wide / VF; q++) {
		const float(*entry)[2 * VF] = from_end ? p->f.after : p->f.before;
		const vf y = -vf_load(p->f.y + q * VF);
		vf max = { 0 };
		for (int64_t i = 0; i < n; i++) {
			const int64_t t = from_end ? i : n - 1 - i, place = t * wide + q * VF;
			const vf k = vf_load(p->f.k + place + (from_end ? wide : 0));
			struct complex_f32 u = of_f32(entry[0], entry[1], q * VF);
			if (i < n - 1) {
				u = of_f32(re, im, from_end ? place + wide : place - wide);
				u = inverse_f32(u.re, u.im, false, 0);
			}
			const struct complex_f32 was = of_f32(re, im, place),
						 is = { vf_load(p->f.a + place) - k * u.re,
							y - k * u.im };
			const vf dr = is.re - was.re, di = is.im - was.im, d = dr * dr + di * di;
			to_f32(re, im, place, is);
			max = vf_max_nan(d, max);
		}
		change[q] = max;
	}
}

void ISA(yk_chain_half)(const struct chain_pack *p)
{
	struct chain_job *j = p->job;
	const int64_t n = j->length, each = (n + 1) * PACK;
	const int wide = p->count > W ? PACK : W;
	float z[2 * PACK], *m = memory_f32(p, 8);
	bool odd[PACK] = { false };
	struct half_planes h;
	vf change[2][2] = { { { 0 } } }, high[2], large[2];
	if (!m)
		return;
	prepare_f32(p, &h.f, m, z, odd);
	h.lr = m + 4 * each;
	h.li = m + 5 * each;
	h.rr = m + 6 * each;
	h.ri = m + 7 * each;
	for (int end = 0; end < (j->side ? 1 : 2); end++) {
		if (j->tier == TIER_BF16)
			half_chain(&h, n, wide, end, true);
		else
			half_chain(&h, n, wide, end, false);
		for (int s = 0; s < j->sweeps; s++)
			half_sweep(&h, n, wide, end, change[end]);
	}
	for (int q = 0; q < wide / VF; q++) {
		const vf y = -vf_load(h.f.y + q * VF);
		high[q] = (vf){ 0 };
		large[q] = vf_splat(1);
		for (int64_t t = 0; t < n; t++) {
			const int64_t place = t * wide + q * VF;
			struct complex_f32 d = of_f32(h.lr, h.li, place);
			if (!j->side) {
				const struct complex_f32 r = of_f32(h.rr, h.ri, place);
				d.re += r.re - vf_load(h.f.a + place);
				d.im += r.im - y;
			}
			d = inverse_f32(d.re, d.im, false, 0);
			to_f32(h.f.re, h.f.im, place, d);
			high[q] = vf_max_nan(size_f32(d.im), high[q]);
			large[q] = larger_f32(larger_f32(size_f32(vf_load(h.f.a + place)),
							 vf_load(h.f.k + place)),
					      large[q]);
		}
	}
	for (int l = 0; l < p->count; l++) {
		// rounding in the sweeps acts as if the matrix elements were off by a few roundings
		const double rounding = 0x1p-20 * (double)large[l / VF][l % VF];
		const double delta = sqrt((double)change[0][l / VF][l % VF]) +
				     sqrt((double)change[1][l / VF][l % VF]) + rounding;
		const float max = high[l / VF][l % VF];
		const bool known = j->sweeps && isfinite(delta) && isfinite(max);
		j->bound[2 * p->lane[l].index] = odd[l] ? -1 : known ? (float)delta : INFINITY;
		j->bound[2 * p->lane[l].index + 1] = known ? max : 0;
	}
	store_f32(p, &h.f, NULL, false);
}
