// SPDX-License-Identifier: Apache-2.0
// Properties and normal forms of Unicode, from utf8proc.  Builds without it know ASCII only and
// refuse tokenizers that need more (yk_unicode_require).
#ifndef YK_UNICODE_H
#define YK_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

#include "tokenizer/pieces.h"

enum yk_unicode_form { YK_NFC, YK_NFD, YK_NFKC, YK_NFKD };

// 0, or EUNSUPPORTED in builds without utf8proc.
int yk_unicode_require(const char *what);
bool yk_is_space(uint32_t c);       // White_Space
bool yk_is_punctuation(uint32_t c); // general category P
bool yk_is_mark(uint32_t c);        // general category M
bool yk_is_nonspacing(uint32_t c);  // Mn
bool yk_is_numeric(uint32_t c);     // N
bool yk_is_letter(uint32_t c);      // L, M, Nd, Nl, Pc: characters of words
bool yk_is_other(uint32_t c);       // Cc, Cf, Cs, Co
void yk_char_lower(struct yk_string *to, uint32_t c);
void yk_char_upper(struct yk_string *to, uint32_t c);
// Appends the normal form of valid UTF-8.  ENOMEM.
int yk_unicode_normal(struct yk_string *to, const char *s, size_t n, enum yk_unicode_form);
// Length of the extended grapheme cluster at s.
size_t yk_grapheme(const char *s, size_t n);

#endif
