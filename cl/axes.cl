// SPDX-License-Identifier: Apache-2.0
// Iteration over several tensors with common axes: rows are numbered, the last axis is walked
// along. The host side is axes.c of backends/gpu. WIDE_INDEX: the row number needs more than 31
// bits.
#include "prologue.h"

#ifdef WIDE_INDEX
#define INDEX ulong
#else
#define INDEX uint
#endif
#define AXES 8

struct axes {
	long rank, rows, cols;
	long dims[AXES], strides[4][AXES];
};

// Offset of row r in tensor `which`, in elements.
FN long row_of(const struct axes *a, int which, ulong row)
{
	INDEX r = (INDEX)row;
	long at = 0;
	for (int k = (int)a->rank - 2; k > 0; k--) {
		INDEX n = (INDEX)a->dims[k], q = r / n;
		at += (long)(r - q * n) * a->strides[which][k];
		r = q;
	}
	return a->rank > 1 ? at + (long)r * a->strides[which][0] : 0;
}

FN long step_of(const struct axes *a, int which)
{
	return a->strides[which][a->rank - 1];
}

#ifndef UNIT // bytes per element, whatever its dtype
#define UNIT 4
#endif
#if UNIT == 1
typedef uchar unit;
#elif UNIT == 2
typedef ushort unit;
#elif UNIT == 4
typedef uint unit;
#else
typedef ulong unit;
#endif
#define UNITS(base, at) ((GLOBAL unit *)((base) + (at)))
