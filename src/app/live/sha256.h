// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4), for the hashes of inline scripts and styles in a content security policy.
#ifndef YK_SHA256_H
#define YK_SHA256_H

#include <stddef.h>

// "sha256-<base64>"
void yk_sha256_text(const void *data, size_t bytes, char to[64]);

#endif
