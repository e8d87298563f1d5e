// SPDX-License-Identifier: Apache-2.0
// Loading, storing, adding and multiplying numbers of one dtype. DTYPE is numbered as in
// yoke-plugin.h, except bool; integers wrap and are held unsigned. WIDE_ACC: ACC is f64 (with
// USE_F64) for floating types and 64 bits wide for integers.
#include "half.cl"

#ifndef DTYPE
#define DTYPE 1
#endif
#ifdef WIDE_ACC
#define ACC_OF_REAL double
#define NARROW(a) odd_of_f64(a)
#else
#define ACC_OF_REAL float
#define NARROW(a) (a)
#endif

#if DTYPE == 1
typedef float number;
#define ACC ACC_OF_REAL
#define ACC_OF(x) ((ACC)(x))
#define NUMBER_OF(a) ((float)(a))
#define NUMBER_OF_BITS(bits) AS_FLOAT(bits)
#elif DTYPE == 2
typedef double number;
#define ACC double
#define ACC_OF(x) (x)
#define NUMBER_OF(a) (a)
#define NUMBER_OF_BITS(bits) AS_DOUBLE(bits)
#elif DTYPE == 3
typedef ushort number;
#define ACC ACC_OF_REAL
#define ACC_OF(x) ((ACC)f32_of_f16(x))
#define NUMBER_OF(a) f16_of_f32(NARROW(a))
#elif DTYPE == 4
typedef ushort number;
#define ACC ACC_OF_REAL
#define ACC_OF(x) ((ACC)f32_of_bf16(x))
#define NUMBER_OF(a) bf16_of_f32(NARROW(a))
#else
#if DTYPE == 7
typedef uint number;
#elif DTYPE == 8
typedef ulong number;
#else
typedef uchar number;
#endif
#ifdef WIDE_ACC
#define ACC ulong
#else
#define ACC number
#endif
#define ACC_OF(x) ((ACC)(x))
#define NUMBER_OF(a) ((number)(a))
#endif
#define NUMBERS(base, at) ((GLOBAL number *)((base) + (at)))
// A kernel's parameters for a view: a segment, and the view's offset in it.
#define OPERAND(name) GLOBAL uchar *name, ulong name##_at
