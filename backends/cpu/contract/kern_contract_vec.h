// SPDX-License-Identifier: Apache-2.0
// The vector type of a file that defines T, VL (lanes) and NV (vectors of a tile's row).
#ifndef YK_KERN_CONTRACT_VEC_H
#define YK_KERN_CONTRACT_VEC_H

#define NR (NV * VL)
#ifdef __OPTIMIZE__
#define FLAT __attribute__((always_inline)) static inline
#else // gcc -O0 refuses to inline what is called through a pointer, as in kern_winograd_transform.h
#define FLAT static inline
#endif

typedef T vec __attribute__((vector_size(VL * sizeof(T))));
typedef T vec_u __attribute__((vector_size(VL * sizeof(T)), aligned(sizeof(T)), may_alias));

#endif
