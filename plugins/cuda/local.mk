# SPDX-License-Identifier: Apache-2.0
# The CUDA plugin: the native driver of plugins/native with NVIDIA's names, for backends/gpu.
if CUDA
plugin_LTLIBRARIES += plugins/cuda/yoke_cuda.la
endif
plugins_cuda_yoke_cuda_la_SOURCES = $(native_sources) \
	plugins/cuda/calls.h \
	plugins/cuda/facts.h \
	plugins/cuda/nvtx.c \
	plugins/cuda/telemetry.c \
	plugins/cuda/types.h \
	plugins/cuda/vendor.c \
	plugins/cuda/vendor.h
plugins_cuda_yoke_cuda_la_CPPFLAGS = -I$(srcdir)/plugins/cuda $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
plugins_cuda_yoke_cuda_la_LDFLAGS = $(module_ldflags) \
	-export-symbols-regex '^yoke_plugin_init$$'
plugins_cuda_yoke_cuda_la_LIBADD = libgpu.la $(SYSTEM_LIBS)
