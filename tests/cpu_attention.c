// SPDX-License-Identifier: Apache-2.0
// Attention of the CPU backend, or the OpenCL backend, against float64 loops that keep the whole matrix of
// scores; their gradient is itself held against finite differences.
#include "config.h"

#include "named_op.h"

struct shape {
	int64_t B, T, S, H, G, D;
	bool causal;
	int mask; // bit 0: there is one, bit 1: one for each b, bit 2: one for each h
	double dropout;
	bool fused; // q, k, v are slices of one tensor, and so are dq, dk, dv
	int64_t hidden; // keys at the end that are not there
};

// Philox 4x32-10 (Salmon et al. 2011): 32 bits for one index
static uint32_t philox(uint64_t key, uint64_t step, uint64_t index)
{
	uint32_t c[4] = { (uint32_t)(index / 4), (uint32_t)(index / 4 >> 32),
			  (uint32_t)step, (uint32_t)(step >> 32) };
	uint32_t k[2] = { (uint32_t)key, (uint32_t)(key >> 32) };
	for (int r = 0; r < 10; r++) {
		uint64_t a = UINT64_C(0xd2511f53) * c[0], b = UINT64_C(0xcd9e8d57) * c[2];
		c[0] = (uint32_t)(b >> 32) ^ c[1] ^ k[0];
		c[1] = (uint32_t)b;
		c[2] = (uint32_t)(a >> 32) ^ c[3] ^ k[1];
		c[3] = (uint32_t)a;
		k[0] += 0x9e3779b9;
		k[1] += 0xbb67ae85;
	}
	return c[index % 4];
}

enum { KEY = 0x123457b, STEP = 5 };

// Dense float64: q o g dq [B,T,H,D], k v dk dv [B,S,G,D], mask [B,H,T,S], lse [B,H,T]
struct problem {
	struct shape s;
	double scale;
	double *q, *k, *v, *mask, *g, *o, *lse, *dq, *dk, *dv;
	double *p, *dp; // [S]: one row
};

static double *zeros(int64_t n)
{
	double *p = array_new((size_t)n * sizeof *p);
	memset(p, 0, (size_t)n * sizeof *p);
	return p;
}

static double kept(const struct problem *p, int64_t b, int64_t h, int64_t t, int64_t s)
{
	const struct shape *x = &p->s;
	if (!(x->dropout > 0))
		return 1;
	uint64_t index = (uint64_t)(((b * x->H + h) * x->T + t) * x->S + s);
	double u = (double)(philox(KEY, STEP, index) >> 8) * 0x1p-24;
	return u >= (float)x->dropout ? 1 / (1 - x->dropout) : 0;
}

// One query: p = softmax over its keys, its output and lse; sum g o
static double reference_row(struct problem *p, int64_t b, int64_t t, int64_t h)
{
	const struct shape *x = &p->s;
	const int64_t gh = h / (x->H / x->G), D = x->D;
	const int64_t at = ((b * x->T + t) * x->H + h) * D,
		      row = (b * x->H + h) * x->T + t;
	double most = -INFINITY, sum = 0, loss = 0;
	for (int64_t s = 0; s < x->S; s++) {
		const double *k = p->k + ((b * x->S + s) * x->G + gh) * D;
		double score = 0;
		for (int64_t d = 0; d < D; d++)
			score += p->q[at + d] * k[d];
		score = score * p->scale + p->mask[row * x->S + s];
		const int64_t seen = x->S - x->hidden;
		const bool sees = s < (x->causal ? t + 1 + seen - x->T : seen) && s < seen;
		p->p[s] = sees ? score : -INFINITY;
		most = fmax(most, p->p[s]);
	}
	for (int64_t s = 0; s < x->S; s++)
		sum += p->p[s] = isinf(most) ? 0 : exp(p->p[s] - most);
	p->lse[row] = sum > 0 ? most + log(sum) : -INFINITY;
	for (int64_t d = 0; d < D; d++)
		p->o[at + d] = 0;
	for (int64_t s = 0; s < x->S; s++) {
		const double *v = p->v + ((b * x->S + s) * x->G + gh) * D;
		p->p[s] = sum > 0 ? p->p[s] / sum : 0;
		for (int64_t d = 0; d < D; d++)
			p->o[at + d] += p->p[s] * kept(p, b, h, t, s) * v[d];
	}
	for (int64_t d = 0; d < D; d++)
		loss += p->g[at + d] * p->o[at + d];
	return loss;
}

static void reference_row_back(struct problem *p, int64_t b, int64_t t, int64_t h)
{
	const struct shape *x = &p->s;
	const int64_t gh = h / (x->H / x->G), D = x->D,
		      at = ((b * x->T + t) * x->H + h) * D;
	double mean = 0;
	for (int64_t s = 0; s < x->S; s++) {
		const int64_t kv = ((b * x->S + s) * x->G + gh) * D;
		const double m = kept(p, b, h, t, s);
		p->dp[s] = 0;
		for (int64_t d = 0; d < D; d++) {
			p->dp[s] += m * p->g[at + d] * p->v[kv + d];
			p->dv[kv + d] += m * p->p[s] * p->g[at + d];
		}
		mean += p->dp[s] * p->p[s];
	}
	for (int64_t s = 0; s < x->S; s++) {
		const int64_t kv = ((b * x->S + s) * x->G + gh) * D;
		const double ds = p->p[s] * (p->dp[s] - mean) * p->scale;
		for (int64_t d = 0; d < D; d++) {
			p->dq[at + d] += ds * p->k[kv + d];
			p->dk[kv + d] += ds * p->q[at + d];
		}
	}
}

static double reference(struct problem *p, bool back)
{
	double loss = 0;
	for (int64_t b = 0; b < p->s.B; b++)
		for (int64_t t = 0; t < p->s.T; t++)
			for (int64_t h = 0; h < p->s.H; h++) {
				loss += reference_row(p, b, t, h);
				if (back)
					reference_row_back(p, b, t, h);
			}
	return loss;
}

static void check_gradient(struct problem *p, double *at, const double *gradient,
			   int64_t n, const char *what)
{
	const double h = 1e-5;
	double *want = zeros(n);
	for (int64_t i = 0; i < n; i++) {
		const double was = at[i];
		at[i] = was + h;
		want[i] = reference(p, false);
		at[i] = was - h;
		want[i] = (want[i] - reference(p, false)) / (2 * h);
		at[i] = was;
	}
	near(gradient, want, (size_t)n, 1e-7, 1, what);
}

// ---- operands ----

// A float operand [B,T,H,D] inside a larger tensor, and the same in float64.
struct operand {
	float *f;
	int64_t b, t, h; // strides
	struct yoke_view view;
};

// base: NULL makes a tensor of its own, with gaps
static struct operand operand_new(int64_t B, int64_t T, int64_t H, int64_t D, float *base,
				  int64_t t)
{
	struct operand x = { .f = base, .t = t, .h = D };
	if (!base) {
		x.h = D + 1;
		x.t = H * x.h + 3;
		x.f = nans(B * T * x.t);
	}
	x.b = T * x.t;
	x.view = strided(x.f, yoke_f32, 4, (int64_t[]){ B, T, H, D },
			 (int64_t[]){ x.b, x.t, x.h, 1 });
	return x;
}

static float *element(const struct operand *x, int64_t i)
{
	const int64_t *n = x->view.dims;
	int64_t d = i % n[3], h = i / n[3] % n[2], t = i / n[3] / n[2] % n[1];
	return x->f + i / n[3] / n[2] / n[1] * x->b + t * x->t + h * x->h + d;
}

static double *operand_random(struct operand *x)
{
	int64_t n = yk_elements(&x->view);
	double *to = zeros(n);
	for (int64_t i = 0; i < n; i++)
		to[i] = *element(x, i) = (float)rnd_real(-1.5, 1.5);
	return to;
}

// What a kernel must not read: the last `hidden` keys of k or v.
static void hide(const struct operand *x, int64_t hidden)
{
	const int64_t *n = x->view.dims, row = n[2] * n[3];
	for (int64_t i = 0; i < n[0] * n[1] * row; i++)
		if (i / row % n[1] >= n[1] - hidden)
			*element(x, i) = NAN;
}

static void compare(const struct operand *x, const double *want, double scale,
		    const char *what)
{
	int64_t n = yk_elements(&x->view);
	double *got = zeros(n);
	for (int64_t i = 0; i < n; i++)
		got[i] = *element(x, i);
	near(got, want, (size_t)n, 3e-6, scale, what);
}

// mask [B|1,H|1,T,S]: some keys hidden, now and then a whole query; repeated into `full`
static struct yoke_view mask_new(const struct shape *s, double *full)
{
	const int64_t B = s->mask & 2 ? s->B : 1, H = s->mask & 4 ? s->H : 1;
	float *m = nans(B * H * s->T * s->S);
	for (int64_t i = 0; i < B * H * s->T; i++) {
		bool all = rnd_int(0, 9) == 0;
		for (int64_t k = 0; k < s->S; k++)
			m[i * s->S + k] = all || rnd_int(0, 3) == 0 ?
						  -INFINITY :
						  (float)rnd_real(-1, 1);
	}
	for (int64_t b = 0; b < s->B; b++)
		for (int64_t h = 0; h < s->H; h++)
			for (int64_t i = 0; i < s->T * s->S; i++)
				full[(b * s->H + h) * s->T * s->S + i] =
					m[(b % B * H + h % H) * s->T * s->S + i];
	return dense(m, yoke_f32, 4, (int64_t[]){ B, H, s->T, s->S });
}

static void check(const struct yk_isa *isa, const struct shape *s, bool differences)
{
	const int64_t B = s->B, T = s->T, S = s->S, H = s->H, G = s->G, D = s->D;
	const int64_t wide = (H + 2 * G) * D;
	char what[160], name[200];
	snprintf(what, sizeof what,
		 "%s: B%lld T%lld S%lld (%lld) H%lld G%lld D%lld%s mask %d dropout %g%s",
		 isa->name, (long long)B, (long long)T, (long long)S,
		 (long long)(S - s->hidden), (long long)H, (long long)G, (long long)D, s->causal ? " causal" : "", s->mask,
		 s->dropout, s->fused ? " fused" : "");
	float *qkv = s->fused ? nans(B * T * wide) : NULL,
	      *dqkv = s->fused ? nans(B * T * wide) : NULL;
	struct operand q = operand_new(B, T, H, D, qkv, wide);
	struct operand k = operand_new(B, S, G, D, qkv ? qkv + H * D : NULL, wide);
	struct operand v = operand_new(B, S, G, D, qkv ? qkv + (H + G) * D : NULL, wide);
	struct operand dq = operand_new(B, T, H, D, dqkv, wide);
	struct operand dk = operand_new(B, S, G, D, dqkv ? dqkv + H * D : NULL, wide);
	struct operand dv =
		operand_new(B, S, G, D, dqkv ? dqkv + (H + G) * D : NULL, wide);
	struct operand o = operand_new(B, T, H, D, NULL, 0),
		       g = operand_new(B, T, H, D, NULL, 0);
	float *lse = nans(B * H * T);
	struct problem p = {
		.s = *s,
		.scale = 1 / sqrt((double)D),
		.q = operand_random(&q),
		.k = operand_random(&k),
		.v = operand_random(&v),
		.g = operand_random(&g),
		.mask = zeros(B * H * T * S),
		.o = zeros(B * T * H * D),
		.lse = zeros(B * H * T),
		.dq = zeros(B * T * H * D),
		.dk = zeros(B * S * G * D),
		.dv = zeros(B * S * G * D),
		.p = zeros(S),
		.dp = zeros(S),
	};
	struct yoke_view mask = s->mask ? mask_new(s, p.mask) : absent;
	struct yoke_view vlse = dense(lse, yoke_f32, 3, (int64_t[]){ B, H, T });
	reference(&p, true);
	if (differences) {
		check_gradient(&p, p.q, p.dq, B * T * H * D, "the reference's dq");
		check_gradient(&p, p.k, p.dk, B * S * G * D, "the reference's dk");
		check_gradient(&p, p.v, p.dv, B * S * G * D, "the reference's dv");
		reference(&p, false);
	}

	hide(&k, s->hidden);
	hide(&v, s->hidden);
	const struct yoke_view seen = s->hidden ? scalar(yoke_i64, (double)(S - s->hidden)) :
						  absent;
	struct yoke_view forward[7] = {
		q.view,
		k.view,
		v.view,
		mask,
		s->dropout > 0 ? scalar(yoke_i64, KEY) : absent,
		s->dropout > 0 ? scalar(yoke_i64, STEP) : absent,
		seen,
	};
	struct yoke_view in[10] = {
		q.view,
		k.view,
		v.view,
		mask,
		s->dropout > 0 ? scalar(yoke_i64, KEY) : absent,
		s->dropout > 0 ? scalar(yoke_i64, STEP) : absent,
		o.view,
		vlse,
		g.view,
		seen,
	};
	struct yoke_view out[3] = { o.view, vlse };
	struct yoke_op op = op_of(YOKE_OP_ATTENTION, 2, out, 7, forward);
	op.attr[0].i = s->causal;
	op.attr[1].f = p.scale;
	op.attr[2].f = s->dropout;
	ok(impls(isa, &op) >> 1 && (impls(isa, &op) & 1) == (T <= 4),
	   "%s is taken by rows for few queries, else by tiles", what);
	for (uint32_t impl = T > 4; impl < 2; impl++) {
		memset(lse, 0xff, (size_t)(B * H * T) * sizeof *lse);
		for (int64_t i = 0; i < B * T * H * D; i++)
			*element(&o, i) = NAN;
		snprintf(name, sizeof name, "%s, %s", what, isa->op[op.code]->impl[impl]);
		if (!ok(!call_impl(isa, &op, impl), "%s runs", name))
			return;
		compare(&o, p.o, 1, name);
		snprintf(name, sizeof name, "%s, %s, lse", what,
			 isa->op[op.code]->impl[impl]);
		near_rows(lse, T, p.lse, B * H, T, 3e-6, 1, name);
	}

	op.code = YOKE_OP_ATTENTION_BACK;
	op.nin = 10;
	op.in = in;
	op.nout = 3;
	out[0] = dq.view, out[1] = dk.view, out[2] = dv.view;
	const uint64_t ways = impls(isa, &op);
	ok(ways, "%s, gradient is taken", what);
	for (uint32_t impl = 0; ways >> impl; impl++) {
		if (!(ways >> impl & 1))
			continue;
		for (int64_t i = 0; i < B * T * H * D; i++)
			*element(&dq, i) = NAN;
		for (int64_t i = 0; i < B * S * G * D; i++)
			*element(&dk, i) = *element(&dv, i) = NAN;
		const char *way = isa->op[op.code]->impl[impl];
		if (!ok(!call_impl(isa, &op, impl), "%s, gradient by %s runs", what, way))
			continue;
		const double scale = sqrt((double)D) + sqrt((double)T);
		snprintf(name, sizeof name, "%s, dq by %s", what, way);
		compare(&dq, p.dq, scale, name);
		snprintf(name, sizeof name, "%s, dk by %s", what, way);
		compare(&dk, p.dk, scale, name);
		snprintf(name, sizeof name, "%s, dv by %s", what, way);
		compare(&dv, p.dv, scale, name);
	}
	ok(arrays_free(), "%s stays inside", what);
}

int main(void)
{
	//  B  T  S  H  G  D  causal mask dropout fused hidden
	static const struct shape tiny[] = {
		{ 1, 3, 3, 1, 1, 2, true, 0, 0, false, 0 },
		{ 2, 3, 5, 4, 2, 3, true, 7, 0.3, false, 0 },
		{ 1, 4, 3, 2, 1, 2, true, 1, 0, false, 0 },
		{ 2, 2, 5, 2, 1, 2, true, 0, 0.2, false, 2 },
	};
	static const struct shape shapes[] = {
		{ 1, 1, 1, 1, 1, 1, false, 0, 0, true, 0 },
		{ 2, 7, 7, 3, 3, 5, true, 0, 0, true, 0 },
		{ 1, 8, 8, 2, 2, 16, true, 0, 0, true, 0 },
		{ 1, 9, 9, 2, 1, 17, true, 0, 0.2, true, 0 },
		{ 1, 15, 15, 2, 2, 31, false, 0, 0, true, 0 },
		{ 2, 16, 16, 2, 2, 32, true, 0, 0, true, 0 },
		{ 1, 17, 17, 4, 2, 33, true, 3, 0, true, 0 },
		{ 1, 31, 31, 2, 2, 80, true, 0, 0, true, 0 },
		{ 2, 32, 32, 2, 2, 32, true, 5, 0, true, 0 },
		{ 1, 33, 33, 3, 1, 64, true, 0, 0.5, true, 0 },
		{ 1, 33, 64, 2, 2, 8, false, 1, 0, false, 0 },
		{ 1, 63, 63, 2, 2, 32, true, 0, 0, true, 0 },
		{ 1, 65, 65, 2, 2, 32, true, 0, 0.1, true, 0 },
		{ 2, 64, 64, 2, 1, 64, true, 0, 0, true, 0 },
		{ 1, 17, 65, 4, 2, 80, true, 0, 0, false, 0 },
		{ 1, 65, 17, 2, 2, 8, true, 0, 0, false, 0 },
		{ 1, 129, 129, 2, 2, 64, true, 0, 0, true, 0 },
		{ 1, 1, 131, 4, 4, 64, true, 0, 0, false, 0 },
		{ 1, 2, 129, 2, 1, 128, false, 7, 0.25, false, 0 },
		{ 1, 127, 127, 1, 1, 127, true, 0, 0, true, 0 },
		{ 1, 5, 1025, 1, 1, 16, false, 0, 0, false, 0 },
		{ 1, 40, 2050, 2, 1, 8, true, 1, 0.1, false, 0 },
		{ 1, 1030, 1030, 2, 1, 7, true, 0, 0, true, 0 },
		{ 2, 1, 16, 2, 2, 32, true, 0, 0, false, 15 },
		{ 1, 1, 512, 3, 1, 65, true, 0, 0, false, 1 },
		{ 1, 1, 513, 3, 3, 64, false, 1, 0.3, false, 0 },
		{ 1, 2, 1100, 4, 2, 48, true, 7, 0.1, false, 70 },
		{ 2, 4, 1300, 2, 1, 128, true, 0, 0, false, 900 },
		{ 1, 3, 40, 2, 1, 24, true, 0, 0, false, 39 },
		{ 1, 3, 40, 2, 1, 24, false, 0, 0, false, 40 },
		{ 2, 33, 70, 2, 1, 32, true, 3, 0.1, false, 20 },
		{ 1, 17, 1100, 1, 1, 16, false, 0, 0, false, 600 },
		{ 1, 40, 2100, 2, 2, 8, true, 0, 0, false, 90 },
	};
	const struct yk_isa *list[3];
	int n = isas(list);
	for (int i = 0; i < n; i++) {
		for (size_t k = 0; k < sizeof tiny / sizeof *tiny; k++)
			check(list[i], &tiny[k], true);
		for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
			check(list[i], &shapes[k], false);
	}
	return done();
}
