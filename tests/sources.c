// SPDX-License-Identifier: Apache-2.0
// Tests datasets in files: each format against the numbers that the test wrote, hostile headers,
// truncated files. With an argument FOLDER it writes the hostile files there, as seeds for
// tests/fuzz.
#include "config.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "base/endian.h"
#include "base/hash.h"
#include "base/log.h"
#include "formats/safetensors.h"
#include "fuzz/targets.h"
#include "hostile.h"
#include "tap.h"
#include "yoke-data.h"

enum { LIMIT = 1 << 16 };

static unsigned char file[LIMIT];
static size_t used;

static void put(const void *data, size_t bytes)
{
	if (bytes > LIMIT - used)
		abort();
	memcpy(file + used, data, bytes);
	used += bytes;
}

static void save(const char *path)
{
	FILE *f = fopen(path, "w");
	if (!f || fwrite(file, 1, used, f) != used || fclose(f))
		abort();
	used = 0;
}

// ---- elements ----

static const struct type {
	const char *raw, *npy; // names in both
	int width, dtype;
} types[] = {
	{ "u8", "u1", 1, yoke_u8 }, { "i8", "i1", 1, yoke_i8 }, { "bool", "b1", 1, yoke_bool },
	{ "u16", "u2", 2, yoke_i32 }, { "i16", "i2", 2, yoke_i32 }, { "f16", "f2", 2, yoke_f16 },
	{ "u32", "u4", 4, yoke_i64 }, { "i32", "i4", 4, yoke_i32 }, { "f32", "f4", 4, yoke_f32 },
	{ "i64", "i8", 8, yoke_i64 }, { "f64", "f8", 8, yoke_f64 }, { "u64", "u8", 8, yoke_i64 },
};
#define TYPES ((int)(sizeof types / sizeof *types))

// Bits of a random element, and the value to be read.
static uint64_t draw(const struct type *t, uint64_t *want)
{
	uint64_t x = t->dtype == yoke_bool ? rnd() & 1 :
		     t->width == 8         ? rnd() >> (*t->raw == 'u') :
					     rnd() & (((uint64_t)1 << 8 * t->width) - 1);
	*want = x;
	if (*t->raw == 'i' && t->width < 8) // sign
		*want = (uint64_t)((int64_t)(x << (64 - 8 * t->width)) >> (64 - 8 * t->width));
	return x;
}

static void put_element(uint64_t x, int width, bool big)
{
	for (int k = 0; k < width; k++) {
		const unsigned char c = (unsigned char)(x >> 8 * (big ? width - 1 - k : k));
		put(&c, 1);
	}
}

static bool equals(const void *got, size_t i, int dtype, uint64_t want)
{
	const size_t size = yoke_dtype_size(dtype);
	return !memcmp((const char *)got + i * size,
		       (const char *)&want + (YK_HOST_BIG ? sizeof want - size : 0), size);
}

static void test_raw(void)
{
	bool good = true;
	int n = 0;
	for (int k = 0; k < 40 && good; k++) {
		const struct type *t = &types[k % TYPES];
		const int64_t offset = rnd_int(0, 2000), rows = rnd_int(1, 40), a = rnd_int(1, 4),
			      b = rnd_int(1, 3);
		uint64_t want[40 * 12], got[12];
		char settings[80];
		used = (size_t)offset;
		for (int64_t i = 0; i < rows * a * b; i++)
			put_element(draw(t, &want[i]), t->width, false);
		save("raw.bin");
		snprintf(settings, sizeof settings, "format=%s:%d dims=%dx%d", t->raw, (int)offset,
			 (int)a, (int)b);
		yoke_dataset *d = yoke_dataset_open("raw.bin", settings);
		struct yoke_field f = { .size = sizeof f };
		good = d && yoke_dataset_count(d) == rows && yoke_dataset_fields(d, 1, &f) == 1 &&
		       f.dtype == t->dtype && f.rank == 2 && f.dims[0] == a && f.dims[1] == b;
		for (int64_t r = 0; r < rows && good; r++) {
			void *to[] = { got };
			good = yoke_dataset_read(d, r, 0, 0, 0, to, NULL) == 0;
			for (int64_t i = 0; i < a * b && good; i++)
				good = equals(got, (size_t)i, t->dtype, want[r * a * b + i]);
		}
		yoke_dataset_free(d);
		if (!good)
			diag("%s: %s", settings, yoke_error());
		n++;
	}
	ok(good, "%d raw arrays, each type, offset and dims", n);
}

// ---- .npy ----

static void put_npy_head(const char *dict, int version)
{
	size_t length = strlen(dict), pad = 63 - (length + (version > 1 ? 12 : 10)) % 64,
	       header = length + pad + 1;
	put("\x93NUMPY", 6);
	put(&(unsigned char[]){ (unsigned char)version, 0 }, 2);
	put_element(header, version > 1 ? 4 : 2, false);
	put(dict, length);
	while (pad--)
		put(" ", 1);
	put("\n", 1);
}

static void test_npy(void)
{
	const int n = tap_cases(400, 5000);
	bool good = true;
	for (int k = 0; k < n && good; k++) {
		const struct type *t = &types[rnd_int(0, TYPES - 1)];
		const bool big = rnd_int(0, 1), fortran = rnd_int(0, 1);
		const int rank = (int)rnd_int(1, 4);
		int64_t dims[4] = { 1, 1, 1, 1 }, all = 1;
		uint64_t want[6 * 6 * 6 * 6], got[6 * 6 * 6];
		char dict[256], shape[80] = "";
		for (int i = 0; i < rank; i++) {
			all *= dims[i] = rnd_int(1, 6);
			snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%d%s",
				 i ? ", " : "", (int)dims[i], rank == 1 ? "," : "");
		}
		snprintf(dict, sizeof dict,
			 "{'descr': '%c%s', 'fortran_order': %s, 'shape': (%s), }",
			 t->width == 1 ? '|' :
			 big           ? '>' :
					 '<',
			 t->npy, fortran ? "True" : "False", shape);
		put_npy_head(dict, (int)rnd_int(1, 3));
		for (int64_t i = 0; i < all; i++) { // i: in the order of the file
			int64_t at = 0, rest = i;
			uint64_t x;
			const uint64_t bits = draw(t, &x);
			if (fortran) {
				int64_t place[4];
				for (int a = 0; a < rank; a++)
					place[a] = rest % dims[a], rest /= dims[a];
				for (int a = 0; a < rank; a++)
					at = at * dims[a] + place[a];
			} else {
				at = i;
			}
			want[at] = x;
			put_element(bits, t->width, big);
		}
		// or the first bytes identify it
		const char *const name = rnd_int(0, 1) ? "x.npy" : "x";
		save(name);
		yoke_dataset *d = yoke_dataset_open(name, NULL);
		struct yoke_field f = { .size = sizeof f };
		good = d && yoke_dataset_count(d) == dims[0] &&
		       yoke_dataset_fields(d, 1, &f) == 1 && f.rank == rank - 1 &&
		       f.dtype == t->dtype &&
		       !memcmp(f.dims, dims + 1, sizeof *dims * (size_t)f.rank);
		for (int64_t r = 0; r < dims[0] && good; r++) {
			void *to[] = { got };
			good = yoke_dataset_read(d, r, 0, 0, 0, to, NULL) == 0;
			for (int64_t i = 0; i < all / dims[0] && good; i++)
				good = equals(got, (size_t)i, t->dtype,
					      want[r * (all / dims[0]) + i]);
		}
		yoke_dataset_free(d);
		if (!good)
			diag("%s: %s", dict, yoke_error());
	}
	ok(good, "%d .npy files of all types, byte orders, orders of axes and versions", n);
}

static void test_u64(void)
{
	int64_t got[2] = { 0, 0 };
	void *to[] = { got };
	put_npy_head("{'descr': '>u8', 'fortran_order': False, 'shape': (2, 2), }", 1);
	for (int i = 0; i < 4; i++)
		put_element(i < 3 ? INT64_MAX : (uint64_t)INT64_MAX + 1, 8, true);
	save("u64.npy");
	yoke_dataset *d = yoke_dataset_open("u64.npy", NULL);
	ok(d && !yoke_dataset_read(d, 0, 0, 0, 0, to, NULL) && got[0] == INT64_MAX &&
		   got[1] == INT64_MAX,
	   "u64 up to 2^63 - 1");
	ok(d && yoke_dataset_read(d, 1, 0, 0, 0, to, NULL) == YOKE_EFORMAT &&
		   strstr(yoke_error(), "element 1 of row 1 is 9223372036854775808"),
	   "larger u64 are refused: %s", yoke_error());
	yoke_error_clear();
	yoke_dataset_free(d);
}

// ---- safetensors, token files ----

static void test_safetensors(void)
{
	float x[7][3];
	int64_t y[7], z[2] = { 1, 2 };
	for (int i = 0; i < 21; i++)
		x[i / 3][i % 3] = (float)rnd_real(-1, 1);
	for (int i = 0; i < 7; i++)
		y[i] = (int64_t)rnd();
	const struct yk_host_tensor t[] = { { "x", yoke_f32, 2, { 7, 3 }, x },
					    { "y", yoke_i64, 1, { 7 }, y },
					    { "z", yoke_i64, 1, { 2 }, z } };
	uint64_t bytes, hash;
	yk_safetensors_write("a.safetensors", 3, t, &bytes, &hash);
	ok(!yoke_dataset_open("a.safetensors", NULL) && yoke_error_code() == YOKE_ESHAPE, "%s",
	   yoke_error());
	yoke_error_clear();
	ok(link("a.safetensors", "arrays") == 0, "by a name that does not show its format");
	yoke_dataset *d = yoke_dataset_open("arrays", "fields=x,y");
	struct yoke_field f[2] = { { .size = sizeof f[0] } };
	bool good = d && yoke_dataset_count(d) == 7 && yoke_dataset_fields(d, 2, f) == 2;
	const int of_x = good && !strcmp(f[0].name, "x") ? 0 : 1;
	good = good && f[of_x].rank == 1 && f[of_x].dims[0] == 3 && f[1 - of_x].rank == 0;
	for (int i = 0; i < 7 && good; i++) {
		float a[3];
		int64_t b;
		void *to[] = { of_x ? (void *)&b : a, of_x ? (void *)a : &b };
		good = yoke_dataset_read(d, i, 0, 0, 0, to, NULL) == 0 &&
		       !memcmp(a, x[i], sizeof a) && b == y[i];
	}
	ok(good, "arrays of a safetensors file are fields: %s", yoke_error());
	yoke_dataset_free(d);
	// arrays that cannot be tensors, and those that are not read at all
	static const char head[] =
		"{\"a\":{\"dtype\":\"U64\",\"shape\":[2],\"data_offsets\":[0,16]},\"b\":{\"dtype\":\"I16\",\"shape\":[2],"
		"\"data_offsets\":[16,20]},\"c\":{\"dtype\":\"C64\",\"shape\":[2],\"data_offsets\":[20,36]},"
		"\"d\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[36,37]}}";
	put_element(sizeof head - 1, 8, false), put(head, sizeof head - 1);
	put_element(7, 8, false), put_element(8, 8, false), put_element((uint64_t)-3, 2, false),
		put_element((uint64_t)-4, 2, false);
	put(head, 17);
	save("o.safetensors");
	d = yoke_dataset_open("o.safetensors", NULL);
	int64_t a = 0;
	int32_t b = 0;
	void *two[] = { &a, &b };
	ok(d && yoke_dataset_fields(d, 0, NULL) == 2 &&
		   yoke_dataset_read(d, 1, 0, 0, 0, two, NULL) == 0 && a == 8 && b == -4,
	   "U64 and I16 are fields, C64 and F4 are not: %s", yoke_error());
	yoke_dataset_free(d);
	ok(!yoke_dataset_open("o.safetensors", "fields=c") &&
		   yoke_error_code() == YOKE_EUNSUPPORTED && strstr(yoke_error(), "C64"),
	   "%s", yoke_error());
	yoke_error_clear();
	ok(!yoke_dataset_open("a.safetensors", "fields=x,w") && yoke_error_code() == YOKE_ENOENT,
	   "%s", yoke_error());
	yoke_error_clear();
}

static int64_t token[1000];

// A token file of n tokens; meta: metadata, or NULL for valid metadata.
static void put_tokens(int width, int n, const char *meta)
{
	char head[1024], more[300], tokenizer[80];
	snprintf(tokenizer, sizeof tokenizer, "{\"name\": \"byte\", \"size\": %d}",
		 width == 1 ? 200 : 60000);
	char quoted[160] = "";
	for (const char *c = tokenizer; *c; c++)
		snprintf(quoted + strlen(quoted), sizeof quoted - strlen(quoted), "%s%c",
			 *c == '"' ? "\\" : "", *c);
	snprintf(more, sizeof more,
		 "\"format\":\"yoke tokens 1\",\"tokenizer\":\"%s\",\"vocabulary\":\"%016" PRIx64
		 "\"",
		 quoted, yk_hash(tokenizer, strlen(tokenizer), 0));
	snprintf(head, sizeof head,
		 "{\"__metadata__\":{%s},\"tokens\":{\"dtype\":\"U%d\",\"shape\":[%d],"
		 "\"data_offsets\":[0,%d]}}",
		 meta ? meta : more, 8 * width, n, n * width);
	while (strlen(head) % 8)
		strcat(head, " ");
	put_element(strlen(head), 8, false);
	put(head, strlen(head));
	for (int i = 0; i < n; i++)
		put_element((uint64_t)(token[i] = rnd_int(0, width == 1 ? 199 : 59999)), width,
			    false);
}

static void test_tokens(void)
{
	bool good = true;
	for (int k = 0; k < 24 && good; k++) {
		const int width = 1 << k % 3, n = (int)rnd_int(20, 1000),
			  context = (int)rnd_int(1, 19), raw = k % 2;
		char settings[80];
		put_tokens(width, n, NULL);
		if (raw) { // only the tokens, as other programs write them
			memmove(file + 1024, file + used - n * width, (size_t)(n * width));
			used = 1024 + (size_t)(n * width);
		}
		save(raw ? "t.bin" : "t.safetensors");
		snprintf(settings, sizeof settings,
			 raw ? "context=%d format=u%d:1024" : "context=%d", context, 8 * width);
		yoke_dataset *d = yoke_dataset_open(raw ? "t.bin" : "t.safetensors", settings);
		struct yoke_field f = { .size = sizeof f };
		good = d && yoke_dataset_count(d) == (n - 1) / context &&
		       yoke_dataset_fields(d, 1, &f) == 1 && f.dtype == yoke_i32 && f.rank == 1 &&
		       f.dims[0] == context + 1 && !strcmp(f.name, "ids");
		for (int w = 0; w < (n - 1) / context && good; w++) {
			int32_t got[20];
			void *to[] = { got };
			good = yoke_dataset_read(d, w, 0, 0, 0, to, NULL) == 0;
			for (int i = 0; i <= context && good; i++)
				good = got[i] == token[w * context + i];
		}
		// through a loader, in several threads
		yoke_loader *l =
			good ? yoke_loader_new(d,
					       "batch=3 shuffle=0 last=keep epochs=1 workers=2") :
			       NULL;
		int64_t rows, at = 0;
		void *data[1];
		while (good && (rows = yoke_loader_host(l, 1, data, NULL)) > 0)
			for (int64_t r = 0; r < rows; r++, at++)
				for (int i = 0; i <= context && good; i++)
					good = ((int32_t *)data[0])[r * (context + 1) + i] ==
					       token[at * context + i];
		good = good && at == (n - 1) / context;
		yoke_loader_free(l);
		yoke_dataset_free(d);
		if (!good)
			diag("%s of %d: %s", settings, n, yoke_error());
	}
	ok(good, "token files and raw tokens of each width are windows");

	put_tokens(2, 100, NULL);
	const size_t bad = used - 2 * 40; // token 60
	file[bad] = file[bad + 1] = 0xff;
	save("t.safetensors");
	yoke_dataset *d = yoke_dataset_open("t.safetensors", "context=10");
	int32_t got[11];
	void *to[] = { got };
	char where[40];
	snprintf(where, sizeof where, "byte %zu is 65535", bad);
	good = yoke_dataset_read(d, 4, 0, 0, 0, to, NULL) == 0;
	ok(good && yoke_dataset_read(d, 6, 0, 0, 0, to, NULL) == YOKE_EFORMAT &&
		   strstr(yoke_error(), where) &&
		   strstr(yoke_error(), "beyond the vocabulary of 60000"),
	   "%s", yoke_error());
	yoke_error_clear();
	yoke_dataset_free(d);
}

// ---- tables, JSON lines ----

// A random text of some of these characters; for a table's cell, quoted or not.
static size_t draw_text(char *to, const char *from, int max)
{
	const size_t n = (size_t)rnd_int(0, max);
	for (size_t i = 0; i < n; i++)
		to[i] = from[rnd_int(0, (int64_t)strlen(from) - 1)];
	to[n] = 0;
	return n;
}

static void put_cell(const char *text, char sep, bool quote)
{
	const char special[] = { sep, '"', '\n', '\r', 0 };
	if (!quote && !strpbrk(text, special)) {
		put(text, strlen(text));
		return;
	}
	put("\"", 1);
	for (; *text; text++)
		put(*text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
	put("\"", 1);
}

static void test_tables(void)
{
	enum { ROWS = 60 };
	static const char *const words[] = { "red", "green, dark", "\"blue\"", "",
					     "line\nbreak" }; // sorted: "", "blue", g, l, r
	static const int rank[] = { 4, 2, 1, 0, 3 };
	bool good = true;
	for (int k = 0; k < 30 && good; k++) {
		const char sep = k % 2 ? '\t' : ',';
		const bool crlf = rnd_int(0, 1);
		const int rows = (int)rnd_int(1, ROWS);
		double x[ROWS];
		char text[ROWS][41];
		int color[ROWS], seen = 0, id[5];
		for (int w = 0; w < 5; w++)
			id[w] = -1;
		if (rnd_int(0, 1))
			put("\xef\xbb\xbf", 3);
		for (int r = -1; r < rows; r++) {
			char number[40];
			if (r >= 0) {
				x[r] = rnd_real(-1e6, 1e6);
				snprintf(number, sizeof number, "%.17g", x[r]);
				draw_text(text[r], sep == ',' ? "ab,\"\n c\r" : "ab\t\"\n c\r", 40);
				color[r] = (int)rnd_int(0, 4);
				id[color[r]] = 0;
			}
			put_cell(r < 0 ? "x" : number, sep, rnd_int(0, 1));
			put(&sep, 1);
			put_cell(r < 0 ? "unused" : "1", sep, rnd_int(0, 1));
			put(&sep, 1);
			put_cell(r < 0 ? "say" : text[r], sep, rnd_int(0, 1));
			put(&sep, 1);
			put_cell(r < 0 ? "color" : words[color[r]], sep, rnd_int(0, 1));
			if (r < rows - 1 || rnd_int(0, 1))
				put(crlf ? "\r\n" : "\n", crlf ? 2 : 1);
			if (r < rows - 1 && rnd_int(0, 5) == 0)
				put("\n", 1); // an empty line is not a record
		}
		save(sep == ',' ? "t.csv" : "t.tsv");
		for (int place = 0; place < 5; place++) // the categories present, in byte order
			for (int w = 0; w < 5; w++)
				if (rank[w] == place && id[w] == 0)
					id[w] = seen++;
		yoke_dataset *d = yoke_dataset_open(sep == ',' ? "t.csv" : "t.tsv",
						    "columns=color:category,x:f64,say:text,x");
		good = !d && strstr(yoke_error(), "field x ");
		yoke_error_clear();
		d = yoke_dataset_open(sep == ',' ? "t.csv" : "t.tsv",
				      "columns=color:category,x:f64,say:text,unused");
		good = good && d && yoke_dataset_count(d) == rows;
		struct yoke_field f[4] = { { .size = sizeof f[0] } };
		good = good && yoke_dataset_fields(d, 4, f) == 4;
		char *room = good ? malloc((size_t)f[2].dims[0]) : NULL;
		for (int r = 0; r < rows && good; r++) {
			int32_t c;
			double v;
			float one;
			int64_t dims[4][YOKE_MAX_RANK];
			void *to[] = { &c, &v, room, &one };
			good = yoke_dataset_read(d, r, 0, 0, 0, to, dims) == 0 &&
			       memcmp(&v, &x[r], sizeof v) == 0 && one == 1 && c == id[color[r]] &&
			       !strcmp(yoke_dataset_label(d, "color", c), words[color[r]]) &&
			       dims[2][0] == (int64_t)strlen(text[r]) &&
			       !memcmp(room, text[r], strlen(text[r]));
			if (!good)
				diag("row %d of %d: %s", r, rows, yoke_error());
		}
		good = good && !yoke_dataset_label(d, "color", seen) &&
		       !yoke_dataset_label(d, "x", 0);
		free(room);
		yoke_dataset_free(d);
	}
	ok(good, "tables of random cells, with quotes, line ends and separators in them");
}

static int lines_logged;

static void count_line(int level, const char *topic, const char *line, void *arg)
{
	(void)line, (void)arg;
	lines_logged += level == YOKE_LOG_WARN && !strcmp(topic, "data");
}

// Opens a table with these settings: the names of its fields, joined by '/', the numbers of its
// first and last row, and the number of lines that are logged.
static void table_is(const char *text, const char *path, const char *settings, const char *names,
		     const double *want, int64_t rows, int lines)
{
	char got[400] = "";
	double first[2] = { NAN, NAN }, last[2] = { NAN, NAN };
	put(text, strlen(text));
	save(path);
	lines_logged = 0;
	yoke_dataset *d = yoke_dataset_open(path, settings);
	struct yoke_field f[2] = { { .size = sizeof f[0] } };
	const int n = d ? yoke_dataset_fields(d, 2, f) : 0;
	for (int i = 0; i < n && i < 2; i++)
		snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", i ? "/" : "",
			 f[i].name);
	bool good = n > 0 && n <= 2 && yoke_dataset_count(d) == rows && !strcmp(got, names) &&
		    lines_logged == lines;
	for (int end = 0; end < 2 && good; end++) {
		float x[2] = { NAN, NAN };
		double y[2] = { NAN, NAN };
		void *to[2];
		for (int i = 0; i < n; i++)
			to[i] = f[i].dtype == yoke_f64 ? (void *)&y[i] : (void *)&x[i];
		good = yoke_dataset_read(d, end ? rows - 1 : 0, 0, 0, 0, to, NULL) == 0;
		for (int i = 0; i < n; i++)
			(end ? last : first)[i] = f[i].dtype == yoke_f64 ? y[i] : (double)x[i];
	}
	for (int i = 0; i < n && good; i++)
		good = first[i] == want[i] && last[i] == want[n + i];
	if (!good)
		diag("fields %s, %d lines, first %g %g, last %g %g: %s", got, lines_logged,
		     first[0], first[1], last[0], last[1], yoke_error());
	ok(good, "%s as %s: %s", settings ? settings : "no settings", path, names);
	yoke_error_clear();
	yoke_dataset_free(d);
}

// Names in quotes, header=0, and the delimiter, given or found.
static void test_table_settings(void)
{
	static const double four[] = { 1, 2, 5, 6 }, two[] = { 2, 6 }, half[] = { 1.5, 2, 5, 6 };
	static const struct {
		const char *settings, *say;
		int code;
	} bad[] = {
		{ "columns=\"a", "quote", YOKE_EINVAL },
		{ "columns=\"a\"x", "'x'", YOKE_EINVAL },
		{ "columns=\"a\":f16", "f16", YOKE_EINVAL },
		{ "columns=\"a b\"", "'a b'", YOKE_ENOENT },
		{ "header=2", "header=2", YOKE_EINVAL },
		{ "header=", "header=", YOKE_EINVAL },
		{ "delimiter=ab", "delimiter=ab", YOKE_EINVAL },
		{ "delimiter=", "delimiter=", YOKE_EINVAL },
		{ "delimiter=\"\"", "delimiter=", YOKE_EINVAL },
		{ "columns=", "no column", YOKE_ENOENT },
	};
	setenv("YOKE_LOG", "warn", 1);
	yoke_setting_set("log", "warn");
	yk_log_to(count_line, NULL);
	const char *spaces = "sepal length,\"a:b,\"\"c\"\"\"\n1,2\n3,4\n5,6\n";
	table_is(spaces, "n.csv", NULL, "sepal length/a:b,\"c\"", four, 3, 0);
	table_is(spaces, "n.csv", "columns=\"sepal length\":f32,\"a:b,\"\"c\"\"\":f64",
		 "sepal length/a:b,\"c\"", four, 3, 0);
	table_is(spaces, "n.csv", "columns=\"a:b,\"\"c\"\"\"  format=csv ", "a:b,\"c\"", two, 3, 0);
	table_is("a,b\n1,2\n5,6\n", "n.csv", "columns=\"a\":number,b", "a/b", four, 2, 0);
	table_is("1,2\n3,4\n5,6\n", "n.csv", "header=0", "column1/column2", four, 3, 0);
	table_is("1,2\n5,6", "n.csv", "columns=column2:f64 header=0", "column2", two, 2, 0);
	table_is("1,2\n5,6\n5,6\n", "n.csv", NULL, "1/2", (double[]){ 5, 6, 5, 6 }, 2,
		 1); // names that are numbers
	table_is("1,2\n5,6\n5,6\n", "n.csv", "header=1", "1/2", (double[]){ 5, 6, 5, 6 }, 2, 1);
	table_is("\xef\xbb\xbf"
		 "a;b\r\n1;2\r\n\r\n5;6\r\n",
		 "n.csv", NULL, "a/b", four, 2, 1);
	table_is("a;b\n1;2\n5;6\n", "n.csv", "delimiter=;", "a/b", four, 2, 0);
	table_is("a\tb\n1\t2\n5\t6\n", "n.csv", NULL, "a/b", four, 2, 1);
	table_is("a\tb\n1\t2\n5\t6\n", "n.csv", "delimiter=tab", "a/b", four, 2, 0);
	table_is("a\tb\n1\t2\n5\t6\n", "n.tsv", NULL, "a/b", four, 2, 0);
	table_is("a,b\n1,2\n5,6\n", "n.tsv", NULL, "a/b", four, 2, 1);
	table_is("a|b\n1|2\n5|6\n", "n.csv", NULL, "a/b", four, 2, 1);
	table_is("\"a;b\",c\n\"1.5\",2\n5,6\n", "n.csv", NULL, "a;b/c", half, 2,
		 0); // within a cell
	table_is("\"a,\n,\";c\n1.5;2\n5;6\n", "n.csv", NULL, "a,\n,/c", half, 2, 1);
	table_is("a;b\n1;2\n5;6", "n.csv", "delimiter=; header=1 columns=b", "b", two, 2, 0);
	table_is("a\n2\n6\n", "n.csv", NULL, "a", two, 2, 0); // one column
	yoke_setting_set("log", "error");
	yk_log_to(NULL, NULL);
	put("a,b\n1,2\n", 8);
	save("n.csv");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		yoke_dataset *d = yoke_dataset_open("n.csv", bad[i].settings);
		ok(!d && is_error(yoke_error_code(), bad[i].code, bad[i].say), "%s is refused",
		   bad[i].settings);
		yoke_error_clear();
		yoke_dataset_free(d);
	}
	put("a,b\n", 4);
	save("n.csv");
	yoke_dataset *d = yoke_dataset_open("n.csv", "header=0");
	ok(d && yoke_dataset_count(d) == 1, "one record is enough without a header");
	const uint64_t without = d ? yoke_dataset_fingerprint(d) : 0;
	yoke_dataset_free(d);
	put("a,b\n1,2\n", 8);
	save("n.csv");
	d = yoke_dataset_open("n.csv", NULL);
	yoke_dataset *e = yoke_dataset_open("n.csv", "header=0");
	ok(d && e && yoke_dataset_fingerprint(d) != yoke_dataset_fingerprint(e) && without,
	   "header=0 changes the fingerprint");
	yoke_dataset_free(d);
	yoke_dataset_free(e);
}

// A number as people write it; sometimes in another format than digits with a point.
static void draw_number(char *to)
{
	static const char *const rare[] = {
		"+4.5",  "  12",      "7  ",
		"1e300", "-2.5e-310", "-Inf",
		"inf",   "infinity",  "123456789012345678901234567890"
	};
	const int n = (int)rnd_int(0, 30);
	if (n < 2) {
		strcpy(to, rare[rnd_int(0, 8)]);
		return;
	}
	const int max = n < 8 ? 24 : 9, whole = (int)rnd_int(0, max),
		  part = (int)rnd_int(whole == 0, max);
	to += sprintf(to, "%s", rnd_int(0, 1) ? "-" : "");
	for (int i = 0; i < whole; i++)
		*to++ = (char)rnd_int('0', '9');
	if (part || rnd_int(0, 1))
		*to++ = '.';
	for (int i = 0; i < part; i++)
		*to++ = (char)rnd_int('0', '9');
	*to = 0;
	if (!rnd_int(0, 3))
		sprintf(to, rnd_int(0, 1) ? "e%d" : "E%+d", (int)rnd_int(-30, 30));
}

// Against strtod, in bits: numeric columns, which are read at once, some of them unused, and quoted
// ones.
static void test_numbers(void)
{
	enum { ROWS = 400 };
	static double want[ROWS][3];
	bool good = true;
	for (int k = 0; k < 6 && good; k++) {
		put("a,b,unused,c\n", 13);
		for (int r = 0; r < ROWS; r++)
			for (int c = 0; c < 4; c++) {
				char text[80];
				if (c == 2)
					draw_text(text, "ab,\" c", 12);
				else
					draw_number(text);
				while (c == 1 && isfinite(strtod(text, NULL)) &&
				       isinf((float)strtod(text, NULL)))
					draw_number(text); // of f32
				put_cell(text, ',', rnd_int(0, 40) == 0);
				want[r][c - (c == 3)] = c == 2 ? want[r][2] : strtod(text, NULL);
				if (c < 3 || r < ROWS - 1 || k % 2)
					put(c < 3 ? "," : "\n", 1);
			}
		save("n.csv");
		yoke_dataset *d = yoke_dataset_open("n.csv", "columns=c:f64,a:f64,b");
		good = d && yoke_dataset_count(d) == ROWS;
		for (int r = 0; r < ROWS && good; r++) {
			double c, a;
			float b;
			void *to[] = { &c, &a, &b };
			const float single = (float)want[r][1];
			good = yoke_dataset_read(d, r, 0, 0, 0, to, NULL) == 0 &&
			       !memcmp(&a, &want[r][0], sizeof a) &&
			       !memcmp(&b, &single, sizeof b) && !memcmp(&c, &want[r][2], sizeof c);
			if (!good)
				diag("row %d: %.17g %.9g %.17g instead of %.17g %.9g %.17g: %s", r,
				     a, (double)b, c, want[r][0], (double)single, want[r][2],
				     yoke_error());
		}
		yoke_dataset_free(d);
	}
	ok(good, "numbers of a table have strtod's bits");
}

static void test_jsonl(void)
{
	enum { ROWS = 100 };
	char text[ROWS][60];
	for (int r = 0; r < ROWS; r++) {
		draw_text(text[r], "ab \"\\\n\tz", 50);
		const char *begin = "{\"id\": 5, \"text\": \"";
		put(begin, strlen(begin));
		for (const char *c = text[r]; *c; c++) {
			const char *as = *c == '"'  ? "\\\"" :
					 *c == '\\' ? "\\\\" :
					 *c == '\n' ? "\\n" :
					 *c == '\t' ? "\\u0009" :
						      NULL;
			put(as ? as : c, as ? strlen(as) : 1);
		}
		put("\"}\n\r\n", r % 7 ? 3 : 5);
	}
	save("t.jsonl");
	yoke_dataset *d = yoke_dataset_open("t.jsonl", "field=text");
	bool good = d && yoke_dataset_count(d) == ROWS;
	struct yoke_field f = { .size = sizeof f };
	good = good && yoke_dataset_fields(d, 1, &f) == 1 && f.dtype == yoke_u8;
	char *room = good ? malloc((size_t)f.dims[0]) : NULL;
	for (int r = 0; r < ROWS && good; r++) {
		int64_t dims[1][YOKE_MAX_RANK];
		void *to[] = { room };
		good = yoke_dataset_read(d, r, 0, 0, 0, to, dims) == 0 &&
		       dims[0][0] == (int64_t)strlen(text[r]) &&
		       !memcmp(room, text[r], strlen(text[r]));
	}
	ok(good, "strings of JSON lines: %s", yoke_error());
	free(room);
	yoke_dataset_free(d);
}

// Invalid records: each is an error of its sample, or of the dataset.
static const struct {
	const char *name, *settings, *text, *say;
	int sample; // -1: the set
} hostile_text[] = {
	{ "b.csv", NULL, "a,b\n1,2\n1,2,3\n",
	  "record 3, at byte 8: has 3 cells, the first record 2", 1 },
	{ "b.csv", NULL, "a,b\n1,2\n1\n", "has 1 cells", 1 },
	{ "b.csv", NULL, "a,b\n1,x\n", "record 2: column b: 'x' is ", 0 },
	{ "b.csv", NULL, "a,b\n1,\n", "column b: ''", 0 },
	{ "b.csv", NULL, "a,b\n1,2 3\n", "'2 3'", 0 },
	{ "b.csv", NULL, "a\n0x10\n", "column a: '0x10'", 0 },
	{ "b.csv", NULL, "a\n0x1p4\n", "column a: '0x1p4'", 0 },
	{ "b.csv", "columns=a:f64", "a\n1e400\n", "column a: '1e400'", 0 },
	{ "b.csv", "columns=a:f64", "a\n-1e400\n", "column a: '-1e400'", 0 },
	{ "b.csv", NULL, "a\n1e39\n", "'1e39'", 0 },
	{ "b.csv", NULL, "a\nnan(7)\n", "'nan(7)'", 0 },
	{ "b.csv", NULL, "a\n\"1,5\"\n", "'1,5'", 0 },
	{ "b.csv", NULL, "a,b\n1,\"2\"3\n", "next cell", 0 },
	{ "b.csv", NULL, "a,b\n1,\"2\n", "a quote", -1 },
	{ "b.csv", NULL, "a,b\n", "record", -1 },
	{ "b.csv", NULL, "", "record", -1 },
	{ "b.csv", NULL, "a,a\n1,2\n", "field a ", -1 },
	{ "b.csv", NULL, "a,\n1,2\n", "has no name", -1 },
	{ "b.csv", "columns=c", "a,b\n1,2\n", "has no column 'c'", -1 },
	{ "b.csv", "columns=a:float", "a,b\n1,2\n", "a:float: must be number", -1 },
	{ "b.csv", "columns=a:text", "a,b\n\xff,2\n", "column a is not UTF-8", 0 },
	{ "b.csv", "columns=a:category", "a,b\n\xff,2\n", "column a is not UTF-8", -1 },
	{ "b.csv", "context=3", "a\n1\n", "tables take no such key", -1 },
	{ "b.jsonl", NULL, "{}\n", "JSON lines take field=", -1 },
	{ "b.jsonl", "field=t", "\n\n", "holds no records", -1 },
	{ "b.jsonl", "field=t", "{}\n", "record 1: has no string 't'", 0 },
	{ "b.jsonl", "field=t", "{\"t\":\"a\"}\n{\"t\":5}\n", "record 2: has no string", 1 },
	{ "b.jsonl", "field=t", "[1\n", "record 1", 0 },
	{ "b.jsonl", "field=t", "{\"t\":\"\xff\"}\n", "record 1", 0 },
};

// Records whose other fields contain anything that JSON, or Python's dialect, allows: the string of
// "t", or NULL: an error of the sample.
static const struct {
	const char *line, *string;
} odd_records[] = {
	{ "{\"id\": 10014255632117358197, \"t\": \"x\"}", "x" },
	{ "{\"t\": \"x\", \"id\": -123456789012345678901234567890.5e400}", "x" },
	{ "{\"a\": NaN, \"b\": -Infinity, \"c\": Infinity, \"t\": \"x\"}", "x" },
	{ "{\"a\": \"\\u0000\", \"t\": \"x\"}", "x" },
	{ "{\"a\": \"\\ud800\", \"b\": \"\\udc00\\ud83d\", \"t\": \"x\"}", "x" },
	{ "{\"a\": 1, \"a\": 2, \"t\": \"x\"}", "x" },
	{ "{\"a\": {\"b\": 1, \"b\": [1, {}, []], \"t\": \"y\"}, \"t\": \"x\", \"z\": [[[null]], true, false]}",
	  "x" },
	{ "{\"t\": \"y\", \"t\": \"x\"}", "x" },
	{ "{\"\\u0074\": \"\\u0078\"}", "x" },
	{ " \t{ \"t\" :\"x\" } \t", "x" },
	{ "{\"\\ud800\": 1, \"t\": \"x\"}", "x" },
	{ "{\"a\": \"\\\"}, \\\\\", \"t\": \"\\ud83d\\ude00\\n\"}", "\xf0\x9f\x98\x80\n" },
	{ "{\"a\": 1E5, \"b\": 1.5e-3, \"c\": -0, \"t\": \"\"}", "" },
	{ "{\"a\": \"\xff\", \"t\": \"x\"}", "x" },
	{ "{\"t\": \"\\ud800\"}", NULL },
	{ "{\"t\": \"\\u0000\"}", NULL },
	{ "{\"t\": \"x\"", NULL },
	{ "{\"t\": \"x\"} x", NULL },
	{ "{\"t\": \"x\" \"b\"}", NULL },
	{ "{\"a\": [1,}, \"t\": \"x\"}", NULL },
	{ "{\"a\": {\"b\": 1], \"t\": \"x\"}", NULL },
	{ "{\"a\": tru, \"t\": \"x\"}", NULL },
	{ "{\"a\": -, \"t\": \"x\"}", NULL },
	{ "{\"a\": 1., \"t\": \"x\"}", NULL },
	{ "{\"a\": 1e, \"t\": \"x\"}", NULL },
	{ "{\"a\": , \"t\": \"x\"}", NULL },
	{ "{\"a\": 1,, \"t\": \"x\"}", NULL },
	{ "{a: 1, \"t\": \"x\"}", NULL },
	{ "{\"a\": \"x, \"t\": \"x\"}", NULL },
	{ "\"t\"", NULL },
	{ "[{\"t\": \"x\"}]", NULL },
	{ "{\"t\": null}", NULL },
	{ "{\"t\": \"y\", \"t\": 5}", NULL },
	{ "{\"a\": \"x\\", NULL },
	{ "{\"t\": \"x\\", NULL },
};

static void test_odd_records(void)
{
	enum { RECORDS = sizeof odd_records / sizeof *odd_records };
	put("\xef\xbb\xbf\n  \t\r\n", 8);
	for (int i = 0; i < RECORDS; i++) {
		put(odd_records[i].line, strlen(odd_records[i].line));
		put(i % 3 ? "\n" : i % 2 ? "\r\n \r\n" : "\n\t \n\n", i % 3 ? 1 : i % 2 ? 5 : 5);
	}
	yk_fuzz_table(file, used);
	save("odd.jsonl");
	yoke_dataset *d = yoke_dataset_open("odd.jsonl", "field=t");
	ok(d && yoke_dataset_count(d) == RECORDS,
	   "a byte-order mark and blank lines between records: %d %s",
	   d ? (int)yoke_dataset_count(d) : 0, yoke_error());
	for (int i = 0; d && i < RECORDS; i++) {
		char room[400];
		int64_t dims[1][YOKE_MAX_RANK];
		void *to[] = { room };
		const int e = yoke_dataset_read(d, i, 0, 0, 0, to, dims);
		const char *want = odd_records[i].string;
		ok(want ? e == 0 && dims[0][0] == (int64_t)strlen(want) &&
				   !memcmp(room, want, strlen(want)) :
			  e == YOKE_EFORMAT && strstr(yoke_error(), "odd.jsonl: record"),
		   "%d %s", i, yoke_error());
		yoke_error_clear();
	}
	yoke_dataset_free(d);
	for (int deep = 1000; deep <= 1100; deep += 100) { // nesting levels
		put("{\"a\": ", 6);
		for (int i = 0; i < deep; i++)
			put("[", 1);
		for (int i = 0; i < deep; i++)
			put("]", 1);
		put(", \"t\": \"x\"}\n", 13);
		save("deep.jsonl");
		d = yoke_dataset_open("deep.jsonl", "field=t");
		char room[4000];
		void *to[] = { room };
		ok(d && yoke_dataset_read(d, 0, 0, 0, 0, to, NULL) ==
				   (deep > 1024 ? YOKE_EFORMAT : 0),
		   "%d levels %s", deep, yoke_error());
		yoke_error_clear();
		yoke_dataset_free(d);
	}
}

static void test_hostile_text(void)
{
	for (size_t i = 0; i < sizeof hostile_text / sizeof *hostile_text; i++) {
		put(hostile_text[i].text, strlen(hostile_text[i].text));
		yk_fuzz_table(file, used);
		save(hostile_text[i].name);
		yoke_dataset *d = yoke_dataset_open(hostile_text[i].name, hostile_text[i].settings);
		char room[4][256];
		void *to[] = { room[0], room[1], room[2], room[3] };
		if (hostile_text[i].sample >= 0 && d)
			yoke_dataset_read(d, hostile_text[i].sample, 0, 0, 0, to, NULL);
		ok(!d == (hostile_text[i].sample < 0) &&
			   strstr(yoke_error(), hostile_text[i].say) &&
			   strstr(yoke_error(), hostile_text[i].name),
		   "%s", yoke_error());
		yoke_error_clear();
		yoke_dataset_free(d);
	}
	put("a\n5\" wide\nb\n", 12); // a quote within a cell is one
	save("b.csv");
	yoke_dataset *inch = yoke_dataset_open("b.csv", "columns=a:category");
	ok(inch && yoke_dataset_count(inch) == 2 &&
		   !strcmp(yoke_dataset_label(inch, "a", 0), "5\" wide"),
	   "a quote inside a cell: %s", yoke_error());
	yoke_error_clear();
	yoke_dataset_free(inch);
	memset(file, 'x', used = 5000);
	memcpy(file, "a\n", 2);
	save("b.csv"); // truncation later is noticed when it is read
	yoke_dataset *d = yoke_dataset_open("b.csv", "columns=a:text");
	char *room = malloc(6000);
	void *to[] = { room };
	ok(d && truncate("b.csv", 4500) == 0 &&
		   yoke_dataset_read(d, 0, 0, 0, 0, to, NULL) == YOKE_EIO &&
		   strstr(yoke_error(), "ends at byte 4500"),
	   "%s", yoke_error());
	yoke_error_clear();
	free(room);
	yoke_dataset_free(d);
}

// ---- files that change ----

static void test_cut(void)
{
	put_tokens(1, 1000, NULL);
	const size_t head = used - 1000;
	save("t.safetensors");
	yoke_dataset *d = yoke_dataset_open("t.safetensors", "context=10");
	const uint64_t was = yoke_dataset_fingerprint(d);
	char say[80];
	if (truncate("t.safetensors", (off_t)head + 505) < 0)
		abort();
	snprintf(say, sizeof say, "'t.safetensors' ends at byte %zu", head + 505);
	for (int workers = 0; workers <= 2; workers += 2) {
		char settings[60];
		void *data[1];
		int64_t n = 0, rows;
		snprintf(settings, sizeof settings, "batch=7 shuffle=0 workers=%d", workers);
		yoke_loader *l = yoke_loader_new(d, settings);
		while ((rows = yoke_loader_host(l, 1, data, NULL)) > 0)
			n += rows;
		// window 50 has tokens 500 .. 510
		ok(rows == YOKE_EIO && n == 49 && strstr(yoke_error(), say) &&
			   strstr(yoke_error(), "sample 50"),
		   "a file truncated while it is read, %d threads: %s", workers, yoke_error());
		yoke_error_clear();
		yoke_loader_free(l);
		l = yoke_loader_new(d, "batch=50 workers=1 on_error=skip epochs=1 last=keep");
		n = 0;
		while ((rows = yoke_loader_host(l, 1, data, NULL)) > 0)
			n += rows;
		struct yoke_loader_stats s = { .size = sizeof s };
		yoke_loader_stats(l, &s);
		ok(rows == 0 && n == 99 && s.failed == 49,
		   "or its samples are skipped: %llu samples", (unsigned long long)s.failed);
		yoke_loader_free(l);
	}
	yoke_dataset_free(d);
	put_tokens(1, 1000, NULL);
	file[used - 1] ^= 1;
	save("t.safetensors");
	d = yoke_dataset_open("t.safetensors", "context=10");
	unlink("t.safetensors");
	int32_t got[11];
	void *to[] = { got };
	ok(yoke_dataset_fingerprint(d) != was && yoke_dataset_read(d, 98, 0, 0, 0, to, NULL) == 0,
	   "other contents have another fingerprint; a removed file stays readable: %s",
	   yoke_error());
	yoke_dataset_free(d);
}

// ---- hostile headers ----

static const struct {
	const char *dict, *say;
	int code;
} hostile_npy[] = {
	{ "{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", "pickled objects",
	  YOKE_EUNSUPPORTED },
	{ "{'descr': '|O8', 'fortran_order': False, 'shape': (3,), }", "pickled objects",
	  YOKE_EUNSUPPORTED },
	{ "{'descr': '<c8', 'fortran_order': False, 'shape': (3,), }", "type '<c8'",
	  YOKE_EUNSUPPORTED },
	{ "{'descr': '<c16', 'fortran_order': False, 'shape': (3,), }", "type '<c16'",
	  YOKE_EUNSUPPORTED },
	{ "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }", "descr",
	  YOKE_EFORMAT },
	{ "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 3), }",
	  "too large", YOKE_EFORMAT },
	{ "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 3), }", "dim",
	  YOKE_EFORMAT },
	{ "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
	  "too large", YOKE_EFORMAT },
	{ "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "tuple of numbers",
	  YOKE_EFORMAT },
	{ "{'descr': '<f4', 'fortran_order': False, 'shape': (3), }", "tuple of numbers",
	  YOKE_EFORMAT },
	{ "{'descr': '<f4', 'fortran_order': False, 'shape': (3 4), }", "tuple of numbers",
	  YOKE_EFORMAT },
	{ "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "without rows", YOKE_EFORMAT },
	{ "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 5), }", "no elements",
	  YOKE_EFORMAT },
	{ "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }",
	  "more than 8 axes", YOKE_EFORMAT },
	{ "{'descr': '<f4', 'fortran_order': 0, 'shape': (3,), }", "neither True nor False",
	  YOKE_EFORMAT },
	{ "{'descr': '<f4', 'fortran_order': False}", "shape is missing", YOKE_EFORMAT },
	{ "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "a duplicate",
	  YOKE_EFORMAT },
	{ "{'shape': (3,), 'shape': (1,1,1,1,1,1,1,1), 'descr': '<f4', 'fortran_order': False}",
	  "a duplicate", YOKE_EFORMAT },
	{ "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'x': 1}", "a key other than",
	  YOKE_EFORMAT },
	{ "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} + exit(1)", "the dict",
	  YOKE_EFORMAT },
	{ "__import__('os').system('true')", "dict", YOKE_EFORMAT },
	{ "{'descr': '<f4\\x00', 'fortran_order': False, 'shape': (3,)}", "not a string",
	  YOKE_EFORMAT },
	{ "{'descr': '<f4', 'fortran_order': False, 'shape': (1000,), }", "4000 bytes, but 40",
	  YOKE_EFORMAT },
	{ "{'descr': '<f4", "not a string", YOKE_EFORMAT },
	{ "{\"descr\":\"<f4\",\"shape\":(10,),\"fortran_order\":False}", NULL, 0 },
};
#define HOSTILE_NPY ((int)(sizeof hostile_npy / sizeof *hostile_npy))

static void make_npy(int i)
{
	put_npy_head(hostile_npy[i].dict, 1 + i % 3);
	memset(file + used, 1, 40);
	used += 40;
}

static void test_hostile_npy(void)
{
	const int open = open_files();
	limit(64);
	for (int i = 0; i < HOSTILE_NPY; i++) {
		make_npy(i);
		yk_fuzz_npy(file, used);
		save("bad.npy");
		yoke_dataset *d = yoke_dataset_open("bad.npy", NULL);
		if (hostile_npy[i].say)
			ok(!d && is_error(yoke_error_code(), hostile_npy[i].code,
					  hostile_npy[i].say),
			   "%s", hostile_npy[i].dict);
		else
			ok(d != NULL, "%s: %s", hostile_npy[i].dict, yoke_error());
		yoke_error_clear();
		yoke_dataset_free(d);
	}
	make_npy(HOSTILE_NPY - 1);
	bool good = true;
	const size_t all = used;
	unsigned char copy[512];
	memcpy(copy, file, all);
	for (size_t n = 0; n < all; n++) { // truncated everywhere
		memcpy(file, copy, used = n);
		yk_fuzz_npy(file, n);
		save("bad.npy");
		good = good && !yoke_dataset_open("bad.npy", NULL) &&
		       strstr(yoke_error(), "bad.npy");
		yoke_error_clear();
	}
	for (size_t n = 0; n < all - 40; n++) // each byte of the header altered
		for (int k = 0; k < 3; k++) {
			const unsigned char was = copy[n];
			copy[n] = k ? (unsigned char)rnd() : '9';
			yk_fuzz_npy(copy, all);
			copy[n] = was;
		}
	limit(0);
	ok(good && open_files() == open,
	   "truncated and altered headers are refused, and no file is left open");
}

static const struct {
	const char *meta, *say;
} hostile_tokens[] = {
	{ "\"format\":\"yoke tokens 2\"", "token file" },
	{ "", "token file" },
	{ "\"format\":\"yoke tokens 1\"", "its tokenizer" },
	{ "\"format\":\"yoke tokens 1\",\"tokenizer\":\"{\"", "JSON" },
	{ "\"format\":\"yoke tokens 1\",\"tokenizer\":\"[]\"", "size" },
	{ "\"format\":\"yoke tokens 1\",\"tokenizer\":\"{\\\"size\\\":0}\"", "size" },
	{ "\"format\":\"yoke tokens 1\",\"tokenizer\":\"{\\\"size\\\":5}\",\"vocabulary\":\"0\"",
	  "was altered" },
};
#define HOSTILE_TOKENS ((int)(sizeof hostile_tokens / sizeof *hostile_tokens))

static void test_hostile_tokens(void)
{
	for (int i = 0; i < HOSTILE_TOKENS; i++) {
		put_tokens(2, 30, hostile_tokens[i].meta);
		yk_fuzz_tokens(file, used);
		save("bad.safetensors");
		yoke_dataset *d = yoke_dataset_open("bad.safetensors", "context=5 format=tokens");
		ok(!d && strstr(yoke_error(), "bad.safetensors") &&
			   strstr(yoke_error(), hostile_tokens[i].say),
		   "%s", yoke_error());
		yoke_error_clear();
	}
	put_tokens(1, 30, NULL);
	for (size_t n = 0; n < used; n += 1 + (size_t)rnd_int(0, 4))
		yk_fuzz_tokens(file, n);
	for (int k = 0; k < 300; k++) {
		const size_t at = (size_t)rnd_int(8, (int64_t)used - 31);
		const unsigned char was = file[at];
		file[at] = (unsigned char)rnd();
		yk_fuzz_tokens(file, used);
		file[at] = was;
	}
	used = 0;
}

static void test_refused(void)
{
	static const struct {
		const char *path, *settings, *say;
		int code;
	} row[] = {
		{ "none.npy", NULL, "none.npy", YOKE_ENOENT },
		{ "none", NULL, "'none'", YOKE_ENOENT },
		{ ".", "format=u8", "not a regular file", YOKE_EFORMAT },
		{ "empty", "format=u8", "whole number of samples", YOKE_EFORMAT },
		{ "empty", "format=npy", "it is empty", YOKE_EFORMAT },
		{ "three", "format=u16", "3 bytes", YOKE_EFORMAT },
		{ "three", "format=u8:4", "byte 4", YOKE_EFORMAT },
		{ "three", "format=u8 dims=2", "3 elements", YOKE_EFORMAT },
		{ "three", "format=u8 dims=2x", "dims=2x", YOKE_EINVAL },
		{ "three", "format=u8 dims=0", "dims=0", YOKE_EINVAL },
		{ "three", "format=u8 context=3", "3 tokens are too few", YOKE_ERANGE },
		{ "three", "format=i8 context=1", "ids of tokens are", YOKE_EINVAL },
		{ "three", "format=u9", "format=u9: must be", YOKE_EINVAL },
		{ "three", NULL, "give format=", YOKE_EINVAL },
		{ "three", "fromat=u8", "did you mean 'format'", YOKE_EINVAL },
		{ "three", "context=-1", "context=-1", YOKE_EINVAL },
		{ "a.safetensors", "context=2", "token file", YOKE_EINVAL },
		{ "a.safetensors", "dims=2", "dims=2", YOKE_EINVAL },
		{ "", NULL, "path", YOKE_EINVAL },
	};
	save("empty");
	put("abc", 3);
	save("three");
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		yoke_dataset *d = yoke_dataset_open(row[i].path, row[i].settings);
		ok(!d && is_error(yoke_error_code(), row[i].code, row[i].say), "%s %s", row[i].path,
		   row[i].settings ? row[i].settings : "");
		yoke_error_clear();
		yoke_dataset_free(d);
	}
}

static int write_seeds(const char *to)
{
	for (int i = 0; i < HOSTILE_NPY; i++, used = 0) {
		make_npy(i);
		seed(to, "npy", i, file, used);
	}
	for (int i = 0; i <= HOSTILE_TOKENS; i++, used = 0) {
		put_tokens(1 + i % 2, 30, i < HOSTILE_TOKENS ? hostile_tokens[i].meta : NULL);
		seed(to, "tokens", i, file, used);
	}
	for (size_t i = 0; i < sizeof hostile_text / sizeof *hostile_text; i++)
		seed(to, "table", (int)i, hostile_text[i].text, strlen(hostile_text[i].text));
	return 0;
}

int main(int argc, char **argv)
{
	tap_seed();
	setenv("YOKE_LOG", "error", 1);
	if (argc > 1)
		return write_seeds(argv[1]);
	tap_folder();
	test_raw();
	test_npy();
	test_u64();
	test_safetensors();
	test_tokens();
	test_tables();
	test_table_settings();
	test_numbers();
	test_jsonl();
	test_odd_records();
	test_hostile_text();
	test_cut();
	test_hostile_npy();
	test_hostile_tokens();
	test_refused();
	return done();
}
