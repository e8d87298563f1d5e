// SPDX-License-Identifier: Apache-2.0
// Tokenizers of published models: text to token ids and back, with the same ids as the libraries that
// made the files (Hugging Face `tokenizers`, SentencePiece).
//
//	yoke_tokenizer *t = yoke_tokenizer_open("model/tokenizer.json");
//	int32_t *ids;
//	size_t n, bytes;
//	char *text;
//	yoke_tokenizer_encode(t, "Hello", 5, YOKE_TOKENIZER_ADD, &ids, &n);
//	yoke_tokenizer_decode(t, ids, n, YOKE_TOKENIZER_SKIP, &text, &bytes);
//	free(ids);
//	free(text);
//	yoke_tokenizer_free(t);
//
// Functions return 0 or a negative YOKE_E* code; on failure outputs are untouched.  A tokenizer does
// not change after it is opened, so threads may share it.
#ifndef YOKE_TOKENIZER_H
#define YOKE_TOKENIZER_H

#include <yoke.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_tokenizer yoke_tokenizer;

// Opens tokenizer.json, tokenizer.model, or a folder that contains one of them; tokenizer.json is
// preferred.  From the same folder tokenizer_config.json, generation_config.json and
// chat_template.jinja supply special ids and the chat template, if they exist.  Files have at most
// 64 MiB.  NULL: ENOENT, EIO, ENOMEM; EFORMAT if the file is damaged or has an unknown component;
// EUNSUPPORTED if this build lacks Oniguruma (regular expressions) or utf8proc (Unicode normal
// forms) and the tokenizer needs it.
YOKE_API yoke_tokenizer *yoke_tokenizer_open(const char *path);
// Reads the contents of a tokenizer.json or tokenizer.model from memory; `name` stands for the file in
// messages.
YOKE_API yoke_tokenizer *yoke_tokenizer_parse(const void *data, size_t bytes, const char *name);
YOKE_API void yoke_tokenizer_free(yoke_tokenizer *); // NULL is allowed

// Flags of encode and decode.
enum {
	YOKE_TOKENIZER_ADD = 1,   // encode: add the special tokens of the post-processor, such as BOS
	YOKE_TOKENIZER_PARSE = 2, // encode: special tokens written in the text become their ids;
				  // without it they are ordinary text, as user input must be
	YOKE_TOKENIZER_SKIP = 4,  // decode: leave out special tokens
	YOKE_TOKENIZER_BYTES = 8, // decode: keep byte sequences that are not UTF-8; without it they
				  // become U+FFFD
};

// Encodes UTF-8 text.  *ids has *count elements and is freed with free(); it is never NULL.
// Truncation and padding settings of the file are not applied.  EFORMAT: not UTF-8; ERANGE: a regular
// expression exceeds its limit of backtracking; EINVAL: an unknown flag.
YOKE_API int yoke_tokenizer_encode(const yoke_tokenizer *, const char *text, size_t bytes, unsigned flags,
				   int32_t **ids, size_t *count);
// Decodes ids.  *text is terminated with a NUL that *bytes does not count, and is freed with free().
// Ids without a token are left out.
YOKE_API int yoke_tokenizer_decode(const yoke_tokenizer *, const int32_t *ids, size_t count, unsigned flags,
				   char **text, size_t *bytes);

// Number of ids: the largest one + 1.
YOKE_API int yoke_tokenizer_size(const yoke_tokenizer *);
// The token of an id as the file spells it ("\u0120the" in byte-level vocabularies), valid while the
// tokenizer lives; NULL if the id has none.
YOKE_API const char *yoke_tokenizer_piece(const yoke_tokenizer *, int32_t id, size_t *bytes);
// The id of a token as the file spells it; -1 if there is none.
YOKE_API int yoke_tokenizer_id(const yoke_tokenizer *, const char *piece, size_t bytes);
// Is the id a special token, such as BOS?
YOKE_API int yoke_tokenizer_is_special(const yoke_tokenizer *, int32_t id);

// Special ids, -1 if the files name none; functions of a NULL tokenizer return EINVAL.
YOKE_API int yoke_tokenizer_bos(const yoke_tokenizer *);
YOKE_API int yoke_tokenizer_pad(const yoke_tokenizer *);
YOKE_API int yoke_tokenizer_unknown(const yoke_tokenizer *);
// Ids that end a text; several if generation_config.json lists them.  Returns their number; *ids is
// valid while the tokenizer lives.
YOKE_API int yoke_tokenizer_eos(const yoke_tokenizer *, const int32_t **ids);
// Source of the chat template, NULL if the files have none.
YOKE_API const char *yoke_tokenizer_template(const yoke_tokenizer *);

#ifdef __cplusplus
}
#endif

#endif
