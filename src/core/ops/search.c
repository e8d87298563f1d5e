// SPDX-License-Identifier: Apache-2.0
// Searching in sorted rows.
#include "config.h"

#include "graph/record.h"
#include "ops/rules.h"
#include "yoke-math.h"

// sorted [..,N], v [..,M]; attr: right
static int shape_searchsorted(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	struct yk_value lead = *IN(0);
	if (IN(0)->dtype != IN(1)->dtype || IN(0)->dtype == yoke_bool)
		return fail_two(g, c, YOKE_EDTYPE, "takes numbers of one dtype, got", IN(0), IN(1));
	*out = *IN(1);
	out->dtype = yoke_i64;
	if (lead.rank && lead.rank == out->rank)
		lead.dims[lead.rank - 1] = out->dims[out->rank - 1];
	if (!lead.rank || !yk_same_shape(&lead, out))
		return fail_two(g, c, YOKE_ESHAPE, "takes [N], or [..,N] and [..,M], got", IN(0),
				IN(1));
	return want_size(g, c, out);
}

// Binary search by powers of two: counts the elements known to come before each one.
static void decompose_searchsorted(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_value s = g->value[c->in[0]], v = g->value[c->in[1]];
	const int last = s.rank - 1;
	const int64_t n = s.dims[last];
	yk_id at = yk_broadcast(g, yk_lit(g, yoke_i64, 0), v.rank, v.dims);
	int64_t step = 1;
	while (step <= n / 2)
		step *= 2;
	for (; n && step; step /= 2) {
		yk_id next = yk_bin_lit(g, YK_ADD, at, (double)step);
		yk_id place = yk_bin_lit(g, YK_SUB, yk_bin_lit(g, YK_MIN, next, (double)n), 1);
		yk_id element = yk_record(g, YK_TAKE_ALONG, 2, (yk_id[]){ c->in[0], place }, 1,
					  &(union yoke_attr){ .i = last });
		yk_id before = yk_bin(g, c->attr[0].i ? YK_LE : YK_LT, element, c->in[1]);
		before = yk_bin(g, YK_AND, before, yk_bin_lit(g, YK_LE, next, (double)n));
		at = yk_tri(g, YK_SELECT, before, next, at);
	}
	out[0] = at;
}

YK_OP(SEARCHSORTED) = { .name = "searchsorted",
			.code = YOKE_OP_SEARCHSORTED,
			.min_in = 2,
			.max_in = 2,
			.nout = 1,
			.shape = shape_searchsorted,
			.decompose = decompose_searchsorted };

static yoke_tensor *search(const char *call, yoke_tensor *sorted, yoke_tensor *v, int right)
{
	struct yk_rec r = yk_rec_begin_as(call, YK_LEAF, 0, 2, (yoke_tensor *[]){ sorted, v });
	char a[160], b[160];
	if (r.in[0] == YK_BAD || r.in[1] == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value s = r.g->value[r.in[0]], shape = r.g->value[r.in[1]];
	const int64_t many = yk_count(&shape);
	const union yoke_attr attr = { .i = right != 0 };
	if (s.rank != 1) // rows of their own
		return yk_rec_end(&r, yk_record(r.g, YK_SEARCHSORTED, 2, r.in, 1, &attr));
	if (s.dtype != shape.dtype || s.dtype == yoke_bool) {
		yk_rec_fail(&r, YOKE_EDTYPE, "takes numbers of one dtype, got %s and %s",
			    yk_describe(&s, a), yk_describe(&shape, b));
		return yk_rec_end(&r, YK_BAD);
	}
	yk_id flat[] = { r.in[0], yk_reshape(r.g, r.in[1], 1, &many) };
	return yk_rec_end(&r, yk_reshape(r.g, yk_record(r.g, YK_SEARCHSORTED, 2, flat, 1, &attr),
					 shape.rank, shape.dims));
}

yoke_tensor *yoke_searchsorted(yoke_tensor *sorted, yoke_tensor *v, int right)
{
	return search("searchsorted", sorted, v, right);
}

yoke_tensor *yoke_bucketize(yoke_tensor *v, yoke_tensor *boundaries, int right)
{
	struct yk_rec r = yk_rec_begin(2, (yoke_tensor *[]){ v, boundaries });
	char a[160], b[160];
	const bool good = r.in[0] != YK_BAD && r.in[1] != YK_BAD && r.g->value[r.in[1]].rank == 1;
	if (!good && r.in[0] != YK_BAD && r.in[1] != YK_BAD)
		yk_rec_fail(&r, YOKE_ESHAPE, "boundaries are [N], got %s for %s",
			    yk_describe(&r.g->value[r.in[1]], a),
			    yk_describe(&r.g->value[r.in[0]], b));
	yk_rec_end(&r, YK_BAD);
	return good ? search("bucketize", boundaries, v, right) : NULL;
}
