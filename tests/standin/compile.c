// SPDX-License-Identifier: Apache-2.0
// Kernel texts into shared objects, by the host's C++ compiler behind prologue.h.  What was compiled stays in
// YOKE_STANDIN_CACHE, under the hash of all that it depends on.
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

// All of it or no file.
static bool write_file(const char *path, const void *data, size_t bytes)
{
	char now[PATH + 32];

	snprintf(now, sizeof now, "%s.%ld", path, (long)getpid());
	FILE *f = fopen(now, "wb");
	if (!f)
		return false;
	const bool whole = fwrite(data, 1, bytes, f) == bytes;
	if (!fclose(f) && whole && !rename(now, path))
		return true;
	unlink(now);
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

// "sm_90a" or "compute_80".  __CUDA_ARCH__ is not defined: behind it stand instructions of NVIDIA's.
static bool cuda_arch(const char *arch)
{
	const char *digits = behind(arch, "sm_");
	char *end;

	if (!digits && !(digits = behind(arch, "compute_")))
		return false;
	const long n = strtol(digits, &end, 10);
	return end != digits && (!*end || !strcmp(end, "a") || !strcmp(end, "f")) && n >= 50 && n <= 130;
}

// "gfx90a:sramecc+:xnack-".  Neither are __gfx90a__ and its like: with them come matrix units.
static bool hip_arch(struct words *w, const char *arch)
{
	if (strncmp(arch, "gfx", 3) || strcspn(arch, ":") < 6)
		return false;
	add_word(w, "-D__AMDGCN_WAVEFRONT_SIZE=%s", arch[3] == '1' ? "32" : "64");
	return true;
}

// The vendor's options in the words of the host's compiler.  False: one that the vendor's compiler does not know.
static bool translate(struct words *w, bool hip, int n, const char *const *option, char *unknown, size_t cap)
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
			if (behind(word, "-D") || behind(word, "-U") || behind(word, "-std=")) {
				add_word(w, "%s", word);
			} else if ((v = behind(word, "--std="))) {
				add_word(w, "-std=%s", v);
			} else if (!hip && (v = behind(word, "--define-macro="))) {
				add_word(w, "-D%s", v);
			} else if (!hip && ((v = behind(word, "--gpu-architecture=")) || (v = behind(word, "-arch=")))) {
				if (!cuda_arch(v))
					goto bad;
			} else if (hip && ((v = behind(word, "--offload-arch=")) || (v = behind(word, "--gpu-architecture=")))) {
				if (!hip_arch(w, v))
					goto bad;
			} else if (!hip && ((v = behind(word, "-fmad=")) || (v = behind(word, "--fmad=")))) {
				fused = !strcmp(v, "true");
			} else if (hip && (v = behind(word, "-ffp-contract="))) {
				fused = strcmp(v, "off");
			} else if (hip ? word[0] != '-' || !strchr("fmOWw", word[1]) :
					 !behind(word, "-default-device") && !behind(word, "--device-as-default") &&
						 !behind(word, "-lineinfo") && !behind(word, "--generate-line-info") &&
						 !behind(word, "-w") && !behind(word, "--disable-warnings") &&
						 !behind(word, "--extra-device-vectorization") && !behind(word, "--dopt") &&
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
		"-O1", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-fno-math-errno",
		"-fno-asynchronous-unwind-tables", "-nostdinc", "-w",
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
		add_word(w, "%s", "-DSTANDIN_CHECK=1");
}

// For what is preprocessed.
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
		add_word(w, "%s", "-fsanitize-sections=standin_shared");
	}
}

// ---- the compiler ----

// Runs it; its output goes into log.  -1: it is not there.
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

// $YOKE_STANDIN_CXX as words, or the first of the usual ones that is in PATH.
static const char *compiler(void)
{
	static const char *const usual[] = { "g++", "c++", "clang++" };
	const char *path = getenv("PATH"), *named = standin_setting("CXX");
	char file[PATH];

	if (named)
		return named;
	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
		for (const char *p = path; p && *p; p += strcspn(p, ":"), p += *p == ':') {
			snprintf(file, sizeof file, "%.*s/%s", (int)strcspn(p, ":"), p, usual[i]);
			if (!access(file, X_OK))
				return usual[i];
		}
	return NULL;
}

static void add_compiler(struct words *w, const char *cxx)
{
	char *all = strdup(cxx), *rest;

	if (all)
		for (char *word = strtok_r(all, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
			add_word(w, "%s", word);
	free(all);
}

// ---- the text's kernels ----

struct found {
	char name[128], threads[256];
};

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static const char *skip_space(const char *p)
{
	while (isspace((unsigned char)*p))
		p++;
	return p;
}

// Behind the parenthesis that closes the one at p.
static const char *skip_parens(const char *p)
{
	int depth = 0;

	for (; *p; p++) {
		depth += *p == '(' ? 1 : *p == ')' ? -1 : 0;
		if (!depth)
			return p + 1;
	}
	return p;
}

// Copies a preprocessed text, and takes from it what the host's compiler does not know; lists its kernels.
static int scan(const char *p, struct text *to, struct found *found)
{
	static const char global[] = "__global__", bounds[] = "__launch_bounds__";
	struct found now = { "", "" };
	bool in_head = false; // behind __global__, before the name
	int n = 0;

	while (*p) {
		const char *start = p;
		if (*p == '"' || *p == '\'') {
			for (p++; *p && *p != *start; p++)
				if (*p == '\\' && p[1])
					p++;
			p += *p ? 1 : 0;
		} else if (!is_name(*p)) {
			p++;
		} else {
			while (is_name(*p))
				p++;
			const size_t length = (size_t)(p - start);
			const char *next = skip_space(p);
			if (length == strlen(global) && !strncmp(start, global, length)) {
				add_text(to, "__attribute__((noinline))");
				in_head = true;
				snprintf(now.threads, sizeof now.threads, "0");
				continue;
			}
			if (length == strlen(bounds) && !strncmp(start, bounds, length) && *next == '(') {
				p = skip_parens(next);
				// the first of what may be two
				int depth = 0;
				const char *end = next + 1;
				for (; end < p - 1 && (depth || *end != ','); end++)
					depth += *end == '(' ? 1 : *end == ')' ? -1 : 0;
				snprintf(now.threads, sizeof now.threads, "%.*s", (int)(end - next - 1), next + 1);
				continue;
			}
			if (in_head && *next == '(' && strncmp(start, "__attribute__", length)) {
				in_head = false;
				snprintf(now.name, sizeof now.name, "%.*s", (int)length, start);
				bool had = n == MAX_KERNELS;
				for (int i = 0; i < n; i++)
					had = had || !strcmp(found[i].name, now.name);
				if (!had)
					found[n++] = now;
			}
		}
		add(to, start, (size_t)(p - start));
	}
	return n;
}

static void add_table(struct text *t, const struct found *found, int n, bool check)
{
	const char *bare = check ? "__attribute__((no_sanitize(\"kernel-address\", \"alignment\")))" : "";
	char line[1024];

	for (int i = 0; i < n; i++) {
		snprintf(line, sizeof line,
			 "%s static void standin_call_%d(void **p)\n"
			 "{ standin_entry<decltype(%s)>::call(%s, p); }\n",
			 bare, i, found[i].name, found[i].name);
		add_text(t, line);
	}
	add_text(t, "static const standin_kernel standin_kernels[] = {\n");
	for (int i = 0; i < n; i++) {
		snprintf(line, sizeof line,
			 "{ \"%s\", standin_call_%d, standin_entry<decltype(%s)>::count, "
			 "standin_entry<decltype(%s)>::bytes, (unsigned)(%s) },\n",
			 found[i].name, i, found[i].name, found[i].name, found[i].threads);
		add_text(t, line);
	}
	snprintf(line, sizeof line,
		 "{ 0, 0, 0, 0, 0 } };\n"
		 "extern \"C\" const standin_object standin_object __attribute__((visibility(\"default\"))) = {\n"
		 "&standin_state, standin_kernels, %d, &standin_shared_count, standin_shared_vars,\n"
		 "__start_standin_shared, __stop_standin_shared, __ehdr_start, _end };\n", n);
	add_text(t, line);
}

// ---- compiling ----

struct job {
	const char *cxx, *folder;
	bool hip, check, clang;
	struct words options;
	char in[PATH], preprocessed[PATH], out[PATH], log[PATH];
};

static int failed(struct job *j, struct text *log)
{
	read_file(j->log, log);
	return 1;
}

static int compile(struct job *j, const char *text, struct text *object, struct text *log)
{
	struct words w = { { NULL }, 0 };
	struct text whole = { NULL, 0, 0, false }, made = { NULL, 0, 0, false };
	struct found *found = calloc(MAX_KERNELS, sizeof *found);
	int status = 3;

	if (!found || !write_file(j->in, text, strlen(text)))
		goto out;
	add_compiler(&w, j->cxx);
	add_word(&w, "%s", "-E");
	add_word(&w, "%s", "-include");
	add_word(&w, "%s", STANDIN_PROLOGUE);
	for (int i = 0; i < j->options.n; i++)
		add_word(&w, "%s", j->options.word[i]);
	add_word(&w, "%s", "-xc++");
	add_word(&w, "%s", j->in);
	add_word(&w, "-o%s", j->preprocessed);
	status = run(&w, j->log);
	if (status) {
		status = status < 0 ? 3 : failed(j, log);
		goto out;
	}
	if (!read_file(j->preprocessed, &whole)) {
		status = 3;
		goto out;
	}
	const int n = scan(whole.at ? whole.at : "", &made, found);
	add_text(&made, "\n");
	add_table(&made, found, n, j->check);
	if (made.failed || !write_file(j->preprocessed, made.at, made.n)) {
		status = 3;
		goto out;
	}
	free_words(&w);
	add_compiler(&w, j->cxx);
	for (int i = 0; i < j->options.n; i++)
		add_word(&w, "%s", j->options.word[i]);
	if (j->check)
		check_options(&w, j->clang);
	add_word(&w, "%s", "-shared");
	add_word(&w, "%s", "-nostdlib");
	add_word(&w, "%s", "-Wl,-Bsymbolic"); // its checks are its own
	add_word(&w, "%s", "-xc++-cpp-output");
	add_word(&w, "%s", j->preprocessed);
	add_word(&w, "-o%s", j->out);
	add_word(&w, "%s", "-lm");
	add_word(&w, "%s", "-lc");
	status = run(&w, j->log);
	if (status)
		status = status < 0 ? 3 : failed(j, log);
	else if (!read_file(j->out, object))
		status = 3;
out:
	free_words(&w);
	free(found);
	free(whole.at);
	free(made.at);
	return status;
}

static void name_files(struct job *j, uint64_t a, uint64_t b, char *kept)
{
	const long me = (long)getpid();
	static unsigned calls;
	const unsigned call = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);

	snprintf(kept, PATH, "%s/%016llx%016llx.so", j->folder, (unsigned long long)a, (unsigned long long)b);
	snprintf(j->in, sizeof j->in, "%s/%ld.%u.cu", j->folder, me, call);
	snprintf(j->preprocessed, sizeof j->preprocessed, "%s/%ld.%u.ii", j->folder, me, call);
	snprintf(j->out, sizeof j->out, "%s/%ld.%u.so", j->folder, me, call);
	snprintf(j->log, sizeof j->log, "%s/%ld.%u.log", j->folder, me, call);
}

static void hash_all(const struct job *j, const char *text, const struct text *prologue, uint64_t *a, uint64_t *b)
{
	uint64_t h[2] = { 1, 2 };

	for (int k = 0; k < 2; k++) {
		h[k] = standin_hash(h[k], j->cxx, strlen(j->cxx) + 1);
		for (int i = 0; i < j->options.n; i++)
			h[k] = standin_hash(h[k], j->options.word[i], strlen(j->options.word[i]) + 1);
		h[k] = standin_hash(h[k], prologue->at, prologue->n);
		h[k] = standin_hash(h[k], text, strlen(text));
	}
	*a = h[0];
	*b = h[1];
}

static bool is_clang(const char *cxx)
{
	return strstr(cxx, "clang") != NULL;
}

int standin_compile(const char *text, int options, const char *const *option, bool hip, void **binary,
		    size_t *bytes, char **log)
{
	struct job j = { .cxx = compiler(), .folder = standin_setting("CACHE"), .hip = hip,
			 .check = standin_number("CHECK", 0) != 0 };
	struct text prologue = { NULL, 0, 0, false }, object = { NULL, 0, 0, false }, said = { NULL, 0, 0, false };
	char kept[PATH], unknown[256] = "";
	uint64_t a, b;
	int status = 3;

	*binary = NULL;
	*bytes = 0;
	add_text(&said, "");
	if (!j.folder)
		j.folder = getenv("TMPDIR");
	if (!j.folder)
		j.folder = "/tmp";
	mkdir(j.folder, 0700);
	if (!translate(&j.options, hip, options, option, unknown, sizeof unknown)) {
		add_text(&said, "unrecognized option ");
		add_text(&said, unknown);
		status = 2;
		goto out;
	}
	own_options(&j.options, hip, j.check);
	if (!j.cxx || !read_file(STANDIN_PROLOGUE, &prologue) || !read_file(STANDIN_ABI, &prologue)) {
		add_text(&said, j.cxx ? "the stand-in's prologue is not there" : "no C++ compiler in PATH");
		goto out;
	}
	j.clang = is_clang(j.cxx);
	hash_all(&j, text, &prologue, &a, &b);
	name_files(&j, a, b, kept);
	status = 0;
	if (!read_file(kept, &object)) {
		status = compile(&j, text, &object, &said);
		if (!status)
			write_file(kept, object.at, object.n);
		unlink(j.in);
		unlink(j.preprocessed);
		unlink(j.out);
		unlink(j.log);
	}
	if (!status && !object.failed) {
		struct standin_binary head = { .bytes = object.n, .hash = standin_hash(0, object.at, object.n),
						.check = j.check };
		memcpy(head.magic, STANDIN_MAGIC, sizeof head.magic);
		char *all = malloc(sizeof head + object.n);
		if (all) {
			memcpy(all, &head, sizeof head);
			memcpy(all + sizeof head, object.at, object.n);
			*bytes = sizeof head + object.n;
		}
		*binary = all;
	}
	if (!status && !*binary)
		status = 3;
out:
	free_words(&j.options);
	free(prologue.at);
	free(object.at);
	*log = said.at;
	return status;
}
