// SPDX-License-Identifier: Apache-2.0
// The AMD-specific part of the native driver: versions, architectures, names of codes.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../native/native.h"

// "HIP 6.2" for 60241133
void yk_vendor_version(char *to, size_t cap)
{
	int version = 0;

	yk_native_code(V(hipRuntimeGetVersion, &version));
	snprintf(to, cap, "HIP %d.%d.%d", version / 10000000, version / 100000 % 100,
		 version % 100000);
}

void yk_vendor_compiler(char *to, size_t cap)
{
	int major = 0, minor = 0;

	yk_native_code(V(hiprtcVersion, &major, &minor));
	snprintf(to, cap, "%s %d.%d", yk_native_library(YK_COMPILER), major, minor);
}

const char *yk_vendor_injected(enum yk_native_lib part)
{
	(void)part;
	return NULL;
}

// hiprtcVersion counts differently, so the libraries' file names are compared.
bool yk_vendor_is_compatible(enum yk_native_lib part, const char *name, char *why, size_t cap)
{
	const int driver = yk_native_major(yk_native_library(YK_DRIVER)),
		  major = yk_native_major(name);

	if (part != YK_COMPILER || major == driver)
		return true;
	snprintf(why, cap,
		 "%s belongs to ROCm %d, the driver %s to ROCm %d: install the hiprtc of ROCm %d",
		 name, major, yk_native_library(YK_DRIVER), driver, driver);
	return false;
}

// "gfx90a:sramecc+:xnack-"
static bool arch_of(const struct yk_native_device *d, char *to, size_t cap)
{
	yk_hip_properties_6 new = { .gcnArchName = "" };
	// room for a later, larger version of the struct
	union {
		yk_hip_properties_5 p;
		char padding[4096];
	} old = { .padding = "" };
	const char *name = new.gcnArchName;
	int code = 1;

	if (yk_native.hipGetDevicePropertiesR0600)
		code = yk_native_code(V(hipGetDevicePropertiesR0600, &new, d->id));
	if (code) {
		name = old.p.gcnArchName;
		code = yk_native_code(V(hipGetDeviceProperties, &old.p, d->id));
	}
	snprintf(to, cap, "%.*s", (int)cap - 1, name);
	return !code && !strncmp(to, "gfx", 3) &&
	       strspn(to, "abcdefghijklmnopqrstuvwxyz0123456789:+-") == strlen(to);
}

// Dtypes of the matrix units (instruction set references of CDNA and RDNA).
static const char *matrix_of(const char *arch)
{
	static const struct {
		const char *arch, *takes;
	} all[] = {
		{ "gfx908", "f16 bf16 f32 i8" },      { "gfx90a", "f16 bf16 f32 f64 i8" },
		{ "gfx94", "f16 bf16 f32 f64 i8 fp8" }, { "gfx95", "f16 bf16 f32 f64 i8 fp8 fp4" },
		{ "gfx11", "f16 bf16 i8" },	      { "gfx12", "f16 bf16 i8 fp8" },
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!strncmp(arch, all[i].arch, strlen(all[i].arch)))
			return all[i].takes;
	return "";
}

// Dtypes for which the kernel prologue uses an architecture's matrix units.
static uint32_t units_of(const char *arch)
{
	static const char *const with[] = { "gfx90a",  "gfx940",  "gfx942",  "gfx950",
					    "gfx1100", "gfx1101", "gfx1102", "gfx1103" };
	const size_t n = strcspn(arch, ":");

	for (size_t i = 0; i < sizeof with / sizeof *with; i++)
		if (strlen(with[i]) == n && !memcmp(arch, with[i], n))
			return 1u << yoke_f16 | 1u << yoke_bf16 | 1u << yoke_i8 | 1u << yoke_u8;
	return 0;
}

bool yk_vendor_describe(struct yk_native_device *d, char *why, size_t cap)
{
	char *options;

	if (!arch_of(d, d->arch, sizeof d->arch)) {
		d->arch[0] = 0;
		snprintf(why, cap, "the driver does not report the architecture");
		return false;
	}
	snprintf(d->gpu.info.matrix, sizeof d->gpu.info.matrix, "%s", matrix_of(d->arch));
	// gfx11 stores factors twice in registers
	d->gpu.head_columns = strncmp(d->arch, "gfx11", 5) ? 0 : 64;
	d->gpu.info.products = units_of(d->arch);
	if (asprintf(&options, "--offload-arch=%s -std=c++17 -ffp-contract=off -O3 -w", d->arch) <
	    0) {
		snprintf(why, cap, "no memory for the compiler options");
		return false;
	}
	d->gpu.options = options;
	return true;
}

// hipBLASLt has no call that names its codes.
static const char *product_code(int code)
{
	static const char *const names[] = {
		"HIPBLAS_STATUS_SUCCESS",        "HIPBLAS_STATUS_NOT_INITIALIZED",
		"HIPBLAS_STATUS_ALLOC_FAILED",   "HIPBLAS_STATUS_INVALID_VALUE",
		"HIPBLAS_STATUS_MAPPING_ERROR",  "HIPBLAS_STATUS_EXECUTION_FAILED",
		"HIPBLAS_STATUS_INTERNAL_ERROR", "HIPBLAS_STATUS_NOT_SUPPORTED",
		"HIPBLAS_STATUS_ARCH_MISMATCH",  "HIPBLAS_STATUS_HANDLE_IS_NULLPTR",
		"HIPBLAS_STATUS_INVALID_ENUM",   "HIPBLAS_STATUS_UNKNOWN",
	};

	return code >= 0 && code < (int)(sizeof names / sizeof *names) ? names[code] : NULL;
}

const char *yk_vendor_code_name(int code)
{
	const char *name;

	if (code >= YK_BLAS_CODE)
		name = yk_native.rocblas_status_to_string(code - YK_BLAS_CODE);
	else if (code >= YK_PRODUCTS_CODE)
		name = product_code(code - YK_PRODUCTS_CODE);
	else if (code >= YK_COMPILER_CODE)
		name = yk_native.hiprtcGetErrorString(code - YK_COMPILER_CODE);
	else
		name = yk_native.hipGetErrorName(code);
	return name ? name : "unknown HIP error";
}

const char *yk_vendor_code_text(int code)
{
	return yk_native.hipGetErrorString(code);
}

// hipBLASLt keeps partial sums in the compute type, and has no alignment preferences.
int yk_vendor_restrict(const struct yk_gpu_device *d, v_lt_preference p, uint32_t a, uint32_t b,
		       uint32_t y)
{
	(void)d, (void)p, (void)a, (void)b, (void)y;
	return 0;
}
