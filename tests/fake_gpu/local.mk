# SPDX-License-Identifier: Apache-2.0
# Fake drivers for the vendors' libraries, by their own names; a test that wants them has YOKE_TEST_FAKE in
# LD_LIBRARY_PATH.  Most sources are compiled for each vendor.
AM_TESTS_ENVIRONMENT += \
	YOKE_TEST_FAKE='$(abs_builddir)/tests/fake_gpu/.libs'; export YOKE_TEST_FAKE;

check_LTLIBRARIES += \
	tests/fake_gpu/libamdhip64.la \
	tests/fake_gpu/libcublasLt.la \
	tests/fake_gpu/libcuda.la \
	tests/fake_gpu/libcusparse.la \
	tests/fake_gpu/libhipblaslt.la \
	tests/fake_gpu/libhiprtc.la \
	tests/fake_gpu/libnccl.la \
	tests/fake_gpu/libhipsparse.la \
	tests/fake_gpu/libnvidia-ml.la \
	tests/fake_gpu/libnvToolsExt.la \
	tests/fake_gpu/libnvrtc.la \
	tests/fake_gpu/librccl.la \
	tests/fake_gpu/librocblas.la \
	tests/fake_gpu/librocm_smi64.la \
	tests/fake_gpu/libroctx64.la

EXTRA_DIST += tests/fake_gpu/prologue.h tests/fake_gpu/units.h tests/fake_gpu/wgmma.h

fake_headers = tests/fake_gpu/abi.h tests/fake_gpu/device.h tests/fake_gpu/driver.h tests/fake_gpu/errors.h \
	tests/fake_gpu/exec.h tests/fake_gpu/multiply.h tests/fake_gpu/stream.h tests/fake_gpu/vendor.h
fake_common = $(fake_headers) tests/fake_gpu/fault.c tests/fake_gpu/setting.c
fake_driver = $(fake_common) tests/fake_gpu/driver.c tests/fake_gpu/driver_memory.c \
	tests/fake_gpu/driver_module.c tests/fake_gpu/driver_stream.c tests/fake_gpu/graph.c tests/fake_gpu/group.c \
	tests/fake_gpu/memory.c tests/fake_gpu/module.c tests/fake_gpu/stream.c tests/fake_gpu/tape.c
fake_compiler = $(fake_common) tests/fake_gpu/compile.c tests/fake_gpu/compiler.c
fake_cppflags = $(AM_CPPFLAGS) -DFAKE_PROLOGUE='"$(abs_srcdir)/tests/fake_gpu/prologue.h"' \
	-DFAKE_ABI='"$(abs_srcdir)/tests/fake_gpu/abi.h"' \
	-DFAKE_UNITS='"$(abs_srcdir)/tests/fake_gpu/units.h"' \
	-DFAKE_WGMMA='"$(abs_srcdir)/tests/fake_gpu/wgmma.h"'
# What a library lacks by name it may still call itself (tests/native.c).
fake_ldflags = $(AM_LDFLAGS) -shared -rpath /nowhere -Wl,-Bsymbolic-functions

tests_fake_gpu_libcuda_la_SOURCES = $(fake_driver)
tests_fake_gpu_libcuda_la_CPPFLAGS = $(fake_cppflags)
tests_fake_gpu_libcuda_la_LDFLAGS = $(fake_ldflags) -version-info 1:0:0
tests_fake_gpu_libcuda_la_LIBADD = $(SYSTEM_LIBS)
tests_fake_gpu_libnvrtc_la_SOURCES = $(fake_compiler)
tests_fake_gpu_libnvrtc_la_CPPFLAGS = $(fake_cppflags)
tests_fake_gpu_libnvrtc_la_LDFLAGS = $(fake_ldflags) -version-info 13:0:0
tests_fake_gpu_libnvrtc_la_LIBADD = $(SYSTEM_LIBS)
tests_fake_gpu_libamdhip64_la_SOURCES = $(fake_driver)
tests_fake_gpu_libamdhip64_la_CPPFLAGS = $(fake_cppflags) -DFAKE_HIP
tests_fake_gpu_libamdhip64_la_LDFLAGS = $(fake_ldflags) -version-info 6:0:0
tests_fake_gpu_libamdhip64_la_LIBADD = $(SYSTEM_LIBS)
tests_fake_gpu_libhiprtc_la_SOURCES = $(fake_compiler)
tests_fake_gpu_libhiprtc_la_CPPFLAGS = $(fake_cppflags) -DFAKE_HIP
tests_fake_gpu_libhiprtc_la_LDFLAGS = $(fake_ldflags) -version-info 6:0:0
tests_fake_gpu_libhiprtc_la_LIBADD = $(SYSTEM_LIBS)
tests_fake_gpu_libcublasLt_la_SOURCES = $(fake_common) tests/fake_gpu/multiply.c tests/fake_gpu/products.c
tests_fake_gpu_libcublasLt_la_CPPFLAGS = $(fake_cppflags)
tests_fake_gpu_libcublasLt_la_LDFLAGS = $(fake_ldflags) -version-info 13:0:0
tests_fake_gpu_libcublasLt_la_LIBADD = $(SYSTEM_LIBS)
tests_fake_gpu_libhipblaslt_la_SOURCES = $(fake_common) tests/fake_gpu/multiply.c tests/fake_gpu/products.c
tests_fake_gpu_libhipblaslt_la_CPPFLAGS = $(fake_cppflags) -DFAKE_HIP
tests_fake_gpu_libhipblaslt_la_LDFLAGS = $(fake_ldflags) -version-info 1:0:0
tests_fake_gpu_libhipblaslt_la_LIBADD = $(SYSTEM_LIBS)
tests_fake_gpu_libnccl_la_SOURCES = $(fake_common) tests/fake_gpu/collectives.c
tests_fake_gpu_libnccl_la_CPPFLAGS = $(fake_cppflags)
tests_fake_gpu_libnccl_la_LDFLAGS = $(fake_ldflags) -version-info 2:0:0
tests_fake_gpu_libnccl_la_LIBADD = $(SYSTEM_LIBS)
tests_fake_gpu_librccl_la_SOURCES = $(fake_common) tests/fake_gpu/collectives.c
tests_fake_gpu_librccl_la_CPPFLAGS = $(fake_cppflags) -DFAKE_HIP
tests_fake_gpu_librccl_la_LDFLAGS = $(fake_ldflags) -version-info 1:0:0
tests_fake_gpu_librccl_la_LIBADD = $(SYSTEM_LIBS)
tests_fake_gpu_libcusparse_la_SOURCES = $(fake_common) tests/fake_gpu/sparse.c
tests_fake_gpu_libcusparse_la_CPPFLAGS = $(fake_cppflags)
tests_fake_gpu_libcusparse_la_LDFLAGS = $(fake_ldflags) -version-info 12:0:0
tests_fake_gpu_libcusparse_la_LIBADD = $(SYSTEM_LIBS)
tests_fake_gpu_libhipsparse_la_SOURCES = $(fake_common) tests/fake_gpu/sparse.c
tests_fake_gpu_libhipsparse_la_CPPFLAGS = $(fake_cppflags) -DFAKE_HIP
tests_fake_gpu_libhipsparse_la_LDFLAGS = $(fake_ldflags) -version-info 1:0:0
tests_fake_gpu_libhipsparse_la_LIBADD = $(SYSTEM_LIBS)
tests_fake_gpu_libnvidia_ml_la_SOURCES = $(fake_common) tests/fake_gpu/nvml.c
tests_fake_gpu_libnvidia_ml_la_CPPFLAGS = $(fake_cppflags)
tests_fake_gpu_libnvidia_ml_la_LDFLAGS = $(fake_ldflags) -version-info 1:0:0
tests_fake_gpu_libnvidia_ml_la_LIBADD = $(SYSTEM_LIBS)
tests_fake_gpu_librocm_smi64_la_SOURCES = $(fake_common) tests/fake_gpu/rsmi.c
tests_fake_gpu_librocm_smi64_la_CPPFLAGS = $(fake_cppflags) -DFAKE_HIP
tests_fake_gpu_librocm_smi64_la_LDFLAGS = $(fake_ldflags) -version-info 7:0:0
tests_fake_gpu_librocm_smi64_la_LIBADD = $(SYSTEM_LIBS)
tests_fake_gpu_librocblas_la_SOURCES = $(fake_common) tests/fake_gpu/multiply.c tests/fake_gpu/rocblas.c
tests_fake_gpu_librocblas_la_CPPFLAGS = $(fake_cppflags) -DFAKE_HIP
tests_fake_gpu_librocblas_la_LDFLAGS = $(fake_ldflags) -version-info 4:0:0
tests_fake_gpu_librocblas_la_LIBADD = $(SYSTEM_LIBS)
tests_fake_gpu_libnvToolsExt_la_SOURCES = $(fake_common) tests/fake_gpu/ranges.c
tests_fake_gpu_libnvToolsExt_la_CPPFLAGS = $(fake_cppflags)
tests_fake_gpu_libnvToolsExt_la_LDFLAGS = $(fake_ldflags) -version-info 1:0:0
tests_fake_gpu_libnvToolsExt_la_LIBADD = $(SYSTEM_LIBS)
tests_fake_gpu_libroctx64_la_SOURCES = $(fake_common) tests/fake_gpu/ranges.c
tests_fake_gpu_libroctx64_la_CPPFLAGS = $(fake_cppflags) -DFAKE_HIP
tests_fake_gpu_libroctx64_la_LDFLAGS = $(fake_ldflags) -version-info 4:0:0
tests_fake_gpu_libroctx64_la_LIBADD = $(SYSTEM_LIBS)

# What they do, by their own calls: one source for both vendors.
test_programs += tests/fake_gpu_cuda.t tests/fake_gpu_hip.t
tests_fake_gpu_cuda_t_SOURCES = tests/fake_gpu_calls.c tests/fake_gpu/vendor.h
tests_fake_gpu_cuda_t_LDADD = $(SYSTEM_LIBS)
tests_fake_gpu_hip_t_SOURCES = tests/fake_gpu_calls.c tests/fake_gpu/vendor.h
tests_fake_gpu_hip_t_CPPFLAGS = $(AM_CPPFLAGS) -DFAKE_HIP
tests_fake_gpu_hip_t_LDADD = $(SYSTEM_LIBS)
