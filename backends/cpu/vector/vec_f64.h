// SPDX-License-Identifier: Apache-2.0
// The element type REAL of headers that are included once per precision, and its vectors: V of VL
// lanes. Included before each of them, in place of vec_f32.h.
#undef REAL
#undef V
#undef VL
#undef LOAD
#undef STORE
#undef SPLAT
#undef FMA
#undef SUM
#define REAL double
#define V vd
#define VL VD
#define LOAD vd_load
#define STORE vd_store
#define SPLAT vd_splat
#define FMA vd_fma // (a, b, c): a * b + c
#define SUM vd_sum // of the lanes
