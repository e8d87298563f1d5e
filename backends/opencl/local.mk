# SPDX-License-Identifier: Apache-2.0
# The OpenCL backend, a module.
if OPENCL
plugin_LTLIBRARIES += backends/opencl/yoke_opencl.la
endif
backends_opencl_yoke_opencl_la_SOURCES = $(opencl_sources)
backends_opencl_yoke_opencl_la_CFLAGS = $(AM_CFLAGS) $(OPENCL_CFLAGS)
backends_opencl_yoke_opencl_la_LDFLAGS = $(module_ldflags) \
	-export-symbols-regex '^yoke_plugin_init$$'
backends_opencl_yoke_opencl_la_LIBADD = $(OPENCL_LIBS) $(SYSTEM_LIBS)

opencl_sources = \
	backends/gpu/attention.c \
	backends/gpu/axes.c \
	backends/gpu/axes.h \
	backends/gpu/backend.c \
	backends/gpu/contract.c \
	backends/gpu/contract.h \
	backends/gpu/contract_packed.c \
	backends/gpu/contract_rows.c \
	backends/gpu/contract_shape.c \
	backends/gpu/contract_tiled.c \
	backends/gpu/f16.c \
	backends/gpu/f64.c \
	backends/gpu/gather.c \
	backends/gpu/gpu.h \
	backends/gpu/kernel.c \
	backends/gpu/launch.c \
	backends/gpu/launch.h \
	backends/gpu/list.c \
	backends/gpu/map.c \
	backends/gpu/memory.c \
	backends/gpu/move.c \
	backends/gpu/norm.c \
	backends/gpu/program.c \
	backends/gpu/queue.c \
	backends/gpu/reduce.c \
	backends/gpu/report.c \
	backends/gpu/report.h \
	backends/gpu/rope.c \
	backends/gpu/rows.c \
	backends/gpu/rows.h \
	backends/gpu/scan.c \
	backends/gpu/scan_map.c \
	backends/gpu/scatter.c \
	backends/gpu/softmax.c \
	backends/gpu/sort.c \
	backends/gpu/source.c \
	backends/gpu/try.c \
	backends/gpu/xent.c \
	backends/opencl/contract_clblast.c \
	backends/opencl/device.c \
	backends/opencl/error.c \
	backends/opencl/identity.c \
	backends/opencl/lock.c
