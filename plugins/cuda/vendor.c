// SPDX-License-Identifier: Apache-2.0
// The NVIDIA-specific part of the native driver: versions, architectures, kernel parameters, names
// of codes.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../native/native.h"

// "CUDA 13.0" for 13000
void yk_vendor_version(char *to, size_t cap)
{
	int version = 0;

	yk_native_code(V(cuDriverGetVersion, &version));
	snprintf(to, cap, "CUDA %d.%d", version / 1000, version % 1000 / 10);
}

void yk_vendor_compiler(char *to, size_t cap)
{
	int major = 0, minor = 0;

	yk_native_code(V(nvrtcVersion, &major, &minor));
	snprintf(to, cap, "NVRTC %d.%d", major, minor);
}

// Machine code runs on any driver of the same major version and on later ones.
bool yk_vendor_serves(enum yk_native_part part, const char *name, char *why, size_t cap)
{
	int major = 0, minor = 0, driver = 0, code;

	if (part != YK_COMPILER)
		return true;
	if ((code = yk_native_code(V(nvrtcVersion, &major, &minor)))) {
		snprintf(why, cap, "%s: nvrtcVersion: %s", name, yk_native_name(YK_COMPILER_CODE + code));
		return false;
	}
	if (yk_native_code(V(cuDriverGetVersion, &driver)) || major <= driver / 1000)
		return true; // unknown driver version: errors will show later
	snprintf(why, cap, "%s is of CUDA %d.%d, the driver only of CUDA %d.%d: update the driver, or install the "
		 "libnvrtc of CUDA %d", name, major, minor, driver / 1000, driver % 1000 / 10, driver / 1000);
	return false;
}

// The min and max architecture that the compiler supports, as 10 * major + minor.
static bool known(const int *archs, int n, int wanted, int *least, int *most)
{
	bool found = false;

	*least = *most = n ? archs[0] : 0;
	for (int i = 0; i < n; i++) {
		*least = archs[i] < *least ? archs[i] : *least;
		*most = archs[i] > *most ? archs[i] : *most;
		found |= archs[i] == wanted;
	}
	return found;
}

// Machine code runs on later architectures of the same major version, PTX on all later ones.
static bool choose(struct yk_native_device *d, char *why, size_t cap)
{
	int n = 0, least, most, best = 0, *archs = NULL;

	if (!yk_native_code(V(nvrtcGetNumSupportedArchs, &n)) && n > 0 && n < 1000 &&
	    (archs = calloc((size_t)n, sizeof *archs)) && yk_native_code(V(nvrtcGetSupportedArchs, archs)))
		n = 0;
	n = archs ? n : 0;
	const bool there = known(archs, n, d->capability, &least, &most);
	for (int i = 0; i < n && !there; i++)
		if (archs[i] <= d->capability && archs[i] > best && archs[i] / 10 == d->capability / 10)
			best = archs[i];
	free(archs);
	if (there)
		best = d->capability;
	d->ptx = !best && n && most < d->capability;
	best = d->ptx ? most : best;
	if (best) {
		char options[100];
		snprintf(options, sizeof options, "-arch=%s_%d -fmad=false --std=c++17 -w", d->ptx ? "compute" : "sm", best);
		d->gpu.options = strdup(options);
		if (!d->gpu.options)
			snprintf(why, cap, "no memory for its options");
		return d->gpu.options;
	}
	snprintf(why, cap, "%s compiles for sm_%d to sm_%d, not for %s: install the libnvrtc of an older CUDA",
		 yk_native_library(YK_COMPILER), least, most, d->arch);
	return false;
}

// Dtypes of the matrix units by generation (CUDA C++ Programming Guide, "Compute Capabilities").
static const char *matrix_of(int capability)
{
	return capability >= 100 ? "f16 bf16 tf32 f64 i8 fp8 fp4" :
	       capability >= 89 ? "f16 bf16 tf32 f64 i8 fp8" :
	       capability >= 80 ? "f16 bf16 tf32 f64 i8" :
	       capability >= 75 ? "f16 i8" :
	       capability >= 70 ? "f16" : "";
}

static void fill_uuid(const struct yk_native_device *d, char *to, size_t cap)
{
	CUuuid u;
	size_t n = 0;

	if (!yk_native.cuDeviceGetUuid_v2 || yk_native_code(V(cuDeviceGetUuid_v2, &u, d->id)))
		return;
	for (size_t i = 0; i < sizeof u.bytes; i++)
		n += (size_t)snprintf(to + n, cap - n, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
				      (unsigned char)u.bytes[i]);
}

bool yk_vendor_describe(struct yk_native_device *d, char *why, size_t cap)
{
	int major = 0, minor = 0;

	if (yk_native_code(V(cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, d->id)) ||
	    yk_native_code(V(cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, d->id)) ||
	    major < 1 || major > 99 || minor < 0 || minor > 9) {
		snprintf(why, cap, "the driver does not say of which compute capability it is");
		return false;
	}
	d->capability = 10 * major + minor;
	snprintf(d->arch, sizeof d->arch, "sm_%d", d->capability);
	snprintf(d->gpu.info.matrix, sizeof d->gpu.info.matrix, "%s", matrix_of(d->capability));
	d->gpu.tf32 = d->capability >= 80;
	d->gpu.info.products = (d->capability >= 70 ? 1u << yoke_f16 : 0) | (d->capability >= 80 ? 1u << yoke_bf16 : 0) |
			       (d->capability >= 75 ? 1u << yoke_i8 | 1u << yoke_u8 : 0);
	fill_uuid(d, d->gpu.info.uuid, sizeof d->gpu.info.uuid);
	return choose(d, why, cap);
}

int yk_vendor_params(v_function f, const void *image, size_t bytes, const char *name, uint32_t most, size_t *sizes)
{
	(void)image, (void)bytes, (void)name;
	for (uint32_t i = 0; yk_native.cuFuncGetParamInfo && i < most; i++) {
		size_t offset = 0;
		const int code = yk_native_code(V(cuFuncGetParamInfo, f, i, &offset, &sizes[i]));
		if (code == CUDA_ERROR_INVALID_VALUE) // no parameter of that index
			return (int)i;
		if (code)
			break;
	}
	return -1;
}

const char *yk_vendor_code_name(int code)
{
	const char *name = NULL;

	if (code >= YK_PRODUCTS_CODE)
		name = yk_native.cublasLtGetStatusName(code - YK_PRODUCTS_CODE);
	else if (code >= YK_COMPILER_CODE)
		name = yk_native.nvrtcGetErrorString(code - YK_COMPILER_CODE);
	else if (yk_native.cuGetErrorName(code, &name))
		name = NULL;
	return name ? name : "unknown CUDA error";
}

const char *yk_vendor_code_text(int code)
{
	const char *text = NULL;

	return yk_native.cuGetErrorString(code, &text) ? NULL : text;
}

// Passes the alignments to the heuristic, and forbids rounding partial sums to 16 bits.
int yk_vendor_restrict(const struct yk_gpu_device *d, v_lt_preference p, uint32_t a, uint32_t b, uint32_t y)
{
	static const cublasLtMatmulPreferenceAttributes_t what[] = {
		CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
		CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
		CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
	};
	const uint32_t value[] = { a, b, y, y, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE };
	int code = 0;

	for (int i = 0; i < 5 && !code; i++)
		code = yk_native.cublasLtMatmulPreferenceSetAttribute(p, what[i], &value[i], sizeof *value);
	return code ? yk_native_library_failed(d, YOKE_EUNSUPPORTED, "cublasLtMatmulPreferenceSetAttribute",
					       YK_PRODUCTS_CODE, code) : 0;
}
