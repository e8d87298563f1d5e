// SPDX-License-Identifier: Apache-2.0
// Tests token files: tokens, vocabulary, split and fingerprint of random text equal those of
// reading the text directly, for any block size and number of threads; each error is one line and
// leaves no files.
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "data/prepare.h"
#include "data/text.h"
#include "data/tokenfile.h"
#include "formats/safetensors.h"
#include "tap.h"

#define OUT "x.tokens.safetensors"

// ---- random text ----

// Words of a few letters between blanks of all kinds; some are "<unk>", some of several bytes.
static size_t draw_text(char *to, size_t max)
{
	static const char *const blank[] = { " ", "\n", "\t", "  ", "\r\n", "\v", "\f" };
	static const char *const odd[] = { "<unk>", "<pad>", "\xc3\xa9t\xc3\xa9", "\"quoted\"",
					   "back\\slash" };
	size_t n = 0;
	const size_t want = (size_t)rnd_int(1, (int64_t)max - 40);
	while (n < want) {
		char word[24];
		if (rnd_int(0, 9) == 0)
			snprintf(word, sizeof word, "%s", odd[rnd_int(0, 4)]);
		else
			snprintf(word, sizeof word, "%c%d", (int)rnd_int('a', 'e'),
				 (int)rnd_int(0, rnd_int(0, 1) ? 9 : 999));
		n += (size_t)snprintf(to + n, max - n, "%s%s", rnd_int(0, 30) ? word : "",
				      blank[rnd_int(0, 6)]);
	}
	return n;
}

// The same as JSON lines with several strings each, some of them empty.
static void write_lines(const char *path, const char *text, size_t n)
{
	FILE *f = fopen(path, "w");
	for (size_t at = 0; at < n;) {
		size_t k = (size_t)rnd_int(0, 60);
		k = k > n - at ? n - at : k;
		// not within a character
		while (at + k < n && ((unsigned char)text[at + k] & 0xc0) == 0x80)
			k++;
		json_t *o = json_pack("{s:i, s:s%}", "id", (int)at, "body", text + at, k);
		char *line = json_dumps(o, rnd_int(0, 1) ? JSON_ENSURE_ASCII : 0);
		fprintf(f, "%s%s", line, rnd_int(0, 3) ? "\n" : "\r\n\n");
		free(line);
		json_decref(o);
		at += k;
	}
	fclose(f);
}

static char text[8000];

// A directory of several files, some of which are not text.
static void write_folder(bool jsonl)
{
	tap_need("rm -rf t && mkdir -p t/sub");
	for (int i = (int)rnd_int(1, 4); i > 0; i--) {
		char path[40];
		const size_t mark = i == 2 ? 3 : 0,
			     n = mark + draw_text(text + mark, sizeof text - mark);
		memcpy(text, "\xef\xbb\xbf", mark); // of UTF-8, as Windows has it
		snprintf(path, sizeof path, "t/%s%d.%s", rnd_int(0, 1) ? "sub/" : "", i,
			 jsonl && i % 2 ? "jsonl" : "txt");
		if (jsonl && i % 2)
			write_lines(path, text, n);
		else
			yk_file_write(path, text, n);
	}
	yk_file_write("t/binary", "a\0b c", 5);
	yk_file_write("t/empty", "", 0);
}

// ---- the same tokens ----

static bool same_windows(struct yk_data *a, struct yk_data *b, int64_t context)
{
	int32_t x[64], y[64];
	void *to[2] = { x, y };
	bool good = yk_data_train_windows(a) == yk_data_train_windows(b) &&
		    yk_data_valid_windows(a) == yk_data_valid_windows(b) &&
		    yk_data_tokens(a) == yk_data_tokens(b);
	yoke_dataset *s = good ? yk_data_set(a) : NULL, *r = good ? yk_data_set(b) : NULL;
	for (int64_t i = 0; good && i < yk_data_train_windows(a); i++)
		good = yoke_dataset_read(s, i, 0, 0, 0, &to[0], NULL) == 0 &&
		       yoke_dataset_read(r, i, 0, 0, 0, &to[1], NULL) == 0 &&
		       !memcmp(x, y, 4 * (size_t)(context + 1));
	for (int64_t i = 0; good && i < yk_data_valid_windows(a); i++)
		good = yk_data_valid(a, i, 1, x) == 1 && yk_data_valid(b, i, 1, y) == 1 &&
		       !memcmp(x, y, 4 * (size_t)(context + 1));
	yoke_dataset_free(s);
	yoke_dataset_free(r);
	return good;
}

static bool same_tokenizer(const struct yk_tokenizer *a, const struct yk_tokenizer *b)
{
	json_t *x = yk_tokenizer_save(a), *y = yk_tokenizer_save(b);
	const bool same = json_equal(x, y);
	json_decref(x);
	json_decref(y);
	return same;
}

// Documents begin at files or lines: the first at 0, in order; all bytes enter the hash.
static bool sound(int64_t documents)
{
	struct yk_safetensors f;
	if (yk_safetensors_open(&f, OUT) < 0)
		return false;
	const struct yk_safetensors_entry *d = yk_safetensors_find(&f, "documents"),
					  *t = yk_safetensors_find(&f, "tokens");
	int64_t *at = malloc(8 * (size_t)documents);
	bool good = d->dims[0] == documents && yk_safetensors_read(&f, d, at) == 0 && at[0] == 0;
	for (int64_t i = 1; i < documents && good; i++)
		good = at[i] >= at[i - 1] && at[i] <= t->dims[0];
	good = good && yk_token_file_verify(&f) == 0;
	free(at);
	yk_safetensors_close(&f);
	return good;
}

static bool one_case(int k)
{
	const bool word = k % 2, jsonl = k % 3 == 0;
	const struct yk_data_spec spec = { .context = rnd_int(1, 40),
					   .valid = k % 5 ? rnd_real(0, 0.9) : 0,
					   .field = jsonl ? "body" : "" };
	struct yk_prepare p = { .paths = "t",
				.out = OUT,
				.tokenizer = word ? "word" : "byte",
				.field = spec.field,
				.valid = spec.valid,
				.context = spec.context,
				.workers = rnd_int(1, 4),
				.block = (uint64_t)rnd_int(1, rnd_int(0, 1) ? 40 : 3000) };
	struct yk_prepared_text done;
	write_folder(jsonl);
	unlink(OUT);
	// where nothing can be kept between the passes
	setenv("TMPDIR", k % 4 ? "." : "/nowhere", 1);
	struct yk_tokenizer *one = yk_tokenizer_new(p.tokenizer), *two = NULL;
	struct yk_data *a = yk_data_new("t", one, &spec), *b = NULL;
	const struct yk_data_spec as = { .context = spec.context, .valid = 0.1 };
	if (!a) { // too little text: both refuse it
		bool good = yoke_error_code() == YOKE_ERANGE;
		yoke_error_clear();
		good = good && yk_prepare(&p, &done) == YOKE_ERANGE && access(OUT, F_OK) < 0;
		yoke_error_clear();
		yk_tokenizer_free(one);
		return good;
	}
	bool good = yk_prepare(&p, &done) == 0 && !done.reused && yk_data_prepared(OUT, &as);
	good = good && (two = yk_data_tokenizer(OUT, &as)) && same_tokenizer(one, two);
	good = good && (b = yk_data_new(OUT, two, &as)) && same_windows(a, b, spec.context);
	good = good && yk_data_fingerprint(a) == yk_data_fingerprint(b) && sound(done.documents) &&
	       done.files == yk_data_files(a) && done.skipped == 2;
	if (good && !jsonl)
		good = done.documents == done.files;
	p.workers = 1;
	p.block = 0;
	good = good && yk_prepare(&p, &done) == 0 && done.reused &&
	       done.tokens == yk_data_tokens(a);
	if (!good)
		diag("case %d, blocks of %llu, %lld threads, context=%lld valid=%g: %s", k,
		     (unsigned long long)p.block, (long long)p.workers, (long long)spec.context,
		     spec.valid, yoke_error());
	yk_data_free(a);
	yk_data_free(b);
	yk_tokenizer_free(one);
	yk_tokenizer_free(two);
	return good;
}

static void test_same(void)
{
	const int n = tap_cases(40, 2000);
	bool good = true;
	for (int k = 0; k < n && good; k++)
		good = one_case(k);
	ok(good, "%d texts of bytes, words and JSON lines, prepared in blocks", n);
}

// ---- again ----

static void test_reused(void)
{
	struct yk_prepare p = {
		.paths = "t/a,t/b", .out = OUT, .tokenizer = "word", .valid = 0.1, .context = 3
	};
	struct yk_prepared_text done;
	struct stat was, is;
	tap_need("rm -rf t " OUT " && mkdir t");
	yk_file_write("t/a", "one two three four five six seven eight nine ten", 48);
	yk_file_write("t/b", "eleven twelve thirteen fourteen fifteen sixteen", 47);
	ok(yk_prepare(&p, &done) == 0 && !done.reused && done.tokens == 16 && stat(OUT, &was) == 0,
	   "prepared %s", yoke_error());
	ok(yk_prepare(&p, &done) == 0 && done.reused && done.train == 12 && done.vocab == 14 &&
		   stat(OUT, &is) == 0 && was.st_ino == is.st_ino,
	   "then reused");
	yk_file_write("t/b", "eleven twelve thirteen fourteen fifteen Sixteen", 47);
	ok(yk_prepare(&p, &done) == 0 && !done.reused, "prepared again when a file has changed");
	p.valid = 0.2;
	ok(yk_prepare(&p, &done) == 0 && !done.reused, "or with another split");
	p.tokenizer = "byte";
	ok(yk_prepare(&p, &done) == 0 && !done.reused && done.tokens == 95, "or another tokenizer");
	yk_file_write(OUT, "rubbish", 7);
	ok(yk_prepare(&p, &done) == 0 && !done.reused, "or when the output is another file: %s",
	   yoke_error());
	const int fd = open(OUT, O_RDWR);
	struct yk_safetensors f;
	const bool altered = pwrite(fd, "!", 1, lseek(fd, 0, SEEK_END) - 1) == 1;
	close(fd);
	yk_safetensors_open(&f, OUT);
	ok(altered && yk_token_file_verify(&f) == YOKE_EFORMAT && strstr(yoke_error(), "altered"),
	   "%s", yoke_error());
	yoke_error_clear();
	yk_safetensors_close(&f);
	ok(yk_prepare(&p, &done) == 0 && !done.reused, "or when its tokens were altered");
}

// ---- what is wrong ----

static int left_over(void)
{
	return system("! ls -A | grep -q 'tokens.*tmp'");
}

static void refused(const char *what, const struct yk_prepare *p, int code, const char *say)
{
	struct yk_prepared_text done;
	const int e = yk_prepare(p, &done);
	const bool good = e == code && strstr(yoke_error(), say) && !strchr(yoke_error(), '\n') &&
			  !left_over();
	ok(good, "%s: %s", what, yoke_error());
	if (!good)
		diag("%d, wanted %d with '%s'", e, code, say);
	yoke_error_clear();
}

static void test_wrong(void)
{
	struct yk_prepare p = {
		.paths = "t", .out = OUT, .tokenizer = "word", .valid = 0.1, .context = 3
	};
	struct yk_prepared_text done;
	atomic_int stop = 2;
	char *was, *is = NULL;
	size_t n, m;
	tap_need("rm -rf t " OUT " && mkdir t");
	refused("an empty folder", &p, YOKE_EFORMAT, "no file of text");
	p.paths = "nowhere";
	refused("a missing text", &p, YOKE_ENOENT, "nowhere");
	p.paths = "-";
	refused("standard input", &p, YOKE_EINVAL, "read once");
	yk_file_write("t/nul", "a\0b c d e f g h", 15);
	p.paths = "t/nul";
	refused("a file with a NUL", &p, YOKE_EFORMAT, "NUL");
	p.paths = "t";
	yk_file_write("t/a", "a b c d e f g h i j k l m n o p", 31);
	p.tokenizer = "bpe";
	refused("a tokenizer that there is not", &p, YOKE_EINVAL, "tokenizer=bpe");
	p.tokenizer = "word";
	p.context = 8;
	refused("too few tokens", &p, YOKE_ERANGE, "16 tokens are too few");
	p.context = 3;
	p.stop = &stop;
	refused("a signal", &p, YOKE_EPERM, "nothing is written");
	p.stop = NULL;
	p.out = "none/" OUT;
	refused("a folder that is not there", &p, YOKE_ENOENT, "none/");
	p.out = OUT;
	p.paths = "t/a," OUT;
	ok(yk_prepare(&(struct yk_prepare){ .paths = "t/a",
					    .out = OUT,
					    .tokenizer = "byte",
					    .valid = 0,
					    .context = 3 },
		      &done) == 0,
	   "prepared");
	refused("text that is out", &p, YOKE_EINVAL, "both text and out");
	p.paths = "t";
	yk_file_write("t/b", "caf\xe9 au lait", 12);
	for (int block = 1; block < 40; block += 19) {
		p.block = (uint64_t)block;
		p.workers = 1 + block % 3;
		refused("a word that is not UTF-8", &p, YOKE_EFORMAT, "t/b: the word 'caf?'");
	}
	unlink("t/b");
	yk_file_write("t/c.jsonl", "{\"x\": \"one two\"}\n\n{\"x\": 7}\n{]\n", 30);
	p.field = "x";
	p.block = 0;
	refused("a line without its string", &p, YOKE_EFORMAT,
		"t/c.jsonl: the line at byte 18: has no string 'x'");
	p.block = 5;
	p.workers = 3;
	refused("in blocks", &p, YOKE_EFORMAT, "t/c.jsonl: the line at byte 18: has no string 'x'");
	p.field = NULL;
	unlink("t/c.jsonl");
	// a full disk: existing files are unchanged
	const bool read = yk_file_read(OUT, 1 << 20, &was, &n) == 0;
	memset(text, 'x', sizeof text);
	yk_file_write("t/d", text, sizeof text);
	p.tokenizer = "byte";
	p.block = 1000;
	struct rlimit old, little = { .rlim_cur = 4096 };
	getrlimit(RLIMIT_FSIZE, &old);
	little.rlim_max = old.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &little);
	refused("a full disk", &p, YOKE_EIO, OUT "': File too large");
	setrlimit(RLIMIT_FSIZE, &old);
	ok(read && yk_file_read(OUT, 1 << 20, &is, &m) == 0 && n == m && !memcmp(was, is, n),
	   "the old file is unchanged");
	free(was);
	free(is);
}

// A file that is truncated, grows, disappears or changes while it is read; files left by a killed
// process.
static void test_changed(void)
{
	static const struct {
		const char *change, *say;
		int code;
	} row[] = {
		{ "printf 'one two' >t/b", "t/b: ", YOKE_EIO },
		{ "printf ' more' >>t/b", "t/b: ", YOKE_EIO },
		{ "rm t/b", "t/b", YOKE_ENOENT },
		{ "printf 'one two three  our' >t/b", "t/b: ", YOKE_EIO },
		{ "true", "", 0 },
	};
	const struct yk_prepare p = { .tokenizer = "byte", .out = OUT };
	const struct yk_prepare words = { .tokenizer = "word", .out = OUT };
	for (int i = 0; i < 5; i++) {
		struct yk_text_file file[] = { { .path = (char *)"t/a", .bytes = 7 },
					       { .path = (char *)"t/b", .bytes = 18 } };
		struct yk_text_block block[] = {
			{ .file = 0, .begin = 0, .end = 7, .tokens = 2, .documents = 1 },
			{ .file = 1, .begin = 0, .end = 10, .tokens = 3, .documents = 1 },
			{ .file = 1, .begin = 10, .end = 18, .tokens = 1 },
		};
		struct yk_blocks b = { i == 3 ? &words : &p, file, block, 3, 2, NULL };
		struct yk_file_writer w;
		struct yk_tokenizer *t = yk_tokenizer_new(b.options->tokenizer);
		if (i != 3)
			block[0].tokens = 7, block[1].tokens = 10, block[2].tokens = 8;
		tap_need(
			"rm -rf t && mkdir t && printf 'one two' >t/a && printf 'one two three four' >t/b");
		tap_need(row[i].change);
		if (yk_file_begin(&w, OUT) < 0)
			abort();
		block[2].tokens = i == 3 ? 2 : block[2].tokens; // as many bytes, but other words
		const int e = yk_blocks_write(&b, t, &w, 100, 0);
		ok(e == row[i].code && strstr(yoke_error(), row[i].say), "%s: %s", row[i].change,
		   yoke_error());
		yoke_error_clear();
		yk_file_abort(&w);
		yk_tokenizer_free(t);
	}
	struct yk_prepare q = { .paths = "t/b", .out = OUT, .tokenizer = "byte", .context = 2 };
	struct yk_prepared_text done;
	char own[80];
	snprintf(own, sizeof own, OUT ".%d-7.tmp", (int)getpid());
	yk_file_write(OUT ".99999999-0.tmp", "x", 1); // no process has this number
	yk_file_write(OUT ".1-x.tmp", "x", 1);
	yk_file_write(own, "x", 1);
	unlink(OUT);
	ok(yk_prepare(&q, &done) == 0 && access(OUT ".99999999-0.tmp", F_OK) < 0 &&
		   access(own, F_OK) == 0 && access(OUT ".1-x.tmp", F_OK) == 0,
	   "files of a killed process are removed %s", yoke_error());
	unlink(OUT ".1-x.tmp");
	unlink(own);
}

// ---- files that do not fit ----

static void no_data(const char *paths, struct yk_tokenizer *t, const struct yk_data_spec *s,
		    int code, const char *say)
{
	struct yk_data *d = yk_data_new(paths, t, s);
	ok(!d && yoke_error_code() == code && strstr(yoke_error(), say), "%s: %s", paths,
	   yoke_error());
	yoke_error_clear();
	yk_data_free(d);
}

static void test_misfit(void)
{
	struct yk_prepare p = {
		.paths = "t/a", .out = OUT, .tokenizer = "word", .valid = 0.25, .context = 3
	};
	struct yk_prepared_text done;
	struct yk_tokenizer *byte = yk_tokenizer_new("byte"), *ids = yk_tokenizer_ids(700, "test");
	struct yk_data_spec s = { .context = 3, .valid = 0.1 };
	yk_file_write("t/a", "a b c d e f g h i j k l m n o p", 31);
	ok(yk_prepare(&p, &done) == 0, "prepared %s", yoke_error());
	struct yk_tokenizer *word = yk_data_tokenizer(OUT, &s);
	no_data(OUT, byte, &s, YOKE_EINVAL, "another tokenizer");
	s.valid_given = true;
	no_data(OUT, word, &s, YOKE_EINVAL, "split at valid=0.25");
	s.valid_given = false;
	s.context = 4;
	no_data(OUT, word, &s, YOKE_ERANGE, "context=4 needs 5 of each");
	s.context = 3;
	no_data(OUT ",t/a", word, &s, YOKE_EFORMAT, "t/a");
	no_data(OUT ",,", word, &s, YOKE_EINVAL, "empty name");
	uint16_t raw[300];
	for (int i = 0; i < 300; i++)
		raw[i] = (uint16_t)(i + 400);
	yk_file_write("t/raw", raw, 600);
	s.format = "u16:10";
	ok(!yk_data_tokenizer("t/raw", &s) && strstr(yoke_error(), "vocab="), "%s", yoke_error());
	yoke_error_clear();
	s.vocab = 700;
	struct yk_tokenizer *own = yk_data_tokenizer("t/raw", &s);
	struct yk_data *d = own ? yk_data_new("t/raw", own, &s) : NULL;
	int32_t got[4] = { 0 };
	ok(d && same_tokenizer(own, ids) && yk_data_tokens(d) == 295 &&
		   yk_data_valid(d, 0, 1, got) == 1 && got[0] == 405 + 266 && got[3] == got[0] + 3,
	   "raw tokens: %s", yoke_error());
	yk_data_free(d);
	yk_tokenizer_free(own);
	no_data("t/raw", byte, &s, YOKE_EINVAL, "tokenizer=byte with 256");
	s.vocab = 600; // tokens up to 699: the window that contains one is the error
	own = yk_data_tokenizer("t/raw", &s);
	d = yk_data_new("t/raw", own, &s);
	ok(d && yk_data_valid(d, 0, 1, got) == YOKE_EFORMAT &&
		   strstr(yoke_error(), "beyond the vocabulary of 600"),
	   "%s", yoke_error());
	yoke_error_clear();
	yk_data_free(d);
	yk_tokenizer_free(own);
	s.format = "i16";
	no_data("t/raw", ids, &s, YOKE_EINVAL, "format=i16: tokens are u8, u16 or u32");
	s.format = "u16:601";
	no_data("t/raw", ids, &s, YOKE_EFORMAT, "byte 601");
	// several files: each is split separately, and no window crosses the end of one
	s = (struct yk_data_spec){ .context = 3, .valid = 0.1 };
	yk_file_write("t/b", "A B C D E F G H I J", 19);
	p = (struct yk_prepare){
		.paths = "t/a", .out = "a", .tokenizer = "byte", .valid = 0.25, .context = 3
	};
	const bool first = yk_prepare(&p, &done) == 0;
	p.paths = "t/b";
	p.out = "b.safetensors";
	p.valid = 0.5;
	ok(first && yk_prepare(&p, &done) == 0, "two files %s", yoke_error());
	d = yk_data_new("a,b.safetensors", byte, &s);
	yoke_dataset *set = d ? yk_data_set(d) : NULL;
	void *to[] = { got };
	bool good = d && yk_data_train_windows(d) == 7 + 3 && yk_data_valid_windows(d) == 2 + 2 &&
		    yk_data_files(d) == 2 && yk_data_tokens(d) == 50 &&
		    yk_data_val_fraction(d) == 0.25;
	good = good && yoke_dataset_read(set, 7, 0, 0, 7, to, NULL) == 0 && got[0] == 'A' &&
	       got[3] == ' ';
	good = good && yk_data_valid(d, 2, 1, got) == 1 && got[0] == 'F' && got[2] == 'G';
	ok(good, "each of several files is split: %s", yoke_error());
	yoke_dataset_free(set);
	yk_data_free(d);
	no_data("a," OUT, byte, &s, YOKE_EINVAL, "another tokenizer");
	yk_tokenizer_free(byte);
	yk_tokenizer_free(word);
	yk_tokenizer_free(ids);
}

// ---- numbers as text ----

static void test_ids(void)
{
	struct yk_tokenizer *t = yk_tokenizer_ids(1000, "test");
	struct yk_tokens list = { 0 };
	bool good = t && yk_tokenizer_encode(t, " 12\n999 0\t007", 13, &list) == 0 &&
		    list.count == 4 && yk_tokens_get(&list, 0) == 12 &&
		    yk_tokens_get(&list, 1) == 999 && yk_tokens_get(&list, 3) == 7;
	size_t n;
	good = good && !strcmp(yk_tokenizer_decode(t, 999, &n), "999") && n == 3 &&
	       !yk_tokenizer_decode(t, 1000, &n);
	ok(good, "ids are numbers");
	static const char *const bad[] = { "1000", "1 x", "1 2x", "-1", "99999999999999999999999",
					   "1,2" };
	for (size_t i = 0; i < 6; i++) {
		ok(yk_tokenizer_encode(t, bad[i], strlen(bad[i]), &list) == YOKE_EFORMAT &&
			   list.count == 4,
		   "'%s': %s", bad[i], yoke_error());
		yoke_error_clear();
	}
	yk_tokens_fini(&list);
	yk_tokenizer_free(t);
	ok(!yk_tokenizer_ids(0, "test") && !yk_tokenizer_ids((1 << 20) + 1, "test"), "%s",
	   yoke_error());
	yoke_error_clear();
}

// ---- sources ----

static void test_sources(void)
{
	static const struct {
		const char *change, *say;
	} row[] = {
		{ "true", "" },
		{ "touch -d 2001-01-01 t/a", "" },
		{ "printf x >>t/b", "t/b has 6 bytes, not 5" },
		{ "printf oTher >t/b", "t/b has other contents" },
		{ "rm t/b", "t/c is there instead of t/b" },
		{ "rm t/c", "t/c is missing" },
		{ "printf new >t/d", "t/d is new" },
	};
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct yk_tokenizer *t = yk_tokenizer_new("byte");
		const struct yk_data_spec s = { .context = 2 };
		char what[300] = "?", command[200];
		tap_need(
			"rm -rf t && mkdir t && printf first >t/a && printf other >t/b && printf third >t/c");
		struct yk_data *d = yk_data_new("t", t, &s);
		json_t *then = yk_sources_json(yk_data_sources(d));
		snprintf(command, sizeof command, "%s", row[i].change);
		struct yk_data *now = system(command) ? NULL : yk_data_new("t", t, &s);
		yk_sources_differ(then, yk_data_sources(now), what, sizeof what);
		ok(!strcmp(what, row[i].say), "%s: '%s'", row[i].change, what);
		json_decref(then);
		yk_data_free(d);
		yk_data_free(now);
		yk_tokenizer_free(t);
	}
	char what[300];
	struct yk_sources none = { 0 };
	static const char *const hostile[] = { "{}", "[1]", "[{}]",
					       "[{\"name\":7,\"bytes\":\"x\"}]", "[[]]" };
	yk_sources_add(&none, "a\xff", 3, 4);
	bool good = true;
	for (size_t i = 0; i < 5; i++) {
		json_t *o = json_loads(hostile[i], 0, NULL);
		yk_sources_differ(o, &none, what, sizeof what);
		good = good && *what && !strchr(what, '\n');
		json_decref(o);
	}
	json_t *own = yk_sources_json(&none);
	yk_sources_differ(own, &none, what, sizeof what);
	ok(good && !*what, "lists of any JSON, names of any bytes: %s", what);
	json_decref(own);
	yk_sources_fini(&none);
}

// Waits until newly written files have a later time than `file`; the file system's clock may stand
// still for 10 ms.
static void await_next_mtime(const char *file, const char *tick)
{
	struct stat of, now;
	do {
		yk_file_write(tick, "", 0);
		if (stat(file, &of) < 0 || stat(tick, &now) < 0)
			abort();
	} while (of.st_mtim.tv_sec == now.st_mtim.tv_sec &&
		 of.st_mtim.tv_nsec == now.st_mtim.tv_nsec);
}

// Verifies a token file again after a change that may leave its header as it was.
static void test_altered(void)
{
	enum { BYTES = 600000, AGAIN = 3 };
	static const struct {
		const char *change;
		bool good;
	} row[] = {
		{ "true", true },
		{ "touch -d 2001-01-01 " OUT, true },
		{ "cp " OUT " c && mv c " OUT, true },
		{ "touch t/a", true }, // and prepared again: another header before the same tokens
		{ "printf ! | dd of=" OUT " bs=1 seek=300000 conv=notrunc status=none", false },
		{ "touch -r " OUT " t/time && printf '!!!' | dd of=" OUT
		  " bs=1 seek=4000 conv=notrunc status=none && "
		  "touch -r t/time " OUT,
		  false },
	};
	const struct yk_prepare p = {
		.paths = "t/a", .out = OUT, .tokenizer = "byte", .valid = 0, .context = 9
	};
	const struct yk_data_spec s = { .context = 9 };
	char *long_text = malloc(BYTES);
	for (int i = 0; i < BYTES; i++)
		long_text[i] = (char)('a' + rnd_int(0, 25));
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct yk_prepared_text done;
		char what[300] = "?";
		tap_need("rm -rf t " OUT " && mkdir t");
		yk_file_write("t/a", long_text, BYTES);
		int e = yk_prepare(&p, &done);
		struct yk_tokenizer *t = yk_data_tokenizer(OUT, &s);
		struct yk_data *d = yk_data_new(OUT, t, &s);
		json_t *then = yk_sources_json(yk_data_sources(d));
		await_next_mtime(OUT, "t/tick");
		e |= system(row[i].change);
		if (i == AGAIN)
			e |= yk_prepare(&p, &done) || done.reused;
		struct yk_data *now = yk_data_new(OUT, t, &s);
		const int got = now ? yk_data_verify(now, then) : YOKE_EIO;
		yk_sources_differ(then, yk_data_sources(now), what, sizeof what);
		ok(e == 0 && !*what && got == (row[i].good ? 0 : YOKE_EFORMAT) &&
			   (row[i].good || strstr(yoke_error(), OUT)),
		   "%s: %d '%s' %s", row[i].change, got, what, yoke_error());
		yoke_error_clear();
		json_decref(then);
		yk_data_free(d);
		yk_data_free(now);
		yk_tokenizer_free(t);
	}
	free(long_text);
}

int main(void)
{
	tap_seed();
	setenv("YOKE_LOG", "error", 1);
	tap_folder();
	test_same();
	test_reused();
	test_wrong();
	test_changed();
	test_misfit();
	test_ids();
	test_sources();
	test_altered();
	return done();
}
