// SPDX-License-Identifier: Apache-2.0
// The kernel texts of cl/, embedded at build time by build-aux/embed.sh, and programs assembled
// from them.
#ifndef YK_KERNELTEXT_H
#define YK_KERNELTEXT_H

#include "yoke-plugin.h"

// The text of cl/NAME ("contract.cl"), or NULL.
const char *yk_kernel_text(const char *name);

// kernel_source of struct yoke_host, documented in yoke-plugin.h.
int64_t yk_kernel_source(int dialect, const struct yoke_op *, const char *text, char *to,
			 size_t cap);
// The same with texts from another source than cl/.
typedef const char *yk_text_fn(const char *name);
int64_t yk_kernel_source_of(yk_text_fn *, int dialect, const struct yoke_op *, const char *text,
			    char *to, size_t cap);

#endif
