// SPDX-License-Identifier: Apache-2.0
// Tests hostile files: crafted safetensors and configurations with one flaw each. Every one is
// refused with one line, no file stays open, and no memory is allocated on a file's claim: the
// address space is limited while they are read. Valid but unusual files load.
// With an argument FOLDER the program writes the files there, as seeds for tests/fuzz.
#include "config.h"

#include "hostile.h"

#include <inttypes.h>
#include <sys/stat.h>
#include <time.h>

#include "formats/safetensors.h"
#include "fuzz/targets.h"
#include "config/conf.h"

static const char folder[] = "hostile";
static char path[64];

// ---- safetensors ----

static void check_file(const char *what, int count)
{
	struct yk_safetensors s = { .fd = -7 };
	int before = open_files(), e = yk_safetensors_open(&s, path);
	bool good;

	if (count < 0) {
		good = is_error(e, YOKE_EFORMAT, path) && s.fd == -7;
		ok(good && open_files() == before, "refused: %s (%s)", what, yoke_error());
		yoke_error_clear();
		return;
	}
	good = e == 0 && s.count == count;
	for (int i = 0; good && i < s.count; i++) {
		char *to = malloc(s.entries[i].bytes + 1);
		good = yk_safetensors_find(&s, s.entries[i].name) == &s.entries[i] &&
		       yk_safetensors_read(&s, &s.entries[i], to) == 0;
		free(to);
	}
	if (e == 0)
		yk_safetensors_close(&s);
	ok(good && open_files() == before, "read: %s %s", what, yoke_error());
	yoke_error_clear();
}

static void check_crafted(const char *what, const char *header, size_t n,
			  const uint64_t *said, size_t data, int count)
{
	size_t bytes;
	char *file = craft(header, n, said, data, &bytes);

	yk_file_write(path, file, bytes);
	check_file(what, count);
	yk_fuzz_safetensors((uint8_t *)file, bytes);
	free(file);
}

static const char one[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";

static void test_lengths(void)
{
	static const struct {
		const char *what;
		uint64_t said;
	} lengths[] = {
		{ "a header of 0 bytes", 0 },
		{ "a header of 1 byte", 1 },
		{ "a header that is cut", sizeof one - 2 },
		{ "a header that goes on in the data", sizeof one },
		{ "a header longer than the file by 1", sizeof one + 4 },
		{ "a header of 2^20 bytes", 1 << 20 },
		{ "a header of 2^32 - 1 bytes", UINT32_MAX },
		{ "a header of 2^63 - 1 bytes", INT64_MAX },
		{ "a header of 2^64 - 8 bytes", UINT64_MAX - 7 },
		{ "a header of 2^64 - 1 bytes", UINT64_MAX },
	};
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
		check_crafted(lengths[i].what, one, sizeof one - 1, &lengths[i].said, 4, -1);
	for (size_t n = 0; n < 9; n++) {
		yk_file_write(path, "\0\0\0\0\0\0\0\0", n < 8 ? n : 8);
		check_file(n < 8 ? "fewer than 8 bytes" : "8 bytes", -1);
	}
	// Sparse files, which use no disk space.
	static const struct {
		const char *what;
		uint64_t said;
		off_t bytes;
	} sparse[] = {
		{ "a header of 100 MB and 1 byte in a terabyte", 100000001, (off_t)1 << 40 },
		{ "a header of 90 MB of zeros in a gigabyte", 90000000, (off_t)1 << 30 },
	};
	for (int i = 0; i < 2; i++) {
		yk_file_write(path, &sparse[i].said, 8);
		if (truncate(path, sparse[i].bytes) == 0)
			check_file(sparse[i].what, -1);
		else
			skip(sparse[i].what, "files cannot be that large here");
	}
}

static void test_deep(void)
{
	enum { DEEP = 1 << 20 };
	static const char *const opens[] = { "[", "{\"a\":", "[{\"a\":" };
	char *text = malloc(8 * DEEP), *at;

	for (int i = 0; i < 3; i++) {
		at = text + sprintf(text, "{\"a\":");
		for (int k = 0; k < DEEP; k++)
			at = stpcpy(at, opens[i]);
		check_crafted("nested a million deep", text, (size_t)(at - text), NULL, 0, -1);
	}
	at = text + sprintf(text, "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,0],\"shape\":[");
	for (int k = 0; k < DEEP; k++)
		at = stpcpy(at, "0,");
	at = stpcpy(at, "0]}}");
	check_crafted("a million dims", text, (size_t)(at - text), NULL, 0, -1);
	at = text + sprintf(text, "{\"");
	for (int k = 0; k < DEEP; k++)
		at = stpcpy(at, "\\u0041");
	at = stpcpy(at, "\":3}");
	check_crafted("a name of a million letters", text, (size_t)(at - text), NULL, 0, -1);
	free(text);
}

static void test_not_files(void)
{
	static const char *const what[] = { "a folder", "a pipe", "a link to a device" };

	for (int i = 0; i < 3; i++) {
		unlink(path);
		ok(!(i == 0 ? mkdir(path, 0700) :
		     i == 1 ? mkfifo(path, 0600) :
			      symlink("/dev/zero", path)), "cannot make the file: %s", what[i]);
		check_file(what[i], -1);
		if (i == 0)
			rmdir(path);
	}
	unlink(path);
	int e = yk_safetensors_open(&(struct yk_safetensors){ 0 }, path);
	ok(is_error(e, YOKE_ENOENT, path), "a missing file is refused (%s)", yoke_error());
	yoke_error_clear();
}

// Every truncation of a file is refused; randomly altered bytes give an error or another valid
// file: the target aborts on anything else.
static void test_altered(void)
{
	static const char header[] =
		"{\"__metadata__\":{\"a\":\"b\"},"
		"\"w\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[0,12]},"
		"\"\\u00e4\":{\"dtype\":\"BOOL\",\"shape\":[4],\"data_offsets\":[12,16]}}";
	static const char odd[] = "0123456789[]{}:,\"\\-.eEu \n\0\xff\x80";
	size_t n;
	char *file = craft(header, sizeof header - 1, NULL, 16, &n);
	int refused = 0;

	for (size_t i = 0; i < n; i++) {
		struct yk_safetensors s;
		yk_file_write(path, file, i);
		int e = yk_safetensors_open(&s, path);
		refused += e == YOKE_EFORMAT && strstr(yoke_error(), path);
		if (e == 0)
			yk_safetensors_close(&s);
		yoke_error_clear();
		yk_fuzz_safetensors((uint8_t *)file, i);
	}
	ok(refused == (int)n, "truncated at each byte: %d of %zu are refused", refused, n);
	for (int i = 0; i < 20000; i++) {
		char *copy = malloc(n);
		memcpy(copy, file, n);
		for (int64_t k = rnd_int(1, 3); k > 0; k--)
			copy[rnd_int(0, (int64_t)n - 17)] =
				odd[rnd_int(0, (int64_t)sizeof odd - 2)];
		yk_fuzz_safetensors((uint8_t *)copy, n);
		free(copy);
	}
	ok(true, "20000 altered headers");
	free(file);
}

// A million tensors: the time is printed; an implementation that compares each name with all others
// exceeds the test's time limit.
static void test_many(bool shuffled)
{
	enum { MANY = 1000000 };
	char name[64], *text = malloc((size_t)MANY * 100), *at = text;
	struct timespec began, ended;
	struct yk_safetensors s;
	int found = 0;

	for (int64_t i = 0; i < MANY; i++) {
		// 7 is prime to 10^6, so this is each offset once
		int64_t begin = 4 * (shuffled ? i * 7 % MANY : i);
		at += sprintf(at, "%c\"model.layers.%" PRId64 ".weight\":{\"dtype\":\"F32\","
			      "\"shape\":[1],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}",
			      i ? ',' : '{', i, begin, begin + 4);
	}
	*at++ = '}';
	uint64_t length = (uint64_t)(at - text);
	struct yk_file_writer w;
	bool written = yk_file_begin(&w, path) == 0 && yk_file_add(&w, &length, 8) == 0 &&
		       yk_file_add(&w, text, length) == 0 && yk_file_commit(&w) == 0;
	free(text);
	if (!written || truncate(path, (off_t)(8 + length + 4 * MANY)) < 0) {
		skip("a million tensors", yoke_error());
		yoke_error_clear();
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &began);
	int e = yk_safetensors_open(&s, path);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	ok(e == 0 && s.count == MANY,
	   "a million tensors%s are read: %" PRIu64 " bytes of header %s",
	   shuffled ? " in another order" : "", length, yoke_error());
	if (e < 0)
		return;
	diag("opened in %.2f s", (double)(ended.tv_sec - began.tv_sec) +
	     1e-9 * (double)(ended.tv_nsec - began.tv_nsec));
	for (int64_t i = 0; i < MANY; i++) {
		snprintf(name, sizeof name, "model.layers.%" PRId64 ".weight", i);
		const struct yk_safetensors_entry *x = yk_safetensors_find(&s, name);
		found += x && x->offset == 8 + length +
			 4 * (uint64_t)(shuffled ? i * 7 % MANY : i);
	}
	ok(found == MANY, "each is found by its name: %d", found);
	yk_safetensors_close(&s);
}

static void test_safetensors(void)
{
	for (size_t i = 0; i < HOSTILE_HEADERS; i++) {
		const struct hostile_header *h = &hostile_headers[i];
		check_crafted(h->what, h->header, strlen(h->header), NULL, h->data, h->count);
	}
	check_crafted("a NUL behind the object", one, sizeof one, NULL, 4, -1);
	test_lengths();
	test_deep();
	test_not_files();
	test_altered();
}

// ---- configurations ----

// Lines of a config.env.
static const char *const hostile_lines[] = {
	"layers",
	"=3",
	"layers 3",
	"nonesuch=1",
	"layers=",
	"layers=x",
	"layers=-1",
	"layers=1.5",
	"layers=1e999",
	"layers=99999999999999999999",
	"lr=nan",
	"lr=inf",
	"lr=0x1p-3 x",
	"schedule=zigzag",
	"out='open",
	"out=\"open",
	"out=\"\\q\"",
	"out=\"ends in \\",
	"out=${",
	"out=${}",
	"out=${NONESUCH_IN_ANY_ENVIRONMENT}",
	"out=\xff",
	"out=a b",
	"\xef\xbb\xbflayers=3",
};
#define HOSTILE_LINES (sizeof hostile_lines / sizeof *hostile_lines)

static void test_configs(void)
{
	for (size_t i = 0; i < HOSTILE_LINES; i++) {
		struct yk_config c;
		char text[256], at[160];
		snprintf(text, sizeof text, "# one flaw\n%s\nsteps=3\n", hostile_lines[i]);
		snprintf(at, sizeof at, "%s:2: ", path);
		yk_file_write(path, text, strlen(text));
		int e = yk_config_init(&c, YK_T);
		if (e == 0)
			e = yk_config_file(&c, path);
		ok(is_error(e, e == YOKE_ENOENT ? e : YOKE_EINVAL, at), "refused: %s",
		   yoke_error());
		yoke_error_clear();
		yk_config_fini(&c);
		yk_fuzz_config((uint8_t *)text, strlen(text));
	}
}

// ---- seeds ----

static int write_seeds(const char *to)
{
	char text[256];
	size_t n;

	for (size_t i = 0; i < HOSTILE_HEADERS; i++) {
		const struct hostile_header *h = &hostile_headers[i];
		char *file = craft(h->header, strlen(h->header), NULL, h->data, &n);
		seed(to, "safetensors", (int)i, file, n);
		// for the target's second entry: two bytes for the size of the data, then the
		// header
		file[6] = (char)h->data;
		file[7] = 0;
		seed(to, "safetensors", 500 + (int)i, file + 6, n - 6 - h->data);
		free(file);
	}
	for (size_t i = 0; i < HOSTILE_LINES; i++)
		seed(to, "config", (int)i, hostile_lines[i], strlen(hostile_lines[i]));
	seed(to, "config", 500, text, (size_t)snprintf(text, sizeof text,
	     "# all\nLAYERS=2\nlr=\"1e-3\"\nout='a b'\nprompt=\"\\n\\t\\\\\\$\"\n"
	     "data=${HOME}/x,\"${out}\"\n"));
	if (yoke_error_code())
		fprintf(stderr, "%s\n", yoke_error());
	return yoke_error_code() != 0;
}

int main(int argc, char **argv)
{
	tap_seed();
	if (argc > 1)
		return write_seeds(argv[1]);
	tap_folder();
	mkdir(folder, 0777);
	snprintf(path, sizeof path, "%s/file", folder);
	limit(192); // a header of 90 MB is read before its zeros are found
	test_safetensors();
	limit(0);
	unlink(path);
	test_many(false);
	test_many(true);
	test_configs();
	return done();
}
