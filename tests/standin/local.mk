# SPDX-License-Identifier: Apache-2.0
# Stand-ins for the vendors' libraries, by their own names; a test that wants them has YOKE_TEST_STANDIN in
# LD_LIBRARY_PATH.  Most sources are compiled for each vendor.
AM_TESTS_ENVIRONMENT += \
	YOKE_TEST_STANDIN='$(abs_builddir)/tests/standin/.libs'; export YOKE_TEST_STANDIN;

check_LTLIBRARIES += \
	tests/standin/libamdhip64.la \
	tests/standin/libcublasLt.la \
	tests/standin/libcuda.la \
	tests/standin/libcusparse.la \
	tests/standin/libhipblaslt.la \
	tests/standin/libhiprtc.la \
	tests/standin/libnccl.la \
	tests/standin/libhipsparse.la \
	tests/standin/libnvidia-ml.la \
	tests/standin/libnvToolsExt.la \
	tests/standin/libnvrtc.la \
	tests/standin/librccl.la \
	tests/standin/librocblas.la \
	tests/standin/librocm_smi64.la \
	tests/standin/libroctx64.la

EXTRA_DIST += tests/standin/prologue.h

standin_headers = tests/standin/abi.h tests/standin/device.h tests/standin/driver.h tests/standin/errors.h \
	tests/standin/exec.h tests/standin/multiply.h tests/standin/stream.h tests/standin/vendor.h
standin_common = $(standin_headers) tests/standin/fault.c tests/standin/setting.c
standin_driver = $(standin_common) tests/standin/driver.c tests/standin/driver_memory.c \
	tests/standin/driver_module.c tests/standin/driver_stream.c tests/standin/graph.c tests/standin/group.c \
	tests/standin/memory.c tests/standin/module.c tests/standin/stream.c tests/standin/tape.c
standin_compiler = $(standin_common) tests/standin/compile.c tests/standin/compiler.c
standin_cppflags = $(AM_CPPFLAGS) -DSTANDIN_PROLOGUE='"$(abs_srcdir)/tests/standin/prologue.h"' \
	-DSTANDIN_ABI='"$(abs_srcdir)/tests/standin/abi.h"'
# What a library lacks by name it may still call itself (tests/native.c).
standin_ldflags = $(AM_LDFLAGS) -shared -rpath /nowhere -Wl,-Bsymbolic-functions

tests_standin_libcuda_la_SOURCES = $(standin_driver)
tests_standin_libcuda_la_CPPFLAGS = $(standin_cppflags)
tests_standin_libcuda_la_LDFLAGS = $(standin_ldflags) -version-info 1:0:0
tests_standin_libcuda_la_LIBADD = $(SYSTEM_LIBS)
tests_standin_libnvrtc_la_SOURCES = $(standin_compiler)
tests_standin_libnvrtc_la_CPPFLAGS = $(standin_cppflags)
tests_standin_libnvrtc_la_LDFLAGS = $(standin_ldflags) -version-info 13:0:0
tests_standin_libnvrtc_la_LIBADD = $(SYSTEM_LIBS)
tests_standin_libamdhip64_la_SOURCES = $(standin_driver)
tests_standin_libamdhip64_la_CPPFLAGS = $(standin_cppflags) -DSTANDIN_HIP
tests_standin_libamdhip64_la_LDFLAGS = $(standin_ldflags) -version-info 6:0:0
tests_standin_libamdhip64_la_LIBADD = $(SYSTEM_LIBS)
tests_standin_libhiprtc_la_SOURCES = $(standin_compiler)
tests_standin_libhiprtc_la_CPPFLAGS = $(standin_cppflags) -DSTANDIN_HIP
tests_standin_libhiprtc_la_LDFLAGS = $(standin_ldflags) -version-info 6:0:0
tests_standin_libhiprtc_la_LIBADD = $(SYSTEM_LIBS)
tests_standin_libcublasLt_la_SOURCES = $(standin_common) tests/standin/multiply.c tests/standin/products.c
tests_standin_libcublasLt_la_CPPFLAGS = $(standin_cppflags)
tests_standin_libcublasLt_la_LDFLAGS = $(standin_ldflags) -version-info 13:0:0
tests_standin_libcublasLt_la_LIBADD = $(SYSTEM_LIBS)
tests_standin_libhipblaslt_la_SOURCES = $(standin_common) tests/standin/multiply.c tests/standin/products.c
tests_standin_libhipblaslt_la_CPPFLAGS = $(standin_cppflags) -DSTANDIN_HIP
tests_standin_libhipblaslt_la_LDFLAGS = $(standin_ldflags) -version-info 1:0:0
tests_standin_libhipblaslt_la_LIBADD = $(SYSTEM_LIBS)
tests_standin_libnccl_la_SOURCES = $(standin_common) tests/standin/collectives.c
tests_standin_libnccl_la_CPPFLAGS = $(standin_cppflags)
tests_standin_libnccl_la_LDFLAGS = $(standin_ldflags) -version-info 2:0:0
tests_standin_libnccl_la_LIBADD = $(SYSTEM_LIBS)
tests_standin_librccl_la_SOURCES = $(standin_common) tests/standin/collectives.c
tests_standin_librccl_la_CPPFLAGS = $(standin_cppflags) -DSTANDIN_HIP
tests_standin_librccl_la_LDFLAGS = $(standin_ldflags) -version-info 1:0:0
tests_standin_librccl_la_LIBADD = $(SYSTEM_LIBS)
tests_standin_libcusparse_la_SOURCES = $(standin_common) tests/standin/sparse.c
tests_standin_libcusparse_la_CPPFLAGS = $(standin_cppflags)
tests_standin_libcusparse_la_LDFLAGS = $(standin_ldflags) -version-info 12:0:0
tests_standin_libcusparse_la_LIBADD = $(SYSTEM_LIBS)
tests_standin_libhipsparse_la_SOURCES = $(standin_common) tests/standin/sparse.c
tests_standin_libhipsparse_la_CPPFLAGS = $(standin_cppflags) -DSTANDIN_HIP
tests_standin_libhipsparse_la_LDFLAGS = $(standin_ldflags) -version-info 1:0:0
tests_standin_libhipsparse_la_LIBADD = $(SYSTEM_LIBS)
tests_standin_libnvidia_ml_la_SOURCES = $(standin_common) tests/standin/nvml.c
tests_standin_libnvidia_ml_la_CPPFLAGS = $(standin_cppflags)
tests_standin_libnvidia_ml_la_LDFLAGS = $(standin_ldflags) -version-info 1:0:0
tests_standin_libnvidia_ml_la_LIBADD = $(SYSTEM_LIBS)
tests_standin_librocm_smi64_la_SOURCES = $(standin_common) tests/standin/rsmi.c
tests_standin_librocm_smi64_la_CPPFLAGS = $(standin_cppflags) -DSTANDIN_HIP
tests_standin_librocm_smi64_la_LDFLAGS = $(standin_ldflags) -version-info 7:0:0
tests_standin_librocm_smi64_la_LIBADD = $(SYSTEM_LIBS)
tests_standin_librocblas_la_SOURCES = $(standin_common) tests/standin/multiply.c tests/standin/rocblas.c
tests_standin_librocblas_la_CPPFLAGS = $(standin_cppflags) -DSTANDIN_HIP
tests_standin_librocblas_la_LDFLAGS = $(standin_ldflags) -version-info 4:0:0
tests_standin_librocblas_la_LIBADD = $(SYSTEM_LIBS)
tests_standin_libnvToolsExt_la_SOURCES = $(standin_common) tests/standin/ranges.c
tests_standin_libnvToolsExt_la_CPPFLAGS = $(standin_cppflags)
tests_standin_libnvToolsExt_la_LDFLAGS = $(standin_ldflags) -version-info 1:0:0
tests_standin_libnvToolsExt_la_LIBADD = $(SYSTEM_LIBS)
tests_standin_libroctx64_la_SOURCES = $(standin_common) tests/standin/ranges.c
tests_standin_libroctx64_la_CPPFLAGS = $(standin_cppflags) -DSTANDIN_HIP
tests_standin_libroctx64_la_LDFLAGS = $(standin_ldflags) -version-info 4:0:0
tests_standin_libroctx64_la_LIBADD = $(SYSTEM_LIBS)

# What they do, by their own calls: one source for both vendors.
test_programs += tests/standin_cuda.t tests/standin_hip.t
tests_standin_cuda_t_SOURCES = tests/standin_calls.c tests/standin/vendor.h
tests_standin_cuda_t_LDADD = $(SYSTEM_LIBS)
tests_standin_hip_t_SOURCES = tests/standin_calls.c tests/standin/vendor.h
tests_standin_hip_t_CPPFLAGS = $(AM_CPPFLAGS) -DSTANDIN_HIP
tests_standin_hip_t_LDADD = $(SYSTEM_LIBS)
