// SPDX-License-Identifier: Apache-2.0
// GGUF files: blocks have the values that the package gguf gives them (models/recorded_blocks.h);
// keys and tensors are found as they were written; damaged files are refused with one line.
#include "config.h"

#include <sys/stat.h>

#include "../tests/gguf_write.h"
#include "base/endian.h"
#include "base/error.h"
#include "base/file.h"
#include "formats/gguf.h"
#include "formats/gguf_blocks.h"
#include "../tests/models/recorded_blocks.h"
#include "tap.h"

static const char folder[] = "gguf";
static char path[64];

static void test_blocks(void)
{
	for (size_t i = 0; i < sizeof recorded_blocks / sizeof *recorded_blocks; i++) {
		const struct recorded_block *b = &recorded_blocks[i];
		unsigned elements, bytes;
		const char *name = yk_gguf_format_name(b->format, &elements, &bytes);
		float got[512];
		unsigned char twice[512];
		int wrong = 0;
		memset(got, -1, sizeof got);
		// two blocks at an odd address
		memcpy(twice + 1, b->bytes, bytes);
		memcpy(twice + 1 + bytes, b->bytes, bytes);
		const bool done = yk_gguf_to_f32(b->format, twice + 1, 2 * elements, got);
		for (unsigned k = 0; k < 2 * elements; k++)
			wrong += !(fabsf(got[k] - b->values[k % elements]) <=
				   1e-6f * fabsf(b->values[k % elements]));
		ok(done && wrong == 0, "%s: %d of %u values are not gguf's", name, wrong,
		   2 * elements);
	}
	ok(!yk_gguf_to_f32(YK_GGUF_IQ1_S, path, 256, (float[256]){ 0 }),
	   "IQ1_S cannot be converted");
}

// A small file with a key of each kind.
static struct gguf_file sample(void)
{
	struct gguf_file f = { 0 };
	const float x[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	gguf_text(&f, "general.architecture", "llama");
	gguf_u32(&f, "count", 7);
	gguf_real(&f, "real", 0.5f);
	gguf_bool(&f, "flag", true);
	gguf_texts(&f, "list", 3, (const char *[]){ "a", "", "ccc" });
	gguf_ints(&f, "ints", 2, (const int32_t[]){ -1, 5 });
	gguf_tensor(&f, "w", 2, (const int64_t[]){ 2, 4 }, YK_GGUF_F32, x, sizeof x);
	gguf_tensor(&f, "v", 1, (const int64_t[]){ 3 }, YK_GGUF_F16, x, 6);
	return f;
}

static void test_reading(void)
{
	struct gguf_file f = sample();
	struct yk_gguf g;
	int64_t n = 0;
	double r = 0;
	bool flag = false;
	const char *text = NULL;
	size_t bytes = 0;
	gguf_save(&f, path);
	if (yk_gguf_open(&g, path) < 0) {
		ok(false, "a sample opens: %s", yoke_error());
		return;
	}
	int e = yk_gguf_int(&g, "count", 0, 10, &n);
	ok(e == 1 && n == 7, "an integer: %lld", (long long)n);
	e = yk_gguf_real(&g, "real", &r);
	ok(e == 1 && r == 0.5, "a real: %g", r);
	ok(yk_gguf_bool(&g, "flag", &flag) == 1 && flag, "a bool");
	ok(yk_gguf_string(&g, "general.architecture", &text, &bytes) == 1 && bytes == 5 &&
		   !memcmp(text, "llama", 5),
	   "a string");
	ok(yk_gguf_int(&g, "nothing", 0, 1, &n) == 0 && n == 7, "an absent key changes nothing");
	e = yk_gguf_int(&g, "count", 0, 6, &n);
	ok(e == YOKE_EFORMAT, "an integer out of range: %s", yoke_error());
	yoke_error_clear();
	e = yk_gguf_int(&g, "real", 0, 6, &n);
	ok(e == YOKE_EFORMAT, "a real as an integer: %s", yoke_error());
	yoke_error_clear();
	struct yk_gguf_strings list = yk_gguf_strings(yk_gguf_key(&g, "list"));
	size_t total = 0, count = 0;
	while (yk_gguf_next(&list, &text, &bytes)) {
		total += bytes;
		count++;
	}
	ok(count == 3 && total == 4, "an array of %zu strings, %zu bytes", count, total);
	ok(yk_gguf_int_at(yk_gguf_key(&g, "ints"), 0) == -1 &&
		   yk_gguf_int_at(yk_gguf_key(&g, "ints"), 1) == 5,
	   "an array of integers");
	const struct yk_gguf_tensor *w = yk_gguf_tensor(&g, "w");
	float third;
	memcpy(&third, w->data + 8, sizeof third);
	ok(w->rank == 2 && w->dims[0] == 2 && w->dims[1] == 4 && third == 3,
	   "a matrix: [%lld,%lld]", (long long)w->dims[0], (long long)w->dims[1]);
	ok(yk_gguf_tensor(&g, "v") && !yk_gguf_tensor(&g, "u"), "tensors by name");
	yk_gguf_close(&g);
}

// A model split into two files.
static void test_split(void)
{
	char first[96], second[96];
	struct gguf_file f = sample(), g = { 0 };
	struct yk_gguf got;
	const float y[4] = { 9, 8, 7, 6 };
	snprintf(first, sizeof first, "%s/m-00001-of-00002.gguf", folder);
	snprintf(second, sizeof second, "%s/m-00002-of-00002.gguf", folder);
	gguf_u32(&f, "split.no", 0);
	gguf_u32(&f, "split.count", 2);
	gguf_u32(&f, "split.tensors.count", 3);
	gguf_u32(&f, "general.alignment", 32);
	gguf_u32(&g, "split.no", 1);
	gguf_u32(&g, "split.count", 2);
	gguf_u32(&g, "general.alignment", 32);
	gguf_tensor(&g, "y", 1, (const int64_t[]){ 4 }, YK_GGUF_F32, y, sizeof y);
	gguf_save(&f, first);
	int e = yk_gguf_open(&got, first);
	ok(e == YOKE_ENOENT, "without its second file: %s", yoke_error());
	yoke_error_clear();
	gguf_save(&g, second);
	e = yk_gguf_open(&got, first);
	const struct yk_gguf_tensor *t = e == 0 ? yk_gguf_tensor(&got, "y") : NULL;
	ok(t && got.tensors == 3 && got.files == 2 && !memcmp(t->data, y, sizeof y) && t->file == 1,
	   "a tensor of the second file %s", yoke_error());
	if (e == 0)
		yk_gguf_close(&got);
	yoke_error_clear();
	e = yk_gguf_open(&got, second);
	ok(e == YOKE_EFORMAT && strstr(yoke_error(), "00001-of-00002"),
	   "the second file names the first: %s", yoke_error());
	yoke_error_clear();
}

// Is the file refused, with a message of one line that names it?
static bool refused(const void *data, size_t bytes)
{
	struct yk_gguf g;
	yk_file_write(path, data, bytes);
	const int e = yk_gguf_open(&g, path);
	const bool fine =
		e == YOKE_EFORMAT && strstr(yoke_error(), path) && !strchr(yoke_error(), '\n');
	if (e == 0)
		yk_gguf_close(&g);
	yoke_error_clear();
	return fine;
}

// Every prefix of a file, and each of its bytes before the tensors' data replaced by others: either
// refused, or read without harm.
static void test_damaged(void)
{
	struct gguf_file f = sample();
	size_t bytes;
	unsigned char *data = gguf_bytes(&f, &bytes), *copy = malloc(bytes);
	const unsigned char values[] = { 0, 1, 9, 127, 255 };
	int opened = 0, tried = 0;
	bool all = true;
	for (size_t n = 0; n + 6 < bytes; n++)
		all &= refused(data, n);
	ok(all, "all %zu prefixes are refused", bytes - 6);
	for (size_t at = 0; at + 64 < bytes; at++)
		for (size_t k = 0; k < sizeof values; k++) {
			struct yk_gguf g;
			memcpy(copy, data, bytes);
			copy[at] = values[k];
			yk_file_write(path, copy, bytes);
			tried++;
			if (yk_gguf_open(&g, path) < 0)
				continue;
			opened++;
			yk_gguf_close(&g);
		}
	yoke_error_clear();
	ok(opened > 0 && opened < tried, "of %d files with another byte %d open, and none crashes",
	   tried, opened);
	free(copy);
	free(data);
}

static void test_contradictions(void)
{
	static const struct {
		const char *what;
		void (*change)(struct gguf_file *);
	} cases[] = {
		{ "version 1", gguf_version_1 },
		{ "big endian", gguf_big_endian },
		{ "an array of arrays", gguf_nested },
		{ "a key twice", gguf_key_twice },
		{ "a tensor twice", gguf_tensor_twice },
		{ "tensors that overlap", gguf_overlap },
		{ "5 dims", gguf_five_dims },
		{ "an unknown format", gguf_unknown_format },
		{ "rows that are no whole blocks", gguf_odd_row },
		{ "an alignment of 24", gguf_alignment_24 },
		{ "an unaligned tensor", gguf_unaligned },
		{ "2^63 elements", gguf_huge_dims },
		{ "2^61 strings", gguf_huge_array },
		{ "2^62 keys", gguf_huge_keys },
		{ "2^62 tensors", gguf_huge_tensors },
		{ "a dim of 0", gguf_zero_dim },
		{ "an empty name", gguf_empty_name },
		{ "a name with a NUL", gguf_nul_name },
		{ "a second file of a split model", gguf_second_file },
		{ "a split model of another name", gguf_split_name },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct gguf_file f = sample();
		size_t bytes;
		cases[i].change(&f);
		unsigned char *data = gguf_bytes(&f, &bytes);
		ok(refused(data, bytes), "refused: %s", cases[i].what);
		free(data);
	}
}

int main(void)
{
	tap_folder();
	mkdir(folder, 0777);
	snprintf(path, sizeof path, "%s/a.gguf", folder);
	test_blocks();
	if (YK_HOST_BIG) {
		struct gguf_file f = sample();
		struct yk_gguf g;
		gguf_save(&f, path);
		ok(yk_gguf_open(&g, path) == YOKE_EUNSUPPORTED,
		   "a big-endian processor refuses the file: %s", yoke_error());
		return done();
	}
	test_reading();
	test_split();
	test_damaged();
	test_contradictions();
	return done();
}
