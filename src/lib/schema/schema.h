// SPDX-License-Identifier: Apache-2.0
// Structured output: restricts generation to the JSON values of a schema.  A grammar is compiled
// once and shared by its sequences; a sequence reports the tokens that may follow its text, as a
// bitmap, and advances by the token that was chosen.  Whatever tokens are chosen, the text can be
// completed.
//
//	struct yk_schema_vocab *v = yk_schema_vocab_new(tokenizer, ids);
//	struct yk_schema *g = yk_schema_compile(schema, v);
//	struct yk_schema_state *s = yk_schema_begin(g);
//	while (!yk_schema_finished(s)) {
//		yk_schema_allowed(s, bitmap);
//		.. sample a token ..
//		yk_schema_advance(s, token);
//	}
//	yk_schema_end(s);
//
// Values are generated in a normal form: properties in the order of the schema, at most a blank or
// a line break with indentation between tokens of JSON, integers of at most 18 digits; and in
// strings that a pattern, an enum or the names of properties restrict, an escape only where JSON
// demands one. Objects are closed: additionalProperties is false unless it is given or there are no
// properties. A schema without a type has the types that its keywords concern.
#ifndef YK_SCHEMA_H
#define YK_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/tokenizer.h"

// ---- vocabulary ----

// The bytes of a tokenizer's tokens, ordered for the search of allowed ones.
struct yk_schema_vocab;
enum { YK_SCHEMA_IDS = 1 << 24 };
enum yk_schema_token { YK_TOKEN_TEXT, YK_TOKEN_NEVER, YK_TOKEN_ENDS };

// `ids`: of the model, at least those of the tokenizer; further ones are never allowed.  Special
// tokens and the unknown one are never allowed, those that end a text when the value is complete.
// NULL: ENOMEM; ERANGE: ids.
struct yk_schema_vocab *yk_schema_vocab_new(const struct yk_tokenizer *, int32_t ids);
// The same for n tokens by bytes and kind.
struct yk_schema_vocab *yk_schema_vocab_of(int32_t n, const char *const *text, const size_t *bytes,
					   const enum yk_schema_token *);
void yk_schema_vocab_free(struct yk_schema_vocab *); // NULL is allowed
// 32-bit words of a bitmap: ids / 32, rounded up.
size_t yk_schema_vocab_words(const struct yk_schema_vocab *);

// ---- grammar ----

// A compiled schema with caches for one vocabulary.  Threads may share it.
struct yk_schema;

// The vocabulary must live as long as the grammar and its sequences; NULL: only bytes are accepted.
// NULL, with one line that names the place in the schema: EFORMAT: not a schema, or it refers to
// itself without an object or array between; EUNSUPPORTED: a keyword, format or pattern that is not
// supported; EINVAL: no value satisfies it; ERANGE: beyond a limit; ENOMEM.
struct yk_schema *yk_schema_compile(const json_t *schema, const struct yk_schema_vocab *);
// The grammar of response_format of OpenAI's API: {"type": "json_object"} or {"type":
// "json_schema", "json_schema": {"name": .., "schema": ..}}.  *to is NULL for {"type": "text"},
// which restricts nothing.
int yk_schema_of_format(const json_t *response_format, const struct yk_schema_vocab *,
			struct yk_schema **to);
// Sequences keep the grammar until they end.  NULL is allowed.
void yk_schema_free(struct yk_schema *);

// ---- sequences ----

struct yk_schema_state; // used by one thread at a time

// The state before the first token.  NULL: ENOMEM.
struct yk_schema_state *yk_schema_begin(struct yk_schema *);
struct yk_schema_state *yk_schema_copy(const struct yk_schema_state *);
void yk_schema_end(struct yk_schema_state *); // NULL is allowed
// Sets the bits of the tokens that may follow and clears all others; bit i of word i / 32 is token
// i. At least one is set unless the sequence is finished or the vocabulary lacks tokens.  ERANGE:
// the schema is so ambiguous here that its alternatives exceed a limit; ENOMEM.
int yk_schema_allowed(struct yk_schema_state *, uint32_t *bitmap);
// Appends a token.  EINVAL: it is not allowed, and the state is unchanged; otherwise as
// yk_schema_allowed.
int yk_schema_advance(struct yk_schema_state *, int32_t token);
// Appends bytes.
int yk_schema_advance_bytes(struct yk_schema_state *, const char *s, size_t n);
// Brings a sequence to n generated tokens, of which it has seen the first ones unless there are
// fewer than before, and fills the bitmap: the function `mask` of a request to an engine.  1:
// nothing but the end may follow; otherwise 0, or an error of yk_schema_allowed or
// yk_schema_advance.
int yk_schema_mask(struct yk_schema_state *, int64_t n, const int32_t *tokens, uint32_t *bitmap);
bool yk_schema_complete(const struct yk_schema_state *); // is the text a value of the schema?
bool yk_schema_finished(const struct yk_schema_state *); // has a token ended the text?

#endif
