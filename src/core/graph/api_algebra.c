// SPDX-License-Identifier: Apache-2.0
// The public linear algebra.

#include "config.h"

#include "graph/record.h"

yoke_tensor *yoke_eigh(yoke_tensor *a, yoke_tensor **vectors)
{
	struct yk_rec r = yk_rec_begin_op(YK_EIGH, 1, &a);
	struct yk_call c = { .op = YK_EIGH, .nin = 1, .in = r.in };
	yk_id out = YK_BAD;
	if (vectors)
		*vectors = NULL;
	if (r.in[0] == YK_BAD || yk_append(r.g, &c, &out) < 0)
		return yk_rec_end(&r, YK_BAD);
	if (vectors && !(*vectors = yk_handle_of(r.ctx, out + 1)))
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, out);
}

yoke_tensor *yoke_cholesky(yoke_tensor *a)
{
	struct yk_rec r = yk_rec_begin_op(YK_CHOLESKY, 1, &a);
	return yk_rec_end(&r, yk_un(r.g, YK_CHOLESKY, r.in[0]));
}

// x [..,m,n] with the leading axes that both have, when they broadcast; else x, and the row says what does not fit
static yk_id batch(struct yk_graph *g, yk_id x, yk_id y)
{
	struct yk_value to = g->value[x];
	const struct yk_value v = g->value[x], o = g->value[y];
	const int rank = v.rank > o.rank ? v.rank : o.rank;
	if (v.rank < 2 || o.rank < 2)
		return x;
	for (int i = 0; i < rank; i++) {
		const int iv = i - (rank - v.rank), io = i - (rank - o.rank);
		const int64_t dv = iv < 0 ? 1 : v.dims[iv], d = io < 0 ? 1 : o.dims[io];
		to.dims[i] = i >= rank - 2 || dv != 1 ? dv : d;
	}
	to.rank = (uint8_t)rank;
	return yk_same_shape(&to, &v) ? x : yk_broadcast(g, x, to.rank, to.dims);
}

yoke_tensor *yoke_solve_triangular(yoke_tensor *t, yoke_tensor *b, unsigned flags)
{
	struct yk_rec r = yk_rec_begin_op(YK_SOLVE_TRIANGULAR, 2, (yoke_tensor *[]){ t, b });
	if (r.in[0] == YK_BAD || r.in[1] == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	if (flags & ~(YOKE_TRANSPOSED | YOKE_UPPER | YOKE_UNIT)) {
		yk_rec_fail(&r, YOKE_EINVAL, "flags %#x are not among YOKE_TRANSPOSED, YOKE_UPPER and YOKE_UNIT", flags);
		return yk_rec_end(&r, YK_BAD);
	}
	const yk_id in[2] = { batch(r.g, r.in[0], r.in[1]), batch(r.g, r.in[1], r.in[0]) };
	const union yoke_attr how[3] = { { .i = (flags & YOKE_TRANSPOSED) != 0 },
					 { .i = (flags & YOKE_UPPER) != 0 },
					 { .i = (flags & YOKE_UNIT) != 0 } };
	return yk_rec_end(&r, yk_record(r.g, YK_SOLVE_TRIANGULAR, 2, in, 3, how));
}
