// SPDX-License-Identifier: Apache-2.0
// Training of byte-level BPE: vocabulary and merges equal those of BpeTrainer of Hugging Face
// `tokenizers`, which tests/models/record_bpe.py recorded.
#include "config.h"

#include <inttypes.h>
#include <jansson.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/file.h"
#include "models/recorded_bpe.h"
#include "tap.h"
#include "tokenizer/regex.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/train.h"
#include "yoke-tokenizer.h"

#define FILE_NAME "trained.json"

static bool refused(const yoke_tokenizer *t, int code)
{
	const bool good = !t && yk_error_last() == code;
	if (!good)
		diag("%p: %s", (const void *)t, yoke_error());
	yoke_error_clear();
	return good;
}

#ifdef HAVE_ONIG
// The merges that save wrote, each with a line end; the caller frees them.
static char *merges_of(const yoke_tokenizer *t)
{
	char *text = NULL;
	size_t bytes, i;
	json_t *o =
		yoke_tokenizer_save(t, FILE_NAME) == 0 ? json_load_file(FILE_NAME, 0, NULL) : NULL;
	const json_t *list = json_object_get(json_object_get(o, "model"), "merges"), *m;
	FILE *f = open_memstream(&text, &bytes);
	json_array_foreach (list, i, m)
		fprintf(f, "%s\n", json_string_value(m));
	fclose(f);
	json_decref(o);
	return text;
}

static bool as_recorded(const struct learned *r)
{
	yoke_tokenizer *t = yoke_tokenizer_train(r->text, NULL, (size_t)r->count, r->vocab);
	char *merges = t ? merges_of(t) : NULL;
	const bool good = merges && !strcmp(merges, r->merges) && yoke_tokenizer_size(t) == r->ids;
	if (!good)
		diag("got %d ids, want %d; got merges\n%s\nwant\n%s",
		     t ? yoke_tokenizer_size(t) : -1, r->ids, merges ? merges : yoke_error(),
		     r->merges);
	free(merges);
	yoke_tokenizer_free(t);
	return good;
}

static bool same_ids(const yoke_tokenizer *a, const yoke_tokenizer *b, const char *text)
{
	int32_t *x = NULL, *y = NULL;
	size_t n = 0, m = 0, bytes = 0;
	char *back = NULL;
	const bool good = yoke_tokenizer_encode(a, text, strlen(text), 0, &x, &n) == 0 &&
			  yoke_tokenizer_encode(b, text, strlen(text), 0, &y, &m) == 0 && n == m &&
			  !memcmp(x, y, n * sizeof *x) &&
			  yoke_tokenizer_decode(a, x, n, 0, &back, &bytes) == 0 &&
			  bytes == strlen(text) && !memcmp(back, text, bytes);
	free(x);
	free(y);
	free(back);
	return good;
}

static void test_use(void)
{
	static const char other[] =
		"Not in the text: \xf0\x9f\x9a\x80 caf\xc3\xa9 <|endoftext|>\r\n\t 0123";
	const struct learned *r = &learned[1];
	const int32_t *eos;
	size_t bytes;
	yoke_tokenizer *t = yoke_tokenizer_train(r->text, NULL, (size_t)r->count, r->vocab);
	yoke_tokenizer *saved =
		t && yoke_tokenizer_save(t, FILE_NAME) == 0 ? yoke_tokenizer_open(FILE_NAME) : NULL;
	const char *first = t ? yoke_tokenizer_piece(t, 0, &bytes) : NULL;
	ok(saved && same_ids(t, saved, r->text[0]) && same_ids(t, saved, other),
	   "a trained tokenizer and its file give the same ids, and any text back");
	ok(first && !strcmp(first, "<|endoftext|>") && yoke_tokenizer_is_special(t, 0) &&
		   yoke_tokenizer_eos(t, &eos) == 1 && eos[0] == 0,
	   "<|endoftext|> is id 0 and ends a text");
	ok(saved && yoke_tokenizer_save(saved, "copy.json") == YOKE_EINVAL,
	   "one that was opened is not saved");
	yoke_error_clear();
	yoke_tokenizer_free(saved);
	yoke_tokenizer_free(t);
}

static void test_bad(void)
{
	static const char *const text[] = { "a \xff" }, *const none[] = { NULL };
	const size_t three = 2;
	ok(refused(yoke_tokenizer_train(text, NULL, 1, 300), YOKE_EFORMAT),
	   "a text that is not UTF-8 is refused");
	ok(refused(yoke_tokenizer_train(text, &three, 1, 256), YOKE_ERANGE) &&
		   refused(yoke_tokenizer_train(text, &three, 1, INT64_MAX), YOKE_ERANGE) &&
		   refused(yoke_tokenizer_train(text, &three, 1, -1), YOKE_ERANGE),
	   "vocabularies of less than 257 ids, or too many, are refused");
	ok(refused(yoke_tokenizer_train(none, NULL, 1, 300), YOKE_EINVAL) &&
		   refused(yoke_tokenizer_train(NULL, NULL, 1, 300), YOKE_EINVAL),
	   "a text that is NULL is refused");
	yoke_tokenizer *t = yoke_tokenizer_train(NULL, NULL, 0, 300);
	ok(t && yoke_tokenizer_size(t) == 257, "no text gives the bytes");
	yoke_tokenizer_free(t);
}

// Words of chunks that the counting takes one by one are those of the text.
static void test_chunks(void)
{
	enum { WORDS = 60000 };
	char *text = malloc(8 * WORDS);
	const char **word = malloc(WORDS * sizeof *word);
	size_t *bytes = malloc(WORDS * sizeof *bytes), n = 0;
	for (int i = 0; i < WORDS; i++) {
		word[i] = text + n;
		bytes[i] =
			(size_t)snprintf(text + n, 8, "%s%c%d", i ? " " : "", 'a' + i % 7, i % 100);
		n += bytes[i];
	}
	const char *const all[] = { text };
	yoke_tokenizer *one = yoke_tokenizer_train(all, &n, 1, 400),
		       *many = yoke_tokenizer_train(word, bytes, WORDS, 400);
	char *a = one ? merges_of(one) : NULL, *b = many ? merges_of(many) : NULL;
	ok(a && b && *a && !strcmp(a, b), "%zu bytes give the merges of their %d words", n, WORDS);
	free(a);
	free(b);
	yoke_tokenizer_free(one);
	yoke_tokenizer_free(many);
	free(bytes);
	free(word);
	free(text);
}

// How often a word occurs in a text that is searched as a whole.
static int64_t count_of(const struct yk_regex *r, const char *text, size_t n, const char *word,
			size_t bytes)
{
	struct yk_regex_scan s;
	size_t from, to;
	int64_t times = 0;
	if (yk_regex_begin(&s, r, text, n) < 0)
		return -1;
	while (yk_regex_next(&s, &from, &to) > 0)
		times += to - from == bytes && !memcmp(text + from, word, bytes);
	yk_regex_end(&s);
	return times;
}

// Chunks also end before line ends, and after text that is not ASCII, but not within white space.
static void test_chunks_of_scripts(void)
{
	static const char *const line[] = {
		"\xd0\xb0\xd0\xb1 \xd0\xb2\xd0\xb3\n",                                // Cyrillic
		"\xe4\xb8\xad\xe6\x96\x87\xe3\x80\x82\n",                             // Chinese
		// wide, no-break blanks
		"\xe4\xb8\xad\xe3\x80\x80 \n\n\xe6\x96\x87 \xc2\xa0\n",
		"ab  cd \t\n",
	};
	struct yk_regex *r = yk_regex_new(YK_GPT2_PATTERN, strlen(YK_GPT2_PATTERN), "text");
	for (size_t k = 0; k < sizeof line / sizeof *line; k++) {
		const size_t size = strlen(line[k]), n = 200000 / size * size;
		char *text = malloc(n);
		for (size_t i = 0; i < n; i += size)
			memcpy(text + i, line[k], size);
		struct yk_bpe_words w = { .what = "text" };
		int e = yk_bpe_words_add(&w, text, n);
		int64_t bytes = 0;
		bool same = e == 0;
		for (size_t i = 0; i < w.count; i++) {
			const struct yk_bpe_word *x = &w.word[i];
			const int64_t want = count_of(r, text, n, w.bytes + x->at, x->n);
			bytes += x->count * (int64_t)x->n;
			if (want != x->count)
				diag("word %zu of %zu bytes: %" PRId64 " times, want %" PRId64, i,
				     x->n, x->count, want);
			same = same && want == x->count;
		}
		ok(same && bytes == (int64_t)n,
		   "script %zu: %zu words are counted as in the whole text %s", k, w.count,
		   yoke_error());
		yk_bpe_words_fini(&w);
		free(text);
	}
	yk_regex_free(r);
}

// 2 GiB and more without white space: address space only, of which no page is written.
static void test_long(void)
{
	static const char what[] = "more than 2 GiB without white space are refused";
	const size_t n = (size_t)INT32_MAX + 70000;
	struct yk_regex *r = yk_regex_new("a", 1, "text");
	struct yk_regex_scan s;
	ok(r && yk_regex_begin(&s, r, "", (size_t)INT32_MAX + 1) == YOKE_ERANGE,
	   "a regular expression refuses a text of 2^31 bytes: %s", yoke_error());
	yoke_error_clear();
	yk_regex_free(r);
	char *text = SIZE_MAX > UINT32_MAX ?
			     mmap(NULL, n, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				  -1, 0) :
			     MAP_FAILED;
	if (text == MAP_FAILED) {
		skip(what, "no address space");
		return;
	}
	ok(refused(yoke_tokenizer_train((const char *const[]){ text }, &n, 1, 300), YOKE_ERANGE),
	   "%s", what);
	munmap(text, n);
}

// The same lines, mapped over and over, with places where the text may be cut.
static void test_long_lines(void)
{
	enum { SIZE = 1 << 22, TIMES = 520 };
	static const char what[] = "2 GiB of Cyrillic lines are counted";
	static const char line[] =
		"\xd0\xb0\xd0\xb1\xd0\xb2\xd0\xb3\xd0\xb4\xd0\xb5\xd0\xb6\n"
		"\xd0\xb0\xd0\xb1\xd0\xb2\xd0\xb3\xd0\xb4\xd0\xb5\xd0\xb6\xd0\xb7"; // 31 bytes
	char *text = mmap(NULL, (size_t)SIZE * TIMES, PROT_READ,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	FILE *f = tmpfile();
	for (int i = 0; f && i < SIZE / 32; i++)
		fprintf(f, "%s ", line);
	bool mapped = f && fflush(f) == 0 && text != MAP_FAILED;
	for (size_t i = 0; mapped && i < TIMES; i++)
		mapped = mmap(text + i * SIZE, SIZE, PROT_READ, MAP_SHARED | MAP_FIXED, fileno(f),
			      0) != MAP_FAILED;
	struct yk_bpe_words w = { .what = "text" };
	if (mapped) {
		const int e = yk_bpe_words_add(&w, text, (size_t)SIZE * TIMES);
		int64_t sum = 0;
		for (size_t i = 0; i < w.count; i++)
			sum += w.word[i].count * (int64_t)w.word[i].n;
		ok(e == 0 && sum == (int64_t)SIZE * TIMES && w.count < 8,
		   "%s: %" PRId64 " bytes, %zu words %s", what, sum, w.count, yoke_error());
	} else {
		skip(what, "no file, or no address space");
	}
	yk_bpe_words_fini(&w);
	if (text != MAP_FAILED)
		munmap(text, (size_t)SIZE * TIMES);
	if (f)
		fclose(f);
}

static void test_shakespeare(void)
{
	static const char what[] = "tinyshakespeare, 4096 ids";
	const char *folder = getenv("YOKE_TEST_DATA");
	char path[4096], *text = NULL;
	size_t bytes;
	snprintf(path, sizeof path, "%s/tinyshakespeare.txt", folder ? folder : "");
	if (!folder || yk_file_read(path, 1 << 24, &text, &bytes) < 0) {
		yoke_error_clear();
		skip(what, "YOKE_TEST_DATA names no folder with tinyshakespeare.txt");
		return;
	}
	const char *const all[] = { text };
	yoke_tokenizer *t = yoke_tokenizer_train(all, &bytes, 1, 4096);
	char *merges = t ? merges_of(t) : NULL;
	uint64_t hash = 0xcbf29ce484222325u;
	for (const char *c = merges; c && *c; c++)
		hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
	ok(t && yoke_tokenizer_size(t) == 4096 && hash == SHAKESPEARE_MERGES,
	   "%s: hash of the merges %016" PRIx64, what, hash);
	free(merges);
	free(text);
	yoke_tokenizer_free(t);
}
#endif

int main(void)
{
	tap_folder();
#ifdef HAVE_ONIG
	for (size_t i = 0; i < sizeof learned / sizeof *learned; i++)
		ok(as_recorded(&learned[i]), "texts %zu: merges as recorded", i);
	test_use();
	test_bad();
	test_chunks();
	test_chunks_of_scripts();
	test_long();
	if (tap_long())
		test_long_lines();
	test_shakespeare();
#else
	ok(refused(yoke_tokenizer_train((const char *const[]){ "a" }, NULL, 1, 300),
		   YOKE_EUNSUPPORTED),
	   "without Oniguruma, training is refused");
#endif
	return done();
}
