// SPDX-License-Identifier: Apache-2.0
// The kernel texts of cl/, embedded at build time by build-aux/embed.sh.
#ifndef YK_KERNELTEXT_H
#define YK_KERNELTEXT_H

// The text of cl/NAME ("contract.cl"), or NULL.
const char *yk_kernel_text(const char *name);

#endif
