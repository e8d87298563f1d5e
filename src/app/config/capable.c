// SPDX-License-Identifier: Apache-2.0
// Determines how a device computes an op: natively, emulated, or not at all.
#include "config.h"

#include "config/capable.h"

#include "conform/sample.h"
#include "conform/selftest.h"
#include "graph/op.h"

// Whether the op can be decomposed into others.
static bool is_decomposable(int code)
{
	for (int op = 0; op < YK_OPS; op++)
		if (yk_op_def(op)->code == code && yk_op_def(op)->decompose)
			return true;
	return false;
}

enum yk_capable yk_capable(struct yk_device *d, int code, int dtype)
{
	const struct yk_case_row *row = yk_case_row(code);
	const bool half = dtype == yoke_f16 || dtype == yoke_bf16;
	if (!row || !(row->dtypes >> dtype & 1))
		return YK_NO_SUCH;
	if (!yk_selftest_runs(d, code, dtype))
		return is_decomposable(code) ? YK_EMULATED : YK_INCAPABLE;
	return code == YOKE_OP_CONTRACT && half && !(d->info.products >> dtype & 1) ? YK_EMULATED :
	       YK_NATIVE;
}

const char *yk_capable_name(enum yk_capable c)
{
	return c == YK_NATIVE    ? "native" :
	       c == YK_EMULATED  ? "emulated" :
	       c == YK_INCAPABLE ? "none" :
				   "-";
}
