// SPDX-License-Identifier: Apache-2.0
// The element type REAL of headers that are included once per precision, and its vectors: V of VL
// lanes. Included before each of them, in place of vec_f64.h.
#undef REAL
#undef V
#undef VL
#undef LOAD
#undef STORE
#undef SPLAT
#undef FMA
#undef SUM
#define REAL float
#define V vf
#define VL VF
#define LOAD vf_load
#define STORE vf_store
#define SPLAT vf_splat
#define FMA vf_fma // (a, b, c): a * b + c
#define SUM vf_sum // of the lanes
