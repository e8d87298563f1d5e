// SPDX-License-Identifier: Apache-2.0
// Tests that safetensors files are read back as written. Files that must be refused are in
// tests/hostile.c.
#include "config.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/endian.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "tap.h"
#include "formats/safetensors.h"

static const char folder[] = "safetensors";
static char path[64];

static void test_bool(void)
{
	static const char header[] =
		"{\"a\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[0,3]}}";
	struct yk_safetensors s;
	uint64_t n = sizeof header - 1;
	char file[256];
	uint8_t got[3];

	for (int i = 0; i < 2; i++) {
		memcpy(file, &(uint64_t){ yk_le64(n) }, 8);
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
	n = yk_le64(n);
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
	ok(!yk_safetensors_find(&s, "t"), "an unknown name is not found");
	if (truncate(path, (off_t)size - 1) == 0) {
		uint8_t last[8192];
		int e = yk_safetensors_read(&s, &s.entries[26], last);
		ok(e == YOKE_EIO, "truncated while open: %s", yoke_error());
		yoke_error_clear();
	}
	yk_safetensors_close(&s);
	// every truncation and every flipped bit of the header gives an error or another valid file
	for (size_t i = 0; i < size; i += 7) {
		yk_file_write(path, file, i);
		if (yk_safetensors_open(&s, path) == 0) {
			ok(false, "truncated at %zu it is accepted", i);
			yk_safetensors_close(&s);
		}
		yoke_error_clear();
	}
	memcpy(&n, file, 8);
	n = yk_le64(n);
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
		ok(e == YOKE_EINVAL, "invalid tensors are not written: %s", yoke_error());
		yoke_error_clear();
	}
	for (int i = 0; i < 27; i++)
		free(t[i].data);
	free(file);
}

int main(void)
{
	tap_seed();
	tap_folder();
	mkdir(folder, 0777);
	snprintf(path, sizeof path, "%s/a.safetensors", folder);
	test_bool();
	test_round();
	return done();
}
