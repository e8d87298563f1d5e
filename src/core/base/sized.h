// SPDX-License-Identifier: Apache-2.0
// Copies public structs that begin with their size: the caller's version may have fewer members
// than the library's, or more.
#ifndef YK_SIZED_H
#define YK_SIZED_H

#include <stddef.h>

// The check that all functions here make; returns the size. EINVAL, naming the public function
// `call`, for NULL and for a size that no version of the struct can have: less than two words, not
// a multiple of a word, or above 64 KiB. word: the bytes of the size member, sizeof(size_t), or
// sizeof(uint32_t) for structs of yoke-plugin.h. type: "yoke_adamw".
int yk_sized_check(const void *theirs, size_t word, const char *call, const char *type);
// Copies the members that both sides know from the caller's struct over the defaults in `to`.  0,
// or EINVAL as above.
int yk_sized_read(void *to, size_t size, const void *from, const char *call, const char *type);
// Checks an output array of `max` structs, which may be NULL, by the size of its first struct.
// EINVAL, also for max < 0.
int yk_sized_array(const void *to, int max, const char *call, const char *type);
// Stores element i of an array; the caller has set the size member of the array's first struct.
int yk_sized_write_at(void *to, int i, size_t size, const void *from, const char *call,
		      const char *type);
// Stores one struct; the caller has set its size member.
int yk_sized_write(void *to, size_t size, const void *from, const char *call, const char *type);

#endif
