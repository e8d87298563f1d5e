// SPDX-License-Identifier: Apache-2.0
// Shared by all attention kernels: strides of heads, the keys visible to a query, dropout. q o
// [B,T,H,D], k v [B,S,G,D], lse [B,H,T]. Reference: kern_attention*.c of the CPU backend.
#include "rows.cl"
#include "philox.cl"

#define LOG2_E 1.44269504088896340736f
#ifndef HEAD // D rounded up to a multiple of 16
#define HEAD 64
#endif
#ifndef BLOCK // rows staged at a time
#define BLOCK 16
#endif

struct heads {
	long b, t, h; // strides
};

struct attention_args {
	struct heads q, k, v, o, g, dq, dk, dv;
	long mask_b, mask_h, mask_t, mask_s;
	long B, T, H, S, G;
	long parts;  // number of parts that a query's keys are divided into
	long seen_b; // stride between the key counts of two batch entries in memory
	struct number key, step, seen;
	float scale, dropout;
	int D, causal, masked, pad;
};

FN long min_of(long a, long b)
{
	return a < b ? a : b;
}

FN long seen_of(GLOBAL uchar *base, ulong at, const struct attention_args *a, long b)
{
	long n = number_whole(base, at + (ulong)(b * a->seen_b) * sizeof(long), a->seen);
	return n < 0 ? 0 : min_of(n, a->S);
}

// Query t sees keys 0 .. limit - 1.
FN long limit_of(const struct attention_args *a, long seen, long t)
{
	long n = a->causal ? t + 1 + seen - a->T : seen;
	return n < 0 ? 0 : min_of(n, seen);
}

// The same for kernels with matrix units, whose numbers of rows are below 2^30, if query 0 sees
// `more` keys.
FN int keys_of(const struct attention_args *a, int seen, int more, int t)
{
	int n = a->causal ? more + t : more;
	return n < 0 ? 0 : n < seen ? n : seen;
}

FN GLOBAL stored *head_at(GLOBAL uchar *base, ulong at, const struct heads *x, long b, long t,
	long h)
{
	return (GLOBAL stored *)(base + at) + b * x->b + t * x->t + h * x->h;
}

// Adds the mask to a score; -inf hides the key even if its score is NaN.
FN float masked_score(float score, float mask)
{
	return mask == -INFINITY ? mask : score + mask;
}

FN float kept_of(int bits, float dropout)
{
	float u = (float)(int)((uint)bits >> 8) * 5.9604644775390625e-8f; // 2^-24
	return u >= dropout ? 1.0f / (1.0f - dropout) : 0.0f;
}

// True if `mine` is set for any item of the group. All items must call it.
FN bool group_any(bool mine, LOCAL_POINTER int *found, int item)
{
#if ITEMS > 1
	BARRIER();
	if (item == 0)
		*found = 0;
	BARRIER();
	if (mine)
		*found = 1;
	BARRIER();
	return *found != 0;
#else
	return mine;
#endif
}

// For a query that sees no key: exp(-inf - inf) is 0.
FN float finite_lse(float lse)
{
	return lse == -INFINITY ? INFINITY : lse;
}
