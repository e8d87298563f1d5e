// SPDX-License-Identifier: Apache-2.0
// Alignments of one sequence in one precision, in log space. Included once per precision with REAL
// and CTC(name), and JOIN(to, a, n, x): to[i] = log sum exp of a[i], a[i - 1] and, where x[i] is 0,
// a[i - 2], or with -inf added where x[i] is -inf; and EXP(x, n), in place.

struct CTC(sequence) {
	const struct yoke_op *op;
	int64_t index, steps, states; // states: 2 labels + 1
	int64_t *class;               // [states]
	REAL *skip;                   // [states]: 0 where s - 2 may precede s, else -inf
	REAL *a, *b;                  // [states], with 2 elements of -inf before
};

static inline REAL CTC(x)(const struct CTC(sequence) * q, int64_t t, int64_t class)
{
	const struct yoke_view *x = &q->op->in[0];
	return ((const REAL *)yk_ptr(
		x))[t * x->strides[0] + q->index * x->strides[1] + class * x->strides[2]];
}

static bool CTC(sequence)(struct CTC(sequence) * q, const struct yoke_op *op, int64_t index,
			  int64_t blank)
{
	const struct yoke_view *targets = &op->in[1];
	const int64_t labels = length_of(&op->in[3], index),
		      all = padded(2 * targets->dims[1] + 1 + 2);
	*q = (struct CTC(sequence)){ .op = op,
				     .index = index,
				     .steps = length_of(&op->in[2], index),
				     .states = 2 * labels + 1 };
	q->class = yk_team_scratch((size_t)all * (sizeof *q->class + 3 * sizeof(REAL)));
	if (!q->class)
		return false;
	q->skip = (REAL *)(q->class + all);
	q->a = q->skip + all;
	q->b = q->a + all;
	for (int64_t i = 0; i < 3 * all; i++)
		q->skip[i] = (REAL)-INFINITY;
	q->a += 2;
	q->b += 2;
	for (int64_t s = 0; s < q->states; s++) {
		q->class[s] =
			s & 1 ? ((const int64_t *)yk_ptr(targets))[index * targets->strides[0] +
								   s / 2 * targets->strides[1]] :
				blank;
		if (s & 1 && (s < 2 || q->class[s] != q->class[s - 2]))
			q->skip[s] = 0;
	}
	return true;
}

// Returns log of the likelihood; alpha: [T,S] of the sequence, or NULL
static REAL CTC(forward)(struct CTC(sequence) * q, REAL *alpha, int64_t step, int64_t each)
{
	REAL *a = q->a, *b = q->b;
	for (int64_t t = 0; t < q->steps; t++) {
		if (t) {
			JOIN(b, a, q->states, q->skip);
		} else {
			for (int64_t s = 0; s < q->states; s++)
				b[s] = s < 2 ? 0 : (REAL)-INFINITY;
		}
		for (int64_t s = 0; s < q->states; s++)
			b[s] += CTC(x)(q, t, q->class[s]);
		for (int64_t s = 0; s < q->states && alpha; s++)
			alpha[t * step + s * each] = b[s];
		REAL *swap = a;
		a = b;
		b = swap;
	}
	if (!q->steps)
		return q->states == 1 ? 0 : (REAL)-INFINITY;
	if (q->states == 1)
		return a[0];
	const REAL x = a[q->states - 1], y = a[q->states - 2], max = x > y ? x : y;
	return max == (REAL)-INFINITY ?
		       x + y :
		       max + (REAL)log1p(exp((double)(x > y ? y : x) - (double)max));
}

// dx of the sequence; g: the cotangent of its loss
static void CTC(backward)(struct CTC(sequence) * q, const REAL *alpha, int64_t step, int64_t each,
			  REAL loss, REAL g)
{
	const struct yoke_view *y = &q->op->out[0];
	const int64_t steps = y->dims[0], classes = y->dims[2], n = q->states;
	REAL *to = (REAL *)yk_ptr(y) + q->index * y->strides[1];
	REAL *a = q->a, *b = q->b; // reversed: element i is state n - 1 - i
	for (int64_t t = 0; t < steps; t++)
		for (int64_t c = 0; c < classes; c++)
			to[t * y->strides[0] + c * y->strides[2]] = 0;
	if (g == 0)
		return;
	for (int64_t i = 0; i < n / 2;
	     i++) { // skip[i]: i - 2, which is the state after the next, may follow
		const REAL s = q->skip[i];
		q->skip[i] = q->skip[n - 1 - i];
		q->skip[n - 1 - i] = s;
	}
	for (int64_t i = n - 1; i >= 2; i--)
		q->skip[i] = q->skip[i - 2];
	for (int64_t i = 0; i < n && i < 2; i++)
		q->skip[i] = (REAL)-INFINITY;
	for (int64_t t = q->steps - 1; t >= 0; t--) {
		if (t < q->steps - 1) {
			JOIN(b, a, n, q->skip);
		} else {
			for (int64_t i = 0; i < n; i++)
				b[i] = i < 2 ? 0 : (REAL)-INFINITY;
		}
		for (int64_t i = 0; i < n; i++)
			a[i] = b[i] + alpha[t * step + (n - 1 - i) * each] + loss;
		EXP(a, n);
		for (int64_t i = 0; i < n; i++)
			to[t * y->strides[0] + q->class[n - 1 - i] * y -> strides[2]] -= g * a[i];
		for (int64_t i = 0; i < n; i++)
			a[i] = b[i] + CTC(x)(q, t, q->class[n - 1 - i]);
	}
}

static void CTC(item)(void *arg, int64_t index)
{
	struct job *j = arg;
	const struct yoke_op *op = j->op;
	struct CTC(sequence) q;
	if (!CTC(sequence)(&q, op, index, j->blank)) {
		atomic_store(&j->no_memory, true);
		return;
	}
	if (op->code == YOKE_OP_CTC_BACKWARD) {
		const struct yoke_view *loss = &op->in[4], *a = &op->in[5], *g = &op->in[6];
		CTC(backward)
		(&q, (const REAL *)yk_ptr(a) + index * a->strides[0], a->strides[1], a->strides[2],
		 ((const REAL *)yk_ptr(loss))[index * loss->strides[0]],
		 g->kind == YOKE_VIEW_SCALAR ? CTC(bits)(g) :
					       ((const REAL *)yk_ptr(g))[index * g->strides[0]]);
		return;
	}
	const struct yoke_view *loss = &op->out[0], *v = &op->out[1];
	REAL *alpha = NULL;
	if (v->kind != YOKE_VIEW_NONE) {
		alpha = (REAL *)yk_ptr(v) + index * v->strides[0];
		for (int64_t t = 0; t < v->dims[1]; t++)
			for (int64_t s = t < q.steps ? q.states : 0; s < v->dims[2]; s++)
				alpha[t * v->strides[1] + s * v->strides[2]] = (REAL)-INFINITY;
	}
	const REAL likelihood = CTC(forward)(&q, alpha, v->strides[1], v->strides[2]);
	if (loss->kind != YOKE_VIEW_NONE)
		((REAL *)yk_ptr(loss))[index * loss->strides[0]] = -likelihood;
}
