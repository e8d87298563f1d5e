// SPDX-License-Identifier: Apache-2.0
// The public slices, updates and assignments whose starts are values.

#include "config.h"

#include "base/error.h"
#include "graph/record.h"

// x behind begin and one start for each of its axes as operands; their number, 0 after an error.
static uint32_t with_starts(struct yk_rec *r, yoke_tensor *const *starts, yk_id *in)
{
	if (r->in[0] == YK_BAD)
		return 0;
	uint32_t rank = r->g->value[r->in[0]].rank;
	if (!yk_rec_array(r, (int)rank, starts, "starts"))
		return 0;
	in[0] = r->in[0];
	for (uint32_t i = 0; i < rank; i++)
		if ((in[1 + i] = yk_operand(r->ctx, starts[i], yoke_i64)) == YK_BAD)
			return 0;
	return 1 + rank;
}

yoke_tensor *yoke_slice_at(yoke_tensor *x, yoke_tensor *const *starts,
			   const int64_t *sizes)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	yk_id in[YOKE_MAX_RANK + 1];
	union yoke_attr size[YOKE_MAX_RANK];
	uint32_t n = with_starts(&r, starts, in);
	if (n && !yk_rec_array(&r, (int)n - 1, sizes, "sizes"))
		n = 0;
	for (uint32_t i = 0; i + 1 < n; i++)
		size[i].i = sizes[i];
	return yk_rec_end(&r, n ? yk_record(r.g, YK_SLICE_AT, n, in, n - 1, size) : YK_BAD);
}

static yoke_tensor *update(const char *call, yoke_tensor *x, yoke_tensor *const *starts,
			   yoke_tensor *v)
{
	struct yk_rec r = yk_rec_begin_as(call, YK_SLICE_UPDATE_AT, 0, 2, (yoke_tensor *[]){ x, v });
	yk_id in[YOKE_MAX_RANK + 2];
	uint32_t n = with_starts(&r, starts, in);
	if (!n)
		return yk_rec_end(&r, YK_BAD);
	in[n] = r.in[1];
	return yk_rec_end(&r, yk_record(r.g, YK_SLICE_UPDATE_AT, n + 1, in, 0, NULL));
}

yoke_tensor *yoke_slice_update_at(yoke_tensor *x, yoke_tensor *const *starts,
				  yoke_tensor *v)
{
	return update("slice_update_at", x, starts, v);
}

int yoke_assign_at(yoke_tensor *variable, yoke_tensor *const *starts, yoke_tensor *v)
{
	yoke_tensor *next = update("assign_at", variable, starts, v);
	int err = yoke_assign(variable, next);
	yoke_free(next);
	return err;
}
