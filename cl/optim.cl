// SPDX-License-Identifier: Apache-2.0
// Optimizer steps over lists of tensors: AdamW (Loshchilov and Hutter 2019), SGD as PyTorch's, LAMB
// (You et al. 2020), the norm of all gradients together, unscaling; behind half.cl and rows.cl.
// References: kern_optim.c of the CPU backend, and rows_list.c, which defines them.
//
// A table holds ENTRY words for each tensor: its first chunk, its elements, and where its part of
// each list lies, segment << 56 | offset.  Up to 8 segments.  Each group takes one chunk of CHUNK
// elements of one tensor, so that results depend on shapes alone.
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

FN VEC get(GLOBAL uchar *from, int i, int left, int kind)
{
#if HALVES
	if (kind)
		return load_half((GLOBAL const ushort *)from + i, left, 0.0f, kind);
#endif
	return load_f32((GLOBAL const float *)from + i, left, 0.0f);
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

// m = b1 m + (1-b1) g, v = b2 v + (1-b2) g^2,
// p = p (1 - lr decay) - (lr / c1) m / (sqrt v / sqrt c2 + eps)
KERNEL void WORK_GROUP(ITEMS, 1) adamw(PARAMETERS)
{
	struct part c = part_of(TABLE, (long)GROUP_ID(0), &a, SEGMENTS);
	float lr = NUMBER(0);
	VEC scale = VEC_SPLAT(NUMBER(3));
	VEC b1 = VEC_SPLAT(a.beta1), b1c = VEC_SPLAT(a.rest1);
	VEC b2 = VEC_SPLAT(a.beta2), b2c = VEC_SPLAT(a.rest2);
	VEC keep = VEC_SPLAT(1.0f - lr * a.decay), step = VEC_SPLAT(lr / NUMBER(1));
	VEC root = VEC_SPLAT(sqrt(NUMBER(2))), eps = VEC_SPLAT(a.eps);

	for (int i = LOCAL_ID(0) * VEC_WIDTH; i < c.n; i += STEP) {
		int left = c.n - i;
		VEC g = get(c.at[1], i, left, a.kind[1]) * scale;
		VEC m = b1 * get(c.at[2], i, left, a.kind[2]) + b1c * g;
		VEC v = b2 * get(c.at[3], i, left, a.kind[3]) + b2c * (g * g);
		VEC p = get(c.at[0], i, left, a.kind[0]) * keep -
			step * m / (sqrt(v) / root + eps);
		put(p, c.at[4], i, left, a.kind[4]);
		put(m, c.at[5], i, left, a.kind[5]);
		put(v, c.at[6], i, left, a.kind[6]);
	}
}

// g += decay p; b = first ? g : mu b + (1 - damp) g; p -= lr (nesterov ? g + mu b : b);
// beta1 is mu, beta2 damp; without momentum there is no b
KERNEL void WORK_GROUP(ITEMS, 1) sgd(PARAMETERS)
{
	struct part c = part_of(TABLE, (long)GROUP_ID(0), &a, SEGMENTS);
	VEC lr = VEC_SPLAT(NUMBER(0)), scale = VEC_SPLAT(NUMBER(2));
	VEC mu = VEC_SPLAT(a.beta1), undamped = VEC_SPLAT(a.rest2);
	VEC decay = VEC_SPLAT(a.decay);
	bool first = NUMBER(1) != 0.0f;

	for (int i = LOCAL_ID(0) * VEC_WIDTH; i < c.n; i += STEP) {
		int left = c.n - i;
		VEC p = get(c.at[0], i, left, a.kind[0]);
		VEC g = get(c.at[1], i, left, a.kind[1]) * scale + decay * p;
		if (a.flags & MOMENTUM) {
			VEC b = g;
			if (!first)
				b = mu * get(c.at[2], i, left, a.kind[2]) + undamped * g;
			put(b, c.at[4], i, left, a.kind[4]);
			g = a.flags & NESTEROV ? g + mu * b : b;
		}
		put(p - lr * g, c.at[3], i, left, a.kind[3]);
	}
}

// r = (m / c1) / (sqrt v / sqrt c2 + eps) + decay p
FN VEC lamb_step(VEC m, VEC v, VEC p, float c1, float c2, const struct optim_args *a)
{
	VEC root = sqrt(v) / VEC_SPLAT(sqrt(c2)) + VEC_SPLAT(a->eps);
	return m / VEC_SPLAT(c1) / root + VEC_SPLAT(a->decay) * p;
}

// m, v; |p|^2 and |r|^2 of each chunk
KERNEL void WORK_GROUP(ITEMS, 1) lamb_moments(PARAMETERS)
{
	LOCAL float tree[ITEMS];
	struct part c = part_of(TABLE, (long)GROUP_ID(0), &a, SEGMENTS);
	GLOBAL float *sums = SPACE + 2 * (a.first_chunk + (long)GROUP_ID(0));
	VEC scale = VEC_SPLAT(NUMBER(3)), pp = VEC_SPLAT(0.0f), rr = VEC_SPLAT(0.0f);
	float c1 = NUMBER(1), c2 = NUMBER(2);
	int item = LOCAL_ID(0);

	for (int i = item * VEC_WIDTH; i < c.n; i += STEP) {
		int left = c.n - i;
		VEC g = get(c.at[1], i, left, a.kind[1]) * scale;
		VEC m = VEC_SPLAT(a.beta1) * get(c.at[2], i, left, a.kind[2]) +
			VEC_SPLAT(a.rest1) * g;
		VEC v = VEC_SPLAT(a.beta2) * get(c.at[3], i, left, a.kind[3]) +
			VEC_SPLAT(a.rest2) * (g * g);
		VEC p = get(c.at[0], i, left, a.kind[0]);
		VEC r = lamb_step(m, v, p, c1, c2, &a);
		put(m, c.at[5], i, left, a.kind[5]);
		put(v, c.at[6], i, left, a.kind[6]);
		pp += p * p;
		rr += r * r;
	}
	float p_sum = group_sum(VEC_SUM(pp), tree, item);
	float r_sum = group_sum(VEC_SUM(rr), tree, item);
	if (item == 0) {
		sums[0] = p_sum;
		sums[1] = r_sum;
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

// p -= lr ratio r
KERNEL void WORK_GROUP(ITEMS, 1) lamb_apply(PARAMETERS)
{
	struct part c = part_of(TABLE, (long)GROUP_ID(0), &a, SEGMENTS);
	float rate = NUMBER(0), c1 = NUMBER(1), c2 = NUMBER(2);

	if (a.flags & ADAPT)
		rate *= SPACE[2 * a.all_chunks + a.first_tensor + c.tensor];
	for (int i = LOCAL_ID(0) * VEC_WIDTH; i < c.n; i += STEP) {
		int left = c.n - i;
		VEC m = get(c.at[5], i, left, a.kind[5]), v = get(c.at[6], i, left, a.kind[6]);
		VEC p = get(c.at[0], i, left, a.kind[0]);
		put(p - VEC_SPLAT(rate) * lamb_step(m, v, p, c1, c2, &a), c.at[4], i, left,
			a.kind[4]);
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
	struct part c = part_of(TABLE, (long)GROUP_ID(0), &a, SEGMENTS);
	struct total t = total_zero();
	int item = LOCAL_ID(0);

	for (int i = item * VEC_WIDTH; i < c.n; i += STEP) {
		VEC g = get(c.at[0], i, c.n - i, a.kind[0]);
		total_add(&t, g * g);
	}
	float sum = total_of(&t, tree, item);
	if (item == 0)
		SPACE[a.first_chunk + (long)GROUP_ID(0)] = sum;
}

// g scale; 1 for each chunk where one is not finite, else 0
KERNEL void WORK_GROUP(ITEMS, 1) unscale(PARAMETERS)
{
	LOCAL float tree[ITEMS];
	struct part c = part_of(TABLE, (long)GROUP_ID(0), &a, SEGMENTS);
	VEC scale = VEC_SPLAT(NUMBER(0)), bad = VEC_SPLAT(0.0f);
	int item = LOCAL_ID(0);

	for (int i = item * VEC_WIDTH; i < c.n; i += STEP) {
		VEC g = get(c.at[0], i, c.n - i, a.kind[0]) * scale;
		put(g, c.at[1], i, c.n - i, a.kind[1]);
		bad += g - g; // 0, or NaN
	}
	float sum = group_sum(VEC_SUM(bad), tree, item);
	if (item == 0)
		SPACE[a.first_chunk + (long)GROUP_ID(0)] = sum == 0.0f ? 0.0f : 1.0f;
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
