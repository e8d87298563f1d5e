// SPDX-License-Identifier: Apache-2.0
// Tests that files have the byte order of their formats on every host: files given here byte by
// byte, as a little-endian machine writes them, are read, and written files have the same bytes.
#include "config.h"

#include <sys/stat.h>

#include "base/endian.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "formats/checkpoint.h"
#include "formats/safetensors.h"
#include "tap.h"
#include "yoke-data.h"


// ---- safetensors ----

#define HEADER \
	"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":" \
	"\"I32\",\"shape\":[1],\"data_offsets\":[8,12]}," \
	"\"c\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[12,14]},\"d\":{\"dtype\":" \
	"\"U8\",\"shape\":[2],\"data_offsets\":[14,16]}}"
static const unsigned char data[16] = { 0, 0, 0xc0, 0x3f, 0,    0,    0, 0xc0,
					4, 3, 2,    1,    0x34, 0x12, 5, 6 };
static float a[2] = { 1.5f, -2 };
static int32_t b[1] = { 0x01020304 };
static uint16_t c[1] = { 0x1234 };
static uint8_t d[2] = { 5, 6 };

static const struct yk_host_tensor tensors[] = {
	{ .name = "a", .dtype = yoke_f32, .rank = 1, .dims = { 2 }, .data = a },
	{ .name = "b", .dtype = yoke_i32, .rank = 1, .dims = { 1 }, .data = b },
	{ .name = "c", .dtype = yoke_f16, .rank = 1, .dims = { 1 }, .data = c },
	{ .name = "d", .dtype = yoke_u8, .rank = 1, .dims = { 2 }, .data = d },
};

// Gives bytes of the arrays, as a training does that writes a checkpoint.
static int give(void *arg, int i, uint64_t from, size_t bytes, void *to)
{
	(void)arg;
	memcpy(to, (const char *)tensors[i].data + from, bytes);
	return 0;
}

static size_t file_of(char to[512])
{
	const size_t length = sizeof HEADER - 1, padded = (length + 7) / 8 * 8;
	memset(to, 0, 8);
	to[0] = (char)(padded & 255);
	to[1] = (char)(padded >> 8);
	memcpy(to + 8, HEADER, length);
	memset(to + 8 + length, ' ', padded - length);
	memcpy(to + 8 + padded, data, sizeof data);
	return 8 + padded + sizeof data;
}

static void test_safetensors(void)
{
	char want[512], *got = NULL;
	const size_t n = file_of(want);
	struct yk_safetensors s;
	uint64_t bytes = 0, hash = 0;
	size_t read = 0;
	float x[2] = { NAN, NAN };
	yk_file_write("x.safetensors", want, n);
	if (!ok(yk_safetensors_open(&s, "x.safetensors") == 0 && s.count == 4,
		"a safetensors file opens: %s", yoke_error()))
		return;
	ok(yk_safetensors_read(&s, &s.entries[0], x) == 0 && x[0] == 1.5f && x[1] == -2,
	   "read: got %g %g, want 1.5 -2", (double)x[0], (double)x[1]);
	for (int i = 0; i < 4; i++) {
		const void *p = yk_safetensors_data(&s, &s.entries[i]);
		ok(p && !memcmp(p, tensors[i].data, s.entries[i].bytes),
		   "mapped: the host's numbers of array %s", s.entries[i].name);
	}
	yk_safetensors_close(&s);
	for (int by = 0; by < 2; by++) {
		const int e = by ? yk_safetensors_write_by("y.safetensors", 4, tensors, give, NULL,
							   &bytes, &hash) :
				   yk_safetensors_write("y.safetensors", 4, tensors, &bytes, &hash);
		ok(e == 0 && yk_file_read("y.safetensors", 4096, &got, &read) == 0 && read == n &&
			   !memcmp(got, want, n),
		   "written %s: the same %zu bytes", by ? "in windows" : "from memory", n);
		ok(hash == yk_hash(want, n, 0), "its checksum is that of the file: %016llx",
		   (unsigned long long)hash);
		free(got);
		got = NULL;
	}
}

// A file of a program that writes its machine's byte order.
static void test_other_order(void)
{
	char file[512];
	struct yk_safetensors s;
	const size_t n = file_of(file);
	for (int i = 0; i < 4; i++) {
		const char other = file[i];
		file[i] = file[7 - i];
		file[7 - i] = other;
	}
	yk_file_write("z.safetensors", file, n);
	ok(yk_safetensors_open(&s, "z.safetensors") == YOKE_EFORMAT &&
		   strstr(yoke_error(), "big-endian") && !strchr(yoke_error(), '\n'),
	   "a file of the other byte order: %s", yoke_error());
	yoke_error_clear();
}

// Reads a file that no version so far has written; the error names what it has.
static void test_refused(const char *what, int err, const char *phrase)
{
	ok(err == YOKE_EFORMAT && strstr(yoke_error(), phrase) && !strchr(yoke_error(), '\n'),
	   "%s is refused in one line: %d, %s", what, err, yoke_error());
	yoke_error_clear();
}

static int open_set(const char *name, const char *settings)
{
	yoke_dataset *set = yoke_dataset_open(name, settings);
	const int err = set ? 0 : yoke_error_code();
	yoke_dataset_free(set);
	return err;
}

#define LATER_TOKENS \
	"\x68\0\0\0\0\0\0\0{\"__metadata__\":{\"format\":\"yoke tokens 2\"}," \
	"\"tokens\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}    " \
	"\1\2\3\4\5\6\7\10"

// Checkpoints and token files of a later version, or of another byte order.
static void test_versions(void)
{
	struct yk_checkpoint later;
	char *text = NULL;
	size_t n = 0;
	static const unsigned char tokens[1040] = {
		0x01, 0x34, 0xd8, 0x88, 0, 0, 0, 1, 0, 0, 0, 4
	};
	static const unsigned char npy[160] =
		"\x93NUMPY\4\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1), }";

	const int read = yk_file_read("k/manifest.json", 1 << 20, &text, &n);
	char *format = read == 0 ? strstr(text, "\"format\":1") : NULL;
	if (!format)
		format = read == 0 ? strstr(text, "\"format\": 1") : NULL;
	if (ok(format, "a checkpoint has a manifest with its format")) {
		*strchr(format, '1') = '2';
		yk_file_write("k/manifest.json", text, n);
		test_refused("a checkpoint of format 2", yk_checkpoint_open("k", &later),
			     "format 2");
	}
	free(text);
	yk_file_write("later.npy", npy, sizeof npy);
	yk_file_write("later.safetensors", LATER_TOKENS, sizeof LATER_TOKENS - 1);
	test_refused("a token file of a later version", open_set("later.safetensors", "context=4"),
		     "yoke tokens 2");
	test_refused("a .npy file of version 4", open_set("later.npy", NULL), "version");
	yk_file_write("big.bin", tokens, sizeof tokens);
	test_refused("a big-endian token file of llm.c",
		     open_set("big.bin", "format=u16:1024 context=4"), "big-endian");
}

static void test_checkpoint(void)
{
	struct yk_checkpoint k = { .model = json_object(),
				   .tokenizer = json_object(),
				   .config = json_object(),
				   .schedule = json_object(),
				   .step = 7 };
	char want[512];
	const size_t n = file_of(want);
	ok(yk_checkpoint_save("k", &k, 4, tensors, 0, NULL) == 0 && k.file[0].bytes == n &&
		   k.file[0].hash == yk_hash(want, n, 0),
	   "the model of a checkpoint is that file: %s", yoke_error());
	yk_checkpoint_fini(&k);
}

// ---- hashes ----

// Fingerprints in checkpoints and prepared files are the same on all hosts.
static void test_hashes(void)
{
	enum { COUNT = 1500 }; // more bytes than are reversed at once
	static uint16_t two[COUNT];
	static int32_t four[COUNT];
	static uint64_t eight[COUNT];
	static unsigned char byte[COUNT * 8];
	const void *const numbers[] = { byte, two, four, eight };
	for (int i = 0; i < COUNT; i++) {
		eight[i] = (uint64_t)(i + 1) * UINT64_C(0x9e3779b97f4a7c15);
		two[i] = (uint16_t)eight[i];
		four[i] = (int32_t)(uint32_t)eight[i];
	}
	for (int k = 0; k < 4; k++) {
		const size_t width = (size_t)1 << k;
		for (size_t i = 0; i < COUNT * width; i++)
			byte[i] = (unsigned char)(eight[i / width] >> i % width * 8);
		const uint64_t got = yk_hash_numbers(numbers[k], width, COUNT, 7),
			       want = yk_hash(byte, COUNT * width, 7);
		ok(got == want,
		   "hash of numbers of %zu bytes: got %016llx, want that of their little-endian bytes, %016llx",
		   width, (unsigned long long)got, (unsigned long long)want);
	}
}

// ---- samples ----

static void test_set(const char *name, const char *settings, const unsigned char *bytes, size_t n,
		     const void *want, size_t size)
{
	unsigned char got[64];
	void *to[] = { got };
	memset(got, 0xff, sizeof got);
	yk_file_write(name, bytes, n);
	yoke_dataset *set = yoke_dataset_open(name, settings);
	ok(set && yoke_dataset_read(set, 0, 0, 0, 0, to, NULL) == 0 && !memcmp(got, want, size),
	   "%s %s: the first sample: %s", name, settings ? settings : "", yoke_error());
	yoke_error_clear();
	yoke_dataset_free(set);
}

static void test_npy(const char *descr, const unsigned char *element, size_t width,
		     const void *want, size_t size)
{
	unsigned char file[160] = "\x93NUMPY\1\0\x76\0";
	char dict[119];
	memset(dict, ' ', sizeof dict);
	const int n = snprintf(dict, sizeof dict,
			       "{'descr': '%s', 'fortran_order': False, 'shape': (1, 1), }", descr);
	dict[n] = ' ';
	memcpy(file + 10, dict, 118);
	file[127] = '\n';
	memcpy(file + 128, element, width);
	test_set("x.npy", NULL, file, 128 + width, want, size);
}

static void test_samples(void)
{
	static const unsigned char f32[] = { 0, 0, 0xc0, 0x3f }, big[] = { 0x3f, 0xc0, 0, 0 },
				   i16[] = { 0xfe, 0xff };
	test_npy("<f4", f32, 4, &(float){ 1.5f }, 4);
	test_npy(">f4", big, 4, &(float){ 1.5f }, 4);
	test_npy("<i2", i16, 2, &(int32_t){ -2 }, 4);
	test_set("x.u16", "format=u16 dims=2", (const unsigned char[]){ 1, 0, 2, 1 }, 4,
		 (int32_t[]){ 1, 0x102 }, 8);
	test_set("x.f64", "format=f64 dims=1",
		 (const unsigned char[]){ 0, 0, 0, 0, 0, 0, 0xf8, 0x3f }, 8, &(double){ 1.5 }, 8);
	test_set("x.u32", "format=u32 context=1", (const unsigned char[]){ 4, 3, 2, 1, 5, 0, 0, 0 },
		 8, (int32_t[]){ 0x01020304, 5 }, 8);
}

// ---- helpers ----

static void test_swap(void)
{
	uint64_t x = 0x0102030405060708, y = x, z = x;
	yk_swap_bytes(&x, 8, 1);
	yk_swap_bytes(&y, 1, 8);
	yk_swap_bytes(&z, 2, 4);
	ok(x == 0x0807060504030201 && y == 0x0102030405060708 && z == 0x0201040306050807,
	   "bytes of elements of 8, 1 and 2 bytes");
}

int main(void)
{
	tap_folder();
	test_swap();
	test_safetensors();
	test_other_order();
	test_checkpoint();
	test_versions();
	test_hashes();
	test_samples();
	return done();
}
