// SPDX-License-Identifier: Apache-2.0
// Tests sources that consist of several files or of none: .npz archives, lists of shards, pipes.
// With an argument FOLDER it writes hostile archives there, as seeds for tests/fuzz.
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#ifdef HAVE_LIBZIP
#include <zip.h>
#endif

#include "fuzz/targets.h"
#include "hostile.h"
#include "tap.h"
#include "yoke-data.h"

// A .npy file of f32 [rows, width], value first + i; its bytes.
static size_t make_npy(char *to, int rows, int width, float first, const char *descr)
{
	char dict[128];
	snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d), }",
		 descr, rows, width);
	const size_t header = 118;
	memcpy(to, "\x93NUMPY\x01\0\x76\0", 10);
	memset(to + 10, ' ', header);
	memcpy(to + 10, dict, strlen(dict));
	to[10 + header - 1] = '\n';
	float *x = (float *)(void *)(to + 10 + header);
	for (int i = 0; i < rows * width; i++)
		x[i] = first + (float)i;
	return 10 + header + 4 * (size_t)(rows * width);
}

static void refused(const char *path, const char *settings, int code, const char *say)
{
	yoke_dataset *d = yoke_dataset_open(path, settings);
	ok(!d && is_error(yoke_error_code(), code, say), "%s %s: %s", path,
	   settings ? settings : "", yoke_error());
	yoke_error_clear();
	yoke_dataset_free(d);
}

// ---- .npz ----

#ifdef HAVE_LIBZIP

enum { MEMBER = 1 << 16 };
static char member[4][MEMBER] __attribute__((aligned(64)));

static void add(zip_t *z, const char *name, const void *data, size_t n, bool packed)
{
	zip_source_t *s = zip_source_buffer(z, data, n, 0);
	const zip_int64_t i = zip_file_add(z, name, s, ZIP_FL_ENC_UTF_8);
	zip_set_file_compression(z, (zip_uint64_t)i, packed ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
}

static zip_t *begin(const char *path)
{
	unlink(path);
	return zip_open(path, ZIP_CREATE, NULL);
}

static void test_npz(void)
{
	for (int packed = 0; packed < 2; packed++) {
		const int rows = (int)rnd_int(1, 40);
		zip_t *z = begin("x.npz");
		add(z, "a.npy", member[0], make_npy(member[0], rows, 3, 0, "<f4"), packed);
		add(z, "notes.txt", "read me", 7, packed);
		add(z, "b.npy", member[1], make_npy(member[1], rows, 5, 100, "<f4"), packed);
		bool good = zip_close(z) == 0;
		yoke_dataset *d = good ? yoke_dataset_open("x.npz", NULL) : NULL;
		struct yoke_field f[2] = { { .size = sizeof *f } };
		good = d && yoke_dataset_count(d) == rows && yoke_dataset_fields(d, 2, f) == 2 &&
		       !strcmp(f[0].name, "a") && f[0].dims[0] == 3 && !strcmp(f[1].name, "b") &&
		       f[1].dims[0] == 5;
		unlink("x.npz"); // it is compressed
		for (int i = 0; i < rows && good; i++) {
			float x[3], y[5];
			void *to[] = { x, y };
			good = yoke_dataset_read(d, i, 0, 0, i, to, NULL) == 0;
			for (int k = 0; k < 3; k++)
				good = good && x[k] == (float)(3 * i + k);
			for (int k = 0; k < 5; k++)
				good = good && y[k] == (float)(100 + 5 * i + k);
		}
		yoke_dataset_free(d);
		ok(good, ".npz, %s: %s", packed ? "compressed" : "stored", yoke_error());
	}
}

static void hostile_npz(const char *path, int i)
{
	zip_t *z = begin(path);
	const size_t n = make_npy(member[0], 4, 3, 0, i == 1 ? "|O8" : i == 2 ? "<f8" : "<f4");
	if (i == 3)
		memcpy(member[0] + 10, "exit()", 6);
	make_npy(member[1], 5, 3, 0, "<f4");
	add(z, i == 4 ? "text" : "a.npy", member[0], n, i != 0);
	if (i == 5)
		add(z, "b.npy", member[1], n + 12, true);
	if (i == 6)
		add(z, "b.npy", "", 0, true);
	if (zip_close(z) < 0)
		abort();
}

static void test_hostile(void)
{
	static const struct {
		int code;
		const char *say;
	} row[] = { { 0, "" },
		    { YOKE_EUNSUPPORTED, "bad.npz: member a.npy: holds pickled" },
		    { YOKE_EFORMAT, "96 bytes, but 48" },
		    { YOKE_EFORMAT, "dict" },
		    { YOKE_EFORMAT, "holds no arrays" },
		    { YOKE_ESHAPE, "b has 5 rows, the others 4" },
		    { YOKE_EFORMAT, "member b.npy: it is shorter" } };
	const int open = open_files();
	for (int i = 1; i < 7; i++) {
		hostile_npz("bad.npz", i);
		refused("bad.npz", NULL, row[i].code, row[i].say);
	}
	hostile_npz("bad.npz", 0);
	refused("bad.npz", "fields=c", YOKE_ENOENT, "no array 'c'");
	refused("bad.npz", "dims=2", YOKE_EINVAL, ".npz files take no such key");
	yoke_setting_set("data.max", "100");
	refused("bad.npz", NULL, YOKE_ERANGE, "data.max = 100");
	yoke_setting_set("data.max", "1G");
	char *data;
	size_t n;
	bool good = yk_file_read("bad.npz", 1 << 20, &data, &n) == 0;
	for (size_t k = 0; k < n && good; k += 3) { // truncated anywhere
		yk_file_write("cut.npz", data, k);
		yoke_dataset *d = yoke_dataset_open("cut.npz", NULL);
		good = !d && yoke_error_code() == YOKE_EFORMAT && strstr(yoke_error(), "cut.npz") &&
		       !strchr(yoke_error(), '\n');
		yoke_error_clear();
		yoke_dataset_free(d);
	}
	ok(good && open_files() == open,
	   "truncated archives are refused, and no file is left open");
	for (int k = 0; k < tap_cases(150, 20000); k++) {
		const size_t at = (size_t)rnd_int(0, (int64_t)n - 1);
		const char was = data[at];
		data[at] = (char)rnd();
		yk_fuzz_npz((uint8_t *)data, n);
		data[at] = was;
	}
	// altered data has another checksum
	char *x = memmem(data, n, "NUMPY", 5);
	x[130] ^= 1;
	yk_file_write("bad.npz", data, n);
	refused("bad.npz", NULL, YOKE_EFORMAT, "bad.npz: member a.npy: CRC error");
	free(data);
	setenv("TMPDIR", "/nowhere", 1);
	hostile_npz("bad.npz", 0);
	refused("bad.npz", NULL, YOKE_EIO, "cannot make a file to unpack it to: /nowhere/yoke.");
	unsetenv("TMPDIR");
}
#endif

// ---- lists ----

static void test_lists(void)
{
	char npy[4096] __attribute__((aligned(64)));
	for (int i = 0; i < 3; i++) {
		char path[20];
		snprintf(path, sizeof path, "%c.npy", 'a' + i);
		yk_file_write(path, npy, make_npy(npy, 2 + i, 4, (float)(100 * i), "<f4"));
	}
	yoke_dataset *d = yoke_dataset_open("a.npy,b.npy,c.npy", NULL);
	bool good = d && yoke_dataset_count(d) == 9;
	for (int i = 0; i < 9 && good; i++) {
		const int file = i < 2 ? 0 : i < 5 ? 1 : 2, row = i - (i < 2 ? 0 : i < 5 ? 2 : 5);
		float x[4];
		void *to[] = { x };
		good = yoke_dataset_read(d, i, 0, 0, i, to, NULL) == 0 &&
		       x[3] == (float)(100 * file + 4 * row + 3);
	}
	ok(good, "files of a list are concatenated: %s", yoke_error());
	yoke_dataset_free(d);
	yk_file_write("a.npy", npy, make_npy(npy, 2, 5, 0, "<f4"));
	refused("a.npy,b.npy", NULL, YOKE_ESHAPE, "field x has other dims");
	refused("b.npy,,c.npy", NULL, YOKE_EINVAL, "an empty name");
	refused("b.npy,none.npy", NULL, YOKE_ENOENT, "none.npy");
	yk_file_write("b.csv", "x,k\n1,short\n2,b\n", 16);
	yk_file_write("c.csv", "x,k\n3,much longer than those\n", 29);
	d = yoke_dataset_open("b.csv,c.csv", "columns=k:text,x");
	struct yoke_field f[2] = { { .size = sizeof *f } };
	good = d && yoke_dataset_count(d) == 3 && yoke_dataset_fields(d, 2, f) == 2 &&
	       f[0].dims[0] >= 22;
	char text[64];
	float x;
	void *to[] = { text, &x };
	int64_t dims[2][YOKE_MAX_RANK];
	good = good && yoke_dataset_read(d, 2, 0, 0, 2, to, dims) == 0 && dims[0][0] == 22 &&
	       x == 3 && !memcmp(text, "much longer than those", 22) &&
	       yoke_dataset_read(d, 0, 0, 0, 0, to, dims) == 0 && dims[0][0] == 5;
	ok(good, "texts of a list are padded to the longest of all: %s", yoke_error());
	yoke_dataset_free(d);
	refused("b.csv,c.csv", "columns=k:category", YOKE_EINVAL,
		"c.csv: field k is of categories");
	yk_file_write("x,y.csv", "x\n1\n", 4);
	d = yoke_dataset_open("x,y.csv", NULL);
	ok(d != NULL, "a name with a comma: %s", yoke_error());
	yoke_dataset_free(d);
}

// ---- pipes ----

struct feeder {
	const char *path;
	const uint16_t *data;
	size_t n; // bytes, written in blocks of any size
};

static void *feed(void *arg)
{
	const struct feeder *f = arg;
	const int fd = open(f->path, O_WRONLY);
	uint64_t state = 7;
	for (size_t at = 0, k; at < f->n; at += k) {
		state = state * 6364136223846793005u + 1;
		k = 1 + (state >> 33) % 100;
		k = k > f->n - at ? f->n - at : k;
		if (write(fd, (const char *)f->data + at, k) != (ssize_t)k)
			break; // no more readers
	}
	close(fd);
	return NULL;
}

enum { TOKENS = 5000 };

// Windows of a stream are those of a file with the same bytes.
static void test_pipe(void)
{
	uint16_t data[TOKENS];
	for (int i = 0; i < TOKENS; i++)
		data[i] = (uint16_t)rnd_int(0, 999);
	yk_file_write("t.bin", data, sizeof data);
	yoke_dataset *file = yoke_dataset_open("t.bin", "format=u16:6 context=7 vocab=1000");
	const int64_t count = yoke_dataset_count(file);
	for (int k = 0; k < 4; k++) {
		struct feeder f = { "pipe", data, sizeof data };
		char settings[100], load[100];
		pthread_t thread;
		unlink("pipe");
		if (mkfifo("pipe", 0600) < 0 || pthread_create(&thread, NULL, feed, &f))
			abort();
		snprintf(settings, sizeof settings,
			 "format=u16:6 context=7 vocab=1000 count=%d keep=%d", (int)count,
			 k == 3 ? 999 : 200);
		snprintf(load, sizeof load,
			 "batch=9 workers=%d shuffle=%d seed=3 epochs=1 last=keep", k,
			 k == 0 ? 0 :
			 k == 3 ? 1 :
				  50);
		yoke_dataset *d = yoke_dataset_open("pipe", settings);
		yoke_loader *a = d ? yoke_loader_new(d, load) : NULL,
			    *b = yoke_loader_new(file, load);
		bool good = a && yoke_dataset_count(d) == count;
		int64_t seen = 0, rows = 1;
		while (good && rows > 0) {
			void *x[1], *y[1];
			rows = yoke_loader_host(b, 1, y, NULL);
			good = yoke_loader_host(a, 1, x, NULL) == rows &&
			       (rows == 0 || !memcmp(x[0], y[0], (size_t)rows * 32));
			seen += rows;
		}
		ok(good && seen == count, "a pipe through %s: %s", load, yoke_error());
		yoke_error_clear();
		yoke_loader_free(a);
		yoke_loader_free(b);
		yoke_dataset_free(d);
		pthread_join(thread, NULL);
	}
	yoke_dataset_free(file);
}

static void test_pipe_ends(void)
{
	uint16_t data[100] = { 0 };
	struct feeder f = { "pipe", data, 75 };
	pthread_t thread;
	float x[4];
	void *to[] = { x };
	if (pthread_create(&thread, NULL, feed, &f))
		abort();
	yoke_dataset *d = yoke_dataset_open("pipe", "format=f32 dims=2 count=20 keep=3");
	bool good = d && yoke_dataset_read(d, 7, 0, 0, 7, to, NULL) == 0 &&
		    yoke_dataset_read(d, 5, 0, 0, 5, to, NULL) == 0;
	ok(good, "samples are cached: %s", yoke_error());
	ok(yoke_dataset_read(d, 4, 0, 0, 4, to, NULL) == YOKE_EINVAL &&
		   strstr(yoke_error(), "sample 4 ") && strstr(yoke_error(), " 3 "),
	   "%s", yoke_error());
	yoke_error_clear();
	for (int i = 0; i < 2; i++) {
		ok(yoke_dataset_read(d, 9, 0, 0, 9, to, NULL) == YOKE_EIO &&
			   strstr(yoke_error(), "byte 75,") && strstr(yoke_error(), " 9 samples"),
		   "%s", yoke_error());
		yoke_error_clear();
	}
	yoke_dataset_free(d);
	pthread_join(thread, NULL);
	refused("pipe", "format=u16", YOKE_EINVAL, "count=, the samples of an epoch");
	refused("pipe", "count=7", YOKE_EINVAL, "a pipe takes format=TYPE");
	refused("pipe", "format=u16 count=7 columns=a", YOKE_EINVAL, "pipes take no such key");
}

// Waits for sample 9 of the pipe's dataset.
static void *read_ninth(void *dataset)
{
	static float x[4];
	void *to[] = { x };
	return yoke_dataset_read(dataset, 9, 0, 0, 9, to, NULL) == 0 ? x : NULL;
}

// A thread that waits for the writer of a pipe does not delay samples that are there.
static void test_pipe_waits(void)
{
	float data[20], x[2] = { NAN, NAN };
	void *to[] = { x }, *ninth = NULL;
	pthread_t reader;
	int unread = 1;
	for (int i = 0; i < 20; i++)
		data[i] = (float)i;
	unlink("pipe");
	if (mkfifo("pipe", 0600) < 0)
		abort();
	const int fd = open("pipe", O_RDWR); // never at its end
	yoke_dataset *d = yoke_dataset_open("pipe", "format=f32 dims=2 count=20 keep=20");
	if (fd < 0 || !d || write(fd, data, 36) != 36 ||
	    pthread_create(&reader, NULL, read_ninth, d))
		abort();
	while (unread && ioctl(fd, FIONREAD, &unread) == 0)
		sched_yield(); // until the reader has four samples and half of the next
	alarm(300); // against a hang
	ok(yoke_dataset_read(d, 3, 0, 0, 3, to, NULL) == 0 && x[0] == 6 && x[1] == 7,
	   "sample 3 while a thread waits for sample 9: %s", yoke_error());
	const bool sent =
		write(fd, (char *)data + 36, 44) == 44 && pthread_join(reader, &ninth) == 0;
	ok(sent && ninth && ((float *)ninth)[0] == 18 && ((float *)ninth)[1] == 19,
	   "sample 9 when it has come");
	alarm(0);
	yoke_dataset_free(d);
	close(fd);
}

static int write_seeds(const char *to)
{
	(void)to;
#ifdef HAVE_LIBZIP
	for (int i = 0; i < 7; i++) {
		char *data;
		size_t n;
		hostile_npz("seed.npz", i);
		if (yk_file_read("seed.npz", 1 << 20, &data, &n) == 0) {
			seed(to, "npz", i, data, n);
			free(data);
		}
	}
	unlink("seed.npz");
#endif
	return 0;
}

int main(int argc, char **argv)
{
	tap_seed();
	setenv("YOKE_LOG", "error", 1);
	if (argc > 1)
		return write_seeds(argv[1]);
	tap_folder();
#ifdef HAVE_LIBZIP
	test_npz();
	test_hostile();
#else
	skip(".npz", "built without libzip");
#endif
	test_lists();
	test_pipe();
	test_pipe_ends();
	test_pipe_waits();
	return done();
}
