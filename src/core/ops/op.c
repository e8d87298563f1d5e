// SPDX-License-Identifier: Apache-2.0
// The table of op definitions, built from YK_OP_LIST; the files of this directory define the
// entries.
#include "config.h"

#include "ops/rules.h"

#define X(N) extern YK_OP(N);
YK_OP_LIST(X)
#undef X

#define X(N) [YK_##N] = &yk_op_##N,
const struct yk_op_def *const yk_op_defs[YK_OPS] = { YK_OP_LIST(X) };

uint32_t yk_nout_listed(const struct yk_op_def *row, const struct yk_call *c)
{
	if (c->op == YK_SCAN_MAP)
		return yk_scanned(c->attr).map.nout;
	return row->nout - row->lists_out + yk_lists_out(c->op, c->attr) * c->list;
}
