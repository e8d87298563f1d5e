// SPDX-License-Identifier: Apache-2.0
// CTC and CTC_BACKWARD (Graves et al. 2006), in log space. Reference: kern_ctc.c of the CPU
// backend. ctc, ctc_states: a group computes a sequence, step by step; its items have states, which
// are labels (odd) and blanks between them. States of a step alternate between two copies in the
// workspace. ctc_gradient: a group adds the states of one step of a sequence that have the same
// class; the first label of a class adds its equals in order, so that each class has one writer.
// Parameters: DTYPE (f32 or f64), ITEMS of a group.
#include "number.cl"
#include "report.cl"

#ifndef ITEMS
#define ITEMS 128
#endif

struct ctc {
	long T, N, C, S, blank; // steps, sequences, classes, targets
	long xs[3], ts[2], steps, labels, loss, as[3], g, ds[3]; // strides
	long given, scalar;     // given: bit 0: loss, bit 1: alpha; scalar: g is one number
};

struct sequence {
	GLOBAL const number *x;      // [T,C]
	GLOBAL const long *target;   // [S]
	GLOBAL number *state, *next; // [2 S + 1]
	long steps, labels, states;
};

#define LOW ((number)-INFINITY)
#define LONGS(base, at) ((GLOBAL const long *)((base) + (at)))

FN long class_of(const struct ctc *a, const struct sequence *q, long s)
{
	return s & 1 ? q->target[s / 2 * a->ts[1]] : a->blank;
}

// May state s follow state s - 2?
FN bool skips(const struct ctc *a, const struct sequence *q, long s)
{
	return (s & 1) && (s < 2 || class_of(a, q, s) != class_of(a, q, s - 2));
}

FN number chance(const struct ctc *a, const struct sequence *q, long t, long s)
{
	return q->x[t * a->xs[0] + class_of(a, q, s) * a->xs[2]];
}

// log(e^x + e^y + e^z); -inf if all are, NaN if one is
FN number join(number x, number y, number z)
{
	number max = x > y ? x : y;
	max = z > max ? z : max;
	return max == LOW ? x + y + z : max + log(exp(x - max) + exp(y - max) + exp(z - max));
}

// Reads the sequence; false: its lengths or targets are out of range. All items call it.
FN bool begin(struct sequence *q, const struct ctc *a, long index, GLOBAL const number *x,
	      GLOBAL const long *targets, GLOBAL const long *steps, GLOBAL const long *labels,
	      GLOBAL number *work, LOCAL_POINTER int *bad, int item)
{
	q->x = x + index * a->xs[1];
	q->target = targets + index * a->ts[0];
	q->steps = steps[index * a->steps];
	q->labels = labels[index * a->labels];
	q->states = 2 * q->labels + 1;
	q->state = work + index * 2 * (2 * a->S + 1);
	q->next = q->state + 2 * a->S + 1;
	bool wrong = q->steps < 0 || q->steps > a->T || q->labels < 0 || q->labels > a->S;
	for (long i = item; i < q->labels && !wrong; i += ITEMS)
		wrong = q->target[i * a->ts[1]] < 0 || q->target[i * a->ts[1]] >= a->C;
	BARRIER();
	if (item == 0)
		*bad = 0;
	BARRIER();
	if (wrong)
		*bad = 1;
	BARRIER();
	return !*bad;
}

// The states of the step are written; the next ones overwrite those before.
FN void turn(struct sequence *q)
{
	GLOBAL number *last = q->state;
	BARRIER_ALL();
	q->state = q->next;
	q->next = last;
}

KERNEL void WORK_GROUP(ITEMS, 1)
	ctc(OPERAND(loss), OPERAND(alpha), OPERAND(x), OPERAND(targets), OPERAND(steps),
	    OPERAND(labels), OPERAND(work), struct ctc a REPORT_PARAMS)
{
	LOCAL int bad;
	struct sequence q;
	int item = LOCAL_ID(0);
	for (long n = (long)GROUP_ID(0); n < a.N; n += (long)GROUPS(0)) {
		GLOBAL number *kept = NUMBERS(alpha, alpha_at) + n * a.as[0];
		if (!begin(&q, &a, n, NUMBERS(x, x_at), LONGS(targets, targets_at),
			   LONGS(steps, steps_at), LONGS(labels, labels_at), NUMBERS(work, work_at),
			   &bad, item)) {
			if (item == 0)
				report_bad(REPORT_AT, (ulong)n);
			continue;
		}
		for (long t = 0; t < a.T && (a.given & 2); t++)
			for (long s = (t < q.steps ? q.states : 0) + item; s < 2 * a.S + 1;
			     s += ITEMS)
				kept[t * a.as[1] + s * a.as[2]] = LOW;
		for (long t = 0; t < q.steps; t++) {
			for (long s = item; s < q.states; s += ITEMS) {
				number v = s < 2 ? (number)0 : LOW;
				if (t)
					v = join(q.state[s], s > 0 ? q.state[s - 1] : LOW,
						 s > 1 && skips(&a, &q, s) ? q.state[s - 2] : LOW);
				v += chance(&a, &q, t, s);
				q.next[s] = v;
				if (a.given & 2)
					kept[t * a.as[1] + s * a.as[2]] = v;
			}
			turn(&q);
		}
		if (item == 0 && (a.given & 1)) {
			number v = q.states == 1 ? (number)0 : LOW;
			if (q.steps)
				v = join(q.state[q.states - 1],
					 q.states > 1 ? q.state[q.states - 2] : LOW, LOW);
			NUMBERS(loss, loss_at)[n * a.loss] = -v;
		}
	}
}

// The state's shares of the likelihood to `share` [N,T,2 S + 1]. link [N,2,S]: for each label the
// next one of its class, or -1, and whether it is the first.
KERNEL void WORK_GROUP_REGISTERS(ITEMS, 1)
	ctc_states(OPERAND(x), OPERAND(targets), OPERAND(steps), OPERAND(labels), OPERAND(loss),
		   OPERAND(alpha), OPERAND(link), OPERAND(share), OPERAND(work),
		   struct ctc a REPORT_PARAMS)
{
	LOCAL int bad;
	struct sequence q;
	int item = LOCAL_ID(0);
	for (long n = (long)GROUP_ID(0); n < a.N; n += (long)GROUPS(0)) {
		GLOBAL const number *kept = NUMBERS(alpha, alpha_at) + n * a.as[0];
		GLOBAL number *to = NUMBERS(share, share_at) + n * a.T * (2 * a.S + 1);
		GLOBAL long *next = (GLOBAL long *)(link + link_at) + n * 2 * a.S,
			    *is_first = next + a.S;
		if (!begin(&q, &a, n, NUMBERS(x, x_at), LONGS(targets, targets_at),
			   LONGS(steps, steps_at), LONGS(labels, labels_at), NUMBERS(work, work_at),
			   &bad, item)) {
			for (long i = item; i < a.S; i += ITEMS)
				is_first[i] = 0; // ctc_gradient then follows no link
			if (item == 0)
				report_bad(REPORT_AT, (ulong)n);
			continue;
		}
		for (long i = item; i < q.labels; i += ITEMS) {
			long k = i + 1, before = 0, label = class_of(&a, &q, 2 * i + 1);
			while (k < q.labels && class_of(&a, &q, 2 * k + 1) != label)
				k++;
			while (before < i && class_of(&a, &q, 2 * before + 1) != label)
				before++;
			next[i] = k < q.labels ? k : -1;
			is_first[i] = before == i && label != a.blank;
		}
		number scale = NUMBERS(loss, loss_at)[n * a.loss];
		for (long t = q.steps - 1; t >= 0; t--) {
			for (long s = item; s < q.states; s += ITEMS) {
				number v = s + 2 < q.states ? LOW : (number)0;
				if (t < q.steps - 1)
					v = join(q.state[s],
						 s + 1 < q.states ? q.state[s + 1] : LOW,
						 s + 2 < q.states && skips(&a, &q, s + 2) ?
							 q.state[s + 2] :
							 LOW);
				to[t * (2 * a.S + 1) + s] =
					exp(v + kept[t * a.as[1] + s * a.as[2]] + scale);
				q.next[s] = v + chance(&a, &q, t, s);
			}
			turn(&q);
		}
	}
}

KERNEL void WORK_GROUP(ITEMS, 1)
	ctc_gradient(OPERAND(dx), OPERAND(targets), OPERAND(steps), OPERAND(labels), OPERAND(g),
		     OPERAND(link), OPERAND(share), struct ctc a)
{
	LOCAL number sums[ITEMS];
	int item = LOCAL_ID(0);
	for (long group = (long)GROUP_ID(0); group < a.N * a.T; group += (long)GROUPS(0)) {
		long n = group / a.T, t = group % a.T,
		     length = LONGS(labels, labels_at)[n * a.labels];
		GLOBAL const long *target = LONGS(targets, targets_at) + n * a.ts[0];
		GLOBAL const long *next = LONGS(link, link_at) + n * 2 * a.S,
				  *is_first = next + a.S;
		GLOBAL const number *from = NUMBERS(share, share_at) + group * (2 * a.S + 1);
		GLOBAL number *to = NUMBERS(dx, dx_at) + t * a.ds[0] + n * a.ds[1];
		number factor = a.scalar ? NUMBER_OF_BITS(g_at) : NUMBERS(g, g_at)[n * a.g];
		for (long c = item; c < a.C; c += ITEMS)
			to[c * a.ds[2]] = 0;
		BARRIER_ALL();
		if (factor == 0 || t >= LONGS(steps, steps_at)[n * a.steps] || length < 0 ||
		    length > a.S)
			continue;
		number sum = 0;
		for (long s = item; s < 2 * length + 1; s += ITEMS)
			if (!(s & 1) || target[s / 2 * a.ts[1]] == a.blank)
				sum += from[s];
		sums[item] = sum;
		for (long i = item; i < length; i += ITEMS) {
			long label = target[i * a.ts[1]];
			if (!is_first[i] || label < 0 || label >= a.C)
				continue;
			number all = 0;
			for (long k = i; k >= 0; k = next[k])
				all += from[2 * k + 1];
			to[label * a.ds[2]] = -(factor * all);
		}
		BARRIER();
		for (int i = 1; i < ITEMS && item == 0; i++)
			sum += sums[i];
		if (item == 0)
			to[a.blank * a.ds[2]] = -(factor * sum);
		BARRIER();
	}
}
