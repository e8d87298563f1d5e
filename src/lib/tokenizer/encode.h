// SPDX-License-Identifier: Apache-2.0
// Scratch memory and cache of a caller that encodes.
#ifndef YK_ENCODE_H
#define YK_ENCODE_H

struct yk_work;
struct yk_work *yk_work_new(void); // NULL: no memory
void yk_work_free(struct yk_work *);

#endif
