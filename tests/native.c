// SPDX-License-Identifier: Apache-2.0
// Tests the CUDA and ROCm plugins over the fake drivers of tests/fake_gpu: a library that lacks
// any symbol, has another version or is missing; an error of any driver call; copies between
// devices that corrupt bytes. Each error is one line with the vendor's names, nothing leaks, and
// the program continues where possible. Each case is a child process, because libraries are
// loaded once per process.
#include "config.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../plugins/cuda/calls.h"
#include "../plugins/rocm/calls.h"
#include "base/error.h"
#include "device/plugin.h"
#include "kernel/kerneltext.h"
#include "tap.h"

enum { DRIVER, COMPILER, PRODUCTS, TELEMETRY, RANGES, BLAS, COLLECTIVES, PARTS, MAY, NEED };
struct symbol {
	int part, need;
	const char *name;
};
#define X(part, need, result, symbol, params) { part, need, #symbol },
static const struct symbol cuda_symbols[] = { YK_CUDA_CALLS(X) },
			   rocm_symbols[] = { YK_ROCM_CALLS(X) };
#undef X

static const struct vendor {
	const char *name, *library[PARTS]; // the fake drivers' directory
	const struct symbol *symbols;
	size_t n;
} vendors[] = {
	{ "cuda",
	  { "libcuda.so.1", "libnvrtc.so.13", "libcublasLt.so.13", "libnvidia-ml.so.1",
	    "libnvToolsExt.so.1", NULL, "libnccl.so.2" },
	  cuda_symbols,
	  sizeof cuda_symbols / sizeof *cuda_symbols },
	{ "rocm",
	  { "libamdhip64.so.6", "libhiprtc.so.6", "libhipblaslt.so.1", "librocm_smi64.so.7",
	    "libroctx64.so.4", "librocblas.so.4", "librccl.so.1" },
	  rocm_symbols,
	  sizeof rocm_symbols / sizeof *rocm_symbols },
};
static const struct vendor *vendor;
static char fake_gpu[4096], folder[4096]; // where the libraries are

// A child's results, in shared memory.
static struct found {
	uint32_t devices;
	int err, again;  // errors of all backend operations, and of a repetition
	char line[1024]; // text of the first error
	char notes[8192]; // for `yoke doctor`, and the log
	struct yoke_sample sample;
} *found;

// ---- a child ----

static const struct yoke_backend *gpu;
static const char *products_wanted = "0";
static bool units_wrong; // the text that tests matrix units then finds a wrong sum

static const char *setting(const struct yoke_setting *s)
{
	if (strstr(s->name, ".library_path"))
		return folder;
	if (strstr(s->name, ".products"))
		return products_wanted;
	if (!strcmp(s->name, "matmul"))
		return "tf32";
	return strstr(s->name, ".profile") ? "1" : s->def;
}

static const char *text_of(const char *name)
{
	static const char sum[] = "turned.x[i];";
	static char wrong[1 << 14];
	const char *right = yk_kernel_text(name),
		   *at = units_wrong && !strcmp(name, "units.cl") ? strstr(right, sum) : NULL;

	if (!at)
		return right;
	snprintf(wrong, sizeof wrong, "%.*sturned.x[i] + (float)(at == 77);%s", (int)(at - right),
		 right, at + strlen(sum));
	return wrong;
}

static int64_t program(int dialect, const struct yoke_op *op, const char *text, char *to,
		       size_t cap)
{
	return yk_kernel_source_of(text_of, dialect, op, text, to, cap);
}

static int64_t cache_get(const void *key, size_t key_bytes, void *to, size_t cap)
{
	(void)key, (void)key_bytes, (void)to, (void)cap;
	return YOKE_ENOENT;
}

static int cache_put(const void *key, size_t key_bytes, const void *data, size_t bytes)
{
	(void)key, (void)key_bytes, (void)data, (void)bytes;
	return 0;
}

static void note(const char *text)
{
	const size_t n = strlen(found->notes);

	snprintf(found->notes + n, sizeof found->notes - n, "%s\n", text);
}

static void hear(int level, const char *topic, const char *text)
{
	(void)topic;
	if (level <= YOKE_LOG_WARN)
		note(text);
}

static void blame(int code, const char *text)
{
	(void)code;
	if (!*found->line)
		snprintf(found->line, sizeof found->line, "%s", text);
}

static bool load(void)
{
	static struct yoke_host host;
	char path[4096], cwd[2048];

	if (!getcwd(cwd, sizeof cwd))
		return false;
	snprintf(path, sizeof path, "%s/plugins/%s/.libs/yoke_%s.so", cwd, vendor->name,
		 vendor->name);
	host = *yk_host();
	host.setting = setting;
	host.kernel_source = program;
	host.cache_get = cache_get;
	host.cache_put = cache_put;
	host.log = hear;
	host.error = blame;
	void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	yoke_plugin_init_fn *init = NULL;
	void *symbol = module ? dlsym(module, "yoke_plugin_init") : NULL;
	memcpy(&init, &symbol, sizeof init);
	return init && !init(YOKE_ABI, &host, &gpu) && !gpu->probe(&found->devices);
}

static struct yoke_map map = { .size = sizeof map, .ninsn = 2, .nin = 1, .nout = 1, .out = { 1 },
			       .insn = { { .op = YOKE_MAP_INPUT, .dtype = yoke_f32 },
					 { .op = YOKE_MAP_NEG, .dtype = yoke_f32 } } };

// y = -x of 64 elements, directly and in a graph, between copies and fills of every kind.
static int everything(void)
{
	enum { N = 64, BYTES = 4 * N };
	void *q[2] = { NULL }, *s[3] = { NULL }, *e[2] = { NULL }, *handle = NULL, *graph = NULL;
	struct yoke_view v[2];
	struct yoke_op op = { .size = sizeof op,
			      .code = YOKE_OP_MAP,
			      .rank = 1,
			      .nout = 1,
			      .nin = 1,
			      .dims = { N },
			      .out = &v[0],
			      .in = &v[1],
			      .map = &map };
	struct yoke_device_info info = { .size = sizeof info };
	float x[N], y[N];
	uint64_t bytes = 0, ns = 0;
	int err = gpu->queue_new(0, YOKE_QUEUE_COMPUTE, &q[0]);

	for (int i = 0; i < N; i++)
		x[i] = (float)i;
	err = err ? err : gpu->queue_new(0, YOKE_QUEUE_DOWN, &q[1]);
	for (int i = 0; i < 3; i++)
		err = err ? err :
			    gpu->segment_new(0, i == 2 ? YOKE_SEGMENT_HOST : YOKE_SEGMENT_DEVICE,
					     BYTES, &s[i]);
	for (uint32_t n = 1; n <= 8; n *= 2)
		err = err ? err : gpu->fill(q[0], s[0], 0, BYTES - 8, "yoke\1\2\3\4", n);
	err = err ? err : gpu->get(q[0], s[0], 0, y, BYTES);
	err = err ? err : gpu->get(q[0], s[2], 0, x, 4); // by the host, after all work of the queue
	err = err || (!memcmp(y, "yoke\1\2\3\4", 8) && !memcmp(y, (char *)y + 8, BYTES - 16)) ?
		      err :
		      YOKE_EFAILED;
	err = err ? err : gpu->put(q[0], s[1], 0, x, BYTES);
	err = err ? err : gpu->copy(q[0], s[0], 0, s[1], 0, BYTES);
	for (int i = 0; i < 2; i++)
		v[i] = (struct yoke_view){ .kind = YOKE_VIEW_BUFFER,
					   .dtype = yoke_f32,
					   .rank = 1,
					   .dims = { N },
					   .strides = { 1 },
					   .align = 256,
					   .segment = s[!i] };
	err = err ? err : gpu->device_info(0, &info);
	err = err ? err : gpu->prepare(0, &op, 0, 0, &handle, &bytes); // s[1] = -s[0]
	err = err ? err : gpu->event_mark(q[0], &e[0]);
	err = err ? err : gpu->run(q[0], handle, &op);
	err = err ? err : gpu->event_mark(q[0], &e[1]);
	err = err ? err : gpu->event_after(q[1], e[1]);
	err = err ? err : gpu->get(q[1], s[1], 0, y, BYTES);
	const int done = err ? 0 : gpu->event_done(e[1]);
	err = done < 0 ? done : err;
	err = err ? err : gpu->event_wait(e[1]);
	err = err ? err : gpu->event_elapsed(e[0], e[1], &ns);
	err = err ? err : gpu->get(q[1], s[2], 0, x, 4); // by the host, after all work of the queue
	err = err || (y[1] == -1 && y[N - 1] == 1 - N) ? err : YOKE_EFAILED;
	if (!err && !(err = gpu->graph_begin(q[0]))) {
		err = gpu->run(q[0], handle, &op);
		const int ended = gpu->graph_end(q[0], &graph);
		err = err ? err : ended;
		err = err ? err : gpu->fill(q[0], s[1], 0, BYTES, "\0\0\0\0", 4);
		err = err ? err : gpu->graph_run(q[0], graph);
		err = err ? err : gpu->get(q[0], s[1], 0, y, BYTES);
		err = err ? err : gpu->get(q[0], s[2], 0, x, 4);
		err = err || (y[1] == -1 && y[N - 1] == 1 - N) ? err : YOKE_EFAILED;
	}
	if (graph)
		gpu->graph_free(graph);
	for (int i = 0; i < 2; i++)
		gpu->event_free(e[i]);
	for (int i = 0; i < 2; i++)
		gpu->queue_free(q[i]);
	if (handle)
		gpu->release(handle);
	for (int i = 0; i < 3; i++)
		gpu->segment_free(0, s[i]);
	return err;
}

// y = a b of ones, by the vendor's product library.
static int product(void)
{
	enum { N = 32, BYTES = 4 * N * N };
	void *q = NULL, *s[3] = { NULL }, *handle = NULL;
	struct yoke_view v[3];
	struct yoke_op op = { .size = sizeof op,
			      .code = YOKE_OP_CONTRACT,
			      .nout = 1,
			      .nin = 2,
			      .nattr = 1,
			      .out = &v[0],
			      .in = &v[1] };
	const float one = 1;
	float y[N * N];
	uint64_t bytes = 0;
	int err = gpu->queue_new(0, YOKE_QUEUE_COMPUTE, &q);

	op.attr[0].i = yoke_f32;
	for (int i = 0; i < 3; i++) {
		err = err ? err : gpu->segment_new(0, YOKE_SEGMENT_DEVICE, 1 << 20, &s[i]);
		err = err ? err : gpu->fill(q, s[i], 0, BYTES, &one, sizeof one);
		v[i] = (struct yoke_view){ .kind = YOKE_VIEW_BUFFER,
					   .dtype = yoke_f32,
					   .rank = 2,
					   .dims = { N, N },
					   .strides = { N, 1 },
					   .align = 256,
					   .segment = s[i] };
	}
	const uint64_t some = err ? 0 : gpu->can(0, &op);
	err = err ? err :
		    gpu->prepare(0, &op, (uint32_t)__builtin_ctzll(some ? some : 1), 0, &handle,
				 &bytes);
	op.workspace = (struct yoke_view){ .kind = bytes ? YOKE_VIEW_BUFFER : YOKE_VIEW_NONE,
					   .dtype = yoke_u8,
					   .rank = 1,
					   .dims = { (int64_t)bytes },
					   .strides = { 1 },
					   .align = 256,
					   .segment = s[1],
					   .offset = 1 << 16 };
	err = err ? err : gpu->run(q, handle, &op);
	err = err ? err : gpu->get(q, s[0], 0, y, BYTES);
	void *e = NULL;
	err = err ? err : gpu->event_mark(q, &e);
	err = err ? err : gpu->event_wait(e);
	if (e)
		gpu->event_free(e);
	if (q)
		gpu->queue_free(q);
	if (handle)
		gpu->release(handle);
	for (int i = 0; i < 3; i++)
		if (s[i])
			gpu->segment_free(0, s[i]);
	return err || (y[0] == N && y[N * N - 1] == N) ? err : YOKE_EFAILED;
}

// Dtypes for which products by matrix units are offered: a bit each, in `again`.
static void units(void)
{
	static const uint8_t dtypes[] = { yoke_f16, yoke_bf16, yoke_f32, yoke_i8, yoke_u8 };

	for (size_t k = 0; k < sizeof dtypes; k++) {
		const struct yoke_view v = { .kind = YOKE_VIEW_BUFFER,
					     .dtype = dtypes[k],
					     .rank = 2,
					     .dims = { 64, 64 },
					     .strides = { 64, 1 },
					     .align = 256 };
		struct yoke_view all[3] = { v, v, v };
		struct yoke_op op = { .size = sizeof op,
				      .code = YOKE_OP_CONTRACT,
				      .nout = 1,
				      .nin = 2,
				      .nattr = 1,
				      .out = all,
				      .in = all + 1 };
		op.attr[0].i = yoke_f32;
		const uint64_t some = gpu->can(0, &op);
		for (uint32_t i = 0; i < 64; i++)
			if (some >> i & 1 && !strcmp(gpu->impl_name(0, &op, i), "matrix"))
				found->again |= 1 << dtypes[k];
	}
}

static void notes_alone(void)
{
	const char *line;
	const struct yoke_notes *notes = gpu->ext("notes");
	for (uint32_t i = 0; (line = notes->note(i)); i++)
		note(line);
}

static void all_of_it(void)
{
	if (!found->devices)
		return;
	found->err = everything();
	if (found->err)
		found->again = everything();
	notes_alone();
}

static void products_alone(void)
{
	if (!found->devices)
		return;
	found->err = product();
	if (found->err)
		found->again = product();
}

// Copies bytes from one device to the other; `again` is the error, which the core knows how to
// handle.
static void between(void)
{
	unsigned char x[1000], y[1000] = { 0 };
	void *q = NULL, *s[2] = { NULL };
	int err = gpu->queue_new(0, YOKE_QUEUE_COMPUTE, &q);

	for (size_t i = 0; i < sizeof x; i++)
		x[i] = (unsigned char)(i * 7);
	for (uint32_t i = 0; i < 2; i++)
		err = err ? err : gpu->segment_new(i, YOKE_SEGMENT_DEVICE, sizeof x, &s[i]);
	void *q1 = NULL;
	err = err ? err : gpu->queue_new(1, YOKE_QUEUE_COMPUTE, &q1);
	err = err ? err : gpu->put(q1, s[1], 0, x, sizeof x);
	err = err ? err : gpu->fill(q, s[0], 0, sizeof x, "\0", 1);
	void *e = NULL;
	err = err ? err : gpu->event_mark(q1, &e);
	err = err ? err : gpu->event_after(q, e);
	found->err = err;
	found->again = gpu->copy_between(q, 0, s[0], 100, 1, s[1], 50, 800);
	err = gpu->get(q, s[0], 0, y, sizeof y);
	err = err ? err : gpu->event_mark(q, &e);
	err = err ? err : gpu->event_wait(e);
	if (!found->again && (err || memcmp(y + 100, x + 50, 800) || y[99] || y[900]))
		found->err = YOKE_EFAILED;
}

static void telemetry(void)
{
	const struct yoke_telemetry *t = gpu->ext("telemetry");

	found->sample.size = sizeof found->sample;
	found->err = t->sample(0, &found->sample);
	struct yoke_sample small = { .size = 12 }; // an older core
	found->again = t->sample(0, &small) || small.size != 12 || small.util != 0;
}

// A kernel of an application that is not C++, then one with a missing parameter.
static void bad_kernels(void)
{
	static const char *const texts[] = {
		"extern \"C\" __global__ void f(int",
		"extern \"C\" __global__ void f(char *y) { *y = 0; }"
	};
	struct yoke_view y = { .kind = YOKE_VIEW_BUFFER,
			       .dtype = yoke_f32,
			       .rank = 1,
			       .dims = { 4 },
			       .strides = { 1 },
			       .align = 256 };
	struct yoke_source source = { .size = sizeof source,
				      .dialect = YOKE_DIALECT_CUDA,
				      .entry = "f",
				      .global = { 4, 1, 1 },
				      .local = { 4, 1, 1 } };
	struct yoke_op op = {
		.size = sizeof op, .code = YOKE_OP_SOURCE, .nout = 1, .out = &y, .source = &source
	};
	void *handle = NULL;
	uint64_t bytes;

	source.text = texts[0];
	found->err = gpu->prepare(0, &op, 0, 0, &handle, &bytes);
	note(found->line);
	found->line[0] = 0;
	source.text = texts[1];
	found->again = gpu->prepare(0, &op, 0, 0, &handle, &bytes);
}

// Runs it in a child with one additional environment variable.
static bool child(const char *name, const char *value, void (*run)(void))
{
	int status = -1;

	memset(found, 0, sizeof *found);
	fflush(stdout);
	const pid_t pid = fork();
	if (!pid) {
		if (name)
			setenv(name, value, 1);
		if (!load())
			_exit(2);
		run();
		_exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       !WEXITSTATUS(status);
}

// ---- libraries ----

static bool copy_file(const char *from, const char *to, const char *without)
{
	FILE *f = fopen(from, "rb"), *t = fopen(to, "wb");
	bool good = f && t, hit = !without;
	const size_t n = without ? strlen(without) : 0;
	long bytes = f && !fseek(f, 0, SEEK_END) ? ftell(f) : 0;
	char *data = malloc((size_t)bytes + 1);

	good = good && data && bytes > 0 && !fseek(f, 0, SEEK_SET) &&
	       fread(data, 1, (size_t)bytes, f) == (size_t)bytes;
	// the name in the string table, between two zeros
	for (long i = 1; good && without && i + (long)n < bytes; i++)
		if (!data[i - 1] && !data[i + (long)n] && !memcmp(data + i, without, n)) {
			data[i + (long)n - 1] ^= 1;
			hit = true;
		}
	good = good && fwrite(data, 1, (size_t)bytes, t) == (size_t)bytes;
	if (f)
		fclose(f);
	if (t && fclose(t))
		good = false;
	free(data);
	return good && hit;
}

// A directory with links to all libraries but one, which is a copy without a symbol, or `text`.
static bool make_folder(int part, const char *without, const char *text)
{
	char from[8192], to[8192];
	bool good = !mkdir(folder, 0700) || access(folder, F_OK) == 0;

	for (int i = 0; i < PARTS; i++) {
		if (!vendor->library[i])
			continue;
		snprintf(from, sizeof from, "%s/%s", fake_gpu, vendor->library[i]);
		snprintf(to, sizeof to, "%s/%s", folder, vendor->library[i]);
		unlink(to);
		if (i != part) {
			good &= !symlink(from, to);
		} else if (text) {
			FILE *f = fopen(to, "w");
			good &= f && fputs(text, f) >= 0;
			if (f)
				fclose(f);
		} else {
			good &= copy_file(from, to, without);
		}
	}
	return good;
}

static void lacking(void)
{
	char name[100];

	for (size_t i = 0; i < vendor->n; i++) {
		const struct symbol *s = &vendor->symbols[i];
		snprintf(name, sizeof name, "lacks %s", s->name);
		if (!tap_turn(name, 14))
			continue;
		// the vendor's own compiler, which is then used where it is installed, cannot
		// compile for a fake driver
		const bool good = make_folder(s->part, s->name, NULL) &&
				  child(NULL, NULL, s->part == COMPILER ? notes_alone : all_of_it);
		const char *said = strstr(found->line, s->name) ? found->line : found->notes;
		// a system library may be used instead
		const bool there =
			s->part >= PRODUCTS || s->need == MAY || strstr(found->notes, "driver  ");
		const bool works = !found->devices || !found->err ||
				   (s->need == MAY && found->err == YOKE_EUNSUPPORTED); // graphs
		ok(good && strstr(said, s->name) && (there || !found->devices) && works,
		   "%s: without %s, %u devices: %.200s", vendor->name, s->name, found->devices,
		   said);
	}
	make_folder(DRIVER, NULL, "no library");
	ok(child(NULL, NULL, all_of_it) &&
		   (strstr(found->line, "invalid ELF") || strstr(found->line, "too short") ||
		    strstr(found->notes, "too short")),
	   "%s: a driver that is not a library: %.200s%.200s", vendor->name, found->line,
	   found->notes);
	make_folder(-1, NULL, NULL);
}

// Number of occurrences of the text in the notes and the log.
static int times(const char *text)
{
	int n = 0;

	for (const char *at = found->notes; (at = strstr(at, text)); at += strlen(text))
		n++;
	return n;
}

// Devices unknown to the compiler, which supports 70, 75, 80, 86, 89, 90, 100 and 120; two of a
// kind give one warning.
static void newer_devices(void)
{
	static const struct {
		const char *arch, *notice;
	} cases[] = {
		{ "sm_130",
		  "NVRTC 13.0 does not know sm_130: kernels are compiled for sm_120 as PTX, which the driver compiles" },
		{ "sm_110",
		  "NVRTC 13.0 does not know sm_110: kernels are compiled for sm_100 as PTX, which the driver compiles" },
		{ "sm_121", "NVRTC 13.0 does not know sm_121: kernels are compiled for sm_120;" },
		{ "sm_90", NULL },
	};

	setenv("YOKE_FAKE_DEVICES", "2", 1);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const bool ran = child("YOKE_FAKE_ARCH", cases[i].arch, all_of_it);
		const int n = times("does not know");
		ok(ran && found->devices == 2 && !found->err && n == (cases[i].notice != NULL) &&
			   (!cases[i].notice || strstr(found->notes, cases[i].notice)),
		   "%s: %u devices, %s, %d warnings", cases[i].arch, found->devices,
		   yoke_error_name(found->err), n);
	}
	unsetenv("YOKE_FAKE_DEVICES");
	// a product library that needs a newer driver
	setenv("YOKE_FAKE_COMPILER", "12.4", 1);
	ok(child("YOKE_FAKE_VERSION", "12040", all_of_it) && found->devices == 1 && !found->err &&
		   times("libcublasLt.so.13 is of CUDA 13, the driver only of CUDA 12.4: update the driver, or install the libcublasLt of "
			 "CUDA 12") &&
		   !times("products  "),
	   "a product library newer than the driver: %.200s", found->notes);
	unsetenv("YOKE_FAKE_COMPILER");
}

static void versions(void)
{
	char to[8192], from[8192];
	const bool cuda = !strcmp(vendor->name, "cuda");

	snprintf(folder, sizeof folder, "%s/versions", getenv("TMPDIR"));
	make_folder(-1, NULL, NULL);
	if (cuda) {
		ok(child("YOKE_FAKE_VERSION", "12040", all_of_it) && !found->devices &&
			   strstr(found->line, "libnvrtc.so.13 ") &&
			   strstr(found->line, "CUDA 13.0") && strstr(found->line, "CUDA 12.4"),
		   "a compiler newer than the driver: %s", found->line);
		ok(child("YOKE_FAKE_ARCH", "sm_35", all_of_it) && !found->devices &&
		   strstr(found->line, "compiles for sm_") && strstr(found->line, "not for sm_35"),
		   "a device too old for the compiler: %s", found->line);
		newer_devices();
		return;
	}
	snprintf(from, sizeof from, "%s/%s", fake_gpu, vendor->library[COMPILER]);
	snprintf(to, sizeof to, "%s/%s", folder, vendor->library[COMPILER]);
	unlink(to);
	snprintf(to, sizeof to, "%s/libhiprtc.so.7", folder);
	ok(!symlink(from, to) && child(NULL, NULL, all_of_it) &&
		   ((strstr(found->line, "libhiprtc.so.7 ") && strstr(found->line, "ROCm 7") &&
		     strstr(found->line, "libamdhip64.so.6 ")) ||
		    (strstr(found->notes, "libhiprtc.so.7 ") && strstr(found->notes, "ROCm 7"))),
	   "a compiler of another major version: %s%s", found->line, found->notes);
	unlink(to);
	make_folder(-1, NULL, NULL);
	ok(child("YOKE_FAKE_ARCH", "gfx9999", all_of_it) && found->devices == 1 &&
		   found->err == YOKE_EUNSUPPORTED &&
		   strstr(found->line,
			  "hiprtcCompileProgram: HIPRTC_ERROR_COMPILATION on rocm:0") &&
		   strstr(found->line, "libhiprtc.so.6 does not compile for gfx9999: update ROCm"),
	   "a device unknown to the compiler: %s", found->line);
}

// ---- errors ----

// A call whose failure is not an error: there is an alternative, or the call only releases
// something.
static bool is_quiet(const char *call)
{
	static const char *const quiet[] = {
		"Destroy",
		"Free",
		"Unload",
		"Unregister",
		"Version",
		"GetErrorName",
		"GetErrorString",
		"Uuid",
		"PCIBusId",
		"DeviceGetName",
		"MemGetInfo",
		"FuncGet",
		"Peer",
		"Register",
		"Release",
		"Properties",
		"DeviceGetAttribute",
		"Occupancy",
		"destroy",
		"to_string",
	};

	for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++)
		if (strstr(call, quiet[i]))
			return true;
	return false;
}

static void errors(void)
{
	static const struct {
		int code, err;
		const char *cuda, *hip;
		bool lasts; // the device is lost
	} codes[] = {
		{ 1, YOKE_EDEVICE, "CUDA_ERROR_INVALID_VALUE", "hipErrorInvalidValue", false },
		{ 2, YOKE_ENOMEM, "CUDA_ERROR_OUT_OF_MEMORY", "hipErrorOutOfMemory", false },
		{ 3, YOKE_EDEVICE, "CUDA_ERROR_NOT_INITIALIZED", "hipErrorNotInitialized", false },
		{ 201, YOKE_EDEVICE, "CUDA_ERROR_INVALID_CONTEXT", "hipErrorInvalidContext",
		  false },
		{ 214, YOKE_EDEVICE, "CUDA_ERROR_ECC_UNCORRECTABLE", "hipErrorECCNotCorrectable",
		  true },
		{ 400, YOKE_EDEVICE, "CUDA_ERROR_INVALID_HANDLE", "hipErrorInvalidHandle", false },
		{ 700, YOKE_EDEVICE, "CUDA_ERROR_ILLEGAL_ADDRESS", "hipErrorIllegalAddress", true },
		{ 701, YOKE_EDEVICE, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
		  "hipErrorLaunchOutOfResources", false },
		{ 702, YOKE_EDEVICE, "CUDA_ERROR_LAUNCH_TIMEOUT", "hipErrorLaunchTimeOut", true },
		{ 719, YOKE_EDEVICE, "CUDA_ERROR_LAUNCH_FAILED", "hipErrorLaunchFailure", true },
		{ 999, YOKE_EDEVICE, "CUDA_ERROR_UNKNOWN", "hipErrorUnknown", false },
	};
	const bool cuda = !strcmp(vendor->name, "cuda");

	snprintf(folder, sizeof folder, "%s", fake_gpu);
	for (size_t i = 0; i < vendor->n; i++)
		for (size_t k = 0;
		     k < sizeof codes / sizeof *codes && vendor->symbols[i].part == DRIVER; k++) {
			const char *call = vendor->symbols[i].name,
				   *name = cuda ? codes[k].cuda : codes[k].hip;
			char fail[100];
			snprintf(fail, sizeof fail, "%s:1+:%d", call, codes[k].code);
			if (!tap_turn(fail, 48))
				continue;
			bool ran = child("YOKE_FAKE_FAIL", fail, all_of_it);
			const bool named = strstr(found->line, name);
			const bool right = !found->devices ? *found->line != 0 :
					   found->err ? named && found->err == codes[k].err :
							is_quiet(call);
			ok(ran && right, "%s: always %s: %s", call, name,
			   *found->line ? found->line : "no error");
			snprintf(fail, sizeof fail, "%s:1:%d", call, codes[k].code);
			ran = child("YOKE_FAKE_FAIL", fail, all_of_it);
			ok(ran && (!found->again || codes[k].lasts), "and once: %s, then %s",
			   yoke_error_name(found->err), yoke_error_name(found->again));
		}
}

// Error codes of the compiler and of the product libraries, for each of their calls.
static void library_errors(void)
{
	static const struct {
		int part, cuda, hip, err; // 0: it has no such code
		const char *cuda_name, *hip_name;
	} codes[] = {
		{ COMPILER, 1, 1, YOKE_ENOMEM, "NVRTC_ERROR_OUT_OF_MEMORY",
		  "HIPRTC_ERROR_OUT_OF_MEMORY" },
		{ COMPILER, 3, 3, YOKE_EUNSUPPORTED, "NVRTC_ERROR_INVALID_INPUT",
		  "HIPRTC_ERROR_INVALID_INPUT" },
		{ COMPILER, 4, 4, YOKE_EUNSUPPORTED, "NVRTC_ERROR_INVALID_PROGRAM",
		  "HIPRTC_ERROR_INVALID_PROGRAM" },
		{ COMPILER, 5, 5, YOKE_EUNSUPPORTED, "NVRTC_ERROR_INVALID_OPTION",
		  "HIPRTC_ERROR_INVALID_OPTION" },
		{ COMPILER, 6, 6, YOKE_EUNSUPPORTED, "NVRTC_ERROR_COMPILATION",
		  "HIPRTC_ERROR_COMPILATION" },
		{ COMPILER, 11, 11, YOKE_EUNSUPPORTED, "NVRTC_ERROR_INTERNAL_ERROR",
		  "HIPRTC_ERROR_INTERNAL_ERROR" },
		{ PRODUCTS, 1, 1, 0, "CUBLAS_STATUS_NOT_INITIALIZED",
		  "HIPBLAS_STATUS_NOT_INITIALIZED" },
		{ PRODUCTS, 3, 2, 0, "CUBLAS_STATUS_ALLOC_FAILED", "HIPBLAS_STATUS_ALLOC_FAILED" },
		{ PRODUCTS, 7, 3, 0, "CUBLAS_STATUS_INVALID_VALUE",
		  "HIPBLAS_STATUS_INVALID_VALUE" },
		{ PRODUCTS, 13, 5, 0, "CUBLAS_STATUS_EXECUTION_FAILED",
		  "HIPBLAS_STATUS_EXECUTION_FAILED" },
		{ PRODUCTS, 15, 7, 0, "CUBLAS_STATUS_NOT_SUPPORTED",
		  "HIPBLAS_STATUS_NOT_SUPPORTED" },
		{ BLAS, 0, 5, 0, NULL, "rocblas_status_memory_error" },
		{ BLAS, 0, 6, 0, NULL, "rocblas_status_internal_error" },
	};
	const bool cuda = !strcmp(vendor->name, "cuda");

	for (size_t i = 0; i < vendor->n; i++)
		for (size_t k = 0; k < sizeof codes / sizeof *codes; k++) {
			const struct symbol *s = &vendor->symbols[i];
			const int code = cuda ? codes[k].cuda : codes[k].hip;
			const char *name = cuda ? codes[k].cuda_name : codes[k].hip_name;
			char fail[100];
			snprintf(fail, sizeof fail, "%s:1+:%d", s->name, code);
			// a compiler without a version is skipped, and another one on the system
			// may be used
			if (s->part != codes[k].part || !code || !tap_turn(fail, 8) ||
			    strstr(s->name, "Version"))
				continue;
			products_wanted = s->part == COMPILER ? "0" : "1";
			snprintf(folder, sizeof folder, "%s", fake_gpu);
			if (s->part == BLAS) { // used where the other is missing
				snprintf(folder, sizeof folder, "%s/blas", getenv("TMPDIR"));
				make_folder(PRODUCTS, NULL, "no library");
			}
			const bool ran = child("YOKE_FAKE_FAIL", fail,
					       s->part == COMPILER ? all_of_it : products_alone);
			products_wanted = "0";
			const bool named =
				strstr(found->line, name) || strstr(found->line, "no algorithm");
			const bool known = found->err == YOKE_EUNSUPPORTED ||
					   found->err == YOKE_ENOMEM || found->err == YOKE_EDEVICE;
			// those that only other cases use
			const bool quiet = is_quiet(s->name) || strstr(s->name, "String") ||
					   strstr(s->name, "StatusName") ||
					   strstr(s->name, "PTX") || strstr(s->name, "Log") ||
					   strstr(s->name, "LayoutSet");
			const bool right =
				!found->devices ? *found->line != 0 :
				!found->err     ? quiet :
					      named && (codes[k].err ? found->err == codes[k].err :
								       known);
			ok(ran && right, "%s: always %s: %s, %s", s->name, name,
			   yoke_error_name(found->err), *found->line ? found->line : "no error");
		}
}

// The library that is used where the other is missing.
static void second_products(void)
{
	if (!vendor->library[BLAS])
		return;
	snprintf(folder, sizeof folder, "%s/blas", getenv("TMPDIR"));
	make_folder(PRODUCTS, NULL, "no library");
	products_wanted = "1";
	ok(child(NULL, NULL, products_alone) && !found->err,
	   "without %s, %s computes products: %s", vendor->library[PRODUCTS],
	   vendor->library[BLAS], found->line);
	products_wanted = "0";
}

static void kernels(void)
{
	const bool cuda = !strcmp(vendor->name, "cuda");

	snprintf(folder, sizeof folder, "%s", fake_gpu);
	ok(child(NULL, NULL, bad_kernels) && found->err == YOKE_EUNSUPPORTED &&
		   strstr(found->notes,
			  cuda ? "nvrtcCompileProgram: NVRTC_ERROR_COMPILATION on cuda:0" :
				 "hiprtcCompileProgram: HIPRTC_ERROR_COMPILATION on rocm:0") &&
		   strstr(found->notes, "error:"),
	   "a text that does not compile: %.300s", found->notes);
	// AMD's driver does not report parameters, and a fake driver's kernels have no code object
	ok(!cuda || (found->again == YOKE_EUNSUPPORTED && strstr(found->line, "has 1 parameters") &&
		     strstr(found->line, " 2: ")),
	   "a kernel with other parameters: %s", found->line);
	snprintf(folder, sizeof folder, "%s/nothing", getenv("TMPDIR"));
	const char *names[] = { "libcuda.so.1", "libamdhip64.so.7", "libamdhip64.so.6",
				"libamdhip64.so.5" };
	for (int i = cuda ? 0 : 1; i < (cuda ? 1 : 4); i++)
		if (dlopen(names[i], RTLD_LAZY)) {
			diag("%s is on this machine: nothing is tried without a driver", names[i]);
			return;
		}
	ok(child(NULL, NULL, all_of_it) && !found->devices &&
		   strstr(found->line, " not found; install ") && !*found->notes,
	   "no driver: %s", found->line);
}

// Matrix units are trusted after they computed the product of cl/units.cl; AMD's do not support
// tf32.
static void matrix_units(void)
{
	const int max = 1 << yoke_f16 | 1 << yoke_bf16 | 1 << yoke_i8 | 1 << yoke_u8;
	const int all = strcmp(vendor->name, "cuda") ? max : max | 1 << yoke_f32;

	snprintf(folder, sizeof folder, "%s", fake_gpu);
	bool ran = child(NULL, NULL, units);
	ok(ran && found->again == all && !*found->notes,
	   "%s: matrix units: dtypes %#x, %#x wanted: %s", vendor->name, found->again, all,
	   found->notes);
	units_wrong = true;
	ran = child(NULL, NULL, units);
	ok(ran && !found->again && strstr(found->notes, "f16, but "),
	   "%s: matrix units with a wrong product are not used: %#x, %s", vendor->name,
	   found->again, found->notes);
	units_wrong = false;
}

static void peers(void)
{
	static const char *const ways[] = { "", "none", "lie" };

	snprintf(folder, sizeof folder, "%s", fake_gpu);
	setenv("YOKE_FAKE_DEVICES", "2", 1);
	for (int i = 0; i < 3; i++) {
		const bool ran = child("YOKE_FAKE_PEER", ways[i], between), lies = i == 2;
		ok(ran && found->devices == 2 && !found->err &&
			   (lies ? found->again == YOKE_EUNSUPPORTED &&
					    strstr(found->notes, " data: ") :
				   !found->again),
		   "%s: copies between devices, %s: %s; %s", vendor->name, i ? ways[i] : "peers",
		   yoke_error_name(found->again), found->notes);
	}
	unsetenv("YOKE_FAKE_DEVICES");
}

// Device properties of the fake drivers, each from one of the vendors' libraries; and one that
// fails.
static void samples(void)
{
	const struct yoke_sample *s = &found->sample;
	const bool cuda = !strcmp(vendor->name, "cuda");
	const uint32_t both = YOKE_SAMPLE_UTIL | YOKE_SAMPLE_MEM_UTIL | YOKE_SAMPLE_MEM_USED |
			      YOKE_SAMPLE_MEM_TOTAL | YOKE_SAMPLE_TEMP | YOKE_SAMPLE_POWER |
			      YOKE_SAMPLE_POWER_LIMIT | YOKE_SAMPLE_ENERGY;
	const uint32_t clocks = YOKE_SAMPLE_CLOCK | YOKE_SAMPLE_CLOCK_MAX | YOKE_SAMPLE_MEM_CLOCK;

	snprintf(folder, sizeof folder, "%s", fake_gpu);
	const bool ran = child(NULL, NULL, telemetry);
	ok(ran && !found->err && !found->again && (s->known & both) == both && s->util == 0.5 &&
		   s->mem_util == 0.25 && s->mem_used == 1u << 30 &&
		   s->mem_total == (uint64_t)4 << 30 && s->temp_c == 61 && s->power_w == 151 &&
		   s->power_limit_w == 400 && s->energy_j > 0,
	   "%s: busy %g, %g C, %g of %g W, %g J: known %#x", vendor->name, s->util, s->temp_c,
	   s->power_w, s->power_limit_w, s->energy_j, s->known);
	if (cuda)
		ok((s->known & clocks) == clocks && s->clock_hz == 1200000000 &&
			   s->clock_max_hz == 1410000000 && s->energy_j == 123456.789 &&
			   !(s->known & YOKE_SAMPLE_FAN),
		   "clocks are known, fan speed is not");
	if (cuda)
		ok(child("YOKE_FAKE_MIG", "1", telemetry) && !found->err &&
			   !(s->known & YOKE_SAMPLE_UTIL) && s->known & YOKE_SAMPLE_POWER,
		   "a partitioned card: known %#x", s->known);
	ok(child("YOKE_FAKE_FAIL", cuda ? "nvmlInit_v2:1+:9" : "rsmi_init:1+:9", telemetry) &&
		   found->err == YOKE_EUNSUPPORTED &&
		   strstr(found->line, cuda ? "nvmlInit_v2: " : "rsmi_init: "),
	   "a device without telemetry: %s", found->line);
}

// Telemetry calls that always fail: if they find the device, there is no telemetry, and a line says
// why; each of the others only removes its own figures.
static void sample_errors(void)
{
	const bool cuda = !strcmp(vendor->name, "cuda");

	snprintf(folder, sizeof folder, "%s", fake_gpu);
	const bool all_ran = child(NULL, NULL, telemetry);
	const uint32_t all = found->sample.known;
	ok(all_ran && all, "%s: known telemetry: %#x", vendor->name, all);
	for (size_t i = 0; i < vendor->n; i++) {
		const struct symbol *s = &vendor->symbols[i];
		char fail[100];
		snprintf(fail, sizeof fail, "%s:1+:%d", s->name, cuda ? 999 : 6);
		if (s->part != TELEMETRY || !tap_turn(fail, 4))
			continue;
		const bool ran = child("YOKE_FAKE_FAIL", fail, telemetry);
		const uint32_t known = found->sample.known;
		const bool said = found->err == YOKE_EUNSUPPORTED && strstr(found->line, s->name);
		const bool less =
			!found->err && !(known & ~all) && __builtin_popcount(all ^ known) <= 2;
		ok(ran && (s->need == NEED ? said || known == all : less),
		   "%s: always fails: %s, known %#x %s", s->name, yoke_error_name(found->err),
		   known, found->line);
	}
}

int main(void)
{
	const char *path = getenv("YOKE_TEST_FAKE"), *tmp = getenv("TMPDIR");

	if (!path || access(path, R_OK) || !tmp) {
		printf("1..0 # SKIP YOKE_TEST_FAKE does not name the fake drivers\n");
		return 0;
	}
	snprintf(fake_gpu, sizeof fake_gpu, "%s", path);
	found = mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	for (size_t i = 0; found != MAP_FAILED && i < sizeof vendors / sizeof *vendors; i++) {
		char module[200];
		vendor = &vendors[i];
		snprintf(module, sizeof module, "plugins/%s/.libs/yoke_%s.so", vendor->name,
			 vendor->name);
		if (access(module, R_OK)) {
			diag("%s is not built", module);
			continue;
		}
		snprintf(folder, sizeof folder, "%s", fake_gpu);
		ok(child(NULL, NULL, all_of_it) && found->devices == 1 && !found->err,
		   "%s works: %s", vendor->name, found->line);
		snprintf(folder, sizeof folder, "%s/%s", tmp, vendor->name);
		lacking();
		versions();
		errors();
		library_errors();
		second_products();
		kernels();
		matrix_units();
		peers();
		samples();
		sample_errors();
	}
	return done();
}
