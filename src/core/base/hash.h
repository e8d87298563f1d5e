// SPDX-License-Identifier: Apache-2.0
// XXH64 of xxHash, used for all hashes: keys of plans, seeds of random calls, checksums.
#ifndef YK_HASH_H
#define YK_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t yk_hash(const void *data, size_t bytes, uint64_t seed);
// The hash of n numbers of `width` bytes as a little-endian host stores them: hosts of either order
// agree.
uint64_t yk_hash_numbers(const void *, size_t width, size_t n, uint64_t seed);
struct yk_hash_state;
struct yk_hash_state *yk_hash_new(uint64_t seed); // NULL: no memory
void yk_hash_add(struct yk_hash_state *, const void *data, size_t bytes);
uint64_t yk_hash_end(struct yk_hash_state *); // frees the state

#endif
