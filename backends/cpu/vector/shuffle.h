// SPDX-License-Identifier: Apache-2.0
// YK_SHUFFLE(a, b, i, ..): a vector of elements of two vectors by their numbers; those of b follow
// those of a. Elements have 4 or 8 bytes, and the result has as many as a: GCC before 12 lacks
// Clang's builtin.
#ifndef YK_SHUFFLE_H
#define YK_SHUFFLE_H

#if defined __clang__ || __GNUC__ >= 12
#define YK_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
// the type of an index has the size of an element
#define YK_SHUFFLE(a, b, ...) \
	({ \
		typedef __typeof__(__builtin_choose_expr(sizeof((a)[0]) == 8, (long long)0, 0)) \
			yk_index_ __attribute__((vector_size(sizeof(a)))); \
		__builtin_shuffle(a, b, (yk_index_){ __VA_ARGS__ }); \
	})
#endif

#endif
