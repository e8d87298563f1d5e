// SPDX-License-Identifier: Apache-2.0
// Tokenizers of published models: text to token ids and back, with the same ids as the libraries
// that made the files (Hugging Face `tokenizers`, SentencePiece).
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
// Functions return 0 or a negative YOKE_E* code; on failure outputs are untouched.  A tokenizer
// does not change after it is opened, so threads may share it.
#ifndef YOKE_TOKENIZER_H
#define YOKE_TOKENIZER_H

#include <yoke.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_tokenizer yoke_tokenizer;

// Opens tokenizer.json, tokenizer.model, the tokenizer in a GGUF file, or a folder that contains
// one of the first two; tokenizer.json is preferred.  From the same folder tokenizer_config.json,
// generation_config.json and chat_template.jinja supply special ids and the chat template, if they
// exist.  Files other than GGUF have at most 64 MiB.  NULL: ENOENT, also for a GGUF file without a
// tokenizer; EIO, ENOMEM; EFORMAT if the file is damaged or has an unknown component; EUNSUPPORTED
// if this build lacks Oniguruma (regular expressions) or utf8proc (Unicode normal forms) and the
// tokenizer needs it.
YOKE_API yoke_tokenizer *yoke_tokenizer_open(const char *path);
// Reads the contents of a tokenizer.json or tokenizer.model from memory; `name` stands for the file
// in messages.
YOKE_API yoke_tokenizer *yoke_tokenizer_parse(const void *data, size_t bytes, const char *name);
// Trains a byte-level BPE on texts, with the pre-tokenizer of GPT-2: the vocabulary and merges are
// those of BpeTrainer of Hugging Face `tokenizers` with the alphabet of ByteLevel and the special
// token <|endoftext|>, which is id 0 and ends a text.  vocab: number of ids, 257 or more; the
// result has fewer if the texts have no pair of tokens left.  bytes [count]: lengths; NULL: the
// texts end with a NUL.  A word never extends over two texts.  NULL: EFORMAT: not UTF-8; ERANGE:
// vocab; EUNSUPPORTED: a build without Oniguruma; ENOMEM.
YOKE_API yoke_tokenizer *yoke_tokenizer_train(const char *const *texts, const size_t *bytes,
					      size_t count, int64_t vocab);
// Writes the tokenizer.json of a tokenizer that yoke_tokenizer_train made.  EINVAL: it was opened;
// EIO.
YOKE_API int yoke_tokenizer_save(const yoke_tokenizer *, const char *path);
YOKE_API void yoke_tokenizer_free(yoke_tokenizer *); // NULL is allowed

// Flags of encode and decode.
enum {
	YOKE_TOKENIZER_ADD = 1, // encode: add the special tokens of the post-processor, such as BOS
	YOKE_TOKENIZER_PARSE = 2, // encode: special tokens written in the text become their ids;
				  // without it they are ordinary text, as user input must be
	YOKE_TOKENIZER_SKIP = 4,  // decode: leave out special tokens
	YOKE_TOKENIZER_BYTES = 8, // decode: keep byte sequences that are not UTF-8; without it they
				  // become U+FFFD
};

// Encodes UTF-8 text.  *ids has *count elements and is freed with free(); it is never NULL.
// Truncation and padding settings of the file are not applied.  EFORMAT: not UTF-8; ERANGE: a
// regular expression exceeds its limit of backtracking; EINVAL: an unknown flag.
YOKE_API int yoke_tokenizer_encode(const yoke_tokenizer *, const char *text, size_t bytes,
				   unsigned flags, int32_t **ids, size_t *count);
// An interval of a text, bytes from .. to - 1.
struct yoke_text_span {
	size_t from, to;
	int64_t message; // index of the message that it comes from; -1: none
};
// The same with YOKE_TOKENIZER_PARSE for a text that is partly written by a user: a special token
// is ordinary text if any byte of it lies in one of n intervals, which are in order and do not
// overlap. The members `message` are not used.  EINVAL: intervals out of order, or beyond the text.
YOKE_API int yoke_tokenizer_encode_spans(const yoke_tokenizer *, const char *text, size_t bytes,
					 unsigned flags, const struct yoke_text_span *plain,
					 size_t n, int32_t **ids, size_t *count);
// Decodes ids.  *text is terminated with a NUL that *bytes does not count, and is freed with
// free(). Ids without a token are left out.
YOKE_API int yoke_tokenizer_decode(const yoke_tokenizer *, const int32_t *ids, size_t count,
				   unsigned flags, char **text, size_t *bytes);

// Number of ids: the largest one + 1.
YOKE_API int yoke_tokenizer_size(const yoke_tokenizer *);
// The token of an id as the file spells it ("\u0120the" in byte-level vocabularies), valid while
// the tokenizer lives; NULL if the id has none.
YOKE_API const char *yoke_tokenizer_piece(const yoke_tokenizer *, int32_t id, size_t *bytes);
// The id of a token as the file spells it; -1 if there is none.
YOKE_API int yoke_tokenizer_id(const yoke_tokenizer *, const char *piece, size_t bytes);
// Is the id a special token, such as BOS?
YOKE_API int yoke_tokenizer_is_special(const yoke_tokenizer *, int32_t id);

// Special ids, -1 if the files name none; functions of a NULL tokenizer return EINVAL.
YOKE_API int yoke_tokenizer_bos(const yoke_tokenizer *);
YOKE_API int yoke_tokenizer_pad(const yoke_tokenizer *);
YOKE_API int yoke_tokenizer_unknown(const yoke_tokenizer *);
// Ids that end a text; several if generation_config.json lists them, or if a GGUF file has control
// tokens such as <|im_end|> or <|eot_id|> besides the one that it names.  Returns their number;
// *ids is valid while the tokenizer lives.
YOKE_API int yoke_tokenizer_eos(const yoke_tokenizer *, const int32_t **ids);
// Source of the chat template, NULL if the files have none.
YOKE_API const char *yoke_tokenizer_template(const yoke_tokenizer *);

// ---- chat templates ----
//
// A chat template is a Jinja program that writes the messages of a conversation as the text that a
// model was trained on.  It is interpreted with the result that jinja2 has in its sandbox, with the
// settings and functions of `transformers` (raise_exception, strftime_now, tojson).  A template
// makes at most 10^6 steps and 1 MiB of text.
//
//	yoke_chat_template *t = yoke_chat_template_of(tokenizer);
//	struct yoke_chat_message m[] = { { "user", "Hello" } };
//	struct yoke_chat_options o = { sizeof o, .add_generation_prompt = 1 };
//	yoke_chat_template_encode(t, tokenizer, m, 1, &o, &ids, &n);
//
// Special tokens come from the template only: one that a user writes in a message is text.  For
// that each byte of the rendered text has an origin.  It stays with the bytes through all
// operations and filters; what is made from a number or a truth value of a message is the
// template's.  Of a message only the role and names of members count as the template's, if they are
// plain words (letters, digits, _ and -), since templates make tags of roles; so do the variables
// of the options, but not the tools.
typedef struct yoke_chat_template yoke_chat_template;

struct yoke_chat_message {
	const char *role;    // "system", "user", "assistant" or another one that the template knows
	const char *content; // UTF-8
};

struct yoke_chat_options {
	size_t size;               // sizeof (struct yoke_chat_options)
	int add_generation_prompt; // 1: the text ends where the assistant's answer begins
	const char *tools;         // JSON array of functions that the model may call; NULL: none
	const char *variables;     // JSON object of further variables of the template; NULL: none
	int64_t now;               // time of strftime_now, seconds since 1970; 0: the clock's
};

// Parses a template; `name` stands for it in messages.  The result can be used by several threads.
// NULL: EFORMAT, with the line of the error, if it is not valid; ERANGE if it nests too deeply;
// ENOMEM.
YOKE_API yoke_chat_template *yoke_chat_template_parse(const char *source, size_t bytes,
						      const char *name);
// The template of a tokenizer, with its variables bos_token, eos_token, pad_token and unk_token.
// NULL: ENOENT if it has none; otherwise as yoke_chat_template_parse.
YOKE_API yoke_chat_template *yoke_chat_template_of(const yoke_tokenizer *);
YOKE_API void yoke_chat_template_free(yoke_chat_template *); // NULL is allowed
// Renders messages; `count` of them.  *text ends with a NUL that *bytes does not count, and is
// freed with free().  options may be NULL.  EFORMAT: the template fails or refuses the messages,
// with its own words; ERANGE: it exceeds a limit; EINVAL: options are not JSON; ENOMEM.
YOKE_API int yoke_chat_template_render(const yoke_chat_template *, const struct yoke_chat_message *,
				       size_t count, const struct yoke_chat_options *options,
				       char **text, size_t *bytes);
// The same for messages as a JSON array of objects, which may have more members than role and
// content.
YOKE_API int yoke_chat_template_render_json(const yoke_chat_template *, const char *messages,
					    size_t length, const struct yoke_chat_options *options,
					    char **text, size_t *bytes);

// The same with the intervals of the text that come from messages: *count of them, in order and
// apart from each other, *spans being freed with free(); message is -1 for those of the tools.
// Encode the text with yoke_tokenizer_encode_spans.
YOKE_API int yoke_chat_template_render_spans(const yoke_chat_template *, const char *messages,
					     size_t length, const struct yoke_chat_options *options,
					     char **text, size_t *bytes,
					     struct yoke_text_span **spans, size_t *count);
// Renders messages and encodes the text.  *ids has *count elements and is freed with free().
// Errors as yoke_chat_template_render and yoke_tokenizer_encode.
YOKE_API int yoke_chat_template_encode(const yoke_chat_template *, const yoke_tokenizer *,
				       const struct yoke_chat_message *, size_t messages,
				       const struct yoke_chat_options *options, int32_t **ids,
				       size_t *count);
YOKE_API int yoke_chat_template_encode_json(const yoke_chat_template *, const yoke_tokenizer *,
					    const char *messages, size_t length,
					    const struct yoke_chat_options *options, int32_t **ids,
					    size_t *count);

#ifdef __cplusplus
}
#endif

#endif
