// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms along one axis, of complex numbers as pairs [..,2] and of real ones,
// and short-time transforms composed of them.
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/sized.h"
#include "graph/record.h"
#include "ops/pairs.h"
#include "ops/rules.h"
#include "yoke-math.h"

enum {
	COMPLEX,
	REAL,
	HALF
}; // kinds: of pairs; of real numbers to half of their spectrum; the reverse

// The attributes of FFT, in the order of the ABI.
struct fft {
	int64_t kind, n, inverse, weight;
	double scale;
};
enum { ATTRS = sizeof(struct fft) / sizeof(union yoke_attr) };

static struct fft fft_of(const union yoke_attr *attr)
{
	struct fft f;
	memcpy(&f, attr, sizeof f);
	return f;
}

static yk_id transform(struct yk_graph *g, yk_id x, const struct fft *f)
{
	union yoke_attr a[ATTRS];
	memcpy(a, f, sizeof a);
	return yk_record(g, YK_FFT, 1, &x, ATTRS, a);
}

static int shape_fft(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	const struct fft f = fft_of(c->attr);
	const int64_t half = f.n / 2 + 1;
	const int pair = f.kind != REAL, at = x->rank - 1 - pair;
	if (x->dtype != yoke_f32 && x->dtype != yoke_f64)
		return fail_one(g, c, YOKE_EDTYPE, "takes f32 or f64, got", x);
	if (at < 0 || (pair && x->dims[x->rank - 1] != 2) ||
	    x->dims[at] != (f.kind == HALF ? half : f.n) || f.n < 1)
		return fail_one(g, c, YOKE_ESHAPE,
				"takes [..,n] or pairs [..,n,2], n at least 1, got", x);
	*out = *x;
	if (f.kind == REAL) {
		out->dims[at] = half;
		out->dims[out->rank++] = 2;
	} else if (f.kind == HALF) {
		out->dims[at] = f.n;
		out->rank--;
	}
	return want_size(g, c, out);
}

// The adjoint: the transform with the opposite exponent; half and real spectra exchange their
// roles.
static void grad_fft(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct fft f = fft_of(yk_attrs(g, &g->node[node]));
	f.inverse = !f.inverse;
	if (f.kind != COMPLEX)
		f.kind = f.kind == REAL ? HALF : REAL;
	gin[0] = transform(g, gout[0], &f);
}

// ---- decomposition: products with the matrix of a short transform, which longer ones use ----

enum { DIRECT = 32 }; // the longest transform that is a product

// cos and sin of 2 pi k / n for integers k, which are reduced exactly
static struct yk_pair turns(struct yk_graph *g, yk_id k, int64_t n, int dtype)
{
	k = yk_bin_lit(g, YK_MOD, k, (double)n);
	k = yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_GT, k, (double)(n / 2)),
		   yk_bin_lit(g, YK_SUB, k, (double)n), k);
	k = yk_bin_lit(g, YK_MUL, k == YK_BAD ? k : yk_cast(g, k, dtype), 2 * M_PI / (double)n);
	return (struct yk_pair){ yk_un(g, YK_COS, k), yk_un(g, YK_SIN, k) };
}

// 0 .. n - 1 along axis `at` of `rank`
static yk_id counting(struct yk_graph *g, int64_t n, int rank, int at)
{
	int64_t dims[YOKE_MAX_RANK];
	for (int i = 0; i < rank; i++)
		dims[i] = i == at ? n : 1;
	return yk_reshape(g, yk_counting(g, n), rank, dims);
}

static struct yk_pair directed(struct yk_graph *g, struct yk_pair turn, bool inverse)
{
	return inverse ? turn : yk_pair_conj(g, turn);
}

// x [B,n,2] times the matrix [n,2,n,2]
static yk_id direct(struct yk_graph *g, yk_id x, const struct fft *f)
{
	const struct yk_value v = g->value[x];
	const struct yk_pair w =
		turns(g, yk_bin(g, YK_MUL, counting(g, f->n, 4, 0), counting(g, f->n, 4, 2)), f->n,
		      v.dtype);
	const yk_id cross =
		yk_cast(g, yk_bin(g, YK_SUB, counting(g, 2, 4, 1), counting(g, 2, 4, 3)), v.dtype);
	const yk_id same =
		yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_EQ, cross, 0), w.re, lit_like(g, w.re, 0));
	yk_id m = yk_bin(g, f->inverse ? YK_SUB : YK_ADD, same, yk_bin(g, YK_MUL, cross, w.im));
	m = yk_reshape(g, m, 2, (int64_t[]){ 2 * f->n, 2 * f->n });
	x = yk_matmul(g, yk_reshape(g, x, 2, (int64_t[]){ v.dims[0], 2 * f->n }), m, 0);
	return yk_reshape(g, x, 3, v.dims);
}

// n = a b: columns, twiddle factors, rows (Gentleman and Sande 1966)
static yk_id steps(struct yk_graph *g, yk_id x, const struct fft *f, int64_t a)
{
	const int64_t b = f->n / a, count = g->value[x].dims[0];
	const int swap[4] = { 0, 2, 1, 3 };
	struct fft part = *f;
	part.scale = 1;
	part.n = a;
	x = yk_permute(g, yk_reshape(g, x, 4, (int64_t[]){ count, a, b, 2 }), swap);
	x = transform(g, x, &part); // [count,b,a,2]
	if (x == YK_BAD)
		return x;
	const struct yk_pair w =
		turns(g, yk_bin(g, YK_MUL, counting(g, b, 2, 0), counting(g, a, 2, 1)), f->n,
		      g->value[x].dtype);
	x = yk_pair_join(g, yk_pair_mul(g, yk_pair_of(g, x, false), directed(g, w, f->inverse)));
	part.n = b;
	x = transform(g, x == YK_BAD ? x : yk_permute(g, x, swap), &part); // [count,a,b,2]
	return yk_reshape(g, x == YK_BAD ? x : yk_permute(g, x, swap), 3,
			  (int64_t[]){ count, f->n, 2 });
}

// A transform of any length as a convolution of length m, a power of two (Bluestein 1970)
static yk_id chirp(struct yk_graph *g, yk_id x, const struct fft *f)
{
	const struct yk_value v = g->value[x];
	int64_t m = 1;
	while (m < 2 * f->n - 1)
		m *= 2;
	struct fft part = { COMPLEX, m, 0, 1, 1 };
	yk_id k = yk_counting(g, f->n), d = yk_counting(g, m);
	const struct yk_pair w =
		directed(g, turns(g, yk_bin(g, YK_MUL, k, k), 2 * f->n, v.dtype), f->inverse);
	d = yk_bin(g, YK_MIN, d, yk_bin_lit(g, YK_ADD, yk_un(g, YK_NEG, d), (double)m));
	struct yk_pair h = yk_pair_conj(
		g, directed(g, turns(g, yk_bin(g, YK_MUL, d, d), 2 * f->n, v.dtype), f->inverse));
	const yk_id zero = yk_lit(g, v.dtype, 0), inside = yk_bin_lit(g, YK_LT, d, (double)f->n);
	h.re = yk_tri(g, YK_SELECT, inside, h.re, zero);
	h.im = yk_tri(g, YK_SELECT, inside, h.im, zero);
	x = yk_pair_join(g, yk_pair_mul(g, yk_pair_of(g, x, false), w));
	x = transform(g, yk_pad(g, x, (int64_t[]){ 0, 0, 0 }, (int64_t[]){ 0, m - f->n, 0 }, 0),
		      &part);
	h = yk_pair_of(g, transform(g, yk_pair_join(g, h), &part), false);
	x = yk_pair_join(g, x == YK_BAD ? h : yk_pair_mul(g, yk_pair_of(g, x, false), h));
	part.inverse = 1;
	part.scale = 1 / (double)m;
	x = yk_slice_axis(g, transform(g, x, &part), 1, 0, f->n);
	return x == YK_BAD ? x : yk_pair_join(g, yk_pair_mul(g, yk_pair_of(g, x, false), w));
}

// The divisor of n from 2 to DIRECT or sqrt(n), whichever is larger, that is nearest to sqrt(n); 1:
// none
static int64_t balanced(int64_t n)
{
	int64_t best = 1;
	for (int64_t a = 2; a * a <= n; a++)
		if (n % a == 0)
			best = a;
	return best;
}

// The weights of a half spectrum [n/2+1,1]: 1 at its ends, and `weight` between
static yk_id weights(struct yk_graph *g, const struct fft *f, int dtype)
{
	const yk_id k = counting(g, f->n / 2 + 1, 2, 0);
	const yk_id twice = yk_bin_lit(g, YK_MUL, k, 2);
	const yk_id end = yk_bin(g, YK_OR, yk_bin_lit(g, YK_EQ, k, 0),
				 yk_bin_lit(g, YK_EQ, twice, (double)f->n));
	return yk_tri(g, YK_SELECT, end, yk_lit(g, dtype, 1), yk_lit(g, dtype, (double)f->weight));
}

static void decompose_fft(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	struct fft f = fft_of(c->attr);
	const struct yk_value v = g->value[c->in[0]];
	const int pair = f.kind != REAL;
	int64_t count = 1, lo[3] = { 0 }, hi[3] = { 0 };
	for (int i = 0; i < v.rank - 1 - pair; i++)
		count *= v.dims[i];
	struct yk_value y = v;
	yk_id x = yk_reshape(g, c->in[0], 3,
			     (int64_t[]){ count, v.dims[v.rank - 1 - pair], pair ? 2 : 1 });
	if (f.kind == REAL) {
		hi[2] = 1;
		x = yk_pad(g, x, lo, hi, 0);
		y.dims[v.rank - 1] = f.n / 2 + 1;
		y.dims[y.rank++] = 2;
	} else if (f.kind == HALF) {
		if (f.weight != 1)
			x = yk_bin(g, YK_MUL, x, weights(g, &f, v.dtype));
		hi[1] = f.n - (f.n / 2 + 1);
		x = yk_pad(g, x, lo, hi, 0);
		y.dims[v.rank - 2] = f.n;
		y.rank--;
	}
	const struct fft full = { COMPLEX, f.n, f.inverse, 1, f.scale };
	if (f.kind != COMPLEX) {
		x = transform(g, x, &full);
	} else {
		const int64_t a = f.n > DIRECT ? balanced(f.n) : 1;
		if (x == YK_BAD)
			return;
		x = f.n <= DIRECT ? direct(g, x, &f) : a > 1 ? steps(g, x, &f, a) : chirp(g, x, &f);
		if (f.scale != 1)
			x = yk_bin_lit(g, YK_MUL, x, f.scale);
	}
	if (f.kind == REAL) {
		x = yk_slice_axis(g, x, 1, 0, f.n / 2 + 1);
		if (f.weight != 1)
			x = yk_bin(g, YK_MUL, x, weights(g, &f, v.dtype));
	} else if (f.kind == HALF) {
		x = yk_slice_axis(g, x, 2, 0, 1);
	}
	out[0] = yk_reshape(g, x, y.rank, y.dims);
}

YK_OP(FFT) = { .name = "fft",
	       .code = YOKE_OP_FFT,
	       .flags = YK_F_FLOAT,
	       .cast = YK_CAST_F32,
	       .min_in = 1,
	       .max_in = 1,
	       .nout = 1,
	       .shape = shape_fft,
	       .grad = grad_fft,
	       .decompose = decompose_fft };

// ---- transforms along an axis ----

// The factor of a transform of n elements; -1: no such norm.
static double scale_of(int norm, bool inverse, int64_t n)
{
	switch (norm) {
	case YOKE_FFT_BACKWARD: return inverse ? 1 / (double)n : 1;
	case YOKE_FFT_ORTHO: return 1 / sqrt((double)n);
	case YOKE_FFT_FORWARD: return inverse ? 1 : 1 / (double)n;
	}
	return -1;
}

// x with `n` elements along an axis, the first ones, or followed by zeros
static yk_id resized(struct yk_graph *g, yk_id x, int axis, int64_t n)
{
	int64_t lo[YOKE_MAX_RANK] = { 0 }, hi[YOKE_MAX_RANK] = { 0 };
	if (x == YK_BAD || g->value[x].dims[axis] == n)
		return x;
	if (g->value[x].dims[axis] > n)
		return yk_slice_axis(g, x, axis, 0, n);
	hi[axis] = n - g->value[x].dims[axis];
	return yk_pad(g, x, lo, hi, 0);
}

// The number of axes without the last one of pairs; -1, with an error, if the operand does not fit.
static int axes_of(struct yk_rec *r, yk_id x, bool pairs)
{
	char text[160];
	if (x == YK_BAD)
		return -1;
	const struct yk_value *v = &r->g->value[x];
	if (v->dtype != yoke_f32 && v->dtype != yoke_f64)
		yk_rec_fail(r, YOKE_EDTYPE, "takes f32 or f64, got %s", yk_describe(v, text));
	else if (pairs && (v->rank < 2 || v->dims[v->rank - 1] != 2))
		yk_rec_fail(r, YOKE_ESHAPE, "takes pairs (re, im) along a last axis of 2, got %s",
			    yk_describe(v, text));
	else if (!pairs && (v->rank < 1 || v->rank == YOKE_MAX_RANK))
		yk_rec_fail(r, YOKE_ESHAPE, "takes 1 to %d axes, got %s", YOKE_MAX_RANK - 1,
			    yk_describe(v, text));
	else
		return v->rank - pairs;
	return -1;
}

// The transform of x along an axis from 0; n 0: x's length.
static yk_id along(struct yk_rec *r, yk_id x, int kind, int64_t n, int axis, int norm, bool inverse)
{
	char text[160];
	if (x == YK_BAD)
		return x;
	const struct yk_value v = r->g->value[x];
	const int last = v.rank - 1 - (kind != REAL);
	const int64_t size = v.dims[axis];
	struct fft f = { kind, n, inverse, kind == HALF ? 2 : 1, 0 };
	if (!n)
		f.n = kind == HALF ? 2 * (size - 1) : size;
	if (f.n < 1 || f.n > INT32_MAX) {
		yk_rec_fail(r, YOKE_ERANGE, "a transform of %lld elements along axis %d of %s",
			    (long long)f.n, axis, yk_describe(&v, text));
		return YK_BAD;
	}
	if ((f.scale = scale_of(norm, inverse, f.n)) < 0) {
		yk_rec_fail(r, YOKE_EINVAL, "norm %d is none of yoke_fft_norm, 0 to 2", norm);
		return YK_BAD;
	}
	x = resized(r->g, x, axis, kind == HALF ? f.n / 2 + 1 : f.n);
	return yk_exchange(r->g, transform(r->g, yk_exchange(r->g, x, axis, last), &f), axis, last);
}

static yoke_tensor *one(const char *call, yoke_tensor *t, int kind, int64_t n, int axis, int norm,
			bool inverse)
{
	struct yk_rec r = yk_rec_begin_as(call, YK_FFT, 0, 1, &t);
	const int rank = axes_of(&r, r.in[0], kind != REAL);
	char text[160];
	if (rank < 0)
		return yk_rec_end(&r, YK_BAD);
	if (n < 0 || axis < -rank || axis >= rank) {
		yk_rec_fail(&r, n < 0 ? YOKE_ERANGE : YOKE_ESHAPE, "n %lld, axis %d of %s",
			    (long long)n, axis, yk_describe(&r.g->value[r.in[0]], text));
		return yk_rec_end(&r, YK_BAD);
	}
	return yk_rec_end(
		&r, along(&r, r.in[0], kind, n, axis < 0 ? axis + rank : axis, norm, inverse));
}

yoke_tensor *yoke_fft(yoke_tensor *x, int64_t n, int axis, int norm)
{
	return one("fft", x, COMPLEX, n, axis, norm, false);
}

yoke_tensor *yoke_ifft(yoke_tensor *x, int64_t n, int axis, int norm)
{
	return one("ifft", x, COMPLEX, n, axis, norm, true);
}

yoke_tensor *yoke_rfft(yoke_tensor *x, int64_t n, int axis, int norm)
{
	return one("rfft", x, REAL, n, axis, norm, false);
}

yoke_tensor *yoke_irfft(yoke_tensor *x, int64_t n, int axis, int norm)
{
	return one("irfft", x, HALF, n, axis, norm, true);
}

// Along all axes of a mask; the highest is the one of real numbers, of n elements after an inverse.
static yoke_tensor *several(const char *call, yoke_tensor *t, int kind, int64_t n, unsigned axes,
			    int norm, bool inverse)
{
	struct yk_rec r = yk_rec_begin_as(call, YK_FFT, 0, 1, &t);
	const int rank = axes_of(&r, r.in[0], kind != REAL);
	char text[160];
	int last = -1;
	yk_id x = r.in[0];
	if (rank < 0)
		return yk_rec_end(&r, YK_BAD);
	if (axes == YOKE_ALL)
		axes = (1u << rank) - 1;
	if (!axes || axes >> rank || n < 0) {
		yk_rec_fail(&r, n < 0 ? YOKE_ERANGE : YOKE_ESHAPE, "n %lld, axes %#x of %s",
			    (long long)n, axes, yk_describe(&r.g->value[x], text));
		return yk_rec_end(&r, YK_BAD);
	}
	for (int k = 0; k < rank; k++)
		if (axes >> k & 1)
			last = k;
	if (kind == REAL)
		x = along(&r, x, kind, 0, last, norm, inverse);
	for (int k = rank - 1; k >= 0; k--)
		if (axes >> k & 1 && (kind == COMPLEX || k != last))
			x = along(&r, x, COMPLEX, 0, k, norm, inverse);
	if (kind == HALF)
		x = along(&r, x, kind, n, last, norm, inverse);
	return yk_rec_end(&r, x);
}

yoke_tensor *yoke_fftn(yoke_tensor *x, unsigned axes, int norm)
{
	return several("fftn", x, COMPLEX, 0, axes, norm, false);
}

yoke_tensor *yoke_ifftn(yoke_tensor *x, unsigned axes, int norm)
{
	return several("ifftn", x, COMPLEX, 0, axes, norm, true);
}

yoke_tensor *yoke_rfftn(yoke_tensor *x, unsigned axes, int norm)
{
	return several("rfftn", x, REAL, 0, axes, norm, false);
}

yoke_tensor *yoke_irfftn(yoke_tensor *x, int64_t n, unsigned axes, int norm)
{
	return several("irfftn", x, HALF, n, axes, norm, true);
}

// ---- short-time transforms ----

struct frames {
	int64_t n, hop; // elements of a frame, and between the beginnings of two
	bool center, ortho;
	yk_id window; // [n]
};

static const struct yoke_stft_options none = { .size = sizeof none };

// Checks the options and pads the window to a frame; false after an error.
static bool frames_of(struct yk_rec *r, yk_id x, yk_id window, int64_t n,
		      const struct yoke_stft_options *given, struct frames *to)
{
	struct yoke_stft_options o = none;
	char a[160], b[160];
	if (given && yk_sized_read(&o, sizeof o, given, r->g->call, "yoke_stft_options") < 0)
		return false;
	*to = (struct frames){ n,
			       o.hop ? o.hop :
			       n < 4 ? 1 :
				       n / 4,
			       !o.uncentered, o.normalized != 0, window };
	if (n < 1 || n > INT32_MAX || to->hop < 1 || to->hop > INT32_MAX) {
		yk_rec_fail(r, YOKE_ERANGE, "frames of %lld elements, %lld apart", (long long)n,
			    (long long)to->hop);
		return false;
	}
	const struct yk_value v = r->g->value[x];
	if (window == YK_NIL) {
		to->window = yk_broadcast(r->g, yk_lit(r->g, v.dtype, 1), 1, &n);
		return true;
	}
	if (window == YK_BAD)
		return false;
	const struct yk_value w = r->g->value[window];
	if (w.rank != 1 || w.dims[0] < 1 || w.dims[0] > n || w.dtype != v.dtype) {
		yk_rec_fail(r, w.dtype != v.dtype ? YOKE_EDTYPE : YOKE_ESHAPE,
			    "takes a window [1..%lld] of x's dtype, got x %s and window %s",
			    (long long)n, yk_describe(&v, a), yk_describe(&w, b));
		return false;
	}
	const int64_t lo = (n - w.dims[0]) / 2, hi = n - w.dims[0] - lo;
	to->window = lo || hi ? yk_pad(r->g, window, &lo, &hi, 0) : window;
	return true;
}

// x [..,N] with `by` elements mirrored at both ends
static yk_id mirrored(struct yk_graph *g, yk_id x, int64_t by)
{
	const int axis = g->value[x].rank - 1;
	const int64_t n = g->value[x].dims[axis];
	const yk_id k =
		yk_un(g, YK_ABS, yk_bin_lit(g, YK_SUB, yk_counting(g, n + 2 * by), (double)by));
	const yk_id at = yk_bin(g, YK_MIN, k,
				yk_bin_lit(g, YK_ADD, yk_un(g, YK_NEG, k), (double)(2 * (n - 1))));
	return yk_record(g, YK_GATHER, 2, (yk_id[]){ x, at }, 1, &(union yoke_attr){ .i = axis });
}

yoke_tensor *yoke_stft(yoke_tensor *t, yoke_tensor *window, int64_t n,
		       const struct yoke_stft_options *options)
{
	struct yk_rec r = yk_rec_begin_with(YK_FFT, 2u, 2, (yoke_tensor *[]){ t, window });
	struct frames f;
	char text[160];
	yk_id x = r.in[0];
	if (axes_of(&r, x, false) < 0 || !frames_of(&r, x, r.in[1], n, options, &f))
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value v = r.g->value[x];
	const int last = v.rank - 1;
	if (v.rank > YOKE_MAX_RANK - 2 || v.dims[last] <= (f.center ? n / 2 : n - 1)) {
		yk_rec_fail(&r, YOKE_ESHAPE, "frames of %lld elements of %s", (long long)n,
			    yk_describe(&v, text));
		return yk_rec_end(&r, YK_BAD);
	}
	if (f.center)
		x = mirrored(r.g, x, n / 2);
	x = yk_record(r.g, YK_WINDOW, 1, &x, 4,
		      (union yoke_attr[]){ { .i = last }, { .i = n }, { .i = f.hop }, { .i = 1 } });
	x = yk_bin(r.g, YK_MUL, x, f.window);
	x = along(&r, x, REAL, n, last + 1, f.ortho ? YOKE_FFT_ORTHO : YOKE_FFT_BACKWARD, false);
	return yk_rec_end(&r, yk_exchange(r.g, x, last, last + 1));
}

yoke_tensor *yoke_istft(yoke_tensor *t, yoke_tensor *window, int64_t n, int64_t length,
			const struct yoke_stft_options *options)
{
	struct yk_rec r = yk_rec_begin_with(YK_FFT, 2u, 2, (yoke_tensor *[]){ t, window });
	struct frames f;
	char text[160];
	yk_id x = r.in[0];
	if (axes_of(&r, x, true) < 0 || !frames_of(&r, x, r.in[1], n, options, &f))
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value v = r.g->value[x];
	const int last = v.rank - 3; // the axis of frequencies, then of frames
	const int64_t count = last < 0 ? 0 : v.dims[last + 1];
	const int64_t whole = n + f.hop * (count - 1), begin = f.center ? n / 2 : 0;
	const int64_t size = length ? length : whole - 2 * begin;
	if (last < 0 || v.dims[last] != n / 2 + 1 || count < 1 || size < 1 || length < 0) {
		yk_rec_fail(&r, YOKE_ESHAPE,
			    "takes [..,%lld,T,2] for frames of %lld elements and a length of 0 or "
			    "more, got %s and %lld",
			    (long long)(n / 2 + 1), (long long)n, yk_describe(&v, text),
			    (long long)length);
		return yk_rec_end(&r, YK_BAD);
	}
	x = yk_exchange(r.g, x, last, last + 1);
	x = along(&r, x, HALF, n, last + 1, f.ortho ? YOKE_FFT_ORTHO : YOKE_FFT_BACKWARD, true);
	x = yk_bin(r.g, YK_MUL, x, f.window);
	yk_id square =
		yk_broadcast(r.g, yk_un(r.g, YK_SQUARE, f.window), 2, (int64_t[]){ count, n });
	union yoke_attr a[5] = {
		{ .i = last }, { .i = n }, { .i = f.hop }, { .i = 1 }, { .i = whole }
	};
	x = yk_record(r.g, YK_WINDOW_ADD, 1, &x, 5, a);
	a[0].i = 0;
	square = yk_record(r.g, YK_WINDOW_ADD, 1, &square, 5, a);
	const int64_t end = begin + size < whole ? begin + size : whole;
	x = yk_bin(r.g, YK_DIV, yk_slice_axis(r.g, x, last, begin, end - begin),
		   yk_slice_axis(r.g, square, 0, begin, end - begin));
	return yk_rec_end(&r, resized(r.g, x, last, size));
}
