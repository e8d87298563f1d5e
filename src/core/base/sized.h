// SPDX-License-Identifier: Apache-2.0
// Structs of callers that begin with their size: they may know fewer members than we, or more.
#ifndef YK_SIZED_H
#define YK_SIZED_H

#include <stddef.h>

// The check that all of these make: EINVAL, of the public function `call`, for NULL and for a size that no version of the
// struct has: less than two words, no multiple of a word, or above 64 KiB.  word: the bytes of its size, those of a size_t,
// or of a uint32_t for structs of yoke-plugin.h.  type: "yoke_adamw".  Returns the size.
int yk_sized_check(const void *theirs, size_t word, const char *call, const char *type);
// Takes from a struct of the caller's, over the defaults in `to`, what both sides know of it.  0, or EINVAL as above.
int yk_sized_take(void *to, size_t size, const void *from, const char *call, const char *type);
// Checks an output array of `most` structs, which may be NULL: the size of the first one.  EINVAL, also for most < 0.
int yk_sized_array(const void *to, int most, const char *call, const char *type);
// Gives number i of an array, of which the caller has set the size of the first.
int yk_sized_give_at(void *to, int i, size_t size, const void *from, const char *call, const char *type);
// Gives one to the caller, who has set its size.
int yk_sized_give(void *to, size_t size, const void *from, const char *call, const char *type);

#endif
