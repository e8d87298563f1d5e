// SPDX-License-Identifier: Apache-2.0
// Tests training text: files and directories, the train/validation split, windows and their
// order, resuming, tokenizers.
#include "config.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/param.h"
#include "tap.h"
#include "data/text.h"

static struct yk_tokenizer *byte;

// The training view of the text.
static yoke_loader *loader_of(struct yk_data *d, int seed, int batch)
{
	char settings[60];
	yoke_dataset *set = yk_data_set(d);
	snprintf(settings, sizeof settings, "seed=%d batch=%d workers=%d", seed, batch, batch - 1);
	yoke_loader *l = yoke_loader_new(set, settings);
	yoke_dataset_free(set);
	return l;
}

static void next_windows(yoke_loader *l, int64_t batch, int64_t context, int32_t *to)
{
	void *data;
	if (yoke_loader_host(l, 1, &data, NULL) == batch)
		memcpy(to, data, (size_t)(batch * (context + 1)) * sizeof *to);
}

static struct yk_data *open_data(const char *paths, int64_t context, double valid)
{
	struct yk_data_spec spec = { .context = context, .valid = valid };

	yoke_error_clear();
	return yk_data_new(paths, byte, &spec);
}

static void fails(const char *paths, int64_t context, double valid, int code,
		  const char *part)
{
	struct yk_data *d = open_data(paths, context, valid);
	bool good = !d && yoke_error_code() == code && strstr(yoke_error(), part) &&
		    !strchr(yoke_error(), '\n');

	if (!good)
		diag("wanted %d with '%s'", code, part);
	ok(good, "refused: %s", yoke_error());
	yoke_error_clear();
	yk_data_free(d);
}

// n bytes, none of them NUL, byte i at value 1 + i % 251
static void make(const char *path, size_t n)
{
	char *text = malloc(n + 1);

	for (size_t i = 0; i < n; i++)
		text[i] = (char)(1 + i % 251);
	yk_file_write(path, text, n);
	free(text);
}

static void test_tokenizer(void)
{
	struct yk_tokens t = { 0 };
	int32_t ids[300];
	char all[300];
	size_t n;
	bool same = true;

	for (int i = 0; i < 300; i++)
		all[i] = (char)i;
	ok(yk_tokenizer_size(byte) == 256 && !strcmp(yk_tokenizer_name(byte), "byte"),
	   "byte: 256 ids");
	ok(yk_tokenizer_encode(byte, all, 299, &t) == 0 &&
		   yk_tokenizer_encode(byte, all, 0, &t) == 0 &&
		   yk_tokenizer_encode(byte, all + 299, 1, &t) == 0 && t.count == 300 &&
		   t.width == 1,
	   "300 bytes give 300 ids of one byte each");
	yk_tokens_copy(&t, 0, 300, ids);
	for (int i = 0; i < 300; i++) {
		const char *s = yk_tokenizer_decode(byte, ids[i], &n);
		same = same && s && n == 1 && *s == all[i] && ids[i] == i % 256;
	}
	ok(same, "each id decodes to its byte");
	ok(!yk_tokenizer_decode(byte, 256, &n) && !yk_tokenizer_decode(byte, -1, &n),
	   "ids out of range decode to nothing");
	yk_tokens_fini(&t);
	json_t *o = yk_tokenizer_save(byte);
	struct yk_tokenizer *again = yk_tokenizer_load(o, "x");
	ok(again && !strcmp(yk_tokenizer_name(again), "byte"), "saved and loaded");
	yk_tokenizer_free(again);
	json_object_set_new(o, "size", json_integer(255));
	again = yk_tokenizer_load(o, "x");
	ok(!again && yoke_error_code() == YOKE_EFORMAT, "a vocabulary of another size: %s",
	   yoke_error());
	yoke_error_clear();
	json_decref(o);
	again = yk_tokenizer_new("bite");
	ok(!again && yoke_error_code() == YOKE_ENOENT && strstr(yoke_error(), "'byte'"),
	   "an unknown tokenizer: %s", yoke_error());
	yoke_error_clear();
}

// ---- words ----

enum { WORDS = 3000, KINDS = 400 };

// Word of kind k: of letters, of an umlaut and letters, or one of the two special ones.
static const char *word_of(int k, char to[16])
{
	if (k < 2)
		return k ? "<unk>" : "<pad>";
	snprintf(to, 16, "%s%c%d", k % 3 ? "" : "\xc3\xa4", 'a' + k % 7, k * k % 997);
	return to;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

// The expected id of a word: a linear search from the start of the training split.
static int32_t want_id(char *const *sorted, int n, const char *word)
{
	if (!strcmp(word, "<pad>"))
		return 0;
	int32_t id = 2;
	for (int i = 0; i < n; i++) {
		if ((i && !strcmp(sorted[i], sorted[i - 1])) || !strcmp(sorted[i], "<unk>") ||
		    !strcmp(sorted[i], "<pad>"))
			continue;
		if (!strcmp(sorted[i], word))
			return id;
		id++;
	}
	return 1;
}

// kinds: number of different words; common: number of those in the training split.
static void test_vocabulary(int kinds, int common)
{
	static const char *const blank[] = { " ", "\n", "\t", "  ", " \r\n", "\v", "\f" };
	static char word[WORDS][16], text[WORDS * 24];
	static char *sorted[WORDS];
	struct yk_data_spec spec = { .context = 10, .valid = 0.25 };
	int32_t got[11];
	size_t n = 0, bytes;
	int train = WORDS - WORDS / 4, bad = 0, unknown = 0;
	for (int i = 0; i < WORDS; i++) {
		char s[16];
		snprintf(word[i], 16, "%s",
			 word_of((int)rnd_int(0, (i < train ? common : kinds) - 1), s));
		n += (size_t)sprintf(text + n, "%s%s", word[i], blank[rnd_int(0, 6)]);
		sorted[i] = word[i];
	}
	qsort(sorted, (size_t)train, sizeof *sorted, compare);
	yk_file_write("words.txt", text, n);
	struct yk_tokenizer *t = yk_tokenizer_new("word");
	struct yk_data *d = yk_data_new("words.txt", t, &spec);
	ok(d && yk_data_tokens(d) == WORDS, "%d words of %d kinds %s", WORDS, kinds, yoke_error());
	for (int64_t w = 0; d && w < yk_data_valid_windows(d); w++) {
		yk_data_valid(d, w, 1, got);
		for (int k = 0; k < 11; k++) {
			int32_t want = want_id(sorted, train, word[train + 10 * w + k]);
			bad += got[k] != want;
			unknown += want == 1;
		}
	}
	ok(!bad, "ids are ranks among the %d words of the training split: %d wrong",
	   t ? yk_tokenizer_size(t) - 2 : 0, bad);
	ok(kinds <= common || unknown > WORDS / 4 / 8, "%d unknown words in the validation split",
	   unknown);
	bad = 0;
	for (int32_t id = 0; t && id < yk_tokenizer_size(t); id++) {
		const char *s = yk_tokenizer_decode(t, id, &bytes);
		bad += !s || strlen(s) != bytes || (id > 1 && want_id(sorted, train, s) != id);
	}
	ok(!bad && !yk_tokenizer_decode(t, yk_tokenizer_size(t), &bytes),
	   "each id decodes to its word");
	// saved, loaded, and the same ids
	json_t *o = yk_tokenizer_save(t);
	struct yk_tokenizer *again = yk_tokenizer_load(o, "x");
	struct yk_tokens a = { 0 }, b = { 0 };
	bool good = again && !yk_tokenizer_encode(t, text, n, &a) &&
		    !yk_tokenizer_encode(again, text, n, &b) && a.count == WORDS &&
		    b.count == WORDS && a.width == b.width &&
		    !memcmp(a.ids, b.ids, WORDS * (size_t)a.width);
	ok(good && a.width == (yk_tokenizer_size(t) <= 256 ? 1 : 2), "saved and loaded %s",
	   yoke_error());
	yk_tokens_fini(&a);
	yk_tokens_fini(&b);
	json_decref(o);
	yk_tokenizer_free(again);
	yk_data_free(d);
	yk_tokenizer_free(t);
}

static void bad_vocabulary(const char *json, const char *what)
{
	json_t *o = json_loads(json, JSON_ALLOW_NUL, NULL);
	struct yk_tokenizer *t = o ? yk_tokenizer_load(o, "m/manifest.json") : NULL;
	bool good = o && !t && yoke_error_code() == YOKE_EFORMAT &&
		    strstr(yoke_error(), "m/manifest.json") && !strchr(yoke_error(), '\n');
	ok(good, "%s: %s", what, yoke_error());
	yoke_error_clear();
	yk_tokenizer_free(t);
	json_decref(o);
}

static void test_bad_words(void)
{
	struct yk_data_spec spec = { .context = 2 };
	struct yk_tokenizer *t = yk_tokenizer_new("word");
	yk_file_write("latin.txt", "caf\xe9 au lait s'il vous plait", 28);
	struct yk_data *d = yk_data_new("latin.txt", t, &spec);
	ok(!d && yoke_error_code() == YOKE_EFORMAT &&
		   strstr(yoke_error(), "latin.txt: the word 'caf?'"),
	   "not UTF-8: %s", yoke_error());
	yoke_error_clear();
	yk_tokenizer_free(t);
	t = yk_tokenizer_new("word");
	d = yk_data_new("t2/blank.txt", t, &spec);
	ok(!d && yoke_error_code() == YOKE_ERANGE && strstr(yoke_error(), "0 tokens"),
	   "a text of blanks only: %s", yoke_error());
	yoke_error_clear();
	yk_tokenizer_free(t);
#define V "{\"name\":\"word\",\"size\":"
	bad_vocabulary(V "3}", "no words");
	bad_vocabulary(V "3,\"words\":3}", "words that are no list");
	bad_vocabulary(V "3,\"words\":{}}", "words that are an object");
	bad_vocabulary(V "1,\"words\":[\"<pad>\"]}", "one word");
	bad_vocabulary(V "3,\"words\":[\"<pad>\",\"<unk>\"]}", "another size");
	bad_vocabulary(V "2,\"words\":[\"<unk>\",\"<pad>\"]}", "the first two swapped");
	bad_vocabulary(V "3,\"words\":[\"<pad>\",\"<unk>\",1]}", "a number");
	bad_vocabulary(V "3,\"words\":[\"<pad>\",\"<unk>\",\"\"]}", "an empty word");
	bad_vocabulary(V "3,\"words\":[\"<pad>\",\"<unk>\",\"a b\"]}", "a blank");
	bad_vocabulary(V "3,\"words\":[\"<pad>\",\"<unk>\",\"a\\u0000\"]}", "a NUL");
	bad_vocabulary(V "3,\"words\":[\"<pad>\",\"<unk>\",\"<unk>\"]}", "a special one again");
	bad_vocabulary(V "4,\"words\":[\"<pad>\",\"<unk>\",\"b\",\"a\"]}", "not sorted");
	bad_vocabulary(V "4,\"words\":[\"<pad>\",\"<unk>\",\"a\",\"a\"]}", "one twice");
	bad_vocabulary(V "-3,\"words\":[\"<pad>\",\"<unk>\",\"a\"]}", "a size below 0");
#undef V
}

// The fingerprint distinguishes texts, their order and their split, and nothing else.
static void test_fingerprint(void)
{
	static const struct {
		const char *paths;
		double valid;
		int64_t context;
		bool same;
	} row[] = {
		{ "t2/a.txt,t2/b.txt", 0.1, 2, true }, { "t2/b.txt,t2/a.txt", 0.1, 2, false },
		{ "t2/a.txt", 0.1, 2, false },         { "t2/a.txt,t2/b.txt", 0.2, 2, false },
		{ "t2/a.txt,t2/b.txt", 0.1, 3, true }, { "t2/ab.txt", 0.1, 2, false },
	};
	struct yk_data *first = open_data(row[0].paths, 2, row[0].valid);
	for (size_t i = 0; first && i < sizeof row / sizeof *row; i++) {
		struct yk_data *d = open_data(row[i].paths, row[i].context, row[i].valid);
		bool same = d && yk_data_fingerprint(d) == yk_data_fingerprint(first);
		ok(d && same == row[i].same, "fingerprint of %s, valid=%g", row[i].paths,
		   row[i].valid);
		yk_data_free(d);
	}
	yk_data_free(first);
}

static void test_words(void)
{
	yk_dir_make("t2");
	yk_file_write("t2/blank.txt", "  \n \t\n", 6);
	yk_file_write("t2/a.txt", "aaaaaaaaaa", 10);
	yk_file_write("t2/b.txt", "bbbbbbbbbb", 10);
	yk_file_write("t2/ab.txt", "aaaaaaaaaabbbbbbbbbb", 20);
	test_vocabulary(KINDS, KINDS / 2);
	test_vocabulary(KINDS, KINDS);
	test_vocabulary(100, 60);
	test_vocabulary(3, 1);
	test_bad_words();
	test_fingerprint();
}

// The text of folder/ in order: a.txt, b/c.txt, b/d/e.txt, z.txt
static void test_folder(void)
{
	static const char text[] = "AAAABBBBBCCCCCCDDDDDDD";
	int32_t got[32];
	struct yk_data *d;

	yk_dir_make("t/b/d");
	yk_dir_make("t/.git");
	yk_dir_make("t/empty");
	yk_file_write("t/z.txt", "DDDDDDD", 7);
	yk_file_write("t/b/d/e.txt", "CCCCCC", 6);
	yk_file_write("t/b/c.txt", "BBBBB", 5);
	yk_file_write("t/a.txt", "AAAA", 4);
	yk_file_write("t/nothing.txt", "", 0);
	yk_file_write("t/image.png", "PNG\0PNG", 7);
	yk_file_write("t/.hidden", "no", 2);
	yk_file_write("t/.git/config", "no", 2);
	ok(symlink("..", "t/b/up") == 0, "a symbolic link to a parent directory");
	d = open_data("t", 21, 1);
	ok(d && yk_data_files(d) == 4 && yk_data_tokens(d) == 22 &&
		   yk_data_valid_windows(d) == 1 && yk_data_train_windows(d) == 0,
	   "4 files, 22 tokens %s", yoke_error());
	bool same = d && yk_data_valid(d, 0, 2, got) == 1;
	for (int i = 0; same && i < 22; i++)
		same = got[i] == text[i];
	ok(same, "files are in order, without hidden, empty and binary files and links");
	yk_data_free(d);
	d = open_data("t/z.txt,t/a.txt,t/b/d", 2, 0);
	ok(d && yk_data_files(d) == 3 && yk_data_tokens(d) == 17 &&
		   yk_data_train_windows(d) == 8,
	   "a list of files and directories %s", yoke_error());
	yk_data_free(d);
	yk_file_write("t/x,y", "abc", 3);
	d = open_data("t/x,y", 2, 0);
	ok(d && yk_data_files(d) == 1, "a name with a comma %s", yoke_error());
	yk_data_free(d);
}

static void test_errors(void)
{
	make("t/100", 100);
	fails("", 8, 0.1, YOKE_EINVAL, "not given");
	fails("t/nowhere", 8, 0.1, YOKE_ENOENT, "t/nowhere");
	fails("t/a.txt,t/nowhere", 8, 0.1, YOKE_ENOENT, "t/nowhere");
	fails("t/a.txt,,t/z.txt", 8, 0.1, YOKE_EINVAL, "empty name");
	fails("t/nothing.txt", 8, 0.1, YOKE_EFORMAT, "t/nothing.txt");
	fails("t/image.png", 8, 0.1, YOKE_EFORMAT, "NUL");
	fails("t/empty", 8, 0.1, YOKE_EFORMAT, "t/empty");
	fails("/dev/null", 8, 0.1, YOKE_EINVAL, "/dev/null");
	fails("t/100", 100, 0, YOKE_ERANGE, "101");
	fails("t/100", 50, 0.1, YOKE_ERANGE, "102");
	fails("t/100", 1048576, 0.1, YOKE_ERANGE, "1048576");
	yoke_setting_set("data.max", "150");
	fails("t/100,t/100", 8, 0.1, YOKE_ERANGE, "150");
	yoke_setting_set("data.max", "1G");
	if (geteuid() == 0) {
		skip("an unreadable file", "root reads everything");
		return;
	}
	chmod("t/100", 0);
	fails("t/100", 8, 0.1, YOKE_EIO, "t/100");
	chmod("t/100", 0600);
	chmod("t/b/d", 0);
	fails("t", 8, 0.1, YOKE_EIO, "t/b/d");
	chmod("t/b/d", 0700);
}

// For n tokens: splits do not overlap, windows share one token, each split has at least one window.
static void test_split(void)
{
	static const int64_t sizes[] = { 18, 19, 20, 97, 100, 1009 };
	static const double shares[] = { 0, 0.001, 0.1, 0.5, 0.9, 1 };
	int bad = 0;

	for (size_t s = 0; s < 6; s++)
		for (size_t v = 0; v < 6; v++) {
			int64_t n = sizes[s], c = 8;
			make("t/n", (size_t)n);
			struct yk_data *d = open_data("t/n", c, shares[v]);
			if (!d) {
				diag("%lld tokens, valid %g: %s", (long long)n, shares[v],
				     yoke_error());
				bad++;
				continue;
			}
			int64_t train = yk_data_train_windows(d),
				valid = yk_data_valid_windows(d);
			int32_t row[9];
			yoke_loader *l = train > 0 ? loader_of(d, 1, 1) : NULL;
			int64_t last = -1; // largest token number in training
			for (int64_t i = 0; i < train; i++) {
				next_windows(l, 1, c, row);
				if (n < 251) // a token's value shows its position
					last = row[c] - 1 > last ? row[c] - 1 : last;
			}
			yoke_loader_free(l);
			bool good = shares[v] == 0 ? valid == 0 && train == (n - 1) / c :
				    shares[v] == 1 ? train == 0 && valid == (n - 1) / c :
						     train >= 1 && valid >= 1;
			if (good && valid && n < 251)
				good = yk_data_valid(d, 0, 1, row) == 1 &&
				       row[0] - 1 > last;
			for (int64_t i = 0; good && i < valid; i++) {
				int32_t next[9];
				good = yk_data_valid(d, i, 1, row) == 1;
				if (good && i + 1 < valid)
					good = yk_data_valid(d, i + 1, 1, next) == 1 &&
					       next[0] == row[c];
			}
			if (!good || yk_data_valid(d, valid, 1, row) != 0) {
				diag("%lld tokens, valid %g: %lld and %lld windows",
				     (long long)n, shares[v], (long long)train,
				     (long long)valid);
				bad++;
			}
			yk_data_free(d);
		}
	ok(bad == 0, "36 splits have no overlap and at least one window");
}

// Each epoch has each window once; orders differ by epoch and by seed; a saved position resumes.
static void test_order(void)
{
	static const int64_t counts[] = { 1, 2, 3, 4, 5, 16, 17, 64, 65, 127, 251, 1009 };
	int bad = 0;

	for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
		int64_t n = counts[k];
		uint8_t *text = malloc((size_t)n * 2 + 1);
		for (int64_t i = 0; i < n;
		     i++) { // a window encodes its number as two digits of base 251
			text[2 * i] = (uint8_t)(1 + i / 251);
			text[2 * i + 1] = (uint8_t)(1 + i % 251);
		}
		text[2 * n] = '.';
		yk_file_write("t/order", text, (size_t)n * 2 + 1);
		free(text);
		struct yk_data *d = open_data("t/order", 2, 0),
			       *e = open_data("t/order", 2, 0);
		if (!d || !e || yk_data_train_windows(d) != n) {
			diag("%lld windows: %s", (long long)n, yoke_error());
			bad++;
			goto next;
		}
		yoke_loader *in = loader_of(d, 5, 1), *other = loader_of(e, 6, 1);
		int32_t order[4][1009], row[9];
		for (int epoch = 0; epoch < 4; epoch++) {
			uint8_t seen[1009] = { 0 };
			for (int64_t i = 0; i < n; i++) {
				next_windows(in, 1, 2, row);
				order[epoch][i] = (row[0] - 1) * 251 + row[1] - 1;
				if (order[epoch][i] >= n || seen[order[epoch][i]]++)
					bad++;
			}
		}
		int same_epoch = 0, same_seed = 0, rising = 0;
		for (int64_t i = 0; i < n; i++) {
			next_windows(other, 1, 2, row);
			same_epoch += order[0][i] == order[1][i];
			same_seed += order[0][i] == (row[0] - 1) * 251 + row[1] - 1;
			rising += i && order[0][i] == order[0][i - 1] + 1;
		}
		if (n >= 64 &&
		    (same_epoch > n / 4 || same_seed > n / 4 || rising > n / 4)) {
			diag("%lld windows: %d equal in epochs 0 and 1, %d for two "
			     "seeds, %d in a row",
			     (long long)n, same_epoch, same_seed, rising);
			bad++;
		}
		// batches of 3 from any position are the same windows
		struct yoke_position from = { sizeof from, 1, n / 2, 0 };
		yoke_loader *three = loader_of(d, 5, 3);
		int32_t rows[9];
		yoke_loader_seek(three, &from);
		next_windows(three, 3, 2, rows);
		yoke_loader_position(three, &from);
		for (int i = 0; i < 3; i++) {
			int64_t place = n + n / 2 + i;
			bad += rows[3 * i + 1] - 1 != order[place / n][place % n] % 251;
		}
		bad += from.epoch != 1 + (n / 2 + 3) / n || from.index != (n / 2 + 3) % n;
		yoke_loader_free(in);
		yoke_loader_free(other);
		yoke_loader_free(three);
	next:
		yk_data_free(d);
		yk_data_free(e);
	}
	ok(bad == 0,
	   "orders of 1 to 1009 windows are permutations, by seed and epoch, and resume");
}

// The most frequent words, with ties in byte order, from no more of a text than requested.
static void limits(void)
{
	static const char text[] = "d d d d c c c b a b a e x x x x x x x x x\n";
	static const char *const want[] = { "<pad>", "<unk>", "a", "c", "d" };
	const struct yk_data_spec spec = { .context = 2, .limit = 12, .vocab = 5 };
	bool good = yk_file_write("frequent.txt", text, sizeof text - 1) == 0;
	struct yk_tokenizer *t = yk_tokenizer_new("word");
	struct yk_data *d = yk_data_new("frequent.txt", t, &spec);
	good = good && d && yk_data_tokens(d) == 12 && yk_tokenizer_size(t) == 5;
	for (int i = 0; i < 5 && good; i++) {
		size_t bytes;
		const char *word = yk_tokenizer_decode(t, i, &bytes);
		good = word && bytes == strlen(want[i]) && !memcmp(word, want[i], bytes);
	}
	ok(good, "the most frequent words of the first 12 %s", yoke_error());
	const uint64_t print = d ? yk_data_fingerprint(d) : 0;
	yk_data_free(d);
	yk_tokenizer_free(t);
	const struct yk_data_spec less = { .context = 2, .limit = 11, .vocab = 5 };
	t = yk_tokenizer_new("word");
	d = yk_data_new("frequent.txt", t, &less);
	ok(d && yk_data_tokens(d) == 11 && yk_data_fingerprint(d) != print,
	   "another limit gives another text");
	yk_data_free(d);
	yk_tokenizer_free(t);
}

int main(void)
{
	tap_seed();
	byte = yk_tokenizer_new("byte");
	tap_folder();
	test_tokenizer();
	test_words();
	test_folder();
	test_errors();
	test_split();
	test_order();
	yk_tokenizer_free(byte);
	limits();
	return done();
}
