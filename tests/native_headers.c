// SPDX-License-Identifier: Apache-2.0
// Compiled by tests/native_headers.sh with VENDOR, PART and optionally HEADER defined: prints
// sizes, offsets and constants as declared by plugins/VENDOR or by the vendor's header; with a
// header it also asserts each prototype of calls.h.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define GLUE(a, b, c, d) a##b##c##d
#define LIST(a, b, c, d) GLUE(a, b, c, d)

#ifdef HEADER
#include HEADER
#include FACTS
#if defined HIP_VERSION_MAJOR && HIP_VERSION_MAJOR >= 7
#define YK_ROCM_SINCE_7(x) x
#endif
#define yk_hip_properties_5 hipDeviceProp_t
#define yk_hip_properties_6 hipDeviceProp_t
#include CALLS

#define CHECK_DRIVER(result, symbol, params)
#define CHECK_COMPILER(result, symbol, params)
#define CHECK_PRODUCTS(result, symbol, params)
#define CHECK_TELEMETRY(result, symbol, params)
#define CHECK_RANGES(result, symbol, params)
#define CHECK_BLAS(result, symbol, params)
#define CHECK_COLLECTIVES(result, symbol, params)
#define SAME(result, symbol, params) \
	_Static_assert( \
		__builtin_types_compatible_p(__typeof__(&symbol), result(*) params), #symbol);
#define X(part, need, result, symbol, params) LIST(CHECK_, part, , )(result, symbol, params)
#if PART_NUMBER == 0
#undef CHECK_DRIVER
#define CHECK_DRIVER SAME
#elif PART_NUMBER == 1
#undef CHECK_COMPILER
#define CHECK_COMPILER SAME
#elif PART_NUMBER == 2
#undef CHECK_PRODUCTS
#define CHECK_PRODUCTS SAME
#elif PART_NUMBER == 3
#undef CHECK_TELEMETRY
#define CHECK_TELEMETRY SAME
#elif PART_NUMBER == 4
#undef CHECK_RANGES
#define CHECK_RANGES SAME
#elif PART_NUMBER == 5
#undef CHECK_BLAS
#define CHECK_BLAS SAME
#elif PART_NUMBER == 6
#undef CHECK_COLLECTIVES
#define CHECK_COLLECTIVES SAME
#endif
LIST(YK_, VENDOR, _CALLS, )
(X)
#undef X
// the only field of the struct with two versions that is read
#if defined HIP_VERSION_MAJOR && PART_NUMBER == 0
	_Static_assert(offsetof(hipDeviceProp_t, gcnArchName) ==
			       (HIP_VERSION_MAJOR >= 6 ? 1160 : 396),
		       "hipDeviceProp_t");
#endif
#else
#include TYPES
#endif

int main(void)
{
#define X(name, value) \
	printf("%s %lld%s\n", #name, (long long)(name), \
	       (name) == (value) ? "" : ", by facts.h " #value);
	LIST(YK_, VENDOR, _CONSTANTS_, PART)(X)
#undef X
#define X(type) printf("sizeof %s %zu\n", #type, sizeof(type));
	LIST(YK_, VENDOR, _TYPES_, PART)(X)
#undef X
#define X(type, field) \
	printf("%s.%s %zu, of %zu\n", #type, #field, offsetof(type, field), \
	       sizeof(((type *)NULL)->field));
	LIST(YK_, VENDOR, _FIELDS_, PART)(X)
#undef X
	return 0;
}
