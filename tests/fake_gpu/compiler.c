// SPDX-License-Identifier: Apache-2.0
// Fake NVRTC and, compiled with FAKE_HIP, hiprtc, on top of compile.c.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vendor.h"

#define FAKE_OF_COMPILER ~, FAKE_YES
FAKE_CALLS(FAKE_DECLARE)

#define RESULT TWIN(nvrtcResult, hiprtcResult)
#define PROGRAM TWIN(nvrtcProgram, hiprtcProgram)
enum { INVALID_INPUT = 3, INVALID_PROGRAM = 4, INVALID_OPTION = 5, COMPILATION = 6, INTERNAL = 11 };

struct program {
	char *text, *log;
	void *binary;
	size_t bytes;
};

static const struct {
	int code;
	const char *name;
} names[] = {
	{ 0, "SUCCESS" },
	{ 1, "ERROR_OUT_OF_MEMORY" },
	{ 2, "ERROR_PROGRAM_CREATION_FAILURE" },
	{ INVALID_INPUT, "ERROR_INVALID_INPUT" },
	{ INVALID_PROGRAM, "ERROR_INVALID_PROGRAM" },
	{ INVALID_OPTION, "ERROR_INVALID_OPTION" },
	{ COMPILATION, "ERROR_COMPILATION" },
	{ 7, "ERROR_BUILTIN_OPERATION_FAILURE" },
	{ INTERNAL, "ERROR_INTERNAL_ERROR" },
};

int fake_code_of(const char *name)
{
	const char *start = TWIN("NVRTC_", "HIPRTC_");

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strncmp(name, start, strlen(start)) &&
		    !strcmp(name + strlen(start), names[i].name))
			return names[i].code;
	return 0; // another library's
}

#define ENTER(nvrtc, hiprtc) \
	do { \
		const int fault = fake_fault(TWIN(#nvrtc, #hiprtc)); \
		if (fault) \
			return fault; \
	} while (0)

// YOKE_FAKE_COMPILER=12.4
RESULT TWIN(nvrtcVersion, hiprtcVersion)(int *major, int *minor)
{
	const char *set = fake_setting("COMPILER");

	ENTER(nvrtcVersion, hiprtcVersion);
	if (!set || sscanf(set, "%d.%d", major, minor) != 2) {
		*major = TWIN(13, 6);
		*minor = TWIN(0, 4);
	}
	return 0;
}

const char *TWIN(nvrtcGetErrorString, hiprtcGetErrorString)(RESULT code)
{
	static const char *const all[] = {
#define X(name) TWIN("NVRTC_", "HIPRTC_") name
		X("SUCCESS"),
		X("ERROR_OUT_OF_MEMORY"),
		X("ERROR_PROGRAM_CREATION_FAILURE"),
		X("ERROR_INVALID_INPUT"),
		X("ERROR_INVALID_PROGRAM"),
		X("ERROR_INVALID_OPTION"),
		X("ERROR_COMPILATION"),
		X("ERROR_BUILTIN_OPERATION_FAILURE"),
		X("ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION"),
		X("ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION"),
		X("ERROR_NAME_EXPRESSION_NOT_VALID"),
		X("ERROR_INTERNAL_ERROR"),
#undef X
	};

	return code >= 0 && (size_t)code < sizeof all / sizeof *all ?
		       all[code] :
		       TWIN("NVRTC_ERROR unknown", "HIPRTC_ERROR unknown");
}

#ifndef FAKE_HIP
static const int archs[] = { 70, 75, 80, 86, 89, 90, 100, 120 };

nvrtcResult nvrtcGetNumSupportedArchs(int *count)
{
	ENTER(nvrtcGetNumSupportedArchs, );
	*count = sizeof archs / sizeof *archs;
	return 0;
}

nvrtcResult nvrtcGetSupportedArchs(int *to)
{
	ENTER(nvrtcGetSupportedArchs, );
	memcpy(to, archs, sizeof archs);
	return 0;
}
#endif

RESULT TWIN(nvrtcCreateProgram,
	    hiprtcCreateProgram)(PROGRAM *program, const char *text, const char *name, int headers,
				 const char *TWIN(const, YK_ROCM_SINCE_7(const)) * header,
				 const char *TWIN(const, YK_ROCM_SINCE_7(const)) * header_name)
{
	(void)name;
	(void)header;
	(void)header_name;
	ENTER(nvrtcCreateProgram, hiprtcCreateProgram);
	if (!program || !text || headers)
		return INVALID_INPUT;
	struct program *p = calloc(1, sizeof *p);
	if (!p || !(p->text = strdup(text))) {
		free(p);
		return 1;
	}
	*program = TO_POINTER(p);
	return 0;
}

RESULT TWIN(nvrtcDestroyProgram, hiprtcDestroyProgram)(PROGRAM *program)
{
	if (!program || !*program)
		return INVALID_PROGRAM;
	struct program *p = TO_POINTER(*program);
	free(p->text);
	free(p->log);
	free(p->binary);
	free(p);
	*program = NULL;
	return fake_fault(TWIN("nvrtcDestroyProgram", "hiprtcDestroyProgram"));
}

// The wording of clang in hiprtc; NVRTC checks it beforehand.
static bool unknown_target(struct program *p, int options, const char *const *option)
{
	for (int i = 0; i < options; i++)
		if (!strcmp(option[i], "--offload-arch=gfx9999")) {
			p->log = strdup(
				"error: invalid target ID 'gfx9999'; format is a processor name followed by an "
				"optional colon-delimited list of features");
			return true;
		}
	return false;
}

RESULT TWIN(nvrtcCompileProgram, hiprtcCompileProgram)(PROGRAM program, int options,
	const char *TWIN(const, YK_ROCM_SINCE_7(const)) *option)
{
	static const int codes[] = { 0, COMPILATION, INVALID_OPTION, INTERNAL };
	struct program *p = TO_POINTER(program);

	ENTER(nvrtcCompileProgram, hiprtcCompileProgram);
	if (!p)
		return INVALID_PROGRAM;
	free(p->log);
	free(p->binary);
	p->log = p->binary = NULL;
	if (unknown_target(p, options, (const char *const *)option))
		return COMPILATION;
	return codes[fake_compile(p->text, options, (const char *const *)option, TWIN(false, true),
				  &p->binary, &p->bytes, &p->log)];
}

RESULT TWIN(nvrtcGetProgramLogSize, hiprtcGetProgramLogSize)(PROGRAM program, size_t *bytes)
{
	const struct program *p = TO_POINTER(program);

	ENTER(nvrtcGetProgramLogSize, hiprtcGetProgramLogSize);
	if (!p)
		return INVALID_PROGRAM;
	*bytes = p->log ? strlen(p->log) + 1 : 1;
	return 0;
}

RESULT TWIN(nvrtcGetProgramLog, hiprtcGetProgramLog)(PROGRAM program, char *log)
{
	const struct program *p = TO_POINTER(program);

	ENTER(nvrtcGetProgramLog, hiprtcGetProgramLog);
	if (!p)
		return INVALID_PROGRAM;
	strcpy(log, p->log ? p->log : "");
	return 0;
}

static int binary_size(const struct program *p, size_t *bytes)
{
	if (!p || !p->binary)
		return INVALID_PROGRAM;
	*bytes = p->bytes;
	return 0;
}

static int binary(const struct program *p, char *to)
{
	if (!p || !p->binary)
		return INVALID_PROGRAM;
	memcpy(to, p->binary, p->bytes);
	return 0;
}

RESULT TWIN(nvrtcGetCUBINSize, hiprtcGetCodeSize)(PROGRAM program, size_t *bytes)
{
	ENTER(nvrtcGetCUBINSize, hiprtcGetCodeSize);
	return binary_size(TO_POINTER(program), bytes);
}

RESULT TWIN(nvrtcGetCUBIN, hiprtcGetCode)(PROGRAM program, char *to)
{
	ENTER(nvrtcGetCUBIN, hiprtcGetCode);
	return binary(TO_POINTER(program), to);
}

#ifndef FAKE_HIP
nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *bytes)
{
	ENTER(nvrtcGetPTXSize, );
	return binary_size(TO_POINTER(program), bytes);
}

nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *to)
{
	ENTER(nvrtcGetPTX, );
	return binary(TO_POINTER(program), to);
}
#endif
