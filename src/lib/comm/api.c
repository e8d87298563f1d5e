// SPDX-License-Identifier: Apache-2.0
// Public functions that record collectives as ops, and the checks of their arguments.
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "comm/ranks.h"
#include "graph/record.h"

static const char *name_of(int op)
{
	return yk_op_def(op)->name;
}

// Checks that the other rank is in the group, and that the operands belong to the group's context.
static int check(const struct yoke_context *ctx, const yoke_group *g, int op, int kind, int peer)
{
	if (ctx != g->ctx)
		return yk_fail(YOKE_ECONTEXT,
			       "%s: the tensor is of another context than the rank's", name_of(op));
	if (peer < 0 || (uint32_t)peer >= g->ranks)
		return yk_fail(YOKE_ERANGE, "%s: no rank %d in a group of %u", name_of(op), peer,
			       g->ranks);
	if (kind < 0 || kind > YOKE_REDUCE_MIN)
		return yk_fail(YOKE_EINVAL, "%s: kind %d is none of YOKE_REDUCE_SUM, MAX and MIN",
			       name_of(op), kind);
	if ((op == YK_RANKS_SEND || op == YK_RANKS_RECV) && (uint32_t)peer == g->rank)
		return yk_fail(YOKE_EINVAL, "%s: rank %d is this one", name_of(op), peer);
	return 0;
}

static void attributes(union yoke_attr *to, const yoke_group *g, int kind, int peer, bool whole)
{
	const struct yk_ranked r = { (int64_t)g->number, g->ranks, g->rank, kind, peer, whole };
	memcpy(to, &r, sizeof r);
}

// Rejects kinds that are not reductions (1 and up); `kind` 0 marks an op that reduces nothing.
static int want_kind(int op, int kind)
{
	return kind > 0 ?
		       0 :
		       yk_fail(YOKE_EINVAL, "%s: kind %d is none of YOKE_REDUCE_SUM, MAX and MIN",
			       name_of(op), kind);
}

static int list(int op, yoke_group *g, int kind, int peer, bool whole, int n, yoke_tensor *const *x,
		yoke_tensor **to, const char *call)
{
	struct yoke_context *ctx =
		yk_require_as(g, call, "group") ? NULL : yk_enter_list_to(n, x, to, call);
	union yoke_attr attr[YK_RANKED];
	yk_id *in = NULL;
	if (!ctx)
		return yk_results(yk_error_last(), n, to);
	int err = check(ctx, g, op, kind, peer);
	if (!err && !(in = yk_lists(ctx, n, 1, &x, 0)))
		err = yk_error_last();
	attributes(attr, g, kind, peer, whole);
	const struct yk_call c = { .op = (uint16_t)op,
				   .list = (uint32_t)n,
				   .nin = (uint32_t)n,
				   .in = in,
				   .nattr = YK_RANKED,
				   .attr = attr };
	return yk_list_record(ctx, err, &c, in, n, to);
}

static yoke_tensor *one(int op, yoke_group *g, int kind, int peer, yoke_tensor *x, const char *call)
{
	if (yk_require_as(g, call, "group"))
		return NULL;
	struct yk_rec r = yk_rec_begin_as(call, YK_LEAF, 0, 1, &x);
	union yoke_attr attr[YK_RANKED];
	if (r.ctx && check(r.ctx, g, op, kind, peer) < 0)
		r.in[0] = YK_BAD;
	attributes(attr, g, kind, peer, false);
	return yk_rec_end(&r, yk_record(r.g, op, 1, r.in, YK_RANKED, attr));
}

yoke_tensor *yoke_all_reduce(yoke_group *g, int kind, yoke_tensor *x)
{
	yoke_tensor *to = NULL;
	if (want_kind(YK_RANKS_ALL_REDUCE, kind) < 0)
		return NULL;
	list(YK_RANKS_ALL_REDUCE, g, kind, 0, false, 1, &x, &to, "all_reduce");
	return to;
}

int yoke_all_reduce_list(yoke_group *g, int kind, int n, yoke_tensor *const *x, yoke_tensor **to)
{
	int err = want_kind(YK_RANKS_ALL_REDUCE, kind);
	return err ? yk_results(err, n, to) :
		     list(YK_RANKS_ALL_REDUCE, g, kind, 0, false, n, x, to, "all_reduce_list");
}

yoke_tensor *yoke_reduce_scatter(yoke_group *g, int kind, yoke_tensor *x)
{
	if (want_kind(YK_RANKS_REDUCE_SCATTER, kind) < 0)
		return NULL;
	return one(YK_RANKS_REDUCE_SCATTER, g, kind, 0, x, "reduce_scatter");
}

yoke_tensor *yoke_all_gather(yoke_group *g, yoke_tensor *x)
{
	return one(YK_RANKS_ALL_GATHER, g, 0, 0, x, "all_gather");
}

yoke_tensor *yoke_broadcast(yoke_group *g, int root, yoke_tensor *x)
{
	yoke_tensor *to = NULL;
	list(YK_RANKS_BROADCAST, g, 0, root, false, 1, &x, &to, "broadcast");
	return to;
}

int yoke_broadcast_list(yoke_group *g, int root, int n, yoke_tensor *const *x, yoke_tensor **to)
{
	return list(YK_RANKS_BROADCAST, g, 0, root, false, n, x, to, "broadcast_list");
}

int yk_gather_shards(struct yoke_group *g, int64_t unit, int n, yoke_tensor *const *x,
		     yoke_tensor *mine, yoke_tensor **to)
{
	struct yoke_context *ctx = yk_enter_list(n, x, "gather_shares");
	union yoke_attr attr[YK_RANKED];
	if (!ctx)
		return yk_results(yk_error_last(), n, to);
	yk_id *in = yk_lists(ctx, n, 1, &x, 1);
	int err = in ? 0 : yk_error_last();
	if (!err && (in[n] = yk_operand(ctx, mine, yoke_f32)) == YK_BAD)
		err = yk_error_last();
	attributes(attr, g, 0, (int)unit, false);
	const struct yk_call c = { .op = YK_RANKS_GATHER_SHARDS,
				   .list = (uint32_t)n,
				   .nin = (uint32_t)n + 1,
				   .in = in,
				   .nattr = YK_RANKED,
				   .attr = attr };
	return yk_list_record(ctx, err, &c, in, n, to);
}

int yk_gather_tensors(struct yoke_group *g, int64_t unit, int n, const struct yk_shape *x,
		      yoke_tensor *mine, yoke_tensor **to)
{
	struct yoke_context *ctx = yk_enter_list(1, &mine, "gather_shares");
	union yoke_attr attr[YK_RANKED + YK_GATHERED * (1 + YOKE_MAX_RANK)];
	uint32_t nattr = YK_RANKED;
	if (!ctx)
		return yk_results(yk_error_last(), n, to);
	yk_id *in = yk_lists(ctx, 1, 1, &(yoke_tensor *const *){ &mine }, 0);
	const int err = !in ? yk_error_last() :
			n > YK_GATHERED ?
			      yk_fail(YOKE_EINVAL, "gather_shares: %d tensors, %d are possible", n,
				      YK_GATHERED) :
			      0;
	attributes(attr, g, 0, (int)unit, true);
	for (int i = 0; i < n && !err; i++) {
		attr[nattr++].i = x[i].rank;
		for (int d = 0; d < x[i].rank; d++)
			attr[nattr++].i = x[i].dims[d];
	}
	const struct yk_call c = { .op = YK_RANKS_GATHER_SHARDS,
				   .list = (uint32_t)n,
				   .nin = 1,
				   .in = in,
				   .nattr = nattr,
				   .attr = attr };
	return yk_list_record(ctx, err, &c, in, n, to);
}

yoke_tensor *yk_reduce_shards(struct yoke_group *g, int64_t unit, int n, yoke_tensor *const *x)
{
	struct yoke_context *ctx = yk_enter_list(n, x, "reduce_shares");
	union yoke_attr attr[YK_RANKED + 1];
	yoke_tensor *to = NULL;
	if (!ctx)
		return NULL;
	yk_id *in = yk_lists(ctx, n, 1, &x, 0);
	int64_t *count = malloc((size_t)n * sizeof *count);
	int err = in && count ? 0 :
		  in          ? yk_fail(YOKE_ENOMEM, "reduce_shares: no memory") :
				yk_error_last();
	for (int i = 0; i < n && !err; i++)
		count[i] = yk_count(&ctx->graph.value[in[i]]);
	attributes(attr, g, YOKE_REDUCE_SUM, (int)unit, false);
	attr[YK_RANKED].i = 0;
	if (!err)
		attr[YK_RANKED].i = yk_shard_at(g->ranks, g->rank + 1, unit, (uint32_t)n, count) -
				    yk_shard_at(g->ranks, g->rank, unit, (uint32_t)n, count);
	// attribute of at least 1 element: an empty shard still needs a tensor
	attr[YK_RANKED].i += !attr[YK_RANKED].i;
	const struct yk_call c = { .op = YK_RANKS_REDUCE_SHARDS,
				   .list = (uint32_t)n,
				   .nin = (uint32_t)n,
				   .in = in,
				   .nattr = YK_RANKED + 1,
				   .attr = attr };
	free(count);
	return yk_list_record(ctx, err, &c, in, 1, &to) ? NULL : to;
}

yoke_tensor *yoke_reduce(yoke_group *g, int kind, int root, yoke_tensor *x)
{
	yoke_tensor *to = NULL;
	if (want_kind(YK_RANKS_REDUCE, kind) == 0)
		list(YK_RANKS_REDUCE, g, kind, root, false, 1, &x, &to, "reduce");
	return to;
}

yoke_tensor *yoke_all_to_all(yoke_group *g, yoke_tensor *x)
{
	return one(YK_RANKS_ALL_TO_ALL, g, 0, 0, x, "all_to_all");
}

yoke_tensor *yoke_send(yoke_group *g, int to, yoke_tensor *x)
{
	return one(YK_RANKS_SEND, g, 0, to, x, "send");
}

yoke_tensor *yoke_recv(yoke_group *g, int from, int dtype, int rank, const int64_t *dims,
		       yoke_tensor *after)
{
	if (yk_require(g, "group"))
		return NULL;
	const bool any = after != YOKE_NONE;
	union yoke_attr attr[YK_RANKED + 1 + YOKE_MAX_RANK];
	struct yk_rec r = yk_rec_begin_as("recv", YK_LEAF, 0, any, &after);
	bool good =
		r.ctx && !check(r.ctx, g, YK_RANKS_RECV, 0, from) && (!any || r.in[0] != YK_BAD);
	if (good && (!yoke_dtype_size(dtype) || rank < 0 || rank > YOKE_MAX_RANK)) {
		yk_rec_fail(&r, YOKE_EINVAL, "dtype %d of rank %d", dtype, rank);
		good = false;
	}
	good = good && yk_rec_array(&r, rank, dims, "dims");
	attributes(attr, g, 0, from, false);
	attr[YK_RANKED].i = dtype;
	for (int i = 0; i < rank && good; i++)
		attr[YK_RANKED + 1 + i].i = dims[i];
	return yk_rec_end(&r, !good ? YK_BAD : yk_record(r.g, YK_RANKS_RECV, any, r.in,
							 YK_RANKED + 1u + (uint32_t)rank, attr));
}

yoke_tensor *yoke_tensor_in(yoke_group *g, yoke_tensor *x)
{
	return one(YK_RANKS_IN, g, YOKE_REDUCE_SUM, 0, x, "tensor_in");
}

yoke_tensor *yoke_tensor_out(yoke_group *g, yoke_tensor *x)
{
	yoke_tensor *to = NULL;
	list(YK_RANKS_ALL_REDUCE, g, YOKE_REDUCE_SUM, 0, true, 1, &x, &to, "tensor_out");
	return to;
}
