// SPDX-License-Identifier: Apache-2.0
// Tests the masks of schemas: texts of random allowed tokens are values of the schema, and a mask
// has exactly the tokens whose bytes may follow, for small vocabularies and those of tokenizers'
// files.  With the Python package jsonschema the values are validated by it, too.
#include "config.h"

#include <pthread.h>
#include <sys/wait.h>

#include "base/error.h"
#include "base/json.h"
#include "schema/schema.h"
#include "schema_valid.h"
#include "tap.h"
#include "tokenizer/pieces.h"

// Tokens as the tests know them.
struct tokens {
	int32_t n;
	const char **text;
	size_t *bytes;
	enum yk_schema_token *kind;
	struct yk_schema_vocab *vocab;
	yoke_tokenizer *of;          // whose tokens they are, or NULL
	struct yk_tokenizer *decode; // owns the texts then
};

static struct tokens new_tokens(int32_t n)
{
	return (struct tokens){ n,
				calloc((size_t)n, sizeof(char *)),
				calloc((size_t)n, sizeof(size_t)),
				calloc((size_t)n, sizeof(enum yk_schema_token)),
				NULL,
				NULL,
				NULL };
}

// All bytes, some longer tokens with equal and with overlapping texts, special ones, and two that
// end a text.
static struct tokens small(void)
{
	static const char *const words[] = {
		"{\"",        "\":",   "\": ", "\", \"",   "\",\"",
		"\"}",        "}]}",   "[[",   "]]",       ", ",
		"tr",         "true",  "null", "nu",       "12",
		"1",          "0.",    "abc",  "ab",       "a",
		"\\u",        "\\ud8", "\\\"", "\xc3\xa9", "\xf0\x9f\x98\x80",
		"\xe2\x82",   "\n  ",  "\n",   "  ",       "name",
		"\"name\": ", "2024-", "-02",  "x y z",    "\"\"",
		"",           "[]",    "{}"
	};
	static const char bytes[] = "<s><unk>";
	static char single[256];
	const int n = sizeof words / sizeof *words;
	struct tokens t = new_tokens(256 + n + 4);

	for (int i = 0; i < 256; i++) {
		single[i] = (char)i;
		t.text[i] = &single[i];
		t.bytes[i] = 1;
	}
	for (int i = 0; i < n; i++) {
		t.text[256 + i] = words[i];
		t.bytes[256 + i] = strlen(words[i]);
	}
	for (int i = 0; i < 4; i++) {
		t.text[256 + n + i] = bytes;
		t.bytes[256 + n + i] = 3;
		t.kind[256 + n + i] = i < 2 ? YK_TOKEN_NEVER : YK_TOKEN_ENDS;
	}
	t.vocab = yk_schema_vocab_of(t.n, t.text, t.bytes, t.kind);
	return t;
}

// The tokens of a tokenizer's file, decoded by the public functions.  The model has some more ids.
static bool tokens_of(const char *path, struct tokens *t)
{
	yoke_tokenizer *of = yoke_tokenizer_open(path);
	const int32_t *ends, size = of ? yoke_tokenizer_size(of) : 0;

	if (!of)
		return false;
	*t = new_tokens(size + 40);
	t->of = of;
	t->decode = yk_tokenizer_borrow(of, size);
	t->vocab = yk_schema_vocab_new(t->decode, t->n);
	const int eos = yoke_tokenizer_eos(of, &ends);
	for (int32_t i = 0; i < t->n; i++) {
		t->kind[i] = YK_TOKEN_NEVER;
		if (i >= size || yoke_tokenizer_is_special(of, i) ||
		    i == yoke_tokenizer_unknown(of))
			continue;
		t->text[i] = yk_tokenizer_decode(t->decode, i, &t->bytes[i]);
		t->kind[i] = t->bytes[i] ? YK_TOKEN_TEXT : YK_TOKEN_NEVER;
	}
	for (int i = 0; i < eos; i++)
		t->kind[ends[i]] = YK_TOKEN_ENDS;
	return t->vocab != NULL;
}

static void free_tokens(struct tokens *t)
{
	yk_schema_vocab_free(t->vocab);
	yk_tokenizer_free(t->decode);
	yoke_tokenizer_free(t->of);
	free(t->text);
	free(t->bytes);
	free(t->kind);
}

static bool has(const uint32_t *bits, int32_t i)
{
	return bits[i / 32] >> i % 32 & 1;
}

// The number of tokens whose bit is not what appending their bytes gives.
static size_t differences(const struct tokens *t, const struct yk_schema_state *s,
			  const uint32_t *bits)
{
	size_t wrong = 0;

	for (int32_t i = 0; i < t->n; i++) {
		bool want = false;
		if (t->kind[i] == YK_TOKEN_ENDS)
			want = yk_schema_complete(s);
		if (t->kind[i] == YK_TOKEN_TEXT && t->bytes[i]) {
			struct yk_schema_state *copy = yk_schema_copy(s);
			want = yk_schema_advance_bytes(copy, t->text[i], t->bytes[i]) == 0;
			yoke_error_clear();
			yk_schema_end(copy);
		}
		if (has(bits, i) != want) {
			if (!wrong)
				diag("token %d '%.*s': got %d", (int)i, (int)t->bytes[i],
				     t->text[i] ? t->text[i] : "", has(bits, i));
			wrong++;
		}
	}
	for (int32_t i = t->n; i < (int32_t)yk_schema_vocab_words(t->vocab) * 32; i++)
		wrong += has(bits, i);
	return wrong;
}

// Random numbers of one thread.
static uint32_t draw(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

// A random allowed token; late in a text, one that brings it to its end.
static int32_t choose(const struct tokens *t, const uint32_t *bits, bool late, uint64_t *seed)
{
	static const char closers[] = "\"}]n0,ft1";
	const int32_t from = (int32_t)(draw(seed) % (uint32_t)t->n);

	for (int32_t i = 0; late && i < t->n; i++)
		if (t->kind[i] == YK_TOKEN_ENDS && has(bits, i))
			return i;
	late = late && draw(seed) % 4; // a pattern may want another character
	for (const char *c = closers; late && *c; c++)
		for (int32_t i = 0; i < t->n; i++)
			if (has(bits, i) && t->bytes[i] == 1 && *t->text[i] == *c)
				return i;
	for (int32_t i = 0; i < t->n; i++)
		if (has(bits, (from + i) % t->n))
			return (from + i) % t->n;
	return -1;
}

// Generates a text until a token ends it.  *wrong counts masks that differ from brute force,
// checked at one of `check` tokens; 0: never.
static bool generate(struct yk_schema *g, const struct tokens *t, uint64_t seed, int check,
		     struct yk_string *text, size_t *wrong)
{
	struct yk_schema_state *s = yk_schema_begin(g);
	uint32_t *bits = malloc(yk_schema_vocab_words(t->vocab) * sizeof *bits);
	bool good = true;
	const int length = (int)(draw(&seed) % 60);

	text->n = 0;
	for (int i = 0; good && !yk_schema_finished(s); i++) {
		good = i < 3000 && yk_schema_allowed(s, bits) == 0;
		if (!good)
			break;
		if (check && draw(&seed) % (unsigned)check == 0)
			*wrong += differences(t, s, bits);
		const int32_t token = choose(t, bits, i > length || draw(&seed) % 8 == 0, &seed);
		if (token < 0 &&
		    yk_schema_complete(s)) // a vocabulary without a token that ends a text
			break;
		good = token >= 0 && yk_schema_advance(s, token) == 0;
		if (good && t->kind[token] == YK_TOKEN_TEXT)
			yk_string_add(text, t->text[token], t->bytes[token]);
	}
	if (good && yk_schema_finished(s)) { // nothing but an end follows
		good = yk_schema_allowed(s, bits) == 0;
		for (int32_t i = 0; i < t->n && good; i++)
			good = has(bits, i) == (t->kind[i] == YK_TOKEN_ENDS);
	}
	if (!good)
		diag("after %.*s: %s", (int)text->n, text->s ? text->s : "", yoke_error());
	free(bits);
	yk_schema_end(s);
	return good;
}

// ---- random schemas ----

static json_t *random_schema(int depth);

static json_t *random_string(void)
{
	static const char *const patterns[] = {
		"^[a-z]{1,3}$", "^(ab|cd)*e?$", "x", "^[A-Z][a-z]+( [A-Z][a-z]+)*$",
		"^[^0-9]{2}",   "[0-9]$"
	};
	static const char *const formats[] = {
		"date", "date-time", "time", "uuid", "email", "ipv4"
	};
	json_t *s = json_pack("{s:s}", "type", "string");
	const int kind = (int)rnd_int(0, 5);

	if (kind == 1)
		json_object_set_new(s, "pattern", json_string(patterns[rnd_int(0, 5)]));
	if (kind == 2)
		json_object_set_new(s, "format", json_string(formats[rnd_int(0, 5)]));
	if (kind == 3 || kind == 4)
		json_object_set_new(s, "minLength", json_integer(rnd_int(0, 5)));
	if (kind == 4 || kind == 5)
		json_object_set_new(s, "maxLength", json_integer(rnd_int(5, 40)));
	return s;
}

static json_t *random_number(void)
{
	const bool integer = rnd_int(0, 1);
	json_t *s = json_pack("{s:s}", "type", integer ? "integer" : "number");
	const double from = (double)rnd_int(-2000, 2000) / (rnd_int(0, 1) ? 1 : 8);

	if (rnd_int(0, 2))
		json_object_set_new(s, rnd_int(0, 1) ? "minimum" : "exclusiveMinimum",
				    json_real(from));
	if (rnd_int(0, 2))
		json_object_set_new(s, rnd_int(0, 1) ? "maximum" : "exclusiveMaximum",
				    json_real(from + (double)rnd_int(3, 3000)));
	if (integer && !rnd_int(0, 3))
		json_object_set_new(s, "multipleOf", json_integer(rnd_int(1, 3)));
	return s;
}

static json_t *random_array(int depth)
{
	json_t *s = json_pack("{s:s}", "type", "array");
	const int64_t min = rnd_int(0, 2);

	if (rnd_int(0, 3))
		json_object_set_new(s, "items", random_schema(depth - 1));
	if (!rnd_int(0, 3))
		json_object_set_new(
			s, "prefixItems",
			json_pack("[o,o]", random_schema(depth - 1), random_schema(depth - 1)));
	if (rnd_int(0, 1))
		json_object_set_new(s, "minItems", json_integer(min));
	if (rnd_int(0, 1))
		json_object_set_new(s, "maxItems", json_integer(min + rnd_int(0, 3)));
	return s;
}

static json_t *random_object(int depth)
{
	static const char *const names[] = { "a", "ab", "name", "\xc3\xa9", "x \"y\"", "", "id" };
	json_t *s = json_pack("{s:s}", "type", "object"), *properties = json_object(),
	       *required = json_array();

	for (int i = 0; i < 7; i++) {
		if (rnd_int(0, 1))
			json_object_set_new(properties, names[i], random_schema(depth - 1));
		if (!rnd_int(0, 3) && json_object_get(properties, names[i]))
			json_array_append_new(required, json_string(names[i]));
	}
	json_object_set_new(s, "properties", properties);
	json_object_set_new(s, "required", required);
	if (rnd_int(0, 1))
		json_object_set_new(s, "additionalProperties",
				    rnd_int(0, 1) ? json_false() : random_schema(depth - 1));
	return s;
}

static json_t *random_schema(int depth)
{
	switch (rnd_int(0, depth > 0 ? 11 : 5)) {
	case 0: return random_string();
	case 1: return random_number();
	case 2: return json_pack("{s:[s,i,n,f]}", "enum", "x\xc3\xa9/", 12, 0.1);
	case 3: return json_pack("{s:[s,s]}", "type", "boolean", "null");
	case 4: return json_pack("{s:s}", "const", "ab");
	case 5:
		return rnd_int(0, 1) ? json_true() :
				       json_pack("{s:s,s:b}", "type", "integer", "nullable", 1);
	case 6:
	case 7: return random_array(depth);
	case 8:
		return json_pack("{s:[o,o]}", rnd_int(0, 1) ? "anyOf" : "oneOf",
				 random_schema(depth - 1), random_schema(depth - 1));
	case 9:
		return json_pack("{s:[{s:s},{s:s}],s:o}", "anyOf", "$ref", "#", "type", "null",
				 "default", json_null());
	case 10: {
		json_t *one = random_object(depth),
		       *two = json_pack("{s:{s:s},s:[s]}", "properties", "id", "type", "integer",
					"required", "id");
		if (json_object_get(json_object_get(one, "properties"), "id"))
			json_object_set_new(json_object_get(one, "properties"), "id",
					    json_pack("{s:i}", "minimum", 3));
		else
			json_object_del(one, "additionalProperties");
		return json_pack("{s:[o,o]}", "allOf", one, two);
	}
	default: return random_object(depth);
	}
}

// ---- tests ----

static const char *const fixed[] = {
	"{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}, \"age\": "
	"{\"type\": \"integer\", \"minimum\": 0, \"maximum\": 150}, \"tags\": {\"type\": \"array\","
	" \"items\": {\"type\": \"string\", \"maxLength\": 12}}, \"kind\": {\"enum\": [\"alpha\", "
	"\"beta\", \"b\xc3\xa9ta\"]}}, \"required\": [\"name\", \"age\", \"tags\", \"kind\"]}",
	"{\"type\": \"object\"}",
	"{\"type\": \"array\", \"items\": {\"anyOf\": [{\"type\": \"string\"}, {\"enum\": "
	"[\"abc\", \"abd\"]}, {\"type\": \"number\"}]}}",
	"{\"type\": \"string\", \"minLength\": 3, \"maxLength\": 5}",
	"{\"type\": \"string\", \"pattern\": \"^[a-z ]{1,40}$\"}",
	"{\"$defs\": {\"n\": {\"type\": \"object\", \"properties\": {\"v\": {\"type\": "
	"\"number\"}, \"l\": {\"anyOf\": [{\"$ref\": \"#/$defs/n\"}, {\"type\": \"null\"}]}, "
	"\"d\": {\"type\": \"string\","
	" \"format\": \"date\"}}, \"required\": [\"v\", \"l\", \"d\"]}}, \"$ref\": \"#/$defs/n\"}",
};

// Writes a schema and a value for the Python package.
static FILE *pairs;

static bool check_value(const json_t *schema, const struct yk_string *text)
{
	json_error_t error;
	json_t *x = json_loadb(text->s ? text->s : "", text->n, JSON_DECODE_ANY, &error);
	const bool good = x && valid(schema, schema, x);

	if (good && pairs) {
		char *one = yk_json_text(schema, JSON_ENCODE_ANY | JSON_COMPACT);
		fprintf(pairs, "%s\t", one);
		for (size_t i = 0; i < text->n; i++)
			fputc(text->s[i] == '\n' || text->s[i] == '\t' ? ' ' : text->s[i], pairs);
		fputc('\n', pairs);
		free(one);
	}
	if (!good) {
		char *one = yk_json_text(schema, JSON_ENCODE_ANY | JSON_COMPACT);
		diag("%s gave %.*s: %s", one, (int)text->n, text->s, x ? "not valid" : error.text);
		free(one);
	}
	json_decref(x);
	return good;
}

static void test_fixed(const struct tokens *t, const char *name, int rounds, int check)
{
	struct yk_string text = { 0 };
	size_t wrong = 0, different = 0, n = 0;

	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
		json_t *schema = yk_json_of(fixed[i], 0);
		struct yk_schema *g = yk_schema_compile(schema, t->vocab);
		for (int j = 0; j < rounds; j++, n++)
			wrong += !g || !generate(g, t, rnd(), check, &text, &different) ||
				 !check_value(schema, &text);
		yk_schema_free(g);
		json_decref(schema);
	}
	ok(wrong == 0, "%s: %zu texts of random tokens are values of their schemas", name, n);
	ok(different == 0, "%s: masks are those of brute force (%zu bits differ)", name, different);
	yk_string_fini(&text);
}

static void test_random(const struct tokens *t)
{
	const int cases = tap_cases(150, 3000);
	struct yk_string text = { 0 };
	size_t wrong = 0, different = 0, none = 0, n = 0;

	for (int i = 0; i < cases; i++) {
		json_t *schema = random_schema(3);
		struct yk_schema *g = yk_schema_compile(schema, t->vocab);
		if (!g) {
			const bool refused = yoke_error_code() == YOKE_EINVAL ||
					     yoke_error_code() == YOKE_EFORMAT;
			none += refused; // for example {"anyOf": [{"$ref": "#"} ..
			wrong += !refused;
			if (!refused)
				diag("%s", yoke_error());
			yoke_error_clear();
		}
		for (int j = 0; g && j < 3; j++, n++)
			wrong += !generate(g, t, rnd(), 10, &text, &different) ||
				 !check_value(schema, &text);
		yk_schema_free(g);
		json_decref(schema);
	}
	ok(wrong == 0 && n > (size_t)cases,
	   "%zu texts of random schemas are values of them (%zu schemas have none)", n, none);
	ok(different == 0, "masks of random schemas are those of brute force (%zu bits differ)",
	   different);
	yk_string_fini(&text);
}

// Counts are exact, and sequences stay where they are, while the table of states is emptied.
static void test_table(const struct tokens *t)
{
	enum { CHARS = 150000, STEP = 1000 };
	json_t *schema = json_pack("{s:[{s:s,s:i},{s:s}]}", "prefixItems", "type", "string",
				   "maxLength", CHARS, "type", "null");
	struct yk_schema *g = yk_schema_compile(schema, t->vocab);
	struct yk_schema_state *s = yk_schema_begin(g), *other;
	char text[STEP];
	bool good = yk_schema_advance_bytes(s, "[\"", 2) == 0;

	memset(text, 'x', sizeof text);
	other = yk_schema_copy(s);
	for (int i = 0; i < CHARS && good; i += STEP)
		good = yk_schema_advance_bytes(s, text, sizeof text) == 0;
	ok(good && yk_schema_advance_bytes(s, "x", 1) == YOKE_EINVAL &&
		   yk_schema_advance_bytes(s, "\",null]", 7) == 0 && yk_schema_complete(s),
	   "a string has exactly %d characters", CHARS);
	yoke_error_clear();
	ok(yk_schema_advance_bytes(other, "ab\"]", 4) == 0 && yk_schema_complete(other),
	   "another sequence is where it was");
	yk_schema_end(s);
	yk_schema_free(g); // the other sequence keeps it
	ok(yk_schema_complete(other), "a sequence keeps its grammar");
	yk_schema_end(other);
	json_decref(schema);
}

// Values cannot nest without end; each text can still be completed.
static void test_depth(const struct tokens *t)
{
	json_t *schema = yk_json_of("{\"type\": \"array\", \"items\": {\"$ref\": \"#\"}}", 0);
	struct yk_schema *g = yk_schema_compile(schema, t->vocab);
	struct yk_schema_state *s = yk_schema_begin(g);
	int n = 0;

	while (n < 5000 && yk_schema_advance_bytes(s, "[", 1) == 0)
		n++;
	yoke_error_clear();
	bool good = n > 100 && n < 2000;
	for (int i = 0; i < n && good; i++)
		good = yk_schema_advance_bytes(s, "]", 1) == 0;
	ok(good && yk_schema_complete(s), "arrays nest at most %d deep, and close", n);
	yk_schema_end(s);
	yk_schema_free(g);
	json_decref(schema);
}

// A text of many alternatives is refused in one line, or all masks have tokens.
static void test_ambiguous(const struct tokens *t)
{
	json_t *schema =
		yk_json_of("{\"anyOf\": [{\"type\": \"array\", \"items\": {\"$ref\": \"#\"}}, "
			   "{\"type\": \"array\", \"items\": {\"$ref\": \"#\"}, \"maxItems\": 7},"
			   "{\"type\": \"array\", \"items\": {\"$ref\": \"#\"}, \"maxItems\": 9}]}",
			   0);
	struct yk_schema *g = yk_schema_compile(schema, t->vocab);
	struct yk_schema_state *s = yk_schema_begin(g);
	uint32_t *bits = malloc(yk_schema_vocab_words(t->vocab) * sizeof *bits);
	int e = 0, n = 0;

	for (; n < 120 && e == 0; n++)
		if ((e = yk_schema_allowed(s, bits)) == 0)
			e = yk_schema_advance_bytes(s, n < 60 ? "[" : "]", 1);
	ok(e == YOKE_ERANGE || (e == 0 && yk_schema_complete(s)),
	   "%d steps of a text with 3^60 readings end with code %d", n, e);
	yoke_error_clear();
	free(bits);
	yk_schema_end(s);
	yk_schema_free(g);
	json_decref(schema);
}

// A restart replays the tokens; a copy goes its own way.
static void test_replay(const struct tokens *t)
{
	json_t *schema = yk_json_of(fixed[0], 0);
	struct yk_schema *g = yk_schema_compile(schema, t->vocab);
	struct yk_schema_state *s = yk_schema_begin(g), *again = yk_schema_begin(g), *copy;
	const size_t words = yk_schema_vocab_words(t->vocab);
	uint32_t *a = calloc(words, sizeof *a), *b = calloc(words, sizeof *b);
	int32_t token[30];
	uint64_t seed = rnd();
	bool good = true;

	for (int i = 0; i < 30; i++) {
		yk_schema_allowed(s, a);
		token[i] = choose(t, a, false, &seed);
		yk_schema_advance(s, token[i]);
	}
	for (int i = 0; i < 30; i++)
		good &= yk_schema_advance(again, token[i]) == 0;
	copy = yk_schema_copy(again);
	yk_schema_advance(again, choose(t, a, true, &seed));
	yoke_error_clear();
	yk_schema_allowed(s, a);
	yk_schema_allowed(copy, b);
	ok(good && !memcmp(a, b, words * sizeof *a), "replayed tokens lead to the same mask");
	yk_schema_mask(again, 3, token, b);
	good = yk_schema_mask(again, 30, token, b) == 0;
	ok(good && !memcmp(a, b, words * sizeof *a),
	   "a sequence goes back to fewer tokens, and on to more");
	ok(yk_schema_advance(s, -1) == YOKE_EINVAL && yk_schema_advance(s, t->n) == YOKE_EINVAL &&
		   yk_schema_advance(s, t->n - 4) == YOKE_EINVAL,
	   "ids out of range and special tokens are refused");
	yoke_error_clear();
	free(a);
	free(b);
	yk_schema_end(copy);
	yk_schema_end(again);
	yk_schema_end(s);
	yk_schema_free(g);
	json_decref(schema);
}

// A value that nothing can follow ends the text before a token does.
static void test_end(const struct tokens *t)
{
	json_t *schema = yk_json_of(
		"{\"type\": \"array\", \"items\": {\"type\": \"integer\"}, \"maxItems\": 1}", 0);
	const int32_t token[] = { '[', '1', ']' };
	uint32_t *bits = calloc(yk_schema_vocab_words(t->vocab), sizeof *bits);
	struct yk_schema *g = yk_schema_compile(schema, t->vocab);
	struct yk_schema_state *s = yk_schema_begin(g);

	bool good = yk_schema_mask(s, 0, token, bits) == 0;
	for (int i = 1; i < 4; i++)
		good &= yk_schema_mask(s, i, token, bits) == (i == 3);
	ok(good && yk_schema_complete(s) && !yk_schema_finished(s),
	   "a text ends where nothing but its end may follow");
	yk_schema_end(s);
	yk_schema_free(g);
	json_decref(schema);
	free(bits);
}

struct job {
	struct yk_schema *g;
	const struct tokens *t;
	const json_t *schema;
	uint64_t seed;
	bool good;
};

static void *work(void *arg)
{
	struct job *j = arg;
	struct yk_string text = { 0 };
	size_t wrong = 0;

	j->good = true;
	for (int i = 0; i < 20 && j->good; i++)
		j->good = generate(j->g, j->t, j->seed + (uint64_t)i, 0, &text, &wrong);
	yk_string_fini(&text);
	return NULL;
}

static void test_threads(const struct tokens *t)
{
	json_t *schema = yk_json_of(fixed[5], 0);
	struct yk_schema *g = yk_schema_compile(schema, t->vocab);
	struct job job[4];
	pthread_t thread[4];
	bool good = true;

	for (int i = 0; i < 4; i++) {
		job[i] = (struct job){ g, t, schema, rnd(), false };
		good &= pthread_create(&thread[i], NULL, work, &job[i]) == 0;
	}
	for (int i = 0; i < 4 && good; i++)
		good = pthread_join(thread[i], NULL) == 0 && job[i].good;
	ok(good, "four threads share a grammar");
	yk_schema_free(g);
	json_decref(schema);
}

static void test_files(void)
{
	static const char *const files[] = { "gpt2.json", "llama3.json", "spm_bpe.model" };
	const char *source = getenv("srcdir"), *more = getenv("YOKE_TEST_TOKENIZER");
	char path[4096];

	for (size_t i = 0; i < sizeof files / sizeof *files + 1; i++) {
		struct tokens t;
		const char *name = i < sizeof files / sizeof *files ? files[i] : more;
		snprintf(path, sizeof path, "%s/tests/models/%s", source ? source : ".",
			 files[i % 3]);
		if (!name)
			continue;
		if (tokens_of(name == more ? more : path, &t)) {
			test_fixed(&t, name, tap_cases(6, 40), name == more ? 30 : 5);
			free_tokens(&t);
		} else if (yoke_error_code() == YOKE_EUNSUPPORTED) {
			skip(name, "this build cannot read it");
		} else {
			ok(false, "%s opens: %s", name, yoke_error());
		}
		yoke_error_clear();
	}
}

static void test_python(void)
{
	const char *source = getenv("srcdir"), *python = getenv("YOKE_TEST_PYTHON");
	char command[8192];

	snprintf(command, sizeof command, "'%s' '%s/tests/schema.py' pairs",
		 python ? python : "python3", source ? source : ".");
	const int status = system(command);
	if (WIFEXITED(status) && (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127))
		skip("jsonschema validates the values", "no Python with the package jsonschema");
	else
		ok(status == 0, "jsonschema validates the values");
}

int main(void)
{
	struct tokens t = small();

	tap_seed();
	setvbuf(stdout, NULL, _IOLBF, 0);
	tap_folder();
	pairs = fopen("pairs", "w");
	test_fixed(&t, "a small vocabulary", tap_cases(40, 400), 4);
	test_random(&t);
	test_table(&t);
	test_depth(&t);
	test_ambiguous(&t);
	test_replay(&t);
	test_end(&t);
	test_threads(&t);
	free_tokens(&t);
	test_files();
	if (pairs)
		fclose(pairs);
	test_python();
	return done();
}
