// SPDX-License-Identifier: Apache-2.0
// Safetensors: what is written is read again, and a few dozen crafted bad files are
// refused.
#include "config.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "tap.h"
#include "train/safetensors.h"

static char folder[] = "safetensors.XXXXXX", path[64];

// A file with this header and `data` bytes behind it; length < 0: the header's own.
static void craft(const char *header, size_t n, int64_t length, size_t data)
{
	struct yk_file_writer w;
	uint64_t said = length < 0 ? n : (uint64_t)length;
	char zero[256] = { 0 };

	if (yk_file_begin(&w, path) < 0 || yk_file_add(&w, &said, 8) < 0 ||
	    yk_file_add(&w, header, n) < 0 || yk_file_add(&w, zero, data) < 0 ||
	    yk_file_commit(&w) < 0)
		diag("cannot craft: %s", yoke_error());
}

// Refused with this code, in one line that names the file.
static void refused(const char *what, int code)
{
	struct yk_safetensors s = { .fd = -7 };

	yoke_error_clear();
	int e = yk_safetensors_open(&s, path);
	bool good = e == code && yoke_error_code() == code &&
		    strstr(yoke_error(), path) && !strchr(yoke_error(), '\n') &&
		    s.fd == -7;
	if (!good)
		diag("got %d '%s'", e, yoke_error());
	ok(good, "refused: %s (%s)", what, yoke_error());
	yoke_error_clear();
	if (e == 0)
		yk_safetensors_close(&s);
}

static void accepted(const char *what, const char *header, size_t data, int count)
{
	struct yk_safetensors s;

	craft(header, strlen(header), -1, data);
	int e = yk_safetensors_open(&s, path);
	ok(e == 0 && s.count == count, "accepted: %s %s", what, yoke_error());
	yoke_error_clear();
	if (e == 0)
		yk_safetensors_close(&s);
}

static const struct {
	const char *what, *header;
	size_t data;
} bad[] = {
	{ "empty header", "", 0 },
	{ "not JSON", "{hello}", 0 },
	{ "an array", "[]", 0 },
	{ "a number", "12", 0 },
	{ "blanks first", "  {}", 0 },
	{ "something behind the object", "{} {}", 0 },
	{ "data without a header", "{}", 4 },
	{ "an entry that is no object", "{\"a\":1}", 0 },
	{ "an entry that is null", "{\"a\":null}", 0 },
	{ "an empty entry", "{\"a\":{}}", 0 },
	{ "no dtype", "{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4 },
	{ "no shape", "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4 },
	{ "no offsets", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4 },
	{ "one key too many",
	  "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":0}}", 4 },
	{ "a dtype that is a number",
	  "{\"a\":{\"dtype\":32,\"shape\":[1],\"data_offsets\":[0,4]}}", 4 },
	{ "an unknown dtype",
	  "{\"a\":{\"dtype\":\"F31\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4 },
	{ "a dtype in small letters",
	  "{\"a\":{\"dtype\":\"f32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4 },
	{ "a shape that is a number",
	  "{\"a\":{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]}}", 4 },
	{ "a dim below 0",
	  "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4 },
	{ "two dims below 0",
	  "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1,-1],\"data_offsets\":[0,4]}}", 4 },
	{ "a dim with a fraction",
	  "{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4 },
	{ "a dim as text",
	  "{\"a\":{\"dtype\":\"F32\",\"shape\":[\"1\"],\"data_offsets\":[0,4]}}", 4 },
	{ "a dim of more than 64 bits",
	  "{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":["
	  "0,4]}}",
	  4 },
	{ "nine dims",
	  "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]"
	  "}}",
	  4 },
	{ "a product over 64 bits that wraps to 0",
	  "{\"a\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":["
	  "0,0]}}",
	  0 },
	{ "a product over 64 bits that wraps to 4",
	  "{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387905],\"data_offsets\":[0,"
	  "4]}}",
	  4 },
	{ "a product over 63 bits",
	  "{\"a\":{\"dtype\":\"F64\",\"shape\":[1152921504606846976],\"data_offsets\":[0,"
	  "8]}}",
	  8 },
	{ "a large dim beside a 0",
	  "{\"a\":{\"dtype\":\"F64\",\"shape\":[9223372036854775807,8,0],\"data_"
	  "offsets\":[0,0]}}",
	  0 },
	{ "one offset", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}",
	  4 },
	{ "three offsets",
	  "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}}", 4 },
	{ "an offset below 0",
	  "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 4 },
	{ "an end below 0",
	  "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,-4]}}", 4 },
	{ "an end outside",
	  "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4 },
	{ "a begin outside",
	  "{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[8,8]}}", 4 },
	{ "end before begin",
	  "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4 },
	{ "size too small for the shape",
	  "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4 },
	{ "size too large for the shape",
	  "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8 },
	{ "a gap at the front",
	  "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8 },
	{ "a gap between",
	  "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
	  "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}",
	  12 },
	{ "a gap at the end",
	  "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 8 },
	{ "the same bytes twice",
	  "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
	  "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
	  4 },
	{ "an overlap",
	  "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
	  "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
	  12 },
	{ "one inside another",
	  "{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]},"
	  "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
	  12 },
	{ "an offset that is not aligned",
	  "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
	  "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]}}",
	  5 },
	{ "one name twice",
	  "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
	  "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
	  8 },
	{ "one key twice",
	  "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,"
	  "4]}}",
	  4 },
	{ "metadata of numbers", "{\"__metadata__\":{\"x\":1}}", 0 },
	{ "metadata that is text", "{\"__metadata__\":\"x\"}", 0 },
	{ "a name that is not UTF-8",
	  "{\"\xff\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4 },
	{ "a name with a NUL",
	  "{\"a\\u0000b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4 },
};

static void test_bad(void)
{
	static const char good[] =
		"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
	char deep[4096];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		craft(bad[i].header, strlen(bad[i].header), -1, bad[i].data);
		refused(bad[i].what, YOKE_EFORMAT);
	}
	memset(deep, '[', sizeof deep);
	memcpy(deep, "{\"a\":", 5);
	craft(deep, sizeof deep, -1, 0);
	refused("nested 4091 deep", YOKE_EFORMAT);
	craft(good, sizeof good, -1, 4);
	refused("a NUL behind the object", YOKE_EFORMAT);
	craft(good, sizeof good - 1, 1 << 20, 4);
	refused("a header longer than the file", YOKE_EFORMAT);
	craft(good, sizeof good - 1, INT64_MAX, 4);
	refused("a header of 2^63 - 1 bytes", YOKE_EFORMAT);
	craft(good, sizeof good - 1, (int64_t)sizeof good - 9, 4);
	refused("a header that is cut", YOKE_EFORMAT);
	for (size_t n = 0; n < 8; n += 7) {
		yk_file_write(path, "\0\0\0\0\0\0\0\0", n);
		refused(n ? "7 bytes" : "no byte", YOKE_EFORMAT);
	}
	unlink(path);
	refused("no file", YOKE_ENOENT);
	mkdir(path, 0700);
	refused("a folder", YOKE_EFORMAT);
	rmdir(path);
	mkfifo(path, 0600);
	refused("a pipe", YOKE_EFORMAT);
	unlink(path);
}

static void test_good(void)
{
	accepted("no tensors", "{}", 0, 0);
	accepted("metadata", "{\"__metadata__\":{\"format\":\"pt\"}}", 0, 0);
	accepted("blanks behind",
		 "{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}   ", 4,
		 1);
	accepted("empty tensors between",
		 "{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
		 "\"a\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[4,4]},"
		 "\"c\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},"
		 "\"d\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[4,5]}}",
		 5, 4);
}

static void test_bool(void)
{
	static const char header[] =
		"{\"a\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[0,3]}}";
	struct yk_safetensors s;
	uint64_t n = sizeof header - 1;
	char file[256];
	uint8_t got[3];

	for (int i = 0; i < 2; i++) {
		memcpy(file, &n, 8);
		memcpy(file + 8, header, n);
		memcpy(file + 8 + n, i ? "\1\0\1" : "\1\2\1", 3);
		yk_file_write(path, file, 8 + n + 3);
		if (yk_safetensors_open(&s, path) < 0) {
			ok(false, "opens: %s", yoke_error());
			return;
		}
		int e = yk_safetensors_read(&s, &s.entries[0], got);
		ok(e == (i ? 0 : YOKE_EFORMAT), "a bool of %d: %s", i ? 1 : 2,
		   yoke_error());
		yoke_error_clear();
		yk_safetensors_close(&s);
	}
}

// Every dtype, ranks 0 to 8, dims with 0 and 1, in an order that needs sorting by width.
static void test_round(void)
{
	static const int dtypes[] = { yoke_u8, yoke_f32, yoke_bool, yoke_f16, yoke_i64,
				      yoke_i8, yoke_f64, yoke_i32,  yoke_bf16 };
	struct yk_host_tensor t[27];
	struct yk_safetensors s;
	char names[27][24];
	uint64_t bytes, hash, n;
	char *file;
	size_t size;
	bool same = true;

	for (int i = 0; i < 27; i++) {
		snprintf(names[i], sizeof names[i], "t\"%d.\xc3\xa4", i);
		t[i] = (struct yk_host_tensor){ .name = names[i],
						.dtype = dtypes[i % 9],
						.rank = i / 3 };
		for (int k = 0; k < t[i].rank; k++)
			t[i].dims[k] = i == 25 ? k != 2 : rnd_int(1, 3);
		yk_host_tensor_bytes(&t[i], &n);
		t[i].data = malloc(n + 1);
		for (uint64_t k = 0; k < n; k++)
			((uint8_t *)t[i].data)[k] =
				(uint8_t)(rnd() & (t[i].dtype == yoke_bool ? 1 : 255));
	}
	ok(yk_safetensors_write(path, 27, t, &bytes, &hash) == 0,
	   "27 tensors are written %s", yoke_error());
	if (yk_file_read(path, UINT64_MAX, &file, &size) < 0 ||
	    yk_safetensors_open(&s, path) < 0) {
		ok(false, "opens: %s", yoke_error());
		return;
	}
	memcpy(&n, file, 8);
	ok(size == bytes && yk_hash(file, size, 0) == hash,
	   "size and checksum are the file's");
	ok(n % 8 == 0 && s.count == 27, "data begins at a multiple of 8; 27 entries");
	for (int i = 0; i < 27; i++) {
		const struct yk_safetensors_entry *x = yk_safetensors_find(&s, names[i]);
		char got[8192];
		yk_host_tensor_bytes(&t[i], &n);
		memset(got, 0xff, sizeof got);
		if (!x || x->bytes != n || n > sizeof got || x->dtype != t[i].dtype ||
		    x->rank != t[i].rank ||
		    memcmp(x->dims, t[i].dims, 8 * (size_t)x->rank) ||
		    yk_safetensors_read(&s, x, got) < 0 || memcmp(got, t[i].data, n)) {
			diag("tensor %d differs: %s", i, yoke_error());
			same = false;
		}
	}
	ok(same, "names, dtypes, shapes and elements come back");
	ok(!yk_safetensors_find(&s, "t"), "no tensor of another name");
	if (truncate(path, (off_t)size - 1) == 0) {
		uint8_t last[8192];
		int e = yk_safetensors_read(&s, &s.entries[26], last);
		ok(e == YOKE_EIO, "cut while open: %s", yoke_error());
		yoke_error_clear();
	}
	yk_safetensors_close(&s);
	// every cut and every flipped bit of the header gives an error or another sound
	// file
	for (size_t i = 0; i < size; i += 7) {
		yk_file_write(path, file, i);
		if (yk_safetensors_open(&s, path) == 0) {
			ok(false, "cut at %zu is accepted", i);
			yk_safetensors_close(&s);
		}
		yoke_error_clear();
	}
	memcpy(&n, file, 8);
	for (int i = 0; i < 2000; i++) {
		size_t at = (size_t)rnd_int(0, (int64_t)n + 7);
		char old = file[at];
		file[at] ^= (char)(1 << rnd_int(0, 7));
		yk_file_write(path, file, size);
		if (yk_safetensors_open(&s, path) == 0)
			yk_safetensors_close(&s);
		yoke_error_clear();
		file[at] = old;
	}
	ok(true, "2000 flipped bits of the header");
	static const char *const names_not[] = { NULL, "", "\xff", "__metadata__" };
	for (int i = 0; i < 4; i++) {
		t[1].name = i ? names_not[i] : t[0].name;
		int e = yk_safetensors_write(path, 2, t, &bytes, &hash);
		ok(e == YOKE_EINVAL, "does not write: %s", yoke_error());
		yoke_error_clear();
	}
	for (int i = 0; i < 27; i++)
		free(t[i].data);
	free(file);
}

int main(void)
{
	tap_seed();
	if (!mkdtemp(folder))
		return skip_all("no folder to write to");
	snprintf(path, sizeof path, "%s/a.safetensors", folder);
	test_bad();
	test_good();
	test_bool();
	test_round();
	unlink(path);
	rmdir(folder);
	return done();
}
