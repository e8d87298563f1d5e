// SPDX-License-Identifier: Apache-2.0
// Tokenizers of exported models, as the tables that GGUF files have.
#ifndef YK_EXPORT_TOKENIZER_H
#define YK_EXPORT_TOKENIZER_H

#include "export/export.h"
#include "formats/gguf_write.h"
#include "tokenizer/gguf.h"

// The tables and the memory that they are in.
struct yk_export_tables {
	struct yk_gguf_tokenizer is;
	struct yk_gguf_string *token, *merge;
	float *score;
	int32_t *type;
	struct yk_arena arena;
};
void yk_export_tables_fini(struct yk_export_tables *);
// The tables of a model that yoke trained on bytes.  1; 0: it was trained on something else.
int yk_export_byte_tables(const struct yk_export *, struct yk_export_tables *);

#endif
