// SPDX-License-Identifier: Apache-2.0
// Training text: files and folders, the split, windows, their order, resuming; and
// tokenizers.
#include "config.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/param.h"
#include "tap.h"
#include "train/data.h"

static struct yk_tokenizer *byte;

static struct yk_data *open_data(const char *paths, int64_t context, double valid,
				 uint64_t seed)
{
	struct yk_data_spec spec = { context, valid, seed };

	yoke_error_clear();
	return yk_data_new(paths, byte, &spec);
}

static void fails(const char *paths, int64_t context, double valid, int code,
		  const char *part)
{
	struct yk_data *d = open_data(paths, context, valid, 1);
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
	   "300 bytes give 300 ids of one byte");
	yk_tokens_copy(&t, 0, 300, ids);
	for (int i = 0; i < 300; i++) {
		const char *s = yk_tokenizer_decode(byte, ids[i], &n);
		same = same && s && n == 1 && *s == all[i] && ids[i] == i % 256;
	}
	ok(same, "each comes back");
	ok(!yk_tokenizer_decode(byte, 256, &n) && !yk_tokenizer_decode(byte, -1, &n),
	   "ids outside stand for nothing");
	yk_tokens_fini(&t);
	json_t *o = yk_tokenizer_save(byte);
	struct yk_tokenizer *again = yk_tokenizer_load(o, "x");
	ok(again && !strcmp(yk_tokenizer_name(again), "byte"), "saved and loaded");
	yk_tokenizer_free(again);
	json_object_set_new(o, "size", json_integer(255));
	again = yk_tokenizer_load(o, "x");
	ok(!again && yoke_error_code() == YOKE_EFORMAT, "another size: %s", yoke_error());
	yoke_error_clear();
	json_decref(o);
	again = yk_tokenizer_new("bite");
	ok(!again && yoke_error_code() == YOKE_ENOENT && strstr(yoke_error(), "'byte'"),
	   "unknown: %s", yoke_error());
	yoke_error_clear();
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
	ok(symlink("..", "t/b/up") == 0, "a link upwards");
	d = open_data("t", 21, 1, 1);
	ok(d && yk_data_files(d) == 4 && yk_data_tokens(d) == 22 &&
		   yk_data_valid_windows(d) == 1 && yk_data_train_windows(d) == 0,
	   "4 files, 22 tokens %s", yoke_error());
	bool same = d && yk_data_valid(d, 0, 2, got) == 1;
	for (int i = 0; same && i < 22; i++)
		same = got[i] == text[i];
	ok(same, "in order, without hidden, empty and binary files and links");
	yk_data_free(d);
	d = open_data("t/z.txt,t/a.txt,t/b/d", 2, 0, 1);
	ok(d && yk_data_files(d) == 3 && yk_data_tokens(d) == 17 &&
		   yk_data_train_windows(d) == 8,
	   "a list of files and folders %s", yoke_error());
	yk_data_free(d);
	yk_file_write("t/x,y", "abc", 3);
	d = open_data("t/x,y", 2, 0, 1);
	ok(d && yk_data_files(d) == 1, "one name with a comma %s", yoke_error());
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

// For n tokens: parts do not overlap, windows share one token, each part has at least
// one.
static void test_split(void)
{
	static const int64_t sizes[] = { 18, 19, 20, 97, 100, 1009 };
	static const double shares[] = { 0, 0.001, 0.1, 0.5, 0.9, 1 };
	int bad = 0;

	for (size_t s = 0; s < 6; s++)
		for (size_t v = 0; v < 6; v++) {
			int64_t n = sizes[s], c = 8;
			make("t/n", (size_t)n);
			struct yk_data *d = open_data("t/n", c, shares[v], 1);
			if (!d) {
				diag("%lld tokens, valid %g: %s", (long long)n, shares[v],
				     yoke_error());
				bad++;
				continue;
			}
			int64_t train = yk_data_train_windows(d),
				valid = yk_data_valid_windows(d);
			int32_t row[9];
			struct yk_data_position at = { 0, 0 };
			int64_t last = -1; // largest token number in training
			for (int64_t i = 0; i < train; i++) {
				yk_data_train(d, &at, 1, row);
				if (n < 251) // a token's value tells its place
					last = row[c] - 1 > last ? row[c] - 1 : last;
			}
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
	ok(bad == 0, "36 splits");
}

// Each epoch has each window once; orders differ by epoch and by seed; a position
// resumes.
static void test_order(void)
{
	static const int64_t counts[] = { 1, 2, 3, 4, 5, 16, 17, 64, 65, 127, 251, 1009 };
	int bad = 0;

	for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
		int64_t n = counts[k];
		uint8_t *text = malloc((size_t)n * 2 + 1);
		for (int64_t i = 0; i < n;
		     i++) { // a window holds its number in two digits of base 251
			text[2 * i] = (uint8_t)(1 + i / 251);
			text[2 * i + 1] = (uint8_t)(1 + i % 251);
		}
		text[2 * n] = '.';
		yk_file_write("t/order", text, (size_t)n * 2 + 1);
		free(text);
		struct yk_data *d = open_data("t/order", 2, 0, 5),
			       *e = open_data("t/order", 2, 0, 6);
		if (!d || !e || yk_data_train_windows(d) != n) {
			diag("%lld windows: %s", (long long)n, yoke_error());
			bad++;
			goto next;
		}
		struct yk_data_position at = { 0, 0 }, other = { 0, 0 };
		int32_t order[4][1009], row[9];
		for (int epoch = 0; epoch < 4; epoch++) {
			uint8_t seen[1009] = { 0 };
			for (int64_t i = 0; i < n; i++) {
				yk_data_train(d, &at, 1, row);
				order[epoch][i] = (row[0] - 1) * 251 + row[1] - 1;
				if (order[epoch][i] >= n || seen[order[epoch][i]]++)
					bad++;
			}
		}
		int same_epoch = 0, same_seed = 0, rising = 0;
		for (int64_t i = 0; i < n; i++) {
			yk_data_train(e, &other, 1, row);
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
		// batches of 3 from any place on are the same windows
		struct yk_data_position from = { 1, n / 2 };
		int32_t rows[9];
		yk_data_train(d, &from, 3, rows);
		for (int i = 0; i < 3; i++) {
			int64_t place = n + n / 2 + i;
			bad += rows[3 * i + 1] - 1 != order[place / n][place % n] % 251;
		}
		bad += from.epoch != 1 + (n / 2 + 2) / n ||
		       from.index != (n / 2 + 2) % n + 1;
	next:
		yk_data_free(d);
		yk_data_free(e);
	}
	ok(bad == 0,
	   "orders of 1 to 1009 windows are permutations, by seed and epoch, and resume");
}

int main(void)
{
	char folder[] = "data.XXXXXX";

	tap_seed();
	byte = yk_tokenizer_new("byte");
	if (!mkdtemp(folder) || chdir(folder) < 0)
		return skip_all("no folder to write to");
	test_tokenizer();
	test_folder();
	test_errors();
	test_split();
	test_order();
	yk_tokenizer_free(byte);
	if (chdir("..") == 0) {
		char command[64];
		snprintf(command, sizeof command, "rm -r %s", folder);
		ok(system(command) == 0, "cleaned up");
	}
	return done();
}
