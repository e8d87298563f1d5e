// SPDX-License-Identifier: Apache-2.0
// Finds the processor that a module was built for.
#ifndef YK_FOREIGN_H
#define YK_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>

// Is the file an ELF module for another processor, word size or byte order than this program? Then
// `why` names both. False also if the file cannot be read.
bool yk_elf_foreign(const char *path, char *why, size_t cap);

#endif
