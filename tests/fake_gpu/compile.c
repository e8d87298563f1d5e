// SPDX-License-Identifier: Apache-2.0
// Compiles kernel texts into shared objects, with the host's C++ compiler and prologue.h.  Objects
// are kept in YOKE_FAKE_CACHE, named by the hash of text, prologue, options and compiler, and are
// checked when they are read.
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec.h"

extern char **environ;

enum { MAX_WORDS = 96, MAX_KERNELS = 64, PATH = 1024 };

// ---- strings that grow ----

struct text {
	char *at;
	size_t n, cap;
	bool failed;
};

static void add(struct text *t, const char *from, size_t n)
{
	if (t->n + n + 1 > t->cap) {
		const size_t cap = (t->n + n + 1) * 2;
		char *at = realloc(t->at, cap);
		if (!at) {
			t->failed = true;
			return;
		}
		t->at = at;
		t->cap = cap;
	}
	memcpy(t->at + t->n, from, n);
	t->at[t->n += n] = '\0';
}

static void add_text(struct text *t, const char *from)
{
	add(t, from, strlen(from));
}

static bool read_file(const char *path, struct text *to)
{
	char part[65536];
	size_t n;
	FILE *f = fopen(path, "rb");

	if (!f)
		return false;
	while ((n = fread(part, 1, sizeof part, f)))
		add(to, part, n);
	const bool good = !ferror(f) && !to->failed;
	fclose(f);
	return good;
}

// Writes a temporary file and renames it, since other processes may read or write the same path.
static bool write_file(const char *path, const void *data, size_t bytes)
{
	char temporary[PATH + 32];

	snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
	const int fd = mkstemp(temporary);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "wb");
	if (!f) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	const bool whole = fwrite(data, 1, bytes, f) == bytes;
	if (!fclose(f) && whole && !rename(temporary, path))
		return true;
	unlink(temporary);
	return false;
}

// ---- options ----

struct words {
	char *word[MAX_WORDS];
	int n;
};

static void add_word(struct words *w, const char *format, const char *value)
{
	char word[PATH + 64];

	snprintf(word, sizeof word, format, value);
	if (w->n < MAX_WORDS - 1 && (w->word[w->n] = strdup(word)))
		w->n++;
	w->word[w->n] = NULL;
}

static void free_words(struct words *w)
{
	while (w->n)
		free(w->word[--w->n]);
}

static const char *behind(const char *word, const char *start)
{
	const size_t n = strlen(start);

	return strncmp(word, start, n) ? NULL : word + n;
}

// Headers with models of instructions, for architectures that have them.
static const struct model {
	const char *macro, *path;
} models[] = {
	{ "-DCUDA_ARCH=800", FAKE_UNITS },
	{ "-DFAKE_SM_90A=1", FAKE_WGMMA },
};
enum { MODELS = sizeof models / sizeof *models };

static bool has_model(const struct words *macros, const struct model *m)
{
	for (int i = 0; i < macros->n; i++)
		if (!strcmp(macros->word[i], m->macro))
			return true;
	return false;
}

// "sm_90a" or "compute_80". __CUDA_ARCH__ is not defined, because it enables NVIDIA's instructions;
// CUDA_ARCH selects those that the prologue leaves to models.
static bool cuda_arch(struct words *macros, const char *arch)
{
	const char *digits = behind(arch, "sm_");
	char *end;

	if (!digits && !(digits = behind(arch, "compute_")))
		return false;
	const long n = strtol(digits, &end, 10);
	if (n >= 80)
		add_word(macros, "%s", models[0].macro);
	if (!strcmp(arch, "sm_90a"))
		add_word(macros, "%s", models[1].macro);
	return end != digits && (!*end || !strcmp(end, "a") || !strcmp(end, "f")) && n >= 50 &&
	       n <= 130;
}

// "gfx90a:sramecc+:xnack-". __gfx90a__ and the like are not defined either, because they enable
// matrix units.
static bool hip_arch(struct words *macros, const char *arch)
{
	if (strncmp(arch, "gfx", 3) || strcspn(arch, ":") < 6)
		return false;
	add_word(macros, "-D__AMDGCN_WAVEFRONT_SIZE=%s", arch[3] == '1' ? "32" : "64");
	return true;
}

// Translates the vendor's options into those of the host's compiler, except the text's macros.
// False: an option that the vendor's compiler does not know.
static bool translate(struct words *w, struct words *macros, bool hip, int n,
		      const char *const *option, char *unknown, size_t cap)
{
	bool fused = !hip;
	char *all = NULL;

	for (int i = 0; i < n; i++) {
		char *rest, *word;
		free(all);
		if (!(all = strdup(option[i])))
			return false;
		for (word = strtok_r(all, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
			const char *v;
			if (behind(word, "-D") || behind(word, "-U")) {
				add_word(macros, "%s", word);
			} else if (behind(word, "-std=")) {
				add_word(w, "%s", word);
			} else if ((v = behind(word, "--std="))) {
				add_word(w, "-std=%s", v);
			} else if (!hip && (v = behind(word, "--define-macro="))) {
				add_word(macros, "-D%s", v);
			} else if (!hip && ((v = behind(word, "--gpu-architecture=")) ||
					    (v = behind(word, "-arch=")))) {
				if (!cuda_arch(macros, v))
					goto bad;
			} else if (hip && ((v = behind(word, "--offload-arch=")) ||
					   (v = behind(word, "--gpu-architecture=")))) {
				if (!hip_arch(macros, v))
					goto bad;
			} else if (!hip && ((v = behind(word, "-fmad=")) ||
					    (v = behind(word, "--fmad=")))) {
				fused = !strcmp(v, "true");
			} else if (hip && (v = behind(word, "-ffp-contract="))) {
				fused = strcmp(v, "off");
			} else if (hip ? word[0] != '-' || !strchr("fmOWw", word[1]) :
					 !behind(word, "-default-device") &&
						   !behind(word, "--device-as-default") &&
						   !behind(word, "-lineinfo") &&
						   !behind(word, "--generate-line-info") &&
						   !behind(word, "-w") &&
						   !behind(word, "--disable-warnings") &&
						   !behind(word, "--extra-device-vectorization") &&
						   !behind(word, "--dopt") &&
						   !behind(word, "--minimal")) {
				goto bad;
			}
			continue;
bad:
			snprintf(unknown, cap, "%s", word);
			free(all);
			return false;
		}
	}
	free(all);
	add_word(w, "-ffp-contract=%s", fused ? "fast" : "off");
	return true;
}

static void own_options(struct words *w, bool hip, bool check)
{
	static const char *const always[] = {
		"-O1",
		"-fPIC",
		"-fvisibility=hidden",
		"-fno-exceptions",
		"-fno-rtti",
		"-fno-math-errno",
		"-fno-asynchronous-unwind-tables",
		"-nostdinc",
		"-w",
	};

	for (size_t i = 0; i < sizeof always / sizeof *always; i++)
		add_word(w, "%s", always[i]);
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
		add_word(w, "%s", "-mavx2"); // fmaf would be a call
		add_word(w, "%s", "-mfma");
		add_word(w, "%s", "-mf16c");
	}
#endif
	if (hip) {
		add_word(w, "%s", "-D__HIP__=1");
		add_word(w, "%s", "-D__HIPCC_RTC__=1");
		add_word(w, "%s", "-D__HIP_PLATFORM_AMD__=1");
	} else {
		add_word(w, "%s", "-D__CUDACC__=1");
		add_word(w, "%s", "-D__CUDACC_RTC__=1");
	}
	if (check)
		add_word(w, "%s", "-DFAKE_CHECK=1");
}

static void check_options(struct words *w, bool clang)
{
	add_word(w, "%s", "-fsanitize=kernel-address,alignment");
	if (clang) {
		add_word(w, "%s", "-mllvm");
		add_word(w, "%s", "-asan-instrumentation-with-call-threshold=0");
		add_word(w, "%s", "-mllvm");
		add_word(w, "%s", "-asan-stack=0");
	} else {
		add_word(w, "%s", "--param=asan-instrumentation-with-call-threshold=0");
		add_word(w, "%s", "--param=asan-stack=0");
		add_word(w, "%s", "--param=asan-globals=1");
		add_word(w, "%s", "-fsanitize-sections=fake_shared");
	}
}

// ---- the compiler ----

// Runs the compiler; its output goes into log. -1: it does not exist.
static int run(struct words *w, const char *log_path)
{
	posix_spawn_file_actions_t actions;
	int status = -1;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, log_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	posix_spawn_file_actions_adddup2(&actions, 1, 2);
	const int err = posix_spawnp(&pid, w->word[0], &actions, NULL, w->word, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (err)
		return -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? (WEXITSTATUS(status) == 127 ? -1 : WEXITSTATUS(status)) : 1;
}

// The file of a program, its name being the first n characters, as a shell finds it.
static bool find_program(const char *name, size_t n, char file[PATH])
{
	snprintf(file, PATH, "%.*s", (int)n, name);
	if (memchr(name, '/', n))
		return !access(file, X_OK);
	for (const char *p = getenv("PATH"); p && *p; p += strcspn(p, ":"), p += *p == ':') {
		snprintf(file, PATH, "%.*s/%.*s", (int)strcspn(p, ":"), p, (int)n, name);
		if (!access(file, X_OK))
			return true;
	}
	return false;
}

// The command in YOKE_FAKE_CXX, or the first usual compiler in PATH.
static const char *compiler(void)
{
	static const char *const usual[] = { "g++", "c++", "clang++" };
	const char *named = fake_setting("CXX");
	char file[PATH];

	if (named)
		return named;
	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
		if (find_program(usual[i], strlen(usual[i]), file))
			return usual[i];
	return NULL;
}

static void add_compiler(struct words *w, const char *cxx)
{
	char *all = strdup(cxx), *rest;

	if (all)
		for (char *word = strtok_r(all, " ", &rest); word;
		     word = strtok_r(NULL, " ", &rest))
			add_word(w, "%s", word);
	free(all);
}

// ---- the text's kernels ----

struct found {
	char name[128];
};

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

// Returns the end of the token at p: a name, a string, a comment, or one character; NULL at the
// end.
static const char *behind_token(const char *p)
{
	const char quote = *p;

	if (!*p)
		return NULL;
	if (is_name(*p)) {
		while (is_name(*p))
			p++;
		return p;
	}
	if (p[0] == '/' && p[1] == '/')
		return p + strcspn(p, "\n");
	if (p[0] == '/' && p[1] == '*')
		return (p = strstr(p + 2, "*/")) ? p + 2 : NULL;
	if (quote != '"' && quote != '\'')
		return p + 1;
	for (p++; *p && *p != quote; p++)
		if (*p == '\\' && p[1])
			p++;
	return *p ? p + 1 : NULL;
}

static bool is_blank(const char *p)
{
	return isspace((unsigned char)*p) || (p[0] == '/' && (p[1] == '/' || p[1] == '*'));
}

static const char *skip_blank(const char *p)
{
	while (p && is_blank(p))
		p = behind_token(p);
	return p;
}

// Returns the position after the parenthesis that closes the one at p; NULL: none.
static const char *skip_parens(const char *p)
{
	int depth = 0;

	do {
		depth += *p == '(' ? 1 : *p == ')' ? -1 : 0;
		p = behind_token(p);
	} while (p && depth);
	return p;
}

static bool is_word(const char *p, const char *end, const char *word)
{
	return (size_t)(end - p) == strlen(word) && !strncmp(p, word, strlen(word));
}

static const char *behind_directive(const char *p)
{
	while (*p && *p != '\n')
		p += p[0] == '\\' && p[1] ? 2 : 1;
	return p;
}

// Returns the name of the macro that this line, up to end, defines as __global__; the macro may
// contain more.
static void global_macro(const char *line, const char *end, char *to, size_t cap)
{
	char copy[256], name[128];

	snprintf(copy, sizeof copy, "%.*s", (int)(end - line), line);
	if (sscanf(copy, "# define %127[A-Za-z0-9_]", name) == 1 && strstr(copy, "__global__"))
		snprintf(to, cap, "%s", name);
}

// Parses the text between __global__ and a kernel's parameters: the kernel's name, before the last
// parenthesis, and, in `bounds`, __launch_bounds__ if present, or a macro for it. NULL: not a
// kernel.
static const char *read_head(const char *p, struct found *to, struct text *bounds)
{
	bounds->n = 0;
	add_text(bounds, "0");
	while ((p = skip_blank(p)) && is_name(*p)) {
		const char *end = behind_token(p), *parens = skip_blank(end), *next = parens;
		if (parens && *parens == '(' &&
		    (!(next = skip_parens(parens)) || !(next = skip_blank(next))))
			return NULL;
		if (parens && *parens == '(' && (*next == '{' || *next == ';')) {
			snprintf(to->name, sizeof to->name, "%.*s", (int)(end - p), p);
			return end;
		}
		if (parens && *parens == '(') {
			add_text(bounds, " ");
			add(bounds, p, (size_t)(next - p));
		}
		p = next;
	}
	return NULL;
}

// Copies a text and lists its kernels. Inserts a macro with the kernel's bounds before the line of
// each kernel, under the same conditions of compilation; the macro marks later that the kernel
// exists.
static int scan(const char *p, struct text *to, struct found *found)
{
	struct text bounds = { NULL, 0, 0, false };
	char macro[128] = "__global__", line_of[64];
	const char *line_start = p, *next;
	unsigned line = 1;
	size_t at; // offset of the line's start, in `to`
	int n = 0;

	add_text(to, "#line 1 \"text.cu\"\n");
	for (at = to->n; (next = behind_token(p)); p = next) {
		struct found one;
		if (*p == '#') {
			next = behind_directive(p);
			global_macro(p, next, macro, sizeof macro);
			unsigned said;
			if (sscanf(p + 1, " line %u", &said) == 1)
				line = said - 1; // the next one
		} else if (is_name(*p) &&
			   (is_word(p, next, "__global__") || is_word(p, next, macro)) &&
			   read_head(next, &one, &bounds)) {
			bool had = n == MAX_KERNELS;
			for (int i = 0; i < n; i++)
				had = had || !strcmp(found[i].name, one.name);
			if (!had)
				found[n++] = one;
			to->n = at;
			add_text(to, "#define FAKE_BOUNDS_");
			add_text(to, one.name);
			add_text(to, " ");
			for (size_t i = 0; i < bounds.n; i++)
				bounds.at[i] = bounds.at[i] == '\n' ? ' ' : bounds.at[i];
			add(to, bounds.at, bounds.n);
			snprintf(line_of, sizeof line_of, "\n#line %u\n", line);
			add_text(to, line_of);
			at = to->n;
			add(to, line_start, (size_t)(p - line_start));
		}
		add(to, p, (size_t)(next - p));
		for (const char *c = p; c < next; c++)
			if (*c == '\n') {
				line++;
				line_start = c + 1;
				at = to->n - (size_t)(next - line_start);
			}
	}
	add_text(to, p); // an unterminated token
	free(bounds.at);
	return n;
}

static void add_table(struct text *t, const struct found *found, int n)
{
	char line[1024];

	add_text(t, "\n#line 1 \"table.cu\"\n");
	for (int i = 0; i < n; i++) {
		snprintf(line, sizeof line,
			 "#ifdef FAKE_BOUNDS_%s\n"
			 "FAKE_BARE static void fake_call_%d(void **p)\n"
			 "{ fake_entry<decltype(%s)>::call(%s, p); }\n"
			 "#endif\n",
			 found[i].name, i, found[i].name, found[i].name);
		add_text(t, line);
	}
	add_text(t,
		 "#undef __launch_bounds__\n#define __launch_bounds__(threads, ...) + (threads)\n"
		 "static const fake_kernel fake_kernels[] = {\n");
	for (int i = 0; i < n; i++) {
		snprintf(line, sizeof line,
			 "#ifdef FAKE_BOUNDS_%s\n"
			 "{ \"%s\", fake_call_%d, fake_entry<decltype(%s)>::count, "
			 "fake_entry<decltype(%s)>::bytes, (unsigned)(FAKE_BOUNDS_%s) },\n"
			 "#endif\n",
			 found[i].name, found[i].name, i, found[i].name, found[i].name,
			 found[i].name);
		add_text(t, line);
	}
	add_text(
		t,
		"{ 0, 0, 0, 0, 0 } };\n"
		"extern \"C\" const fake_object fake_object __attribute__((visibility(\"default\"))) = {\n"
		"&fake_state, fake_kernels, sizeof fake_kernels / sizeof *fake_kernels - 1,\n"
		"&fake_shared_count, fake_shared_vars,\n"
		"__start_fake_shared, __stop_fake_shared, __ehdr_start, _end };\n");
}

// ---- compiling ----

struct job {
	const char *cxx, *folder;
	bool hip, check, clang;
	struct words options, macros; // the same for all texts of a device; of the text
	char in[PATH], out[PATH], log[PATH], prologue[PATH];
};

static int failed(struct job *j, struct text *log)
{
	read_file(j->log, log);
	return 1;
}

static void add_command(struct words *w, const struct job *j)
{
	add_compiler(w, j->cxx);
	for (int i = 0; i < j->options.n; i++)
		add_word(w, "%s", j->options.word[i]);
	if (j->check)
		check_options(w, j->clang);
}

// Adds what all objects depend on: the compiler's command, its file, which an update replaces, and
// the prologue.
static void hash_compiler(const struct job *j, const struct words *w, const struct text *prologue,
			  uint64_t h[2])
{
	struct stat st;
	char file[PATH];
	int64_t version[3] = { 0 };

	if (find_program(j->cxx, strcspn(j->cxx, " "), file) && !stat(file, &st)) {
		version[0] = st.st_size;
		version[1] = st.st_mtim.tv_sec;
		version[2] = st.st_mtim.tv_nsec;
	}
	for (int k = 0; k < 2; k++) {
		h[k] = fake_hash((uint64_t)k + 1, version, sizeof version);
		h[k] = fake_hash(h[k], j->cxx, strlen(j->cxx) + 1);
		for (int i = 0; i < w->n; i++)
			h[k] = fake_hash(h[k], w->word[i], strlen(w->word[i]) + 1);
		h[k] = fake_hash(h[k], prologue->at, prologue->n);
	}
}

static bool copy_file(const char *from, const char *to)
{
	struct text all = { NULL, 0, 0, false };
	const bool good = read_file(from, &all) && write_file(to, all.at, all.n);

	free(all.at);
	return good;
}

// GCC reads a precompiled header in a third of the time, and ignores one that does not fit.  The
// header is a copy of the prologue in the cache, because the source tree may be gone when another
// clone uses it.  If precompiling fails, and for other compilers, the prologue is read as text.
static void precompile(struct job *j, const struct text *prologue)
{
	char folder[PATH - 16], header[PATH], precompiled[PATH + 8], abi[PATH];
	struct words w = { { NULL }, 0 };
	uint64_t h[2];

	snprintf(j->prologue, sizeof j->prologue, "%s", FAKE_PROLOGUE);
	if (j->clang)
		return;
	add_command(&w, j);
	hash_compiler(j, &w, prologue, h);
	const int n = snprintf(folder, sizeof folder, "%s/%016llx%016llx", j->folder,
			       (unsigned long long)h[0], (unsigned long long)h[1]);
	if (n < 0 || (size_t)n >= sizeof folder)
		goto out;
	snprintf(header, sizeof header, "%s/prologue.h", folder);
	snprintf(abi, sizeof abi, "%s/abi.h", folder);
	snprintf(precompiled, sizeof precompiled, "%s.gch", header);
	if (utimensat(AT_FDCWD, precompiled, NULL, 0)) { // marks it as used, for tests/kernel_cache
		mkdir(folder, 0700);
		if (!copy_file(FAKE_PROLOGUE, header) || !copy_file(FAKE_ABI, abi))
			goto out;
		add_word(&w, "%s", "-xc++-header");
		add_word(&w, "%s", header);
		add_word(&w, "-o%s", j->out);
		if (run(&w, j->log) || !copy_file(j->out, precompiled))
			goto out;
	}
	snprintf(j->prologue, sizeof j->prologue, "%s", header);
out:
	free_words(&w);
}

static int compile(struct job *j, const char *text, const struct text *prologue,
		   struct text *object, struct text *log)
{
	struct words w = { { NULL }, 0 };
	struct text whole = { NULL, 0, 0, false };
	struct found *found = calloc(MAX_KERNELS, sizeof *found);
	int n, status = 3;

	if (!found)
		goto out;
	n = scan(text, &whole, found);
	add_table(&whole, found, n);
	if (whole.failed || !write_file(j->in, whole.at, whole.n))
		goto out;
	precompile(j, prologue);
	add_command(&w, j);
	for (int i = 0; i < j->macros.n; i++)
		add_word(&w, "%s", j->macros.word[i]);
	add_word(&w, "%s", "-include"); // first the prologue, which may be precompiled
	add_word(&w, "%s", j->prologue);
	for (int i = 0; i < MODELS; i++)
		if (has_model(&j->macros, &models[i])) {
			add_word(&w, "%s", "-include");
			add_word(&w, "%s", models[i].path);
		}
	add_word(&w, "%s", "-shared");
	add_word(&w, "%s", "-nostdlib"); // module.c links libm
	add_word(&w, "%s", "-Wl,-Bsymbolic"); // its checks are separate
	add_word(&w, "%s", "-xc++");
	add_word(&w, "%s", j->in);
	add_word(&w, "-o%s", j->out);
	status = run(&w, j->log);
	if (status)
		status = status < 0 ? 3 : failed(j, log);
	else if (!read_file(j->out, object))
		status = 3;
out:
	free_words(&w);
	free(found);
	free(whole.at);
	return status;
}

static const char *temporary_folder(void)
{
	const char *folder = getenv("TMPDIR");

	return folder && *folder ? folder : "/tmp";
}

static void name_files(struct job *j)
{
	const char *folder = temporary_folder();
	const long me = (long)getpid();
	static unsigned calls;
	const unsigned call = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);

	snprintf(j->in, sizeof j->in, "%s/fake.%ld.%u.cu", folder, me, call);
	snprintf(j->out, sizeof j->out, "%s/fake.%ld.%u.so", folder, me, call);
	snprintf(j->log, sizeof j->log, "%s/fake.%ld.%u.log", folder, me, call);
}

static void name_kept(const struct job *j, const char *text, const struct text *prologue,
		      char kept[PATH])
{
	uint64_t h[2];

	hash_compiler(j, &j->options, prologue, h);
	for (int k = 0; k < 2; k++) {
		for (int i = 0; i < j->macros.n; i++)
			h[k] = fake_hash(h[k], j->macros.word[i], strlen(j->macros.word[i]) + 1);
		h[k] = fake_hash(h[k], text, strlen(text));
	}
	snprintf(kept, PATH, "%s/%016llx%016llx.so", j->folder, (unsigned long long)h[0],
		 (unsigned long long)h[1]);
}

// A binary from the cache: false if there is none, or it is damaged.
static bool read_kept(const char *kept, struct text *binary)
{
	struct fake_binary head;

	if (utimensat(AT_FDCWD, kept, NULL, 0) || !read_file(kept, binary))
		return false;
	if (binary->n >= sizeof head) {
		memcpy(&head, binary->at, sizeof head);
		if (!memcmp(head.magic, FAKE_MAGIC, sizeof head.magic) &&
		    head.bytes == binary->n - sizeof head &&
		    head.hash == fake_hash(0, binary->at + sizeof head, head.bytes))
			return true;
	}
	binary->n = 0;
	return false;
}

static void add_head(struct text *binary, const struct text *object, bool check)
{
	struct fake_binary head = { .bytes = object->n,
				    .hash = fake_hash(0, object->at, object->n),
				    .check = check };

	memcpy(head.magic, FAKE_MAGIC, sizeof head.magic);
	add(binary, (const char *)&head, sizeof head);
	add(binary, object->at, object->n);
}

static bool is_clang(const char *cxx)
{
	return strstr(cxx, "clang") != NULL;
}

int fake_compile(const char *text, int options, const char *const *option, bool hip, void **binary,
		    size_t *bytes, char **log)
{
	struct job j = { .cxx = compiler(), .folder = fake_setting("CACHE"), .hip = hip,
			 .check = fake_number("CHECK", 0) != 0 };
	struct text prologue = { NULL, 0, 0, false }, object = prologue, all = prologue,
		    output = prologue;
	char kept[PATH], unknown[256] = "";
	size_t precompiled; // bytes
	int status = 3;

	*binary = NULL;
	*bytes = 0;
	add_text(&output, "");
	if (!j.folder)
		j.folder = temporary_folder();
	mkdir(j.folder, 0700);
	if (!translate(&j.options, &j.macros, hip, options, option, unknown, sizeof unknown)) {
		add_text(&output, "unrecognized option ");
		add_text(&output, unknown);
		status = 2;
		goto out;
	}
	own_options(&j.options, hip, j.check);
	if (!j.cxx || !read_file(FAKE_PROLOGUE, &prologue) || !read_file(FAKE_ABI, &prologue)) {
		add_text(&output, j.cxx ? "the fake driver's prologue is not there" :
					  "no C++ compiler in PATH");
		goto out;
	}
	j.clang = is_clang(j.cxx);
	precompiled = prologue.n;
	for (int i = 0; i < MODELS; i++)
		if (has_model(&j.macros, &models[i]) && !read_file(models[i].path, &prologue)) {
			add_text(&output, models[i].path);
			add_text(&output, " is not there");
			goto out;
		}
	name_kept(&j, text, &prologue, kept);
	prologue.n = precompiled;
	status = 0;
	if (!read_kept(kept, &all)) {
		name_files(&j);
		status = compile(&j, text, &prologue, &object, &output);
		if (!status) {
			add_head(&all, &object, j.check);
			write_file(kept, all.at, all.n);
		}
		unlink(j.in);
		unlink(j.out);
		unlink(j.log);
	}
	if (!status && all.failed)
		status = 3;
	if (!status) {
		*binary = all.at;
		*bytes = all.n;
		all.at = NULL;
	}
out:
	free_words(&j.options);
	free_words(&j.macros);
	free(prologue.at);
	free(object.at);
	free(all.at);
	*log = output.at;
	return status;
}
