# SPDX-License-Identifier: Apache-2.0
# The ROCm plugin: the native driver of plugins/native with AMD's names, for backends/gpu.
if ROCM
plugin_LTLIBRARIES += plugins/rocm/yoke_rocm.la
endif
plugins_rocm_yoke_rocm_la_SOURCES = $(native_sources) \
	plugins/rocm/blas.c \
	plugins/rocm/calls.h \
	plugins/rocm/facts.h \
	plugins/rocm/metadata.c \
	plugins/rocm/telemetry.c \
	plugins/rocm/types.h \
	plugins/rocm/vendor.c \
	plugins/rocm/vendor.h
plugins_rocm_yoke_rocm_la_CPPFLAGS = -I$(srcdir)/plugins/rocm $(AM_CPPFLAGS) $(ROCM_CPPFLAGS)
plugins_rocm_yoke_rocm_la_LDFLAGS = $(module_ldflags) \
	-export-symbols-regex '^yoke_plugin_init$$'
plugins_rocm_yoke_rocm_la_LIBADD = libgpu.la $(SYSTEM_LIBS)
