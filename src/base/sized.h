// SPDX-License-Identifier: Apache-2.0
// Structs of callers that begin with their size: they may know fewer members than we, or more.
#ifndef YK_SIZED_H
#define YK_SIZED_H

#include <stddef.h>

// Takes from a struct of the caller's, over the defaults in `to`, what both sides know of it, pointers whole.
// EINVAL, of the public function `call`: it is NULL or has no size; type: "yoke_adamw".
int yk_sized_take(void *to, size_t size, const void *from, const char *call, const char *type);
// Gives one to the caller, who has set its size.
int yk_sized_give(void *to, size_t size, const void *from, const char *call, const char *type);

#endif
