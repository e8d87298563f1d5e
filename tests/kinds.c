// SPDX-License-Identifier: Apache-2.0
// Tests files whose contents do not match their names: each reader refuses them with EFORMAT and
// names the actual format. Text with a UTF-8 byte-order mark and Windows line ends is accepted.
#include "config.h"

#include "base/json.h"
#include "base/kind.h"
#include "data/text.h"
#include "tap.h"
#include "config/conf.h"
#include "yoke-cube.h"
#include "yoke-data.h"
#include "yoke-nn.h"

#define POINTER "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n" \
		"size 12345\n"
#define LONG "                                                                                "

static const struct content {
	const char *bytes;
	size_t n;
	const char *is; // within the message
} contents[] = {
#define CONTENT(bytes, is) { bytes, sizeof bytes - 1, is },
	CONTENT(POINTER, "Git LFS")
	CONTENT("<!DOCTYPE html>\n<html><body>Not found</body></html>\n" LONG LONG, "HTML")
	CONTENT("\n  <HTML><head></head><body>Not found</body></html>\n" LONG LONG, "HTML")
	CONTENT("\x80\x02}q\0(X\1\0\0\0aK\1u." LONG LONG, "pickle")
	CONTENT("\x80\x04\x95\x0b\0\0\0\0\0\0\0}\x94\x8c\1a\x94K\1s." LONG LONG, "pickle")
	CONTENT("PK\3\4\0\0\0\0\0\0archive/data.pkl" LONG LONG, "zip")
	CONTENT("\x1f\x8b\x08\0\0\0\0\0\0\3" LONG LONG, "gzip")
	CONTENT("\xff\xfe" "a\0,\0b\0\n\0" "1\0,\0" "2\0\n\0", "UTF-16")
	CONTENT("\xfe\xff" "\0a\0,\0b\0\n\0" "1\0,\0" "2\0\n", "UTF-16")
	CONTENT("a\0,\0b\0\n\0" "1\0,\0" "2\0\n\0", "UTF-16")
	CONTENT("\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0\4\0\x10\0" LONG LONG, "HDF5")
};
enum { CONTENTS = sizeof contents / sizeof *contents };

static void write_file(const char *path, const void *data, size_t bytes)
{
	if (yk_file_write(path, data, bytes) < 0)
		abort();
}

static void verdict(int err, const struct content *c, const char *reader)
{
	ok(err == YOKE_EFORMAT && strstr(yoke_error(), c->is), "%s, %s: %s", reader, c->is,
	   yoke_error());
	yoke_error_clear();
}

static int open_set(const char *path, const char *settings)
{
	yoke_dataset *d = yoke_dataset_open(path, settings);
	float room[4096];
	void *to[] = { room, room + 2048 };
	const int err = d ? yoke_dataset_read(d, 0, 0, 0, 0, to, NULL) : yoke_error_code();
	yoke_dataset_free(d);
	return err;
}

static int open_cube(const char *path)
{
	yoke_cube *c = yoke_cube_open(path, NULL);
	yoke_cube_free(c);
	return c ? 0 : yoke_error_code();
}

static int load(const char *path)
{
	yoke_module *m = yoke_nn_linear(3, 2, 1);
	const int err = yoke_module_load(m, path, NULL);
	yoke_module_free(m);
	return err;
}

static int read_text(const char *path)
{
	struct yk_tokenizer *t = yk_tokenizer_new("byte");
	struct yk_data *d = yk_data_new(path, t, &(struct yk_data_spec){ .context = 3 });
	yk_data_free(d);
	yk_tokenizer_free(t);
	return d ? 0 : yoke_error_code();
}

static void refused(void)
{
	static const char header[] =
		"ENVI\nsamples = 2\nlines = 100\nbands = 3\ndata type = 4\ninterleave = bip\n";
	struct yk_config conf;
	for (int i = 0; i < CONTENTS; i++) {
		const struct content *c = &contents[i];
		const bool pointer = !strcmp(c->is, "Git LFS"), page = !strcmp(c->is, "HTML");
		static const char *const names[] = { "f.npy",
						     "f.npz",
						     "f.safetensors",
						     "f.csv",
						     "f.tsv",
						     "f.jsonl",
						     "f.bin",
						     "f.hdr",
						     "f.mat",
						     "f.json",
						     "f.txt",
						     "f.env",
						     "f.safetensors.index.json",
						     "img/a/f.png",
						     "d.img" };
		tap_need("mkdir -p img/a");
		for (size_t k = 0; k < sizeof names / sizeof *names; k++)
			write_file(names[k], c->bytes, c->n);
		verdict(open_set("f.npy", NULL), c, ".npy");
#ifdef HAVE_LIBZIP
		if (strcmp(c->is, "zip"))
			verdict(open_set("f.npz", NULL), c, ".npz");
#endif
		verdict(open_set("f.safetensors", NULL), c, ".safetensors");
		verdict(load("f.safetensors"), c, "weights");
		verdict(load("f.safetensors.index.json"), c, "an index");
		verdict(open_set("f.csv", NULL), c, ".csv");
		verdict(open_set("f.tsv", "columns=x:text"), c, ".tsv");
		verdict(open_set("f.jsonl", "field=x"), c, ".jsonl");
		if (strcmp(c->is, "zip")) // which may be an .npz
			verdict(open_set("f.bin", NULL), c, "samples of no known name");
#ifdef HAVE_PNG
		verdict(open_set("img", "size=8"), c, "an image");
#endif
		verdict(open_cube("f.hdr"), c, "an ENVI header");
		verdict(open_cube("f.npy"), c, "a cube of .npy");
#ifdef MATIO_LIBRARY
		if (c->n >= 128 || pointer) // else it is too short
			verdict(open_cube("f.mat"), c, ".mat");
#endif
		json_t *j = yk_json_load("f.json");
		verdict(j ? 0 : yoke_error_code(), c, "JSON");
		json_decref(j);
		if (!page)
			verdict(read_text("f.txt"), c, "text");
		if (pointer) {
			write_file("d.hdr", header, sizeof header - 1);
			verdict(open_cube("d.hdr"), c, "a cube's data");
			verdict(open_set("f.bin", "format=u8 context=8"), c, "raw elements");
			yk_config_init(&conf, YK_T);
			verdict(yk_config_file(&conf, "f.env"), c, "a configuration");
			yk_config_fini(&conf);
		}
	}
}

// ---- text of Windows ----

static void windows(void)
{
	static const char json[] = "\xef\xbb\xbf{\r\n\"x\": 1.5\r\n}\r\n",
			  env[] = "\xef\xbb\xbf"
				  "lr=1e-3\r\nvalid=0.25\r\n",
			  csv[] = "\xef\xbb\xbf"
				  "x,y\r\n1,2\r\n   \r\n3,4\r\n",
			  text[] = "\xef\xbb\xbf"
				   "abcdefgh";
	double x = 0;
	write_file("w.json", json, sizeof json - 1);
	json_t *j = yk_json_load("w.json");
	ok(j && yk_json_real(j, "w.json", "x", &x) == 0 && x == 1.5, "JSON %s", yoke_error());
	json_decref(j);
	struct yk_config c;
	yk_config_init(&c, YK_T);
	write_file("w.env", env, sizeof env - 1);
	ok(yk_config_file(&c, "w.env") == 0 && yk_config_real(&c, YK_KEY_lr) == 1e-3 &&
		   yk_config_real(&c, YK_KEY_valid) == 0.25,
	   "a configuration %s", yoke_error());
	yk_config_fini(&c);
	write_file("w.CSV", csv, sizeof csv - 1);
	yoke_dataset *d = yoke_dataset_open("w.CSV", NULL);
	float a = 0, b = 0;
	void *to[] = { &a, &b };
	ok(d && yoke_dataset_count(d) == 2 && yoke_dataset_read(d, 1, 0, 0, 0, to, NULL) == 0 &&
		   a == 3 && b == 4,
	   "a table with blank lines %s", yoke_error());
	yoke_dataset_free(d);
	write_file("w.txt", text, sizeof text - 1);
	struct yk_tokenizer *t = yk_tokenizer_new("byte");
	struct yk_data *s = yk_data_new("w.txt", t, &(struct yk_data_spec){ .context = 3 });
	ok(s && yk_data_tokens(s) == 8, "a text of %lld tokens %s",
	   s ? (long long)yk_data_tokens(s) : 0, yoke_error());
	yk_data_free(s);
	yk_tokenizer_free(t);
	yoke_error_clear();
}

// ---- raw tokens that have a header ----

static void raw(void)
{
	static const struct {
		int32_t magic;
		int32_t tokens;
		const char *format, *say; // say: NULL: it is read
	} table[] = {
		{ 20240520, 100, "u16", "u16:1024" },
		{ 20240520, 100, "u16:1024", NULL },
		{ 20240520, 100, "u32:1024", "u16:1024" },
		{ 20240520, 100, "u16:512", "u16:1024" },
		{ 20240520, 500, "u16:1024", "500 tokens" },
		{ 20240801, 100, "u32:1024", NULL },
		{ 20240801, 100, "u16:1024", "u32:1024" },
		{ 20240801, 100, "u8", "u32:1024" },
		{ 20240521, 100, "u16", NULL },
	};
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		int32_t file[356] = { table[i].magic, table[i].magic == 20240520 ? 1 : 7,
				      table[i].tokens };
		char settings[60];
		write_file("t.bin", file, table[i].magic == 20240801 ? sizeof file : 1024 + 200);
		snprintf(settings, sizeof settings, "format=%s context=8", table[i].format);
		const int err = open_set("t.bin", settings);
		ok(table[i].say ? err == YOKE_EFORMAT && strstr(yoke_error(), table[i].say) :
				  err == 0,
		   "%d as %s: %s", (int)table[i].magic, table[i].format, yoke_error());
		yoke_error_clear();
		const struct yk_data_spec spec = { .context = 8,
						   .format = table[i].format,
						   .vocab = 1 << 20 };
		struct yk_tokenizer *t = yk_data_tokenizer("t.bin", &spec);
		struct yk_data *d = t ? yk_data_new("t.bin", t, &spec) : NULL;
		ok(table[i].say ? !d && strstr(yoke_error(), table[i].say) : d != NULL,
		   "as training data: %s", yoke_error());
		yoke_error_clear();
		yk_data_free(d);
		yk_tokenizer_free(t);
	}
	int32_t file[300] = { 20240520, 1, 10 };
	write_file("t.bin", file, sizeof file);
	ok(read_text("t.bin") == YOKE_EFORMAT && strstr(yoke_error(), "u16:1024"), "as text: %s",
	   yoke_error());
	yoke_error_clear();
	ok(open_set("t.bin", NULL) == YOKE_EFORMAT && strstr(yoke_error(), "u16:1024"),
	   "without a format: %s", yoke_error());
	yoke_error_clear();
	memcpy(file, "\x93NUMPY\1\0", 8);
	write_file("t.bin", file, sizeof file);
	ok(open_set("t.bin", "format=u16 context=8") == YOKE_EFORMAT &&
		   strstr(yoke_error(), ".npy"),
	   "an array as tokens: %s", yoke_error());
	yoke_error_clear();
}

int main(void)
{
	tap_folder();
	refused();
	windows();
	raw();
	return done();
}
