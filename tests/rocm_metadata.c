// SPDX-License-Identifier: Apache-2.0
// Tests how the ROCm plugin reads a kernel's parameters from a code object that AMD's compiler
// makes of a text in this file. For damaged code objects it returns nothing or wrong data, but
// reads nothing out of bounds.
#include "config.h"

#include <dlfcn.h>

#include "../plugins/rocm/metadata.c"
#include "tap.h"

static const char text[] =
	"struct S { long a[3]; int b; };\n"
	"extern \"C\" __global__ void many(float *x, S s, unsigned char c, double d)\n"
	"{ x[blockIdx.x * blockDim.x + threadIdx.x] = s.a[1] + c + d; }\n"
	"extern \"C\" __global__ void none() {}\n";

struct compiler {
	int (*create)(hiprtcProgram *, const char *, const char *, int, const char **,
		      const char **);
	int (*compile)(hiprtcProgram, int, const char **);
	int (*size)(hiprtcProgram, size_t *);
	int (*code)(hiprtcProgram, char *);
	int (*destroy)(hiprtcProgram *);
};

static void *find_compiler(struct compiler *c)
{
	static const char *const names[] = { "libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5",
					     "libamdhip64.so.5" };
	void *library = NULL;

	for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return NULL;
	*(void **)&c->create = dlsym(library, "hiprtcCreateProgram");
	*(void **)&c->compile = dlsym(library, "hiprtcCompileProgram");
	*(void **)&c->size = dlsym(library, "hiprtcGetCodeSize");
	*(void **)&c->code = dlsym(library, "hiprtcGetCode");
	*(void **)&c->destroy = dlsym(library, "hiprtcDestroyProgram");
	return c->create && c->compile && c->size && c->code && c->destroy ? library : NULL;
}

int main(void)
{
	const char *options[] = { "--offload-arch=gfx90a", "-w" };
	const size_t want[] = { 8, 32, 1, 8 };
	size_t bytes = 0, got[8] = { 0 };
	hiprtcProgram program;
	struct compiler c;

	if (!find_compiler(&c) || c.create(&program, text, "metadata.hip", 0, NULL, NULL) ||
	    c.compile(program, 2, options) || c.size(program, &bytes) || !bytes) {
		printf("1..0 # SKIP no hiprtc that compiles for gfx90a\n");
		return 0;
	}
	char *file = malloc(bytes), *damaged = malloc(bytes);
	if (!ok(file && damaged && !c.code(program, file), "a code object of %zu bytes", bytes))
		return done();
	ok(yk_vendor_params(NULL, file, bytes, "many", 8, got) == 4 &&
		   !memcmp(got, want, sizeof want),
	   "four parameters: %zu %zu %zu %zu", got[0], got[1], got[2], got[3]);
	ok(yk_vendor_params(NULL, file, bytes, "none", 8, got) == 0, "a kernel without parameters");
	ok(yk_vendor_params(NULL, file, bytes, "other", 8, got) < 0, "an unknown kernel");
	ok(yk_vendor_params(NULL, file, bytes, "many", 3, got) < 0,
	   "more parameters than the buffer holds");
	int same = 0;
	for (size_t i = 0; i < bytes; i++) {
		memcpy(damaged, file, bytes);
		damaged[i] = (char)(damaged[i] ^ (1 + rnd() % 255));
		same += yk_vendor_params(NULL, damaged, bytes, "many", 8, got) <= 8;
		// allocated separately, so that a sanitizer sees reads past the end
		char *cut = malloc(i + 1);
		memcpy(cut, file, i);
		same += yk_vendor_params(NULL, cut, i, "many", 8, got) <= 8;
		free(cut);
	}
	ok(same == 2 * (int)bytes, "damaged at each byte, and truncated there");
	free(file);
	free(damaged);
	c.destroy(&program);
	return done();
}
