// SPDX-License-Identifier: Apache-2.0
// Encoding of a text with the bytes and ids of its segments.
#ifndef YK_TOKENIZER_SEGMENTS_H
#define YK_TOKENIZER_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "yoke-tokenizer.h"

// An interval of a text that is encoded by itself: an added token, or what lies between two of
// them.
struct yk_text_segment {
	size_t from, to; // bytes; it begins where the one before ends
	size_t first;    // index of its first id
	bool token;
};
struct yk_segments {
	struct yk_text_segment *at; // freed with free()
	size_t n, cap;
};
// yoke_tokenizer_encode_spans, which also appends the text's segments; NULL: not wanted.  Added
// tokens that are sought after normalization lie within a segment.
int yk_tokenizer_encode_segments(const yoke_tokenizer *, const char *text, size_t bytes,
				 unsigned flags, const struct yoke_text_span *plain, size_t n,
				 struct yk_segments *, int32_t **ids, size_t *count);

#endif
