// SPDX-License-Identifier: Apache-2.0
// Optimizer steps over lists of tensors: AdamW (Loshchilov and Hutter 2019), SGD as PyTorch's, LAMB
// (You et al. 2020), the norm of all gradients together, unscaling; behind half.cl, vexp.cl and rows.cl.
// References: kern_optim.c of the CPU backend, and rows_list.c, which defines them.
//
// A table holds ENTRY words for each tensor: its first chunk, its elements, and where its part of
// each list lies, segment << 56 | offset.  Up to 8 segments.  A chunk is CHUNK elements of one
// tensor at most, so that results depend on shapes alone; a group takes every GROUPS(0)-th, see rows.cl.
// The workspace: 2 floats for each chunk, then one for each tensor.
#ifndef CHUNK
#define CHUNK 4096
#endif
#ifndef HALVES // 1: kind says how each list is stored; 0: all of them are f32
#define HALVES 0
#endif
#define LISTS 7
#define ENTRY (2 + LISTS)
#define MOMENTUM 1
#define NESTEROV 2
#define ADAPT 4

struct optim_args {
	long tensors, chunks;           // of this launch
	long first_tensor, first_chunk; // of it among all
	long all_chunks;
	struct number number[4]; // lr, c1, c2, gscale; lr, first, gscale; scale
	float beta1, beta2, rest1, rest2; // rest: 1 - beta, which f32 would cancel
	float eps, decay, least, most;
	int flags, kind[LISTS]; // of storage: 0 f32, 1 f16, 2 bf16
};

#define PARAMETERS GLOBAL uchar *table_base, ulong table_at, GLOBAL uchar *space_base, \
	ulong space_at, GLOBAL uchar *n0_base, ulong n0_at, GLOBAL uchar *n1_base, ulong n1_at, \
	GLOBAL uchar *n2_base, ulong n2_at, GLOBAL uchar *n3_base, ulong n3_at, \
	GLOBAL uchar *s0, GLOBAL uchar *s1, GLOBAL uchar *s2, GLOBAL uchar *s3, \
	GLOBAL uchar *s4, GLOBAL uchar *s5, GLOBAL uchar *s6, GLOBAL uchar *s7, \
	struct optim_args a
#define TABLE ((GLOBAL const ulong *)(table_base + table_at))
#define SPACE ((GLOBAL float *)(space_base + space_at))
#define SEGMENTS s0, s1, s2, s3, s4, s5, s6, s7
#define NUMBER(k) number_real(n##k##_base, n##k##_at, a.number[k])

// A chunk: n elements of each list of a tensor, from their beginning.
struct part {
	GLOBAL uchar *at[LISTS];
	int n;
	long tensor;
};

FN struct part part_of(GLOBAL const ulong *table, long chunk, const struct optim_args *a,
	GLOBAL uchar *s0, GLOBAL uchar *s1, GLOBAL uchar *s2, GLOBAL uchar *s3,
	GLOBAL uchar *s4, GLOBAL uchar *s5, GLOBAL uchar *s6, GLOBAL uchar *s7)
{
	struct part p;
	long low = 0, high = a->tensors; // first chunk of low <= chunk < that of high
	while (high - low > 1) {
		long middle = low + (high - low) / 2;
		if ((long)table[middle * ENTRY] <= chunk)
			low = middle;
		else
			high = middle;
	}
	table += low * ENTRY;
	long from = (chunk - (long)table[0]) * CHUNK, left = (long)table[1] - from;
	p.n = left < CHUNK ? (int)left : CHUNK;
	p.tensor = low;
	for (int k = 0; k < LISTS; k++) {
		ulong word = table[2 + k];
		int s = (int)(word >> 56);
		GLOBAL uchar *base = s == 0 ? s0 : s == 1 ? s1 : s == 2 ? s2 : s == 3 ? s3 :
			s == 4 ? s4 : s == 5 ? s5 : s == 6 ? s6 : s7;
		p.at[k] = base + (word & 0xfffffffffffffful) + from * (a->kind[k] ? 2 : 4);
	}
	return p;
}

// fill: behind the end
FN VEC get_or(GLOBAL uchar *from, int i, int left, int kind, float fill)
{
#if HALVES
	if (kind)
		return load_half((GLOBAL const ushort *)from + i, left, fill, kind);
#endif
	return load_f32((GLOBAL const float *)from + i, left, fill);
}

FN VEC get(GLOBAL uchar *from, int i, int left, int kind)
{
	return get_or(from, i, left, kind, 0.0f);
}

FN void put(VEC v, GLOBAL uchar *to, int i, int left, int kind)
{
#if HALVES
	if (kind) {
		store_half(v, (GLOBAL ushort *)to + i, left, kind);
		return;
	}
#endif
	store_f32(v, (GLOBAL float *)to + i, left);
}

// A kernel's work on a vector at i, of which `left` elements are there, is a function of its own: whole
// vectors, whose `left` is a constant, are free of tests.

struct adamw {
	VEC scale, b1, b1c, b2, b2c, keep, step, root, eps;
};

FN void adamw_at(const struct part *c, const struct optim_args *a, const struct adamw *w, int i,
	int left)
{
	VEC g = get(c->at[1], i, left, a->kind[1]) * w->scale;
	VEC m = w->b1 * get(c->at[2], i, left, a->kind[2]) + w->b1c * g;
	VEC v = w->b2 * get(c->at[3], i, left, a->kind[3]) + w->b2c * (g * g);
	VEC p = get(c->at[0], i, left, a->kind[0]) * w->keep -
		w->step * m / (sqrt(v) / w->root + w->eps);
	put(p, c->at[4], i, left, a->kind[4]);
	put(m, c->at[5], i, left, a->kind[5]);
	put(v, c->at[6], i, left, a->kind[6]);
}

// m = b1 m + (1-b1) g, v = b2 v + (1-b2) g^2,
// p = p (1 - lr decay) - (lr / c1) m / (sqrt v / sqrt c2 + eps)
KERNEL void WORK_GROUP(ITEMS, 1) adamw(PARAMETERS)
{
	float lr = NUMBER(0);
	struct adamw w;

	w.scale = VEC_SPLAT(NUMBER(3));
	w.b1 = VEC_SPLAT(a.beta1);
	w.b1c = VEC_SPLAT(a.rest1);
	w.b2 = VEC_SPLAT(a.beta2);
	w.b2c = VEC_SPLAT(a.rest2);
	w.keep = VEC_SPLAT(1.0f - lr * a.decay);
	w.step = VEC_SPLAT(lr / NUMBER(1));
	w.root = VEC_SPLAT(sqrt(NUMBER(2)));
	w.eps = VEC_SPLAT(a.eps);
	for (long chunk = (long)GROUP_ID(0); chunk < a.chunks; chunk += (long)GROUPS(0)) {
		struct part c = part_of(TABLE, chunk, &a, SEGMENTS);
		int i = LOCAL_ID(0) * VEC_WIDTH;
		for (; i + VEC_WIDTH <= c.n; i += STEP)
			adamw_at(&c, &a, &w, i, VEC_WIDTH);
		if (i < c.n)
			adamw_at(&c, &a, &w, i, c.n - i);
	}
}

struct sgd {
	VEC lr, scale, mu, undamped, decay;
	bool first;
};

FN void sgd_at(const struct part *c, const struct optim_args *a, const struct sgd *w, int i, int left)
{
	VEC p = get(c->at[0], i, left, a->kind[0]);
	VEC g = get(c->at[1], i, left, a->kind[1]) * w->scale + w->decay * p;
	if (a->flags & MOMENTUM) {
		VEC b = g;
		if (!w->first)
			b = w->mu * get(c->at[2], i, left, a->kind[2]) + w->undamped * g;
		put(b, c->at[4], i, left, a->kind[4]);
		g = a->flags & NESTEROV ? g + w->mu * b : b;
	}
	put(p - w->lr * g, c->at[3], i, left, a->kind[3]);
}

// g += decay p; b = first ? g : mu b + (1 - damp) g; p -= lr (nesterov ? g + mu b : b);
// beta1 is mu, beta2 damp; without momentum there is no b
KERNEL void WORK_GROUP(ITEMS, 1) sgd(PARAMETERS)
{
	struct sgd w;

	w.lr = VEC_SPLAT(NUMBER(0));
	w.scale = VEC_SPLAT(NUMBER(2));
	w.mu = VEC_SPLAT(a.beta1);
	w.undamped = VEC_SPLAT(a.rest2);
	w.decay = VEC_SPLAT(a.decay);
	w.first = NUMBER(1) != 0.0f;
	for (long chunk = (long)GROUP_ID(0); chunk < a.chunks; chunk += (long)GROUPS(0)) {
		struct part c = part_of(TABLE, chunk, &a, SEGMENTS);
		int i = LOCAL_ID(0) * VEC_WIDTH;
		for (; i + VEC_WIDTH <= c.n; i += STEP)
			sgd_at(&c, &a, &w, i, VEC_WIDTH);
		if (i < c.n)
			sgd_at(&c, &a, &w, i, c.n - i);
	}
}

// LAMB goes through the operands twice and stores in the second pass: in what is stored, which may
// be rounded, or in place of an operand, the first could not be found again.
struct lamb {
	VEC scale, pp, rr;
	float c1, c2;
};

// What there is of one vector: the step is r = (m / c1) / (sqrt v / sqrt c2 + eps) + decay p.
struct lamb_vec {
	VEC p, m, v, r;
};

FN struct lamb_vec lamb_at(const struct part *c, const struct optim_args *a, const struct lamb *w,
	int i, int left)
{
	struct lamb_vec x;
	VEC g = get(c->at[1], i, left, a->kind[1]) * w->scale, root;

	x.p = get(c->at[0], i, left, a->kind[0]);
	x.m = VEC_SPLAT(a->beta1) * get(c->at[2], i, left, a->kind[2]) + VEC_SPLAT(a->rest1) * g;
	// behind the end r is 0 / 1, whatever eps is
	x.v = VEC_SPLAT(a->beta2) * get_or(c->at[3], i, left, a->kind[3], 1.0f) +
		VEC_SPLAT(a->rest2) * (g * g);
	root = sqrt(x.v) / VEC_SPLAT(sqrt(w->c2)) + VEC_SPLAT(a->eps);
	x.r = x.m / VEC_SPLAT(w->c1) / root + VEC_SPLAT(a->decay) * x.p;
	return x;
}

FN void lamb_squares_at(const struct part *c, const struct optim_args *a, struct lamb *w, int i,
	int left)
{
	struct lamb_vec x = lamb_at(c, a, w, i, left);

	w->pp += x.p * x.p;
	w->rr += x.r * x.r;
}

// |p|^2 and |r|^2 of each chunk
KERNEL void WORK_GROUP(ITEMS, 1) lamb_squares(PARAMETERS)
{
	LOCAL float tree[ITEMS];
	int item = LOCAL_ID(0);
	struct lamb w;

	w.scale = VEC_SPLAT(NUMBER(3));
	w.c1 = NUMBER(1);
	w.c2 = NUMBER(2);
	for (long chunk = (long)GROUP_ID(0); chunk < a.chunks; chunk += (long)GROUPS(0)) {
		struct part c = part_of(TABLE, chunk, &a, SEGMENTS);
		GLOBAL float *sums = SPACE + 2 * (a.first_chunk + chunk);
		int i = item * VEC_WIDTH;
		w.pp = w.rr = VEC_SPLAT(0.0f);
		for (; i + VEC_WIDTH <= c.n; i += STEP)
			lamb_squares_at(&c, &a, &w, i, VEC_WIDTH);
		if (i < c.n)
			lamb_squares_at(&c, &a, &w, i, c.n - i);
		float pp = group_sum(VEC_SUM(w.pp), tree, item);
		float rr = group_sum(VEC_SUM(w.rr), tree, item);
		if (item == 0) {
			sums[0] = pp;
			sums[1] = rr;
		}
	}
}

// A group a tensor: min(max(|p|, least), most) / |r|, 1 where a norm is 0
KERNEL void WORK_GROUP(ITEMS, 1) lamb_ratio(PARAMETERS)
{
	LOCAL float tree[ITEMS];
	GLOBAL const ulong *entry = TABLE + (long)GROUP_ID(0) * ENTRY;
	GLOBAL const float *sums = SPACE + 2 * (a.first_chunk + (long)entry[0]);
	long chunks = ((long)entry[1] + CHUNK - 1) / CHUNK;
	int item = LOCAL_ID(0);
	float pp = 0.0f, rr = 0.0f;

	for (long k = item; k < chunks; k += ITEMS) {
		pp += sums[2 * k];
		rr += sums[2 * k + 1];
	}
	float p = sqrt(group_sum(pp, tree, item)), r = sqrt(group_sum(rr, tree, item));
	float phi = fmin(fmax(p, a.least), a.most);
	if (p != p)
		phi = p;
	if (item == 0)
		SPACE[2 * a.all_chunks + a.first_tensor + (long)GROUP_ID(0)] =
			p == 0.0f || r == 0.0f ? 1.0f : phi / r;
}

FN void lamb_apply_at(const struct part *c, const struct optim_args *a, const struct lamb *w,
	VEC rate, int i, int left)
{
	struct lamb_vec x = lamb_at(c, a, w, i, left);

	put(x.p - rate * x.r, c->at[4], i, left, a->kind[4]);
	put(x.m, c->at[5], i, left, a->kind[5]);
	put(x.v, c->at[6], i, left, a->kind[6]);
}

// m, v; p -= lr ratio r
KERNEL void WORK_GROUP(ITEMS, 1) lamb_apply(PARAMETERS)
{
	float lr = NUMBER(0);
	struct lamb w;

	w.scale = VEC_SPLAT(NUMBER(3));
	w.c1 = NUMBER(1);
	w.c2 = NUMBER(2);
	for (long chunk = (long)GROUP_ID(0); chunk < a.chunks; chunk += (long)GROUPS(0)) {
		struct part c = part_of(TABLE, chunk, &a, SEGMENTS);
		float ratio = a.flags & ADAPT ? SPACE[2 * a.all_chunks + a.first_tensor + c.tensor] :
						1.0f;
		VEC rate = VEC_SPLAT(lr * ratio);
		int i = LOCAL_ID(0) * VEC_WIDTH;
		for (; i + VEC_WIDTH <= c.n; i += STEP)
			lamb_apply_at(&c, &a, &w, rate, i, VEC_WIDTH);
		if (i < c.n)
			lamb_apply_at(&c, &a, &w, rate, i, c.n - i);
	}
}

// Kahan 1965; `plain` is right where an infinity makes the correction NaN
struct total {
	VEC sum, lost, plain;
};

FN void total_add(struct total *t, VEC x)
{
	VEC y = x - t->lost, sum = t->sum + y;
	t->lost = (sum - t->sum) - y;
	t->sum = sum;
	t->plain += x;
}

FN void total_join(struct total *t, const struct total *more)
{
	VEC plain = t->plain + more->plain;

	total_add(t, more->sum);
	t->lost += more->lost;
	t->plain = plain;
}

FN float total_of(const struct total *t, LOCAL_POINTER float *tree, int item)
{
	float sum = group_sum(VEC_SUM(t->sum), tree, item);
	float plain = group_sum(VEC_SUM(t->plain), tree, item);
	return sum == sum ? sum : plain;
}

FN struct total total_zero(void)
{
	struct total t;
	t.sum = VEC_SPLAT(0.0f);
	t.lost = VEC_SPLAT(0.0f);
	t.plain = VEC_SPLAT(0.0f);
	return t;
}

// The sum of squares of each chunk.
KERNEL void WORK_GROUP(ITEMS, 1) squares(PARAMETERS)
{
	LOCAL float tree[ITEMS];
	int item = LOCAL_ID(0);

	for (long chunk = (long)GROUP_ID(0); chunk < a.chunks; chunk += (long)GROUPS(0)) {
		struct part c = part_of(TABLE, chunk, &a, SEGMENTS);
		struct total t[4]; // each addition of one waits for the last
		int i = item * VEC_WIDTH;
		UNROLL
		for (int k = 0; k < 4; k++)
			t[k] = total_zero();
		for (; i + 3 * STEP + VEC_WIDTH <= c.n; i += 4 * STEP) {
			UNROLL
			for (int k = 0; k < 4; k++) {
				VEC g = get(c.at[0], i + k * STEP, VEC_WIDTH, a.kind[0]);
				total_add(&t[k], g * g);
			}
		}
		for (; i < c.n; i += STEP) {
			VEC g = get(c.at[0], i, c.n - i, a.kind[0]);
			total_add(&t[0], g * g);
		}
		UNROLL
		for (int k = 1; k < 4; k++)
			total_join(&t[0], &t[k]);
		float sum = total_of(&t[0], tree, item);
		if (item == 0)
			SPACE[a.first_chunk + chunk] = sum;
	}
}

FN VEC unscale_at(const struct part *c, const struct optim_args *a, VEC scale, int i, int left)
{
	VEC g = get(c->at[0], i, left, a->kind[0]) * scale;

	put(g, c->at[1], i, left, a->kind[1]);
	return g - g; // 0, or NaN
}

// g scale; 1 for each chunk where one is not finite, else 0
KERNEL void WORK_GROUP(ITEMS, 1) unscale(PARAMETERS)
{
	LOCAL float tree[ITEMS];
	VEC scale = VEC_SPLAT(NUMBER(0));
	int item = LOCAL_ID(0);

	for (long chunk = (long)GROUP_ID(0); chunk < a.chunks; chunk += (long)GROUPS(0)) {
		struct part c = part_of(TABLE, chunk, &a, SEGMENTS);
		VEC bad = VEC_SPLAT(0.0f);
		int i = item * VEC_WIDTH;
		for (; i + VEC_WIDTH <= c.n; i += STEP)
			bad += unscale_at(&c, &a, scale, i, VEC_WIDTH);
		if (i < c.n)
			bad += unscale_at(&c, &a, scale, i, c.n - i);
		float sum = group_sum(VEC_SUM(bad), tree, item);
		if (item == 0)
			SPACE[a.first_chunk + chunk] = sum == 0.0f ? 0.0f : 1.0f;
	}
}

// One group over what squares or unscale left: the root of the sum, or whether there is any.
KERNEL void WORK_GROUP(ITEMS, 1) join(GLOBAL uchar *y_base, ulong y_at,
	GLOBAL uchar *space_base, ulong space_at, long n, long any)
{
	LOCAL float tree[ITEMS];
	GLOBAL const float *parts = SPACE;
	struct total t = total_zero();
	int item = LOCAL_ID(0);

	for (long i = item * VEC_WIDTH; i < n; i += STEP) {
		long left = n - i;
		total_add(&t, load_f32(parts + i, left < VEC_WIDTH ? (int)left : VEC_WIDTH, 0.0f));
	}
	float sum = total_of(&t, tree, item);
	if (item == 0 && any)
		*(y_base + y_at) = sum != 0.0f;
	if (item == 0 && !any)
		*(GLOBAL float *)(y_base + y_at) = sqrt(sum);
}
