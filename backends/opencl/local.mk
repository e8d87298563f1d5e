# SPDX-License-Identifier: Apache-2.0
# The OpenCL plugin: a driver for the launch layer of backends/gpu.
if OPENCL
plugin_LTLIBRARIES += backends/opencl/yoke_opencl.la
endif
backends_opencl_yoke_opencl_la_SOURCES = $(opencl_sources)
backends_opencl_yoke_opencl_la_CFLAGS = $(AM_CFLAGS) $(OPENCL_CFLAGS)
backends_opencl_yoke_opencl_la_LDFLAGS = $(module_ldflags) \
	-export-symbols-regex '^yoke_plugin_init$$'
backends_opencl_yoke_opencl_la_LIBADD = libgpu.la $(OPENCL_LIBS) $(SYSTEM_LIBS)

opencl_sources = \
	backends/opencl/contract_clblast.c \
	backends/opencl/device.c \
	backends/opencl/driver.c \
	backends/opencl/error.c \
	backends/opencl/identity.c \
	backends/opencl/lock.c \
	backends/opencl/memory.c \
	backends/opencl/opencl.h \
	backends/opencl/program.c \
	backends/opencl/queue.c
