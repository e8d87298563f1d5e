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

// 10 * major + minor of the driver's CUDA version; 0: the driver does not report it.
static int capability_of(CUdevice id)
{
	int major = 0, minor = 0;

	if (yk_native_code(V(cuDeviceGetAttribute, &major,
			     CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, id)) ||
	    yk_native_code(V(cuDeviceGetAttribute, &minor,
			     CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, id)))
		return 0;
	return major < 1 || major > 99 || minor < 0 || minor > 9 ? 0 : 10 * major + minor;
}

// The architectures that the compiler supports, as 10 * major + minor.
struct archs {
	int n, min, max, *all;
};

static void archs_init(struct archs *a)
{
	int n = 0;

	*a = (struct archs){ 0 };
	if (yk_native_code(V(nvrtcGetNumSupportedArchs, &n)) || n < 1 || n > 1000 ||
	    !(a->all = calloc((size_t)n, sizeof *a->all)) ||
	    yk_native_code(V(nvrtcGetSupportedArchs, a->all)))
		return;
	a->n = n;
	a->min = a->max = a->all[0];
	for (int i = 1; i < n; i++) {
		a->min = a->all[i] < a->min ? a->all[i] : a->min;
		a->max = a->all[i] > a->max ? a->all[i] : a->max;
	}
}

// The newest supported architecture that is not newer than a device; 0: none.
static int best_arch(const struct archs *a, int capability)
{
	int best = 0;

	for (int i = 0; i < a->n; i++)
		if (a->all[i] <= capability && a->all[i] > best)
			best = a->all[i];
	return best;
}

static void refuse(const char *name, const struct archs *a, int capability, char *why, size_t cap)
{
	if (!a->n)
		snprintf(why, cap,
			 "%s does not list the architectures that it compiles for: update it",
			 name);
	else
		snprintf(
			why, cap,
			"%s compiles for sm_%d to sm_%d, not for sm_%d: install the libnvrtc of an older CUDA",
			name, a->min, a->max, capability);
}

// True if the compiler supports any of the devices. An older compiler may, if the devices are older
// than everything this one supports.
static bool supports_any_device(const char *name, char *why, size_t cap)
{
	int count = 0, capability = 0;
	struct archs a;
	CUdevice id;

	archs_init(&a);
	bool knows = !a.n || yk_native_code(V(cuDeviceGetCount, &count)) || !count;
	for (int i = 0; i < count && !knows; i++)
		knows = yk_native_code(V(cuDeviceGet, &id, i)) ||
			!(capability = capability_of(id)) || best_arch(&a, capability);
	if (!knows)
		refuse(name, &a, capability, why, cap);
	free(a.all);
	return knows;
}

// CUDA libraries run on any driver of the same major version and on later ones. minor < 0: unknown.
static bool fits_driver(const char *name, int major, int minor, char *why, size_t cap)
{
	char version[40];
	int driver = 0;

	if (yk_native_code(V(cuDriverGetVersion, &driver)) || major <= driver / 1000)
		return true; // unknown driver version: its own errors will be clearer
	const int n = snprintf(version, sizeof version, "%d", major);
	if (minor >= 0)
		snprintf(version + n, sizeof version - (size_t)n, ".%d", minor);
	snprintf(
		why, cap,
		"%s is of CUDA %s, the driver only of CUDA %d.%d: update the driver, or install the %.*s of CUDA %d",
		name, version, driver / 1000, driver % 1000 / 10, (int)strcspn(name, "."), name,
		driver / 1000);
	return false;
}

bool yk_vendor_is_compatible(enum yk_native_lib part, const char *name, char *why, size_t cap)
{
	int major = 0, minor = 0, code;

	if (part == YK_PRODUCTS)
		return fits_driver(name, yk_native_major(name), -1, why, cap);
	if (part != YK_COMPILER)
		return true;
	if ((code = yk_native_code(V(nvrtcVersion, &major, &minor)))) {
		snprintf(why, cap, "%s: nvrtcVersion: %s", name,
			 yk_native_name(YK_COMPILER_CODE + code));
		return false;
	}
	return fits_driver(name, major, minor, why, cap) && supports_any_device(name, why, cap);
}

// The compiler's major version; 0: unknown.
static int compiler_major(void)
{
	int major = 0, minor = 0;

	return yk_native_code(V(nvrtcVersion, &major, &minor)) ? 0 : major;
}

// Machine code runs on later architectures of the same major version, PTX on all later ones.
static bool choose(struct yk_native_device *d, char *why, size_t cap)
{
	char compiler[64], options[100];
	struct archs a;

	archs_init(&a);
	const int best = best_arch(&a, d->capability);
	free(a.all);
	if (!best) {
		refuse(yk_native_library(YK_COMPILER), &a, d->capability, why, cap);
		return false;
	}
	d->ptx = best / 10 != d->capability / 10;
	snprintf(options, sizeof options, "-arch=%s_%d -fmad=false --std=c++17 -w",
		 d->ptx ? "compute" : "sm", best);
	if (!(d->gpu.options = strdup(options))) {
		snprintf(why, cap, "no memory for its options");
		return false;
	}
	yk_vendor_compiler(compiler, sizeof compiler);
	// sm_90a is of compute capability 9.0 alone, and of NVRTC from 12.0 on
	if (d->capability == 90 && best == 90 && compiler_major() >= 12)
		d->gpu.wgmma_options = "-arch=sm_90a -fmad=false --std=c++17 -w";
	if (best != d->capability)
		snprintf(d->notice, sizeof d->notice,
			 "%s does not know %s: kernels are compiled for sm_%d%s; install the "
			 "libnvrtc of a newer CUDA",
			 compiler, d->arch, best,
			 d->ptx ? " as PTX, which the driver compiles" : "");
	return true;
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
		n += (size_t)snprintf(to + n, cap - n,
				      i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
				      (unsigned char)u.bytes[i]);
}

bool yk_vendor_describe(struct yk_native_device *d, char *why, size_t cap)
{
	if (!(d->capability = capability_of(d->id))) {
		snprintf(why, cap, "the driver does not report its compute capability");
		return false;
	}
	snprintf(d->arch, sizeof d->arch, "sm_%d", d->capability);
	snprintf(d->gpu.info.matrix, sizeof d->gpu.info.matrix, "%s", matrix_of(d->capability));
	d->gpu.tf32 = d->capability >= 80;
	int sized = 0;
	if (d->capability >= 80 && yk_native.cuFuncSetAttribute &&
	    !yk_native_code(V(cuDeviceGetAttribute, &sized,
			      CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, d->id)))
		d->gpu.sized_bytes = sized > 0 ? (size_t)sized : 0;
	d->gpu.info.products = (d->capability >= 70 ? 1u << yoke_f16 : 0) |
			       (d->capability >= 80 ? 1u << yoke_bf16 : 0) |
			       (d->capability >= 75 ? 1u << yoke_i8 | 1u << yoke_u8 : 0);
	fill_uuid(d, d->gpu.info.uuid, sizeof d->gpu.info.uuid);
	return choose(d, why, cap);
}

int yk_vendor_params(v_function f, const void *image, size_t bytes, const char *name, uint32_t max,
		     size_t *sizes)
{
	(void)image, (void)bytes, (void)name;
	for (uint32_t i = 0; yk_native.cuFuncGetParamInfo && i < max; i++) {
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
int yk_vendor_restrict(const struct yk_gpu_device *d, v_lt_preference p, uint32_t a, uint32_t b,
		       uint32_t y)
{
	static const cublasLtMatmulPreferenceAttributes_t what[] = {
		CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
		CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
		CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
		CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
		CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
	};
	const uint32_t value[] = { a, b, y, y, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE };
	int code = 0;

	for (int i = 0; i < 5 && !code; i++)
		code = yk_native.cublasLtMatmulPreferenceSetAttribute(p, what[i], &value[i],
								      sizeof *value);
	return code ? yk_native_library_failed(d, YOKE_EUNSUPPORTED,
					       "cublasLtMatmulPreferenceSetAttribute",
					       YK_PRODUCTS_CODE, code) :
		      0;
}
