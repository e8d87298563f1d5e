// SPDX-License-Identifier: Apache-2.0
// Packs the windows of a convolution as operand b, and stores its sums: see struct yk_windows.
// Copies whole vectors even where a run ends within one: the excess is overwritten by the next run
// or the next row of the panel, and the padded image allows the reads. Included after
// kern_contract_pack.h.

// A position of the output: an image, a plane of it, a row of the plane, and x within the row.
struct position {
	int64_t image, plane, row, x;
};

static struct position position_of(const struct yk_windows *w, int64_t p)
{
	const int64_t row = p / w->width, plane = row / w->height;
	return (struct position){ plane / w->depth, plane % w->depth, row % w->height,
				  p % w->width };
}

static void position_after(const struct yk_windows *w, struct position *p, int64_t n)
{
	p->x += n;
	if (p->x < w->width)
		return;
	p->x = 0;
	if (++p->row < w->height)
		return;
	p->row = 0;
	if (++p->plane == w->depth) {
		p->plane = 0;
		p->image++;
	}
}

static int64_t place_in_b(const struct yk_windows *w, const struct position *p)
{
	return p->image * w->image_step + p->plane * w->plane_step + p->row * w->row_step + p->x;
}

FLAT void copy_run(T *to, const T *from, int64_t n)
{
	for (int64_t v = 0; v < n; v += VL)
		*(vec_u *)(to + v) = *(const vec_u *)(from + v);
}

// Copies n vectors of each of k rows: vector i of row q from b + at[q] + from[i] to element
// to_at[i] of the row.
FLAT void copy_vectors(const int n, T *to, const T *b, const int64_t *at, const int64_t *from,
		       const int *to_at, int64_t k)
{
	for (int64_t q = 0; q < k; q++) {
		const T *row = b + at[q];
#pragma GCC unroll 8
		for (int i = 0; i < n; i++)
			*(vec_u *)(to + q * NR + to_at[i]) = *(const vec_u *)(row + from[i]);
	}
}

// A panel of positions j .. j + wide - 1 for taps l .. l + k - 1.
static void panel_across(T *to, const struct yk_windows *w, const T *b, int64_t j, int wide,
			 int64_t l, int64_t k)
{
	const int64_t *at = w->at + l, whole = wide == NR ? k - 1 : 0;
	struct position p = position_of(w, j);
	int64_t from[NR];
	int to_at[NR], length[NR], n = 0;

	for (int i = 0; i < wide;) {
		const int64_t left = w->width - p.x, run = left < wide - i ? left : wide - i,
			      first = place_in_b(w, &p);
		for (int64_t v = 0; v < run; v += VL, n++) {
			from[n] = first + v;
			to_at[n] = i + (int)v;
			length[n] = (int)(run - v < VL ? run - v : VL);
		}
		i += (int)run;
		position_after(w, &p, run);
	}
	switch (n) {
	case 2: copy_vectors(2, to, b, at, from, to_at, whole); break;
	case 3: copy_vectors(3, to, b, at, from, to_at, whole); break;
	case 4: copy_vectors(4, to, b, at, from, to_at, whole); break;
	default: copy_vectors(n, to, b, at, from, to_at, whole);
	}
	for (int64_t q = whole; q < k; q++) {
		memset(to + q * NR, 0, NR * sizeof(T));
		for (int i = 0; i < n; i++)
			memcpy(to + q * NR + to_at[i], b + at[q] + from[i],
			       (size_t)length[i] * sizeof(T));
	}
}

// A panel of taps j .. j + wide - 1 for positions l .. l + k - 1.
static void panel_along(T *to, const struct yk_windows *w, const T *b, int64_t j, int wide,
			int64_t l, int64_t k)
{
	enum { RUN = 64 };
	T part[NR][RUN + VL];
	struct position p = position_of(w, l);
	const int64_t apart = wide > 1 ? w->at[j + 1] - w->at[j] : 0;
	// taps equally far apart and long runs: no gathering needed
	bool even = w->width >= RUN / 2;

	if (wide < NR)
		memset(to, 0, (size_t)k * NR * sizeof(T));
	for (int i = 2; i < wide && even; i++)
		even = w->at[j + i] - w->at[j + i - 1] == apart;
	for (int64_t q = 0, n; q < k && even; q += n) {
		n = w->width - p.x < k - q ? w->width - p.x : k - q;
		pack_transposed(to + q * NR, NR, (const char *)(b + place_in_b(w, &p) + w->at[j]),
				apart * (int64_t)sizeof(T), wide, n);
		position_after(w, &p, n);
	}
	for (int64_t q = 0, n; q < k && !even; q += n) {
		for (n = 0; n < RUN && q + n < k;) {
			const T *from = b + place_in_b(w, &p);
			int64_t m = w->width - p.x;
			m = m < RUN - n ? m : RUN - n;
			m = m < k - q - n ? m : k - q - n;
			for (int i = 0; i < wide; i++)
				copy_run(part[i] + n, from + w->at[j + i], m);
			position_after(w, &p, m);
			n += m;
		}
		pack_transposed(to + q * NR, NR, (const char *)part, sizeof part[0], wide, n);
	}
}

// Packs columns j .. j + many - 1 of b, rows l .. l + k - 1.
static void pack_windows(T *to, const struct yk_gemm *g, const char *b, int64_t j, int64_t many,
			 int64_t l, int64_t k)
{
	for (int64_t i = 0; i < many; i += NR)
		(g->win->along ? panel_along :
				 panel_across)(to + i * k, g->win, (const T *)b, j + i,
					       many - i < NR ? (int)(many - i) : NR, l, k);
}

// Writes n numbers to every second element of `to` and leaves the others unchanged; no other thread
// writes those meanwhile.
static void put_second(T *to, const T *from, int64_t n)
{
	typedef T eight __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T)), may_alias));
	int64_t i = 0;

	for (; i + 8 < n; i += 8) {
		const eight x = *(const eight *)(from + i);
		eight *a = (eight *)(to + 2 * i), *b = (eight *)(to + 2 * i + 8);
		*a = YK_SHUFFLE(*a, x, 8, 1, 9, 3, 10, 5, 11, 7);
		*b = YK_SHUFFLE(*b, x, 12, 1, 13, 3, 14, 5, 15, 7);
	}
	for (; i < n; i++)
		to[2 * i] = from[i];
}

// Stores finished sums (m,n), rows ld apart, for positions from j on; element c of the result is
// the beginning of the first row.
static void put_windows(const struct yk_gemm *g, const T *sums, int64_t ld, int64_t c, int64_t j,
			int64_t m, int64_t n)
{
	const struct yk_windows *w = g->win;
	struct position p = position_of(w, j);

	for (int64_t q = 0, many; q < n; q += many) {
		const int64_t left = w->width - p.x;
		const int64_t to = c + p.image * w->c_image + p.plane * w->c_plane +
				   p.row * w->c_row + p.x * w->c_x;
		many = left < n - q ? left : n - q;
		if (g->csize == sizeof(T)) {
			for (int64_t i = 0; i < m; i++) {
				T *line = (T *)g->c + to + i * g->cm;
				const T *from = sums + i * ld + q;
				if (w->c_x == 1)
					memcpy(line, from, (size_t)many * sizeof(T));
				else if (w->c_x == 2)
					put_second(line, from, many);
				else
					for (int64_t k = 0; k < many; k++)
						line[k * w->c_x] = from[k];
			}
		} else {
			struct yk_gemm part = *g;
			part.cn = w->c_x;
			put_sums(&part, sums + q, ld, g->c + to * (int64_t)g->csize, m, many);
		}
		position_after(w, &p, many);
	}
}
