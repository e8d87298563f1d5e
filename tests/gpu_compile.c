// SPDX-License-Identifier: Apache-2.0
// Compilers for GPUs: NVRTC and hiprtc as libraries, as a driver uses them, and clang for AMD
// architectures that this machine's hiprtc does not support.
// YOKE_TEST_NVRTC is a colon-separated list of further libraries, YOKE_TEST_CLANG a clang,
// YOKE_TEST_BITCODE the directory of AMD's device libraries. The compilers' outputs are cached in
// the directory YOKE_TEST_COMPILED, one file per target, and cached texts are not compiled again,
// so that compiling all texts can be spread over several runs.
#define _GNU_SOURCE // dladdr
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "gpu_compile.h"
#include "yoke.h"

#define BIT(dtype) (1 << yoke_##dtype)

// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; the instruction
// set guides of CDNA and RDNA.
const struct target targets[TARGETS] = {
	{ "sm_70", false, 32, BIT(f16), 65536, 64, 1, 8, 96 << 10, 256, 0, 32 },
	{ "sm_80", false, 32, BIT(f16) | BIT(bf16) | BIT(i8) | BIT(u8), 65536, 64, 1, 8, 164 << 10,
	  128, 1024, 32 },
	{ "sm_90", false, 32, BIT(f16) | BIT(bf16) | BIT(i8) | BIT(u8), 65536, 64, 1, 8, 228 << 10,
	  128, 1024, 32 },
	{ "sm_100", false, 32, BIT(f16) | BIT(bf16) | BIT(i8) | BIT(u8), 65536, 64, 1, 8, 228 << 10,
	  128, 1024, 32 },
	{ "gfx906", true, 64, 0, 256, 10, 4, 4, 64 << 10, 512, 0, 40 },
	{ "gfx90a", true, 64, BIT(f16) | BIT(bf16) | BIT(i8) | BIT(u8), 512, 8, 4, 8, 64 << 10, 512,
	  0, 32 },
	{ "gfx942", true, 64, BIT(f16) | BIT(bf16) | BIT(i8) | BIT(u8), 512, 8, 4, 8, 64 << 10, 512,
	  0, 32 },
	{ "gfx1100", true, 32, BIT(f16) | BIT(bf16) | BIT(i8) | BIT(u8), 1536, 16, 2, 24, 64 << 10,
	  512, 0, 32 },
};

// ---- libraries that compile ----

struct library {
	void *handle;
	char name[200];
	int (*version)(int *, int *);
	int (*create)(void **, const char *, const char *, int, const char *const *,
		      const char *const *);
	int (*compile)(void *, int, const char *const *);
	int (*log_size)(void *, size_t *);
	int (*log)(void *, char *);
	int (*code_size)(void *, size_t *);
	int (*code)(void *, char *);
	int (*ptx_size)(void *, size_t *); // NVRTC's
	int (*ptx)(void *, char *);
	int (*destroy)(void **);
	int (*narch)(int *);
	int (*archs)(int *);
};

static void *symbol(const struct library *l, const char *prefix, const char *name)
{
	char full[64];

	snprintf(full, sizeof full, "%s%s", prefix, name);
	return dlsym(l->handle, full);
}

static bool open_library(struct library *l, const char *file, const char *prefix)
{
	const bool cuda = *prefix == 'n';

	if (!(l->handle = dlopen(file, RTLD_NOW | RTLD_LOCAL)))
		return false;
	snprintf(l->name, sizeof l->name, "%s", file);
	*(void **)&l->version = symbol(l, prefix, "Version");
	*(void **)&l->create = symbol(l, prefix, "CreateProgram");
	*(void **)&l->compile = symbol(l, prefix, "CompileProgram");
	*(void **)&l->log_size = symbol(l, prefix, "GetProgramLogSize");
	*(void **)&l->log = symbol(l, prefix, "GetProgramLog");
	*(void **)&l->code_size = symbol(l, prefix, cuda ? "GetCUBINSize" : "GetCodeSize");
	*(void **)&l->code = symbol(l, prefix, cuda ? "GetCUBIN" : "GetCode");
	*(void **)&l->ptx_size = symbol(l, prefix, "GetPTXSize");
	*(void **)&l->ptx = symbol(l, prefix, "GetPTX");
	*(void **)&l->destroy = symbol(l, prefix, "DestroyProgram");
	*(void **)&l->narch = symbol(l, prefix, "GetNumSupportedArchs");
	*(void **)&l->archs = symbol(l, prefix, "GetSupportedArchs");
	if (l->version && l->create && l->compile && l->log_size && l->log && l->code_size &&
	    l->code && l->destroy && (!cuda || (l->narch && l->archs)))
		return true;
	dlclose(l->handle);
	l->handle = NULL;
	return false;
}

enum { LIBRARIES = 8 };
static struct library nvrtc[LIBRARIES], hiprtc;
static int nnvrtc = -1;

static void open_all(void)
{
	static const char *const usual[] = { "libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so",
					     "libnvrtc.so.12", "libnvrtc.so.11.2" };
	static const char *const hip[] = { "libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5",
					   "libamdhip64.so.5" };
	char names[4096];
	const char *more = getenv("YOKE_TEST_NVRTC");

	if (nnvrtc >= 0)
		return;
	nnvrtc = 0;
	snprintf(names, sizeof names, "%s", more ? more : "");
	for (char *rest, *name = strtok_r(names, ":", &rest); name && nnvrtc < LIBRARIES;
	     name = strtok_r(NULL, ":", &rest))
		nnvrtc += open_library(&nvrtc[nnvrtc], name, "nvrtc");
	for (size_t i = 0; i < sizeof usual / sizeof *usual && nnvrtc < LIBRARIES; i++)
		nnvrtc += open_library(&nvrtc[nnvrtc], usual[i], "nvrtc");
	for (size_t i = 0; i < sizeof hip / sizeof *hip && !hiprtc.handle; i++)
		open_library(&hiprtc, hip[i], "hiprtc");
}

static bool has_arch(const struct library *l, int arch)
{
	int n = 0, all[64];

	if (l->narch(&n) || n > 64 || l->archs(all))
		return false;
	for (int i = 0; i < n; i++)
		if (all[i] == arch)
			return true;
	return false;
}

// The newest library that supports the target; NULL: none.
static const struct library *nvrtc_for(const struct target *t)
{
	const struct library *best = NULL;
	int max = 0;

	open_all();
	for (int i = 0; i < nnvrtc; i++) {
		int major = 0, minor = 0;
		if (!has_arch(&nvrtc[i], atoi(t->name + 3)) || nvrtc[i].version(&major, &minor) ||
		    major * 100 + minor <= max)
			continue;
		max = major * 100 + minor;
		best = &nvrtc[i];
	}
	return best;
}

// hiprtc of ROCm 5.2 ends the process for an unknown architecture.
static const struct library *hiprtc_for(const struct target *t)
{
	open_all();
	return hiprtc.handle && (!strcmp(t->name, "gfx906") || !strcmp(t->name, "gfx90a")) ?
		       &hiprtc :
		       NULL;
}

// ---- clang ----

// Candidates; the first that supports a target is used. Debian has a separate name for each
// version.
static const char *clang_command(int i)
{
	static const char *const usual[] = { "clang",    "clang-21", "clang-20",
					     "clang-19", "clang-18", "clang-17" };
	const char *named = getenv("YOKE_TEST_CLANG");

	if (named && *named)
		return i ? NULL : named;
	return (size_t)i < sizeof usual / sizeof *usual ? usual[i] : NULL;
}

static const char *bitcode_folder(void)
{
	const char *named = getenv("YOKE_TEST_BITCODE");

	return named && *named ? named : "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode";
}

static int clang_line(const char *clang, const struct target *t, const char *options,
		      const char *in, const char *out, char *to, size_t cap)
{
	static const char *const bitcode[] = { "ocml",
					       "oclc_daz_opt_off",
					       "oclc_unsafe_math_off",
					       "oclc_finite_only_off",
					       "oclc_correctly_rounded_sqrt_on",
					       "oclc_abi_version_400" };
	const char *src = getenv("srcdir");
	int n = snprintf(
		to, cap,
		"%s -x hip --cuda-device-only --offload-arch=%s -nogpuinc -nogpulib -O3 -std=c++17 -S "
		"-Wno-unused-command-line-argument -Wno-pass-failed -include %s/tests/hip.h %s -o %s",
		clang, t->name, src ? src : ".", options, out);

	for (size_t i = 0; i < sizeof bitcode / sizeof *bitcode; i++)
		n += snprintf(to + n, cap - (size_t)n,
			      " -Xclang -mlink-builtin-bitcode -Xclang %s/%s.bc", bitcode_folder(),
			      bitcode[i]);
	// Queries the version, because older versions lack some instructions.
	n += snprintf(
		to + n, cap - (size_t)n,
		" -Xclang -mlink-builtin-bitcode -Xclang %s/oclc_isa_version_%s.bc -Xclang -mlink-builtin-bitcode "
		"-Xclang %s/oclc_wavefrontsize64_%s.bc %s 2>&1",
		bitcode_folder(), t->warp == 32 ? "1030" : "90a", bitcode_folder(),
		t->warp == 32 ? "off" : "on", in);
	return n;
}

// The clang that compiles for a target; NULL: none.
static const char *clang_for(const struct target *t)
{
	static const char *known[TARGETS];
	static bool tried[TARGETS];
	char line[2000], in[] = "/tmp/gpu_compile_XXXXXX", whole[4000];
	const char **k = &known[t - targets], *clang;

	if (tried[t - targets])
		return *k;
	tried[t - targets] = true;
	const int fd = mkstemp(in);
	if (fd < 0)
		return NULL;
	close(fd);
	for (int i = 0; !*k && (clang = clang_command(i)); i++) {
		clang_line(clang, t, "", in, "/dev/null", line, sizeof line);
		snprintf(whole, sizeof whole, "(%s) >/dev/null", line);
		if (system(whole) == 0) // NOLINT
			*k = clang;
	}
	unlink(in);
	return *k;
}

bool target_ready(const struct target *t, const char **how)
{
	const struct library *l = t->amd ? hiprtc_for(t) : nvrtc_for(t);

	if (l) {
		*how = l->name;
		return true;
	}
	if (!t->amd) {
		*how = "no NVRTC that knows it (YOKE_TEST_NVRTC names libraries)";
		return false;
	}
	if ((*how = clang_for(t)))
		return true;
	*how = "neither hiprtc nor a clang that knows it (YOKE_TEST_CLANG, YOKE_TEST_BITCODE)";
	return false;
}

// ---- what is said of kernels ----

static struct usage *next_usage(struct usage *to, int room, int n)
{
	static struct usage none;

	return n < room ? &to[n] : &none;
}

// The output of `ptxas -v`, one kernel after another.
static int usage_of_ptxas(const char *log, struct usage *to, int room)
{
	static const char entry[] = "Compiling entry function '";
	int n = 0;

	for (const char *p = strstr(log, entry); p; n++) {
		struct usage *u = next_usage(to, room, n);
		const char *name = p + strlen(entry), *end = strstr(name, entry), *q;
		int stores = 0, loads = 0;
		memset(u, 0, sizeof *u);
		snprintf(u->kernel, sizeof u->kernel, "%.*s", (int)strcspn(name, "'"), name);
		if ((q = strstr(name, " bytes stack frame"))) {
			while (q > name && q[-1] >= '0' && q[-1] <= '9')
				q--;
			sscanf(q,
			       "%d bytes stack frame, %d bytes spill stores, %d bytes spill loads",
			       &u->stack, &stores, &loads);
		}
		u->spilled = stores + loads;
		if ((q = strstr(name, "Used ")) && (!end || q < end)) {
			const char *stop = q + strcspn(q, "\n"), *smem = strstr(q, " bytes smem");
			sscanf(q, "Used %d registers", &u->registers);
			if (smem && smem < stop) {
				while (smem > q && smem[-1] >= '0' && smem[-1] <= '9')
					smem--;
				u->local = atoi(smem);
			}
		}
		p = end;
	}
	return n;
}

// 16-byte loads in each kernel's PTX: "ld.global.nc.v4.f32", "ld.v4.u32" of a generic address; and
// copies of 16 bytes to shared memory.
static void count_wide(char *ptx, struct usage *to, int n)
{
	struct usage *of = NULL;
	char *rest;

	for (char *line = strtok_r(ptx, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		const char *entry = strstr(line, ".entry "), *load = strstr(line, "ld.");
		if (entry) {
			const size_t length = strcspn(entry + 7, "( ");
			of = NULL;
			for (int i = 0; i < n; i++)
				if (strlen(to[i].kernel) == length &&
				    !strncmp(to[i].kernel, entry + 7, length))
					of = &to[i];
		}
		const char *four = load ? strstr(load, ".v4.") : NULL,
			   *two = load ? strstr(load, ".v2.") : NULL;
		const bool global = load && !strstr(load, ".shared") && !strstr(load, ".local") &&
				    !strstr(load, ".param");
		if (of && strstr(line, "cp.async.cg."))
			of->wide++;
		if (of && global &&
		    ((four && atoi(four + 5) == 32) || (two && atoi(two + 5) == 64)))
			of->wide++;
	}
}

// The number after a key of AMD's metadata, as MessagePack or, in assembler text, as YAML.
static int number_at(const char *at, bool yaml)
{
	const unsigned char *p = (const unsigned char *)at;

	if (yaml)
		return atoi(at);
	switch (*p) {
	case 0xcc: return p[1];
	case 0xcd: return p[1] << 8 | p[2];
	case 0xce: return p[1] << 24 | p[2] << 16 | p[3] << 8 | p[4];
	default: return *p < 0x80 ? *p : -1;
	}
}

// The position after the next such key; NULL: none.
static const char *behind(const char *from, const char *end, const char *key, bool yaml)
{
	char mark[64];
	const size_t n = (size_t)(yaml ? snprintf(mark, sizeof mark, " .%s:", key) :
					 snprintf(mark, sizeof mark, "%c.%s",
						  (char)(0xa1 + strlen(key)), key));

	for (const char *p = from; from && p + n < end; p++)
		if (!memcmp(p, mark, n))
			return p + n;
	return NULL;
}

// Keys are sorted in each kernel's map.
static int usage_of_metadata(const char *code, size_t bytes, bool yaml, struct usage *to, int room)
{
	static const char first[] = "group_segment_fixed_size";
	const char *end = code + bytes, *p = behind(code, end, first, yaml);
	int n = 0;

	for (; p; p = behind(p, end, first, yaml), n++) {
		struct usage *u = next_usage(to, room, n);
		const char *q;
		memset(u, 0, sizeof *u);
		u->wide = -1;
		u->local = number_at(p, yaml);
		if ((q = behind(p, end, "max_flat_workgroup_size", yaml)))
			u->items = number_at(q, yaml);
		if ((q = behind(p, end, "private_segment_fixed_size", yaml)))
			u->stack = number_at(q, yaml);
		if ((q = behind(p, end, "symbol", yaml))) {
			q += yaml ? strspn(q, " ") : (unsigned char)*q == 0xd9 ? 2 : 1;
			snprintf(u->kernel, sizeof u->kernel, "%.*s", (int)strcspn(q, ".\n"), q);
		}
		if ((q = behind(p, end, "vgpr_count", yaml)))
			u->registers = number_at(q, yaml);
		// Without a stack they went to the accumulation registers; scalar ones go to lanes
		// of vector registers.
		if (u->stack && (q = behind(p, end, "vgpr_spill_count", yaml)))
			u->spilled = number_at(q, yaml);
	}
	return n;
}

// ---- compiling ----

enum { WORDS = 40 };

// Options in the compiler's syntax, in `room`.
static int words_of(const char *options, char *room, size_t cap, const char **to, int n)
{
	char *rest;

	snprintf(room, cap, "%s", options);
	for (char *w = strtok_r(room, " ", &rest); w && n < WORDS; w = strtok_r(NULL, " ", &rest))
		to[n++] = w;
	return n;
}

static int by_library(const struct library *l, const struct target *t, const char *text,
		      const char *options, struct usage *to, int room, char **log)
{
	char arch[40], words[1024];
	const char *argv[WORDS] = { arch };
	void *program = NULL;
	size_t bytes = 0;
	int n = 1, found = -1;

	snprintf(arch, sizeof arch, "--%s=%s", t->amd ? "offload-arch" : "gpu-architecture",
		 t->name);
	if (strstr(options, "-arch=")) // of a variant of the target
		n = 0;
	if (!t->amd)
		argv[n++] = "--ptxas-options=-v";
	n = words_of(options, words, sizeof words, argv, n);
	if (l->create(&program, text, "text.cu", 0, NULL, NULL))
		return -1;
	const int err = l->compile(program, n, argv);
	l->log_size(program, &bytes);
	if ((*log = calloc(1, bytes + 1)))
		l->log(program, *log);
	if (!err && *log && !t->amd)
		found = usage_of_ptxas(*log, to, room);
	for (int i = 0; i < found && i < room; i++)
		to[i].wide = l->ptx ? 0 : -1;
	if (found > 0 && l->ptx && l->ptx_size && !l->ptx_size(program, &bytes)) {
		char *ptx = calloc(1, bytes + 1);
		if (ptx && !l->ptx(program, ptx))
			count_wide(ptx, to, found < room ? found : room);
		free(ptx);
	}
	if (!err && t->amd && !l->code_size(program, &bytes)) {
		char *code = calloc(1, bytes + 1);
		if (code && !l->code(program, code))
			found = usage_of_metadata(code, bytes, false, to, room);
		free(code);
	}
	l->destroy(&program);
	return found;
}

static char *whole_of(FILE *f, size_t *bytes)
{
	char *to = NULL, part[4096];
	size_t n;

	*bytes = 0;
	while (f && (n = fread(part, 1, sizeof part, f))) {
		char *more = realloc(to, *bytes + n + 1);
		if (!more)
			break;
		to = more;
		memcpy(to + *bytes, part, n);
		*bytes += n;
		to[*bytes] = 0;
	}
	return to ? to : calloc(1, 1);
}

static int by_clang(const struct target *t, const char *text, const char *options, struct usage *to,
		    int room, char **log)
{
	char in[] = "/tmp/gpu_compile_XXXXXX", out[40], line[3000];
	const int fd = mkstemp(in);
	const size_t n = strlen(text);
	size_t bytes;
	int found = -1;

	if (fd < 0 || write(fd, text, n) != (ssize_t)n)
		return -1;
	close(fd);
	snprintf(out, sizeof out, "%s.s", in);
	clang_line(clang_for(t), t, options, in, out, line, sizeof line);
	FILE *f = popen(line, "r"); // NOLINT
	*log = whole_of(f, &bytes);
	const bool good = f && pclose(f) == 0;
	if (good && (f = fopen(out, "r"))) {
		char *assembly = whole_of(f, &bytes);
		fclose(f);
		if (assembly)
			found = usage_of_metadata(assembly, bytes, true, to, room);
		free(assembly);
	}
	unlink(in);
	unlink(out);
	return found;
}

static int compile(const struct target *t, const char *text, const char *options, struct usage *to,
		   int room, char **log)
{
	const struct library *l = t->amd ? hiprtc_for(t) : nvrtc_for(t);

	return l ? by_library(l, t, text, options, to, room, log) :
		   by_clang(t, text, options, to, room, log);
}

// ---- what was compiled before ----

// A line of a target's file has a hash, the number of kernels, and their reports. Another compiler
// has another hash: for a library of its file, for a clang of its version text, its command and the
// header before each text.
static uint64_t compiler_hash(const struct target *t)
{
	static uint64_t known[TARGETS];
	const struct library *l = t->amd ? hiprtc_for(t) : nvrtc_for(t);
	const char *src = getenv("srcdir");
	uint64_t *h = &known[t - targets];
	char line[3000], whole[3200];
	Dl_info info;
	struct stat st;
	size_t n;

	if (*h)
		return *h;
	if (l) {
		const bool found =
			dladdr(*(void *const *)&l->version, &info) && !stat(info.dli_fname, &st);
		const uint64_t file[] = { found ? (uint64_t)st.st_size : 0,
					  found ? (uint64_t)st.st_mtim.tv_sec : 0 };
		return *h = yk_hash(file, sizeof file, 1);
	}
	clang_line(clang_for(t), t, "", "", "", line, sizeof line);
	snprintf(whole, sizeof whole, "%s --version; cat %s/tests/hip.h", clang_for(t),
		 src ? src : ".");
	FILE *f = popen(whole, "r"); // NOLINT
	char *said = whole_of(f, &n);
	*h = yk_hash(said ? said : "", said ? n : 0, yk_hash(line, strlen(line), 2));
	free(said);
	if (f)
		pclose(f);
	return *h;
}

static bool kept_path(const struct target *t, char *to, size_t cap)
{
	const char *folder = getenv("YOKE_TEST_COMPILED");

	return folder && *folder && (!mkdir(folder, 0700) || errno == EEXIST) &&
	       snprintf(to, cap, "%s/%s", folder, t->name) < (int)cap;
}

// Number of kernels, or -1: it was not compiled.
static int kept(const struct target *t, uint64_t hash, struct usage *to, int room)
{
	static char *all[TARGETS];
	char path[1000], mark[20], **file = &all[t - targets];
	size_t bytes;
	int n = -1, on;

	if (!*file) {
		FILE *f = kept_path(t, path, sizeof path) ? fopen(path, "r") : NULL;
		*file = whole_of(f, &bytes);
		if (f)
			fclose(f);
	}
	snprintf(mark, sizeof mark, "%016llx ", (unsigned long long)hash);
	const char *at = *file ? strstr(*file, mark) : NULL;
	if (!at || sscanf(at + strlen(mark), "%d%n", &n, &on) != 1)
		return -1;
	at += strlen(mark) + (size_t)on;
	for (int i = 0; i < n && i < room; i++) {
		struct usage *u = &to[i];
		memset(u, 0, sizeof *u);
		if (sscanf(at, " %63s %d %d %d %d %d %d%n", u->kernel, &u->registers, &u->spilled,
			   &u->stack, &u->local, &u->items, &u->wide, &on) != 7)
			return -1;
		at += on;
	}
	return n;
}

static void keep(const struct target *t, uint64_t hash, const struct usage *all, int n, int room)
{
	char path[1000], line[8192];
	size_t at = 0;

	if (n < 0 || !kept_path(t, path, sizeof path))
		return;
	at += (size_t)snprintf(line, sizeof line, "%016llx %d", (unsigned long long)hash, n);
	for (int i = 0; i < n && i < room && at < sizeof line; i++)
		at += (size_t)snprintf(line + at, sizeof line - at, " %s %d %d %d %d %d %d",
				       all[i].kernel, all[i].registers, all[i].spilled,
				       all[i].stack, all[i].local, all[i].items, all[i].wide);
	FILE *f = at < sizeof line ? fopen(path, "a") : NULL;
	if (f) {
		fprintf(f, "%s\n", line);
		fclose(f);
	}
}

int target_compile(const struct target *t, const char *text, const char *options, struct usage *to,
		   int room, char **log)
{
	const uint64_t hash =
		yk_hash(text, strlen(text), yk_hash(options, strlen(options), compiler_hash(t)));
	int n = kept(t, hash, to, room);

	*log = NULL;
	if (n < 0)
		keep(t, hash, to, n = compile(t, text, options, to, room, log), room);
	return n;
}

// ---- occupancy ----

static int up(int n, int granule)
{
	return (n + granule - 1) / granule * granule;
}

int target_occupancy(const struct target *t, const struct usage *u, int items)
{
	const int warps = up(items, t->warp) / t->warp,
		  registers = up(u->registers ? u->registers : 1, t->granule);
	const int local =
		u->local ? up(u->local, t->local_granule) + t->local_group : t->local_group;
	int by_registers, groups = t->groups;

	if (t->amd) { // warps of a SIMD, among which a group's warps are distributed
		by_registers = t->registers / registers;
		by_registers =
			(by_registers < t->warps ? by_registers : t->warps) * t->simds / warps;
	} else {      // a quarter of the registers for each scheduler, allocated per warp
		by_registers = t->registers / 4 / (registers * t->warp) * 4 / warps;
	}
	groups = by_registers < groups ? by_registers : groups;
	if (local && t->local / local < groups)
		groups = t->local / local;
	const int max = t->warps * t->simds,
		  active = groups * warps < max ? groups * warps : max / warps * warps;
	return active * 100 / max;
}
